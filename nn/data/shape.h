/* nn/data/shape.h -- the shape of one sample: everything that a model must know about its data.
 * Most of it is in the kind, the text that describes the data (nn/data/kind.h).
 *
 *   form     channels x height x width              n_classes
 *   images   from the kind, at most 4 channels      from the kind
 *   rows     number of features x 1 x 1             from the kind
 *   sparse   number of features x 1 x 1             from the kind
 *   text     1 x context x 1, one byte each         256: the value of the next byte
 */
#ifndef NN_DATA_SHAPE_H
#define NN_DATA_SHAPE_H

#include <stddef.h>
#include <stdint.h>

/* Limits of a shape. Larger data are refused, so that products of these numbers do not overflow. */
enum {
    DATA_CHANNELS_MAX = 4,
    DATA_SIDE_MAX = 1024, /* Largest height and width of an IDX image. */
    DATA_CLASSES_MAX = 4096,
    DATA_FEATURES_MAX = 1 << 24,
    DATA_CONTEXT_MAX = 4096
};

enum data_form {
    DATA_IMAGES, /* Images: pixels stored as bytes. Normalised by a table when they are used. */
    DATA_ROWS,   /* Rows of floats, of which every entry is stored. */
    /* Sparse rows: of each row, only the entries that are not zero are stored, as (column,
     * value). */
    DATA_SPARSE,
    DATA_TEXT /* Text: bytes. The model predicts each next byte. */
};

struct data_shape
{
    enum data_form form;
    uint32_t channels, height, width, n_classes;
};

/* Returns the name of a form for messages: "images", "sparse rows". */
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
