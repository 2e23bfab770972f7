/* nn/math/thread_pool.h -- a few threads that take jobs from a queue. A job runs on any of them.
 *
 *   caller   give(a) give(b) give(c) ... await(b): returns if b is done, else runs jobs, b first
 *   threads        \---- a ----\ \---- c ----\
 *
 * Jobs start in the order in which they were given, except a job that the caller awaits. They may
 * end in any order. Results do not depend on the number of threads if each job uses only its own
 * memory.
 */
#ifndef NN_MATH_THREAD_POOL_H
#define NN_MATH_THREAD_POOL_H

#include <stdint.h>

enum { THREAD_POOL_MAX = 64 };

enum thread_pool_state {
    THREAD_POOL_IDLE,
    THREAD_POOL_QUEUED,
    THREAD_POOL_RUNNING,
    THREAD_POOL_DONE
};

/* One job. The caller sets `run` and `self`, and sets all other fields to 0. Only the pool uses the
 * other fields. The struct must stay at its address from thread_pool_give() until
 * thread_pool_await() returns. */
struct thread_pool_job
{
    /* Function that does the job. `member` is the number of the thread. 0: the caller's thread. */
    void (*run)(void *self, uint32_t member);
    void *self;
    enum thread_pool_state state;
    struct thread_pool_job *next;
};

struct thread_pool; /* A thread pool. Only one thread may call its functions. */

/* Starts n_members - 1 threads (1 <= n_members <= THREAD_POOL_MAX); the calling thread counts as
 * one more member, number 0. Returns 0, -ENOMEM, or -EAGAIN if no thread can be started. */
__attribute__((warn_unused_result)) int thread_pool_open(struct thread_pool **c,
                                                         uint32_t n_members);
/* Stops the threads. All jobs must have been awaited. c may be NULL. */
void thread_pool_close(struct thread_pool *c);

/* Queues a job. Asserts that the job is neither queued nor running. A pool with only one member,
 * the calling thread, runs the job before it returns. */
void thread_pool_give(struct thread_pool *c, struct thread_pool_job *job);
/* Waits until the job is done. After that its results can be read. A job that was never given
 * counts as done. */
void thread_pool_await(struct thread_pool *c, struct thread_pool_job *job);

#endif
