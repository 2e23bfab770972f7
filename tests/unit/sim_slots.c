/* tests/unit/sim_slots.c -- the two slots of the checkpoint store on disks that crash, fail, fill
 * up and corrupt data.
 *
 * A checkpoint that was reported as stored must be found again, and nothing else. SEED=N replays
 * one seed. SEEDS=N sets the number of seeds. */
#include "peer/checkpoints/checkpoint_store.h"

#include "peer/sim/disk.h"

#include "checkpoint_small.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { CRASHES = 10000, LIVES = 6, TRIES = 8, MOST = 1 << 20 };

/* A peer, its simulated disk, and the checkpoints that were reported as stored. */
struct world
{
    struct sim_disk d;
    struct checkpoint_store s;
    struct state state;
    uint64_t beat;   /* Step of the last checkpoint that the peer tried to write, stored or not. */
    uint64_t kept;   /* Step of the last checkpoint that was reported as stored. 0: none. */
    uint64_t before; /* Step of the second last checkpoint that was reported as stored. 0: none. */
    char error[FILE_ERROR_MAX];
};

static void world_open(struct world *w, uint64_t seed)
{
    *w = (struct world){0};
    sim_disk_open(&w->d, seed);
    checkpoint_store_open(&w->s, &w->d.disk, "out");
}

static void world_close(struct world *w)
{
    checkpoint_store_close(&w->s);
    sim_disk_close(&w->d);
    state_close(&w->state);
}

/* Advances the peer by one step and writes a checkpoint. Returns 0 or a negative errno. */
static int keep(struct world *w)
{
    struct checkpoint_file_label label = small_label(++w->beat);
    small_state(&w->state, w->beat);
    strcpy(w->error, "");
    int err = checkpoint_store_write(&w->s, &w->state, &label, w->error);
    if (err == 0) {
        w->before = w->kept;
        w->kept = w->beat;
    } else {
        assert_true(strlen(w->error) > 8);
    }
    return err;
}

/* Opens and loads the checkpoint store as a new process does. Each checkpoint that is found must be
 * complete and of one step. Returns the newest step, or 0 if none is found. */
static uint64_t restart(struct world *w, struct checkpoint_store_found *f)
{
    checkpoint_store_close(&w->s);
    checkpoint_store_open(&w->s, &w->d.disk, "out");
    checkpoint_store_load(&w->s, MOST, f);
    for (size_t i = 0; i < f->n; i++) {
        assert_true(small_is(&f->image[i].state, f->image[i].label.beat));
        assert_true(f->image[i].label.beat <= w->beat);
        assert_true(i == 0 || f->image[i - 1].label.beat > f->image[i].label.beat);
    }
    return f->n > 0 ? f->image[0].label.beat : 0;
}

static void test_newest_first(void **unused)
{
    (void)unused;
    struct world w;
    struct checkpoint_store_found f;
    world_open(&w, 1);
    assert_true(restart(&w, &f) == 0);
    assert_int_equal(f.n + f.n_bad, 0);
    checkpoint_store_found_close(&f);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(keep(&w), 0);
        assert_true(restart(&w, &f) == w.beat);
        assert_int_equal(f.n, i == 0 ? 1 : 2);
        assert_int_equal(f.n_bad, 0);
        assert_true(i == 0 || f.image[1].label.beat == w.before);
        assert_int_equal(sim_disk_files(&w.d), f.n);
        checkpoint_store_found_close(&f);
    }
    world_close(&w);
}

/* Without being loaded again, the store must write to its two slots in turn. */
static void test_slots_alternate(void **unused)
{
    (void)unused;
    struct world w;
    struct checkpoint_store_found f;
    world_open(&w, 1);
    for (int i = 0; i < 5; i++)
        assert_int_equal(keep(&w), 0);
    assert_true(restart(&w, &f) == 5);
    assert_true(f.image[1].label.beat == 4);
    checkpoint_store_found_close(&f);
    world_close(&w);
}

/* The peer resumes from the older of two checkpoints. Its next checkpoint must replace the newer
 * one. */
static void test_resumed_from_the_older(void **unused)
{
    (void)unused;
    struct world w;
    struct checkpoint_store_found f;
    world_open(&w, 1);
    w.beat = 8;
    for (int i = 0; i < 2; i++)
        assert_int_equal(keep(&w), 0); /* Writes the checkpoints of steps 9 and 10. */
    assert_true(restart(&w, &f) == 10);
    checkpoint_store_set_newest(&w.s, f.slot[1]);
    checkpoint_store_found_close(&f);
    w.beat = 9;
    /* Writes a second checkpoint of step 10, which replaces the first one. */
    assert_int_equal(keep(&w), 0);
    assert_true(restart(&w, &f) == 10);
    assert_true(f.n == 2 && f.image[1].label.beat == 9);
    checkpoint_store_found_close(&f);
    world_close(&w);
}

/* ---- Bad slots ---- */

static void test_the_older_where_the_newest_rots(void **unused)
{
    (void)unused;
    struct world w;
    struct checkpoint_store_found f;
    size_t n;
    world_open(&w, 1);
    for (int i = 0; i < 2; i++)
        assert_int_equal(keep(&w), 0);
    uint8_t *bytes = sim_disk_file(&w.d, checkpoint_store_name(1), &n);
    assert_true(n > 500);
    for (size_t at = 0; at < n; at++) {
        bytes[at] ^= 0x10;
        assert_true(restart(&w, &f) == 1);
        assert_true(f.n == 1 && f.n_bad == 1 && f.bad[0].slot == 1 && f.bad[0].err == -EINVAL);
        assert_non_null(strstr(f.bad[0].why, "out/checkpoint-1.safetensors: "));
        checkpoint_store_found_close(&f);
        bytes[at] ^= 0x10;
    }
    bytes[n - 1] ^= 1;
    assert_true(restart(&w, &f) == 1);
    checkpoint_store_found_close(&f);
    /* The next write replaces the corrupt checkpoint, not the good one. */
    assert_int_equal(keep(&w), 0);
    assert_true(restart(&w, &f) == 3);
    assert_true(f.n == 2 && f.image[1].label.beat == 1);
    checkpoint_store_found_close(&f);
    world_close(&w);
}

static void test_both_bad(void **unused)
{
    (void)unused;
    struct world w;
    struct checkpoint_store_found f;
    size_t n;
    world_open(&w, 1);
    for (int i = 0; i < 2; i++)
        assert_int_equal(keep(&w), 0);
    for (int i = 0; i < 2; i++)
        sim_disk_file(&w.d, checkpoint_store_name(i), &n)[100] ^= 1;
    assert_true(restart(&w, &f) == 0);
    assert_true(f.n == 0 && f.n_bad == 2 && f.bad[0].slot == 0 && f.bad[1].slot == 1);
    assert_int_equal(sim_disk_files(&w.d), 2); /* The store must not delete the corrupt files. */
    checkpoint_store_found_close(&f);
    for (int i = 0; i < 2; i++)
        assert_int_equal(keep(&w), 0);
    assert_true(restart(&w, &f) == 4);
    assert_int_equal(f.n, 2);
    checkpoint_store_found_close(&f);
    world_close(&w);
}

static void test_too_large(void **unused)
{
    (void)unused;
    struct world w;
    struct checkpoint_store_found f;
    world_open(&w, 1);
    assert_int_equal(keep(&w), 0);
    checkpoint_store_load(&w.s, 100, &f);
    assert_true(f.n == 0 && f.n_bad == 1 && f.bad[0].err == -EFBIG);
    assert_string_equal(f.bad[0].why,
                        "out/checkpoint-0.safetensors: found more than 100 bytes, expected fewer");
    checkpoint_store_found_close(&f);
    world_close(&w);
}

/* ---- Failing calls ---- */

/* Lets each disk call of two writes fail once, with each of three errors. At most one write may
 * fail. After a power loss or a crash at the end, the last stored checkpoint must be found. */
static void test_every_call_fails_once(void **unused)
{
    (void)unused;
    static const int errors[] = {ENOSPC, EIO, EDQUOT};
    for (uint64_t k = 0; k < 600; k++) {
        struct world w;
        struct checkpoint_store_found f;
        world_open(&w, k);
        for (int i = 0; i < 2; i++)
            assert_int_equal(keep(&w), 0);
        w.d.fail_at = w.d.n_calls + 1 + k / 12;
        w.d.fail_err = errors[k % 3];
        uint64_t limit = w.d.fail_at;
        bool failed = false;
        for (int i = 0; i < 4; i++) {
            int err = keep(&w);
            failed |= err < 0;
            assert_true(err == 0 || err == -errors[k % 3]);
            if (err < 0)
                assert_non_null(strstr(w.error, strerror(errors[k % 3])));
            assert_true(sim_disk_files(&w.d) <= SLOTS + 1);
        }
        assert_true(w.d.n_calls > limit);
        /* The newest stored step is at least 5, because at most one of the four writes may fail. */
        assert_true(w.kept >= 5);
        if (k % 2 == 0)
            sim_disk_lose_power(&w.d);
        else
            sim_disk_lose_process(&w.d);
        assert_true(restart(&w, &f) >= w.kept);
        assert_int_equal(f.n_bad, 0);
        checkpoint_store_found_close(&f);
        assert_true(sim_disk_files(&w.d) <= SLOTS);
        world_close(&w);
    }
}

static void test_disk_full(void **unused)
{
    (void)unused;
    struct world w;
    struct checkpoint_store_found f;
    world_open(&w, 1);
    for (int i = 0; i < 2; i++)
        assert_int_equal(keep(&w), 0);
    size_t two = sim_disk_bytes(&w.d);
    for (size_t more = 0; more < two / 2; more++) {
        w.d.space = two + more;
        assert_int_equal(keep(&w), -ENOSPC);
        assert_non_null(strstr(w.error, "cannot write: No space left on device"));
        /* The store must have deleted the temporary file. */
        assert_int_equal(sim_disk_bytes(&w.d), two);
    }
    assert_true(restart(&w, &f) == 2);
    assert_int_equal(f.n, 2);
    checkpoint_store_found_close(&f);
    w.d.space = two + two / 2 + 64;
    assert_int_equal(keep(&w), 0);
    world_close(&w);
}

/* If the sync of a file fails, the file must not be synced again or used. The next try writes a new
 * file. */
static void test_a_failed_sync_is_not_asked_again(void **unused)
{
    (void)unused;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct world w;
        struct checkpoint_store_found f;
        world_open(&w, seed);
        assert_int_equal(keep(&w), 0);
        uint64_t one = w.d.n_calls;
        /* A write of a checkpoint makes these calls: create, writes, sync, close, rename,
         * sync_dir. */
        w.d.fail_at = one + one - 3;
        w.d.fail_err = EIO;
        assert_int_equal(keep(&w), -EIO);
        /* A write whose sync fails makes these last calls: sync, close, unlink. */
        assert_int_equal(w.d.n_calls, one + one - 1);
        assert_int_equal(keep(&w), 0);
        sim_disk_lose_power(&w.d);
        assert_true(restart(&w, &f) == 3);
        assert_int_equal(f.n, 2);
        checkpoint_store_found_close(&f);
        world_close(&w);
    }
}

static void test_stopped(void **unused)
{
    (void)unused;
    struct world w;
    struct checkpoint_store_found f;
    world_open(&w, 1);
    assert_int_equal(keep(&w), 0);
    atomic_store(&w.s.stop, true);
    assert_int_equal(keep(&w), -ECANCELED);
    assert_int_equal(sim_disk_files(&w.d), 1);
    atomic_store(&w.s.stop, false);
    assert_int_equal(keep(&w), 0);
    assert_true(restart(&w, &f) == 3);
    checkpoint_store_found_close(&f);
    world_close(&w);
}

/* ---- Crashes ---- */

/* Writes checkpoints until the disk crashes. Some disk calls fail before the crash. */
static void live(struct world *w, struct rng *r)
{
    w->d.last = w->d.n_calls + 1 + rng_below(r, 60);
    if (rng_below(r, 3) == 0) {
        w->d.fail_at = w->d.n_calls + 1 + rng_below(r, 60);
        w->d.fail_err = rng_below(r, 2) == 0 ? EIO : ENOSPC;
    }
    for (int i = 0; i < TRIES && !sim_disk_dead(&w->d); i++) {
        (void)!keep(w);
        assert_true(sim_disk_files(&w->d) <= SLOTS + 1);
    }
}

/* Simulates several lives and crashes of one peer on one disk, and returns their number. Each crash
 * must leave a checkpoint that is at least as new as the last one stored, and no corrupt one. */
static int crash_course(uint64_t seed)
{
    struct world w;
    struct rng r = rng_stream(seed);
    int crashes = 0;
    world_open(&w, rng_u64(&r));
    for (; crashes < LIVES; crashes++) {
        struct checkpoint_store_found f;
        live(&w, &r);
        if (rng_below(&r, 2) == 0)
            sim_disk_lose_power(&w.d);
        else
            sim_disk_lose_process(&w.d);
        uint64_t found = restart(&w, &f);
        if (found < w.kept)
            fail_msg("SEED=%" PRIu64 ": crash %d: found %" PRIu64 ", kept was %" PRIu64, seed,
                     crashes, found, w.kept);
        if (f.n_bad > 0)
            fail_msg("SEED=%" PRIu64 ": crash %d: %s", seed, crashes, f.bad[0].why);
        assert_true(sim_disk_files(&w.d) <= SLOTS);
        checkpoint_store_found_close(&f);
    }
    world_close(&w);
    return crashes;
}

static void test_crashes(void **unused)
{
    (void)unused;
    const char *one = getenv("SEED"), *many = getenv("SEEDS");
    uint64_t seed = one != NULL ? strtoull(one, NULL, 0) : 1;
    int crashes = 0, wanted = many != NULL ? atoi(many) * LIVES : CRASHES;
    for (; crashes < (one != NULL ? 1 : wanted); seed++)
        crashes += crash_course(seed);
    print_message("%d crashes, seeds 1 to %" PRIu64 "\n", crashes, seed - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_newest_first),
        cmocka_unit_test(test_slots_alternate),
        cmocka_unit_test(test_resumed_from_the_older),
        cmocka_unit_test(test_the_older_where_the_newest_rots),
        cmocka_unit_test(test_both_bad),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_every_call_fails_once),
        cmocka_unit_test(test_disk_full),
        cmocka_unit_test(test_a_failed_sync_is_not_asked_again),
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_crashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
