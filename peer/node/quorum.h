/* peer/node/quorum.h -- decides whether enough members are present to train.
 *
 * The quorum is a share (--quorum) of the initial members: those that were present when this peer
 * began to train, without those that have left by their own signed announcement. Below the quorum
 * the peer stops its local steps. If one of eight peers trained alone on an eighth of the data, its
 * model would mislead the others later. New members count as present, so that a new machine
 * replaces a dead one. A member that reports a stalled worker is not present until its job ends.
 *
 *     THERE <------------------------------+
 *       |                                  |  enough members again
 *       v  too few members                 |
 *      HELD ---- after --quorum-timeout ---+--> RESIGNED
 *
 *   state      this peer
 *   THERE      trains: there are enough members, or training has not begun
 *   HELD       mixes without local steps
 *   RESIGNED   trains again, although there are too few members
 *
 * If two or more members are suspect, they count as absent immediately. A peer that is cut off, or
 * whose cluster has died, therefore stops its local steps after about three seconds. A single
 * suspect counts as present until it is dead.
 *
 * If the network splits into two equal halves and --quorum is 0.5, both halves have the quorum and
 * continue. Only one of them can end with success (verdict.h).
 */
#ifndef PEER_NODE_QUORUM_H
#define PEER_NODE_QUORUM_H

#include "gossip/members/members.h"

/* State of the quorum: see the table at the top of this file. */
enum quorum_state { QUORUM_THERE, QUORUM_HELD, QUORUM_RESIGNED };

/* The quorum of one node: the initial members, and how many members are present now. Written by
 * quorum.c only. */
struct quorum
{
    /* Identities of the n initial members, this peer included. Owned. NULL: training has not begun.
     */
    uint8_t (*id)[WIRE_ID_BYTES];
    uint32_t n;
    uint32_t n_members; /* Number of initial members that have not left. */
    uint32_t n_live;    /* Number of members that are present now, this peer included. */
    /* Versions of the member table, and the state, for which n_members and n_live were counted. */
    struct
    {
        uint64_t changes, view;
        enum quorum_state state;
    } counted;
    enum quorum_state state;
    /* Node time at which the state began, in microseconds. If HELD continues after a short time in
     * THERE, this value is earlier than the real start by the time spent in HELD before. */
    int64_t since_us;
    /* Length of the last period in the state HELD, in microseconds. Set when that period ends. */
    int64_t held_us;
};

/* Begins training: the members that are present in `m` become the initial members. Returns 0 or
 * -ENOMEM. */
int quorum_begin(struct quorum *q, const struct members *m, int64_t now_us);
/* Frees the quorum and returns it to the state before quorum_begin(). */
void quorum_close(struct quorum *q);

/* Updates the state and returns whether it has changed. `share`: --quorum, from 0 to 1.
 * patience_us: --quorum-timeout. Before quorum_begin() the state is always QUORUM_THERE. O(1), and
 * O(members^2) after a change of the member table. */
bool quorum_look(struct quorum *q, const struct members *m, double share, int64_t patience_us,
                 int64_t now_us);

/* Returns the number of initial members that have not left. A member counts as departed if its name
 * belongs to another present member. O(members^2) in the worst case. */
uint32_t quorum_members(const struct quorum *q, const struct members *m);

/* Returns whether another present member has the name of `m`, which is not present. A machine that
 * lost its key comes back with its old name as a new member, and must not also count as dead.
 * O(members). */
bool quorum_replaced(const struct members *all, const struct member *m);

/* Returns how many members must be present: `share` of n_members, rounded up, and at least 1. */
uint32_t quorum_needed(const struct quorum *q, double share);

#endif
