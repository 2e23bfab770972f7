/* peer/cmd/sweep.c -- checks the runs of a sweep, and does them one after the other.
 *
 *   grid --flags--> command line of a run --fork--> parsed, check(), look()      all settings, first
 *                                         '--fork, exec--> this very program     then run by run
 *
 * Runs go seed by seed, so that after the first of these there is a figure of every setting. A run has
 * our stderr, and nothing of it goes to stdout, which is for the table. */
#include "peer/cmd/sweep.h"

#include "peer/cmd/files.h"
#include "peer/cmd/progress.h"
#include "peer/cmd/sweep_result.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

enum { SAID_MAX = 1024 /* Bytes of the line that a check ends with. */ };

static const char out_fallback[] = "hearsay-sweep";

struct sweep
{
    const struct options *o;
    const struct cmd_sweep_face *face;
    struct grid grid;
    struct cmd_sweep_result result;
    bool *finished; /* By run: it was before we began. */
    char program[CMD_PATH_MAX];
};

/* ---- Signals. ---- */

static const int caught[] = {SIGINT, SIGTERM, SIGHUP};
enum { CAUGHT = sizeof caught / sizeof *caught };
static volatile sig_atomic_t asked;
static volatile pid_t child; /* 0: there is none. */

/* On a terminal the child has got it, too: two within half a second are one (peer/uv/twice.h). */
static void on_signal(int number)
{
    asked = 1;
    if (child > 0)
        (void)kill(child, number);
}

static void catch_signals(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    for (int i = 0; i < CAUGHT; i++)
        sigaddset(&action.sa_mask, caught[i]);
    for (int i = 0; i < CAUGHT; i++)
        sigaction(caught[i], &action, NULL);
}

/* Between a fork and the moment in which `child` is known no signal may come. */
static void block_signals(int how)
{
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < CAUGHT; i++)
        sigaddset(&set, caught[i]);
    sigprocmask(how, &set, NULL);
}

/* ---- Child processes. ---- */

/* A child of ours: 0 in the child, which has the signals that it began with and goes when we do. */
static pid_t fork_child(void)
{
    pid_t parent = getpid();
    fflush(NULL); /* What waits in our buffers is not the child's to write. */
    block_signals(SIG_BLOCK);
    pid_t pid = fork();
    if (pid > 0)
        child = pid;
    if (pid == 0) {
        catch_signals(SIG_DFL);
#ifdef __linux__
        prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
        if (getppid() != parent)
            _exit(CMD_INTERRUPTED);
    }
    block_signals(SIG_UNBLOCK);
    return pid;
}

/* The exit code; 128 + the number of the signal that ended it. */
static int wait_for_child(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return CMD_FAILED;
    child = 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

struct args
{
    char *at[OPTIONS_MAX + OPTIONS_OPERANDS_MAX + 8];
    int n;
    bool failed; /* Out of memory. */
};

static void add_text(struct args *a, char *text)
{
    assert(a->n + 1 < (int)(sizeof a->at / sizeof *a->at));
    a->failed |= text == NULL;
    a->at[a->n++] = text;
    a->at[a->n] = NULL;
}

/* struct grid_sink's. */
static void add_flag(void *self, const char *name, const char *value)
{
    size_t n = strlen(name) + (value != NULL ? strlen(value) : 0) + 4;
    char *text = malloc(n);
    if (text != NULL)
        snprintf(text, n, "--%s%s%s", name, value != NULL ? "=" : "", value != NULL ? value : "");
    add_text(self, text);
}

static void args_close(struct args *a)
{
    for (int i = 0; i < a->n; i++)
        free(a->at[i]);
}

/* The command line of a run. */
static void args_open(struct args *a, const struct sweep *s, uint32_t setting, uint32_t seed)
{
    char dir[CMD_PATH_MAX];
    struct grid_sink sink = {add_flag, a};
    bool fits = cmd_sweep_result_dir(&s->result, setting, seed, dir, sizeof dir);
    assert(fits); /* check_paths() has seen to it. */
    a->n = 0;
    a->failed = false;
    add_text(a, strdup(s->program));
    add_text(a, strdup(s->o->command->name));
    grid_flags(&s->grid, setting, s->grid.seed + seed, dir, &sink);
}

/* ---- Before the first run. ---- */

/* In a child: all seeds of a setting. A byte for each goes to `to`: has it finished? */
static int check_here(const struct sweep *s, uint32_t setting, int to)
{
    static struct options options;
    char error[OPTIONS_ERROR_MAX];
    struct options_world world = *s->o->world;
    int code = CMD_OK;
    world.env = NULL; /* What the environment says is among the flags. */
    for (uint32_t seed = 0; seed < s->grid.n_seeds && code == CMD_OK; seed++) {
        struct args a;
        bool finished = false;
        args_open(&a, s, setting, seed);
        if (a.failed)
            return cmd_fail(s->o, CMD_FAILED, "out of memory");
        if (options_parse(&options, s->o->command, a.n - 1, a.at + 1, &world, error) != OPTIONS_OK)
            return cmd_fail(s->o, CMD_USAGE, "%s", error);
        if (seed == 0)
            code = s->face->check(&options);
        if (code == CMD_OK)
            code = s->face->look(&options, &finished);
        char byte = (char)finished;
        if (code == CMD_OK && write(to, &byte, 1) != 1)
            code = CMD_FAILED;
    }
    return code;
}

/* The last line of what a child has said, without the program's name before it. */
static void last_line(FILE *from, const char *command, char out[SAID_MAX])
{
    char line[SAID_MAX], prefix[64];
    int n = snprintf(prefix, sizeof prefix, "hearsay %s: ", command);
    snprintf(out, SAID_MAX, "the check failed");
    rewind(from);
    while (fgets(line, sizeof line, from) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        bool ours = strncmp(line, prefix, (size_t)n) == 0;
        if (line[0] != '\0')
            snprintf(out, SAID_MAX, "%s", line + (ours ? n : 0));
    }
}

static int take_finished(struct sweep *s, uint32_t setting, int from)
{
    for (uint32_t seed = 0; seed < s->grid.n_seeds; seed++) {
        char byte;
        if (read(from, &byte, 1) != 1)
            return -EIO;
        s->finished[(size_t)setting * s->grid.n_seeds + seed] = byte != 0;
    }
    return 0;
}

/* A setting in a child, which leaves neither data nor threads behind; what it says is shown where it
 * is refused, as the runs say it themselves. */
static int check_setting(struct sweep *s, uint32_t setting)
{
    int ends[2], code = CMD_FAILED;
    FILE *said = tmpfile();
    if (said == NULL || pipe(ends) < 0) {
        if (said != NULL)
            fclose(said);
        return cmd_fail(s->o, CMD_FAILED, "cannot check the settings: %s", strerror(errno));
    }
    pid_t pid = fork_child();
    if (pid == 0) {
        if (dup2(fileno(said), STDERR_FILENO) < 0)
            _exit(CMD_FAILED);
        _exit(check_here(s, setting, ends[1]));
    }
    close(ends[1]);
    if (pid > 0) {
        code = wait_for_child(pid); /* A pipe takes more bytes than there are seeds. */
        if (code == CMD_OK && take_finished(s, setting, ends[0]) < 0)
            code = CMD_FAILED;
    }
    close(ends[0]);
    if (code != CMD_OK && !asked) {
        char name[GRID_NAME_MAX], line[SAID_MAX];
        (void)grid_name(&s->grid, setting, name);
        last_line(said, s->o->command->name, line);
        cmd_fail(s->o, code, "%s%s%s", name, name[0] != '\0' ? ": " : "", line);
    }
    fclose(said);
    return asked               ? CMD_INTERRUPTED
           : code == CMD_USAGE ? CMD_USAGE
           : code != CMD_OK    ? CMD_FAILED
                               : code;
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

static int check_all(struct sweep *s)
{
    int code = check_paths(s);
    for (uint32_t i = 0; i < s->grid.n_settings && code == CMD_OK; i++)
        code = check_setting(s, i);
    return code;
}

/* ---- The runs. ---- */

/* In a child. */
static void be_run(const struct args *a)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0 && dup2(null, STDOUT_FILENO) >= 0)
        execv(a->at[0], a->at);
    _exit(127);
}

static int do_run(struct sweep *s, uint32_t setting, uint32_t seed)
{
    struct args a;
    args_open(&a, s, setting, seed);
    pid_t pid = a.failed ? -1 : fork_child();
    if (pid == 0)
        be_run(&a);
    int code = pid > 0 ? wait_for_child(pid) : CMD_FAILED;
    args_close(&a);
    return code;
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

/* Those that had finished are only read. */
static void take_all_finished(struct sweep *s)
{
    for (uint32_t seed = 0; seed < s->grid.n_seeds; seed++)
        for (uint32_t i = 0; i < s->grid.n_settings; i++)
            if (s->finished[(size_t)i * s->grid.n_seeds + seed]) {
                cmd_sweep_result_take(&s->result, i, seed, CMD_OK);
                tell(s, i, seed, true);
            }
}

static void do_all(struct sweep *s)
{
    char name[GRID_NAME_MAX], dir[CMD_PATH_MAX];
    uint32_t n = 0;
    for (uint32_t seed = 0; seed < s->grid.n_seeds; seed++)
        for (uint32_t i = 0; i < s->grid.n_settings && !asked; i++) {
            n++;
            if (s->finished[(size_t)i * s->grid.n_seeds + seed])
                continue;
            (void)grid_name(&s->grid, i, name);
            (void)cmd_sweep_result_dir(&s->result, i, seed, dir, sizeof dir);
            cmd_fail(s->o, CMD_OK, "run %u of %u: %s%sseed %" PRIu64 ", in %s", (unsigned)n,
                     (unsigned)(s->grid.n_settings * s->grid.n_seeds), name,
                     name[0] != '\0' ? ", " : "", s->grid.seed + seed, dir);
            int code = do_run(s, i, seed);
            cmd_sweep_result_take(&s->result, i, seed, code);
            tell(s, i, seed, false);
            if (code == CMD_INTERRUPTED) /* Perhaps by somebody who knows only the run. */
                asked = 1;
        }
    s->result.interrupted = asked != 0;
}

/* ---- The command. ---- */

extern char **environ;

/* What HEARSAY_* say has been read; the runs would read it again. */
static void forget_environment(void)
{
    char name[128];
    for (size_t i = 0; environ[i] != NULL;) {
        size_t n = strcspn(environ[i], "=");
        bool ours = strncmp(environ[i], "HEARSAY_", 8) == 0 && n < sizeof name;
        snprintf(name, sizeof name, "%.*s", (int)n, environ[i]);
        if (!ours || unsetenv(name) < 0)
            i++;
    }
}

static int open_sweep(struct sweep *s)
{
    char error[OPTIONS_ERROR_MAX];
    size_t n = sizeof s->program;
    const char *out = options_text(s->o, "out");
    if (grid_open(&s->grid, s->o, error) < 0)
        return cmd_fail(s->o, CMD_USAGE, "%s", error);
    int err = uv_exepath(s->program, &n);
    if (err < 0)
        return cmd_fail(s->o, CMD_FAILED, "cannot find this very program: %s", uv_strerror(err));
    s->finished = calloc((size_t)s->grid.n_settings * s->grid.n_seeds, sizeof *s->finished);
    if (cmd_sweep_result_open(&s->result, &s->grid, s->face, out != NULL ? out : out_fallback) < 0
        || s->finished == NULL)
        return cmd_fail(s->o, CMD_FAILED, "out of memory");
    forget_environment();
    return CMD_OK;
}

int cmd_sweep(const struct options *o, const struct cmd_sweep_face *face)
{
    static struct sweep s; /* Large, and one a process. */
    s.o = o;
    s.face = face;
    catch_signals(on_signal);
    signal(SIGPIPE, SIG_IGN);
    int code = open_sweep(&s);
    code = code == CMD_OK ? check_all(&s) : code;
    if (code == CMD_OK) {
        take_all_finished(&s);
        do_all(&s);
        code = cmd_sweep_result_print(&s.result, o);
    }
    free(s.finished);
    cmd_sweep_result_close(&s.result);
    return code;
}
