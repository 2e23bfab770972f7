/* peer/cmd/sim.c -- `hearsay sim`: the same peers over a simulated network.
 *
 * One process, virtual time, exact figures: the drift it prints is that of the
 * models themselves. With --out it writes what `hearsay local` would:
 * DIR/peer-0/metrics.jsonl, DIR/peer-0/model.safetensors, and so on; a
 * synchronous run without faults gives the same models bit for bit.
 *
 * --json closes with one object on stdout: as `hearsay local`'s, with
 * "simulated_s" (virtual time) and "events" beside "seconds"; bytes are those
 * that a channel would have put on its sockets.
 */
#include "peer/cmd/sim.h"
#include "peer/uv/settings.h"

#include "nn/math/rng.h"
#include "peer/cmd/files.h"
#include "peer/cmd/out.h"
#include "peer/cmd/peers.h"
#include "peer/cmd/stop.h"
#include "peer/cmd/training.h"
#include "peer/diary/model.h"
#include "peer/sgd/sgd_keys.h"
#include "peer/sim/attack.h"
#include "peer/sim/world.h"
#include "peer/store/reserve.h"
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

/* On a terminal the exact drift may take so large a share of the time. */
static const double drift_share = 0.05;

/* clang-format off */
const struct option_row cmd_sim_rows[] = {
    {.name = "peers", .kind = OPTION_UINT, .arg = "N", .fallback = "8", .min = 1,
     .max = WIRE_MEMBERS_MAX, .help = "how many"},
    CMD_ROW_MIN_PEERS,
    {.name = "shard", .kind = OPTION_CHOICE, .arg = "split|auto", .fallback = "split",
     .help = "part i of N for peer i, or shared out among the living"},
    CMD_ROW_EPOCHS,
    CMD_ROW_INIT,
    {.name = "out", .kind = OPTION_TEXT, .arg = "DIR",
     .help = "directory for models and metrics of this run only, peer-0/ and so on; default: none are written"},
    CMD_ROW_FRESH,
    CMD_ROW_CHECK,
    ROWS_EVALUATE_EVERY,
    ROWS_EVALUATE_SAMPLES,
    ROWS_PATIENCE,
    ROWS_WORKER_LIMIT,
    {.name = "latency-us", .kind = OPTION_UINT, .arg = "T", .fallback = "200", .min = 0, .max = 1e9,
     .help = "of a message, one way"},
    {.name = "jitter-us", .kind = OPTION_UINT, .arg = "T", .fallback = "0", .min = 0, .max = 1e9,
     .help = "more latency, uniform from 0 to this"},
    {.name = "bandwidth", .kind = OPTION_REAL, .arg = "BYTES/S", .fallback = "0", .min = 0, .max = 1e15,
     .help = "of each link and direction, 1 at least; 0: no limit"},
    {.name = "step-us", .kind = OPTION_UINT, .arg = "T", .fallback = "5000", .min = 0, .max = 1e9,
     .help = "virtual time of one local step"},
    {.name = "step-spread", .kind = OPTION_REAL, .arg = "F", .fallback = "0", .min = 0, .max = 1e3,
     .help = "peers are up to 1 + F times slower than that, each at random"},
    {.name = "straggler", .kind = OPTION_REAL, .arg = "F", .fallback = "0", .min = 0, .max = 1e3,
     .help = "the last peer's steps are F times slower than those of the others; 0: they are not"},
    {.name = "cut-rate", .kind = OPTION_REAL, .arg = "P", .fallback = "0", .min = 0, .max = 0.9,
     .help = "chance that a delta is lost together with its session"},
    {.name = "attack", .kind = OPTION_TEXT, .arg = "KIND[:WHO]",
     .help = "members that lie: huge, scaled, negated, random, push, nan, ipm, alie, dissensus, "
             "rounds, mute-sketch, false-sketch, settled or unsettled, by peer 3, by 0,7 or by "
             "5-14; default: the last. Figures are of the others"},
    {.name = "scenario", .kind = OPTION_TEXT, .arg = "FILE",
     .help = "what is so of single links and peers, and what goes wrong when: peer/sim/README.md"},
    {.name = "threads", .kind = OPTION_UINT, .arg = "N", .fallback = "0", .min = 0, .max = CREW_MAX,
     .help = "that peers work on: nothing but the seconds depends on it; 0: as many as there are "
             "processors, and one with --shard auto or --attack"},
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

/* On that thread. */
static void works(void *self, uint32_t peer, uint32_t thread)
{
    struct simulation *s = self;
    cmd_training_on(&s->peers[peer], thread);
}

static void configure(void *self, uint32_t peer, struct node_config *c)
{
    const struct simulation *s = self;
    (void)peer;
    settings_limits(s->o, c);
}

static void path(void *self, uint32_t from, uint32_t to, struct sim_path *p)
{
    const struct simulation *s = self;
    scenario_path(s->scenario, from, to, p);
}

/* What a peer merely tells would drown the rest: there may be a thousand of them. */
static void say_note(void *self, uint32_t peer, const struct node_note *note)
{
    struct simulation *s = self;
    if (note->level == NOTE_INFO)
        return;
    if (sim_notes_add(&s->notes, note->text) || note->level == NOTE_ERROR) {
        cmd_progress_break(&s->progress);
        fprintf(stderr, "hearsay sim: peer-%u: %s\n", peer, note->text);
    }
    struct node_progress p;
    sim_progress(s->world, peer, &p);
    s->failed |= note->level == NOTE_ERROR && p.diverged[0] == '\0';
}

double cmd_sim_seconds(const struct simulation *s)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - s->begin.tv_sec) + (double)(now.tv_nsec - s->begin.tv_nsec) * 1e-9;
}

/* That of many models takes a while. */
static void look_at_drift(struct simulation *s, double now_s)
{
    if (s->progress.terminal && s->drift_s > drift_share * (now_s - s->exact_s))
        return;
    sim_drift(s->world, &s->exact);
    s->exact_s = cmd_sim_seconds(s);
    s->drift_s = s->exact_s - now_s;
}

/* Peer 0 speaks for all, but for the drift. */
static void say_progress(struct simulation *s, const struct node_progress *p)
{
    double now_s = cmd_sim_seconds(s);
    bool ends = p->phase == NODE_SERVING && !s->ended;
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
    snprintf(row.phase, sizeof row.phase, "%s", uv_metrics_phase(p->phase, p->holds));
    snprintf(row.tail, sizeof row.tail, "simulated %.2f s", (double)sim_now_us(s->world) * 1e-6);
    if (!cmd_progress_due(&s->progress, &row, 1, now_s) && !ends)
        return;
    s->ended |= ends;
    look_at_drift(s, now_s);
    row.exact_drift = s->exact.trained.relative;
    cmd_progress_show(&s->progress, &row, 1, now_s, true);
}

static void tell_lines(struct simulation *s, const struct diary_lines *l, bool news)
{
    if (!news)
        return;
    cmd_progress_break(&s->progress);
    cmd_fail(s->o, CMD_OK, "%s%s", l->level == NOTE_WARNING ? "warning: " : "", l->news);
}

/* The line of a start is of no hour: a simulation is a function of its flags. */
static void measured(void *self, uint32_t peer)
{
    struct simulation *s = self;
    struct node_progress p;
    sim_progress(s->world, peer, &p);
    if (peer == 0)
        say_progress(s, &p);
    if (s->out == NULL)
        return;
    struct diary_lines *l = &s->files[peer].lines;
    if (!l->started)
        diary_lines_start(l, uv_metrics_start(-1, 0));
    tell_lines(s, l, diary_lines_round(l, &p, (double)sim_now_us(s->world) * 1e-6));
}

/* ---- files ---- */

/* Flags that are no keys of the run, and without which it would be another simulation. */
static int look(struct simulation *s, const struct run *run)
{
    static const char *const names[] = {"peers",     "shard",     "data",    "latency-us",
                                        "jitter-us", "bandwidth", "step-us", "step-spread",
                                        "straggler", "cut-rate"};
    enum { N = sizeof names / sizeof *names };
    struct owner_flag flags[N + 2] = {{NULL, NULL}};
    s->out = options_text(s->o, "out");
    if (s->out == NULL)
        return CMD_OK;
    for (size_t i = 0; i < N; i++)
        flags[i] = (struct owner_flag){names[i], options_text(s->o, names[i])};
    if (s->scenario != NULL)
        flags[N] = (struct owner_flag){"scenario", s->scenario_is};
    return cmd_out_look(&s->dir, s->o, s->out, flags, run);
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
    /* Files are opened for each line: a thousand open ones may be too many. */
    diary_lines_open(&f->lines, f->dir, JOURNAL_BYTES / (1 + s->n / 64), true);
    err = reserve_check(f->dir, names, path, sizeof path);
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
    struct diary_source source = cmd_training_source(&s->peers[i]);
    err = diary_model_of_node(path, sim_node(s->world, i), name, &source, why);
    s->files[i].has_model = err > 0;
    return err < 0 ? cmd_fail(s->o, CMD_FAILED, "%s", why) : CMD_OK;
}

/* The end of all metrics. How many lines are in no file? */
static uint64_t write_lines(struct simulation *s)
{
    uint64_t n = 0;
    for (uint32_t i = 0; s->out != NULL && i < s->n; i++) {
        struct diary_lines *l = &s->files[i].lines;
        tell_lines(s, l, diary_lines_write(l));
        n += diary_lines_missing(l);
    }
    return n;
}

/* ---- the run ---- */

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
    int err = cmd_training_fix(&s->peers[0], &flags, options_real(s->o, "epochs"), run, error);
    if (err == 0) /* Bad data are bad input, also where --rounds needs none of them. */
        err = cmd_training_data(&s->peers[0], sgd_values(run)->data, run->seed, error);
    return err < 0 ? cmd_fail(s->o, cmd_exit_of(err), "%s", error) : CMD_OK;
}

/* The time of a message's arrival must stay a number of microseconds. */
static int check_links(const struct options *o)
{
    double rate = options_real(o, "bandwidth");
    if (rate == 0 || rate >= SIM_LEAST_BYTES_PER_S)
        return CMD_OK;
    return cmd_fail(o, CMD_USAGE, "--bandwidth: found %g, expected 0 (no limit) or at least %d",
                    rate, SIM_LEAST_BYTES_PER_S);
}

/* A peer has said why. Bad input is not the world's failure. */
static int code_of_failure(const struct simulation *s)
{
    int code;
    for (uint32_t i = 0; i < s->n; i++)
        if (sim_ended(s->world, i, &code) && code == CMD_USAGE)
            return code;
    return CMD_FAILED;
}

/* Who lies, and how. Before the data are read. */
static int read_attack(struct simulation *s)
{
    char error[ATTACK_ERROR_MAX];
    const char *spec = options_text(s->o, "attack");
    if (spec != NULL && attack_read(spec, s->n, &s->attack, s->liar, error) != 0)
        return cmd_fail(s->o, CMD_USAGE, "--attack: %s", error);
    return CMD_OK;
}

/* Likewise. */
static int read_scenario(struct simulation *s)
{
    static char text[SCENARIO_FILE_MAX];
    char error[SCENARIO_ERROR_MAX], why[KEYFILE_ERROR_MAX];
    const char *path = options_text(s->o, "scenario");
    if (path == NULL)
        return CMD_OK;
    if (cmd_read_text(path, text, sizeof text, why) < 0)
        return cmd_fail(s->o, CMD_USAGE, "--scenario: %s", why);
    snprintf(s->scenario_is, sizeof s->scenario_is, "%.64s %016" PRIx64, path,
             rng_hash(text, strlen(text)));
    int err = scenario_read(&s->scenario, text, s->n, error);
    return err < 0 ? cmd_fail(s->o, cmd_exit_of(err), "--scenario %s: %s", path, error) : CMD_OK;
}

/* Peers that share a table of owners, or look at the models of others, work one after the other. */
static int choose_threads(struct simulation *s)
{
    uint64_t asked = options_uint(s->o, "threads");
    const char *alone = s->attack != NULL ? "--attack" : NULL;
    if (strcmp(options_text(s->o, "shard"), "split") != 0)
        alone = "--shard auto";
    if (alone != NULL && asked > 1)
        return cmd_fail(
            s->o, CMD_USAGE,
            "--threads: found %llu, expected 1 with %s, as peers then look at what others own",
            (unsigned long long)asked, alone);
    long processors = alone != NULL ? 1 : sysconf(_SC_NPROCESSORS_ONLN);
    if (asked == 0)
        asked = processors < 1 ? 1 : processors > CREW_MAX ? CREW_MAX : (uint64_t)processors;
    s->threads = (uint32_t)asked;
    return CMD_OK;
}

static int check_attack(const struct simulation *s, const struct run *run)
{
    if (s->attack != NULL && (mixer_all[run->mixer]->updates || mixer_all[run->mixer]->whole))
        return cmd_fail(s->o, CMD_USAGE, "--attack: only with --mixer choco");
    return CMD_OK;
}

/* All that can be wrong with the options is found here. */
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

/* What one peer frees another takes soon: its pages are neither given back nor cleared anew in
 * between. Both are set, for one of them alone would fix the other at its small default. */
static void keep_memory(void)
{
#ifdef M_TRIM_THRESHOLD /* It is glibc that has it. */
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_MMAP_THRESHOLD, 32 << 20); /* The highest that it takes. */
#endif
}

static int simulate(struct simulation *s)
{
    const struct options *o = s->o;
    struct run run;
    int code = prepare(s, &run);
    if (code == CMD_OK)
        code = look(s, &run);
    if (code == CMD_OK && options_flag(o, "check"))
        return cmd_out_checked(o, s->dir.finished);
    if (code == CMD_OK && !s->dir.finished)
        code = open_files(s);
    if (code != CMD_OK)
        return code;
    if (s->dir.finished)
        return cmd_out_again(&s->dir);
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
    keep_memory();
    if (sim_open(&s->world, &c) != 0)
        return cmd_fail(o, CMD_FAILED, "out of memory for %u peers", s->n);
    cmd_stop_catch();
    int more = 1;
    while (!s->failed && !cmd_stop_asked() && more > 0 && !cmd_sim_in_vain(s))
        more = s->scenario != NULL ? scenario_step(s->scenario, s->world) : sim_step(s->world);
    if (more < 0)
        return cmd_fail(o, CMD_FAILED, "a peer could not be restarted: %s", strerror(-more));
    cmd_progress_break(&s->progress);
    sim_notes_end(&s->notes, stderr);
    s->n_lines_lost = write_lines(s);
    if (s->failed)
        return code_of_failure(s);
    if (cmd_stop_asked())
        return cmd_sim_interrupted(s);
    for (uint32_t i = 0; i < s->n && s->out != NULL && code == CMD_OK; i++)
        if (sim_node(s->world, i) != NULL && s->in_vain[0] == '\0')
            code = write_model(s, i);
    return code == CMD_OK ? cmd_sim_result(s) : code;
}

int cmd_sim(const struct options *o)
{
    static struct simulation s; /* It is large, and a process has one. */
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
    for (uint32_t i = s.peers != NULL ? s.n : 0;
         i-- > 0;) /* The first is closed last, as it owns what the others share. */
        cmd_training_close(&s.peers[i]);
    cmd_out_close(&s.dir);
    for (uint32_t i = 0; s.files != NULL && i < s.n; i++)
        diary_lines_close(&s.files[i].lines);
    free(s.files);
    free(s.liar);
    free(s.peers);
    return code;
}
