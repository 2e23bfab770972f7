/* gossip/exchange/layers.h -- which layers of the models are apart, and which two models are farthest.
 *
 *   model   [ conv1.weight | conv1.bias | fc1.weight | fc1.bias | statistics ]
 *   parts   [          conv1            |          fc1          ]   layers_cut()
 *   answer  [ conv1's floats as they are | S fc1 (LAYERS_K floats), |fc1|^2 ]
 *
 * Nobody pays for this who does not look: an observer asks all peers for the sketches of one
 * round, with a key that it draws for this look (struct wire_model_req), and compares the answers
 * itself. No message of training is longer for it, and no number of a run depends on it.
 *
 * A part is a layer: neighbouring tensors of one name up to the last dot. Of a model with more than
 * LAYERS_MAX the smallest neighbours go together. A part of few floats goes as it is; of the others
 * goes a count sketch (Charikar, Chen, Farach-Colton 2002), as in sketch.h, so that for the models
 * x_i, their mean and any two of them
 *
 *   Xi^2 = (1/n) sum_i |S x_i - S mean|^2          |x_i - x_j| = |S x_i - S x_j|
 *
 * hold with a standard error of the squares of sqrt(2 / K) at most: half of that of Xi, 4.4 %. (It
 * is the error of one difference; where many point elsewhere, some of it cancels in their mean.) To
 * this comes what float32 hides of a sum as long as |x|, 2^-24 of it.
 *
 * The same measure takes whole models, each part as it is: then it is exact.
 */
#ifndef GOSSIP_EXCHANGE_LAYERS_H
#define GOSSIP_EXCHANGE_LAYERS_H

#include "nn/math/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LAYERS_MAX = 64,                           /* Parts of one answer. */
    LAYERS_K = 256,                            /* Floats of one sketch. */
    LAYERS_NAME_MAX = 2 * SEGMENT_NAME_MAX + 8 /* "conv1", or "conv1 to fc2". */
};

/* It stands in floats offset to offset + n of a model, and in `at` to at + width of an answer. With
 * width == n it is there as it is, with less as a sketch and its squared norm. */
struct layers_part
{
    char name[LAYERS_NAME_MAX];
    size_t offset, n, at, width;
};

struct layers
{
    size_t n;        /* Parts. */
    size_t n_floats; /* An answer has so many. */
    struct layers_part part[LAYERS_MAX];
};

/* The layers of the trained segments. Pure: both ends of a question cut alike. */
void layers_cut(struct layers *l, const struct segment *s, size_t n_segments);
/* Each of the trained segments as it is, n_segments at most: parts of whole models. Returns how many. */
size_t layers_of_segments(struct layers_part *part, const struct segment *s, size_t n_segments);

/* A peer's answer, of l->n_floats floats. One hash a float of the model. */
void layers_sketch(const struct layers *l, uint64_t key, const float *x, float *out);

/* How far one part of the models is apart. */
struct layers_figure
{
    double xi;       /* NaN: not known, since it is less than what sketches tell. */
    double relative; /* Xi / |mean|; NaN, too, where |mean|^2 is not above 0. */
    double error;    /* The standard error of xi, relative to it; 0: exact. */
    double
        apart; /* The distance of the two that are farthest from each other: their places in x[]; */
    size_t far[2]; /* equal where no two differ, or the distance is not known: then it is NaN. */
};

/* Compare n answers, or models, in x[]. figure[] has room for n_parts + 1: the last is of all parts
 * together. 0 or -ENOMEM; then *figure is as it was. Cost: n^2 / 2 distances. */
__attribute__((warn_unused_result)) int layers_measure(const struct layers_part *part,
                                                       size_t n_parts, const float *const *x,
                                                       size_t n, struct layers_figure *figure);

#endif
