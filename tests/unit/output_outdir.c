/* tests/unit/output_outdir.c -- tests of peer/output/outdir.h: a directory that belongs to one
 * run. */
#include "peer/output/outdir.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const char ours[] = "command=local\n--peers=2\nlr=0.02\n",
                  other[] = "command=local\n--peers=4\nlr=0.02\n",
                  alone[] = "command=train\nlr=0.02\n";
static char work[64], dir[128], why[OUTDIR_WHY_MAX], moved[OUTDIR_PATH_MAX];

/* ---- A directory of each test's own. ---- */

static int make_work(void **state)
{
    (void)state;
    strcpy(work, "outdir-XXXXXX");
    if (mkdtemp(work) == NULL)
        return -1;
    snprintf(dir, sizeof dir, "%s/a/b", work);
    return 0;
}

static int remove_work(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", work);
    return system(command);
}

static const char *path_of(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void put(const char *name, const char *text)
{
    FILE *f = fopen(path_of(name), "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static bool holds(const char *name, const char *text)
{
    char got[256] = "";
    FILE *f = fopen(path_of(name), "r");
    if (f == NULL)
        return false;
    got[fread(got, 1, sizeof got - 1, f)] = '\0';
    fclose(f);
    return strcmp(got, text) == 0;
}

static bool exists(const char *name)
{
    return access(path_of(name), F_OK) == 0;
}

static enum outdir_state look(const char *text)
{
    return outdir_inspect(dir, text, why);
}

static struct outdir opened(void)
{
    struct outdir d;
    assert_int_equal(outdir_open(&d, dir, why), 0);
    return d;
}

/* ---- The run of a directory ---- */

static void test_states(void **state)
{
    (void)state;
    assert_int_equal(look(ours), OUTDIR_NEW);
    assert_false(exists("")); /* outdir_inspect() does not make the directory. */
    struct outdir d = opened();
    put("identity.key", "of somebody else");
    assert_int_equal(look(ours), OUTDIR_NEW);
    assert_int_equal(outdir_write_identity(&d, ours, why), 0);
    assert_true(holds("run.txt", ours));
    assert_int_equal(look(ours), OUTDIR_UNFINISHED);
    assert_int_equal(look(other), OUTDIR_OTHER_RUN);
    assert_string_equal(why, "--peers=2 there, 4 here");
    /* outdir_write_identity() replaces the identity of another run. Its caller must check the
     * directory first. */
    assert_int_equal(outdir_write_identity(&d, other, why), 0);
    assert_int_equal(look(ours), OUTDIR_OTHER_RUN);
    outdir_close(&d);
}

/* If a file of a run is a FIFO, the directory must be refused without blocking in open(). A
 * directory in the place of such a file is refused, too, because the run would fail when it writes
 * the file. Only a directory in the place of a checkpoint is accepted, as a damaged checkpoint. */
static void test_only_regular_files_are_used(void **state)
{
    static const char *const names[] = {"run.txt",
                                        "summary.json",
                                        ".lock",
                                        "metrics.jsonl",
                                        "promise",
                                        "model.safetensors",
                                        "checkpoint-1.safetensors"};
    struct outdir d = opened();
    (void)state;
    outdir_close(&d);
    assert_int_equal(mkdir(path_of("peer-0"), 0700), 0);
    for (size_t i = 0; i < 2 * sizeof names / sizeof *names; i++) {
        char name[64];
        bool of_peer = i % 2 == 1;
        snprintf(name, sizeof name, "%s%s", of_peer ? "peer-0/" : "", names[i / 2]);
        unlink(path_of(name));
        assert_int_equal(outdir_check(dir, true, why), 0);
        assert_int_equal(mkfifo(path_of(name), 0600), 0);
        assert_int_equal(outdir_check(dir, true, why), -EINVAL);
        assert_non_null(strstr(why, name));
        assert_null(outdir_open_file(dir, name));
        assert_int_equal(outdir_open(&d, dir, why), of_peer ? 0 : -EINVAL);
        assert_true(of_peer || strstr(why, name) != NULL);
        outdir_close(&d);
        assert_int_equal(unlink(path_of(name)), 0);
        assert_int_equal(mkdir(path_of(name), 0700), 0);
        int expected = strstr(name, "checkpoint-") != NULL ? 0 : -EINVAL;
        assert_int_equal(outdir_check(dir, true, why), expected);
        assert_true(expected == 0 || strstr(why, name) != NULL);
        assert_int_equal(outdir_open(&d, dir, why), of_peer ? 0 : expected);
        outdir_close(&d);
        assert_int_equal(rmdir(path_of(name)), 0);
    }
}

static void test_foreign_files(void **state)
{
    (void)state;
    static const char *const files[] = {"model.safetensors", "metrics.jsonl", "summary.json"};
    assert_int_equal(outdir_make(dir), 0);
    for (size_t i = 0; i < 3; i++) {
        put(files[i], "x");
        assert_int_equal(look(alone), OUTDIR_UNKNOWN_RUN);
        assert_string_equal(why, files[i]);
        assert_int_equal(unlink(path_of(files[i])), 0);
    }
    /* Results in a peer's directory (peer-3) prevent a command with several peers from starting a
     * new run, but not a command with one peer. An empty directory prevents neither. */
    assert_int_equal(mkdir(path_of("peer-3"), 0700), 0);
    assert_int_equal(look(ours), OUTDIR_NEW);
    put("peer-3/model.safetensors", "x");
    assert_int_equal(look(ours), OUTDIR_UNKNOWN_RUN);
    assert_string_equal(why, "peer-3");
    assert_int_equal(look(alone), OUTDIR_NEW);
    put("run.txt", ""); /* An empty run.txt does not name a run. */
    assert_int_equal(look(ours), OUTDIR_UNKNOWN_RUN);
}

/* ---- Finished. ---- */

static void finish(const char *summary)
{
    json_t *j = json_loads(summary, 0, NULL);
    assert_non_null(j);
    assert_int_equal(outdir_write_summary(dir, j), 0);
    json_decref(j);
}

static void test_finished(void **state)
{
    (void)state;
    struct outdir d = opened();
    assert_int_equal(outdir_write_identity(&d, alone, why), 0);
    put("model.safetensors", "x");
    assert_int_equal(look(alone), OUTDIR_UNFINISHED);
    finish("{\"finished\": false}"); /* A run that was stopped counts as unfinished. */
    assert_int_equal(look(alone), OUTDIR_UNFINISHED);
    finish("{\"finished\": true, \"exit_code\": 0}");
    assert_int_equal(look(alone), OUTDIR_FINISHED);
    json_t *j = outdir_read_summary(dir);
    assert_true(json_is_integer(json_object_get(j, "exit_code")));
    json_decref(j);
    assert_int_equal(unlink(path_of("model.safetensors")), 0);
    /* Without its model a finished run counts as unfinished. */
    assert_int_equal(look(alone), OUTDIR_UNFINISHED);
    put("model.safetensors", "x");
    /* A damaged summary may be that of a finished run, whose model must not be replaced. */
    put("summary.json", "{\"finished\": tr");
    assert_int_equal(look(alone), OUTDIR_DAMAGED);
    assert_string_equal(why, "summary.json is damaged: line 1: invalid token near 'tr'");
    put("summary.json", "");
    assert_int_equal(look(alone), OUTDIR_DAMAGED);
    put("summary.json", "{\"exit_code\": 0}");
    assert_int_equal(look(alone), OUTDIR_DAMAGED);
    assert_string_equal(why, "summary.json is damaged: found no \"finished\": true or false");
    assert_int_equal(unlink(path_of("summary.json")), 0);
    assert_int_equal(look(alone), OUTDIR_UNFINISHED);
    outdir_close(&d);
}

static void test_finished_peers(void **state)
{
    (void)state;
    struct outdir d = opened();
    assert_int_equal(outdir_write_identity(&d, ours, why), 0);
    finish("{\"finished\": true, \"peers\": [{\"name\": \"peer-0\", \"model\": \"m\"},"
           " {\"name\": \"peer-1\", \"model\": null}]}");
    assert_int_equal(look(ours), OUTDIR_UNFINISHED);
    assert_int_equal(mkdir(path_of("peer-0"), 0700), 0);
    put("peer-0/model.safetensors", "x");
    assert_int_equal(look(ours), OUTDIR_FINISHED);
    outdir_close(&d);
}

/* ---- The lock. ---- */

static void test_lock(void **state)
{
    (void)state;
    struct outdir d = opened(), second;
    long pid;
    char want[32];
    assert_true(outdir_is_locked(dir, &pid));
    assert_int_equal(pid, getpid());
    assert_int_equal(outdir_open(&second, dir, why), -EBUSY);
    snprintf(want, sizeof want, "process %ld", (long)getpid());
    assert_non_null(strstr(why, want));
    assert_false(second.open);
    outdir_close(&second);
    outdir_close(&d);
    assert_false(outdir_is_locked(dir, &pid));
    assert_true(exists(".lock")); /* A lock file that no process has locked is no obstacle. */
    second = opened();
    outdir_close(&second);
}

/* A process is killed, and leaves its lock file and half of a model in a temporary file. The next
 * process gets the lock and deletes the temporary file. */
static void test_killed(void **state)
{
    (void)state;
    int ends[2], leash[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(pipe(leash), 0);
    pid_t child = fork();
    if (child == 0) {
        struct outdir d;
        if (outdir_open(&d, dir, why) == 0)
            (void)!write(ends[1], "x", 1);
        close(leash[1]);
        /* The child keeps the directory open until its parent closes the pipe or ends. */
        (void)!read(leash[0], &byte, 1);
        _exit(1);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    struct outdir d;
    long pid;
    assert_int_equal(outdir_open(&d, dir, why), -EBUSY);
    assert_true(outdir_is_locked(dir, &pid));
    assert_int_equal(pid, child);
    put("model.safetensors.tmp-1-0", "half");
    put("model.safetensors", "whole");
    put("model.safetensors.mine", "kept");
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(ends[0]);
    close(leash[0]);
    close(leash[1]);
    d = opened();
    assert_false(exists("model.safetensors.tmp-1-0"));
    assert_true(exists("model.safetensors") && exists("model.safetensors.mine"));
    outdir_close(&d);
}

/* ---- Moved aside. ---- */

static void test_fresh(void **state)
{
    (void)state;
    struct outdir d = opened();
    assert_int_equal(outdir_move_old_run(&d, ours, moved, why), 0);
    assert_string_equal(moved, "");
    assert_int_equal(outdir_write_identity(&d, ours, why), 0);
    assert_int_equal(mkdir(path_of("peer-0"), 0700), 0);
    assert_int_equal(mkdir(path_of("peer-x"), 0700), 0);
    put("peer-0/model.safetensors", "a model");
    put("peer-x/model.safetensors", "not ours");
    put("summary.json", "{}");
    put("identity.key", "secret");
    /* In the second pass of this loop, run.txt is the only file of a run in the directory. */
    for (int i = 1; i <= 2; i++) {
        char old[32];
        snprintf(old, sizeof old, "old.%d", i);
        assert_int_equal(outdir_move_old_run(&d, other, moved, why), 0);
        assert_string_equal(moved, path_of(old));
        assert_int_equal(look(other), OUTDIR_NEW);
        assert_int_equal(outdir_write_identity(&d, ours, why), 0);
    }
    assert_true(holds("old.1/peer-0/model.safetensors", "a model"));
    assert_true(holds("old.1/run.txt", ours));
    assert_true(exists("old.1/summary.json"));
    assert_true(exists("identity.key") && exists("peer-x/model.safetensors"));
    assert_false(exists("peer-0"));
    outdir_close(&d);
}

/* outdir_move_old_run() must move the files of an old run to old.N even if the directory has no
 * run.txt. The directories of peers (peer-0) are moved only for a command with several peers. */
static void test_fresh_foreign(void **state)
{
    (void)state;
    struct outdir d = opened();
    assert_int_equal(mkdir(path_of("peer-0"), 0700), 0);
    put("peer-0/model.safetensors", "a model");
    put("model.safetensors", "older");
    assert_int_equal(outdir_move_old_run(&d, alone, moved, why), 0);
    assert_true(holds("old.1/model.safetensors", "older"));
    assert_true(exists("peer-0/model.safetensors"));
    assert_int_equal(outdir_move_old_run(&d, ours, moved, why), 0);
    assert_true(exists("old.2/peer-0/model.safetensors"));
    assert_int_equal(look(ours), OUTDIR_NEW);
    outdir_close(&d);
}

/* ---- Lines. ---- */

static void append(const char *text)
{
    int fd;
    assert_int_equal(outdir_open_metrics(dir, &fd), 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(close(fd), 0);
}

static void test_append(void **state)
{
    (void)state;
    assert_int_equal(outdir_make(dir), 0);
    append("one\n");
    append("two\n");
    assert_true(holds("metrics.jsonl", "one\ntwo\n"));
    append("torn");
    append("three\n");
    assert_true(holds("metrics.jsonl", "one\ntwo\nthree\n"));
    put("metrics.jsonl", "torn");
    append("one\n");
    assert_true(holds("metrics.jsonl", "one\n"));
}

/* If the last line of metrics.jsonl is torn, it is removed before a line is appended. The torn line
 * and the line before it may be longer than a block that is read at a time, and may end at the
 * border of a block. */
static void test_append_to_long_lines(void **state)
{
    (void)state;
    static char text[3 * 4096];
    struct stat st;
    assert_int_equal(outdir_make(dir), 0);
    for (size_t whole = 4094; whole <= 4098; whole++)
        for (size_t torn = 4094; torn <= 4098; torn++) {
            memset(text, 'x', sizeof text);
            text[whole - 1] = '\n';
            text[whole + torn] = '\0';
            put("metrics.jsonl", text);
            append("");
            assert_int_equal(stat(path_of("metrics.jsonl"), &st), 0);
            assert_int_equal(st.st_size, whole);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_states, make_work, remove_work),
        cmocka_unit_test_setup_teardown(test_only_regular_files_are_used, make_work, remove_work),
        cmocka_unit_test_setup_teardown(test_foreign_files, make_work, remove_work),
        cmocka_unit_test_setup_teardown(test_finished, make_work, remove_work),
        cmocka_unit_test_setup_teardown(test_finished_peers, make_work, remove_work),
        cmocka_unit_test_setup_teardown(test_lock, make_work, remove_work),
        cmocka_unit_test_setup_teardown(test_killed, make_work, remove_work),
        cmocka_unit_test_setup_teardown(test_fresh, make_work, remove_work),
        cmocka_unit_test_setup_teardown(test_fresh_foreign, make_work, remove_work),
        cmocka_unit_test_setup_teardown(test_append, make_work, remove_work),
        cmocka_unit_test_setup_teardown(test_append_to_long_lines, make_work, remove_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
