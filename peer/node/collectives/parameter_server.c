/* peer/node/collectives/parameter_server.c -- the worker and the server of --mixer ps (parameter
 * server). */
#include "peer/node/collectives/parameter_server.h"

#include "gossip/collectives/control_arm.h"
#include "gossip/collectives/ps.h"
#include "nn/math/rng.h"
#include "peer/node/timers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void *parameter_server_open(struct env *env, struct sessions *sessions,
                                   struct run_context *w)
{
    struct parameter_server *s = malloc(sizeof *s);
    if (s != NULL)
        *s = (struct parameter_server){.env = env,
                                       .sessions = sessions,
                                       .workshop = w,
                                       .told = PARAMETER_SERVER_NO_LINK,
                                       .rolled_us = -ROUND_PROTOCOL_REQUEST_US};
    return s;
}

static struct mixing *mixing_of(const struct parameter_server *s)
{
    return &s->workshop->mixing;
}

static size_t model_bytes(const struct parameter_server *s)
{
    return mixing_of(s)->n_floats * sizeof(float);
}

static void no_memory(struct parameter_server *s)
{
    env_note(s->env, NOTE_ERROR, "out of memory for the parameter server");
    env_end(s->env, 1);
}

static bool is_coded(const struct parameter_server *s)
{
    return strcmp(s->workshop->run.compress, "none") != 0;
}

static void parameter_server_check(const struct parameter_server *s)
{
    uint64_t rounds = s->workshop->run.rounds;
    assert(s->open || (!s->serving && s->result_round == 0));
    assert(s->serving || (!s->ready && s->coded == NULL));
    assert(!s->serving || env_same_id(s->server, members_self(s->env->members)->id));
    assert(s->result_round <= rounds && s->pushed <= rounds && s->taken <= rounds);
    assert(s->n_push == 0 || s->pushed > 0);
    assert(s->n_missing <= CENTRE_COUNTED_MAX);
}

/* ---- open and close ---- */

/* Allocates the vectors, and sets `result` to the model with which the local steps start. The first
 * call is made before the first job, so no job can write this model during the call. */
static bool open_vectors(struct parameter_server *s)
{
    size_t bound = ps_push_bound(mixing_of(s)), whole = model_bytes(s);
    if (s->open)
        return true;
    s->result = malloc(whole);
    s->push = malloc(bound);
    if (s->result == NULL || s->push == NULL) {
        free(s->result);
        free(s->push);
        no_memory(s);
        return false;
    }
    outbox_open(&s->outbox, bound > whole ? bound : whole, PARAMETER_SERVER_OUT_MAX);
    memcpy(s->result, ps_base(mixing_of(s), &s->result_round), whole);
    s->open = true;
    return true;
}

static void parameter_server_release(void *self)
{
    outbox_release(&((struct parameter_server *)self)->outbox);
}

static void stop_serving(struct parameter_server *s)
{
    if (s->serving)
        centre_close(&s->centre);
    free(s->coded);
    s->coded = NULL;
    s->serving = s->ready = false;
}

static void parameter_server_close(void *self)
{
    struct parameter_server *s = self;
    outbox_close(&s->outbox);
    stop_serving(s);
    if (s->open) {
        free(s->result);
        free(s->push);
        control_arm_give(mixing_of(s), NULL, 0, 0);
    }
    free(s);
}

static void say_model(struct parameter_server *s, const struct link *l)
{
    struct wire_round_protocol m = {.word = WIRE_ROUND_PROTOCOL_RESULT, .round = s->result_round};
    struct packet *p = outbox_copy(&s->outbox, s->result, model_bytes(s));
    if (p != NULL)
        outbox_send(s->sessions, l, m, p);
}

static bool parameter_server_waits(const void *self, uint64_t round)
{
    return round > ((const struct parameter_server *)self)->result_round;
}

/* ---- a worker ---- */

/* Passes the server's answer to the next job, which sets the model to it. */
static void finish(struct parameter_server *s, uint64_t round)
{
    assert(s->open && round > s->result_round);
    s->result_round = round;
    s->said = false;
    s->missing_us = 0;
    control_arm_give(mixing_of(s), s->result, round, members_view(s->env->members));
}

static void keep_own(struct parameter_server *s, uint64_t round)
{
    s->n_alone++;
    env_note(s->env, NOTE_WARNING,
             "round %llu: no session with the parameter server, which is alive; this peer's model "
             "is unchanged",
             (unsigned long long)round);
    memcpy(s->result, mixing_of(s)->x, model_bytes(s));
    finish(s, round);
    s->told = PARAMETER_SERVER_NO_LINK;
}

/* Makes the update of `round` at the first call in the round. A worker makes no update (n_push is
 * 0) if it has fetched its model, or if its local steps did not start from the server's previous
 * answer. */
static void make_push(struct parameter_server *s, uint64_t round)
{
    struct mixing *m = mixing_of(s);
    uint64_t based;
    assert(round > s->result_round && round >= s->pushed);
    if (s->pushed == round)
        return;
    (void)ps_base(m, &based);
    s->n_push = !m->fetched && based + 1 == round ? ps_push(m, round, s->push) : 0;
    s->pushed = round;
    assert(s->n_push <= ps_push_bound(m));
}

static void tell_server(struct parameter_server *s, const struct link *l, uint64_t round, bool idle)
{
    struct wire_round_protocol m = {.round = round};
    assert(!s->serving && l->number != PARAMETER_SERVER_NO_LINK);
    if (s->told != l->number) {
        m.word = WIRE_ROUND_PROTOCOL_HERE;
        m.view = s->result_round;
        outbox_send(s->sessions, l, m, NULL);
        s->told = l->number;
        s->said = false;
    }
    if (!idle || s->said || !parameter_server_waits(s, round))
        return;
    make_push(s, round);
    struct packet *p = s->n_push > 0 ? outbox_copy(&s->outbox, s->push, s->n_push) : NULL;
    if (p == NULL && s->n_push > 0)
        return;
    m.word = p != NULL ? WIRE_ROUND_PROTOCOL_PUSH : WIRE_ROUND_PROTOCOL_ASK;
    m.view = p != NULL ? 0 : s->result_round;
    outbox_send(s->sessions, l, m, p);
    s->said = true;
}

static void work(struct parameter_server *s, uint64_t round, bool idle)
{
    const struct link *l = outbox_link(s->sessions, s->server);
    int64_t now = s->env->now_us;
    if (l != NULL) {
        s->missing_us = 0;
        tell_server(s, l, round, idle);
    } else if (!idle || !parameter_server_waits(s, round)) {
        s->missing_us = 0;
    } else if (s->missing_us == 0) {
        s->missing_us = now;
    } else if (now - s->missing_us > SCHEDULE_LOST_US) {
        keep_own(s, round);
    }
}

/* ---- the server ---- */

static int open_answers(const struct parameter_server *s, struct compress **codec)
{
    const struct trainer *t = &s->workshop->trainer;
    size_t n = 0;
    *codec = NULL;
    while (n < t->n_segments && t->segments[n].trained)
        n++;
    return is_coded(s) ? compress_open(codec, s->workshop->run.compress, t->segments, n) : 0;
}

/* Starts the server. Its first model is the last answer that this peer's worker received from a
 * server, or a model that this peer fetched from a neighbour. */
static bool begin_serving(struct parameter_server *s)
{
    assert(s->open && !s->serving && !s->ready && s->coded == NULL);
    const struct run *run = &s->workshop->run;
    struct mixing *m = mixing_of(s);
    struct centre_config g = {.mixing = m,
                              .rounds = run->rounds,
                              .draw_key = rng_key(run->seed, RNG_DRAW, UINT64_MAX, 0),
                              .sync = run->policy == RUN_SYNC,
                              .bounded = run->policy != RUN_ASYNC,
                              .staleness = run_staleness(run),
                              .z = m->fetched ? m->x : s->result,
                              .round = s->result_round};
    if (open_answers(s, &g.codec) != 0 || centre_open(&s->centre, &g) != 0) {
        no_memory(s);
        return false;
    }
    s->coded = malloc(centre_bound(&s->centre) + 1);
    s->serving = true;
    s->begun_us = s->env->now_us;
    s->said = false;
    s->taken = s->result_round;
    s->wanted_us = 0;
    if (s->coded == NULL)
        no_memory(s);
    return s->coded != NULL;
}

/* Returns the time since which there is no session to the member, in microseconds. If the session
 * was lost just now, records and returns the present time. */
static int64_t missing_since(struct parameter_server *s, const uint8_t *id)
{
    for (uint32_t i = 0; i < s->n_missing; i++)
        if (env_same_id(s->missing[i].id, id))
            return s->missing[i].since_us;
    if (s->n_missing == CENTRE_COUNTED_MAX)
        return s->env->now_us;
    memcpy(s->missing[s->n_missing].id, id, WIRE_ID_BYTES);
    s->missing[s->n_missing++].since_us = s->env->now_us;
    return s->env->now_us;
}

static void found_again(struct parameter_server *s, const uint8_t *id)
{
    for (uint32_t i = 0; i < s->n_missing; i++)
        if (env_same_id(s->missing[i].id, id))
            s->missing[i] = s->missing[--s->n_missing];
}

static const struct record *at_vertex(const struct parameter_server *s, size_t i)
{
    return members_at(s->env->members, s->env->vertices[i])->record;
}

/* Asks worker w to report its round (ROLL), once per session, if the worker has not reported since
 * this peer became the server. An earlier report does not count. */
static void ask_worker(struct parameter_server *s, struct centre_worker *w)
{
    const struct link *l = w != NULL && !w->spoke ? outbox_link(s->sessions, w->id) : NULL;
    if (l == NULL || s->env->now_us - s->begun_us < ROUND_PROTOCOL_REPORTS_US
        || w->asked == (uint64_t)l->number + 1)
        return;
    w->asked = (uint64_t)l->number + 1;
    outbox_send(s->sessions, l, (struct wire_round_protocol){.word = WIRE_ROUND_PROTOCOL_ROLL},
                NULL);
}

/* Counts the workers for which the server waits: live members that have not finished. Members
 * without a session for more than SCHEDULE_LOST_US are left out. */
static void count_workers(struct parameter_server *s)
{
    size_t self, n = members_vertices(s->env->members, s->env->vertices, &self);
    centre_clear(&s->centre);
    for (size_t i = 0; i < n; i++) {
        const struct record *r = at_vertex(s, i);
        bool talks = i == self || outbox_link(s->sessions, r->id) != NULL;
        if (i != self && record_state_is_final(r->state))
            continue;
        if (talks)
            found_again(s, r->id);
        if (talks || s->env->now_us - missing_since(s, r->id) <= SCHEDULE_LOST_US)
            ask_worker(s, centre_count(&s->centre, r->id));
    }
}

/* Returns whether the server can start: all workers for which it waits have reported (HERE), and no
 * worker has a later model than the server. If a worker has a later model, requests that model
 * (WANT). */
static bool is_ready(struct parameter_server *s)
{
    struct centre *c = &s->centre;
    const struct centre_worker *ahead = NULL;
    for (uint32_t i = 0; i < c->n_counted; i++) {
        const struct centre_worker *w = c->counted[i];
        if (!w->spoke)
            return false;
        if (w->have > s->taken && (ahead == NULL || w->have > ahead->have))
            ahead = w;
    }
    const struct link *l = ahead != NULL ? outbox_link(s->sessions, ahead->id) : NULL;
    bool soon = s->wanted_us > 0 && s->env->now_us - s->wanted_us < ROUND_PROTOCOL_REQUEST_US;
    if (l != NULL && !soon) {
        s->wanted_us = s->env->now_us;
        s->wanted_of = l->number;
        outbox_send(
            s->sessions, l,
            (struct wire_round_protocol){.word = WIRE_ROUND_PROTOCOL_WANT, .round = ahead->have},
            NULL);
    }
    return ahead == NULL;
}

static struct centre_worker *own_worker(struct parameter_server *s)
{
    return centre_find(&s->centre, members_self(s->env->members)->id);
}

/* Gives the round and the update of this peer's own worker directly to the server. Other workers
 * send them in messages (work()). */
static void work_here(struct parameter_server *s, uint64_t round, bool idle)
{
    struct centre_worker *own = own_worker(s);
    assert(own != NULL); /* count_workers() counts it first. */
    if (!own->spoke)
        centre_here(&s->centre, own, round, s->result_round);
    if (!idle || s->said || !s->ready || !parameter_server_waits(s, round))
        return;
    make_push(s, round);
    s->said = true;
    if (s->n_push == 0)
        centre_ask(own, round);
    else if (centre_push(&s->centre, own, round, s->push, s->n_push) == CENTRE_NO_MEMORY)
        no_memory(s);
}

/* Sends an answer of the server to the workers that the answer names. This peer's own worker takes
 * the answer without a message. */
static void tell_workers(struct parameter_server *s, const struct centre_answer *a)
{
    const struct mixing *m = mixing_of(s);
    struct packet *p = outbox_take(&s->outbox);
    struct wire_round_protocol word = {.word = a->whole ? WIRE_ROUND_PROTOCOL_RESULT
                                                        : WIRE_ROUND_PROTOCOL_PULL,
                                       .round = a->round};
    if (p == NULL) {
        no_memory(s);
        return;
    }
    p->len = a->whole ? model_bytes(s) : a->n_coded;
    assert(a->n > 0 && p->len <= p->cap);
    if (a->whole) {
        memcpy(p->bytes, a->model, m->dim * sizeof *a->model);
        memcpy(p->bytes + m->dim * sizeof *a->model, a->statistics,
               m->statistics.n * sizeof *a->statistics);
    } else {
        memcpy(p->bytes, s->coded, p->len);
    }
    for (uint32_t i = 0; i < a->n; i++) {
        const struct link *l = outbox_link(s->sessions, a->to[i]->id);
        if (a->to[i] == own_worker(s)) {
            if (a->whole)
                memcpy(s->result, p->bytes, p->len);
            else
                centre_apply(m, p->bytes, p->len, s->result);
            finish(s, a->round);
        } else if (l != NULL) {
            outbox_send(s->sessions, l, word, p);
        }
    }
}

static void answer(struct parameter_server *s)
{
    struct centre_answer a;
    centre_add(&s->centre);
    while (!s->env->over && outbox_has_room(&s->outbox) && centre_answer(&s->centre, &a, s->coded))
        tell_workers(s, &a);
}

static void serve(struct parameter_server *s, uint64_t round, bool idle)
{
    if (!s->serving && ((mixing_of(s)->fetched && !idle) || !begin_serving(s)))
        return;
    count_workers(s);
    work_here(s, round, idle);
    s->ready = s->ready || is_ready(s);
    if (!s->ready)
        return;
    work_here(s, round, idle);
    answer(s);
}

/* ---- choice of the server ---- */

/* Returns the identity of the server. Among this peer and the members without a final model, the
 * server is the peer with the first vertex. */
static const uint8_t *find_server(const struct parameter_server *s)
{
    size_t self, n = members_vertices(s->env->members, s->env->vertices, &self);
    for (size_t i = 0; i < n; i++)
        if (i == self || !record_state_is_final(at_vertex(s, i)->state))
            return at_vertex(s, i)->id;
    return members_self(s->env->members)->id;
}

static void parameter_server_look(void *self, uint64_t round, bool idle)
{
    struct parameter_server *s = self;
    if (!open_vectors(s))
        return;
    if (s->rolled && s->env->now_us - s->rolled_us >= ROUND_PROTOCOL_REQUEST_US) {
        s->rolled = false;
        s->rolled_us = s->env->now_us;
        s->told = PARAMETER_SERVER_NO_LINK;
    }
    const uint8_t *server = find_server(s);
    bool ours = env_same_id(server, members_self(s->env->members)->id);
    if (!env_same_id(server, s->server)) {
        memcpy(s->server, server, WIRE_ID_BYTES);
        s->told = PARAMETER_SERVER_NO_LINK;
        s->said = false;
    }
    if (!ours)
        stop_serving(s);
    (ours ? serve : work)(s, round, idle);
    parameter_server_check(s);
}

/* ---- messages ---- */

static void hear_worker(struct parameter_server *s, const struct link *l,
                        const struct wire_round_protocol *m)
{
    struct centre_worker *w = centre_find(&s->centre, l->id);
    enum centre_verdict v = CENTRE_TAKEN;
    assert(s->serving);
    if (w == NULL)
        w = centre_count(&s->centre, l->id);
    if (w == NULL || (!w->spoke && m->word != WIRE_ROUND_PROTOCOL_HERE))
        /* The worker has not reported its round to this server yet (HERE), so the message is
         * ignored. When the worker receives ROLL, it sends HERE and then this message again. */
        return;
    if (m->word == WIRE_ROUND_PROTOCOL_HERE)
        centre_here(&s->centre, w, m->round, m->view);
    else if (m->word == WIRE_ROUND_PROTOCOL_ASK)
        centre_ask(w, m->round);
    else
        v = centre_push(&s->centre, w, m->round, m->payload.p, m->payload.n);
    if (v == CENTRE_NO_MEMORY)
        no_memory(s);
    else if (v == CENTRE_BAD)
        sessions_violation(s->sessions, l, "ROUND_PROTOCOL with an invalid push");
}

/* Copies the whole model of an answer to `result`, or applies a compressed answer to `result`.
 * Returns false if the new `result` is not a valid model. */
static bool take_answer(struct parameter_server *s, const struct wire_round_protocol *m)
{
    const struct mixing *x = mixing_of(s);
    if (m->word == WIRE_ROUND_PROTOCOL_PULL) {
        if (!centre_valid(x, m->payload.p, m->payload.n))
            return false;
        centre_apply(x, m->payload.p, m->payload.n, s->result);
    } else {
        assert(m->payload.n == model_bytes(s)); /* is_sound() */
        memcpy(s->result, m->payload.p, m->payload.n);
    }
    return vec_finite(s->result, x->n_floats)
           && statistics_proper(&x->statistics, s->result + x->dim);
}

/* Handles an answer of the server. After an invalid answer the worker reports its round again
 * (HERE). */
static void hear_answer(struct parameter_server *s, const struct link *l,
                        const struct wire_round_protocol *m, uint64_t round)
{
    if (!s->said || s->told != l->number || m->round < round)
        return;
    if (take_answer(s, m)) {
        finish(s, m->round);
        return;
    }
    s->told = PARAMETER_SERVER_NO_LINK;
    sessions_violation(s->sessions, l, "ROUND_PROTOCOL with an answer that is not a model");
}

/* Called at the server: handles the RESULT of a worker that has a later answer than the server. The
 * server continues with the worker's model. With --policy sync, this peer's own worker takes the
 * model, too. */
static void take_over(struct parameter_server *s, const struct link *l,
                      const struct wire_round_protocol *m)
{
    bool sync = s->workshop->run.policy == RUN_SYNC;
    assert(s->serving && !s->ready);
    if (s->wanted_us == 0 || s->wanted_of != l->number || m->round <= s->taken)
        return;
    s->wanted_us = 0;
    if (!take_answer(s, m)) {
        memcpy(s->result, mixing_of(s)->x, model_bytes(s));
        sessions_violation(s->sessions, l, "ROUND_PROTOCOL with a result that is not a model");
        return;
    }
    s->taken = m->round;
    centre_set(&s->centre, s->result, m->round);
    if (sync && m->round > s->result_round) {
        finish(s, m->round);
        centre_here(&s->centre, own_worker(s), m->round, m->round);
    }
}

static bool is_sound(const struct parameter_server *s, const struct wire_round_protocol *m)
{
    uint64_t rounds = s->workshop->run.rounds;
    if (m->word == WIRE_ROUND_PROTOCOL_RESULT && m->payload.n != model_bytes(s))
        return false;
    return m->round <= rounds && m->view <= rounds
           && (m->round > 0 || m->word == WIRE_ROUND_PROTOCOL_HERE
               || m->word == WIRE_ROUND_PROTOCOL_ROLL);
}

static void parameter_server_hear(void *self, const struct link *l,
                                  const struct wire_round_protocol *m, uint64_t round, bool idle)
{
    struct parameter_server *s = self;
    if (!is_sound(s, m)) {
        sessions_violation(s->sessions, l, "ROUND_PROTOCOL with invalid fields");
        return;
    }
    if (!s->open)
        return;
    switch (m->word) {
    case WIRE_ROUND_PROTOCOL_HERE:
    case WIRE_ROUND_PROTOCOL_ASK:
    case WIRE_ROUND_PROTOCOL_PUSH:
        if (s->serving)
            hear_worker(s, l, m);
        break;
    case WIRE_ROUND_PROTOCOL_PULL:
        if (idle && !s->serving)
            hear_answer(s, l, m, round);
        break;
    case WIRE_ROUND_PROTOCOL_RESULT:
        if (idle && s->serving && !s->ready)
            take_over(s, l, m);
        else if (idle && !s->serving)
            hear_answer(s, l, m, round);
        break;
    case WIRE_ROUND_PROTOCOL_WANT:
        say_model(s, l);
        break;
    case WIRE_ROUND_PROTOCOL_ROLL:
        s->rolled = true;
        break;
    case WIRE_ROUND_PROTOCOL_STEP:
    case WIRE_ROUND_PROTOCOL_AGAIN:
    case WIRE_ROUND_PROTOCOL_HAVE:
    case WIRE_ROUND_PROTOCOL_END:
        sessions_violation(s->sessions, l, "ROUND_PROTOCOL message for a collective operation");
        break;
    }
    parameter_server_check(s);
}

/* ---- questions ---- */

static uint64_t parameter_server_completed(const void *self)
{
    return ((const struct parameter_server *)self)->result_round;
}

static const uint8_t *parameter_server_awaited(const void *self, uint64_t round)
{
    const struct parameter_server *s = self;
    if (!s->open || !parameter_server_waits(s, round))
        return NULL;
    if (!s->serving)
        return s->server;
    const struct centre_worker *w = centre_awaited(&s->centre);
    return w != NULL && !env_same_id(w->id, members_self(s->env->members)->id) ? w->id : NULL;
}

const struct round_protocol_kind parameter_server_protocol = {.name = "parameter server",
                                                              .part = "part of the mean",
                                                              .open = parameter_server_open,
                                                              .close = parameter_server_close,
                                                              .release = parameter_server_release,
                                                              .look = parameter_server_look,
                                                              .hear = parameter_server_hear,
                                                              .waits = parameter_server_waits,
                                                              .awaited = parameter_server_awaited,
                                                              .completed =
                                                                  parameter_server_completed};
