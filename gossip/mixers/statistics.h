/* gossip/mixers/statistics.h -- running statistics of normalisation, averaged beside
 * the weights.
 *
 * A model's vector ends with what is never trained: running means and variances
 * of batch norms. Their scale is not the weights' (a variance may be 1e4 where a
 * weight is 0.01), so they have no part in the compressor, its replicas, gamma,
 * or the consensus distance. They travel as they are, in front of the message
 * of a delta, and the same transaction commits them:
 *
 *   a model without statistics        [message]
 *   with: this delta has none         0 [message]
 *   with: n of them                   1 [n little-endian floats] [message]
 *
 * An exchange in which both deltas carry them averages, with the plain weights
 * w_ij of the graph and the values s that were sent:
 *
 *   x_i += sum_e w_e (s_j - s_i)
 *
 * Equal and opposite at the two ends, so the mean is kept. In lock step x_i is
 * s_i still, and the sum is a convex combination. After a lost session or in an
 * asynchronous run x_i may have moved on, and then what is to be subtracted from
 * a variance may be more than is left of it. It never falls under half of the
 * least that was averaged; the rest is *owed*, and subtracted once there is
 * enough. So x - owed keeps its mean whatever is lost between exchanges.
 *
 * They are 4 bytes each, and 0.1 to 0.5 % of a model. Where that is much beside
 * a sparse message they go with every k-th delta (the owner says which).
 */
#ifndef GOSSIP_MIXERS_STATISTICS_H
#define GOSSIP_MIXERS_STATISTICS_H

#include "nn/math/vec.h"

struct statistics
{
    size_t n;           /* How many; 0: the model has none, and nothing is sent. */
    float *owed;        /* n, each 0 or more: what is to be subtracted from x still. */
    bool *nonnegative;  /* n: is it a variance? */
    float *sum, *least; /* n of scratch for the exchanges of a job: what they add, and
                         * the least value that they average. */
    size_t n_terms;     /* Exchanges in `sum`. */
    double apart2;      /* The worst edge of the last averaging: |s_j - s_i|^2 ... */
    double size2;       /* ... over |s_i|^2 of that edge. */
};

/* For the segments behind the trained ones. 0 or -ENOMEM (then nothing is left
 * open). */
int statistics_init(struct statistics *s, const struct segment *segments, size_t n_segments);
void statistics_close(struct statistics *s);

/* The most bytes that statistics_put() writes. */
size_t statistics_bound(const struct statistics *s);

/* Are x[0..n) finite and in range, and no variance negative? */
bool statistics_proper(const struct statistics *s, const float *x);

/* Write the head of a payload, with the values x[0..n) if `with`. Returns its
 * bytes. */
size_t statistics_put(const struct statistics *s, bool with, const float *x, uint8_t *out);

/* Length of the head that begins a payload of a peer, SIZE_MAX if its values are
 * not proper. Safe from any thread. */
size_t statistics_check(const struct statistics *s, const uint8_t *p, size_t len);

/* The same of a payload that has been checked. */
size_t statistics_length(const struct statistics *s, const uint8_t *p);

/* The values of a payload that has been checked and has them. */
void statistics_get(const struct statistics *s, const uint8_t *p, float *x);

/* One exchange of a job with weight w: both payloads, checked. Does nothing
 * where one carries none. */
void statistics_term(struct statistics *s, double w, const uint8_t *own, const uint8_t *other);

/* Once all terms of a job are there: x[0..n) moves. */
void statistics_mix(struct statistics *s, float *x);

/* How far apart the ends of an edge were in the last averaging, relative, the
 * worst edge; NaN before the first, 0 without statistics. */
double statistics_apart(const struct statistics *s);

#endif
