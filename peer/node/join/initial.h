/* peer/node/join/initial.h -- fetches the initial model of the run, if this peer's program supplies
 * other initial values.
 *
 * A program that uses libhearsay may supply initial values of its own. They may differ from the
 * run's, for example because the program did not seed its random generator (run_context.lacks). The
 * initial model of the run is that of the peer that created the run, and the run description
 * contains its hash. Every member keeps the initial model, because replicas start from it. A peer
 * that lacks it asks one member at a time for all pieces (gossip/exchange/piece.h) and checks the
 * hash at the end:
 *
 *   - Pieces arrive: store them in order, and request the next ones.
 *   - Nothing arrives for INITIAL_STALL_US, or the session ends: keep the pieces that are here, and
 *     ask the next member for the missing ones.
 *   - All pieces are here, and the hash is right: the result is INITIAL_HERE.
 *   - The hash is wrong, and all pieces are from one member: discard them, and do not ask that
 *     member for INITIAL_WRONG_US.
 *   - The hash is wrong, and the pieces are from several members: discard them, and fetch all
 *     pieces from one member.
 *   - For INITIAL_ABANDON_US, no session is with a member that has the model: the result is
 *     INITIAL_NOWHERE, unless this peer has no session and a live member may still be reached.
 *
 * A peer that lacks the initial model says HELLO like a peer without a run. Members therefore do
 * not ask it for the model. A member that has a session with such a peer also waits for it before
 * the first round, up to --quorum-timeout (initial_awaited()).
 *
 * Only this folder and tests include this header.
 */
#ifndef PEER_NODE_JOIN_INITIAL_H
#define PEER_NODE_JOIN_INITIAL_H

#include "peer/node/join/join.h"

/* Transfer of the run's initial model. The pieces are written to mixing.x0 of the run context. */
struct initial;

/* Returns a transfer that has not started, or NULL if memory is exhausted. The pointer arguments
 * are borrowed. */
struct initial *initial_open(struct env *env, struct sessions *s, struct run_context *w);
/* Frees *in. NULL is allowed. */
void initial_close(struct initial *in);

/* Forgets the pieces and the member that was asked. Excluded members stay excluded. */
void initial_forget(struct initial *in);

/* Continues the transfer: chooses a member, sends requests, and checks the complete model. Called
 * at every step while the run context lacks the initial model. */
enum initial_said initial_update(struct initial *in);

/* Handles a MODEL message of round WIRE_ROUND_INITIAL. Returns NULL, or the protocol violation in
 * words. */
const char *initial_take(struct initial *in, const struct link *l, const struct wire_model *m);

/* Returns whether the last initial_update() found no session with a member that has the initial
 * model. The caller should then dial other members. */
bool initial_alone(const struct initial *in);

/* Returns the session of a member that lacks the run's initial model or has no run yet. The first
 * round must wait for this member, up to --quorum-timeout after the session began. NULL: there is
 * no such member, or every peer of the run computes the initial model itself (trainer.begins is
 * NULL). */
const struct link *initial_awaited(const struct initial *in);

#endif
