/* peer/cmd/closing.c -- averages the relative drift that several peers estimate for the newest
 * round. */
#include "peer/cmd/closing.h"

#include "peer/uv/metrics.h"

#include <math.h>

void cmd_closing_add(struct cmd_closing_estimate *e, double relative, uint64_t round)
{
    if (!isfinite(relative) || (e->n > 0 && round < e->round))
        return;
    if (round > e->round)
        *e = (struct cmd_closing_estimate){.round = round};
    e->sum += relative;
    e->n++;
}

double cmd_closing_mean(const struct cmd_closing_estimate *e)
{
    return e->n > 0 ? e->sum / e->n : (double)NAN;
}

void cmd_closing_put(const struct cmd_closing_estimate *e, json_t *object)
{
    json_object_set_new(object, "estimated_relative_drift", uv_metrics_number(cmd_closing_mean(e)));
    json_object_set_new(object, "estimated_round",
                        e->n > 0 ? uv_metrics_whole(e->round) : json_null());
}
