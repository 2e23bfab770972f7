/* tests/explore/liveness.c -- liveness: some faults are permanent, and all peers must still end in
 * time.
 *
 * In a plan with `liveness yes` a minority of peers is killed, switched off, stopped or cut off
 * from all other peers permanently. All other faults end. After the last fault each peer must end
 * within a bounded time. The exit code that a peer must have depends on its connection:
 *
 *   - A peer that is connected to most initial members: code 0, if no peer had ended 30 s after the
 *     faults.
 *   - A peer that was cut off after it began to train, if fewer than half of the members with
 *     which it began were cut off: code 3, and a verdict that says why. The reason is no quorum,
 *     no other members, or that the run ended without this peer.
 *   - Any other peer that was cut off: any code.
 */
#include "cluster.h"

#include "gossip/mixers/mixer.h"
#include "nn/math/rng.h"
#include "peer/node/result/verdict.h"
#include "peer/node/schedule.h"
#include "peer/node/state.h"
#include "peer/run/exit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- drawing a lost minority ---- */

/* Returns a random set of fewer than half of the n peers. Never contains peers 0 and 1, which
 * joining peers contact. */
static uint32_t draw_minority(struct rng *r, uint32_t n)
{
    uint32_t most = (n - 1) / 2 < n - 2 ? (n - 1) / 2 : n - 2, set = 0;
    for (uint32_t k = 1 + (uint32_t)rng_below(r, most); k > 0; k--)
        set |= UINT32_C(4) << rng_below(r, n - 2);
    return set;
}

/* Removes the peers in `set` from all faults whose end would restart or continue a process, so that
 * these peers stay down. */
static void keep_down(struct plan *p, uint32_t set)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->n_faults; k++) {
        struct fault f = p->fault[k];
        if (f.kind == FAULT_KILL || f.kind == FAULT_REPLACE || f.kind == FAULT_OFF
            || f.kind == FAULT_LEAVE || f.kind == FAULT_LATE || f.kind == FAULT_STOP)
            f.a &= ~set;
        if (f.a != 0)
            p->fault[n++] = f;
    }
    p->n_faults = n;
}

void plan_draw_liveness(struct plan *p)
{
    static const enum fault_kind kind[] = {FAULT_KILL,  FAULT_OFF,   FAULT_STOP,
                                           FAULT_SPLIT, FAULT_SPLIT, FAULT_SPLIT};
    struct rng r = rng_stream(rng_key(p->seed, RNG_TEST, 0xe8, 17));
    int64_t length_us = p->step_us * (int64_t)(p->rounds * p->local_steps);
    p->liveness = true;
    p->quorum = 0.5;
    if (p->patience_s > 60)
        p->patience_s = 60;
    if (p->n_peers < 3)
        p->min_peers = p->n_peers = 3;
    for (uint32_t k = 0; k < p->n_faults; k++)
        if (p->fault[k].for_us == PLAN_EVER)
            p->fault[k].for_us = 5 * PLAN_SECOND;
    if (p->n_faults == PLAN_FAULTS_MAX)
        p->n_faults--;
    uint32_t all = (UINT32_C(1) << p->n_peers) - 1;
    struct fault f = {.kind = kind[rng_below(&r, sizeof kind / sizeof *kind)],
                      .at_us = plan_draw_us(&r, 0.1, 1e-6 * (double)(length_us + PLAN_SECOND)),
                      .for_us = PLAN_EVER,
                      .a = draw_minority(&r, p->n_peers)};
    /* A fault has no effect on a process that does not exist yet. The fault therefore begins after
     * the last of the peers has started. */
    for (uint32_t i = 0; i < p->n_peers; i++)
        if (f.at_us <= p->start_us[i])
            f.at_us = (p->start_us[i] / 1000 + 1) * 1000;
    f.b = f.kind == FAULT_SPLIT ? all & ~f.a : 0;
    keep_down(p, f.a);
    p->fault[p->n_faults++] = f;
    uint32_t stay = p->n_peers - (uint32_t)__builtin_popcount(f.a);
    if (p->min_peers > stay)
        p->min_peers = stay;
    if (plan_chance(&r, 0.7))
        p->step_us =
            (length_us + plan_end_us(p) + 32 * PLAN_SECOND) / (int64_t)(p->rounds * p->local_steps);
}

/* ---- time limit of a run ---- */

/* Returns the time by which all peers must have ended. After the last fault the run may take the
 * time that the slowest peer needs for all rounds, and for 1,000 rounds of the consensus phase. In
 * addition the remaining peers may wait until the lost peers are declared dead, for the straggler
 * timeout, for the quorum timeout, and until a consensus phase without progress ends. */
int64_t liveness_limit_us(const struct plan *p)
{
    double step = (double)p->step_us * (1 + p->step_spread);
    double lag = 2.0 * (double)(p->latency_us + p->jitter_us) + course_exchange_us(p);
    double length = (step * p->local_steps + lag) * (double)p->rounds + 1000 * (step / 4 + lag);
    double waits = 3 * p->worker_limit_s + p->patience_s + 2e-6 * SCHEDULE_STALL_US + 60;
    return plan_end_us(p) + (int64_t)(length + 1e6 * waits);
}

void liveness_part(struct cluster *c, const struct fault *f)
{
    uint32_t all = (UINT32_C(1) << c->plan.n_peers) - 1;
    bool split = f->kind == FAULT_SPLIT && (f->a | f->b) == all;
    if (!c->plan.liveness || f->for_us != PLAN_EVER || !(split || f->kind == FAULT_STOP))
        return;
    c->parted |= f->a;
    for (uint32_t i = 0; i < c->plan.n_peers; i++)
        if ((f->a >> i & 1) && cluster_alive(c, i) && cluster_progress(c, i).phase == NODE_TRAINING)
            c->parted_in_training |= UINT32_C(1) << i;
}

void liveness_late(struct cluster *c)
{
    for (uint32_t i = 0; i < c->plan.n_peers; i++)
        if (cluster_alive(c, i) && !course_is_lost(c, i))
            cluster_wrong(c, WRONG_LIVENESS,
                          "peer %" PRIu32 " has not ended: phase %d, round %" PRIu64 "%s", i,
                          (int)cluster_progress(c, i).phase, cluster_progress(c, i).round,
                          c->parted >> i & 1 ? ", cut off" : "");
}

/* ---- checking the verdicts ---- */

/* Returns whether the verdict of a peer without quorum says why the run did not succeed. */
static bool has_reason(const struct verdict *o)
{
    return o->kind == VERDICT_NO_QUORUM || o->kind == VERDICT_ALONE || o->kind == VERDICT_AWAY;
}

/* Returns whether peer j is an initial member of the run, according to node n. */
static bool is_initial(const struct cluster *c, const struct node *n, uint32_t j)
{
    return quorum_is_initial(n->quorum, sim_id(c->world, j));
}

/* Returns whether fewer than half of the voters, as node n knows them, were cut off. */
static bool minority_is_parted(const struct cluster *c, const struct node *n)
{
    uint32_t n_parted = 0;
    for (uint32_t j = 0; j < c->plan.n_peers; j++)
        n_parted += is_initial(c, n, j) && (c->parted >> j & 1);
    return quorum_voters(n->quorum, n->env.members, NULL) > 2 * n_parted;
}

bool liveness_majority(const struct cluster *c, const struct node *n)
{
    uint32_t n_there = 0, n_initial = 0;
    for (uint32_t j = 0; j < c->plan.n_peers; j++) {
        bool initial = is_initial(c, n, j);
        n_initial += initial;
        n_there += initial && !cluster_parted(c, j) && !c->peer[j].absent && !c->peer[j].left;
    }
    return 2 * n_there > n_initial && (double)n_there >= c->plan.quorum * n_initial;
}

void liveness_end(struct cluster *c)
{
    for (uint32_t i = 0; i < c->plan.n_peers && c->plan.liveness; i++) {
        struct verdict_facts f;
        struct verdict o;
        int code;
        bool parted = c->parted >> i & 1;
        if (sim_node(c->world, i) == NULL || c->peer[i].absent || c->peer[i].left
            || !sim_ended(c->world, i, &code))
            continue;
        node_facts(sim_node(c->world, i), &f);
        verdict_judge(&o, &f);
        if (parted && (c->parted_in_training >> i & 1) && c->peer[i].n_lives == 1
            && minority_is_parted(c, sim_node(c->world, i))
            && (code != CMD_APART || !(has_reason(&o) || f.uncertified)))
            cluster_wrong(c, WRONG_LIVENESS,
                          "peer %" PRIu32 ", which was cut off, ended with exit code %d: %s", i,
                          code, o.text);
        if (!parted && c->settled && liveness_majority(c, sim_node(c->world, i)) && code != CMD_OK)
            cluster_wrong(c, WRONG_LIVENESS,
                          "peer %" PRIu32 ", which had a quorum, ended with exit code %d: %s", i,
                          code, o.text);
    }
}
