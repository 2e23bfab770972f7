/* gossip/mixers/exact.c -- sends whole models to neighbours and averages them. */
#include "gossip/mixers/exact.h"

#include "gossip/mixers/correction.h"
#include "gossip/mixers/mixing.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct exact
{
    /* Vector of dim zeros. A whole model is encoded as its difference from this vector. */
    float *zero;
    /* Step size of training exchanges, greater than 0. With mixing.semidefinite, edges use less. */
    double step;
};

static const struct exact *exact_of(const struct mixing *m)
{
    return m->state;
}

int exact_open(struct mixing *m, const struct mixing_config *config)
{
    struct exact *v = m->state = calloc(1, sizeof *v);
    if (v == NULL)
        return -ENOMEM;
    assert(config->step > 0);
    v->step = config->step;
    v->zero = calloc(m->dim, sizeof *v->zero);
    return v->zero != NULL ? 0 : -ENOMEM;
}

void exact_close(struct mixing *m)
{
    struct exact *v = m->state;
    if (v == NULL)
        return;
    free(v->zero);
    free(v);
}

/*
 * Chooses the codec of an edge's next delta. A whole model replaces the replica. A correction is
 * added to the replica, so the first correction of an edge must contain all of x - x0. The first
 * line of this table whose condition is true gives the codec:
 *
 *   exact averaging pass of whole models                    DELTA_FINAL
 *   one end still trains                                    DELTA_RUN (whole model)
 *   both in the consensus phase, first delta of the edge    DELTA_CATCHUP (all of x - x0)
 *   both in the consensus phase, later deltas               DELTA_FINAL
 */
uint32_t exact_plan(struct mixing *m, const struct mixing_task *t, const struct mixing_moment *now)
{
    (void)m;
    uint64_t theirs = t->commit ? edge_theirs(t->edge)->head.run_round : t->edge->run_round;
    if (now->whole)
        return DELTA_FINAL;
    if (!now->settling || theirs < now->n_rounds)
        return DELTA_RUN;
    return mixing_edge_round(t) == 0 ? DELTA_CATCHUP : DELTA_FINAL;
}

/* A DELTA_RUN message is a whole model, which replaces the replica. Other messages are
 * corrections, which are added to the replica. */
void exact_apply(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n,
                 float *replica)
{
    if (codec == DELTA_RUN)
        memset(replica, 0, m->dim * sizeof *replica);
    mixing_add(m, codec, message, n, replica);
}

static bool corrects(const struct mixing_task *t)
{
    (void)t;
    return true;
}

/* Returns the step size if both deltas are whole models, else 0, which selects the adaptive gamma.
 * The adaptive rule needs the compression error of a codec, which only corrections report. */
static double step_of(const struct mixing *m, const struct mixing_task *t)
{
    bool models = t->ours.head.codec == DELTA_RUN && t->theirs.head.codec == DELTA_RUN;
    return models ? exact_of(m)->step * correction_most_gamma(m, t) : 0;
}

void exact_mix(struct mixing *m)
{
    correction_mix(m, corrects, step_of);
}

void exact_encode(struct mixing *m)
{
    const struct exact *v = exact_of(m);
    for (struct mixing_task *t = m->task; t < m->task + m->n_tasks; t++)
        if (t->encodes)
            mixing_put(m, t, m->x, t->codec == DELTA_RUN ? v->zero : t->replica->v);
}
