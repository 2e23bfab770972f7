/* gossip/mixers/plan.c -- plans and finishes a job (one peer's work for one round), on the loop
 * thread.
 *
 * Planning decides which edges share a replica and which share an encoded delta. The worker
 * only executes the plan:
 *
 * - Edges that are reset share one replica, which is set to x0.
 * - Edges that commit the same delta to the same replica keep this replica if no other edge uses
 *   it. Otherwise they continue with a copy and leave the replica to the other edges.
 * - Edges that encode a delta share one packet if they have the same replica and the same codec,
 *   and if all or none of their deltas carry statistics.
 */
#include "gossip/mixers/mixing.h"

#include "gossip/mixers/parts.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* ---- tasks ---- */

int mixing_begin(struct mixing *m, size_t n)
{
    m->n_tasks = 0;
    m->n_barred = 0;
    m->settling = false;
    if (n <= m->cap_tasks && m->term != NULL)
        return 0;
    /* With n = 0 one element is allocated, so that loops over zero tasks have a valid pointer. */
    n = n > 0 ? n : 1;
    struct mixing_task *task = realloc(m->task, n * sizeof *task);
    if (task == NULL)
        return -ENOMEM;
    m->task = task;
    struct correction *term = realloc(m->term, n * sizeof *term);
    if (term == NULL)
        return -ENOMEM;
    m->term = term;
    m->cap_tasks = n;
    return 0;
}

uint64_t mixing_edge_round(const struct mixing_task *t)
{
    return t->edge->round + t->commit;
}

/* Decides whether the task's delta carries a sketch and running statistics. Both ends of an edge
 * must decide alike, so the decision depends on the round of the run in lock step, and on the
 * edge's own round otherwise. After a fault (`disturbed`) any delta may carry a message of the tree
 * aggregation. */
static void choose_company(const struct mixing *m, struct mixing_task *t,
                           const struct mixing_moment *now)
{
    uint64_t beat = now->lock_step ? now->round : mixing_edge_round(t);
    /* On a topology that changes by round, each edge is used once in each pass through the
     * topology's rounds. The attachments of deltas (sketches and statistics) are therefore planned
     * by passes, not by rounds. */
    beat /= now->pass > 1 ? now->pass : 1;
    t->sketch = t->encode && (m->sketch.disturbed || now->settling || beat % m->sketch_every == 0);
    t->statistics = t->encode && (now->settling || beat % m->statistics_every == 0);
}

void mixing_join(struct mixing *m, struct edge *e, const struct mixing_moment *now)
{
    assert(m->n_tasks < m->cap_tasks);
    struct mixing_task *t = &m->task[m->n_tasks];
    *t = (struct mixing_task){.edge = e, .commit = edge_ready(e)};
    /* A draining job only completes pending exchanges, so it does not count as a job of the
     * consensus phase. */
    m->settling = now->settling && !now->draining;
    t->encode =
        !now->draining && !now->idle && e->state == EDGE_OPEN && (t->commit || edge_wants_delta(e));
    t->degree = now->degree;
    t->more = now->more;
    t->codec = m->mixer->plan(m, t, now);
    choose_company(m, t, now);
    m->n_tasks += t->commit || t->encode || e->reset;
    m->n_barred += now->barred;
}

size_t mixing_commits(const struct mixing *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n_tasks; i++)
        n += m->task[i].commit;
    return n;
}

/* ---- replicas and packets ---- */

/* Gives all edges that are reset in this job one common replica, and resets their other state. */
static int plan_resets(struct mixing *m)
{
    struct replica *r = NULL;
    for (size_t i = 0; i < m->n_tasks; i++) {
        struct mixing_task *t = &m->task[i];
        struct edge *e = t->edge;
        if (!e->reset)
            continue;
        assert(!t->commit);
        t->fresh_replica = r == NULL;
        if (r != NULL)
            r->refs++;
        else if ((r = replica_get(&m->replicas)) == NULL)
            return -ENOMEM;
        replica_release(&m->replicas, e->a);
        e->a = r;
        e->reset = false;
        t->fresh = true;
        gamma_init(&e->gamma, m->fixed_gamma);
        outlier_filter_begin(&e->trust);
        sketch_pair_reset(&e->sketch);
    }
    return 0;
}

/* Returns whether tasks i and j commit the same delta to the same replica. */
static bool same_commit(const struct mixing *m, size_t i, size_t j)
{
    const struct mixing_task *s = &m->task[i], *t = &m->task[j];
    return s->commit && t->commit && s->edge->a == t->edge->a && s->ours.payload == t->ours.payload;
}

/* Plans the commit of task i and of all tasks that commit the same delta to the same replica. If
 * other edges use the replica, too, the committing edges continue with a copy and leave the
 * original to the other edges. */
static int plan_commit(struct mixing *m, size_t i)
{
    struct replica *r = m->task[i].edge->a, *to = r;
    uint32_t group = 0;
    for (size_t j = i; j < m->n_tasks; j++)
        group += same_commit(m, i, j);
    if (group < r->refs) {
        if ((to = replica_get(&m->replicas)) == NULL)
            return -ENOMEM;
        to->refs = group;
        /* The job holds a reference to the replica from which it copies, until the job is
         * finished. */
        m->task[i].source = r;
        r->refs++;
    }
    m->task[i].applies = true;
    for (size_t j = i; j < m->n_tasks; j++)
        if (same_commit(m, i, j))
            m->task[j].replica = to;
    return 0;
}

/* Assigns a packet to the delta of task i. A task with the same content as an earlier task
 * shares its packet. The task's replica must be assigned already. */
static int plan_encode(struct mixing *m, size_t i)
{
    struct mixing_task *t = &m->task[i];
    for (size_t j = 0; j < i && !m->mixer->own_deltas; j++)
        if (m->task[j].encode && m->task[j].replica == t->replica && m->task[j].codec == t->codec
            && m->task[j].statistics == t->statistics) {
            t->made = m->task[j].made;
            packet_hold(t->made);
            return 0;
        }
    t->made = packet_get(&m->packets);
    t->encodes = true;
    return t->made != NULL ? 0 : -ENOMEM;
}

/* Moves the edge to the replica that plan_commit() has assigned to the task. Also assigns the
 * packet of the edge's new delta. */
static int plan_edge(struct mixing *m, size_t i)
{
    struct mixing_task *t = &m->task[i];
    struct replica *was = t->edge->a;
    if (t->replica != NULL && t->replica != was) {
        /* No reference to t->replica is added here, because plan_commit() has already added it. */
        t->edge->a = t->replica;
        replica_release(&m->replicas, was);
    }
    t->replica = t->edge->a;
    return t->encode ? plan_encode(m, i) : 0;
}

/* Sets the momentum of an exchange to the lesser of the values that the two deltas announce. Both
 * ends know both deltas, so they use the same momentum. */
static int plan_momentum(const struct mixing *m, struct mixing_task *t)
{
    struct edge *e = t->edge;
    uint32_t own = t->ours.head.momentum, other = t->theirs.head.momentum;
    t->momentum = (float)(own < other ? own : other) / WIRE_MOMENTUM_ONE;
    if (t->momentum > 0 && e->velocity == NULL)
        e->velocity = calloc(m->dim, sizeof *e->velocity);
    return t->momentum > 0 && e->velocity == NULL ? -ENOMEM : 0;
}

/* Copies the edge state that the worker needs into the task. */
static void copy_edge(struct mixing_task *t)
{
    struct edge *e = t->edge;
    t->epoch = e->epoch;
    t->round = e->round;
    if (!t->commit)
        return;
    t->ours = e->cur;
    packet_hold(t->ours.payload);
    t->theirs = *edge_theirs(e);
    t->theirs.bytes = edge_take(e);
}

static void drop_packets(struct mixing *m)
{
    for (size_t i = 0; i < m->n_tasks; i++) {
        packet_release(m->task[i].ours.payload);
        packet_release(m->task[i].made);
    }
    m->n_tasks = 0;
}

int mixing_plan(struct mixing *m, const struct mixing_announcement *says)
{
    m->announced = *says;
    m->diverged = false;
    for (size_t i = 0; i < m->n_tasks; i++)
        copy_edge(&m->task[i]);
    int err = plan_resets(m);
    for (size_t i = 0; i < m->n_tasks && err == 0; i++)
        if (m->task[i].commit)
            err = plan_momentum(m, &m->task[i]);
    for (size_t i = 0; i < m->n_tasks && err == 0; i++)
        if (m->task[i].commit && m->task[i].replica == NULL)
            err = plan_commit(m, i);
    for (size_t i = 0; i < m->n_tasks && err == 0; i++)
        err = plan_edge(m, i);
    parts_plan(m);
    if (err != 0)
        drop_packets(m);
    return err;
}

/* ---- finish ---- */

/* Returns whether both deltas carry a hash of the replicas and the hashes differ. */
static bool mismatch(const struct mixing_task *t)
{
    uint64_t own = t->ours.head.hash, other = t->theirs.head.hash;
    return own != 0 && other != 0 && own != other;
}

/* Finishes one task: advances the edge, and makes the new delta its current one. If the edge was
 * reset while the job ran, the task is dropped: the edge does not advance, and the new delta is
 * released. */
static void finish_task(struct mixing *m, struct mixing_task *t)
{
    struct edge *e = t->edge;
    bool current = e->epoch == t->epoch && !e->reset;
    replica_release(&m->replicas, t->source);
    if (t->commit && current) {
        e->n_mismatches += mismatch(t);
        e->n_distrusted += t->distrusted;
        e->suspect |= t->suspect;
        edge_advance(e);
    }
    packet_release(t->ours.payload);
    if (t->encode && current && !m->diverged) {
        assert(e->cur.payload == NULL);
        e->cur = t->sent;
        e->cur.payload = t->made;
        /* resend_cur makes the node send this delta. It is also set for the first transmission. */
        e->resend_cur = true;
        m->n_empty += t->empty;
    } else {
        packet_release(t->made);
    }
}

void mixing_finish(struct mixing *m)
{
    parts_finish(m);
    m->n_empty = 0;
    for (size_t i = 0; i < m->n_tasks; i++)
        finish_task(m, &m->task[i]);
    m->n_tasks = 0;
}
