/* gossip/members/monitor_rings.h -- monitor rings: which member monitors which.
 *
 * On each ring a member's position is the hash of the ring and its id, and it monitors its
 * successor. So each member has as many monitors as there are rings, whichever members die. A
 * join or leave changes one monitor per ring, and peers that know the same members agree.
 * (Monitoring topology of Rapid: Suresh et al., USENIX ATC 2018, section 4.1.)
 *
 *   this peer -> [suspect, one accuser] -> [suspect, two] -> [alive] -> ...
 *                monitored, to confirm     skipped           monitored, the last
 *
 * A member that is endorsed but not accepted yet is also monitored, and is accepted when a
 * monitor has a session with it. It does not hide its successors, because it may not exist.
 *
 * Dead members do not hide each other: if the next member is suspect, its successor is
 * monitored at once, before the suspect is declared dead.
 */
#ifndef GOSSIP_MEMBERS_MONITOR_RINGS_H
#define GOSSIP_MEMBERS_MONITOR_RINGS_H

#include "gossip/members/members.h"

enum {
    RINGS = MEMBERS_RINGS,
    MONITOR_RINGS_ALIVE_MAX = 16, /* Maximum number of alive members searched on one ring. */
    MONITOR_RINGS_AHEAD_MAX =
        32, /* Maximum number of members searched on one ring, including suspects. */
};

/* The members to be monitored. Borrowed until the member table changes. */
struct monitor_rings
{
    uint64_t own[RINGS]; /* Positions of this peer on the rings. */
    uint32_t n;
    const struct member *at[WIRE_MEMBERS_MAX];
};

/* Collects the members to be monitored, in the order of members_at(). Members that have left or
 * finished the run are not monitored. O(members). */
void monitor_rings_look(struct monitor_rings *r, const struct members *m);

/* Copies the ids of the successors that this peer monitors on the ring, up to the n_alive-th (1
 * .. MONITOR_RINGS_ALIVE_MAX) that is not suspect, in no order. Returns their number, at most
 * MONITOR_RINGS_AHEAD_MAX. O(members). */
uint32_t monitor_rings_ahead(const struct monitor_rings *r, uint32_t ring, uint32_t n_alive,
                             uint8_t id[MONITOR_RINGS_AHEAD_MAX][WIRE_ID_BYTES]);

#endif
