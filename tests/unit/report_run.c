/* tests/unit/report_run.c -- directories of results: what is found there, and what a run came to
 * (peer/report/run.h, final.h, csv.h, events.h). */
#include "peer/report/run.h"

#include "peer/report/csv.h"
#include "peer/report/events.h"
#include "peer/report/final.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct report_run run;
static char error[FILE_ERROR_MAX];

/* ---- A directory of each test's own, "d". ---- */

static int make_dir(void **state)
{
    (void)state;
    return mkdir("d", 0700);
}

static int remove_dir(void **state)
{
    (void)state;
    report_run_close(&run);
    return system("rm -rf d");
}

static void put(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "d/%s", name);
    for (char *slash = path + 2; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        (void)!mkdir(path, 0700);
        *slash = '/';
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static int read_dir(const char *dir)
{
    size_t left = 1000;
    report_run_close(&run);
    memset(&run, 0, sizeof run);
    error[0] = '\0';
    return report_run_read(&run, dir, &left, error);
}

static void refused(const char *why)
{
    assert_true(read_dir("d") < 0);
    if (strstr(error, why) == NULL)
        fail_msg("'%s' is not in: %s", why, error);
    assert_null(run.peer);
}

static const char row[] = "{\"phase\": \"training\", \"round\": 1, \"loss\": 0.5, \"time_s\": 8, "
                          "\"compute_s\": 4, \"wait_s\": 2, \"mix_s\": 1, \"bytes_sent\": 7, "
                          "\"relative_drift\": 0.25, \"drift_round\": 1}\n";

/* ---- What is found. ---- */

static void test_several(void **state)
{
    (void)state;
    put("peer-10/metrics.jsonl", row);
    put("peer-2/metrics.jsonl", row);
    put("peer-2/summary.json", "{\"accuracy\": 0.5}");
    put("other/metrics.jsonl", "none of ours\n");
    put("old.1/metrics.jsonl", "nor this\n");
    put("run.txt", "command=local\n--peers=2\nlr=0.02\ntopology=ring\n");
    put("summary.json", "{\"n_peers\": 2, \"accuracy_min\": 0.25, \"accuracy_max\": 0.75, "
                        "\"relative_drift\": 0.125, \"bytes_sent\": 5, \"bytes_sent_in_all\": 99, "
                        "\"seconds\": 3, \"verdict\": {\"text\": \"<b>\", \"rounds_skipped\": 4}, "
                        "\"peers\": [{\"name\": \"peer-10\", \"accuracy\": 0.75}, "
                        "{\"name\": \"peer-2\", \"accuracy\": 0.9}]}");
    assert_int_equal(read_dir("d"), 0);
    assert_true(run.several);
    assert_int_equal(run.n_peers, 2);
    assert_string_equal(run.label, "d");
    assert_string_equal(run.peer[0].name, "peer-2");
    assert_string_equal(run.peer[1].name, "peer-10");
    assert_string_equal(run.end.verdict, "<b>");
    /* A peer's own word comes before that of its run. */
    assert_true(run.peer[0].end.at[REPORT_F_ACCURACY] == 0.5);
    assert_true(run.peer[1].end.at[REPORT_F_ACCURACY] == 0.75);
    char value[8];
    assert_true(report_run_setting(&run, "lr", value, sizeof value));
    assert_string_equal(value, "0.02");
    assert_true(report_run_setting(&run, "--peers", value, sizeof value));
    assert_string_equal(value, "2");
    assert_false(report_run_setting(&run, "l", value, sizeof value));
    assert_false(report_run_setting(&run, "topology", value, 4));
    struct report_final f = report_final_of(&run);
    assert_true(f.accuracy.low == 0.25 && f.accuracy.high == 0.75);
    assert_true(f.exact == 0.125 && f.sent == 99 && f.skipped == 4 && f.seconds == 3);
    assert_true(isnan(f.estimated) && isnan(f.wall_s) && isnan(f.received));
}

/* Without a summary of the run its peers' figures are added, compared, and averaged. */
static void test_unfinished(void **state)
{
    (void)state;
    put("a/metrics.jsonl", row);
    put("b/metrics.jsonl", row);
    put("b/summary.json", "{\"bytes_sent\": 11, \"accuracy\": 0.5, \"relative_drift\": 0.75, "
                          "\"drift_round\": 1, \"exit_code\": 0}");
    put("c/notes.txt", "x");
    assert_int_equal(read_dir("d/"), 0);
    assert_string_equal(run.label, "d");
    assert_int_equal(run.n_peers, 2);
    struct report_final f = report_final_of(&run);
    assert_true(f.sent == 18);
    assert_true(f.accuracy.low == 0.5 && f.accuracy.high == 0.5);
    assert_true(f.estimated == 0.5);
    assert_true(isnan(f.exact) && isnan(f.exit_code) && isnan(f.received));
    assert_true(f.rounds == 1 && f.seconds == 8);
    struct report_times t = report_final_times(&run.peer[0]);
    assert_true(t.compute == 4 && t.wait == 2 && t.mix == 1 && t.rest == 1);
}

/* An estimate of an older round has no part in the mean. */
static void test_newest_estimate(void **state)
{
    (void)state;
    put("peer-0/metrics.jsonl", row);
    put("peer-1/metrics.jsonl", "{\"phase\": \"x\", \"round\": 9, \"relative_drift\": 0.5, "
                                "\"drift_round\": 8}\n");
    assert_int_equal(read_dir("d"), 0);
    assert_true(report_final_of(&run).estimated == 0.5);
}

static void test_one(void **state)
{
    (void)state;
    put("metrics.jsonl", "{\"start\": true, \"at\": null, \"from_round\": 0}\n"
                         "{\"round\": 5, \"loss\": 1, \"seconds\": 2}\n");
    put("summary.json",
        "{\"round\": 5, \"accuracy\": 0.9, \"test_accuracy\": 0.5, \"test_loss\": 2, "
        "\"seconds\": 3, \"exit_code\": 0}");
    assert_int_equal(read_dir("d"), 0);
    assert_false(run.several);
    assert_int_equal(run.n_peers, 1);
    struct report_final f = report_final_of(&run);
    assert_true(f.accuracy.low == 0.5 && f.rounds == 5 && f.seconds == 3 && f.loss.low == 1);
    assert_true(isnan(f.sent));
}

static void test_order(void **state)
{
    (void)state;
    static const char *const sorted[] = {"a", "peer-0", "peer-2", "peer-10", "peer-10b", "peer-11"};
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 6; k++) {
            int order = report_run_order(sorted[i], sorted[k]);
            assert_int_equal((order > 0) - (order < 0), (i > k) - (i < k));
        }
    assert_true(report_run_order("99999999999999999999998", "99999999999999999999999") < 0);
}

/* ---- What is refused. ---- */

static void test_refused(void **state)
{
    (void)state;
    refused("found no metrics.jsonl");
    assert_int_equal(read_dir("d/none"), -ENOENT);
    put("peer-0/metrics.jsonl", row);
    put("summary.json", "{\"accuracy_min\": \"high\"}");
    refused("d/summary.json: accuracy_min: found a text, expected a number from 0 on, or null");
    put("summary.json", "{\"verdict\": {\"text\": 5}}");
    refused("d/summary.json: text: found a number");
    put("summary.json", "{\"verdict\": {\"rounds_skipped\": 0.5}}");
    refused("d/summary.json: rounds_skipped: found 0.5");
    put("summary.json", "{\"peers\": [{\"name\": \"peer-0\", \"test_loss\": []}]}");
    refused("d/summary.json: test_loss: found a list");
    put("summary.json", "not JSON");
    refused("d/summary.json: found no JSON");
    put("summary.json", "{\"verdict\": 7, \"peers\": 7}");
    assert_int_equal(read_dir("d"), 0);
    put("peer-1/metrics.jsonl", "broken\n");
    refused("d/peer-1/metrics.jsonl: line 1: found no JSON");
    put("peer-1/metrics.jsonl", row);
    put("run.txt/x", "a directory");
    refused("d/run.txt: found something else, expected a regular file");
}

static void test_other_run(void **state)
{
    (void)state;
    put("a/metrics.jsonl", row);
    put("a/run.txt", "command=peer\n--shard=1/2\nlr=0.1\n");
    put("b/metrics.jsonl", row);
    put("b/run.txt", "command=peer\n--shard=2/2\nlr=0.1\n");
    assert_int_equal(read_dir("d"), 0);
    put("b/run.txt", "command=peer\n--shard=2/2\nlr=0.2\n");
    refused("d/b: found another run than its neighbour's (lr=0.1 there, 0.2 here)");
}

static void test_links(void **state)
{
    (void)state;
    put("peer-0/metrics.jsonl", row);
    assert_int_equal(symlink("/etc", "d/elsewhere"), 0); /* A stranger's: passed over. */
    assert_int_equal(read_dir("d"), 0);
    assert_int_equal(symlink("peer-0", "d/peer-1"), 0);
    refused("d/peer-1: found a symbolic link, which is not followed, expected a directory");
    assert_int_equal(unlink("d/peer-1"), 0);
    assert_int_equal(symlink("/etc/passwd", "d/summary.json"), 0);
    refused("d/summary.json: found a symbolic link");
    assert_int_equal(unlink("d/summary.json"), 0);
    assert_int_equal(symlink("peer-0/metrics.jsonl", "d/metrics.jsonl"), 0);
    refused("d/metrics.jsonl: found a symbolic link");
    assert_int_equal(unlink("d/metrics.jsonl"), 0);
    assert_int_equal(mkfifo("d/run.txt", 0600), 0);
    refused("d/run.txt: found something else");
}

/* ---- What is made of it. ---- */

static void test_csv(void **state)
{
    (void)state;
    struct report_text t = {0};
    put("peer-0/metrics.jsonl", row);
    assert_int_equal(read_dir("d"), 0);
    strcpy(run.label, "=a,b");
    report_csv_head(&t);
    size_t head = t.n;
    assert_non_null(strstr(t.bytes, "run,peer,start,phase,rung,rung_by,round,rounds,"));
    report_csv_peer(&t, &run, 0);
    assert_non_null(strstr(t.bytes + head, "\"'=a,b\",peer-0,0,training,,,1,,,8,0.5,,,,0.25,1,"));
    size_t fields[2] = {0}, line = 0;
    for (size_t i = 0; i < t.n; i++) {
        line += t.bytes[i] == '\n';
        fields[i >= head] += t.bytes[i] == ',';
    }
    assert_int_equal(line, 2);
    assert_int_equal(fields[1], fields[0] + 1); /* One is in quotes. */
    assert_int_equal(fields[0], 2 + REPORT_WORDS + REPORT_COLUMNS);
    report_text_close(&t);
}

static size_t count_of(const struct report_text *t, const char *tag)
{
    size_t n = 0, length = strlen(tag);
    for (size_t i = 0; i + length <= t->n; i++)
        n += memcmp(t->bytes + i, tag, length) == 0;
    return n;
}

static void test_events(void **state)
{
    (void)state;
    struct report_text t = {0};
    size_t mark;
    char name[REPORT_EVENTS_NAME];
    put("peer-0/metrics.jsonl",
        "{\"start\": true, \"at\": \"2001-09-09T01:46:40Z\", \"from_round\": 0}\n"
        "{\"phase\": \"x\", \"round\": 1, \"loss\": 1, \"relative_drift\": 3, \"drift_round\": 0}\n"
        "{\"phase\": \"x\", \"round\": 2, \"loss\": 1, \"relative_drift\": 3, \"drift_round\": 0}\n"
        "{\"phase\": \"x\", \"round\": 3, \"relative_drift\": 3, \"drift_round\": 2}\n");
    assert_int_equal(read_dir("d"), 0);
    report_events_name(name, &run.peer[0]);
    assert_string_equal(name, "events.out.tfevents.1000000000.hearsay");
    report_events_peer(&t, &run.peer[0], &mark);
    assert_true(mark > 0 && mark < t.n);
    assert_int_equal(count_of(&t, "brain.Event:2"), 1);
    assert_int_equal(count_of(&t, "loss"), 2);
    assert_int_equal(count_of(&t, "relative_drift"), 2); /* Once a round that it is of. */
    report_text_close(&t);
}

int main(void)
{
    char work[] = "report-run-XXXXXX";
    if (mkdtemp(work) == NULL || chdir(work) < 0)
        return 1;
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)
    const struct CMUnitTest tests[] = {
        TEST(test_several), TEST(test_unfinished), TEST(test_newest_estimate), TEST(test_one),
        TEST(test_order),   TEST(test_refused),    TEST(test_other_run),       TEST(test_links),
        TEST(test_csv),     TEST(test_events),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return chdir("..") < 0 || rmdir(work) < 0 ? 1 : failed;
}
