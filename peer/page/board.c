/* peer/page/board.c -- three places that go round. */
#include "peer/page/board.h"

#include <errno.h>
#include <stdlib.h>

enum { PLACE = 3, FRESH = 4 /* Bits of `middle`. */ };

int board_open(struct board *b)
{
    *b = (struct board){.back = 0, .front = 1};
    atomic_init(&b->middle, 2);
    b->place = calloc(BOARD_PLACES, sizeof *b->place);
    return b->place != NULL ? 0 : -ENOMEM;
}

void board_close(struct board *b)
{
    free(b->place);
    b->place = NULL;
}

struct snapshot *board_blank(struct board *b)
{
    return &b->place[b->back];
}

void board_publish(struct board *b)
{
    b->place[b->back].number = ++b->n;
    b->back = atomic_exchange(&b->middle, b->back | FRESH) & PLACE;
}

const struct snapshot *board_read(struct board *b)
{
    if (atomic_load(&b->middle) & FRESH)
        b->front = atomic_exchange(&b->middle, b->front) & PLACE;
    return &b->place[b->front];
}
