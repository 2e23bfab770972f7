/* tests/unit/uvdriver_strangers.c -- tests connections without the cluster key: they receive no
 * byte, cause no allocation, and are counted. */
#include "tests/unit/uvdriver_fake.h"

#include "nn/math/rng.h"
#include "peer/uv/event_adapter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* Allocations of this process are counted while `armed` is true. Sanitizers replace the allocator,
 * so nothing is counted with them. */
static bool armed;
static uint32_t n_allocations;
#if defined(__GLIBC__) && !defined(HEARSAY_SANITIZED)
#define COUNTS_ALLOCATIONS 1
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
void *malloc(size_t n)
{
    n_allocations += armed;
    return __libc_malloc(n);
}
void *calloc(size_t n, size_t size)
{
    n_allocations += armed;
    return __libc_calloc(n, size);
}
void *realloc(void *p, size_t n)
{
    n_allocations += armed;
    return __libc_realloc(p, n);
}
#else
#define COUNTS_ALLOCATIONS 0
#endif

enum { BATCH = 40 };
static struct fake a, b;

static int connect_raw(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(uv_driver_port(a.driver)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

/* Behaves like one of eight kinds of unauthenticated clients, selected by i. Some of them keep the
 * connection open until the deadline. */
static void knock(int fd, uint32_t i)
{
    static const char http[] = "GET / HTTP/1.1\r\nHost: peer\r\n\r\n"
                               "                                             ";
    uint8_t junk[4096];
    uint64_t key = rng_key(1, RNG_TEST, i, 0);
    for (size_t k = 0; k < sizeof junk; k++)
        junk[k] = (uint8_t)rng_at(key, k);
    ssize_t n = 0;
    switch (i % 8) {
    case 0:
        n = write(fd, junk, sizeof junk);
        break;
    case 1:
        n = write(fd, http, sizeof http);
        break;
    case 2:
        break; /* An unauthenticated client sends nothing. */
    case 3:
        n = write(fd, junk, 1);
        break; /* An unauthenticated client sends a single byte. */
    case 4:
        n = shutdown(fd, SHUT_WR);
        break; /* An unauthenticated client closes its sending side early. */
    case 5:
        n = write(fd, junk, CHANNEL_MSG1);
        break; /* The bytes have the length of a first handshake message, but random contents. */
    case 6:
        /* The first handshake message is one byte too short. */
        n = write(fd, junk, CHANNEL_MSG1 - 1);
        n = n < 0 ? n : shutdown(fd, SHUT_WR);
        break;
    case 7: { /* An unauthenticated client resets the connection. */
        struct linger linger = {.l_onoff = 1};
        n = setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
        break;
    }
    }
    assert_true(n >= 0);
}

/* Returns whether the other end has closed the connection. Fails if the other end has sent a
 * byte. */
static bool ended_silently(int fd)
{
    char byte;
    ssize_t n = recv(fd, &byte, 1, 0);
    assert_true(n <= 0);
    return n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

static bool all_ended(int *fd, uint32_t n)
{
    bool all = true;
    for (uint32_t i = 0; i < n; i++) {
        if (fd[i] >= 0 && ended_silently(fd[i])) {
            close(fd[i]);
            fd[i] = -1;
        }
        all &= fd[i] < 0;
    }
    return all;
}

static void ping(uint32_t n_before)
{
    static const uint8_t byte[1] = {1};
    b.asks.sends[0] = (struct node_send){.link = b.link[0], .head = byte, .n_head = 1};
    b.asks.n_sends = 1;
    fake_poke(&b);
    FAKE_RUN_UNTIL(a.n_recv > n_before);
}

/* Opens drivers a and b with a session between them. The handshake deadline `handshake_ms` is set
 * only afterwards, because this honest handshake may take longer on a busy machine. */
static void open_with_session(uint32_t handshake_ms)
{
    fake_init(&a, 'a');
    fake_init(&b, 'b');
    fake_meet(&a, &b, 1);
    a.driver->net.limits.handshake_ms = handshake_ms;
}

static void test_junk_changes_a_counter(void **state)
{
    (void)state;
    open_with_session(30);
    uint32_t n = 0;
    for (uint32_t round = 0; round < 25; round++) {
        int fd[BATCH];
        if (round == 1 && COUNTS_ALLOCATIONS)
            /* In round 0 of this test, libuv's table of descriptors reaches its final size, so
             * allocations are counted from now on. */
            armed = true;
        for (uint32_t i = 0; i < BATCH; i++) {
            fd[i] = connect_raw();
            knock(fd[i], n++);
            if ((n - 1) % 8 == 7) {
                close(fd[i]);
                fd[i] = -1;
            }
        }
        FAKE_RUN_UNTIL(all_ended(fd, BATCH) && uv_driver_counts(a.driver)->strangers == n);
    }
    armed = false;
    assert_int_equal(n, 1000);
    assert_int_equal(n_allocations, 0);
    ping(a.n_recv); /* The session between a and b still works. */
    fake_poke(&a);
    assert_int_equal(a.n_strangers, 1000);
    assert_int_equal(a.bytes_sent, CHANNEL_MSG2);
    assert_int_equal(a.n_up, 1);
    assert_int_equal(a.n_down + a.n_clean, 0);
    fake_part(&a, &b);
}

static size_t bytes_back(int fd)
{
    uint8_t byte[512];
    size_t n = 0;
    ssize_t got;
    while ((got = recv(fd, byte, sizeof byte, 0)) > 0)
        n += (size_t)got;
    return n;
}

/* A first handshake message that was recorded and is sent a second time gets no answer. */
static void test_recorded_message_is_answered_once(void **state)
{
    (void)state;
    struct channel c;
    uint8_t random[32] = {7}, message[CHANNEL_MSG2];
    size_t n, back = 0;
    open_with_session(FAKE_GENEROUS_MS);
    channel_init(&c, true, &b.identity, fake_psk, random);
    assert_int_equal(channel_handshake(&c, NULL, 0, message, &n), 0);
    int first = connect_raw();
    assert_int_equal(write(first, message, n), n);
    FAKE_RUN_UNTIL((back += bytes_back(first)) == CHANNEL_MSG2);
    for (uint32_t i = 0; i < 3; i++) {
        int again = connect_raw();
        assert_int_equal(write(again, message, n), n);
        FAKE_RUN_UNTIL(ended_silently(again));
        close(again);
    }
    close(first);
    FAKE_RUN_UNTIL(uv_driver_counts(a.driver)->strangers == 4);
    channel_close(&c);
    fake_dial(&b, a.address, 2); /* A peer with the cluster key can still connect. */
    FAKE_RUN_UNTIL(a.n_up == 2);
    fake_part(&a, &b);
}

/* More silent connections arrive than there are slots for half-open connections. Newer ones must
 * evict older ones, so that an honest peer can connect before any deadline. */
static void test_flood_does_not_shut_the_door(void **state)
{
    (void)state;
    int fd[300];
    open_with_session(FAKE_GENEROUS_MS);
    for (uint32_t i = 0; i < 300; i++) {
        fd[i] = connect_raw();
        if (i % 16 == 0)
            uv_run(&fake_loop, UV_RUN_NOWAIT);
    }
    FAKE_RUN_UNTIL(uv_driver_counts(a.driver)->accepted == 301);
    assert_true(uv_driver_counts(a.driver)->evicted >= 300 - 64);
    fake_dial(&b, a.address, 2);
    FAKE_RUN_UNTIL(a.n_up == 2);
    for (uint32_t i = 0; i < 300; i++)
        close(fd[i]);
    FAKE_RUN_UNTIL(uv_driver_counts(a.driver)->strangers == 300);
    fake_part(&a, &b);
}

static void test_one_address_has_its_share(void **state)
{
    (void)state;
    int fd[10];
    fake_init(&a, 'a');
    a.config.accept.per_loopback = 8;
    fake_open(&a);
    for (uint32_t i = 0; i < 10; i++)
        fd[i] = connect_raw();
    FAKE_RUN_UNTIL(uv_driver_counts(a.driver)->accepted == 10);
    assert_int_equal(uv_driver_counts(a.driver)->refused, 2);
    for (uint32_t i = 0; i < 10; i++)
        close(fd[i]);
    fake_exit(&a);
    fake_close(&a);
}

/* The deadline applies to the whole handshake, so a peer that sends one byte every 2 ms does not
 * extend it. The test requires that at least two bytes are sent, and therefore sends the first two
 * without a wait. The deadline cannot end a link in the loop turn that accepts it. */
static void test_slow_bytes_do_not_prolong(void **state)
{
    (void)state;
    fake_init(&a, 'a');
    a.config.link.handshake_ms = 40;
    fake_open(&a);
    int fd = connect_raw();
    uint64_t begin = uv_hrtime();
    uint32_t n = 0;
    while (!ended_silently(fd)) {
        if (n < CHANNEL_MSG1 - 1 && (n < 2 || uv_hrtime() - begin > n * 2000000ull))
            n += (uint32_t)(send(fd, "x", 1, MSG_NOSIGNAL) == 1);
        uv_run(&fake_loop, UV_RUN_NOWAIT);
    }
    assert_true(uv_hrtime() - begin >= 39000000);
    assert_true(n > 1);
    close(fd);
    FAKE_RUN_UNTIL(uv_driver_counts(a.driver)->strangers == 1);
    fake_exit(&a);
    fake_close(&a);
}

/* Uses all file descriptors below 128. Stores the previous limit in *before. Returns the number of
 * used descriptors. */
static uint32_t hold_all(int hold[128], struct rlimit *before)
{
    uint32_t n = 0;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, before), 0);
    struct rlimit low = *before;
    low.rlim_cur = 128;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    while (n < 128 && (hold[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        n++;
    return n;
}

static void hold_none(int hold[128], uint32_t n, const struct rlimit *before)
{
    while (n > 0)
        close(hold[--n]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, before), 0);
}

/* Without free file descriptors, sessions stay alive, the loop does not spin, and connections are
 * accepted again later. */
static void test_no_file_descriptors(void **state)
{
    (void)state;
    struct rlimit before;
    int fd[64], hold[128];
    uint32_t n = 0;
    open_with_session(FAKE_GENEROUS_MS);
    for (n = 0; n < 4; n++)
        /* The event loop does not run yet, so these connections are still unaccepted when
         * hold_all() takes all file descriptors. */
        fd[n] = connect_raw();
    uint32_t n_hold = hold_all(hold, &before);
    ping(a.n_recv);
    ping(a.n_recv);
    assert_int_equal(a.n_down, 0);
    hold_none(hold, n_hold, &before);
    fake_dial(&b, a.address, 2);
    FAKE_RUN_UNTIL(a.n_up == 2);
    while (n > 0)
        close(fd[--n]);
    fake_part(&a, &b);
}

/* The acceptor needs a copy of its socket to continue after a pause. Without a descriptor for the
 * copy, opening fails. */
static void test_no_descriptor_for_the_copy(void **state)
{
    (void)state;
    static struct uv_accept door;
    struct uv_link_net net = {.loop = &fake_loop};
    union uv_address any;
    struct rlimit before;
    int hold[128], fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(uv_resolve_numeric("127.0.0.1:0", &any), 0);
    assert_int_equal(bind(fd, &any.any, sizeof any.v4), 0);
    uint32_t n_hold = hold_all(hold, &before);
    int err = uv_accept_open(&door, &net, &uv_accept_limits_default, &any, fd);
    hold_none(hold, n_hold, &before);
    assert_int_equal(err, -EMFILE);
    /* uv_accept_open() closes the socket also if it fails. */
    assert_int_equal(fcntl(fd, F_GETFD), -1);
}

/* If the driver's socket cannot listen, uv_driver_open() fails and leaves no handle in the loop. */
static void test_no_socket_to_listen_on(void **state)
{
    (void)state;
    fake_init(&a, 'a');
    a.config.listen_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(uv_driver_open(&a.driver, &fake_loop, &a.config, NULL) < 0);
    assert_int_equal(uv_loop_alive(&fake_loop), 0);
    channel_identity_close(&a.identity);
    packet_pool_close(&a.pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_junk_changes_a_counter, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_recorded_message_is_answered_once, fake_setup,
                                        fake_teardown),
        cmocka_unit_test_setup_teardown(test_flood_does_not_shut_the_door, fake_setup,
                                        fake_teardown),
        cmocka_unit_test_setup_teardown(test_one_address_has_its_share, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_slow_bytes_do_not_prolong, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_no_file_descriptors, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_no_descriptor_for_the_copy, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_no_socket_to_listen_on, fake_setup, fake_teardown),
    };
    /* The test process has both ends of each connection, so it needs many file descriptors. */
    if (!fake_descriptors(800))
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
