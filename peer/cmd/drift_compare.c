/* peer/cmd/drift_compare.c -- compares the models of all peers, or sketches (random projections) of
 * their layers in one round. Computes the distance in each part of the model, and finds the two
 * peers that are farthest apart. */
#include "peer/cmd/drift.h"
#include "peer/cmd/run_parse.h"
#include "peer/cmd/training.h"
#include "peer/node/node.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum { TRIES = 10, LEAD = 2 };

void drift_comparison_close(struct drift_compare *l)
{
    free(l->part);
    free(l->figure);
    *l = (struct drift_compare){.n = 0};
}

const struct layers_figure *drift_comparison_total(const struct drift_compare *l)
{
    return &l->figure[l->n_parts];
}

static int no_comparison(struct drift_compare *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Records the reason why nothing could be compared. Returns CMD_OK, because this is not an error of
 * the command. */
static int no_comparison(struct drift_compare *l, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    drift_comparison_close(l);
    vsnprintf(l->why, sizeof l->why, format, args);
    va_end(args);
    return CMD_OK;
}

/* Allocates the arrays of a comparison of n_parts parts. Returns 0 or -ENOMEM. */
static int make_room(struct drift_compare *l, size_t n_parts)
{
    l->part = calloc(n_parts, sizeof *l->part);
    l->figure = calloc(n_parts + 1, sizeof *l->figure);
    return l->part == NULL || l->figure == NULL ? -ENOMEM : 0;
}

/* ---- Comparing whole models ---- */

int drift_compare_vectors(struct drift_compare *l, const struct segment *s, size_t n_segments,
                          const float *const *x, size_t n, bool layers)
{
    size_t n_trained = segments_trained(s, n_segments);
    int err = make_room(l, layers ? n_segments : 1);
    if (err != 0)
        return err;
    if (layers)
        l->n_parts = layers_of_segments(l->part, s, n_segments);
    else
        l->part[l->n_parts++] = (struct layers_part){.n = n_trained, .width = n_trained};
    err = layers_measure(l->part, l->n_parts, x, n, l->figure);
    l->n = err == 0 ? n : 0;
    l->exact = true;
    return err;
}

int drift_compare_models(struct drift *d, bool layers)
{
    struct drift_compare *l = &d->look;
    const float *x[WIRE_MEMBERS_MAX];
    char error[RUN_ERROR_MAX];
    struct model m;
    drift_comparison_close(l);
    if (d->exact.n < 2)
        return no_comparison(l, d->apart ? "the models are of different rounds"
                                         : "a single model has no drift");
    if (cmd_run_model(&m, &d->w.run, error) < 0)
        return cmd_fail(d->o, CMD_FAILED, "the peers' run: %s", error);
    for (size_t i = 0; i < d->exact.n; i++)
        x[i] = d->with[i]->model;
    int err = drift_compare_vectors(l, m.segments, m.n_segments, x, d->exact.n, layers);
    model_close(&m);
    for (size_t i = 0; i < d->exact.n && err == 0; i++) {
        l->name[i] = d->with[i]->record.name;
        l->last_phase |= d->with[i]->status.phase > NODE_TRAINING;
    }
    l->round = l->first = d->round_max;
    return err == 0 ? CMD_OK : cmd_fail(d->o, CMD_FAILED, "out of memory to compare the models");
}

/* ---- Comparing sketches ---- */

/* Divides the run's model into layers in the same way as the peers, which compute sketches (random
 * projections) of the layers. Returns CMD_OK, or CMD_FAILED after a message on stderr. */
static int cut(const struct drift *d, struct layers *layers)
{
    char error[RUN_ERROR_MAX];
    struct model m;
    if (cmd_run_model(&m, &d->w.run, error) < 0)
        return cmd_fail(d->o, CMD_FAILED, "the peers' run: %s", error);
    layers_cut(layers, m.segments, m.n_segments);
    model_close(&m);
    return CMD_OK;
}

/* Sketches (random projections of models) received so far. `from`: the peers that sent them.
 * `first` and `last`: smallest and largest round of the sketches. `asked`: the requested round. */
struct come
{
    const struct cmd_observed *from[WIRE_MEMBERS_MAX];
    size_t n, n_silent;
    /* Name of one peer that was asked for sketches of its model but has sent none. NULL: every peer
     * that was asked has sent its sketches. */
    const char *silent;
    uint64_t first, last, asked;
    /* True if no peer was training when the sketches (random projections of models) were requested.
     * Each peer then sends sketches of its present model, for whatever round this model is. */
    bool rest;
    /* True if the run is not in lock step, so that peers reach a round at different times. Each
     * peer then sends sketches of its present model, for whatever round this model is. */
    bool moment;
};

/* Returns true if the received sketches (random projections of models) can be compared. One of
 * these conditions must hold: all sketches are of the requested round; no peer trains and all
 * sketches are of one round; or the run is not in lock step (peers are in different rounds). */
static bool is_comparable(const struct come *c)
{
    bool one = c->first == c->last && (c->rest || c->last == c->asked);
    return c->n > 0 && (one || c->moment);
}

static void count(const struct drift *d, struct come *c)
{
    *c =
        (struct come){.first = UINT64_MAX, .asked = c->asked, .rest = c->rest, .moment = c->moment};
    for (uint32_t i = 0; i < d->w.n; i++) {
        const struct cmd_observed *m = &d->w.member[i];
        if (m->model != NULL) {
            c->from[c->n++] = m;
            c->first = m->model_round < c->first ? m->model_round : c->first;
            c->last = m->model_round > c->last ? m->model_round : c->last;
        } else if (m->up) {
            c->silent = m->due ? m->record.name : c->silent;
            c->n_silent++;
        }
    }
}

/* Returns a random key for a request. A peer repeats the key in its answer, so that late answers to
 * earlier requests can be recognised. */
static uint64_t draw_key(void)
{
    uint64_t key = 0;
    if (uv_random(NULL, NULL, &key, sizeof key, 0, NULL) != 0)
        key = uv_hrtime();
    return key | 1;
}

static uint32_t left_ms(uint64_t begun_ns, uint32_t ms)
{
    uint64_t gone = (uv_hrtime() - begun_ns) / 1000000;
    return gone < ms ? ms - (uint32_t)gone : 0;
}

/* Requests sketches (random projections of models) from all peers, if possible of one round. Tries
 * again until the received sketches can be compared.
 *
 *   case                     requested round
 *   --round is given         that round, in one try
 *   no peer trains           0: each peer sends its present sketches
 *   no lock step             0: each peer sends its present sketches
 *   otherwise                newest known round plus 2, 4, 8, ... (one step for each try)
 *
 * Peers continue to train while a request is on its way, so the requested round must be later than
 * the present round of every peer.
 */
static void ask(struct drift *d, uint32_t ms, struct come *c)
{
    uint64_t begun = uv_hrtime();
    bool fixed = options_given(d->o, "round");
    for (int k = 0; k < TRIES; k++) {
        uint64_t next = drift_newest_round(d) + ((uint64_t)LEAD << k);
        c->rest = drift_no_peer_trains(d) && !fixed;
        c->moment = d->w.run.policy != RUN_SYNC && !fixed;
        c->asked = fixed ? options_uint(d->o, "round") : c->rest || c->moment ? 0 : next;
        struct wire_model_req q = {c->asked, WIRE_PIECE_LAYERS, draw_key()};
        bool in_time = cmd_observe_models(&d->w, &q, left_ms(begun, ms));
        count(d, c);
        if (!in_time || c->n == 0 || is_comparable(c) || fixed)
            return;
        cmd_observe_refresh(&d->w, CMD_OBSERVE_MS);
    }
}

static int no_sketches(const struct drift *d, struct drift_compare *l, const struct come *c)
{
    unsigned long long first = c->first, last = c->last, asked = c->asked;
    if (c->n == 1)
        return no_comparison(l, "a single model has no drift");
    if (c->n > 0 && first > asked && !c->rest)
        return no_comparison(l, "round %llu is over; received sketches of round %llu", asked,
                             first);
    if (c->n > 0 && first == last)
        return no_comparison(l, "round %llu was never reached: training ended with round %llu",
                             asked, last);
    if (c->n > 0)
        return no_comparison(l, "sketches not compared: they are of different rounds, %llu to %llu",
                             first, last);
    if (c->silent != NULL)
        return no_comparison(l, "%s sent no sketches in time", c->silent);
    if (c->n_silent == 0)
        return no_comparison(l, "no peer answers");
    return no_comparison(l, "the run has not started: %zu of %u members have joined", c->n_silent,
                         (unsigned)d->w.run.min_peers);
}

/* Compares the received sketches (random projections of models). Fails if their length does not
 * match the model of the run. */
static int compare(struct drift *d, const struct layers *layers, const struct come *c)
{
    struct drift_compare *l = &d->look;
    const float *x[WIRE_MEMBERS_MAX];
    for (size_t i = 0; i < c->n; i++) {
        const struct cmd_observed *m = c->from[i];
        if (m->n_floats != layers->n_floats)
            return cmd_fail(d->o, CMD_FAILED,
                            "%s sent sketches of %zu floats, expected %zu for the model of its "
                            "run",
                            m->record.name, m->n_floats, layers->n_floats);
        x[i] = m->model;
        l->name[i] = m->record.name;
        l->last_phase |= m->status.phase > NODE_TRAINING;
    }
    if (make_room(l, layers->n) != 0)
        return cmd_fail(d->o, CMD_FAILED, "out of memory for %zu sketches", c->n);
    memcpy(l->part, layers->part, layers->n * sizeof *l->part);
    if (layers_measure(l->part, layers->n, x, c->n, l->figure) != 0)
        return cmd_fail(d->o, CMD_FAILED, "out of memory for %zu sketches", c->n);
    l->n = c->n;
    l->n_parts = layers->n;
    l->n_silent = c->n_silent;
    l->round = c->last;
    l->first = c->first;
    return CMD_OK;
}

int drift_compare_sketches(struct drift *d, uint32_t ms)
{
    static struct layers layers;
    static struct come c;
    drift_comparison_close(&d->look);
    if (!d->w.has_run)
        return no_comparison(&d->look, "no peer has reported a run yet");
    if (cmd_run_is_layout(&d->w.run))
        return no_comparison(&d->look,
                             "the run trains the model of a program that uses the library, so its "
                             "layers are unknown to this command; use --exact");
    int code = cut(d, &layers);
    if (code != CMD_OK)
        return code;
    ask(d, ms, &c);
    if (c.n < 2 || !is_comparable(&c))
        return no_sketches(d, &d->look, &c);
    return compare(d, &layers, &c);
}
