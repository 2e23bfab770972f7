/* peer/report/run.h -- a directory of results, read whole: settings, peers, their rows, how it ended.
 *
 *   DIR/run.txt, summary.json          of a run of several (`local`, `sim`)
 *   DIR/peer-0/metrics.jsonl, ...      its peers; without such names, every directory in DIR that
 *                                      has a metrics.jsonl or a summary.json, but for old.N
 *   DIR/metrics.jsonl                  or DIR is that of one peer, or of `train`
 *
 * Anybody may have written there. No symbolic link below DIR is followed: one in the place of a
 * file or a peer is refused. Every number has limits (here, lines.h); what is not as it should be
 * ends the reading with a sentence that names file, line or field, what was found and expected.
 * A file that is not there is no error: then figures are NaN, and texts "".
 */
#ifndef PEER_REPORT_RUN_H
#define PEER_REPORT_RUN_H

#include "peer/report/lines.h"
#include "peer/store/owner.h"

enum {
    REPORT_PATH_MAX = 4096,
    REPORT_NAME_MAX = 256, /* Bytes of a directory's name, with the NUL. */
    REPORT_PEERS_MAX = 4096,
    REPORT_VERDICT_MAX = 1024,
    REPORT_SUMMARY_MAX = 64 << 20 /* Bytes of a summary.json. */
};

/* The numbers of a summary.json; which there are depends on the command. */
enum report_figure {
    REPORT_F_ROUND,
    REPORT_F_ROUNDS,
    REPORT_F_SETTLE_ROUNDS,
    REPORT_F_LOSS,
    REPORT_F_ACCURACY, /* On the test set, also of `train`. */
    REPORT_F_TEST_LOSS,
    REPORT_F_ACCURACY_MIN,
    REPORT_F_ACCURACY_MAX,
    REPORT_F_RELATIVE_DRIFT,
    REPORT_F_DRIFT_ROUND,
    REPORT_F_ESTIMATED,
    REPORT_F_SECONDS,
    REPORT_F_SECONDS_IN_ALL,
    REPORT_F_SIMULATED_S,
    REPORT_F_STARTS,
    REPORT_F_BYTES_SENT,
    REPORT_F_BYTES_RECEIVED,
    REPORT_F_SENT_IN_ALL,
    REPORT_F_RECEIVED_IN_ALL,
    REPORT_F_ROUNDS_SKIPPED,
    REPORT_F_N_PEERS,
    REPORT_F_EXIT_CODE,
    REPORT_F_VERDICT_SKIPPED, /* These two of its verdict. */
    REPORT_F_MEMBERS,
    REPORT_FIGURES
};

struct report_summary
{
    bool there;
    double at[REPORT_FIGURES]; /* By enum report_figure. */
    char verdict[REPORT_VERDICT_MAX];
};

struct report_peer
{
    char name[REPORT_NAME_MAX]; /* Its directory's. */
    struct report_lines lines;
    struct report_summary end;
};

struct report_run
{
    char path[REPORT_PATH_MAX]; /* As it was given. */
    char label
        [REPORT_NAME_MAX]; /* The last part of its path; a number behind it where two are alike. */
    bool several;          /* Its peers have directories of their own. */
    struct report_peer *peer; /* In the order of their names, numbers by their value. */
    size_t n_peers;
    struct report_summary end; /* The run's; where it is not `several`, its peer's. */
    char text[OWNER_TEXT_MAX]; /* key=value lines; "" where there is no run.txt. */
};

/* Read DIR. *left: see report_lines_read(). 0, or a negative errno with a sentence, and then
 * nothing is held. `run` begins as zeros. */
__attribute__((warn_unused_result)) int report_run_read(struct report_run *run, const char *dir,
                                                        size_t *left, char error[FILE_ERROR_MAX]);
void report_run_close(struct report_run *run);

/* The value of a key in the text of run.txt, of cap bytes at most; false where it has none. */
bool report_run_setting(const struct report_run *run, const char *key, char *value, size_t cap);

/* Names whose numbers count by their value: peer-2 before peer-10. As strcmp(). */
int report_run_order(const char *a, const char *b);

/* Read a summary.json from bytes. 0 or -EINVAL with a sentence that begins with the field. */
__attribute__((warn_unused_result)) int report_summary_read(struct report_run *run,
                                                            struct report_summary *s,
                                                            const char *bytes, size_t n, char *why);

#endif
