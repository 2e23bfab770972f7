/* gossip/mixers/companion.h -- the companion vectors, which peers exchange and mix like the model,
 * for example the moments of the optimiser.
 *
 * Used by the other files of this folder only. mixing.h describes the layouts.
 */
#ifndef GOSSIP_MIXERS_COMPANION_H
#define GOSSIP_MIXERS_COMPANION_H

#include "gossip/mixers/mixing.h"

/* Size in bytes of the length field before each encoded companion vector in a message. */
enum { COMPANION_HEAD = 4 };

/* Returns whether the encoded companion vectors at the start of message[0..n) are valid. Sets *at
 * to the position of the encoded model, which follows them. Sets *at to 0 if messages of this codec
 * do not contain companion vectors. */
bool companion_valid(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n,
                     size_t *at);

/* Decodes the differences of the companion vectors in a valid message, and adds them to the
 * companions' parts of `replica`. Returns the position of the encoded model in the message. */
size_t companion_add(const struct mixing *m, uint32_t codec, const uint8_t *message,
                     float *replica);

/* Encodes the differences between the companion vectors and their replicas, which are parts of
 * in->x_hat, and writes them to the start of a message. Sets *n to the number of bytes, or to 0 if
 * messages of this codec do not contain companion vectors. Returns 0, or -ERANGE if a difference is
 * not finite or is too large. */
int companion_put(const struct mixing *m, uint32_t codec, const struct compress_input *in,
                  uint8_t *message, size_t *n);

/* Moves the companion vectors by the correction from one neighbour, as correction_mix() moves the
 * model. Does nothing if a delta of the exchange lacks the companion vectors or if the exchange was
 * refused. */
void companion_mix(const struct mixing *m, const struct correction *term);

/* Subtracts from the companion vector the flow of edge e (the sum of the changes by its exchanges),
 * and sets the flow to 0. Does nothing if the edge stores no flow. */
void companion_take_back(const struct mixing *m, struct edge *e);

#endif
