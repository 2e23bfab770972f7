/* peer/run/key.h -- checks the value of one run key and converts it to its canonical text.
 *
 * These functions are for peer/run/run.c, and for the modules that define tables of run keys. Such
 * a module reports errors with run_refuse(). */
#ifndef PEER_RUN_KEY_H
#define PEER_RUN_KEY_H

#include "peer/run/run.h"

enum {
    /* Largest number of characters of a refused value that an error message shows. */
    RUN_QUOTE_MAX = 64
};

/* Checks a value for the key `key` and writes its canonical text to `out`. The caller has checked
 * that `value` has no control characters. Returns 0, or -EINVAL with a message. */
int run_canonical_value(const struct run_key *key, const char *value, char out[RUN_VALUE_MAX],
                        char error[RUN_ERROR_MAX]);

/* Copies a refused value into `out`, for an error message. The value may be any bytes from another
 * peer, so at most RUN_QUOTE_MAX characters are copied, and unprintable bytes become '?'. Returns
 * `out`. */
const char *run_quote(char out[RUN_QUOTE_MAX + 4], const char *found);

/* Writes the message "--name: found '...', expected ...". Returns -EINVAL. */
int run_refuse(char error[RUN_ERROR_MAX], const char *name, const char *found,
               const char *expected);

/* Writes the error message "--name: sentence". `sentence`: explanation that the module of this
 * value has written; unprintable bytes in it become '?'. Returns -EINVAL. */
int run_refuse_as(char error[RUN_ERROR_MAX], const char *name, const char *sentence);

#endif
