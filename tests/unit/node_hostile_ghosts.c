/* tests/unit/node_hostile_ghosts.c -- tests of a hostile member that invents members (ghosts), and
 * of a real peer that joins at that time. The node and its friend train in a ring, in the order of
 * their names. If ghosts counted as members, their names would place them between the node and its
 * friend. */
#include "peer/node/inspect.h"
#include "tests/unit/node_hostile_says.h"

enum { GHOST = 1000, GHOSTS = 300, FLOOD = 1100, PIECE = 20 };

/* Returns the record of a ghost. It has the name of the node and a larger id, so that in the order
 * of members it comes between the node and its friend. */
static struct record ghost(const struct world *w, uint32_t number)
{
    struct record r = unsigned_record(number, 1);
    memcpy(r.name, w->known[OURS].name, sizeof r.name);
    return signed_record(r);
}

/* The hostile member announces `n` ghosts, which are members that do not exist. Each message has
 * PIECE ghosts, endorsed by the hostile member or by other ghosts. */
static void evil_tells_of(struct world *w, uint32_t first, uint32_t n)
{
    static uint8_t out[SCRATCH];
    struct record r[PIECE];
    struct vouch v[PIECE + 4];
    for (uint32_t at = first; at < first + n; at += PIECE) {
        for (uint32_t i = 0; i < PIECE; i++) {
            bool by_evil = (at + i) % 2 == 0;
            r[i] = ghost(w, at + i);
            v[i] = vouch(at + i == first ? first + 1 : first, at + i);
            if (by_evil) {
                uint8_t msg[SIGNED_MAX];
                memcpy(v[i].voucher, w->key[EVIL], WIRE_ID_BYTES);
                toy_signature(v[i].voucher, msg, wire_vouch_signed(msg, sizeof msg, &v[i]),
                              v[i].signature);
            }
        }
        for (uint32_t i = 0; i < 4; i++)
            v[PIECE + i] = vouch(at + i, at + i + 1);
        struct wire_members m = {
            .n_records = PIECE, .n_vouches = PIECE + 4, .records = r, .vouches = v};
        evil_says(w, out, wire_put_members(out, sizeof out, &m));
        assert_false(w->hung_up);
    }
}

static struct world *world_on_a_ring(void)
{
    topology = "ring";
    struct world *w = world_in_training(100000);
    topology = "complete";
    evil_connects(w);
    evil_hello(w);
    return w;
}

static struct node_size size_of(const struct world *w, uint32_t who)
{
    struct node_size s;
    node_size(w->node[who], &s);
    return s;
}

/* Returns the squared distance between the models of the two honest nodes. */
static double apart2(const struct world *w)
{
    const float *x = model(w, OURS), *y = model(w, FRIEND);
    double sum = 0;
    for (size_t k = 0; k < DIM; k++)
        sum += ((double)x[k] - y[k]) * ((double)x[k] - y[k]);
    return sum;
}

static void test_ghosts(void **state)
{
    (void)state;
    struct world *alone = world_on_a_ring(), *w = world_on_a_ring();
    for (uint32_t wave = 0; wave < 3; wave++) {
        evil_tells_of(w, GHOST + wave * GHOSTS, GHOSTS);
        for (int k = 0; k < 40; k++) {
            /* This PING counts as a heartbeat, so the hostile member stays alive. */
            evil_says(w, scratch, ping(w, scratch));
            run_for(w, 5 * STEP_US);
            assert_in_range(size_of(w, OURS).n_vertices, 3, 4);
            /* The honest node FRIEND may have declared the hostile member dead. */
            assert_in_range(size_of(w, FRIEND).n_vertices, 2, 4);
        }
        check_alive(w);
    }
    disconnect(alone, alone->evil, false);
    run_until(alone, w->now_us);
    print_message("squared distance of the honest two: %.3g, without ghosts %.3g\n", apart2(w),
                  apart2(alone));
    assert_true(apart2(w) <= 2 * apart2(alone));
    world_close(w);
    world_close(alone);
}

/* Ghosts fill the member table, and further ghosts are ignored. A real peer that connects is a
 * member at once nevertheless. */
static void test_newcomer(void **state)
{
    (void)state;
    static uint8_t out[SCRATCH];
    struct world *w = world_on_a_ring();
    char text[WIRE_RUN_MAX + 1];
    evil_tells_of(w, GHOST, FLOOD);
    assert_int_equal(size_of(w, OURS).n_members, WIRE_MEMBERS_MAX);
    struct wire_hello h = good_hello(w, text);
    h.record = unsigned_record(WATCH, 1);
    memcpy(h.record.id, w->key[WATCH], WIRE_ID_BYTES);
    h.record = signed_record(h.record);
    w->watch = w->n_links;
    (void)connect_ends(w, WATCH, OURS, 0);
    flush(w);
    say(w, w->watch, out, wire_put_hello(out, sizeof out, &h));
    assert_true(node_counts(w->node[OURS], w->key[WATCH]));
    run_for(w, SECOND);
    /* The honest node FRIEND knows the new member. */
    assert_true(node_counts(w->node[FRIEND], w->key[WATCH]));
    evil_tells_of(w, GHOST + FLOOD, 200);
    assert_true(node_counts(w->node[OURS], w->key[WATCH]));
    assert_true(size_of(w, OURS).n_members <= WIRE_MEMBERS_MAX);
    world_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ghosts),
        cmocka_unit_test(test_newcomer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
