/* gossip/mixers/average.c -- the mixer that averages compressed updates, with or without error
 * feedback. */
#include "gossip/mixers/average.h"

#include "gossip/mixers/correction.h"
#include "gossip/mixers/mixing.h"
#include "nn/math/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct average
{
    float *u; /* Model x before the local steps of this job. */
    /* Part of the sum of all local updates that no delta has contained yet. The model x does not
     * contain this part either. NULL without error feedback. */
    float *withheld;
    /* Scratch for decoded updates. After encode(): the mean of the updates sent. */
    float *sum;
    size_t n_sent; /* Number of distinct updates that the last job encoded. */
    /* Factor of the mixing weights: 1/2 on a graph that is not complete, else 1. */
    double lazy;
    /* True: in the consensus phase this peer sends corrections (correction.h) instead of
     * updates. */
    bool corrects;
};

/* Returns the data that open_average() allocated. */
static struct average *average_of(const struct mixing *m)
{
    return m->state;
}

/* Returns whether a delta with this codec is an update (the change of the model by local steps)
 * and not a correction. Only DELTA_RUN marks updates, because plan() gives corrections another
 * codec. */
static bool is_update(uint32_t codec)
{
    return codec == DELTA_RUN;
}

/* Returns whether this task encodes an update. Other tasks may share the encoded update. */
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

/* Chooses the codec of the next delta. Corrections use DELTA_FINAL, which distinguishes them
 * from updates. Once the neighbour has sent a correction, this peer sends corrections, too.
 * DELTA_CATCHUP is not needed, because updates are small from an edge's first round on. */
static uint32_t plan(struct mixing *m, const struct mixing_task *t, const struct mixing_moment *now)
{
    struct average *v = average_of(m);
    if (now->settling && t->commit)
        v->corrects |= !is_update(edge_theirs(t->edge)->head.codec);
    return now->settling && v->corrects ? DELTA_FINAL : DELTA_RUN;
}

/* Decides between updates and corrections in the consensus phase. The table at "Consensus phase" in
 * average.h lists the conditions. */
static void settle(struct mixing *m, bool apart)
{
    struct average *v = average_of(m);
    v->corrects |= v->lazy < 1 || !mixing_in_step(m) || apart;
}

/* Returns whether the replica of edge e is too far from the model for a correction. Deltas that
 * contain updates make the replicas a and b sums of updates, which do not approximate models. A
 * correction computed from them would push equal models apart. The result is therefore true until
 * |x - a| is under the target. */
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

/* Initialises the error memory of each replica that is new in this job. */
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

/* Returns the sum of the mixing weights of all edges that share this peer's delta of task t. */
static double group_weight(const struct mixing *m, const struct mixing_task *t)
{
    double w = 0;
    for (const struct mixing_task *s = t; s < m->task + m->n_tasks; s++)
        if (s->commit && s->replica == t->replica && s->ours.payload == t->ours.payload)
            w += s->w;
    return w * average_of(m)->lazy;
}

/* Subtracts w C_own from x, once per distinct own delta. C_own is the decoded own update. w is the
 * total weight of the edges that share the delta. */
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

/* Adds w C_theirs to x for all edges. C_theirs is the neighbour's decoded update, w the edge's
 * mixing weight. Edges usually have equal weights, so the updates of consecutive edges with the
 * same weight are summed first and added to x at once. */
static void commit_theirs(struct mixing *m)
{
    struct average *v = average_of(m);
    double w = 0; /* Mixing weight of the updates that v->sum holds. 0: v->sum is empty. */
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

/* Returns the number of distinct updates that this job encodes. Edges with a common replica
 * share one update. */
static size_t count_updates(const struct mixing *m)
{
    size_t n = 0;
    for (const struct mixing_task *t = m->task; t < m->task + m->n_tasks; t++)
        n += encodes_update(t);
    return n;
}

/* Returns whether both deltas of the exchange are corrections. If one end sent an update and the
 * other end a correction, the replicas change and the models do not. */
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

/* Adds the change of x by the local steps to the error memory of every replica. An edge without a
 * delta in this job sends the change in a later delta. */
static void remember(struct mixing *m)
{
    struct average *v = average_of(m);
    for (struct replica *r = m->replicas.used; r != NULL; r = r->next)
        vec_add_diff(r->memory, 1, m->x, v->u, m->dim);
    vec_add_diff(v->withheld, 1, m->x, v->u, m->dim);
}

/* Encodes a correction Q(x - a), or an update. An update is C(memory) with error feedback. Without
 * error feedback it is C(x - u), where u is the model before the local steps. */
static void put(struct mixing *m, struct mixing_task *t)
{
    const struct average *v = average_of(m);
    if (!is_update(t->codec))
        mixing_put(m, t, m->x, t->replica->v);
    else if (v->withheld != NULL)
        /* v->sum is the vector of zeros here, because encode() has cleared it. */
        mixing_put(m, t, t->replica->memory, v->sum);
    else
        mixing_put(m, t, m->x, v->u);
}

/* With error feedback: adds to x the parts of updates that were not sent. Called by believe(),
 * after x contains the parts that were sent. x += withheld - memory, then withheld = memory - sent
 * updates. `memory` is the mean of the error memories that were encoded. If there is only one
 * memory, it equals `withheld`, and x does not change. */
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

/* Sets x = u + mean of the updates just encoded, where u is the model before the local steps. x
 * then contains only what the neighbours receive. */
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

/* v->sum holds the encoded update until the next job's mix(). */
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
