/* nn/math/dirichlet.c -- logarithm, exponential and random draws with the same bits on every
 * machine. The last bits of libm differ between machines, and the owner of a sample must not
 * depend on them. */
#include "nn/math/dirichlet.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

#define LN2 0.69314718055994530942

double dirichlet_log(double x)
{
    assert(x > 0 && isfinite(x));
    int e;
    double m = frexp(x, &e); /* m is in [1/2, 1), and x = m * 2^e without a rounding error. */
    if (m < 0.70710678118654752440) {
        m *= 2;
        e--;
    }
    /* log m = 2 atanh(s) is a series in s. |s| < 0.172, so the terms that are left out, from s^22
     * on, are under 2e-17. */
    double s = (m - 1) / (m + 1), s2 = s * s, sum = 0;
    for (int k = 21; k >= 1; k -= 2)
        sum = sum * s2 + 1.0 / k;
    return 2 * s * sum + e * LN2;
}

double dirichlet_exp(double x)
{
    assert(x >= -700 && x <= 700);
    int k = (int)(x / LN2 + (x < 0 ? -0.5 : 0.5));
    double r = x - k * LN2, sum = 1; /* x = k ln 2 + r, with |r| at most ln 2 / 2. */
    for (int i = 14; i >= 1; i--)
        sum = 1 + sum * r / i;
    return ldexp(sum, k); /* ldexp() multiplies by 2^k without a rounding error. */
}

/* Returns a uniform number in (0, 1), so that its logarithm is finite (0 is excluded). */
static double open_unit(struct rng *r)
{
    return ((double)(rng_u64(r) >> 12) + 0.5) * 0x1p-52;
}

double dirichlet_normal(struct rng *r)
{
    for (;;) {
        double u = 2 * open_unit(r) - 1, v = 2 * open_unit(r) - 1;
        double q = u * u + v * v;
        if (q > 0 && q < 1)
            return u * sqrt(-2 * dirichlet_log(q) / q);
    }
}

/* Returns the logarithm of a Gamma(alpha, 1) draw for alpha >= 1. */
static double log_gamma_draw(struct rng *r, double alpha)
{
    double d = alpha - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = dirichlet_normal(r), v = 1 + c * x;
        if (v <= 0)
            continue;
        double log_v = 3 * dirichlet_log(v);
        v = v * v * v;
        if (dirichlet_log(open_unit(r)) < x * x / 2 + d - d * v + d * log_v)
            return dirichlet_log(d) + log_v;
    }
}

double dirichlet_log_gamma(struct rng *r, double alpha)
{
    assert(alpha > 0);
    if (alpha >= 1)
        return log_gamma_draw(r, alpha);
    /* With a uniform U, Gamma(alpha + 1) U^(1 / alpha) is a Gamma(alpha) draw. */
    double log_g = log_gamma_draw(r, alpha + 1);
    return log_g + dirichlet_log(open_unit(r)) / alpha;
}
