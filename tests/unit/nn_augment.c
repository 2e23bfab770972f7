/* tests/unit/nn_augment.c -- augmentation by crops and flips gives the same images as a plain
 * version that works pixel by pixel. */
#include "nn/data/augment.h"

#include "nn/math/rng.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { N = 3, SIZE_MOST = 4 * 33 * 33, DRAWS = 300 };

static uint8_t pixels[N * SIZE_MOST];
static uint16_t labels[N];

/* Returns N images of c x h x w random bytes. The normalised values of different channels do not
 * overlap. */
static struct dataset set_of(uint32_t c, uint32_t h, uint32_t w)
{
    struct dataset d = {.kind = "cifar10",
                        .n = N,
                        .labels = labels,
                        .pixels = pixels,
                        .n_files = 1,
                        .shape = {DATA_IMAGES, c, h, w, 10}};
    for (size_t i = 0; i < N * SIZE_MOST; i++)
        pixels[i] = (uint8_t)rng_at(3, i);
    for (uint32_t k = 0; k < DATA_CHANNELS_MAX; k++)
        for (int p = 0; p < 256; p++)
            d.value[k][p] = (float)p / 255 - 2 * (float)(k + 1);
    return d;
}

/* Returns pixel (y, x) of channel c of image i. Pixels outside of the image are black. */
static float pixel_at(const struct dataset *d, size_t i, size_t c, int y, int x)
{
    int h = (int)d->shape.height, w = (int)d->shape.width;
    uint8_t byte = 0;
    if (y >= 0 && y < h && x >= 0 && x < w)
        byte = d->pixels[((i * d->shape.channels + c) * (size_t)h + (size_t)y) * (size_t)w
                         + (size_t)x];
    return d->value[c][byte];
}

static bool is_view(const struct dataset *d, size_t i, const float *out, int down, int right,
                    bool flip)
{
    int h = (int)d->shape.height, w = (int)d->shape.width;
    size_t channels = d->shape.channels;
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++)
            for (size_t c = 0; c < channels; c++) {
                int from = (flip ? w - 1 - x : x) + right;
                size_t at = ((size_t)y * (size_t)w + (size_t)x) * channels + c;
                if (out[at] != pixel_at(d, i, c, y + down, from))
                    return false;
            }
    return true;
}

/* Each augmented image is one of 9 x 9 shifts, flipped or not. All of them occur about equally
 * often, and nothing after the image's memory is changed. */
static void check_views(const struct augment *a, uint32_t c, uint32_t h, uint32_t w)
{
    struct dataset d = set_of(c, h, w);
    static float out[SIZE_MOST + 1], again[SIZE_MOST + 1];
    size_t dim = (size_t)c * h * w, flips = 0, rows[9] = {0}, columns[9] = {0};
    size_t places = 0;
    bool seen[81] = {false};
    for (uint64_t key = 0; key < DRAWS; key++) {
        size_t i = key % N;
        memset(out, 255, sizeof out);
        memset(again, 255, sizeof again);
        uint64_t k = rng_key(1, RNG_AUGMENT, 2, key);
        augment_sample(a, &d, i, k, out);
        augment_sample(a, &d, i, k, again);
        assert_memory_equal(out, again, sizeof out);
        assert_true(out[dim] != out[dim]); /* The float after the image is still NaN. */
        size_t found = 0;
        for (int v = 0; v < 162 && !found; v++) {
            int down = v / 18 - 4, right = v / 2 % 9 - 4;
            bool flip = v % 2;
            if ((!a->crop && (down || right)) || (!a->flip && flip))
                continue;
            found = is_view(&d, i, out, down, right, flip);
            flips += found && flip;
            rows[v / 18] += found;
            columns[v / 2 % 9] += found;
            places += found && !seen[v / 2];
            seen[v / 2] |= found;
        }
        assert_true(found);
    }
    /* Different large shifts of a small image look alike, so their frequencies are not checked. */
    if (w < 12)
        return;
    assert_true(a->flip ? flips > DRAWS * 2 / 5 && flips < DRAWS * 3 / 5 : flips == 0);
    assert_true(a->crop ? places > 70 : places == 1);
    for (size_t k = 0; k < 9 && a->crop; k++)
        assert_true(rows[k] > DRAWS / 25 && columns[k] > DRAWS / 25 && rows[k] < DRAWS / 4
                    && columns[k] < DRAWS / 4);
}

static void test_views(void **state)
{
    (void)state;
    static const struct augment all[3] = {{true, false}, {false, true}, {true, true}};
    static const uint32_t shapes[][3] = {{1, 28, 28}, {3, 32, 32}, {4, 33, 13}, {2, 1, 1},
                                         {1, 3, 5},   {3, 17, 4},  {1, 31, 16}};
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
            check_views(&all[i], shapes[k][0], shapes[k][1], shapes[k][2]);
}

/* Without augmentation, samples do not change. Table rows never change. */
static void test_untouched(void **state)
{
    (void)state;
    struct dataset d = set_of(3, 32, 32);
    static float out[3072], plain[3072];
    dataset_sample(&d, 1, plain);
    augment_sample(&(struct augment){false, false}, &d, 1, 7, out);
    assert_memory_equal(out, plain, sizeof out);
    assert_true(is_view(&d, 1, plain, 0, 0, false));
    float rows[6] = {1, 2, 3, 4, 5, 6}, row[3];
    struct dataset table = {.kind = "csv/3x2/0",
                            .n = 2,
                            .labels = labels,
                            .rows = rows,
                            .shape = {DATA_ROWS, 3, 1, 1, 2}};
    augment_sample(&(struct augment){true, true}, &table, 1, 7, row);
    assert_memory_equal(row, rows + 3, sizeof row);
}

static void test_specs(void **state)
{
    (void)state;
    static const char *const good[][2] = {{"none", "none"},
                                          {"crop", "crop"},
                                          {"flip", "flip"},
                                          {"crop+flip", "crop+flip"},
                                          {"flip+crop", "crop+flip"}};
    struct augment a;
    char error[DATA_ERROR_MAX], spec[AUGMENT_SPEC_MAX];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(augment_parse(&a, good[i][0], error), 0);
        assert_true(a.crop == (strstr(good[i][0], "crop") != NULL));
        assert_true(a.flip == (strstr(good[i][0], "flip") != NULL));
        augment_print(&a, spec);
        assert_string_equal(spec, good[i][1]);
    }
    static const char *const bad[] = {"",     "crop,flip", "crop+", "crop+crop",
                                      "None", "flip ",     "rotate"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        error[0] = '\0';
        assert_int_equal(augment_parse(&a, bad[i], error), -EINVAL);
        assert_non_null(strstr(error, "expected none, crop, flip or crop+flip"));
        assert_non_null(strstr(error, bad[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_untouched),
        cmocka_unit_test(test_specs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
