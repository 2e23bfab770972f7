/* tests/unit/node_finish_hostile.c -- the finish protocol (peer/node/finish) with messages and stored
 * promises that no correct peer makes. The peer refuses them, and no assertion of its own fails. */
#include "peer/node/finish/proposal.h"
#include "peer/node/timers.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { OTHERS = 2 /* Number of other peers. Each has a session with the peer under test. */ };

static const uint32_t last = FINISH_ATTEMPTS - 1;

/* ---- the owner of the protocol: a member of three voters with two sessions ---- */

static size_t owner_links(void *self, uint32_t *out, size_t cap)
{
    (void)self;
    assert_true(cap >= OTHERS);
    for (uint32_t i = 0; i < OTHERS; i++)
        out[i] = i + 1;
    return OTHERS;
}

static void owner_send(void *self, uint32_t link, const struct wire_finish *m)
{
    uint32_t *n_sent = self;
    (void)link;
    (void)m;
    ++*n_sent;
}

static void owner_members(void *self, struct finish_proposal *out)
{
    (void)self;
    out->n = OTHERS + 1;
    for (uint32_t i = 0; i <= OTHERS; i++)
        out->member[i] = (struct finish_member){.key = i + 1, .status = FINISH_OUTSIDE};
}

static void owner_voters(void *self, struct finish_voters *out)
{
    (void)self;
    out->initial = true;
    out->n = out->n_all = OTHERS + 1;
    for (uint32_t i = 0; i <= OTHERS; i++)
        out->key[i] = i + 1;
    out->first = 1;
}

static bool owner_quorum(void *self, uint32_t n, uint32_t n_voters, bool has_first)
{
    (void)self;
    (void)has_first;
    return 2 * n > n_voters;
}

static bool owner_keep(void *self, const uint8_t *bytes, size_t n)
{
    (void)self;
    (void)bytes;
    return n <= FINISH_PROMISE_MAX;
}

static uint32_t n_sent; /* Number of messages that the peer under test has sent. */

static struct finish *open_peer(struct bytes promise)
{
    struct finish_owner owner = {.self = &n_sent,
                                 .id = {[7] = 1},
                                 .links = owner_links,
                                 .send = owner_send,
                                 .members = owner_members,
                                 .voters = owner_voters,
                                 .quorum = owner_quorum,
                                 .keep = owner_keep};
    n_sent = 0;
    struct finish *f = finish_open(&owner, promise);
    assert_non_null(f);
    return f;
}

static struct wire_ballot ballot(uint32_t attempt, uint64_t count)
{
    return (struct wire_ballot){.number = ((uint64_t)attempt << 32) + count, .id = {[7] = 2}};
}

/* Encodes a proposal to abort an attempt, made in the ballot `origin`. */
static struct bytes abort_in(struct wire_ballot origin, uint8_t bytes[WIRE_FINISH_PROPOSAL_MAX])
{
    struct finish_proposal p = {.distance = 0.5, .mean_norm = 1, .origin = origin};
    return (struct bytes){bytes, finish_encode(bytes, &p)};
}

/* ---- tests ---- */

/* A message that would abort the last attempt, or that names an attempt that does not exist, is
 * refused and changes nothing. */
static void test_no_message_aborts_the_last_attempt(void **state)
{
    (void)state;
    uint8_t bytes[WIRE_FINISH_PROPOSAL_MAX];
    struct finish *f = open_peer((struct bytes){0});
    struct wire_finish m = {.word = WIRE_FINISH_DECIDED, .ballot = ballot(UINT32_MAX, 1)};
    assert_false(finish_receive(f, 1, &m));
    m.ballot = ballot(last, 1);
    assert_false(finish_receive(f, 1, &m));
    m = (struct wire_finish){.word = WIRE_FINISH_PROPOSE,
                             .ballot = ballot(last, 1),
                             .proposal = abort_in(ballot(last, 1), bytes)};
    assert_false(finish_receive(f, 1, &m));
    assert_int_equal(finish_attempt(f), 0);
    m.word = WIRE_FINISH_ASK;
    m.proposal.n = 0;
    assert_true(finish_receive(f, 1, &m));
    assert_int_equal(finish_attempt(f), last);
    finish_close(f);
}

/* This peer coordinates a ballot of the last attempt to finish the run. The first false answer
 * claims that an abort was accepted in this attempt. The second claims that a proposal of another
 * attempt was accepted. The peer must refuse both. */
static void test_reports_of_impossible_proposals(void **state)
{
    (void)state;
    uint8_t bytes[WIRE_FINISH_PROPOSAL_MAX];
    struct finish *f = open_peer((struct bytes){0});
    struct wire_finish m = {.word = WIRE_FINISH_ASK, .ballot = ballot(last, 1)};
    assert_true(finish_receive(f, 1, &m));
    struct finish_evidence own = {.n = 1, .norm2 = 1, .hash = 1};
    finish_freeze(f, &own, 1);
    struct finish_view v = {.now_us = INT64_C(1000) * 1000 * 1000, .target = 1};
    finish_update(f, &v);
    assert_int_equal(finish_ballots(f), 1);
    m = (struct wire_finish){.word = WIRE_FINISH_REPORT,
                             .ballot = {.number = ballot(last, 2).number, .id = {[7] = 1}},
                             .accepted = ballot(last, 1),
                             .proposal = abort_in(ballot(last, 1), bytes)};
    assert_false(finish_receive(f, 1, &m));
    m.accepted = ballot(last - 1, 1);
    assert_false(finish_receive(f, 1, &m));
    m.accepted = ballot(UINT32_MAX, 1);
    assert_false(finish_receive(f, 1, &m));
    assert_int_equal(finish_attempt(f), last);
    finish_close(f);
}

/* Sets the float at index i of a sketch in a message. */
static void put_float(uint8_t *bytes, size_t i, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (size_t k = 0; k < 4; k++)
        bytes[4 * i + k] = (uint8_t)(bits >> (8 * k));
}

/* A REPORT with numbers that no models have is refused. If this peer added them to its own answer,
 * its neighbours would have to refuse that answer. */
static void test_reports_with_impossible_sums(void **state)
{
    static const struct
    {
        float component, norm2, dist2;
        uint32_t n_mixing;
        bool valid;
    } row[] = {{1, 1, 0, 0, true},        {1e15f, 1e32f, FLT_MAX, 1, true},
               {NAN, 1, 0, 0, false},     {-INFINITY, 1, 0, 0, false},
               {1.1e15f, 1, 0, 0, false}, {1, 1.1e32f, 0, 0, false},
               {1, 1, 0, 2, false}};
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        uint8_t mean[4 * SKETCH_K], member[WIRE_FINISH_ENTRY];
        for (size_t k = 0; k < SKETCH_K; k++)
            put_float(mean, k, k == SKETCH_K / 2 ? row[i].component : 0);
        finish_put_entry(member, 2, 0);
        struct finish *f = open_peer((struct bytes){0});
        struct finish_evidence own = {.n = 1, .norm2 = 1, .hash = 1};
        finish_freeze(f, &own, 1);
        struct finish_view v = {.now_us = INT64_C(1000) * 1000 * 1000, .target = 1};
        finish_update(f, &v);
        assert_int_equal(finish_ballots(f), 1);
        struct wire_finish m = {.word = WIRE_FINISH_REPORT,
                                .ballot = {.number = 1, .id = {[7] = 1}},
                                .n_models = 1,
                                .n_mixing = row[i].n_mixing,
                                .norm2 = row[i].norm2,
                                .dist2 = row[i].dist2,
                                .model_hash = 1,
                                .mean = {mean, sizeof mean},
                                .members = {member, sizeof member}};
        if (finish_receive(f, 1, &m) != row[i].valid)
            fail_msg("row %zu", i);
        finish_close(f);
    }
}

/* The sum of valid evidence is valid, even for the largest valid values. */
static void test_sums_of_valid_evidence_are_valid(void **state)
{
    (void)state;
    struct finish_evidence sum = {.n = 0};
    for (uint32_t i = 0; i < WIRE_MEMBERS_MAX; i++) {
        struct finish_evidence e = {
            .n = 1, .norm2 = 1e32, .dist2 = i == 9 ? (double)FLT_MAX : 0, .hash = 1 + i % 2};
        for (size_t k = 0; k < SKETCH_K; k++)
            e.mean[k] = i % 3 == 0 ? -1e15f : 1e15f;
        assert_true(finish_evidence_is_valid(&e));
        finish_evidence_add(&sum, &e);
        assert_true(finish_evidence_is_valid(&sum));
    }
    double norm;
    assert_int_equal(sum.n, WIRE_MEMBERS_MAX);
    assert_true(isinf(finish_evidence_distance(&sum, &norm)));
    sum.mean[3] = NAN;
    assert_false(finish_evidence_is_valid(&sum));
}

/* A member uses the highest number of a ballot. This peer then begins no ballot, because the other
 * peers would refuse its number. */
static void test_numbers_of_ballots_are_exhausted(void **state)
{
    (void)state;
    struct finish *f = open_peer((struct bytes){0});
    struct wire_finish m = {.word = WIRE_FINISH_ASK, .ballot = ballot(0, UINT64_C(1) << 31)};
    assert_true(finish_receive(f, 1, &m));
    m.ballot.number++;
    assert_false(finish_receive(f, 1, &m));
    struct finish_evidence own = {.n = 1, .norm2 = 1, .hash = 1};
    finish_freeze(f, &own, 1);
    struct finish_view v = {.now_us = INT64_C(1000) * 1000 * 1000, .target = 1};
    assert_true(finish_update(f, &v) == INT64_MAX);
    assert_int_equal(finish_ballots(f), 0);
    finish_close(f);
}

/* A stored promise with an accepted proposal that no peer accepts counts as damaged, so the peer does
 * not vote, and no part of the promise is used. */
static void test_impossible_promises(void **state)
{
    static const struct
    {
        uint32_t promised, accepted; /* Attempts of the two ballots. */
        bool votes;
    } row[] = {{0, 0, true},
               {1, 0, true},
               {0, 1, false}, /* The accepted ballot is higher than the promised one. */
               {FINISH_ATTEMPTS - 1, FINISH_ATTEMPTS - 1, false},
               {FINISH_ATTEMPTS - 1, UINT32_MAX, false}};
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        uint8_t promise[FINISH_PROMISE_MAX], proposal[WIRE_FINISH_PROPOSAL_MAX];
        struct wire_ballot promised = ballot(row[i].promised, 1), none = {0};
        struct wire_ballot accepted = ballot(row[i].accepted, 1);
        struct bytes p = abort_in(accepted, proposal);
        uint8_t *end = finish_put_ballot(finish_put_ballot(promise, &promised), &accepted);
        end = finish_put_ballot(finish_put_number(end, 5, 8), &none);
        *end++ = 0;
        memcpy(end, p.p, p.n);
        struct bytes stored = {promise, (size_t)(end - promise) + p.n};
        struct finish *f = open_peer(stored);
        if (finish_is_mute(f) == row[i].votes
            || finish_reported_hash(stored) != (row[i].votes ? 5 : 0))
            fail_msg("row %zu", i);
        finish_close(f);
        end[-1] = 1; /* A certificate has members. */
        assert_false(finish_promise_is_decided(stored));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_message_aborts_the_last_attempt),
        cmocka_unit_test(test_reports_of_impossible_proposals),
        cmocka_unit_test(test_reports_with_impossible_sums),
        cmocka_unit_test(test_sums_of_valid_evidence_are_valid),
        cmocka_unit_test(test_numbers_of_ballots_are_exhausted),
        cmocka_unit_test(test_impossible_promises),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
