/* tests/unit/gossip_statistics.c -- tests the averaging of running statistics.
 *
 * Tested are the encoding, averages computed by hand, the lower limit (floor) of variances, and
 * random exchanges, some committed late. */
#include "gossip/mixers/statistics.h"
#include "nn/math/rng.h"
#include "tests/unit/gossip_seeds.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    N = 6,        /* Number of statistics of the model. */
    VARIANCE = 2, /* Index of the first variance: [2..4] are variances. */
    /* Index of the first statistic after the variances: [0], [1] and [5] are means. */
    MEANS = 5,
    HEAD = 1 + 4 * N
};

static const struct segment segments[] = {
    {.name = "w", .offset = 0, .n = 10, .trained = true},
    {.name = "b", .offset = 10, .n = 3, .trained = true},
    {.name = "mean", .offset = 13, .n = 2},
    {.name = "var", .offset = 15, .n = 3, .nonnegative = true},
    {.name = "late", .offset = 18, .n = 1}};

static struct statistics open_all(void)
{
    struct statistics s;
    assert_int_equal(statistics_init(&s, segments, 5), 0);
    assert_int_equal(s.n, N);
    for (size_t k = 0; k < N; k++) {
        assert_int_equal(s.nonnegative[k], k >= VARIANCE && k < MEANS);
        assert_true(s.owed[k] == 0);
    }
    return s;
}

/* ---- the wire ---- */

static void test_layout(void **state)
{
    static const float x[N] = {1, -2.5f, 0, 65536, 0.1f, -0.0f};
    static const uint8_t want[HEAD] = {1, 0, 0,    0x80, 0x3f, 0,    0,    0x20, 0xc0, 0, 0, 0,   0,
                                       0, 0, 0x80, 0x47, 0xcd, 0xcc, 0xcc, 0x3d, 0,    0, 0, 0x80};
    struct statistics s = open_all();
    uint8_t out[HEAD + 1];
    (void)state;
    assert_int_equal(statistics_bound(&s), HEAD);
    memset(out, 0xee, sizeof out);
    assert_int_equal(statistics_put(&s, true, x, out), HEAD);
    assert_memory_equal(out, want, HEAD);
    assert_int_equal(out[HEAD], 0xee);
    assert_int_equal(statistics_length(&s, out), HEAD);
    memset(out, 0xee, sizeof out);
    assert_int_equal(statistics_put(&s, false, x, out), 1);
    assert_int_equal(out[0], 0);
    assert_int_equal(out[1], 0xee);
    assert_int_equal(statistics_length(&s, out), 1);
    statistics_close(&s);
}

/* Runs statistics_check() on a copy of p[0..len) that ends with its heap block, so that
 * AddressSanitizer detects a read beyond the end. */
static size_t check(const struct statistics *s, const uint8_t *p, size_t len)
{
    uint8_t *whole = malloc(16 + len);
    assert_non_null(whole);
    memcpy(whole + 16, p, len);
    size_t head = statistics_check(s, whole + 16, len);
    free(whole);
    return head;
}

static void test_truncations(void **state)
{
    static const float x[N] = {1, 2, 3, 4, 5, 6};
    struct statistics s = open_all();
    uint8_t out[HEAD + 3] = {0};
    (void)state;
    (void)statistics_put(&s, true, x, out);
    /* The bytes after the running statistics belong to the delta and are not checked. */
    for (size_t len = 0; len <= sizeof out; len++)
        assert_int_equal(check(&s, out, len), len < HEAD ? SIZE_MAX : HEAD);
    (void)statistics_put(&s, false, x, out);
    for (size_t len = 0; len <= sizeof out; len++)
        assert_int_equal(check(&s, out, len), len < 1 ? SIZE_MAX : 1);
    for (unsigned flag = 2; flag < 256; flag++) {
        out[0] = (uint8_t)flag;
        assert_int_equal(check(&s, out, sizeof out), SIZE_MAX);
    }
    statistics_close(&s);
}

static void test_values(void **state)
{
    static const struct
    {
        float v;
        /* Whether v is valid as a mean, and whether it is valid as a variance. */
        bool mean, variance;
    } row[] = {{0, true, true},
               {-0.0f, true, true},
               {1e-45f, true, true},
               {-1e-45f, true, false},
               {-1, true, false},
               {0x1p64f, true, true},
               {-0x1p64f, true, false},
               {0x1.000002p64f, false, false},
               {-0x1.000002p64f, false, false},
               {FLT_MAX, false, false},
               {-FLT_MAX, false, false},
               {INFINITY, false, false},
               {-INFINITY, false, false},
               {NAN, false, false},
               {-NAN, false, false}};
    struct statistics s = open_all();
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        for (size_t k = 0; k < N; k++) {
            float x[N] = {1, 1, 1, 1, 1, 1};
            uint8_t out[HEAD];
            bool want = s.nonnegative[k] ? row[i].variance : row[i].mean;
            x[k] = row[i].v;
            if (statistics_proper(&s, x) != want)
                fail_msg("%g at %zu", (double)row[i].v, k);
            (void)statistics_put(&s, true, x, out);
            assert_int_equal(check(&s, out, HEAD), want ? HEAD : SIZE_MAX);
            /* Without statistics, only the flag byte is written, and no value is checked. */
            (void)statistics_put(&s, false, x, out);
            assert_int_equal(check(&s, out, HEAD), 1);
        }
    statistics_close(&s);
}

/* A model without running statistics adds no byte to a delta, and no function changes it. */
static void test_none(void **state)
{
    struct statistics s;
    uint8_t out[1] = {0xee};
    float x[1] = {7};
    (void)state;
    assert_int_equal(statistics_init(&s, segments, 2), 0);
    assert_int_equal(s.n, 0);
    assert_int_equal(statistics_bound(&s), 0);
    assert_true(statistics_proper(&s, NULL));
    for (int with = 0; with < 2; with++)
        assert_int_equal(statistics_put(&s, with, x, out), 0);
    assert_int_equal(out[0], 0xee);
    assert_int_equal(statistics_check(&s, out, 0), 0);
    /* The model has no statistics, so this byte belongs to the delta and may have any value. */
    assert_int_equal(statistics_check(&s, out, 1), 0);
    assert_int_equal(statistics_length(&s, out), 0);
    statistics_term(&s, 0.5, NULL, NULL);
    statistics_mix(&s, x);
    assert_true(x[0] == 7);
    assert_true(statistics_apart(&s) == 0);
    statistics_close(&s);
}

/* ---- averaging, by hand ---- */

/* Adds one exchange of mixing weight w. Each statistic is `own` at this end and `other` at the
 * other end. */
static void term_of(struct statistics *s, double w, float own, float other)
{
    uint8_t a[HEAD], b[HEAD];
    float x[N], y[N];
    for (size_t k = 0; k < N; k++) {
        x[k] = own;
        y[k] = other;
    }
    (void)statistics_put(s, true, x, a);
    (void)statistics_put(s, true, y, b);
    statistics_term(s, w, a, b);
}

static void fill(float x[N], float v)
{
    for (size_t k = 0; k < N; k++)
        x[k] = v;
}

static void near(float got, double want)
{
    if (!(fabs((double)got - want) <= 1e-5 * fmax(fabs(want), 0.01)))
        fail_msg("%.9g, expected %.9g", (double)got, want);
}

/* In lock step the statistics of this peer's model do not change between sending and averaging. The
 * result is therefore a weighted mean of the values that the peers sent. */
static void test_in_step(void **state)
{
    struct statistics s = open_all();
    float x[N];
    (void)state;
    fill(x, 8);
    term_of(&s, 0.25, 8, 12);
    term_of(&s, 0.5, 8, 2);
    statistics_mix(&s, x);
    for (size_t k = 0; k < N; k++)
        near(x[k], 8 + 0.25 * 4 - 0.5 * 6);
    /* The terms of the exchanges of the previous job must not count again in this job. */
    fill(x, 8);
    term_of(&s, 0.25, 8, 0);
    term_of(&s, 0.25, 8, 4);
    term_of(&s, 0.25, 8, 100);
    statistics_mix(&s, x);
    for (size_t k = 0; k < N; k++)
        near(x[k], 28);
    statistics_mix(&s, x); /* A job without exchanges changes no statistic. */
    for (size_t k = 0; k < N; k++) {
        near(x[k], 28);
        assert_true(s.owed[k] == 0);
    }
    statistics_close(&s);
}

/* Each statistic is averaged independently of the others. */
static void test_values_apart(void **state)
{
    static const float own[N] = {1, 2, 3, 4, 5, 6}, other[N] = {-1, 0, 13, 2, 0, 1e6f};
    struct statistics s = open_all();
    uint8_t a[HEAD], b[HEAD];
    float x[N];
    (void)state;
    memcpy(x, own, sizeof x);
    (void)statistics_put(&s, true, own, a);
    (void)statistics_put(&s, true, other, b);
    statistics_term(&s, 0.5, a, b);
    statistics_mix(&s, x);
    for (size_t k = 0; k < N; k++)
        near(x[k], ((double)own[k] + (double)other[k]) / 2);
    statistics_close(&s);
}

/* If one end sent no statistics, neither end changes. */
static void test_absent(void **state)
{
    struct statistics s = open_all();
    uint8_t with[HEAD], without[HEAD];
    float x[N];
    (void)state;
    fill(x, 3);
    (void)statistics_put(&s, true, x, with);
    (void)statistics_put(&s, false, x, without);
    fill(x, 5);
    for (int k = 0; k < 3; k++) {
        statistics_term(&s, 0.5, k == 0 ? with : without, k == 1 ? with : without);
        assert_int_equal(s.n_terms, 0);
        statistics_mix(&s, x);
        assert_true(isnan(statistics_apart(&s)));
    }
    /* An exchange without statistics does not affect the exchange of another edge in the same
     * job. */
    term_of(&s, 0.5, 5, 7);
    statistics_term(&s, 0.5, with, without);
    assert_int_equal(s.n_terms, 1);
    statistics_mix(&s, x);
    for (size_t k = 0; k < N; k++)
        near(x[k], 6);
    statistics_close(&s);
}

/* The two ends of an exchange move by equal and opposite amounts, whatever their present values
 * are. */
static void test_opposite(void **state)
{
    struct statistics s = open_all(), t = open_all();
    float x[N], y[N];
    (void)state;
    fill(x, 100);
    fill(y, 200);
    term_of(&s, 1. / 3, 0.1f, 0.7f);
    term_of(&t, 1. / 3, 0.7f, 0.1f);
    for (size_t k = 0; k < N; k++)
        assert_true(s.sum[k] == -t.sum[k]);
    statistics_mix(&s, x);
    statistics_mix(&t, y);
    for (size_t k = 0; k < N; k++) {
        near(x[k], 100.2);
        near(y[k], 199.8);
    }
    statistics_close(&s);
    statistics_close(&t);
}

/* ---- the floor ---- */

/* One job (computation of one round) with two exchanges e of mixing weight 1/2: this peer sent
 * own[e], the neighbour other[e]. `x`: expected variance after the job. `owed`: expected amount
 * that the lower limit of a variance kept from being subtracted, and that later jobs subtract
 * (statistics.h). */
struct job
{
    float own[2], other[2];
    double x, owed;
};

static void run_jobs(float begin, const struct job *job, size_t n)
{
    struct statistics s = open_all();
    float x[N];
    double mean = (double)begin;
    fill(x, begin);
    for (size_t i = 0; i < n; i++) {
        for (int e = 0; e < 2; e++) {
            term_of(&s, 0.5, job[i].own[e], job[i].other[e]);
            mean += 0.5 * ((double)job[i].other[e] - (double)job[i].own[e]);
        }
        statistics_mix(&s, x);
        for (size_t k = 0; k < N; k++) {
            bool variance = s.nonnegative[k];
            near(x[k], variance ? job[i].x : mean);
            near(s.owed[k], variance ? job[i].owed : 0);
            /* Whatever the lower limit of a variance, x - owed (the variance minus the amount still
             * to be subtracted) is the exact average. */
            near(x[k] - s.owed[k], mean);
        }
    }
    statistics_close(&s);
}

/* After the caller has replaced the statistics, nothing of the old ones is subtracted later. */
static void test_replaced(void **state)
{
    struct statistics s = open_all();
    float x[N];
    (void)state;
    fill(x, 0.1f);
    term_of(&s, 1, 10, 1);
    statistics_mix(&s, x);
    assert_true(s.owed[VARIANCE] > 1);
    fill(x, 2);
    statistics_replaced(&s);
    term_of(&s, 0.5, 2, 3);
    statistics_mix(&s, x);
    for (size_t k = 0; k < N; k++) {
        assert_true(s.owed[k] == 0);
        near(x[k], 2.5);
    }
    statistics_close(&s);
}

static void test_floor(void **state)
{
    /* The variance of this end is 0.1 now, although it sent 10 before. Each job may at most halve
     * the variance. */
    static const struct job own_least[] = {
        /* The result of averaging, 0.1 - 4.5, is negative. The variance x falls only to half of
         * 0.1, and the rest of the decrease is stored in `owed` for later: x = 0.05 and owed =
         * 4.45. */
        {{10, 10}, {1, 10}, 0.05, 4.45},
        /* The two exchanges add up to 0. `owed` is the amount still to be subtracted from the
         * variance x. This job subtracts 0.025, half of x, so x and `owed` both fall by 0.025. */
        {{10, 1}, {1, 10}, 0.025, 4.425},
        /* `owed` is the amount that is still to be subtracted from the variance x. It falls by 0.5,
         * the change received in this job, and by 0.0125, the amount that this job subtracts. */
        {{1, 1}, {2, 1}, 0.0125, 3.9125},
        /* The received change, 4.5, exceeds `owed` (the amount still to be subtracted), so `owed`
         * becomes 0. */
        {{1, 1}, {9, 2}, 0.6, 0},
        {{1, 1}, {1, 2}, 1.1, 0}};
    /* The smallest variance, 0.2, arrives over the first edge (`first`) or over the second edge
     * (`second`). The floor (lower limit of the average) is half of it, 0.1. */
    static const struct job first[] = {{{10, 3}, {0.2f, 3}, 0.1, 1}},
                            second[] = {{{3, 10}, {3, 0.2f}, 0.1, 1}};
    /* The new variance of 0.3 would be positive, but is under its lower limit (floor) 0.5, half of
     * the smallest variance. */
    static const struct job positive[] = {{{2.4f, 5}, {1, 5}, 0.5, 0.2}};
    /* The floor (lower limit) of the variance is 0.1, half of the smallest variance. The result 1.1
     * is above it, so nothing is left to subtract later. */
    static const struct job free_of[] = {{{10, 4}, {0.2f, 4}, 1.1, 0}};
    /* A variance of 0 is valid. The floor (lower limit) of the averaged variance is then 0, too. */
    static const struct job zero[] = {{{1, 1}, {0, 0}, 0, 0.5}, {{0, 0}, {3, 0}, 1, 0}};
    (void)state;
    run_jobs(0.1f, own_least, 5);
    run_jobs(4, first, 1);
    run_jobs(4, second, 1);
    run_jobs(1, positive, 1);
    run_jobs(6, free_of, 1);
    run_jobs(0.5f, zero, 2);
}

/* The floor (lower limit) of a variance must not hide a broken model: a NaN stays a NaN, and
 * statistics_proper() rejects it, so that the statistics are not sent. */
static void test_nan(void **state)
{
    struct statistics s = open_all();
    float x[N];
    (void)state;
    for (int job = 0; job < 2; job++) {
        fill(x, (float)NAN);
        term_of(&s, 0.5, 1, 2);
        statistics_mix(&s, x);
        for (size_t k = 0; k < N; k++)
            assert_true(isnan(x[k]));
        assert_false(statistics_proper(&s, x));
    }
    statistics_close(&s);
}

/* ---- distance between the ends ---- */

static void test_apart(void **state)
{
    struct statistics s = open_all();
    float x[N];
    (void)state;
    assert_true(isnan(statistics_apart(&s)));
    fill(x, 2);
    term_of(&s, 0.25, 2, 3);
    term_of(&s, 0.25, 2, 6); /* This edge has the largest relative distance, (6 - 2) / 2. */
    term_of(&s, 0.25, 2, 1);
    statistics_mix(&s, x);
    /* The second of the three edges has the largest relative distance: |6 - 2| / 2, where 2 is this
     * peer's own value. */
    near((float)statistics_apart(&s), 2);
    statistics_mix(&s, x);
    /* After a job without exchanges, statistics_apart() still returns the relative distance of the
     * job before. */
    near((float)statistics_apart(&s), 2);
    /* The next averaging replaces the stored relative distance. */
    term_of(&s, 0.25, 4, 3);
    statistics_mix(&s, x);
    near((float)statistics_apart(&s), 0.25);
    /* The distance of each exchange is divided by this end's own value in it: 2/1 and 4/100. */
    term_of(&s, 0.25, 1, -1);
    term_of(&s, 0.25, 100, 104);
    near((float)statistics_apart(&s), 2);
    statistics_mix(&s, x);
    term_of(&s, 0.25, 100, 104);
    term_of(&s, 0.25, 1, -1);
    near((float)statistics_apart(&s), 2);
    statistics_mix(&s, x);
    term_of(&s, 0.25, 5, 5);
    near((float)statistics_apart(&s), 0);
    statistics_mix(&s, x);
    statistics_close(&s);
}

/* ---- random exchanges ---- */

enum { PEERS = 4 };

/* One exchange between two peers: the values that each peer sent, and which peers have sent and
 * committed them. Index 0 is the peer with the lower number. */
struct exchange
{
    uint8_t sent[2][HEAD];
    bool full[2], done[2];
};

struct cluster
{
    struct statistics s[PEERS];
    float x[PEERS][N];
    struct exchange e[PEERS][PEERS]; /* Exchanges, indexed by [lower peer][higher peer]. */
    /* Sum of each statistic over all peers, as it would be if only local steps had changed them. */
    double sum[N];
    /* Largest amount that was in `owed` of any peer so far, to be subtracted later. */
    double owed;
    /* Number of times that a job left a part of a change in `owed`, to be subtracted later. */
    uint64_t floors;
    struct rng rng;
};

static struct exchange *between(struct cluster *c, int i, int j)
{
    return i < j ? &c->e[i][j] : &c->e[j][i];
}

/* Makes a local step of peer i: its statistics move towards random values, some small and some
 * large. */
static void local_step(struct cluster *c, int i)
{
    for (size_t k = 0; k < N; k++) {
        float was = c->x[i][k];
        /* Nearly all of these random values are between e^-9 and e^9. */
        float v = expf(3 * (float)rng_normal(&c->rng));
        if (!c->s[i].nonnegative[k] && rng_below(&c->rng, 2) == 0)
            v = -v;
        c->x[i][k] = was + 0.3f * (v - was);
        c->sum[k] += (double)c->x[i][k] - (double)was;
    }
}

/* Commits exchanges of peer i for which the deltas of both ends are present: all such exchanges if
 * `all`, else each with probability 1/2. Checks the result. */
static void commit(struct cluster *c, int i, bool all)
{
    float least[N], was[N], owed[N];
    memcpy(least, c->x[i], sizeof least);
    memcpy(was, c->x[i], sizeof was);
    memcpy(owed, c->s[i].owed, sizeof owed);
    bool any = false;
    for (int j = 0; j < PEERS; j++) {
        struct exchange *e = between(c, i, j);
        int own = i < j ? 0 : 1;
        if (i == j || !e->full[0] || !e->full[1] || e->done[own]
            || (!all && rng_below(&c->rng, 2) == 0))
            continue;
        any = true;
        statistics_term(&c->s[i], 0.25, e->sent[own], e->sent[1 - own]);
        for (size_t k = 0; k < N; k++) {
            float b;
            memcpy(&b, e->sent[1 - own] + 1 + 4 * k, sizeof b);
            least[k] = b < least[k] ? b : least[k];
        }
        e->done[own] = true;
        if (e->done[1 - own])
            *e = (struct exchange){0};
    }
    statistics_mix(&c->s[i], c->x[i]);
    for (size_t k = 0; k < N; k++) {
        float x = c->x[i][k], o = c->s[i].owed[k];
        if (!any)
            assert_true(x == was[k] && o == owed[k]);
        assert_true(o >= 0);
        if (!c->s[i].nonnegative[k])
            assert_true(o == 0);
        else if (any && !(x >= least[k] / 2 && x > 0))
            fail_msg("a variance of %g, the least was %g", (double)x, (double)least[k]);
        c->floors += o > 0;
        c->owed = fmax(c->owed, (double)o);
    }
    assert_true(statistics_proper(&c->s[i], c->x[i]));
}

static void check_means(const struct cluster *c)
{
    for (size_t k = 0; k < N; k++) {
        double sum = 0;
        for (int i = 0; i < PEERS; i++)
            sum += (double)c->x[i][k] - (double)c->s[i].owed[k];
        if (!(fabs(sum - c->sum[k]) <= 1e-4 * (1000 + c->owed)))
            fail_msg("the mean of %zu is %g, expected %g", k, sum / PEERS, c->sum[k] / PEERS);
    }
}

static void send(struct cluster *c, int i, int j)
{
    struct exchange *e = between(c, i, j);
    int own = i < j ? 0 : 1;
    if (i == j || e->full[own])
        return;
    (void)statistics_put(&c->s[i], rng_below(&c->rng, 5) > 0, c->x[i], e->sent[own]);
    e->full[own] = true;
}

/* Drops an exchange that neither end has committed, as after a lost session. */
static void lose(struct cluster *c, int i, int j)
{
    struct exchange *e = between(c, i, j);
    if (i != j && !e->done[0] && !e->done[1])
        *e = (struct exchange){0};
}

static void check_random(uint64_t seed)
{
    static struct cluster c;
    c = (struct cluster){.rng = rng_stream(rng_key(seed, RNG_TEST, 8, 0))};
    for (int i = 0; i < PEERS; i++) {
        c.s[i] = open_all();
        fill(c.x[i], 1);
    }
    for (size_t k = 0; k < N; k++)
        c.sum[k] = PEERS;
    for (int t = 0; t < 4000; t++) {
        int i = (int)rng_below(&c.rng, PEERS), j = (int)rng_below(&c.rng, PEERS);
        uint64_t dice = rng_below(&c.rng, 100);
        if (dice < 40)
            send(&c, i, j);
        else if (dice < 65)
            local_step(&c, i);
        else if (dice < 97)
            commit(&c, i, false);
        else
            lose(&c, i, j);
    }
    for (int i = 0; i < PEERS; i++)
        commit(&c, i, true); /* In the end each exchange is committed at both ends or at neither. */
    check_means(&c);
    print_message("SEED=%-3d owed %6d times, %g at most\n", (int)seed, (int)c.floors, c.owed);
    assert_true(c.floors > 20);
    for (int i = 0; i < PEERS; i++)
        statistics_close(&c.s[i]);
}

static void test_random(void **state)
{
    (void)state;
    for_seeds(check_random, 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_truncations),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_in_step),
        cmocka_unit_test(test_values_apart),
        cmocka_unit_test(test_absent),
        cmocka_unit_test(test_opposite),
        cmocka_unit_test(test_floor),
        cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_nan),
        cmocka_unit_test(test_apart),
        cmocka_unit_test_teardown(test_random, print_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
