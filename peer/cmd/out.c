/* peer/cmd/out.c -- finds out to which run the --out directory of a command belongs, opens the
 * directory, and prints the result of a finished run in it. */
#include "peer/cmd/out.h"

#include "peer/cmd/progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Checking and claiming the directory ---- */

static int out_refuse(struct cmd_out *out, enum outdir_state state, const char *why)
{
    if (state == OUTDIR_OTHER_RUN)
        return cmd_fail(out->o, CMD_USAGE, "--out %s has another run: %s; --fresh moves it aside",
                        out->dir, why);
    if (state == OUTDIR_DAMAGED)
        return cmd_fail(out->o, CMD_USAGE,
                        "--out %s: %s; the run may have finished, so its model is not replaced: "
                        "use that model; or, if the run had not finished, delete summary.json to "
                        "continue it; or start again with --fresh, which moves the files aside",
                        out->dir, why);
    return cmd_fail(out->o, CMD_USAGE,
                    "--out %s: found %s, but run.txt is missing or damaged, so its run is unknown; "
                    "choose another directory, or move the files aside with --fresh",
                    out->dir, why);
}

int cmd_out_reexamine(struct cmd_out *out)
{
    char why[OUTDIR_WHY_MAX];
    if (outdir_check_files(out->dir, why) < 0)
        return cmd_fail(out->o, CMD_USAGE, "--out: %s", why);
    if (options_flag(out->o, "fresh"))
        return CMD_OK;
    enum outdir_state state = outdir_inspect(out->dir, out->text, why);
    out->begun = state == OUTDIR_UNFINISHED;
    out->finished = state == OUTDIR_FINISHED;
    switch (state) {
    case OUTDIR_NEW:
    case OUTDIR_UNFINISHED:
    case OUTDIR_FINISHED:
        return CMD_OK;
    case OUTDIR_OTHER_RUN:
    case OUTDIR_UNKNOWN_RUN:
    case OUTDIR_DAMAGED:
        break;
    }
    return out_refuse(out, state, why);
}

int cmd_out_examine(struct cmd_out *out, const struct options *o, const char *dir,
                    const struct run_identity_flag *flags, const struct run *run)
{
    char text[WIRE_RUN_MAX + 1];
    out->o = o;
    out->dir = dir;
    run_text(run, text);
    run_identity_write(out->text, o->command->name, flags, text);
    return cmd_out_reexamine(out);
}

int cmd_out_open(struct cmd_out *out)
{
    char why[OUTDIR_WHY_MAX], moved[OUTDIR_PATH_MAX];
    int err = outdir_open(&out->held, out->dir, why);
    if (err < 0)
        return cmd_fail(out->o, cmd_exit_of(err), "--out: %s", why);
    /* Another process may have written to the directory before it was locked, so examine it
     * again. */
    if (!options_flag(out->o, "fresh"))
        return cmd_out_reexamine(out);
    err = outdir_move_old_run(&out->held, out->text, moved, why);
    if (err < 0)
        return cmd_fail(out->o, CMD_FAILED, "--fresh: %s", why);
    if (moved[0] != '\0')
        cmd_fail(out->o, CMD_OK, "moved the earlier run to %s", moved);
    return CMD_OK;
}

int cmd_out_claim(struct cmd_out *out)
{
    char why[OUTDIR_WHY_MAX];
    int err = outdir_write_identity(&out->held, out->text, why);
    return err < 0 ? cmd_fail(out->o, cmd_exit_of(err), "%s", why) : CMD_OK;
}

void cmd_out_close(struct cmd_out *out)
{
    outdir_close(&out->held);
}

/* ---- Writing the end of a run ---- */

int cmd_out_write_summary(const struct options *o, const char *dir, json_t *summary, bool finished,
                          int exit_code)
{
    json_object_set_new(summary, "finished", json_boolean(finished));
    json_object_set_new(summary, "exit_code", json_integer(exit_code));
    int err = dir != NULL ? outdir_write_summary(dir, summary) : 0;
    return err < 0
               ? cmd_fail(o, CMD_FAILED, "cannot write %s/summary.json: %s", dir, strerror(-err))
               : CMD_OK;
}

static double number(const json_t *j, const char *key)
{
    const json_t *v = json_object_get(j, key);
    return json_is_number(v) ? json_number_value(v) : (double)NAN;
}

/* Prints the result from a summary. The summary of `hearsay train` has one accuracy. The summary of
 * a run of several peers has a smallest and a largest accuracy. */
static void print_result(const struct cmd_out *out, const json_t *j)
{
    char a[CMD_PROGRESS_TEXT], b[CMD_PROGRESS_TEXT];
    const char *verdict = json_string_value(json_object_get(json_object_get(j, "verdict"), "text"));
    if (json_object_get(j, "peers") != NULL)
        printf("accuracy       %s to %s\n", cmd_progress_percent(a, number(j, "accuracy_min")),
               cmd_progress_percent(b, number(j, "accuracy_max")));
    else
        printf("accuracy       %s\n",
               cmd_progress_percent(a, number(j, verdict != NULL ? "accuracy" : "test_accuracy")));
    if (!json_is_null(json_object_get(j, "model")))
        printf("models in      %s\n", out->dir);
    if (verdict != NULL)
        printf("%s\n", verdict);
}

int cmd_out_print_check(const struct options *o, bool finished)
{
    char why[OUTDIR_WHY_MAX];
    const char *dir = options_text(o, "out");
    bool peers = strcmp(o->command->name, "train") != 0;
    if (!finished && dir != NULL && outdir_check(dir, peers, why) < 0)
        return cmd_fail(o, CMD_USAGE, "--out: %s", why);
    if (options_flag(o, "json"))
        printf("{\"finished\":%s}\n", finished ? "true" : "false");
    else
        printf("checked: %s\n", finished ? "the run in --out has finished" : "the run can start");
    return cmd_finish(o);
}

int cmd_out_print_finished(const struct cmd_out *out)
{
    json_t *j = outdir_read_summary(out->dir);
    if (j == NULL)
        return cmd_fail(out->o, CMD_FAILED, "%s/summary.json is missing", out->dir);
    cmd_fail(out->o, CMD_OK, "this run has already finished, in %s; --fresh starts it again",
             out->dir);
    if (options_flag(out->o, "json")) {
        json_dumpf(j, stdout, JSON_COMPACT | JSON_REAL_PRECISION(12));
        putchar('\n');
    } else {
        print_result(out, j);
    }
    const json_t *code = json_object_get(j, "exit_code");
    int exit_code = json_is_integer(code) ? (int)json_integer_value(code) : CMD_FAILED;
    json_decref(j);
    int flushed = cmd_finish(out->o);
    return exit_code == CMD_OK ? flushed : exit_code;
}
