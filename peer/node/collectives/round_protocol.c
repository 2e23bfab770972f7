/* peer/node/collectives/round_protocol.c -- begins the round protocol of a run, and does what all
 * kinds of protocols need. */
#include "peer/node/collectives/round_protocol_state.h"

#include "gossip/collectives/allreduce.h"
#include "gossip/collectives/control_arm.h"
#include "gossip/collectives/ps.h"
#include "gossip/collectives/sma.h"
#include "nn/math/vec.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* The interval between two requests of a result is at most 2^(WANT_DOUBLINGS - 1) times
     * ROUND_PROTOCOL_REQUEST_US. */
    WANT_DOUBLINGS = 6
};

/* ---- life ---- */

/* Returns the kind of protocol that mixer m needs. NULL: none. */
static const struct round_protocol_kind *kind_of(const struct mixer *m)
{
    if (m == &mixer_allreduce || m == &mixer_sma)
        return &allreduce_protocol;
    if (m == &mixer_ps)
        return &parameter_server_protocol;
    assert(!m->round_protocol);
    return NULL;
}

struct round_protocol *round_protocol_open(struct env *env, struct sessions *s,
                                           struct run_context *w)
{
    struct round_protocol *p = calloc(1, sizeof *p);
    if (p != NULL)
        *p = (struct round_protocol){.env = env, .sessions = s, .workshop = w};
    return p;
}

void round_protocol_close(struct round_protocol *p)
{
    assert(p == NULL || p->kind == NULL);
    free(p);
}

void round_protocol_no_memory(struct round_protocol *p)
{
    env_note(p->env, NOTE_ERROR, "out of memory for %s", p->kind->name);
    env_end(p->env, 1);
}

void round_protocol_begin(struct round_protocol *p)
{
    assert(p->workshop->ready && p->kind == NULL && p->self == NULL);
    p->kind = kind_of(p->workshop->mixing.mixer);
    if (p->kind == NULL)
        return;
    assert(p->kind->max_packets <= COLLECTIVE_OPS_MAX);
    p->self = p->kind->begin(p);
    if (p->self != NULL)
        return;
    round_protocol_no_memory(p);
    p->kind = NULL;
}

/* Allocates `result` and the vectors of the kind. On failure the node ends. */
static bool open_vectors(struct round_protocol *p)
{
    p->result = malloc(round_protocol_model_bytes(p));
    size_t bytes = p->result != NULL ? p->kind->open(p->self) : 0;
    if (bytes > 0) {
        packet_pool_init(&p->pool, bytes);
        return true;
    }
    free(p->result);
    p->result = NULL;
    round_protocol_no_memory(p);
    return false;
}

void round_protocol_end(struct round_protocol *p)
{
    if (p->kind == NULL)
        return;
    round_protocol_release(p);
    p->kind->end(p->self);
    if (p->result != NULL) {
        packet_pool_close(&p->pool);
        control_arm_give(&p->workshop->mixing, NULL, 0, 0);
        free(p->result);
    }
    *p = (struct round_protocol){.env = p->env, .sessions = p->sessions, .workshop = p->workshop};
}

bool round_protocol_is_active(const struct round_protocol *p)
{
    return p->kind != NULL;
}

/* ---- results ---- */

size_t round_protocol_model_bytes(const struct round_protocol *p)
{
    return p->workshop->mixing.n_floats * sizeof(float);
}

bool round_protocol_is_model(const struct round_protocol *p, const float *v)
{
    const struct mixing *m = &p->workshop->mixing;
    return vec_finite(v, m->n_floats) && statistics_proper(&m->statistics, v + m->dim);
}

void round_protocol_finish(struct round_protocol *p, uint64_t round, uint64_t view)
{
    assert(p->result != NULL && round > p->result_round);
    p->result_round = round;
    p->missing_us = 0;
    control_arm_give(&p->workshop->mixing, p->result, round, view);
}

void round_protocol_keep_own(struct round_protocol *p)
{
    p->n_alone++;
    memcpy(p->result, p->workshop->mixing.x, round_protocol_model_bytes(p));
}

bool round_protocol_is_lost(struct round_protocol *p, bool missing)
{
    if (!missing)
        p->missing_us = 0;
    else if (p->missing_us == 0)
        p->missing_us = p->env->now_us;
    return missing && p->env->now_us - p->missing_us > SCHEDULE_LOST_US;
}

/* ---- messages ---- */

const struct link *round_protocol_link(const struct round_protocol *p, const uint8_t *id)
{
    const struct link *l = sessions_to(p->sessions, id);
    return l != NULL && l->same_run ? l : NULL;
}

void round_protocol_release(struct round_protocol *p)
{
    while (p->n_taken > 0)
        packet_release(p->taken[--p->n_taken]);
}

bool round_protocol_has_room(const struct round_protocol *p)
{
    return p->n_taken < p->kind->max_packets;
}

struct packet *round_protocol_packet(struct round_protocol *p)
{
    assert(p->result != NULL && p->pool.live >= p->n_taken);
    struct packet *out = round_protocol_has_room(p) ? packet_get(&p->pool) : NULL;
    if (out != NULL)
        p->taken[p->n_taken++] = out;
    return out;
}

struct packet *round_protocol_copy(struct round_protocol *p, const void *bytes, size_t n)
{
    struct packet *out = round_protocol_packet(p);
    if (out == NULL)
        return NULL;
    assert(n <= out->cap);
    if (n > 0)
        memcpy(out->bytes, bytes, n);
    out->len = n;
    return out;
}

void round_protocol_send(struct round_protocol *p, const struct link *l,
                         struct wire_round_protocol m, struct packet *payload)
{
    uint8_t head[WIRE_HEAD_MAX];
    assert(l != NULL && l->used && (payload == NULL || payload->refs > 0));
    if (payload != NULL)
        m.payload.p = packet_bytes(payload, &m.payload.n);
    size_t n = wire_put_round_protocol(head, sizeof head, &m);
    assert(n > 0);
    bool any = payload != NULL && m.payload.n > 0;
    sessions_send(p->sessions, l, true, head, n, any ? payload : NULL);
}

void round_protocol_send_result(struct round_protocol *p, const struct link *l,
                                const struct wire_round_protocol *m)
{
    struct packet *out = round_protocol_copy(p, p->result, round_protocol_model_bytes(p));
    if (out != NULL)
        round_protocol_send(p, l, *m, out);
}

void round_protocol_want(struct round_protocol *p, const struct link *l, uint64_t round)
{
    struct wire_round_protocol m = {.word = WIRE_ROUND_PROTOCOL_WANT, .round = round};
    if (p->wanted_us == 0)
        p->n_wanted = 0;
    uint32_t n = p->n_wanted < WANT_DOUBLINGS ? p->n_wanted : WANT_DOUBLINGS;
    if (n > 0 && p->env->now_us - p->wanted_us < (int64_t)ROUND_PROTOCOL_REQUEST_US << (n - 1))
        return;
    p->wanted_us = p->env->now_us;
    p->n_wanted++;
    round_protocol_send(p, l, m, NULL);
}

bool round_protocol_wanted(const struct round_protocol *p)
{
    return p->wanted_us > 0;
}

/* ---- the interface of the node ---- */

void round_protocol_look(struct round_protocol *p, uint64_t round, bool idle)
{
    if (p->kind != NULL && (p->result != NULL || open_vectors(p)))
        p->kind->look(p->self, round, idle);
}

/* Returns whether a message may be part of this run. Each kind makes further checks. */
static bool is_sound(const struct round_protocol *p, const struct wire_round_protocol *m)
{
    bool whole =
        m->word != WIRE_ROUND_PROTOCOL_RESULT || m->payload.n == round_protocol_model_bytes(p);
    return whole && m->round <= p->workshop->run.rounds;
}

void round_protocol_hear(struct round_protocol *p, const struct link *l,
                         const struct wire_round_protocol *m, uint64_t round, bool idle)
{
    const char *wrong = p->kind == NULL || !is_sound(p, m)
                            ? "ROUND_PROTOCOL with invalid fields"
                            : p->kind->hear(p->self, l, m, round, idle);
    if (wrong != NULL)
        sessions_violation(p->sessions, l, wrong);
}

bool round_protocol_waits(const struct round_protocol *p, uint64_t round)
{
    return p->kind != NULL && round > p->result_round;
}

const uint8_t *round_protocol_awaited(const struct round_protocol *p, uint64_t round)
{
    return round_protocol_waits(p, round) ? p->kind->awaited(p->self, round) : NULL;
}

uint64_t round_protocol_completed(const struct round_protocol *p)
{
    return p->result_round;
}
