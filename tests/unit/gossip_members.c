/* tests/unit/gossip_members.c -- tests each rule of the membership protocol on one member table. */
#include "tests/unit/gossip_toy.h"

static void test_open(void **state)
{
    (void)state;
    struct members *m = open_in(NULL, 3, 77);
    const struct record *self = members_self(m);
    assert_int_equal(self->incarnation, 77);
    assert_string_equal(self->name, "peer-3");
    struct record want = record(3, 77);
    assert_memory_equal(self->signature, want.signature, WIRE_SIGNATURE_BYTES);
    assert_int_equal(members_count(m), 1);
    assert_true(is_vertex(m, 3));
    assert_int_equal(members_tick(m, 1), INT64_MAX);
    struct wire_members out = batch();
    assert_true(members_dirty(m, &out, WIRE_BATCH_MAX));
    assert_int_equal(out.n_records, 1);
    assert_false(members_dirty(m, &out, WIRE_BATCH_MAX));
    assert_null(members_find(m, id_of(4)));
    check_invariants(m);
    members_close(m);
    members_close(NULL);
}

static void test_order(void **state)
{
    (void)state;
    struct members *m = open_in(NULL, 5, 1);
    static const uint32_t numbers[] = {10, 2, 100, 0, 11, 1, 9};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        assert_int_equal(merge(m, record(numbers[i], 1)), MEMBERS_NEWS);
    static const char *const want[] = {"peer-0", "peer-1",  "peer-2",  "peer-5",
                                       "peer-9", "peer-10", "peer-11", "peer-100"};
    uint32_t at[WIRE_MEMBERS_MAX];
    size_t self_at;
    assert_int_equal(members_vertices(m, at, &self_at), 8);
    assert_int_equal(self_at, 3);
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(at[i], i);
        assert_string_equal(members_at(m, i)->record->name, want[i]);
    }
    check_invariants(m);
    /* Members with equal names are sorted by id. A new name changes the member's place and the view
     * (the hash of the set of members). */
    uint64_t view = members_view(m);
    struct record r = unsigned_record(10, 2);
    strcpy(r.name, "a");
    assert_int_equal(merge(m, signed_record(r)), MEMBERS_NEWS);
    assert_string_equal(members_at(m, 0)->record->name, "a");
    assert_true(members_view(m) != view);
    r = unsigned_record(11, 2);
    strcpy(r.name, "a");
    assert_int_equal(merge(m, signed_record(r)), MEMBERS_NEWS);
    check_invariants(m);
    members_close(m);
}

static void test_merge_verdicts(void **state)
{
    (void)state;
    struct members *m = open_knowing(2);
    drain(m);
    /* Peer 9 is not in the member table. */
    members_expect(m, (struct record[]){record(1, 5), record(9, 5)}, 2);
    assert_int_equal(merge(m, record(1, 1)), MEMBERS_OLD);
    assert_int_equal(merge(m, record(1, 0)), MEMBERS_OLD);
    struct record r = record(1, 5);
    r.signature[0] ^= 1;
    assert_int_equal(merge(m, r), MEMBERS_FORGED);
    r = record(1, 5);
    strcpy(r.address[0], "10.9.9.9:7100"); /* The record was changed after it was signed. */
    assert_int_equal(merge(m, r), MEMBERS_FORGED);
    r = record(9, 5);
    r.signature[63] ^= 0x80;
    assert_int_equal(merge(m, r), MEMBERS_FORGED);
    r = record(2, 5);
    memcpy(r.id, id_of(1), sizeof r.id); /* This record of peer 2 has the id of peer 1. */
    assert_int_equal(merge(m, r), MEMBERS_FORGED);
    assert_int_equal(members_count(m), 3);
    assert_int_equal(members_find(m, id_of(1))->record->incarnation, 1);
    struct wire_members out = batch();
    /* Rejected records are not sent to other members. */
    assert_false(members_dirty(m, &out, WIRE_BATCH_MAX));
    assert_int_equal(merge(m, record(1, 5)), MEMBERS_NEWS);
    r = record(1, 5);
    r.incarnation = 7; /* The changed record keeps a signature that was verified before. */
    assert_int_equal(merge(m, r), MEMBERS_FORGED);
    assert_int_equal(merge(m, record(1, UINT64_MAX)), MEMBERS_NEWS);
    assert_int_equal(merge(m, record(1, 6)), MEMBERS_OLD);
    assert_true(members_dirty(m, &out, WIRE_BATCH_MAX));
    /* If a member has several records, only the newest is sent, and only once. */
    assert_int_equal(out.n_records, 1);
    assert_int_equal(out.records[0].incarnation, UINT64_MAX);
    members_close(m);
}

/* Members with equal names but different ids give different views (sets of members). */
static void test_view_goes_by_ids(void **state)
{
    (void)state;
    struct members *m = open_in(NULL, 0, 1), *n = open_in(NULL, 0, 1);
    struct record a = unsigned_record(1, 1), b = unsigned_record(2, 1);
    memcpy(b.name, a.name, sizeof b.name);
    assert_int_equal(merge(m, signed_record(a)), MEMBERS_NEWS);
    assert_int_equal(merge(n, signed_record(b)), MEMBERS_NEWS);
    assert_true(members_view(m) != members_view(n));
    members_close(m);
    members_close(n);
}

/* All tables keep the same one of two records with equal incarnation but different contents. */
static void test_ties(void **state)
{
    (void)state;
    struct record a = unsigned_record(1, 4), b = a, left = a;
    b.boot = 2;
    left.state = RECORD_LEFT;
    struct record all[] = {signed_record(a), signed_record(b), signed_record(left)};
    struct members *m = open_in(NULL, 0, 1), *n = open_in(NULL, 0, 1);
    merge(m, all[0]), merge(m, all[1]);
    merge(n, all[1]), merge(n, all[0]);
    assert_int_equal(members_find(m, id_of(1))->record->boot,
                     members_find(n, id_of(1))->record->boot);
    /* Within one incarnation the state LEFT is final. */
    assert_int_equal(merge(m, all[2]), MEMBERS_NEWS);
    assert_int_equal(merge(m, all[0]), MEMBERS_OLD);
    assert_int_equal(merge(m, all[1]), MEMBERS_OLD);
    assert_int_equal(state_of(m, 1), MEMBER_LEFT);
    assert_false(is_vertex(m, 1));
    /* Member 1 has left. Only a record with a higher incarnation makes it alive again. */
    assert_int_equal(merge(m, record(1, 5)), MEMBERS_NEWS);
    assert_int_equal(state_of(m, 1), MEMBER_ALIVE);
    assert_true(is_vertex(m, 1));
    members_close(m);
    members_close(n);
}

static void test_about_me(void **state)
{
    (void)state;
    struct members *m = open_in(NULL, 0, 10);
    drain(m);
    assert_int_equal(merge(m, record(0, 9)), MEMBERS_OLD);
    assert_int_equal(merge(m, *members_self(m)), MEMBERS_OLD);
    struct record forged = record(0, 20);
    forged.signature[1] ^= 1;
    assert_int_equal(merge(m, forged), MEMBERS_FORGED);
    assert_int_equal(members_self(m)->incarnation, 10);
    /* An earlier process of this peer has made this record. */
    assert_int_equal(merge(m, record(0, 20)), MEMBERS_ABOUT_ME);
    assert_int_equal(members_self(m)->incarnation, 21);
    struct record clone = unsigned_record(0, 21);
    clone.boot = 99;
    assert_int_equal(merge(m, signed_record(clone)), MEMBERS_ABOUT_ME);
    /* The new incarnation of this peer's record is above the one of the duplicate identity's
     * record. */
    assert_int_equal(members_self(m)->incarnation, 1022);
    /* The table signs this peer's new record, and sends the record to the other members. */
    struct record now = unsigned_record(0, 1022);
    now.over = 99;
    now = signed_record(now);
    assert_memory_equal(members_self(m)->signature, now.signature, WIRE_SIGNATURE_BYTES);
    struct wire_members out = batch();
    assert_true(members_dirty(m, &out, WIRE_BATCH_MAX));
    assert_int_equal(out.records[0].incarnation, 1022);
    assert_int_equal(merge(m, record(0, UINT64_MAX - 1)), MEMBERS_ABOUT_ME);
    assert_int_equal(members_self(m)->incarnation, UINT64_MAX);
    /* This record has the largest incarnation, which must not overflow. */
    clone.incarnation = UINT64_MAX;
    assert_int_equal(merge(m, signed_record(clone)), MEMBERS_ABOUT_ME);
    assert_int_equal(members_self(m)->incarnation, UINT64_MAX);
    members_set_state(m, RECORD_FINISHED);
    assert_true(members_add_address(m, "b:1"));
    merge(m, record(1, 1));
    assert_int_equal(accused(m, accusation(0, 1, UINT64_MAX), 0), MEMBERS_ABOUT_ME);
    assert_int_equal(members_self(m)->incarnation, UINT64_MAX);
    members_close(m);
}

/* A record of an earlier process of this peer says that the peer is an initial member. This process
 * must then also become an initial member, whether the incarnation of the record is lower or higher
 * than its own. A forged record has no effect. */
static void test_earlier_process_was_initial(void **state)
{
    (void)state;
    for (uint64_t incarnation = 9; incarnation <= 11; incarnation++) {
        struct members *m = open_in(NULL, 0, 10);
        drain(m);
        struct record earlier = unsigned_record(0, incarnation);
        earlier.boot = 99;
        earlier.initial = true;
        struct record forged = signed_record(earlier);
        forged.signature[1] ^= 1;
        assert_int_equal(merge(m, forged), MEMBERS_FORGED);
        assert_false(members_self(m)->initial);
        earlier = signed_record(earlier);
        assert_int_equal(merge(m, earlier), incarnation < 10 ? MEMBERS_OLD : MEMBERS_ABOUT_ME);
        assert_true(members_self(m)->initial);
        assert_true(members_self(m)->incarnation > incarnation);
        struct wire_members out = batch();
        assert_true(members_dirty(m, &out, WIRE_BATCH_MAX));
        assert_true(out.n_records == 1 && out.records[0].initial);
        /* Later records of this process also say that it is an initial member. */
        members_set_state(m, RECORD_TRAINED);
        assert_true(members_self(m)->initial);
        members_close(m);
    }
}

/* The table keeps the last record in which a member says that it is an initial member. Later
 * records without this statement do not replace it, and later records with it do. Dropping the
 * member removes the kept record. */
static void test_initial_record_is_kept(void **state)
{
    (void)state;
    struct members *m = open_in(NULL, 0, 10);
    struct record first = unsigned_record(1, 1);
    first.initial = true;
    assert_null(members_initial(m, id_of(1)));
    assert_int_equal(merge(m, signed_record(first)), MEMBERS_NEWS);
    assert_int_equal(members_initial(m, id_of(1))->incarnation, 1);
    assert_int_equal(merge(m, record(1, 2)), MEMBERS_NEWS);
    assert_int_equal(merge(m, record(1, 3)), MEMBERS_NEWS);
    assert_int_equal(members_initial(m, id_of(1))->incarnation, 1);
    first.incarnation = 4;
    assert_int_equal(merge(m, signed_record(first)), MEMBERS_NEWS);
    assert_int_equal(members_initial(m, id_of(1))->incarnation, 4);
    assert_int_equal(merge(m, record_in(1, 5, RECORD_LEFT)), MEMBERS_NEWS);
    assert_int_equal(members_initial(m, id_of(1))->incarnation, 4);
    members_tick(m, 2 * TOY_FORGET_US);
    assert_null(members_initial(m, id_of(1)));
    members_close(m);
}

static bool next_news(struct members *m, struct wire_members *out)
{
    *out = batch();
    return members_dirty(m, out, WIRE_BATCH_MAX);
}

/* A listener is not sent records that it has sent or received before. A record that all listeners
 * know is not sent at all. */
static void test_listeners(void **state)
{
    (void)state;
    struct members *m = open_knowing(2);
    struct wire_members out;
    drain(m);
    members_audience(m, 3);
    merge(m, record(1, 5));
    /* A record that belongs to no member. */
    members_heard(m, 0, &(struct record){.n_addresses = 0});
    struct record said = record(1, 5), older = record(1, 4);
    members_heard(m, 0, &older);
    members_heard(m, 0, &said);
    assert_true(next_news(m, &out));
    assert_int_equal(out.n_records, 1);
    assert_int_equal(members_known(m, 0), 1);
    assert_int_equal(members_known(m, 1), 0);
    /* members_known() has already marked this record as sent to listener 1. */
    assert_int_equal(members_known(m, 1), 1);
    assert_int_equal(members_known(m, MEMBERS_LISTENERS), 0);
    merge(m, record(1, 6)); /* No listener knows this newer record. */
    assert_true(next_news(m, &out));
    assert_int_equal(members_known(m, 0), 0);
    said = record(1, 7);
    merge(m, said);
    members_heard(m, 0, &said);
    members_heard(m, 1, &said);
    assert_false(next_news(m, &out));
    /* From now on, the table has more listeners (peers that receive changes) than it tracks. */
    members_audience(m, 0);
    merge(m, record(1, 8));
    members_heard(m, 0, &said);
    assert_true(next_news(m, &out));
    members_close(m);
}

/* A listener is a neighbour to which the table sends records. Each record must be sent to a
 * listener once. If a new listener gets the number of one that has gone, all records must be sent
 * to it. */
static void test_tell(void **state)
{
    (void)state;
    struct members *m = open_knowing(3);
    struct wire_members out = batch();
    size_t cursor = 0;
    struct record said = record(2, 5);
    drain(m);
    merge(m, said);
    members_heard(m, 4, &said);
    while (members_tell(m, 4, &cursor, &out, WIRE_BATCH_MAX))
        for (uint32_t i = 0; i < out.n_records; i++)
            assert_memory_not_equal(out.records[i].id, said.id, WIRE_ID_BYTES);
    cursor = 0;
    assert_false(members_tell(m, 4, &cursor, &out, WIRE_BATCH_MAX));
    members_listener(m, 4, false);
    cursor = 0;
    assert_true(members_tell(m, 4, &cursor, &out, WIRE_BATCH_MAX));
    assert_int_equal(out.n_records, members_count(m));
    members_listener(m, 4, false);
    /* A listener that is a member already knows the records that every member has from the
     * start. */
    members_listener(m, 4, true);
    cursor = 0;
    assert_true(members_tell(m, 4, &cursor, &out, WIRE_BATCH_MAX));
    assert_int_equal(out.n_records, 2);
    members_close(m);
}

static void test_refute(void **state)
{
    (void)state;
    struct members *m = open_knowing(2);
    drain(m);
    assert_int_equal(accused(m, accusation(0, 1, 0), 0), MEMBERS_OLD);
    /* This peer has not announced incarnation 2 yet, so an accusation of it is ignored. */
    assert_int_equal(accused(m, accusation(0, 1, 2), 0), MEMBERS_OLD);
    assert_int_equal(accused(m, accusation(0, 1, UINT64_MAX), 0), MEMBERS_OLD);
    struct accusation forged = accusation(0, 1, 1);
    forged.signature[7] ^= 1;
    assert_int_equal(accused(m, forged, 0), MEMBERS_FORGED);
    /* The accuser, member 9, is not in the table. */
    assert_int_equal(accused(m, accusation(0, 9, 1), 0), MEMBERS_OLD);
    assert_int_equal(members_self(m)->incarnation, 1);
    assert_int_equal(accused(m, accusation(0, 1, 1), 0), MEMBERS_ABOUT_ME);
    assert_int_equal(members_self(m)->incarnation, 2);
    /* The accusation names an old incarnation. */
    assert_int_equal(accused(m, accusation(0, 2, 1), 0), MEMBERS_OLD);
    assert_int_equal(state_of(m, 0), MEMBER_ALIVE);
    struct wire_members out = batch();
    assert_true(members_dirty(m, &out, WIRE_BATCH_MAX));
    assert_int_equal(out.n_records, 1);
    assert_int_equal(out.n_accusations, 0);
    assert_int_equal(out.records[0].incarnation, 2);
    members_set_state(m, RECORD_LEFT); /* This peer has left, so it does not refute accusations. */
    assert_int_equal(accused(m, accusation(0, 1, 3), 0), MEMBERS_OLD);
    assert_int_equal(members_self(m)->incarnation, 3);
    members_close(m);
}

static void test_suspect_then_dead(void **state)
{
    (void)state;
    struct members *m = open_knowing(4);
    drain(m);
    uint64_t all = members_view(m);
    assert_int_equal(accused(m, accusation(1, 2, 1), 100), MEMBERS_NEWS);
    assert_int_equal(state_of(m, 1), MEMBER_SUSPECT);
    assert_true(is_vertex(m, 1));
    assert_int_equal(members_view(m), all);
    /* A repeated accusation by the same member has no effect. */
    assert_int_equal(accused(m, accusation(1, 2, 1), 200), MEMBERS_OLD);
    assert_int_equal(members_tick(m, 100 + TOY_SUSPECT_US - 1), 100 + TOY_SUSPECT_US);
    assert_int_equal(state_of(m, 1), MEMBER_SUSPECT);
    assert_int_equal(members_tick(m, 100 + TOY_SUSPECT_US), INT64_MAX);
    assert_int_equal(state_of(m, 1), MEMBER_DEAD);
    assert_false(is_vertex(m, 1));
    assert_true(members_view(m) != all);
    assert_int_equal(members_count(m), 5); /* Dead members stay in the table. */
    /* A second accuser shortens the time until the suspect is declared dead. A third accuser
     * changes nothing. */
    assert_int_equal(accused(m, accusation(2, 3, 1), 0), MEMBERS_NEWS);
    assert_int_equal(members_tick(m, 10), TOY_SUSPECT_US);
    assert_int_equal(accused(m, accusation(2, 4, 1), SECOND), MEMBERS_NEWS);
    assert_int_equal(accused(m, accusation(2, 1, 1), SECOND), MEMBERS_OLD);
    assert_int_equal(members_tick(m, SECOND), SECOND + TOY_CONFIRMED_US);
    assert_int_equal(members_tick(m, SECOND + TOY_CONFIRMED_US), INT64_MAX);
    assert_int_equal(state_of(m, 2), MEMBER_DEAD);
    assert_int_equal(accused(m, accusation(3, 4, 1), 0), MEMBERS_NEWS);
    assert_int_equal(accused(m, accusation(3, 2, 1), TOY_SUSPECT_US - 5), MEMBERS_NEWS);
    assert_int_equal(members_tick(m, TOY_SUSPECT_US - 5),
                     TOY_SUSPECT_US); /* A second accuser never delays the death of a suspect. */
    /* A higher incarnation makes a dead member alive and old accusations void. */
    assert_int_equal(merge(m, record(1, 2)), MEMBERS_NEWS);
    assert_int_equal(state_of(m, 1), MEMBER_ALIVE);
    assert_int_equal(members_find(m, id_of(1))->n_accusers, 0);
    assert_int_equal(accused(m, accusation(1, 3, 1), 0), MEMBERS_OLD);
    assert_int_equal(state_of(m, 1), MEMBER_ALIVE);
    assert_true(is_vertex(m, 1));
    check_invariants(m);
    members_close(m);
}

static void test_bad_accusations(void **state)
{
    (void)state;
    struct members *m = open_knowing(2);
    drain(m);
    /* Refused: a member that accuses itself. */
    assert_int_equal(accused(m, accusation(1, 1, 1), 0), MEMBERS_FORGED);
    /* The accused member 9 is not in the table. */
    assert_int_equal(accused(m, accusation(9, 1, 1), 0), MEMBERS_OLD);
    /* The accuser, member 9, is not in the table. */
    assert_int_equal(accused(m, accusation(1, 9, 1), 0), MEMBERS_OLD);
    struct accusation a = accusation(1, 2, 1);
    a.signature[0] ^= 1;
    assert_int_equal(accused(m, a, 0), MEMBERS_FORGED);
    a = accusation(1, 2, 0);
    /* Refused: the signature of the accusation was made for incarnation 0, not 1. */
    a.incarnation = 1;
    assert_int_equal(accused(m, a, 0), MEMBERS_FORGED);
    merge(m, record_in(2, 2, RECORD_LEFT));
    /* A member cannot be accused if its own record says LEFT. */
    assert_int_equal(accused(m, accusation(2, 1, 2), 0), MEMBERS_OLD);
    assert_int_equal(state_of(m, 1), MEMBER_ALIVE);
    assert_int_equal(state_of(m, 2), MEMBER_LEFT);
    members_close(m);
}

/* An accusation may name an incarnation of a member that is later than the known one. It is stored,
 * and sent on only after the record of that incarnation has arrived. It must not displace an
 * accusation of the present incarnation. */
static void test_accusation_waits(void **state)
{
    (void)state;
    struct members *m = open_knowing(5);
    drain(m);
    assert_int_equal(accused(m, accusation(1, 2, 7), 0), MEMBERS_OLD);
    assert_int_equal(accused(m, accusation(1, 3, UINT64_MAX), 0), MEMBERS_OLD);
    assert_int_equal(state_of(m, 1), MEMBER_ALIVE);
    struct wire_members out = batch();
    assert_false(members_dirty(m, &out, WIRE_BATCH_MAX));
    assert_int_equal(merge(m, record(1, 7)), MEMBERS_NEWS);
    assert_int_equal(state_of(m, 1), MEMBER_SUSPECT);
    assert_true(members_dirty(m, &out, WIRE_BATCH_MAX));
    assert_int_equal(out.n_records, 1);
    assert_int_equal(out.n_accusations, 1);
    /* The member table keeps this accusation, and drops one of a later incarnation for it. */
    assert_int_equal(accused(m, accusation(1, 4, 7), 0), MEMBERS_NEWS);
    assert_int_equal(members_find(m, id_of(1))->n_accusers, 2);
    members_tick(m, TOY_CONFIRMED_US);
    assert_int_equal(state_of(m, 1), MEMBER_DEAD);
    members_close(m);

    /* A dead member that is already accused in its next incarnation becomes suspect, not dead. */
    m = open_knowing(3);
    accused(m, accusation(1, 2, 1), 0);
    accused(m, accusation(1, 3, 7), 0);
    members_tick(m, TOY_SUSPECT_US);
    assert_int_equal(state_of(m, 1), MEMBER_DEAD);
    struct record r = record(1, 7);
    assert_int_equal(members_merge(m, &r, TOY_SUSPECT_US), MEMBERS_NEWS);
    assert_int_equal(state_of(m, 1), MEMBER_SUSPECT);
    assert_int_equal(members_tick(m, TOY_SUSPECT_US), 2 * TOY_SUSPECT_US);
    members_close(m);
}

static void test_session_overrides(void **state)
{
    (void)state;
    struct members *m = open_knowing(3);
    drain(m);
    members_session(m, id_of(1), true, 0);
    /* An accusation of a member with a live session is stored and forwarded. */
    assert_int_equal(accused(m, accusation(1, 2, 1), 0), MEMBERS_NEWS);
    assert_int_equal(accused(m, accusation(1, 3, 1), 0), MEMBERS_NEWS);
    assert_int_equal(state_of(m, 1), MEMBER_ALIVE); /* A live session overrides accusations. */
    assert_int_equal(members_tick(m, 100 * (int64_t)SECOND), INT64_MAX);
    assert_int_equal(state_of(m, 1), MEMBER_ALIVE);
    struct wire_members out = batch();
    assert_true(members_dirty(m, &out, WIRE_BATCH_MAX));
    assert_int_equal(out.n_accusations, 2);
    members_session(m, id_of(3), true, 0);
    members_accuse(m, id_of(1), 0);
    /* A peer does not accuse a member with which it has a session. */
    members_accuse(m, id_of(3), 0);
    assert_false(members_dirty(m, &out, WIRE_BATCH_MAX));
    members_session(m, id_of(3), false, 0);
    assert_int_equal(state_of(m, 3), MEMBER_ALIVE);

    members_session(m, id_of(1), false, 50);
    assert_int_equal(state_of(m, 1), MEMBER_SUSPECT);
    assert_int_equal(members_tick(m, 51), 50 + TOY_CONFIRMED_US);
    members_tick(m, 50 + TOY_CONFIRMED_US);
    assert_int_equal(state_of(m, 1), MEMBER_DEAD);
    members_session(m, id_of(1), true, 0); /* A session revives a dead member. */
    assert_int_equal(state_of(m, 1), MEMBER_ALIVE);
    assert_true(is_vertex(m, 1));
    assert_int_equal(merge(m, record(1, 2)), MEMBERS_NEWS);
    /* The member's new record has refuted the accusations, so the member is alive without a
     * session. */
    members_session(m, id_of(1), false, 0);
    assert_int_equal(state_of(m, 1), MEMBER_ALIVE);

    members_session(m, id_of(2), true, 0);
    assert_int_equal(merge(m, record_in(2, 2, RECORD_LEFT)), MEMBERS_NEWS);
    /* A record that says LEFT has precedence over a live session. */
    assert_int_equal(state_of(m, 2), MEMBER_LEFT);
    /* A session with an unknown id, or with this peer's own id, has no effect. */
    members_session(m, id_of(77), true, 0);
    members_session(m, id_of(0), true, 0);
    assert_false(members_find(m, id_of(0))->connected);
    check_invariants(m);
    members_close(m);
}

static void test_we_accuse(void **state)
{
    (void)state;
    struct members *m = open_knowing(4);
    drain(m);
    struct wire_members out = batch();
    members_accuse(m, id_of(0), 0);
    members_accuse(m, id_of(9), 0);
    assert_false(members_dirty(m, &out, WIRE_BATCH_MAX));
    members_accuse(m, id_of(1), 5);
    members_accuse(m, id_of(1), 6);
    assert_int_equal(state_of(m, 1), MEMBER_SUSPECT);
    assert_int_equal(members_find(m, id_of(1))->n_accusers, 1);
    assert_int_equal(members_tick(m, 5), 5 + TOY_SUSPECT_US);
    assert_true(members_dirty(m, &out, WIRE_BATCH_MAX));
    assert_int_equal(out.n_accusations, 1);
    struct accusation want = accusation(1, 0, 1);
    assert_memory_equal(&out.accusations[0], &want, sizeof want);

    assert_int_equal(accused(m, accusation(2, 3, 1), 0), MEMBERS_NEWS);
    members_accuse(m, id_of(2), SECOND); /* This peer accuses member 2, as the second accuser. */
    assert_int_equal(members_find(m, id_of(2))->n_accusers, 2);
    assert_int_equal(members_tick(m, SECOND), SECOND + TOY_CONFIRMED_US);
    members_tick(m, TOY_SUSPECT_US * 2);
    drain(m);
    members_accuse(m, id_of(1), 0); /* Member 1 is dead already, so it is not accused. */
    merge(m, record_in(3, 2, RECORD_LEFT));
    drain(m);
    members_accuse(m, id_of(3), 0);
    assert_false(members_dirty(m, &out, WIRE_BATCH_MAX));
    members_close(m);
}

static void test_finished(void **state)
{
    (void)state;
    struct members *m = open_knowing(2);
    uint64_t all = members_view(m);
    assert_int_equal(merge(m, record_in(1, 2, RECORD_FINISHED)), MEMBERS_NEWS);
    assert_int_equal(members_view(m), all);
    accused(m, accusation(1, 2, 2), 0);
    members_tick(m, TOY_SUSPECT_US);
    assert_int_equal(state_of(m, 1), MEMBER_DEAD);
    assert_true(is_vertex(m, 1)); /* A dead member that has finished stays a topology vertex. */
    assert_int_equal(members_view(m), all);
    assert_int_equal(merge(m, record_in(1, 3, RECORD_LEFT)), MEMBERS_NEWS);
    assert_false(is_vertex(m, 1));
    assert_true(members_view(m) != all);
    members_close(m);
}

/* A member that has announced its end stays a vertex of the topology even if it is dead, and is not
 * accused of silence. After members_watch_final() such a member must be treated like all others. */
static void test_watch_final(void **state)
{
    (void)state;
    struct members *m = open_knowing(3);
    merge(m, record_in(1, 2, RECORD_FINISHED));
    merge(m, record_in(2, 2, RECORD_FINISHED));
    accused(m, accusation(1, 2, 2), 0);
    members_tick(m, TOY_SUSPECT_US);
    assert_int_equal(state_of(m, 1), MEMBER_DEAD);
    uint64_t all = members_view(m);
    assert_true(is_vertex(m, 1));
    assert_false(members_watches(m, members_find(m, id_of(2))));
    members_watch_final(m, true, TOY_SUSPECT_US);
    assert_false(is_vertex(m, 1));
    assert_true(is_vertex(m, 2));
    assert_true(members_view(m) != all);
    assert_true(members_watches(m, members_find(m, id_of(2))));
    /* The dead member is no longer counted among the finished members. */
    assert_int_equal(members_tally(m)->n_final, 1);
    members_close(m);
}

/* A finished member that is refused is removed after a time, and no longer counted among the
 * finished members. */
static void test_tally_forgets(void **state)
{
    (void)state;
    struct members *m = open_knowing(2);
    merge(m, record_in(1, 2, RECORD_FINISHED));
    assert_int_equal(members_tally(m)->n_final, 1);
    members_refuse(m, id_of(1), true, 0);
    assert_int_equal(members_tally(m)->n_final, 1);
    members_tick(m, TOY_FORGET_US);
    assert_null(members_find(m, id_of(1)));
    assert_int_equal(members_tally(m)->n_final, 0);
    check_invariants(m);
    members_close(m);
}

static void test_own_record(void **state)
{
    (void)state;
    struct members *m = open_in(NULL, 0, 1);
    drain(m);
    assert_true(members_add_address(m, "[::1]:7100"));
    assert_int_equal(members_self(m)->incarnation, 2);
    /* Refused: this peer's list has this address already. */
    assert_false(members_add_address(m, "[::1]:7100"));
    assert_false(members_add_address(m, "[::1]:0"));
    assert_false(members_add_address(m, ""));
    assert_true(members_add_address(m, "b:1"));
    assert_true(members_add_address(m, "c:1"));
    assert_false(members_add_address(m, "d:1")); /* This peer's list of addresses is full. */
    assert_int_equal(members_self(m)->incarnation, 4);
    members_set_state(m, RECORD_RUNNING);
    assert_int_equal(members_self(m)->incarnation, 4);
    members_set_state(m, RECORD_FINISHED);
    assert_int_equal(members_self(m)->incarnation, 5);
    members_set_state(m, RECORD_LEFT);
    assert_true(is_vertex(m, 0)); /* A peer is always a vertex of the topology in its own table. */
    struct record r = *members_self(m);
    struct members *other = open_in(NULL, 1, 1);
    assert_int_equal(merge(other, r), MEMBERS_NEWS);
    assert_int_equal(state_of(other, 0), MEMBER_LEFT);
    members_close(other);
    members_close(m);
}

static void test_dirty_batches(void **state)
{
    (void)state;
    struct members *m = open_knowing(300);
    for (uint32_t i = 1; i <= 300; i++) {
        assert_int_equal(accused(m, accusation(i, i % 300 + 1, 1), 0), MEMBERS_NEWS);
        assert_int_equal(accused(m, accusation(i, (i + 6) % 300 + 1, 1), 0), MEMBERS_NEWS);
    }
    struct wire_members out = batch();
    uint32_t n_records = 0, n_accusations = 0;
    while (members_dirty(m, &out, 10)) {
        assert_true(out.n_records <= 10 && out.n_accusations <= 10);
        n_records += out.n_records;
        n_accusations += out.n_accusations;
    }
    assert_int_equal(n_records, 301);
    assert_int_equal(n_accusations, 600);
    assert_false(members_find(m, id_of(7))->dirty);
    merge(m, record(7, 2));
    assert_true(members_find(m, id_of(7))->dirty);
    assert_true(members_dirty(m, &out, 2));
    assert_int_equal(out.n_records, 1);
    assert_int_equal(out.n_accusations, 0);

    size_t cursor = 0;
    n_records = n_accusations = 0;
    while (members_batch(m, &cursor, &out, WIRE_BATCH_MAX)) {
        n_records += out.n_records;
        n_accusations += out.n_accusations;
    }
    assert_int_equal(n_records, 301);
    assert_int_equal(n_accusations, 598);
    members_close(m);
}

static void test_full(void **state)
{
    (void)state;
    struct members *m = open_knowing(WIRE_MEMBERS_MAX - 1);
    assert_int_equal(members_count(m), WIRE_MEMBERS_MAX);
    assert_int_equal(merge(m, record(1500, 1)), MEMBERS_FULL);
    assert_int_equal(merge(m, record_in(1500, 1, RECORD_LEFT)), MEMBERS_FULL);
    /* Records of members in a full table are still updated. */
    assert_int_equal(merge(m, record(1, 2)), MEMBERS_NEWS);
    check_invariants(m);
    assert_int_equal(merge(m, record_in(700, 2, RECORD_LEFT)), MEMBERS_NEWS);
    assert_int_equal(merge(m, record_in(1500, 1, RECORD_LEFT)), MEMBERS_FULL);
    assert_int_equal(merge(m, record(1500, 1)), MEMBERS_NEWS);
    assert_null(members_find(m, id_of(700)));
    assert_int_equal(state_of(m, 1500), MEMBER_ALIVE);
    assert_true(is_vertex(m, 1500));
    assert_int_equal(merge(m, record(1501, 1)), MEMBERS_FULL);
    assert_int_equal(members_count(m), WIRE_MEMBERS_MAX);
    check_invariants(m);
    drain(m);
    for (uint32_t i = 0; i < WIRE_MEMBERS_MAX; i++)
        if (i != 700)
            assert_non_null(members_find(m, id_of(i)));
    members_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_merge_verdicts),
        cmocka_unit_test(test_view_goes_by_ids),
        cmocka_unit_test(test_ties),
        cmocka_unit_test(test_about_me),
        cmocka_unit_test(test_earlier_process_was_initial),
        cmocka_unit_test(test_initial_record_is_kept),
        cmocka_unit_test(test_refute),
        cmocka_unit_test(test_suspect_then_dead),
        cmocka_unit_test(test_bad_accusations),
        cmocka_unit_test(test_accusation_waits),
        cmocka_unit_test(test_session_overrides),
        cmocka_unit_test(test_we_accuse),
        cmocka_unit_test(test_finished),
        cmocka_unit_test(test_watch_final),
        cmocka_unit_test(test_tally_forgets),
        cmocka_unit_test(test_own_record),
        cmocka_unit_test(test_dirty_batches),
        cmocka_unit_test(test_listeners),
        cmocka_unit_test(test_tell),
        cmocka_unit_test(test_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
