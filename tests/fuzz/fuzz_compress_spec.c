/* tests/fuzz/fuzz_compress_spec.c -- fuzzes compressor specifications of unknown peers.
 *
 * The canonical text of an accepted specification is accepted, too, and is its own canonical text.
 * The compressor of the specification opens, and accepts a message that it has made. A refused
 * specification gives an error message. */
#include "compress/compress.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool ok)
{
    if (!ok)
        abort();
}

/* Encodes and decodes one message of a small model. */
static void exchange(const char *spec)
{
    static const struct segment model[] = {
        {.name = "conv1.weight", .n = 36, .rows = 4, .cols = 9, .n_dims = 4, .dims = {4, 1, 3, 3}},
        {.name = "conv1.bias",
         .offset = 36,
         .n = 4,
         .rows = 1,
         .cols = 4,
         .n_dims = 1,
         .dims = {4}},
        {.name = "fc1.weight",
         .offset = 40,
         .n = 20,
         .rows = 5,
         .cols = 4,
         .n_dims = 2,
         .dims = {5, 4}}};
    struct compress *c;
    struct compress_stat stat;
    float x[60], x_hat[60] = {0};
    size_t len = 0;
    for (size_t i = 0; i < 60; i++)
        x[i] = (float)((int)(i * 37 % 23) - 11) * 0.25f;
    demand(compress_open(&c, spec, model, 3) == 0);
    uint8_t *bytes = malloc(compress_bound(c));
    demand(bytes != NULL);
    struct compress_input in = {.draw = 1, .x = x, .x_hat = x_hat};
    demand(compress_encode(c, &in, bytes, &len, &stat) == 0);
    demand(len <= compress_bound(c) && compress_validate(c, bytes, len));
    compress_apply(c, bytes, len, x_hat);
    for (size_t i = 0; i < 60; i++)
        demand(fabsf(x_hat[i]) <= 0x1p64f);
    free(bytes);
    compress_close(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    char once[COMPRESS_SPEC_MAX], twice[COMPRESS_SPEC_MAX];
    char error[COMPRESS_ERROR_MAX] = "";
    demand(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    int err = compress_canonical(text, once, error);
    demand(err == 0 || err == -EINVAL);
    if (err != 0) {
        demand(error[0] != '\0' && memchr(error, 0, sizeof error) != NULL);
    } else {
        demand(memchr(once, 0, sizeof once) != NULL);
        demand(compress_canonical(once, twice, error) == 0);
        demand(strcmp(once, twice) == 0);
        exchange(once);
    }
    free(text);
    return 0;
}
