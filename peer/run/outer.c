/* peer/run/outer.c -- parses and prints the value of the run key `outer`. */
#include "peer/run/outer.h"

#include "nn/math/number.h"
#include "topology/round_schedule.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Limits of the learning rate, and largest momentum. With a smaller learning rate, most models
 * would not change. With a larger momentum, a constant update would be amplified more than 1,000
 * times. */
static const double least_lr = 1e-6, most_lr = 10, most_momentum = 0.999;

bool run_outer_parse(const char *value, struct run_outer *o)
{
    static const char name[] = "nesterov:";
    char lr[RUN_OUTER_MAX];
    *o = (struct run_outer){.lr = 0};
    if (strcmp(value, "none") == 0)
        return true;
    const char *first = value + sizeof name - 1;
    const char *colon = strncmp(value, name, sizeof name - 1) == 0 ? strchr(first, ':') : NULL;
    size_t n = colon != NULL ? (size_t)(colon - first) : sizeof lr;
    if (n >= sizeof lr)
        return false;
    memcpy(lr, first, n);
    lr[n] = '\0';
    return number_real(lr, &o->lr) && number_real(colon + 1, &o->momentum) && o->lr >= least_lr
           && o->lr <= most_lr && o->momentum >= 0 && o->momentum <= most_momentum;
}

void run_outer_text(const struct run_outer *o, char *out)
{
    char lr[NUMBER_TEXT_MAX], momentum[NUMBER_TEXT_MAX];
    static_assert(sizeof "nesterov::" + 2 * NUMBER_TEXT_MAX <= (size_t)RUN_OUTER_MAX, "fits");
    number_real_text(o->lr, lr);
    /* Adding 0.0 turns a momentum of -0 into 0, so that both have the text "0". */
    number_real_text(o->momentum + 0.0, momentum);
    if (o->lr > 0)
        snprintf(out, RUN_OUTER_MAX, "nesterov:%s:%s", lr, momentum);
    else
        snprintf(out, RUN_OUTER_MAX, "none");
}

struct run_outer run_outer_of(const struct run *r)
{
    struct run_outer o = {.lr = 0};
    bool valid = r->outer[0] == '\0' || run_outer_parse(r->outer, &o);
    assert(valid);
    return o;
}

/*
 * Consider a difference between the models of peers that belongs to the eigenvalue l of the mixing
 * matrix. Let the local steps of a round reduce the difference by the share c, in [0, 1], and let mu
 * be the outer momentum. One round changes the difference x and the outer momentum u by
 *
 *   u <- mu u - c x
 *   x <- l (x + lr (mu u - c x))       with the new u (nn/train/outer_optimiser.h)
 *
 * For l >= 0 and lr c < 1, x decays. For l < 0, x decays only if lr c < (1 - mu) (1 - 1 / l). The
 * right side decreases to 2 (1 - mu) as l goes to -1. If lr is at most 2 (1 - mu), x therefore
 * decays for every mixing matrix, and gamma needs no limit.
 *
 * Two kinds of topologies have no limit either. On a complete graph, gamma = 1 gives all peers the
 * exact mean: l is 0. Of the round schedules, base:K gives all peers the exact mean after each pass,
 * and the others average pairs of models: l is 0 or 1.
 */
bool run_outer_limits_gamma(const struct run *r)
{
    struct run_outer o = run_outer_of(r);
    return r->gamma_auto && o.momentum > 0 && o.lr > 2 * (1 - o.momentum)
           && strcmp(r->topology, "complete") != 0 && !round_schedule_of(r->topology);
}
