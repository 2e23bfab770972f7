/* tests/unit/uvdriver_link.c -- tests two drivers over loopback: sessions, messages, limits, dials,
 * files and stopping. */
#include "tests/unit/uvdriver_fake.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

static struct fake a, b;

static void open_both(void)
{
    fake_open(&a);
    fake_open(&b);
}

static void close_both(void)
{
    if (a.driver) {
        fake_part(&a, &b);
    }
}

/* Driver b dials driver a. 77 is the tag by which events name the dial. */
static void connect_both(void)
{
    fake_meet(&a, &b, 77);
}

static void init_both(void)
{
    fake_init(&a, 'a');
    fake_init(&b, 'b');
}

static void test_session_and_clean_end(void **state)
{
    (void)state;
    init_both();
    connect_both();
    assert_memory_equal(a.id, b.identity.sign_pk, 32);
    assert_memory_equal(b.id, a.identity.sign_pk, 32);
    assert_true(b.dialled && !a.dialled);
    assert_int_equal(b.tag, 77);
    assert_string_equal(a.remote_host, "127.0.0.1");
    assert_string_equal(b.local_host, "127.0.0.1");

    b.asks.n_hangups = 1;
    b.asks.hangups[0].link = b.link[0];
    fake_poke(&b);
    FAKE_RUN_UNTIL(a.n_down == 1 && b.n_down == 1);
    assert_int_equal(a.n_clean, 1);
    assert_int_equal(b.n_clean, 1);

    /* A second session between the two drivers must get another link number. The session must end
     * when both sides send CLOSE at the same time. */
    fake_dial(&b, a.address, 78);
    FAKE_RUN_UNTIL(a.n_up == 2 && b.n_up == 2);
    assert_int_not_equal(b.link[0], b.link[1]);
    close_both();
}

static void test_abnormal_end(void **state)
{
    (void)state;
    init_both();
    connect_both();
    b.asks.n_hangups = 1;
    b.asks.hangups[0].link = b.link[0];
    b.asks.hangups[0].violation = true;
    fake_poke(&b);
    FAKE_RUN_UNTIL(a.n_down == 1 && b.n_down == 1);
    assert_int_equal(a.n_clean, 0);
    assert_int_equal(b.n_clean, 0);
    close_both();
}

static void test_totals_are_the_sockets(void **state)
{
    (void)state;
    init_both();
    connect_both();
    uint8_t ping[100] = {9};
    b.asks.sends[0] = (struct node_send){.link = b.link[0], .head = ping, .n_head = sizeof ping};
    b.asks.n_sends = 1;
    fake_poke(&b);
    FAKE_RUN_UNTIL(a.n_recv == 1);
    uv_run(&fake_loop, UV_RUN_NOWAIT);
    fake_poke(&a);
    fake_poke(&b);
    uint64_t sent = CHANNEL_MSG1 + CHANNEL_MSG3 + CHANNEL_HEADER + 1 + 100 + 16;
    assert_int_equal(b.bytes_sent, sent);
    assert_int_equal(a.bytes_received, sent);
    assert_int_equal(a.bytes_sent, CHANNEL_MSG2);
    assert_int_equal(b.bytes_received, CHANNEL_MSG2);
    close_both();
}

/* ---- Messages --------------------------------------------------------- */

static const uint32_t sizes[] = {1,     2,     3,      100,    65517,   65518,
                                 65519, 65520, 131036, 131037, 1 << 20, 5 << 20};
enum { N_SIZES = sizeof sizes / sizeof *sizes };
static uint32_t next_control, next_bulk;

static uint8_t pattern(uint32_t which, size_t i)
{
    return (uint8_t)(i * 31 + which * 7 + (i >> 8) * 13);
}

/* Checks a received message. Its first byte is the lane (bulk or control), and the rest is a
 * pattern. The expected length of each message is known. */
static void check_message(struct fake *f, const struct node_event *ev, struct node_effects *fx)
{
    (void)f;
    (void)fx;
    if (ev->type != NODE_RECV)
        return;
    bool bulk = ev->recv.bytes[0] == 1;
    uint32_t which = bulk ? next_bulk++ : next_control++;
    size_t want = bulk ? sizes[which] : which * 37 % 60000 + 1;
    assert_int_equal(ev->recv.len, want);
    for (size_t i = 1; i < want; i++) {
        if (ev->recv.bytes[i] != pattern(which, i))
            fail_msg("message %u of lane %d, byte %zu", which, bulk, i);
    }
}

static struct packet *make_packet(struct fake *f, uint32_t which, size_t n, size_t n_head)
{
    struct packet *p = packet_get(&f->pool);
    assert_non_null(p);
    p->len = n - n_head;
    for (size_t i = 0; i < p->len; i++)
        p->bytes[i] = pattern(which, i + n_head);
    return p;
}

/* Sends message `which` in the bulk lane: a head of 1 byte, and a body with the rest, if any. */
static void send_bulk(struct fake *f, uint32_t which)
{
    static const uint8_t head[1] = {1};
    struct packet *p = sizes[which] > 1 ? make_packet(f, which, sizes[which], 1) : NULL;
    f->asks.sends[f->asks.n_sends++] =
        (struct node_send){.link = f->link[0], .bulk = true, .head = head, .n_head = 1, .body = p};
    fake_poke(f);
    if (p)
        packet_release(p);
}

static void send_control(struct fake *f, uint32_t which)
{
    static uint8_t head[60001];
    size_t n = which * 37 % 60000 + 1;
    for (size_t i = 1; i < n; i++)
        head[i] = pattern(which, i);
    head[0] = 2;
    f->asks.sends[f->asks.n_sends++] =
        (struct node_send){.link = f->link[0], .head = head, .n_head = n};
    fake_poke(f);
}

static void exchange_all(uint32_t n_control)
{
    next_control = next_bulk = 0;
    a.script = check_message;
    connect_both();
    for (uint32_t i = 0; i < N_SIZES; i++)
        send_bulk(&b, i);
    for (uint32_t i = 0; i < n_control; i++) {
        send_control(&b, i);
        if (i % 8 == 0)
            uv_run(&fake_loop, UV_RUN_NOWAIT);
    }
    FAKE_RUN_UNTIL(next_control == n_control && next_bulk == N_SIZES && b.n_sent == N_SIZES);
    assert_int_equal(a.n_down, 0);
    close_both();
}

static void test_messages_arrive_whole_and_in_order(void **state)
{
    (void)state;
    init_both();
    exchange_all(1000);
}

static void test_messages_survive_rekeying(void **state)
{
    (void)state;
    init_both();
    b.config.link.rekey_bytes = 3000;
    exchange_all(300);
    init_both();
    b.config.link.rekey_ms = 0;
    exchange_all(300);
}

static uint32_t order[2], n_order;

static void note_order(struct fake *f, const struct node_event *ev, struct node_effects *fx)
{
    (void)f;
    (void)fx;
    if (ev->type == NODE_RECV)
        order[n_order++] = ev->recv.bytes[0];
}

static void test_control_overtakes_bulk(void **state)
{
    (void)state;
    init_both();
    n_order = 0;
    a.script = note_order;
    connect_both();
    send_bulk(&b, N_SIZES - 1); /* First sends 5 MiB as a bulk message. */
    send_control(&b, 3);
    FAKE_RUN_UNTIL(n_order == 2);
    assert_int_equal(order[0], 2);
    assert_int_equal(order[1], 1);
    close_both();
}

/* Messages that are sent in the step that closes the session still arrive, before its end. */
static void test_last_words_arrive(void **state)
{
    (void)state;
    init_both();
    next_control = 0;
    a.script = check_message;
    connect_both();
    static uint8_t one[1] = {2};
    b.asks.sends[0] = (struct node_send){.link = b.link[0], .head = one, .n_head = 1};
    b.asks.n_sends = 1;
    b.asks.exit = true;
    b.asks.exit_code = 3;
    fake_poke(&b);
    FAKE_RUN_UNTIL(a.n_down == 1);
    assert_int_equal(next_control, 1);
    assert_int_equal(a.n_clean, 1);
    assert_int_equal(uv_driver_exit_code(b.driver), 3);
    fake_close(&b);
    fake_exit(&a);
    fake_close(&a);
}

/* ---- Limits ----------------------------------------------------------- */

static void test_over_long_message(void **state)
{
    (void)state;
    init_both();
    a.bulk_max = 65520; /* Message 7 has the largest size that is accepted. */
    a.script = check_message;
    next_bulk = next_control = 0;
    connect_both();
    for (uint32_t i = 0; i < 9; i++)
        send_bulk(&b, i);
    FAKE_RUN_UNTIL(a.n_down == 1 && b.n_down == 1);
    assert_int_equal(next_bulk, 8);
    assert_int_equal(a.n_clean + b.n_clean, 0);
    close_both();
}

static void test_control_queue_is_bounded(void **state)
{
    (void)state;
    init_both();
    static uint8_t big[60000];
    connect_both();
    for (uint32_t i = 0; i < 10; i++)
        b.asks.sends[i] = (struct node_send){.link = b.link[0], .head = big, .n_head = sizeof big};
    /* 128 KiB of the 600,000 bytes leave the queue of control messages at once. The rest exceeds
     * the limit of the queue, 256 KiB. */
    b.asks.n_sends = 10;
    fake_poke(&b);
    FAKE_RUN_UNTIL(a.n_down == 1 && b.n_down == 1);
    assert_int_equal(b.n_notes, 1); /* Peer b must log that its control queue is full. */
    assert_int_equal(b.n_clean, 0);
    close_both();
}

/* ---- Dials ------------------------------------------------------------ */

static void test_wrong_key(void **state)
{
    (void)state;
    static const uint8_t other[CHANNEL_KEY] = {9};
    init_both();
    b.config.psk = other;
    open_both();
    fake_dial(&b, a.address, 5);
    FAKE_RUN_UNTIL(b.n_dial_failed == 1);
    assert_int_equal(b.tag, 5);
    FAKE_RUN_UNTIL(uv_driver_counts(a.driver)->strangers == 1);
    fake_poke(&a);
    assert_int_equal(a.n_strangers, 1);
    assert_int_equal(a.n_up + b.n_up, 0);
    assert_int_equal(a.bytes_sent, 0);
    assert_int_equal(a.bytes_received, CHANNEL_MSG1);
    close_both();
}

/* Reserves a port of the loopback interface on which no process listens. No other process can
 * listen there while the returned descriptor is open, although other tests use random free
 * ports. */
static int hold_deaf_port(char address[32])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
    snprintf(address, 32, "127.0.0.1:%u", (unsigned)ntohs(at.sin_port));
    return fd;
}

static void test_dials_that_fail(void **state)
{
    (void)state;
    char deaf[32];
    int fd = hold_deaf_port(deaf);
    fake_init(&b, 'b');
    fake_open(&b);
    fake_dial(&b, deaf, 1);
    FAKE_RUN_UNTIL(b.n_dial_failed == 1);
    fake_dial(&b, "no port at all", 2);
    FAKE_RUN_UNTIL(b.n_dial_failed == 2);
    assert_int_equal(b.tag, 2);
    fake_dial(&b, FAKE_NO_NAME, 3);
    FAKE_RUN_UNTIL(b.n_dial_failed == 3);
    assert_int_equal(b.tag, 3);
    close(fd);
    fake_exit(&b);
    fake_close(&b);
}

/* A name may have several addresses, and some of them may not accept connections. */
static void test_dial_by_name(void **state)
{
    (void)state;
    char name[32];
    init_both();
    open_both();
    snprintf(name, sizeof name, "localhost:%u", (unsigned)uv_driver_port(a.driver));
    fake_dial(&b, name, 6);
    FAKE_RUN_UNTIL(a.n_up == 1 && b.n_up == 1);
    close_both();
}

static void test_dial_to_itself(void **state)
{
    (void)state;
    init_both();
    open_both();
    fake_dial(&a, a.address, 1);
    /* Both ends of the session belong to driver a. The node can detect that, because the identity
     * of the other end is its own. */
    FAKE_RUN_UNTIL(a.n_up == 2);
    assert_memory_equal(a.id, a.identity.sign_pk, 32);
    close_both();
}

static void test_port_in_use(void **state)
{
    (void)state;
    init_both();
    fake_open(&a);
    assert_int_equal(uv_resolve_numeric(a.address, &b.config.listen), 0);
    assert_int_equal(uv_driver_open(&b.driver, &fake_loop, &b.config, NULL), -EADDRINUSE);
    fake_exit(&a);
    fake_close(&a);
}

/* A socket that cannot listen must be refused. No handle of the driver may stay on the loop:
 * uv_loop_close() of the teardown would fail, and callbacks would use freed memory. */
static void test_inherited_socket_of_no_use(void **state)
{
    (void)state;
    int pair[2], udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    int bad[] = {udp, pair[0], open("/dev/null", O_RDONLY | O_CLOEXEC)};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        enum uv_driver_part part = UV_DRIVER_REST;
        init_both();
        assert_true(bad[i] >= 0);
        a.config.listen_fd = bad[i];
        assert_true(uv_driver_open(&a.driver, &fake_loop, &a.config, &part) < 0);
        assert_int_equal(part, UV_DRIVER_DOOR);
        /* The driver has taken over the descriptor and closed it. */
        assert_int_equal(fcntl(bad[i], F_GETFD), -1);
    }
    close(pair[1]);
}

static void test_leash_of_no_use(void **state)
{
    (void)state;
    enum uv_driver_part part = UV_DRIVER_REST;
    init_both();
    a.config.leash_fd = 1000;
    assert_int_equal(uv_driver_open(&a.driver, &fake_loop, &a.config, &part), -EBADF);
    assert_int_equal(part, UV_DRIVER_LEASH);
}

/* ---- Files ----------------------------------------------------------- */

/* A node that asks the driver to store its model must receive the result at once, without a turn of
 * the event loop. */
static void test_kept_or_not(void **state)
{
    (void)state;
    init_both();
    fake_open(&a);
    for (uint32_t k = 1; k <= 2; k++) {
        a.asks.write_model = true;
        fake_poke(&a);
        assert_int_equal(a.n_models, k);
        assert_int_equal(a.n_kept, k);
        assert_int_equal(a.n_stored, 1);
        a.disk_full = true;
    }
    fake_exit(&a);
    fake_close(&a);
}

/* ---- Stopping --------------------------------------------------------- */

static void test_stop_has_a_deadline(void **state)
{
    (void)state;
    init_both();
    a.config.stop_ms = 1;
    a.runs = true;
    connect_both();
    uv_driver_stop(a.driver);
    assert_int_equal(a.n_stop, 1);
    FAKE_RUN_UNTIL(b.n_down == 1);
    assert_int_equal(b.n_clean, 1);
    assert_int_equal(a.n_models, 1);
    fake_close(&a);
    fake_exit(&b);
    fake_close(&b);
}

static uv_sem_t released;

static void hang(void)
{
    uv_sem_wait(&released);
}

/* If a job hangs when the driver stops, its thread cannot be joined. The driver must report the
 * hung job. */
static void test_stop_while_a_job_hangs(void **state)
{
    (void)state;
    init_both();
    uv_sem_init(&released, 0);
    a.config.stop_ms = 1;
    a.runs = true;
    a.work = hang;
    fake_open(&a);
    a.asks.work = true;
    fake_poke(&a);
    uv_driver_stop(a.driver);
    FAKE_RUN_UNTIL(uv_driver_stuck(a.driver));
    assert_int_equal(a.n_models, 0);
    assert_false(uv_driver_done(a.driver));
    uv_sem_post(&released);
    /* Waits for the job that hung. A real program would have exited instead. */
    uv_worker_close(&a.driver->worker);
    a.driver->stuck = false;
    fake_close(&a);
    uv_sem_destroy(&released);
}

static void test_job(void **state)
{
    (void)state;
    init_both();
    fake_open(&a);
    for (uint32_t i = 1; i <= 100; i++) {
        a.asks.work = true;
        fake_poke(&a);
        FAKE_RUN_UNTIL(a.n_worked == i);
    }
    fake_exit(&a);
    fake_close(&a);
}

static void test_wake(void **state)
{
    (void)state;
    init_both();
    fake_open(&a);
    int64_t at = uv_worker_clock_us() + 3000;
    a.asks.wake_us = at;
    fake_poke(&a);
    uint32_t before = a.n_timer;
    FAKE_RUN_UNTIL(a.n_timer > before);
    assert_true(uv_worker_clock_us() >= at);
    fake_exit(&a);
    fake_close(&a);
}

static void on_resolved(struct fake *f, const struct node_event *ev, struct node_effects *fx)
{
    (void)f;
    (void)fx;
    if (ev->type != NODE_RESOLVED)
        return;
    if (ev->resolved.seed == 2) {
        assert_true(ev->resolved.n >= 1);
        bool found = false;
        for (uint32_t i = 0; i < ev->resolved.n; i++)
            found |= strcmp(ev->resolved.address[i], "127.0.0.1:7100") == 0;
        assert_true(found);
    } else {
        assert_int_equal(ev->resolved.seed, 3);
        assert_int_equal(ev->resolved.n, 0);
    }
}

static void test_resolves(void **state)
{
    (void)state;
    init_both();
    a.script = on_resolved;
    fake_open(&a);
    a.asks.n_resolves = 2;
    a.asks.resolves[0].seed = 2;
    a.asks.resolves[0].name = "localhost:7100";
    a.asks.resolves[1].seed = 3;
    a.asks.resolves[1].name = FAKE_NO_NAME;
    fake_poke(&a);
    FAKE_RUN_UNTIL(a.n_resolved == 2);
    fake_exit(&a);
    fake_close(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_session_and_clean_end, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_abnormal_end, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_totals_are_the_sockets, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_messages_arrive_whole_and_in_order, fake_setup,
                                        fake_teardown),
        cmocka_unit_test_setup_teardown(test_messages_survive_rekeying, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_control_overtakes_bulk, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_last_words_arrive, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_over_long_message, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_control_queue_is_bounded, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_wrong_key, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_dials_that_fail, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_dial_by_name, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_dial_to_itself, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_port_in_use, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_inherited_socket_of_no_use, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_leash_of_no_use, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_kept_or_not, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_stop_has_a_deadline, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_stop_while_a_job_hangs, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_job, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_wake, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_resolves, fake_setup, fake_teardown),
    };
    if (!fake_descriptors(128))
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
