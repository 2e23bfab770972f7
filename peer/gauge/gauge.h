/* peer/gauge/gauge.h -- how fast some work goes, how long it still takes, and when to say so.
 *
 *   gauge_look(done, now) ... --> gauge_rate, gauge_left_s
 *
 *        a[0]          a[1]                   now
 *   ------|-------------|----------------------|-->     the rate is that since a[0], which is of
 *         <-- 5 s or more -->                           5 to 10 s ago where work gets done so often
 *
 * Lines for a log are few, whatever the length of the work: one at each tenth, but not two within a
 * second, and one after a silence of 5 s, of 10, of 20 and so on. Work whose length nobody knows (the
 * last phase of a run) has one whenever so much more is done as there was when it began, twice, four
 * times as much.
 */
#ifndef PEER_GAUGE_GAUGE_H
#define PEER_GAUGE_GAUGE_H

#include <stdbool.h>
#include <stdint.h>

enum { GAUGE_TENTHS = 10 };

#define GAUGE_WINDOW_S 5.0 /* Between two marks. */
#define GAUGE_LEAST_S  0.1 /* A rate is of so long at least. */
#define GAUGE_GAP_S    1.0 /* Between two lines. */
#define GAUGE_WAIT_S   5.0 /* The first silence. */

struct gauge_mark
{
    uint64_t done;
    double at_s;
};

/* Begin with zeros; wait_s may be set to another first silence. */
struct gauge
{
    bool begun, said;
    struct gauge_mark a[2]; /* The rate's marks; */
    struct gauge_mark last; /* the last look. */
    double said_s, wait_s;  /* The last line, and the silence after which the next one comes. */
    uint64_t part;          /* That line was in this tenth, */
    uint64_t more;          /* or at so much of what has no end. */
};

/* So much is done at this moment, in seconds of any clock that does not go back. Work that begins
 * anew (less is done than before) has a rate of its own. */
void gauge_look(struct gauge *g, uint64_t done, double now_s);

/* How much gets done a second: NaN where nothing is known yet. Falls while nothing gets done. */
double gauge_rate(const struct gauge *g);

/* Seconds to `total`; NaN where it is not known. 0: it is reached. */
double gauge_left_s(const struct gauge *g, uint64_t total);

/* Is a line due, of `done` of total (0: not known) and of `more` beyond that? If so it counts as
 * said. */
bool gauge_due(struct gauge *g, uint64_t done, uint64_t total, uint64_t more, double now_s);

/* "4.2 s", "42 s", "3:20", "2:05:10", "3 d 04:10"; "-" where it is not known. */
enum { GAUGE_TIME = 32 };
const char *gauge_time(char out[GAUGE_TIME], double seconds);

#endif
