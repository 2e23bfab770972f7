/* peer/report/events.c -- rows of metrics as TensorBoard's scalars. */
#include "peer/report/events.h"

#include "peer/tensorboard/figures.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* Which column is which figure. A codec is a word here, and has no number. */
static const struct
{
    enum event_figure figure;
    enum report_column column;
} columns[] = {
    {EVENT_LOSS, REPORT_LOSS},
    {EVENT_ACCURACY, REPORT_ACCURACY},
    {EVENT_TEST_LOSS, REPORT_TEST_LOSS},
    {EVENT_BYTES_SENT, REPORT_BYTES_SENT},
    {EVENT_BYTES_RECEIVED, REPORT_BYTES_RECEIVED},
    {EVENT_COMPUTE_S, REPORT_COMPUTE_S},
    {EVENT_WAIT_S, REPORT_WAIT_S},
    {EVENT_MIX_S, REPORT_MIX_S},
    {EVENT_ROUNDS_SKIPPED, REPORT_ROUNDS_SKIPPED},
    {EVENT_GAMMA, REPORT_GAMMA},
    {EVENT_DRIFT_EXCESS, REPORT_DRIFT_EXCESS},
};
enum { N_COLUMNS = sizeof columns / sizeof *columns };

static double value_of(const struct report_lines *l, const struct report_row *row,
                       enum report_column column)
{
    if (column == REPORT_BYTES_SENT)
        return report_lines_sent(l, row);
    if (column == REPORT_BYTES_RECEIVED)
        return report_lines_received(l, row);
    return row->at[column];
}

static double wall_of(const struct report_lines *l, const struct report_row *row)
{
    int64_t at_s = l->start[row->start].at_s;
    double time_s = row->at[REPORT_TIME_S];
    return (at_s >= 0 ? (double)at_s : 0.0) + (isfinite(time_s) ? time_s : 0.0);
}

static void put_round(struct report_text *out, const struct report_lines *l,
                      const struct report_row *row)
{
    uint8_t record[EVENT_RECORD_MAX];
    double figure[EVENT_FIGURES];
    for (size_t i = 0; i < EVENT_FIGURES; i++)
        figure[i] = (double)NAN;
    for (size_t i = 0; i < N_COLUMNS; i++)
        figure[columns[i].figure] = value_of(l, row, columns[i].column);
    size_t n = event_round(record, wall_of(l, row), (int64_t)report_lines_step(row), figure);
    report_text_bytes(out, record, n);
}

static void put_drift(struct report_text *out, const struct report_lines *l,
                      const struct report_row *row)
{
    uint8_t record[EVENT_RECORD_MAX];
    size_t n = event_drift(record, wall_of(l, row), (int64_t)row->at[REPORT_DRIFT_ROUND],
                           row->at[REPORT_DRIFT], row->at[REPORT_RELATIVE_DRIFT]);
    report_text_bytes(out, record, n);
}

static double began(const struct report_peer *p)
{
    int64_t at_s = p->lines.n_starts > 0 ? p->lines.start[0].at_s : -1;
    return at_s >= 0 ? (double)at_s : 0.0;
}

void report_events_name(char name[REPORT_EVENTS_NAME], const struct report_peer *p)
{
    snprintf(name, REPORT_EVENTS_NAME, "events.out.tfevents.%010" PRId64 ".hearsay",
             (int64_t)began(p));
}

void report_events_peer(struct report_text *out, const struct report_peer *p, size_t *n_mark)
{
    const struct report_lines *l = &p->lines;
    uint8_t record[EVENT_RECORD_MAX];
    double told = (double)NAN;
    *n_mark = event_begin(record, began(p));
    report_text_bytes(out, record, *n_mark);
    for (size_t i = 0; i < l->n; i++) {
        double of = l->row[i].at[REPORT_DRIFT_ROUND];
        put_round(out, l, &l->row[i]);
        if (isfinite(of) && of != told)
            put_drift(out, l, &l->row[i]);
        told = isfinite(of) ? of : told;
    }
}
