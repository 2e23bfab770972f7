/* peer/cmd/compressors.h -- declarations shared by the files of `hearsay compressors`, which prints
 * a table of codecs and measures them.
 *
 *   compressors.c          options, specs, the vector to compress
 *   compressors_measure.c  messages, errors and times
 *   compressors_print.c    tables and JSON
 *
 * The codecs compress a vector of n random values with standard normal distribution. All times are
 * in seconds for the whole vector, and are the fastest of several repetitions. The time of one
 * exchange is:
 *
 *   with compression      encode + neighbours * (decode + bits of the message / uplink)
 *   without compression            neighbours *           bits of n floats    / uplink
 *
 * Here decode = validate + apply. Compression pays if it makes an exchange faster. For each codec
 * there is a bandwidth of the uplink below which it pays, or it never pays.
 */
#ifndef PEER_CMD_COMPRESSORS_H
#define PEER_CMD_COMPRESSORS_H

#include "compress/compress.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CMD_COMPRESSORS_ERROR_MAX = 512 };

/* One row of the printed table: a codec and its measured values. */
struct cmd_compressors_row
{
    char spec[COMPRESS_SPEC_MAX]; /* Name of the codec with its parameters, in canonical form. */
    /* Entry of the codec in the catalogue. NULL: the spec has parameters other than the defaults,
     * or combines several codecs. */
    const struct compress_info *info;
    size_t bytes; /* Length of the first message that the encoder produces, in bytes. */
    /* Contraction 1 - |v - C(v)|^2 / |v|^2, where C(v) is the decoded message of v. Mean over
     * several random vectors. */
    double delta;
    double encode_s, validate_s, apply_s;
};

struct cmd_compressors
{
    const struct segment *segments;
    size_t n_segments, n;
    /* Name of the model that divides the vector into tensors. NULL: the vector is one tensor. */
    const char *model;
    uint64_t seed;
    const struct compress_info *infos; /* Catalogue of all codecs, n_infos entries. */
    size_t n_infos;
    struct cmd_compressors_row *rows;
    size_t n_rows;
    /* True if the codecs were measured. axpy_s and memcpy_s below, and `delta` and the times of the
     * rows, are then valid. */
    bool measured;
    /* Seconds that this machine needs for an axpy (y += a x) and for a memcpy of n floats. */
    double axpy_s, memcpy_s;
    uint32_t neighbours;
    double uplink; /* Bandwidth of the uplink in bits per second. 0: not given. */
};

/* Sets the message length `bytes` in each row of the table. If t->measured, also measures the
 * contraction and the times, which takes about 1 s per row. Returns 0, or a negative errno with a
 * message in `error`. */
__attribute__((warn_unused_result)) int cmd_compressors_measure(
    struct cmd_compressors *t, char error[CMD_COMPRESSORS_ERROR_MAX]);

/* All three functions use the formulas in the head of this file. cmd_compressors_with() and
 * cmd_compressors_without() return the seconds of one exchange at bandwidth t->uplink, with and
 * without compression. cmd_compressors_pays_below() returns the bandwidth in bits per second below
 * which compression pays; 0: it never pays. */
double cmd_compressors_with(const struct cmd_compressors *t, const struct cmd_compressors_row *r);
double cmd_compressors_without(const struct cmd_compressors *t);
double cmd_compressors_pays_below(const struct cmd_compressors *t,
                                  const struct cmd_compressors_row *r);

/* Returns true if the codec `codec` occurs in the canonical spec, which may combine several
 * codecs. */
bool cmd_compressors_names(const char *spec, const char *codec);

void cmd_compressors_print(const struct cmd_compressors *t);
/* Prints the table of codecs as JSON. Returns 0, or -1 if the JSON could not be built or
 * written. */
int cmd_compressors_print_json(const struct cmd_compressors *t);

#endif
