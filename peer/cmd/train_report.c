/* peer/cmd/train_report.c -- the lines and the result of `hearsay train`. */
#include "peer/cmd/train.h"
#include "peer/sgd/sgd_keys.h"
#include "peer/uv/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>

enum { DRAW_MS = 100, EVENTS_MS = 1000 };

static const double bit = 0.69314718055994530942; /* ln 2: a bit in nats. */

/* ---- Figures ---------------------------------------------------------- */

static double mean_loss(const struct cmd_train_sums *s)
{
    return s->rows > 0 ? s->loss / (double)s->rows : (double)NAN;
}

static double mean_accuracy(const struct cmd_train_sums *s)
{
    return s->rows > 0 ? s->accuracy / (double)s->rows : (double)NAN;
}

/* How many passes over the data so many rounds are. */
static double epochs(const struct cmd_train *t, uint64_t rounds)
{
    return (double)(rounds * sgd_values(&t->run)->batch) / (double)t->samples;
}

/* What was asked for, of which whole rounds make a little more. */
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
    return (double)s->steps * sgd_values(&t->run)->batch / s->seconds;
}

static double seconds(const struct cmd_train *t)
{
    return (double)(uv_hrtime() - t->begin_ns) * 1e-9;
}

/* Without an evaluation there is no figure of the held-out set. */
static double held_out(const struct cmd_train *t, double figure)
{
    return t->tested.n_samples > 0 ? figure : (double)NAN;
}

/* The most memory that the process has held, in bytes; Linux counts it in KiB. */
static uint64_t peak_rss(void)
{
    struct rusage use;
    return getrusage(RUSAGE_SELF, &use) == 0 ? (uint64_t)use.ru_maxrss * 1024 : 0;
}

/* ---- Lines ------------------------------------------------------------ */

static void put_loss(const char *name, double loss, bool is_text)
{
    char number[CMD_PROGRESS_TEXT];
    fprintf(stderr, "  %s %s", name, cmd_progress_number(number, "%.4f", loss));
    if (is_text)
        fprintf(stderr, " (%s bits)", cmd_progress_number(number, "%.3f", loss / bit));
}

/* An epoch that ended is written as "3", one under way as "2.35". */
static int digits(double epoch)
{
    return fabs(epoch - round(epoch)) < 0.005 || epoch >= 100 ? 0 : 2;
}

/* Such a line reads "epoch 3/10  round 564/1880  loss 0.1234  accuracy 96.12 %". */
static void put_line(const struct cmd_train *t, double epoch)
{
    char percent[CMD_PROGRESS_TEXT];
    double last = wanted_epochs(t);
    epoch = fmin(epoch, last);
    fprintf(stderr, "epoch %.*f/%.*f  round %" PRIu64 "/%" PRIu64, digits(epoch), epoch,
            digits(last), last, t->round, t->run.rounds);
    put_loss("loss", mean_loss(&t->since), t->is_text);
    fprintf(stderr, "  accuracy %s", cmd_progress_percent(percent, mean_accuracy(&t->since)));
}

void cmd_train_draw(struct cmd_train *t)
{
    char number[CMD_PROGRESS_TEXT];
    uint64_t now = uv_hrtime();
    if (now - t->drawn_ns < DRAW_MS * UINT64_C(1000000) || !isatty(STDERR_FILENO))
        return;
    t->drawn_ns = now;
    t->drawn = true;
    fputs("\r\033[K", stderr);
    put_line(t, epochs(t, t->round));
    fprintf(stderr, "  %s ms/step", cmd_progress_number(number, "%.3f", ms_per_step(&t->since)));
    fflush(stderr);
}

void cmd_train_break(struct cmd_train *t)
{
    if (t->drawn)
        fputc('\n', stderr);
    t->drawn = false;
}

/* The object of a line: means over `s`, and null for what was not evaluated. */
static json_t *line_object(const struct cmd_train *t, const struct cmd_train_sums *s)
{
    double loss = mean_loss(s), test_loss = held_out(t, t->tested.loss);
    json_t *j =
        json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o}", "round",
                  (json_int_t)t->round, "epoch", uv_metrics_number(epochs(t, t->round)), "lr",
                  uv_metrics_number(schedule_lr(&t->schedule, t->round > 0 ? t->round - 1 : 0)),
                  "loss", uv_metrics_number(loss), "accuracy", uv_metrics_number(mean_accuracy(s)),
                  "test_loss", uv_metrics_number(test_loss), "test_accuracy",
                  uv_metrics_number(held_out(t, t->tested.accuracy)), "test_samples",
                  (json_int_t)t->tested.n_samples, "seconds", uv_metrics_number(seconds(t)),
                  "samples_per_s", uv_metrics_number(samples_per_s(t, s)));
    if (t->is_text) {
        json_object_set_new(j, "bits_per_character", uv_metrics_number(loss / bit));
        json_object_set_new(j, "test_bits_per_character", uv_metrics_number(test_loss / bit));
    }
    return j;
}

void cmd_train_tell(struct cmd_train *t, bool news)
{
    if (!news)
        return;
    cmd_train_break(t);
    cmd_fail(t->o, CMD_OK, "%s%s", t->lines.level == NOTE_WARNING ? "warning: " : "",
             t->lines.news);
}

/* The line of this start comes before its first. */
static void write_line(struct cmd_train *t)
{
    uv_timeval64_t now;
    json_t *j = line_object(t, &t->since);
    if (!t->lines.started)
        cmd_lines_start(&t->lines, uv_metrics_start(uv_gettimeofday(&now) == 0 ? now.tv_sec : -1,
                                                    t->from_round));
    cmd_train_tell(t, cmd_lines_put(&t->lines, j ? json_dumps(j, JSON_REAL_PRECISION(9)) : NULL));
    json_decref(j);
}

void cmd_train_say(struct cmd_train *t)
{
    char number[CMD_PROGRESS_TEXT];
    double epoch = t->round < t->run.rounds ? (double)t->epoch : epochs(t, t->round);
    if (t->drawn)
        fputs("\r\033[K", stderr);
    t->drawn = false;
    put_line(t, epoch);
    if (t->tested.n_samples > 0) {
        put_loss("held out", t->tested.loss, t->is_text);
        fprintf(stderr, ", %s", cmd_progress_percent(number, t->tested.accuracy));
    }
    fprintf(stderr, "  %s ms/step\n", cmd_progress_number(number, "%.3f", ms_per_step(&t->since)));
    if (t->out != NULL)
        write_line(t);
}

/* ---- TensorBoard ------------------------------------------------------ */

void cmd_train_events(struct cmd_train *t, bool epoch_ends)
{
    double figure[EVENT_FIGURES];
    char text[WIRE_RUN_MAX + 1];
    uint64_t now = uv_hrtime();
    if (t->events.dir == NULL || (!epoch_ends && now - t->shown_ns < EVENTS_MS * UINT64_C(1000000)))
        return;
    for (size_t i = 0; i < EVENT_FIGURES; i++)
        figure[i] = (double)NAN;
    figure[EVENT_LOSS] = mean_loss(&t->shown);
    if (t->shown.rows > 0)
        figure[EVENT_COMPUTE_S] = t->all.seconds;
    if (epoch_ends) {
        figure[EVENT_ACCURACY] = held_out(t, t->tested.accuracy);
        figure[EVENT_TEST_LOSS] = held_out(t, t->tested.loss);
    }
    t->shown = (struct cmd_train_sums){0};
    t->shown_ns = now;
    run_text(&t->run, text);
    if (cmd_events_put(&t->events, figure, t->round, text, t->from_round)) {
        cmd_train_break(t);
        cmd_fail(t->o, CMD_OK, "%s%s",
                 t->events.level == NOTE_INFO ? "" : "warning: ", t->events.news);
    }
}

/* ---- The result ------------------------------------------------------- */

/* The closing object, but for `out`: NULL without memory. */
static json_t *closing_object(const struct cmd_train *t, bool interrupted)
{
    char text[WIRE_RUN_MAX + 1];
    run_text(&t->run, text);
    json_t *j = line_object(t, &t->since);
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
    json_t *out = t->out != NULL ? json_string(t->out) : json_null();
    bool ok = json_object_set_new(j, "out", out) == 0
              && json_dumpf(j, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) == 0;
    putchar('\n');
    return ok ? CMD_OK
              : cmd_fail(t->o, CMD_FAILED, "cannot write JSON (a path that is not UTF-8?)");
}

static void print_text(const struct cmd_train *t)
{
    char percent[CMD_PROGRESS_TEXT], number[CMD_PROGRESS_TEXT];
    const struct trainer_report *r = &t->tested;
    printf("accuracy  %s\nloss      %s\n", cmd_progress_percent(percent, r->accuracy),
           cmd_progress_number(number, "%.6f", r->loss));
    if (t->is_text)
        printf("bits      %s a character\n", cmd_progress_number(number, "%.4f", r->loss / bit));
    printf("%s %" PRIu64 " of %s, held out\n", t->is_text ? "bytes    " : "samples  ", r->n_samples,
           kind_brief(sgd_values(&t->run)->data).text);
    printf("trained   %" PRIu64
           " rounds, %.*f epochs, %.1f s: %.3f ms a step, %.0f samples a second\n",
           t->round, digits(epochs(t, t->round)), epochs(t, t->round), t->all.seconds,
           ms_per_step(&t->all), samples_per_s(t, &t->all));
    printf("memory    %s at its peak\n", cmd_progress_bytes(number, peak_rss()));
    printf("model     %s, %zu parameters%s%s%s\n", sgd_values(&t->run)->model, t->trainer.n_params,
           t->out ? ", in " : "", t->out ? t->out : "", t->out ? "/model.safetensors" : "");
}

int cmd_train_result(struct cmd_train *t, int exit_code)
{
    json_t *j = closing_object(t, false);
    if (j == NULL)
        return cmd_fail(t->o, CMD_FAILED, "out of memory for the result");
    int code = cmd_out_end(t->o, t->out, j, true, exit_code), told = CMD_OK;
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
    char how[CMD_PROGRESS_TEXT * 2] = "begins again, as there is no checkpoint";
    if (t->keep.kept > 0)
        snprintf(how, sizeof how, "goes on from round %" PRIu64, t->keep.kept);
    cmd_fail(t->o, CMD_OK, "interrupted at round %" PRIu64 " of %" PRIu64 "%s%s%s%s", t->round,
             t->run.rounds, t->out ? ", the model so far is in " : "", t->out ? t->out : "",
             t->out ? "; the same command " : "", t->out ? how : "");
    if (!options_flag(t->o, "json"))
        return CMD_OK;
    json_t *j = closing_object(t, true);
    if (j == NULL)
        return cmd_fail(t->o, CMD_FAILED, "out of memory for the result");
    int code = cmd_out_end(t->o, NULL, j, false, CMD_INTERRUPTED), told = print_json(t, j);
    json_decref(j);
    int flushed = cmd_finish(t->o);
    return code != CMD_OK ? code : told != CMD_OK ? told : flushed;
}
