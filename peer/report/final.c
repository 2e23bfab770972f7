/* peer/report/final.c -- what a run came to. */
#include "peer/report/final.h"

#include <math.h>

static double first_of(double a, double b)
{
    return isfinite(a) ? a : b;
}

static const struct report_row *last_row(const struct report_lines *l)
{
    return l->n > 0 ? &l->row[l->n - 1] : NULL;
}

static double last_figure(const struct report_lines *l, enum report_column column)
{
    return l->n > 0 ? l->row[l->n - 1].at[column] : (double)NAN;
}

/* What a summary counts since its start, and the starts before it. */
static double in_all(const struct report_peer *p, double summary, double before, double row)
{
    return isfinite(summary) && p->lines.n_starts > 0 ? before + summary : first_of(summary, row);
}

static double sent_by(const struct report_peer *p)
{
    const struct report_lines *l = &p->lines;
    return in_all(p, p->end.at[REPORT_F_BYTES_SENT],
                  l->n_starts > 0 ? l->start[l->n_starts - 1].bytes_sent : 0.0,
                  l->n > 0 ? report_lines_sent(l, last_row(l)) : (double)NAN);
}

static double received_by(const struct report_peer *p)
{
    const struct report_lines *l = &p->lines;
    return in_all(p, p->end.at[REPORT_F_BYTES_RECEIVED],
                  l->n_starts > 0 ? l->start[l->n_starts - 1].bytes_received : 0.0,
                  l->n > 0 ? report_lines_received(l, last_row(l)) : (double)NAN);
}

static double seconds_of(const struct report_peer *p)
{
    const struct report_lines *l = &p->lines;
    return in_all(p, p->end.at[REPORT_F_SECONDS],
                  l->n_starts > 0 ? l->start[l->n_starts - 1].time_s : 0.0,
                  l->n > 0 ? report_lines_time_s(l, last_row(l)) : (double)NAN);
}

static struct report_range one(double x)
{
    return (struct report_range){x, x};
}

struct report_final report_final_peer(const struct report_peer *p)
{
    const struct report_lines *l = &p->lines;
    const double *end = p->end.at;
    return (struct report_final){
        .accuracy = one(end[REPORT_F_ACCURACY]),
        .test_loss = one(end[REPORT_F_TEST_LOSS]),
        .loss = one(first_of(end[REPORT_F_LOSS], last_figure(l, REPORT_LOSS))),
        .estimated = first_of(end[REPORT_F_RELATIVE_DRIFT], last_figure(l, REPORT_RELATIVE_DRIFT)),
        .exact = (double)NAN,
        .rounds = first_of(end[REPORT_F_ROUND], last_figure(l, REPORT_ROUND)),
        .settle_rounds =
            first_of(end[REPORT_F_SETTLE_ROUNDS], last_figure(l, REPORT_SETTLE_ROUNDS)),
        .skipped = first_of(end[REPORT_F_ROUNDS_SKIPPED], last_figure(l, REPORT_ROUNDS_SKIPPED)),
        .seconds = seconds_of(p),
        .wall_s = (double)NAN,
        .sent = sent_by(p),
        .received = received_by(p),
        .exit_code = end[REPORT_F_EXIT_CODE]};
}

struct report_times report_final_times(const struct report_peer *p)
{
    const struct report_lines *l = &p->lines;
    struct report_times t = {last_figure(l, REPORT_COMPUTE_S), last_figure(l, REPORT_WAIT_S),
                             last_figure(l, REPORT_MIX_S), (double)NAN};
    if (l->n > 0)
        t.rest = fmax(0.0, report_lines_time_s(l, last_row(l)) - t.compute - t.wait - t.mix);
    if (!isfinite(t.compute + t.wait + t.mix))
        t.rest = (double)NAN;
    return t;
}

/* ---- Of several ---- */

static void widen(struct report_range *r, struct report_range by)
{
    r->low = fmin(r->low, by.low); /* A NaN gives way. */
    r->high = fmax(r->high, by.high);
}

static void add(double *sum, double x)
{
    if (isfinite(x))
        *sum = first_of(*sum, 0.0) + x;
}

/* The mean of the estimates that are of the newest round (as peer/cmd/closing.h). */
static double mean_estimate(const struct report_run *run)
{
    double sum = 0, newest = -1, n = 0;
    for (size_t i = 0; i < run->n_peers; i++) {
        const struct report_peer *p = &run->peer[i];
        bool ended = isfinite(p->end.at[REPORT_F_RELATIVE_DRIFT]);
        double x = ended ? p->end.at[REPORT_F_RELATIVE_DRIFT]
                         : last_figure(&p->lines, REPORT_RELATIVE_DRIFT);
        double round =
            ended ? p->end.at[REPORT_F_DRIFT_ROUND] : last_figure(&p->lines, REPORT_DRIFT_ROUND);
        if (!isfinite(x) || !(round >= newest))
            continue;
        if (round > newest)
            sum = n = 0;
        newest = round;
        sum += x;
        n++;
    }
    return n > 0 ? sum / n : (double)NAN;
}

static struct report_final of_peers(const struct report_run *run)
{
    const double no = (double)NAN;
    struct report_final f = {.accuracy = one(no),
                             .test_loss = one(no),
                             .loss = one(no),
                             .estimated = mean_estimate(run),
                             .exact = no,
                             .rounds = no,
                             .settle_rounds = no,
                             .skipped = no,
                             .seconds = no,
                             .wall_s = no,
                             .sent = no,
                             .received = no,
                             .exit_code = no};
    for (size_t i = 0; i < run->n_peers; i++) {
        struct report_final p = report_final_peer(&run->peer[i]);
        widen(&f.accuracy, p.accuracy);
        widen(&f.test_loss, p.test_loss);
        widen(&f.loss, p.loss);
        f.rounds = fmax(f.rounds, p.rounds);
        f.settle_rounds = fmax(f.settle_rounds, p.settle_rounds);
        f.seconds = fmax(f.seconds, p.seconds);
        add(&f.skipped, p.skipped);
        add(&f.sent, p.sent);
        add(&f.received, p.received);
    }
    return f;
}

struct report_final report_final_of(const struct report_run *run)
{
    const double *end = run->end.at;
    struct report_final f = of_peers(run);
    f.exit_code = end[REPORT_F_EXIT_CODE];
    if (!run->several)
        return report_final_peer(&run->peer[0]);
    if (!isfinite(end[REPORT_F_N_PEERS]))
        return f;
    /* The run has compared its peers' models. */
    f.accuracy = (struct report_range){end[REPORT_F_ACCURACY_MIN], end[REPORT_F_ACCURACY_MAX]};
    f.exact = end[REPORT_F_RELATIVE_DRIFT];
    f.estimated = end[REPORT_F_ESTIMATED];
    f.rounds = end[REPORT_F_ROUNDS];
    f.settle_rounds = end[REPORT_F_SETTLE_ROUNDS];
    f.skipped = end[REPORT_F_VERDICT_SKIPPED];
    f.sent = first_of(end[REPORT_F_SENT_IN_ALL], end[REPORT_F_BYTES_SENT]);
    f.received = first_of(end[REPORT_F_RECEIVED_IN_ALL], end[REPORT_F_BYTES_RECEIVED]);
    double wall_s = first_of(end[REPORT_F_SECONDS_IN_ALL], end[REPORT_F_SECONDS]);
    bool simulated = isfinite(end[REPORT_F_SIMULATED_S]);
    f.seconds = simulated ? end[REPORT_F_SIMULATED_S] : wall_s;
    f.wall_s = simulated ? wall_s : (double)NAN;
    return f;
}
