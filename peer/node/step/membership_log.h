/* peer/node/step/membership_log.h -- prints which members are silent, dead, back or have left.
 *
 * Each tick compares the member table with what was printed before. A change of a member's state
 * becomes a message with its name, the length of its silence, and the new size of the topology.
 * Members that enter the same state share a message:
 *
 *    new state of a member   message
 *    SUSPECT                 "... is silent for 3 s: declared dead within 7 s unless a message ..."
 *    DEAD                    "... is dead, silent for 10 s: the topology now has 7 members"
 *    ALIVE                   "... is back after 12 s"
 *    LEFT                    "... is gone, having left the run: the topology now has 6 members"
 *
 * A token bucket per member limits the messages: it holds four tokens and gains one per minute. A
 * change that finds the bucket empty is only counted. The next message states the number of these
 * changes.
 */
#ifndef PEER_NODE_STEP_MEMBERSHIP_LOG_H
#define PEER_NODE_STEP_MEMBERSHIP_LOG_H

#include "peer/node/edge/edges.h"

/* The states of members that were printed last. */
struct membership_log;

/* Returns a log without entries, or NULL if memory is exhausted. The pointer arguments are
 * borrowed. */
struct membership_log *membership_log_open(struct env *env, struct sessions *s,
                                           const struct edges *es);
/* Frees *r. NULL is allowed. */
void membership_log_close(struct membership_log *r);
/* Compares the member table with the last messages and prints the changes. Called at every tick.
 * O(members) if the table has changed, else O(1). */
void membership_log_tick(struct membership_log *r);

#endif
