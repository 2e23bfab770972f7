/* peer/node/step/waits.h -- stores the neighbour for which the schedule waits, and the rules of
 * node_wait().
 *
 * node_wait() tells drivers what this peer waits for. The first row of the phase that applies
 * decides:
 *
 *   phase       condition                                          result
 *   joining     no run is known                                    NODE_WAITS_RUN
 *               the checkpoint to resume from is not decided       NODE_WAITS_RESUME
 *               the run has not begun, fewer than --min-peers      NODE_WAITS_MEMBERS
 *               no model                                           NODE_WAITS_MODEL
 *               otherwise                                          NODE_WAITS_EDGES
 *   training,   below the quorum, even while a job runs            NODE_WAITS_QUORUM
 *   consensus   a checkpoint has to be on disk                     NODE_WAITS_DISK
 *               the round protocol waits for a member              NODE_WAITS_NEIGHBOUR
 *               the last decision was to wait for a neighbour      NODE_WAITS_NEIGHBOUR
 *               no neighbour is left (schedule_decision.stranded)  NODE_WAITS_OTHERS
 *               otherwise, for example while a job runs            NODE_WAITS_NOTHING
 *   finishing   the last job runs                                  NODE_WAITS_NOTHING
 *               the final model has to be on disk                  NODE_WAITS_DISK
 *               otherwise                                          NODE_WAITS_OTHERS
 *   left                                                           NODE_WAITS_NOTHING
 */
#ifndef PEER_NODE_STEP_WAITS_H
#define PEER_NODE_STEP_WAITS_H

#include "peer/node/schedule.h"

#include "gossip/wire/wire.h"

/* What the last decision of the schedule waits for. */
enum waits_for {
    WAITS_FOR_NOTHING,
    /* The last decision of the schedule is to wait for the round count or the delta of a
     * neighbour. */
    WAITS_FOR_NEIGHBOUR,
    /* The last decision of the schedule is to wait for the finish protocol, because no neighbour is
     * left to mix with (schedule_decision.stranded). */
    WAITS_FOR_FINISH
};

/* What the schedule waits for. Written by waits_decided() only. */
struct waits
{
    enum waits_for what;
    /* With WAITS_FOR_NEIGHBOUR: identity of the neighbour, and its round count at the decision. */
    uint8_t id[WIRE_ID_BYTES];
    uint64_t beat;
};

/* Records a decision of the schedule. `id`: identity of the neighbour d->for_whom. Ignored if the
 * decision names no neighbour. */
void waits_decided(struct waits *w, const struct schedule_decision *d, const uint8_t *id);

#endif
