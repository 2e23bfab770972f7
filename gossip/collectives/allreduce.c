/* gossip/collectives/allreduce.c -- models become the mean that a collective has come to, or are pulled to a
 * centre that follows it. */
#include "gossip/collectives/allreduce.h"

#include "gossip/mixers/correction.h"
#include "gossip/mixers/mixing.h"
#include "nn/math/rng.h"
#include "nn/math/state.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct allreduce
{
    bool corrects; /* In the last phase: deltas are corrections from now on. */

    /* ---- sma ---- */
    bool ends; /* The last phase has begun: models take the centre's place. */
    float pull, momentum;
    float *z, *before; /* The centre, dim floats, and the one before it. NULL: of allreduce. */
    uint64_t round,
        view; /* The mean that moved it last was of these; 0: it is the run's initial model. */

    /* ---- ps ---- */
    float *base;        /* What the server said last, n_floats, after `round`. NULL: not of ps. */
    float *withheld;    /* What of our updates it was not told, dim floats; NULL without memory. */
    float *rest, *none; /* The same, once it has the push of round `pushed`; dim zeros. */
    uint64_t pushed;
};

static struct allreduce *allreduce_of(const struct mixing *m)
{
    return m->state;
}

/* A delta of training says that there is one, and no more. */
static bool is_empty(uint32_t codec)
{
    return codec == DELTA_RUN;
}

static int open_allreduce(struct mixing *m, const struct mixing_config *config)
{
    (void)config;
    m->state = calloc(1, sizeof(struct allreduce));
    return m->state != NULL ? 0 : -ENOMEM;
}

static void close_allreduce(struct mixing *m)
{
    free(m->state);
}

static void close_sma(struct mixing *m)
{
    struct allreduce *v = allreduce_of(m);
    if (v != NULL) {
        free(v->z);
        free(v->before);
    }
    free(v);
}

static void close_ps(struct mixing *m)
{
    struct allreduce *v = allreduce_of(m);
    if (v != NULL) {
        free(v->base);
        free(v->withheld);
        free(v->rest);
        free(v->none);
    }
    free(v);
}

/* A codec that leaves nothing out leaves nothing to remember. */
static int open_ps(struct mixing *m, const struct mixing_config *config)
{
    struct allreduce *v = calloc(1, sizeof *v);
    size_t dim = m->dim > 0 ? m->dim : 1;
    const char *spec = config->spec[DELTA_RUN];
    bool remembers = config->error_feedback && spec != NULL && strcmp(spec, "none") != 0;
    m->state = v;
    if (v == NULL)
        return -ENOMEM;
    v->base = calloc(m->n_floats > 0 ? m->n_floats : 1, sizeof *v->base);
    v->withheld = remembers ? calloc(dim, sizeof *v->withheld) : NULL;
    v->rest = remembers ? calloc(dim, sizeof *v->rest) : NULL;
    v->none = remembers ? calloc(dim, sizeof *v->none) : NULL;
    bool memory = v->withheld != NULL && v->rest != NULL && v->none != NULL;
    return v->base != NULL && (memory || !remembers) ? 0 : -ENOMEM;
}

static int open_sma(struct mixing *m, const struct mixing_config *config)
{
    struct allreduce *v = calloc(1, sizeof *v);
    m->state = v;
    if (v == NULL)
        return -ENOMEM;
    v->pull = (float)config->corrects;
    v->momentum = (float)config->momentum;
    v->z = calloc(m->dim > 0 ? m->dim : 1, sizeof *v->z);
    v->before = calloc(m->dim > 0 ? m->dim : 1, sizeof *v->before);
    return v->z != NULL && v->before != NULL ? 0 : -ENOMEM;
}

/* Once one end of an edge corrects, the other does, too. */
static uint32_t plan(struct mixing *m, const struct mixing_task *t, const struct mixing_moment *now)
{
    struct allreduce *v = allreduce_of(m);
    if (now->settling && t->commit)
        v->corrects |= !is_empty(edge_theirs(t->edge)->head.codec);
    return now->settling && v->corrects ? DELTA_FINAL : DELTA_RUN;
}

static bool valid(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n)
{
    return is_empty(codec) ? n == 0 : mixing_decodes(m, codec, message, n);
}

static void apply(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n,
                  float *replica)
{
    if (!is_empty(codec))
        mixing_add(m, codec, message, n, replica);
}

static bool are_corrections(const struct mixing_task *t)
{
    return !is_empty(t->ours.head.codec) && !is_empty(t->theirs.head.codec);
}

static void mix(struct mixing *m)
{
    if (m->mean != NULL)
        memcpy(m->x, m->mean, m->n_floats * sizeof *m->x);
    m->mean = NULL;
    correction_mix(m, are_corrections, NULL);
}

/* Does this mean follow the one that moved the centre last, of the same members? Else somebody has no
 * centre, or another one, and all begin with the mean. */
static bool follows(const struct mixing *m, const struct allreduce *v)
{
    return m->mean_round == v->round + 1 && (v->round == 0 || m->mean_view == v->view);
}

static void move_centre(struct mixing *m, struct allreduce *v)
{
    bool on = follows(m, v);
    if (on && v->round == 0) {
        memcpy(v->z, m->x0, m->dim * sizeof *v->z);
        memcpy(v->before, m->x0, m->dim * sizeof *v->before);
    }
    for (size_t k = 0; k < m->dim; k++) {
        float mean = m->mean[k], z = on ? mean + v->momentum * (v->z[k] - v->before[k]) : mean;
        v->before[k] = on ? v->z[k] : mean;
        v->z[k] = z;
    }
    v->round = m->mean_round;
    v->view = m->mean_view;
}

/* c = alpha (x - z) is of the centre before it moves, as in the paper. */
static void mix_sma(struct mixing *m)
{
    struct allreduce *v = allreduce_of(m);
    if (m->mean != NULL) {
        const float *from = follows(m, v) ? v->round == 0 ? m->x0 : v->z : m->mean;
        for (size_t k = 0; k < m->dim; k++)
            m->x[k] -= v->pull * (m->x[k] - from[k]);
        move_centre(m, v);
        if (v->ends)
            memcpy(m->x, v->z, m->dim * sizeof *m->x);
        memcpy(m->x + m->dim, m->mean + m->dim, (m->n_floats - m->dim) * sizeof *m->x);
    }
    m->mean = NULL;
    correction_mix(m, are_corrections, NULL);
}

/* What the server has added of our update is not told again. One of a later round than ours was made
 * without it. */
static void mix_ps(struct mixing *m)
{
    struct allreduce *v = allreduce_of(m);
    if (m->mean != NULL) {
        memcpy(m->x, m->mean, m->n_floats * sizeof *m->x);
        memcpy(v->base, m->mean, m->n_floats * sizeof *v->base);
        v->round = m->mean_round;
        if (v->withheld != NULL && v->pushed == m->mean_round && v->pushed > 0) {
            float *old = v->withheld;
            v->withheld = v->rest;
            v->rest = old;
        }
        m->fetched = false;
    }
    m->mean = NULL;
    correction_mix(m, are_corrections, NULL);
}

const float *ps_base(const struct mixing *m, uint64_t *round)
{
    const struct allreduce *v = allreduce_of(m);
    *round = v->round;
    return v->round > 0 ? v->base : m->x0;
}

size_t ps_push_bound(const struct mixing *m)
{
    return statistics_bound(&m->statistics) + compress_bound(m->codec[DELTA_RUN]);
}

/* p = e + x - base goes out as C(p), and p - C(p) stays. */
size_t ps_push(struct mixing *m, uint64_t round, uint8_t *out)
{
    struct allreduce *v = allreduce_of(m);
    uint64_t based;
    const float *base = ps_base(m, &based);
    struct compress *codec = m->codec[DELTA_RUN];
    struct compress_stat stat;
    struct compress_input in = {.draw = rng_key(m->draw_key, RNG_DRAW, round, 0),
                                .round = round,
                                .x = v->rest != NULL ? v->rest : m->x,
                                .x_hat = v->rest != NULL ? v->none : base};
    size_t len, head = statistics_put(&m->statistics, true, m->x + m->dim, out);
    for (size_t k = 0; k < m->dim && v->rest != NULL; k++)
        v->rest[k] = v->withheld[k] + (m->x[k] - base[k]);
    if (compress_encode(codec, &in, out + head, &len, &stat) != 0 || !isfinite((float)stat.x2)
        || !statistics_proper(&m->statistics, m->x + m->dim))
        return 0;
    for (size_t k = 0; k < m->dim && v->rest != NULL; k++)
        v->rest[k] = -v->rest[k];
    if (v->rest != NULL)
        compress_apply(codec, out + head, len, v->rest);
    for (size_t k = 0; k < m->dim && v->rest != NULL; k++)
        v->rest[k] = -v->rest[k];
    v->pushed = round;
    return head + len;
}

/* Statistics are in the mean, and need no way of their own. */
static void encode(struct mixing *m)
{
    const float *statistics = m->x + m->dim;
    double x2 = vec_norm2(m->x, m->dim);
    bool proper = isfinite((float)x2) && statistics_proper(&m->statistics, statistics);
    m->diverged |= !proper;
    for (struct mixing_task *t = m->task; t < m->task + m->n_tasks; t++)
        if (t->encodes && is_empty(t->codec))
            t->made->len = statistics_put(&m->statistics, false, statistics, t->made->bytes);
        else if (t->encodes)
            mixing_put(m, t, m->x, t->replica->v);
}

static void settle(struct mixing *m, bool apart)
{
    allreduce_of(m)->corrects |= apart;
}

static void settle_sma(struct mixing *m, bool apart)
{
    allreduce_of(m)->ends = true;
    settle(m, apart);
}

/* Replicas are of no model before corrections have made them one. */
static bool lags(const struct mixing *m, const struct edge *e, double most)
{
    const struct edge_sent *s = e->cur.payload != NULL ? &e->cur : &e->prev;
    if (!allreduce_of(m)->corrects || e->state != EDGE_OPEN)
        return false;
    return s->payload == NULL || is_empty(s->head.codec)
           || !((double)s->head.e2 <= most * most * m->sketch.at.q);
}

static void keep(struct mixing *m, struct state *s)
{
    state_section(s, "allreduce");
    state_bool(s, &allreduce_of(m)->corrects);
}

const struct mixer mixer_allreduce = {.name = "allreduce",
                                      .updates = true,
                                      .collects = true,
                                      .open = open_allreduce,
                                      .close = close_allreduce,
                                      .plan = plan,
                                      .valid = valid,
                                      .apply = apply,
                                      .mix = mix,
                                      .encode = encode,
                                      .settle = settle,
                                      .lags = lags,
                                      .state = keep};

static void keep_sma(struct mixing *m, struct state *s)
{
    struct allreduce *v = allreduce_of(m);
    state_section(s, "sma");
    state_bool(s, &v->corrects);
    state_bool(s, &v->ends);
    state_u64(s, &v->round);
    state_u64(s, &v->view);
    state_floats(s, v->z, m->dim, "sma.centre");
    state_floats(s, v->before, m->dim, "sma.before");
}

const struct mixer mixer_sma = {.name = "sma",
                                .updates = true,
                                .collects = true,
                                .centre = true,
                                .open = open_sma,
                                .close = close_sma,
                                .plan = plan,
                                .valid = valid,
                                .apply = apply,
                                .mix = mix_sma,
                                .encode = encode,
                                .settle = settle_sma,
                                .lags = lags,
                                .state = keep_sma};

/* Not `rest`: what was pushed is pushed again, the same bytes, after a restart. */
static void keep_ps(struct mixing *m, struct state *s)
{
    struct allreduce *v = allreduce_of(m);
    state_section(s, "ps");
    state_bool(s, &v->corrects);
    state_u64(s, &v->round);
    state_floats(s, v->base, m->n_floats, "ps.base");
    if (v->withheld != NULL)
        state_floats(s, v->withheld, m->dim, "ps.withheld");
}

const struct mixer mixer_ps = {.name = "ps",
                               .updates = true,
                               .collects = true,
                               .serves = true,
                               .open = open_ps,
                               .close = close_ps,
                               .plan = plan,
                               .valid = valid,
                               .apply = apply,
                               .mix = mix_ps,
                               .encode = encode,
                               .settle = settle,
                               .lags = lags,
                               .state = keep_ps};
