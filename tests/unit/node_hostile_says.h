/* tests/unit/node_hostile_says.h -- messages of a hostile member, valid and invalid, and a table
 * of those that are accepted, dropped, or end the session. */
#ifndef TESTS_UNIT_NODE_HOSTILE_SAYS_H
#define TESTS_UNIT_NODE_HOSTILE_SAYS_H

#include "peer/node/edge/edges.h"
#include "tests/unit/node_hostile_world.h"

struct act
{
    const char *what;
    size_t (*make)(struct world *w, uint8_t *out);
    /* True: the edge is open when the message is sent. False: only HELLO has been sent before. */
    bool opened;
    enum { TAKEN, DROPPED, ENDED, VIOLATION } want;
};

static inline size_t put_hello(struct world *w, uint8_t *out,
                               void (*spoil)(struct world *, struct wire_hello *))
{
    char text[WIRE_RUN_MAX + 1];
    struct wire_hello h = good_hello(w, text);
    spoil(w, &h);
    return wire_put_hello(out, SCRATCH, &h);
}
static inline void spoil_version(struct world *w, struct wire_hello *h)
{
    (void)w, h->version++;
}
static inline void spoil_who(struct world *w, struct wire_hello *h)
{
    h->record = w->known[FRIEND];
}
static inline void spoil_signature(struct world *w, struct wire_hello *h)
{
    (void)w, h->record.incarnation += 7;
}
static inline void spoil_role(struct world *w, struct wire_hello *h)
{
    (void)w, h->role = WIRE_OBSERVER;
}
static inline void spoil_text(struct world *w, struct wire_hello *h)
{
    (void)w, h->run.n--;
}
static inline size_t hello_version(struct world *w, uint8_t *out)
{
    return put_hello(w, out, spoil_version);
}
static inline size_t hello_who(struct world *w, uint8_t *out)
{
    return put_hello(w, out, spoil_who);
}
static inline size_t hello_signature(struct world *w, uint8_t *out)
{
    return put_hello(w, out, spoil_signature);
}
static inline size_t hello_role(struct world *w, uint8_t *out)
{
    return put_hello(w, out, spoil_role);
}
static inline size_t hello_text(struct world *w, uint8_t *out)
{
    return put_hello(w, out, spoil_text);
}
static inline size_t hello_again(struct world *w, uint8_t *out)
{
    char text[WIRE_RUN_MAX + 1];
    struct wire_hello h = good_hello(w, text);
    return wire_put_hello(out, SCRATCH, &h);
}
static inline size_t hello_other_run(struct world *w, uint8_t *out)
{
    char text[WIRE_RUN_MAX + 1];
    struct run run = w->run;
    run.seed++;
    struct wire_hello h = good_hello(w, text);
    h.run.n = run_text(&run, text);
    return wire_put_hello(out, SCRATCH, &h);
}

static inline size_t members_of(uint8_t *out, struct record *r, struct accusation *a)
{
    struct wire_members m = {
        .n_records = r != NULL, .n_accusations = a != NULL, .records = r, .accusations = a};
    return wire_put_members(out, SCRATCH, &m);
}
static inline size_t members_forged(struct world *w, uint8_t *out)
{
    /* Changes the record of the member FRIEND so that it says LEFT. The signature is then
     * invalid. */
    struct record r = w->known[FRIEND];
    r.incarnation = 99;
    r.state = RECORD_LEFT;
    return members_of(out, &r, NULL);
}
static inline size_t members_forged_ours(struct world *w, uint8_t *out)
{
    struct record r = w->known[OURS];
    r.incarnation = 99;
    return members_of(out, &r, NULL);
}
static inline size_t members_accuses_as_other(struct world *w, uint8_t *out)
{
    /* The accusation names the present incarnation of the accused node, 3. */
    struct accusation a = accusation(OURS, EVIL, 3);
    memcpy(a.accused, w->key[OURS], WIRE_ID_BYTES);
    memcpy(a.accuser, w->key[FRIEND], WIRE_ID_BYTES);
    return members_of(out, NULL, &a);
}
static inline size_t members_accuses_friend(struct world *w, uint8_t *out)
{
    /* EVIL accuses FRIEND with a valid signature, but the node's session with FRIEND overrides
     * the accusation. */
    struct accusation a = {.incarnation = 3};
    uint8_t msg[2048];
    memcpy(a.accused, w->key[FRIEND], WIRE_ID_BYTES);
    memcpy(a.accuser, w->key[EVIL], WIRE_ID_BYTES);
    toy_signature(a.accuser, msg, wire_accusation_signed(msg, sizeof msg, &a), a.signature);
    return members_of(out, NULL, &a);
}

static inline size_t ping(struct world *w, uint8_t *out)
{
    struct wire_ping m = {.round = UINT64_MAX, .busy_ms = UINT32_MAX};
    (void)w;
    return wire_put_ping(out, SCRATCH, &m);
}
static inline size_t edge_max(struct world *w, uint8_t *out)
{
    struct wire_edge m = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                          UINT64_MAX, UINT64_MAX, true,       true};
    (void)w;
    return wire_put_edge(out, SCRATCH, &m);
}
static inline size_t edge_same_far(struct world *w, uint8_t *out)
{
    struct wire_edge m = {w->seen.last_delta.epoch, UINT64_MAX, 2, 0, 3, 4, false, false};
    return wire_put_edge(out, SCRATCH, &m);
}
static inline size_t close_edge(struct world *w, uint8_t *out)
{
    (void)w;
    return wire_put_edge_close(out, SCRATCH);
}
static inline size_t close_long(struct world *w, uint8_t *out)
{
    size_t n = close_edge(w, out);
    out[n] = 0;
    return n + 1;
}
static inline size_t status_req_long(struct world *w, uint8_t *out)
{
    size_t n = wire_put_status_req(out, SCRATCH);
    (void)w, out[n] = 0xc0;
    return n + 1;
}
static inline size_t status_of_mine(struct world *w, uint8_t *out)
{
    struct wire_status s = {.round = 1};
    (void)w;
    return wire_put_status(out, SCRATCH, &s);
}
static inline size_t model_now(uint8_t *out, size_t n_floats, float value)
{
    static float payload[DIM + 1];
    struct wire_model m = {.round = 5, .payload = {(uint8_t *)payload, 4 * n_floats}};
    for (size_t k = 0; k < n_floats; k++)
        payload[k] = 2;
    payload[n_floats / 2] = value;
    size_t n = wire_put_model(out, SCRATCH, &m);
    memcpy(out + n, payload, 4 * n_floats);
    return n + 4 * n_floats;
}
static inline size_t model_unasked(struct world *w, uint8_t *out)
{
    (void)w;
    return model_now(out, DIM, 2);
}
static inline size_t model_initial_unasked(struct world *w, uint8_t *out)
{
    static const uint8_t floats[DIM * 4];
    struct wire_model m = {.round = WIRE_ROUND_INITIAL, .payload = {floats, sizeof floats}};
    (void)w;
    /* Writes the head of the MODEL message only. The floats are appended below. */
    size_t n = wire_put_model(out, SCRATCH, &m);
    memcpy(out + n, floats, sizeof floats);
    return n + sizeof floats;
}
static inline size_t model_req_initial(struct world *w, uint8_t *out)
{
    struct wire_model_req m = {.round = WIRE_ROUND_INITIAL};
    (void)w;
    return wire_put_model_req(out, SCRATCH, &m);
}
static inline size_t model_req_initial_far(struct world *w, uint8_t *out)
{
    struct wire_model_req m = {.round = WIRE_ROUND_INITIAL, .piece = WIRE_PIECE_LAYERS - 1};
    (void)w;
    return wire_put_model_req(out, SCRATCH, &m);
}
static inline size_t model_req_garbage(struct world *w, uint8_t *out)
{
    struct wire_model_req m = {.round = 1, .piece = WIRE_PIECE_WHOLE};
    (void)w;
    return wire_put_model_req(out, SCRATCH, &m) - 1;
}
static inline size_t nothing(struct world *w, uint8_t *out)
{
    (void)w, (void)out;
    return 0;
}
static inline size_t unknown_type(struct world *w, uint8_t *out)
{
    (void)w;
    return out[0] = 0x91, out[1] = WIRE_TYPE_END, 2;
}

/* Defines a function that makes a valid delta and changes one field. */
#define DELTA_ACT(name, change)                                                                    \
    static inline size_t name(struct world *w, uint8_t *out)                                       \
    {                                                                                              \
        static uint8_t payload[65536];                                                             \
        struct wire_delta d = good_delta(w, payload);                                              \
        change;                                                                                    \
        return put_delta(out, &d);                                                                 \
    }
DELTA_ACT(delta_good, (void)0)
DELTA_ACT(delta_epoch, d.epoch++)
DELTA_ACT(delta_no_epoch, d.epoch = 0)
DELTA_ACT(delta_round_1, d.round += 1)
DELTA_ACT(delta_round_2, d.round += 2)
DELTA_ACT(delta_round_max, d.round = UINT64_MAX)
DELTA_ACT(delta_run_round, d.run_round = UINT64_MAX)
DELTA_ACT(delta_run_round_far, d.run_round = w->run.rounds + EDGES_BEATS_MORE + 1)
DELTA_ACT(delta_codec_3, d.codec = DELTA_CODECS)
DELTA_ACT(delta_codec_15, d.codec = WIRE_CODE_MAX)
DELTA_ACT(delta_codec_other, d.codec = DELTA_FINAL)
DELTA_ACT(delta_degree, d.degree = 0)
DELTA_ACT(delta_x2, d.x2 = (float)NAN)
DELTA_ACT(delta_x2_less, d.x2 = -1)
DELTA_ACT(delta_e2, d.e2 = (float)INFINITY)
DELTA_ACT(delta_empty, d.payload.n = 0)
DELTA_ACT(delta_short, d.payload.n--)
DELTA_ACT(delta_long, d.payload.n++)
DELTA_ACT(delta_too_long, d.payload.n = 60000)
DELTA_ACT(delta_garbage, memset(payload, 0xa5, d.payload.n))
DELTA_ACT(delta_sketch, (d.sketch_generation = 1, d.sketch = (struct bytes){payload, 9}))
DELTA_ACT(delta_sketch_tag, d.sketch = ((struct bytes){payload, 9}))
DELTA_ACT(delta_sketch_long,
          (d.sketch_generation = 1, d.sketch = (struct bytes){payload, WIRE_SKETCH_MAX}))
DELTA_ACT(delta_sketch_nan, d.mean_dist2 = (float)NAN)
DELTA_ACT(delta_settled, d.settled = UINT32_MAX)

static inline size_t delta_cut(struct world *w, uint8_t *out)
{
    return delta_good(w, out) / 2;
}

static inline size_t members_good(struct world *w, uint8_t *out)
{
    return members_of(out, &w->known[FRIEND], NULL);
}
static inline size_t model_req(struct world *w, uint8_t *out)
{
    struct wire_model_req m = {.round = 2, .piece = WIRE_PIECE_WHOLE};
    (void)w;
    return wire_put_model_req(out, SCRATCH, &m);
}
static inline size_t status_req(struct world *w, uint8_t *out)
{
    (void)w;
    return wire_put_status_req(out, SCRATCH);
}
/* Returns the node's own last delta, with its sketch. */
static inline size_t delta_echo(struct world *w, uint8_t *out)
{
    if (w->delta == NULL)
        return delta_good(w, out);
    memcpy(out, w->delta, w->n_delta);
    return w->n_delta;
}

static const struct act acts[] = {
    {"nothing", nothing, false, VIOLATION},
    {"an unknown type", unknown_type, false, VIOLATION},
    {"HELLO of another version", hello_version, false, VIOLATION},
    {"HELLO with another's record", hello_who, false, VIOLATION},
    {"HELLO with a forged record", hello_signature, false, VIOLATION},
    {"HELLO as an observer, now", hello_role, false, VIOLATION},
    {"HELLO as an observer with an edge", hello_role, true, VIOLATION},
    {"HELLO with half a run", hello_text, false, VIOLATION},
    {"HELLO once more", hello_again, true, TAKEN},
    {"HELLO of another run", hello_other_run, true, ENDED},
    {"MEMBERS: the friend has left", members_forged, false, VIOLATION},
    {"MEMBERS: about ours", members_forged_ours, false, VIOLATION},
    {"MEMBERS: accused in the friend's name", members_accuses_as_other, false, VIOLATION},
    {"MEMBERS: the friend accused", members_accuses_friend, false, TAKEN},
    {"PING from beyond", ping, true, TAKEN},
    {"EDGE of all ones", edge_max, true, VIOLATION},
    {"EDGE of a far round", edge_same_far, true, TAKEN},
    {"EDGE_CLOSE", close_edge, true, TAKEN},
    {"EDGE_CLOSE without an edge", close_edge, false, TAKEN},
    {"EDGE_CLOSE with a tail", close_long, true, VIOLATION},
    {"STATUS_REQ with a tail", status_req_long, false, VIOLATION},
    {"STATUS", status_of_mine, false, VIOLATION},
    {"MODEL not asked for", model_unasked, false, VIOLATION},
    {"MODEL not asked for, edge open", model_unasked, true, VIOLATION},
    {"MODEL of the beginning, not asked for", model_initial_unasked, false, VIOLATION},
    {"MODEL_REQ of the beginning", model_req_initial, false, TAKEN},
    {"MODEL_REQ of a piece of it that is not there", model_req_initial_far, false, TAKEN},
    {"half a MODEL_REQ", model_req_garbage, false, VIOLATION},
    {"DELTA without an edge", delta_good, false, DROPPED},
    {"DELTA", delta_good, true, TAKEN},
    {"DELTA of another epoch", delta_epoch, true, DROPPED},
    {"DELTA of no epoch", delta_no_epoch, true, DROPPED},
    {"DELTA one ahead", delta_round_1, true, TAKEN},
    {"DELTA two ahead", delta_round_2, true, VIOLATION},
    {"DELTA far ahead", delta_round_max, true, VIOLATION},
    {"DELTA from the end of time", delta_run_round, true, VIOLATION},
    {"DELTA from after the run", delta_run_round_far, true, VIOLATION},
    {"DELTA in no codec", delta_codec_3, true, VIOLATION},
    {"DELTA in codec 15", delta_codec_15, true, VIOLATION},
    {"DELTA in the wrong codec", delta_codec_other, true, VIOLATION},
    {"DELTA of degree 0", delta_degree, true, VIOLATION},
    {"DELTA with x2 NaN", delta_x2, true, VIOLATION},
    {"DELTA with x2 < 0", delta_x2_less, true, VIOLATION},
    {"DELTA with e2 infinite", delta_e2, true, VIOLATION},
    {"DELTA, empty", delta_empty, true, VIOLATION},
    {"DELTA, a byte short", delta_short, true, VIOLATION},
    {"DELTA, a byte long", delta_long, true, VIOLATION},
    {"DELTA, far too long", delta_too_long, true, VIOLATION},
    {"DELTA of garbage", delta_garbage, true, VIOLATION},
    {"DELTA with a bad sketch", delta_sketch, true, VIOLATION},
    {"DELTA with a sketch of no window", delta_sketch_tag, true, VIOLATION},
    {"DELTA with an overlong sketch", delta_sketch_long, true, VIOLATION},
    {"DELTA with NaN beside the sketch", delta_sketch_nan, true, VIOLATION},
    {"DELTA that is all settled", delta_settled, true, TAKEN},
    {"half a DELTA", delta_cut, true, VIOLATION},
};

/* The hostile member sends a message. The node must accept, drop or refuse the message, continue
 * with the honest node FRIEND, and keep its model. */
static inline void try_act(struct world *w, const struct act *a)
{
    static uint8_t out[SCRATCH];
    float before[FLOATS];
    size_t size = n_floats() * sizeof(float);
    if (a->opened) {
        evil_opens(w);
    } else {
        evil_connects(w);
        evil_hello(w);
    }
    uint64_t violations = progress(w, OURS).violations;
    uint64_t round = edge_with(w, FRIEND)->round;
    memcpy(before, model(w, OURS), size);
    size_t n = a->make(w, out);
    evil_says(w, out, n);
    if (w->hung_up != (a->want == ENDED || a->want == VIOLATION)
        || w->violation != (a->want == VIOLATION))
        fail_msg("%s: %s", a->what,
                 w->violation ? "a violation"
                 : w->hung_up ? "hung up"
                              : "taken");
    assert_int_equal(progress(w, OURS).violations, violations + (a->want == VIOLATION));
    assert_memory_equal(before, model(w, OURS), size);
    check_friend(w);
    assert_int_equal(edge_with(w, FRIEND)->round, round);
    /* In lock step, the node would wait for more messages of the hostile peer after a valid one,
     * so the test ends the session. */
    if (a->want == TAKEN && a->opened)
        disconnect(w, w->evil, true);
    check_alive(w);
    if (a->want == DROPPED) /* A dropped delta must not have completed an exchange. */
        assert_true(edge_with(w, EVIL) == NULL || edge_with(w, EVIL)->round == 0);
}

/* The node joins late. The hostile member claims to be in the middle of the run, so the node asks
 * this member for its model. */
static inline void evil_is_asked(struct world *w)
{
    char text[WIRE_RUN_MAX + 1];
    evil_connects(w);
    struct wire_hello h = good_hello(w, text);
    h.round = 50;
    evil_says(w, scratch, wire_put_hello(scratch, sizeof scratch, &h));
    run_for(w, SECOND / 5);
    if (!w->seen.model_req)
        fail_msg("ours has not asked for a model");
}

#endif
