/* nn/shards/shard.c -- selects a peer's samples and the order in which it draws them.
 *
 *   position p of the peer's endless sequence = shard_step(round, step) * batch + i
 *   epoch = p / count; its order is a permutation drawn from (seed, peer, epoch)
 *   place in this order = p % count
 *
 * A batch depends on its number only. A peer that missed some rounds therefore draws the same later
 * batches as if it had not missed them.
 */
#include "nn/shards/shard.h"

#include "nn/math/number.h"
#include "nn/math/rng.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int shard_spec_parse(struct shard_spec *s, const char *text, char error[DATA_ERROR_MAX])
{
    *s = (struct shard_spec){.mode = SHARD_OWN, .n_parts = 1};
    if (strcmp(text, "own") == 0)
        return 0;
    s->mode = SHARD_AUTO;
    if (strcmp(text, "auto") == 0)
        return 0;
    s->mode = SHARD_PART;
    uint32_t i = 0;
    const char *p = number_count(text, SHARD_PARTS_MAX, &i);
    p = p != NULL && *p == '/' ? number_count(p + 1, SHARD_PARTS_MAX, &s->n_parts) : NULL;
    if (p != NULL && *p == '\0' && i <= s->n_parts) {
        s->part = i - 1;
        return 0;
    }
    snprintf(error, DATA_ERROR_MAX,
             "found \"%.60s\", expected i/n with i from 1 to n and n at most %d, "
             "own, or auto",
             text, SHARD_PARTS_MAX);
    return -EINVAL;
}

/* Gives the shard the `count` samples that `owner` has in the table of owners, or the whole set if
 * `owner` is NULL. On failure the shard is unchanged. */
static int hold_samples(struct shard *s, size_t count, const uint64_t *owner)
{
    uint32_t *order = calloc(count, sizeof *order);
    uint32_t *sample = owner != NULL ? calloc(count, sizeof *sample) : NULL;
    if (order == NULL || (owner != NULL && sample == NULL)) {
        free(order);
        free(sample);
        return -ENOMEM;
    }
    if (owner != NULL)
        shard_owners_samples(s->owners, *owner, sample);
    free(s->order);
    free(s->sample);
    s->order = order;
    s->sample = sample;
    s->count = count;
    s->epoch = UINT64_MAX;
    return 0;
}

/* Gives the shard the samples that `owner` has in the table of owners. If `owner` has no sample,
 * the shard gets the whole set. */
static int hold_owned(struct shard *s, uint64_t owner)
{
    size_t count = shard_owners_count(s->owners, owner);
    return count > 0 ? hold_samples(s, count, &owner) : hold_samples(s, s->n_set, NULL);
}

/* Gives the shard its fixed part (--shard i/n) of the set. */
static int hold_part(struct shard *s)
{
    int err = shard_owners_parts(s->owners, s->spec.n_parts);
    return err < 0 ? err : hold_owned(s, s->spec.part);
}

/* Only a shard of mode SHARD_AUTO depends on the live members. */
int shard_members(struct shard *s, const uint64_t *keys, size_t n, uint64_t own)
{
    if (s->spec.mode != SHARD_AUTO)
        return 0;
    int err = shard_owners_members(s->owners, keys, n, own);
    return err < 0 ? err : hold_owned(s, own);
}

/* Sets the table of owners: the shared table of the configuration, or a new one. A shard of mode
 * SHARD_OWN has all samples and needs no table. */
static int open_owners(struct shard *s, const struct shard_config *config,
                       const struct dataset *set)
{
    s->owners = config->owners;
    if (s->owners != NULL || s->spec.mode == SHARD_OWN)
        return 0;
    s->owners_mine = true;
    return shard_owners_open(&s->owners, set, &config->split, config->seed);
}

/* Selects the samples of a shard when it is opened. */
static int first_samples(struct shard *s)
{
    switch (s->spec.mode) {
    case SHARD_PART:
        return hold_part(s);
    case SHARD_OWN:
    /* A shard of mode SHARD_AUTO has all samples until shard_members() is called. */
    case SHARD_AUTO:
        return hold_samples(s, s->n_set, NULL);
    }
    assert(false);
    return -EINVAL;
}

/* Checks that the data set can be divided as the configuration requires. */
static int check_split(const struct shard_config *c, const struct dataset *set,
                       char error[DATA_ERROR_MAX])
{
    if (c->spec.mode == SHARD_OWN)
        return 0;
    if (shard_split_by_label(&c->split) && set->labels == NULL) {
        char text[SHARD_SPLIT_MAX];
        shard_split_print(&c->split, text);
        snprintf(error, DATA_ERROR_MAX,
                 "found the partition %s, expected iid or file: a text has no labels", text);
        return -EINVAL;
    }
    if (c->spec.mode == SHARD_AUTO)
        return 0;
    bool by_file = c->split.fall == SHARD_FILE;
    size_t n_files = set->file != NULL ? set->n_files : 1;
    size_t most = by_file && n_files < set->n ? n_files : set->n;
    if (c->spec.n_parts <= most)
        return 0;
    snprintf(error, DATA_ERROR_MAX, "found %u parts, expected at most %zu, the number of %s",
             c->spec.n_parts, most, by_file ? "files" : "samples");
    return -EINVAL;
}

/* If shard_open() fails, the shard owns no memory, and shard_close() need not be called. */
int shard_open(struct shard *s, const struct shard_config *config, const struct dataset *set,
               char error[DATA_ERROR_MAX])
{
    assert(config->local_steps >= 1 && set->n >= 1 && set->n <= UINT32_MAX);
    *s = (struct shard){.spec = config->spec,
                        .seed = config->seed,
                        .peer = config->peer,
                        .local_steps = config->local_steps,
                        .post_local = config->post_local,
                        .one_step_from =
                            config->one_step_from > 0 ? config->one_step_from : UINT64_MAX,
                        .n_set = set->n,
                        .epoch = UINT64_MAX};
    int err = check_split(config, set, error);
    if (err < 0)
        return err;
    err = open_owners(s, config, set);
    if (err == 0)
        err = first_samples(s);
    if (err < 0) {
        snprintf(error, DATA_ERROR_MAX, "no memory for %zu samples", set->n);
        shard_close(s);
    }
    return err;
}

/* A shared table of owners stays open. The module that opened it closes it. */
void shard_close(struct shard *s)
{
    if (s->owners_mine)
        shard_owners_close(s->owners);
    free(s->sample);
    free(s->order);
    *s = (struct shard){.count = 0};
}

/* Sets order[] to the permutation of this epoch, unless order[] already holds it. */
static void order_epoch(struct shard *s, uint64_t epoch)
{
    if (s->epoch == epoch)
        return;
    for (size_t i = 0; i < s->count; i++)
        s->order[i] = s->sample != NULL ? s->sample[i] : (uint32_t)i;
    struct rng r = rng_stream(rng_key(s->seed, RNG_SAMPLE, s->peer, epoch));
    rng_shuffle(&r, s->order, s->count);
    s->epoch = epoch;
}

/* For very large round numbers, the product of rounds and local steps may overflow. The result is
 * then a wrong step number, but still a valid position in the endless sequence of samples. */
uint64_t shard_step(const struct shard *s, uint64_t round, uint32_t step)
{
    uint64_t first = round < s->post_local ? round : s->post_local;
    uint64_t last = round > s->one_step_from ? round - s->one_step_from : 0;
    return first + (round - first - last) * s->local_steps + last + step;
}

double shard_rounds(const struct shard *s, uint64_t round)
{
    return (double)shard_step(s, round, 0) / s->local_steps;
}

/* A batch that reaches the end of an epoch continues in the next epoch. So each sample is used once
 * per epoch for every batch size. */
void shard_samples(struct shard *s, uint64_t at, uint32_t n, uint32_t *indices)
{
    assert(s->count >= 1 && n >= 1);
    uint64_t epoch = at / s->count;
    size_t k = (size_t)(at % s->count);
    for (uint32_t i = 0; i < n; epoch++, k = 0) {
        order_epoch(s, epoch);
        for (; k < s->count && i < n; k++, i++)
            indices[i] = s->order[k];
    }
}

void shard_batch(struct shard *s, uint64_t round, uint32_t step, uint32_t batch, uint32_t *indices)
{
    assert(step < s->local_steps);
    shard_samples(s, shard_step(s, round, step) * batch, batch, indices);
}
