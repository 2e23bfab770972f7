/* peer/uv/settings.h -- converts the options of one peer from text to a driver's configuration.
 *
 *   --bootstrap --advertise --listen --name --key --identity --members --token
 *   --quorum-timeout --straggler-timeout --evaluate-every --evaluate-samples --bandwidth
 *                                       settings_*() --> struct uv_driver_config
 *
 * `hearsay peer` uses these functions for its command line, and libhearsay for the options of a
 * program. Each error is one sentence that begins with the name of the option.
 */
#ifndef PEER_UV_SETTINGS_H
#define PEER_UV_SETTINGS_H

#include "peer/run/options.h"
#include "peer/uv/driver.h"

enum {
    SETTINGS_LIST_MAX = 4096, /* Bytes of a list of addresses, including its NUL. */
    SETTINGS_ERROR_MAX = 768  /* Bytes of an error text, including its NUL. */
};

/* A list of addresses. The commas in `text` are replaced by NULs, and at[0..n) point into it. */
struct settings_list
{
    char text[SETTINGS_LIST_MAX];
    const char *at[NODE_SEEDS_MAX];
    uint32_t n;
};

/* Memory that the driver's configuration points to, so this struct must not be moved. The caller
 * sets `o`, the parsed options, and initialises all other fields with zeros. */
struct settings
{
    const struct options *o;
    char name[WIRE_NAME_MAX + 1];
    struct settings_list bootstrap, advertise;
    /* Message for the user about the port that settings_listen() or settings_move() chose. "": no
     * message. */
    char notice[SETTINGS_ERROR_MAX];
    uint8_t psk[CHANNEL_KEY];
    struct channel_identity identity;
    bool locks; /* True: the identity's file is locked by the descriptor `lock`. */
    int lock;
    /* Certificate of this peer's admission, made from the join token of --token. */
    struct certificate certificate;
    struct allow_list listed; /* Contents of the file of --members. */
    struct members_crypto crypto;
};

/* Each of the functions from here to settings_token() sets the fields of *c that its options
 * determine. Each function returns 0, or a negative errno with a sentence in error[].
 * settings_begin() must be called first and sets the fields that no option determines.
 * settings_name() must follow settings_listen(), because the default name contains the port.
 * settings_token() must follow settings_identity(). */
int settings_begin(struct settings *s, struct uv_driver_config *c, char error[SETTINGS_ERROR_MAX]);
int settings_addresses(struct settings *s, struct uv_driver_config *c,
                       char error[SETTINGS_ERROR_MAX]);
/* Sets the listening address of *c. If the default port is in use, calls settings_move(). Must be
 * called after settings_addresses(). */
int settings_listen(struct settings *s, struct uv_driver_config *c, char error[SETTINGS_ERROR_MAX]);
/* Called if the default port is in use: sets the listening port in `c` to the next free one. Does
 * nothing unless --listen is missing and the bootstrap list names the default port of this machine.
 * Returns true if the port was changed; s->notice is then the message for the user. Another process
 * may take the new port before uv_driver_open() binds it. If uv_driver_open() then fails with
 * -EADDRINUSE, call both functions again. */
bool settings_move(struct settings *s, struct uv_driver_config *c);
/* Writes to error[] why the driver cannot listen on its address (`err`: a negative errno), and
 * which --listen to use instead. */
void settings_not_listening(const struct settings *s, const struct uv_driver_config *c, int err,
                            char error[SETTINGS_ERROR_MAX]);
int settings_name(struct settings *s, struct uv_driver_config *c, char error[SETTINGS_ERROR_MAX]);
int settings_key(struct settings *s, struct uv_driver_config *c, char error[SETTINGS_ERROR_MAX]);
int settings_members(struct settings *s, struct uv_driver_config *c,
                     char error[SETTINGS_ERROR_MAX]);
int settings_token(struct settings *s, struct uv_driver_config *c, char error[SETTINGS_ERROR_MAX]);
/* Stores the values of --quorum-timeout, --straggler-timeout, --evaluate-every and
 * --evaluate-samples. */
void settings_limits(const struct options *o, struct node_config *c);
int settings_uplink(const struct options *o, struct node_config *c, char error[SETTINGS_ERROR_MAX]);
/* Reads the identity from the file `path`, or creates it. The file is locked until
 * settings_close(). path NULL: a new random identity that is not stored. `owner`: public key of the
 * peer whose checkpoints will be continued, in hexadecimal; a missing file then gives -ENOKEY.
 * NULL: no checkpoint names its owner. */
int settings_identity(struct settings *s, struct uv_driver_config *c, const char *path,
                      const char *owner, char error[SETTINGS_ERROR_MAX]);
void settings_close(struct settings *s);

/* Returns 0 if --bandwidth can be used with the run's options, else -EINVAL with a sentence in
 * error[]. */
int settings_uplink_fits(const struct options *o, const struct run *run, char error[RUN_ERROR_MAX]);
/* Converts the duration in option `name` to microseconds; 0 means off. Returns 0, or -EINVAL with a
 * sentence in error[]. */
int settings_duration(const struct options *o, const char *name, int64_t *us,
                      char error[SETTINGS_ERROR_MAX]);

#endif
