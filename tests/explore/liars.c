/* tests/explore/liars.c -- Byzantine members of a plan: chooses which peers they are and how they
 * attack, and decides which checks still apply. */
#include "cluster.h"

#include "nn/math/rng.h"
#include "peer/run/outer.h"
#include "topology/round_schedule.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* With --byzantine: largest allowed distance of an honest model from the initial model. The unit is
 * the distance from the initial model to the farthest optimum of an honest peer. Local steps alone
 * keep the model within 1. Noise and the influence of Byzantine peers add to this distance. An
 * outer optimiser multiplies a constant update by LR / (1 - MOMENTUM), so ways() multiplies the
 * limit by this factor. Momentum overshoots an optimum by less than its distance, so ways() doubles
 * the limit. */
static const double most_ways = 4;

/* ---- drawing Byzantine peers ---- */

static const struct attack *find_attack(const char *name)
{
    for (const struct attack *a = attack_all; a->name != NULL; a++)
        if (strcmp(a->name, name) == 0)
            return a;
    return NULL;
}

/* Returns the number of honest peers that are not taken down permanently by a fault. */
static uint32_t n_staying(const struct plan *p)
{
    uint32_t gone = p->liars, all = (UINT32_C(1) << p->n_peers) - 1;
    for (uint32_t k = 0; k < p->n_faults; k++)
        if (p->fault[k].for_us == PLAN_EVER)
            gone |= p->fault[k].a;
    return (uint32_t)__builtin_popcount(all & ~gone);
}

/* Prepares the plan for --byzantine 1 or 2: adds peers, and makes the peers train in lock step. */
static void draw_tolerance(struct plan *p, struct rng *r)
{
    uint32_t least = 6 + (uint32_t)rng_below(r, 12);
    uint32_t more = p->n_peers < least ? least - p->n_peers : 0;
    p->n_peers += more;
    p->min_peers += more;
    p->async = false;
    p->tolerate = p->n_peers >= 9 && plan_chance(r, 0.25) ? 2 : 1;
}

/* Makes sure that enough honest peers stay to the end and that min_peers is large enough. Draws a
 * graph that is valid with --byzantine. */
static void draw_graph(struct plan *p, struct rng *r)
{
    static const char *const topology[] = {"torus", "torus", "complete", "regular:4", NULL};
    uint32_t need = 2 * p->tolerate + 3;
    for (uint32_t k = 0; k < p->n_faults && n_staying(p) < need; k++)
        if (p->fault[k].for_us == PLAN_EVER)
            p->fault[k].for_us = 5 * PLAN_SECOND;
    if (p->min_peers < need)
        p->min_peers = need;
    snprintf(p->topology, PLAN_TEXT, "%s", plan_choose(r, topology));
    if (!plan_is_valid(p))
        snprintf(p->topology, PLAN_TEXT, "complete");
}

/* Draws Byzantine peers from a separate random stream. Peer 0, which may be the only peer with the
 * run description, is honest. */
void plan_draw_liars(struct plan *p)
{
    struct rng r = rng_stream(rng_key(p->seed, RNG_TEST, 0xe8, 3));
    uint32_t n_attacks = 0, n = 1;
    while (attack_all[n_attacks].name != NULL)
        n_attacks++;
    snprintf(p->attack, PLAN_TEXT, "%s", attack_all[rng_below(&r, n_attacks)].name);
    /* The attacks of Byzantine peers target the mixer CHOCO, so the plan uses this mixer. */
    p->mixer = p->collective = 0;
    if (plan_chance(&r, 0.5)) {
        draw_tolerance(p, &r);
        n = 1 + (uint32_t)rng_below(&r, p->tolerate);
    } else if (p->n_peers < 3) {
        p->n_peers++;
    }
    while (n-- > 0)
        p->liars |= UINT32_C(2) << rng_below(&r, p->n_peers - 1);
    if (p->tolerate > 0)
        draw_graph(p, &r);
    /* Honest peers must be able to start without the Byzantine peers, whose sessions may be refused
     * permanently. */
    if (p->min_peers > n_staying(p))
        p->min_peers = n_staying(p);
    if (p->tolerate > 0 && !plan_is_valid(p))
        snprintf(p->topology, PLAN_TEXT, "complete");
}

void liars_set(struct cluster *c)
{
    const struct plan *p = &c->plan;
    if (p->liars == 0)
        return;
    for (uint32_t i = 0; i < p->n_peers; i++)
        c->liar[i] = !cluster_honest(c, i);
    c->config.attack = find_attack(p->attack);
    c->config.liar = c->liar;
    if (c->config.attack == NULL || (p->tolerate > 0 && !plan_is_valid(p))) {
        fprintf(stderr, "explore: attack %s with tolerate %u in %s of %u peers is no plan\n",
                p->attack, p->tolerate, p->topology, p->n_peers);
        exit(2);
    }
}

/* ---- checking honest peers ---- */

/* Returns the squared distance from the initial model to the farthest optimum of an honest peer. */
static double farthest2(const struct cluster *c)
{
    double most2 = 0;
    for (uint32_t i = 0; i < c->plan.n_peers; i++) {
        double d2 = 0;
        for (uint32_t k = 0; k < c->plan.dim && cluster_honest(c, i); k++) {
            double d = (double)c->peer[i].target[k] - 1;
            d2 += d * d;
        }
        most2 = d2 > most2 ? d2 : most2;
    }
    return most2;
}

/* Returns the largest allowed distance of an honest model from the initial model. The unit is the
 * distance from the initial model to the farthest optimum of an honest peer. */
static double ways(const struct plan *p)
{
    struct run_outer o = {.lr = 0};
    bool valid = p->outer[0] == '\0' || run_outer_parse(p->outer, &o);
    assert(valid);
    double overshoot = p->momentum[0] != '\0' ? 2 : 1;
    return most_ways * overshoot * fmax(1, o.lr / (1 - o.momentum));
}

void liars_check_model(struct cluster *c, uint32_t peer)
{
    const float *x = cluster_model(c, peer);
    double d2 = 0, most = ways(&c->plan) * ways(&c->plan) * farthest2(c);
    for (uint32_t k = 0; x != NULL && k < c->plan.dim; k++)
        d2 += ((double)x[k] - 1) * ((double)x[k] - 1);
    bool bounded = c->plan.tolerate > 0;
    if (!isfinite(d2) || (bounded && !(d2 <= most)))
        cluster_wrong(c, WRONG_MODEL,
                      "the model of peer %" PRIu32
                      " is at distance %.3g from the initial model, the farthest optimum at %.3g",
                      peer, sqrt(d2), sqrt(farthest2(c)));
}

/* Reports a failure if an honest peer accuses another honest peer of a protocol violation. */
void liars_check_note(struct cluster *c, uint32_t peer, const char *text)
{
    char id[9];
    if (sscanf(text, "peer %8[0-9a-f] broke the protocol", id) != 1
        || strstr(text, "broke the protocol") == NULL)
        return;
    for (uint32_t i = 0; i < c->plan.n_peers; i++) {
        const uint8_t *b = sim_id(c->world, i);
        char hex[9];
        snprintf(hex, sizeof hex, "%02x%02x%02x%02x", b[0], b[1], b[2], b[3]);
        if (cluster_honest(c, i) && strcmp(hex, id) == 0)
            cluster_wrong(c, WRONG_PROTOCOL, "%" PRIu32 " of %" PRIu32 ": %s", peer, i, text);
    }
}

/* Returns whether the attack excuses a peer that ended without consensus. With --byzantine every
 * attack is an excuse: a peer may clip all its neighbours, so honest models may stay apart. Without
 * --byzantine, an attacker that sends false models is an excuse, because it can keep honest models
 * apart until the end. Any other attack is an excuse only if the plan also has faults, --policy
 * async or exact averaging passes. */
bool liars_excuse(const struct cluster *c)
{
    const struct attack *a = c->config.attack;
    struct run run;
    cluster_set_run(&run, &c->plan);
    /* Without exact averaging passes, a peer notices the attack by a bound of the consensus
     * distance, which it computes from its edges. With exact averaging passes, a peer computes no
     * such bound. */
    bool else_wrong =
        c->plan.n_faults > 0 || c->plan.async || round_schedule_of(run_final_topology(&run));
    return c->plan.tolerate > 0 || (a != NULL && (a->lie == ATTACK_MODEL || else_wrong));
}

/* Returns whether honest peers may refuse each other's deltas for a while. The reason is an
 * attacker that moved their models apart, or a long time in which they were disconnected. */
bool liars_part(const struct cluster *c, uint32_t peer)
{
    struct node_edge e;
    const struct node *n = sim_node(c->world, peer);
    bool bars = cluster_progress(c, peer).distrusted > 0;
    for (size_t k = 0; k < node_n_edges(n) && !bars; k++) {
        node_edge(n, k, &e);
        bars = e.barred;
    }
    return c->plan.liars != 0 && c->plan.tolerate == 0 && bars;
}

/* Returns the largest exact relative consensus distance that is allowed among peers that claim
 * consensus. Byzantine peers falsify the estimates, so twice the target is allowed. An exact
 * averaging pass (base:K) uses no estimate. A Byzantine peer can then move the models apart
 * unnoticed, so there is no limit (peer/node/edge/averaging_pass.h). */
double liars_claim(const struct cluster *c)
{
    struct run run;
    cluster_set_run(&run, &c->plan);
    if (c->plan.liars != 0 && round_schedule_of(run_final_topology(&run)))
        return (double)INFINITY;
    return c->plan.final_drift * (c->plan.liars != 0 ? 2 : 1);
}
