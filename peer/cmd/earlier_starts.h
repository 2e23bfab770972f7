/* peer/cmd/earlier_starts.h -- sums the bytes and seconds that earlier starts of a local run have
 * used, and reports where the next start will resume.
 *
 * A run that was killed or interrupted is resumed by the same command. Each process counts bytes
 * and seconds from its own start. The counts of earlier starts are read from the metrics of the
 * peers (peer/uv/metrics.h), up to the last line that each start wrote. Bytes that a killed peer
 * sent after its last line are not counted.
 */
#ifndef PEER_CMD_EARLIER_STARTS_H
#define PEER_CMD_EARLIER_STARTS_H

#include "peer/cmd/cmd.h"

/* Bytes and seconds that all earlier starts of the run have used. */
struct cmd_earlier_starts
{
    /* Number of earlier starts. If the peers have different numbers, this is the largest. */
    uint32_t starts;
    /* Running time of the earlier starts, in seconds. If the peers have different times, this is
     * the longest. */
    double seconds;
    uint64_t sent, received; /* Bytes sent and received at the sockets, summed over all peers. */
};

/* Adds the bytes and seconds of one peer's earlier starts to `*p`. They are read from
 * `dir`/metrics.jsonl, which may be missing or end in an incomplete line. `but_last`: do not count
 * the last start in the file. */
void cmd_earlier_starts_add(struct cmd_earlier_starts *p, const char *dir, bool but_last);

/* State of a local run when it was interrupted: output directory and rounds. */
struct cmd_local_stop
{
    const char *out; /* Output directory of the run. */
    bool given;      /* True if the user gave --out. */
    uint32_t n_peers;
    const struct run *run;
    uint64_t round;
};

/* Reports on stderr that a run is resumed, and from which round. */
void cmd_local_report_resume(const struct options *o, const char *out, uint32_t n,
                             const struct run *run);

/* Reports on stderr that the run was interrupted, how to resume it, and from which round. Sets
 * `*resumes` to that round, or to 0 if the peers resume from different rounds or the round is not
 * known. Returns CMD_INTERRUPTED. */
int cmd_local_interrupted(const struct options *o, const struct cmd_local_stop *s,
                          uint64_t *resumes);

#endif
