/* nn/shard_owners.h -- who owns which sample, for all shards of one process.
 *
 * Two ways to share a set out; a table holds the outcome of one at a time:
 *
 *   parts     sample -> 0..n_parts, fixed. iid: a random permutation cut into
 *             n equal pieces. Label-skewed: for each class, its samples in
 *             random order cut in Dirichlet(alpha) proportions (Hsu, Qi,
 *             Brown 2019), and a part left with nothing takes one sample.
 *   members   sample -> key of the live member whose cost(key, sample) is
 *             least (rendezvous hashing: Thaler, Ravishankar 1998). The cost
 *             hangs on that one member alone, so that a death moves only the
 *             dead member's samples and a newcomer takes only its own.
 *             Label-skewed: the cost is -log(uniform) / weight, and a
 *             member's weight for each class a Gamma(alpha) draw; the least
 *             of such costs falls on a member in proportion to its weight,
 *             and gamma draws in proportion are Dirichlet.
 *
 * Both are pure functions of (run seed, split, labels, parts or members): every
 * machine finds the same. Peers that live in one process (the simulator's)
 * share one table: the same members again cost nothing, and one more or one
 * less costs O(samples), not O(samples x members).
 */
#ifndef NN_SHARD_OWNERS_H
#define NN_SHARD_OWNERS_H

#include "nn/data.h"

#define SHARD_ALPHA_MIN 0.01
#define SHARD_ALPHA_MAX 1000.0

enum shard_fall { SHARD_IID, SHARD_DIRICHLET };

struct shard_split
{
    enum shard_fall fall;
    double alpha; /* SHARD_DIRICHLET: SHARD_ALPHA_MIN to SHARD_ALPHA_MAX. */
};

struct shard_owners; /* Opaque. One thread at a time. */

/* A table for `set`, which is borrowed until shard_owners_close(). 0 or
 * -ENOMEM. */
__attribute__((warn_unused_result)) int
shard_owners_open(struct shard_owners **o, const struct dataset *set,
                  const struct shard_split *split, uint64_t seed);
void shard_owners_close(struct shard_owners *o);

/* Share out among n_parts, at least 1 and at most the number of samples: every
 * part gets a sample. 0 or -ENOMEM (the table is as it was). */
__attribute__((warn_unused_result)) int
shard_owners_parts(struct shard_owners *o, uint32_t n_parts);

/* Share out among the members keys[0..n) and own, in any order, duplicates
 * counted once. A member may get nothing. 0 or -ENOMEM (as it was). */
__attribute__((warn_unused_result)) int
shard_owners_members(struct shard_owners *o, const uint64_t *keys, size_t n,
                     uint64_t own);

/* How many samples a part or member owns; which, ascending. */
size_t shard_owners_count(const struct shard_owners *o, uint64_t owner);
void shard_owners_samples(const struct shard_owners *o, uint64_t owner,
                          uint32_t *sample);

#endif
