/* gossip/mixers/clip.c -- the threshold of --tolerate, and the terms that it shortens. */
#include "gossip/mixers/clip.h"

#include "nn/math/vec.h"

#include <math.h>

/* Sums of weights differ from one another in the last bits, where they should be equal. */
static const double rounding = 1e-9;

/* Does term j stand behind term i in the order of their lengths? */
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

/* No B edges weigh more than the B heaviest. */
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
        t->refused |= !isfinite(t->d2); /* Nothing may be multiplied with it. */
        if (t->refused)
            t->coefficient = 0;
        else if (t->d2 > tau2)
            t->coefficient *= (float)sqrt(tau2 / t->d2);
        t->d2 = 0; /* The pass adds it up. */
    }
}
