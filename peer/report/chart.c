/* peer/report/chart.c -- curves and bars, as gnuplot's scripts. */
#include "peer/report/chart.h"

#include "peer/report/final.h"
#include "peer/report/series.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const char *const report_chart_colours[REPORT_COLOURS] = {
    "#3182ce", "#dd6b20", "#38a169", "#d53f8c", "#805ad5", "#b7791f", "#319795", "#e53e3e"};
const char *const report_chart_parts[4] = {"#38a169", "#a0aec0", "#805ad5", "#dd9b5f"};

const struct report_curve report_chart_curves[] = {
    {"Training loss, by round", "Of the rounds that trained.", REPORT_LOSS, REPORT_BY_ROUND},
    {"Training loss, by seconds", "Over all starts of a run; virtual seconds in a simulation.",
     REPORT_LOSS, REPORT_BY_TIME},
    {"Training loss, by megabytes that a peer has sent", "At its sockets, over all starts.",
     REPORT_LOSS, REPORT_BY_BYTES},
    {"Test accuracy in percent, by round", "Where a round evaluated it, and at the end.",
     REPORT_ACCURACY, REPORT_BY_ROUND},
    {"Test accuracy in percent, by seconds", "Over all starts of a run.", REPORT_ACCURACY,
     REPORT_BY_TIME},
    {"Test accuracy in percent, by megabytes that a peer has sent", "At its sockets.",
     REPORT_ACCURACY, REPORT_BY_BYTES},
    {"Relative drift, by the round that it is of",
     "Lines and bands: the peers' own estimates. A dot: the exact one, of their models.",
     REPORT_RELATIVE_DRIFT, REPORT_BY_ROUND},
    {NULL, NULL, 0, 0},
};

static const char *const axis_names[] = {[REPORT_BY_ROUND] = "round",
                                         [REPORT_BY_TIME] = "seconds",
                                         [REPORT_BY_BYTES] = "MB sent by a peer"};

/* ---- What all have in common. ---- */

static void begin(struct report_text *out, int width, int height)
{
    report_text_print(out,
                      "set terminal svg size %d,%d noenhanced fontscale 1.1\n"
                      "set encoding utf8\n"
                      "unset key\n"
                      "set grid ytics lw 0.5\n"
                      "set border 3 lw 0.8\n"
                      "set tics nomirror scale 0.5\n",
                      width, height);
}

/* In the unit of its axis. */
static double shown_x(const struct report_curve *c, double x)
{
    return c->axis == REPORT_BY_BYTES ? x * 1e-6 : x;
}

static double shown_y(const struct report_curve *c, double y)
{
    return c->figure == REPORT_ACCURACY ? 100 * y : y;
}

/* A logarithmic axis has no place for 0. */
static bool is_log(const struct report_curve *c)
{
    return c->figure == REPORT_RELATIVE_DRIFT;
}

static bool has_place(const struct report_curve *c, double y)
{
    return !is_log(c) || y > 0;
}

/* ---- The data of a curve: blocks of numbers. ---- */

/* A line's points; true where there is one. */
static bool put_points(struct report_text *out, const struct report_curve *c,
                       const struct report_point *p, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (!has_place(c, p[i].y))
            continue;
        report_text_print(out, "%.9g %.9g\n", shown_x(c, p[i].x), shown_y(c, p[i].y));
        any = true;
    }
    return any;
}

static bool put_bands(struct report_text *out, const struct report_curve *c,
                      const struct report_band *b, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (!has_place(c, b[i].low))
            continue;
        report_text_print(out, "%.9g %.9g %.9g %.9g\n", shown_x(c, b[i].x), shown_y(c, b[i].low),
                          shown_y(c, b[i].middle), shown_y(c, b[i].high));
        any = true;
    }
    return any;
}

/* What is plotted: the commands behind "plot", gathered while the blocks are written. */
struct plot
{
    struct report_text *out, *commands;
    const struct report_curve *curve;
    size_t blocks, run; /* So many are written; the run whose are next. */
};

/* Its title is what a browser shows beside the pointer. */
__attribute__((format(printf, 3, 4))) static void add(struct plot *p, const char *what,
                                                      const char *title, ...)
{
    char words[64];
    va_list args;
    va_start(args, title);
    vsnprintf(words, sizeof words, title, args);
    va_end(args);
    report_text_print(p->commands, "%s$b%zu %s lc rgb '%s' title '%s'",
                      p->commands->n > 0 ? ", " : "", p->blocks, what,
                      report_chart_colours[p->run % REPORT_COLOURS], words);
}

static int add_lines(struct plot *p, const struct report_run *run)
{
    /* Accuracies are few: a mark for each. */
    bool few = p->curve->figure == REPORT_ACCURACY;
    for (size_t i = 0; i < run->n_peers; i++) {
        struct report_point *points;
        size_t n;
        int err = report_series_peer(&run->peer[i].lines, (enum report_column)p->curve->figure,
                                     (enum report_axis)p->curve->axis, &points, &n);
        if (err < 0)
            return err;
        n = report_series_thin(points, n, REPORT_POINTS);
        report_text_print(p->out, "$b%zu << EOD\n", p->blocks);
        bool any = put_points(p->out, p->curve, points, n);
        report_text_put(p->out, "EOD\n");
        if (any)
            add(p,
                few || n < 2 ? "using 1:2 with linespoints lw 1.2 pt 7 ps 0.35"
                             : "using 1:2 with lines lw 1.2",
                "run %zu, peer %zu", p->run, i);
        p->blocks++;
        free(points);
    }
    return 0;
}

static int add_band(struct plot *p, const struct report_run *run)
{
    struct report_band *bands;
    size_t n;
    int err = report_series_band(run, (enum report_column)p->curve->figure,
                                 (enum report_axis)p->curve->axis, &bands, &n);
    if (err < 0)
        return err;
    n = report_series_thin_band(bands, n, REPORT_POINTS);
    report_text_print(p->out, "$b%zu << EOD\n", p->blocks);
    bool any = put_bands(p->out, p->curve, bands, n);
    report_text_put(p->out, "EOD\n");
    if (any && n > 1)
        add(p, "using 1:2:4 with filledcurves fs transparent solid 0.22 noborder",
            "run %zu, from the least to the greatest", p->run);
    if (any)
        add(p,
            n < 20 ? "using 1:3 with linespoints lw 1.4 pt 7 ps 0.35"
                   : "using 1:3 with lines lw 1.4",
            "run %zu, median", p->run);
    p->blocks++;
    free(bands);
    return 0;
}

/* The distance of the models that a run ended with. */
static void add_exact(struct plot *p, const struct report_run *run)
{
    struct report_final f = report_final_of(run);
    double at = f.rounds + (isfinite(f.settle_rounds) ? f.settle_rounds : 0.0);
    if (p->curve->figure != REPORT_RELATIVE_DRIFT || !isfinite(at) || !(f.exact > 0))
        return;
    report_text_print(p->out, "$b%zu << EOD\n%.9g %.9g\nEOD\n", p->blocks, at, f.exact);
    add(p, "using 1:2 with points pt 7 ps 0.8", "run %zu, exact", p->run);
    p->blocks++;
}

int report_chart_curve(struct report_text *out, const struct report_curve *c,
                       const struct report_run *runs, size_t n)
{
    struct report_text commands = {0};
    struct plot p = {.out = out, .commands = &commands, .curve = c};
    size_t before = out->n;
    int err = 0;
    begin(out, 440, 300);
    report_text_print(out, "set xlabel '%s'\n", axis_names[c->axis]);
    if (is_log(c))
        report_text_put(out, "set logscale y\nset format y '%.0e'\n");
    for (size_t i = 0; i < n && err == 0; i++) {
        p.run = i;
        err = runs[i].n_peers <= REPORT_LINES ? add_lines(&p, &runs[i]) : add_band(&p, &runs[i]);
        if (err == 0)
            add_exact(&p, &runs[i]);
    }
    bool any = commands.n > 0;
    if (any)
        report_text_print(out, "plot ");
    if (any)
        report_text_bytes(out, commands.bytes, commands.n);
    report_text_put(out, "\n");
    if (commands.broken || out->broken)
        err = -ENOMEM;
    report_text_close(&commands);
    if (err == 0 && !any && out->n > before)
        out->bytes[out->n = before] = '\0';
    return err < 0 ? err : any;
}

/* ---- Bars ---- */

static void begin_bars(struct report_text *out, size_t n, const char *unit)
{
    begin(out, 440, 260);
    report_text_print(out,
                      "set xlabel 'peer, by its place in the table'\n"
                      "set ylabel '%s'\n"
                      "set yrange [0:*]\n"
                      "set xrange [-0.6:%zu.4]\n"
                      "set style fill solid 0.85 noborder\n"
                      "set boxwidth %s\n",
                      unit, n > 0 ? n - 1 : 0, n > 60 ? "1.0" : "0.8");
    if (n <= 12)
        report_text_put(out, "set xtics 1\n");
}

static void take_back(struct report_text *out, size_t before)
{
    if (!out->broken && out->n > before)
        out->bytes[out->n = before] = '\0';
}

int report_chart_times(struct report_text *out, const struct report_run *run)
{
    size_t before = out->n;
    bool any = false;
    begin_bars(out, run->n_peers, "seconds");
    report_text_put(out, "$b << EOD\n");
    for (size_t i = 0; i < run->n_peers; i++) {
        struct report_times t = report_final_times(&run->peer[i]);
        if (!isfinite(t.rest))
            continue;
        /* Each box is as high as all that lie below it, and is drawn behind them. */
        double a = t.compute, b = a + t.wait, c = b + t.mix, d = c + t.rest;
        report_text_print(out, "%zu %.9g %.9g %.9g %.9g\n", i, a, b, c, d);
        any |= d > 0;
    }
    report_text_put(out, "EOD\nplot ");
    for (int k = 3; k >= 0; k--)
        report_text_print(out, "$b using 1:%d with boxes lc rgb '%s' title ''%s", k + 2,
                          report_chart_parts[k], k > 0 ? ", " : "\n");
    if (!any)
        take_back(out, before);
    return any;
}

int report_chart_bytes(struct report_text *out, const struct report_run *run)
{
    size_t before = out->n;
    bool any = false;
    begin_bars(out, run->n_peers, "MB");
    report_text_put(out, "set boxwidth 0.4\n$b << EOD\n");
    for (size_t i = 0; i < run->n_peers; i++) {
        struct report_final f = report_final_peer(&run->peer[i]);
        if (!isfinite(f.sent) || !isfinite(f.received))
            continue;
        report_text_print(out, "%zu %.9g %.9g\n", i, f.sent * 1e-6, f.received * 1e-6);
        any |= f.sent + f.received > 0;
    }
    report_text_print(out,
                      "EOD\nplot $b using ($1-0.2):2 with boxes lc rgb '%s' title '', "
                      "$b using ($1+0.2):3 with boxes lc rgb '%s' title ''\n",
                      report_chart_colours[0], report_chart_parts[1]);
    if (!any)
        take_back(out, before);
    return any;
}
