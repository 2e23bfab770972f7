/* tests/unit/nn_learners.c -- several learners in one process: learners.h and the trainer are
 * compared with the algorithm of the CROSSBOW paper in double precision. The bits of a model do not
 * depend on the number of threads or a restart, and one learner gives the same bits as the plain
 * trainer. */
#include "nn/train/learners.h"

#include "nn/math/state.h"
#include "nn_training.h"
#include "test_share.h"

enum { MOST = 7, FLOATS = 67, HELD = 61, ROUNDS = 30 };

/* ---- the algorithm of the paper, on its own vectors ---- */

struct naive
{
    uint32_t k;
    size_t n, n_trained;
    double mu;
    double *x[MOST], *m[MOST], *z, *before;
};

static double *doubles(size_t n)
{
    double *v = calloc(n, sizeof *v);
    assert_non_null(v);
    return v;
}

static void naive_open(struct naive *v, uint32_t k, size_t n, size_t n_trained, double mu)
{
    *v = (struct naive){k, n, n_trained, mu, {NULL}, {NULL}, doubles(n), doubles(n)};
    for (uint32_t j = 0; j < k; j++) {
        v->x[j] = doubles(n);
        v->m[j] = doubles(n);
    }
}

static void naive_close(struct naive *v)
{
    for (uint32_t j = 0; j < v->k; j++) {
        free(v->x[j]);
        free(v->m[j]);
    }
    free(v->z);
    free(v->before);
}

static void naive_begin(struct naive *v, const float *z)
{
    for (size_t i = 0; i < v->n; i++) {
        v->z[i] = v->before[i] = (double)z[i];
        for (uint32_t j = 0; j < v->k; j++)
            v->x[j][i] = (double)z[i];
    }
}

/* Applies the correction d of an exchange with a neighbour: the centre and all learners move by
 * d. */
static void naive_exchange(struct naive *v, size_t i, double d)
{
    v->z[i] += d;
    v->before[i] += d;
    for (uint32_t j = 0; j < v->k; j++)
        v->x[j][i] += d;
}

/* Makes one step of algorithm 1 of Koliousis et al. 2019. way[j] is the update by the local step of
 * learner j. The centre moves by the mean of the updates, and only it has running statistics. */
static void naive_step(struct naive *v, double *const way[MOST])
{
    for (size_t i = 0; i < v->n; i++) {
        double sum = 0, z = v->z[i];
        for (uint32_t j = 0; j < v->k; j++) {
            double c = i < v->n_trained ? (v->x[j][i] - z) / v->k : way[j][i] / v->k;
            sum += c;
            v->x[j][i] += way[j][i] - c;
        }
        v->z[i] = z + sum + (i < v->n_trained ? v->mu * (z - v->before[i]) : 0);
        v->before[i] = z;
    }
}

/* ---- learners.h, with a quadratic loss for each learner ---- */

static double noise(uint32_t who, uint64_t at, size_t i)
{
    return 2 * (double)rng_unit_at(rng_key(who, RNG_TEST, 77, at), i) - 1;
}

/* Returns the update of coordinate i of learner j at the value x in step t. The learning rate
 * differs from step to step. */
static double way_at(uint32_t j, uint64_t t, size_t i, double x)
{
    return -0.05 * (double)(1 + t % 3) * (x - noise(j, 0, i) + 0.3 * noise(j, t + 1, i));
}

static void in_ranges(struct learners *l, float *z, const size_t cut[4])
{
    for (int r = 0; r < 3; r++)
        if (z == NULL)
            learners_pull(l, cut[r], cut[r + 1]);
        else
            learners_move(l, z, cut[r], cut[r + 1]);
}

static void check_rule(uint32_t k, double mu)
{
    static const size_t whole[4] = {0, FLOATS, FLOATS, FLOATS}, cut[4] = {0, 16, 63, FLOATS};
    struct learners_config config = {
        .n = k, .at_once = 2, .n_params = FLOATS, .n_trained = HELD, .momentum = mu};
    struct learners l;
    struct naive v;
    double *way[MOST] = {NULL}, most = 0;
    float z[FLOATS];
    assert_int_equal(learners_init(&l, &config), 0);
    naive_open(&v, k, FLOATS, HELD, mu);
    for (uint32_t j = 0; j < k; j++)
        way[j] = doubles(FLOATS);
    for (size_t i = 0; i < FLOATS; i++)
        z[i] = (float)noise(99, 0, i);
    naive_begin(&v, z);
    for (uint64_t t = 0; t < ROUNDS; t++) {
        in_ranges(&l, NULL, t % 2 ? whole : cut);
        for (uint32_t j = 0; j < k; j++) {
            float *x = learners_begin(&l, j, j % 2, z);
            for (size_t i = 0; i < FLOATS; i++) {
                double from = i < HELD ? v.x[j][i] : v.z[i];
                assert_true(fabs((double)x[i] - from) <= 2e-6);
                way[j][i] = way_at(j, t, i, from);
                x[i] += (float)way[j][i];
            }
            learners_end(&l, j, j % 2, z);
        }
        in_ranges(&l, z, t % 2 ? cut : whole);
        naive_step(&v, way);
        for (size_t i = 0; i < FLOATS; i++) {
            if (!(fabs((double)z[i] - v.z[i]) <= 2e-6))
                fail_msg("%u learners, mu %g, step %d: z[%zu] is %.8g, expected %.8g", k, mu,
                         (int)t, i, (double)z[i], v.z[i]);
            float d = t % 4 == 3 ? (float)noise(50, t, i) : 0;
            z[i] += d;
            naive_exchange(&v, i, (double)d);
            most = fmax(most, fabs(v.z[i] - v.before[i]));
        }
    }
    /* The centre still moves at the end, so the test covers its momentum. */
    assert_true(most > 0.005);
    for (uint32_t j = 0; j < k; j++)
        free(way[j]);
    naive_close(&v);
    learners_close(&l);
}

static void test_rule(void **state)
{
    (void)state;
    static const uint32_t some[] = {2, 3, 7};
    for (int i = 0; i < 3; i++) {
        check_rule(some[i], 0);
        check_rule(some[i], 0.9);
    }
}

/* ---- the trainer ---- */

static void several(struct bed *b, const char *spec, const char *kind, uint32_t n)
{
    bed_open_on(b, spec, kind, 3);
    b->config.learners = n;
    b->config.learner_momentum = 0.8;
}

/* Computes the gradient of learner j in step `step` of the run at x, clipped to `clip`, and
 * returns its loss. */
static double naive_gradient(struct bed *b, uint64_t step, uint32_t j, const double *x, float *grad)
{
    size_t n = b->model.n_params, n_trained = 0;
    uint64_t at = (step * b->config.learners + j) * BATCH;
    struct model_plan plan;
    uint16_t labels[BATCH];
    uint32_t index[BATCH];
    assert_int_equal(model_plan_init(&plan, &b->model, BATCH, true), 0);
    float *arena = aligned_alloc(64, (plan.n_floats * 4 + 63) / 64 * 64), *xf = vector(b);
    for (size_t i = 0; i < n; i++)
        xf[i] = (float)x[i];
    struct model_pass p = {.n = BATCH, .x = xf, .grad = grad, .plan = &plan, .arena = arena};
    shard_samples(&b->shard, at, BATCH, index);
    for (uint32_t i = 0; i < BATCH; i++) {
        uint64_t key = rng_key(5, RNG_AUGMENT, 3, at + i);
        augment_sample(&b->config.augment, &b->train, index[i], key, model_input(&b->model, &p, i));
        labels[i] = b->train.labels[index[i]];
    }
    float *logits = model_forward(&b->model, &p);
    struct loss_batch batch = {.n = BATCH, .n_classes = 10, .logits = logits, .labels = labels};
    double loss = loss_softmax(&batch, logits).sum, norm2 = 0, clip = b->config.optimiser.clip;
    model_backward(&b->model, &p, logits);
    n_trained = segments_trained(b->model.segments, b->model.n_segments);
    for (size_t i = 0; i < n_trained; i++)
        norm2 += (double)grad[i] * (double)grad[i];
    for (size_t i = 0; i < n_trained && clip > 0 && sqrt(norm2) > clip; i++)
        grad[i] *= (float)(clip / sqrt(norm2));
    free(arena);
    free(xf);
    model_plan_close(&plan);
    return loss;
}

/* Computes the update of learner j: SGD with Nesterov momentum and weight decay. Running statistics
 * move a tenth of the way to the statistics of the batch. */
static void naive_way(const struct bed *b, const struct naive *v, uint32_t j, const float *grad,
                      double lr, double *way)
{
    const struct optimiser *o = &b->config.optimiser;
    for (size_t s = 0; s < b->model.n_segments; s++) {
        const struct segment *seg = &b->model.segments[s];
        for (size_t i = seg->offset; i < seg->offset + seg->n; i++) {
            double g = (double)grad[i] + (seg->decays ? o->weight_decay * v->x[j][i] : 0);
            if (seg->trained)
                v->m[j][i] = o->momentum * v->m[j][i] + g;
            way[i] = seg->trained ? -lr * (g + o->momentum * v->m[j][i]) : -0.1 * (double)grad[i];
        }
    }
}

/* Makes one local step of all learners. Each begins with the running statistics of the centre. */
static double naive_local_step(struct bed *b, struct naive *v, uint64_t step, double lr)
{
    double *way[MOST] = {NULL}, loss = 0;
    float *grad = vector(b);
    for (uint32_t j = 0; j < v->k; j++) {
        memcpy(v->x[j] + v->n_trained, v->z + v->n_trained,
               (v->n - v->n_trained) * sizeof *v->x[j]);
        way[j] = doubles(v->n);
        loss += naive_gradient(b, step, j, v->x[j], grad);
        naive_way(b, v, j, grad, lr, way[j]);
    }
    naive_step(v, way);
    for (uint32_t j = 0; j < v->k; j++)
        free(way[j]);
    free(grad);
    return loss / BATCH / v->k;
}

static void check_trainer(const char *spec, const char *kind, uint32_t k, double clip, double most)
{
    struct bed b;
    struct naive v;
    several(&b, spec, kind, k);
    b.config.optimiser.clip = clip;
    b.config.augment = (struct augment){.crop = true, .flip = true};
    bed_start(&b);
    size_t n = b.model.n_params, n_trained = segments_trained(b.model.segments, b.model.n_segments);
    assert_int_equal(b.face.batch, k * BATCH);
    naive_open(&v, k, n, n_trained, 0.8);
    naive_begin(&v, b.x);
    for (uint64_t round = 0; round < 5; round++) {
        double want = 0, lr = schedule_lr(&b.config.schedule, (double)round), norm2 = 0, apart2 = 0;
        for (uint32_t s = 0; s < 3; s++)
            want += naive_local_step(&b, &v, 4 * round + s, lr) / 3;
        struct trainer_report r = steps(&b, round, 3);
        assert_int_equal(r.n_samples, 3 * k * BATCH);
        if (!(fabs(r.loss - want) <= most * fabs(want)))
            fail_msg("%s, round %d: loss %.8g, expected %.8g", spec, (int)round, r.loss, want);
        for (size_t i = 0; i < n; i++) {
            apart2 += ((double)b.x[i] - v.z[i]) * ((double)b.x[i] - v.z[i]);
            norm2 += v.z[i] * v.z[i];
            if (i >= n_trained && !(fabs((double)b.x[i] - v.z[i]) <= most * (1 + fabs(v.z[i]))))
                fail_msg("%s, round %d: statistic %zu is %.8g, expected %.8g", spec, (int)round, i,
                         (double)b.x[i], v.z[i]);
        }
        if (!(sqrt(apart2) <= most * sqrt(norm2)))
            fail_msg("%s, round %d: %g apart", spec, (int)round, sqrt(apart2 / norm2));
        /* Simulates an exchange with a neighbour in every second round. */
        for (size_t i = 0; i < n_trained && round % 2 == 0; i++) {
            float d = 0.01f * (float)noise(7, round, i);
            b.x[i] += d;
            naive_exchange(&v, i, (double)d);
        }
    }
    naive_close(&v);
    bed_close(&b);
}

static void test_trainer(void **state)
{
    (void)state;
    check_trainer("logreg", "mnist", 2, 0, 1e-5);
    check_trainer("logreg", "mnist", 5, 0.3, 1e-5);
    check_trainer("lenet5", "mnist", 3, 0, 1e-4);
    check_trainer("resnet:8", "cifar10", 3, 0, 1e-3);
}

/* ---- one learner equals the plain trainer ---- */

static void test_one_is_none(void **state)
{
    (void)state;
    static const char *const specs[] = {"logreg", "lenet5"};
    for (int i = 0; i < 2; i++) {
        struct bed one, none;
        bed_open(&none, specs[i], 1);
        bed_open(&one, specs[i], 1);
        one.config.learners = 1;
        one.config.learner_momentum = 0.9;
        bed_start(&none);
        bed_start(&one);
        for (uint64_t round = 0; round < 4; round++) {
            struct trainer_report a = steps(&none, round, 3), b = steps(&one, round, 3);
            assert_true(a.loss == b.loss && a.n_samples == b.n_samples);
        }
        same_x(&none, &one);
        assert_int_equal(one.face.batch, BATCH);
        assert_null(one.trainer.learners.apart);
        bed_close(&none);
        bed_close(&one);
    }
}

/* ---- threads ---- */

static void check_threads(const char *spec, const char *kind, double clip)
{
    struct bed one, b;
    several(&one, spec, kind, 5);
    one.config.optimiser.clip = clip;
    bed_start(&one);
    struct trainer_report want[3];
    for (uint64_t round = 0; round < 3; round++)
        want[round] = steps(&one, round, 2);
    for (uint32_t threads = 2; threads <= 7; threads++) {
        if (!test_share_has(threads - 1) && threads < 7)
            continue;
        several(&b, spec, kind, 5);
        b.config.optimiser.clip = clip;
        b.config.threads = threads;
        bed_start(&b);
        assert_int_equal(b.trainer.own->threads, threads < 5 ? threads : 5);
        for (uint64_t round = 0; round < 3; round++) {
            struct trainer_report r = steps(&b, round, 2);
            assert_true(r.loss == want[round].loss && r.accuracy == want[round].accuracy);
            assert_int_equal(r.n_samples, want[round].n_samples);
        }
        same_x(&one, &b);
        bed_close(&b);
    }
    bed_close(&one);
}

/* Each thread computes whole learners, so the number of threads must not change any bit. */
static void test_threads(void **state)
{
    (void)state;
    check_threads("mlp:784-32-10", "mnist", 0);
    check_threads("logreg", "libsvm/60x10/0", 0.5);
    check_threads("gpt:1x32", "text/12", 0);
    check_threads("resnet:8", "cifar10", 0);
}

/* The peers of a simulator share one scratch memory, which is as large as one learner needs. */
static void test_shared_scratch(void **state)
{
    (void)state;
    struct bed alone, a, b;
    struct sgd_scratch *scratch;
    several(&alone, "lenet5", "mnist", 3);
    several(&a, "lenet5", "mnist", 3);
    several(&b, "lenet5", "mnist", 2);
    assert_int_equal(sgd_scratch_open(&scratch, &a.model, sgd_trainer_samples(BATCH, 3, 1), 1, 0),
                     0);
    a.config.scratch = b.config.scratch = scratch;
    bed_start(&alone);
    bed_start(&a);
    bed_start(&b);
    for (uint64_t round = 0; round < 3; round++) {
        (void)steps(&alone, round, 2);
        (void)steps(&a, round, 2);
        (void)steps(&b, round, 2);
    }
    same_x(&alone, &a);
    bed_close(&alone);
    bed_close(&a);
    bed_close(&b);
    sgd_scratch_close(scratch);
}

/* ---- restart from a saved state ---- */

static void check_restart(enum optimiser_kind kind)
{
    struct bed whole, again;
    struct state s = {.n = 0};
    struct bed *const beds[] = {&whole, &again};
    for (int i = 0; i < 2; i++) {
        several(beds[i], "resnet:8", "cifar10", 3);
        beds[i]->config.optimiser.kind = kind;
        beds[i]->config.optimiser.beta2 = 0.99;
        bed_start(beds[i]);
    }
    for (uint64_t round = 0; round < 3; round++)
        (void)steps(&whole, round, 2);
    state_write(&s);
    whole.face.state(whole.face.self, &s);
    assert_int_equal(state_end(&s), 0);
    size_t n = whole.face.n_params;
    /* With Adam, each learner has its own second moments. */
    for (uint32_t j = 0; j < 3 && kind == OPTIMISER_ADAM; j++)
        assert_true(vec_norm2(whole.trainer.second + j * n, n) > 0);
    struct state r;
    state_read(&r, s.bytes, s.n, s.section, s.n_sections);
    again.face.state(again.face.self, &r);
    if (state_end(&r) != 0)
        fail_msg("%s", r.why);
    memcpy(again.x, whole.x, whole.face.n_params * sizeof *again.x);
    for (uint64_t round = 3; round < 6; round++) {
        assert_true(steps(&whole, round, 2).loss == steps(&again, round, 2).loss);
        same_x(&whole, &again);
    }
    /* The saved state is refused by a trainer with another number of learners. */
    struct bed other;
    several(&other, "resnet:8", "cifar10", 4);
    other.config.optimiser = whole.config.optimiser;
    bed_start(&other);
    state_read(&r, s.bytes, s.n, s.section, s.n_sections);
    other.face.state(other.face.self, &r);
    assert_int_not_equal(state_end(&r), 0);
    state_close(&s);
    bed_close(&other);
    bed_close(&whole);
    bed_close(&again);
}

static void test_restart(void **state)
{
    (void)state;
    check_restart(OPTIMISER_SGD);
    check_restart(OPTIMISER_ADAM);
}

/* ---- momentum factor masking: sent coordinates lose their momentum ---- */

static void test_sent(void **state)
{
    (void)state;
    struct bed b;
    several(&b, "logreg", "mnist", 3);
    bed_start(&b);
    (void)steps(&b, 0, 3);
    size_t n = b.face.n_params;
    float *sent = vector(&b), *velocity = vector(&b);
    float *momentum = calloc(3 * n, sizeof *momentum);
    assert_non_null(momentum);
    memcpy(momentum, b.trainer.momentum, 3 * n * sizeof *momentum);
    memcpy(velocity, b.trainer.learners.velocity, n * sizeof *velocity);
    for (size_t i = 0; i < n; i++)
        sent[i] = i % 5 == 0 ? 0.25f : 0;
    b.face.sent(b.face.self, sent);
    assert_true(vec_norm2(velocity, n) > 0);
    for (uint32_t j = 0; j < 3; j++)
        assert_true(vec_norm2(momentum + j * n, n) > 0);
    for (size_t i = 0; i < 3 * n; i++)
        assert_true(b.trainer.momentum[i] == (i % n % 5 == 0 ? 0 : momentum[i]));
    for (size_t i = 0; i < n; i++)
        assert_true(b.trainer.learners.velocity[i] == (i % 5 == 0 ? 0 : velocity[i]));
    free(sent);
    free(velocity);
    free(momentum);
    bed_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rule),           cmocka_unit_test(test_trainer),
        cmocka_unit_test(test_one_is_none),    cmocka_unit_test(test_threads),
        cmocka_unit_test(test_shared_scratch), cmocka_unit_test(test_restart),
        cmocka_unit_test(test_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
