/* peer/cmd/drift.c -- `hearsay drift`: how far the peers' models are apart.
 *
 *   Xi = sqrt((1/n) sum_i |x_i - mean|^2), and relative to |mean|
 *
 * Each peer's own estimate (from sketches, with no server); with --exact
 * every peer sends its model at one common round, and Xi is computed from
 * those:
 *
 *   --json: {"peers": [{"name", "round" (of the estimate), "age" (rounds done since),
 *                       "drift", "relative_drift"}],
 *            "round", "drift", "relative_drift": means of the estimates of the
 *            newest round that there is one of; with --exact of those that are
 *            of the very state that was compared,
 *            "exact": {"drift", "relative_drift", "statistics_drift",
 *                      "statistics_relative_drift", "models", "round_min",
 *                      "round_max"} or null, "ratio": estimated / exact}
 *
 * With --exact the models are those of the moment a drift window begins, and
 * the peers are asked until their estimates are of that very moment: both
 * figures speak of one state. Where that does not give models of one round (without
 * lock step windows begin at another round at each peer) they are asked for a round
 * that is still to come. Models of several rounds are not compared: then `exact` is
 * null, stderr says which rounds came, and the exit code is 1. No estimate is of a round
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

enum { WINDOW_TRIES = 3, LEAD = 8 };
enum { TRIES = 10, POLL_MS = 5 }; /* A window of a small model may be over in 50 ms. */

/* clang-format off */
const struct option_row cmd_drift_rows[] = {
    CMD_ROW_BOOTSTRAP,
    CMD_ROW_KEY,
    CMD_ROW_OBSERVER,
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
    uint64_t estimated_round; /* They are all of this round. */
    struct consensus exact;   /* With n == 0 nothing was compared, */
    bool apart;               /* as the models were not of one round. */
    uint64_t round_min, round_max;
    const struct cmd_observed *with[WIRE_MEMBERS_MAX]; /* They sent the models that are compared. */
};

static const float *model_of(void *self, size_t i)
{
    return ((struct drift *)self)->with[i]->model;
}

/* In lock step all peers begin a drift window at the same round; a peer that
 * trains no more sends what it has. Where that failed some times: a round that nobody
 * has reached, farther ahead each time. */
static uint64_t common_round(const struct drift *d, int tries)
{
    uint64_t most = 0;
    if (options_given(d->o, "round"))
        return options_uint(d->o, "round");
    if (tries < WINDOW_TRIES)
        return WIRE_ROUND_WINDOW;
    for (uint32_t i = 0; i < d->w.n; i++)
        most = d->w.member[i].status.round > most ? d->w.member[i].status.round : most;
    return most + ((uint64_t)LEAD << (tries - WINDOW_TRIES));
}

/* Gets the models and notes the rounds that they are of. False where the time was up. */
static bool get_models(struct drift *d, int tries)
{
    uint32_t ms = (uint32_t)options_uint(d->o, "timeout") * 1000;
    if (tries >= WINDOW_TRIES)
        cmd_observe_again(&d->w, CMD_OBSERVE_MS);
    bool in_time = cmd_observe_models(&d->w, common_round(d, tries), ms);
    d->round_min = UINT64_MAX;
    d->round_max = 0;
    for (uint32_t i = 0; i < d->w.n; i++) {
        const struct cmd_observed *m = &d->w.member[i];
        if (m->model == NULL)
            continue;
        d->round_min = m->model_round < d->round_min ? m->model_round : d->round_min;
        d->round_max = m->model_round > d->round_max ? m->model_round : d->round_max;
    }
    return in_time;
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
    bool in_time = get_models(d, 0);
    d->exact = consensus_none;
    /* A window may have begun while the question was on its way to some. */
    for (int k = 1; k < TRIES && in_time && d->round_min != d->round_max; k++)
        in_time = get_models(d, k);
    if (cmd_observe_missing(&d->w) > 0)
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
    d->apart = d->round_min != d->round_max;
    if (d->apart)
        return CMD_OK;
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

/* Will it estimate again? Below the quorum it holds, and does not. */
static bool trains(const struct cmd_observed *m)
{
    return m->status.phase == NODE_TRAINING && !m->status.holds;
}

/* Have all who train gone on to an estimate of a later state before they were asked? */
static bool missed(const struct drift *d)
{
    bool any = false, training = false;
    for (uint32_t i = 0; i < d->w.n; i++) {
        const struct cmd_observed *m = &d->w.member[i];
        any |= m->answered && same_state(m);
        training |= m->answered && trains(m);
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
        cmd_observe_again(&d->w, CMD_OBSERVE_MS);
        early = false;
        for (uint32_t i = 0; i < d->w.n; i++) {
            const struct cmd_observed *m = &d->w.member[i];
            bool late = m->status.drift_round >= d->round_max || !trains(m);
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

static bool has_estimate(const struct cmd_observed *m)
{
    return m->answered && isfinite(m->status.drift) && isfinite(m->status.relative_drift);
}

/* The newest round that any estimate is of. */
static uint64_t newest_estimate(const struct drift *d)
{
    uint64_t round = 0;
    for (uint32_t i = 0; i < d->w.n; i++) {
        const struct cmd_observed *m = &d->w.member[i];
        if (has_estimate(m) && m->status.drift_round > round)
            round = m->status.drift_round;
    }
    return round;
}

/* With models at hand, only estimates of their very state are in the means; without, those of
 * the newest round alone, as figures of different rounds have no mean. */
static void average(struct drift *d)
{
    d->estimated_round = d->exact.n > 0 ? d->round_max : newest_estimate(d);
    for (uint32_t i = 0; i < d->w.n; i++) {
        const struct cmd_observed *m = &d->w.member[i];
        if (!has_estimate(m)
            || !(d->exact.n > 0 ? same_state(m) : m->status.drift_round == d->estimated_round))
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
                                  json_pack("{s:s, s:o, s:o, s:o, s:o}", "name", m->record.name,
                                            "round", uv_metrics_whole(m->status.drift_round), "age",
                                            uv_metrics_whole(m->status.drift_age), "drift",
                                            uv_metrics_number(m->status.drift), "relative_drift",
                                            uv_metrics_number(m->status.relative_drift)));
    }
    if (d->exact.n > 0)
        exact = exact_object(d);
    double ratio = d->xi / d->exact.trained.xi;
    json_t *j =
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "peers", peers, "round",
                  d->n_estimates > 0 ? uv_metrics_whole(d->estimated_round) : json_null(), "drift",
                  uv_metrics_number(d->xi), "relative_drift", uv_metrics_number(d->relative),
                  "exact", exact, "ratio", uv_metrics_number(ratio));
    json_dumpf(j, stdout, JSON_COMPACT | JSON_REAL_PRECISION(12));
    putchar('\n');
    json_decref(j);
}

static const char *of_round(char out[CMD_PROGRESS_TEXT], bool known, uint64_t round)
{
    out[0] = '\0';
    if (known)
        snprintf(out, CMD_PROGRESS_TEXT, "of round %llu", (unsigned long long)round);
    return out;
}

/* The round of an estimate and its age, by which a stale one is told. */
static const char *when_of(char out[CMD_PROGRESS_TEXT], const struct cmd_observed *m)
{
    const struct wire_status *s = &m->status;
    of_round(out, isfinite(s->drift), s->drift_round);
    size_t at = strlen(out);
    if (at > 0)
        snprintf(out + at, CMD_PROGRESS_TEXT - at, ", %llu ago", (unsigned long long)s->drift_age);
    return out;
}

static void print_text(const struct drift *d)
{
    const struct consensus_part *trained = &d->exact.trained, *statistics = &d->exact.statistics;
    char a[CMD_PROGRESS_TEXT], b[CMD_PROGRESS_TEXT], when[CMD_PROGRESS_TEXT];
    for (uint32_t i = 0; i < d->w.n; i++) {
        const struct cmd_observed *m = &d->w.member[i];
        if (m->answered)
            printf("%-16s %-25s drift %-10s relative %s\n", m->record.name, when_of(when, m),
                   cmd_progress_drift(a, "%.4e", m->status.drift),
                   cmd_progress_drift(b, "%.4e", m->status.relative_drift));
    }
    of_round(when, d->n_estimates > 0, d->estimated_round);
    printf("%-16s %-25s drift %-10s relative %s   (%u estimates)\n", "estimated", when,
           cmd_progress_drift(a, "%.4e", d->xi), cmd_progress_drift(b, "%.4e", d->relative),
           (unsigned)d->n_estimates);
    if (d->exact.n == 0)
        return;
    printf("%-16s %-25s drift %-10s relative %s   (%zu models)\n", "exact",
           of_round(when, true, d->round_max), cmd_progress_drift(a, "%.4e", trained->xi),
           cmd_progress_drift(b, "%.4e", trained->relative), d->exact.n);
    if (statistics->dim > 0)
        printf("%-16s %-25s drift %-10s relative %s   (running means and variances, apart from the "
               "drift)\n",
               "statistics", "", cmd_progress_drift(a, "%.4e", statistics->xi),
               cmd_progress_drift(b, "%.4e", statistics->relative));
    printf("%-16s %s\n", "ratio", cmd_progress_drift(a, "%.3f", d->xi / trained->xi));
}

/* Were the models those of the round that --round names? What was compared
 * instead is an answer to another question, and no success. */
static int check_round(const struct drift *d)
{
    unsigned long long min = d->round_min, max = d->round_max;
    if (d->apart && !options_given(d->o, "round"))
        return cmd_fail(d->o, CMD_FAILED, "the models are of rounds %llu to %llu: not compared",
                        min, max);
    unsigned long long asked = options_given(d->o, "round") ? options_uint(d->o, "round") : min;
    if (min == asked && max == asked)
        return CMD_OK;
    if (min > asked && !d->apart)
        return cmd_fail(d->o, CMD_FAILED, "round %llu is past: round %llu was compared instead",
                        asked, max);
    if (max < asked && !d->apart)
        return cmd_fail(d->o, CMD_FAILED,
                        "round %llu does not come: training ended, round %llu was compared instead",
                        asked, max);
    return cmd_fail(d->o, CMD_FAILED,
                    "not all models are of round %llu but of rounds %llu to %llu: not compared",
                    asked, min, max);
}

/* Compares the models and gets the estimates of the same moment. Where a window
 * was over too soon to be seen, another one is tried. */
static int compare_with_estimates(struct drift *d)
{
    int code = CMD_OK;
    for (int k = 0; k < TRIES && code == CMD_OK && (k == 0 || (!d->apart && missed(d))); k++) {
        code = compare(d);
        if (code == CMD_OK && !d->apart)
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
    bool observed = code == CMD_OK;
    if (code == CMD_OK && options_flag(o, "exact"))
        code = compare_with_estimates(&d);
    if (observed) { /* The estimates are told whatever became of the models. */
        average(&d);
        if (options_flag(o, "json"))
            print_json(&d);
        else
            print_text(&d);
    }
    if (code == CMD_OK && options_flag(o, "exact"))
        code = check_round(&d);
    cmd_observe_close(&d.w);
    int flushed = cmd_finish(o);
    return code != CMD_OK ? code : flushed;
}
