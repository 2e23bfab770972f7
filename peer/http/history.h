/* peer/http/history.h -- the curve of a run in bounded memory: at most 1,000 rounds.
 *
 * The history keeps one round in `stride`. When the array is full, every second point is removed and
 * the stride doubles. Among the rounds that share a place, the last evaluated round is kept, or the
 * last round if none was evaluated. All figures of a point belong to one round, as in metrics.jsonl.
 * The newest round is kept in addition to these points.
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
    uint64_t drift_round; /* Round that relative_drift describes. */
    uint64_t
        /* Step counter of the model that accuracy describes, including rounds of the consensus
         * phase. */
        accuracy_round;
    uint64_t bytes_sent;
};

/* Begin with zeros. */
struct history
{
    struct history_point point[HISTORY_MAX];
    /* The kept points. When the array is full, every second point is removed. */
    size_t n;
    uint64_t thinned;          /* Number of times that every second point was removed. */
    uint64_t n_here;           /* Rounds so far that share the place of point[n]. */
    struct history_point here; /* The point that represents these rounds so far. */
    struct history_point newest;
    bool any; /* newest is one. */
};

/* A round is done. O(1), but for O(HISTORY_MAX) each time that it is full. */
void history_add(struct history *h, const struct history_point *p);

/* Copy what there is of it; O(n). */
void history_copy(struct history *to, const struct history *from);

/* Returns the point of the newest round, or NULL if that round is the last one in `point` or
 * there is none. */
const struct history_point *history_newest(const struct history *h);

#endif
