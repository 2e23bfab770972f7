/* peer/report/comparison.h -- arms side by side: a table of means, curves, CSV; one HTML page.
 *
 *   trials (a run each)  --those of an arm that count-->  spreads  -->  page, and the table of peer/cmd
 *
 * A trial counts where its run ended with consensus. All others are counted apart and named, and are in
 * no mean.
 */
#ifndef PEER_REPORT_COMPARISON_H
#define PEER_REPORT_COMPARISON_H

#include "peer/report/curve.h"
#include "peer/report/page.h"
#include "peer/report/spread.h"

enum report_trial_state {
    REPORT_TRIAL_LEFT,  /* Not begun, or interrupted. */
    REPORT_TRIAL_DONE,  /* Exit code 0. */
    REPORT_TRIAL_APART, /* It ended without consensus, or diverged. */
    REPORT_TRIAL_FAILED,
    REPORT_TRIAL_STATES
};
extern const char *const report_trial_name[REPORT_TRIAL_STATES]; /* "left", "done" ... */
extern const char *const report_trial_text[REPORT_TRIAL_STATES]; /* For people. */

enum { REPORT_BUDGETS = 4 };

enum report_measure {
    REPORT_M_ACCURACY,  /* On all that is held out, of the peer that does worst; */
    REPORT_M_TEST_LOSS, /* the same. */
    REPORT_M_LOSS,      /* Training loss at the end, the greatest of all peers. */
    REPORT_M_DRIFT,     /* Relative, exact. */
    REPORT_M_ROUNDS,    /* With those of the last phase. */
    REPORT_M_SENT,      /* By all peers. */
    REPORT_M_SECONDS,   /* Simulated, or by the clock. */
    REPORT_M_BUDGET,    /* Accuracy at each of the budgets. */
    REPORT_MEASURES = REPORT_M_BUDGET + REPORT_BUDGETS
};
extern const char *const report_measure_name[REPORT_MEASURES];

struct report_trial
{
    enum report_trial_state state;
    int exit_code;
    double at[REPORT_MEASURES]; /* NaN: not known. */
    struct report_stop *stops;  /* Owned. */
    size_t n_stops;
    struct report_point *drift; /* The median of the peers' estimates, by round; owned. */
    size_t n_drift;
    char verdict[REPORT_VERDICT_MAX]; /* What the run said, or why it failed; or "". */
};

/* All is not known, and the trial left. */
void report_trial_init(struct report_trial *t);
void report_trial_close(struct report_trial *t);

/* Take a finished run's figures and curves; its state goes by its exit code. 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int report_trial_take(struct report_trial *t,
                                                          const struct report_run *run);

/* The axis of a budget, and where it lies. */
struct report_budget
{
    enum report_axis axis; /* REPORT_BY_BYTES or REPORT_BY_TIME. */
    double most;
};

struct report_arm
{
    const char *name, *lr;      /* Borrowed. `lr` is "" where nothing is known of it. */
    bool edge;                  /* That lr is the least or the greatest that was tried. */
    struct report_trial *trial; /* n_seeds of them, borrowed. */
    uint32_t n[REPORT_TRIAL_STATES];
    struct report_spread at[REPORT_MEASURES];
};

struct report_comparison
{
    struct report_arm *arm;
    size_t n_arms;
    uint32_t n_seeds;
    uint64_t seed; /* The first. */
    struct report_budget budget[REPORT_BUDGETS];
    uint32_t n_budgets;
    bool simulated;
    const char *title; /* The file's name. */
    const char *how;   /* A sentence: how learning rates were chosen. */
};

/* Where the budgets have no most, find it: the least that any trial that counts came to. Then find every
 * trial's accuracy there, and the spreads of all arms. 0 or -ENOMEM. */
__attribute__((warn_unused_result)) int report_comparison_sum(struct report_comparison *c);

/* The arm of the best mean of a measure of accuracy, of those whose trials all count; n_arms: none. */
size_t report_comparison_best(const struct report_comparison *c, enum report_measure measure);

/* So many arms have nothing of a measure of which the best one has all: of a budget, those that were
 * first evaluated beyond it, or did not get there. */
size_t report_comparison_unknown(const struct report_comparison *c, enum report_measure measure);

/* What a measure is called, with its budget where it has one. */
enum { REPORT_MEASURE_TEXT = 96 };
void report_comparison_words(const struct report_comparison *c, enum report_measure measure,
                             char out[REPORT_MEASURE_TEXT]);

/* With this a page begins, and with this a table. */
extern const char report_comparison_mark[], report_comparison_csv_mark[];
__attribute__((warn_unused_result)) int report_comparison_page(struct report_text *out,
                                                               const struct report_comparison *c,
                                                               const struct report_drawer *drawer);

/* gnuplot's script for accuracy by an axis, or for the drift by round. False: there is nothing to
 * draw, and nothing was written. */
bool report_comparison_curve(struct report_text *out, const struct report_comparison *c,
                             enum report_axis axis, bool drift);

/* A line of CSV for each trial, behind one that names the columns. */
void report_comparison_csv(struct report_text *out, const struct report_comparison *c);

#endif
