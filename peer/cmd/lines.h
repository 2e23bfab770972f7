/* peer/cmd/lines.h -- the lines of one metrics.jsonl, and what is said of a disk that takes none.
 *
 *   start, put, put, ... --> peer/store/journal.h --> DIR/metrics.jsonl
 *                 `--> a copy (stdout)
 *
 * It is news when lines begin to wait, and when all are written or lost: one sentence each, which
 * the caller says in its own way.
 */
#ifndef PEER_CMD_LINES_H
#define PEER_CMD_LINES_H

#include "peer/node/node.h"
#include "peer/store/journal.h"
#include "peer/uv/metrics.h"

#include <stdio.h>

enum { CMD_LINES_NEWS = 512 };

struct cmd_lines
{
    struct journal journal;
    FILE *copy; /* A second place for each round's line, or NULL. */
    struct uv_metrics_pace pace;
    char *held;   /* The newest round's line where it was not due: perhaps the last. Or NULL. */
    bool started; /* The line of this start is there. */
    bool warned;  /* Lines wait, and that is said. */
    enum note_level level;     /* How bad the news are, */
    char news[CMD_LINES_NEWS]; /* and what they are; "": there are none. */
};

/* A metrics.jsonl of `dir`, which is borrowed; see journal_open(). */
void cmd_lines_open(struct cmd_lines *l, const char *dir, size_t bytes_max, bool brief);

/* The line of this start, from uv_metrics_start() for free(): before its first. */
void cmd_lines_start(struct cmd_lines *l, char *text);

/* A line, for free() too. True: l->news has a sentence. */
bool cmd_lines_put(struct cmd_lines *l, char *text);

/* The line of a round, if it is due (uv_metrics_due()), else it is held back, and written should
 * the next be of another phase or never come. */
bool cmd_lines_round(struct cmd_lines *l, const struct node_progress *p, double time_s);

/* Write what waits once more, the line that was held back with it. True: there is news. */
bool cmd_lines_write(struct cmd_lines *l);
bool cmd_lines_wait(const struct cmd_lines *l);

/* So many lines are in no file, as they were lost or still wait. */
uint64_t cmd_lines_missing(const struct cmd_lines *l);
void cmd_lines_close(struct cmd_lines *l);

#endif
