/* peer/cmd/inspect.h -- what `hearsay inspect` finds in a model file or a model spec.
 *
 *   inspect_file.c   FILE  -> tensors with figures, the run, who wrote it, round
 *   inspect_spec.c   SPEC  -> tensors as the model would have them, its work
 *   inspect.c        the command, and how it is printed
 */
#ifndef PEER_CMD_INSPECT_H
#define PEER_CMD_INSPECT_H

#include "nn/data/schema.h"
#include "nn/files/safetensors.h"
#include "nn/models/model.h"
#include "peer/cmd/cmd.h"

/* One tensor. */
struct cmd_inspect_tensor
{
    char name[2 * SEGMENT_NAME_MAX]; /* A longer one is cut. */
    uint32_t n_dims;
    uint64_t dims[SAFETENSORS_DIMS_MAX];
    uint64_t n, n_bytes; /* Number of elements, and their bytes in a file. */
    char dtype[16];      /* Element type, such as "F32". A longer name is cut. */
    bool read;           /* The values were read: the dtype is a float type. */
    /* Segment of the model with this name and shape. NULL: not known. */
    const struct segment *segment;
    /* What a file holds; 0 of a spec. Sums are in double. */
    uint64_t n_bad; /* NaN or infinite, which the next two leave out. */
    double sum, norm2;
};

struct cmd_inspect
{
    const char *path; /* NULL: it is a spec. */
    uint64_t file_bytes;
    struct cmd_inspect_tensor *tensors; /* In the order of the data; owned. */
    size_t n_tensors, cap;
    uint64_t n_floats, n_bad;
    struct safetensors_info info; /* A file's metadata. */
    struct run run;               /* Theirs, where has_run. */
    bool has_run;
    char run_why[RUN_ERROR_MAX]; /* Why there is no run; "" where there is one, or none is said. */
    struct model model;          /* The run's or the spec's, where has_model. */
    bool has_model;
    /* A tensor that the file has and its run's model has not, or the other way round; NULL: none. */
    const char *unlike;
    char kind[DATA_KIND_MAX]; /* Data of the model. */
    /* Description of how inputs are made from raw data (peer/diary/input.h), taken from the file or
     * derived from the data kind. NULL: not known. Owned. */
    struct json_t *input;
    /* Names of the columns in the file's metadata. Zeros: none. */
    struct schema schema;
    bool unnamed; /* The model is for a table, and the file does not name the columns. */
    /* Forms of the columns in the run description. n is 0 if the description has none. */
    struct columns columns;
};

/* Read all of a file. CMD_OK, or an exit code with a line on stderr. */
int cmd_inspect_file(struct cmd_inspect *in, const struct options *o, const char *path);

/* Build the model of a spec, for --data or the shape that suits it, with --norm. */
int cmd_inspect_spec(struct cmd_inspect *in, const struct options *o, const char *spec);

/* Room for one more tensor, all zero; NULL: no memory. */
struct cmd_inspect_tensor *cmd_inspect_add(struct cmd_inspect *in);

#endif
