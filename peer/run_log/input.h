/* peer/run_log/input.h -- describes how raw data becomes the inputs of a model, as JSON in the
 * metadata of the model file.
 *
 *   form     shape                 other keys
 *   images   channels, height,     "values": [0, 255]; "mean" and "std" of value / 255, one number
 *            width                 per channel
 *   rows     inputs                "divide"; "scale": none, max or standard; "columns": an array
 *                                  with one object per column:
 *                                  {"form": "numbers", "mean", "scale"}: one input,
 *                                                      (value / divide - mean) / scale
 *                                  {"form": "categories", "hashes"}: one input per category
 *                                  {"form": "hashed", "inputs": 256}: the hash selects the input
 *                                  "columns" is null if values are used unchanged, or, with
 *                                  "columns_hash", if the columns are not known
 *   sparse   features              the keys of rows, for numbers only
 *   text     context               none: each input is a byte
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
