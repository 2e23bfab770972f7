/* tests/unit/node_admit.c -- tests of the admission to sessions: allow-list, tokens (certificates),
 * duplicate names, and what a refused node does. */
#include "node_sessions_rig.h"

enum { ISSUER = 3, STRANGER = 20 };

static const int64_t unix_ms = 1700000000500;

static bool valid; /* Result of verify_certificate(), set by the test. */

static bool verify_certificate(void *self, const uint8_t id[WIRE_ID_BYTES], const uint8_t *msg,
                               size_t n, const uint8_t signature[WIRE_SIGNATURE_BYTES])
{
    (void)self, (void)id, (void)msg, (void)n, (void)signature;
    return valid;
}

static const struct members_crypto certificates = {NULL, verify_certificate, sign};

/* Gives the node an allow-list of ids. `who` has the first byte of each id, and ends with 0. */
static void list(const uint8_t *who)
{
    uint8_t id[8][WIRE_ID_BYTES] = {{0}};
    struct node_event ev = {.type = NODE_ADMIT};
    for (; who[ev.admit.n] != 0; ev.admit.n++)
        id[ev.admit.n][0] = who[ev.admit.n];
    ev.admit.id = (const uint8_t(*)[WIRE_ID_BYTES])id;
    ev.admit.unix_ms = unix_ms;
    admit_list(rig.s, &ev);
}

static void begin_listed(const uint8_t *who)
{
    begin();
    valid = true;
    rig.env.config.crypto = &certificates;
    list(who);
    step_at(rig.env.now_us);
}

static struct record invited(uint8_t who, uint8_t issuer, int64_t expires_ms)
{
    struct record r = record(who, 1);
    r.invited = true;
    r.certificate.issuer[0] = issuer;
    r.certificate.expires_ms = (uint64_t)expires_ms;
    return r;
}

static void hello_with(const struct link *l, const struct record *r)
{
    struct wire_hello h = {.version = WIRE_VERSION, .role = WIRE_PEER, .record = *r};
    sessions_hello(rig.s, l, &h);
}

static enum member_state state_of(uint8_t who)
{
    const struct member *m = members_find(rig.env.members, (uint8_t[WIRE_ID_BYTES]){who});
    return m != NULL ? m->state : MEMBER_LEFT;
}

/* Checks that the peer on this link is told the reason `why`, that its session is closed, and that
 * it is not a member. */
static void assert_refused(const struct link *l, enum wire_refusal why)
{
    struct wire_message m;
    assert_non_null(l->hung_up);
    assert_true(sent(l->number, WIRE_REFUSED, &m));
    assert_int_equal(m.refused.why, why);
    assert_string_equal(m.refused.name, "ours");
    assert_false(sent(l->number, WIRE_MEMBERS, &m));
    assert_int_equal(state_of(l->id[0]), MEMBER_LEFT);
}

static void test_without_a_list(void **state)
{
    (void)state;
    begin();
    const struct link *l = up(STRANGER, false);
    hello(l, 1);
    assert_null(l->hung_up);
    assert_int_equal(state_of(STRANGER), MEMBER_ALIVE);
    end();
}

static void test_listed_or_not(void **state)
{
    (void)state;
    begin_listed((uint8_t[]){LOW, OURS, HIGH, 0});
    const struct link *low = up(LOW, false), *other = up(STRANGER, false);
    hello(low, 1);
    assert_null(low->hung_up);
    assert_int_equal(rig.fx.n_notes, 0);
    hello(other, 1);
    assert_refused(other, REFUSED_UNLISTED);
    assert_int_equal(rig.fx.n_notes, 1);
    assert_non_null(strstr(rig.fx.notes[0].text, " 14000000000000000000000000000000000000000000000"
                                                 "00000000000000000 "));
    for (int k = 0; k < 20; k++) { /* A refused peer that connects repeatedly is reported once. */
        step_at(rig.env.now_us + SECOND);
        other = up(STRANGER, false);
        hello(other, 1);
        assert_refused(other, REFUSED_UNLISTED);
        assert_int_equal(rig.fx.n_notes, 0);
        down(other);
    }
    /* Even if a member relays the refused peer's record, that peer does not become a member, and
     * its accusations of other members do not count. */
    struct record r = record(STRANGER, 1);
    struct accusation a = {.accused = {LOW}, .accuser = {STRANGER}, .incarnation = 1};
    struct wire_members told = {
        .n_records = 1, .n_accusations = 1, .records = &r, .accusations = &a};
    sessions_members(rig.s, low, &told);
    assert_int_equal(state_of(STRANGER), MEMBER_LEFT);
    end();
}

static void test_certificates(void **state)
{
    static const struct
    {
        uint8_t issuer;
        bool valid, late;
        int why; /* Expected reason why the node refuses the peer. -1: the node admits it. */
    } cases[] = {{ISSUER, true, false, -1},
                 {ISSUER, true, true, REFUSED_EXPIRED},
                 {ISSUER, false, false, REFUSED_FORGED},
                 {STRANGER, true, false, REFUSED_ISSUER},
                 {STRANGER + 1, true, false, REFUSED_ISSUER}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_listed((uint8_t[]){LOW, ISSUER, OURS, 0});
        valid = cases[i].valid;
        struct record r = invited(STRANGER, cases[i].issuer, unix_ms + 60000);
        /* The expiry of a certificate is exact to the millisecond. */
        step_at(rig.env.now_us + 60 * SECOND - (cases[i].late ? 0 : 1000));
        const struct link *l = up(STRANGER, false);
        hello_with(l, &r);
        if (cases[i].why < 0)
            assert_null(l->hung_up);
        else
            assert_refused(l, (enum wire_refusal)cases[i].why);
        assert_int_equal(rig.fx.n_notes, cases[i].why >= 0);
        /* A peer (STRANGER) has a certificate that may have expired, and an admitted member relays
         * its record. In a relayed record the node must ignore the expiry of the certificate, and
         * check everything else. */
        const struct link *low = up(LOW, false);
        hello(low, 1);
        struct wire_members told = {.n_records = 1, .records = &r};
        sessions_members(rig.s, low, &told);
        bool member = cases[i].why < 0 || cases[i].late;
        assert_int_equal(state_of(STRANGER), member ? MEMBER_ALIVE : MEMBER_LEFT);
        /* A peer that is a member already is accepted even after its certificate has expired. */
        if (cases[i].late) {
            l = up(STRANGER, false);
            hello_with(l, &r);
            assert_null(l->hung_up);
            r.certificate.presented[0] = 1; /* The peer is refused when its certificate changes. */
            l = up(STRANGER, false);
            hello_with(l, &r);
            assert_non_null(l->hung_up);
        }
        end();
    }
}

/* A pause of this process counts for the expiry of certificates, although node time stops. */
static void test_pause_does_not_stop_expiry(void **state)
{
    (void)state;
    begin_listed((uint8_t[]){LOW, ISSUER, OURS, 0});
    struct record r = invited(STRANGER, ISSUER, unix_ms + 60000);
    env_begin_step(&rig.env, rig.env.driver_us + 60 * SECOND, 1, &rig.fx);
    const struct link *l = up(STRANGER, false);
    hello_with(l, &r);
    assert_refused(l, REFUSED_EXPIRED);
    end();
}

/* A new allow-list ends the sessions and memberships of all peers that it does not name. A peer
 * with a token is refused as soon as the issuer of the token is not on the list. When a later
 * list names the removed peers again, they are members again. */
static void test_revocation(void **state)
{
    (void)state;
    begin_listed((uint8_t[]){LOW, ISSUER, OURS, HIGH, 0});
    const struct link *low = up(LOW, false), *high = up(HIGH, false), *guest = up(STRANGER, false);
    struct record r = invited(STRANGER, ISSUER, unix_ms + 60000);
    hello(low, 1);
    hello(high, 1);
    hello_with(guest, &r);
    /* The token has expired, but the peer that used it remains a member. */
    step_at(rig.env.now_us + 100 * SECOND);
    list((uint8_t[]){LOW, ISSUER, OURS, HIGH, 0});
    assert_false(low->hung_up != NULL || high->hung_up != NULL || guest->hung_up != NULL);
    assert_int_equal(rig.fx.n_notes, 0);
    list((uint8_t[]){LOW, ISSUER, OURS, 0});
    assert_refused(high, REFUSED_UNLISTED);
    assert_int_equal(rig.fx.n_notes, 1);
    assert_false(low->hung_up != NULL || guest->hung_up != NULL);
    step_at(rig.env.now_us);
    list((uint8_t[]){LOW, OURS, 0});
    assert_refused(guest, REFUSED_ISSUER);
    assert_null(low->hung_up);
    assert_int_equal(rig.fx.n_notes, 1);
    step_at(rig.env.now_us);
    list((uint8_t[]){LOW, ISSUER, OURS, HIGH, 0});
    assert_int_equal(state_of(HIGH), MEMBER_ALIVE);
    assert_int_equal(state_of(STRANGER), MEMBER_ALIVE);
    assert_int_equal(rig.fx.n_notes, 0);
    end();
}

/* A node that is not on its own allow-list must warn once, and continue. */
static void test_own_identity(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        begin();
        list(k ? (uint8_t[]){LOW, OURS, 0} : (uint8_t[]){LOW, 0});
        /* The new allow-list does not contain member HIGH. The node reports that in an
         * additional message. */
        assert_int_equal(rig.fx.n_notes, k ? 1 : 2);
        assert_false(rig.env.over);
        step_at(rig.env.now_us);
        list((uint8_t[]){LOW, HIGH, 0});
        assert_int_equal(rig.fx.n_notes, k);
        end();
    }
}

static void observe(const struct link *l)
{
    struct wire_hello h = {.version = WIRE_VERSION, .role = WIRE_OBSERVER};
    sessions_hello(rig.s, l, &h);
}

static void test_observers(void **state)
{
    struct wire_message m;
    (void)state;
    begin_listed((uint8_t[]){LOW, OURS, 0});
    const struct link *low = up(LOW, false), *other = up(STRANGER, false);
    observe(low);
    assert_null(low->hung_up);
    assert_true(sent(low->number, WIRE_MEMBERS, &m));
    observe(other);
    assert_refused(other, REFUSED_UNLISTED);
    end();
}

/* ---- names ---- */

static struct record named(uint8_t who, const char *name, uint64_t incarnation)
{
    struct record r = record(who, 1);
    r.incarnation = incarnation;
    snprintf(r.name, sizeof r.name, "%s", name);
    return r;
}

/* A new peer has the name of a member. If the member has a session and started earlier (k == 0),
 * the new peer is refused. If the member is silent (k == 1) or disconnected (k == 2), the new
 * peer counts as the restarted member. If the member started later (k == 3), the new peer is
 * admitted. */
static void test_taken_name(void **state)
{
    struct wire_message m;
    (void)state;
    for (int k = 0; k < 4; k++) {
        begin();
        const struct link *high = up(HIGH, false);
        hello(high, 1);
        if (k == 1) { /* No heartbeats of member HIGH arrive any more. */
            step_at(rig.env.now_us + SILENT_US + 1);
            sessions_tick(rig.s);
        } else if (k == 2) {
            down(high);
        }
        step_at(rig.env.now_us);
        struct record r = named(STRANGER, "peer-9", k == 3 ? 0 : 1);
        const struct link *l = up(STRANGER, false);
        hello_with(l, &r);
        assert_int_equal(l->hung_up != NULL, k == 0);
        if (k == 0) {
            assert_refused(l, REFUSED_NAME);
            assert_true(sent(l->number, WIRE_REFUSED, &m) && m.refused.other[0] == HIGH);
            assert_int_equal(rig.fx.n_notes, 1);
            assert_non_null(strstr(rig.fx.notes[0].text, "peer-9 (14000000)"));
            assert_non_null(strstr(rig.fx.notes[0].text, "to 09000000"));
        }
        end();
    }
}

/* A peer has the same name as the node. If the peer started later, the node refuses the peer. If
 * the node started later, the node accepts the peer, and the peer refuses the node. In this way
 * only one of the two is refused. */
static void test_own_name(void **state)
{
    (void)state;
    for (int later = 0; later < 2; later++) {
        begin();
        struct record r = named(STRANGER, "ours", later ? 2 : 0);
        const struct link *l = up(STRANGER, false);
        hello_with(l, &r);
        assert_int_equal(l->hung_up != NULL, later);
        end();
    }
}

/* A peer with the node's name has a high incarnation, because it has refuted records of a copy of
 * its identity. The incarnation therefore does not tell which of the two peers started earlier. The
 * age in the record does. */
static void test_age_of_a_copied_identity(void **state)
{
    (void)state;
    for (int later = 0; later < 2; later++) {
        begin();
        struct record r = named(STRANGER, "ours", 5000);
        r.over = 7;
        r.age_ms = later ? 4000 : 5000;
        const struct link *l = up(STRANGER, false);
        hello_with(l, &r);
        assert_int_equal(l->hung_up != NULL, later);
        end();
    }
}

/* Another member with the node's name is alive, but has no session with the node. Of the two
 * processes, the one that started later must leave the cluster. */
static void test_two_of_our_name(void **state)
{
    struct wire_message m;
    (void)state;
    int64_t begun_us;
    for (int later = 0; later < 2; later++) {
        begin();
        const struct link *friend = up(HIGH, false);
        hello(friend, 1);
        struct record r = named(STRANGER, "ours", later ? 2 : 0);
        members_merge(rig.env.members, &r, rig.env.now_us);
        begun_us = rig.env.now_us;
        for (int k = 0; k < 150 && !rig.env.over && state_of(STRANGER) == MEMBER_ALIVE; k++) {
            r.incarnation += k == 50 ? 1000000 * (uint64_t)later : 0;
            members_merge(rig.env.members, &r, rig.env.now_us);
            /* The other member with the node's name is alive. */
            members_session(rig.env.members, r.id, true, rig.env.now_us);
            tick(friend, true);
        }
        assert_int_equal(rig.env.over, !later);
        assert_in_range(rig.env.now_us - begun_us, DUPLICATE_NAME_US, DUPLICATE_NAME_US + SECOND);
        if (later) {
            assert_int_equal(state_of(STRANGER), MEMBER_LEFT);
        } else {
            assert_int_equal(rig.env.exit_code, 2);
            assert_true(sent(friend->number, WIRE_MEMBERS, &m));
            assert_int_equal(m.members.records[0].state, RECORD_LEFT);
        }
        end();
    }
}

/* ---- being refused ---- */

/* A node that all members refuse ends after REFUSED_END_US and reports the reason. The node
 * continues if one member keeps a session with it (k == 1), or if no member refuses it any longer
 * (k == 2). */
static void test_being_refused(void **state)
{
    struct wire_refused no = {.why = REFUSED_EXPIRED, .name = "peer-9"};
    (void)state;
    for (int k = 0; k < 3; k++) {
        begin();
        const struct link *friend = up(LOW, false);
        if (k == 1)
            hello(friend, 1);
        int64_t begun = rig.env.now_us;
        uint32_t n_notes = 0;
        for (int turn = 0; turn < 150 && !rig.env.over; turn++) {
            /* The members that refuse the node give two different reasons in turn. */
            no.why = turn % 20 == 0 ? REFUSED_EXPIRED : REFUSED_UNLISTED;
            step_at(rig.env.now_us + TICK_US);
            sessions_heard(rig.s, friend->number);
            if (turn % 10 == 0 && !(k == 2 && turn > 20)) {
                const struct link *l = up(HIGH, true);
                hello(l, 1);
                admit_refused(rig.s, l, &no);
                assert_non_null(l->hung_up);
                down(l);
            }
            sessions_tick(rig.s);
            for (uint32_t i = 0; i < rig.fx.n_notes; i++)
                n_notes += strstr(rig.fx.notes[i].text, "refuse") != NULL
                           || strstr(rig.fx.notes[i].text, "admit") != NULL;
            if (k != 1 && turn < 80)
                assert_true(sessions_are_refused(rig.s));
        }
        assert_int_equal(rig.env.over, k == 0);
        assert_int_equal(sessions_are_refused(rig.s), k == 0);
        if (k == 0) {
            assert_int_equal(rig.env.exit_code, 2);
            assert_in_range(rig.env.now_us - begun, REFUSED_END_US, REFUSED_END_US + 2 * SECOND);
        }
        /* The node reports each of the two reasons for its refusal once. If the node ends (k ==
         * 0), it reports that in a third message. */
        assert_int_equal(n_notes, k == 0 ? 3 : 2);
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_a_list),
        cmocka_unit_test(test_listed_or_not),
        cmocka_unit_test(test_certificates),
        cmocka_unit_test(test_pause_does_not_stop_expiry),
        cmocka_unit_test(test_revocation),
        cmocka_unit_test(test_own_identity),
        cmocka_unit_test(test_observers),
        cmocka_unit_test(test_taken_name),
        cmocka_unit_test(test_own_name),
        cmocka_unit_test(test_two_of_our_name),
        cmocka_unit_test(test_age_of_a_copied_identity),
        cmocka_unit_test(test_being_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
