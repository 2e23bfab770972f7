/* nn/math/thread_pool.h -- a few threads that do jobs, each job on any one of them.
 *
 *   caller   give(a) give(b) give(c) ... await(b): done? else it takes a job itself, b first
 *   threads        \---- a ----\ \---- c ----\
 *
 * Jobs begin in the order in which they were given, and may end in any. What is right whatever that is
 * (each works on memory of its own) is the same with any number of members.
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

/* The caller fills in the first two; the rest is the crew's, and begins with zeros. It must stay
 * where it is from thread_pool_give() until thread_pool_await(). */
struct thread_pool_job
{
    /* Runs on the thread of this member. 0: the caller's thread. */
    void (*run)(void *self, uint32_t member);
    void *self;
    enum thread_pool_state state;
    struct thread_pool_job *next;
};

struct thread_pool; /* The thread pool. Its functions are called by one thread. */

/* n_members from 1 to THREAD_POOL_MAX, the caller among them. 0, -ENOMEM or -EAGAIN (no threads). */
__attribute__((warn_unused_result)) int thread_pool_open(struct thread_pool **c,
                                                         uint32_t n_members);
/* Ends the threads. All jobs must have been awaited. NULL is allowed. */
void thread_pool_close(struct thread_pool *c);

/* Asserts that it is neither queued nor running. A crew of one does it at once. */
void thread_pool_give(struct thread_pool *c, struct thread_pool_job *job);
/* Back when it is done, and what it wrote can be read. One that was not given is done. */
void thread_pool_await(struct thread_pool *c, struct thread_pool_job *job);

#endif
