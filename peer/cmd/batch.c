/* peer/cmd/batch.c -- forks, executes and awaits runs, and hands signals on to them. */
#include "peer/cmd/batch.h"

#include "peer/store/outdir.h"
#include "peer/uv/twice.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
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

enum {
    SAID_MAX = 1024, /* Bytes of the line that a check ends with. */
    GONE_MS = 20000, /* So long the process of a run that lost its parent may take to end. */
    LOOK_MS = 50,
    JOBS_MAX = 256
};

/* ---- Signals. ---- */

static const int caught[] = {SIGINT, SIGTERM, SIGHUP};
enum { CAUGHT = sizeof caught / sizeof *caught };
static volatile sig_atomic_t asked;
static volatile pid_t child[JOBS_MAX]; /* 0: there is none in this place. */

/* On a terminal the children have got it, too: two within half a second are one (peer/uv/twice.h). */
static void on_signal(int number)
{
    asked = 1;
    for (int i = 0; i < JOBS_MAX; i++)
        if (child[i] > 0)
            (void)kill(child[i], number);
}

static void catch_signals(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    for (int i = 0; i < CAUGHT; i++)
        sigaddset(&action.sa_mask, caught[i]);
    for (int i = 0; i < CAUGHT; i++)
        if (caught[i] != SIGHUP || !uv_hangup_ignored())
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

bool cmd_batch_asked(void)
{
    return asked != 0;
}

/* ---- Child processes. ---- */

/* A child of ours: 0 in the child, which has the signals that it began with and goes when we do. */
static pid_t fork_child(int place)
{
    pid_t parent = getpid();
    fflush(NULL); /* What waits in our buffers is not the child's to write. */
    block_signals(SIG_BLOCK);
    pid_t pid = fork();
    if (pid > 0)
        child[place] = pid;
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

static int code_of(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The exit code of the child in a place; 128 + the number of the signal that ended it. */
static int wait_for_child(int place)
{
    int status;
    while (waitpid(child[place], &status, 0) < 0)
        if (errno != EINTR)
            return CMD_FAILED;
    child[place] = 0;
    return code_of(status);
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
static void args_open(struct args *a, const struct cmd_batch *b, uint32_t i)
{
    struct grid_sink sink = {add_flag, a};
    a->n = 0;
    a->failed = false;
    add_text(a, strdup(b->program));
    add_text(a, strdup(b->command->name));
    b->flags(b->self, i, &sink);
}

/* ---- Before the first run. ---- */

/* In a child: the runs of a group, the first of which is `from`. A byte for each goes to `to`: has it
 * finished? */
static int check_here(const struct cmd_batch *b, uint32_t from, int to)
{
    static struct options options;
    char error[OPTIONS_ERROR_MAX];
    struct options_world world = *b->o->world;
    int code = CMD_OK;
    world.env = NULL; /* What the environment says is among the flags. */
    for (uint32_t i = from; i < b->n && code == CMD_OK; i++) {
        struct args a;
        bool finished = false;
        if (b->run[i].group != b->run[from].group)
            continue;
        args_open(&a, b, i);
        if (a.failed)
            return cmd_fail(b->o, CMD_FAILED, "out of memory");
        if (options_parse(&options, b->command, a.n - 1, a.at + 1, &world, error) != OPTIONS_OK)
            return cmd_fail(b->o, CMD_USAGE, "%s", error);
        if (i == from)
            code = b->face->check(&options);
        if (code == CMD_OK)
            code = b->face->look(&options, &finished);
        char byte = (char)finished;
        if (code == CMD_OK && write(to, &byte, 1) != 1)
            code = CMD_FAILED;
    }
    return code;
}

/* The line without "hearsay COMMAND: " before it. */
static const char *without_name(const char *line, const char *command)
{
    char prefix[64];
    int n = snprintf(prefix, sizeof prefix, "hearsay %s: ", command);
    return strncmp(line, prefix, (size_t)n) == 0 ? line + n : line;
}

/* The last line of what a child has said, in whose name whatever. */
static void last_line(FILE *from, const struct cmd_batch *b, char out[SAID_MAX])
{
    char line[SAID_MAX];
    snprintf(out, SAID_MAX, "the check failed");
    rewind(from);
    while (fgets(line, sizeof line, from) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] != '\0')
            snprintf(out, SAID_MAX, "%s",
                     without_name(without_name(line, b->o->command->name), b->command->name));
    }
}

static int take_finished(struct cmd_batch *b, uint32_t from, int fd)
{
    for (uint32_t i = from; i < b->n; i++) {
        char byte;
        if (b->run[i].group != b->run[from].group)
            continue;
        if (read(fd, &byte, 1) != 1)
            return -EIO;
        b->run[i].finished = byte != 0;
    }
    return 0;
}

/* A group in a child, which leaves neither data nor threads behind; what it says is shown where it
 * is refused, as the runs say it themselves. */
static int check_group(struct cmd_batch *b, uint32_t from)
{
    int ends[2], code = CMD_FAILED;
    FILE *said = tmpfile();
    if (said == NULL || pipe(ends) < 0) {
        if (said != NULL)
            fclose(said);
        return cmd_fail(b->o, CMD_FAILED, "cannot check the settings: %s", strerror(errno));
    }
    pid_t pid = fork_child(0);
    if (pid == 0) {
        if (dup2(fileno(said), STDERR_FILENO) < 0)
            _exit(CMD_FAILED);
        _exit(check_here(b, from, ends[1]));
    }
    close(ends[1]);
    if (pid > 0) {
        code = wait_for_child(0); /* A pipe takes more bytes than there are seeds. */
        if (code == CMD_OK && take_finished(b, from, ends[0]) < 0)
            code = CMD_FAILED;
    }
    close(ends[0]);
    if (code != CMD_OK && !asked) {
        char name[SAID_MAX], line[SAID_MAX];
        b->name(b->self, from, name, sizeof name);
        last_line(said, b, line);
        char *fresh = strstr(line, "; --fresh"); /* That is a flag of one run. */
        if (fresh != NULL)
            snprintf(fresh, sizeof line - (size_t)(fresh - line), "; give another --out");
        cmd_fail(b->o, code, "%s%s%s", name, name[0] != '\0' ? ": " : "", line);
    }
    fclose(said);
    return asked               ? CMD_INTERRUPTED
           : code == CMD_USAGE ? CMD_USAGE
           : code != CMD_OK    ? CMD_FAILED
                               : code;
}

static bool is_first(const struct cmd_batch *b, uint32_t i)
{
    uint32_t k = 0;
    while (b->run[k].group != b->run[i].group)
        k++;
    return k == i;
}

int cmd_batch_check(struct cmd_batch *b)
{
    int code = CMD_OK;
    for (uint32_t i = 0; i < b->n && code == CMD_OK; i++)
        if (is_first(b, i))
            code = check_group(b, i);
    return code;
}

/* ---- The runs. ---- */

/* In a child. */
static void be_run(const struct cmd_batch *b, uint32_t i, const struct args *a)
{
    const char *log = b->run[i].log;
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int err = log != NULL ? open(log, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666)
                          : STDERR_FILENO;
    if (null >= 0 && dup2(null, STDOUT_FILENO) >= 0 && err >= 0 && dup2(err, STDERR_FILENO) >= 0)
        execv(a->at[0], a->at);
    _exit(127);
}

/* Where we were killed a run may still be about to end, in the directory that it is to have. */
static void wait_for_former(const char *dir)
{
    long pid;
    for (int ms = 0; ms < GONE_MS && !asked && outdir_is_open(dir, &pid); ms += LOOK_MS)
        uv_sleep(LOOK_MS);
}

static bool begin_run(struct cmd_batch *b, uint32_t i, int place)
{
    struct args a;
    if (b->run[i].log != NULL)
        wait_for_former(b->run[i].dir);
    if (b->begins != NULL)
        b->begins(b->self, i);
    args_open(&a, b, i);
    pid_t pid = a.failed ? -1 : fork_child(place);
    if (pid == 0)
        be_run(b, i, &a);
    args_close(&a);
    return pid > 0;
}

/* Whichever child ends first: its place, and with which code. */
static int wait_for_any(int *code)
{
    int status;
    for (;;) {
        pid_t pid = waitpid(-1, &status, 0);
        if (pid < 0 && errno != EINTR)
            return -1;
        for (int i = 0; pid > 0 && i < JOBS_MAX; i++)
            if (child[i] == pid) {
                child[i] = 0;
                *code = code_of(status);
                return i;
            }
    }
}

static void has_ended(struct cmd_batch *b, uint32_t i, int code)
{
    if (code == CMD_INTERRUPTED)
        asked = 1;
    b->ended(b->self, i, code);
}

void cmd_batch_do(struct cmd_batch *b)
{
    uint32_t which[JOBS_MAX] = {0}, busy = 0, next = 0;
    uint32_t jobs = b->jobs < JOBS_MAX ? b->jobs : JOBS_MAX;
    for (;;) {
        while (next < b->n && b->run[next].finished)
            next++;
        if (next < b->n && busy < jobs && !asked) {
            int place = 0;
            while (child[place] != 0)
                place++;
            which[place] = next;
            if (begin_run(b, next, place))
                busy++;
            else
                has_ended(b, next, CMD_FAILED);
            next++;
            continue;
        }
        if (busy == 0)
            return;
        int code = CMD_FAILED, place = wait_for_any(&code);
        if (place < 0)
            return;
        busy--;
        has_ended(b, which[place], code);
    }
}

/* ---- The batch. ---- */

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

int cmd_batch_open(struct cmd_batch *b)
{
    size_t n = sizeof b->program;
    catch_signals(on_signal);
    signal(SIGPIPE, SIG_IGN);
    int err = uv_exepath(b->program, &n);
    if (err < 0)
        return cmd_fail(b->o, CMD_FAILED, "cannot find this very program: %s", uv_strerror(err));
    forget_environment();
    if (b->jobs > 1) /* What runs beside others has one processor of its own. */
        setenv("HEARSAY_THREADS", "1", 1);
    return CMD_OK;
}
