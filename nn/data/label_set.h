/* nn/data/label_set.h -- sets of labels that are whole numbers with gaps, and their text in a kind
 * (the text that describes the data, nn/data/kind.h).
 *
 *   0-1.5        the labels 0, 1 and 5, which are the classes 0, 1 and 2
 *   2.4          the labels 2 and 4, which are the classes 0 and 1
 *
 * A text consists of runs of consecutive labels, separated by points. Runs are ascending and as
 * long as possible, so each set has exactly one text.
 */
#ifndef NN_DATA_LABEL_SET_H
#define NN_DATA_LABEL_SET_H

#include "nn/data/shape.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    /* Size of the longest text of a label set, in bytes with the NUL. */
    LABEL_SET_MAX = 200,
    /* Largest label that a label set may have. The smallest possible label is 0. */
    LABEL_SET_LARGEST = DATA_CLASSES_MAX
};

/* A set of labels. has[v]: label v is in the set. */
struct label_set
{
    bool has[LABEL_SET_LARGEST + 1];
};

/* Parses the text p[0..n) of a label set, which may come from an untrusted peer. Returns the number
 * of labels, or 0 if the text is invalid. */
uint32_t label_set_parse(struct label_set *set, const char *p, size_t n);

/* Writes the text of a set. Returns false if the text is too long or the set is empty. */
bool label_set_print(const struct label_set *set, char text[LABEL_SET_MAX]);

/* Returns the label that stands for a class. `text` must be the valid text of a set. */
uint32_t label_set_label(const char *text, uint32_t class);

#endif
