/* gossip/mixers/average.c -- updates of the model, averaged with or without a memory. */
#include "gossip/mixers/average.h"

#include "gossip/mixers/correction.h"
#include "gossip/mixers/mixing.h"
#include "nn/math/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct average
{
    float *u;        /* x before the local steps of this job. */
    float *withheld; /* What of our updates is not in x; NULL without error feedback. */
    float *sum;      /* Scratch for decoded updates; behind encode, what was sent. */
    size_t n_sent;   /* Different updates that the last job encoded. */
    double lazy;     /* 1/2 where weights are halved, else 1. */
    bool corrects;   /* In the last phase: deltas are corrections from now on. */
};

/* What open_average() has made of m->state. */
static struct average *average_of(const struct mixing *m)
{
    return m->state;
}

/* The codec tells: a correction never takes the run's (plan). */
static bool is_update(uint32_t codec)
{
    return codec == DELTA_RUN;
}

/* Does this task encode an update, for itself and those that share it? */
static bool encodes_update(const struct mixing_task *t)
{
    return t->encodes && is_update(t->codec);
}

static void zero(const struct mixing *m, float *v)
{
    memset(v, 0, m->dim * sizeof *v);
}

static void copy(const struct mixing *m, float *to, const float *from)
{
    memcpy(to, from, m->dim * sizeof *to);
}

static void add_message(const struct mixing *m, struct bytes message, float *v)
{
    mixing_add(m, DELTA_RUN, message.p, message.n, v);
}

/* ---- open and close ---- */

static int open_average(struct mixing *m, const struct mixing_config *config)
{
    struct average *v = m->state = calloc(1, sizeof *v);
    bool remembers = config->error_feedback;
    if (v == NULL)
        return -ENOMEM;
    v->lazy = config->complete ? 1 : 0.5;
    v->u = calloc(m->dim, sizeof *v->u);
    v->sum = calloc(m->dim, sizeof *v->sum);
    if (remembers)
        v->withheld = calloc(m->dim, sizeof *v->withheld);
    m->replicas.with_memory = remembers;
    bool full = v->u != NULL && v->sum != NULL && (v->withheld != NULL || !remembers);
    return full ? 0 : -ENOMEM;
}

static void close_average(struct mixing *m)
{
    struct average *v = m->state;
    if (v == NULL)
        return;
    free(v->u);
    free(v->withheld);
    free(v->sum);
    free(v);
}

/* ---- plan ---- */

/* Updates are small from an edge's first round on, so there is no catching up; and
 * a correction must not be taken for an update, so it is coded DELTA_FINAL. Once one
 * end of an edge corrects, the other does, too. */
static uint32_t plan(struct mixing *m, const struct mixing_task *t, const struct mixing_moment *now)
{
    struct average *v = average_of(m);
    if (now->settling && t->commit)
        v->corrects |= !is_update(edge_theirs(t->edge)->head.codec);
    return now->settling && v->corrects ? DELTA_FINAL : DELTA_RUN;
}

/* The table for this is at the head of average.h. */
static void settle(struct mixing *m, bool apart)
{
    struct average *v = average_of(m);
    v->corrects |= v->lazy < 1 || !mixing_in_step(m) || apart;
}

/* Where deltas were updates, a and b are sums of them and of no model; mixing parts
 * models that were equal, until |x - a| is under the target. */
static bool lags(const struct mixing *m, const struct edge *e, double most)
{
    const struct edge_sent *s = e->cur.payload != NULL ? &e->cur : &e->prev;
    if (!average_of(m)->corrects || e->state != EDGE_OPEN)
        return false;
    return s->payload == NULL || is_update(s->head.codec)
           || !((double)s->head.e2 <= most * most * m->sketch.at.q);
}

static void keep(struct mixing *m, struct state *s)
{
    struct average *v = average_of(m);
    state_section(s, "average");
    state_bool(s, &v->corrects);
    if (v->withheld != NULL)
        state_floats(s, v->withheld, m->dim, "average.withheld");
}

/* ---- mix ---- */

/* Replicas that are new in this job have no memory yet. */
static void begin_memories(struct mixing *m)
{
    const struct average *v = average_of(m);
    for (struct mixing_task *t = m->task; t < m->task + m->n_tasks; t++) {
        if (t->fresh_replica)
            copy(m, t->replica->memory, v->withheld);
        if (t->source != NULL)
            copy(m, t->replica->memory, t->source->memory);
    }
}

/* The weights of all edges for which task t applies our delta. */
static double group_weight(const struct mixing *m, const struct mixing_task *t)
{
    double w = 0;
    for (const struct mixing_task *s = t; s < m->task + m->n_tasks; s++)
        if (s->commit && s->replica == t->replica && s->ours.payload == t->ours.payload)
            w += s->w;
    return w * average_of(m)->lazy;
}

/* x -= w C_own once for each delta of ours, with the weights of all its edges. */
static void commit_own(struct mixing *m)
{
    struct average *v = average_of(m);
    for (struct mixing_task *t = m->task; t < m->task + m->n_tasks; t++) {
        if (!t->applies || !is_update(t->ours.head.codec))
            continue;
        zero(m, v->sum);
        add_message(m, mixing_own(m, t), v->sum);
        vec_axpy(m->x, (float)-group_weight(m, t), v->sum, m->dim);
        if (v->withheld != NULL)
            vec_axpy(t->replica->memory, -1, v->sum, m->dim);
    }
}

/* Equal weights are the rule: such updates are added up before they reach x. */
static void commit_theirs(struct mixing *m)
{
    struct average *v = average_of(m);
    double w = 0; /* The weight of what is in sum; 0: nothing is. */
    for (struct mixing_task *t = m->task; t < m->task + m->n_tasks; t++) {
        double own = t->w * v->lazy;
        if (!t->commit || !is_update(t->theirs.head.codec))
            continue;
        if (w != own) {
            if (w > 0)
                vec_axpy(m->x, (float)w, v->sum, m->dim);
            zero(m, v->sum);
            w = own;
        }
        add_message(m, mixing_other(m, t), v->sum);
    }
    if (w > 0)
        vec_axpy(m->x, (float)w, v->sum, m->dim);
}

/* Different updates, not edges: those in step share one. */
static size_t count_updates(const struct mixing *m)
{
    size_t n = 0;
    for (const struct mixing_task *t = m->task; t < m->task + m->n_tasks; t++)
        n += encodes_update(t);
    return n;
}

/* An update of one end may meet a correction of the other, which is then no step of
 * the models: replicas alone have moved. */
static bool are_corrections(const struct mixing_task *t)
{
    return !is_update(t->ours.head.codec) && !is_update(t->theirs.head.codec);
}

static void mix(struct mixing *m)
{
    struct average *v = average_of(m);
    correction_mix(m, are_corrections, NULL);
    if (v->withheld != NULL)
        begin_memories(m);
    commit_own(m);
    commit_theirs(m);
    if (count_updates(m) > 0)
        copy(m, v->u, m->x);
}

/* ---- encode ---- */

/* Every memory gets what the local steps did; that of an edge which encodes nothing
 * in this job, too: its other end will be told later. */
static void remember(struct mixing *m)
{
    struct average *v = average_of(m);
    for (struct replica *r = m->replicas.used; r != NULL; r = r->next)
        vec_add_diff(r->memory, 1, m->x, v->u, m->dim);
    vec_add_diff(v->withheld, 1, m->x, v->u, m->dim);
}

/* A correction is Q(x - a), an update C(memory) or without one C(x - u). */
static void put(struct mixing *m, struct mixing_task *t)
{
    const struct average *v = average_of(m);
    if (!is_update(t->codec))
        mixing_put(m, t, m->x, t->replica->v);
    else if (v->withheld != NULL)
        mixing_put(m, t, t->replica->memory, v->sum); /* sum is 0. */
    else
        mixing_put(m, t, m->x, v->u);
}

/* x = u + sent + (withheld - memory), and then withheld = memory - sent. What
 * stands in brackets is 0 while all edges are in step. */
static void settle_memory(struct mixing *m, float share)
{
    struct average *v = average_of(m);
    const struct mixing_task *end = m->task + m->n_tasks;
    for (const struct mixing_task *t = m->task; t < end; t++)
        if (encodes_update(t))
            vec_add_diff(m->x, share, v->withheld, t->replica->memory, m->dim);
    zero(m, v->withheld);
    for (const struct mixing_task *t = m->task; t < end; t++)
        if (encodes_update(t))
            vec_axpy(v->withheld, share, t->replica->memory, m->dim);
    vec_axpy(v->withheld, -1, v->sum, m->dim);
}

/* What we told is what we believe: x = u + the mean of what was sent. */
static void believe(struct mixing *m)
{
    struct average *v = average_of(m);
    float share = 1.0f / (float)v->n_sent;
    zero(m, v->sum);
    for (const struct mixing_task *t = m->task; t < m->task + m->n_tasks; t++)
        if (encodes_update(t))
            add_message(m, mixing_made(m, t), v->sum);
    for (size_t k = 0; k < m->dim && v->n_sent > 1; k++)
        v->sum[k] *= share;
    copy(m, m->x, v->u);
    vec_axpy(m->x, 1, v->sum, m->dim);
    if (v->withheld != NULL)
        settle_memory(m, share);
}

static void encode(struct mixing *m)
{
    struct average *v = average_of(m);
    v->n_sent = count_updates(m);
    if (v->n_sent > 0 && v->withheld != NULL) {
        remember(m);
        zero(m, v->sum);
    }
    for (struct mixing_task *t = m->task; t < m->task + m->n_tasks; t++)
        if (t->encodes)
            put(m, t);
    if (v->n_sent > 0 && !m->diverged)
        believe(m);
}

/* The sum is scratch again with the next job's mix. */
static const float *sent(const struct mixing *m)
{
    const struct average *v = average_of(m);
    return v->n_sent > 0 && !m->diverged ? v->sum : NULL;
}

const float *average_withheld(const struct mixing *m)
{
    return m->mixer == &mixer_average ? average_of(m)->withheld : NULL;
}

const struct mixer mixer_average = {.name = "average",
                                    .updates = true,
                                    .open = open_average,
                                    .close = close_average,
                                    .plan = plan,
                                    .valid = mixing_decodes,
                                    .apply = mixing_add,
                                    .mix = mix,
                                    .encode = encode,
                                    .settle = settle,
                                    .lags = lags,
                                    .state = keep,
                                    .sent = sent};
