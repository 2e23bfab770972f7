/* tests/fuzz/fuzz_compress.c -- libFuzzer's entry: messages from a stranger.
 *
 * The first byte picks the compressor and the scope, the rest is the message.
 * Whatever passes validation must apply inside the vector and stay finite.
 *
 *   clang -fsanitize=fuzzer,address,undefined -DHEARSAY_SANITIZED -I. \
 *       tests/fuzz/fuzz_compress.c compress/(all).c nn/rng.c nn/vec.c -lm
 */
#include "compress/compress.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

static const char *const specs[] = {
    "none",         "fp16",
    "sign:64",      "sign:0",
    "qsgd:4",       "qsgd:3:64:l2,round=sr,scale=raw",
    "qsgd:16:8",    "qsgd:6:0:l2,levels=16",
    "topk:0.1",     "topk:0.5+qsgd:4",
    "topk:1+sign",  "topk:0.05+fp16",
    "randk:0.1",    "randk:0.3+qsgd:5",
};

enum {
    N_SPECS = sizeof specs / sizeof specs[0]
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct compress *open_one(size_t which)
{
    static const struct segment segments[] = {
        {.offset = 0, .n = 90, .rows = 9, .cols = 10},
        {.offset = 90, .n = 1, .rows = 1, .cols = 1},
        {.offset = 91, .n = 1409, .rows = 1, .cols = 1409},
    };
    struct compress *c;
    int err = compress_open(&c, specs[which % N_SPECS],
                            which < N_SPECS ? COMPRESS_MODEL : COMPRESS_LAYER,
                            segments, 3);
    assert(err == 0);
    return c;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct compress *all[2 * N_SPECS];
    if (size == 0)
        return 0;
    size_t which = data[0] % (2 * N_SPECS);
    if (all[which] == NULL)
        all[which] = open_one(which);
    const struct compress *c = all[which];
    if (!compress_validate(c, data + 1, size - 1))
        return 0;
    float *x_hat = calloc(compress_dim(c), sizeof *x_hat);
    assert(x_hat != NULL);
    compress_apply(c, data + 1, size - 1, x_hat);
    for (size_t i = 0; i < compress_dim(c); i++)
        assert(fabsf(x_hat[i]) <= 0x1p64f);
    free(x_hat);
    return 0;
}
