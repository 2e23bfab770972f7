/* peer/node/step/rollback.c -- keeps the last good model and returns to it when training
 * diverges. */
#include "peer/node/step/rollback.h"

#include "nn/math/number.h"
#include "nn/math/vec.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COPY = 64, /* Least number of rounds between two copies of the model. */
    /* Number of held-out samples whose loss decides whether an unusually large move was harmful. */
    SAMPLES = 64
};

/* Training has diverged if a loss is above this multiple of (`limit` + 1 nat). `limit` is about the
 * first loss of the run. */
static const double spike = 100;
/* A model is suspect if its distance to the last copy exceeds this multiple of the largest earlier
 * distance, and also this multiple of the length of the copy. */
static const double far_times = 32;
/* A loss is good if it exceeds the initial loss by at most this value, in nats. */
static const double worse_nats = 1;
/* The first loss may be low by chance. Therefore this value, in nats, divided by the square root of
 * the number of samples of the first loss, is added to that loss. */
static const double noise_nats = 2;
/* Training has diverged if the squared length of the model exceeds this limit. */
static const double most_norm2 = 1e38;

int rollback_open(struct rollback *r, const struct trainer *t)
{
    *r = (struct rollback){.dim = segments_trained(t->segments, t->n_segments),
                           .first = (double)NAN,
                           .limit = (double)NAN,
                           .loss = (double)NAN};
    r->good = malloc(t->n_params * sizeof *r->good);
    if (r->good == NULL)
        return -ENOMEM;
    r->trainer = t;
    return 0;
}

void rollback_close(struct rollback *r)
{
    free(r->good);
    state_close(&r->kept);
    *r = (struct rollback){.trainer = NULL};
}

/* ---- copies ---- */

static bool went_far(const struct rollback *r, double moved2)
{
    return moved2 > far_times * far_times * fmax(r->most2, r->norm2);
}

/* Returns whether model x is good enough to return to later: its loss is low, and exchanges with
 * neighbours have not moved it far away from the last copy. */
static bool is_good(const struct rollback *r, const float *x)
{
    bool fine = r->untold || r->loss <= r->limit + worse_nats;
    return fine && !went_far(r, vec_dist2(x, r->good, r->dim));
}

void rollback_mark(struct rollback *r, const float *x, uint64_t round)
{
    const struct trainer *t = r->trainer;
    assert(t != NULL && (!r->has || round >= r->now));
    r->now = round;
    if (r->has && (round < r->round + COPY || !is_good(r, x)))
        return;
    memcpy(r->good, x, t->n_params * sizeof *x);
    r->round = round;
    r->norm2 = vec_norm2(x, r->dim);
    r->has = true;
    if (t->state == NULL)
        return;
    state_write(&r->kept);
    t->state(t->self, &r->kept);
    if (state_end(&r->kept) != 0)
        state_close(&r->kept);
}

static void go_back(struct rollback *r, float *x)
{
    const struct trainer *t = r->trainer;
    struct state s;
    memcpy(x, r->good, t->n_params * sizeof *x);
    if (t->state == NULL || r->kept.n_sections == 0)
        return;
    state_read(&s, r->kept.bytes, r->kept.n, r->kept.section, r->kept.n_sections);
    t->state(t->self, &s);
    int err = state_end(&s);
    /* The copied state of the trainer is valid, because rollback_mark() has written it. */
    assert(err == 0);
    if (t->rolled_back != NULL)
        t->rolled_back(t->self);
}

/* ---- judgement ---- */

static bool is_spike(const struct rollback *r, double loss)
{
    return !(loss <= spike * (r->limit + worse_nats));
}

/* Stores the first finite loss of the run, and the limit that later losses are compared with.
 * is_spike() multiplies the limit by `spike`, so a negative first loss counts as 0. */
static void begin(struct rollback *r, const struct trainer_report *report)
{
    double n = report->n_samples > 0 ? (double)report->n_samples : 1;
    if (!isnan(r->first) || !isfinite(report->loss))
        return;
    r->first = report->loss;
    r->limit = fmax(report->loss, 0) + noise_nats / sqrt(n);
}

/* Returns whether the loss of SAMPLES held-out samples is as high as in a divergence. If so, stores
 * this loss in r->loss. */
static bool led_nowhere(struct rollback *r, const float *x)
{
    const struct trainer *t = r->trainer;
    struct trainer_report tested = {0};
    t->evaluate(t->self, x, SAMPLES, &tested);
    if (tested.n_samples == 0 || !is_spike(r, tested.loss))
        return false;
    r->loss = tested.loss;
    return true;
}

bool rollback_look(struct rollback *r, float *x, const struct trainer_report *report)
{
    size_t n = r->trainer->n_params;
    assert(r->has && r->round <= r->now);
    begin(r, report);
    r->loss = report->loss;
    r->untold = report->n_samples == 0 && isnan(report->loss);
    double moved2 = vec_dist2(x, r->good, r->dim), norm2 = vec_norm2(x, r->dim);
    bool away = (!r->untold && is_spike(r, report->loss)) || !(norm2 <= most_norm2)
                || !isfinite(vec_norm2(x + r->dim, n - r->dim))
                || (went_far(r, moved2) && led_nowhere(r, x));
    if (!away) {
        r->most2 = fmax(r->most2, moved2);
        return false;
    }
    r->n++;
    go_back(r, x);
    return true;
}

void rollback_state(struct rollback *r, struct state *s)
{
    state_f64(s, &r->first);
    state_f64(s, &r->limit);
    state_f64(s, &r->loss);
    state_f64(s, &r->most2);
    state_u32(s, &r->n);
}

/* Returns `words` followed by the initial loss, or "" if no loss was ever a finite number. */
static const char *begun(const struct rollback *r, const char *words, char out[48])
{
    char first[NUMBER_TEXT_MAX];
    out[0] = '\0';
    if (!isnan(r->first))
        snprintf(out, 48, "%s %s", words, number_said(r->first, first));
    return out;
}

void rollback_say(const struct rollback *r, char out[ROLLBACK_TEXT])
{
    char loss[NUMBER_TEXT_MAX], first[48];
    assert(r->n > 0);
    snprintf(out, ROLLBACK_TEXT,
             "round %llu: training diverged (the loss is %s%s) and returns to the model of round "
             "%llu; %s",
             (unsigned long long)r->now, number_said(r->loss, loss),
             begun(r, ", and began at", first), (unsigned long long)r->round,
             r->n == 1 ? "if training diverges again, the run ends"
                       : "training has diverged before, so the run ends");
}

void rollback_why(const struct rollback *r, char why[DIVERGENCE_TEXT])
{
    char loss[NUMBER_TEXT_MAX], first[48];
    number_said(r->loss, loss);
    begun(r, ", having begun at", first);
    if (isfinite(r->loss))
        snprintf(why, DIVERGENCE_TEXT,
                 "the training loss ended at %s%s; the model is of round %llu", loss, first,
                 (unsigned long long)r->round);
    else
        snprintf(why, DIVERGENCE_TEXT,
                 "the loss is %s since round %llu%s; the model is of round %llu", loss,
                 (unsigned long long)r->now, first, (unsigned long long)r->round);
}
