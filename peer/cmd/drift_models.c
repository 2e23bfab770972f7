/* peer/cmd/drift_models.c -- `hearsay drift --exact`: fetches the models of all peers in one round,
 * and the peers' own estimates of the consensus distance in that round. */
#include "peer/cmd/drift.h"
#include "peer/cmd/run_parse.h"
#include "peer/cmd/training.h"
#include "peer/node/node.h"
#include "peer/sgd/sgd_keys.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

enum { WINDOW_TRIES = 3, LEAD = 8, WATCH_LEAD = 2 };
/* The peers are asked every 5 ms, because with a small model a drift window (the rounds between two
 * estimates) may last only 50 ms. */
enum { TRIES = 10, POLL_MS = 5 };

static const float *model_of(void *self, size_t i)
{
    return ((struct drift *)self)->with[i]->model;
}

/* Returns true if the peer will make another estimate of the consensus distance. A peer without
 * quorum has paused and makes no estimates. */
static bool trains(const struct cmd_observed *m)
{
    return m->status.phase == NODE_TRAINING && !m->status.holds;
}

bool drift_no_peer_trains(const struct drift *d)
{
    for (uint32_t i = 0; i < d->w.n; i++)
        if (d->w.member[i].answered && trains(&d->w.member[i]))
            return false;
    return true;
}

uint64_t drift_newest_round(const struct drift *d)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < d->w.n; i++)
        most = d->w.member[i].status.round > most ? d->w.member[i].status.round : most;
    return most;
}

/* ---- Fetching the models ---- */

/* Returns the round for which the peers are asked to send their models. `tries`: number of earlier
 * attempts.
 *
 *   case                     requested round
 *   --round is given         that round
 *   --watch, peers train     newest known round plus 2, 4, 8, ... (one step for each try)
 *   --watch, no peer trains  0: each peer sends its present model
 *   first three tries        WIRE_ROUND_WINDOW: the beginning of the next drift window
 *   later tries              newest known round plus 8, 16, 32, ...
 *
 * A drift window is the period of rounds for which peers estimate the consensus distance. In lock
 * step (all peers in the same round) all peers begin a window at the same round. Their models of
 * that round can therefore be compared with their own estimates. The next window may begin hundreds
 * of rounds later, so --watch does not wait for it.
 */
static uint64_t common_round(const struct drift *d, int tries)
{
    if (options_given(d->o, "round"))
        return options_uint(d->o, "round");
    if (d->watching)
        return drift_no_peer_trains(d) ? 0
                                       : drift_newest_round(d) + ((uint64_t)WATCH_LEAD << tries);
    if (tries < WINDOW_TRIES)
        return WIRE_ROUND_WINDOW;
    return drift_newest_round(d) + ((uint64_t)LEAD << (tries - WINDOW_TRIES));
}

/* Requests the models from all peers. Sets d->round_min and d->round_max to the smallest and
 * largest round of the models received. Returns false if not all models arrived in time. */
static bool get_models(struct drift *d, int tries)
{
    uint32_t ms = (uint32_t)options_uint(d->o, "timeout") * 1000;
    if (tries > 0 && (d->watching || tries >= WINDOW_TRIES))
        cmd_observe_refresh(&d->w, CMD_OBSERVE_MS);
    struct wire_model_req q = {.round = common_round(d, tries), .piece = WIRE_PIECE_WHOLE};
    bool in_time = cmd_observe_models(&d->w, &q, ms);
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

/* Checks the length of the received models, and sets `*n_trained` to their number of trained
 * parameters. A message has only the floats of a model, so the layout is taken from the run
 * description that peers send in the handshake. Returns CMD_OK, or CMD_FAILED after a message on
 * stderr. */
static int count_trained(const struct drift *d, size_t dim, size_t *n_trained)
{
    char error[RUN_ERROR_MAX];
    struct model m;
    if (!d->w.has_run)
        return cmd_fail(d->o, CMD_FAILED,
                        "no peer sent the run description, which is needed to read models");
    if (cmd_run_model(&m, &d->w.run, error) < 0)
        return cmd_fail(d->o, CMD_FAILED, "the peers' run: %s", error);
    size_t expected = m.n_params;
    *n_trained = segments_trained(m.segments, m.n_segments);
    model_close(&m);
    if (dim != expected)
        return cmd_fail(d->o, CMD_FAILED,
                        "the peers sent models of %zu parameters, but %s of their run has %zu", dim,
                        cmd_run_is_layout(&d->w.run) ? "the text" : sgd_values(&d->w.run)->model,
                        expected);
    return CMD_OK;
}

int drift_models(struct drift *d)
{
    size_t n = 0, dim = 0, n_trained;
    bool in_time = get_models(d, 0);
    d->exact = consensus_none;
    /* If the models are of different rounds, they are requested again. The rounds differ if a drift
     * window (the rounds between two estimates) began while the request was on its way to some
     * peers. */
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
                            "%s sent a model of %zu parameters, another peer one of %zu",
                            m->record.name, m->n_floats, dim);
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
    if (n == 1) { /* The consensus distance of a single model is reported as undefined, not as 0. */
        fprintf(stderr, "hearsay drift: warning: a single model has no drift\n");
        d->exact.trained.xi = d->exact.trained.relative = (double)NAN;
        d->exact.statistics.xi = d->exact.statistics.relative = (double)NAN;
    }
    return CMD_OK;
}

/* ---- Fetching the peers' own estimates ---- */

/* Returns true if the peer's own estimate is for the model that it has sent. A model from the
 * consensus phase never counts: the round counter has stopped there, so an estimate with the same
 * round number may be of an earlier model. */
static bool same_state(const struct cmd_observed *m)
{
    bool told = m->model_round < m->status.n_rounds;
    return m->model && told && m->status.drift_round == m->model_round;
}

/* Returns true if peers train, but none of them still has its estimate for the compared models.
 * They have all replaced it by a later estimate. */
static bool estimates_missed(const struct drift *d)
{
    bool any = false, training = false;
    for (uint32_t i = 0; i < d->w.n; i++) {
        const struct cmd_observed *m = &d->w.member[i];
        any |= m->answered && same_state(m);
        training |= m->answered && trains(m);
    }
    return training && !any;
}

/* Asks all peers again and again. Stops when each peer no longer trains, or has an estimate for the
 * compared round or a later one. For each peer the first such answer is kept, because later answers
 * are for later rounds. */
static void wait_for_estimates(struct drift *d)
{
    static struct wire_status first[WIRE_MEMBERS_MAX];
    bool has[WIRE_MEMBERS_MAX] = {false}, early = true;
    uint32_t tries = (uint32_t)options_uint(d->o, "timeout") * 1000 / POLL_MS;
    for (uint32_t k = 0; k < tries && early; k++) {
        struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
        cmd_observe_refresh(&d->w, CMD_OBSERVE_MS);
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

/* Warns about each member that could not be reached. The figures do not include the models of these
 * members. */
static void warn_absent(const struct drift *d)
{
    for (uint32_t i = 0; i < d->w.n; i++) {
        const struct cmd_observed *m = &d->w.member[i];
        if (m->known && !m->up && m->model == NULL && !record_state_is_final(m->record.state))
            fprintf(stderr,
                    "hearsay drift: warning: %s does not answer; the figures do not include its "
                    "model\n",
                    m->record.name);
    }
}

int drift_models_and_estimates(struct drift *d)
{
    int code = CMD_OK;
    for (int k = 0; k < TRIES && code == CMD_OK && (k == 0 || (!d->apart && estimates_missed(d)));
         k++) {
        code = drift_models(d);
        if (code == CMD_OK && !d->apart)
            wait_for_estimates(d);
        if (options_given(d->o, "round"))
            break;
    }
    if (code == CMD_OK)
        warn_absent(d);
    return code;
}

static bool has_estimate(const struct cmd_observed *m)
{
    return m->answered && isfinite(m->status.drift) && isfinite(m->status.relative_drift);
}

/* Returns the newest round for which a peer has an estimate of the consensus distance. */
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

void drift_average(struct drift *d)
{
    bool compared = d->exact.n > 0 && !d->watching;
    d->xi = d->relative = 0;
    d->n_estimates = 0;
    d->estimated_round = compared ? d->round_max : newest_estimate(d);
    for (uint32_t i = 0; i < d->w.n; i++) {
        const struct cmd_observed *m = &d->w.member[i];
        if (!has_estimate(m)
            || !(compared ? same_state(m) : m->status.drift_round == d->estimated_round))
            continue;
        d->xi += m->status.drift;
        d->relative += m->status.relative_drift;
        d->n_estimates++;
    }
    /* If no peer has an estimate, both means become 0 / 0, which is NaN. */
    d->xi /= d->n_estimates;
    d->relative /= d->n_estimates;
}
