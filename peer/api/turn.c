/* peer/api/turn.c -- lets the caller's thread and the peer's threads use the tensors in turns, with
 * one mutex and one condition variable. */
#include "peer/api/turn.h"

#include <stdio.h>
#include <string.h>

/* Interval in milliseconds at which a waiting thread checks the flag `interrupted`. */
enum { LOOK_MS = 50 };

int turn_open(struct turn *t)
{
    *t = (struct turn){.of = TURN_PEER};
    int err = uv_mutex_init(&t->mutex);
    if (err < 0)
        return err;
    err = uv_cond_init(&t->cond);
    if (err < 0)
        uv_mutex_destroy(&t->mutex);
    return err;
}

void turn_close(struct turn *t)
{
    uv_cond_destroy(&t->cond);
    uv_mutex_destroy(&t->mutex);
}

/* ---- Functions that the peer's threads call ---- */

/* Lends the tensors to the caller for `steps` local steps. If the caller leaves the run instead,
 * `handed` stays false. */
int turn_steps(struct turn *t, uint64_t round, uint32_t steps, struct hearsay_did *did)
{
    uv_mutex_lock(&t->mutex);
    t->round = round;
    t->steps = steps;
    t->handed = false;
    if (!t->leaving)
        t->of = TURN_CALLER;
    uv_cond_broadcast(&t->cond);
    while (!t->handed && !t->leaving)
        uv_cond_wait(&t->cond, &t->mutex);
    bool handed = t->handed;
    *did = t->did;
    t->of = TURN_PEER;
    uv_mutex_unlock(&t->mutex);
    return handed ? 0 : -1;
}

int turn_evaluate(struct turn *t, uint64_t samples, struct hearsay_score *score)
{
    uv_mutex_lock(&t->mutex);
    t->samples = samples;
    t->answered = false;
    if (!t->leaving)
        t->of = TURN_TESTS;
    uv_cond_broadcast(&t->cond);
    while (t->of == TURN_TESTS && !t->leaving)
        uv_cond_wait(&t->cond, &t->mutex);
    bool answered = t->answered;
    *score = t->score;
    t->of = TURN_PEER;
    uv_mutex_unlock(&t->mutex);
    return answered ? 0 : -1;
}

void turn_note(struct turn *t, int level, const char *text)
{
    uv_mutex_lock(&t->mutex);
    if (t->n_notes < TURN_NOTES) {
        size_t at = (t->first + t->n_notes++) % TURN_NOTES;
        t->note[at].level = level;
        snprintf(t->note[at].text, TURN_NOTE_MAX, "%s", text);
    } else {
        t->n_lost++;
    }
    uv_cond_broadcast(&t->cond);
    uv_mutex_unlock(&t->mutex);
}

void turn_over(struct turn *t)
{
    uv_mutex_lock(&t->mutex);
    t->of = TURN_OVER;
    uv_cond_broadcast(&t->cond);
    uv_mutex_unlock(&t->mutex);
}

/* ---- Functions that the caller's thread calls ---- */

void turn_leave(struct turn *t)
{
    uv_mutex_lock(&t->mutex);
    t->leaving = true;
    if (t->of != TURN_OVER)
        t->of = TURN_PEER;
    uv_cond_broadcast(&t->cond);
    uv_mutex_unlock(&t->mutex);
}

void turn_hand_over(struct turn *t, const struct hearsay_did *did)
{
    uv_mutex_lock(&t->mutex);
    t->did = *did;
    t->handed = true;
    t->of = TURN_PEER;
    uv_cond_broadcast(&t->cond);
    uv_mutex_unlock(&t->mutex);
}

void turn_answer(struct turn *t, const struct hearsay_score *score)
{
    uv_mutex_lock(&t->mutex);
    t->answered = score != NULL;
    if (score != NULL)
        t->score = *score;
    if (t->of == TURN_TESTS)
        t->of = TURN_PEER;
    uv_cond_broadcast(&t->cond);
    uv_mutex_unlock(&t->mutex);
}

/* Each wait on the condition variable lasts at most LOOK_MS: hearsay_interrupt() may run in a
 * signal handler, which may set a flag but not signal a condition variable. */
enum turn_side turn_await(struct turn *t, uint64_t at_ns)
{
    uv_mutex_lock(&t->mutex);
    while (t->of == TURN_PEER && t->n_notes == 0 && !t->interrupted) {
        uint64_t now = uv_hrtime(), look = (uint64_t)LOOK_MS * 1000000;
        if (now >= at_ns)
            break;
        uint64_t left = at_ns - now;
        (void)uv_cond_timedwait(&t->cond, &t->mutex, left < look ? left : look);
    }
    enum turn_side of = t->of;
    uv_mutex_unlock(&t->mutex);
    return of;
}

bool turn_interrupted(struct turn *t)
{
    return atomic_exchange(&t->interrupted, false);
}

bool turn_next_note(struct turn *t, int *level, char text[TURN_NOTE_MAX])
{
    uv_mutex_lock(&t->mutex);
    bool any = t->n_notes > 0;
    if (any) {
        *level = t->note[t->first].level;
        memcpy(text, t->note[t->first].text, TURN_NOTE_MAX);
        t->first = (t->first + 1) % TURN_NOTES;
        t->n_notes--;
    } else if (t->n_lost > 0) {
        any = true;
        *level = 1;
        snprintf(text, TURN_NOTE_MAX,
                 "%llu messages were lost, because more than %d arrived between two calls of the "
                 "library",
                 (unsigned long long)t->n_lost, TURN_NOTES);
        t->n_lost = 0;
    }
    uv_mutex_unlock(&t->mutex);
    return any;
}
