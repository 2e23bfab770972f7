/* nn/shards/shard_assignment.h -- the owner of each sample, for all shards of one process.
 *
 * A set is assigned in one of two ways, and a table holds the result of one of them:
 *
 *   parts     sample -> 0..n_parts, fixed. iid: a random permutation cut into
 *             n equal pieces. dirichlet: for each class, its samples in random
 *             order cut in Dirichlet(alpha) proportions. label:K: the samples
 *             class by class, in random order in each, cut into n K equal
 *             pieces, which are dealt out at random. file: the files in random
 *             order are dealt out in turn. A part left with nothing takes one
 *             sample of another's.
 *   members   sample -> key of the live member whose cost(key, sample) is
 *             least (rendezvous hashing: Thaler, Ravishankar 1998). The cost
 * depends on that member alone, so that a death moves only the
 * samples of the dead member, and a new member takes only its own.
 *             dirichlet: the cost is -log(uniform) / weight, and a member's
 *             weight for each class a Gamma(alpha) draw; the least of such
 *             costs falls on a member in proportion to its weight, and gamma
 *             draws in proportion are Dirichlet. label:K: a member has a low
 * cost for K classes that its key selects; its cost for the other
 * classes is so high that it counts only for a class that no
 * member selected. file: one cost for all samples of a file.
 *
 * Both results are pure functions of (run seed, split, labels, parts or members), so that every machine
 * computes the same. The peers of a simulator share one table: unchanged members cost nothing, and a
 * change by one member costs O(samples) instead of O(samples x members).
 */
#ifndef NN_SHARDS_SHARD_ASSIGNMENT_H
#define NN_SHARDS_SHARD_ASSIGNMENT_H

#include "nn/data/dataset.h"
#include "nn/shards/split.h"

struct shard_owners; /* Opaque. One thread at a time. */

/* A table for `set`, which is borrowed until shard_owners_close(); a split by
 * label needs a set with labels. 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int shard_owners_open(struct shard_owners **o,
                                                          const struct dataset *set,
                                                          const struct shard_split *split,
                                                          uint64_t seed);
void shard_owners_close(struct shard_owners *o);

/* Share out among n_parts, at least 1 and at most the number of samples: every
 * part gets a sample. 0 or -ENOMEM (the table is as it was). */
__attribute__((warn_unused_result)) int shard_owners_parts(struct shard_owners *o,
                                                           uint32_t n_parts);

/* Share out among the members keys[0..n) and own, in any order, duplicates
 * counted once. A member may get nothing. 0 or -ENOMEM (as it was). */
__attribute__((warn_unused_result)) int shard_owners_members(struct shard_owners *o,
                                                             const uint64_t *keys, size_t n,
                                                             uint64_t own);

/* How many samples a part or member owns; which, ascending. */
size_t shard_owners_count(const struct shard_owners *o, uint64_t owner);
void shard_owners_samples(const struct shard_owners *o, uint64_t owner, uint32_t *sample);

#endif
