/* peer/node/join/state_transfer.h -- fetches the model of a late joiner, in pieces from several
 * members in parallel.
 *
 * A source is a member of this run that has begun it. Each piece of the model goes through these
 * states:
 *
 *   missing --send MODEL_REQ(piece)--> requested --receive MODEL(piece)--> present
 *      ^                                  |                                   |
 *      +-- session of the source ends, ---+                                   |
 *      |   or nothing arrives for 5 s                                         |
 *      +-- source is excluded ------------------------------------------------+
 *
 * When all pieces are present, the model is judged:
 *
 *   MODEL_REQ(key) to all sources --> sketches of their models arrive --> judge
 *       no source is contradicted      the model is complete
 *       a source is contradicted       exclude it and fetch its pieces from other sources
 *
 * Up to STATE_TRANSFER_SOURCES sources are used in parallel. While there are fewer, this peer dials
 * more members. At most STATE_TRANSFER_WINDOW requests are open at each source, so that a faster
 * source sends more pieces. If no piece is left to request, pieces that are late are also requested
 * from a second source, and the copy that arrives first is used. When the session of a source ends,
 * the pieces that it has sent stay valid.
 *
 * The pieces are from different rounds, because the sources continue to train. A single message
 * with the whole model would be no newer: all of its values would be as old as the oldest piece.
 * gossip/exchange/piece.h explains why a mixture of pieces is a good model, and how it is judged.
 *
 * A source that most other sources contradict is excluded. If two sources contradict each other and
 * no third one has answered, the source whose model is farther from the run's initial model is
 * excluded. Nothing shows which of the two sources is wrong, and the nearer model does less harm. A
 * single source is not judged, because there is nothing to compare it with.
 *
 * With --outer the pieces of the outer momentum follow those of the model (run_context.h). They are
 * not judged, because each peer has another momentum.
 *
 * The fetched model is staged in memory of its own and is used only when it is complete. Memory:
 * one model, and the sketches of up to PIECE_SOURCES models.
 *
 * Only this folder and tests include this header.
 */
#ifndef PEER_NODE_JOIN_STATE_TRANSFER_H
#define PEER_NODE_JOIN_STATE_TRANSFER_H

#include "gossip/exchange/piece.h"
#include "peer/node/join/join.h"

enum { STATE_TRANSFER_SOURCES = 4 /* Number of sources that are used in parallel. */ };

/* The transfer of one model. It can be started again after it was dropped. */
struct state_transfer;

/* Returns a transfer that has not started, or NULL if memory is exhausted. The pointer arguments
 * are borrowed. */
struct state_transfer *state_transfer_open(struct env *env, struct sessions *s,
                                           struct run_context *w);
/* Frees *f, which must not have started or must have been dropped. NULL is allowed. */
void state_transfer_close(struct state_transfer *f);
/* Discards the fetched pieces and frees their memory. A new fetch may be started afterwards. */
void state_transfer_drop(struct state_transfer *f);

/* Dials up to STATE_TRANSFER_SOURCES - 1 live members that have no session with this peer. These
 * members stay wanted contacts (sessions_want()) until state_transfer_drop(). */
void state_transfer_seek(struct state_transfer *f);

/* Returns whether the member of this session can be a source: it has begun this run. With a
 * certificate, two more conditions apply: the certificate covers the member, and the member has
 * sent no model that the certificate does not cover. O(members of the certificate). */
bool state_transfer_is_source(const struct link *l, const struct finish_proposal *certificate);

/* Starts or continues the fetch: chooses sources, sends requests, and judges the model once all
 * pieces are present. If `certificate` differs from that of the last call, the fetch starts again.
 * Called at every step. Returns true if the model is complete and was accepted. If memory for the
 * model is not available, the node ends. */
bool state_transfer_update(struct state_transfer *f, const struct finish_proposal *certificate);

/* Sets *r to the accepted model. Called after state_transfer_update() has returned true. The result
 * is valid until state_transfer_drop(). O(sources times pieces). */
void state_transfer_result(const struct state_transfer *f, struct join_fetched *r);

/* Handles a MODEL message with a piece or with sketches. Returns NULL, or the protocol violation in
 * words. */
const char *state_transfer_take(struct state_transfer *f, const struct link *l,
                                const struct wire_model *m);

/* Returns whether a fetch is under way. */
bool state_transfer_is_active(const struct state_transfer *f);
/* Returns the certificate of the last state_transfer_update(). NULL: sources need not be covered by
 * a certificate. */
const struct finish_proposal *state_transfer_certificate(const struct state_transfer *f);

#endif
