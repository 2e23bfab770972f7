/* peer/run_log/run_log.h -- the files that a peer writes during a run: metrics, model, and the
 * content of the summary. Used by `hearsay peer` and libhearsay.
 *
 *   DIR/metrics.jsonl        one line per round, and one for each start of the process (lines.h,
 *                            peer/uv/metrics.h)
 *   DIR/model.safetensors    the final model (model.h)
 *   DIR/summary.json         written by the caller from diary_summary() (summary.h)
 *
 * The functions are called in this order:
 *
 *   run_log_reserve_space                         before training
 *   run_log_write_round                           after each round
 *   run_log_save_model                            at the end, until the model is saved
 *   run_log_lines_retry_ms                        until all metrics lines are written
 *   diary_decide_verdict, diary_summary           (summary.h)
 *   run_log_release_space                         then the caller writes summary.json
 *   run_log_close
 *
 * When a file cannot be written, the peer continues to train, because its neighbours depend on it.
 * The run then ends with an error. If the model cannot be written at the end, it stays in memory,
 * and the node decides when the model is written again (peer/node/result/final_model.h). Metrics
 * lines are tried again for `patience_us` (peer/output/retry.h). Without an output directory all
 * functions do nothing and report no error. All functions run on the thread of the event loop.
 */
#ifndef PEER_RUN_LOG_RUN_LOG_H
#define PEER_RUN_LOG_RUN_LOG_H

#include "peer/output/disk_reservation.h"
#include "peer/output/outdir.h"
#include "peer/output/retry.h"
#include "peer/run/run.h"
#include "peer/run_log/lines.h"
#include "peer/run_log/model.h"

/* State of the files that one peer writes during a run. */
struct run_log
{
    /* The caller sets the following fields before the first call. Pointers are borrowed. */

    /* Name of this peer, and output directory (NULL: none). */
    const char *name, *dir;
    /* Output directory, locked by this process. */
    const struct outdir *held;
    /* Run identity for run.txt, set once the run is known (peer/output/run_lock.h). */
    const char *owner;
    /* Training data of the model, for the metadata of the model file. */
    struct run_log_source source;
    /* Time at which `time_s` is 0, in nanoseconds of uv_hrtime(). */
    uint64_t begin_ns;
    /* Time limit for writing the waiting metrics lines at the end of the run, in microseconds. */
    int64_t patience_us;
    /* Callback that receives messages for the user. The field `self` is passed to it as first
     * argument. */
    void (*note)(void *self, enum note_level level, const char *module, const char *text);
    void *self;
    /* Callback that receives a copy of the metrics line of each round. NULL: none. */
    void (*copy)(const char *line);

    /* The remaining fields are private to peer/run_log. */
    /* Writer of metrics.jsonl. */
    struct run_log_lines lines;
    /* Disk space reserved for the model. */
    struct disk_reservation reserve;
    /* Disk space reserved for summary.json, so that late metrics lines cannot take it. */
    struct disk_reservation last;
    /* Step counter at which this process started or resumed the run. The first metrics line is of
     * step from + 1. */
    uint64_t from;
    /* True once the output directory belongs to this run, so that files may be written. */
    bool claimed;
    bool unnamed; /* True if run.txt could not be written yet. */
    bool stored;  /* True if the model file was written, or an earlier process wrote it. */
    /* True if the last try to write the model failed, so that the newest model is in memory
     * only. */
    bool unstored;
    /* Error message of the last failed try to write the model. */
    char why[FILE_ERROR_MAX];
    /* Message that names the files that could not be written. */
    char failure[192];
    /* Times and intervals of the retries that write metrics lines at the end of the run. */
    struct retry retry;
};

/* Names of the files that a run writes to its output directory, ended by NULL. */
extern const char *const run_log_files[];

/* Stores a promise of the finish protocol (peer/output/promise.h). `self` is a struct run_log.
 * Returns true if the promise is stored or there is no output directory. */
bool run_log_keep_promise(void *self, const uint8_t *bytes, size_t n);
/* Reads the parameters from DIR/model.safetensors into `x`. `segments`: tensors that the file must
 * have. `self` is a struct run_log. Returns false if there is no such file, or if it has other
 * tensors. */
bool run_log_read_model(void *self, const struct segment *segments, size_t n_segments, float *x);

/* Returns the seconds since `d->begin_ns`, which metrics lines give as `time_s`. */
double run_log_seconds(const struct run_log *d);

/* Returns what earlier processes left in the directory `dir` of this run. n_resume: number of
 * checkpoints that can be read. */
enum node_past run_log_past(const char *dir, size_t n_resume);

/* Returns the number of bytes on the disk that a model of n_params floats and summary.json need. */
uint64_t run_log_bytes(size_t n_params);

/* Reserves disk space for a model of `n_params` floats and for summary.json. Called before
 * training, so that a peer that could not save its model does not start. Returns 0, or a negative
 * errno with a message. */
__attribute__((warn_unused_result)) int run_log_reserve_space(struct run_log *d, size_t n_params,
                                                              char error[RUN_ERROR_MAX]);

/* Writes the metrics line of a completed round. The first call writes run.txt, which makes the
 * directory belong to this run: before the first round the run is only proposed and may change.
 * Returns the `time_s` of the round in seconds, even if there is no output directory. */
double run_log_write_round(struct run_log *d, const struct node_progress *p);

/* Tries again to write the metrics lines that wait in memory. */
void run_log_flush_lines(struct run_log *d);

/* Returns whether the file run.txt of the directory names this run. Only then may summary.json be
 * written there. */
bool run_log_owns_directory(const struct run_log *d);

/* Tries again to write run.txt if an earlier try failed. */
void run_log_write_identity(struct run_log *d);

/* Functions that the caller's callbacks for a driver (peer/uv/driver.h) call.
 *
 *   run_log_save_model       writes this peer's model. A stored final model is replaced only if this
 *                            process has ended the run together with other peers, or knows of no
 *                            other peer. Returns NULL if the model is stored, or if there is no
 *                            directory. Otherwise returns the file and the reason, valid until the
 *                            next call.
 *   run_log_lines_retry_ms   writes waiting metrics lines. Returns the time until the next try, in
 *                            milliseconds. 0: no line waits, or do not try again */
const char *run_log_save_model(struct run_log *d, const struct node *n);
uint32_t run_log_lines_retry_ms(struct run_log *d);

/* Releases the reserved disk space. Called just before the last files are written. */
void run_log_release_space(struct run_log *d);
/* Releases the disk space and frees the memory. Metrics lines that are not written yet are lost. */
void run_log_close(struct run_log *d);

#endif
