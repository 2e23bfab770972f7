/* compress/types.h -- types and limits shared by the public interface and the modules of compress/.
 *
 * compress.h includes this file, and so do the parser, the units and the codecs. They can therefore
 * share types without including the public interface, which is built on top of them.
 */
#ifndef COMPRESS_TYPES_H
#define COMPRESS_TYPES_H

enum {
    /* Size of a canonical specification in bytes, including the final NUL. */
    COMPRESS_SPEC_MAX = 256,
    COMPRESS_ERROR_MAX = 256 /* Size of an error sentence in bytes, including the final NUL. */
};

/* Error of one message, measured by the encoder in double precision. */
struct compress_stat
{
    double x2; /* Squared norm of the difference before compression: |x - x_hat|^2. */
    double e2; /* Squared norm of the compression error: |v - C(v)|^2 with v = x - x_hat. */
};

#endif
