/* peer/node/join/model_server.h -- sends this peer's model to members and observers that request
 * it, as a whole, in pieces, or as sketches.
 *
 * The request determines the answer:
 *
 *   - Whole model, from a member or an observer. The request names a round, or the start of the
 *     next drift window (measurement of the consensus distance). The answer is a copy of the model
 *     at that round or later, or at the start of that window.
 *   - Sketches of the layers, from an observer: sketches of such a copy (gossip/exchange/layers.h).
 *   - A piece of the model, or the sketches of all pieces, from a member: made from a shared copy
 *     of the model, which is at most MODEL_SERVER_COPY_US old and of the requested round or later
 *     (gossip/exchange/piece.h).
 *   - A piece of the run's initial model, from a member: sent at once from mixing.x0.
 *
 * Each session has at most one pending request for a whole model or for layer sketches, and at most
 * MODEL_SERVER_PIECES pending requests for pieces. A new request beyond that replaces the oldest
 * one. Requests end with their session.
 *
 * An observer has at most one answer in its send queue. Otherwise an observer that requests models
 * and does not read them would fill the queue of its session.
 *
 * While a job runs, the worker owns the model, and a job may take long. Therefore one copy of the
 * whole model is made for the first request for a piece, between two jobs or by the job itself. All
 * requests for pieces within the next MODEL_SERVER_COPY_US are answered from this copy, until a
 * request needs a later round.
 */
#ifndef PEER_NODE_JOIN_MODEL_SERVER_H
#define PEER_NODE_JOIN_MODEL_SERVER_H

#include "peer/node/run_context.h"

struct model_server;

/* Returns a server without requests, or NULL if memory is exhausted. The pointer arguments are
 * borrowed. */
struct model_server *model_server_open(struct env *env, struct sessions *s, struct run_context *w);
/* Frees *o and the buffers of the initial model. All other buffers must have been released. NULL is
 * allowed. */
void model_server_close(struct model_server *o);

/* Releases the buffers that the previous step has sent, and the copy for pieces if it is older than
 * MODEL_SERVER_COPY_US. Called at the start of each step. */
void model_server_release(struct model_server *o);

/* Releases all buffers of the run and drops all requests for pieces. Called when the run is given
 * up. Requests for a whole model stay pending and are answered from the next run. */
void model_server_forget(struct model_server *o);

/* Records whether the certificate of the run covers this peer's current model. Called in each step.
 * MODEL messages contain this flag. */
void model_server_certify(struct model_server *o, bool certified);

/* Stores a request for a whole model or for layer sketches. It replaces the pending request of this
 * session. */
void model_server_take(struct model_server *o, const struct link *l,
                       const struct wire_model_req *m);

/* Stores a request for a piece, or for the sketches of all pieces. round: round that this peer has
 * reached. Drops the copy for pieces if both the requested round and `round` are later than the
 * round of the copy. Returns false if the piece does not exist, if no run is ready, or if the
 * session is an observer's. */
bool model_server_take_piece(struct model_server *o, const struct link *l,
                             const struct wire_model_req *m, uint64_t round);

/* Sends a piece of the run's initial model at once. The initial model never changes, so this is
 * allowed while a job runs. Sends nothing if this peer lacks the initial model, if the piece does
 * not exist, or if no buffer is free. Returns false if the request is a protocol violation. */
bool model_server_send_initial(struct model_server *o, const struct link *l,
                               const struct wire_model_req *m);

/* Answers the pending requests for pieces from the copy of the model. Without a copy, the requests
 * stay pending. */
void model_server_serve_pieces(struct model_server *o);

/* Records that the send queue of session `number` has sent its bulk data, so that the session may
 * get its next answer. Returns the session if a request for a whole model or for layer sketches can
 * be answered now, else NULL. */
const struct link *model_server_sent(struct model_server *o, uint32_t number);

/* Returns whether a copy of the model at round `round` would answer a pending request. `mixed`: the
 * mixing of this round is already in the model. Sets *at_window to true if the copy would answer
 * only requests for the start of a drift window (a measurement of the consensus distance). */
bool model_server_due(const struct model_server *o, uint64_t round, bool mixed, bool *at_window);

/* Takes ownership of the caller's reference to `model`, a copy of the model before the local steps
 * of round `round`. Answers all requests for pieces, and all other requests for this round or an
 * earlier one. If a drift window (a measurement of the consensus distance) has just begun, also
 * answers the requests for its start. `mixed`: the mixing of this round is already in the model. If
 * not, observers get no answer: they compare models of several peers, which must all be taken after
 * the mixing. */
void model_server_serve(struct model_server *o, struct packet *model, uint64_t round, bool mixed);

/* Copies the current model, and answers all requests that this copy can answer, as
 * model_server_serve() does. No job may be running. */
void model_server_serve_idle(struct model_server *o, uint64_t round, bool mixed);

/* Answers the pending requests for pieces of all sessions. Then answers the pending request of
 * session l for a whole model or for layer sketches, from a copy of the current model, which is of
 * round `round`. This request stays pending if an answer is in the send queue of the session. It
 * also stays pending if it is for a later round than `round`, unless `any_round` is true. `mixed`:
 * see model_server_serve(). No job may be running. */
void model_server_serve_now(struct model_server *o, const struct link *l, uint64_t round,
                            bool mixed, bool any_round);

#endif
