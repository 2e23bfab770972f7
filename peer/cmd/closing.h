/* peer/cmd/closing.h -- what several peers estimate at the end of a run, as one figure. */
#ifndef PEER_CMD_CLOSING_H
#define PEER_CMD_CLOSING_H

#include <jansson.h>
#include <stdint.h>

/* The mean of several peers' estimates of the relative drift. Each names its round, and figures of
 * different rounds have no mean: those of the newest round count. Begin with zeros. */
struct cmd_closing_estimate
{
    double sum;
    uint64_t round;
    uint32_t n;
};

/* One more, unless it is not finite. */
void cmd_closing_add(struct cmd_closing_estimate *e, double relative, uint64_t round);
/* NaN where there is none. */
double cmd_closing_mean(const struct cmd_closing_estimate *e);
/* Set "estimated_relative_drift" and "estimated_round", null where there is none. */
void cmd_closing_put(const struct cmd_closing_estimate *e, json_t *object);

#endif
