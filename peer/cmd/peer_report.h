/* peer/cmd/peer_report.h -- prints messages and writes files of `hearsay peer`, while it runs and
 * at its end.
 *
 * peer/run_log writes the files under --out. With --json each line of metrics.jsonl also goes to
 * stdout, and the summary is the last line there. Progress for users goes to stderr
 * (peer/cmd/progress.h).
 */
#ifndef PEER_CMD_PEER_REPORT_H
#define PEER_CMD_PEER_REPORT_H

#include "peer/cmd/cmd.h"
#include "peer/cmd/progress.h"
#include "peer/cmd/trace_option.h"
#include "peer/run_log/monitor.h"

struct cmd_peer_report
{
    const struct options *o;
    bool json;
    /* True if notes (messages for users) are printed on stdout as {"note": "...", "level":
     * "warning"}, for the parent process `hearsay local`. */
    bool notes_as_json;
    struct run_log diary;         /* Writer of the files under --out. */
    struct diary_monitor monitor; /* HTTP server for the figures of --metrics. */
    struct cmd_progress progress;
    struct cmd_trace trace;        /* File in which the option --trace writes the trace. */
    struct trace_peer *trace_peer; /* Writer of this peer's events. NULL: there is no trace. */
    /* Relative consensus distance at which the consensus phase ends (--final-drift). 0: not
     * known. */
    double wanted_drift;
    /* True if the run has ended and its result is stored. Another start with the same --out prints
     * that result. */
    bool over;
    /* Training data of the peer. The model file takes its class names from them. */
    const struct cmd_training *training;
    /* Text that identifies the training data, for cmd_peer_report_trained_on(). */
    char trained_on[DIARY_MODEL_TRAINED_MAX];
};

/* Initialises the report. Called at the start of the process, because `time_s` in metrics.jsonl
 * counts from this call. The caller then sets the name, the directory and the field `training`. */
void cmd_peer_report_open(struct cmd_peer_report *r, const struct options *o);

/* Opens the trace of --trace. Called after the name of the peer is set. Returns CMD_OK, or an exit
 * code after a message. */
int cmd_peer_report_open_trace(struct cmd_peer_report *r);

/* Callbacks of the driver, up to cmd_peer_report_trained_on(). `self`: the report. */
void cmd_peer_report_note(void *self, enum note_level level, const char *module, const char *text);
void cmd_peer_report_watch(void *self, const struct node *n, const struct node_event *ev);
void cmd_peer_report_stepped(void *self, const struct node *n, const struct node_event *ev,
                             const struct node_effects *fx);
void cmd_peer_report_measured(void *self, const struct node_progress *g);
const char *cmd_peer_report_store(void *self, const struct node *n);
uint32_t cmd_peer_report_late_ms(void *self);
const char *cmd_peer_report_trained_on(void *self);

/* Writes the summary and prints the last messages. Called after the event loop has ended. Returns
 * the exit code of the process. */
int cmd_peer_report_finish(struct cmd_peer_report *r, struct uv_driver *d);

#endif
