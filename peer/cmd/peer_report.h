/* peer/cmd/peer_report.h -- what `hearsay peer` says while it runs and at the end, and its files.
 *
 * Those under --out are peer/diary's. With --json the lines of metrics.jsonl go to stdout as well, and
 * the summary is the last of them. Lines for people go to stderr (peer/cmd/progress.h).
 */
#ifndef PEER_CMD_PEER_REPORT_H
#define PEER_CMD_PEER_REPORT_H

#include "peer/cmd/cmd.h"
#include "peer/cmd/progress.h"
#include "peer/diary/monitor.h"

struct cmd_peer_report
{
    const struct options *o;
    bool json;
    bool notes_as_json;           /* {"note": "...", "level": "warning"} on stdout, for `local`. */
    struct diary diary;           /* What is under --out. */
    struct diary_monitor monitor; /* --metrics. */
    struct cmd_progress progress;
    double wanted_drift; /* The run's --final-drift; 0: not known. */
    bool over;           /* The run is: --out will say so when it is started again. */
    const struct cmd_training *training; /* Knows what classes are called. */
};

/* The process has begun: from now on `time_s` counts. The caller then fills in name, directory and
 * training. */
void cmd_peer_report_open(struct cmd_peer_report *r, const struct options *o);

/* The driver's callbacks; `self` is the report. */
void cmd_peer_report_note(void *self, enum note_level level, const char *text);
void cmd_peer_report_measured(void *self, const struct node_progress *g);
bool cmd_peer_report_store(void *self, const struct node *n);
bool cmd_peer_report_store_handed(void *self, const struct node *n);
uint32_t cmd_peer_report_again_ms(void *self);
uint32_t cmd_peer_report_late_ms(void *self);

/* After the loop: summary and last words. Returns the process's exit code. */
int cmd_peer_report_finish(struct cmd_peer_report *r, struct uv_driver *d);

#endif
