/* peer/report/curve.c -- rows of several peers made one curve, and read between its points. */
#include "peer/report/curve.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* The peer's evaluation of a round, looked for from *at on, which moves on; NULL: it has none. Rows
 * ascend by rounds; of several evaluations of one the last counts. */
static const struct report_row *evaluated(const struct report_lines *l, size_t *at, double round)
{
    const struct report_row *found = NULL;
    for (; *at < l->n && report_lines_step(&l->row[*at]) <= round; ++*at)
        if (report_lines_step(&l->row[*at]) >= round && isfinite(l->row[*at].at[REPORT_ACCURACY]))
            found = &l->row[*at];
    return found;
}

/* The stop of a round; false where a peer was not evaluated in it. */
static bool make_stop(const struct report_run *run, size_t *at, double round,
                      struct report_stop *stop)
{
    bool all = true;
    *stop = (struct report_stop){.round = round, .accuracy = INFINITY};
    for (size_t p = 0; p < run->n_peers; p++) {
        const struct report_lines *l = &run->peer[p].lines;
        const struct report_row *row = evaluated(l, &at[p], round);
        all &= row != NULL;
        if (row == NULL)
            continue;
        stop->accuracy = fmin(stop->accuracy, row->at[REPORT_ACCURACY]);
        const struct report_start *begun = report_lines_begun(l, row);
        stop->sent += report_lines_sent(l, row) - begun->bytes_sent;
        stop->seconds = fmax(stop->seconds, report_lines_time_s(l, row) - begun->time_s);
    }
    return all;
}

int report_curve_stops(const struct report_run *run, struct report_stop **stops, size_t *n)
{
    *stops = NULL;
    *n = 0;
    if (run->n_peers == 0 || run->peer[0].lines.n == 0)
        return 0;
    const struct report_lines *first = &run->peer[0].lines;
    size_t *at = calloc(run->n_peers, sizeof *at);
    *stops = calloc(first->n, sizeof **stops);
    for (size_t i = 0; i < first->n && at != NULL && *stops != NULL; i++) {
        double round = report_lines_step(&first->row[i]);
        bool again = *n > 0 && (*stops)[*n - 1].round >= round;
        if (!again && isfinite(first->row[i].at[REPORT_ACCURACY])
            && make_stop(run, at, round, &(*stops)[*n]))
            ++*n;
    }
    bool good = at != NULL && *stops != NULL;
    free(at);
    if (good && *n > 0)
        return 0;
    free(*stops);
    *stops = NULL;
    *n = 0;
    return good ? 0 : -ENOMEM;
}

double report_curve_x(const struct report_stop *stop, enum report_axis axis)
{
    switch (axis) {
    case REPORT_BY_ROUND:
        return stop->round;
    case REPORT_BY_TIME:
        return stop->seconds;
    case REPORT_BY_BYTES:
        return stop->sent;
    }
    return (double)NAN;
}

double report_curve_at(const struct report_stop *stops, size_t n, enum report_axis axis, double x)
{
    for (size_t i = 0; i < n; i++) {
        double right = report_curve_x(&stops[i], axis);
        if (!(right >= x))
            continue;
        if (right <= x)
            return stops[i].accuracy;
        if (i == 0)
            return (double)NAN;
        double left = report_curve_x(&stops[i - 1], axis);
        double share = (x - left) / (right - left);
        return stops[i - 1].accuracy + share * (stops[i].accuracy - stops[i - 1].accuracy);
    }
    return (double)NAN;
}
