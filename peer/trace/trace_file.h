/* peer/trace/trace_file.h -- the file to which a trace is written, line by line.
 *
 * What happens depends on the file at the path:
 *
 *   no file, or an empty file: the trace is written to it;
 *   a trace of an earlier start: lines are appended, or with `replaces` replace the old lines;
 *   any other file, a directory, or an input file: refused, because only traces may be changed;
 *   a trace that another process writes: refused;
 *   a pipe or a device: lines are written to it.
 *
 * Each line is written without a buffer, so that `tail -f` shows it at once and no line is lost if
 * the process is killed. A write never waits: if the disk is full or the reader of a pipe is too
 * slow, the trace ends there, and the run continues without it.
 */
#ifndef PEER_TRACE_TRACE_FILE_H
#define PEER_TRACE_TRACE_FILE_H

#include <stdbool.h>

enum {
    TRACE_FILE_ERROR = 256, /* Size of an error message in bytes, with the NUL. */
    TRACE_FILE_LINE = 8192  /* Size of a line in bytes, with its newline. Longer lines are cut. */
};

/* First characters of the line that begins each trace. */
#define TRACE_FILE_HEADER "# hearsay trace"

struct trace_file
{
    int fd;       /* Descriptor of the file. -1: closed, and lines are dropped. */
    bool regular; /* True: the file is a regular file, not a pipe or a device. */
};

/* Opens the file. `replaces`: an earlier trace in the file is removed. The caller then writes a
 * line that begins with TRACE_FILE_HEADER. Returns 0, or a negative errno with a text in error[]
 * that does not contain `path`. */
__attribute__((warn_unused_result)) int trace_file_open(struct trace_file *f, const char *path,
                                                        bool replaces,
                                                        char error[TRACE_FILE_ERROR]);
/* Writes a line and a newline. If the write fails, closes the file and returns a negative errno.
 * Later calls do nothing and return 0, so the error is reported once. */
__attribute__((warn_unused_result)) int trace_file_put(struct trace_file *f, const char *line);
void trace_file_close(struct trace_file *f);

#endif
