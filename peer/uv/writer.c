/* peer/uv/writer.c -- a thread that writes one checkpoint at a time to the disk and notifies the
 * loop with uv_async. */
#include "peer/uv/writer.h"

#include "nn/math/c_locale.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum stage { IDLE, POSTED, ENDED };

/* Data that the loop thread and the writer thread access. They are allocated apart from the driver,
 * so that a writer thread that hangs in a disk operation can safely return after the driver was
 * freed. */
struct uv_writer_job
{
    uv_thread_t thread;
    uv_mutex_t mutex;
    /* Condition variable that is signalled when `stage`, `quit` or `gone` changes. */
    uv_cond_t cond;
    /* Handle by which the writer thread wakes up the loop. NULL: the loop no longer listens.
     * `async` and the next three fields are protected by the mutex. */
    uv_async_t *async;
    enum stage stage;
    bool quit;
    bool gone; /* True: the writer thread has ended. */
    /* All fields from `slots` on belong to the writer thread while `stage` is POSTED, and to the
     * loop thread otherwise. */
    struct checkpoint_store *slots;
    struct state state;
    /* Label of the checkpoint to write. `text` holds the strings of the label. */
    struct checkpoint_file_label label;
    char *text;
    size_t cap_text;
    struct uv_writer_result result;
};

static int64_t now_us(void)
{
    return (int64_t)(uv_hrtime() / 1000);
}

/* ---- Functions of the writer thread ---- */

static int64_t own_cpu_us(void)
{
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void write_state(struct uv_writer_job *j)
{
    struct uv_writer_result *r = &j->result;
    int64_t begin = now_us(), cpu = own_cpu_us();
    *r = (struct uv_writer_result){.beat = j->label.beat};
    r->err = checkpoint_store_write(j->slots, &j->state, &j->label, r->why);
    r->time_us = now_us() - begin;
    r->cpu_us = own_cpu_us() - cpu;
    if (r->err < 0)
        return;
    r->n_bytes = checkpoint_file_bytes(&j->slots->pieces);
    snprintf(r->why, sizeof r->why, "%.200s/%s: stored step %llu, %llu bytes in %.2f s",
             j->slots->dir, checkpoint_store_name(j->slots->newest), (unsigned long long)r->beat,
             (unsigned long long)r->n_bytes, (double)r->time_us * 1e-6);
}

static void run(void *arg)
{
    struct uv_writer_job *j = arg;
    (void)c_locale_enter();
    uv_mutex_lock(&j->mutex);
    for (;;) {
        while (j->stage != POSTED && !j->quit)
            uv_cond_wait(&j->cond, &j->mutex);
        if (j->stage != POSTED)
            break;
        uv_mutex_unlock(&j->mutex);
        write_state(j);
        uv_mutex_lock(&j->mutex);
        j->stage = ENDED;
        if (j->async != NULL)
            uv_async_send(j->async);
    }
    j->gone = true;
    uv_cond_broadcast(&j->cond);
    uv_mutex_unlock(&j->mutex);
}

/* ---- Functions of the loop thread ---- */

static void free_job(struct uv_writer_job *j)
{
    state_close(&j->state);
    free(j->text);
    uv_cond_destroy(&j->cond);
    uv_mutex_destroy(&j->mutex);
    free(j);
}

/* Takes the result of a finished write. Returns false if no write has finished: libuv may merge
 * several wake-ups into one, so a wake-up may come without a result. */
static bool take_result(struct uv_writer *w, struct uv_writer_result *r)
{
    struct uv_writer_job *j = w->job;
    uv_mutex_lock(&j->mutex);
    bool ended = j->stage == ENDED;
    if (ended) {
        *r = j->result;
        j->stage = IDLE;
    }
    uv_mutex_unlock(&j->mutex);
    if (!ended)
        return false;
    w->n_kept += r->err == 0;
    w->n_failed += r->err < 0;
    w->n_bytes += r->n_bytes;
    w->time_us += r->time_us;
    w->cpu_us += r->cpu_us;
    return true;
}

static void on_async(uv_async_t *async)
{
    struct uv_writer *w = async->data;
    struct uv_writer_result r;
    if (take_result(w, &r))
        w->done(w->self, &r);
}

static int new_job(struct uv_writer_job **job, struct checkpoint_store *slots)
{
    struct uv_writer_job *j = calloc(1, sizeof *j);
    if (j == NULL)
        return -ENOMEM;
    j->slots = slots;
    int err = uv_mutex_init(&j->mutex);
    if (err < 0)
        goto no_mutex;
    err = uv_cond_init(&j->cond);
    if (err < 0)
        goto no_cond;
    *job = j;
    return 0;
no_cond:
    uv_mutex_destroy(&j->mutex);
no_mutex:
    free(j);
    return err;
}

int uv_writer_open(struct uv_writer *w, uv_loop_t *loop, struct checkpoint_store *slots,
                   void (*done)(void *self, const struct uv_writer_result *r), void *self)
{
    *w = (struct uv_writer){.done = done, .self = self};
    int err = new_job(&w->job, slots);
    if (err < 0)
        return err;
    err = uv_async_init(loop, &w->async, on_async);
    if (err < 0) {
        free_job(w->job);
        return err;
    }
    w->async.data = w;
    w->job->async = &w->async;
    err = uv_thread_create(&w->job->thread, run, w->job);
    if (err < 0) {
        uv_close((uv_handle_t *)&w->async, NULL);
        free_job(w->job);
    }
    return err;
}

bool uv_writer_busy(const struct uv_writer *w)
{
    struct uv_writer_job *j = w->job;
    uv_mutex_lock(&j->mutex);
    bool busy = j->stage != IDLE;
    uv_mutex_unlock(&j->mutex);
    return busy;
}

/* Appends one text of a checkpoint's label to the memory at `*at`. Returns the copy. A NULL text
 * gives NULL. */
static const char *append_text(char **at, const char *text)
{
    if (text == NULL)
        return NULL;
    size_t n = strlen(text) + 1;
    char *copy = memcpy(*at, text, n);
    *at += n;
    return copy;
}

/* Copies the label of a checkpoint (run, peer and step counter) to the job. The copied texts are
 * stored one after the other in j->text. */
static int copy_label(struct uv_writer_job *j, const struct checkpoint_file_label *label)
{
    const char *const text[] = {label->run, label->name, label->owner, label->trained_on};
    size_t n = 0;
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        n += text[i] != NULL ? strlen(text[i]) + 1 : 0;
    if (n > j->cap_text) {
        char *grown = realloc(j->text, n);
        if (grown == NULL)
            return -ENOMEM;
        j->text = grown;
        j->cap_text = n;
    }
    char *at = j->text;
    j->label.run = append_text(&at, label->run);
    j->label.name = append_text(&at, label->name);
    j->label.owner = append_text(&at, label->owner);
    j->label.trained_on = append_text(&at, label->trained_on);
    j->label.beat = label->beat;
    return 0;
}

int uv_writer_keep(struct uv_writer *w, struct state *s, const struct checkpoint_file_label *label)
{
    struct uv_writer_job *j = w->job;
    if (uv_writer_busy(w))
        return -EBUSY;
    int err = copy_label(j, label);
    if (err < 0)
        return err;
    struct state taken = *s;
    *s = j->state;
    state_write(s);
    j->state = taken;
    uv_mutex_lock(&j->mutex);
    j->stage = POSTED;
    uv_cond_broadcast(&j->cond);
    uv_mutex_unlock(&j->mutex);
    return 0;
}

/* Waits at most limit_us microseconds for the writer thread to end. The caller holds the mutex. */
static void wait_for_end(struct uv_writer_job *j, int64_t limit_us)
{
    int64_t end = now_us() + limit_us;
    for (int64_t left = limit_us; !j->gone && left > 0; left = end - now_us())
        (void)uv_cond_timedwait(&j->cond, &j->mutex, (uint64_t)left * 1000);
}

int uv_writer_close(struct uv_writer *w, int64_t finish_us, int64_t limit_us,
                    struct uv_writer_result *result, bool *last)
{
    struct uv_writer_job *j = w->job;
    struct uv_writer_result unsaid;
    uv_mutex_lock(&j->mutex);
    j->quit = true;
    if (j->async != NULL)
        uv_close((uv_handle_t *)j->async, NULL);
    j->async = NULL;
    uv_cond_broadcast(&j->cond);
    wait_for_end(j, finish_us);
    if (!j->gone) {
        atomic_store(&j->slots->stop, true);
        wait_for_end(j, limit_us);
    }
    bool gone = j->gone;
    uv_mutex_unlock(&j->mutex);
    bool said = !gone || !take_result(w, &unsaid);
    if (last != NULL)
        *last = !said;
    if (result != NULL && !said)
        *result = unsaid;
    if (!gone)
        return -ETIMEDOUT;
    int err = uv_thread_join(&j->thread);
    assert(err == 0);
    free_job(j);
    w->job = NULL;
    return 0;
}
