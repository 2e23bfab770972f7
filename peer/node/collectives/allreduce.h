/* peer/node/collectives/allreduce.h -- computes the mean of all models after each round
 * (all-reduce).
 *
 * The mixers allreduce and sma use this round protocol. A `struct collective`
 * (gossip/collectives/collective.h) lists the steps, and the messages of each step between the
 * members.
 *
 *   job done --> attempt begins --all sessions are up--> step 0, 1, ... --> mean --> next job
 *                      ^                                       |
 *                      +--- the members changed, or a session was lost: attempt + 1
 *
 * Messages:
 *
 *   STEP    data of one step of the schedule
 *   AGAIN   the sender is at this attempt and has no result
 *   HAVE    answer to AGAIN: the sender has the result of this or a later round
 *   WANT    request for that result
 *   RESULT  answer to WANT: the model
 *
 * A rank is the place of a member among the vertices. A STEP names its round, attempt, view (a hash
 * of the members) and step, and is used only if all of them match. A peer that restarts the
 * collective increases the attempt and sends AGAIN to all members. A peer that receives a higher
 * attempt adopts it. Each peer therefore begins each pair of attempt and view at most once, and
 * sends each STEP of the pair at most once. Every attempt starts from the models after the local
 * steps. Until its last step, an attempt changes only the copy `stage`, so the model never contains
 * a half-finished sum if a member dies.
 *
 * When members die, some peers may already have the mean of a round while others do not. The others
 * fetch the mean with AGAIN, HAVE, WANT and RESULT. In the same way a member that returns after a
 * long absence fetches the result of a later round and skips the rounds before it.
 *
 * A member may be alive but unreachable. A peer that has had no session with it for
 * SCHEDULE_LOST_US continues with its own model in place of the mean, and prints a warning. The
 * consensus phase brings such models together.
 *
 * The members are trusted, as in any all-reduce: all finite values are used. The mixers do not
 * accept --byzantine.
 */
#ifndef PEER_NODE_COLLECTIVES_ALLREDUCE_H
#define PEER_NODE_COLLECTIVES_ALLREDUCE_H

#include "peer/node/collectives/outbox.h"
#include "peer/node/round_protocol.h"

/* A STEP message that has arrived and is not used yet. The vector v has n floats. */
struct allreduce_step
{
    struct allreduce_step *next; /* Next message in the order of arrival. NULL: no later one. */
    uint8_t id[WIRE_ID_BYTES];   /* Identity of the sender. */
    /* Round, view (hash of the members), attempt and step that the message names. */
    uint64_t round, view;
    uint32_t attempt, step;
    size_t n;
    float v[];
};

/* The member that has a given rank (place among the vertices) in the current attempt. */
struct allreduce_rank
{
    uint8_t id[WIRE_ID_BYTES];
    /* Number of the session that this attempt uses. 0 for this peer itself, and if there is no
     * session. */
    uint32_t link;
};

/* State of the all-reduce of one run. Written by allreduce.c only. */
struct allreduce
{
    struct env *env;
    struct sessions *sessions;
    struct run_context *workshop;
    bool open; /* True: the vectors `stage` and `result` are allocated. */

    uint64_t round; /* Latest round for which this peer has begun an all-reduce. 0: none. */
    /* Number of the current attempt in this round. 0: the first. */
    uint32_t attempt;
    uint64_t view; /* Hash of the members when the attempt began. */
    /* True: there has been a session with the member of every rank, so the steps have begun. */
    bool started;
    /* True: the attempt made no progress for ROUND_PROTOCOL_STALL_US, and all members were asked
     * (message AGAIN). */
    bool stuck;
    bool sent; /* True: this peer has sent its STEP messages of the current step. */
    /* n: number of ranks (members in the all-reduce). rank: rank of this peer. step: current
     * step. */
    uint32_t n, rank, step;
    struct allreduce_rank at[COLLECTIVE_RANKS_MAX];
    /* later_round: latest round after `round` that a message has named. later_attempt: largest
     * attempt of that round. */
    uint64_t later_round;
    uint32_t later_attempt;
    /* Last time at which a step was completed or all members were asked (AGAIN), in
     * microseconds. */
    int64_t progress_us;
    /* Time since which a member has no session with this peer, in microseconds. 0: all have one. */
    int64_t missing_us;
    /* Last time at which a result was requested (WANT) in this round, in microseconds. 0: never. */
    int64_t wanted_us;
    uint32_t wanted_of; /* Number of the session on which the result of the round was requested. */

    /* Received STEP messages that are not used yet. */
    struct allreduce_step *steps;
    /* Vectors of n_floats values. stage: the sum of the current attempt. result: the last
     * result. */
    float *stage, *result;
    uint64_t result_round; /* Round of the last result. 0: there is no result. */
    /* The last result was computed in attempt result_attempt. result_view: hash of the members of
     * that attempt. */
    uint64_t result_view;
    uint32_t result_attempt;
    /* n_again: number of restarted attempts, over all rounds. n_alone: number of rounds in which
     * this peer kept its own model, because there was no mean. */
    uint64_t n_again, n_alone;

    struct outbox outbox;
};

extern const struct round_protocol_kind allreduce_protocol;

#endif
