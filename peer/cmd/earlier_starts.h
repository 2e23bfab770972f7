/* peer/cmd/earlier_starts.h -- sums what earlier starts of a local run took, and reports where the
 * next start resumes.
 *
 * The same command resumes a run that was killed or interrupted. Each process counts bytes and
 * seconds since its own start. The counts of earlier starts are read from the metrics of the
 * peers (peer/uv/metrics.h), up to the last line that each start wrote. Bytes that a killed
 * start sent after its last line are not known.
 */
#ifndef PEER_CMD_EARLIER_STARTS_H
#define PEER_CMD_EARLIER_STARTS_H

#include "peer/cmd/cmd.h"

/* Costs of all earlier starts of the run. */
struct cmd_earlier_starts
{
    uint32_t starts; /* Number of earlier starts. If the peers differ, the largest number counts. */
    /* Running time of the earlier starts in seconds. If the peers differ, the longest time
     * counts. */
    double seconds;
    uint64_t sent, received; /* Bytes at the sockets, summed over all peers. */
};

/* Adds the earlier starts of one peer from DIR/metrics.jsonl, which may be missing or end in an
 * incomplete line. `but_last`: the last start in the file does not count as an earlier one. */
void cmd_earlier_starts_add(struct cmd_earlier_starts *p, const char *dir, bool but_last);

/* State of a local run when it is interrupted. */
struct cmd_local_stop
{
    const char *out; /* Output directory of the run. */
    bool given;      /* The user gave --out. */
    uint32_t n_peers;
    const struct run *run;
    uint64_t round;
};

/* Reports on stderr from which round a later start of a run resumes. */
void cmd_local_report_resume(const struct options *o, const char *out, uint32_t n,
                             const struct run *run);

/* Reports on stderr that the run was interrupted, how to resume it, and from which round.
 * `*resumes`: that round; 0 if it is not one round or not known. Returns CMD_INTERRUPTED. */
int cmd_local_interrupted(const struct options *o, const struct cmd_local_stop *s,
                          uint64_t *resumes);

#endif
