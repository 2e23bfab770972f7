/* gossip/members/vouches.h -- who counts: members that others than themselves have spoken with.
 *
 * Anyone with the cluster's key can sign records of members that do not exist. So a record makes
 * nobody a vertex of the topology. Who has an authenticated session with a member signs a *vouch*
 * for it, unless enough others have; vouches are gossiped like accusations. They are the arrows
 * of a graph, and every table asks of it: whom do I know through more than one other?
 *
 *      us --> b --> c            c, d: vouched for by two that we know apart: they count.
 *       \    ^ \   ^
 *        v  /   v /              g1 .. g300: all that we hear of them we hear through e, whatever
 *         d      e --> g1        they sign for each other. One of them counts at most (and one
 *                      | \       more for every 16 members that count by themselves).
 *                     g2 g3 ...
 *
 * The member through which alone x is known is the dominator of x nearest to us in that graph;
 * members with one and the same such dominator have to share its allowance. A newcomer with one
 * session so counts at once, as long as it is the only one; and without this bound, when a second
 * session with it stands. For that, members in doubt are looked for on the rings like others
 * (rings.h). Records of members in doubt beyond those are kept, but nobody dials them, tells of
 * them or listens to their accusations.
 *
 *     unknown to others | vouched for by one that counts | known twice, or within the allowance
 *     kept, not told    | told, looked for               | counts: may be a vertex
 *
 * Vouches name identities, not processes, so that a restart changes nothing, and are good as long
 * as both members are in the table. One voucher has VOUCHES_MAX of members that live: those with
 * the least ids, where it has signed more. So tables that have heard the same agree, in whatever
 * order they heard it. What they cannot see is one insider with several processes that answer.
 *
 * (Dominators: Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm", 2001. That an
 * attacker's edges to honest members bound what it can bring in: Yu et al., SybilGuard, 2006.)
 */
#ifndef GOSSIP_MEMBERS_VOUCHES_H
#define GOSSIP_MEMBERS_VOUCHES_H

#include "gossip/members/members.h"

enum {
    VOUCHES_MAX = 32,       /* One voucher has so many, for members that live. */
    VOUCHES_SHARE = 16,     /* One more member in doubt for so many that count by themselves. */
    VOUCHES_AT_ADDRESS = 8, /* Sessions with so many at one address, and we vouch for no more. */
    VOUCHES_WITH_RECORD = 2 /* Told along with their member's record. */
};

/* The member is known from the start: it counts. No-op where `id` is unknown. */
void members_know(struct members *m, const uint8_t id[WIRE_ID_BYTES], int64_t now_us);

/* Merge one vouch. It changes who counts with the next members_settle(). */
enum members_verdict members_vouched(struct members *m, const struct vouch *v);

/* We vouch for those members with a session of ours that need it; settles. O(members). */
void members_vouch(struct members *m, int64_t now_us);

/* What the vouches add up to: who counts. Call it after all of a message has been merged;
 * members_tick() does, too. O(vouches), and nothing where nothing has changed. */
void members_settle(struct members *m, int64_t now_us);

#endif
