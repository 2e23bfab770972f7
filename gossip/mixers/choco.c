/* gossip/mixers/choco.c -- CHOCO-SGD as a mixer: every delta corrects a replica. */
#include "gossip/mixers/choco.h"

#include "gossip/mixers/correction.h"
#include "gossip/mixers/mixing.h"

/* All that CHOCO keeps are replicas, and those are mixing's. */
static int open_choco(struct mixing *m, const struct mixing_config *config)
{
    (void)m, (void)config;
    return 0;
}

static void close_choco(struct mixing *m)
{
    (void)m;
}

/* In an asynchronous run others may still train: the last phase's codec waits until
 * both ends are in that phase.
 *
 *   a pass of whole models                         FINAL, from its first delta on
 *   an edge's first delta in the middle of a run   the whole way from x0: CATCHUP
 *   both ends are in the last phase                FINAL
 *   else                                           the run's codec, or a rung */
static uint32_t plan(struct mixing *m, const struct mixing_task *t, const struct mixing_moment *now)
{
    (void)m;
    uint64_t theirs = t->commit ? edge_theirs(t->edge)->head.run_round : t->edge->run_round;
    uint64_t first = now->pass > 1 ? now->pass : 1; /* By then every edge has had its turn. */
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

static void encode(struct mixing *m)
{
    for (struct mixing_task *t = m->task; t < m->task + m->n_tasks; t++)
        if (t->encodes)
            mixing_put(m, t, m->x, t->replica->v);
}

const struct mixer mixer_choco = {.name = "choco",
                                  .parts = true,
                                  .open = open_choco,
                                  .close = close_choco,
                                  .plan = plan,
                                  .valid = mixing_decodes,
                                  .apply = mixing_add,
                                  .mix = mix,
                                  .encode = encode};
