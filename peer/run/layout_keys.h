/* peer/run/layout_keys.h -- run keys for a model that a program provides through libhearsay. The
 * keys describe the layout and the initial values of the model's tensors, so that peers with
 * different tensors are in different runs. */
#ifndef PEER_RUN_LAYOUT_KEYS_H
#define PEER_RUN_LAYOUT_KEYS_H

#include "peer/run/run.h"

enum { /* Sizes of texts of hexadecimal digits, in bytes with the NUL. */
       LAYOUT_HASH = 17,
       LAYOUT_BEGIN = 33,
       /* The outline of a model has two digits (a short hash) for each tensor, and at most 192
        * digits. */
       LAYOUT_OUTLINE = 193
};

/* Table of the layout keys: the run keys that describe a model that a program provides through
 * libhearsay. Includes the check of their values. */
extern const struct run_trainer layout_keys;

/* Values of the run keys that describe a program's own model. Hashes are texts of hexadecimal
 * digits. */
struct layout_values
{
    /* Hash of the names, shapes, types and roles of all tensors (tensors_layout()). */
    char tensors[LAYOUT_HASH];
    /* Short hash of each tensor (tensors_outline()). A peer with another layout uses these hashes
     * to find the first tensor that differs. "none": the run description had no room for them. */
    char outline[LAYOUT_OUTLINE];
    /* Hash of the initial model (hash_128()). Its first digit is replaced by the rank of the peer
     * that made the model: 0 for a peer with the option "initial", 1 for a peer without
     * "bootstrap", 2 for any other peer. A joining peer checks the model that it has fetched with
     * this hash. The hash is cryptographic, because the sender of the model is not trusted. */
    char begin[LAYOUT_BEGIN];
    /* Number of trained parameters, and number of floats including running statistics. Observers
     * need these numbers, because to them a model is only an array of floats. */
    uint64_t trained, floats;
};

/* Returns the values of the layout keys (description of a program's own model) in the run `r`. The
 * result points into `r`. Asserts that the run uses the trainer `layout_keys`. */
const struct layout_values *layout_values(const struct run *r);

/* Orders two runs that differ only in the initial values of their tensors. Returns < 0 if `begin`
 * of the run `a` sorts first, > 0 if `begin` of the run `b` sorts first. Returns 0 if the runs are
 * equal or differ in other keys. Peers that were started with the same flags may have drawn
 * different initial models. All of them choose the run that comes first in this order. The first
 * digit of `begin` makes the model of a peer with "initial" sort first, and then the model of a
 * peer without "bootstrap". */
int layout_compare_initial(const struct run *a, const struct run *b);

/* Copies the hash of the initial model (`begin`) from the run `from` to the run `to`. */
void layout_copy_initial(struct run *to, const struct run *from);

#endif
