/* compress/types.h -- what the door of compress/ and the modules behind it both name.
 *
 * The door (compress.h) is built on the parser, the units and the codecs; they
 * need its types and not it. So these stand apart, below both, and no module of
 * compress/ includes the door.
 */
#ifndef COMPRESS_TYPES_H
#define COMPRESS_TYPES_H

enum {
    COMPRESS_SPEC_MAX = 256, /* Bytes of a canonical spec, with the NUL. */
    COMPRESS_ERROR_MAX = 256 /* Bytes of an error sentence, with the NUL. */
};

/* What an encoder measured, in double, over the whole of what it encoded. */
struct compress_stat
{
    double x2; /* |x - x_hat|^2 before. */
    double e2; /* |x - x_hat - C(x - x_hat)|^2: what the message leaves. */
};

#endif
