/* tests/explore/shrink.h -- reduces a failing plan to a smaller one that still fails. */
#ifndef TESTS_EXPLORE_SHRINK_H
#define TESTS_EXPLORE_SHRINK_H

#include "cluster.h"

/* Drops faults, peers and rounds while the most serious kind of failure of the original run (`was`)
 * remains. Prints the plan that remains. */
void shrink(const struct plan *p, const struct explored *was);

#endif
