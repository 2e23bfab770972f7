/* gossip/mixers/job.c -- the part of a job (one peer's work for one round) on the worker thread:
 * applies deltas, calls the mixer and encodes new deltas.
 */
#include "gossip/mixers/mixing.h"

#include "gossip/mixers/companion.h"
#include "gossip/mixers/parts.h"

#include "nn/math/rng.h"
#include "topology/topology.h"

#include <math.h>
#include <string.h>

/* ---- mix ---- */

/* Sets a replica to its value at the beginning of the run: the initial model, and
 * companion vectors of zeros. */
static void begin_replica(const struct mixing *m, float *v)
{
    memcpy(v, m->x0, m->dim * sizeof *v);
    memset(v + m->dim, 0, (m->replicas.dim - m->dim) * sizeof *v);
}

/* Brings the two replicas of one task up to date: resets them to the initial model x0, copies a
 * shared replica, and applies the deltas that commit, as the fields of the task say. */
static void move_replicas(struct mixing *m, const struct mixing_task *t)
{
    if (t->fresh_replica)
        begin_replica(m, t->replica->v);
    if (t->fresh) {
        begin_replica(m, t->edge->b);
        companion_take_back(m, t->edge);
    }
    if (t->fresh && t->edge->velocity != NULL)
        memset(t->edge->velocity, 0, m->dim * sizeof *t->edge->velocity);
    if (t->source != NULL)
        memcpy(t->replica->v, t->source->v, m->replicas.dim * sizeof *t->replica->v);
    if (t->applies) {
        struct bytes own = mixing_own(m, t);
        m->mixer->apply(m, t->ours.head.codec, own.p, own.n, t->replica->v);
    }
    if (t->commit) {
        struct bytes other = mixing_other(m, t);
        m->mixer->apply(m, t->theirs.head.codec, other.p, other.n, t->edge->b);
    }
}

/* Returns the mixing weight of an edge. On a constant topology it equals topology_weight() of
 * the two degrees. */
static double weight(const struct wire_delta *own, const struct wire_delta *other)
{
    double w = (1.0 + own->more) / (1.0 + own->degree);
    double v = (1.0 + other->more) / (1.0 + other->degree);
    return w < v ? w : v;
}

/* Computes the mixing weight of a committed exchange, and averages the attachments of the two
 * deltas: sketch and running statistics. Both ends compute the same weight from the headers of the
 * two deltas. */
static void mix_company(struct mixing *m, struct mixing_task *t)
{
    t->w = weight(&t->ours.head, &t->theirs.head);
    sketch_mix(&m->sketch, &t->edge->sketch, t->w, &t->ours.sketch, &t->theirs.sketch);
    statistics_term(&m->statistics, t->w, t->ours.payload->bytes, t->theirs.bytes);
}

/* The mixer's mix() may read the replica and weight of any task, so all of them are updated
 * first. */
void mixing_mix(struct mixing *m)
{
    for (size_t i = 0; i < m->n_tasks; i++)
        move_replicas(m, &m->task[i]);
    for (size_t i = 0; i < m->n_tasks; i++)
        if (m->task[i].commit)
            mix_company(m, &m->task[i]);
    statistics_mix(&m->statistics, m->x + m->dim);
    m->mixer->mix(m);
}

void mixing_beat(struct mixing *m, struct sketch_moment *now)
{
    now->local2 = m->local2;
    now->place.pace = m->survey_pace;
    now->n_commits = mixing_commits(m);
    sketch_beat(&m->sketch, mixing_held_model(m), now);
}

/* The length of the local steps of single rounds varies with momentum and small batches, so it is
 * averaged over rounds. A value that is not finite is ignored here; the divergence detector handles
 * it. */
void mixing_moved(struct mixing *m, double step2)
{
    const double newest = 0.1;
    if (isfinite(step2))
        m->step2 = m->step2 > 0 ? m->step2 + newest * (step2 - m->step2) : step2;
}

/* ---- encode ---- */

/* The random stream depends on the task's index, so two deltas of one job make different random
 * choices. */
struct compress_input parts_input(const struct mixing *m, const struct mixing_task *t,
                                  const float *x, const float *x_hat)
{
    uint64_t round = m->announced.run_round;
    return (struct compress_input){.draw =
                                       rng_at(rng_at(m->draw_key, round), (uint64_t)(t - m->task)),
                                   .round = round,
                                   .x = x,
                                   .x_hat = x_hat};
}

/* Completes the payload of task t, with a message of len bytes, for all tasks that share it. x2,
 * e2: squared distance of model and replica before and after the delta. */
static void share(struct mixing *m, struct mixing_task *t, size_t len, double x2, double e2)
{
    t->made->len = len;
    for (struct mixing_task *s = t; s < m->task + m->n_tasks; s++)
        if (s->made == t->made) {
            s->sent.head.x2 = (float)x2;
            s->sent.head.e2 = (float)e2;
            s->empty = t->empty;
        }
}

void mixing_put_empty(struct mixing *m, struct mixing_task *t, double d2)
{
    const float *statistics = m->x + m->dim;
    if (!isfinite((float)d2) || !statistics_proper(&m->statistics, statistics)) {
        m->diverged = true;
        return;
    }
    t->empty = true;
    share(m, t, statistics_put(&m->statistics, t->statistics, statistics, t->made->bytes), d2, d2);
}

void mixing_put(struct mixing *m, struct mixing_task *t, const float *x, const float *x_hat)
{
    size_t len, n_companion;
    const float *statistics = m->x + m->dim;
    struct compress_stat stat = {0};
    struct compress_input in = parts_input(m, t, x, x_hat);
    size_t head = statistics_put(&m->statistics, t->statistics, statistics, t->made->bytes);
    int err = companion_put(m, t->codec, &in, t->made->bytes + head, &n_companion);
    head += n_companion;
    if (err == 0 && parts_begun(m, t))
        err = compress_rest(m->codec[t->codec], &in, t->made->bytes + head, &len, &stat);
    else if (err == 0)
        err = compress_encode(m->codec[t->codec], &in, t->made->bytes + head, &len, &stat);
    if (err != 0 || !isfinite((float)stat.x2) || !statistics_proper(&m->statistics, statistics)) {
        /* Because `diverged` is set, mixing_finish() sends no delta, and its caller ends the
         * run. */
        m->diverged = true;
        return;
    }
    share(m, t, head + len, stat.x2, stat.e2);
}

/* Returns a hash of the edge's two replicas, equal at both ends. The result is never 0, because
 * 0 in a delta means "not compared". */
static uint64_t replicas_hash(const struct mixing *m, const struct mixing_task *t)
{
    uint64_t a = vec_hash(t->replica->v, m->replicas.dim);
    uint64_t b = vec_hash(t->edge->b, m->replicas.dim);
    return t->edge->low ? rng_at(a, b) | 1 : rng_at(b, a) | 1;
}

/* Fills in the header of the task's delta. Edges may share a payload, but each has its own
 * header. */
static void fill_head(struct mixing *m, struct mixing_task *t)
{
    struct wire_delta *h = &t->sent.head;
    h->epoch = t->epoch;
    h->round = t->round + t->commit;
    h->run_round = m->announced.run_round;
    h->checkpoint = m->announced.checkpoint;
    h->degree = t->degree > 0 ? t->degree : m->announced.degree;
    h->more = t->more;
    h->settled = m->announced.settled;
    h->pace = m->announced.pace;
    h->codec = t->codec;
    h->momentum = t->codec == DELTA_FINAL ? m->announced.momentum : 0;
    h->clean = t->codec == DELTA_FINAL ? m->announced.clean : 0;
    if (h->round > 0 && h->round % MIXING_HASH_EVERY == 0)
        h->hash = replicas_hash(m, t);
    if (t->sketch)
        sketch_put(&m->sketch, &t->edge->sketch, &t->sent.sketch);
}

void mixing_encode(struct mixing *m)
{
    m->mixer->encode(m);
    for (size_t i = 0; i < m->n_tasks; i++)
        if (m->task[i].encode)
            fill_head(m, &m->task[i]);
}
