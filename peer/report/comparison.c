/* peer/report/comparison.c -- trials made figures of arms. */
#include "peer/report/comparison.h"

#include "peer/report/final.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_DONE = 0, EXIT_APART = 3 };

const char *const report_trial_name[REPORT_TRIAL_STATES] = {[REPORT_TRIAL_LEFT] = "left",
                                                            [REPORT_TRIAL_DONE] = "done",
                                                            [REPORT_TRIAL_APART] = "apart",
                                                            [REPORT_TRIAL_FAILED] = "failed"};
const char *const report_trial_text[REPORT_TRIAL_STATES] = {[REPORT_TRIAL_LEFT] = "not done",
                                                            [REPORT_TRIAL_DONE] = "done",
                                                            [REPORT_TRIAL_APART] =
                                                                "without consensus or diverged",
                                                            [REPORT_TRIAL_FAILED] = "failed"};
const char *const report_measure_name[REPORT_MEASURES] = {
    [REPORT_M_ACCURACY] = "accuracy",
    [REPORT_M_TEST_LOSS] = "test_loss",
    [REPORT_M_LOSS] = "loss",
    [REPORT_M_DRIFT] = "relative_drift",
    [REPORT_M_ROUNDS] = "rounds",
    [REPORT_M_SENT] = "bytes_sent",
    [REPORT_M_SECONDS] = "seconds",
    [REPORT_M_BUDGET] = "accuracy_at_budget_1",
    [REPORT_M_BUDGET + 1] = "accuracy_at_budget_2",
    [REPORT_M_BUDGET + 2] = "accuracy_at_budget_3",
    [REPORT_M_BUDGET + 3] = "accuracy_at_budget_4"};

/* ---- A trial. ---- */

void report_trial_init(struct report_trial *t)
{
    *t = (struct report_trial){.state = REPORT_TRIAL_LEFT};
    for (int m = 0; m < REPORT_MEASURES; m++)
        t->at[m] = (double)NAN;
}

void report_trial_close(struct report_trial *t)
{
    free(t->stops);
    free(t->drift);
    report_trial_init(t);
}

static int take_drift(struct report_trial *t, const struct report_run *run)
{
    struct report_band *bands;
    size_t n;
    int err = report_series_band(run, REPORT_RELATIVE_DRIFT, REPORT_BY_ROUND, &bands, &n);
    if (err < 0 || n == 0)
        return err;
    t->drift = calloc(n, sizeof *t->drift);
    for (size_t i = 0; i < n && t->drift != NULL; i++)
        t->drift[i] = (struct report_point){bands[i].x, bands[i].middle};
    free(bands);
    if (t->drift == NULL)
        return -ENOMEM;
    t->n_drift = report_series_thin(t->drift, n, REPORT_POINTS);
    return 0;
}

int report_trial_take(struct report_trial *t, const struct report_run *run)
{
    struct report_final f = report_final_of(run);
    report_trial_close(t);
    t->exit_code = isfinite(f.exit_code) ? (int)f.exit_code : 1;
    t->state = t->exit_code == EXIT_DONE    ? REPORT_TRIAL_DONE
               : t->exit_code == EXIT_APART ? REPORT_TRIAL_APART
                                            : REPORT_TRIAL_FAILED;
    t->at[REPORT_M_ACCURACY] = f.accuracy.low;
    t->at[REPORT_M_TEST_LOSS] = f.test_loss.high;
    t->at[REPORT_M_LOSS] = f.loss.high;
    t->at[REPORT_M_DRIFT] = f.exact;
    t->at[REPORT_M_ROUNDS] = f.rounds + (isfinite(f.settle_rounds) ? f.settle_rounds : 0);
    t->at[REPORT_M_SENT] = f.sent;
    t->at[REPORT_M_SECONDS] = f.seconds;
    memcpy(t->verdict, run->end.verdict, sizeof t->verdict);
    int err = report_curve_stops(run, &t->stops, &t->n_stops);
    return err == 0 ? take_drift(t, run) : err;
}

/* ---- Arms. ---- */

static bool is_done(const struct report_trial *t)
{
    return t->state == REPORT_TRIAL_DONE;
}

/* How far all came of whom there is a curve; 0: nobody has one. */
static double least_of(const struct report_comparison *c, enum report_axis axis)
{
    double least = INFINITY;
    for (size_t a = 0; a < c->n_arms; a++)
        for (uint32_t i = 0; i < c->n_seeds; i++) {
            const struct report_trial *t = &c->arm[a].trial[i];
            if (is_done(t) && t->n_stops > 0)
                least = fmin(least, report_curve_x(&t->stops[t->n_stops - 1], axis));
        }
    return isfinite(least) ? least : 0;
}

static void find_at_budgets(struct report_comparison *c)
{
    for (uint32_t b = 0; b < c->n_budgets; b++) {
        struct report_budget *budget = &c->budget[b];
        if (!(budget->most > 0))
            budget->most = least_of(c, budget->axis);
        for (size_t a = 0; a < c->n_arms; a++)
            for (uint32_t i = 0; i < c->n_seeds; i++) {
                struct report_trial *t = &c->arm[a].trial[i];
                t->at[REPORT_M_BUDGET + b] =
                    report_curve_at(t->stops, t->n_stops, budget->axis, budget->most);
            }
    }
}

static void sum_arm(struct report_arm *arm, uint32_t n_seeds, double *x)
{
    memset(arm->n, 0, sizeof arm->n);
    for (uint32_t i = 0; i < n_seeds; i++)
        arm->n[arm->trial[i].state]++;
    for (int m = 0; m < REPORT_MEASURES; m++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < n_seeds; i++)
            if (is_done(&arm->trial[i]))
                x[n++] = arm->trial[i].at[m];
        arm->at[m] = report_spread_of(x, n);
    }
}

int report_comparison_sum(struct report_comparison *c)
{
    double *x = calloc(c->n_seeds, sizeof *x);
    if (x == NULL)
        return -ENOMEM;
    find_at_budgets(c);
    for (size_t a = 0; a < c->n_arms; a++)
        sum_arm(&c->arm[a], c->n_seeds, x);
    free(x);
    return 0;
}

size_t report_comparison_best(const struct report_comparison *c, enum report_measure measure)
{
    size_t best = c->n_arms;
    double most = -INFINITY;
    for (size_t a = 0; a < c->n_arms; a++) {
        const struct report_arm *arm = &c->arm[a];
        if (arm->n[REPORT_TRIAL_DONE] < c->n_seeds || !(arm->at[measure].mean > most))
            continue;
        best = a;
        most = arm->at[measure].mean;
    }
    return best;
}

size_t report_comparison_unknown(const struct report_comparison *c, enum report_measure measure)
{
    size_t n = 0;
    for (size_t a = 0; a < c->n_arms; a++)
        n += isfinite(c->arm[a].at[measure].mean) ? 0 : 1;
    return report_comparison_best(c, measure) < c->n_arms ? n : 0;
}

void report_comparison_words(const struct report_comparison *c, enum report_measure measure,
                             char out[REPORT_MEASURE_TEXT])
{
    if (measure < REPORT_M_BUDGET) {
        snprintf(out, REPORT_MEASURE_TEXT, "accuracy");
        return;
    }
    const struct report_budget *b = &c->budget[measure - REPORT_M_BUDGET];
    if (!(b->most > 0))
        snprintf(out, REPORT_MEASURE_TEXT, "accuracy at a budget that no run gives");
    else if (b->axis == REPORT_BY_BYTES)
        snprintf(out, REPORT_MEASURE_TEXT, "accuracy at %.4g MB", b->most * 1e-6);
    else
        snprintf(out, REPORT_MEASURE_TEXT, "accuracy at %.4g s", b->most);
}

/* ---- CSV. ---- */

const char report_comparison_csv_mark[] = "arm,lr,seed,state,exit_code";

void report_comparison_csv(struct report_text *out, const struct report_comparison *c)
{
    report_text_put(out, report_comparison_csv_mark);
    for (int m = 0; m < REPORT_M_BUDGET + (int)c->n_budgets; m++)
        report_text_print(out, ",%s", report_measure_name[m]);
    report_text_put(out, ",verdict\r\n");
    for (size_t a = 0; a < c->n_arms; a++)
        for (uint32_t i = 0; i < c->n_seeds; i++) {
            const struct report_trial *t = &c->arm[a].trial[i];
            report_text_csv(out, c->arm[a].name);
            report_text_put(out, ",");
            report_text_csv(out, c->arm[a].lr);
            report_text_print(out, ",%llu,%s,", (unsigned long long)(c->seed + i),
                              report_trial_name[t->state]);
            if (t->state != REPORT_TRIAL_LEFT)
                report_text_print(out, "%d", t->exit_code);
            for (int m = 0; m < REPORT_M_BUDGET + (int)c->n_budgets; m++) {
                report_text_put(out, ",");
                report_text_number(out, t->at[m]);
            }
            report_text_put(out, ",");
            report_text_csv(out, t->verdict);
            report_text_put(out, "\r\n");
        }
}
