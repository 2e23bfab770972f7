/* tests/unit/node_token.c -- tests of join tokens: how a new peer makes a certificate from a token,
 * and that a certificate cannot be changed. */
#include "peer/admission/token.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct channel_identity issuer, newcomer;
static char text[TOKEN_TEXT + 1], why[TOKEN_ERROR_MAX];

static int open_all(void **state)
{
    uint8_t seed[32] = {1};
    (void)state;
    channel_identity_from_seed(&issuer, seed);
    seed[0] = 2;
    channel_identity_from_seed(&newcomer, seed);
    seed[0] = 3;
    token_write(text, &issuer, UINT64_C(0x123456789a), seed);
    return 0;
}

static bool is_issued(const struct certificate *c)
{
    uint8_t msg[256];
    return channel_verify(c->issuer, msg, wire_token_signed(msg, sizeof msg, c), c->issued);
}

static bool is_of(const struct certificate *c, const uint8_t *id)
{
    uint8_t msg[256];
    return channel_verify(c->key, msg, wire_presented_signed(msg, sizeof msg, id), c->presented);
}

static void test_certificate(void **state)
{
    struct certificate c, other;
    (void)state;
    assert_int_equal(strlen(text), TOKEN_TEXT);
    assert_int_equal(token_certify(&c, text, newcomer.sign_pk, why), 0);
    assert_memory_equal(c.issuer, issuer.sign_pk, WIRE_ID_BYTES);
    assert_true(c.expires_ms == UINT64_C(0x123456789a));
    assert_true(is_issued(&c));
    assert_true(is_of(&c, newcomer.sign_pk));
    assert_false(is_of(&c, issuer.sign_pk)); /* The certificate is valid for no other peer. */
    other = c;
    other.expires_ms++; /* A changed expiry time makes the signature of the issuer invalid. */
    assert_false(is_issued(&other));
    other = c;
    /* A changed key makes the signature of the issuer invalid. */
    memcpy(other.key, newcomer.sign_pk, WIRE_ID_BYTES);
    assert_false(is_issued(&other));
    other = c;
    /* A changed issuer makes the signature of the issuer invalid. */
    memcpy(other.issuer, newcomer.sign_pk, WIRE_ID_BYTES);
    assert_false(is_issued(&other));
    assert_int_equal(token_certify(&other, text, issuer.sign_pk, why),
                     0); /* Several peers may use one token to obtain certificates. */
    assert_true(is_issued(&other) && is_of(&other, issuer.sign_pk));
}

/* A token with one changed character or of another length is refused, and `c` is unchanged. */
static void test_damaged(void **state)
{
    struct certificate c, before;
    (void)state;
    memset(&c, 7, sizeof c);
    before = c;
    for (size_t i = 0; i < TOKEN_TEXT; i++) {
        char bad[TOKEN_TEXT + 1];
        strcpy(bad, text);
        bad[i] = bad[i] == 'A' ? 'B' : 'A';
        if (token_certify(&c, bad, newcomer.sign_pk, why) == 0) {
            /* The token contains a seed. A changed seed makes another key, which the issuer has not
             * signed. */
            fail_msg("character %zu may be another one", i);
        }
        assert_true(strncmp(why, "found ", 6) == 0 && strstr(why, ", expected ") != NULL);
    }
    for (size_t n = 0; n < TOKEN_TEXT + 4; n++) {
        char bad[TOKEN_TEXT + 5];
        memset(bad, 'A', sizeof bad);
        memcpy(bad, text, n < TOKEN_TEXT ? n : TOKEN_TEXT);
        bad[n] = '\0';
        if (n != TOKEN_TEXT)
            assert_int_equal(token_certify(&c, bad, newcomer.sign_pk, why), -EINVAL);
    }
    assert_memory_equal(&c, &before, sizeof c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_certificate),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, open_all, NULL);
}
