/* tests/unit/uvdriver_alloc.c -- tests that a driver sends and receives without allocations after
 * some rounds.
 *
 * Two drivers exchange what training peers send in a round: a bulk message of many records and one
 * of a single record, a delta's head with a sketch, heartbeats, and sometimes membership news of
 * the largest size. Allocations by libuv are counted, too. */
#include "alloc_count.h"
#include "uvdriver_fake.h"

enum { WARM_ROUNDS = 40, ROUNDS = 400, BODY = 300 * 1000 };

static struct fake a, b;
static struct packet *body;
static uint32_t n_rounds;
static uint8_t text[WIRE_CONTROL_MAX];

static void say(struct fake *f, struct node_effects *fx, bool bulk, size_t n_head,
                struct packet *packet)
{
    fx->sends[fx->n_sends++] = (struct node_send){
        .link = f->link[0], .bulk = bulk, .head = text, .n_head = n_head, .body = packet};
}

/* Each peer begins its next round when it has received the last message of the other peer's
 * round. */
static void answer(struct fake *f, const struct node_event *ev, struct node_effects *fx)
{
    bool first = ev->type == NODE_LINK_UP && f == &a;
    bool last = ev->type == NODE_RECV && ev->recv.len == 50 + BODY;
    if (!first && !last)
        return;
    n_rounds++;
    say(f, fx, false, 5, NULL);
    say(f, fx, true, 1100 + n_rounds % 50, NULL);
    if (n_rounds % 16 == 0)
        say(f, fx, false, sizeof text - n_rounds, NULL);
    say(f, fx, false, 20 + n_rounds % 9, NULL);
    say(f, fx, true, 50, body);
}

static void test_messages_allocate_nothing(void **state)
{
    (void)state;
    if (!ALLOC_COUNTS) {
        print_message("skipped: the allocator is not ours to count here\n");
        skip();
    }
    fake_init(&a, 'a');
    fake_init(&b, 'b');
    a.script = b.script = answer;
    body = packet_get(&a.pool);
    assert_non_null(body);
    body->len = BODY;
    memset(body->bytes, 3, BODY);
    fake_open(&a);
    fake_open(&b);
    fake_dial(&b, a.address, 1);
    FAKE_RUN_UNTIL(n_rounds >= WARM_ROUNDS);
    size_t before = alloc_calls;
    FAKE_RUN_UNTIL(n_rounds >= ROUNDS);
    size_t n = alloc_calls - before;
    if (n > 0)
        fail_msg("%zu allocations in %d rounds", n, ROUNDS - WARM_ROUNDS);
    a.script = b.script = NULL;
    alloc_once();
    assert_int_equal(alloc_calls, before + 1); /* Checks that allocations are counted. */
    fake_exit(&a);
    fake_exit(&b);
    FAKE_RUN_UNTIL(uv_driver_done(a.driver) && uv_driver_done(b.driver));
    packet_release(body);
    fake_close(&a);
    fake_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_messages_allocate_nothing, fake_setup, fake_teardown),
    };
    if (!fake_descriptors(64))
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
