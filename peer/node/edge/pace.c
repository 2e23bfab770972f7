/* peer/node/edge/pace.c -- averages speeds, and computes local steps and weights from them. */
#include "peer/node/edge/pace.h"

#include <assert.h>
#include <math.h>

/* Weight of the newest job in `own`, the moving average of this peer's speed. */
static const double newest = 0.2;
/* Each received mean speed of a neighbour moves this peer's `mean` by this share of the difference
 * between the received value and `mean`. */
static const double listens = 0.2;
/* Each received mean speed also moves `mean` towards this peer's own speed, by this share of the
 * difference. */
static const double insists = 0.01;
/* A received mean speed is limited to between this peer's speed / nearest and this peer's speed *
 * nearest. */
static const double nearest = 16;
static const double longest = 2; /* Largest factor by which pace_weight() scales an update. */

void pace_worked(struct pace *p, uint32_t steps, int64_t took_us)
{
    assert(steps > 0);
    double speed = 1e6 * (double)steps / (double)(took_us > 0 ? took_us : 1);
    p->own = p->own > 0 ? p->own + newest * (speed - p->own) : speed;
    if (!(p->mean > 0))
        p->mean = p->own;
    assert(p->own > 0 && p->mean > 0);
}

void pace_heard(struct pace *p, double mean)
{
    if (!(p->own > 0) || !(mean > 0))
        return;
    mean = fmin(fmax(mean, p->own / nearest), p->own * nearest);
    p->mean += listens * (mean - p->mean) + insists * (p->own - p->mean);
    assert(p->mean > 0);
}

uint32_t pace_steps(const struct pace *p, uint32_t average, uint32_t most)
{
    double steps = p->mean > 0 ? round(average * p->own / p->mean) : average;
    return (uint32_t)fmin(fmax(steps, 1), most);
}

double pace_weight(uint32_t steps, uint32_t average)
{
    assert(steps > 0);
    return fmin((double)average / steps, longest);
}
