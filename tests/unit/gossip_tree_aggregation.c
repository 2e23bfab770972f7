/* tests/unit/gossip_tree_aggregation.c -- tests tree aggregation (sums over a spanning tree): the
 * sum must contain each member once, and no other peer.
 *
 * One peer is under test, and the test plays its neighbours. */
#include "gossip/exchange/tree_aggregation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* A peer with at most two children, in a cluster of three members in lock step. All trees have the
 * same shape. */
struct peer
{
    struct tree_aggregation v;
    struct tree_aggregation_pair pair[2];
};

static void open_peer(struct peer *p, bool root, uint32_t n_children,
                      enum tree_aggregation_role role)
{
    struct tree_aggregation_place place = {
        .built = 1, .n = 3, .depth = 1, .reach = 1, .lock_step = true, .n_rounds = 1000, .pace = 1};
    const enum tree_aggregation_role all[TREE_AGGREGATION_TREES] = {role, role, role, role};
    const float s[SKETCH_K] = {1};
    *p = (struct peer){.v = {.round = 0}};
    for (size_t t = 0; t < TREE_AGGREGATION_TREES; t++) {
        place.root[t] = root;
        place.n_children[t] = n_children;
    }
    for (size_t i = 0; i < 2; i++)
        tree_aggregation_pair_place(&p->pair[i], all, place.built);
    assert_true(tree_aggregation_beat(&p->v, &place, 0));
    tree_aggregation_begin(&p->v, s, 1, 0);
}

/* Neighbour `who` reports, for the first measurement (window), a sum over `n` peers whose models
 * are 0. */
static void say(struct peer *p, size_t who, enum tree_aggregation_word word, uint32_t n)
{
    struct tree_aggregation_sum sum = {.n = n};
    tree_aggregation_hear(&p->v, &p->pair[who], word, 1, &sum);
}

/* The root has received the sums of both children, so the result is for all three members. */
static void test_all_are_counted(void **state)
{
    (void)state;
    struct peer p;
    open_peer(&p, true, 2, TREE_AGGREGATION_CHILD);
    say(&p, 0, TREE_AGGREGATION_UP, 1);
    assert_null(tree_aggregation_newest(&p.v));
    say(&p, 1, TREE_AGGREGATION_UP, 1);
    const struct tree_aggregation_slot *s = tree_aggregation_newest(&p.v);
    assert_non_null(s);
    assert_true(s->sharp);
    assert_int_equal(s->sum.n, 3);
    /* The squared distances of the models 1, 0, 0 from their mean sum to 2/3. */
    assert_true(s->sum.dist2 > 0.66 && s->sum.dist2 < 0.67);
}

/* A report that is repeated, for example after a lost session, counts once. */
static void test_child_counts_once(void **state)
{
    (void)state;
    struct peer p;
    open_peer(&p, true, 2, TREE_AGGREGATION_CHILD);
    say(&p, 0, TREE_AGGREGATION_UP, 1);
    say(&p, 0, TREE_AGGREGATION_UP, 1);
    assert_null(tree_aggregation_newest(&p.v));
    say(&p, 1, TREE_AGGREGATION_UP, 1);
    assert_non_null(tree_aggregation_newest(&p.v));
}

/* The root publishes no result if the number of peers in the sum differs from the number of
 * members. */
static void test_root_wants_all_members(void **state)
{
    (void)state;
    static const uint32_t below[] = {1, 2, 3};
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
        struct peer p;
        open_peer(&p, true, 1, TREE_AGGREGATION_CHILD);
        say(&p, 0, TREE_AGGREGATION_UP, below[i]);
        assert_int_equal(tree_aggregation_newest(&p.v) != NULL, below[i] == 2);
    }
}

/* A peer ignores a result from its parent if the result is for another number of members than the
 * peer knows. */
static void test_result_is_of_all_members(void **state)
{
    (void)state;
    static const uint32_t of[] = {1, 2, 3, 4};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct peer p;
        open_peer(&p, false, 0, TREE_AGGREGATION_PARENT);
        say(&p, 0, TREE_AGGREGATION_DOWN, of[i]);
        assert_int_equal(tree_aggregation_newest(&p.v) != NULL, of[i] == 3);
    }
}

/* Without lock step, the sums of the children are of different moments. If the distance may have
 * changed by more than a tenth between these moments, the result is not marked `sharp`. */
static void test_blurred(void **state)
{
    (void)state;
    static const struct
    {
        /* Rounds between the start of the second measurement (window) and the reports of both
         * children. */
        uint64_t rounds;
        /* First float of the sketch of this peer's model in the second measurement. In the first
         * measurement that float is 1. */
        float model;
        bool sharp;
    } cases[] = {{20, 1, true}, {10, 1.05f, true}, {20, 1.05f, false}, {2, 1.5f, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct peer p;
        const float s[SKETCH_K] = {cases[i].model};
        open_peer(&p, true, 2, TREE_AGGREGATION_CHILD);
        struct tree_aggregation_place place = p.v.place;
        place.lock_step = false;
        uint64_t round = 0;
        say(&p, 0, TREE_AGGREGATION_UP, 1);
        say(&p, 1, TREE_AGGREGATION_UP, 1);
        while (!tree_aggregation_beat(&p.v, &place, round))
            round++;
        tree_aggregation_begin(&p.v, s, 1, 0);
        (void)tree_aggregation_beat(&p.v, &place, round + cases[i].rounds);
        for (size_t who = 0; who < 2; who++) {
            struct tree_aggregation_sum sum = {.n = 1};
            tree_aggregation_hear(&p.v, &p.pair[who], TREE_AGGREGATION_UP, p.v.clock, &sum);
        }
        const struct tree_aggregation_slot *newest = tree_aggregation_newest(&p.v);
        assert_non_null(newest);
        assert_int_equal(newest->index, 2);
        assert_int_equal(newest->sharp, cases[i].sharp);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_are_counted),
        cmocka_unit_test(test_child_counts_once),
        cmocka_unit_test(test_root_wants_all_members),
        cmocka_unit_test(test_result_is_of_all_members),
        cmocka_unit_test(test_blurred),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
