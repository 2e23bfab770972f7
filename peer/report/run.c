/* peer/report/run.c -- finds the files of a run in a directory, and reads them. */
#include "peer/report/run.h"

#include "peer/report/json.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char run_file[] = "run.txt", summary_file[] = "summary.json",
                  metrics_file[] = "metrics.jsonl";

enum { ENTRIES_MAX = 1000 * 1000 /* Names in a directory. */ };

/* ---- What is there. ---- */

static int join(char out[REPORT_PATH_MAX], const char *dir, const char *name,
                char error[FILE_ERROR_MAX])
{
    int n = snprintf(out, REPORT_PATH_MAX, "%s/%s", dir, name);
    if (n >= 0 && n < REPORT_PATH_MAX)
        return 0;
    return file_world_error(error, dir, name, ENAMETOOLONG);
}

/* 1: there is a regular file of that name, or a directory if that is wanted; 0: there is nothing;
 * else a refusal. Links are somebody's way to have us read elsewhere. */
static int look(const char *dir, const char *name, bool directory, char path[REPORT_PATH_MAX],
                char error[FILE_ERROR_MAX])
{
    struct stat st;
    int err = join(path, dir, name, error);
    if (err < 0)
        return err;
    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0 : file_world_error(error, path, "cannot read", errno);
    const char *wanted = directory ? "a directory" : "a regular file";
    if (S_ISLNK(st.st_mode))
        return file_error(error, path, "found a symbolic link, which is not followed, expected %s",
                          wanted);
    if (directory ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode))
        return 1;
    return file_error(error, path, "found something else, expected %s", wanted);
}

/* Does the directory hold lines or a result? */
static int has_results(const char *dir, char error[FILE_ERROR_MAX])
{
    char path[REPORT_PATH_MAX];
    int lines = look(dir, metrics_file, false, path, error);
    return lines != 0 ? lines : look(dir, summary_file, false, path, error);
}

static bool is_number(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

static bool is_peer(const char *name)
{
    return strncmp(name, "peer-", 5) == 0 && is_number(name + 5);
}

static bool is_old(const char *name)
{
    return name[0] == '.' || (strncmp(name, "old.", 4) == 0 && is_number(name + 4));
}

int report_run_order(const char *a, const char *b)
{
    while (*a != '\0' && *b != '\0') {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            a += strspn(a, "0");
            b += strspn(b, "0");
            size_t n = strspn(a, "0123456789"), m = strspn(b, "0123456789");
            int order = n != m ? (n < m ? -1 : 1) : strncmp(a, b, n);
            if (order != 0)
                return order;
            a += n;
            b += m;
        } else if (*a != *b) {
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        } else {
            a++;
            b++;
        }
    }
    return (*a != '\0') - (*b != '\0');
}

static int by_name(const void *a, const void *b)
{
    const struct report_peer *p = a, *q = b;
    int order = report_run_order(p->name, q->name);
    return order != 0 ? order : strcmp(p->name, q->name);
}

static int add_peer(struct report_run *run, const char *name, char error[FILE_ERROR_MAX])
{
    if (run->n_peers >= REPORT_PEERS_MAX)
        return file_error(error, run->path, "found more peers, expected %d at most",
                          REPORT_PEERS_MAX);
    if (strlen(name) >= REPORT_NAME_MAX)
        return file_error(error, run->path, "found a longer name, expected %d bytes at most",
                          REPORT_NAME_MAX - 1);
    if ((run->n_peers & (run->n_peers + 1)) == 0) { /* Room doubles at 0, 1, 3, 7, ... */
        void *peer = realloc(run->peer, (2 * run->n_peers + 1) * sizeof *run->peer);
        if (peer == NULL)
            return file_no_memory(error, run->path);
        run->peer = peer;
    }
    struct report_peer *p = &run->peer[run->n_peers++];
    *p = (struct report_peer){0};
    memcpy(p->name, name, strlen(name) + 1);
    return 0;
}

/* Is this name in DIR one of its peers'? 1, 0, or a refusal. */
static int weigh(const char *dir, const char *name, bool numbered, char error[FILE_ERROR_MAX])
{
    char path[REPORT_PATH_MAX];
    struct stat st;
    if (is_old(name) || is_peer(name) != numbered)
        return 0;
    if (numbered)
        return look(dir, name, true, path, error);
    int err = join(path, dir, name, error);
    if (err < 0)
        return err;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) ? has_results(path, error) : 0;
}

/* All peers in DIR that have numbers for names (`numbered`), or all that have others. */
static int find_peers(struct report_run *run, bool numbered, char error[FILE_ERROR_MAX])
{
    DIR *d = opendir(run->path);
    if (d == NULL)
        return file_world_error(error, run->path, "cannot read", errno);
    int err = 0, n = 0;
    for (struct dirent *e; err >= 0 && (e = readdir(d)) != NULL;) {
        err = ++n <= ENTRIES_MAX ? weigh(run->path, e->d_name, numbered, error)
                                 : file_error(error, run->path,
                                              "found more names, expected %d at most", ENTRIES_MAX);
        if (err > 0)
            err = add_peer(run, e->d_name, error);
    }
    closedir(d);
    if (err >= 0 && run->n_peers > 0)
        qsort(run->peer, run->n_peers, sizeof *run->peer, by_name);
    return err < 0 ? err : 0;
}

/* ---- Its files. ---- */

/* What nobody has written is not known. */
static void know_nothing(struct report_summary *s)
{
    *s = (struct report_summary){0};
    for (int i = 0; i < REPORT_FIGURES; i++)
        s->at[i] = (double)NAN;
}

static int read_summary(struct report_run *run, struct report_summary *s, const char *dir,
                        char error[FILE_ERROR_MAX])
{
    char path[REPORT_PATH_MAX], why[REPORT_JSON_WHY];
    uint8_t *bytes = NULL;
    size_t n;
    know_nothing(s);
    int err = look(dir, summary_file, false, path, error);
    if (err <= 0)
        return err;
    err = file_read(path, REPORT_SUMMARY_MAX, NULL, &bytes, &n, error);
    if (err == 0 && report_summary_read(run, s, (const char *)bytes, n, why) < 0)
        err = file_error(error, path, "%s", why);
    free(bytes);
    return err;
}

/* A text of key=value lines, or "". */
static int read_text(char text[OWNER_TEXT_MAX], const char *dir, char error[FILE_ERROR_MAX])
{
    char path[REPORT_PATH_MAX];
    uint8_t *bytes = NULL;
    size_t n;
    text[0] = '\0';
    int err = look(dir, run_file, false, path, error);
    if (err <= 0)
        return err;
    err = file_read(path, OWNER_TEXT_MAX - 1, NULL, &bytes, &n, error);
    if (err == 0 && memchr(bytes, '\0', n) != NULL)
        err = file_error(error, path, "found a NUL, expected lines of key=value");
    if (err == 0) {
        memcpy(text, bytes, n);
        text[n] = '\0';
    }
    free(bytes);
    return err;
}

static int read_lines(struct report_peer *p, const char *dir, size_t *left,
                      char error[FILE_ERROR_MAX])
{
    char path[REPORT_PATH_MAX];
    int err = look(dir, metrics_file, false, path, error);
    return err <= 0 ? err : report_lines_read(&p->lines, path, left, error);
}

/* A peer in a directory of its own. Where the run's text is not known, it is its first peer's;
 * then all have to be of that run. */
static int read_peer(struct report_run *run, struct report_peer *p, size_t *left, bool named,
                     char error[FILE_ERROR_MAX])
{
    char dir[REPORT_PATH_MAX], text[OWNER_TEXT_MAX], why[OWNER_WHY_MAX];
    int err = join(dir, run->path, p->name, error);
    if (err == 0)
        err = read_lines(p, dir, left, error);
    if (err == 0)
        err = read_summary(NULL, &p->end, dir, error);
    if (err < 0 || named)
        return err;
    err = read_text(text, dir, error);
    if (err == 0 && run->text[0] == '\0')
        memcpy(run->text, text, sizeof text);
    else if (err == 0 && text[0] != '\0'
             && owner_differ(owner_run(run->text), owner_run(text), why) > 0)
        err = file_error(error, dir, "found another run than its neighbour's (%.100s)", why);
    return err;
}

static int read_several(struct report_run *run, size_t *left, char error[FILE_ERROR_MAX])
{
    int err = read_text(run->text, run->path, error);
    bool named = run->text[0] != '\0';
    for (size_t i = 0; err == 0 && i < run->n_peers; i++)
        err = read_peer(run, &run->peer[i], left, named, error);
    return err == 0 ? read_summary(run, &run->end, run->path, error) : err;
}

static int read_one(struct report_run *run, size_t *left, char error[FILE_ERROR_MAX])
{
    int err = add_peer(run, run->label, error);
    if (err == 0)
        err = read_text(run->text, run->path, error);
    if (err == 0)
        err = read_lines(&run->peer[0], run->path, left, error);
    if (err == 0)
        err = read_summary(NULL, &run->end, run->path, error);
    if (err == 0)
        run->peer[0].end = run->end;
    return err;
}

/* The last part of a path, whatever slashes stand behind it; of "." what that directory is called. */
static void label_of(char label[REPORT_NAME_MAX], const char *path)
{
    char *real = realpath(path, NULL);
    const char *from = real != NULL ? file_base_name(real) : path;
    snprintf(label, REPORT_NAME_MAX, "%.200s", from[0] != '\0' ? from : "/");
    free(real);
}

static int read_dir(struct report_run *run, size_t *left, char error[FILE_ERROR_MAX])
{
    char path[REPORT_PATH_MAX];
    int lines = look(run->path, metrics_file, false, path, error);
    if (lines != 0)
        return lines < 0 ? lines : read_one(run, left, error);
    int err = find_peers(run, true, error);
    if (err == 0 && run->n_peers == 0)
        err = find_peers(run, false, error);
    if (err < 0)
        return err;
    run->several = run->n_peers > 0;
    if (run->several)
        return read_several(run, left, error);
    err = has_results(run->path, error);
    if (err > 0)
        return read_one(run, left, error);
    return err < 0 ? err
                   : file_error(error, run->path,
                                "found no metrics.jsonl, neither there nor in peer-0 and so on, "
                                "expected what a run has left under --out");
}

int report_run_read(struct report_run *run, const char *dir, size_t *left,
                    char error[FILE_ERROR_MAX])
{
    size_t n = strlen(dir);
    if (n == 0 || n >= sizeof run->path)
        return file_world_error(error, dir, "cannot read", ENAMETOOLONG);
    memcpy(run->path, dir, n + 1);
    know_nothing(&run->end);
    label_of(run->label, dir);
    int err = read_dir(run, left, error);
    if (err < 0)
        report_run_close(run);
    return err;
}

void report_run_close(struct report_run *run)
{
    for (size_t i = 0; i < run->n_peers; i++)
        report_lines_close(&run->peer[i].lines);
    free(run->peer);
    run->peer = NULL;
    run->n_peers = 0;
}

bool report_run_setting(const struct report_run *run, const char *key, char *value, size_t cap)
{
    size_t n = strlen(key);
    for (const char *line = run->text; *line != '\0'; line += strcspn(line, "\n")) {
        line += *line == '\n';
        size_t len = strcspn(line, "\n");
        if (len <= n || strncmp(line, key, n) != 0 || line[n] != '=' || len - n > cap)
            continue;
        memcpy(value, line + n + 1, len - n - 1);
        value[len - n - 1] = '\0';
        return true;
    }
    return false;
}
