/* tests/unit/http_server.c -- tests of the HTTP server over a real socket: its answers, and how it
 * copes with clients that misbehave. */
#include "peer/http/server.h"

#include "nn/math/rng.h"
#include "tests/unit/http_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    ANSWER_MAX = 1 << 20,
    /* Time after which a test fails if no answer comes, in milliseconds. A test that passes takes
     * far less. */
    HANG_MS = 120 * 1000,
    TRICKLE_MS = SERVER_STALL_S * 1000 / 4,
    CROWD = 5 * SERVER_CLIENTS
};

static struct server *server;
static char answer[ANSWER_MAX + 1];

/* Waits until `fd` can be read (POLLIN) or written (POLLOUT), or is closed. Returns true then.
 * Fails after HANG_MS. */
static bool ready(int fd, short what)
{
    struct pollfd p = {.fd = fd, .events = what};
    int n = poll(&p, 1, HANG_MS);
    assert_true(n == 1);
    return (p.revents & (what | POLLHUP | POLLERR)) != 0;
}

static int dial(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(server_port(server))};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

/* Sends the `n` bytes at `p`, or as many as the server takes. */
static void say(int fd, const char *p, size_t n)
{
    while (n > 0 && ready(fd, POLLOUT)) {
        ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
        if (k < 0)
            return; /* A negative result means that the server has closed the connection. */
        p += k;
        n -= (size_t)k;
    }
}

/* Reads into `answer` until the server closes the connection. */
static void hear(int fd)
{
    size_t n = 0;
    ssize_t k = 1;
    while (k > 0 && n < ANSWER_MAX && ready(fd, POLLIN)) {
        k = recv(fd, answer + n, ANSWER_MAX - n, 0);
        n += k > 0 ? (size_t)k : 0;
    }
    answer[n] = '\0';
    close(fd);
}

/* Sends one request and shuts down the sending direction. Returns the status of the answer. 0: the
 * server closed the connection without an answer. */
static int ask(const char *request, size_t n)
{
    int fd = dial(), status = 0;
    say(fd, request, n);
    shutdown(fd, SHUT_WR);
    hear(fd);
    (void)sscanf(answer, "HTTP/1.%*d %d ", &status);
    return status;
}

static int get(const char *method, const char *path)
{
    char request[400];
    snprintf(request, sizeof request,
             "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", method, path);
    return ask(request, strlen(request));
}

static const char *body(void)
{
    const char *p = strstr(answer, "\r\n\r\n");
    return p != NULL ? p + 4 : "";
}

static int open_server(void **state)
{
    (void)state;
    char error[SERVER_ERROR_MAX];
    struct sockaddr_in a = {.sin_family = AF_INET};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct hosts hosts = {.n = 0};
    hosts_add(&hosts, "node7:7100");
    return server_open(&server, (struct sockaddr *)&a, sizeof a, &hosts, error);
}

static int close_server(void **state)
{
    (void)state;
    server_close(server);
    return 0;
}

/* Publishes a snapshot that is taken now, in round `round`. */
static void publish(uint64_t round)
{
    struct timespec t;
    struct snapshot *s = server_blank(server);
    rig_snapshot(s);
    s->figures.node.round = round;
    clock_gettime(CLOCK_MONOTONIC, &t);
    s->taken_us = (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
    server_publish(server);
}

/* ---- Answers ------------------------------------------------------------ */

static void test_answers(void **state)
{
    (void)state;
    assert_int_equal(get("GET", "/readyz"), 503);
    assert_non_null(strstr(body(), "starting"));
    assert_int_equal(get("GET", "/healthz"), 200);
    assert_int_equal(get("GET", "/metrics"), 200);
    assert_non_null(strstr(body(), "hearsay_ready 0\n"));
    assert_null(strstr(body(), "hearsay_round "));
    publish(412);
    assert_int_equal(get("GET", "/readyz"), 200);
    assert_int_equal(get("GET", "/metrics"), 200);
    assert_non_null(strstr(answer, "Content-Type: text/plain; version=0.0.4"));
    assert_non_null(strstr(body(), "\nhearsay_round 412\n"));
    assert_int_equal(get("GET", "/metrics?a=b"), 200);
    assert_int_equal(get("GET", "/status.json"), 200);
    assert_non_null(strstr(answer, "Content-Type: application/json"));
    assert_true(body()[0] == '{');
    assert_null(strstr(answer, "Content-Security-Policy: "));
    assert_int_equal(get("GET", "/"), 200);
    assert_non_null(strstr(answer, "Content-Type: text/html; charset=utf-8\r\n"));
    assert_non_null(strstr(answer, "Content-Security-Policy: default-src 'none'; "));
    assert_non_null(strstr(answer, "X-Content-Type-Options: nosniff\r\n"));
    assert_memory_equal(body(), "<!DOCTYPE html>", 15);
    assert_non_null(strstr(body(), "</html>\n"));
    /* After this call, the answer that the server has stored is of an older snapshot. */
    publish(413);
    assert_int_equal(get("GET", "/metrics"), 200);
    assert_non_null(strstr(body(), "\nhearsay_round 413\n"));
}

static void test_methods(void **state)
{
    (void)state;
    static const char *const refused[] = {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"};
    static const char *const unknown[] = {
        "/live.html", "/metrics/", "/metric", "/../metrics", "/../../../../etc/passwd",
        "//metrics",  "/%2e%2e/x"};
    publish(1);
    assert_int_equal(get("HEAD", "/metrics"), 200);
    assert_string_equal(body(), "");
    assert_non_null(strstr(answer, "Content-Length: "));
    assert_int_equal(get("HEAD", "/"), 200);
    assert_string_equal(body(), "");
    assert_int_equal(get("POST", "/"), 405);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_int_equal(get(refused[i], "/metrics"), 405);
        assert_non_null(strstr(answer, "Allow: GET, HEAD"));
    }
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        if (get("GET", unknown[i]) != 404)
            fail_msg("%s: %.60s", unknown[i], answer);
}

/* A page of another site, whose host name resolves to this machine, gets no data (DNS
 * rebinding). */
static void test_other_hosts(void **state)
{
    (void)state;
    static const struct
    {
        const char *headers;
        int status;
    } row[] = {{"Host: node7:7200\r\n", 200},
               {"Host: 127.0.0.1:7200\r\n", 200},
               {"Host: [::1]\r\n", 200},
               {"Host: evil.example\r\n", 421},
               {"Host: evil.example:7200\r\n", 421},
               {"Host: localhost\r\nHost: evil.example\r\n", 421},
               {"Host: evil.example\r\nHost: localhost\r\n", 421}};
    static const char *const path[] = {"/", "/metrics", "/status.json", "/healthz"};
    publish(1);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (size_t k = 0; k < sizeof path / sizeof *path; k++) {
            char request[300];
            snprintf(request, sizeof request, "GET %s HTTP/1.1\r\n%sConnection: close\r\n\r\n",
                     path[k], row[i].headers);
            int status = ask(request, strlen(request));
            if (status != row[i].status && !(status == 400 && row[i].status == 421))
                fail_msg("%s with %s: %d", path[k], row[i].headers, status);
            if (row[i].status == 421)
                assert_null(strstr(answer, "hearsay_"));
        }
    assert_int_equal(ask("GET /healthz HTTP/1.0\r\n\r\n", 25), 200);
}

/* A connection serves many requests, even if the client sends all of them at once. */
static void test_kept_alive(void **state)
{
    (void)state;
    char all[4000] = "";
    size_t n_answers = 0;
    publish(1);
    for (int i = 0; i < 20; i++)
        strcat(all, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    strcat(all, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert_int_equal(ask(all, strlen(all)), 200);
    for (const char *p = answer; (p = strstr(p, "alive\n")) != NULL; p++)
        n_answers++;
    assert_int_equal(n_answers, 21);
}

/* ---- Hostile clients ---------------------------------------------------- */

static char *long_text(const char *before, const char *unit, size_t n, const char *behind)
{
    size_t k = strlen(unit), at = strlen(before);
    char *p = malloc(at + n * k + strlen(behind) + 1);
    assert_non_null(p);
    memcpy(p, before, at);
    for (size_t i = 0; i < n; i++, at += k)
        memcpy(p + at, unit, k);
    strcpy(p + at, behind);
    return p;
}

/* Checks that the server answers this request with an error, or closes the connection, and that it
 * still serves the next client. */
static void expect_refused(const char *request, size_t n)
{
    int status = ask(request, n);
    if (status != 0 && (status < 400 || status > 599))
        fail_msg("%.40s... gets %d", request, status);
    assert_int_equal(get("GET", "/metrics"), 200);
}

static void test_junk(void **state)
{
    (void)state;
    static const char *const junk[] = {
        "GET\r\n\r\n",
        "GET /metrics\r\n\r\n",
        "GET /metrics HTTP/9.9\r\n\r\n",
        "GET /metrics HTTP/1.1\r\n\r\n", /* The Host header is missing. */
        " GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "SSH-2.0-x\r\n",
        "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
        "999999999999999999\r\n\r\nabc",
        "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\nabc",
        "POST /metrics HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: "
        "chunked\r\n\r\nfffffffffffffff\r\n",
    };
    publish(1);
    for (size_t i = 0; i < sizeof junk / sizeof *junk; i++)
        expect_refused(junk[i], strlen(junk[i]));
    char *line = long_text("GET /", "a", 4 * SERVER_MEMORY, " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    expect_refused(line, strlen(line));
    char *many =
        long_text("GET / HTTP/1.1\r\nHost: localhost\r\n", "A: b\r\n", 2 * SERVER_MEMORY, "\r\n");
    expect_refused(many, strlen(many));
    char *endless =
        long_text("GET / HTTP/1.1\r\nHost: localhost\r\nA: ", "b", 64 * SERVER_MEMORY, "");
    expect_refused(endless, strlen(endless));
    free(line);
    free(many);
    free(endless);
}

/* The server closes connections whose request is never complete. Other clients do not wait for
 * them. */
static void test_unfinished(void **state)
{
    (void)state;
    static const char *const part[] = {"", "G", "\r\n\r\n\r\n",
                                       "\x16\x03\x01\x02\x01\x01\xfc\x03\x03",
                                       "GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: "};
    enum { PARTS = sizeof part / sizeof *part };
    int fd[PARTS];
    publish(1);
    for (size_t i = 0; i < PARTS; i++) {
        fd[i] = dial();
        say(fd[i], part[i], strlen(part[i]));
        assert_int_equal(get("GET", "/metrics"), 200);
    }
    for (size_t i = 0; i < PARTS; i++) {
        hear(fd[i]); /* The server closes the connection without sending an answer. */
        assert_string_equal(body(), "");
    }
}

/* The server does not read the body of a request, and does not take it for the next request. */
static void test_bodies(void **state)
{
    (void)state;
    publish(1);
    static const char smuggled[] =
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 64\r\n\r\n"
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert_int_equal(ask(smuggled, strlen(smuggled)), 200);
    assert_null(strstr(answer, "hearsay_"));
    char *upload = long_text("PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n",
                             "x", 1000000, "");
    int status = ask(upload, strlen(upload));
    /* Status 0 is also right: the server closed the connection while the client was still
     * sending. */
    assert_true(status == 405 || status == 0);
    free(upload);
}

/* The server survives requests that were valid before a few bytes were changed. */
static void test_mutated(void **state)
{
    (void)state;
    uint64_t seed = getenv("SEED") ? strtoull(getenv("SEED"), NULL, 10) : 11;
    struct rng r = rng_stream(seed);
    printf("SEED=%llu\n", (unsigned long long)seed);
    publish(1);
    for (int i = 0; i < 300; i++) {
        char request[] =
            "GET /status.json HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n"
            "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        for (uint64_t k = rng_below(&r, 4); k < 5; k++)
            request[rng_below(&r, sizeof request - 1)] = (char)rng_below(&r, 256);
        int fd = dial();
        say(fd, request, sizeof request - 1);
        close(fd);
    }
    assert_int_equal(get("GET", "/status.json"), 200);
}

/* Many more clients than allowed send a byte from time to time, so that none of them times out. A
 * client that comes later is served nevertheless. */
static void test_crowd(void **state)
{
    (void)state;
    static int fd[CROWD];
    static const char half[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Slow: ";
    static const char whole[] =
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    publish(1);
    for (int i = 0; i < CROWD; i++) {
        fd[i] = dial();
        say(fd[i], half, strlen(half));
    }
    struct pollfd mine = {.fd = dial(), .events = POLLIN};
    say(mine.fd, whole, strlen(whole));
    for (int tries = 0; poll(&mine, 1, TRICKLE_MS) == 0; tries++) {
        assert_true(tries * TRICKLE_MS < HANG_MS);
        for (int i = 0; i < CROWD; i++)
            (void)send(fd[i], "a", 1, MSG_NOSIGNAL);
    }
    hear(mine.fd);
    assert_non_null(strstr(body(), "hearsay_round 1\n"));
    for (int i = 0; i < CROWD; i++)
        close(fd[i]);
    assert_int_equal(get("GET", "/metrics"), 200);
}

/* A client that sends a request and does not read delays neither the loop nor other clients. */
static void test_deaf(void **state)
{
    (void)state;
    static const char request[] = "GET /status.json HTTP/1.1\r\nHost: localhost\r\n\r\n";
    int fd[4];
    publish(1);
    for (int i = 0; i < 4; i++) {
        fd[i] = dial();
        for (int k = 0; k < 50; k++)
            say(fd[i], request, strlen(request));
    }
    for (uint64_t round = 2; round < 200; round++)
        publish(round);
    assert_int_equal(get("GET", "/metrics"), 200);
    for (int i = 0; i < 4; i++)
        close(fd[i]);
}

static void test_taken_port(void **state)
{
    (void)state;
    char error[SERVER_ERROR_MAX] = "";
    struct server *other;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(server_port(server))};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(server_port(server) != 0);
    assert_int_equal(
        server_open(&other, (struct sockaddr *)&a, sizeof a, &(struct hosts){.n = 0}, error),
        -EADDRINUSE);
    assert_non_null(strstr(error, "in use"));
    server_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),     cmocka_unit_test(test_methods),
        cmocka_unit_test(test_other_hosts), cmocka_unit_test(test_kept_alive),
        cmocka_unit_test(test_junk),        cmocka_unit_test(test_unfinished),
        cmocka_unit_test(test_bodies),      cmocka_unit_test(test_mutated),
        cmocka_unit_test(test_crowd),       cmocka_unit_test(test_deaf),
        cmocka_unit_test(test_taken_port)};
    return cmocka_run_group_tests(tests, open_server, close_server);
}
