/* tests/unit/node_quorum.c -- tests of peer/node/membership/quorum.h: which members count for the
 * quorum, and what a peer without a quorum does. */
#include "peer/node/membership/quorum.h"

#include "tests/unit/gossip_toy.h"

enum { PATIENCE = 600 * SECOND };

/* --min-peers of the run. Above 1, an initial member that leaves stays a voter. */
static uint32_t min_peers;

static int reset_min_peers(void **state)
{
    (void)state;
    min_peers = 1;
    return 0;
}

/* Returns a signed record of peer `number`, which says that the peer is an initial member. */
static struct record initial_in(uint32_t number, uint64_t incarnation, enum record_state state)
{
    struct record r = unsigned_record(number, incarnation);
    r.state = state;
    r.initial = true;
    return signed_record(r);
}

static void kill_peer(struct members *m, uint32_t number, int64_t now_us)
{
    members_accuse(m, id_of(number), now_us);
    members_tick(m, now_us + TOY_SUSPECT_US);
    assert_int_equal(state_of(m, number), MEMBER_DEAD);
}

/* Opens a table that knows peers 0 to n. All are initial members. */
static struct members *open_initial(uint32_t n)
{
    struct members *m = open_in(NULL, 0, 1);
    members_set_initial(m);
    for (uint32_t i = 1; i <= n; i++)
        assert_int_equal(merge(m, initial_in(i, 1, RECORD_RUNNING)), MEMBERS_NEWS);
    return m;
}

static void begin(struct quorum *q, const struct members *m, int64_t now_us)
{
    assert_int_equal(quorum_follow(q, m, min_peers), 0);
    quorum_begin(q, now_us);
}

static bool look_at(struct quorum *q, const struct members *m, double share, int64_t now_us)
{
    assert_int_equal(quorum_follow(q, m, min_peers), 0);
    return quorum_look(q, m, share, PATIENCE, now_us);
}

static bool look(struct quorum *q, const struct members *m, int64_t now_us)
{
    return look_at(q, m, 0.5, now_us);
}

static void expect(const struct quorum *q, enum quorum_state s, uint32_t n_live, uint32_t n_members)
{
    assert_int_equal(quorum_status(q).state, s);
    assert_int_equal(quorum_status(q).n_live, n_live);
    assert_int_equal(quorum_status(q).n_members, n_members);
}

/* Four of eight members are a quorum, three are not. After --quorum-timeout the node trains again
 * without a quorum. A new member counts towards the quorum. */
static void test_held_and_resigned(void **state)
{
    (void)state;
    struct quorum *q = quorum_open();
    assert_non_null(q);
    struct members *m = open_initial(7);
    assert_false(look(q, m, 0));
    assert_int_equal(quorum_status(q).state, QUORUM_THERE);
    begin(q, m, 0);
    for (uint32_t i = 1; i <= 4; i++)
        kill_peer(m, i, i);
    assert_false(look(q, m, 10));
    expect(q, QUORUM_THERE, 4, 8);
    kill_peer(m, 5, 20);
    assert_true(look(q, m, 30));
    expect(q, QUORUM_HELD, 3, 8);
    assert_false(look(q, m, 30 + PATIENCE - 1));
    assert_true(look(q, m, 30 + PATIENCE));
    expect(q, QUORUM_RESIGNED, 3, 8);
    assert_false(look(q, m, 30 + 9 * (int64_t)PATIENCE));
    struct record r = record(9, 1);
    assert_int_equal(members_merge(m, &r, 0), MEMBERS_NEWS);
    /* A new member, known only by its record, does not count before a peer has had a session with
     * it. */
    assert_false(look(q, m, 30 + 9 * (int64_t)PATIENCE));
    members_know(m, r.id, 0);
    assert_true(look(q, m, 30 + 9 * (int64_t)PATIENCE));
    expect(q, QUORUM_THERE, 4, 8);
    quorum_close(q);
    members_close(m);
}

/* If enough members for a quorum return, but only for a moment, the quorum timeout continues to
 * run. If they stay, the timeout starts from 0 when the quorum is lost again. */
static void test_moments(void **state)
{
    (void)state;
    struct quorum *q = quorum_open();
    assert_non_null(q);
    struct members *m = open_initial(1);
    int64_t now = 100 * (int64_t)SECOND;
    begin(q, m, 0);
    for (uint64_t k = 0; k < 3; k++) {
        int64_t stays = k < 2 ? SECOND : 31 * (int64_t)SECOND;
        kill_peer(m, 1, now);
        assert_true(look_at(q, m, 1, now));
        assert_int_equal(quorum_status(q).state, QUORUM_HELD);
        int64_t spent = k < 2 ? (int64_t)k * PATIENCE / 4 : PATIENCE / 2;
        assert_int_equal(now - quorum_status(q).since_us, spent);
        now += PATIENCE / 4;
        assert_false(look_at(q, m, 1, now));
        struct record r = record(1, 2 + 2 * k);
        assert_int_equal(members_merge(m, &r, now), MEMBERS_NEWS);
        assert_true(look_at(q, m, 1, now));
        assert_int_equal(quorum_status(q).state, QUORUM_THERE);
        now += stays;
    }
    kill_peer(m, 1, now);
    assert_true(look_at(q, m, 1, now));
    assert_int_equal(now, quorum_status(q).since_us);
    quorum_close(q);
    members_close(m);
}

static void suspect(struct members *m, uint32_t number, int64_t now_us)
{
    members_accuse(m, id_of(number), now_us);
    assert_int_equal(state_of(m, number), MEMBER_SUSPECT);
}

/* Several silent members count as absent before they are declared dead. A single silent member does
 * not. A lost quorum returns only when a silent member is heard. */
static void test_suspects(void **state)
{
    (void)state;
    struct quorum *q = quorum_open();
    assert_non_null(q);
    struct members *m = open_initial(3);
    begin(q, m, 0);
    kill_peer(m, 1, 0);
    kill_peer(m, 2, 0);
    suspect(m, 3, 20 * SECOND);
    /* Two of four members are dead and one is silent. As long as the silent member may be alive, it
     * and this node are a quorum. */
    assert_false(look(q, m, 20 * SECOND));
    expect(q, QUORUM_THERE, 2, 4);
    members_tick(m, 20 * SECOND + TOY_SUSPECT_US);
    assert_true(look(q, m, 40 * SECOND));
    expect(q, QUORUM_HELD, 1, 4);
    quorum_close(q);
    members_close(m);

    q = quorum_open();
    assert_non_null(q);
    m = open_initial(3);
    begin(q, m, 0);
    suspect(m, 1, 1);
    suspect(m, 2, SECOND);
    assert_false(look(q, m, SECOND));
    expect(q, QUORUM_THERE, 2, 4);
    suspect(m, 3, SECOND);
    assert_true(look(q, m, SECOND));
    expect(q, QUORUM_HELD, 1, 4);
    members_tick(m, 1 + TOY_SUSPECT_US);
    assert_int_equal(state_of(m, 1), MEMBER_DEAD);
    assert_int_equal(state_of(m, 2), MEMBER_SUSPECT);
    assert_false(look(q, m, 9 * SECOND));
    /* Member 3 refutes the accusation that it is silent, so it counts again and the quorum is
     * restored. */
    assert_int_equal(merge(m, record_in(3, 2, RECORD_RUNNING)), MEMBERS_NEWS);
    assert_true(look(q, m, 9 * SECOND));
    expect(q, QUORUM_THERE, 2, 4);
    quorum_close(q);
    members_close(m);
}

/* A member that has left cleanly must not count as missing. A finished member must always count as
 * present, even if it is dead. */
static void test_who_counts(void **state)
{
    (void)state;
    struct quorum *q = quorum_open();
    assert_non_null(q);
    struct members *m = open_initial(7);
    begin(q, m, 0);
    for (uint32_t i = 1; i <= 6; i++)
        assert_int_equal(merge(m, record_in(i, 2, RECORD_LEFT)), MEMBERS_NEWS);
    assert_false(look(q, m, 1));
    expect(q, QUORUM_THERE, 2, 2);
    assert_int_equal(merge(m, record_in(7, 2, RECORD_FINISHED)), MEMBERS_NEWS);
    kill_peer(m, 7, 3);
    assert_false(look(q, m, 4));
    expect(q, QUORUM_THERE, 2, 2);
    quorum_close(q);
    members_close(m);
}

/* A new member with the name of a dead member takes the place of the dead member in the quorum. */
static void test_replaced(void **state)
{
    (void)state;
    struct quorum *q = quorum_open();
    assert_non_null(q);
    struct members *m = open_initial(3);
    begin(q, m, 0);
    struct record r = unsigned_record(9, 1);
    strcpy(r.name, "peer-2");
    assert_int_equal(merge(m, signed_record(r)), MEMBERS_NEWS);
    assert_false(look(q, m, 0));
    /* The member that had this name before is not known to be dead, so both members count. */
    expect(q, QUORUM_THERE, 5, 4);
    kill_peer(m, 2, 1);
    assert_false(look(q, m, 9 * SECOND));
    expect(q, QUORUM_THERE, 4, 4);
    quorum_close(q);
    members_close(m);
}

/* Returns whether member `number` is a voter, that is a member that counts for the quorum. */
static bool votes(const struct quorum *q, const struct members *m, uint32_t number)
{
    bool voter[WIRE_MEMBERS_MAX];
    (void)quorum_voters(q, m, voter);
    for (size_t i = 0; i < members_count(m); i++)
        if (memcmp(members_at(m, i)->record->id, id_of(number), WIRE_ID_BYTES) == 0)
            return voter[i];
    return false;
}

/* A voter is a member whose record says that it is an initial member. The member's state when this
 * peer begins to train must not matter, nor whether this peer is a voter. A dead voter stays a
 * voter. */
static void test_voters(void **state)
{
    (void)state;
    for (int initial = 0; initial < 2; initial++) {
        struct quorum *q = quorum_open();
        assert_non_null(q);
        struct members *m = initial ? open_initial(4) : open_in(NULL, 0, 1);
        for (uint32_t i = 1; i <= 4 && !initial; i++)
            assert_int_equal(merge(m, initial_in(i, 1, RECORD_RUNNING)), MEMBERS_NEWS);
        kill_peer(m, 1, 0);
        assert_int_equal(merge(m, initial_in(2, 2, RECORD_STALLED)), MEMBERS_NEWS);
        assert_int_equal(merge(m, initial_in(4, 2, RECORD_LEFT)), MEMBERS_NEWS);
        assert_int_equal(merge(m, record(5, 1)), MEMBERS_NEWS);
        begin(q, m, 0);
        uint32_t n_voters = 3 + (uint32_t)initial;
        assert_false(look(q, m, 0));
        expect(q, QUORUM_THERE, 3, n_voters);
        assert_int_equal(votes(q, m, 0), initial);
        assert_true(votes(q, m, 1) && votes(q, m, 2) && votes(q, m, 3));
        assert_true(!votes(q, m, 4) && !votes(q, m, 5));
        /* The next process of member 1 does not know yet that it is an initial member. */
        assert_int_equal(merge(m, record(1, 3)), MEMBERS_NEWS);
        assert_false(look(q, m, 1));
        assert_true(votes(q, m, 1));
        /* If the record of an initial member arrives after training has begun, the member counts
         * from then on. */
        assert_int_equal(merge(m, initial_in(6, 1, RECORD_RUNNING)), MEMBERS_NEWS);
        assert_false(look(q, m, 2));
        expect(q, QUORUM_THERE, 5, n_voters + 1);
        /* Member 3 is not admitted any more. */
        members_refuse(m, id_of(3), true, 3);
        assert_false(look(q, m, 3));
        assert_true(!votes(q, m, 3));
        expect(q, QUORUM_THERE, 4, n_voters);
        quorum_close(q);
        members_close(m);
    }
}

/* A voter is a member that counts for the quorum. A new member with the name of an absent voter
 * must count instead of this voter. When the voter is back, the new member must no longer count. */
static void test_name_is_taken_over(void **state)
{
    (void)state;
    struct quorum *q = quorum_open();
    assert_non_null(q);
    struct members *m = open_initial(3);
    struct record r = unsigned_record(9, 1);
    strcpy(r.name, "peer-2");
    begin(q, m, 0);
    assert_int_equal(merge(m, signed_record(r)), MEMBERS_NEWS);
    assert_true(!votes(q, m, 9) && votes(q, m, 2));
    kill_peer(m, 2, 1);
    assert_false(look(q, m, 1));
    assert_true(votes(q, m, 9) && !votes(q, m, 2));
    assert_int_equal(quorum_voters(q, m, NULL), 4);
    members_tick(m, TOY_SUSPECT_US + 2 * TOY_FORGET_US);
    assert_null(members_find(m, id_of(2)));
    assert_true(votes(q, m, 9));
    assert_int_equal(quorum_voters(q, m, NULL), 4);
    quorum_close(q);
    members_close(m);
}

/* With --min-peers 1 an initial member that leaves gives up its vote. A new member with its name
 * must not vote, or the number of voters would depend on whether the new member is alive. With
 * --min-peers above 1 the number of voters is fixed, and the new member votes. */
static void test_name_of_a_member_that_left(void **state)
{
    (void)state;
    for (min_peers = 1; min_peers <= 2; min_peers++) {
        bool fixed = min_peers > 1;
        uint32_t n_voters = fixed ? 4 : 3;
        struct quorum *q = quorum_open();
        assert_non_null(q);
        struct members *m = open_initial(3);
        begin(q, m, 0);
        assert_int_equal(quorum_voters(q, m, NULL), 4);
        assert_int_equal(merge(m, initial_in(2, 2, RECORD_LEFT)), MEMBERS_NEWS);
        assert_false(look(q, m, 1));
        assert_int_equal(votes(q, m, 2), fixed);
        assert_int_equal(quorum_voters(q, m, NULL), n_voters);
        struct record r = unsigned_record(9, 1);
        strcpy(r.name, "peer-2");
        assert_int_equal(merge(m, signed_record(r)), MEMBERS_NEWS);
        assert_false(look(q, m, 2));
        assert_true(votes(q, m, 9) == fixed && !votes(q, m, 2));
        assert_int_equal(quorum_voters(q, m, NULL), n_voters);
        members_tick(m, TOY_SUSPECT_US + 2 * TOY_FORGET_US);
        assert_null(members_find(m, id_of(2)));
        assert_int_equal(votes(q, m, 9), fixed);
        assert_int_equal(quorum_voters(q, m, NULL), n_voters);
        quorum_close(q);
        members_close(m);
    }
}

/* An initial member that knows fewer than --min-peers initial members counts the missing ones as
 * absent voters. A member that joined later counts only the initial members that it knows. If it
 * knows none, it counts all members as voters. */
static void test_unknown_initial_members(void **state)
{
    (void)state;
    min_peers = 6;
    struct quorum *q = quorum_open();
    assert_non_null(q);
    struct members *m = open_initial(3);
    begin(q, m, 0);
    assert_int_equal(quorum_voters(q, m, NULL), 6);
    members_refuse(m, id_of(3), true, 1);
    assert_false(look(q, m, 1));
    expect(q, QUORUM_THERE, 3, 5);
    quorum_close(q);
    members_close(m);
    q = quorum_open();
    assert_non_null(q);
    m = open_in(NULL, 0, 1);
    assert_int_equal(merge(m, record(5, 1)), MEMBERS_NEWS);
    begin(q, m, 0);
    assert_int_equal(quorum_voters(q, m, NULL), 2);
    assert_false(quorum_has_initial(q, m));
    assert_int_equal(merge(m, initial_in(1, 1, RECORD_RUNNING)), MEMBERS_NEWS);
    assert_false(look(q, m, 1));
    assert_int_equal(quorum_voters(q, m, NULL), 1);
    quorum_close(q);
    members_close(m);
}

/* With --min-peers above 1, members that leave count as missing: half of the voters with the
 * smallest identity, or more than half, must stay. A member that is no longer admitted is no
 * voter. */
static void test_fixed_group(void **state)
{
    (void)state;
    min_peers = 2;
    struct quorum *q = quorum_open();
    assert_non_null(q);
    struct members *m = open_initial(7);
    begin(q, m, 0);
    for (uint32_t i = 1; i <= 4; i++)
        assert_int_equal(merge(m, initial_in(i, 2, RECORD_LEFT)), MEMBERS_NEWS);
    assert_false(look(q, m, 1));
    expect(q, QUORUM_THERE, 4, 8);
    assert_int_equal(merge(m, initial_in(5, 2, RECORD_LEFT)), MEMBERS_NEWS);
    assert_true(look(q, m, 2));
    expect(q, QUORUM_HELD, 3, 8);
    members_refuse(m, id_of(5), true, 3);
    assert_false(look(q, m, 3));
    expect(q, QUORUM_HELD, 3, 7);
    /* A member that returns with its identity votes again. */
    assert_int_equal(merge(m, initial_in(1, 3, RECORD_RUNNING)), MEMBERS_NEWS);
    assert_true(look(q, m, 4));
    expect(q, QUORUM_THERE, 4, 7);
    const uint8_t *least = id_of(0);
    for (uint32_t i = 1; i <= 7; i++)
        least = i != 5 && memcmp(id_of(i), least, WIRE_ID_BYTES) < 0 ? id_of(i) : least;
    assert_memory_equal(quorum_first(q, m), least, WIRE_ID_BYTES);
    quorum_close(q);
    members_close(m);
}

/* If all initial members have left, the other members count for the quorum instead. */
static void test_no_initial_member_is_left(void **state)
{
    (void)state;
    struct quorum *q = quorum_open();
    assert_non_null(q);
    struct members *m = open_in(NULL, 0, 1);
    assert_int_equal(merge(m, initial_in(1, 1, RECORD_RUNNING)), MEMBERS_NEWS);
    assert_int_equal(merge(m, record(2, 1)), MEMBERS_NEWS);
    begin(q, m, 0);
    assert_int_equal(quorum_voters(q, m, NULL), 1);
    assert_int_equal(merge(m, initial_in(1, 2, RECORD_LEFT)), MEMBERS_NEWS);
    assert_false(look(q, m, 1));
    assert_int_equal(quorum_voters(q, m, NULL), 2);
    assert_true(votes(q, m, 0) && !votes(q, m, 1) && votes(q, m, 2));
    quorum_close(q);
    members_close(m);
}

/* A voter is a member that counts for the quorum. quorum_first() returns the smallest identity of
 * the voters, even if the member table no longer contains that member. */
static void test_first(void **state)
{
    (void)state;
    struct quorum *q = quorum_open();
    assert_non_null(q);
    struct members *m = open_initial(20);
    begin(q, m, 0);
    const uint8_t *least = id_of(0);
    for (uint32_t i = 1; i <= 20; i++)
        least = memcmp(id_of(i), least, WIRE_ID_BYTES) < 0 ? id_of(i) : least;
    assert_memory_equal(quorum_first(q, m), least, WIRE_ID_BYTES);
    members_accuse(m, least, 0);
    members_tick(m, TOY_SUSPECT_US);
    members_tick(m, TOY_SUSPECT_US + 2 * TOY_FORGET_US);
    assert_null(members_find(m, least));
    assert_memory_equal(quorum_first(q, m), least, WIRE_ID_BYTES);
    quorum_close(q);
    members_close(m);
}

/* The member table drops dead members after some time. A dropped initial member must still count in
 * the number of members. There are two exceptions: a dropped member that had left, and a dropped
 * member whose name another member has taken. */
static void test_dropped(void **state)
{
    (void)state;
    struct quorum *q = quorum_open();
    assert_non_null(q);
    struct members *m = open_initial(4);
    begin(q, m, 0);
    kill_peer(m, 1, 0);
    kill_peer(m, 2, 0);
    kill_peer(m, 3, 0);
    assert_int_equal(merge(m, record_in(4, 2, RECORD_LEFT)), MEMBERS_NEWS);
    assert_true(look(q, m, 1));
    expect(q, QUORUM_HELD, 1, 4);
    members_tick(m, TOY_SUSPECT_US + 2 * TOY_FORGET_US);
    assert_null(members_find(m, id_of(1)));
    assert_null(members_find(m, id_of(4)));
    assert_false(look(q, m, 2)); /* The quorum timeout has not passed yet. */
    expect(q, QUORUM_HELD, 1, 4);
    quorum_close(q);
    members_close(m);
}

/* A member whose worker hangs does not count until the worker is done. */
static void test_hung(void **state)
{
    (void)state;
    struct quorum *q = quorum_open();
    assert_non_null(q);
    struct members *m = open_initial(2);
    begin(q, m, 0);
    assert_int_equal(merge(m, record_in(1, 2, RECORD_STALLED)), MEMBERS_NEWS);
    assert_false(look(q, m, 1));
    expect(q, QUORUM_THERE, 2, 3);
    assert_int_equal(merge(m, record_in(2, 2, RECORD_STALLED)), MEMBERS_NEWS);
    assert_true(look(q, m, 2));
    expect(q, QUORUM_HELD, 1, 3);
    /* Member 2, whose worker hangs, is now silent, too. A single silent member normally counts as
     * present, but a member whose worker hangs does not. */
    members_accuse(m, id_of(2), 3);
    assert_false(look(q, m, 3));
    expect(q, QUORUM_HELD, 1, 3);
    assert_int_equal(merge(m, record_in(1, 3, RECORD_RUNNING)), MEMBERS_NEWS);
    assert_true(look(q, m, 4));
    expect(q, QUORUM_THERE, 2, 3);
    quorum_close(q);
    members_close(m);
}

static void test_needed(void **state)
{
    static const struct
    {
        double share;
        uint32_t n, needed;
    } row[] = {{0.5, 8, 4},  {0.5, 7, 4}, {0.5, 1, 1}, {0, 8, 1},   {1, 8, 8},
               {0.7, 10, 7}, {0.1, 3, 1}, {0.5, 2, 1}, {0.51, 2, 2}};
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        assert_int_equal(quorum_needed(row[i].n, row[i].share), row[i].needed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_held_and_resigned, reset_min_peers),
        cmocka_unit_test_setup(test_moments, reset_min_peers),
        cmocka_unit_test_setup(test_suspects, reset_min_peers),
        cmocka_unit_test_setup(test_who_counts, reset_min_peers),
        cmocka_unit_test_setup(test_replaced, reset_min_peers),
        cmocka_unit_test_setup(test_dropped, reset_min_peers),
        cmocka_unit_test_setup(test_hung, reset_min_peers),
        cmocka_unit_test_setup(test_voters, reset_min_peers),
        cmocka_unit_test_setup(test_name_is_taken_over, reset_min_peers),
        cmocka_unit_test_setup(test_name_of_a_member_that_left, reset_min_peers),
        cmocka_unit_test_setup(test_fixed_group, reset_min_peers),
        cmocka_unit_test_setup(test_no_initial_member_is_left, reset_min_peers),
        cmocka_unit_test_setup(test_first, reset_min_peers),
        cmocka_unit_test_setup(test_unknown_initial_members, reset_min_peers),
        cmocka_unit_test_setup(test_needed, reset_min_peers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
