/* peer/node/callback.h -- finds out whether members can be called at the addresses that they announce.
 *
 *   a session with a member opens
 *        |
 *        v  after 1 s: was the session opened at an address of its record?
 *   yes: CALLBACK "works"     no: call its addresses, one after the other; each twice where it refuses
 *                                  |                         |
 *                        one answers as the member      none does
 *                                  |                         |
 *                         CALLBACK "works"        a warning here, and CALLBACK with the reason,
 *                                                 on which the member prints a warning of its own
 *
 * A call ends as soon as the other end has shown its identity. A peer also warns of a neighbour that lives by
 * the word of others and that it could never call. Nothing here decides anything: members without an address
 * that works can still call others. The simulator makes no such calls (config.calls_back).
 */
#ifndef PEER_NODE_CALLBACK_H
#define PEER_NODE_CALLBACK_H

#include "peer/node/node.h"

struct sessions;
struct link;
struct contact;
struct wire_message;

enum {
    CALLBACK_CALLS = 4, /* Calls at a time. */
    CALLBACK_LINES = 8, /* Members that are named in warnings; the rest share one line. */
    CALLBACK_NAMES = 32 /* Members whose warning is remembered. */
};

enum callback_state {
    CALLBACK_OPEN = 0, /* Not known yet. */
    CALLBACK_CALLING,
    CALLBACK_WORKS,
    CALLBACK_FAILS,
    CALLBACK_UNKNOWN /* The calls did not tell. */
};

/* What is known of one session's member. Part of struct link. */
struct callback_link
{
    enum callback_state theirs; /* Can we call it? */
    enum callback_state ours;   /* Can it call us, as it said? */
    uint64_t dialled; /* Hash of the address at which we dialled this session; 0: it dialled. */
    uint32_t n_calls; /* Calls made. */
    int64_t next_us;  /* The next call is not made before this. */
    uint32_t why;     /* ours == CALLBACK_FAILS: enum node_why of its last call. */
};

struct callback
{
    struct
    {
        bool busy;
        uint32_t tag, link;
        char address[WIRE_ADDRESS_MAX + 1];
    } call[CALLBACK_CALLS];
    uint64_t told[CALLBACK_NAMES]; /* Hashes of the member and its first address. */
    uint32_t n_told;
    char address[WIRE_ADDRESS_MAX + 1]; /* The last one at which a member could not call us. */
    int64_t tell_us, gap_us; /* Our own warning: next time, and interval. 0: none is due. */
};

/* A session is up, and has its link. Before dial_over(). */
void callback_opened(struct sessions *s, struct link *l);
/* Was the call with this tag one of ours? Then it reached the peer of this id, or, NULL, failed for
 * this reason. */
bool callback_over(struct sessions *s, uint32_t tag, const uint8_t *id, enum node_why why);
/* A CALLBACK has come. */
void callback_came(struct node *n, const struct link *l, const struct wire_message *m);
/* A call to a neighbour, or to a member that is watched, failed. */
void callback_in_vain(struct sessions *s, struct contact *c, enum node_why why);
void callback_tick(struct sessions *s);

#endif
