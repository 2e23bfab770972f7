/* tests/unit/uvdriver_why.c -- tests the reasons for failed sessions: those that the node receives,
 * and those that both ends report. */
#include "tests/unit/uvdriver_fake.h"

#include "peer/uv/event_adapter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static struct fake a, b;
static const uint8_t other_psk[CHANNEL_KEY] = {9};

static void open_both(void)
{
    fake_init(&a, 'a');
    fake_init(&b, 'b');
}

/* Opens a plain listening socket and writes its address. */
static int listen_raw(char address[32])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
    snprintf(address, 32, "127.0.0.1:%u", (unsigned)ntohs(at.sin_port));
    return fd;
}

static void test_nobody_listens(void **state)
{
    (void)state;
    char address[32];
    close(listen_raw(address));
    open_both();
    fake_open(&a);
    fake_open(&b);
    fake_dial(&b, address, 1);
    FAKE_RUN_UNTIL(b.n_dial_failed == 1);
    assert_int_equal(b.why, NODE_WHY_REFUSED);
    fake_dial(&b, FAKE_NO_NAME, 2);
    FAKE_RUN_UNTIL(b.n_dial_failed == 2);
    assert_int_equal(b.why, NODE_WHY_UNRESOLVED);
    fake_part(&a, &b);
}

/* Each end reports that the other has another cluster key. The dialling end must not report a wrong
 * address. */
static void test_another_key(void **state)
{
    (void)state;
    open_both();
    b.config.psk = other_psk;
    fake_open(&a);
    fake_open(&b);
    for (uint32_t i = 1; i <= 3; i++) {
        fake_dial(&b, a.address, i);
        FAKE_RUN_UNTIL(b.n_dial_failed == i && uv_driver_counts(a.driver)->strangers == i);
        assert_int_equal(b.why, NODE_WHY_CLOSED);
    }
    assert_int_equal(a.n_notes, 1); /* Three failed handshakes in a row are logged once. */
    assert_non_null(strstr(a.note, "127.0.0.1"));
    assert_non_null(strstr(a.note, "not encrypted with this cluster key"));
    fake_part(&a, &b);
}

static void speak(struct fake *f, uint16_t least, uint16_t most)
{
    f->driver->net.versions = (struct channel_versions){least, most};
}

/* Two ends can connect if one supports the message version n only and the other n to n + 1. Ends
 * without a common version report why they cannot connect. */
static void test_versions(void **state)
{
    (void)state;
    open_both();
    fake_open(&a);
    fake_open(&b);
    speak(&a, WIRE_VERSION, WIRE_VERSION);
    speak(&b, WIRE_VERSION, WIRE_VERSION + 1);
    fake_dial(&b, a.address, 1);
    FAKE_RUN_UNTIL(a.n_up == 1 && b.n_up == 1);
    assert_int_equal(a.version, WIRE_VERSION);
    assert_int_equal(b.version, WIRE_VERSION);
    speak(&b, WIRE_VERSION + 1, WIRE_VERSION + 2);
    fake_dial(&b, a.address, 2);
    FAKE_RUN_UNTIL(b.n_dial_failed == 1 && uv_driver_counts(a.driver)->strangers == 1);
    assert_int_equal(b.why, NODE_WHY_VERSION);
    assert_int_equal(b.least, WIRE_VERSION);
    assert_int_equal(b.most, WIRE_VERSION);
    assert_int_equal(a.n_notes, 1);
    char range[64];
    snprintf(range, sizeof range, "versions %d to %d, ", WIRE_VERSION + 1, WIRE_VERSION + 2);
    assert_non_null(strstr(a.note, range));
    snprintf(range, sizeof range, "this program %d to %d ", WIRE_VERSION, WIRE_VERSION);
    assert_non_null(strstr(a.note, range));
    assert_int_equal(a.n_up + b.n_up, 2);
    assert_int_equal(a.n_down + b.n_down, 0);
    fake_part(&a, &b);
}

/* Another program listens at the address. This program sends nothing, its own reply, or half a
 * reply. */
static void test_others_answer(void **state)
{
    (void)state;
    static const struct
    {
        size_t n;
        bool ends;
        enum node_why why;
    } other[] = {{0, false, NODE_WHY_MUTE},
                 {CHANNEL_MSG2, false, NODE_WHY_JUNK},
                 {7, true, NODE_WHY_BROKEN},
                 {0, true, NODE_WHY_CLOSED},
                 {7, false, NODE_WHY_SLOW}};
    char address[32], junk[CHANNEL_MSG2] = "HTTP/1.0 400 Bad request\r\n";
    int server = listen_raw(address);
    open_both();
    b.config.link.handshake_ms = 50;
    fake_open(&a);
    fake_open(&b);
    for (uint32_t i = 0; i < sizeof other / sizeof *other; i++) {
        int fd = -1;
        fake_dial(&b, address, i + 1);
        FAKE_RUN_UNTIL((fd = accept(server, NULL, NULL)) >= 0);
        assert_int_equal(write(fd, junk, other[i].n), other[i].n);
        if (other[i].ends)
            assert_int_equal(shutdown(fd, SHUT_WR), 0);
        FAKE_RUN_UNTIL(b.n_dial_failed == i + 1);
        assert_int_equal(b.why, other[i].why);
        close(fd);
    }
    close(server);
    fake_part(&a, &b);
}

/* Connects to the peer `a` and sends a first message with the right cluster key. Returns the
 * socket. */
static int knock_with_key(void)
{
    struct channel c;
    uint8_t random[32] = {7}, message[CHANNEL_MSG2];
    size_t n;
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(uv_driver_port(a.driver)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    channel_init(&c, true, &b.identity, fake_psk, random);
    assert_int_equal(channel_handshake(&c, NULL, 0, message, &n), 0);
    assert_int_equal(write(fd, message, n), n);
    channel_close(&c);
    return fd;
}

static uint64_t n_strangers(void)
{
    return uv_driver_counts(a.driver)->strangers;
}

/* The dialling end has the right key, but closes the connection during the handshake: before its
 * first message is read, or after the reply to that message. */
static void test_handshakes_that_do_not_end(void **state)
{
    (void)state;
    uint8_t answer[CHANNEL_MSG2];
    open_both();
    a.config.link.handshake_ms = 500;
    fake_open(&a);
    fake_open(&b);
    int fd = knock_with_key();
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    FAKE_RUN_UNTIL(n_strangers() == 1);
    assert_int_equal(a.n_notes, 0);
    assert_int_equal(recv(fd, answer, 1, 0), 0); /* Peer a must not have sent a byte back. */
    close(fd);
    fd = knock_with_key();
    FAKE_RUN_UNTIL(recv(fd, answer, sizeof answer, MSG_DONTWAIT | MSG_PEEK) == CHANNEL_MSG2);
    close(fd);
    FAKE_RUN_UNTIL(n_strangers() == 2);
    assert_int_equal(a.n_notes, 1);
    assert_non_null(strstr(a.note, "may run an older release"));
    fake_part(&a, &b);
}

static void test_a_slow_handshake(void **state)
{
    (void)state;
    open_both();
    a.config.link.handshake_ms = 50;
    fake_open(&a);
    fake_open(&b);
    int fd = knock_with_key();
    FAKE_RUN_UNTIL(n_strangers() == 1);
    /* If the deadline of the handshake passes before the first message is read, no line is
     * logged. */
    if (a.n_notes == 1)
        assert_non_null(strstr(a.note, "did not finish the handshake in time"));
    assert_null(strstr(a.note, "older"));
    close(fd);
    fake_part(&a, &b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nobody_listens, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_another_key, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_versions, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_others_answer, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_handshakes_that_do_not_end, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_a_slow_handshake, fake_setup, fake_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
