/* gossip/exchange/gamma.c -- the rule for the consensus step size gamma, and its bounds. */
#include "gossip/exchange/gamma.h"

#include <math.h>

/* Residual ratio rho (see gamma.h) at which the rule leaves gamma unchanged. */
static const double target_rho = 0.6;
/* Smallest and largest factor by which gamma, the consensus step size, changes from one exchange to
 * the next. */
static const double most_down = 0.9, most_up = 1.05;
/* First gamma of an edge, as a multiple of the contraction of its first deltas. */
static const double first_share = 1.5;
/* Lower and upper bound of gamma, as multiples of the moving average of the contraction. */
static const double low = 0.5, high = 1.5;
/* An exchange uses its whole momentum if the residual ratio rho (gamma.h) is at most bears_all, and
 * no momentum if rho is at least bears_none. */
static const double bears_all = 0.2, bears_none = 0.5;
/* Weight of the newest contraction in the moving average of contractions. */
static const double smoothing = 0.1;
/* The squared distance D^2 of the replicas counts as grown if it exceeds `growth` times its value
 * at the end of the last window. */
static const double growth = 2.25;
/* An edge is a runaway if the squared distance of its replicas a and b exceeds `runaway` times
 * |a|^2 + |b|^2. */
static const double runaway = 1;
/* Factor by which the upper bound of gamma rises in each exchange after the edge was a runaway (top
 * of gamma.h). */
static const double recovery = 1.01;

void gamma_init(struct gamma *g, double fixed_value)
{
    *g = (struct gamma){.value = fixed_value, .fixed = fixed_value > 0, .most = 1};
}

/* Returns the measured contraction of a delta: the transmitted share of |x - a|^2, the squared
 * distance of the model x from its replica a. */
static double contraction(double x2, double e2)
{
    if (!(x2 > 0) || !(e2 < x2))
        /* x2 is the squared distance of the model from its replica. If it is 0, the delta has
         * nothing to transmit, so the contraction is 1. */
        return x2 > 0 ? 0.0 : 1.0;
    return 1.0 - e2 / x2;
}

/* Returns the lesser of the two ends' contractions. The replica of the end with the lesser
 * contraction lags more behind its model, so it limits gamma. */
static double least_contraction(const struct gamma_exchange *x)
{
    double own = contraction(x->x2_own, x->e2_own);
    double other = contraction(x->x2_other, x->e2_other);
    return own < other ? own : other;
}

static double ninth_power(double y)
{
    double y3 = y * y * y;
    return y3 * y3 * y3;
}

/* Returns r^(1/10) for r in [most_down^10, most_up^10], by Newton's method. pow() is not used,
 * because its last bit may differ between math libraries. */
static double tenth_root(double r)
{
    double y = 1.0;
    for (int i = 0; i < 12; i++) {
        double y9 = ninth_power(y);
        y -= (y9 * y - r) / (10.0 * y9);
    }
    return y;
}

/* Returns the factor by which gamma changes: (target_rho / rho)^0.1, limited to most_down and
 * most_up. If an argument is NaN, the result is most_down. */
static double correction(double e2, double d2)
{
    double rho = sqrt(e2 / 2.0 / d2);
    double r = target_rho / rho;
    if (!(r > ninth_power(most_down) * most_down))
        return most_down;
    if (!(r < ninth_power(most_up) * most_up))
        return most_up;
    return tenth_root(r);
}

/* Limits the step size v to the bounds of gamma, and to the bound `most` of this exchange. If the
 * lower bound is above an upper bound, the upper bound wins. */
static double confine(const struct gamma *g, double v, double most)
{
    double least = low * g->delta, greatest = high * g->delta;
    v = v > least ? v : least;
    v = v < greatest ? v : greatest;
    v = v < most ? v : most;
    return v < g->most ? v : g->most;
}

double gamma_semidefinite(uint32_t d_i, uint32_t d_j)
{
    return (1.0 + (d_i > d_j ? d_i : d_j)) / ((double)d_i + d_j);
}

double gamma_next(struct gamma *g, const struct gamma_exchange *x)
{
    if (g->fixed)
        return g->value;
    double delta = least_contraction(x);
    /* Each pair of codecs needs its own step size, so gamma restarts when a codec changes. */
    if (!g->begun || g->codecs != x->codecs) {
        g->delta = delta;
        g->most = 1;
        g->value = confine(g, first_share * delta, x->most);
        /* A threshold codec may send nothing at first, and gamma is 0 after such an exchange.
         * Because the rule multiplies gamma, gamma would then stay 0. The next exchange therefore
         * uses the rule for a first exchange. */
        g->begun = g->value > 0 && (x->x2_own > 0 || x->x2_other > 0);
        g->codecs = x->codecs;
    } else {
        double change = g->d2 > 0 ? correction(g->e2, g->d2) : 1;
        g->delta += smoothing * (delta - g->delta);
        g->value = confine(g, g->value * change, x->most);
    }
    /* Stores the values of this exchange that the rule needs in the next exchange. gamma_measured()
     * sets d2 after mixing. */
    g->e2 = x->e2_own + x->e2_other;
    g->d2 = 0;
    g->most = g->most * recovery < 1 ? g->most * recovery : 1;
    return g->value;
}

double gamma_bears(const struct gamma *g, const struct gamma_exchange *x)
{
    double rho = sqrt((x->e2_own + x->e2_other) / 2.0 / g->d2);
    double share = (bears_none - rho) / (bears_none - bears_all);
    if (!(g->d2 > 0) || !(share > 0))
        return 0;
    return share < 1 ? share : 1;
}

bool gamma_measured(struct gamma *g, double d2)
{
    /* The distance D of the replicas varies from one exchange to the next, so its growth is judged
     * only once per GAMMA_WINDOW exchanges. */
    g->d2 = d2;
    if (++g->age < GAMMA_WINDOW)
        return false;
    bool grown = g->mark > 0 && d2 > growth * g->mark;
    g->grown = grown ? g->grown + 1 : 0;
    g->mark = d2;
    g->age = 0;
    return g->grown >= GAMMA_WINDOWS;
}

bool gamma_judge(struct gamma *g, double n2)
{
    if (!(g->mark > runaway * n2))
        return false;
    g->grown = 0;
    g->n_runaways++;
    if (!g->fixed)
        g->most = g->value / 2;
    return !g->fixed;
}
