/* peer/node/session/round_quorum.h -- how far the run is, according to most of the peers that this
 * peer hears.
 *
 * A peer learns the round counts (edges.h) of other peers from their messages. One member can claim
 * any number. A peer that believed the claim would skip all rounds up to it. This peer therefore
 * believes a claim only as far as other peers confirm it:
 *
 *   - With 2 or more open edges: the largest round count that more than half of the neighbours
 *     reach. With exactly two neighbours this is the smaller one of their counts.
 *   - With 2 or more sessions: the largest round count that more than half of the members with a
 *     session reach. The count of each member is extrapolated by the member's speed since its last
 *     message.
 *   - With 1 session and 1 open edge: the largest round count that the neighbour can have reached
 *     during the longest silence between both, at FASTER times this peer's own speed.
 *
 * If several cases apply, the largest of their round counts is believed. If a neighbour claims
 * more, round_quorum_look() replaces its claim before the schedule sees it. The new value is the
 * believed round count or, if that is within the lead of lock step (schedule_lead()), this peer's
 * own. This peer then neither waits for the neighbour nor skips to its round count. False claims of
 * fewer than half of the neighbours and sessions thus have no effect. Peers that were cut off from
 * the run still catch up with it, because they hear most of the other peers.
 *
 * If a peer trained alone while most others could not, it is ahead of them. The others do not skip
 * rounds, because no other peer confirms its claim. The peer that is ahead waits for them instead.
 * A peer is ahead in this sense if more than half of its sessions, and at least half of its
 * neighbours, are behind by more than the lead. A minority of false claims cannot make it wait in
 * this way.
 *
 * A peer that has done no round joins at the round that most of the members that have begun have
 * reached. If there is only one such member, its claim is used.
 */
#ifndef PEER_NODE_SESSION_ROUND_QUORUM_H
#define PEER_NODE_SESSION_ROUND_QUORUM_H

#include "peer/node/schedule.h"
#include "peer/node/session/sessions.h"

/* Returns the largest round count that more than half of the n claims reach. 0 if n is 0. Sorts the
 * claims. */
uint64_t round_quorum_most(uint64_t *claim, size_t n);

/* Returns the round count that most sessions have reached now. Sets *n to the number of sessions
 * considered. */
uint64_t round_quorum_sessions(const struct sessions *s, size_t *n);

/* Returns the session of the member with the highest round in this run. Ignores the session with
 * number `but`, and members whose round count is not credible. NULL: no such session. */
const struct link *round_quorum_furthest(const struct sessions *s, uint32_t but);

/* Returns the round of a received model. The sender claims `round`. If `round` is ahead of most
 * sessions' round by more than lock step allows, returns the round of most sessions instead. */
uint64_t round_quorum_joined(const struct sessions *s, uint64_t round);

/* State for a peer that hears only one neighbour: limits the round count that it believes of the
 * neighbour. */
struct round_quorum
{
    /* Duration of this peer's shortest job with local steps, in microseconds. 0: there was none. */
    int64_t fastest_us;
    /* Last time at which an edge was open and no neighbour was ahead by more rounds than lock step
     * allows. */
    int64_t near_us;
    bool far; /* True: the neighbour claims to be ahead by more rounds than lock step allows. */
    /* While `far` is true: largest round count that the neighbour can have reached. The neighbour
     * can have got ahead only since near_us, the last time at which it was not too far ahead. */
    uint64_t most;
};

/* Records the duration of a job with local steps, in microseconds. */
void round_quorum_worked(struct round_quorum *b, int64_t took_us);

/* Called before the schedule reads edge[0..v->n_edges). In lock step, replaces the round count of
 * each neighbour that claims more than this peer believes. */
void round_quorum_look(struct round_quorum *b, const struct sessions *s,
                       const struct schedule_view *v, struct schedule_edge *edge);

#endif
