/* gossip/members/endorsements.h -- endorsements: which members are accepted (a Sybil filter).
 *
 * Any holder of the cluster key can sign records of members that do not exist. A record alone
 * therefore does not make a member a vertex. A member that has an authenticated session with
 * another one signs an endorsement (vouch) for it, unless enough others have. Endorsements are
 * gossiped like accusations. They are the arrows of a graph, in which each table looks for
 * members that are known through more than one other member.
 *
 *      self -> b --> c           c, d: endorsed by two independent members: accepted.
 *       \     ^ \   ^
 *        v   /   v /             g1 .. g300: all paths to them lead through e, whatever they
 *          d      e --> g1       sign for each other. One is accepted (and one more for
 *                       | \      every 16 members accepted by themselves).
 *                      g2 g3 ...
 *
 * The nearest member through which all paths to x lead is x's dominator. Members with the same
 * dominator share its allowance. So a newcomer with one session is accepted at once as long as
 * it is the only one; others are accepted when they have a second session. Members in doubt are
 * therefore monitored on the rings like others (rings.h). Records of further members in
 * doubt are stored, but no peer dials those members, forwards them or accepts their accusations.
 *
 *   endorsements                           effect
 *   none                                   record stored, not forwarded
 *   by one accepted member                 forwarded, monitored
 *   known twice, or within the allowance   accepted: may be a vertex
 *
 * Endorsements name identities rather than processes, so a restart changes nothing. They are
 * valid while both members are in the table. A member has at most ENDORSEMENTS_MAX endorsements
 * of live members; if it signed more, those with the least ids are used. Tables that received the
 * same statements therefore agree. One insider with several answering processes is not detected.
 *
 * (Dominators: Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm", 2001. The bound
 * by the attacker's edges to honest members: Yu et al., SybilGuard, 2006.)
 */
#ifndef GOSSIP_MEMBERS_ENDORSEMENTS_H
#define GOSSIP_MEMBERS_ENDORSEMENTS_H

#include "gossip/members/members.h"

enum {
    ENDORSEMENTS_MAX = 32, /* Maximum endorsements by one member, for live members. */
    /* Members accepted by themselves, per additional accepted member in doubt. */
    ENDORSEMENTS_SHARE = 16,
    /* Maximum number of sessions with members at one address, above which the peer endorses no
     * more of them. */
    ENDORSEMENTS_AT_ADDRESS = 8,
    ENDORSEMENTS_WITH_RECORD = 2 /* Endorsements sent along with a member's record. */
};

/* Marks member `id` as known from the start, so it is accepted. No effect if `id` is unknown. */
void members_know(struct members *m, const uint8_t id[WIRE_ID_BYTES], int64_t now_us);

/* Merges one endorsement. It takes effect in the next members_settle(). */
enum members_verdict members_vouched(struct members *m, const struct vouch *v);

/* Endorses members with which this peer has a session and that need an endorsement, then calls
 * members_settle(). O(members). */
void members_vouch(struct members *m, int64_t now_us);

/* Recomputes which members are accepted. Call it after merging a whole message; members_tick()
 * calls it too. O(endorsements); does nothing if nothing changed. */
void members_settle(struct members *m, int64_t now_us);

#endif
