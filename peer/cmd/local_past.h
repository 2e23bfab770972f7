/* peer/cmd/local_past.h -- the starts of a local run before this one, and the start that follows.
 *
 * A run that is killed, or interrupted, is gone on with by the same command. Bytes and seconds
 * that processes count are of one start each; those of the former are in the metrics of the peers
 * (peer/uv/metrics.h), up to the last line that each wrote: of a start that was killed, what it sent
 * behind that line is not known.
 */
#ifndef PEER_CMD_LOCAL_PAST_H
#define PEER_CMD_LOCAL_PAST_H

#include "peer/cmd/cmd.h"

/* What the former starts took. */
struct cmd_local_past
{
    uint32_t starts;         /* Those of the peer that has most; */
    double seconds;          /* so are these. */
    uint64_t sent, received; /* Bytes at the sockets, summed over peers. */
};

/* Add a peer's, by DIR/metrics.jsonl, which may be missing or torn. `but_last`: the last start
 * there is no former one. */
void cmd_local_past_add(struct cmd_local_past *p, const char *dir, bool but_last);

/* This start was interrupted at a round: say on stderr how to go on, and where from. `out` is the
 * run's directory; `given`: by --out. Returns CMD_INTERRUPTED. */
int cmd_local_interrupted(const struct options *o, const char *out, bool given, uint64_t round,
                          uint64_t rounds);

#endif
