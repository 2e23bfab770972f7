/* tests/explore/swarm.c -- version 2 of the draw of plans: each plan has some of the features and
 * some of the kinds of faults.
 *
 * In a plan with all features and all faults, one fault often hides the effect of another. Each
 * seed therefore omits about half of the features and half of the kinds of faults, and has the
 * remaining ones more often (swarm testing: Groce, Zhang, Eide, Chen, Regehr, ISSTA 2012). Each
 * seed also draws a place, which limits the times at which its faults begin:
 *
 *   anywhere:    uniform over the run.
 *   the start:   within 6 s of the beginning, in which the peers start and meet.
 *   the joins:   within 5 s after a peer started or was restarted.
 *   the end:     near or in the consensus phase. A run without faults measures the time of
 *                that phase. */
#include "draw.h"

#include "gossip/collectives/collective.h"
#include "gossip/mixers/mixer.h"
#include "topology/topology.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum feature {
    FEATURE_CROWD,   /* Feature: up to 24 peers. Plans without the feature have up to 8. */
    FEATURE_MIXER,   /* Feature: any mixer. Plans without the feature have the mixer CHOCO. */
    FEATURE_GRAPH,   /* Feature: any topology, including topologies that change by round. */
    FEATURE_LAST,    /* Feature: another topology in the consensus phase than in training. */
    FEATURE_CODEC,   /* Feature: any codec. Plans without the feature have the codec qsgd:4. */
    FEATURE_ASYNC,   /* Feature: --policy async. */
    FEATURE_OVERLAP, /* Feature: --overlap. */
    FEATURE_STEPS,   /* Feature: more than one local step in a round. */
    FEATURE_DIM,     /* Feature: a model so large that the peers estimate the consensus distance. */
    FEATURE_FEW,     /* Feature: training begins before all peers have joined. */
    FEATURE_NAMES,   /* Feature: peers find each other by bootstrap names. */
    FEATURE_QUORUM,  /* Feature: values of --quorum and --quorum-timeout other than the defaults. */
    FEATURE_NETWORK, /* Feature: a network with jitter and limited bandwidth. */
    FEATURE_LOSS,    /* Feature: sessions are lost at random, with the deltas sent over them. */
    FEATURE_SPEEDS,  /* Feature: peers have different speeds. */
    /* Feature: a restarted process accepts connections for a time before it runs. */
    FEATURE_STARTUP,
    FEATURE_STARTS, /* Feature: peers start at different times. */
    FEATURE_CLOCKS, /* Feature: clocks run at different rates. */
    FEATURES
};

enum { COLLECTS_MAX = 8 /* Largest number of peers with an all-reduce or a parameter server. */ };

enum place { PLACE_ANYWHERE, PLACE_START, PLACE_JOINS, PLACE_END };

/* Random choices that are made first: the features, the kinds of faults, and the part of the run in
 * which faults begin. */
struct swarm
{
    struct rng rng;
    uint32_t features, kinds;
    enum place place;
    int64_t length_us; /* Planned duration of training (all local steps), in microseconds. */
    /* Times in a run of the plan without faults, in microseconds: begin of the consensus phase, and
     * end of the run. */
    int64_t settles_us, simulated_us;
};

static bool has(const struct swarm *s, enum feature f)
{
    return s->features >> f & 1;
}

/* Returns a random subset of the elements 0 to n - 1 as bits. Each element is in it with
 * probability 1/2. */
static uint32_t draw_half(struct rng *r, uint32_t n)
{
    uint32_t set = 0;
    for (uint32_t i = 0; i < n; i++)
        set |= (uint32_t)plan_chance(r, 0.5) << i;
    return set;
}

/* ---- drawing the settings of the run ---- */

static void draw_graph(struct swarm *s, struct plan *p)
{
    static const char *const usual[] = {"ring", "complete", "torus", "regular:3", NULL};
    static const char *const all[] = {"ring",        "path",
                                      "star",        "tree:2",
                                      "trees",       "grid",
                                      "torus",       "hypercube",
                                      "exponential", "bipartite",
                                      "complete",    "regular:4",
                                      "er:0.4",      "small-world",
                                      "base:1",      "base:2",
                                      "base:4",      "matching:3",
                                      "matching:8",  "rotation:2",
                                      "rotation:4",  "one-peer-exponential",
                                      NULL};
    static const char *const pairs[] = {"matching:3", "matching:8", "rotation:4",
                                        "one-peer-exponential", NULL};
    const struct mixer *m = mixer_all[p->mixer];
    const char *graph = plan_choose(&s->rng, has(s, FEATURE_GRAPH) ? all : usual);
    if (m->pairs)
        graph = plan_choose(&s->rng, pairs);
    snprintf(p->topology, PLAN_TEXT, "%s", m->round_protocol ? "complete" : graph);
}

static void draw_codec(struct swarm *s, struct plan *p)
{
    static const char *const all[] = {"auto", "auto", "qsgd:4",    "topk:0.1",
                                      "sign", "none", "lowrank:1", NULL};
    static const char *const update[] = {"topk:0.1", "qsgd:4", "sign", "none", NULL};
    static const char *const whole[] = {"none", "fp16", NULL};
    const struct mixer *m = mixer_all[p->mixer];
    const char *codec = plan_choose(&s->rng, m->updates ? update : m->whole ? whole : all);
    if (!has(s, FEATURE_CODEC))
        codec = m->whole ? "none" : "qsgd:4";
    snprintf(p->compress, PLAN_TEXT, "%s", codec);
}

/* Removes features from the plan until `hearsay sim` accepts its run. */
static void make_valid(struct plan *p)
{
    const struct mixer *m = mixer_all[p->mixer];
    if (m->updates)
        p->overlap = RUN_OVERLAP_NONE;
    for (int what = 0; !plan_is_valid(p); what++) {
        assert(what < 5);
        if (what == 0)
            snprintf(p->final_topology, PLAN_TEXT, RUN_SAME);
        else if (what == 1)
            p->overlap = RUN_OVERLAP_NONE;
        else if (what == 2)
            p->async = false;
        else if (what == 3)
            snprintf(p->compress, PLAN_TEXT, "%s",
                     m->whole || m->round_protocol ? "none" : "qsgd:4");
        else
            snprintf(p->topology, PLAN_TEXT, "%s", m->round_protocol ? "complete" : "ring");
    }
}

static void draw_algorithm(struct swarm *s, struct plan *p)
{
    static const char *const last[] = {"base:1",   "base:4",     "complete", "ring",
                                       "matching", "rotation:2", NULL};
    struct rng *r = &s->rng;
    uint32_t n_mixers = 0, n_collectives = 0;
    while (mixer_all[n_mixers] != NULL)
        n_mixers++;
    while (collective_all[n_collectives] != NULL)
        n_collectives++;
    p->mixer = has(s, FEATURE_MIXER) ? (uint32_t)rng_below(r, n_mixers) : 0;
    /* A round of an all-reduce takes up to n^2 messages. Large clusters are therefore excluded:
     * they would take most of the time that all seeds together take. */
    if (mixer_all[p->mixer]->round_protocol && p->n_peers > COLLECTS_MAX) {
        p->n_peers = COLLECTS_MAX;
        p->min_peers = p->min_peers < COLLECTS_MAX ? p->min_peers : COLLECTS_MAX;
    }
    bool collects = mixer_all[p->mixer]->round_protocol && p->mixer != plan_mixer("ps");
    p->collective = collects ? (uint32_t)rng_below(r, n_collectives) : 0;
    draw_graph(s, p);
    draw_codec(s, p);
    p->async = has(s, FEATURE_ASYNC) && plan_chance(r, 0.7);
    if (has(s, FEATURE_OVERLAP))
        p->overlap = plan_chance(r, 0.5) ? RUN_OVERLAP_LAYER : RUN_OVERLAP_ROUND;
    snprintf(p->final_topology, PLAN_TEXT, "%s",
             has(s, FEATURE_LAST) ? plan_choose(r, last) : RUN_SAME);
    make_valid(p);
}

static void draw_sizes(struct swarm *s, struct plan *p)
{
    struct rng *r = &s->rng;
    p->n_peers = 2 + (uint32_t)rng_below(r, has(s, FEATURE_CROWD) ? 23 : 7);
    p->min_peers = has(s, FEATURE_FEW) ? 1 + (uint32_t)rng_below(r, p->n_peers) : p->n_peers;
    p->local_steps = has(s, FEATURE_STEPS) ? 1 + (uint32_t)rng_below(r, 8) : 1;
    p->dim = has(s, FEATURE_DIM) && plan_chance(r, 0.4) ? 1208 : 48;
    p->rounds = (uint64_t)draw_log_uniform(r, 30, 300) * (p->dim > 48 ? 2 : 1);
    p->final_drift = 1e-3;
    p->by_name = has(s, FEATURE_NAMES);
    p->guests = p->by_name && plan_chance(r, 0.3);
    p->quorum = has(s, FEATURE_QUORUM) ? (double)rng_below(r, 10) / 10 : 0.5;
    p->patience_s = has(s, FEATURE_QUORUM) ? floor(draw_log_uniform(r, 3, 60)) : 600;
    p->worker_limit_s = 15;
}

static void draw_network(struct swarm *s, struct plan *p)
{
    struct rng *r = &s->rng;
    p->latency_us = (int64_t)draw_log_uniform(r, 50, 20000);
    if (has(s, FEATURE_NETWORK)) {
        p->jitter_us = (int64_t)draw_log_uniform(r, 10, 50000);
        p->bytes_per_s = plan_chance(r, 0.5) ? 0 : floor(draw_log_uniform(r, 1e5, 1e8));
    }
    if (has(s, FEATURE_LOSS))
        p->cut_rate = round(draw_log_uniform(r, 1e-4, 3e-2) * 1e5) / 1e5;
    if (has(s, FEATURE_SPEEDS))
        p->step_spread = round((double)rng_unit(r) * 30) / 10;
    if (has(s, FEATURE_STARTUP))
        p->startup_us = plan_draw_us(r, 0.002, 5);
}

static void set_length(struct plan *p, int64_t length_us)
{
    p->step_us = length_us / (int64_t)(p->rounds * p->local_steps);
}

/* ---- drawing start times and clocks ---- */

/* Draws start times and clock errors. The peers start within a period of 10 ms to 3 s. Clocks are
 * fast or slow by up to 200 ppm. */
static void draw_starts(struct swarm *s, struct plan *p)
{
    struct rng *r = &s->rng;
    uint64_t span_us = (uint64_t)(draw_log_uniform(r, 0.01, 3) * 1e6);
    for (uint32_t i = 0; i < p->n_peers && has(s, FEATURE_STARTS); i++)
        p->start_us[i] = (int64_t)rng_below(r, span_us + 1);
    for (uint32_t i = 0; i < p->n_peers && has(s, FEATURE_CLOCKS); i++)
        p->clock_ppm[i] = (double)rng_below(r, 401) - 200;
}

/* Removes the start time of each peer that a fault starts late, because the fault determines the
 * start. */
static void drop_starts(struct plan *p)
{
    for (uint32_t k = 0; k < p->n_faults; k++)
        for (uint32_t i = 0; i < p->n_peers && p->fault[k].kind == FAULT_LATE; i++)
            if (p->fault[k].a & UINT32_C(1) << i)
                p->start_us[i] = 0;
}

/* ---- drawing faults ---- */

/* Measures at what time the consensus phase begins and at what time the run ends, in a run without
 * faults. */
static void measure_end(struct swarm *s, const struct plan *p)
{
    struct explored out;
    cluster_run(p, &out, NULL, false);
    s->simulated_us = (int64_t)(out.simulated_s * 1e6);
    s->settles_us = out.settles_us > 0 ? out.settles_us : s->simulated_us;
}

/* Returns the time at which a random peer joins the run: the end of an earlier fault that took down
 * a peer, or the first start of a peer. */
static int64_t draw_join(struct swarm *s, const struct plan *p)
{
    int64_t join[PLAN_FAULTS_MAX + 1];
    uint32_t n = 0;
    join[n++] = p->start_us[rng_below(&s->rng, p->n_peers)];
    for (uint32_t k = 0; k < p->n_faults; k++) {
        const struct fault *f = &p->fault[k];
        bool joins = f->kind == FAULT_KILL || f->kind == FAULT_REPLACE || f->kind == FAULT_OFF
                     || f->kind == FAULT_LEAVE || f->kind == FAULT_LATE;
        if (joins && f->for_us != PLAN_EVER)
            join[n++] = f->at_us + f->for_us;
    }
    return join[rng_below(&s->rng, n)];
}

/* Returns a random time for a fault, near the moment of the run that s->place requires. The time is
 * a multiple of 1 ms, because the text of a plan holds no finer times. */
static int64_t draw_at(struct swarm *s, const struct plan *p)
{
    struct rng *r = &s->rng;
    int64_t at_us = 0;
    switch (s->place) {
    case PLACE_ANYWHERE:
        at_us = (int64_t)((double)rng_unit(r) * (double)s->length_us);
        break;
    case PLACE_START:
        at_us = plan_draw_us(r, 0.001, 6);
        break;
    case PLACE_JOINS:
        at_us = draw_join(s, p) + plan_draw_us(r, 0.001, 5);
        break;
    case PLACE_END:
        if (plan_chance(r, 0.5))
            at_us = s->settles_us
                    + (int64_t)((double)rng_unit(r) * (double)(s->simulated_us - s->settles_us));
        else
            at_us = s->settles_us + (plan_chance(r, 0.5) ? 1 : -1) * plan_draw_us(r, 0.001, 3);
        break;
    }
    return at_us < 0 ? 0 : at_us / 1000 * 1000;
}

static void draw_faults(struct swarm *s, struct plan *p)
{
    struct rng *r = &s->rng;
    uint32_t n = s->kinds == 0 ? 0 : (uint32_t)rng_below(r, 9);
    for (uint32_t i = 0; i < n; i++) {
        struct fault *f = &p->fault[p->n_faults];
        uint32_t kind;
        do
            kind = (uint32_t)rng_below(r, FAULT_DRAWN);
        while (!(s->kinds >> kind & 1));
        draw_fault(r, p, (enum fault_kind)kind, s->length_us, f);
        if (f->kind != FAULT_LATE)
            f->at_us = draw_at(s, p);
        p->n_faults += !draw_is_idle(p, f);
    }
    draw_leave_some(p);
    drop_starts(p);
}

void draw_swarm(struct plan *p, uint64_t seed)
{
    static const enum place place[] = {PLACE_ANYWHERE, PLACE_ANYWHERE, PLACE_START,
                                       PLACE_JOINS,    PLACE_END,      PLACE_END};
    struct swarm s = {.rng = rng_stream(rng_key(seed, RNG_TEST, 0xe8, 16))};
    *p = (struct plan){.seed = seed};
    s.features = draw_half(&s.rng, FEATURES);
    s.kinds = draw_half(&s.rng, FAULT_DRAWN);
    s.place = place[rng_below(&s.rng, sizeof place / sizeof *place)];
    draw_sizes(&s, p);
    draw_algorithm(&s, p);
    draw_outer(p, seed);
    draw_trigger(p, seed);
    draw_network(&s, p);
    draw_starts(&s, p);
    s.length_us = plan_draw_us(&s.rng, 4, 90);
    set_length(p, s.length_us);
    if (s.place == PLACE_END)
        measure_end(&s, p);
    draw_faults(&s, p);
    /* Some checks are made 30 s after the last fault. Half of the runs therefore continue for at
     * least 32 s after it. This does not apply to runs whose faults are placed at the end. */
    if (s.place != PLACE_END && plan_chance(&s.rng, 0.5))
        set_length(p, s.length_us + plan_end_us(p) + 32 * PLAN_SECOND);
}
