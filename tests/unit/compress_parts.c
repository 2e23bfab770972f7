/* tests/unit/compress_parts.c -- tests the encoding of a message in fragments: joined, the
 * fragments must equal the message that is encoded at once.
 *
 * The fragments are encoded from the last to the first. Every codec is tested in every scope.
 * The values of x become known from the end to the start, and values that are not known yet must
 * not be read. */
#include "nn/math/rng.h"
#include "tests/unit/compress_specs.h"
#include "tests/unit/compress_vectors.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { SEGMENTS = 5, N = 900, MESSAGES = 3 };

static const size_t segment_n[SEGMENTS] = {30 * 10, 10, 400, 0, 190};
static struct segment segments[SEGMENTS];
static float x[N], hidden[N], x_hat[N];
static uint8_t whole[64 * N], parts[64 * N], piece[64 * N];

static void fill_segments(void)
{
    static const char *const name[SEGMENTS] = {"conv1.weight", "conv1.bias", "fc.weight", "none",
                                               "fc.bias"};
    for (size_t i = 0, at = 0; i < SEGMENTS; at += segment_n[i++]) {
        segments[i] = (struct segment){.offset = at,
                                       .n = segment_n[i],
                                       .rows = i == 0 ? 30 : 1,
                                       .cols = i == 0 ? 10 : segment_n[i],
                                       .trained = true};
        snprintf(segments[i].name, sizeof segments[i].name, "%s", name[i]);
    }
}

/* Copies the values of x from index `from` on to hidden[]. The values before this index are not
 * known yet, so they are NaN in hidden[]. */
static void show(size_t from)
{
    for (size_t k = 0; k < N; k++)
        hidden[k] = k >= from ? x[k] : (float)NAN;
}

/* Encodes into parts[], fragment by fragment, as more of x becomes known. */
static int encode_parts(struct compress *c, uint64_t draw, size_t *len, struct compress_stat *stat)
{
    struct compress_input in = {.draw = draw, .round = 5, .x = hidden, .x_hat = x_hat};
    struct rng r = rng_stream(rng_key(draw, RNG_TEST, N, 1));
    size_t n = 0, from = N, n_piece;
    compress_begin(c);
    while (from > 0 && rng_below(&r, 4) > 0) {
        from = (size_t)rng_below(&r, from);
        show(from);
        int err = compress_part(c, &in, from, piece, &n_piece);
        if (err != 0)
            return err;
        n += n_piece;
        memcpy(parts + sizeof parts - n, piece, n_piece);
    }
    show(0);
    int err = compress_rest(c, &in, piece, &n_piece, stat);
    if (err != 0)
        return err;
    n += n_piece;
    memcpy(parts + sizeof parts - n, piece, n_piece);
    memmove(parts, parts + sizeof parts - n, n);
    *len = n;
    return 0;
}

static void same(const char *spec, bool layers)
{
    struct compress *a, *b;
    size_t n, m = 0;
    struct compress_stat s, t;
    int (*open)(struct compress **, const char *, const struct segment *, size_t) =
        layers ? compress_open_layers : compress_open;
    assert_int_equal(open(&a, spec, segments, SEGMENTS), 0);
    assert_int_equal(open(&b, spec, segments, SEGMENTS), 0);
    assert_true(compress_bound(a) <= sizeof whole);
    /* Encodes several messages, because some codecs remember the last one. */
    for (uint64_t draw = 0; draw < MESSAGES; draw++) {
        vector_fill(x, N, VECTOR_GAUSS, draw);
        struct compress_input in = {.draw = draw, .round = 5, .x = x, .x_hat = x_hat};
        assert_int_equal(compress_encode(a, &in, whole, &n, &s), 0);
        if (encode_parts(b, draw, &m, &t) != 0)
            fail_msg("%s: cannot be encoded in parts", spec);
        if (n != m || memcmp(whole, parts, n) != 0)
            fail_msg("%s: message %d is another one in parts", spec, (int)draw);
        if (s.x2 != t.x2 || s.e2 != t.e2)
            fail_msg("%s: message %d has other figures in parts", spec, (int)draw);
    }
    compress_close(a);
    compress_close(b);
}

static void parts_are_the_message(void **state)
{
    static struct tested list[SPECS_MAX];
    size_t n = specs_all(list);
    (void)state;
    fill_segments();
    for (size_t i = 0; i < n; i++) {
        same(list[i].spec, false);
        same(list[i].spec, true);
    }
    /* In this test, the units (tensors that one codec compresses together) are not in the order of
     * the vector. */
    same("qsgd:4;bias=fp16", true);
    same("topk:0.1;conv1.*=int8;<20=none", false);
}

/* With one unit per tensor, most of the message can be encoded before the values of the first layer
 * are known. */
static void layers_go_ahead(void **state)
{
    struct compress *c;
    size_t n_part, n_rest;
    struct compress_stat s;
    (void)state;
    fill_segments();
    vector_fill(x, N, VECTOR_GAUSS, 1);
    struct compress_input in = {.draw = 1, .x = x, .x_hat = x_hat};
    for (int layers = 0; layers < 2; layers++) {
        assert_int_equal(
            (layers ? compress_open_layers : compress_open)(&c, "none", segments, SEGMENTS), 0);
        compress_begin(c);
        assert_int_equal(compress_part(c, &in, segment_n[0], piece, &n_part), 0);
        assert_int_equal(compress_rest(c, &in, piece, &n_rest, &s), 0);
        assert_int_equal(n_part, layers ? 4 + 4 * (N - segment_n[0]) : 0);
        assert_int_equal(n_part + n_rest, compress_bound(c));
        compress_close(c);
    }
}

/* Values that are not finite are refused in the fragment that contains them, and the next message
 * is not affected. */
static void the_next_one_begins_anew(void **state)
{
    struct compress *a, *b;
    size_t n, m;
    struct compress_stat s, t;
    (void)state;
    fill_segments();
    vector_fill(x, N, VECTOR_GAUSS, 1);
    assert_int_equal(compress_open_layers(&a, "qsgd:4", segments, SEGMENTS), 0);
    assert_int_equal(compress_open_layers(&b, "qsgd:4", segments, SEGMENTS), 0);
    struct compress_input in = {.draw = 1, .round = 5, .x = x, .x_hat = x_hat};
    float was = x[N - 1];
    compress_begin(b);
    x[N - 1] = INFINITY;
    assert_int_equal(compress_part(b, &in, N - 190, piece, &m), -ERANGE);
    x[N - 1] = was;
    assert_int_equal(compress_encode(a, &in, whole, &n, &s), 0);
    assert_int_equal(compress_encode(b, &in, parts, &m, &t), 0);
    assert_int_equal(n, m);
    assert_memory_equal(whole, parts, n);
    compress_begin(b);
    /* The test encodes only some fragments of this message. */
    assert_int_equal(compress_part(b, &in, 310, piece, &m), 0);
    assert_int_equal(compress_encode(b, &in, parts, &m, &t), 0);
    assert_int_equal(n, m);
    assert_memory_equal(whole, parts, n);
    compress_close(a);
    compress_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_are_the_message),
                                       cmocka_unit_test(layers_go_ahead),
                                       cmocka_unit_test(the_next_one_begins_anew)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
