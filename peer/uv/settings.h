/* peer/uv/settings.h -- the options of one peer: from checked texts to a driver's configuration.
 *
 *   bootstrap advertise listen name key identity members token member-ttl quorum-timeout straggler-timeout
 *   evaluate-every evaluate-samples uplink     --settings_take()-->     struct uv_driver_config
 *
 * Used by `hearsay peer` for its command line, and by libhearsay for the options of a program. Each
 * error is one sentence that begins with the name of the option.
 */
#ifndef PEER_UV_SETTINGS_H
#define PEER_UV_SETTINGS_H

#include "peer/run/options.h"
#include "peer/uv/driver.h"

enum {
    SETTINGS_LIST_MAX = 4096, /* Characters of a list of addresses. */
    SETTINGS_ERROR_MAX = 768  /* Bytes of an error's text. */
};

/* A list of addresses cut at its commas, in place. */
struct settings_list
{
    char text[SETTINGS_LIST_MAX];
    const char *at[NODE_SEEDS_MAX];
    uint32_t n;
};

/* Memory that the configuration refers to. All zeros except `o`; must not be moved after
 * settings_take(). */
struct settings
{
    const struct options *o;
    char name[WIRE_NAME_MAX + 1];
    struct settings_list bootstrap, advertise;
    /* Note for the user about the port that settings_listen() or settings_move() chose. "":
     * none. */
    char notice[SETTINGS_ERROR_MAX];
    uint8_t psk[CHANNEL_KEY];
    struct channel_identity identity;
    bool locks; /* The identity's file is locked, by this descriptor. */
    int lock;
    struct certificate certificate; /* Certificate made from --token. */
    struct allow_list listed;       /* Contents of the file of --members. */
    struct members_crypto crypto;
};

/* Each takes its options: 0, or a negative errno with a sentence. Begin with settings_begin(), which fills
 * in all of the node's configuration that no option says; a name may depend on where it listens, a token on the identity. */
int settings_begin(struct settings *s, struct uv_driver_config *c, char error[SETTINGS_ERROR_MAX]);
int settings_addresses(struct settings *s, struct uv_driver_config *c,
                       char error[SETTINGS_ERROR_MAX]);
/* To be called after settings_addresses(). Calls settings_move() if the default port is in use. */
int settings_listen(struct settings *s, struct uv_driver_config *c, char error[SETTINGS_ERROR_MAX]);
/* Replaces the default port, which is in use, by the next free port in `c`. Does so only if
 * --listen is not given and the bootstrap list names the default port of this machine. Returns true
 * if it did; s->notice then says so.
 * Another process may take the new port before uv_driver_open(). If that fails with -EADDRINUSE,
 * call both functions again. */
bool settings_move(struct settings *s, struct uv_driver_config *c);
/* Writes to error[] why uv_driver_open() failed at UV_DRIVER_DOOR with `err`, and which --listen to
 * use instead. */
void settings_not_listening(const struct settings *s, const struct uv_driver_config *c, int err,
                            char error[SETTINGS_ERROR_MAX]);
int settings_name(struct settings *s, struct uv_driver_config *c, char error[SETTINGS_ERROR_MAX]);
int settings_key(struct settings *s, struct uv_driver_config *c, char error[SETTINGS_ERROR_MAX]);
int settings_members(struct settings *s, struct uv_driver_config *c,
                     char error[SETTINGS_ERROR_MAX]);
int settings_token(struct settings *s, struct uv_driver_config *c, char error[SETTINGS_ERROR_MAX]);
/* --quorum-timeout, --straggler-timeout, --evaluate-every, --evaluate-samples. */
void settings_limits(const struct options *o, struct node_config *c);
int settings_uplink(const struct options *o, struct node_config *c, char error[SETTINGS_ERROR_MAX]);
/* The identity in the file `path`, made where it is missing and locked until settings_close(); NULL: one of this
 * moment. */
int settings_identity(struct settings *s, struct uv_driver_config *c, const char *path,
                      char error[SETTINGS_ERROR_MAX]);
void settings_close(struct settings *s);

/* Has the run a use for --bandwidth? Else -EINVAL with a sentence. */
int settings_uplink_fits(const struct options *o, const struct run *run, char error[RUN_ERROR_MAX]);
/* The value of a text option in microseconds, 0: off. 0, or -EINVAL with a sentence. */
int settings_duration(const struct options *o, const char *name, int64_t *us,
                      char error[SETTINGS_ERROR_MAX]);

#endif
