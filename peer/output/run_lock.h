/* peer/output/run_lock.h -- run identity: the text in run.txt that says to which run an output
 * directory belongs.
 *
 *   command=local         the command that writes the directory
 *   --peers=8             flags that are not part of the run description but change the result
 *   augment=none          from here on: the run description (peer/run/run.h), one key per line
 *   batch=32
 *   ...
 *
 * Two directories belong to the same run if their texts have the same lines. All functions here are
 * pure: they read no file and no clock.
 */
#ifndef PEER_OUTPUT_RUN_LOCK_H
#define PEER_OUTPUT_RUN_LOCK_H

#include "gossip/wire/wire.h"

#include <stddef.h>

enum {
    /* Largest number of bytes kept of a flag's value. The rest is cut off. */
    RUN_IDENTITY_VALUE_MAX = 1024,
    RUN_IDENTITY_TEXT_MAX = WIRE_RUN_MAX + 8 * 1024,
    /* Size of a text that lists the differences of two runs, in bytes. */
    RUN_IDENTITY_WHY_MAX = 640,
    /* Number of differing keys that a list of differences names. Further keys are only counted. */
    RUN_IDENTITY_KEYS_SHOWN = 6
};

/* A flag of the command line. A NULL value means that the flag was not given, and it gets no line
 * in the identity text. */
struct run_identity_flag
{
    const char *name, *value;
};

/* Writes the identity text: the name of `command`, then `flags`, then `run_text`. The array `flags`
 * ends with an entry whose name is NULL. Bytes of a flag that are not printable ASCII become '?'.
 * Asserts that the text fits into `out`. */
void run_identity_write(char out[RUN_IDENTITY_TEXT_MAX], const char *command,
                        const struct run_identity_flag *flags, const char *run_text);

/* Returns the run description at the end of an identity text, or "" if the text has no run
 * description. The result points into `text`. */
const char *run_identity_run_text(const char *text);

/* Returns the number of keys with different values in the identity texts `there` (the file) and
 * `here` (this run). `why` lists the keys with both values: "lr=0.02 there, 0.05 here; rounds=300
 * there, none here". The file may be damaged, so unprintable bytes become '?'. */
size_t run_identity_differ(const char *there, const char *here, char why[RUN_IDENTITY_WHY_MAX]);

#endif
