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

#include "peer/cmd/cmd.h"
#include "peer/run/grid.h"

/* What a command tells of itself. Both functions are called in a child process that does nothing else,
 * first check(), then look() with options that differ from those by --seed and --out only. */
struct cmd_sweep_face
{
    /* Says on stderr what is wrong with these options: an exit code. */
    int (*check)(const struct options *o);
    /* Is --out another run's (CMD_USAGE, said on stderr), or has this one finished there? */
    int (*look)(const struct options *o, bool *finished);
    /* Figures in its summary.json; NULL: it has none. */
    const char *accuracy, *drift, *bytes, *seconds;
};

/* Returns the exit code: of all runs, or CMD_INTERRUPTED where some were not done. */
int cmd_sweep(const struct options *o, const struct cmd_sweep_face *face);

#endif
