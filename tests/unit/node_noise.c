/* tests/unit/node_noise.c -- tests of the Noise handshake interpreter (peer/secure/noise.h) against
 * public test vectors. */
#include "peer/secure/noise.h"
#include "tests/golden/noise_vectors.h"

#include <errno.h>
#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { BYTES_MAX = 256 };

#define XX_1 NOISE_E
#define XX_2 NOISE_E, NOISE_EE, NOISE_S, NOISE_ES
#define XX_3 NOISE_S, NOISE_SE

/* Handshake patterns, one for each protocol name in the test vectors. */
static const struct noise_pattern patterns[] = {
    {"Noise_XX_25519_ChaChaPoly_SHA256", 3, 0, {{XX_1}, {XX_2}, {XX_3}}},
    {"Noise_XXpsk0_25519_ChaChaPoly_SHA256", 3, 1, {{NOISE_PSK, XX_1}, {XX_2}, {XX_3}}},
    {"Noise_XXpsk0+psk1_25519_ChaChaPoly_SHA256",
     3,
     2,
     {{NOISE_PSK, XX_1, NOISE_PSK}, {XX_2}, {XX_3}}},
    {"Noise_XXpsk0+psk2_25519_ChaChaPoly_SHA256",
     3,
     2,
     {{NOISE_PSK, XX_1}, {XX_2, NOISE_PSK}, {XX_3}}},
    {"Noise_XXpsk0+psk3_25519_ChaChaPoly_SHA256",
     3,
     2,
     {{NOISE_PSK, XX_1}, {XX_2}, {XX_3, NOISE_PSK}}}};

struct blob
{
    uint8_t bytes[BYTES_MAX];
    size_t n;
};

static struct blob unhex(const char *hex)
{
    struct blob b = {.n = 0};
    assert_non_null(hex);
    assert_int_equal(sodium_hex2bin(b.bytes, sizeof b.bytes, hex, strlen(hex), NULL, &b.n, NULL),
                     0);
    return b;
}

static const struct noise_pattern *find_pattern(const char *name)
{
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
        if (strcmp(patterns[i].name, name) == 0)
            return &patterns[i];
    fail_msg("no pattern %s", name);
    return NULL;
}

static void start(struct noise *s, const struct noise_vector *v, bool initiator)
{
    struct blob prologue = unhex(initiator ? v->init_prologue : v->resp_prologue);
    struct blob sk = unhex(initiator ? v->init_static : v->resp_static);
    struct blob e = unhex(initiator ? v->init_ephemeral : v->resp_ephemeral);
    const char *const *hex = initiator ? v->init_psks : v->resp_psks;
    struct noise_config config = {.pattern = find_pattern(v->name),
                                  .initiator = initiator,
                                  .prologue = prologue.bytes,
                                  .n_prologue = prologue.n,
                                  .s_sk = sk.bytes,
                                  .e_sk = e.bytes};
    uint8_t pk[NOISE_KEY];
    struct blob psk[NOISE_PSKS_MAX];
    crypto_scalarmult_base(pk, sk.bytes);
    config.s_pk = pk;
    for (unsigned i = 0; i < config.pattern->n_psks; i++) {
        psk[i] = unhex(hex[i]);
        assert_int_equal(psk[i].n, NOISE_KEY);
        config.psk[i] = psk[i].bytes;
    }
    noise_init(s, &config);
}

static void check_message(struct noise *writer, struct noise *reader, const struct blob *payload,
                          const struct blob *wire)
{
    uint8_t out[BYTES_MAX], back[BYTES_MAX];
    assert_true(noise_writes(writer) && noise_reads(reader));
    assert_int_equal(noise_overhead(writer), wire->n - payload->n);
    assert_int_equal(noise_overhead(reader), wire->n - payload->n);
    assert_int_equal(noise_write(writer, payload->bytes, payload->n, out), 0);
    assert_memory_equal(out, wire->bytes, wire->n);
    assert_int_equal(noise_read(reader, wire->bytes, wire->n, back), 0);
    assert_memory_equal(back, payload->bytes, payload->n);
}

static void check_transport(struct noise_cipher *send, struct noise_cipher *recv,
                            const struct blob *payload, const struct blob *wire)
{
    uint8_t out[BYTES_MAX];
    assert_int_equal(payload->n + NOISE_TAG, wire->n);
    assert_int_equal(noise_seal(send, NULL, 0, payload->bytes, payload->n, out), 0);
    assert_memory_equal(out, wire->bytes, wire->n);
    /* noise_open() decrypts in place here. */
    assert_int_equal(noise_open(recv, NULL, 0, out, wire->n, out), 0);
    assert_memory_equal(out, payload->bytes, payload->n);
}

static void check_vector(const struct noise_vector *v)
{
    struct noise side[2]; /* side[0] is the initiator of the handshake. */
    struct noise_cipher send[2], recv[2];
    start(&side[0], v, true);
    start(&side[1], v, false);
    unsigned handshake = side[0].pattern->n_messages, i = 0;
    for (; v->messages[i].payload != NULL; i++) {
        struct blob payload = unhex(v->messages[i].payload),
                    wire = unhex(v->messages[i].ciphertext);
        unsigned w = i % 2, r = 1 - w;
        if (i < handshake)
            check_message(&side[w], &side[r], &payload, &wire);
        else
            check_transport(&send[w], &recv[r], &payload, &wire);
        if (i + 1 != handshake)
            continue;
        for (unsigned s = 0; s < 2; s++) {
            assert_true(noise_done(&side[s]) && !noise_writes(&side[s]) && !noise_reads(&side[s]));
            noise_split(&side[s], &send[s], &recv[s]);
        }
        assert_memory_equal(side[0].h, side[1].h, NOISE_KEY);
        if (v->handshake_hash[0] != '\0')
            assert_memory_equal(side[0].h, unhex(v->handshake_hash).bytes, NOISE_KEY);
        assert_memory_equal(side[0].rs, side[1].s_pk, NOISE_KEY);
        assert_memory_equal(side[1].rs, side[0].s_pk, NOISE_KEY);
    }
    /* Each test vector contains transport messages in both directions, after those of the
     * handshake. */
    assert_true(i > handshake + 1);
}

static void vectors_are_met(void **state)
{
    (void)state;
    size_t n = sizeof noise_vectors / sizeof noise_vectors[0], hashes = 0;
    assert_true(n >= 6);
    for (size_t i = 0; i < n; i++) {
        check_vector(&noise_vectors[i]);
        hashes += noise_vectors[i].handshake_hash[0] != '\0';
    }
    assert_true(hashes >= 2);
}

static const struct noise_vector *vector_named(const char *name)
{
    for (size_t i = 0; i < sizeof noise_vectors / sizeof noise_vectors[0]; i++)
        if (strcmp(noise_vectors[i].name, name) == 0)
            return &noise_vectors[i];
    fail_msg("no vector %s", name);
    return NULL;
}

/* The modifier psk0 protects message 1 of a handshake. The message is refused with another
 * pre-shared key, and so is every truncation of the message. */
static void first_message_is_guarded_by_psk0(void **state)
{
    (void)state;
    const struct noise_vector *v = vector_named("Noise_XXpsk0+psk3_25519_ChaChaPoly_SHA256");
    struct blob wire = unhex(v->messages[0].ciphertext);
    uint8_t payload[BYTES_MAX];
    struct noise s;
    for (size_t n = 0; n <= wire.n; n++) {
        start(&s, v, false);
        assert_int_equal(noise_read(&s, wire.bytes, n, payload), n == wire.n ? 0 : -EPROTO);
    }
    start(&s, v, false);
    s.psk[0][0] ^= 1;
    assert_int_not_equal(noise_read(&s, wire.bytes, wire.n, payload), 0);
    assert_true(s.failed && !noise_done(&s) && !noise_reads(&s) && !noise_writes(&s));
    assert_true(sodium_is_zero(s.psk[1], NOISE_KEY) && sodium_is_zero(s.s_sk, NOISE_KEY));
}

/* Noise specification: REKEY(k) is the first 32 bytes of ENCRYPT(k, 2^64 - 1, "", 32 zero
 * bytes). */
static void rekey_follows_the_specification(void **state)
{
    (void)state;
    struct noise_cipher c = {.n = 7, .keyed = true};
    uint8_t nonce[12] = {0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255}, zeros[32] = {0},
            want[48];
    for (int i = 0; i < NOISE_KEY; i++)
        c.k[i] = (uint8_t)i;
    crypto_aead_chacha20poly1305_ietf_encrypt(want, NULL, zeros, 32, NULL, 0, NULL, nonce, c.k);
    noise_rekey(&c);
    assert_memory_equal(c.k, want, NOISE_KEY);
    assert_int_equal(c.n, 7);
}

/* All 8 bytes of the counter are part of the nonce, the least significant first. Two records with
 * the same key therefore never have the same nonce. */
static void nonce_is_the_whole_counter(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        struct noise_cipher send = {.n = (UINT64_C(1) << 8 * i) + 5, .keyed = true}, recv = send;
        uint8_t nonce[12] = {0}, m[4] = {1, 2, 3, 4}, out[4 + NOISE_TAG], want[4 + NOISE_TAG];
        nonce[4] = 5;
        nonce[4 + i] = (uint8_t)(nonce[4 + i] + 1);
        crypto_aead_chacha20poly1305_ietf_encrypt(want, NULL, m, sizeof m, NULL, 0, NULL, nonce,
                                                  send.k);
        assert_int_equal(noise_seal(&send, NULL, 0, m, sizeof m, out), 0);
        assert_memory_equal(out, want, sizeof want);
        assert_int_equal(noise_open(&recv, NULL, 0, want, sizeof want, out), 0);
        assert_memory_equal(out, m, sizeof m);
    }
}

static void nonces_never_wrap(void **state)
{
    (void)state;
    struct noise_cipher send = {.n = UINT64_MAX - 1, .keyed = true}, recv = send;
    uint8_t m[4] = {1, 2, 3, 4}, out[4 + NOISE_TAG], again[4 + NOISE_TAG];
    assert_int_equal(noise_seal(&send, NULL, 0, m, sizeof m, out), 0);
    assert_int_equal(noise_open(&recv, NULL, 0, out, sizeof out, again), 0);
    assert_memory_equal(again, m, sizeof m);
    assert_int_not_equal(noise_seal(&send, NULL, 0, m, sizeof m, out), 0);
    /* A record with the nonce 2^64 - 1, which is reserved for REKEY, is refused. */
    uint8_t nonce[12] = {0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255};
    crypto_aead_chacha20poly1305_ietf_encrypt(out, NULL, m, sizeof m, NULL, 0, NULL, nonce, recv.k);
    assert_int_not_equal(noise_open(&recv, NULL, 0, out, sizeof out, again), 0);
    assert_true(send.n == UINT64_MAX && recv.n == UINT64_MAX);
}

/* A noise_open() that fails does not change the cipher, so the genuine record can still be
 * opened. */
static void failed_open_changes_nothing(void **state)
{
    (void)state;
    struct noise_cipher send = {.keyed = true}, recv = send;
    uint8_t m[4] = {1, 2, 3, 4}, wire[4 + NOISE_TAG], bad[4 + NOISE_TAG], out[4 + NOISE_TAG];
    assert_int_equal(noise_seal(&send, NULL, 0, m, sizeof m, wire), 0);
    memcpy(bad, wire, sizeof bad);
    bad[2] ^= 4;
    assert_int_not_equal(noise_open(&recv, NULL, 0, bad, sizeof bad, out), 0);
    assert_int_not_equal(noise_open(&recv, NULL, 0, wire, NOISE_TAG - 1, out), 0);
    assert_int_equal(noise_open(&recv, NULL, 0, wire, sizeof wire, out), 0);
    assert_memory_equal(out, m, sizeof m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_are_met),
        cmocka_unit_test(first_message_is_guarded_by_psk0),
        cmocka_unit_test(rekey_follows_the_specification),
        cmocka_unit_test(nonce_is_the_whole_counter),
        cmocka_unit_test(nonces_never_wrap),
        cmocka_unit_test(failed_open_changes_nothing),
    };
    if (sodium_init() < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
