/* peer/cmd/key.c -- `hearsay key new|identity|invite`: cluster keys, identities and join tokens. */
#include "nn/math/number.h"
#include "peer/admission/token.h"
#include "peer/cmd/cmd.h"
#include "peer/cmd/files.h"
#include "peer/secure/keyfile.h"
#include "peer/uv/identity.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* clang-format off */
const struct option_row cmd_key_new_rows[] = {
    {.name = "file", .kind = OPTION_OPERAND, .arg = "FILE", .required = true,
     .help = "file to write the key to; must not exist yet"},
    {.name = NULL},
};

const struct option_row cmd_key_identity_rows[] = {
    {.name = "file", .kind = OPTION_OPERAND, .arg = "FILE", .required = true,
     .help = "secret key of a peer (identity.key in its --out directory); created if it is missing"},
    {.name = NULL},
};

const struct option_row cmd_key_invite_rows[] = {
    {.name = "identity", .kind = OPTION_TEXT, .arg = "FILE", .required = true,
     .help = "secret key of a peer that the members file lists; it signs the token"},
    {.name = "for", .kind = OPTION_TEXT, .arg = "TIME", .fallback = "1h",
     .help = "time until the token expires, by the clock of the peer that checks it: 90s, 10m, 1h, 7d"},
    {.name = "out", .kind = OPTION_TEXT, .arg = "FILE",
     .help = "write the token to this new file (mode 600) instead of standard output"},
    {.name = NULL},
};
/* clang-format on */

/* ---- The command `key new` ---- */

int cmd_key_new(const struct options *o)
{
    uint8_t key[KEYFILE_BYTES];
    char error[KEYFILE_ERROR_MAX];
    const char *path = options_text(o, "file");
    if (sodium_init() < 0)
        return cmd_fail(o, CMD_FAILED, "cannot initialise libsodium");
    randombytes_buf(key, sizeof key);
    int err = keyfile_write(path, key, error);
    sodium_memzero(key, sizeof key);
    if (err != 0)
        return cmd_fail(o, err == -EEXIST ? CMD_USAGE : CMD_FAILED, "%s", error);
    fprintf(
        stderr,
        "hearsay key new: wrote %s. Copy this secret to every peer of the cluster, and to no other "
        "machine.\n",
        path);
    return CMD_OK;
}

/* ---- The command `key identity` ---- */

int cmd_key_identity(const struct options *o)
{
    struct channel_identity id;
    char error[KEYFILE_ERROR_MAX], text[2 * WIRE_ID_BYTES + 1];
    const char *path = options_text(o, "file");
    bool made;
    if (sodium_init() < 0)
        return cmd_fail(o, CMD_FAILED, "cannot initialise libsodium");
    int err = uv_identity_read(path, &id, &made, error);
    if (err < 0)
        return cmd_fail(o, cmd_exit_of(err), "%s", error);
    uv_identity_text(id.sign_pk, text);
    channel_identity_close(&id);
    if (made)
        fprintf(stderr, "hearsay key identity: wrote %s, a new secret key for one peer\n", path);
    printf("%s\n", text);
    return cmd_finish(o);
}

/* ---- The command `key invite` ---- */

static const double longest_s = 366.0 * 86400;

static int read_time(const struct options *o, uint64_t *for_ms)
{
    static const struct
    {
        char unit;
        double s;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    const char *text = options_text(o, "for");
    char digits[NUMBER_TEXT_MAX] = "";
    size_t n = strlen(text);
    double s = 0, scale = 0;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (n > 1 && text[n - 1] == units[i].unit)
            scale = units[i].s;
    if (n > 1 && n - 1 < sizeof digits)
        memcpy(digits, text, n - 1);
    if (scale == 0 || !number_real(digits, &s) || !(s * scale >= 1) || !(s * scale <= longest_s))
        return cmd_fail(o, CMD_USAGE,
                        "--for: found '%.40s', expected a time from 1s to 366d, such as 90s, "
                        "10m, 1h or 7d",
                        text);
    *for_ms = (uint64_t)(s * scale * 1000);
    return CMD_OK;
}

static uint64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Writes the join token to the file of --out, or to stdout. */
static int write_token(const struct options *o, const char *text)
{
    char error[KEYFILE_ERROR_MAX];
    const char *path = options_text(o, "out");
    if (path == NULL) {
        printf("%s\n", text);
        return cmd_finish(o);
    }
    int err = keyfile_write_text(path, text, error);
    return err < 0 ? cmd_fail(o, err == -EEXIST ? CMD_USAGE : CMD_FAILED, "--out: %s", error)
                   : CMD_OK;
}

int cmd_key_invite(const struct options *o)
{
    struct channel_identity id;
    char error[KEYFILE_ERROR_MAX], text[TOKEN_TEXT + 1];
    uint8_t seed[32];
    uint64_t for_ms = 0;
    if (sodium_init() < 0)
        return cmd_fail(o, CMD_FAILED, "cannot initialise libsodium");
    int code = read_time(o, &for_ms);
    if (code != CMD_OK)
        return code;
    int err = uv_identity_read(options_text(o, "identity"), &id, NULL, error);
    if (err < 0)
        return cmd_fail(o, CMD_USAGE, "--identity: %s", error);
    randombytes_buf(seed, sizeof seed);
    token_write(text, &id, clock_ms() + for_ms, seed);
    sodium_memzero(seed, sizeof seed);
    channel_identity_close(&id);
    code = write_token(o, text);
    sodium_memzero(text, sizeof text);
    return code;
}
