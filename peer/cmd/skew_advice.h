/* peer/cmd/skew_advice.h -- advises settings for peers whose shards (parts of the data) differ, and
 * reports what --momentum-kind auto chose. */
#ifndef PEER_CMD_SKEW_ADVICE_H
#define PEER_CMD_SKEW_ADVICE_H

#include "peer/cmd/cmd.h"
#include "peer/run/run.h"

/* Prints a note on stderr that advises settings for shards that differ, and says which accuracy they
 * reached in a test. `flags`: the run flags that the user gave. `run`: the run that begins with
 * these flags. `shard`: the value of --shard. `n`: number of peers, 0 if it is not known.
 * Gives no advice in these cases:
 *
 *   - The shards are a random split: --partition iid, and --shard other than own.
 *   - The user gave --topology, or a --momentum-kind other than auto.
 *   - --momentum-kind auto chose `local`, because `qg` does not suit the other keys.
 *   - There are at most 4 peers: the graphs of so few peers hardly differ.
 *   - The run would be refused with these settings, for example with --mixer allreduce.
 *
 * The note names a second, more accurate set of settings if there are at most 32 peers and the run
 * would accept these settings, too.
 *
 * With --momentum-kind auto, another note names the kind of momentum that the run uses, and the key
 * that prevents `qg` if the shards differ. The advice then leaves out --momentum-kind qg. */
void cmd_skew_advice(const struct options *o, const char *shard, uint32_t n,
                     const struct run_flags *flags, const struct run *run);

#endif
