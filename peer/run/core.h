/* peer/run/core.h -- the keys that every run has, whoever trains.
 *
 * For peer/run/run.c, which puts a trainer's keys beside them.
 */
#ifndef PEER_RUN_CORE_H
#define PEER_RUN_CORE_H

#include "peer/run/run.h"

extern const struct run_key run_core_keys[]; /* Ends with name == NULL. */

/* Refuse what one value of the core rules out in another: -EINVAL with a
 * sentence, else 0. */
int run_core_check(const struct run *r, char error[RUN_ERROR_MAX]);

#endif
