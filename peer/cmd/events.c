/* peer/cmd/events.c -- figures of a running peer on their way to TensorBoard. */
#include "peer/cmd/events.h"

#include "gossip/exchange/ladder.h"
#include "peer/cmd/local_past.h"
#include "peer/secure/hash.h"
#include "peer/store/outdir.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

enum {
    AGAIN_S = 10, /* A file that could not be made is tried again so often. */
    RUN_HEX = 16  /* Characters of a run's number, as in --metrics and `hearsay probe`. */
};

int cmd_events_check(const struct options *o)
{
    const char *dir = options_text(o, "tensorboard");
    if (dir == NULL)
        return CMD_OK;
    int err = outdir_make(dir);
    if (err == 0 && access(dir, W_OK | X_OK) < 0)
        err = -errno;
    return err < 0 ? cmd_fail(o, cmd_exit_of(err), "--tensorboard: cannot write to %.400s: %s", dir,
                              strerror(-err))
                   : CMD_OK;
}

int cmd_events_open(struct cmd_events *e, const struct options *o, const char *name,
                    const char *out)
{
    struct cmd_local_past past = {0};
    *e = (struct cmd_events){
        .dir = options_text(o, "tensorboard"), .name = name, .told = -1, .log = {.fd = -1}};
    int code = cmd_events_check(o);
    if (code != CMD_OK || e->dir == NULL || out == NULL)
        return code;
    cmd_local_past_add(&past, out, false);
    e->sent = (double)past.sent;
    e->received = (double)past.received;
    return CMD_OK;
}

static double wall_s(void)
{
    uv_timeval64_t now;
    return uv_gettimeofday(&now) == 0 ? (double)now.tv_sec + (double)now.tv_usec * 1e-6 : 0.0;
}

/* ---- The file. ---- */

static bool fail(struct cmd_events *e, int err)
{
    bool first = !e->failed;
    e->failed = true;
    e->level = NOTE_WARNING;
    if (first)
        snprintf(e->news, sizeof e->news,
                 "cannot write %s: %s; training goes on, and TensorBoard has a gap until it can",
                 e->log.path, strerror(-err));
    return first;
}

static void number_of(const char *run_text, char run[RUN_HEX + 1])
{
    uint8_t hash[HASH_BYTES];
    hash_128(run_text, strlen(run_text), hash);
    for (size_t i = 0; i < RUN_HEX / 2; i++)
        snprintf(run + 2 * i, 3, "%02x", hash[i]);
}

/* Makes a file where there is none, from time to time. A second one of a start goes on with the first. True: there is news. */
static bool open_file(struct cmd_events *e, const char *run_text, uint64_t from, uint64_t step)
{
    char run[RUN_HEX + 1];
    uint64_t now = uv_hrtime();
    if (e->log.fd >= 0 || now < e->try_ns)
        return false;
    e->try_ns = now + AGAIN_S * UINT64_C(1000000000);
    number_of(run_text, run);
    const struct logdir_start s = {.dir = e->dir,
                                   .name = e->name,
                                   .run = run,
                                   .goes_on = from > 0 || e->open,
                                   .step = e->open ? (int64_t)step : (int64_t)from + 1,
                                   .wall_s = wall_s(),
                                   .pid = (long)getpid()};
    int err = logdir_open(&e->log, &s);
    if (err < 0)
        return fail(e, err);
    bool first = !e->open;
    e->open = true;
    e->level = NOTE_INFO;
    snprintf(e->news, sizeof e->news, "TensorBoard's file is %s", e->log.path);
    return first;
}

static bool put(struct cmd_events *e, const uint8_t *record, size_t n)
{
    int err = e->log.fd >= 0 ? logdir_put(&e->log, record, n) : 0;
    return err < 0 && fail(e, err);
}

/* ---- Figures. ---- */

/* The codec of the last deltas as a number: 1 is the ladder's sparsest. */
static double rung_number(const char *rung)
{
    for (int i = 0; i < LADDER_RUNGS && rung != NULL; i++)
        if (strcmp(rung, ladder_spec[i]) == 0)
            return i + 1;
    return (double)NAN;
}

bool cmd_events_put(struct cmd_events *e, const double figure[EVENT_FIGURES], uint64_t step,
                    const char *run_text, uint64_t from)
{
    uint8_t record[EVENT_RECORD_MAX];
    if (e->dir == NULL)
        return false;
    bool news = open_file(e, run_text, from, step);
    return put(e, record, event_round(record, wall_s(), (int64_t)step, figure)) || news;
}

/* A drift stands at the round that it speaks of, once; one of before this start is in a file of then. */
static bool put_drift(struct cmd_events *e, const struct node_progress *g, uint64_t from)
{
    uint8_t record[EVENT_RECORD_MAX];
    int64_t step = (int64_t)g->drift_round;
    if (!isfinite(g->drift) || step <= e->told || (from > 0 && step <= (int64_t)from))
        return false;
    e->told = step;
    return put(e, record, event_drift(record, wall_s(), step, g->drift, g->relative_drift));
}

bool cmd_events_round(struct cmd_events *e, const struct node_progress *g, const char *run_text,
                      uint64_t from)
{
    double time_s = (double)uv_hrtime() * 1e-9;
    const double figure[EVENT_FIGURES] = {
        [EVENT_LOSS] = g->loss,
        [EVENT_ACCURACY] = g->evaluated ? g->accuracy : (double)NAN,
        [EVENT_TEST_LOSS] = g->evaluated ? g->test_loss : (double)NAN,
        [EVENT_BYTES_SENT] = e->sent + (double)g->bytes_sent,
        [EVENT_BYTES_RECEIVED] = e->received + (double)g->bytes_received,
        [EVENT_COMPUTE_S] = g->compute_s,
        [EVENT_WAIT_S] = g->wait_s,
        [EVENT_MIX_S] = g->mix_s,
        [EVENT_ROUNDS_SKIPPED] = (double)g->rounds_skipped,
        [EVENT_GAMMA] = g->gamma,
        [EVENT_RUNG] = rung_number(g->rung),
        [EVENT_DRIFT_EXCESS] = g->excess,
    };
    if (e->dir == NULL || !uv_metrics_due(&e->pace, g, time_s))
        return false;
    bool news = cmd_events_put(e, figure, g->round + g->settle_rounds, run_text, from);
    return put_drift(e, g, from) || news;
}

bool cmd_events_end(struct cmd_events *e, const double figure[EVENT_ENDS], uint64_t step,
                    const char *run_text)
{
    uint8_t record[EVENT_RECORD_MAX];
    if (e->dir == NULL)
        return false;
    bool news = open_file(e, run_text, 0, step);
    return put(e, record, event_end_of_run(record, wall_s(), (int64_t)step, figure)) || news;
}

void cmd_events_close(struct cmd_events *e)
{
    logdir_close(&e->log);
}
