/* tests/unit/uvdriver_writer.c -- tests the thread that writes checkpoints.
 *
 * A checkpoint is written, refused while another one is written, fails with a message, or is
 * finished or abandoned at the end. */
#include "peer/uv/writer.h"

#include "checkpoint_small.h"
#include "nn_scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { LONG_US = 600 * 1000 * 1000, MOST = 64 << 20, LARGE = 10 << 20 };

/* A disk that passes calls to the real disk, and can make one of them wait or fail. */
struct slow_disk
{
    struct disk below, disk;
    /* sync() posts the semaphore at_sync on entry. If wait_in_sync is set, sync() then waits for
     * the semaphore go_on. */
    uv_sem_t at_sync, go_on;
    bool wait_in_sync;
    int create_err;
    const atomic_bool *wait_in_write_for; /* write() waits until this flag is set. NULL: no wait. */
};

struct world
{
    struct scratch scratch;
    struct slow_disk slow;
    struct checkpoint_store slots;
    uv_loop_t loop;
    struct uv_writer writer;
    struct state state;
    struct uv_writer_result result; /* Result of the last write of a checkpoint. */
    int n_done;
};

/* The test state is static, because a writer thread that was abandoned may still use it. */
static struct world w;

static int slow_create(void *self, const char *name)
{
    struct slow_disk *d = self;
    return d->create_err < 0 ? d->create_err : d->below.create(d->below.self, name);
}

static int slow_write(void *self, int file, const void *p, size_t n)
{
    struct slow_disk *d = self;
    while (d->wait_in_write_for != NULL && !atomic_load(d->wait_in_write_for))
        uv_sleep(1);
    return d->below.write(d->below.self, file, p, n);
}

static int slow_sync(void *self, int file)
{
    struct slow_disk *d = self;
    if (d->wait_in_sync) {
        uv_sem_post(&d->at_sync);
        uv_sem_wait(&d->go_on);
    }
    return d->below.sync(d->below.self, file);
}

static int slow_close(void *self, int file)
{
    struct slow_disk *d = self;
    return d->below.close(d->below.self, file);
}

static int slow_rename(void *self, const char *from, const char *to)
{
    struct slow_disk *d = self;
    return d->below.rename(d->below.self, from, to);
}

static int slow_unlink(void *self, const char *name)
{
    struct slow_disk *d = self;
    return d->below.unlink(d->below.self, name);
}

static int slow_sync_dir(void *self)
{
    struct slow_disk *d = self;
    return d->below.sync_dir(d->below.self);
}

static int slow_read(void *self, const char *name, uint64_t most, uint8_t **bytes, size_t *n)
{
    struct slow_disk *d = self;
    return d->below.read(d->below.self, name, most, bytes, n);
}

static void on_done(void *self, const struct uv_writer_result *r)
{
    struct world *world = self;
    world->result = *r;
    world->n_done++;
}

static int setup(void **unused)
{
    (void)unused;
    w = (struct world){0};
    scratch_open(&w.scratch);
    assert_int_equal(disk_open(&w.slow.below, w.scratch.dir), 0);
    w.slow.disk = (struct disk){.self = &w.slow,
                                .create = slow_create,
                                .write = slow_write,
                                .sync = slow_sync,
                                .close = slow_close,
                                .rename = slow_rename,
                                .unlink = slow_unlink,
                                .sync_dir = slow_sync_dir,
                                .read = slow_read};
    assert_int_equal(uv_sem_init(&w.slow.at_sync, 0), 0);
    assert_int_equal(uv_sem_init(&w.slow.go_on, 0), 0);
    checkpoint_store_open(&w.slots, &w.slow.disk, w.scratch.dir);
    assert_int_equal(uv_loop_init(&w.loop), 0);
    assert_int_equal(uv_writer_open(&w.writer, &w.loop, &w.slots, on_done, &w), 0);
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    if (w.writer.job != NULL)
        assert_int_equal(uv_writer_close(&w.writer, LONG_US, LONG_US, NULL, NULL), 0);
    uv_run(&w.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w.loop), 0);
    checkpoint_store_close(&w.slots);
    state_close(&w.state);
    disk_close(&w.slow.below);
    uv_sem_destroy(&w.slow.at_sync);
    uv_sem_destroy(&w.slow.go_on);
    scratch_count(&w.scratch, 1);
    rmdir(w.scratch.dir);
    return 0;
}

static int keep(uint64_t beat)
{
    struct checkpoint_file_label label = small_label(beat);
    small_state(&w.state, beat);
    return uv_writer_keep(&w.writer, &w.state, &label);
}

static void wait_until_done(int n)
{
    while (w.n_done < n)
        uv_run(&w.loop, UV_RUN_ONCE);
}

/* Returns the step of the newest checkpoint on the disk, and in *n their number. 0: none. */
static uint64_t newest(size_t *n)
{
    struct checkpoint_store_found f;
    struct checkpoint_store s;
    checkpoint_store_open(&s, &w.slow.disk, w.scratch.dir);
    checkpoint_store_load(&s, MOST, &f);
    uint64_t beat = f.n > 0 ? f.image[0].label.beat : 0;
    assert_true(f.n == 0 || beat == 99 || small_is(&f.image[0].state, beat));
    assert_int_equal(f.n_bad, 0);
    *n = f.n;
    checkpoint_store_found_close(&f);
    checkpoint_store_close(&s);
    return beat;
}

static void test_kept(void **unused)
{
    (void)unused;
    size_t n;
    for (int i = 1; i <= 4; i++) {
        const uint8_t *given;
        struct checkpoint_file_label label = small_label((uint64_t)i);
        small_state(&w.state, (uint64_t)i);
        given = w.state.bytes;
        assert_int_equal(uv_writer_keep(&w.writer, &w.state, &label), 0);
        assert_true(w.state.bytes != given && w.state.n == 0 && w.state.n_sections == 0);
        /* Writer and state exchange buffers. From the second write on, the state gets the buffer of
         * the previous checkpoint. */
        assert_true((w.state.bytes != NULL) == (i > 1));
        wait_until_done(i);
        assert_int_equal(w.result.err, 0);
        assert_true(w.result.beat == (uint64_t)i && w.result.n_bytes > 500);
        assert_non_null(strstr(w.result.why, "safetensors: stored step "));
        assert_true(newest(&n) == (uint64_t)i);
        assert_int_equal(n, i == 1 ? 1 : 2);
        assert_int_equal(scratch_count(&w.scratch, 0), n);
    }
    assert_true(w.writer.n_kept == 4 && w.writer.n_failed == 0);
    assert_true(w.writer.cpu_us > 0 && w.writer.cpu_us <= w.writer.time_us + 4 * 1000);
    assert_true(w.writer.n_bytes == 4 * w.result.n_bytes);
}

static void test_one_at_a_time(void **unused)
{
    (void)unused;
    size_t n;
    w.slow.wait_in_sync = true;
    assert_false(uv_writer_busy(&w.writer));
    assert_int_equal(keep(1), 0);
    uv_sem_wait(&w.slow.at_sync);
    assert_true(uv_writer_busy(&w.writer));
    small_state(&w.state, 2);
    struct state before = w.state;
    struct checkpoint_file_label label = small_label(2);
    assert_int_equal(uv_writer_keep(&w.writer, &w.state, &label), -EBUSY);
    assert_memory_equal(&w.state, &before, sizeof before);
    uv_sem_post(&w.slow.go_on);
    wait_until_done(1);
    assert_true(w.result.err == 0 && w.result.beat == 1);
    uv_sem_post(&w.slow.go_on);
    assert_int_equal(uv_writer_keep(&w.writer, &w.state, &label), 0);
    wait_until_done(2);
    assert_true(w.result.err == 0 && w.result.beat == 2 && newest(&n) == 2);
}

static void test_all_texts_of_the_label_are_kept(void **unused)
{
    struct checkpoint_store_found f;
    struct checkpoint_store s;
    struct checkpoint_file_label label = small_label(3);
    (void)unused;
    label.owner = "0123456789abcdef";
    label.trained_on = "fedcba9876543210 0.1";
    small_state(&w.state, 3);
    assert_int_equal(uv_writer_keep(&w.writer, &w.state, &label), 0);
    wait_until_done(1);
    checkpoint_store_open(&s, &w.slow.disk, w.scratch.dir);
    checkpoint_store_load(&s, MOST, &f);
    assert_int_equal(f.n, 1);
    assert_string_equal(f.image[0].label.run, label.run);
    assert_string_equal(f.image[0].label.name, label.name);
    assert_string_equal(f.image[0].label.owner, label.owner);
    assert_string_equal(f.image[0].label.trained_on, label.trained_on);
    assert_string_equal(checkpoint_store_owner(&f), label.owner);
    checkpoint_store_found_close(&f);
    checkpoint_store_close(&s);
}

static void test_a_failure_is_said(void **unused)
{
    (void)unused;
    size_t n;
    assert_int_equal(keep(1), 0);
    wait_until_done(1);
    w.slow.create_err = -ENOSPC;
    assert_int_equal(keep(2), 0);
    wait_until_done(2);
    assert_true(w.result.err == -ENOSPC && w.result.beat == 2 && w.result.n_bytes == 0);
    assert_non_null(strstr(w.result.why, "checkpoint-1.safetensors: cannot write: No space left"));
    assert_true(w.writer.n_kept == 1 && w.writer.n_failed == 1);
    assert_true(newest(&n) == 1);
    w.slow.create_err = 0;
    assert_int_equal(keep(3), 0);
    wait_until_done(3);
    assert_true(w.result.err == 0 && newest(&n) == 3);
}

static void test_finished_at_the_end(void **unused)
{
    (void)unused;
    struct uv_writer_result r;
    bool last;
    size_t n;
    assert_int_equal(keep(7), 0);
    assert_int_equal(uv_writer_close(&w.writer, LONG_US, 0, &r, &last), 0);
    assert_true(last && r.err == 0 && r.beat == 7 && w.writer.n_kept == 1);
    assert_true(newest(&n) == 7);
    uv_run(&w.loop, UV_RUN_DEFAULT);
    assert_int_equal(w.n_done, 0);
}

static void test_nothing_at_the_end(void **unused)
{
    (void)unused;
    bool last;
    assert_int_equal(keep(7), 0);
    wait_until_done(1);
    assert_int_equal(uv_writer_close(&w.writer, LONG_US, 0, NULL, &last), 0);
    assert_false(last);
}

static void test_given_up_at_the_end(void **unused)
{
    (void)unused;
    static uint8_t large[LARGE];
    struct checkpoint_file_label label = small_label(99);
    struct uv_writer_result r;
    bool last;
    size_t n;
    w.slow.wait_in_write_for = &w.slots.stop;
    state_write(&w.state);
    state_section(&w.state, "large");
    state_bytes(&w.state, large, sizeof large);
    assert_int_equal(state_end(&w.state), 0);
    assert_int_equal(uv_writer_keep(&w.writer, &w.state, &label), 0);
    assert_int_equal(uv_writer_close(&w.writer, 0, LONG_US, &r, &last), 0);
    assert_true(last && r.err == -ECANCELED && strlen(r.why) > 8);
    assert_true(newest(&n) == 0);
    assert_int_equal(scratch_count(&w.scratch, 0), 0);
}

static void test_a_disk_that_does_not_answer(void **unused)
{
    (void)unused;
    struct uv_writer_result r;
    bool last;
    size_t n;
    w.slow.wait_in_sync = true;
    assert_int_equal(keep(5), 0);
    uv_sem_wait(&w.slow.at_sync);
    assert_int_equal(uv_writer_close(&w.writer, 0, 1, &r, &last), -ETIMEDOUT);
    assert_false(last);
    uv_sem_post(&w.slow.go_on);
    assert_int_equal(uv_writer_close(&w.writer, LONG_US, LONG_US, &r, &last), 0);
    /* The write has ended, so its checkpoint must be complete. */
    assert_true(last && r.err == 0 && newest(&n) == 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_at_a_time, setup, teardown),
        cmocka_unit_test_setup_teardown(test_all_texts_of_the_label_are_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_failure_is_said, setup, teardown),
        cmocka_unit_test_setup_teardown(test_finished_at_the_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_at_the_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_given_up_at_the_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_disk_that_does_not_answer, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
