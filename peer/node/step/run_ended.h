/* peer/node/step/run_ended.h -- detects that the run has ended without this peer.
 *
 * The run has ended without this peer if one of these conditions holds:
 *
 *   - The peer is joining, was in the run before, and does not resume from a checkpoint. During
 *     --quorum-timeout, too few members were present to begin, and no live member has resumed or
 *     waits to resume from a checkpoint (join_others_resume()). The peer ends without a model. If
 *     an earlier process of the peer has stored its final model, the peer does not start a run, and
 *     waits for a member that has begun.
 *   - The peer is in training or in the consensus phase and has no session. All other members have
 *     finished, and have refused all dials for ENDED_AFTER_PAUSE_US. In a run that ends with a
 *     certificate, this peer must also know the certificate.
 *   - The peer is in training or in the consensus phase. It has lost its last session, because it
 *     was paused or cut off from the network, and since then all its dials to other members were
 *     refused. A peer that was cut off must also be below the quorum, or all other members must
 *     have finished.
 *
 * The verdict is then ended-elsewhere (verdict.h). The functions belong to the module phases, whose
 * fields they read and write.
 */
#ifndef PEER_NODE_STEP_RUN_ENDED_H
#define PEER_NODE_STEP_RUN_ENDED_H

#include "peer/node/step/phases.h"

/* Called while this peer joins. Starts or clears the timer ph->missed_us, which measures how long
 * too few members are present. `complete`: enough members are present to begin, or other members
 * resume from checkpoints. */
void run_ended_gathers(struct phases *ph, bool complete);

/* Ends the node if this peer is joining and too few members have been present for --quorum-timeout.
 * Applies only to a peer that was in the run before. */
void run_ended_waits(struct phases *ph);

/* Returns whether the run has ended without this peer. Once true, the result stays true
 * (ph->away). */
bool run_ended_left_behind(const struct phases *ph);

/* Returns whether the processes of all other members have ended, by the second or third condition
 * at the top of this file. The phase of this peer is not examined: the function is also used while
 * this peer waits for the certificate of the run. */
bool run_ended_deserted(const struct phases *ph);

#endif
