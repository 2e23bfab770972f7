/* peer/diary/diary.h -- the files that a peer writes during a run: metrics, model, and data for the
 * summary. Shared by `hearsay peer` and libhearsay.
 *
 *   DIR/metrics.jsonl        one line per round, and one for each start of the process (lines.h, peer/uv/metrics.h)
 *   DIR/model.safetensors    the final model (model.h)
 *   DIR/summary.json         written by the caller from diary_summary() (summary.h)
 *
 *   diary_reserve_space --> diary_write_round, ... --> diary_save_model [diary_model_retry_ms, ...] --> diary_lines_retry_ms, ... -->
 *   diary_decide_verdict, diary_summary --> diary_release_space --> caller writes summary.json --> diary_close
 *
 * When a file cannot be written, the peer continues to train, because its neighbours depend on it.
 * The run then ends with an error. A model that cannot be written at the end stays in memory and is
 * tried again until `patience_us` is over (peer/store/retry.h). Metrics lines are treated in the
 * same way. Without an output directory all functions do nothing and report no error. All functions
 * run on the thread of the event loop.
 */
#ifndef PEER_DIARY_DIARY_H
#define PEER_DIARY_DIARY_H

#include "peer/diary/lines.h"
#include "peer/diary/model.h"
#include "peer/run/run.h"
#include "peer/store/outdir.h"
#include "peer/store/reserve.h"
#include "peer/store/retry.h"

/* State of the files that one peer writes during a run. */
struct diary
{
    /* The caller sets these fields before the first call. Pointers are borrowed. */

    /* Name of this peer, and output directory (NULL: none). */
    const char *name, *dir;
    /* Output directory, locked by this process. */
    const struct outdir *held;
    /* Run identity for run.txt, set once the run is known (peer/store/owner.h). */
    const char *owner;
    /* Training data of the model, for the metadata of the model file. */
    struct diary_source source;
    /* Start of `time_s`, in nanoseconds of uv_hrtime(). */
    uint64_t begin_ns;
    /* How long a failed write is tried again at the end of the run, in microseconds. */
    int64_t patience_us;
    /* Receives messages for the user. `self` is its first argument. */
    void (*note)(void *self, enum note_level level, const char *text);
    void *self;
    /* Receives a copy of each round's metrics line. NULL: none. */
    void (*copy)(const char *line);

    /* The remaining fields are private to peer/diary. */
    /* Writer of metrics.jsonl. */
    struct diary_lines lines;
    /* Disk space reserved for the model. */
    struct reserve reserve;
    /* Disk space reserved for summary.json, so that late metrics lines cannot take it. */
    struct reserve last;
    /* Step counter at this start of the process. The first metrics line is of the next step. */
    uint64_t from;
    /* True once the output directory belongs to this run, so that files may be written. */
    bool claimed;
    bool unnamed; /* True if run.txt could not be written yet. */
    bool stored;  /* True if the model file has been written. */
    /* True if the last try to write the model failed, so that the newest model is in memory
     * only. */
    bool unstored;
    /* Error message of the last failed try to write the model. */
    char why[FILE_ERROR_MAX];
    /* Message that names the files that could not be written. */
    char failure[192];
    /* Retries of the model, and later of the metrics lines. */
    struct retry retry;
};

/* Names of the files that a run writes to its output directory, ended by NULL. */
extern const char *const diary_files[];

/* Returns the time since `begin_ns`, in seconds. */
double diary_seconds(const struct diary *d);

/* Reserves disk space for a model of `n_params` floats and for summary.json. Called before
 * training, so that a peer that could not save its model does not start. Returns 0, or a negative
 * errno with a message. */
__attribute__((warn_unused_result)) int diary_reserve_space(struct diary *d, size_t n_params,
                                                            char error[RUN_ERROR_MAX]);

/* Writes the metrics line of a completed round. The first call writes run.txt, which makes the
 * directory belong to this run: before the first round the run is only proposed and may change.
 * Returns the `time_s` of the round in seconds, also without a directory. */
double diary_write_round(struct diary *d, const struct node_progress *p);

/* Tries again to write the metrics lines that wait in memory. */
void diary_flush_lines(struct diary *d);

/* Tries again to write run.txt if an earlier try failed. */
void diary_write_identity(struct diary *d);

/* Callbacks for a driver (peer/uv/driver.h). The caller wraps them in functions that pass its
 * diary.
 *
 *   diary_save_model          writes this peer's model; true: the model is saved, or there is no directory
 *   diary_save_handed_model   writes a model that another peer handed over; true: saved
 *   diary_model_retry_ms       time until diary_save_model should be tried again, in ms; 0: do not try again
 *   diary_lines_retry_ms        writes waiting metrics lines; returns the time until the next try, in ms; 0: none
 */
bool diary_save_model(struct diary *d, const struct node *n);
bool diary_save_handed_model(struct diary *d, const struct node *n);
uint32_t diary_model_retry_ms(struct diary *d);
uint32_t diary_lines_retry_ms(struct diary *d);

/* Releases the reserved disk space. Called just before the last files are written. */
void diary_release_space(struct diary *d);
/* Releases the disk space and frees the memory. Metrics lines that still wait are lost. */
void diary_close(struct diary *d);

#endif
