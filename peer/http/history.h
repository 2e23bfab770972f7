/* peer/http/history.h -- the history of a run in bounded memory: at most 1,000 rounds.
 *
 * One round out of `stride` is stored. When the array is full, every second point is removed and
 * the stride doubles. Of each group of `stride` rounds the last evaluated round is stored, or the
 * last round if none was evaluated. All values of a point belong to one round, as in metrics.jsonl.
 * The newest round is stored in addition.
 *
 *   rounds  1 2 3 4 5 6 7 8 9        stride 4; 6 was evaluated, 8 was not
 *   points        4     6     9      9 is the newest
 */
#ifndef PEER_HTTP_HISTORY_H
#define PEER_HTTP_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HISTORY_MAX = 1000 /* Largest number of stored rounds, including the newest. */ };

/* Figures of one round, taken from struct node_progress. NaN: not known. */
struct history_point
{
    uint64_t round, settle_rounds;
    double time_s, loss, accuracy;
    double relative_drift;
    uint64_t drift_round; /* Number of the round that relative_drift describes. */
    /* Step counter of the model whose accuracy is given. Counts rounds of the consensus phase,
     * too. */
    uint64_t accuracy_round;
    uint64_t bytes_sent;
};

/* The history of a run. Set all bytes to zero before the first use. */
struct history
{
    struct history_point point[HISTORY_MAX];
    /* Number of points in `point`. */
    size_t n;
    /* Number of times that the stride (rounds for each stored point) has doubled. The stride is
     * 2^thinned. */
    uint64_t thinned;
    /* Number of rounds that were added so far to the group of rounds from which the next point is
     * made. */
    uint64_t n_here;
    /* Figures of the round that will be stored for the present group of rounds (each group gives
     * one point): the last round with an evaluation, else the last round. They become point[n] when
     * the group is complete. */
    struct history_point here;
    struct history_point newest;
    bool any; /* True once a round was added, so that `newest` is valid. */
};

/* Adds a completed round. O(1), or O(HISTORY_MAX) if the array becomes full. */
void history_add(struct history *h, const struct history_point *p);

/* Copies a history. O(n). */
void history_copy(struct history *to, const struct history *from);

/* Returns the newest round, if it is not in `point` yet. Otherwise, or if there is no round,
 * returns NULL. */
const struct history_point *history_newest(const struct history *h);

#endif
