/* peer/output/journal.c -- buffers lines for metrics.jsonl in one block of memory and writes
 * them in order. */
#include "peer/output/journal.h"

#include "peer/output/outdir.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CAP_LEAST = 4096 };

void journal_open(struct journal *j, const char *dir, size_t bytes_max, bool brief)
{
    *j = (struct journal){.dir = dir, .bytes_max = bytes_max, .brief = brief, .fd = -1};
}

static void journal_close_file(struct journal *j)
{
    if (j->fd >= 0)
        close(j->fd);
    j->fd = -1;
}

/* Grows the buffer so that `n` more bytes fit. Returns false if the limit is reached or memory is
 * short. */
static bool make_room(struct journal *j, size_t n)
{
    if (n > j->bytes_max - j->n)
        return false;
    size_t cap = j->cap > 0 ? j->cap : CAP_LEAST;
    while (cap < j->n + n)
        cap *= 2;
    char *text = cap > j->cap ? realloc(j->text, cap) : j->text;
    if (text == NULL)
        return false;
    j->text = text;
    j->cap = cap > j->cap ? cap : j->cap;
    return true;
}

void journal_put(struct journal *j, const char *line)
{
    size_t n = line != NULL ? strlen(line) : 0;
    if (j->dir == NULL)
        return;
    if (line == NULL || j->is_dropping || !make_room(j, n + 1)) {
        j->is_dropping = j->n_waiting > 0;
        j->n_lost++;
        return;
    }
    memcpy(j->text + j->n, line, n);
    j->text[j->n + n] = '\n';
    j->n += n + 1;
    j->n_waiting++;
}

/* Writes as many waiting bytes as the file takes and stores their number in `*done`. Returns 0 or a
 * negative errno. */
static int put_bytes(const struct journal *j, size_t *done)
{
    for (*done = 0; *done < j->n;) {
        ssize_t n = write(j->fd, j->text + *done, j->n - *done);
        if (n == 0 || (n < 0 && errno != EINTR))
            return n < 0 ? -errno : -EIO;
        *done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* Removes the lines that lie completely in the first `done` bytes. A partly written line stays in
 * the buffer, and the whole line is written again later. */
static void drop_written(struct journal *j, size_t done)
{
    size_t whole = 0;
    uint64_t n_lines = 0;
    for (size_t i = 0; i < done; i++)
        if (j->text[i] == '\n') {
            whole = i + 1;
            n_lines++;
        }
    memmove(j->text, j->text + whole, j->n - whole);
    j->n -= whole;
    j->n_waiting -= n_lines;
    j->n_late += n_lines < j->n_old ? n_lines : j->n_old;
}

/* After a failed write the file is closed and opened again at once. Opening removes an incomplete
 * last line from the file, and creates the file if it was deleted. If opening fails too, the next
 * call tries again. */
int journal_write(struct journal *j)
{
    size_t done = 0;
    if (j->dir == NULL || j->n_waiting == 0)
        return 0;
    int err = j->fd < 0 ? outdir_open_metrics(j->dir, &j->fd) : 0;
    if (err == 0)
        err = put_bytes(j, &done);
    drop_written(j, done);
    j->n_old = j->n_waiting;
    j->is_dropping = j->is_dropping && j->n_waiting > 0;
    if (err < 0 || j->brief)
        journal_close_file(j);
    if (err < 0 && outdir_open_metrics(j->dir, &j->fd) == 0 && j->brief)
        journal_close_file(j);
    return err;
}

void journal_close(struct journal *j)
{
    j->n_lost += j->n_waiting;
    j->n = j->n_waiting = 0;
    free(j->text);
    j->text = NULL;
    j->cap = 0;
    journal_close_file(j);
    j->dir = NULL;
}
