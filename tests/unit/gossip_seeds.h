/* tests/unit/gossip_seeds.h -- runs a random check for many seeds. The seed that fails is printed,
 * and SEED=N replays it. */
#ifndef TESTS_UNIT_GOSSIP_SEEDS_H
#define TESTS_UNIT_GOSSIP_SEEDS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t running_seed; /* Seed of the running check. 0: none runs. */

/* Runs the check for seeds 1 to n, or for $SEED alone. */
static inline void for_seeds(void (*check)(uint64_t seed), uint64_t n)
{
    const char *given = getenv("SEED");
    uint64_t first = given != NULL ? strtoull(given, NULL, 10) : 1;
    for (uint64_t seed = first; seed < first + (given != NULL ? 1 : n); seed++) {
        running_seed = seed;
        check(seed);
    }
    running_seed = 0;
}

/* Teardown of a test that calls for_seeds(). */
static inline int print_seed(void **state)
{
    (void)state;
    if (running_seed != 0)
        print_error("failed with SEED=%llu\n", (unsigned long long)running_seed);
    running_seed = 0;
    return 0;
}

#endif
