/* tests/unit/compress_spec.c -- tests the grammar of compressor specifications: canonical texts and
 * error messages. */
#include "tests/unit/compress_specs.h"

#include "nn/math/rng.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Writes the canonical text of a specification. Fails if the specification is refused. */
static void canonical(const char *spec, char text[COMPRESS_SPEC_MAX])
{
    char error[COMPRESS_ERROR_MAX] = "";
    if (compress_canonical(spec, text, error) != 0)
        fail_msg("%s: refused: %s", spec, error);
}

static void check_fixed(const char *spec, char text[COMPRESS_SPEC_MAX])
{
    char again[COMPRESS_SPEC_MAX];
    canonical(spec, text);
    canonical(text, again);
    if (strcmp(text, again) != 0)
        fail_msg("%s: %s became %s", spec, text, again);
}

static void test_canonical(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"none", "none"},
        {"fp16", "fp16"},
        {"sign", "sign:512"},
        {"sign:0", "sign:0"},
        {"sign:0064", "sign:64"},
        {"qsgd:4", "qsgd:4:512:max"},
        {"qsgd", "qsgd:4:512:max"},
        {"qsgd,levels=7", "qsgd:4:512:max"},
        {"qsgd:4,round=near,scale=ls", "qsgd:4:512:max"},
        {"qsgd:8:0:l2,scale=raw,round=sr", "qsgd:8:0:l2,round=sr,scale=raw"},
        {"qsgd:6:0:l2,round=sr,scale=inv1w,levels=16",
         "qsgd:6:0:l2,round=sr,scale=inv1w,levels=16"},
        {"qsgd,levels=16", "qsgd:6:512:max,levels=16"},
        {"topk", "topk:0.01"},
        {"topk:0.010", "topk:0.01"},
        {"topk:00.01+none", "topk:0.01"},
        {"topk:1.0", "topk:1"},
        {"topk:0.000000001", "topk:0.000000001"},
        {"topk:0.01,warm=0", "topk:0.01"},
        {"topk:0.01,warm=0020", "topk:0.01,warm=20"},
        {"topk:0.01/auto", "topk:0.01"},
        {"topk:0.01/ef", "topk:0.01/ef"},
        {"topk:0.01/bitmap+none", "topk:0.01/bitmap"},
        {"topk:0.01/rice+qsgd:4", "topk:0.01/rice+qsgd:4:512:max"},
        {"topk:0.01+qsgd:4", "topk:0.01+qsgd:4:512:max"},
        {"topk:0.01+sign", "topk:0.01+sign:512"},
        {"topk:0.05+fp16", "topk:0.05+fp16"},
        {"randk:0.1+qsgd:4,round=sr", "randk:0.1+qsgd:4:512:max,round=sr"},
        /* Both stages, the selector randk and the codec nat, have an option named `scale`. */
        {"randk:0.3+nat,scale=unbiased,scale=raw", "randk:0.3+nat,scale=unbiased,scale=raw"},
        {"randk:0.3+nat,scale=raw", "randk:0.3+nat,scale=biased,scale=raw"},
        {"wangni+qsgd,scale=raw", "wangni:0.01+qsgd:4:512:max,scale=raw"},
        {"wangni+qsgd,scale=ls,scale=raw", "wangni:0.01+qsgd:4:512:max,scale=ls,scale=raw"},
        /* In the canonical text, options are in the order of the stages that define them, and the
         * scope comes last. */
        {"topk:0.1+qsgd:4,scope=layer,round=sr,warm=3",
         "topk:0.1+qsgd:4:512:max,warm=3,round=sr,scope=layer"},
        {"sign,scope=model", "sign:512"},
        {"sign,scope=block:0100", "sign:512,scope=block:100"},
        /* Specifications of several rules: in the canonical text the default rule comes first, and
         * the others keep their order. */
        {"default=none", "none"},
        {"bias=fp16;none", "none;bias=fp16"},
        {"default=topk:0.01;bias=fp16;<256=none", "topk:0.01;bias=fp16;<256=none"},
        {"<0256=none;bias=fp16,scope=layer;default=sign",
         "sign:512;<256=none;bias=fp16,scope=layer"},
        {"none;conv=sign;conv?.w*=fp16", "none;conv=sign:512;conv?.w*=fp16"},
        {"none;bias*=fp16", "none;bias*=fp16"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char text[COMPRESS_SPEC_MAX];
        check_fixed(pairs[i][0], text);
        assert_string_equal(text, pairs[i][1]);
    }
}

static void check_refused(const char *spec, const char *sentence)
{
    char text[COMPRESS_SPEC_MAX] = "untouched";
    char error[COMPRESS_ERROR_MAX] = "";
    if (compress_canonical(spec, text, error) != -EINVAL)
        fail_msg("%s: accepted as %s", spec, text);
    assert_string_equal(error, sentence);
    assert_string_equal(text, "untouched");
    struct segment all = {.n = 10, .rows = 1, .cols = 10};
    struct compress *c;
    assert_int_equal(compress_open(&c, spec, &all, 1), -EINVAL);
    assert_null(c);
}

static void test_errors(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"topk:1.5", "topk:1.5: keep must be in (0, 1], found 1.5"},
        {"topk:0", "topk:0: keep must be in (0, 1], found 0"},
        {"topk:-0.1", "topk:-0.1: keep must be in (0, 1], found -0.1"},
        {"topk:1e-2", "topk:1e-2: keep must be in (0, 1], found 1e-2"},
        {"topk:.5", "topk:.5: keep must be in (0, 1], found .5"},
        {"topk:0.", "topk:0.: keep must be in (0, 1], found 0."},
        {"topk:nan", "topk:nan: keep must be in (0, 1], found nan"},
        {"topk:0.0000000001", "topk:0.0000000001: keep must be in (0, 1], found 0.0000000001"},
        {"topk:", "topk:: keep must be in (0, 1], found "},
        {"topk:0.1:2", "topk:0.1:2: topk takes at most 1 values"},
        {"", "the compressor is empty"},
        {"sign:7", "sign:7: block must be 0 (all) or a multiple of 8 up to "
                   "1048576, found 7"},
        {"qsgd:1", "qsgd:1: bits must be an integer from 2 to 16, found 1"},
        {"qsgd:4:512:l1", "qsgd:4:512:l1: norm must be max or l2, found l1"},
        {"qsgd:4,round=up", "round=up: round must be near or sr, found up"},
        {"qsgd:4,round=sr,round=sr", "round=sr: round is given twice"},
        {"qsgd:4,", ": an option must be name=value"},
        {"qsgd:4,fast", "fast: an option must be name=value"},
        {"topk:0.1,round=sr", "round=sr: unknown option round"},
        {"qsgd:4,bits=4", "bits=4: unknown option bits"},
        {"qsgd:4,levels=16", "qsgd:4,levels=16: levels=16 needs 6 bits (one of "
                             "them for the sign), found 4 bits"},
        {"sign+topk:0.1", "sign+topk:0.1: nothing may follow sign, found +topk:0.1"},
        {"topk:0.1+randk:0.1", "topk:0.1+randk:0.1: only a values codec may follow "
                               "topk, found randk:0.1"},
        {"topk:0.1+qsgd:4+sign", "topk:0.1+qsgd:4+sign: nothing may follow "
                                 "qsgd, found +sign"},
        {"sign/ef", "sign/ef: nothing may follow sign, found /ef"},
        {"topk:0.1+sign/ef", "topk:0.1+sign/ef: nothing may follow sign, found /ef"},
        {"randk:0.1/ef", "randk:0.1/ef: nothing may follow randk, found /ef"},
        {"topk:0.1/elias", "topk:0.1/elias: positions must be auto, rice, ef "
                           "or bitmap, found elias"},
        {"topk:0.1/", "topk:0.1/: positions must be auto, rice, ef or bitmap, "
                      "found "},
        {"topk:0.1/ef/ef", "topk:0.1/ef/ef: positions must be auto, rice, ef "
                           "or bitmap, found ef/ef"},
        {"sign,scope=all", "scope=all: scope must be model, layer or block:N, "
                           "found all"},
        {"sign,scope=block", "scope=block: scope must be model, layer or "
                             "block:N, found block"},
        {"sign,scope=block:0", "scope=block:0: scope must be model, layer or "
                               "block:N, found block:0"},
        {"sign,scope=layer,scope=layer", "scope=layer: scope is given twice"},
        {"biass=fp16", "found no default rule, expected one at the start, such as none;biass=fp16"},
        {"sign;none", "there are two default rules"},
        {"default=sign;none", "there are two default rules"},
        {"sign;", "a rule is empty"},
        {";sign", "a rule is empty"},
        {"sign;;bias=none", "a rule is empty"},
        {"sign;<0=none", "<0=none: a rule must be for default, bias, conv, <N "
                         "or a pattern of names, found <0"},
        {"sign;=none", "=none: a rule must be for default, bias, conv, <N or "
                       "a pattern of names, found "},
        {"sign;a b=none", "a b=none: a rule must be for default, bias, conv, "
                          "<N or a pattern of names, found a b"},
        {"none;a=none;b=none;c=none;d=none;e=none;f=none;g=none;h=none",
         "there are more than 8 rules"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        check_refused(pairs[i][0], pairs[i][1]);
}

/* The error message for an unknown name lists all existing names. */
static void test_unknown(void **state)
{
    (void)state;
    static const char *const specs[][3] = {{"gzip", "gzip", ""},
                                           {"none ", "none ", ", did you mean none?"},
                                           {"topk:0.1+", "", ""},
                                           {"sign;a=zip", "zip", ""},
                                           {"topk0.1", "topk0.1", ", did you mean topk:0.1?"},
                                           {"topk:0.1+qsdg:4", "qsdg", ", did you mean qsgd:4?"},
                                           {"TOPK", "TOPK", ", did you mean topk?"}};
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        char sentence[COMPRESS_ERROR_MAX];
        int n = snprintf(sentence, sizeof sentence, "%s: unknown compressor, expected one of ",
                         specs[i][1]);
        size_t len = (size_t)n;
        for (size_t j = 0; codec_all[j] != NULL && len < sizeof sentence; j++)
            len += (size_t)snprintf(sentence + len, sizeof sentence - len, "%s%s",
                                    j > 0 ? ", " : "", codec_all[j]->name);
        len += (size_t)snprintf(sentence + len, sizeof sentence - len, "%s", specs[i][2]);
        /* The list of all codec names fits in the error message. */
        assert_true(len < sizeof sentence);
        check_refused(specs[i][0], sentence);
    }
}

/* A body, that is a codec with a message format of its own, cannot be combined with other stages. A
 * body for matrices has no scope option. */
static void test_bodies(void **state)
{
    (void)state;
    for (size_t i = 0; codec_all[i] != NULL; i++) {
        const struct codec *c = codec_all[i];
        char spec[64], sentence[COMPRESS_ERROR_MAX];
        char text[COMPRESS_SPEC_MAX], plain[COMPRESS_SPEC_MAX];
        if (c->body == NULL)
            continue;
        snprintf(spec, sizeof spec, "topk:0.1+%s", c->name);
        snprintf(sentence, sizeof sentence, "%s: only a values codec may follow topk, found %s",
                 spec, c->name);
        check_refused(spec, sentence);
        snprintf(spec, sizeof spec, "%s+sign", c->name);
        snprintf(sentence, sizeof sentence, "%s: nothing may follow %s, found +sign", spec,
                 c->name);
        check_refused(spec, sentence);
        snprintf(spec, sizeof spec, "%s,scope=layer", c->name);
        check_fixed(spec, text);
        canonical(c->name, plain);
        if (!c->body->by_tensor)
            continue;
        assert_string_equal(text, plain);
        snprintf(spec, sizeof spec, "%s,scope=model", c->name);
        snprintf(sentence, sizeof sentence,
                 "%s: scope must be layer, because %s encodes each tensor by itself", spec,
                 c->name);
        check_refused(spec, sentence);
    }
}

/* A long text is shortened in the error message, which never exceeds its buffer. */
static void test_long_texts(void **state)
{
    (void)state;
    static const char *const heads[] = {
        "",       "topk:",       "topk:0.",           "topk:0.1+",    "qsgd:4,",
        "sign:",  "topk/",       "qsgd:4,round=",     "qsgd,levels=", "none;",
        "none;<", "sign,scope=", "sign,scope=block:", "none;a=sign,"};
    static const char tails[] = "0a:+,=./;<*";
    char spec[4096];
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        for (size_t j = 0; j < sizeof tails - 1; j++) {
            size_t len = strlen(heads[i]);
            memcpy(spec, heads[i], len);
            memset(spec + len, tails[j], sizeof spec - len - 1);
            spec[sizeof spec - 1] = '\0';
            char text[COMPRESS_SPEC_MAX];
            char error[COMPRESS_ERROR_MAX];
            if (compress_canonical(spec, text, error) != -EINVAL)
                fail_msg("%.60s... is accepted", spec);
            assert_true(strlen(error) > 0);
            assert_true(strlen(error) < COMPRESS_ERROR_MAX);
        }
    /* The rules are valid, but their canonical text is too long. */
    spec[0] = '\0';
    for (size_t i = 0; i < 7; i++) {
        size_t len = strlen(spec);
        memset(spec + len, 'a' + (char)i, 40);
        strcpy(spec + len + 40, "=none;");
    }
    strcat(spec, "none");
    check_refused(spec, "with all its defaults, the compressor has more than 255 bytes");
}

/* Writes a random stage: a codec with random values for all its parameters. Returns the length of
 * the text. */
static size_t random_stage(struct rng *r, const struct codec *c, char *text, char *options)
{
    const struct codec_param *p = c->params;
    /* A positional value can be left out only if all later ones are left out, too. */
    bool told = true;
    size_t len = (size_t)sprintf(text, "%s", c->name);
    for (; p != NULL && p->name != NULL; p++) {
        char value[40];
        int64_t step = p->step > 0 ? p->step : 1;
        uint64_t room = (uint64_t)((p->high - p->low) / step) + 1;
        size_t words = 0;
        switch (p->kind) {
        case CODEC_CHOICE:
            while (p->choices[words] != NULL)
                words++;
            snprintf(value, sizeof value, "%s", p->choices[rng_below(r, words)]);
            break;
        case CODEC_INTEGER:
            snprintf(value, sizeof value, "%lld",
                     (long long)(p->low + (p->low % step + step) % step
                                 + step * (int64_t)rng_below(r, room)));
            break;
        case CODEC_DECIMAL: {
            int64_t at = p->low + (int64_t)rng_below(r, room);
            snprintf(value, sizeof value, "%lld.%09lld", (long long)(at / 1000000000),
                     (long long)(at % 1000000000));
            break;
        }
        }
        told &= rng_below(r, 4) != 0;
        if (p->option && rng_below(r, 2) == 0)
            sprintf(options + strlen(options), ",%s=%s", p->name, value);
        else if (!p->option && told)
            len += (size_t)sprintf(text + len, ":%s", value);
    }
    return len;
}

static void random_rule(struct rng *r, char *text, bool other)
{
    static const char *const matches[] = {"bias=", "conv=", "<100=", "a*.w?="};
    static const char *const scopes[] = {"", ",scope=layer", ",scope=block:7", ",scope=model"};
    static const char *const hows[] = {"", "/ef", "/rice", "/bitmap", "/auto"};
    char options[1024] = "";
    size_t n = 0;
    while (codec_all[n] != NULL)
        n++;
    const struct codec *c = codec_all[rng_below(r, n)];
    size_t len = (size_t)sprintf(text, "%s", other ? matches[rng_below(r, 4)] : "");
    len += random_stage(r, c, text + len, options);
    if (c->selector != NULL) {
        if (c->selector->places == NULL)
            len += (size_t)sprintf(text + len, "%s", hows[rng_below(r, 5)]);
        const struct codec *coder = codec_all[rng_below(r, n)];
        text[len] = '\0';
        if (coder->values != NULL) {
            text[len++] = '+';
            random_stage(r, coder, text + len, options);
        }
    }
    strcat(text, options);
    strcat(text, scopes[rng_below(r, 4)]);
}

/* The canonical text of an accepted spec is accepted and unchanged. Most random texts are
 * accepted. */
static void test_fixed_points(void **state)
{
    (void)state;
    static struct tested list[SPECS_MAX];
    size_t n_specs = specs_all(list);
    char text[COMPRESS_SPEC_MAX], again[COMPRESS_SPEC_MAX];
    char error[COMPRESS_ERROR_MAX];
    for (size_t i = 0; i < n_specs; i++)
        check_fixed(list[i].spec, text);
    struct rng r = rng_stream(rng_key(5, RNG_TEST, 0, 0));
    size_t accepted = 0;
    const size_t tries = 4000;
    for (size_t i = 0; i < tries; i++) {
        char spec[4096] = "";
        random_rule(&r, spec, false);
        for (size_t more = rng_below(&r, 3); more > 0; more--) {
            strcat(spec, ";");
            random_rule(&r, spec + strlen(spec), true);
        }
        if (compress_canonical(spec, text, error) != 0)
            continue;
        accepted++;
        check_fixed(text, again);
        if (strcmp(text, again) != 0)
            fail_msg("%s: %s became %s", spec, text, again);
    }
    if (accepted < tries / 3)
        fail_msg("only %zu of %zu are accepted", accepted, tries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_canonical),  cmocka_unit_test(test_errors),
        cmocka_unit_test(test_unknown),    cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_long_texts), cmocka_unit_test(test_fixed_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
