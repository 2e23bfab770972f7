/* nn/math/thread_pool.c -- threads that wait for jobs in a queue. One lock guards the queue. This
 * is enough, because a job is a whole round of a peer, which takes much longer than the lock is
 * ever held. */
#include "nn/math/thread_pool.h"

#include "nn/math/c_locale.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct member
{
    struct thread_pool *crew;
    uint32_t index;
    pthread_t thread;
};

struct thread_pool
{
    pthread_mutex_t lock;
    pthread_cond_t given, done;
    /* Queue of jobs. Guarded by the lock, as are `quit` and the state of each job. */
    struct thread_pool_job *first, *last;
    bool quit;
    /* n_members: threads including the caller. n_started: threads that have been started. */
    uint32_t n_members, n_started;
    struct member members[THREAD_POOL_MAX];
};

/* Removes a job from the queue: the job `which`, or the first job if `which` is NULL. Returns the
 * job, or NULL if it is not in the queue. */
static struct thread_pool_job *take(struct thread_pool *c, const struct thread_pool_job *which)
{
    struct thread_pool_job *before = NULL, *job = c->first;
    while (job != NULL && which != NULL && job != which) {
        before = job;
        job = job->next;
    }
    if (job == NULL)
        return NULL;
    if (before != NULL)
        before->next = job->next;
    else
        c->first = job->next;
    if (c->last == job)
        c->last = before;
    job->state = THREAD_POOL_RUNNING;
    return job;
}

/* Runs a job. Called with the lock held, which is released while the job runs. */
static void run(struct thread_pool *c, struct thread_pool_job *job, uint32_t member)
{
    pthread_mutex_unlock(&c->lock);
    job->run(job->self, member);
    pthread_mutex_lock(&c->lock);
    job->state = THREAD_POOL_DONE;
    /* Waking one thread is enough: only the caller waits for the end of a job. */
    pthread_cond_signal(&c->done);
}

static void *member_main(void *arg)
{
    struct member *m = arg;
    struct thread_pool *c = m->crew;
    (void)c_locale_enter();
    pthread_mutex_lock(&c->lock);
    while (!c->quit) {
        struct thread_pool_job *job = take(c, NULL);
        if (job != NULL)
            run(c, job, m->index);
        else
            pthread_cond_wait(&c->given, &c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

int thread_pool_open(struct thread_pool **out, uint32_t n_members)
{
    assert(n_members >= 1 && n_members <= THREAD_POOL_MAX);
    *out = NULL;
    struct thread_pool *c = calloc(1, sizeof *c);
    if (c == NULL)
        return -ENOMEM;
    c->n_members = n_members;
    int err = pthread_mutex_init(&c->lock, NULL) | pthread_cond_init(&c->given, NULL)
              | pthread_cond_init(&c->done, NULL);
    assert(err == 0);
    for (uint32_t i = 1; i < n_members; i++) {
        struct member *m = &c->members[i];
        *m = (struct member){.crew = c, .index = i};
        if (pthread_create(&m->thread, NULL, member_main, m) != 0) {
            thread_pool_close(c);
            return -EAGAIN;
        }
        c->n_started++;
    }
    *out = c;
    return 0;
}

void thread_pool_close(struct thread_pool *c)
{
    if (c == NULL)
        return;
    assert(c->first == NULL);
    pthread_mutex_lock(&c->lock);
    c->quit = true;
    pthread_cond_broadcast(&c->given);
    pthread_mutex_unlock(&c->lock);
    for (uint32_t i = 1; i <= c->n_started; i++)
        pthread_join(c->members[i].thread, NULL);
    pthread_cond_destroy(&c->given);
    pthread_cond_destroy(&c->done);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

void thread_pool_give(struct thread_pool *c, struct thread_pool_job *job)
{
    assert(job->state == THREAD_POOL_IDLE || job->state == THREAD_POOL_DONE);
    if (c->n_members == 1) {
        job->run(job->self, 0);
        return;
    }
    pthread_mutex_lock(&c->lock);
    job->state = THREAD_POOL_QUEUED;
    job->next = NULL;
    if (c->last != NULL)
        c->last->next = job;
    else
        c->first = job;
    c->last = job;
    pthread_cond_signal(&c->given);
    pthread_mutex_unlock(&c->lock);
}

void thread_pool_await(struct thread_pool *c, struct thread_pool_job *job)
{
    if (c->n_members == 1)
        return;
    pthread_mutex_lock(&c->lock);
    while (job->state == THREAD_POOL_QUEUED || job->state == THREAD_POOL_RUNNING) {
        struct thread_pool_job *next = take(c, job->state == THREAD_POOL_QUEUED ? job : NULL);
        if (next != NULL)
            run(c, next, 0);
        else
            pthread_cond_wait(&c->done, &c->lock);
    }
    job->state = THREAD_POOL_IDLE;
    pthread_mutex_unlock(&c->lock);
}
