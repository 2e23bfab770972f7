/* peer/cmd/invite.c -- `hearsay invite`: a token for who is not in the members file. */
#include "nn/math/number.h"
#include "peer/admit/token.h"
#include "peer/cmd/cmd.h"
#include "peer/cmd/files.h"
#include "peer/uv/identity.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* clang-format off */
const struct option_row cmd_invite_rows[] = {
    {.name = "identity", .kind = OPTION_TEXT, .arg = "FILE", .required = true,
     .help = "the secret key of a peer that is in the members file; it stands behind the newcomer"},
    {.name = "for", .kind = OPTION_TEXT, .arg = "TIME", .fallback = "1h",
     .help = "how long the token may be used first, to the tenth of a second by the clock of the peer that "
             "it is shown to: 90s, 10m, 1h, 7d"},
    {.name = "out", .kind = OPTION_TEXT, .arg = "FILE",
     .help = "write the token to a new file, of mode 600, in place of the standard output"},
    {.name = NULL},
};
/* clang-format on */

static const double longest_s = 366.0 * 86400;

static int take_time(const struct options *o, uint64_t *for_ms)
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
                        "--for: found '%.40s', expected a time from 1s to 366d, as 90s, 10m, 1h or "
                        "7d",
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

/* To --out, which others cannot read, else to the standard output, where a shell says who can. */
static int put(const struct options *o, const char *text)
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

int cmd_invite(const struct options *o)
{
    struct channel_identity id;
    char error[KEYFILE_ERROR_MAX], text[TOKEN_TEXT + 1];
    uint8_t seed[32];
    uint64_t for_ms = 0;
    if (sodium_init() < 0)
        return cmd_fail(o, CMD_FAILED, "libsodium does not start");
    int code = take_time(o, &for_ms);
    if (code != CMD_OK)
        return code;
    int err = uv_identity_read(options_text(o, "identity"), &id, NULL, error);
    if (err < 0)
        return cmd_fail(o, CMD_USAGE, "--identity: %s", error);
    randombytes_buf(seed, sizeof seed);
    token_write(text, &id, clock_ms() + for_ms, seed);
    sodium_memzero(seed, sizeof seed);
    channel_identity_close(&id);
    code = put(o, text);
    sodium_memzero(text, sizeof text);
    return code;
}
