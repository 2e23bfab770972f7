/* peer/cmd/sim_joining.c -- detects that a simulated run will never begin, so that the simulation
 * can end. */
#include "nn/math/number.h"
#include "peer/cmd/sim.h"

static const int64_t second_us = 1000 * 1000;

enum {
    LOOK_S = 10, /* Simulated seconds between two checks whether the run can still begin. */
    /* If fewer peers are alive than the run needs, the simulation ends after this time, in
     * simulated seconds. Messages that are on their way may still let the run begin before that
     * time. */
    TOO_FEW_PEERS_S = 60,
    /* If enough peers are alive but do not find each other, the simulation ends after this time, in
     * simulated seconds. */
    ENOUGH_PEERS_S = 3600
};

/* Numbers of peers that are joining the run or have ended it. */
struct gathering
{
    /* n: number of joining peers. have: largest number of members that a joining peer knows. need:
     * number of members for which the peers wait (--min-peers); 0: they do not wait for members. */
    uint32_t n, have, need;
    uint32_t n_done; /* Number of peers for which the run has ended. */
};

/* Returns true if every live peer is still joining. Returns false if a live peer has begun the run,
 * or if no peer is alive. If the result is true, `*g` has the numbers of peers. */
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

/* Returns the time, in simulated microseconds, after which a run is judged never to begin if all
 * peers are still joining. The time includes 20 one-way delays of a message, because the user may
 * have set a long delay (--latency-us, --jitter-us). */
static int64_t joining_timeout_us(const struct simulation *s, const struct gathering *g)
{
    uint64_t lag_us = options_uint(s->o, "latency-us") + options_uint(s->o, "jitter-us");
    return (g->n < g->need ? TOO_FEW_PEERS_S : ENOUGH_PEERS_S) * second_us + (int64_t)(20 * lag_us);
}

static void say(struct simulation *s, const struct gathering *g)
{
    /* If other peers have already ended the run, they determine the verdict of the simulation. The
     * peers that still wait for members then only cause a warning. */
    if (g->n_done > 0) {
        cmd_fail(s->o, CMD_OK,
                 "warning: %u peer%s ended the run and left; %u still waiting for them: counted as "
                 "dead",
                 g->n_done, number_plural(g->n_done), g->n);
        return;
    }
    /* The number of known members, `g->have`, may include members that have left. It is therefore
     * limited to the number of joining peers. */
    uint32_t here = g->have < g->n ? g->have : g->n;
    if (g->n < g->need)
        snprintf(s->never_begins, sizeof s->never_begins,
                 "the run never starts: %u of the %u peers that --min-peers requires are present, "
                 "and no other peer will start",
                 g->n, g->need);
    else if (g->need > 0)
        snprintf(s->never_begins, sizeof s->never_begins,
                 "the run never starts: at most %u of the %u peers that --min-peers requires find "
                 "each other",
                 here, g->need);
    else
        snprintf(s->never_begins, sizeof s->never_begins,
                 "the run never starts: each of the %u live peers waits for others", g->n);
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
