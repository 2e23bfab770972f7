/* peer/cmd/peers.h -- checks the run flags of commands that start all peers themselves, and raises
 * the limits of the process.
 *
 * `hearsay local` and `hearsay sim` know the number of peers. --min-peers defaults to that number,
 * and flags that require another number are refused before the run begins.
 */
#ifndef PEER_CMD_PEERS_H
#define PEER_CMD_PEERS_H

#include "peer/cmd/cmd.h"
#include "peer/node/node.h"

/* Row of the table of options for --min-peers, for commands that start all peers themselves. It
 * replaces the run key min-peers, because the default of these commands is the number of peers. */
#define CMD_ROW_MIN_PEERS                                                                          \
    {                                                                                              \
        .name = "min-peers", .kind = OPTION_UINT, .arg = "N", .min = 1, .max = WIRE_MEMBERS_MAX,   \
        .help = "members to wait for before the first round; "                                     \
                "default: all of --peers"                                                          \
    }

/* Sets `*flags` to the given run flags and min-peers. Prints a warning if the topology needs more
 * edges to connect all peers. Returns CMD_OK, or CMD_USAGE after a message on stderr. CMD_USAGE
 * means that --min-peers is larger than n, or that the topology is made for another number of
 * peers; `*flags` is then unchanged. */
int cmd_peers_flags(const struct options *o, uint32_t n, struct run_flags *flags);

struct graph;

/* Prints a warning on stderr if the edges that `spec` lists do not connect all peers, so that edges
 * had to be added to `*g`. */
void cmd_peers_report_added_edges(const struct options *o, const char *spec, const struct graph *g);

/* Raises the limit of this process on open file descriptors as far as the system allows. */
void cmd_peers_raise_limits(void);

/* Prints a warning if this machine has so few processors for n processes that sessions may time
 * out. */
void cmd_peers_check_load(const struct options *o, uint32_t n);

#endif
