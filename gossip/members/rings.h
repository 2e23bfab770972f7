/* gossip/members/rings.h -- who watches whom: a few rings on which every member has a place.
 *
 * On each ring a member stands where the hash of the ring and its id says, and watches
 * whoever stands next. So everybody is watched by as many as there are rings, whoever dies;
 * who joins or leaves changes one watcher a ring; and all that know the same members agree.
 * (The monitoring topology of Rapid: Suresh et al., USENIX ATC 2018, section 4.1.)
 *
 *      us -> [suspect, one accuser] -> [suspect, two] -> [alive] -> ...
 *             watched, to confirm it    left out          watched, the last
 *
 * Who is vouched for, but does not count yet, is watched by whoever stands before it, and counts
 * with that; it does not shield those behind it, since it may not exist.
 *
 * The dead do not shield each other: who finds the next one suspected looks further at once,
 * and not only when that is taken for dead.
 */
#ifndef GOSSIP_MEMBERS_RINGS_H
#define GOSSIP_MEMBERS_RINGS_H

#include "gossip/members/members.h"

enum {
    RINGS = MEMBERS_RINGS,
    RINGS_ALIVE_MAX = 16, /* Looked for on one ring at a time. */
    RINGS_AHEAD_MAX = 32, /* The same with suspects in between. */
};

/* Those who want watching: borrowed until the members change. */
struct rings
{
    uint64_t own[RINGS]; /* Our places. */
    uint32_t n;
    const struct member *at[WIRE_MEMBERS_MAX];
};

/* Who wants to be watched, in the order of members_at(). Those that have left or finished the run
 * are watched by nobody. O(members). */
void rings_look(struct rings *r, const struct members *m);

/* Whom we watch on this ring up to the n_alive-th (1 .. RINGS_ALIVE_MAX) that nobody suspects,
 * in no order: copies at most RINGS_AHEAD_MAX ids; returns how many. O(those looked at). */
uint32_t rings_ahead(const struct rings *r, uint32_t ring, uint32_t n_alive,
                     uint8_t id[RINGS_AHEAD_MAX][WIRE_ID_BYTES]);

#endif
