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

/* The round protocol of the current run. Without a run, or in a run without a round protocol, it is
 * not active: round_protocol_hear() reports a violation, the other functions do nothing, and their
 * results are false, NULL or 0. */
struct round_protocol;

/* Returns an instance that is not active, or NULL if memory is exhausted. The pointer arguments are
 * borrowed. */
struct round_protocol *round_protocol_open(struct env *env, struct sessions *s,
                                           struct run_context *w);
/* Frees *p, which must not be active. NULL is allowed. */
void round_protocol_close(struct round_protocol *p);

/* Begins the protocol that the run's mixer needs, if any. The run context must be ready. If memory
 * is exhausted, the node ends. */
void round_protocol_begin(struct round_protocol *p);
/* Ends the protocol, if it is active. To be called before the run is closed. */
void round_protocol_end(struct round_protocol *p);
bool round_protocol_is_active(const struct round_protocol *p);

/* Releases the packets that were sent in the last step. To be called at the beginning of each step:
 * the driver has then read them. */
void round_protocol_release(struct round_protocol *p);
/* Continues the protocol: sends the messages that are due, repeats them if answers are late, and
 * limits the wait for a missing session to SCHEDULE_LOST_US. To be called at each step in training
 * and in the consensus phase. */
void round_protocol_look(struct round_protocol *p, uint64_t round, bool idle);
/* Handles a message m that arrived on session l. An invalid message, and each message in a run
 * without a round protocol, is a violation and ends the session. */
void round_protocol_hear(struct round_protocol *p, const struct link *l,
                         const struct wire_round_protocol *m, uint64_t round, bool idle);

/* Returns whether the result of `round` is still missing. If so, the next job waits for it. */
bool round_protocol_waits(const struct round_protocol *p, uint64_t round);
/* Returns the identity of a member for which the result of `round` waits: its message or its
 * session is missing. NULL: there is no such member. */
const uint8_t *round_protocol_awaited(const struct round_protocol *p, uint64_t round);
/* Returns the round of the latest result, which may be later than this peer's round. 0: there is no
 * result. */
uint64_t round_protocol_completed(const struct round_protocol *p);

#endif
