/* peer/node/edge/rounds.c -- computes this peer's edges in each round of a topology that changes by
 * round. */
#include "peer/node/edge/rounds.h"

#include "nn/math/number.h"
#include "peer/node/edge/edges_state.h"

#include "peer/node/membership/quorum.h"
#include "topology/round_schedule.h"

#include <assert.h>
#include <string.h>

static struct neighbour *partner(const struct edges *es, uint32_t vertex)
{
    const struct member *m = members_at(es->env->members, es->env->vertices[vertex]);
    for (size_t i = 0; i < es->n; i++)
        if (env_same_id(es->at[i]->edge.id, m->record->id))
            return es->at[i];
    return NULL;
}

/* Sets the field `turn` of all neighbours: the weight of the edge in each round. A neighbour is
 * skipped if memory for its struct was exhausted, because the node is then ending. */
static void take_turns(struct edges *es, const struct round_schedule *r, uint32_t self)
{
    for (size_t i = 0; i < r->first[r->n_rounds]; i++) {
        const struct round_schedule_edge *e = &r->edge[i];
        if (e->a != self && e->b != self)
            continue;
        struct neighbour *b = partner(es, e->a == self ? e->b : e->a);
        assert(e->round < r->n_rounds);
        if (b != NULL)
            b->turn[e->round] = round_schedule_word(e);
    }
}

/* Prints how much memory the replicas of all neighbours take. A replica is kept for each neighbour
 * of any round of the pass, the sequence of rounds that repeats. */
static void tell_memory(const struct edges *es)
{
    size_t n = 0, bytes = 2 * es->workshop->mixing.replicas.dim * sizeof(float);
    for (size_t i = 0; i < es->n; i++)
        n += es->at[i]->wanted;
    env_note(es->env, NOTE_INFO,
             "%s: this peer has %zu partner%s in a cycle of %u round%s; the copies of their models "
             "take %.1f MB",
             edges_topology(es), n, number_plural(n), es->n_rounds, number_plural(es->n_rounds),
             (double)(n * bytes) * 1e-6);
}

int rounds_choose(struct edges *es, uint32_t n, uint32_t self)
{
    const struct run *run = &es->workshop->run;
    struct round_schedule r;
    int err = round_schedule_build(&r, edges_topology(es), n, run->seed);
    bool told = es->n_rounds > 0;
    if (err != 0)
        return err;
    static_assert((int)EDGES_ROUNDS_MAX >= (int)ROUND_SCHEDULE_ROUNDS_MAX, "a pass fits");
    assert(r.n_rounds <= EDGES_ROUNDS_MAX);
    for (size_t i = 0; i < es->n; i++)
        memset(es->at[i]->turn, 0, sizeof es->at[i]->turn);
    es->n_rounds = r.n_rounds;
    es->exact = r.exact;
    take_turns(es, &r, self);
    round_schedule_close(&r);
    if (es->n_rounds > 0 && !told)
        tell_memory(es);
    return 0;
}

uint64_t rounds_cycle(const struct edges *es)
{
    enum { WORDS_MORE = 2 };
    return 2 * (uint64_t)es->n_rounds + WORDS_MORE;
}

/* An averaging pass needs uncompressed deltas. The deltas of the last training round are still
 * compressed, so the first pass begins one round later. */
uint64_t rounds_place(const struct edges *es, uint64_t beat)
{
    uint64_t trained = es->workshop->run.rounds;
    return beat > trained ? (beat - trained - 1) % rounds_cycle(es) : UINT64_MAX;
}

/* Returns the weight of the edge for step counter `beat`, packed as in b->turn. 0: the edge is not
 * used in this round. The sequence of rounds of a graph such as base:K starts from its beginning
 * twice: at step counter 1, and at the step counter at which training ends. */
static uint32_t turn_of(const struct edges *es, const struct neighbour *b, uint64_t beat)
{
    uint64_t place = rounds_place(es, beat);
    assert(es->n_rounds > 0);
    if (averaging_pass_counts(es) && place != UINT64_MAX) {
        /* All peers have the mean model, so no further averaging pass is needed. */
        bool done = es->pass.over && member_counts_ended(es->env);
        return place < es->n_rounds && !done ? b->turn[place] : 0;
    }
    uint64_t trained = es->workshop->run.rounds, first = beat >= trained ? trained : 1;
    return b->turn[(beat > first ? beat - first : 0) % es->n_rounds];
}

bool rounds_turn(const struct edges *es, const struct neighbour *b, uint64_t beat)
{
    return !b->aside && (es->n_rounds == 0 || turn_of(es, b, beat) > 0);
}

/* Returns the neighbour's delta for the next exchange that does not have both deltas yet. NULL: the
 * neighbour's delta has not arrived. */
static const struct edge_got *begun(const struct edge *e)
{
    const struct edge_got *g = &e->got[(e->round + edge_ready(e)) % 2];
    return g->full ? g : NULL;
}

void rounds_plan(const struct edges *es, const struct neighbour *b, uint64_t beat,
                 struct mixing_moment *now)
{
    const struct edge_got *theirs = begun(&b->edge);
    now->pass = es->n_rounds > 0 ? es->n_rounds : 1;
    now->idle = b->aside && theirs == NULL;
    now->whole = averaging_pass_counts(es);
    if (es->n_rounds == 0)
        return;
    uint32_t word = turn_of(es, b, beat);
    now->degree = word & ((1u << ROUND_SCHEDULE_MORE) - 1);
    now->more = word >> ROUND_SCHEDULE_MORE;
    now->idle = word == 0;
    if (word > 0 || theirs == NULL)
        return;
    now->degree = theirs->head.degree;
    now->more = theirs->head.more;
    now->idle = false;
}
