/* tests/unit/sim_drift_faults.c -- compares every drift that a peer publishes with the exact one,
 * while deltas are lost and peers die.
 *
 * The exact drift is computed from the models of the round that the figure names. All models are
 * stored: in training before the local steps of a round, in the consensus phase after a job. If a
 * peer skipped a round, its next model counts. Without lock step, peers are at a round at different
 * times. The exact drift is then computed from the models at the time when the publishing peer was
 * at the round. */
#include "sim_rig.h"

/* With sanitizers this test takes five times as long, so only every other cut rate is tested. */

#ifdef HEARSAY_SANITIZED
enum { ROUNDS = 400, LAST = 400, STRIDE = 2 };
#else
enum { ROUNDS = 400, LAST = 400, STRIDE = 1 };
#endif

enum { SECOND = 1000 * 1000, DIM = 1500, DEPTH = ROUNDS + LAST };

struct film
{
    struct rig r;
    void (*steps)(void *self, float *x, uint64_t round, uint32_t n, struct trainer_report *report);
    float *state; /* Models per peer and round: n x DEPTH x DIM. */
    /* Per peer and round: time at which the model was stored. -1: the peer has no model of this
     * round. */
    int64_t *time;
    uint64_t *spoke; /* Per peer: round of the last drift that it published. UINT64_MAX: none. */
    float *seen;     /* Per peer: its model after the last event. */
    uint64_t *last;  /* Per peer: last stored round of the consensus phase. */
    bool *moved;     /* Per peer. True: the peer's model has changed during round `last`. */
    bool *dead;
    /* n_figures: number of published drifts that were compared with the exact drift. n_last: only
     * drifts of the consensus phase. */
    uint32_t n_figures, n_last;
    /* n_seen: number of published progress reports. n_null: number of those whose drift is not
     * known. */
    uint64_t n_seen, n_null;
    double worst, sum2, worst_relative, age;
    FILE *dump; /* File to which all compared drifts are written, to draw a picture. NULL: none. */
};

/* Record of the running test. The variable is global, because callbacks receive only the simulated
 * cluster (struct rig). */
static struct film *film;

static void keep(uint32_t peer, uint64_t round, const float *x)
{
    if (round >= DEPTH)
        return;
    size_t at = (size_t)peer * DEPTH + round;
    memcpy(film->state + at * DIM, x, DIM * sizeof *x);
    film->time[at] = sim_now_us(film->r.world);
}

static void film_steps(void *self, float *x, uint64_t round, uint32_t n_steps,
                       struct trainer_report *report)
{
    const struct rig_peer *p = self;
    keep(p->index, round, x);
    film->steps(self, x, round, n_steps, report);
}

static int film_trainer(void *self, uint32_t peer, const struct run *run, struct trainer *t,
                        char error[RUN_ERROR_MAX])
{
    int err = rig_trainer(self, peer, run, t, error);
    film->steps = t->steps;
    t->steps = film_steps;
    return err;
}

/* Returns the peer's model at `round` in lock step, or else at `time_us`. NULL: the peer had no
 * model. If the peer skipped the round, returns its model of the next round or, with `before`, of
 * the previous one. */
static const float *model_at(uint32_t peer, uint64_t round, int64_t time_us, bool before)
{
    const int64_t *time = film->time + (size_t)peer * DEPTH;
    uint64_t best = DEPTH;
    if (film->r.config.run.policy == RUN_SYNC)
        for (best = round; best < DEPTH && time[best] < 0;)
            /* Adding UINT64_MAX subtracts 1. Below 0, `best` wraps around to more than DEPTH, which
             * ends the loop. */
            best += before ? UINT64_MAX : 1;
    else
        for (uint64_t k = 0; k < DEPTH; k++)
            if (time[k] >= 0 && time[k] <= time_us && (best == DEPTH || time[k] >= time[best]))
                best = k;
    return best < DEPTH ? film->state + ((size_t)peer * DEPTH + best) * DIM : NULL;
}

struct cast
{
    const float *x[64];
    size_t n;
};

static const float *cast_model(void *self, size_t i)
{
    return ((struct cast *)self)->x[i];
}

static double exact(uint32_t speaker, uint64_t round, bool dead_count, bool before,
                    double *relative)
{
    struct cast all = {.n = 0};
    struct consensus c;
    int64_t time = film->time[(size_t)speaker * DEPTH + round];
    for (uint32_t i = 0; i < film->r.config.n_peers; i++) {
        const float *x = film->dead[i] && !dead_count ? NULL : model_at(i, round, time, before);
        if (x != NULL)
            all.x[all.n++] = x;
    }
    if (all.n == 0)
        fail_msg("peer %u, round %d: no models", speaker, (int)round);
    assert_int_equal(consensus_measure(&c, all.n, DIM, DIM, cast_model, &all), 0);
    *relative = c.trained.relative;
    return c.trained.xi;
}

/* Compares a published drift with the exact one. There are four exact values: with or without
 * members that died since the round, and with the models before or after a skipped round. The
 * published drift is compared with the nearest of the four. */
static void judge(uint32_t peer, const struct node_progress *p)
{
    double off = INFINITY, relative_off = 0, truth = 0;
    for (int how = 0; how < 4; how++) {
        double relative, xi = exact(peer, p->drift_round, how & 1, how & 2, &relative);
        /* Smallest distance that sketches can measure, relative to the norm of the mean model.
         * Sketches are computed from float32 values. */
        double norm = xi / relative, least = 1e-6;
        double here = xi == p->drift ? 0 : fabs(p->drift - xi) / fmax(xi, least * norm);
        if (here < off) {
            off = here;
            truth = relative;
            relative_off =
                xi == p->drift ? 0 : fabs(p->relative_drift - relative) / fmax(relative, least);
        }
    }
    if (film->dump != NULL)
        fprintf(film->dump, "%u %d %g %g\n", peer, (int)p->drift_round, p->relative_drift, truth);
    film->n_figures++;
    film->n_last += p->drift_round >= ROUNDS;
    film->sum2 += off * off;
    film->age += (double)(p->round + p->settle_rounds - p->drift_round);
    if (!(off <= film->worst))
        film->worst = off;
    if (!(relative_off <= film->worst_relative))
        film->worst_relative = relative_off;
}

static void film_measured(void *self, uint32_t peer)
{
    struct node_progress p;
    (void)self;
    node_progress(sim_node(film->r.world, peer), &p);
    bool known = isfinite(p.drift);
    film->n_seen++;
    film->n_null += !known;
    if (!known || p.phase > NODE_CONSENSUS || p.drift_round == film->spoke[peer])
        return;
    assert_true(film->spoke[peer] == UINT64_MAX || p.drift_round > film->spoke[peer]
                || film->dead[peer]);
    film->spoke[peer] = p.drift_round;
    if (p.drift_round < DEPTH)
        judge(peer, &p);
}

static void film_init(struct film *f, uint32_t n, const char *topology, const char *compress)
{
    *f = (struct film){.n_figures = 0};
    film = f;
    rig_init(&f->r, n, DIM, topology, compress, 0);
    f->r.eta = 0.05f;
    f->r.noise = 2.0f;
    f->r.config.run.rounds = ROUNDS;
    f->r.config.run.final_drift = 1e-3;
    f->r.config.make_trainer = film_trainer;
    f->r.config.measured = film_measured;
    f->r.config.latency_us = 2000;
    f->r.config.jitter_us = 1000;
    f->r.config.step_us = 5000;
    f->state = calloc((size_t)n * DEPTH * DIM, sizeof *f->state);
    f->time = calloc((size_t)n * DEPTH, sizeof *f->time);
    f->spoke = calloc(n, sizeof *f->spoke);
    f->seen = calloc((size_t)n * DIM, sizeof *f->seen);
    f->last = calloc(n, sizeof *f->last);
    f->moved = calloc(n, sizeof *f->moved);
    f->dead = calloc(n, sizeof *f->dead);
    assert_true(f->state && f->time && f->spoke && f->seen && f->last && f->moved && f->dead);
    memset(f->time, 0xff, (size_t)n * DEPTH * sizeof *f->time);
    memset(f->spoke, 0xff, n * sizeof *f->spoke);
}

/* Called after each step of the simulation in the consensus phase. Stores x as the peer's model of
 * the round when the round begins, and again when a job has changed the model (`moved`). If no job
 * changed the model before the next round, the peer skipped the round, and its stored model is
 * deleted. */
static void keep_last(uint32_t peer, uint64_t round, bool moved, const float *x)
{
    uint64_t was = film->last[peer];
    if (round >= DEPTH || (round == was && !moved))
        return;
    if (round > was && was > 0 && !film->moved[peer])
        film->time[(size_t)peer * DEPTH + was] = -1;
    film->moved[peer] = moved;
    film->last[peer] = round;
    keep(peer, round, x);
}

static bool film_step(struct film *f)
{
    bool more = sim_step(f->r.world);
    for (uint32_t i = 0; i < f->r.config.n_peers && more; i++) {
        struct node_progress p;
        if (sim_node(f->r.world, i) == NULL)
            continue;
        node_progress(sim_node(f->r.world, i), &p);
        if (p.phase < NODE_TRAINING || p.phase > NODE_CONSENSUS)
            continue;
        const float *x = rig_model(&f->r, i);
        float *seen = f->seen + (size_t)i * DIM;
        if (p.phase == NODE_CONSENSUS)
            keep_last(i, p.round + p.settle_rounds, memcmp(seen, x, DIM * sizeof *x) != 0, x);
        memcpy(seen, x, DIM * sizeof *x);
    }
    return more;
}

static void film_until(struct film *f, int64_t t_us)
{
    while (sim_now_us(f->r.world) < t_us && film_step(f))
        ;
}

static void film_end(struct film *f, const char *what, double tolerance, uint32_t least)
{
    while (film_step(f) && f->last[0] < DEPTH - 1)
        ;
    print_message("%-32s %3u figures (%3u of the consensus phase), worst off by %4.1f %% (relative "
                  "%4.1f %%), rms %3.1f %%, %4.1f rounds old, unknown in %2.0f %% of the rounds\n",
                  what, f->n_figures, f->n_last, 100 * f->worst, 100 * f->worst_relative,
                  f->n_figures > 0 ? 100 * sqrt(f->sum2 / f->n_figures) : 0,
                  f->n_figures > 0 ? f->age / f->n_figures : 0,
                  100 * (double)f->n_null / (double)f->n_seen);
    /* The relative drift is the quotient of two estimates, so its error includes the errors of both
     * estimates. */
    if (!(f->worst <= tolerance) || !(f->worst_relative <= 1.25 * tolerance)
        || f->n_figures < least)
        fail_msg("%s: off by %.1f %%, %u figures of at least %u", what, 100 * f->worst,
                 f->n_figures, least);
    rig_close(&f->r);
    free(f->state);
    free(f->time);
    free(f->spoke);
    free(f->seen);
    free(f->last);
    free(f->moved);
    free(f->dead);
}

/* Largest allowed error of a published drift, in percent. In lock step only the sketches cause
 * errors. Without lock step, the exact drift is computed from the models at one time, which differ
 * slightly from the models of the round. */
enum { SYNC_PERCENT = 15, ASYNC_PERCENT = 20 };

static double tolerance(enum run_policy policy)
{
    return (policy == RUN_SYNC ? SYNC_PERCENT : ASYNC_PERCENT) / 100.0;
}

static void cut(const char *topology, uint32_t n, enum run_policy policy, double rate,
                uint32_t least)
{
    struct film f;
    char what[64];
    snprintf(what, sizeof what, "%s %u %s, cut-rate %g", topology, n,
             policy == RUN_SYNC ? "sync" : "async", rate);
    film_init(&f, n, topology, "qsgd:8");
    f.r.config.run.policy = policy;
    f.r.config.cut_rate = rate;
    f.r.config.step_spread = 1;
    rig_open(&f.r);
    film_end(&f, what, tolerance(policy), least);
}

static void test_cuts(void **state)
{
    static const struct
    {
        double rate;
        /* Number of published drifts that the test must at least compare with the exact drift. The
         * fields `ring` and `torus` apply to these graphs in lock step. `async` applies to a ring
         * without lock step. */
        uint32_t ring, torus, async;
    } table[] = {
        {0, 100, 100, 20},
        {0.001, 200, 150, 20},
        {0.01, 200, 150, 15},
        /* At this rate of lost sessions, no drift is required without lock step (`async` is 0). A
         * measurement then takes so long that it does not describe the models at one time. */
        {0.05, 150, 100, 0},
        {0.3, 20, 20, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i += STRIDE) {
        cut("ring", 16, RUN_SYNC, table[i].rate, table[i].ring);
        cut("torus", 16, RUN_SYNC, table[i].rate, table[i].torus);
        cut("ring", 8, RUN_ASYNC, table[i].rate, table[i].async);
    }
}

static void kills(enum run_policy policy)
{
    struct film f;
    film_init(&f, 8, "ring", "qsgd:8");
    f.r.config.run.policy = policy;
    f.r.config.step_us = 100 * 1000;
    rig_open(&f.r);
    film_until(&f, 10 * SECOND);
    sim_kill(f.r.world, 3);
    f.dead[3] = true;
    film_until(&f, 25 * SECOND);
    assert_int_equal(sim_restart(f.r.world, 3), 0);
    f.dead[3] = false;
    f.spoke[3] = UINT64_MAX;
    film_until(&f, 35 * SECOND);
    sim_kill(f.r.world, 0);
    f.dead[0] = true;
    film_end(&f, policy == RUN_SYNC ? "two deaths and a return, sync" : "the same, async",
             tolerance(policy), 8);
}

static void test_kills(void **state)
{
    (void)state;
    kills(RUN_SYNC);
    kills(RUN_ASYNC);
}

/* Combines faults on a ring: 5 % of the deltas are lost with their sessions, and a peer dies and
 * returns. DRIFT_PICTURE=FILE writes the input of deploy/picture-drift: lines of peer, round,
 * estimated and exact relative drift, and after an empty line the exact drift of every round. */
static void test_churn(void **state)
{
    struct film f;
    const char *path = getenv("DRIFT_PICTURE");
    (void)state;
    film_init(&f, 16, "ring", "qsgd:8");
    f.r.config.cut_rate = 0.05;
    f.r.config.step_spread = 1;
    f.r.config.step_us = 50 * 1000;
    f.dump = path != NULL ? fopen(path, "w") : NULL;
    rig_open(&f.r);
    film_until(&f, 12 * SECOND);
    sim_kill(f.r.world, 5);
    f.dead[5] = true;
    uint64_t death = rig_progress(&f.r, 0).round;
    film_until(&f, 22 * SECOND);
    assert_int_equal(sim_restart(f.r.world, 5), 0);
    uint64_t back = rig_progress(&f.r, 0).round;
    if (f.dump != NULL)
        fprintf(f.dump, "# %d %d\n", (int)death, (int)back);
    f.dead[5] = false;
    f.spoke[5] = UINT64_MAX;
    while (rig_progress(&f.r, 0).phase < NODE_CONSENSUS && film_step(&f))
        ;
    for (uint64_t round = 0; round < ROUNDS && f.dump != NULL; round++) {
        double relative;
        f.dead[5] = round >= death && round < back;
        (void)exact(0, round, false, false, &relative);
        fprintf(f.dump, "%s%d %g\n", round == 0 ? "\n\n" : "", (int)round, relative);
    }
    f.dead[5] = false;
    if (f.dump != NULL)
        assert_int_equal(fclose(f.dump), 0);
    f.dump = NULL;
    film_end(&f, "ring 16 sync, cuts and a death", tolerance(RUN_SYNC), 100);
}

/* A peer dies in the consensus phase. The others must then know the drift again. */
static void test_death_at_the_end(void **state)
{
    struct film f;
    (void)state;
    film_init(&f, 8, "ring", "qsgd:8");
    f.r.config.step_us = 20 * 1000;
    f.r.config.run.final_drift = 1e-7;
    rig_open(&f.r);
    while (rig_progress(&f.r, 0).phase != NODE_CONSENSUS)
        film_step(&f);
    film_until(&f, sim_now_us(f.r.world) + 100 * 1000);
    sim_kill(f.r.world, 3);
    f.dead[3] = true;
    film_end(&f, "a death in the consensus phase", tolerance(RUN_SYNC), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_kills),
        cmocka_unit_test(test_churn),
        cmocka_unit_test(test_death_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
