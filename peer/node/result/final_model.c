/* peer/node/result/final_model.c -- reports the end of this peer's run after the final model is
 * stored or lost. */
#include "peer/node/result/final_model.h"

#include "peer/node/result/certificate.h"
#include "peer/node/state.h"
#include "peer/node/timers.h"

#include <assert.h>
#include <stdlib.h>

struct final_model
{
    enum final_model_state state;
    /* Delay of the retry that follows the next failed write, in microseconds. Doubles with each
     * failure, up to FINAL_MODEL_RETRY_MAX_US. 0: no write has failed yet. */
    int64_t wait_us;
    int64_t since_us; /* Node time of the first failed write. Valid if wait_us > 0. */
    int64_t retry_us; /* Node time of the next write. 0: no write is planned. */
};

struct final_model *final_model_open(void)
{
    return calloc(1, sizeof(struct final_model));
}

enum final_model_state final_model_state(const struct node *n)
{
    return n->final_model->state;
}

bool node_model_is_final(const struct node *n)
{
    return phases_phase(n->phases) == NODE_FINISHING;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Checks what holds after each event. O(1). */
static void final_model_check(const struct final_model *f)
{
    assert(f->wait_us == 0
           || (FINAL_MODEL_RETRY_US <= f->wait_us && f->wait_us <= FINAL_MODEL_RETRY_MAX_US));
    assert(f->wait_us > 0 || (f->since_us == 0 && f->retry_us == 0));
    assert(f->retry_us == 0 || (f->state == FINAL_MODEL_PENDING && f->retry_us >= f->since_us));
    assert(f->state != FINAL_MODEL_LOST || f->wait_us > 0);
}

/* Reports this peer's end to the other members. The report must wait until the model is stored or
 * lost, because a peer without a stored model has failed. In both cases this peer's exchanges are
 * complete at this time. */
static void final_model_end(struct node *n, enum final_model_state state)
{
    assert(n->final_model->state == FINAL_MODEL_PENDING && state != FINAL_MODEL_PENDING);
    n->final_model->state = state;
    /* After a second rollback the stored model is an old one, so the peer has failed. */
    bool finished = state == FINAL_MODEL_STORED && !job_has_failed(n->job);
    members_set_state(n->env.members, finished ? RECORD_FINISHED : RECORD_FAILED);
    /* If this peer has failed, the FAILED record is sent first. A neighbour may end as soon as the
     * PING of sessions_say_finished_all() arrives, and must not count this peer as finished. */
    if (!finished)
        sessions_last_news(n->sessions);
    sessions_say_finished_all(n->sessions);
    if (finished)
        certificate_freeze(n);
}

/* Chooses the time of the next write. Returns false if the time limit has passed. */
static bool final_model_retry(struct node *n, const char *why)
{
    struct final_model *f = n->final_model;
    int64_t now_us = n->env.now_us, limit_us = n->env.config.patience_us;
    if (f->wait_us == 0) {
        f->since_us = now_us;
        f->wait_us = FINAL_MODEL_RETRY_US;
        if (limit_us > 0)
            env_note(&n->env, NOTE_WARNING,
                     "the final model is not stored, retrying for %.0f s (--quorum-timeout): %s",
                     (double)limit_us * 1e-6, why);
    }
    int64_t left_us = f->since_us + limit_us - now_us;
    if (left_us <= 0)
        return false;
    f->retry_us = now_us + smaller(f->wait_us, left_us);
    f->wait_us = smaller(2 * f->wait_us, FINAL_MODEL_RETRY_MAX_US);
    return true;
}

void final_model_kept(struct node *n, const char *why)
{
    struct final_model *f = n->final_model;
    if (phases_phase(n->phases) != NODE_FINISHING || job_is_running(n->job)
        || f->state != FINAL_MODEL_PENDING)
        return;
    assert(f->retry_us == 0); /* The driver reports KEPT once for each write. */
    if (why == NULL) {
        if (f->wait_us > 0)
            env_note(&n->env, NOTE_WARNING, "the final model is stored, after retries for %.0f s",
                     (double)(n->env.now_us - f->since_us) * 1e-6);
        final_model_end(n, FINAL_MODEL_STORED);
    } else if (!final_model_retry(n, why)) {
        env_note(&n->env, NOTE_ERROR,
                 "the final model is lost, and this peer reports to the other peers that it has "
                 "failed: %s",
                 why);
        final_model_end(n, FINAL_MODEL_LOST);
    }
    final_model_check(f);
}

void final_model_reopen(struct node *n)
{
    assert(!job_is_running(n->job) && n->final_model->state != FINAL_MODEL_LOST);
    *n->final_model = (struct final_model){.state = FINAL_MODEL_PENDING};
    if (members_self(n->env.members)->state == RECORD_FINISHED)
        members_set_state(n->env.members, RECORD_TRAINED);
}

void final_model_update(struct node *n)
{
    struct final_model *f = n->final_model;
    if (f->retry_us == 0 || n->env.now_us < f->retry_us)
        return;
    assert(phases_phase(n->phases) == NODE_FINISHING && !job_is_running(n->job));
    f->retry_us = 0;
    n->env.fx->write_model = true;
    final_model_check(f);
}
