/* gossip/exchange/layers.h -- estimates the consensus distance of each layer, and finds the two
 * models that are farthest apart.
 *
 *   model   [ conv1.weight | conv1.bias | fc1.weight | fc1.bias | statistics ]
 *   parts   [          conv1            |          fc1          ]   layers_cut()
 *   answer  [ conv1's floats as they are | S fc1 (LAYERS_K floats), |fc1|^2 ]
 *
 * Sketches of layers cost nothing unless an observer requests them. The observer asks all peers for
 * sketches of one round, with a random key that it draws for this request (struct wire_model_req),
 * and compares the answers itself. Messages of training do not become longer, and no result of a
 * run depends on these requests.
 *
 * A part is a layer: successive tensors whose names are equal up to the last dot. If a model has
 * more than LAYERS_MAX layers, the smallest neighbouring layers are joined. A part with few floats
 * is sent as it is. For a larger part, a count sketch S (Charikar, Chen, Farach-Colton 2002) is
 * sent, as in sketch.h. The sketches of the models x_i, and the mean of these sketches, give these
 * estimates:
 *
 *   Xi^2 = (1/n) sum_i |S x_i - S mean|^2          |x_i - x_j| = |S x_i - S x_j|
 *
 * The relative standard error of each squared distance is at most sqrt(2 / LAYERS_K) = 8.8 %, so
 * the error of the distance is at most 4.4 %. Xi^2 is a mean over all peers. If their models differ
 * from the mean in different directions, the errors partly cancel. Rounding to float32 adds an
 * error of up to 2^-24 |x|.
 *
 * layers_measure() can also compare whole models, without sketches. Its result is then exact.
 */
#ifndef GOSSIP_EXCHANGE_LAYERS_H
#define GOSSIP_EXCHANGE_LAYERS_H

#include "nn/math/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LAYERS_MAX = 64, /* Largest number of parts (layers) in a peer's answer to an observer. */
    LAYERS_K = 256,  /* Number of floats of a sketch, without the squared norm. */
    /* Size of a part's name in bytes, with the final NUL: "conv1", or "conv1 to fc2". */
    LAYERS_NAME_MAX = 2 * SEGMENT_NAME_MAX + 8
};

/* One part: floats [offset, offset + n) of a model, and floats [at, at + width) of an answer. If
 * width equals n, the answer has the part as it is. Otherwise it has a sketch and a squared
 * norm. */
struct layers_part
{
    char name[LAYERS_NAME_MAX];
    size_t offset, n, at, width;
};

struct layers
{
    size_t n;        /* Number of parts of the model in part[]. */
    size_t n_floats; /* Number of floats of a peer's answer to an observer. */
    struct layers_part part[LAYERS_MAX];
};

/* Divides the trained tensors of a model into layers. The result depends only on the arguments, so
 * the observer and the peers obtain the same parts. */
void layers_cut(struct layers *l, const struct segment *s, size_t n_segments);
/* Makes each trained tensor a part of its own, for the comparison of whole models. part[] has room
 * for n_segments parts. Returns the number of parts. */
size_t layers_of_segments(struct layers_part *part, const struct segment *s, size_t n_segments);

/* Computes a peer's answer for model x: writes l->n_floats floats to `out`. key: key of the
 * observer's request. Cost: one hash per float of the sketched parts. */
void layers_sketch(const struct layers *l, uint64_t key, const float *x, float *out);

/* Consensus distance of one part, or of all parts together. */
struct layers_figure
{
    double xi; /* Consensus distance. NaN: unknown, because sketches cannot resolve it. */
    /* Consensus distance xi divided by |mean|, the norm of the mean model. NaN: xi is unknown, or
     * |mean|^2 is not greater than 0. */
    double relative;
    /* Standard error of the consensus distance xi, relative to xi. 0: exact. NaN: xi is unknown. */
    double error;
    /* Distance between the two models that are farthest apart. NaN: the distances are unknown. */
    double apart;
    /* Indices in x[] of the two models that are farthest apart. The two indices are equal if no two
     * models differ or xi is unknown. */
    size_t far[2];
};

/* Compares x[0..n), n > 0: answers of peers, or whole models. Writes n_parts + 1 figures: one for
 * each part, and the last one for all parts together. Returns 0, or -ENOMEM without changing
 * figure[]. Cost: n^2 / 2 distances per part. */
__attribute__((warn_unused_result)) int layers_measure(const struct layers_part *part,
                                                       size_t n_parts, const float *const *x,
                                                       size_t n, struct layers_figure *figure);

#endif
