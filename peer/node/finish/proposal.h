/* peer/node/finish/proposal.h -- a proposal of the finish protocol, its encoding, and the *evidence*
 * from which its consensus distance follows.
 *
 *   bytes    content
 *   0..3     consensus distance relative to the norm of the mean model, float32. Infinite: unknown.
 *   4..7     norm of the mean model, float32
 *   8..15    number of the ballot in which the proposal was made (`origin`), uint64
 *   16..31   identity of the peer that coordinated this ballot
 *   32..     9 bytes per member: first 8 bytes of its identity, and its status
 *
 * Numbers are little-endian. The members are sorted by identity, so equal proposals have equal
 * bytes. A decided proposal with members is the certificate of the run. A proposal without members
 * aborts its attempt.
 *
 * The evidence of a set of peers is a few sums over their frozen models. Each peer contributes a
 * count sketch s = S x of its model (gossip/exchange/sketch.h), |x|^2 and a hash of x. Sums of
 * squares are combined as in Chan, Golub and LeVeque (1983), so that a distance that is much smaller
 * than the mean keeps its digits.
 */
#ifndef PEER_NODE_FINISH_PROPOSAL_H
#define PEER_NODE_FINISH_PROPOSAL_H

#include "gossip/exchange/tree_aggregation.h"
#include "gossip/wire/wire.h"

/* Status of a member at the end of a run. */
enum finish_status {
    /* The certificate covers the member: its model is frozen, and it ended its consensus phase when
     * its neighbours had confirmed that all peers are under --final-drift. */
    FINISH_WITHIN,
    /* The member's model is frozen, but not known to be within the target distance. */
    FINISH_OUTSIDE,
    FINISH_MIXING,  /* The member is alive and has not ended its run. */
    FINISH_STALLED, /* The member is alive and its worker hangs. */
    FINISH_FAILED,  /* The member ended its run, but could not store its model. */
    FINISH_DEAD,
    FINISH_STATUSES
};

struct finish_member
{
    uint64_t key; /* First 8 bytes of the identity (finish_key()). */
    enum finish_status status;
    bool voter; /* True: the member counts for the quorum. Not part of the encoding. */
};

struct finish_proposal
{
    /* Consensus distance relative to the norm of the mean model. Infinite: unknown. */
    double distance;
    double mean_norm; /* Norm of the mean model. */
    /* Ballot in which the proposal was made, about the models that were reported in it. A later
     * ballot that adopts the proposal keeps this value. */
    struct wire_ballot origin;
    uint32_t n; /* Number of members, at most WIRE_MEMBERS_MAX. 0: abort the attempt. */
    struct finish_member member[WIRE_MEMBERS_MAX]; /* The members, sorted by key. */
};

/* Sums over the models of n peers, from which their consensus distance follows. */
struct finish_evidence
{
    uint32_t n;           /* Number of models. 0: the other fields are 0. */
    float mean[SKETCH_K]; /* Mean of the sketches of the n models. */
    double dist2;         /* Sum of |s - mean|^2 over the sketches s of the n models. */
    double norm2;         /* Sum of |x|^2 over the n models. */
    uint64_t hash;        /* Hash of the models if all are equal. 0: they differ. */
};

/* Sets *e to the evidence of one model. hash: hash of the model, not 0. */
void finish_evidence_of(struct finish_evidence *e, const float sketch[SKETCH_K], double norm2,
                        uint64_t hash);
/* Adds the evidence *b to *a. O(SKETCH_K). */
void finish_evidence_add(struct finish_evidence *a, const struct finish_evidence *b);
/* Returns the consensus distance Xi / |mean|. 0: all models are equal. INFINITY: there is no model,
 * or the estimate of |mean|^2 is not positive. Sets *mean_norm to |mean|. */
double finish_evidence_distance(const struct finish_evidence *e, double *mean_norm);

/* ---- encoding ---- */

enum { FINISH_BALLOT = 8 + WIRE_ID_BYTES /* Number of bytes of an encoded ballot. */ };

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

/* Returns the first 8 bytes of an identity as a number, the first byte highest. */
uint64_t finish_key(const uint8_t id[WIRE_ID_BYTES]);

/* Reads entry i of the list of members in a message (struct wire_finish). Returns the member's key
 * and sets *flags. */
uint64_t finish_entry(struct bytes list, uint32_t i, uint8_t *flags);
/* Writes the entry of one member in a list of members to `out`, WIRE_FINISH_ENTRY bytes. */
void finish_put_entry(uint8_t *out, uint64_t key, uint8_t flags);

/* Encodes a proposal. Returns the number of bytes, at most WIRE_FINISH_PROPOSAL_MAX. */
size_t finish_encode(uint8_t out[WIRE_FINISH_PROPOSAL_MAX], const struct finish_proposal *p);
/* Decodes a proposal. Returns false if the bytes are not a proposal: wrong length, a negative
 * number or NaN, no ballot, an unknown status, unsorted members, or members without any
 * FINISH_WITHIN. *p is then undefined. */
bool finish_decode(struct finish_proposal *p, struct bytes b);
/* Returns the status of the member with this identity, or FINISH_STATUSES if the proposal does not
 * contain it. O(log n). */
enum finish_status finish_status_of(const struct finish_proposal *p,
                                    const uint8_t id[WIRE_ID_BYTES]);

#endif
