/* peer/cmd/progress.h -- shows users the progress of a run, in the same form for all commands.
 *
 * On a terminal the progress is redrawn in place, with a table of the peers if there are several:
 *
 *   [=====>       ]  42 %  round 168/400  15.1 rounds/s  11 s, 15 s left  loss 0.41  ...
 *   peer-0  training  168/400  loss 0.4123  ...
 *   peer-1  ...
 *
 * Elsewhere some tens of lines are printed during a run (peer/progress/progress_rate.h):
 *
 *   training  42 %  round 168/400  15.1 rounds/s  11 s, 15 s left  loss 0.41 .. 0.47  ...
 *
 * While a large file is read:
 *
 *   [=====>       ]  reading DIR/train.gz  42 %  4.16 MB of 9.91 MB  12.1 MB/s  0.3 s, 0.5 s left
 *
 * "Elsewhere" is a file, a pipe, or a terminal with TERM set to "dumb", empty or missing. Output
 * there has no control characters. The output has no colours, so NO_COLOR has no effect.
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
    /* Phase of the peer, as in metrics.jsonl. Before the peer's first report: "starting". */
    char phase[16];
    uint64_t round, rounds, settle_rounds;
    /* Newest loss, accuracy and relative consensus distance of the peer. NaN: not known. */
    double loss, accuracy, relative_drift;
    /* Rounds in which relative_drift and accuracy were measured. */
    uint64_t drift_round, accuracy_round;
    /* Number of samples on which `accuracy` was measured. 0: not known. */
    uint64_t accuracy_samples;
    /* Exact relative consensus distance, computed from all models. Valid only if has_exact. */
    double exact_drift;
    /* Relative consensus distance at which the consensus phase ends. 0: not known. */
    double wanted_drift;
    /* has_exact: exact_drift is valid. no_drift: no consensus distance is shown, because there is
     * only one peer. */
    bool has_exact, no_drift;
    uint64_t bytes_sent, bytes_received;
    /* True if the peer has ended abnormally. Its last figures stay in the table, but the line for
     * all peers leaves them out. */
    bool dead;
    /* Texts that the caller adds to the line. `head` is at its beginning, in place of the phase.
     * `tail` is at its end. "": no text. A line for several peers shows the texts of the slowest
     * peer. */
    char head[48], tail[96];
};

struct cmd_progress
{
    FILE *out;
    bool terminal;
    bool drawn; /* True if the next output on the terminal must overwrite the last one. */
    uint64_t looked_ns;
    /* Number of lines from the top of the bar to the cursor, which is below the table. 0: the bar
     * has no table, and the cursor is on its line. */
    uint32_t n_lines;
    struct progress_rate gauge;
};

/* Returns true if `out` is a terminal on which lines can be drawn again in place. */
bool cmd_progress_terminal(FILE *out);

/* Prepares `p` to show progress on `out`. */
void cmd_progress_open(struct cmd_progress *p, FILE *out);
/* Returns true if it is time to show the progress again. A caller with figures that are slow to
 * compute calls this function first. If the result is true it computes the figures, and calls
 * cmd_progress_show() with `force`. */
bool cmd_progress_due(struct cmd_progress *p, const struct cmd_progress_row *row, uint32_t n,
                      double seconds);
/* Shows the progress of n peers if it is time (cmd_progress_due()), or in any case with `force`.
 * `seconds`: time since the start, which must not decrease from call to call. */
void cmd_progress_show(struct cmd_progress *p, const struct cmd_progress_row *row, uint32_t n,
                       double seconds, bool force);
/* Ends the line on the terminal, so that other output can follow it. The bar and the table stay
 * visible. */
void cmd_progress_end_line(struct cmd_progress *p);

/* State of the display while data files are read. Initialise `out` with the output stream, and all
 * other fields with zeros. */
struct cmd_progress_reading
{
    FILE *out;
    bool drawn; /* True if a line is on the terminal that must be erased. */
    uint64_t drawn_ns, begin_ns;
    /* Size in bytes of the file that is being read, and a hash of the file's path. */
    uint64_t size, path;
    struct progress_rate gauge;
};

/* Shows how much of the file `path` has been read: `done` of `total` bytes. This is the `progress`
 * callback of struct data_request. `self`: the struct cmd_progress_reading. */
void cmd_progress_read(void *self, const char *path, uint64_t done, uint64_t total);
/* Erases the line that cmd_progress_read() shows on the terminal, after all data have been read. */
void cmd_progress_read_end(struct cmd_progress_reading *r);

/* Size of the buffer for a formatted number, in bytes. The functions below write, for example,
 * "93.41 %", "12.3 MB" and "0.0123". A value that is not finite gives "-". A value of 1e6 or more
 * gives "1.173e+19". */
enum { CMD_PROGRESS_TEXT = 40 };
const char *cmd_progress_percent(char out[CMD_PROGRESS_TEXT], double x);
const char *cmd_progress_bytes(char out[CMD_PROGRESS_TEXT], uint64_t n);
const char *cmd_progress_number(char out[CMD_PROGRESS_TEXT], const char *format, double x);
/* Writes a consensus distance. A value that is not finite gives "unknown", because peers do not
 * know the distance before the first drift window (a number of rounds between measurements)
 * ends. */
const char *cmd_progress_drift(char out[CMD_PROGRESS_TEXT], const char *format, double x);
/* Returns the word that users see for a phase of metrics.jsonl: joining, training, no-quorum,
 * consensus, finishing or finished. For a peer that left before the last of its `rounds` the word
 * is "left". */
const char *cmd_progress_phase(const char *phase, uint64_t round, uint64_t rounds);
/* Writes a round and the number of all rounds, such as "764/12500". Writes "-" if the peer has no
 * run yet. */
const char *cmd_progress_rounds(char out[CMD_PROGRESS_TEXT], uint64_t round, uint64_t rounds);
/* Writes a consensus distance and the round of its measurement, such as "8.50e-03 @764". */
const char *cmd_progress_drift_at(char out[CMD_PROGRESS_TEXT], double x, uint64_t round);
/* Writes a consensus distance, the round of its measurement, and the number of rounds since then,
 * such as "8.50e-03 @764, 12 ago". */
const char *cmd_progress_drift_aged(char out[CMD_PROGRESS_TEXT], double x, uint64_t round,
                                    uint64_t age);

/* Statistics of the codecs that the peers used at the end of training. With --compress auto each
 * peer chooses its codec during the run. Initialise with zeros. */
enum { CMD_PROGRESS_LEVELS = 8 };
struct cmd_progress_codecs
{
    const char *spec[CMD_PROGRESS_LEVELS];
    uint32_t count[CMD_PROGRESS_LEVELS]; /* Number of peers that used each codec in `spec`. */
    /* n_specs: number of different codecs. n_peers: number of peers counted. n_looked: number of
     * peers that knew the consensus distance at least once. */
    uint32_t n_specs, n_peers, n_looked;
    /* True if there is one peer, and the bandwidth of its link has changed its codec: to a denser
     * codec because the link has room, or to a sparser one because deltas would take too long. */
    bool by_link;
};

/* Counts the codec of one peer. `rung`: its codec level, borrowed; NULL: none. `excess`: its
 * normalised drift (consensus distance divided by the length of a local update); NaN: never
 * known. */
void cmd_progress_codecs_add(struct cmd_progress_codecs *r, const char *rung, double excess);
/* Prints a line such as "codec of the last rounds: qsgd:4 (6 of 8 peers), fp16 (2)". If no peer
 * ever knew the consensus distance, the line adds that this is the initial codec. Prints nothing if
 * no codec was counted. */
void cmd_progress_codecs_print(const struct cmd_progress_codecs *r, FILE *out);

#endif
