/* peer/cmd/train.c -- `hearsay train`: trains in one process, without other peers.
 *
 * The command uses the trainer, the run description and the files of a peer. Its result is, bit for
 * bit, the result of `hearsay local --peers 1` with the same flags.
 *
 * Ctrl-C or SIGTERM ends the command after the current round, with exit code 130. A checkpoint and
 * the present model are written, but no result, and the same command resumes from the checkpoint. A
 * second signal ends the command immediately.
 */
#include "peer/cmd/train.h"

#include "peer/cmd/duration.h"
#include "peer/cmd/files.h"
#include "peer/cmd/log.h"
#include "peer/cmd/stop.h"
#include "peer/run/outer.h"
#include "peer/run_log/run_log.h"
#include "peer/sgd/sgd_keys.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

/* With --evaluate-every, an evaluation during training uses at most half the number of samples that
 * were trained on since the last evaluation. This limit is never less than TEST_LEAST samples. */
enum { TEST_LEAST = 1000 };

/* clang-format off */
const struct option_row cmd_train_rows[] = {
    {.name = "epochs", .kind = OPTION_REAL, .arg = "X", .fallback = "10", .min = 1e-6, .max = 1e6,
     .rival = "rounds",
     .help = "passes over the data, if --rounds is not given"},
    {.name = "evaluate-every", .kind = OPTION_UINT, .arg = "EPOCHS", .min = 0, .max = 1e9,
     .help = "epochs between evaluations on the held-out set; 0: only at the end; default: a tenth of the run, fewer or no evaluations in short runs. An evaluation during training takes at most 1000 samples, the last evaluation takes all samples"},
    CMD_ROW_INIT,
    CMD_ROW_THREADS,
    {.name = "out", .kind = OPTION_TEXT, .arg = "DIR",
     .help = "directory of this run; default: nothing is written"},
    CMD_ROW_FRESH,
    CMD_ROW_CHECK,
    ROWS_CHECKPOINT,
    {.name = "disk-timeout", .former = "patience", .kind = OPTION_REAL, .arg = "SECONDS", .fallback = "600", .min = 0, .max = 1e9,
     .help = "how long to try again if the model cannot be written (full disk)"},
    CMD_ROW_LOG_LEVEL,
    {.name = "json", .kind = OPTION_FLAG, .help = "print one JSON object to stdout at the end"},
    {.name = NULL},
};
/* clang-format on */

/* State of `hearsay train`. `only` is static, because struct cmd_train is too large for the
 * stack. */
static struct cmd_train only;

const char *const cmd_train_keys[] = {"model",     "norm",
                                      "init",      "data",
                                      "augment",   "seed",
                                      "rounds",    "batch",
                                      "learners",  "learner-momentum",
                                      "optimiser", "lr",
                                      "momentum",  "beta2",
                                      "nesterov",  "label-smoothing",
                                      "clip",      "weight-decay",
                                      "warmup",    "schedule",
                                      "outer",     "local-steps",
                                      NULL};

/* ---- Steps before training ---- */

/* Builds the run description of a run with one peer from the flags. Returns CMD_OK, or an exit code
 * after a message on stderr. */
static int fix_run(struct cmd_train *t)
{
    char error[RUN_ERROR_MAX];
    const struct options *o = t->o;
    struct run_flags flags = o->run;
    const char *data = options_given(o, "data") ? options_text(o, "data") : NULL;
    /* The choice of batches depends on the name of the peer. `hearsay train` uses the name of the
     * first peer of `hearsay local`, so that it gives the same result as `local --peers 1`. */
    int err = cmd_training_init(&t->training, data, "own", "peer-0", error);
    t->reading.out = stderr;
    t->training.reading = &t->reading;
    t->training.init_path = options_text(o, "init");
    t->training.threads = (uint32_t)options_uint(o, "threads");
    if (err == 0)
        err = cmd_training_complete_run(&t->training, &flags, options_real(o, "epochs"), &t->run,
                                        error);
    if (err < 0)
        return cmd_fail(o, cmd_exit_of(err), "%s", error);
    if (t->run.local_steps == 0)
        return cmd_fail(o, CMD_USAGE,
                        "--local-steps: found auto, expected a number: auto compares the speeds of "
                        "several peers");
    return CMD_OK;
}

/* Checks that --out belongs to this run or to no run. This step comes before the trainer is made,
 * because a run that is refused or has finished needs no trainer. */
static int look(struct cmd_train *t)
{
    t->out = options_text(t->o, "out");
    if (t->out == NULL)
        return CMD_OK;
    const struct run_identity_flag flags[] = {{"data", options_text(t->o, "data")}, {NULL, NULL}};
    return cmd_out_examine(&t->dir, t->o, t->out, flags, &t->run);
}

/* Opens the outer optimiser, if the run has one. Returns 0 or -ENOMEM. */
static int open_outer(struct cmd_train *t)
{
    struct run_outer o = run_outer_of(&t->run);
    size_t n = segments_trained(t->trainer.segments, t->trainer.n_segments);
    if (o.lr == 0)
        return 0;
    t->before = malloc(n * sizeof *t->before);
    return t->before != NULL ? outer_optimiser_init(&t->outer, o.lr, o.momentum, n) : -ENOMEM;
}

/* Creates the trainer and the initial model. Returns CMD_OK, or an exit code after a message on
 * stderr. */
static int make_trainer(struct cmd_train *t)
{
    char error[RUN_ERROR_MAX];
    int err = cmd_training_make(&t->training, &t->run, &t->trainer, error);
    if (err < 0)
        return cmd_fail(t->o, cmd_exit_of(err), "%s", error);
    t->x = calloc(t->trainer.n_params, sizeof *t->x);
    if (t->x == NULL)
        return cmd_fail(t->o, CMD_FAILED, "out of memory");
    t->trainer.init(t->trainer.self, t->x);
    if (rollback_open(&t->rollback, &t->trainer) != 0 || open_outer(t) != 0)
        return cmd_fail(t->o, CMD_FAILED, "out of memory");
    divergence_init(&t->verdict);
    t->planned = !options_given(t->o, "evaluate-every");
    t->plan = evaluation_plan(t->run.rounds, cmd_train_round_samples(t));
    t->next_test = options_uint(t->o, "evaluate-every");
    t->schedule = t->training.sgd.config.schedule;
    t->samples = t->training.data.train.n;
    t->is_text = t->training.data.train.shape.form == DATA_TEXT;
    return CMD_OK;
}

static int open_files(struct cmd_train *t)
{
    char path[CMD_PATH_MAX];
    static const char *const names[] = {"metrics.jsonl", "model.safetensors", "summary.json", NULL};
    int err = disk_reservation_check(t->out, names, path, sizeof path);
    if (err < 0)
        return cmd_fail(t->o, cmd_exit_of(err), "cannot write %s: %s", path, strerror(-err));
    err = disk_reservation_hold(&t->reserve, t->out, t->trainer.n_params, 1);
    if (err == 0)
        err = disk_reservation_hold(&t->last, t->out, 0, 1);
    if (err < 0)
        return cmd_fail(t->o, CMD_FAILED, "no room in %s for the model (%llu bytes are needed): %s",
                        t->out, (unsigned long long)run_log_bytes(t->trainer.n_params),
                        strerror(-err));
    int code = cmd_train_checkpoint_open(t);
    if (code == CMD_OK)
        code = cmd_out_claim(&t->dir);
    if (code != CMD_OK)
        return code;
    t->from_round = t->round;
    diary_lines_open(&t->lines, t->out, JOURNAL_BYTES, false);
    return CMD_OK;
}

static int open_out(struct cmd_train *t)
{
    int code = t->out != NULL ? cmd_out_open(&t->dir) : CMD_OK;
    if (t->out != NULL && code == CMD_OK && !t->dir.finished)
        code = open_files(t);
    return code;
}

/* ---- Training and evaluating ---- */

/* Returns the number of rounds after which the present epoch is complete, but at most the number of
 * rounds of the run. */
static uint64_t end_of_epoch(const struct cmd_train *t)
{
    uint64_t each = cmd_train_round_samples(t);
    uint64_t rounds = ((t->epoch + 1) * t->samples + each - 1) / each;
    return rounds < t->run.rounds ? rounds : t->run.rounds;
}

static void add(struct cmd_train_sums *s, const struct trainer_report *r, uint32_t n_steps,
                double spent)
{
    s->loss += r->loss * (double)r->n_samples;
    s->accuracy += r->accuracy * (double)r->n_samples;
    s->rows += r->n_samples;
    s->seconds += spent;
    s->steps += n_steps;
}

/* Reports that training diverged and has returned to an earlier model. If training has diverged
 * before, the run ends as diverged. */
static void report_rollback(struct cmd_train *t)
{
    char text[ROLLBACK_TEXT];
    cmd_train_end_line(t);
    rollback_say(&t->rollback, text);
    fprintf(stderr, "%s\n", text);
    if (t->rollback.n > 1)
        rollback_why(&t->rollback, t->diverged);
}

/* Performs the local steps of one round, and then the step of the outer optimiser, if there is
 * one. */
static void train_round(struct cmd_train *t)
{
    struct trainer_report r;
    uint64_t begin = uv_hrtime();
    uint32_t n_steps = run_steps(&t->run);
    bool outer = t->outer.u != NULL;
    rollback_mark(&t->rollback, t->x, t->round);
    if (outer)
        memcpy(t->before, t->x, t->outer.n * sizeof *t->x);
    t->trainer.steps(t->trainer.self, t->x, t->round, n_steps, &r);
    if (outer)
        outer_optimiser_step(&t->outer, t->x, t->before, t->round);
    bool ran_away = rollback_look(&t->rollback, t->x, &r);
    if (ran_away && outer)
        outer_optimiser_reset(&t->outer);
    double spent = (double)(uv_hrtime() - begin) * 1e-9;
    add(&t->since, &r, n_steps, spent);
    add(&t->all, &r, n_steps, spent);
    if (ran_away)
        report_rollback(t);
    else
        divergence_loss(&t->verdict, t->round, r.loss, r.n_samples, t->trainer.guess);
    t->round++;
}

/* Evaluates the model. At the end of the run all held-out samples are used. Before the end the
 * number of samples is limited, so that an evaluation is short compared with training. */
static void evaluate(struct cmd_train *t)
{
    uint64_t trained = (t->round - t->tested_at) * cmd_train_round_samples(t);
    uint64_t most = (trained + 1) / 2 > TEST_LEAST ? (trained + 1) / 2 : TEST_LEAST;
    if (t->planned)
        most = t->plan.samples;
    if (t->round == t->run.rounds)
        most = 0;
    t->trainer.evaluate(t->trainer.self, t->x, most, &t->tested);
    t->tested_at = t->round;
    t->fresh = true;
}

/* Returns true if evaluations happen only at the ends of epochs. A run with at least as many epochs
 * as planned evaluations evaluates only there. A shorter run also evaluates within epochs. */
static bool by_epochs(const struct cmd_train *t)
{
    return t->run.rounds * cmd_train_round_samples(t) >= t->plan.parts * t->samples;
}

/* Returns true if it is time to evaluate the model: at the end of the run, and before the end as
 * --evaluate-every or the schedule t->plan says. */
static bool is_due(const struct cmd_train *t)
{
    uint64_t every = options_uint(t->o, "evaluate-every");
    if (t->round == t->run.rounds)
        return true;
    if (!t->planned)
        return every > 0 && t->epoch >= t->next_test;
    return evaluation_passed(&t->plan, t->run.rounds, t->tested_at, t->round);
}

static void end_epoch(struct cmd_train *t)
{
    /* A round may have more samples than the training set, so several epochs may end in it. */
    t->epoch = t->round * cmd_train_round_samples(t) / t->samples;
    if (is_due(t)) {
        evaluate(t);
        t->next_test = t->epoch + options_uint(t->o, "evaluate-every");
    }
    cmd_train_write_line(t);
}

static void end_round(struct cmd_train *t)
{
    if (t->round >= end_of_epoch(t)) {
        end_epoch(t);
    } else if (t->planned && !by_epochs(t) && is_due(t)) {
        evaluate(t);
        cmd_train_write_line(t);
    } else {
        cmd_train_show(t, false);
    }
}

static int train(struct cmd_train *t)
{
    t->begin_ns = uv_hrtime();
    cmd_progress_open(&t->progress, stderr);
    while (t->round < t->run.rounds && !cmd_stop_asked() && t->diverged[0] == '\0') {
        train_round(t);
        end_round(t);
        if (t->diverged[0] == '\0')
            cmd_train_checkpoint_round(t);
    }
    /* If training has ended because of divergence, evaluate the earlier model to which it was
     * rolled back. */
    if (t->diverged[0] != '\0') {
        t->trainer.evaluate(t->trainer.self, t->x, 0, &t->tested);
        t->tested_at = t->rollback.round;
    }
    return CMD_OK;
}

/* ---- Steps after training ---- */

/* Ends an interrupted run: writes a checkpoint and the present model, but no result. Returns
 * CMD_INTERRUPTED, or another exit code if a step failed. */
static int interrupted(struct cmd_train *t)
{
    cmd_train_checkpoint_stop(t);
    int code = cmd_train_write_model(t);
    if (code != CMD_OK)
        return code;
    cmd_train_end_line(t);
    code = cmd_train_interrupted(t);
    return code != CMD_OK ? code : CMD_INTERRUPTED;
}

/* Judges a finished run. For a run that diverged the exit code is CMD_APART (3), but the files and
 * the result are still written. A run that learnt nothing only gets a warning, because it may just
 * have been too short. */
static int judge(struct cmd_train *t)
{
    if (t->diverged[0] == '\0' && !divergence_ran_away(&t->verdict, t->diverged)) {
        if (divergence_learnt_nothing(&t->verdict, t->trainer.guess, &t->tested, t->unlearnt))
            fprintf(stderr,
                    "hearsay train: warning: the model is no better than guessing: %s. Try another "
                    "--lr\n",
                    t->unlearnt);
        return CMD_OK;
    }
    return cmd_fail(t->o, CMD_APART, "the run diverged: %s. A lower --lr may help", t->diverged);
}

static int run_all(struct cmd_train *t)
{
    static int (*const steps[])(struct cmd_train *) = {fix_run, look, make_trainer, open_out,
                                                       train};
    bool checks = options_flag(t->o, "check");
    /* The option --check runs only the first three steps: fix_run(), look() and make_trainer(). */
    size_t n_steps = checks ? 3 : sizeof steps / sizeof *steps;
    int64_t us;
    int code = CMD_OK;
    for (size_t i = 0; i < n_steps && code == CMD_OK && !t->dir.finished; i++)
        code = steps[i](t);
    if (code == CMD_OK && checks) {
        code = cmd_duration(t->o, "checkpoint", &us);
        return code == CMD_OK ? cmd_out_print_check(t->o, t->dir.finished) : code;
    }
    if (code == CMD_OK && t->dir.finished)
        return cmd_out_print_finished(&t->dir);
    if (code == CMD_OK && t->round < t->run.rounds && t->diverged[0] == '\0')
        return interrupted(t);
    if (code == CMD_OK)
        code = cmd_train_write_model(t);
    if (code != CMD_OK)
        return code;
    code = judge(t);
    if (code == CMD_OK)
        code = cmd_train_flush_metrics(t);
    disk_reservation_release(&t->last);
    int told = cmd_train_result(t, code);
    t->over = told == CMD_OK;
    return code == CMD_OK ? told : code;
}

int cmd_train(const struct options *o)
{
    only.o = o;
    cmd_stop_catch();
    signal(SIGPIPE, SIG_IGN);
    int code = run_all(&only);
    diary_lines_close(&only.lines);
    cmd_train_checkpoint_close(&only, only.over);
    cmd_out_close(&only.dir);
    free(only.x);
    free(only.before);
    outer_optimiser_close(&only.outer);
    rollback_close(&only.rollback);
    cmd_training_close(&only.training);
    return code;
}
