/* nn/shards/shard.h -- the shard of a peer: which samples the peer trains on, and in which order.
 *
 *   --shard i/n    part i (from 1) of n parts of a set that every peer has
 *   --shard own    all samples of a private set
 *   --shard auto   rendezvous hashing: a sample belongs to the live member with the lowest
 *                  cost(member, sample). If a member dies, only its samples get new owners. A new
 *                  member takes its share from the others. No coordinator is needed.
 *
 * How samples are divided among parts or members (`--partition`) belongs to the run:
 * nn/shards/split.h.
 *
 *   sample -> owner    nn/shards/shard_assignment.h, one table for many shards
 *   owner  -> samples  struct shard: sample[0..count)
 *   batch              consecutive positions of the endless sequence of epochs, where each epoch
 *                      is a new random permutation of the shard
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
    /* Index i - 1 of the shard and number n of shards. Only for --shard i/n. */
    uint32_t part, n_parts;
};

/* Parses the value of --shard: "i/n", "own" or "auto". Returns 0, or -EINVAL with a message that
 * says what was found and what was expected. */
__attribute__((warn_unused_result)) int shard_spec_parse(struct shard_spec *s, const char *text,
                                                         char error[DATA_ERROR_MAX]);

struct shard
{
    struct shard_spec spec;
    uint64_t seed, peer; /* Run seed and peer key, which determine the order of samples. */
    /* Number of batches per round in the rounds from `post_local` to `one_step_from` - 1. All other
     * rounds have one batch. */
    uint32_t local_steps;
    /* Number of rounds at the start of the run in which a round has only one batch (post-local
     * SGD). */
    uint64_t post_local;
    /* First of the rounds at the end of the run that have only one batch. UINT64_MAX: none. */
    uint64_t one_step_from;
    struct shard_owners *owners;
    bool owners_mine; /* True: shard_open() made `owners`, shard_close() frees it. */
    size_t n_set;     /* Number of samples of the whole set. */
    size_t count;     /* Number of samples of this shard, at least one. */
    /* Numbers of the samples of the shard, ascending. NULL: the shard has all samples of the
     * set. */
    uint32_t *sample;
    uint32_t *order; /* The samples of the shard in the order of the epoch `epoch`. */
    uint64_t epoch;  /* Epoch of order[]. UINT64_MAX: order[] is out of date. */
};

struct shard_config
{
    struct shard_spec spec;
    struct shard_split split;
    uint64_t seed, peer;
    uint32_t local_steps; /* Number of batches per round, at least 1. */
    /* Number of rounds at the start of the run in which a round has only one batch. */
    uint64_t post_local;
    /* First of the rounds at the end of the run in which a round has only one batch. 0: none. */
    uint64_t one_step_from;
    /* Table that assigns each sample to an owner, shared with other shards of the same set, split
     * and seed. NULL: the shard makes its own table. */
    struct shard_owners *owners;
};

/* Opens a shard of `set`, which is borrowed until shard_close(). With `auto` the peer owns all
 * samples until shard_members() is called. With `own` the split has no effect. Returns 0; -ENOMEM;
 * or -EINVAL with a message if there are more parts than samples, if a split by file has more parts
 * than files, or if a split by label is requested for a text. */
__attribute__((warn_unused_result)) int shard_open(struct shard *s,
                                                   const struct shard_config *config,
                                                   const struct dataset *set,
                                                   char error[DATA_ERROR_MAX]);
void shard_close(struct shard *s);

/* Assigns the samples again after a change of the live members: keys[0..n), in any order, and
 * `own`, which is added if it is missing. Has an effect only on a shard that is `auto`. If this
 * peer becomes the owner of no sample, it draws from the whole set, so that it can train. Returns
 * 0, or -ENOMEM and the shard is unchanged. */
__attribute__((warn_unused_result)) int shard_members(struct shard *s, const uint64_t *keys,
                                                      size_t n, uint64_t own);

/* Returns how many local steps of the run come before step `step` of round `round`. */
uint64_t shard_step(const struct shard *s, uint64_t round, uint32_t step);

/* Returns the number of local steps of the run before round `round`, divided by `local_steps`. */
double shard_rounds(const struct shard *s, uint64_t round);

/* Writes the numbers of the samples of one batch to indices[0..batch), batch >= 1. The batch is
 * that of step `step` of round `round`. Its samples are those from position shard_step() * batch on
 * in the sequence of epochs. The first batch of an epoch costs O(count), any other batch
 * O(batch). */
void shard_batch(struct shard *s, uint64_t round, uint32_t step, uint32_t batch, uint32_t *indices);

/* Writes the numbers of n >= 1 samples to indices[0..n): the positions from `at` on in the sequence
 * of epochs. */
void shard_samples(struct shard *s, uint64_t at, uint32_t n, uint32_t *indices);

#endif
