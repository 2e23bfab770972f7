/* tests/unit/gossip_samples.h -- makes a small and a large sample message of every type, for tests
 * of the message reader and writer. */
#ifndef TESTS_GOSSIP_SAMPLES_H
#define TESTS_GOSSIP_SAMPLES_H

#include "gossip/wire/wire.h"
#include "nn/math/rng.h"
#include "tests/fuzz/wire_recode.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <msgpack.h>

enum { CAP = 256 * 1024 };

static uint8_t buffer[CAP], other[CAP];
static struct record records[WIRE_BATCH_MAX + 1];
static struct accusation accusations[WIRE_BATCH_MAX];
static struct vouch vouches[WIRE_VOUCHES_MAX];
static struct wire_status status;
static const uint8_t raw[70000] = {1, 2, 3};

/* ---- Samples: of each type a small message, and one with every field as
 * large as it goes. ---- */

static inline void fill(uint8_t *p, size_t n, uint64_t key)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)rng_at(key, i);
}

static inline struct record small_record(uint64_t key)
{
    struct record r;
    memset(&r, 0, sizeof r);
    fill(r.id, sizeof r.id, key);
    fill(r.signature, sizeof r.signature, key + 1);
    strcpy(r.name, "peer-1");
    strcpy(r.address[0], "10.0.0.1:7100");
    r.n_addresses = 1;
    r.incarnation = 1700000000000 + key;
    r.boot = rng_at(key, 99);
    return r;
}

static inline struct record large_record(uint64_t key)
{
    struct record r = small_record(key);
    memset(r.name, 'n', WIRE_NAME_MAX);
    r.n_addresses = WIRE_ADDRESSES_MAX;
    for (uint32_t i = 0; i < r.n_addresses; i++) {
        memset(r.address[i], 'a', WIRE_ADDRESS_MAX);
        memcpy(r.address[i] + WIRE_ADDRESS_MAX - 6, ":65535", 6);
    }
    r.incarnation = r.boot = r.over = r.age_ms = UINT64_MAX;
    r.initial = r.invited = true;
    fill((uint8_t *)&r.certificate, sizeof r.certificate, key + 2);
    r.certificate.expires_ms = UINT64_MAX;
    r.state = RECORD_LEFT;
    return r;
}

static inline struct accusation sample_accusation(uint64_t key, uint64_t incarnation)
{
    struct accusation a;
    memset(&a, 0, sizeof a);
    fill(a.accused, sizeof a.accused, key);
    fill(a.accuser, sizeof a.accuser, key + 1);
    fill(a.signature, sizeof a.signature, key + 2);
    a.incarnation = incarnation;
    return a;
}

static inline struct vouch sample_vouch(uint64_t key)
{
    struct vouch v;
    fill(v.member, sizeof v.member, key);
    fill(v.voucher, sizeof v.voucher, key + 1);
    fill(v.signature, sizeof v.signature, key + 2);
    return v;
}

static char run_text[WIRE_RUN_MAX];

static inline struct wire_hello sample_hello(bool large)
{
    memset(run_text, 'x', sizeof run_text);
    memcpy(run_text, "model=lenet5\n", 13);
    struct wire_hello m;
    memset(&m, 0, sizeof m);
    m = (struct wire_hello){.version = WIRE_VERSION,
                            .has_run = true,
                            .round = 7,
                            .run = {(const uint8_t *)run_text, 13},
                            .record = small_record(5)};
    if (large) {
        m.version = UINT32_MAX;
        m.has_started = true;
        m.run.n = WIRE_RUN_MAX;
        m.round = UINT64_MAX;
        m.record = large_record(6);
    }
    return m;
}

static inline struct wire_members sample_members(bool large)
{
    uint32_t n = large ? WIRE_BATCH_MAX : 1, n_vouches = large ? WIRE_VOUCHES_MAX : 1;
    for (uint32_t i = 0; i < n_vouches; i++)
        vouches[i] = sample_vouch(i);
    for (uint32_t i = 0; i < n; i++) {
        records[i] = large ? large_record(i) : small_record(i);
        accusations[i] = sample_accusation(i, large ? UINT64_MAX : i);
    }
    return (struct wire_members){n, n, n_vouches, records, accusations, vouches, 0};
}

static inline struct wire_delta sample_delta(bool large)
{
    if (large)
        return (struct wire_delta){UINT64_MAX,
                                   UINT64_MAX,
                                   UINT64_MAX,
                                   WIRE_MEMBERS_MAX,
                                   WIRE_MEMBERS_MAX - 1,
                                   WIRE_CODE_MAX,
                                   3.4e38f,
                                   0x1p-149f,
                                   WIRE_MOMENTUM_ONE - 1,
                                   UINT64_MAX,
                                   UINT64_MAX,
                                   UINT32_MAX,
                                   UINT64_MAX,
                                   UINT64_MAX,
                                   UINT64_MAX,
                                   -3.4e38f,
                                   -0.0f,
                                   {raw, WIRE_SKETCH_MAX},
                                   {raw, sizeof raw}};
    return (struct wire_delta){.epoch = 0x123456789abcdef0,
                               .round = 1000,
                               .run_round = 4000,
                               .degree = 4,
                               .x2 = 1.5f,
                               .e2 = 0.25f,
                               .momentum = 49152,
                               .settled = 3,
                               .clean = 0x9abcdef012345679,
                               .pace = 100,
                               .payload = {raw, 37}};
}

static inline struct wire_status *sample_status(bool large)
{
    memset(&status, 0, sizeof status);
    status.phase = 1;
    status.loss = status.accuracy = status.drift = status.relative_drift = status.age_s = NAN;
    status.n_edges = 1;
    if (large) {
        status.round = status.n_rounds = status.bytes_sent = UINT64_MAX;
        status.bytes_received = status.n_strangers = status.n_violations = UINT64_MAX;
        status.phase = WIRE_CODE_MAX;
        status.loss = INFINITY;
        status.accuracy = 1;
        status.drift = 1e300;
        status.relative_drift = 0;
        status.drift_round = UINT64_MAX;
        status.n_live = UINT32_MAX;
        status.rounds_done = status.rounds_skipped = status.joined_round = UINT64_MAX;
        status.age_s = 1e300;
        status.holds = true;
        status.clock_ms = UINT64_MAX;
        memset(status.codec, 'q', WIRE_CODEC_MAX);
        status.n_edges = WIRE_EDGES_MAX;
        status.n_figures = WIRE_FIGURES_MAX;
    }
    for (uint32_t i = 0; i < status.n_figures; i++) {
        struct wire_status_figure *f = &status.figures[i];
        memset(f->name, 'a' + (int)(i % 26), WIRE_FIGURE_NAME);
        f->is_real = i % 2 == 1;
        if (f->is_real)
            f->real = -1e300;
        else
            f->whole = UINT64_MAX;
    }
    for (uint32_t i = 0; i < status.n_edges; i++) {
        struct wire_status_edge *e = &status.edges[i];
        fill(e->id, sizeof e->id, i);
        e->state = large ? WIRE_CODE_MAX : 2;
        e->round = e->resets = large ? UINT64_MAX : 3;
        e->gamma = large ? NAN : 0.0375f;
    }
    return &status;
}

static inline struct wire_ballot sample_ballot(uint64_t number)
{
    struct wire_ballot b = {.number = number};
    fill(b.id, sizeof b.id, number);
    return b;
}

static inline struct wire_finish sample_finish(bool large)
{
    return (struct wire_finish){.word = large ? WIRE_FINISH_DECIDED : WIRE_FINISH_ASK,
                                .ballot = sample_ballot(large ? UINT64_MAX : 1),
                                .promised = sample_ballot(large ? UINT64_MAX - 1 : 0),
                                .accepted = sample_ballot(large ? UINT64_MAX - 2 : 0),
                                .partial = large,
                                .n_voters = large ? UINT32_MAX : 0,
                                .voters = {raw, large ? (size_t)WIRE_FINISH_KEY * 9 : 0},
                                .n_mixing = large ? WIRE_MEMBERS_MAX : 0,
                                .n_models = large ? WIRE_MEMBERS_MAX : 1,
                                .dist2 = large ? FLT_MAX : 0,
                                .norm2 = large ? 1 : 0,
                                .model_hash = large ? UINT64_MAX : 0,
                                .mean = {raw, large ? 1024 : 0},
                                .members = {raw, large ? (size_t)WIRE_FINISH_ENTRY * 9 : 0},
                                .proposal = {raw, large ? 80 : 0}};
}

/* Writes the sample message to `buffer`. Returns its length. */
static inline size_t sample(enum wire_type type, bool large)
{
    uint64_t v = large ? UINT64_MAX : 9;
    switch (type) {
    case WIRE_HELLO: {
        struct wire_hello m = sample_hello(large);
        return wire_put_hello(buffer, CAP, &m);
    }
    case WIRE_MEMBERS: {
        struct wire_members m = sample_members(large);
        return wire_put_members(buffer, CAP, &m);
    }
    case WIRE_PING:
        return wire_put_ping(buffer, CAP, &(struct wire_ping){v, (uint32_t)v, large});
    case WIRE_BEAT:
        return wire_put_beat(buffer, CAP, &(struct wire_beat){v, v, (uint32_t)v});
    case WIRE_PROBE: {
        struct wire_probe m;
        fill(m.id, sizeof m.id, v);
        return wire_put_probe(buffer, CAP, &m);
    }
    case WIRE_HEARD: {
        struct wire_heard m = {.age_ms = (uint32_t)v};
        fill(m.id, sizeof m.id, v);
        return wire_put_heard(buffer, CAP, &m);
    }
    case WIRE_REFUSED: {
        struct wire_refused m = {.why = large ? REFUSED_NAME : REFUSED_UNLISTED};
        memset(m.name, 'n', large ? WIRE_NAME_MAX : 1);
        fill(m.other, sizeof m.other, v);
        return wire_put_refused(buffer, CAP, &m);
    }
    case WIRE_CALLBACK: {
        struct wire_callback m = {.why = large ? WIRE_CODE_MAX : 0};
        snprintf(m.address, sizeof m.address, "%s:7100", large ? "[fe80::1234:5678]" : "h");
        return wire_put_callback(buffer, CAP, &m);
    }
    case WIRE_FINISH: {
        struct wire_finish m = sample_finish(large);
        return wire_put_finish(buffer, CAP, &m);
    }
    case WIRE_EDGE:
        return wire_put_edge(
            buffer, CAP, &(struct wire_edge){v, v - 1, v - 2, v - 3, v - 4, v - 5, large, !large});
    case WIRE_EDGE_CLOSE:
        return wire_put_edge_close(buffer, CAP);
    case WIRE_DELTA: {
        struct wire_delta m = sample_delta(large);
        return recode_with_payload(buffer, CAP, wire_put_delta(buffer, CAP, &m), m.payload);
    }
    case WIRE_MODEL_REQ:
        return wire_put_model_req(
            buffer, CAP, &(struct wire_model_req){v, large ? WIRE_PIECE_WHOLE : 9, large ? v : 0});
    case WIRE_MODEL: {
        struct wire_model m = {
            v, large ? WIRE_PIECE_WHOLE : 9, large ? v : 0, large, {raw, large ? sizeof raw : 40}};
        return recode_with_payload(buffer, CAP, wire_put_model(buffer, CAP, &m), m.payload);
    }
    case WIRE_PART: {
        struct wire_part m = {v, v - 1, v - 2, {raw, large ? sizeof raw : 40}};
        return recode_with_payload(buffer, CAP, wire_put_part(buffer, CAP, &m), m.payload);
    }
    case WIRE_ROUND_PROTOCOL: {
        enum wire_round_protocol_word word =
            large ? WIRE_ROUND_PROTOCOL_STEP : WIRE_ROUND_PROTOCOL_RESULT;
        struct wire_round_protocol m = {word,
                                        v,
                                        (uint32_t)v,
                                        v - 1,
                                        large ? UINT32_MAX : 0,
                                        {raw, large ? sizeof raw / 4 * 4 : 40}};
        return recode_with_payload(buffer, CAP, wire_put_round_protocol(buffer, CAP, &m),
                                   m.payload);
    }
    case WIRE_MOMENTS: {
        struct wire_moments m = {.record = sample_hello(large).record,
                                 .founds = large,
                                 .payload = {raw, large ? WIRE_MOMENTS_MAX : 40}};
        fill(m.signature, sizeof m.signature, v);
        return wire_put_moments(buffer, CAP, &m);
    }
    case WIRE_STATUS_REQ:
        return wire_put_status_req(buffer, CAP);
    case WIRE_STATUS:
        return wire_put_status(buffer, CAP, sample_status(large));
    case WIRE_NONE:
    case WIRE_TYPE_END:
        break;
    }
    fail();
    return 0;
}

/* Copies the bytes to a heap block of exactly their size, so that a sanitizer detects a read
 * beyond them. */
static inline uint8_t *exactly(const uint8_t *p, size_t n)
{
    uint8_t *copy = malloc(n > 0 ? n : 1);
    assert_non_null(copy);
    if (n > 0)
        memcpy(copy, p, n);
    return copy;
}

/* Checks that the reader refuses these bytes. */
static inline void assert_refused(const uint8_t *p, size_t n)
{
    enum wire_type type;
    uint8_t *copy = exactly(p, n);
    if (recode(copy, n, other, CAP, &type) != 0)
        fail_msg("a message of type %d is taken, %zu bytes that should be refused", (int)type, n);
    free(copy);
}

/* Reads the message in p[0..n), which must be valid. The result is valid until the next call. */
static inline const struct wire_message *read_sound(const uint8_t *p, size_t n)
{
    static struct wire_batch batch;
    static struct wire_message m;
    assert_true(wire_read(p, n, &batch, &m));
    return &m;
}

/* Checks that msgpack-c reads the bytes as one array, to the last byte. */
static inline void assert_msgpack(const uint8_t *p, size_t n)
{
    msgpack_unpacked value;
    size_t used = 0;
    msgpack_unpacked_init(&value);
    assert_int_equal(msgpack_unpack_next(&value, (const char *)p, n, &used),
                     MSGPACK_UNPACK_SUCCESS);
    assert_int_equal(used, n);
    assert_int_equal(value.data.type, MSGPACK_OBJECT_ARRAY);
    msgpack_unpacked_destroy(&value);
}

/* Checks that bytes which the reader accepts are also accepted by msgpack-c, and that reading and
 * writing the result again does not change it. Returns whether the reader accepted them. */
static inline bool check_sound(const uint8_t *p, size_t n)
{
    static uint8_t twice[CAP];
    enum wire_type type, again;
    uint8_t *copy = exactly(p, n);
    size_t once = recode(copy, n, other, CAP, &type);
    if (once > 0) {
        assert_msgpack(copy, n);
        assert_true(once <= n);
        assert_int_equal(recode(other, once, twice, CAP, &again), once);
        assert_int_equal(again, type);
        assert_memory_equal(other, twice, once);
    }
    free(copy);
    return once > 0;
}

#endif
