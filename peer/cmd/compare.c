/* peer/cmd/compare.c -- `hearsay compare FILE`: the runs to choose learning rates by, then those that
 * are compared, each as a batch (peer/cmd/batch.h) of processes.
 *
 * Nothing is kept of a comparison but its runs: each says by itself whether it has finished (peer/cmd/out.h),
 * so that started again it does what is left, also where the file has more arms now. */
#include "peer/cmd/compare.h"

#include "nn/files/file.h"
#include "nn/files/replace.h"
#include "peer/cmd/files.h"
#include "peer/cmd/local_check.h"
#include "peer/cmd/progress.h"
#include "peer/cmd/sim.h"
#include "peer/store/outdir.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* clang-format off */
const struct option_row cmd_compare_rows[] = {
    {.name = "file", .kind = OPTION_OPERAND, .arg = "FILE", .required = true,
     .help = "settings as of --config, with lists, and a [section] for each arm"},
    {.name = "set", .kind = OPTION_TEXT, .arg = "KEY=VALUE,...", .many = true,
     .help = "a setting of all arms, whatever the file says of it"},
    {.name = "out", .kind = OPTION_TEXT, .arg = "DIR", .fallback = "hearsay-compare",
     .help = "directory for the runs, compare.html and compare.csv"},
    {.name = "jobs", .short_name = 'j', .kind = OPTION_UINT, .arg = "N", .min = 1, .max = 256,
     .help = "simulations at a time; default: as many as there are processors"},
    CMD_ROW_JSON,
    {.name = NULL},
};
/* clang-format on */

enum { LOG_LINE = 512 };

/* ---- Runs. ---- */

/* One phase: its runs, and what they are of. */
struct phase
{
    struct compare *c;
    struct cmd_batch batch;
    bool choosing;
    struct phase_run
    {
        uint32_t arm, rate, seed; /* The seed as its place, from 0. */
        char log[CMD_PATH_MAX], dir[CMD_PATH_MAX];
    } * run;
};

bool cmd_compare_path(const struct compare *c, uint32_t arm, uint32_t rate, uint64_t seed,
                      bool choosing, const char *end, char *out, size_t cap)
{
    char lr[ARMS_NAME_MAX];
    arms_rate_dir(&c->arms, arm, rate, lr);
    int n = snprintf(out, cap, "%s/%s/%s/%sseed-%" PRIu64 "%s", c->out, c->arms.arm[arm].dir, lr,
                     choosing ? "choose-" : "", seed, end);
    return n > 0 && (size_t)n < cap;
}

static struct report_trial *trial_of(const struct phase *p, const struct phase_run *r)
{
    const struct compare *c = p->c;
    return p->choosing ? &c->tune[r->arm * arms_rates(&c->arms, 0) + r->rate]
                       : &c->trial[r->arm * c->arms.n_seeds + r->seed];
}

static void flags_of(void *self, uint32_t i, const struct grid_sink *sink)
{
    const struct phase *p = self;
    const struct phase_run *r = &p->run[i];
    arms_flags(&p->c->arms, r->arm, r->rate, p->choosing, p->c->arms.seed + r->seed, r->dir, sink);
}

static void name_of(void *self, uint32_t i, char *out, size_t cap)
{
    const struct phase *p = self;
    const struct phase_run *r = &p->run[i];
    const char *lr = arms_rate(&p->c->arms, r->arm, r->rate);
    snprintf(out, cap, "%s%s%s", p->c->arms.arm[r->arm].name, lr != NULL ? ", lr " : "",
             lr != NULL ? lr : "");
}

/* ---- What came of a run. ---- */

/* The last words of a run that failed. */
static void take_reason(struct report_trial *t, const struct phase_run *r)
{
    char line[LOG_LINE];
    FILE *f = fopen(r->log, "r");
    snprintf(t->verdict, sizeof t->verdict, "exit code %d", t->exit_code);
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        line[strcspn(line, "\r\n")] = '\0';
        if (line[0] != '\0')
            snprintf(t->verdict, sizeof t->verdict, "exit code %d: %s", t->exit_code, line);
    }
    if (f != NULL)
        fclose(f);
}

/* What a run has left is read as anybody's would be. */
static int read_run(struct report_trial *t, const struct phase_run *r, char why[FILE_ERROR_MAX])
{
    static struct report_run run; /* Large. */
    size_t left = REPORT_LINES_MAX;
    memset(&run, 0, sizeof run);
    int err = report_run_read(&run, r->dir, &left, why);
    if (err < 0)
        return err;
    err = report_trial_take(t, &run);
    report_run_close(&run);
    if (err < 0)
        snprintf(why, FILE_ERROR_MAX, "out of memory for the curves of %.200s", r->dir);
    return err;
}

static void take_run(const struct phase *p, const struct phase_run *r, int code)
{
    char why[FILE_ERROR_MAX];
    struct report_trial *t = trial_of(p, r);
    json_t *summary = code == CMD_OK || code == CMD_APART ? outdir_summary(r->dir) : NULL;
    int err = summary != NULL ? read_run(t, r, why) : 0;
    if (summary == NULL || err < 0) {
        report_trial_close(t);
        t->state = code == CMD_INTERRUPTED ? REPORT_TRIAL_LEFT : REPORT_TRIAL_FAILED;
        t->exit_code = code != CMD_OK && code != CMD_APART ? code : CMD_FAILED;
        if (err < 0)
            snprintf(t->verdict, sizeof t->verdict, "%.500s", why);
        else if (t->state == REPORT_TRIAL_FAILED)
            take_reason(t, r);
    }
    json_decref(summary);
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* "choco, lr 0.01, seed 2: accuracy 98.12 %, 3.1 s (5 of 12 runs, 1:20 left)" */
static void tell(struct phase *p, uint32_t i, bool before)
{
    struct compare *c = p->c;
    const struct phase_run *r = &p->run[i];
    const struct report_trial *t = trial_of(p, r);
    char name[2 * ARMS_NAME_MAX], accuracy[CMD_PROGRESS_TEXT], left[GAUGE_TIME];
    c->n_done++;
    gauge_look(&c->gauge, c->n_done, now_s());
    name_of(p, i, name, sizeof name);
    if (t->state == REPORT_TRIAL_LEFT)
        return;
    bool good = t->state == REPORT_TRIAL_DONE;
    gauge_time(left, gauge_left_s(&c->gauge, c->n_runs));
    cmd_fail(c->o, CMD_OK, "%s, %sseed %" PRIu64 ": %s%s%s (%u of %u runs%s%s%s)", name,
             p->choosing ? "to choose lr by, " : "", c->arms.seed + r->seed,
             good ? "accuracy " : report_trial_text[t->state],
             good ? cmd_progress_percent(accuracy, t->at[REPORT_M_ACCURACY]) : ", ",
             good ? "" : t->verdict, (unsigned)c->n_done, (unsigned)c->n_runs,
             before ? ", done before" : "", !before && c->n_done < c->n_runs ? ", " : "",
             !before && c->n_done < c->n_runs ? strcat(left, " left") : "");
}

static void ended(void *self, uint32_t i, int code)
{
    struct phase *p = self;
    take_run(p, &p->run[i], code);
    tell(p, i, false);
}

/* ---- Phases. ---- */

static int out_of_memory(const struct compare *c)
{
    return cmd_fail(c->o, CMD_FAILED, "out of memory");
}

static int open_phase(struct phase *p, struct compare *c, bool choosing, uint32_t most)
{
    bool local = strcmp(c->arms.command->name, "local") == 0;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t jobs = options_given(c->o, "jobs") ? (uint32_t)options_uint(c->o, "jobs")
                    : local || cores < 1        ? 1
                                                : (uint32_t)cores;
    *p = (struct phase){.c = c, .choosing = choosing};
    p->batch = (struct cmd_batch){.o = c->o,
                                  .command = c->arms.command,
                                  .face = local ? &cmd_local_sweep : &cmd_sim_compared,
                                  .jobs = jobs,
                                  .self = p,
                                  .flags = flags_of,
                                  .name = name_of,
                                  .ended = ended};
    memcpy(p->batch.program, c->program, sizeof p->batch.program);
    p->run = calloc(most > 0 ? most : 1, sizeof *p->run);
    p->batch.run = calloc(most > 0 ? most : 1, sizeof *p->batch.run);
    return p->run != NULL && p->batch.run != NULL ? CMD_OK : out_of_memory(c);
}

static void close_phase(struct phase *p)
{
    free(p->run);
    free(p->batch.run);
}

static int add_run(struct phase *p, uint32_t arm, uint32_t rate, uint32_t seed)
{
    struct compare *c = p->c;
    struct phase_run *r = &p->run[p->batch.n];
    struct cmd_batch_run *b = &p->batch.run[p->batch.n++];
    uint64_t number = c->arms.seed + seed;
    *r = (struct phase_run){.arm = arm, .rate = rate, .seed = seed};
    if (!cmd_compare_path(c, arm, rate, number, p->choosing, "", r->dir, sizeof r->dir / 2)
        || !cmd_compare_path(c, arm, rate, number, p->choosing, ".log", r->log, sizeof r->log))
        return cmd_fail(c->o, CMD_USAGE, "--out: the path is too long");
    *b = (struct cmd_batch_run){
        .group = arm * arms_rates(&c->arms, 0) + rate, .log = r->log, .dir = r->dir};
    return CMD_OK;
}

/* The directories that logs are in. */
static int make_dirs(struct phase *p)
{
    for (uint32_t i = 0; i < p->batch.n; i++) {
        char dir[CMD_PATH_MAX];
        snprintf(dir, sizeof dir, "%s", p->run[i].log);
        *strrchr(dir, '/') = '\0';
        int err = outdir_make(dir);
        if (err < 0)
            return cmd_fail(p->c->o, cmd_exit_of(err), "--out: cannot make %s: %s", dir,
                            strerror(-err));
    }
    return CMD_OK;
}

static int do_phase(struct phase *p)
{
    int code = make_dirs(p);
    if (code != CMD_OK)
        return code;
    for (uint32_t i = 0; i < p->batch.n; i++)
        if (p->batch.run[i].finished) {
            take_run(p, &p->run[i], CMD_OK);
            tell(p, i, true);
        }
    cmd_batch_do(&p->batch);
    return CMD_OK;
}

/* ---- The learning rate. ---- */

struct compare_choice cmd_compare_choose(const struct report_trial *tune, uint32_t n)
{
    struct compare_choice choice = {.asked = true};
    const struct report_trial *best = NULL;
    for (uint32_t i = 0; i < n; i++) {
        const struct report_trial *t = &tune[i];
        if (t->state == REPORT_TRIAL_LEFT || t->state == REPORT_TRIAL_FAILED)
            return (struct compare_choice){.asked = true};
        double a = t->at[REPORT_M_ACCURACY], loss = t->at[REPORT_M_TEST_LOSS];
        if (t->state != REPORT_TRIAL_DONE || !isfinite(a))
            continue;
        double b = best != NULL ? best->at[REPORT_M_ACCURACY] : 0;
        bool equal = best != NULL && !(a > b) && !(a < b);
        if (best != NULL && !(a > b) && !(equal && loss < best->at[REPORT_M_TEST_LOSS]))
            continue;
        best = t;
        choice.rate = i;
        choice.made = true;
    }
    return choice;
}

static int choose_all(struct compare *c)
{
    struct phase p;
    uint32_t n = arms_rates(&c->arms, 0);
    int code = open_phase(&p, c, true, c->arms.n_arms * n);
    for (uint32_t rate = 0; rate < n && n > 1; rate++)
        for (uint32_t arm = 0; arm < c->arms.n_arms && code == CMD_OK; arm++)
            code = add_run(&p, arm, rate, 0);
    code = code == CMD_OK ? cmd_batch_check(&p.batch) : code;
    code = code == CMD_OK ? do_phase(&p) : code;
    for (uint32_t arm = 0; arm < c->arms.n_arms; arm++)
        c->choice[arm] = n > 1 ? cmd_compare_choose(&c->tune[arm * n], n)
                               : (struct compare_choice){.made = true};
    close_phase(&p);
    return code;
}

/* ---- The comparison. ---- */

/* All arms are checked before the first run, with the first of their learning rates. */
static int check_arms(struct compare *c)
{
    struct phase p;
    int code = open_phase(&p, c, false, c->arms.n_arms);
    for (uint32_t arm = 0; arm < c->arms.n_arms && code == CMD_OK; arm++)
        code = add_run(&p, arm, 0, 0);
    code = code == CMD_OK ? cmd_batch_check(&p.batch) : code;
    close_phase(&p);
    return code;
}

static int compare_all(struct compare *c)
{
    struct phase p;
    int code = open_phase(&p, c, false, c->arms.n_arms * c->arms.n_seeds);
    for (uint32_t seed = 0; seed < c->arms.n_seeds; seed++)
        for (uint32_t arm = 0; arm < c->arms.n_arms && code == CMD_OK; arm++)
            if (c->choice[arm].made)
                code = add_run(&p, arm, c->choice[arm].rate, seed);
    code = code == CMD_OK ? cmd_batch_check(&p.batch) : code;
    code = code == CMD_OK ? do_phase(&p) : code;
    close_phase(&p);
    return code;
}

static int read_file(struct compare *c)
{
    static char text[OPTIONS_FILE_MAX];
    char why[OPTIONS_ERROR_MAX];
    const char *const *sets;
    uint32_t n = options_operands(c->o, &sets);
    if (c->o->world->read(c->path, text, why) != 0)
        return cmd_fail(c->o, CMD_USAGE, "%s", why);
    if (arms_open(&c->arms, c->path, text, sets, n, c->o->world->commands, why) < 0)
        return cmd_fail(c->o, CMD_USAGE, "%s", why);
    if (c->arms.n_settings == 0)
        return cmd_fail(c->o, CMD_USAGE, "%s: found nothing, expected settings of what to compare",
                        c->path);
    if (strcmp(c->arms.command->name, "local") == 0 && options_uint(c->o, "jobs") > 1)
        return cmd_fail(c->o, CMD_USAGE,
                        "--jobs: found %" PRIu64 " with command = local, expected 1: runs beside "
                        "each other would take each other's seconds",
                        options_uint(c->o, "jobs"));
    return CMD_OK;
}

static int open_trials(struct compare *c)
{
    uint32_t n = c->arms.n_arms, rates = arms_rates(&c->arms, 0);
    c->tune = calloc((size_t)n * rates, sizeof *c->tune);
    c->trial = calloc((size_t)n * c->arms.n_seeds, sizeof *c->trial);
    if (c->tune == NULL || c->trial == NULL)
        return out_of_memory(c);
    for (uint32_t i = 0; i < n * rates; i++)
        report_trial_init(&c->tune[i]);
    for (uint32_t i = 0; i < n * c->arms.n_seeds; i++)
        report_trial_init(&c->trial[i]);
    c->n_runs = n * ((rates > 1 ? rates : 0) + c->arms.n_seeds);
    return CMD_OK;
}

static void close_trials(struct compare *c)
{
    for (uint32_t i = 0; c->tune != NULL && i < c->arms.n_arms * arms_rates(&c->arms, 0); i++)
        report_trial_close(&c->tune[i]);
    for (uint32_t i = 0; c->trial != NULL && i < c->arms.n_arms * c->arms.n_seeds; i++)
        report_trial_close(&c->trial[i]);
    free(c->tune);
    free(c->trial);
}

/* What Ctrl-C left undone is shown as such. */
static int run_all(struct compare *c)
{
    gauge_look(&c->gauge, 0, now_s());
    int code = choose_all(c);
    if (code == CMD_OK && !cmd_batch_asked())
        code = compare_all(c);
    c->interrupted = cmd_batch_asked();
    return code == CMD_OK ? cmd_compare_result(c) : code;
}

/* No directory is made for what is refused. */
static int begin(struct compare *c)
{
    struct cmd_batch first = {.o = c->o};
    int code = cmd_batch_open(&first);
    memcpy(c->program, first.program, sizeof c->program);
    code = code == CMD_OK ? open_trials(c) : code;
    return code == CMD_OK ? check_arms(c) : code;
}

/* Refuses to replace a file that an earlier comparison has not written. A pipe or a device of that name is
 * refused, too: the user has named the directory, not this file. */
static int check_file(const struct compare *c, const char *name, const char *mark)
{
    static const char not_ours[] = "not of hearsay compare; give another --out";
    char path[CMD_PATH_MAX];
    if (cmd_path(path, c->out, name) < 0)
        return cmd_fail(c->o, CMD_USAGE, "--out: the path is too long");
    if (replace_is_stream(path))
        return cmd_fail(c->o, CMD_USAGE, "%s exists, and is %s", path, not_ours);
    return cmd_may_write(c->o, path, mark, strlen(mark), false, not_ours);
}

static int check_files(const struct compare *c)
{
    int code = check_file(c, "compare.html", report_comparison_mark);
    return code == CMD_OK ? check_file(c, "compare.csv", report_comparison_csv_mark) : code;
}

int cmd_compare(const struct options *o)
{
    static struct compare c; /* Large, and one a process. */
    struct outdir held = {.open = false};
    char why[OUTDIR_WHY_MAX];
    c.o = o;
    c.path = options_text(o, "file");
    c.out = options_text(o, "out");
    int code = read_file(&c);
    if (code != CMD_OK)
        return code;
    code = check_files(&c);
    code = code == CMD_OK ? begin(&c) : code;
    if (code == CMD_OK) {
        int err = outdir_open(&held, c.out, why);
        code = err < 0 ? cmd_fail(o, cmd_exit_of(err), "--out: %s", why) : run_all(&c);
    }
    close_trials(&c);
    if (held.open)
        outdir_close(&held);
    arms_close(&c.arms);
    return code;
}
