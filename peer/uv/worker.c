/* peer/uv/worker.c -- a thread that runs one job at a time and notifies the loop with uv_async. */
#include "peer/uv/worker.h"

#include "nn/math/c_locale.h"

#include <assert.h>

int64_t uv_worker_clock_us(void)
{
    return (int64_t)(uv_hrtime() / 1000);
}

static void work(void *arg)
{
    struct uv_worker *w = arg;
    (void)c_locale_enter();
    uv_mutex_lock(&w->mutex);
    for (;;) {
        while (!w->posted && !w->quit)
            uv_cond_wait(&w->cond, &w->mutex);
        if (w->quit)
            break;
        w->posted = false;
        uv_mutex_unlock(&w->mutex);
        node_work(w->node, uv_worker_clock_us);
        uv_mutex_lock(&w->mutex);
        w->finished = true;
        uv_async_send(&w->async);
    }
    uv_mutex_unlock(&w->mutex);
}

/* Runs on the loop thread after uv_async_send(). libuv may merge several wake-ups into one, or wake
 * up without a new result. The worker's flags therefore say what has happened. */
static void on_async(uv_async_t *async)
{
    struct uv_worker *w = async->data;
    uv_mutex_lock(&w->mutex);
    bool finished = w->finished, gets_on = w->gets_on;
    size_t part = w->part;
    w->finished = w->gets_on = false;
    w->part = 0;
    uv_mutex_unlock(&w->mutex);
    if (gets_on && !finished)
        w->calls.sign(w->calls.self);
    /* After the end of the job the node sends the complete delta, so a report of ready fragments is
     * not needed. */
    if (part > 0 && !finished)
        w->calls.part_ready(w->calls.self, part);
    if (!finished)
        return;
    w->busy = false;
    w->calls.done(w->calls.self);
}

void uv_worker_part(void *worker, size_t n)
{
    struct uv_worker *w = worker;
    uv_mutex_lock(&w->mutex);
    w->part = n;
    uv_mutex_unlock(&w->mutex);
    uv_async_send(&w->async);
}

void uv_worker_sign(void *worker)
{
    struct uv_worker *w = worker;
    uv_mutex_lock(&w->mutex);
    w->gets_on = true;
    uv_mutex_unlock(&w->mutex);
    uv_async_send(&w->async);
}

int uv_worker_open(struct uv_worker *w, uv_loop_t *loop, struct node *node,
                   const struct uv_worker_calls *calls)
{
    *w = (struct uv_worker){.node = node, .calls = *calls};
    int err = uv_mutex_init(&w->mutex);
    if (err < 0)
        return err;
    err = uv_cond_init(&w->cond);
    if (err < 0)
        goto no_cond;
    err = uv_async_init(loop, &w->async, on_async);
    if (err < 0)
        goto no_async;
    w->async.data = w;
    err = uv_thread_create(&w->thread, work, w);
    if (err == 0)
        return 0;
    uv_close((uv_handle_t *)&w->async, NULL);
no_async:
    uv_cond_destroy(&w->cond);
no_cond:
    uv_mutex_destroy(&w->mutex);
    return err;
}

void uv_worker_post(struct uv_worker *w)
{
    assert(!w->busy);
    w->busy = true;
    uv_mutex_lock(&w->mutex);
    w->posted = true;
    uv_cond_signal(&w->cond);
    uv_mutex_unlock(&w->mutex);
}

void uv_worker_close(struct uv_worker *w)
{
    uv_mutex_lock(&w->mutex);
    w->quit = true;
    uv_cond_signal(&w->cond);
    uv_mutex_unlock(&w->mutex);
    int err = uv_thread_join(&w->thread);
    assert(err == 0);
    uv_close((uv_handle_t *)&w->async, NULL);
    uv_cond_destroy(&w->cond);
    uv_mutex_destroy(&w->mutex);
}
