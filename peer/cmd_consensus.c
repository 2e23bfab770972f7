#include "peer/cmd_consensus.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

int cmd_consensus(struct cmd_consensus *c, size_t n, size_t dim,
                  const float *(*get)(void *self, size_t i), void *self)
{
    assert(n >= 1 && dim >= 1);
    double *mean = calloc(dim, sizeof *mean);
    if (!mean)
        return -ENOMEM;
    double sum = 0, norm = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < n; i++) {
            const float *x = get(self, i);
            if (!x) {
                free(mean);
                return -EIO;
            }
            for (size_t k = 0; k < dim; k++) {
                double d = (double)x[k] - mean[k];
                if (pass == 0)
                    mean[k] += (double)x[k];
                else
                    sum += d * d;
            }
        }
        for (size_t k = 0; k < dim && pass == 0; k++) {
            mean[k] /= (double)n;
            norm += mean[k] * mean[k];
        }
    }
    free(mean);
    *c = (struct cmd_consensus){.n = n, .xi = sqrt(sum / (double)n), .mean_norm = sqrt(norm)};
    c->relative = c->xi == 0 ? 0 : c->xi / c->mean_norm;
    return 0;
}
