/* peer/report/series.c -- points and bands, and fewer of them. */
#include "peer/report/series.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* A figure is a drift: an estimate names the round that it is of, and many rows repeat it. */
static bool is_drift(enum report_column figure)
{
    return figure == REPORT_DRIFT || figure == REPORT_RELATIVE_DRIFT;
}

/* Rounds of the last phase repeat the loss of the last that trained. */
static double y_of(const struct report_row *row, enum report_column figure)
{
    bool stale = figure == REPORT_LOSS && row->at[REPORT_LOCAL_STEPS] == 0;
    return stale ? (double)NAN : row->at[figure];
}

static double x_of(const struct report_lines *l, const struct report_row *row,
                   enum report_column figure, enum report_axis axis)
{
    switch (axis) {
    case REPORT_BY_ROUND:
        return is_drift(figure) ? row->at[REPORT_DRIFT_ROUND] : report_lines_step(row);
    case REPORT_BY_TIME:
        return report_lines_time_s(l, row);
    case REPORT_BY_BYTES:
        return report_lines_sent(l, row);
    }
    return (double)NAN;
}

int report_series_peer(const struct report_lines *l, enum report_column figure,
                       enum report_axis axis, struct report_point **points, size_t *n)
{
    *n = 0;
    *points = l->n > 0 ? malloc(l->n * sizeof **points) : NULL;
    if (*points == NULL)
        return l->n > 0 ? -ENOMEM : 0;
    const struct report_row *last = NULL;
    for (size_t i = 0; i < l->n; i++) {
        const struct report_row *row = &l->row[i];
        struct report_point p = {x_of(l, row, figure, axis), y_of(row, figure)};
        bool again = last != NULL && is_drift(figure) && last->at[figure] == p.y
                     && last->at[REPORT_DRIFT_ROUND] == row->at[REPORT_DRIFT_ROUND];
        if (!isfinite(p.x) || !isfinite(p.y) || again)
            continue;
        (*points)[(*n)++] = p;
        last = row;
    }
    return 0;
}

/* ---- Bands ---- */

/* A figure of one peer, and the round by which it is compared with others'. */
struct sample
{
    double round, x, y;
};

static int by_number(double a, double b)
{
    return (a > b) - (a < b);
}

static int by_round(const void *a, const void *b)
{
    const struct sample *p = a, *q = b;
    int order = by_number(p->round, q->round);
    return order != 0 ? order : by_number(p->y, q->y);
}

static int by_x(const void *a, const void *b)
{
    const struct sample *p = a, *q = b;
    return by_number(p->x, q->x);
}

/* One place of the band out of n samples of a round, ordered by y. */
static struct report_band place_of(struct sample *s, size_t n)
{
    struct report_band b = {.low = s[0].y, .middle = s[(n - 1) / 2].y, .high = s[n - 1].y};
    qsort(s, n, sizeof *s, by_x);
    b.x = s[(n - 1) / 2].x;
    return b;
}

static size_t add_samples(struct sample *out, const struct report_lines *l,
                          enum report_column figure, enum report_axis axis)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        const struct report_row *row = &l->row[i];
        struct sample s = {x_of(l, row, figure, REPORT_BY_ROUND), x_of(l, row, figure, axis),
                           y_of(row, figure)};
        if (!isfinite(s.round) || !isfinite(s.x) || !isfinite(s.y))
            continue;
        if (n > 0 && out[n - 1].round == s.round)
            n--; /* The newest row of a round counts, so that each peer has one voice. */
        out[n++] = s;
    }
    return n;
}

int report_series_band(const struct report_run *run, enum report_column figure,
                       enum report_axis axis, struct report_band **bands, size_t *n)
{
    size_t rows = 0, n_samples = 0;
    *n = 0;
    *bands = NULL;
    for (size_t i = 0; i < run->n_peers; i++)
        rows += run->peer[i].lines.n;
    if (rows == 0)
        return 0;
    struct sample *s = malloc(rows * sizeof *s);
    *bands = malloc(rows * sizeof **bands);
    if (s == NULL || *bands == NULL) {
        free(s);
        free(*bands);
        *bands = NULL;
        return -ENOMEM;
    }
    for (size_t i = 0; i < run->n_peers; i++)
        n_samples += add_samples(s + n_samples, &run->peer[i].lines, figure, axis);
    qsort(s, n_samples, sizeof *s, by_round);
    for (size_t from = 0, to; from < n_samples; from = to) {
        for (to = from + 1; to < n_samples && s[to].round == s[from].round;)
            to++;
        (*bands)[(*n)++] = place_of(s + from, to - from);
    }
    free(s);
    return 0;
}

/* ---- Fewer ---- */

size_t report_series_thin(struct report_point *p, size_t n, size_t most)
{
    if (n <= most)
        return n;
    size_t stretches = (most - 2) / 2, left = 1, inner = n - 2;
    for (size_t k = 0; k < stretches; k++) {
        size_t from = 1 + inner * k / stretches, to = 1 + inner * (k + 1) / stretches;
        size_t least = from, greatest = from;
        for (size_t i = from; i < to; i++) {
            least = p[i].y < p[least].y ? i : least;
            greatest = p[i].y > p[greatest].y ? i : greatest;
        }
        struct report_point first = p[least < greatest ? least : greatest],
                            second = p[least < greatest ? greatest : least];
        p[left++] = first;
        if (least != greatest)
            p[left++] = second;
    }
    p[left++] = p[n - 1];
    return left;
}

size_t report_series_thin_band(struct report_band *b, size_t n, size_t most)
{
    if (n <= most)
        return n;
    for (size_t k = 0; k < most; k++) {
        size_t from = n * k / most, to = n * (k + 1) / most;
        struct report_band whole = b[(from + to) / 2];
        for (size_t i = from; i < to; i++) {
            whole.low = fmin(whole.low, b[i].low);
            whole.high = fmax(whole.high, b[i].high);
        }
        b[k] = whole;
    }
    return most;
}
