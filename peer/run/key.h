/* peer/run/key.h -- one value of a run: checked, and spelt in one way.
 *
 * For peer/run/run.c, and for those that bring a table of keys: the sentences in
 * which their functions refuse.
 */
#ifndef PEER_RUN_KEY_H
#define PEER_RUN_KEY_H

#include "peer/run/run.h"

enum {
    RUN_QUOTE_MAX = 64 /* Characters of a found value that a sentence shows. */
};

/* Write the canonical text of a value without control characters. 0, or
 * -EINVAL with a sentence. */
int run_canonical_value(const struct run_key *key, const char *value, char out[RUN_VALUE_MAX],
                        char error[RUN_ERROR_MAX]);

/* What was found, fit to print: it may be a stranger's bytes. */
const char *run_quote(char out[RUN_QUOTE_MAX + 4], const char *found);

/* The sentence "--name: found '...', expected ...". Returns -EINVAL. */
int run_refuse(char error[RUN_ERROR_MAX], const char *name, const char *found,
               const char *expected);

/* The sentence "--name: ..." of the folder that knows what the value means, fit to
 * print. Returns -EINVAL. */
int run_refuse_as(char error[RUN_ERROR_MAX], const char *name, const char *sentence);

#endif
