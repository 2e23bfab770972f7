/* peer/cmd/drift_mean.h -- combines the peers' own estimates of the consensus distance into one
 * figure, at the end of a run. */
#ifndef PEER_CMD_DRIFT_MEAN_H
#define PEER_CMD_DRIFT_MEAN_H

#include <jansson.h>
#include <stdint.h>

/* Mean of the estimates of the relative consensus distance by several peers. Each estimate is for a
 * certain round. Only estimates for the newest round count, because estimates for different rounds
 * must not be averaged. Initialise with zeros. */
struct cmd_drift_mean
{
    double sum;
    uint64_t round;
    uint32_t n;
};

/* Adds a peer's estimate `relative` for round `round`. Ignores an estimate that is not finite or is
 * for an older round than earlier estimates. */
void cmd_drift_mean_add(struct cmd_drift_mean *e, double relative, uint64_t round);
/* Returns the mean of the peers' estimates of the relative consensus distance for the newest round.
 * Returns NaN if there is no estimate. */
double cmd_drift_mean_value(const struct cmd_drift_mean *e);
/* Sets "estimated_relative_drift" and "estimated_round" in the JSON object. Both are null if there
 * is no estimate. */
void cmd_drift_mean_json(const struct cmd_drift_mean *e, json_t *object);

#endif
