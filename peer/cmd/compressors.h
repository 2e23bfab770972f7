/* peer/cmd/compressors.h -- shared by the files of `hearsay compressors`: the table of codecs
 * and their measurements.
 *
 *   compressors.c          options, specs, the vector to compress
 *   compressors_measure.c  messages, errors and times
 *   compressors_print.c    tables and JSON
 *
 * The vector has n standard normal values. All times are seconds for the whole vector, the
 * fastest of several repeats:
 *
 *   with compression      encode + neighbours * (decode + bits of the message / uplink)
 *   without compression            neighbours *           bits of n floats    / uplink
 *
 * decode = validate + apply. Compression pays if the time with it is less than the time without
 * it. That holds below a certain bandwidth of the uplink, or never.
 */
#ifndef PEER_CMD_COMPRESSORS_H
#define PEER_CMD_COMPRESSORS_H

#include "compress/compress.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CMD_COMPRESSORS_ERROR_MAX = 512 };

/* One codec in the table, with its measurements. */
struct cmd_compressors_row
{
    char spec[COMPRESS_SPEC_MAX]; /* Codec in canonical form. */
    /* Catalogue entry, if the codec has its default parameters. NULL: the spec has other
     * parameters or combines codecs. */
    const struct compress_info *info;
    size_t bytes; /* Length of the encoder's first message. */
    /* Contraction 1 - |v - C(v)|^2 / |v|^2, mean of several random vectors. */
    double delta;
    double encode_s, validate_s, apply_s;
};

struct cmd_compressors
{
    const struct segment *segments;
    size_t n_segments, n;
    const char *model; /* Model that gives the vector its tensors. NULL: one tensor. */
    uint64_t seed;
    const struct compress_info *infos; /* Catalogue of all codecs. */
    size_t n_infos;
    struct cmd_compressors_row *rows;
    size_t n_rows;
    /* The two fields below and the times and `delta` of the rows are valid. */
    bool measured;
    /* Seconds that this machine needs for an axpy and a memcpy of n floats. */
    double axpy_s, memcpy_s;
    uint32_t neighbours;
    double uplink; /* Bandwidth in bits per second. 0: not given. */
};

/* Fills in `bytes` of all rows and, with `measured`, the contraction and the times. Measuring
 * takes about 1 s for each row. Returns 0, or a negative errno with a message in `error`. */
__attribute__((warn_unused_result)) int cmd_compressors_measure(
    struct cmd_compressors *t, char error[CMD_COMPRESSORS_ERROR_MAX]);

/* Seconds of one exchange at t->uplink with and without compression, by the formulas at the top
 * of this file, and the bandwidth in bits per second below which compression pays (0: never). */
double cmd_compressors_with(const struct cmd_compressors *t, const struct cmd_compressors_row *r);
double cmd_compressors_without(const struct cmd_compressors *t);
double cmd_compressors_pays_below(const struct cmd_compressors *t,
                                  const struct cmd_compressors_row *r);

/* Returns true if the canonical spec contains the codec named `codec`. */
bool cmd_compressors_names(const char *spec, const char *codec);

void cmd_compressors_print(const struct cmd_compressors *t);
/* Prints the table as JSON. Returns 0, or -1 if the JSON could not be created or written. */
int cmd_compressors_print_json(const struct cmd_compressors *t);

#endif
