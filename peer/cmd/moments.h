/* peer/cmd/moments.h -- a peer's own table, as it is told to members that have no run yet.
 *
 * The bytes of nn/data/moments.h are what the node's machine of pooling (peer/node/pooling.h) carries. With
 * --shard own and --min-peers 2 or more the run that this peer would fix has the columns of all members'
 * files in place of its own; with any other --shard its files are everybody's, and it says what they come to
 * for the sake of peers that wait for it.
 */
#ifndef PEER_CMD_MOMENTS_H
#define PEER_CMD_MOMENTS_H

#include "peer/cmd/training.h"
#include "peer/node/node.h"

struct cmd_moments
{
    const char *data_spec; /* Borrowed, for sentences. */
    struct moments ours;
    uint8_t bytes[WIRE_MOMENTS_MAX];
    const struct node_config *node; /* Its run is the one that the pooled columns go into. */
    struct node_pool pool;
};

/* Are the columns of this run, which is ours to fix, to be those of all members' files? */
bool cmd_moments_wanted(const struct cmd_training *t, const struct run *run);

/* Takes the moments of the data, if they have any, and has the node tell them. `founds`: it pools.
 * Close it in any case, behind the node. */
void cmd_moments_open(struct cmd_moments *c, struct cmd_training *t, struct node_config *node,
                      bool founds);
void cmd_moments_close(struct cmd_moments *c);

#endif
