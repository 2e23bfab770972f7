/* tests/unit/sim_choco.c -- compares simulated Edge-CHOCO (replicas per edge) with textbook CHOCO,
 * and tests both under faults. */
#include "sim_rig.h"

/* Textbook CHOCO-SGD (Koloskova, Stich, Jaggi 2019, algorithm 2): each peer has one x_hat, which
 * all peers know. Only the compressor is shared with the tested code. */
struct textbook
{
    uint32_t n;
    size_t dim;
    double gamma;
    double *w; /* Mixing weights: n x n, with a zero diagonal. */
    float *x, *x_hat;
    struct compress *q;
    double loss_rate; /* Probability that a neighbour misses a delta, in the textbook version. */
    /* n x n x dim: peer i's copy of x_hat_j, without the deltas that peer i missed. */
    float *copy;
};

static void textbook_init(struct textbook *t, const struct rig *r)
{
    const struct run *run = &r->config.run;
    struct graph g;
    *t = (struct textbook){.n = r->config.n_peers, .dim = r->dim, .gamma = run->gamma};
    assert_int_equal(compress_open(&t->q, run->compress, r->segment, 1), 0);
    assert_int_equal(graph_build(&g, run->topology, t->n, run->seed), 0);
    t->w = calloc(t->n * t->n, sizeof *t->w);
    t->x = calloc(t->n * t->dim, sizeof *t->x);
    t->x_hat = calloc(t->n * t->dim, sizeof *t->x_hat);
    t->copy = calloc((size_t)t->n * t->n * t->dim, sizeof *t->copy);
    for (uint32_t i = 0; i < t->n; i++)
        for (uint32_t k = g.first[i]; k < g.first[i + 1]; k++) {
            uint32_t j = g.neighbour[k];
            uint32_t di = graph_degree(&g, i), dj = graph_degree(&g, j);
            t->w[i * t->n + j] = 1.0 / (1 + (di > dj ? di : dj));
        }
    graph_close(&g);
}

static void textbook_close(struct textbook *t)
{
    compress_close(t->q);
    free(t->w);
    free(t->x);
    free(t->x_hat);
    free(t->copy);
}

/* Lets each peer send the compressed difference between its model and its replica. */
static void textbook_say(struct textbook *t, struct rng *rng)
{
    uint8_t *msg = malloc(compress_bound(t->q));
    size_t len;
    struct compress_stat stat;
    for (uint32_t j = 0; j < t->n; j++) {
        float *x_hat = t->x_hat + j * t->dim;
        struct compress_input in = {.draw = 1, .x = t->x + j * t->dim, .x_hat = x_hat};
        assert_int_equal(compress_encode(t->q, &in, msg, &len, &stat), 0);
        compress_apply(t->q, msg, len, x_hat);
        for (uint32_t i = 0; i < t->n; i++)
            if (i == j || rng_unit(rng) >= t->loss_rate)
                compress_apply(t->q, msg, len, t->copy + (i * t->n + j) * t->dim);
    }
    free(msg);
}

static void textbook_mix(struct textbook *t)
{
    for (uint32_t i = 0; i < t->n; i++)
        for (uint32_t j = 0; j < t->n; j++) {
            double c = t->gamma * t->w[i * t->n + j];
            const float *own = t->copy + (i * t->n + i) * t->dim;
            const float *other = t->copy + (i * t->n + j) * t->dim;
            for (size_t k = 0; k < t->dim && c > 0; k++)
                t->x[i * t->dim + k] += (float)c * (other[k] - own[k]);
        }
}

static void textbook_steps(struct textbook *t, struct rig *r, uint64_t round)
{
    for (uint32_t i = 0; i < t->n; i++) {
        struct rig_peer p = {.rig = r, .index = i};
        struct trainer_report report;
        rig_steps(&p, t->x + i * t->dim, round, r->config.run.local_steps, &report);
    }
}

/* Compares a run with textbook CHOCO-SGD. With --overlap 1, deltas describe the models before the
 * local steps (delayed mixing). */
static void same_as_textbook(const char *topology, const char *compress, double gamma, float eta,
                             uint32_t overlap)
{
    struct rig r;
    struct textbook t;
    struct rng rng = rng_stream(3);
    rig_init(&r, 8, 300, topology, compress, gamma);
    r.eta = eta;
    r.config.run.rounds = 80;
    r.config.run.overlap = overlap;
    r.config.run.local_steps = 1 + 2 * overlap;
    rig_run(&r, UINT64_MAX);
    textbook_init(&t, &r);
    for (uint64_t round = 0; round < r.config.run.rounds; round++) {
        if (overlap)
            textbook_say(&t, &rng);
        textbook_steps(&t, &r, round);
        if (!overlap)
            textbook_say(&t, &rng);
        textbook_mix(&t);
    }
    double worst = 0;
    for (uint32_t i = 0; i < t.n; i++)
        for (size_t k = 0; k < t.dim; k++) {
            double e = fabs((double)rig_model(&r, i)[k] - (double)t.x[i * t.dim + k]);
            if (!(e <= worst))
                worst = e;
        }
    if (!(worst <= 2e-5))
        fail_msg("%s %s, --overlap %u: differs by %g", topology, compress, overlap, worst);
    textbook_close(&t);
    rig_close(&r);
}

static void test_textbook(void **state)
{
    (void)state;
    for (uint32_t overlap = 0; overlap < 2; overlap++) {
        same_as_textbook("ring", "none", 1.0, 0.05f, overlap);
        same_as_textbook("ring", "topk:0.05", 0.1, 0.05f, overlap);
        same_as_textbook("torus", "qsgd:4", 0.8, 0.02f, overlap);
        same_as_textbook("edges:0-1,0-2,0-3,0-4,0-5,0-6,0-7", "topk:0.1", 0.3, 0, overlap);
    }
}

/* Returns the first round at which the squared error is at most 1e-6 times the initial one. *last:
 * squared error at the end, divided by the initial one. */
static uint64_t rounds_to_1e6(const char *compress, double gamma, uint64_t most, double *last)
{
    struct rig r;
    rig_init(&r, 8, 2000, "ring", compress, gamma);
    r.config.run.rounds = most + 2;
    rig_recording(&r);
    rig_run(&r, UINT64_MAX);
    double first = rig_error2(r.c, 8, r.dim);
    uint64_t t = 1;
    while (t < r.n_errors && !(r.error2[t] <= 1e-6 * first))
        t++;
    *last = r.n_errors > 0 ? r.error2[r.n_errors - 1] / first : (double)NAN;
    rig_close(&r);
    return t;
}

/* The table has the number of rounds until the squared error is 1e-6 times the initial one, on a
 * ring of 8, with d = 2000, x ~ N(0, 1) and x_hat = 0. An independent simulation of the textbook
 * form gave these numbers. */
static void test_table(void **state)
{
    static const struct
    {
        const char *compress;
        double gamma;
        uint64_t rounds;
    } row[] = {
        {"none", 1.25, 23},
        {"sign:0", 0.98, 55},
        {"qsgd:6:0:l2,levels=16,round=sr,scale=inv1w", 0.378, 70},
        {"topk:0.1", 0.298, 99},
        {"topk:0.01", 0.0347, 904},
        {"randk:0.1", 0.09, 408},
    };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        double last;
        uint64_t t = rounds_to_1e6(row[i].compress, row[i].gamma, row[i].rounds * 5 / 4, &last);
        print_message("%-44s gamma %-6g %4llu rounds, expected %llu\n", row[i].compress,
                      row[i].gamma, (unsigned long long)t, (unsigned long long)row[i].rounds);
        double ratio = (double)t / (double)row[i].rounds;
        if (!(ratio >= 0.9 && ratio <= 1.1))
            fail_msg("%s: %llu rounds", row[i].compress, (unsigned long long)t);
    }
}

/* Unscaled QSGD of a whole vector is no contraction, so x_hat must grow without bound. */
static void test_must_diverge(void **state)
{
    double last;
    (void)state;
    uint64_t t = rounds_to_1e6("qsgd:5:0:l2,round=sr,scale=raw", 0.34, 44, &last);
    print_message("raw QSGD: error times %g by round %llu\n", last, (unsigned long long)t - 1);
    /* The error must not fall below 1e-6 of its initial value within the first 20 rounds. */
    assert_true(t > 20);
    assert_true(last >= 1e4);
}

static void test_gamma_auto(void **state)
{
    static const struct
    {
        const char *compress;
        /* Largest allowed number of rounds until the squared error is 1e-6 times the initial one: a
         * quarter more than was measured. */
        uint64_t most;
    } row[] = {{"qsgd:4", 36},
               {"sign:64", 61},
               {"topk:0.1", 124},
               {"topk:0.01", 1100},
               {"randk:0.1", 484}};
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        double last;
        uint64_t t = rounds_to_1e6(row[i].compress, 0, row[i].most, &last);
        print_message("%-10s gamma auto %llu rounds, at most %llu\n", row[i].compress,
                      (unsigned long long)t, (unsigned long long)row[i].most);
        assert_true(t <= row[i].most);
    }
}

/* Last warning of each peer that its distance to a neighbour grows every round. */
static char told[2][NODE_NOTE_MAX];
static uint32_t n_told[2];

static void note_warning(void *self, uint32_t peer, const struct node_note *note)
{
    (void)self;
    if (note->level != NOTE_WARNING || strstr(note->text, "grows every round") == NULL)
        return;
    n_told[peer]++;
    snprintf(told[peer], sizeof told[peer], "%s", note->text);
}

/* The local steps of two peers drive their models apart. Each peer must get a warning that names
 * the new gamma, and both ends must use the same gamma. */
static void runs_away(double gamma, const char *text)
{
    struct rig r;
    struct node_progress p[2];
    rig_init(&r, 2, 400, "ring", "topk:0.01", gamma);
    for (size_t k = 0; k < r.dim; k++)
        r.c[r.dim + k] = -r.c[k];
    r.eta = -0.2f;
    r.config.run.rounds = 60;
    r.config.note = note_warning;
    memset(n_told, 0, sizeof n_told);
    rig_run(&r, UINT64_MAX);
    for (uint32_t i = 0; i < 2; i++) {
        node_progress(sim_node(r.world, i), &p[i]);
        assert_int_equal(p[i].round, 60);
        /* Within 60 rounds each peer is warned several times of the growing distance, but not in
         * every round. */
        assert_true(n_told[i] > 0 && n_told[i] < 10);
        if (strstr(told[i], text) == NULL || strstr(told[i], i ? "peer-0" : "peer-1") == NULL)
            fail_msg("'%s' should have '%s'", told[i], text);
    }
    print_message("%s\n", told[0]);
    assert_int_equal(n_told[0], n_told[1]);
    assert_memory_equal(&p[0].gamma, &p[1].gamma, sizeof p[0].gamma);
    assert_true(gamma == 0 || p[0].gamma == gamma);
    rig_close(&r);
}

static void test_runaway(void **state)
{
    (void)state;
    runs_away(0, "(gamma) is lowered to 0.0");
    runs_away(0.05, "(gamma) is fixed at 0.05");
}

/* In 30 % of the exchanges a delta is lost, and its session with it. The mean must be kept. */
static void test_aborted_exchanges(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r, 8, 60, "ring", "topk:0.1", 0.2);
    r.config.run.rounds = 10000;
    r.config.step_us = 100 * 1000;
    r.config.cut_rate = 1 - sqrt(0.7);
    rig_run(&r, UINT64_MAX);
    struct consensus c;
    double mean = rig_mean_error(&r);
    sim_drift(r.world, &c);
    uint64_t exchanges = 0;
    for (uint32_t i = 0; i < 8; i++) {
        struct node_progress p;
        int code;
        node_progress(sim_node(r.world, i), &p);
        assert_true(sim_ended(r.world, i, &code) && code == 0);
        exchanges += p.exchanges;
    }
    print_message("%llu exchanges committed of %u; mean moved by %.2g, "
                  "relative drift %.2g\n",
                  (unsigned long long)exchanges / 2, 8 * 10000, mean, c.trained.relative);
    assert_true(exchanges / 2 > 20000);
    assert_true(mean <= 1e-5);
    assert_true(c.trained.relative <= 1e-4);
    rig_close(&r);
}

/* In textbook CHOCO, lost deltas permanently change the mean of the models, even if only 1 % of the
 * deltas are lost. */
static void test_textbook_breaks(void **state)
{
    struct rig r;
    struct textbook t;
    struct rng rng = rng_stream(5);
    (void)state;
    rig_init(&r, 8, 60, "ring", "topk:0.1", 0.2);
    textbook_init(&t, &r);
    t.loss_rate = 0.01;
    memcpy(t.x, r.c, t.n * t.dim * sizeof *t.x);
    for (int round = 0; round < 10000; round++) {
        textbook_say(&t, &rng);
        textbook_mix(&t);
    }
    double e2 = 0, m2 = 0;
    for (size_t k = 0; k < t.dim; k++) {
        double x = 0, c = 0;
        for (uint32_t i = 0; i < t.n; i++) {
            x += (double)t.x[i * t.dim + k] / t.n;
            c += (double)r.c[i * t.dim + k] / t.n;
        }
        e2 += (x - c) * (x - c);
        m2 += c * c;
    }
    print_message("textbook with 1 %% loss: mean moved by %.2g of itself\n", sqrt(e2 / m2));
    assert_false(sqrt(e2 / m2) <= 1e-2);
    textbook_close(&t);
    rig_close(&r);
}

static void test_same_seed_same_run(void **state)
{
    uint64_t trace[2];
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct rig r;
        rig_init(&r, 6, 40, "ring", "qsgd:4", 0);
        r.config.jitter_us = 500;
        r.config.cut_rate = 0.02;
        rig_run(&r, UINT64_MAX);
        trace[k] = sim_trace(r.world);
        rig_close(&r);
    }
    assert_int_equal(trace[0], trace[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_textbook),        cmocka_unit_test(test_table),
        cmocka_unit_test(test_must_diverge),    cmocka_unit_test(test_gamma_auto),
        cmocka_unit_test(test_runaway),         cmocka_unit_test(test_aborted_exchanges),
        cmocka_unit_test(test_textbook_breaks), cmocka_unit_test(test_same_seed_same_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
