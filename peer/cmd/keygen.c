/* peer/cmd/keygen.c -- `hearsay keygen FILE`: a new cluster key. */
#include "peer/cmd/cmd.h"
#include "peer/secure/keyfile.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>

/* clang-format off */
const struct option_row cmd_keygen_rows[] = {
    {.name = "file", .kind = OPTION_OPERAND, .arg = "FILE", .required = true,
     .help = "where to write the key; must not exist yet"},
    {.name = NULL},
};
/* clang-format on */

int cmd_keygen(const struct options *o)
{
    uint8_t key[KEYFILE_BYTES];
    char error[KEYFILE_ERROR_MAX];
    const char *path = options_text(o, "file");
    if (sodium_init() < 0)
        return cmd_fail(o, CMD_FAILED, "libsodium does not start");
    randombytes_buf(key, sizeof key);
    int err = keyfile_write(path, key, error);
    sodium_memzero(key, sizeof key);
    if (err != 0)
        return cmd_fail(o, err == -EEXIST ? CMD_USAGE : CMD_FAILED, "%s", error);
    fprintf(stderr,
            "hearsay keygen: wrote %s; every peer of the cluster needs a copy, and nobody else\n",
            path);
    return CMD_OK;
}
