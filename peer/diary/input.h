/* peer/diary/input.h -- how a model's inputs are made of raw data, as JSON for its file's metadata.
 *
 *   form     shape                 other keys
 *   images   channels, height,     "values": [0, 255]; "mean" and "std" of value / 255, one a channel
 *            width
 *   rows     inputs                "divide", "scale": none, max, standard; "columns", one object a column:
 *                                  {"form": "numbers", "mean", "scale"}: (value / divide - mean) / scale,
 *                                  {"form": "categories", "hashes"}: one input a category,
 *                                  {"form": "hashed", "inputs": 256}: the input that the hash picks;
 *                                  null: numbers as they are, or with "columns_hash" unknown
 *   sparse   features              the same, of numbers only
 *   text     context               bytes are inputs
 *
 * All have "classes": the labels that the outputs stand for, in order; "names" where these are known and
 * other than labels (CIFAR-10); null for a text, whose classes are the 256 bytes. The Python function
 * hearsay.load() applies what stands here (peer/api/python/hearsay/load.py).
 */
#ifndef PEER_DIARY_INPUT_H
#define PEER_DIARY_INPUT_H

#include "nn/data/labels.h"

#include <jansson.h>

/* The inputs of a model for data of a fixed `kind`. `names`: those of the kind's classes, or NULL: then
 * classes that have names are numbered. NULL: no memory, or names that are not UTF-8. */
json_t *diary_input(const char *kind, const struct labels *names);

#endif
