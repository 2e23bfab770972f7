/* peer/page/board.h -- the loop's last word, for another thread: neither waits for the other.
 *
 *   loop thread                                      HTTP thread
 *   board_blank() ... fill ... board_publish()       board_read()
 *        [ back ]  <---swap--->  [ middle ]  <---swap--->  [ front ]
 *
 * Three places go round: one is being written, one is the newest whole one, one is being read. A
 * swap is one atomic exchange, so that the loop never stands still for a reader, and a reader has
 * a whole snapshot for as long as it likes.
 */
#ifndef PEER_PAGE_BOARD_H
#define PEER_PAGE_BOARD_H

#include "peer/page/snapshot.h"

#include <stdatomic.h>

enum { BOARD_PLACES = 3 };

struct board
{
    struct snapshot *place; /* BOARD_PLACES of them. */
    unsigned back;          /* The loop thread's. */
    unsigned front;         /* The HTTP thread's. */
    atomic_uint middle;     /* Neither's: a place, and whether it has not been read yet. */
    uint64_t n;             /* Published so far; the loop thread's. */
};

/* 0 or -ENOMEM. */
int board_open(struct board *b);
void board_close(struct board *b);

/* Where the next snapshot is to be written: it holds an older one, or zeros. */
struct snapshot *board_blank(struct board *b);
/* It is whole: numbers it. */
void board_publish(struct board *b);

/* The newest that is whole; all zeros before the first. Valid until the next call. */
const struct snapshot *board_read(struct board *b);

#endif
