/* tests/unit/node_lone_world.h -- one real node. The test plays its neighbours, the actors. The
 * node gets events and returns effects, and the time is simulated:
 *
 *        actor 0 --+
 *        actor 1 --+-- the node
 *           ...  --+
 *
 * An actor that `follows` behaves as an honest peer with the same model: it sends HELLO, opens its
 * edge, and returns each delta and heartbeat unchanged, so that the node makes progress. The test
 * decides what else actors send and do. Messages, dials, name resolutions and hang-ups of the node
 * are recorded. No test looks inside the node. */
#ifndef TESTS_UNIT_NODE_LONE_WORLD_H
#define TESTS_UNIT_NODE_LONE_WORLD_H

#include "peer/node/finish/proposal.h"
#include "tests/unit/node_due.h"
#include "tests/unit/node_lone_driver.h"

/* ---- messages of simulated peers ---- */

/* Delivers a message of a simulated peer to the node at once. */
static inline void lone_says_on(struct lone *w, int link, const uint8_t *bytes, size_t n)
{
    assert_true(n > 0);
    if (link == NO_LINK || !w->link[link].up)
        return;
    struct node_event ev = {.type = NODE_RECV, .link = (uint32_t)link, .recv = {bytes, n}};
    lone_step(w, &ev);
}

static inline void lone_says(struct lone *w, uint32_t who, const uint8_t *bytes, size_t n)
{
    lone_says_on(w, w->actor[who].link, bytes, n);
}

/* Sends HELLO on this link. run: the run that the HELLO names. NULL: none. */
static inline void lone_hello_of(struct lone *w, uint32_t who, int link, const struct run *run)
{
    uint8_t out[8192];
    char text[WIRE_RUN_MAX + 1];
    const struct lone_actor *a = &w->actor[who];
    struct wire_hello h = {.version = WIRE_VERSION,
                           .role = WIRE_PEER,
                           .has_run = run != NULL,
                           .has_started = a->started > 0,
                           .run = {(const uint8_t *)text, run != NULL ? run_text(run, text) : 0},
                           .round = a->started > 0 ? a->started : a->fetched,
                           .record = a->record};
    lone_says_on(w, link, out, wire_put_hello(out, sizeof out, &h));
}

static inline void lone_hello(struct lone *w, uint32_t who)
{
    lone_hello_of(w, who, w->actor[who].link, &w->run);
}

static inline void lone_edge(struct lone *w, uint32_t who, struct wire_edge m)
{
    uint8_t out[64];
    m.boot = w->actor[who].record.boot;
    lone_says(w, who, out, wire_put_edge(out, sizeof out, &m));
}

/* Sends the delta `d`, which the caller may have changed, with this payload. */
static inline void lone_delta(struct lone *w, uint32_t who, const struct wire_delta *d,
                              const uint8_t *payload, size_t n)
{
    uint8_t out[16384];
    struct wire_delta m = *d;
    m.payload.n = n;
    size_t head = wire_put_delta(out, sizeof out, &m);
    assert_true(head > 0 && head + n <= sizeof out);
    memcpy(out + head, payload, n);
    lone_says(w, who, out, head + n);
}

/* Sends the record `r`, which may have any state and incarnation, to the node as simulated peer
 * `teller`. */
static inline void lone_tell(struct lone *w, uint32_t teller, struct record r)
{
    uint8_t out[4096];
    struct record s = signed_record(r);
    struct wire_members m = {.n_records = 1, .records = &s};
    lone_says(w, teller, out, wire_put_members(out, sizeof out, &m));
}

/* ---- messages to simulated peers ---- */

static inline void lone_follow_edge(struct lone *w, uint32_t who)
{
    struct lone_actor *a = &w->actor[who];
    struct wire_edge m = a->edge;
    m.nonce = ++a->nonce;
    m.answers = a->edge.nonce;
    m.run_round += a->ahead;
    if (a->edge.answers == 0) /* An answer is not answered. */
        lone_edge(w, who, m);
}

/* Answers the node's last delta as the simulated peer `who`, which does not answer by itself
 * (`follows` is false). */
static inline void lone_answer(struct lone *w, uint32_t who)
{
    struct lone_actor *a = &w->actor[who];
    struct wire_delta d = a->delta;
    d.sketch_generation = 0;
    d.sketch.n = 0;
    lone_delta(w, who, &d, a->last, a->n_last);
}

static inline void lone_ping(struct lone *w, uint32_t who, uint64_t round, uint32_t busy_ms)
{
    uint8_t out[64];
    struct wire_ping m = {.round = round, .busy_ms = busy_ms};
    lone_says(w, who, out, wire_put_ping(out, sizeof out, &m));
}

static inline void lone_beat(struct lone *w, uint32_t who, uint64_t round)
{
    uint8_t out[64];
    struct wire_beat m = {.run_round = round};
    lone_says(w, who, out, wire_put_beat(out, sizeof out, &m));
}

static inline void lone_vouch(struct lone *w, uint32_t who, const uint8_t id[WIRE_ID_BYTES])
{
    uint8_t out[64];
    struct wire_heard m = {.age_ms = 100};
    memcpy(m.id, id, WIRE_ID_BYTES);
    lone_says(w, who, out, wire_put_heard(out, sizeof out, &m));
}

static inline void lone_follow_ping(struct lone *w, uint32_t who, const struct wire_ping *heard)
{
    uint8_t out[64];
    const struct lone_actor *a = &w->actor[who];
    struct wire_ping m = *heard;
    m.round = m.round > a->started ? m.round : a->started;
    if (!(m.finished && a->goes_on))
        lone_says(w, who, out, wire_put_ping(out, sizeof out, &m));
}

static inline void lone_hears_delta(struct lone *w, uint32_t who, const struct wire_delta *m)
{
    struct lone_actor *a = &w->actor[who];
    bool after = m->run_round > w->run.rounds;
    struct wire_delta d = *m;
    a->n_delta++;
    a->delta = *m;
    if (m->round == 0)
        a->first = *m;
    if (m->sketch_generation != 0 && (!after || a->window[1] == 0))
        a->window[after] = m->sketch_generation;
    assert_true(m->payload.n <= sizeof a->last);
    memcpy(a->last, m->payload.p, a->n_last = m->payload.n);
    if (!a->follows)
        return;
    if (a->blind) {
        d.sketch_generation = 0;
        d.sketch.n = 0;
    }
    d.run_round += a->ahead;
    if (a->lies && d.hash != 0) {
        a->lies = false;
        d.hash ^= 2;
    }
    lone_delta(w, who, &d, m->payload.p, m->payload.n);
}

static inline void lone_hears_of_itself(struct lone_actor *a, const struct record *r)
{
    a->told = *r;
    a->told_trained |= r->state == RECORD_TRAINED;
    a->told_stalled |= r->state == RECORD_STALLED;
}

static inline void lone_hears_record(struct lone *w, struct lone_actor *a, const struct record *r)
{
    if (memcmp(r->id, w->id, WIRE_ID_BYTES) == 0)
        lone_hears_of_itself(a, r);
    else if (memcmp(r->id, a->id, WIRE_ID_BYTES) != 0)
        a->told_others = true;
    else
        a->reminded |= r->initial && !a->record.initial;
}

static inline int lone_by_key(const void *a, const void *b)
{
    uint64_t x = ((const struct finish_member *)a)->key, y = ((const struct finish_member *)b)->key;
    return x < y ? -1 : x > y;
}

/* Sends a certificate of the run: the node and all simulated peers with a session ended within the
 * target, and the other peers are dead. */
static inline void lone_decide(struct lone *w, uint32_t who)
{
    struct finish_proposal p = {
        .distance = 1e-5, .mean_norm = 1, .origin.number = 1, .n = w->n_actors + 1};
    uint8_t bytes[WIRE_FINISH_PROPOSAL_MAX], out[WIRE_FINISH_PROPOSAL_MAX + 512];
    for (uint32_t i = 0; i <= w->n_actors; i++) {
        bool here =
            i == w->n_actors || (w->actor[i].link != NO_LINK && w->link[w->actor[i].link].up);
        const uint8_t *id = i == w->n_actors ? w->id : w->actor[i].id;
        p.member[i] = (struct finish_member){.key = finish_key(id),
                                             .status = here ? FINISH_WITHIN : FINISH_DEAD};
    }
    qsort(p.member, p.n, sizeof p.member[0], lone_by_key);
    struct wire_finish m = {.word = WIRE_FINISH_DECIDED,
                            .proposal = {bytes, finish_encode(bytes, &p)}};
    lone_says(w, who, out, wire_put_finish(out, sizeof out, &m));
}

static inline void lone_hears(struct lone *w, uint32_t who, const uint8_t *p, size_t n)
{
    static struct wire_batch batch;
    static struct wire_message m;
    struct lone_actor *a = &w->actor[who];
    assert_true(wire_read(p, n, &batch, &m));
    switch (m.type) {
    case WIRE_HELLO:
        lone_hears_of_itself(a, &m.hello.record);
        if (a->n_hello++ == 0 && a->follows)
            lone_hello(w, who);
        break;
    case WIRE_MEMBERS:
        a->n_members++;
        for (uint32_t i = 0; i < m.members.n_records; i++)
            lone_hears_record(w, a, &m.members.records[i]);
        for (uint32_t i = 0; i < m.members.n_accusations; i++)
            a->n_accusations +=
                memcmp(m.members.accusations[i].accused, w->actor[1].id, WIRE_ID_BYTES) == 0;
        break;
    case WIRE_EDGE:
        a->edge = m.edge;
        a->n_edge++;
        if (a->follows)
            lone_follow_edge(w, who);
        break;
    case WIRE_DELTA:
        lone_hears_delta(w, who, &m.delta);
        break;
    case WIRE_PING:
    case WIRE_BEAT:
        a->n_ping += m.type == WIRE_PING;
        a->n_beat += m.type == WIRE_BEAT;
        if (m.type == WIRE_BEAT) {
            a->beat = m.beat.run_round;
            a->n_early += a->beat > a->delta.run_round;
        }
        if (m.type == WIRE_PING)
            a->busy_ms = m.ping.busy_ms;
        a->told_finished |= m.type == WIRE_PING && m.ping.finished;
        if (m.type == WIRE_PING && m.ping.finished && a->follows && !a->goes_on)
            lone_decide(w, who);
        if (m.type == WIRE_PING && a->follows)
            lone_follow_ping(w, who, &m.ping);
        else if (a->follows)
            lone_says(w, who, p, n);
        break;
    case WIRE_MODEL_REQ:
        a->n_model_req++;
        break;
    case WIRE_STATUS:
        a->status = m.status;
        break;
    case WIRE_PROBE:
        if (a->vouches)
            lone_vouch(w, who, m.probe.id);
        break;
    case WIRE_REFUSED:
        a->n_refused++;
        a->refused = m.refused;
        break;
    case WIRE_HEARD:
        a->n_heard++;
        break;
    case WIRE_MOMENTS:
        a->n_moments++;
        a->moments_of = m.moments.record;
        break;
    case WIRE_EDGE_CLOSE:
        a->n_close++;
        break;
    case WIRE_MODEL:
        a->n_model++;
        a->model_round = m.model.round;
        a->model_piece = m.model.piece;
        a->model_key = m.model.key;
        assert_int_equal(m.model.payload.n, sizeof a->model);
        memcpy(a->model, m.model.payload.p, sizeof a->model);
        break;
    case WIRE_CALLBACK:
        a->n_callback++;
        a->callback = m.callback;
        break;
    case WIRE_FINISH:
        a->n_finish++;
        break;
    case WIRE_PART:
    case WIRE_ROUND_PROTOCOL:
    case WIRE_STATUS_REQ:
    case WIRE_NONE:
    case WIRE_TYPE_END:
        fail_msg("an honest node sent nonsense");
    }
}

/* Delivers all messages that are under way. */
static inline void lone_flush(struct lone *w)
{
    for (uint32_t budget = 0; w->n_mail > 0; budget++) {
        uint32_t link = w->mail[w->first].link;
        uint8_t *bytes = w->mail[w->first].bytes;
        size_t n = w->mail[w->first].n;
        uint32_t who = w->link[link].actor;
        assert_true(budget < 100 * 1000); /* Fails if messages cause further ones endlessly. */
        w->first = (w->first + 1) % LONE_MAIL;
        w->n_mail--;
        if (w->link[link].up && w->actor[who].link == (int)link)
            lone_hears(w, who, bytes, n);
        free(bytes);
    }
}

/* ---- time ---- */

/* Runs for `us` microseconds, or until the node has ended. */
static inline void lone_run(struct lone *w, int64_t us)
{
    int64_t end = w->now_us + us;
    const struct node_due due = {&w->wake_us, &w->work_us, &w->over, 1};
    struct node_event ev = {.type = NODE_TIMER};
    for (lone_flush(w); node_due_take(&due, end, &w->now_us, &ev) < due.n; lone_flush(w))
        lone_step(w, &ev);
    if (!w->over)
        w->now_us = end;
}

static inline struct node_progress lone_progress(const struct lone *w)
{
    struct node_progress p;
    node_progress(w->node, &p);
    return p;
}

/* Asks the node for its status (STATUS_REQ) and returns the part about its edge to a simulated
 * peer. NULL: no edge. */
static inline const struct wire_status_edge *lone_edge_to(struct lone *w, uint32_t who)
{
    uint8_t out[16];
    struct lone_actor *a = &w->actor[who];
    a->status.n_edges = 0;
    lone_says(w, who, out, wire_put_status_req(out, sizeof out));
    lone_flush(w);
    for (uint32_t i = 0; i < a->status.n_edges; i++)
        if (memcmp(a->status.edges[i].id, a->id, WIRE_ID_BYTES) == 0)
            return &a->status.edges[i];
    return NULL;
}

/* ---- begin and end ---- */

static inline void lone_set_run(struct run *run, uint64_t rounds)
{
    char error[COMPRESS_ERROR_MAX];
    struct run_flags *flags = calloc(1, sizeof *flags);
    char text[RUN_ERROR_MAX];
    assert_non_null(flags);
    assert_int_equal(run_flags_set(flags, "topology", "complete", text), 0);
    assert_int_equal(run_flags_set(flags, "rounds", "10", text), 0);
    assert_int_equal(run_from_flags(run, flags, text), 0);
    free(flags);
    assert_int_equal(compress_canonical("topk:0.25", run->compress, error), 0);
    run->rounds = rounds;
    run->min_peers = 2;
    run->final_drift = 0;
}

/* Makes a node that is not open yet, and n_actors simulated peers. The identity of peer i begins
 * with the byte first_id + i. */
static inline struct lone *lone_new(uint32_t n_actors, uint8_t first_id, uint64_t rounds)
{
    struct lone *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->fx = calloc(1, sizeof *w->fx);
    assert_non_null(w->fx);
    w->now_us = 1000;
    w->step_us = LONE_STEP_US;
    w->loss = 1;
    w->pull = 0.1f;
    w->n_actors = n_actors;
    memcpy(w->id, id_of(0), WIRE_ID_BYTES);
    w->id[0] = LONE_OURS_FIRST;
    for (uint32_t i = 0; i < n_actors; i++) {
        struct lone_actor *a = &w->actor[i];
        a->link = NO_LINK;
        a->answers = a->follows = true;
        a->nonce = 1000 * (i + 1);
        memcpy(a->id, id_of(i + 1), WIRE_ID_BYTES);
        a->id[0] = (uint8_t)(first_id + i);
        a->record = unsigned_record(i + 1, 1);
        memcpy(a->record.id, a->id, WIRE_ID_BYTES);
        a->record.initial = true;
        a->record = w->known[i] = signed_record(a->record);
    }
    lone_set_run(&w->run, rounds);
    w->crypto = (struct members_crypto){w->id, toy_verify, toy_sign};
    w->config = (struct node_config){.name = "peer-0",
                                     .boot = 11,
                                     .incarnation = 2,
                                     .own_seed = 1,
                                     .listen_port = "7100",
                                     .crypto = &w->crypto,
                                     .known = w->known,
                                     .n_known = n_actors,
                                     .found = true,
                                     .make_trainer = lone_trainer,
                                     .make_trainer_self = w};
    memcpy(w->config.id, w->id, WIRE_ID_BYTES);
    return w;
}

static inline void lone_open(struct lone *w)
{
    struct node_event start = {.type = NODE_START};
    w->config.run = w->run;
    assert_int_equal(node_open(&w->node, &w->config), 0);
    lone_step(w, &start);
}

static inline void lone_close(struct lone *w)
{
    struct node_event stop = {.now_us = w->now_us, .type = NODE_STOP};
    struct node_event worked = {.now_us = w->now_us, .type = NODE_WORKED};
    node_step(w->node, &stop, w->fx);
    if (w->work_us != 0)
        node_step(w->node, &worked, w->fx);
    node_close(w->node);
    for (; w->n_mail > 0; w->n_mail--, w->first = (w->first + 1) % LONE_MAIL)
        free(w->mail[w->first].bytes);
    free(w->fx);
    free(w);
}

#endif
