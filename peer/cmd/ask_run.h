/* peer/cmd/ask_run.h -- which run does a cluster train? Asked as an observer, before a peer joins.
 *
 * So one that could not take part (another model, other data, a shard that there is not) ends
 * without having been a member. Nobody has to answer: who is alone, or not let in as a stranger
 * (--members), learns it as a peer.
 */
#ifndef PEER_CMD_ASK_RUN_H
#define PEER_CMD_ASK_RUN_H

#include "peer/run/run.h"

#include <stdint.h>

/* Ask the addresses of `bootstrap` for a run that has begun, for 2 s at most, and no longer than there is
 * an answer to come. True: *run is the first that was told. psk is the cluster's key. */
bool cmd_ask_run(const char *const *bootstrap, uint32_t n, const uint8_t *psk,
                 const struct run_trainer *trainer, struct run *run);

#endif
