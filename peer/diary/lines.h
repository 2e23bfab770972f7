/* peer/diary/lines.h -- the lines of one metrics.jsonl, and what is said of a disk that takes none.
 *
 *   start, put, put, ... --> peer/store/journal.h --> DIR/metrics.jsonl
 *                 `--> a copy, for who wants one
 *
 * It is news when lines begin to wait, and when all are written or lost: one sentence each, which
 * the caller says in its own way.
 */
#ifndef PEER_DIARY_LINES_H
#define PEER_DIARY_LINES_H

#include "peer/node/node.h"
#include "peer/store/journal.h"
#include "peer/uv/metrics.h"

#include <stdbool.h>
#include <stdint.h>

enum { DIARY_LINES_NEWS = 512 };

struct diary_lines
{
    struct journal journal;
    void (*copy)(const char *line); /* Is given each round's line, too; or NULL. */
    struct uv_metrics_pace pace;
    char *held;   /* The newest round's line where it was not due: perhaps the last. Or NULL. */
    bool started; /* The line of this start is there. */
    bool warned;  /* Lines wait, and that is said. */
    enum note_level level;       /* How bad the news are, */
    char news[DIARY_LINES_NEWS]; /* and what they are; "": there are none. */
};

/* A metrics.jsonl of `dir`, which is borrowed; see journal_open(). */
void diary_lines_open(struct diary_lines *l, const char *dir, size_t bytes_max, bool brief);

/* The line of this start, from uv_metrics_start() for free(): before its first. */
void diary_lines_start(struct diary_lines *l, char *text);

/* A line, for free() too. True: l->news has a sentence. */
bool diary_lines_put(struct diary_lines *l, char *text);

/* The line of a round, if it is due (uv_metrics_due()), else it is held back, and written should
 * the next be of another phase or never come. */
bool diary_lines_round(struct diary_lines *l, const struct node_progress *p, double time_s);

/* Write what waits once more, the line that was held back with it. True: there is news. */
bool diary_lines_write(struct diary_lines *l);
bool diary_lines_wait(const struct diary_lines *l);

/* So many lines are in no file, as they were lost or still wait. */
uint64_t diary_lines_missing(const struct diary_lines *l);
void diary_lines_close(struct diary_lines *l);

#endif
