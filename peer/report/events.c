/* peer/report/events.c -- rows of metrics as TensorBoard's scalars. */
#include "peer/report/events.h"

#include "peer/tensorboard/event.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* What a row tells of its own round. */
static const struct
{
    const char *tag;
    enum report_column column;
} tags[] = {
    {"loss", REPORT_LOSS},
    {"accuracy", REPORT_ACCURACY},
    {"test_loss", REPORT_TEST_LOSS},
    {"bytes/sent", REPORT_BYTES_SENT},
    {"bytes/received", REPORT_BYTES_RECEIVED},
    {"seconds/computing", REPORT_COMPUTE_S},
    {"seconds/waiting", REPORT_WAIT_S},
    {"seconds/mixing", REPORT_MIX_S},
    {"rounds_skipped", REPORT_ROUNDS_SKIPPED},
    {"gamma", REPORT_GAMMA},
};
enum { N_TAGS = sizeof tags / sizeof *tags };

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
    struct event_scalar s[N_TAGS];
    for (size_t i = 0; i < N_TAGS; i++)
        s[i] = (struct event_scalar){tags[i].tag, value_of(l, row, tags[i].column)};
    size_t n = event_scalars(record, wall_of(l, row), (int64_t)report_lines_step(row), s, N_TAGS);
    report_text_bytes(out, record, n);
}

static void put_drift(struct report_text *out, const struct report_lines *l,
                      const struct report_row *row)
{
    uint8_t record[EVENT_RECORD_MAX];
    const struct event_scalar s[] = {{"drift", row->at[REPORT_DRIFT]},
                                     {"relative_drift", row->at[REPORT_RELATIVE_DRIFT]}};
    size_t n = event_scalars(record, wall_of(l, row), (int64_t)row->at[REPORT_DRIFT_ROUND], s, 2);
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
