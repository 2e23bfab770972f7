/* tests/unit/nn_data_fuzz.c -- broken data files: each truncation and thousands of random
 * changes give an error message or a valid data set, never a crash. SEED= repeats a run. */
#include "nn/data/data.h"
#include "nn/math/rng.h"

#include "nn_ref.h"
#include "nn_scratch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

enum {
    PIXELS = 784,
    FILE_MAX = 8192,
    BLOBS_MAX = 4,
    MUTATIONS = 800 /* Number of random changes of each file. */
};

/* One file of a valid data set. The file is in memory. */
struct blob
{
    const char *name;
    const char *text; /* Contents of a text file. NULL: generated images or labels. */
    uint8_t bytes[FILE_MAX];
    size_t n;
};

/* A valid data set, of which damaged copies are made. */
struct right
{
    const char *kind;
    /* Number of labels in an image record. 0: IDX, with labels in files of their own. */
    size_t n_labels;
    bool shortens; /* True: a truncated copy of a file may still be a valid file. */
    struct blob blob[BLOBS_MAX];
};

#define ROWS  "+1 3:0.5 7:1\n-1 1:2e-3\r\n\n-1\n+1 2:4 # seven\n"
#define TABLE "a,b,class\n1,2.5,ash\n-3,4e2,\"o,k\"\n5,6,ash\n7,8,\"o,k\"\n"
#define TEXT  "It was the best of times,\nit was the worst of times.\n"

static struct right sets[] = {
    {.kind = "mnist",
     .blob = {{.name = "train-images-idx3-ubyte"},
              {.name = "train-labels-idx1-ubyte"},
              {.name = "t10k-images-idx3-ubyte.gz"},
              {.name = "t10k-labels-idx1-ubyte.gz"}}},
    {.kind = "idx", .blob = {{.name = "a-images-idx3-ubyte"}, {.name = "a-labels-idx1-ubyte.gz"}}},
    {.kind = "cifar10",
     .n_labels = 1,
     .blob = {{.name = "data_batch_2.bin"}, {.name = "test_batch.bin.gz"}}},
    {.kind = "cifar100", .n_labels = 2, .blob = {{.name = "train.bin.gz"}, {.name = "test.bin"}}},
    {.kind = "libsvm",
     .shortens = true,
     .blob = {{.name = "rows", .text = ROWS}, {.name = "rows.t.gz", .text = ROWS}}},
    {.kind = "csv",
     .shortens = true,
     .blob = {{.name = "table.csv", .text = TABLE}, {.name = "table.val.csv.gz", .text = TABLE}}},
    {.kind = "text",
     .shortens = true,
     .blob = {{.name = "text.gz", .text = TEXT}, {.name = "test.txt", .text = TEXT}}},
};
enum { SETS = sizeof sets / sizeof *sets };

static struct scratch s;
static uint64_t seed;

/* Returns byte i of the generated images: compressible, but not constant. */
static uint8_t filler(size_t i)
{
    return i % 5 ? (uint8_t)(rng_at(3, i) & 15) : 0;
}

/* Makes the contents of one file before compression: two images, two labels or the text. Returns
 * the number of bytes. */
static size_t make_raw(const struct right *set, const struct blob *b, uint8_t raw[FILE_MAX])
{
    size_t head = 0, n = 2;
    memset(raw, 0, FILE_MAX);
    if (b->text) {
        memcpy(raw, b->text, strlen(b->text));
        return strlen(b->text);
    }
    if (set->n_labels == 0) {
        bool labels = strstr(b->name, "labels") != NULL;
        uint8_t images_head[16] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 28, 0, 0, 0, 28};
        memcpy(raw, images_head, sizeof images_head);
        raw[3] = labels ? 1 : 3;
        head = labels ? 8 : 16;
        n *= labels ? 1 : PIXELS;
    } else
        n *= set->n_labels + 3072;
    for (size_t i = 0; i < n; i++)
        raw[head + i] = filler(i);
    for (size_t i = 0; i < 2 * set->n_labels; i++)
        raw[i / set->n_labels * (n / 2) + i % set->n_labels] = (uint8_t)i;
    return head + n;
}

static void make_blob(const struct right *set, struct blob *b)
{
    uint8_t raw[FILE_MAX];
    size_t n = make_raw(set, b, raw);
    if (strstr(b->name, ".gz"))
        scratch_put_gz(&s, b->name, raw, n);
    else
        scratch_put(&s, b->name, raw, n);
    b->n = scratch_get(&s, b->name, b->bytes, FILE_MAX);
}

/* Checks the invariants of a data set, and reads every byte, so that a sanitizer detects a bad
 * array. */
static void check(const struct dataset *d)
{
    uint64_t sum = 0;
    assert_true(d->n >= 1 && data_kind_fixed(d->kind));
    for (size_t i = 0; i < d->n && d->labels; i++)
        assert_true(d->labels[i] < d->shape.n_classes);
    for (size_t i = 0; i < d->n && d->file; i++)
        assert_true(d->file[i] < d->n_files);
    for (size_t i = 0; i < d->n * dataset_dim(d) && d->pixels; i++)
        sum += d->pixels[i];
    for (size_t i = 0; i < d->n * dataset_dim(d) && d->rows; i++)
        assert_true(isfinite(d->rows[i]));
    for (size_t i = 0; i < d->n && d->start; i++) {
        assert_true(d->start[i] <= d->start[i + 1] && d->start[i + 1] - d->start[i] <= d->longest);
        for (size_t j = d->start[i]; j < d->start[i + 1]; j++)
            assert_true(d->column[j] < dataset_dim(d) && isfinite(d->entry[j])
                        && (j == d->start[i] || d->column[j] > d->column[j - 1]));
    }
    for (size_t i = 0; i <= d->n * dataset_dim(d) && d->text; i++)
        sum += d->text[i];
    assert_true(sum > 0 || d->labels);
}

/* Opens a data set that may be damaged. It must be refused with one error message, or be valid.
 * Returns whether it was opened. */
static bool holds(const char *kind)
{
    struct data d;
    char error[DATA_ERROR_MAX] = "", spec[600];
    snprintf(spec, sizeof spec, "%s:%s%s", kind, s.dir,
             strcmp(kind, "text") == 0 ? ",context=4" : "");
    int err = data_open(&d, &(struct data_request){.spec = spec}, error);
    if (err < 0) {
        assert_true(strlen(error) > 10);
        for (const char *p = error; *p; p++)
            assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
        assert_true(!d.train.labels && !d.train.pixels && !d.train.text && !d.test.labels);
        return false;
    }
    check(&d.train);
    check(&d.test);
    assert_string_equal(d.train.kind, d.test.kind);
    data_close(&d);
    return true;
}

static void put_set(struct right *set)
{
    scratch_count(&s, 1);
    for (size_t i = 0; i < BLOBS_MAX && set->blob[i].name; i++)
        make_blob(set, &set->blob[i]);
    assert_true(holds(set->kind));
}

/* Every truncated file of images is refused, and so is every truncated gzip file. */
static void test_truncations(void **state)
{
    (void)state;
    for (size_t k = 0; k < SETS; k++) {
        put_set(&sets[k]);
        for (struct blob *b = sets[k].blob; b < sets[k].blob + BLOBS_MAX && b->name; b++) {
            bool may = sets[k].shortens && !strstr(b->name, ".gz");
            size_t n_taken = 0;
            for (size_t n = 0; n < b->n; n++) {
                if (sets[k].n_labels > 0 && n == b->n / 2 && !strstr(b->name, ".gz"))
                    /* The first half of this file is one whole record, so the truncated file is
                     * valid. */
                    continue;
                scratch_put(&s, b->name, b->bytes, n);
                bool taken = holds(sets[k].kind);
                n_taken += taken;
                if (taken && !may)
                    print_error("%s cut to %zu bytes was taken\n", b->name, n);
                assert_true(may || !taken);
            }
            assert_true(!may || n_taken > 0);
            scratch_put(&s, b->name, b->bytes, b->n);
            assert_true(holds(sets[k].kind));
        }
    }
}

/* Changes one to four random bytes in each of MUTATIONS copies. About half of them are among the
 * first 32 bytes, where headers are. */
static void mutate(struct blob *b, const char *kind, struct rng *r)
{
    size_t n_refused = 0;
    for (int k = 0; k < MUTATIONS; k++) {
        uint8_t m[FILE_MAX];
        memcpy(m, b->bytes, b->n);
        for (uint64_t c = rng_below(r, 4) + 1; c > 0; c--) {
            size_t span = rng_below(r, 2) && b->n > 32 ? 32 : b->n;
            m[rng_below(r, span)] = (uint8_t)rng_u64(r);
        }
        scratch_put(&s, b->name, m, b->n);
        n_refused += !holds(kind);
    }
    assert_true(n_refused > 10 || strcmp(kind, "text") == 0 || strcmp(kind, "idx") == 0);
    scratch_put(&s, b->name, b->bytes, b->n);
}

static void test_mutations(void **state)
{
    (void)state;
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, 0, 0));
    for (size_t k = 0; k < SETS; k++) {
        put_set(&sets[k]);
        for (size_t i = 0; i < BLOBS_MAX && sets[k].blob[i].name; i++)
            mutate(&sets[k].blob[i], sets[k].kind, &r);
    }
}

/* Random bytes in a file of any name are recognised as a data kind, or refused. */
static void test_sniffing(void **state)
{
    (void)state;
    static const char *const names[] = {"x", "x.csv", "x.bin", "train-images-idx3-ubyte"};
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, 1, 0));
    scratch_count(&s, 1);
    for (int k = 0; k < 2000; k++) {
        uint8_t bytes[64];
        size_t n = rng_below(&r, sizeof bytes);
        for (size_t i = 0; i < n; i++)
            bytes[i] = k % 2 ? (uint8_t) "01 :,\n-.ab\""[rng_below(&r, 11)] : (uint8_t)rng_u64(&r);
        const char *name = names[rng_below(&r, 4)];
        scratch_put(&s, name, bytes, n);
        char kind[DATA_KIND_MAX], error[DATA_ERROR_MAX] = "";
        if (data_sniff(s.dir, kind, error) == 0)
            holds(kind);
        else
            assert_true(strlen(error) > 10);
        scratch_remove(&s, name);
    }
}

static int setup(void **state)
{
    (void)state;
    seed = ref_seed();
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
        cmocka_unit_test(test_truncations),
        cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_sniffing),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
