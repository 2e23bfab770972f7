/* peer/cmd/cluster_run.h -- asks a cluster which run it trains, before the peer joins it. The peer
 * is only an observer at this time.
 *
 * A peer that cannot take part in the run, because of another model, other data or a shard that
 * does not exist, can then exit before it becomes a member. It is no error if no peer answers: the
 * peer then gets the run after it has joined. A peer with a join token never gets an answer here,
 * because an observer must be on the allow-list (--members).
 */
#ifndef PEER_CMD_CLUSTER_RUN_H
#define PEER_CMD_CLUSTER_RUN_H

#include "peer/run/run.h"
#include "peer/secure/channel.h"

#include <stdint.h>

/* Calls the `n` addresses of `bootstrap`, and asks for a run that has started. Waits at most 2 s,
 * or until no address can still answer. If a peer has sent such a run, returns true and stores the
 * first one in `*run`. `psk`: the cluster key. `identity`: the identity of this peer, because peers
 * with an allow-list answer only identities on it. */
bool cmd_cluster_run(const char *const *bootstrap, uint32_t n, const uint8_t *psk,
                     const struct channel_identity *identity, const struct run_trainer *trainer,
                     struct run *run);

#endif
