/* tests/unit/nn_spelling.c -- suggestions for misspelt names: distances, the nearest of several
 * names, and the question "did you mean". */
#include "nn/math/spelling.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void distances_count_mistakes(void **state)
{
    (void)state;
    assert_int_equal(spelling_distance("", ""), 0);
    assert_int_equal(spelling_distance("abc", ""), 3);
    assert_int_equal(spelling_distance("local", "lcoal"), 1);
    assert_int_equal(spelling_distance("kitten", "sitting"), 3);
    assert_int_equal(spelling_distance("peers", "peer"), 1);
    assert_true(spelling_enough("topolgy", "topology"));
    assert_true(spelling_enough("loacl", "local"));
    assert_true(spelling_enough("pear", "peer"));
    assert_int_equal(spelling_distance("SGD", "sgd"), 0);
    assert_int_equal(spelling_distance("RIgn", "ring"), 1);
    assert_false(spelling_enough("foo", "sim"));
    assert_false(spelling_enough("x", "eval"));
}

static void the_nearest_is_found_in_any_order(void **state)
{
    (void)state;
    static const char *const names[] = {"star", "ring", "torus", "complete"};
    for (size_t first = 0; first < 4; first++) {
        struct spelling near = {.found = "rign"};
        assert_null(spelling_meant(&near));
        for (size_t i = 0; i < 4; i++)
            spelling_try(&near, names[(first + i) % 4]);
        assert_string_equal(spelling_meant(&near), "ring");
    }
}

/* A misspelt word may have more mistakes relative to a long name than to a short one. A name with
 * too many mistakes for its own length is not suggested, even if a longer name with more mistakes
 * is. */
static void what_is_near_enough_comes_first(void **state)
{
    (void)state;
    struct spelling near = {.found = "abcdefgh"};
    spelling_try(&near, "abcde"); /* 3 mistakes are too many for a name of 5 letters. */
    assert_null(spelling_meant(&near));
    spelling_try(&near, "abcdefghijkl"); /* 4 mistakes are allowed for a name of 12 letters. */
    assert_string_equal(spelling_meant(&near), "abcdefghijkl");
    spelling_try(&near, "abcde");
    assert_string_equal(spelling_meant(&near), "abcdefghijkl");
}

static void nothing_near_is_said_to_be_nothing(void **state)
{
    (void)state;
    char text[32];
    struct spelling near = {.found = "zzzz"};
    spelling_try(&near, "ring");
    assert_string_equal(near.best, "ring");
    assert_null(spelling_meant(&near));
    assert_string_equal(spelling_question(&near, text, sizeof text), "");
    near = (struct spelling){.found = "Ring"};
    spelling_try(&near, "ring");
    assert_string_equal(spelling_question(&near, text, sizeof text), ", did you mean ring?");
}

static void choices_are_tried_one_by_one(void **state)
{
    (void)state;
    char room[SPELLING_CHOICES_MAX];
    struct spelling near = {.found = "asinc"};
    spelling_try_choices(&near, "sync|async|ssp:N", room);
    assert_string_equal(spelling_meant(&near), "async");
    near = (struct spelling){.found = "spp:2"};
    spelling_try_choices(&near, "sync|async|ssp:N", room);
    assert_string_equal(spelling_meant(&near), "ssp:N");
}

static const char *spec_name(size_t i)
{
    static const char *const names[] = {"ring", "torus", "topk", "fp16", "resnet"};
    return i < 5 ? names[i] : NULL;
}

/* In this test, "ring" and "fp16" take no value, and all other names need one. */
static bool spec_valid(const char *spec)
{
    bool value = strchr(spec, ':') != NULL;
    return strncmp(spec, "ring", 4) == 0 || strncmp(spec, "fp16", 4) == 0 ? !value : value;
}

static void specs_are_mended(void **state)
{
    (void)state;
    static const struct
    {
        const char *found, *said;
    } cases[] = {
        {"rign", ", did you mean ring?"},
        {"Ring", ", did you mean ring?"},
        {"tpok:0.1", ", did you mean topk:0.1?"},
        {"topk0.1", ", did you mean topk:0.1?"},
        {"resnet-20", ", did you mean resnet:20?"},
        {"restnet20", ", did you mean resnet:20?"},
        {"torus3x3", ", did you mean torus:3x3?"},
        {"fp61", ", did you mean fp16?"},
        /* The name "ring" takes no value, so the suggestion is the name alone. */
        {"ring5", ", did you mean ring?"},
        {"resnet:", ""}, /* The name "resnet" is right, so there is no suggestion. */
        {"grid", ""},
        {"", ""},
        {"0.1", ""},
    };
    const struct spelling_specs specs = {spec_name, spec_valid};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[SPELLING_QUESTION_MAX];
        assert_string_equal(spelling_spec(&specs, cases[i].found, text), cases[i].said);
    }
    char text[SPELLING_QUESTION_MAX], longer[200] = "topkk:";
    memset(longer + 6, '1', sizeof longer - 7);
    longer[sizeof longer - 1] = '\0';
    assert_string_equal(spelling_spec(&specs, longer, text), ", did you mean topk?");
    memset(longer, 'r', sizeof longer - 1);
    assert_string_equal(spelling_spec(&specs, longer, text), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances_count_mistakes),
        cmocka_unit_test(the_nearest_is_found_in_any_order),
        cmocka_unit_test(what_is_near_enough_comes_first),
        cmocka_unit_test(nothing_near_is_said_to_be_nothing),
        cmocka_unit_test(choices_are_tried_one_by_one),
        cmocka_unit_test(specs_are_mended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
