/* peer/report/spread.h -- a figure of several runs that differ by their seeds: mean, spread, and
 * whether two of them can be told apart. Pure.
 */
#ifndef PEER_REPORT_SPREAD_H
#define PEER_REPORT_SPREAD_H

#include <stdint.h>

struct report_spread
{
    uint32_t n;
    double mean, least, most;
    double deviation; /* That of a sample, with n - 1: NaN of fewer than two. */
};

/* The spread of x[0..n). Where n is 0, or one of them is not finite, all of it is NaN. */
struct report_spread report_spread_of(const double *x, uint32_t n);

enum report_differ {
    REPORT_DIFFER_UNKNOWN, /* Fewer than two of one of them, or not known. */
    REPORT_DIFFER_TIE,
    REPORT_DIFFER_YES
};

/* Welch's t test, two-sided, at 5 %, with the degrees of freedom of Satterthwaite rounded down
 * (B. L. Welch, "The generalization of 'Student's' problem", Biometrika 34, 1947). */
enum report_differ report_spread_differ(const struct report_spread *a,
                                        const struct report_spread *b);

#endif
