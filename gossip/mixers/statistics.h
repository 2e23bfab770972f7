/* gossip/mixers/statistics.h -- averages the running statistics of normalisation layers.
 *
 * A model's vector ends with values that are not trained: the running means and variances of
 * batch normalisation. Their scale differs from the scale of the weights (a variance may be
 * 1e4 where a weight is 0.01). They therefore take no part in compression, replicas, gamma or
 * the consensus distance. They travel uncompressed before the message of a delta, in
 * the same transaction:
 *
 *   model without statistics         [message]
 *   model with statistics, not sent  0 [message]
 *   model with n statistics, sent    1 [n little-endian floats] [message]
 *
 * An exchange whose two deltas both carry statistics averages the sent values s with the
 * mixing weights w_ij of the graph:
 *
 *   x_i += sum_e w_e (s_j - s_i)
 *
 * The change is equal and opposite at the two ends, so the mean is kept. In lock step x_i
 * equals s_i, and the sum is a convex combination. After a lost session, or in an
 * asynchronous run, x_i may have changed since s_i was sent, and the full subtraction could
 * make a variance negative. A variance therefore never falls under half of the smallest value
 * in the average. The remainder is stored as `owed` and subtracted later, so the mean of
 * x - owed is kept whatever exchanges are lost.
 *
 * Statistics have 4 bytes per value and are 0.1 to 0.5 % of a model. Where that is large
 * compared with a sparse message, only every k-th delta carries them (the caller decides).
 */
#ifndef GOSSIP_MIXERS_STATISTICS_H
#define GOSSIP_MIXERS_STATISTICS_H

#include "nn/math/vec.h"

struct statistics
{
    /* Number of values. 0: the model has none, and no bytes are sent. */
    size_t n;
    float *owed;       /* n amounts, each 0 or more, that must still be subtracted from x. */
    bool *nonnegative; /* n flags: true if the value is a variance, which must not be negative. */
    /* Scratch of n floats each: the sum to add to x in this job, and the least averaged value. */
    float *sum, *least;
    size_t n_terms; /* Number of exchanges in `sum`. */
    /* Numerator |s_j - s_i|^2 of the edge with the largest relative distance in the last
     * averaging. */
    double apart2;
    double size2; /* Denominator |s_i|^2 of the same edge as apart2. */
};

/* Initialises *s for the segments that are not trained. Returns 0, or -ENOMEM with all memory
 * freed. */
int statistics_init(struct statistics *s, const struct segment *segments, size_t n_segments);
void statistics_close(struct statistics *s);

/* Returns the largest number of bytes that statistics_put() writes. */
size_t statistics_bound(const struct statistics *s);

/* Returns whether x[0..n) are finite, in range, and no variance is negative. */
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

/* Adds one exchange with mixing weight w to the job's sum. Both payloads must be checked. Does
 * nothing if one payload carries no statistics. */
void statistics_term(struct statistics *s, double w, const uint8_t *own, const uint8_t *other);

/* Adds the sums of all exchanges of the job to x[0..n). */
void statistics_mix(struct statistics *s, float *x);

/* Returns the largest relative distance between the two ends of an edge in the last averaging.
 * NaN: no averaging yet. 0: the model has no statistics. */
double statistics_apart(const struct statistics *s);

#endif
