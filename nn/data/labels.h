/* nn/data/labels.h -- labels of rows, their spelling in files, and the classes they stand for.
 *
 *   scheme   files have            class             in a kind
 *   PM       -1 and +1             0, 1              pm
 *   ZERO     0..C-1                label             0
 *   ONE      1..C                  label - 1         1
 *   LIST     some of 0..4096       rank of the label in-0-1.5: nn/data/label_set.h
 *   NAMES    C different words     rank of the name  names-HASH: rng_hash() of the sorted names,
 *                                  in byte order     with newlines between, in 16 hex digits
 *
 * A reader records every label in the first pass, settles the scheme, and looks up classes in the
 * second pass:
 *
 *   open:   labels_open(NULL) --note, note, ...--> settle: fixes the scheme from the labels found
 *   fixed:  labels_open(kind) --note: refuses labels that the kind lacks--> settle
 *
 * A whole number may be written +1, 1.0 or 1.000e+00. The labels are all whole numbers or all
 * names, so that one mistyped number does not turn classes into names. A kind has only a hash of
 * its names. So the files must have all of the names, unless the caller provides the list, such as
 * the training set's.
 */
#ifndef NN_DATA_LABELS_H
#define NN_DATA_LABELS_H

#include "nn/data/kind.h"

enum {
    LABELS_NAME_MAX = 128, /* Bytes of a name. */
    LABELS_WHY_MAX = 256   /* Bytes of a partial error message, with the NUL. */
};

struct labels; /* Opaque. */

/* Returns labels, or NULL if there is no memory. A fixed kind fixes the scheme; the scheme is
 * open if k is NULL or an open kind. `names`: the list of names of a kind with LABELS_NAMES, if
 * known, with the kind's hash; otherwise NULL. `words`: the labels of an open kind may be names. */
struct labels *labels_open(const struct kind_rows *k, const struct labels *names, bool words);
void labels_close(struct labels *l);

/* Records one label. Returns 0, -ENOMEM, or -EINVAL with the expected labels, to complete a message
 * "found X, expected ...". */
__attribute__((warn_unused_result)) int labels_note(struct labels *l, const uint8_t *bytes,
                                                    size_t n, char expected[LABELS_WHY_MAX]);

/* Fixes scheme, number of classes and hash in *k, after all labels have been recorded. Returns 0,
 * -ENOMEM, or -EINVAL with a message such as "found one class, expected at least 2". */
__attribute__((warn_unused_result)) int labels_settle(struct labels *l, struct kind_rows *k,
                                                      char why[LABELS_WHY_MAX]);

/* Allows labels that the kind does not have: labels_settle() then finds the union of both. To be
 * called directly after labels_open(). Has an effect only on kinds with the scheme ZERO, ONE or
 * LIST. */
void labels_more(struct labels *l);

/* Converts n classes of the kind `from` to those of the kind `to`, which must have all labels of
 * `from`. Both have the scheme ZERO, ONE or LIST. */
void labels_move(const struct kind_rows *from, const struct kind_rows *to, uint16_t *labels,
                 size_t n);

/* Returns the class of a recorded label. To be called after labels_settle(). */
uint16_t labels_class(const struct labels *l, const uint8_t *bytes, size_t n);

/* Returns all names, sorted, with newlines between: the text that the hash of the names covers. The
 * caller frees the text. NULL: no memory. */
char *labels_join(const struct labels *l);

/* Parses the names of a fixed kind from a text of labels_join(). Returns NULL if the names do not
 * have the kind's hash, or if there is no memory. */
struct labels *labels_split(const struct kind_rows *k, const char *text);

/* Returns the label of a class of a fixed kind, as files spell it: "+1", "7" or a name. `names`:
 * the names of a kind with LABELS_NAMES, otherwise NULL. The text is in `out`, or borrowed from the
 * list. */
const char *labels_text(const struct kind_rows *k, const struct labels *names, uint16_t class,
                        char out[8]);

#endif
