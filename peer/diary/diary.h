/* peer/diary/diary.h -- what a peer writes of its run while that goes on, and what becomes of it at
 * the end: the half of `hearsay peer` and of libhearsay that they share.
 *
 *   DIR/metrics.jsonl        a line a round, and one for each start (lines.h, peer/uv/metrics.h)
 *   DIR/model.safetensors    the final model (model.h)
 *   DIR/summary.json         written by the caller, of diary_summary() (summary.h)
 *
 *   diary_room --> diary_round, ... --> diary_store [again_ms, again_ms, ...] --> late_ms, ... -->
 *   diary_judge, diary_summary --> diary_release --> the caller's summary.json --> diary_close
 *
 * Files are what counts: where one cannot be written the peer trains on, since others depend on it,
 * and ends with an error. A model that cannot be stored at the end stays in memory and is tried again
 * (peer/store/retry.h) for as long as patience lasts; so do lines. Without a directory all calls do
 * nothing, and nothing is missing. All of it is the loop's thread's.
 */
#ifndef PEER_DIARY_DIARY_H
#define PEER_DIARY_DIARY_H

#include "peer/diary/lines.h"
#include "peer/diary/model.h"
#include "peer/run/run.h"
#include "peer/store/outdir.h"
#include "peer/store/reserve.h"
#include "peer/store/retry.h"

struct diary
{
    /* The caller's, set before the first call, borrowed. */
    const char *name, *dir;    /* Name of this peer, and output directory (NULL: none). */
    const struct outdir *held; /* The output directory, which this process has locked. */
    const char *owner; /* Owner of the directory, once the run is known (peer/store/owner.h). */
    struct diary_source source; /* Data that the model is trained on. */
    uint64_t begin_ns;          /* Start of `time_s`, in nanoseconds of uv_hrtime(). */
    int64_t patience_us;
    void (*note)(void *self, enum note_level level, const char *text);
    void *self;
    void (*copy)(const char *line); /* Is given each round's line, too; or NULL. */

    /* Its own. */
    struct diary_lines lines;
    struct reserve reserve;   /* The model's room on the disk, */
    struct reserve last;      /* and that of the summary, which late lines must not take. */
    uint64_t from;            /* The round behind which this start began. */
    bool claimed;             /* The directory is this run's: what is written belongs there. */
    bool unnamed;             /* run.txt could not be written. */
    bool stored;              /* The model is there. */
    bool unstored;            /* The last try to store it failed: it is in memory only. */
    char why[FILE_ERROR_MAX]; /* Why that is so. */
    char failure[192];        /* What is said of files that are missing. */
    struct retry retry;
};

/* The names of the files that it writes; NULL ends. */
extern const char *const diary_files[];

double diary_seconds(const struct diary *d);

/* Keep room for a model of so many parameters, and for what is written behind it. 0, or a negative
 * errno with a sentence: whoever cannot keep a model need not make one. */
__attribute__((warn_unused_result)) int diary_room(struct diary *d, size_t n_params,
                                                   char error[RUN_ERROR_MAX]);

/* A round is done. With the first the directory becomes this run's: until then that was a proposal.
 * Returns its `time_s`, also where there is no directory. */
double diary_round(struct diary *d, const struct node_progress *p);

/* Write the lines that wait once more. */
void diary_write(struct diary *d);

/* Write run.txt where the directory is the run's and that could not be written yet. */
void diary_name(struct diary *d);

/* Callbacks of a driver (peer/uv/driver.h), by a function of the caller's that knows its diary. */
bool diary_store(struct diary *d, const struct node *n);
bool diary_store_handed(struct diary *d, const struct node *n);
uint32_t diary_again_ms(struct diary *d);
uint32_t diary_late_ms(struct diary *d);

/* Give back the room that was kept: what is written now is the last. */
void diary_release(struct diary *d);
void diary_close(struct diary *d);

#endif
