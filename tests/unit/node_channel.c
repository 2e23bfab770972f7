/* tests/unit/node_channel.c -- tests of the handshake of peer/secure/channel.h: which peers and
 * messages must not get a session. */
#include "tests/unit/channel_talk.h"

/* Checks that the channel refuses these bytes: the channel fails, wipes its keys, and writes no
 * byte. */
static void assert_refused(const struct channel *before, const uint8_t *in, size_t n_in)
{
    struct channel c = *before;
    uint8_t out[CHANNEL_MSG2] = {0};
    size_t n_out = 99;
    assert_int_equal(channel_handshake(&c, in, n_in, out, &n_out), -EPROTO);
    assert_int_equal(c.state, CHANNEL_FAILED);
    assert_int_equal(n_out, 0);
    assert_true(sodium_is_zero(out, sizeof out));
    assert_true(sodium_is_zero((uint8_t *)&c.noise, sizeof c.noise));
    assert_true(sodium_is_zero(c.send.k, sizeof c.send.k));
    assert_true(sodium_is_zero(c.recv.k, sizeof c.recv.k));
    assert_int_equal(channel_wants(&c), 0);
    assert_int_equal(channel_seal(&c, CHANNEL_CONTROL_END, in, 1, NULL, 0, out), 0);
}

static void ids_are_exchanged(void **state)
{
    (void)state;
    struct talk t;
    talk_open(&t);
    assert_memory_equal(t.a.peer_id, t.ib.sign_pk, CHANNEL_ID);
    assert_memory_equal(t.b.peer_id, t.ia.sign_pk, CHANNEL_ID);
    assert_memory_equal(t.a.send.k, t.b.recv.k, 32);
    assert_memory_equal(t.a.recv.k, t.b.send.k, 32);
    assert_memory_not_equal(t.a.send.k, t.a.recv.k, 32);
    assert_true(sodium_is_zero((uint8_t *)&t.a.noise, sizeof t.a.noise));
    assert_true(sodium_is_zero((uint8_t *)&t.b.noise, sizeof t.b.noise));
}

static void every_flipped_bit_is_refused(void **state)
{
    (void)state;
    struct talk t;
    talk_open(&t);
    const struct
    {
        const struct channel *before;
        const uint8_t *msg;
        size_t n;
    } step[3] = {{&t.b_before_1, t.msg1, CHANNEL_MSG1},
                 {&t.a_before_2, t.msg2, CHANNEL_MSG2},
                 {&t.b_before_3, t.msg3, CHANNEL_MSG3}};
    uint8_t bad[CHANNEL_MSG2];
    for (int s = 0; s < 3; s++)
        for (size_t bit = 0; bit < 8 * step[s].n; bit++) {
            memcpy(bad, step[s].msg, step[s].n);
            bad[bit / 8] ^= (uint8_t)(1 << bit % 8);
            assert_refused(step[s].before, bad, step[s].n);
        }
}

static void every_wrong_length_is_refused(void **state)
{
    (void)state;
    struct talk t;
    talk_open(&t);
    uint8_t longer[2 * CHANNEL_MSG2] = {0};
    for (size_t n = 0; n < CHANNEL_MSG1; n++)
        assert_refused(&t.b_before_1, t.msg1, n);
    for (size_t n = 0; n < CHANNEL_MSG2; n++)
        assert_refused(&t.a_before_2, t.msg2, n);
    for (size_t n = 0; n < CHANNEL_MSG3; n++)
        assert_refused(&t.b_before_3, t.msg3, n);
    memcpy(longer, t.msg1, CHANNEL_MSG1);
    assert_refused(&t.b_before_1, longer, CHANNEL_MSG1 + 1);
    struct channel start;
    begin(&start, true, &t.ia, t.psk);
    /* The initiator must send the first message, so it refuses a message that arrives before. */
    assert_refused(&start, longer, CHANNEL_MSG1);
    assert_refused(&t.a, longer, 1); /* An open channel takes no handshake message. */
}

static void another_cluster_key_is_refused_at_once(void **state)
{
    (void)state;
    struct talk t;
    talk_open(&t);
    for (size_t bit = 0; bit < 8 * CHANNEL_KEY; bit++) {
        struct channel stranger;
        uint8_t psk[CHANNEL_KEY], msg1[CHANNEL_MSG2];
        size_t n;
        memcpy(psk, t.psk, sizeof psk);
        psk[bit / 8] ^= (uint8_t)(1 << bit % 8);
        begin(&stranger, true, &t.ia, psk);
        assert_int_equal(channel_handshake(&stranger, NULL, 0, msg1, &n), 0);
        assert_refused(&t.b_before_1, msg1, n);
        /* A responder with another cluster key refuses a message of this cluster. */
        begin(&stranger, false, &t.ib, psk);
        assert_refused(&stranger, t.msg1, CHANNEL_MSG1);
    }
}

static void junk_is_refused(void **state)
{
    (void)state;
    struct talk t;
    talk_open(&t);
    uint8_t junk[CHANNEL_MSG2];
    for (uint64_t i = 0; i < 500; i++) {
        fill(junk, sizeof junk, 1000 + i);
        assert_refused(&t.b_before_1, junk, CHANNEL_MSG1);
    }
}

static void messages_of_elsewhere_are_refused(void **state)
{
    (void)state;
    struct talk t, other;
    talk_open(&t);
    /* Refused: a message that comes back to its sender as if it were the answer. */
    uint8_t reflected[CHANNEL_MSG2] = {0};
    memcpy(reflected, t.msg1, CHANNEL_MSG1);
    assert_refused(&t.a_before_2, t.msg1, CHANNEL_MSG1);
    assert_refused(&t.a_before_2, reflected, CHANNEL_MSG2);
    assert_refused(&t.b_before_3, t.msg2, CHANNEL_MSG3);
    assert_refused(&t.b_before_1, t.msg2, CHANNEL_MSG1);
    /* Refused: messages of an earlier handshake of the same two peers, replayed to a peer with a
     * new ephemeral key. */
    uint8_t ephemeral[32], fresh2[CHANNEL_MSG2];
    size_t n;
    struct channel a, b;
    fill(ephemeral, sizeof ephemeral, 200);
    channel_init(&a, true, &t.ia, t.psk, ephemeral);
    assert_int_equal(channel_handshake(&a, NULL, 0, other.msg1, &n), 0);
    assert_refused(&a, t.msg2, CHANNEL_MSG2);
    channel_init(&b, false, &t.ib, t.psk, ephemeral);
    assert_int_equal(channel_handshake(&b, t.msg1, CHANNEL_MSG1, fresh2, &n), 0);
    assert_refused(&b, t.msg3, CHANNEL_MSG3);
}

/* ---- A member (it has the cluster key) that cheats. ---- */

static const struct noise_pattern xxpsk0 = {
    "Noise_XXpsk0_25519_ChaChaPoly_SHA256",
    3,
    1,
    {{NOISE_PSK, NOISE_E}, {NOISE_E, NOISE_EE, NOISE_S, NOISE_ES}, {NOISE_S, NOISE_SE}}};

static void cheat_begin(struct noise *s, bool initiator, const struct talk *t,
                        const struct channel_identity *id)
{
    uint8_t ephemeral[32];
    fill(ephemeral, sizeof ephemeral, 300);
    noise_init(s, &(struct noise_config){.pattern = &xxpsk0,
                                         .initiator = initiator,
                                         .prologue = (const uint8_t *)"hearsay/1",
                                         .n_prologue = 9,
                                         .s_sk = id->noise_sk,
                                         .s_pk = id->noise_pk,
                                         .e_sk = ephemeral,
                                         .psk = {t->psk}});
}

/* Writes the payload of a handshake message: the public key of `id`, a signature of `id` over the
 * text `domain` followed by `noise_pk`, and the versions. */
static void hello(uint8_t out[CHANNEL_PAYLOAD], const struct channel_identity *id,
                  const char *domain, const uint8_t noise_pk[32])
{
    uint8_t text[64];
    size_t n = strlen(domain);
    memcpy(text, domain, n);
    memcpy(text + n, noise_pk, 32);
    memcpy(out, id->sign_pk, CHANNEL_ID);
    crypto_sign_detached(out + CHANNEL_ID, NULL, text, n + 32, id->sign_sk);
    /* The two version fields (least and greatest supported version) are 0, as at the honest end. */
    memset(out + CHANNEL_ID + 64, 0, 4);
}

/* A cheating member with the static keys of `id` sends `payload` in a handshake, once as the
 * responder and once as the initiator. Returns true if the honest end accepts both, false if it
 * refuses both. The test fails if the two results differ. */
static bool hello_is_believed(const struct talk *t, const struct channel_identity *id,
                              const uint8_t payload[CHANNEL_PAYLOAD])
{
    struct noise cheat;
    struct channel c;
    uint8_t in[CHANNEL_MSG2], out[CHANNEL_MSG2], theirs[CHANNEL_PAYLOAD];
    size_t n;
    cheat_begin(&cheat, false, t, id); /* The test acts as the cheating responder. */
    begin(&c, true, &t->ia, t->psk);
    assert_int_equal(channel_handshake(&c, NULL, 0, out, &n), 0);
    assert_int_equal(noise_read(&cheat, out, n, theirs), 0);
    assert_int_equal(noise_write(&cheat, payload, CHANNEL_PAYLOAD, in), 0);
    struct channel before = c;
    bool answered = channel_handshake(&c, in, CHANNEL_MSG2, out, &n) == 0;
    if (!answered)
        assert_refused(&before, in, CHANNEL_MSG2);

    cheat_begin(&cheat, true, t, id); /* The test acts as the cheating initiator. */
    begin(&c, false, &t->ib, t->psk);
    assert_int_equal(noise_write(&cheat, NULL, 0, in), 0);
    assert_int_equal(channel_handshake(&c, in, CHANNEL_MSG1, out, &n), 0);
    assert_int_equal(noise_read(&cheat, out, n, theirs), 0);
    assert_int_equal(noise_write(&cheat, payload, CHANNEL_PAYLOAD, in), 0);
    before = c;
    bool dialled = channel_handshake(&c, in, CHANNEL_MSG3, out, &n) == 0;
    if (!dialled)
        assert_refused(&before, in, CHANNEL_MSG3);
    assert_true(answered == dialled);
    return answered;
}

static void identity_is_bound_to_the_static_key(void **state)
{
    (void)state;
    struct talk t;
    struct channel_identity cheat;
    uint8_t payload[CHANNEL_PAYLOAD];
    talk_open(&t);
    identity(&cheat, 4);
    hello(payload, &cheat, "hearsay static key", cheat.noise_pk);
    assert_true(hello_is_believed(&t, &cheat, payload));
    /* Refused: the payload of another peer, replayed by the cheating member. */
    hello(payload, &t.ia, "hearsay static key", t.ia.noise_pk);
    assert_false(hello_is_believed(&t, &cheat, payload));
    /* Refused: a payload that names the cheating member, but signs a static key that this member
     * does not use. */
    hello(payload, &cheat, "hearsay static key", t.ia.noise_pk);
    assert_false(hello_is_believed(&t, &cheat, payload));
    /* Refused: a signature over the text for another purpose ("hearsay record"). */
    hello(payload, &cheat, "hearsay record", cheat.noise_pk);
    assert_false(hello_is_believed(&t, &cheat, payload));
    /* Refused: a payload that names another peer, but has the signature of the cheating member. */
    hello(payload, &cheat, "hearsay static key", cheat.noise_pk);
    memcpy(payload, t.ia.sign_pk, CHANNEL_ID);
    assert_false(hello_is_believed(&t, &cheat, payload));
}

/* Makes a handshake between `a`, which supports the versions `va`, and `b`, which supports `vb`.
 * Returns whether they have a common version, and stores that version in `*spoken`. */
static bool versions_agree(struct channel_versions va, struct channel_versions vb, uint16_t *spoken)
{
    struct talk t;
    struct channel a, b;
    uint8_t m1[CHANNEL_MSG2], m2[CHANNEL_MSG2], m3[CHANNEL_MSG2], sealed[64], plain[64];
    enum channel_kind kind;
    size_t n;
    talk_open(&t);
    begin(&a, true, &t.ia, t.psk);
    begin(&b, false, &t.ib, t.psk);
    channel_speak(&a, va);
    channel_speak(&b, vb);
    assert_int_equal(channel_handshake(&a, NULL, 0, m1, &n), 0);
    assert_int_equal(channel_handshake(&b, m1, n, m2, &n), 0);
    assert_int_equal(channel_handshake(&a, m2, n, m3, &n), 0);
    /* The initiator `a` sends message 3 even if there is no common version, so that `b` learns the
     * identity and versions of `a`. */
    assert_int_equal(n, CHANNEL_MSG3);
    assert_int_equal(channel_handshake(&b, m3, n, m2, &n), 0);
    assert_int_equal(a.state, b.state);
    assert_int_equal(a.version, b.version);
    assert_memory_equal(&a.theirs, &vb, sizeof vb);
    assert_memory_equal(&b.theirs, &va, sizeof va);
    assert_memory_equal(a.peer_id, t.ib.sign_pk, CHANNEL_ID);
    assert_memory_equal(b.peer_id, t.ia.sign_pk, CHANNEL_ID);
    *spoken = a.version;
    n = channel_seal(&a, CHANNEL_CONTROL_END, (const uint8_t *)"x", 1, NULL, 0, sealed);
    if (a.state == CHANNEL_NO_VERSION) {
        assert_int_equal(n + channel_wants(&a) + channel_wants(&b), 0);
        assert_int_equal(channel_open(&b, sealed, 18, plain, &n, &kind), -EPROTO);
        return false;
    }
    assert_int_equal(a.state, CHANNEL_OPEN);
    assert_int_equal(
        channel_open(&b, sealed + CHANNEL_HEADER, n - CHANNEL_HEADER, plain, &n, &kind), 0);
    return true;
}

static void the_highest_common_version(void **state)
{
    (void)state;
    uint16_t v;
    assert_true(
        versions_agree((struct channel_versions){4, 4}, (struct channel_versions){4, 4}, &v));
    assert_int_equal(v, 4);
    assert_true(
        versions_agree((struct channel_versions){4, 4}, (struct channel_versions){3, 5}, &v));
    assert_int_equal(v, 4);
    assert_true(versions_agree((struct channel_versions){2, 0x301},
                               (struct channel_versions){1, 0x2ff}, &v));
    assert_int_equal(v, 0x2ff);
    assert_false(
        versions_agree((struct channel_versions){4, 4}, (struct channel_versions){5, 6}, &v));
    assert_false(
        versions_agree((struct channel_versions){7, 9}, (struct channel_versions){5, 6}, &v));
}

/* Writes message 1 for an ephemeral public key `e` whose secret key is not known. This code is
 * independent of the one under test. */
static void forge_msg1(const struct talk *t, const uint8_t e[32], uint8_t out[CHANNEL_MSG1])
{
    uint8_t h[32], ck[32], temp[32], part[65], o1[32], o2[32], o3[32], both[64], nonce[12] = {0};
    crypto_hash_sha256(h, (const uint8_t *)xxpsk0.name, strlen(xxpsk0.name));
    memcpy(ck, h, 32);
    memcpy(both, h, 32);
    memcpy(both + 32, "hearsay/1", 9);
    crypto_hash_sha256(h, both, 41);
    /* Noise function MixKeyAndHash(psk): HKDF with three outputs, of which the third is not
     * used. */
    crypto_auth_hmacsha256(temp, t->psk, 32, ck);
    crypto_auth_hmacsha256(o1, (const uint8_t *)"\1", 1, temp);
    memcpy(part, o1, 32);
    part[32] = 2;
    crypto_auth_hmacsha256(o2, part, 33, temp);
    memcpy(ck, o1, 32);
    memcpy(both, h, 32);
    memcpy(both + 32, o2, 32);
    crypto_hash_sha256(h, both, 64);
    /* Noise token e: MixHash(e), then MixKey(e). */
    memcpy(both, h, 32);
    memcpy(both + 32, e, 32);
    crypto_hash_sha256(h, both, 64);
    crypto_auth_hmacsha256(temp, e, 32, ck);
    crypto_auth_hmacsha256(o1, (const uint8_t *)"\1", 1, temp);
    memcpy(part, o1, 32);
    crypto_auth_hmacsha256(o3, part, 33, temp);
    memcpy(out, e, 32);
    crypto_aead_chacha20poly1305_ietf_encrypt(out + 32, NULL, NULL, 0, h, 32, NULL, nonce, o3);
}

static void low_order_ephemerals_are_refused(void **state)
{
    (void)state;
    static const char *const points[] = {
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"};
    struct talk t;
    uint8_t e[32], msg1[CHANNEL_MSG1];
    talk_open(&t);
    /* Checks forge_msg1() itself: for a genuine ephemeral key its result equals the real message
     * 1. */
    forge_msg1(&t, t.msg1, msg1);
    assert_memory_equal(msg1, t.msg1, CHANNEL_MSG1);
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        sodium_hex2bin(e, sizeof e, points[i], 64, NULL, NULL, NULL);
        forge_msg1(&t, e, msg1);
        /* noise_read() accepts msg1, which is authentic. noise_write() then fails, because the
         * Diffie-Hellman result of `e` is 0. */
        struct noise s = t.b_before_1.noise;
        uint8_t out[CHANNEL_MSG2], nothing[1];
        assert_int_equal(noise_read(&s, msg1, sizeof msg1, nothing), 0);
        memset(out, 255, sizeof out);
        assert_int_equal(noise_write(&s, t.msg3, CHANNEL_PAYLOAD, out), -EPROTO);
        assert_true(sodium_is_zero(out, sizeof out));
        assert_refused(&t.b_before_1, msg1, sizeof msg1);
        /* In message 2 the low-order key is the ephemeral key of the responder. */
        uint8_t msg2[CHANNEL_MSG2];
        memcpy(msg2, t.msg2, sizeof msg2);
        memcpy(msg2, e, sizeof e);
        assert_refused(&t.a_before_2, msg2, sizeof msg2);
    }
}

static void identities_follow_their_seed(void **state)
{
    (void)state;
    struct channel_identity a, b, c;
    uint8_t sig[64], msg[] = {1, 2, 3}, pk[32];
    identity(&a, 1);
    identity(&b, 1);
    identity(&c, 2);
    assert_memory_equal(&a, &b, sizeof a);
    assert_memory_not_equal(a.sign_pk, c.sign_pk, 32);
    assert_memory_not_equal(a.noise_pk, c.noise_pk, 32);
    crypto_scalarmult_base(pk, a.noise_sk);
    assert_memory_equal(pk, a.noise_pk, 32);
    /* The secret key for Noise is not the one for signatures. */
    assert_memory_not_equal(a.noise_sk, a.sign_sk, 32);
    channel_sign(&a, msg, sizeof msg, sig);
    assert_true(channel_verify(a.sign_pk, msg, sizeof msg, sig));
    assert_false(channel_verify(c.sign_pk, msg, sizeof msg, sig));
    assert_false(channel_verify(a.sign_pk, msg, sizeof msg - 1, sig));
    for (size_t bit = 0; bit < 8 * sizeof sig; bit++) {
        sig[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(channel_verify(a.sign_pk, msg, sizeof msg, sig));
        sig[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    channel_identity_close(&a);
    assert_true(sodium_is_zero((uint8_t *)&a, sizeof a));
}

static void close_wipes(void **state)
{
    (void)state;
    struct talk t;
    struct channel zero;
    /* Unlike an initialiser, memset() also clears the padding bytes. */
    memset(&zero, 0, sizeof zero);
    zero.state = CHANNEL_FAILED;
    talk_open(&t);
    channel_close(&t.a);
    channel_close(&t.b_before_3);
    assert_int_equal(t.a.state, CHANNEL_FAILED);
    assert_memory_equal(&t.a, &zero, sizeof zero);
    assert_memory_equal(&t.b_before_3, &zero, sizeof zero);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_exchanged),
        cmocka_unit_test(every_flipped_bit_is_refused),
        cmocka_unit_test(every_wrong_length_is_refused),
        cmocka_unit_test(another_cluster_key_is_refused_at_once),
        cmocka_unit_test(junk_is_refused),
        cmocka_unit_test(messages_of_elsewhere_are_refused),
        cmocka_unit_test(identity_is_bound_to_the_static_key),
        cmocka_unit_test(the_highest_common_version),
        cmocka_unit_test(low_order_ephemerals_are_refused),
        cmocka_unit_test(identities_follow_their_seed),
        cmocka_unit_test(close_wipes),
    };
    if (sodium_init() < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
