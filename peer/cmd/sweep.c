/* peer/cmd/sweep.c -- the runs of a sweep, as a batch (peer/cmd/batch.h) that does one after the other.
 *
 * Runs go seed by seed, so that after the first of these there is a figure of every setting. A run has
 * our stderr, and nothing of it goes to stdout, which is for the table. */
#include "peer/cmd/sweep.h"

#include "peer/cmd/files.h"
#include "peer/cmd/progress.h"
#include "peer/cmd/sweep_result.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char out_fallback[] = "hearsay-sweep";

struct sweep
{
    const struct options *o;
    const struct cmd_sweep_face *face;
    struct grid grid;
    struct cmd_sweep_result result;
    struct cmd_batch batch;
};

/* Runs go seed by seed. */
static uint32_t setting_of(const struct sweep *s, uint32_t i)
{
    return i % s->grid.n_settings;
}

static uint32_t seed_of(const struct sweep *s, uint32_t i)
{
    return i / s->grid.n_settings;
}

/* The longest directory has the last seed. */
static int check_paths(const struct sweep *s)
{
    char dir[CMD_PATH_MAX / 2];
    for (uint32_t i = 0; i < s->grid.n_settings; i++)
        if (!cmd_sweep_result_dir(&s->result, i, s->grid.n_seeds - 1, dir, sizeof dir))
            return cmd_fail(s->o, CMD_USAGE, "--out: the path is too long");
    return CMD_OK;
}

/* ---- struct cmd_batch's. ---- */

static void flags_of(void *self, uint32_t i, const struct grid_sink *sink)
{
    struct sweep *s = self;
    char dir[CMD_PATH_MAX];
    bool fits = cmd_sweep_result_dir(&s->result, setting_of(s, i), seed_of(s, i), dir, sizeof dir);
    assert(fits); /* check_paths() has seen to it. */
    grid_flags(&s->grid, setting_of(s, i), s->grid.seed + seed_of(s, i), dir, sink);
}

static void name_of(void *self, uint32_t i, char *out, size_t cap)
{
    struct sweep *s = self;
    char name[GRID_NAME_MAX];
    (void)grid_name(&s->grid, setting_of(s, i), name);
    snprintf(out, cap, "%s", name);
}

/* "lr=0.01, seed 2: accuracy 98.12 %, 12.1 s" */
static void tell(const struct sweep *s, uint32_t setting, uint32_t seed, bool before)
{
    const struct cmd_sweep_run *run = cmd_sweep_result_at(&s->result, setting, seed);
    char name[GRID_NAME_MAX], accuracy[CMD_PROGRESS_TEXT], seconds[CMD_PROGRESS_TEXT];
    (void)grid_name(&s->grid, setting, name);
    const char *comma = name[0] != '\0' ? ", " : "";
    uint64_t number = s->grid.seed + seed;
    switch (run->state) {
    case SWEEP_LEFT:
        break;
    case SWEEP_DONE:
    case SWEEP_APART:
        cmd_fail(s->o, CMD_OK, "%s%sseed %" PRIu64 ": accuracy %s, %s s%s%s%s", name, comma, number,
                 cmd_progress_percent(accuracy, run->accuracy),
                 cmd_progress_number(seconds, "%.1f", run->seconds), before ? ", done before" : "",
                 run->state == SWEEP_APART ? "; it does not count: " : "",
                 run->state == SWEEP_APART ? run->verdict : "");
        break;
    case SWEEP_FAILED:
        cmd_fail(s->o, CMD_OK, "%s%sseed %" PRIu64 ": failed, with exit code %d; the others go on",
                 name, comma, number, run->exit_code);
        break;
    case SWEEP_STATES:
        assert(false);
    }
}

static void begins(void *self, uint32_t i)
{
    struct sweep *s = self;
    char name[GRID_NAME_MAX], dir[CMD_PATH_MAX];
    (void)grid_name(&s->grid, setting_of(s, i), name);
    (void)cmd_sweep_result_dir(&s->result, setting_of(s, i), seed_of(s, i), dir, sizeof dir);
    cmd_fail(s->o, CMD_OK, "run %u of %u: %s%sseed %" PRIu64 ", in %s", (unsigned)(i + 1),
             (unsigned)s->batch.n, name, name[0] != '\0' ? ", " : "", s->grid.seed + seed_of(s, i),
             dir);
}

static void ended(void *self, uint32_t i, int code)
{
    struct sweep *s = self;
    cmd_sweep_result_take(&s->result, setting_of(s, i), seed_of(s, i), code);
    tell(s, setting_of(s, i), seed_of(s, i), false);
}

/* Those that had finished are only read. */
static void take_all_finished(struct sweep *s)
{
    for (uint32_t i = 0; i < s->batch.n; i++)
        if (s->batch.run[i].finished) {
            cmd_sweep_result_take(&s->result, setting_of(s, i), seed_of(s, i), CMD_OK);
            tell(s, setting_of(s, i), seed_of(s, i), true);
        }
}

/* ---- The command. ---- */

static int open_sweep(struct sweep *s)
{
    char error[OPTIONS_ERROR_MAX];
    const char *out = options_text(s->o, "out");
    if (grid_open(&s->grid, s->o, error) < 0)
        return cmd_fail(s->o, CMD_USAGE, "%s", error);
    struct cmd_batch *b = &s->batch;
    *b = (struct cmd_batch){.o = s->o,
                            .command = s->o->command,
                            .face = s->face,
                            .n = s->grid.n_settings * s->grid.n_seeds,
                            .jobs = 1,
                            .self = s,
                            .flags = flags_of,
                            .name = name_of,
                            .begins = begins,
                            .ended = ended};
    b->run = calloc(b->n, sizeof *b->run);
    if (cmd_sweep_result_open(&s->result, &s->grid, s->face, out != NULL ? out : out_fallback) < 0
        || b->run == NULL)
        return cmd_fail(s->o, CMD_FAILED, "out of memory");
    for (uint32_t i = 0; i < b->n; i++)
        b->run[i].group = setting_of(s, i);
    return cmd_batch_open(b);
}

int cmd_sweep(const struct options *o, const struct cmd_sweep_face *face)
{
    static struct sweep s; /* Large, and one a process. */
    s.o = o;
    s.face = face;
    int code = open_sweep(&s);
    code = code == CMD_OK ? check_paths(&s) : code;
    code = code == CMD_OK ? cmd_batch_check(&s.batch) : code;
    if (code == CMD_OK) {
        take_all_finished(&s);
        cmd_batch_do(&s.batch);
        s.result.interrupted = cmd_batch_asked();
        code = cmd_sweep_result_print(&s.result, o);
    }
    free(s.batch.run);
    cmd_sweep_result_close(&s.result);
    return code;
}
