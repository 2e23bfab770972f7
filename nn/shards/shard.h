/* nn/shards/shard.h -- the samples of a peer and their order.
 *
 *   --shard i/n    part i (from 1) of n of a set that every peer has
 *   --shard own    all of a private set
 *   --shard auto   rendezvous hashing: a sample belongs to the live member
 *                  with the least cost(member, sample). If a member dies, only
 * its samples get new owners; a new member takes its share.
 * No coordinator is needed.
 *
 * The partition of samples among parts or members belongs to the run: nn/shards/split.h.
 *
 *   sample -> owner    nn/shards/shard_assignment.h, one table for many shards
 *   owner  -> samples  struct shard: sample[0..count)
 *   batch              positions p.. of the endless sequence of epochs, each
 *                      a fresh permutation of the shard
 *
 * Everything is a pure function of (run seed, part or members, peer key).
 */
#ifndef NN_SHARDS_SHARD_H
#define NN_SHARDS_SHARD_H

#include "nn/data/dataset.h"
#include "nn/shards/shard_assignment.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHARD_PARTS_MAX = 65536 };

enum shard_mode { SHARD_PART, SHARD_OWN, SHARD_AUTO };

struct shard_spec
{
    enum shard_mode mode;
    uint32_t part, n_parts; /* SHARD_PART: part in 0..n_parts. */
};

/* Parse "i/n", "own" or "auto". 0, or -EINVAL with a sentence that says what was
 * found and what was expected. */
__attribute__((warn_unused_result)) int shard_spec_parse(struct shard_spec *s, const char *text,
                                                         char error[DATA_ERROR_MAX]);

struct shard
{
    struct shard_spec spec;
    uint64_t seed, peer;  /* Run seed and peer key: the order's stream. */
    uint32_t local_steps; /* Batches a round, from round */
    uint64_t post_local;  /* First round with `local_steps` batches. Each earlier round has one. */
    struct shard_owners *owners;
    bool owners_mine; /* Made by shard_open(), closed by shard_close(). */
    size_t n_set;     /* Samples of the whole set. */
    size_t count;     /* Samples of this shard; at least one. */
    uint32_t *sample; /* Samples of the shard, ascending. NULL: all samples of the set. */
    uint32_t *order;  /* Permutation of them in epoch `epoch`. */
    uint64_t epoch;   /* UINT64_MAX: order[] is stale. */
};

struct shard_config
{
    struct shard_spec spec;
    struct shard_split split;
    uint64_t seed, peer;
    uint32_t local_steps;        /* At least 1. */
    uint64_t post_local;         /* Rounds of one batch come first. */
    struct shard_owners *owners; /* Shared, of the same set, split and seed; or NULL. */
};

/* Take a shard of `set`, which is borrowed until shard_close(). With `auto`
 * the peer is alone (and owns all) until shard_members() is called. 0; -EINVAL
 * with a sentence: more parts than samples or, split by file, than files, or a
 * split by label of a text; or -ENOMEM. `own` heeds no split. */
__attribute__((warn_unused_result)) int shard_open(struct shard *s,
                                                   const struct shard_config *config,
                                                   const struct dataset *set,
                                                   char error[DATA_ERROR_MAX]);
void shard_close(struct shard *s);

/* The live members changed: keys[0..n) in any order, own among them (where it
 * is not, it is added). Does nothing unless the shard is `auto`. A member that
 * owns no sample at all draws from the whole set, so that it can train. 0 or
 * -ENOMEM (the shard stays as it was). */
__attribute__((warn_unused_result)) int shard_members(struct shard *s, const uint64_t *keys,
                                                      size_t n, uint64_t own);

/* The number of step `step` of round `round` among all steps of a run, from 0. */
uint64_t shard_step(const struct shard *s, uint64_t round, uint32_t step);

/* The `batch` sample numbers of step `step` of round `round`: positions
 * shard_step() * batch and on of the sequence of epochs. Needs
 * batch >= 1. Cheap but for the first batch of an epoch, O(count). */
void shard_batch(struct shard *s, uint64_t round, uint32_t step, uint32_t batch, uint32_t *indices);

/* The n >= 1 sample numbers at positions `at` and on of the same sequence. */
void shard_samples(struct shard *s, uint64_t at, uint32_t n, uint32_t *indices);

#endif
