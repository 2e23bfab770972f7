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

/* Where a run of `local` stands when it is interrupted. */
struct cmd_local_stop
{
    const char *out; /* The run's directory; */
    bool given;      /* by --out. */
    uint32_t n_peers;
    const struct run *run;
    uint64_t round;
};

/* A start that is not the run's first: say on stderr from where it goes on. */
void cmd_local_going_on(const struct options *o, const char *out, uint32_t n,
                        const struct run *run);

/* Say on stderr how to go on, and where from. *resumes: that round, where it is one and known, else 0.
 * Returns CMD_INTERRUPTED. */
int cmd_local_interrupted(const struct options *o, const struct cmd_local_stop *s,
                          uint64_t *resumes);

#endif
