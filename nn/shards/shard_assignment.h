/* nn/shards/shard_assignment.h -- the owner of each sample of a set, for all shards of one process.
 *
 * A table assigns the samples in one of two ways. The way and the split (nn/shards/split.h) decide:
 *
 * Fixed parts: sample -> part, from 0 to n_parts - 1. A part without any sample takes one sample of
 * another part.
 *
 *   iid         a random permutation of the samples is cut into n_parts equal pieces
 *   dirichlet   each class, in random order, is cut in Dirichlet(alpha) proportions
 *   label:K     the samples, sorted by class and in random order within each class, are cut into
 *               n_parts * K equal pieces; each part gets K random pieces
 *   file        the files, in random order, are dealt out to the parts in turn
 *
 * Live members: sample -> key of the member with the lowest cost(key, sample) (rendezvous hashing:
 * Thaler, Ravishankar 1998). A cost depends only on its own member and sample. If a member dies,
 * only its samples get new owners. A new member only takes samples for itself.
 *
 *   iid         the cost is a random number
 *   dirichlet   the cost is -log(uniform) / weight, where each member draws a Gamma(alpha) weight
 *               for each class. The lowest cost falls on a member in proportion to its weight, and
 *               normalised gamma draws are Dirichlet proportions
 *   label:K     the cost is low for K classes that the member's key selects. For the other classes
 *               the cost is so high that it matters only if no member selected the class
 *   file        as iid, with the same cost for all samples of a file
 *
 * Both results are pure functions of (run seed, split, labels, parts or members), so every machine
 * computes the same. The peers of a simulator share one table. Unchanged members then cost nothing,
 * and a change by one member costs O(samples) instead of O(samples x members).
 */
#ifndef NN_SHARDS_SHARD_ASSIGNMENT_H
#define NN_SHARDS_SHARD_ASSIGNMENT_H

#include "nn/data/dataset.h"
#include "nn/shards/split.h"

/* A table that assigns each sample of a set to an owner. Opaque. One thread at a time may use
 * it. */
struct shard_owners;

/* Makes a table for `set`, which is borrowed until shard_owners_close(). A split by label needs a
 * set with labels. Returns 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int shard_owners_open(struct shard_owners **o,
                                                          const struct dataset *set,
                                                          const struct shard_split *split,
                                                          uint64_t seed);
void shard_owners_close(struct shard_owners *o);

/* Assigns the samples to n_parts parts, from 1 to the number of samples. Every part gets at least
 * one sample. Returns 0, or -ENOMEM and the table is unchanged. */
__attribute__((warn_unused_result)) int shard_owners_parts(struct shard_owners *o,
                                                           uint32_t n_parts);

/* Assigns the samples to the members keys[0..n) and `own`, in any order. Duplicates are ignored. A
 * member may get no sample. Returns 0, or -ENOMEM and the table is unchanged. */
__attribute__((warn_unused_result)) int shard_owners_members(struct shard_owners *o,
                                                             const uint64_t *keys, size_t n,
                                                             uint64_t own);

/* shard_owners_count() returns the number of samples of a part or member. shard_owners_samples()
 * writes their numbers in ascending order. */
size_t shard_owners_count(const struct shard_owners *o, uint64_t owner);
void shard_owners_samples(const struct shard_owners *o, uint64_t owner, uint32_t *sample);

#endif
