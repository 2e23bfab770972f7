/* peer/uv/fd_reserve.c -- opens file descriptors and threads and releases them, to see whether
 * they are available. */
#include "peer/uv/fd_reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum {
    /* Number of descriptors to request. The loop of libuv 1.44 needs fewer: one for epoll, one
     * for an event and four for two pipes. */
    LOOP_DESCRIPTORS = 8,
    POOL_THREADS = 4,    /* Number of threads in libuv's pool by default. */
    POOL_STACK = 8 << 20 /* Stack size that libuv gives each thread, in bytes. */
};

static int spare_descriptors(void)
{
    int fd[LOOP_DESCRIPTORS], n = 0, err = 0;
    while (n < LOOP_DESCRIPTORS && err == 0) {
        fd[n] = open("/", O_RDONLY | O_CLOEXEC);
        if (fd[n] < 0)
            err = -errno;
        else
            n++;
    }
    while (n > 0)
        close(fd[--n]);
    return err;
}

int uv_spare_loop_init(uv_loop_t *loop)
{
    int err = spare_descriptors();
    return err < 0 ? err : uv_loop_init(loop);
}

static void wait_for_the_end(void *gate)
{
    uv_mutex_lock(gate);
    uv_mutex_unlock(gate);
}

/* Starts all threads, and lets them end only when all have started. So memory for all stacks must
 * be free at the same time, as when libuv uses the threads. */
int uv_spare_pool(void)
{
    uv_mutex_t gate;
    uv_thread_t thread[POOL_THREADS];
    const uv_thread_options_t options = {.flags = UV_THREAD_HAS_STACK_SIZE,
                                         .stack_size = POOL_STACK};
    int n = 0, err = uv_mutex_init(&gate);
    if (err < 0)
        return err;
    uv_mutex_lock(&gate);
    while (n < POOL_THREADS && err == 0) {
        err = uv_thread_create_ex(&thread[n], &options, wait_for_the_end, &gate);
        n += err == 0;
    }
    uv_mutex_unlock(&gate);
    while (n > 0)
        (void)uv_thread_join(&thread[--n]);
    uv_mutex_destroy(&gate);
    return err;
}
