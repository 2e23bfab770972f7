/* tests/unit/sim_guest.c -- a plug-in mixer that this file defines: plain averaging with
 * neighbours.
 *
 * D-PSGD (Lian et al. 2017) computes x += sum over edges of w (x_j - x_i). Each delta is the
 * sender's whole model, uncompressed. The mixer is added through the table alone: this file has its
 * own mixer_all[], so that neither choco.c nor average.c is in the program. The node, the simulator
 * and struct mixing are unchanged. */
#include "gossip/mixers/mixing.h"
#include "sim_rig.h"

#include <errno.h>

struct neighbours
{
    float *zero; /* `dim` zeros: a whole model is sent as its difference from zero. */
    uint64_t n_mixed;
};

/* n_open: number of open instances of this mixer. n_mixed: number of times that they mixed models.
 * Both are sums over all peers, and show that the run used this mixer. */
static uint64_t n_open, n_mixed;

static int open_neighbours(struct mixing *m, const struct mixing_config *config)
{
    struct neighbours *s = m->state = calloc(1, sizeof *s);
    (void)config;
    n_open++;
    if (s != NULL)
        s->zero = calloc(m->dim, sizeof *s->zero);
    return s != NULL && s->zero != NULL ? 0 : -ENOMEM;
}

static void close_neighbours(struct mixing *m)
{
    struct neighbours *s = m->state;
    n_open--;
    n_mixed += s->n_mixed;
    free(s->zero);
    free(s);
}

/* Plans every delta with the codec of the run. Each delta is a whole model, so no phase needs
 * another codec. */
static uint32_t plan(struct mixing *m, const struct mixing_task *t, const struct mixing_moment *now)
{
    (void)m, (void)t, (void)now;
    return DELTA_RUN;
}

static bool valid(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n)
{
    return codec == DELTA_RUN && mixing_decodes(m, codec, message, n);
}

/* Sets the replica of the sender to the model in its message. */
static void apply(const struct mixing *m, uint32_t codec, const uint8_t *message, size_t n,
                  float *replica)
{
    memset(replica, 0, m->dim * sizeof *replica);
    mixing_add(m, codec, message, n, replica);
}

static void mix(struct mixing *m)
{
    struct neighbours *s = m->state;
    size_t n = 0;
    for (struct mixing_task *t = m->task; t < m->task + m->n_tasks; t++)
        if (t->commit)
            m->term[n++] = (struct correction){
                .a = t->replica->v, .b = t->edge->b, .coefficient = (float)t->w, .task = t};
    correction_pass(m->x, m->dim, m->term, n);
    m->local2 = n > 0 ? 0 : m->local2;
    for (size_t i = 0; i < n; i++)
        m->local2 += m->term[i].d2;
    s->n_mixed += n > 0;
}

static void encode(struct mixing *m)
{
    const struct neighbours *s = m->state;
    for (struct mixing_task *t = m->task; t < m->task + m->n_tasks; t++)
        if (t->encodes)
            mixing_put(m, t, m->x, s->zero);
}

static const struct mixer mixer_neighbours = {.name = "neighbours",
                                              .open = open_neighbours,
                                              .close = close_neighbours,
                                              .plan = plan,
                                              .valid = valid,
                                              .apply = apply,
                                              .mix = mix,
                                              .encode = encode};

/* Replaces the table of all mixers in gossip/mixers/mixer.c by one that has this mixer only. */
const struct mixer *const mixer_all[] = {&mixer_neighbours, NULL};

/* ---- through the node ---- */

enum { PEERS = 8, DIM = 200, ROUNDS = 60 };

static void rig_neighbours(struct rig *r, const char *topology)
{
    rig_init(r, PEERS, DIM, topology, "none", 0);
    r->config.run.rounds = ROUNDS;
    r->config.run.final_drift = 1e-3;
    n_open = n_mixed = 0;
}

/* Checks that every peer ended well, and that the rule for CHOCO's step size was not used. */
static void all_ended_well(const struct rig *r)
{
    rig_ended_well(r, r->config.run.final_drift);
    for (uint32_t i = 0; i < PEERS; i++)
        assert_true(isnan(rig_progress(r, i).gamma));
}

/* Computes `x <- W x` in double precision for a ring, where each new model is a third of the own
 * model and of each neighbour's. */
static void mix_ring(double *x)
{
    static double was[PEERS * DIM];
    memcpy(was, x, sizeof was);
    for (size_t i = 0; i < PEERS; i++)
        for (size_t k = 0; k < DIM; k++) {
            double left = was[(i + PEERS - 1) % PEERS * DIM + k];
            double right = was[(i + 1) % PEERS * DIM + k];
            x[i * DIM + k] = (was[i * DIM + k] + left + right) / 3;
        }
}

static double error2_of(const double *x)
{
    double sum = 0;
    for (size_t k = 0; k < DIM; k++) {
        double mean = 0;
        for (size_t i = 0; i < PEERS; i++)
            mean += x[i * DIM + k] / PEERS;
        for (size_t i = 0; i < PEERS; i++)
            sum += (x[i * DIM + k] - mean) * (x[i * DIM + k] - mean);
    }
    return sum;
}

/* Each peer sets its model to its own vector in round 0. From then on the spread in each round must
 * follow the mixing matrix, up to float rounding, and the mean must be kept. */
static void test_ring_is_its_matrix(void **state)
{
    static double x[PEERS * DIM];
    struct rig r;
    (void)state;
    rig_neighbours(&r, "ring");
    rig_recording(&r);
    rig_run(&r, UINT64_MAX);
    all_ended_well(&r);
    for (size_t k = 0; k < PEERS * DIM; k++)
        x[k] = (double)r.c[k];
    assert_int_equal(r.n_errors, ROUNDS);
    double first = error2_of(x);
    for (uint64_t t = 1; t < ROUNDS; t++) {
        mix_ring(x);
        double want = error2_of(x);
        if (!(fabs(r.error2[t] - want) <= 1e-5 * want + 1e-12 * first))
            fail_msg("round %d: squared error %g, expected %g", (int)t, r.error2[t], want);
    }
    assert_true(r.error2[ROUNDS - 1] <= 1e-9 * first);
    assert_true(rig_mean_error(&r) <= 1e-6);
    rig_close(&r);
    assert_int_equal(n_open, 0);
    assert_true(n_mixed >= PEERS * (ROUNDS - 1));
}

/* Lost sessions make edges reset or resend deltas, while gradient steps change the models. struct
 * mixing does each exchange at both ends or at neither. The mean must therefore be kept with this
 * plug-in mixer, too. */
static void test_cut_sessions(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct rig r;
        rig_neighbours(&r, "torus");
        r.eta = 0.05f;
        r.config.seed = seed;
        r.config.cut_rate = 0.05;
        r.config.jitter_us = 20 * 1000;
        r.config.step_us = 50 * 1000;
        r.config.run.rounds = 300;
        rig_run(&r, UINT64_MAX);
        all_ended_well(&r);
        double error = rig_mean_error(&r);
        if (!(error <= 0.05))
            fail_msg("seed %d: the mean is off by %g", (int)seed, error);
        rig_close(&r);
        assert_int_equal(n_open, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring_is_its_matrix),
        cmocka_unit_test(test_cut_sessions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
