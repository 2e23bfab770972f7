/* peer/progress/progress_rate.h -- progress rate of some work, time left, and when the next
 * progress line should be printed.
 *
 *   progress_rate_update(done, now) ... --> progress_rate_rate, progress_rate_left_s
 *
 *        a[0]          a[1]                   now
 *   ------|-------------|----------------------|-->
 *         <-- 5 s or more -->
 *
 * A mark is the amount of work done at one time. The rate is measured from mark a[0] to the last
 * update. If work is done without a pause, a[0] is 5 to 10 s old.
 *
 * A log gets few lines, however long the work takes: one line per tenth of the work, but at most
 * one per second. If no line was due for 5 s, one line is printed, the next after 10 s, then 20 s
 * and so on. Work of unknown length, such as the consensus phase of a run, is counted beyond
 * `total`; a line is printed each time this amount has more than doubled.
 */
#ifndef PEER_PROGRESS_PROGRESS_RATE_H
#define PEER_PROGRESS_PROGRESS_RATE_H

#include <stdbool.h>
#include <stdint.h>

enum { PROGRESS_RATE_TENTHS = 10 };

#define PROGRESS_RATE_WINDOW_S   5.0 /* Least time between two points of progress, in seconds. */
#define PROGRESS_RATE_RATE_MIN_S 0.1 /* Least time over which a rate is measured, in seconds. */
#define PROGRESS_RATE_GAP_S      1.0 /* Least time between two lines of progress, in seconds. */
/* If no line was printed for this time, in seconds, a line is printed. The time doubles after each
 * such line. */
#define PROGRESS_RATE_WAIT_S 5.0

/* A point of progress: the amount of work `done` at the time `at_s`, in seconds. */
struct progress_rate_mark
{
    uint64_t done;
    double at_s;
};

/* Progress of one piece of work. Set all bytes to zero before the first use. After that, `wait_s`
 * may be set to change the time after which a line is printed even if little work was done. */
struct progress_rate
{
    /* begun: progress_rate_update() was called at least once. said: progress_rate_line_due() was
     * called at least once. */
    bool begun, said;
    /* Two points of progress, the older first. The rate is measured from a[0] to `last`. */
    struct progress_rate_mark a[2];
    /* Progress at the last progress_rate_update(). */
    struct progress_rate_mark last;
    /* said_s: time when the last line was printed, in seconds. wait_s: a line is printed if no line
     * was printed for this time, in seconds. */
    double said_s, wait_s;
    /* Number of tenths of the work, 0 to 10, that were done when the last line was printed. */
    uint64_t part;
    /* Amount of work beyond `total` that was done when the last line was printed. */
    uint64_t more;
};

/* Records that `done` units are complete at time `now_s`, in seconds of any clock that never goes
 * back. If `done` decreases, the work has restarted and the rate is measured from this call. */
void progress_rate_update(struct progress_rate *g, uint64_t done, double now_s);

/* Returns the progress rate in units per second. NaN: not known yet. The rate falls while no work
 * is done. */
double progress_rate_rate(const struct progress_rate *g);

/* Returns the time left until `total` units are done, in seconds. 0: `total` is reached. NaN: not
 * known. */
double progress_rate_left_s(const struct progress_rate *g, uint64_t total);

/* Returns true if a progress line should be printed now, and then counts that line as printed.
 * `done`: units of work done, of `total` (0: not known). `more`: units done beyond `total`. */
bool progress_rate_line_due(struct progress_rate *g, uint64_t done, uint64_t total, uint64_t more,
                            double now_s);

/* Formats a duration in seconds: "4.2 s", "42 s", "3:20", "2:05:10", "3 d 04:10". "-" if the
 * duration is NaN, negative or longer than 30 years. */
enum { PROGRESS_RATE_TIME = 32 };
const char *progress_rate_time(char out[PROGRESS_RATE_TIME], double seconds);

#endif
