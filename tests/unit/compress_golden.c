/* tests/unit/compress_golden.c -- compares hashes of messages with a table, so that every build
 * gives the same bytes.
 *
 * Replicas are equal because all peers encode and decode alike, whatever the compiler, the
 * instruction set (plain, AVX2, AVX-512) and the machine. This test checks that in each build. It
 * also detects a changed wire format. If the change is intended, print the new table:
 *
 *   test_compress_golden print > tests/golden/compress_hashes.h */
#include "tests/golden/compress_hashes.h"
#include "tests/unit/compress_specs.h"
#include "tests/unit/compress_vectors.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { N = 5000, ROUNDS = 3 };

static float x[N], x_hat[N];
static struct tested list[SPECS_MAX];
static size_t n_specs;

/* Fills a vector with roughly normal values: sums of uniform numbers, every 50th value ten times
 * as large. The mathematical library is not used, because its last bits differ between machines. */
static void fill(float *v, uint64_t key)
{
    for (uint64_t i = 0; i < N; i++) {
        int64_t sum = 0;
        for (uint64_t j = 0; j < 8; j++)
            sum += (int64_t)(rng_at(key, 8 * i + j) >> 44) - (1 << 19);
        v[i] = (float)sum * (i % 50 == 7 ? 10.0f : 1.0f) * 0x1p-21f;
    }
}

/* Returns whether a codec's messages are equal on all machines. Messages of atomo are not: they
 * depend on singular vectors from LAPACK, whose last bits differ between machines. This does no
 * harm, because only the sender computes singular vectors. */
static bool has_one_message(const struct tested *t)
{
    return strcmp(t->codec->name, "atomo") != 0;
}

/* Returns a hash of the messages and replicas of a few rounds. */
static uint64_t hash_of(const char *spec)
{
    static const struct segment s[] = {
        {.offset = 0, .n = 2000, .rows = 40, .cols = 50},
        {.offset = 2000, .n = 1003, .rows = 1, .cols = 1003},
        {.offset = 3003, .n = 1900, .rows = 19, .cols = 100},
        {.offset = 4903, .n = 97, .rows = 97, .cols = 1},
    };
    struct bench_rig r;
    uint64_t hash = 0;
    rig_open_model(&r, spec, s, 4);
    fill(x_hat, 1);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct compress_input in = {.draw = round, .round = round, .x = x, .x_hat = x_hat};
        fill(x, 2 + round);
        assert_int_equal(compress_encode(r.c, &in, r.bytes, &r.len, &r.stat), 0);
        assert_true(compress_validate(r.c, r.bytes, r.len));
        compress_apply(r.c, r.bytes, r.len, x_hat);
        hash = 31 * hash + rng_hash(r.bytes, r.len);
        hash = 31 * hash + vec_hash(x_hat, N);
    }
    rig_close(&r);
    return hash;
}

static void test_hashes(void **state)
{
    (void)state;
    size_t n_golden = sizeof golden_hashes / sizeof golden_hashes[0];
    size_t wrong = 0;
    for (size_t i = 0; i < n_specs; i++) {
        size_t j = 0;
        if (!has_one_message(&list[i]))
            continue;
        while (j < n_golden && strcmp(golden_hashes[j].spec, list[i].spec) != 0)
            j++;
        uint64_t hash = hash_of(list[i].spec);
        if (j < n_golden && golden_hashes[j].hash == hash)
            continue;
        wrong++;
        print_error("%s: %016llx, expected %016llx\n", list[i].spec, (unsigned long long)hash,
                    j < n_golden ? (unsigned long long)golden_hashes[j].hash : 0ull);
    }
    assert_int_equal(wrong, 0);
}

static int print_table(void)
{
    printf("/* tests/golden/compress_hashes.h -- hashes of the messages and replicas of each\n"
           " * compressor. Printed by tests/unit/compress_golden.c. */\n"
           "#ifndef TESTS_GOLDEN_COMPRESS_HASHES_H\n"
           "#define TESTS_GOLDEN_COMPRESS_HASHES_H\n\n"
           "#include <stdint.h>\n\n"
           "static const struct\n{\n    const char *spec;\n    uint64_t hash;\n"
           "} golden_hashes[] = {\n");
    for (size_t i = 0; i < n_specs; i++)
        if (has_one_message(&list[i]))
            printf("    {\"%s\", 0x%016llxu},\n", list[i].spec,
                   (unsigned long long)hash_of(list[i].spec));
    printf("};\n\n#endif\n");
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hashes),
    };
    n_specs = specs_all(list);
    if (argc == 2 && strcmp(argv[1], "print") == 0)
        return print_table();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
