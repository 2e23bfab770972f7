/* gossip/mixers/statistics.h -- averages the running statistics of normalisation layers.
 *
 * A model's vector ends with values that are not trained: the running means and variances of
 * batch normalisation. Their scale differs from that of the weights: a variance may be 1e4 where
 * a weight is 0.01. Compression, replicas, gamma and the consensus distance therefore ignore
 * them. They travel uncompressed, before the message of a delta, in the same transaction:
 *
 *   model without statistics         [message]
 *   model with statistics, not sent  0 [message]
 *   model with n statistics, sent    1 [n little-endian floats] [message]
 *
 * If both deltas of an exchange carry statistics, the exchange averages the sent values s with
 * the mixing weights w_ij of the graph:
 *
 *   x_i += sum_e w_e (s_j - s_i)
 *
 * The change is equal and opposite at the two ends, so the mean is kept. In lock step x_i equals
 * s_i, and the new value is a convex combination of the sent values. After a lost session, or in
 * an asynchronous run, x_i may have changed since s_i was sent, and the full subtraction could
 * make a variance negative. A variance therefore never falls under half of the smallest value in
 * the average. The part that is not subtracted is stored as `owed` and subtracted later, so the
 * mean of x - owed is kept whatever exchanges are lost.
 *
 * Statistics take 4 bytes per value and are 0.1 to 0.5 % of a model. Compared with a sparse
 * message that can be large, so only every k-th delta carries them (mixing_every()).
 */
#ifndef GOSSIP_MIXERS_STATISTICS_H
#define GOSSIP_MIXERS_STATISTICS_H

#include "nn/math/vec.h"

struct statistics
{
    /* Number of running statistics in the model. 0: the model has none, and no bytes are sent. */
    size_t n;
    /* n amounts, each 0 or more, that are still to be subtracted from the statistics in x. They
     * were not subtracted at once, because a variance would have become too small. */
    float *owed;
    bool *nonnegative; /* n flags: true if the value is a variance, which must not be negative. */
    /* Scratch of n floats each. sum: the amount to add to each statistic in this job. least: the
     * smallest value of each statistic among the neighbours. */
    float *sum, *least;
    size_t n_terms; /* Number of exchanges that this job has averaged so far. */
    /* Squared distance |s_j - s_i|^2 between the statistics that the two ends of an edge sent, for
     * the edge with the largest relative distance in the last averaging. */
    double apart2;
    /* Squared norm |s_i|^2 of the statistics that this peer sent on the edge with the largest
     * relative distance. */
    double size2;
};

/* Initialises *s for the segments that are not trained. Returns 0, or -ENOMEM with all memory
 * freed. */
int statistics_init(struct statistics *s, const struct segment *segments, size_t n_segments);
void statistics_close(struct statistics *s);

/* Returns the largest number of bytes that statistics_put() writes. */
size_t statistics_bound(const struct statistics *s);

/* Returns whether all values x[0..n) are finite and in range, and no variance is negative. */
bool statistics_proper(const struct statistics *s, const float *x);

/* Writes the statistics at the start of a payload: the values x[0..n) if `with`, else only the
 * flag byte. Returns the bytes written. */
size_t statistics_put(const struct statistics *s, bool with, const float *x, uint8_t *out);

/* Checks the statistics at the start of a received payload of `len` bytes. Returns their length
 * in bytes, or SIZE_MAX if a value is invalid. Callable from any thread. */
size_t statistics_check(const struct statistics *s, const uint8_t *p, size_t len);

/* Returns the length in bytes of the statistics in a payload that statistics_check() accepted. */
size_t statistics_length(const struct statistics *s, const uint8_t *p);

/* Reads n values from a payload that carries statistics and that statistics_check() accepted. */
void statistics_get(const struct statistics *s, const uint8_t *p, float *x);

/* Adds one exchange with mixing weight w to the job's sum. statistics_check() must have accepted
 * both payloads. Does nothing if one payload carries no statistics. */
void statistics_term(struct statistics *s, double w, const uint8_t *own, const uint8_t *other);

/* Adds the sum of the changes by all exchanges of the job to the running statistics x[0..n). */
void statistics_mix(struct statistics *s, float *x);

/* Reports that the caller has replaced the running statistics: no amount is owed any more. */
void statistics_replaced(struct statistics *s);

/* Returns the relative distance between the running statistics at the two ends of an edge, the
 * largest of all edges in the last averaging. NaN: no averaging yet. 0: the model has no
 * statistics. */
double statistics_apart(const struct statistics *s);

#endif
