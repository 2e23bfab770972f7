/* peer/cmd/drift_mean.c -- averages the peers' own estimates of the relative consensus distance in
 * the newest round. */
#include "peer/cmd/drift_mean.h"

#include "peer/uv/metrics.h"

#include <math.h>

void cmd_drift_mean_add(struct cmd_drift_mean *e, double relative, uint64_t round)
{
    if (!isfinite(relative) || (e->n > 0 && round < e->round))
        return;
    if (round > e->round)
        *e = (struct cmd_drift_mean){.round = round};
    e->sum += relative;
    e->n++;
}

double cmd_drift_mean_value(const struct cmd_drift_mean *e)
{
    return e->n > 0 ? e->sum / e->n : (double)NAN;
}

void cmd_drift_mean_json(const struct cmd_drift_mean *e, json_t *object)
{
    json_object_set_new(object, "estimated_relative_drift",
                        uv_metrics_number(cmd_drift_mean_value(e)));
    json_object_set_new(object, "estimated_round",
                        e->n > 0 ? uv_metrics_whole(e->round) : json_null());
}
