/* peer/cmd/events.h -- what `--tensorboard DIR` writes while a run goes on.
 *
 *   rounds, as metrics.jsonl has them --> peer/tensorboard/figures.h --> DIR/NAME (logdir.h)
 *
 * A record is in the file when the round is over. Where one cannot be written that is said once for
 * a start, training goes on, and later ones are tried: the curve has a gap.
 */
#ifndef PEER_CMD_EVENTS_H
#define PEER_CMD_EVENTS_H

#include "peer/cmd/cmd.h"
#include "peer/node/node.h"
#include "peer/tensorboard/figures.h"
#include "peer/tensorboard/logdir.h"
#include "peer/uv/metrics.h"

enum { CMD_EVENTS_NEWS = LOGDIR_PATH_MAX + 256 };

#define CMD_ROW_TENSORBOARD                                                                        \
    {                                                                                              \
        .name = "tensorboard", .kind = OPTION_TEXT, .arg = "DIR",                                  \
        .help = "write the figures as event files for TensorBoard, too, as they come, in a "       \
                "directory of DIR for each peer; what is there stays"                              \
    }

struct cmd_events
{
    const char *dir; /* --tensorboard; NULL: nothing is written, and all calls do nothing. */
    const char *name;
    struct logdir log;
    bool open, failed;     /* There was a file; it was said that one cannot be written. */
    uint64_t try_ns;       /* One that could not be made is tried again then. */
    double sent, received; /* Bytes of former starts of this run. */
    int64_t told;          /* The newest drift there is of this step; -1: none is. */
    struct uv_metrics_pace pace;
    enum note_level level;      /* How bad the news are, */
    char news[CMD_EVENTS_NEWS]; /* and what they are. */
};

/* Can DIR be written? Made where it is not there. CMD_OK, also without --tensorboard; or an exit
 * code after a line. */
int cmd_events_check(const struct options *o);

/* The same, and get ready to write what `name` does, which is borrowed; `out`: its --out, or NULL. */
int cmd_events_open(struct cmd_events *e, const struct options *o, const char *name,
                    const char *out);

/* A round is done, of the run of this text; `from` is where this start began, rounds of the last
 * phase counted on. True: e->news has a sentence: where the file is, or that there is none. */
bool cmd_events_round(struct cmd_events *e, const struct node_progress *g, const char *run_text,
                      uint64_t from);

/* The same of figures that are no peer's. */
bool cmd_events_put(struct cmd_events *e, const double figure[EVENT_FIGURES], uint64_t step,
                    const char *run_text, uint64_t from);

/* How a run of several ended: its exact drift and sums, in a directory of their own. */
bool cmd_events_end(struct cmd_events *e, const double figure[EVENT_ENDS], uint64_t step,
                    const char *run_text);

void cmd_events_close(struct cmd_events *e);

#endif
