/* peer/cmd/sim.c -- `hearsay sim`: runs all peers in one process over a simulated network.
 *
 * Time is simulated. The printed consensus distance is exact: it is computed from the models
 * themselves. With --out the command writes the files that `hearsay local` would write:
 * DIR/peer-0/metrics.jsonl, DIR/peer-0/model.safetensors, and so on. A synchronous run without
 * faults gives the same models as `hearsay local`, bit for bit.
 *
 * --json prints one object to stdout at the end. It has the keys of the object of `hearsay local`,
 * and also "simulated_s" (simulated time) and "events". Byte counts are the numbers of bytes that
 * encrypted sessions would have sent over their sockets.
 */
#include "peer/cmd/sim.h"
#include "peer/uv/settings.h"

#include "nn/files/file.h"
#include "nn/math/rng.h"
#include "peer/cmd/files.h"
#include "peer/cmd/log.h"
#include "peer/cmd/out.h"
#include "peer/cmd/peers.h"
#include "peer/cmd/skew_advice.h"
#include "peer/cmd/stop.h"
#include "peer/cmd/training.h"
#include "peer/output/disk_reservation.h"
#include "peer/run_log/model.h"
#include "peer/sgd/sgd_keys.h"
#include "peer/sim/attack.h"
#include "peer/sim/world.h"
#include "peer/uv/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* On a terminal, the exact consensus distance is computed so rarely that it takes at most this
 * share of the running time. */
static const double drift_share = 0.05;

/* clang-format off */
const struct option_row cmd_sim_rows[] = {
    {.name = "peers", .kind = OPTION_UINT, .arg = "N", .fallback = "8", .min = 1,
     .max = WIRE_MEMBERS_MAX, .help = "number of peers"},
    CMD_ROW_MIN_PEERS,
    {.name = "shard", .kind = OPTION_CHOICE, .arg = "split|auto", .fallback = "split",
     .help = "split: part i of N for peer i; auto: samples are shared among the members that are alive"},
    CMD_ROW_EPOCHS,
    CMD_ROW_INIT,
    {.name = "out", .kind = OPTION_TEXT, .arg = "DIR",
     .help = "directory of this run, with a folder for each peer; default: nothing is written"},
    CMD_ROW_FRESH,
    CMD_ROW_CHECK,
    ROWS_EVALUATE_EVERY,
    ROWS_EVALUATE_SAMPLES,
    ROWS_PATIENCE,
    ROWS_WORKER_LIMIT,
    {.name = "latency-us", .kind = OPTION_UINT, .arg = "T", .fallback = "200", .min = 0, .max = 1e9,
     .help = "one-way latency of a message, in microseconds"},
    {.name = "jitter-us", .kind = OPTION_UINT, .arg = "T", .fallback = "0", .min = 0, .max = 1e9,
     .help = "additional latency, uniform between 0 and N microseconds"},
    {.name = "bandwidth", .kind = OPTION_REAL, .arg = "BYTES/S", .fallback = "0", .min = 0, .max = 1e15,
     .help = "bytes per second of each link and direction; 0: no limit"},
    {.name = "step-us", .kind = OPTION_UINT, .arg = "T", .fallback = "5000", .min = 0, .max = 1e9,
     .help = "virtual time of a local step, in microseconds"},
    {.name = "step-spread", .kind = OPTION_REAL, .arg = "F", .fallback = "0", .min = 0, .max = 1e3,
     .help = "local steps of a peer take up to 1 + F times --step-us, drawn for each peer"},
    {.name = "straggler", .kind = OPTION_REAL, .arg = "F", .fallback = "0", .min = 0, .max = 1e3,
     .help = "local steps of the last peer take F times as long as those of the other peers; 0: no straggler"},
    {.name = "cut-rate", .kind = OPTION_REAL, .arg = "P", .fallback = "0", .min = 0, .max = 0.9,
     .help = "probability that a delta is lost and its session breaks"},
    {.name = "attack", .kind = OPTION_TEXT, .arg = "KIND[:WHO]",
     .help = "kind of Byzantine attack: huge, scaled, negated, random, push, nan, ipm, alie, dissensus, rounds, mute-sketch, false-sketch, settled or unsettled; WHO: the attackers, such as 3, 0,7 or 5-14; default: the last peer. Results are those of the other peers"},
    {.name = "scenario", .kind = OPTION_TEXT, .arg = "FILE",
     .help = "file with settings of single links and peers and with timed faults (peer/sim/README.md)"},
    {.name = "threads", .kind = OPTION_UINT, .arg = "N", .fallback = "0", .min = 0, .max = THREAD_POOL_MAX,
     .help = "threads of the simulator; results do not depend on N; 0: one thread per processor, or a single thread with --shard auto or --attack"},
    CMD_ROW_LOG_LEVEL,
    CMD_ROW_TRACE("all peers"),
    CMD_ROW_JSON,
    {.name = NULL},
};
/* clang-format on */

static int make_trainer(void *self, uint32_t peer, const struct run *run, struct trainer *t,
                        char error[RUN_ERROR_MAX])
{
    struct simulation *s = self;
    return cmd_training_make(&s->peers[peer], run, t, error);
}

/* Sets the thread on which a peer's next job (local steps, mixing and encoding) runs. This is a
 * callback of the simulator. */
static void works(void *self, uint32_t peer, uint32_t thread)
{
    struct simulation *s = self;
    cmd_training_set_thread(&s->peers[peer], thread);
}

static void configure(void *self, uint32_t peer, struct node_config *c)
{
    const struct simulation *s = self;
    (void)peer;
    settings_limits(s->o, c);
    c->log_debug = cmd_log_shows(NOTE_DEBUG);
}

static void path(void *self, uint32_t from, uint32_t to, struct sim_path *p)
{
    const struct simulation *s = self;
    scenario_path(s->scenario, from, to, p);
}

/* Prints a note (message for users) of a simulated peer in the format of --log-level, if
 * --log-level selects the level of the note. */
static void log_note(struct simulation *s, uint32_t peer, const struct node_note *note)
{
    char name[32];
    snprintf(name, sizeof name, "peer-%u", peer);
    if (!cmd_log_shows(note->level))
        return;
    cmd_progress_end_line(&s->progress);
    cmd_log_print_simulated(sim_now_us(s->world), note->level, note->module, name, note->text);
}

/* Prints a note (a message for users) of a simulated peer. Without --log-level, notes below the
 * level warning are dropped, because there may be a thousand peers, and further notes of the same
 * kind are only counted. A note of level error ends the simulation, unless the peer has
 * diverged. */
static void say_note(void *self, uint32_t peer, const struct node_note *note)
{
    struct simulation *s = self;
    if (cmd_log_given()) {
        log_note(s, peer, note);
    } else if (note->level >= NOTE_WARNING
               && (sim_notes_add(&s->notes, note->text) || note->level == NOTE_ERROR)) {
        cmd_progress_end_line(&s->progress);
        fprintf(stderr, "hearsay sim: peer-%u: %s%s\n", peer,
                note->level == NOTE_WARNING ? "warning: " : "", note->text);
    }
    if (note->level != NOTE_ERROR)
        return;
    struct node_progress p;
    sim_progress(s->world, peer, &p);
    s->failed |= p.diverged[0] == '\0';
}

/* ---- Writing the trace and the progress ---- */

static void watch(void *self, uint32_t peer, const struct node_event *ev, uint32_t other)
{
    struct simulation *s = self;
    (void)other;
    trace_event(s->trace_peer[peer], sim_node_at_work(s->world, peer), ev);
}

static void stepped(void *self, uint32_t peer, const struct node_event *ev,
                    const struct node_effects *fx)
{
    struct simulation *s = self;
    trace_effects(s->trace_peer[peer], sim_node_at_work(s->world, peer), ev->now_us, fx);
    const char *warning = cmd_trace_take_warning(&s->trace);
    if (warning == NULL)
        return;
    cmd_progress_end_line(&s->progress);
    cmd_fail(s->o, CMD_OK, "warning: %s", warning);
}

static int begin_trace(struct simulation *s, struct sim_config *c)
{
    int code = cmd_trace_open(&s->trace, s->o, 0, -1, "a simulation");
    if (code != CMD_OK || s->trace.trace == NULL)
        return code;
    s->trace_peer = calloc(s->n, sizeof(struct trace_peer *));
    for (uint32_t i = 0; i < s->n; i++) {
        char name[32];
        snprintf(name, sizeof name, "peer-%u", i);
        if (s->trace_peer == NULL
            || (s->trace_peer[i] = trace_add_peer(s->trace.trace, name)) == NULL)
            return cmd_fail(s->o, CMD_FAILED, "out of memory for the trace");
    }
    c->watch = watch;
    c->stepped = stepped;
    return CMD_OK;
}

double cmd_sim_seconds(const struct simulation *s)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - s->begin.tv_sec) + (double)(now.tv_nsec - s->begin.tv_nsec) * 1e-9;
}

/* Computes the exact consensus distance, unless that would take more than drift_share of the
 * running time. With many models the computation is slow. */
static void look_at_drift(struct simulation *s, double now_s)
{
    if (s->progress.terminal && s->drift_s > drift_share * (now_s - s->exact_s))
        return;
    sim_drift(s->world, &s->exact);
    s->exact_s = cmd_sim_seconds(s);
    s->drift_s = s->exact_s - now_s;
}

/* Shows the progress of the run: the figures of peer 0, and the exact consensus distance of all
 * models. */
static void say_progress(struct simulation *s, const struct node_progress *p)
{
    double now_s = cmd_sim_seconds(s);
    bool ends = p->phase == NODE_FINISHING && !s->ended;
    struct cmd_progress_row row = {.name = "peer-0",
                                   .round = p->round,
                                   .rounds = p->n_rounds,
                                   .settle_rounds = p->settle_rounds,
                                   .loss = p->loss,
                                   .accuracy = p->accuracy,
                                   .accuracy_round = p->accuracy_round,
                                   .accuracy_samples = p->accuracy_samples,
                                   .relative_drift = p->relative_drift,
                                   .drift_round = p->drift_round,
                                   .wanted_drift = node_run(sim_node(s->world, 0))->final_drift,
                                   .has_exact = true};
    snprintf(row.phase, sizeof row.phase, "%s", figure_phase(p->phase, p->holds));
    snprintf(row.tail, sizeof row.tail, "simulated %.2f s", (double)sim_now_us(s->world) * 1e-6);
    if (!cmd_progress_due(&s->progress, &row, 1, now_s) && !ends)
        return;
    s->ended |= ends;
    look_at_drift(s, now_s);
    row.exact_drift = s->exact.trained.relative;
    cmd_progress_show(&s->progress, &row, 1, now_s, true);
}

static void tell_lines(struct simulation *s, const struct run_log_lines *l, bool news)
{
    if (!news)
        return;
    cmd_progress_end_line(&s->progress);
    cmd_fail(s->o, CMD_OK, "%s%s", l->level == NOTE_WARNING ? "warning: " : "", l->news);
}

/* Writes a line of metrics.jsonl for the peer. The first line of the file, which marks the start,
 * has no date, so that the files depend only on the flags. */
static void measured(void *self, uint32_t peer)
{
    struct simulation *s = self;
    struct node_progress p;
    sim_progress(s->world, peer, &p);
    if (peer == 0)
        say_progress(s, &p);
    if (s->out == NULL)
        return;
    struct run_log_lines *l = &s->files[peer].lines;
    if (!l->started)
        diary_lines_start(l, uv_metrics_start(-1, 0));
    tell_lines(s, l, diary_lines_round(l, &p, (double)sim_now_us(s->world) * 1e-6));
}

/* ---- Opening and writing files ---- */

/* Examines the directory of --out. `names` lists options that are not in the run description but
 * change the simulation. Their values are stored in run.txt, and a repeated command must have the
 * same values. */
static int look(struct simulation *s, const struct run *run)
{
    static const char *const names[] = {"peers",     "shard",     "data",    "latency-us",
                                        "jitter-us", "bandwidth", "step-us", "step-spread",
                                        "straggler", "cut-rate"};
    enum { N = sizeof names / sizeof *names };
    struct run_identity_flag flags[N + 2] = {{NULL, NULL}};
    s->out = options_text(s->o, "out");
    if (s->out == NULL)
        return CMD_OK;
    for (size_t i = 0; i < N; i++)
        flags[i] = (struct run_identity_flag){names[i], options_text(s->o, names[i])};
    if (s->scenario != NULL)
        flags[N] = (struct run_identity_flag){"scenario", s->scenario_is};
    return cmd_out_examine(&s->dir, s->o, s->out, flags, run);
}

static int open_peer_files(struct simulation *s, uint32_t i)
{
    static const char *const names[] = {"metrics.jsonl", CMD_SIM_MODEL, NULL};
    struct sim_peer_files *f = &s->files[i];
    char name[32], path[CMD_PATH_MAX];
    snprintf(name, sizeof name, "peer-%u", i);
    int err = cmd_path(f->dir, s->out, name);
    if (err == 0)
        err = outdir_make(f->dir);
    if (err < 0)
        return cmd_fail(s->o, CMD_USAGE, "--out %s: %s", s->out, strerror(-err));
    /* Keep metrics.jsonl open only while writing: a thousand peers would need a thousand open
     * files. */
    diary_lines_open(&f->lines, f->dir, JOURNAL_BYTES / (1 + s->n / 64), true);
    err = disk_reservation_check(f->dir, names, path, sizeof path);
    return err < 0 ? cmd_fail(s->o, CMD_USAGE, "cannot write %s: %s", path, strerror(-err))
                   : CMD_OK;
}

static int open_files(struct simulation *s)
{
    int code = s->out != NULL ? cmd_out_open(&s->dir) : CMD_OK;
    if (code != CMD_OK || s->out == NULL || s->dir.finished)
        return code;
    s->files = calloc(s->n, sizeof *s->files);
    if (s->files == NULL)
        return cmd_fail(s->o, CMD_FAILED, "out of memory");
    for (uint32_t i = 0; i < s->n && code == CMD_OK; i++)
        code = open_peer_files(s, i);
    return code == CMD_OK ? cmd_out_claim(&s->dir) : code;
}

static int write_model(struct simulation *s, uint32_t i)
{
    char path[CMD_PATH_MAX], why[DATA_ERROR_MAX], name[32];
    snprintf(name, sizeof name, "peer-%u", i);
    int err = cmd_path(path, s->files[i].dir, CMD_SIM_MODEL);
    if (err < 0)
        return cmd_fail(s->o, CMD_FAILED, "--out %s: %s", s->out, strerror(-err));
    struct run_log_source source = cmd_training_source(&s->peers[i]);
    err = diary_model_of_node(path, sim_node(s->world, i), name, &source, why);
    s->files[i].has_model = err > 0;
    return err < 0 ? cmd_fail(s->o, CMD_FAILED, "%s", why) : CMD_OK;
}

/* Writes those lines of metrics.jsonl that are still in memory, for all peers. Returns the number
 * of lines that could not be written. */
static uint64_t write_lines(struct simulation *s)
{
    uint64_t n = 0;
    for (uint32_t i = 0; s->out != NULL && i < s->n; i++) {
        struct run_log_lines *l = &s->files[i].lines;
        tell_lines(s, l, diary_lines_write(l));
        n += diary_lines_missing(l);
    }
    return n;
}

/* ---- Running the simulation ---- */

static int open_peers(struct simulation *s, struct run *run)
{
    char error[RUN_ERROR_MAX];
    struct run_flags flags;
    int code = cmd_peers_flags(s->o, s->n, &flags);
    if (code != CMD_OK)
        return code;
    bool split = strcmp(options_text(s->o, "shard"), "split") == 0;
    for (uint32_t i = 0; i < s->n; i++) {
        char shard[32] = "auto", name[32];
        snprintf(name, sizeof name, "peer-%u", i);
        if (split)
            snprintf(shard, sizeof shard, "%u/%u", i + 1, s->n);
        int err = cmd_training_init(&s->peers[i], options_text(s->o, "data"), shard, name, error);
        if (err < 0)
            return cmd_fail(s->o, cmd_exit_of(err), "%s", error);
        if (i > 0)
            cmd_training_share(&s->peers[i], &s->peers[0], s->threads);
    }
    s->reading.out = stderr;
    s->peers[0].reading = &s->reading;
    s->peers[0].init_path = options_text(s->o, "init");
    int err =
        cmd_training_complete_run(&s->peers[0], &flags, options_real(s->o, "epochs"), run, error);
    /* Read the data now, so that an error in them is found before the simulation starts. With
     * --rounds they may not have been read so far, because only --epochs needs the number of
     * samples. */
    if (err == 0)
        err = cmd_training_data(&s->peers[0], sgd_values(run)->data, run->seed, error);
    if (err < 0)
        return cmd_fail(s->o, cmd_exit_of(err), "%s", error);
    cmd_skew_advice(s->o, options_text(s->o, "shard"), s->n, &flags, run);
    return CMD_OK;
}

/* Checks --bandwidth. At a rate below SIM_LEAST_BYTES_PER_S the arrival time of a message, in
 * microseconds, could overflow. */
static int check_links(const struct options *o)
{
    double rate = options_real(o, "bandwidth");
    if (rate == 0 || rate >= SIM_LEAST_BYTES_PER_S)
        return CMD_OK;
    return cmd_fail(o, CMD_USAGE,
                    "--bandwidth: found %g, expected 0 (no limit) or at least %d bytes per second",
                    rate, SIM_LEAST_BYTES_PER_S);
}

/* Returns the exit code of a simulation that failed because of a peer: CMD_USAGE for bad input,
 * otherwise CMD_FAILED. The peer has already reported the reason. */
static int code_of_failure(const struct simulation *s)
{
    int code;
    for (uint32_t i = 0; i < s->n; i++)
        if (sim_ended(s->world, i, &code) && code == CMD_USAGE)
            return code;
    return CMD_FAILED;
}

/* Reads from --attack which peers are Byzantine, and what they send. Called before the data are
 * read. */
static int read_attack(struct simulation *s)
{
    char error[ATTACK_ERROR_MAX];
    const char *spec = options_text(s->o, "attack");
    if (spec != NULL && attack_read(spec, s->n, &s->attack, s->liar, error) != 0)
        return cmd_fail(s->o, CMD_USAGE, "--attack: %s", error);
    return CMD_OK;
}

/* Reads the file of --scenario. Called before the data are read, because reading data may take
 * long. */
static int read_scenario(struct simulation *s)
{
    static char text[SCENARIO_FILE_MAX];
    char error[SCENARIO_ERROR_MAX], why[FILE_ERROR_MAX];
    const char *path = options_text(s->o, "scenario");
    if (path == NULL)
        return CMD_OK;
    if (file_read_text(path, text, sizeof text, why) < 0)
        return cmd_fail(s->o, CMD_USAGE, "--scenario: %s", why);
    snprintf(s->scenario_is, sizeof s->scenario_is, "%.64s %016" PRIx64, path,
             rng_hash(text, strlen(text)));
    int err = scenario_read(&s->scenario, text, s->n, error);
    return err < 0 ? cmd_fail(s->o, cmd_exit_of(err), "--scenario %s: %s", path, error) : CMD_OK;
}

/* Chooses the number of threads of the simulator. With --shard auto only one thread is possible,
 * because the peers share the table that assigns samples to peers. With --attack only one thread is
 * possible, because Byzantine peers read the models of other peers. */
static int choose_threads(struct simulation *s)
{
    uint64_t asked = options_uint(s->o, "threads");
    const char *alone = s->attack != NULL ? "--attack" : NULL;
    if (strcmp(options_text(s->o, "shard"), "split") != 0)
        alone = "--shard auto";
    if (alone != NULL && asked > 1)
        return cmd_fail(s->o, CMD_USAGE,
                        "--threads: found %llu, expected 1 with %s, because peers then share state",
                        (unsigned long long)asked, alone);
    long processors = alone != NULL ? 1 : sysconf(_SC_NPROCESSORS_ONLN);
    if (asked == 0)
        asked = processors < 1                 ? 1
                : processors > THREAD_POOL_MAX ? THREAD_POOL_MAX
                                               : (uint64_t)processors;
    s->threads = (uint32_t)asked;
    return CMD_OK;
}

static int check_attack(const struct simulation *s, const struct run *run)
{
    if (s->attack != NULL && (mixer_all[run->mixer]->updates || mixer_all[run->mixer]->whole))
        return cmd_fail(s->o, CMD_USAGE, "--attack: only with --mixer choco");
    return CMD_OK;
}

/* Checks all options, and reads the files that they name, before the simulation starts. Sets
 * `*run`. */
static int prepare(struct simulation *s, struct run *run)
{
    int code = check_links(s->o);
    if (code == CMD_OK)
        code = read_attack(s);
    if (code == CMD_OK)
        code = read_scenario(s);
    if (code == CMD_OK)
        code = choose_threads(s);
    if (code == CMD_OK)
        code = open_peers(s, run);
    return code == CMD_OK ? check_attack(s, run) : code;
}

/* Makes malloc() keep freed memory instead of returning it to the system, because another simulated
 * peer soon allocates it again. Two thresholds must be set: one for returning memory, and one for
 * using mmap(). If only one is set, glibc keeps the other at its small default. */
static void keep_memory(void)
{
/* Only glibc has the two thresholds M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc(). */
#ifdef M_TRIM_THRESHOLD
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    /* 32 MiB is the largest threshold for mmap() that glibc accepts. */
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
#endif
}

/* Checks the options, runs the simulation to its end, and prints the result. With --check, or if
 * the run in --out has already finished, no simulation runs. Returns the exit code. */
static int simulate(struct simulation *s)
{
    const struct options *o = s->o;
    struct run run;
    int code = prepare(s, &run);
    if (code == CMD_OK)
        code = look(s, &run);
    if (code == CMD_OK && options_flag(o, "check"))
        return cmd_out_print_check(o, s->dir.finished);
    if (code == CMD_OK && !s->dir.finished)
        code = open_files(s);
    if (code != CMD_OK)
        return code;
    if (s->dir.finished)
        return cmd_out_print_finished(&s->dir);
    struct sim_config c = {.n_peers = s->n,
                           .seed = run.seed,
                           .run = run,
                           .latency_us = (int64_t)options_uint(o, "latency-us"),
                           .jitter_us = (int64_t)options_uint(o, "jitter-us"),
                           .bytes_per_s = options_real(o, "bandwidth"),
                           .step_us = (int64_t)options_uint(o, "step-us"),
                           .step_spread = options_real(o, "step-spread"),
                           .straggler = options_real(o, "straggler"),
                           .cut_rate = options_real(o, "cut-rate"),
                           .sessions = s->scenario != NULL,
                           .path = s->scenario != NULL ? path : NULL,
                           .attack = s->attack,
                           .liar = s->liar,
                           .make_trainer = make_trainer,
                           .self = s,
                           .configure = configure,
                           .threads = s->threads,
                           .works = works,
                           .measured = measured,
                           .note = say_note};
    code = begin_trace(s, &c);
    if (code != CMD_OK)
        return code;
    keep_memory();
    if (sim_open(&s->world, &c) != 0)
        return cmd_fail(o, CMD_FAILED, "out of memory for %u peers", s->n);
    cmd_stop_catch();
    int more = 1;
    while (!s->failed && !cmd_stop_asked() && more > 0 && !cmd_sim_never_begins(s))
        more = s->scenario != NULL ? scenario_step(s->scenario, s->world) : sim_step(s->world);
    if (more < 0)
        return cmd_fail(o, CMD_FAILED, "a peer could not be restarted: %s", strerror(-more));
    cmd_progress_end_line(&s->progress);
    sim_notes_end(&s->notes, stderr);
    s->n_lines_lost = write_lines(s);
    if (s->failed)
        return code_of_failure(s);
    if (cmd_stop_asked())
        return cmd_sim_interrupted(s);
    for (uint32_t i = 0; i < s->n && s->out != NULL && code == CMD_OK; i++)
        if (sim_node(s->world, i) != NULL && s->never_begins[0] == '\0')
            code = write_model(s, i);
    return code == CMD_OK ? cmd_sim_result(s) : code;
}

int cmd_sim(const struct options *o)
{
    /* `s` is static, because struct simulation is too large for the stack. */
    static struct simulation s;
    s.o = o;
    s.n = (uint32_t)options_uint(o, "peers");
    clock_gettime(CLOCK_MONOTONIC, &s.begin);
    cmd_progress_open(&s.progress, stderr);
    s.peers = calloc(s.n, sizeof *s.peers);
    s.liar = calloc(s.n, sizeof *s.liar);
    int code =
        s.peers != NULL && s.liar != NULL ? simulate(&s) : cmd_fail(o, CMD_FAILED, "out of memory");
    sim_close(s.world);
    scenario_close(s.scenario);
    /* Peer 0 is closed last, because it owns the data that the other peers share. */
    for (uint32_t i = s.peers != NULL ? s.n : 0; i-- > 0;)
        cmd_training_close(&s.peers[i]);
    cmd_out_close(&s.dir);
    for (uint32_t i = 0; s.files != NULL && i < s.n; i++)
        diary_lines_close(&s.files[i].lines);
    cmd_trace_close(&s.trace);
    free(s.trace_peer);
    free(s.files);
    free(s.liar);
    free(s.peers);
    return code;
}
