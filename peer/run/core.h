/* peer/run/core.h -- run keys that every run has, whatever trainer it uses. peer/run/run.c combines
 * these keys with the trainer's keys. */
#ifndef PEER_RUN_CORE_H
#define PEER_RUN_CORE_H

#include "peer/run/run.h"

/* Table of the core keys, terminated by name == NULL. */
extern const struct run_key run_core_keys[];

/* Checks the core keys of a run for combinations of values that are not allowed. Returns 0, or
 * -EINVAL with a message. */
int run_core_check(const struct run *r, char error[RUN_ERROR_MAX]);

#endif
