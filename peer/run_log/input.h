/* peer/run_log/input.h -- describes how raw data becomes the inputs of a model, as JSON in the
 * metadata of the model file.
 *
 * The key "form" names the form of the data. Each form has a "shape" and keys of its own:
 *
 *   images: shape [channels, height, width]. "values": [0, 255]. "mean" and "std" of value / 255
 *     have one number per channel.
 *   rows: shape [inputs]. "divide". "scale": none, max or standard. "columns": an array with one
 *     object per column:
 *       {"form": "numbers", "mean", "scale"}: one input, (value / divide - mean) / scale
 *       {"form": "categories", "hashes"}: one input per category
 *       {"form": "hashed", "inputs": 256}: the hash selects the input
 *     "columns" is null if values are used unchanged. With "columns_hash" it is null if the columns
 *     are not known.
 *   sparse: shape [features]. The keys of rows, for numbers only.
 *   text: shape [context]. No other keys: each input is a byte.
 *
 * All forms have "classes": the labels of the outputs, in order. For text "classes" is null: the
 * classes are the 256 bytes. CIFAR-10 also has "names": the names of its labels. The Python
 * function hearsay.load() applies this description (peer/api/python/hearsay/load.py).
 */
#ifndef PEER_RUN_LOG_INPUT_H
#define PEER_RUN_LOG_INPUT_H

#include "nn/data/labels.h"

#include <jansson.h>

/* Returns the description of the inputs for data of the kind `kind`, which must be fixed: it
 * determines the shape of the samples and the number of classes. `names`: names of the kind's
 * classes; NULL: not known, and classes that have names get numbers instead. Returns NULL if memory
 * is short or a name is not UTF-8. The caller releases the result with json_decref(). */
json_t *diary_input(const char *kind, const struct labels *names);

#endif
