/* tests/unit/report_spread.c -- means, deviations and who is told apart: peer/report/spread.h; and curves
 * read between their points: peer/report/curve.h; and arms: peer/report/comparison.h. */
#include "peer/report/comparison.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fmax(1, fabs(b));
}

static void a_spread_is_of_a_sample(void **state)
{
    (void)state;
    const double x[] = {1, 2, 4}, bad[] = {1, NAN}, far[] = {1e9, 1e9 + 1};
    struct report_spread s = report_spread_of(x, 3);
    assert_true(near(s.mean, 7.0 / 3) && near(s.deviation, sqrt(7.0 / 3)));
    assert_true(near(s.least, 1) && near(s.most, 4) && s.n == 3);
    s = report_spread_of(x, 1);
    assert_true(near(s.mean, 1) && isnan(s.deviation));
    assert_true(isnan(report_spread_of(x, 0).mean));
    s = report_spread_of(bad, 2);
    assert_true(isnan(s.mean) && isnan(s.least) && isnan(s.deviation));
    assert_true(near(report_spread_of(far, 2).deviation, sqrt(0.5)));
}

/* By hand: t = 4.11 with 3.4 degrees of freedom, of which 3 count; t = 2.08 with 2.5. */
static void welch_tells_apart_what_is(void **state)
{
    (void)state;
    const double x[] = {1, 2, 3}, y[] = {5, 6, 8}, z[] = {4, 4, 9}, one[] = {3};
    struct report_spread a = report_spread_of(x, 3), b = report_spread_of(y, 3),
                         c = report_spread_of(z, 3), d = report_spread_of(one, 1);
    assert_int_equal(report_spread_differ(&a, &b), REPORT_DIFFER_YES);
    assert_int_equal(report_spread_differ(&b, &a), REPORT_DIFFER_YES);
    assert_int_equal(report_spread_differ(&a, &c), REPORT_DIFFER_TIE);
    assert_int_equal(report_spread_differ(&a, &d), REPORT_DIFFER_UNKNOWN);
    const double same[] = {2, 2}, other[] = {3, 3};
    struct report_spread e = report_spread_of(same, 2), f = report_spread_of(other, 2);
    assert_int_equal(report_spread_differ(&e, &e), REPORT_DIFFER_TIE);
    assert_int_equal(report_spread_differ(&e, &f), REPORT_DIFFER_YES);
}

static void a_curve_is_a_line_between_its_stops_and_nothing_beyond(void **state)
{
    (void)state;
    const struct report_stop s[] = {{10, 100, 1, 0.5}, {20, 300, 2, 0.7}, {30, 400, 4, 0.6}};
    assert_true(near(report_curve_at(s, 3, REPORT_BY_BYTES, 200), 0.6));
    assert_true(near(report_curve_at(s, 3, REPORT_BY_TIME, 3), 0.65));
    assert_true(near(report_curve_at(s, 3, REPORT_BY_ROUND, 10), 0.5));
    assert_true(near(report_curve_at(s, 3, REPORT_BY_BYTES, 400), 0.6));
    assert_true(isnan(report_curve_at(s, 3, REPORT_BY_BYTES, 99)));
    assert_true(isnan(report_curve_at(s, 3, REPORT_BY_BYTES, 401)));
    assert_true(isnan(report_curve_at(NULL, 0, REPORT_BY_BYTES, 1)));
}

static void put_row(struct report_row *row, double round, double accuracy, double bytes, double s)
{
    for (int i = 0; i < REPORT_COLUMNS; i++)
        row->at[i] = (double)NAN;
    row->start = 0;
    row->at[REPORT_ROUND] = round;
    row->at[REPORT_ACCURACY] = accuracy;
    row->at[REPORT_BYTES_SENT] = bytes;
    row->at[REPORT_TIME_S] = s;
}

static void a_stop_is_of_all_peers_or_none(void **state)
{
    (void)state;
    static struct report_run run;
    struct report_peer *peer = calloc(2, sizeof *peer);
    struct report_row one[3] = {0}, two[3] = {0};
    struct report_start start = {0};
    struct report_stop *stops;
    size_t n;
    assert_non_null(peer);
    put_row(&one[0], 1, 0.5, 10, 1);
    put_row(&one[1], 2, 0.6, 20, 2);
    put_row(&one[2], 3, 0.8, 30, 3);
    put_row(&two[0], 1, 0.4, 11, 1.5);
    put_row(&two[1], 2, NAN, 22, 2.5);
    put_row(&two[2], 3, 0.9, 33, 3.5);
    peer[0].lines = (struct report_lines){.row = one, .n = 3, .start = &start, .n_starts = 1};
    peer[1].lines = (struct report_lines){.row = two, .n = 3, .start = &start, .n_starts = 1};
    run.peer = peer;
    run.n_peers = 2;
    assert_int_equal(report_curve_stops(&run, &stops, &n), 0);
    assert_int_equal(n, 2);
    assert_true(near(stops[0].accuracy, 0.4) && near(stops[0].sent, 21)
                && near(stops[0].seconds, 1.5));
    assert_true(near(stops[1].accuracy, 0.8) && near(stops[1].sent, 63) && near(stops[1].round, 3));
    free(stops);
    free(peer);
}

static void what_did_not_end_well_is_in_no_mean(void **state)
{
    (void)state;
    struct report_trial t[4];
    struct report_arm arm[2] = {{.name = "a", .lr = "1", .trial = t},
                                {.name = "b", .lr = "=2", .trial = t + 2}};
    struct report_comparison c = {.arm = arm, .n_arms = 2, .n_seeds = 2, .seed = 5};
    struct report_text csv = {0};
    for (int i = 0; i < 4; i++) {
        report_trial_init(&t[i]);
        t[i].state = REPORT_TRIAL_DONE;
        t[i].at[REPORT_M_ACCURACY] = 0.5 + 0.1 * i;
    }
    t[3].state = REPORT_TRIAL_APART;
    assert_int_equal(report_comparison_sum(&c), 0);
    assert_true(near(arm[1].at[REPORT_M_ACCURACY].mean, 0.7) && arm[1].n[REPORT_TRIAL_APART] == 1);
    assert_true(near(arm[0].at[REPORT_M_ACCURACY].mean, 0.55));
    assert_int_equal(report_comparison_best(&c, REPORT_M_ACCURACY), 0); /* b is not whole. */
    report_comparison_csv(&csv, &c);
    assert_non_null(strstr(csv.bytes, "\r\nb,'=2,6,apart,0,0.8,,,,,,,\r\n"));
    report_text_close(&csv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spread_is_of_a_sample),
        cmocka_unit_test(welch_tells_apart_what_is),
        cmocka_unit_test(a_curve_is_a_line_between_its_stops_and_nothing_beyond),
        cmocka_unit_test(a_stop_is_of_all_peers_or_none),
        cmocka_unit_test(what_did_not_end_well_is_in_no_mean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
