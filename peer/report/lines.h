/* peer/report/lines.h -- the lines of one metrics.jsonl as a table of numbers.
 *
 *   {"start": true, "at": ..., "from_round": F}   a start: lines of rounds behind F that are there
 *                                                 already were done once more, and go
 *   {"round": 12, "loss": 0.31, ...}              a row
 *   {"round": 12, "lo                             torn by a kill, at the end: left out
 *
 * A line is one of peers' (peer/uv/metrics.h) or of `hearsay train`, which has other names for
 * some columns. What is null, or not there, is NaN; fields that are no columns are passed over. A
 * column that holds anything else than a number it may hold ends the reading with a sentence that
 * names file, line and field. Nothing is guessed.
 *
 * Bytes and seconds count from a start: a struct report_start has what the ones before it took, so
 * that report_lines_time_s() and the others are totals over all of them.
 */
#ifndef PEER_REPORT_LINES_H
#define PEER_REPORT_LINES_H

#include "nn/files/file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum report_column {
    REPORT_ROUND,
    REPORT_ROUNDS,
    REPORT_SETTLE_ROUNDS,
    REPORT_TIME_S,
    REPORT_LOSS,
    REPORT_ACCURACY, /* On the test set, also of `train`. */
    REPORT_TEST_LOSS,
    REPORT_DRIFT,
    REPORT_RELATIVE_DRIFT,
    REPORT_DRIFT_ROUND,
    REPORT_DRIFT_AGE,
    REPORT_OWN_DISTANCE,
    REPORT_STATISTICS_DISAGREEMENT,
    REPORT_GAMMA,
    REPORT_DRIFT_EXCESS,
    REPORT_DRIFT_TARGET,
    REPORT_GOODPUT,
    REPORT_BYTES_SENT,
    REPORT_BYTES_RECEIVED,
    REPORT_BYTES_AHEAD,
    REPORT_COMPUTE_S,
    REPORT_WAIT_S,
    REPORT_MIX_S,
    REPORT_LIVE,
    REPORT_EDGES,
    REPORT_LOCAL_STEPS,
    REPORT_STEPS_DONE,
    REPORT_ROUNDS_DONE,
    REPORT_ROUNDS_SKIPPED,
    REPORT_JOINED_ROUND,
    REPORT_COLUMNS
};

enum report_word { REPORT_PHASE, REPORT_RUNG, REPORT_RUNG_BY, REPORT_WORDS };

enum {
    REPORT_LINE_MAX = 64 * 1024,        /* Bytes of a line. */
    REPORT_LINES_MAX = 4 * 1000 * 1000, /* Lines of all files of a report. */
    REPORT_STARTS_MAX = 100 * 1000,     /* Starts of a file. */
    REPORT_WORD_MAX = 64,               /* Bytes of a word, with the NUL. */
    REPORT_DIFFERENT_MAX = 255,         /* Different words of a file. */
    REPORT_WHOLE_BITS = 53              /* Whole numbers are below two to this. */
};

/* Their names in a peer's lines. */
const char *report_column_name(enum report_column column);
const char *report_word_name(enum report_word word);

struct report_row
{
    double at[REPORT_COLUMNS];  /* By enum report_column. */
    uint8_t word[REPORT_WORDS]; /* Which of the file's words, from 1; 0: none. */
    uint32_t start;             /* Which of the starts it belongs to. */
};

struct report_start
{
    int64_t at_s;                              /* Seconds since 1970; -1: not known. */
    double time_s, bytes_sent, bytes_received; /* That all starts before it took. */
    bool anew;                                 /* It went on from nothing: from round 0. */
};

struct report_lines
{
    struct report_row *row;
    size_t n, cap;
    struct report_start *start; /* The first is there from the first line on. */
    size_t n_starts, starts_cap;
    char (*words)[REPORT_WORD_MAX];
    size_t n_words;
};

/* Read a metrics.jsonl. *left is the number of lines that may still be read, and falls. 0, or a
 * negative errno with a sentence, and then nothing is held. `lines` begins as zeros; -ENOENT where
 * there is no such file. Cost: O(bytes). */
__attribute__((warn_unused_result)) int report_lines_read(struct report_lines *lines,
                                                          const char *path, size_t *left,
                                                          char error[FILE_ERROR_MAX]);
void report_lines_close(struct report_lines *lines);

/* The round that a row is of; those of the last phase count on. */
double report_lines_step(const struct report_row *row);

/* Totals of a row over all starts; NaN where they are not known. */
double report_lines_time_s(const struct report_lines *lines, const struct report_row *row);
double report_lines_sent(const struct report_lines *lines, const struct report_row *row);
double report_lines_received(const struct report_lines *lines, const struct report_row *row);

/* The start at which the run that the row is of began: none of what came before is in its model. */
const struct report_start *report_lines_begun(const struct report_lines *lines,
                                              const struct report_row *row);

/* A row's word, "" for none. */
const char *report_lines_word(const struct report_lines *lines, const struct report_row *row,
                              enum report_word word);

#endif
