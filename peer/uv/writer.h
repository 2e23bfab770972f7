/* peer/uv/writer.h -- the one thread that keeps checkpoints, so that neither loop nor worker waits for a disk.
 *
 *   loop thread    uv_writer_keep(state) .......................... done(result)
 *   writer thread         \--- hash, write, sync, rename, sync ---/ uv_async
 *
 * One at a time: while one is written the next is refused (-EBUSY), and its caller tries again
 * later with a newer state. A state is taken by exchange: the caller gets back the one that
 * was written before, empty, with its memory, so that from the third on nothing is allocated on the
 * loop's thread.
 */
#ifndef PEER_UV_WRITER_H
#define PEER_UV_WRITER_H

#include "peer/checkpoints/checkpoint_store.h"

#include <uv.h>

/* Result of writing one checkpoint. */
struct uv_writer_result
{
    uint64_t beat;
    int err;                  /* 0: it is on the disk; else a negative errno, and why. */
    char why[FILE_ERROR_MAX]; /* One sentence about the result, also after success. */
    uint64_t n_bytes;         /* The file's. */
    int64_t time_us;          /* Time from the request to the end, in microseconds. */
    /* CPU time of the writer thread, in microseconds. Waiting for the disk does not count. */
    int64_t cpu_us;
};

struct uv_writer_job; /* State that both threads access. */

struct uv_writer
{
    struct uv_writer_job *job;
    uv_async_t async;
    void (*done)(void *self, const struct uv_writer_result *r); /* On the loop thread. */
    void *self;
    /* Loop thread: all that have come to an end. */
    uint64_t n_kept, n_failed, n_bytes;
    int64_t time_us, cpu_us;
};

/* 0 or a negative errno. The slots are the thread's from uv_writer_keep() to done(), else the
 * caller's. */
__attribute__((warn_unused_result)) int uv_writer_open(
    struct uv_writer *w, uv_loop_t *loop, struct checkpoint_store *slots,
    void (*done)(void *self, const struct uv_writer_result *r), void *self);

/* Is one being written? */
bool uv_writer_busy(const struct uv_writer *w);

/* Begin to write *s, a state that is written to its end; *s becomes an empty one. The label is
 * copied. 0; -EBUSY or -ENOMEM: then *s is as it was, and done() will not be called. */
__attribute__((warn_unused_result)) int uv_writer_keep(struct uv_writer *w, struct state *s,
                                                       const struct checkpoint_file_label *label);

/* Ends the thread. A checkpoint that is being written has finish_us to finish; after that it is
 * given up after a few more megabytes, for which the call waits limit_us. Returns 0, or
 * -ETIMEDOUT if the disk did not answer even then: thread, memory and store must stay, and the
 * caller calls again or ends the process. *last (may be NULL) is set if done() was not called
 * for the last checkpoint and will not be; *result (may be NULL) receives its result. Starts to
 * close the async handle: the loop must run once more before the memory is freed. */
int uv_writer_close(struct uv_writer *w, int64_t finish_us, int64_t limit_us,
                    struct uv_writer_result *result, bool *last);

#endif
