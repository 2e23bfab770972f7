/* peer/cmd/batch.h -- runs of one command, each a process of its own: checked first, then done, some
 * at a time.
 *
 *   flags --fork--> parsed, check(), look()     all of them, before the first run: refused as a whole
 *         '--fork, exec--> this very program     run by run, at most `jobs` at a time
 *
 * --sweep (peer/cmd/sweep.h) and `hearsay compare` are made of it. Ctrl-C, SIGTERM and SIGHUP go on to
 * the runs, and none begins after them. A run that is killed with us ends, too, and is waited for by
 * who comes next.
 */
#ifndef PEER_CMD_BATCH_H
#define PEER_CMD_BATCH_H

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

struct cmd_batch_run
{
    uint32_t group;  /* Runs of one differ by --seed and --out only. */
    const char *log; /* Its stderr goes there, anew; NULL: to ours. */
    const char *dir; /* Its --out. */
    bool finished;   /* cmd_batch_check(): it has, in its directory. */
};

struct cmd_batch
{
    const struct options *o;       /* Who speaks. */
    const struct command *command; /* The runs'. */
    const struct cmd_sweep_face *face;
    struct cmd_batch_run *run;
    uint32_t n, jobs;
    void *self;
    /* The flags of run i: sink->flag() for each, --seed and --out among them. */
    void (*flags)(void *self, uint32_t i, const struct grid_sink *sink);
    /* What a sentence that refuses run i begins with; "": nothing. */
    void (*name)(void *self, uint32_t i, char *out, size_t cap);
    void (*begins)(void *self, uint32_t i); /* NULL: nobody asks. */
    void (*ended)(void *self, uint32_t i,
                  int code); /* 128 + a signal's number where one ended it. */
    char program[4096];
};

/* Catch signals, find this very program, and forget HEARSAY_*, which we have read and the runs would
 * read again. An exit code. */
int cmd_batch_open(struct cmd_batch *b);

/* Check all runs. CMD_OK; CMD_INTERRUPTED; or the exit code of what was refused, which is said. */
int cmd_batch_check(struct cmd_batch *b);

/* Do those that are not finished, in their order. A run that ends with CMD_INTERRUPTED, perhaps by
 * somebody who knows only that one, ends the batch. */
void cmd_batch_do(struct cmd_batch *b);

/* Was the end asked for? */
bool cmd_batch_asked(void);

#endif
