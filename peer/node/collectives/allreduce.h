/* peer/node/collectives/allreduce.h -- the collective of a round: all members' models after their local steps become
 * their mean. A machine of its own, for mixers that `collects` (gossip/collectives/allreduce.h).
 *
 *    a round's job done --> begun --all sessions are there--> step 0, 1, ... --> the mean --> next job
 *                             ^                                  |
 *                             +---- attempt + 1: the members changed, or a session was lost
 *
 * Ranks are places among the vertices. Messages name (round, attempt, view of the members, step), and
 * count only where all of it is ours. Whoever begins anew raises the attempt, and tells all (AGAIN);
 * whoever hears of a higher one takes it. So a peer begins each (attempt, view) once, and what it sent
 * for it can be nothing else. Every attempt begins from the models after the local steps: until the last
 * step nothing of it is in x (`stage` is a copy), so a death in the middle leaves nothing half done.
 *
 * It may find some with the mean of a round, and others without: who has it answers an AGAIN (HAVE), and
 * is asked for it (WANT, RESULT). By this, too, whoever comes back far behind gets where the others
 * are: it takes the result of a later round, and skips the rounds between.
 *
 * A member that lives, but to whom no session can be had for SCHEDULE_LOST_US, cannot be waited for: then
 * our own model stands for the mean, which is said. The consensus phase brings such models together.
 *
 * Members are believed: whatever is finite counts, as in any all-reduce. (--byzantine is refused.)
 */
#ifndef PEER_NODE_COLLECTIVES_ALLREDUCE_H
#define PEER_NODE_COLLECTIVES_ALLREDUCE_H

#include "peer/node/collectives/outbox.h"
#include "peer/node/round_protocol.h"

/* A step that has come, and waits for its turn. */
struct allreduce_step
{
    struct allreduce_step *next; /* In the order in which they came. */
    uint8_t id[WIRE_ID_BYTES];   /* The sender. */
    uint64_t round, view;
    uint32_t attempt, step;
    size_t n;
    float v[];
};

struct allreduce_rank
{
    uint8_t id[WIRE_ID_BYTES];
    uint32_t link; /* The number of the session by which this attempt talks with it. */
};

/* Written by allreduce.c only. */
struct allreduce
{
    struct env *env;
    struct sessions *sessions;
    struct run_context *workshop;
    bool open; /* The vectors are there. */

    uint64_t round; /* The latest that was begun; 0: none. */
    uint32_t attempt;
    uint64_t view; /* As the attempt began. */
    bool started;  /* All ranks have sessions; `step` is the next. */
    bool stuck;    /* Nothing has come of this attempt for a while: others have been asked. */
    bool sent;     /* That step's messages are out. */
    uint32_t n, rank, step;
    struct allreduce_rank at[COLLECTIVE_RANKS_MAX];
    uint64_t later_round; /* The latest round after ours that was heard of, */
    uint32_t later_attempt;
    int64_t progress_us; /* When the last step was done, or others were asked. */
    int64_t missing_us;  /* Since when a session is missing; 0: none is. */
    int64_t wanted_us;   /* When a result was last asked for in this round; 0: it was not; */
    uint32_t wanted_of;  /* of the link of this number. */

    struct allreduce_step *steps;
    float *stage, *result; /* n_floats each. */
    uint64_t result_round; /* What `result` came of; 0: nothing yet. */
    uint64_t result_view;
    uint32_t result_attempt;
    uint64_t n_again, n_alone; /* Attempts after a round's first; rounds whose mean we have not. */

    struct outbox outbox;
};

extern const struct round_protocol_kind allreduce_protocol;

#endif
