/* peer/cmd/sim_joining.c -- detects that the run of a simulation never begins, so that the
 * simulation ends. */
#include "peer/cmd/sim.h"

static const int64_t second_us = 1000 * 1000;

enum {
    LOOK_S = 10, /* Virtual seconds between two checks. */
    /* Virtual seconds after which a simulation ends in which fewer peers live than the run
     * needs. Messages on their way may still let the run begin in this time. */
    TOO_FEW_PEERS_S = 60,
    /* Virtual seconds after which a simulation ends in which enough peers live but do not find
     * each other. */
    ENOUGH_PEERS_S = 3600
};

/* State of the peers that are alive and joining. */
struct gathering
{
    /* Number of joining peers; most members that one of them knows; and the required --min-peers
     * (0: they do not wait for members). */
    uint32_t n, have, need;
    uint32_t n_done; /* Number of peers for which the run has ended. */
};

/* Returns true if all live peers are still joining. Returns false if one of them has begun the
 * run, or if no peer is alive. */
static bool all_joining(const struct simulation *s, struct gathering *g)
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
        if (p.phase != NODE_JOINING)
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

/* Returns how long all peers may be joining before the run counts as never beginning, in virtual
 * microseconds. The time includes 20 one-way delays, because a message may take arbitrarily long
 * in a simulation. */
static int64_t joining_timeout_us(const struct simulation *s, const struct gathering *g)
{
    uint64_t lag_us = options_uint(s->o, "latency-us") + options_uint(s->o, "jitter-us");
    return (g->n < g->need ? TOO_FEW_PEERS_S : ENOUGH_PEERS_S) * second_us + (int64_t)(20 * lag_us);
}

static void say(struct simulation *s, const struct gathering *g)
{
    /* If some peers have already ended the run, the simulation has a verdict from them. */
    if (g->n_done > 0) {
        cmd_fail(s->o, CMD_OK,
                 "warning: %u peers have ended the run and left; %u peers wait for them and count "
                 "as dead",
                 g->n_done, g->n);
        return;
    }
    /* Some of the members that a peer knows may have left. */
    uint32_t here = g->have < g->n ? g->have : g->n;
    if (g->n < g->need)
        snprintf(s->never_begins, sizeof s->never_begins,
                 "the run never starts: %u of the %u peers of --min-peers are present, and no "
                 "other peer will start",
                 g->n, g->need);
    else if (g->need > 0)
        snprintf(s->never_begins, sizeof s->never_begins,
                 "the run never starts: at most %u of the %u peers that --min-peers requires find "
                 "each other",
                 here, g->need);
    else
        snprintf(s->never_begins, sizeof s->never_begins,
                 "the run never starts: each of the %u peers that live waits for others", g->n);
}

bool cmd_sim_never_begins(struct simulation *s)
{
    int64_t now = sim_now_us(s->world);
    struct gathering g;
    if (now < s->look_us)
        return false;
    s->look_us = now + LOOK_S * second_us;
    bool hopes = s->scenario != NULL && scenario_will_reconnect(s->scenario);
    if (hopes || !all_joining(s, &g)) {
        s->gather_us = -1;
        return false;
    }
    if (s->gather_us < 0)
        s->gather_us = now;
    if (now - s->gather_us < joining_timeout_us(s, &g))
        return false;
    cmd_progress_end_line(&s->progress);
    say(s, &g);
    return true;
}
