/* peer/node/join/checkpoint.c -- peers agree by gossip on the step counter of the next
 * checkpoint. */
#include "peer/node/join/checkpoint.h"

#include <assert.h>
#include <stdlib.h>

/* Step counters of the next and the last checkpoint, and what is known about the last
 * checkpoint. */
struct checkpoint
{
    struct env *env;
    uint64_t due;   /* Step counter of the next agreed checkpoint. 0: none is agreed. */
    bool writing;   /* True: the last checkpoint is not on disk yet. */
    uint64_t taken; /* Step counter of the last checkpoint of this process. 0: none was taken. */
    /* Node time of the last checkpoint, or of the start of training, in microseconds. */
    int64_t last_us;
    /* Largest number of vertices that the graph has had since the last checkpoint. */
    uint32_t n_members;
    bool asked; /* True: this peer was asked to stop and wants a checkpoint as soon as possible. */
};

static void checkpoint_check(const struct checkpoint *c)
{
    assert(c->taken > 0 || !c->writing);
    assert(c->due == 0 || c->due > c->taken);
    assert(c->last_us <= c->env->now_us);
}

struct checkpoint *checkpoint_open(struct env *env)
{
    struct checkpoint *c = calloc(1, sizeof *c);
    if (c != NULL)
        c->env = env;
    return c;
}

void checkpoint_close(struct checkpoint *c)
{
    free(c);
}

void checkpoint_start(struct checkpoint *c)
{
    assert(c->taken == 0 && !c->writing);
    c->last_us = c->env->now_us;
}

/* Returns the time since the last checkpoint was taken or training began, in microseconds. */
static int64_t age_us(const struct checkpoint *c)
{
    return c->env->now_us - c->last_us;
}

/* Returns by how many rounds a checkpoint is proposed in advance. `reach`: eccentricity of the
 * proposer. A peer that is about to stop (`asked`) uses the smallest number with which all peers
 * know of the proposal in time (checkpoint.h). */
static uint64_t ahead(uint64_t reach, bool asked)
{
    return asked ? 4 * reach + 2 : 6 * reach + 6;
}

bool checkpoint_word(struct checkpoint_word *w, uint64_t due, uint64_t beat, int64_t now_us,
                     int64_t every_us)
{
    bool pending = w->due > beat;
    assert(w->since_us <= now_us);
    if (due <= beat || (!pending && w->due != 0 && now_us - w->since_us < every_us / 2))
        return false;
    if (!pending)
        w->since_us = now_us;
    if (!pending || due < w->due)
        w->due = due;
    return due == w->due;
}

/* Ignores a proposed step counter that is further ahead than an honest peer can propose. Such a
 * proposal would block all new checkpoints up to that step counter. The proposer's eccentricity is
 * at most twice this peer's. In lock step, the proposer is at most 2 reach + 16 rounds ahead of
 * this peer. */
void checkpoint_hear(struct checkpoint *c, uint64_t heard_due, uint64_t heard_any,
                     const struct checkpoint_view *v)
{
    uint64_t due = c->asked ? heard_any : heard_due;
    int64_t every_us = c->env->config.checkpoint_us;
    uint64_t reach = v->reach, most = v->beat + 2 * reach + 16 + ahead(2 * reach, false);
    if (every_us <= 0 || due <= v->beat || due > most)
        return;
    if (c->due <= v->beat || due < c->due)
        c->due = due;
    checkpoint_check(c);
}

bool checkpoint_now(struct checkpoint *c, const struct checkpoint_view *v)
{
    int64_t every_us = c->env->config.checkpoint_us;
    bool old = every_us > 0 && (c->asked || age_us(c) >= every_us);
    bool last = every_us > 0 && v->beat == v->rounds;
    if (!v->lock_step)
        return (old || last) && !c->writing;
    if (c->due != 0 && c->due == v->beat)
        return !c->writing;
    if (c->due < v->beat)
        /* This peer skipped rounds and missed the checkpoint, which is no longer due. */
        c->due = 0;
    /* The last round of training always has a checkpoint, because the consensus phase takes none.
     * All peers know that round, so no announcement is needed. */
    if (every_us > 0 && c->due == 0 && v->beat < v->rounds
        && v->beat + ahead(v->reach, false) >= v->rounds)
        c->due = v->rounds;
    uint64_t next = v->beat + ahead(v->reach, c->asked);
    if (old && c->due == 0 && !c->writing && next < v->rounds)
        c->due = next;
    assert(c->due == 0 || c->due > v->beat);
    checkpoint_check(c);
    return false;
}

void checkpoint_ask(struct checkpoint *c)
{
    assert(!c->asked && c->env->config.checkpoint_us > 0);
    c->asked = true;
}

void checkpoint_cancel(struct checkpoint *c)
{
    assert(c->asked);
    c->asked = false;
    c->due = 0;
}

void checkpoint_members(struct checkpoint *c, uint32_t n_members)
{
    if (n_members > c->n_members)
        c->n_members = n_members;
}

bool checkpoint_lost_members(const struct checkpoint *c, uint32_t n_members)
{
    return n_members < c->n_members;
}

uint64_t checkpoint_due(const struct checkpoint *c)
{
    return c->due;
}

uint64_t checkpoint_last(const struct checkpoint *c)
{
    return c->taken;
}

bool checkpoint_is_writing(const struct checkpoint *c)
{
    return c->writing;
}

void checkpoint_taken(struct checkpoint *c, uint64_t beat)
{
    assert(!c->writing && beat > c->taken);
    c->asked = false;
    c->writing = true;
    c->taken = beat;
    c->n_members = 0;
    c->last_us = c->env->now_us;
    if (c->due <= beat)
        c->due = 0;
    checkpoint_check(c);
}

void checkpoint_written(struct checkpoint *c, uint64_t beat)
{
    assert(beat <= c->taken);
    if (c->taken == beat)
        c->writing = false;
}

bool checkpoint_blocks(const struct checkpoint *c, const struct checkpoint_view *v)
{
    return v->lock_step && c->writing && c->due > v->beat
           && c->due - v->beat <= 2 * (uint64_t)v->reach + 2;
}
