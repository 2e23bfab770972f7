/* peer/store/owner.h -- whose a directory is: a text of key=value lines.
 *
 *   command=local         which command's files these are,
 *   --peers=8             and flags that are no key of the run, but make another result
 *   augment=none
 *   batch=32              the run's canonical text (peer/run/run.h)
 *   ...
 *
 * Two texts are of one run where they have the same lines. Pure.
 */
#ifndef PEER_STORE_OWNER_H
#define PEER_STORE_OWNER_H

#include "gossip/wire/wire.h"

#include <stddef.h>

enum {
    OWNER_VALUE_MAX = 1024, /* Bytes of a flag's value that are kept. */
    OWNER_TEXT_MAX = WIRE_RUN_MAX + 8 * 1024,
    OWNER_WHY_MAX = 640, /* Bytes of a list of differences. */
    OWNER_NAMED = 6      /* A list names so many keys, and counts the others. */
};

/* A flag of the command. NULL as its value: it was not given, and has no line. */
struct owner_flag
{
    const char *name, *value;
};

/* Write the text of `command`, its flags (up to the one without a name) and the run's text.
 * What would break a line becomes '?'. Asserts that all fits. */
void owner_write(char out[OWNER_TEXT_MAX], const char *command, const struct owner_flag *flags,
                 const char *run_text);

/* The run's own text at the end of an owner's; "" where there is none. Borrowed. */
const char *owner_run(const char *text);

/* How many keys differ? `why` gets them, with both values: "lr=0.02 there, 0.05 here; rounds=300
 * there, none here". Whatever `there` holds (it is read from a file), what is written is
 * printable. */
size_t owner_differ(const char *there, const char *here, char why[OWNER_WHY_MAX]);

#endif
