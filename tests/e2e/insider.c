/* tests/e2e/insider.c -- an attacker with the cluster key, which announces members that do not
 * exist ("ghosts") to a real peer over TCP.
 *
 *   insider PORT KEYFILE GHOSTS SECONDS
 *
 * The program dials the peer at 127.0.0.1:PORT, joins its run by HELLO, and announces GHOSTS
 * members that do not exist. Their records are signed by themselves, their names sort between the
 * names of real peers, and the insider and other ghosts endorse them. For SECONDS seconds the
 * program sends heartbeats, and each second all records again with a higher incarnation. Prints the
 * number of sessions and of records that it sent.
 *
 * Exit codes: 0 after success, 1 if there was no session, 2 after invalid usage. */
#include "gossip/wire/wire.h"
#include "peer/secure/channel.h"
#include "peer/secure/frame.h"
#include "peer/secure/keyfile.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 12, GHOSTS_MAX = 2000, IN = 4 * CHANNEL_RECORD_MAX };

static struct
{
    int fd;
    struct channel channel;
    struct frame frame;
    uint8_t in[IN];
    size_t n_in;
    char run[WIRE_RUN_MAX];
    size_t n_run;
    bool greeted;
} s = {.fd = -1};

static struct channel_identity self, ghost[GHOSTS_MAX];
static uint8_t psk[CHANNEL_KEY];
static unsigned n_sessions, n_told;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool send_all(const uint8_t *p, size_t n)
{
    while (n > 0) {
        ssize_t k = send(s.fd, p, n, MSG_NOSIGNAL);
        if (k <= 0)
            return false;
        p += k;
        n -= (size_t)k;
    }
    return true;
}

static bool say(const uint8_t *m, size_t n)
{
    static uint8_t out[CHANNEL_HEADER + CHANNEL_RECORD_MAX];
    struct frame_cut cut;
    struct frame_record r;
    frame_cut_init(&cut, FRAME_CONTROL, m, n, NULL, 0);
    while (frame_next(&cut, &r)) {
        size_t length = channel_seal(&s.channel, r.kind, r.data, r.n, r.data2, r.n2, out);
        if (!send_all(out, length))
            return false;
    }
    return true;
}

/* ---- handling received messages ---- */

static void take(const uint8_t *p, size_t n)
{
    static struct wire_batch batch;
    struct wire_message m;
    if (!wire_read(p, n, &batch, &m) || m.type != WIRE_HELLO || !m.hello.has_run)
        return;
    memcpy(s.run, m.hello.run.p, m.hello.run.n);
    s.n_run = m.hello.run.n;
    s.greeted = true;
}

/* Handles the messages that arrive within `ms` milliseconds. Returns false if the session is
 * over. */
static bool hear(int ms)
{
    static uint8_t plain[CHANNEL_OPEN_MAX];
    struct pollfd p = {.fd = s.fd, .events = POLLIN};
    size_t at = 0, n_plain;
    enum channel_kind kind;
    struct frame_message m;
    if (poll(&p, 1, ms) == 0)
        return true;
    ssize_t n = recv(s.fd, s.in + s.n_in, sizeof s.in - s.n_in, 0);
    if (n <= 0)
        return false;
    s.n_in += (size_t)n;
    while (s.n_in - at >= 2) {
        size_t length = (size_t)(s.in[at] << 8 | s.in[at + 1]);
        if (s.n_in - at < 2 + length)
            break;
        if (channel_open(&s.channel, s.in + at + 2, length, plain, &n_plain, &kind) < 0
            || kind == CHANNEL_CLOSE)
            return false;
        if (kind != CHANNEL_REKEY && frame_push(&s.frame, kind, plain, n_plain, &m) == 1)
            take(m.bytes, m.n);
        at += 2 + length;
    }
    memmove(s.in, s.in + at, s.n_in - at);
    s.n_in -= at;
    return true;
}

static bool hear_exactly(uint8_t *out, size_t n)
{
    return recv(s.fd, out, n, MSG_WAITALL) == (ssize_t)n;
}

/* ---- making the messages to send ---- */

static struct record record_of(const struct channel_identity *id, const char *name,
                               uint64_t incarnation)
{
    struct record r = {.n_addresses = 1, .incarnation = incarnation, .boot = 5};
    uint8_t msg[2048];
    memcpy(r.id, id->sign_pk, sizeof r.id);
    snprintf(r.name, sizeof r.name, "%s", name);
    strcpy(r.address[0], "127.0.0.1:9");
    r.state = RECORD_RUNNING;
    channel_sign(id, msg, wire_record_signed(msg, sizeof msg, &r), r.signature);
    return r;
}

static struct vouch vouch_of(const struct channel_identity *by,
                             const struct channel_identity *member)
{
    struct vouch v;
    uint8_t msg[2048];
    memcpy(v.voucher, by->sign_pk, sizeof v.voucher);
    memcpy(v.member, member->sign_pk, sizeof v.member);
    channel_sign(by, msg, wire_vouch_signed(msg, sizeof msg, &v), v.signature);
    return v;
}

static bool say_hello(uint64_t incarnation)
{
    static uint8_t out[WIRE_CONTROL_MAX];
    struct wire_hello h = {.version = s.channel.version,
                           .role = WIRE_PEER,
                           .has_run = true,
                           .has_started = true,
                           .run = {(const uint8_t *)s.run, s.n_run},
                           .record = record_of(&self, "peer-0z", incarnation)};
    return say(out, wire_put_hello(out, sizeof out, &h));
}

static bool tell_of_ghosts(unsigned n, uint64_t incarnation)
{
    static uint8_t out[WIRE_CONTROL_MAX];
    struct record r[BATCH];
    struct vouch v[2 * BATCH];
    for (unsigned at = 0; at < n; at += BATCH) {
        struct wire_members m = {.records = r, .vouches = v};
        for (unsigned i = at; i < n && i < at + BATCH; i++) {
            char name[WIRE_NAME_MAX + 1];
            snprintf(name, sizeof name, "peer-%u-ghost-%u", i % 3, i);
            r[m.n_records++] = record_of(&ghost[i], name, incarnation);
            v[m.n_vouches++] = vouch_of(&self, &ghost[i]);
            v[m.n_vouches++] = vouch_of(&ghost[(i + 1) % n], &ghost[i]);
        }
        if (!say(out, wire_put_members(out, sizeof out, &m)))
            return false;
        n_told += m.n_records;
    }
    return true;
}

static bool open_session(uint16_t port)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    uint8_t ephemeral[32], in[CHANNEL_MSG2], out[CHANNEL_MSG2];
    size_t n;
    if (s.fd >= 0)
        close(s.fd);
    frame_close(&s.frame);
    frame_init(&s.frame, WIRE_CONTROL_MAX, 1 << 24);
    s.n_in = 0;
    s.greeted = false;
    s.fd = socket(AF_INET, SOCK_STREAM, 0);
    if (s.fd < 0 || connect(s.fd, (struct sockaddr *)&to, sizeof to) < 0)
        return false;
    randombytes_buf(ephemeral, sizeof ephemeral);
    channel_init(&s.channel, true, &self, psk, ephemeral);
    channel_speak(&s.channel, (struct channel_versions){WIRE_VERSION_LEAST, WIRE_VERSION});
    if (channel_handshake(&s.channel, NULL, 0, out, &n) < 0 || !send_all(out, n)
        || !hear_exactly(in, CHANNEL_MSG2)
        || channel_handshake(&s.channel, in, CHANNEL_MSG2, out, &n) < 0 || !send_all(out, n))
        return false;
    while (!s.greeted)
        if (!hear(10000))
            return false;
    n_sessions++;
    return true;
}

int main(int argc, char **argv)
{
    char error[KEYFILE_ERROR_MAX];
    uint8_t seed[32] = {9}, out[64];
    if (argc != 5 || sodium_init() < 0 || keyfile_read(argv[2], psk, error) < 0) {
        fprintf(stderr, "usage: insider PORT KEYFILE GHOSTS SECONDS\n");
        return 2;
    }
    unsigned n = (unsigned)atoi(argv[3]);
    n = n < GHOSTS_MAX ? n : GHOSTS_MAX;
    channel_identity_from_seed(&self, seed);
    for (unsigned i = 0; i < n; i++) {
        seed[1] = (uint8_t)(i >> 8);
        seed[2] = (uint8_t)i;
        seed[3] = 1;
        channel_identity_from_seed(&ghost[i], seed);
    }
    double end = now_s() + atof(argv[4]), told = 0;
    bool up = false;
    for (uint64_t incarnation = 1; now_s() < end;) {
        if (!up && (!open_session((uint16_t)atoi(argv[1])) || !say_hello(incarnation))) {
            /* Waits 200 ms before the next dial, because the peer may refuse sessions for a
             * while. */
            (void)poll(NULL, 0, 200);
            continue;
        }
        up = true;
        if (now_s() - told > 1) {
            up = tell_of_ghosts(n, incarnation++);
            told = now_s();
        }
        up = up && say(out, wire_put_ping(out, sizeof out, &(struct wire_ping){.round = 0}))
             && hear(200);
    }
    printf("%u sessions, told of %u members\n", n_sessions, n_told);
    return n_sessions > 0 ? 0 : 1;
}
