/* peer/cmd/drift.c -- `hearsay drift`: how far the peers' models are apart.
 *
 *   Xi = sqrt((1/n) sum_i |x_i - mean|^2), and relative to |mean|
 *
 * Each peer's own estimate (from sketches averaged by gossip); with --exact
 * every peer sends its model at one common round, and Xi is computed from
 * those:
 *
 *   --json: {"peers": [{"name", "round" (of the estimate), "drift", "relative_drift"}],
 *            "drift", "relative_drift": means of the peers' estimates; with
 *            --exact of those that are of the very state that was compared,
 *            "exact": {"drift", "relative_drift", "statistics_drift",
 *                      "statistics_relative_drift", "models", "round_min",
 *                      "round_max"} or null, "ratio": estimated / exact}
 *
 * With --exact the models are those of the moment a drift window begins, and
 * the peers are asked until their estimates are of that very moment: both
 * figures speak of one state. Where peers stand at different rounds (an
 * asynchronous run) they are only near each other. No estimate is of a round
 * that --round names, but by chance, nor of a model of the last phase: then
 * mean and ratio are null. So are all figures of a single model.
 *
 * A peer keeps no models: of a past round it sends the one that it has. Where
 * not all that was compared is of the round that --round names, the exit code
 * is 1 and stderr says what was compared.
 */
#include "peer/cmd/observe.h"
#include "peer/cmd/progress.h"
#include "peer/cmd/training.h"
#include "peer/node/consensus.h"
#include "peer/node/node.h"
#include "peer/sgd/sgd_keys.h"
#include "peer/uv/metrics.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { TRIES = 10, POLL_MS = 5 }; /* A window of a small model may be over in 50 ms. */

/* clang-format off */
const struct option_row cmd_drift_rows[] = {
    CMD_ROW_BOOTSTRAP,
    CMD_ROW_KEY,
    {.name = "exact", .kind = OPTION_FLAG, .help = "have every peer send its model, and compare them"},
    {.name = "round", .kind = OPTION_UINT, .arg = "N", .min = 0, .max = 1e9,
     .help = "with --exact: the round to compare at; default: the next that the peers estimate themselves"},
    {.name = "timeout", .kind = OPTION_UINT, .arg = "SECONDS", .fallback = "60", .min = 1, .max = 86400,
     .help = "with --exact: how long to wait for the models"},
    CMD_ROW_JSON,
    {.name = NULL},
};
/* clang-format on */

struct drift
{
    const struct options *o;
    struct cmd_observe w;
    double xi, relative; /* These are means of the peers' estimates. */
    uint32_t n_estimates;
    struct consensus exact; /* With n == 0 nothing was compared. */
    uint64_t round_min, round_max;
    const struct cmd_observed *with[WIRE_MEMBERS_MAX]; /* They sent the models that are compared. */
};

static const float *model_of(void *self, size_t i)
{
    return ((struct drift *)self)->with[i]->model;
}

/* In lock step all peers begin a drift window at the same round; a peer that
 * trains no more sends what it has. */
static uint64_t common_round(const struct drift *d)
{
    if (options_given(d->o, "round"))
        return options_uint(d->o, "round");
    return WIRE_ROUND_WINDOW;
}

/* Gets the models and notes the rounds that they are of. False where not all came. */
static bool get_models(struct drift *d)
{
    uint32_t ms = (uint32_t)options_uint(d->o, "timeout") * 1000;
    bool all = cmd_observe_models(&d->w, common_round(d), ms);
    d->round_min = UINT64_MAX;
    d->round_max = 0;
    for (uint32_t i = 0; i < d->w.n; i++) {
        const struct cmd_observed *m = &d->w.member[i];
        if (m->model == NULL)
            continue;
        d->round_min = m->model_round < d->round_min ? m->model_round : d->round_min;
        d->round_max = m->model_round > d->round_max ? m->model_round : d->round_max;
    }
    return all;
}

/* A model on its way is floats alone: the run, of which peers tell in the
 * handshake, says how many of them are trained. */
static int count_trained(const struct drift *d, size_t dim, size_t *n_trained)
{
    char error[RUN_ERROR_MAX];
    struct model m;
    if (!d->w.has_run)
        return cmd_fail(d->o, CMD_FAILED, "no peer told of the run that its model is of");
    if (cmd_training_model(&m, &d->w.run, error) < 0)
        return cmd_fail(d->o, CMD_FAILED, "the peers' run: %s", error);
    size_t expected = m.n_params;
    *n_trained = segments_trained(m.segments, m.n_segments);
    model_close(&m);
    if (dim != expected)
        return cmd_fail(d->o, CMD_FAILED,
                        "the peers sent models of %zu parameters, but %s of their run has %zu", dim,
                        sgd_values(&d->w.run)->model, expected);
    return CMD_OK;
}

/* Has the peers send their models, of one round if that can be, and measures them. */
static int compare(struct drift *d)
{
    size_t n = 0, dim = 0, n_trained;
    bool all = get_models(d);
    /* A window may have begun while the question was on its way to some. */
    for (int k = 0; k < TRIES && all && d->round_min != d->round_max; k++)
        all = get_models(d);
    if (!all)
        fprintf(stderr, "hearsay drift: warning: not every peer sent its model in time\n");
    for (uint32_t i = 0; i < d->w.n; i++) {
        const struct cmd_observed *m = &d->w.member[i];
        if (m->model == NULL)
            continue;
        if (n > 0 && m->n_floats != dim)
            return cmd_fail(d->o, CMD_FAILED,
                            "%s sent a model of %zu parameters, the others of %zu", m->record.name,
                            m->n_floats, dim);
        dim = m->n_floats;
        d->with[n++] = m;
    }
    if (n == 0)
        return cmd_fail(d->o, CMD_FAILED, "no peer sent its model");
    if (d->round_min != d->round_max)
        fprintf(stderr,
                "hearsay drift: warning: the models are of different rounds, %llu to %llu\n",
                (unsigned long long)d->round_min, (unsigned long long)d->round_max);
    int code = count_trained(d, dim, &n_trained);
    if (code != CMD_OK)
        return code;
    if (consensus_measure(&d->exact, n, n_trained, dim, model_of, d) < 0)
        return cmd_fail(d->o, CMD_FAILED, "out of memory for the models");
    if (n == 1) { /* One model alone is no distance from anything. */
        fprintf(stderr, "hearsay drift: warning: a single model has no drift\n");
        d->exact.trained.xi = d->exact.trained.relative = (double)NAN;
        d->exact.statistics.xi = d->exact.statistics.relative = (double)NAN;
    }
    return CMD_OK;
}

/* Is the peer's estimate of the model that it sent? The last phase goes on at
 * one round, so that this round names no state: an estimate "of" it is of an
 * earlier moment of the phase than the model is. */
static bool same_state(const struct cmd_observed *m)
{
    bool told = m->model_round < m->status.n_rounds;
    return m->model && told && m->status.drift_round == m->model_round;
}

/* Have all who train gone on to an estimate of a later state before they were asked? */
static bool missed(const struct drift *d)
{
    bool any = false, training = false;
    for (uint32_t i = 0; i < d->w.n; i++) {
        const struct cmd_observed *m = &d->w.member[i];
        any |= m->answered && same_state(m);
        training |= m->answered && m->status.phase == NODE_TRAINING;
    }
    return training && !any;
}

/* Asks until each peer has said what it makes of the round that was compared
 * (or of the next one that it measures), or trains no more. The first such answer
 * counts: a later one is of a later round. */
static void wait_for_estimates(struct drift *d)
{
    static struct wire_status first[WIRE_MEMBERS_MAX];
    bool has[WIRE_MEMBERS_MAX] = {false}, early = true;
    uint32_t tries = (uint32_t)options_uint(d->o, "timeout") * 1000 / POLL_MS;
    for (uint32_t k = 0; k < tries && early; k++) {
        struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
        cmd_observe_again(&d->w);
        early = false;
        for (uint32_t i = 0; i < d->w.n; i++) {
            const struct cmd_observed *m = &d->w.member[i];
            bool late = m->status.drift_round >= d->round_max || m->status.phase != NODE_TRAINING;
            if (m->answered && late && !has[i]) {
                has[i] = true;
                first[i] = m->status;
            }
            early |= m->answered && !has[i];
        }
        if (early)
            nanosleep(&pause, NULL);
    }
    for (uint32_t i = 0; i < d->w.n; i++)
        if (has[i])
            d->w.member[i].status = first[i];
}

/* With models at hand, only estimates of their very state are in the means. */
static void average(struct drift *d)
{
    for (uint32_t i = 0; i < d->w.n; i++) {
        const struct cmd_observed *m = &d->w.member[i];
        if (!m->answered || !isfinite(m->status.drift) || !isfinite(m->status.relative_drift))
            continue;
        if (d->exact.n > 0 && !same_state(m))
            continue;
        d->xi += m->status.drift;
        d->relative += m->status.relative_drift;
        d->n_estimates++;
    }
    d->xi /= d->n_estimates; /* This is NaN where nobody knows. */
    d->relative /= d->n_estimates;
}

static json_t *exact_object(const struct drift *d)
{
    const struct consensus *c = &d->exact;
    return json_pack("{s:o, s:o, s:o, s:o, s:I, s:I, s:I}", "drift",
                     uv_metrics_number(c->trained.xi), "relative_drift",
                     uv_metrics_number(c->trained.relative), "statistics_drift",
                     uv_metrics_number(c->statistics.xi), "statistics_relative_drift",
                     uv_metrics_number(c->statistics.relative), "models", (json_int_t)c->n,
                     "round_min", (json_int_t)d->round_min, "round_max", (json_int_t)d->round_max);
}

static void print_json(const struct drift *d)
{
    json_t *peers = json_array(), *exact = json_null();
    for (uint32_t i = 0; i < d->w.n; i++) {
        const struct cmd_observed *m = &d->w.member[i];
        if (m->answered)
            json_array_append_new(peers,
                                  json_pack("{s:s, s:I, s:o, s:o}", "name", m->record.name, "round",
                                            (json_int_t)m->status.drift_round, "drift",
                                            uv_metrics_number(m->status.drift), "relative_drift",
                                            uv_metrics_number(m->status.relative_drift)));
    }
    if (d->exact.n > 0)
        exact = exact_object(d);
    double ratio = d->xi / d->exact.trained.xi;
    json_t *j =
        json_pack("{s:o, s:o, s:o, s:o, s:o}", "peers", peers, "drift", uv_metrics_number(d->xi),
                  "relative_drift", uv_metrics_number(d->relative), "exact", exact, "ratio",
                  uv_metrics_number(ratio));
    json_dumpf(j, stdout, JSON_COMPACT | JSON_REAL_PRECISION(12));
    putchar('\n');
    json_decref(j);
}

static void print_text(const struct drift *d)
{
    const struct consensus_part *trained = &d->exact.trained, *statistics = &d->exact.statistics;
    char a[CMD_PROGRESS_TEXT], b[CMD_PROGRESS_TEXT];
    for (uint32_t i = 0; i < d->w.n; i++) {
        const struct cmd_observed *m = &d->w.member[i];
        if (m->answered)
            printf("%-16s of round %-8llu drift %-10s relative %s\n", m->record.name,
                   (unsigned long long)m->status.drift_round,
                   cmd_progress_drift(a, "%.4e", m->status.drift),
                   cmd_progress_drift(b, "%.4e", m->status.relative_drift));
    }
    printf("%-16s %-17s drift %-10s relative %s\n", "estimated", "",
           cmd_progress_drift(a, "%.4e", d->xi), cmd_progress_drift(b, "%.4e", d->relative));
    if (d->exact.n == 0)
        return;
    printf("%-16s of round %-8llu drift %-10s relative %s   (%zu models)\n", "exact",
           (unsigned long long)d->round_max, cmd_progress_drift(a, "%.4e", trained->xi),
           cmd_progress_drift(b, "%.4e", trained->relative), d->exact.n);
    if (statistics->dim > 0)
        printf("%-16s %-17s drift %-10s relative %s   (running means and variances, apart from the "
               "drift)\n",
               "statistics", "", cmd_progress_drift(a, "%.4e", statistics->xi),
               cmd_progress_drift(b, "%.4e", statistics->relative));
    printf("%-16s %s\n", "ratio", cmd_progress_drift(a, "%.3f", d->xi / trained->xi));
}

/* Were the models those of the round that --round names? What was compared
 * instead is an answer to another question, and no success. */
static int check_round(const struct drift *d)
{
    unsigned long long asked = options_uint(d->o, "round"), min = d->round_min, max = d->round_max;
    if (!options_given(d->o, "round") || (min == asked && max == asked))
        return CMD_OK;
    if (min > asked)
        return cmd_fail(d->o, CMD_FAILED, "round %llu is past: round %llu was compared instead",
                        asked, max);
    if (max < asked)
        return cmd_fail(d->o, CMD_FAILED,
                        "round %llu does not come: training ended, round %llu was compared instead",
                        asked, max);
    return cmd_fail(d->o, CMD_FAILED,
                    "not all models are of round %llu: rounds %llu to %llu were compared", asked,
                    min, max);
}

/* Compares the models and gets the estimates of the same moment. Where a window
 * was over too soon to be seen, another one is tried. */
static int compare_with_estimates(struct drift *d)
{
    int code = CMD_OK;
    for (int k = 0; k < TRIES && code == CMD_OK && (k == 0 || missed(d)); k++) {
        code = compare(d);
        if (code == CMD_OK)
            wait_for_estimates(d);
        if (options_given(d->o, "round"))
            break;
    }
    return code;
}

int cmd_drift(const struct options *o)
{
    static struct drift d;
    d.o = o;
    d.exact = consensus_none;
    if (options_given(o, "round") && !options_flag(o, "exact"))
        return cmd_fail(
            o, CMD_USAGE,
            "--round: found without --exact, expected with it: it is the round to send models of");
    int code = cmd_observe(&d.w, o);
    if (code == CMD_OK && options_flag(o, "exact"))
        code = compare_with_estimates(&d);
    if (code == CMD_OK) {
        average(&d);
        if (options_flag(o, "json"))
            print_json(&d);
        else
            print_text(&d);
        if (d.exact.n > 0)
            code = check_round(&d);
    }
    cmd_observe_close(&d.w);
    int flushed = cmd_finish(o);
    return code != CMD_OK ? code : flushed;
}
