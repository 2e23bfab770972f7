/* peer/node/result/consensus.c -- computes the exact consensus distance of models in two passes
 * over them. */
#include "peer/node/result/consensus.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

const struct consensus consensus_none = {
    .trained = {.xi = NAN, .mean_norm = NAN, .relative = NAN},
    .statistics = {.xi = NAN, .mean_norm = NAN, .relative = NAN},
};

static void add(double *sum, const float *x, size_t n)
{
    for (size_t k = 0; k < n; k++)
        sum[k] += (double)x[k];
}

static double apart2(const float *x, const double *mean, size_t n)
{
    double sum = 0;
    for (size_t k = 0; k < n; k++) {
        double d = (double)x[k] - mean[k];
        sum += d * d;
    }
    return sum;
}

/* Returns the distances for one range of the values (consensus.h). mean: mean of the models in this
 * range, dim values. sum2: sum of |x_i - mean|^2 over the n models, in this range. */
static struct consensus_part part_of(const double *mean, size_t dim, double sum2, size_t n)
{
    struct consensus_part p = consensus_none.trained;
    double norm2 = 0;
    if (dim == 0)
        return p;
    for (size_t k = 0; k < dim; k++)
        norm2 += mean[k] * mean[k];
    p = (struct consensus_part){.dim = dim, .xi = sqrt(sum2 / (double)n), .mean_norm = sqrt(norm2)};
    p.relative = p.xi == 0 ? 0 : p.xi / p.mean_norm;
    return p;
}

int consensus_measure(struct consensus *c, size_t n, size_t n_trained, size_t dim,
                      const float *(*get)(void *self, size_t i), void *self)
{
    assert(n >= 1 && dim >= 1 && n_trained <= dim);
    double *mean = calloc(dim, sizeof *mean), trained2 = 0, statistics2 = 0;
    int err = mean == NULL ? -ENOMEM : 0;
    for (size_t i = 0; i < 2 * n && err == 0; i++) {
        const float *x = get(self, i % n);
        if (x == NULL) {
            err = -EIO;
        } else if (i < n) {
            add(mean, x, dim);
            for (size_t k = 0; i == n - 1 && k < dim; k++)
                mean[k] /= (double)n;
        } else {
            trained2 += apart2(x, mean, n_trained);
            statistics2 += apart2(x + n_trained, mean + n_trained, dim - n_trained);
        }
    }
    if (err == 0)
        *c = (struct consensus){.n = n,
                                .trained = part_of(mean, n_trained, trained2, n),
                                .statistics =
                                    part_of(mean + n_trained, dim - n_trained, statistics2, n)};
    free(mean);
    return err;
}
