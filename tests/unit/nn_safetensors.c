/* tests/unit/nn_safetensors.c -- model files: what is written is read back with the same bits,
 * and can be read from Python. A broken file is refused with an error message, and changes
 * nothing. SEED= repeats a run. */
#include "nn/files/replace.h"
#include "nn/files/safetensors.h"

#include "nn/math/rng.h"

#include "nn_ref.h"
#include "nn_scratch.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/wait.h>

#include <cmocka.h>

enum { N_PARAMS = 24 + 4 + 1, N_SEGMENTS = 3, FILE_MAX = 65536, MUTATIONS = 6000 };

static const struct segment segments[N_SEGMENTS] = {
    {.name = "conv1.weight",
     .offset = 0,
     .n = 24,
     .rows = 4,
     .cols = 6,
     .n_dims = 4,
     .dims = {4, 1, 2, 3}},
    {.name = "conv1.bias", .offset = 24, .n = 4, .rows = 1, .cols = 4, .n_dims = 1, .dims = {4}},
    {.name = "scale", .offset = 28, .n = 1, .rows = 1, .cols = 1, .n_dims = 0},
};
static const struct safetensors_meta meta[] = {
    {"run", "model=lenet5\nseed=1\n\"quoted\" \\ \xc3\xa9"}, {"round", "17"}, {NULL, NULL}};

static struct scratch s;
static uint64_t seed;
static float x[N_PARAMS];

static void write_model(const char *name)
{
    char error[FILE_ERROR_MAX] = "";
    int err = safetensors_write(scratch_path(&s, name), x, segments, N_SEGMENTS, meta, error);
    if (err < 0)
        print_error("%s\n", error);
    assert_int_equal(err, 0);
}

static void test_round_trip(void **state)
{
    (void)state;
    scratch_count(&s, 1);
    write_model("m");
    /* The second write of the file replaces the first file. */
    write_model("m");
    assert_int_equal(scratch_count(&s, 0), 1); /* No temporary file may be left. */
    float y[N_PARAMS];
    char error[FILE_ERROR_MAX] = "";
    assert_int_equal(safetensors_read(scratch_path(&s, "m"), segments, N_SEGMENTS, y, error), 0);
    /* All bits of the model that was read equal the written ones, including -0 and the smallest
     * float. */
    assert_memory_equal(x, y, sizeof x);
    struct safetensors_info info;
    assert_int_equal(safetensors_info(scratch_path(&s, "m"), &info, error), 0);
    assert_int_equal(info.n_tensors, N_SEGMENTS);
    assert_int_equal(info.n_floats, N_PARAMS);
    assert_int_equal(info.n_meta, 2);
    assert_string_equal(safetensors_value(&info, "run"), meta[0].value);
    assert_string_equal(safetensors_value(&info, "round"), "17");
    assert_null(safetensors_value(&info, "none"));
    safetensors_info_close(&info);
    assert_null(info.meta);
}

/* A written file has exactly the bytes that the format defines. */
static void test_layout(void **state)
{
    (void)state;
    char error[FILE_ERROR_MAX] = "";
    const struct segment one = {
        .name = "w", .n = 2, .rows = 1, .cols = 2, .n_dims = 2, .dims = {1, 2}};
    const float v[2] = {1.0f, -2.5f};
    assert_int_equal(safetensors_write(scratch_path(&s, "l"), v, &one, 1, NULL, error), 0);
    static const char head[] = "{\"w\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}}";
    static const uint8_t data[] = {0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0};
    uint8_t b[256];
    size_t n = scratch_get(&s, "l", b, sizeof b), padded = (sizeof head - 1 + 7) / 8 * 8;
    assert_int_equal(n, 8 + padded + sizeof data);
    assert_int_equal(b[0], padded);
    for (int i = 1; i < 8; i++)
        assert_int_equal(b[i], 0);
    assert_memory_equal(b + 8, head, sizeof head - 1);
    for (size_t i = sizeof head - 1; i < padded; i++)
        assert_int_equal(b[8 + i], ' ');
    assert_memory_equal(b + 8 + padded, data, sizeof data);
}

/* A reader in Python, written from the description of the format alone, reads the file. */
static void test_python(void **state)
{
    (void)state;
    static const char script[] =
        "import json, struct, sys\n"
        "b = open(sys.argv[1], 'rb').read()\n"
        "n = struct.unpack('<Q', b[:8])[0]\n"
        "h = json.loads(b[8:8 + n])\n"
        "assert n % 8 == 0 and h['__metadata__']['round'] == '17'\n"
        "t = h['conv1.bias']\n"
        "assert t['dtype'] == 'F32' and t['shape'] == [4], t\n"
        "assert h['conv1.weight']['shape'] == [4, 1, 2, 3] and h['scale']['shape'] == []\n"
        "lo, hi = t['data_offsets']\n"
        "v = struct.unpack('<4f', b[8 + n + lo:8 + n + hi])\n"
        "assert v == (24.5, 25.5, 26.5, 27.5), v\n"
        "assert 8 + n + h['scale']['data_offsets'][1] == len(b)\n";
    if (system("python3 -c '' >/dev/null 2>&1") != 0) {
        print_message("skipped: no python3\n");
        skip();
    }
    write_model("p");
    scratch_put(&s, "read.py", script, sizeof script - 1);
    char command[2000];
    snprintf(command, sizeof command, "python3 '%s' '%s'", scratch_path(&s, "read.py"),
             scratch_path(&s, "p"));
    assert_int_equal(system(command), 0);
}

/* Writes a file with this header and n_data bytes of 0x3f. `length` is stored as the header's
 * length. 0: the true length. */
static void put_file(const char *name, const char *header, uint64_t length, size_t n_data)
{
    static uint8_t b[FILE_MAX];
    size_t n = strlen(header);
    assert(8 + n + n_data <= FILE_MAX);
    for (int i = 0; i < 8; i++)
        b[i] = (uint8_t)((length ? length : n) >> (8 * i));
    memcpy(b + 8, header, n);
    memset(b + 8 + n, 0x3f, n_data);
    scratch_put(&s, name, b, 8 + n + n_data);
}

/* Reading must fail with an error message that contains `said`, and must not change the model. */
static void refused(const char *name, const struct segment *seg, size_t n, const char *said)
{
    float y[N_PARAMS], before[N_PARAMS];
    memset(y, 0x55, sizeof y);
    memcpy(before, y, sizeof y);
    char error[FILE_ERROR_MAX] = "";
    int err = safetensors_read(scratch_path(&s, name), seg, n, y, error);
    if (err >= 0 || !strstr(error, said) || !strstr(error, name))
        print_error("err %d, error \"%s\", expected \"%s\"\n", err, error, said);
    assert_true(err < 0);
    assert_non_null(strstr(error, said));
    assert_non_null(strstr(error, name));
    assert_null(strchr(error, '\n'));
    assert_memory_equal(y, before, sizeof y);
}

#define W(dtype, shape, offsets)                                                                   \
    "{\"w\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static void test_headers(void **state)
{
    (void)state;
    static const struct
    {
        const char *header;
        size_t n_data;
        uint64_t length;
        const char *said;
    } wrong[] = {
        {W("\"F32\"", "[2]", "[0,8]"), 8, 1 << 30,
         "header length: found 1073741824, expected 2 to 100000000"},
        {W("\"F32\"", "[2]", "[0,8]"), 8, UINT64_MAX,
         "header length: found 18446744073709551615, expected 2 to 100000000"},
        {W("\"F32\"", "[2]", "[0,8]"), 8, 5, "header: not valid JSON"},
        {W("\"F16\"", "[2]", "[0,8]"), 8, 0, "found 8 bytes, expected 4 for its shape"},
        {W("\"I64\"", "[1]", "[0,8]"), 8, 0, "dtype of w: found I64, expected F32, or F16"},
        {W("\"F8_E4M3\"", "[8]", "[0,8]"), 8, 0, "dtype of w: found F8_E4M3, expected F32"},
        {W("\"F4\"", "[16]", "[0,8]"), 8, 0, "dtype of w: found F4, expected F32"},
        {W("5", "[2]", "[0,8]"), 8, 0, "dtype of w: found none"},
        {W("\"F32\"", "[3]", "[0,12]"), 12, 0, "shape of w: found 3, expected 2"},
        {W("\"F32\"", "[1,2]", "[0,8]"), 8, 0, "shape of w: found 1x2, expected 2"},
        {W("\"F32\"", "[]", "[0,4]"), 4, 0, "shape of w: found a scalar, expected 2"},
        {W("\"F32\"", "2", "[0,8]"), 8, 0, "shape of w: expected an array"},
        {W("\"F32\"", "[2.0]", "[0,8]"), 8, 0, "shape of w: expected whole numbers"},
        {W("\"F32\"", "[-2]", "[0,8]"), 8, 0, "shape of w: expected whole numbers"},
        {W("\"F32\"", "[1,1,1,1,1,1,1,1,2]", "[0,8]"), 8, 0, "at most 8 numbers"},
        {W("\"F32\"", "[4611686018427387905,4]", "[0,16]"), 16, 0, "more elements"},
        {W("\"F32\"", "[2]", "[0,4]"), 4, 0, "data_offsets of w: found 4 bytes, expected 8"},
        {W("\"F32\"", "[2]", "[8,0]"), 8, 0, "0 <= begin"},
        {W("\"F32\"", "[2]", "[-8,0]"), 8, 0, "0 <= begin"},
        {W("\"F32\"", "[2]", "[4,12]"), 12, 0, "found begin 4, expected 0"},
        {W("\"F32\"", "[2]", "[0,8]"), 9, 0, "data: found 9 bytes, expected 8"},
        {W("\"F32\"", "[2]", "[0,8]"), 7, 0, "data: found 7 bytes, expected 8"},
        {"{}", 0, UINT64_MAX, "header length: found 18446744073709551615, expected 2 to 100000000"},
        {"{}", 0, 1, "header length: found 1, expected 2 to 100000000"},
        {"{}", 0, 3, "too short: found 2 bytes after the first 8, expected a header of 3 bytes"},
        {"{", 0, 1 << 20,
         "too short: found 1 bytes after the first 8, expected a header of 1048576 bytes"},
        {"[]", 0, 0,
         "not a safetensors file: found the byte 0x5b after the first 8 bytes, expected the '{'"},
        {" {}", 0, 0, "not a safetensors file: found the byte 0x20"},
        {"", 0, 2, "not a safetensors file: found 8 bytes, expected 8 bytes and a JSON header"},
        {"{}", 0, 0, "found 0 tensors, expected 1"},
        {"{\"w\":5}", 0, 0, "dtype of w: found none"},
        {"{\"__metadata__\":[]}", 0, 0, "__metadata__: expected a map"},
        {"{\"__metadata__\":{\"a\":1}}", 0, 0, "__metadata__.a: expected a string"},
        {"{\"v\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0, 0,
         "tensor v: the model has no tensor"},
        {"{\"\\u001b[2J\\n\":5}", 0, 0, "dtype of \\x1b[2J\\x0a: found none"},
    };
    const struct segment w = {.name = "w", .n = 2, .rows = 1, .cols = 2, .n_dims = 1, .dims = {2}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        put_file("broken", wrong[i].header, wrong[i].length, wrong[i].n_data);
        refused("broken", &w, 1, wrong[i].said);
    }
    const struct segment scalar = {.name = "w", .n = 1, .rows = 1, .cols = 1};
    /* The shape [0] has no float, so the tensor must not be accepted as a scalar. */
    put_file("broken", W("\"F32\"", "[0]", "[0,0]"), 0, 0);
    refused("broken", &scalar, 1, "shape of w: found 0, expected a scalar");
    float y[2];
    char error[FILE_ERROR_MAX] = "";
    put_file("right", W("\"F32\"", "[2]", "[0,8]"), 0, 8);
    assert_int_equal(safetensors_read(scratch_path(&s, "right"), &w, 1, y, error), 0);
    uint8_t b[256];
    size_t n = scratch_get(&s, "right", b, sizeof b);
    b[n - 1] = 0x7f; /* Sets all bits of the exponent of the last float, which makes it NaN. */
    b[n - 2] = 0x80;
    scratch_put(&s, "nan", b, n);
    refused("nan", &w, 1, "data of w: found NaN or infinity");
    refused("missing", &w, 1, "No such file");
    refused(".", &w, 1, "expected a regular file");
}

/* A model with a variance below 0 is refused, although the value is a number; -0 is accepted. */
static void test_negative_variance(void **state)
{
    (void)state;
    static const struct segment var = {
        .name = "w", .n = 2, .rows = 1, .cols = 2, .n_dims = 1, .dims = {2}, .nonnegative = true};
    struct segment mean = var;
    uint8_t b[256];
    float y[2];
    char error[FILE_ERROR_MAX] = "";
    mean.nonnegative = false;
    put_file("variance", W("\"F32\"", "[2]", "[0,8]"), 0, 8);
    assert_int_equal(safetensors_read(scratch_path(&s, "variance"), &var, 1, y, error), 0);
    size_t n = scratch_get(&s, "variance", b, sizeof b);
    b[n - 1] |= 0x80;
    scratch_put(&s, "variance", b, n);
    refused("variance", &var, 1,
            "data of w: found -0.747059 at place 1, expected no negative value");
    assert_int_equal(safetensors_read(scratch_path(&s, "variance"), &mean, 1, y, error), 0);
    memcpy(b + n - 4, (uint8_t[]){0, 0, 0, 0x80}, 4);
    scratch_put(&s, "variance", b, n);
    assert_int_equal(safetensors_read(scratch_path(&s, "variance"), &var, 1, y, error), 0);
    assert_true(y[1] == 0 && signbit(y[1]));
}

/* A file of another kind, or one that is too short for a header, is refused with the right
 * message. */
static void test_other_files(void **state)
{
    (void)state;
    static const char *const others[] = {"", "short", "PK\3\4, as torch.save() writes a model",
                                         "weight,bias\n0.5,0.25\n"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        scratch_put(&s, "other", (const uint8_t *)others[i], strlen(others[i]));
        refused("other", segments, N_SEGMENTS, "not a safetensors file: found ");
    }
}

/* A header length with the bytes 1f 8b is not taken for the beginning of gzip data. The JSON may
 * list tensors in any order. */
static void test_lookalike(void **state)
{
    (void)state;
    static char header[0x8b1f + 1];
    memset(header, ' ', 0x8b1f);
    static const char json[] = "{\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]},"
                               "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";
    memcpy(header, json, sizeof json - 1);
    put_file("lookalike", header, 0, 12);
    const struct segment ab[2] = {
        {.name = "a", .n = 2, .rows = 1, .cols = 2, .n_dims = 1, .dims = {2}},
        {.name = "b", .offset = 2, .n = 1, .rows = 1, .cols = 1, .n_dims = 1, .dims = {1}}};
    float y[3];
    char error[FILE_ERROR_MAX] = "";
    assert_int_equal(safetensors_read(scratch_path(&s, "lookalike"), ab, 2, y, error), 0);
    assert_true(y[2] == y[0]);
    refused("lookalike", ab, 1, "tensor b: the model has no tensor");
    struct segment abc[3] = {ab[0], ab[1], {.name = "c", .offset = 3}};
    refused("lookalike", abc, 3, "found 2 tensors, expected 3");
}

#define COUNTED(dtype, shape, offsets)                                                             \
    "{\"bn.num_batches_tracked\":{\"dtype\":\"" dtype "\",\"shape\":" shape                        \
    ",\"data_offsets\":" offsets "},"                                                              \
    "\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]}}"

/* The counters of batches that a PyTorch state_dict has are ignored. Tensors that only look like
 * such counters are not. */
static void test_counters(void **state)
{
    (void)state;
    const struct segment w = {.name = "w", .n = 2, .rows = 1, .cols = 2, .n_dims = 1, .dims = {2}};
    char error[FILE_ERROR_MAX] = "";
    float got[4] = {7, 7, 7, 7};
    put_file("counted", COUNTED("I64", "[]", "[0,8]"), 0, 16);
    assert_int_equal(safetensors_read(scratch_path(&s, "counted"), &w, 1, got, error), 0);
    assert_true(got[0] != 7 && got[1] != 7);
    assert_true(got[2] == 7 && got[3] == 7);
    struct safetensors_info info;
    assert_int_equal(safetensors_info(scratch_path(&s, "counted"), &info, error), 0);
    assert_int_equal(info.n_tensors, 1);
    assert_int_equal(info.n_floats, 2);
    safetensors_info_close(&info);
    put_file("broken", COUNTED("I64", "[1]", "[0,8]"), 0, 16);
    refused("broken", &w, 1, "found I64, expected F32");
    put_file("broken", COUNTED("I32", "[2]", "[0,8]"), 0, 16);
    refused("broken", &w, 1, "found I32, expected F32");
    put_file("broken", COUNTED("I64", "[]", "[0,4]"), 0, 12);
    refused("broken", &w, 1, "found 4 bytes, expected 8");
}

/* Tensors of 16-bit and 64-bit floats have the values that numpy and PyTorch read. */
static void test_other_dtypes(void **state)
{
    (void)state;
    static const struct
    {
        const char *dtype, *offsets;
        const char *bytes;
        size_t n_bytes;
        float expected[4];
    } cases[] = {
        {"F16", "[0,8]", "\x00\x3c\x01\x00\xff\xfb\x55\x35", 8, {1, 0x1p-24f, -65504, 0x1.554p-2f}},
        {"BF16",
         "[0,8]",
         "\x80\x3f\x01\x00\x7f\xff\xab\x3e",
         8,
         {1, 0x1p-133f, -0x1.fep127f, 0x1.56p-2f}},
        {"F64",
         "[0,32]",
         "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\xa0\x36\x9a\x99\x99\x99\x99\x99\xb9\xbf\0\0\0\0\0\0\0"
         "\x80",
         32,
         {1, 0x1p-149f, -0.1f, -0.0f}},
    };
    const struct segment w = {.name = "w", .n = 4, .rows = 1, .cols = 4, .n_dims = 1, .dims = {4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t file[256] = {0};
        char error[FILE_ERROR_MAX] = "";
        int n = snprintf((char *)file + 8, sizeof file - 8,
                         "{\"w\":{\"dtype\":\"%s\",\"shape\":[4],\"data_offsets\":%s}}",
                         cases[i].dtype, cases[i].offsets);
        file[0] = (uint8_t)n;
        memcpy(file + 8 + n, cases[i].bytes, cases[i].n_bytes);
        scratch_put(&s, "other", file, 8 + (size_t)n + cases[i].n_bytes);
        float got[4];
        assert_int_equal(safetensors_read(scratch_path(&s, "other"), &w, 1, got, error), 0);
        assert_memory_equal(got, cases[i].expected, sizeof got);
    }
    const char inf[] = "\x00\x7c";
    uint8_t file[128] = {0};
    int n = snprintf((char *)file + 8, sizeof file - 8,
                     "{\"w\":{\"dtype\":\"F16\",\"shape\":[],\"data_offsets\":[0,2]}}");
    file[0] = (uint8_t)n;
    memcpy(file + 8 + n, inf, 2);
    scratch_put(&s, "broken", file, 8 + (size_t)n + 2);
    const struct segment scalar = {.name = "w", .n = 1, .rows = 1, .cols = 1};
    refused("broken", &scalar, 1, "found NaN or infinity");
}

static void test_write_errors(void **state)
{
    (void)state;
    char error[FILE_ERROR_MAX] = "";
    int err =
        safetensors_write(scratch_path(&s, "no/such/m"), x, segments, N_SEGMENTS, NULL, error);
    assert_int_equal(err, -ENOENT);
    assert_non_null(strstr(error, "no/such/m: cannot write"));
    scratch_count(&s, 1);
    write_model("m");
    const struct safetensors_meta bad[] = {{"run", "\xff\xfe"}, {NULL, NULL}};
    assert_int_equal(safetensors_write(scratch_path(&s, "m"), x, segments, N_SEGMENTS, bad, error),
                     -EINVAL);
    assert_non_null(strstr(error, "expected UTF-8"));
    float y[N_PARAMS]; /* The refused write must leave the existing file unchanged. */
    assert_int_equal(safetensors_read(scratch_path(&s, "m"), segments, N_SEGMENTS, y, error), 0);
    assert_int_equal(scratch_count(&s, 0), 1);
}

/* Reads a file with safetensors_info() and safetensors_read(). Returns whether the model was
 * accepted. */
static bool holds(const char *name)
{
    float y[N_PARAMS];
    char error[FILE_ERROR_MAX] = "";
    struct safetensors_info info;
    int err_info = safetensors_info(scratch_path(&s, name), &info, error);
    assert_true(err_info == 0 || (strlen(error) > 10 && !info.meta));
    for (size_t i = 0; i < info.n_meta; i++)
        assert_true(strlen(info.meta[i].key) + strlen(info.meta[i].value) < FILE_MAX);
    safetensors_info_close(&info);
    error[0] = '\0';
    int err = safetensors_read(scratch_path(&s, name), segments, N_SEGMENTS, y, error);
    assert_true(err == 0 ? err_info == 0 : strlen(error) > 10);
    for (size_t i = 0; err == 0 && i < N_PARAMS; i++)
        assert_true(isfinite(y[i]));
    return err == 0;
}

static void test_truncations(void **state)
{
    (void)state;
    static uint8_t b[FILE_MAX];
    write_model("whole");
    size_t n = scratch_get(&s, "whole", b, sizeof b);
    for (size_t i = 0; i < n; i++) {
        scratch_put(&s, "cut", b, i);
        if (holds("cut")) {
            print_error("cut to %zu of %zu bytes: taken\n", i, n);
            fail();
        }
    }
    scratch_put(&s, "cut", b, n);
    assert_true(holds("cut"));
    scratch_put(&s, "cut", b, n + 1);
    assert_false(holds("cut"));
}

static void test_mutations(void **state)
{
    (void)state;
    static uint8_t b[FILE_MAX], m[FILE_MAX];
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, 0, 0));
    write_model("whole");
    size_t n = scratch_get(&s, "whole", b, sizeof b), taken = 0;
    for (int k = 0; k < MUTATIONS; k++) {
        memcpy(m, b, n);
        /* Three of four mutations change only the header. */
        size_t head = k % 4 ? n - N_PARAMS * sizeof(float) : n;
        for (uint64_t c = rng_below(&r, 3) + 1; c > 0; c--) {
            size_t at = rng_below(&r, head);
            m[at] =
                k % 2 ? (uint8_t) "0123456789{}[],:\"-.e"[rng_below(&r, 20)] : (uint8_t)rng_u64(&r);
        }
        scratch_put(&s, "mutant", m, n);
        taken += holds("mutant");
    }
    assert_true(taken > 0 && taken < MUTATIONS);
}

static int setup(void **state)
{
    (void)state;
    seed = ref_seed();
    for (size_t i = 0; i < N_PARAMS; i++)
        x[i] = (float)i + 0.5f;
    x[0] = -0.0f;
    x[1] = 0x1p-149f;
    scratch_open(&s);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    scratch_close(&s);
    return 0;
}

/* A file with other tensors is refused with an error message that has the names found and the
 * most similar one. */
static void test_names(void **state)
{
    (void)state;
    static const struct
    {
        const char *found, *said;
    } cases[] = {
        {"con1.weight", "did you mean conv1.weight? It has conv1.weight, conv1.bias, scale"},
        {"module.conv1.bias", "did you mean conv1.bias?"},
        {"a.b.scale", "did you mean scale?"},
        {"lstm", "the model has no tensor of that name, but conv1.weight, conv1.bias, scale"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char header[200];
        snprintf(header, sizeof header,
                 "{\"%s\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
                 cases[i].found);
        put_file("names", header, 0, 4);
        refused("names", segments, N_SEGMENTS, cases[i].said);
    }
    put_file("lacks", "{\"scale\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 0, 4);
    refused("lacks", segments, N_SEGMENTS,
            "found 1 tensor, expected 3: tensor conv1.weight of the model is missing");
}

/* The tensors that safetensors_walk() has passed to its callback. */
struct seen
{
    const struct safetensors_tensor *last;
    size_t n_tensors, n_pieces, n_floats;
    double sum;
    char names[64];
};

static void see(void *self, const struct safetensors_tensor *t, const double *v, size_t n)
{
    struct seen *to = self;
    if (t != to->last) {
        to->n_tensors++;
        strncat(to->names, t->name, sizeof to->names - strlen(to->names) - 1);
    }
    to->last = t;
    to->n_pieces++;
    to->n_floats += n;
    for (size_t i = 0; i < n; i++)
        to->sum += v[i];
}

/* safetensors_walk() visits whole tensors in order, including tensors that are read in several
 * pieces, have 0 floats or are not finite. Counters are skipped. */
static void test_walk(void **state)
{
    (void)state;
    enum { LARGE = 40000 };
    char error[FILE_ERROR_MAX] = "";
    static float large[LARGE + 1];
    const struct segment two[2] = {
        {.name = "large", .n = LARGE, .rows = 1, .cols = LARGE, .n_dims = 1, .dims = {LARGE}},
        {.name = "nan", .offset = LARGE, .n = 1, .rows = 1, .cols = 1, .n_dims = 0}};
    for (size_t i = 0; i < LARGE; i++)
        large[i] = (float)(i % 7);
    large[LARGE] = INFINITY;
    assert_int_equal(safetensors_write(scratch_path(&s, "walk"), large, two, 2, NULL, error), 0);
    struct seen seen = {.names = ""};
    struct safetensors_walker walker = {.take = see, .self = &seen};
    assert_int_equal(safetensors_walk(scratch_path(&s, "walk"), &walker, error), 0);
    assert_int_equal(seen.n_tensors, 2);
    assert_int_equal(seen.n_floats, LARGE + 1);
    assert_true(seen.n_pieces > 2 && isinf(seen.sum));
    assert_string_equal(seen.names, "largenan");
    put_file("empty",
             "{\"e\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},"
             "\"bn.num_batches_tracked\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
             "\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}",
             0, 12);
    seen = (struct seen){.names = ""};
    assert_int_equal(safetensors_walk(scratch_path(&s, "empty"), &walker, error), 0);
    assert_string_equal(seen.names, "ew");
    assert_int_equal(seen.n_pieces, 2);
    put_file("short", "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 0, 7);
    assert_true(safetensors_walk(scratch_path(&s, "short"), &walker, error) < 0);
    assert_non_null(strstr(error, "short"));
}

/* A file may be overwritten if only its metadata were read, or if its model was read with
 * safetensors_read_no_input(). A file whose tensors were read in another way is an input, and must
 * be protected from being overwritten. */
static void test_metadata_are_no_input(void **state)
{
    (void)state;
    const struct segment w = {.name = "w", .n = 2, .rows = 1, .cols = 2, .n_dims = 1, .dims = {2}};
    char error[FILE_ERROR_MAX] = "";
    float got[4];
    struct safetensors_info info;
    put_file("old", COUNTED("I64", "[]", "[0,8]"), 0, 16);
    replace_protect_inputs();
    assert_int_equal(safetensors_info(scratch_path(&s, "old"), &info, error), 0);
    safetensors_info_close(&info);
    assert_int_equal(replace_check(scratch_path(&s, "old")), 0);
    assert_int_equal(safetensors_read_no_input(scratch_path(&s, "old"), &w, 1, got, error), 0);
    assert_int_equal(replace_check(scratch_path(&s, "old")), 0);
    assert_int_equal(safetensors_read(scratch_path(&s, "old"), &w, 1, got, error), 0);
    assert_int_equal(replace_check(scratch_path(&s, "old")), -REPLACE_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_walk),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_python),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_negative_variance),
        cmocka_unit_test(test_other_files),
        cmocka_unit_test(test_lookalike),
        cmocka_unit_test(test_counters),
        cmocka_unit_test(test_other_dtypes),
        cmocka_unit_test(test_write_errors),
        cmocka_unit_test(test_truncations),
        cmocka_unit_test(test_mutations),
        /* This test runs last, because the protection of input files cannot be switched off. */
        cmocka_unit_test(test_metadata_are_no_input),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
