/* peer/store/journal.h -- a run's lines on their way to metrics.jsonl, in memory while the disk takes
 * none.
 *
 *   put --> [ lines that wait ] --write--> DIR/metrics.jsonl
 *
 *   all written     nothing waits
 *   disk full       lines wait, in order; a torn one is cut off the file, and waits whole
 *   memory full     the oldest wait on; later ones are lost, and counted, until all are written:
 *                   so that a file has one gap and no sieve
 */
#ifndef PEER_STORE_JOURNAL_H
#define PEER_STORE_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JOURNAL_BYTES = 4 << 20 /* A good bound for one. */ };

struct journal
{
    const char *dir;  /* Borrowed. NULL: no journal, and all calls do nothing. */
    size_t bytes_max; /* So many may wait. */
    bool brief;       /* The file is open only while it is written. */
    int fd;           /* -1: it is not open. */
    char *text;       /* n bytes of whole lines wait. */
    size_t n, cap;
    uint64_t n_waiting; /* As many lines. */
    uint64_t n_old;     /* So many of them were there at the last try. */
    uint64_t n_late;    /* Lines that had to wait, and are written. */
    uint64_t n_lost;    /* Lines that are in no file. */
    bool losing;        /* Some are lost behind those that wait. */
};

void journal_open(struct journal *j, const char *dir, size_t bytes_max, bool brief);

/* One more waits; `line` is without its end, NULL is a line for which there was no memory. */
void journal_put(struct journal *j, const char *line);

/* Write those that wait. 0: none waits any more; or the negative errno for which some still do. */
__attribute__((warn_unused_result)) int journal_write(struct journal *j);

/* What still waits is lost. */
void journal_close(struct journal *j);

#endif
