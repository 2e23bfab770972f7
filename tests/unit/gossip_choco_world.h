/* tests/unit/gossip_choco_world.h -- runs Edge-CHOCO, or another mixer, on up to WORLD_MOST peers
 * without nodes and network.
 *
 * Every two peers are joined by an edge. The test decides in which order jobs run and messages are
 * delivered.
 *
 *   job_start = plan, mix, local step, encode        job_finish = finish, send
 *
 * After any order of events, both ends of an edge must hold the same replicas bit for bit. A peer's
 * edges must share replicas exactly when they are equal. The mean must be kept, and every packet
 * must be returned (mixing_close() asserts).
 *
 * A model may end with statistics (means and variances), which local steps change with random
 * streams of their own. The weights are then the same as without statistics. */
#ifndef TESTS_UNIT_GOSSIP_CHOCO_WORLD_H
#define TESTS_UNIT_GOSSIP_CHOCO_WORLD_H

#include "gossip/mixers/average.h"
#include "gossip/mixers/mixing.h"
#include "nn/math/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifndef WORLD_MOST
#define WORLD_MOST 4
#endif

enum {
    MOST = WORLD_MOST, /* Largest number of peers. */
    DIM = 333,
    MEANS = 5,
    VARIANCES = 6, /* Numbers of statistics (MEANS and VARIANCES) that may follow the DIM floats. */
    STATS = MEANS + VARIANCES,
    QUEUE = 64
};

struct parcel
{
    struct wire_delta head;
    struct sketch_message sketch;
    uint8_t *bytes;
};

struct peer
{
    uint8_t id[WIRE_ID_BYTES];
    struct mixing c;
    /* Entry j: the edge to peer j. The entry at the peer's own index is unused. */
    struct edge e[MOST];
    bool works;
    uint32_t codec;    /* Codec with which the peer encodes. */
    uint32_t momentum; /* Momentum that the peer announces. */
    uint64_t round, n_encoded;
};

/* Settings for world_open(). */
struct world_how
{
    uint32_t n;
    const char *spec;
    double gamma; /* Fixed step size gamma. 0: the adaptive rule. */
    double step;  /* Step size of exact averaging. */
    float spread; /* Standard deviation by which the initial models x_i differ from x0. */
    const struct mixer *mixer;
    bool error_feedback;
    bool statistics;
    bool ladder; /* The peers use the codec levels of --compress auto, not one codec. */
};

struct world
{
    uint32_t n;
    struct peer peer[MOST];
    /* Messages that are under way, by sender and receiver. */
    struct parcel queue[MOST][MOST][QUEUE];
    uint32_t waiting[MOST][MOST];
    bool held[MOST][MOST]; /* True: the edge delivers no messages. */
    float step;
    /* Makes the local steps of a peer. NULL: local steps are noise of size `step`. */
    void (*local)(struct world *w, uint32_t i, float *x);
    /* Function that is called after each encoding. NULL: none. */
    void (*encoded)(struct world *w, uint32_t i);
    struct rng rng;
    double sum[DIM]; /* Sum of all models x, as it would be if only local steps had changed them. */
    bool statistics;
    uint64_t with; /* Each delta carries statistics with the probability `with` / 3. */
    struct rng statistics_rng;
    /* Sum of all statistics, as it would be if only local steps had changed them. */
    double statistics_sum[STATS];
};

enum { TRAINED = 2, SEGMENTS = 4 };

static const struct segment segments[SEGMENTS] = {
    {.name = "w", .n = 300, .rows = 20, .cols = 15, .trained = true},
    {.name = "b", .offset = 300, .n = DIM - 300, .rows = 1, .cols = DIM - 300, .trained = true},
    {.name = "mean", .offset = DIM, .n = MEANS, .rows = 1, .cols = MEANS},
    {.name = "var",
     .offset = DIM + MEANS,
     .n = VARIANCES,
     .rows = 1,
     .cols = VARIANCES,
     .nonnegative = true}};

static inline struct edge *edge_to(struct world *w, uint32_t i, uint32_t j)
{
    return &w->peer[i].e[j];
}

/* Both ends of the edge between peers i and j send their EDGE messages and agree on an epoch. anew:
 * a new epoch begins. */
static inline void agree(struct world *w, uint32_t i, uint32_t j, bool anew)
{
    struct wire_edge a, b;
    struct edge *x = edge_to(w, i, j), *y = edge_to(w, j, i);
    edge_ask(x, rng_u64(&w->rng), i, anew, &a);
    assert_true(edge_hear(y, &a));
    edge_ask(y, rng_u64(&w->rng), j, anew, &b);
    assert_false(edge_hear(x, &b));
    assert_true(edge_agree(x, i) && edge_agree(y, j));
    assert_int_equal(x->epoch, y->epoch);
}

static inline void world_open(struct world *w, const struct world_how *how)
{
    uint32_t n = how->n;
    char canonical[COMPRESS_SPEC_MAX], error[COMPRESS_ERROR_MAX];
    *w = (struct world){.n = n,
                        .rng = rng_stream(rng_key(n, RNG_TEST, 1, 0)),
                        .statistics = how->statistics,
                        .with = 3,
                        .statistics_rng = rng_stream(rng_key(n, RNG_TEST, 9, 0))};
    assert_int_equal(compress_canonical(how->spec, canonical, error), 0);
    struct mixing_config config = {.segments = segments,
                                   .n_segments = how->statistics ? SEGMENTS : TRAINED,
                                   .spec = {canonical, "fp16", "fp16"},
                                   .fixed_gamma = how->gamma,
                                   .step = how->step,
                                   .run_seed = 1,
                                   .mixer = how->mixer,
                                   .error_feedback = how->error_feedback,
                                   .complete = true};
    for (uint32_t i = 0; i < CODEC_LEVELS_RUNGS && how->ladder; i++)
        config.spec[DELTA_RUNG + i] = codec_levels_spec[i];
    if (how->ladder)
        config.spec[DELTA_RUN] = NULL;
    for (uint32_t i = 0; i < n; i++) {
        struct peer *p = &w->peer[i];
        p->codec = how->ladder ? DELTA_RUNG : DELTA_RUN;
        p->id[0] = (uint8_t)(i * 37 % 11 + 1);
        config.draw_key = i;
        assert_int_equal(mixing_init(&p->c, &config), 0);
        struct rng common = rng_stream(rng_key(7, RNG_TEST, 2, 0));
        for (size_t k = 0; k < DIM; k++) {
            p->c.x0[k] = (float)rng_normal(&common);
            p->c.x[k] = p->c.x0[k] + how->spread * (float)rng_normal(&w->rng);
            w->sum[k] += (double)p->c.x[k];
        }
        for (size_t k = 0; k < STATS && w->statistics; k++) {
            p->c.x0[DIM + k] = p->c.x[DIM + k] = k < MEANS ? 0 : 1;
            w->statistics_sum[k] += (double)p->c.x[DIM + k];
        }
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
            if (i != j)
                assert_int_equal(
                    mixing_edge_open(&w->peer[i].c, edge_to(w, i, j), w->peer[i].id, w->peer[j].id),
                    0);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++)
            agree(w, i, j, false);
}

static inline void world_init(struct world *w, uint32_t n, const char *spec, double gamma,
                              float spread)
{
    world_open(w, &(struct world_how){.n = n, .spec = spec, .gamma = gamma, .spread = spread});
}

static inline void world_close(struct world *w)
{
    for (uint32_t i = 0; i < w->n; i++) {
        for (uint32_t j = 0; j < w->n; j++) {
            if (i != j)
                mixing_edge_close(&w->peer[i].c, edge_to(w, i, j));
            for (uint32_t k = 0; k < w->waiting[i][j]; k++)
                free(w->queue[i][j][k].bytes);
        }
        assert_int_equal(w->peer[i].c.packets.live, 0);
        mixing_close(&w->peer[i].c);
    }
}

/* Moves the statistics towards values of very different sizes. */
static inline void local_statistics(struct world *w, uint32_t i)
{
    float *x = w->peer[i].c.x + DIM;
    for (size_t k = 0; k < STATS && w->statistics && w->step > 0; k++) {
        float was = x[k], v = expf(3 * (float)rng_normal(&w->statistics_rng));
        x[k] += 0.3f * ((k % 2 == 1 && k < MEANS ? -v : v) - was);
        w->statistics_sum[k] += (double)x[k] - (double)was;
    }
}

static inline void job_start(struct world *w, uint32_t i)
{
    struct peer *p = &w->peer[i];
    size_t n = 0;
    if (p->works)
        return;
    assert_int_equal(mixing_begin(&p->c, w->n), 0);
    for (uint32_t j = 0; j < w->n; j++) {
        struct edge *e = edge_to(w, i, j);
        if (i == j)
            continue;
        struct mixing_task *t = &p->c.task[n];
        *t = (struct mixing_task){.edge = e, .commit = edge_ready(e), .codec = p->codec};
        t->encode = e->state == EDGE_OPEN && (t->commit || edge_wants_delta(e));
        t->sketch = true;
        t->statistics = rng_below(&w->statistics_rng, 3) < w->with;
        n += t->commit || t->encode || e->reset;
    }
    p->c.n_tasks = n;
    struct mixing_announcement says = {
        .run_round = ++p->round, .degree = w->n - 1, .settled = i, .momentum = p->momentum};
    assert_int_equal(mixing_plan(&p->c, &says), 0);
    mixing_mix(&p->c);
    float mixed[DIM], stepped[DIM];
    memcpy(mixed, p->c.x, sizeof mixed);
    if (w->local != NULL)
        w->local(w, i, p->c.x);
    for (size_t k = 0; k < DIM && w->local == NULL && w->step > 0; k++)
        p->c.x[k] += w->step * (float)rng_normal(&w->rng);
    local_statistics(w, i);
    memcpy(stepped, p->c.x, sizeof stepped);
    mixing_encode(&p->c);
    /* Without error feedback, the part of an update that is not sent is lost. */
    bool loses = p->c.mixer->updates && average_withheld(&p->c) == NULL;
    for (size_t k = 0; k < DIM; k++)
        w->sum[k] += (double)(loses ? p->c.x[k] : stepped[k]) - (double)mixed[k];
    if (w->encoded != NULL)
        w->encoded(w, i);
    for (size_t k = 0; k < p->c.n_tasks; k++)
        p->n_encoded += p->c.task[k].encodes;
    p->works = true;
}

static inline void send(struct world *w, uint32_t i, uint32_t j, struct edge_sent *s)
{
    uint32_t *n = &w->waiting[i][j];
    assert_true(*n < QUEUE);
    struct parcel *m = &w->queue[i][j][(*n)++];
    *m = (struct parcel){.head = s->head, .sketch = s->sketch};
    const uint8_t *p = packet_bytes(s->payload, &m->head.payload.n);
    m->bytes = malloc(m->head.payload.n + 1);
    assert_non_null(m->bytes);
    memcpy(m->bytes, p, m->head.payload.n);
    m->head.payload.p = m->bytes;
}

static inline void job_finish(struct world *w, uint32_t i)
{
    struct peer *p = &w->peer[i];
    if (!p->works)
        return;
    mixing_finish(&p->c);
    assert_false(p->c.diverged);
    p->works = false;
    for (uint32_t j = 0; j < w->n; j++) {
        struct edge *e = edge_to(w, i, j);
        if (i != j && e->resend_cur && e->cur.payload != NULL)
            send(w, i, j, &e->cur);
        e->resend_cur = e->resend_prev = false;
    }
}

/* Delivers all messages from i to j. */
static inline void deliver(struct world *w, uint32_t i, uint32_t j)
{
    struct edge *e = edge_to(w, j, i);
    if (w->held[i][j])
        return;
    for (uint32_t k = 0; k < w->waiting[i][j]; k++) {
        struct parcel *m = &w->queue[i][j][k];
        enum edge_verdict v = edge_check(e, &m->head);
        assert_true(v == EDGE_ACCEPT || v == EDGE_STALE);
        assert_true(mixing_valid(&w->peer[j].c, m->head.codec, m->bytes, m->head.payload.n));
        assert_true(sketch_valid(&w->peer[j].c.sketch, &m->sketch));
        if (v == EDGE_ACCEPT)
            edge_store(e, &m->head, &m->sketch);
        free(m->bytes);
    }
    w->waiting[i][j] = 0;
}

/* Makes one step of all peers in lock step: their jobs, and then all deliveries. */
static inline void beat(struct world *w)
{
    for (uint32_t i = 0; i < w->n; i++) {
        job_start(w, i);
        job_finish(w, i);
    }
    for (uint32_t i = 0; i < w->n; i++)
        for (uint32_t j = 0; j < w->n; j++)
            deliver(w, i, j);
}

static inline void beats(struct world *w, int n)
{
    for (int t = 0; t < n; t++)
        beat(w);
}

static inline void hold(struct world *w, uint32_t i, uint32_t j, bool held)
{
    w->held[i][j] = w->held[j][i] = held;
}

/* ---- invariants ---- */

static inline void check_replicas(struct world *w)
{
    for (uint32_t i = 0; i < w->n; i++)
        for (uint32_t j = 0; j < w->n; j++) {
            const struct edge *x = edge_to(w, i, j), *y = edge_to(w, j, i);
            if (i == j || x->round != y->round || x->reset || y->reset || w->peer[i].works
                || w->peer[j].works)
                /* The replicas of the two ends may differ now: one end has done one exchange more
                 * than the other, the edge is being reset, or a job of one end runs. */
                continue;
            assert_memory_equal(x->a->v, y->b, DIM * sizeof(float));
            assert_memory_equal(&x->gamma.value, &y->gamma.value, sizeof x->gamma.value);
        }
}

/* Checks that the mean of the models is where local steps alone would have moved it. Updates that
 * error feedback has not sent yet are counted, too. */
static inline void check_mean(struct world *w, double tolerance)
{
    double worst = 0;
    for (size_t k = 0; k < DIM; k++) {
        double sum = 0;
        for (uint32_t i = 0; i < w->n; i++) {
            const struct mixing *c = &w->peer[i].c;
            sum += (double)c->x[k];
            const float *withheld = average_withheld(c);
            sum += withheld != NULL ? (double)withheld[k] : 0;
        }
        double off = fabs(sum - w->sum[k]);
        if (!(off <= worst))
            worst = off;
    }
    if (!(worst <= tolerance))
        fail_msg("the mean has moved by %g", worst);
}

/* Checks that the mean of the statistics is kept, apart from pending changes, and that all
 * variances are positive. */
static inline void check_statistics(struct world *w, double tolerance)
{
    double worst = 0;
    for (size_t k = 0; k < STATS && w->statistics; k++) {
        double sum = 0;
        for (uint32_t i = 0; i < w->n; i++) {
            const struct mixing *c = &w->peer[i].c;
            sum += (double)c->x[DIM + k] - (double)c->statistics.owed[k];
            assert_true(c->statistics.owed[k] >= 0);
            assert_true(c->x[DIM + k] > 0 || k < MEANS);
        }
        double off = fabs(sum - w->statistics_sum[k]);
        if (!(off <= worst))
            worst = off;
    }
    if (!(worst <= tolerance))
        fail_msg("the mean of the statistics has moved by %g", worst);
}

static inline double spread(struct world *w)
{
    double sum = 0;
    for (uint32_t i = 1; i < w->n; i++)
        sum += vec_dist2(w->peer[0].c.x, w->peer[i].c.x, DIM);
    return sum;
}

static inline uint32_t distinct_replicas(struct world *w, uint32_t i)
{
    uint32_t n = 0;
    for (uint32_t j = 0; j < w->n; j++) {
        bool first = i != j;
        for (uint32_t k = 0; k < j; k++)
            first &= k == i || edge_to(w, i, k)->a != edge_to(w, i, j)->a;
        n += first;
    }
    return n;
}

/* Delivers messages and runs jobs until nothing is left to do. The jobs make no new deltas. */
static inline void drain(struct world *w)
{
    for (int turn = 0; turn < 4; turn++)
        for (uint32_t i = 0; i < w->n; i++) {
            for (uint32_t j = 0; j < w->n; j++)
                deliver(w, j, i);
            job_finish(w, i);
            for (uint32_t j = 0; j < w->n; j++)
                if (i != j && edge_to(w, i, j)->state == EDGE_OPEN)
                    edge_to(w, i, j)->state = EDGE_PAUSED; /* A paused edge encodes nothing. */
            job_start(w, i);
            job_finish(w, i);
        }
    for (uint32_t i = 0; i < w->n; i++)
        for (uint32_t j = 0; j < w->n; j++)
            if (i != j)
                edge_to(w, i, j)->state = EDGE_OPEN;
}

/* Delivers all messages, checks the mean, and closes the world. */
static inline void world_end(struct world *w)
{
    drain(w);
    check_mean(w, 1e-4);
    world_close(w);
}

/* Makes 1,500 random events of four peers: jobs, messages, edges that stop delivering, and, if
 * wanted, resets. Then delivers all messages. */
static inline void random_events(struct world *w, bool resets)
{
    for (int t = 0; t < 1500; t++) {
        uint32_t i = (uint32_t)rng_below(&w->rng, 4);
        uint32_t j = (i + 1 + (uint32_t)rng_below(&w->rng, 3)) % 4;
        uint64_t dice = rng_below(&w->rng, 100);
        if (dice < 30)
            job_start(w, i);
        else if (dice < 60)
            job_finish(w, i);
        else if (dice < 97)
            deliver(w, i, j);
        else if (dice < 98 && resets)
            agree(w, i, j, true);
        else
            hold(w, i, j, rng_below(&w->rng, 4) == 0);
        check_replicas(w);
        /* The mean is not checked, because some exchanges are done at one end only. */
        check_statistics(w, (double)INFINITY);
    }
    memset(w->held, 0, sizeof w->held);
    w->step = 0;
    drain(w);
}

#endif
