/* peer/api/files.c -- output directory and HTTP monitor of a peer. Connects the driver to
 * peer/run_log, on the peer's thread. Without the option "out", no files are written. */
#include "peer/api/handle.h"
#include "peer/run/exit.h"
#include "peer/run_log/summary.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* ---- Opening files before the run ---- */

/* Writes the model file. If the peer left during a round and the caller trained in place, the
 * tensors hold an incomplete round, and no file is written. */
static const char *write_model(void *self, const struct node *n)
{
    struct hearsay *h = self;
    return h->half_done ? NULL : run_log_save_model(&h->diary, n);
}

static uint32_t late_ms(void *self)
{
    struct hearsay *h = self;
    return run_log_lines_retry_ms(&h->diary);
}

/* Opens the HTTP monitor with all signals blocked, so that the server's thread inherits this mask
 * and never handles a signal of the program. */
static int open_monitor(struct hearsay *h)
{
    char error[DIARY_MONITOR_ERROR];
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = diary_monitor_open(&h->monitor, options_text(h->o, "metrics"), &h->diary,
                                 &h->config.node, error);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err == 0 ? HEARSAY_OK : handle_fail(h, handle_code(err), "%s", error);
}

/* Checks that no directory has the name of a file that is written at the end of the run. Otherwise
 * the result of the training could not be written. */
static int check_file_names(struct hearsay *h)
{
    char path[OUTDIR_PATH_MAX];
    int err = h->out != NULL ? disk_reservation_check(h->out, run_log_files, path, sizeof path) : 0;
    return err == 0 ? HEARSAY_OK
                    : handle_fail(h, handle_code(err), "--out: cannot write %s: %s", path,
                                  strerror(-err));
}

int handle_open_files(struct hearsay *h)
{
    h->diary =
        (struct run_log){.name = h->settings.name,
                         .dir = h->out,
                         .held = &h->dir,
                         .owner = h->owner_text,
                         .begin_ns = uv_hrtime(),
                         .patience_us = (int64_t)(options_real(h->o, "quorum-timeout") * 1e6),
                         .note = handle_note,
                         .self = h};
    h->config.write_model = write_model;
    h->config.node.keep_promise = run_log_keep_promise;
    h->config.node.keep_promise_self = &h->diary;
    h->config.node.read_model = run_log_read_model;
    h->config.node.read_model_self = &h->diary;
    h->config.late_ms = late_ms;
    int code = check_file_names(h);
    return code == HEARSAY_OK ? open_monitor(h) : code;
}

void handle_close_files(struct hearsay *h)
{
    diary_monitor_close(&h->monitor);
    run_log_close(&h->diary);
    h->diary = (struct run_log){0};
}

/* ---- Writing files at the end of the run ---- */

static bool judge(struct hearsay *h, const struct node *n, int code, struct verdict_facts *f,
                  struct verdict *o)
{
    bool finished = diary_decide_verdict(&h->diary, n, code, f, o);
    h->exit_code = o->exit_code;
    snprintf(h->verdict, sizeof h->verdict, "%s", o->text);
    return finished;
}

void handle_decide_verdict(struct hearsay *h, const struct node *n, int code)
{
    struct verdict_facts f;
    struct verdict o;
    (void)judge(h, n, code, &f, &o);
}

static void forget_checkpoints(struct hearsay *h)
{
    for (int slot = 0; slot < SLOTS; slot++)
        (void)h->disk.unlink(h->disk.self, checkpoint_store_name(slot));
}

/* Writes summary.json, which says how the run ended and whether the run is finished. If the caller
 * left the run, the run is not finished. Deletes the checkpoints of a finished run. */
static void write_summary(struct hearsay *h, const struct verdict_facts *f, const struct verdict *o,
                          bool finished)
{
    char why[OUTDIR_PATH_MAX + 64];
    if (!run_log_owns_directory(&h->diary))
        return;
    json_t *j = diary_summary(&h->diary, h->driver, f, o);
    run_log_release_space(&h->diary);
    json_object_set_new(j, "finished", json_boolean(finished));
    json_object_set_new(j, "exit_code", json_integer(o->exit_code));
    int err = j != NULL ? outdir_write_summary(h->out, j) : -ENOMEM;
    json_decref(j);
    if (err == 0 && finished) {
        forget_checkpoints(h);
        promise_remove(h->out);
    }
    if (err == 0)
        return;
    snprintf(why, sizeof why, "cannot write %s/summary.json: %s", h->out, strerror(-err));
    handle_note(h, NOTE_ERROR, "files", why);
    h->exit_code = CMD_FAILED;
}

void handle_end_files(struct hearsay *h)
{
    struct verdict_facts f;
    struct verdict o;
    const struct segment *segments;
    size_t n_segments, n_params;
    const struct node *n = uv_driver_node(h->driver);
    bool finished = judge(h, n, uv_driver_exit_code(h->driver), &f, &o);
    /* `stuck` means that the peer's driver did not stop in time and may still use the model.
     * Otherwise the program's thread waits in a call of the library, so its tensors can receive the
     * final model. */
    if (!h->stuck) {
        handle_give_model(h, node_model(n, &segments, &n_segments, &n_params));
        write_summary(h, &f, &o, finished);
    }
    diary_monitor_close(&h->monitor);
}
