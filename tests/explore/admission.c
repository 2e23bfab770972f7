/* tests/explore/admission.c -- faults of admission: allow-lists that change, tokens, copied
 * identities, names in use, members that do not exist, and restarts with new identities. */
#include "cluster.h"

#include "nn/math/rng.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Longest time that a changed allow-list takes to reach every peer. */
    LIST_US = 2 * PLAN_SECOND,
    /* Of two processes with the same identity or name, the one that started later must end. If
     * their start times differ by less than ALIKE_US, the checks accept that either process
     * ends. */
    ALIKE_US = 3 * PLAN_SECOND,
    /* A peer that was refused, and is then put back on the allow-list, may still end within this
     * time. */
    BACK_US = 15 * PLAN_SECOND,
    /* Time that a peer may take, in addition to LIST_US, to drop the members that are not on a
     * changed allow-list. */
    OUTSIDE_US = 1 * PLAN_SECOND
};

/* ---- drawing faults of admission ---- */

/* Returns a random set of one or two peers for a fault. Peer 0 is never in the set, because all
 * peers contact it first. */
static uint32_t draw_others(struct rng *r, uint32_t n)
{
    uint32_t set = UINT32_C(2) << rng_below(r, n - 1);
    return plan_chance(r, 0.3) ? set | UINT32_C(2) << rng_below(r, n - 1) : set;
}

static void add_fault(struct plan *p, struct fault f)
{
    if (p->n_faults < PLAN_FAULTS_MAX)
        p->fault[p->n_faults++] = f;
}

static void draw_list(struct plan *p, struct rng *r, double length_s)
{
    p->listed = true;
    for (uint32_t k = (uint32_t)rng_below(r, 3); k > 0; k--) {
        struct fault f = {.kind = FAULT_REVOKE, .a = draw_others(r, p->n_peers)};
        f.at_us = plan_chance(r, 0.4) ? 0 : plan_draw_us(r, 0.1, length_s);
        f.for_us = plan_chance(r, 0.4) ? PLAN_EVER : plan_draw_us(r, 0.1, 40);
        add_fault(p, f);
    }
    if (!plan_chance(r, 0.4))
        return;
    p->tokens = draw_others(r, p->n_peers);
    p->token_s = round(1 + (double)rng_unit(r) * length_s);
}

/* Adds a peer that starts later, with the identity or the name of another peer. */
static void draw_double(struct plan *p, struct rng *r, enum fault_kind kind, uint32_t n,
                        double length_s)
{
    if (p->n_peers == PLAN_PEERS_MAX)
        return;
    add_fault(p, (struct fault){.kind = kind,
                                .at_us = plan_draw_us(r, 0.5, length_s),
                                .for_us = PLAN_EVER,
                                .a = UINT32_C(1) << p->n_peers,
                                .b = UINT32_C(1) << rng_below(r, n)});
    p->n_peers++;
}

/* Draws faults of admission from a separate random stream, so that the other parts of the plan of a
 * seed do not change. */
void plan_draw_admission(struct plan *p)
{
    struct rng r = rng_stream(rng_key(p->seed, RNG_TEST, 0xe8, 4));
    double length_s = fmax(1e-6 * (double)p->step_us * (double)(p->rounds * p->local_steps), 1);
    /* All peers start with the run description. Otherwise they would fetch it from peer 0, and this
     * plan may exclude peer 0. */
    p->guests = false;
    if (p->n_peers < 3)
        p->n_peers++;
    if (plan_chance(&r, 0.6))
        draw_list(p, &r, length_s);
    if (plan_chance(&r, 0.5))
        /* The value of --member-ttl must be more than the 10 s after which a silent peer counts as
         * dead. */
        p->forget_s = round(12 + (double)rng_unit(&r) * 18);
    if (plan_chance(&r, 0.3))
        add_fault(p, (struct fault){.kind = FAULT_FLOOD,
                                    .at_us = plan_draw_us(&r, 0.1, length_s),
                                    .a = UINT32_C(1) << rng_below(&r, p->n_peers),
                                    .x = 300});
    if (plan_chance(&r, 0.3))
        add_fault(p, (struct fault){.kind = FAULT_CHURN,
                                    .at_us = plan_draw_us(&r, 0.1, length_s),
                                    .for_us = plan_draw_us(&r, 5, 60),
                                    .a = draw_others(&r, p->n_peers),
                                    .x = (double)plan_draw_us(&r, 0.3, 5) * 1e-6});
    uint32_t n = p->n_peers;
    if (plan_chance(&r, 0.3))
        draw_double(p, &r, FAULT_CLONE, n, length_s);
    if (plan_chance(&r, 0.3))
        draw_double(p, &r, FAULT_TWIN, n, length_s);
    uint32_t stay = p->n_peers - (uint32_t)__builtin_popcount(plan_out(p));
    if (p->min_peers > stay)
        p->min_peers = stay;
}

uint32_t plan_out(const struct plan *p)
{
    uint32_t out = p->liars | p->tokens;
    for (uint32_t k = 0; k < p->n_faults; k++) {
        const struct fault *f = &p->fault[k];
        bool outside = f->kind == FAULT_REVOKE || f->kind == FAULT_CLONE || f->kind == FAULT_TWIN;
        if (outside || f->for_us == PLAN_EVER)
            out |= f->a;
    }
    return out;
}

/* ---- the allow-list ---- */

static int by_id(const void *a, const void *b)
{
    return memcmp(a, b, WIRE_ID_BYTES);
}

/* Writes the identity that signs tokens. The identity is on every allow-list, but no process uses
 * it. */
static void issuer(uint8_t id[WIRE_ID_BYTES])
{
    for (size_t k = 0; k < WIRE_ID_BYTES; k++)
        id[k] = (uint8_t)rng_at(0x155, k);
}

/* Makes the allow-list: the identities that the peers have now, without revoked peers and peers
 * that have a token. Returns its length. */
static size_t make_list(const struct cluster *c, uint8_t id[PLAN_PEERS_MAX + 1][WIRE_ID_BYTES])
{
    size_t n = 0;
    issuer(id[n++]);
    for (uint32_t i = 0; i < c->plan.n_peers; i++)
        if (!((c->revoked | c->plan.tokens) & UINT32_C(1) << i))
            memcpy(id[n++], sim_id(c->world, i), WIRE_ID_BYTES);
    qsort(id, n, sizeof *id, by_id);
    return n;
}

/* Gives each peer the changed allow-list after a delay of up to LIST_US. The delay of a peer is
 * always the same. */
void admission_changed(struct cluster *c)
{
    uint8_t id[PLAN_PEERS_MAX + 1][WIRE_ID_BYTES];
    if (!c->plan.listed)
        return;
    size_t n = make_list(c, id);
    c->listed_us = sim_now_us(c->world);
    for (uint32_t i = 0; i < c->plan.n_peers; i++)
        sim_admit(c->world, i, (const uint8_t(*)[WIRE_ID_BYTES])id, n,
                  (int64_t)(rng_at(c->plan.seed, i) % LIST_US));
}

void admission_started(struct cluster *c, uint32_t peer)
{
    uint8_t id[PLAN_PEERS_MAX + 1][WIRE_ID_BYTES];
    if (!c->plan.listed)
        return;
    size_t n = make_list(c, id);
    sim_admit(c->world, peer, (const uint8_t(*)[WIRE_ID_BYTES])id, n, 0);
}

/* ---- beginnings and ends of faults ---- */

static bool is_double(enum fault_kind kind)
{
    return kind == FAULT_CLONE || kind == FAULT_TWIN;
}

uint32_t admission_later(const struct plan *p)
{
    uint32_t later = 0;
    for (uint32_t k = 0; k < p->n_faults; k++)
        later |= is_double(p->fault[k].kind) ? p->fault[k].a : 0;
    return later;
}

/* Runs before a peer is restarted. Marks the peer as a rival if another process uses its identity
 * or name: the restarted process is the later one, so other peers may refuse it. */
void admission_rival(struct cluster *c, uint32_t peer)
{
    for (uint32_t k = 0; k < c->plan.n_faults; k++) {
        const struct fault *f = &c->plan.fault[k];
        if (is_double(f->kind) && (f->b & UINT32_C(1) << peer)
            && cluster_alive(c, (uint32_t)__builtin_ctz(f->a)))
            c->peer[peer].rival = true;
    }
}

static void begin_double(struct cluster *c, const struct fault *f, uint32_t peer)
{
    uint32_t of = (uint32_t)__builtin_ctz(f->b);
    if (sim_node(c->world, peer) != NULL)
        return;
    c->whole = false;
    c->peer[peer].named_as = of;
    c->peer[peer].absent = false;
    c->peer[peer].since_us = sim_now_us(c->world);
    /* Of two processes with the same identity or name, the older one should stay. The checks accept
     * that either process ends if the older one is dead or has a third process as a rival, or if
     * both started within ALIKE_US. A process does not count the time while it is stopped, so they
     * accept it as well if a fault stops the older one now. */
    bool others = false, stopped = false;
    for (uint32_t k = 0; k < c->plan.n_faults; k++)
        stopped |= c->plan.fault[k].kind == FAULT_STOP && (c->hurt[k] >> of & 1);
    for (uint32_t i = 0; i < c->plan.n_peers; i++)
        others |= i != peer && i != of && c->peer[i].named_as == of && cluster_alive(c, i);
    c->peer[of].rival |= others || stopped || !cluster_alive(c, of)
                         || sim_now_us(c->world) - c->peer[of].since_us < ALIKE_US;
    int err = f->kind == FAULT_CLONE ? sim_restart_as_clone(c->world, peer, of)
                                     : sim_restart(c->world, peer);
    if (err != 0)
        abort();
    admission_started(c, peer);
}

/* Restarts a peer that was refused and therefore ended with exit code 2. Meanwhile the peer was put back
 * on the allow-list. */
static void restart_listed(struct cluster *c, uint32_t peer)
{
    struct watched *w = &c->peer[peer];
    int code;
    bool hangs = false;
    for (uint32_t k = 0; k < c->plan.n_faults; k++)
        hangs |= c->hurt[k] >> peer & 1;
    /* A refused peer cannot end while its worker hangs, or before its job is done. Meanwhile each
     * check restarts the time limit BACK_US, which counts from the peer's return to the
     * allow-list. */
    bool ends = cluster_alive(c, peer) && cluster_progress(c, peer).phase == NODE_LEFT
                && sim_now_us(c->world) - w->listed_us <= BACK_US;
    if (w->listed_us != 0 && (hangs || ends))
        w->listed_us = sim_now_us(c->world);
    if (w->listed_us == 0 || sim_now_us(c->world) - w->listed_us > BACK_US
        || sim_node(c->world, peer) == NULL || !sim_ended(c->world, peer, &code) || code != 2)
        return;
    cluster_start_again(c, peer, false);
}

static uint32_t now_revoked(const struct cluster *c)
{
    uint32_t set = 0;
    for (uint32_t k = 0; k < c->plan.n_faults; k++)
        if (c->outside >> k & 1)
            set |= c->plan.fault[k].a;
    return set & ~c->plan.tokens;
}

static void revoke(struct cluster *c, uint32_t k, bool on)
{
    uint32_t was = c->revoked;
    c->whole = false;
    c->outside = on ? c->outside | UINT32_C(1) << k : c->outside & ~(UINT32_C(1) << k);
    c->revoked = now_revoked(c);
    for (uint32_t i = 0; i < c->plan.n_peers; i++)
        if (was & ~c->revoked & UINT32_C(1) << i)
            c->peer[i].listed_us = sim_now_us(c->world);
    admission_changed(c);
}

void admission_apply(struct cluster *c, uint32_t k, bool on)
{
    const struct fault *f = &c->plan.fault[k];
    if (f->kind == FAULT_FLOOD && on) {
        c->n_ghosts += (uint32_t)f->x;
        c->insiders |= f->a;
        sim_flood(c->world, (uint32_t)__builtin_ctz(f->a), (uint32_t)f->x, c->plan.seed + k);
    } else if (is_double(f->kind) && on) {
        begin_double(c, f, (uint32_t)__builtin_ctz(f->a));
    } else if (f->kind == FAULT_REVOKE) {
        revoke(c, k, on);
    }
}

/* ---- configuring a process ---- */

void admission_configure(struct cluster *c, uint32_t peer, struct node_config *n)
{
    /* One static buffer for the token suffices, because the node copies it. */
    static struct certificate token;
    struct watched *w = &c->peer[peer];
    uint8_t id[WIRE_ID_BYTES];
    n->forget_us = (int64_t)(c->plan.forget_s * 1e6);
    if (w->named_as != peer) {
        snprintf(w->name, sizeof w->name, "peer-%" PRIu32, w->named_as);
        n->name = w->name;
    }
    if (!(c->plan.tokens & UINT32_C(1) << peer))
        return;
    issuer(id);
    sim_invite(id, n->id, (int64_t)(c->plan.token_s * 1e6), &token);
    n->certificate = &token;
}

/* ---- checking who is a member ---- */

/* Updates whether the peer is excluded. The other checks skip an excluded peer. A peer is excluded
 * if it is off the allow-list, announces invented members, started later under the identity or name
 * of another peer, or was refused because of an expired token or of a rival process with its
 * identity or name. */
void admission_look(struct cluster *c, uint32_t peer)
{
    struct watched *w = &c->peer[peer];
    uint32_t bit = UINT32_C(1) << peer;
    bool late = (c->plan.tokens & bit) && sim_now_us(c->world) > (int64_t)(c->plan.token_s * 1e6);
    int code;
    bool refused =
        sim_node(c->world, peer) != NULL && sim_ended(c->world, peer, &code) && code == 2;
    w->out = ((c->revoked | c->insiders) & bit) || (admission_later(&c->plan) & bit)
             || (refused && (late || w->rival));
}

/* Returns the number of live peers that may refuse this peer, or that this peer may refuse, because
 * a token has expired. A process that started after the expiry does not know that a peer was
 * admitted by a token before, so it does not admit that peer. */
uint32_t admission_forgotten(const struct cluster *c, uint32_t peer)
{
    int64_t over_us = (int64_t)(c->plan.token_s * 1e6);
    bool late = c->peer[peer].since_us > over_us, has = c->plan.tokens >> peer & 1;
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->plan.n_peers; i++)
        if (i != peer && cluster_alive(c, i))
            n += (c->plan.tokens >> i & 1 && late) || (has && c->peer[i].since_us > over_us);
    return n;
}

static bool is_outside(const struct cluster *c, uint32_t peer)
{
    /* A revoked peer is still on the allow-list if a peer that is not revoked has the same
     * identity. */
    for (uint32_t i = 0; i < c->plan.n_peers; i++)
        if (!(c->revoked & UINT32_C(1) << i)
            && memcmp(sim_id(c->world, i), sim_id(c->world, peer), WIRE_ID_BYTES) == 0)
            return false;
    return true;
}

static bool has_edge(const struct cluster *c, uint32_t i, uint32_t j)
{
    const struct node *n = sim_node(c->world, i);
    for (size_t k = 0; k < node_n_edges(n); k++) {
        struct node_edge e;
        node_edge(n, k, &e);
        if (e.linked && memcmp(e.id, sim_id(c->world, j), WIRE_ID_BYTES) == 0)
            return true;
    }
    return false;
}

void admission_check(struct cluster *c)
{
    for (uint32_t i = 0; i < c->plan.n_peers; i++) {
        restart_listed(c, i);
        admission_look(c, i);
    }
    if (!c->plan.listed || sim_now_us(c->world) < c->listed_us + LIST_US + OUTSIDE_US)
        return;
    for (uint32_t i = 0; i < c->plan.n_peers; i++) {
        const struct watched *w = &c->peer[i];
        bool begins = w->starts_us != 0 || sim_now_us(c->world) - w->since_us < OUTSIDE_US;
        if (!cluster_honest(c, i) || !cluster_alive(c, i) || w->hurt || begins)
            continue;
        for (uint32_t j = 0; j < c->plan.n_peers; j++)
            if ((c->revoked & UINT32_C(1) << j) && is_outside(c, j)
                && (node_counts(sim_node(c->world, i), sim_id(c->world, j)) || has_edge(c, i, j)))
                cluster_wrong(c, WRONG_ADMITTED,
                              "peer %" PRIu32 " has peer %" PRIu32
                              " as a member, which is not on the allow-list",
                              i, j);
    }
}

/* Makes the checks that are due 30 s after the last fault. Of two processes with one identity or
 * name, one must have ended. A member that was gone for longer than --member-ttl must have been
 * removed. */
void admission_settled(struct cluster *c)
{
    uint32_t alive = 0;
    for (uint32_t i = 0; i < c->plan.n_peers; i++)
        alive += cluster_alive(c, i);
    for (uint32_t k = 0; k < c->plan.n_faults; k++) {
        const struct fault *f = &c->plan.fault[k];
        uint32_t x = (uint32_t)__builtin_ctz(f->a),
                 y = f->b != 0 ? (uint32_t)__builtin_ctz(f->b) : x;
        bool shared = f->kind == FAULT_TWIN
                      || memcmp(sim_id(c->world, x), sim_id(c->world, y), WIRE_ID_BYTES) == 0;
        /* If one of the two processes meets no other peer, it does not learn of the other one. */
        bool both = is_double(f->kind) && shared && cluster_alive(c, x) && cluster_alive(c, y)
                    && !check_stranded(c, x) && !check_stranded(c, y)
                    && !(c->revoked & (f->a | f->b));
        if (both && !c->peer[x].hurt && !c->peer[y].hurt)
            cluster_wrong(c, WRONG_ADMITTED,
                          "peer %" PRIu32 " and its %s, peer %" PRIu32 ", are both alive", y,
                          fault_name[f->kind], x);
    }
    for (uint32_t i = 0; i < c->plan.n_peers && c->plan.forget_s > 0; i++) {
        struct node_size s;
        if (!cluster_honest(c, i) || !cluster_alive(c, i) || c->peer[i].hurt)
            continue;
        node_size(sim_node(c->world, i), &s);
        if (s.n_members > alive + c->n_ghosts)
            cluster_wrong(c, WRONG_MEMORY,
                          "peer %" PRIu32 " still knows %zu members, but %" PRIu32
                          " peers are alive",
                          i, s.n_members, alive);
    }
}
