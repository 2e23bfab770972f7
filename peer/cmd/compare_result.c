/* peer/cmd/compare_result.c -- what came of a comparison: a table or one JSON object, a page, CSV. */
#include "nn/files/replace.h"
#include "peer/cmd/compare.h"
#include "peer/cmd/files.h"
#include "peer/cmd/progress.h"
#include "peer/cmd/report_draw.h"
#include "peer/uv/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char how_chosen[] = "The learning rate of each arm was chosen from as many as every "
                                 "other arm had: by one run with each, "
                                 "trained on nine tenths of the training samples and judged by its "
                                 "accuracy on the tenth left out; "
                                 "no test sample had a part in it.";
static const char how_given[] = "The learning rate of each arm was given, and none was chosen.";

/* ---- Figures. ---- */

/* `lr` is "" where none has been chosen. */
static void fill_arm(const struct compare *c, uint32_t i, struct report_arm *arm)
{
    const struct compare_choice *choice = &c->choice[i];
    const char *lr = choice->made ? arms_rate(&c->arms, i, choice->rate) : "";
    *arm = (struct report_arm){.name = c->arms.arm[i].name,
                               .lr = lr != NULL ? lr : "default",
                               .edge = choice->made && arms_rate_at_edge(&c->arms, i, choice->rate),
                               .trial = &c->trial[(size_t)i * c->arms.n_seeds]};
}

static int sum(const struct compare *c, struct report_comparison *r)
{
    *r = (struct report_comparison){.n_arms = c->arms.n_arms,
                                    .n_seeds = c->arms.n_seeds,
                                    .seed = c->arms.seed,
                                    .n_budgets = c->arms.n_budgets,
                                    .simulated = strcmp(c->arms.command->name, "sim") == 0,
                                    .title = file_base_name(c->path),
                                    .how = arms_rates(&c->arms, 0) > 1 ? how_chosen : how_given};
    for (uint32_t b = 0; b < r->n_budgets; b++)
        r->budget[b] = (struct report_budget){
            c->arms.budget[b].bytes ? REPORT_BY_BYTES : REPORT_BY_TIME, c->arms.budget[b].most};
    r->arm = calloc(r->n_arms, sizeof *r->arm);
    if (r->arm == NULL)
        return -1;
    for (uint32_t i = 0; i < c->arms.n_arms; i++)
        fill_arm(c, i, &r->arm[i]);
    return report_comparison_sum(r);
}

/* ---- The table. ---- */

static void print_accuracy(const struct report_spread *s)
{
    char mean[CMD_PROGRESS_TEXT], text[2 * CMD_PROGRESS_TEXT];
    cmd_progress_percent(mean, s->mean);
    if (isfinite(s->deviation))
        snprintf(text, sizeof text, "%s +- %.2f", mean, 100 * s->deviation);
    else
        snprintf(text, sizeof text, "%s", mean);
    printf(" %17s", text);
}

static void print_row(const struct report_comparison *r, const struct report_arm *arm, int width)
{
    char lr[64], seeds[32], a[CMD_PROGRESS_TEXT], b[CMD_PROGRESS_TEXT], d[CMD_PROGRESS_TEXT],
        e[CMD_PROGRESS_TEXT], sent[CMD_PROGRESS_TEXT] = "-";
    snprintf(lr, sizeof lr, "%.40s%s", arm->lr, arm->edge ? " *" : "");
    snprintf(seeds, sizeof seeds, "%u of %u", (unsigned)arm->n[REPORT_TRIAL_DONE],
             (unsigned)r->n_seeds);
    printf("%-*s %9s %9s", width, arm->name, seeds, lr);
    print_accuracy(&arm->at[REPORT_M_ACCURACY]);
    if (isfinite(arm->at[REPORT_M_SENT].mean))
        cmd_progress_bytes(sent, (uint64_t)arm->at[REPORT_M_SENT].mean);
    printf(" %9s %9s %7s %10s %9s",
           cmd_progress_number(a, "%.4f", arm->at[REPORT_M_TEST_LOSS].mean),
           cmd_progress_number(b, "%.2e", arm->at[REPORT_M_DRIFT].most),
           cmd_progress_number(d, "%.0f", arm->at[REPORT_M_ROUNDS].mean), sent,
           cmd_progress_number(e, "%.2f", arm->at[REPORT_M_SECONDS].mean));
    for (uint32_t i = 0; i < r->n_budgets; i++)
        print_accuracy(&arm->at[REPORT_M_BUDGET + i]);
    putchar('\n');
}

static void print_best(const struct report_comparison *r, enum report_measure m)
{
    char words[REPORT_MEASURE_TEXT], a[CMD_PROGRESS_TEXT];
    size_t best = report_comparison_best(r, m), n = 0;
    report_comparison_words(r, m, words);
    if (best == r->n_arms) {
        printf("best %s: unknown, as no arm has it of all its seeds\n", words);
        return;
    }
    const struct report_spread *s = &r->arm[best].at[m];
    printf("best %s: %s, %s", words, r->arm[best].name, cmd_progress_percent(a, s->mean));
    for (size_t i = 0; i < r->n_arms; i++)
        if (i != best && report_spread_differ(s, &r->arm[i].at[m]) == REPORT_DIFFER_TIE)
            printf("%s %s", n++ > 0 ? "," : "; not told apart from it:", r->arm[i].name);
    size_t unknown = report_comparison_unknown(r, m);
    if (unknown > 0)
        printf("; unknown of %zu of %zu arms, which got there before they were evaluated, or never",
               unknown, r->n_arms);
    printf("%s\n", isfinite(s->deviation) ? "" : " (one seed: the noise is not known)");
}

static void print_missing(const struct report_comparison *r)
{
    for (size_t a = 0; a < r->n_arms; a++)
        for (uint32_t i = 0; i < r->n_seeds; i++) {
            const struct report_trial *t = &r->arm[a].trial[i];
            if (t->state != REPORT_TRIAL_DONE)
                printf("in no mean: %s, seed %" PRIu64 ": %s%s%s\n", r->arm[a].name, r->seed + i,
                       report_trial_text[t->state], t->verdict[0] != '\0' ? ": " : "", t->verdict);
        }
}

/* The runs to choose by that keep an arm from being compared, or did not count. */
static void print_choices(const struct compare *c)
{
    uint32_t n = arms_rates(&c->arms, 0);
    for (uint32_t arm = 0; arm < c->arms.n_arms && n > 1; arm++)
        for (uint32_t i = 0; i < n; i++) {
            const struct report_trial *t = &c->tune[arm * n + i];
            if (t->state != REPORT_TRIAL_DONE)
                printf("to choose lr by: %s, lr %s: %s%s%s\n", c->arms.arm[arm].name,
                       arms_rate(&c->arms, arm, i), report_trial_text[t->state],
                       t->verdict[0] != '\0' ? ": " : "", t->verdict);
        }
}

static void print_table(const struct compare *c, const struct report_comparison *r)
{
    int width = 3;
    bool edge = false;
    for (size_t a = 0; a < r->n_arms; a++) {
        int w = (int)strlen(r->arm[a].name);
        width = w > width ? w : width;
        edge |= r->arm[a].edge;
    }
    printf("%-*s %9s %9s %17s %9s %9s %7s %10s %9s", width, "arm", "seeds", "lr", "accuracy",
           "test loss", "drift", "rounds", "sent", r->simulated ? "sim. s" : "seconds");
    for (uint32_t b = 0; b < r->n_budgets; b++) {
        char words[REPORT_MEASURE_TEXT];
        report_comparison_words(r, (enum report_measure)(REPORT_M_BUDGET + b), words);
        printf(" %17s", strncmp(words, "accuracy ", 9) == 0 ? words + 9 : words);
    }
    putchar('\n');
    for (size_t a = 0; a < r->n_arms; a++)
        print_row(r, &r->arm[a], width);
    putchar('\n');
    if (edge)
        printf("*: the least or the greatest lr that was tried: a better one may lie beyond\n");
    print_best(r, REPORT_M_ACCURACY);
    for (uint32_t b = 0; b < r->n_budgets; b++)
        print_best(r, (enum report_measure)(REPORT_M_BUDGET + b));
    print_choices(c);
    print_missing(r);
    printf("runs in %s\n", c->out);
}

/* ---- JSON. ---- */

static json_t *trial_object(const struct report_trial *t, int n_measures)
{
    json_t *j = json_object();
    json_object_set_new(j, "state", json_string(report_trial_name[t->state]));
    json_object_set_new(j, "exit_code",
                        t->state == REPORT_TRIAL_LEFT ? json_null() : json_integer(t->exit_code));
    for (int m = 0; m < n_measures; m++)
        json_object_set_new(j, report_measure_name[m], uv_metrics_number(t->at[m]));
    json_object_set_new(j, "verdict",
                        t->verdict[0] != '\0' ? json_string(t->verdict) : json_null());
    return j;
}

static void put_path(const struct compare *c, json_t *j, uint32_t arm, uint32_t rate, uint64_t seed,
                     bool choosing)
{
    char dir[4096];
    if (cmd_compare_path(c, arm, rate, seed, choosing, "", dir, sizeof dir))
        json_object_set_new(j, "out", uv_metrics_text(dir));
}

static json_t *choices_of(const struct compare *c, uint32_t arm)
{
    uint32_t n = arms_rates(&c->arms, 0);
    json_t *list = json_array();
    for (uint32_t i = 0; i < n && n > 1; i++) {
        json_t *j = trial_object(&c->tune[arm * n + i], REPORT_M_BUDGET);
        json_object_set_new(j, "lr", json_string(arms_rate(&c->arms, arm, i)));
        put_path(c, j, arm, i, c->arms.seed, true);
        json_array_append_new(list, j);
    }
    return list;
}

static json_t *spread_object(const struct report_spread *s)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:I}", "mean", uv_metrics_number(s->mean), "deviation",
                     uv_metrics_number(s->deviation), "least", uv_metrics_number(s->least), "most",
                     uv_metrics_number(s->most), "n", (json_int_t)s->n);
}

static void put_counts(json_t *j, const uint32_t n[REPORT_TRIAL_STATES])
{
    for (int s = 0; s < REPORT_TRIAL_STATES; s++) {
        char key[16];
        snprintf(key, sizeof key, "n_%s", report_trial_name[s]);
        json_object_set_new(j, key, json_integer(n[s]));
    }
}

static json_t *arm_object(const struct compare *c, const struct report_comparison *r, uint32_t i)
{
    const struct report_arm *arm = &r->arm[i];
    int n_measures = REPORT_M_BUDGET + (int)r->n_budgets;
    json_t *values = json_object(), *runs = json_array(), *j = json_object();
    for (uint32_t k = 0; k < c->arms.arm[i].n; k++)
        json_object_set_new(values, c->arms.arm[i].pair[k].key,
                            json_string(c->arms.arm[i].pair[k].value));
    for (uint32_t s = 0; s < r->n_seeds; s++) {
        json_t *run = trial_object(&arm->trial[s], n_measures);
        json_object_set_new(run, "seed", json_integer((json_int_t)(r->seed + s)));
        if (c->choice[i].made)
            put_path(c, run, i, c->choice[i].rate, r->seed + s, false);
        json_array_append_new(runs, run);
    }
    json_object_set_new(j, "arm", json_string(arm->name));
    json_object_set_new(j, "values", values);
    json_object_set_new(j, "lr", c->choice[i].made ? json_string(arm->lr) : json_null());
    json_object_set_new(j, "lr_at_edge", json_boolean(arm->edge));
    json_object_set_new(j, "choices", choices_of(c, i));
    put_counts(j, arm->n);
    for (int m = 0; m < n_measures; m++)
        json_object_set_new(j, report_measure_name[m], spread_object(&arm->at[m]));
    json_object_set_new(j, "runs", runs);
    return j;
}

/* Who is best by a measure, and who cannot be told apart from that one. */
static json_t *best_object(const struct report_comparison *r, enum report_measure m)
{
    size_t best = report_comparison_best(r, m);
    json_t *ties = json_array();
    for (size_t i = 0; best < r->n_arms && i < r->n_arms; i++)
        if (i != best
            && report_spread_differ(&r->arm[best].at[m], &r->arm[i].at[m]) == REPORT_DIFFER_TIE)
            json_array_append_new(ties, json_string(r->arm[i].name));
    json_t *j =
        json_pack("{s:s, s:o, s:o}", "by", report_measure_name[m], "arm",
                  best < r->n_arms ? json_string(r->arm[best].name) : json_null(), "ties", ties);
    json_object_set_new(j, "n_unknown", json_integer((json_int_t)report_comparison_unknown(r, m)));
    if (m >= REPORT_M_BUDGET) {
        const struct report_budget *b = &r->budget[m - REPORT_M_BUDGET];
        json_object_set_new(j, b->axis == REPORT_BY_BYTES ? "bytes" : "budget_seconds",
                            uv_metrics_number(b->most > 0 ? b->most : (double)NAN));
    }
    return j;
}

static int print_json(const struct compare *c, const struct report_comparison *r,
                      const uint32_t n[REPORT_TRIAL_STATES], int code)
{
    json_t *arms = json_array(), *best = json_array(), *j = json_object();
    for (uint32_t i = 0; i < c->arms.n_arms; i++)
        json_array_append_new(arms, arm_object(c, r, i));
    json_array_append_new(best, best_object(r, REPORT_M_ACCURACY));
    for (uint32_t b = 0; b < r->n_budgets; b++)
        json_array_append_new(best, best_object(r, (enum report_measure)(REPORT_M_BUDGET + b)));
    json_object_set_new(j, "command", json_string(c->arms.command->name));
    json_object_set_new(j, "seed", json_integer((json_int_t)r->seed));
    json_object_set_new(j, "seeds", json_integer(r->n_seeds));
    json_object_set_new(j, "arms", arms);
    json_object_set_new(j, "best", best);
    put_counts(j, n);
    json_object_set_new(j, "interrupted", json_boolean(c->interrupted));
    json_object_set_new(j, "exit_code", json_integer(code));
    json_object_set_new(j, "out", uv_metrics_text(c->out));
    bool ok = json_dumpf(j, stdout, JSON_COMPACT | JSON_REAL_PRECISION(12)) == 0;
    json_decref(j);
    putchar('\n');
    return ok ? CMD_OK
              : cmd_fail(c->o, CMD_FAILED, "cannot write JSON (a value that is not UTF-8?)");
}

/* ---- Files. ---- */

static int write_file(const struct compare *c, const char *name, const struct report_text *text,
                      int err)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/%s", c->out, name);
    if (err == 0)
        err = text->broken ? -ENOMEM : n >= (int)sizeof path ? -ENAMETOOLONG : 0;
    if (err == 0)
        err = replace_file(path, text->bytes, text->n);
    return err < 0 ? cmd_cannot_write(c->o, NULL, path, err) : CMD_OK;
}

static int write_files(const struct compare *c, const struct report_comparison *r)
{
    struct report_text page = {0}, csv = {0};
    struct cmd_report_draw draw;
    struct report_drawer drawer;
    cmd_report_draw_init(&draw, &drawer);
    if (!drawer.there[REPORT_GNUPLOT])
        cmd_fail(c->o, CMD_OK,
                 "gnuplot is not installed (Debian: gnuplot-nox): the page has no curves");
    int code = write_file(c, "compare.html", &page, report_comparison_page(&page, r, &drawer));
    report_comparison_csv(&csv, r);
    int other = write_file(c, "compare.csv", &csv, 0);
    report_text_close(&page);
    report_text_close(&csv);
    return code != CMD_OK ? code : other;
}

/* ---- The result. ---- */

/* An arm of whose learning rate no choice was made, since none of its runs is any good. */
static bool has_bad_arm(const struct compare *c)
{
    uint32_t n = arms_rates(&c->arms, 0), bad = 0;
    for (uint32_t arm = 0; arm < c->arms.n_arms && n > 1; arm++) {
        uint32_t apart = 0;
        for (uint32_t i = 0; i < n; i++)
            apart += c->tune[arm * n + i].state == REPORT_TRIAL_APART;
        bad += apart == n;
    }
    return bad > 0;
}

static bool has_failed_choice(const struct compare *c)
{
    for (uint32_t i = 0; i < c->arms.n_arms * arms_rates(&c->arms, 0); i++)
        if (c->tune[i].state == REPORT_TRIAL_FAILED)
            return true;
    return false;
}

static int code_of(const struct compare *c, const uint32_t n[REPORT_TRIAL_STATES])
{
    if (c->interrupted && n[REPORT_TRIAL_LEFT] > 0)
        return CMD_INTERRUPTED;
    if (n[REPORT_TRIAL_FAILED] > 0 || has_failed_choice(c))
        return CMD_FAILED;
    if (n[REPORT_TRIAL_APART] > 0 || has_bad_arm(c))
        return CMD_APART;
    return n[REPORT_TRIAL_LEFT] > 0 ? CMD_FAILED : CMD_OK;
}

int cmd_compare_result(struct compare *c)
{
    struct report_comparison r;
    uint32_t n[REPORT_TRIAL_STATES] = {0};
    if (sum(c, &r) < 0) {
        free(r.arm);
        return cmd_fail(c->o, CMD_FAILED, "out of memory for the result");
    }
    for (uint32_t i = 0; i < c->arms.n_arms * c->arms.n_seeds; i++)
        n[c->trial[i].state]++;
    int code = code_of(c, n), told = CMD_OK, written = write_files(c, &r);
    if (options_flag(c->o, "json"))
        told = print_json(c, &r, n, code);
    else
        print_table(c, &r);
    free(r.arm);
    int flushed = cmd_finish(c->o);
    return code != CMD_OK ? code : written != CMD_OK ? written : told != CMD_OK ? told : flushed;
}
