/* gossip/mixers/correction.c -- moves the model x towards the replicas of all neighbours in one
 * pass over x. Each edge has its own step size gamma. */
#include "gossip/mixers/correction.h"

#include "gossip/mixers/clip.h"
#include "gossip/mixers/companion.h"
#include "gossip/mixers/mixing.h"

#include <math.h>
#include <string.h>

enum {
    /* Floats per block. One block of the model x and of the replicas a and b fits in the first two
     * levels of cache. */
    BLOCK = 2048,
    /* Number of mixings per measurement of |x - x0|, which needs a pass over x. reconsider()
     * measures in addition before an exchange is refused. With --byzantine it does not, because an
     * attacker could enlarge |x - x0| with each exchange, and with it the limit of the next one. */
    WAY_EVERY = 8
};

/* Adds a neighbour's correction term to x[o..o+len). */
static void add(float *x, size_t o, size_t len, const struct correction *t)
{
    if (t->velocity == NULL)
        vec_add_diff(x + o, t->coefficient, t->b + o, t->a + o, len);
    else
        vec_add_heavy(x + o, t->velocity + o, t->momentum, t->coefficient, t->b + o, t->a + o, len);
}

/* Removes a correction term that was already added to x[0..n), and marks the term as refused. Also
 * restores the velocity there, unless the momentum is 0: such an exchange does not use it. */
static void take_back(float *x, size_t n, struct correction *t)
{
    t->refused = true;
    if (t->velocity == NULL) {
        vec_add_diff(x, -t->coefficient, t->b, t->a, n);
        return;
    }
    vec_axpy(x, -1, t->velocity, n);
    vec_add_diff(t->velocity, -t->coefficient, t->b, t->a, n);
    for (size_t i = 0; i < n && t->momentum > 0; i++)
        t->velocity[i] /= t->momentum;
}

void correction_pass(float *x, size_t dim, struct correction *term, size_t n)
{
    for (size_t o = 0; o < dim; o += BLOCK) {
        size_t len = dim - o < BLOCK ? dim - o : BLOCK;
        for (struct correction *t = term; t < term + n; t++) {
            if (t->refused)
                continue;
            t->d2 += vec_dist2(t->b + o, t->a + o, len);
            if (t->limit2 > 0 && !(t->d2 <= t->limit2))
                take_back(x, o, t);
            else
                add(x, o, len, t);
        }
    }
}

/* Returns a number for the codec of a delta. The gamma rule restarts when this number changes. All
 * codec levels count as one codec here: levels differ only by the share of the difference that they
 * send, and the rule's bounds adapt to that. */
static uint32_t family(uint32_t codec)
{
    return codec < DELTA_RUNG ? codec : DELTA_RUNG;
}

/* A delta with the codec DELTA_FINAL belongs to the consensus phase, where no local steps can
 * amplify a difference between models. */
double correction_most_gamma(const struct mixing *m, const struct mixing_task *t)
{
    const struct wire_delta *own = &t->ours.head, *other = &t->theirs.head;
    bool trains = own->codec != DELTA_FINAL && other->codec != DELTA_FINAL;
    return m->semidefinite && trains ? gamma_semidefinite(own->degree, other->degree) : 1;
}

/* Builds the input of the gamma rule from the headers of the two deltas. `codecs` identifies the
 * pair of codecs and is the same number at both ends. */
static struct gamma_exchange exchange_of(const struct mixing *m, const struct mixing_task *t)
{
    const struct wire_delta *own = &t->ours.head, *other = &t->theirs.head;
    uint32_t i = family(own->codec), j = family(other->codec);
    uint32_t lo = i < j ? i : j, hi = i < j ? j : i;
    return (struct gamma_exchange){.x2_own = (double)own->x2,
                                   .e2_own = (double)own->e2,
                                   .x2_other = (double)other->x2,
                                   .e2_other = (double)other->e2,
                                   .codecs = lo * DELTA_CODECS + hi,
                                   .most = correction_most_gamma(m, t)};
}

/* Returns whether correction term t is much longer than most of the other n - 1 terms, and longer
 * than half of |x - x0|, which is a sign of a Byzantine neighbour. */
static bool is_apart(const struct mixing *m, size_t n, const struct correction *t)
{
    size_t near = 0;
    for (const struct correction *o = m->term; o < m->term + n; o++)
        near += o != t && !o->refused && outlier_filter_apart(t->d2, o->d2, m->way2);
    return n > 1 && 2 * near > n - 1;
}

/* Updates the edge's gamma rule with the distance d2 of this exchange. If d2 has grown for so
 * long that the edge may diverge, the rule also needs the norms of a and b, which cost a pass
 * over both. */
static void measure(const struct mixing *m, const struct correction *t)
{
    struct gamma *g = &t->task->edge->gamma;
    if (gamma_measured(g, t->d2) && t->ruled)
        (void)gamma_judge(g, vec_norm2(t->a, m->dim) + vec_norm2(t->b, m->dim));
}

/* Updates the outlier filter of the edge with the result of the exchange, and sets `suspect` and
 * `distrusted` of the task. */
static void look_at(const struct mixing *m, size_t n, const struct correction *t)
{
    struct outlier_filter *trust = &t->task->edge->trust;
    t->task->suspect = !t->refused
                       && outlier_filter_saw(trust, t->d2, (double)t->coefficient,
                                             is_apart(m, n, t), m->trigger > 0);
    t->task->distrusted = t->refused || t->task->suspect;
    if (t->task->suspect)
        outlier_filter_warn(trust);
}

/* Returns the median of |b - a|^2, the squared distance of an edge's replicas in its previous
 * exchange, over all edges that commit except the edge of task `own`. */
static double others2(const struct mixing *m, const struct mixing_task *own)
{
    double most = 0;
    for (const struct mixing_task *i = m->task; i < m->task + m->n_tasks; i++) {
        size_t n = 0, shorter = 0;
        for (const struct mixing_task *j = m->task; j < m->task + m->n_tasks; j++) {
            bool counts = j != own && j->commit;
            n += counts;
            shorter += counts && j->edge->trust.last2 < i->edge->trust.last2;
        }
        if (i != own && i->commit && 2 * shorter <= n && i->edge->trust.last2 > most)
            most = i->edge->trust.last2;
    }
    return most;
}

/* Stores a constant step size as the edge's gamma, and marks the adaptive rule as begun for this
 * pair of codecs. If the pair changes later, the adaptive rule starts again. */
static double own_step(struct gamma *g, const struct gamma_exchange *x, double step)
{
    g->value = step;
    g->begun = true;
    g->codecs = x->codecs;
    return step;
}

/* Returns the squared limit of the outlier filter for one task, or 0 for no limit. Until the first
 * job with local steps (round 0 of the run), only neighbours have moved x, so |x - x0| does not
 * show how far training moves a model. The filter compares distances with |x - x0|, so there is no
 * limit in these jobs. */
static double limit2_of(const struct mixing *m, const struct mixing_task *t)
{
    const struct outlier_filter *trust = &t->edge->trust;
    struct outlier_filter_view v = {.x2 = (double)t->ours.head.x2,
                                    .way2 = m->way2,
                                    .others2 = trust->warned ? others2(m, t) : 0};
    return m->announced.run_round > 0 ? outlier_filter_limit2(trust, &v) : 0;
}

/* Builds the correction term of one task's edge. gamma is `step` if that is greater than 0, else
 * the adaptive gamma. */
static struct correction make_term(const struct mixing *m, struct mixing_task *t, double step)
{
    struct gamma_exchange x = exchange_of(m, t);
    double share = t->momentum > 0 ? gamma_bears(&t->edge->gamma, &x) : 0;
    double gamma = step > 0 ? own_step(&t->edge->gamma, &x, step) : gamma_next(&t->edge->gamma, &x);
    return (struct correction){.a = t->replica->v,
                               .b = t->edge->b,
                               .coefficient = (float)(t->w * gamma),
                               .velocity = t->edge->velocity,
                               .momentum = t->momentum * (float)share,
                               .w = t->w,
                               .limit2 = limit2_of(m, t),
                               .ruled = !(step > 0),
                               .task = t};
}

/* Returns the squared limit of --max-pull, or infinity without limit. The limit is a multiple of
 * the local steps' length, so there is no limit in the consensus phase, which has no local
 * steps. */
static double most_pull2(const struct mixing *m)
{
    bool limited = m->pull > 0 && m->step2 > 0 && !m->settling;
    return limited ? m->pull * m->pull * m->step2 : (double)INFINITY;
}

/* Returns how many of the neighbours in this job may be Byzantine: `tolerate` minus the number of
 * neighbours that were proven Byzantine and therefore take no part. */
static uint32_t still_lie(const struct mixing *m)
{
    return m->tolerate > m->n_barred ? m->tolerate - m->n_barred : 0;
}

/* Without --byzantine: measures |x - x0| again if an exchange was refused, and applies each refused
 * exchange that is within the new limit. The last measurement may be several mixings old. It may
 * also be older than the model, if this peer has fetched its model from a neighbour. */
static void reconsider(struct mixing *m, size_t n)
{
    size_t n_refused = 0;
    for (size_t i = 0; i < n; i++)
        n_refused += m->term[i].refused;
    if (n_refused == 0 || m->tolerate > 0)
        return;
    m->way2 = vec_dist2(m->x, m->x0, m->dim);
    for (struct correction *t = m->term; t < m->term + n; t++) {
        if (!t->refused)
            continue;
        t->limit2 = limit2_of(m, t->task);
        t->refused = false;
        t->d2 = 0;
        correction_pass(m->x, m->dim, t, 1);
    }
}

void correction_mix(struct mixing *m, bool (*corrects)(const struct mixing_task *t),
                    double (*step)(const struct mixing *m, const struct mixing_task *t))
{
    size_t n = 0;
    if (m->n_mixed++ % WAY_EVERY == 0)
        m->way2 = vec_dist2(m->x, m->x0, m->dim);
    for (struct mixing_task *t = m->task; t < m->task + m->n_tasks; t++)
        if (t->commit && corrects(t))
            m->term[n++] = make_term(m, t, step != NULL ? step(m, t) : 0);
    if (m->tolerate > 0)
        clip_terms(m->term, n, m->dim,
                   &(struct clip_rule){still_lie(m), m->settling ? CLIP_LAST : CLIP_TRAINING,
                                       most_pull2(m)});
    correction_pass(m->x, m->dim, m->term, n);
    reconsider(m, n);
    m->local2 = n > 0 ? 0 : m->local2;
    for (size_t i = 0; i < n; i++) {
        look_at(m, n, &m->term[i]);
        if (m->term[i].refused) {
            if (m->term[i].velocity != NULL)
                memset(m->term[i].velocity, 0, m->dim * sizeof(float));
            continue;
        }
        companion_mix(m, &m->term[i]);
        measure(m, &m->term[i]);
        m->local2 += m->term[i].d2;
    }
}
