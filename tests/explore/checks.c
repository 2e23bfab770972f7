/* tests/explore/checks.c -- checks the invariants of a simulated cluster: those that must hold at
 * all times, those that must hold 30 s after the last fault, and those at the end of the run. */
#include "cluster.h"

#include "gossip/mixers/mixer.h"
#include "nn/math/vec.h"
#include "peer/node/result/verdict.h"
#include "peer/node/state.h"
#include "peer/run/exit.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

const char *const wrong_name[WRONG_KINDS] = {[WRONG_CRASH] = "crash",
                                             [WRONG_PROTOCOL] = "protocol",
                                             [WRONG_CONFORMANCE] = "conformance",
                                             [WRONG_REPLICAS] = "replicas",
                                             [WRONG_MODEL] = "model",
                                             [WRONG_MEAN] = "mean",
                                             [WRONG_ROUNDS] = "rounds",
                                             [WRONG_STORM] = "storm",
                                             [WRONG_ADMITTED] = "admitted",
                                             [WRONG_MEMORY] = "memory",
                                             [WRONG_DRIFT] = "drift",
                                             [WRONG_GATHERING] = "gathering",
                                             [WRONG_EDGES] = "edges",
                                             [WRONG_VIEW] = "view",
                                             [WRONG_APART] = "apart",
                                             [WRONG_END] = "end",
                                             [WRONG_LIVENESS] = "liveness",
                                             [WRONG_STANDSTILL] = "standstill",
                                             [WRONG_EXIT] = "exit",
                                             [WRONG_CONSENSUS] = "consensus"};

/* ---- both ends of an edge have equal replicas and mix with equal coefficients ---- */

static uint32_t peer_of(const struct cluster *c, const uint8_t id[WIRE_ID_BYTES])
{
    for (uint32_t i = 0; i < c->plan.n_peers; i++)
        if (memcmp(sim_id(c->world, i), id, WIRE_ID_BYTES) == 0
            && !(admission_later(&c->plan) & UINT32_C(1) << i))
            return i;
    return UINT32_MAX;
}

static void compare(struct cluster *c, uint32_t i, uint32_t j, const struct exchange *x)
{
    for (size_t k = 0; k < KEPT; k++) {
        const struct exchange *y = &c->peer[j].kept[i][k];
        if (y->epoch != x->epoch || y->round != x->round || y->epoch == 0)
            continue;
        if (x->a != y->b || x->b != y->a)
            cluster_wrong(c, WRONG_REPLICAS,
                          "peers %" PRIu32 " and %" PRIu32
                          " have different replicas at round %" PRIu64,
                          i, j, x->round);
        /* If one end of an edge rejects or clips a delta, the two ends mix with different
         * coefficients. The coefficients are then not compared. With momentum, the distance from
         * the initial model grows faster than the number of rounds, so the outlier filter may
         * reject an honest model that has trained for more rounds (outlier_filter.h). */
        bool refused = x->coefficient == 0 || y->coefficient == 0;
        bool momentum = c->plan.momentum[0] != '\0';
        bool both = isfinite(x->coefficient) && isfinite(y->coefficient) && c->plan.tolerate == 0
                    && !(refused && (c->plan.liars != 0 || momentum));
        c->whole &= !(refused && momentum);
        if (both && memcmp(&x->coefficient, &y->coefficient, sizeof x->coefficient) != 0)
            cluster_wrong(c, WRONG_MEAN,
                          "peers %" PRIu32 " and %" PRIu32 " mix the exchange of round %" PRIu64
                          " with the coefficients %g and %g",
                          i, j, x->round, (double)x->coefficient, (double)y->coefficient);
    }
}

void check_exchanges(struct cluster *c, uint32_t peer)
{
    const struct node *n = sim_node(c->world, peer);
    struct watched *p = &c->peer[peer];
    size_t n_floats = (1 + (size_t)momentum_companions(&c->plan)) * c->plan.dim;
    for (size_t i = 0; i < node_n_edges(n); i++) {
        struct node_edge e;
        node_edge(n, i, &e);
        uint32_t other = peer_of(c, e.id);
        if (e.a == NULL || other == UINT32_MAX || !cluster_honest(c, other))
            continue;
        const struct exchange *last = &p->kept[other][(p->n_kept[other] + KEPT - 1) % KEPT];
        if (last->epoch == e.epoch && last->round == e.round)
            continue;
        struct exchange x = {.epoch = e.epoch,
                             .round = e.round,
                             .a = vec_hash(e.a, n_floats),
                             .b = vec_hash(e.b, n_floats),
                             .coefficient = e.coefficient};
        compare(c, peer, other, &x);
        p->kept[other][p->n_kept[other]++ % KEPT] = x;
    }
}

/* ---- checks of each event ---- */

/* Fails if a peer begins more than 20 sessions per second for each peer that it knows. A higher
 * rate is a sign that the peer dials in an endless loop. Sessions that the network has broken
 * (cut_rate) are subtracted, because rounds of less than 1 ms can break hundreds of them per
 * second. Also clears c->whole (each exchange was applied at both ends) if some peer was declared
 * dead. */
void check_event(struct cluster *c, uint32_t peer, const struct node_event *ev)
{
    struct watched *w = &c->peer[peer];
    struct node_size s;
    if (c->whole && ev->type != NODE_RECV) {
        node_size(sim_node(c->world, peer), &s);
        bool began = cluster_progress(c, peer).phase > NODE_JOINING;
        /* A graph with fewer vertices than peers shows that a peer was declared dead. */
        c->whole &= !began || s.n_vertices == c->plan.n_peers;
    }
    if (ev->type == NODE_LINK_DOWN && !ev->down.clean && c->plan.cut_rate > 0 && w->n_sessions > 0)
        w->n_sessions--;
    if (ev->type != NODE_LINK_UP || !cluster_honest(c, peer))
        return;
    if (ev->now_us - w->second_us > PLAN_SECOND) {
        w->second_us = ev->now_us;
        w->n_sessions = 0;
    }
    /* A peer that returned with a new identity counts as an additional member until its old
     * identity is declared dead. */
    node_size(sim_node(c->world, peer), &s);
    size_t known = s.n_members > c->plan.n_peers ? s.n_members : c->plan.n_peers;
    if (++w->n_sessions > 20 * known)
        cluster_wrong(c, WRONG_STORM,
                      "peer %" PRIu32 " has begun %" PRIu64 " sessions in one second", peer,
                      w->n_sessions);
}

/* ---- progress of training peers ---- */

static bool hurt(const struct cluster *c, uint32_t peer)
{
    for (uint32_t k = 0; k < c->plan.n_faults; k++)
        if (c->hurt[k] & UINT32_C(1) << peer)
            return true;
    return c->peer[peer].starts_us != 0;
}

/* Returns how long a training peer may wait for other peers, in microseconds. The time is 10 s plus
 * the longer one of: three times the straggler timeout, and the time in which the slowest worker
 * does 20 jobs (a job is the computation of one round). */
static int64_t patience_us(const struct plan *p)
{
    double job = (double)p->step_us * p->local_steps * (1 + p->step_spread);
    double limit = 1e6 * p->worker_limit_s;
    return (int64_t)(3 * (limit > 20 * job ? limit : 20 * job)) + 10 * PLAN_SECOND;
}

/* Returns whether some peer pauses because it has no quorum, or does its first job, for which the
 * straggler timeout is six times as long. In lock step all other peers then wait for it, even peers
 * that have a quorum. Each peer computes its quorum from the members at its own start, so some
 * peers may have a quorum while other peers have none. */
static bool held_up(const struct cluster *c)
{
    bool held = false;
    for (uint32_t i = 0; i < c->plan.n_peers && !c->plan.async; i++) {
        if (!cluster_alive(c, i))
            continue;
        struct node_progress p = cluster_progress(c, i);
        held |= p.holds || (p.phase == NODE_TRAINING && c->peer[i].seen == 0);
    }
    return held;
}

/* Updates the time of the last progress of each live peer. */
static void look_who_moves(struct cluster *c)
{
    for (uint32_t i = 0; i < c->plan.n_peers; i++) {
        struct watched *w = &c->peer[i];
        struct node_size s;
        if (!cluster_alive(c, i))
            continue;
        node_size(sim_node(c->world, i), &s);
        w->moved_us = s.beat != w->seen ? sim_now_us(c->world) : w->moved_us;
        w->seen = s.beat;
    }
}

/* Returns whether in lock step this peer may be waiting for another peer, directly or through other
 * peers. The other peer has done no more rounds than this peer, and its last round is not longer
 * ago than patience_us(). */
static bool waits_for_the_slow(const struct cluster *c, uint32_t peer)
{
    int64_t since = sim_now_us(c->world) - patience_us(&c->plan);
    bool any = false;
    for (uint32_t i = 0; i < c->plan.n_peers && !c->plan.async; i++)
        any |= i != peer && cluster_alive(c, i) && c->peer[i].seen <= c->peer[peer].seen
               && c->peer[i].moved_us > since;
    return any;
}

void check_pace(struct cluster *c)
{
    int64_t now = sim_now_us(c->world);
    bool held = held_up(c);
    look_who_moves(c);
    for (uint32_t i = 0; i < c->plan.n_peers; i++) {
        struct watched *w = &c->peer[i];
        if (!cluster_honest(c, i) || !cluster_alive(c, i))
            continue;
        struct node_progress p = cluster_progress(c, i);
        bool starts = p.phase != NODE_TRAINING || p.holds || held;
        /* After a fault has disturbed a peer, the peer need not make progress until its current job
         * is done. */
        w->hurt = hurt(c, i) || (w->hurt && w->seen == w->beat);
        if (starts || w->hurt || w->seen != w->beat) {
            w->beat = w->seen;
            w->beat_us = now;
        } else if (now - w->beat_us > patience_us(&c->plan) && !waits_for_the_slow(c, i)) {
            cluster_wrong(c, WRONG_STANDSTILL,
                          "peer %" PRIu32 " makes no progress: at step counter %" PRIu64
                          " since %.1f s",
                          i, w->beat, (double)w->beat_us * 1e-6);
        }
    }
}

/* ---- checks of a peer's figures ---- */

/* Checks the round counts that a peer reports. The reported round must be the round of its join
 * plus the rounds done plus the rounds skipped. The rounds done must be the rounds that its trainer
 * ran. */
static void check_rounds(struct cluster *c, uint32_t peer, const struct node_progress *p)
{
    struct watched *w = &c->peer[peer];
    struct node_size s;
    node_size(sim_node(c->world, peer), &s);
    if (w->resumes) {
        w->done = p->rounds_done + s.trains;
        w->resumed_round = p->round;
    }
    w->resumes = false;
    uint64_t done = w->done - s.trains;
    if (p->round != p->joined_round + p->rounds_done + p->rounds_skipped || p->rounds_done != done)
        cluster_wrong(c, WRONG_ROUNDS,
                      "peer %" PRIu32 " reports round %" PRIu64 ", but joined at round %" PRIu64
                      ", reports %" PRIu64 " rounds done (%" PRIu64 " by its trainer) and %" PRIu64
                      " skipped",
                      peer, p->round, p->joined_round, p->rounds_done, done, p->rounds_skipped);
}

static void check_memory(struct cluster *c, uint32_t peer)
{
    struct node_size s;
    uint64_t lives = 0;
    node_size(sim_node(c->world, peer), &s);
    for (uint32_t i = 0; i < c->plan.n_peers; i++)
        lives += c->peer[i].n_lives;
    if (s.n_links > 4 * c->plan.n_peers + 8 || s.n_members > lives + c->n_ghosts
        || s.n_edges > lives + 1 || s.n_packets > 6 * s.n_edges + 8)
        cluster_wrong(c, WRONG_MEMORY,
                      "peer %" PRIu32 " has %zu sessions, %zu members, %zu edges and %zu packets",
                      peer, s.n_links, s.n_members, s.n_edges, s.n_packets);
}

/* Returns the model of a peer at the start of `round`. If the peer skipped this round, returns its
 * model at the nearest earlier round, or, with `later`, at the nearest later round. NULL: no model
 * within 50 rounds. */
static const float *model_at(const struct watched *w, uint64_t round, bool later)
{
    const struct plan *p = &w->cluster->plan;
    for (uint64_t k = 0; k < 50; k++) {
        uint64_t at = later ? round + k : round - k;
        if (at <= p->rounds && w->has[at])
            return w->history + at * p->dim;
    }
    return NULL;
}

/* Returns the set of peers that this peer counts as members now. */
uint32_t check_counted(const struct cluster *c, uint32_t peer)
{
    uint32_t set = 0;
    for (uint32_t i = 0; i < c->plan.n_peers; i++)
        if (node_counts(sim_node(c->world, peer), sim_id(c->world, i)))
            set |= UINT32_C(1) << i;
    return set;
}

/* Returns the exact consensus distance of a set of peers at the start of a round, relative to the
 * mean model. NaN: the model of a peer is unknown, or a peer below the quorum mixed in this round,
 * so that the others may have measured any of several models. */
static double exact_drift(const struct cluster *c, uint32_t set, uint64_t round, bool later)
{
    double d2 = 0, m2 = 0;
    const float *x[PLAN_PEERS_MAX];
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->plan.n_peers; i++) {
        if (!(set & UINT32_C(1) << i))
            continue;
        x[n] = model_at(&c->peer[i], round, later);
        if (x[n] == NULL && c->peer[i].since_us > c->plan.start_us[i])
            return (double)NAN;
        /* A peer that resumed may be below the quorum in a round whose model in `history` is that
         * of an earlier process. */
        if (round <= c->plan.rounds
            && (c->peer[i].has[round] == HISTORY_MIXED || c->peer[i].held_round == round))
            return (double)NAN;
        n += x[n] != NULL;
    }
    for (size_t k = 0; k < c->plan.dim; k++) {
        double mean = 0;
        for (uint32_t i = 0; i < n; i++)
            mean += (double)x[i][k] / n;
        for (uint32_t i = 0; i < n; i++)
            d2 += ((double)x[i][k] - mean) * ((double)x[i][k] - mean) / n;
        m2 += mean * mean;
    }
    return n == 0 ? (double)NAN : d2 > 0 ? sqrt(d2 / m2) : 0;
}

/* Returns the set of peers that a peer counted as members both at the start of the round and in the
 * round before. */
static uint32_t counted_twice(const struct watched *w, uint64_t round)
{
    bool before = round > 0 && w->has[round - 1];
    return before ? w->counted[round - 1] & w->counted[round] : w->counted[round];
}

/* Compares a consensus distance that a peer publishes with the exact distance. The tolerance is 4.5
 * standard errors of a sketch of 256 values, which one in 100,000 distances exceeds by chance. Two
 * exact distances are computed in these cases, and the published distance must be between them,
 * within the tolerance:
 *
 *   - A peer skipped the round: with its models before and after the round.
 *   - With RUN_OVERLAP_ROUND deltas arrive one round late. An average by gossip then covers the
 *     members that took part in the round before, too, and a tree aggregation covers all members of
 *     the round (sketch.h): with both sets of members. */
static void check_drift(struct cluster *c, uint32_t peer, const struct node_progress *p)
{
    struct watched *w = &c->peer[peer];
    if (!isfinite(p->relative_drift) || p->phase > NODE_TRAINING || c->plan.async
        || p->drift_round == w->drift_round || p->drift_round >= c->plan.rounds)
        return;
    /* A peer that resumes publishes distances of rounds before its checkpoint. If other peers have
     * begun again without a checkpoint, their models of these rounds are now different. */
    if (p->drift_round < w->resumed_round)
        return;
    w->drift_round = p->drift_round;
    uint32_t set = w->counted[p->drift_round];
    uint32_t least = c->plan.overlap == RUN_OVERLAP_ROUND ? counted_twice(w, p->drift_round) : set;
    /* Two processes with one identity have different models, and the exact distance may be computed
     * with the model of the wrong process. The published distance is therefore not checked if the
     * peer counted such a process as a member. */
    if (set & admission_later(&c->plan))
        return;
    double low = INFINITY, high = 0, told = p->relative_drift;
    for (int k = 0; k < 4; k++) {
        double d = exact_drift(c, k & 1 ? set : least, p->drift_round, k & 2);
        if (!isfinite(d))
            return;
        low = fmin(low, d);
        high = fmax(high, d);
    }
    if (!(low > 1e-5))
        return;
    double ratio = told < low ? told / low : told > high ? told / high : 1;
    c->out->n_drifts++;
    if (fabs(log(ratio > 1e-9 ? ratio : 1e-9)) > fabs(log(c->out->worst_drift)))
        c->out->worst_drift = ratio > 1e-9 ? ratio : 1e-9;
    if (!(ratio > 0.8 && ratio < 1.2))
        cluster_wrong(c, WRONG_DRIFT,
                      "peer %" PRIu32 " reports consensus distance %.3g for round %" PRIu64
                      ", exact %.3g (reported at round %" PRIu64 ")",
                      peer, told, p->drift_round, ratio < 1 ? low : high, p->round);
}

void check_progress(struct cluster *c, uint32_t peer)
{
    struct node_progress p = cluster_progress(c, peer);
    check_rounds(c, peer, &p);
    check_memory(c, peer);
    if (c->plan.liars != 0)
        /* Byzantine peers falsify the consensus distances that peers publish. Published distances
         * are therefore not checked in a plan with Byzantine peers. */
        return;
    check_drift(c, peer, &p);
    if (p.violations > 0)
        cluster_wrong(c, WRONG_PROTOCOL, "%" PRIu32 " saw a violation", peer);
}

/* ---- 30 s after the last fault ---- */

static bool wants(const struct cluster *c, uint32_t i, uint32_t j, struct node_edge *e)
{
    const struct node *n = sim_node(c->world, i);
    for (size_t k = 0; k < node_n_edges(n); k++) {
        node_edge(n, k, e);
        if (e->wanted && memcmp(e->id, sim_id(c->world, j), WIRE_ID_BYTES) == 0)
            return true;
    }
    return false;
}

/* Returns whether the peer has just begun its consensus phase, and this phase has another topology
 * than training. The peer may then still be opening edges. */
static bool changes_topology(const struct cluster *c, uint32_t i)
{
    struct node_size s;
    node_size(sim_node(c->world, i), &s);
    return cluster_progress(c, i).phase == NODE_CONSENSUS && s.beat <= c->plan.rounds
           && strcmp(c->plan.final_topology, RUN_SAME) != 0;
}

static bool edges_open_at(struct cluster *c, uint32_t i, bool tell)
{
    static const char *const state[] = {"closed", "asking", "open", "paused", "done"};
    bool open = true;
    for (uint32_t j = 0; j < c->plan.n_peers; j++) {
        struct node_edge e, back;
        if (j == i || !cluster_honest(c, j) || cluster_parted(c, j) || !cluster_alive(c, j)
            || !wants(c, j, i, &back) || !wants(c, i, j, &e))
            continue;
        if (e.state == EDGE_OPEN || e.state == EDGE_DONE || liars_part(c, i) || liars_part(c, j)
            || changes_topology(c, i) || changes_topology(c, j))
            continue;
        open = false;
        if (tell)
            cluster_wrong(c, WRONG_EDGES,
                          "the edge of peer %" PRIu32 " to peer %" PRIu32 " is %s, %s", i, j,
                          state[e.state], e.linked ? "with a session" : "without a session");
    }
    return open;
}

/* Returns whether peer i has restarted and waits for the members of its checkpoint, and the live
 * peers are below the quorum. It then waits for --quorum-timeout (resume.h). */
static bool awaits_checkpoint_members(struct cluster *c, uint32_t i, uint32_t alive)
{
    return resume_is_waiting(sim_node(c->world, i)->resume)
           && !verdict_quorum(alive, c->plan.n_peers, c->plan.quorum);
}

/* Checks one peer: it must not be in the joining phase while other peers train, its edges must be
 * open, and its graph must contain all live members and no other members. */
static bool whole_at(struct cluster *c, uint32_t i, uint32_t alive, uint32_t training, bool tell)
{
    struct node_progress p = cluster_progress(c, i);
    struct node_size s;
    bool enough = alive >= c->plan.min_peers && !awaits_checkpoint_members(c, i, alive);
    bool gathers = p.phase == NODE_JOINING && (training > 0 || enough);
    if (gathers && tell)
        cluster_wrong(c, WRONG_GATHERING,
                      "peer %" PRIu32 " is still joining, %" PRIu32 " of %" PRIu32
                      " live peers train",
                      i, training, alive);
    if (p.phase > NODE_CONSENSUS)
        return true;
    bool open = edges_open_at(c, i, tell);
    node_size(sim_node(c->world, i), &s);
    /* The graph may lack peers whose worker is stalled by a fault, until their job is done. */
    uint32_t stalled = 0;
    for (uint32_t j = 0; j < c->plan.n_peers; j++)
        stalled += cluster_alive(c, j) && c->peer[j].hurt;
    uint32_t forgotten = admission_forgotten(c, i);
    /* Number of Byzantine and excluded peers. The graph of peer i may contain some of them. */
    uint32_t liars = 0;
    for (uint32_t j = 0; j < c->plan.n_peers; j++)
        liars += !cluster_honest(c, j) && !c->peer[j].absent;
    /* A peer accepts a few members that only one other peer endorses. Its graph may therefore
     * contain some invented members (members that do not exist). */
    if (c->n_ghosts > 0)
        liars += 1 + alive / 16;
    bool knows = s.n_vertices <= alive + liars && s.n_vertices + stalled + forgotten >= alive;
    knows |= p.phase == NODE_JOINING;
    if (!knows && tell)
        cluster_wrong(c, WRONG_VIEW,
                      "the graph of peer %" PRIu32 " has %zu members, but %" PRIu32
                      " peers are alive",
                      i, s.n_vertices, alive);
    return !gathers && open && knows;
}

/* Returns whether some live process has the run description. */
static bool is_run_known(const struct cluster *c)
{
    for (uint32_t i = 0; i < c->plan.n_peers; i++)
        if (cluster_alive(c, i) && sim_node(c->world, i)->workshop.has_run)
            return true;
    return false;
}

bool check_stranded(const struct cluster *c, uint32_t i)
{
    uint32_t told = cluster_told(c);
    bool meets = false;
    for (uint32_t j = 0; j < c->plan.n_peers; j++)
        meets |= (told & UINT32_C(1) << j) && j != i && cluster_honest(c, j) && cluster_alive(c, j);
    return cluster_progress(c, i).phase == NODE_JOINING && !(meets && is_run_known(c));
}

/* Checks that in lock step no honest training peer is more than MOST rounds ahead of another honest
 * peer. Byzantine peers are not checked, because a peer that all others refuse falls behind. */
static bool together(struct cluster *c, bool tell)
{
    enum { MOST = 80 };
    const struct watched *first = NULL, *last = NULL;
    for (uint32_t i = 0; i < c->plan.n_peers && !c->plan.async; i++) {
        const struct watched *w = &c->peer[i];
        if (!cluster_honest(c, i) || !cluster_alive(c, i) || w->hurt || cluster_parted(c, i)
            || cluster_progress(c, i).phase != NODE_TRAINING)
            continue;
        first = first == NULL || w->seen > first->seen ? w : first;
        last = last == NULL || w->seen < last->seen ? w : last;
    }
    if (first == NULL || first->seen <= last->seen + MOST)
        return true;
    if (tell)
        cluster_wrong(c, WRONG_APART, "%" PRIu32 " is at beat %" PRIu64 ", %" PRIu32 " at %" PRIu64,
                      first->index, first->seen, last->index, last->seen);
    return false;
}

bool check_whole(struct cluster *c, bool tell)
{
    uint32_t alive = 0, training = 0;
    bool whole = true;
    for (uint32_t i = 0; i < c->plan.n_peers; i++) {
        if (!cluster_honest(c, i))
            continue;
        if (!cluster_alive(c, i) && !c->peer[i].absent && !cluster_parted(c, i))
            /* A peer has ended. From then on the difference in rounds between the other peers is
             * not limited. */
            return true;
        if (!cluster_alive(c, i) || cluster_parted(c, i) || check_stranded(c, i))
            continue;
        enum node_phase phase = cluster_progress(c, i).phase;
        alive++;
        training += phase >= NODE_TRAINING && phase <= NODE_CONSENSUS;
    }
    for (uint32_t i = 0; i < c->plan.n_peers; i++)
        if (cluster_honest(c, i) && !cluster_parted(c, i) && cluster_alive(c, i)
            && !check_stranded(c, i))
            whole &= whole_at(c, i, alive, training, tell);
    return together(c, tell) && whole;
}

/* ---- checks at the end of the run ---- */

/* Returns whether mixing leaves the mean of all models unchanged. The mean changes with the mixers
 * `average` and `ps`, which apply a part of each update later (error feedback), and with `sma`,
 * which adds momentum to its centre. */
static bool keeps_mean(const struct mixer *m)
{
    return !m->updates || m == mixer_all[plan_mixer("allreduce")];
}

/* Checks that the sum of all models equals the initial sum plus all local updates. */
static void check_mean(struct cluster *c)
{
    double off2 = 0, norm2 = 0;
    if (!c->whole || !keeps_mean(mixer_all[c->plan.mixer])
        || (c->out->wrong
            & (1u << WRONG_END | 1u << WRONG_STORM | 1u << WRONG_CONSENSUS | 1u << WRONG_EXIT)))
        return;
    for (size_t k = 0; k < c->plan.dim; k++) {
        double sum = 0;
        for (uint32_t i = 0; i < c->plan.n_peers; i++)
            sum += (double)cluster_model(c, i)[k];
        double expected = (double)c->plan.n_peers + c->moved[k];
        off2 += (sum - expected) * (sum - expected);
        norm2 += expected * expected;
    }
    double off = sqrt(off2 / norm2);
    if (!(off < 1e-5))
        cluster_wrong(c, WRONG_MEAN, "the mean of all models is wrong by %.3g of its norm", off);
    momentum_check_end(c);
}

/* Returns true if the verdict `f` of a peer does not report peer j as dead. */
static bool counts(const struct verdict_facts *f, uint32_t j)
{
    char name[WIRE_NAME_MAX + 1];
    snprintf(name, sizeof name, "peer-%" PRIu32, j);
    for (uint32_t k = 0; k < f->n_dead && k < VERDICT_DEAD_MAX; k++)
        if (strcmp(f->dead[k], name) == 0)
            return false;
    return true;
}

/* Returns the exact relative consensus distance of the final models of a set of peers. 0: all
 * models are equal. */
static double drift_among(const struct cluster *c, uint32_t set)
{
    double d2 = 0, m2 = 0;
    uint32_t n = (uint32_t)__builtin_popcount(set);
    for (size_t k = 0; k < c->plan.dim; k++) {
        double mean = 0;
        for (uint32_t i = 0; i < c->plan.n_peers; i++)
            if (set & UINT32_C(1) << i)
                mean += (double)cluster_model(c, i)[k] / n;
        for (uint32_t i = 0; i < c->plan.n_peers; i++)
            if (set & UINT32_C(1) << i) {
                double d = (double)cluster_model(c, i)[k] - mean;
                d2 += d * d / n;
            }
        m2 += mean * mean;
    }
    return n == 0 ? (double)NAN : d2 > 0 ? sqrt(d2 / m2) : 0;
}

/* Returns whether a peer did all rounds of the run and ended with code 3 (no consensus). */
static bool took_part(struct cluster *c, uint32_t i)
{
    int code;
    if (!cluster_honest(c, i) || c->peer[i].absent || c->peer[i].left
        || sim_node(c->world, i) == NULL || !sim_ended(c->world, i, &code)
        || cluster_model(c, i) == NULL)
        return false;
    struct node_progress p = cluster_progress(c, i);
    return code == CMD_APART && p.joined_round == 0 && p.rounds_done == c->plan.rounds;
}

/* Returns whether another process has, or had, the identity of peer j (fault `clone`). No peer can
 * distinguish these two processes, so a claim about peer j may be about either process. */
static bool is_ambiguous(const struct cluster *c, uint32_t j)
{
    for (uint32_t k = 0; k < c->plan.n_peers; k++)
        if (k != j && sim_node(c->world, k) != NULL
            && memcmp(sim_id(c->world, k), sim_id(c->world, j), WIRE_ID_BYTES) == 0)
            return true;
    return false;
}

/* Checks the claim of consensus of peer i, which ended with code 0. The exact distance among peer i
 * and all other peers that ended with code 0 must be within the limit. Peers that peer i reports as
 * dead are left out. If peer i claims a consensus of all members, peers that did all rounds and
 * ended with code 3 are included. */
static void check_claim(struct cluster *c, uint32_t i, uint32_t good)
{
    struct verdict_facts f;
    uint32_t set = 0;
    node_facts(sim_node(c->world, i), &f);
    bool all = f.n_among == f.n_members && !c->plan.async && c->plan.liars == 0;
    for (uint32_t j = 0; j < c->plan.n_peers; j++)
        if (((good & UINT32_C(1) << j) || (all && took_part(c, j)))
            && (j == i
                || (counts(&f, j) && !is_ambiguous(c, j)
                    && (check_counted(c, i) & UINT32_C(1) << j))))
            set |= UINT32_C(1) << j;
    double drift = drift_among(c, set);
    if (!(drift <= liars_claim(c)))
        cluster_wrong(c, WRONG_CONSENSUS,
                      "peer %" PRIu32 " claims consensus distance %.3g of %" PRIu32 " of %" PRIu32
                      " members, the exact distance of %d of them is %.3g",
                      i, f.distance, f.n_among, f.n_members, __builtin_popcount(set), drift);
}

/* Returns whether a peer ended with an unknown consensus distance because of invented members
 * (members that do not exist). A peer that counts invented members builds another graph than its
 * neighbours. An edge opens only if it is in the graphs of both of its ends. */
static bool drawn_apart(const struct cluster *c, const struct verdict *o)
{
    return o->kind == VERDICT_UNKNOWN && c->insiders != 0;
}

/* Returns whether a peer ended alone and allow-lists explain this: its token expired, no peer could
 * admit it, or all other members are revoked. */
static bool shut_out(const struct cluster *c, const struct verdict *o,
                     const struct verdict_facts *f)
{
    bool only = o->kind == VERDICT_UNKNOWN && f->n_members == 1;
    return (o->kind == VERDICT_ALONE || only) && c->plan.listed;
}

/* Returns whether peer i may end without a finish certificate. There are two reasons: too few
 * initial members took part to the end, or another peer ended because it had no quorum. */
static bool lacks_voters(struct cluster *c, uint32_t i, const struct verdict_facts *f)
{
    bool lacks = f->uncertified && !liveness_majority(c, sim_node(c->world, i));
    for (uint32_t j = 0; j < c->plan.n_peers && f->uncertified; j++) {
        struct verdict_facts other;
        struct verdict o;
        int code;
        if (!cluster_honest(c, j) || sim_node(c->world, j) == NULL
            || !sim_ended(c->world, j, &code))
            continue;
        node_facts(sim_node(c->world, j), &other);
        verdict_judge(&o, &other);
        lacks |= o.kind == VERDICT_NO_QUORUM;
    }
    return lacks;
}

static void exit_code(struct cluster *c, uint32_t i, int code)
{
    struct verdict_facts f;
    struct verdict o;
    node_facts(sim_node(c->world, i), &f);
    verdict_judge(&o, &f);
    /* Exit code 3 is correct for a peer that was alone at the end, and for a peer without a
     * quorum. */
    bool alone = code == CMD_APART
                 && (o.kind == VERDICT_NO_QUORUM || (o.kind == VERDICT_ALONE && f.n_among == 1));
    if (!alone
        && !(code == CMD_APART
             && (drawn_apart(c, &o) || shut_out(c, &o, &f) || lacks_voters(c, i, &f))))
        cluster_wrong(c, WRONG_EXIT, "%" PRIu32 " ended with %d: %s", i, code, o.text);
}

/* Returns whether a fault fills the disk of this peer for at least 90 % of --quorum-timeout. The
 * peer may then end with an error. The limit is not 100 %, because the clock of a peer may be 10 %
 * fast. */
static bool disk_full(const struct cluster *c, uint32_t i)
{
    for (uint32_t k = 0; k < c->plan.n_faults; k++) {
        const struct fault *f = &c->plan.fault[k];
        bool of_peer = f->kind == FAULT_FULL && (f->a & UINT32_C(1) << i);
        if (of_peer && (double)f->for_us >= 0.9e6 * c->plan.patience_s)
            return true;
    }
    return false;
}

/* Returns whether all peers that end with code 0 must agree. The conditions are that all peers
 * began together, that the quorum is at least half of them, and that no peer lost its identity. */
static bool one_at_most(const struct cluster *c)
{
    bool one = c->plan.quorum >= 0.5 && c->plan.min_peers == c->plan.n_peers && !c->plan.listed
               && c->plan.liars == 0 && c->plan.forget_s <= 0;
    for (uint32_t k = 0; k < c->plan.n_faults; k++) {
        enum fault_kind kind = c->plan.fault[k].kind;
        one &= kind != FAULT_REPLACE && kind != FAULT_LATE;
    }
    return one;
}

/* Returns whether too few voters for a quorum were left, because initial members had left the run. */
static bool voters_left(const struct cluster *c, uint32_t i)
{
    bool any = false;
    for (uint32_t j = 0; j < c->plan.n_peers; j++)
        any |= c->peer[j].left;
    return any && !liveness_majority(c, sim_node(c->world, i));
}

/* Checks the exit codes. If no peer had ended 30 s after the last fault, every peer must end with
 * code 0. The peers that end with code 0 must always be in consensus with each other. */
static void check_consensus(struct cluster *c)
{
    uint32_t good = 0;
    for (uint32_t i = 0; i < c->plan.n_peers; i++) {
        int code;
        if (!cluster_honest(c, i) || c->peer[i].absent || c->peer[i].left
            || sim_node(c->world, i) == NULL || !sim_ended(c->world, i, &code))
            continue;
        good |= code == 0 && cluster_model(c, i) != NULL ? UINT32_C(1) << i : 0;
        bool excused = (code == CMD_APART && (!c->settled || liars_excuse(c) || voters_left(c, i)))
                       || (code == CMD_FAILED && disk_full(c, i));
        if (code != 0 && !excused && !cluster_parted(c, i))
            exit_code(c, i, code);
    }
    c->out->drift = drift_among(c, good);
    if (one_at_most(c) && c->out->drift > liars_claim(c))
        cluster_wrong(c, WRONG_CONSENSUS,
                      "the models of the %d peers with exit code 0 have the relative distance %.3g",
                      __builtin_popcount(good), c->out->drift);
    for (uint32_t i = 0; i < c->plan.n_peers; i++)
        if (good & UINT32_C(1) << i)
            check_claim(c, i, good);
}

void check_end(struct cluster *c)
{
    for (uint32_t i = 0; i < c->plan.n_peers; i++) {
        if (sim_node(c->world, i) == NULL || !cluster_honest(c, i))
            continue;
        struct node_progress p = cluster_progress(c, i);
        c->out->n_rounds += p.round;
        c->out->n_skipped += p.rounds_skipped;
    }
    if (!(c->out->wrong & (1u << WRONG_END | 1u << WRONG_STORM)))
        check_consensus(c);
    liveness_end(c);
    check_mean(c);
}
