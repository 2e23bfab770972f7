/* peer/cmd/progress.h -- progress for people, in one manner for all commands.
 *
 *   [=====>       ]  42 %  round 168/400  15.1 rounds/s  11 s, 15 s left  loss 0.41  ...   on a terminal,
 *   peer-0  training  168/400  loss 0.4123  ...                                    redrawn in place; with
 *   peer-1  ...                                                                    a table of many peers
 *
 *   training  42 %  round 168/400  15.1 rounds/s  11 s, 15 s left  loss 0.41 .. 0.47  ...       elsewhere:
 *                                                                    tens of lines (peer/gauge/gauge.h)
 *
 * and while data are read, where that takes a while:
 *
 *   [=====>       ]  reading DIR/train.gz  42 %  4.16 MB of 9.91 MB  12.1 MB/s  0.3 s, 0.5 s left
 *
 * Elsewhere is a file, a pipe, and a terminal whose TERM is dumb, empty or missing: it gets no control
 * character. There are no colours, so that NO_COLOR changes nothing.
 */
#ifndef PEER_CMD_PROGRESS_H
#define PEER_CMD_PROGRESS_H

#include "peer/gauge/gauge.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct cmd_progress_row
{
    const char *name;
    char phase[16]; /* "starting" before the first report. */
    uint64_t round, rounds, settle_rounds;
    double loss, accuracy, relative_drift; /* NaN: not known. */
    uint64_t drift_round, accuracy_round;  /* They are of these. */
    uint64_t accuracy_samples;             /* The accuracy is on so many; 0: not known. */
    double exact_drift;                    /* With has_exact: of the models themselves. */
    double wanted_drift;                   /* At which the last phase ends; 0: not known. */
    bool has_exact, no_drift;              /* No drift: it is of no interest to one alone. */
    uint64_t bytes_sent, bytes_received;
    bool dead; /* Its figures are its last ones, and no part of what is said of all. */
    char head[48],
        tail[96]; /* The line begins with this and not with the phase, and ends with that;
                              * of many peers it is the slowest's. Or "". */
};

struct cmd_progress
{
    FILE *out;
    bool terminal;
    bool drawn; /* Something on the terminal will be drawn anew. */
    uint64_t looked_ns;
    uint32_t
        n_lines; /* The table takes up so many lines of the screen now; 0: there is one line. */
    struct gauge gauge;
};

/* Can lines be redrawn there? */
bool cmd_progress_terminal(FILE *out);

void cmd_progress_open(struct cmd_progress *p, FILE *out);
/* Is it time to? For who has figures that cost something: then they are shown by force. */
bool cmd_progress_due(struct cmd_progress *p, const struct cmd_progress_row *row, uint32_t n,
                      double seconds);
/* Draw or say, if it is time; `force` makes it so. `seconds` since some beginning never fall. */
void cmd_progress_show(struct cmd_progress *p, const struct cmd_progress_row *row, uint32_t n,
                       double seconds, bool force);
/* Before other text goes to the same place: leaves what was drawn standing. */
void cmd_progress_break(struct cmd_progress *p);

/* The same while data are read. Start with zeros but for `out`. */
struct cmd_progress_reading
{
    FILE *out;
    bool drawn; /* A line on the terminal is to be wiped. */
    uint64_t drawn_ns, begin_ns;
    uint64_t size, path; /* The size of the file that is read, and its path's hash. */
    struct gauge gauge;
};

/* struct data_request's progress; `self` is the struct. */
void cmd_progress_read(void *self, const char *path, uint64_t done, uint64_t total);
/* All is read: wipe the line. */
void cmd_progress_read_end(struct cmd_progress_reading *r);

/* "93.41 %", "12.3 MB", "0.0123", or "1.173e+19" where `format` would fill the line; "-" where
 * not finite. */
enum { CMD_PROGRESS_TEXT = 40 };
const char *cmd_progress_percent(char out[CMD_PROGRESS_TEXT], double x);
const char *cmd_progress_bytes(char out[CMD_PROGRESS_TEXT], uint64_t n);
const char *cmd_progress_number(char out[CMD_PROGRESS_TEXT], const char *format, double x);
/* The same of a drift, which is "unknown" until a window of the sketches ends. */
const char *cmd_progress_drift(char out[CMD_PROGRESS_TEXT], const char *format, double x);
/* Returns the word shown for a phase of metrics.jsonl: joining, training, no-quorum, consensus,
 * finishing or finished. A peer that left before the last of its `rounds` is still "left". */
const char *cmd_progress_phase(const char *phase, uint64_t round, uint64_t rounds);
/* "764/12500"; "-" of a peer that has no run yet. */
const char *cmd_progress_rounds(char out[CMD_PROGRESS_TEXT], uint64_t round, uint64_t rounds);
/* With the round that it is of: "8.50e-03 @764". */
const char *cmd_progress_drift_at(char out[CMD_PROGRESS_TEXT], double x, uint64_t round);
/* And with the rounds that have been done since: "8.50e-03 @764, 12 ago". */
const char *cmd_progress_drift_aged(char out[CMD_PROGRESS_TEXT], double x, uint64_t round,
                                    uint64_t age);

/* With --compress auto each peer chooses its codec as it goes. This counts which ones
 * the peers had at the end of training. Start with zeros. */
enum { CMD_PROGRESS_RUNGS = 8 };
struct cmd_progress_rungs
{
    const char *spec[CMD_PROGRESS_RUNGS];
    uint32_t count[CMD_PROGRESS_RUNGS];  /* Peers. */
    uint32_t n_specs, n_peers, n_looked; /* Looked: knew the drift at least once. */
    bool by_link;                        /* One peer's, and its link chose it. */
};

/* A peer's rung (NULL: there is none) and excess (NaN: the drift was never known).
 * The text is borrowed. */
void cmd_progress_rung(struct cmd_progress_rungs *r, const char *rung, double excess);
/* "codec of the last rounds: qsgd:4 (6 of 8 peers), fp16 (2)", and where no peer
 * ever knew the drift, that this is the one it began with. Nothing without rungs. */
void cmd_progress_rungs_say(const struct cmd_progress_rungs *r, FILE *out);

#endif
