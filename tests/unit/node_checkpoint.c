/* tests/unit/node_checkpoint.c -- tests of peer/node/join/checkpoint.h: the step in which all peers
 * write a checkpoint, and the wait for a slow disk. */
#include "peer/node/join/checkpoint.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { SECOND = 1000 * 1000, EVERY = 30 * SECOND, REACH = 4 };

/* The state of a node whose last checkpoint has the age that rig_init() is given. */
struct rig
{
    struct env env;
    struct checkpoint *c;
};

static void rig_init(struct rig *r, int64_t age_us)
{
    checkpoint_close(r->c);
    *r = (struct rig){.env = {.config = {.checkpoint_us = EVERY}}};
    r->c = checkpoint_open(&r->env);
    assert_non_null(r->c);
    checkpoint_start(r->c);
    r->env.now_us = age_us;
}

static struct checkpoint_view at(uint64_t beat)
{
    return (struct checkpoint_view){
        .beat = beat, .rounds = 1000, .reach = REACH, .lock_step = true};
}

static void hear(struct rig *r, uint64_t due, uint64_t beat)
{
    struct checkpoint_view v = at(beat);
    checkpoint_hear(r->c, due, due, &v);
}

static bool now(struct rig *r, uint64_t beat)
{
    struct checkpoint_view v = at(beat);
    return checkpoint_now(r->c, &v);
}

static void test_proposed_once_old(void **state)
{
    struct rig r = {0};
    (void)state;
    rig_init(&r, EVERY - 1);
    assert_false(now(&r, 10));
    assert_int_equal(checkpoint_due(r.c), 0);
    r.env.now_us = EVERY;
    assert_false(now(&r, 11));
    assert_int_equal(checkpoint_due(r.c), 11 + 6 * REACH + 6);
    for (uint64_t beat = 12; beat < 11 + 6 * REACH + 6; beat++)
        assert_false(now(&r, beat));
    assert_true(now(&r, 11 + 6 * REACH + 6));
    checkpoint_close(r.c);
}

/* A checkpoint is due in the last round of training, however old the previous one is. No checkpoint
 * is proposed for a later step. */
static void test_not_behind_the_last_round(void **state)
{
    struct rig r = {0};
    (void)state;
    rig_init(&r, EVERY);
    assert_false(now(&r, 1000 - 6 * REACH - 7));
    assert_int_equal(checkpoint_due(r.c), 999);
    rig_init(&r, 0);
    assert_false(now(&r, 1000 - 6 * REACH - 7));
    assert_int_equal(checkpoint_due(r.c), 0);
    assert_false(now(&r, 1000 - 6 * REACH - 6));
    assert_int_equal(checkpoint_due(r.c), 1000);
    assert_false(now(&r, 999));
    assert_true(now(&r, 1000));
    rig_init(&r, EVERY);
    r.env.config.checkpoint_us = 0;
    assert_false(now(&r, 999));
    assert_int_equal(checkpoint_due(r.c), 0);
    checkpoint_close(r.c);
}

/* Peers announce several steps for the next checkpoint. The earliest one that is after the present
 * step must count, whatever the order of the announcements. It must count even if it is soon after
 * the last checkpoint, which a single Byzantine peer may have announced. */
static void test_words_of_others(void **state)
{
    struct rig r = {0};
    (void)state;
    rig_init(&r, EVERY);
    hear(&r, 90, 50);
    hear(&r, 80, 50);
    hear(&r, 85, 50);
    hear(&r, 50, 50);
    hear(&r, 0, 50);
    assert_int_equal(checkpoint_due(r.c), 80);
    assert_true(now(&r, 80));
    checkpoint_taken(r.c, 80);
    hear(&r, 120, 81);
    assert_int_equal(checkpoint_due(r.c), 120);
    checkpoint_close(r.c);
}

/* A neighbour may announce one step for a checkpoint in each half of the checkpoint interval. While
 * the announced step is pending, the neighbour may replace it by an earlier step. */
static void test_one_word_of_a_neighbour(void **state)
{
    (void)state;
    struct checkpoint_word liar = {0}, other = {0};
    assert_false(checkpoint_word(&liar, 0, 50, EVERY, EVERY));
    assert_false(checkpoint_word(&liar, 50, 50, EVERY, EVERY));
    assert_true(checkpoint_word(&liar, 90, 50, EVERY, EVERY));
    assert_true(checkpoint_word(&liar, 51, 50, EVERY, EVERY));
    assert_false(checkpoint_word(&liar, 90, 50, EVERY, EVERY));
    assert_true(checkpoint_word(&liar, 51, 50, EVERY, EVERY));
    assert_false(checkpoint_word(&liar, 52, 51, EVERY + 1, EVERY));
    assert_false(checkpoint_word(&liar, 99, 98, EVERY + EVERY / 2 - 1, EVERY));
    assert_true(checkpoint_word(&other, 90, 51, EVERY + 1, EVERY));
    assert_true(checkpoint_word(&liar, 100, 99, EVERY + EVERY / 2, EVERY));
}

/* MOST is the latest step that an honest peer may announce for a checkpoint. The node must ignore a
 * later step. If it accepted such a step, it would write no checkpoint until then. */
static void test_far_away(void **state)
{
    enum { MOST = 50 + 2 * REACH + 16 + 12 * REACH + 6 };
    struct rig r = {0};
    (void)state;
    rig_init(&r, EVERY);
    hear(&r, MOST + 1, 50);
    hear(&r, UINT64_MAX, 50);
    assert_int_equal(checkpoint_due(r.c), 0);
    hear(&r, MOST, 50);
    assert_int_equal(checkpoint_due(r.c), MOST);
    checkpoint_close(r.c);
}

/* If the node skips the round of a checkpoint, that checkpoint must be cancelled. */
static void test_missed(void **state)
{
    struct rig r = {0};
    (void)state;
    rig_init(&r, EVERY - 1);
    hear(&r, 80, 50);
    assert_false(now(&r, 81));
    assert_int_equal(checkpoint_due(r.c), 0);
    checkpoint_close(r.c);
}

/* A peer that was asked to stop wants one checkpoint first, whatever the age of the last one. The
 * checkpoint is due as soon as its announcement can have reached all peers. */
static void test_asked_for_at_an_end(void **state)
{
    struct rig r = {0};
    (void)state;
    rig_init(&r, 0);
    checkpoint_ask(r.c);
    assert_false(now(&r, 10));
    assert_int_equal(checkpoint_due(r.c), 10 + 4 * REACH + 2);
    /* Another stopping peer announces a checkpoint for step 20, which is earlier. */
    hear(&r, 20, 11);
    assert_true(now(&r, 20));
    checkpoint_taken(r.c, 20);
    checkpoint_written(r.c, 20);
    assert_false(now(&r, 21));
    assert_int_equal(checkpoint_due(r.c), 0);
    checkpoint_close(r.c);
}

/* A node ignores a checkpoint step that checkpoint_word() rejects. After the node was asked to
 * stop, it uses every announced step. After checkpoint_cancel() no checkpoint is due. */
static void test_rejected_words_count_at_an_end(void **state)
{
    struct rig r = {0};
    struct checkpoint_view v = at(10);
    (void)state;
    rig_init(&r, 0);
    checkpoint_hear(r.c, 0, 20, &v);
    assert_int_equal(checkpoint_due(r.c), 0);
    checkpoint_ask(r.c);
    checkpoint_hear(r.c, 0, 20, &v);
    assert_int_equal(checkpoint_due(r.c), 20);
    checkpoint_cancel(r.c);
    checkpoint_hear(r.c, 0, 20, &v);
    assert_int_equal(checkpoint_due(r.c), 0);
    checkpoint_close(r.c);
}

/* The checkpoint module must remember the largest number of vertices of the graph since the last
 * checkpoint. */
static void test_members_are_counted_from_the_last_one(void **state)
{
    struct rig r = {0};
    (void)state;
    rig_init(&r, 0);
    checkpoint_members(r.c, 5);
    checkpoint_members(r.c, 4);
    assert_true(checkpoint_lost_members(r.c, 4));
    assert_false(checkpoint_lost_members(r.c, 5));
    checkpoint_taken(r.c, 20);
    checkpoint_members(r.c, 4);
    assert_false(checkpoint_lost_members(r.c, 4));
    checkpoint_close(r.c);
}

static void test_disk_is_waited_for(void **state)
{
    struct rig r = {0};
    struct checkpoint_view v = at(80);
    (void)state;
    rig_init(&r, EVERY);
    hear(&r, 80, 50);
    assert_true(now(&r, 80));
    checkpoint_taken(r.c, 80);
    assert_false(checkpoint_blocks(r.c, &v));
    r.env.now_us += EVERY;
    hear(&r, 150, 80);
    v.beat = 150 - 2 * REACH - 3;
    assert_false(checkpoint_blocks(r.c, &v));
    v.beat++;
    assert_true(checkpoint_blocks(r.c, &v));
    /* The disk reports that a checkpoint of another step is stored. */
    checkpoint_written(r.c, 79);
    assert_true(checkpoint_blocks(r.c, &v));
    checkpoint_written(r.c, 80);
    assert_false(checkpoint_blocks(r.c, &v));
    checkpoint_close(r.c);
}

static void test_without_lock_step(void **state)
{
    struct rig r = {0};
    struct checkpoint_view v = at(80);
    (void)state;
    v.lock_step = false;
    rig_init(&r, EVERY - 1);
    assert_false(checkpoint_now(r.c, &v));
    r.env.now_us++;
    assert_true(checkpoint_now(r.c, &v));
    checkpoint_taken(r.c, 80);
    r.env.now_us += EVERY;
    /* The disk has not reported yet that the last checkpoint is stored. */
    assert_false(checkpoint_now(r.c, &v));
    assert_false(checkpoint_blocks(r.c, &v));
    checkpoint_written(r.c, 80);
    assert_true(checkpoint_now(r.c, &v));
    /* The last round of training has a checkpoint of any age, like in lock step. */
    rig_init(&r, 0);
    v = at(999);
    v.lock_step = false;
    assert_false(checkpoint_now(r.c, &v));
    v.beat = 1000;
    assert_true(checkpoint_now(r.c, &v));
    checkpoint_close(r.c);
}

static void test_off(void **state)
{
    struct rig r = {0};
    (void)state;
    rig_init(&r, 1000 * (int64_t)EVERY);
    r.env.config.checkpoint_us = 0;
    hear(&r, 80, 50);
    assert_false(now(&r, 80));
    assert_int_equal(checkpoint_due(r.c), 0);
    checkpoint_close(r.c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_proposed_once_old),
        cmocka_unit_test(test_not_behind_the_last_round),
        cmocka_unit_test(test_words_of_others),
        cmocka_unit_test(test_one_word_of_a_neighbour),
        cmocka_unit_test(test_far_away),
        cmocka_unit_test(test_missed),
        cmocka_unit_test(test_asked_for_at_an_end),
        cmocka_unit_test(test_rejected_words_count_at_an_end),
        cmocka_unit_test(test_members_are_counted_from_the_last_one),
        cmocka_unit_test(test_disk_is_waited_for),
        cmocka_unit_test(test_without_lock_step),
        cmocka_unit_test(test_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
