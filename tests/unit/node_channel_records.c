/* tests/unit/node_channel_records.c -- tests of an open encrypted channel: records, rekeying, and
 * closing. */
#include "tests/unit/channel_talk.h"

static uint8_t wire[2 + CHANNEL_RECORD_MAX + 1], plain[CHANNEL_OPEN_MAX];

static size_t seal(struct channel *c, enum channel_kind kind, const char *text, uint8_t *out)
{
    size_t n = channel_seal(c, kind, (const uint8_t *)text, strlen(text), NULL, 0, out);
    assert_int_equal(n, strlen(text) + CHANNEL_OVERHEAD);
    assert_int_equal(256 * out[0] + out[1], n - CHANNEL_HEADER);
    return n;
}

static void assert_opens(struct channel *c, const uint8_t *record, size_t n, enum channel_kind kind,
                         const char *text)
{
    enum channel_kind k;
    size_t n_data;
    assert_int_equal(channel_open(c, record + 2, n - 2, plain, &n_data, &k), 0);
    assert_int_equal(k, kind);
    assert_int_equal(n_data, strlen(text));
    assert_memory_equal(plain, text, n_data);
}

/* Checks that the channel refuses this record and then all later records, even the valid record
 * `good`. */
static void assert_record_refused(const struct channel *before, const uint8_t *record, size_t n,
                                  const uint8_t *good, size_t n_good)
{
    struct channel c = *before;
    enum channel_kind k;
    size_t n_data = 99;
    assert_int_equal(channel_open(&c, record, n, plain, &n_data, &k), -EPROTO);
    assert_int_equal(n_data, 0);
    assert_int_equal(c.state, CHANNEL_FAILED);
    assert_true(sodium_is_zero(c.recv.k, 32) && sodium_is_zero(c.send.k, 32));
    assert_int_equal(channel_open(&c, good + 2, n_good - 2, plain, &n_data, &k), -EPROTO);
}

static void two_channels_talk(void **state)
{
    (void)state;
    struct talk t;
    talk_open(&t);
    size_t n = seal(&t.a, CHANNEL_CONTROL_END, "ping", wire);
    assert_opens(&t.b, wire, n, CHANNEL_CONTROL_END, "ping");
    n = seal(&t.b, CHANNEL_CONTROL, "", wire); /* A message may be empty. */
    assert_opens(&t.a, wire, n, CHANNEL_CONTROL, "");
    for (int i = 0; i < 300; i++) {
        n = seal(&t.b, CHANNEL_BULK, "a model", wire);
        assert_opens(&t.a, wire, n, CHANNEL_BULK, "a model");
    }
    /* Data that are given in two parts are sealed as one record. */
    n = channel_seal(&t.a, CHANNEL_BULK_END, (const uint8_t *)"head", 4, (const uint8_t *)"body", 4,
                     wire);
    assert_opens(&t.b, wire, n, CHANNEL_BULK_END, "headbody");
    n = channel_seal(&t.a, CHANNEL_BULK_END, NULL, 0, (const uint8_t *)"body", 4, wire);
    assert_opens(&t.b, wire, n, CHANNEL_BULK_END, "body");
    assert_int_equal(t.a.sent_since_rekey, 4 + 8 + 4);
}

static void longest_record_passes(void **state)
{
    (void)state;
    struct talk t;
    static uint8_t data[CHANNEL_PLAIN_MAX];
    enum channel_kind k;
    size_t n_data;
    talk_open(&t);
    fill(data, sizeof data, 5);
    size_t n = channel_seal(&t.a, CHANNEL_BULK, data, 1000, data + 1000, sizeof data - 1000, wire);
    assert_int_equal(n, 2 + CHANNEL_RECORD_MAX);
    assert_true(wire[0] == 255 && wire[1] == 255);
    struct channel before = t.b;
    /* The record is decrypted in place. */
    assert_int_equal(channel_open(&t.b, wire + 2, n - 2, wire + 2, &n_data, &k), 0);
    assert_int_equal(n_data, CHANNEL_PLAIN_MAX);
    assert_memory_equal(wire + 2, data, n_data);
    assert_int_equal(channel_open(&before, wire + 2, CHANNEL_RECORD_MAX + 1, plain, &n_data, &k),
                     -EPROTO);
}

static void spoilt_records_end_the_channel(void **state)
{
    (void)state;
    struct talk t;
    uint8_t one[64], two[64], bad[64];
    talk_open(&t);
    size_t n1 = seal(&t.a, CHANNEL_CONTROL_END, "the first", one);
    size_t n2 = seal(&t.a, CHANNEL_CONTROL_END, "the second", two);
    for (size_t bit = 0; bit < 8 * (n1 - 2); bit++) {
        memcpy(bad, one + 2, n1 - 2);
        bad[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_record_refused(&t.b, bad, n1 - 2, one, n1);
    }
    for (size_t n = 0; n < n1 - 2; n++)
        assert_record_refused(&t.b, one + 2, n, one, n1);
    memcpy(bad, one + 2, n1 - 2);
    bad[n1 - 2] = 0;
    assert_record_refused(&t.b, bad, n1 - 1, one, n1);
    /* A record is refused if the one before it was dropped, if it was swapped with another one or
     * repeated, or if it is sent back to its sender. */
    assert_record_refused(&t.b, two + 2, n2 - 2, one, n1);
    struct channel after = t.b;
    assert_opens(&after, one, n1, CHANNEL_CONTROL_END, "the first");
    assert_record_refused(&after, one + 2, n1 - 2, two, n2);
    struct channel own = t.a;
    assert_record_refused(&own, one + 2, n1 - 2, two, n2);
    assert_opens(&after, two, n2, CHANNEL_CONTROL_END, "the second");
}

/* A record is authentic, but has an unknown kind, or data where its kind allows none. Such a record
 * is refused. */
static void unknown_kinds_are_refused(void **state)
{
    (void)state;
    struct talk t;
    talk_open(&t);
    for (int kind = 0; kind < 256; kind++)
        for (size_t n_data = 0; n_data < 2; n_data++) {
            struct channel b = t.b;
            struct noise_cipher send = t.a.send;
            uint8_t m[2] = {7, 7}, out[2 + NOISE_TAG];
            enum channel_kind k;
            size_t n;
            m[n_data] = (uint8_t)kind;
            assert_int_equal(noise_seal(&send, NULL, 0, m, n_data + 1, out), 0);
            bool bare = kind == CHANNEL_REKEY || kind == CHANNEL_CLOSE;
            bool good = kind >= CHANNEL_CONTROL && kind <= CHANNEL_CLOSE && !(bare && n_data > 0);
            assert_int_equal(channel_open(&b, out, n_data + 1 + NOISE_TAG, plain, &n, &k),
                             good ? 0 : -EPROTO);
        }
    /* The plaintext of this record is empty. The record lacks even the byte that gives its kind. */
    struct noise_cipher send = t.a.send;
    uint8_t out[NOISE_TAG];
    enum channel_kind k;
    size_t n;
    assert_int_equal(noise_seal(&send, NULL, 0, NULL, 0, out), 0);
    assert_int_equal(channel_open(&t.b, out, sizeof out, plain, &n, &k), -EPROTO);
}

static void rekeying_keeps_step(void **state)
{
    (void)state;
    struct talk t;
    talk_open(&t);
    for (int i = 0; i < 5; i++) {
        struct channel *from = i % 2 ? &t.a : &t.b, *to = i % 2 ? &t.b : &t.a;
        uint8_t old[32], other[32];
        memcpy(old, from->send.k, 32);
        memcpy(other, from->recv.k, 32);
        size_t n = seal(from, CHANNEL_BULK, "before", wire);
        assert_opens(to, wire, n, CHANNEL_BULK, "before");
        assert_true(from->sent_since_rekey >= 6);
        n = seal(from, CHANNEL_REKEY, "", wire);
        assert_int_equal(from->sent_since_rekey, 0);
        assert_opens(to, wire, n, CHANNEL_REKEY, "");
        assert_memory_not_equal(from->send.k, old, 32);
        assert_memory_equal(from->send.k, to->recv.k, 32);
        /* The rekeying changes only one direction of the channel. */
        assert_memory_equal(from->recv.k, other, 32);
        n = seal(from, CHANNEL_BULK, "after", wire);
        assert_opens(to, wire, n, CHANNEL_BULK, "after");
        n = seal(to, CHANNEL_CONTROL_END, "back", wire);
        assert_opens(from, wire, n, CHANNEL_CONTROL_END, "back");
    }
    /* A receiver that misses the REKEY record cannot open the next one. */
    uint8_t rekey[64];
    size_t n_rekey = seal(&t.a, CHANNEL_REKEY, "", rekey);
    size_t n = seal(&t.a, CHANNEL_BULK, "after", wire);
    assert_record_refused(&t.b, wire + 2, n - 2, rekey, n_rekey);
}

static void close_is_the_end(void **state)
{
    (void)state;
    struct talk t;
    uint8_t more[64];
    talk_open(&t);
    struct channel cheat = t.a; /* A copy of `a` that continues to send after its CLOSE record. */
    size_t n = seal(&t.a, CHANNEL_CLOSE, "", wire);
    assert_int_equal(channel_seal(&t.a, CHANNEL_CONTROL_END, more, 1, NULL, 0, more), 0);
    assert_opens(&t.b, wire, n, CHANNEL_CLOSE, "");
    assert_true(t.b.got_close && !t.b.sent_close && t.b.state == CHANNEL_OPEN);
    (void)seal(&cheat, CHANNEL_CLOSE, "", more);
    cheat.sent_close = false;
    size_t n_more = seal(&cheat, CHANNEL_CONTROL_END, "more", more);
    assert_record_refused(&t.b, more + 2, n_more - 2, more, n_more);
    /* CLOSE ends one direction only: the other one is still open. */
    n = seal(&t.b, CHANNEL_CONTROL_END, "bye", wire);
    assert_opens(&t.a, wire, n, CHANNEL_CONTROL_END, "bye");
    n = seal(&t.b, CHANNEL_CLOSE, "", wire);
    assert_opens(&t.a, wire, n, CHANNEL_CLOSE, "");
}

static void nonces_run_out_and_never_wrap(void **state)
{
    (void)state;
    struct talk t;
    enum channel_kind k;
    size_t n_data;
    talk_open(&t);
    t.a.send.n = t.b.recv.n = UINT64_MAX - 1;
    size_t n = seal(&t.a, CHANNEL_CONTROL_END, "last", wire);
    assert_opens(&t.b, wire, n, CHANNEL_CONTROL_END, "last");
    memset(wire, 0, 64);
    assert_int_equal(
        channel_seal(&t.a, CHANNEL_CONTROL_END, (const uint8_t *)"x", 1, NULL, 0, wire), 0);
    /* The refused channel_seal() call has not written to the buffer, not even the plaintext "x". */
    assert_true(sodium_is_zero(wire, 64));
    assert_int_equal(channel_open(&t.b, wire, 40, plain, &n_data, &k), -EPROTO);
}

static void nothing_passes_before_the_handshake(void **state)
{
    (void)state;
    struct talk t;
    enum channel_kind k;
    size_t n_data;
    talk_open(&t);
    size_t n = seal(&t.a, CHANNEL_CONTROL_END, "early", wire);
    assert_int_equal(channel_seal(&t.b_before_3, CHANNEL_CONTROL_END, wire, 1, NULL, 0, plain), 0);
    assert_int_equal(channel_open(&t.b_before_3, wire + 2, n - 2, plain, &n_data, &k), -EPROTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_channels_talk),
        cmocka_unit_test(longest_record_passes),
        cmocka_unit_test(spoilt_records_end_the_channel),
        cmocka_unit_test(unknown_kinds_are_refused),
        cmocka_unit_test(rekeying_keeps_step),
        cmocka_unit_test(close_is_the_end),
        cmocka_unit_test(nonces_run_out_and_never_wrap),
        cmocka_unit_test(nothing_passes_before_the_handshake),
    };
    if (sodium_init() < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
