/* nn/data/label_set.h -- sets of labels that are whole numbers with gaps, as a kind lists them.
 *
 *   0-1.5        the labels 0, 1 and 5, which are the classes 0, 1 and 2
 *   2.4          2 and 4
 *
 * Runs are ascending, as long as possible, and parted by points. A set has one text.
 */
#ifndef NN_DATA_LABEL_SET_H
#define NN_DATA_LABEL_SET_H

#include "nn/data/shape.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    LABEL_SET_MAX = 200,                 /* Bytes of a text, with the NUL. */
    LABEL_SET_LARGEST = DATA_CLASSES_MAX /* Label; the least is 0. */
};

/* Which labels are in it: has[0..LABEL_SET_LARGEST]. */
struct label_set
{
    bool has[LABEL_SET_LARGEST + 1];
};

/* Read the text p[0..n), a stranger's, into *set. Returns how many labels it has; 0 where it is none. */
uint32_t label_set_parse(struct label_set *set, const char *p, size_t n);

/* Write the text of a set. False where it has no room. */
bool label_set_print(const struct label_set *set, char text[LABEL_SET_MAX]);

/* The label of class `class` of a text that is right. */
uint32_t label_set_label(const char *text, uint32_t class);

#endif
