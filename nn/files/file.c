/* nn/files/file.c -- reads plain and gzip files, formats error messages about files, and lists
 * directories.
 *
 * A gzip file may consist of several members, each with a checksum. The end of the file counts as
 * the end only after a correct checksum. Without a correct checksum the file is truncated or
 * corrupt, which is an error: training on a part of the data must not go unnoticed. */
#include "nn/files/file.h"

#include "nn/files/replace.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum {
    CHUNK = 64 * 1024, /* Number of compressed bytes that are read at a time. */
    STEP = 4 << 20,    /* Number of bytes between two progress reports. */
    /* Largest ratio of the unpacked size to the compressed size (a limit of deflate). */
    DEFLATE_FACTOR = 1032,
    /* Error messages show at most this number of bytes from the end of a path. */
    PATH_SHOWN = 160,
    GZIP_WINDOW = 15 + 16 /* Argument windowBits of inflateInit2(): accept gzip only. */
};

struct file
{
    int fd;
    bool gzip;
    bool ended; /* gzip: the end of the last member was reached, and its checksum is right. */
    /* Size of the file on disk when it was opened, in bytes. The file may grow later. */
    uint64_t size;
    uint64_t done; /* Number of bytes on disk that have been read. */
    /* Value of `done` at the last progress report. UINT64_MAX: the end was reported. */
    uint64_t said;
    struct file_progress progress;
    uint64_t hash; /* Hash of the unpacked bytes so far. Used if progress.hash is not NULL. */
    char *path;
    z_stream z;
    uint8_t in[CHUNK];
};

/* Copies text, with \xNN for each byte that is not printable ASCII. Text from a file may come from
 * an untrusted source and must not send control codes to a terminal. Text that does not fit is cut
 * off. */
static void put_plain(char *out, size_t room, const char *text)
{
    size_t at = 0;
    for (; *text != '\0' && at + 5 <= room; text++) {
        unsigned char c = (unsigned char)*text;
        if (c >= 0x20 && c < 0x7f)
            out[at++] = *text;
        else
            at += (size_t)snprintf(out + at, 5, "\\x%02x", c);
    }
    out[at] = '\0';
}

int file_error(char error[FILE_ERROR_MAX], const char *path, const char *format, ...)
{
    char text[FILE_ERROR_MAX];
    size_t len = strlen(path);
    const char *tail = len > PATH_SHOWN ? path + len - PATH_SHOWN : path;
    int n = snprintf(error, FILE_ERROR_MAX, "%s%s: ", tail == path ? "" : "...", tail);
    assert(n > 0 && n < FILE_ERROR_MAX);
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    put_plain(error + n, (size_t)(FILE_ERROR_MAX - n), text);
    return -EINVAL;
}

int file_no_memory(char error[FILE_ERROR_MAX], const char *path)
{
    file_error(error, path, "cannot read: no memory");
    return -ENOMEM;
}

const char *file_zlib_version(void)
{
    return zlibVersion();
}

const char *file_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

int file_world_error(char error[FILE_ERROR_MAX], const char *path, const char *what, int code)
{
    file_error(error, path, "%s: %s", what, strerror(code));
    return -code;
}

/* Returns true for a name that ends in .gz. A file with such a name is refused if its first two
 * bytes show that it is not gzip. */
static bool named_gz(const char *path)
{
    size_t len = strlen(path);
    return len >= 3 && strcmp(path + len - 3, ".gz") == 0;
}

void file_watch(struct file *f, const struct file_progress *progress)
{
    f->progress = *progress;
    f->hash = UINT64_C(0xcbf29ce484222325);
}

/* Counts n more bytes that were read, and reports progress every few MiB. n = 0 means that the end
 * was reached. */
static void report(struct file *f, size_t n)
{
    f->done += n;
    if (f->progress.call == NULL || f->said == UINT64_MAX)
        return;
    if (n > 0 && f->done - f->said < STEP)
        return;
    f->said = n > 0 ? f->done : UINT64_MAX;
    /* The file may grow while it is read, so `done` may exceed `size`. The reported total must not
     * be less than `done`. */
    uint64_t total = f->done > f->size ? f->done : f->size;
    f->progress.call(f->progress.self, f->path, f->done, n > 0 ? total : f->done);
}

/* Reads n bytes from disk, or fewer at the end of the file. */
static int read_some(struct file *f, uint8_t *dst, size_t n, size_t *got,
                     char error[FILE_ERROR_MAX])
{
    *got = 0;
    while (*got < n) {
        size_t want = n - *got < STEP ? n - *got : STEP;
        ssize_t r = read(f->fd, dst + *got, want);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return file_world_error(error, f->path, "cannot read", errno);
        report(f, (size_t)r);
        if (r == 0)
            break;
        *got += (size_t)r;
    }
    return 0;
}

/* Detects gzip by the first two bytes, then returns to the start of the file. */
static int sniff(struct file *f, char error[FILE_ERROR_MAX])
{
    uint8_t magic[2] = {0};
    size_t got;
    int err = read_some(f, magic, sizeof magic, &got, error);
    if (err < 0)
        return err;
    f->gzip = got == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
    if (!f->gzip && named_gz(f->path))
        return got < 2 ? file_error(error, f->path, "found %zu bytes, expected gzip data", got)
                       : file_error(error, f->path,
                                    "found first bytes %02x %02x, expected 1f 8b: not a gzip file",
                                    magic[0], magic[1]);
    if (lseek(f->fd, 0, SEEK_SET) < 0)
        return file_world_error(error, f->path, "cannot seek", errno);
    f->done = 0;
    if (f->gzip && inflateInit2(&f->z, GZIP_WINDOW) != Z_OK) {
        f->gzip = false;
        return file_world_error(error, f->path, "cannot read", ENOMEM);
    }
    return 0;
}

static int refuse_kind(char error[FILE_ERROR_MAX], const char *path, mode_t mode)
{
    return file_error(error, path, "found a %s, expected a regular file",
                      S_ISDIR(mode)    ? "directory"
                      : S_ISFIFO(mode) ? "named pipe"
                      : S_ISSOCK(mode) ? "socket"
                                       : "device");
}

int file_check_regular(const char *path, char error[FILE_ERROR_MAX])
{
    struct stat st;
    return stat(path, &st) < 0 || S_ISREG(st.st_mode) ? 0 : refuse_kind(error, path, st.st_mode);
}

/* O_NONBLOCK: opening a named pipe must not block. A socket cannot be opened (ENXIO). */
int file_open_fd(const char *path, char error[FILE_ERROR_MAX])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), code = errno;
    struct stat st;
    if (fd < 0 && (code != ENXIO || file_check_regular(path, error) == 0))
        return file_world_error(error, path, "cannot open", code);
    if (fd < 0)
        return -EINVAL;
    int err = fstat(fd, &st) < 0     ? file_world_error(error, path, "cannot open", errno)
              : !S_ISREG(st.st_mode) ? refuse_kind(error, path, st.st_mode)
                                     : 0;
    if (err < 0)
        close(fd);
    return err < 0 ? err : fd;
}

/* Opens the path only if it is a regular file, which has a size that is known before reading. */
static int open_regular(struct file *f, char error[FILE_ERROR_MAX])
{
    struct stat st;
    f->fd = file_open_fd(f->path, error);
    if (f->fd < 0)
        return f->fd;
    if (fstat(f->fd, &st) < 0)
        return file_world_error(error, f->path, "cannot open", errno);
    f->size = (uint64_t)st.st_size;
    return 0;
}

int file_open_no_input(struct file **out, const char *path, char error[FILE_ERROR_MAX])
{
    *out = NULL;
    struct file *f = calloc(1, sizeof *f);
    char *copy = strdup(path);
    if (f == NULL || copy == NULL) {
        free(f);
        free(copy);
        return file_world_error(error, path, "cannot open", ENOMEM);
    }
    f->path = copy;
    int err = open_regular(f, error);
    if (err < 0)
        file_close(f);
    else
        *out = f;
    return err;
}

int file_open_plain(struct file **f, const char *path, char error[FILE_ERROR_MAX])
{
    int err = file_open_no_input(f, path, error);
    if (err == 0)
        replace_add_input((*f)->fd);
    return err;
}

/* Opens a file and detects gzip. `input` true: from now on the program refuses to overwrite this
 * file (nn/files/replace.h). */
static int open_any(struct file **f, const char *path, bool input, char error[FILE_ERROR_MAX])
{
    int err = input ? file_open_plain(f, path, error) : file_open_no_input(f, path, error);
    if (err == 0)
        err = sniff(*f, error);
    if (err < 0) {
        file_close(*f);
        *f = NULL;
    }
    return err;
}

int file_open(struct file **f, const char *path, char error[FILE_ERROR_MAX])
{
    return open_any(f, path, true, error);
}

/* file_close() also closes a file that file_open() has opened only in part. `fd` is negative if the
 * file is not open. */
void file_close(struct file *f)
{
    if (f == NULL)
        return;
    if (f->progress.hash != NULL)
        *f->progress.hash += f->hash;
    if (f->gzip)
        inflateEnd(&f->z);
    if (f->fd >= 0)
        close(f->fd);
    free(f->path);
    free(f);
}

/* The bound of a gzip file is its size times the largest compression factor of deflate. The
 * unpacked size that is stored at the end of a gzip file is not used, because it is given modulo
 * 2^32 and may be wrong. */
uint64_t file_bound(const struct file *f)
{
    return f->gzip ? f->size * DEFLATE_FACTOR : f->size;
}

bool file_is_plain(const struct file *f)
{
    return !f->gzip;
}

/* Makes sure that the input buffer of zlib (z) has compressed bytes. At the end of the file
 * z.avail_in stays 0. */
static int refill(struct file *f, char error[FILE_ERROR_MAX])
{
    if (f->z.avail_in > 0)
        return 0;
    size_t got;
    int err = read_some(f, f->in, CHUNK, &got, error);
    f->z.next_in = f->in;
    f->z.avail_in = (uInt)got;
    return err;
}

/* Called at the end of a valid gzip member. Zeros after the member are padding, as in the blocks of
 * a tape, and are skipped. Any other bytes must be another member, because gzip files may be
 * concatenated. If there are no more bytes, the file ends here. */
static int member_end(struct file *f, char error[FILE_ERROR_MAX])
{
    do {
        int err = refill(f, error);
        if (err < 0)
            return err;
        f->ended = f->z.avail_in == 0;
        for (; f->z.avail_in > 0 && *f->z.next_in == 0; f->z.avail_in--)
            f->z.next_in++;
    } while (!f->ended && f->z.avail_in == 0);
    if (!f->ended && *f->z.next_in != 0x1f)
        return file_error(
            error, f->path,
            "found byte %02x after the gzip data, expected the end of the file or more gzip data",
            *f->z.next_in);
    if (!f->ended && inflateReset(&f->z) != Z_OK)
        return file_world_error(error, f->path, "cannot unpack gzip data", ENOMEM);
    return 0;
}

/* Inflates bytes to z.next_out. Stops when the output is full, the input buffer is empty, or the
 * file ends. */
static int inflate_more(struct file *f, char error[FILE_ERROR_MAX])
{
    int err = refill(f, error);
    if (err < 0)
        return err;
    if (f->z.avail_in == 0)
        return file_error(error, f->path, "gzip data end early: the file is truncated");
    int z = inflate(&f->z, Z_NO_FLUSH);
    if (z == Z_STREAM_END)
        return member_end(f, error);
    if (z == Z_MEM_ERROR)
        return file_world_error(error, f->path, "cannot unpack gzip data", ENOMEM);
    if (z != Z_OK && z != Z_BUF_ERROR)
        return file_error(error, f->path, "gzip data are corrupt: %s",
                          f->z.msg != NULL ? f->z.msg : "not deflate data");
    return 0;
}

/* zlib counts in unsigned int, so a large read is divided into pieces. */
static int get(struct file *f, void *dst, size_t n, size_t *got, char error[FILE_ERROR_MAX])
{
    if (!f->gzip)
        return read_some(f, dst, n, got, error);
    *got = 0;
    while (*got < n && !f->ended) {
        size_t room = n - *got < UINT_MAX / 2 ? n - *got : UINT_MAX / 2;
        f->z.next_out = (uint8_t *)dst + *got;
        f->z.avail_out = (uInt)room;
        int err = inflate_more(f, error);
        *got += room - f->z.avail_out;
        if (err < 0)
            return err;
    }
    return 0;
}

/* The hash is FNV-1a, byte by byte, so it does not depend on how many bytes each read returns. */
int file_get(struct file *f, void *dst, size_t n, size_t *got, char error[FILE_ERROR_MAX])
{
    int err = get(f, dst, n, got, error);
    const uint8_t *p = dst;
    for (size_t i = 0; i < *got && f->progress.hash != NULL; i++)
        f->hash = (f->hash ^ p[i]) * UINT64_C(0x100000001b3);
    return err;
}

/* Reads the rest of the file into a buffer, whose size is doubled when it is full. */
static int read_all(struct file *f, size_t limit, uint8_t **bytes, size_t *n,
                    char error[FILE_ERROR_MAX])
{
    uint64_t bound = file_bound(f);
    size_t cap = bound < CHUNK ? (size_t)bound + 1 : CHUNK;
    if (!f->gzip && bound < limit)
        /* The buffer has room for one byte more than the file has. A single read then returns the
         * whole file and, because it does not fill the buffer, also shows that the file has
         * ended. */
        cap = (size_t)bound + 1;
    for (;;) {
        uint8_t *grown = realloc(*bytes, cap);
        if (grown == NULL)
            return file_world_error(error, f->path, "cannot read", ENOMEM);
        *bytes = grown;
        size_t got;
        int err = file_get(f, *bytes + *n, cap - *n, &got, error);
        if (err < 0)
            return err;
        *n += got;
        if (*n > limit) {
            file_error(error, f->path, "found more than %zu bytes, expected no more", limit);
            return -EFBIG;
        }
        if (*n < cap)
            return 0;
        cap = cap > limit / 2 ? limit + 1 : cap * 2;
    }
}

/* After a failure *bytes is NULL: the caller has nothing to free. */
int file_read(const char *path, size_t limit, const struct file_progress *progress, uint8_t **bytes,
              size_t *n, char error[FILE_ERROR_MAX])
{
    *bytes = NULL;
    *n = 0;
    assert(limit < SIZE_MAX);
    struct file *f;
    int err = file_open(&f, path, error);
    if (err < 0)
        return err;
    if (progress != NULL)
        file_watch(f, progress);
    err = read_all(f, limit, bytes, n, error);
    file_close(f);
    if (err < 0) {
        free(*bytes);
        *bytes = NULL;
        *n = 0;
    }
    return err;
}

int file_read_text(const char *path, char *text, size_t cap, char error[FILE_ERROR_MAX])
{
    struct file *f;
    size_t n = 0;
    int err = file_open_plain(&f, path, error);
    if (err == 0) {
        err = file_get(f, text, cap, &n, error);
        file_close(f);
    }
    if (err == 0 && n == cap) {
        file_error(error, path, "found more than %zu bytes, expected no more", cap - 1);
        err = -EFBIG;
    }
    if (err == 0 && memchr(text, '\0', n) != NULL)
        err = file_error(error, path, "found a NUL byte, expected text");
    text[err == 0 ? n : 0] = '\0';
    return err;
}

bool file_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

/* A path that stat() cannot inspect does not count as a directory. */
bool file_is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

struct file_id file_identify(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return (struct file_id){0};
    return (struct file_id){.device = st.st_dev, .inode = st.st_ino};
}

int file_head(const char *path, uint8_t *bytes, size_t cap, size_t *n, bool *whole,
              char error[FILE_ERROR_MAX])
{
    struct file *f;
    uint8_t more;
    size_t got = 0;
    *n = 0;
    int err = open_any(&f, path, false, error);
    if (err < 0)
        return err;
    err = file_get(f, bytes, cap, n, error);
    if (err == 0)
        err = file_get(f, &more, 1, &got, error);
    *whole = got == 0;
    file_close(f);
    return err;
}

/* ---- Listing a directory ---- */

/* Compares byte by byte, so that the order of a directory's files does not depend on the machine's
 * locale. */
static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void file_list_free(char **names, size_t n)
{
    for (size_t i = 0; names != NULL && i < n; i++)
        free(names[i]);
    free(names);
}

/* Returns whether file_list() lists this name: not a hidden name, and not a directory. A name that
 * cannot be inspected is listed, so that opening it reports the error. */
static bool lists(DIR *d, const char *name)
{
    struct stat st;
    return name[0] != '.' && (fstatat(dirfd(d), name, &st, 0) < 0 || !S_ISDIR(st.st_mode));
}

static int list_all(DIR *d, const char *dir, size_t most, char **names, size_t *n,
                    char error[FILE_ERROR_MAX])
{
    struct dirent *e;
    for (errno = 0; (e = readdir(d)) != NULL; errno = 0) {
        if (!lists(d, e->d_name))
            continue;
        if (*n == most) {
            file_error(error, dir, "found more than %zu files, expected no more", most);
            return -EFBIG;
        }
        names[*n] = strdup(e->d_name);
        if (names[*n] == NULL)
            return file_world_error(error, dir, "cannot list", ENOMEM);
        ++*n;
    }
    return errno ? file_world_error(error, dir, "cannot list", errno) : 0;
}

int file_list(const char *dir, size_t most, char ***names, size_t *n, char error[FILE_ERROR_MAX])
{
    *names = NULL;
    *n = 0;
    DIR *d = opendir(dir);
    if (d == NULL)
        return file_world_error(error, dir, "cannot open", errno);
    char **list = calloc(most, sizeof *list);
    int err = list != NULL ? list_all(d, dir, most, list, n, error)
                           : file_world_error(error, dir, "cannot list", ENOMEM);
    closedir(d);
    if (err < 0) {
        file_list_free(list, *n);
        *n = 0;
        return err;
    }
    if (*n > 0)
        qsort(list, *n, sizeof *list, by_bytes);
    *names = list;
    return 0;
}
