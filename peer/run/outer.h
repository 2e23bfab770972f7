/* peer/run/outer.h -- the value of the run key `outer`: "none" or "nesterov:LR:MOMENTUM". */
#ifndef PEER_RUN_OUTER_H
#define PEER_RUN_OUTER_H

#include "peer/run/run.h"

/* Parameters of the outer optimiser (nn/train/outer_optimiser.h). */
struct run_outer
{
    /* Outer learning rate, from 1e-6 to 10. 0: the run has no outer optimiser. */
    double lr;
    double momentum; /* Outer momentum, from 0 to 0.999. */
};

/* Parses a value of the run key `outer`. Returns false if `value` is not valid; `*o` is then
 * undefined. */
bool run_outer_parse(const char *value, struct run_outer *o);
/* Writes the canonical text of an outer optimiser, at most RUN_OUTER_MAX bytes with the NUL. */
void run_outer_text(const struct run_outer *o, char *out);

/* Returns the outer optimiser of a run. */
struct run_outer run_outer_of(const struct run *r);

/* Returns whether --gamma auto must be limited, so that the mixing matrix of training exchanges has
 * no negative eigenvalue (gossip/exchange/gamma.h). Otherwise the outer optimiser could amplify the
 * differences between models (outer.c). */
bool run_outer_limits_gamma(const struct run *r);

/* Returns whether the run has an outer optimiser. */
static inline bool run_has_outer(const struct run *r)
{
    return run_outer_of(r).lr > 0;
}

#endif
