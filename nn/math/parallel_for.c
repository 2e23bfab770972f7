/* nn/math/parallel_for.c -- threads that wait for a run (one call of parallel_for_run()), process
 * one part of it each, and wait again.
 *
 *   caller   run++, busy = n - 1, wake all ... part 0 ...  wait until busy is 0
 *   thread   wait for a new run ... its part ... busy--, the last one wakes the caller
 *
 * `work` and `self` are written before run++ and read after it under one lock. They do not change
 * before busy is 0, so work() itself needs no lock.
 */
#include "nn/math/parallel_for.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

/* State shared by the threads. The lock guards all fields below it. A new value of `run` starts a
 * call of parallel_for_run(): each thread then processes its part and decrements `busy`. */
struct parallel_for
{
    uint32_t n;
    /* The n - 1 threads. Thread i processes part i + 1, because the caller processes part 0. */
    struct member *members;
    uint32_t n_started;
    pthread_mutex_t lock;
    pthread_cond_t begin, done;
    uint64_t run;
    uint32_t busy;
    bool stop;
    void (*work)(void *self, uint32_t part);
    void *self;
};

struct member
{
    struct parallel_for *team;
    uint32_t part;
    pthread_t thread;
};

/* Waits until the number of runs, t->run, differs from *last. Returns false if the thread must
 * end. */
static bool next_run(struct parallel_for *t, uint64_t *last)
{
    pthread_mutex_lock(&t->lock);
    while (t->run == *last && !t->stop)
        pthread_cond_wait(&t->begin, &t->lock);
    bool go = !t->stop;
    *last = t->run;
    pthread_mutex_unlock(&t->lock);
    return go;
}

/* A thread calls this function when it has finished its part of a parallel_for_run(). The last
 * thread wakes the caller. */
static void end_part(struct parallel_for *t)
{
    pthread_mutex_lock(&t->lock);
    if (--t->busy == 0)
        pthread_cond_signal(&t->done);
    pthread_mutex_unlock(&t->lock);
}

static void *member_main(void *arg)
{
    struct member *m = arg;
    uint64_t last = 0;
    while (next_run(m->team, &last)) {
        /* Reading `work` and `self` needs no lock: the caller does not change them before all
         * threads have finished their parts. */
        m->team->work(m->team->self, m->part);
        end_part(m->team);
    }
    return NULL;
}

/* Starts the threads. parallel_for_close() joins the first n_started of them. */
static int start(struct parallel_for *t)
{
    for (uint32_t i = 0; i < t->n - 1; i++) {
        struct member *m = &t->members[i];
        *m = (struct member){.team = t, .part = i + 1};
        if (pthread_create(&m->thread, NULL, member_main, m) != 0)
            return -EAGAIN;
        t->n_started++;
    }
    return 0;
}

int parallel_for_open(struct parallel_for **out, uint32_t n)
{
    assert(n >= 1);
    *out = NULL;
    struct parallel_for *t = calloc(1, sizeof *t);
    struct member *members = calloc(n, sizeof *members);
    if (t == NULL || members == NULL) {
        free(t);
        free(members);
        return -ENOMEM;
    }
    t->n = n;
    t->members = members;
    int err = pthread_mutex_init(&t->lock, NULL) | pthread_cond_init(&t->begin, NULL)
              | pthread_cond_init(&t->done, NULL);
    /* Initialising a mutex or a condition variable with default attributes cannot fail. */
    assert(err == 0);
    if (start(t) != 0) {
        parallel_for_close(t);
        return -EAGAIN;
    }
    *out = t;
    return 0;
}

void parallel_for_close(struct parallel_for *t)
{
    if (t == NULL)
        return;
    pthread_mutex_lock(&t->lock);
    assert(t->busy == 0);
    t->stop = true;
    pthread_cond_broadcast(&t->begin);
    pthread_mutex_unlock(&t->lock);
    for (uint32_t i = 0; i < t->n_started; i++)
        pthread_join(t->members[i].thread, NULL);
    pthread_cond_destroy(&t->begin);
    pthread_cond_destroy(&t->done);
    pthread_mutex_destroy(&t->lock);
    free(t->members);
    free(t);
}

/* Part 0 is processed by the calling thread. If there is only one part, neither the lock nor a
 * thread is used. */
void parallel_for_run(struct parallel_for *t, void (*work)(void *self, uint32_t part), void *self)
{
    if (t->n == 1) {
        work(self, 0);
        return;
    }
    pthread_mutex_lock(&t->lock);
    assert(t->busy == 0);
    t->work = work;
    t->self = self;
    t->busy = t->n - 1;
    t->run++;
    pthread_cond_broadcast(&t->begin);
    pthread_mutex_unlock(&t->lock);
    work(self, 0);
    pthread_mutex_lock(&t->lock);
    while (t->busy > 0)
        pthread_cond_wait(&t->done, &t->lock);
    pthread_mutex_unlock(&t->lock);
}
