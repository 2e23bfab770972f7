/* peer/node/round_protocol.h -- the interface of protocols that combine models without edges (a
 * *round protocol*).
 *
 * With most mixers, exchanges over edges combine the models, and a run has no round protocol. The
 * mixers of gossip/collectives (all-reduce, parameter server) have one: it exchanges messages over
 * the sessions, and the next job uses its result.
 *
 *   a job is done --> round_protocol_look(), messages --> the result is there --> the next job
 *
 * peer/node/collectives implements this interface. `round`: number of rounds of training that this
 * peer has done. `idle`: true if no job runs and the peer is in training or in the consensus phase.
 */
#ifndef PEER_NODE_ROUND_PROTOCOL_H
#define PEER_NODE_ROUND_PROTOCOL_H

#include "peer/node/run_context.h"

/* The round protocol of the current run. While it is not active, because there is no run or the run
 * has no round protocol, only round_protocol_hear() has an effect, and results are false, NULL or
 * 0. */
struct round_protocol;

/* Returns an instance that is not active, or NULL if memory is exhausted. The pointer arguments are
 * borrowed. */
struct round_protocol *round_protocol_open(struct env *env, struct sessions *s,
                                           struct run_context *w);
/* Frees *p, which must not be active. NULL is allowed. */
void round_protocol_close(struct round_protocol *p);

/* Begins the protocol that the run's mixer needs, if any. Requires that the run context is ready.
 * If there is no memory, the node ends. */
void round_protocol_begin(struct round_protocol *p);
/* Ends the protocol, if it is active. To be called before the run is closed. */
void round_protocol_end(struct round_protocol *p);
bool round_protocol_is_active(const struct round_protocol *p);

/* Called when a step of the node begins. Releases the packets of the last step, which the driver
 * has read by now. */
void round_protocol_release(struct round_protocol *p);
/* Called at each step of the node in training and in the consensus phase. Continues the protocol,
 * repeats lost messages, and stops waiting after a time limit. */
void round_protocol_look(struct round_protocol *p, uint64_t round, bool idle);
/* Handles a message m that arrived on session l. In a run without round protocol, the message is a
 * violation and ends the session. */
void round_protocol_hear(struct round_protocol *p, const struct link *l,
                         const struct wire_round_protocol *m, uint64_t round, bool idle);

/* Returns whether the result of `round` is still missing. If so, the next job waits for it. */
bool round_protocol_waits(const struct round_protocol *p, uint64_t round);
/* Returns the identity of the member whose message is missing for the result of `round`. NULL:
 * none. */
const uint8_t *round_protocol_awaited(const struct round_protocol *p, uint64_t round);
/* Returns the round of the latest result, which may be later than this peer's round. 0: there is no
 * result. */
uint64_t round_protocol_completed(const struct round_protocol *p);

#endif
