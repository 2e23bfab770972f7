/* peer/node/step/membership_log.h -- prints which members are silent, dead, back or have left.
 *
 * Each tick compares the member table with what was printed before. A change of a member's state
 * becomes a message with its name, the length of its silence, and the new size of the topology.
 * Members that enter the same state share a message:
 *
 *    new state of a member   message
 *    SUSPECT                 "... is silent for 3 s: declared dead in 7 s unless heard"
 *    DEAD                    "... is dead, silent for 10 s: the topology now has 7 members"
 *    ALIVE                   "... is back after 12 s"
 *    LEFT                    "... is gone, having left the run: the topology now has 6 members"
 *
 * A token bucket per member limits the messages: it holds four and gains one per minute. Changes
 * that are not printed for that reason are counted, and the next message states their number.
 */
#ifndef PEER_NODE_STEP_MEMBERSHIP_LOG_H
#define PEER_NODE_STEP_MEMBERSHIP_LOG_H

#include "peer/node/edge/edges.h"

/* A member that was suspect, dead or had left at some time. */
struct membership_log_entry
{
    uint8_t id[WIRE_ID_BYTES];
    /* told: state of the member in the last message about it. seen: state of the member at the last
     * call of membership_log_tick(). */
    enum member_state told, seen;
    /* Last time that this peer heard the member before the member left the state ALIVE, in
     * microseconds. 0: never. */
    int64_t since_us;
    /* Number of changes of the member's state since the last message about it. */
    uint32_t n_untold;
    double lines;     /* Number of messages about the member that are allowed at time lines_us. */
    int64_t lines_us; /* Time at which `lines` was computed, in microseconds. */
};

struct membership_log
{
    struct env *env;
    struct sessions *sessions;
    const struct edges *edges;
    struct membership_log_entry *at; /* Entries of members, in no order. Owned. */
    size_t n, cap;                   /* Number of entries, and for how many there is memory. */
    uint64_t changes;                /* Value of members_changes() at the last comparison. */
    /* True: a change was not printed because the limit on messages about its member is reached. */
    bool waits;
};

void membership_log_init(struct membership_log *r, struct env *env, struct sessions *s,
                         const struct edges *es);
void membership_log_close(struct membership_log *r);
/* Compares the member table with the last messages and prints the changes. Called at every tick.
 * O(members) if the table has changed, else O(1). */
void membership_log_tick(struct membership_log *r);

#endif
