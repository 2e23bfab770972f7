/* peer/run_log/run_log.c -- writes a peer's metrics and model to the output directory, and tries
 * again after errors. */
#include "peer/run_log/run_log.h"

#include "nn/files/safetensors.h"
#include "peer/node/result/verdict.h"
#include "peer/output/promise.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

static const char model_file[] = "model.safetensors";

const char *const run_log_files[] = {"metrics.jsonl", model_file, "summary.json", NULL};

double run_log_seconds(const struct run_log *d)
{
    return (double)(uv_hrtime() - d->begin_ns) * 1e-9;
}

__attribute__((format(printf, 3, 4))) static void note(struct run_log *d, enum note_level level,
                                                       const char *format, ...)
{
    char text[FILE_ERROR_MAX + 96];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    d->note(d->self, level, "run_log", text);
}

/* ---- Writing metrics lines ---- */

uint64_t run_log_bytes(size_t n_params)
{
    return disk_reservation_bytes(n_params, 1) + disk_reservation_bytes(0, 1);
}

int run_log_reserve_space(struct run_log *d, size_t n_params, char error[RUN_ERROR_MAX])
{
    if (d->dir == NULL)
        return 0;
    int err = disk_reservation_hold(&d->reserve, d->dir, n_params, 1);
    if (err == 0)
        err = disk_reservation_hold(&d->last, d->dir, 0, 1);
    if (err < 0)
        snprintf(error, RUN_ERROR_MAX,
                 "no room in %.200s for the model (%llu bytes are needed): %s", d->dir,
                 (unsigned long long)run_log_bytes(n_params), strerror(-err));
    return err;
}

void run_log_write_identity(struct run_log *d)
{
    char why[OUTDIR_WHY_MAX];
    if (!d->unnamed)
        return;
    int err = outdir_write_identity(d->held, d->owner, why);
    if (err < 0)
        d->note(d->self, NOTE_WARNING, "run_log", why);
    d->unnamed = err < 0;
}

bool run_log_owns_directory(const struct run_log *d)
{
    char there[RUN_IDENTITY_TEXT_MAX], why[OUTDIR_WHY_MAX];
    return d->dir != NULL && outdir_read_identity(d->dir, there)
           && run_identity_differ(there, d->owner, why) == 0;
}

/* Makes the output directory belong to this run: writes run.txt and opens metrics.jsonl. Called
 * before the first write. */
static void claim_directory(struct run_log *d)
{
    if (d->claimed)
        return;
    d->claimed = d->unnamed = true;
    run_log_write_identity(d);
    diary_lines_open(&d->lines, d->dir, JOURNAL_BYTES, false);
    d->lines.copy = d->copy;
}

static void report_lines(struct run_log *d, bool news)
{
    if (news)
        d->note(d->self, d->lines.level, "lines", d->lines.news);
}

/* Writes the line that marks a start of the process. Its "from_round" is one less than the round of
 * the first metrics line that follows. */
static void start_lines(struct run_log *d, const struct node_progress *p)
{
    uv_timeval64_t now;
    uint64_t first = p->round + p->settle_rounds;
    int64_t at = uv_gettimeofday(&now) == 0 ? now.tv_sec : -1;
    d->from = first - (first > 0);
    diary_lines_start(&d->lines, uv_metrics_start(at, d->from));
}

double run_log_write_round(struct run_log *d, const struct node_progress *p)
{
    double time_s = run_log_seconds(d);
    if (d->dir == NULL)
        return time_s;
    claim_directory(d);
    if (!d->lines.started)
        start_lines(d, p);
    report_lines(d, diary_lines_round(&d->lines, p, time_s));
    return time_s;
}

void run_log_flush_lines(struct run_log *d)
{
    report_lines(d, diary_lines_write(&d->lines));
}

/* Called after the peer's run has ended and its sessions are closed. If metrics lines could not be
 * written, the process continues to try for `patience_us`. If the model could not be written
 * either, the lines are not tried again, because the node has already waited for disk space. */
uint32_t run_log_lines_retry_ms(struct run_log *d)
{
    int64_t now_us = (int64_t)(uv_hrtime() / 1000);
    bool say;
    run_log_flush_lines(d);
    if (!diary_lines_wait(&d->lines) || d->unstored)
        return 0;
    int64_t wait_us = retry_failed(&d->retry, now_us, d->patience_us, &say);
    if (say && wait_us > 0)
        note(d, NOTE_WARNING,
             "cannot write metrics.jsonl: its new lines stay in memory; retrying for %lld s",
             (long long)((retry_left_us(&d->retry, now_us) + 999999) / 1000000));
    return (uint32_t)(wait_us / 1000) + (wait_us > 0);
}

/* ---- Storing the model and the promise ---- */

bool run_log_keep_promise(void *self, const uint8_t *bytes, size_t n)
{
    struct run_log *d = self;
    if (d->dir == NULL)
        return true;
    claim_directory(d);
    return promise_write(d->dir, bytes, n) == 0;
}

/* Writes the path of the model file to `path`. Returns false if the path is too long. */
static bool model_path(const struct run_log *d, char path[OUTDIR_PATH_MAX])
{
    return snprintf(path, OUTDIR_PATH_MAX, "%s/%s", d->dir, model_file) < OUTDIR_PATH_MAX;
}

bool run_log_read_model(void *self, const struct segment *segments, size_t n_segments, float *x)
{
    const struct run_log *d = self;
    char path[OUTDIR_PATH_MAX], error[FILE_ERROR_MAX];
    return d->dir != NULL && model_path(d, path)
           && safetensors_read_no_input(path, segments, n_segments, x, error) == 0;
}

/* Returns whether the directory `dir` has a final model of the run that its run.txt names. */
static bool holds_final_model(const char *dir)
{
    char there[RUN_IDENTITY_TEXT_MAX], path[OUTDIR_PATH_MAX];
    return outdir_read_identity(dir, there)
           && snprintf(path, sizeof path, "%s/%s", dir, model_file) < OUTDIR_PATH_MAX
           && diary_model_is_final(path, run_identity_run_text(there));
}

enum node_past run_log_past(const char *dir, size_t n_resume)
{
    if (holds_final_model(dir))
        return NODE_PAST_FINAL;
    return n_resume == 0 ? NODE_PAST_MEMBER : NODE_PAST_NONE;
}

/* Returns whether the model file must not be replaced: the file is a final model, with which other
 * peers may have ended the run, and this process has no final model of a run that it ended together
 * with other peers. A run of one peer has no other peers, so its model may be replaced. */
static bool keeps_model(const struct run_log *d, const struct node *n)
{
    struct verdict_facts f;
    node_facts(n, &f);
    bool alone = f.lonely || (f.n_among < 2 && f.n_members + f.n_left > 1);
    bool apart = f.presence != VERDICT_TOGETHER || alone || !node_model_is_final(n);
    return apart && holds_final_model(d->dir);
}

/* Writes the model even if an earlier file could not be written. The process then ends with an
 * error, but the trained model is saved. */
const char *run_log_save_model(struct run_log *d, const struct node *n)
{
    char path[OUTDIR_PATH_MAX];
    if (d->dir == NULL)
        return NULL;
    claim_directory(d);
    int err = model_path(d, path) ? 0 : -ENAMETOOLONG;
    if (err < 0) {
        snprintf(d->why, sizeof d->why, "--out %.200s: %s", d->dir, strerror(-err));
    } else if (keeps_model(d, n)) {
        /* If this process has stored the model itself, there is nothing to report. */
        if (!d->stored)
            note(d, NOTE_INFO,
                 "the final model of an earlier start is stored in %.200s, and is not replaced",
                 path);
        err = 1;
    } else {
        disk_reservation_release(&d->reserve);
        err = diary_model_of_node(path, n, d->name, &d->source, d->why);
        size_t at = strlen(d->why);
        if (err == -ENOSPC)
            snprintf(d->why + at, sizeof d->why - at, ", %llu bytes are needed",
                     (unsigned long long)d->reserve.bytes);
        /* The model may have to be written again, so reserve its disk space again. */
        disk_reservation_hold_again(&d->reserve, d->dir);
    }
    d->stored |= err > 0;
    d->unstored = err < 0;
    return d->unstored ? d->why : NULL;
}

/* ---- Closing at the end of the run ---- */

void run_log_release_space(struct run_log *d)
{
    disk_reservation_release(&d->last);
    disk_reservation_release(&d->reserve);
}

void run_log_close(struct run_log *d)
{
    run_log_release_space(d);
    if (d->claimed)
        diary_lines_close(&d->lines);
}
