/* tests/unit/node_membership_log.c -- tests of the messages about members that are silent, dead,
 * back or gone: one line each, and a limited number of lines. */
#include "peer/node/session/sessions_state.h"
#include "peer/node/state.h"

#include "tests/unit/gossip_toy.h"

struct rig
{
    struct env env;
    struct node_effects fx;
    struct sessions sessions;
    struct edges *edges;
    struct membership_log *roll;
    char said[64][NODE_NOTE_MAX];
    uint32_t n_said;
};

static void rig_open(struct rig *r, uint32_t n)
{
    memset(r, 0, sizeof *r);
    r->env.members = open_knowing(n);
    memcpy(r->env.config.id, members_self(r->env.members)->id, WIRE_ID_BYTES);
    r->env.fx = &r->fx;
    r->env.now_us = SECOND;
    r->sessions.env = &r->env;
    r->edges = edges_open(&r->env, &r->sessions, NULL);
    assert_non_null(r->edges);
    r->roll = membership_log_open(&r->env, &r->sessions, r->edges);
    assert_non_null(r->roll);
}

static void rig_close(struct rig *r)
{
    membership_log_close(r->roll);
    edges_close(r->edges);
    members_close(r->env.members);
}

/* Advances the time to `now_us`, and stores the messages of that step in `r->said`. */
static void look(struct rig *r, int64_t now_us)
{
    r->env.now_us = now_us;
    r->fx.n_notes = 0;
    members_tick(r->env.members, now_us);
    membership_log_tick(r->roll);
    for (uint32_t i = 0; i < r->fx.n_notes; i++) {
        assert_true(r->n_said < 64);
        memcpy(r->said[r->n_said++], r->fx.notes[i].text, NODE_NOTE_MAX);
    }
}

static void expect(const struct rig *r, uint32_t n, const char *last)
{
    if (r->n_said != n || (n > 0 && strcmp(r->said[n - 1], last) != 0))
        fail_msg("%u lines, the last '%s', expected %u, '%s'", r->n_said,
                 r->n_said > 0 ? r->said[r->n_said - 1] : "", n, last);
}

static void test_a_death_and_a_return(void **state)
{
    static struct rig r;
    (void)state;
    rig_open(&r, 3);
    look(&r, SECOND);
    expect(&r, 0, "");
    members_accuse(r.env.members, id_of(2), 2 * SECOND);
    look(&r, 2 * SECOND);
    expect(&r, 1,
           "peer-2 is silent, never heard by this peer: declared dead within 7 s unless a message "
           "arrives");
    look(&r, 3 * SECOND);
    expect(&r, 1, r.said[0]);
    look(&r, 2 * SECOND + TOY_SUSPECT_US);
    expect(&r, 2, "peer-2 is dead: the topology now has 3 members");
    members_session(r.env.members, id_of(2), true, 20 * SECOND);
    look(&r, 20 * SECOND);
    expect(&r, 3, "peer-2 is back: the topology now has 4 members");
    assert_int_equal(merge(r.env.members, record_in(3, 2, RECORD_LEFT)), MEMBERS_NEWS);
    look(&r, 21 * SECOND);
    expect(&r, 4, "peer-3 is gone, having left the run: the topology now has 3 members");
    rig_close(&r);
}

/* The duration of a silence is known only for members that this node has heard itself. */
static void test_since_when(void **state)
{
    static struct rig r;
    (void)state;
    rig_open(&r, 1);
    struct link *l = &r.sessions.links[0];
    r.sessions.n_links = 1;
    *l = (struct link){.used = true, .role = LINK_PEER, .heard_us = SECOND};
    memcpy(l->id, id_of(1), WIRE_ID_BYTES);
    members_accuse(r.env.members, id_of(1), 5 * SECOND);
    look(&r, 5 * SECOND);
    expect(&r, 1, "peer-1 is silent for 4 s: declared dead within 7 s unless a message arrives");
    look(&r, 12 * SECOND);
    expect(&r, 2, "peer-1 is dead, silent for 11 s: the topology now has 1 member");
    rig_close(&r);
}

/* Members that die at the same time are reported in one log line. */
static void test_many(void **state)
{
    static struct rig r;
    (void)state;
    rig_open(&r, 20);
    r.sessions.n_links = 1;
    /* The node's only session is with a member, which reports that others are silent. */
    r.sessions.links[0].used = true;
    r.sessions.links[0].role = LINK_PEER;
    for (uint32_t i = 1; i <= 6; i++)
        members_accuse(r.env.members, id_of(i), 2 * SECOND);
    look(&r, 2 * SECOND);
    expect(&r, 1,
           "peer-1, peer-2, peer-3, peer-4 and 2 more are silent according to other members: "
           "declared dead within 7 s unless a message arrives");
    look(&r, 2 * SECOND + TOY_SUSPECT_US);
    expect(&r, 2,
           "peer-1, peer-2, peer-3, peer-4 and 2 more are dead: the topology now has 15 members");
    rig_close(&r);
}

/* A member comes and goes every 10 s for 10 min. After the first four lines about this member, the
 * log has one line about it per minute, with the number of changes that were not reported. No line
 * reports the silence of a finished member. */
static void test_flapping(void **state)
{
    static struct rig r;
    (void)state;
    rig_open(&r, 2);
    int64_t t = SECOND;
    for (uint32_t i = 0; i < 60; i++, t += 10 * SECOND) {
        members_session(r.env.members, id_of(1), i % 2 == 1, t);
        members_accuse(r.env.members, id_of(1), t);
        look(&r, t);
    }
    assert_true(r.n_said >= 10 && r.n_said <= 15);
    assert_non_null(strstr(r.said[r.n_said - 1], " changes were not reported)"));
    uint32_t n = r.n_said;
    assert_int_equal(merge(r.env.members, record_in(2, 2, RECORD_FINISHED)), MEMBERS_NEWS);
    members_accuse(r.env.members, id_of(2), t);
    look(&r, t + 1);
    for (; n < r.n_said; n++)
        assert_null(strstr(r.said[n], "peer-2"));
    rig_close(&r);
}

/* A node that all other peers refuse hears no member. The node knows the reason, so it does not
 * report the members as silent. After the node has been admitted, it reports changes of members
 * again. */
static void test_refused(void **state)
{
    static struct rig r;
    (void)state;
    rig_open(&r, 3);
    r.sessions.admit.refused_us = SECOND;
    members_accuse(r.env.members, id_of(2), 2 * SECOND);
    look(&r, 2 * SECOND);
    look(&r, 3 * SECOND);
    expect(&r, 0, "");
    r.sessions.admit.refused_us = 0;
    look(&r, 2 * SECOND + TOY_SUSPECT_US);
    expect(&r, 1, "peer-2 is dead: the topology now has 3 members");
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_death_and_a_return),
        cmocka_unit_test(test_since_when),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_flapping),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
