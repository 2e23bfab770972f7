/* nn/models/text.c -- the networks for text. Tokens are bytes, so there are 256 token ids and
 * classes. Each byte of a sample predicts the next byte. */
#include "nn/models/build.h"

#include <math.h>
#include <stdio.h>

static int check_text(const struct build *b, char error[MODEL_ERROR_MAX])
{
    if (b->m->data.form == DATA_TEXT)
        return 0;
    snprintf(error, MODEL_ERROR_MAX,
             "model \"%.80s\" takes text, but the data is something else "
             "(expected --data text:PATH)",
             b->m->spec);
    return MODEL_REFUSED;
}

/* Appends a layer that has `width` output channels at every time step. */
static int add_per_time(struct build *b, struct layer l, uint32_t width, const char *name)
{
    l.out = (struct shape){width, b->m->in.h, 1};
    return build_add(b, l, name);
}

#define BEHIND(k) .kind = (k), .from = BUILD_LAST, .with = LAYER_NONE

/* Builds the language model of PyTorch's examples, with its modules encoder, rnn and decoder. */
int build_lstm(struct build *b, const struct model_sizes *sizes, char error[MODEL_ERROR_MAX])
{
    if (check_text(b, error) != 0)
        return MODEL_REFUSED;
    uint32_t layers = sizes->size[0], width = sizes->size[1];
    add_per_time(b, (struct layer){BEHIND(LAYER_EMBED)}, width, "encoder");
    build_normal(b, 1.0);
    for (uint32_t i = 0; i < layers; i++)
        add_per_time(b, (struct layer){BEHIND(LAYER_LSTM), .depth = i}, width, "rnn");
    build_dense(b, b->m->n_classes, false, "decoder");
    return 0;
}

/* Appends a dense layer of a transformer, with bias. Its initial weights are N(0, std). */
static void project(struct build *b, uint32_t width, double std, const char *name)
{
    add_per_time(b, (struct layer){BEHIND(LAYER_DENSE), .bias = true}, width, name);
    build_normal(b, std);
}

static void norm(struct build *b, uint32_t width, const char *name)
{
    add_per_time(b, (struct layer){BEHIND(LAYER_NORM), .norm = NORM_PLACE}, width, name);
}

/* Appends a transformer block: attention, then a two-layer MLP. Each of the two reads a layer norm
 * of the residual sum and adds its output to this sum. The last dense layer before each addition
 * has initial weights of standard deviation `back`, which is smaller in deeper models (Radford et
 * al. 2019, section 2.3). */
static void block(struct build *b, uint32_t width, double back, const char *name)
{
    char part[BUILD_NAME_MAX];
    int past = build_last(b);
    snprintf(part, sizeof part, "%s.ln_1", name);
    norm(b, width, part);
    snprintf(part, sizeof part, "%s.attn.c_attn", name);
    project(b, 3 * width, 0.02, part);
    add_per_time(b, (struct layer){BEHIND(LAYER_ATTENTION), .groups = width / MODEL_HEAD}, width,
                 "");
    snprintf(part, sizeof part, "%s.attn.c_proj", name);
    project(b, width, back, part);
    past = add_per_time(b, (struct layer){.kind = LAYER_ADD, .from = BUILD_LAST, .with = past},
                        width, "");
    snprintf(part, sizeof part, "%s.ln_2", name);
    norm(b, width, part);
    snprintf(part, sizeof part, "%s.mlp.c_fc", name);
    project(b, 4 * width, 0.02, part);
    add_per_time(b, (struct layer){BEHIND(LAYER_GELU)}, 4 * width, "");
    snprintf(part, sizeof part, "%s.mlp.c_proj", name);
    project(b, width, back, part);
    add_per_time(b, (struct layer){.kind = LAYER_ADD, .from = BUILD_LAST, .with = past}, width, "");
}

int build_gpt(struct build *b, const struct model_sizes *sizes, char error[MODEL_ERROR_MAX])
{
    if (check_text(b, error) != 0)
        return MODEL_REFUSED;
    uint32_t layers = sizes->size[0], width = sizes->size[1];
    add_per_time(b, (struct layer){BEHIND(LAYER_EMBED), .positions = true}, width, "transformer");
    build_normal(b, 0.02);
    for (uint32_t i = 0; i < layers; i++) {
        /* `name` is shorter than BUILD_NAME_MAX, because block() appends the names of layers, such
         * as ".attn.c_attn", to it. */
        char name[BUILD_NAME_MAX - 12];
        snprintf(name, sizeof name, "transformer.h.%u", (unsigned)i);
        block(b, width, 0.02 / sqrt(2.0 * layers), name);
    }
    norm(b, width, "transformer.ln_f");
    add_per_time(b, (struct layer){BEHIND(LAYER_DENSE)}, b->m->n_classes, "lm_head");
    build_normal(b, 0.02);
    return 0;
}
