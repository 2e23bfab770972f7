/* peer/api/turn.h -- whose turn it is: the caller's thread and the peer's worker take turns with
 * the tensors.
 *
 *   worker   ...mixes, encodes... steps() |                       | ...   evaluate() |          | ...
 *                                         v                       ^                  v          ^
 *   caller   hearsay_wait()... ---------> TURN_CALLER: trains --- round()... ------> TURN_TESTS: callback
 *
 * A worker that waits here waits for the caller, however long that takes; turn_leave() sends it on.
 * Notes for the caller wait here, too, so that no thread of ours ever runs a callback.
 */
#ifndef PEER_API_TURN_H
#define PEER_API_TURN_H

#include "nn/train/trainer.h"
#include "peer/api/hearsay.h"

#include <stdatomic.h>
#include <uv.h>

enum turn_of {
    TURN_PEER,   /* The library has the tensors. */
    TURN_CALLER, /* The caller has them, for local steps. */
    TURN_TESTS,  /* The caller has to evaluate what they hold. */
    TURN_OVER    /* The peer's thread has ended. */
};

enum { TURN_NOTES = 256, TURN_NOTE_MAX = 240 };

struct turn
{
    uv_mutex_t mutex; /* Guards all but `interrupted`. */
    uv_cond_t cond;
    enum turn_of of;
    bool leaving;     /* Nobody trains any more. */
    uint64_t round;   /* TURN_CALLER: of so many rounds that are done, */
    uint32_t steps;   /* these are the local steps to do. */
    bool handed;      /* The steps have been handed over. */
    uint64_t samples; /* TURN_TESTS: so many are enough. */
    bool answered;
    struct hearsay_did did;
    struct hearsay_score score;
    atomic_bool interrupted; /* Any thread or signal handler sets it. */

    struct
    {
        int level;
        char text[TURN_NOTE_MAX];
    } note[TURN_NOTES];
    size_t first, n_notes; /* A ring. */
    uint64_t n_lost;       /* Notes that it had no room for. */
};

/* 0 or a negative errno. */
int turn_open(struct turn *t);
void turn_close(struct turn *t);

/* ---- The peer's threads ---- */

/* Wait until the caller has done the steps: 0, and *did. -1: nobody will. */
int turn_steps(struct turn *t, uint64_t round, uint32_t steps, struct hearsay_did *did);
/* Wait until the caller has evaluated: 0, and *score. -1: it has not. */
int turn_test(struct turn *t, uint64_t samples, struct hearsay_score *score);
void turn_note(struct turn *t, int level, const char *text);
/* The peer's thread has ended: nobody waits any more. */
void turn_over(struct turn *t);

/* ---- The caller's thread ---- */

/* Nobody trains or evaluates from now on. */
void turn_leave(struct turn *t);
/* The steps are done. Only at TURN_CALLER. */
void turn_hand_over(struct turn *t, const struct hearsay_did *did);
/* The evaluation is, or was none: NULL. Only at TURN_TESTS. */
void turn_answer(struct turn *t, const struct hearsay_score *score);
/* Wait until it is not TURN_PEER, there are notes, or the time is over (at_ns of uv_hrtime();
 * UINT64_MAX: never), or somebody interrupts. */
enum turn_of turn_await(struct turn *t, uint64_t at_ns);
/* Was it interrupted? Then that is taken note of. */
bool turn_interrupted(struct turn *t);
/* The oldest note, to be told; false: there is none. */
bool turn_next_note(struct turn *t, int *level, char text[TURN_NOTE_MAX]);

#endif
