/* peer/node/step/graceful_stop.h -- delays a requested end until all peers have one more
 * checkpoint.
 *
 * In lock step a checkpoint is useful only if every peer has one of the same step counter. A peer
 * that is asked to stop therefore proposes a step counter for one more checkpoint (checkpoint.h)
 * and continues to train.
 *
 * The checkpoint is due at a step counter d, a few rounds ahead. The peer leaves at step counter
 * d + 2 reach + 2, because all peers have then passed d. `reach` is the eccentricity of this peer.
 * The result depends on the case:
 *
 *   - All peers are asked, as by Ctrl-C in `hearsay local`: all agree on d, and a peer that leaves
 *     does not change what the others do up to d.
 *   - Only this peer is asked: its neighbours ignore the proposal if this peer announced another
 *     checkpoint less than half the --checkpoint interval ago (checkpoint_word()).
 *   - Rounds are slow: the peer leaves after GRACEFUL_STOP_US. The run can resume from the previous
 *     checkpoint.
 *   - A member has left or died since the previous checkpoint, and this peer has not reached d: the
 *     peer leaves at once, with the previous checkpoint.
 */
#ifndef PEER_NODE_STEP_GRACEFUL_STOP_H
#define PEER_NODE_STEP_GRACEFUL_STOP_H

#include "peer/node/step/phases.h"

/* State of a request to stop this peer. */
struct graceful_stop;

/* Returns the state of a peer that was not asked to stop, or NULL if memory is exhausted. */
struct graceful_stop *graceful_stop_open(void);
/* Frees *h. NULL is allowed. */
void graceful_stop_close(struct graceful_stop *h);

/* Cancels the delay: graceful_stop_waits() returns false from now on. */
void graceful_stop_at_once(struct graceful_stop *h);
/* Returns whether this peer must delay its requested end. Called while no job runs. The first call
 * requests the checkpoint. */
bool graceful_stop_waits(struct graceful_stop *h, struct phases *ph);

#endif
