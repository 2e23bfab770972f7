/* peer/report/series.h -- points to draw, out of rows: of one peer, or the band of many.
 *
 *   rows of a peer  --axis, figure-->  points  --thin-->  what a picture has room for
 *   rows of 100 peers  --by round-->  min, median, max of each  --thin-->
 *
 * Nothing is averaged or interpolated: every number of a point stands in a file, but for a median
 * of an even count, which is the lower of the two in the middle, and so stands in one, too.
 */
#ifndef PEER_REPORT_SERIES_H
#define PEER_REPORT_SERIES_H

#include "peer/report/run.h"

/* Against what. */
enum report_axis {
    REPORT_BY_ROUND, /* Rounds of the last phase count on; a drift is of the round it speaks of. */
    REPORT_BY_TIME,  /* Seconds, over all starts. */
    REPORT_BY_BYTES  /* Sent by the peer, over all starts. */
};

struct report_point
{
    double x, y;
};

/* A place of a band: all peers that have the figure in a round. */
struct report_band
{
    double x, low, middle, high;
};

enum { REPORT_POINTS = 400 /* About so many of a line, or of a band, are drawn. */ };

/* The points of a peer, in the order of its rows: those of which both numbers are known. Of a drift
 * each estimate once. *points is for free(), NULL where there are none. 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int report_series_peer(const struct report_lines *lines,
                                                           enum report_column figure,
                                                           enum report_axis axis,
                                                           struct report_point **points, size_t *n);

/* The band of a run's peers, a place for each round that any of them has the figure of, ascending.
 * x is the median of the peers'. *bands is for free(), NULL where there are none. 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int report_series_band(const struct report_run *run,
                                                           enum report_column figure,
                                                           enum report_axis axis,
                                                           struct report_band **bands, size_t *n);

/* Leave `most` (4 or more) of n points at most, in place: first and last, and of each stretch
 * between those where y is least and greatest, in their order. Returns how many are left. */
size_t report_series_thin(struct report_point *points, size_t n, size_t most);

/* The same of a band: of each stretch the least low, the greatest high, and the x and the middle of
 * its middle place. */
size_t report_series_thin_band(struct report_band *bands, size_t n, size_t most);

#endif
