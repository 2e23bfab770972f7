/* tests/unit/gossip_layers.c -- tests the division of a model into layers, their sketches, and the
 * distances computed from them. */
#include "gossip/exchange/layers.h"
#include "gossip_seeds.h"
#include "nn/math/rng.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PEERS = 5, MANY = 150 };

static void add(struct segment *s, size_t *n, const char *name, size_t floats, bool trained)
{
    size_t at = *n > 0 ? s[*n - 1].offset + s[*n - 1].n : 0;
    s[*n] = (struct segment){.offset = at, .n = floats, .trained = trained};
    snprintf(s[*n].name, sizeof s[*n].name, "%s", name);
    ++*n;
}

/* Fills s with four layers and statistics. The layers have 10, LAYERS_K + 1, LAYERS_K + 2 and 5000
 * floats. LAYERS_K + 1 is the largest size of a layer that is sent without a sketch. Returns the
 * number of segments. */
static size_t some_model(struct segment s[8])
{
    size_t n = 0;
    add(s, &n, "conv1.weight", 7, true);
    add(s, &n, "conv1.bias", 3, true);
    add(s, &n, "fc1.weight", LAYERS_K, true);
    add(s, &n, "fc1.bias", 1, true);
    add(s, &n, "fc2.weight", LAYERS_K + 2, true);
    add(s, &n, "scale", 5000, true);
    add(s, &n, "bn.running_mean", 9, false);
    return n;
}

static void test_cut(void **state)
{
    struct segment s[8];
    struct layers l;
    size_t n = some_model(s);
    (void)state;
    layers_cut(&l, s, n);
    static const struct
    {
        const char *name;
        size_t offset, n, at, width;
    } want[] = {{"conv1", 0, 10, 0, 10},
                {"fc1", 10, LAYERS_K + 1, 10, LAYERS_K + 1},
                {"fc2", LAYERS_K + 11, LAYERS_K + 2, LAYERS_K + 11, LAYERS_K + 1},
                {"scale", 2 * LAYERS_K + 13, 5000, 2 * LAYERS_K + 12, LAYERS_K + 1}};
    assert_int_equal(l.n, sizeof want / sizeof want[0]);
    for (size_t i = 0; i < l.n; i++) {
        assert_string_equal(l.part[i].name, want[i].name);
        assert_int_equal(l.part[i].offset, want[i].offset);
        assert_int_equal(l.part[i].n, want[i].n);
        assert_int_equal(l.part[i].at, want[i].at);
        assert_int_equal(l.part[i].width, want[i].width);
    }
    assert_int_equal(l.n_floats, 3 * LAYERS_K + 13);
    layers_cut(&l, s, 0);
    assert_int_equal(l.n, 0);
    assert_int_equal(l.n_floats, 0);
}

/* For any number of layers, the parts cover the trained model without gaps, and there are at most
 * LAYERS_MAX parts. */
static void test_many_layers(void **state)
{
    static struct segment s[MANY + 1];
    (void)state;
    for (size_t count = LAYERS_MAX - 1; count <= MANY; count++) {
        struct layers l;
        size_t n = 0, at = 0;
        for (size_t i = 0; i < count; i++) {
            char name[SEGMENT_NAME_MAX];
            snprintf(name, sizeof name, "a.rather.long.name%zu.weight", i);
            add(s, &n, name, i == 3 ? 100000 : 1 + i % 7, true);
        }
        add(s, &n, "var", 11, false);
        layers_cut(&l, s, n);
        assert_int_equal(l.n, count < LAYERS_MAX ? count : LAYERS_MAX);
        for (size_t i = 0; i < l.n; i++) {
            assert_int_equal(l.part[i].offset, at);
            at += l.part[i].n;
            assert_true(l.part[i].n < 200000 && strlen(l.part[i].name) > 0);
        }
        assert_int_equal(at, s[n - 1].offset);
        /* The model has one layer more than there may be parts, so the two smallest layers share
         * one. */
        if (count == LAYERS_MAX + 1) {
            char most[LAYERS_NAME_MAX] = "";
            for (size_t i = 0; i < l.n; i++)
                if (strlen(l.part[i].name) > strlen(most))
                    memcpy(most, l.part[i].name, sizeof most);
            assert_non_null(strstr(most, " to a.rather.long"));
        }
    }
}

/* ---- the measure ---- */

struct cast
{
    struct segment s[8];
    struct layers l;
    size_t n_segments, dim;
    float *x[PEERS], *said[PEERS];
};

/* Draws the deviation of a peer's model from the mean in coordinate k. Most deviations are
 * positive, as if all peers had moved to one side. */
static double far(struct rng *r, size_t k)
{
    return 0.5 + (k < 300 ? 3 : 1) * rng_normal(r);
}

static void cast_open(struct cast *c, uint64_t seed, double apart)
{
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, 5, 0));
    c->n_segments = some_model(c->s);
    layers_cut(&c->l, c->s, c->n_segments);
    c->dim = segments_trained(c->s, c->n_segments);
    float *mean = malloc(c->dim * sizeof *mean);
    assert_non_null(mean);
    for (size_t k = 0; k < c->dim; k++)
        mean[k] = (float)rng_normal(&r);
    for (size_t i = 0; i < PEERS; i++) {
        c->x[i] = malloc((c->dim + 9) * sizeof(float));
        c->said[i] = malloc(c->l.n_floats * sizeof(float));
        assert_true(c->x[i] != NULL && c->said[i] != NULL);
        for (size_t k = 0; k < c->dim; k++) /* The peers have different distances from the mean. */
            c->x[i][k] = mean[k] + (float)(apart * (double)(i + 1) * far(&r, k));
        layers_sketch(&c->l, 77 + seed, c->x[i], c->said[i]);
    }
    free(mean);
}

static void cast_close(struct cast *c)
{
    for (size_t i = 0; i < PEERS; i++) {
        free(c->x[i]);
        free(c->said[i]);
    }
}

/* Reference: computes the distances in a struct layers_figure directly from their definition. */
static struct layers_figure stupid(float *const *x, size_t offset, size_t n)
{
    struct layers_figure f = {.apart = -1};
    double xi2 = 0, mean2 = 0;
    for (size_t k = offset; k < offset + n; k++) {
        double mean = 0;
        for (size_t i = 0; i < PEERS; i++)
            mean += (double)x[i][k] / PEERS;
        mean2 += mean * mean;
        for (size_t i = 0; i < PEERS; i++)
            xi2 += ((double)x[i][k] - mean) * ((double)x[i][k] - mean) / PEERS;
    }
    for (size_t i = 0; i < PEERS; i++)
        for (size_t j = 0; j < i; j++) {
            double d2 = 0;
            for (size_t k = offset; k < offset + n; k++)
                d2 += ((double)x[i][k] - (double)x[j][k]) * ((double)x[i][k] - (double)x[j][k]);
            if (sqrt(d2) > f.apart)
                f = (struct layers_figure){.apart = sqrt(d2), .far = {j, i}};
        }
    f.xi = sqrt(xi2);
    f.relative = sqrt(xi2 / mean2);
    return f;
}

static bool near(double a, double b, double by)
{
    return fabs(a - b) <= by * fabs(b);
}

static void assert_same(const struct layers_figure *f, const struct layers_figure *want)
{
    assert_true(near(f->xi, want->xi, 1e-6) && near(f->relative, want->relative, 1e-6));
    assert_true(near(f->apart, want->apart, 1e-6));
    assert_int_equal(f->far[0], want->far[0]);
    assert_int_equal(f->far[1], want->far[1]);
    assert_true(f->error == 0);
}

/* Distances computed from complete models are exact, for each tensor and for the whole model. */
static void check_exact(uint64_t seed)
{
    struct cast c;
    struct layers_part part[8];
    struct layers_figure f[9], want;
    cast_open(&c, seed, 0.01);
    size_t n = layers_of_segments(part, c.s, c.n_segments);
    assert_int_equal(n, 6);
    assert_int_equal(layers_measure(part, n, (const float *const *)c.x, PEERS, f), 0);
    for (size_t i = 0; i <= n; i++) {
        want = i < n ? stupid(c.x, part[i].offset, part[i].n) : stupid(c.x, 0, c.dim);
        assert_same(&f[i], &want);
    }
    cast_close(&c);
}

static void test_exact(void **state)
{
    (void)state;
    for_seeds(check_exact, 5);
}

static double off2, n_off;

/* Checks the distances between models for each part (layer) of the model. Small parts are sent as
 * they are, so their distances are exact. Larger parts are sent as sketches. Their error is at most
 * four times the error that layers_measure() states. */
static void check_sketches(uint64_t seed)
{
    struct cast c;
    struct layers_figure f[LAYERS_MAX + 1];
    cast_open(&c, seed, 0.01);
    assert_int_equal(layers_measure(c.l.part, c.l.n, (const float *const *)c.said, PEERS, f), 0);
    for (size_t i = 0; i <= c.l.n; i++) {
        const struct layers_part *p = &c.l.part[i];
        struct layers_figure want =
            i < c.l.n ? stupid(c.x, p->offset, p->n) : stupid(c.x, 0, c.dim);
        if (i < 2) {
            assert_same(&f[i], &want);
            continue;
        }
        assert_true(f[i].error > 0 && f[i].error < 0.045);
        assert_true(near(f[i].xi, want.xi, 4 * f[i].error));
        assert_true(near(f[i].relative, want.relative, 4 * f[i].error));
        assert_true(near(f[i].apart, want.apart, 0.3));
        off2 += (f[i].xi / want.xi - 1) * (f[i].xi / want.xi - 1) / f[i].error / f[i].error;
        n_off++;
    }
    cast_close(&c);
}

static void test_sketches(void **state)
{
    (void)state;
    off2 = n_off = 0;
    for_seeds(check_sketches, 30);
    print_message("rms of %.0f errors in the stated one: %.2f\n", n_off, sqrt(off2 / n_off));
    /* off2 / n_off is the mean of about 90 values of (actual error / stated error)^2. If the stated
     * errors are right, the mean is 1, with a standard deviation of 0.15. */
    assert_true(off2 <= 1.2 * n_off);
}

/* If models differ by less than sketches can measure, no distance is given for the parts (layers)
 * that are sent as sketches. The other parts are sent exactly and have a distance. A model that is
 * not finite has no distance. */
static void test_unknown(void **state)
{
    struct cast c;
    struct layers_figure f[LAYERS_MAX + 1];
    (void)state;
    static const double apart[] = {0, 3e-9};
    for (size_t k = 0; k < 2; k++) {
        cast_open(&c, 3, apart[k]);
        assert_int_equal(layers_measure(c.l.part, c.l.n, (const float *const *)c.said, PEERS, f),
                         0);
        for (size_t i = 2; i <= c.l.n; i++) {
            assert_true(isnan(f[i].xi) && isnan(f[i].relative) && isnan(f[i].error));
            assert_true(isnan(f[i].apart) && f[i].far[0] == f[i].far[1]);
        }
        assert_true(apart[k] > 0 || (f[0].xi == 0 && f[0].relative == 0 && f[0].apart == 0));
        cast_close(&c);
    }
    cast_open(&c, 3, 0.01);
    c.x[2][LAYERS_K + 12] = NAN;
    layers_sketch(&c.l, 4, c.x[2], c.said[2]);
    assert_int_equal(layers_measure(c.l.part, c.l.n, (const float *const *)c.said, PEERS, f), 0);
    assert_true(isnan(f[2].xi) && isnan(f[c.l.n].xi) && !isnan(f[0].xi));
    cast_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_many_layers),
        cmocka_unit_test_teardown(test_exact, print_seed),
        cmocka_unit_test_teardown(test_sketches, print_seed),
        cmocka_unit_test(test_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
