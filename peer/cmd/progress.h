/* peer/cmd/progress.h -- shows the progress of a run to people, in the same form for all
 * commands.
 *
 *   [=====>       ]  42 %  round 168/400  15.1 rounds/s  11 s, 15 s left  loss 0.41  ...
 *   peer-0  training  168/400  loss 0.4123  ...
 *   peer-1  ...                                  on a terminal: redrawn in place, with a table of
 *                                                the peers if there are several
 *
 *   training  42 %  round 168/400  15.1 rounds/s  11 s, 15 s left  loss 0.41 .. 0.47  ...
 *                                                elsewhere: some tens of lines for a run
 *                                                (peer/progress/progress_rate.h)
 *
 * While a large file is read:
 *
 *   [=====>       ]  reading DIR/train.gz  42 %  4.16 MB of 9.91 MB  12.1 MB/s  0.3 s, 0.5 s left
 *
 * "Elsewhere" is a file, a pipe, or a terminal with TERM set to "dumb", empty or missing. It gets
 * no control characters. The output has no colours, so NO_COLOR has no effect.
 */
#ifndef PEER_CMD_PROGRESS_H
#define PEER_CMD_PROGRESS_H

#include "peer/progress/progress_rate.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct cmd_progress_row
{
    const char *name;
    char phase[16]; /* Phase of the peer as in metrics.jsonl. "starting" before the first report. */
    uint64_t round, rounds, settle_rounds;
    /* Newest loss, accuracy and drift of the peer. NaN: not known. */
    double loss, accuracy, relative_drift;
    uint64_t drift_round, accuracy_round; /* Rounds to which relative_drift and accuracy belong. */
    /* Number of samples on which the accuracy was measured. 0: not known. */
    uint64_t accuracy_samples;
    /* Exact relative drift, computed from the models. Valid if has_exact. */
    double exact_drift;
    /* Target of the consensus phase, as relative drift. 0: not known. */
    double wanted_drift;
    /* has_exact: exact_drift is valid. no_drift: drift is not shown, because there is only one
     * peer. */
    bool has_exact, no_drift;
    uint64_t bytes_sent, bytes_received;
    /* The peer has ended abnormally. Its last figures stay in the table but do not count in the
     * line for all peers. */
    bool dead;
    /* Texts at the beginning of the line (instead of the phase) and at its end. "": no text. A
     * line for several peers shows the texts of the slowest peer. */
    char head[48], tail[96];
};

struct cmd_progress
{
    FILE *out;
    bool terminal;
    bool drawn; /* The last output on the terminal will be redrawn. */
    uint64_t looked_ns;
    uint32_t
        n_lines; /* Number of screen lines of the bar and the table. 0: there is only the bar. */
    struct progress_rate gauge;
};

/* Returns true if `out` is a terminal on which lines can be redrawn. */
bool cmd_progress_terminal(FILE *out);

/* Initialises the display of progress on `out`. */
void cmd_progress_open(struct cmd_progress *p, FILE *out);
/* Returns true if the progress should be shown now. If figures are slow to compute, a caller
 * calls this function first, and then cmd_progress_show() with `force`. */
bool cmd_progress_due(struct cmd_progress *p, const struct cmd_progress_row *row, uint32_t n,
                      double seconds);
/* Shows the progress of n peers if it is time, or always with `force`. `seconds`: time since the
 * start; must not decrease. */
void cmd_progress_show(struct cmd_progress *p, const struct cmd_progress_row *row, uint32_t n,
                       double seconds, bool force);
/* Prepares for other output to the same place. What was drawn stays on the terminal. */
void cmd_progress_end_line(struct cmd_progress *p);

/* Progress of reading data files. Initialise with zeros, except for `out`. */
struct cmd_progress_reading
{
    FILE *out;
    bool drawn; /* A line is on the terminal and must be erased. */
    uint64_t drawn_ns, begin_ns;
    uint64_t size, path; /* Size of the current file, and hash of its path. */
    struct progress_rate gauge;
};

/* Shows how much of a file has been read, as the `progress` callback of struct data_request.
 * `self`: the struct cmd_progress_reading. */
void cmd_progress_read(void *self, const char *path, uint64_t done, uint64_t total);
/* Erases the line after all data have been read. */
void cmd_progress_read_end(struct cmd_progress_reading *r);

/* Size of the buffer for a formatted number. The functions below write, for example, "93.41 %",
 * "12.3 MB" and "0.0123". Values that are not finite are written as "-", and values of 1e6 or
 * more as "1.173e+19". */
enum { CMD_PROGRESS_TEXT = 40 };
const char *cmd_progress_percent(char out[CMD_PROGRESS_TEXT], double x);
const char *cmd_progress_bytes(char out[CMD_PROGRESS_TEXT], uint64_t n);
const char *cmd_progress_number(char out[CMD_PROGRESS_TEXT], const char *format, double x);
/* Writes a drift. A drift that is not finite is written as "unknown", because it is not known
 * before the first drift window ends. */
const char *cmd_progress_drift(char out[CMD_PROGRESS_TEXT], const char *format, double x);
/* Returns the word shown for a phase of metrics.jsonl: joining, training, no-quorum, consensus,
 * finishing or finished. A peer that left before the last of its `rounds` is still "left". */
const char *cmd_progress_phase(const char *phase, uint64_t round, uint64_t rounds);
/* Writes the round and the number of rounds, such as "764/12500". "-" if the peer has no run
 * yet. */
const char *cmd_progress_rounds(char out[CMD_PROGRESS_TEXT], uint64_t round, uint64_t rounds);
/* Writes a drift and its round, such as "8.50e-03 @764". */
const char *cmd_progress_drift_at(char out[CMD_PROGRESS_TEXT], double x, uint64_t round);
/* Writes a drift, its round, and the rounds done since, such as "8.50e-03 @764, 12 ago". */
const char *cmd_progress_drift_aged(char out[CMD_PROGRESS_TEXT], double x, uint64_t round,
                                    uint64_t age);

/* Counts of the codecs that the peers used at the end of training. With --compress auto each
 * peer chooses its codec during the run. Initialise with zeros. */
enum { CMD_PROGRESS_LEVELS = 8 };
struct cmd_progress_codecs
{
    const char *spec[CMD_PROGRESS_LEVELS];
    uint32_t count[CMD_PROGRESS_LEVELS]; /* Number of peers that used each codec. */
    /* Number of different codecs, number of peers counted, and number of peers that knew the
     * drift at least once. */
    uint32_t n_specs, n_peers, n_looked;
    /* True for a single peer that uses a denser codec than the drift requires, because its link
     * has spare bandwidth. */
    bool by_link;
};

/* Counts the codec of one peer. `rung`: its codec level, borrowed; NULL: none. `excess`: its
 * normalised drift; NaN: the drift was never known. */
void cmd_progress_codecs_add(struct cmd_progress_codecs *r, const char *rung, double excess);
/* Prints a line such as "codec of the last rounds: qsgd:4 (6 of 8 peers), fp16 (2)". If no peer
 * ever knew the drift, also prints that this is the initial codec. Prints nothing if no codec
 * was counted. */
void cmd_progress_codecs_print(const struct cmd_progress_codecs *r, FILE *out);

#endif
