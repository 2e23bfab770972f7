/* peer/node/step/wait_log.h -- messages for the user about waiting: for which peers this peer
 * waits, and for which it no longer waits.
 *
 * phases.c calls these functions after its decisions. They only print messages.
 */
#ifndef PEER_NODE_STEP_WAIT_LOG_H
#define PEER_NODE_STEP_WAIT_LOG_H

#include "peer/node/step/phases.h"

/* Prints a message for each neighbour for which lock step stops waiting, or starts waiting again.
 * Records the change with edges_excuse(), so that it is printed once. */
void wait_log_excused(const struct phases *ph, const struct schedule_view *v);

/* wait_log_quorum() and wait_log_wait() return the new value of ph->told_us, a node time. The next
 * message about a wait is due WAIT_LOG_US after told_us, or WAIT_LOG_MEMBERS_US after it while this
 * peer waits for enough members to begin. */

/* Prints a message about the state of the quorum. Called when the state has changed. */
int64_t wait_log_quorum(const struct phases *ph);

/* Prints what the peer waits for after the decision d, if it has waited long enough for a
 * message. */
int64_t wait_log_wait(const struct phases *ph, const struct schedule_decision *d);

#endif
