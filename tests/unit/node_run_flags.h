/* tests/unit/node_run_flags.h -- makes runs from flags, for the tests of peer/run/run.h. */
#ifndef TESTS_UNIT_NODE_RUN_FLAGS_H
#define TESTS_UNIT_NODE_RUN_FLAGS_H

#include "compress/compress.h"
#include "gossip/mixers/mixer.h"
#include "peer/run/run.h"
#include "peer/sgd/sgd_keys.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char error[RUN_ERROR_MAX];

static inline void set(struct run_flags *f, const char *name, const char *value)
{
    if (run_flags_set(f, name, value, error) != 0)
        fail_msg("%s=%s: %s", name, value, error);
}

static inline struct run make(const struct run_flags *f)
{
    struct run r;
    if (run_from_flags(&r, f, error) != 0)
        fail_msg("%s", error);
    return r;
}

/* Returns the values of the SGD trainer's keys in the run that these flags make. */
static inline struct sgd_values made(const struct run_flags *f)
{
    struct run r = make(f);
    return *sgd_values(&r);
}

static inline struct run_flags plain_flags(void)
{
    struct run_flags f = {.trainer = &sgd_keys};
    set(&f, "rounds", "500");
    return f;
}

/* Returns the canonical spelling of a codec. */
static inline const char *codec(const char *spec)
{
    static char canonical[COMPRESS_SPEC_MAX];
    char why[COMPRESS_ERROR_MAX];
    if (compress_canonical(spec, canonical, why) != 0)
        fail_msg("%s", why);
    return canonical;
}

#endif
