/* peer/http/snapshot_exchange.c -- exchanges three snapshot buffers between two threads with atomic
 * operations. */
#include "peer/http/snapshot_exchange.h"

#include <errno.h>
#include <stdlib.h>

/* Bits of `middle`, the atomic index of the buffer that neither thread uses. PLACE: mask of the
 * index. FRESH: set if the HTTP thread has not read the snapshot in this buffer yet. */
enum { PLACE = 3, FRESH = 4 };

int snapshot_exchange_open(struct snapshot_exchange *b)
{
    *b = (struct snapshot_exchange){.back = 0, .front = 1};
    atomic_init(&b->middle, 2);
    b->place = calloc(SNAPSHOT_EXCHANGE_PLACES, sizeof *b->place);
    return b->place != NULL ? 0 : -ENOMEM;
}

void snapshot_exchange_close(struct snapshot_exchange *b)
{
    free(b->place);
    b->place = NULL;
}

struct snapshot *snapshot_exchange_blank(struct snapshot_exchange *b)
{
    return &b->place[b->back];
}

void snapshot_exchange_publish(struct snapshot_exchange *b)
{
    b->place[b->back].number = ++b->n;
    b->back = atomic_exchange(&b->middle, b->back | FRESH) & PLACE;
}

const struct snapshot *snapshot_exchange_read(struct snapshot_exchange *b)
{
    if (atomic_load(&b->middle) & FRESH)
        b->front = atomic_exchange(&b->middle, b->front) & PLACE;
    return &b->place[b->front];
}
