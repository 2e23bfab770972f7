/* tests/unit/channel_talk.h -- opens two channels with fixed keys, for the tests of the
 * encrypted channel. */
#ifndef TESTS_UNIT_CHANNEL_TALK_H
#define TESTS_UNIT_CHANNEL_TALK_H

#include "nn/math/rng.h"
#include "peer/secure/channel.h"

#include <errno.h>
#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A handshake with fixed keys, and a copy of the receiving channel before each handshake
 * message. */
struct talk
{
    struct channel_identity ia, ib;
    uint8_t psk[CHANNEL_KEY];
    struct channel a, b; /* Both channels after the handshake. `a` is the initiator. */
    struct channel b_before_1, a_before_2, b_before_3;
    uint8_t msg1[CHANNEL_MSG1], msg2[CHANNEL_MSG2], msg3[CHANNEL_MSG2];
};

static inline void fill(uint8_t *out, size_t n, uint64_t what)
{
    struct rng r = rng_stream(rng_key(1, RNG_TEST, what, 0));
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)rng_u64(&r);
}

static inline void identity(struct channel_identity *id, uint64_t what)
{
    uint8_t seed[32];
    fill(seed, sizeof seed, what);
    channel_identity_from_seed(id, seed);
}

static inline void begin(struct channel *c, bool initiator, const struct channel_identity *id,
                         const uint8_t psk[CHANNEL_KEY])
{
    uint8_t ephemeral[32];
    fill(ephemeral, sizeof ephemeral, initiator ? 100 : 101);
    channel_init(c, initiator, id, psk, ephemeral);
}

static inline void talk_open(struct talk *t)
{
    size_t n;
    identity(&t->ia, 1);
    identity(&t->ib, 2);
    fill(t->psk, sizeof t->psk, 3);
    begin(&t->a, true, &t->ia, t->psk);
    begin(&t->b, false, &t->ib, t->psk);
    assert_int_equal(channel_wants(&t->a), 0);
    assert_int_equal(channel_wants(&t->b), CHANNEL_MSG1);
    assert_int_equal(channel_handshake(&t->a, NULL, 0, t->msg1, &n), 0);
    assert_int_equal(n, CHANNEL_MSG1);
    t->b_before_1 = t->b;
    assert_int_equal(channel_handshake(&t->b, t->msg1, n, t->msg2, &n), 0);
    assert_int_equal(n, CHANNEL_MSG2);
    assert_int_equal(channel_wants(&t->a), CHANNEL_MSG2);
    t->a_before_2 = t->a;
    assert_int_equal(channel_handshake(&t->a, t->msg2, n, t->msg3, &n), 0);
    assert_int_equal(n, CHANNEL_MSG3);
    assert_int_equal(channel_wants(&t->b), CHANNEL_MSG3);
    t->b_before_3 = t->b;
    uint8_t none[CHANNEL_MSG2];
    assert_int_equal(channel_handshake(&t->b, t->msg3, n, none, &n), 0);
    assert_int_equal(n, 0);
    assert_true(t->a.state == CHANNEL_OPEN && t->b.state == CHANNEL_OPEN);
    assert_int_equal(channel_wants(&t->a) + channel_wants(&t->b), 0);
}

#endif
