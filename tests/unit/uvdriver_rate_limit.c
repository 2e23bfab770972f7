/* tests/unit/uvdriver_rate_limit.c -- tests the limits on new connections.
 *
 * Tested are which connections are accepted during a flood, and how often refusals are logged. */
#include "tests/unit/uvdriver_fake.h"

#include "peer/uv/event_adapter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static union uv_address address(const char *text)
{
    union uv_address a;
    assert_int_equal(uv_resolve_numeric(text, &a), 0);
    return a;
}

/* ---- The buckets ------------------------------------------------------ */

static const struct rate_limit_limits limits = {.calm_per_s = 100,
                                                .calm_burst = 20,
                                                .per_s = 10,
                                                .burst = 5,
                                                .loopback_per_s = 40,
                                                .loopback_burst = 10,
                                                .looks_per_s = 50};

/* Makes n connections from one address within a second. Returns the number of those that are within
 * the limits (RATE_LIMIT_WELCOME). */
static uint32_t welcome(struct rate_limit *c, const union uv_address *a, uint32_t n,
                        uint64_t from_ms)
{
    uint32_t let_in = 0;
    for (uint32_t i = 0; i < n; i++)
        let_in += rate_limit_knock(c, a, from_ms + i * 1000 / n) == RATE_LIMIT_WELCOME;
    return let_in;
}

static void test_calm_is_not_limited(void **state)
{
    (void)state;
    static struct rate_limit c;
    union uv_address a = address("192.0.2.1:1");
    rate_limit_init(&c, &limits, 1, 1000);
    for (uint64_t s = 1; s < 10; s++)
        assert_int_equal(welcome(&c, &a, 90, 1000 * s), 90);
    assert_false(rate_limit_is_thick(&c, 10000));
}

/* One address floods. The limit per address applies only while all addresses together exceed
 * calm_per_s, so about calm_per_s of the flood's connections per second are accepted. Other
 * addresses keep their own limits. */
static void test_each_address_pays_for_itself(void **state)
{
    (void)state;
    static struct rate_limit c;
    union uv_address flood = address("192.0.2.1:1"), far = address("192.0.2.2:1"),
                     near = address("127.0.0.1:1");
    rate_limit_init(&c, &limits, 2, 0);
    assert_in_range(welcome(&c, &flood, 1000, 0), 119, 121);
    assert_true(rate_limit_is_thick(&c, 999));
    /* All addresses together exceed the total rate, so the limits per address apply. All
     * connections come at the same moment, so each address can open as many as its burst, and no
     * more. */
    uint32_t n_far = 0, n_near = 0;
    for (int i = 0; i < 40; i++) {
        n_far += rate_limit_knock(&c, &far, 999) == RATE_LIMIT_WELCOME;
        n_near += rate_limit_knock(&c, &near, 999) == RATE_LIMIT_WELCOME;
        assert_int_equal(rate_limit_knock(&c, &flood, 999), RATE_LIMIT_HASTY);
    }
    assert_int_equal(n_far, limits.burst);
    assert_int_equal(n_near, limits.loopback_burst);
    uint32_t looks = 0;
    for (int i = 0; i < 200; i++)
        looks += rate_limit_look(&c, &flood, 999);
    assert_int_equal(looks, limits.looks_per_s);
    assert_true(rate_limit_look(&c, &far, 999));
    assert_true(rate_limit_look(&c, &flood, 1100));
}

/* IPv6 addresses with equal first 64 bits count as one address, because one host may own them all.
 * An IPv4 address and its form in IPv6 are equal, too. */
static void test_what_one_address_is(void **state)
{
    (void)state;
    static struct rate_limit c;
    static const struct
    {
        const char *a, *b;
        bool same;
    } pair[] = {{"192.0.2.1:1", "192.0.2.1:2", true},
                {"192.0.2.1:1", "192.0.2.2:1", false},
                {"127.0.0.1:1", "127.0.0.2:1", false},
                {"[2001:db8::1]:1", "[2001:db8::ffff:1:2:3]:1", true},
                {"[2001:db8::1]:1", "[2001:db8:0:1::1]:1", false},
                {"[::ffff:192.0.2.1]:1", "192.0.2.1:1", true},
                {"[::ffff:192.0.2.1]:1", "[::ffff:192.0.2.2]:1", false}};
    rate_limit_init(&c, &limits, 3, 0);
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
        union uv_address a = address(pair[i].a), b = address(pair[i].b);
        assert_int_equal(rate_limit_key(&c, &a) == rate_limit_key(&c, &b), pair[i].same);
    }
}

/* A thousand other addresses must not displace a busy address from the table, because the busy
 * address would then get a new, full token bucket. */
static void test_full_table(void **state)
{
    (void)state;
    static struct rate_limit c;
    union uv_address flood = address("192.0.2.1:1");
    rate_limit_init(&c, &limits, 4, 0);
    (void)welcome(&c, &flood, 1000, 0);
    uint32_t let_in = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        char text[32];
        snprintf(text, sizeof text, "10.0.%u.%u:1", (unsigned)(i >> 8), (unsigned)(i & 255));
        union uv_address other = address(text);
        (void)rate_limit_knock(&c, &other, 1000 + i / 100);
        let_in += rate_limit_knock(&c, &flood, 1000 + i / 100) == RATE_LIMIT_WELCOME;
    }
    assert_true(let_in < 10);
}

/* ---- The acceptor ----------------------------------------------------- */

static struct fake a, b;

static int connect_from(const char *host)
{
    union uv_address from = address(host);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(uv_driver_port(a.driver)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, &from.any, sizeof from.v4), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

static bool ended(int fd)
{
    char byte;
    ssize_t n = recv(fd, &byte, 1, 0);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
}

static void open_door(void)
{
    fake_init(&a, 'a');
    fake_init(&b, 'b');
    fake_open(&a);
    fake_open(&b);
}

static void close_door(int *fd, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        close(fd[i]);
    fake_part(&a, &b);
}

/* An address that fills the slots for half-open connections loses its own connections, and no other
 * address does. */
static void test_a_flood_pushes_out_its_own(void **state)
{
    (void)state;
    int fd[308];
    uint32_t n = 0;
    open_door();
    while (n < 8)
        fd[n++] = connect_from("127.0.0.3:0");
    FAKE_RUN_UNTIL(uv_driver_counts(a.driver)->accepted == 8);
    for (uint32_t i = 0; i < 300; i++) {
        fd[n++] = connect_from("127.0.0.2:0");
        if (i % 16 == 0)
            uv_run(&fake_loop, UV_RUN_NOWAIT);
    }
    FAKE_RUN_UNTIL(uv_driver_counts(a.driver)->accepted == n);
    assert_true(uv_driver_counts(a.driver)->evicted >= 308 - 64);
    for (uint32_t i = 0; i < 8; i++)
        assert_false(ended(fd[i]));
    assert_true(a.n_notes == 1 && strstr(a.note, "too many connections") != NULL);
    close_door(fd, n);
}

/* Opens both drivers with limits that are exceeded from the second connection on. */
static void crowd_at_once(void)
{
    fake_init(&a, 'a');
    fake_init(&b, 'b');
    a.config.accept.crowd.calm_per_s = 1;
    a.config.accept.crowd.calm_burst = 1;
    a.config.accept.crowd.loopback_per_s = 1;
    a.config.accept.crowd.loopback_burst = 1;
    fake_open(&a);
    fake_open(&b);
}

/* An address that opens connections too fast is limited: a connection from it is refused unless its
 * first message has already arrived. A peer that has the cluster key must still be able to connect
 * from that address. */
static void test_the_key_opens_in_a_crowd(void **state)
{
    (void)state;
    int fd[60];
    crowd_at_once();
    for (uint32_t i = 0; i < 60; i++)
        fd[i] = connect_from("127.0.0.1:0");
    FAKE_RUN_UNTIL(uv_driver_counts(a.driver)->accepted == 60);
    assert_true(uv_driver_counts(a.driver)->refused >= 55);
    /* The first message of a connection may arrive too late to be accepted, so b dials until one is
     * accepted. */
    for (uint32_t i = 1; a.n_up == 0; i++) {
        fake_dial(&b, a.address, i);
        FAKE_RUN_UNTIL(a.n_up == 1 || b.n_dial_failed == i);
    }
    close_door(fd, 60);
}

/* For an address over its rate, the number of first messages that are decrypted per second is
 * limited. */
static void test_looks_are_counted(void **state)
{
    (void)state;
    static const uint8_t junk[CHANNEL_MSG1] = {1};
    int fd[60];
    fake_init(&a, 'a');
    fake_init(&b, 'b');
    a.config.accept.crowd = (struct rate_limit_limits){1, 1, 1, 1, 1, 1, 10};
    fake_open(&a);
    fake_open(&b);
    for (uint32_t i = 0; i < 60; i++) {
        fd[i] = connect_from("127.0.0.1:0");
        assert_int_equal(write(fd[i], junk, sizeof junk), sizeof junk);
    }
    FAKE_RUN_UNTIL(uv_driver_counts(a.driver)->strangers == 60);
    assert_true(uv_driver_counts(a.driver)->refused >= 30);
    assert_true(uv_driver_counts(a.driver)->refused < 60 - 10);
    close_door(fd, 60);
}

/* ---- Log messages ----------------------------------------------------- */

static void test_words_come_ever_more_seldom(void **state)
{
    (void)state;
    static struct uv_link_net net;
    static struct rejection_log d;
    struct uv_link l = {.net = &net, .why = NODE_WHY_JUNK, .error = -EPROTO};
    l.remote = address("192.0.2.7:99");
    char text[REJECTION_LOG_TEXT] = "";
    uint32_t n_told = 0;
    assert_int_equal(rejection_log_kind(&l), REJECTION_LOG_UNSEALED);
    /* Simulates 100 refusals per second for an hour. */
    for (uint64_t ms = 0; ms < 3600 * 1000; ms += 10)
        n_told += rejection_log_count(&d, rejection_log_kind(&l), &l, ms, text);
    assert_in_range(n_told, 8, 13);
    assert_non_null(strstr(text, "192.0.2.7 "));
    assert_non_null(strstr(text, " so far)"));
    assert_false(rejection_log_count(&d, REJECTION_LOG_UNSEALED, &l, 3600 * 1000, text));
    /* Each kind of refusal is logged at intervals of its own. */
    assert_true(rejection_log_count(&d, REJECTION_LOG_VERSION, &l, 3600 * 1000, text));
    assert_true(rejection_log_count(&d, REJECTION_LOG_UNSEALED, &l, 4300 * 1000, text));
    l.why = NODE_WHY_CLOSED;
    l.error = -ECONNRESET;
    /* A connection without data, as from a health check, is not logged. */
    assert_int_equal(rejection_log_kind(&l), REJECTION_LOG_QUIET);
    assert_false(rejection_log_count(&d, REJECTION_LOG_QUIET, &l, 9000 * 1000, text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calm_is_not_limited),
        cmocka_unit_test(test_each_address_pays_for_itself),
        cmocka_unit_test(test_what_one_address_is),
        cmocka_unit_test(test_full_table),
        cmocka_unit_test_setup_teardown(test_a_flood_pushes_out_its_own, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_the_key_opens_in_a_crowd, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_looks_are_counted, fake_setup, fake_teardown),
        cmocka_unit_test(test_words_come_ever_more_seldom),
    };
    /* The test process has both ends of each connection, so it needs many file descriptors. */
    if (!fake_descriptors(800))
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
