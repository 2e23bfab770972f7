/* tests/unit/report_series.c -- points, bands, and fewer of them; scripts of drawings:
 * peer/report/series.h, chart.h. */
#include "peer/report/series.h"

#include "peer/report/chart.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 1000, PEERS = 20 };

static uint64_t seed = 1;

/* In [0, 1). */
static double chance(void)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(seed >> 40) * 0x1p-24;
}

/* ---- Runs that are made up. ---- */

static struct report_row rows[PEERS][ROWS];
static struct report_start start;
static struct report_peer peers[PEERS];
static struct report_run run;

static void make(size_t n_peers, size_t n_rows)
{
    memset(&run, 0, sizeof run);
    memset(peers, 0, sizeof peers);
    for (size_t p = 0; p < n_peers; p++) {
        peers[p].lines =
            (struct report_lines){.row = rows[p], .n = n_rows, .start = &start, .n_starts = 1};
        for (int f = 0; f < REPORT_FIGURES; f++)
            peers[p].end.at[f] = run.end.at[f] = (double)NAN;
        for (size_t i = 0; i < n_rows; i++) {
            struct report_row *row = &rows[p][i];
            for (int c = 0; c < REPORT_COLUMNS; c++)
                row->at[c] = (double)NAN;
            row->at[REPORT_ROUND] = (double)i + 1;
            row->at[REPORT_LOSS] = chance();
            row->at[REPORT_TIME_S] = (double)i + chance();
            row->at[REPORT_BYTES_SENT] = (double)(10 * i);
        }
    }
    run.peer = peers;
    run.n_peers = n_peers;
    run.several = true;
}

static void test_peer(void **state)
{
    (void)state;
    struct report_point *p;
    size_t n;
    make(1, 6);
    rows[0][1].at[REPORT_LOSS] = (double)NAN;
    rows[0][2].at[REPORT_TIME_S] = (double)NAN;
    rows[0][5].at[REPORT_SETTLE_ROUNDS] = 7;
    rows[0][4].at[REPORT_LOCAL_STEPS] = 0; /* Nobody trained: an old loss. */
    assert_int_equal(report_series_peer(&peers[0].lines, REPORT_LOSS, REPORT_BY_ROUND, &p, &n), 0);
    assert_int_equal(n, 4);
    assert_true(p[0].x == 1 && p[1].x == 3 && p[2].x == 4 && p[3].x == 13);
    assert_true(p[3].y == rows[0][5].at[REPORT_LOSS]);
    free(p);
    assert_int_equal(report_series_peer(&peers[0].lines, REPORT_LOSS, REPORT_BY_TIME, &p, &n), 0);
    assert_int_equal(n, 3);
    free(p);
    assert_int_equal(report_series_peer(&peers[0].lines, REPORT_LOSS, REPORT_BY_BYTES, &p, &n), 0);
    assert_true(n == 4 && p[1].x == 20);
    free(p);
    assert_int_equal(report_series_peer(&peers[0].lines, REPORT_GAMMA, REPORT_BY_ROUND, &p, &n), 0);
    assert_int_equal(n, 0);
    free(p);
}

/* An estimate stands at the round that it is of, once. */
static void test_drift(void **state)
{
    (void)state;
    struct report_point *p;
    size_t n;
    make(1, 5);
    for (size_t i = 1; i < 5; i++) {
        rows[0][i].at[REPORT_RELATIVE_DRIFT] = i < 4 ? 0.5 : 0.25;
        rows[0][i].at[REPORT_DRIFT_ROUND] = i < 4 ? 0 : 3;
    }
    assert_int_equal(
        report_series_peer(&peers[0].lines, REPORT_RELATIVE_DRIFT, REPORT_BY_ROUND, &p, &n), 0);
    assert_int_equal(n, 2);
    assert_true(p[0].x == 0 && p[0].y == 0.5 && p[1].x == 3 && p[1].y == 0.25);
    free(p);
}

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Against sorting each round's figures for itself. Some are missing. */
static void test_band(void **state)
{
    (void)state;
    struct report_band *b;
    size_t n;
    for (size_t n_peers = 1; n_peers <= PEERS; n_peers += 3) {
        make(n_peers, 50);
        for (size_t p = 0; p < n_peers; p++)
            for (size_t i = 0; i < 50; i++)
                if (p > 0 && chance() < 0.3)
                    rows[p][i].at[REPORT_LOSS] = (double)NAN;
        assert_int_equal(report_series_band(&run, REPORT_LOSS, REPORT_BY_TIME, &b, &n), 0);
        assert_int_equal(n, 50);
        for (size_t i = 0; i < n; i++) {
            double y[PEERS], x[PEERS];
            size_t k = 0;
            for (size_t p = 0; p < n_peers; p++)
                if (isfinite(rows[p][i].at[REPORT_LOSS])) {
                    y[k] = rows[p][i].at[REPORT_LOSS];
                    x[k++] = rows[p][i].at[REPORT_TIME_S];
                }
            qsort(y, k, sizeof *y, by_number);
            qsort(x, k, sizeof *x, by_number);
            assert_true(b[i].low == y[0] && b[i].high == y[k - 1]);
            assert_true(b[i].middle == y[(k - 1) / 2] && b[i].x == x[(k - 1) / 2]);
        }
        free(b);
    }
    make(3, 0);
    assert_int_equal(report_series_band(&run, REPORT_LOSS, REPORT_BY_TIME, &b, &n), 0);
    assert_true(n == 0 && b == NULL);
}

/* Every point that is left was one, in its order; the ends and the extremes stay. */
static void test_thin(void **state)
{
    (void)state;
    static struct report_point all[ROWS], left[ROWS];
    for (size_t n = 0; n <= ROWS; n += n < 20 ? 1 : 97)
        for (size_t most = 4; most < 40; most += 5) {
            double least = INFINITY, greatest = -INFINITY;
            for (size_t i = 0; i < n; i++) {
                all[i] = (struct report_point){(double)i, chance()};
                least = fmin(least, all[i].y);
                greatest = fmax(greatest, all[i].y);
            }
            memcpy(left, all, sizeof all);
            size_t kept = report_series_thin(left, n, most);
            assert_true(kept <= most && kept <= n && (kept == n || n > most));
            double found_least = INFINITY, found_greatest = -INFINITY;
            for (size_t i = 0; i < kept; i++) {
                assert_true(i == 0 || left[i].x > left[i - 1].x);
                assert_true(all[(size_t)left[i].x].y == left[i].y);
                found_least = fmin(found_least, left[i].y);
                found_greatest = fmax(found_greatest, left[i].y);
            }
            assert_true(found_least == least && found_greatest == greatest);
            if (n > 0)
                assert_true(left[0].x == 0 && left[kept - 1].x == (double)(n - 1));
        }
}

static void test_thin_band(void **state)
{
    (void)state;
    static struct report_band b[ROWS];
    for (size_t i = 0; i < ROWS; i++)
        b[i] = (struct report_band){(double)i, 1.0, 2.0, 3.0};
    b[500].low = -5;
    b[501].high = 9;
    assert_int_equal(report_series_thin_band(b, ROWS, 10), 10);
    double low = 1, high = 3;
    for (size_t i = 0; i < 10; i++) {
        low = fmin(low, b[i].low);
        high = fmax(high, b[i].high);
        assert_true(b[i].middle == 2.0 && (i == 0 || b[i].x > b[i - 1].x));
    }
    assert_true(low == -5 && high == 9);
    assert_int_equal(report_series_thin_band(b, 7, 10), 7);
}

/* ---- Scripts ---- */

/* Names of runs and peers may be anything, and are in no script. */
static void test_no_names(void **state)
{
    (void)state;
    static const char evil[] = "';system('x')#`x`\"];\n";
    for (size_t n_peers = 2; n_peers <= PEERS; n_peers += 18) {
        make(n_peers, 30);
        strcpy(run.label, evil);
        strcpy(run.path, evil);
        snprintf(run.text, sizeof run.text, "command=%s--peers=%zu\ntopology=ring\nseed=1\n", evil,
                 n_peers);
        for (size_t p = 0; p < n_peers; p++)
            strcpy(peers[p].name, evil);
        struct report_text t = {0};
        char why[REPORT_WHY];
        for (const struct report_curve *c = report_chart_curves; c->title != NULL; c++)
            assert_true(report_chart_curve(&t, c, &run, 1) >= 0);
        report_chart_times(&t, &run);
        assert_int_equal(report_chart_bytes(&t, &run), 0); /* Nothing was received. */
        assert_int_equal(report_chart_graph(&t, &run, why), 1);
        assert_true(t.n > 100);
        assert_null(strstr(t.bytes, "system"));
        assert_null(strchr(t.bytes, '`'));
        report_text_close(&t);
    }
}

static void test_graph(void **state)
{
    (void)state;
    struct report_text t = {0};
    char why[REPORT_WHY];
    make(4, 1);
    assert_int_equal(report_chart_graph(&t, &run, why), 0);
    assert_non_null(strstr(why, "no run.txt"));
    strcpy(run.text, "command=local\n--peers=4\nseed=1\ntopology=ring\n");
    assert_int_equal(report_chart_graph(&t, &run, why), 1);
    assert_non_null(strstr(t.bytes, "0 -- 1;\n0 -- 3;\n1;\n1 -- 2;\n2;\n2 -- 3;\n"));
    report_text_close(&t);
    static const struct
    {
        const char *text, *why;
    } refused[] = {
        {"--peers=201\nseed=1\ntopology=ring\n", "201 peers, 200 at most"},
        {"--peers=99999999999\nseed=1\ntopology=ring\n", "200 at most"},
        {"--peers=60\nseed=1\ntopology=complete\n", "1770 edges, 800 at most"},
        {"--peers=4\nseed=1\ntopology=knot\n", "a topology that is none"},
        {"--peers=4\nseed=-1\ntopology=ring\n", "no run.txt"},
        {"command=train\ntopology=ring\nseed=1\n", ""},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        strcpy(run.text, refused[i].text);
        assert_int_equal(report_chart_graph(&t, &run, why), 0);
        assert_non_null(strstr(why, refused[i].why));
        assert_int_equal(t.n, 0);
    }
    strcpy(run.text, "seed=1\ntopology=ring\n"); /* As many as there are files of. */
    assert_int_equal(report_chart_graph(&t, &run, why), 1);
    assert_null(strstr(t.bytes, "4;"));
    report_text_close(&t);
}

/* There is no script of what nobody knows; 0 has no place on a logarithmic axis. */
static void test_no_figures(void **state)
{
    (void)state;
    struct report_text t = {0};
    make(2, 3);
    rows[0][1].at[REPORT_RELATIVE_DRIFT] = 0;
    rows[0][1].at[REPORT_DRIFT_ROUND] = 1;
    for (const struct report_curve *c = report_chart_curves; c->title != NULL; c++) {
        int any = report_chart_curve(&t, c, &run, 1);
        assert_int_equal(any, c->figure == REPORT_LOSS);
        assert_int_equal(t.n > 0, any);
        report_text_close(&t);
    }
    assert_int_equal(report_chart_times(&t, &run), 0);
    assert_int_equal(t.n, 0);
    report_text_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peer),      cmocka_unit_test(test_drift),
        cmocka_unit_test(test_band),      cmocka_unit_test(test_thin),
        cmocka_unit_test(test_thin_band), cmocka_unit_test(test_no_names),
        cmocka_unit_test(test_graph),     cmocka_unit_test(test_no_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
