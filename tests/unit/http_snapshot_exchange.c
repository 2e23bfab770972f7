/* tests/unit/http_snapshot_exchange.c -- tests of peer/http/snapshot_exchange.h: one thread writes
 * and another reads. Each snapshot that is read is complete, and no older than the one before. */
#include "peer/http/snapshot_exchange.h"

#include "tests/unit/http_rig.h"

#include <pthread.h>

/* PUBLISHED: number of snapshots that are written. LONG: number of history points in each snapshot,
 * so large that the reader would notice a half-written snapshot. */
enum { PUBLISHED = 3000, LONG = 800 };

static struct snapshot_exchange board;
static atomic_bool done;

static void *write_all(void *arg)
{
    (void)arg;
    for (uint64_t i = 1; i <= PUBLISHED; i++) {
        struct snapshot *s = snapshot_exchange_blank(&board);
        s->figures.time_s = (double)i;
        for (size_t k = 0; k < LONG; k++)
            s->history.point[k].round = i;
        s->taken_us = (int64_t)i;
        snapshot_exchange_publish(&board);
    }
    atomic_store(&done, true);
    return NULL;
}

static uint64_t read_one(uint64_t before)
{
    const struct snapshot *s = snapshot_exchange_read(&board);
    uint64_t n = s->number;
    assert_true(n >= before);
    assert_true(s->figures.time_s == (double)n && s->taken_us == (int64_t)n);
    for (size_t k = 0; k < LONG; k++)
        assert_int_equal(s->history.point[k].round, n);
    return n;
}

static void test_two_threads(void **state)
{
    (void)state;
    pthread_t writer;
    uint64_t last = 0;
    assert_int_equal(snapshot_exchange_open(&board), 0);
    /* Before the first snapshot is written, the reader gets zeros. */
    assert_int_equal(read_one(0), 0);
    assert_int_equal(pthread_create(&writer, NULL, write_all, NULL), 0);
    while (!atomic_load(&done))
        last = read_one(last);
    pthread_join(writer, NULL);
    assert_int_equal(read_one(last), PUBLISHED);
    /* A snapshot can be read again while there is no newer one. */
    assert_int_equal(read_one(last), PUBLISHED);
    snapshot_exchange_close(&board);
}

/* The writer never gets the snapshot that the reader uses, whatever the order of their calls. */
static void test_orders(void **state)
{
    (void)state;
    for (unsigned order = 0; order < 1u << 12; order++) {
        uint64_t n = 0;
        assert_int_equal(snapshot_exchange_open(&board), 0);
        const struct snapshot *front = snapshot_exchange_read(&board);
        for (int i = 0; i < 12; i++) {
            if (order >> i & 1) {
                assert_ptr_not_equal(snapshot_exchange_blank(&board), front);
                snapshot_exchange_publish(&board);
                n++;
            } else {
                front = snapshot_exchange_read(&board);
                assert_int_equal(front->number, n);
            }
        }
        snapshot_exchange_close(&board);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_two_threads),
                                       cmocka_unit_test(test_orders)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
