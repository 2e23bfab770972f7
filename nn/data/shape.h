/* nn/data/shape.h -- the shape of one sample: everything that a model must know about its data.
 *
 *   form     channels x height x width            n_classes
 *   images   as the files say, at most 4 channels
 *   rows     features x 1 x 1
 *   sparse   features x 1 x 1
 *   text     1 x context x 1, one byte each       256: the next byte
 */
#ifndef NN_DATA_SHAPE_H
#define NN_DATA_SHAPE_H

#include <stddef.h>
#include <stdint.h>

/* Larger data are refused, so that products of sizes do not overflow. */
enum {
    DATA_CHANNELS_MAX = 4,
    DATA_SIDE_MAX = 1024, /* Height and width of an IDX image. */
    DATA_CLASSES_MAX = 4096,
    DATA_FEATURES_MAX = 1 << 24,
    DATA_CONTEXT_MAX = 4096
};

enum data_form {
    DATA_IMAGES, /* Bytes, normalised by a table. */
    DATA_ROWS,   /* Dense floats. */
    DATA_SPARSE, /* Rows of (column, value). */
    DATA_TEXT    /* Bytes; each predicts the next. */
};

struct data_shape
{
    enum data_form form;
    uint32_t channels, height, width, n_classes;
};

/* The form's name for a sentence: "images", "sparse rows". */
static inline const char *data_form_name(enum data_form form)
{
    switch (form) {
    case DATA_IMAGES:
        return "images";
    case DATA_ROWS:
        return "rows of numbers";
    case DATA_SPARSE:
        return "sparse rows";
    case DATA_TEXT:
        return "text";
    }
    return NULL;
}

#endif
