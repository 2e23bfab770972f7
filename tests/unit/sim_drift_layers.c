/* tests/unit/sim_drift_layers.c -- compares the drift of each layer, as an observer estimates it
 * from sketches, with the exact one. The difference must be within the error that the estimate
 * states, at several rounds of runs with several seeds. */
#include "gossip/exchange/layers.h"
#include "gossip_seeds.h"
#include "sim_rig.h"

enum { PEERS = 8, DIM = 9000, ROUNDS = 60, LOOKS = 6, LAYERS = 5 };

/* Offset of the end of each layer, in floats. The first layer is so small that it is sent whole. Of
 * the other layers, sketches are sent. */
static const size_t ends[LAYERS] = {100, 1000, 3000, 5000, DIM};

static struct layers layers;
static double n_off, off2, worst;

static void cut(void)
{
    struct segment s[LAYERS];
    for (size_t i = 0; i < LAYERS; i++) {
        size_t at = i > 0 ? ends[i - 1] : 0;
        s[i] = (struct segment){.offset = at, .n = ends[i] - at, .trained = true};
        snprintf(s[i].name, sizeof s[i].name, "fc%zu.weight", i + 1);
    }
    layers_cut(&layers, s, LAYERS);
    assert_int_equal(layers.n, LAYERS);
}

/* Computes the exact drift of each layer from whole models. */
static void exact(const float *const *x, struct layers_figure *figure)
{
    struct layers_part whole[LAYERS];
    for (size_t i = 0; i < LAYERS; i++) {
        whole[i] = layers.part[i];
        whole[i].at = whole[i].offset;
        whole[i].width = whole[i].n;
    }
    assert_int_equal(layers_measure(whole, LAYERS, x, PEERS, figure), 0);
}

static void look(const struct rig *r, uint64_t key)
{
    static float said[PEERS][LAYERS * (LAYERS_K + 1)];
    struct layers_figure f[LAYERS + 1], want[LAYERS + 1];
    const float *x[PEERS], *s[PEERS];
    for (uint32_t i = 0; i < PEERS; i++) {
        x[i] = rig_model(r, i);
        layers_sketch(&layers, key, x[i], said[i]);
        s[i] = said[i];
    }
    exact(x, want);
    assert_int_equal(layers_measure(layers.part, LAYERS, s, PEERS, f), 0);
    for (size_t i = 0; i <= LAYERS; i++) {
        double off = f[i].xi / want[i].xi - 1;
        if (f[i].error == 0) {
            assert_true(i == 0 && off == 0);
            continue;
        }
        if (!(fabs(off) <= 4 * f[i].error))
            fail_msg("layer %zu: %g, exactly %g, stated error %g", i, f[i].xi, want[i].xi,
                     f[i].error);
        off2 += off * off / f[i].error / f[i].error;
        worst = fabs(off) / f[i].error > worst ? fabs(off) / f[i].error : worst;
        n_off++;
    }
}

static void check_run(uint64_t seed)
{
    struct rig r;
    rig_init(&r, PEERS, DIM, "ring", "topk:0.05", 0);
    r.config.seed = r.config.run.seed = seed;
    r.config.run.rounds = ROUNDS;
    r.eta = 0.05f;
    r.noise = 1.0f;
    rig_open(&r);
    for (uint64_t k = 1; k <= LOOKS; k++) {
        uint64_t round = k * ROUNDS / (LOOKS + 1);
        while (rig_progress(&r, 0).round < round && sim_step(r.world))
            ;
        assert_int_equal(rig_progress(&r, 0).phase, NODE_TRAINING);
        look(&r, rng_key(seed, RNG_TEST, k, 9));
    }
    rig_close(&r);
}

static void test_within_the_stated_error(void **state)
{
    (void)state;
    cut();
    off2 = n_off = worst = 0;
    for_seeds(check_run, 5);
    print_message("%.0f figures of layers: rms %.2f, worst %.2f of the stated error\n", n_off,
                  sqrt(off2 / n_off), worst);
    assert_true(sqrt(off2 / n_off) <= 1.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_within_the_stated_error, print_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
