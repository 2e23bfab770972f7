/* peer/cmd/train_report.c -- writes the metrics of `hearsay train` and prints its result. */
#include "peer/cmd/train.h"

#include "nn/math/number.h"
#include "peer/sgd/sgd_keys.h"
#include "peer/uv/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <uv.h>

static const double bit = 0.69314718055994530942; /* One bit of information in nats: ln 2. */

/* ---- Figures of the run so far ---- */

static double mean_loss(const struct cmd_train_sums *s)
{
    return s->rows > 0 ? s->loss / (double)s->rows : (double)NAN;
}

static double mean_accuracy(const struct cmd_train_sums *s)
{
    return s->rows > 0 ? s->accuracy / (double)s->rows : (double)NAN;
}

/* Returns the number of epochs (passes over the data) that `rounds` rounds make. */
static double epochs(const struct cmd_train *t, uint64_t rounds)
{
    return (double)(rounds * cmd_train_round_samples(t)) / (double)t->samples;
}

/* Returns the number of epochs that the user asked for. A run may train a little more, because it
 * consists of whole rounds. */
static double wanted_epochs(const struct cmd_train *t)
{
    return options_given(t->o, "rounds") ? epochs(t, t->run.rounds) : options_real(t->o, "epochs");
}

static double ms_per_step(const struct cmd_train_sums *s)
{
    return 1e3 * s->seconds / (double)s->steps;
}

static double samples_per_s(const struct cmd_train *t, const struct cmd_train_sums *s)
{
    return (double)s->steps * sgd_samples(&t->run) / s->seconds;
}

static double seconds(const struct cmd_train *t)
{
    return (double)(uv_hrtime() - t->begin_ns) * 1e-9;
}

/* Returns a result of an evaluation as JSON. If there was no evaluation, returns null. */
static json_t *held_out(bool has, double figure)
{
    return uv_metrics_number(has ? figure : (double)NAN);
}

/* Returns the largest amount of memory that the process has had resident, in bytes. Linux reports
 * it in KiB. */
static uint64_t peak_rss(void)
{
    struct rusage use;
    return getrusage(RUSAGE_SELF, &use) == 0 ? (uint64_t)use.ru_maxrss * 1024 : 0;
}

/* ---- Lines of progress and of metrics.jsonl ---- */

/* Returns the number of decimals with which an epoch is shown: 0 at the end of an epoch ("3"), 2
 * within an epoch ("2.35"). */
static int digits(double epoch)
{
    return fabs(epoch - round(epoch)) < 0.005 || epoch >= 100 ? 0 : 2;
}

/* Writes the end of the progress line, which only `hearsay train` has: the loss on held-out samples
 * and the time of a step. */
static void put_tail(const struct cmd_train *t, double loss, char *out, size_t size)
{
    char bits[CMD_PROGRESS_TEXT] = "-", tested[CMD_PROGRESS_TEXT], step[CMD_PROGRESS_TEXT];
    bool has = t->tested.n_samples > 0;
    if (t->is_text)
        cmd_progress_number(bits, "%.3f", loss / bit);
    snprintf(out, size, "%s%s%s%s%s ms/step", has ? "held-out loss " : "",
             has ? cmd_progress_number(tested, "%.4f", t->tested.loss) : "", has ? "  " : "",
             t->is_text ? strcat(bits, " bits  ") : "",
             cmd_progress_number(step, "%.3f", ms_per_step(&t->all)));
}

static void row_of(const struct cmd_train *t, struct cmd_progress_row *row)
{
    double last = wanted_epochs(t), epoch = fmin(epochs(t, t->round), last);
    const struct cmd_train_sums *s = t->since.steps > 0 ? &t->since : &t->shown;
    *row = (struct cmd_progress_row){.name = "train",
                                     .phase = "training",
                                     .round = t->round,
                                     .rounds = t->run.rounds,
                                     .loss = mean_loss(s),
                                     .accuracy =
                                         t->tested.n_samples > 0 ? t->tested.accuracy : (double)NAN,
                                     .accuracy_round = t->tested_at,
                                     .accuracy_samples = t->tested.n_samples,
                                     .relative_drift = NAN,
                                     .no_drift = true};
    snprintf(row->head, sizeof row->head, "epoch %.*f/%.*f", digits(epoch), epoch, digits(last),
             last);
    put_tail(t, row->loss, row->tail, sizeof row->tail);
}

void cmd_train_show(struct cmd_train *t, bool force)
{
    struct cmd_progress_row row;
    row_of(t, &row);
    cmd_progress_show(&t->progress, &row, 1, seconds(t), force);
}

void cmd_train_end_line(struct cmd_train *t)
{
    cmd_progress_end_line(&t->progress);
}

/* Returns one line of metrics.jsonl as a JSON object. Loss and accuracy are means over the steps in
 * `s`. The test_* values are null unless `tested`. */
static json_t *line_object(const struct cmd_train *t, const struct cmd_train_sums *s, bool tested)
{
    double loss = mean_loss(s), test_loss = t->tested.loss;
    bool has = tested && t->tested.n_samples > 0;
    json_t *j = json_pack(
        "{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o}", "round", (json_int_t)t->round,
        "epoch", uv_metrics_number(epochs(t, t->round)), "lr",
        uv_metrics_number(schedule_lr(&t->schedule, t->round > 0 ? (double)(t->round - 1) : 0)),
        "loss", uv_metrics_number(loss), "accuracy", uv_metrics_number(mean_accuracy(s)),
        "test_loss", held_out(has, test_loss), "test_accuracy", held_out(has, t->tested.accuracy),
        "test_round", has ? uv_metrics_whole(t->tested_at) : json_null(), "test_samples",
        (json_int_t)(has ? t->tested.n_samples : 0), "seconds", uv_metrics_number(seconds(t)),
        "samples_per_s", uv_metrics_number(samples_per_s(t, s)));
    if (t->is_text) {
        json_object_set_new(j, "bits_per_character", uv_metrics_number(loss / bit));
        json_object_set_new(j, "test_bits_per_character", held_out(has, test_loss / bit));
    }
    return j;
}

void cmd_train_report_writer(struct cmd_train *t, bool news)
{
    if (!news)
        return;
    cmd_train_end_line(t);
    cmd_fail(t->o, CMD_OK, "%s%s", t->lines.level == NOTE_WARNING ? "warning: " : "",
             t->lines.news);
}

/* Writes a line to metrics.jsonl. Before its first line, this process also writes the line that
 * marks the start of the process. */
static void write_line(struct cmd_train *t)
{
    uv_timeval64_t now;
    json_t *j = line_object(t, &t->since, t->fresh);
    if (!t->lines.started)
        diary_lines_start(&t->lines, uv_metrics_start(uv_gettimeofday(&now) == 0 ? now.tv_sec : -1,
                                                      t->from_round));
    cmd_train_report_writer(
        t, diary_lines_put(&t->lines, j ? json_dumps(j, JSON_REAL_PRECISION(9)) : NULL));
    json_decref(j);
}

/* The sums over local steps start again from 0 after each line of metrics.jsonl. Until there are
 * new sums, the progress display shows the previous ones. */
void cmd_train_write_line(struct cmd_train *t)
{
    bool last = t->round == t->run.rounds;
    cmd_train_show(t, last);
    if (last)
        cmd_train_end_line(t);
    if (t->out != NULL)
        write_line(t);
    t->fresh = false;
    t->shown = t->since;
    t->since = (struct cmd_train_sums){0};
}

/* ---- Printing the result ---- */

/* Returns the JSON object that --json prints at the end, but without "out". Returns NULL if there
 * is no memory. */
static json_t *closing_object(const struct cmd_train *t, bool interrupted)
{
    char text[WIRE_RUN_MAX + 1];
    run_text(&t->run, text);
    json_t *j = line_object(t, t->since.steps > 0 ? &t->since : &t->shown, true);
    json_t *more = json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:s, s:b, s:o}", "model",
        sgd_values(&t->run)->model, "data", sgd_values(&t->run)->data, "n_params",
        (json_int_t)t->trainer.n_params, "threads", (json_int_t)t->training.threads, "rounds",
        (json_int_t)t->run.rounds, "epochs", uv_metrics_number(epochs(t, t->run.rounds)),
        "ms_per_step", uv_metrics_number(ms_per_step(&t->all)), "train_seconds",
        uv_metrics_number(t->all.seconds), "peak_rss_bytes", (json_int_t)peak_rss(), "diverged",
        t->diverged[0] ? json_string(t->diverged) : json_null(), "unlearnt",
        t->unlearnt[0] ? json_string(t->unlearnt) : json_null(), "samples_per_s",
        uv_metrics_number(samples_per_s(t, &t->all)), "run", text, "interrupted", interrupted,
        "resumes_at",
        interrupted && t->keep.kept > 0 ? uv_metrics_whole(t->keep.kept) : json_null());
    bool ok = j && more && json_object_update(j, more) == 0;
    json_decref(more);
    if (ok)
        return j;
    json_decref(j);
    return NULL;
}

static int print_json(const struct cmd_train *t, json_t *j)
{
    json_t *out = uv_metrics_text(t->out);
    bool ok = json_object_set_new(j, "out", out) == 0
              && json_dumpf(j, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) == 0;
    putchar('\n');
    return ok ? CMD_OK : cmd_fail(t->o, CMD_FAILED, "cannot write JSON");
}

/* Prints the result of the last evaluation. In an interrupted run this evaluation may have used
 * only a part of the held-out samples. */
static void print_tested(const struct cmd_train *t)
{
    char percent[CMD_PROGRESS_TEXT], number[CMD_PROGRESS_TEXT];
    const struct trainer_report *r = &t->tested;
    const char *set = kind_brief(sgd_values(&t->run)->data).text;
    if (r->n_samples == 0) {
        printf("accuracy  not evaluated yet\n");
        return;
    }
    printf("accuracy  %s\nloss      %s\n", cmd_progress_percent(percent, r->accuracy),
           isfinite(r->loss) ? cmd_progress_number(number, "%.6f", r->loss)
                             : number_said(r->loss, number));
    if (t->is_text)
        printf("bits      %s a character\n", cmd_progress_number(number, "%.4f", r->loss / bit));
    printf("%s %" PRIu64 " of %s, held out", t->is_text ? "bytes    " : "samples  ", r->n_samples,
           set);
    if (t->tested_at != t->round)
        printf(", evaluated with the model of round %" PRIu64, t->tested_at);
    putchar('\n');
}

static void print_text(const struct cmd_train *t)
{
    char number[CMD_PROGRESS_TEXT], rate[CMD_PROGRESS_TEXT];
    print_tested(t);
    printf("trained   %" PRIu64
           " round%s, %.*f epochs, %.1f s: %s ms a step, %s samples a second\n",
           t->round, number_plural(t->round), digits(epochs(t, t->round)), epochs(t, t->round),
           t->all.seconds, cmd_progress_number(number, "%.3f", ms_per_step(&t->all)),
           cmd_progress_number(rate, "%.0f", samples_per_s(t, &t->all)));
    printf("memory    %s at its peak\n", cmd_progress_bytes(number, peak_rss()));
    printf("model     %s, %zu parameters%s%s%s\n", sgd_values(&t->run)->model, t->trainer.n_params,
           t->out ? ", in " : "", t->out ? t->out : "", t->out ? "/model.safetensors" : "");
}

int cmd_train_result(struct cmd_train *t, int exit_code)
{
    json_t *j = closing_object(t, false);
    if (j == NULL)
        return cmd_fail(t->o, CMD_FAILED, "out of memory for the result");
    int code = cmd_out_write_summary(t->o, t->out, j, true, exit_code), told = CMD_OK;
    if (options_flag(t->o, "json"))
        told = print_json(t, j);
    else
        print_text(t);
    json_decref(j);
    int flushed = cmd_finish(t->o);
    return code != CMD_OK ? code : told != CMD_OK ? told : flushed;
}

int cmd_train_interrupted(struct cmd_train *t)
{
    char how[CMD_PROGRESS_TEXT * 2] = "starts again, because there is no checkpoint";
    if (t->keep.kept > 0)
        snprintf(how, sizeof how, "resumes from round %" PRIu64, t->keep.kept);
    cmd_fail(t->o, CMD_OK, "interrupted at round %" PRIu64 " of %" PRIu64 "%s%s%s%s", t->round,
             t->run.rounds, t->out ? ", the model so far is in " : "", t->out ? t->out : "",
             t->out ? "; the same command " : "", t->out ? how : "");
    if (!options_flag(t->o, "json")) {
        print_text(t);
        return cmd_finish(t->o);
    }
    json_t *j = closing_object(t, true);
    if (j == NULL)
        return cmd_fail(t->o, CMD_FAILED, "out of memory for the result");
    int code = cmd_out_write_summary(t->o, NULL, j, false, CMD_INTERRUPTED),
        told = print_json(t, j);
    json_decref(j);
    int flushed = cmd_finish(t->o);
    return code != CMD_OK ? code : told != CMD_OK ? told : flushed;
}
