/* peer/api/turn.h -- lets the caller's thread and the peer's worker thread use the tensors in
 * turns. Each arrow in the diagram is a change of the turn, named by the new value of the turn:
 *
 *   worker   mix, encode, steps() waits                          ...  evaluate() waits
 *                            |         ^                              |             ^
 *                      TURN_CALLER  TURN_PEER                     TURN_TESTS    TURN_PEER
 *                            v         |                              v             |
 *   caller   hearsay_wait() returns,  hearsay_round() is called,  the callback runs and returns
 *            the caller trains        and waits for the next turn
 *
 * The worker waits for the caller without a time limit; only turn_leave() ends this wait early.
 * Messages for the caller are queued in this struct, too, so that callbacks run on the caller's
 * thread only.
 */
#ifndef PEER_API_TURN_H
#define PEER_API_TURN_H

#include "nn/train/trainer.h"
#include "peer/api/hearsay.h"

#include <stdatomic.h>
#include <uv.h>

/* The side that may use the tensors now: the library or the caller. */
enum turn_side {
    TURN_PEER,   /* The library has the tensors. */
    TURN_CALLER, /* The caller has the tensors and does local steps. */
    TURN_TESTS,  /* The caller evaluates the model in the tensors. */
    TURN_OVER    /* The peer's thread has ended. The caller has the tensors. */
};

/* TURN_NOTES: largest number of queued messages. TURN_NOTE_MAX: size of one message in bytes, with
 * the NUL. */
enum { TURN_NOTES = 256, TURN_NOTE_MAX = 240 };

/* State that the caller's thread and the peer's worker thread share. */
struct turn
{
    uv_mutex_t mutex; /* Guards all fields of this struct except `interrupted`. */
    uv_cond_t cond;
    /* Side that has the tensors now. */
    enum turn_side of;
    bool leaving;   /* True after turn_leave(): the caller does not get the tensors again. */
    uint64_t round; /* While the turn is TURN_CALLER: number of complete rounds of the run. */
    uint32_t steps; /* While the turn is TURN_CALLER: number of local steps to do. */
    /* While the turn is TURN_CALLER: true once the caller has given the tensors back
     * (turn_hand_over()). */
    bool handed;
    /* While the turn is TURN_TESTS: number of samples to evaluate. 0: all samples. */
    uint64_t samples;
    /* While the turn is TURN_TESTS: true if the caller's evaluation callback gave a result. */
    bool answered;
    /* did: result of the caller's local steps. score: result of the evaluation. */
    struct hearsay_did did;
    struct hearsay_score score;
    /* Set by any thread or signal handler to interrupt a wait. */
    atomic_bool interrupted;

    /* Ring buffer of messages for the caller. */
    struct
    {
        int level;
        char text[TURN_NOTE_MAX];
    } note[TURN_NOTES];
    /* first: index of the oldest message in note[]. n_notes: number of queued messages. */
    size_t first, n_notes;
    uint64_t n_lost; /* Messages dropped because the ring buffer was full. */
};

/* Initialises the lock and sets TURN_PEER. Returns 0 or a negative errno. */
int turn_open(struct turn *t);
void turn_close(struct turn *t);

/* ---- Functions that the peer's threads call ---- */

/* Gives the tensors to the caller and waits until the local steps are done. Returns 0 and their
 * result in `*did`, or -1 if the caller leaves the run. */
int turn_steps(struct turn *t, uint64_t round, uint32_t steps, struct hearsay_did *did);
/* Asks the caller to evaluate the model in the tensors, and waits for the result. Returns 0 and the
 * result in `*score`, or -1 if there is no result. */
int turn_evaluate(struct turn *t, uint64_t samples, struct hearsay_score *score);
/* Queues a message for the caller. If the queue is full, the message is dropped and counted. */
void turn_note(struct turn *t, int level, const char *text);
/* Reports that the peer's thread has ended, which ends every wait of the caller. */
void turn_over(struct turn *t);

/* ---- Functions that the caller's thread calls ---- */

/* Leaves the run: the caller does not get the tensors again, and the worker thread no longer waits
 * for the caller. */
void turn_leave(struct turn *t);
/* Reports that the local steps are done and gives the tensors back to the peer. Allowed only while
 * the turn is TURN_CALLER. */
void turn_hand_over(struct turn *t, const struct hearsay_did *did);
/* Reports the result of an evaluation. `score` NULL: the evaluation failed. Allowed only while the
 * turn is TURN_TESTS. */
void turn_answer(struct turn *t, const struct hearsay_score *score);
/* Waits until the turn is not TURN_PEER, a message is queued, the wait is interrupted, or
 * uv_hrtime() reaches `at_ns` (UINT64_MAX: no limit). Returns the turn. */
enum turn_side turn_await(struct turn *t, uint64_t at_ns);
/* Returns whether hearsay_interrupt() was called since the last call of this function. */
bool turn_interrupted(struct turn *t);
/* Removes the oldest message from the queue. Returns false if the queue is empty. */
bool turn_next_note(struct turn *t, int *level, char text[TURN_NOTE_MAX]);

#endif
