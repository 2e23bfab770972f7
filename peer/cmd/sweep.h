/* peer/cmd/sweep.h -- --sweep and --seeds: runs of one command, one after the other.
 *
 *   hearsay local --sweep lr=0.01,0.1 --seeds 2 --out OUT
 *       hearsay local --lr=0.01 --seed=1 --out=OUT/lr=0.01/seed-1      each a process of its own,
 *       hearsay local --lr=0.1  --seed=1 --out=OUT/lr=0.1/seed-1       so that it is what it would be alone
 *       hearsay local --lr=0.01 --seed=2 --out=OUT/lr=0.01/seed-2
 *       ...
 *
 * Before the first one begins, all are checked: values, contradictions, whose their directories are. A
 * run that has finished says so by itself (peer/cmd/out.h) and is not begun again, and one that was
 * interrupted goes on. The command has GRID_ROWS (peer/run/grid.h).
 */
#ifndef PEER_CMD_SWEEP_H
#define PEER_CMD_SWEEP_H

#include "peer/cmd/batch.h"
#include "peer/run/grid.h"

/* Returns the exit code: of all runs, or CMD_INTERRUPTED where some were not done. */
int cmd_sweep(const struct options *o, const struct cmd_sweep_face *face);

#endif
