#include "gossip/gamma.h"

#include <math.h>

static const double kTarget = 0.6; /* Of rho. */
static const double kDown = 0.9, kUp = 1.05; /* Most change an exchange. */
static const double kFirst = 1.5;

void gamma_init(struct gamma *g, double fixed_value)
{
    *g = (struct gamma){.value = fixed_value, .fixed = fixed_value > 0};
}

/* The share of |x - a|^2 that a delta carried: its measured contraction. */
static double contraction(double x2, double e2)
{
    if (!(x2 > 0) || !(e2 < x2))
        return x2 > 0 ? 0.0 : 1.0; /* Nothing to say is said perfectly. */
    return 1.0 - e2 / x2;
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

#include <stdlib.h>
static double lo(void) { return getenv("GLO") ? atof(getenv("GLO")) : 0.5; }
static double hi(void) { return getenv("GHI") ? atof(getenv("GHI")) : 1.5; }

double gamma_next(struct gamma *g, const struct gamma_exchange *x)
{
    if (g->fixed)
        return g->value;
    double own = contraction(x->x2_own, x->e2_own);
    double other = contraction(x->x2_other, x->e2_other);
    double delta = own < other ? own : other;
    if (!g->begun || g->codecs != x->codecs) {
        double d = kFirst * delta;
        g->delta = delta;
        g->value = d < 1.0 ? d : 1.0;
        /* Zero would stay zero: a threshold may let nothing pass at first. */
        g->begun = g->value > 0 && (x->x2_own > 0 || x->x2_other > 0);
        g->codecs = x->codecs;
    } else if (g->d2 > 0) {
        double v = g->value * correction(g->e2, g->d2);
        g->delta += 0.1 * (delta - g->delta);
        double least = lo() * g->delta, most = hi() * g->delta;
        v = v < least ? least : v > most ? most : v;
        g->value = v < 1.0 ? v : 1.0;
    }
    g->e2 = x->e2_own + x->e2_other;
    g->d2 = 0;
    return g->value;
}

void gamma_measured(struct gamma *g, double d2)
{
    g->d2 = d2;
}
