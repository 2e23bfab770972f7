/* gossip/collectives/ps.c -- the worker of --mixer ps: makes pushes for the parameter server, and
 * takes over its answers. */
#include "gossip/collectives/ps.h"

#include "gossip/collectives/control_arm.h"
#include "gossip/mixers/mixing.h"
#include "nn/math/rng.h"
#include "nn/math/state.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct ps
{
    struct control_arm arm;
    float *base; /* Last model that the worker received from the server, n_floats. */
    /* Round of the server's last answer. 0: the server has not answered yet. */
    uint64_t round;
    /* Part of this peer's updates that was not sent to the server, dim floats. NULL without error
     * feedback. */
    float *withheld;
    /* rest: the part of the updates that is unsent (the new value of `withheld`) when the server
     * has added the last push of this peer. none: a vector of dim zeros. */
    float *rest, *none;
    uint64_t pushed;
};

static struct ps *ps_of(const struct mixing *m)
{
    return m->state;
}

static void close_ps(struct mixing *m)
{
    struct ps *v = ps_of(m);
    if (v != NULL) {
        free(v->base);
        free(v->withheld);
        free(v->rest);
        free(v->none);
    }
    free(v);
}

/* With a lossless codec every update is sent completely, so no memory for unsent parts is
 * allocated. */
static int open_ps(struct mixing *m, const struct mixing_config *config)
{
    struct ps *v = calloc(1, sizeof *v);
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

/* Takes over the server's answer. If it is the answer to the last push, the server has added that
 * push, so `rest` becomes the unsent part of the updates. An answer of a later round was made
 * without this push, so the unsent part does not change. */
static void mix_ps(struct mixing *m)
{
    struct ps *v = ps_of(m);
    if (v->arm.result != NULL) {
        memcpy(m->x, v->arm.result, m->n_floats * sizeof *m->x);
        memcpy(v->base, v->arm.result, m->n_floats * sizeof *v->base);
        v->round = v->arm.round;
        if (v->withheld != NULL && v->pushed == v->arm.round && v->pushed > 0) {
            float *old = v->withheld;
            v->withheld = v->rest;
            v->rest = old;
        }
        m->fetched = false;
    }
    control_arm_mix(m);
}

const float *ps_base(const struct mixing *m, uint64_t *round)
{
    const struct ps *v = ps_of(m);
    *round = v->round;
    return v->round > 0 ? v->base : m->x0;
}

size_t ps_push_bound(const struct mixing *m)
{
    return statistics_bound(&m->statistics) + compress_bound(m->codec[DELTA_RUN]);
}

/* Encodes the push C(p), where p = e + (x - base). e is `withheld`, the part of earlier updates
 * that was not sent, and x - base is the change of the model since the server's last answer. The
 * part that the codec omits, p - C(p), is kept in `rest`. */
size_t ps_push(struct mixing *m, uint64_t round, uint8_t *out)
{
    struct ps *v = ps_of(m);
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

/* `rest` is not saved in a checkpoint: after a restart the same push is encoded again with the same
 * bytes, which also computes `rest` again. */
static void keep_ps(struct mixing *m, struct state *s)
{
    struct ps *v = ps_of(m);
    state_section(s, "ps");
    state_bool(s, &v->arm.corrects);
    state_u64(s, &v->round);
    state_floats(s, v->base, m->n_floats, "ps.base");
    if (v->withheld != NULL)
        state_floats(s, v->withheld, m->dim, "ps.withheld");
}

const struct mixer mixer_ps = {.name = "ps",
                               .updates = true,
                               .round_protocol = true,
                               .open = open_ps,
                               .close = close_ps,
                               .plan = control_arm_plan,
                               .valid = control_arm_valid,
                               .apply = control_arm_apply,
                               .mix = mix_ps,
                               .encode = control_arm_encode,
                               .settle = control_arm_settle,
                               .lags = control_arm_lags,
                               .state = keep_ps};
