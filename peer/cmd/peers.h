/* peer/cmd/peers.h -- run flags of commands that start all the peers themselves, and limits of
 * any that starts one.
 *
 * `hearsay local` and `hearsay sim` know the number of peers: --min-peers is
 * that number where it is not given, and what needs another one is refused
 * before anything begins.
 */
#ifndef PEER_CMD_PEERS_H
#define PEER_CMD_PEERS_H

#include "peer/cmd/cmd.h"
#include "peer/node/node.h"

/* Takes the place of the run key, whose default is that of `hearsay peer`. */
#define CMD_ROW_MIN_PEERS                                                                          \
    {                                                                                              \
        .name = "min-peers", .kind = OPTION_UINT, .arg = "N", .min = 1, .max = WIRE_MEMBERS_MAX,   \
        .help = "members to wait for before the first round; "                                     \
                "default: all of --peers"                                                          \
    }

/* The run flags that were given, and min-peers. CMD_OK; or CMD_USAGE with a line
 * on stderr where n peers cannot begin (--min-peers is more) or would have to
 * adapt a topology that is made for another number; then *flags is untouched.
 * Edges that are added to connect the peers are said. */
int cmd_peers_flags(const struct options *o, uint32_t n, struct run_flags *flags);

struct graph;

/* Say on stderr where the edges of `spec` alone do not connect as many peers as
 * they name, so that *g has more of them. */
void cmd_peers_joined(const struct options *o, const char *spec, const struct graph *g);

/* As many file descriptors as this process may have. */
void cmd_peers_raise_limits(void);

/* Warn where so many processes are more than this machine's processors can serve in time. */
void cmd_peers_crowd(const struct options *o, uint32_t n);

#endif
