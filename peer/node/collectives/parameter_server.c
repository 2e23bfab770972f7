/* peer/node/collectives/parameter_server.c -- the messages of --mixer ps: one peer is the server.
 *
 * The server is the member with the first vertex among the members without a final model. The
 * server also trains: its own worker follows the same rules without messages.
 * gossip/collectives/centre.h decides which updates are added and which workers are answered.
 *
 *   worker   HERE (once per session), then in each round: job done --PUSH or ASK--> waits for the
 *            answer --PULL or RESULT--> next job
 *   server   asks silent workers for their round (ROLL) --all workers that the server waits for
 *            (the *counted* ones) have sent HERE-->
 *            takes over a newer model if a worker has one (WANT, RESULT) --> answers PUSH and ASK
 *
 * HERE says how many rounds the worker has done, and the round of the last answer that it has. PUSH
 * carries an update. A worker without an update, because it has fetched another model or skipped
 * rounds, sends ASK. After a lost session these messages are sent again. The server adds each PUSH
 * once.
 *
 * If the server dies, the part of the model that its compressed answers have not transmitted yet is
 * lost. The next member becomes the server. It asks all workers for their rounds. If some worker
 * has a later answer than the new server, the server fetches that worker's model. Then all workers
 * start from whole models. The server also changes in this way if a member returns and has the
 * first vertex.
 *
 * If a worker has no session to a live server for SCHEDULE_LOST_US, it prints a warning and
 * continues the round with its own model. The server also waits at most SCHEDULE_LOST_US for a
 * session to a member. Workers and servers are trusted: all finite values are used.
 */
#include "peer/node/collectives/round_protocol_state.h"

#include "gossip/collectives/ps.h"
#include "nn/math/rng.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Value of `told`: this worker has not reported its round, or must report it again. */
#define NO_LINK UINT32_MAX

enum server_state {
    SERVER_NOT,       /* This peer is not the server. */
    SERVER_GATHERING, /* Waits for the reports of all counted workers and for the latest model. */
    SERVER_READY      /* The server answers workers. */
};

/* One peer as a worker and as the server. base->result is the model of the server's last answer to
 * this worker. base->missing_us is about the session with the server. */
struct parameter_server
{
    struct round_protocol *base;

    /* ---- as a worker ---- */
    uint8_t server[WIRE_ID_BYTES]; /* Identity of the current server. */
    /* Number of the session on which this worker reported its round to the server (HERE). NO_LINK:
     * none. */
    uint32_t told;
    /* True: this worker has sent its update (PUSH) or its request (ASK) of this round. */
    bool said;
    uint64_t pushed; /* Round of this worker's last update. 0: none. */
    uint8_t *push;   /* This worker's last update: n_push bytes. */
    size_t n_push;   /* Length of the last update in bytes. 0: this worker has none. */
    /* True: the server has asked for this worker's round (ROLL), and no report was sent since. */
    bool rolled;
    /* Last time at which a ROLL made this worker report its round again, in microseconds. */
    int64_t rolled_us;

    /* ---- as the server ---- */
    enum server_state state;
    int64_t begun_us; /* Time at which this peer became the server, in microseconds. */
    struct centre centre;
    uint8_t *coded; /* Buffer into which the server encodes a compressed answer. */
    /* Round of the model with which the server started, or which it later took over from a
     * worker. */
    uint64_t taken;
    struct
    {
        uint8_t id[WIRE_ID_BYTES];
        /* Time since which there is no session to this member, in microseconds. */
        int64_t since_us;
    } missing[CENTRE_COUNTED_MAX];
    uint32_t n_missing;
};

static void *parameter_server_begin(struct round_protocol *p)
{
    struct parameter_server *s = malloc(sizeof *s);
    if (s != NULL)
        *s = (struct parameter_server){
            .base = p, .told = NO_LINK, .rolled_us = -ROUND_PROTOCOL_REQUEST_US};
    return s;
}

static struct mixing *mixing_of(const struct parameter_server *s)
{
    return &s->base->workshop->mixing;
}

static size_t model_bytes(const struct parameter_server *s)
{
    return round_protocol_model_bytes(s->base);
}

static void parameter_server_check(const struct parameter_server *s)
{
    const struct round_protocol *p = s->base;
    uint64_t rounds = p->workshop->run.rounds;
    assert(p->result != NULL || s->state == SERVER_NOT);
    assert(s->state != SERVER_NOT || s->coded == NULL);
    assert(s->state == SERVER_NOT || env_same_id(s->server, members_self(p->env->members)->id));
    assert(p->result_round <= rounds && s->pushed <= rounds && s->taken <= rounds);
    assert(s->n_push == 0 || s->pushed > 0);
    assert(s->n_missing <= CENTRE_COUNTED_MAX);
}

/* Allocates the buffer of the update, and sets the result to the model with which the local steps
 * start. No job writes this model at the same time, because the first job has not begun. */
static size_t parameter_server_open(void *self)
{
    struct parameter_server *s = self;
    size_t bound = ps_push_bound(mixing_of(s)), whole = model_bytes(s);
    s->push = malloc(bound);
    if (s->push == NULL)
        return 0;
    memcpy(s->base->result, ps_base(mixing_of(s), &s->base->result_round), whole);
    return bound > whole ? bound : whole;
}

static void stop_serving(struct parameter_server *s)
{
    if (s->state != SERVER_NOT)
        centre_close(&s->centre);
    free(s->coded);
    s->coded = NULL;
    s->state = SERVER_NOT;
}

static void parameter_server_end(void *self)
{
    struct parameter_server *s = self;
    stop_serving(s);
    free(s->push);
    free(s);
}

/* ---- a worker ---- */

static void finish(struct parameter_server *s, uint64_t round)
{
    s->said = false;
    round_protocol_finish(s->base, round, members_view(s->base->env->members));
}

static void keep_own(struct parameter_server *s, uint64_t round)
{
    env_note(s->base->env, NOTE_WARNING,
             "round %llu: no session with the parameter server, which is alive; this peer's model "
             "is unchanged",
             (unsigned long long)round);
    round_protocol_keep_own(s->base);
    finish(s, round);
    s->told = NO_LINK;
}

/* Makes the update of `round` at the first call in the round. A worker makes no update (n_push is
 * 0) if it has fetched its model, or if its local steps did not start from the server's previous
 * answer. */
static void make_push(struct parameter_server *s, uint64_t round)
{
    struct mixing *m = mixing_of(s);
    uint64_t based;
    assert(round > s->base->result_round && round >= s->pushed);
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
    assert(s->state == SERVER_NOT && l->number != NO_LINK);
    if (s->told != l->number) {
        m.word = WIRE_ROUND_PROTOCOL_HERE;
        m.view = s->base->result_round;
        round_protocol_send(s->base, l, m, NULL);
        s->told = l->number;
        s->said = false;
    }
    if (!idle || s->said || !round_protocol_waits(s->base, round))
        return;
    make_push(s, round);
    struct packet *p = s->n_push > 0 ? round_protocol_copy(s->base, s->push, s->n_push) : NULL;
    if (p == NULL && s->n_push > 0)
        return;
    m.word = p != NULL ? WIRE_ROUND_PROTOCOL_PUSH : WIRE_ROUND_PROTOCOL_ASK;
    m.view = p != NULL ? 0 : s->base->result_round;
    round_protocol_send(s->base, l, m, p);
    s->said = true;
}

static void work(struct parameter_server *s, uint64_t round, bool idle)
{
    const struct link *l = round_protocol_link(s->base, s->server);
    bool waits = idle && round_protocol_waits(s->base, round);
    if (l != NULL)
        tell_server(s, l, round, idle);
    if (round_protocol_is_lost(s->base, l == NULL && waits))
        keep_own(s, round);
}

/* ---- the server ---- */

static int open_answers(const struct parameter_server *s, struct compress **codec)
{
    const struct trainer *t = &s->base->workshop->trainer;
    const char *spec = s->base->workshop->run.compress;
    size_t n = 0;
    *codec = NULL;
    while (n < t->n_segments && t->segments[n].trained)
        n++;
    return strcmp(spec, "none") != 0 ? compress_open(codec, spec, t->segments, n) : 0;
}

/* Starts the server. Its first model is the model that this peer has fetched from a member, if
 * there is one, else the last answer that this peer's worker received from a server. Returns false
 * if memory is exhausted. */
static bool begin_serving(struct parameter_server *s)
{
    assert(s->state == SERVER_NOT && s->coded == NULL);
    const struct run *run = &s->base->workshop->run;
    struct mixing *m = mixing_of(s);
    struct centre_config g = {.mixing = m,
                              .rounds = run->rounds,
                              .draw_key = rng_key(run->seed, RNG_DRAW, UINT64_MAX, 0),
                              .sync = run->policy == RUN_SYNC,
                              .bounded = run->policy != RUN_ASYNC,
                              .staleness = run_staleness(run),
                              .z = m->fetched ? m->x : s->base->result,
                              .round = s->base->result_round};
    if (open_answers(s, &g.codec) != 0 || centre_open(&s->centre, &g) != 0) {
        round_protocol_no_memory(s->base);
        return false;
    }
    s->coded = malloc(centre_bound(&s->centre) + 1);
    s->state = SERVER_GATHERING;
    s->begun_us = s->base->env->now_us;
    s->said = false;
    s->taken = s->base->result_round;
    s->base->wanted_us = 0;
    if (s->coded == NULL)
        round_protocol_no_memory(s->base);
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
        return s->base->env->now_us;
    memcpy(s->missing[s->n_missing].id, id, WIRE_ID_BYTES);
    s->missing[s->n_missing++].since_us = s->base->env->now_us;
    return s->base->env->now_us;
}

static void found_again(struct parameter_server *s, const uint8_t *id)
{
    for (uint32_t i = 0; i < s->n_missing; i++)
        if (env_same_id(s->missing[i].id, id))
            s->missing[i] = s->missing[--s->n_missing];
}

static const struct record *at_vertex(const struct parameter_server *s, size_t i)
{
    return members_at(s->base->env->members, s->base->env->vertices[i])->record;
}

/* Asks worker w to report its round (ROLL), at most once per session. Does nothing if w is NULL or
 * has reported, or if this peer became the server less than ROUND_PROTOCOL_REPORTS_US ago. */
static void ask_worker(struct parameter_server *s, struct centre_worker *w)
{
    const struct link *l = w != NULL && !w->spoke ? round_protocol_link(s->base, w->id) : NULL;
    if (l == NULL || s->base->env->now_us - s->begun_us < ROUND_PROTOCOL_REPORTS_US
        || w->asked == (uint64_t)l->number + 1)
        return;
    w->asked = (uint64_t)l->number + 1;
    round_protocol_send(s->base, l, (struct wire_round_protocol){.word = WIRE_ROUND_PROTOCOL_ROLL},
                        NULL);
}

/* Makes the list of workers for which the server waits, and asks silent ones for their round: this
 * peer, and each other vertex whose member has not finished. Members without a session for more
 * than SCHEDULE_LOST_US are left out. */
static void count_workers(struct parameter_server *s)
{
    size_t self, n = members_vertices(s->base->env->members, s->base->env->vertices, &self);
    centre_clear(&s->centre);
    for (size_t i = 0; i < n; i++) {
        const struct record *r = at_vertex(s, i);
        bool talks = i == self || round_protocol_link(s->base, r->id) != NULL;
        if (i != self && record_state_is_final(r->state))
            continue;
        if (talks)
            found_again(s, r->id);
        if (talks || s->base->env->now_us - missing_since(s, r->id) <= SCHEDULE_LOST_US)
            ask_worker(s, centre_count(&s->centre, r->id));
    }
}

/* Returns whether the server can start: all workers for which it waits have reported (HERE), and
 * none of them has a later model than the server. Requests the latest model (WANT) if a worker has
 * a later one. */
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
    const struct link *l = ahead != NULL ? round_protocol_link(s->base, ahead->id) : NULL;
    if (l != NULL)
        round_protocol_want(s->base, l, ahead->have);
    return ahead == NULL;
}

static struct centre_worker *own_worker(struct parameter_server *s)
{
    return centre_find(&s->centre, members_self(s->base->env->members)->id);
}

/* Gives the round and the update of this peer's own worker directly to the server. Other workers
 * send them in messages (work()). */
static void work_here(struct parameter_server *s, uint64_t round, bool idle)
{
    struct centre_worker *own = own_worker(s);
    assert(own != NULL); /* count_workers() counts it first. */
    if (!own->spoke)
        centre_here(&s->centre, own, round, s->base->result_round);
    if (!idle || s->said || s->state != SERVER_READY || !round_protocol_waits(s->base, round))
        return;
    make_push(s, round);
    s->said = true;
    if (s->n_push == 0)
        centre_ask(own, round);
    else if (centre_push(&s->centre, own, round, s->push, s->n_push) == CENTRE_NO_MEMORY)
        round_protocol_no_memory(s->base);
}

/* Sends an answer of the server to the workers that the answer names. This peer's own worker takes
 * the answer without a message. */
static void tell_workers(struct parameter_server *s, const struct centre_answer *a)
{
    const struct mixing *m = mixing_of(s);
    struct packet *p = round_protocol_packet(s->base);
    struct wire_round_protocol word = {.word = a->whole ? WIRE_ROUND_PROTOCOL_RESULT
                                                        : WIRE_ROUND_PROTOCOL_PULL,
                                       .round = a->round};
    if (p == NULL) {
        round_protocol_no_memory(s->base);
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
        const struct link *l = round_protocol_link(s->base, a->to[i]->id);
        if (a->to[i] == own_worker(s)) {
            if (a->whole)
                memcpy(s->base->result, p->bytes, p->len);
            else
                centre_apply(m, p->bytes, p->len, s->base->result);
            finish(s, a->round);
        } else if (l != NULL) {
            round_protocol_send(s->base, l, word, p);
        }
    }
}

static void answer(struct parameter_server *s)
{
    struct centre_answer a;
    centre_add(&s->centre);
    while (!s->base->env->over && round_protocol_has_room(s->base)
           && centre_answer(&s->centre, &a, s->coded))
        tell_workers(s, &a);
}

static void serve(struct parameter_server *s, uint64_t round, bool idle)
{
    if (s->state == SERVER_NOT && ((mixing_of(s)->fetched && !idle) || !begin_serving(s)))
        return;
    count_workers(s);
    work_here(s, round, idle);
    if (s->state == SERVER_GATHERING && is_ready(s))
        s->state = SERVER_READY;
    if (s->state != SERVER_READY)
        return;
    work_here(s, round, idle);
    answer(s);
}

/* ---- choice of the server ---- */

/* Returns the identity of the server. Among this peer and the members without a final model, the
 * server is the peer with the first vertex. */
static const uint8_t *find_server(const struct parameter_server *s)
{
    size_t self, n = members_vertices(s->base->env->members, s->base->env->vertices, &self);
    for (size_t i = 0; i < n; i++)
        if (i == self || !record_state_is_final(at_vertex(s, i)->state))
            return at_vertex(s, i)->id;
    return members_self(s->base->env->members)->id;
}

static void parameter_server_look(void *self, uint64_t round, bool idle)
{
    struct parameter_server *s = self;
    if (s->rolled && s->base->env->now_us - s->rolled_us >= ROUND_PROTOCOL_REQUEST_US) {
        s->rolled = false;
        s->rolled_us = s->base->env->now_us;
        s->told = NO_LINK;
    }
    const uint8_t *server = find_server(s);
    bool ours = env_same_id(server, members_self(s->base->env->members)->id);
    if (!env_same_id(server, s->server)) {
        memcpy(s->server, server, WIRE_ID_BYTES);
        s->told = NO_LINK;
        s->said = false;
    }
    if (!ours)
        stop_serving(s);
    (ours ? serve : work)(s, round, idle);
    parameter_server_check(s);
}

/* ---- messages ---- */

/* Handles HERE, ASK and PUSH. Returns NULL, or the protocol violation in words. */
static const char *hear_worker(struct parameter_server *s, const struct link *l,
                               const struct wire_round_protocol *m)
{
    struct centre_worker *w = centre_find(&s->centre, l->id);
    enum centre_verdict v = CENTRE_TAKEN;
    assert(s->state != SERVER_NOT);
    if (w == NULL)
        w = centre_count(&s->centre, l->id);
    if (w == NULL || (!w->spoke && m->word != WIRE_ROUND_PROTOCOL_HERE))
        /* The worker has not reported its round to this server yet (HERE), so the message is
         * ignored. When the worker receives ROLL, it sends HERE and then this message again. */
        return NULL;
    if (m->word == WIRE_ROUND_PROTOCOL_HERE)
        centre_here(&s->centre, w, m->round, m->view);
    else if (m->word == WIRE_ROUND_PROTOCOL_ASK)
        centre_ask(w, m->round);
    else
        v = centre_push(&s->centre, w, m->round, m->payload.p, m->payload.n);
    if (v == CENTRE_NO_MEMORY)
        round_protocol_no_memory(s->base);
    return v == CENTRE_BAD ? "ROUND_PROTOCOL with an invalid push" : NULL;
}

/* Copies the whole model of an answer to `result`, or applies a compressed answer to `result`.
 * Returns false if the new `result` is not a valid model. */
static bool take_answer(struct parameter_server *s, const struct wire_round_protocol *m)
{
    const struct mixing *x = mixing_of(s);
    if (m->word == WIRE_ROUND_PROTOCOL_PULL) {
        if (!centre_valid(x, m->payload.p, m->payload.n))
            return false;
        centre_apply(x, m->payload.p, m->payload.n, s->base->result);
    } else {
        memcpy(s->base->result, m->payload.p, m->payload.n);
    }
    return round_protocol_is_model(s->base, s->base->result);
}

/* Handles an answer of the server at a worker. Returns NULL, or the protocol violation in words.
 * After an invalid answer the worker sends the message HERE, which reports its round, again. */
static const char *hear_answer(struct parameter_server *s, const struct link *l,
                               const struct wire_round_protocol *m, uint64_t round)
{
    if (!s->said || s->told != l->number || m->round < round)
        return NULL;
    if (take_answer(s, m)) {
        finish(s, m->round);
        return NULL;
    }
    s->told = NO_LINK;
    return "ROUND_PROTOCOL with an answer that is not a model";
}

/* Handles the RESULT of a worker that has a later model than the server: the server continues with
 * this model. With --policy sync, this peer's own worker takes the model, too. Returns NULL, or the
 * protocol violation in words. */
static const char *take_over(struct parameter_server *s, const struct wire_round_protocol *m)
{
    struct round_protocol *p = s->base;
    assert(s->state == SERVER_GATHERING);
    if (!round_protocol_wanted(p) || m->round <= s->taken)
        return NULL;
    p->wanted_us = 0;
    if (!take_answer(s, m)) {
        memcpy(p->result, mixing_of(s)->x, model_bytes(s));
        return "ROUND_PROTOCOL with a result that is not a model";
    }
    s->taken = m->round;
    centre_set(&s->centre, p->result, m->round);
    if (p->workshop->run.policy == RUN_SYNC && m->round > p->result_round) {
        finish(s, m->round);
        centre_here(&s->centre, own_worker(s), m->round, m->round);
    }
    return NULL;
}

static const char *hear(struct parameter_server *s, const struct link *l,
                        const struct wire_round_protocol *m, uint64_t round, bool idle)
{
    struct round_protocol *p = s->base;
    struct wire_round_protocol out = {.word = WIRE_ROUND_PROTOCOL_RESULT, .round = p->result_round};
    bool reports = m->word == WIRE_ROUND_PROTOCOL_HERE || m->word == WIRE_ROUND_PROTOCOL_ROLL;
    if (m->view > p->workshop->run.rounds || (m->round == 0 && !reports))
        return "ROUND_PROTOCOL with invalid fields";
    if (p->result == NULL)
        return NULL;
    switch (m->word) {
    case WIRE_ROUND_PROTOCOL_HERE:
    case WIRE_ROUND_PROTOCOL_ASK:
    case WIRE_ROUND_PROTOCOL_PUSH:
        return s->state != SERVER_NOT ? hear_worker(s, l, m) : NULL;
    case WIRE_ROUND_PROTOCOL_PULL:
        return idle && s->state == SERVER_NOT ? hear_answer(s, l, m, round) : NULL;
    case WIRE_ROUND_PROTOCOL_RESULT:
        if (idle && s->state == SERVER_GATHERING)
            return take_over(s, m);
        return idle && s->state == SERVER_NOT ? hear_answer(s, l, m, round) : NULL;
    case WIRE_ROUND_PROTOCOL_WANT:
        round_protocol_send_result(p, l, &out);
        return NULL;
    case WIRE_ROUND_PROTOCOL_ROLL:
        s->rolled = true;
        return NULL;
    case WIRE_ROUND_PROTOCOL_STEP:
    case WIRE_ROUND_PROTOCOL_AGAIN:
    case WIRE_ROUND_PROTOCOL_HAVE:
    case WIRE_ROUND_PROTOCOL_END:
        break;
    }
    return "ROUND_PROTOCOL message for a collective operation";
}

static const char *parameter_server_hear(void *self, const struct link *l,
                                         const struct wire_round_protocol *m, uint64_t round,
                                         bool idle)
{
    const char *wrong = hear(self, l, m, round, idle);
    parameter_server_check(self);
    return wrong;
}

static const uint8_t *parameter_server_awaited(void *self, uint64_t round)
{
    const struct parameter_server *s = self;
    (void)round;
    if (s->base->result == NULL)
        return NULL;
    if (s->state == SERVER_NOT)
        return s->server;
    const struct centre_worker *w = centre_awaited(&s->centre);
    return w != NULL && !env_same_id(w->id, members_self(s->base->env->members)->id) ? w->id : NULL;
}

const struct centre *parameter_server_centre(const struct round_protocol *p)
{
    const struct parameter_server *s = p->kind == &parameter_server_protocol ? p->self : NULL;
    return s != NULL && s->state != SERVER_NOT ? &s->centre : NULL;
}

const struct round_protocol_kind parameter_server_protocol = {.name = "the parameter server",
                                                              .max_packets = 64,
                                                              .begin = parameter_server_begin,
                                                              .open = parameter_server_open,
                                                              .end = parameter_server_end,
                                                              .look = parameter_server_look,
                                                              .hear = parameter_server_hear,
                                                              .awaited = parameter_server_awaited};
