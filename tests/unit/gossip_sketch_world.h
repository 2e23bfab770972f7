/* tests/unit/gossip_sketch_world.h -- eight peers' sketches on a small graph,
 * driven by hand.
 *
 * Time is as in a job: what both ends have put is mixed, then comes the beat,
 * then the next messages are put.
 */
#ifndef TESTS_UNIT_GOSSIP_SKETCH_WORLD_H
#define TESTS_UNIT_GOSSIP_SKETCH_WORLD_H

#include "gossip/exchange/sketch.h"
#include "nn/math/rng.h"
#include "topology/topology.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 8, DIM = 700, VIEW = 40 /* Bits: the view is the tag's upper part. */ };

static inline void fill(float *x, size_t n, uint64_t seed)
{
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, n, 6));
    for (size_t i = 0; i < n; i++)
        x[i] = (float)rng_normal(&r);
}

/* ---- a cluster ---- */

struct slot /* One edge: what both ends have put, and who has committed it. */
{
    uint32_t i, j;
    struct sketch_pair pair[2];
    struct sketch_message said[2];
    bool full, done[2], skips; /* skips: nothing is mixed in this beat. */
};

struct cluster
{
    struct graph g;
    struct sketch k[N];
    float x[N][DIM];
    struct slot slot[N * N];
    size_t n_slots;
    bool away[N]; /* Takes part in nothing. */
    bool lock_step;
    uint64_t view, round;
};

static inline void open_peer(struct cluster *c, uint32_t i)
{
    assert_int_equal(sketch_init(&c->k[i], 9, DIM), 0);
    for (size_t s = 0; s < c->n_slots; s++)
        if (c->slot[s].i == i || c->slot[s].j == i) {
            sketch_pair_init(&c->slot[s].pair[0]);
            sketch_pair_init(&c->slot[s].pair[1]);
            c->slot[s].full = false;
        }
}

static inline void cluster_init(struct cluster *c, const char *topology, bool lock_step)
{
    *c = (struct cluster){.lock_step = lock_step, .view = UINT64_C(5) << VIEW};
    assert_int_equal(graph_build(&c->g, topology, N, 1), 0);
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t e = c->g.first[i]; e < c->g.first[i + 1]; e++)
            if (c->g.neighbour[e] > i)
                c->slot[c->n_slots++] = (struct slot){.i = i, .j = c->g.neighbour[e]};
    for (uint32_t i = 0; i < N; i++) {
        open_peer(c, i);
        fill(c->x[i], DIM, 50 + i);
        for (size_t d = 0; d < DIM; d++) /* A mean that is larger than Xi. */
            c->x[i][d] = 3 + c->x[i][d];
    }
}

static inline void cluster_close(struct cluster *c)
{
    for (uint32_t i = 0; i < N; i++)
        sketch_close(&c->k[i]);
    graph_close(&c->g);
}

static inline double weight(const struct cluster *c, const struct slot *s)
{
    return topology_weight(graph_degree(&c->g, s->i), graph_degree(&c->g, s->j));
}

static inline bool is_away(const struct cluster *c, const struct slot *s)
{
    return c->away[s->i] || c->away[s->j];
}

static inline void commit(struct cluster *c, struct slot *s, int end)
{
    uint32_t i = end == 0 ? s->i : s->j;
    sketch_mix(&c->k[i], &s->pair[end], weight(c, s), &s->said[end], &s->said[1 - end]);
    s->done[end] = true;
}

static inline void beat_one(struct cluster *c, uint32_t i)
{
    struct sketch_pair *pair[N];
    size_t n = 0;
    for (size_t s = 0; s < c->n_slots; s++)
        if ((c->slot[s].i == i || c->slot[s].j == i) && !is_away(c, &c->slot[s]))
            pair[n++] = &c->slot[s].pair[c->slot[s].j == i];
    struct sketch_moment now = {.view = c->view,
                                .reach = graph_eccentricity(&c->g, 0),
                                .lock_step = c->lock_step,
                                .pair = pair,
                                .n_pairs = n,
                                .round = c->round};
    sketch_beat(&c->k[i], c->x[i], &now);
}

static inline void say(struct cluster *c, struct slot *s)
{
    if (s->full && !(s->done[0] && s->done[1]))
        return; /* The one before is not over. */
    for (int end = 0; end < 2; end++) {
        sketch_put(&c->k[end == 0 ? s->i : s->j], &s->pair[end], &s->said[end]);
        assert_true(sketch_valid(&c->k[0], &s->said[end]));
        s->done[end] = false;
    }
    s->full = true;
}

/* One beat of all. Edges that skip stand still at both ends. */
static inline void beat(struct cluster *c)
{
    for (size_t s = 0; s < c->n_slots; s++)
        for (int end = 0; end < 2; end++)
            if (c->slot[s].full && !c->slot[s].skips && !is_away(c, &c->slot[s]))
                commit(c, &c->slot[s], end);
    for (uint32_t i = 0; i < N; i++)
        if (!c->away[i])
            beat_one(c, i);
    for (size_t s = 0; s < c->n_slots; s++)
        if (!is_away(c, &c->slot[s]))
            say(c, &c->slot[s]);
    c->round++;
}

/* What the estimate would be if averaging were perfect: of the sketches. */
static inline double sketched_xi(struct cluster *c)
{
    float s[N][SKETCH_K];
    double sum = 0, mean[SKETCH_K] = {0};
    for (uint32_t i = 0; i < N; i++) {
        sketch_project(&c->k[0], c->x[i], s[i]);
        for (size_t e = 0; e < SKETCH_K; e++)
            mean[e] += (double)s[i][e] / N;
    }
    for (uint32_t i = 0; i < N; i++)
        for (size_t e = 0; e < SKETCH_K; e++)
            sum += ((double)s[i][e] - mean[e]) * ((double)s[i][e] - mean[e]);
    return sqrt(sum / N);
}

static inline double exact_xi(struct cluster *c, double *relative)
{
    double sum = 0, mean2 = 0;
    for (size_t d = 0; d < DIM; d++) {
        double mean = 0;
        for (uint32_t i = 0; i < N; i++)
            mean += (double)c->x[i][d] / N;
        mean2 += mean * mean;
        for (uint32_t i = 0; i < N; i++)
            sum += ((double)c->x[i][d] - mean) * ((double)c->x[i][d] - mean);
    }
    *relative = sqrt(sum / N / mean2);
    return sqrt(sum / N);
}

/* Largest difference between the sums of m and of s over the peers, relative
 * to an element's size; of u and q likewise. All must be in one window. */
static inline double sums_off(struct cluster *c)
{
    double worst = 0, size = 0;
    for (uint32_t i = 1; i < N; i++)
        assert_int_equal(c->k[i].window, c->k[0].window);
    for (size_t e = 0; e < SKETCH_K; e++) {
        double m = 0, s = 0;
        for (uint32_t i = 0; i < N; i++) {
            m += (double)c->k[i].at.m[e];
            s += (double)c->k[i].s[e];
            size += fabs((double)c->k[i].s[e]) / SKETCH_K;
        }
        if (!(fabs(m - s) <= worst))
            worst = fabs(m - s);
    }
    return worst / size;
}

static inline double sum_q(const struct cluster *c)
{
    double sum = 0;
    for (uint32_t i = 0; i < N; i++)
        sum += c->k[i].at.q;
    return sum;
}

/* Every peer's figures are those of the sketches to `tolerance`, and of the
 * models to the sketches' own error. */
static inline void check_figures(struct cluster *c, double tolerance)
{
    double truth = sketched_xi(c), relative, exact = exact_xi(c, &relative);
    for (uint32_t i = 0; i < N; i++) {
        const struct sketch_figures *f = &c->k[i].figures;
        if (!(fabs(f->xi / truth - 1) <= tolerance) || !(fabs(f->xi / exact - 1) <= 0.15)
            || !(fabs(f->relative / relative - 1) <= 0.2))
            fail_msg("peer %u: Xi %g, sketches %g, models %g; relative %g, "
                     "exact %g",
                     i, f->xi, truth, exact, f->relative, relative);
    }
}

#endif
