/* peer/cmd/trace_option.c -- opens the file of --trace, and writes the lines of the trace to it. */
#include "peer/cmd/trace_option.h"

#include "peer/trace/log_line.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Files that a run writes under --out. --trace refuses these names, because the lines of the trace
 * would be mixed with the contents of such a file. */
static const char *const run_files[] = {"run.txt",
                                        "identity.key",
                                        "cluster.key",
                                        "metrics.jsonl",
                                        "model.safetensors",
                                        "summary.json",
                                        "promise",
                                        "checkpoint-0.safetensors",
                                        "checkpoint-1.safetensors",
                                        ".lock"};

static bool is_run_file(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    for (size_t i = 0; i < sizeof run_files / sizeof *run_files; i++)
        if (strcmp(name, run_files[i]) == 0)
            return true;
    return false;
}

static void write_line(void *self, const char *line)
{
    struct cmd_trace *t = self;
    int err = trace_file_put(&t->file, line);
    if (err < 0)
        snprintf(t->warning, sizeof t->warning,
                 "cannot write the trace %.300s: %s; the run continues without a trace", t->path,
                 strerror(-err));
}

int cmd_trace_open(struct cmd_trace *t, const struct options *o, int64_t origin_us, int64_t unix_ms,
                   const char *name)
{
    char error[TRACE_FILE_ERROR], header[96 + LOG_TIME_SIZE], when[LOG_TIME_SIZE];
    *t = (struct cmd_trace){.path = options_text(o, "trace"), .file = {.fd = -1}};
    if (t->path == NULL)
        return CMD_OK;
    if (is_run_file(t->path))
        return cmd_fail(o, CMD_USAGE,
                        "--trace %s: a run writes a file of this name; expected "
                        "another name",
                        t->path);
    /* The trace may go to a pipe. If the process that reads the pipe exits, only the trace ends,
     * and the run continues. */
    signal(SIGPIPE, SIG_IGN);
    int err = trace_file_open(&t->file, t->path, unix_ms < 0, error);
    if (err < 0)
        return cmd_fail(o, cmd_exit_of(err), "--trace %s: %s", t->path, error);
    t->trace =
        trace_open(&(struct trace_config){.line = write_line, .self = t, .origin_us = origin_us});
    log_time_text(unix_ms >= 0 ? unix_ms : 0, when);
    snprintf(header, sizeof header, TRACE_FILE_HEADER " of %s%s%s", name,
             unix_ms >= 0 ? " since " : "", unix_ms >= 0 ? when : "");
    write_line(t, header);
    return t->trace != NULL ? CMD_OK : cmd_fail(o, CMD_FAILED, "out of memory for the trace");
}

const char *cmd_trace_take_warning(struct cmd_trace *t)
{
    static char taken[CMD_TRACE_WARNING];
    if (t->warning[0] == '\0')
        return NULL;
    memcpy(taken, t->warning, sizeof taken);
    t->warning[0] = '\0';
    return taken;
}

void cmd_trace_close(struct cmd_trace *t)
{
    if (t->path == NULL)
        return;
    trace_close(t->trace);
    trace_file_close(&t->file);
    t->trace = NULL;
}
