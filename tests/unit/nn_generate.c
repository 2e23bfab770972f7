/* tests/unit/nn_generate.c -- draws from logits, the window of a text, and bytes made printable. */
#include "nn/models/generate.h"
#include "nn/models/printable.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void logits_of(float l[GENERATE_CLASSES])
{
    for (int i = 0; i < GENERATE_CLASSES; i++)
        l[i] = -50;
    l['a'] = 1;
    l['b'] = 3;
    l['c'] = 2;
}

static void the_likeliest_without_temperature(void **state)
{
    (void)state;
    float l[GENERATE_CLASSES];
    logits_of(l);
    assert_int_equal(generate_pick(l, 0, 0, 0.999), 'b');
    assert_int_equal(generate_pick(l, 7, 1, 0.999), 'b');
    l['a'] = 3;
    assert_int_equal(generate_pick(l, 0, 0, 0.5), 'a'); /* The lower of equals. */
}

/* The frequencies of many draws with evenly spaced random numbers are those of the softmax. */
static void draws_have_the_softmax_of_the_temperature(void **state)
{
    (void)state;
    enum { DRAWS = 20000 };
    float l[GENERATE_CLASSES];
    logits_of(l);
    for (double t = 0.5; t <= 2; t *= 2) {
        int count[GENERATE_CLASSES] = {0};
        for (int i = 0; i < DRAWS; i++)
            count[generate_pick(l, t, 0, (i + 0.5) / DRAWS)]++;
        double sum = exp(1 / t) + exp(3 / t) + exp(2 / t);
        for (int c = 'a'; c <= 'c'; c++)
            assert_true(fabs(count[c] / (double)DRAWS - exp((double)l[c] / t) / sum) < 1e-3);
    }
}

static void top_k_leaves_out_the_rest(void **state)
{
    (void)state;
    float l[GENERATE_CLASSES];
    logits_of(l);
    bool seen[GENERATE_CLASSES] = {false};
    for (int i = 0; i < 1000; i++)
        seen[generate_pick(l, 100, 2, i / 1000.0)] = true;
    for (int c = 0; c < GENERATE_CLASSES; c++)
        assert_int_equal(seen[c], c == 'b' || c == 'c');
    assert_in_range(generate_pick(l, 1, 0, nextafter(1, 0)), 0, 255);
}

static void what_is_not_finite_is_refused(void **state)
{
    (void)state;
    float l[GENERATE_CLASSES];
    logits_of(l);
    l[200] = NAN;
    assert_int_equal(generate_pick(l, 0, 1, 0), -EDOM);
    l[200] = INFINITY;
    assert_int_equal(generate_pick(l, 1, 0, 0), -EDOM);
}

/* The same text gives the same bytes if it is fed at once, byte by byte, or after a text that
 * has left the window. */
static void the_window_is_the_last_of_the_text(void **state)
{
    (void)state;
    char error[MODEL_ERROR_MAX];
    struct model m;
    const struct data_shape shape = {
        .form = DATA_TEXT, .channels = 1, .height = 8, .width = 1, .n_classes = 256};
    assert_int_equal(model_init(&m, "lstm:8", MODEL_BATCH_NORM, &shape, error), 0);
    float *x = calloc(m.n_params, sizeof *x);
    model_params(&m, 3, x);
    static const char text[] = "forgotten, the last"; /* The window has " the last"'s 8. */
    struct generate_config config = {.m = &m, .x = x, .temperature = 1, .seed = 5};
    int byte[3][12];
    for (int way = 0; way < 3; way++) {
        struct generate g;
        assert_int_equal(generate_init(&g, &config), 0);
        size_t n = sizeof text - 1, from = way == 2 ? n - 8 : 0, piece = way == 1 ? 1 : n - from;
        for (size_t i = from; i < n; i += piece)
            generate_feed(&g, (const uint8_t *)text + i, piece);
        assert_int_equal(g.n, 8);
        assert_memory_equal(g.window, text + n - 8, 8);
        for (int i = 0; i < 12; i++)
            byte[way][i] = generate_next(&g);
        for (int i = 0; i < 8; i++)
            assert_int_equal(g.window[i], byte[way][4 + i]);
        generate_close(&g);
    }
    assert_memory_equal(byte[0], byte[1], sizeof byte[0]);
    assert_memory_equal(byte[0], byte[2], sizeof byte[0]);
    free(x);
    model_close(&m);
}

static void bytes_are_made_printable(void **state)
{
    (void)state;
#define NO "\xef\xbf\xbd"
    static const struct
    {
        const char *in, *out;
    } cases[] = {
        {"plain\ttext\n", "plain\ttext\n"},
        {"a\x1b[2Jb\r\x7f", "a" NO "[2Jb" NO NO},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\xff\xc0\x80", NO NO NO},
        {"\xc3(", NO "("},
        {"\xe2\x82", NO},
        {"\xe2\x82\xc3\xa9", NO "\xc3\xa9"},
        {"\xc2\x9b", NO NO},               /* A control: CSI. */
        {"\xe0\x80\x80", NO NO NO},        /* Overlong. */
        {"\xed\xa0\x80", NO NO NO},        /* A surrogate. */
        {"\xf4\x90\x80\x80", NO NO NO NO}, /* Over U+10FFFF. */
        {"\xf0\x9f\x98", NO},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct printable p = {.n = 0};
        char out[64];
        size_t n = 0;
        for (const char *c = cases[i].in; *c != '\0'; c++)
            n += printable_put(&p, (uint8_t)*c, out + n);
        n += printable_end(&p, out + n);
        out[n] = '\0';
        assert_string_equal(out, cases[i].out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_likeliest_without_temperature),
        cmocka_unit_test(draws_have_the_softmax_of_the_temperature),
        cmocka_unit_test(top_k_leaves_out_the_rest),
        cmocka_unit_test(what_is_not_finite_is_refused),
        cmocka_unit_test(the_window_is_the_last_of_the_text),
        cmocka_unit_test(bytes_are_made_printable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
