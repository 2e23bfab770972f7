/* nn/train/round_momentum.c -- the table of the kinds of momentum, and the decision when a momentum
 * is updated by the change of the model over a round. */
#include "nn/train/round_momentum.h"

#include "nn/math/state.h"
#include "nn/train/averaged_momentum.h"
#include "nn/train/decentlam.h"
#include "nn/train/quasi_global.h"
#include "nn/train/tracking_momentum.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct momentum_kind momentum_local = {
    .name = "local", .use = MOMENTUM_UPDATED, .most = 1, .adam = true};

const struct momentum_kind *const momentum_kind_all[] = {&momentum_local,     &momentum_qg,
                                                         &momentum_decentlam, &momentum_averaged,
                                                         &momentum_tracking,  NULL};

int round_momentum_init(struct round_momentum *q, const struct momentum_kind *kind, size_t n)
{
    assert(kind->learn != NULL);
    *q = (struct round_momentum){.kind = kind, .begin = calloc(n, sizeof *q->begin), .n = n};
    return q->begin != NULL ? 0 : -ENOMEM;
}

void round_momentum_close(struct round_momentum *q)
{
    free(q->begin);
    *q = (struct round_momentum){.begin = NULL};
}

bool round_momentum_begin(struct round_momentum *q, const struct optimiser *o,
                          const struct optimiser_step *u, uint64_t round, uint32_t n_steps)
{
    struct round_change c = {.begin = q->begin,
                             .x = u->x,
                             .m = u->m,
                             .v = u->v,
                             .n = q->n,
                             .way = q->way,
                             .optimiser = o};
    bool learns = q->way > 0 && round == q->round + 1;
    assert(o->kind == OPTIMISER_SGD || q->kind->adam);
    if (learns)
        q->kind->learn(&c);
    memcpy(q->begin, u->x, q->n * sizeof *q->begin);
    q->round = round;
    q->way = u->lr * n_steps;
    return learns;
}

void round_momentum_state(struct round_momentum *q, struct state *s)
{
    state_u64(s, &q->round);
    state_f64(s, &q->way);
    state_expect(s, isfinite(q->way) && q->way >= 0, "negative or infinite learning rate");
    state_floats(s, q->begin, q->n, "optimizer.begin");
}
