/* tests/unit/checkpoint_store.c -- tests of checkpoints in a directory: links and other files that
 * have the name of a checkpoint, and a limit on file sizes. With a directory as argument, the
 * program writes checkpoints there until it is killed (tests/e2e/checkpoint.sh). */
#include "peer/checkpoints/checkpoint_store.h"

#include "checkpoint_small.h"
#include "nn_scratch.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { MOST = 1 << 20 };

static struct scratch dir;
static struct disk disk;
static struct checkpoint_store s;
static struct state state;
static char error[FILE_ERROR_MAX];

static int setup(void **unused)
{
    (void)unused;
    scratch_open(&dir);
    assert_int_equal(disk_open(&disk, dir.dir), 0);
    checkpoint_store_open(&s, &disk, dir.dir);
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    checkpoint_store_close(&s);
    state_close(&state);
    disk_close(&disk);
    scratch_count(&dir, 1);
    rmdir(dir.dir);
    return 0;
}

static int keep(uint64_t beat)
{
    struct checkpoint_file_label label = small_label(beat);
    small_state(&state, beat);
    return checkpoint_store_write(&s, &state, &label, error);
}

/* Checks that the file in slot 0 is refused with a message that contains `words`, and that slot
 * 1 still holds step 2. */
static void bad_slot_0(const char *words)
{
    struct checkpoint_store_found f;
    checkpoint_store_load(&s, MOST, &f);
    if (f.n_bad != 1 || strstr(f.bad[0].why, words) == NULL)
        fail_msg("%zu bad: %s", f.n_bad, f.n_bad > 0 ? f.bad[0].why : "");
    assert_int_equal(f.bad[0].slot, 0);
    assert_true(f.n == 1 && f.image[0].label.beat == 2 && small_is(&f.image[0].state, 2));
    checkpoint_store_found_close(&f);
}

static void test_what_may_lie_there(void **unused)
{
    (void)unused;
    char path[800];
    for (uint64_t beat = 1; beat <= 2; beat++)
        assert_int_equal(keep(beat), 0);
    snprintf(path, sizeof path, "%s", scratch_path(&dir, checkpoint_store_name(0)));
    scratch_put(&dir, checkpoint_store_name(0), "", 0);
    bad_slot_0("not a safetensors file: found 0 bytes");
    unlink(path);
    assert_int_equal(symlink(checkpoint_store_name(1), path), 0);
    bad_slot_0("found a symbolic link, expected a regular file");
    assert_int_equal(keep(3), -EEXIST);
    assert_int_equal(unlink(path), 0); /* The symbolic link must still exist. */
    assert_int_equal(symlink(checkpoint_store_name(1), path), 0);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    bad_slot_0("found a special file, expected a regular file");
    assert_int_equal(keep(3), -EEXIST); /* The checkpoint store replaces regular files only. */
    bad_slot_0("found a special file, expected a regular file");
    unlink(path);
    assert_int_equal(keep(3), 0);
    struct checkpoint_store_found f;
    checkpoint_store_load(&s, MOST, &f);
    assert_true(f.n == 2 && f.image[0].label.beat == 3);
    checkpoint_store_found_close(&f);
}

static void test_a_directory(void **unused)
{
    (void)unused;
    for (uint64_t beat = 1; beat <= 2; beat++)
        assert_int_equal(keep(beat), 0);
    scratch_remove(&dir, checkpoint_store_name(0));
    assert_int_equal(mkdir(scratch_path(&dir, checkpoint_store_name(0)), 0700), 0);
    bad_slot_0("found a directory, expected a regular file");
    assert_int_equal(keep(3), -EISDIR);
    assert_non_null(strstr(error, "cannot write: Is a directory"));
    assert_int_equal(scratch_count(&dir, 0), 2);
    rmdir(scratch_path(&dir, checkpoint_store_name(0)));
    assert_int_equal(keep(3), 0);
}

/* Stores two checkpoints of the peer "a", the second one with the owner key `owner` (NULL: no key).
 * Then opens them as a peer with the name own_name and the key own_key. words: NULL: both
 * checkpoints must be accepted. Else: part of the expected error message. */
static void check_owner(const char *owner, const char *own_name, const char *own_key,
                        const char *words)
{
    struct checkpoint_store_found f;
    struct checkpoint_file_label label = small_label(2), own = {.name = own_name, .owner = own_key};
    bool unowned;
    assert_int_equal(keep(1), 0);
    label.owner = owner;
    small_state(&state, 2);
    assert_int_equal(checkpoint_store_write(&s, &state, &label, error), 0);
    checkpoint_store_load(&s, MOST, &f);
    assert_int_equal(f.n, 2);
    int err = checkpoint_store_check_owner(&s, &f, &own, &unowned, error);
    assert_int_equal(err, words != NULL ? -EINVAL : 0);
    if (words != NULL && strstr(error, words) == NULL)
        fail_msg("%s", error);
    assert_true(words != NULL || unowned);
    checkpoint_store_found_close(&f);
}

static void test_the_owner(void **unused)
{
    (void)unused;
    check_owner(NULL, "a", "0123456789", NULL);
    check_owner("0123456789", "a", "0123456789", NULL);
    /* This peer was started without --name. */
    check_owner("0123456789", NULL, "0123456789", NULL);
    check_owner("0123456789", "a", "0123456780",
                "found a checkpoint of a (key 01234567), expected one of a (key 01234567); start "
                "each peer with its own directory");
    check_owner("0123456789", NULL, "ab23456789", "expected one of this peer (key ab234567)");
    check_owner(
        NULL, "b", "0123456789",
        "found a checkpoint of a, expected one of b (key 01234567); start the peer with the "
        "name that it had");
    check_owner("\x1b[2J", "a", "0123456789", "found a checkpoint of a (key \\x1b[2J)");
}

/* A peer was started again under another name, so its two checkpoints contain different names. Both
 * contain the same owner key, and are therefore accepted under any name. */
static void test_an_owner_with_two_names(void **unused)
{
    (void)unused;
    struct checkpoint_store_found f;
    const char *const names[] = {"a", "b"}, *const own_names[] = {"a", "b", "c", NULL};
    bool unowned;
    for (uint64_t beat = 1; beat <= 2; beat++) {
        struct checkpoint_file_label label = small_label(beat);
        label.name = names[beat - 1];
        label.owner = "0123456789";
        small_state(&state, beat);
        assert_int_equal(checkpoint_store_write(&s, &state, &label, error), 0);
    }
    checkpoint_store_load(&s, MOST, &f);
    assert_int_equal(f.n, 2);
    for (size_t i = 0; i < 4; i++) {
        struct checkpoint_file_label own = {.name = own_names[i], .owner = "0123456789"};
        assert_int_equal(checkpoint_store_check_owner(&s, &f, &own, &unowned, error), 0);
        assert_false(unowned);
    }
    checkpoint_store_found_close(&f);
}

/* A killed process has left a temporary file, which the next start deletes. */
static void test_a_temporary_one(void **unused)
{
    (void)unused;
    struct checkpoint_store_found f;
    assert_int_equal(keep(1), 0);
    scratch_put(&dir, "checkpoint.tmp", "half", 4);
    checkpoint_store_load(&s, MOST, &f);
    assert_true(f.n == 1 && f.n_bad == 0);
    checkpoint_store_found_close(&f);
    assert_int_equal(scratch_count(&dir, 0), 1);
}

static void test_files_that_may_not_grow(void **unused)
{
    (void)unused;
    struct rlimit before, small = {.rlim_cur = 200};
    struct checkpoint_store_found f;
    for (uint64_t beat = 1; beat <= 2; beat++)
        assert_int_equal(keep(beat), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int err = keep(3);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(err, -EFBIG);
    assert_int_equal(scratch_count(&dir, 0), 2);
    checkpoint_store_load(&s, MOST, &f);
    assert_true(f.n == 2 && f.image[0].label.beat == 2);
    checkpoint_store_found_close(&f);
    assert_int_equal(keep(3), 0);
}

static void test_no_directory(void **unused)
{
    (void)unused;
    struct disk d;
    assert_int_equal(disk_open(&d, scratch_path(&dir, "none")), -ENOENT);
}

/* Continues from the stored state for `beats` steps, and prints each stored checkpoint. Returns 1
 * if the stored state is wrong, 2 if the directory cannot be opened. */
static int drive(const char *path, uint64_t beats)
{
    struct checkpoint_store_found f;
    uint64_t beat = 0;
    if (disk_open(&disk, path) < 0)
        return 2;
    checkpoint_store_open(&s, &disk, path);
    checkpoint_store_load(&s, MOST, &f);
    for (size_t i = 0; i < f.n_bad; i++)
        printf("bad %s\n", f.bad[i].why);
    if (f.n > 0 && small_is(&f.image[0].state, f.image[0].label.beat))
        beat = f.image[0].label.beat;
    int err = f.n_bad > 0 || (f.n > 0 && beat == 0);
    printf("found %" PRIu64 "\n", beat);
    checkpoint_store_found_close(&f);
    for (uint64_t i = 0; i < beats && err == 0; i++) {
        beat++;
        if (keep(beat) == 0)
            printf("kept %" PRIu64 "\n", beat);
        else
            printf("failed %s\n", error);
        fflush(stdout);
    }
    checkpoint_store_close(&s);
    state_close(&state);
    disk_close(&disk);
    return err;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_may_lie_there, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_directory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_owner, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_owner_with_two_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_temporary_one, setup, teardown),
        cmocka_unit_test_setup_teardown(test_files_that_may_not_grow, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_directory, setup, teardown),
    };
    if (argc == 3)
        return drive(argv[1], strtoull(argv[2], NULL, 10));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
