/* peer/node/join/join.h -- obtains the model with which this peer begins or rejoins the run.
 *
 * The first case that applies decides which model this peer gets:
 *
 *   - This peer lacks the run's initial model, because the program supplies other values
 *     (run_context.lacks): the run's initial model, fetched from any member of the run (initial.h).
 *   - A member has begun the run: a model fetched from members that have begun (state_transfer.h).
 *   - No member has begun the run, and the bootstrap list has had time to answer: the run's initial
 *     model.
 *
 * The cases are checked in this order, because only a peer with the run's initial model can
 * fetch a later model. If all members that have begun are lost during a transfer, the transfer is
 * discarded and the last case applies.
 *
 * If all other members have finished, this peer takes their model unchanged as its final model
 * (phases.h).
 */
#ifndef PEER_NODE_JOIN_JOIN_H
#define PEER_NODE_JOIN_JOIN_H

#include "peer/node/finish/finish.h"
#include "peer/node/run_context.h"

struct join;

/* Progress of the transfer of the initial model. */
enum initial_said {
    INITIAL_WAITS, /* The initial model is not completely fetched yet. */
    INITIAL_HERE,  /* The initial model has just become complete, and its hash is right. */
    /* No reachable member has the initial model any more, so the run must be given up. */
    INITIAL_NOWHERE
};

/* A model that was fetched completely and accepted. */
struct join_fetched
{
    const float *model; /* The fetched model, in the format of mixing_take_model(). */
    /* Round of the model: lower median of the rounds that the sources reported last. In the result
     * of the function join_fetched(), round_quorum_joined() has limited it. 0: no piece was
     * requested from any source. */
    uint64_t round;
    size_t n_givers; /* Number of sources that sent at least one piece. */
    /* Largest distance of the model from the model of a source, relative to the norm of the fetched
     * model. Estimated from sketches. INFINITY: no source has sent sketches, or the estimated norm
     * is 0. */
    double apart;
    bool certified; /* True: a certificate covers the models of all sources. */
};

/* Returns the state of a peer without a model, or NULL if memory is exhausted. The pointer
 * arguments are borrowed. */
struct join *join_open(struct env *env, struct sessions *s, struct run_context *w);
/* Frees *j after join_again(). NULL is allowed. */
void join_close(struct join *j);
/* Starts the two time limits of join_update(): for the answer of the bootstrap list, and for
 * members that resume from checkpoints. */
void join_start(struct join *j);

/* Discards this peer's model and all transfers. Called if the peer takes another run, or if its
 * model is too old for the round that the run has reached. */
void join_again(struct join *j);

/* Continues to obtain a model. Called while the peer has none, or to replace its model by one that
 * a certificate covers. Returns true if a fetched model has just become this peer's model. If the
 * peer begins with the run's initial model instead, returns false, and join_has_model() is true.
 * certificate: if not NULL, and there is a session with a member that it covers, the model is
 * fetched only from such members. */
bool join_update(struct join *j, const struct finish_proposal *certificate);

/* Returns whether this peer has a session with a member whose model the certificate covers. */
bool join_has_covered(const struct join *j, const struct finish_proposal *certificate);

/* Continues to fetch the run's initial model. Called while the run context lacks it. INITIAL_HERE:
 * the initial model is now the peer's model. If the run has begun without this peer, later steps
 * notice this and fetch a newer model. */
enum initial_said join_initial(struct join *j);

/* Returns the session of a member that still lacks the run's initial model. The first round must
 * wait for the member. NULL: there is none. */
const struct link *join_awaits(const struct join *j);

/* Handles a MODEL message with a piece or with sketches. A wrong message is a protocol violation of
 * its sender. Returns true if the fetched model is now complete and has become this peer's
 * model. */
bool join_model(struct join *j, const struct link *l, const struct wire_model *model);

/* Returns whether a live member has resumed from a checkpoint, so that a peer without a checkpoint
 * must not begin the run from round 0. Always false when the sum of --quorum-timeout, RESUME_US and
 * SCHEDULE_OPENING_US has passed since join_start(). */
bool join_others_resume(const struct join *j);

/* Returns the session of the member that has reached the highest round of this run. A round that
 * most members contradict is ignored (round_quorum.c). NULL: no connected member has begun the
 * run. */
const struct link *join_donor(const struct join *j);

/* Records that this peer has the model of its own checkpoint. No transfer may be under way. */
void join_resumed(struct join *j);

/* Returns whether this peer has a model with which it can train. */
bool join_has_model(const struct join *j);
/* Returns the facts about the fetched model, which itself is no longer stored (`model` is NULL).
 * Valid after join_update() has returned true, until the next fetch is complete. */
const struct join_fetched *join_fetched(const struct join *j);

#endif
