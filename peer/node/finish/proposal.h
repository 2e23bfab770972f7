/* peer/node/finish/proposal.h -- the encoding of proposals of the finish protocol, and their
 * consensus distance.
 *
 *   bytes    content
 *   0..3     consensus distance relative to the norm of the mean model, float32. Infinite: unknown.
 *   4..7     norm of the mean model, float32
 *   8..15    number of the ballot in which the proposal was made (`origin`), uint64
 *   16..47   identity of the peer that coordinated this ballot
 *   48..     9 bytes per member: first 8 bytes of its identity, and its status
 *
 * Numbers are little-endian. The members are sorted by identity, so equal proposals have equal
 * bytes.
 *
 * Sums of squares are combined as in Chan, Golub and LeVeque (1983), so that a distance that is
 * much smaller than the mean keeps its digits.
 *
 * Only this folder and tests include this header.
 */
#ifndef PEER_NODE_FINISH_PROPOSAL_H
#define PEER_NODE_FINISH_PROPOSAL_H

#include "peer/node/finish/finish.h"

/* Adds the evidence *b to *a. If both are valid, the sum is valid. O(SKETCH_K). */
void finish_evidence_add(struct finish_evidence *a, const struct finish_evidence *b);
/* Returns the consensus distance Xi / |mean|. 0: all models are equal. INFINITY: there is no model,
 * or the estimate of |mean|^2 is not positive. Sets *mean_norm to |mean|. */
double finish_evidence_distance(const struct finish_evidence *e, double *mean_norm);

/* ---- encoding ---- */

/* Writes the lowest `n` bytes of v, the lowest first. Returns the end of the bytes. */
uint8_t *finish_put_number(uint8_t *out, uint64_t v, size_t n);
/* Reads a number of n bytes, the lowest first. */
uint64_t finish_get_number(const uint8_t *p, size_t n);
/* Write and read a float32 of 4 bytes. */
void finish_put_float(uint8_t *out, float v);
float finish_get_float(const uint8_t *p);
/* Encodes a ballot: its number, little-endian, and the identity. Returns the end of the bytes. */
uint8_t *finish_put_ballot(uint8_t *out, const struct wire_ballot *b);
/* Decodes a ballot of FINISH_BALLOT bytes. Returns the end of the bytes. */
const uint8_t *finish_get_ballot(const uint8_t *p, struct wire_ballot *b);

/* Reads entry i of the list of members in a message (struct wire_finish). Returns the member's key
 * and sets *flags. */
uint64_t finish_entry(struct bytes list, uint32_t i, uint8_t *flags);
/* Writes a key (finish_key()) to `out`, the most significant byte first. */
void finish_put_key(uint8_t out[WIRE_FINISH_KEY], uint64_t key);
/* Writes the entry of one member in a list of members to `out`, WIRE_FINISH_ENTRY bytes. */
void finish_put_entry(uint8_t *out, uint64_t key, uint8_t flags);

/* Encodes a proposal. Returns the number of bytes, at most WIRE_FINISH_PROPOSAL_MAX. */
size_t finish_encode(uint8_t out[WIRE_FINISH_PROPOSAL_MAX], const struct finish_proposal *p);
/* Decodes a proposal. Returns false, and *p is undefined, if the bytes are not a proposal: the
 * length is wrong, a number is negative or NaN, the number of the ballot is 0, a status is unknown,
 * the members are not sorted, or there are members and none of them is FINISH_WITHIN. */
bool finish_decode(struct finish_proposal *p, struct bytes b);

#endif
