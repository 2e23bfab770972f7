/* peer/uv/worker.h -- the worker thread, which trains and encodes so that the loop never waits.
 *
 *   loop thread    uv_worker_post() ... part_ready(), sign() ... done()
 *   worker thread            \------- node_work(node) -------/ uv_async
 *
 * At most one job runs at a time. From uv_worker_post() to done() the worker owns the model and the
 * trainer.
 */
#ifndef PEER_UV_WORKER_H
#define PEER_UV_WORKER_H

#include "peer/node/node.h"

#include <uv.h>

struct uv_worker
{
    uv_thread_t thread;
    uv_mutex_t mutex;
    uv_cond_t cond;
    uv_async_t async;
    struct node *node;
    /* Used by the loop thread only. True: a job was posted, and done() has not been called yet. */
    bool busy;
    /* True: a job waits for the worker. `posted` and the next four fields are protected by the
     * mutex. */
    bool posted;
    bool finished;
    /* True: the job has called uv_worker_sign(), and the loop thread has not reported this progress
     * yet. */
    bool gets_on;
    /* Latest value passed to uv_worker_part() and not yet reported by part_ready(). 0: none. */
    size_t part;
    bool quit;
    struct uv_worker_calls
    {
        /* Called when the job has ended. Runs on the loop thread, as part_ready() and sign() do. */
        void (*done)(void *self);
        /* Called any number of times per job, when the first n encoded bytes of the delta can be
         * sent. */
        void (*part_ready)(void *self, size_t n);
        void (*sign)(void *self);
        void *self;
    } calls;
};

/* Starts the worker thread. Returns 0 or a negative errno. The node is borrowed until
 * uv_worker_close(). */
int uv_worker_open(struct uv_worker *w, uv_loop_t *loop, struct node *node,
                   const struct uv_worker_calls *calls);
/* node_work() calls these functions on any thread: uv_worker_part() when n bytes of the delta are
 * encoded, uv_worker_sign() when the job has made progress. They are the callbacks `part` and
 * `sign` of struct node_config. */
void uv_worker_part(void *worker, size_t n);
void uv_worker_sign(void *worker);
void uv_worker_post(struct uv_worker *w);
/* Waits for a running job, ends the thread and starts to close the async handle. The loop must
 * run once more before *w is freed. done() is not called any more. */
void uv_worker_close(struct uv_worker *w);

/* Returns the monotonic clock in microseconds. */
int64_t uv_worker_clock_us(void);

#endif
