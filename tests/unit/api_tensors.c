/* tests/unit/api_tensors.c -- the caller's tensors as one vector: their order, whether they are
 * copied, and that corrections below the precision of 16-bit floats are not lost. */
#include "peer/api/tensors.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void add(struct tensors *t, const char *name, void *data, enum hearsay_type type,
                enum hearsay_role role, uint32_t n)
{
    char error[TENSORS_ERROR_MAX];
    struct tensor one = {.data = data, .type = type, .role = role, .n_dims = 1, .dims = {n}};
    snprintf(one.name, sizeof one.name, "%s", name);
    if (tensors_add(t, &one, error) != 0)
        fail_msg("%s", error);
}

/* ---- Tensors as one vector ------------------------------------------------------------------- */

static void test_trained_ones_come_first_and_in_place_where_they_lie_so(void **state)
{
    char error[TENSORS_ERROR_MAX];
    float x[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    struct tensors t = {0};
    (void)state;
    add(&t, "mean", x + 7, HEARSAY_FLOAT32, HEARSAY_STATISTIC, 2);
    add(&t, "a", x, HEARSAY_FLOAT32, HEARSAY_TRAINED, 3);
    add(&t, "var", x + 9, HEARSAY_FLOAT32, HEARSAY_VARIANCE, 1);
    add(&t, "b", x + 3, HEARSAY_FLOAT32, HEARSAY_TRAINED, 4);
    assert_int_equal(tensors_lay(&t, error), 0);
    assert_int_equal(t.dim, 7);
    assert_int_equal(t.n_floats, 10);
    const char *const order[] = {"a", "b", "mean", "var"};
    for (int i = 0; i < 4; i++)
        assert_string_equal(t.segment[i].name, order[i]);
    assert_true(t.segment[1].trained && !t.segment[2].trained);
    assert_true(t.segment[3].nonnegative && !t.segment[2].nonnegative);
    assert_ptr_equal(t.flat, x);
    tensors_gather(&t, t.flat);
    tensors_scatter(&t, t.flat);
    assert_int_equal(t.bytes_copied, 0);
    uint64_t layout = tensors_layout(&t);
    tensors_close(&t);

    float wide[12] = {0}; /* In memory, a gap of one float lies before the last tensor. */
    add(&t, "a", wide, HEARSAY_FLOAT32, HEARSAY_TRAINED, 3);
    add(&t, "b", wide + 3, HEARSAY_FLOAT32, HEARSAY_TRAINED, 4);
    add(&t, "mean", wide + 7, HEARSAY_FLOAT32, HEARSAY_STATISTIC, 2);
    add(&t, "var", wide + 10, HEARSAY_FLOAT32, HEARSAY_VARIANCE, 1);
    assert_int_equal(tensors_lay(&t, error), 0);
    /* The tensors are not contiguous in memory, so there is no flat vector. */
    assert_null(t.flat);
    assert_true(tensors_layout(&t) == layout);
    tensors_close(&t);

    add(&t, "a", x, HEARSAY_FLOAT32, HEARSAY_TRAINED, 4);
    add(&t, "b", x + 4, HEARSAY_FLOAT32, HEARSAY_TRAINED, 3);
    add(&t, "mean", x + 7, HEARSAY_FLOAT32, HEARSAY_STATISTIC, 2);
    add(&t, "var", x + 9, HEARSAY_FLOAT32, HEARSAY_VARIANCE, 1);
    assert_int_equal(tensors_lay(&t, error), 0);
    assert_true(tensors_layout(&t) != layout);
    tensors_close(&t);

    add(&t, "mean", x, HEARSAY_FLOAT32, HEARSAY_STATISTIC, 2);
    assert_int_equal(tensors_lay(&t, error), -EINVAL);
    tensors_close(&t);
}

/* A tensor with the name "__metadata__" must be refused: a model file stores its metadata under
 * that name, so the tensor could not be read back. */
static void test_name_of_the_metadata_is_refused(void **state)
{
    char error[TENSORS_ERROR_MAX];
    float x = 0;
    struct tensors t = {0};
    struct tensor one = {
        .name = "__metadata__", .data = &x, .type = HEARSAY_FLOAT32, .n_dims = 1, .dims = {1}};
    (void)state;
    assert_int_equal(tensors_add(&t, &one, error), -EINVAL);
    assert_non_null(strstr(error, "tensor __metadata__"));
    assert_int_equal(t.n, 0);
    tensors_close(&t);
}

/* Overlap of tensors in memory is measured in bytes: a tensor of eight 16-bit floats ends where the
 * next tensor begins, and a tensor of nine is refused. */
static void test_no_two_share_memory(void **state)
{
    (void)state;
    float x[12] = {0};
    char error[TENSORS_ERROR_MAX];
    for (int over = 0; over < 2; over++) {
        struct tensors t = {0};
        add(&t, "late", x + 4, HEARSAY_FLOAT32, HEARSAY_TRAINED, 4);
        add(&t, "half", x, HEARSAY_FLOAT16, HEARSAY_TRAINED, (uint32_t)(8 + over));
        add(&t, "last", x + 8, HEARSAY_FLOAT32, HEARSAY_STATISTIC, 4);
        assert_int_equal(tensors_lay(&t, error), over ? -EINVAL : 0);
        if (over)
            assert_non_null(strstr(error, "tensors half and late: found shared memory"));
        tensors_close(&t);
    }
}

/* A tensor of 16-bit floats receives 1000 corrections, each a tenth of the unit in the last place.
 * None is lost: together they change the tensor by 100 such units. */
static void small_corrections(enum hearsay_type type, uint16_t one, double digit)
{
    char error[TENSORS_ERROR_MAX];
    uint16_t h[2] = {one, one};
    float x[2];
    struct tensors t = {0};
    add(&t, "a", h, type, HEARSAY_TRAINED, 2);
    assert_int_equal(tensors_lay(&t, error), 0);
    tensors_read(&t, x);
    assert_float_equal(x[0], 1, 0);
    for (int i = 0; i < 1000; i++) {
        x[0] += (float)(digit / 10);
        tensors_scatter(&t, x);
        if (i == 499)
            /* A local step of the caller adds three units in the last place. */
            h[1] = (uint16_t)(h[1] + 3);
        tensors_gather(&t, x);
    }
    assert_true(fabs((double)x[0] - (1 + 100 * digit)) <= digit);
    assert_true((double)x[1] == 1 + 3 * digit);
    assert_int_equal(t.bytes_copied, 1000 * 2 * sizeof h);
    tensors_close(&t);
}

static void test_what_is_below_the_last_digit_is_kept(void **state)
{
    (void)state;
    small_corrections(HEARSAY_FLOAT16, 0x3c00, 0x1p-10);
    small_corrections(HEARSAY_BFLOAT16, 0x3f80, 0x1p-7);
}

static void test_what_is_not_finite_is_found_by_its_tensor(void **state)
{
    static const uint16_t bad16[] = {0x7c00, 0xfc01, 0x7e00}, badb[] = {0x7f80, 0xff81};
    uint16_t h[3] = {0x7bff, 0, 0x8001}, b[2] = {0x7f7f, 0x8000};
    float x[2] = {1, -0.0f};
    struct tensors t = {0};
    (void)state;
    add(&t, "x", x, HEARSAY_FLOAT32, HEARSAY_TRAINED, 2);
    add(&t, "h", h, HEARSAY_FLOAT16, HEARSAY_TRAINED, 3);
    add(&t, "b", b, HEARSAY_BFLOAT16, HEARSAY_TRAINED, 2);
    assert_null(tensors_first_not_finite(&t));
    for (size_t i = 0; i < 3; i++) {
        h[i] = bad16[i];
        assert_string_equal(tensors_first_not_finite(&t)->name, "h");
        h[i] = 0;
    }
    for (size_t i = 0; i < 2; i++) {
        b[i] = badb[i];
        assert_string_equal(tensors_first_not_finite(&t)->name, "b");
        b[i] = 0;
    }
    x[1] = -(float)INFINITY;
    assert_string_equal(tensors_first_not_finite(&t)->name, "x");
    tensors_close(&t);
}

/* ---- Order of the tensors of a model ---- */

static void test_a_models_order_is_found_by_names(void **state)
{
    char error[TENSORS_ERROR_MAX];
    float x[6];
    struct tensors t = {0};
    const struct segment s[] = {
        {.name = "w", .offset = 0, .n = 4, .n_dims = 1, .dims = {4}, .trained = true},
        {.name = "running_var",
         .offset = 4,
         .n = 2,
         .n_dims = 1,
         .dims = {2},
         .nonnegative = true}};
    (void)state;
    add(&t, "running_var", x + 4, HEARSAY_FLOAT32, HEARSAY_STATISTIC, 2);
    add(&t, "w", x, HEARSAY_FLOAT32, HEARSAY_TRAINED, 4);
    assert_int_equal(tensors_lay_as(&t, s, 2, error), 0);
    assert_ptr_equal(t.flat, x);
    assert_true(t.segment[1].nonnegative);
    /* A caller with one tensor more than the model is refused. */
    assert_int_equal(tensors_lay_as(&t, s, 1, error), -EINVAL);
    struct segment other[2] = {s[0], s[1]};
    other[0].dims[0] = 2;
    other[0].dims[1] = 2;
    other[0].n_dims = 2;
    /* This tensor has another shape in the caller's list than in the model. */
    assert_int_equal(tensors_lay_as(&t, other, 2, error), -EINVAL);
    assert_non_null(strstr(error, "found the shape 4, expected the model's 2x2"));
    snprintf(other[0].name, sizeof other[0].name, "v");
    /* This tensor has another name in the caller's list than in the model. */
    assert_int_equal(tensors_lay_as(&t, other, 2, error), -EINVAL);
    assert_non_null(strstr(error, "found no tensor v"));
    tensors_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trained_ones_come_first_and_in_place_where_they_lie_so),
        cmocka_unit_test(test_name_of_the_metadata_is_refused),
        cmocka_unit_test(test_no_two_share_memory),
        cmocka_unit_test(test_what_is_below_the_last_digit_is_kept),
        cmocka_unit_test(test_what_is_not_finite_is_found_by_its_tensor),
        cmocka_unit_test(test_a_models_order_is_found_by_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
