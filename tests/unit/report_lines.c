/* tests/unit/report_lines.c -- a metrics.jsonl that anybody may have written: peer/report/lines.h. */
#include "peer/report/lines.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char path[] = "report_lines.jsonl";
static struct report_lines lines;
static char error[FILE_ERROR_MAX];

static int close_lines(void **state)
{
    (void)state;
    report_lines_close(&lines);
    remove(path);
    return 0;
}

static int read_bytes(const char *text, size_t n, size_t left)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    report_lines_close(&lines);
    error[0] = '\0';
    return report_lines_read(&lines, path, &left, error);
}

static int read_text(const char *text)
{
    return read_bytes(text, strlen(text), REPORT_LINES_MAX);
}

static void refused(const char *text, const char *why)
{
    assert_int_equal(read_text(text), -EINVAL);
    if (strstr(error, why) == NULL)
        fail_msg("'%s' is not in: %s", why, error);
    assert_null(lines.row);
    assert_int_equal(lines.n, 0);
}

#define START(from)                                                                                \
    "{\"start\": true, \"at\": \"2026-11-22T13:33:02Z\", \"from_round\": " #from "}\n"
#define ROW(round, more) "{\"phase\": \"training\", \"round\": " #round more "}\n"

static void test_rows(void **state)
{
    (void)state;
    assert_int_equal(
        read_text(START(0) ROW(1, ", \"loss\": 2.5, \"accuracy\": null, \"rung\": \"qsgd:4\", "
                                  "\"bytes_sent\": 10, \"time_s\": 0.5, \"new\": []")
                      ROW(2, ", \"loss\": 1.5, \"settle_rounds\": 3, \"rung\": null")),
        0);
    assert_int_equal(lines.n, 2);
    assert_int_equal(lines.n_starts, 1);
    assert_int_equal(lines.start[0].at_s, 1795354382);
    assert_true(lines.row[0].at[REPORT_LOSS] == 2.5);
    assert_true(isnan(lines.row[0].at[REPORT_ACCURACY]));
    assert_true(isnan(lines.row[0].at[REPORT_GAMMA]));
    assert_true(report_lines_step(&lines.row[0]) == 1);
    assert_true(report_lines_step(&lines.row[1]) == 5);
    assert_string_equal(report_lines_word(&lines, &lines.row[0], REPORT_RUNG), "qsgd:4");
    assert_string_equal(report_lines_word(&lines, &lines.row[1], REPORT_RUNG), "");
    assert_string_equal(report_lines_word(&lines, &lines.row[1], REPORT_PHASE), "training");
    assert_true(isnan(report_lines_sent(&lines, &lines.row[1])));
    assert_int_equal(read_text(""), 0);
    assert_int_equal(lines.n, 0);
}

/* A start goes on behind from_round: what was done of later rounds goes, and what it took stays. */
static void test_starts(void **state)
{
    (void)state;
    assert_int_equal(
        read_text(
            START(0) ROW(1, ", \"time_s\": 1, \"bytes_sent\": 10, \"bytes_received\": 1") ROW(
                2, ", \"time_s\": 2, \"bytes_sent\": 20, \"bytes_received\": 2, \"loss\": 7")
                ROW(3, ", \"time_s\": 3, \"bytes_sent\": 30, \"bytes_received\": 3") START(1) ROW(
                    2, ", \"time_s\": 0.5, \"bytes_sent\": 5, \"bytes_received\": 4, \"loss\": 8")),
        0);
    assert_int_equal(lines.n, 2);
    assert_int_equal(lines.row[1].start, 1);
    assert_true(lines.row[1].at[REPORT_LOSS] == 8);
    assert_true(lines.row[1].at[REPORT_BYTES_SENT] == 5);
    assert_true(report_lines_sent(&lines, &lines.row[1]) == 35);
    assert_true(report_lines_received(&lines, &lines.row[1]) == 7);
    assert_true(report_lines_time_s(&lines, &lines.row[1]) == 3.5);
    assert_true(report_lines_sent(&lines, &lines.row[0]) == 10);
}

/* The lines of `train` have other names, and none of a phase. */
static void test_train(void **state)
{
    (void)state;
    assert_int_equal(read_text("{\"start\": true, \"at\": null}\n"
                               "{\"round\": 9, \"loss\": 1, \"accuracy\": 0.5, \"test_accuracy\": "
                               "0.25, \"test_loss\": 2, \"seconds\": 4}\n"),
                     0);
    assert_true(lines.row[0].at[REPORT_ACCURACY] == 0.25);
    assert_true(lines.row[0].at[REPORT_TEST_LOSS] == 2);
    assert_true(lines.row[0].at[REPORT_TIME_S] == 4);
    assert_int_equal(lines.start[0].at_s, -1);
    assert_true(isnan(lines.row[0].at[REPORT_BYTES_SENT]));
}

/* At every byte where a kill may have torn it: whole lines count, the rest does not. */
static void test_torn(void **state)
{
    (void)state;
    static const char text[] = START(0) ROW(1, ", \"loss\": 1") ROW(2, ", \"loss\": 2");
    for (size_t n = 0; n < sizeof text; n++) {
        size_t whole = 0;
        for (size_t i = 0; i < n; i++)
            whole += text[i] == '\n';
        assert_int_equal(read_bytes(text, n, REPORT_LINES_MAX), 0);
        assert_int_equal(lines.n, whole > 1 ? whole - 1 : 0);
    }
}

static void test_refused(void **state)
{
    (void)state;
    refused("{\n", "line 1: found no JSON");
    refused(START(0) "\n", "line 2: found no JSON");
    refused(START(0) ROW(1, ", \"loss\": NaN"), "line 2: found no JSON");
    refused(START(0) ROW(1, ", \"loss\": Infinity"), "line 2: found no JSON");
    refused(ROW(1, ", \"loss\": 1e999"), "line 1: found no JSON");
    refused("[1]\n", "line 1: found a list, expected an object");
    refused("\"x\"\n", "line 1: found");
    refused(ROW(1, ", \"loss\": \"2\""), "line 1: loss: found a text, expected a number or null");
    refused(ROW(1, ", \"loss\": {}"), "line 1: loss: found an object");
    refused(ROW(1.5, ""), "line 1: round: found 1.5, expected a whole number");
    refused(ROW(-1, ""), "line 1: round: found -1");
    refused(ROW(null, ""), "line 1: round: found none");
    refused("{\"phase\": \"x\"}\n", "line 1: round: found none");
    refused(ROW(9007199254740993, ""), "line 1: round: found 9.0");
    refused(ROW(99999999999999999999, ""), "line 1: found no JSON");
    refused(ROW(1, ", \"time_s\": -1"), "line 1: time_s: found -1, expected a number from 0 on");
    refused(ROW(1, ", \"bytes_sent\": true"), "bytes_sent: found a truth value");
    refused(ROW(1, ", \"round\": 2"), "line 1: found no JSON"); /* Twice is once too often. */
    refused(ROW(1, ", \"rung\": 5"), "line 1: rung: found a number, expected a text or null");
    refused("{\"start\": true, \"at\": 5}\n", "line 1: at: found a number");
    refused("{\"start\": true, \"at\": \"yesterday\"}\n", "line 1: at: expected a time");
    refused("{\"start\": true, \"at\": \"2026-13-22T13:33:02Z\"}\n", "line 1: at: expected a time");
    refused("{\"start\": true, \"from_round\": -1}\n", "line 1: from_round: found -1");
    assert_int_equal(read_bytes("{\"a\": \"\0\"}\n", 11, 9), -EINVAL);
    assert_int_equal(read_bytes("\xff\xfe\n", 3, 9), -EINVAL);
}

/* What is too much: a long line, many lines, deep nesting, long and many words. */
static void test_limits(void **state)
{
    (void)state;
    enum { LONG = REPORT_LINE_MAX + 10 };
    char *text = malloc(LONG + 1);
    assert_non_null(text);
    memset(text, ' ', LONG);
    text[LONG] = '\0';
    refused(text, "line 1: too long");
    memcpy(text, "{\"round\": 1}", 12);
    text[REPORT_LINE_MAX - 1] = '\n';
    assert_int_equal(read_bytes(text, REPORT_LINE_MAX, 9), 0);
    assert_int_equal(lines.n, 1);
    memset(text, '[', LONG);
    text[REPORT_LINE_MAX - 1] = '\n';
    refused(text, "line 1: found no JSON");
    free(text);
    assert_int_equal(read_bytes(ROW(1, "") ROW(2, ""), strlen(ROW(1, "") ROW(2, "")), 1), -EINVAL);
    assert_non_null(strstr(error, "line 2: too many lines"));
    refused(ROW(1, ", \"rung\": \"0123456789012345678901234567890123456789012345678901234567890123"
                   "\""),
            "rung: found a text of 64 bytes, expected 63 at most");
    char *words = calloc(300, 64), *at = words;
    assert_non_null(words);
    for (int i = 1; i <= 300; i++)
        at += sprintf(at, "{\"phase\": \"p\", \"round\": %d, \"rung\": \"r%d\"}\n", i, i);
    refused(words, "line 255: rung: more than 255 different texts");
    free(words);
}

static void test_no_file(void **state)
{
    (void)state;
    size_t left = 9;
    remove(path);
    assert_int_equal(report_lines_read(&lines, path, &left, error), -ENOENT);
    assert_int_equal(report_lines_read(&lines, ".", &left, error), -EINVAL);
    assert_int_equal(report_lines_read(&lines, "/dev/zero", &left, error), -EINVAL);
}

int main(void)
{
    char work[] = "report-lines-XXXXXX";
    if (mkdtemp(work) == NULL || chdir(work) < 0)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),    cmocka_unit_test(test_starts),
        cmocka_unit_test(test_train),   cmocka_unit_test(test_torn),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_no_file),
    };
    int failed = cmocka_run_group_tests(tests, NULL, close_lines);
    return chdir("..") < 0 || rmdir(work) < 0 ? 1 : failed;
}
