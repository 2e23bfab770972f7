/* peer/node/step/bandwidth_estimate.c -- computes the bandwidth of the slowest edge. */
#include "peer/node/step/bandwidth_estimate.h"

#include <math.h>

void bandwidth_estimate_init(struct bandwidth_estimate *g, const struct env *env,
                             const struct sessions *s, const struct run_context *w)
{
    *g = (struct bandwidth_estimate){
        .env = env, .sessions = s, .workshop = w, .s_per_byte = (double)NAN};
}

/* Initialises g->uplink with the delta size of each codec level for this model. */
static void begin(struct bandwidth_estimate *g, const struct mixing *m)
{
    double bytes[CODEC_LEVELS_RUNGS];
    for (uint32_t i = 0; i < CODEC_LEVELS_RUNGS; i++)
        bytes[i] = (double)mixing_nominal(m, DELTA_RUNG + (uint32_t)i);
    uplink_init(&g->uplink, bytes);
    g->begun = true;
}

static bool is_open(const struct neighbour *b)
{
    return b->edge.state == EDGE_OPEN && b->link != NULL;
}

void bandwidth_estimate_carried(struct bandwidth_estimate *g, const struct edges *es,
                                const struct node_event *ev)
{
    for (size_t i = 0; i < edges_count(es); i++) {
        const struct neighbour *b = edges_at(es, i);
        double s = uplink_s_per_byte(&ev->carried.bursts, ev->carried.rtt_us);
        if (b->link == NULL || b->link->number != ev->link || !isfinite(s))
            continue;
        size_t k = sessions_slot(g->sessions, b->link);
        g->at[k].link = ev->link;
        g->at[k].fresh = true;
        g->at[k].s_per_byte = s;
        g->at[k].rtt_s = 1e-6 * ev->carried.rtt_us;
    }
}

void bandwidth_estimate_worked(struct bandwidth_estimate *g, int64_t us)
{
    g->worked_us += us;
    g->n_worked++;
}

/* Sets *s_per_byte (seconds per byte) and *rtt_s (round-trip time in seconds) to the largest
 * values of all open edges. Returns false if there is no open edge, or if an open edge has no
 * new figures. */
static bool slowest(const struct bandwidth_estimate *g, const struct edges *es, double *s_per_byte,
                    double *rtt_s)
{
    *s_per_byte = *rtt_s = 0;
    for (size_t i = 0; i < edges_count(es); i++) {
        const struct neighbour *b = edges_at(es, i);
        if (!is_open(b))
            continue;
        size_t k = sessions_slot(g->sessions, b->link);
        if (!g->at[k].fresh || g->at[k].link != b->link->number)
            return false;
        *s_per_byte = fmax(*s_per_byte, g->at[k].s_per_byte);
        *rtt_s = fmax(*rtt_s, g->at[k].rtt_s);
    }
    return edges_count_open(es) > 0;
}

/* Returns whether the lower bound of the codec level (the floor) must be updated now. If so, sets
 * *s_per_byte (seconds per byte) and *rtt_s (round-trip time in seconds). With --bandwidth auto
 * both are the largest values of all open edges. With --bandwidth RATE each open edge gets an equal
 * share of the rate, and *rtt_s is 0. */
static bool due(const struct bandwidth_estimate *g, const struct edges *es, double *s_per_byte,
                double *rtt_s)
{
    const struct node_config *c = &g->env->config;
    *rtt_s = 0;
    switch (c->uplink) {
    case NODE_UPLINK_OFF:
        break;
    case NODE_UPLINK_AUTO:
        return g->n_worked > 0 && slowest(g, es, s_per_byte, rtt_s);
    case NODE_UPLINK_RATE:
        *s_per_byte = (double)edges_count_open(es) / c->uplink_rate;
        return g->n_worked > 0 && *s_per_byte > 0 && g->env->now_us - g->looked_us >= BANDWIDTH_US;
    }
    return false;
}

void bandwidth_estimate_look(struct bandwidth_estimate *g, const struct edges *es,
                             struct codec_levels *l, uint64_t now)
{
    double s_per_byte = 0, rtt_s = 0, price[CODEC_LEVELS_RUNGS];
    if (!g->begun)
        begin(g, &g->workshop->mixing);
    if (!due(g, es, &s_per_byte, &rtt_s))
        return;
    double compute_s = 1e-6 * (double)g->worked_us / (double)g->n_worked;
    uplink_look(&g->uplink, s_per_byte,
                uplink_budget(compute_s, g->workshop->run.overlap == RUN_OVERLAP_ROUND, rtt_s),
                codec_levels_rung(l));
    uplink_prices(&g->uplink, price);
    codec_levels_set_prices(l, price, now);
    codec_levels_set_floor(l, g->uplink.floor, now);
    g->s_per_byte = s_per_byte;
    g->looked_us = g->env->now_us;
    g->worked_us = g->n_worked = 0;
    for (size_t i = 0; i < NODE_LINKS_MAX; i++)
        g->at[i].fresh = false;
}

double bandwidth_estimate_bytes_per_s(const struct bandwidth_estimate *g)
{
    return g->s_per_byte > 0 ? 1 / g->s_per_byte : (double)NAN;
}
