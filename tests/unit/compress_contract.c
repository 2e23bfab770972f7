/* tests/unit/compress_contract.c -- tests the rules that all compressors keep: sizes of messages,
 * kinds of vectors, equal replicas, and errors. */
#include "tests/unit/compress_specs.h"
#include "tests/unit/compress_vectors.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { N_MAX = 8193, N_LARGE = 1000003, DRAWS = 200 };

static const size_t sizes[] = {0,  1,   2,   3,   5,   7,   8,   15,   16,   17,   31,   32,
                               33, 255, 256, 257, 511, 512, 513, 4095, 4096, 4097, 8191, 8193};

static float vectors[VECTOR_KINDS][N_MAX];
static float large[N_LARGE], x[N_MAX], x_hat[N_MAX];

/* Codec, length and kind of data of the current check, for failure messages. */
static const char *at_spec;
static size_t at_n;
static int at_kind;
static bool at_matrices;

/* The checks continue after a failure, to show all codecs that fail. Only the first failure of each
 * codec and message is printed. */
static size_t failures;
static const char *last_spec, *last_what;

static void complain(const char *what, double found, double expected)
{
    failures++;
    if (at_spec == last_spec && what == last_what)
        return;
    last_spec = at_spec;
    last_what = what;
    print_error("%s: n=%zu vector=%d: %s (%.9g, expected %.9g)\n", at_spec, at_n, at_kind, what,
                found, expected);
}

static void check(bool ok, const char *what)
{
    if (!ok)
        complain(what, 0, 0);
}

static void end_of_test(void)
{
    size_t found = failures;
    failures = 0;
    assert_int_equal(found, 0);
}

/* Compares the squared length that a codec reports with the exact one. */
static bool agrees(double measured, double exact, double x2)
{
    return fabs(measured - exact) <= 1e-5 * exact + 1e-12 * x2;
}

static void fill_all(size_t n)
{
    for (int kind = 0; kind < VECTOR_KINDS; kind++)
        vector_fill(vectors[kind], n, (enum vector_kind)kind, 1);
}

/* Truncated messages and messages with a further byte must be refused. */
static void check_lengths(struct bench_rig *r)
{
    size_t len = r->len;
    size_t step = len <= 600 ? 1 : len / 300;
    uint8_t *copy = malloc(len + 1);
    assert_non_null(copy);
    memcpy(copy, r->bytes, len);
    copy[len] = 0;
    check(!compress_validate(r->c, copy, len + 1), "a trailing byte passes");
    copy[len] = 1;
    check(!compress_validate(r->c, copy, len + 1), "a trailing byte passes");
    check(memcmp(copy, r->bytes, len) == 0, "validate wrote to the message");
    free(copy);
    for (size_t cut = 0; cut < len; cut += cut < 40 ? 1 : step)
        check(!compress_validate(r->c, r->bytes, cut), "a truncation passes");
    for (size_t cut = len < 40 ? 0 : len - 40; cut < len; cut++)
        check(!compress_validate(r->c, r->bytes, cut), "a truncation passes");
}

/* A codec that is not asked for the error must give the same bytes as one that is. If the message
 * would not change the replica x_hat, it may give an empty message instead. x_hat is r->out, which
 * is set to zero here. */
static void check_unmeasured(struct bench_rig *r, const float *v)
{
    size_t len;
    uint8_t *other = malloc(compress_bound(r->c));
    assert_non_null(other);
    bool silent = true;
    for (size_t i = 0; i < r->n; i++) {
        silent &= r->out[i] == 0.0f;
        r->out[i] = 0.0f;
    }
    struct compress_input in = {.draw = 5, .x = v, .x_hat = r->out};
    check(compress_encode(r->c, &in, other, &len, NULL) == 0, "encode");
    check((len == r->len && memcmp(r->bytes, other, len) == 0) || (silent && len == 1),
          "without measuring, another message");
    free(other);
}

/* Encoding the same vector again, with the codec in the same state, gives the same bytes. */
static void check_repeats(struct bench_rig *r, const struct tested *t, const float *v)
{
    size_t len = r->len;
    uint8_t *first = malloc(len);
    assert_non_null(first);
    memcpy(first, r->bytes, len);
    check_unmeasured(r, v);
    check(rig_code(r, 5, v) == 0 && r->len == len && memcmp(first, r->bytes, len) == 0,
          "one draw gave two messages");
    bool by_tensor = t->codec->body != NULL && t->codec->body->by_tensor;
    if (at_kind == VECTOR_GAUSS && r->n >= 255 && (t->traits & SPEC_RANDOM)
        && (at_matrices || !by_tensor)) {
        check(rig_code(r, 6, v) == 0, "encode");
        bool same = r->len == len && memcmp(first, r->bytes, len) == 0;
        check(!same, "another draw, but the same message");
    }
    free(first);
}

/* A vector that is not zero must not be lost as a whole. A contraction must reduce the error of
 * every such vector. A vector of one element must always decode to a value that is not 0, and so
 * must a vector of equal elements, unless the codec selects elements. */
static void check_speaks(const struct bench_rig *r, const struct tested *t, double x2)
{
    if (!(x2 > 0.0) || at_kind == VECTOR_DENORMAL || (t->traits & SPEC_MUTE))
        return;
    if (t->class == CODEC_CONTRACTION)
        check(r->stat.e2 < x2, "nothing was got across");
    bool all = at_kind == VECTOR_CONSTANT && t->codec->selector == NULL;
    bool heard = false;
    for (size_t i = 0; i < r->n; i++)
        heard |= r->out[i] != 0.0f;
    if (r->n == 1 || all)
        check(heard, "nothing was sent");
}

/* Checks a new compressor with one vector. */
static void check_vector(struct bench_rig *r, const struct tested *t, const float *v)
{
    check(rig_code(r, 5, v) == 0, "encode");
    double x2 = vec_norm2(v, r->n);
    double e2 = vec_dist2(v, r->out, r->n);
    if (!agrees(r->stat.x2, x2, x2))
        complain("x2 is not |v|^2", r->stat.x2, x2);
    if (!agrees(r->stat.e2, e2, x2))
        complain("e2 is not |v - C|^2", r->stat.e2, e2);
    bool contracts =
        t->class == CODEC_CONTRACTION || (t->class == CODEC_EXPECTED && !(t->traits & SPEC_LOOSE));
    if (contracts && !(e2 <= x2 * (1.0 + 1e-6)))
        complain("|v - C|^2 is above |v|^2", e2, x2);
    check_speaks(r, t, x2);
    check_lengths(r);
    if (!spec_remembers(t))
        check_repeats(r, t, v);
}

/* Two replicas to which the same messages are applied stay equal bit for bit, and the remaining
 * error is the reported one. */
static void check_replica(struct bench_rig *r)
{
    float *a = r->out;
    float *b = malloc(r->n * sizeof *b + 1);
    assert_non_null(b);
    vector_fill(x, r->n, VECTOR_GAUSS, 3);
    vector_fill(x_hat, r->n, VECTOR_LAPLACE, 4);
    for (size_t round = 0; round < 3; round++) {
        struct compress_input in = {.draw = round, .round = round, .x = x, .x_hat = x_hat};
        memcpy(a, x_hat, r->n * sizeof *a);
        memcpy(b, x_hat, r->n * sizeof *b);
        check(compress_encode(r->c, &in, r->bytes, &r->len, &r->stat) == 0, "encode");
        check(memcmp(a, x_hat, r->n * sizeof *a) == 0, "encode wrote x_hat");
        check(compress_validate(r->c, r->bytes, r->len), "own message refused");
        compress_apply(r->c, r->bytes, r->len, a);
        compress_apply(r->c, r->bytes, r->len, b);
        check(memcmp(a, b, r->n * sizeof *a) == 0, "replicas differ");
        /* The sum x_hat + C is rounded once per element, so the reported squared error e2 need not
         * be exact. */
        double left = sqrt(vec_dist2(x, a, r->n));
        double most = sqrt(vec_norm2(a, r->n) + vec_norm2(x, r->n));
        check(fabs(left - sqrt(r->stat.e2)) <= 0x1p-22 * most + 1e-5 * left,
              "e2 is not what is left");
        memcpy(x_hat, a, r->n * sizeof *a);
    }
    free(b);
}

/* Values that are not finite or too large are refused at every position, and the next message is
 * not affected. */
static void check_refusals(struct bench_rig *r, const struct tested *t)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY, 0x1p64f, -3e38f};
    struct bench_rig fresh;
    float *v = vectors[VECTOR_GAUSS];
    const size_t places[] = {0, r->n / 2, r->n - 1};
    for (size_t j = 0; j < 3; j++)
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
            float keep = v[places[j]];
            v[places[j]] = bad[i];
            check(rig_code(r, 1, v) == -ERANGE, "a bad value is not refused");
            for (size_t e = 0; e < r->n; e++)
                check(r->out[e] == 0.0f, "a refused difference was applied");
            v[places[j]] = keep;
        }
    rig_open(&fresh, t->spec, r->n);
    check(rig_code(&fresh, 1, v) == 0 && rig_code(r, 1, v) == 0, "encode");
    check(fresh.len == r->len && memcmp(fresh.bytes, r->bytes, r->len) == 0,
          "a refusal left its mark");
    rig_close(&fresh);
}

static void check_size(const struct tested *t)
{
    struct bench_rig r;
    bool fresh = spec_remembers(t);
    rig_open(&r, t->spec, at_n);
    check(at_n > 0 || compress_bound(r.c) <= 2, "empty, but long");
    for (at_kind = 0; at_kind < VECTOR_KINDS; at_kind++) {
        check_vector(&r, t, vectors[at_kind]);
        if (at_kind == VECTOR_ZERO || at_n == 0)
            /* Each unit (values that are encoded together) except the last has at least 100
             * values. */
            check(r.len <= 1 + at_n / 100, "a zero difference is not a byte a unit");
        if (fresh) {
            rig_close(&r);
            rig_open(&r, t->spec, at_n);
        }
    }
    at_kind = VECTOR_GAUSS;
    if (at_n > 0)
        check_refusals(&r, t);
    check_replica(&r);
    rig_close(&r);
}

static void test_contract(void **state)
{
    (void)state;
    static struct tested list[SPECS_MAX];
    size_t n_specs = specs_all(list);
    for (size_t j = 0; j < sizeof sizes / sizeof sizes[0]; j++) {
        at_n = sizes[j];
        fill_all(at_n);
        for (size_t i = 0; i < n_specs; i++) {
            at_spec = list[i].spec;
            check_size(&list[i]);
        }
    }
    end_of_test();
}

static void test_large(void **state)
{
    (void)state;
    static struct tested list[SPECS_MAX];
    size_t n_specs = specs_all(list);
    at_n = N_LARGE;
    at_kind = VECTOR_LAPLACE;
    vector_fill(large, N_LARGE, VECTOR_LAPLACE, 1);
    memset(large + N_LARGE / 2, 0, N_LARGE / 3 * sizeof *large);
    for (size_t i = 0; i < n_specs; i++) {
        struct bench_rig r;
        at_spec = list[i].spec;
        rig_open(&r, at_spec, N_LARGE);
        check_vector(&r, &list[i], large);
        rig_close(&r);
    }
    end_of_test();
}

/* Describes a model of matrices of all shapes, for codecs that use the shapes. Returns the number
 * of tensors. */
static size_t matrices(struct segment s[16])
{
    static const size_t shapes[][2] = {{1, 1},  {2, 2},   {3, 5},   {5, 3},   {16, 16}, {17, 33},
                                       {64, 9}, {10, 64}, {6, 150}, {1, 120}, {0, 0},   {90, 1}};
    enum { N = sizeof shapes / sizeof shapes[0] };
    size_t at = 0;
    for (size_t i = 0; i < N; i++) {
        size_t n = shapes[i][0] * shapes[i][1];
        s[i] = (struct segment){.offset = at, .n = n, .rows = shapes[i][0], .cols = shapes[i][1]};
        at += n;
    }
    return N;
}

static void test_matrices(void **state)
{
    (void)state;
    static struct tested list[SPECS_MAX];
    struct segment s[16];
    size_t n_segments = matrices(s);
    size_t n_specs = specs_all(list);
    at_n = s[n_segments - 1].offset + s[n_segments - 1].n;
    at_matrices = true;
    fill_all(at_n);
    for (size_t i = 0; i < n_specs; i++)
        for (at_kind = 0; at_kind < VECTOR_KINDS; at_kind++) {
            struct bench_rig r;
            at_spec = list[i].spec;
            rig_open_model(&r, at_spec, s, n_segments);
            check_vector(&r, &list[i], vectors[at_kind]);
            check_replica(&r);
            rig_close(&r);
        }
    at_matrices = false;
    end_of_test();
}

/* A codec of class "expected" contracts on average over its random draws. */
static void test_expected(void **state)
{
    (void)state;
    static struct tested list[SPECS_MAX];
    static const enum vector_kind kinds[] = {VECTOR_GAUSS, VECTOR_LAPLACE, VECTOR_HEAVY,
                                             VECTOR_ONE_HOT, VECTOR_CONSTANT};
    struct segment s[16];
    size_t n_segments = matrices(s);
    size_t n_specs = specs_all(list);
    at_n = s[n_segments - 1].offset + s[n_segments - 1].n;
    fill_all(at_n);
    for (size_t i = 0; i < n_specs; i++) {
        if (list[i].class != CODEC_EXPECTED)
            continue;
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
            struct bench_rig r;
            double sum = 0.0, squares = 0.0;
            at_spec = list[i].spec;
            at_kind = (int)kinds[k];
            rig_open_model(&r, at_spec, s, n_segments);
            for (uint64_t draw = 0; draw < DRAWS; draw++) {
                check(rig_code(&r, draw, vectors[at_kind]) == 0, "encode");
                double rest = r.stat.e2 / r.stat.x2;
                sum += rest;
                squares += rest * rest;
            }
            double mean = sum / DRAWS;
            double variance = fmax(squares / DRAWS - mean * mean, 0.0);
            if (kinds[k] != VECTOR_ONE_HOT && !(mean < 1.0))
                complain("nothing was got across in any draw", mean, 1.0);
            if (!(mean <= 1.0 + 5.0 * sqrt(variance / DRAWS)))
                complain("mean |v - C|^2 over |v|^2 is above 1", mean, 1.0);
            rig_close(&r);
        }
    }
    end_of_test();
}

/* Each codec has exactly one of three functions (values, selector, body). It also has all the
 * texts that users read. */
static void test_table(void **state)
{
    (void)state;
    struct compress_info info;
    size_t n = 0;
    for (; codec_all[n] != NULL; n++) {
        const struct codec *c = codec_all[n];
        assert_int_equal((c->values != NULL) + (c->selector != NULL) + (c->body != NULL), 1);
        assert_true(compress_catalogue(n, &info));
        assert_string_equal(info.name, c->name);
        at_spec = c->name;
        check(info.about != NULL && info.bound != NULL && info.source != NULL, "a text is missing");
        check(strncmp(info.preset, c->name, strlen(c->name)) == 0, "preset");
        check(strncmp(info.form, c->name, strlen(c->name)) == 0, "form");
        check(spec_codec(c->name) == c, "two codecs of one name");
    }
    assert_false(compress_catalogue(n, &info));
    end_of_test();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contract), cmocka_unit_test(test_large),
        cmocka_unit_test(test_matrices), cmocka_unit_test(test_expected),
        cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
