/* tests/fuzz/fuzz_token.c -- fuzzes the text of a join token.
 *
 *   input:   how u8 | text            if `how` is odd, the text is made from 137 raw bytes
 *
 * A refused token leaves the certificate unchanged, and the error says what was found and what was
 * expected. An accepted token is signed by its issuer and with its own key, and reading it again
 * gives the same certificate. */
#include "peer/admission/token.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
size_t LLVMFuzzerCustomMutator(uint8_t *p, size_t n, size_t max, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *p, size_t n, size_t max);

static void demand(bool ok)
{
    if (!ok)
        abort();
}

static char *text_of(const uint8_t *p, size_t n)
{
    static uint8_t raw[TOKEN_BYTES];
    char *text = malloc(n + TOKEN_TEXT + 2);
    demand(text != NULL);
    if (!(p[0] & 1)) {
        memcpy(text, p + 1, n - 1);
        text[n - 1] = '\0';
        return text;
    }
    memset(raw, 0, sizeof raw);
    memcpy(raw, p + 1, n - 1 < sizeof raw ? n - 1 : sizeof raw);
    memcpy(text, "hearsay-", 8);
    sodium_bin2base64(text + 8, TOKEN_TEXT + 1 - 8, raw, sizeof raw,
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static const uint8_t id[WIRE_ID_BYTES] = {7};
    struct certificate c, before, again;
    char error[TOKEN_ERROR_MAX] = "";
    uint8_t msg[256];
    if (n == 0 || n > 1024 || sodium_init() < 0)
        return 0;
    char *text = text_of(p, n);
    memset(&c, 0xa5, sizeof c);
    before = c;
    int err = token_certify(&c, text, id, error);
    demand(err == 0 || err == -EINVAL);
    if (err != 0) {
        demand(memcmp(&c, &before, sizeof c) == 0);
        demand(strstr(error, "found ") != NULL && strstr(error, ", expected ") != NULL);
    } else {
        demand(strlen(text) == TOKEN_TEXT);
        demand(channel_verify(c.issuer, msg, wire_token_signed(msg, sizeof msg, &c), c.issued));
        demand(channel_verify(c.key, msg, wire_presented_signed(msg, sizeof msg, id), c.presented));
        demand(token_certify(&again, text, id, error) == 0);
        demand(memcmp(&c, &again, sizeof c) == 0);
    }
    free(text);
    return 0;
}

/* Produces a valid token for some inputs, because mutated tokens never have a valid signature. */
size_t LLVMFuzzerCustomMutator(uint8_t *p, size_t n, size_t max, unsigned seed)
{
    struct channel_identity issuer;
    uint8_t bytes[32] = {(uint8_t)seed};
    if (seed % 16 != 0 || max < TOKEN_TEXT + 2)
        return LLVMFuzzerMutate(p, n, max);
    channel_identity_from_seed(&issuer, bytes);
    token_write((char *)p + 1, &issuer, seed, bytes);
    p[0] = 0;
    return 1 + TOKEN_TEXT;
}
