/* tests/explore/momentum.c -- kinds of momentum: draws one for a plan, and makes the local steps of
 * a trainer that uses it. */
#include "cluster.h"

#include "gossip/mixers/mixer.h"
#include "nn/math/rng.h"
#include "nn/math/state.h"
#include "nn/train/averaged_momentum.h"
#include "peer/run/outer.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- drawing ---- */

const struct momentum_kind *momentum_find(const char *name)
{
    for (size_t i = 0; momentum_kind_all[i] != NULL; i++)
        if (strcmp(momentum_kind_all[i]->name, name) == 0)
            return momentum_kind_all[i];
    return NULL;
}

bool momentum_is_valid(const struct plan *p, const struct run *r)
{
    const struct momentum_kind *kind = momentum_find(p->momentum);
    if (p->momentum[0] == '\0')
        return !p->adam;
    if (kind == &momentum_local)
        return true;
    if (kind == NULL || (p->adam && !kind->adam) || run_has_outer(r))
        return false;
    if (kind->exchanged)
        return run_bars_companion(r) == NULL && (!kind->tracked || run_leaves_out(r) == NULL);
    return !run_may_overshoot(r) && (!kind->needs_constant_mixing || run_mixing_varies(r) == NULL);
}

/* Gives a plan a kind of momentum, and changes the settings that the kind cannot be combined with.
 * The plan may still be invalid afterwards, for example with a mixer that has its own topologies. */
static void use_kind(struct plan *p, const struct momentum_kind *kind, bool adam)
{
    bool precise = strcmp(p->compress, "none") == 0 || strcmp(p->compress, "qsgd:4") == 0;
    snprintf(p->momentum, PLAN_TEXT, "%s", kind->name);
    p->adam = adam;
    if (kind == &momentum_local)
        return;
    p->outer[0] = '\0';
    if (!kind->exchanged && !kind->needs_constant_mixing)
        return;
    p->trigger = 0;
    p->async = false;
    p->overlap = RUN_OVERLAP_NONE;
    if (kind->exchanged)
        p->mixer = p->collective = 0;
    if (!precise && (kind->tracked || kind->needs_constant_mixing))
        snprintf(p->compress, PLAN_TEXT, "qsgd:4");
}

/* Draws --outer with local momentum for an eighth of the plans, and otherwise a kind of momentum
 * and an optimiser. If the result is invalid, draws again. */
void plan_draw_momentum(struct plan *p)
{
    struct rng r = rng_stream(rng_key(p->seed, RNG_TEST, 0xe8, 20));
    size_t n = 0;
    while (momentum_kind_all[n] != NULL)
        n++;
    for (int try = 0; try < 20; try++) {
        struct plan q = *p;
        bool outer = plan_chance(&r, 0.125);
        const struct momentum_kind *kind =
            outer ? &momentum_local : momentum_kind_all[rng_below(&r, n)];
        use_kind(&q, kind, plan_chance(&r, 0.4));
        if (outer)
            snprintf(q.outer, PLAN_TEXT, "nesterov:0.7:0.5");
        if (plan_is_valid(&q)) {
            *p = q;
            return;
        }
    }
}

/* ---- local steps ---- */

/* With this momentum and these rates, the quadratic losses of the explorer converge with each kind
 * and with up to 8 local steps in a round. */
static const double momentum = 0.9, beta2 = 0.99, sgd_lr = 0.02, adam_lr = 0.01;

static struct optimiser optimiser_of(const struct plan *p)
{
    return (struct optimiser){.kind = p->adam ? OPTIMISER_ADAM : OPTIMISER_SGD,
                              .momentum = momentum,
                              .beta2 = beta2,
                              .use = momentum_find(p->momentum)->use};
}

uint32_t momentum_companions(const struct plan *p)
{
    const struct momentum_kind *kind = momentum_find(p->momentum);
    bool mixes = kind != NULL && kind->exchanged;
    return !mixes ? 0 : p->adam && !kind->tracked ? 2 : 1;
}

const float *momentum_companion(const struct watched *p, uint32_t v)
{
    const struct momentum_kind *kind = momentum_find(p->cluster->plan.momentum);
    return v > 0 ? p->v : kind->tracked ? p->tracking.companion : p->m;
}

static void trainer_state(void *self, struct state *s)
{
    struct watched *p = self;
    size_t n = p->cluster->plan.dim;
    state_section(s, "optimizer");
    state_u64(s, &p->n_updates);
    if (p->change.kind != NULL)
        round_momentum_state(&p->change, s);
    state_floats(s, p->m, n, "optimizer.momentum");
    state_floats(s, p->v, n, "optimizer.second");
    if (p->tracking.n > 0)
        tracking_momentum_state(&p->tracking, s);
}

static void rolled_back(void *self)
{
    tracking_momentum_rolled_back(&((struct watched *)self)->tracking);
}

void momentum_open(struct watched *p, struct trainer *t)
{
    const struct plan *plan = &p->cluster->plan;
    const struct momentum_kind *kind = momentum_find(plan->momentum);
    int err = 0;
    momentum_close(p);
    if (kind == NULL)
        return;
    if (kind->learn != NULL)
        err = round_momentum_init(&p->change, kind, plan->dim);
    if (kind->tracked)
        err = tracking_momentum_init(&p->tracking, plan->dim);
    assert(err == 0);
    memset(p->m, 0, sizeof p->m);
    memset(p->v, 0, sizeof p->v);
    p->n_updates = 0;
    t->state = trainer_state;
    t->conserved = kind->tracked;
    t->rolled_back = kind->tracked ? rolled_back : NULL;
    for (uint32_t v = 0; v < momentum_companions(plan); v++)
        t->companion[v] = (float *)(uintptr_t)momentum_companion(p, v);
}

void momentum_close(struct watched *p)
{
    round_momentum_close(&p->change);
    tracking_momentum_close(&p->tracking);
}

/* Adds `sign` times the companion vectors of a peer to the sums of their changes. With Momentum
 * Tracking, the sum of the companion and of the mean direction over the peers is 0, so the negative
 * of the mean direction is added. */
static void add_companions(struct watched *p, double sign)
{
    struct cluster *c = p->cluster;
    for (uint32_t v = 0; v < momentum_companions(&c->plan); v++)
        for (size_t k = 0; k < c->plan.dim; k++)
            c->moved_companion[v][k] += p->tracking.n > 0
                                            ? -sign * (double)p->tracking.direction[k]
                                            : sign * (double)momentum_companion(p, v)[k];
}

/* Sets grad to the gradient of one segment in local step s of a round: that of |x - target|^2 / 2,
 * and noise. */
static void gradient(const struct watched *p, const float *x, const struct segment *g, uint64_t key,
                     uint32_t s, float *grad)
{
    for (size_t k = g->offset; k < g->offset + g->n; k++) {
        float z = rng_unit_at(key, s * p->cluster->plan.dim + k);
        grad[k] = x[k] - p->target[k] + 0.3f * (2 * z - 1);
    }
}

void momentum_steps(struct watched *p, float *x, uint64_t round, uint32_t n)
{
    struct cluster *c = p->cluster;
    const struct plan *plan = &c->plan;
    static float grad[DIM_MAX];
    uint64_t key = rng_key(plan->seed, RNG_TEST, p->index, round);
    struct optimiser o = optimiser_of(plan);
    struct optimiser_step step = {.n_segments = 1,
                                  .x = x,
                                  .grad = grad,
                                  .m = p->m,
                                  .v = plan->adam ? p->v : NULL,
                                  .lr = plan->adam ? adam_lr : sgd_lr};
    bool stores = o.use == MOMENTUM_UPDATED || o.use == MOMENTUM_MIXED;
    add_companions(p, -1);
    if (p->change.kind != NULL)
        p->n_updates += round_momentum_begin(&p->change, &o, &step, round, n);
    if (p->tracking.n > 0)
        tracking_momentum_begin(&p->tracking, &step);
    if (o.use == MOMENTUM_MIXED && plan->adam)
        averaged_momentum_admit(&o, p->m, p->v, plan->dim);
    /* The last segment of the model is updated first, as in backpropagation. */
    for (size_t i = 2; i-- > 0;) {
        step.segments = &c->segment[i];
        for (uint32_t s = 0; s < n; s++) {
            gradient(p, x, step.segments, key, s, grad);
            step.t = p->n_updates + (stores ? s : 0) + 1;
            optimiser_step(&o, &step);
        }
        if (p->done_layer != NULL)
            p->done_layer(p->done_arg, step.segments->offset);
    }
    p->n_updates += stores ? n : 0;
    if (p->tracking.n > 0)
        tracking_momentum_end(&p->tracking, n);
    add_companions(p, 1);
}

void momentum_check_end(struct cluster *c)
{
    /* Rounding errors of a coordinate stay below this value. One wrong exchange is larger. */
    const double most = 1e-4;
    for (uint32_t v = 0; v < momentum_companions(&c->plan); v++) {
        double off2 = 0;
        for (size_t k = 0; k < c->plan.dim; k++) {
            double sum = -c->moved_companion[v][k];
            for (uint32_t i = 0; i < c->plan.n_peers; i++)
                sum += (double)momentum_companion(&c->peer[i], v)[k];
            off2 += sum * sum / c->plan.dim;
        }
        double off = sqrt(off2) / c->plan.n_peers;
        if (!(off <= most))
            cluster_wrong(c, WRONG_MEAN,
                          "the mean of companion vector %" PRIu32 " is wrong by %.3g", v, off);
    }
}
