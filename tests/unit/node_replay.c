/* tests/unit/node_replay.c -- tests of peer/secure/replay.h: message 1 of a handshake is answered
 * only once. */
#include "tests/unit/channel_talk.h"

#include "peer/secure/replay.h"

enum { N = 5 * REPLAY_EACH };

static struct replay seen;

static void ephemeral(uint8_t out[32], uint64_t i)
{
    fill(out, 32, 1000 + i);
}

static void begin_set(uint64_t what)
{
    uint8_t key[REPLAY_KEY];
    fill(key, sizeof key, what);
    replay_init(&seen, key);
}

/* Random messages, new and repeated, are given to the set of known messages. The answers of the set
 * are compared with a list of all messages in the order in which they were given. */
static void the_last_are_known(void **state)
{
    (void)state;
    static uint32_t entered[4 * N];
    uint32_t n = 0;
    uint64_t seed = getenv("SEED") ? strtoull(getenv("SEED"), NULL, 10) : 1;
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, 7, 0));
    print_message("SEED=%llu\n", (unsigned long long)seed);
    begin_set(seed);
    for (uint32_t next = 0; next < N;) {
        uint8_t e[32];
        uint64_t back = rng_u64(&r) % (3 * REPLAY_EACH);
        bool again = rng_u64(&r) % 2 && back < n;
        uint32_t i = again ? entered[n - 1 - back] : next++;
        ephemeral(e, i);
        bool is_new = replay_is_new(&seen, e);
        if (!again)
            assert_true(is_new);
        else if (back < REPLAY_EACH)
            assert_false(is_new);
        assert_true(n < 4 * N);
        if (is_new)
            entered[n++] = i;
        /* The oldest of the last REPLAY_EACH first messages must be recognised when it is
         * replayed. */
        if (n >= REPLAY_EACH) {
            ephemeral(e, entered[n - REPLAY_EACH]);
            assert_false(replay_is_new(&seen, e));
        }
    }
}

/* The replay filter must recognise each of the last REPLAY_EACH handshake messages. It must forget
 * a message after at most 2 * REPLAY_EACH further messages, because its memory is limited. */
static void the_oldest_are_forgotten(void **state)
{
    (void)state;
    uint8_t e[32];
    begin_set(1);
    for (uint32_t i = 0; i <= 2 * REPLAY_EACH; i++) {
        ephemeral(e, i);
        assert_true(replay_is_new(&seen, e));
    }
    ephemeral(e, REPLAY_EACH);
    assert_false(replay_is_new(&seen, e));
    ephemeral(e, 0);
    assert_true(replay_is_new(&seen, e));
}

static void a_channel_answers_once(void **state)
{
    (void)state;
    struct talk t;
    struct channel second, third;
    uint8_t out[CHANNEL_MSG2];
    size_t n;
    talk_open(&t);
    begin_set(1);
    begin(&second, false, &t.ib, t.psk);
    channel_remember(&second, &seen);
    assert_int_equal(channel_handshake(&second, t.msg1, CHANNEL_MSG1, out, &n), 0);
    assert_int_equal(n, CHANNEL_MSG2);
    begin(&third, false, &t.ib, t.psk);
    channel_remember(&third, &seen);
    assert_int_equal(channel_handshake(&third, t.msg1, CHANNEL_MSG1, out, &n), -EPROTO);
    assert_int_equal(n, 0);
    assert_int_equal(third.state, CHANNEL_FAILED);
    channel_close(&second);
}

/* A message whose authentication fails is not stored. Otherwise an attacker could make the peer
 * refuse a genuine message that is still on its way. */
static void a_bad_seal_enters_nothing(void **state)
{
    (void)state;
    struct talk t;
    struct channel c;
    uint8_t out[CHANNEL_MSG2], bad[CHANNEL_MSG1];
    size_t n;
    talk_open(&t);
    begin_set(1);
    memcpy(bad, t.msg1, sizeof bad);
    bad[CHANNEL_MSG1 - 1] ^= 1;
    begin(&c, false, &t.ib, t.psk);
    channel_remember(&c, &seen);
    assert_int_equal(channel_handshake(&c, bad, CHANNEL_MSG1, out, &n), -EPROTO);
    /* The refused message was not stored, so the genuine message 1, which has the same ephemeral
     * key, still counts as new. */
    assert_true(replay_is_new(&seen, t.msg1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_are_known),
        cmocka_unit_test(the_oldest_are_forgotten),
        cmocka_unit_test(a_channel_answers_once),
        cmocka_unit_test(a_bad_seal_enters_nothing),
    };
    if (sodium_init() < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
