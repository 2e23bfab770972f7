/* tests/unit/node_sessions.c -- tests of the session layer (peer/node/session/sessions.h) without
 * the rest of the node: crossed sessions, duplicate identities, dialling, runs. */
#include "node_sessions_rig.h"

/* ---- two sessions with one process ---- */

/* Two peers dial each other at the same time. Both ends keep the session that the peer with the
 * smaller id dialled, whichever came up first. */
static void test_crossed_sessions(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        uint8_t who = k & 1 ? LOW : HIGH;
        bool first_is_ours = (k & 2) != 0;
        begin();
        const struct link *first = up(who, first_is_ours);
        hello(first, 1);
        const struct link *second = up(who, !first_is_ours);
        hello(second, 1);
        /* True: the node has the smaller id, so the session that it dialled is kept. */
        bool keep_ours = who == HIGH;
        const struct link *kept = first_is_ours == keep_ours ? first : second;
        assert_true((first->hung_up != NULL) != (second->hung_up != NULL));
        assert_null(kept->hung_up);
        assert_ptr_equal(sessions_to(rig.s, kept->id), kept);
        assert_int_equal(rig.n_lost, kept == second);
        end();
    }
}

/* A peer that dials the node a second time has lost its first session, so the second session
 * replaces the first. A second session that the node itself dialled is closed, unless the first one
 * is silent. */
static void test_second_session(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        begin();
        bool dialled = k >= 2, silent = k % 2 == 1;
        const struct link *first = up(LOW, dialled);
        /* If the node dialled the session, the HELLO of the peer may still be on its way. */
        if (!dialled)
            hello(first, 1);
        step_at(rig.env.now_us + SILENT_US - !silent);
        uint32_t n_sends = rig.fx.n_sends;
        const struct link *second = up(LOW, dialled);
        if (dialled && !silent) {
            assert_null(second);
            assert_int_equal(rig.fx.n_sends, n_sends);
            assert_int_equal(rig.fx.n_hangups, 1);
            assert_null(first->hung_up);
        } else {
            hello(second, 1);
            assert_int_equal(first->hung_up != NULL, first->role != LINK_NEW);
            assert_null(second->hung_up);
        }
        end();
    }
}

static void hello_of(const struct link *l, uint64_t boot, uint64_t incarnation)
{
    struct wire_hello h = {.version = WIRE_VERSION, .role = WIRE_PEER};
    h.record = record(l->id[0], boot);
    h.record.incarnation = incarnation;
    sessions_hello(rig.s, l, &h);
}

/* Two other processes, A and B, use one identity, and B has the higher incarnation. The node must
 * keep the session of B. When A connects, the node must send A the record of B and end the session
 * with A. If both raise their incarnations in turn, the node must report the duplicate identity
 * once. */
static void test_two_processes_of_one_identity(void **state)
{
    struct wire_message m;
    (void)state;
    begin();
    const struct link *older = up(LOW, false), *newer = up(LOW, false);
    hello_of(older, 1, 10);
    hello_of(newer, 2, 20);
    assert_true(older->hung_up != NULL && newer->hung_up == NULL);
    assert_true(sent(older->number, WIRE_MEMBERS, &m));
    step_at(rig.env.now_us);
    const struct link *again = up(LOW, false);
    hello_of(again, 1, 10);
    assert_true(again->hung_up != NULL && newer->hung_up == NULL);
    assert_true(sent(again->number, WIRE_MEMBERS, &m));
    assert_int_equal(m.members.n_records, 1);
    assert_int_equal(m.members.records[0].incarnation, 20);
    assert_int_equal(rig.fx.n_notes, 0);
    for (uint64_t k = 1; k < 4; k++) {
        again = up(LOW, false);
        hello_of(again, k & 1 ? 1 : 2, 20 + 1001 * k);
        assert_null(again->hung_up);
        assert_int_equal(rig.fx.n_notes, 1);
    }
    end();
}

/* Returns the record of another process with the node's identity, which has received the node's
 * record. `age_ms` is the age of that process. */
static struct record answer(uint64_t age_ms)
{
    struct record r = record(OURS, 99);
    r.incarnation = members_self(rig.env.members)->incarnation + 1;
    r.over = members_self(rig.env.members)->boot;
    r.age_ms = age_ms;
    return r;
}

/* Another process has the node's identity. The node answers that process with its own record. If
 * the node started later, it then ends at once, without a LEFT record: with the same identity, that
 * record would also remove the other process. If the node started earlier, it continues, and
 * reports the duplicate identity at most once a minute. */
static void test_a_clone_of_us(void **state)
{
    struct wire_message m;
    (void)state;
    for (int younger = 0; younger < 2; younger++) {
        begin();
        const struct link *l = up(HIGH, false);
        hello(l, 1);
        sessions_tick(rig.s);
        step_at(rig.env.now_us + 60 * SECOND);
        sessions_heard(rig.s, l->number);
        struct record r = answer(younger ? 65 * 1000 : 55 * 1000);
        struct wire_members told = {.n_records = 1, .records = &r};
        sessions_members(rig.s, l, &told);
        assert_int_equal(rig.fx.n_notes, 1);
        assert_int_equal(rig.env.over, younger);
        if (younger)
            assert_int_equal(rig.env.exit_code, 2);
        else
            sessions_news(rig.s);
        assert_true(sent(l->number, WIRE_MEMBERS, &m));
        uint32_t own = 0;
        while (own < m.members.n_records && m.members.records[own].id[0] != OURS)
            own++;
        assert_true(own < m.members.n_records);
        assert_int_equal(m.members.records[own].over, 99);
        assert_true(m.members.records[own].incarnation > r.incarnation);
        assert_int_equal(members_self(rig.env.members)->state, RECORD_RUNNING);
        for (int again = 0; again < 3 && !younger; again++) {
            step_at(rig.env.now_us + DUPLICATE_IDENTITY_US / 2);
            r = answer(56 * 1000);
            sessions_members(rig.s, l, &told);
            assert_int_equal(rig.fx.n_notes, again & 1);
        }
        end();
    }
}

/* Another process with the node's identity connects to other peers, but not to the node. A peer
 * that knows this process sends its record to the node and then closes the session with the node.
 * The node must report a duplicate identity if both happen within a second, on a session older than
 * SILENT_US. A record that the node itself made is no evidence of a duplicate. */
static void test_a_clone_elsewhere(void **state)
{
    static const struct
    {
        /* Age of the session when the record arrives, and time from the record to the end of the
         * session, in microseconds. */
        int64_t up_us, then_us;
        uint64_t boot;
        bool said;
    } cases[] = {{60 * SECOND, 0, 99, true},
                 {60 * SECOND, SECOND, 99, true},
                 {60 * SECOND, SECOND + 1, 99, false},
                 {SILENT_US, 0, 99, false},
                 {60 * SECOND, 0, 0, false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin();
        const struct link *l = up(HIGH, false);
        hello(l, 1);
        step_at(rig.env.now_us + cases[i].up_us);
        sessions_heard(rig.s, l->number);
        struct record r = record(OURS, 99);
        r.boot = cases[i].boot > 0 ? cases[i].boot : members_self(rig.env.members)->boot;
        r.incarnation = members_self(rig.env.members)->incarnation + 14000;
        struct wire_members told = {.n_records = 1, .records = &r};
        sessions_members(rig.s, l, &told);
        assert_int_equal(rig.fx.n_notes, 0);
        step_at(rig.env.now_us + cases[i].then_us);
        down(l);
        assert_int_equal(rig.fx.n_notes, cases[i].said);
        if (cases[i].said)
            assert_non_null(
                strstr(rig.fx.notes[0].text, "another process uses this peer's identity"));
        assert_false(rig.env.over);
        end();
    }
}

/* Records of former processes of the node arrive late, with any clock and any incarnation. The node
 * must not report them as duplicates, because a former process cannot have received the record of
 * the present process. */
static void test_no_clone_in_a_restart(void **state)
{
    (void)state;
    for (int64_t delay_ms = 0; delay_ms <= 12 * 1000; delay_ms += 250) {
        begin();
        const struct link *l = up(HIGH, false);
        hello(l, 1);
        struct record r = record(OURS, 99);
        struct wire_members told = {.n_records = 1, .records = &r};
        step_at(rig.env.now_us + delay_ms * 1000);
        for (uint64_t k = 0; k < 6; k++) { /* Records of two former processes of the node. */
            r.boot = 99 + k / 3;
            r.over = k % 3 * 50;
            r.age_ms = (uint64_t)delay_ms * k;
            /* The clock of the former process was hours ahead, so its incarnations are high. */
            r.incarnation += k * 3600 * 1000;
            sessions_members(rig.s, l, &told);
            assert_true(members_self(rig.env.members)->incarnation > r.incarnation);
        }
        assert_false(rig.env.over);
        assert_int_equal(rig.fx.n_notes, 0);
        end();
    }
}

static void say_own(const struct link *l, const struct record *r)
{
    struct wire_hello h = {.version = WIRE_VERSION, .role = WIRE_PEER, .record = *r};
    sessions_hello(rig.s, l, &h);
}

/* Two processes with one identity know no other peer and connect to each other. The process that
 * started later must end, and the other process must continue. */
static void test_alone_with_a_clone(void **state)
{
    struct wire_message m;
    (void)state;
    for (int younger = 0; younger < 2; younger++) {
        begin();
        const struct link *l = up(OURS, younger == 0);
        struct record r = *members_self(rig.env.members);
        assert_true(sent(l->number, WIRE_HELLO, &m));
        r.boot = 99;
        r.incarnation--;
        /* The record of the other process has a lower incarnation than the node's record, so the
         * other process must first answer with a higher incarnation. */
        say_own(l, &r);
        step_at(rig.env.now_us);
        r = answer(younger ? 30 * 1000 : 0);
        step_at(rig.env.now_us + 10 * SECOND);
        say_own(l, &r);
        /* The other process is younger, so the node has reported it as a duplicate. The node must
         * not report a further record of that process within a minute. */
        if (!younger) {
            assert_int_equal(rig.fx.n_notes, 1);
            step_at(rig.env.now_us + 10 * SECOND);
            r = answer(1000);
            say_own(l, &r);
        }
        assert_int_equal(rig.env.over, younger);
        assert_int_equal(rig.fx.n_notes, younger);
        assert_true(sent(l->number, WIRE_HELLO, &m));
        assert_true(m.hello.record.incarnation > r.incarnation && m.hello.record.over == 99);
        assert_null(l->hung_up);
        assert_int_equal(members_self(rig.env.members)->state, RECORD_RUNNING);
        if (younger)
            assert_int_equal(rig.env.exit_code, 2);
        end();
    }
}

/* The bootstrap list contains the node's own address. Both ends of the session are closed, without
 * a message. */
static void test_alone_with_ourselves(void **state)
{
    (void)state;
    begin();
    const struct link *dialled = up(OURS, true), *accepted = up(OURS, false);
    struct record r = *members_self(rig.env.members);
    say_own(accepted, &r);
    say_own(dialled, &r);
    assert_true(dialled->hung_up != NULL && accepted->hung_up != NULL);
    assert_int_equal(rig.fx.n_notes, 0);
    assert_false(rig.env.over);
    assert_false(sessions_any(rig.s));
    end();
}

/* ---- dialling ---- */

static void resolved(const char *address)
{
    struct node_event ev = {.type = NODE_RESOLVED};
    ev.resolved.address = &address;
    ev.resolved.n = address != NULL;
    sessions_resolved(rig.s, &ev);
}

/* Advances the time until the bootstrap name is resolved. Returns the time that passed, in
 * microseconds. */
static int64_t until_resolve(void)
{
    int64_t begun = rig.env.now_us;
    do {
        step_at(rig.env.now_us + TICK_US);
        sessions_tick(rig.s);
        assert_true(rig.env.now_us < begun + 100 * SECOND);
    } while (rig.fx.n_resolves == 0);
    return rig.env.now_us - begun;
}

static void test_names_are_resolved_for_ever(void **state)
{
    (void)state;
    begin();
    (void)until_resolve();
    const struct link *l = up(HIGH, false);
    hello(l, 1);
    /* While a member is connected, the bootstrap name is resolved at a low rate only. After each
     * lookup the node dials the address in its result. */
    for (int k = 0; k < 3; k++) {
        char address[WIRE_ADDRESS_MAX];
        snprintf(address, sizeof address, "10.1.0.%d:7100", k);
        resolved(address);
        assert_true(rig.fx.n_dials > 0);
        const struct node_dial *dial = &rig.fx.dials[rig.fx.n_dials - 1];
        assert_string_equal(dial->address, address);
        sessions_dial_failed(rig.s, &(struct node_event){.dial = {.tag = dial->tag}});
        assert_in_range(until_resolve(), BOOTSTRAP_US * 4 / 5, BOOTSTRAP_US * 6 / 5 + TICK_US);
        sessions_heard(rig.s, l->number);
    }
    /* A lookup of the bootstrap name gives no address. The node reports that once and looks the
     * name up again soon. */
    resolved(NULL);
    assert_int_equal(rig.fx.n_notes, 1);
    assert_in_range(until_resolve(), BOOTSTRAP_ALONE_US * 4 / 5,
                    BOOTSTRAP_ALONE_US * 6 / 5 + TICK_US);
    resolved(NULL);
    assert_int_equal(rig.fx.n_notes, 0);
    end();
}

/* Calls sessions_call() repeatedly until the node dials. Returns the time that passed, in
 * microseconds. */
static int64_t until_dial(uint8_t who, int64_t lost_us)
{
    uint8_t id[WIRE_ID_BYTES] = {who};
    int64_t begun = rig.env.now_us;
    for (;;) {
        sessions_call(rig.s, id, lost_us);
        if (rig.fx.n_dials > 0)
            return rig.env.now_us - begun;
        step_at(rig.env.now_us + TICK_US / 10);
        assert_true(rig.env.now_us < begun + 100 * SECOND);
    }
}

static void fail_dial(void)
{
    sessions_dial_failed(rig.s, &(struct node_event){.dial = {.tag = rig.fx.dials[0].tag}});
    step_at(rig.env.now_us);
}

static void test_back_off(void **state)
{
    (void)state;
    uint8_t high[WIRE_ID_BYTES] = {HIGH}, low[WIRE_ID_BYTES] = {LOW};
    begin();
    assert_int_equal(sessions_want(rig.s, high), 0);
    assert_int_equal(sessions_want(rig.s, low), 0);
    /* The node's id is smaller than the id of the peer HIGH, so the node dials HIGH at once. */
    assert_int_equal(until_dial(HIGH, rig.env.now_us), 0);
    fail_dial();
    for (int64_t us = REDIAL_MIN_US; us < 4 * REDIAL_MAX_US; us *= 2) {
        int64_t most = us < REDIAL_MAX_US ? us : REDIAL_MAX_US;
        assert_in_range(until_dial(HIGH, 0), most * 4 / 5, most * 6 / 5 + TICK_US);
        fail_dial();
    }
    assert_in_range(until_dial(LOW, rig.env.now_us), DIAL_YIELD_US, DIAL_YIELD_US + TICK_US);
    fail_dial();
    sessions_unwant(rig.s, low);
    step_at(rig.env.now_us + 10 * SECOND);
    sessions_call(rig.s, low, 0);
    assert_int_equal(rig.fx.n_dials, 0);
    end();
}

/* A member whose session was just lost is dialled about every 0.5 s for RESTARTING_US, and then
 * less often. */
static void test_a_restart_is_found_soon(void **state)
{
    (void)state;
    uint8_t high[WIRE_ID_BYTES] = {HIGH};
    begin();
    assert_int_equal(sessions_want(rig.s, high), 0);
    const struct link *l = up(HIGH, false);
    hello(l, 1);
    sessions_tick(rig.s);
    int64_t lost_us = rig.env.now_us;
    down(l);
    while (rig.env.now_us < lost_us + RESTARTING_US - SECOND) {
        assert_true(until_dial(HIGH, 0) <= REDIAL_RECENT_US * 6 / 5 + TICK_US);
        fail_dial();
    }
    int64_t longest = 0;
    while (rig.env.now_us < lost_us + 3 * RESTARTING_US) {
        int64_t took = until_dial(HIGH, 0);
        longest = took > longest ? took : longest;
        fail_dial();
    }
    assert_true(longest >= REDIAL_MAX_US * 4 / 5);
    end();
}

/* The delay before the next dial depends on the former session. It is 0 if an edge had opened on
 * that session, REDIAL_MIN_US if not, and REDIAL_MAX_US after a protocol violation. */
static void test_calling_again(void **state)
{
    (void)state;
    uint8_t high[WIRE_ID_BYTES] = {HIGH};
    for (int k = 0; k < 3; k++) {
        bool opened = k > 0, violated = k == 2;
        begin();
        assert_int_equal(sessions_want(rig.s, high), 0);
        const struct link *l = up(HIGH, false);
        hello(l, 1);
        if (opened)
            sessions_opened(rig.s, l);
        if (violated)
            sessions_violation(rig.s, l, "a test");
        down(l);
        int64_t least = opened ? 0 : REDIAL_MIN_US * 4 / 5;
        least = violated ? REDIAL_MAX_US * 4 / 5 : least;
        int64_t took = until_dial(HIGH, 0);
        assert_in_range(took, least, least * 3 / 2 + TICK_US / 10);
        assert_int_equal(sessions_violations(rig.s), violated);
        end();
    }
}

/* The node dials the address of one member, and a peer with another id answers, for example because
 * a machine lost its key. The node must treat this dial as failed and wait before it dials
 * again. */
static void test_somebody_else_at_the_address(void **state)
{
    (void)state;
    uint8_t high[WIRE_ID_BYTES] = {HIGH};
    begin();
    assert_int_equal(sessions_want(rig.s, high), 0);
    (void)until_dial(HIGH, 0);
    struct node_event ev = {.type = NODE_LINK_UP, .link = ++rig.next_link};
    ev.up.id[0] = LOW;
    ev.up.dialled = true;
    ev.up.version = WIRE_VERSION;
    ev.up.tag = rig.fx.dials[rig.fx.n_dials - 1].tag;
    sessions_up(rig.s, &ev);
    step_at(rig.env.now_us);
    int64_t took = until_dial(HIGH, 0);
    assert_true(took >= REDIAL_MIN_US * 4 / 5);
    end();
}

/* ---- runs and messages ---- */

static void test_runs(void **state)
{
    (void)state;
    for (enum sessions_run said = SESSIONS_RUN_SAME; said <= SESSIONS_RUN_CONTRADICTS; said++) {
        bool goes_on = said <= SESSIONS_RUN_YIELDS;
        begin();
        const struct link *l = up(HIGH, false);
        rig.said = said;
        hello(l, 1);
        assert_int_equal(rig.n_runs, 1);
        assert_int_equal(link_talks(l), goes_on);
        assert_int_equal(l->same_run, said == SESSIONS_RUN_SAME || said == SESSIONS_RUN_TAKEN);
        assert_int_equal(l->hung_up != NULL,
                         said == SESSIONS_RUN_STRANGER || said == SESSIONS_RUN_UNREADABLE);
        assert_int_equal(l->violated, said == SESSIONS_RUN_UNREADABLE);
        assert_int_equal(rig.env.over, said == SESSIONS_RUN_CONTRADICTS);
        bool left = members_self(rig.env.members)->state == RECORD_LEFT;
        assert_int_equal(left, said == SESSIONS_RUN_CONTRADICTS);
        end();
    }
}

/* The peer has received the node's HELLO and counts the node as a member. If the node leaves
 * because the runs contradict each other, it must send its LEFT record to this peer too. */
static void test_leaving_over_the_first_word(void **state)
{
    struct wire_message m;
    (void)state;
    begin();
    const struct link *l = up(HIGH, false);
    rig.said = SESSIONS_RUN_CONTRADICTS;
    hello(l, 1);
    assert_true(sent(l->number, WIRE_MEMBERS, &m));
    assert_int_equal(m.members.records[0].state, RECORD_LEFT);
    assert_memory_equal(m.members.records[0].id, rig.env.config.id, WIRE_ID_BYTES);
    end();
}

/* A member that announces another run is no longer a member. It is a member again when it announces
 * the same run. */
static void test_refused_is_no_member(void **state)
{
    (void)state;
    begin();
    const struct link *l = up(HIGH, false);
    hello(l, 1);
    const struct member *m = members_find(rig.env.members, l->id);
    assert_int_equal(m->state, MEMBER_ALIVE);
    uint64_t view = members_view(rig.env.members);
    rig.said = SESSIONS_RUN_STRANGER;
    hello(l, 1);
    assert_non_null(l->hung_up);
    assert_int_equal(m->state, MEMBER_LEFT);
    assert_true(members_view(rig.env.members) != view);
    down(l);
    assert_int_equal(m->state, MEMBER_LEFT);
    rig.said = SESSIONS_RUN_SAME;
    hello(up(HIGH, false), 1);
    assert_int_equal(m->state, MEMBER_ALIVE);
    assert_true(members_view(rig.env.members) == view);
    end();
}

/* Another peer has a run that contradicts the node's run. The node refuses that peer if other
 * members share the node's run and the peer's run has not begun. Otherwise the node gives up its
 * own run. */
static void test_contradiction_in_company(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        bool company = k & 1, begun = k & 2, refused = company && !begun;
        struct wire_hello h = {WIRE_VERSION, WIRE_PEER, .has_run = true, .has_started = begun};
        begin();
        if (company)
            hello(up(HIGH, false), 1);
        const struct link *l = up(LOW, true);
        rig.said = SESSIONS_RUN_CONTRADICTS;
        h.record = record(LOW, 1);
        sessions_hello(rig.s, l, &h);
        assert_int_equal(rig.env.over, !refused);
        assert_int_equal(l->hung_up != NULL, refused);
        if (refused) {
            assert_non_null(strstr(rig.fx.notes[0].text, "peer-1 (10.0.0.1:7100)"));
            assert_false(link_talks(l));
        }
        end();
    }
}

static void test_leaving_and_finishing_are_said(void **state)
{
    struct wire_message m;
    (void)state;
    begin();
    const struct link *l = up(HIGH, false);
    hello(l, 1);
    sessions_news(rig.s);
    step_at(rig.env.now_us);
    sessions_say_finished_all(rig.s);
    assert_false(sent(l->number, WIRE_PING, &m));
    rig.standing.finished = true;
    sessions_say_finished_all(rig.s);
    assert_true(sent(l->number, WIRE_PING, &m) && m.ping.finished);
    /* The test returns the node's own PING to the node, which must then count the peer as
     * finished. */
    sessions_ping(rig.s, l, &m.ping);
    assert_true(l->finished && rig.n_finished == 1);
    step_at(rig.env.now_us);
    sessions_leave(rig.s);
    assert_true(sent(l->number, WIRE_MEMBERS, &m));
    assert_int_equal(m.members.n_records, 1);
    assert_int_equal(m.members.records[0].id[0], OURS);
    assert_int_equal(m.members.records[0].state, RECORD_LEFT);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crossed_sessions),
        cmocka_unit_test(test_second_session),
        cmocka_unit_test(test_two_processes_of_one_identity),
        cmocka_unit_test(test_a_clone_of_us),
        cmocka_unit_test(test_a_clone_elsewhere),
        cmocka_unit_test(test_no_clone_in_a_restart),
        cmocka_unit_test(test_alone_with_a_clone),
        cmocka_unit_test(test_alone_with_ourselves),
        cmocka_unit_test(test_names_are_resolved_for_ever),
        cmocka_unit_test(test_back_off),
        cmocka_unit_test(test_calling_again),
        cmocka_unit_test(test_a_restart_is_found_soon),
        cmocka_unit_test(test_somebody_else_at_the_address),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_leaving_over_the_first_word),
        cmocka_unit_test(test_refused_is_no_member),
        cmocka_unit_test(test_contradiction_in_company),
        cmocka_unit_test(test_leaving_and_finishing_are_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
