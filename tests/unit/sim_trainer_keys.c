/* tests/unit/sim_trainer_keys.c -- a plug-in trainer with its own run keys, in a simulated cluster.
 *
 * Peer i minimises curvature |x - c_i|^2 / 2 by noisy gradient steps. The trainer adds --curvature,
 * --noise, --start and --reach. peer/run must treat these flags as it treats --model or --lr of the
 * SGD trainer, although it knows none of them. */
#include "nn/math/rng.h"
#include "peer/run/options.h"
#include "peer/sgd/sgd_keys.h"
#include "peer/sim/world.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- The trainer's keys. ---- */

enum start { START_ZERO, START_FAR };

struct quadratic
{
    double curvature, noise, reach;
    enum start start;
};

static const struct run_trainer quadratic_keys;

static const struct quadratic *quadratic(const struct run *r)
{
    assert_ptr_equal(r->trainer, &quadratic_keys);
    return (const void *)r->own;
}

/* Resolves the value `auto` of --noise to a tenth of the curvature. */
static int resolve_noise(const struct run *r, const struct run_flags *f, char value[RUN_VALUE_MAX],
                         char why[RUN_ERROR_MAX])
{
    (void)f, (void)why;
    snprintf(value, RUN_VALUE_MAX, "%g", quadratic(r)->curvature / 10);
    return 0;
}

static bool starts_at_zero(const struct run *r)
{
    return quadratic(r)->start == START_ZERO;
}

static int check(const struct run *r, char why[RUN_ERROR_MAX])
{
    const struct quadratic *q = quadratic(r);
    if (q->start == START_ZERO || q->curvature >= 0.1)
        return 0;
    snprintf(why, RUN_ERROR_MAX, "--curvature %g: too flat to come from --start far", q->curvature);
    return -EINVAL;
}

#define FIELD(f) RUN_OWN_FIELD(struct quadratic, f)

static const struct run_key keys[] = {{.name = "curvature",
                                       .kind = RUN_REAL,
                                       .fallback = "0.5",
                                       .help = "of everybody's bowl",
                                       .low = 0.001,
                                       .high = 1,
                                       FIELD(curvature)},
                                      {.name = "noise",
                                       .kind = RUN_REAL,
                                       .fallback = "auto",
                                       .help = "of a gradient",
                                       .word = "auto",
                                       .resolve = resolve_noise,
                                       .high = 10,
                                       FIELD(noise)},
                                      {.name = "start",
                                       .kind = RUN_CHOICE,
                                       .fallback = "zero",
                                       .help = "where x begins",
                                       .choices = "zero|far",
                                       FIELD(start)},
                                      {.name = "reach",
                                       .kind = RUN_REAL,
                                       .fallback = "100",
                                       .help = "how far that is",
                                       .high = 1e6,
                                       .useless = starts_at_zero,
                                       .of = "start",
                                       .why = "only with --start far",
                                       FIELD(reach)},
                                      {.name = NULL}};

static const struct run_trainer quadratic_keys = {.keys = keys, .check = check};

/* ---- From a command line to flags. ---- */

static const struct option_row no_rows[] = {{.name = NULL}};
static const struct command bowl = {.name = "bowl",
                                    .summary = "trains a bowl",
                                    .usage = "[options]",
                                    .rows = no_rows,
                                    .takes_run_flags = true,
                                    .trainer = &quadratic_keys};
static const struct options_io no_world;
static char error[OPTIONS_ERROR_MAX];
static char why[RUN_ERROR_MAX];

/* Parses command-line words, which end with NULL. Returns the result of options_parse(). */
static int parse(struct run_flags *flags, const char *const *words)
{
    static struct options o;
    static char word[16][64];
    char *argv[17];
    int argc = 0;
    for (argv[argc++] = word[0]; words[argc - 1] != NULL; argc++) {
        snprintf(word[argc], sizeof word[argc], "%s", words[argc - 1]);
        argv[argc] = word[argc];
    }
    argv[argc] = NULL;
    int err = options_parse(&o, &bowl, argc, argv, &no_world, error);
    *flags = o.run;
    return err;
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct run run_of(const char *const *words)
{
    struct run_flags f;
    struct run r;
    if (parse(&f, words) != 0)
        fail_msg("%s", error);
    if (run_from_flags(&r, &f, why) != 0)
        fail_msg("%s", why);
    return r;
}

/* ---- The trainer, and a world of it. ---- */

enum { DIM = 300, PEERS = 4 };

struct world
{
    struct sim_config config;
    struct sim_world *sim;
    struct run_flags joining; /* Flags that are given to the last peer. */
    /* True: the last peer brings no run description and joins the run of the cluster. */
    bool joins;
    struct quadratic seen[PEERS + 1];
    uint64_t seed;
    struct bowl_of
    {
        struct world *world;
        uint32_t index;
    } member[PEERS + 1];
    char said[NODE_NOTE_MAX]; /* Text of the last error message. */
};

static float center(uint32_t peer, size_t k)
{
    return (float)peer + rng_unit_at(rng_key(1, RNG_TEST, 0, 0), k);
}

static void bowl_init(void *self, float *x)
{
    const struct bowl_of *m = self;
    const struct quadratic *q = &m->world->seen[m->index];
    for (size_t k = 0; k < DIM; k++)
        x[k] = q->start == START_FAR ? (float)q->reach : 0;
}

static void bowl_steps(void *self, float *x, uint64_t round, uint32_t n_steps,
                       struct trainer_report *report)
{
    const struct bowl_of *m = self;
    const struct quadratic *q = &m->world->seen[m->index];
    struct rng r = rng_stream(rng_key(m->world->seed, RNG_TEST, m->index, round));
    for (uint32_t s = 0; s < n_steps; s++)
        for (size_t k = 0; k < DIM; k++) {
            double slope = q->curvature * (double)(x[k] - center(m->index, k));
            x[k] -= 0.5f * (float)(slope + q->noise * rng_normal(&r));
        }
    *report = (struct trainer_report){.n_samples = 1};
}

static void bowl_evaluate(void *self, const float *x, uint64_t most, struct trainer_report *report)
{
    (void)self, (void)x, (void)most;
    *report = (struct trainer_report){.n_samples = 1};
}

static int make_trainer(void *self, uint32_t peer, const struct run *run, struct trainer *t,
                        char sentence[RUN_ERROR_MAX])
{
    static const struct segment x = {
        .name = "x", .n = DIM, .rows = 1, .cols = DIM, .n_dims = 1, .trained = true};
    struct world *w = self;
    (void)sentence;
    w->seen[peer] = *quadratic(run);
    w->seed = run->seed;
    *t = (struct trainer){.n_params = DIM,
                          .segments = &x,
                          .n_segments = 1,
                          .self = &w->member[peer],
                          .init = bowl_init,
                          .steps = bowl_steps,
                          .evaluate = bowl_evaluate};
    return 0;
}

static void configure(void *self, uint32_t peer, struct node_config *c)
{
    const struct world *w = self;
    if (peer + 1 < w->config.n_peers || !w->joins)
        return;
    c->found = false;
    c->flags = w->joining;
}

static void note(void *self, uint32_t peer, const struct node_note *n)
{
    struct world *w = self;
    (void)peer;
    if (n->level == NOTE_ERROR)
        snprintf(w->said, sizeof w->said, "%s", n->text);
}

/* Simulates to the end of the run, or for half a million events. */
static void simulate(struct world *w, struct run run, uint32_t n_peers)
{
    w->config = (struct sim_config){.n_peers = n_peers,
                                    .seed = 1,
                                    .run = run,
                                    .latency_us = 100,
                                    .step_us = 1000,
                                    .make_trainer = make_trainer,
                                    .configure = configure,
                                    .note = note,
                                    .self = w};
    for (uint32_t i = 0; i < n_peers; i++)
        w->member[i] = (struct bowl_of){w, i};
    assert_int_equal(sim_open(&w->sim, &w->config), 0);
    while (sim_events(w->sim) < 500000 && sim_step(w->sim))
        ;
}

/* ---- Tests. ---- */

static void its_keys_are_flags_help_and_text(void **state)
{
    (void)state;
    struct run r = run_of(WORDS("--curvature", "0.250", "--rounds=7", "--compress", "fp16"));
    char text[WIRE_RUN_MAX + 1];
    static char help[OPTIONS_HELP_MAX];
    assert_true(quadratic(&r)->curvature == 0.25 && quadratic(&r)->noise == 0.025);
    size_t n = run_text(&r, text);
    assert_string_equal(text, "centre-momentum=0.9\n"
                              "collective=ring\n"
                              "compress=fp16\n"
                              "curvature=0.25\n"
                              "drift-target=1\n"
                              "error-feedback=true\n"
                              "factor-masking=false\n"
                              "final-compress=fp16\n"
                              "final-drift=0.001\n"
                              "final-topology=same\n"
                              "gamma=auto\n"
                              "local-steps=1\n"
                              "min-peers=1\n"
                              "mixer=choco\n"
                              "noise=0.025\n"
                              "one-step-last=0\n"
                              "outer=none\n"
                              "overlap=0\n"
                              "policy=sync\n"
                              "post-local=0\n"
                              "pull=0\n"
                              "quorum=0.5\n"
                              "reach=100\n"
                              "rounds=7\n"
                              "seed=1\n"
                              "start=zero\n"
                              "tolerate=0\n"
                              "topology=ring\n"
                              "trigger=0\n");
    struct run back;
    assert_int_equal(run_from_text(&back, &quadratic_keys, text, n, why), 0);
    /* A run description with the keys of this trainer must be refused by another trainer and
     * without a trainer. */
    assert_int_equal(run_from_text(&back, &sgd_keys, text, n, why), -EINVAL);
    assert_string_equal(why, "--curvature: no such flag");
    assert_int_equal(run_from_text(&back, NULL, text, n, why), -EINVAL);
    options_help(&bowl, true, help);
    assert_non_null(strstr(help, "--curvature X"));
    assert_non_null(strstr(help, "HEARSAY_CURVATURE"));
    assert_non_null(strstr(help, "--topology SPEC"));
    assert_null(strstr(help, "--model"));
}

static void its_values_are_checked(void **state)
{
    (void)state;
    struct run_flags f;
    struct run r;
    assert_int_equal(parse(&f, WORDS("--curvature", "2")), -EINVAL);
    assert_string_equal(error, "--curvature: found '2', expected a number from 0.001 to 1");
    assert_int_equal(parse(&f, WORDS("--start", "near")), -EINVAL);
    assert_string_equal(error, "--start: found 'near', expected zero|far, did you mean far?");
    assert_int_equal(parse(&f, WORDS("--lr", "0.1")), -EINVAL);
    assert_string_equal(error, "unknown flag --lr");
    assert_int_equal(parse(&f, WORDS("--reach", "5")), 0);
    assert_int_equal(run_from_flags(&r, &f, why), -EINVAL);
    assert_string_equal(why, "--reach: only with --start far");
    assert_int_equal(parse(&f, WORDS("--curvature", "0.01", "--start", "far")), 0);
    assert_int_equal(run_from_flags(&r, &f, why), -EINVAL);
    assert_string_equal(why, "--curvature 0.01: too flat to come from --start far");
}

/* All peers must end near the mean of the optima, which is 1.5 above the optimum of peer 0. Their
 * trainers must receive the values that the flags give. */
static void a_cluster_trains_it(void **state)
{
    (void)state;
    static struct world w;
    struct run r = run_of(WORDS("--curvature=0.2", "--noise=0.01", "--start=far", "--reach=30",
                                "--rounds=200", "--min-peers=4", "--compress=qsgd:4"));
    simulate(&w, r, PEERS);
    for (uint32_t i = 0; i < PEERS; i++) {
        int exit_code = -1;
        const struct segment *s;
        size_t n, d;
        assert_true(sim_ended(w.sim, i, &exit_code) && exit_code == 0);
        assert_true(w.seen[i].curvature == 0.2 && w.seen[i].noise == 0.01);
        assert_true(w.seen[i].start == START_FAR && w.seen[i].reach == 30);
        const float *x = node_model(sim_node(w.sim, i), &s, &n, &d);
        for (size_t k = 0; k < DIM; k++)
            if (!(fabsf(x[k] - center(0, k) - 1.5f) < 0.1f))
                fail_msg("peer %u: x[%zu] = %g", i, k, (double)x[k]);
    }
    sim_close(w.sim);
}

/* A peer that is given some flags, but proposes no run, must join the run of the cluster. Flags
 * that contradict that run must end the peer with an error. */
static void flags_are_compared_at_joining(void **state)
{
    (void)state;
    static const struct
    {
        const char *words[4], *said;
    } joins[] = {
        {{"--curvature=0.50", "--noise=auto"}, ""},
        {{"--seed=1"}, ""},
        {{"--curvature=0.25"},
         "--curvature 0.25 contradicts the cluster's run, which has curvature=0.5"},
        {{"--noise=0"}, "--noise 0 contradicts the cluster's run, which has noise=0.05"},
        {{"--reach=7"}, "--reach: only with --start far, and the cluster's run has start=zero"},
    };
    for (size_t i = 0; i < sizeof joins / sizeof joins[0]; i++) {
        static struct world w;
        struct run r = run_of(WORDS("--rounds=20", "--min-peers=4", "--compress=qsgd:4"));
        int exit_code = -1;
        memset(&w, 0, sizeof w);
        w.joins = true;
        assert_int_equal(parse(&w.joining, joins[i].words), 0);
        simulate(&w, r, PEERS + 1);
        assert_true(sim_ended(w.sim, PEERS, &exit_code));
        assert_string_equal(w.said, joins[i].said);
        assert_int_equal(exit_code, joins[i].said[0] != '\0' ? 2 : 0);
        if (joins[i].said[0] == '\0')
            assert_true(w.seen[PEERS].curvature == 0.5 && w.seen[PEERS].noise == 0.05);
        assert_true(sim_ended(w.sim, 0, &exit_code) && exit_code == 0);
        sim_close(w.sim);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_keys_are_flags_help_and_text),
        cmocka_unit_test(its_values_are_checked),
        cmocka_unit_test(a_cluster_trains_it),
        cmocka_unit_test(flags_are_compared_at_joining),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
