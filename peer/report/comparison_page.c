/* peer/report/comparison_page.c -- a comparison as one HTML page: what stands out, the table, curves. */
#include "peer/report/comparison.h"
#include "peer/report/svg.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

const char report_comparison_mark[] = "<!DOCTYPE html>\n<!-- made by hearsay compare -->\n";

static const char head[] =
    "<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
    "'unsafe-inline'\">\n<title>hearsay compare</title>\n<style>\n";

/* ---- Curves. ---- */

static const char *const axis_names[] = {[REPORT_BY_ROUND] = "round",
                                         [REPORT_BY_TIME] = "seconds",
                                         [REPORT_BY_BYTES] = "MB sent by all peers"};

/* A trial's points; false where it has none. */
static bool put_points(struct report_text *out, const struct report_trial *t, enum report_axis axis,
                       bool drift)
{
    bool any = false;
    for (size_t i = 0; drift && i < t->n_drift; i++)
        if (t->drift[i].y > 0) { /* The axis is logarithmic. */
            report_text_print(out, "%.9g %.9g\n", t->drift[i].x, t->drift[i].y);
            any = true;
        }
    for (size_t i = 0; !drift && i < t->n_stops; i++) {
        double x = report_curve_x(&t->stops[i], axis);
        report_text_print(out, "%.9g %.9g\n", axis == REPORT_BY_BYTES ? x * 1e-6 : x,
                          100 * t->stops[i].accuracy);
        any = true;
    }
    return any;
}

bool report_comparison_curve(struct report_text *out, const struct report_comparison *c,
                             enum report_axis axis, bool drift)
{
    struct report_text commands = {0};
    size_t before = out->n;
    report_text_print(out,
                      "set terminal svg size 440,300 noenhanced fontscale 1.1\nset encoding utf8\n"
                      "unset key\nset grid ytics lw 0.5\nset border 3 lw 0.8\n"
                      "set tics nomirror scale 0.5\nset xlabel '%s'\n%s",
                      axis_names[axis], drift ? "set logscale y\nset format y '%.0e'\n" : "");
    for (size_t a = 0; a < c->n_arms; a++)
        for (uint32_t i = 0; i < c->n_seeds; i++) {
            size_t number = a * c->n_seeds + i;
            report_text_print(out, "$b%zu << EOD\n", number);
            bool any = put_points(out, &c->arm[a].trial[i], axis, drift);
            report_text_put(out, "EOD\n");
            if (any)
                report_text_print(&commands,
                                  "%s$b%zu with %s lw 1.2 dt %zu lc rgb '%s' title 'arm "
                                  "%zu, seed %llu'",
                                  commands.n > 0 ? ", " : "", number,
                                  drift ? "lines" : "linespoints pt 7 ps 0.3",
                                  a / REPORT_COLOURS + 1, report_chart_colours[a % REPORT_COLOURS],
                                  a + 1, (unsigned long long)(c->seed + i));
        }
    bool any = commands.n > 0;
    if (any) {
        report_text_put(out, "plot ");
        report_text_bytes(out, commands.bytes, commands.n);
        report_text_put(out, "\n");
    } else if (!out->broken && out->n > before) {
        out->bytes[out->n = before] = '\0';
    }
    out->broken |= commands.broken;
    report_text_close(&commands);
    return any;
}

static void put_picture(struct report_text *out, const struct report_drawer *d,
                        const struct report_text *script, const char *caption, unsigned number)
{
    struct report_text drawn = {0};
    char why[REPORT_WHY] = "the program gave no whole picture", prefix[16];
    snprintf(prefix, sizeof prefix, "p%u", number);
    report_text_print(out, "<figure><figcaption>%s</figcaption>\n", caption);
    int err = d->draw(d->self, REPORT_GNUPLOT, script, &drawn, why);
    if (err < 0 || drawn.n == 0 || !report_svg_embed(out, drawn.bytes, drawn.n, prefix)) {
        report_text_put(out, "<p class=\"bad\">Not drawn: ");
        report_text_html(out, why);
        report_text_put(out, "</p>");
    }
    report_text_put(out, "</figure>\n");
    report_text_close(&drawn);
}

static void put_curves(struct report_text *out, const struct report_comparison *c,
                       const struct report_drawer *d)
{
    static const struct
    {
        enum report_axis axis;
        bool drift;
        const char *caption;
    } curves[] = {
        {REPORT_BY_ROUND, false, "Test accuracy in percent, by round"},
        {REPORT_BY_BYTES, false, "Test accuracy in percent, by megabytes that all peers have sent"},
        {REPORT_BY_TIME, false, "Test accuracy in percent, by seconds"},
        {REPORT_BY_ROUND, true,
         "Relative drift, by round<small>The median of the peers' estimates.</small>"},
    };
    report_text_put(out, "<h2>Curves</h2>\n<p class=\"soft\">A line for each run, in its arm's "
                         "colour; of the peer that does worst, on the samples that a run is "
                         "evaluated on while it trains.</p>\n");
    if (!d->there[REPORT_GNUPLOT]) {
        report_text_put(out, "<p class=\"soft\">gnuplot is not installed (Debian: gnuplot-nox): no "
                             "curves here.</p>\n");
        return;
    }
    report_text_put(out, "<div class=\"charts\">\n");
    for (unsigned i = 0; i < sizeof curves / sizeof *curves; i++) {
        struct report_text script = {0};
        if (report_comparison_curve(&script, c, curves[i].axis, curves[i].drift))
            put_picture(out, d, &script, curves[i].caption, i);
        out->broken |= script.broken;
        report_text_close(&script);
    }
    report_text_put(out, "</div>\n");
}

/* ---- The table. ---- */

/* How people read each measure: shown is value * scale. */
static const struct
{
    const char *head, *format;
    double scale;
} columns[REPORT_MEASURES] = {
    [REPORT_M_ACCURACY] = {"accuracy, %", "%.2f", 100},
    [REPORT_M_TEST_LOSS] = {"test loss", "%.4f", 1},
    [REPORT_M_LOSS] = {"training loss", "%.4f", 1},
    [REPORT_M_DRIFT] = {"relative drift", "%.2e", 1},
    [REPORT_M_ROUNDS] = {"rounds", "%.0f", 1},
    [REPORT_M_SENT] = {"MB sent", "%.3f", 1e-6},
    [REPORT_M_SECONDS] = {"seconds", "%.2f", 1},
    [REPORT_M_BUDGET] = {NULL, "%.2f", 100},
    [REPORT_M_BUDGET + 1] = {NULL, "%.2f", 100},
    [REPORT_M_BUDGET + 2] = {NULL, "%.2f", 100},
    [REPORT_M_BUDGET + 3] = {NULL, "%.2f", 100},
};

static void put_number(struct report_text *out, int measure, double x)
{
    char text[64];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof text, columns[measure].format, columns[measure].scale * x);
#pragma GCC diagnostic pop
    report_text_put(out, text);
}

static void put_cell(struct report_text *out, int measure, const struct report_spread *s)
{
    report_text_print(out, "<td data-figure=\"%s\"", report_measure_name[measure]);
    if (!isfinite(s->mean)) {
        report_text_put(out, ">&ndash;</td>");
        return;
    }
    report_text_put(out, " data-value=\"");
    report_text_number(out, s->mean);
    report_text_put(out, "\">");
    put_number(out, measure, s->mean);
    if (isfinite(s->deviation)) {
        report_text_put(out, " <span class=\"soft\">&plusmn; ");
        put_number(out, measure, s->deviation);
        report_text_put(out, "</span>");
    }
    report_text_put(out, "</td>");
}

static void put_name(struct report_text *out, const struct report_comparison *c, size_t a)
{
    report_text_print(out, "<span class=\"swatch\" style=\"background:%s\"></span>",
                      report_chart_colours[a % REPORT_COLOURS]);
    report_text_put(out, "<span class=\"name\">");
    report_text_html(out, c->arm[a].name);
    report_text_put(out, "</span>");
}

/* The k-th column: what people ask for first is in sight on a narrow screen. */
static int measure_at(const struct report_comparison *c, int k)
{
    int n = (int)c->n_budgets;
    return k == 0 ? REPORT_M_ACCURACY : k <= n ? REPORT_M_BUDGET + k - 1 : k - n;
}

static void put_table(struct report_text *out, const struct report_comparison *c)
{
    int n = REPORT_M_BUDGET + (int)c->n_budgets;
    char words[REPORT_MEASURE_TEXT];
    report_text_put(out, "<div class=\"wide\"><table><tr><th>arm</th><th>seeds</th><th>lr</th>");
    for (int k = 0; k < n; k++) {
        int m = measure_at(c, k);
        if (m >= REPORT_M_BUDGET)
            report_comparison_words(c, (enum report_measure)m, words);
        report_text_print(out, "<th>%s</th>", m < REPORT_M_BUDGET ? columns[m].head : words);
    }
    report_text_put(out, "</tr>\n");
    for (size_t a = 0; a < c->n_arms; a++) {
        const struct report_arm *arm = &c->arm[a];
        report_text_put(out, "<tr><td>");
        put_name(out, c, a);
        report_text_print(out, "</td><td>%u of %u</td><td>", (unsigned)arm->n[REPORT_TRIAL_DONE],
                          (unsigned)c->n_seeds);
        report_text_html(out, arm->lr);
        report_text_put(out, arm->edge ? " <span class=\"bad\">(edge)</span></td>" : "</td>");
        for (int k = 0; k < n; k++)
            put_cell(out, measure_at(c, k), &arm->at[measure_at(c, k)]);
        report_text_put(out, "</tr>\n");
    }
    report_text_put(out, "</table></div>\n");
}

/* ---- The page. ---- */

static void put_best(struct report_text *out, const struct report_comparison *c,
                     enum report_measure measure)
{
    char words[REPORT_MEASURE_TEXT];
    size_t best = report_comparison_best(c, measure), n = 0;
    report_comparison_words(c, measure, words);
    report_text_print(out, "<li>Best %s: ", words);
    if (best == c->n_arms) {
        report_text_put(out, "<span class=\"soft\">unknown, as no arm has it of all its "
                             "seeds</span></li>\n");
        return;
    }
    put_name(out, c, best);
    bool known = isfinite(c->arm[best].at[measure].deviation);
    for (size_t a = 0; a < c->n_arms; a++)
        if (a != best
            && report_spread_differ(&c->arm[best].at[measure], &c->arm[a].at[measure])
                   == REPORT_DIFFER_TIE) {
            report_text_put(out, n++ > 0 ? ", " : "; not told apart from it: ");
            put_name(out, c, a);
        }
    size_t unknown = report_comparison_unknown(c, measure);
    if (unknown > 0)
        report_text_print(out,
                          "; unknown of %zu of %zu arms, which got there before they were "
                          "evaluated, or never",
                          unknown, c->n_arms);
    report_text_put(out, known ? "</li>\n"
                               : " <span class=\"soft\">(one seed: the noise is not "
                                 "known)</span></li>\n");
}

/* What is in no mean. */
static void put_missing(struct report_text *out, const struct report_comparison *c)
{
    for (size_t a = 0; a < c->n_arms; a++)
        for (uint32_t i = 0; i < c->n_seeds; i++) {
            const struct report_trial *t = &c->arm[a].trial[i];
            if (t->state == REPORT_TRIAL_DONE)
                continue;
            report_text_put(out, "<li>");
            put_name(out, c, a);
            report_text_print(out, ", seed %llu: <span class=\"bad\">%s</span> ",
                              (unsigned long long)(c->seed + i), report_trial_text[t->state]);
            report_text_html(out, t->verdict);
            report_text_put(out, "</li>\n");
        }
}

int report_comparison_page(struct report_text *out, const struct report_comparison *c,
                           const struct report_drawer *drawer)
{
    report_text_put(out, report_comparison_mark);
    report_text_put(out, head);
    report_text_put(out, report_page_style);
    report_text_put(out, "</style>\n</head>\n<body>\n<h1>");
    report_text_html(out, c->title);
    report_text_put(out, "</h1>\n<ul class=\"runs\">\n");
    put_best(out, c, REPORT_M_ACCURACY);
    for (uint32_t b = 0; b < c->n_budgets; b++)
        put_best(out, c, (enum report_measure)(REPORT_M_BUDGET + b));
    put_missing(out, c);
    report_text_put(out, "</ul>\n<h2>Arms</h2>\n<p class=\"soft\">");
    report_text_html(out, c->how);
    report_text_print(out,
                      " Means and deviations of a sample are of the seeds that ended with "
                      "consensus. Seconds are %s. Two arms are told apart where Welch's t test "
                      "does at 5 %%, of few seeds seldom. Rounds are with those of the last phase; "
                      "accuracy at a budget is that of evaluations in training.</p>\n",
                      c->simulated
                          ? "simulated, where each link and direction has a bandwidth of its "
                            "own: many neighbours cost no more of them than one"
                          : "by the clock");
    put_table(out, c);
    put_curves(out, c, drawer);
    report_text_put(out, "<footer>Made by hearsay " HEARSAY_VERSION
                         " from summary.json and metrics.jsonl of each run. A dash is what is not "
                         "known of one of the runs.</footer>\n</body>\n</html>\n");
    return out->broken ? -ENOMEM : 0;
}
