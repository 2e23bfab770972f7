/* peer/cmd/loaded.h -- loads a saved model into memory, for commands that use a trained model.
 *
 *   MODEL  --metadata "run", or --model, --norm-->  run  --data-->  samples
 *                                                    '---------->  model, parameters
 *
 * The run description in the file's metadata names the model, the kind of data on which it was
 * trained, and how the data are normalised. The user must give only the location of the data. A
 * file without a run description, as PyTorch writes it, is read with --model.
 *
 * A command that loads a model has the option rows CMD_ROW_MODEL_FILE, CMD_ROW_MODEL_SPEC and one
 * named "data". For models with normalisation layers it also has CMD_ROW_MODEL_NORM. The command
 * calls the functions that it needs in the order below. Each function returns CMD_OK, or another
 * exit code after a message on stderr.
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
            "model file (model.safetensors) that a peer or hearsay train wrote; with --model, "    \
            "any safetensors file"                                                                 \
    }
#define CMD_ROW_MODEL_SPEC                                                                         \
    {                                                                                              \
        .name = "model", .kind = OPTION_TEXT, .arg = "SPEC",                                       \
        .help = "model of the file, if the file was not written by hearsay; overrides the run in " \
                "the file's metadata"                                                              \
    }
#define CMD_ROW_MODEL_NORM                                                                         \
    {                                                                                              \
        .name = "norm", .kind = OPTION_TEXT, .arg = "batch|group|layer",                           \
        .help = "with --model: normalisation layers of the model (default batch)"                  \
    }

/* A saved model, its run and its data. Initialise with zeros. */
struct cmd_loaded
{
    struct run run;
    /* Value of --data, with the data kind in front ("csv:PATH"). "": --data was not given. */
    char data_spec[RUN_VALUE_MAX];
    /* True if the rows of a table may lack labels (struct data_request). Set by the caller. */
    bool bare;
    /* Identity of the files on which the model was trained, from the model file. hash 0: not
     * known. */
    struct data_trained trained;
    /* Names of the columns, from the model file. All zeros: the file has no column names. */
    struct schema columns;
    /* Names of the classes, from the model file. NULL: the file has no class names. */
    struct labels *classes;
    struct data data;
    bool has_data;
    struct model model;
    float *x; /* Parameters of the model, model.n_params floats. Owned. */
};

/* Reads the run description of the model file, or makes one from --model. `kind`: data kind to use
 * if --model is given without --data. NULL: the default data kind of a run. */
int cmd_loaded_run(struct cmd_loaded *l, const struct options *o, const char *kind);

/* Reads the data of --data, which must be of the same kind as the data of the run. */
int cmd_loaded_data(struct cmd_loaded *l, const struct options *o);

/* Builds the run's model and reads its parameters from the file. If the data were read, they
 * determine the shape of the model. Otherwise the data kind must determine it. */
int cmd_loaded_model(struct cmd_loaded *l, const struct options *o);

void cmd_loaded_close(struct cmd_loaded *l);

#endif
