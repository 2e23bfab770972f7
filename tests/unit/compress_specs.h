/* tests/unit/compress_specs.h -- the compressors that tests loop over.
 *
 * The list has every codec of codec_all[] with its defaults, every way to send the positions of a
 * selector, and some more specs. A new codec is tested without a change of this file. */
#ifndef TESTS_UNIT_COMPRESS_SPECS_H
#define TESTS_UNIT_COMPRESS_SPECS_H

#include "compress/codec.h"
#include "compress/compress.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { SPECS_MAX = 160, SPEC_LONG = COMPRESS_SPEC_MAX + 32 };

enum spec_trait {
    SPEC_RANDOM = 1, /* Trait: the message depends on the random draw. */
    /* Trait: the codec has an absolute constant, as in its paper, so C(2^k x) is not 2^k C(x). */
    SPEC_UNSCALED = 2,
    SPEC_MUTE = 4, /* Trait: the codec may send nothing for a vector that is not zero. */
    SPEC_LOOSE = 8 /* Trait: the codec contracts on average, but not in each draw. */
};

/* One compressor under test. */
struct tested
{
    char spec[COMPRESS_SPEC_MAX];
    enum codec_class class;
    unsigned traits;
    const struct codec *codec; /* Codec of the first stage of the specification. */
};

struct further
{
    const char *spec;
    enum codec_class class;
    unsigned traits;
};

static const struct further further_specs[] = {
    {"sign:8", CODEC_CONTRACTION, 0},
    {"sign:0", CODEC_CONTRACTION, 0},
    {"sign:8192", CODEC_CONTRACTION, 0},
    {"sign,scale=none", CODEC_NEITHER, SPEC_UNSCALED},
    {"qsgd:2:64", CODEC_CONTRACTION, 0},
    {"qsgd:8:0", CODEC_CONTRACTION, 0},
    {"qsgd:16:2048", CODEC_CONTRACTION, 0},
    {"qsgd:3:1024:l2", CODEC_CONTRACTION, SPEC_MUTE},
    {"qsgd:4,round=sr", CODEC_CONTRACTION, SPEC_RANDOM},
    {"qsgd:5:64:l2,round=sr", CODEC_CONTRACTION, SPEC_RANDOM},
    {"qsgd:4:512:l2,round=sr,scale=raw", CODEC_NEITHER, SPEC_RANDOM},
    {"qsgd:6:0:l2,round=sr,scale=inv1w,levels=16", CODEC_EXPECTED, SPEC_RANDOM | SPEC_LOOSE},
    {"topk:0.3", CODEC_CONTRACTION, 0},
    {"topk:1", CODEC_CONTRACTION, 0},
    {"topk:0.01+qsgd:4", CODEC_CONTRACTION, 0},
    {"topk:0.05+fp16", CODEC_CONTRACTION, 0},
    {"topk:0.01/ef+sign", CODEC_CONTRACTION, 0},
    {"topk:0.5+qsgd:3:8:l2,round=sr", CODEC_CONTRACTION, SPEC_RANDOM},
    {"randk:0.1", CODEC_EXPECTED, SPEC_RANDOM},
    {"randk:0.1+qsgd:4", CODEC_EXPECTED, SPEC_RANDOM},
    {"randk:1+sign", CODEC_CONTRACTION, SPEC_RANDOM},
    {"topk:0.01,warm=20", CODEC_CONTRACTION, 0},
    {"randk:0.01,warm=20", CODEC_EXPECTED, SPEC_RANDOM},
    {"randk:0.1,scale=unbiased", CODEC_UNBIASED, SPEC_RANDOM},
    {"int8:0", CODEC_CONTRACTION, 0},
    {"int8:8", CODEC_CONTRACTION, 0},
    {"int8:4096", CODEC_CONTRACTION, 0},
    {"dyn8:4096", CODEC_CONTRACTION, 0},
    {"qnt:2", CODEC_CONTRACTION, 0},
    {"qnt:16:512", CODEC_CONTRACTION, 0},
    {"nat,round=near", CODEC_CONTRACTION, 0},
    /* The codec is unbiased with a relative variance omega of 1/8, so it contracts on average. */
    {"nat,scale=raw", CODEC_EXPECTED, SPEC_RANDOM},
    {"onebit:64", CODEC_CONTRACTION, 0},
    {"thr2:0.5:256", CODEC_CONTRACTION, 0},
    {"thr2:1000", CODEC_CONTRACTION, 0},
    {"thr2:0.5,form=mxnet", CODEC_NEITHER, SPEC_UNSCALED | SPEC_MUTE},
    {"dorefa:1", CODEC_CONTRACTION, 0},
    {"dorefa:16:2048", CODEC_CONTRACTION, 0},
    {"dorefa:4:512,round=sr", CODEC_CONTRACTION, SPEC_RANDOM},
    {"dorefa:4:512,round=sr,scale=raw", CODEC_NEITHER, SPEC_RANDOM},
    {"tern:512", CODEC_CONTRACTION, 0},
    {"tern,clip=0", CODEC_CONTRACTION, 0},
    {"tern:64,round=sr", CODEC_CONTRACTION, SPEC_RANDOM},
    {"tern,round=sr,scale=raw", CODEC_NEITHER, SPEC_RANDOM},
    {"3lc:1.75", CODEC_CONTRACTION, 0},
    {"3lc:1.9,scope=block:100", CODEC_CONTRACTION, 0},
    {"thr:0.5", CODEC_NEITHER, SPEC_UNSCALED | SPEC_MUTE},
    {"thr:0.000000001", CODEC_NEITHER, SPEC_UNSCALED | SPEC_MUTE},
    {"aji:0.1", CODEC_CONTRACTION, 0},
    {"aji:0.1/ef+qsgd:4", CODEC_CONTRACTION, 0},
    {"adath:0.1", CODEC_CONTRACTION, 0},
    {"adath:1+sign", CODEC_CONTRACTION, 0},
    {"adaq:0.1", CODEC_CONTRACTION, 0},
    {"adaq:0.1+none", CODEC_CONTRACTION, 0},
    {"wangni:0.1", CODEC_EXPECTED, SPEC_RANDOM},
    {"wangni:0.3+none", CODEC_EXPECTED, SPEC_RANDOM},
    {"wangni:0.3+none,scale=raw", CODEC_UNBIASED, SPEC_RANDOM},
    {"lowrank:1", CODEC_EXPECTED, SPEC_RANDOM},
    {"lowrank:64", CODEC_EXPECTED, SPEC_RANDOM},
    {"atomo:1", CODEC_EXPECTED, SPEC_RANDOM},
    /* atomo:64 sends every singular triple, so its message is not random. */
    {"atomo:64", CODEC_EXPECTED, 0},
    {"atomo:3,scale=raw", CODEC_UNBIASED, SPEC_RANDOM},
    {"topk:0.05+int8", CODEC_CONTRACTION, 0},
    {"topk:0.05+tern", CODEC_CONTRACTION, 0},
    {"topk:0.05+dyn8", CODEC_CONTRACTION, 0},
    {"topk:0.05+qnt:16", CODEC_CONTRACTION, 0},
    {"topk:0.05+nat,round=near", CODEC_CONTRACTION, 0},
    {"topk:0.1,scope=block:100", CODEC_CONTRACTION, 0},
    {"qsgd:4,scope=block:100", CODEC_CONTRACTION, 0},
};

/* Traits of single codecs, in addition to SPEC_RANDOM, which spec_add() sets. */
static const struct
{
    const char *name;
    unsigned traits;
} special_codecs[] = {
    {"thr", SPEC_UNSCALED | SPEC_MUTE},
};

static inline const struct codec *spec_codec(const char *spec)
{
    size_t n = strcspn(spec, ":/+,;");
    for (size_t i = 0; codec_all[i] != NULL; i++)
        if (strlen(codec_all[i]->name) == n && memcmp(codec_all[i]->name, spec, n) == 0)
            return codec_all[i];
    return NULL;
}

static inline struct tested *spec_add(struct tested *list, size_t *n, const char *spec,
                                      const char *tail)
{
    assert(*n < SPECS_MAX);
    struct tested *t = &list[(*n)++];
    *t = (struct tested){.codec = spec_codec(spec)};
    assert(t->codec != NULL);
    snprintf(t->spec, sizeof t->spec, "%s%s", spec, tail);
    t->class = t->codec->class;
    if (t->class == CODEC_EXPECTED || t->class == CODEC_UNBIASED)
        t->traits = SPEC_RANDOM;
    for (size_t i = 0; i < sizeof special_codecs / sizeof special_codecs[0]; i++)
        if (strcmp(special_codecs[i].name, t->codec->name) == 0)
            t->traits |= special_codecs[i].traits;
    return t;
}

/* Fills list[0..SPECS_MAX) with all compressors. Returns their number. */
static inline size_t specs_all(struct tested *list)
{
    static const char *const hows[] = {"/rice", "/ef", "/bitmap"};
    size_t n = 0;
    for (size_t i = 0; codec_all[i] != NULL; i++) {
        const struct codec *c = codec_all[i];
        spec_add(list, &n, c->name, "");
        for (size_t j = 0; j < 3; j++)
            if (c->selector != NULL && c->selector->places == NULL)
                spec_add(list, &n, c->name, hows[j]);
    }
    for (size_t i = 0; i < sizeof further_specs / sizeof further_specs[0]; i++) {
        const struct further *f = &further_specs[i];
        struct tested *t = spec_add(list, &n, f->spec, "");
        t->class = f->class;
        t->traits = f->traits;
    }
    return n;
}

/* Writes a specification and a tail, for example an option, to `text`. Returns `text`. */
static inline const char *spec_and(char text[SPEC_LONG], const char *spec, const char *tail)
{
    size_t n = strlen(spec), m = strlen(tail);
    assert(n + m < SPEC_LONG);
    memcpy(text, spec, n);
    memcpy(text + n, tail, m + 1);
    return text;
}

static inline bool spec_remembers(const struct tested *t)
{
    return t->codec->body != NULL && t->codec->body->memory != NULL;
}

#endif
