/* peer/sim/attack.c -- the table of attacks, and the parser of the attack option. */
#include "peer/sim/attack.h"

#include "nn/math/rng.h"
#include "nn/math/vec.h"
#include "peer/sim/who.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const float enormous = 1e10f;
/* Factor by which the inner-product attack IPM multiplies the negated mean (He, Karimireddy,
 * Jaggi 2022, "Byzantine-robust decentralized learning via ClippedGossip"). */
static const float ipm_epsilon = 0.1f;
/* Number of standard deviations from the mean in the attack ALIE (He, Karimireddy, Jaggi 2022). */
static const double alie_deviations = 10;
/* Strength of the dissensus attack, relative to the pull of the honest neighbours (He,
 * Karimireddy, Jaggi 2022). */
static const float dissensus_epsilon = 1.5f;

/* ---- claimed models ---- */

static void claim_huge(const struct attack_scene *s, float *out)
{
    for (size_t k = 0; k < s->dim; k++)
        out[k] = enormous;
}

static void scaled(const struct attack_scene *s, float by, float *out)
{
    for (size_t k = 0; k < s->dim; k++)
        out[k] = by * s->victim[k];
}

static void claim_scaled(const struct attack_scene *s, float *out)
{
    scaled(s, -10, out);
}

static void claim_negated(const struct attack_scene *s, float *out)
{
    scaled(s, -1, out);
}

/* Claims a random vector with the norm of the victim's model. */
static void claim_random(const struct attack_scene *s, float *out)
{
    struct rng rng = rng_stream(s->key);
    double size = sqrt(vec_norm2(s->victim, s->dim) / (double)s->dim);
    for (size_t k = 0; k < s->dim; k++)
        out[k] = (float)(size * rng_normal(&rng));
}

/* Claims a model that is as far from the victim as the victim's farthest honest neighbour, in a
 * direction that is the same in all rounds. */
static void claim_push(const struct attack_scene *s, float *out)
{
    double far2 = 0;
    for (size_t i = 0; i < s->n; i++)
        far2 = fmax(far2, vec_dist2(s->victim, s->honest[i], s->dim));
    float step = (float)sqrt(far2 / (double)s->dim);
    for (size_t k = 0; k < s->dim; k++)
        out[k] = s->victim[k] + (rng_at(s->fixed, k) & 1 ? step : -step);
}

/* Returns element k of the mean of the models of the victim and its honest neighbours. */
static double mean_at(const struct attack_scene *s, size_t k)
{
    double sum = (double)s->victim[k];
    for (size_t i = 0; i < s->n; i++)
        sum += (double)s->honest[i][k];
    return sum / (double)(s->n + 1);
}

static double deviation_at(const struct attack_scene *s, size_t k, double mean)
{
    double off = (double)s->victim[k] - mean, sum = off * off;
    for (size_t i = 0; i < s->n; i++) {
        off = (double)s->honest[i][k] - mean;
        sum += off * off;
    }
    return s->n > 0 ? sqrt(sum / (double)s->n) : 0;
}

static void claim_ipm(const struct attack_scene *s, float *out)
{
    for (size_t k = 0; k < s->dim; k++)
        out[k] = -ipm_epsilon * (float)mean_at(s, k);
}

static void claim_alie(const struct attack_scene *s, float *out)
{
    for (size_t k = 0; k < s->dim; k++) {
        double mean = mean_at(s, k);
        out[k] = (float)(mean - alie_deviations * deviation_at(s, k, mean));
    }
}

/* Claims a model that lies, seen from the victim, in the direction away from its honest neighbours.
 * All attackers together pull the victim more strongly than these neighbours do, so the victim
 * moves away from them. */
static void claim_dissensus(const struct attack_scene *s, float *out)
{
    for (size_t k = 0; k < s->dim; k++) {
        float pull = 0;
        for (size_t i = 0; i < s->n; i++)
            pull += s->honest[i][k] - s->victim[k];
        out[k] = s->victim[k] - dissensus_epsilon * pull / (float)s->n_liars;
    }
}

static void claim_own(const struct attack_scene *s, float *out)
{
    memcpy(out, s->own, s->dim * sizeof *out);
}

const struct attack attack_all[] = {
    {"huge", "every parameter is 1e10", claim_huge, ATTACK_MODEL},
    {"scaled", "the victim's model times -10", claim_scaled, ATTACK_MODEL},
    {"negated", "the victim's model times -1", claim_negated, ATTACK_MODEL},
    {"random", "random noise with the norm of the victim's model", claim_random, ATTACK_MODEL},
    {"push", "a model in a fixed direction, as far away as the farthest honest neighbour",
     claim_push, ATTACK_MODEL},
    {"nan", "deltas whose values are NaN", NULL, ATTACK_MODEL},
    {"ipm", "inner product manipulation: -0.1 times the mean of the honest models", claim_ipm,
     ATTACK_MODEL},
    {"alie", "ALIE: a model 10 standard deviations from the mean of the honest models", claim_alie,
     ATTACK_MODEL},
    {"dissensus", "dissensus: a model opposite to the honest neighbours, 1.5 times as far",
     claim_dissensus, ATTACK_MODEL},
    {"rounds", "an honest model and the claim that all rounds are done", claim_own, ATTACK_ROUNDS},
    {"mute-sketch", "an honest model and no sketches", claim_own, ATTACK_MUTE},
    {"false-sketch", "an honest model and random noise in place of sketches", claim_own,
     ATTACK_SKETCH},
    {"settled", "an honest model and the claim that all distances are under the target", claim_own,
     ATTACK_SETTLED},
    {"unsettled", "an honest model and the claim that no distance is under the target", claim_own,
     ATTACK_UNSETTLED},
    {NULL, NULL, NULL, ATTACK_MODEL}};

/* ---- the option KIND:PEERS ---- */

static int unknown_kind(const char *spec, char error[ATTACK_ERROR_MAX])
{
    size_t at = (size_t)snprintf(error, ATTACK_ERROR_MAX, "found '%.32s', expected one of", spec);
    for (const struct attack *a = attack_all; a->name != NULL && at < ATTACK_ERROR_MAX; a++)
        at += (size_t)snprintf(error + at, ATTACK_ERROR_MAX - at, "%s %s",
                               a == attack_all ? "" : ",", a->name);
    return -EINVAL;
}

int attack_read(const char *spec, uint32_t n, const struct attack **attack, bool *liar,
                char error[ATTACK_ERROR_MAX])
{
    size_t len = strcspn(spec, ":"), honest = 0;
    *attack = NULL;
    for (const struct attack *a = attack_all; a->name != NULL; a++)
        if (strlen(a->name) == len && strncmp(a->name, spec, len) == 0)
            *attack = a;
    if (*attack == NULL)
        return unknown_kind(spec, error);
    memset(liar, 0, n * sizeof *liar);
    liar[n - 1] = spec[len] == '\0';
    int err = spec[len] == ':' ? who_read(spec + len + 1, n, liar, error) : 0;
    for (uint32_t i = 0; i < n; i++)
        honest += !liar[i];
    if (err == 0 && honest == 0) {
        snprintf(error, ATTACK_ERROR_MAX, "found '%.32s', which leaves no honest peer", spec);
        return -EINVAL;
    }
    return err;
}
