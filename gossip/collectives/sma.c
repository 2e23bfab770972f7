/* gossip/collectives/sma.c -- the SMA mixer: moves the centre (a common model near the mean of all
 * models) and pulls the peer's model towards it. */
#include "gossip/collectives/sma.h"

#include "gossip/collectives/control_arm.h"
#include "gossip/mixers/mixing.h"
#include "nn/math/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sma
{
    struct control_arm arm;
    /* True: the consensus phase has begun, so mix() replaces the model by the centre (sma.h). */
    bool ends;
    float pull, momentum;
    /* The present centre, and the centre before its last move, dim floats each. */
    float *z, *before;
    /* round: round of the last mean of all models that moved the centre; 0: the centre is the
     * initial model. view: hash of the members that took part in that mean. */
    uint64_t round, view;
};

static struct sma *sma_of(const struct mixing *m)
{
    return m->state;
}

static void close_sma(struct mixing *m)
{
    struct sma *v = sma_of(m);
    if (v != NULL) {
        free(v->z);
        free(v->before);
    }
    free(v);
}

static int open_sma(struct mixing *m, const struct mixing_config *config)
{
    struct sma *v = calloc(1, sizeof *v);
    m->state = v;
    if (v == NULL)
        return -ENOMEM;
    (void)config;
    v->z = calloc(m->dim > 0 ? m->dim : 1, sizeof *v->z);
    v->before = calloc(m->dim > 0 ? m->dim : 1, sizeof *v->before);
    return v->z != NULL && v->before != NULL ? 0 : -ENOMEM;
}

void sma_set(struct mixing *m, double alpha, double mu)
{
    struct sma *v = sma_of(m);
    v->pull = (float)alpha;
    v->momentum = (float)mu;
}

/* Returns whether the received mean belongs to the round directly after the last received mean,
 * with the same members. If not, some peers may have no centre or a different one, so all peers
 * restart their centre at the mean. */
static bool follows(const struct sma *v)
{
    return v->arm.round == v->round + 1 && (v->round == 0 || v->arm.view == v->view);
}

static void move_centre(struct mixing *m, struct sma *v)
{
    bool on = follows(v);
    if (on && v->round == 0) {
        memcpy(v->z, m->x0, m->dim * sizeof *v->z);
        memcpy(v->before, m->x0, m->dim * sizeof *v->before);
    }
    for (size_t k = 0; k < m->dim; k++) {
        float mean = v->arm.result[k],
              z = on ? mean + v->momentum * (v->z[k] - v->before[k]) : mean;
        v->before[k] = on ? v->z[k] : mean;
        v->z[k] = z;
    }
    v->round = v->arm.round;
    v->view = v->arm.view;
}

/* The model is pulled to the centre before the centre moves, as in the CROSSBOW paper (sma.h). */
static void mix_sma(struct mixing *m)
{
    struct sma *v = sma_of(m);
    if (v->arm.result != NULL) {
        const float *from = follows(v) ? v->round == 0 ? m->x0 : v->z : v->arm.result;
        for (size_t k = 0; k < m->dim; k++)
            m->x[k] -= v->pull * (m->x[k] - from[k]);
        move_centre(m, v);
        if (v->ends)
            memcpy(m->x, v->z, m->dim * sizeof *m->x);
        memcpy(m->x + m->dim, v->arm.result + m->dim, (m->n_floats - m->dim) * sizeof *m->x);
    }
    control_arm_mix(m);
}

static void settle_sma(struct mixing *m, bool apart)
{
    sma_of(m)->ends = true;
    control_arm_settle(m, apart);
}

static void keep_sma(struct mixing *m, struct state *s)
{
    struct sma *v = sma_of(m);
    state_section(s, "sma");
    state_bool(s, &v->arm.corrects);
    state_bool(s, &v->ends);
    state_u64(s, &v->round);
    state_u64(s, &v->view);
    state_floats(s, v->z, m->dim, "sma.centre");
    state_floats(s, v->before, m->dim, "sma.before");
}

const struct mixer mixer_sma = {.name = "sma",
                                .updates = true,
                                .round_protocol = true,
                                .open = open_sma,
                                .close = close_sma,
                                .plan = control_arm_plan,
                                .valid = control_arm_valid,
                                .apply = control_arm_apply,
                                .mix = mix_sma,
                                .encode = control_arm_encode,
                                .settle = settle_sma,
                                .lags = control_arm_lags,
                                .state = keep_sma};
