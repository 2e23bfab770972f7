/* peer/cmd/sim.h -- `hearsay sim`: its peers and files (sim.c), whether they only gather (sim_gather.c),
 * and what came of them (sim_result.c). */
#ifndef PEER_CMD_SIM_H
#define PEER_CMD_SIM_H

#include "peer/cmd/cmd.h"
#include "peer/cmd/files.h"
#include "peer/cmd/out.h"
#include "peer/cmd/progress.h"
#include "peer/cmd/scenario.h"
#include "peer/cmd/sim_notes.h"
#include "peer/cmd/training.h"
#include "peer/diary/lines.h"
#include "peer/sim/attack.h"
#include "peer/sim/world.h"

#include <time.h>

#define CMD_SIM_MODEL "model.safetensors"

struct sim_peer_files
{
    char dir[CMD_PATH_MAX];
    struct diary_lines lines; /* metrics.jsonl. */
    bool has_model;           /* It is written. */
};

struct simulation
{
    const struct options *o;
    const char *out;
    uint32_t n, threads;
    struct cmd_training *peers; /* The first reads the data, the others share them. */
    struct cmd_out dir;         /* What --out names, if it was given. */
    struct sim_peer_files *files;
    struct sim_world *world;
    struct scenario *scenario;   /* NULL: there is none. */
    char scenario_is[96];        /* Its file's name and a hash of its text. */
    const struct attack *attack; /* NULL: nobody lies. */
    bool *liar;                  /* Each of the n: does it? */
    struct cmd_progress_reading reading;
    struct timespec begin;
    struct cmd_progress progress;
    struct consensus exact;  /* As progress last showed it, */
    double exact_s, drift_s; /* at this time, and so long it took to find out. */
    bool ended;              /* Peer 0's end has been shown. */
    struct sim_notes notes;
    uint64_t n_lines_lost; /* So many are in no metrics. */
    bool failed;
    int64_t look_us, gather_us; /* sim_gather.c: the next look; all gather since then, or -1. */
    char in_vain[160];          /* Why the run never begins; "": it is not known not to. */
};

/* Seconds since the process began. */
double cmd_sim_seconds(const struct simulation *s);

/* Does everybody only gather, for long, with nobody to come? Then s->in_vain says it,
 * or a warning where others have ended the run. To be asked between
 * two steps. */
bool cmd_sim_in_vain(struct simulation *s);

/* What came of it is said, and kept under --out. Returns the exit code. */
int cmd_sim_result(struct simulation *s);

/* The same of a simulation that was interrupted: figures of where it stood, and no file, since there
 * are neither checkpoints nor models of an end. Returns CMD_INTERRUPTED. */
int cmd_sim_interrupted(struct simulation *s);

#endif
