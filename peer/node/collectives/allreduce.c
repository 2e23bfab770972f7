/* peer/node/collectives/allreduce.c -- computes the mean of all models after each round
 * (all-reduce), and restarts if a member or session is lost.
 *
 * The mixers allreduce and sma use this round protocol. A `struct collective`
 * (gossip/collectives/collective.h) lists the steps, and the messages of each step between the
 * members.
 *
 *   job done --> attempt begins --all sessions are up--> step 0, 1, ... --> mean --> next job
 *                      ^                                       |
 *                      +--- the members changed, or a session was lost: attempt + 1
 *
 * Messages:
 *
 *   STEP    data of one step of the schedule
 *   AGAIN   the sender is at this attempt and has no result
 *   HAVE    answer to AGAIN: the sender has the result of this or a later round
 *   WANT    request for that result
 *   RESULT  answer to WANT: the model
 *
 * A rank is the place of a member among the vertices. A STEP names its round, attempt, view (a hash
 * of the members) and step, and is used only if all of them match. A peer that restarts the
 * collective increases the attempt and sends AGAIN to all members. A peer that receives a higher
 * attempt adopts it. Each peer therefore begins each pair of attempt and view at most once, and
 * sends each STEP of the pair at most once. Every attempt starts from the models after the local
 * steps. Until its last step, an attempt changes only the copy `stage`, so the model never contains
 * a half-finished sum if a member dies.
 *
 * When members die, some peers may already have the mean of a round while others do not. The others
 * fetch the mean with AGAIN, HAVE, WANT and RESULT. In the same way a member that returns after a
 * long absence fetches the result of a later round and skips the rounds before it.
 *
 * A member may be alive but unreachable, or members may come and go faster than their deaths are
 * detected. A peer that has lacked a session with some member for SCHEDULE_LOST_US continues with
 * its own model in place of the mean, and prints a warning. The consensus phase brings such models
 * together.
 *
 * The members are trusted, as in any all-reduce: all finite values are used. The mixers do not
 * accept --byzantine.
 */
#include "peer/node/collectives/round_protocol_state.h"

#include "gossip/collectives/sma.h"
#include "nn/math/vec.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Limits for the stored STEPs of one sender: AHEAD_MODELS times the size of a model, and
     * AHEAD_STEPS messages. */
    AHEAD_MODELS = 4,
    AHEAD_STEPS = 4 * COLLECTIVE_RANKS_MAX
};

/* A STEP message that has arrived and is not used yet. The vector v has n floats. */
struct allreduce_step
{
    struct allreduce_step *next; /* Next message in the order of arrival. NULL: no later one. */
    uint8_t id[WIRE_ID_BYTES];   /* Identity of the sender. */
    /* Round, view (hash of the members), attempt and step that the message names. */
    uint64_t round, view;
    uint32_t attempt, step;
    size_t n;
    float v[];
};

/* The member that has a given rank (place among the vertices) in the current attempt. */
struct allreduce_rank
{
    uint8_t id[WIRE_ID_BYTES];
    /* Number of the session that this attempt uses. 0 for this peer itself, and if there is no
     * session. */
    uint32_t link;
};

enum attempt_state {
    ATTEMPT_WAITS,   /* Not started: the result is known, or a session with a member is missing. */
    ATTEMPT_SENDS,   /* The STEP messages of the current step must be sent. */
    ATTEMPT_RECEIVES /* The STEPs of the current step are sent, and those of others are awaited. */
};

/* The all-reduce of one run. */
struct allreduce
{
    struct round_protocol *base;
    uint64_t round; /* Latest round that this peer began or whose result it fetched. 0: none. */
    /* Number of the current attempt in this round. 0: the first. */
    uint32_t attempt;
    uint64_t view; /* Hash of the members when the attempt began. */
    enum attempt_state state;
    /* True: the attempt made no progress for ROUND_PROTOCOL_STALL_US, and all members were asked
     * (message AGAIN). */
    bool stuck;
    /* n: number of ranks (members in the all-reduce). rank: rank of this peer. step: current
     * step. */
    uint32_t n, rank, step;
    struct allreduce_rank at[COLLECTIVE_RANKS_MAX];
    /* later_round: latest round after `round` that a message has named. later_attempt: largest
     * attempt of that round. */
    uint64_t later_round;
    uint32_t later_attempt;
    /* Last time at which an attempt began or started to send, a step was completed, or all members
     * were asked (AGAIN), in microseconds. */
    int64_t progress_us;
    struct allreduce_step *steps; /* Received STEP messages that are not used yet. */
    float *stage;                 /* Sum of the current attempt: n_floats values. */
    /* The last result was computed in attempt result_attempt. result_view: hash of the members of
     * that attempt. */
    uint64_t result_view;
    uint32_t result_attempt;
};

static void *allreduce_begin(struct round_protocol *p)
{
    struct allreduce *c = calloc(1, sizeof *c);
    const struct run *run = &p->workshop->run;
    if (c == NULL)
        return NULL;
    c->base = p;
    if (p->workshop->mixing.mixer == &mixer_sma)
        sma_set(&p->workshop->mixing, 1.0 / (run->min_peers > 0 ? run->min_peers : 1),
                run->centre_momentum);
    return c;
}

static const struct mixing *mixing_of(const struct allreduce *c)
{
    return &c->base->workshop->mixing;
}

static size_t model_bytes(const struct allreduce *c)
{
    return round_protocol_model_bytes(c->base);
}

static const struct collective *schedule(const struct allreduce *c)
{
    return collective_all[c->base->workshop->run.collective];
}

static size_t allreduce_open(void *self)
{
    struct allreduce *c = self;
    c->stage = malloc(model_bytes(c));
    return c->stage != NULL ? model_bytes(c) : 0;
}

static void drop_step(struct allreduce_step **at)
{
    struct allreduce_step *s = *at;
    *at = s->next;
    free(s);
}

static void allreduce_end(void *self)
{
    struct allreduce *c = self;
    while (c->steps != NULL)
        drop_step(&c->steps);
    free(c->stage);
    free(c);
}

static void allreduce_check(const struct allreduce *c)
{
    uint64_t rounds = c->base->workshop->run.rounds;
    bool started = c->state != ATTEMPT_WAITS;
    assert(c->base->result_round <= c->round && c->round <= rounds && c->later_round <= rounds);
    assert(c->stage != NULL || c->round == 0);
    assert(!started || c->base->result_round < c->round);
    assert(!started || (c->rank < c->n && c->n <= COLLECTIVE_RANKS_MAX));
    assert(c->progress_us <= c->base->env->now_us && c->base->wanted_us <= c->base->env->now_us);
}

static void tell_attempt(struct allreduce *c)
{
    size_t self, n = members_vertices(c->base->env->members, c->base->env->vertices, &self);
    struct wire_round_protocol m = {.word = WIRE_ROUND_PROTOCOL_AGAIN,
                                    .round = c->round,
                                    .attempt = c->attempt,
                                    .view = c->view};
    for (size_t i = 0; i < n; i++) {
        const uint8_t *id =
            members_at(c->base->env->members, c->base->env->vertices[i])->record->id;
        const struct link *l = i != self ? round_protocol_link(c->base, id) : NULL;
        if (l != NULL)
            round_protocol_send(c->base, l, m, NULL);
    }
    c->progress_us = c->base->env->now_us;
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
    assert(c->stage != NULL && c->round > c->base->result_round);
    c->attempt = attempt;
    c->view = members_view(c->base->env->members);
    c->state = ATTEMPT_WAITS;
    c->stuck = false;
    c->progress_us = c->base->env->now_us;
    drop_old(c);
}

static void again(struct allreduce *c)
{
    take_attempt(c, c->attempt + 1);
    env_note(c->base->env, NOTE_INFO,
             "round %llu: the collective operation restarts: the members or a session changed",
             (unsigned long long)c->round);
    tell_attempt(c);
}

/* Begins the first attempt at `round`. A peer that joins or resumes in the middle of the run has no
 * result of the previous round. Members in earlier rounds may wait for that result, and possibly no
 * member has it, so this peer offers its own model as the result. */
static void begin(struct allreduce *c, uint64_t round)
{
    assert(round > c->round);
    if (c->base->result_round + 1 < round) {
        memcpy(c->base->result, c->base->workshop->mixing.x, model_bytes(c));
        c->base->result_round = round - 1;
        c->result_view = 0;
        c->result_attempt = 0;
    }
    c->round = round;
    c->base->wanted_us = 0;
    take_attempt(c, c->later_round == round ? c->later_attempt : 0);
}

static void finish(struct allreduce *c)
{
    c->result_view = c->view;
    c->result_attempt = c->attempt;
    c->state = ATTEMPT_WAITS;
    round_protocol_finish(c->base, c->round, c->view);
    drop_old(c);
}

static void keep_own(struct allreduce *c, const char *why)
{
    env_note(c->base->env, NOTE_WARNING,
             "round %llu: no mean of all models: %s; this peer's model is unchanged",
             (unsigned long long)c->round, why);
    round_protocol_keep_own(c->base);
    finish(c);
}

/* The sum in `stage` becomes the result. */
static void take_stage(struct allreduce *c)
{
    float *result = c->stage;
    c->stage = c->base->result;
    c->base->result = result;
    finish(c);
}

/* Assigns ranks to the current members. Returns whether this peer has a session with each of the
 * others. */
static bool find_ranks(struct allreduce *c)
{
    size_t self, n = members_vertices(c->base->env->members, c->base->env->vertices, &self);
    bool all = true;
    assert(self < n);
    c->n = (uint32_t)n;
    c->rank = (uint32_t)self;
    for (size_t i = 0; i < n && n <= COLLECTIVE_RANKS_MAX; i++) {
        const uint8_t *id =
            members_at(c->base->env->members, c->base->env->vertices[i])->record->id;
        const struct link *l = i != self ? round_protocol_link(c->base, id) : NULL;
        memcpy(c->at[i].id, id, WIRE_ID_BYTES);
        c->at[i].link = l != NULL ? l->number : 0;
        all &= i == self || l != NULL;
    }
    return all;
}

static void start(struct allreduce *c)
{
    assert(c->state == ATTEMPT_WAITS && c->round > c->base->result_round);
    bool all = find_ranks(c), many = c->n > COLLECTIVE_RANKS_MAX;
    bool lost = !many && round_protocol_is_lost(c->base, !all);
    if (many || lost) {
        keep_own(c, many ? "more than 256 members"
                         : "a member that is alive has no session with this peer");
    } else if (all) {
        memcpy(c->stage, mixing_of(c)->x, model_bytes(c));
        c->state = ATTEMPT_SENDS;
        c->step = 0;
        c->progress_us = c->base->env->now_us;
    }
}

/* ---- steps ---- */

/* Returns the pointer in the list of received messages that points to the STEP of rank `from` for
 * the current step. NULL: this STEP has not arrived. */
static struct allreduce_step **find_step(struct allreduce *c, uint32_t from)
{
    for (struct allreduce_step **at = &c->steps; *at != NULL; at = &(*at)->next) {
        const struct allreduce_step *s = *at;
        if (s->round == c->round && s->attempt == c->attempt && s->view == c->view
            && s->step == c->step && env_same_id(s->id, c->at[from].id))
            return at;
    }
    return NULL;
}

static void span(const struct allreduce *c, uint32_t part, size_t *from, size_t *to)
{
    collective_span(mixing_of(c)->n_floats, schedule(c)->parts(c->n), part, from, to);
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
            p = round_protocol_copy(c->base, c->stage + from, (to - from) * sizeof *c->stage);
        part = op[i].part;
        if (p == NULL) {
            round_protocol_no_memory(c->base);
            return;
        }
        round_protocol_send(c->base, round_protocol_link(c->base, c->at[op[i].peer].id), m, p);
    }
    c->state = ATTEMPT_RECEIVES;
}

/* Returns whether all STEP messages that this peer needs for the current step have arrived. A STEP
 * of a wrong size is a protocol violation. */
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
        const struct link *l = round_protocol_link(c->base, c->at[op[i].peer].id);
        drop_step(at);
        /* The violation ends the session, and therefore this attempt. */
        if (l != NULL)
            sessions_violation(c->base->sessions, l,
                               "ROUND_PROTOCOL with a wrong size for its step");
        return false;
    }
    return true;
}

static void apply_step(struct allreduce *c, const struct collective_op *op, size_t n)
{
    const float *own = mixing_of(c)->x;
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
    float *sum = c->stage;
    assert(c->state != ATTEMPT_WAITS && c->n > 0);
    for (size_t k = 0; k < mixing_of(c)->n_floats; k++)
        sum[k] /= (float)c->n;
    if (round_protocol_is_model(c->base, sum))
        take_stage(c);
    else
        keep_own(c, "the sum of the members' models is not finite or has invalid statistics");
}

static void advance(struct allreduce *c)
{
    struct collective_op op[COLLECTIVE_OPS_MAX];
    uint32_t n_steps = c->n > 1 ? schedule(c)->steps(c->n) : 0;
    for (; c->step < n_steps && !c->base->env->over; c->step++, c->state = ATTEMPT_SENDS) {
        size_t n = schedule(c)->ops(c->n, c->rank, c->step, op);
        if (c->state == ATTEMPT_SENDS)
            send_step(c, op, n);
        if (c->base->env->over || !has_come(c, op, n))
            return;
        apply_step(c, op, n);
        c->stuck = false;
        c->progress_us = c->base->env->now_us;
    }
    if (!c->base->env->over)
        divide(c);
}

/* Returns whether the sessions with the members of all ranks are still the sessions with which the
 * attempt started. */
static bool is_whole(const struct allreduce *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        const struct link *l = i != c->rank ? round_protocol_link(c->base, c->at[i].id) : NULL;
        if (i != c->rank && (l == NULL || l->number != c->at[i].link))
            return false;
    }
    return true;
}

static void allreduce_look(void *self, uint64_t round, bool idle)
{
    struct allreduce *c = self;
    const struct env *v = c->base->env;
    if (!idle || !round_protocol_waits(c->base, round))
        return;
    if (round != c->round)
        begin(c, round);
    else if (c->view != members_view(v->members) || (c->state != ATTEMPT_WAITS && !is_whole(c)))
        again(c);
    if (c->state == ATTEMPT_WAITS)
        start(c);
    if (c->state != ATTEMPT_WAITS)
        advance(c);
    if (round_protocol_waits(c->base, round)
        && v->now_us - c->progress_us > ROUND_PROTOCOL_STALL_US) {
        c->stuck = true;
        tell_attempt(c);
    }
    allreduce_check(c);
}

/* ---- messages ---- */

/* Returns whether another STEP message with n floats from sender `id` can be stored. */
static bool has_room(const struct allreduce *c, const uint8_t *id, size_t n)
{
    size_t n_steps = 0;
    for (const struct allreduce_step *s = c->steps; s != NULL; s = s->next)
        if (env_same_id(s->id, id)) {
            n += s->n;
            n_steps++;
        }
    return n_steps < AHEAD_STEPS && n <= AHEAD_MODELS * mixing_of(c)->n_floats;
}

/* Drops the stored STEPs of attempts that sender `id` has given up: those before m->attempt at
 * round m->round. If they were kept, a peer that has not reached the round would store the STEPs of
 * all attempts, until a STEP exceeds the limit and counts as a violation of the sender. */
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

/* Stores a STEP. Returns NULL, or the protocol violation in words. */
static const char *keep_step(struct allreduce *c, const struct link *l,
                             const struct wire_round_protocol *m)
{
    struct allreduce_step **end = &c->steps;
    size_t n = m->payload.n / sizeof(float);
    drop_given_up(c, l->id, m);
    if (!has_room(c, l->id, n))
        return "ROUND_PROTOCOL message whose step is too far ahead";
    struct allreduce_step *s = malloc(sizeof *s + m->payload.n);
    if (s == NULL) {
        round_protocol_no_memory(c->base);
        return NULL;
    }
    *s = (struct allreduce_step){
        .round = m->round, .view = m->view, .attempt = m->attempt, .step = m->step, .n = n};
    memcpy(s->id, l->id, WIRE_ID_BYTES);
    if (n > 0)
        memcpy(s->v, m->payload.p, m->payload.n);
    if (!vec_finite(s->v, n)) {
        free(s);
        return "ROUND_PROTOCOL with a number that is not finite";
    }
    while (*end != NULL)
        end = &(*end)->next;
    *end = s;
    return NULL;
}

/* Handles STEP and AGAIN messages of a later round: records the attempt and stores a STEP. */
static const char *hear_later(struct allreduce *c, const struct link *l,
                              const struct wire_round_protocol *m)
{
    if (m->round > c->later_round)
        c->later_attempt = 0;
    if (m->round >= c->later_round) {
        c->later_round = m->round;
        c->later_attempt = m->attempt > c->later_attempt ? m->attempt : c->later_attempt;
    }
    return m->word == WIRE_ROUND_PROTOCOL_STEP ? keep_step(c, l, m) : NULL;
}

static const char *hear_present(struct allreduce *c, const struct link *l,
                                const struct wire_round_protocol *m)
{
    if (m->attempt > c->attempt)
        take_attempt(c, m->attempt);
    bool ours = m->attempt == c->attempt && m->view == c->view;
    return m->word == WIRE_ROUND_PROTOCOL_STEP && ours ? keep_step(c, l, m) : NULL;
}

static struct wire_round_protocol of_result(const struct allreduce *c,
                                            enum wire_round_protocol_word word)
{
    return (struct wire_round_protocol){.word = word,
                                        .round = c->base->result_round,
                                        .attempt = c->result_attempt,
                                        .view = c->result_view};
}

/* Handles STEP and AGAIN messages of any round. The answer to an AGAIN of a completed round is
 * HAVE. */
static const char *hear_attempt(struct allreduce *c, const struct link *l,
                                const struct wire_round_protocol *m)
{
    uint64_t have = c->base->result_round;
    if (m->round > c->round)
        return hear_later(c, l, m);
    if (m->round == c->round && have < c->round)
        return hear_present(c, l, m);
    if (m->word == WIRE_ROUND_PROTOCOL_AGAIN && have >= m->round)
        round_protocol_send(c->base, l, of_result(c, WIRE_ROUND_PROTOCOL_HAVE), NULL);
    return NULL;
}

/* Handles HAVE, which says that the sender has a result. Requests the result (WANT), unless this
 * peer's own attempt will compute the same result. A stuck attempt will not, for example because an
 * earlier process of this peer took part in it. */
static void hear_have(struct allreduce *c, const struct link *l,
                      const struct wire_round_protocol *m)
{
    bool ours = m->round == c->round && m->attempt == c->attempt && m->view == c->view && !c->stuck;
    if (m->round >= c->round && !ours)
        round_protocol_want(c->base, l, c->round);
}

static void hear_want(struct allreduce *c, const struct link *l,
                      const struct wire_round_protocol *m)
{
    struct wire_round_protocol out = of_result(c, WIRE_ROUND_PROTOCOL_RESULT);
    if (out.round >= m->round && out.round > 0)
        round_protocol_send_result(c->base, l, &out);
}

static const char *hear_result(struct allreduce *c, const struct wire_round_protocol *m)
{
    if (m->round < c->round)
        return NULL;
    memcpy(c->stage, m->payload.p, model_bytes(c));
    /* The received result has overwritten the sum of the current attempt in `stage`, so the attempt
     * must not continue. */
    c->state = ATTEMPT_WAITS;
    if (!round_protocol_is_model(c->base, c->stage))
        return "ROUND_PROTOCOL with a result that is not a model";
    c->round = m->round;
    c->attempt = m->attempt;
    c->view = m->view;
    take_stage(c);
    return NULL;
}

static const char *hear(struct allreduce *c, const struct link *l,
                        const struct wire_round_protocol *m, bool idle)
{
    bool waits = idle && round_protocol_waits(c->base, c->round);
    /* again() adds 1 to the number of the attempt, which must not overflow. */
    if (m->payload.n > model_bytes(c) || m->round == 0 || m->attempt == UINT32_MAX)
        return "ROUND_PROTOCOL with invalid fields";
    switch (m->word) {
    case WIRE_ROUND_PROTOCOL_STEP:
    case WIRE_ROUND_PROTOCOL_AGAIN:
        return hear_attempt(c, l, m);
    case WIRE_ROUND_PROTOCOL_HAVE:
        if (waits)
            hear_have(c, l, m);
        return NULL;
    case WIRE_ROUND_PROTOCOL_WANT:
        hear_want(c, l, m);
        return NULL;
    case WIRE_ROUND_PROTOCOL_RESULT:
        return waits && round_protocol_wanted(c->base) ? hear_result(c, m) : NULL;
    case WIRE_ROUND_PROTOCOL_HERE:
    case WIRE_ROUND_PROTOCOL_ASK:
    case WIRE_ROUND_PROTOCOL_PUSH:
    case WIRE_ROUND_PROTOCOL_PULL:
    case WIRE_ROUND_PROTOCOL_ROLL:
    case WIRE_ROUND_PROTOCOL_END:
        break;
    }
    return "ROUND_PROTOCOL message for a parameter server";
}

static const char *allreduce_hear(void *self, const struct link *l,
                                  const struct wire_round_protocol *m, uint64_t round, bool idle)
{
    (void)round;
    const char *wrong = hear(self, l, m, idle);
    allreduce_check(self);
    return wrong;
}

/* ---- the member that is waited for ---- */

static const uint8_t *allreduce_awaited(void *self, uint64_t round)
{
    struct allreduce *c = self;
    struct collective_op op[COLLECTIVE_OPS_MAX];
    bool started = c->state != ATTEMPT_WAITS;
    if (c->round != round || c->n < 2 || c->n > COLLECTIVE_RANKS_MAX)
        return NULL;
    for (uint32_t i = 0; i < c->n && !started; i++)
        if (i != c->rank && round_protocol_link(c->base, c->at[i].id) == NULL)
            return c->at[i].id;
    size_t n = started ? schedule(c)->ops(c->n, c->rank, c->step, op) : 0;
    for (size_t i = 0; i < n; i++)
        if (op[i].act != COLLECTIVE_SEND && op[i].peer != c->rank
            && find_step(c, op[i].peer) == NULL)
            return c->at[op[i].peer].id;
    return NULL;
}

const struct round_protocol_kind allreduce_protocol = {.name = "a collective",
                                                       .max_packets = COLLECTIVE_OPS_MAX,
                                                       .begin = allreduce_begin,
                                                       .open = allreduce_open,
                                                       .end = allreduce_end,
                                                       .look = allreduce_look,
                                                       .hear = allreduce_hear,
                                                       .awaited = allreduce_awaited};
