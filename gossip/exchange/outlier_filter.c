/* gossip/exchange/outlier_filter.c -- computes the distance limit of an exchange, and tests whether
 * an edge is suspect. */
#include "gossip/exchange/outlier_filter.h"

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double square(int times)
{
    return (double)times * times;
}

void outlier_filter_begin(struct outlier_filter *t)
{
    *t = (struct outlier_filter){.most2 = t->warned ? t->most2 : 0, .warned = t->warned};
}

/* Returns the least squared distance D^2 at which an edge can be suspect: the square of half of
 * this peer's distance |x - x0| from the initial model. */
static double least2(double way2)
{
    return way2 / 4;
}

double outlier_filter_limit2(const struct outlier_filter *t, const struct outlier_filter_view *v)
{
    double limit2 = larger(square(OUTLIER_FILTER_TIMES) * larger(t->most2, v->x2),
                           square(OUTLIER_FILTER_WAYS) * v->way2);
    double near2 = larger(square(OUTLIER_FILTER_APART) * v->others2, least2(v->way2));
    return t->warned && v->others2 > 0 && near2 < limit2 ? near2 : limit2;
}

bool outlier_filter_apart(double d2, double other2, double way2)
{
    return d2 > square(OUTLIER_FILTER_APART) * other2 && d2 > least2(way2);
}

bool outlier_filter_saw(struct outlier_filter *t, double d2, double pull, bool apart,
                        bool triggered)
{
    double grown2 = square(triggered ? OUTLIER_FILTER_GROWN_TRIGGER : OUTLIER_FILTER_GROWN);
    t->most2 = larger(t->most2, d2);
    t->last2 = d2;
    t->from2 = apart && t->from2 > 0 ? t->from2 : apart ? d2 : 0;
    t->pull = apart ? t->pull + pull : 0;
    return t->pull > OUTLIER_FILTER_PULL || (apart && d2 > grown2 * t->from2);
}

void outlier_filter_warn(struct outlier_filter *t)
{
    t->warned = true;
    t->pull = t->from2 = 0;
}
