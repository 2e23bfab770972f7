/* gossip/mixers/choco.c -- the CHOCO-SGD mixer: each delta corrects a replica. */
#include "gossip/mixers/choco.h"

#include "gossip/mixers/correction.h"
#include "gossip/mixers/mixing.h"
#include "nn/math/vec.h"

/* CHOCO-SGD keeps no data except the replicas, which struct mixing owns. */
static int open_choco(struct mixing *m, const struct mixing_config *config)
{
    (void)m, (void)config;
    return 0;
}

static void close_choco(struct mixing *m)
{
    (void)m;
}

/*
 * Chooses the codec of an edge's next delta. In an asynchronous run the neighbour may still
 * train, so DELTA_FINAL waits until both ends are in the consensus phase. The first line of this
 * table whose condition is true gives the codec:
 *
 *   exact averaging pass of whole models                    DELTA_FINAL
 *   first delta of an edge that opened during the run       DELTA_CATCHUP (all of x - x0)
 *   both ends are in the consensus phase                    DELTA_FINAL
 *   otherwise                                               the run's codec, or a level
 */
static uint32_t plan(struct mixing *m, const struct mixing_task *t, const struct mixing_moment *now)
{
    (void)m;
    uint64_t theirs = t->commit ? edge_theirs(t->edge)->head.run_round : t->edge->run_round;
    /* Number of rounds after which each edge that exists from the start of the run has had its
     * first exchange. If the topology changes by round, this is one pass through its rounds. */
    uint64_t first = now->pass > 1 ? now->pass : 1;
    if (now->whole)
        return DELTA_FINAL;
    if (mixing_edge_round(t) == 0 && (now->round >= first || now->settling))
        return DELTA_CATCHUP;
    return now->settling && theirs >= now->n_rounds ? DELTA_FINAL : now->codec;
}

static bool corrects(const struct mixing_task *t)
{
    (void)t;
    return true;
}

static void mix(struct mixing *m)
{
    correction_mix(m, corrects, NULL);
}

/* Returns whether the next delta of task t may be empty. The first delta of an edge is never empty,
 * because gamma gets its start value from it. */
static bool may_be_empty(const struct mixing *m, const struct mixing_task *t)
{
    return m->trigger > 0 && t->codec == DELTA_RUN && !m->settling && t->round + t->commit > 0;
}

/* Encodes a delta, or makes an empty one if the model has moved too little since the last delta. If
 * the model's distance from the replica is NaN, the delta is encoded, and mixing_put() reports the
 * divergence. */
static void encode(struct mixing *m)
{
    double least2 = m->trigger * m->trigger * m->step2;
    for (struct mixing_task *t = m->task; t < m->task + m->n_tasks; t++) {
        if (!t->encodes)
            continue;
        double d2 = may_be_empty(m, t) ? vec_dist2(m->x, t->replica->v, m->dim) : least2;
        if (d2 < least2)
            mixing_put_empty(m, t, d2);
        else
            mixing_put(m, t, m->x, t->replica->v);
    }
}

/* No codec makes a message of 0 bytes, so an empty delta cannot be mistaken for an encoded one. */
static bool valid(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n)
{
    return n == 0 ? m->trigger > 0 && codec == DELTA_RUN : mixing_decodes(m, codec, message, n);
}

static void apply(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n,
                  float *replica)
{
    if (n > 0)
        mixing_add(m, codec, message, n, replica);
}

const struct mixer mixer_choco = {.name = "choco",
                                  .parts = true,
                                  .companion = true,
                                  .open = open_choco,
                                  .close = close_choco,
                                  .plan = plan,
                                  .valid = valid,
                                  .apply = apply,
                                  .mix = mix,
                                  .encode = encode};
