/* gossip/mixers/clip.c -- computes the clipping threshold of --byzantine and clips the correction
 * terms. */
#include "gossip/mixers/clip.h"

#include "nn/math/vec.h"

#include <math.h>

/* Relative tolerance for comparing sums of weights: sums that should be equal differ in their
 * last bits. */
static const double rounding = 1e-9;

/* Returns whether correction term j comes after term i when terms are sorted by length. */
static bool is_farther(const struct correction *term, size_t j, size_t i)
{
    double dj = isfinite(term[j].d2) ? term[j].d2 : (double)INFINITY;
    double di = isfinite(term[i].d2) ? term[i].d2 : (double)INFINITY;
    return dj > di || (dj == di && j > i);
}

static bool is_heavier(const struct correction *term, size_t j, size_t i)
{
    return term[j].w > term[i].w || (term[j].w == term[i].w && j > i);
}

/* Returns the total mixing weight of the `tolerate` heaviest edges. */
static double most_weight(const struct correction *term, size_t n, uint32_t tolerate)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        size_t heavier = 0;
        for (size_t j = 0; j < n; j++)
            heavier += is_heavier(term, j, i);
        sum += heavier < tolerate ? term[i].w : 0;
    }
    return sum;
}

double clip_threshold2(const struct correction *term, size_t n, uint32_t tolerate, uint32_t behind)
{
    double need = behind * most_weight(term, n, tolerate) * (1 - rounding), most2 = 0;
    for (size_t i = 0; i < n; i++) {
        double above = 0;
        for (size_t j = 0; j < n; j++)
            above += is_farther(term, j, i) ? term[j].w : 0;
        if (above >= need && isfinite(term[i].d2) && term[i].d2 > most2)
            most2 = term[i].d2;
    }
    return most2;
}

void clip_terms(struct correction *term, size_t n, size_t dim, const struct clip_rule *rule)
{
    for (struct correction *t = term; t < term + n; t++) {
        t->d2 = vec_dist2(t->b, t->a, dim);
        t->refused = t->limit2 > 0 && !(t->d2 <= t->limit2);
        t->d2 = t->refused ? (double)INFINITY : t->d2;
    }
    double tau2 = fmin(clip_threshold2(term, n, rule->tolerate, rule->behind), rule->most2);
    for (struct correction *t = term; t < term + n; t++) {
        /* A difference b - a that is NaN or infinite stays so when it is scaled down to tau, so its
         * correction term is refused. */
        t->refused |= !isfinite(t->d2);
        if (t->refused)
            t->coefficient = 0;
        else if (t->d2 > tau2)
            t->coefficient *= (float)sqrt(tau2 / t->d2);
        t->d2 = 0; /* correction_pass() adds to d2, so d2 must start at 0. */
    }
}
