/* tests/unit/sim_small.c -- the smallest clusters in simulated nodes: one peer, two peers, and a
 * torus with a side of two, where a neighbour must not be counted twice. */
#include "gossip/mixers/mixer.h"
#include "sim_rig.h"

enum {
    DIM = 40,
    ROUNDS = 12,
    MOST = 1000 * 1000 /* Largest number of simulated events. No run of this file reaches it. */
};

static void rig_small(struct rig *r, uint32_t n, const char *topology, const char *mixer,
                      const char *compress)
{
    rig_init(r, n, DIM, topology, compress, 1);
    while (mixer_all[r->config.run.mixer] != NULL
           && strcmp(mixer_all[r->config.run.mixer]->name, mixer) != 0)
        r->config.run.mixer++;
    assert_non_null(mixer_all[r->config.run.mixer]);
    r->config.run.rounds = ROUNDS;
    r->config.run.final_drift = 1e-3;
    rig_recording(r);
}

/* A single peer must exchange with no other and end normally, with every mixer but sma. (With sma,
 * the centre, which has momentum, pulls the peer's model.) */
static void test_one(void **state)
{
    static const char *const mixer[] = {"choco", "average", "dpsgd", "allreduce", "ps"};
    (void)state;
    for (size_t i = 0; i < sizeof mixer / sizeof *mixer; i++) {
        struct rig r;
        rig_small(&r, 1, "ring", mixer[i], "none");
        rig_run(&r, MOST);
        rig_ended_well(&r, 0);
        assert_memory_equal(rig_model(&r, 0), r.c, DIM * sizeof *r.c);
        rig_close(&r);
    }
}

/* Checks the distance of the models from their mean in each round t. This distance must equal the
 * distance of the vectors `W^t c` from their mean, where W is the mixing matrix and c has the
 * optima. W gives the same weight to each neighbour in a grid of rows x cols. */
static void as_by_hand(const char *topology, uint32_t rows, uint32_t cols, const char *mixer)
{
    struct rig r;
    float x[8 * DIM], mixed[8 * DIM];
    uint32_t n = rows * cols, d = (cols == 2 ? 1u : 2u) + rows - 1;
    rig_small(&r, n, topology, mixer, "none");
    rig_run(&r, MOST);
    rig_ended_well(&r, 1e-3);
    assert_true(rig_mean_error(&r) <= 1e-5);
    memcpy(x, r.c, n * DIM * sizeof *x);
    for (uint64_t t = 1; t < ROUNDS; t++) {
        for (uint32_t i = 0; i < n; i++)
            for (size_t k = 0; k < DIM; k++) {
                uint32_t row = i / cols * cols, next = row + (i + 1) % cols;
                uint32_t last = row + (i + cols - 1) % cols, over = (i + cols) % n;
                float sum = x[next * DIM + k] + (last != next ? x[last * DIM + k] : 0)
                            + (rows == 2 ? x[over * DIM + k] : 0) + x[i * DIM + k];
                mixed[i * DIM + k] = sum / (float)(d + 1);
            }
        memcpy(x, mixed, n * DIM * sizeof *x);
        double want = rig_error2(x, n, DIM);
        if (!(fabs(r.error2[t] - want) <= 1e-4 * want + 1e-9))
            fail_msg("%s, %s, round %d: squared error %g, expected %g", topology, mixer, (int)t,
                     r.error2[t], want);
    }
    rig_close(&r);
}

static void test_few(void **state)
{
    static const char *const mixer[] = {"choco", "dpsgd"};
    (void)state;
    for (size_t i = 0; i < sizeof mixer / sizeof *mixer; i++) {
        as_by_hand("ring", 1, 2, mixer[i]);
        as_by_hand("torus", 1, 2, mixer[i]);
        as_by_hand("ring", 1, 3, mixer[i]);
        as_by_hand("ring", 1, 6, mixer[i]);
        as_by_hand("torus:2x2", 2, 2, mixer[i]);
        as_by_hand("torus:2x4", 2, 4, mixer[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one),
        cmocka_unit_test(test_few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
