/* peer/cmd/column_statistics.h -- sends the column statistics (means, scales, categories) of a
 * peer's own table to other members.
 *
 * nn/data/column_statistics.h encodes the statistics, and the node aggregates them
 * (peer/node/join/statistics_aggregation.h). With --shard own and --min-peers 2 or more, each peer
 * has its own file. The run that a peer begins then contains the combined statistics of all
 * members' files, not the statistics of its own file. With any other --shard all peers have the
 * same files. A peer then sends its statistics only because other peers may wait for them.
 */
#ifndef PEER_CMD_COLUMN_STATISTICS_H
#define PEER_CMD_COLUMN_STATISTICS_H

#include "peer/cmd/training.h"
#include "peer/node/node.h"

struct cmd_column_statistics
{
    const char *data_spec; /* Value of --data, for error messages. Borrowed. */
    struct column_statistics ours;
    uint8_t bytes[WIRE_MOMENTS_MAX];
    /* Configuration of the node. Its run is copied, and the copy gets the combined statistics. */
    const struct node_config *node;
    struct node_pool pool;
};

/* Returns true if the run that this peer begins must contain the combined column statistics of all
 * members' files. */
bool cmd_column_statistics_pooled(const struct cmd_training *t, const struct run *run);

/* Takes the column statistics of the data, if there are any, and makes the node send them to
 * members. `founds`: this peer begins the run, and so combines the statistics of all members. The
 * caller must call cmd_column_statistics_close() after the node is closed. */
void cmd_column_statistics_open(struct cmd_column_statistics *c, struct cmd_training *t,
                                struct node_config *node, bool founds);
void cmd_column_statistics_close(struct cmd_column_statistics *c);

#endif
