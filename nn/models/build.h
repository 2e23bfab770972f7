/* nn/models/build.h -- the networks, layer by layer. Internal to nn/models/.
 *
 *   build_add(b, &(struct layer){...}, "layer1.0.conv1")
 *
 * appends a layer behind the last one (unless `from` says otherwise), whose
 * parameters become segments: the name, a dot, and the parameter's own name.
 * Where they lie is known once all layers are there:
 *
 *   build_place(b)    x: [ trained, as added | statistics, as added ]
 */
#ifndef NN_MODELS_BUILD_H
#define NN_MODELS_BUILD_H

#include "nn/models/spec.h"

/* How a segment begins. The i-th that was added draws from the i-th random
 * stream, wherever it lies. */
enum begin_kind { BEGIN_UNIFORM, BEGIN_NORMAL };

struct model_begin
{
    enum begin_kind kind;
    float spread; /* Bound, or standard deviation. */
    float value;  /* Centre. */
    size_t at, n; /* Position and number of its floats, valid after build_place(). */
};

struct build
{
    struct model *m;
    enum model_norm norm;
    size_t layers_cap, segments_cap;
    bool failed; /* Out of memory: what follows does nothing. */
};

enum {
    BUILD_LAST = -3, /* `from`: the last layer, or the input. */
    BUILD_NAME_MAX = 40
};

/* Append a layer: from, with, kind, out and what the kind needs are given. Its
 * place in the list. */
int build_add(struct build *b, struct layer l, const char *name);

/* build_last() returns the index of the last layer, or LAYER_INPUT if there is none.
 * build_shape() returns the output shape of a layer. */
int build_last(const struct build *b);
struct shape build_shape(const struct build *b, int at);

/* Have the weights of the last layer begin as N(0, std). */
void build_normal(struct build *b, double std);

/* Once the network is whole: put the segments that are trained before those
 * that are not, each kind in the order in which they were added, and say where
 * they lie, to the segments, the layers and the begins. */
void build_place(struct build *b);

/* Shorthands, each behind the last layer. */
int build_dense(struct build *b, uint32_t width, bool relu, const char *name);
int build_maxpool(struct build *b, bool relu);

/* One function a kind (nn/models/images.c, nn/models/text.c): 0, or
 * MODEL_REFUSED with a sentence where the data do not fit. */
int build_logreg(struct build *b, const struct model_sizes *sizes, char error[MODEL_ERROR_MAX]);
int build_mlp(struct build *b, const struct model_sizes *sizes, char error[MODEL_ERROR_MAX]);
int build_lenet5(struct build *b, const struct model_sizes *sizes, char error[MODEL_ERROR_MAX]);
int build_vgg11(struct build *b, const struct model_sizes *sizes, char error[MODEL_ERROR_MAX]);
int build_resnet(struct build *b, const struct model_sizes *sizes, char error[MODEL_ERROR_MAX]);
int build_lstm(struct build *b, const struct model_sizes *sizes, char error[MODEL_ERROR_MAX]);
int build_gpt(struct build *b, const struct model_sizes *sizes, char error[MODEL_ERROR_MAX]);

#endif
