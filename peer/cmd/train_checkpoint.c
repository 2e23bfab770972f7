/* peer/cmd/train_checkpoint.c -- writes and loads the checkpoints of `hearsay train`, and writes
 * its model file. */
#include "peer/cmd/train_checkpoint.h"

#include "peer/cmd/files.h"
#include "peer/cmd/stop.h"
#include "peer/cmd/train.h"
#include "peer/output/retry.h"
#include "peer/run_log/model.h"
#include "peer/uv/fd_reserve.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    WRITE_US = 60 * 1000 * 1000, /* Longest time to write the last checkpoint, in microseconds. */
    /* Longest time for the writer thread to stop after the last checkpoint, in microseconds. */
    LIMIT_US = 1000 * 1000,
    LOOK_MS = 20 /* Interval at which a waiting loop checks for signals, in milliseconds. */
};

/* ---- Contents of a checkpoint ---- */

static void sums_fields(struct cmd_train_sums *sums, struct state *s)
{
    state_f64(s, &sums->loss);
    state_f64(s, &sums->accuracy);
    state_f64(s, &sums->seconds);
    state_u64(s, &sums->rows);
    state_u64(s, &sums->steps);
}

static void fields(struct cmd_train *t, struct state *s)
{
    state_section(s, "train");
    state_u64(s, &t->round);
    state_u64(s, &t->epoch);
    state_u64(s, &t->tested_at);
    state_u64(s, &t->next_test);
    state_expect(s, t->round <= t->run.rounds && t->tested_at <= t->round,
                 "the round of the checkpoint is after the last round");
    state_expect(s, t->epoch <= t->round * cmd_train_round_samples(t) / t->samples,
                 "the epoch of the checkpoint is too large for the round");
    sums_fields(&t->since, s);
    sums_fields(&t->all, s);
    divergence_state(&t->verdict, s);
    rollback_state(&t->rollback, s);
    state_floats(s, t->x, t->trainer.n_params, "model");
    if (t->trainer.state != NULL)
        t->trainer.state(t->trainer.self, s);
    outer_optimiser_state(&t->outer, s);
}

/* ---- Resuming from a checkpoint at the start ---- */

static int checkpoint_refuse(const struct cmd_train *t, const struct checkpoint_file *m,
                             const char *why, bool no_memory)
{
    return cmd_fail(
        t->o, no_memory ? CMD_FAILED : CMD_USAGE,
        "the checkpoint of round %llu in %s cannot be used: %s; --fresh starts the run again",
        (unsigned long long)m->label.beat, t->out, why);
}

/* Restores the state of training from the newest checkpoint. Refuses a checkpoint that a peer of a
 * cluster wrote, or that belongs to another run. Returns CMD_OK, or an exit code after a message on
 * stderr. */
static int resume(struct cmd_train *t)
{
    struct cmd_train_checkpoint *k = &t->keep;
    struct checkpoint_file *m = &k->files.found.image[0];
    char run[WIRE_RUN_MAX + 1];
    run_text(&t->run, run);
    if (m->label.owner != NULL)
        return checkpoint_refuse(t, m, "a peer of a cluster wrote the checkpoint", false);
    if (strcmp(m->label.run, run) != 0)
        return checkpoint_refuse(t, m, "the checkpoint belongs to another run", false);
    struct state s = m->state;
    fields(t, &s);
    if (state_end(&s) != 0)
        return checkpoint_refuse(t, m, s.why, s.no_memory);
    k->kept = t->round;
    char now[DIARY_MODEL_TRAINED_MAX];
    const char *changed =
        cmd_checkpoint_data_changed(&k->files, cmd_training_trained_on(&t->training, now));
    if (changed != NULL)
        cmd_fail(t->o, CMD_OK, "warning: %s", changed);
    cmd_fail(t->o, CMD_OK, "resuming from the checkpoint of round %llu of %llu in %s",
             (unsigned long long)t->round, (unsigned long long)t->run.rounds, t->out);
    return CMD_OK;
}

static void on_written(void *self, const struct uv_writer_result *r)
{
    struct cmd_train *t = self;
    struct log_backoff *warns = &t->keep.warns;
    if (r->err == 0) {
        t->keep.kept = r->beat;
        *warns = (struct log_backoff){0};
    } else if (log_backoff_count(warns, uv_hrtime() / 1000000)) {
        cmd_train_end_line(t);
        cmd_fail(t->o, CMD_OK, "warning: %s; training continues (%llu so far)", r->why,
                 (unsigned long long)warns->n);
    }
}

int cmd_train_checkpoint_open(struct cmd_train *t)
{
    struct cmd_train_checkpoint *k = &t->keep;
    int code = t->out != NULL ? cmd_checkpoint_open(&k->files, t->o, t->out) : CMD_OK;
    if (t->out == NULL || code != CMD_OK)
        return code;
    if (k->files.found.n > 0)
        code = resume(t);
    else if (t->dir.begun)
        cmd_fail(t->o, CMD_OK, "the run in %s has no checkpoint: it begins again", t->out);
    k->last_ns = uv_hrtime();
    if (code != CMD_OK || k->files.every_us == 0)
        return code;
    int err = uv_spare_loop_init(&k->loop);
    if (err == 0) {
        err = uv_writer_open(&k->writer, &k->loop, &k->files.slots, on_written, t);
        k->writes = err == 0;
        if (err < 0) {
            (void)uv_run(&k->loop, UV_RUN_DEFAULT);
            (void)uv_loop_close(&k->loop);
        }
    }
    return err < 0 ? cmd_fail(t->o, CMD_FAILED, "no thread for checkpoints: %s", uv_strerror(err))
                   : CMD_OK;
}

/* ---- Writing checkpoints during training ---- */

static void write_one(struct cmd_train *t)
{
    struct cmd_train_checkpoint *k = &t->keep;
    char run[WIRE_RUN_MAX + 1], trained_on[DIARY_MODEL_TRAINED_MAX];
    struct checkpoint_file_label label = {.run = run,
                                          .name = "peer-0",
                                          .beat = t->round,
                                          .trained_on =
                                              cmd_training_trained_on(&t->training, trained_on)};
    run_text(&t->run, run);
    state_write(&k->copy);
    fields(t, &k->copy);
    int err = state_end(&k->copy);
    if (err == 0)
        err = uv_writer_keep(&k->writer, &k->copy, &label);
    if (err < 0)
        cmd_fail(t->o, CMD_OK, "warning: cannot start to write a checkpoint of round %llu: %s",
                 (unsigned long long)t->round, strerror(-err));
    k->last_ns = uv_hrtime();
}

void cmd_train_checkpoint_round(struct cmd_train *t)
{
    struct cmd_train_checkpoint *k = &t->keep;
    if (!k->writes || uv_hrtime() - k->last_ns < (uint64_t)k->files.every_us * 1000)
        return;
    /* Calls on_written() if the write of the last checkpoint has ended. */
    (void)uv_run(&k->loop, UV_RUN_NOWAIT);
    if (!uv_writer_busy(&k->writer) && t->round < t->run.rounds)
        write_one(t);
}

static void close_writer(struct cmd_train *t)
{
    struct cmd_train_checkpoint *k = &t->keep;
    struct uv_writer_result r;
    bool last = false;
    if (!k->writes)
        return;
    if (uv_writer_close(&k->writer, WRITE_US, LIMIT_US, &r, &last) < 0) {
        cmd_fail(t->o, CMD_OK, "warning: the disk of %s does not answer", t->out);
        fflush(NULL);
        /* The writer thread hangs in a disk access, so it can be neither ended nor joined. */
        _exit(CMD_FAILED);
    }
    if (last)
        on_written(t, &r);
    (void)uv_run(&k->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&k->loop);
    k->writes = false;
}

void cmd_train_checkpoint_stop(struct cmd_train *t)
{
    struct cmd_train_checkpoint *k = &t->keep;
    if (!k->writes || t->round == k->kept)
        return;
    while (uv_writer_busy(&k->writer))
        (void)uv_run(&k->loop, UV_RUN_ONCE);
    /* Report a failure of this last checkpoint, even if a warning about another failure was printed
     * just before. */
    k->warns = (struct log_backoff){0};
    if (t->round > 0)
        write_one(t);
    close_writer(t);
}

/* ---- Writing the model at the end ---- */

static int write_model(struct cmd_train *t, char why[DATA_ERROR_MAX])
{
    char path[CMD_PATH_MAX];
    struct diary_model s = {.x = t->x,
                            .segments = t->trainer.segments,
                            .n_segments = t->trainer.n_segments,
                            .run = &t->run,
                            .round = t->diverged[0] != '\0' ? t->rollback.round : t->round,
                            .final = t->round >= t->run.rounds,
                            .name = "peer-0",
                            .source = cmd_training_source(&t->training)};
    int err = cmd_path(path, t->out, "model.safetensors");
    if (err < 0) {
        snprintf(why, DATA_ERROR_MAX, "--out %.200s: %s", t->out, strerror(-err));
        return err;
    }
    disk_reservation_release(&t->reserve);
    err = diary_model_write(path, &s, why);
    if (err < 0)
        disk_reservation_hold_again(&t->reserve, t->out);
    return err;
}

static void wait_for(int64_t us)
{
    uint64_t end = uv_hrtime() + (uint64_t)us * 1000;
    while (!cmd_stop_asked() && uv_hrtime() < end)
        uv_sleep(LOOK_MS);
}

int cmd_train_write_model(struct cmd_train *t)
{
    char why[DATA_ERROR_MAX];
    struct retry retry = {0};
    int64_t patience_us = (int64_t)(options_real(t->o, "disk-timeout") * 1e6);
    if (t->out == NULL)
        return CMD_OK;
    while (write_model(t, why) < 0) {
        int64_t now_us = (int64_t)(uv_hrtime() / 1000);
        bool say;
        int64_t wait_us = retry_failed(&retry, now_us, patience_us, &say);
        if (cmd_stop_asked() || wait_us == 0)
            return cmd_fail(t->o, CMD_FAILED, "%s; the model is lost%s", why,
                            t->keep.kept > 0 ? ", and the same command resumes from a checkpoint"
                                             : "");
        if (say)
            cmd_fail(t->o, CMD_OK, "warning: %s; the model stays in memory; retrying for %lld s",
                     why, (long long)((retry_left_us(&retry, now_us) + 999999) / 1000000));
        wait_for(wait_us);
    }
    if (retry.begun)
        cmd_fail(t->o, CMD_OK, "wrote the model to %s after a retry", t->out);
    return CMD_OK;
}

/* If lines of metrics.jsonl are lost, the command returns an error, but the result and the model of
 * the run are stored. */
int cmd_train_flush_metrics(struct cmd_train *t)
{
    struct retry retry = {0};
    int64_t patience_us = (int64_t)(options_real(t->o, "disk-timeout") * 1e6), wait_us = 1;
    bool say;
    cmd_train_report_writer(t, diary_lines_write(&t->lines));
    while (diary_lines_wait(&t->lines) && !cmd_stop_asked() && wait_us > 0) {
        int64_t now_us = (int64_t)(uv_hrtime() / 1000);
        wait_us = retry_failed(&retry, now_us, patience_us, &say);
        if (say && wait_us > 0)
            cmd_fail(t->o, CMD_OK,
                     "warning: cannot write metrics.jsonl: its new lines stay in memory; "
                     "retrying for %lld s",
                     (long long)((retry_left_us(&retry, now_us) + 999999) / 1000000));
        wait_for(wait_us);
        cmd_train_report_writer(t, diary_lines_write(&t->lines));
    }
    uint64_t n = diary_lines_missing(&t->lines);
    return n == 0 ? CMD_OK
                  : cmd_fail(t->o, CMD_FAILED,
                             "%llu line%s of metrics.jsonl could not be written; "
                             "the model is stored",
                             (unsigned long long)n, n > 1 ? "s" : "");
}

void cmd_train_checkpoint_close(struct cmd_train *t, bool over)
{
    close_writer(t);
    cmd_checkpoint_close(&t->keep.files, over);
    state_close(&t->keep.copy);
}
