/* peer/cmd/inspect.h -- result of `hearsay inspect`: contents of a model file or of a model
 * spec.
 *
 *   inspect_file.c   FILE  -> tensors with statistics, the run, the author, the round
 *   inspect_spec.c   SPEC  -> tensors that the model would have, its multiply-adds
 *   inspect.c        the command and its output
 */
#ifndef PEER_CMD_INSPECT_H
#define PEER_CMD_INSPECT_H

#include "nn/data/schema.h"
#include "nn/files/safetensors.h"
#include "nn/models/model.h"
#include "peer/cmd/cmd.h"

/* One tensor of the file or of the model spec. */
struct cmd_inspect_tensor
{
    char name[2 * SEGMENT_NAME_MAX]; /* Name of the tensor, cut if it is longer. */
    uint32_t n_dims;
    uint64_t dims[SAFETENSORS_DIMS_MAX];
    uint64_t n, n_bytes; /* Number of elements, and their bytes in a file. */
    char dtype[16];      /* Element type, such as "F32". A longer name is cut. */
    bool read;           /* The values were read: the dtype is a float type. */
    /* Segment of the model with this name and shape. NULL: not known. */
    const struct segment *segment;
    /* Sum and sum of squares of the finite values of the tensor, in double. 0 for a spec. */
    /* Number of values that are NaN or infinite. `sum` and `norm2` leave them out. */
    uint64_t n_bad;
    double sum, norm2;
};

struct cmd_inspect
{
    const char *path; /* Path of the model file. NULL: a model spec is inspected. */
    uint64_t file_bytes;
    struct cmd_inspect_tensor *tensors; /* Tensors in the order of the data in the file. Owned. */
    size_t n_tensors, cap;
    uint64_t n_floats, n_bad;
    struct safetensors_info info; /* Metadata of the model file. */
    struct run run;               /* Run description in the metadata, valid if has_run. */
    bool has_run;
    /* Why the run description could not be read. "": it was read, or the file does not have one. */
    char run_why[RUN_ERROR_MAX];
    struct model model; /* Model of the run or of the spec, valid if has_model. */
    bool has_model;
    /* Name of a tensor that only one of the file and its run's model has. NULL: their tensors
     * agree. */
    const char *unlike;
    char kind[DATA_KIND_MAX]; /* Data kind of the model. "": not known. */
    /* Description of how inputs are made from raw data (peer/run_log/input.h), taken from the file or
     * derived from the data kind. NULL: not known. Owned. */
    struct json_t *input;
    /* Names of the columns in the file's metadata. Zeros: none. */
    struct schema schema;
    bool unnamed; /* The model is for a table, and the file does not name the columns. */
    /* Forms of the columns in the run description. n is 0 if the description does not give them. */
    struct columns columns;
};

/* Reads the whole file `path`. Returns CMD_OK, or an exit code after a message on stderr. */
int cmd_inspect_file(struct cmd_inspect *in, const struct options *o, const char *path);

/* Builds the model of `spec` for the data kind of --data, or for the first default kind that
 * suits the model. --norm selects its normalisation layers. Returns CMD_OK, or an exit code
 * after a message on stderr. */
int cmd_inspect_spec(struct cmd_inspect *in, const struct options *o, const char *spec);

/* Appends one tensor, all zero. Returns NULL if memory is out. */
struct cmd_inspect_tensor *cmd_inspect_add(struct cmd_inspect *in);

#endif
