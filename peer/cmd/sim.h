/* peer/cmd/sim.h -- state of `hearsay sim`, shared by its files: the simulation (sim.c), detection
 * of a run that never begins (sim_joining.c), and the result (sim_result.c). */
#ifndef PEER_CMD_SIM_H
#define PEER_CMD_SIM_H

#include "peer/cmd/cmd.h"
#include "peer/cmd/files.h"
#include "peer/cmd/out.h"
#include "peer/cmd/progress.h"
#include "peer/cmd/scenario.h"
#include "peer/cmd/sim_notes.h"
#include "peer/cmd/trace_option.h"
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
    bool has_model;             /* True if the model file of the peer has been written. */
};

struct simulation
{
    const struct options *o;
    const char *out;
    uint32_t n, threads;
    /* Training state of each peer. Peer 0 reads the data, which the other peers share. */
    struct cmd_training *peers;
    struct cmd_out dir; /* Output directory of --out, if it was given. */
    struct sim_peer_files *files;
    struct sim_world *world;
    struct scenario *scenario; /* The scenario from the file of --scenario. NULL: none. */
    /* Text in run.txt that identifies the scenario: path of the file and a hash of its contents. */
    char scenario_is[96];
    /* Attack that the Byzantine peers carry out. NULL: no peer is Byzantine. */
    const struct attack *attack;
    bool *liar; /* For each of the n peers: true if it is Byzantine. */
    struct cmd_progress_reading reading;
    struct timespec begin;
    struct cmd_progress progress;
    struct consensus exact; /* Exact consensus distance that was last shown. */
    /* exact_s: time at which `exact` was computed, in seconds since the process began. drift_s:
     * seconds that this computation took. */
    double exact_s, drift_s;
    bool ended; /* True if the progress line for the end of peer 0 has been shown. */
    struct sim_notes notes;
    struct cmd_trace trace;         /* File in which the option --trace writes the trace. */
    struct trace_peer **trace_peer; /* Writers of the peers' events. NULL: there is no trace. */
    /* Number of lines that could not be written to the metrics files of the peers. */
    uint64_t n_lines_lost;
    bool failed;
    /* Times for sim_joining.c, in microseconds of simulated time. look_us: time of the next check
     * whether the run can still begin. gather_us: time since which all live peers have been in the
     * phase joining; -1: a live peer is in another phase. */
    int64_t look_us, gather_us;
    char never_begins[160]; /* Reason why the run will never begin. "": no reason known. */
};

/* Returns the time since the process began, in seconds. */
double cmd_sim_seconds(const struct simulation *s);

/* Returns true if no peer will ever begin the run: all live peers have only been joining for a long
 * time, and no other peer will start. `s->never_begins` is then set to the reason. If other peers
 * have already ended the run, a warning is printed instead. Call this function between two
 * simulation steps. */
bool cmd_sim_never_begins(struct simulation *s);

/* Prints the result of the simulation, and writes it under --out. Returns the exit code. */
int cmd_sim_result(struct simulation *s);

/* Prints the figures of an interrupted simulation, as far as it got. Writes no file, because there
 * are no checkpoints and no final models. Returns CMD_INTERRUPTED. */
int cmd_sim_interrupted(struct simulation *s);

#endif
