/* nn/data/labels.h -- the labels of table rows: how files spell them, and which class each label
 * stands for. C is the number of classes. A kind is the text that describes the data
 * (nn/data/kind.h).
 *
 *   scheme   files have            class             in a kind
 *   PM       -1 and +1             0, 1              pm
 *   ZERO     0..C-1                label             0
 *   ONE      1..C                  label - 1         1
 *   LIST     some of 0..4096       rank of the label in-SET, such as in-0-1.5 for the labels 0, 1
 *                                                    and 5 (nn/data/label_set.h)
 *   NAMES    C different words     rank of the name  names-HASH: rng_hash() of the sorted names,
 *                                  in byte order     with newlines between, in 16 hex digits
 *
 * A reader records every label in its first pass, then settles the scheme, and looks up classes in
 * its second pass:
 *
 *   open kind:   labels_open(NULL), labels_note() for each label, then labels_settle(), which derives
 *                the scheme from the labels
 *   fixed kind:  labels_open(kind), labels_note() for each label, which refuses a label that the
 *                kind lacks, then labels_settle()
 *
 * A whole number may be written +1, 1.0 or 1.000e+00. The labels are either all whole numbers or
 * all names, so one mistyped number does not turn the numbers into names. A kind has only a hash of
 * its names. The files must therefore have all of the names, unless the caller provides the list,
 * such as the training set's.
 */
#ifndef NN_DATA_LABELS_H
#define NN_DATA_LABELS_H

#include "nn/data/kind.h"

enum {
    LABELS_NAME_MAX = 128, /* Length of the longest name of a class, in bytes. */
    LABELS_WHY_MAX = 256   /* Size of a partial error message in bytes, with the NUL. */
};

struct labels; /* The labels that were recorded for one set of rows. Opaque. */

/* Returns an object without recorded labels, or NULL if memory is short. If `k` is a fixed kind of
 * data (nn/data/kind.h), it determines the scheme. If `k` is NULL or an open kind (such as "csv"),
 * the labels determine the scheme. `names`: for a kind with LABELS_NAMES, the list of names, whose
 * hash must be the one in the kind; NULL if the list is not known. `words`: true if the labels of
 * an open kind may be names. */
struct labels *labels_open(const struct kind_rows *k, const struct labels *names, bool words);
void labels_close(struct labels *l);

/* Records one label. Returns 0, -ENOMEM, or -EINVAL. After -EINVAL, `expected` is the end of an
 * error message "found X, expected ...". */
__attribute__((warn_unused_result)) int labels_note(struct labels *l, const uint8_t *bytes,
                                                    size_t n, char expected[LABELS_WHY_MAX]);

/* Sets the scheme of the labels (numbers from 0, names, ...), the number of classes and the hash of
 * the labels' names in *k. Call it after all labels have been recorded. Returns 0, -ENOMEM, or
 * -EINVAL with a message such as "found one class, expected at least 2". */
__attribute__((warn_unused_result)) int labels_settle(struct labels *l, struct kind_rows *k,
                                                      char why[LABELS_WHY_MAX]);

/* Allows labels that the kind of the data does not have. labels_settle() then gives the union of
 * the kind's labels and the recorded ones. Call it directly after labels_open(). Has an effect only
 * on labels that are numbers (scheme ZERO, ONE or LIST). */
void labels_more(struct labels *l);

/* Converts n classes of data of the kind `from` (nn/data/kind.h) to classes of the kind `to`, which
 * must have all labels of `from`. Both kinds have the scheme ZERO, ONE or LIST. */
void labels_move(const struct kind_rows *from, const struct kind_rows *to, uint16_t *labels,
                 size_t n);

/* Returns the class of a recorded label. Call it after labels_settle(). */
uint16_t labels_class(const struct labels *l, const uint8_t *bytes, size_t n);

/* Returns all names as one text: sorted, with newlines between them. The hash of the names is the
 * hash of this text. The caller frees it. NULL: no memory. */
char *labels_join(const struct labels *l);

/* Parses a text that labels_join() has written, with the names of a fixed kind. Returns NULL if the
 * names do not have the kind's hash, or if memory is short. */
struct labels *labels_split(const struct kind_rows *k, const char *text);

/* Returns the label of a class of data of a fixed kind (nn/data/kind.h), as files spell it: "+1",
 * "7" or a name. `names`: the names of a kind with LABELS_NAMES, otherwise NULL. The text is in
 * `out` or borrowed from `names`. */
const char *labels_text(const struct kind_rows *k, const struct labels *names, uint16_t class,
                        char out[8]);

#endif
