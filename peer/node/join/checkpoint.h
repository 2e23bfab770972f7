/* peer/node/join/checkpoint.h -- decides after which round this peer takes a checkpoint.
 *
 * The step counter of a peer is the number of its rounds of training plus its rounds of the
 * consensus phase. In lock step all peers take their checkpoints at the same step counter. Together
 * these checkpoints are one state of the whole run, from which all peers can resume bit for bit. No
 * peer decides alone. The peers agree as follows, where `reach` is the eccentricity of the
 * proposing peer:
 *
 *   1. A peer whose last checkpoint is older than --checkpoint proposes the step counter `own + 6
 *      reach + 6`. DELTA and BEAT messages carry the proposal to the neighbours.
 *   2. Each peer passes on the proposals that it hears. Of two proposals the earlier one counts.
 *   3. Each peer that reaches the agreed step counter copies its state. A thread of the driver
 *      writes the copy to disk.
 *
 * A proposal travels one hop in at most two rounds, and the diameter of the graph is at most 2
 * reach hops. All peers therefore know the proposal at least 2 reach rounds before any of them
 * reaches the proposed step counter.
 *
 * Each peer keeps two checkpoints on disk, and a new one replaces the older of them. No two peers
 * may be left without a common checkpoint. Therefore, while the last checkpoint is not on disk yet
 * and the next one is due in 2 reach + 2 rounds or less, a peer starts no round
 * (checkpoint_blocks()).
 *
 * A peer that was asked to stop (graceful_stop.h) proposes a checkpoint at once, and also accepts
 * proposals of its neighbours that it would otherwise ignore.
 *
 * The last round of training always has a checkpoint. The consensus phase takes none, so that a
 * peer that is stopped there resumes at the end of training.
 *
 * Without lock step each peer takes a checkpoint by itself whenever the --checkpoint interval has
 * passed, and after the last round of training.
 */
#ifndef PEER_NODE_JOIN_CHECKPOINT_H
#define PEER_NODE_JOIN_CHECKPOINT_H

#include "peer/node/env.h"

struct checkpoint;

/* The last announcement of a checkpoint that this peer accepted from one neighbour. A neighbour may
 * announce a new checkpoint at most once in half the --checkpoint interval, so false announcements
 * cause few useless checkpoints. A neighbour may also replace its pending announcement by one of an
 * earlier step counter: it may have heard an earlier proposal of another peer in the meantime. */
struct checkpoint_word
{
    uint64_t due; /* Step counter of the next checkpoint, as announced. 0: none was announced. */
    int64_t since_us; /* Node time at which the announcement became pending, in microseconds. */
};

/* Progress of this peer in the run, and its place in the graph. */
struct checkpoint_view
{
    /* beat: step counter of this peer. rounds: number of rounds of training in the run. */
    uint64_t beat, rounds;
    uint32_t reach; /* Eccentricity of this peer. The diameter is at most twice this number. */
    bool lock_step; /* True: the run is in lock step (--policy sync). */
};

/* Returns the state of a peer without checkpoints, or NULL if memory is exhausted. `env` is
 * borrowed. */
struct checkpoint *checkpoint_open(struct env *env);
/* Frees *c. NULL is allowed. */
void checkpoint_close(struct checkpoint *c);

/* Starts the interval to the next checkpoint. Called when training begins or resumes. */
void checkpoint_start(struct checkpoint *c);

/* Returns whether this peer accepts a neighbour's announcement of a checkpoint, and stores an
 * accepted one in *w. `due`: the announced step counter; 0: none. `beat`: step counter of this
 * peer. every_us: interval of --checkpoint, in microseconds. A peer that was asked to stop uses all
 * announcements, whatever this function returns. */
bool checkpoint_word(struct checkpoint_word *w, uint64_t due, uint64_t beat, int64_t now_us,
                     int64_t every_us);

/* Adopts the next checkpoint that neighbours have announced, if none is agreed yet or the announced
 * one is earlier. heard_due: the earliest step counter that checkpoint_word() has accepted; 0:
 * none. heard_any: the earliest of all announced step counters, used instead if this peer was asked
 * to stop; 0: none. */
void checkpoint_hear(struct checkpoint *c, uint64_t heard_due, uint64_t heard_any,
                     const struct checkpoint_view *v);

/* Returns whether the state of this peer must be copied for a checkpoint now. Called after each job
 * with local steps. Proposes the next checkpoint if the last one is old enough. */
bool checkpoint_now(struct checkpoint *c, const struct checkpoint_view *v);

/* Makes the next checkpoint due as soon as possible, because this peer was asked to stop. The age
 * of the last checkpoint does not matter. */
void checkpoint_ask(struct checkpoint *c);
/* Withdraws the request of checkpoint_ask() and the agreed checkpoint. Called if not all members
 * would have the agreed checkpoint. */
void checkpoint_cancel(struct checkpoint *c);

/* Records that a checkpoint of step counter `beat` is taken now. This is the agreed checkpoint, or
 * one that this peer takes alone when it is stopped (resume_copy_last()). */
void checkpoint_taken(struct checkpoint *c, uint64_t beat);

/* Records that the checkpoint of step counter `beat` is on disk, or that writing it failed. */
void checkpoint_written(struct checkpoint *c, uint64_t beat);

/* Returns whether this peer must not start another round in lock step, because its last checkpoint
 * is not on disk and the next checkpoint is due soon. */
bool checkpoint_blocks(const struct checkpoint *c, const struct checkpoint_view *v);

/* Records that the graph has n_members vertices now. Called after each job. */
void checkpoint_members(struct checkpoint *c, uint32_t n_members);
/* Returns whether the graph, which has n_members vertices now, had more vertices at some time since
 * the last checkpoint. */
bool checkpoint_lost_members(const struct checkpoint *c, uint32_t n_members);

/* Returns the step counter of the next agreed checkpoint. 0: none is agreed. */
uint64_t checkpoint_due(const struct checkpoint *c);
/* Returns the step counter of the last checkpoint of this process. 0: none was taken. */
uint64_t checkpoint_last(const struct checkpoint *c);
/* Returns whether the last checkpoint is not on disk yet. */
bool checkpoint_is_writing(const struct checkpoint *c);

#endif
