/* tests/unit/gossip_wire.c -- tests that each message is written and read without change, its size,
 * and the signed bytes. */
#include "tests/unit/gossip_samples.h"

static void test_round_trip_bytes(void **state)
{
    (void)state;
    for (uint32_t t = 1; t < WIRE_TYPE_END; t++)
        for (int large = 0; large < 2; large++) {
            size_t n = sample((enum wire_type)t, large);
            assert_true(n > 0);
            enum wire_type type;
            uint8_t *copy = exactly(buffer, n);
            assert_int_equal(recode(copy, n, other, CAP, &type), n);
            assert_int_equal(type, t);
            assert_memory_equal(other, copy, n);
            free(copy);
        }
}

static void check_hello(bool large)
{
    size_t n = sample(WIRE_HELLO, large);
    struct wire_hello want = sample_hello(large), m = read_sound(buffer, n)->hello;
    assert_int_equal(m.version, want.version);
    assert_int_equal(m.role, want.role);
    assert_int_equal(m.has_run, want.has_run);
    assert_int_equal(m.has_started, want.has_started);
    assert_int_equal(m.round, want.round);
    assert_int_equal(m.run.n, want.run.n);
    assert_memory_equal(m.run.p, want.run.p, want.run.n);
    assert_true(m.run.p > buffer && m.run.p < buffer + n);
    assert_memory_equal(&m.record, &want.record, sizeof m.record);
}

static void check_delta(bool large)
{
    size_t n = sample(WIRE_DELTA, large);
    struct wire_delta want = sample_delta(large), m = read_sound(buffer, n)->delta;
    assert_int_equal(m.epoch, want.epoch);
    assert_int_equal(m.round, want.round);
    assert_int_equal(m.run_round, want.run_round);
    assert_int_equal(m.degree, want.degree);
    assert_int_equal(m.more, want.more);
    assert_int_equal(m.codec, want.codec);
    assert_memory_equal(&m.x2, &want.x2, sizeof m.x2);
    assert_memory_equal(&m.e2, &want.e2, sizeof m.e2);
    assert_int_equal(m.hash, want.hash);
    assert_int_equal(m.settled, want.settled);
    assert_int_equal(m.pace, want.pace);
    assert_int_equal(m.clean, want.clean);
    assert_int_equal(m.sketch_generation, want.sketch_generation);
    assert_memory_equal(&m.mean_dist2, &want.mean_dist2, sizeof m.mean_dist2);
    assert_memory_equal(&m.mean_norm2, &want.mean_norm2, sizeof m.mean_norm2);
    assert_int_equal(m.sketch.n, want.sketch.n);
    assert_int_equal(m.payload.n, want.payload.n);
    /* The payload lies at the end of the buffer, and the message points to it there. */
    assert_ptr_equal(m.payload.p, buffer + n - m.payload.n);
    if (m.sketch.n > 0)
        assert_memory_equal(m.sketch.p, want.sketch.p, m.sketch.n);
}

static void check_members(bool large)
{
    size_t n = sample(WIRE_MEMBERS, large);
    struct wire_members want = sample_members(large), m = read_sound(buffer, n)->members;
    assert_int_equal(m.n_records, want.n_records);
    assert_int_equal(m.n_accusations, want.n_accusations);
    assert_memory_equal(m.records, want.records, m.n_records * sizeof *m.records);
    assert_memory_equal(m.accusations, want.accusations, m.n_accusations * sizeof *m.accusations);
    assert_int_equal(m.n_vouches, want.n_vouches);
    assert_memory_equal(m.vouches, want.vouches, m.n_vouches * sizeof *m.vouches);
}

static void check_rest(bool large)
{
    uint64_t v = large ? UINT64_MAX : 9;
    struct wire_ping ping = read_sound(buffer, sample(WIRE_PING, large))->ping;
    assert_int_equal(ping.round, v);
    assert_int_equal(ping.busy_ms, (uint32_t)v);
    assert_int_equal(ping.finished, large);
    size_t n_part = sample(WIRE_PART, large);
    struct wire_part part = read_sound(buffer, n_part)->part;
    assert_true(part.epoch == v && part.round == v - 1 && part.after == v - 2);
    /* The payload lies at the end of the buffer, and the message points to it there. */
    assert_ptr_equal(part.payload.p, buffer + n_part - part.payload.n);
    size_t n_round = sample(WIRE_ROUND_PROTOCOL, large);
    struct wire_round_protocol round = read_sound(buffer, n_round)->round_protocol;
    assert_true(round.word == (large ? WIRE_ROUND_PROTOCOL_STEP : WIRE_ROUND_PROTOCOL_RESULT));
    assert_true(round.round == v && round.attempt == (uint32_t)v && round.view == v - 1);
    assert_int_equal(round.step, large ? UINT32_MAX : 0);
    assert_ptr_equal(round.payload.p, buffer + n_round - round.payload.n);
    struct wire_edge edge = read_sound(buffer, sample(WIRE_EDGE, large))->edge;
    assert_int_equal(edge.epoch, v);
    assert_int_equal(edge.round, v - 1);
    assert_int_equal(edge.nonce, v - 2);
    assert_int_equal(edge.answers, v - 3);
    assert_int_equal(edge.boot, v - 4);
    assert_int_equal(edge.run_round, v - 5);
    assert_true(edge.restored == large && edge.first == !large);
    struct wire_beat beat = read_sound(buffer, sample(WIRE_BEAT, large))->beat;
    assert_int_equal(beat.run_round, v);
    assert_int_equal(beat.settled, (uint32_t)v);
    struct wire_heard heard = read_sound(buffer, sample(WIRE_HEARD, large))->heard;
    assert_int_equal(heard.age_ms, (uint32_t)v);
    uint8_t id[WIRE_ID_BYTES];
    fill(id, sizeof id, v);
    assert_memory_equal(heard.id, id, sizeof id);
    struct wire_refused refused = read_sound(buffer, sample(WIRE_REFUSED, large))->refused;
    assert_int_equal(refused.why, large ? REFUSED_NAME : REFUSED_UNLISTED);
    assert_int_equal(strlen(refused.name), large ? WIRE_NAME_MAX : 1);
    assert_memory_equal(refused.other, id, sizeof id);
    struct wire_callback callback = read_sound(buffer, sample(WIRE_CALLBACK, large))->callback;
    assert_int_equal(callback.why, large ? WIRE_CODE_MAX : 0);
    assert_string_equal(callback.address, large ? "[fe80::1234:5678]:7100" : "h:7100");
    struct wire_finish finish = read_sound(buffer, sample(WIRE_FINISH, large))->finish;
    assert_int_equal(finish.word, large ? WIRE_FINISH_DECIDED : WIRE_FINISH_ASK);
    assert_int_equal(finish.ballot.number, large ? UINT64_MAX : 1);
    assert_int_equal(finish.accepted.number, large ? UINT64_MAX - 2 : 0);
    assert_int_equal(finish.model_hash, large ? UINT64_MAX : 0);
    assert_int_equal(finish.proposal.n, large ? 80 : 0);
    struct wire_probe probe = read_sound(buffer, sample(WIRE_PROBE, large))->probe;
    assert_memory_equal(probe.id, id, sizeof id);
    struct wire_model_req ask = read_sound(buffer, sample(WIRE_MODEL_REQ, large))->model_req;
    assert_int_equal(ask.round, v);
    assert_int_equal(ask.piece, large ? WIRE_PIECE_WHOLE : 9);
    assert_int_equal(ask.key, large ? v : 0);
    size_t n = sample(WIRE_MODEL, large);
    struct wire_model model = read_sound(buffer, n)->model;
    assert_int_equal(model.round, v);
    assert_int_equal(model.piece, large ? WIRE_PIECE_WHOLE : 9);
    assert_int_equal(model.key, large ? v : 0);
    assert_int_equal(model.payload.n, large ? sizeof raw : 40);
    assert_ptr_equal(model.payload.p, buffer + n - model.payload.n);
    n = sample(WIRE_STATUS, large);
    assert_memory_equal(&read_sound(buffer, n)->status, &status, sizeof status);
}

static void test_round_trip_fields(void **state)
{
    (void)state;
    for (int large = 0; large < 2; large++) {
        check_hello(large);
        check_delta(large);
        check_members(large);
        check_rest(large);
    }
}

/* Tests messages of an observer, of a newcomer without a run, and messages with empty lists. */
static void test_round_trip_empty(void **state)
{
    (void)state;
    struct wire_hello h = {.version = 1, .role = WIRE_OBSERVER};
    size_t n = wire_put_hello(buffer, CAP, &h);
    struct wire_hello got = read_sound(buffer, n)->hello;
    assert_int_equal(got.role, WIRE_OBSERVER);
    assert_false(got.has_run);
    assert_int_equal(got.run.n, 0);
    assert_int_equal(got.record.n_addresses, 0);

    struct wire_members m = {0, 0, 0, records, accusations, vouches, 0};
    n = wire_put_members(buffer, CAP, &m);
    m = read_sound(buffer, n)->members;
    assert_int_equal(m.n_records + m.n_accusations + m.n_vouches, 0);

    struct wire_delta d = {.epoch = 1};
    n = wire_put_delta(buffer, CAP, &d);
    struct wire_delta back = read_sound(buffer, n)->delta;
    assert_int_equal(back.payload.n + back.sketch.n, 0);
}

/* The largest message of each type is within the limit for its kind, bulk or control message. */
static void test_sizes(void **state)
{
    (void)state;
    for (uint32_t t = 1; t < WIRE_TYPE_END; t++) {
        bool bulk =
            t == WIRE_DELTA || t == WIRE_MODEL || t == WIRE_PART || t == WIRE_ROUND_PROTOCOL;
        size_t max = bulk ? WIRE_HEAD_MAX + WIRE_SKETCH_MAX + sizeof raw : WIRE_CONTROL_MAX;
        assert_true(sample((enum wire_type)t, false) <= max);
        assert_true(sample((enum wire_type)t, true) <= max);
    }
    struct wire_delta d = sample_delta(false);
    size_t head = wire_put_delta(buffer, CAP, &d);
    /* The field `clean` takes 9 bytes in an exact averaging pass, else 1. */
    assert_true(head <= 62);
    d.hash = UINT64_MAX; /* Every 64 rounds, a hash of the replicas is sent with the delta. */
    assert_true(wire_put_delta(buffer, CAP, &d) <= 73);
    d = sample_delta(true);
    assert_true(wire_put_delta(buffer, CAP, &d) <= WIRE_HEAD_MAX + WIRE_SKETCH_MAX);
}

/* If the buffer is too small by any number of bytes, the writers return 0 and write nothing beyond
 * it. */
static void test_caps(void **state)
{
    (void)state;
    struct wire_hello h = sample_hello(false);
    struct wire_delta d = sample_delta(false);
    struct wire_ping ping = {300, 70000, true};
    size_t n_hello = wire_put_hello(buffer, CAP, &h);
    size_t n_delta = wire_put_delta(buffer, CAP, &d);
    size_t n_ping = wire_put_ping(buffer, CAP, &ping);
    for (size_t cap = 0; cap <= n_hello; cap++) {
        uint8_t *out = exactly(buffer, cap);
        assert_int_equal(wire_put_hello(out, cap, &h), cap < n_hello ? 0 : n_hello);
        assert_int_equal(wire_put_delta(out, cap, &d), cap < n_delta ? 0 : n_delta);
        assert_int_equal(wire_put_ping(out, cap, &ping), cap < n_ping ? 0 : n_ping);
        free(out);
    }
    uint8_t msg[2048];
    struct record r = large_record(1);
    assert_true(wire_record_signed(msg, sizeof msg, &r) > 0);
    assert_int_equal(wire_record_signed(msg, 100, &r), 0);
}

/* The signed bytes cover each field except the signature, and differ between records and
 * accusations. */
static void test_signed_bytes(void **state)
{
    (void)state;
    uint8_t a[2048], b[2048];
    struct record r = small_record(1), s = r;
    size_t n = wire_record_signed(a, sizeof a, &r);
    s.signature[3] ^= 1;
    assert_int_equal(wire_record_signed(b, sizeof b, &s), n);
    assert_memory_equal(a, b, n);
    for (int field = 0; field < 6; field++) {
        s = r;
        s.id[31] ^= field == 0;
        s.name[0] = (char)(s.name[0] ^ (field == 1));
        s.address[0][0] = (char)(s.address[0][0] ^ (field == 2));
        s.incarnation ^= field == 3;
        s.boot ^= field == 4;
        s.state = field == 5 ? RECORD_FINISHED : s.state;
        size_t k = wire_record_signed(b, sizeof b, &s);
        assert_true(k != n || memcmp(a, b, n) != 0);
    }
    struct accusation x = sample_accusation(1, 5), y = x;
    size_t nx = wire_accusation_signed(b, sizeof b, &x);
    assert_true(memcmp(a, b, 12) != 0);
    for (int field = 0; field < 3; field++) {
        y = x;
        y.accused[0] ^= field == 0;
        y.accuser[0] ^= field == 1;
        y.incarnation ^= field == 2;
        assert_int_equal(wire_accusation_signed(a, sizeof a, &y), nx);
        assert_memory_not_equal(a, b, nx);
    }
    struct vouch v = sample_vouch(1), w = v;
    size_t nv = wire_vouch_signed(a, sizeof a, &v);
    assert_true(memcmp(a, b, 12) != 0);
    for (int field = 0; field < 2; field++) {
        w = v;
        w.member[0] ^= field == 0;
        w.voucher[0] ^= field == 1;
        assert_int_equal(wire_vouch_signed(b, sizeof b, &w), nv);
        assert_memory_not_equal(a, b, nv);
    }
}

/* The signature of column statistics covers the identity, the process, the flag `founds` (the
 * member would create the run), and all bytes of the statistics. */
static void test_signed_moments(void **state)
{
    (void)state;
    static uint8_t a[WIRE_MOMENTS_MAX + 128], b[sizeof a];
    uint8_t payload[50] = {7};
    struct wire_moments m = {.record = small_record(1), .payload = {payload, sizeof payload}};
    size_t n = wire_moments_signed(a, sizeof a, &m);
    struct wire_moments same = m;
    same.record.incarnation++;
    same.signature[0] ^= 1;
    assert_int_equal(wire_moments_signed(b, sizeof b, &same), n);
    assert_memory_equal(a, b, n);
    for (int field = 0; field < 4; field++) {
        struct wire_moments x = m;
        uint8_t spoilt[50] = {7};
        x.record.id[0] ^= field == 0;
        x.record.boot ^= field == 1;
        x.founds ^= field == 2;
        spoilt[49] ^= field == 3;
        x.payload.p = spoilt;
        assert_int_equal(wire_moments_signed(b, sizeof b, &x), n);
        assert_memory_not_equal(a, b, n);
    }
    m.payload = (struct bytes){raw, WIRE_MOMENTS_MAX};
    assert_true(wire_moments_signed(a, sizeof a, &m) > WIRE_MOMENTS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip_bytes),
        cmocka_unit_test(test_round_trip_fields),
        cmocka_unit_test(test_round_trip_empty),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_caps),
        cmocka_unit_test(test_signed_bytes),
        cmocka_unit_test(test_signed_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
