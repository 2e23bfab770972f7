/* peer/report/page.c -- the report: its parts in their order, and pictures in their places. */
#include "peer/report/page.h"

#include "peer/report/final.h"
#include "peer/report/svg.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

const char report_page_mark[] = "<!DOCTYPE html>\n<!-- made by hearsay report -->\n";

static const char head[] =
    "<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
    "'unsafe-inline'\">\n<title>hearsay report</title>\n<style>\n";

/* A page under way. */
struct page
{
    struct report_text *out;
    const struct report_run *runs;
    size_t n;
    const struct report_drawer *drawer;
    unsigned pictures; /* So many are in it: each has its own names. */
};

void report_page_name(struct report_text *out, const struct report_run *runs, size_t i)
{
    report_text_print(out, "<span class=\"swatch\" style=\"background:%s\"></span>",
                      report_chart_colours[i % REPORT_COLOURS]);
    report_text_put(out, "<span class=\"name\">");
    report_text_html(out, runs[i].label);
    report_text_put(out, "</span>");
}

/* ---- Pictures ---- */

/* What stands in a picture's place where it could not be drawn. */
static void put_reason(struct page *p, const char *why)
{
    report_text_put(p->out, "<p class=\"bad\">Not drawn: ");
    report_text_html(p->out, why);
    report_text_put(p->out, "</p>");
}

/* A figure: our own caption, and what the program makes of the script. */
static int put_picture(struct page *p, enum report_program program,
                       const struct report_text *script, const char *caption)
{
    struct report_text drawn = {0};
    char why[REPORT_WHY] = "", prefix[16];
    int err = p->drawer->draw(p->drawer->self, program, script, &drawn, why);
    snprintf(prefix, sizeof prefix, "p%u", p->pictures++);
    report_text_print(p->out, "<figure%s><figcaption>%s</figcaption>\n",
                      program == REPORT_NEATO ? " class=\"graph\"" : "", caption);
    if (err < 0)
        put_reason(p, why);
    else if (drawn.n == 0 || !report_svg_embed(p->out, drawn.bytes, drawn.n, prefix))
        put_reason(p, "the program gave no whole picture");
    report_text_put(p->out, "</figure>\n");
    report_text_close(&drawn);
    return err == -ENOMEM ? err : 0;
}

static void put_missing(struct page *p, const char *program, const char *package, const char *what)
{
    report_text_print(p->out,
                      "<p class=\"soft\">%s is not installed (Debian: %s): no %s here.</p>\n",
                      program, package, what);
}

static int put_curves(struct page *p)
{
    int err = 0;
    report_text_put(p->out, "<h2>Curves</h2>\n");
    if (!p->drawer->there[REPORT_GNUPLOT]) {
        put_missing(p, "gnuplot", "gnuplot-nox", "curves and bars");
        return 0;
    }
    report_text_print(p->out,
                      "<p class=\"soft\">Of more than %d peers: the band from the least to the "
                      "greatest of each round, and the median.</p>\n<div class=\"charts\">\n",
                      REPORT_LINES);
    for (const struct report_curve *c = report_chart_curves; c->title != NULL && err == 0; c++) {
        struct report_text script = {0};
        char caption[512];
        snprintf(caption, sizeof caption, "%s<small>%s</small>", c->title, c->note);
        int any = report_chart_curve(&script, c, p->runs, p->n);
        err = any > 0 ? put_picture(p, REPORT_GNUPLOT, &script, caption) : any;
        report_text_close(&script);
    }
    report_text_put(p->out, "</div>\n");
    return err;
}

/* The words in a caption beside their colours. */
static void caption_of(char out[512], const char *title, const char *const *words,
                       const char *const *colours, size_t n)
{
    int at = snprintf(out, 512, "%s<small>", title);
    for (size_t i = 0; i < n; i++)
        at += snprintf(out + at, 512 - (size_t)at,
                       "<span class=\"swatch\" style=\"background:%s\"></span>%s%s", colours[i],
                       words[i], i + 1 < n ? " &nbsp; " : "");
    snprintf(out + at, 512 - (size_t)at, "</small>");
}

static int put_bars(struct page *p, const struct report_run *run)
{
    static const char *const parts[] = {"computing", "waiting", "mixing", "the rest"};
    static const char *const ways[] = {"sent", "received"};
    const char *const two[] = {report_chart_colours[0], report_chart_parts[1]};
    struct report_text script = {0};
    char caption[512];
    int err = 0;
    bool simulated = isfinite(run->end.at[REPORT_F_SIMULATED_S]);
    caption_of(caption,
               simulated ? "Where virtual time went: steps are in the rest" : "Where the time went",
               parts, report_chart_parts, 4);
    if (report_chart_times(&script, run))
        err = put_picture(p, REPORT_GNUPLOT, &script, caption);
    report_text_close(&script);
    caption_of(caption, "Bytes at the sockets", ways, two, 2);
    if (err == 0 && report_chart_bytes(&script, run))
        err = put_picture(p, REPORT_GNUPLOT, &script, caption);
    report_text_close(&script);
    return err;
}

static int put_graph(struct page *p, const struct report_run *run)
{
    struct report_text script = {0};
    char why[REPORT_WHY];
    int any = report_chart_graph(&script, run, why), err = any < 0 ? any : 0;
    if (any > 0 && p->drawer->there[REPORT_NEATO])
        err =
            put_picture(p, REPORT_NEATO, &script,
                        "The graph<small>Of all members alive, by their places in the sorted list "
                        "of members.</small>");
    else if (any > 0)
        put_missing(p, "graphviz", "graphviz", "graph");
    else if (why[0] != '\0')
        report_text_print(p->out, "<p class=\"soft\">%s</p>\n", why);
    report_text_close(&script);
    return err;
}

/* ---- The page ---- */

static void put_verdicts(struct page *p)
{
    report_text_put(p->out, "<h1>hearsay report</h1>\n<ul class=\"runs\">\n");
    for (size_t i = 0; i < p->n; i++) {
        const struct report_run *run = &p->runs[i];
        double code = run->end.at[REPORT_F_EXIT_CODE];
        report_text_put(p->out, "<li>");
        report_page_name(p->out, p->runs, i);
        report_text_print(p->out, ": <span class=\"%s\">",
                          !isfinite(code) ? "soft"
                          : code == 0     ? "good"
                                          : "bad");
        if (run->end.verdict[0] != '\0')
            report_text_html(p->out, run->end.verdict);
        else if (!run->end.there)
            report_text_put(p->out, "no summary.json: it has not ended, or not well");
        else
            report_text_put(p->out, "ended; nothing to agree on");
        if (isfinite(code))
            report_text_print(p->out, "</span> <span class=\"soft\">(exit code %.9g)", code);
        report_text_put(p->out, "</span></li>\n");
    }
    report_text_put(p->out, "</ul>\n");
}

static int put_run(struct page *p, size_t i)
{
    const struct report_run *run = &p->runs[i];
    report_text_put(p->out, "<h2>");
    report_page_name(p->out, p->runs, i);
    report_text_put(p->out, "</h2>\n<div class=\"charts\">\n");
    int err = p->drawer->there[REPORT_GNUPLOT] ? put_bars(p, run) : 0;
    if (err == 0)
        err = put_graph(p, run);
    report_text_put(p->out, "</div>\n");
    report_page_peers(p->out, run);
    return err;
}

int report_page_write(struct report_text *out, const struct report_run *runs, size_t n,
                      const struct run_trainer *trainer, const struct report_drawer *drawer)
{
    struct page p = {.out = out, .runs = runs, .n = n, .drawer = drawer};
    report_text_put(out, report_page_mark);
    report_text_put(out, head);
    report_text_put(out, report_page_style);
    report_text_put(out, "</style>\n</head>\n<body>\n");
    put_verdicts(&p);
    report_page_settings(out, runs, n, trainer);
    report_page_figures(out, runs, n);
    int err = put_curves(&p);
    for (size_t i = 0; i < n && err == 0; i++)
        err = put_run(&p, i);
    report_page_all_settings(out, runs, n);
    report_text_put(out, "<footer>Made by hearsay " HEARSAY_VERSION
                         " from summary.json and metrics.jsonl of each run. A dash is what no file "
                         "says. Seconds and bytes are over all starts of a run.</footer>\n"
                         "</body>\n</html>\n");
    return err < 0 ? err : out->broken ? -ENOMEM : 0;
}
