/* tests/unit/gossip_centre.c -- tests the parameter server of --mixer ps: which worker gets which
 * answer, and when. */
#include "gossip/collectives/centre.h"
#include "nn/math/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { DIM = 40, ROUNDS = 10, N = 3 };

static const struct segment segments[] = {
    {.name = "x", .n = DIM, .rows = 1, .cols = DIM, .n_dims = 1, .trained = true}};

struct bench
{
    struct mixing mixing; /* The part of struct mixing that the server reads. */
    struct centre centre;
    uint8_t id[N][WIRE_ID_BYTES];
    float told[N][DIM]; /* Model of each worker, after all answers that it has received. */
    uint32_t n_whole, n_coded;
    bool varied; /* True: push() sends values that differ from each other. */
};

static struct centre_worker *worker(struct bench *b, uint32_t i)
{
    return centre_find(&b->centre, b->id[i]);
}

static void open_bench(struct bench *b, const char *codec, bool sync, bool bounded,
                       uint32_t staleness)
{
    static float zero[DIM];
    *b = (struct bench){.mixing = {.dim = DIM, .n_floats = DIM}};
    bool whole = strcmp(codec, "none") == 0;
    struct centre_config g = {.mixing = &b->mixing,
                              .rounds = ROUNDS,
                              .sync = sync,
                              .bounded = bounded,
                              .staleness = staleness,
                              .z = zero};
    assert_int_equal(compress_open(&b->mixing.codec[DELTA_RUN], codec, segments, 1), 0);
    if (!whole)
        assert_int_equal(compress_open(&g.codec, codec, segments, 1), 0);
    assert_int_equal(centre_open(&b->centre, &g), 0);
    for (uint32_t i = 0; i < N; i++) {
        b->id[i][0] = (uint8_t)(i + 1);
        assert_non_null(centre_count(&b->centre, b->id[i]));
    }
}

static void close_bench(struct bench *b)
{
    centre_close(&b->centre);
    compress_close(b->mixing.codec[DELTA_RUN]);
}

/* Sends a push of worker i. All its values are v, or they differ if `varied` is set. */
static enum centre_verdict push(struct bench *b, uint32_t i, uint64_t clock, float v)
{
    struct compress *codec = b->mixing.codec[DELTA_RUN];
    uint8_t *bytes = malloc(compress_bound(codec));
    float x[DIM], zero[DIM] = {0};
    size_t n;
    assert_non_null(bytes);
    for (size_t k = 0; k < DIM; k++)
        x[k] = b->varied ? v * (float)(1 + (7 * k + 3 * i + 5 * clock) % 11) : v;
    struct compress_input in = {.x = x, .x_hat = zero, .draw = clock};
    assert_int_equal(compress_encode(codec, &in, bytes, &n, NULL), 0);
    enum centre_verdict verdict = centre_push(&b->centre, worker(b, i), clock, bytes, n);
    free(bytes);
    return verdict;
}

/* Adds up the received pushes and answers all workers that may be answered now. Returns these
 * workers as a bit set. */
static uint32_t look(struct bench *b)
{
    uint8_t coded[1024];
    struct centre_answer a;
    uint32_t told = 0;
    centre_add(&b->centre);
    assert_true(centre_bound(&b->centre) <= sizeof coded);
    while (centre_answer(&b->centre, &a, coded))
        for (uint32_t k = 0; k < a.n; k++) {
            uint32_t i = (uint32_t)(a.to[k]->id[0] - 1);
            told |= 1u << i;
            b->n_whole += a.whole;
            b->n_coded += !a.whole;
            if (a.whole)
                memcpy(b->told[i], a.model, sizeof b->told[i]);
            else {
                assert_true(centre_valid(&b->mixing, coded, a.n_coded));
                centre_apply(&b->mixing, coded, a.n_coded, b->told[i]);
            }
        }
    return told;
}

static void all_here(struct bench *b)
{
    for (uint32_t i = 0; i < N; i++)
        centre_here(&b->centre, worker(b, i), 0, 0);
}

static void test_sync_waits_for_all(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b, "none", true, false, 0);
    push(&b, 0, 1, 3);
    /* centre_here() was not called for any worker yet, so no worker is answered. */
    assert_int_equal(look(&b), 0);
    close_bench(&b);

    open_bench(&b, "none", true, false, 0);
    all_here(&b);
    assert_int_equal(push(&b, 0, 1, 3), CENTRE_TAKEN);
    assert_int_equal(push(&b, 2, 1, 6), CENTRE_TAKEN);
    assert_int_equal(look(&b), 0);
    assert_memory_equal(centre_awaited(&b.centre)->id, b.id[1], WIRE_ID_BYTES);
    assert_int_equal(push(&b, 1, 1, 0), CENTRE_TAKEN);
    assert_int_equal(look(&b), 7);
    assert_true(b.told[1][5] == 3);
    assert_int_equal(b.centre.n_pushes, 3);
    close_bench(&b);
}

/* A worker that no longer counts, for example because it died, is not waited for, and its push is
 * not in the mean. */
static void test_a_death_in_a_round(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b, "none", true, false, 0);
    all_here(&b);
    push(&b, 0, 1, 3);
    push(&b, 2, 1, 300);
    centre_clear(&b.centre);
    (void)centre_count(&b.centre, b.id[0]);
    (void)centre_count(&b.centre, b.id[1]);
    push(&b, 1, 1, 5);
    assert_int_equal(look(&b), 3);
    assert_true(b.told[0][0] == 4);
    /* Worker 2 returns and repeats its old push. The push is too late to count. */
    (void)centre_count(&b.centre, b.id[2]);
    centre_here(&b.centre, worker(&b, 2), 1, 0);
    assert_int_equal(push(&b, 2, 1, 300), CENTRE_TAKEN);
    assert_int_equal(look(&b), 4);
    assert_true(b.told[2][0] == 4);
    close_bench(&b);
}

static void test_ssp_is_bounded(void **state)
{
    enum { S = 2 };
    struct bench b;
    (void)state;
    open_bench(&b, "none", false, true, S);
    all_here(&b);
    for (uint64_t c = 1; c <= S; c++) {
        push(&b, 0, c, 3);
        assert_int_equal(look(&b), 1);
        assert_true(b.told[0][0] == (float)c);
    }
    push(&b, 0, S + 1, 3);
    /* Workers 1 and 2 are too far behind, so worker 0 must wait. */
    assert_int_equal(look(&b), 0);
    push(&b, 1, 1, 3);
    assert_int_equal(look(&b), 2);
    push(&b, 2, 1, 3);
    assert_int_equal(look(&b), 5);
    assert_true(b.told[0][0] == S + 3);
    close_bench(&b);
}

/* Asynchronous workers are answered at once. After the last round, however, they must all get the
 * same model, so each of them has to wait for the others. */
static void test_async_waits_for_nobody_but_at_the_end(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b, "none", false, false, 0);
    all_here(&b);
    for (uint64_t c = 1; c < ROUNDS; c++) {
        push(&b, 1, c, 1);
        assert_int_equal(look(&b), 2);
    }
    push(&b, 1, ROUNDS, 1);
    assert_int_equal(look(&b), 0);
    centre_here(&b.centre, worker(&b, 0), ROUNDS - 1, ROUNDS - 1);
    centre_here(&b.centre, worker(&b, 2), ROUNDS - 1, ROUNDS - 1);
    push(&b, 0, ROUNDS, 1);
    assert_int_equal(look(&b), 0);
    push(&b, 2, ROUNDS, 1);
    assert_int_equal(look(&b), 7);
    for (uint32_t i = 0; i < N; i++)
        assert_memory_equal(b.told[i], b.centre.z, sizeof b.told[i]);
    close_bench(&b);
}

/* A push counts once, even if the worker repeats it in another session. A worker that pushes again
 * without waiting for an answer is refused, and so are bytes that are not a push. */
static void test_pushes_count_once(void **state)
{
    struct bench b;
    uint8_t rubbish[64];
    (void)state;
    open_bench(&b, "qsgd:4", false, false, 0);
    all_here(&b);
    memset(rubbish, 0xff, sizeof rubbish);
    for (size_t n = 0; n < sizeof rubbish; n++)
        assert_int_equal(centre_push(&b.centre, worker(&b, 0), 1, rubbish, n), CENTRE_BAD);
    assert_int_equal(push(&b, 0, 1, 3), CENTRE_TAKEN);
    /* A worker must not push again before it has received the answer to its last push. */
    assert_int_equal(push(&b, 0, 2, 3), CENTRE_BAD);
    assert_int_equal(look(&b), 1);
    /* Worker 0 reports that it has not received the last answer. */
    centre_here(&b.centre, worker(&b, 0), 1, 0);
    assert_int_equal(push(&b, 0, 1, 3), CENTRE_TAKEN);
    b.n_whole = 0;
    assert_int_equal(look(&b), 1);
    assert_int_equal(b.n_whole, 1);
    assert_int_equal(b.centre.n_pushes, 1);
    /* The worker restarts from round 0 as a new process, so its push is new. */
    centre_here(&b.centre, worker(&b, 0), 0, 0);
    assert_int_equal(push(&b, 0, 1, 3), CENTRE_TAKEN);
    assert_int_equal(look(&b), 1);
    assert_int_equal(b.centre.n_pushes, 2);
    close_bench(&b);
}

/* Tests how a parameter server stores its workers' copies of the model. Workers that received equal
 * answers share one stored copy. A worker that has lost its model gets the whole model, and then
 * shares the copy again. */
static void test_copies(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b, "topk:0.25", true, false, 0);
    all_here(&b);
    b.varied = true;
    for (uint64_t c = 1; c < ROUNDS - 1; c++) {
        for (uint32_t i = 0; i < N; i++) {
            if (c == 4 && i == 1)
                centre_here(&b.centre, worker(&b, i), c, c - 1);
            push(&b, i, c, (float)(i + c));
        }
        b.n_whole = b.n_coded = 0;
        assert_int_equal(look(&b), 7);
        assert_int_equal(b.n_whole, c == 4 ? 1 : 0);
        for (uint32_t i = 0; i < N; i++) {
            assert_memory_equal(b.told[i], b.told[0], sizeof b.told[i]);
            assert_ptr_equal(worker(&b, i)->copy, worker(&b, 0)->copy);
        }
        assert_memory_not_equal(b.told[0], b.centre.z, sizeof b.told[0]);
    }
    close_bench(&b);

    /* With mode async, the server keeps a separate copy of the model for each worker. */
    open_bench(&b, "topk:0.25", false, false, 0);
    all_here(&b);
    b.varied = true;
    for (uint64_t c = 1; c < ROUNDS - 1; c++)
        for (uint32_t i = 0; i < N; i++) {
            push(&b, i, c, 1);
            assert_int_equal(look(&b), 1u << i);
            assert_memory_equal(worker(&b, i)->copy->v, b.told[i], sizeof b.told[i]);
        }
    /* All workers began with the initial model, so the server sends no complete model. */
    assert_int_equal(b.n_whole, 0);
    close_bench(&b);
}

/* The number of worker slots is limited. A worker that counts keeps its slot, and too many counting
 * workers are refused. */
static void test_many_workers(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b, "none", false, false, 0);
    for (uint32_t i = 0; i < 4 * CENTRE_WORKERS_MAX; i++) {
        uint8_t id[WIRE_ID_BYTES] = {(uint8_t)i, (uint8_t)(i >> 8), 1};
        if (i % 100 == 0) {
            centre_clear(&b.centre);
            assert_non_null(centre_count(&b.centre, b.id[0]));
        }
        assert_non_null(centre_count(&b.centre, id));
    }
    assert_non_null(worker(&b, 0));
    for (uint32_t i = 0; b.centre.n_counted < CENTRE_COUNTED_MAX; i++) {
        uint8_t id[WIRE_ID_BYTES] = {(uint8_t)i, 2};
        assert_non_null(centre_count(&b.centre, id));
    }
    assert_null(centre_count(&b.centre, (uint8_t[WIRE_ID_BYTES]){9, 9, 9}));
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sync_waits_for_all),
        cmocka_unit_test(test_a_death_in_a_round),
        cmocka_unit_test(test_ssp_is_bounded),
        cmocka_unit_test(test_async_waits_for_nobody_but_at_the_end),
        cmocka_unit_test(test_pushes_count_once),
        cmocka_unit_test(test_copies),

        cmocka_unit_test(test_many_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
