/* tests/explore/shrink.h -- cuts a failing plan down to what still fails. */
#ifndef TESTS_EXPLORE_SHRINK_H
#define TESTS_EXPLORE_SHRINK_H

#include "cluster.h"

/* Drops faults, peers and rounds as long as the failure of the gravest kind of `was` is left; prints
 * the plan that remains. */
void shrink(const struct plan *p, const struct explored *was);

#endif
