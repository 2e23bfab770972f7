/* peer/cmd/invite.c -- `hearsay invite`: a token for who is not in the members file. */
#include "nn/math/number.h"
#include "peer/admit/token.h"
#include "peer/cmd/cmd.h"
#include "peer/cmd/files.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* clang-format off */
const struct option_row cmd_invite_rows[] = {
    {.name = "identity", .kind = OPTION_TEXT, .arg = "FILE", .required = true,
     .help = "the secret key of a peer that is in the members file; it stands behind the newcomer"},
    {.name = "for", .kind = OPTION_TEXT, .arg = "TIME", .fallback = "1h",
     .help = "how long the token may be used first: 90s, 10m, 1h, 7d"},
    {.name = NULL},
};
/* clang-format on */

static const double longest_s = 366.0 * 86400;

static int take_time(const struct options *o, uint64_t *seconds)
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
    *seconds = (uint64_t)(s * scale);
    return CMD_OK;
}

int cmd_invite(const struct options *o)
{
    struct channel_identity id;
    char error[KEYFILE_ERROR_MAX], text[TOKEN_TEXT + 1];
    uint8_t seed[32];
    uint64_t seconds = 0;
    if (sodium_init() < 0)
        return cmd_fail(o, CMD_FAILED, "libsodium does not start");
    int code = take_time(o, &seconds);
    if (code != CMD_OK)
        return code;
    int err = cmd_identity_of(options_text(o, "identity"), &id, NULL, error);
    if (err < 0)
        return cmd_fail(o, CMD_USAGE, "--identity: %s", error);
    randombytes_buf(seed, sizeof seed);
    token_write(text, &id, (uint64_t)time(NULL) + seconds, seed);
    sodium_memzero(seed, sizeof seed);
    channel_identity_close(&id);
    printf("%s\n", text);
    sodium_memzero(text, sizeof text);
    return cmd_finish(o);
}
