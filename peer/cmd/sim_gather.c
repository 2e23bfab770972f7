/* peer/cmd/sim_gather.c -- a simulation whose run never begins comes to an end all the same. */
#include "peer/cmd/sim.h"

static const int64_t second_us = 1000 * 1000;

enum {
    LOOK_S = 10,  /* Virtual seconds between two looks. */
    FEW_S = 60,   /* Fewer live than are needed: what is on its way may still make them begin. */
    MANY_S = 3600 /* There are enough, and they do not meet. */
};

/* What those come to that live. */
struct gathering
{
    uint32_t n, have, need; /* The --min-peers; need is 0 where they wait for something else. */
    uint32_t n_done;        /* The run has ended for so many others. */
};

/* False: somebody does more than gather, or nobody lives. */
static bool all_gather(const struct simulation *s, struct gathering *g)
{
    *g = (struct gathering){0};
    for (uint32_t i = 0; i < s->n; i++) {
        struct node_progress p;
        struct node_wait w;
        int code;
        if (sim_ended(s->world, i, &code)) {
            g->n_done += sim_node(s->world, i) != NULL && !sim_left(s->world, i);
            continue;
        }
        sim_progress(s->world, i, &p);
        if (p.phase != NODE_GATHERING)
            return false;
        node_wait(sim_node(s->world, i), &w);
        g->n++;
        if (w.what != NODE_WAITS_MEMBERS)
            continue;
        g->need = w.need;
        g->have = w.have > g->have ? w.have : g->have;
    }
    return g->n > 0;
}

/* Without sessions a message may take as long as it likes. */
static int64_t patience_us(const struct simulation *s, const struct gathering *g)
{
    uint64_t lag_us = options_uint(s->o, "latency-us") + options_uint(s->o, "jitter-us");
    return (g->n < g->need ? FEW_S : MANY_S) * second_us + (int64_t)(20 * lag_us);
}

static void say(struct simulation *s, const struct gathering *g)
{
    if (g->n_done > 0) { /* Then there is a verdict, by those. */
        cmd_fail(s->o, CMD_OK,
                 "warning: %u peers have ended the run and are gone, and %u wait for others for "
                 "ever: they count as dead",
                 g->n_done, g->n);
        return;
    }
    uint32_t here = g->have < g->n ? g->have : g->n; /* Some of whom a peer knows have left. */
    if (g->n < g->need)
        snprintf(s->in_vain, sizeof s->in_vain,
                 "the run never begins: %u of the %u peers of --min-peers are there, and nobody is "
                 "to come",
                 g->n, g->need);
    else if (g->need > 0)
        snprintf(s->in_vain, sizeof s->in_vain,
                 "the run never begins: no more than %u of the %u peers of --min-peers meet", here,
                 g->need);
    else
        snprintf(s->in_vain, sizeof s->in_vain,
                 "the run never begins: each of the %u peers that live waits for others", g->n);
}

bool cmd_sim_in_vain(struct simulation *s)
{
    int64_t now = sim_now_us(s->world);
    struct gathering g;
    if (now < s->look_us)
        return false;
    s->look_us = now + LOOK_S * second_us;
    bool hopes = s->scenario != NULL && scenario_brings(s->scenario);
    if (hopes || !all_gather(s, &g)) {
        s->gather_us = -1;
        return false;
    }
    if (s->gather_us < 0)
        s->gather_us = now;
    if (now - s->gather_us < patience_us(s, &g))
        return false;
    cmd_progress_break(&s->progress);
    say(s, &g);
    return true;
}
