/* tests/unit/uvdriver_syn_filter.c -- tests the SYN filter: which addresses are filtered, for how
 * long, and what the kernel drops. */
#include "tests/unit/uvdriver_fake.h"

#include "peer/uv/event_adapter.h"
#include "peer/uv/syn_filter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct syn_filter_limits limits = {.per_s = 1000, .pass_per_s = 250, .window_ms = 250};

static union uv_address address(const char *text)
{
    union uv_address a;
    assert_int_equal(uv_resolve_numeric(text, &a), 0);
    return a;
}

/* ---- Filtered addresses ---- */

/* Returns the share of this address's connections that the filter lets through. 1: the address is
 * not filtered. */
static double kept(const struct syn_filter *s, const char *text)
{
    struct syn_filter other;
    union uv_address a = address(text);
    memcpy(&other, s, sizeof other);
    bool sieved = syn_filter_knock(&other, &a);
    for (int i = 0; i < SYN_FILTER_PLACES; i++)
        if (other.at[i].n != s->at[i].n && sieved)
            return s->at[i].kept;
    return 1;
}

static void knock(struct syn_filter *s, const char *text, uint32_t n)
{
    union uv_address a = address(text);
    for (uint32_t i = 0; i < n; i++)
        (void)syn_filter_knock(s, &a);
}

static void test_a_flood_is_sieved(void **state)
{
    (void)state;
    struct syn_filter s;
    syn_filter_init(&s, &limits, 5000);
    knock(&s, "192.0.2.1:1", 1250); /* A flood: 5,000 connections per second. */
    knock(&s, "192.0.2.2:1", 250);  /* Exactly the limit: 1,000 connections per second. */
    knock(&s, "[2001:db8::1]:1", 2500);
    assert_false(syn_filter_turn(&s, 5249));
    assert_false(syn_filter_is_on(&s));
    assert_true(syn_filter_turn(&s, 5250));
    assert_true(syn_filter_is_on(&s));
    assert_true(fabs(kept(&s, "192.0.2.1:2") - 0.05) < 1e-9);
    assert_true(kept(&s, "192.0.2.2:1") == 1);
    assert_true(kept(&s, "[::ffff:192.0.2.1]:1") < 1);
    /* 2001:db8::1 and 2001:db8::ffff have equal first 64 bits, so the filter treats them as one
     * address. */
    assert_true(kept(&s, "[2001:db8::ffff]:1") < 0.03);
    assert_true(kept(&s, "[2001:db8:0:1::1]:1") == 1);
}

/* The rate is estimated from the connections that pass the filter. While a flood does not change,
 * the filter stays, and its program is not replaced. */
static void test_it_ends_with_the_flood(void **state)
{
    (void)state;
    struct syn_filter s;
    syn_filter_init(&s, &limits, 0);
    knock(&s, "192.0.2.1:1", 1250);
    assert_true(syn_filter_turn(&s, 250));
    for (uint64_t t = 500; t < 5000; t += 250) {
        /* About 250 connections per second pass the filter. */
        knock(&s, "192.0.2.1:1", t % 500 != 0 ? 55 : 70);
        assert_false(syn_filter_turn(&s, t));
        assert_true(syn_filter_is_on(&s));
    }
    /* Four times as many connections pass as before, so the flood is four times as large. */
    knock(&s, "192.0.2.1:1", 250);
    assert_true(syn_filter_turn(&s, 5000));
    assert_true(fabs(kept(&s, "192.0.2.1:1") - 0.0125) < 1e-9);
    /* 3 of 240 connections have passed the filter. The rate estimated from them, 960 per second, is
     * under the limit. */
    knock(&s, "192.0.2.1:1", 3);
    assert_true(syn_filter_turn(&s, 5250));
    assert_false(syn_filter_is_on(&s));
    struct syn_filter_code code[SYN_FILTER_PROGRAM_MAX];
    assert_int_equal(syn_filter_program(&s, code), 0);
}

/* An address with a flood must be found although many other addresses connect once each. */
static void test_the_worst_is_found_among_many(void **state)
{
    (void)state;
    struct syn_filter s;
    char text[32];
    syn_filter_init(&s, &limits, 0);
    /* The first SYN_FILTER_PLACES addresses fill the table of addresses. */
    for (uint32_t i = 0; i < SYN_FILTER_PLACES; i++) {
        snprintf(text, sizeof text, "10.1.0.%u:1", (unsigned)i);
        knock(&s, text, 1);
    }
    for (uint32_t i = 0; i < 2000; i++) {
        snprintf(text, sizeof text, "10.0.%u.%u:1", (unsigned)i / 250, (unsigned)i % 250);
        knock(&s, text, 1);
        knock(&s, "192.0.2.1:1", 1);
    }
    assert_true(syn_filter_turn(&s, 250));
    assert_true(kept(&s, "192.0.2.1:1") < 0.2);
    for (uint32_t i = 0, n = 0; i < SYN_FILTER_PLACES; i++) {
        n += s.at[i].sieved;
        assert_true(n <= 1);
    }
    syn_filter_init(&s, &(struct syn_filter_limits){0}, 0);
    knock(&s, "192.0.2.1:1", 1000000);
    assert_false(syn_filter_turn(&s, 250));
}

/* ---- The filter in the kernel ---- */

static int listen_at(int family, uint16_t *port)
{
    union uv_address a = {0};
    socklen_t n = family == AF_INET ? sizeof a.v4 : sizeof a.v6;
    int off = 0, fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    a.any.sa_family = (sa_family_t)family;
    if (fd < 0)
        return -1;
    if (family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, &a.any, n) < 0 || listen(fd, 64) < 0 || getsockname(fd, &a.any, &n) < 0) {
        close(fd);
        return -1;
    }
    /* The code also reads the port of an IPv6 address, because sin6_port has the same offset as
     * sin_port. */
    *port = ntohs(a.v4.sin_port);
    return fd;
}

/* Time to wait for a connection, in milliseconds. A busy kernel may answer late even on the
 * loopback interface. */
enum { ANSWER_MS = 200 };

/* Returns whether a connection from address `from` is established within ANSWER_MS. */
static bool stands(const char *from, uint16_t port, int *kept_fd)
{
    struct tcp_info info;
    socklen_t n = sizeof info;
    union uv_address a = address(from), to = a;
    int fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    if (a.any.sa_family == AF_INET)
        to.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.v4.sin_port = htons(port);
    socklen_t len = a.any.sa_family == AF_INET ? sizeof a.v4 : sizeof a.v6;
    assert_int_equal(bind(fd, &a.any, len), 0);
    int err = connect(fd, &to.any, len);
    assert_true(err == 0 || errno == EINPROGRESS);
    struct pollfd writable = {.fd = fd, .events = POLLOUT};
    (void)poll(&writable, 1, ANSWER_MS);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n), 0);
    if (kept_fd != NULL)
        *kept_fd = fd;
    else
        close(fd);
    return info.tcpi_state == TCP_ESTABLISHED;
}

static void sieve_all_of(struct syn_filter *s, const char *text, int fd)
{
    struct syn_filter_limits none = limits;
    none.pass_per_s = 0;
    syn_filter_init(s, &none, 0);
    knock(s, text, 1000);
    /* Addresses of other senders, so that the filter program has several entries. */
    knock(s, "192.0.2.77:1", 1000);
    knock(s, "[2001:db8::1]:1", 1000);
    assert_true(syn_filter_turn(s, 250));
    int err = syn_filter_attach(s, fd);
    if (err == 0)
        return;
    print_message("no socket filters here (%s)\n", strerror(-err));
    close(fd);
    skip();
}

static void test_the_kernel_drops(void **state)
{
    (void)state;
    struct syn_filter s;
    uint16_t port = 0;
    int there, accepted, fd = listen_at(AF_INET, &port);
    assert_true(fd >= 0);
    assert_true(stands("127.0.0.2:0", port, &there));
    accepted = accept(fd, NULL, NULL);
    assert_true(accepted >= 0);
    sieve_all_of(&s, "127.0.0.2:1", fd);
    assert_false(stands("127.0.0.2:0", port, NULL));
    assert_true(stands("127.0.0.3:0", port, NULL));
    char byte = 'x'; /* A connection that was established before the filter must still work. */
    assert_int_equal(send(there, &byte, 1, 0), 1);
    assert_int_equal(recv(accepted, &byte, 1, 0), 1);
    close(there);
    close(accepted);
    syn_filter_init(&s, &limits, 0);
    assert_int_equal(syn_filter_attach(&s, fd), 0);
    assert_true(stands("127.0.0.2:0", port, NULL));
    close(fd);
}

/* A connection that is established while a filter is active inherits the program of the filter. The
 * connection must work nevertheless. */
static void test_who_comes_through_stands(void **state)
{
    (void)state;
    struct syn_filter s;
    uint16_t port = 0;
    int there, fd = listen_at(AF_INET, &port);
    char byte = 'x';
    assert_true(fd >= 0);
    sieve_all_of(&s, "127.0.0.9:1", fd);
    for (int i = 0; i < SYN_FILTER_PLACES; i++)
        s.at[i].kept = 1; /* The program lists the addresses, but lets all connections pass. */
    assert_int_equal(syn_filter_attach(&s, fd), 0);
    assert_true(stands("127.0.0.9:0", port, &there));
    int accepted = accept(fd, NULL, NULL);
    for (int i = 0; i < SYN_FILTER_PLACES; i++)
        s.at[i].kept = 0;
    /* The filter now drops all SYN packets of the address 127.0.0.9. The test attaches it to the
     * accepted socket, as if that socket had inherited it from the listening socket. Data must
     * still pass. */
    assert_int_equal(syn_filter_attach(&s, accepted), 0);
    assert_int_equal(send(there, &byte, 1, 0), 1);
    /* On the loopback interface, send() returns only when the byte has arrived. */
    assert_int_equal(recv(accepted, &byte, 1, MSG_DONTWAIT), 1);
    close(there);
    close(accepted);
    close(fd);
}

static void test_both_families(void **state)
{
    (void)state;
    struct syn_filter s;
    uint16_t port = 0;
    int fd = listen_at(AF_INET6, &port);
    if (fd < 0)
        skip();
    sieve_all_of(&s, "127.0.0.2:1", fd);
    assert_false(stands("127.0.0.2:0", port, NULL)); /* IPv4 packets arrive at an IPv6 socket. */
    assert_true(stands("127.0.0.3:0", port, NULL));
    syn_filter_init(&s, &limits, 0);
    sieve_all_of(&s, "[::1]:1", fd);
    assert_false(stands("[::1]:0", port, NULL));
    assert_true(stands("127.0.0.2:0", port, NULL));
    close(fd);
}

/* ---- The acceptor ---- */

/* During a flood from one address, a peer filters that address. The peer removes the filter when
 * the flood is over. */
static void test_the_door_sieves(void **state)
{
    (void)state;
    static struct fake a;
    fake_init(&a, 'a');
    fake_open(&a);
    struct uv_accept *door = &a.driver->accept;
    door->sieve.limits = (struct syn_filter_limits){.per_s = 20, .pass_per_s = 1, .window_ms = 50};
    door->limits.sieve = door->sieve.limits;
    uint16_t port = uv_driver_port(a.driver);
    bool dropped = false;
    while (!dropped) { /* Floods until the kernel drops a connection. */
        for (int i = 0; i < 20 && !dropped; i++)
            dropped = !stands("127.0.0.2:0", port, NULL);
        if (door->sieve.limits.per_s == 0)
            skip();
        uv_run(a.driver->loop, UV_RUN_NOWAIT);
    }
    assert_true(stands("127.0.0.3:0", port, NULL));
    FAKE_RUN_UNTIL(!syn_filter_is_on(&door->sieve));
    assert_true(stands("127.0.0.2:0", port, NULL));
    fake_exit(&a);
    fake_close(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_flood_is_sieved),
        cmocka_unit_test(test_it_ends_with_the_flood),
        cmocka_unit_test(test_the_worst_is_found_among_many),
        cmocka_unit_test(test_the_kernel_drops),
        cmocka_unit_test(test_who_comes_through_stands),
        cmocka_unit_test(test_both_families),
        cmocka_unit_test_setup_teardown(test_the_door_sieves, fake_setup, fake_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
