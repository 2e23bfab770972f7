/* peer/uv/identity.h -- the identity of a peer: a secret key in a file, which one process uses
 * at a time. */
#ifndef PEER_UV_IDENTITY_H
#define PEER_UV_IDENTITY_H

#include "peer/node/node.h"
#include "peer/secure/channel.h"
#include "peer/secure/keyfile.h"

#include <stdbool.h>

/* Reads the seed of the identity's key from the file `path`, or creates the file. The file is
 * locked as long as the descriptor *lock is open, so that no two processes are the same peer.
 * Returns 0, or a negative errno with a sentence in error[]; after an error nothing is open.
 * -EBUSY: another process has the lock. */
__attribute__((warn_unused_result)) int uv_identity_own(const char *path,
                                                        uint8_t seed[KEYFILE_BYTES], int *lock,
                                                        char error[KEYFILE_ERROR_MAX]);

/* Reads the identity in the file `path` without a lock, so another process may be using it. If
 * the file is missing, it is created and *made is true; with made == NULL a missing file is an
 * error. Returns 0, or a negative errno with a sentence in error[]. */
__attribute__((warn_unused_result)) int uv_identity_read(const char *path,
                                                         struct channel_identity *id, bool *made,
                                                         char error[KEYFILE_ERROR_MAX]);

/* Returns functions that sign with `id` and verify. `id` must exist as long as the result is
 * used. */
struct members_crypto uv_identity_crypto(struct channel_identity *id);

/* Writes the public key as text, in the form of a members file. */
void uv_identity_text(const uint8_t id[WIRE_ID_BYTES], char text[2 * WIRE_ID_BYTES + 1]);

#endif
