/* peer/api/turn.h -- lets the caller's thread and the peer's worker thread use the tensors in
 * turns.
 *
 *   worker   ...mixes, encodes... steps() |                       | ...   evaluate() |          | ...
 *                                         v                       ^                  v          ^
 *   caller   hearsay_wait()... ---------> TURN_CALLER: trains --- round()... ------> TURN_TESTS: callback
 *
 * The worker waits for the caller without a time limit, until turn_leave() ends the wait. Messages
 * for the caller are queued here, too, so that callbacks run on the caller's thread only.
 */
#ifndef PEER_API_TURN_H
#define PEER_API_TURN_H

#include "nn/train/trainer.h"
#include "peer/api/hearsay.h"

#include <stdatomic.h>
#include <uv.h>

/* Side that may use the tensors. */
enum turn_side {
    TURN_PEER,   /* The library has the tensors. */
    TURN_CALLER, /* The caller has the tensors and does local steps. */
    TURN_TESTS,  /* The caller evaluates the model in the tensors. */
    TURN_OVER    /* The peer's thread has ended. The caller has the tensors. */
};

/* Largest number of queued messages, and size of a message in bytes. */
enum { TURN_NOTES = 256, TURN_NOTE_MAX = 240 };

/* Shared state of the two threads. */
struct turn
{
    uv_mutex_t mutex; /* Guards all fields except `interrupted`. */
    uv_cond_t cond;
    /* Side that may use the tensors now. */
    enum turn_side of;
    bool leaving;   /* True once the peer leaves the run: the caller gets no more turns. */
    uint64_t round; /* TURN_CALLER: complete rounds of the run. */
    uint32_t steps; /* TURN_CALLER: local steps to do. */
    bool handed;    /* True once the caller has finished the local steps. */
    /* TURN_TESTS: number of samples that are enough. 0: all. */
    uint64_t samples;
    /* True if the evaluation gave a result. */
    bool answered;
    /* Result of the caller's local steps, and of the evaluation. */
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
    size_t first, n_notes; /* Start and length of the ring buffer's content. */
    uint64_t n_lost;       /* Messages dropped because the ring buffer was full. */
};

/* Initialises the lock and sets TURN_PEER. Returns 0 or a negative errno. */
int turn_open(struct turn *t);
void turn_close(struct turn *t);

/* ---- Called by the peer's threads ---- */

/* Gives the tensors to the caller and waits until the local steps are done. Returns 0 and the
 * result in `*did`, or -1 if the peer leaves the run. */
int turn_steps(struct turn *t, uint64_t round, uint32_t steps, struct hearsay_did *did);
/* Waits until the caller has evaluated the model. Returns 0 and the result in `*score`, or -1 if
 * there is no result. */
int turn_evaluate(struct turn *t, uint64_t samples, struct hearsay_score *score);
/* Queues a message for the caller. If the queue is full, the message is dropped and counted. */
void turn_note(struct turn *t, int level, const char *text);
/* Reports that the peer's thread has ended, which ends every wait of the caller. */
void turn_over(struct turn *t);

/* ---- Called by the caller's thread ---- */

/* Ends the caller's turns: the worker no longer waits for local steps or evaluations. */
void turn_leave(struct turn *t);
/* Reports that the local steps are done and gives the tensors back. Only in TURN_CALLER. */
void turn_hand_over(struct turn *t, const struct hearsay_did *did);
/* Reports the result of an evaluation. NULL: the evaluation failed. Only in TURN_TESTS. */
void turn_answer(struct turn *t, const struct hearsay_score *score);
/* Waits until the turn is not TURN_PEER, a message is queued, the wait is interrupted, or the time
 * `at_ns` of uv_hrtime() is reached (UINT64_MAX: no limit). Returns the turn. */
enum turn_side turn_await(struct turn *t, uint64_t at_ns);
/* Returns whether a wait was interrupted, and clears that flag. */
bool turn_interrupted(struct turn *t);
/* Removes the oldest message from the queue. Returns false if the queue is empty. */
bool turn_next_note(struct turn *t, int *level, char text[TURN_NOTE_MAX]);

#endif
