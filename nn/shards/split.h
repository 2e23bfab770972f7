/* nn/shards/split.h -- how the samples of a set are divided among the shards (`--partition`).
 *
 *   iid              at random
 *   dirichlet:ALPHA  each class in Dirichlet(ALPHA) proportions (Hsu, Qi, Brown 2019)
 *   label:K          the samples are sorted by label and cut into K pieces per shard, and each
 *                    shard gets K random pieces (McMahan et al. 2017, section 3). A peer then has
 *                    K classes or a few more
 *   file             all samples of a file go to the same shard
 *
 * The partition belongs to the run. nn/shards/shard_assignment.h assigns the samples accordingly.
 */
#ifndef NN_SHARDS_SPLIT_H
#define NN_SHARDS_SPLIT_H

#include "nn/data/dataset.h"

#define SHARD_ALPHA_MIN 0.01
#define SHARD_ALPHA_MAX 1000.0

enum {
    SHARD_PER_PART_MAX = 100,
    SHARD_SPLIT_MAX = 48 /* Size of the longest text of a partition, in bytes with the NUL. */
};

enum shard_fall { SHARD_IID, SHARD_DIRICHLET, SHARD_LABEL, SHARD_FILE };

struct shard_split
{
    enum shard_fall fall;
    /* Only for SHARD_DIRICHLET: concentration of the distribution, the ALPHA of
     * "dirichlet:ALPHA". From SHARD_ALPHA_MIN to SHARD_ALPHA_MAX. */
    double alpha;
    /* Only for SHARD_LABEL: number of pieces of one class that each part gets, the K of
     * "label:K". From 1 to SHARD_PER_PART_MAX. */
    uint32_t per_part;
};

/* Parses a partition such as "dirichlet:0.5". Returns 0, or -EINVAL with a message that says what
 * was found and what was expected. */
__attribute__((warn_unused_result)) int shard_split_parse(struct shard_split *s, const char *text,
                                                          char error[DATA_ERROR_MAX]);

/* Writes a partition as text, such as "dirichlet:0.5". ALPHA gets the fewest digits that are read
 * back as the same number. */
void shard_split_print(const struct shard_split *s, char text[SHARD_SPLIT_MAX]);

/* Returns whether the partition depends on labels, which a text does not have. */
bool shard_split_by_label(const struct shard_split *s);

#endif
