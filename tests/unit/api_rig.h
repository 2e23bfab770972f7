/* tests/unit/api_rig.h -- test programs with models of their own, each in a thread of this
 * process. The local steps of each program pull its weights towards a different point, so all
 * models should end near the mean of these points. */
#ifndef TESTS_UNIT_API_RIG_H
#define TESTS_UNIT_API_RIG_H

#include "peer/api/hearsay.h"

#include "peer/secure/keyfile.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { RIG_A = 33, RIG_B = 7, RIG_N = RIG_A + RIG_B, RIG_PEERS = 8 };

struct rig_peer
{
    struct hearsay *h;
    uint32_t i;
    /* Memory of the first tensor, followed by the second one unless `separate` is set. */
    float x[RIG_N];
    float apart[RIG_B]; /* Memory of the second tensor if `separate` is set. */
    float first[RIG_N]; /* Copy of the model before the first local step. */
    bool separate;
    /* rounds: number of rounds trained so far. stop_at: the peer leaves before this round, counted
     * from 1. 0: the peer does not leave. */
    uint64_t rounds, stop_at;
    int code; /* Result of the last call of the library. */
    pthread_t thread;
};

static inline float *rig_b(struct rig_peer *p)
{
    return p->separate ? p->apart : p->x + RIG_A;
}

static inline void rig_init(struct rig_peer *p, uint32_t i, bool separate, const char *options)
{
    *p = (struct rig_peer){.i = i, .separate = separate, .h = hearsay_new()};
    assert_non_null(p->h);
    for (int k = 0; k < RIG_N; k++)
        p->x[k] = 1 + 0.25f * (float)k;
    memcpy(p->apart, p->x + RIG_A, sizeof p->apart);
    assert_int_equal(hearsay_options(p->h, options), HEARSAY_OK);
    const uint64_t a[] = {3, RIG_A / 3}, b[] = {RIG_B};
    assert_int_equal(hearsay_tensor(p->h, "a", p->x, HEARSAY_FLOAT32, HEARSAY_TRAINED, 2, a),
                     HEARSAY_OK);
    assert_int_equal(hearsay_tensor(p->h, "b", rig_b(p), HEARSAY_FLOAT32, HEARSAY_TRAINED, 1, b),
                     HEARSAY_OK);
}

/* Makes one local step: moves each weight a tenth of the way to i + 1, where i is the number of the
 * peer. */
static inline void rig_step(struct rig_peer *p)
{
    for (int k = 0; k < RIG_N; k++) {
        float *v = k < RIG_A ? p->x + k : rig_b(p) + (k - RIG_A), far = *v - (float)(p->i + 1);
        *v -= 0.1f * far;
    }
}

static inline void rig_copy_model(const struct rig_peer *p, float out[RIG_N])
{
    memcpy(out, p->x, RIG_A * sizeof *out);
    memcpy(out + RIG_A, p->separate ? p->apart : p->x + RIG_A, RIG_B * sizeof *out);
}

/* The main loop of a test program: trains until the run ends or the peer leaves. */
static inline void *rig_train(void *self)
{
    struct rig_peer *p = self;
    p->code = hearsay_wait(p->h, -1);
    while (p->code == HEARSAY_OK) {
        struct hearsay_did did = {.loss =
                                      /* The program reports no loss to the library (NaN). The loss
                                       * of a single peer may rise here, because the mean of the
                                       * models is not the optimum of this peer. */
                                  (double)NAN};
        if (p->stop_at > 0 && p->rounds + 1 == p->stop_at) {
            p->code = hearsay_leave(p->h, 30);
            break;
        }
        if (p->rounds == 0)
            rig_copy_model(p, p->first);
        for (uint32_t s = 0; s < hearsay_steps(p->h); s++)
            rig_step(p);
        p->rounds++;
        p->code = hearsay_round(p->h, &did, -1);
    }
    return NULL;
}

static inline void rig_start(struct rig_peer *p)
{
    assert_int_equal(pthread_create(&p->thread, NULL, rig_train, p), 0);
}

static inline void rig_join(struct rig_peer *p)
{
    assert_int_equal(pthread_join(p->thread, NULL), 0);
}

/* Writes a cluster key to a new file and returns the path. The caller unlinks the file. */
static inline void rig_key(char path[64])
{
    char error[KEYFILE_ERROR_MAX];
    const uint8_t key[KEYFILE_BYTES] = {1, 2, 3};
    snprintf(path, 64, "/tmp/hearsay-api-%ld-XXXXXX", (long)getpid());
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    unlink(path);
    assert_int_equal(keyfile_write(path, key, error), 0);
}

/* Opens n peers over TCP: the first listens, and the others have its address in their bootstrap
 * lists. */
static inline void rig_open_tcp(struct rig_peer *p, uint32_t n, const char *options,
                                const char *key)
{
    char text[512];
    for (uint32_t i = 0; i < n; i++) {
        rig_init(&p[i], i, false, options);
        snprintf(text, sizeof text, "listen=127.0.0.1:0 name=peer-%u key=%s min-peers=%u", i, key,
                 n);
        assert_int_equal(hearsay_options(p[i].h, text), HEARSAY_OK);
        if (i > 0) {
            snprintf(text, sizeof text, "bootstrap=127.0.0.1:%u", hearsay_port(p[0].h));
            assert_int_equal(hearsay_options(p[i].h, text), HEARSAY_OK);
        }
        int code = hearsay_open(p[i].h);
        if (code != HEARSAY_OK)
            fail_msg("peer-%u: %s", i, hearsay_error(p[i].h));
    }
}

static inline void rig_close_all(struct rig_peer *p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        hearsay_close(p[i].h);
}

static inline void rig_run_all(struct rig_peer *p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        rig_start(&p[i]);
    for (uint32_t i = 0; i < n; i++)
        rig_join(&p[i]);
    for (uint32_t i = 0; i < n; i++) {
        if (p[i].code != HEARSAY_OVER)
            fail_msg("peer-%u: %d, %s", i, p[i].code, hearsay_error(p[i].h));
        if (hearsay_exit_code(p[i].h) != 0)
            fail_msg("peer-%u: %s", i, hearsay_verdict(p[i].h));
    }
}

static inline void rig_expect_same(const struct rig_peer *p, const float x[RIG_N], const char *what)
{
    float own[RIG_N];
    rig_copy_model(p, own);
    for (int k = 0; k < RIG_N; k++)
        if (memcmp(&own[k], &x[k], sizeof *x) != 0)
            fail_msg("%s: coordinate %d is %.9g, expected %.9g", what, k, (double)own[k],
                     (double)x[k]);
}

#endif
