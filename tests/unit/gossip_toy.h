/* tests/unit/gossip_toy.h -- makes members for tests. A number determines all data of a member, and
 * signatures are toy ones without cryptography. */
#ifndef TESTS_GOSSIP_TOY_H
#define TESTS_GOSSIP_TOY_H

#include "gossip/members/endorsements.h"
#include "nn/math/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SECOND = 1000 * 1000, TOY_SUSPECT_US = 7 * SECOND, TOY_CONFIRMED_US = 2 * SECOND };

#define TOY_FORGET_US ((int64_t)86400 * SECOND)

/* ---- A toy signature: a hash of signer and message. Anyone can make one. Tests forge signatures
 * by changing bytes. ---- */

static uint64_t n_verified;

static inline void toy_signature(const uint8_t *id, const uint8_t *msg, size_t n, uint8_t *out)
{
    uint64_t key = rng_hash(id, WIRE_ID_BYTES) ^ rng_hash(msg, n);
    for (uint32_t i = 0; i < WIRE_SIGNATURE_BYTES; i++)
        out[i] = (uint8_t)rng_at(key, i);
}

static inline bool toy_verify(void *self, const uint8_t id[WIRE_ID_BYTES], const uint8_t *msg,
                              size_t n, const uint8_t signature[WIRE_SIGNATURE_BYTES])
{
    (void)self;
    uint8_t want[WIRE_SIGNATURE_BYTES];
    toy_signature(id, msg, n, want);
    n_verified++;
    return memcmp(want, signature, sizeof want) == 0;
}

static inline void toy_sign(void *self, const uint8_t *msg, size_t n,
                            uint8_t signature[WIRE_SIGNATURE_BYTES])
{
    toy_signature(self, msg, n, signature);
}

/* ---- Members by number: their ids and names follow from it. ---- */

static inline const uint8_t *id_of(uint32_t number)
{
    static uint8_t id[4096][WIRE_ID_BYTES];
    for (uint32_t i = 0; i < WIRE_ID_BYTES; i++)
        id[number][i] = (uint8_t)rng_at(number, i);
    return id[number];
}

static inline struct record unsigned_record(uint32_t number, uint64_t incarnation)
{
    struct record r;
    memset(&r, 0, sizeof r);
    memcpy(r.id, id_of(number), sizeof r.id);
    snprintf(r.name, sizeof r.name, "peer-%u", (unsigned)number);
    snprintf(r.address[0], sizeof r.address[0], "10.0.0.%u:7100", (unsigned)number % 256);
    r.n_addresses = 1;
    r.incarnation = incarnation;
    r.boot = 1;
    return r;
}

static inline struct record signed_record(struct record r)
{
    uint8_t msg[2048];
    toy_signature(r.id, msg, wire_record_signed(msg, sizeof msg, &r), r.signature);
    return r;
}

static inline struct record record(uint32_t number, uint64_t incarnation)
{
    return signed_record(unsigned_record(number, incarnation));
}

static inline struct record record_in(uint32_t number, uint64_t incarnation,
                                      enum record_state state)
{
    struct record r = unsigned_record(number, incarnation);
    r.state = state;
    return signed_record(r);
}

static inline struct accusation accusation(uint32_t accused, uint32_t accuser, uint64_t incarnation)
{
    struct accusation a;
    memset(&a, 0, sizeof a);
    memcpy(a.accused, id_of(accused), sizeof a.accused);
    memcpy(a.accuser, id_of(accuser), sizeof a.accuser);
    a.incarnation = incarnation;
    uint8_t msg[2048];
    toy_signature(a.accuser, msg, wire_accusation_signed(msg, sizeof msg, &a), a.signature);
    return a;
}

static inline struct members *open_in(struct records *set, uint32_t number, uint64_t incarnation)
{
    struct members *m = NULL;
    struct record self = unsigned_record(number, incarnation);
    struct members_config config = {TOY_SUSPECT_US, TOY_CONFIRMED_US, set, TOY_FORGET_US};
    static uint8_t key[2048][WIRE_ID_BYTES];
    memcpy(key[number], id_of(number), WIRE_ID_BYTES);
    struct members_crypto crypto = {key[number], toy_verify, toy_sign};
    assert_int_equal(members_open(&m, &self, &config, &crypto), 0);
    return m;
}

/* Opens a member table of peer-0 that knows peers 0 to n, all with incarnation 1. */
static inline struct members *open_knowing(uint32_t n)
{
    struct members *m = open_in(NULL, 0, 1);
    for (uint32_t i = 1; i <= n; i++) {
        struct record r = record(i, 1);
        assert_int_equal(members_merge(m, &r, 0), MEMBERS_NEWS);
        members_know(m, r.id, 0);
    }
    return m;
}

/* Merges the record of a member, and marks the member as known from the start, so that it needs no
 * endorsements. */
static inline enum members_verdict merge(struct members *m, struct record r)
{
    enum members_verdict verdict = members_merge(m, &r, 0);
    members_know(m, r.id, 0);
    return verdict;
}

static inline struct vouch vouch(uint32_t voucher, uint32_t member)
{
    struct vouch v;
    uint8_t msg[2048];
    memcpy(v.voucher, id_of(voucher), sizeof v.voucher);
    memcpy(v.member, id_of(member), sizeof v.member);
    toy_signature(v.voucher, msg, wire_vouch_signed(msg, sizeof msg, &v), v.signature);
    return v;
}

static inline enum members_verdict accused(struct members *m, struct accusation a, int64_t now_us)
{
    return members_accused(m, &a, now_us);
}

static inline enum member_state state_of(const struct members *m, uint32_t number)
{
    const struct member *e = members_find(m, id_of(number));
    assert_non_null(e);
    return e->state;
}

static inline bool is_vertex(const struct members *m, uint32_t number)
{
    uint32_t at[WIRE_MEMBERS_MAX];
    size_t self_at, n = members_vertices(m, at, &self_at);
    assert_ptr_equal(members_at(m, at[self_at])->record, members_self(m));
    bool found = false;
    for (size_t i = 0; i < n; i++)
        found |= memcmp(members_at(m, at[i])->record->id, id_of(number), WIRE_ID_BYTES) == 0;
    return found;
}

static struct record batch_records[WIRE_BATCH_MAX];
static struct accusation batch_accusations[WIRE_BATCH_MAX];
static struct vouch batch_vouches[WIRE_VOUCHES_MAX];

static inline struct wire_members batch(void)
{
    return (struct wire_members){
        .records = batch_records, .accusations = batch_accusations, .vouches = batch_vouches};
}

static inline void drain(struct members *m)
{
    struct wire_members out = batch();
    while (members_dirty(m, &out, WIRE_BATCH_MAX))
        assert_true(out.n_records + out.n_accusations + out.n_vouches > 0);
}

/* Checks that the counts kept by the table equal a fresh count of its members. */
static inline void check_tally(const struct members *m, const uint32_t *at, size_t n,
                               size_t self_at)
{
    struct members_tally t = {.n_vertices = (uint32_t)n};
    const struct members_tally *kept = members_tally(m);
    for (size_t i = 0; i < n; i++)
        t.says[members_at(m, at[i])->record->state] += i != self_at;
    for (size_t i = 0; i < members_count(m); i++) {
        const struct member *e = members_at(m, i);
        enum record_state says = e->record->state;
        bool final = says == RECORD_FINISHED || says == RECORD_FAILED;
        bool gone = e->state == MEMBER_DEAD || e->state == MEMBER_LEFT;
        if (!e->counts || i == at[self_at])
            continue;
        t.n_final += final;
        t.n_there += !final && !gone;
        t.n_hung += says == RECORD_STALLED && !gone;
        t.n_resumed += e->state == MEMBER_ALIVE && e->record->beat[0] != 0;
        t.n_working +=
            e->state == MEMBER_ALIVE && (says == RECORD_RUNNING || says == RECORD_TRAINED);
    }
    assert_int_equal(t.n_vertices, kept->n_vertices);
    for (uint32_t says = 0; says <= RECORD_LEFT; says++)
        assert_int_equal(t.says[says], kept->says[says]);
    assert_int_equal(t.n_final, kept->n_final);
    assert_int_equal(t.n_working, kept->n_working);
    assert_int_equal(t.n_there, kept->n_there);
    assert_int_equal(t.n_hung, kept->n_hung);
    assert_int_equal(t.n_resumed, kept->n_resumed);
}

static inline void check_invariants(const struct members *m)
{
    bool namesakes = false;
    for (size_t i = 0; i < members_count(m); i++) {
        const struct member *e = members_at(m, i);
        assert_ptr_equal(members_find(m, e->record->id), e);
        assert_true(e->n_accusers <= MEMBERS_ACCUSERS);
        if (i > 0)
            assert_true(record_compare(members_at(m, i - 1)->record, e->record) < 0);
        if (i > 0)
            namesakes |= strcmp(members_at(m, i - 1)->record->name, e->record->name) == 0;
        if (e->connected)
            assert_true(e->state == MEMBER_ALIVE || e->state == MEMBER_LEFT);
        assert_int_equal(e->state == MEMBER_LEFT, e->record->state == RECORD_LEFT);
    }
    assert_int_equal(namesakes, members_namesakes(m));
    uint32_t at[WIRE_MEMBERS_MAX];
    size_t self_at = SIZE_MAX, n = members_vertices(m, at, &self_at);
    assert_true(self_at < n);
    for (size_t i = 1; i < n; i++)
        assert_true(at[i - 1] < at[i]);
    check_tally(m, at, n, self_at);
}

#endif
