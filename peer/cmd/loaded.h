/* peer/cmd/loaded.h -- a saved model in memory, for commands that use one.
 *
 *   MODEL  --metadata "run", or --model, --norm-->  run  --data-->  samples
 *                                                    '---------->  model, parameters
 *
 * The run in a file's metadata says what the model is, what kind of data it was trained on and
 * how that is normalised. Only where the data lie has to be told. A file without, as PyTorch
 * writes it, is read with --model.
 *
 * A command has the rows CMD_ROW_MODEL_FILE, CMD_ROW_MODEL_SPEC and one called "data", of models
 * with norms CMD_ROW_MODEL_NORM, too, and calls what it needs in the order below. Each returns an
 * exit code, with a line on stderr where it is not CMD_OK.
 */
#ifndef PEER_CMD_LOADED_H
#define PEER_CMD_LOADED_H

#include "nn/data/data.h"
#include "nn/data/labels.h"
#include "nn/models/model.h"
#include "peer/cmd/cmd.h"

#define CMD_ROW_MODEL_FILE                                                                         \
    {                                                                                              \
        .name = "file", .kind = OPTION_OPERAND, .arg = "MODEL", .required = true,                  \
        .help =                                                                                    \
            "a model that a peer or hearsay train wrote: model.safetensors; or any such file, "    \
            "with --model"                                                                         \
    }
#define CMD_ROW_MODEL_SPEC                                                                         \
    {                                                                                              \
        .name = "model", .kind = OPTION_TEXT, .arg = "SPEC",                                       \
        .help = "what the file holds, in place of what its run says: for files written elsewhere"  \
    }
#define CMD_ROW_MODEL_NORM                                                                         \
    {                                                                                              \
        .name = "norm", .kind = OPTION_TEXT, .arg = "batch|group|layer",                           \
        .help = "with --model: its norms (default batch)"                                          \
    }

/* Zeros before the first call. */
struct cmd_loaded
{
    struct run run;
    char data_spec[RUN_VALUE_MAX]; /* --data says this, with its kind; "": it was not given. */
    bool bare; /* Set by the caller: rows may be without labels (struct data_request). */
    struct data_trained trained; /* Training files that the model file names. hash 0: none. */
    struct schema columns;       /* Names of the columns in the model file. Zeros: none. */
    struct labels *classes;      /* Names of the classes in the model file. NULL: none. */
    struct data data;
    bool has_data;
    struct model model;
    float *x; /* model.n_params floats. */
};

/* The run of the file. `kind` is the data's where --model is given and --data is not; NULL:
 * the run's default. */
int cmd_loaded_run(struct cmd_loaded *l, const struct options *o, const char *kind);

/* The data of --data, which must be of the run's kind. */
int cmd_loaded_data(struct cmd_loaded *l, const struct options *o);

/* The run's model, with the parameters in the file; its shape is the data's where they were read, or
 * else the kind's, which must fix one. */
int cmd_loaded_model(struct cmd_loaded *l, const struct options *o);

void cmd_loaded_close(struct cmd_loaded *l);

#endif
