/* peer/secure/keyfile.c -- reads and writes files of 32 secret bytes in hexadecimal, which only
 * their owner may access. */
#include "peer/secure/keyfile.h"

#include "nn/files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HEX = 2 * KEYFILE_BYTES,
    /* Bytes to read: one byte more than a valid key file has, so that a longer file is detected. */
    TEXT_MAX = HEX + 2
};

/* Writes the message "PATH: ..." to `error`. Returns `code`, a negative errno. */
static int refuse(char error[KEYFILE_ERROR_MAX], int code, const char *path, const char *format,
                  ...) __attribute__((format(printf, 4, 5)));
static int refuse(char error[KEYFILE_ERROR_MAX], int code, const char *path, const char *format,
                  ...)
{
    char why[KEYFILE_ERROR_MAX / 2 + 64];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    snprintf(error, KEYFILE_ERROR_MAX, "%.180s: %s", path, why);
    return code;
}

static int read_all(int fd, char *text, size_t cap, size_t *n)
{
    *n = 0;
    while (*n < cap) {
        ssize_t got = read(fd, text + *n, cap - *n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        *n += (size_t)got;
    }
    return 0;
}

static int check_mode(int fd, const char *path, char error[KEYFILE_ERROR_MAX])
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return refuse(error, -errno, path, "%s", strerror(errno));
    if (st.st_mode & 077)
        return refuse(error, -EINVAL, path, "mode %04o, expected 0600 (chmod 600 %.180s)",
                      (unsigned)(st.st_mode & 07777), path);
    return 0;
}

/* Parses the content of a key file: 64 hexadecimal digits, optionally followed by a newline. */
static int parse(const char *path, const char *text, size_t n, uint8_t key[KEYFILE_BYTES],
                 char error[KEYFILE_ERROR_MAX])
{
    size_t n_bytes;
    if (n == HEX + 1 && text[HEX] == '\n')
        n = HEX;
    if (n != HEX)
        return refuse(error, -EINVAL, path,
                      "%s%zu bytes, expected %d hexadecimal digits and a newline",
                      n == TEXT_MAX ? "at least " : "", n, HEX);
    if (sodium_hex2bin(key, KEYFILE_BYTES, text, n, NULL, &n_bytes, NULL)
        || n_bytes != KEYFILE_BYTES)
        return refuse(error, -EINVAL, path,
                      "found characters that are not hexadecimal, expected %d digits and a newline",
                      HEX);
    return 0;
}

int keyfile_read(const char *path, uint8_t key[KEYFILE_BYTES], char error[KEYFILE_ERROR_MAX])
{
    char text[TEXT_MAX], why[FILE_ERROR_MAX];
    size_t n;
    sodium_memzero(key, KEYFILE_BYTES);
    int fd = file_open_fd(path, why);
    if (fd == -ENOENT)
        return refuse(error, -ENOENT, path,
                      "No such file or directory (hearsay key creates key files)");
    if (fd < 0) {
        snprintf(error, KEYFILE_ERROR_MAX, "%s", why);
        return fd;
    }
    int err = check_mode(fd, path, error);
    if (err == 0) {
        err = read_all(fd, text, sizeof text, &n);
        if (err != 0)
            refuse(error, err, path, "%s", strerror(-err));
        else
            err = parse(path, text, n, key, error);
    }
    close(fd);
    sodium_memzero(text, sizeof text);
    if (err != 0)
        sodium_memzero(key, KEYFILE_BYTES);
    return err;
}

static int write_all(int fd, const char *text, size_t n)
{
    while (n > 0) {
        ssize_t put = write(fd, text, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -errno;
        text += put;
        n -= (size_t)put;
    }
    return fsync(fd) ? -errno : 0;
}

int keyfile_write_text(const char *path, const char *text, char error[KEYFILE_ERROR_MAX])
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST)
        return refuse(error, -EEXIST, path, "the file exists, and is not overwritten");
    if (fd < 0)
        return refuse(error, -errno, path, "%s", strerror(errno));
    int err = write_all(fd, text, strlen(text));
    err = err == 0 ? write_all(fd, "\n", 1) : err;
    if (close(fd) != 0 && err == 0)
        err = -errno;
    if (err != 0) {
        unlink(path);
        return refuse(error, err, path, "%s", strerror(-err));
    }
    return 0;
}

int keyfile_write(const char *path, const uint8_t key[KEYFILE_BYTES], char error[KEYFILE_ERROR_MAX])
{
    char text[HEX + 1];
    sodium_bin2hex(text, sizeof text, key, KEYFILE_BYTES);
    int err = keyfile_write_text(path, text, error);
    sodium_memzero(text, sizeof text);
    return err;
}
