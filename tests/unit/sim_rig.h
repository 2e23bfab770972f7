/* tests/unit/sim_rig.h -- a simulated cluster whose model is a quadratic.
 *
 * Peer i minimises |x - c_i|^2 / 2 by gradient steps of size eta. c_i is standard normal, and x
 * starts at 0. With eta = 0, x instead jumps to c_i in round 0 and local steps never move it again,
 * so that the run is pure consensus. The state after each round's mix is recorded, so that a test
 * can compute the exact error of each round.
 *
 * The model may also have statistics: means and variances of noise, which local steps keep as
 * running averages, as in batch normalisation. */
#ifndef TESTS_UNIT_SIM_RIG_H
#define TESTS_UNIT_SIM_RIG_H

#include "compress/compress.h"
#include "nn/math/rng.h"
#include "peer/sim/faults.h"
#include "peer/sim/world.h"
#include "topology/topology.h"

#include <assert.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RIG_WINDOW = 16 };

struct rig_peer
{
    struct rig *rig;
    uint32_t index;
    /* True: to simulate a memory error, the next evaluation on all samples changes the model by 2 %
     * of its length. Only the final model is evaluated on all samples. */
    bool changes;
};

struct rig
{
    struct sim_config config;
    size_t dim;
    /* eta: step size. Negative: steps lead away from c_i, the optimum of peer i. noise: standard
     * deviation of the gradient noise in each coordinate. */
    float eta, noise;
    uint64_t quiet_from; /* From this round on, the noise is a hundredth of `noise`. 0: never. */
    size_t n_means, n_variances;
    /* Scale of the random statistics of a simulated batch. Peer i has (i + 1) times this scale. */
    float scale;
    float lowest;  /* Smallest variance that a local step has found in its model. */
    double *moved; /* Sum over all peers of the local updates of each float. NULL: not recorded. */
    struct rig_peer *peers;
    struct segment segment[3];
    float *c; /* Optima of all peers: n x dim floats. */
    /* RIG_WINDOW x n x dim: models of all peers at the start of the last RIG_WINDOW rounds. */
    float *state;
    uint32_t count[RIG_WINDOW];
    double *estimate;    /* Consensus distance of each round, as peer 0 estimates it. */
    double *error2;      /* Exact sum over peers of |x_i - mean|^2, for each round. */
    uint64_t n_errors;   /* Number of rounds whose error is in error2. */
    const char *warning; /* Text of the warnings that are counted. NULL: none. */
    uint32_t n_warnings; /* Number of warnings of all peers that contain `warning`. */
    struct sim_world *world;
    bool quiet; /* True: the test provokes error messages, so they are not printed. */
    /* loud: all messages of the peers are printed. lost: peer `dead` has died, so its model is not
     * counted. */
    bool loud, lost;
    uint32_t dead;
};

static inline size_t rig_floats(const struct rig *r)
{
    return r->dim + r->n_means + r->n_variances;
}

/* Sets the initial model: variances are 1, all other floats 0. */
static inline void rig_init_model(void *self, float *x)
{
    const struct rig *r = ((struct rig_peer *)self)->rig;
    memset(x, 0, rig_floats(r) * sizeof *x);
    for (size_t k = r->dim + r->n_means; k < rig_floats(r); k++)
        x[k] = 1;
}

/* Returns the sum over peers of |x_i - mean|^2 for n vectors that are stored end to end. */
static inline double rig_error2(const float *x, uint32_t n, size_t dim)
{
    double sum = 0;
    for (size_t k = 0; k < dim; k++) {
        double mean = 0;
        for (uint32_t i = 0; i < n; i++)
            mean += (double)x[i * dim + k] / n;
        for (uint32_t i = 0; i < n; i++)
            sum += ((double)x[i * dim + k] - mean) * ((double)x[i * dim + k] - mean);
    }
    return sum;
}

static inline void rig_record(struct rig *r, uint32_t peer, const float *x, uint64_t round)
{
    uint32_t n = r->config.n_peers, slot = (uint32_t)(round % RIG_WINDOW);
    float *at = r->state + (size_t)slot * n * r->dim;
    if (r->error2 == NULL)
        return;
    memcpy(at + peer * r->dim, x, r->dim * sizeof *x);
    if (++r->count[slot] < n - r->lost)
        return;
    r->count[slot] = 0;
    /* The error does not depend on the order of the models. The last model is therefore moved to
     * the place of the dead peer's model, so that the others are contiguous. */
    if (r->lost) {
        memmove(at + r->dead * r->dim, at + (n - 1) * r->dim, r->dim * sizeof *x);
        n--;
    }
    r->error2[round] = rig_error2(at, n, r->dim);
    r->n_errors = round + 1;
}

/* Returns an almost normal deviate: a scaled sum of four uniform deviates. */
static inline float rig_gauss(const struct rig_peer *p, uint64_t round, size_t k)
{
    uint64_t key = rng_key(round, RNG_TEST, p->index, 3);
    float sum = -2;
    for (uint64_t i = 0; i < 4; i++)
        sum += rng_unit_at(key, 4 * k + i);
    return sum * 1.7320508f;
}

/* Moves each statistic of the model a tenth of the way to the statistic of a simulated batch. The
 * scale of the batch differs by peer. */
static inline void rig_statistics(const struct rig_peer *p, float *x, uint64_t round)
{
    struct rig *r = p->rig;
    for (size_t k = r->dim; k < rig_floats(r); k++) {
        bool variance = k >= r->dim + r->n_means;
        float v = rig_gauss(p, round, k);
        if (variance)
            r->lowest = !(x[k] >= r->lowest) ? x[k] : r->lowest;
        v = variance ? expf(3 * v) : v;
        x[k] += 0.1f * (r->scale * (float)(p->index + 1) * v - x[k]);
    }
}

static inline void rig_gradient_steps(const struct rig_peer *p, float *x, uint64_t round,
                                      uint32_t n_steps)
{
    const struct rig *r = p->rig;
    const float *c = r->c + p->index * r->dim;
    float noise = r->quiet_from > 0 && round >= r->quiet_from ? r->noise / 100 : r->noise;
    for (uint32_t s = 0; s < n_steps; s++)
        for (size_t k = 0; k < r->dim; k++)
            if (r->eta != 0)
                x[k] -= r->eta * (x[k] - c[k] + (noise != 0 ? noise * rig_gauss(p, round, k) : 0));
            else if (round == 0 && s == 0)
                x[k] = c[k];
}

static inline void rig_steps(void *self, float *x, uint64_t round, uint32_t n_steps,
                             struct trainer_report *report)
{
    struct rig_peer *p = self;
    struct rig *r = p->rig;
    rig_record(r, p->index, x, round);
    for (size_t k = 0; k < rig_floats(r) && r->moved != NULL; k++)
        r->moved[k] -= (double)x[k];
    rig_gradient_steps(p, x, round, n_steps);
    rig_statistics(p, x, round);
    for (size_t k = 0; k < rig_floats(r) && r->moved != NULL; k++)
        r->moved[k] += (double)x[k];
    *report = (struct trainer_report){.n_samples = 1};
}

static inline void rig_evaluate(void *self, const float *x, uint64_t most,
                                struct trainer_report *report)
{
    struct rig_peer *p = self;
    float *changed = (float *)(uintptr_t)x;
    for (size_t k = 0; k < p->rig->dim && most == 0 && p->changes; k++)
        changed[k] *= k % 2 == 0 ? 1.02f : 0.98f;
    p->changes &= most != 0;
    *report = (struct trainer_report){.n_samples = 1};
}

static inline int rig_trainer(void *self, uint32_t peer, const struct run *run, struct trainer *t,
                              char error[RUN_ERROR_MAX])
{
    struct rig *r = self;
    (void)run, (void)error;
    *t = (struct trainer){.n_params = rig_floats(r),
                          .segments = r->segment,
                          .n_segments = rig_floats(r) > r->dim ? 3 : 1,
                          .self = &r->peers[peer],
                          .init = rig_init_model,
                          .steps = rig_steps,
                          .evaluate = rig_evaluate};
    return 0;
}

static inline void rig_measured(void *self, uint32_t peer)
{
    struct rig *r = self;
    struct node_progress p;
    node_progress(sim_node(r->world, peer), &p);
    if (peer == 0 && r->estimate != NULL && p.round > 0 && p.drift > 0
        && p.drift_round <= r->config.run.rounds)
        r->estimate[p.drift_round] = p.drift;
}

static inline void rig_note(void *self, uint32_t peer, const struct node_note *note)
{
    struct rig *r = self;
    r->n_warnings +=
        r->warning != NULL && note->level == NOTE_WARNING && strstr(note->text, r->warning) != NULL;
    if (!r->quiet && (r->loud || note->level == NOTE_ERROR))
        fprintf(stderr, "%.3f peer-%u: %s\n", (double)sim_now_us(r->world) * 1e-6, peer,
                note->text);
}

/* Sets defaults, which a test may change before rig_open(). */
static inline void rig_init(struct rig *r, uint32_t n, size_t dim, const char *topology,
                            const char *compress, double gamma)
{
    char error[COMPRESS_ERROR_MAX], canonical[COMPRESS_SPEC_MAX];
    *r = (struct rig){.dim = dim, .lowest = (float)INFINITY};
    r->config = (struct sim_config){.n_peers = n,
                                    .seed = 1,
                                    .latency_us = 100,
                                    .step_us = 1000,
                                    .make_trainer = rig_trainer,
                                    .self = r,
                                    .measured = rig_measured,
                                    .note = rig_note};
    struct run *run = &r->config.run;
    *run = (struct run){.gamma = gamma,
                        .gamma_auto = gamma == 0,
                        .centre_momentum = 0.9,
                        .error_feedback = true,
                        .seed = 1,
                        .rounds = 100,
                        .min_peers = n,
                        .drift_target = 0.02,
                        .local_steps = 1};
    if (strcmp(compress, RUN_AUTO) == 0)
        memcpy(canonical, RUN_AUTO, sizeof RUN_AUTO);
    else if (compress_canonical(compress, canonical, error) != 0)
        fail_msg("%s", error);
    snprintf(run->compress, sizeof run->compress, "%s", canonical);
    compress_canonical("qsgd:4", canonical, error);
    snprintf(run->final_compress, sizeof run->final_compress, "%s", canonical);
    snprintf(run->topology, sizeof run->topology, "%s", topology);
    snprintf(run->final_topology, sizeof run->final_topology, "%s", RUN_SAME);
    snprintf(run->outer, sizeof run->outer, "none");
    r->segment[0] = (struct segment){
        .name = "x", .n = dim, .rows = 1, .cols = dim, .n_dims = 1, .trained = true};
    r->peers = calloc(n, sizeof *r->peers);
    r->c = calloc(n * dim, sizeof *r->c);
    assert_true(r->peers && r->c);
    struct rng rng = rng_stream(rng_key(11, RNG_TEST, n, dim));
    for (uint32_t i = 0; i < n; i++)
        r->peers[i] = (struct rig_peer){.rig = r, .index = i};
    for (size_t k = 0; k < n * dim; k++)
        r->c[k] = (float)rng_normal(&rng);
}

/* Adds statistics to the model. Call it before rig_open(). */
static inline void rig_with_statistics(struct rig *r, size_t n_means, size_t n_variances,
                                       float scale)
{
    r->n_means = n_means;
    r->n_variances = n_variances;
    r->scale = scale;
    r->segment[1] = (struct segment){
        .name = "mean", .offset = r->dim, .n = n_means, .rows = 1, .cols = n_means, .n_dims = 1};
    r->segment[2] = (struct segment){.name = "var",
                                     .offset = r->dim + n_means,
                                     .n = n_variances,
                                     .rows = 1,
                                     .cols = n_variances,
                                     .n_dims = 1,
                                     .nonnegative = true};
    r->moved = calloc(rig_floats(r), sizeof *r->moved);
    assert_non_null(r->moved);
}

/* Allocates the record of the exact error of each round. */
static inline void rig_recording(struct rig *r)
{
    uint32_t n = r->config.n_peers;
    r->state = calloc(RIG_WINDOW * n * r->dim, sizeof *r->state);
    r->error2 = calloc(r->config.run.rounds + 1, sizeof *r->error2);
    r->estimate = calloc(r->config.run.rounds + 1, sizeof *r->estimate);
    assert_true(r->state && r->error2 && r->estimate);
}

static inline void rig_open(struct rig *r)
{
    assert_int_equal(sim_open(&r->world, &r->config), 0);
}

/* Simulates to the end of the run, or until the simulator has processed max_events events. */
static inline void rig_run(struct rig *r, uint64_t max_events)
{
    if (r->world == NULL)
        rig_open(r);
    while (sim_events(r->world) < max_events && sim_step(r->world))
        ;
}

static inline const float *rig_model(const struct rig *r, uint32_t peer)
{
    const struct segment *s;
    size_t n, d;
    return node_model(sim_node(r->world, peer), &s, &n, &d);
}

static inline struct node_progress rig_progress(const struct rig *r, uint32_t peer)
{
    struct node_progress p;
    node_progress(sim_node(r->world, peer), &p);
    return p;
}

/* Asserts that every live peer did all rounds and ended with exit code 0, that no peer violated the
 * protocol, and that the relative drift is at most `drift`. */
static inline void rig_ended_well(const struct rig *r, double drift)
{
    struct consensus c;
    for (uint32_t i = 0; i < r->config.n_peers; i++) {
        int code;
        if (sim_node(r->world, i) == NULL)
            continue;
        if (!sim_ended(r->world, i, &code) || code != 0)
            fail_msg("peer-%u did not end well", i);
        struct node_progress p = rig_progress(r, i);
        assert_int_equal(p.round, r->config.run.rounds);
        assert_int_equal(p.round, p.joined_round + p.rounds_done + p.rounds_skipped);
        assert_int_equal(rig_progress(r, i).violations, 0);
    }
    sim_drift(r->world, &c);
    if (!(c.trained.relative <= drift))
        fail_msg("relative drift %g, expected at most %g", c.trained.relative, drift);
}

/* Asserts that the models of all live peers are equal bit for bit. */
static inline void rig_all_equal(const struct rig *r)
{
    const float *first = NULL;
    for (uint32_t i = 0; i < r->config.n_peers; i++) {
        if (sim_node(r->world, i) == NULL)
            continue;
        const float *x = rig_model(r, i);
        first = first != NULL ? first : x;
        if (memcmp(x, first, rig_floats(r) * sizeof *x) != 0)
            fail_msg("peer-%u has other bits than the first", i);
    }
}

/* Returns |mean of the models - mean of the optima c_i| / |mean of the optima c_i|. */
static inline double rig_mean_error(const struct rig *r)
{
    double e2 = 0, m2 = 0;
    uint32_t n = r->config.n_peers;
    for (size_t k = 0; k < r->dim; k++) {
        double x = 0, c = 0;
        for (uint32_t i = 0; i < n; i++) {
            x += (double)rig_model(r, i)[k] / n;
            c += (double)r->c[i * r->dim + k] / n;
        }
        e2 += (x - c) * (x - c);
        m2 += c * c;
    }
    return sqrt(e2 / m2);
}

static inline void rig_close(struct rig *r)
{
    sim_close(r->world);
    free(r->peers);
    free(r->c);
    free(r->state);
    free(r->error2);
    free(r->estimate);
    free(r->moved);
}

#endif
