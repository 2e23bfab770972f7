/* peer/cmd/peer_report.h -- what `hearsay peer` writes and says while it runs and at the end.
 *
 * Under --out: metrics.jsonl (peer/uv/metrics.h), model.safetensors (metadata:
 * run, round, name, version) and summary.json: the last metrics line with the
 * final accuracy and
 *
 *   "summary": true, "name", "test_loss", "resets", "violations",
 *   "exchanges", "accuracy_round", "accuracy_samples", "checkpoints", "checkpoint_s", "strangers", "exit_code", "verdict" (peer/cmd/closing.h),
 *   "interrupted", "resumes_at", "model": its file's name or null, "handed_to": who has it where this disk did not take it, or null, "finished", "run": its canonical text
 *
 * With --json the lines of metrics.jsonl go to stdout as well, and the summary
 * is the last of them. Lines for people go to stderr (peer/cmd/progress.h).
 */
#ifndef PEER_CMD_PEER_REPORT_H
#define PEER_CMD_PEER_REPORT_H

#include "nn/data/data.h"
#include "peer/cmd/cmd.h"
#include "peer/cmd/events.h"
#include "peer/cmd/lines.h"
#include "peer/cmd/out.h"
#include "peer/cmd/progress.h"
#include "peer/cmd/reserve.h"
#include "peer/store/retry.h"
#include "peer/uv/driver.h"

struct cmd_monitor; /* peer/cmd/monitor.h */

struct cmd_peer_report
{
    const struct options *o;
    const char *name, *out;
    bool json;
    bool notes_as_json; /* {"note": "...", "level": "warning"} on stdout, for `local`. */
    uint64_t begin_ns;
    struct cmd_lines lines;     /* metrics.jsonl. */
    struct cmd_events events;   /* --tensorboard. */
    uint64_t from;              /* The round behind which this start began. */
    struct cmd_reserve reserve; /* The model's room on the disk, */
    struct cmd_reserve last;    /* and that of the summary, which late lines must not take. */
    struct cmd_out *dir;        /* What --out names, with the run's text once that is known. */
    bool claimed;               /* --out is this run's: what is written belongs there. */
    struct cmd_progress progress;
    double wanted_drift; /* The run's --final-drift; 0: not known. */
    bool unnamed;        /* run.txt could not be written. */
    char failure[192];   /* What is said of that, of lines, and of a model that is not stored. */
    bool over;           /* The run is: --out will say so when it is started again. */
    bool stored;         /* The model is there. */
    bool unstored;       /* The last try to store it failed: it is in memory only. */
    char why[DATA_ERROR_MAX]; /* Why that is so. */
    struct retry retry;
    int64_t patience_us;                 /* For so long. */
    struct cmd_monitor *monitor;         /* Rounds are told to it, too. */
    const struct cmd_training *training; /* Knows what classes are called. */
};

/* The names of the files under --out; NULL ends. */
extern const char *const cmd_peer_report_files[];

/* The driver's callbacks; `self` is the report. */
void cmd_peer_report_note(void *self, enum note_level level, const char *text);
void cmd_peer_report_measured(void *self, const struct node_progress *g);
bool cmd_peer_report_store(void *self, const struct node *n);
bool cmd_peer_report_store_handed(void *self, const struct node *n);
uint32_t cmd_peer_report_again_ms(void *self);
uint32_t cmd_peer_report_late_ms(void *self);

/* Since the process began: `time_s` in what it writes. */
double cmd_peer_report_seconds(const struct cmd_peer_report *r);

/* After the loop: summary and last words. Returns the process's exit code. */
int cmd_peer_report_finish(struct cmd_peer_report *r, struct uv_driver *d);

#endif
