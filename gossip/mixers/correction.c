/* gossip/mixers/correction.c -- the fused pass over x, and gamma for each of its terms. */
#include "gossip/mixers/correction.h"

#include "gossip/mixers/mixing.h"

enum {
    BLOCK = 2048 /* Floats: x, a and b of a block stay in the first two levels of cache. */
};

void correction_pass(float *x, size_t dim, struct correction *term, size_t n)
{
    for (size_t o = 0; o < dim; o += BLOCK) {
        size_t len = dim - o < BLOCK ? dim - o : BLOCK;
        for (struct correction *t = term; t < term + n; t++) {
            vec_add_diff(x + o, t->coefficient, t->b + o, t->a + o, len);
            t->d2 += vec_dist2(t->b + o, t->a + o, len);
        }
    }
}

/* The rungs of the ladder are one codec to gamma: they differ by a factor in
 * what they carry, which its bounds follow. */
static uint32_t family(uint32_t codec)
{
    return codec < DELTA_RUNG ? codec : DELTA_RUNG;
}

/* gamma w of an edge, by the figures in the heads of the two deltas. The pair of
 * codecs gets one number, whichever end is asked. */
static double coefficient(struct mixing_task *t)
{
    const struct wire_delta *own = &t->ours.head, *other = &t->theirs.head;
    uint32_t i = family(own->codec), j = family(other->codec);
    uint32_t lo = i < j ? i : j, hi = i < j ? j : i;
    struct gamma_exchange x = {.x2_own = (double)own->x2,
                               .e2_own = (double)own->e2,
                               .x2_other = (double)other->x2,
                               .e2_other = (double)other->e2,
                               .codecs = lo * DELTA_CODECS + hi};
    return t->w * gamma_next(&t->edge->gamma, &x);
}

/* The distance came for free out of the pass; the norms are only computed where it
 * has grown for so long that the edge may run away. */
static void measure(const struct mixing *m, const struct correction *t)
{
    struct gamma *g = &t->task->edge->gamma;
    if (gamma_measured(g, t->d2))
        (void)gamma_judge(g, vec_norm2(t->a, m->dim) + vec_norm2(t->b, m->dim));
}

void correction_mix(struct mixing *m, bool (*corrects)(const struct mixing_task *t))
{
    size_t n = 0;
    for (struct mixing_task *t = m->task; t < m->task + m->n_tasks; t++)
        if (t->commit && corrects(t))
            m->term[n++] = (struct correction){.a = t->replica->v,
                                               .b = t->edge->b,
                                               .coefficient = (float)coefficient(t),
                                               .task = t};
    correction_pass(m->x, m->dim, m->term, n);
    m->local2 = n > 0 ? 0 : m->local2;
    for (size_t i = 0; i < n; i++) {
        measure(m, &m->term[i]);
        m->local2 += m->term[i].d2;
    }
}
