/* peer/uv/worker.h -- the one thread that computes, so that the loop never waits.
 *
 *   loop thread    uv_worker_post() ... part_ready(), sign() ... done()
 *   worker thread            \------- node_work(node) -------/ uv_async
 *
 * At most one job at a time. Between post and done the worker owns the model
 * and the trainer.
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
    bool busy;   /* Loop thread: a job was posted and done() not yet called. */
    bool posted; /* Under the mutex, like the next four. */
    bool finished;
    bool gets_on; /* uv_worker_sign() was called since sign() was. */
    /* Sum of the bytes passed to uv_worker_part() since the last call of part_ready(). 0: none. */
    size_t part;
    bool quit;
    struct uv_worker_calls
    {
        void (*done)(void *self);                 /* On the loop thread, as are these two, which */
        void (*part_ready)(void *self, size_t n); /* come once or more a job, or never. */
        void (*sign)(void *self);
        void *self;
    } calls;
};

/* 0 or a negative errno. The node is borrowed until uv_worker_close(). */
int uv_worker_open(struct uv_worker *w, uv_loop_t *loop, struct node *node,
                   const struct uv_worker_calls *calls);
/* For the node's config.part and config.sign: within node_work(), on any thread. */
void uv_worker_part(void *worker, size_t n);
void uv_worker_sign(void *worker);
void uv_worker_post(struct uv_worker *w);
/* Waits for a running job, then begins to close the async handle: run the loop
 * once more before the memory goes. done() is not called any more. */
void uv_worker_close(struct uv_worker *w);

/* Monotonic microseconds. */
int64_t uv_worker_clock_us(void);

#endif
