/* peer/node/callback.h -- checks whether members can be called at the addresses that they announce.
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
 * A call ends as soon as the other end has proved its identity. A peer also warns of a neighbour
 * that other members report alive and that it could never call. Results of calls do not change any
 * decision of the protocol: a member without a working address can still call others. The simulator
 * makes no such calls (config.calls_back is false).
 */
#ifndef PEER_NODE_CALLBACK_H
#define PEER_NODE_CALLBACK_H

#include "peer/node/node.h"

struct sessions;
struct link;
struct contact;
struct wire_message;

enum {
    CALLBACK_CALLS = 4, /* Maximum number of calls at a time. */
    /* Maximum number of warnings with a name. One line without names follows. */
    CALLBACK_LINES = 8,
    CALLBACK_NAMES = 32 /* Maximum number of (member, address) pairs that told[] holds. */
};

enum callback_state {
    CALLBACK_OPEN = 0, /* No result yet. */
    CALLBACK_CALLING,  /* A call is in progress. */
    CALLBACK_WORKS,    /* An announced address works. */
    CALLBACK_FAILS,    /* No announced address works. */
    CALLBACK_UNKNOWN   /* The calls gave no result. */
};

/* Results of the calls between this peer and the member of one session. Part of struct link. */
struct callback_link
{
    enum callback_state theirs; /* Whether this peer can call the member. */
    enum callback_state ours;   /* Whether the member can call this peer, as the member reported. */
    /* Hash of the bootstrap address that this peer dialled for the session. 0: none. */
    uint64_t dialled;
    uint32_t n_calls; /* Number of calls to the member. */
    int64_t next_us;  /* Earliest time of the next call, in microseconds. */
    uint32_t why;     /* enum node_why of the member's last call if `ours` is CALLBACK_FAILS. */
};

struct callback
{
    struct
    {
        bool busy;
        uint32_t tag, link;
        char address[WIRE_ADDRESS_MAX + 1];
    } call[CALLBACK_CALLS];
    /* Hashes of the pairs of member and address in printed warnings. */
    uint64_t told[CALLBACK_NAMES];
    uint32_t n_told;
    /* Announced address of this peer that a member failed to call most recently. */
    char address[WIRE_ADDRESS_MAX + 1];
    /* Time of the next warning about our own address, and the interval after it. 0: none is due. */
    int64_t tell_us, gap_us;
};

/* To be called when a session is open and has its link, before dial_over(). */
void callback_opened(struct sessions *s, struct link *l);
/* Handles the end of the call with this tag. `id`: the peer that answered; NULL: the call failed
 * for the reason `why`. Returns false if the call was not made by callback.c. */
bool callback_over(struct sessions *s, uint32_t tag, const uint8_t *id, enum node_why why);
/* Handles a CALLBACK message. */
void callback_came(struct node *n, const struct link *l, const struct wire_message *m);
/* Handles a failed call to a contact: a neighbour, or a member that this peer monitors. */
void callback_in_vain(struct sessions *s, struct contact *c, enum node_why why);
/* Prints the warnings and starts the calls that are due. */
void callback_tick(struct sessions *s);

#endif
