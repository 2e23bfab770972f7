/* peer/node/membership/quorum.h -- lists the voters of a run, and decides whether enough members are present.
 *
 * A peer becomes an initial member when --min-peers members are present and it knows of no member
 * that has begun. It then begins to train when it knows --min-peers initial members, or when a member
 * has begun. A peer that begins while the run is in its first rounds (at most the hops to the farthest
 * member, plus 2) is also an initial member. With --min-peers 1 the user has not said how many peers
 * there are: every peer that joins before the end of training is an initial member then. The signed record of an initial member says so in all later versions
 * (struct record), also after a restart: the process learns from its checkpoint, or from other
 * members, that it is an initial member. All peers, those that joined later included, thus count the
 * same voters:
 *
 *   initial member                                           voter
 *   --------------------------------------------------------  -----------------------------------
 *   is present, or is dead                                   the member, also after the table has
 *                                                            dropped it
 *   is absent, and a present member has its name             the member that has its name now
 *   has left by its own signed announcement, or is not       none
 *   admitted by the allow-list any more
 *
 * If no voter remains, all members that have not departed are voters. With --byzantine a liar may
 * claim to be an initial member, and then counts as one member, as if it had been present.
 *
 * The quorum is a share (--quorum) of the voters. Below the quorum the peer stops its local
 * steps. If one of eight peers trained alone on an eighth of the data, its model would mislead the
 * others later. New members count as present, so that a new machine replaces a dead one. A member
 * that reports a stalled worker is not present until its job ends.
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
#ifndef PEER_NODE_MEMBERSHIP_QUORUM_H
#define PEER_NODE_MEMBERSHIP_QUORUM_H

#include "gossip/members/members.h"

/* State of the quorum: see the table at the top of this file. */
enum quorum_state { QUORUM_THERE, QUORUM_HELD, QUORUM_RESIGNED };

/* An initial member. The member table drops members some time after they have died or left, so what
 * the quorum must know of them is here. */
struct quorum_member
{
    uint8_t id[WIRE_ID_BYTES];
    char name[WIRE_NAME_MAX + 1];
    /* True: when the member was last in the table, it had left by its own announcement, or the
     * allow-list did not admit it any more. */
    bool departed;
};

/* The quorum of one node: the initial members, and how many members are present now. Written by
 * quorum.c only. */
struct quorum
{
    /* The n initial members that this peer knows, sorted by identity. Room for `cap`. Owned. */
    struct quorum_member *initial;
    uint32_t n, cap;
    bool begun;         /* True: training has begun. */
    uint32_t n_members; /* Number of voters. */
    uint32_t n_live;    /* Number of members that are present now, this peer included. */
    uint64_t followed;  /* Version of the member table at the last quorum_follow(). */
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

/* Begins training. */
void quorum_begin(struct quorum *q, int64_t now_us);
/* Frees the quorum and returns it to the state before quorum_begin(). */
void quorum_close(struct quorum *q);

/* Notes the initial members, and which of them have departed. Must be called after each change of the
 * member table and before the table drops members. Returns 0 or -ENOMEM. O(1), or
 * O(members log members) after a change. */
int quorum_follow(struct quorum *q, const struct members *m);

/* Updates the state and returns whether it has changed. `share`: --quorum, from 0 to 1.
 * patience_us: --quorum-timeout. Before quorum_begin() the state is always QUORUM_THERE. O(1), and
 * O(members^2) after a change of the member table. */
bool quorum_look(struct quorum *q, const struct members *m, double share, int64_t patience_us,
                 int64_t now_us);

/* Lists the voters: sets voter[i] for each member i of the table (members_at()); NULL: no list.
 * Returns their number, which includes the voters that the table has dropped. A dead member counts,
 * because a small part of the cluster would become a quorum by waiting otherwise. O(members^2) in the
 * worst case. */
uint32_t quorum_voters(const struct quorum *q, const struct members *m, bool *voter);

/* Returns the smallest identity of the initial members that have not departed, or NULL. */
const uint8_t *quorum_first(const struct quorum *q, const struct members *m);

/* Returns whether another present member has the name of `m`, which is not present. A machine that
 * lost its key comes back with its old name as a new member, and must not also count as dead.
 * O(members). */
bool quorum_replaced(const struct members *all, const struct member *m);

/* Returns how many members must be present: `share` of n_members, rounded up, and at least 1. */
uint32_t quorum_needed(const struct quorum *q, double share);

#endif
