/* peer/output/outdir.c -- output directory of a run: inspects and locks it, moves old results away,
 * writes its files. */
#include "peer/output/outdir.h"

#include "nn/files/file.h"
#include "nn/files/replace.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    OLD_MAX = 100000, /* Largest number N of a directory `old.N`. */
    TAIL = 4096,      /* Size of one read while searching the end of a file, in bytes. */
    PID_MAX = 32      /* Size of the text buffer for a process number, in bytes. */
};

static const char run_file[] = "run.txt", model_file[] = "model.safetensors",
                  summary_file[] = "summary.json", metrics_file[] = "metrics.jsonl",
                  lock_file[] = ".lock";

/* Files of an earlier run that move to the directory `old.N`, in this order. run.txt is not in the
 * list, because it moves last (move_all()). */
static const char *const result_files[] = {
    summary_file, model_file, metrics_file,
    /* Checkpoint files, as peer/checkpoints/checkpoint_store.h names them. */
    "checkpoint-0.safetensors", "checkpoint-1.safetensors",
    /* This peer's promise in the finish protocol (promise.h). A new run must not find it, because
     * the promise is about the models of the earlier run. */
    "promise"};
enum { N_RESULTS = sizeof result_files / sizeof *result_files };

/* ---- Paths and directories. ---- */

static int join(char out[OUTDIR_PATH_MAX], const char *dir, const char *name)
{
    int n = snprintf(out, OUTDIR_PATH_MAX, "%s/%s", dir, name);
    return n >= 0 && n < OUTDIR_PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* Tests whether `dir` holds a file `name`. A directory of that name does not count as a file: it is
 * refused, or is taken as a damaged checkpoint (outdir_check_files()). */
static bool is_there(const char *dir, const char *name)
{
    char path[OUTDIR_PATH_MAX];
    struct stat st;
    return join(path, dir, name) == 0 && lstat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

static int make_one(const char *path)
{
    struct stat st;
    if (mkdir(path, 0700) == 0)
        return 0;
    if (errno != EEXIST)
        return -errno;
    if (stat(path, &st) < 0)
        return -errno;
    return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int outdir_make(const char *path)
{
    char part[OUTDIR_PATH_MAX];
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof part)
        return -ENAMETOOLONG;
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        int err = make_one(part);
        if (err < 0)
            return err;
    }
    return 0;
}

__attribute__((format(printf, 3, 4))) static int fail(char why[OUTDIR_WHY_MAX], int err,
                                                      const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, OUTDIR_WHY_MAX, format, args);
    va_end(args);
    return err;
}

/* ---- Finding out which run a directory holds. ---- */

/* Tests whether `name` is `peer-N`, the directory of one peer of `hearsay local` or `hearsay
 * sim`. */
static bool is_peer(const char *name)
{
    if (strncmp(name, "peer-", 5) != 0 || name[5] == '\0')
        return false;
    for (name += 5; *name != '\0'; name++)
        if (!isdigit((unsigned char)*name))
            return false;
    return true;
}

/* Returns the name of the first file of a run in `dir` itself, not in its subdirectories. NULL: no
 * such file. */
static const char *first_run_file(const char *dir)
{
    if (is_there(dir, run_file))
        return run_file;
    for (size_t i = 0; i < N_RESULTS; i++)
        if (is_there(dir, result_files[i]))
            return result_files[i];
    return NULL;
}

static bool is_peer_with_results(const char *dir, const char *name)
{
    char path[OUTDIR_PATH_MAX];
    return is_peer(name) && join(path, dir, name) == 0 && first_run_file(path) != NULL;
}

/* Tests whether the run identity in `text` is of a command that runs several peers. Only such a
 * command owns the `peer-N` directories in its output directory. */
static bool has_peers(const char *text)
{
    return strncmp(text, "command=local\n", 14) == 0 || strncmp(text, "command=sim\n", 12) == 0;
}

FILE *outdir_open_file(const char *path, const char *file)
{
    char name[OUTDIR_PATH_MAX], why[FILE_ERROR_MAX];
    int fd = join(name, path, file) == 0 ? file_open_fd(name, why) : -ENAMETOOLONG;
    FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (f == NULL && fd >= 0)
        close(fd);
    return f;
}

bool outdir_read_identity(const char *path, char text[RUN_IDENTITY_TEXT_MAX])
{
    text[0] = '\0';
    FILE *f = outdir_open_file(path, run_file);
    if (f == NULL)
        return false;
    size_t n = fread(text, 1, RUN_IDENTITY_TEXT_MAX - 1, f);
    bool good = ferror(f) == 0 && n > 0 && memchr(text, '\0', n) == NULL;
    text[good ? n : 0] = '\0';
    fclose(f);
    return good;
}

/* Tests whether a directory without a readable run.txt holds results that a new run would
 * overwrite. Writes the name of the first such file or directory to `why`. */
static bool find_overwritten(const char *path, const char *text, char why[OUTDIR_WHY_MAX])
{
    const char *first = first_run_file(path);
    if (first != NULL) {
        fail(why, 0, "%s", first);
        return true;
    }
    DIR *d = has_peers(text) ? opendir(path) : NULL;
    bool found = false;
    for (struct dirent *e; d != NULL && !found && (e = readdir(d)) != NULL;) {
        found = is_peer_with_results(path, e->d_name);
        if (found)
            fail(why, 0, "%.64s", e->d_name);
    }
    if (d != NULL)
        closedir(d);
    return found;
}

/* ---- Results of finished runs. ---- */

/* Tests whether every model that `summary` lists exists. With several peers the summary has one
 * entry per peer, and the model is required only where the entry has the key "model". A peer for
 * which the run ended without a model has the value null. */
static bool has_models(const char *path, const json_t *summary)
{
    const json_t *peers = json_object_get(summary, "peers"), *p;
    size_t i;
    if (!json_is_array(peers))
        return json_is_null(json_object_get(summary, "model")) || is_there(path, model_file);
    json_array_foreach(peers, i, p)
    {
        char dir[OUTDIR_PATH_MAX];
        const char *name = json_string_value(json_object_get(p, "name"));
        if (!json_is_string(json_object_get(p, "model")))
            continue;
        if (name == NULL || join(dir, path, name) < 0 || !is_there(dir, model_file))
            return false;
    }
    return true;
}

json_t *outdir_read_summary(const char *path)
{
    FILE *f = outdir_open_file(path, summary_file);
    json_t *j = f != NULL ? json_loadf(f, 0, NULL) : NULL;
    if (f != NULL)
        fclose(f);
    if (json_is_true(json_object_get(j, "finished")) && has_models(path, j))
        return j;
    json_decref(j);
    return NULL;
}

int outdir_check_summary(const char *path, char why[OUTDIR_WHY_MAX])
{
    json_error_t error = {.line = -1};
    FILE *f = outdir_open_file(path, summary_file);
    if (f == NULL)
        return 0;
    json_t *j = json_loadf(f, 0, &error);
    bool is_json = j != NULL, valid = json_is_boolean(json_object_get(j, "finished"));
    json_decref(j);
    fclose(f);
    if (valid)
        return 0;
    if (!is_json)
        return fail(why, -EINVAL, "summary.json is damaged: line %d: %.160s", error.line,
                    error.text);
    return fail(why, -EINVAL, "summary.json is damaged: found no \"finished\": true or false");
}

/* The state of the directory is decided by these rules, in this order:
 *
 *   run.txt missing or unreadable, no results    OUTDIR_NEW
 *   run.txt missing or unreadable, results       OUTDIR_UNKNOWN_RUN
 *   run.txt has another identity                 OUTDIR_OTHER_RUN
 *   summary is damaged                           OUTDIR_DAMAGED
 *   summary says finished, and models exist      OUTDIR_FINISHED
 *   otherwise                                    OUTDIR_UNFINISHED
 */
enum outdir_state outdir_inspect(const char *path, const char *text, char why[OUTDIR_WHY_MAX])
{
    char there[RUN_IDENTITY_TEXT_MAX];
    why[0] = '\0';
    if (!outdir_read_identity(path, there))
        return find_overwritten(path, text, why) ? OUTDIR_UNKNOWN_RUN : OUTDIR_NEW;
    if (run_identity_differ(there, text, why) > 0)
        return OUTDIR_OTHER_RUN;
    if (outdir_check_summary(path, why) < 0)
        return OUTDIR_DAMAGED;
    json_t *summary = outdir_read_summary(path);
    json_decref(summary);
    return summary != NULL ? OUTDIR_FINISHED : OUTDIR_UNFINISHED;
}

/* ---- Locking the directory. ---- */

static long read_pid(int fd)
{
    char text[PID_MAX];
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return strtol(text, NULL, 10);
}

static int write_pid(int fd)
{
    char text[PID_MAX];
    int n = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) < 0)
        return -errno;
    /* The process number in the lock file is only for messages of other processes. If a full disk
     * cannot store the number, these messages lack it, so the error is ignored. */
    (void)!pwrite(fd, text, (size_t)n, 0);
    return 0;
}

/* Opens and locks the lock file. Returns its descriptor, or -EWOULDBLOCK with the holder's process
 * number in `*pid` if another process has the lock. */
static int take_lock(const char *path, int flags, long *pid)
{
    char name[OUTDIR_PATH_MAX];
    int err = join(name, path, lock_file);
    if (err < 0)
        return err;
    int fd = open(name, O_RDWR | O_CLOEXEC | flags, 0600);
    if (fd < 0)
        return -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    err = -errno;
    *pid = read_pid(fd);
    close(fd);
    return err;
}

bool outdir_is_locked(const char *path, long *pid)
{
    *pid = 0;
    int fd = take_lock(path, 0, pid);
    if (fd >= 0)
        close(fd);
    return fd == -EWOULDBLOCK;
}

static bool is_left_over(const char *name)
{
    bool found = replace_is_left_over(name, run_file);
    for (size_t i = 0; i < N_RESULTS; i++)
        found |= replace_is_left_over(name, result_files[i]);
    return found;
}

/* Deletes temporary files of a process that was killed while writing. Called with the lock held, so
 * that no live process uses these files. */
static void delete_temporary_files(const char *path)
{
    char name[OUTDIR_PATH_MAX];
    DIR *d = opendir(path);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        if (is_left_over(e->d_name) && join(name, path, e->d_name) == 0)
            unlink(name);
    if (d != NULL)
        closedir(d);
}

/* In addition to the files of a run, the lock file is checked: it must be a regular file, and not a
 * symbolic link. */
int outdir_check_files(const char *path, char why[OUTDIR_WHY_MAX])
{
    char name[OUTDIR_PATH_MAX], error[FILE_ERROR_MAX];
    struct stat st;
    if (join(name, path, lock_file) == 0 && lstat(name, &st) == 0 && !S_ISREG(st.st_mode))
        return fail(why, -EINVAL,
                    "%.400s: found a directory, link or special file, expected a regular file",
                    name);
    for (size_t i = 0; i <= N_RESULTS; i++) {
        const char *file = i < N_RESULTS ? result_files[i] : run_file;
        /* A directory in the place of a checkpoint file is accepted. It counts as a damaged
         * checkpoint, and the peer can resume from its other checkpoint. */
        bool checkpoint = strncmp(file, "checkpoint-", strlen("checkpoint-")) == 0;
        if (join(name, path, file) < 0
            || (checkpoint && lstat(name, &st) == 0 && S_ISDIR(st.st_mode)))
            continue;
        if (file_check_regular(name, error) < 0)
            return fail(why, -EINVAL, "%s", error);
    }
    return 0;
}

int outdir_open(struct outdir *d, const char *path, char why[OUTDIR_WHY_MAX])
{
    long pid = 0;
    *d = (struct outdir){.lock = -1};
    int n = snprintf(d->path, sizeof d->path, "%s", path);
    int err = n >= (int)sizeof d->path ? -ENAMETOOLONG : outdir_make(path);
    if (err < 0)
        return fail(why, err, "cannot make the directory %.400s: %s", path, strerror(-err));
    err = outdir_check_files(path, why);
    if (err < 0)
        return err;
    int fd = take_lock(path, O_CREAT, &pid);
    if (fd == -EWOULDBLOCK && pid > 0)
        return fail(why, -EBUSY, "%.400s is in use by process %ld", path, pid);
    if (fd == -EWOULDBLOCK)
        return fail(why, -EBUSY, "%.400s is in use by another process", path);
    if (fd >= 0 && (err = write_pid(fd)) < 0) {
        close(fd);
        fd = err;
    }
    if (fd < 0)
        return fail(why, fd, "cannot write %.400s/%s: %s", path, lock_file, strerror(-fd));
    d->lock = fd;
    d->open = true;
    delete_temporary_files(path);
    return 0;
}

/* Returns 0 if `path` is a directory that can be written to, or if such a directory can be made. */
static int check_writable(const char *path)
{
    char part[OUTDIR_PATH_MAX];
    struct stat st;
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof part)
        return -ENAMETOOLONG;
    memcpy(part, path, n + 1);
    for (;;) {
        if (stat(part, &st) == 0)
            return !S_ISDIR(st.st_mode) ? -ENOTDIR : access(part, W_OK | X_OK) < 0 ? -errno : 0;
        if (errno != ENOENT)
            return -errno;
        /* A symbolic link to a missing target is refused, because mkdir() would fail. */
        if (lstat(part, &st) == 0)
            return -ENOTDIR;
        char *slash = strrchr(part, '/');
        if (strcmp(part, ".") == 0 || (slash == part && part[1] == '\0'))
            return -ENOENT;
        if (slash == NULL)
            strcpy(part, ".");
        else
            slash[slash == part ? 1 : 0] = '\0';
    }
}

int outdir_check(const char *path, bool peers, char why[OUTDIR_WHY_MAX])
{
    char name[OUTDIR_PATH_MAX];
    int err = check_writable(path);
    if (err < 0)
        return fail(why, err, "cannot write to the directory %.400s: %s", path, strerror(-err));
    err = outdir_check_files(path, why);
    DIR *d = peers ? opendir(path) : NULL;
    for (struct dirent *e; d != NULL && err == 0 && (e = readdir(d)) != NULL;) {
        if (!is_peer(e->d_name) || join(name, path, e->d_name) < 0)
            continue;
        err = check_writable(name) == 0
                  ? outdir_check_files(name, why)
                  : fail(why, -ENOTDIR, "%.400s: found no writable directory, expected one", name);
    }
    if (d != NULL)
        closedir(d);
    return err;
}

void outdir_close(struct outdir *d)
{
    if (d->open)
        close(d->lock);
    d->open = false;
}

/* ---- Moving an earlier run away. ---- */

static int make_old(const char *path, char old[OUTDIR_PATH_MAX])
{
    for (int i = 1; i <= OLD_MAX; i++) {
        char name[32];
        snprintf(name, sizeof name, "old.%d", i);
        int err = join(old, path, name);
        if (err < 0)
            return err;
        if (mkdir(old, 0700) == 0)
            return 0;
        if (errno != EEXIST)
            return -errno;
    }
    return -EEXIST;
}

static int move(const char *from, const char *to, const char *name)
{
    char old[OUTDIR_PATH_MAX], new[OUTDIR_PATH_MAX];
    int err = join(old, from, name);
    if (err == 0)
        err = join(new, to, name);
    if (err == 0 && rename(old, new) < 0)
        err = errno == ENOENT ? 0 : -errno;
    return err;
}

/* Moves the directories peer-N from `from` to `to`. readdir() may return a directory that this loop
 * has already moved. move() then finds no such directory and returns 0. */
static int move_peers(const char *from, const char *to)
{
    DIR *d = opendir(from);
    int err = d != NULL ? 0 : -errno;
    for (struct dirent *e; err == 0 && (e = readdir(d)) != NULL;)
        if (is_peer_with_results(from, e->d_name))
            err = move(from, to, e->d_name);
    if (d != NULL)
        closedir(d);
    return err;
}

/* Moves the files of a run. run.txt moves last and after a sync, so that after a crash the files
 * that remain still belong to a known run. */
static int move_all(const char *from, const char *to, bool peers)
{
    int err = peers ? move_peers(from, to) : 0;
    for (size_t i = 0; i < N_RESULTS && err == 0; i++)
        err = move(from, to, result_files[i]);
    if (err == 0)
        err = replace_sync(to);
    if (err == 0)
        err = move(from, to, run_file);
    if (err == 0)
        err = replace_sync(to);
    return err == 0 ? replace_sync(from) : err;
}

int outdir_move_old_run(const struct outdir *d, const char *text, char moved[OUTDIR_PATH_MAX],
                        char why[OUTDIR_WHY_MAX])
{
    char there[RUN_IDENTITY_TEXT_MAX];
    bool named = outdir_read_identity(d->path, there);
    moved[0] = '\0';
    if (!named && !find_overwritten(d->path, text, why))
        return 0;
    int err = make_old(d->path, moved);
    if (err == 0)
        err = move_all(d->path, moved, has_peers(named ? there : text));
    return err == 0
               ? 0
               : fail(why, err, "cannot move the former run to %.400s: %s", moved, strerror(-err));
}

/* ---- Writing files of the run. ---- */

int outdir_write_identity(const struct outdir *d, const char *text, char why[OUTDIR_WHY_MAX])
{
    char there[RUN_IDENTITY_TEXT_MAX], path[OUTDIR_PATH_MAX];
    if (outdir_read_identity(d->path, there) && strcmp(there, text) == 0)
        return 0;
    int err = join(path, d->path, run_file);
    if (err == 0)
        err = replace_file(path, text, strlen(text));
    return err == 0
               ? 0
               : fail(why, err, "cannot write %.400s/%s: %s", d->path, run_file, strerror(-err));
}

/* Finds the end of the last complete line of the file `fd`. `*end` is the file size, or less if a
 * writer was killed in the middle of a line. */
static int end_of_lines(int fd, off_t *end)
{
    char bytes[TAIL];
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    for (off_t at = st.st_size; at > 0;) {
        size_t n = at < TAIL ? (size_t)at : TAIL;
        ssize_t got = pread(fd, bytes, n, at - (off_t)n);
        if (got != (ssize_t)n)
            return got < 0 ? -errno : -EIO;
        for (size_t i = n; i > 0; i--)
            if (bytes[i - 1] == '\n') {
                *end = at - (off_t)(n - i);
                return 0;
            }
        at -= (off_t)n;
    }
    *end = 0;
    return 0;
}

/* A reader of metrics.jsonl expects complete lines, so an incomplete last line is removed before
 * new lines are appended. */
int outdir_open_metrics(const char *path, int *fd)
{
    char name[OUTDIR_PATH_MAX];
    off_t end;
    *fd = -1;
    int err = join(name, path, metrics_file);
    if (err < 0)
        return err;
    int opened = open(name, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (opened < 0)
        return -errno;
    err = end_of_lines(opened, &end);
    if (err == 0 && ftruncate(opened, end) < 0)
        err = -errno;
    if (err == 0)
        *fd = opened;
    else
        close(opened);
    return err;
}

int outdir_write_summary(const char *path, const json_t *summary)
{
    char name[OUTDIR_PATH_MAX];
    int err = join(name, path, summary_file);
    if (err < 0)
        return err;
    char *text = json_dumps(summary, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
    if (text == NULL)
        return -ENOMEM;
    struct replace r;
    err = replace_begin(&r, name);
    if (err == 0) {
        err = replace_put(&r, text, strlen(text));
        if (err == 0)
            err = replace_put(&r, "\n", 1);
        err = replace_end(&r, err);
    }
    free(text);
    return err;
}
