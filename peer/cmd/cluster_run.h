/* peer/cmd/cluster_run.h -- asks a cluster, as an observer, which run it trains, before the peer
 * joins.
 *
 * A peer that cannot take part in the run (another model, other data, a shard that does not
 * exist) can therefore exit before it becomes a member. No answer is required: a peer that finds
 * no other peer, or that is refused as an observer (--members), learns about the run after it
 * has joined.
 */
#ifndef PEER_CMD_CLUSTER_RUN_H
#define PEER_CMD_CLUSTER_RUN_H

#include "peer/run/run.h"

#include <stdint.h>

/* Calls the `n` addresses of `bootstrap` and asks for a run that has started. Waits at most 2 s,
 * and returns earlier if no address can answer any more. Returns true and stores the first run
 * received in `*run`. `psk`: the cluster key. */
bool cmd_cluster_run(const char *const *bootstrap, uint32_t n, const uint8_t *psk,
                     const struct run_trainer *trainer, struct run *run);

#endif
