/* tests/unit/node_frame.c -- tests of peer/secure/frame.h, which cuts messages into records and
 * puts them together: every split, every limit. */
#include "nn/math/rng.h"
#include "peer/secure/frame.h"

#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BIG = 3 * CHANNEL_PLAIN_MAX + 100 };

static uint8_t data[BIG];

static void fill(uint64_t seed)
{
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, 0, 0));
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)rng_u64(&r);
}

/* Replaces free(), to find memory that was not wiped. While `watching` is true, it counts the freed
 * blocks that contain SECRET_RUN bytes of the value SECRET in a row. Sanitizers have their own
 * allocator, so nothing is counted in their builds. */
enum { SECRET = 0xa7, SECRET_RUN = 64 };
static bool watching;
static uint32_t n_left;
#if defined(__GLIBC__) && !defined(HEARSAY_SANITIZED)
extern void __libc_free(void *p);
extern void *__libc_realloc(void *p, size_t n);

void free(void *p)
{
    const uint8_t *bytes = p;
    size_t run = 0, n = watching && p != NULL ? malloc_usable_size(p) : 0;
    for (size_t i = 0; i < n && run < SECRET_RUN; i++)
        run = bytes[i] == SECRET ? run + 1 : 0;
    n_left += run == SECRET_RUN;
    __libc_free(p);
}

/* While `watching` is true, realloc() always moves the block, as the C standard allows. */
void *realloc(void *p, size_t n)
{
    if (!watching || p == NULL)
        return __libc_realloc(p, n);
    size_t old = malloc_usable_size(p);
    void *moved = malloc(n);
    if (moved == NULL)
        return NULL;
    memcpy(moved, p, old < n ? old : n);
    free(p);
    return moved;
}
#endif

static const enum channel_kind more_kind[FRAME_LANES] = {CHANNEL_CONTROL, CHANNEL_BULK};
static const enum channel_kind end_kind[FRAME_LANES] = {CHANNEL_CONTROL_END, CHANNEL_BULK_END};

/* Pushes a copy of a record. The copy is freed at once, or with the next call if the record
 * completes a message. A sanitizer then detects a pointer that was kept. */
static int push(struct frame *f, enum channel_kind kind, const uint8_t *bytes, size_t n,
                struct frame_message *m)
{
    static uint8_t *last;
    free(last);
    last = malloc(n > 0 ? n : 1);
    assert_non_null(last);
    if (n > 0)
        memcpy(last, bytes, n);
    int err = frame_push(f, kind, last, n, m);
    if (err != 1) {
        free(last);
        last = NULL;
    }
    return err;
}

static void assert_message(const struct frame_message *m, enum frame_lane lane,
                           const uint8_t *bytes, size_t n)
{
    assert_int_equal(m->lane, lane);
    assert_int_equal(m->n, n);
    assert_memory_equal(m->bytes, bytes, n);
}

static void every_split_gives_the_message(void **state)
{
    (void)state;
    enum { N = 40 };
    fill(1);
    for (int lane = 0; lane < FRAME_LANES; lane++) {
        struct frame f;
        struct frame_message m;
        frame_init(&f, N, N);
        assert_int_equal(push(&f, end_kind[lane], data, N, &m), 1);
        assert_message(&m, (enum frame_lane)lane, data, N);
        for (size_t i = 1; i < N; i++) {
            assert_int_equal(push(&f, more_kind[lane], data, i, &m), 0);
            assert_int_equal(push(&f, end_kind[lane], data + i, N - i, &m), 1);
            assert_message(&m, (enum frame_lane)lane, data, N);
            for (size_t j = i + 1; j < N; j++) {
                assert_int_equal(push(&f, more_kind[lane], data, i, &m), 0);
                assert_int_equal(push(&f, more_kind[lane], data + i, j - i, &m), 0);
                assert_int_equal(push(&f, end_kind[lane], data + j, N - j, &m), 1);
                assert_message(&m, (enum frame_lane)lane, data, N);
            }
        }
        frame_close(&f);
    }
}

/* As in a session, each record is decrypted in the buffer that frame_room() returns. The data of a
 * bulk message are then already at their final place, and control records in between do not change
 * them. */
static void opened_in_place(void **state)
{
    (void)state;
    struct frame f;
    struct frame_message m;
    fill(5);
    frame_init(&f, 1000, BIG);
    for (int again = 0; again < 3; again++) {
        const uint8_t *begin = NULL;
        for (size_t at = 0; at < BIG; at += CHANNEL_PLAIN_MAX) {
            size_t n = BIG - at < CHANNEL_PLAIN_MAX ? BIG - at : CHANNEL_PLAIN_MAX;
            bool last = at + n == BIG;
            uint8_t *room = frame_room(&f);
            assert_non_null(room);
            memset(room, 0xee, CHANNEL_OPEN_MAX);
            memcpy(room, data + at / 2, 7);
            assert_int_equal(frame_push(&f, CHANNEL_CONTROL, room, 3, &m), 0);
            assert_int_equal(frame_push(&f, CHANNEL_CONTROL_END, room + 3, 4, &m), 1);
            assert_message(&m, FRAME_CONTROL, data + at / 2, 7);
            room = frame_room(&f);
            begin = at == 0 ? room : begin;
            memcpy(room, data + at, n);
            assert_int_equal(frame_push(&f, last ? CHANNEL_BULK_END : CHANNEL_BULK, room, n, &m),
                             last);
        }
        assert_message(&m, FRAME_BULK, data, BIG);
        assert_true(f.lane[FRAME_BULK].capacity <= BIG + CHANNEL_OPEN_MAX);
        if (again > 0) /* The buffer was large enough, so it was not moved. */
            assert_ptr_equal(m.bytes, begin);
    }
    uint8_t *room = frame_room(&f);
    memcpy(room, data, 9);
    assert_int_equal(frame_push(&f, CHANNEL_CONTROL_END, room, 9, &m), 1);
    assert_ptr_equal(m.bytes, room);
    assert_message(&m, FRAME_CONTROL, data, 9);
    frame_close(&f);
}

/* Control messages, whole or in pieces, can pass between any two records of a bulk message. */
static void control_overtakes_bulk(void **state)
{
    (void)state;
    struct frame f;
    struct frame_message m;
    fill(2);
    frame_init(&f, 64, 1000);
    for (size_t i = 0; i < 999; i += 37) {
        size_t n = i + 37 < 999 ? 37 : 999 - i;
        bool last = i + n == 999;
        assert_int_equal(push(&f, CHANNEL_CONTROL_END, data + i, 5, &m), 1);
        assert_message(&m, FRAME_CONTROL, data + i, 5);
        assert_int_equal(push(&f, CHANNEL_CONTROL, data, 7, &m), 0);
        assert_int_equal(push(&f, last ? CHANNEL_BULK_END : CHANNEL_BULK, data + i, n, &m), last);
        if (last)
            assert_message(&m, FRAME_BULK, data, 999);
        assert_int_equal(push(&f, CHANNEL_CONTROL_END, data + 7, 9, &m), 1);
        assert_message(&m, FRAME_CONTROL, data, 16);
    }
    frame_close(&f);
}

static void limits_are_checked_before_storing(void **state)
{
    (void)state;
    fill(3);
    for (size_t max = 1; max < 60; max++)
        for (size_t first = 1; first <= max; first++) {
            struct frame f;
            struct frame_message m;
            frame_init(&f, max, max + 7);
            assert_int_equal(push(&f, CHANNEL_CONTROL_END, data, max + 1, &m), -EPROTO);
            assert_int_equal(push(&f, CHANNEL_CONTROL, data, max + 1, &m), -EPROTO);
            assert_null(f.lane[FRAME_CONTROL].bytes);
            assert_int_equal(push(&f, CHANNEL_CONTROL, data, first, &m), 0);
            assert_int_equal(push(&f, CHANNEL_CONTROL, data, max + 1 - first, &m), -EPROTO);
            assert_int_equal(push(&f, CHANNEL_CONTROL_END, data, max + 1 - first, &m), -EPROTO);
            /* The records that were refused were not stored. */
            assert_int_equal(f.lane[FRAME_CONTROL].n, first);
            if (first < max) {
                assert_int_equal(push(&f, CHANNEL_CONTROL_END, data + first, max - first, &m), 1);
                assert_message(&m, FRAME_CONTROL, data, max);
            }
            /* The lane of bulk messages has a limit of its own (max + 7 bytes). */
            assert_int_equal(push(&f, CHANNEL_BULK_END, data, max + 7, &m), 1);
            assert_int_equal(push(&f, CHANNEL_BULK_END, data, max + 8, &m), -EPROTO);
            frame_close(&f);
        }
}

static void a_limit_can_grow_and_shrink(void **state)
{
    (void)state;
    struct frame f;
    struct frame_message m;
    fill(4);
    frame_init(&f, 100, 0);
    assert_int_equal(push(&f, CHANNEL_BULK_END, data, 1, &m), -EPROTO);
    frame_limit(&f, FRAME_BULK, 50);
    assert_int_equal(push(&f, CHANNEL_BULK, data, 50, &m), 0);
    /* 50 bytes of the message have arrived, which is more than the new limit. */
    frame_limit(&f, FRAME_BULK, 20);
    assert_int_equal(push(&f, CHANNEL_BULK_END, data + 50, 1, &m), -EPROTO);
    frame_limit(&f, FRAME_BULK, 60);
    assert_int_equal(push(&f, CHANNEL_BULK_END, data + 50, 10, &m), 1);
    assert_message(&m, FRAME_BULK, data, 60);
    /* The largest possible size limit must not overflow in a sum. */
    frame_limit(&f, FRAME_BULK, SIZE_MAX);
    assert_int_equal(push(&f, CHANNEL_BULK, data, 10, &m), 0);
    assert_int_equal(push(&f, CHANNEL_BULK_END, data + 10, 10, &m), 1);
    assert_message(&m, FRAME_BULK, data, 20);
    frame_close(&f);
}

static void what_is_no_piece_of_a_message_is_refused(void **state)
{
    (void)state;
    struct frame f;
    struct frame_message m;
    frame_init(&f, 100, 100);
    assert_int_equal(push(&f, CHANNEL_REKEY, data, 1, &m), -EPROTO);
    assert_int_equal(push(&f, CHANNEL_CLOSE, data, 1, &m), -EPROTO);
    assert_int_equal(push(&f, CHANNEL_CLOSE, data, 0, &m), -EPROTO);
    for (int lane = 0; lane < FRAME_LANES; lane++) {
        assert_int_equal(push(&f, more_kind[lane], data, 0, &m), -EPROTO);
        assert_int_equal(push(&f, end_kind[lane], data, 0, &m), -EPROTO);
        assert_int_equal(push(&f, more_kind[lane], data, 1, &m), 0);
        assert_int_equal(push(&f, end_kind[lane], data, 0, &m), -EPROTO);
    }
    frame_close(&f);
}

/* The buffer grows with the bytes that have arrived. A peer that may send 1 GB and sends 100 KB
 * uses at most 200 KB of memory. */
static void memory_follows_what_has_come(void **state)
{
    (void)state;
    struct frame f;
    struct frame_message m;
    fill(5);
    frame_init(&f, 100, (size_t)1 << 30);
    for (size_t n = 0; n < BIG; n += 1000) {
        assert_int_equal(push(&f, CHANNEL_BULK, data, 1000, &m), 0);
        size_t come = f.lane[FRAME_BULK].n, capacity = f.lane[FRAME_BULK].capacity;
        assert_int_equal(come, n + 1000);
        assert_true(capacity >= come && (capacity <= 2 * come || capacity <= 4096));
    }
    frame_close(&f);
    frame_init(&f, 100, 5000); /* The receive buffer is never larger than the limit of a message. */
    for (size_t n = 0; n < 5000; n += 100)
        assert_int_equal(push(&f, CHANNEL_BULK, data, 100, &m), 0);
    assert_int_equal(f.lane[FRAME_BULK].capacity, 5000);
    frame_close(&f);
}

/* Neither a growing buffer nor frame_close() leaves message bytes in freed memory. */
static void nothing_is_left_behind(void **state)
{
    (void)state;
    static uint8_t secret[3000];
    struct frame f;
    struct frame_message m;
    frame_init(&f, 100000, 100000);
    memset(secret, SECRET, sizeof secret);
    n_left = 0;
    watching = true;
    for (int i = 0; i < 20; i++) {
        uint8_t *room = frame_room(&f);
        assert_non_null(room);
        memcpy(room, secret, sizeof secret);
        assert_int_equal(frame_push(&f, CHANNEL_BULK, room, sizeof secret, &m), 0);
        assert_int_equal(frame_push(&f, CHANNEL_CONTROL, secret, sizeof secret, &m), 0);
    }
    frame_close(&f);
    watching = false;
    assert_int_equal(n_left, 0);
}

/* Cuts a message into records and puts it together again. Each record consists of two parts, as
 * channel_seal() expects them. */
static void check_cut(enum frame_lane lane, size_t n_head, size_t n_body)
{
    static uint8_t piece[CHANNEL_PLAIN_MAX];
    struct frame_cut c;
    struct frame_record r;
    struct frame_message m;
    struct frame f;
    size_t total = n_head + n_body, records = 0;
    int whole = 0;
    frame_init(&f, total, total);
    frame_cut_init(&c, lane, data, n_head, data + n_head, n_body);
    while (assert_int_equal(frame_left(&c), total - c.at), frame_next(&c, &r)) {
        assert_int_equal(whole, 0);
        assert_true(r.n + r.n2 >= 1 && r.n + r.n2 <= CHANNEL_PLAIN_MAX);
        if (r.n > 0)
            memcpy(piece, r.data, r.n);
        if (r.n2 > 0)
            memcpy(piece + r.n, r.data2, r.n2);
        whole = push(&f, r.kind, piece, r.n + r.n2, &m);
        assert_true(whole >= 0);
        records++;
    }
    assert_int_equal(whole, 1);
    assert_int_equal(records, (total + CHANNEL_PLAIN_MAX - 1) / CHANNEL_PLAIN_MAX);
    assert_message(&m, lane, data, total);
    assert_int_equal(frame_left(&c), 0);
    assert_false(frame_next(&c, &r));
    frame_close(&f);
}

static void cut_messages_come_together(void **state)
{
    (void)state;
    enum { P = CHANNEL_PLAIN_MAX };
    static const size_t head[] = {0, 1, 17, P - 1, P, P + 1, 2 * P};
    static const size_t body[] = {0, 1, 2, P - 18, P - 17, P - 1, P, P + 1, P + 100};
    fill(6);
    for (size_t i = 0; i < sizeof head / sizeof head[0]; i++)
        for (size_t j = 0; j < sizeof body / sizeof body[0]; j++)
            for (int lane = 0; lane < FRAME_LANES; lane++)
                if (head[i] + body[j] > 0)
                    check_cut((enum frame_lane)lane, head[i], body[j]);
}

/* Random records are compared with a simple reference: two growing arrays. */
static void random_records_as_by_the_book(void **state)
{
    (void)state;
    enum { MAX = 300 };
    uint64_t seed = 7;
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, 1, 0));
    static uint8_t book[FRAME_LANES][MAX];
    size_t n_book[FRAME_LANES] = {0}, messages = 0, refused = 0;
    struct frame f;
    struct frame_message m;
    fill(seed);
    print_message("seed %llu\n", (unsigned long long)seed);
    frame_init(&f, MAX, MAX);
    for (int i = 0; i < 20000; i++) {
        size_t lane = rng_below(&r, 2), n = rng_below(&r, 90), from = rng_below(&r, BIG - 90);
        bool end = rng_below(&r, 4) == 0, bad = n == 0 || n_book[lane] + n > MAX;
        int err = push(&f, end ? end_kind[lane] : more_kind[lane], data + from, n, &m);
        assert_int_equal(err, bad ? -EPROTO : end);
        refused += bad;
        if (bad) { /* After a protocol violation the link is closed, and a new one begins. */
            frame_close(&f);
            frame_init(&f, MAX, MAX);
            n_book[0] = n_book[1] = 0;
            continue;
        }
        memcpy(book[lane] + n_book[lane], data + from, n);
        n_book[lane] += n;
        if (end) {
            assert_message(&m, (enum frame_lane)lane, book[lane], n_book[lane]);
            n_book[lane] = 0;
            messages++;
        }
    }
    assert_true(messages > 1000 && refused > 100);
    frame_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_split_gives_the_message),
        cmocka_unit_test(opened_in_place),
        cmocka_unit_test(control_overtakes_bulk),
        cmocka_unit_test(limits_are_checked_before_storing),
        cmocka_unit_test(a_limit_can_grow_and_shrink),
        cmocka_unit_test(what_is_no_piece_of_a_message_is_refused),
        cmocka_unit_test(memory_follows_what_has_come),
        cmocka_unit_test(nothing_is_left_behind),
        cmocka_unit_test(cut_messages_come_together),
        cmocka_unit_test(random_records_as_by_the_book),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
