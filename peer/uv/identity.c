/* peer/uv/identity.c -- reads a peer's identity from its file, and locks the file so that no second
 * process uses the same identity. */
#include "peer/uv/identity.h"

#include "nn/files/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include <uv.h>

/* Locks the identity file. Returns the descriptor that holds the lock, or a negative errno with a
 * sentence in error[]. */
static int lock_file(const char *path, char error[KEYFILE_ERROR_MAX])
{
    char why[FILE_ERROR_MAX];
    int fd = file_open_fd(path, why);
    if (fd < 0) {
        snprintf(error, KEYFILE_ERROR_MAX, "%s", why);
        return fd;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    int err = -errno;
    close(fd);
    snprintf(error, KEYFILE_ERROR_MAX, "%.300s: %s", path,
             err == -EWOULDBLOCK
                 ? "another process has this identity; give each peer its own --out or --identity"
                 : strerror(-err));
    return err == -EWOULDBLOCK ? -EBUSY : err;
}

/* Writes a new random key to `path` if the file does not exist. *made: true if the file was
 * written. */
static int make_missing(const char *path, bool *made, char error[KEYFILE_ERROR_MAX])
{
    uint8_t seed[KEYFILE_BYTES];
    *made = access(path, F_OK) != 0;
    if (!*made)
        return 0;
    int err = uv_random(NULL, NULL, seed, KEYFILE_BYTES, 0, NULL);
    if (err < 0)
        snprintf(error, KEYFILE_ERROR_MAX, "no random bytes: %s", uv_strerror(err));
    else
        err = keyfile_write(path, seed, error);
    explicit_bzero(seed, KEYFILE_BYTES);
    return err;
}

int uv_identity_own(const char *path, uint8_t seed[KEYFILE_BYTES], int *lock,
                    char error[KEYFILE_ERROR_MAX])
{
    bool made;
    int err = make_missing(path, &made, error);
    if (err == 0)
        err = lock_file(path, error);
    if (err < 0)
        return err;
    *lock = err;
    err = keyfile_read(path, seed, error);
    if (err < 0)
        close(*lock);
    return err;
}

int uv_identity_read(const char *path, struct channel_identity *id, bool *made,
                     char error[KEYFILE_ERROR_MAX])
{
    uint8_t seed[KEYFILE_BYTES];
    int err = made != NULL ? make_missing(path, made, error) : 0;
    if (err == 0)
        err = keyfile_read(path, seed, error);
    if (err == 0)
        channel_identity_from_seed(id, seed);
    explicit_bzero(seed, sizeof seed);
    return err;
}

static bool verify(void *self, const uint8_t id[WIRE_ID_BYTES], const uint8_t *msg, size_t n,
                   const uint8_t signature[WIRE_SIGNATURE_BYTES])
{
    (void)self;
    return channel_verify(id, msg, n, signature);
}

static void sign(void *self, const uint8_t *msg, size_t n, uint8_t signature[WIRE_SIGNATURE_BYTES])
{
    channel_sign(self, msg, n, signature);
}

struct members_crypto uv_identity_crypto(struct channel_identity *id)
{
    return (struct members_crypto){.self = id, .verify = verify, .sign = sign};
}

void uv_identity_text(const uint8_t id[WIRE_ID_BYTES], char text[2 * WIRE_ID_BYTES + 1])
{
    for (size_t i = 0; i < WIRE_ID_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", id[i]);
}
