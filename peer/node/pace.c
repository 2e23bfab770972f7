/* peer/node/pace.c -- averages speeds, and computes local steps and weights from them. */
#include "peer/node/pace.h"

#include <math.h>

static const double newest = 0.2; /* Weight of the newest job in the moving average `own`. */
/* Share of the difference by which a received estimate moves `mean` towards itself. */
static const double listens = 0.2;
/* Share of the difference by which `mean` moves towards `own` when an estimate arrives. */
static const double insists = 0.01;
/* Largest accepted ratio of a received estimate to `own`, and of `own` to the estimate. */
static const double nearest = 16;
static const double longest = 2; /* Largest factor by which pace_weight() scales an update. */

void pace_worked(struct pace *p, uint32_t steps, int64_t took_us)
{
    double speed = 1e6 * (double)steps / (double)(took_us > 0 ? took_us : 1);
    p->own = p->own > 0 ? p->own + newest * (speed - p->own) : speed;
    if (!(p->mean > 0))
        p->mean = p->own;
}

void pace_heard(struct pace *p, double mean)
{
    if (!(p->own > 0) || !(mean > 0))
        return;
    mean = fmin(fmax(mean, p->own / nearest), p->own * nearest);
    p->mean += listens * (mean - p->mean) + insists * (p->own - p->mean);
}

uint32_t pace_steps(const struct pace *p, uint32_t average, uint32_t most)
{
    double steps = p->mean > 0 ? round(average * p->own / p->mean) : average;
    return (uint32_t)fmin(fmax(steps, 1), most);
}

double pace_weight(uint32_t steps, uint32_t average)
{
    return fmin((double)average / steps, longest);
}
