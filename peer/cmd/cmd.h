/* peer/cmd/cmd.h -- declares the subcommands of hearsay. Each subcommand is implemented in a file
 * with its name, such as peer/cmd/local.c.
 *
 * A command receives options that have been checked, does its work and returns an exit code.
 * Results go to stdout, everything else goes to stderr. main.c has the table of commands with their
 * usage lines and examples. The file of a command contains its option rows (an array that ends with
 * a NULL name) and its function.
 */
#ifndef PEER_CMD_CMD_H
#define PEER_CMD_CMD_H

#include "nn/train/sgd_trainer.h"
#include "peer/run/exit.h"
#include "peer/run/options.h"
#include "peer/run/rows.h"

extern const struct option_row cmd_local_rows[], cmd_peer_rows[], cmd_sim_rows[], cmd_train_rows[],
    cmd_status_rows[], cmd_drift_rows[], cmd_topology_rows[], cmd_compressors_rows[],
    cmd_fields_rows[], cmd_key_new_rows[], cmd_key_identity_rows[], cmd_key_invite_rows[],
    cmd_eval_rows[], cmd_probe_rows[], cmd_completion_rows[], cmd_inspect_rows[],
    cmd_generate_rows[], cmd_predict_rows[];

/* Names of the run keys that `hearsay train` accepts as options, terminated by NULL. */
extern const char *const cmd_train_keys[];

int cmd_local(const struct options *o);
int cmd_peer(const struct options *o);
int cmd_sim(const struct options *o);
int cmd_train(const struct options *o);
int cmd_status(const struct options *o);
int cmd_status_watch(const struct options *o);
int cmd_drift(const struct options *o);
int cmd_probe(const struct options *o);
int cmd_topology(const struct options *o);
int cmd_compressors(const struct options *o);
int cmd_fields(const struct options *o);
int cmd_key_new(const struct options *o);
int cmd_key_identity(const struct options *o);
int cmd_key_invite(const struct options *o);
int cmd_eval(const struct options *o);
int cmd_completion(const struct options *o);
int cmd_inspect(const struct options *o);
int cmd_predict(const struct options *o);
int cmd_generate(const struct options *o);

/* Prints "hearsay NAME: message" as one line to stderr, where NAME is the command. Returns
 * `exit_code`, so that a command can write `return cmd_fail(o, CMD_USAGE, "...", ...)`. */
int cmd_fail(const struct options *o, int exit_code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Flushes stdout. Returns CMD_OK, or CMD_FAILED after a message on stderr if the output could not
 * be written, for example because the disk is full. A command that prints calls this function
 * last. */
int cmd_finish(const struct options *o);

/* Replaces an option value that names a file: "edges:FILE" as --topology by the list of edges in
 * the file, and a bare path as --data by a path with its data kind, such as "csv:PATH". This is the
 * `expand` callback of struct options_io. Commands also call it for specs that are not run flags,
 * with the keys "topology" and "data". Returns 1 if `out` has the new value, 0 if the value stays
 * as it is, or -EINVAL with a message in `error`. */
int cmd_expand(const char *key, const char *value, char out[RUN_VALUE_MAX],
               char error[OPTIONS_ERROR_MAX]);

/* Rows of the table of options that several commands share, so that the options have the same name
 * and help everywhere. */
#define CMD_ROW_JSON                                                                               \
    {                                                                                              \
        .name = "json", .kind = OPTION_FLAG, .help = "print one JSON object to stdout"             \
    }
#define CMD_ROW_OBSERVER                                                                           \
    {                                                                                              \
        .name = "identity", .kind = OPTION_TEXT, .arg = "FILE",                                    \
        .help =                                                                                    \
            "secret key of a member on the allow-list, if the cluster has one; default: a new key" \
    }
#define CMD_ROW_INIT                                                                               \
    {                                                                                              \
        .name = "init", .kind = OPTION_TEXT, .arg = "FILE",                                        \
        .help = "initial model (model.safetensors); all peers of a run need the same file"         \
    }
#define CMD_ROW_THREADS                                                                            \
    {                                                                                              \
        .name = "threads", .kind = OPTION_UINT, .arg = "N", .fallback = "1", .min = 1,             \
        .max = SGD_THREADS_MAX,                                                                    \
        .help = "threads per peer; results depend on N, because sums are split differently"        \
    }
#define CMD_ROW_EPOCHS                                                                             \
    {                                                                                              \
        .name = "epochs", .kind = OPTION_REAL, .arg = "X", .fallback = "10", .min = 1e-6,          \
        .max = 1e6, .rival = "rounds",                                                             \
        .help = "passes of all peers together over the data, if --rounds is not given"             \
    }
#define CMD_ROW_OUT                                                                                \
    {                                                                                              \
        .name = "out", .kind = OPTION_TEXT, .arg = "DIR",                                          \
        .help = "directory for models and metrics"                                                 \
    }

#endif
