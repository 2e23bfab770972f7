/* tests/unit/nn_half.c -- conversions of 16-bit floats are compared with independent arithmetic,
 * and models are stored in 16-bit floats. */
#include "nn/math/half.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Returns the value of a float16 by the definition of IEEE 754: sign, exponent and fraction. */
static double half_value(uint16_t h)
{
    int exponent = h >> 10 & 31, fraction = h & 1023;
    double sign = h & 0x8000 ? -1 : 1;
    if (exponent == 31)
        return fraction ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

static void test_halves_are_read_as_ieee_has_them(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        double want = half_value((uint16_t)h), got = (double)half_of_float16((uint16_t)h);
        if (!(got == want || (isnan(got) && isnan(want))))
            fail_msg("%04x is %g, expected %g", h, got, want);
        uint16_t back = half_to_float16((float)want);
        if (back != h && !(isnan(want) && (back & 0x7fff) > 0x7c00))
            fail_msg("%04x comes back as %04x", h, back);
    }
}

/* Returns whether a value between two neighbouring 16-bit floats is rounded up. The value lies at
 * the fraction `share` of the way from `low` to `high`. h: bits of `low`. */
static bool goes_up(double low, double high, double share, uint16_t h, uint16_t (*to)(float v))
{
    float v = (float)(low + share * (high - low));
    uint16_t got = to(v);
    assert_int_equal(to(-v), got | 0x8000);
    assert_true(got == h || got == h + 1);
    return got == h + 1;
}

/* A value between two neighbouring 16-bit floats is rounded up if it is at least 0.51 of the way
 * from the lower to the higher one. The threshold is not 0.5, because the mean of two such floats
 * is often exactly at 0.5. */
static void test_halves_are_rounded_at_51_hundredths(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7bff; h++) {
        double low = half_value((uint16_t)h), high = half_value((uint16_t)(h + 1));
        bool subnormal = h < 0x400;
        assert_false(goes_up(low, high, subnormal ? 0.499 : 0.508, (uint16_t)h, half_to_float16));
        assert_true(goes_up(low, high, 0.512, (uint16_t)h, half_to_float16));
    }
    assert_int_equal(half_to_float16(65521), 0x7c00);
    assert_int_equal(half_to_float16(65520), 0x7bff);
    assert_int_equal(half_to_float16(1e30f), 0x7c00);
}

static void test_bfloats_are_rounded_at_51_hundredths(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7f7f; h++) {
        double low = (double)half_of_bfloat16((uint16_t)h);
        double high = (double)half_of_bfloat16((uint16_t)(h + 1));
        assert_int_equal(half_to_bfloat16((float)low), h);
        assert_false(goes_up(low, high, 0.508, (uint16_t)h, half_to_bfloat16));
        assert_true(goes_up(low, high, 0.512, (uint16_t)h, half_to_bfloat16));
    }
    assert_true(isnan(half_of_bfloat16(half_to_bfloat16((float)NAN))));
    assert_true(isinf(half_of_bfloat16(half_to_bfloat16(3.4e38f))));
}

/* Each segment of a model is rounded to its own number type, such as float16. half_dist2() is the
 * squared distance of two models after this rounding. */
static void test_a_model_is_rounded_segment_by_segment(void **state)
{
    (void)state;
    const struct segment s[] = {{.offset = 0, .n = 2, .type = SEGMENT_BFLOAT16},
                                {.offset = 2, .n = 1, .type = SEGMENT_FLOAT32},
                                {.offset = 3, .n = 2, .type = SEGMENT_FLOAT16}};
    const float x[] = {1.0078125f + 0x1p-12f, 3, 1 + 0x1p-20f, 1 + 0x1p-12f, 0.1f};
    const float y[] = {1, 3, 1, 1 + 0x1p-10f, 0.1f + 0x1p-20f};
    float out[5];
    half_round_model(s, 3, x, out);
    assert_true(out[0] == 1.0078125f && out[1] == 3);
    assert_true(out[2] == x[2]);
    assert_true(out[3] == 1 && out[4] == half_of_float16(half_to_float16(0.1f)));
    double want = 0x1p-14 + 0x1p-40 + 0x1p-20;
    assert_true(fabs(half_dist2(s, 3, x, y) - want) < 1e-15);
    assert_true(half_any(s, 3) && half_any(s, 1) && !half_any(s + 1, 1) && !half_any(s, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halves_are_read_as_ieee_has_them),
        cmocka_unit_test(test_halves_are_rounded_at_51_hundredths),
        cmocka_unit_test(test_bfloats_are_rounded_at_51_hundredths),
        cmocka_unit_test(test_a_model_is_rounded_segment_by_segment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
