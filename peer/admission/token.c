/* peer/admission/token.c -- encodes and decodes join tokens, and makes a certificate from a
 * token. */
#include "peer/admission/token.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <sodium.h>

enum {
    VERSION = 2, /* Format version of a token. Version 1 had its expiry time in seconds. */
    AT_ISSUER = 1,
    AT_EXPIRES = AT_ISSUER + WIRE_ID_BYTES,
    AT_SEED = AT_EXPIRES + 8,
    AT_ISSUED = AT_SEED + 32,
    SIGNED_MAX = 256,
    BASE64 = sodium_base64_VARIANT_URLSAFE_NO_PADDING
};

static const char prefix[] = "hearsay-";

/* Derives the token's Ed25519 key pair from its seed. The caller must wipe `sk`. */
static void key_pair(const uint8_t seed[32], uint8_t pk[32], uint8_t sk[64])
{
    crypto_sign_seed_keypair(pk, sk, seed);
}

void token_write(char text[TOKEN_TEXT + 1], const struct channel_identity *issuer,
                 uint64_t expires_ms, const uint8_t seed[32])
{
    uint8_t raw[TOKEN_BYTES] = {VERSION}, msg[SIGNED_MAX], sk[64];
    struct certificate c = {.expires_ms = expires_ms};
    key_pair(seed, c.key, sk);
    memcpy(raw + AT_ISSUER, issuer->sign_pk, WIRE_ID_BYTES);
    for (int i = 0; i < 8; i++)
        raw[AT_EXPIRES + i] = (uint8_t)(expires_ms >> (56 - 8 * i));
    memcpy(raw + AT_SEED, seed, 32);
    channel_sign(issuer, msg, wire_token_signed(msg, sizeof msg, &c), raw + AT_ISSUED);
    memcpy(text, prefix, strlen(prefix));
    sodium_bin2base64(text + strlen(prefix), TOKEN_TEXT + 1 - strlen(prefix), raw, sizeof raw,
                      BASE64);
    assert(strlen(text) == TOKEN_TEXT);
    sodium_memzero(raw, sizeof raw);
    sodium_memzero(sk, sizeof sk);
}

static bool decode(uint8_t raw[TOKEN_BYTES], const char *text)
{
    size_t n = 0;
    return strlen(text) == TOKEN_TEXT && strncmp(text, prefix, strlen(prefix)) == 0
           && sodium_base642bin(raw, TOKEN_BYTES, text + strlen(prefix),
                                TOKEN_TEXT - strlen(prefix), NULL, &n, NULL, BASE64)
                  == 0
           && n == TOKEN_BYTES && raw[0] == VERSION;
}

int token_certify(struct certificate *c, const char *text, const uint8_t id[WIRE_ID_BYTES],
                  char error[TOKEN_ERROR_MAX])
{
    uint8_t raw[TOKEN_BYTES], msg[SIGNED_MAX], sk[64];
    if (!decode(raw, text)) {
        snprintf(error, TOKEN_ERROR_MAX,
                 "found %zu characters that are not a token, expected the %d characters of a "
                 "token, as hearsay key invite prints it",
                 strlen(text), TOKEN_TEXT);
        sodium_memzero(raw, sizeof raw);
        return -EINVAL;
    }
    struct certificate made = {.expires_ms = 0};
    memcpy(made.issuer, raw + AT_ISSUER, sizeof made.issuer);
    for (int i = 0; i < 8; i++)
        made.expires_ms = made.expires_ms << 8 | raw[AT_EXPIRES + i];
    memcpy(made.issued, raw + AT_ISSUED, sizeof made.issued);
    key_pair(raw + AT_SEED, made.key, sk);
    sodium_memzero(raw, sizeof raw);
    bool sound =
        channel_verify(made.issuer, msg, wire_token_signed(msg, sizeof msg, &made), made.issued);
    if (sound)
        crypto_sign_detached(made.presented, NULL, msg, wire_presented_signed(msg, sizeof msg, id),
                             sk);
    sodium_memzero(sk, sizeof sk);
    if (!sound) {
        snprintf(error, TOKEN_ERROR_MAX,
                 "found a damaged token: the signature of its issuer does not match, expected the "
                 "token as hearsay key invite printed it");
        return -EINVAL;
    }
    *c = made;
    return 0;
}
