/* peer/node/membership/quorum.h -- lists the voters of a run, decides whether enough members are
 * present, and counts the other members.
 *
 * A peer becomes an *initial member* in two cases: (1) The peer waits for the start of the run,
 * --min-peers members are present, and no member is known to have begun. (2) The peer joins before
 * the end of training, and --min-peers is 1: the user has not said how many peers there are. A peer
 * begins to train when it knows --min-peers initial members, or when a member has begun. The signed
 * record of an initial member (struct record) marks the member as one. After a restart, the new
 * process of an initial member learns from its checkpoint or from other members that it is one. All
 * peers, including those that joined later, thus count the same voters:
 *
 *   initial member                                   --min-peers above 1     --min-peers 1
 *   present                                          voter                   voter
 *   dead                                             voter                   voter
 *   dead, and a present member has its name          that member votes       that member votes
 *   left by its own signed announcement              as a dead member        no voter
 *   no longer admitted by the allow-list             no voter                no voter
 *
 * These rules also apply to an initial member that the member table has dropped.
 *
 * With --min-peers above 1, the number of voters is fixed: an initial member that left may come
 * back and vote in one part of a split network, while the members of the other part still believe
 * that it is gone. An initial member that knows fewer than --min-peers initial members counts the
 * unknown ones as absent voters, because it began with at least that many.
 *
 * With --min-peers 1, members may come and go, so a member that leaves must not count as missing. A
 * new member with its name is then no voter.
 *
 * If no voter remains, all accepted members are voters, except those that have left, that the
 * allow-list no longer admits, or that quorum_replaced() finds replaced. A Byzantine member may
 * claim to be an initial member, and then counts as one.
 *
 * The quorum is a share (--quorum) of the voters. Below the quorum the peer stops its local steps:
 * if one of eight peers trained alone on an eighth of the data, its model would harm the models of
 * the others later. New members count as present, so that a new machine can replace a dead one. A
 * member that reports a stalled worker does not count as present until its job ends.
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
 * whose cluster has died, therefore stops its local steps after about three seconds. In the state
 * THERE a single suspect counts as present until it is dead. In the other states no suspect counts
 * as present.
 *
 * If the network splits into two equal halves and --quorum is 0.5, both halves have the quorum and
 * continue. Only one of them can end with success (verdict.h).
 */
#ifndef PEER_NODE_MEMBERSHIP_QUORUM_H
#define PEER_NODE_MEMBERSHIP_QUORUM_H

#include "peer/node/env.h"

/* State of the quorum: enough members (THERE), too few (HELD), or too few for longer than
 * --quorum-timeout (RESIGNED). */
enum quorum_state { QUORUM_THERE, QUORUM_HELD, QUORUM_RESIGNED };

/* The quorum of one node: the initial members, and how many members are present now. */
struct quorum;

/* The state of the quorum, and the counts of members at the last quorum_look(). */
struct quorum_status
{
    enum quorum_state state;
    /* Node time at which the state began, in microseconds. If the state was THERE (enough members)
     * only briefly between two periods of HELD (too few), the length of the first HELD period is
     * subtracted, so that --quorum-timeout includes both periods. */
    int64_t since_us;
    uint32_t n_initial; /* Number of initial members that this peer knows. */
    uint32_t n_members; /* Number of voters. The quorum is a share of this number. */
    uint32_t n_live;    /* Number of members that are present now, this peer included. */
};

/* Returns a quorum without initial members, for a peer that has not begun to train. NULL: memory is
 * exhausted. */
struct quorum *quorum_open(void);
/* Frees *q. NULL is allowed. */
void quorum_close(struct quorum *q);
/* Makes quorum_look() evaluate the quorum from now on. Called once, when this peer begins to
 * train. */
void quorum_begin(struct quorum *q, int64_t now_us);

/* Updates the list of initial members, and which of them have left. min_peers: --min-peers of the
 * run. Must be called after each change of the member table and before the table drops members.
 * Returns 0 or -ENOMEM. O(members log members) after a change, else O(1). */
int quorum_follow(struct quorum *q, const struct members *m, uint32_t min_peers);

/* Updates the state of the quorum, and returns whether it has changed. `share`: --quorum, from 0 to
 * 1. patience_us: --quorum-timeout, in microseconds. Before quorum_begin() the state is always
 * QUORUM_THERE. O(members^2) after a change of the member table, else O(1). */
bool quorum_look(struct quorum *q, const struct members *m, double share, int64_t patience_us,
                 int64_t now_us);

/* Sets voter[i] to whether member i of the table (members_at()) is a voter; `voter` may be NULL.
 * Returns the number of all voters, including those that the table has dropped. Dead members are
 * voters: otherwise a few peers would be a quorum once all others count as dead. O(members^2) in
 * the worst case. */
uint32_t quorum_voters(const struct quorum *q, const struct members *m, bool *voter);

/* Returns whether a voter is left that is an initial member, or has taken over the name of one. If
 * not, other members vote (see the top of this file). O(members^2) in the worst case. */
bool quorum_has_initial(const struct quorum *q, const struct members *m);

/* Returns the smallest identity among the initial members that have not lost their vote, also if
 * another member votes instead of it. NULL: none is left. */
const uint8_t *quorum_first(const struct quorum *q, const struct members *m);

/* Returns whether `m` is replaced: `m` is absent, and a present member has its name. A machine that
 * lost its key returns as a new member with its old name, and the old member must then not count as
 * dead. O(members). */
bool quorum_replaced(const struct members *all, const struct member *m);

/* Returns how many members must be present: `share` of n_members, rounded up, and at least 1. */
uint32_t quorum_needed(uint32_t n_members, double share);

/* Returns whether the member is an initial member. O(log members). */
bool quorum_is_initial(const struct quorum *q, const uint8_t id[WIRE_ID_BYTES]);
/* Returns whether too few members are present, so that this peer takes no local steps. */
bool quorum_is_held(const struct quorum *q);
/* Returns the present state and counts. */
struct quorum_status quorum_status(const struct quorum *q);

/* ---- counts of the other members ----
 *
 * Members that are not accepted (gossip/members/endorsements.h) are ignored. Unless stated
 * otherwise these functions are O(1), because the member table keeps the counts. */

/* Returns the number of vertices of the topology, including this peer. */
uint32_t member_counts_vertices(const struct env *v);
/* Returns whether another member, accepted or not, is ALIVE. O(members). */
bool member_counts_live(const struct env *v);
/* Returns whether at least one other vertex of the topology has a record with the state `state`. */
bool member_counts_some(const struct env *v, enum record_state state);
/* Returns whether another member has ended its run, with or without a stored model. In a run that
 * ends with a certificate, a dead member does not count. */
bool member_counts_ended(const struct env *v);
/* Returns whether another member is alive, has not ended its run, and has no stalled worker. A
 * finished peer may wait for this member: the member will report the end of its run or die, and
 * needs a model if it has restarted. */
bool member_counts_end(const struct env *v);
/* Returns whether another member is alive or suspect, and has not ended its run. */
bool member_counts_there(const struct env *v);
/* Returns whether another member has a stalled worker, and is not dead and has not left. */
bool member_counts_hang(const struct env *v);
/* Returns whether at least one other member has ended its run, even if it is dead now, and each of
 * the remaining members has ended its run, is dead or has left. O(members). */
bool member_counts_finished(const struct env *v);

#endif
