/* peer/node/finish/proposal.h -- a proposal of the finish protocol, and its encoding.
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
 */
#ifndef PEER_NODE_FINISH_PROPOSAL_H
#define PEER_NODE_FINISH_PROPOSAL_H

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

enum { FINISH_BALLOT = 8 + WIRE_ID_BYTES /* Number of bytes of an encoded ballot. */ };

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
/* Returns the number of members with this status. O(n). */
uint32_t finish_count(const struct finish_proposal *p, enum finish_status status);

#endif
