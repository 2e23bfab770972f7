/* peer/node/checkpoint.h -- when this peer writes a checkpoint: a machine of its own.
 *
 * In lock step all peers write theirs at one beat, so that together they are one moment of
 * the run, from which all can go on as if nothing had been. Nobody decides it alone:
 *
 *   somebody's last one is --checkpoint old   it says: at beat + 6 reach + 6
 *   that travels with deltas and BEATs        of two such words the earlier beat counts
 *   everybody comes to that beat              and copies its state; a thread writes it
 *
 * A word goes on by a hop in two beats at the most, so all have it 2 reach beats before it
 * is due at anybody (2 reach is the diameter at least). A checkpoint takes the place of the
 * one before the last; so that no two peers have none in common, nobody comes within
 * 2 reach beats of the next one before its last is on disk.
 *
 * Who is about to end (halt.h) wants one at once, and hears of those that others want so.
 *
 * The last round of training is one of those beats: the consensus phase has none, and who is stopped
 * there goes on from it.
 *
 * Without lock step each peer writes its own when that is due.
 */
#ifndef PEER_NODE_CHECKPOINT_H
#define PEER_NODE_CHECKPOINT_H

#include "peer/node/env.h"

struct checkpoint
{
    struct env *env;
    uint64_t due;       /* At this beat; 0: none is. */
    bool writing;       /* The last one is not on disk yet. */
    uint64_t taken;     /* Its beat. */
    int64_t last_us;    /* When that was. */
    uint32_t n_members; /* The most that there were since. */
    bool asked;         /* This peer is about to end: one is due as soon as all can have it. */
};

/* What one neighbour said of when the next is due: one word in half of --checkpoint's span. Who lies
 * may make us take one that nobody else has; the one that all take is heard of from the others all
 * the same. A word that is pending may be followed by an earlier one, as proposals may cross. */
struct checkpoint_word
{
    uint64_t due;     /* 0: it has said none. */
    int64_t since_us; /* When it came. */
};

/* Where this peer stands after a job with local steps. */
struct checkpoint_view
{
    uint64_t beat, rounds; /* The run has so many rounds. */
    uint32_t reach;        /* Our eccentricity: the diameter is at most twice that. */
    bool lock_step;
};

void checkpoint_init(struct checkpoint *c, struct env *env);

/* Training begins, or goes on. */
void checkpoint_start(struct checkpoint *c);

/* A neighbour says that one is due at that beat (0: none), and we are at `beat`: does it count?
 * Who is asked for one at once hears all words. */
bool checkpoint_word(struct checkpoint_word *w, uint64_t due, uint64_t beat, int64_t now_us,
                     int64_t every_us);

/* Neighbours say, by words that count, that one is due at that beat (0: none); we are at v->beat. */
void checkpoint_hear(struct checkpoint *c, uint64_t due, const struct checkpoint_view *v);

/* A job with local steps is done: has the state to be copied now? */
bool checkpoint_now(struct checkpoint *c, const struct checkpoint_view *v);

/* This peer is about to end: the next one is wanted now, however old the last one is. */
void checkpoint_ask(struct checkpoint *c);

/* Its copy has been taken, or (`asked`) one that nobody agreed on, at the end by request. */
void checkpoint_taken(struct checkpoint *c, uint64_t beat);

/* That copy is on disk, or could not be written. */
void checkpoint_written(struct checkpoint *c, uint64_t beat);

/* Lock step has to wait for the disk. */
bool checkpoint_blocks(const struct checkpoint *c, const struct checkpoint_view *v);

#endif
