/* peer/run/key.h -- checks one value of a run and converts it to its canonical text.
 *
 * For peer/run/run.c, and for the modules that define tables of run keys: their functions report
 * errors with run_refuse(). */
#ifndef PEER_RUN_KEY_H
#define PEER_RUN_KEY_H

#include "peer/run/run.h"

enum {
    /* Largest number of characters of a found value that a message shows. */
    RUN_QUOTE_MAX = 64
};

/* Checks `value`, which has no control characters, and writes its canonical text to `out`. Returns
 * 0, or -EINVAL with a message. */
int run_canonical_value(const struct run_key *key, const char *value, char out[RUN_VALUE_MAX],
                        char error[RUN_ERROR_MAX]);

/* Copies a found value for a message, because it may be any bytes from another peer: at most
 * RUN_QUOTE_MAX characters, with unprintable bytes as '?'. Returns `out`. */
const char *run_quote(char out[RUN_QUOTE_MAX + 4], const char *found);

/* Writes the message "--name: found '...', expected ...". Returns -EINVAL. */
int run_refuse(char error[RUN_ERROR_MAX], const char *name, const char *found,
               const char *expected);

/* Writes the message "--name: ..." with a `sentence` from the module that defines the value.
 * Unprintable bytes become '?'. Returns -EINVAL. */
int run_refuse_as(char error[RUN_ERROR_MAX], const char *name, const char *sentence);

#endif
