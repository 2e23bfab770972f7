/* peer/http/history.c -- stores one point per `stride` rounds. The stride doubles when the array is
 * full. */
#include "peer/http/history.h"

#include <math.h>
#include <string.h>

enum {
    /* Largest number of points in the array `point`, which does not contain the newest round. The
     * number is even, because points are merged in pairs when the array is full. */
    ROOM = HISTORY_MAX - 2
};

/* Returns which of two neighbouring points is kept when they become one: the point with an
 * evaluation, else the later one. */
static const struct history_point *better(const struct history_point *a,
                                          const struct history_point *b)
{
    return isfinite(a->accuracy) && !isfinite(b->accuracy) ? a : b;
}

static void thin(struct history *h)
{
    for (size_t i = 0; i < h->n / 2; i++)
        h->point[i] = *better(&h->point[2 * i], &h->point[2 * i + 1]);
    h->n /= 2;
    h->thinned++;
}

void history_add(struct history *h, const struct history_point *p)
{
    h->here = h->n_here == 0 ? *p : *better(&h->here, p);
    h->newest = *p;
    h->any = true;
    if (++h->n_here < (uint64_t)1 << h->thinned)
        return;
    h->n_here = 0;
    h->point[h->n++] = h->here;
    if (h->n == ROOM)
        thin(h);
}

void history_copy(struct history *to, const struct history *from)
{
    memcpy(to->point, from->point, from->n * sizeof *from->point);
    to->n = from->n;
    to->thinned = from->thinned;
    to->n_here = from->n_here;
    to->here = from->here;
    to->newest = from->newest;
    to->any = from->any;
}

const struct history_point *history_newest(const struct history *h)
{
    const struct history_point *last = h->n > 0 ? &h->point[h->n - 1] : NULL;
    bool same = last != NULL && last->round == h->newest.round
                && last->settle_rounds == h->newest.settle_rounds;
    return h->any && !same ? &h->newest : NULL;
}
