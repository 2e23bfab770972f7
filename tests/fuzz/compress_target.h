/* tests/fuzz/compress_target.h -- shared by the fuzz targets of compress/.
 *
 * A target selects a family of codecs. All members of the family in codec_all[] are fuzzed, for
 * several shapes of model.
 *
 *   input:   hash u16 | shape u8 | message
 *
 * The hash belongs to the compressor's specification, so a corpus stays valid when codecs are
 * added. If no compressor has the hash, the hash modulo the number of compressors selects a
 * compressor. The mutator often starts from a valid message and edits it in place, so that inputs
 * get past the length checks.
 *
 * A message that compress_validate() accepts must write only inside the vector, give the same
 * values twice, and keep them finite. */
#ifndef TESTS_FUZZ_COMPRESS_TARGET_H
#define TESTS_FUZZ_COMPRESS_TARGET_H

#include "tests/unit/compress_mutate.h"
#include "tests/unit/compress_specs.h"
#include "tests/unit/compress_vectors.h"

#include <stdlib.h>

enum { HEAD = 3, N_SHAPES = 5, TARGETS_MAX = 256 };

/* Returns whether the target fuzzes this codec. The including file defines the function. */
static bool in_family(const struct codec *codec);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

static void demand(bool ok)
{
    if (!ok)
        abort();
}

/* The compressors of one specification for all shapes. Each is opened at its first use. */
struct target_of
{
    char spec[SPEC_LONG];
    uint16_t hash;
    struct compress *c[N_SHAPES];
};

static struct target_of targets[TARGETS_MAX];
static size_t n_targets;

static void add_target(const char *spec, const char *tail)
{
    assert(n_targets < TARGETS_MAX);
    struct target_of *t = &targets[n_targets++];
    spec_and(t->spec, spec, tail);
    t->hash = (uint16_t)rng_hash(t->spec, strlen(t->spec));
    for (size_t i = 0; i + 1 < n_targets; i++)
        while (targets[i].hash == t->hash)
            t->hash++;
}

static void list_targets(void)
{
    static struct tested list[SPECS_MAX];
    static const char *const coders[] = {"+qsgd:4", "+sign:64", "+fp16"};
    size_t n_specs = specs_all(list);
    for (size_t i = 0; i < n_specs; i++)
        if (in_family(list[i].codec))
            add_target(list[i].spec, "");
    for (size_t i = 0; codec_all[i] != NULL; i++)
        for (size_t j = 0; j < 3 && codec_all[i]->selector != NULL; j++)
            if (in_family(codec_all[i]))
                add_target(codec_all[i]->name, coders[j]);
}

static struct target_of *target_of_hash(uint16_t hash)
{
    if (n_targets == 0)
        list_targets();
    for (size_t i = 0; i < n_targets; i++)
        if (targets[i].hash == hash)
            return &targets[i];
    return &targets[hash % n_targets];
}

static struct target_of *target_in(const uint8_t *data)
{
    return target_of_hash((uint16_t)(data[0] | data[1] << 8));
}

/* Opens a compressor for one of five shapes. Shape 0 has 100 elements and shape 4 has 3,000. Shapes
 * 1, 2 and 3 have three tensors, which are encoded all together, each by itself, or the first
 * together with the last. */
static struct compress *open_shape(const char *spec, size_t shape)
{
    static const struct segment small[] = {{.n = 100, .rows = 10, .cols = 10}};
    static const struct segment three[] = {
        {.name = "a", .n = 90, .rows = 9, .cols = 10},
        {.name = "b", .offset = 90, .n = 1, .rows = 1, .cols = 1},
        {.name = "c", .offset = 91, .n = 209, .rows = 19, .cols = 11}};
    static const struct segment large[] = {{.n = 3000, .rows = 50, .cols = 60}};
    static const char *const tails[N_SHAPES] = {"", "", ",scope=layer", ";b=none", ""};
    struct compress *c;
    char text[SPEC_LONG];
    bool scoped = strstr(spec, "scope=") != NULL;
    const char *tail = scoped && shape == 2 ? "" : tails[shape];
    const struct segment *s = shape == 0 ? small : shape == 4 ? large : three;
    int err = compress_open(&c, spec_and(text, spec, tail), s, s == three ? 3 : 1);
    demand(err == 0);
    return c;
}

static struct compress *compressor_in(const uint8_t *data)
{
    struct target_of *t = target_in(data);
    size_t shape = data[2] % N_SHAPES;
    if (t->c[shape] == NULL)
        t->c[shape] = open_shape(t->spec, shape);
    return t->c[shape];
}

/* Returns the length of the vectors that the input's compressor takes. */
static size_t length_in(const uint8_t *data)
{
    static const size_t lengths[N_SHAPES] = {100, 300, 300, 300, 3000};
    return lengths[data[2] % N_SHAPES];
}

static void check_finite(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        demand(fabsf(x[i]) <= 0x1p64f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < HEAD)
        return 0;
    const struct compress *c = compressor_in(data);
    /* The message is copied to a block of exactly its size, so that a sanitizer detects a read
     * beyond it. */
    size_t len = size - HEAD;
    uint8_t *message = malloc(len + (len == 0));
    demand(message != NULL);
    memcpy(message, data + HEAD, len);
    bool proper = compress_validate(c, message, len);
    demand(memcmp(message, data + HEAD, len) == 0);
    demand(compress_validate(c, message, len) == proper);
    demand(!proper || len <= compress_bound(c));
    if (proper) {
        size_t n = length_in(data);
        float *a = fenced(n * sizeof *a);
        float *b = fenced(n * sizeof *b);
        memset(a, 0, n * sizeof *a);
        memset(b, 0, n * sizeof *b);
        compress_apply(c, message, len, a);
        compress_apply(c, message, len, b);
        demand(memcmp(a, b, n * sizeof *a) == 0);
        demand(fence_stands(a, n * sizeof *a));
        check_finite(a, n);
        free(a);
        free(b);
    }
    free(message);
    return 0;
}

/* Writes a valid message after the head of the input. Returns its size, or 0 if the buffer is
 * too small. */
static size_t put_honest(uint8_t *data, size_t max_size, uint64_t seed)
{
    struct compress *c = compressor_in(data);
    size_t n = length_in(data), len = 0;
    struct compress_stat stat;
    float *v = calloc(2 * n, sizeof *v);
    uint8_t *bytes = malloc(compress_bound(c));
    demand(v != NULL && bytes != NULL);
    vector_fill(v, n, (enum vector_kind)(seed % VECTOR_KINDS), seed);
    struct compress_input in = {.draw = seed, .x = v, .x_hat = v + n};
    demand(compress_encode(c, &in, bytes, &len, &stat) == 0);
    demand(compress_validate(c, bytes, len));
    if (HEAD + len <= max_size)
        memcpy(data + HEAD, bytes, len);
    free(v);
    free(bytes);
    return HEAD + len <= max_size ? HEAD + len : 0;
}

static void put_head(uint8_t *data, struct rng *r)
{
    if (n_targets == 0)
        list_targets();
    uint16_t hash = targets[rng_below(r, n_targets)].hash;
    data[0] = (uint8_t)hash;
    data[1] = (uint8_t)(hash >> 8);
    data[2] = (uint8_t)rng_below(r, N_SHAPES);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, size, 0));
    if (max_size <= HEAD)
        return LLVMFuzzerMutate(data, size, max_size);
    if (size <= HEAD || rng_below(&r, 8) == 0) {
        put_head(data, &r);
        size_t honest = put_honest(data, max_size, rng_below(&r, 1000));
        if (honest == 0) { /* The codec does not apply to this shape: use shape 0. */
            data[2] = 0;
            honest = put_honest(data, max_size, rng_below(&r, 1000));
        }
        if (honest == 0)
            return LLVMFuzzerMutate(data, size, max_size);
        size = honest;
    } else if (rng_below(&r, 4) == 0) {
        return HEAD + LLVMFuzzerMutate(data + HEAD, size - HEAD, max_size - HEAD);
    }
    size_t len = size - HEAD;
    if (len == 0)
        data[HEAD + len++] = 1;
    for (size_t times = rng_below(&r, 4); times > 0; times--)
        len = mutate(&r, data + HEAD, len, max_size - HEAD);
    return HEAD + len;
}

#endif
