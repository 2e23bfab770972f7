/* tests/unit/nn_data_memory.c -- memory for reading a file: at most DATA_MEMORY_FACTOR times its
 * size plus a constant, whatever its header announces. */
#include "nn/data/data.h"

#include "nn_scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/resource.h>

#include <cmocka.h>

enum {
    SIZE = 2 << 20, /* Total size of all files of a set, in bytes. */
    MORE = 8 << 20  /* Constant part of the memory limit, in bytes. */
};

static struct scratch s;

/* Returns the bytes of data memory that the program and its libraries use already. 0: not known. */
static size_t taken(void)
{
    char line[128];
    unsigned long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && kib == 0 && fgets(line, sizeof line, f))
        if (sscanf(line, "VmData: %lu", &kib) != 1)
            kib = 0;
    if (f)
        fclose(f);
    return (size_t)kib << 10;
}

/* Opens a data set by its spec, with at most `limit` additional bytes of memory. In sanitizer
 * builds the memory is not limited, because sanitizers need their own. */
static int open_within(struct data *d, const char *spec, size_t limit, char error[DATA_ERROR_MAX])
{
    struct rlimit old;
    int err = getrlimit(RLIMIT_DATA, &old);
    assert_int_equal(err, 0);
    struct rlimit now = {.rlim_cur = taken() + limit, .rlim_max = old.rlim_max};
#ifdef HEARSAY_SANITIZED
    now = old;
#endif
    assert_int_equal(setrlimit(RLIMIT_DATA, &now), 0);
    err = data_open(d, &(struct data_request){.spec = spec}, error);
    assert_int_equal(setrlimit(RLIMIT_DATA, &old), 0);
    return err;
}

/* Writes a file of about `size` bytes that repeats `line`. */
static void put_lines(const char *name, const char *line, size_t size)
{
    size_t len = strlen(line), n = size / len;
    char *text = malloc(n * len);
    assert_non_null(text);
    for (size_t i = 0; i < n; i++)
        memcpy(text + i * len, line, len);
    if (strstr(name, ".gz"))
        scratch_put_gz(&s, name, text, n * len);
    else
        scratch_put(&s, name, text, n * len);
    free(text);
}

/* Writes n images of one pixel and their labels. */
static void put_points(const char prefix[24], uint32_t n)
{
    char name[96];
    uint8_t *b = calloc(n + 16, 1);
    assert_non_null(b);
    uint8_t head[16] = {0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1};
    memcpy(b, head, 16);
    for (int i = 0; i < 4; i++)
        b[4 + i] = (uint8_t)(n >> (24 - 8 * i));
    snprintf(name, sizeof name, "%s-images-idx3-ubyte", prefix);
    scratch_put(&s, name, b, n + 16);
    b[3] = 1;
    memset(b + 8, 0, 8);
    snprintf(name, sizeof name, "%s-labels-idx1-ubyte.gz", prefix);
    scratch_put_gz(&s, name, b, n + 8);
    free(b);
}

/* The limit of memory must hold even for the smallest possible samples, which need the most memory
 * per byte of their file. Each case has two files and a large held-out part, so that the reader
 * stores everything it can store about a sample. */
static void test_factor(void **state)
{
    (void)state;
    static const struct
    {
        const char *kind, *rest, *name, *line;
    } sets[] = {
        {"libsvm", ",holdout=0.9", "rows", "1\n0\n1 1:1\n"},
        {"libsvm", ",holdout=0.9", "rows", "1 1:1 2:1 3:1 4:1 5:1 6:1\n0\n"},
        {"csv", ",holdout=0.9", "rows", "1,0\n1,1\n"},
        {"csv", ",holdout=0.9", "rows", "1,2,3,4,5,6,7,8,0\n1,2,3,4,5,6,7,8,1\n"},
        /* Each byte \x80 takes three bytes in UTF-8. */
        {"csv", ",holdout=0.9", "rows", "\x80\x80,0\n\x80,1\n"},
        {"csv", ",holdout=0.9", "rows", "1,0\r1,1\r"},
        {"text", ",holdout=0.9,context=1", "text", "a"},
        {"idx", ",holdout=0.9", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        char spec[700], name[24], error[DATA_ERROR_MAX] = "";
        scratch_count(&s, 1);
        for (int k = 0; k < 2; k++) {
            snprintf(name, sizeof name, "%s%d%s", sets[i].name ? sets[i].name : "a", k,
                     sets[i].name && k ? ".gz" : "");
            if (sets[i].name)
                put_lines(name, sets[i].line, SIZE / 2);
            else
                put_points(name, SIZE / 4);
        }
        snprintf(spec, sizeof spec, "%s:%s%s", sets[i].kind, s.dir, sets[i].rest);
        struct data d;
        int err = open_within(&d, spec, DATA_MEMORY_FACTOR * SIZE + MORE, error);
        if (err < 0)
            print_error("%zu: %s\n", i, error);
        assert_int_equal(err, 0);
        assert_true(d.train.n_files == 2 && d.test.n > 8 * d.train.n);
        data_close(&d);
    }
}

/* The header of a gzip file of 64 KiB of noise announces as many images as 64 KiB could unpack to:
 * over 60 MB. */
static void test_announced(void **state)
{
    (void)state;
    enum { NOISE = 64 << 10, N = 80000 };
    uint8_t *b = malloc(NOISE + 16);
    assert_non_null(b);
    uint8_t head[16] = {0, 0, 8, 3, 0, 1, 0x38, 0x80, 0, 0, 0, 28, 0, 0, 0, 28};
    memcpy(b, head, 16);
    uint32_t x = 1;
    for (size_t i = 0; i < NOISE; i++)
        b[16 + i] = (uint8_t)((x = x * 1664525u + 1013904223u) >> 24);
    scratch_count(&s, 1);
    scratch_put_gz(&s, "train-images-idx3-ubyte.gz", b, NOISE + 16);
    b[3] = 1;
    scratch_put_gz(&s, "train-labels-idx1-ubyte.gz", b, NOISE);
    free(b);
    char spec[700], error[DATA_ERROR_MAX] = "";
    struct data d;
    snprintf(spec, sizeof spec, "mnist:%s", s.dir);
    assert_true(open_within(&d, spec, DATA_MEMORY_FACTOR * NOISE + 2 * MORE, error) < 0);
    assert_non_null(strstr(error, "data: found 65536 bytes, expected 62720000"));
}

static int setup(void **state)
{
    (void)state;
    scratch_open(&s);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    scratch_close(&s);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_factor),
        cmocka_unit_test(test_announced),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
