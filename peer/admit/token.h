/* peer/admit/token.h -- join tokens: who is on the list lets somebody in who is not.
 *
 *   issuer    hearsay key invite: token = issuer, expiry, a fresh key pair's secret seed, and the
 *             issuer's signature over expiry and public key
 *   newcomer  signs its own identity with that seed: a certificate, which travels in its record
 *             and is of no use to anybody else
 *
 * A token is one line of text, and secret until it has expired: whoever has it, and the cluster
 * key, may join. Any number of newcomers may use it.
 *
 *   "hearsay-" | base64url of:  2 | issuer (32) | expires_ms (8, big-endian) | seed (32) | issued (64)
 */
#ifndef PEER_ADMIT_TOKEN_H
#define PEER_ADMIT_TOKEN_H

#include "gossip/wire/wire.h"
#include "peer/secure/channel.h"

enum {
    TOKEN_BYTES = 1 + WIRE_ID_BYTES + 8 + 32 + WIRE_SIGNATURE_BYTES,
    TOKEN_TEXT = 8 + (TOKEN_BYTES * 4 + 2) / 3, /* Characters. */
    TOKEN_ERROR_MAX = 160
};

/* A new token of `issuer`; seed is 32 fresh random bytes, the caller's to wipe. */
void token_write(char text[TOKEN_TEXT + 1], const struct channel_identity *issuer,
                 uint64_t expires_ms, const uint8_t seed[32]);

/* The certificate that a token makes for the identity `id`. 0, or -EINVAL with what was found and
 * expected: not a token, or damaged, which its issuer's signature shows. An expired one is as good
 * as any: whoever is asked first decides by its own clock. */
__attribute__((warn_unused_result)) int token_present(struct certificate *c, const char *text,
                                                      const uint8_t id[WIRE_ID_BYTES],
                                                      char error[TOKEN_ERROR_MAX]);

#endif
