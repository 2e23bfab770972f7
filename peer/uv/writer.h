/* peer/uv/writer.h -- the thread that writes checkpoints, so that neither loop nor worker waits for
 * a disk.
 *
 *   loop thread    uv_writer_keep(state) .......................... done(result)
 *   writer thread         \--- hash, write, sync, rename, sync ---/ uv_async
 *
 * One checkpoint is written at a time. Until its end uv_writer_keep() returns -EBUSY, and the
 * caller tries again later with a newer state. uv_writer_keep() exchanges buffers: it takes the
 * caller's state and returns the buffer of the previous checkpoint, empty but with its memory. From
 * the third checkpoint on, the loop thread therefore allocates nothing.
 */
#ifndef PEER_UV_WRITER_H
#define PEER_UV_WRITER_H

#include "peer/checkpoints/checkpoint_store.h"

#include <uv.h>

/* Outcome of the write of one checkpoint. */
struct uv_writer_result
{
    uint64_t beat;
    /* Result of the write. 0: the checkpoint is on the disk. Otherwise a negative errno. */
    int err;
    char why[FILE_ERROR_MAX]; /* One sentence about the result of the write, also after success. */
    uint64_t n_bytes;         /* Size of the checkpoint file in bytes. */
    int64_t time_us;          /* Duration of the write of the checkpoint, in microseconds. */
    /* CPU time of the writer thread, in microseconds. Waiting for the disk does not count. */
    int64_t cpu_us;
};

struct uv_writer_job; /* State that the loop thread and the writer thread share. */

struct uv_writer
{
    struct uv_writer_job *job;
    uv_async_t async;
    /* Called on the loop thread when a checkpoint was written or could not be written. */
    void (*done)(void *self, const struct uv_writer_result *r);
    void *self;
    /* Totals of all writes that have ended: stored checkpoints, failed checkpoints, stored bytes.
     * Used by the loop thread only. */
    uint64_t n_kept, n_failed, n_bytes;
    int64_t time_us, cpu_us;
};

/* Starts the writer thread. Returns 0 or a negative errno. *slots is the checkpoint store: the
 * writer thread owns the store from uv_writer_keep() to done(), and the caller owns it at all other
 * times. */
__attribute__((warn_unused_result)) int uv_writer_open(
    struct uv_writer *w, uv_loop_t *loop, struct checkpoint_store *slots,
    void (*done)(void *self, const struct uv_writer_result *r), void *self);

/* Returns whether a checkpoint is being written. */
bool uv_writer_busy(const struct uv_writer *w);

/* Starts to write *s, a completely saved state. *s becomes an empty state. The label is copied.
 * Returns 0, -EBUSY or -ENOMEM; after an error *s is unchanged, and done() is not called. */
__attribute__((warn_unused_result)) int uv_writer_keep(struct uv_writer *w, struct state *s,
                                                       const struct checkpoint_file_label *label);

/* Ends the writer thread. Waits `finish_us` microseconds for a checkpoint that is being written.
 * Then stops the write, which takes effect after a few megabytes, and waits `limit_us` microseconds
 * more. Returns 0, or -ETIMEDOUT if the disk has still not answered: the caller must then keep *w,
 * its memory and the store, and either call again or end the process. *last: true if done() was not
 * called for the last checkpoint, whose result is then in *result. `result` and `last` may be NULL.
 * The async handle starts to close, so the loop must run once more before *w is freed. */
int uv_writer_close(struct uv_writer *w, int64_t finish_us, int64_t limit_us,
                    struct uv_writer_result *result, bool *last);

#endif
