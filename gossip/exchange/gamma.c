/* gossip/exchange/gamma.c -- the rule for gamma, and its bounds. */
#include "gossip/exchange/gamma.h"

#include <math.h>

static const double kTarget = 0.6;           /* Of rho. */
static const double kDown = 0.9, kUp = 1.05; /* Most change an exchange. */
static const double kFirst = 1.5;
static const double kLow = 0.5, kHigh = 1.5; /* Bounds of gamma / delta. */
static const double kSmooth = 0.1;           /* Weight of the newest delta. */
static const double kGrowth = 2.25;   /* A D^2 that has grown is so many times the last look's. */
static const double kPart = 1;        /* D^2 over |a|^2 + |b|^2 from which an edge runs away. */
static const double kRecovery = 1.01; /* An exchange. */

void gamma_init(struct gamma *g, double fixed_value)
{
    *g = (struct gamma){.value = fixed_value, .fixed = fixed_value > 0, .most = 1};
}

/* The share of |x - a|^2 that a delta carried: its measured contraction. */
static double contraction(double x2, double e2)
{
    if (!(x2 > 0) || !(e2 < x2))
        return x2 > 0 ? 0.0 : 1.0; /* Nothing to say is said perfectly. */
    return 1.0 - e2 / x2;
}

/* The lesser contraction counts: that end's replica lags more. */
static double least_contraction(const struct gamma_exchange *x)
{
    double own = contraction(x->x2_own, x->e2_own);
    double other = contraction(x->x2_other, x->e2_other);
    return own < other ? own : other;
}

/* r^(1/10) for r in [kDown^10, kUp^10], by Newton's method: pow() may differ
 * in the last bit from one libm to the next. */
static double tenth_root(double r)
{
    double y = 1.0;
    for (int i = 0; i < 12; i++) {
        double y3 = y * y * y, y9 = y3 * y3 * y3;
        y -= (y9 * y - r) / (10.0 * y9);
    }
    return y;
}

/* clip((0.6 / rho)^0.1, 0.9, 1.05) */
static double correction(double e2, double d2)
{
    double rho = sqrt(e2 / 2.0 / d2);
    double r = kTarget / rho;
    if (!(r > 0.3486784401)) /* 0.9^10 */
        return kDown;
    if (!(r < 1.628894626777442)) /* 1.05^10 */
        return kUp;
    return tenth_root(r);
}

/* The upper bounds win. */
static double confine(const struct gamma *g, double v)
{
    double low = kLow * g->delta, high = kHigh * g->delta;
    v = v > low ? v : low;
    v = v < high ? v : high;
    return v < g->most ? v : g->most;
}

double gamma_next(struct gamma *g, const struct gamma_exchange *x)
{
    if (g->fixed)
        return g->value;
    double delta = least_contraction(x);
    if (!g->begun || g->codecs != x->codecs) {
        g->delta = delta;
        g->most = 1;
        g->value = confine(g, kFirst * delta);
        /* Zero would stay zero: a threshold may let nothing pass at first. */
        g->begun = g->value > 0 && (x->x2_own > 0 || x->x2_other > 0);
        g->codecs = x->codecs;
    } else {
        double change = g->d2 > 0 ? correction(g->e2, g->d2) : 1;
        g->delta += kSmooth * (delta - g->delta);
        g->value = confine(g, g->value * change);
    }
    g->e2 = x->e2_own + x->e2_other;
    g->d2 = 0;
    g->most = g->most * kRecovery < 1 ? g->most * kRecovery : 1;
    return g->value;
}

bool gamma_measured(struct gamma *g, double d2)
{
    g->d2 = d2;
    if (++g->age < GAMMA_WINDOW)
        return false;
    bool grown = g->mark > 0 && d2 > kGrowth * g->mark;
    g->grown = grown ? g->grown + 1 : 0;
    g->mark = d2;
    g->age = 0;
    return g->grown >= GAMMA_WINDOWS;
}

bool gamma_judge(struct gamma *g, double n2)
{
    if (!(g->mark > kPart * n2))
        return false;
    g->grown = 0;
    g->n_runaways++;
    if (!g->fixed)
        g->most = g->value / 2;
    return !g->fixed;
}
