/* peer/cmd/column_statistics.h -- sends the column statistics of a peer's own table to members that have
 * no run yet.
 *
 * The statistics are encoded by nn/data/column_statistics.h and aggregated by the node
 * (peer/node/statistics_aggregation.h). With --shard own and --min-peers 2 or more, the run that this peer
 * begins contains the combined statistics of all members' files instead of its own file's
 * statistics. With any other --shard all peers have the same files, and this peer sends its
 * statistics only for peers that wait for them.
 */
#ifndef PEER_CMD_COLUMN_STATISTICS_H
#define PEER_CMD_COLUMN_STATISTICS_H

#include "peer/cmd/training.h"
#include "peer/node/node.h"

struct cmd_column_statistics
{
    const char *data_spec; /* Value of --data for error messages. Borrowed. */
    struct column_statistics ours;
    uint8_t bytes[WIRE_MOMENTS_MAX];
    /* Configuration of the node. The combined statistics go into its run. */
    const struct node_config *node;
    struct node_pool pool;
};

/* Returns true if the run, which this peer begins, must have the combined column statistics of
 * all members' files. */
bool cmd_column_statistics_pooled(const struct cmd_training *t, const struct run *run);

/* Takes the column statistics of the data, if there are any, and makes the node send them.
 * `founds`: this peer begins the run and combines the statistics of all members. Call
 * cmd_column_statistics_close() in any case, after the node is closed. */
void cmd_column_statistics_open(struct cmd_column_statistics *c, struct cmd_training *t,
                                struct node_config *node, bool founds);
void cmd_column_statistics_close(struct cmd_column_statistics *c);

#endif
