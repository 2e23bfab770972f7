/* peer/run/layout_keys.h -- the run keys of a model that a program brings: what its tensors look
 * like, and what they begin with. Peers whose tensors differ are in different runs. */
#ifndef PEER_RUN_LAYOUT_KEYS_H
#define PEER_RUN_LAYOUT_KEYS_H

#include "peer/run/run.h"

enum { LAYOUT_HASH = 17 /* Bytes of 16 hexadecimal digits, with the NUL. */ };

extern const struct run_trainer layout_keys;

struct layout_values
{
    char tensors[LAYOUT_HASH]; /* tensors_layout(). */
    char begin[LAYOUT_HASH];   /* vec_hash() of the initial model. */
    uint64_t trained, floats; /* Its trained parameters, and with running statistics: for observers,
                                * who see models as floats alone. */
};

/* A run's, borrowed from it. Asserts that it is a run with these keys. */
const struct layout_values *layout_values(const struct run *r);

#endif
