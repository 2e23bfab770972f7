/* peer/api/thread.c -- the peer's thread: an event loop with a driver, and the driver's
 * callbacks. */
#include "peer/api/handle.h"

#include "nn/math/c_locale.h"
#include "peer/uv/fd_reserve.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { LOOK_MS = 250 };

/* ---- Callbacks of the driver, on the peer's thread ----------------------------- */

void handle_note(void *self, enum note_level level, const char *module, const char *text)
{
    struct hearsay *h = self;
    (void)module;
    if (level == NOTE_ERROR)
        snprintf(h->last_error, sizeof h->last_error, "%s", text);
    turn_note(&h->turn, (int)level, text);
}

void handle_update_figures(struct hearsay *h, const struct node *n, uint64_t sent,
                           uint64_t received)
{
    struct node_progress p;
    node_progress(n, &p);
    p.bytes_sent = sent;
    p.bytes_received = received;
    uv_mutex_lock(&h->lock);
    h->seen.node = p;
    snprintf(h->codec, sizeof h->codec, "%s",
             p.rung != NULL        ? p.rung
             : node_run(n) != NULL ? node_run(n)->compress
                                   : "");
    uv_mutex_unlock(&h->lock);
}

static void update_figures(struct hearsay *h)
{
    uint64_t sent, received;
    uv_driver_totals(h->driver, &sent, &received);
    handle_update_figures(h, uv_driver_node(h->driver), sent, received);
}

void handle_measured(void *self, const struct node_progress *p)
{
    struct hearsay *h = self;
    double time_s = run_log_write_round(&h->diary, p);
    diary_monitor_round(&h->monitor, p, time_s);
    update_figures(h);
}

/* Main function of the peer's thread: runs the event loop until the peer has left, then writes the
 * results and gives the final model to the caller. */
static void run(void *self)
{
    struct hearsay *h = self;
    (void)c_locale_enter();
    diary_monitor_start(&h->monitor, &h->loop, h->driver);
    uv_driver_start(h->driver);
    uv_run(&h->loop, UV_RUN_DEFAULT);
    h->stuck = uv_driver_stuck(h->driver);
    update_figures(h);
    handle_end_files(h);
    turn_over(&h->turn);
}

static void on_leave(uv_async_t *async)
{
    struct hearsay *h = async->data;
    uv_driver_stop(h->driver);
}

static void on_look(uv_timer_t *timer)
{
    update_figures(timer->data);
}

/* ---- Functions that the caller's thread calls ---- */

/* Opens the libuv handles `leave` and `look`. Both are unreferenced, so they do not keep the event
 * loop running after the driver has stopped. */
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
        diary_monitor_stop(&h->monitor);
        uv_run(&h->loop, UV_RUN_NOWAIT);
    }
    (void)uv_loop_close(&h->loop);
}

/* Starts the peer's thread with all signals blocked, because signals are for the program's
 * threads. */
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

/* Opens the driver. If the default port is in use, tries the next free port (settings_move()). */
static int open_driver(struct hearsay *h)
{
    enum uv_driver_part part = UV_DRIVER_REST;
    sigset_t all, before;
    sigfillset(&all);
    /* All signals are blocked here, and the worker thread that uv_driver_open() starts inherits
     * this mask. */
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = uv_driver_open(&h->driver, &h->loop, &h->config, &part);
    while (err == -EADDRINUSE && part == UV_DRIVER_DOOR
           && settings_move(&h->settings, &h->config)) {
        turn_note(&h->turn, 0, h->settings.notice);
        err = uv_driver_open(&h->driver, &h->loop, &h->config, &part);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err == 0)
        return HEARSAY_OK;
    h->driver = NULL;
    char error[SETTINGS_ERROR_MAX];
    if (part == UV_DRIVER_DOOR) {
        settings_not_listening(&h->settings, &h->config, err, error);
        return handle_fail(h, handle_code(err), "%s", error);
    }
    return handle_fail(h, HEARSAY_SYSTEM, "this peer cannot start: %s", uv_strerror(err));
}

int handle_start(struct hearsay *h)
{
    int err = uv_spare_loop_init(&h->loop);
    if (err < 0)
        return handle_fail(h, HEARSAY_SYSTEM, "this peer cannot start: %s", uv_strerror(err));
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
    /* The start failed. A driver can be closed only after it has run, so the driver is started and
     * stopped at once. */
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
        /* The thread still runs and uses the handle, so the memory of the handle must not be
         * freed. */
        h->stuck = true;
        return;
    }
    (void)uv_thread_join(&h->thread);
    if (h->stuck)
        return;
    uv_driver_close(h->driver);
    h->driver = NULL;
    close_loop(h, true);
}
