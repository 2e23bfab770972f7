/* tests/bench/bench_flood.c -- opens bad connections of one kind at a given rate.
 *
 *   bench_flood KIND PORT SOURCE RATE SECONDS KEYFILE
 *
 *   connect   connects, sends nothing, and closes after 0.2 s
 *   random    sends as many random bytes as the first handshake message has
 *   replay    always sends the same first handshake message, made with the cluster key
 *   hold      connects and stays until it is disconnected
 *   slow      the same, and sends one byte per second
 *
 * Connections go to 127.0.0.1:PORT from the address SOURCE (such as 127.0.0.2), RATE per second.
 * `replay` needs the cluster key to make the message that an attacker could have recorded. Prints
 * the numbers of connections and of failed attempts, and connections per second. Used by
 * tests/bench/flood. */
#include "peer/secure/channel.h"
#include "peer/secure/keyfile.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum kind { CONNECT, RANDOM, REPLAY, HOLD, SLOW, KINDS };
static const char *const word[KINDS] = {"connect", "random", "replay", "hold", "slow"};

enum { OPEN_MAX = 8000 };
static const double stay_s[KINDS] = {0.2, 0.2, 0.2, 1e9, 1e9};

/* Ring buffer of open connections. `first` is the index of the oldest one. */
static struct
{
    int fd;
    double at_s, said_s;
} ring[OPEN_MAX];
static size_t first, n_open;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int die(const char *what)
{
    fprintf(stderr, "bench_flood: %s: %s\n", what, strerror(errno));
    exit(2);
}

/* Closes the oldest connection without lingering, so that its port is free at once. */
static void drop_first(void)
{
    close(ring[first].fd);
    first = (first + 1) % OPEN_MAX;
    n_open--;
}

static int knock(const struct sockaddr_in *to, const struct sockaddr_in *from)
{
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct linger linger = {.l_onoff = 1};
    if (fd < 0)
        return -1;
    (void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    if (bind(fd, (const struct sockaddr *)from, sizeof *from) == 0
        && (connect(fd, (const struct sockaddr *)to, sizeof *to) == 0 || errno == EINPROGRESS))
        return fd;
    close(fd);
    return -1;
}

static void send_all(enum kind kind, int fd, const uint8_t msg1[CHANNEL_MSG1])
{
    uint8_t random[CHANNEL_MSG1];
    if (kind != RANDOM && kind != REPLAY)
        return;
    randombytes_buf(random, sizeof random);
    (void)!send(fd, kind == RANDOM ? random : msg1, CHANNEL_MSG1, MSG_NOSIGNAL);
}

/* Sends one byte on each connection that sent none for a second. */
static void drip(double now)
{
    for (size_t i = 0; i < n_open; i++) {
        size_t k = (first + i) % OPEN_MAX;
        if (now - ring[k].said_s < 1)
            continue;
        ring[k].said_s = now;
        (void)!send(ring[k].fd, "x", 1, MSG_NOSIGNAL);
    }
}

static void record(const char *file, uint8_t msg1[CHANNEL_MSG2])
{
    static struct channel c;
    struct channel_identity id;
    char error[KEYFILE_ERROR_MAX];
    uint8_t psk[32], seed[32] = {1}, ephemeral[32] = {2};
    size_t n;
    if (keyfile_read(file, psk, error) < 0) {
        fprintf(stderr, "bench_flood: %s\n", error);
        exit(2);
    }
    channel_identity_from_seed(&id, seed);
    randombytes_buf(ephemeral, sizeof ephemeral);
    channel_init(&c, true, &id, psk, ephemeral);
    if (channel_handshake(&c, NULL, 0, msg1, &n) < 0)
        exit(2);
}

int main(int argc, char **argv)
{
    uint8_t msg1[CHANNEL_MSG2];
    struct rlimit limit;
    enum kind kind = CONNECT;
    if (argc != 7 || sodium_init() < 0) {
        fprintf(stderr, "usage: bench_flood KIND PORT SOURCE RATE SECONDS KEYFILE\n");
        return 2;
    }
    while (kind < KINDS && strcmp(word[kind], argv[1]) != 0)
        kind++;
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)atoi(argv[2])),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)},
                       from = {.sin_family = AF_INET};
    if (kind == KINDS || inet_pton(AF_INET, argv[3], &from.sin_addr) != 1)
        return die("bad arguments");
    record(argv[6], msg1);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    double rate = atof(argv[4]), begin = now_s(), end = begin + atof(argv[5]), now;
    unsigned long n = 0, failed = 0;
    while ((now = now_s()) < end) {
        while (n_open > 0 && now - ring[first].at_s > stay_s[kind])
            drop_first();
        if (kind == SLOW)
            drip(now);
        for (int burst = 0; burst < 64 && (double)(n + failed) < (now - begin) * rate; burst++) {
            if (n_open == OPEN_MAX)
                drop_first();
            int fd = knock(&to, &from);
            if (fd < 0) {
                failed++;
                continue;
            }
            send_all(kind, fd, msg1);
            ring[(first + n_open++) % OPEN_MAX].fd = fd;
            ring[(first + n_open - 1) % OPEN_MAX].at_s = now;
            ring[(first + n_open - 1) % OPEN_MAX].said_s = now;
            n++;
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
    }
    printf("%lu %lu %.0f\n", n, failed, (double)n / (now - begin));
    return 0;
}
