/* nn/shards/split.h -- the partition of a set's samples among the shards.
 *
 *   iid              at random
 *   dirichlet:ALPHA  each class in Dirichlet(ALPHA) proportions (Hsu, Qi,
 *                    Brown 2019)
 *   label:K          sorted by label, cut into K pieces for each, K pieces at
 *                    random to each (McMahan et al. 2017, section 3): a peer
 * sees little more than K classes
 *   file             the samples of a file stay together
 *
 * The partition belongs to the run. nn/shards/shard_assignment.h computes its result.
 */
#ifndef NN_SHARDS_SPLIT_H
#define NN_SHARDS_SPLIT_H

#include "nn/data/dataset.h"

#define SHARD_ALPHA_MIN 0.01
#define SHARD_ALPHA_MAX 1000.0

enum {
    SHARD_PER_PART_MAX = 100,
    SHARD_SPLIT_MAX = 48 /* Bytes of a split's text, with the NUL. */
};

enum shard_fall { SHARD_IID, SHARD_DIRICHLET, SHARD_LABEL, SHARD_FILE };

struct shard_split
{
    enum shard_fall fall;
    double alpha;      /* SHARD_DIRICHLET: SHARD_ALPHA_MIN to SHARD_ALPHA_MAX. */
    uint32_t per_part; /* SHARD_LABEL: K, 1 to SHARD_PER_PART_MAX. */
};

/* 0, or -EINVAL with a sentence that says what was found and what was
 * expected. */
__attribute__((warn_unused_result)) int shard_split_parse(struct shard_split *s, const char *text,
                                                          char error[DATA_ERROR_MAX]);

/* Writes the canonical text. ALPHA has the fewest digits that are read back as the same number. */
void shard_split_print(const struct shard_split *s, char text[SHARD_SPLIT_MAX]);

/* Returns whether the partition depends on labels. Text has no labels. */
bool shard_split_by_label(const struct shard_split *s);

#endif
