/* gossip/exchange/trust.c -- the limit of an exchange, and one edge beside the others. */
#include "gossip/exchange/trust.h"

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double square(int times)
{
    return (double)times * times;
}

void trust_begin(struct trust *t)
{
    *t = (struct trust){.most2 = t->warned ? t->most2 : 0, .warned = t->warned};
}

/* The least D^2 that may be held against an edge. */
static double least2(double way2)
{
    return way2 / 4;
}

double trust_limit2(const struct trust *t, const struct trust_view *v)
{
    double limit2 =
        larger(square(TRUST_TIMES) * larger(t->most2, v->x2), square(TRUST_WAYS) * v->way2);
    double near2 = larger(square(TRUST_APART) * v->others2, least2(v->way2));
    return t->warned && v->others2 > 0 && near2 < limit2 ? near2 : limit2;
}

bool trust_apart(double d2, double other2, double way2)
{
    return d2 > square(TRUST_APART) * other2 && d2 > least2(way2);
}

bool trust_saw(struct trust *t, double d2, double pull, bool apart)
{
    t->most2 = larger(t->most2, d2);
    t->last2 = d2;
    t->from2 = apart && t->from2 > 0 ? t->from2 : apart ? d2 : 0;
    t->pull = apart ? t->pull + pull : 0;
    return t->pull > TRUST_PULL || (apart && d2 > square(TRUST_GROWN) * t->from2);
}

void trust_warn(struct trust *t)
{
    t->warned = true;
    t->pull = t->from2 = 0;
}
