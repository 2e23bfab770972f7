/* peer/cmd/drift_mean.h -- combines the drift estimates of several peers at the end of a run into
 * one figure. */
#ifndef PEER_CMD_DRIFT_MEAN_H
#define PEER_CMD_DRIFT_MEAN_H

#include <jansson.h>
#include <stdint.h>

/* Mean of several peers' estimates of the relative drift. Each estimate belongs to a round, and
 * estimates of different rounds must not be averaged, so only estimates of the newest round
 * count. Initialise with zeros. */
struct cmd_drift_mean
{
    double sum;
    uint64_t round;
    uint32_t n;
};

/* Adds the estimate `relative` of `round`. An estimate that is not finite or is of an older
 * round is ignored. */
void cmd_drift_mean_add(struct cmd_drift_mean *e, double relative, uint64_t round);
/* Returns the mean of the estimates of the newest round; NaN if there is no estimate. */
double cmd_drift_mean_value(const struct cmd_drift_mean *e);
/* Sets "estimated_relative_drift" and "estimated_round" in the JSON object; null if there is no
 * estimate. */
void cmd_drift_mean_json(const struct cmd_drift_mean *e, json_t *object);

#endif
