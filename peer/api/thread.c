/* peer/api/thread.c -- the peer's thread: a loop with a driver, and how it ends. */
#include "nn/files/safetensors.h"
#include "peer/api/handle.h"
#include "peer/run/exit.h"
#include "peer/uv/metrics.h"
#include "peer/uv/spare.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { LOOK_MS = 250 };

/* ---- What the driver says, on the peer's thread ------------------------------ */

void handle_note(void *self, enum note_level level, const char *text)
{
    struct hearsay *h = self;
    if (level == NOTE_ERROR)
        snprintf(h->last_error, sizeof h->last_error, "%s", text);
    turn_note(&h->turn, (int)level, text);
}

void handle_see(struct hearsay *h, const struct node *n, uint64_t sent, uint64_t received)
{
    struct node_progress p;
    node_progress(n, &p);
    p.bytes_sent = sent;
    p.bytes_received = received;
    uv_mutex_lock(&h->lock);
    h->seen = p;
    h->has_seen = true;
    snprintf(h->codec, sizeof h->codec, "%s",
             p.rung != NULL        ? p.rung
             : node_run(n) != NULL ? node_run(n)->compress
                                   : "");
    uv_mutex_unlock(&h->lock);
}

static void see(struct hearsay *h)
{
    uint64_t sent, received;
    uv_driver_totals(h->driver, &sent, &received);
    handle_see(h, uv_driver_node(h->driver), sent, received);
}

/* With the first round the directory belongs to the run: until then that was a proposal. */
void handle_measured(void *self, const struct node_progress *p)
{
    struct hearsay *h = self;
    char why[OUTDIR_WHY_MAX];
    (void)p;
    if (h->out != NULL && !h->claimed) {
        h->claimed = true;
        if (outdir_claim(&h->dir, h->owner_text, why) < 0)
            turn_note(&h->turn, 1, why);
    }
    see(h);
}

bool handle_write_model(void *self, const struct node *n)
{
    struct hearsay *h = self;
    char path[SLOTS_PATH_MAX], round[24], run[WIRE_RUN_MAX + 1], why[FILE_ERROR_MAX];
    struct node_progress p;
    const struct segment *segments;
    size_t n_segments, n_params;
    const float *x = node_model(n, &segments, &n_segments, &n_params);
    if (h->out == NULL || x == NULL || h->half_done)
        return true; /* The caller has it. */
    node_progress(n, &p);
    snprintf(round, sizeof round, "%" PRIu64, p.round);
    run_text(node_run(n), run);
    const struct safetensors_meta meta[] = {{"run", run},
                                            {"round", round},
                                            {"name", h->settings.name},
                                            {"version", HEARSAY_VERSION},
                                            {NULL, NULL}};
    snprintf(path, sizeof path, "%.1000s/model.safetensors", h->out);
    if (safetensors_write(path, x, segments, n_segments, meta, why) == 0)
        return true;
    turn_note(&h->turn, 2, why);
    return false;
}

/* ---- The end -------------------------------------------------------------------- */

void handle_judge(struct hearsay *h, const struct node *n, int code)
{
    struct outcome_facts f;
    struct outcome o;
    node_facts(n, &f);
    if (f.failed == CMD_OK && code != CMD_APART)
        f.failed = code;
    outcome_judge(&o, &f);
    h->exit_code = o.exit_code;
    snprintf(h->verdict, sizeof h->verdict, "%s", o.text);
}

/* From here on the directory says that its run is over, unless it was left. */
static void finish_out(struct hearsay *h)
{
    struct outcome_facts f;
    node_facts(uv_driver_node(h->driver), &f);
    if (!h->claimed || f.stopped || h->exit_code == CMD_USAGE || h->exit_code == CMD_FAILED)
        return;
    json_t *j =
        uv_metrics_object(&h->seen, (double)(uv_hrtime() / 1000 - (uint64_t)h->begun_us) * 1e-6);
    if (j == NULL)
        return;
    json_object_set_new(j, "summary", json_true());
    json_object_set_new(j, "name", json_string(h->settings.name));
    json_object_set_new(j, "verdict", json_pack("{s:s}", "text", h->verdict));
    json_object_set_new(j, "finished", json_true());
    json_object_set_new(j, "exit_code", json_integer(h->exit_code));
    int err = outdir_finish(h->out, j);
    if (err < 0)
        turn_note(&h->turn, 1, strerror(-err));
    for (int slot = 0; slot < SLOTS && err == 0; slot++)
        (void)h->disk.unlink(h->disk.self, slots_name(slot));
    json_decref(j);
}

/* The final model goes to the caller, who waits. */
static void run(void *self)
{
    struct hearsay *h = self;
    const struct segment *segments;
    size_t n_segments, n_params;
    uv_driver_start(h->driver);
    uv_run(&h->loop, UV_RUN_DEFAULT);
    h->stuck = uv_driver_stuck(h->driver);
    see(h);
    handle_judge(h, uv_driver_node(h->driver), uv_driver_exit_code(h->driver));
    if (!h->stuck) {
        const float *x = node_model(uv_driver_node(h->driver), &segments, &n_segments, &n_params);
        handle_give(h, x);
        finish_out(h);
    }
    turn_over(&h->turn);
}

static void on_leave(uv_async_t *async)
{
    struct hearsay *h = async->data;
    uv_driver_stop(h->driver);
}

static void on_look(uv_timer_t *timer)
{
    see(timer->data);
}

/* ---- From the caller's thread ------------------------------------------------------ */

/* None of them keeps a loop alive that has nothing else to do. */
static int open_handles(struct hearsay *h)
{
    int err = uv_async_init(&h->loop, &h->leave, on_leave);
    if (err < 0)
        return err;
    uv_timer_init(&h->loop, &h->look);
    h->leave.data = h->look.data = h;
    uv_timer_start(&h->look, on_look, LOOK_MS, LOOK_MS);
    uv_unref((uv_handle_t *)&h->leave);
    uv_unref((uv_handle_t *)&h->look);
    return 0;
}

static void close_loop(struct hearsay *h, bool handles)
{
    if (handles) {
        uv_close((uv_handle_t *)&h->leave, NULL);
        uv_close((uv_handle_t *)&h->look, NULL);
        uv_run(&h->loop, UV_RUN_NOWAIT);
    }
    (void)uv_loop_close(&h->loop);
}

/* Signals are the program's: threads that we start have all of them blocked. */
static int start_thread(struct hearsay *h)
{
    sigset_t all, before;
    sigfillset(&all);
    int err = -pthread_sigmask(SIG_SETMASK, &all, &before);
    if (err < 0)
        return err;
    err = uv_thread_create(&h->thread, run, h);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err;
}

static int open_driver(struct hearsay *h)
{
    enum uv_driver_part part = UV_DRIVER_REST;
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* The worker's thread begins here. */
    int err = uv_driver_open(&h->driver, &h->loop, &h->config, &part);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err == 0)
        return HEARSAY_OK;
    h->driver = NULL;
    if (part == UV_DRIVER_DOOR)
        return handle_fail(h, handle_code(err), "cannot listen on %s: %s",
                           options_text(h->o, "listen"), uv_strerror(err));
    return handle_fail(h, HEARSAY_SYSTEM, "this peer cannot start: %s", uv_strerror(err));
}

int handle_start(struct hearsay *h)
{
    int err = uv_spare_loop_init(&h->loop);
    if (err < 0)
        return handle_fail(h, HEARSAY_SYSTEM, "this peer cannot start: %s", uv_strerror(err));
    h->begun_us = (int64_t)(uv_hrtime() / 1000);
    int code = open_driver(h);
    if (code != HEARSAY_OK) {
        close_loop(h, false);
        return code;
    }
    err = open_handles(h);
    if (err == 0)
        err = start_thread(h);
    if (err == 0)
        return HEARSAY_OK;
    /* A driver can be closed once it has run: let it end at once. */
    uv_driver_start(h->driver);
    uv_driver_stop(h->driver);
    uv_run(&h->loop, UV_RUN_DEFAULT);
    uv_driver_close(h->driver);
    h->driver = NULL;
    close_loop(h, true);
    return handle_fail(h, HEARSAY_SYSTEM, "this peer cannot start: %s", uv_strerror(err));
}

void handle_leave(struct hearsay *h)
{
    turn_leave(&h->turn);
    if (h->simulation == NULL)
        uv_async_send(&h->leave);
}

void handle_stop(struct hearsay *h)
{
    if (h->simulation != NULL) {
        handle_stop_simulated(h);
        return;
    }
    if (turn_await(&h->turn, 0) != TURN_OVER) {
        h->stuck = true; /* It did not end in time: its thread keeps what it uses. */
        return;
    }
    (void)uv_thread_join(&h->thread);
    if (h->stuck)
        return;
    uv_driver_close(h->driver);
    h->driver = NULL;
    close_loop(h, true);
}
