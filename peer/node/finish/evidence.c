/* peer/node/finish/evidence.c -- adds up sketches of models, and computes the consensus distance
 * from them. */
#include "peer/node/finish/evidence.h"

#include <assert.h>
#include <math.h>
#include <string.h>

void finish_evidence_of(struct finish_evidence *e, const float sketch[SKETCH_K], double norm2,
                        uint64_t hash)
{
    assert(hash != 0);
    *e = (struct finish_evidence){.n = 1, .norm2 = norm2, .hash = hash};
    memcpy(e->mean, sketch, sizeof e->mean);
}

void finish_evidence_add(struct finish_evidence *a, const struct finish_evidence *b)
{
    if (b->n == 0)
        return;
    if (a->n == 0) {
        *a = *b;
        return;
    }
    double n_a = a->n, n_b = b->n, share = n_b / (n_a + n_b), between2 = 0;
    for (size_t i = 0; i < SKETCH_K; i++) {
        double d = (double)b->mean[i] - (double)a->mean[i];
        between2 += d * d;
        a->mean[i] = (float)((double)a->mean[i] + share * d);
    }
    a->dist2 += b->dist2 + n_a * share * between2;
    a->norm2 += b->norm2;
    a->hash = a->hash == b->hash ? a->hash : 0;
    a->n += b->n;
}

double finish_evidence_distance(const struct finish_evidence *e, double *mean_norm)
{
    double n = e->n, xi2 = n > 0 ? e->dist2 / n : 0;
    double mean2 = n > 0 ? e->norm2 / n - xi2 : 0;
    *mean_norm = mean2 > 0 ? sqrt(mean2) : 0;
    if (e->n > 0 && e->hash != 0)
        return 0;
    double distance = sqrt(xi2 / mean2);
    return mean2 > 0 && isfinite(distance) ? distance : (double)INFINITY;
}
