/* tests/unit/gossip_sketch_world.h -- averages the sketches of eight peers on a small graph. The
 * test makes each step itself, without nodes.
 *
 * A step has the order of a job: both ends mix what they have sent each other, then the step is
 * taken, then the next messages are made. */
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

/* In the tag of a message, the bits from VIEW on contain the view (the number of a set of
 * members). */
enum { N = 8, DIM = 700, VIEW = 40 };

static inline void fill(float *x, size_t n, uint64_t seed)
{
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, n, 6));
    for (size_t i = 0; i < n; i++)
        x[i] = (float)rng_normal(&r);
}

/* ---- a cluster ---- */

/* One edge: the sketch messages that both ends sent, and which of the ends have committed them. */
struct slot
{
    uint32_t i, j;
    struct sketch_pair pair[2];
    struct sketch_message said[2];
    bool full, done[2], skips; /* skips: the edge mixes nothing in this step. */
};

struct cluster
{
    struct graph g;
    struct spectrum spectrum;
    struct sketch k[N];
    float x[N][DIM];
    struct slot slot[N * N];
    size_t n_slots;
    /* Parent of each peer in each spanning tree of the tree aggregation. */
    uint32_t parent[TREE_AGGREGATION_TREES][N];
    /* Number of commits of each peer since the last step. */
    uint32_t commits[N];
    uint64_t built;
    bool away[N]; /* True: the peer is stopped, so it and its edges exchange and mix nothing. */
    /* anew: the next step begins a drift window (the rounds that give one estimate). */
    bool lock_step, anew;
    uint64_t view, round;
};

/* Sets the place of an edge in the trees, as a node does when the members change. */
static inline void place_pairs(struct cluster *c, struct slot *s)
{
    for (int end = 0; end < 2; end++) {
        uint32_t i = end == 0 ? s->i : s->j, other = end == 0 ? s->j : s->i;
        enum tree_aggregation_role role[TREE_AGGREGATION_TREES];
        for (size_t k = 0; k < TREE_AGGREGATION_TREES; k++)
            role[k] = c->parent[k][other] == i   ? TREE_AGGREGATION_CHILD
                      : c->parent[k][i] == other ? TREE_AGGREGATION_PARENT
                                                 : TREE_AGGREGATION_ASIDE;
        tree_aggregation_pair_place(&s->pair[end].survey, role, c->built);
    }
}

static inline void open_peer(struct cluster *c, uint32_t i)
{
    assert_int_equal(sketch_init(&c->k[i], 9, DIM), 0);
    for (size_t s = 0; s < c->n_slots; s++)
        if (c->slot[s].i == i || c->slot[s].j == i) {
            sketch_pair_init(&c->slot[s].pair[0]);
            sketch_pair_init(&c->slot[s].pair[1]);
            place_pairs(c, &c->slot[s]);
            c->slot[s].full = false;
        }
}

static inline void cluster_init(struct cluster *c, const char *topology, bool lock_step)
{
    *c = (struct cluster){.lock_step = lock_step, .view = UINT64_C(5) << VIEW, .built = 1};
    assert_int_equal(graph_build(&c->g, topology, N, 1), 0);
    assert_int_equal(graph_spectrum(&c->g, &c->spectrum), 0);
    for (uint32_t t = 0; t < TREE_AGGREGATION_TREES; t++)
        assert_int_equal(graph_tree(&c->g, t * N / TREE_AGGREGATION_TREES, c->parent[t]), 0);
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t e = c->g.first[i]; e < c->g.first[i + 1]; e++)
            if (c->g.neighbour[e] > i)
                c->slot[c->n_slots++] = (struct slot){.i = i, .j = c->g.neighbour[e]};
    for (uint32_t i = 0; i < N; i++) {
        open_peer(c, i);
        fill(c->x[i], DIM, 50 + i);
        /* Adding the constant 3 to every coordinate makes the mean model much longer than the
         * consensus distance. */
        for (size_t d = 0; d < DIM; d++)
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
    c->commits[i]++;
}

static inline void beat_one(struct cluster *c, uint32_t i)
{
    struct sketch_pair *pair[N];
    size_t n = 0;
    for (size_t s = 0; s < c->n_slots; s++)
        if ((c->slot[s].i == i || c->slot[s].j == i) && !is_away(c, &c->slot[s]))
            pair[n++] = &c->slot[s].pair[c->slot[s].j == i];
    struct sketch_moment now = {.view = c->view,
                                .place = {.built = c->built,
                                          .n = N,
                                          .depth = graph_eccentricity(&c->g, 0),
                                          .reach = graph_eccentricity(&c->g, 0),
                                          .lock_step = c->lock_step,
                                          .n_rounds = UINT64_MAX / 2,
                                          .pace = 1},
                                .pair = pair,
                                .n_pairs = n,
                                .n_commits = c->commits[i],
                                .anew = c->anew,
                                .gap = c->spectrum.gap,
                                .round = c->round};
    for (uint32_t t = 0; t < TREE_AGGREGATION_TREES; t++) {
        now.place.root[t] = i == t * N / TREE_AGGREGATION_TREES;
        for (uint32_t k = 0; k < N; k++)
            now.place.n_children[t] += k != i && c->parent[t][k] == i;
    }
    c->commits[i] = 0;
    sketch_beat(&c->k[i], c->x[i], &now);
}

static inline void say(struct cluster *c, struct slot *s)
{
    if (s->full && !(s->done[0] && s->done[1]))
        return; /* One of the two ends has not done the previous exchange of this edge yet. */
    for (int end = 0; end < 2; end++) {
        sketch_put(&c->k[end == 0 ? s->i : s->j], &s->pair[end], &s->said[end]);
        assert_true(sketch_valid(&c->k[0], &s->said[end]));
        s->done[end] = false;
    }
    s->full = true;
}

/* Makes one step of all peers. Edges with `skips` are not mixed at either end. */
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

/* Returns the consensus distance that exact averaging of the sketches would give. */
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

/* Compares the sums over all peers of the averages `m` and of the sketches `s` with which the drift
 * window (the rounds that give one estimate) began. Returns the largest difference, relative to the
 * mean size of an element. All peers must be in the same window. */
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

/* Checks the distances that each peer computes. They must equal the distances of exactly averaged
 * sketches up to `tolerance`, and those of the models up to the error of sketches. */
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
