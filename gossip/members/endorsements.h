/* gossip/members/endorsements.h -- endorsements: which members are accepted (a Sybil filter).
 *
 * Any holder of the cluster key can sign records of members that do not exist. A record alone
 * therefore does not make a member a vertex of the topology. If a member has an authenticated
 * session with another one, it signs an endorsement (vouch) for it, unless enough other members
 * have done so. Endorsements are gossiped like accusations. They are the arrows of a graph. Each
 * table searches this graph for members that are known through more than one other member. Example:
 *
 * - This peer endorses b and d, so both are accepted.
 * - b and d endorse c. Member c is known through two independent members and is accepted.
 * - b and d endorse e. Only e endorses g1 .. g300, which also endorse each other. All paths from
 *   this peer to g1 .. g300 lead through e. One of them is accepted, and one more for every 16
 *   members that are accepted without this allowance.
 *
 * If members other than this peer lie on all paths to x, the first of them, counted from this peer,
 * is the label of x, and x is in doubt. Members with the same label share one allowance of accepted
 * members. A newcomer with one session is therefore accepted at once if it is the only one. Further
 * newcomers are accepted when they have a second session.
 *
 * If an accepted member endorses a member in doubt, the member is monitored on the rings like
 * others (monitor_rings.h), so that a monitor opens a session with it and can endorse it. A peer
 * ignores accusations by a member that is not accepted, unless it has a session with this member.
 *
 *   endorsements                           effect
 *   none                                   record stored, not forwarded
 *   by one accepted member                 forwarded, monitored
 *   known through 2 members or allowance   accepted: may be a vertex
 *
 * Endorsements name identities rather than processes, so they survive a restart of either
 * process. An endorsement is valid while both members are in the table. Of the endorsements that
 * one member has signed for live members, at most ENDORSEMENTS_MAX are used: those for the
 * members with the least ids. Tables that received the same statements therefore agree. The
 * filter does not detect a single insider that runs several processes with different identities.
 *
 * (Labels follow from the dominators of the graph: Cooper, Harvey, Kennedy, "A Simple, Fast
 * Dominance Algorithm", 2001.
 * The idea that the attacker's edges to honest members limit the number of accepted forged members:
 * Yu et al., SybilGuard, 2006.)
 */
#ifndef GOSSIP_MEMBERS_ENDORSEMENTS_H
#define GOSSIP_MEMBERS_ENDORSEMENTS_H

#include "gossip/members/members.h"

enum {
    /* Maximum number of endorsements by one member that are used, counting only endorsements of
     * live members. */
    ENDORSEMENTS_MAX = 32,
    /* A member is in doubt if all paths of endorsements to it lead through one member. Of the
     * members in doubt behind the same member, at most 1 + n / ENDORSEMENTS_SHARE are accepted. n:
     * number of members that are not in doubt. */
    ENDORSEMENTS_SHARE = 16,
    /* If more than this number of members at one address have sessions with this peer, this peer
     * endorses no further member at that address. */
    ENDORSEMENTS_AT_ADDRESS = 8,
    /* Maximum number of endorsements sent together with a member's record. */
    ENDORSEMENTS_WITH_RECORD = 2
};

/* Marks member `id` as known from the start of the cluster, so it is accepted. Does nothing if
 * `id` is unknown. */
void members_know(struct members *m, const uint8_t id[WIRE_ID_BYTES], int64_t now_us);

/* Stores one endorsement (a signed statement that a member exists). The endorsement counts from the
 * next call of members_settle() on. */
enum members_verdict members_vouched(struct members *m, const struct vouch *v);

/* Endorses each member that has a session with this peer and has too few endorsements, then calls
 * members_settle(). O(members). */
void members_vouch(struct members *m, int64_t now_us);

/* Recomputes which members are accepted. Call it after merging a whole message; members_tick()
 * calls it too. O(endorsements); does nothing if nothing changed. */
void members_settle(struct members *m, int64_t now_us);

#endif
