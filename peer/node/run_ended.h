/* peer/node/run_ended.h -- has the run ended without this peer?
 *
 *   gathering     it was in the run before, has no checkpoint of it, and --quorum-timeout is over while too
 *                 few members are there to begin: it ends, and keeps no model
 *   training      the others say that they have finished, or all were gone when it came back
 *   consensus phase    all others have finished and gone, and its drift is not known, or over the target
 *
 * Then its own end is `away` (outcome.h). A part of phases.h, whose fields it reads and writes.
 */
#ifndef PEER_NODE_RUN_ENDED_H
#define PEER_NODE_RUN_ENDED_H

#include "peer/node/phases.h"

/* In gathering: are members enough there to begin? */
void run_ended_gathers(struct phases *ph, bool complete);

/* Have they been missing for too long? Ends the node then. */
void run_ended_waits(struct phases *ph);

/* In training, and in the consensus phase. */
bool run_ended_left_behind(const struct phases *ph);

#endif
