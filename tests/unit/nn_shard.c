/* tests/unit/nn_shard.c -- shards: every sample has one owner, the death of a member moves only
 * its own samples, and batches use each sample exactly once per epoch. */
#include "nn/shards/shard.h"

#include "nn/math/dirichlet.h"
#include "nn/math/rng.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 1003, SEED = 7 };

static struct dataset set;
static const struct shard_split iid = {.fall = SHARD_IID};

static struct shard_config config_of(enum shard_mode mode, uint32_t part, uint32_t n_parts)
{
    return (struct shard_config){
        .spec = {mode, part, n_parts}, .split = iid, .seed = SEED, .peer = 5, .local_steps = 1};
}

static void open_shard(struct shard *s, const struct shard_config *c)
{
    char error[DATA_ERROR_MAX] = "";
    assert_int_equal(shard_open(s, c, &set, error), 0);
}

static uint32_t sample_at(const struct shard *s, size_t i)
{
    return s->sample ? s->sample[i] : (uint32_t)i;
}

static void test_spec(void **state)
{
    (void)state;
    struct shard_spec s;
    char error[DATA_ERROR_MAX];
    assert_int_equal(shard_spec_parse(&s, "2/3", error), 0);
    assert_true(s.mode == SHARD_PART && s.part == 1 && s.n_parts == 3);
    assert_int_equal(shard_spec_parse(&s, "1/1", error), 0);
    assert_int_equal(shard_spec_parse(&s, "own", error), 0);
    assert_int_equal(s.mode, SHARD_OWN);
    assert_int_equal(shard_spec_parse(&s, "auto", error), 0);
    assert_int_equal(s.mode, SHARD_AUTO);
    static const char *const bad[] = {"",
                                      "0/3",
                                      "4/3",
                                      "1/0",
                                      "1",
                                      "1/",
                                      "/3",
                                      "-1/3",
                                      " 1/3",
                                      "1/3 ",
                                      "01/3",
                                      "1/2/3",
                                      "autos",
                                      "1/65537",
                                      "4294967297/3",
                                      "1/4294967297",
                                      "99999999999999999999/2"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        error[0] = '\0';
        assert_int_equal(shard_spec_parse(&s, bad[i], error), -EINVAL);
        assert_non_null(strstr(error, "expected i/n"));
        assert_non_null(strstr(error, bad[i]));
    }
}

/* Assigns all samples of a set to owners and returns a hash of the result. The owners are eight
 * numbered parts or, with `members`, eight members. */
static uint64_t outcome(const struct shard_split *split, bool members)
{
    static uint32_t sample[N];
    uint64_t keys[8], hash = 0;
    struct shard_owners *o;
    for (uint64_t i = 0; i < 8; i++)
        keys[i] = members ? rng_at(3, i) : i;
    assert_int_equal(shard_owners_open(&o, &set, split, SEED), 0);
    assert_int_equal(members ? shard_owners_members(o, keys, 8, keys[0]) : shard_owners_parts(o, 8),
                     0);
    for (size_t k = 0; k < 8; k++) {
        size_t n = shard_owners_count(o, keys[k]);
        shard_owners_samples(o, keys[k], sample);
        hash = rng_at(hash ^ rng_hash(sample, n * sizeof *sample), n);
    }
    shard_owners_close(o);
    return hash;
}

/* Published figures depend on the assignment of samples, so these values must not change. */
static void test_pinned(void **state)
{
    (void)state;
    struct shard_split wild = {.fall = SHARD_DIRICHLET, .alpha = 0.1};
    struct shard_split mild = {.fall = SHARD_DIRICHLET, .alpha = 2};
    assert_true(outcome(&iid, false) == 0xdb71457e2b2e7f85u);
    assert_true(outcome(&iid, true) == 0x225845eb3254554bu);
    assert_true(outcome(&wild, false) == 0x5b35992ee0fff7a2u);
    assert_true(outcome(&wild, true) == 0x1b67f54254062db6u);
    assert_true(outcome(&mild, false) == 0x24a3a14da59ccd4eu);
    assert_true(outcome(&mild, true) == 0x6c0d5f727ca50c75u);
    struct shard s;
    struct shard_config c = config_of(SHARD_PART, 2, 8);
    c.split = wild;
    c.local_steps = 3;
    open_shard(&s, &c);
    uint32_t batch[16];
    uint64_t hash = 0;
    for (uint64_t round = 0; round < 20; round++)
        for (uint32_t step = 0; step < 3; step++) {
            shard_batch(&s, round, step, 16, batch);
            hash = rng_at(hash ^ rng_hash(batch, sizeof batch), round);
        }
    assert_true(hash == 0xb4c64d47e167b860u);
    shard_close(&s);
}

/* Opens all n parts. Every sample must be in exactly one part, and no part may be empty. Stores
 * the sizes of the smallest and largest part. */
static void check_parts(const struct shard_split *split, uint32_t n, size_t *least, size_t *most)
{
    uint8_t seen[N] = {0};
    struct shard_owners *owners;
    assert_int_equal(shard_owners_open(&owners, &set, split, SEED), 0);
    *least = N;
    *most = 0;
    for (uint32_t p = 0; p < n; p++) {
        struct shard s;
        struct shard_config c = config_of(SHARD_PART, p, n);
        c.split = *split;
        /* A shard that has its own table of owners has the same samples as a shard with a shared
         * table. */
        c.owners = p % 2 ? owners : NULL;
        open_shard(&s, &c);
        assert_true(s.count >= 1);
        for (size_t i = 0; i < s.count; i++) {
            assert_true(s.sample[i] < N && !seen[s.sample[i]]);
            assert_true(i == 0 || s.sample[i - 1] < s.sample[i]);
            seen[s.sample[i]] = 1;
        }
        *least = s.count < *least ? s.count : *least;
        *most = s.count > *most ? s.count : *most;
        shard_close(&s);
    }
    for (size_t i = 0; i < N; i++)
        assert_true(seen[i]);
    shard_owners_close(owners);
}

static void test_parts(void **state)
{
    (void)state;
    static const uint32_t n_parts[] = {1, 2, 3, 7, 8, 31, 64, 500, 1003};
    size_t least, most;
    for (size_t i = 0; i < sizeof n_parts / sizeof *n_parts; i++) {
        check_parts(&iid, n_parts[i], &least, &most);
        assert_true(most - least <= 1);
        for (int k = 0; k < 3; k++) {
            static const double alpha[] = {0.01, 0.5, 1000};
            struct shard_split split = {.fall = SHARD_DIRICHLET, .alpha = alpha[k]};
            check_parts(&split, n_parts[i], &least, &most);
        }
    }
    struct shard s;
    struct shard_config c = config_of(SHARD_PART, 0, N + 1);
    char error[DATA_ERROR_MAX] = "";
    assert_int_equal(shard_open(&s, &c, &set, error), -EINVAL);
    assert_non_null(strstr(error, "found 1004 parts, expected at most 1003"));
}

/* Returns the share of the commonest class in a part, averaged over 8 parts. */
static double skew(const struct shard_split *split)
{
    double sum = 0;
    for (uint32_t p = 0; p < 8; p++) {
        struct shard s;
        struct shard_config c = config_of(SHARD_PART, p, 8);
        c.split = *split;
        open_shard(&s, &c);
        size_t count[10] = {0}, top = 0;
        for (size_t i = 0; i < s.count; i++)
            count[set.labels[s.sample[i]]]++;
        for (size_t k = 0; k < 10; k++)
            top = count[k] > top ? count[k] : top;
        sum += (double)top / (double)s.count;
        shard_close(&s);
    }
    return sum / 8;
}

/* The smaller alpha is, the more unevenly labels are distributed over the parts. With a large alpha
 * the parts are almost like iid. */
static void test_skew(void **state)
{
    (void)state;
    struct shard_split wild = {.fall = SHARD_DIRICHLET, .alpha = 0.1};
    struct shard_split mild = {.fall = SHARD_DIRICHLET, .alpha = 1};
    struct shard_split even = {.fall = SHARD_DIRICHLET, .alpha = 1000};
    assert_true(skew(&wild) > 0.4);
    assert_true(skew(&wild) > skew(&mild) && skew(&mild) > skew(&even));
    assert_true(skew(&even) < 0.18);
}

/* Random draws from the distribution Gamma(alpha, 1) have the mean and the variance alpha.
 * dirichlet_log() and dirichlet_exp() agree with libm. */
static void test_gamma(void **state)
{
    (void)state;
    static const double alpha[] = {0.3, 1, 2.5, 40};
    for (size_t k = 0; k < 4; k++) {
        struct rng r = rng_stream(rng_key(SEED, RNG_TEST, k, 0));
        double sum = 0, squares = 0;
        enum { DRAWS = 40000 };
        for (int i = 0; i < DRAWS; i++) {
            double log_g = dirichlet_log_gamma(&r, alpha[k]);
            double g = log_g < -700 ? 0 : dirichlet_exp(log_g);
            sum += g;
            squares += g * g;
        }
        double mean = sum / DRAWS, variance = squares / DRAWS - mean * mean;
        assert_true(fabs(mean / alpha[k] - 1) <= 0.03);
        assert_true(fabs(variance / alpha[k] - 1) <= 0.08);
    }
    for (double x = 1e-300; x < 1e300; x *= 7.3) {
        assert_true(fabs(dirichlet_log(x) - log(x)) <= 1e-15 * fabs(log(x)) + 1e-16);
        assert_true(fabs(dirichlet_exp(log(x)) / x - 1) <= 3e-13);
    }
    assert_true(dirichlet_log(1) == 0 && dirichlet_exp(0) == 1);
    assert_true(fabs(dirichlet_exp(-1) - exp(-1)) <= 1e-16);
}

/* Finds the owner of each sample by opening the shard of each member. */
static void owners_of(const uint64_t *keys, size_t n, const struct shard_split *split,
                      struct shard_owners *shared, uint64_t owner[N])
{
    uint8_t seen[N] = {0};
    for (size_t k = 0; k < n; k++) {
        struct shard s;
        struct shard_config c = config_of(SHARD_AUTO, 0, 0);
        c.split = *split;
        c.owners = shared;
        open_shard(&s, &c);
        assert_int_equal(s.count, N); /* A peer owns all samples until it knows other members. */
        assert_int_equal(shard_members(&s, keys, n, keys[k]), 0);
        /* A member that owns no samples draws from the samples of all members. */
        bool nothing = n > 1 && s.count == N;
        for (size_t i = 0; !nothing && i < s.count; i++) {
            uint32_t at = sample_at(&s, i);
            assert_false(seen[at]);
            seen[at] = 1;
            owner[at] = keys[k];
        }
        shard_close(&s);
    }
    for (size_t i = 0; i < N; i++)
        assert_true(seen[i]);
}

/* When members leave and return, an updated table of owners equals a new one. */
static void check_auto(const struct shard_split *split)
{
    enum { MEMBERS = 12 };
    struct rng r = rng_stream(rng_key(SEED, RNG_TEST, 1, 0));
    uint64_t all[MEMBERS], keys[MEMBERS], before[N], after[N], fresh[N];
    for (size_t i = 0; i < MEMBERS; i++)
        all[i] = keys[i] = rng_u64(&r);
    struct shard_owners *shared;
    assert_int_equal(shard_owners_open(&shared, &set, split, SEED), 0);
    size_t n = MEMBERS;
    owners_of(keys, n, split, shared, before);
    for (int k = 0; k < 10; k++) {
        size_t out = (size_t)rng_below(&r, n);
        uint64_t dead = keys[out];
        /* The order in which the keys of members are listed does not matter. */
        keys[out] = keys[--n];
        owners_of(keys, n, split, shared, after);
        owners_of(keys, n, split, NULL, fresh);
        assert_memory_equal(after, fresh, sizeof after);
        for (size_t i = 0; i < N; i++) {
            assert_true(after[i] != dead);
            assert_true(before[i] == dead || after[i] == before[i]);
        }
        memcpy(before, after, sizeof before);
    }
    /* All ten members that left return at the same time. */
    owners_of(all, MEMBERS, split, shared, after);
    owners_of(all, MEMBERS, split, NULL, fresh);
    assert_memory_equal(after, fresh, sizeof after);
    for (size_t i = 0; i < N; i++) {
        bool stayed = false;
        for (size_t j = 0; j < n; j++)
            stayed |= after[i] == keys[j];
        /* Only the returned members may gain samples. */
        assert_true(!stayed || after[i] == before[i]);
    }
    /* The list of members is replaced by two new members. */
    uint64_t other[2] = {all[0] + 1, all[1] + 1};
    owners_of(other, 2, split, shared, after);
    owners_of(other, 2, split, NULL, fresh);
    assert_memory_equal(after, fresh, sizeof after);
    shard_owners_close(shared);
}

static void test_auto(void **state)
{
    (void)state;
    struct shard_split wild = {.fall = SHARD_DIRICHLET, .alpha = 0.1};
    check_auto(&iid);
    check_auto(&wild);
}

/* After each change of the members, an existing shard has the same samples as a new one. */
static void test_auto_lives_on(void **state)
{
    (void)state;
    static const uint64_t keys[] = {11, 22, 33, 44, 55};
    struct shard_config c = config_of(SHARD_AUTO, 0, 0);
    struct shard s;
    open_shard(&s, &c);
    for (size_t n = 5; n > 0; n--) {
        struct shard fresh;
        open_shard(&fresh, &c);
        assert_int_equal(shard_members(&s, keys, n, keys[0]), 0);
        assert_int_equal(shard_members(&fresh, keys, n, keys[0]), 0);
        assert_int_equal(s.count, fresh.count);
        for (size_t i = 0; i < s.count; i++)
            assert_int_equal(sample_at(&s, i), sample_at(&fresh, i));
        shard_close(&fresh);
    }
    assert_int_equal(s.count, N); /* The only remaining member owns all samples. */
    shard_close(&s);
}

/* All members own about the same number of samples, whatever their keys are. */
static void test_auto_fair(void **state)
{
    (void)state;
    uint64_t keys[8] = {0, 1, 2, 3, UINT64_MAX, 5, 6, 7};
    for (size_t k = 0; k < 8; k++) {
        struct shard s;
        struct shard_config c = config_of(SHARD_AUTO, 0, 0);
        open_shard(&s, &c);
        assert_int_equal(shard_members(&s, keys, 8, keys[k]), 0);
        assert_true(s.count > N / 8 * 7 / 10 && s.count < N / 8 * 13 / 10);
        size_t with_own = s.count;
        uint64_t others[8], n = 0;
        for (size_t j = 0; j < 8; j++)
            if (j != k)
                others[n++] = keys[j];
        /* The list of members lacks the peer's own key, which is added, and has a duplicate, which
         * counts once. */
        others[n] = others[0];
        assert_int_equal(shard_members(&s, others, 8, keys[k]), 0);
        assert_int_equal(s.count, with_own);
        shard_close(&s);
    }
}

/* If there are more members than samples, a member that owns no samples draws from all samples. */
static void test_auto_crowd(void **state)
{
    (void)state;
    enum { CROWD = 2000 };
    static uint64_t keys[CROWD];
    for (size_t i = 0; i < CROWD; i++)
        keys[i] = i;
    struct shard_owners *shared;
    assert_int_equal(shard_owners_open(&shared, &set, &iid, SEED), 0);
    size_t owned = 0, idle = 0;
    for (size_t i = 0; i < CROWD; i++) {
        struct shard s;
        struct shard_config c = config_of(SHARD_AUTO, 0, 0);
        c.owners = shared;
        open_shard(&s, &c);
        assert_int_equal(shard_members(&s, keys, CROWD, keys[i]), 0);
        owned += s.count == N ? 0 : s.count;
        idle += s.count == N;
        uint32_t batch[3];
        shard_batch(&s, 0, 0, 3, batch);
        shard_close(&s);
    }
    assert_int_equal(owned, N);
    assert_true(idle > 0);
    shard_owners_close(shared);
}

/* Consecutive batches form epochs. Each epoch is a permutation of the samples of the shard. */
static void check_epochs(struct shard *s, uint32_t batch)
{
    enum { EPOCHS = 5 };
    uint32_t drawn[64], first[N] = {0};
    uint8_t seen[N] = {0};
    size_t in_epoch = 0, epochs = 0, moved = 0;
    for (uint64_t round = 0; epochs < EPOCHS; round++)
        for (uint32_t step = 0; step < s->local_steps; step++) {
            shard_batch(s, round, step, batch, drawn);
            for (uint32_t i = 0; i < batch && epochs < EPOCHS; i++) {
                assert_true(drawn[i] < N && !seen[drawn[i]]);
                seen[drawn[i]] = 1;
                moved += epochs > 0 && first[in_epoch] != drawn[i];
                if (epochs == 0)
                    first[in_epoch] = drawn[i];
                if (++in_epoch == s->count) {
                    memset(seen, 0, sizeof seen);
                    in_epoch = 0;
                    epochs++;
                }
            }
        }
    if (s->count > 20)
        /* In each epoch the samples have a new order. */
        assert_true(moved > s->count * (EPOCHS - 1) / 2);
}

static void test_batches(void **state)
{
    (void)state;
    static const uint32_t n_parts[] = {1, 8, 200, 1003};
    static const uint32_t batches[] = {1, 2, 3, 7, 16, 33, 64};
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 7; k++)
            for (uint32_t local_steps = 1; local_steps <= 4; local_steps += 3) {
                struct shard s;
                struct shard_config c = config_of(SHARD_PART, 0, n_parts[i]);
                c.local_steps = local_steps;
                open_shard(&s, &c);
                check_epochs(&s, batches[k]);
                shard_close(&s);
            }
}

/* A batch depends only on its round and step, not on earlier batches. */
static void test_pure(void **state)
{
    (void)state;
    struct shard a, b, other;
    struct shard_config c = config_of(SHARD_OWN, 0, 1);
    c.local_steps = 2;
    open_shard(&a, &c);
    open_shard(&b, &c);
    c.peer = 6;
    open_shard(&other, &c);
    struct rng r = rng_stream(rng_key(SEED, RNG_TEST, 2, 0));
    uint32_t x[16], y[16], same = 0;
    for (int k = 0; k < 200; k++) {
        uint64_t round = rng_below(&r, 1000);
        uint32_t step = (uint32_t)rng_below(&r, 2);
        shard_batch(&a, round, step, 16, x);
        shard_batch(&b, rng_below(&r, 1000), 0, 16, y);
        shard_batch(&b, round, step, 16, y);
        assert_memory_equal(x, y, sizeof x);
        shard_batch(&other, round, step, 16, y);
        for (int i = 0; i < 16; i++)
            same += x[i] == y[i];
    }
    assert_true(same < 50); /* Each peer draws its batches in an order of its own. */
    /* A batch can be drawn even in the round with the largest possible number, UINT64_MAX. */
    shard_batch(&a, UINT64_MAX, 1, 16, x);
    shard_close(&a);
    shard_close(&b);
    shard_close(&other);
}

/* The first rounds (post-local SGD) and the last rounds may have one local step. The batches,
 * counted by local step, equal the batches of plain training, and no batch is skipped. */
static void test_rounds_of_one_step(void **state)
{
    (void)state;
    static const uint64_t from[][2] = {{40, 0}, {40, 150}, {0, 150}, {40, 40}, {0, 1}};
    struct shard plain, post;
    struct shard_config c = config_of(SHARD_OWN, 0, 1);
    c.local_steps = 1;
    open_shard(&plain, &c);
    c.local_steps = 3;
    for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
        c.post_local = from[i][0];
        c.one_step_from = from[i][1];
        open_shard(&post, &c);
        uint64_t n = 0;
        for (uint64_t round = 0; round < 200; round++) {
            bool single = round < from[i][0] || (from[i][1] > 0 && round >= from[i][1]);
            assert_true(fabs(shard_rounds(&post, round) - (double)n / 3) <= 1e-9);
            for (uint32_t step = 0; step < (single ? 1 : 3); step++, n++) {
                uint32_t x[16], y[16];
                assert_int_equal(shard_step(&post, round, step), n);
                shard_batch(&plain, n, 0, 16, x);
                shard_batch(&post, round, step, 16, y);
                assert_memory_equal(x, y, sizeof x);
            }
        }
        shard_close(&post);
    }
    shard_close(&plain);
}

static int setup(void **state)
{
    (void)state;
    static uint16_t labels[N];
    for (size_t i = 0; i < N; i++)
        labels[i] = (uint16_t)(rng_at(1, i) % 10);
    set = (struct dataset){.kind = "mnist",
                           .n = N,
                           .labels = labels,
                           .n_files = 1,
                           .shape = {DATA_IMAGES, 1, 28, 28, 10}};
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec),          cmocka_unit_test(test_pinned),
        cmocka_unit_test(test_parts),         cmocka_unit_test(test_skew),
        cmocka_unit_test(test_gamma),         cmocka_unit_test(test_auto),
        cmocka_unit_test(test_auto_lives_on), cmocka_unit_test(test_auto_fair),
        cmocka_unit_test(test_auto_crowd),    cmocka_unit_test(test_batches),
        cmocka_unit_test(test_pure),          cmocka_unit_test(test_rounds_of_one_step),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
