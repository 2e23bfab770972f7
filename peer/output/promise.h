/* peer/output/promise.h -- the file `promise` of an output directory.
 *
 * In the finish protocol (peer/node/finish) a peer sends a promise that it must keep after a
 * restart, so the promise is stored in this file. This module does not interpret the bytes.
 *
 *   bytes              content
 *   0 .. n - 1         the promise
 *   n .. n + 15        BLAKE2b-128 hash of the promise (peer/secure/hash.h)
 *
 * A file whose hash does not match is refused, because a changed promise could become a vote or a
 * certificate that no peer has made. Files of earlier versions have no hash, so they are refused,
 * too. A peer with a refused promise does not vote.
 */
#ifndef PEER_OUTPUT_PROMISE_H
#define PEER_OUTPUT_PROMISE_H

#include "gossip/wire/wire.h"

enum {
    /* Largest size of a promise in bytes, at least FINISH_PROMISE_MAX (peer/node/finish/finish.h). */
    PROMISE_MAX = WIRE_FINISH_PROPOSAL_MAX + 256
};

/* A promise of the finish protocol, read from its file. */
struct promise
{
    size_t n; /* Length of the promise in bytes. 0: no promise is stored. */
    uint8_t bytes[PROMISE_MAX];
};

/* Stores a promise of the finish protocol, n bytes (at most PROMISE_MAX), as DIR/promise, atomically
 * and durably. Returns 0 or a negative errno. */
__attribute__((warn_unused_result)) int promise_write(const char *dir, const uint8_t *bytes,
                                                      size_t n);
/* Reads the finish protocol's promise from DIR/promise into *p. A missing file gives p->n = 0. If
 * the file cannot be read, or does not end with the hash of its promise, *p becomes one byte, which
 * is not a valid promise. */
void promise_read(struct promise *p, const char *dir);
/* Deletes DIR/promise, the promise of the finish protocol. Called when the run in `dir` has
 * finished. */
void promise_remove(const char *dir);

#endif
