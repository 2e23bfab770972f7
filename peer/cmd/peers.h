/* peer/cmd/peers.h -- checks the run flags of commands that start all peers themselves, and
 * raises process limits.
 *
 * `hearsay local` and `hearsay sim` know the number of peers. --min-peers defaults to that
 * number, and flags that require another number are refused before the run begins.
 */
#ifndef PEER_CMD_PEERS_H
#define PEER_CMD_PEERS_H

#include "peer/cmd/cmd.h"
#include "peer/node/node.h"

/* Option row that replaces the run key min-peers, because the default of `hearsay peer` does not
 * apply to these commands. */
#define CMD_ROW_MIN_PEERS                                                                          \
    {                                                                                              \
        .name = "min-peers", .kind = OPTION_UINT, .arg = "N", .min = 1, .max = WIRE_MEMBERS_MAX,   \
        .help = "members to wait for before the first round; "                                     \
                "default: all of --peers"                                                          \
    }

/* Sets `*flags` to the given run flags and min-peers. Prints a warning if edges must be added to
 * connect the peers. Returns CMD_OK. Returns CMD_USAGE after a message on stderr, with `*flags`
 * unchanged, if n peers cannot start (--min-peers is larger) or the topology is made for another
 * number of peers. */
int cmd_peers_flags(const struct options *o, uint32_t n, struct run_flags *flags);

struct graph;

/* Warns on stderr if the edges in `spec` do not connect all peers that they name, so that edges
 * were added to `*g`. */
void cmd_peers_report_added_edges(const struct options *o, const char *spec, const struct graph *g);

/* Raises the soft limit on file descriptors of this process to its hard limit. */
void cmd_peers_raise_limits(void);

/* Warns if n processes are more than the processors of this machine can serve without timeouts. */
void cmd_peers_check_load(const struct options *o, uint32_t n);

#endif
