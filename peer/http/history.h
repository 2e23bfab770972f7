/* peer/http/history.h -- a run's curve in bounded memory: a thousand of its rounds at most.
 *
 * One round in `stride` is kept; when there is no more room every second one of these goes, and the
 * stride doubles. Of the rounds that share a place the last one stays, or the last that was
 * evaluated, as those are few. A point's figures are all of one round, as in metrics.jsonl. The
 * newest round is there beside them, whatever the stride.
 *
 *   rounds  1 2 3 4 5 6 7 8 9        stride 4, 8 was not evaluated and 6 was
 *   points        4     6     9      9 is the newest
 */
#ifndef PEER_HTTP_HISTORY_H
#define PEER_HTTP_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HISTORY_MAX = 1000 /* Points, the newest among them. */ };

/* Figures as in struct node_progress; NaN where not known. */
struct history_point
{
    uint64_t round, settle_rounds;
    double time_s, loss, accuracy;
    double relative_drift;
    uint64_t drift_round; /* Where relative_drift is known. */
    uint64_t
        accuracy_round; /* Where accuracy is: rounds of the model, the consensus phase's counted on. */
    uint64_t bytes_sent;
};

/* Begin with zeros. */
struct history
{
    struct history_point point[HISTORY_MAX];
    size_t n;                  /* Points that stay until they are thinned, */
    uint64_t thinned;          /* which has happened so often. */
    uint64_t n_here;           /* So many rounds share the place of point[n] so far, */
    struct history_point here; /* of which this one would stay. */
    struct history_point newest;
    bool any; /* newest is one. */
};

/* A round is done. O(1), but for O(HISTORY_MAX) each time that it is full. */
void history_add(struct history *h, const struct history_point *p);

/* Copy what there is of it; O(n). */
void history_copy(struct history *to, const struct history *from);

/* The newest round, unless it is the last of the points; NULL where there is none. */
const struct history_point *history_newest(const struct history *h);

#endif
