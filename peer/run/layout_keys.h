/* peer/run/layout_keys.h -- run keys of a model that a program provides through libhearsay: layout
 * and initial values of its tensors. Peers with different tensors are in different runs. */
#ifndef PEER_RUN_LAYOUT_KEYS_H
#define PEER_RUN_LAYOUT_KEYS_H

#include "peer/run/run.h"

enum { /* Sizes of texts of hexadecimal digits, in bytes with the NUL. */
       LAYOUT_HASH = 17,
       LAYOUT_BEGIN = 33,
       /* Up to 192 digits, two per tensor. */
       LAYOUT_OUTLINE = 193
};

/* Key table and check for models that a program provides. */
extern const struct run_trainer layout_keys;

/* Values of the keys. Hashes are texts of hexadecimal digits. */
struct layout_values
{
    /* Hash of names, shapes, types and roles of all tensors: tensors_layout(). */
    char tensors[LAYOUT_HASH];
    /* Short hash of each tensor, used to find the first tensor that differs: tensors_outline().
     * "none": the run description had no room for it. */
    char outline[LAYOUT_OUTLINE];
    /* hash_128() of the initial model, except for the first digit: 0 if the peer has no
     * --bootstrap, else 1. A joining peer checks a fetched model with this hash. The hash is
     * cryptographic, because the sender is not trusted. */
    char begin[LAYOUT_BEGIN];
    /* Number of trained parameters, and number including running statistics. For observers, which
     * see a model as an array of floats. */
    uint64_t trained, floats;
};

/* Returns the layout values of a run. The result points into `r`. Asserts that `r` has these
 * keys. */
const struct layout_values *layout_values(const struct run *r);

/* Orders two runs that differ in the initial values of their tensors and in nothing else: < 0 if
 * the `begin` of `a` comes first, > 0 if the `begin` of `b` comes first. Returns 0 if the runs are
 * equal or differ in other keys. Peers that were started with the same flags but drew different
 * initial models agree on the first one in this order. A peer without --bootstrap comes before the
 * peers that contact it. */
int layout_compare_initial(const struct run *a, const struct run *b);

/* Copies the hash of the initial model from `from` to `to`. */
void layout_copy_initial(struct run *to, const struct run *from);

#endif
