/* tests/unit/nn_glyphs.c -- the built-in data set "glyphs": the same bytes on every machine, ten
 * classes of about equal size, neither too easy nor too hard. */
#include "nn/data/glyphs.h"

#include "nn/data/data.h"
#include "nn/math/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

enum { PIXELS = GLYPHS_SIDE * GLYPHS_SIDE, N = 4000, N_TEST = 1000, EPOCHS = 4 };

static struct dataset set, test;

/* Hashes of the first 1000 images and labels. They change only with the drawing code, which
 * changes the data of all clusters. The figures in nn/data/glyphs.h must then be measured again. */
static void test_golden(void **state)
{
    (void)state;
    uint64_t pixels = rng_hash(set.pixels, (size_t)1000 * PIXELS);
    uint8_t classes[1000];
    for (size_t i = 0; i < 1000; i++)
        classes[i] = (uint8_t)set.labels[i];
    uint64_t labels = rng_hash(classes, 1000);
    print_message("pixels 0x%016llx labels 0x%016llx\n", (unsigned long long)pixels,
                  (unsigned long long)labels);
    assert_true(pixels == 0x51844f20f998dc76u);
    assert_true(labels == 0xe08fe77bb9e5e845u);
}

static void test_addressed(void **state)
{
    (void)state;
    uint8_t pixels[PIXELS];
    for (size_t i = 0; i < N_TEST; i += 97) {
        uint8_t class = glyphs_image(1, N + i, pixels);
        assert_int_equal(class, test.labels[i]);
        assert_memory_equal(pixels, test.pixels + i * PIXELS, PIXELS);
    }
    glyphs_image(2, 0, pixels);
    assert_memory_not_equal(pixels, set.pixels, PIXELS);
}

static void test_classes(void **state)
{
    (void)state;
    size_t count[GLYPHS_CLASSES] = {0};
    for (size_t i = 0; i < N; i++)
        count[set.labels[i]]++;
    for (size_t c = 0; c < GLYPHS_CLASSES; c++)
        assert_true(count[c] > N / 10 * 8 / 10 && count[c] < N / 10 * 12 / 10);
}

/* The images have the mean and standard deviation that the data kind defines. */
static void test_normalised(void **state)
{
    (void)state;
    double sum = 0, squares = 0;
    float x[PIXELS];
    for (size_t i = 0; i < N; i++) {
        dataset_sample(&set, i, x);
        for (size_t j = 0; j < PIXELS; j++) {
            sum += (double)x[j];
            squares += (double)x[j] * (double)x[j];
        }
    }
    double mean = sum / (N * (double)PIXELS);
    assert_true(fabs(mean) <= 0.02);
    assert_true(fabs(squares / (N * (double)PIXELS) - mean * mean - 1) <= 0.03);
}

/* data_open() gives training and test sets of the default sizes. The test images are the ones that
 * follow the training images. */
static void test_open(void **state)
{
    (void)state;
    struct data d;
    char error[DATA_ERROR_MAX];
    assert_int_equal(data_open(&d, &(struct data_request){.spec = "glyphs", .seed = 1}, error), 0);
    assert_int_equal(d.train.n, GLYPHS_TRAIN);
    assert_int_equal(d.test.n, GLYPHS_TEST);
    assert_memory_equal(d.train.pixels, set.pixels, (size_t)N * PIXELS);
    uint8_t pixels[PIXELS];
    glyphs_image(1, GLYPHS_TRAIN, pixels);
    assert_memory_equal(d.test.pixels, pixels, PIXELS);
    data_close(&d);
}

/* Weights of a linear model, one row for each class. The last weight of a row is the bias. */
static float w[GLYPHS_CLASSES][PIXELS + 1];

static void scores(const float *x, double out[GLYPHS_CLASSES])
{
    for (int c = 0; c < GLYPHS_CLASSES; c++) {
        float lane[8] = {0};
        for (int j = 0; j < PIXELS; j++)
            lane[j % 8] += w[c][j] * x[j];
        out[c] = (double)w[c][PIXELS];
        for (int k = 0; k < 8; k++)
            out[c] += (double)lane[k];
    }
}

static int best_of(const double *v)
{
    int best = 0;
    for (int c = 1; c < GLYPHS_CLASSES; c++)
        best = v[c] > v[best] ? c : best;
    return best;
}

/* Makes one step of softmax regression on one sample. */
static void learn(const float *x, uint16_t label, double rate)
{
    double p[GLYPHS_CLASSES], total = 0;
    scores(x, p);
    double top = p[best_of(p)];
    for (int c = 0; c < GLYPHS_CLASSES; c++)
        total += p[c] = exp(p[c] - top);
    for (int c = 0; c < GLYPHS_CLASSES; c++) {
        float g = (float)(rate * (p[c] / total - (c == label)));
        for (int j = 0; j < PIXELS; j++)
            w[c][j] -= g * x[j];
        w[c][PIXELS] -= g;
    }
}

/* A linear model cannot find strokes. Its accuracy must be under 92 %, but well above chance. */
static void test_difficulty(void **state)
{
    (void)state;
    float x[PIXELS];
    for (int e = 0; e < EPOCHS; e++)
        for (size_t i = 0; i < N; i++) {
            dataset_sample(&set, i, x);
            learn(x, set.labels[i], 0.002 / (1 + e));
        }
    size_t right = 0;
    for (size_t i = 0; i < N_TEST; i++) {
        double p[GLYPHS_CLASSES];
        dataset_sample(&test, i, x);
        scores(x, p);
        right += best_of(p) == test.labels[i];
    }
    print_message("linear model: %zu of %d right\n", right, N_TEST);
    assert_true(right < N_TEST * 92 / 100);
    assert_true(right > N_TEST * 55 / 100);
}

static int setup(void **state)
{
    (void)state;
    return glyphs_draw(&set, N, 1, 0) < 0 || glyphs_draw(&test, N_TEST, 1, N) < 0;
}

static int teardown(void **state)
{
    (void)state;
    dataset_close(&set);
    dataset_close(&test);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),  cmocka_unit_test(test_addressed),
        cmocka_unit_test(test_classes), cmocka_unit_test(test_normalised),
        cmocka_unit_test(test_open),    cmocka_unit_test(test_difficulty),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
