/* tests/unit/uvdriver_session.c -- tests limits of a session: key changes, queues, priorities and
 * free slots. */
#include "tests/unit/uvdriver_fake.h"

#include "peer/uv/client.h"
#include "peer/uv/session.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

static struct fake a, b;

static void init_both(void)
{
    fake_init(&a, 'a');
    fake_init(&b, 'b');
}

/* Adds a control message of n bytes to the effects of b's next step. The first byte of the message
 * is `first`. */
static void ask_control(uint8_t first, size_t n)
{
    static uint8_t bytes[8][60000];
    uint32_t i = b.asks.n_sends++;
    assert_true(i < 8 && n <= sizeof bytes[0]);
    bytes[i][0] = first;
    b.asks.sends[i] = (struct node_send){.link = b.link[0], .head = bytes[i], .n_head = n};
}

static void ask_bulk(struct packet *p)
{
    static const uint8_t head[1] = {1};
    b.asks.sends[b.asks.n_sends++] =
        (struct node_send){.link = b.link[0], .bulk = true, .head = head, .n_head = 1, .body = p};
}

static struct packet *packet_of(size_t n)
{
    struct packet *p = packet_get(&b.pool);
    assert_non_null(p);
    p->len = n;
    memset(p->bytes, 1, n);
    return p;
}

/* ---- rekeying ---- */

enum { MESSAGE = 100 };

/* b sends `n` messages one by one. Returns the number of received records without data. These are
 * REKEY records, because no other record is so short while the session is open. */
static uint64_t rekeys_in(uint32_t n)
{
    fake_meet(&a, &b, 1);
    for (uint32_t i = 0; i < n; i++) {
        ask_control(2, MESSAGE);
        fake_poke(&b);
        FAKE_RUN_UNTIL(a.n_recv == i + 1);
    }
    fake_poke(&a);
    uint64_t bytes = a.bytes_received - CHANNEL_MSG1 - CHANNEL_MSG3;
    uint64_t messages = n * (uint64_t)(MESSAGE + CHANNEL_OVERHEAD);
    assert_true(bytes >= messages);
    assert_int_equal((bytes - messages) % CHANNEL_OVERHEAD, 0);
    fake_part(&a, &b);
    return (bytes - messages) / CHANNEL_OVERHEAD;
}

static void test_rekeys_by_volume(void **state)
{
    (void)state;
    init_both();
    b.config.link.rekey_ms = FAKE_GENEROUS_MS;
    b.config.link.rekey_bytes = 10 * MESSAGE;
    assert_int_equal(rekeys_in(35), 3);
}

static void test_rekeys_by_time(void **state)
{
    (void)state;
    init_both();
    b.config.link.rekey_ms = 0;
    assert_int_equal(rekeys_in(7), 7);
}

static void test_keeps_a_young_key(void **state)
{
    (void)state;
    init_both();
    b.config.link.rekey_ms = FAKE_GENEROUS_MS;
    assert_int_equal(rekeys_in(20), 0);
}

/* ---- queues ---- */

static uint8_t order[32];

static void note_order(struct fake *f, const struct node_event *ev, struct node_effects *fx)
{
    (void)fx;
    if (ev->type == NODE_RECV && f->n_recv <= sizeof order)
        order[f->n_recv - 1] = ev->recv.bytes[0];
}

/* Bulk messages must wait until all control messages are sent, also if a chunk (the unit of
 * sending) with a control message has room left. Two chunks may be in transit, so the third message
 * of this test is the first to wait. */
static void test_bulk_waits_for_all_control(void **state)
{
    (void)state;
    init_both();
    a.script = note_order;
    fake_meet(&a, &b, 1);
    struct packet *p = packet_of(10);
    ask_control(2, 60000);
    ask_control(2, 60000);
    ask_bulk(p);
    ask_control(2, 60000);
    ask_control(2, 60000);
    fake_poke(&b);
    packet_release(p);
    FAKE_RUN_UNTIL(a.n_recv == 5);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(order[i], 2);
    assert_int_equal(order[4], 1);
    fake_part(&a, &b);
}

/* UV_SESSION_BULK_MAX bulk messages may wait. One more closes the link. */
static void test_bulk_queue_is_bounded(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < 2; n++) {
        init_both();
        fake_meet(&a, &b, 1);
        /* The first bulk message is long and stays in the queue. */
        struct packet *p = packet_of(4 * UV_SESSION_CHUNK);
        for (uint32_t i = 0; i < UV_SESSION_BULK_MAX + n; i++)
            ask_bulk(p);
        fake_poke(&b);
        packet_release(p);
        FAKE_RUN_UNTIL(n == 0 ? a.n_recv == UV_SESSION_BULK_MAX : a.n_down == 1 && b.n_down == 1);
        assert_int_equal(b.n_clean, 0);
        fake_part(&a, &b);
    }
}

/* A clean end of the session does not wait for bulk messages: those in the queue are dropped. In
 * this test, two chunks of control messages are in transit before the end. */
static void test_hangup_drops_bulk(void **state)
{
    (void)state;
    init_both();
    fake_meet(&a, &b, 1);
    struct packet *p = packet_of(10);
    ask_control(2, 60000);
    ask_control(2, 60000);
    ask_bulk(p);
    b.asks.n_hangups = 1;
    b.asks.hangups[0].link = b.link[0];
    fake_poke(&b);
    packet_release(p);
    FAKE_RUN_UNTIL(a.n_down == 1 && b.n_down == 1);
    assert_int_equal(a.n_recv, 2);
    assert_int_equal(a.n_clean, 1);
    fake_part(&a, &b);
}

/* Control messages have their own limit, far below the limit of bulk messages. */
static void test_over_long_control(void **state)
{
    (void)state;
    init_both();
    a.control_max = 1000;
    fake_meet(&a, &b, 1);
    ask_control(2, 1000);
    fake_poke(&b);
    FAKE_RUN_UNTIL(a.n_recv == 1);
    ask_control(2, 1001);
    fake_poke(&b);
    FAKE_RUN_UNTIL(a.n_down == 1 && b.n_down == 1);
    assert_int_equal(a.n_recv, 1);
    assert_int_equal(a.n_clean, 0);
    fake_part(&a, &b);
}

/* ---- deadlines ---- */

/* After the handshake, an open link has no deadline. */
static void test_open_links_have_no_deadline(void **state)
{
    (void)state;
    init_both();
    fake_meet(&a, &b, 1);
    uint32_t n_open = 0;
    for (uint32_t i = 0; i < UV_DRIVER_SLOTS; i++) {
        const struct uv_link *l = &a.driver->slot[i];
        if (l->state != UV_LINK_OPEN)
            continue;
        n_open++;
        assert_false(uv_is_active((const uv_handle_t *)&l->timer));
    }
    assert_int_equal(n_open, 1);
    fake_part(&a, &b);
}

static void note_turns(struct fake *f, const struct node_event *ev, struct node_effects *fx)
{
    if (ev->type == NODE_RECV && order[0] == 0) {
        order[0] = 'r';
        /* The node has set a time at which it wants to be woken, so a TIMER event must follow. */
        fx->wake_us = 0;
    }
    if (ev->type == NODE_TIMER && f->n_timer > 2 && order[0] == 0)
        order[0] = 't';
}

/* A node that wakes up late must receive the messages that have arrived before it receives the
 * timer event. If the timer event came first, the node would take live peers for silent. */
static void test_late_wake_reads_first(void **state)
{
    (void)state;
    init_both();
    fake_meet(&a, &b, 1);
    memset(order, 0, sizeof order);
    ask_control(2, MESSAGE);
    /* When fake_poke() returns, the bytes are in the receive buffer of a's socket. */
    fake_poke(&b);
    a.asks.wake_us = uv_worker_clock_us() - 10 * 1000 * 1000;
    fake_poke(&a);
    a.n_timer = 2;
    a.script = note_turns;
    int64_t begin = uv_worker_clock_us();
    while (uv_worker_clock_us() < begin + 3000)
        ; /* Waits until the time of the timer has passed. */
    FAKE_RUN_UNTIL(order[0] != 0);
    assert_int_equal(order[0], 'r');
    FAKE_RUN_UNTIL(a.n_timer > 2); /* The timer event must come after the message, not be lost. */
    fake_part(&a, &b);
}

/* ---- slots ---- */

/* If the node's table of links is full, a new link is closed with a CLOSE record and not reported
 * to the node. */
static void test_no_more_links_than_the_node_takes(void **state)
{
    (void)state;
    init_both();
    fake_open(&a);
    fake_open(&b);
    a.driver->n_up = NODE_LINKS_MAX;
    fake_dial(&b, a.address, 1);
    FAKE_RUN_UNTIL(b.n_up == 1 && b.n_down == 1);
    assert_int_equal(b.n_clean, 1);
    FAKE_RUN_UNTIL(a.driver->n_up == NODE_LINKS_MAX);
    assert_int_equal(a.n_up + a.n_down, 0);
    a.driver->n_up = 0;
    fake_part(&a, &b);
}

static int knock(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(uv_driver_port(a.driver)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

/* Unauthenticated connections never use the slots that are reserved for dialling. A waiting
 * connection is accepted when another slot becomes free. */
static void test_slots_kept_for_dialling(void **state)
{
    (void)state;
    int fd[6];
    init_both();
    a.config.accept.reserve = UV_DRIVER_SLOTS - 4;
    fake_open(&a);
    fake_open(&b);
    for (int i = 0; i < 6; i++)
        fd[i] = knock();
    FAKE_RUN_UNTIL(uv_driver_counts(a.driver)->accepted == 4);
    fake_dial(&a, b.address, 1);
    FAKE_RUN_UNTIL(a.n_up == 1 && b.n_up == 1);
    assert_int_equal(uv_driver_counts(a.driver)->accepted, 4);
    close(fd[0]);
    close(fd[1]);
    FAKE_RUN_UNTIL(uv_driver_counts(a.driver)->strangers == 2);
    /* Two connections were closed, which frees two slots. The session that driver a has dialled
     * takes one, so only one waiting connection is accepted. */
    FAKE_RUN_UNTIL(uv_driver_counts(a.driver)->accepted == 5);
    for (int i = 2; i < 6; i++)
        close(fd[i]);
    FAKE_RUN_UNTIL(uv_driver_counts(a.driver)->strangers == 6);
    fake_part(&a, &b);
}

/* ---- several addresses ---- */

static uint32_t seen_up, seen_end;

static void client_up(void *self, uint32_t tag, uint32_t session, const uint8_t id[WIRE_ID_BYTES])
{
    (void)tag;
    assert_memory_equal(id, a.identity.sign_pk, WIRE_ID_BYTES);
    seen_up++;
    uv_client_hangup(*(struct uv_client **)self, session);
}

static void client_message(void *self, uint32_t session, const struct wire_message *m)
{
    (void)self, (void)session, (void)m;
}

static void client_ended(void *self, uint32_t tag, uint32_t session)
{
    (void)self, (void)tag, (void)session;
    seen_end++;
}

static bool client_done(void *self)
{
    (void)self;
    /* The peer runs in the same thread as the client, so the test must run the event loop of the
     * peer. */
    uv_run(&fake_loop, UV_RUN_NOWAIT);
    return seen_end > 0;
}

/* Two of the three addresses refuse connections: their ports are bound, but no process listens. */
static void test_dials_one_address_after_another(void **state)
{
    (void)state;
    struct uv_client *c;
    struct uv_client_calls calls = {
        .self = &c, .up = client_up, .message = client_message, .ended = client_ended};
    union uv_address at[3];
    int fd[2];
    fake_init(&a, 'a');
    fake_open(&a);
    seen_up = seen_end = 0;
    for (int i = 0; i < 2; i++) {
        socklen_t n = sizeof at[i].v4;
        assert_int_equal(uv_resolve_numeric("127.0.0.1:0", &at[i]), 0);
        fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(fd[i], &at[i].any, n), 0);
        assert_int_equal(getsockname(fd[i], &at[i].any, &n), 0);
    }
    assert_int_equal(uv_resolve_numeric(a.address, &at[2]), 0);
    assert_int_equal(uv_client_open(&c, fake_psk, NULL, &calls), 0);
    assert_int_equal(uv_client_dial(c, 9, at, 3), 0);
    bool done = false;
    for (int i = 0; i < WATCHDOG_MS && !done; i++)
        done = uv_client_wait(c, 1, client_done);
    assert_true(done);
    assert_int_equal(seen_up, 1);
    uv_client_close(c);
    FAKE_RUN_UNTIL(a.n_up == 1 && a.n_down == 1);
    fake_exit(&a);
    fake_close(&a);
    close(fd[0]);
    close(fd[1]);
}

#define FAKE_TEST(test) cmocka_unit_test_setup_teardown(test, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FAKE_TEST(test_rekeys_by_volume),        FAKE_TEST(test_rekeys_by_time),
        FAKE_TEST(test_keeps_a_young_key),       FAKE_TEST(test_bulk_waits_for_all_control),
        FAKE_TEST(test_bulk_queue_is_bounded),   FAKE_TEST(test_hangup_drops_bulk),
        FAKE_TEST(test_over_long_control),       FAKE_TEST(test_open_links_have_no_deadline),
        FAKE_TEST(test_late_wake_reads_first),   FAKE_TEST(test_no_more_links_than_the_node_takes),
        FAKE_TEST(test_slots_kept_for_dialling), FAKE_TEST(test_dials_one_address_after_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
