/* tests/bench/bench_channel.c -- measures the speed of the secure channel: complete handshakes,
 * refused handshakes, and encrypted records. */
#include "peer/secure/channel.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct channel_identity ids[2];
static uint8_t psk[32], ephemeral[32];

static int talk(struct channel *a, struct channel *b)
{
    uint8_t x[CHANNEL_MSG2], y[CHANNEL_MSG2];
    size_t n;
    channel_init(a, true, &ids[0], psk, ephemeral);
    channel_init(b, false, &ids[1], psk, ephemeral);
    return channel_handshake(a, NULL, 0, x, &n) || channel_handshake(b, x, n, y, &n)
           || channel_handshake(a, y, n, x, &n) || channel_handshake(b, x, n, y, &n);
}

static void bench_handshake(void)
{
    enum { N = 1000 };
    struct channel a, b;
    double begin = now_s();
    int bad = 0;
    for (int i = 0; i < N; i++)
        bad += talk(&a, &b);
    printf("handshake        %8.1f us for both ends (%d failed)\n", 1e6 * (now_s() - begin) / N,
           bad);
}

static void bench_stranger(void)
{
    enum { N = 50000 };
    uint8_t junk[CHANNEL_MSG1], out[CHANNEL_MSG2];
    struct channel c;
    size_t n;
    int taken = 0;
    randombytes_buf(junk, sizeof junk);
    double begin = now_s();
    for (int i = 0; i < N; i++) {
        channel_init(&c, false, &ids[1], psk, ephemeral);
        taken += channel_handshake(&c, junk, sizeof junk, out, &n) == 0;
    }
    printf("junk msg1        %8.2f us until refused (%d taken)\n", 1e6 * (now_s() - begin) / N,
           taken);
}

static void bench_records(size_t n_data)
{
    static uint8_t data[CHANNEL_PLAIN_MAX], wire[2 + CHANNEL_RECORD_MAX];
    struct channel a, b;
    enum channel_kind kind;
    size_t n, n_out, rounds = 200000000 / (n_data + 500) / 4;
    int bad = talk(&a, &b);
    double seal_s = 0, open_s = 0;
    for (size_t i = 0; i < rounds; i++) {
        double t0 = now_s();
        n = channel_seal(&a, CHANNEL_BULK, data, n_data, NULL, 0, wire);
        double t1 = now_s();
        bad += channel_open(&b, wire + 2, n - 2, wire + 2, &n_out, &kind);
        seal_s += t1 - t0;
        open_s += now_s() - t1;
    }
    double bytes = (double)rounds * (double)n_data;
    printf("record of %6zu  %8.3f GB/s sealed, %.3f GB/s opened, %.2f us both (%d failed)\n",
           n_data, 1e-9 * bytes / seal_s, 1e-9 * bytes / open_s,
           1e6 * (seal_s + open_s) / (double)rounds, bad);
}

int main(void)
{
    uint8_t seed[32] = {1};
    if (sodium_init() < 0)
        return 1;
    channel_identity_from_seed(&ids[0], seed);
    seed[0] = 2;
    channel_identity_from_seed(&ids[1], seed);
    randombytes_buf(psk, sizeof psk);
    randombytes_buf(ephemeral, sizeof ephemeral);
    bench_handshake();
    bench_stranger();
    bench_records(64);
    bench_records(1024);
    bench_records(CHANNEL_PLAIN_MAX);
    return 0;
}
