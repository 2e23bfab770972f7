/* tests/unit/uvdriver_throughput_probe.c -- tests that the node receives the bytes and times of a
 * session as counted by the kernel, if it asks for them. */
#include "tests/unit/uvdriver_fake.h"

#include "peer/uv/session.h"

static struct fake a, b;
/* Sum of all bursts (periods of continuous sending) that were reported to b's node. */
static struct uplink_bursts heard;
static double least_rtt_us;
static uint32_t n_heard; /* Number of events that reported bursts to b's node. */

static void note_carried(struct fake *f, const struct node_event *ev, struct node_effects *fx)
{
    (void)fx;
    if (ev->type != NODE_CARRIED)
        return;
    assert_int_equal(ev->link, f->link[0]);
    heard.n += ev->carried.bursts.n;
    heard.bytes += ev->carried.bursts.bytes;
    heard.us += ev->carried.bursts.us;
    least_rtt_us = ev->carried.rtt_us;
    n_heard++;
}

static void connect_both(enum node_uplink uplink)
{
    heard = (struct uplink_bursts){.n = 0};
    n_heard = 0;
    fake_init(&a, 'a');
    fake_init(&b, 'b');
    b.script = note_carried;
    b.config.node.uplink = uplink;
    fake_meet(&a, &b, 1);
}

/* `from` sends `to` a bulk message of n bytes and waits until it is received. */
static void pass_on(struct fake *from, struct fake *to, size_t n)
{
    static const uint8_t head[1] = {1};
    struct packet *p = packet_get(&from->pool);
    uint32_t before = to->n_recv;
    assert_non_null(p);
    p->len = n;
    memset(p->bytes, 1, n);
    from->asks.sends[from->asks.n_sends++] = (struct node_send){
        .link = from->link[0], .bulk = true, .head = head, .n_head = 1, .body = p};
    fake_poke(from);
    packet_release(p);
    FAKE_RUN_UNTIL(to->n_recv == before + 1);
}

static void pass(size_t n)
{
    pass_on(&b, &a, n);
}

/* Runs one job of b. The node must receive the measured bursts before the event that ends the
 * job. */
static void work(void)
{
    uint32_t before = b.n_worked;
    b.asks.work = true;
    fake_poke(&b);
    FAKE_RUN_UNTIL(b.n_worked == before + 1);
}

/* All bytes that were sent must be reported, after the kernel has acknowledged them. */
static void test_bytes_and_bursts(void **state)
{
    enum { N = 5, BYTES = 200000, MOST = 100000 };
    (void)state;
    connect_both(NODE_UPLINK_AUTO);
    for (int i = 0; i < N; i++)
        pass(BYTES);
#ifdef __linux__
    /* The last few bytes may not be acknowledged yet, so 99 % are enough. */
    for (int i = 0; heard.bytes < 0.99 * N * BYTES; i++) {
        assert_true(i < MOST);
        b.driver->carried_us = 0; /* Simulates that a second has passed since the last report. */
        work();
    }
    assert_true(heard.bytes < 1.1 * N * BYTES);
    assert_true(heard.n >= 1 && heard.n <= 4 * N + n_heard);
    assert_true(heard.us >= 0 && heard.us < 1e6 * FAKE_GENEROUS_MS);
    assert_true(least_rtt_us > 0);
#endif
    fake_part(&a, &b);
}

/* Two peers send messages in turns. The driver must make the kernel acknowledge each message at
 * once. By default the kernel would delay the acknowledgement until the answer is sent. */
static void test_acknowledged_at_once(void **state)
{
    (void)state;
    connect_both(NODE_UPLINK_AUTO);
    struct uv_link *l = &b.driver->slot[b.link[0] % UV_DRIVER_SLOTS];
    struct uv_carried *c = &l->session->carried;
    for (int i = 0; i < 50; i++) {
        uint64_t acked = c->acked;
        pass(1000);
        uv_carried_look(c, l->session->fd);
#ifdef __linux__
        assert_true(c->acked >= acked + 1000);
#else
        (void)acked;
#endif
        pass_on(&a, &b, 1000);
    }
    fake_part(&a, &b);
}

/* The driver reports bursts, its measurements of the bandwidth of a link, to the node at most once
 * per second, even if rounds are shorter than a second. */
static void test_once_a_second(void **state)
{
    (void)state;
    connect_both(NODE_UPLINK_AUTO);
    pass(1000);
    b.driver->carried_us = INT64_MAX / 2; /* The next report is due in the far future. */
    for (int i = 0; i < 20; i++)
        work();
    assert_int_equal(n_heard, 0);
    fake_part(&a, &b);
}

/* Unless the node asks for the measured bandwidth, it receives no reports of bursts (periods of
 * continuous sending). */
static void test_off(void **state)
{
    static const enum node_uplink uplink[] = {NODE_UPLINK_OFF, NODE_UPLINK_RATE};
    (void)state;
    for (size_t i = 0; i < sizeof uplink / sizeof *uplink; i++) {
        connect_both(uplink[i]);
        pass(100000);
        work();
        assert_int_equal(n_heard, 0);
        fake_part(&a, &b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_bytes_and_bursts, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_acknowledged_at_once, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_once_a_second, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_off, fake_setup, fake_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
