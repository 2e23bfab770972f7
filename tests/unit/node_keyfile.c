/* tests/unit/node_keyfile.c -- tests of peer/secure/keyfile.h: reading and writing of key files. */
#include "peer/secure/keyfile.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[64], path[128], error[KEYFILE_ERROR_MAX];
static uint8_t key[KEYFILE_BYTES], zero[KEYFILE_BYTES];

static const char hex[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

static int make_dir(void **state)
{
    (void)state;
    strcpy(dir, "keyfile-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof path, "%s/key", dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir);
}

static void put(const char *text, size_t n, mode_t mode)
{
    unlink(path);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void refuse(const char *want)
{
    memset(key, 1, sizeof key);
    assert_int_equal(keyfile_read(path, key, error), -EINVAL);
    assert_memory_equal(key, zero, sizeof key);
    if (!strstr(error, want))
        fail_msg("'%s' does not say '%s'", error, want);
    assert_ptr_equal(strstr(error, path), error);
    /* The error message does not contain any part of the key. */
    assert_null(strstr(error, "0a0b0c"));
}

static void test_round_trip(void **state)
{
    (void)state;
    uint8_t written[KEYFILE_BYTES];
    struct stat st;
    for (size_t i = 0; i < sizeof written; i++)
        written[i] = (uint8_t)(250 - 7 * i);
    unlink(path);
    mode_t mask = umask(0);
    assert_int_equal(keyfile_write(path, written, error), 0);
    umask(mask);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(st.st_size, 65);
    assert_int_equal(keyfile_read(path, key, error), 0);
    assert_memory_equal(key, written, sizeof key);
    /* A second write to the same file is refused, and the file is unchanged. */
    memset(written, 9, sizeof written);
    assert_int_equal(keyfile_write(path, written, error), -EEXIST);
    assert_non_null(strstr(error, "exists"));
    uint8_t again[KEYFILE_BYTES];
    assert_int_equal(keyfile_read(path, again, error), 0);
    assert_memory_equal(again, key, sizeof key);
}

static void test_reads_hex(void **state)
{
    (void)state;
    put(hex, 64, 0600); /* A file without a final newline is valid. */
    assert_int_equal(keyfile_read(path, key, error), 0);
    for (size_t i = 0; i < sizeof key; i++)
        assert_int_equal(key[i], i);
    put("FF0102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F\n", 65, 0400);
    assert_int_equal(keyfile_read(path, key, error), 0);
    assert_int_equal(key[0], 0xff);
}

static void test_refused(void **state)
{
    (void)state;
    static const mode_t modes[] = {0644, 0640, 0604, 0660, 0610, 0602, 0};
    for (size_t i = 0; modes[i]; i++) {
        put(hex, 64, modes[i]);
        char want[64];
        snprintf(want, sizeof want, "mode %04o, expected 0600 (chmod 600 ", (unsigned)modes[i]);
        refuse(want);
    }
    char text[128];
    snprintf(text, sizeof text, "%s\n\n", hex);
    put(text, 66, 0600);
    refuse("66 bytes, expected 64");
    put(hex, 63, 0600);
    refuse("63 bytes, expected 64");
    put("", 0, 0600);
    refuse("0 bytes, expected 64");
    snprintf(text, sizeof text, "%sz", hex);
    put(text, 65, 0600);
    refuse("65 bytes");
    snprintf(text, sizeof text, "%s", hex);
    text[40] = 'g';
    put(text, 64, 0600);
    refuse("hexadecimal");
    text[40] = '\0';
    put(text, 64, 0600);
    refuse("hexadecimal");
}

static void test_no_file(void **state)
{
    (void)state;
    unlink(path);
    assert_int_equal(keyfile_read(path, key, error), -ENOENT);
    assert_int_equal(keyfile_read(dir, key, error), -EINVAL);
    assert_non_null(strstr(error, "regular"));
    /* No process writes to the FIFO, and reading must not block. */
    assert_int_equal(mkfifo(path, 0600), 0);
    refuse("found a named pipe, expected a regular file");
    unlink(path);
    assert_int_equal(mknod(path, S_IFSOCK | 0600, 0), 0);
    refuse("found a socket, expected a regular file");
    assert_int_equal(keyfile_write("no-such-dir/key", key, error), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_reads_hex),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_no_file),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
