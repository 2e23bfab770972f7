/* tests/unit/node_failure_detector.c -- tests of the failure detector: silent members, duplicate
 * names, and limits on the member records that are sent or accepted at once. */
#include "node_sessions_rig.h"

#include "gossip/members/endorsements.h"

/* ---- silent members ---- */

static enum member_state state_of(uint8_t who)
{
    uint8_t id[WIRE_ID_BYTES] = {who};
    return members_find(rig.env.members, id)->state;
}

/* LOW is a silent member. Measures, in microseconds, how long the node waits until it asks HIGH
 * about LOW (*asked_us), and from then until it accuses LOW (*accused_us; 0: never). met: LOW had
 * a session before. refuses: dialling LOW fails at once. answer: HIGH says that it heard LOW. */
static void watched(bool met, bool refuses, bool answer, int64_t *asked_us, int64_t *accused_us)
{
    struct wire_message m;
    begin();
    const struct link *friend = up(HIGH, false), *low;
    hello(friend, 1);
    if (met) {
        low = up(LOW, false);
        hello(low, 1);
        tick(friend, refuses);
        if (refuses)
            down(low);
    }
    int64_t begun = rig.env.now_us;
    do
        tick(friend, refuses);
    while (!sent(friend->number, WIRE_PROBE, &m) && rig.env.now_us < begun + 20 * SECOND);
    assert_int_equal(m.probe.id[0], LOW);
    *asked_us = rig.env.now_us - begun;
    *accused_us = 0;
    begun = rig.env.now_us;
    if (answer)
        sessions_vouched(rig.s, &(struct wire_heard){.id = {LOW}, .age_ms = 5});
    while (state_of(LOW) == MEMBER_ALIVE && rig.env.now_us < begun + 15 * SECOND / 10)
        tick(friend, refuses);
    if (state_of(LOW) == MEMBER_SUSPECT)
        *accused_us = rig.env.now_us - begun;
    end();
}

static void test_who_is_silent_is_accused(void **state)
{
    (void)state;
    for (int k = 0; k < 8; k++) {
        bool met = k & 1, refuses = k & 2, answer = k & 4;
        int64_t asked_us, accused_us;
        watched(met, refuses, answer, &asked_us, &accused_us);
        int64_t most = refuses && !met ? 3 * TICK_US : SILENT_US - PROBE_US + 2 * TICK_US;
        assert_in_range(asked_us, most - 2 * TICK_US, most);
        if (answer)
            assert_int_equal(accused_us, 0);
        else
            assert_in_range(accused_us, PROBE_US, PROBE_US + 2 * TICK_US);
    }
}

/* Each member monitors the next one on a ring. After a member has ended, its successor must not be
 * accused of silence for MONITOR_GRACE_US, because the successor may have ended, too. */
static void test_an_ending_is_waited_for(void **state)
{
    (void)state;
    begin();
    const struct link *friend = up(HIGH, false);
    hello(friend, 1);
    struct record ended = record(HIGH, 2);
    ended.state = RECORD_FINISHED;
    members_merge(rig.env.members, &ended, rig.env.now_us);
    int64_t begun = rig.env.now_us;
    while (state_of(LOW) == MEMBER_ALIVE && rig.env.now_us < begun + 20 * SECOND)
        tick(friend, false);
    int64_t took_us = rig.env.now_us - begun, least_us = MONITOR_GRACE_US + SILENT_US;
    assert_in_range(took_us, least_us, least_us + 4 * TICK_US);
    end();
}

/* All other members have finished, and their processes have ended. The node dials finished members
 * too, and measures the time since all of them refuse. */
static void test_finished_members_refuse(void **state)
{
    (void)state;
    begin();
    const struct link *l[] = {up(LOW, true), up(HIGH, false)};
    for (int i = 0; i < 2; i++) {
        hello(l[i], 1);
        struct record ended = record(l[i]->id[0], 2);
        ended.state = RECORD_FINISHED;
        members_merge(rig.env.members, &ended, rig.env.now_us);
    }
    tick(l[0], true);
    assert_int_equal(sessions_refused_us(rig.s), 0);
    down(l[0]);
    down(l[1]);
    int64_t begun = rig.env.now_us;
    while (sessions_refused_us(rig.s) == 0 && rig.env.now_us < begun + 60 * SECOND)
        tick(NULL, true);
    assert_in_range(rig.env.now_us - begun, 1, 4 * DEAD_REDIAL_ALONE_US);
    end();
}

/* Each time that a member refutes an accusation, the node waits longer before it accuses that
 * member again. */
static void test_no_war_of_words(void **state)
{
    (void)state;
    begin();
    const struct link *friend = up(HIGH, false);
    hello(friend, 1);
    struct record low = record(LOW, 1);
    for (int64_t spare_us = REFUTED_US; spare_us <= 4 * REFUTED_MAX_US; spare_us *= 2) {
        while (state_of(LOW) == MEMBER_ALIVE)
            tick(friend, true);
        assert_int_equal(state_of(LOW), MEMBER_SUSPECT);
        low.incarnation++;
        members_merge(rig.env.members, &low, rig.env.now_us);
        int64_t begun = rig.env.now_us;
        tick(friend, true);
        while (state_of(LOW) == MEMBER_ALIVE && rig.env.now_us < begun + 90 * SECOND)
            tick(friend, true);
        int64_t least = spare_us < REFUTED_MAX_US ? spare_us : REFUTED_MAX_US;
        assert_in_range(rig.env.now_us - begun, least, least + 2 * PROBE_US);
    }
    end();
}

/* Makes a session between the node and the peer LOW in which one end refuses the other. The reason:
 * a third member has the same name as the refused end, is connected, and started earlier. theirs:
 * LOW refuses the node. Otherwise the node refuses LOW. */
static void refusal(bool theirs)
{
    struct wire_hello h = {.version = WIRE_VERSION, .role = WIRE_PEER, .has_run = true};
    const struct link *low = up(LOW, false);
    h.record = record(LOW, 1);
    h.record.incarnation = 2;
    snprintf(h.record.name, sizeof h.record.name, "peer-%d", HIGH);
    if (theirs)
        admit_refused(rig.s, low, &(struct wire_refused){.why = REFUSED_NAME});
    else
        sessions_hello(rig.s, low, &h);
    assert_non_null(low->hung_up);
    down(low);
}

/* A member that connects only to refuse the node, or to be refused, counts as alive. The node
 * accuses such a member when the member no longer connects. */
static void test_who_refuses_lives(void **state)
{
    (void)state;
    for (int theirs = 0; theirs < 2; theirs++) {
        begin();
        const struct link *friend = up(HIGH, false);
        hello(friend, 1);
        for (int k = 0; k < 300; k++) {
            if (k % 50 == 1)
                refusal(theirs);
            tick(friend, true);
            assert_int_equal(state_of(LOW), MEMBER_ALIVE);
        }
        int64_t begun = rig.env.now_us;
        while (state_of(LOW) == MEMBER_ALIVE && rig.env.now_us < begun + 20 * SECOND)
            tick(friend, true);
        assert_int_equal(state_of(LOW), MEMBER_SUSPECT);
        assert_in_range(rig.env.now_us - begun, 1, REFUSAL_VALID_US);
        end();
    }
}

/* If two members have the same name, the one that started later must leave, and the node must
 * report that once. dies: the member that started later dies first. Nothing is reported then,
 * because that member may be the former identity of a restarted peer. former: a third member of
 * that name has left, which makes no difference. */
static void test_twins(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        bool dies = k & 1, former = k & 2;
        begin();
        const struct link *friend = up(HIGH, false);
        hello(friend, 1);
        struct record twin = record(77, 1);
        snprintf(twin.name, sizeof twin.name, "peer-%d", HIGH);
        members_merge(rig.env.members, &twin, rig.env.now_us);
        members_know(rig.env.members, twin.id, rig.env.now_us);
        struct record gone = record(40, 1);
        gone.state = RECORD_LEFT;
        memcpy(gone.name, twin.name, sizeof gone.name);
        if (former)
            members_merge(rig.env.members, &gone, rig.env.now_us);
        uint32_t n_notes = 0;
        for (int t = 0; t < 300; t++) {
            /* The member that started later sends new records all the time, so it counts as
             * alive. */
            if (!dies)
                twin.incarnation++, members_merge(rig.env.members, &twin, rig.env.now_us);
            tick(friend, true);
            for (uint32_t i = 0; i < rig.fx.n_notes; i++)
                n_notes += strstr(rig.fx.notes[i].text, "that name belongs to") != NULL;
        }
        assert_int_equal(n_notes, !dies);
        assert_int_equal(state_of(77) == MEMBER_LEFT, !dies);
        assert_int_equal(state_of(HIGH), MEMBER_ALIVE);
        assert_false(rig.env.over);
        end();
    }
}

/* A node that is asked about a member confirms that the member is alive, but only if the node
 * itself has heard the member recently. */
static void test_vouching(void **state)
{
    struct wire_message m;
    (void)state;
    begin();
    const struct link *asks = up(HIGH, false), *low = up(LOW, false);
    hello(asks, 1);
    sessions_probe(rig.s, asks, &(struct wire_probe){.id = {LOW}});
    assert_false(sent(asks->number, WIRE_HEARD, &m)); /* LOW has not sent a HELLO yet. */
    hello(low, 1);
    for (int64_t age_us = 0; age_us < 2 * SILENT_US; age_us += SECOND / 2) {
        sessions_probe(rig.s, asks, &(struct wire_probe){.id = {LOW}});
        bool heard = sent(asks->number, WIRE_HEARD, &m);
        assert_int_equal(heard, age_us <= SILENT_US);
        if (heard) {
            assert_int_equal(m.heard.id[0], LOW);
            assert_int_equal(m.heard.age_ms, age_us / 1000);
        }
        step_at(rig.env.now_us + SECOND / 2);
    }
    end();
}

/* ---- sending of member records ---- */

/* Returns the number of bytes that the node has sent over a link in this step, and adds the number
 * of member records in these bytes to `*n_records`. */
static size_t told(uint32_t link, uint32_t *n_records)
{
    static struct wire_batch batch;
    struct wire_message m;
    size_t n_bytes = 0;
    env_end_step(&rig.env);
    for (uint32_t i = 0; i < rig.fx.n_sends; i++) {
        const struct node_send *out = &rig.fx.sends[i];
        if (out->link != link)
            continue;
        n_bytes += out->n_head;
        assert_true(wire_read(out->head, out->n_head, &batch, &m));
        *n_records += m.type == WIRE_MEMBERS ? m.members.n_records : 0;
    }
    return n_bytes;
}

static void fill_table(void)
{
    for (uint32_t i = 3; i < WIRE_MEMBERS_MAX; i++) {
        struct record r = record(100, 1);
        r.id[1] = (uint8_t)i;
        r.id[2] = (uint8_t)(i >> 8);
        r.n_addresses = WIRE_ADDRESSES_MAX;
        for (uint32_t k = 0; k < WIRE_ADDRESSES_MAX; k++)
            snprintf(r.address[k], sizeof r.address[k], "%0*u:7100", WIRE_ADDRESS_MAX - 5, i);
        assert_int_equal(members_merge(rig.env.members, &r, rig.env.now_us), MEMBERS_NEWS);
        members_know(rig.env.members, r.id, rig.env.now_us);
        /* members_know() marks the first record of a member as known to all other members. Only a
         * newer record counts as news and must be sent to them. */
        r.incarnation++;
        assert_int_equal(members_merge(rig.env.members, &r, rig.env.now_us), MEMBERS_NEWS);
    }
}

/* The largest member table is sent in pieces, to a peer and to an observer. Records that were sent
 * as news are not sent again. The status that the observer has requested follows after the
 * table. */
static void test_a_full_table_is_told_in_pieces(void **state)
{
    (void)state;
    begin();
    fill_table();
    const struct link *l = up(HIGH, false), *o = up(77, false);
    hello(l, 1);
    sessions_hello(rig.s, o, &(struct wire_hello){WIRE_VERSION, WIRE_OBSERVER, .round = 0});
    sessions_status_req(rig.s, o);
    sessions_news(rig.s);
    uint32_t n = 0, n_observer = 0;
    assert_true(told(l->number, &n) < 128 * 1024);
    assert_true(told(o->number, &n_observer) < 64 * 1024);
    assert_int_equal(n_observer, WIRE_BATCH_MAX);
    for (int k = 0; k < WIRE_MEMBERS_MAX / SESSIONS_PIECE; k++) {
        assert_int_equal(rig.n_status, n_observer == WIRE_MEMBERS_MAX);
        tick(l, false);
        sessions_news(rig.s);
        assert_true(told(l->number, &n) < (SESSIONS_PIECE + SESSIONS_NEWS) * 1024);
        (void)told(o->number, &n_observer);
    }
    /* HIGH does not get two of the WIRE_MEMBERS_MAX records: the record of HIGH itself, and the
     * record of LOW, which counts as known to all members. */
    assert_int_equal(n, WIRE_MEMBERS_MAX - 2);
    assert_int_equal(n_observer, WIRE_MEMBERS_MAX);
    sessions_status_req(rig.s, o);
    assert_int_equal(rig.n_status, 2);
    end();
}

/* A dead member that was removed from the node's member table connects again. The node makes it
 * a member again at once. Other members have removed the member, too, and accept only a newer
 * record of it. The node therefore accuses the member, so that the member refutes the accusation
 * by a newer record. */
static void test_forgotten_and_back(void **state)
{
    (void)state;
    struct wire_message m;
    const uint8_t id[WIRE_ID_BYTES] = {LOW};
    begin();
    const struct link *friend = up(HIGH, false);
    hello(friend, 1);
    while (state_of(LOW) != MEMBER_DEAD)
        tick(friend, true);
    for (int64_t end_us = rig.env.now_us + 121 * SECOND; rig.env.now_us < end_us;)
        tick(friend, true);
    assert_null(members_find(rig.env.members, id));
    struct wire_members told = {.n_records = 1, .records = &rig.known[0]};
    sessions_members(rig.s, friend, &told);
    /* The relayed member record is too old to make the removed peer a member again. */
    assert_null(members_find(rig.env.members, id));
    const struct link *back = up(LOW, false);
    hello(back, 1);
    assert_true(members_find(rig.env.members, id)->counts);
    env_end_step(&rig.env);
    bool asked = false;
    static struct wire_batch batch;
    for (uint32_t i = 0; i < rig.fx.n_sends; i++) {
        const struct node_send *out = &rig.fx.sends[i];
        assert_true(wire_read(out->head, out->n_head, &batch, &m));
        if (out->link == back->number && m.type == WIRE_MEMBERS && m.members.n_accusations == 1)
            asked |= memcmp(m.members.accusations[0].accused, id, WIRE_ID_BYTES) == 0;
    }
    assert_true(asked);
    end();
}

/* Over one session, a peer may introduce as many new members per minute as a full member table has.
 * The node ignores further members, and reports that once. */
static void test_newcomers_are_limited(void **state)
{
    (void)state;
    begin();
    const struct link *friend = up(HIGH, false);
    hello(friend, 1);
    struct record r = record(100, 1);
    struct wire_members told = {.n_records = 1, .records = &r};
    uint32_t n_notes = rig.fx.n_notes;
    for (uint32_t i = 1; i <= WIRE_MEMBERS_MAX + 50; i++) {
        r.id[1] = (uint8_t)i;
        r.id[2] = (uint8_t)(i >> 8);
        sessions_members(rig.s, friend, &told);
        assert_int_equal(members_find(rig.env.members, r.id) != NULL, i <= WIRE_MEMBERS_MAX);
    }
    assert_int_equal(rig.fx.n_notes, n_notes + 1);
    assert_int_equal(sessions_violations(rig.s), 0);
    step_at(rig.env.now_us + 60 * SECOND);
    sessions_members(rig.s, friend, &told);
    assert_non_null(members_find(rig.env.members, r.id));
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_is_silent_is_accused),
        cmocka_unit_test(test_an_ending_is_waited_for),
        cmocka_unit_test(test_finished_members_refuse),
        cmocka_unit_test(test_no_war_of_words),
        cmocka_unit_test(test_vouching),
        cmocka_unit_test(test_who_refuses_lives),
        cmocka_unit_test(test_twins),
        cmocka_unit_test(test_a_full_table_is_told_in_pieces),
        cmocka_unit_test(test_forgotten_and_back),
        cmocka_unit_test(test_newcomers_are_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
