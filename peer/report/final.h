/* peer/report/final.h -- what a run came to: the figures of its summary or, where it has none, of
 * its peers' last words.
 *
 * What a summary.json says is taken as it is. Without the run's own, figures of peers are added
 * up (bytes), compared (least and greatest) or, of estimates of the newest round, averaged, as the
 * run's summary would have it. NaN is what nobody has said.
 */
#ifndef PEER_REPORT_FINAL_H
#define PEER_REPORT_FINAL_H

#include "peer/report/run.h"

struct report_range
{
    double low, high; /* Both NaN where there is none. */
};

struct report_final
{
    struct report_range accuracy, test_loss, loss; /* They are of the worst and the best peer. */
    double estimated;                              /* Relative drift by the peers' own estimates, */
    double exact; /* and by their models: of a run that has compared them. */
    double rounds, settle_rounds, skipped;
    double seconds;        /* Over all starts; in virtual time in `sim`: then */
    double wall_s;         /* this is what it took; NaN else. */
    double sent, received; /* Bytes of all peers, over all starts. */
    double exit_code;
};

struct report_final report_final_of(const struct report_run *run);

/* The same of one peer. */
struct report_final report_final_peer(const struct report_peer *peer);

/* A peer's seconds, over all starts, at its last row. `rest` is what none of the three had. NaN
 * where there is no row. */
struct report_times
{
    double compute, wait, mix, rest;
};
struct report_times report_final_times(const struct report_peer *peer);

#endif
