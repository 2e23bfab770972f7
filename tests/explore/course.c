/* tests/explore/course.c -- runs a plan: begins and ends its faults, and limits its duration. */
#include "cluster.h"

#include "gossip/mixers/mixer.h"
#include "peer/node/step/resume.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLICE_US = 100 * 1000,
    SETTLED_US = 30 * PLAN_SECOND,
    /* Time in microseconds that is added to the limit of a run in which two processes share a name.
     * One process ends 10 s after the two met. Peers that refused the other process dial it again
     * up to 5 s later. */
    DOUBLES_US = 15 * PLAN_SECOND,
    REPAIRED_US = 11 * PLAN_SECOND,
    EVENTS_MAX = 20 * 1000 * 1000
};

/* ---- beginning and ending faults ---- */

/* Returns whether at least one honest peer is in the phase `phase` or in an earlier phase. */
static bool is_before(const struct cluster *c, enum node_phase phase)
{
    for (uint32_t i = 0; i < c->plan.n_peers; i++)
        if (cluster_honest(c, i) && cluster_alive(c, i) && cluster_progress(c, i).phase <= phase)
            return true;
    return false;
}

/* Returns whether no honest peer has a process, so that the run is lost and starts again. */
static bool all_gone(const struct cluster *c)
{
    for (uint32_t i = 0; i < c->plan.n_peers; i++)
        if (cluster_honest(c, i) && sim_node(c->world, i) != NULL)
            return false;
    return true;
}

static void take_down(struct cluster *c, uint32_t k, uint32_t i)
{
    const struct fault *f = &c->plan.fault[k];
    if (!cluster_alive(c, i))
        return;
    c->down[k] |= UINT32_C(1) << i;
    c->whole = false;
    if (f->kind == FAULT_LEAVE) {
        c->peer[i].left = true;
        sim_ask_to_leave(c->world, i);
        return;
    }
    c->peer[i].absent = true;
    if (f->kind == FAULT_OFF)
        sim_power_off(c->world, i);
    else
        sim_kill(c->world, i);
}

void cluster_start_again(struct cluster *c, uint32_t i, bool as_new)
{
    struct watched *p = &c->peer[i];
    admission_rival(c, i);
    sim_kill(c->world, i);
    p->absent = p->left = p->joined = false;
    p->done = p->joined_round = p->said_round = 0;
    p->drift_round = p->held_round = UINT64_MAX;
    p->n_lives++;
    p->since_us = sim_now_us(c->world) + c->plan.startup_us;
    memset(p->kept, 0, c->plan.n_peers * sizeof *p->kept);
    if (c->plan.checkpoint_s == 0)
        /* Without checkpoints, the recorded models of earlier rounds are dropped, because the
         * restarted peer cannot resume from them. */
        memset(p->has, 0, c->plan.rounds + 1);
    int err = as_new ? sim_restart_as_new(c->world, i) : sim_restart(c->world, i);
    assert(err == 0);
    if (as_new)
        admission_changed(c);
    admission_started(c, i);
    if (c->plan.startup_us == 0)
        return;
    sim_stop(c->world, i, true);
    p->starts_us = sim_now_us(c->world) + c->plan.startup_us;
}

/* Ends a fault that took down peer i. Restarts its process if some honest peer still takes part in
 * the run, or if no honest peer has a process. A peer that left, or that has no checkpoint, is
 * restarted only while some peer still joins or trains. If it were restarted later, it could vote a
 * second time or replace its final model, and the finish protocol allows neither
 * (peer/node/finish/README.md). */
static void bring_up(struct cluster *c, uint32_t k, uint32_t i)
{
    const struct fault *f = &c->plan.fault[k];
    bool limited = f->kind == FAULT_LEAVE || c->plan.checkpoint_s == 0;
    enum node_phase last = limited ? NODE_TRAINING : NODE_FINISHING;
    bool others = is_before(c, last) || all_gone(c);
    if (!(c->down[k] & UINT32_C(1) << i) || (cluster_alive(c, i) && f->kind != FAULT_LEAVE)
        || !others)
        return;
    cluster_start_again(c, i, f->kind == FAULT_REPLACE || f->kind == FAULT_CHURN);
}

/* Kills the processes of peers that start later, so that dials to these peers are refused until
 * they start. */
static void take_down_unborn(struct cluster *c)
{
    for (uint32_t i = 0; i < c->plan.n_peers; i++)
        if (c->plan.start_us[i] > 0) {
            c->peer[i].absent = c->peer[i].unborn = true;
            sim_kill(c->world, i);
        }
}

static void start_first(struct cluster *c, uint32_t i)
{
    struct watched *p = &c->peer[i];
    p->absent = p->unborn = false;
    p->since_us = sim_now_us(c->world);
    int err = sim_restart(c->world, i);
    assert(err == 0);
    admission_started(c, i);
}

/* Starts the processes whose start time has come. Also lets a restarted process run when its
 * start-up time, in which it only accepts connections, is over. Returns the time at which one of
 * these events happens next, but at most `to`. */
static int64_t next_start(struct cluster *c, int64_t to)
{
    for (uint32_t i = 0; i < c->plan.n_peers; i++) {
        struct watched *p = &c->peer[i];
        if (p->unborn && c->plan.start_us[i] <= sim_now_us(c->world))
            start_first(c, i);
        if (p->unborn && c->plan.start_us[i] < to)
            to = c->plan.start_us[i];
        if (p->starts_us != 0 && p->starts_us <= sim_now_us(c->world)) {
            p->starts_us = 0;
            sim_stop(c->world, i, false);
        }
        if (p->starts_us != 0 && p->starts_us < to)
            to = p->starts_us;
    }
    return to;
}

static void cut(struct cluster *c, const struct fault *f, bool on)
{
    for (uint32_t i = 0; i < c->plan.n_peers; i++)
        for (uint32_t j = 0; j < c->plan.n_peers; j++) {
            if (!(f->a & UINT32_C(1) << i) || !(f->b & UINT32_C(1) << j) || i == j)
                continue;
            sim_cut(c->world, i, j, on);
            if (f->kind != FAULT_CUT)
                sim_cut(c->world, j, i, on);
        }
}

/* Injects a fault into the replicas that this peer holds: adds 1 to the first value of the replica
 * of each peer in the set `others`. */
static void flip(struct cluster *c, uint32_t peer, uint32_t others)
{
    const struct node *n = sim_node(c->world, peer);
    for (size_t i = 0; n != NULL && i < node_n_edges(n); i++) {
        struct node_edge e;
        node_edge(n, i, &e);
        for (uint32_t j = 0; j < c->plan.n_peers; j++)
            if ((others & UINT32_C(1) << j) && e.b != NULL
                && memcmp(sim_id(c->world, j), e.id, sizeof e.id) == 0)
                *(float *)(uintptr_t)e.b += 1;
    }
}

static int64_t after(double s)
{
    return s < 0 ? -1 : (int64_t)(s * 1e6);
}

static void reset(struct cluster *c, const struct fault *f)
{
    for (uint32_t i = 0; i < c->plan.n_peers; i++)
        for (uint32_t j = 0; j < c->plan.n_peers; j++)
            if ((f->a & UINT32_C(1) << i) && (f->b & UINT32_C(1) << j) && i != j)
                sim_reset(c->world, i, j, after(f->x), after(f->y));
}

/* Begins or ends fault k for peer i. */
static void apply_one(struct cluster *c, uint32_t k, uint32_t i, bool on)
{
    const struct fault *f = &c->plan.fault[k];
    uint32_t bit = UINT32_C(1) << i;
    bool holds_up = f->kind == FAULT_STOP || f->kind == FAULT_HANG || f->kind == FAULT_SLOW;
    c->hurt[k] = on && holds_up ? c->hurt[k] | bit : c->hurt[k] & ~bit;
    switch (f->kind) {
    case FAULT_KILL:
    case FAULT_REPLACE:
    case FAULT_OFF:
    case FAULT_LEAVE:
    case FAULT_LATE:
    case FAULT_CHURN:
        if (on)
            take_down(c, k, i);
        else
            bring_up(c, k, i);
        break;
    case FAULT_STOP:
        sim_stop(c->world, i, on);
        break;
    case FAULT_HANG:
        sim_hang(c->world, i, on);
        break;
    case FAULT_SLOW:
        sim_slow(c->world, i, on ? f->x : 1);
        break;
    case FAULT_CUT:
    case FAULT_SPLIT:
    case FAULT_FLAP:
    case FAULT_RESET:
    case FAULT_NAMES:
    case FAULT_REVOKE:
    case FAULT_CLONE:
    case FAULT_TWIN:
    case FAULT_FLOOD:
    case FAULT_KINDS:
        break;
    case FAULT_SPOIL:
        c->peer[i].spoils |= on;
        break;
    case FAULT_FULL:
        sim_fill_disk(c->world, i, on);
        break;
    case FAULT_FLIP:
        if (on)
            flip(c, i, f->b);
        break;
    }
}

static void apply(struct cluster *c, uint32_t k, bool on)
{
    const struct fault *f = &c->plan.fault[k];
    if (f->kind != FAULT_FLIP || c->all)
        cluster_mark(c, "%s %s", fault_name[f->kind], on ? "begins" : "ends");
    if (f->kind == FAULT_CUT || f->kind == FAULT_SPLIT || f->kind == FAULT_FLAP)
        cut(c, f, on);
    else if (f->kind == FAULT_RESET && on)
        reset(c, f);
    else if (f->kind == FAULT_NAMES) {
        c->unnamed = on ? c->unnamed | f->a : c->unnamed & ~f->a;
        c->names = f->x;
    }
    admission_apply(c, k, on);
    if (on)
        liveness_part(c, f);
    for (uint32_t i = 0; i < c->plan.n_peers; i++)
        if (f->a & UINT32_C(1) << i)
            apply_one(c, k, i, on);
}

/* ---- the course of a plan ---- */

struct turn
{
    int64_t at_us;
    uint32_t fault;
    bool on;
};

enum { TURNS_MAX = 4096 };

static int by_time(const void *x, const void *y)
{
    const struct turn *a = x, *b = y;
    if (a->at_us != b->at_us)
        return a->at_us < b->at_us ? -1 : 1;
    if (a->fault != b->fault)
        return a->fault < b->fault ? -1 : 1;
    return (int)b->on - (int)a->on;
}

static size_t make_turns(const struct plan *p, struct turn turn[TURNS_MAX])
{
    size_t n = 0;
    for (uint32_t k = 0; k < p->n_faults; k++) {
        const struct fault *f = &p->fault[k];
        int64_t end_us = f->for_us == PLAN_EVER ? INT64_MAX : f->at_us + f->for_us;
        bool often = f->kind == FAULT_FLAP || f->kind == FAULT_CHURN;
        int64_t every = often ? after(f->x) : INT64_MAX;
        int64_t at = f->at_us;
        bool on = true;
        for (; n + 2 < TURNS_MAX && at < end_us; on = !on) {
            turn[n++] = (struct turn){at, k, on};
            if (every == INT64_MAX)
                at = end_us;
            else
                at += every;
        }
        if (!on && f->kind != FAULT_RESET && end_us != INT64_MAX)
            turn[n++] = (struct turn){end_us, k, false};
        else if ((f->kind == FAULT_RESET || f->kind == FAULT_FLOOD) && n + 2 < TURNS_MAX
                 && f->for_us == 0)
            turn[n++] = (struct turn){f->at_us, k, true};
    }
    qsort(turn, n, sizeof *turn, by_time);
    return n;
}

bool course_is_lost(const struct cluster *c, uint32_t peer)
{
    for (uint32_t k = 0; k < c->plan.n_faults; k++)
        if (c->plan.fault[k].for_us == PLAN_EVER && (c->hurt[k] & UINT32_C(1) << peer)
            && c->plan.fault[k].kind != FAULT_SLOW)
            return true;
    return false;
}

static bool all_over(const struct cluster *c)
{
    for (uint32_t i = 0; i < c->plan.n_peers; i++)
        if (c->peer[i].unborn
            || (cluster_honest(c, i) && cluster_alive(c, i) && !course_is_lost(c, i)))
            return false;
    return true;
}

static bool someone_ended(const struct cluster *c)
{
    for (uint32_t i = 0; i < c->plan.n_peers; i++)
        if (cluster_honest(c, i) && !cluster_parted(c, i) && !cluster_alive(c, i)
            && !c->peer[i].absent && !c->peer[i].left)
            return true;
    return false;
}

/* Returns whether the run is lost, so that it need not end: some peers have ended, all live peers
 * are still joining, and the live peers are fewer than min_peers or cannot continue
 * (check_stranded()). */
static bool too_late(const struct cluster *c)
{
    uint32_t ended = 0, left = 0, stranded = 0;
    for (uint32_t i = 0; i < c->plan.n_peers; i++) {
        /* Byzantine peers count as ended, as do peers that were killed too late to be restarted. */
        if (!cluster_alive(c, i)) {
            ended++;
            continue;
        }
        if (!cluster_honest(c, i) || course_is_lost(c, i))
            continue;
        if (cluster_progress(c, i).phase != NODE_JOINING)
            return false;
        else {
            left++;
            stranded += check_stranded(c, i);
        }
    }
    return ended > 0 && (left < c->plan.min_peers || left == stranded);
}

/* In an all-reduce or with a parameter server, about two messages per peer are sent one after the
 * other in each round. */
double course_exchange_us(const struct plan *p)
{
    double line = p->bytes_per_s > 0 ? 4e6 * p->dim / p->bytes_per_s : 0;
    double hop = (double)(p->latency_us + p->jitter_us) + line;
    return mixer_all[p->mixer]->round_protocol ? 2 * hop * p->n_peers : 0;
}

/* Returns the time limit of a run, which is the sum of: twice the time that the slowest peer needs
 * for its rounds, the time of 300 more local steps, the time until the last fault is over, twice
 * the quorum timeout, and 300 s. */
static int64_t limit_us(const struct plan *p)
{
    double step = (double)p->step_us * (1 + p->step_spread);
    double length = (step * p->local_steps + course_exchange_us(p)) * (double)p->rounds;
    int64_t patience = (int64_t)(2 * p->patience_s) + 300;
    return (int64_t)(2 * length + 300 * step) + plan_end_us(p) + patience * PLAN_SECOND;
}

/* Returns whether the last faults of the plan are permanent deaths, in a fast network and without
 * any other fault in the 20 s before. The remaining peers must then have repaired the graph within
 * REPAIRED_US, however many peers died. */
static bool ends_in_deaths(const struct plan *p)
{
    int64_t end = plan_end_us(p);
    bool deaths = p->cut_rate == 0 && p->bytes_per_s == 0 && p->latency_us + p->jitter_us < 50000;
    bool any = false;
    for (uint32_t k = 0; k < p->n_faults; k++) {
        const struct fault *f = &p->fault[k];
        bool death = f->for_us == PLAN_EVER && (f->kind == FAULT_KILL || f->kind == FAULT_OFF);
        int64_t until = f->for_us == PLAN_EVER ? f->at_us : f->at_us + f->for_us;
        any |= death && f->at_us == end;
        deaths &= (death && f->at_us == end) || until < end - 20 * PLAN_SECOND;
    }
    return any && deaths;
}

/* Returns whether at least one peer is never taken down by a fault. Every restarted peer can then
 * rejoin the run through that peer. */
static bool someone_lives_on(const struct plan *p)
{
    uint32_t gone = 0;
    for (uint32_t k = 0; k < p->n_faults; k++) {
        const struct fault *f = &p->fault[k];
        bool ends = f->kind == FAULT_KILL || f->kind == FAULT_REPLACE || f->kind == FAULT_OFF
                    || f->kind == FAULT_LEAVE || f->kind == FAULT_LATE;
        gone |= ends ? f->a : 0;
    }
    return gone != (UINT32_C(1) << p->n_peers) - 1;
}

/* Kills the processes of the peers that start only later, under the identity or name of another
 * peer. */
static void take_down_later(struct cluster *c)
{
    for (uint32_t i = 0; i < c->plan.n_peers; i++)
        if (admission_later(&c->plan) & UINT32_C(1) << i) {
            c->peer[i].absent = true;
            sim_kill(c->world, i);
        }
}

void course_run(struct cluster *c)
{
    static const int64_t never = INT64_MAX;
    struct turn *turn = calloc(TURNS_MAX, sizeof *turn);
    assert(turn != NULL);
    size_t n = make_turns(&c->plan, turn), next = 0;
    int64_t over = plan_end_us(&c->plan), limit = limit_us(&c->plan);
    if (c->plan.liveness)
        limit = liveness_limit_us(&c->plan);
    /* If all peers died, a peer that resumes waits up to RESUME_US for the members listed in its
     * checkpoint. */
    bool waits = c->plan.checkpoint_s > 0 && !someone_lives_on(&c->plan);
    int64_t settled =
        over + SETTLED_US + (waits ? RESUME_US : 0) + (int64_t)(c->plan.forget_s * 1e6);
    settled += admission_later(&c->plan) != 0 ? DOUBLES_US : 0;
    int64_t repaired = ends_in_deaths(&c->plan) ? over + REPAIRED_US : never;
    take_down_later(c);
    take_down_unborn(c);
    admission_changed(c);
    for (uint32_t i = 0; i < c->plan.n_peers; i++)
        admission_started(c, i);
    for (bool checked = false;;) {
        int64_t now = sim_now_us(c->world), to = now + SLICE_US;
        for (; next < n && turn[next].at_us <= now; next++)
            apply(c, turn[next].fault, turn[next].on);
        if (next < n && turn[next].at_us < to)
            to = turn[next].at_us;
        to = next_start(c, to);
        admission_check(c);
        check_pace(c);
        if (now >= over)
            sim_lose(c->world, 0);
        else if (c->whole && someone_ended(c))
            /* A peer that ends before the other peers may leave an exchange incomplete. */
            c->whole = false;
        if (now >= over && !isfinite(c->out->healed_s) && check_whole(c, false))
            c->out->healed_s = (double)(now - over) * 1e-6;
        if (now >= repaired) {
            (void)check_whole(c, true);
            repaired = never;
        }
        if (now >= settled && !checked) {
            checked = true;
            (void)check_whole(c, true);
            if (!someone_ended(c))
                admission_settled(c);
            c->settled = !someone_ended(c);
            settled = never;
        }
        if ((next == n && all_over(c)) || (c->out->wrong & 1u << WRONG_STORM))
            /* WRONG_STORM was reported: some peer opens new sessions in an endless loop. The
             * simulation would take hours to reach the end of the run. */
            break;
        if (next == n && now > limit && too_late(c))
            break;
        if (now > limit && c->plan.liveness) {
            liveness_late(c);
            break;
        }
        if (now > limit || sim_events(c->world) > EVENTS_MAX) {
            cluster_wrong(c, WRONG_END, "the run has not ended after %.0f s and %" PRIu64 " events",
                          (double)now * 1e-6, sim_events(c->world));
            break;
        }
        (void)sim_run_to(c->world, settled < to && settled > now ? settled : to);
    }
    free(turn);
}
