/* tests/unit/nn_state.c -- saved state of a component: everything that was written is read back,
 * or reading fails with a message. */
#include "nn/math/state.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct part
{
    uint32_t small;
    uint64_t large;
    int64_t time;
    bool on;
    double real;
    float floats[3], tensor[5];
};

static void part_state(struct part *p, struct state *s)
{
    state_section(s, "part.%d", 1);
    state_u32(s, &p->small);
    state_u64(s, &p->large);
    state_i64(s, &p->time);
    state_bool(s, &p->on);
    state_f64(s, &p->real);
    state_f32s(s, p->floats, 3);
    state_floats(s, p->tensor, 5, "part.%d.tensor", 1);
}

static const struct part kept = {.small = 7,
                                 .large = 1ULL << 63,
                                 .time = -5,
                                 .on = true,
                                 .real = -INFINITY,
                                 .floats = {1, 2, -0.0F},
                                 .tensor = {1, 2, 3, 4, 5}};

static void write_part(struct state *s)
{
    struct part p = kept;

    state_write(s);
    part_state(&p, s);
    assert_int_equal(state_end(s), 0);
}

static void test_what_is_read_is_what_was_written(void **unused)
{
    struct state w = {0}, r;
    struct part p = {0};

    (void)unused;
    for (int again = 0; again < 2; again++) {
        write_part(&w);
        assert_int_equal(w.n_sections, 2);
        assert_int_equal(w.n % 8, 0);
        state_read(&r, w.bytes, w.n, w.section, w.n_sections);
        part_state(&p, &r);
        assert_int_equal(state_end(&r), 0);
        assert_int_equal(p.small, kept.small);
        assert_int_equal(p.large, kept.large);
        assert_int_equal(p.time, kept.time);
        assert_true(p.on && p.real == kept.real);
        assert_memory_equal(p.floats, kept.floats, sizeof(p.floats));
        assert_memory_equal(p.tensor, kept.tensor, sizeof(p.tensor));
    }
    state_close(&w);
}

/* Reading the state back must fail with an error message that contains `words`. */
static void refused(struct state *w, const char *words)
{
    struct state r;
    struct part p = {0};

    state_read(&r, w->bytes, w->n, w->section, w->n_sections);
    part_state(&p, &r);
    assert_int_equal(state_end(&r), -EINVAL);
    assert_non_null(strstr(r.why, words));
}

static void test_what_does_not_fit_is_refused(void **unused)
{
    static const uint8_t nan_bits[4] = {0, 0, 0xc0, 0x7f};
    struct state w = {0};

    (void)unused;
    write_part(&w);
    w.section[0].n--;
    refused(&w, "part.1: found 44 bytes, expected more");
    w.section[0].n += 2;
    refused(&w, "part.1: found 46 bytes, expected 45");
    write_part(&w);
    w.section[1].at = w.n;
    refused(&w, "part.1.tensor: the section ends after the last byte of the state");
    write_part(&w);
    w.section[1].floats = false;
    refused(&w, "part.1.tensor: found U8, expected F32");
    write_part(&w);
    w.section[1].name[0] = 'q';
    refused(&w, "part.1.tensor: the section is missing");
    write_part(&w);
    w.bytes[4] = 1;
    refused(&w, "part.1: a number above 2^32 - 1");
    write_part(&w);
    w.bytes[24] = 2;
    refused(&w, "part.1: a byte that is neither true (1) nor false (0)");
    write_part(&w);
    memcpy(w.bytes + w.section[1].at + 8, nan_bits, 4);
    refused(&w, "part.1.tensor: number 2 is not finite");
    state_close(&w);
}

static void test_a_section_that_may_be_there(void **unused)
{
    struct state w = {0}, r;

    (void)unused;
    write_part(&w);
    assert_true(state_has(&w, "anything"));
    state_read(&r, w.bytes, w.n, w.section, w.n_sections);
    assert_true(state_has(&r, "part.%d", 1));
    assert_false(state_has(&r, "part.%d", 2));
    state_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_read_is_what_was_written),
        cmocka_unit_test(test_what_does_not_fit_is_refused),
        cmocka_unit_test(test_a_section_that_may_be_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
