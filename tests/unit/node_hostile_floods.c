/* tests/unit/node_hostile_floods.c -- tests of a node against floods of messages, mutated messages,
 * truncated messages, and sessions that always fail. SEED= replays the mutations. */
#include "tests/unit/node_hostile_says.h"

/* ---- floods ---- */

static void test_storms(void **state)
{
    static uint8_t out[SCRATCH];
    (void)state;
    struct world *w = world_in_training(100000);
    evil_opens(w);
    w->seen.n_edges = w->seen.n_sent = 0;
    for (uint64_t i = 0; i < 3000; i++) {
        struct wire_edge m = {.epoch = i % 3 ? i : w->seen.last_delta.epoch,
                              .round = i % 5,
                              .nonce = i + 1,
                              .boot = i};
        evil_says(w, out, wire_put_edge(out, sizeof out, &m));
        if (i % 100 == 0)
            run_for(w, STEP_US);
    }
    assert_false(w->hung_up);
    assert_true(w->seen.n_edges <= 3100); /* The node sends at most one answer per message. */
    check_alive(w);
    w->seen.n_edges = 0;
    for (uint64_t i = 0; i < 3000; i++)
        evil_says(w, out, close_edge(w, out));
    assert_true(w->seen.n_edges <= 3000);
    check_alive(w);
    w->seen.n_sent = 0;
    for (uint64_t i = 0; i < 10000; i++)
        evil_says(w, out, ping(w, out));
    assert_int_equal(w->seen.n_sent, 0); /* The node does not answer PING messages. */
    for (uint64_t i = 0; i < 2000; i++)
        evil_says(w, out, hello_again(w, out));
    assert_false(w->hung_up);
    check_alive(w);
    /* The hostile peer opens more sessions than the node has room for. */
    for (int i = 0; i < 300; i++) {
        w->evil = UINT32_MAX;
        evil_connects(w);
    }
    check_friend(w);
    run_for(w, 15 * SECOND); /* The node closes the sessions that stay silent. */
    evil_opens(w);
    check_alive(w);
    world_close(w);
}

/* ---- thousands of mutations ---- */

static size_t mutate(struct rng *r, uint8_t *p, size_t n, size_t cap)
{
    uint64_t n_changes = 1 + rng_below(r, 3);
    for (uint64_t i = 0; i < n_changes; i++) {
        size_t at = n > 0 ? (size_t)rng_below(r, n < 200 || rng_below(r, 2) ? n : 200) : 0;
        switch (rng_below(r, 7)) {
        case 0:
            n = at;
            break;
        case 1:
            if (n + 1 < cap)
                p[n++] = (uint8_t)rng_u64(r);
            break;
        case 2:
            p[at] = (uint8_t)rng_u64(r);
            break;
        case 3:
            p[at] ^= (uint8_t)(1u << rng_below(r, 8));
            break;
        /* Replaces a byte by the byte with which a MessagePack type begins, or by a boundary
         * value. */
        case 4: {
            static const uint8_t special[] = {0,    1,    0x7f, 0x80, 0x90, 0x9f, 0xc0, 0xc2, 0xc4,
                                              0xc6, 0xca, 0xcb, 0xcc, 0xcf, 0xd9, 0xdc, 0xdd, 0xff};
            p[at] = special[rng_below(r, sizeof special)];
            break;
        }
        case 5: /* Repeats the end of the message. */
            if (n > 2 && n + n - at < cap) {
                memmove(p + at + (n - at), p + at, n - at);
                n += n - at;
            }
            break;
        case 6: /* Removes one byte of the message. */
            if (n > 0) {
                memmove(p + at, p + at + 1, n - at - 1);
                n--;
            }
            break;
        }
    }
    return n;
}

static void test_mutations(void **state)
{
    static uint8_t out[SCRATCH];
    size_t (*const seedling[])(struct world *,
                               uint8_t *) = {hello_again,   members_good,  members_accuses_friend,
                                             ping,          edge_same_far, edge_max,
                                             close_edge,    delta_good,    delta_echo,
                                             delta_good,    delta_echo,    model_req,
                                             model_unasked, status_req,    status_of_mine};
    enum { SEEDLINGS = sizeof seedling / sizeof seedling[0] };
    uint32_t n_violations = 0, n_taken = 0;
    const char *seed = getenv("SEED");
    struct rng r = rng_stream(seed != NULL ? strtoull(seed, NULL, 0) : 1);
    (void)state;
    print_message("SEED=%s\n", seed != NULL ? seed : "1");
    struct world *w = world_in_training(100000);
    for (uint32_t i = 0; i < 6000; i++) {
        if (w->evil == UINT32_MAX || rng_below(&r, 40) == 0) {
            switch (rng_below(&r, 4)) {
            case 0:
                evil_connects(w);
                break;
            case 1:
                evil_connects(w);
                evil_hello(w);
                break;
            default:
                evil_opens(w);
            }
        }
        uint64_t violations = progress(w, OURS).violations;
        float before[DIM];
        memcpy(before, model(w, OURS), sizeof before);
        size_t n = seedling[rng_below(&r, SEEDLINGS)](w, out);
        n = mutate(&r, out, n, sizeof out);
        w->hung_up = w->violation = false;
        bool worked = w->work_us[OURS] != 0;
        evil_says(w, out, n);
        /* The hostile message must not change the node's model. One exception: if the message
         * completes what the next job waits for, the job starts and may change the model. */
        if (worked || w->work_us[OURS] == 0)
            assert_memory_equal(before, model(w, OURS), sizeof before);
        assert_int_equal(progress(w, OURS).violations, violations + w->violation);
        n_violations += w->violation;
        n_taken += !w->hung_up;
        if (i % 16 == 0)
            check_friend(w);
        if (i % 400 == 0)
            check_alive(w);
        else if (rng_below(&r, 4) == 0)
            run_for(w, (int64_t)rng_below(&r, STEP_US));
        assert_true(vec_finite(model(w, OURS), DIM));
        assert_false(w->over[OURS] || w->over[FRIEND]);
    }
    print_message("6000 mutations: %u violations, %u taken or dropped\n", n_violations, n_taken);
    assert_true(n_violations > 2000 && n_taken > 300);
    world_close(w);
}

/* Each message is truncated to many lengths. The node must treat an incomplete message as a
 * protocol violation. */
static void test_truncations(void **state)
{
    static uint8_t whole[SCRATCH];
    size_t (*const make[])(struct world *, uint8_t *) = {hello_again,   members_good, ping,
                                                         edge_same_far, close_edge,   delta_good,
                                                         model_req,     status_req};
    (void)state;
    struct world *w = world_in_training(100000);
    for (size_t m = 0; m < sizeof make / sizeof make[0]; m++) {
        evil_opens(w);
        size_t n = make[m](w, whole);
        for (size_t cut = 0; cut < n; cut += 1 + n / 64) {
            evil_connects(w);
            evil_hello(w);
            evil_says(w, whole, cut);
            if (!w->violation)
                fail_msg("message %zu cut to %zu of %zu bytes was taken", m, cut, n);
        }
    }
    check_alive(w);
    world_close(w);
}

/* ---- redialling ---- */

/* A neighbour hangs up before its HELLO (how = 0), hangs up after its HELLO (1), or violates the
 * protocol each time (2). The node does not dial it as fast as the network allows. After a
 * violation it does not dial before the quarantine has ended. */
static void test_no_dial_storm(void **state)
{
    static uint8_t out[SCRATCH];
    (void)state;
    for (int how = 0; how < 3; how++) {
        struct world *w = world_in_training(100000);
        evil_opens(w);
        w->n_dials = 0;
        w->answers = true;
        disconnect(w, w->evil, false);
        int64_t end = w->now_us + 4 * SECOND;
        while (w->now_us < end) {
            run_for(w, STEP_US / 4);
            if (w->evil == UINT32_MAX)
                continue;
            if (how == 1)
                evil_hello(w);
            if (how == 2)
                evil_says(w, out, hello_version(w, out));
            disconnect(w, w->evil, false);
        }
        print_message("%u dials in 4 s\n", w->n_dials);
        assert_true(w->n_dials >= (how == 2 ? 1 : 2) && w->n_dials <= 10);
        check_alive(w);
        world_close(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_storms),
        cmocka_unit_test(test_truncations),
        cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_no_dial_storm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
