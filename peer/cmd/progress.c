/* peer/cmd/progress.c -- progress for people, and how figures look in words.
 *
 * A terminal gets a table that is redrawn in place: the cursor goes up by as many
 * lines as were drawn the last time. Anything else gets a line now and then. */
#include "peer/cmd/progress.h"

#include "nn/math/rng.h"

#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <uv.h>

#define LARGE_NUMBER 1e6 /* From here on digits after the point say nothing. */

enum {
    DRAW_MS = 100,
    SAY_MS = 5000,
    BAR = 30,              /* Characters between the brackets. */
    LARGE_FILE = 32 << 20, /* Reading so many bytes takes a while. */
    PATH_SHOWN = 60,       /* A terminal shows so much of a path, from its end. */
    DEAD_SHOWN = 100       /* Characters of a line that may name the dead. */
};

const char *cmd_progress_percent(char out[CMD_PROGRESS_TEXT], double x)
{
    return cmd_progress_number(out, "%.2f %%", 100 * x);
}

const char *cmd_progress_bytes(char out[CMD_PROGRESS_TEXT], uint64_t n)
{
    static const char *const unit[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    double x = (double)n;
    uint32_t i = 0;
    for (; x >= 1000 && i < 5; i++)
        x /= 1000;
    snprintf(out, CMD_PROGRESS_TEXT, "%.*f %s", i == 0 ? 0 : 2, x, unit[i]);
    return out;
}

const char *cmd_progress_number(char out[CMD_PROGRESS_TEXT], const char *format, double x)
{
    if (!isfinite(x))
        return strcpy(out, "-");
    snprintf(out, CMD_PROGRESS_TEXT, fabs(x) < LARGE_NUMBER ? format : "%.4g", x);
    return out;
}

const char *cmd_progress_drift(char out[CMD_PROGRESS_TEXT], const char *format, double x)
{
    return isfinite(x) ? cmd_progress_number(out, format, x) : strcpy(out, "unknown");
}

const char *cmd_progress_rounds(char out[CMD_PROGRESS_TEXT], uint64_t round, uint64_t rounds)
{
    if (rounds == 0)
        return strcpy(out, "-");
    snprintf(out, CMD_PROGRESS_TEXT, "%llu/%llu", (unsigned long long)round,
             (unsigned long long)rounds);
    return out;
}

/* All begin with one model: that they were together then is no news. */
static bool says_nothing(double x, uint64_t round)
{
    return !isfinite(x) || (x == 0 && round == 0);
}

const char *cmd_progress_drift_at(char out[CMD_PROGRESS_TEXT], double x, uint64_t round)
{
    if (says_nothing(x, round))
        return strcpy(out, "unknown");
    snprintf(out, CMD_PROGRESS_TEXT, "%.2e @%llu", x, (unsigned long long)round);
    return out;
}

const char *cmd_progress_drift_aged(char out[CMD_PROGRESS_TEXT], double x, uint64_t round,
                                    uint64_t age)
{
    if (says_nothing(x, round))
        return strcpy(out, "unknown");
    snprintf(out, CMD_PROGRESS_TEXT, "%.2e @%llu, %llu ago", x, (unsigned long long)round,
             (unsigned long long)age);
    return out;
}

/* What one line says of all peers that live; of the dead only their bytes and names. */
struct whole
{
    uint64_t round, rounds, settle_rounds, bytes_sent, drift_round;
    double loss_min, loss_max, accuracy_min, drift;
    const char *phase; /* That of the slowest peer. */
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

/* "  3 of 4 peers (dead: peer-2)", so that nobody takes the figures for those of all. */
static void say_dead(struct cmd_progress *p, const struct whole *w)
{
    if (w->n_dead > 0)
        fprintf(p->out, "  %u of %u peers (dead: %s)", (unsigned)(w->n - w->n_dead), (unsigned)w->n,
                w->dead);
}

static struct whole sum_up(const struct cmd_progress_row *row, uint32_t n)
{
    struct whole w = {.round = UINT64_MAX,
                      .loss_min = INFINITY,
                      .loss_max = -INFINITY,
                      .accuracy_min = INFINITY,
                      .drift = -INFINITY,
                      .phase = "dead",
                      .n = n};
    for (uint32_t i = 0; i < n; i++) {
        w.bytes_sent += row[i].bytes_sent;
        if (row[i].dead) {
            add_dead(&w, row[i].name);
            continue;
        }
        if (row[i].round < w.round || w.round == UINT64_MAX) {
            w.round = row[i].round;
            w.phase = row[i].phase;
        }
        w.rounds = row[i].rounds > w.rounds ? row[i].rounds : w.rounds;
        w.settle_rounds =
            row[i].settle_rounds > w.settle_rounds ? row[i].settle_rounds : w.settle_rounds;
        w.loss_min = fmin(w.loss_min, row[i].loss);
        w.loss_max = fmax(w.loss_max, row[i].loss);
        w.accuracy_min = fmin(w.accuracy_min, row[i].accuracy);
        if (row[i].relative_drift > w.drift) {
            w.drift = row[i].relative_drift;
            w.drift_round = row[i].drift_round;
        }
    }
    if (w.n_dead == n)
        w.round = 0;
    return w;
}

static void say(struct cmd_progress *p, const struct whole *w, double seconds)
{
    char a[CMD_PROGRESS_TEXT], b[CMD_PROGRESS_TEXT], c[CMD_PROGRESS_TEXT], d[CMD_PROGRESS_TEXT],
        e[CMD_PROGRESS_TEXT], r[CMD_PROGRESS_TEXT];
    fprintf(p->out, "%6.1f s  %-9s %s  loss %s .. %s  accuracy %s  relative drift %s  sent %s",
            seconds, w->phase, cmd_progress_rounds(r, w->round, w->rounds),
            cmd_progress_number(a, "%.4f", w->loss_min),
            cmd_progress_number(b, "%.4f", w->loss_max), cmd_progress_percent(c, w->accuracy_min),
            cmd_progress_drift_at(d, w->drift, w->drift_round),
            cmd_progress_bytes(e, w->bytes_sent));
    say_dead(p, w);
    fputc('\n', p->out);
    fflush(p->out);
}

static void draw_bar(struct cmd_progress *p, const struct whole *w, double seconds)
{
    double done = w->rounds > 0 ? (double)w->round / (double)w->rounds : 0;
    char bar[BAR + 1];
    for (int i = 0; i < BAR; i++)
        bar[i] = i < (int)(done * BAR) ? '=' : i == (int)(done * BAR) ? '>' : ' ';
    bar[BAR] = '\0';
    fprintf(p->out, "\033[K[%s] %3.0f %%  %llu/%llu rounds  %.1f s", bar, 100 * done,
            (unsigned long long)w->round, (unsigned long long)w->rounds, seconds);
    say_dead(p, w);
    fputc('\n', p->out);
}

static void draw_row(struct cmd_progress *p, const struct cmd_progress_row *r)
{
    char a[CMD_PROGRESS_TEXT], b[CMD_PROGRESS_TEXT], c[CMD_PROGRESS_TEXT], d[CMD_PROGRESS_TEXT],
        e[CMD_PROGRESS_TEXT];
    fprintf(p->out,
            "\033[K%-10s %-9s %6llu/%-6llu loss %-8s accuracy %-8s relative drift %-14s sent %-9s "
            "got %s\n",
            r->name, r->dead ? "dead" : r->phase, (unsigned long long)r->round,
            (unsigned long long)r->rounds, cmd_progress_number(a, "%.4f", r->loss),
            cmd_progress_percent(b, r->accuracy),
            cmd_progress_drift_at(c, r->relative_drift, r->drift_round),
            cmd_progress_bytes(d, r->bytes_sent), cmd_progress_bytes(e, r->bytes_received));
}

/* How many rows fit on the screen with the bar and a spare line: the cursor cannot go
 * up to a line that has scrolled away. */
static uint32_t rows_that_fit(const struct cmd_progress *p, uint32_t n)
{
    struct winsize size;
    uint32_t fit = 20;
    if (ioctl(fileno(p->out), TIOCGWINSZ, &size) == 0 && size.ws_row > 3)
        fit = size.ws_row - 3u;
    return n < fit ? n : fit;
}

static void draw(struct cmd_progress *p, const struct cmd_progress_row *row, uint32_t n,
                 double seconds)
{
    struct whole w = sum_up(row, n);
    uint32_t n_rows = rows_that_fit(p, n);
    if (p->n_lines > 0)
        fprintf(p->out, "\033[%uA\r", (unsigned)p->n_lines);
    fputs("\033[?7l", p->out); /* Long lines are cut: a wrapped one would spoil the count. */
    draw_bar(p, &w, seconds);
    for (uint32_t i = 0; i < n_rows; i++)
        draw_row(p, &row[i]);
    fputs("\033[?7h", p->out);
    p->n_lines = n_rows + 1;
    fflush(p->out);
}

void cmd_progress_open(struct cmd_progress *p, FILE *out)
{
    *p = (struct cmd_progress){.out = out, .terminal = isatty(fileno(out))};
    p->said_ns = uv_hrtime();
}

void cmd_progress_show(struct cmd_progress *p, const struct cmd_progress_row *row, uint32_t n,
                       double seconds, bool force)
{
    uint64_t now = uv_hrtime();
    uint64_t every = (p->terminal ? DRAW_MS : SAY_MS) * UINT64_C(1000000);
    uint64_t *last = p->terminal ? &p->drawn_ns : &p->said_ns;
    if (n == 0 || (!force && now - *last < every))
        return;
    *last = now;
    if (p->terminal) {
        draw(p, row, n, seconds);
    } else {
        struct whole w = sum_up(row, n);
        say(p, &w, seconds);
    }
}

void cmd_progress_break(struct cmd_progress *p)
{
    p->n_lines = 0;
}

void cmd_progress_read_end(struct cmd_progress_reading *r)
{
    if (r->drawn)
        fputs("\r\033[K", r->out);
    r->drawn = false;
}

/* A file is named once, however often it reports. */
static void say_reading(struct cmd_progress_reading *r, const char *path, uint64_t total)
{
    char size[CMD_PROGRESS_TEXT];
    uint64_t hash = rng_hash(path, strlen(path));
    if (total < LARGE_FILE || (hash == r->said_path && total == r->said_size))
        return;
    r->said_path = hash;
    r->said_size = total;
    fprintf(r->out, "reading %s (%s)\n", path, cmd_progress_bytes(size, total));
}

void cmd_progress_read(void *self, const char *path, uint64_t done, uint64_t total)
{
    struct cmd_progress_reading *r = self;
    char size[CMD_PROGRESS_TEXT];
    uint64_t now = uv_hrtime();
    size_t n = strlen(path);
    if (!isatty(fileno(r->out))) {
        say_reading(r, path, total);
        return;
    }
    if (r->drawn && now - r->drawn_ns < DRAW_MS * UINT64_C(1000000))
        return;
    r->drawn_ns = now;
    r->drawn = true;
    fprintf(r->out, "\r\033[Kreading %s%s  %s  %.0f %%", n > PATH_SHOWN ? "..." : "",
            n > PATH_SHOWN ? path + n - PATH_SHOWN : path, cmd_progress_bytes(size, total),
            total > 0 ? 100 * (double)done / (double)total : 100.0);
    fflush(r->out);
}

/* ---- The codec that --compress auto chose --------------------------------- */

/* A handful of rungs: a list is searched from its beginning. */
void cmd_progress_rung(struct cmd_progress_rungs *r, const char *rung, double excess)
{
    uint32_t i = 0;
    if (rung == NULL)
        return;
    while (i < r->n_specs && strcmp(r->spec[i], rung) != 0)
        i++;
    if (i == CMD_PROGRESS_RUNGS)
        return; /* A ladder has no more rungs. */
    r->spec[i] = rung;
    r->n_specs += i == r->n_specs;
    r->count[i]++;
    r->n_peers++;
    r->n_looked += isfinite(excess) ? 1 : 0;
}

void cmd_progress_rungs_say(const struct cmd_progress_rungs *r, FILE *out)
{
    if (r->n_peers == 0)
        return;
    fputs("codec of the last rounds: ", out);
    for (uint32_t i = 0; i < r->n_specs; i++) {
        fprintf(out, "%s%s", i > 0 ? ", " : "", r->spec[i]);
        if (r->n_specs > 1)
            fprintf(out, " (%u of %u peers)", (unsigned)r->count[i], (unsigned)r->n_peers);
    }
    fprintf(out, ", chosen by --compress auto%s\n", r->by_link ? ", as its link takes it" : "");
    if (r->n_looked == 0 && !r->by_link)
        fputs("the drift was not known before training ended (figures take a window of rounds, and "
              "come "
              "seldom for small models and without lock step): no drift chose the codec\n",
              out);
}
