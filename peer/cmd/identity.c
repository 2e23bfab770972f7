/* peer/cmd/identity.c -- `hearsay identity FILE`: the public key that a members file lists. */
#include "peer/uv/identity.h"
#include "peer/cmd/cmd.h"
#include "peer/cmd/files.h"

#include <sodium.h>
#include <stdio.h>

/* clang-format off */
const struct option_row cmd_identity_rows[] = {
    {.name = "file", .kind = OPTION_OPERAND, .arg = "FILE", .required = true,
     .help = "a peer's secret key, as under --out; made when missing"},
    {.name = NULL},
};
/* clang-format on */

int cmd_identity_show(const struct options *o)
{
    struct channel_identity id;
    char error[KEYFILE_ERROR_MAX], text[2 * WIRE_ID_BYTES + 1];
    const char *path = options_text(o, "file");
    bool made;
    if (sodium_init() < 0)
        return cmd_fail(o, CMD_FAILED, "libsodium does not start");
    int err = uv_identity_read(path, &id, &made, error);
    if (err < 0)
        return cmd_fail(o, cmd_exit_of(err), "%s", error);
    uv_identity_text(id.sign_pk, text);
    channel_identity_close(&id);
    if (made)
        fprintf(stderr, "hearsay identity: wrote %s, a new one; it is for one peer only\n", path);
    printf("%s\n", text);
    return cmd_finish(o);
}
