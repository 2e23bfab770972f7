/* peer/cmd/report_draw.c -- gnuplot and graphviz as children: a script in, a picture out. */
#include "peer/cmd/report_draw.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS_MAX = 60, PICTURE_MAX = 64 << 20, CHUNK = 16 * 1024 };

/* Without the user's own settings, which could do anything. */
static const struct
{
    const char *name, *const argv[4];
} programs[REPORT_PROGRAMS] = {
    [REPORT_GNUPLOT] = {"gnuplot", {"gnuplot", "-d", "-", NULL}},
    [REPORT_NEATO] = {"neato", {"neato", "-Tsvg", NULL}},
};

static bool is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* Only whole paths of PATH: what lies in the directory of a report is no program of ours. */
static void find(char path[CMD_REPORT_PATH], const char *name)
{
    const char *at = getenv("PATH");
    for (; at != NULL && *at != '\0'; at += strcspn(at, ":")) {
        at += *at == ':';
        int n = snprintf(path, CMD_REPORT_PATH, "%.*s/%s", (int)strcspn(at, ":"), at, name);
        if (at[0] == '/' && n < CMD_REPORT_PATH && is_program(path))
            return;
    }
    path[0] = '\0';
}

/* ---- The child. ---- */

/* The three files of a child: what it reads, writes, and complains to. */
struct files
{
    FILE *in, *out, *err;
};

static void be_program(const char *path, enum report_program which, const struct files *f)
{
    char *const environment[] = {(char[]){"PATH=/usr/bin:/bin"}, (char[]){"LC_ALL=C"},
                                 (char[]){"HOME=/nonexistent"}, NULL};
    signal(SIGXFSZ, SIG_DFL);
    if (dup2(fileno(f->in), STDIN_FILENO) < 0 || dup2(fileno(f->out), STDOUT_FILENO) < 0
        || dup2(fileno(f->err), STDERR_FILENO) < 0)
        _exit(126);
    alarm(SECONDS_MAX); /* It stays set across exec. */
    execve(path, (char *const *)(uintptr_t)programs[which].argv, environment);
    _exit(127);
}

static int open_files(struct files *f)
{
    f->in = tmpfile();
    f->out = tmpfile();
    f->err = tmpfile();
    return f->in != NULL && f->out != NULL && f->err != NULL ? 0 : -errno;
}

static void close_files(struct files *f)
{
    if (f->in != NULL)
        fclose(f->in);
    if (f->out != NULL)
        fclose(f->out);
    if (f->err != NULL)
        fclose(f->err);
}

/* Its exit status as waitpid() has it, or a negative errno. */
static int run(const char *path, enum report_program which, const struct files *f)
{
    int status;
    fflush(NULL); /* What waits in our buffers is not the child's to write. */
    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0)
        be_program(path, which, f);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return status;
}

static int take_picture(FILE *from, struct report_text *out)
{
    char bytes[CHUNK];
    size_t n;
    rewind(from);
    while ((n = fread(bytes, 1, sizeof bytes, from)) > 0 && out->n < PICTURE_MAX)
        report_text_bytes(out, bytes, n);
    if (out->broken)
        return -ENOMEM;
    return n > 0 ? -EFBIG : ferror(from) ? -EIO : 0;
}

/* The first words that it complained in. */
static void take_words(FILE *from, char words[CHUNK])
{
    char line[128];
    size_t n = 0;
    rewind(from);
    words[0] = '\0';
    while (n == 0 && fgets(line, sizeof line, from) != NULL) {
        n = strcspn(line, "\n");
        if (n == strspn(line, " \t"))
            n = 0;
        line[n] = '\0';
        snprintf(words, CHUNK, "%s", line);
    }
}

static int draw(void *self, enum report_program which, const struct report_text *script,
                struct report_text *out, char why[REPORT_WHY])
{
    const struct cmd_report_draw *d = self;
    const char *name = programs[which].name;
    char words[CHUNK];
    struct files f;
    int err = open_files(&f), status = 0;
    if (err == 0 && fwrite(script->bytes, 1, script->n, f.in) != script->n)
        err = -EIO;
    if (err == 0 && (fflush(f.in) != 0 || fseek(f.in, 0, SEEK_SET) != 0))
        err = -EIO;
    if (err == 0)
        status = run(d->program[which], which, &f);
    if (err == 0 && status < 0)
        err = status;
    if (err == 0 && status == 0)
        err = take_picture(f.out, out);
    if (err < 0) {
        snprintf(why, REPORT_WHY, "%s: %s", name, strerror(-err));
    } else if (status != 0) {
        take_words(f.err, words);
        bool late = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
        snprintf(why, REPORT_WHY, "%s %s%s%.120s", name, late ? "took too long" : "failed",
                 words[0] != '\0' ? ": " : "", words);
        err = -EIO;
    }
    close_files(&f);
    return err;
}

void cmd_report_draw_init(struct cmd_report_draw *d, struct report_drawer *drawer)
{
    *drawer = (struct report_drawer){.self = d, .draw = draw};
    for (int i = 0; i < REPORT_PROGRAMS; i++) {
        find(d->program[i], programs[i].name);
        drawer->there[i] = d->program[i][0] != '\0';
    }
}
