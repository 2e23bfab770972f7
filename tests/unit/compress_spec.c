/* The grammar of compressors: canonical texts and error sentences. */
#include "compress/compress.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_canonical(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"none", "none"},
        {"fp16", "fp16"},
        {"sign", "sign:512"},
        {"sign:0", "sign:0"},
        {"sign:0064", "sign:64"},
        {"qsgd:4", "qsgd:4:512:max,round=near,scale=ls,levels=7"},
        {"qsgd", "qsgd:4:512:max,round=near,scale=ls,levels=7"},
        {"qsgd,levels=7", "qsgd:4:512:max,round=near,scale=ls,levels=7"},
        {"qsgd:8:0:l2,scale=raw,round=sr",
         "qsgd:8:0:l2,round=sr,scale=raw,levels=127"},
        {"qsgd:6:0:l2,round=sr,scale=inv1w,levels=16",
         "qsgd:6:0:l2,round=sr,scale=inv1w,levels=16"},
        {"qsgd,levels=16", "qsgd:6:512:max,round=near,scale=ls,levels=16"},
        {"topk:0.01", "topk:0.01"},
        {"topk:0.010", "topk:0.01"},
        {"topk:00.01+none", "topk:0.01"},
        {"topk:1.0", "topk:1"},
        {"topk:0.000000001", "topk:0.000000001"},
        {"topk:0.01+qsgd:4",
         "topk:0.01+qsgd:4:512:max,round=near,scale=ls,levels=7"},
        {"topk:0.01+sign", "topk:0.01+sign:512"},
        {"topk:0.05+fp16", "topk:0.05+fp16"},
        {"randk:0.1+qsgd:4,round=sr",
         "randk:0.1+qsgd:4:512:max,round=sr,scale=ls,levels=7"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char text[COMPRESS_SPEC_MAX] = "";
        char again[COMPRESS_SPEC_MAX] = "";
        char error[COMPRESS_ERROR_MAX] = "";
        if (compress_canonical(pairs[i][0], text, error) != 0)
            fail_msg("%s: refused: %s", pairs[i][0], error);
        assert_string_equal(text, pairs[i][1]);
        assert_int_equal(compress_canonical(text, again, error), 0);
        assert_string_equal(again, text);
    }
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
        {"topk:0.0000000001",
         "topk:0.0000000001: keep must be in (0, 1], found 0.0000000001"},
        {"topk:", "topk:: keep must be in (0, 1], found "},
        {"topk", "topk: keep is missing, it must be in (0, 1]"},
        {"topk:0.1:2", "topk:0.1:2: topk takes 1 values at most"},
        {"", "the compressor is empty"},
        {"gzip", "gzip: unknown compressor, expected one of none, fp16, sign, "
                 "qsgd, topk, randk"},
        {"none ", "none : unknown compressor, expected one of none, fp16, "
                  "sign, qsgd, topk, randk"},
        {"sign:7", "sign:7: block must be 0 (all) or a multiple of 8 up to "
                   "1048576, found 7"},
        {"qsgd:1", "qsgd:1: bits must be an integer from 2 to 16, found 1"},
        {"qsgd:4:512:l1", "qsgd:4:512:l1: norm must be max or l2, found l1"},
        {"qsgd:4,round=up", "round=up: round must be near or sr, found up"},
        {"qsgd:4,round=sr,round=sr", "round=sr: round is given twice"},
        {"qsgd:4,", ": an option must be name=value"},
        {"qsgd:4,fast", "fast: an option must be name=value"},
        {"topk:0.1,round=sr", "round=sr: none has no option round"},
        {"qsgd:4,bits=4", "bits=4: qsgd has no option bits"},
        {"qsgd:4,levels=16", "qsgd:4,levels=16: levels=16 takes 6 bits with "
                             "the sign, found 4"},
        {"sign+topk:0.1",
         "sign+topk:0.1: nothing may follow sign, found +topk:0.1"},
        {"topk:0.1+randk:0.1", "topk:0.1+randk:0.1: only values may follow "
                               "topk, found randk:0.1"},
        {"topk:0.1+", ": unknown compressor, expected one of none, fp16, "
                      "sign, qsgd, topk, randk"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char text[COMPRESS_SPEC_MAX] = "untouched";
        char error[COMPRESS_ERROR_MAX] = "";
        if (compress_canonical(pairs[i][0], text, error) != -EINVAL)
            fail_msg("%s: accepted as %s", pairs[i][0], text);
        assert_string_equal(error, pairs[i][1]);
        assert_string_equal(text, "untouched");
        struct segment all = {.n = 10, .rows = 1, .cols = 10};
        struct compress *c;
        assert_int_equal(compress_open(&c, pairs[i][0], COMPRESS_MODEL, &all, 1),
                         -EINVAL);
        assert_null(c);
    }
}

/* A long text is cut in the sentence, never beyond its buffer. */
static void test_long_texts(void **state)
{
    (void)state;
    static const char *const heads[] = {"", "topk:", "topk:0.", "topk:0.1+",
                                        "qsgd:4,", "qsgd:4,round=",
                                        "qsgd,levels=", "sign:"};
    static const char tails[] = "0a:+,=.";
    char spec[4096];
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        for (size_t j = 0; j < sizeof tails - 1; j++) {
            size_t len = strlen(heads[i]);
            memcpy(spec, heads[i], len);
            memset(spec + len, tails[j], sizeof spec - len - 1);
            spec[sizeof spec - 1] = '\0';
            char text[COMPRESS_SPEC_MAX];
            char error[COMPRESS_ERROR_MAX];
            assert_int_equal(compress_canonical(spec, text, error), -EINVAL);
            assert_true(strlen(error) > 0);
            assert_true(strlen(error) < COMPRESS_ERROR_MAX);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_canonical),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_long_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
