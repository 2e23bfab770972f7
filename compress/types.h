/* compress/types.h -- types and limits that the public interface and the modules of compress/
 * share.
 *
 * compress.h includes this file, and so do the parser, the units and the codecs. They share these
 * types without including compress.h, which is built on top of them.
 */
#ifndef COMPRESS_TYPES_H
#define COMPRESS_TYPES_H

enum {
    /* Size of a buffer for a canonical specification in bytes, including the final NUL. */
    COMPRESS_SPEC_MAX = 256,
    /* Size of a buffer for an error sentence in bytes, including the final NUL. */
    COMPRESS_ERROR_MAX = 256
};

/* Error of one message, measured by the encoder in double precision. */
struct compress_stat
{
    double x2; /* Squared norm of the difference v = x - x_hat before compression, |v|^2. */
    /* Squared norm of the compression error, |v - C(v)|^2, with C(v) as the receiver decodes it. */
    double e2;
};

#endif
