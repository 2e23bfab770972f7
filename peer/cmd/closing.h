/* peer/cmd/closing.h -- combines the drift estimates of several peers at the end of a run into
 * one figure. */
#ifndef PEER_CMD_CLOSING_H
#define PEER_CMD_CLOSING_H

#include <jansson.h>
#include <stdint.h>

/* Mean of several peers' estimates of the relative drift. Each estimate belongs to a round, and
 * estimates of different rounds must not be averaged, so only estimates of the newest round
 * count. Initialise with zeros. */
struct cmd_closing_estimate
{
    double sum;
    uint64_t round;
    uint32_t n;
};

/* Adds the estimate `relative` of `round`. An estimate that is not finite or is of an older
 * round is ignored. */
void cmd_closing_add(struct cmd_closing_estimate *e, double relative, uint64_t round);
/* Returns the mean of the estimates of the newest round; NaN if there is no estimate. */
double cmd_closing_mean(const struct cmd_closing_estimate *e);
/* Sets "estimated_relative_drift" and "estimated_round" in the JSON object; null if there is no
 * estimate. */
void cmd_closing_put(const struct cmd_closing_estimate *e, json_t *object);

#endif
