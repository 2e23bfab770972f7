/* peer/uv/fd_reserve.h -- asks the system for what libuv takes for granted.
 *
 * libuv ends the process by abort() where its first loop finds no descriptors for a pipe, or
 * its first lookup no threads. So both are asked for before, and given back at once: what
 * cannot be had is then an error with a message. Another thread may take them in between;
 * that is an abort still, and as rare as it was before.
 */
#ifndef PEER_UV_FD_RESERVE_H
#define PEER_UV_FD_RESERVE_H

#include <stdint.h>
#include <uv.h>

/* uv_loop_init(), or -EMFILE or -ENFILE where the loop's descriptors are not to be had. */
__attribute__((warn_unused_result)) int uv_spare_loop_init(uv_loop_t *loop);

/* 0 where the threads of libuv's pool can start, else a negative errno. Costs the start of
 * as many threads. */
__attribute__((warn_unused_result)) int uv_spare_pool(void);

#endif
