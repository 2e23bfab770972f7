/* tests/unit/node_sessions_rig.h -- the sessions module of a node by itself, with two other peers
 * that the test plays. */
#ifndef TESTS_UNIT_NODE_SESSIONS_RIG_H
#define TESTS_UNIT_NODE_SESSIONS_RIG_H

#include "peer/node/session/sessions_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* First bytes of identities. The node's identity is between the other two. */
enum { LOW = 1, OURS = 5, HIGH = 9, SECOND = 1000 * 1000 };

struct rig
{
    struct env env;
    struct sessions *s;
    struct node_effects fx;
    struct standing standing;
    /* Result of the callback that judges the run in a HELLO. Set by the test. */
    enum sessions_run said;
    uint32_t n_met; /* Number of calls of the callback met(). */
    uint32_t n_runs, n_lost, n_finished, n_status;
    uint32_t next_link;
    struct record known[2];
};

static struct rig rig; /* Static, because the test state is too large for the stack. */

static inline bool verify(void *self, const uint8_t id[WIRE_ID_BYTES], const uint8_t *msg, size_t n,
                          const uint8_t signature[WIRE_SIGNATURE_BYTES])
{
    (void)self, (void)id, (void)msg, (void)n, (void)signature;
    return true;
}

static inline void sign(void *self, const uint8_t *msg, size_t n,
                        uint8_t signature[WIRE_SIGNATURE_BYTES])
{
    (void)self, (void)msg, (void)n;
    memset(signature, 0, WIRE_SIGNATURE_BYTES);
}

static const struct members_crypto crypto = {NULL, verify, sign};

/* ---- the owner ---- */

static inline void say_standing(void *self, struct standing *s)
{
    (void)self;
    *s = rig.standing;
}

static inline enum sessions_run judge_run(void *self, const struct wire_hello *h, bool dialled)
{
    (void)self, (void)h, (void)dialled;
    rig.n_runs++;
    return rig.said;
}

static inline void count_met(void *self, const struct link *l)
{
    (void)self, (void)l;
    rig.n_met++;
}

static inline void count_lost(void *self, const struct link *l)
{
    (void)self, (void)l;
    rig.n_lost++;
}

static inline void count_finished(void *self, const struct link *l)
{
    (void)self, (void)l;
    rig.n_finished++;
}

static inline void count_status(void *self, const struct link *l)
{
    (void)self, (void)l;
    rig.n_status++;
}

static inline bool never(void *self, const struct link *l)
{
    (void)self, (void)l;
    return false;
}

/* ---- the rig ---- */

static inline struct record record(uint8_t who, uint64_t boot)
{
    struct record r = {.n_addresses = 1, .incarnation = 1, .boot = boot, .state = RECORD_RUNNING};
    r.id[0] = who;
    snprintf(r.name, sizeof r.name, "peer-%u", (unsigned)who);
    snprintf(r.address[0], sizeof r.address[0], "10.0.0.%u:7100", (unsigned)who);
    return r;
}

static inline void step_at(int64_t now_us)
{
    env_begin_step(&rig.env, now_us, 0, &rig.fx);
}

static inline void begin(void)
{
    static const char *const names[] = {"tracker:7100"};
    const struct sessions_owner owner = {NULL,       say_standing,   judge_run, count_met,
                                         count_lost, count_finished, never,     count_status};
    memset(&rig, 0, sizeof rig);
    rig.known[0] = record(LOW, 1);
    rig.known[1] = record(HIGH, 1);
    struct node_config c = {.name = "ours",
                            .id = {OURS},
                            .boot = 7,
                            .incarnation = 1,
                            .own_seed = 3,
                            .bootstrap = names,
                            .n_bootstrap = 1,
                            .crypto = &crypto,
                            .known = rig.known,
                            .n_known = 2,
                            .forget_us = 120 * SECOND};
    assert_int_equal(env_open(&rig.env, &c), 0);
    assert_int_equal(sessions_open(&rig.s, &rig.env, &owner), 0);
    step_at(100 * SECOND);
    sessions_start(rig.s);
}

static inline void end(void)
{
    sessions_close(rig.s);
    env_close(&rig.env);
}

static inline const struct link *up(uint8_t who, bool dialled)
{
    struct node_event ev = {.type = NODE_LINK_UP, .link = ++rig.next_link};
    ev.up.id[0] = who;
    ev.up.dialled = dialled;
    ev.up.tag = dialled ? 1000 + rig.next_link : 0;
    ev.up.version = WIRE_VERSION;
    sessions_up(rig.s, &ev);
    return sessions_link(rig.s, rig.next_link);
}

static inline void down(const struct link *l)
{
    struct node_event ev = {.type = NODE_LINK_DOWN, .link = l->number};
    sessions_down(rig.s, &ev);
}

static inline void hello(const struct link *l, uint64_t boot)
{
    struct wire_hello h = {.version = WIRE_VERSION, .role = WIRE_PEER, .has_run = true};
    h.record = record(l->id[0], boot);
    sessions_hello(rig.s, l, &h);
}

/* Ends the step. Returns whether the node sent a message of type `type` over the link, and stores
 * the message in *m. */
static inline bool sent(uint32_t link, enum wire_type type, struct wire_message *m)
{
    static struct wire_batch batch;
    env_end_step(&rig.env);
    for (uint32_t i = 0; i < rig.fx.n_sends; i++) {
        const struct node_send *out = &rig.fx.sends[i];
        if (out->link == link && wire_read(out->head, out->n_head, &batch, m) && m->type == type)
            return true;
    }
    return false;
}

/* Advances the time by one tick, in which the node receives something over the link `friend` (NULL:
 * it receives nothing). refuse: the node's dials fail at once. Otherwise the dials get no answer. */
static inline void tick(const struct link *friend, bool refuse)
{
    step_at(rig.env.now_us + TICK_US);
    if (friend != NULL)
        sessions_heard(rig.s, friend->number);
    sessions_tick(rig.s);
    for (uint32_t i = 0; i < rig.fx.n_dials && refuse; i++)
        sessions_dial_failed(rig.s, &(struct node_event){.dial = {.tag = rig.fx.dials[i].tag,
                                                                  .why = NODE_WHY_REFUSED}});
}

#endif
