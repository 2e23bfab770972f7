/* peer/cmd/closing.h -- how a run ended, for programs: the "verdict" of a closing JSON object.
 *
 *   "verdict": {"kind": "consensus", "text": "consensus of 6 of 8 peers ...", "exit_code": 0,
 *               "n_among": 6, "n_members": 8, "dead": ["peer-3", "peer-5"],
 *               "relative_drift": 4.1e-07, "exact": true, "at_most": false,
 *               "rounds_skipped": 12, "finite": true}
 *
 * The kinds are those of peer/node/outcome.h.
 */
#ifndef PEER_CMD_CLOSING_H
#define PEER_CMD_CLOSING_H

#include "peer/node/outcome.h"

#include <jansson.h>

json_t *cmd_closing_json(const struct outcome *o, const struct outcome_facts *f);

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
