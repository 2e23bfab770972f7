/* tests/unit/gossip_clone.c -- tests two processes with one identity, and members that are
 * refused. */
#include "tests/unit/gossip_toy.h"

static struct members *open_process(uint64_t boot, uint64_t incarnation)
{
    static uint8_t key[WIRE_ID_BYTES];
    static struct members_config config = {TOY_SUSPECT_US, TOY_CONFIRMED_US, NULL, 0};
    struct members_crypto crypto = {key, toy_verify, toy_sign};
    struct members *m = NULL;
    struct record r = unsigned_record(0, incarnation);
    memcpy(key, id_of(0), sizeof key);
    r.boot = boot;
    assert_int_equal(members_open(&m, &r, &config, &crypto), 0);
    return m;
}

/* Two processes with one identity receive each other's records in turn. Whatever their clocks say,
 * the younger one must learn that it is the younger, and the older one that it has a duplicate. The
 * first record alone must not prove a duplicate. A third peer receives all records, too. */
static void test_clone(void **state)
{
    (void)state;
    for (int k = 0; k < 16; k++) {
        bool behind = k & 1, reversed = k & 2, alike = k & 4, boots = k & 8;
        int64_t later_us = alike ? 500 * 1000 : 20 * SECOND, at_us = 100 * SECOND;
        struct members *older = open_process(boots ? 7 : 8, behind ? 5000 : 100);
        struct members *newer = open_process(boots ? 8 : 7, behind ? 100 : 5000);
        struct members *other = open_in(NULL, 1, 1), *side[2] = {older, newer};
        enum members_verdict said[2] = {MEMBERS_OLD, MEMBERS_OLD};
        (void)members_tick(older, at_us);
        (void)members_tick(newer, at_us + later_us);
        at_us += later_us;
        (void)members_merge(other, members_self(older), at_us);
        for (int turn = 0; turn < 6; turn++) {
            int i = (turn + reversed) & 1;
            at_us += 1000;
            enum members_verdict v = members_merge(side[i], members_self(side[1 - i]), at_us);
            assert_true(v != MEMBERS_FORGED);
            if (v == MEMBERS_CLONE || v == MEMBERS_CLONED) {
                assert_true(turn > 0);
                assert_true(said[i] == MEMBERS_OLD || said[i] == v);
                said[i] = v;
            }
            (void)members_merge(other, members_self(side[i]), at_us);
        }
        /* If both processes are equally old, the one with the greater boot id counts as younger. */
        int younger = alike && !boots ? 0 : 1;
        assert_int_equal(said[younger], MEMBERS_CLONE);
        assert_int_equal(said[1 - younger], MEMBERS_CLONED);
        members_close(older);
        members_close(newer);
        members_close(other);
    }
}

/* Other peers detect a duplicate identity when the earlier process sends a newer record after the
 * later process has sent one. */
static void test_runs_twice(void **state)
{
    (void)state;
    struct members *m = open_in(NULL, 1, 1);
    struct record r = unsigned_record(0, 10), n = unsigned_record(0, 20);
    n.boot = 99;
    assert_int_equal(merge(m, signed_record(r)), MEMBERS_NEWS);
    /* For other peers, a second process with the same identity looks like a restart of the
     * first. */
    assert_int_equal(merge(m, signed_record(n)), MEMBERS_NEWS);
    r.incarnation = 30;
    assert_int_equal(merge(m, signed_record(r)), MEMBERS_TWICE);
    n.incarnation = 40;
    /* The duplicate identity was reported already, so this record is merged like any changed
     * record. */
    assert_int_equal(merge(m, signed_record(n)), MEMBERS_NEWS);
    members_close(m);
}

/* A refused member is not a vertex of the topology, even if its model is final. Its accusations do
 * not count, and its records are not forwarded, until it is accepted again or has a session. */
static void test_refused(void **state)
{
    (void)state;
    struct members *m = open_knowing(3);
    struct record final = unsigned_record(1, 50);
    size_t cursor = 0;
    final.state = RECORD_FINISHED;
    merge(m, signed_record(final));
    drain(m);
    members_refuse(m, id_of(1), true, 0);
    assert_int_equal(state_of(m, 1), MEMBER_LEFT);
    assert_false(is_vertex(m, 1));
    struct wire_members out = batch();
    assert_false(members_dirty(m, &out, WIRE_BATCH_MAX));
    assert_true(members_batch(m, &cursor, &out, WIRE_BATCH_MAX));
    for (uint32_t i = 0; i < out.n_records; i++)
        assert_memory_not_equal(out.records[i].id, id_of(1), WIRE_ID_BYTES);
    assert_int_equal(accused(m, accusation(2, 1, 1), 0), MEMBERS_OLD);
    for (int session = 0; session < 2; session++) {
        if (session)
            members_session(m, id_of(1), true, 0);
        else
            members_refuse(m, id_of(1), false, 0);
        assert_int_equal(state_of(m, 1), MEMBER_ALIVE);
        assert_true(is_vertex(m, 1));
        assert_true(members_dirty(m, &out, WIRE_BATCH_MAX));
        assert_memory_equal(out.records[0].id, id_of(1), WIRE_ID_BYTES);
        members_refuse(m, id_of(1), true, 0);
        drain(m);
    }
    members_refuse(m, id_of(0), true, 0); /* A peer cannot refuse itself. */
    assert_true(is_vertex(m, 0));
    members_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clone),
        cmocka_unit_test(test_runs_twice),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
