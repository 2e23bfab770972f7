/* tests/explore/draw.c -- draws the plan of a seed at random. This file has version 1 of the
 * drawing function, which the oldest recorded seeds need. Version 2 is in swarm.c. */
#include "draw.h"

#include "nn/math/rng.h"
#include "topology/topology.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- functions that draw random values ---- */

double draw_log_uniform(struct rng *r, double low, double high)
{
    return low * exp((double)rng_unit(r) * log(high / low));
}

bool plan_chance(struct rng *r, double p)
{
    return (double)rng_unit(r) < p;
}

const char *plan_choose(struct rng *r, const char *const *of)
{
    size_t n = 0;
    while (of[n] != NULL)
        n++;
    return of[rng_below(r, n)];
}

uint32_t draw_set(struct rng *r, uint32_t n)
{
    uint32_t all = (UINT32_C(1) << n) - 1, set = 0;
    if (plan_chance(r, 0.05))
        return all;
    uint32_t k = plan_chance(r, 0.7) ? 1 : 1 + (uint32_t)rng_below(r, n);
    while (k-- > 0)
        set |= UINT32_C(1) << rng_below(r, n);
    return set;
}

int64_t plan_draw_us(struct rng *r, double low_s, double high_s)
{
    int64_t ms = (int64_t)(draw_log_uniform(r, low_s, high_s) * 1e3);
    /* The time is rounded down to milliseconds, because the text of a plan holds no finer times. */
    return ms * 1000;
}

static void draw_pair(struct rng *r, uint32_t n, struct fault *f)
{
    uint32_t all = (UINT32_C(1) << n) - 1;
    f->a = draw_set(r, n);
    f->b = plan_chance(r, 0.5) ? all & ~f->a : draw_set(r, n) & ~f->a;
}

void draw_fault(struct rng *r, const struct plan *p, enum fault_kind kind, int64_t length_us,
                struct fault *f)
{
    *f = (struct fault){.kind = kind};
    f->at_us = (int64_t)((double)rng_unit(r) * (double)length_us) / 1000 * 1000;
    f->for_us = plan_draw_us(r, 0.01, plan_chance(r, 0.2) ? 120 : 15);
    f->a = draw_set(r, p->n_peers);
    switch (f->kind) {
    case FAULT_KILL:
    case FAULT_OFF:
    case FAULT_LEAVE:
        if (plan_chance(r, 0.15))
            f->for_us = PLAN_EVER;
        break;
    case FAULT_LATE:
        f->at_us = 0;
        break;
    case FAULT_SLOW:
        f->x = floor(draw_log_uniform(r, 2, 50));
        break;
    case FAULT_FLAP:
        f->x = round(draw_log_uniform(r, 0.05, 5) * 1e3) / 1e3;
        draw_pair(r, p->n_peers, f);
        break;
    case FAULT_RESET:
        f->for_us = 0;
        f->x = plan_chance(r, 0.2)   ? -1
               : plan_chance(r, 0.4) ? 0
                                     : round(draw_log_uniform(r, 0.01, 20) * 1e3) / 1e3;
        f->y = plan_chance(r, 0.2)   ? -1
               : plan_chance(r, 0.4) ? 0
                                     : round(draw_log_uniform(r, 0.01, 20) * 1e3) / 1e3;
        draw_pair(r, p->n_peers, f);
        break;
    case FAULT_CUT:
    case FAULT_SPLIT:
        draw_pair(r, p->n_peers, f);
        break;
    case FAULT_NAMES:
        f->x = (double)rng_below(r, 2);
        break;
    case FAULT_REPLACE:
    case FAULT_STOP:
    case FAULT_HANG:
    case FAULT_FLIP:
    case FAULT_FULL:
    case FAULT_REVOKE:
    case FAULT_CLONE:
    case FAULT_TWIN:
    case FAULT_FLOOD:
    case FAULT_CHURN:
    case FAULT_SPOIL:
    case FAULT_KINDS:
        break;
    }
}

bool draw_is_idle(const struct plan *p, const struct fault *f)
{
    bool two = f->kind == FAULT_CUT || f->kind == FAULT_SPLIT || f->kind == FAULT_FLAP
               || f->kind == FAULT_RESET;
    return (two && f->b == 0) || (f->kind == FAULT_NAMES && !p->by_name)
           || (f->kind == FAULT_LATE && (f->a & 1));
}

void draw_leave_some(struct plan *p)
{
    uint32_t gone = 0, all = (UINT32_C(1) << p->n_peers) - 1;
    for (uint32_t i = 0; i < p->n_faults; i++) {
        struct fault *f = &p->fault[i];
        if (f->for_us != PLAN_EVER)
            continue;
        if ((uint32_t)__builtin_popcount(all & ~(gone | f->a)) < 2)
            f->for_us = 5 * PLAN_SECOND;
        else
            gone |= f->a;
    }
    uint32_t stay = (uint32_t)__builtin_popcount(all & ~gone);
    if (p->min_peers > stay)
        p->min_peers = stay;
}

static void draw_run(struct plan *p, struct rng *r)
{
    static const char *const topology[] = {"ring",      "ring",        "complete",  "torus",
                                           "regular:3", "exponential", "regular:4", NULL};
    static const char *const codec[] = {"auto", "auto", "qsgd:4",    "qsgd:4", "topk:0.1",
                                        "sign", "none", "lowrank:1", NULL};
    static const char *const update[] = {"topk:0.1", "qsgd:4", "sign", "none", NULL};
    p->n_peers =
        plan_chance(r, 0.6) ? 2 + (uint32_t)rng_below(r, 7) : 2 + (uint32_t)rng_below(r, 23);
    snprintf(p->topology, PLAN_TEXT, "%s", plan_choose(r, topology));
    bool average = plan_chance(r, 0.1);
    p->mixer = average ? plan_mixer("average") : 0;
    p->async = !average && plan_chance(r, 0.35);
    snprintf(p->compress, PLAN_TEXT, "%s", plan_choose(r, average ? update : codec));
    p->local_steps = plan_chance(r, 0.6) ? 1 : 1 + (uint32_t)rng_below(r, 8);
    p->rounds = (uint64_t)draw_log_uniform(r, 30, 300);
    /* Peers estimate the consensus distance only if the deltas are long. Some plans therefore have
     * 1,208 parameters. */
    p->dim = plan_chance(r, 0.15) ? 1208 : 48;
    if (p->dim > 48)
        p->rounds *= 2;
    p->min_peers = plan_chance(r, 0.6) ? p->n_peers : 1 + (uint32_t)rng_below(r, p->n_peers);
    p->final_drift = 1e-3;
    p->by_name = plan_chance(r, 0.5);
    p->guests = p->by_name && plan_chance(r, 0.3);
}

/* Draws --quorum and its timeout. A separate random stream is used, so that seeds from before this
 * option still give the same plans. */
static void draw_patience(struct plan *p, uint64_t seed)
{
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, 0xe8, 1));
    p->quorum = plan_chance(&r, 0.7) ? 0.5 : (double)rng_below(&r, 10) / 10;
    p->patience_s = plan_chance(&r, 0.3) ? 600 : floor(draw_log_uniform(&r, 3, 60));
    p->worker_limit_s = 15;
}

/* Draws --overlap. A separate random stream is used, so that seeds from before this option still
 * give the same plans. */
static void draw_overlap(struct plan *p, uint64_t seed)
{
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, 0xe8, 5));
    bool any = plan_chance(&r, 0.35) && p->mixer == 0;
    p->overlap = !any                   ? RUN_OVERLAP_NONE
                 : plan_chance(&r, 0.4) ? RUN_OVERLAP_LAYER
                                        : RUN_OVERLAP_ROUND;
}

/* Gives some plans a graph that changes by round (base:K), which needs lock step and a precise
 * codec. A separate random stream is used, so that older seeds still give the same plans. */
static void draw_rota(struct plan *p, uint64_t seed)
{
    static const char *const topology[] = {"base:1", "base:1", "base:2", "base:4", NULL};
    static const char *const codec[] = {"qsgd:4", "none", NULL};
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, 0xe8, 9));
    if (p->async || p->mixer != 0 || p->overlap == RUN_OVERLAP_ROUND || !plan_chance(&r, 0.12))
        return;
    snprintf(p->topology, PLAN_TEXT, "%s", plan_choose(&r, topology));
    snprintf(p->compress, PLAN_TEXT, "%s", plan_choose(&r, codec));
}

/* Gives some plans in lock step a different graph in the consensus phase. A separate random stream
 * is used, so that older seeds still give the same plans. */
static void draw_last(struct plan *p, uint64_t seed)
{
    static const char *const topology[] = {"base:1", "base:1", "base:4", "complete", "ring", NULL};
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, 0xe8, 13));
    bool has = !p->async && p->mixer == 0 && plan_chance(&r, 0.15);
    snprintf(p->final_topology, PLAN_TEXT, "%s", has ? plan_choose(&r, topology) : RUN_SAME);
}

void draw_outer(struct plan *p, uint64_t seed)
{
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, 0xe8, 17));
    bool precise = strcmp(p->compress, "none") == 0 || strcmp(p->compress, "qsgd:4") == 0;
    if (!plan_chance(&r, 0.2))
        return;
    snprintf(p->outer, PLAN_TEXT, "nesterov:0.7:%s",
             precise && plan_chance(&r, 0.5) ? "0.9" : "0.5");
    if (!plan_is_valid(p))
        p->outer[0] = '\0';
}

void draw_trigger(struct plan *p, uint64_t seed)
{
    static const double trigger[] = {1, 2, 4, 1000};
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, 0xe8, 18));
    if (!plan_chance(&r, 0.3))
        return;
    p->trigger = trigger[rng_below(&r, 4)];
    if (!plan_is_valid(p))
        p->trigger = 0;
}

static void draw_first(struct plan *p, uint64_t seed)
{
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, 0xe8, 0));
    *p = (struct plan){.seed = seed};
    draw_run(p, &r);
    int64_t length_us = plan_draw_us(&r, 4, 90);
    p->latency_us = (int64_t)draw_log_uniform(&r, 50, 20000);
    p->jitter_us = plan_chance(&r, 0.5) ? 0 : (int64_t)draw_log_uniform(&r, 10, 50000);
    p->startup_us = plan_chance(&r, 0.4) ? 0 : plan_draw_us(&r, 0.002, 5);
    p->step_spread = plan_chance(&r, 0.6) ? 0 : round((double)rng_unit(&r) * 30) / 10;
    p->bytes_per_s = plan_chance(&r, 0.7) ? 0 : floor(draw_log_uniform(&r, 1e5, 1e8));
    p->cut_rate = plan_chance(&r, 0.85) ? 0 : round(draw_log_uniform(&r, 1e-4, 3e-2) * 1e5) / 1e5;
    draw_patience(p, seed);
    draw_overlap(p, seed);
    draw_rota(p, seed);
    draw_last(p, seed);
    draw_outer(p, seed);
    draw_trigger(p, seed);
    uint32_t n = (uint32_t)rng_below(&r, 7);
    for (uint32_t i = 0; i < n; i++) {
        struct fault *f = &p->fault[p->n_faults];
        draw_fault(&r, p, (enum fault_kind)rng_below(&r, FAULT_DRAWN), length_us, f);
        p->n_faults += !draw_is_idle(p, f);
    }
    draw_leave_some(p);
    /* Half of all runs continue for at least 32 s after the last fault, so that the checks 30 s
     * after the last fault are made. */
    /* The time of a local step, step_us, is still 0 here, so plan_end_us() adds no time for slow
     * jobs. */
    if (plan_chance(&r, 0.5))
        length_us += plan_end_us(p) + 32 * PLAN_SECOND;
    p->step_us = length_us / (int64_t)(p->rounds * p->local_steps);
}

void plan_draw(struct plan *p, uint64_t seed, uint32_t draw)
{
    if (draw == 1)
        draw_first(p, seed);
    else
        draw_swarm(p, seed);
}

/* Draws checkpoints and disk faults. In half of the plans all peers are killed at once. A separate
 * random stream is used, so that older seeds still give the same plans. */
void plan_draw_disks(struct plan *p)
{
    struct rng r = rng_stream(rng_key(p->seed, RNG_TEST, 0xe8, 2));
    double length_s = 1e-6 * (double)p->step_us * (double)(p->rounds * p->local_steps);
    p->checkpoint_s = round(draw_log_uniform(&r, 0.3, fmax(length_s / 4, 0.6)) * 1e3) / 1e3;
    p->disk_us = plan_draw_us(&r, 0.001, 2);
    if (p->n_faults < PLAN_FAULTS_MAX && plan_chance(&r, 0.5))
        p->fault[p->n_faults++] = (struct fault){.kind = FAULT_KILL,
                                                 .at_us = plan_draw_us(&r, 0.1, length_s),
                                                 .for_us = plan_draw_us(&r, 0.01, 5),
                                                 .a = (UINT32_C(1) << p->n_peers) - 1};
    if (p->n_faults < PLAN_FAULTS_MAX && plan_chance(&r, 0.3))
        p->fault[p->n_faults++] = (struct fault){.kind = FAULT_FULL,
                                                 .at_us = plan_draw_us(&r, 0.1, length_s),
                                                 .for_us = plan_draw_us(&r, 0.1, 20),
                                                 .a = draw_set(&r, p->n_peers)};
}
