/* peer/output/journal.h -- queue of lines for metrics.jsonl. Lines stay in memory while the disk is
 * full.
 *
 *   journal_put --> [ waiting lines ] --journal_write--> DIR/metrics.jsonl
 *
 *   disk has room   all lines are written, none waits
 *   disk is full    lines wait in order. An incomplete last line of the file is removed, and the
 *                   whole line is written again later
 *   memory is full  waiting lines are kept. New lines are dropped and counted until all waiting
 *                   lines are written, so that the file has one gap instead of many
 */
#ifndef PEER_OUTPUT_JOURNAL_H
#define PEER_OUTPUT_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JOURNAL_BYTES = 4 << 20 /* Suggested `bytes_max` of a journal: 4 MiB. */ };

struct journal
{
    /* Output directory, borrowed. NULL: no journal, and all functions do nothing. */
    const char *dir;
    size_t bytes_max; /* Limit of the bytes that wait in memory to be written. */
    bool brief;       /* True: the file is open only during journal_write(). */
    int fd;           /* Descriptor of metrics.jsonl. -1: not open. */
    /* Buffer of `cap` bytes. The first `n` bytes are complete lines that are not written yet. */
    char *text;
    size_t n, cap;
    uint64_t n_waiting; /* Number of lines that wait to be written. */
    /* Number of waiting lines that an earlier journal_write() could not write. */
    uint64_t n_old;
    uint64_t n_late; /* Number of lines that were written after at least one failed try. */
    uint64_t n_lost; /* Number of lines that were dropped and are in no file. */
    /* True after memory was full: new lines are dropped until all older lines are written. */
    bool is_dropping;
};

/* Starts an empty journal for the directory `dir` (borrowed, NULL: no journal). At most `bytes_max`
 * bytes wait in memory. `brief`: keep the file open only while writing. The file is opened by the
 * first journal_write(). */
void journal_open(struct journal *j, const char *dir, size_t bytes_max, bool brief);

/* Adds one line to the queue. `line` is copied and has no newline at its end. NULL stands for a
 * line that the caller had no memory to build: journal_put() counts it as lost. */
void journal_put(struct journal *j, const char *line);

/* Writes the waiting lines. Returns 0 if no line waits any more, or the negative errno of the
 * failed write. After a failure the unwritten lines stay in the queue. */
__attribute__((warn_unused_result)) int journal_write(struct journal *j);

/* Closes the file and frees the memory. Lines that are not written yet are counted in `n_lost`. */
void journal_close(struct journal *j);

#endif
