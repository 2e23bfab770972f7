/* peer/report/page_figures.c -- the tables of a report: what runs came to, and what each peer did. */
#include "peer/report/final.h"
#include "peer/report/page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN_MAX = 64 };

/* How people read it. */
enum form { PERCENT, LOSS, DRIFT, BYTES, COUNT, SECONDS };

static void for_people(char text[SHOWN_MAX], enum form form, double x)
{
    static const struct
    {
        double from;
        const char *unit;
    } sizes[] = {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}};
    if (fabs(x) >= 1e15) {
        snprintf(text, SHOWN_MAX, "%.4g", x);
        return;
    }
    switch (form) {
    case PERCENT:
        snprintf(text, SHOWN_MAX, "%.2f %%", 100 * x);
        return;
    case LOSS:
        snprintf(text, SHOWN_MAX, "%.4f", x);
        if (fabs(x) >= 1e6)
            snprintf(text, SHOWN_MAX, "%.4g", x);
        return;
    case DRIFT:
        snprintf(text, SHOWN_MAX, "%.3g", x);
        return;
    case BYTES:
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            if (x >= sizes[i].from) {
                snprintf(text, SHOWN_MAX, "%.2f %s", x / sizes[i].from, sizes[i].unit);
                return;
            }
        snprintf(text, SHOWN_MAX, "%.0f B", x);
        return;
    case COUNT:
        snprintf(text, SHOWN_MAX, "%.0f", x);
        return;
    case SECONDS:
        snprintf(text, SHOWN_MAX, x < 1e6 ? "%.2f" : "%.4g", x);
        return;
    }
}

/* A cell with the number of the file beside what is shown of it; a dash where nobody has said. */
static void put_cell(struct report_text *out, const char *figure, enum form form, double x)
{
    char shown[SHOWN_MAX];
    if (!isfinite(x)) {
        report_text_print(out, "<td data-figure=\"%s\">&ndash;</td>", figure);
        return;
    }
    for_people(shown, form, x);
    report_text_print(out, "<td data-figure=\"%s\" data-value=\"", figure);
    report_text_number(out, x);
    report_text_print(out, "\">%s</td>", shown);
}

/* ---- Of runs ---- */

/* A column: where its number is in a struct report_final. */
struct column
{
    const char *head, *figure;
    size_t at;
    enum form form;
};

#define AT(field) offsetof(struct report_final, field)
static const struct column columns[] = {
    {"accuracy, worst", "accuracy_min", AT(accuracy.low), PERCENT},
    {"best", "accuracy_max", AT(accuracy.high), PERCENT},
    {"test loss, best", "test_loss_min", AT(test_loss.low), LOSS},
    {"worst", "test_loss_max", AT(test_loss.high), LOSS},
    {"training loss, least", "loss_min", AT(loss.low), LOSS},
    {"greatest", "loss_max", AT(loss.high), LOSS},
    {"relative drift, exact", "relative_drift", AT(exact), DRIFT},
    {"estimated", "estimated_relative_drift", AT(estimated), DRIFT},
    {"sent", "bytes_sent", AT(sent), BYTES},
    {"rounds", "rounds", AT(rounds), COUNT},
    {"last phase", "settle_rounds", AT(settle_rounds), COUNT},
    {"skipped", "rounds_skipped", AT(skipped), COUNT},
    {"seconds", "seconds", AT(seconds), SECONDS},
    {"to simulate", "wall_s", AT(wall_s), SECONDS},
};
/* A peer has them, too, and its extremes are one. */
static const struct column peer_columns[] = {
    {"accuracy", "accuracy", AT(accuracy.low), PERCENT},
    {"test loss", "test_loss", AT(test_loss.low), LOSS},
    {"training loss", "loss", AT(loss.low), LOSS},
    {"relative drift, estimated", "relative_drift", AT(estimated), DRIFT},
    {"sent", "bytes_sent", AT(sent), BYTES},
    {"received", "bytes_received", AT(received), BYTES},
    {"rounds", "rounds", AT(rounds), COUNT},
    {"skipped", "rounds_skipped", AT(skipped), COUNT},
    {"seconds", "seconds", AT(seconds), SECONDS},
    {"exit code", "exit_code", AT(exit_code), COUNT},
};
#undef AT
enum {
    N_COLUMNS = sizeof columns / sizeof *columns,
    N_PEER_COLUMNS = sizeof peer_columns / sizeof *peer_columns
};

static double number_at(const struct report_final *f, size_t at)
{
    double x;
    memcpy(&x, (const char *)f + at, sizeof x);
    return x;
}

static void put_cells(struct report_text *out, const struct column *c, size_t n,
                      const struct report_final *f)
{
    for (size_t i = 0; i < n; i++)
        put_cell(out, c[i].figure, c[i].form, number_at(f, c[i].at));
}

static void put_heads(struct report_text *out, const struct column *c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        report_text_print(out, "<th>%s</th>", c[i].head);
}

/* Columns that no run has a number for are left out. */
static size_t choose(struct column chosen[N_COLUMNS], const struct report_run *runs, size_t n)
{
    size_t kept = 0;
    for (size_t c = 0; c < N_COLUMNS; c++) {
        bool any = false;
        for (size_t i = 0; i < n && !any; i++) {
            struct report_final f = report_final_of(&runs[i]);
            any = isfinite(number_at(&f, columns[c].at));
        }
        if (any)
            chosen[kept++] = columns[c];
    }
    return kept;
}

void report_page_figures(struct report_text *out, const struct report_run *runs, size_t n)
{
    struct column chosen[N_COLUMNS];
    size_t kept = choose(chosen, runs, n);
    report_text_put(out, "<h2>Final figures</h2>\n<div class=\"wide\"><table id=\"figures\">\n"
                         "<tr><th>run</th><th>peers</th>");
    put_heads(out, chosen, kept);
    report_text_put(out, "</tr>\n");
    for (size_t i = 0; i < n; i++) {
        struct report_final f = report_final_of(&runs[i]);
        report_text_print(out, "<tr data-run=\"%zu\"><td>", i);
        report_page_name(out, runs, i);
        report_text_put(out, "</td>");
        put_cell(out, "n_peers", COUNT, (double)runs[i].n_peers);
        put_cells(out, chosen, kept, &f);
        report_text_put(out, "</tr>\n");
    }
    report_text_put(out, "</table></div>\n");
}

/* ---- Of peers ---- */

void report_page_peers(struct report_text *out, const struct report_run *run)
{
    report_text_print(out,
                      "<details%s><summary>Its peers</summary>\n<div class=\"wide\">"
                      "<table class=\"peers\">\n<tr><th>place</th><th>peer</th>",
                      run->n_peers <= 16 ? " open" : "");
    put_heads(out, peer_columns, N_PEER_COLUMNS);
    report_text_put(out,
                    "<th>computing, s</th><th>waiting, s</th><th>mixing, s</th><th>the rest, s</th>"
                    "</tr>\n");
    for (size_t i = 0; i < run->n_peers; i++) {
        const struct report_peer *p = &run->peer[i];
        struct report_final f = report_final_peer(p);
        struct report_times t = report_final_times(p);
        report_text_print(out, "<tr data-peer=\"%zu\"><td>%zu</td><td>", i, i);
        report_text_html(out, p->name);
        report_text_put(out, "</td>");
        put_cells(out, peer_columns, N_PEER_COLUMNS, &f);
        put_cell(out, "compute_s", SECONDS, t.compute);
        put_cell(out, "wait_s", SECONDS, t.wait);
        put_cell(out, "mix_s", SECONDS, t.mix);
        put_cell(out, "rest_s", SECONDS, t.rest);
        report_text_put(out, "</tr>\n");
    }
    report_text_put(out, "</table></div></details>\n");
}
