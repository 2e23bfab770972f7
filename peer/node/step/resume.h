/* peer/node/step/resume.h -- decides from which checkpoint a restarted peer resumes, and copies the
 * state of this peer for new checkpoints.
 *
 * A process that finds checkpoints of an earlier process (node_config.resume) announces their step
 * counters in its member record and waits for the members that took part when the newest checkpoint
 * was taken. While it waits (resume_is_waiting()), it opens no edges and fetches no model. The wait
 * ends when one of these holds:
 *
 *   - each member has restarted, has left, or is replaced: a live member has its name, but another
 *     identity
 *   - a session shows that one member is still the same process as at the checkpoint
 *   - RESUME_US (30 s) have passed, and the members that are back reach the quorum
 *   - --quorum-timeout has passed
 *
 * Then the first case that applies decides. A *restarted member* is a member of the checkpoint that
 * is back with a new process. A checkpoint is *common* if each restarted member has a checkpoint of
 * the same step counter.
 *
 *   - A member is still the same process, so the cluster did not stop: resume from the newest
 *     checkpoint.
 *   - The run is not in lock step: resume from the newest checkpoint.
 *   - A checkpoint is common: resume from the newest common checkpoint.
 *   - Both checkpoints of a restarted member are newer than all checkpoints of this peer: do not
 *     use this peer's checkpoints, and join the run as a new peer.
 *   - This peer has only one checkpoint: start the run again from round 0.
 *   - Otherwise: resume from the newest checkpoint.
 *
 * If an earlier process of this peer has stored its final model and reported it to the finish
 * protocol, a certificate may depend on the model. The peer then does not wait: it takes the model
 * back as its final model, and takes the counters from the newest checkpoint. A process without
 * checkpoints takes the model back only if the promise contains the certificate
 * (resume_restore_certified()).
 *
 * Resuming restores the model, the optimiser and all counters of the checkpoint. If the members are
 * the same, the edges are restored, too: both ends report epoch and round of the edge, find them
 * equal, and send their last deltas again. The run then continues bit for bit as without the
 * restart. If the neighbours or the topology differ, the edges begin new epochs.
 *
 * In lock step, or if the cluster did not stop, a resumed peer may be late: some peer is ahead of
 * the checkpoint by more rounds than the eccentricity of this peer plus 2. The resumed peer then
 * fetches a model from its neighbours, like every late joiner (join.h). If a resumed peer finds
 * none of the other members, it continues, but does not claim consensus, because the others may
 * have finished without it. The initial members (quorum.h) are read from the checkpoint.
 */
#ifndef PEER_NODE_STEP_RESUME_H
#define PEER_NODE_STEP_RESUME_H

#include "nn/math/state.h"
#include "peer/node/step/job.h"

struct resume;

/* Returns the state of a process without checkpoints, or NULL if memory is exhausted. The pointer
 * arguments are borrowed. */
struct resume *resume_open(struct env *env, struct sessions *s, struct run_context *w,
                           struct edges *es, struct join *j, struct phases *ph, struct job *job);
/* Frees *r. NULL is allowed. */
void resume_close(struct resume *r);

/* Returns whether this process has not decided yet from which checkpoint it resumes. */
bool resume_is_waiting(const struct resume *r);
/* Returns whether this process has resumed from a checkpoint or a stored final model, or waits for
 * the members of a checkpoint. */
bool resume_has_checkpoint(const struct resume *r);

/* Copies all state that this peer needs to resume, and asks the driver to write the copy to disk
 * (node_effects.checkpoint). Must be called before the next job, because the job changes the state.
 * If memory is not available, warns and takes no checkpoint. */
void resume_copy(struct resume *r);
/* Takes one more checkpoint when the node is asked to stop, so that no finished round is lost. Does
 * nothing in lock step with neighbours. There each peer stops at a different round, so the new
 * checkpoint would exist at one peer only, and would replace a checkpoint that all peers have. */
void resume_copy_last(struct resume *r);
/* Swaps *s with the copy that was made for a checkpoint, and returns the step counter of the copy.
 * The memory that *s had before is used for the next copy. */
uint64_t resume_take_copy(struct resume *r, struct state *s);

/* Reads the run description in the newest checkpoint into *run. Returns 0, or -EINVAL if the
 * checkpoint cannot be used or contradicts the flags of this process. In that case the node has
 * ended. */
int resume_run(struct resume *r, struct run *run);

/* Takes back the final model of an earlier process of this peer, or starts to wait for the members
 * of the checkpoint. This peer must already have adopted the run of the checkpoint
 * (run_context_take()). */
void resume_start(struct resume *r);

/* Called by a process without checkpoints when the run is known. Takes back the final model of an
 * earlier process if that process has reported the model, and the stored promise contains the
 * certificate of the run. The peer then ends with this certificate. Without a certificate a model
 * is not taken back, because without a checkpoint this process does not know the voters. */
void resume_restore_certified(struct resume *r);

/* Returns whether this process has resumed from a checkpoint of several members, or waits to do so,
 * and has received no HELLO message of any peer. Members that have left or are replaced do not
 * count. */
bool resume_deserted(const struct resume *r);

/* Continues to wait for the members of the checkpoint. Returns false while the wait lasts, or if
 * the node has ended. Returns true once the decision is made: the peer has loaded a checkpoint,
 * joins as a new peer, or starts the run again. */
bool resume_look(struct resume *r);

#endif
