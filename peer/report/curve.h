/* peer/report/curve.h -- how good a run was on its way: test accuracy by rounds, bytes and seconds.
 *
 *   peers' rows  --rounds that all peers were evaluated in-->  stops  --between two of them-->  accuracy at x
 *
 * A stop is of the whole run: the accuracy of the peer that does worst, the bytes that all had sent, the
 * seconds of the slowest.
 */
#ifndef PEER_REPORT_CURVE_H
#define PEER_REPORT_CURVE_H

#include "peer/report/run.h"
#include "peer/report/series.h"

struct report_stop
{
    double round; /* Those of the last phase count on. */
    double sent;  /* Bytes by all peers, since the run last began at round 0. */
    double seconds;
    double accuracy;
};

/* The stops of a run, in order of their rounds. *stops is for free(), NULL where there are none. 0 or
 * -ENOMEM. Cost: O(rows). */
__attribute__((warn_unused_result)) int report_curve_stops(const struct report_run *run,
                                                           struct report_stop **stops, size_t *n);

/* Where a stop lies on an axis. */
double report_curve_x(const struct report_stop *stop, enum report_axis axis);

/* The accuracy at x, on the straight line between the stops beside it. NaN before the first, and
 * behind the last: the run did not get so far. */
double report_curve_at(const struct report_stop *stops, size_t n, enum report_axis axis, double x);

#endif
