/* peer/report/spread.c -- means, sample deviations, and Welch's test. */
#include "peer/report/spread.h"

#include <math.h>

/* In two passes, so that a small spread around a large mean is not lost. */
struct report_spread report_spread_of(const double *x, uint32_t n)
{
    struct report_spread s = {.n = n, .least = INFINITY, .most = -INFINITY};
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += x[i];
        s.least = fmin(s.least, x[i]);
        s.most = fmax(s.most, x[i]);
    }
    s.mean = sum / n; /* 0 / 0: NaN. */
    for (uint32_t i = 0; i < n; i++)
        squares += (x[i] - s.mean) * (x[i] - s.mean);
    s.deviation = n > 1 ? sqrt(squares / (n - 1)) : (double)NAN;
    if (!isfinite(s.mean))
        s = (struct report_spread){n, NAN, NAN, NAN, NAN};
    return s;
}

/* What |t| stays under in 95 of 100 cases, for 1 to 30 degrees of freedom; of more, that of 30, which
 * is the more cautious by 4 % at most. */
static double quantile(double freedom)
{
    static const double table[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                   2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                                   2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                                   2.060,  2.056, 2.052, 2.048, 2.045, 2.042};
    enum { N = sizeof table / sizeof *table };
    return freedom < 1 ? table[0] : freedom >= N ? table[N - 1] : table[(int)freedom - 1];
}

enum report_differ report_spread_differ(const struct report_spread *a,
                                        const struct report_spread *b)
{
    if (!isfinite(a->deviation) || !isfinite(b->deviation))
        return REPORT_DIFFER_UNKNOWN;
    double u = a->deviation * a->deviation / a->n, v = b->deviation * b->deviation / b->n;
    double apart = fabs(a->mean - b->mean);
    if (!(u + v > 0))
        return apart > 0 ? REPORT_DIFFER_YES : REPORT_DIFFER_TIE;
    double freedom = (u + v) * (u + v) / (u * u / (a->n - 1) + v * v / (b->n - 1));
    return apart > quantile(freedom) * sqrt(u + v) ? REPORT_DIFFER_YES : REPORT_DIFFER_TIE;
}
