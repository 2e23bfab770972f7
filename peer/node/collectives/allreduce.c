/* peer/node/collectives/allreduce.c -- runs an all-reduce over sessions, and restarts it if a
 * member or session is lost. */
#include "peer/node/collectives/allreduce.h"

#include "gossip/collectives/control_arm.h"
#include "gossip/collectives/sma.h"
#include "nn/math/vec.h"
#include "peer/node/timers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Limits for the stored STEPs of one sender: AHEAD_MODELS times the size of a model, and
     * AHEAD_STEPS messages. */
    AHEAD_MODELS = 4,
    AHEAD_STEPS = 4 * COLLECTIVE_RANKS_MAX
};

static void *allreduce_open(struct env *env, struct sessions *s, struct run_context *w)
{
    struct allreduce *c = malloc(sizeof *c);
    if (c == NULL)
        return NULL;
    *c = (struct allreduce){.env = env, .sessions = s, .workshop = w};
    if (w->mixing.mixer == &mixer_sma)
        sma_set(&w->mixing, 1.0 / (w->run.min_peers > 0 ? w->run.min_peers : 1),
                w->run.centre_momentum);
    return c;
}

static size_t model_bytes(const struct allreduce *c)
{
    return c->workshop->mixing.n_floats * sizeof(float);
}

static const struct collective *schedule(const struct allreduce *c)
{
    return collective_all[c->workshop->run.collective];
}

static void no_memory(struct allreduce *c)
{
    env_note(c->env, NOTE_ERROR, "out of memory for a collective");
    env_end(c->env, 1);
}

static bool open_vectors(struct allreduce *c)
{
    if (c->open)
        return true;
    c->stage = malloc(model_bytes(c));
    c->result = malloc(model_bytes(c));
    c->open = c->stage != NULL && c->result != NULL;
    if (c->open) {
        outbox_open(&c->outbox, model_bytes(c), COLLECTIVE_OPS_MAX);
        return true;
    }
    free(c->stage);
    free(c->result);
    no_memory(c);
    return false;
}

static void allreduce_release(void *self)
{
    outbox_release(&((struct allreduce *)self)->outbox);
}

static void drop_step(struct allreduce_step **at)
{
    struct allreduce_step *s = *at;
    *at = s->next;
    free(s);
}

static void allreduce_close(void *self)
{
    struct allreduce *c = self;
    outbox_close(&c->outbox);
    while (c->steps != NULL)
        drop_step(&c->steps);
    if (c->open) {
        free(c->stage);
        free(c->result);
        control_arm_give(&c->workshop->mixing, NULL, 0, 0);
    }
    free(c);
}

static void allreduce_check(const struct allreduce *c)
{
    uint64_t rounds = c->workshop->run.rounds;
    assert(c->result_round <= c->round && c->round <= rounds && c->later_round <= rounds);
    assert(c->open || (c->round == 0 && !c->started));
    assert(!c->started || c->result_round < c->round);
    assert(!c->started || (c->rank < c->n && c->n <= COLLECTIVE_RANKS_MAX));
    assert(c->progress_us <= c->env->now_us && c->wanted_us <= c->env->now_us);
}

static void tell_attempt(struct allreduce *c)
{
    size_t self, n = members_vertices(c->env->members, c->env->vertices, &self);
    struct wire_round_protocol m = {.word = WIRE_ROUND_PROTOCOL_AGAIN,
                                    .round = c->round,
                                    .attempt = c->attempt,
                                    .view = c->view};
    for (size_t i = 0; i < n; i++) {
        const uint8_t *id = members_at(c->env->members, c->env->vertices[i])->record->id;
        const struct link *l = i != self ? outbox_link(c->sessions, id) : NULL;
        if (l != NULL)
            outbox_send(c->sessions, l, m, NULL);
    }
    c->progress_us = c->env->now_us;
}

/* ---- attempts ---- */

/* Drops stored STEP messages of earlier rounds and attempts, and of other sets of members. */
static void drop_old(struct allreduce *c)
{
    for (struct allreduce_step **at = &c->steps; *at != NULL;) {
        const struct allreduce_step *s = *at;
        bool old = s->round < c->round
                   || (s->round == c->round && (s->attempt < c->attempt || s->view != c->view));
        if (old)
            drop_step(at);
        else
            at = &(*at)->next;
    }
}

static void take_attempt(struct allreduce *c, uint32_t attempt)
{
    assert(c->open && c->round > c->result_round);
    c->attempt = attempt;
    c->view = members_view(c->env->members);
    c->started = false;
    c->stuck = false;
    c->missing_us = 0;
    c->progress_us = c->env->now_us;
    drop_old(c);
}

static void again(struct allreduce *c)
{
    c->n_again++;
    take_attempt(c, c->attempt + 1);
    env_note(c->env, NOTE_INFO,
             "round %llu: the collective operation restarts: the members or a session changed",
             (unsigned long long)c->round);
    tell_attempt(c);
}

static void begin(struct allreduce *c, uint64_t round)
{
    assert(round > c->round);
    c->round = round;
    c->wanted_us = 0;
    take_attempt(c, c->later_round == round ? c->later_attempt : 0);
}

/* Passes `result` to the next job, which sets the model to it. */
static void finish(struct allreduce *c, uint64_t round)
{
    assert(c->open && round == c->round && round > c->result_round);
    c->result_round = round;
    c->result_view = c->view;
    c->result_attempt = c->attempt;
    c->started = false;
    control_arm_give(&c->workshop->mixing, c->result, round, c->view);
    drop_old(c);
}

static void keep_own(struct allreduce *c, const char *why)
{
    c->n_alone++;
    env_note(c->env, NOTE_WARNING,
             "round %llu: no mean of all models: %s; this peer's model is unchanged",
             (unsigned long long)c->round, why);
    memcpy(c->result, c->workshop->mixing.x, model_bytes(c));
    finish(c, c->round);
}

/* Assigns ranks to the current members. Returns false if this peer has no session with one of
 * them. */
static bool find_ranks(struct allreduce *c)
{
    size_t self, n = members_vertices(c->env->members, c->env->vertices, &self);
    bool all = true;
    assert(self < n);
    c->n = (uint32_t)n;
    c->rank = (uint32_t)self;
    for (size_t i = 0; i < n && n <= COLLECTIVE_RANKS_MAX; i++) {
        const uint8_t *id = members_at(c->env->members, c->env->vertices[i])->record->id;
        const struct link *l = i != self ? outbox_link(c->sessions, id) : NULL;
        memcpy(c->at[i].id, id, WIRE_ID_BYTES);
        c->at[i].link = l != NULL ? l->number : 0;
        all &= i == self || l != NULL;
    }
    return all;
}

static void start(struct allreduce *c)
{
    int64_t now = c->env->now_us;
    assert(!c->started && c->round > c->result_round);
    bool all = find_ranks(c);
    if (c->n > COLLECTIVE_RANKS_MAX) {
        keep_own(c, "more than 256 members");
    } else if (all) {
        memcpy(c->stage, c->workshop->mixing.x, model_bytes(c));
        c->started = true;
        c->missing_us = 0;
        c->sent = false;
        c->step = 0;
        c->progress_us = now;
    } else if (c->missing_us == 0) {
        c->missing_us = now;
    } else if (now - c->missing_us > SCHEDULE_LOST_US) {
        keep_own(c, "there is no session with a member that is alive");
    }
}

/* ---- steps ---- */

static bool is_present(const struct allreduce *c, const struct allreduce_step *s, uint32_t from)
{
    return s->round == c->round && s->attempt == c->attempt && s->view == c->view
           && s->step == c->step && env_same_id(s->id, c->at[from].id);
}

/* Returns the pointer in the list of received messages that points to the STEP of rank `from` for
 * the current step. NULL: this STEP has not arrived. */
static struct allreduce_step **find_step(struct allreduce *c, uint32_t from)
{
    for (struct allreduce_step **at = &c->steps; *at != NULL; at = &(*at)->next)
        if (is_present(c, *at, from))
            return at;
    return NULL;
}

static void span(const struct allreduce *c, uint32_t part, size_t *from, size_t *to)
{
    collective_span(c->workshop->mixing.n_floats, schedule(c)->parts(c->n), part, from, to);
}

static void send_step(struct allreduce *c, const struct collective_op *op, size_t n)
{
    struct packet *p = NULL;
    uint32_t part = UINT32_MAX;
    struct wire_round_protocol m = {.word = WIRE_ROUND_PROTOCOL_STEP,
                                    .round = c->round,
                                    .attempt = c->attempt,
                                    .view = c->view,
                                    .step = c->step};
    for (size_t i = 0; i < n; i++) {
        size_t from, to;
        if (op[i].act != COLLECTIVE_SEND)
            continue;
        assert(op[i].peer < c->n && op[i].peer != c->rank);
        span(c, op[i].part, &from, &to);
        if (op[i].part != part)
            p = outbox_copy(&c->outbox, c->stage + from, (to - from) * sizeof *c->stage);
        part = op[i].part;
        if (p == NULL) {
            no_memory(c);
            return;
        }
        outbox_send(c->sessions, outbox_link(c->sessions, c->at[op[i].peer].id), m, p);
    }
    c->sent = true;
}

/* Returns whether the STEP messages of all ranks for the current step have arrived. A STEP of a
 * wrong size is a protocol violation. */
static bool has_come(struct allreduce *c, const struct collective_op *op, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t from, to;
        if (op[i].act == COLLECTIVE_SEND || op[i].peer == c->rank)
            continue;
        struct allreduce_step **at = find_step(c, op[i].peer);
        if (at == NULL)
            return false;
        span(c, op[i].part, &from, &to);
        if ((*at)->n == to - from)
            continue;
        const struct link *l = outbox_link(c->sessions, c->at[op[i].peer].id);
        drop_step(at);
        /* A STEP of a wrong size is a protocol violation. It ends the session, and therefore this
         * attempt. */
        if (l != NULL)
            sessions_violation(c->sessions, l, "ROUND_PROTOCOL with a wrong size for its step");
        return false;
    }
    return true;
}

static void apply_step(struct allreduce *c, const struct collective_op *op, size_t n)
{
    const float *own = c->workshop->mixing.x;
    for (size_t i = 0; i < n; i++) {
        size_t from, to;
        if (op[i].act == COLLECTIVE_SEND)
            continue;
        span(c, op[i].part, &from, &to);
        struct allreduce_step **at = op[i].peer != c->rank ? find_step(c, op[i].peer) : NULL;
        const float *v = at != NULL ? (*at)->v : own + from;
        /* has_come() has found the STEP. A rank sends at most one STEP in each step. */
        assert(op[i].peer == c->rank || (at != NULL && (*at)->n == to - from));
        if (op[i].act == COLLECTIVE_SET)
            memcpy(c->stage + from, v, (to - from) * sizeof *v);
        else
            vec_axpy(c->stage + from, 1, v, to - from);
        if (at != NULL)
            drop_step(at);
    }
}

/* Divides the complete sum of the models by n. The sum may overflow, or its running statistics may
 * be invalid, although each model is valid. The peer then keeps its own model. */
static void divide(struct allreduce *c)
{
    const struct mixing *m = &c->workshop->mixing;
    float *sum = c->stage;
    assert(c->started && c->n > 0);
    for (size_t k = 0; k < m->n_floats; k++)
        sum[k] /= (float)c->n;
    if (!vec_finite(sum, m->n_floats) || !statistics_proper(&m->statistics, sum + m->dim)) {
        keep_own(c, "the sum of the members' models is not finite or has invalid statistics");
        return;
    }
    c->stage = c->result;
    c->result = sum;
    finish(c, c->round);
}

static void advance(struct allreduce *c)
{
    struct collective_op op[COLLECTIVE_OPS_MAX];
    uint32_t n_steps = c->n > 1 ? schedule(c)->steps(c->n) : 0;
    for (; c->step < n_steps && !c->env->over; c->step++, c->sent = false) {
        size_t n = schedule(c)->ops(c->n, c->rank, c->step, op);
        if (!c->sent)
            send_step(c, op, n);
        if (c->env->over || !has_come(c, op, n))
            return;
        apply_step(c, op, n);
        c->stuck = false;
        c->progress_us = c->env->now_us;
    }
    if (!c->env->over)
        divide(c);
}

/* Returns whether the sessions with the members of all ranks are still the sessions with which the
 * attempt started. */
static bool is_whole(const struct allreduce *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        const struct link *l = i != c->rank ? outbox_link(c->sessions, c->at[i].id) : NULL;
        if (i != c->rank && (l == NULL || l->number != c->at[i].link))
            return false;
    }
    return true;
}

static bool allreduce_waits(const void *self, uint64_t round)
{
    const struct allreduce *c = self;
    return round > c->result_round;
}

static void allreduce_look(void *self, uint64_t round, bool idle)
{
    struct allreduce *c = self;
    if (!idle || !allreduce_waits(c, round) || !open_vectors(c))
        return;
    if (round != c->round)
        begin(c, round);
    else if (c->view != members_view(c->env->members) || (c->started && !is_whole(c)))
        again(c);
    if (!c->started)
        start(c);
    if (c->started)
        advance(c);
    if (allreduce_waits(c, round) && c->env->now_us - c->progress_us > ROUND_PROTOCOL_STALL_US) {
        c->stuck = true;
        tell_attempt(c);
    }
    allreduce_check(c);
}

/* ---- messages ---- */

static bool is_sound(const struct allreduce *c, const struct wire_round_protocol *m)
{
    bool whole = m->word != WIRE_ROUND_PROTOCOL_RESULT || m->payload.n == model_bytes(c);
    /* again() counts one attempt more than the latest one. */
    return whole && m->payload.n <= model_bytes(c) && m->round > 0 && m->attempt < UINT32_MAX
           && m->round <= c->workshop->run.rounds;
}

/* Returns whether another STEP message with n floats from sender `id` can be stored. */
static bool has_room(const struct allreduce *c, const uint8_t *id, size_t n)
{
    size_t n_steps = 0;
    for (const struct allreduce_step *s = c->steps; s != NULL; s = s->next)
        if (env_same_id(s->id, id)) {
            n += s->n;
            n_steps++;
        }
    return n_steps < AHEAD_STEPS && n <= AHEAD_MODELS * c->workshop->mixing.n_floats;
}

/* Returns a copy of a STEP. NULL: there is no memory, or a value is not finite (a violation). */
static struct allreduce_step *read_step(struct allreduce *c, const struct link *l,
                                        const struct wire_round_protocol *m)
{
    size_t n = m->payload.n / sizeof(float);
    struct allreduce_step *s = malloc(sizeof *s + m->payload.n);
    if (s == NULL) {
        no_memory(c);
        return NULL;
    }
    *s = (struct allreduce_step){
        .round = m->round, .view = m->view, .attempt = m->attempt, .step = m->step, .n = n};
    memcpy(s->id, l->id, WIRE_ID_BYTES);
    if (n > 0)
        memcpy(s->v, m->payload.p, m->payload.n);
    if (vec_finite(s->v, n))
        return s;
    free(s);
    sessions_violation(c->sessions, l, "ROUND_PROTOCOL with a number that is not finite");
    return NULL;
}

/* Drops the stored STEPs of the sender's earlier attempts at this round, which it has given up. A
 * peer that has not reached the round would otherwise store the STEPs of all attempts, exceed its
 * limit, and count this as a violation of the sender. */
static void drop_given_up(struct allreduce *c, const uint8_t *id,
                          const struct wire_round_protocol *m)
{
    for (struct allreduce_step **at = &c->steps; *at != NULL;) {
        const struct allreduce_step *s = *at;
        if (s->round == m->round && s->attempt < m->attempt && env_same_id(s->id, id))
            drop_step(at);
        else
            at = &(*at)->next;
    }
}

static void keep_step(struct allreduce *c, const struct link *l,
                      const struct wire_round_protocol *m)
{
    struct allreduce_step **end = &c->steps;
    drop_given_up(c, l->id, m);
    if (!has_room(c, l->id, m->payload.n / sizeof(float))) {
        sessions_violation(c->sessions, l, "ROUND_PROTOCOL message whose step is too far ahead");
        return;
    }
    struct allreduce_step *s = read_step(c, l, m);
    while (*end != NULL)
        end = &(*end)->next;
    *end = s;
}

/* Handles STEP and AGAIN messages of a later round: records the attempt and stores a STEP. */
static void hear_later(struct allreduce *c, const struct link *l,
                       const struct wire_round_protocol *m)
{
    if (m->round > c->later_round)
        c->later_attempt = 0;
    if (m->round >= c->later_round) {
        c->later_round = m->round;
        c->later_attempt = m->attempt > c->later_attempt ? m->attempt : c->later_attempt;
    }
    if (m->word == WIRE_ROUND_PROTOCOL_STEP)
        keep_step(c, l, m);
}

static void hear_present(struct allreduce *c, const struct link *l,
                         const struct wire_round_protocol *m)
{
    if (m->attempt > c->attempt)
        take_attempt(c, m->attempt);
    if (m->word == WIRE_ROUND_PROTOCOL_STEP && m->attempt == c->attempt && m->view == c->view)
        keep_step(c, l, m);
}

static struct wire_round_protocol of_result(const struct allreduce *c,
                                            enum wire_round_protocol_word word)
{
    return (struct wire_round_protocol){.word = word,
                                        .round = c->result_round,
                                        .attempt = c->result_attempt,
                                        .view = c->result_view};
}

/* Handles STEP and AGAIN messages of any round. The answer to an AGAIN of a completed round is
 * HAVE. */
static void hear_attempt(struct allreduce *c, const struct link *l,
                         const struct wire_round_protocol *m)
{
    if (m->round > c->round)
        hear_later(c, l, m);
    else if (m->round == c->round && c->result_round < c->round)
        hear_present(c, l, m);
    else if (m->word == WIRE_ROUND_PROTOCOL_AGAIN && c->result_round >= m->round)
        outbox_send(c->sessions, l, of_result(c, WIRE_ROUND_PROTOCOL_HAVE), NULL);
}

/* Handles HAVE, which says that the sender has a result. This peer requests the result (WANT),
 * unless its own attempt at the all-reduce will compute the same result. A stuck attempt will
 * compute none, for example because an earlier process of this peer took part in it, so the result
 * is requested. */
static void hear_have(struct allreduce *c, const struct link *l,
                      const struct wire_round_protocol *m)
{
    bool ours = m->round == c->round && m->attempt == c->attempt && m->view == c->view && !c->stuck;
    bool soon = c->wanted_us > 0 && c->env->now_us - c->wanted_us < ROUND_PROTOCOL_REQUEST_US;
    if (m->round < c->round || ours || soon)
        return;
    c->wanted_us = c->env->now_us;
    c->wanted_of = l->number;
    outbox_send(c->sessions, l,
                (struct wire_round_protocol){.word = WIRE_ROUND_PROTOCOL_WANT, .round = c->round},
                NULL);
}

static void hear_want(struct allreduce *c, const struct link *l,
                      const struct wire_round_protocol *m)
{
    if (c->result_round < m->round || c->result_round == 0)
        return;
    assert(c->open);
    struct packet *p = outbox_copy(&c->outbox, c->result, model_bytes(c));
    if (p != NULL)
        outbox_send(c->sessions, l, of_result(c, WIRE_ROUND_PROTOCOL_RESULT), p);
}

static void hear_result(struct allreduce *c, const struct link *l,
                        const struct wire_round_protocol *m)
{
    const struct mixing *x = &c->workshop->mixing;
    if (m->round < c->round)
        return;
    assert(c->open && m->payload.n == model_bytes(c)); /* is_sound() */
    memcpy(c->stage, m->payload.p, m->payload.n);
    /* The received result has overwritten the sum of the current attempt in `stage`, so the attempt
     * must not continue. */
    c->started = false;
    if (!vec_finite(c->stage, x->n_floats)
        || !statistics_proper(&x->statistics, c->stage + x->dim)) {
        sessions_violation(c->sessions, l, "ROUND_PROTOCOL with a result that is not a model");
        return;
    }
    float *result = c->stage;
    c->stage = c->result;
    c->result = result;
    c->round = m->round;
    c->attempt = m->attempt;
    c->view = m->view;
    finish(c, m->round);
}

static void allreduce_hear(void *self, const struct link *l, const struct wire_round_protocol *m,
                           uint64_t round, bool idle)
{
    struct allreduce *c = self;
    (void)round;
    if (!is_sound(c, m)) {
        sessions_violation(c->sessions, l, "ROUND_PROTOCOL with invalid fields");
        return;
    }
    bool waits = idle && c->open && allreduce_waits(c, c->round);
    switch (m->word) {
    case WIRE_ROUND_PROTOCOL_STEP:
    case WIRE_ROUND_PROTOCOL_AGAIN:
        hear_attempt(c, l, m);
        break;
    case WIRE_ROUND_PROTOCOL_HAVE:
        if (waits)
            hear_have(c, l, m);
        break;
    case WIRE_ROUND_PROTOCOL_WANT:
        hear_want(c, l, m);
        break;
    case WIRE_ROUND_PROTOCOL_RESULT:
        if (waits && c->wanted_us > 0 && c->wanted_of == l->number)
            hear_result(c, l, m);
        break;
    case WIRE_ROUND_PROTOCOL_HERE:
    case WIRE_ROUND_PROTOCOL_ASK:
    case WIRE_ROUND_PROTOCOL_PUSH:
    case WIRE_ROUND_PROTOCOL_PULL:
    case WIRE_ROUND_PROTOCOL_ROLL:
    case WIRE_ROUND_PROTOCOL_END:
        sessions_violation(c->sessions, l, "ROUND_PROTOCOL message for a parameter server");
        break;
    }
    allreduce_check(c);
}

/* ---- questions ---- */

static uint64_t allreduce_completed(const void *self)
{
    return ((const struct allreduce *)self)->result_round;
}

static bool sent_its_part(const struct allreduce *c, uint32_t from)
{
    for (const struct allreduce_step *s = c->steps; s != NULL; s = s->next)
        if (is_present(c, s, from))
            return true;
    return false;
}

static const uint8_t *allreduce_awaited(const void *self, uint64_t round)
{
    const struct allreduce *c = self;
    struct collective_op op[COLLECTIVE_OPS_MAX];
    if (!allreduce_waits(c, round) || c->round != round || c->n < 2 || c->n > COLLECTIVE_RANKS_MAX)
        return NULL;
    for (uint32_t i = 0; i < c->n && !c->started; i++)
        if (i != c->rank && outbox_link(c->sessions, c->at[i].id) == NULL)
            return c->at[i].id;
    size_t n = c->started ? schedule(c)->ops(c->n, c->rank, c->step, op) : 0;
    for (size_t i = 0; i < n; i++)
        if (op[i].act != COLLECTIVE_SEND && op[i].peer != c->rank && !sent_its_part(c, op[i].peer))
            return c->at[op[i].peer].id;
    return NULL;
}

const struct round_protocol_kind allreduce_protocol = {.name = "collective",
                                                       .part = "part of the mean",
                                                       .open = allreduce_open,
                                                       .close = allreduce_close,
                                                       .release = allreduce_release,
                                                       .look = allreduce_look,
                                                       .hear = allreduce_hear,
                                                       .waits = allreduce_waits,
                                                       .awaited = allreduce_awaited,
                                                       .completed = allreduce_completed};
