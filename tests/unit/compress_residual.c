/* tests/unit/compress_residual.c -- tests error feedback around a codec, as mixers other than CHOCO
 * use it:
 *
 *   p = e + g;  send C(p);  e = p - C(p)
 *
 * For each codec, the sum of the sent and the remaining parts equals the sum of the inputs: sum C +
 * e = sum g. With a contraction e stays bounded: |e|^2 <= 4 (1 - delta) / delta^2 max |g|^2
 * (Karimireddy et al. 2019). */
#include "tests/unit/compress_specs.h"
#include "tests/unit/compress_vectors.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { SIDE = 30, N = 2 * SIDE * SIDE, STEPS = 200 };

static float g[N], p[N], e[N];
static double sent[N], wanted[N];

struct account
{
    /* Share of the inputs g that is lost, for messages C and remaining error e: |sum C + e - sum g|
     * / |sum g|. */
    double miss;
    /* e2: |e|^2 of the last step. g2: largest |g|^2. least: smallest contraction. */
    double e2, g2, least;
};

static void step(struct bench_rig *r, uint64_t t, struct account *a)
{
    vector_fill(g, N, t % 2 == 0 ? VECTOR_GAUSS : VECTOR_LAPLACE, t);
    for (size_t i = 0; i < N; i++) {
        wanted[i] += (double)g[i];
        p[i] = e[i] + g[i];
    }
    if (rig_code(r, t, p) != 0)
        fail_msg("step %d is refused", (int)t);
    for (size_t i = 0; i < N; i++) {
        sent[i] += (double)r->out[i];
        e[i] = p[i] - r->out[i];
    }
    a->e2 = vec_norm2(e, N);
    a->g2 = fmax(a->g2, vec_norm2(g, N));
    a->least = fmin(a->least, 1.0 - r->stat.e2 / r->stat.x2);
}

static struct account run(const char *spec)
{
    struct segment s[2] = {{.n = N / 2, .rows = SIDE, .cols = SIDE},
                           {.offset = N / 2, .n = N / 2, .rows = SIDE, .cols = SIDE}};
    struct account a = {.least = 1.0};
    struct bench_rig r;
    rig_open_model(&r, spec, s, 2);
    memset(e, 0, sizeof e);
    memset(sent, 0, sizeof sent);
    memset(wanted, 0, sizeof wanted);
    for (uint64_t t = 0; t < STEPS; t++)
        step(&r, t, &a);
    double miss = 0.0, all = 0.0;
    for (size_t i = 0; i < N; i++) {
        double d = sent[i] + (double)e[i] - wanted[i];
        miss += d * d;
        all += wanted[i] * wanted[i];
    }
    a.miss = sqrt(miss / all);
    rig_close(&r);
    return a;
}

static void test_nothing_is_lost(void **state)
{
    (void)state;
    static struct tested list[SPECS_MAX];
    size_t n_specs = specs_all(list);
    for (size_t i = 0; i < n_specs; i++) {
        if (list[i].class == CODEC_NEITHER || list[i].class == CODEC_UNBIASED)
            /* Codecs of these two classes (CODEC_NEITHER and CODEC_UNBIASED) are skipped: with
             * error feedback, their error may grow without bound. */
            continue;
        struct account a = run(list[i].spec);
        if (!(a.miss <= 1e-4))
            fail_msg("%s: %.2g of the updates are lost", list[i].spec, a.miss);
        double d = a.least;
        if (list[i].class == CODEC_CONTRACTION && d > 0.0
            && !(a.e2 <= 4.0 * (1.0 - d) / (d * d) * a.g2 * 1.001 + 1e-9 * a.g2))
            fail_msg("%s: |e|^2 is %.3g |g|^2 with delta %.3g", list[i].spec, a.e2 / a.g2, d);
    }
}

/* Counter-example: this codec is no contraction, so error feedback makes its error grow without
 * bound. */
static void test_raw_explodes(void **state)
{
    (void)state;
    struct account a = run("qsgd:2:0:l2,round=sr,scale=raw");
    assert_true(a.e2 > 1e6 * a.g2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_lost),
        cmocka_unit_test(test_raw_explodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
