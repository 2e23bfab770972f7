/* nn/models/build.h -- functions that networks are built with, layer by layer. Internal to
 * nn/models/.
 *
 *   build_add(b, &(struct layer){...}, "layer1.0.conv1")
 *
 * appends a layer that reads the last one (unless `from` says otherwise). Each parameter of the
 * layer becomes a segment, named by the name of the layer, a dot, and the name of the parameter.
 * When all layers have been added,
 *
 *   build_place(b)    x: [ trained, in the order of adding | statistics, likewise ]
 *
 * assigns the positions of the segments in x.
 */
#ifndef NN_MODELS_BUILD_H
#define NN_MODELS_BUILD_H

#include "nn/models/spec.h"

/* Initial distribution of a segment. The i-th added segment draws its values from the i-th random
 * stream, wherever the segment lies in the flat vector. */
enum begin_kind { BEGIN_UNIFORM, BEGIN_NORMAL };

struct model_begin
{
    enum begin_kind kind;
    float spread; /* Half-width of a uniform distribution, or standard deviation of a normal one. */
    float value;  /* Centre of the distribution of the initial values. */
    /* Position of the segment in the flat vector, and number of its floats. `at` is valid after
     * build_place(). */
    size_t at, n;
};

struct build
{
    struct model *m;
    enum model_norm norm;
    size_t layers_cap, segments_cap;
    bool failed; /* True: memory ran out, and all further calls do nothing. */
};

enum {
    /* Value of layer.from for "the last layer added". build_add() replaces it by the index of that
     * layer, or by LAYER_INPUT if there is none. */
    BUILD_LAST = -3,
    BUILD_NAME_MAX = 40
};

/* Appends a layer. The caller sets `from`, `with`, `kind`, `out` and the fields that this kind of
 * layer uses. Returns the index of the layer. */
int build_add(struct build *b, struct layer l, const char *name);

/* build_last() returns the index of the last layer, or LAYER_INPUT if no layer was added.
 * build_shape() returns the output shape of a layer. */
int build_last(const struct build *b);
struct shape build_shape(const struct build *b, int at);

/* Sets the initial distribution of the last layer's weights to N(0, std) and its biases to 0. */
void build_normal(struct build *b, double std);

/* Called when all layers have been added. Puts trained segments before untrained ones, each group
 * in the order of adding. Writes the positions to the segments, to the layers and to m->begins. */
void build_place(struct build *b);

/* Append a dense layer, or a 2x2 max-pooling layer. The new layer reads the output of the layer
 * that was added before it. */
int build_dense(struct build *b, uint32_t width, bool relu, const char *name);
int build_maxpool(struct build *b, bool relu);

/* Each function builds the network of one kind of model (nn/models/images.c, nn/models/text.c).
 * Returns 0, or MODEL_REFUSED with an error message if the data do not fit. */
int build_logreg(struct build *b, const struct model_sizes *sizes, char error[MODEL_ERROR_MAX]);
int build_mlp(struct build *b, const struct model_sizes *sizes, char error[MODEL_ERROR_MAX]);
int build_lenet5(struct build *b, const struct model_sizes *sizes, char error[MODEL_ERROR_MAX]);
int build_vgg11(struct build *b, const struct model_sizes *sizes, char error[MODEL_ERROR_MAX]);
int build_resnet(struct build *b, const struct model_sizes *sizes, char error[MODEL_ERROR_MAX]);
int build_lstm(struct build *b, const struct model_sizes *sizes, char error[MODEL_ERROR_MAX]);
int build_gpt(struct build *b, const struct model_sizes *sizes, char error[MODEL_ERROR_MAX]);

#endif
