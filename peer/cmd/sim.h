/* peer/cmd/sim.h -- state of `hearsay sim`, shared by its files: peers and files (sim.c),
 * detection of a run that never begins (sim_gather.c), and result (sim_result.c). */
#ifndef PEER_CMD_SIM_H
#define PEER_CMD_SIM_H

#include "peer/cmd/cmd.h"
#include "peer/cmd/files.h"
#include "peer/cmd/out.h"
#include "peer/cmd/progress.h"
#include "peer/cmd/scenario.h"
#include "peer/cmd/sim_notes.h"
#include "peer/cmd/training.h"
#include "peer/run_log/lines.h"
#include "peer/sim/attack.h"
#include "peer/sim/world.h"

#include <time.h>

#define CMD_SIM_MODEL "model.safetensors"

struct sim_peer_files
{
    char dir[CMD_PATH_MAX];
    struct run_log_lines lines; /* Writer of metrics.jsonl. */
    bool has_model;             /* The model file of the peer has been written. */
};

struct simulation
{
    const struct options *o;
    const char *out;
    uint32_t n, threads;
    /* Training state of each peer. Peer 0 reads the data, and the other peers share them. */
    struct cmd_training *peers;
    struct cmd_out dir; /* Output directory of --out, if it was given. */
    struct sim_peer_files *files;
    struct sim_world *world;
    struct scenario *scenario; /* The scenario from the file of --scenario. NULL: none. */
    /* Path of the scenario file and a hash of its contents, which identify it in run.txt. */
    char scenario_is[96];
    const struct attack *attack; /* Attack of the Byzantine peers. NULL: none. */
    bool *liar;                  /* Whether each of the n peers is Byzantine. */
    struct cmd_progress_reading reading;
    struct timespec begin;
    struct cmd_progress progress;
    struct consensus exact; /* Exact consensus distance as last shown. */
    /* Time at which `exact` was computed, and how long that took, in seconds. */
    double exact_s, drift_s;
    bool ended; /* The progress line for the end of peer 0 has been shown. */
    struct sim_notes notes;
    uint64_t n_lines_lost; /* Number of lines that could not be written to any metrics file. */
    bool failed;
    /* State of sim_gather.c, in virtual microseconds: time of the next check, and time since
     * which all peers are only joining (-1: not all are). */
    int64_t look_us, gather_us;
    char never_begins[160]; /* Why the run will never begin. "": no reason known. */
};

/* Returns the seconds since the process began. */
double cmd_sim_seconds(const struct simulation *s);

/* Returns true if all live peers have only been joining for a long time and no other peer will
 * come. Then s->never_begins has the reason, or a warning is printed if other peers have already
 * ended the run. Call between two simulation steps. */
bool cmd_sim_never_begins(struct simulation *s);

/* Prints the result of the simulation and writes it under --out. Returns the exit code. */
int cmd_sim_result(struct simulation *s);

/* Prints the figures of an interrupted simulation at its present state. Writes no file, because
 * there are no checkpoints and no final models. Returns CMD_INTERRUPTED. */
int cmd_sim_interrupted(struct simulation *s);

#endif
