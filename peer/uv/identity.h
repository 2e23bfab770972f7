/* peer/uv/identity.h -- the identity of a peer: a secret key in a file, which one process uses at a time. */
#ifndef PEER_UV_IDENTITY_H
#define PEER_UV_IDENTITY_H

#include "peer/node/node.h"
#include "peer/secure/channel.h"
#include "peer/secure/keyfile.h"

#include <stdbool.h>

/* The identity's seed in `path`: read it, or make it. The file is locked as long as the descriptor
 * *lock is open, so that no two processes are one peer: -EBUSY. 0 or a negative errno with a
 * sentence; then nothing is open. */
__attribute__((warn_unused_result)) int uv_identity_own(const char *path,
                                                        uint8_t seed[KEYFILE_BYTES], int *lock,
                                                        char error[KEYFILE_ERROR_MAX]);

/* The identity in `path`, which another process may be using: nothing is locked. Where it is missing
 * it is made, and *made says so; with made == NULL that is an error. */
__attribute__((warn_unused_result)) int uv_identity_read(const char *path,
                                                         struct channel_identity *id, bool *made,
                                                         char error[KEYFILE_ERROR_MAX]);

/* Signing by it; it must outlive what is made. */
struct members_crypto uv_identity_crypto(struct channel_identity *id);

/* Writes the public key as text, in the form of a members file. */
void uv_identity_text(const uint8_t id[WIRE_ID_BYTES], char text[2 * WIRE_ID_BYTES + 1]);

#endif
