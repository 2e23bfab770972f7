/* Broken data files: every truncation, and thousands of mutations, are an
 * error with a sentence or a set that is right; never a crash. SEED= replays. */
#include "nn/data.h"
#include "nn/rng.h"

#include "nn_scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <cmocka.h>

enum {
    PIXELS = 784,
    RECORD = 3073,
    FILE_MAX = 8192,
    MUTATIONS = 1500 /* Of each file. */
};

/* A file of a right set, in memory. */
struct blob
{
    const char *kind, *name;
    uint8_t bytes[FILE_MAX];
    size_t n;
};

static struct scratch s;
static uint64_t seed;

static struct blob mnist[] = {{.kind = "mnist", .name = "train-images-idx3-ubyte"},
                              {.kind = "mnist", .name = "train-labels-idx1-ubyte"},
                              {.kind = "mnist", .name = "t10k-images-idx3-ubyte.gz"},
                              {.kind = "mnist", .name = "t10k-labels-idx1-ubyte.gz"}};
static struct blob cifar[] = {{.kind = "cifar10", .name = "data_batch_2.bin"},
                              {.kind = "cifar10", .name = "test_batch.bin.gz"}};

/* Bytes that compress, but not to nothing. */
static uint8_t filler(size_t i)
{
    return i % 5 ? (uint8_t)(rng_at(3, i) & 15) : 0;
}

static void make_blob(struct blob *b, bool labels)
{
    uint8_t raw[FILE_MAX] = {0};
    size_t head = 0, n = 2;
    if (strcmp(b->kind, "mnist") == 0) {
        uint8_t images_head[16] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 28, 0, 0, 0, 28};
        memcpy(raw, images_head, sizeof images_head);
        raw[3] = labels ? 1 : 3;
        head = labels ? 8 : 16;
        n *= labels ? 1 : PIXELS;
    } else
        n = RECORD;
    for (size_t i = 0; i < n; i++)
        raw[head + i] = filler(i);
    if (strstr(b->name, ".gz")) {
        scratch_put_gz(&s, b->name, raw, head + n);
        b->n = scratch_get(&s, b->name, b->bytes, FILE_MAX);
    } else {
        scratch_put(&s, b->name, raw, head + n);
        memcpy(b->bytes, raw, b->n = head + n);
    }
}

/* Open the kind's set: refused with one sentence, or all labels in range.
 * True if it was taken. */
static bool holds(const char *kind)
{
    struct data d;
    char error[DATA_ERROR_MAX] = "", spec[600];
    snprintf(spec, sizeof spec, "%s:%s", kind, s.dir);
    int rc = data_open(&d, spec, 1, error);
    if (rc < 0) {
        assert_true(strlen(error) > 10);
        assert_null(strchr(error, '\n'));
        assert_null(d.train.pixels);
        assert_null(d.test.pixels);
        return false;
    }
    const struct dataset *both[] = {&d.train, &d.test};
    uint64_t sum = 0;
    for (int k = 0; k < 2; k++) {
        assert_true(both[k]->n >= 1);
        for (size_t i = 0; i < both[k]->n; i++)
            assert_true(both[k]->labels[i] < 10);
        for (size_t i = 0; i < both[k]->n * dataset_dim(both[k]); i++)
            sum += both[k]->pixels[i]; /* Sanitizers see each byte read. */
    }
    assert_true(sum > 0);
    data_close(&d);
    return true;
}

static void truncate_each(struct blob *b, size_t n_blobs)
{
    for (size_t i = 0; i < n_blobs; i++) {
        for (size_t n = 0; n < b[i].n; n++) {
            scratch_put(&s, b[i].name, b[i].bytes, n);
            if (holds(b[i].kind)) {
                print_error("%s cut to %zu bytes was taken\n", b[i].name, n);
                fail();
            }
        }
        scratch_put(&s, b[i].name, b[i].bytes, b[i].n);
        assert_true(holds(b[i].kind));
    }
}

/* Change one to four bytes; half of them among the first 32, where headers are. */
static void mutate_each(struct blob *b, size_t n_blobs)
{
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, 0, 0));
    for (size_t i = 0; i < n_blobs; i++) {
        size_t refused = 0;
        for (int k = 0; k < MUTATIONS; k++) {
            uint8_t m[FILE_MAX];
            memcpy(m, b[i].bytes, b[i].n);
            for (uint64_t c = rng_below(&r, 4) + 1; c > 0; c--) {
                size_t span = rng_below(&r, 2) && b[i].n > 32 ? 32 : b[i].n;
                m[rng_below(&r, span)] = (uint8_t)rng_u64(&r);
            }
            scratch_put(&s, b[i].name, m, b[i].n);
            refused += !holds(b[i].kind);
        }
        assert_true(refused > 10);
        scratch_put(&s, b[i].name, b[i].bytes, b[i].n);
    }
}

static void test_truncations(void **state)
{
    (void)state;
    truncate_each(mnist, 4);
    truncate_each(cifar, 2);
}

static void test_mutations(void **state)
{
    (void)state;
    mutate_each(mnist, 4);
    mutate_each(cifar, 2);
}

static int setup(void **state)
{
    (void)state;
    const char *given = getenv("SEED");
    seed = given ? strtoull(given, NULL, 0) : 1;
    print_message("SEED=%llu\n", (unsigned long long)seed);
    scratch_open(&s);
    for (size_t i = 0; i < 4; i++)
        make_blob(&mnist[i], i % 2);
    for (size_t i = 0; i < 2; i++)
        make_blob(&cifar[i], false);
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
        cmocka_unit_test(test_truncations),
        cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
