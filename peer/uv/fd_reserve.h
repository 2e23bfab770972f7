/* peer/uv/fd_reserve.h -- checks for resources that libuv requires. libuv calls abort() if its
 * first loop gets no file descriptors for a pipe, or its first name lookup gets no threads. The
 * functions here allocate the same resources first and release them at once. A shortage is then an
 * error that the program can report. If another thread takes the resources in between, libuv still
 * aborts. */
#ifndef PEER_UV_FD_RESERVE_H
#define PEER_UV_FD_RESERVE_H

#include <stdint.h>
#include <uv.h>

/* Calls uv_loop_init(). Returns -EMFILE or -ENFILE if there are not enough file descriptors for
 * the loop. */
__attribute__((warn_unused_result)) int uv_spare_loop_init(uv_loop_t *loop);

/* Returns 0 if the threads of libuv's pool can start, else a negative errno. For this test it
 * starts as many threads as libuv does by default, and joins them again. */
__attribute__((warn_unused_result)) int uv_spare_pool(void);

#endif
