/* peer/node/session/callback.h -- checks whether members can be called at the addresses that they
 * announce.
 *
 *   a session with a member opens
 *        |
 *        v  after about 1 s: did this peer open the session at an address of the member's record?
 *   yes: send CALLBACK "works"     no: call each address of the record; all of them a second time
 *                                  after 1.5 s, unless a call times out
 *                                     |                                 |
 *                       the member answers at one address    the member answers at no address
 *                                     |                                 |
 *                           send CALLBACK "works"          print a warning; send CALLBACK with the
 *                                                          reason, so that the member warns, too
 *
 * To *call* a member is to dial one of its addresses as a test. A call ends as soon as the other
 * end has proved its identity. A peer also prints a warning if it could never call a neighbour that
 * other members report as alive. Results of calls do not change any decision of the protocol,
 * because a member without a working address can still call others. The simulator makes no such
 * calls (config.calls_back is false).
 */
#ifndef PEER_NODE_SESSION_CALLBACK_H
#define PEER_NODE_SESSION_CALLBACK_H

#include "peer/node/node.h"

struct sessions;
struct link;
struct contact;
struct wire_callback;

enum callback_state {
    CALLBACK_OPEN = 0, /* The member was not called yet, and no call is in progress. */
    CALLBACK_CALLING,  /* A call to the member is in progress. */
    CALLBACK_WORKS,    /* The member answered at an announced address. */
    CALLBACK_FAILS,    /* The member answered at none of its announced addresses. */
    /* All calls failed, but the reasons do not show that the addresses are wrong, for example a
     * busy peer. */
    CALLBACK_UNKNOWN
};

/* Results of the test calls of addresses between this peer and the member of one session. Part of
 * struct link. */
struct callback_link
{
    /* Whether this peer can call the member at its announced addresses. */
    enum callback_state theirs;
    /* Whether the member can call this peer, as reported by the member. */
    enum callback_state ours;
    /* Hash of the bootstrap address that this peer dialled for the session. 0: none. */
    uint64_t dialled;
    uint32_t n_calls; /* Number of calls to the member's addresses so far. */
    int64_t next_us;  /* Earliest time of the next call, in microseconds. */
    /* If `ours` is CALLBACK_FAILS: reason why the member's last call to this peer failed (enum
     * node_why). */
    uint32_t why;
};

/* Prepares the check of a member's addresses when a session opens. Must be called before
 * dial_over(), after which this peer no longer knows which bootstrap address it dialled. */
void callback_opened(struct sessions *s, struct link *l);
/* Handles the end of the test call that has the dial number `tag`. `id`: the peer that answered;
 * NULL: the call failed for the reason `why`. Returns false if the call was not made by
 * callback.c. */
bool callback_over(struct sessions *s, uint32_t tag, const uint8_t *id, enum node_why why);
/* Handles a CALLBACK message. */
void callback_came(struct sessions *s, const struct link *l, const struct wire_callback *m);
/* Called when a dial fails to a member with which this peer wants a session. Warns if this peer
 * could never call a live member. */
void callback_in_vain(struct sessions *s, struct contact *c, enum node_why why);
/* Prints the warnings and starts the test calls of members that are due. */
void callback_tick(struct sessions *s);

#endif
