/* gossip/mixers/allreduce.c -- models become the mean that a collective has come to. */
#include "gossip/mixers/allreduce.h"

#include "gossip/mixers/correction.h"
#include "gossip/mixers/mixing.h"
#include "nn/math/state.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct allreduce
{
    bool corrects; /* In the last phase: deltas are corrections from now on. */
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
