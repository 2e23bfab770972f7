/* peer/cmd/rate.h -- options whose values are rates of a link: 800kbit, 100Mbit, 1Gbit. */
#ifndef PEER_CMD_RATE_H
#define PEER_CMD_RATE_H

#include "peer/node/node.h"
#include "peer/run/options.h"

#define CMD_RATE_EXPECTED "a rate above 0 in bit, kbit, Mbit, Gbit or Tbit: 100Mbit"

/* Reads "100Mbit" as bits a second: a number and its unit, and nothing else. */
bool cmd_rate(const char *text, double *bits_per_s);

/* `hearsay peer` alone has this one: what it chooses depends on timing. */
#define CMD_ROW_UPLINK                                                                             \
    {                                                                                              \
        .name = "uplink", .kind = OPTION_TEXT, .arg = "auto|RATE|off",                             \
        .help = "with --compress auto: never sparser than what the link takes beside computing, "  \
                "and no denser than the drift is worth the time that takes; "                      \
                "auto measures the link, 100Mbit names its rate, off goes by the drift alone; "    \
                "default: auto"                                                                    \
    }

/* Its value, into the node's configuration. CMD_OK, or CMD_USAGE with a line. */
int cmd_uplink(const struct options *o, struct node_config *c);

/* Does the run have a use for it? Else -EINVAL with a sentence. */
int cmd_uplink_fits(const struct options *o, const struct run *run, char error[RUN_ERROR_MAX]);

#endif
