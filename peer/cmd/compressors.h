/* peer/cmd/compressors.h -- inside `hearsay compressors`: its table of figures.
 *
 *   cmd_compressors.c          options, specs, the vector to be compressed
 *   cmd_compressors_measure.c  messages, errors and times
 *   cmd_compressors_print.c    tables and JSON
 *
 * For a vector of n standard normal values, all seconds being those of the
 * whole vector and the fastest of several repeats:
 *
 *   with      encode + neighbours * (decode + bits of the message / uplink)
 *   without            neighbours *           bits of n floats    / uplink
 *
 * decode = validate + apply. Compressing pays where "with" is less, which is
 * below a certain uplink or nowhere.
 */
#ifndef PEER_CMD_COMPRESSORS_H
#define PEER_CMD_COMPRESSORS_H

#include "compress/compress.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CMD_COMPRESSORS_ERROR_MAX = 512 };

/* One compressor. */
struct cmd_compressors_row
{
    char spec[COMPRESS_SPEC_MAX];     /* Canonical. */
    const struct compress_info *info; /* It tells of the codec whose default this is, or is NULL. */
    size_t bytes;                     /* An encoder's first message is so long. */
    double delta;                     /* 1 - |v - C(v)|^2 / |v|^2, mean of some draws. */
    double encode_s, validate_s, apply_s;
};

struct cmd_compressors
{
    const struct segment *segments;
    size_t n_segments, n;
    const char *model; /* NULL: one tensor. */
    uint64_t seed;
    const struct compress_info *infos; /* The catalogue. */
    size_t n_infos;
    struct cmd_compressors_row *rows;
    size_t n_rows;
    bool measured;           /* What follows, and the rows' seconds and delta, are there. */
    double axpy_s, memcpy_s; /* The machine takes so long over n floats. */
    uint32_t neighbours;
    double uplink; /* Bits a second; 0: none was named. */
};

/* Fill in bytes, and with `measured` the rest, of all rows. 0, or a negative
 * errno with a sentence in error. Takes a second or so a row if measured. */
__attribute__((warn_unused_result)) int cmd_compressors_measure(
    struct cmd_compressors *t, char error[CMD_COMPRESSORS_ERROR_MAX]);

/* The formulas above, in seconds at t->uplink, and the uplink in bits a second
 * below which compressing pays: 0 where it never does. */
double cmd_compressors_with(const struct cmd_compressors *t, const struct cmd_compressors_row *r);
double cmd_compressors_without(const struct cmd_compressors *t);
double cmd_compressors_pays_below(const struct cmd_compressors *t,
                                  const struct cmd_compressors_row *r);

/* Does the spec, a canonical one, name this codec? */
bool cmd_compressors_names(const char *spec, const char *codec);

void cmd_compressors_print(const struct cmd_compressors *t);
/* 0, or -1 where JSON could not be made or written. */
int cmd_compressors_print_json(const struct cmd_compressors *t);

#endif
