/* peer/cmd/sweep_result.c -- reads what the runs of a sweep left, and puts it side by side. */
#include "peer/cmd/sweep_result.h"

#include "peer/cmd/progress.h"
#include "peer/store/outdir.h"
#include "peer/uv/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const state_name[SWEEP_STATES] = {[SWEEP_LEFT] = "left",
                                                     [SWEEP_DONE] = "done",
                                                     [SWEEP_APART] = "apart",
                                                     [SWEEP_FAILED] = "failed"};
static const char *const state_text[SWEEP_STATES] = {[SWEEP_LEFT] = "not done",
                                                     [SWEEP_DONE] = "done",
                                                     [SWEEP_APART] =
                                                         "without consensus or diverged",
                                                     [SWEEP_FAILED] = "failed"};

int cmd_sweep_result_open(struct cmd_sweep_result *r, const struct grid *grid,
                          const struct cmd_sweep_face *face, const char *out)
{
    size_t n = (size_t)grid->n_settings * grid->n_seeds;
    *r = (struct cmd_sweep_result){.face = face, .grid = grid, .out = out};
    r->run = calloc(n, sizeof *r->run);
    for (size_t i = 0; i < n && r->run != NULL; i++)
        r->run[i].accuracy = r->run[i].drift = r->run[i].bytes = r->run[i].seconds = (double)NAN;
    return r->run != NULL ? 0 : -ENOMEM;
}

void cmd_sweep_result_close(struct cmd_sweep_result *r)
{
    free(r->run);
}

struct cmd_sweep_run *cmd_sweep_result_at(const struct cmd_sweep_result *r, uint32_t setting,
                                          uint32_t seed)
{
    return &r->run[(size_t)setting * r->grid->n_seeds + seed];
}

/* OUT/SETTING, or OUT alone where there are no axes. */
static bool setting_dir(const struct cmd_sweep_result *r, uint32_t setting, char *out, size_t cap)
{
    char name[GRID_NAME_MAX];
    (void)grid_name(r->grid, setting, name); /* grid_open() has seen that it fits. */
    int n = snprintf(out, cap, "%s%s%s", r->out, name[0] != '\0' ? "/" : "", name);
    return n > 0 && (size_t)n < cap;
}

bool cmd_sweep_result_dir(const struct cmd_sweep_result *r, uint32_t setting, uint32_t seed,
                          char *out, size_t cap)
{
    if (!setting_dir(r, setting, out, cap))
        return false;
    size_t n = strlen(out);
    int more = snprintf(out + n, cap - n, "/seed-%" PRIu64, r->grid->seed + seed);
    return more > 0 && (size_t)more < cap - n;
}

/* ---- One run. ---- */

/* NaN where there is none. */
static double number(const json_t *j, const char *key)
{
    const json_t *v = key != NULL ? json_object_get(j, key) : NULL;
    return json_is_number(v) ? json_number_value(v) : (double)NAN;
}

/* A result that is there says how the run ended, whoever has trained it. */
static void take_summary(const struct cmd_sweep_result *r, struct cmd_sweep_run *run,
                         const json_t *j)
{
    const json_t *code = json_object_get(j, "exit_code");
    const char *text = json_string_value(json_object_get(json_object_get(j, "verdict"), "text"));
    if (text == NULL) /* A run without peers. */
        text = json_string_value(json_object_get(j, "diverged"));
    run->exit_code = json_is_integer(code) ? (int)json_integer_value(code) : CMD_FAILED;
    run->state = run->exit_code == CMD_OK      ? SWEEP_DONE
                 : run->exit_code == CMD_APART ? SWEEP_APART
                                               : SWEEP_FAILED;
    run->accuracy = number(j, r->face->accuracy);
    run->drift = number(j, r->face->drift);
    run->bytes = number(j, r->face->bytes);
    run->seconds = number(j, r->face->seconds);
    snprintf(run->verdict, sizeof run->verdict, "%s", text != NULL ? text : "");
}

void cmd_sweep_result_take(struct cmd_sweep_result *r, uint32_t setting, uint32_t seed, int code)
{
    char dir[OUTDIR_PATH_MAX];
    struct cmd_sweep_run *run = cmd_sweep_result_at(r, setting, seed);
    bool ended = code == CMD_OK || code == CMD_APART;
    json_t *j = ended && cmd_sweep_result_dir(r, setting, seed, dir, sizeof dir)
                    ? outdir_summary(dir)
                    : NULL;
    if (j != NULL)
        take_summary(r, run, j);
    else {
        run->state = code == CMD_INTERRUPTED ? SWEEP_LEFT : SWEEP_FAILED;
        run->exit_code = code != CMD_OK ? code : CMD_FAILED;
    }
    json_decref(j);
}

/* ---- One setting. ---- */

/* A figure of the runs that are done; NaN where that of one is not known. */
struct figure
{
    double mean, deviation, least, most;
};

struct row
{
    uint32_t n[SWEEP_STATES];
    struct figure accuracy, drift, bytes, seconds;
};

/* In two passes; the deviation is that of a sample, which one run has none of. */
static struct figure figure_of(const struct cmd_sweep_run *run, uint32_t n, size_t offset)
{
    struct figure f = {.least = INFINITY, .most = -INFINITY};
    double n_done = 0, sum = 0, squares = 0;
    for (uint32_t i = 0; i < n; i++) {
        const double *x = (const double *)(const void *)((const char *)&run[i] + offset);
        if (run[i].state != SWEEP_DONE)
            continue;
        n_done++;
        sum += *x;
        f.least = fmin(f.least, *x);
        f.most = fmax(f.most, *x);
    }
    f.mean = sum / n_done; /* 0 / 0: NaN. */
    for (uint32_t i = 0; i < n; i++) {
        const double *x = (const double *)(const void *)((const char *)&run[i] + offset);
        if (run[i].state == SWEEP_DONE)
            squares += (*x - f.mean) * (*x - f.mean);
    }
    f.deviation = n_done > 1 ? sqrt(squares / (n_done - 1)) : (double)NAN;
    if (!isfinite(f.mean))
        f = (struct figure){NAN, NAN, NAN, NAN};
    return f;
}

static struct row row_of(const struct cmd_sweep_result *r, uint32_t setting)
{
    const struct cmd_sweep_run *run = cmd_sweep_result_at(r, setting, 0);
    uint32_t n = r->grid->n_seeds;
    struct row row = {.accuracy = figure_of(run, n, offsetof(struct cmd_sweep_run, accuracy)),
                      .drift = figure_of(run, n, offsetof(struct cmd_sweep_run, drift)),
                      .bytes = figure_of(run, n, offsetof(struct cmd_sweep_run, bytes)),
                      .seconds = figure_of(run, n, offsetof(struct cmd_sweep_run, seconds))};
    for (uint32_t i = 0; i < n; i++)
        row.n[run[i].state]++;
    return row;
}

/* The setting of the best mean, of those whose runs are all done: means of other seeds do not compare.
 * n_settings: there is none. */
static uint32_t best_of(const struct cmd_sweep_result *r)
{
    uint32_t best = r->grid->n_settings;
    double most = -INFINITY;
    for (uint32_t s = 0; s < r->grid->n_settings; s++) {
        struct row row = row_of(r, s);
        if (row.n[SWEEP_DONE] < r->grid->n_seeds || !(row.accuracy.mean > most))
            continue;
        best = s;
        most = row.accuracy.mean;
    }
    return best;
}

/* ---- The table. ---- */

static const char *name_of(const struct cmd_sweep_result *r, uint32_t setting,
                           char out[GRID_NAME_MAX])
{
    (void)grid_name(r->grid, setting, out);
    return out[0] != '\0' ? out : "as given";
}

/* "98.12 % +- 0.10"; of one run there is no deviation. */
static const char *accuracy_text(const struct figure *f, char out[2 * CMD_PROGRESS_TEXT])
{
    char mean[CMD_PROGRESS_TEXT];
    cmd_progress_percent(mean, f->mean);
    if (isfinite(f->deviation))
        snprintf(out, 2 * CMD_PROGRESS_TEXT, "%s +- %.2f", mean, 100 * f->deviation);
    else
        snprintf(out, 2 * CMD_PROGRESS_TEXT, "%s", mean);
    return out;
}

/* What is left out of the means: "; 1 failed (seed 3, exit code 1)". */
static void print_missing(const struct cmd_sweep_result *r, uint32_t setting, const struct row *row)
{
    for (enum cmd_sweep_state state = SWEEP_LEFT; state < SWEEP_STATES; state++) {
        if (state == SWEEP_DONE || row->n[state] == 0)
            continue;
        printf("   %u %s (seed", (unsigned)row->n[state], state_text[state]);
        for (uint32_t i = 0, n = 0; i < r->grid->n_seeds; i++) {
            const struct cmd_sweep_run *run = cmd_sweep_result_at(r, setting, i);
            if (run->state != state)
                continue;
            printf("%s %" PRIu64, n++ > 0 ? "," : "", r->grid->seed + i);
            if (state == SWEEP_FAILED)
                printf(": exit code %d", run->exit_code);
        }
        printf(")");
    }
}

static void print_row(const struct cmd_sweep_result *r, uint32_t setting, int width)
{
    char name[GRID_NAME_MAX], seeds[32], accuracy[2 * CMD_PROGRESS_TEXT], least[CMD_PROGRESS_TEXT],
        most[CMD_PROGRESS_TEXT], drift[CMD_PROGRESS_TEXT], bytes[CMD_PROGRESS_TEXT] = "-",
                                                           seconds[CMD_PROGRESS_TEXT];
    struct row row = row_of(r, setting);
    snprintf(seeds, sizeof seeds, "%u of %u", (unsigned)row.n[SWEEP_DONE],
             (unsigned)r->grid->n_seeds);
    printf("%-*s %9s %17s %9s %9s", width, name_of(r, setting, name), seeds,
           accuracy_text(&row.accuracy, accuracy), cmd_progress_percent(least, row.accuracy.least),
           cmd_progress_percent(most, row.accuracy.most));
    if (r->face->drift != NULL)
        printf(" %9s", cmd_progress_number(drift, "%.2e", row.drift.most));
    if (isfinite(row.bytes.mean))
        cmd_progress_bytes(bytes, (uint64_t)row.bytes.mean);
    if (r->face->bytes != NULL)
        printf(" %10s", bytes);
    printf(" %8s", cmd_progress_number(seconds, "%.1f", row.seconds.mean));
    print_missing(r, setting, &row);
    putchar('\n');
}

static void print_best(const struct cmd_sweep_result *r)
{
    char name[GRID_NAME_MAX], accuracy[2 * CMD_PROGRESS_TEXT];
    uint32_t best = best_of(r);
    if (best == r->grid->n_settings) {
        printf("best           unknown: of no setting all runs are done\n");
        return;
    }
    struct row row = row_of(r, best);
    printf("best           %s: accuracy %s over %u seed%s", name_of(r, best, name),
           accuracy_text(&row.accuracy, accuracy), (unsigned)r->grid->n_seeds,
           r->grid->n_seeds == 1 ? "" : "s");
    for (uint32_t s = best + 1, n = 0; s < r->grid->n_settings; s++) {
        struct row other = row_of(r, s);
        if (other.n[SWEEP_DONE] == r->grid->n_seeds && other.accuracy.mean >= row.accuracy.mean)
            printf("%s %s", n++ > 0 ? "," : "; as good:", name_of(r, s, name));
    }
    putchar('\n');
}

static void print_table(const struct cmd_sweep_result *r, const uint32_t n[SWEEP_STATES])
{
    char name[GRID_NAME_MAX];
    int width = (int)strlen("setting");
    for (uint32_t s = 0; s < r->grid->n_settings; s++) {
        int w = (int)strlen(name_of(r, s, name));
        width = w > width ? w : width;
    }
    printf("%-*s %9s %17s %9s %9s%s%s %8s\n", width, "setting", "seeds", "accuracy", "worst",
           "best", r->face->drift != NULL ? "     drift" : "",
           r->face->bytes != NULL ? "       sent" : "", "seconds");
    for (uint32_t s = 0; s < r->grid->n_settings; s++)
        print_row(r, s, width);
    putchar('\n');
    print_best(r);
    printf("runs           %u of %u done", (unsigned)n[SWEEP_DONE],
           (unsigned)(r->grid->n_settings * r->grid->n_seeds));
    for (enum cmd_sweep_state state = SWEEP_LEFT; state < SWEEP_STATES; state++)
        if (state != SWEEP_DONE && n[state] > 0)
            printf(", %u %s", (unsigned)n[state], state_text[state]);
    printf("\nruns in        %s\n", r->out);
}

/* ---- JSON. ---- */

static json_t *run_object(const struct cmd_sweep_result *r, uint32_t setting, uint32_t seed)
{
    char dir[OUTDIR_PATH_MAX] = "";
    const struct cmd_sweep_run *run = cmd_sweep_result_at(r, setting, seed);
    (void)cmd_sweep_result_dir(r, setting, seed, dir, sizeof dir);
    json_t *code = run->state == SWEEP_LEFT ? json_null() : json_integer(run->exit_code);
    json_t *verdict = run->verdict[0] != '\0' ? json_string(run->verdict) : json_null();
    return json_pack("{s:I, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "seed",
                     (json_int_t)(r->grid->seed + seed), "state", state_name[run->state],
                     "exit_code", code, "accuracy", uv_metrics_number(run->accuracy),
                     "relative_drift", uv_metrics_number(run->drift), "bytes_sent",
                     uv_metrics_number(run->bytes), "seconds", uv_metrics_number(run->seconds),
                     "verdict", verdict, "out", uv_metrics_text(dir));
}

static void put_counts(json_t *j, const uint32_t n[SWEEP_STATES])
{
    for (enum cmd_sweep_state state = SWEEP_LEFT; state < SWEEP_STATES; state++) {
        char key[16];
        snprintf(key, sizeof key, "n_%s", state_name[state]);
        json_object_set_new(j, key, json_integer(n[state]));
    }
}

static json_t *setting_object(const struct cmd_sweep_result *r, uint32_t setting)
{
    char name[GRID_NAME_MAX], dir[OUTDIR_PATH_MAX] = "";
    struct row row = row_of(r, setting);
    json_t *runs = json_array(), *values = json_object();
    (void)setting_dir(r, setting, dir, sizeof dir);
    (void)grid_name(r->grid, setting, name);
    for (uint32_t a = 0; a < r->grid->n_axes; a++)
        json_object_set_new(values, r->grid->axis[a].key,
                            json_string(grid_value(r->grid, setting, a)));
    for (uint32_t i = 0; i < r->grid->n_seeds; i++)
        json_array_append_new(runs, run_object(r, setting, i));
    json_t *j = json_pack(
        "{s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "setting", name, "values", values,
        "out", dir, "accuracy_mean", uv_metrics_number(row.accuracy.mean), "accuracy_deviation",
        uv_metrics_number(row.accuracy.deviation), "accuracy_worst",
        uv_metrics_number(row.accuracy.least), "accuracy_best",
        uv_metrics_number(row.accuracy.most), "relative_drift_worst",
        uv_metrics_number(row.drift.most), "bytes_sent_mean", uv_metrics_number(row.bytes.mean),
        "seconds_mean", uv_metrics_number(row.seconds.mean));
    put_counts(j, row.n);
    json_object_set_new(j, "runs", runs);
    return j;
}

static json_t *object(const struct cmd_sweep_result *r, const uint32_t n[SWEEP_STATES], int code)
{
    char name[GRID_NAME_MAX];
    const struct grid *g = r->grid;
    json_t *axes = json_object(), *seeds = json_array(), *settings = json_array();
    for (uint32_t a = 0; a < g->n_axes; a++) {
        json_t *values = json_array();
        for (uint32_t i = 0; i < g->axis[a].n; i++)
            json_array_append_new(values, json_string(g->axis[a].value[i]));
        json_object_set_new(axes, g->axis[a].key, values);
    }
    for (uint32_t i = 0; i < g->n_seeds; i++)
        json_array_append_new(seeds, json_integer((json_int_t)(g->seed + i)));
    for (uint32_t s = 0; s < g->n_settings; s++)
        json_array_append_new(settings, setting_object(r, s));
    uint32_t best = best_of(r);
    if (best < g->n_settings)
        (void)grid_name(g, best, name);
    json_t *j = json_pack("{s:o, s:o, s:o, s:o, s:I, s:b, s:i, s:o}", "sweep", axes, "seeds", seeds,
                          "settings", settings, "best",
                          best < g->n_settings ? json_string(name) : json_null(), "n_runs",
                          (json_int_t)g->n_settings * g->n_seeds, "interrupted", r->interrupted,
                          "exit_code", code, "out", uv_metrics_text(r->out));
    if (j != NULL)
        put_counts(j, n);
    return j;
}

static int print_json(const struct cmd_sweep_result *r, const struct options *o,
                      const uint32_t n[SWEEP_STATES], int code)
{
    json_t *j = object(r, n, code);
    bool ok = j != NULL && json_dumpf(j, stdout, JSON_COMPACT | JSON_REAL_PRECISION(12)) == 0;
    json_decref(j);
    putchar('\n');
    return ok ? CMD_OK : cmd_fail(o, CMD_FAILED, "cannot write JSON (a value that is not UTF-8?)");
}

int cmd_sweep_result_print(const struct cmd_sweep_result *r, const struct options *o)
{
    uint32_t n[SWEEP_STATES] = {0};
    for (uint32_t i = 0; i < r->grid->n_settings * r->grid->n_seeds; i++)
        n[r->run[i].state]++;
    int code = r->interrupted && n[SWEEP_LEFT] > 0        ? CMD_INTERRUPTED
               : n[SWEEP_FAILED] > 0 || n[SWEEP_LEFT] > 0 ? CMD_FAILED
               : n[SWEEP_APART] > 0                       ? CMD_APART
                                                          : CMD_OK;
    int told = CMD_OK;
    if (options_flag(o, "json"))
        told = print_json(r, o, n, code);
    else
        print_table(r, n);
    int flushed = cmd_finish(o);
    return told != CMD_OK ? told : flushed != CMD_OK ? flushed : code;
}
