/* tests/unit/trace_file.c -- which files a trace may be written to, and what a failed write
 * does. */
#include "peer/trace/trace_file.h"

#include "nn/files/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/trace_file.XXXXXX", error[TRACE_FILE_ERROR];

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void fill(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void expect_content(const char *path, const char *text)
{
    char found[1024] = "";
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    found[fread(found, 1, sizeof found - 1, f)] = '\0';
    fclose(f);
    assert_string_equal(found, text);
}

/* Opens the file, writes the first line and one more, and closes it. */
static void write_trace(const char *path, bool replaces, const char *line)
{
    struct trace_file f;
    assert_int_equal(trace_file_open(&f, path, replaces, error), 0);
    assert_int_equal(trace_file_put(&f, TRACE_FILE_HEADER), 0);
    assert_int_equal(trace_file_put(&f, line), 0);
    trace_file_close(&f);
}

static void test_a_new_start_appends_or_replaces(void **state)
{
    char path[128];
    (void)state;
    snprintf(path, sizeof path, "%s", path_of("appended"));
    write_trace(path, false, "one");
    write_trace(path, false, "two");
    expect_content(path, "# hearsay trace\none\n# hearsay trace\ntwo\n");
    write_trace(path, true, "three");
    expect_content(path, "# hearsay trace\nthree\n");
    fill(path, "");
    write_trace(path, false, "four");
    expect_content(path, "# hearsay trace\nfour\n");
}

/* Each line is written to the file at once, so that the file is complete if the process is
 * killed. */
static void test_lines_are_written_at_once(void **state)
{
    struct trace_file f;
    char path[128];
    (void)state;
    snprintf(path, sizeof path, "%s", path_of("followed"));
    assert_int_equal(trace_file_open(&f, path, false, error), 0);
    assert_int_equal(trace_file_put(&f, TRACE_FILE_HEADER), 0);
    expect_content(path, "# hearsay trace\n");
    trace_file_close(&f);
}

/* The last line of a killed process may lack its newline. The first line of the next process must
 * still begin a line of its own. */
static void test_a_torn_line_is_ended(void **state)
{
    char path[128];
    (void)state;
    snprintf(path, sizeof path, "%s", path_of("torn"));
    fill(path, "# hearsay trace\n  1.0");
    write_trace(path, false, "two");
    expect_content(path, "# hearsay trace\n  1.0\n# hearsay trace\ntwo\n");
}

static void refuse(const char *path, bool replaces, int err, const char *why)
{
    struct trace_file f;
    assert_int_equal(trace_file_open(&f, path, replaces, error), err);
    if (strstr(error, why) == NULL)
        fail_msg("the error is '%s'; expected '%s'", error, why);
    assert_int_equal(trace_file_put(&f, "x"), 0);
}

static void test_other_files_are_not_touched(void **state)
{
    char path[128];
    (void)state;
    snprintf(path, sizeof path, "%s", path_of("data.csv"));
    fill(path, "a,b\n1,2\n");
    refuse(path, false, -EEXIST, "is no trace");
    refuse(path, true, -EEXIST, "is no trace");
    expect_content(path, "a,b\n1,2\n");
    fill(path, "# hearsay");
    refuse(path, true, -EEXIST, "is no trace");
    expect_content(path, "# hearsay");
    refuse(dir, false, -EISDIR, "directory");
    refuse(path_of("missing/trace"), false, -ENOENT, "No such file");
}

/* A trace must not replace a file that the command has read, even if that file is an older
 * trace. */
static void test_an_input_is_refused(void **state)
{
    char path[128];
    (void)state;
    snprintf(path, sizeof path, "%s", path_of("input"));
    write_trace(path, false, "one");
    replace_protect_inputs();
    int fd = open(path, O_RDONLY);
    replace_add_input(fd);
    close(fd);
    refuse(path, true, -REPLACE_INPUT, "input");
    expect_content(path, "# hearsay trace\none\n");
}

static void test_one_process_at_a_time(void **state)
{
    struct trace_file f;
    char path[128];
    (void)state;
    snprintf(path, sizeof path, "%s", path_of("shared"));
    assert_int_equal(trace_file_open(&f, path, false, error), 0);
    refuse(path, false, -EBUSY, "another process");
    trace_file_close(&f);
    write_trace(path, false, "two");
}

/* The error of a full disk is reported once, and later lines are dropped. */
static void test_a_full_disk_is_reported_once(void **state)
{
    struct trace_file f;
    (void)state;
    if (access("/dev/full", W_OK) != 0)
        skip();
    assert_int_equal(trace_file_open(&f, "/dev/full", false, error), 0);
    assert_int_equal(trace_file_put(&f, "one"), -ENOSPC);
    assert_int_equal(trace_file_put(&f, "two"), 0);
    assert_int_equal(f.fd, -1);
    trace_file_close(&f);
}

/* A pipe without a reader must be refused, and a full pipe must end the trace. In both cases the
 * caller must not have to wait. */
static void test_a_pipe_never_stops_the_run(void **state)
{
    struct trace_file f;
    char path[128], line[1000];
    int err = 0;
    (void)state;
    snprintf(path, sizeof path, "%s", path_of("pipe"));
    assert_int_equal(mkfifo(path, 0600), 0);
    refuse(path, false, -ENXIO, "pipe");
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    assert_int_equal(trace_file_open(&f, path, false, error), 0);
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    for (int i = 0; i < 10000 && err == 0; i++)
        err = trace_file_put(&f, line);
    assert_int_equal(err, -EAGAIN);
    assert_int_equal(trace_file_open(&f, path, false, error), 0);
    close(reader);
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(trace_file_put(&f, line), -EPIPE);
}

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) != NULL ? 0 : -1;
}

static int remove_dir(void **state)
{
    static const char *const names[] = {"appended", "followed", "torn", "data.csv",
                                        "input",    "shared",   "pipe"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(path_of(names[i]));
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_new_start_appends_or_replaces),
        cmocka_unit_test(test_lines_are_written_at_once),
        cmocka_unit_test(test_a_torn_line_is_ended),
        cmocka_unit_test(test_other_files_are_not_touched),
        cmocka_unit_test(test_an_input_is_refused),
        cmocka_unit_test(test_one_process_at_a_time),
        cmocka_unit_test(test_a_full_disk_is_reported_once),
        cmocka_unit_test(test_a_pipe_never_stops_the_run),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
