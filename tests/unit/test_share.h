/* tests/unit/test_share.h -- which part of its cases a slow test runs.
 *
 * A release build runs all cases. A build with sanitizers takes about ten times as long, and runs
 * one of SANITIZED_SHARE cases. The environment variable TEST_SHARE=N selects one of N cases in
 * any build: tests/run sets it to 3, and TEST_SHARE=1 runs all cases. SEED=N replays one seed, so
 * it also selects all cases. */
#ifndef TESTS_UNIT_TEST_SHARE_H
#define TESTS_UNIT_TEST_SHARE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* The share is a prime number. In nested loops over 3 codecs or 5 orders, the cases that run
 * therefore include different codecs and orders. */
enum { SANITIZED_SHARE = 19 };

static inline uint64_t test_share(void)
{
    const char *given = getenv("TEST_SHARE");
    uint64_t share = given != NULL ? strtoull(given, NULL, 10) : 0;
    if (getenv("SEED") != NULL)
        return 1;
#ifdef HEARSAY_SANITIZED
    return share > 0 ? share : SANITIZED_SHARE;
#else
    return share > 0 ? share : 1;
#endif
}

/* Returns whether case `i`, counted from 0, runs. Case 0 always runs. */
static inline bool test_share_has(uint64_t i)
{
    return i % test_share() == 0;
}

/* Returns how many of n seeds run: n / share, rounded up. */
static inline uint64_t test_share_of(uint64_t n)
{
    return (n + test_share() - 1) / test_share();
}

#endif
