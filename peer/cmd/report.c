/* peer/cmd/report.c -- `hearsay report DIR...`: what runs have left, as a page, a table, or event
 * files.
 *
 * Everything is read and checked before anything is written. A file that is there already is
 * written over only if its first bytes say that this command made it, or with --force. */
#include "nn/files/replace.h"
#include "peer/cmd/cmd.h"
#include "peer/cmd/files.h"
#include "peer/cmd/report_draw.h"
#include "peer/report/csv.h"
#include "peer/report/events.h"
#include "peer/sgd/sgd_keys.h"
#include "peer/store/outdir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* clang-format off */
const struct option_row cmd_report_rows[] = {
    {.name = "dir", .kind = OPTION_OPERAND, .arg = "DIR", .required = true, .many = true,
     .help = "what --out of a run was, or one peer's directory in it; several stand side by side"},
    {.name = "out", .kind = OPTION_TEXT, .arg = "FILE",
     .help = "the page; default: report.html in the first DIR, and none with --csv or "
             "--tensorboard"},
    {.name = "csv", .kind = OPTION_TEXT, .arg = "FILE",
     .help = "write a table of all metrics, a line for each peer and round; - is stdout"},
    {.name = "tensorboard", .kind = OPTION_TEXT, .arg = "LOGDIR",
     .help = "write event files for TensorBoard, in a directory for each peer"},
    {.name = "force", .kind = OPTION_FLAG,
     .help = "write over files that hearsay report did not make"},
    {.name = NULL},
};
/* clang-format on */

static const char page_file[] = "report.html";

/* The runs, as they were read. */
struct reports
{
    const struct options *o;
    struct report_run *run;
    size_t n;
};

/* ---- What is there already. ---- */

static int may_write(const struct options *o, const char *path, const void *mark, size_t n)
{
    return cmd_may_write(o, path, mark, n, options_flag(o, "force"),
                         "not of hearsay report; --force writes over it");
}

static int cannot_write(const struct options *o, const char *path, int err)
{
    return cmd_cannot_write(o, NULL, path, err);
}

static int write_text(const struct options *o, const char *path, const struct report_text *text,
                      size_t n_mark)
{
    if (text->broken)
        return cannot_write(o, path, -ENOMEM);
    int code = may_write(o, path, text->bytes, n_mark);
    if (code != CMD_OK)
        return code;
    int err = replace_file(path, text->bytes, text->n);
    return err < 0 ? cannot_write(o, path, err) : CMD_OK;
}

/* ---- The page. ---- */

static int write_page(const struct reports *r)
{
    char path[REPORT_PATH_MAX];
    struct cmd_report_draw draw;
    struct report_drawer drawer;
    struct report_text page = {0};
    const char *out = options_text(r->o, "out");
    int n = out != NULL ? snprintf(path, sizeof path, "%s", out)
                        : snprintf(path, sizeof path, "%s/%s", r->run[0].path, page_file);
    if (n >= (int)sizeof path)
        return cmd_fail(r->o, CMD_USAGE, "--out: %.200s...: too long", path);
    int code = may_write(r->o, path, report_page_mark, strlen(report_page_mark));
    if (code != CMD_OK)
        return code;
    cmd_report_draw_init(&draw, &drawer);
    if (!drawer.there[REPORT_GNUPLOT])
        fputs("hearsay report: gnuplot is not installed (Debian: gnuplot-nox): the page has no "
              "curves and bars\n",
              stderr);
    if (!drawer.there[REPORT_NEATO])
        fputs("hearsay report: graphviz is not installed (Debian: graphviz): the page has no "
              "graphs\n",
              stderr);
    int err = report_page_write(&page, r->run, r->n, &sgd_keys, &drawer);
    code = err < 0 ? cannot_write(r->o, path, err)
                   : write_text(r->o, path, &page, strlen(report_page_mark));
    report_text_close(&page);
    if (code == CMD_OK)
        puts(path);
    return code;
}

/* ---- The table. ---- */

/* To stdout where there is no file. */
static int put(struct replace *file, const struct report_text *text)
{
    if (file != NULL)
        return replace_put(file, text->bytes, text->n);
    return fwrite(text->bytes, 1, text->n, stdout) == text->n ? 0 : -errno;
}

/* One peer at a time, so that no more than its rows are in memory twice. */
static int put_rows(const struct reports *r, struct replace *file, struct report_text *text)
{
    int err = put(file, text);
    for (size_t i = 0; i < r->n; i++)
        for (size_t p = 0; p < r->run[i].n_peers && err == 0; p++) {
            report_text_close(text);
            report_csv_peer(text, &r->run[i], p);
            err = text->broken ? -ENOMEM : text->n > 0 ? put(file, text) : 0;
        }
    return err;
}

static int write_csv(const struct reports *r)
{
    const char *path = options_text(r->o, "csv");
    struct report_text text = {0};
    struct replace file;
    report_csv_head(&text);
    if (strcmp(path, "-") == 0) {
        int err = text.broken ? -ENOMEM : put_rows(r, NULL, &text);
        report_text_close(&text);
        if (err == 0 && fflush(stdout) != 0)
            err = -errno;
        return err < 0 ? cannot_write(r->o, "stdout", err) : CMD_OK;
    }
    int code =
        text.broken ? cannot_write(r->o, path, -ENOMEM) : may_write(r->o, path, text.bytes, text.n);
    if (code == CMD_OK) {
        int err = replace_begin(&file, path);
        if (err == 0)
            err = replace_end(&file, put_rows(r, &file, &text));
        code = err < 0 ? cannot_write(r->o, path, err) : CMD_OK;
    }
    report_text_close(&text);
    if (code == CMD_OK)
        puts(path);
    return code;
}

/* ---- Event files. ---- */

/* Where a peer's go: LOGDIR/PEER, of several runs LOGDIR/RUN/PEER, and LOGDIR/RUN of a run that has
 * no directories of peers. */
static int event_path(char path[OUTDIR_PATH_MAX], const struct reports *r, size_t i, size_t p)
{
    const struct report_run *run = &r->run[i];
    bool by_run = r->n > 1 || !run->several;
    int n = snprintf(path, OUTDIR_PATH_MAX, "%s%s%s%s%s", options_text(r->o, "tensorboard"),
                     by_run ? "/" : "", by_run ? run->label : "", run->several ? "/" : "",
                     run->several ? run->peer[p].name : "");
    return n < OUTDIR_PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int write_events(const struct reports *r, size_t i, size_t p)
{
    char dir[OUTDIR_PATH_MAX], path[OUTDIR_PATH_MAX + REPORT_EVENTS_NAME], name[REPORT_EVENTS_NAME];
    struct report_text text = {0};
    size_t n_mark;
    int err = event_path(dir, r, i, p);
    if (err == 0)
        err = outdir_make(dir);
    if (err < 0)
        return cannot_write(r->o, dir, err);
    report_events_name(name, &r->run[i].peer[p]);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    report_events_peer(&text, &r->run[i].peer[p], &n_mark);
    int code = write_text(r->o, path, &text, n_mark);
    report_text_close(&text);
    return code;
}

static int write_all_events(const struct reports *r)
{
    int code = CMD_OK;
    for (size_t i = 0; i < r->n; i++)
        for (size_t p = 0; p < r->run[i].n_peers && code == CMD_OK; p++)
            if (r->run[i].peer[p].lines.n > 0)
                code = write_events(r, i, p);
    if (code == CMD_OK)
        puts(options_text(r->o, "tensorboard"));
    return code;
}

/* ---- The command. ---- */

static bool is_alone(const struct report_run *run, size_t n, size_t i)
{
    size_t k = 0;
    while (k < n && (k == i || strcmp(run[k].label, run[i].label) != 0))
        k++;
    return k == n;
}

/* "lr=0.01-seed-1" of OUT/lr=0.01/seed-1. */
static void name_by_parent(const struct report_run *run, char label[REPORT_NAME_MAX])
{
    char *real = realpath(run->path, NULL), *slash = real != NULL ? strrchr(real, '/') : NULL;
    if (slash != NULL && slash != real) {
        *slash = '\0';
        snprintf(label, REPORT_NAME_MAX, "%.120s-%.120s", file_base_name(real), slash + 1);
    } else {
        snprintf(label, REPORT_NAME_MAX, "%s", run->label);
    }
    free(real);
}

/* Runs of one name, as those of a sweep have, get their parent's in front; and where that is the same, too,
 * numbers, so that each has a name of its own. */
static void tell_apart(struct report_run *run, size_t n)
{
    bool shared[OPTIONS_OPERANDS_MAX];
    for (size_t i = 0; i < n; i++)
        shared[i] = !is_alone(run, n, i);
    for (size_t i = 0; i < n; i++) {
        char label[REPORT_NAME_MAX];
        if (shared[i]) {
            name_by_parent(&run[i], label);
            memcpy(run[i].label, label, sizeof label);
        }
    }
    for (size_t i = 1; i < n; i++) {
        char label[REPORT_NAME_MAX];
        snprintf(label, sizeof label, "%s", run[i].label);
        bool taken = true;
        for (size_t number = 2; taken; number++) {
            taken = false;
            for (size_t k = 0; k < i; k++)
                taken |= strcmp(run[k].label, run[i].label) == 0;
            if (taken)
                snprintf(run[i].label, sizeof run[i].label, "%.200s-%zu", label, number);
        }
    }
}

static int read_all(struct reports *r, const char *const *dirs)
{
    char error[FILE_ERROR_MAX];
    size_t left = REPORT_LINES_MAX;
    uint32_t n = (uint32_t)r->n;
    r->n = 0;
    for (uint32_t i = 0; i < n; i++) {
        int err = report_run_read(&r->run[i], dirs[i], &left, error);
        if (err < 0)
            return cmd_fail(r->o, err == -ENOMEM ? CMD_FAILED : CMD_USAGE, "%s", error);
        r->n++;
    }
    tell_apart(r->run, r->n);
    return CMD_OK;
}

static int write_all(const struct reports *r)
{
    bool csv = options_given(r->o, "csv"), events = options_given(r->o, "tensorboard");
    int code = CMD_OK;
    if (options_given(r->o, "out") || (!csv && !events))
        code = write_page(r);
    if (code == CMD_OK && csv)
        code = write_csv(r);
    if (code == CMD_OK && events)
        code = write_all_events(r);
    return code;
}

int cmd_report(const struct options *o)
{
    const char *const *dirs;
    struct reports r = {.o = o, .n = options_operands(o, &dirs)};
    r.run = calloc(r.n, sizeof *r.run);
    if (r.run == NULL)
        return cmd_fail(o, CMD_FAILED, "out of memory");
    int code = read_all(&r, dirs);
    if (code == CMD_OK)
        code = write_all(&r);
    for (size_t i = 0; i < r.n; i++)
        report_run_close(&r.run[i]);
    free(r.run);
    int flushed = cmd_finish(o);
    return code != CMD_OK ? code : flushed;
}
