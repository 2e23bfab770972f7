/* peer/run/layout_keys.h -- the run keys of a model that a program brings: what its tensors look
 * like, and what they begin with. Peers whose tensors differ are in different runs. */
#ifndef PEER_RUN_LAYOUT_KEYS_H
#define PEER_RUN_LAYOUT_KEYS_H

#include "peer/run/run.h"

enum { /* Bytes of 16 and 32 hexadecimal digits, with the NUL. */
       LAYOUT_HASH = 17,
       LAYOUT_BEGIN = 33,
       LAYOUT_OUTLINE = 193 /* At most 192 of them, two a tensor. */
};

extern const struct run_trainer layout_keys;

struct layout_values
{
    char tensors[LAYOUT_HASH]; /* tensors_layout(). */
    /* tensors_outline(), by which the first that differs is found. "none": the run had no room. */
    char outline[LAYOUT_OUTLINE];
    /* hash_128() of the initial model, but for its first digit: that is 0 of a peer that looks for
     * nobody (no --bootstrap), else 1. Who fetches the model trusts nobody's bytes, and a hash that
     * finds accidents would not do. */
    char begin[LAYOUT_BEGIN];
    uint64_t trained, floats; /* Its trained parameters, and with running statistics: for observers,
                                * who see models as floats alone. */
};

/* A run's, borrowed from it. Asserts that it is a run with these keys. */
const struct layout_values *layout_values(const struct run *r);

/* Where two runs with these keys differ in what the tensors begin with, and in nothing else: below 0
 * if a's `begin` comes first, above 0 if b's does. Else 0. Peers that were started alike, and have drawn
 * different models, agree on the first: that of the one whom the others look for, if there is one. */
int layout_order(const struct run *a, const struct run *b);

/* Let *to begin with what *from begins with. */
void layout_begin_alike(struct run *to, const struct run *from);

#endif
