/* peer/run_log/lines.h -- writes the lines of one metrics.jsonl, and makes the messages about a
 * disk that fails.
 *
 *   start, put, put, ... --> peer/output/journal.h --> DIR/metrics.jsonl
 *                 `--> copy callback
 *
 * There are two messages: one when lines begin to wait in memory, and one when no line waits any
 * more, because all were written or lost. Each is made once, and the caller prints it.
 */
#ifndef PEER_RUN_LOG_LINES_H
#define PEER_RUN_LOG_LINES_H

#include "peer/node/node.h"
#include "peer/output/journal.h"
#include "peer/uv/metrics.h"

#include <stdbool.h>
#include <stdint.h>

/* Size of a message for the user, in bytes. */
enum { DIARY_LINES_NEWS = 512 };

/* One metrics.jsonl that is being written. */
struct run_log_lines
{
    struct journal journal;
    /* Callback that receives a copy of each line of a round. NULL: none. */
    void (*copy)(const char *line);
    /* Limits how many rounds of a long consensus phase get a line in metrics.jsonl. */
    struct uv_metrics_pace pace;
    /* Line of the newest round, if it was not written because the file gets few lines in a long
     * consensus phase. The line is written if no round of the same phase follows. NULL: none. */
    char *held;
    bool started; /* True once the "start" line of this process was added. */
    /* True after the user was warned that lines cannot be written, until all lines are written. */
    bool warned;
    /* Severity of the message `news`. */
    enum note_level level;
    /* Message for the user about the disk. "": none. */
    char news[DIARY_LINES_NEWS];
};

/* Starts writing metrics.jsonl in `dir` (borrowed). `bytes_max` and `brief`: see journal_open() in
 * peer/output/journal.h. */
void diary_lines_open(struct run_log_lines *l, const char *dir, size_t bytes_max, bool brief);

/* Adds the line that marks a start of the process, before the first round. `text` comes from
 * uv_metrics_start() and is freed. */
void diary_lines_start(struct run_log_lines *l, char *text);

/* Adds a line and writes all lines that wait in memory. `text` is freed. Returns true if `l->news`
 * has a message for the user. */
bool diary_lines_put(struct run_log_lines *l, char *text);

/* Adds the line of a round if uv_metrics_due() returns true for the round. Otherwise the line is
 * kept in `l->held`, and is written if the next round is of another phase or if no round follows.
 * `time_s`: time of the round, in seconds. Returns true if `l->news` has a message. */
bool diary_lines_round(struct run_log_lines *l, const struct node_progress *p, double time_s);

/* Tries to write all lines that wait in memory. Before that, adds the line in `l->held` to them, if
 * there is one: the newest line that the file did not get, because it gets few lines in a long
 * consensus phase. Returns true if `l->news` has a message for the user. */
bool diary_lines_write(struct run_log_lines *l);
/* Returns whether any line waits in memory. */
bool diary_lines_wait(const struct run_log_lines *l);

/* Returns the number of lines that are not in the file: lost or still waiting. */
uint64_t diary_lines_missing(const struct run_log_lines *l);
/* Closes the file and frees the memory. Lines that are not written yet are lost. */
void diary_lines_close(struct run_log_lines *l);

#endif
