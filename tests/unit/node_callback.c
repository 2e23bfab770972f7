/* tests/unit/node_callback.c -- tests of calls to members at their announced addresses, which may
 * not work. */
#include "tests/unit/node_lone_world.h"

#include "peer/node/session/sessions_state.h"
#include "peer/node/state.h"

enum { LOW_ID = 0x10, ROUNDS = 1000000 };

/* Returns a node that reaches no member by itself. `n` members have connected to it. */
static struct lone *called_by(uint32_t n)
{
    struct lone *w = lone_new(n, LOW_ID, ROUNDS);
    w->config.calls_back = true;
    w->deaf = true; /* Dials get no answer, unless the test reports one. */
    lone_open(w);
    for (uint32_t i = 0; i < n; i++) {
        (void)lone_connect(w, i, false, 0);
        lone_hello(w, i);
    }
    return w;
}

/* Returns the network address at which the node now calls member `who` back, and sets *tag to the
 * tag of that dial. NULL: no such call runs. */
static const char *call_to(const struct lone *w, uint32_t who, uint32_t *tag)
{
    const struct callback *b = &w->node->sessions->callback;
    for (uint32_t i = 0; i < CALLBACK_CALLS; i++)
        if (b->call[i].tag != 0 && b->call[i].link == (uint32_t)w->actor[who].link) {
            *tag = b->call[i].tag;
            return b->call[i].address;
        }
    return NULL;
}

static bool fails(struct lone *w, uint32_t who, enum node_why why)
{
    uint32_t tag;
    if (call_to(w, who, &tag) == NULL)
        return false;
    lone_step(w, &(struct node_event){.type = NODE_DIAL_FAILED, .dial = {.tag = tag, .why = why}});
    return true;
}

/* The peer with the identity `id` accepts the connection that the node is dialling to peer `who`.
 * Returns the number of the new link. */
static uint32_t answers(struct lone *w, uint32_t who, const uint8_t *id)
{
    uint32_t tag = 0, number = w->n_links++;
    assert_non_null(call_to(w, who, &tag));
    struct node_event ev = {.type = NODE_LINK_UP,
                            .link = number,
                            .up = {.dialled = true,
                                   .tag = tag,
                                   .version = WIRE_VERSION,
                                   .local_host = "10.0.1.1",
                                   .remote_host = "10.0.1.2"}};
    memcpy(ev.up.id, id, WIRE_ID_BYTES);
    lone_step(w, &ev);
    return number;
}

static void test_refused_is_told_at_both_ends(void **state)
{
    (void)state;
    struct lone *w = called_by(1);
    char said[320];
    uint32_t tag;
    lone_run(w, 2 * SECOND);
    assert_string_equal(call_to(w, 0, &tag), w->actor[0].record.address[0]);
    assert_true(fails(w, 0, NODE_WHY_REFUSED));
    /* A single failed dial is not reported to the member, which may be restarting. */
    assert_int_equal(w->actor[0].n_callback, 0);
    lone_run(w, 2 * SECOND);
    assert_true(fails(w, 0, NODE_WHY_REFUSED));
    lone_run(w, SECOND);
    snprintf(said, sizeof said,
             "%s cannot be called at %s: nothing listens at that address (connection refused)",
             w->actor[0].record.name, w->actor[0].record.address[0]);
    assert_int_equal(lone_said(w, said), 1);
    assert_int_equal(w->actor[0].n_callback, 1);
    assert_int_equal(w->actor[0].callback.why, NODE_WHY_REFUSED);
    assert_string_equal(w->actor[0].callback.address, w->actor[0].record.address[0]);
    lone_run(w, 60 * SECOND);
    assert_int_equal(lone_said(w, "cannot be called"), 1);
    assert_false(fails(w, 0, NODE_WHY_REFUSED)); /* The node does not dial the member again. */
    lone_close(w);
}

static void test_an_address_that_works(void **state)
{
    (void)state;
    struct lone *w = called_by(1);
    lone_run(w, 2 * SECOND);
    uint32_t number = answers(w, 0, w->actor[0].id);
    lone_run(w, 60 * SECOND);
    assert_true(w->link[number].hung_up);
    assert_false(w->link[w->actor[0].link].hung_up);
    assert_int_equal(w->actor[0].n_callback, 1);
    assert_int_equal(w->actor[0].callback.why, NODE_WHY_UNKNOWN);
    assert_int_equal(lone_said(w, "called"), 0);
    lone_close(w);
}

/* The node has dialled the member at an address of the member's record. The node tells the
 * member that this address works, and does not dial again. The member therefore does not warn
 * that no peer can call it. */
static void test_a_dialled_address_works(void **state)
{
    (void)state;
    struct lone *w = lone_new(1, LOW_ID, ROUNDS);
    w->config.calls_back = true;
    w->deaf = true;
    lone_open(w);
    (void)lone_connect(w, 0, true, 12345);
    lone_hello(w, 0);
    lone_run(w, 10 * SECOND);
    uint32_t tag;
    assert_null(call_to(w, 0, &tag));
    assert_int_equal(w->actor[0].n_callback, 1);
    assert_int_equal(w->actor[0].callback.why, NODE_WHY_UNKNOWN);
    lone_close(w);
}

/* The node dials the address that a member has announced. If another peer answers there, the dial
 * must count as failed, and the member must be told why. The answer may even come from the node
 * itself, if the member has announced 127.0.0.1. */
static void test_another_peer_answers(void **state)
{
    (void)state;
    struct lone *w = called_by(2);
    lone_run(w, 2 * SECOND);
    (void)answers(w, 0, w->actor[1].id);
    (void)answers(w, 1, w->id);
    lone_run(w, 2 * SECOND);
    (void)answers(w, 0, w->actor[1].id);
    (void)answers(w, 1, w->id);
    lone_run(w, SECOND);
    assert_int_equal(lone_said(w, "another peer answers at that address"), 2);
    assert_int_equal(w->actor[0].callback.why, NODE_WHY_OTHER);
    assert_int_equal(w->actor[1].callback.why, NODE_WHY_OTHER);
    lone_close(w);
}

/* Some failed dials show nothing about the address, for example if the other peer has no room for
 * the session or is slow. The node does not report these to the member. */
static void test_what_does_not_tell(void **state)
{
    (void)state;
    static const enum node_why why[] = {NODE_WHY_UNKNOWN, NODE_WHY_MUTE, NODE_WHY_SLOW};
    for (size_t i = 0; i < sizeof why / sizeof *why; i++) {
        struct lone *w = called_by(1);
        for (int k = 0; k < 2; k++) {
            lone_run(w, 2 * SECOND);
            assert_true(fails(w, 0, why[i]));
        }
        lone_run(w, 10 * SECOND);
        assert_int_equal(lone_said(w, "cannot be called"), 0);
        assert_int_equal(w->actor[0].n_callback, 0);
        lone_close(w);
    }
}

/* If many members report that they cannot call the node back, the warnings name only some of
 * them. */
static void test_many_share_a_line(void **state)
{
    (void)state;
    struct lone *w = called_by(LONE_ACTORS);
    for (int k = 0; k < 60; k++) {
        lone_run(w, SECOND / 2);
        for (uint32_t i = 0; i < LONE_ACTORS; i++)
            (void)fails(w, i, NODE_WHY_TIMEOUT);
    }
    assert_in_range(lone_said(w, "cannot be called at 10."), 1, CALLBACK_LINES);
    assert_int_equal(lone_said(w, "more members cannot be called"),
                     (int)LONE_ACTORS > (int)CALLBACK_LINES);
    lone_close(w);
}

static void says(struct lone *w, uint32_t who, enum node_why why, const char *address)
{
    uint8_t out[256];
    struct wire_callback m = {.why = (uint32_t)why};
    snprintf(m.address, sizeof m.address, "%s", address);
    lone_says(w, who, out, wire_put_callback(out, sizeof out, &m));
}

/* Members report whether they can call the node back. If no member can, the node warns
 * repeatedly. If only some members cannot, the node warns once. Reports about addresses that the
 * node does not have are ignored. */
static void test_what_members_say_of_us(void **state)
{
    (void)state;
    for (int other_can = 0; other_can < 2; other_can++) {
        struct lone *w = called_by(2);
        lone_run(w, SECOND);
        const char *own = members_self(w->node->env.members)->address[0];
        says(w, 0, NODE_WHY_REFUSED, "10.3.3.3:1");
        lone_run(w, 3 * SECOND);
        assert_int_equal(lone_said(w, "call this peer"), 0);
        says(w, 0, NODE_WHY_REFUSED, own);
        if (other_can)
            says(w, 1, NODE_WHY_UNKNOWN, own);
        lone_run(w, 2 * SECOND);
        assert_int_equal(lone_said(w, "no member can call this peer at 10.0.1.1:7100"), !other_can);
        assert_int_equal(lone_said(w, "cannot call this peer at 10.0.1.1:7100"), other_can);
        assert_int_equal(lone_said(w, "--advertise HOST:PORT"), 1);
        lone_run(w, 11 * SECOND);
        assert_int_equal(lone_said(w, "--advertise HOST:PORT"), other_can ? 1 : 2);
        lone_close(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_is_told_at_both_ends),
        cmocka_unit_test(test_an_address_that_works),
        cmocka_unit_test(test_a_dialled_address_works),
        cmocka_unit_test(test_another_peer_answers),
        cmocka_unit_test(test_what_does_not_tell),
        cmocka_unit_test(test_many_share_a_line),
        cmocka_unit_test(test_what_members_say_of_us),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
