/* gossip/collectives/allreduce.c -- the mixer that replaces the model by the mean from an
 * all-reduce. */
#include "gossip/collectives/allreduce.h"

#include "gossip/collectives/control_arm.h"
#include "gossip/mixers/mixing.h"
#include "nn/math/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int open_allreduce(struct mixing *m, const struct mixing_config *config)
{
    (void)config;
    m->state = calloc(1, sizeof(struct control_arm));
    return m->state != NULL ? 0 : -ENOMEM;
}

static void close_allreduce(struct mixing *m)
{
    free(m->state);
}

static void mix(struct mixing *m)
{
    const struct control_arm *v = m->state;
    if (v->result != NULL)
        memcpy(m->x, v->result, m->n_floats * sizeof *m->x);
    control_arm_mix(m);
}

static void keep(struct mixing *m, struct state *s)
{
    struct control_arm *v = m->state;
    state_section(s, "allreduce");
    state_bool(s, &v->corrects);
}

const struct mixer mixer_allreduce = {.name = "allreduce",
                                      .updates = true,
                                      .round_protocol = true,
                                      .open = open_allreduce,
                                      .close = close_allreduce,
                                      .plan = control_arm_plan,
                                      .valid = control_arm_valid,
                                      .apply = control_arm_apply,
                                      .mix = mix,
                                      .encode = control_arm_encode,
                                      .settle = control_arm_settle,
                                      .lags = control_arm_lags,
                                      .state = keep};
