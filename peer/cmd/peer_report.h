/* peer/cmd/peer_report.h -- messages and files of `hearsay peer` while it runs and at the end.
 *
 * The files under --out are written by peer/run_log. With --json each line of metrics.jsonl also
 * goes to stdout, and the summary is the last line. Progress for people goes to stderr
 * (peer/cmd/progress.h).
 */
#ifndef PEER_CMD_PEER_REPORT_H
#define PEER_CMD_PEER_REPORT_H

#include "peer/cmd/cmd.h"
#include "peer/cmd/progress.h"
#include "peer/run_log/monitor.h"

struct cmd_peer_report
{
    const struct options *o;
    bool json;
    /* Print notes on stdout as {"note": "...", "level": "warning"}, for `hearsay local`. */
    bool notes_as_json;
    struct run_log diary;         /* Writer of the files under --out. */
    struct diary_monitor monitor; /* HTTP server of --metrics. */
    struct cmd_progress progress;
    /* Target of the consensus phase, from the run's --final-drift. 0: not known. */
    double wanted_drift;
    /* The run has ended and its result is stored: another start with the same --out prints it. */
    bool over;
    const struct cmd_training *training; /* Data of the training, which supply the class names. */
};

/* Initialises the report at the start of the process, from which `time_s` is measured. The
 * caller then sets the name, the directory and the training. */
void cmd_peer_report_open(struct cmd_peer_report *r, const struct options *o);

/* Callbacks of the driver. `self`: the report. */
void cmd_peer_report_note(void *self, enum note_level level, const char *text);
void cmd_peer_report_measured(void *self, const struct node_progress *g);
bool cmd_peer_report_store(void *self, const struct node *n);
bool cmd_peer_report_store_handed(void *self, const struct node *n);
uint32_t cmd_peer_report_again_ms(void *self);
uint32_t cmd_peer_report_late_ms(void *self);

/* Writes the summary and prints the last messages, after the event loop has ended. Returns the
 * exit code of the process. */
int cmd_peer_report_finish(struct cmd_peer_report *r, struct uv_driver *d);

#endif
