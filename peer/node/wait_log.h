/* peer/node/wait_log.h -- what a peer tells people of its waiting: for whom, and for whom no more.
 *
 * Called by phases.c, with what it has decided. Nothing here decides anything.
 */
#ifndef PEER_NODE_WAIT_LOG_H
#define PEER_NODE_WAIT_LOG_H

#include "peer/node/phases.h"

/* Whom lock step does not wait for is named once, and again when it is taken back. */
void wait_log_excused(const struct phases *ph, const struct schedule_view *v);

/* Both of the following return when a wait was last spoken of: told_us from now on. */

/* The quorum's state has changed. */
int64_t wait_log_quorum(const struct phases *ph);

/* No wait is silent. */
int64_t wait_log_wait(const struct phases *ph, const struct schedule_decision *d);

#endif
