/* tests/unit/gossip_endorsements.c -- tests endorsements: which members are accepted, replaced and
 * removed. */
#include "gossip/members/monitor_rings.h"
#include "tests/unit/gossip_seeds.h"
#include "tests/unit/gossip_toy.h"

enum { GHOST = 1000, NEWCOMER = 800 };

static enum members_verdict vouched(struct members *m, uint32_t voucher, uint32_t member)
{
    struct vouch v = vouch(voucher, member);
    return members_vouched(m, &v);
}

/* Merges a record that a peer relayed. The record alone does not make the member accepted. */
static enum members_verdict told(struct members *m, uint32_t number, uint64_t incarnation)
{
    struct record r = record(number, incarnation);
    return members_merge(m, &r, 0);
}

/* Begins a session with a member. Endorses the member if it needs an endorsement. */
static void meet(struct members *m, uint32_t number, int64_t now_us)
{
    struct record r = record(number, 1);
    members_merge(m, &r, now_us);
    members_session(m, id_of(number), true, now_us);
    members_vouch(m, now_us);
}

static size_t n_vertices(const struct members *m)
{
    uint32_t at[WIRE_MEMBERS_MAX];
    size_t self;
    return members_vertices(m, at, &self);
}

static void test_a_record_is_nobody(void **state)
{
    (void)state;
    struct members *m = open_knowing(2);
    struct wire_members out = batch();
    drain(m);
    assert_int_equal(told(m, 3, 1), MEMBERS_NEWS);
    members_tick(m, 0);
    assert_false(is_vertex(m, 3));
    assert_false(members_dirty(m, &out, 10)); /* A member without endorsements is not forwarded. */
    for (size_t cursor = 0; members_batch(m, &cursor, &out, 10);)
        for (uint32_t i = 0; i < out.n_records; i++)
            assert_memory_not_equal(out.records[i].id, id_of(3), WIRE_ID_BYTES);
    struct accusation a = accusation(1, 3, 1);
    assert_int_equal(members_accused(m, &a, 0), MEMBERS_OLD);
    assert_int_equal(vouched(m, 3, 3), MEMBERS_FORGED);
    /* Member 4, which made this endorsement, is not in the table. */
    assert_int_equal(vouched(m, 4, 3), MEMBERS_OLD);
    assert_int_equal(vouched(m, 1, 4), MEMBERS_OLD);
    struct vouch v = vouch(1, 3);
    v.signature[0] ^= 1;
    assert_int_equal(members_vouched(m, &v), MEMBERS_FORGED);
    members_settle(m, 0);
    assert_false(is_vertex(m, 3));

    assert_int_equal(vouched(m, 1, 3), MEMBERS_NEWS);
    assert_int_equal(vouched(m, 1, 3), MEMBERS_OLD);
    members_settle(m, 0);
    /* Member 3 is endorsed by member 1 only. Of the members that depend on a single endorser, a few
     * are accepted. */
    assert_true(is_vertex(m, 3));
    assert_int_equal(members_accused(m, &a, 0), MEMBERS_NEWS);
    assert_true(members_dirty(m, &out, 10));
    assert_int_equal(out.n_vouches, 1);
    assert_memory_equal(out.vouches[0].signature, vouch(1, 3).signature, WIRE_SIGNATURE_BYTES);
    bool found = false;
    for (uint32_t i = 0; i < out.n_records; i++)
        found |= memcmp(out.records[i].id, id_of(3), WIRE_ID_BYTES) == 0;
    assert_true(found);
    assert_false(members_dirty(m, &out, 10));
    check_invariants(m);
    members_close(m);
}

/* A member with the cluster key invents 300 members that endorse each other and all real members.
 * Only one of the invented members may be accepted. */
static void test_ghosts(void **state)
{
    (void)state;
    enum { HONEST = 8, LIAR = 7, GHOSTS = 300 };
    struct members *m = open_knowing(HONEST - 1);
    for (uint32_t g = GHOST; g < GHOST + GHOSTS; g++)
        assert_int_equal(told(m, g, 1), MEMBERS_NEWS);
    members_tick(m, 0);
    assert_int_equal(n_vertices(m), HONEST);
    for (uint32_t g = GHOST; g < GHOST + GHOSTS; g++) {
        (void)vouched(m, LIAR, g);
        (void)vouched(m, g, GHOST + (g + 1) % GHOSTS);
        (void)vouched(m, g, GHOST + (g + 7) % GHOSTS);
        (void)vouched(m, g, 1 + g % LIAR);
    }
    members_settle(m, 0);
    assert_int_equal(n_vertices(m), HONEST + 1);
    /* Each member monitors the next accepted member on several rings (failure detector). Invented
     * members must not displace real ones there: on each ring, this peer must monitor an accepted
     * member. */
    struct monitor_rings rings;
    monitor_rings_look(&rings, m);
    for (uint32_t ring = 0; ring < RINGS; ring++) {
        uint8_t id[MONITOR_RINGS_AHEAD_MAX][WIRE_ID_BYTES];
        uint32_t n = monitor_rings_ahead(&rings, ring, 1, id), n_count = 0;
        for (uint32_t i = 0; i < n; i++)
            n_count += members_find(m, id[i])->counts;
        assert_true(n_count >= 1);
    }
    /* Few records of invented members are forwarded to other peers. */
    struct wire_members out = batch();
    uint32_t n_told = 0;
    for (size_t cursor = 0; members_batch(m, &cursor, &out, WIRE_BATCH_MAX);)
        n_told += out.n_records;
    assert_true(n_told <= HONEST + 2 * ENDORSEMENTS_MAX);
    check_invariants(m);
    members_close(m);
}

/* If a member sends too many endorsements, all tables must keep the same ones, in any order of
 * arrival. */
static void check_many_vouches(uint64_t seed)
{
    enum { N = 80, TABLES = 3 };
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, 5, 0));
    struct members *m[TABLES];
    uint32_t order[N];
    for (uint32_t i = 0; i < N; i++)
        order[i] = GHOST + i;
    for (uint32_t t = 0; t < TABLES; t++) {
        m[t] = open_knowing(2);
        rng_shuffle(&r, order, N);
        for (uint32_t i = 0; i < N; i++)
            (void)told(m[t], order[i], 1);
        rng_shuffle(&r, order, N);
        for (uint32_t i = 0; i < N; i++)
            (void)vouched(m[t], 1, order[i]);
        members_settle(m[t], 0);
        uint32_t n = 0;
        for (uint32_t i = 0; i < N; i++) {
            const struct member *e = members_find(m[t], id_of(GHOST + i));
            assert_int_equal(e->vouched, members_find(m[0], id_of(GHOST + i))->vouched);
            n += e->vouched;
        }
        assert_int_equal(n, ENDORSEMENTS_MAX);
        assert_int_equal(members_view(m[t]), members_view(m[0]));
    }
    for (uint32_t t = 0; t < TABLES; t++)
        members_close(m[t]);
}

static void test_many_vouches(void **state)
{
    (void)state;
    for_seeds(check_many_vouches, 20);
}

static uint32_t n_vouches_told(struct members *m)
{
    struct wire_members out = batch();
    uint32_t n = 0;
    while (members_dirty(m, &out, WIRE_BATCH_MAX))
        n += out.n_vouches;
    return n;
}

/* A peer endorses a member with which it has a session if the member has too few endorsements, and
 * if few endorsed members share its address. */
static void test_own_vouches(void **state)
{
    (void)state;
    struct members *m = open_knowing(3);
    meet(m, 1, 0);
    assert_int_equal(n_vouches_told(m), 0); /* Members known from the start need no endorsement. */
    meet(m, NEWCOMER, 0);
    assert_true(is_vertex(m, NEWCOMER));
    /* One member is new, so this peer endorses every member with which it has a session: member
     * 1 and the newcomer. */
    assert_int_equal(n_vouches_told(m), 2);
    (void)told(m, NEWCOMER + 1, 1);
    (void)vouched(m, 1, NEWCOMER + 1);
    (void)vouched(m, 2, NEWCOMER + 1);
    meet(m, NEWCOMER + 1, 0);
    /* Two endorsements of a member are enough, so this peer adds none. */
    assert_int_equal(n_vouches_told(m), 2);
    for (uint32_t i = 0; i < ENDORSEMENTS_AT_ADDRESS + 3; i++) {
        struct record r = unsigned_record(GHOST + i, 1);
        snprintf(r.address[0], sizeof r.address[0], "10.9.9.9:7100");
        r = signed_record(r);
        members_merge(m, &r, 0);
        members_session(m, r.id, true, 0);
        members_vouch(m, 0);
    }
    assert_int_equal(n_vouches_told(m), ENDORSEMENTS_AT_ADDRESS);
    check_invariants(m);
    members_close(m);
}

/* Two members know only each other. A third member joins, and all three must agree on the set of
 * members. */
static void test_first_members(void **state)
{
    (void)state;
    struct members *m[3] = {open_in(NULL, 0, 1), open_in(NULL, 1, 1), open_in(NULL, 2, 1)};
    struct wire_members out = batch();
    meet(m[0], 1, 0);
    meet(m[1], 0, 0);
    assert_int_equal(n_vertices(m[0]), 2);
    assert_int_equal(members_view(m[0]), members_view(m[1]));
    meet(m[0], 2, 0);
    meet(m[2], 0, 0);
    for (uint32_t t = 1; t < 3; t++) {
        for (size_t cursor = 0; members_batch(m[0], &cursor, &out, 8);) {
            for (uint32_t i = 0; i < out.n_records; i++)
                members_merge(m[t], &out.records[i], 0);
            for (uint32_t i = 0; i < out.n_vouches; i++)
                members_vouched(m[t], &out.vouches[i]);
        }
        members_settle(m[t], 0);
        assert_int_equal(members_view(m[t]), members_view(m[0]));
        assert_int_equal(n_vertices(m[t]), 3);
    }
    for (uint32_t t = 0; t < 3; t++)
        members_close(m[t]);
}

/* ---- a full table ---- */

static void test_full_of_ghosts(void **state)
{
    (void)state;
    struct members *m = open_knowing(7);
    for (uint32_t g = GHOST; g < GHOST + 1048; g++)
        assert_int_equal(told(m, g, 1), MEMBERS_NEWS);
    assert_int_equal(members_count(m), WIRE_MEMBERS_MAX);
    for (uint32_t i = 0; i < 20; i++) {
        meet(m, NEWCOMER + i, 0);
        assert_true(is_vertex(m, NEWCOMER + i));
    }
    (void)told(m, NEWCOMER + 20, 1);
    /* A member with a session must not be replaced, although no member endorses it. */
    members_session(m, id_of(NEWCOMER + 20), true, 0);
    for (uint32_t g = GHOST; g < GHOST + 1048; g++)
        (void)told(m, g, 2); /* Newer records of the invented members (ghosts) arrive. */
    assert_non_null(members_find(m, id_of(NEWCOMER + 20)));
    assert_int_equal(n_vertices(m), 28);
    assert_int_equal(members_count(m), WIRE_MEMBERS_MAX);
    check_invariants(m);
    members_close(m);
}

static void die(struct members *m, uint32_t number, int64_t now_us)
{
    members_session(m, id_of(number), false, now_us);
    members_accuse(m, id_of(number), now_us);
    members_tick(m, now_us + TOY_SUSPECT_US);
    assert_int_equal(state_of(m, number), MEMBER_DEAD);
}

/* Order in which members of a full table are replaced by new members. If no invented member is left
 * to replace, a member that has left is replaced first. The next one is the member that has been
 * dead for the longest time. */
static void test_who_gives_way(void **state)
{
    (void)state;
    struct members *m = open_knowing(WIRE_MEMBERS_MAX - 1);
    die(m, 3, 0);
    die(m, 2, 10 * SECOND);
    die(m, 4, 20 * SECOND);
    struct record left = record_in(5, 2, RECORD_LEFT);
    members_merge(m, &left, 30 * SECOND);
    static const uint32_t order[] = {5, 3, 2, 4};
    for (uint32_t i = 0; i < 4; i++) {
        assert_non_null(members_find(m, id_of(order[i])));
        meet(m, NEWCOMER + 1000 + i, 40 * SECOND);
        assert_null(members_find(m, id_of(order[i])));
    }
    (void)told(m, NEWCOMER + 1004, 1);
    /* All remaining members of the full table are alive, so no member is removed for a new one. */
    assert_null(members_find(m, id_of(NEWCOMER + 1004)));
    members_close(m);
}

/* A container restarts 3,000 times, each time with a new identity. The table must not overflow, and
 * the first members must stay vertices. */
static void test_restarts(void **state)
{
    (void)state;
    enum { FIRST = 8, RESTARTS = 3000 };
    struct members *m = open_knowing(7);
    int64_t now_us = 0;
    for (uint32_t i = FIRST; i < FIRST + RESTARTS; i++, now_us += 10 * SECOND) {
        meet(m, i, now_us);
        assert_true(is_vertex(m, i));
        die(m, i, now_us);
        assert_int_equal(n_vertices(m), 8);
        assert_true(members_count(m) <= WIRE_MEMBERS_MAX);
        drain(m);
    }
    check_invariants(m);
    /* The removed member has left a tombstone, so its old record is ignored. */
    assert_int_equal(told(m, FIRST + RESTARTS - 1100, 1), MEMBERS_OLD);
    for (uint32_t i = 0; i < 8; i++)
        assert_true(is_vertex(m, i));
    members_close(m);
}

/* ---- time ---- */

static void test_forget(void **state)
{
    (void)state;
    struct members *m = open_knowing(9);
    meet(m, 5, 0);
    die(m, 2, 0);
    die(m, 4, 10 * SECOND);
    struct record left = record_in(9, 2, RECORD_LEFT), end = record_in(3, 2, RECORD_FINISHED);
    members_merge(m, &left, 20 * SECOND);
    members_merge(m, &end, 20 * SECOND);
    members_accuse(m, id_of(3), 20 * SECOND);
    members_tick(m, 30 * SECOND);
    assert_int_equal(state_of(m, 3), MEMBER_DEAD);
    uint64_t view = members_view(m);
    members_tick(m, TOY_FORGET_US + TOY_SUSPECT_US - 1);
    assert_int_equal(members_count(m), 10);
    members_tick(m, TOY_FORGET_US + TOY_SUSPECT_US);
    assert_null(members_find(m, id_of(2)));
    assert_int_equal(members_count(m), 9);
    members_tick(m, 2 * TOY_FORGET_US);
    assert_int_equal(members_count(m), 7);
    assert_int_equal(members_view(m), view);
    /* A dead member that has finished stays a vertex of the topology. */
    assert_int_equal(state_of(m, 3), MEMBER_DEAD);
    assert_true(members_find(m, id_of(5))->connected);
    check_invariants(m);
    drain(m);

    /* The tombstone of the removed member rejects this old record. */
    assert_int_equal(told(m, 2, 1), MEMBERS_OLD);
    assert_int_equal(told(m, 9, 1), MEMBERS_OLD);
    assert_null(members_find(m, id_of(2)));
    /* The incarnation of this record is higher than that of the tombstone. */
    assert_int_equal(told(m, 4, 2), MEMBERS_NEWS);
    struct accusation a;
    struct record back = record(2, 1), other = record(7, 1);
    assert_false(members_revive(m, &other, &a));
    /* members_rejected() returns true for an old record that the tombstone of a dropped member
     * rejects, because the member may be alive. It returns false for a record that is forged, that
     * says LEFT, or that is newer than the tombstone. */
    struct record forged = back, gone = unsigned_record(2, 1), newer = record(2, 2);
    forged.signature[0] ^= 1;
    gone.state = RECORD_LEFT;
    gone = signed_record(gone);
    assert_true(members_rejected(m, &back));
    assert_false(members_rejected(m, &forged) || members_rejected(m, &gone));
    assert_false(members_rejected(m, &newer) || members_rejected(m, &other));
    /* members_revive() removes the tombstone and returns an accusation of the member. When the
     * member refutes this accusation, it gets an incarnation that other tables accept. */
    assert_true(members_revive(m, &back, &a));
    meet(m, 2, 2 * TOY_FORGET_US);
    assert_true(is_vertex(m, 2));
    struct members *itself = open_in(NULL, 2, 1);
    meet(itself, 0, 0);
    assert_int_equal(members_accused(itself, &a, 0), MEMBERS_ABOUT_ME);
    assert_int_equal(members_self(itself)->incarnation, 2);
    members_close(itself);
    members_close(m);
}

/* When members are dropped, other members move to other slots of the table. Their records, news and
 * endorsements must move with them. */
static void check_forgetting(uint64_t seed)
{
    enum { N = ENDORSEMENTS_MAX - 2 };
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, 6, 0));
    struct members *m = open_knowing(2);
    int64_t now_us = 0;
    for (uint32_t step = 0; step < 400; step++, now_us += TOY_FORGET_US / 20) {
        uint32_t who = 3 + (uint32_t)rng_below(&r, N);
        const struct member *e = members_find(m, id_of(who));
        if (e == NULL) {
            struct record x = record(who, 1 + step);
            assert_int_equal(members_merge(m, &x, now_us), MEMBERS_NEWS);
            for (uint32_t by = 1; by <= 2; by++)
                assert_int_equal(vouched(m, by, who), MEMBERS_NEWS);
            members_settle(m, now_us);
            assert_true(is_vertex(m, who));
        } else if (e->state == MEMBER_ALIVE) {
            members_accuse(m, id_of(who), now_us);
        }
        if (rng_below(&r, 8) == 0)
            drain(m);
        members_tick(m, now_us);
        check_invariants(m);
        for (size_t i = 0; i < members_count(m); i++) {
            const struct member *at = members_at(m, i);
            assert_true(at->counts);
            if (at->state == MEMBER_DEAD)
                assert_true(now_us - at->dead_at_us < TOY_FORGET_US);
        }
    }
    drain(m);
    members_close(m);
}

static void test_forgetting(void **state)
{
    (void)state;
    for_seeds(check_forgetting, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_record_is_nobody),
        cmocka_unit_test(test_ghosts),
        cmocka_unit_test_teardown(test_many_vouches, print_seed),
        cmocka_unit_test(test_own_vouches),
        cmocka_unit_test(test_first_members),
        cmocka_unit_test(test_full_of_ghosts),
        cmocka_unit_test(test_who_gives_way),
        cmocka_unit_test(test_restarts),
        cmocka_unit_test(test_forget),
        cmocka_unit_test_teardown(test_forgetting, print_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
