/* peer/admission/token.h -- join tokens, with which a member on the allow-list admits a peer
 * that is not on it.
 *
 *   issuer    makes a token with `hearsay key invite`. The token has the identity of the issuer,
 *             an expiry time, the secret seed of a new key pair, and the issuer's signature of
 *             the expiry time and the public key
 *   newcomer  signs its own identity with that seed. The result is a certificate in the newcomer's
 *             member record, which is valid for no other identity
 *
 * A token is one line of text and must be kept secret until it expires: any peer that has the
 * token and the cluster key may join. Any number of newcomers may use one token. Text form of a
 * token:
 *
 *   "hearsay-" | base64url of:
 *                2 | issuer (32) | expires_ms (8, big-endian) | seed (32) | issued (64)
 */
#ifndef PEER_ADMISSION_TOKEN_H
#define PEER_ADMISSION_TOKEN_H

#include "gossip/wire/wire.h"
#include "peer/secure/channel.h"

enum {
    TOKEN_BYTES = 1 + WIRE_ID_BYTES + 8 + 32 + WIRE_SIGNATURE_BYTES,
    TOKEN_TEXT = 8 + (TOKEN_BYTES * 4 + 2) / 3, /* Length of the text of a token, in characters. */
    TOKEN_ERROR_MAX = 160
};

/* Writes a new token of `issuer` to `text`. `expires_ms` is the expiry time in milliseconds of Unix
 * time. `seed` is 32 fresh random bytes, which the caller wipes afterwards. */
void token_write(char text[TOKEN_TEXT + 1], const struct channel_identity *issuer,
                 uint64_t expires_ms, const uint8_t seed[32]);

/* Makes the certificate that admits the identity `id` by the token `text`. Returns 0, or -EINVAL
 * with a message if `text` is not a token or its issuer's signature is wrong. Expiry is not checked
 * here: the peer that receives the certificate checks it by its own clock. */
__attribute__((warn_unused_result)) int token_certify(struct certificate *c, const char *text,
                                                      const uint8_t id[WIRE_ID_BYTES],
                                                      char error[TOKEN_ERROR_MAX]);

#endif
