/* tests/unit/nn_shard_split.c -- splits of a data set: their text form, parts with few labels or
 * whole files, and what is refused. */
#include "nn/math/rng.h"
#include "nn/shards/shard.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 2000, CLASSES = 10, FILES = 23, SEED = 11 };

static uint16_t labels[N];
static uint32_t files[N];
static struct dataset set = {.kind = "mnist",
                             .n = N,
                             .labels = labels,
                             .file = files,
                             .n_files = FILES,
                             .shape = {DATA_IMAGES, 1, 28, 28, CLASSES}};
static const struct dataset text = {
    .kind = "text/8", .n = N, .n_files = 1, .shape = {DATA_TEXT, 1, 8, 1, 256}};
static char error[DATA_ERROR_MAX];

static struct shard_split split_of(const char *spec)
{
    struct shard_split s;
    assert_int_equal(shard_split_parse(&s, spec, error), 0);
    return s;
}

/* Tests valid texts with their canonical forms, and invalid texts. */
static void test_texts(void **state)
{
    (void)state;
    static const char *const good[][2] = {
        {"iid", "iid"},
        {"file", "file"},
        {"label:1", "label:1"},
        {"label:100", "label:100"},
        {"dirichlet:0.1", "dirichlet:0.1"},
        {"dirichlet:1e2", "dirichlet:100"},
        {"dirichlet:1000", "dirichlet:1000"},
        {"dirichlet:.50", "dirichlet:0.5"},
        {"dirichlet:0.01", "dirichlet:0.01"},
        {"dirichlet:0.3333333333333333", "dirichlet:0.3333333333333333"}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char out[SHARD_SPLIT_MAX];
        struct shard_split s = split_of(good[i][0]);
        shard_split_print(&s, out);
        assert_string_equal(out, good[i][1]);
    }
    assert_true(split_of("dirichlet:0.1").alpha == 0.1);
    assert_true(split_of("label:37").per_part == 37);
    assert_true(shard_split_by_label(&(struct shard_split){SHARD_LABEL, 0, 2}));
    assert_false(shard_split_by_label(&(struct shard_split){SHARD_FILE, 0, 0}));
}

static void test_bad_texts(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "iid:1",
                                      "dirichlet",
                                      "dirichlet:",
                                      "dirichlet:0",
                                      "dirichlet:-1",
                                      "dirichlet:nan",
                                      "dirichlet:inf",
                                      "dirichlet:0.001",
                                      "dirichlet:1001",
                                      "dirichlet:0x1",
                                      "dirichlet: 1",
                                      "dirichlet:1 ",
                                      "dirichlet:+1",
                                      "dirichlet:1e",
                                      "label",
                                      "label:",
                                      "label:0",
                                      "label:101",
                                      "label:01",
                                      "label:-1",
                                      "label:2 ",
                                      "label:2.0",
                                      "label:4294967297",
                                      "files",
                                      "file:1",
                                      "IID"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct shard_split s;
        error[0] = '\0';
        assert_int_equal(shard_split_parse(&s, bad[i], error), -EINVAL);
        assert_non_null(strstr(error, "expected iid, dirichlet:ALPHA"));
        assert_non_null(strstr(error, bad[i]));
    }
}

/* Fills owner[i] with the part or member that owns sample i. Each sample has exactly one owner. */
static void owners(const struct dataset *d, const char *spec, const uint64_t *keys, uint32_t n,
                   bool members, uint32_t owner[N])
{
    struct shard_split split = split_of(spec);
    struct shard_owners *o;
    static uint32_t sample[N];
    size_t total = 0;
    assert_int_equal(shard_owners_open(&o, d, &split, SEED), 0);
    assert_int_equal(members ? shard_owners_members(o, keys, n, keys[0]) : shard_owners_parts(o, n),
                     0);
    for (size_t i = 0; i < N; i++)
        owner[i] = UINT32_MAX;
    for (uint32_t k = 0; k < n; k++) {
        size_t count = shard_owners_count(o, members ? keys[k] : k);
        shard_owners_samples(o, members ? keys[k] : k, sample);
        for (size_t i = 0; i < count; i++) {
            assert_true(owner[sample[i]] == UINT32_MAX);
            owner[sample[i]] = k;
        }
        assert_true(members || count > 0);
        total += count;
    }
    assert_int_equal(total, N);
    shard_owners_close(o);
}

/* Returns the number of classes among the samples of owner k. *count: number of these samples. */
static uint32_t classes_of(const uint32_t owner[N], uint32_t k, size_t *count)
{
    bool seen[CLASSES] = {false};
    uint32_t n = 0;
    *count = 0;
    for (size_t i = 0; i < N; i++)
        if (owner[i] == k) {
            n += !seen[labels[i]];
            seen[labels[i]] = true;
            ++*count;
        }
    return n;
}

/* The split "label:K" sorts the samples by label and gives each part K pieces of equal size. In
 * this test a piece is smaller than a class, so it has one class, or two at a border between
 * classes. */
static void test_label_parts(void **state)
{
    (void)state;
    static const char *const specs[] = {"label:1", "label:2", "label:3"};
    static uint32_t owner[N], again[N];
    for (uint32_t k = 1; k <= 3; k++) {
        uint32_t total = 0;
        owners(&set, specs[k - 1], NULL, 20, false, owner);
        owners(&set, specs[k - 1], NULL, 20, false, again);
        assert_memory_equal(owner, again, sizeof owner);
        for (uint32_t p = 0; p < 20; p++) {
            size_t count;
            uint32_t n = classes_of(owner, p, &count);
            assert_true(n >= 1 && n <= 2 * k);
            assert_true(count >= N / 20 - k && count <= N / 20 + k);
            total += n;
        }
        /* The 20 parts have k pieces each, and a piece has at least one class. A border between two
         * classes adds one class to the piece in which it lies. There are CLASSES - 1 borders. */
        assert_true(total <= 20 * k + CLASSES - 1);
        /* The three pieces of a part are mostly of different classes. */
        assert_true(k < 3 || total > 45);
    }
}

/* If there are more pieces than samples, every sample still has an owner and no part is empty. */
static void test_label_crumbs(void **state)
{
    (void)state;
    static uint32_t owner[N];
    owners(&set, "label:100", NULL, 500, false, owner);
    owners(&set, "label:1", NULL, N, false, owner);
    owners(&set, "label:100", NULL, 1, false, owner);
}

static void test_file_parts(void **state)
{
    (void)state;
    static uint32_t owner[N];
    uint32_t of_file[FILES], n_files[FILES] = {0}, in_order = 0;
    for (uint32_t n = 1; n <= FILES; n += n < 4 ? 1 : 19) {
        owners(&set, "file", NULL, n, false, owner);
        memset(n_files, 0, sizeof n_files);
        memset(of_file, 255, sizeof of_file);
        for (size_t i = 0; i < N; i++) {
            uint32_t *at = &of_file[files[i]];
            if (*at == UINT32_MAX)
                n_files[owner[i]]++;
            assert_true(*at == UINT32_MAX || *at == owner[i]);
            *at = owner[i];
        }
        for (uint32_t p = 0; p < n; p++)
            assert_true(n_files[p] == FILES / n || n_files[p] == FILES / n + 1);
    }
    for (uint32_t f = 0; f < FILES; f++)
        in_order += of_file[f] == f;
    assert_true(in_order < FILES / 2); /* The files are assigned to parts in random order. */
    /* If there are more parts than files, each part without a file takes one sample from another
     * part. */
    owners(&set, "file", NULL, FILES + 9, false, owner);
}

/* In the split "label:K", if there are enough members, every class is owned by members that
 * selected it, and no member has more than K classes. If there are few members, the remaining
 * classes are shared by all. */
static void test_label_members(void **state)
{
    (void)state;
    static uint32_t owner[N];
    uint64_t keys[40];
    for (uint64_t i = 0; i < 40; i++)
        keys[i] = rng_at(9, i);
    owners(&set, "label:2", keys, 40, true, owner);
    size_t count, idle = 0;
    for (uint32_t k = 0; k < 40; k++) {
        uint32_t n = classes_of(owner, k, &count);
        assert_true(n <= 2);
        idle += n == 0;
    }
    assert_int_equal(idle, 0);
    owners(&set, "label:2", keys, 2, true, owner);
    assert_true(classes_of(owner, 0, &count) >= CLASSES - 4);
    /* If each member may have 100 labels, the split is almost like iid. */
    owners(&set, "label:100", keys, 3, true, owner);
    for (uint32_t k = 0; k < 3; k++) {
        assert_int_equal(classes_of(owner, k, &count), CLASSES);
        assert_true(count > N / 4 && count < N * 5 / 12);
    }
}

/* The death of a member moves only its own samples, and files stay whole. */
static void check_death(const char *spec)
{
    static uint32_t before[N], after[N], alone[N];
    uint64_t keys[6];
    for (uint64_t i = 0; i < 6; i++)
        keys[i] = rng_at(4, i);
    owners(&set, spec, keys, 6, true, before);
    owners(&set, spec, keys, 5, true, after);
    size_t moved = 0;
    for (size_t i = 0; i < N; i++) {
        assert_true(before[i] == 5 || before[i] == after[i]);
        moved += before[i] != after[i];
    }
    assert_true(moved > 0);
    struct shard_split split = split_of(spec);
    struct shard s;
    struct shard_config c = {
        .spec = {SHARD_AUTO, 0, 0}, .split = split, .seed = SEED, .local_steps = 1};
    assert_int_equal(shard_open(&s, &c, &set, error), 0);
    assert_int_equal(shard_members(&s, keys, 6, keys[2]), 0);
    assert_int_equal(shard_members(&s, keys, 5, keys[2]), 0);
    memset(alone, 0, sizeof alone);
    for (size_t i = 0; i < s.count; i++)
        alone[s.sample[i]] = 1;
    /* A shard that was opened before the member's death has the same samples as a shard opened
     * after it. */
    for (size_t i = 0; i < N; i++)
        assert_int_equal(alone[i], after[i] == 2);
    shard_close(&s);
}

static void test_death(void **state)
{
    (void)state;
    check_death("label:2");
    check_death("file");
}

static void test_file_members(void **state)
{
    (void)state;
    static uint32_t owner[N];
    uint64_t keys[5] = {7, 8, 9, 10, 11};
    uint32_t of_file[FILES], busy = 0;
    bool has[5] = {false};
    owners(&set, "file", keys, 5, true, owner);
    memset(of_file, 255, sizeof of_file);
    for (size_t i = 0; i < N; i++) {
        uint32_t *at = &of_file[files[i]];
        assert_true(*at == UINT32_MAX || *at == owner[i]);
        *at = owner[i];
        has[owner[i]] = true;
    }
    for (size_t k = 0; k < 5; k++)
        busy += has[k];
    assert_true(busy >= 4);
}

static int try_open(const struct dataset *d, const char *spec, enum shard_mode mode,
                    uint32_t n_parts)
{
    struct shard s;
    struct shard_config c = {
        .spec = {mode, 0, n_parts}, .split = split_of(spec), .seed = SEED, .local_steps = 1};
    error[0] = '\0';
    int err = shard_open(&s, &c, d, error);
    if (err == 0)
        shard_close(&s);
    return err;
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const by_label[] = {"dirichlet:0.5", "label:2"};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(try_open(&text, by_label[i], SHARD_PART, 2), -EINVAL);
        assert_non_null(strstr(error, "a text has no labels"));
        assert_non_null(strstr(error, by_label[i]));
        assert_int_equal(try_open(&text, by_label[i], SHARD_AUTO, 1), -EINVAL);
        assert_int_equal(try_open(&text, by_label[i], SHARD_OWN, 1), 0);
    }
    assert_int_equal(try_open(&text, "iid", SHARD_PART, 2), 0);
    assert_int_equal(try_open(&text, "file", SHARD_PART, 2), -EINVAL);
    assert_non_null(strstr(error, "found 2 parts, expected at most 1, the "
                                  "number of files"));
    assert_int_equal(try_open(&text, "file", SHARD_PART, 1), 0);
    assert_int_equal(try_open(&text, "file", SHARD_AUTO, 1), 0);
    assert_int_equal(try_open(&set, "file", SHARD_PART, FILES), 0);
    assert_int_equal(try_open(&set, "file", SHARD_PART, FILES + 1), -EINVAL);
    assert_int_equal(try_open(&set, "label:2", SHARD_PART, N + 1), -EINVAL);
    assert_non_null(strstr(error, "the number of samples"));
}

/* Labels may be larger than 255, and some classes may have no samples. */
static void test_many_classes(void **state)
{
    (void)state;
    static uint16_t wide[N];
    static uint32_t owner[N];
    struct dataset many = {.kind = "csv/1x4096/0",
                           .n = N,
                           .labels = wide,
                           .shape = {DATA_ROWS, 1, 1, 1, DATA_CLASSES_MAX}};
    for (size_t i = 0; i < N; i++)
        wide[i] = (uint16_t)(rng_at(5, i) % 3 + DATA_CLASSES_MAX - 3);
    uint64_t keys[3] = {1, 2, 3};
    static const char *const specs[] = {"label:1", "dirichlet:0.1"};
    for (size_t k = 0; k < 2; k++) {
        owners(&many, specs[k], NULL, 3, false, owner);
        owners(&many, specs[k], keys, 3, true, owner);
    }
}

static int setup(void **state)
{
    (void)state;
    for (size_t i = 0; i < N; i++) {
        labels[i] = (uint16_t)(rng_at(1, i) % CLASSES);
        files[i] = (uint32_t)(i * FILES / N);
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),       cmocka_unit_test(test_bad_texts),
        cmocka_unit_test(test_label_parts), cmocka_unit_test(test_label_crumbs),
        cmocka_unit_test(test_file_parts),  cmocka_unit_test(test_label_members),
        cmocka_unit_test(test_death),       cmocka_unit_test(test_file_members),
        cmocka_unit_test(test_refused),     cmocka_unit_test(test_many_classes),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
