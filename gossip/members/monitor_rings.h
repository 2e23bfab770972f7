/* gossip/members/monitor_rings.h -- monitor rings: which member monitors which.
 *
 * On each ring a member's position is a hash of the ring's number and the member's id, and each
 * member monitors its successor. Every member therefore has one monitor per ring, whichever
 * members die. A member that joins or leaves changes one monitor per ring. Peers that know the
 * same members agree on the monitors. (Monitoring topology of Rapid: Suresh et al., USENIX ATC
 * 2018, section 4.1.)
 *
 * A peer looks for the members that it monitors along the ring, starting at its successor. For each
 * member it decides as follows:
 *
 *   suspect with one accuser      monitored, because this peer may be the second accuser
 *   suspect with two accusers     not monitored
 *   alive                         monitored, and the search ends
 *
 * A member that is endorsed but not accepted yet is also monitored, so that a monitor opens a
 * session with it and can endorse it. The search does not end at such a member, because it may
 * not exist.
 *
 * If several successive members die, they are detected at the same time: the successor of a suspect
 * is monitored before the suspect is declared dead.
 */
#ifndef GOSSIP_MEMBERS_MONITOR_RINGS_H
#define GOSSIP_MEMBERS_MONITOR_RINGS_H

#include "gossip/members/members.h"

enum {
    RINGS = MEMBERS_RINGS,
    /* Maximum value of n_alive, the number of live successors that monitor_rings_ahead() looks
     * for. */
    MONITOR_RINGS_ALIVE_MAX = 16,
    /* Maximum number of members that monitor_rings_ahead() returns. */
    MONITOR_RINGS_AHEAD_MAX = 32,
};

/* The members that may be monitored. The pointers in at[0..n) are valid until the member table
 * changes. */
struct monitor_rings
{
    uint64_t own[RINGS]; /* Positions of this peer on the rings. */
    uint32_t n;
    const struct member *at[WIRE_MEMBERS_MAX];
};

/* Collects the members that may be monitored, in the order of members_at(). Members that have
 * left or ended their run are not among them. O(members). */
void monitor_rings_look(struct monitor_rings *r, const struct members *m);

/* Copies the ids of this peer's successors (the members after it) on the ring, up to the n_alive-th
 * successor that is alive and accepted, in no particular order. n_alive is 1 to
 * MONITOR_RINGS_ALIVE_MAX. Returns their number, at most MONITOR_RINGS_AHEAD_MAX. O(members). */
uint32_t monitor_rings_ahead(const struct monitor_rings *r, uint32_t ring, uint32_t n_alive,
                             uint8_t id[MONITOR_RINGS_AHEAD_MAX][WIRE_ID_BYTES]);

#endif
