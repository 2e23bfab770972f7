/* gossip/collectives/control_arm.c -- functions that the baseline mixers share. These mixers send
 * empty deltas in training, and replace the model by the mean of all models or by the server's
 * answer. */
#include "gossip/collectives/control_arm.h"

#include "gossip/mixers/correction.h"
#include "gossip/mixers/mixing.h"

#include <math.h>
#include <stddef.h>

static struct control_arm *arm_of(const struct mixing *m)
{
    return m->state;
}

/* Returns whether deltas with this codec are empty. Deltas of training (DELTA_RUN) are empty: they
 * only report that the sender has done the round. */
static bool is_empty(uint32_t codec)
{
    return codec == DELTA_RUN;
}

void control_arm_give(struct mixing *m, const float *result, uint64_t round, uint64_t view)
{
    struct control_arm *v = arm_of(m);
    v->result = result;
    v->round = round;
    v->view = view;
}

/* A correction (correction.h) has an effect only if both ends of the edge send one. Once a
 * neighbour has sent a correction, this peer therefore sends corrections, too. */
uint32_t control_arm_plan(struct mixing *m, const struct mixing_task *t,
                          const struct mixing_moment *now)
{
    struct control_arm *v = arm_of(m);
    if (now->settling && t->commit)
        v->corrects |= !is_empty(edge_theirs(t->edge)->head.codec);
    return now->settling && v->corrects ? DELTA_FINAL : DELTA_RUN;
}

bool control_arm_valid(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n)
{
    return is_empty(codec) ? n == 0 : mixing_decodes(m, codec, message, n);
}

void control_arm_apply(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n,
                       float *replica)
{
    if (!is_empty(codec))
        mixing_add(m, codec, message, n, replica);
}

static bool are_corrections(const struct mixing_task *t)
{
    return !is_empty(t->ours.head.codec) && !is_empty(t->theirs.head.codec);
}

void control_arm_mix(struct mixing *m)
{
    arm_of(m)->result = NULL;
    correction_mix(m, are_corrections, NULL);
}

/* Encodes one delta for each edge: a correction, or an empty delta. Running statistics are part of
 * the averaged model, so deltas carry none. */
void control_arm_encode(struct mixing *m)
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

void control_arm_settle(struct mixing *m, bool apart)
{
    arm_of(m)->corrects |= apart;
}

/* Returns whether the edge's replica is too far from the model to mix over this edge. Returns false
 * while the mixer sends no corrections. After that, returns true until the first correction of this
 * edge is made, because the empty deltas before it have not moved the replica. */
bool control_arm_lags(const struct mixing *m, const struct edge *e, double most)
{
    const struct edge_sent *s = e->cur.payload != NULL ? &e->cur : &e->prev;
    if (!arm_of(m)->corrects || e->state != EDGE_OPEN)
        return false;
    return s->payload == NULL || is_empty(s->head.codec)
           || !((double)s->head.e2 <= most * most * m->sketch.at.q);
}
