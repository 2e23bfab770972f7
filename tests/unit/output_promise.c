/* tests/unit/output_promise.c -- tests of peer/output/promise.h: only a promise that is read exactly
 * as it was stored is used. */
#include "peer/output/promise.h"

#include "peer/node/finish/finish.h"
#include "peer/secure/hash.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[32], path[64];
static uint8_t stored[PROMISE_MAX], file[PROMISE_MAX + HASH_BYTES + 1];

static int make_directory(void **state)
{
    (void)state;
    strcpy(dir, "promise-XXXXXX");
    if (mkdtemp(dir) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/promise", dir);
    for (size_t i = 0; i < sizeof stored; i++)
        stored[i] = (uint8_t)(7 * i + i / 256);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    promise_remove(dir);
    return rmdir(dir);
}

/* Replaces the contents of the file by the first n bytes of file[]. */
static void put(size_t n)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(file, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* Reads the file into file[], and returns its length. */
static size_t get(void)
{
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t n = fread(file, 1, sizeof file, f);
    assert_int_equal(fclose(f), 0);
    return n;
}

/* Returns whether the promise in the file is refused. The result of promise_read() is then no
 * promise of the finish protocol. */
static bool is_refused(void)
{
    struct promise p;
    promise_read(&p, dir);
    if (p.n != 1)
        return false;
    struct bytes b = {p.bytes, p.n};
    assert_int_equal(finish_reported_hash(b), 0);
    assert_false(finish_promise_is_decided(b));
    return true;
}

static void test_a_stored_promise_is_read_again(void **state)
{
    static const size_t lengths[] = {1, FINISH_PROMISE_HEAD, FINISH_PROMISE_MAX, PROMISE_MAX};
    struct promise p;
    (void)state;
    promise_read(&p, dir);
    assert_int_equal(p.n, 0);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        assert_int_equal(promise_write(dir, stored, lengths[i]), 0);
        promise_read(&p, dir);
        assert_int_equal(p.n, lengths[i]);
        assert_memory_equal(p.bytes, stored, p.n);
    }
    promise_remove(dir);
    promise_read(&p, dir);
    assert_int_equal(p.n, 0);
}

static void test_a_flipped_bit_is_refused(void **state)
{
    (void)state;
    assert_int_equal(promise_write(dir, stored, FINISH_PROMISE_HEAD + 75), 0);
    size_t n = get();
    for (size_t bit = 0; bit < 8 * n; bit++) {
        file[bit / 8] ^= (uint8_t)(1U << bit % 8);
        put(n);
        assert_true(is_refused());
        file[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    put(n);
    assert_false(is_refused());
}

static void test_another_length_is_refused(void **state)
{
    (void)state;
    assert_int_equal(promise_write(dir, stored, FINISH_PROMISE_HEAD + 75), 0);
    size_t n = get();
    for (size_t shorter = 0; shorter < n; shorter++) {
        put(shorter);
        assert_true(is_refused());
    }
    file[n] = 0;
    put(n + 1);
    assert_true(is_refused());
    put(sizeof file);
    assert_true(is_refused());
}

/* Earlier versions stored the promise without a hash. */
static void test_a_promise_without_a_hash_is_refused(void **state)
{
    (void)state;
    memcpy(file, stored, FINISH_PROMISE_HEAD + 75);
    put(FINISH_PROMISE_HEAD + 75);
    assert_true(is_refused());
}

static void test_a_file_that_cannot_be_read_is_refused(void **state)
{
    (void)state;
    assert_int_equal(symlink("promise", path), 0); /* Opening this link fails with ELOOP. */
    assert_true(is_refused());
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_stored_promise_is_read_again, make_directory,
                                        remove_directory),
        cmocka_unit_test_setup_teardown(test_a_flipped_bit_is_refused, make_directory,
                                        remove_directory),
        cmocka_unit_test_setup_teardown(test_another_length_is_refused, make_directory,
                                        remove_directory),
        cmocka_unit_test_setup_teardown(test_a_promise_without_a_hash_is_refused, make_directory,
                                        remove_directory),
        cmocka_unit_test_setup_teardown(test_a_file_that_cannot_be_read_is_refused, make_directory,
                                        remove_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
