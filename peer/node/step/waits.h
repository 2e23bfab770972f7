/* peer/node/step/waits.h -- records for which neighbour the schedule waits, and computes what a
 * peer waits for and for how long.
 *
 * node_wait() tells drivers what this peer waits for. The result depends on the phase, and in each
 * phase the first condition that holds decides.
 *
 *   - Joining: NODE_WAITS_RUN if no run is known. NODE_WAITS_RESUME if the checkpoint to resume
 *     from is not decided. NODE_WAITS_MEMBERS if the run has not begun and fewer than --min-peers
 *     are present. NODE_WAITS_MODEL if there is no model. Otherwise NODE_WAITS_EDGES.
 *   - Training and consensus phase: NODE_WAITS_QUORUM below the quorum, even while a job runs.
 *     NODE_WAITS_DISK if a checkpoint has to be on disk. NODE_WAITS_NEIGHBOUR if the round protocol
 *     waits for a member, or the last decision was to wait for a neighbour. NODE_WAITS_OTHERS if no
 *     neighbour is left (schedule_decision.stranded). Otherwise NODE_WAITS_NOTHING, for example
 *     while a job runs.
 *   - Finishing: NODE_WAITS_NOTHING while the last job runs. NODE_WAITS_DISK if the final model has
 *     to be on disk. Otherwise NODE_WAITS_OTHERS.
 *   - Left: NODE_WAITS_NOTHING.
 */
#ifndef PEER_NODE_STEP_WAITS_H
#define PEER_NODE_STEP_WAITS_H

#include "peer/node/schedule.h"

#include "gossip/wire/wire.h"

/* Cause of a wait, by the last decision of the schedule. */
enum waits_for {
    WAITS_FOR_NOTHING,
    /* The last decision of the schedule is to wait for the step counter or the delta of a
     * neighbour. */
    WAITS_FOR_NEIGHBOUR,
    /* The last decision of the schedule is to wait for the finish protocol, because no neighbour is
     * left to mix with (schedule_decision.stranded). */
    WAITS_FOR_FINISH
};

/* The present wait of the schedule. Written by waits_decided() only. */
struct waits
{
    enum waits_for what;
    /* With WAITS_FOR_NEIGHBOUR: identity of the neighbour, and its step counter at the decision. */
    uint8_t id[WIRE_ID_BYTES];
    uint64_t beat;
};

/* Records a decision of the schedule. `id`: identity of the neighbour d->for_whom. If that is NULL,
 * `id` is ignored. */
void waits_decided(struct waits *w, const struct schedule_decision *d, const uint8_t *id);

struct member;
struct phases;

/* Returns the member for which this peer waits after its own model is final:
 *
 *   (1) a present member that has not ended its run and is not stalled
 *   (2) if there is none, this peer waits for the certificate, and the voters that are present are
 *       no quorum: a voter that is dead or has left. Of several such voters, the one with the
 *       smallest identity of all initial members is returned, because it decides between equal
 *       halves. If that one is present, any other is returned.
 *
 * NULL: this peer waits for no single member. O(members^2). */
const struct member *waits_last_member(const struct phases *ph);
/* Returns the largest number of rounds for which this peer mixes after another peer has ended, in
 * lock step and without faults. */
uint64_t waits_mixing_rounds(const struct phases *ph);
/* Returns the longest time for which a peer with a frozen model waits for the certificate, in
 * microseconds. The time is the sum of two parts:
 *
 *   (1) --quorum-timeout, because other members may wait that long for the quorum before they end
 *   (2) the larger of SCHEDULE_STALL_US and the duration of waits_mixing_rounds() mean jobs */
int64_t waits_certificate_limit_us(const struct phases *ph);
/* Returns the longest time for which this peer waits after its last job, in microseconds. */
int64_t waits_last_limit_us(const struct phases *ph);

#endif
