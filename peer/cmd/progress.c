/* peer/cmd/progress.c -- draws a progress bar and a table of the peers on a terminal, or prints
 * plain lines elsewhere.
 *
 * On a terminal the cursor moves up by the number of lines drawn before, and the lines are drawn
 * again. A dumb terminal and all other outputs get lines without control characters. peer/progress
 * decides when such a line is printed.
 */
#include "peer/cmd/progress.h"

#include "nn/math/number.h"
#include "nn/math/rng.h"
#include "peer/progress/progress_line.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <uv.h>

enum {
    DRAW_MS = 100,
    COLUMNS = 80, /* Assumed width of a terminal that does not report its width, in characters. */
    ROWS = 20,
    /* Number of screen rows that the table leaves free: the bar, the row of the cursor, and one
     * more row. */
    SPARE_ROWS = 3,
    /* Size of a file in bytes from which its reading is announced, because it takes long. */
    LARGE_FILE = 32 << 20,
    /* Largest number of characters that are shown of a path. Of a longer path the end is shown. */
    PATH_SHOWN = 60,
    DEAD_SHOWN = 100, /* Size of the buffer for the names of dead peers, in bytes. */
    FIGURE = 96       /* Size of the buffer for one figure of the progress line, in bytes. */
};

/* The progress of reading a file is shown only after this time, in seconds: read_draw_s on a
 * terminal, read_say_s elsewhere. */
static const double read_draw_s = 0.3, read_say_s = 1;

static const char consensus[] = "consensus", training[] = "training";

bool cmd_progress_terminal(FILE *out)
{
    const char *term = getenv("TERM");
    return isatty(fileno(out)) && term != NULL && term[0] != '\0' && strcmp(term, "dumb") != 0;
}

static struct winsize screen(FILE *out)
{
    struct winsize size = {0};
    (void)ioctl(fileno(out), TIOCGWINSZ, &size);
    if (size.ws_col == 0)
        size.ws_col = COLUMNS;
    if (size.ws_row <= SPARE_ROWS)
        size.ws_row = ROWS + SPARE_ROWS;
    return size;
}

/* ---- Figures of the line for all peers ---- */

/* Figures of all live peers together. Of dead peers, only the bytes and the names are included. */
struct whole
{
    uint64_t round, rounds, settle_rounds, bytes_sent, drift_round, accuracy_round,
        accuracy_samples;
    double loss_min, loss_max, accuracy_min, accuracy_max, drift;
    /* Live peer with the lowest round. NULL: no peer is alive. */
    const struct cmd_progress_row *slowest;
    uint32_t n, n_dead;
    char dead[DEAD_SHOWN];
};

static void add_dead(struct whole *w, const char *name)
{
    size_t at = strlen(w->dead);
    w->n_dead++;
    if (at + strlen(name) + 3 < sizeof w->dead)
        snprintf(w->dead + at, sizeof w->dead - at, "%s%s", at > 0 ? ", " : "", name);
    else if (at > 0 && w->dead[at - 1] != '.')
        snprintf(w->dead + at, sizeof w->dead - at, "..");
}

static void add_live_peer(struct whole *w, const struct cmd_progress_row *row)
{
    if (w->slowest == NULL || row->round < w->round) {
        w->round = row->round;
        w->slowest = row;
    }
    w->rounds = row->rounds > w->rounds ? row->rounds : w->rounds;
    w->settle_rounds =
        row->settle_rounds > w->settle_rounds ? row->settle_rounds : w->settle_rounds;
    w->loss_min = fmin(w->loss_min, row->loss);
    w->loss_max = fmax(w->loss_max, row->loss);
    w->accuracy_max = fmax(w->accuracy_max, row->accuracy);
    if (row->accuracy < w->accuracy_min) {
        w->accuracy_min = row->accuracy;
        w->accuracy_round = row->accuracy_round;
        w->accuracy_samples = row->accuracy_samples;
    }
    if (row->relative_drift > w->drift) {
        w->drift = row->relative_drift;
        w->drift_round = row->drift_round;
    }
}

static struct whole sum_up(const struct cmd_progress_row *row, uint32_t n)
{
    struct whole w = {.loss_min = INFINITY,
                      .loss_max = -INFINITY,
                      .accuracy_min = INFINITY,
                      .accuracy_max = -INFINITY,
                      .drift = -INFINITY,
                      .n = n};
    for (uint32_t i = 0; i < n; i++) {
        w.bytes_sent += row[i].bytes_sent;
        if (row[i].dead)
            add_dead(&w, row[i].name);
        else
            add_live_peer(&w, &row[i]);
    }
    return w;
}

static const char *phase_of(const struct cmd_progress_row *r)
{
    return cmd_progress_phase(r->phase, r->round, r->rounds);
}

static bool in_phase(const struct whole *w, const char *phase)
{
    return w->slowest != NULL && strcmp(w->slowest->phase, phase) == 0;
}

static double share_of(const struct whole *w)
{
    return w->rounds > 0 ? (double)w->round / (double)w->rounds : 0;
}

/* ---- Parts of the line, most important first ---- */

static void add_head(struct progress_line *l, const struct whole *w)
{
    char full[FIGURE];
    const char *phase = w->slowest != NULL ? phase_of(w->slowest) : "dead";
    if (w->slowest != NULL && w->slowest->head[0] != '\0') {
        gauge_add(l, w->slowest->head, "");
    } else if (in_phase(w, consensus)) {
        snprintf(full, sizeof full, "%s: %llu round%s", phase, (unsigned long long)w->settle_rounds,
                 number_plural(w->settle_rounds));
        gauge_add(l, full, full);
    } else {
        gauge_add(l, phase, in_phase(w, training) ? "" : phase);
    }
}

static void add_count(struct progress_line *l, const struct whole *w)
{
    char full[FIGURE], rounds[CMD_PROGRESS_TEXT], percent[FIGURE];
    if (in_phase(w, consensus))
        return;
    snprintf(percent, sizeof percent, "%.0f %%", floor(100 * share_of(w)));
    snprintf(full, sizeof full, "round %s", cmd_progress_rounds(rounds, w->round, w->rounds));
    /* The short form of the progress line leaves out the percentage, because the bar also shows
     * it. */
    if (w->rounds > 0)
        gauge_add(l, percent, "");
    gauge_add(l, full, rounds);
}

static void add_rate(struct progress_line *l, double rate)
{
    char full[FIGURE];
    if (!isfinite(rate))
        return;
    int digits = rate >= 99.5 ? 0 : rate >= 9.95 ? 1 : 2;
    if (rate < 0.1)
        snprintf(full, sizeof full, "%.3g s a round", 1 / rate);
    else
        snprintf(full, sizeof full, "%.*f rounds/s", digits, rate);
    /* The short form of the progress line leaves out the rate, because the line shows the remaining
     * time. */
    gauge_add(l, full, "");
}

static void add_time(struct progress_line *l, double seconds, double left_s)
{
    char full[FIGURE], brief[FIGURE], a[PROGRESS_RATE_TIME], b[PROGRESS_RATE_TIME];
    bool known = isfinite(left_s) && left_s > 0;
    progress_rate_time(a, seconds);
    progress_rate_time(b, left_s);
    snprintf(full, sizeof full, "%s%s%s%s", a, known ? ", " : "", known ? b : "",
             known ? " left" : "");
    snprintf(brief, sizeof brief, "%s%s", known ? b : a, known ? " left" : "");
    gauge_add(l, full, brief);
}

static void add_loss(struct progress_line *l, const struct whole *w)
{
    char full[FIGURE], brief[FIGURE], a[CMD_PROGRESS_TEXT], b[CMD_PROGRESS_TEXT];
    cmd_progress_number(a, "%.4f", w->loss_min);
    cmd_progress_number(b, "%.4f", w->loss_max);
    bool range = w->n > 1;
    snprintf(full, sizeof full, "loss %s%s%s", a, range ? " .. " : "", range ? b : "");
    snprintf(brief, sizeof brief, "loss %s", cmd_progress_number(a, "%.3g", w->loss_max));
    gauge_add(l, full, brief);
}

static void add_accuracy(struct progress_line *l, const struct whole *w)
{
    char full[GAUGE_FIGURE], brief[FIGURE], a[CMD_PROGRESS_TEXT], b[CMD_PROGRESS_TEXT];
    char on[32] = "";
    if (!isfinite(w->accuracy_min))
        return;
    if (w->accuracy_samples > 0)
        snprintf(on, sizeof on, " on %llu", (unsigned long long)w->accuracy_samples);
    cmd_progress_percent(a, w->accuracy_min);
    cmd_progress_percent(b, w->accuracy_max);
    bool range = strcmp(a, b) != 0;
    snprintf(full, sizeof full, "accuracy %s%s%s%s @%llu", a, range ? " .. " : "", range ? b : "",
             on, (unsigned long long)w->accuracy_round);
    snprintf(brief, sizeof brief, "acc %s", a);
    gauge_add(l, full, brief);
}

static void add_drift(struct progress_line *l, const struct whole *w)
{
    char full[FIGURE], brief[FIGURE], a[CMD_PROGRESS_TEXT], b[CMD_PROGRESS_TEXT], wanted[24] = "";
    const struct cmd_progress_row *s = w->slowest;
    if (s == NULL || s->no_drift)
        return;
    cmd_progress_drift_at(a, w->drift, w->drift_round);
    if (in_phase(w, consensus) && s->wanted_drift > 0)
        snprintf(wanted, sizeof wanted, ", target %.2g", s->wanted_drift);
    if (s->has_exact)
        snprintf(full, sizeof full, "relative drift %s exact, %s estimated%s",
                 cmd_progress_drift(b, "%.2e", s->exact_drift), a, wanted);
    else
        snprintf(full, sizeof full, "relative drift %s%s", a, wanted);
    snprintf(brief, sizeof brief, "drift %s%s",
             cmd_progress_drift(b, "%.1e", s->has_exact ? s->exact_drift : w->drift), wanted);
    gauge_add(l, full, brief);
}

/* Adds a text such as "3 of 4 peers (dead: peer-2)", so that users know that the figures leave out
 * some peers. */
static void add_dead_peers(struct progress_line *l, const struct whole *w)
{
    char full[DEAD_SHOWN + FIGURE + 16], brief[FIGURE];
    if (w->n_dead == 0)
        return;
    snprintf(brief, sizeof brief, "%u of %u peers", (unsigned)(w->n - w->n_dead), (unsigned)w->n);
    snprintf(full, sizeof full, "%s (dead: %s)", brief, w->dead);
    gauge_add(l, full, brief);
}

static void add_rest(struct progress_line *l, const struct whole *w)
{
    char full[FIGURE], a[CMD_PROGRESS_TEXT];
    if (w->bytes_sent > 0) {
        snprintf(full, sizeof full, "sent %s", cmd_progress_bytes(a, w->bytes_sent));
        gauge_add(l, full, full);
    }
    if (w->slowest != NULL && w->slowest->tail[0] != '\0')
        gauge_add(l, w->slowest->tail, w->slowest->tail);
}

static void figures_of(struct progress_line *l, const struct progress_rate *g,
                       const struct whole *w, double seconds)
{
    bool trains = w->rounds > 0 && w->round < w->rounds && !in_phase(w, consensus);
    *l = (struct progress_line){.n = 0};
    add_head(l, w);
    add_count(l, w);
    if (trains)
        add_rate(l, progress_rate_rate(g));
    add_time(l, seconds, trains ? progress_rate_left_s(g, w->rounds) : 0);
    add_dead_peers(l, w);
    if (!in_phase(w, consensus))
        add_loss(l, w);
    if (!in_phase(w, consensus))
        add_accuracy(l, w);
    add_drift(l, w);
    add_rest(l, w);
}

/* ---- Drawing the display ---- */

static void draw_row(struct cmd_progress *p, const struct cmd_progress_row *r, uint32_t columns)
{
    char line[GAUGE_LINE], a[CMD_PROGRESS_TEXT], b[CMD_PROGRESS_TEXT], c[CMD_PROGRESS_TEXT],
        d[CMD_PROGRESS_TEXT], e[CMD_PROGRESS_TEXT];
    snprintf(line, sizeof line,
             "%-10s %-9s %6llu/%-6llu loss %-8s accuracy %-8s relative drift %-14s sent %-9s "
             "got %s",
             r->name, r->dead ? "dead" : phase_of(r), (unsigned long long)r->round,
             (unsigned long long)r->rounds, cmd_progress_number(a, "%.4f", r->loss),
             cmd_progress_percent(b, r->accuracy),
             cmd_progress_drift_at(c, r->relative_drift, r->drift_round),
             cmd_progress_bytes(d, r->bytes_sent), cmd_progress_bytes(e, r->bytes_received));
    fprintf(p->out, "\033[K%.*s\n", (int)columns - 1, line);
}

/* Draws the bar and the table. The table has only as many rows as fit on the screen, because the
 * cursor cannot move up to a line that has scrolled away. Lines are cut to the width of the screen,
 * because a wrapped line would take more than one row. */
static void draw(struct cmd_progress *p, const struct progress_line *l, double share,
                 const struct cmd_progress_row *row, uint32_t n)
{
    char line[GAUGE_LINE];
    struct winsize size = screen(p->out);
    uint32_t fit = (uint32_t)size.ws_row - SPARE_ROWS, n_rows = n == 1 ? 0 : n < fit ? n : fit;
    gauge_draw(l, share, size.ws_col, line);
    if (p->n_lines > 0)
        fprintf(p->out, "\033[%uA", (unsigned)p->n_lines);
    fprintf(p->out, "\r\033[K%s", line);
    for (uint32_t i = 0; i < n_rows; i++) {
        if (i == 0)
            fputc('\n', p->out);
        draw_row(p, &row[i], size.ws_col);
    }
    p->n_lines = n_rows > 0 ? n_rows + 1 : 0;
    p->drawn = true;
    fflush(p->out);
}

void cmd_progress_open(struct cmd_progress *p, FILE *out)
{
    *p = (struct cmd_progress){.out = out, .terminal = cmd_progress_terminal(out)};
}

/* Measures the rate by the round of the slowest peer, once every live peer has reported. Before its
 * first report a peer's round is unknown: a peer that resumes a run does not begin at round 0. */
static void measure_rate(struct cmd_progress *p, const struct whole *w, double seconds)
{
    if (w->slowest != NULL && w->slowest->rounds > 0)
        progress_rate_update(&p->gauge, w->round, seconds);
}

/* The progress is computed at most once every DRAW_MS, however often this function is called. */
bool cmd_progress_due(struct cmd_progress *p, const struct cmd_progress_row *row, uint32_t n,
                      double seconds)
{
    uint64_t now = uv_hrtime();
    if (n == 0 || now - p->looked_ns < DRAW_MS * UINT64_C(1000000))
        return false;
    p->looked_ns = now;
    struct whole w = sum_up(row, n);
    measure_rate(p, &w, seconds);
    return progress_rate_line_due(&p->gauge, w.round, w.rounds, w.settle_rounds, seconds)
           || p->terminal;
}

void cmd_progress_show(struct cmd_progress *p, const struct cmd_progress_row *row, uint32_t n,
                       double seconds, bool force)
{
    struct progress_line l;
    char line[GAUGE_LINE];
    if (n == 0 || (!force && !cmd_progress_due(p, row, n, seconds)))
        return;
    struct whole w = sum_up(row, n);
    measure_rate(p, &w, seconds);
    figures_of(&l, &p->gauge, &w, seconds);
    if (p->terminal) {
        draw(p, &l, share_of(&w), row, n);
        return;
    }
    gauge_plain(&l, line);
    fprintf(p->out, "%s\n", line);
    fflush(p->out);
}

void cmd_progress_end_line(struct cmd_progress *p)
{
    if (p->drawn && p->n_lines == 0)
        fputc('\n', p->out);
    p->n_lines = 0;
    p->drawn = false;
}

/* ---- Showing progress while data are read ---- */

void cmd_progress_read_end(struct cmd_progress_reading *r)
{
    if (r->drawn)
        fputs("\r\033[K", r->out);
    r->drawn = false;
}

/* Starts the progress measurement again if another file than in the last call is read. */
static void begin_file(struct cmd_progress_reading *r, const char *path, uint64_t total,
                       uint64_t now)
{
    char size[CMD_PROGRESS_TEXT];
    uint64_t hash = rng_hash(path, strlen(path));
    if (r->begin_ns != 0 && hash == r->path && total == r->size)
        return;
    r->path = hash;
    r->size = total;
    r->begin_ns = now;
    r->gauge = (struct progress_rate){.wait_s = read_say_s};
    if (total >= LARGE_FILE && !cmd_progress_terminal(r->out))
        fprintf(r->out, "reading %s (%s)\n", path, cmd_progress_bytes(size, total));
}

static void reading_line(struct progress_line *l, const struct cmd_progress_reading *r,
                         const char *path, uint64_t done)
{
    char full[GAUGE_FIGURE], a[CMD_PROGRESS_TEXT], b[CMD_PROGRESS_TEXT];
    double rate = progress_rate_rate(&r->gauge);
    size_t n = strlen(path);
    *l = (struct progress_line){.n = 0};
    snprintf(full, sizeof full, "reading %s%s", n > PATH_SHOWN ? "..." : "",
             n > PATH_SHOWN ? path + n - PATH_SHOWN : path);
    gauge_add(l, full, "reading");
    snprintf(full, sizeof full, "%.0f %%",
             r->size > 0 ? floor(100 * (double)done / (double)r->size) : 100.0);
    gauge_add(l, full, full);
    snprintf(full, sizeof full, "%s of %s", cmd_progress_bytes(a, done),
             cmd_progress_bytes(b, r->size));
    gauge_add(l, full, full);
    if (isfinite(rate)) {
        snprintf(full, sizeof full, "%s/s", cmd_progress_bytes(a, (uint64_t)rate));
        gauge_add(l, full, full);
    }
    add_time(l, r->gauge.last.at_s, progress_rate_left_s(&r->gauge, r->size));
}

void cmd_progress_read(void *self, const char *path, uint64_t done, uint64_t total)
{
    struct cmd_progress_reading *r = self;
    struct progress_line l;
    char line[GAUGE_LINE];
    uint64_t now = uv_hrtime();
    bool terminal = cmd_progress_terminal(r->out);
    begin_file(r, path, total, now);
    double seconds = (double)(now - r->begin_ns) * 1e-9;
    progress_rate_update(&r->gauge, done, seconds);
    /* No progress is shown for a file that is read in less than read_draw_s (on a terminal) or
     * read_say_s (elsewhere). */
    bool due = terminal ? seconds >= read_draw_s
                              && (!r->drawn || now - r->drawn_ns >= DRAW_MS * UINT64_C(1000000))
                        : progress_rate_line_due(&r->gauge, 0, 0, 0, seconds);
    if (!due)
        return;
    reading_line(&l, r, path, done);
    r->drawn_ns = now;
    if (terminal) {
        gauge_draw(&l, total > 0 ? (double)done / (double)total : 1, screen(r->out).ws_col, line);
        r->drawn = true;
        fprintf(r->out, "\r\033[K%s", line);
    } else {
        gauge_plain(&l, line);
        fprintf(r->out, "%s\n", line);
    }
    fflush(r->out);
}
