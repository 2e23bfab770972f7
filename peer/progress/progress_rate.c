/* peer/progress/progress_rate.c -- measures a rate between two marks, and decides when a progress
 * line is printed. */
#include "peer/progress/progress_rate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Sets a new mark (amount of work and its time) only if work was done since the last mark. A pause
 * therefore lowers the measured rate and does not reset it. */
void progress_rate_update(struct progress_rate *g, uint64_t done, double now_s)
{
    struct progress_rate_mark now = {done, now_s};
    if (!g->begun || done < g->last.done)
        g->a[0] = g->a[1] = now;
    else if (done > g->a[1].done && now_s - g->a[1].at_s >= PROGRESS_RATE_WINDOW_S) {
        g->a[0] = g->a[1];
        g->a[1] = now;
    }
    g->begun = true;
    g->last = now;
}

double progress_rate_rate(const struct progress_rate *g)
{
    double passed_s = g->last.at_s - g->a[0].at_s;
    if (!g->begun || g->last.done == g->a[0].done || !(passed_s >= PROGRESS_RATE_RATE_MIN_S))
        return (double)NAN;
    return (double)(g->last.done - g->a[0].done) / passed_s;
}

double progress_rate_left_s(const struct progress_rate *g, uint64_t total)
{
    if (g->begun && g->last.done >= total)
        return 0;
    return (double)(total - g->last.done) / progress_rate_rate(g);
}

/* The first call of progress_rate_line_due() only starts the clock. The first line comes after the
 * first tenth of the work, or after the first interval without a line. */
bool progress_rate_line_due(struct progress_rate *g, uint64_t done, uint64_t total, uint64_t more,
                            double now_s)
{
    uint64_t part = total > 0 ? (uint64_t)(PROGRESS_RATE_TENTHS * (double)done / (double)total) : 0;
    if (g->wait_s == 0)
        g->wait_s = PROGRESS_RATE_WAIT_S;
    if (!g->said) {
        g->said = true;
        g->said_s = now_s;
    }
    double silent_s = now_s - g->said_s;
    bool silent = silent_s >= g->wait_s;
    bool due =
        silent || (silent_s >= PROGRESS_RATE_GAP_S && (part > g->part || more > 2 * g->more));
    if (!due)
        return false;
    if (silent)
        g->wait_s *= 2;
    g->said_s = now_s;
    g->part = part;
    g->more = more;
    return true;
}

const char *progress_rate_time(char out[PROGRESS_RATE_TIME], double seconds)
{
    double most = 1e9; /* Longest duration that is shown as a number, in seconds: 30 years. */
    if (!(seconds >= 0) || seconds > most)
        return strcpy(out, "-");
    if (seconds < 59.5) {
        snprintf(out, PROGRESS_RATE_TIME, "%.*f s", seconds < 9.95 ? 1 : 0, seconds);
        return out;
    }
    unsigned s = (unsigned)(seconds + 0.5), day = 24 * 3600;
    if (s < 3600)
        snprintf(out, PROGRESS_RATE_TIME, "%u:%02u", s / 60, s % 60);
    else if (s < day)
        snprintf(out, PROGRESS_RATE_TIME, "%u:%02u:%02u", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(out, PROGRESS_RATE_TIME, "%u d %02u:%02u", s / day, s / 3600 % 24, s / 60 % 60);
    return out;
}
