/* tests/unit/sim_rounds.c -- a graph that changes by round (base:K), in a simulated cluster: which
 * pairs mix with which weight, the exact mean after a pass, and deaths. */
#include "sim_rig.h"

#include "topology/round_schedule.h"

enum { SECOND = 1000 * 1000 };

/* ---- round by round ---- */

/* Computes `x_i += sum of w_ij (x_j - x_i)` over the edges of one round, in the order of the
 * edges. */
static void mix_round(const struct round_schedule *r, uint32_t round, size_t dim, float *x,
                      float *before)
{
    memcpy(before, x, r->n * dim * sizeof *x);
    for (size_t i = r->first[round]; i < r->first[round + 1]; i++) {
        const struct round_schedule_edge *e = &r->edge[i];
        float w = (float)round_schedule_weight(e);
        for (size_t k = 0; k < dim; k++) {
            float d = before[e->b * dim + k] - before[e->a * dim + k];
            x[e->a * dim + k] += w * d;
            x[e->b * dim + k] -= w * d;
        }
    }
}

/* Checks that a run with codec none gives the same models as local steps followed by the mixing
 * matrices of the schedule, in the order of its rounds. */
static void same_as_matrices(const char *topology, uint32_t n, uint64_t rounds)
{
    struct rig r;
    struct round_schedule rota;
    rig_init(&r, n, 64, topology, "none", 0);
    r.eta = 0.1f;
    r.config.run.rounds = rounds;
    r.config.run.final_drift = 0;
    rig_run(&r, UINT64_MAX);
    assert_int_equal(round_schedule_build(&rota, topology, n, r.config.run.seed), 0);
    float *x = calloc(2 * n * r.dim, sizeof *x);
    for (uint64_t round = 0; round < rounds; round++) {
        for (uint32_t i = 0; i < n; i++) {
            struct rig_peer p = {.rig = &r, .index = i};
            struct trainer_report report;
            rig_steps(&p, x + i * r.dim, round, 1, &report);
        }
        /* The schedule of pairs starts again in the consensus phase. */
        uint64_t turn = round + 1 < rounds ? round : 0;
        mix_round(&rota, (uint32_t)(turn % rota.n_rounds), r.dim, x, x + n * r.dim);
    }
    double worst = 0;
    for (uint32_t i = 0; i < n; i++)
        for (size_t k = 0; k < r.dim; k++)
            worst = fmax(worst, fabs((double)rig_model(&r, i)[k] - (double)x[i * r.dim + k]));
    if (!(worst <= 2e-5))
        fail_msg("%s of %u: differs by %g", topology, n, worst);
    free(x);
    round_schedule_close(&rota);
    rig_close(&r);
}

static void test_matrices(void **state)
{
    (void)state;
    same_as_matrices("base:1", 8, 30);
    same_as_matrices("base:1", 7, 40);
    same_as_matrices("base:2", 11, 40);
    same_as_matrices("base:3", 5, 23);
    same_as_matrices("base:1", 2, 9);
}

/* ---- a pass ---- */

/* In round 0 each model jumps to its own optimum, and no model is trained. After an exact averaging
 * pass, only rounding errors may be left. */
static void exact_after_a_pass(const char *topology, uint32_t n, uint32_t n_rounds)
{
    struct rig r;
    rig_init(&r, n, 200, topology, "none", 0);
    r.config.run.rounds = n_rounds + 3;
    rig_recording(&r);
    rig_run(&r, UINT64_MAX);
    double first = r.error2[1], last = r.error2[n_rounds], before = r.error2[n_rounds - 1];
    if (!(last <= 1e-12 * first) || !(before > 1e-6 * first))
        fail_msg("%s of %u: %g, after a pass %g, a round before %g", topology, n, first, last,
                 before);
    assert_true(rig_mean_error(&r) < 1e-6);
    rig_close(&r);
}

static void test_a_pass_is_exact(void **state)
{
    (void)state;
    exact_after_a_pass("base:1", 8, 3);
    exact_after_a_pass("base:1", 6, 4);
    exact_after_a_pass("base:1", 25, 9);
    exact_after_a_pass("base:2", 25, 6);
    exact_after_a_pass("base:4", 25, 2);
}

/* The mean of all models must stay the same for every codec and every order of pairs. */
static void keeps_mean(const char *topology, uint32_t n, const char *compress)
{
    struct rig r;
    rig_init(&r, n, 500, topology, compress, 0);
    r.config.run.final_drift = 1e-4;
    r.config.run.rounds = 30;
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-4);
    if (!(rig_mean_error(&r) < 1e-5))
        fail_msg("%s of %u, %s: the mean moved by %g", topology, n, compress, rig_mean_error(&r));
    print_message("%s of %u, %s: %d rounds of the consensus phase\n", topology, n, compress,
                  (int)rig_progress(&r, 0).settle_rounds);
    rig_close(&r);
}

static void test_mean(void **state)
{
    (void)state;
    keeps_mean("base:1", 9, "qsgd:4");
    keeps_mean("base:2", 16, "qsgd:4");
    keeps_mean("base:1", 5, "fp16");
}

/* ---- running statistics ---- */

static void test_statistics(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r, 6, 200, "base:1", "qsgd:4", 0);
    rig_with_statistics(&r, 400, 40, 1);
    r.config.run.final_drift = 1e-3;
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-3);
    double worst = 0;
    for (size_t k = r.dim; k < rig_floats(&r); k++)
        for (uint32_t i = 1; i < 6; i++)
            worst =
                fmax(worst, fabs((double)rig_model(&r, i)[k] / (double)rig_model(&r, 0)[k] - 1));
    if (!(worst < 0.05))
        fail_msg("statistics are apart by %g", worst);
    rig_close(&r);
}

/* ---- faults ---- */

/* If a peer dies, the others must make an exact averaging pass over the live members. */
static void test_a_member_dies(void **state)
{
    (void)state;
    for (uint32_t victim = 0; victim < 7; victim += 3) {
        struct rig r;
        rig_init(&r, 7, 300, "base:1", "qsgd:4", 0);
        r.eta = 0.05f;
        r.noise = 0.3f;
        r.config.step_us = 50 * 1000;
        r.config.run.rounds = 600;
        r.config.run.final_drift = 1e-3;
        r.config.run.min_peers = 7;
        rig_open(&r);
        while (sim_now_us(r.world) < 5 * SECOND && sim_step(r.world))
            ;
        sim_kill(r.world, victim);
        rig_run(&r, UINT64_MAX);
        rig_ended_well(&r, 1e-3);
        rig_close(&r);
    }
}

/* Sessions break all the time. Each exchange must be done once or not at all, and no exchange may
 * stop the schedule of pairs. */
static void test_cuts(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r, 9, 300, "base:2", "none", 0);
    r.config.run.rounds = 200;
    r.config.run.final_drift = 1e-4;
    r.config.cut_rate = 0.002;
    r.config.jitter_us = 2000;
    rig_run(&r, UINT64_MAX);
    rig_ended_well(&r, 1e-4);
    if (!(rig_mean_error(&r) < 1e-5))
        fail_msg("the mean moved by %g", rig_mean_error(&r));
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matrices),      cmocka_unit_test(test_a_pass_is_exact),
        cmocka_unit_test(test_mean),          cmocka_unit_test(test_statistics),
        cmocka_unit_test(test_a_member_dies), cmocka_unit_test(test_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
