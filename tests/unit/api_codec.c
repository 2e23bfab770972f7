/* tests/unit/api_codec.c -- codecs of libhearsay: they give the same results as the codecs of
 * compress/, and wrong calls and hostile messages only cause an error code. */
#include "peer/api/hearsay.h"
#include "tests/unit/compress_mutate.h"
#include "tests/unit/compress_specs.h"
#include "tests/unit/compress_vectors.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { LAYERS = 3, N = 30 * 20 + 20 + 7, MESSAGES = 3, MUTATIONS = 300 };

static const struct hearsay_layer layers[LAYERS] = {
    {"conv1.weight", 30, 20}, {"conv1.bias", 1, 20}, {NULL, 7, 1}};
static const struct segment segments[LAYERS] = {
    {.name = "conv1.weight", .n = 600, .rows = 30, .cols = 20},
    {.name = "conv1.bias", .offset = 600, .n = 20, .rows = 1, .cols = 20},
    {.offset = 620, .n = 7, .rows = 7, .cols = 1}};

static struct tested list[SPECS_MAX];
static size_t n_specs;
static float x[N], replica[N], theirs[N];
static char error[HEARSAY_CODEC_ERROR_MAX];

static struct hearsay_codec *open_codec(const char *spec)
{
    struct hearsay_codec *c;
    if (hearsay_codec_open(&c, spec, layers, LAYERS, error) != HEARSAY_OK)
        fail_msg("%s: %s", spec, error);
    assert_int_equal(hearsay_codec_floats(c), N);
    return c;
}

static void same_bits(const char *spec, const float *a, const float *b)
{
    if (memcmp(a, b, N * sizeof *a) != 0)
        fail_msg("%s: two replicas differ", spec);
}

/* A second codec with the same spec and seed must give the same bytes. compress_apply() must add
 * the same values to a replica. The codec reports which fraction of the squared distance between
 * model and replica remains, and this must be right. */
static void one_codec(const char *spec, bool contracts)
{
    struct hearsay_codec *c = open_codec(spec), *d = open_codec(spec);
    struct compress *ours;
    size_t bound = hearsay_codec_bound(c), n, m;
    uint8_t *message = malloc(bound), *again = malloc(bound);
    assert_int_equal(compress_open(&ours, spec, segments, LAYERS), 0);
    memset(replica, 0, sizeof replica);
    memset(theirs, 0, sizeof theirs);
    for (uint64_t round = 0; round < MESSAGES; round++) {
        double left;
        vector_fill(x, N, VECTOR_GAUSS, round);
        double before = vec_dist2(x, replica, N);
        assert_int_equal(hearsay_codec_encode(c, x, replica, 7, round, message, bound, &n, &left),
                         HEARSAY_OK);
        assert_int_equal(hearsay_codec_encode(d, x, theirs, 7, round, again, bound, &m, NULL),
                         HEARSAY_OK);
        if (n != m || memcmp(message, again, n) != 0)
            fail_msg("%s: the same inputs give other bytes", spec);
        assert_true(n <= bound);
        assert_int_equal(hearsay_codec_check(d, message, n), 1);
        assert_int_equal(hearsay_codec_add(d, message, n, replica), HEARSAY_OK);
        compress_apply(ours, message, n, theirs);
        same_bits(spec, replica, theirs);
        double found = vec_dist2(x, replica, N) / before;
        if (!(fabs(left - found) <= 1e-4 * (found + 1e-3)) || (contracts && !(left <= 1.0)))
            fail_msg("%s: %g is said to be left, and %g is", spec, left, found);
    }
    compress_close(ours);
    hearsay_codec_close(c);
    hearsay_codec_close(d);
    free(message);
    free(again);
}

static void every_codec(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_specs; i++)
        one_codec(list[i].spec, list[i].class == CODEC_CONTRACTION);
    one_codec("topk:0.1;bias=fp16;conv1.*=qsgd:4;<8=none", true);
}

/* The catalogue lists all codecs of compress/. Each preset opens and is its own canonical text. */
static void catalogue(void **state)
{
    const char *preset, *about;
    size_t n = 0;
    (void)state;
    for (; hearsay_codec_at(n, &preset, &about) == HEARSAY_OK; n++) {
        struct compress_info info;
        assert_true(compress_catalogue(n, &info));
        assert_string_equal(preset, info.preset);
        assert_string_equal(about, info.about);
        struct hearsay_codec *c = open_codec(preset);
        assert_string_equal(hearsay_codec_spec(c), info.preset);
        hearsay_codec_close(c);
    }
    assert_null(codec_all[n]);
    assert_true(n > 20);
    assert_int_equal(hearsay_codec_at(SIZE_MAX - 1, &preset, &about), HEARSAY_USAGE);
    assert_int_equal(hearsay_codec_at(SIZE_MAX, NULL, NULL), HEARSAY_USAGE);
    assert_int_equal(hearsay_codec_at(0, NULL, NULL), HEARSAY_OK);
}

/* The random choices of a codec depend on the seed and on the round only. */
static void seeds_and_rounds(void **state)
{
    struct hearsay_codec *c = open_codec("randk:0.1");
    uint8_t message[3][64 * N];
    size_t n[3];
    (void)state;
    vector_fill(x, N, VECTOR_GAUSS, 1);
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(hearsay_codec_encode(c, x, NULL, i == 1, i == 2, message[i],
                                              sizeof message[i], &n[i], NULL),
                         HEARSAY_OK);
    assert_true(n[0] != n[1] || memcmp(message[0], message[1], n[0]) != 0);
    assert_true(n[0] != n[2] || memcmp(message[0], message[2], n[0]) != 0);
    assert_true(n[1] != n[2] || memcmp(message[1], message[2], n[1]) != 0);
    hearsay_codec_close(c);
}

/* A NULL replica counts as zeros, and the reported remaining distance is 0 if the model equals
 * the replica. */
static void without_a_replica(void **state)
{
    struct hearsay_codec *c = open_codec("none");
    uint8_t message[8 * N];
    double left = -1.0;
    size_t n;
    (void)state;
    vector_fill(x, N, VECTOR_GAUSS, 1);
    memset(replica, 0, sizeof replica);
    assert_int_equal(hearsay_codec_encode(c, x, NULL, 0, 0, message, sizeof message, &n, &left),
                     HEARSAY_OK);
    assert_true(left == 0.0);
    assert_int_equal(hearsay_codec_add(c, message, n, replica), HEARSAY_OK);
    same_bits("none", x, replica);
    left = -1.0;
    assert_int_equal(hearsay_codec_encode(c, x, x, 0, 0, message, sizeof message, &n, &left),
                     HEARSAY_OK);
    assert_true(left == 0.0);
    assert_int_equal(n, 1);
    hearsay_codec_close(c);
}

/* Gives a message to hearsay_codec_add(), which must accept it if and only if
 * hearsay_codec_check() does. A refused message must not change the replica. Returns whether the
 * message was accepted. */
static bool offer(const struct hearsay_codec *c, const uint8_t *bytes, size_t n)
{
    /* Fills the replica with finite floats that no codec produces. */
    memset(replica, 0x55, sizeof replica);
    memcpy(theirs, replica, sizeof replica);
    int proper = hearsay_codec_check(c, bytes, n);
    int code = hearsay_codec_add(c, bytes, n, replica);
    assert_int_equal(code, proper == 1 ? HEARSAY_OK : HEARSAY_USAGE);
    if (code != HEARSAY_OK)
        same_bits("a bad message", replica, theirs);
    return proper == 1;
}

static void hostile_messages(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_specs; i++) {
        struct hearsay_codec *c = open_codec(list[i].spec);
        size_t bound = hearsay_codec_bound(c), n, room = bound + 16;
        uint8_t *message = malloc(room), *bad = malloc(room);
        struct rng r = rng_stream(rng_key(i, RNG_TEST, N, 0));
        vector_fill(x, N, VECTOR_GAUSS, i);
        assert_int_equal(hearsay_codec_encode(c, x, NULL, 0, i, message, bound, &n, NULL),
                         HEARSAY_OK);
        for (size_t cut = 0; cut < n; cut++)
            if (offer(c, message, cut))
                fail_msg("%s: %zu of %zu bytes pass", list[i].spec, cut, n);
        message[n] = 0;
        assert_false(offer(c, message, n + 1));
        for (size_t k = 0; k < MUTATIONS; k++) {
            memcpy(bad, message, n);
            offer(c, bad, mutate(&r, bad, n, room));
        }
        free(message);
        free(bad);
        hearsay_codec_close(c);
    }
}

/* hearsay_codec_open() must refuse `spec` and `layer` with `code` and an error message that
 * contains `words`. */
static void refuses(int code, const char *words, const char *spec,
                    const struct hearsay_layer *layer, size_t n)
{
    /* Any pointer but NULL, because hearsay_codec_open() must set it to NULL. */
    struct hearsay_codec *c = (void *)error;
    error[0] = '\0';
    assert_int_equal(hearsay_codec_open(&c, spec, layer, n, error), code);
    assert_null(c);
    if (strstr(error, words) == NULL)
        fail_msg("expected a sentence with '%s', found '%s'", words, error);
    assert_int_equal(hearsay_codec_open(&c, spec, layer, n, NULL), code);
}

static void bad_openings(void **state)
{
    char canonical[COMPRESS_SPEC_MAX], sentence[COMPRESS_ERROR_MAX], name[SEGMENT_NAME_MAX + 1];
    static char endless[100000];
    struct hearsay_layer layer[2] = {{"a", 1, 1}, {"b", 0, 3}};
    (void)state;
    assert_int_equal(hearsay_codec_open(NULL, "none", layers, LAYERS, error), HEARSAY_USAGE);
    assert_non_null(strstr(error, "c is NULL"));
    refuses(HEARSAY_USAGE, "no spec", NULL, layers, LAYERS);
    static const char *const specs[] = {"topk:2", "tpok:0.01", "", "auto", "topk:0.01;x"};
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        assert_int_not_equal(compress_canonical(specs[i], canonical, sentence), 0);
        refuses(HEARSAY_USAGE, sentence, specs[i], layers, LAYERS);
    }
    memset(endless, 'q', sizeof endless - 1);
    refuses(HEARSAY_USAGE, "unknown compressor", endless, layers, LAYERS);
    refuses(HEARSAY_USAGE, "no layer", "none", NULL, 1);
    refuses(HEARSAY_USAGE, "no layer", "none", layers, 0);
    refuses(HEARSAY_USAGE, "layer 1 is 0 x 3", "none", layer, 2);
    layer[1] = (struct hearsay_layer){"b", 3, 0};
    refuses(HEARSAY_USAGE, "layer 1 is 3 x 0", "none", layer, 2);
    memset(name, 'n', sizeof name - 1);
    name[SEGMENT_NAME_MAX] = '\0';
    layer[0].name = name;
    refuses(HEARSAY_USAGE, "layer 0: its name is longer", "none", layer, 1);
    refuses(HEARSAY_USAGE, "fewer than 2^32", "none", layers, SIZE_MAX);
}

/* Layer sizes whose product or sum is too large are refused, also if the product overflows to a
 * small number. */
static void sizes_that_overflow(void **state)
{
    static const struct hearsay_layer large[] = {{"a", UINT64_C(1) << 32, UINT64_C(1) << 32},
                                                 {"a", UINT64_MAX, UINT64_MAX},
                                                 {"a", UINT64_MAX, 1},
                                                 {"a", 1, UINT64_MAX},
                                                 {"a", UINT64_C(1) << 16, UINT64_C(1) << 16},
                                                 {"a", (UINT64_C(1) << 63) + 1, 2},
                                                 {"a", 1, UINT64_C(1) << 32}};
    (void)state;
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++)
        refuses(HEARSAY_USAGE, "longer than 4294967295 floats", "none", &large[i], 1);
    const struct hearsay_layer two[2] = {{"a", 1, UINT32_MAX}, {"b", 1, 1}};
    refuses(HEARSAY_USAGE, "layer 1 is 1 x 1", "none", two, 2);
}

static void bad_calls(void **state)
{
    struct hearsay_codec *c = open_codec("topk:0.1+qsgd:4");
    size_t bound = hearsay_codec_bound(c), n = 77;
    uint8_t *out = malloc(bound);
    double left = 77.0;
    (void)state;
    vector_fill(x, N, VECTOR_GAUSS, 1);
    assert_int_equal(hearsay_codec_encode(NULL, x, NULL, 0, 0, out, bound, &n, &left),
                     HEARSAY_USAGE);
    assert_int_equal(hearsay_codec_encode(c, NULL, NULL, 0, 0, out, bound, &n, &left),
                     HEARSAY_USAGE);
    assert_int_equal(hearsay_codec_encode(c, x, NULL, 0, 0, NULL, bound, &n, &left), HEARSAY_USAGE);
    assert_int_equal(hearsay_codec_encode(c, x, NULL, 0, 0, out, bound, NULL, &left),
                     HEARSAY_USAGE);
    assert_int_equal(hearsay_codec_encode(c, x, NULL, 0, 0, out, bound - 1, &n, &left),
                     HEARSAY_USAGE);
    for (size_t i = 0; i < N; i += 89) {
        float was = x[i];
        x[i] = i % 2 == 0 ? (float)NAN : (float)-INFINITY;
        assert_int_equal(hearsay_codec_encode(c, x, NULL, 0, 0, out, bound, &n, &left),
                         HEARSAY_NOT_FINITE);
        x[i] = was;
    }
    assert_int_equal(n, 77);
    assert_true(left == 77.0);
    assert_int_equal(hearsay_codec_encode(c, x, NULL, 0, 0, out, bound, &n, &left), HEARSAY_OK);
    assert_int_equal(hearsay_codec_check(NULL, out, n), 0);
    assert_int_equal(hearsay_codec_check(c, NULL, n), 0);
    assert_int_equal(hearsay_codec_check(c, out, SIZE_MAX), 0);
    assert_int_equal(hearsay_codec_add(NULL, out, n, replica), HEARSAY_USAGE);
    assert_int_equal(hearsay_codec_add(c, NULL, n, replica), HEARSAY_USAGE);
    assert_int_equal(hearsay_codec_add(c, out, n, NULL), HEARSAY_USAGE);
    assert_string_equal(hearsay_codec_spec(NULL), "");
    assert_int_equal(hearsay_codec_floats(NULL), 0);
    assert_int_equal(hearsay_codec_bound(NULL), 0);
    hearsay_codec_close(NULL);
    hearsay_codec_close(c);
    free(out);
}

/* randk reports a value that is not finite, even in a coordinate that it does not send. */
static void not_finite_where_nothing_is_sent(void **state)
{
    struct hearsay_codec *c = open_codec("randk:0.01");
    uint8_t out[8 * N];
    size_t n;
    (void)state;
    vector_fill(x, N, VECTOR_GAUSS, 1);
    for (size_t i = 0; i < N; i++) {
        float was = x[i];
        x[i] = (float)NAN;
        assert_int_equal(hearsay_codec_encode(c, x, NULL, 0, 0, out, sizeof out, &n, NULL),
                         HEARSAY_NOT_FINITE);
        x[i] = was;
    }
    hearsay_codec_close(c);
}

static void versions(void **state)
{
    (void)state;
    assert_int_equal(hearsay_api(), HEARSAY_API);
    assert_string_equal(hearsay_version(), HEARSAY_VERSION);
}

int main(void)
{
    n_specs = specs_all(list);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_codec),
        cmocka_unit_test(catalogue),
        cmocka_unit_test(seeds_and_rounds),
        cmocka_unit_test(without_a_replica),
        cmocka_unit_test(hostile_messages),
        cmocka_unit_test(bad_openings),
        cmocka_unit_test(sizes_that_overflow),
        cmocka_unit_test(bad_calls),
        cmocka_unit_test(not_finite_where_nothing_is_sent),
        cmocka_unit_test(versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
