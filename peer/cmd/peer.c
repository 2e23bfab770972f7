/* peer/cmd/peer.c -- `hearsay peer`: runs one peer of a cluster.
 *
 * Files under --out: identity.key, and the files that peer/cmd/peer_report.h lists. The directory
 * --out is checked and used in these steps:
 *
 *   at the start            refused if it belongs to a run that contradicts the flags; if its run
 *                           has finished, the result is printed; otherwise the directory is locked
 *   before a socket opens   the data are read, and the cluster is asked for its run (cluster_run.h)
 *   the run is known        refused if the directory belongs to another run
 *   first line of metrics   run.txt is written (peer_report.c), before any other file of the run
 */
#include "gossip/wire/wire.h"
#include "nn/data/spec.h"
#include "nn/math/number.h"
#include "peer/cmd/checkpoint.h"
#include "peer/cmd/cluster_run.h"
#include "peer/cmd/cmd.h"
#include "peer/cmd/column_statistics.h"
#include "peer/cmd/duration.h"
#include "peer/cmd/files.h"
#include "peer/cmd/log.h"
#include "peer/cmd/out.h"
#include "peer/cmd/peer_report.h"
#include "peer/cmd/peers.h"
#include "peer/cmd/skew_advice.h"
#include "peer/cmd/training.h"
#include "peer/output/promise.h"
#include "peer/uv/fd_reserve.h"
#include "peer/uv/identity.h"
#include "peer/uv/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* clang-format off */
const struct option_row cmd_peer_rows[] = {
    ROWS_LISTEN,
    ROWS_BOOTSTRAP,
    ROWS_KEY,
    {.name = "shard", .kind = OPTION_TEXT, .arg = "i/n|own|auto", .fallback = "auto",
     .help = "samples of this peer: part i of n; own: all samples of a private data set; auto: shared among the members that are alive"},
    CMD_ROW_INIT,
    CMD_ROW_THREADS,
    CMD_ROW_EPOCHS,
    ROWS_NAME,
    ROWS_ADVERTISE,
    ROWS_IDENTITY,
    ROWS_MEMBERS,
    ROWS_TOKEN,
    {.name = "out", .kind = OPTION_TEXT, .arg = "DIR",
     .help = "directory of this run; default: hearsay-NAME"},
    CMD_ROW_FRESH,
    ROWS_CHECKPOINT,
    ROWS_FORGET,
    ROWS_EVALUATE_EVERY,
    ROWS_EVALUATE_SAMPLES,
    ROWS_PATIENCE,
    ROWS_WORKER_LIMIT,
    ROWS_UPLINK,
    ROWS_METRICS,
    CMD_ROW_LOG_LEVEL,
    CMD_ROW_TRACE("this peer"),
    {.name = "parent-fd", .former = "leash-fd", .kind = OPTION_UINT, .arg = "N", .min = 3, .max = 65535,
     .help = "exit when this pipe closes (used by hearsay local), but not before the data have been read"},
    {.name = "json", .kind = OPTION_FLAG,
     .help = "print one JSON object per round to stdout, and the summary as the last one"},
    {.name = NULL},
};
/* clang-format on */

struct peer
{
    const struct options *o;
    struct settings settings;
    const char *out;
    char out_default[WIRE_NAME_MAX + 16];
    struct cmd_out dir; /* Output directory that --out names. */
    struct promise promise;
    struct cmd_checkpoint checkpoint;
    struct uv_driver_config config;
    struct cmd_training training;
    struct cmd_column_statistics moments;
    bool again; /* True if this peer continues the run that is in --out from an earlier start. */
    struct cmd_progress_reading reading;
    struct cmd_peer_report report;
};

/* ---- From flags to a configuration ---- */

/* Applies a group of options to the configuration of the peer. `settings`: one of the functions of
 * peer/uv/settings.h. Returns CMD_OK, or an exit code after a message on stderr. */
static int take(struct peer *p, int (*settings)(struct settings *s, struct uv_driver_config *c,
                                                char error[SETTINGS_ERROR_MAX]))
{
    char error[SETTINGS_ERROR_MAX];
    int err = settings(&p->settings, &p->config, error);
    return err < 0 ? cmd_fail(p->o, cmd_exit_of(err), "%s", error) : CMD_OK;
}

static int take_begin(struct peer *p)
{
    return take(p, settings_begin);
}

static int take_addresses(struct peer *p)
{
    return take(p, settings_addresses);
}

static int take_listen(struct peer *p)
{
    return take(p, settings_listen);
}

static int take_name(struct peer *p)
{
    int code = take(p, settings_name);
    const char *name = p->settings.name;
    snprintf(p->out_default, sizeof p->out_default, "hearsay-%s", name);
    p->out = options_text(p->o, "out") ? options_text(p->o, "out") : p->out_default;
    p->report.diary.name = name;
    p->report.diary.dir = p->out;
    p->report.diary.held = &p->dir.held;
    p->report.diary.owner = p->dir.text;
    p->report.training = &p->training;
    if (code == CMD_OK && p->settings.notice[0] != '\0')
        cmd_peer_report_note(&p->report, NOTE_INFO, "settings", p->settings.notice);
    return code;
}

static int take_key(struct peer *p)
{
    return take(p, settings_key);
}

/* Reads the key pair of this peer. If the file does not exist, creates it, so --out must be locked
 * before. */
static int take_identity(struct peer *p)
{
    char error[SETTINGS_ERROR_MAX], path[CMD_PATH_MAX];
    const char *given = options_text(p->o, "identity");
    if (given == NULL && cmd_path(path, p->out, "identity.key") < 0)
        return cmd_fail(p->o, CMD_USAGE, "--out: the path is too long");
    const char *owner = checkpoint_store_owner(&p->checkpoint.found);
    int err = settings_identity(&p->settings, &p->config, given ? given : path, owner, error);
    if (err == -ENOKEY)
        return cmd_fail(p->o, CMD_USAGE,
                        "%s; --fresh moves the checkpoints aside and starts the run again", error);
    return err < 0 ? cmd_fail(p->o, cmd_exit_of(err), "%s", error) : CMD_OK;
}

static int check_owner(struct peer *p)
{
    return cmd_checkpoint_check_owner(&p->checkpoint, p->o, p->settings.identity.sign_pk);
}

static int take_members(struct peer *p)
{
    return take(p, settings_members);
}

static int take_token(struct peer *p)
{
    return take(p, settings_token);
}

/* Builds the run that this peer would begin, and records the flags with which a cluster's run must
 * agree. If --out has no run yet (check_out_run()), the result c->found says whether this peer may
 * begin a run:
 *
 *   no --bootstrap: the peer begins a run;
 *   --bootstrap, and run flags or --epochs: it begins a run if no cluster has one;
 *   --bootstrap, and no run flags: it waits for a peer that has a run;
 *   --bootstrap, and a run flag without another flag that this flag needs: it waits, too.
 */
static int take_run(struct peer *p)
{
    char error[RUN_ERROR_MAX];
    struct node_config *c = &p->config.node;
    bool epochs = options_given(p->o, "epochs");
    const char *data = options_given(p->o, "data") ? options_text(p->o, "data") : NULL;
    if (cmd_training_init(&p->training, data, options_text(p->o, "shard"), p->settings.name, error)
        < 0)
        return cmd_fail(p->o, CMD_USAGE, "%s", error);
    p->training.init_path = options_text(p->o, "init");
    p->training.joins = p->settings.bootstrap.n > 0;
    p->training.threads = (uint32_t)options_uint(p->o, "threads");
    p->reading.out = stderr;
    p->training.reading = p->report.notes_as_json ? NULL : &p->reading;
    c->flags = p->o->run;
    c->flags.own_data = p->training.shard_spec.mode == SHARD_OWN;
    bool orphan = p->settings.bootstrap.n > 0 && !epochs && run_flags_orphan(&c->flags, error);
    if (orphan)
        (void)cmd_fail(p->o, CMD_OK,
                       "%s; this peer cannot start a run with these flags and waits to join one",
                       error);
    c->found = !orphan && (run_flags_any(&c->flags) || epochs || p->settings.bootstrap.n == 0);
    if (!c->found && cmd_training_check_files(&p->training, error) < 0)
        return cmd_fail(p->o, CMD_USAGE, "%s", error);
    if (!c->found)
        return CMD_OK;
    struct run_flags filled = c->flags;
    int err = cmd_training_complete_run(&p->training, &filled, options_real(p->o, "epochs"),
                                        &c->run, error);
    /* If the user gave --epochs, the number of rounds in the cluster's run must agree with it. If
     * the user did not give --epochs, its default does not matter. With --shard own the number of
     * rounds follows from the peer's own files, so the peer that begins the run determines it. */
    if (err == 0 && epochs && p->training.shard_spec.mode != SHARD_OWN) {
        char rounds[24];
        snprintf(rounds, sizeof rounds, "%llu", (unsigned long long)c->run.rounds);
        err = run_flags_set(&c->flags, "rounds", rounds, error);
    }
    if (err == 0)
        err = settings_uplink_fits(p->o, &c->run, error);
    if (err < 0)
        return cmd_fail(p->o, cmd_exit_of(err), "%s", error);
    /* The parent process `hearsay local` prints the advice about unequal shards once for all
     * peers. */
    if (!options_given(p->o, "parent-fd"))
        cmd_skew_advice(p->o, options_text(p->o, "shard"), 0, &c->flags, &c->run);
    return CMD_OK;
}

/* ---- Reading the output directory ---- */

/* Parses the run description from the run.txt in --out into `*there`. Returns CMD_OK, or CMD_USAGE
 * after a message on stderr. */
static int read_out_run(struct peer *p, const char *text, struct run *there)
{
    char error[RUN_ERROR_MAX];
    const char *run = run_identity_run_text(text);
    int err = run_from_text(there, &sgd_keys, run, strlen(run), error);
    return err < 0 ? cmd_fail(p->o, CMD_USAGE,
                              "--out %s: cannot read its run.txt: %s; --fresh moves the run aside",
                              p->out, error)
                   : CMD_OK;
}

/* Checks that the run in --out agrees with the flags. If the peer has a bootstrap list, its run may
 * have come from a cluster, and some values of the run from other peers. In this case only the
 * given flags must agree with the run. */
static int check_out_run(struct peer *p, const struct run *there)
{
    char error[RUN_ERROR_MAX];
    struct node_config *c = &p->config.node;
    struct run asked = c->run;
    /* Other peers may have chosen values of the run in --out. Therefore only the flags that were
     * given are compared with that run. */
    bool others = p->settings.bootstrap.n > 0
                  || (c->found && cmd_column_statistics_pooled(&p->training, &c->run));
    if (others && run_with_flags(&asked, there, &c->flags, error) < 0)
        return cmd_fail(p->o, CMD_USAGE, "--out %s has another run: %s; --fresh moves it aside",
                        p->out, error);
    /* If --data names another kind of data than the run in --out has, the shape of the new data may
     * not be known yet. The run description `asked` is then incomplete. */
    if (!run_is_fixed(&asked))
        return cmd_fail(
            p->o, CMD_USAGE,
            "--out %s belongs to a run on other data; choose another directory or use --fresh",
            p->out);
    int code = cmd_out_examine(&p->dir, p->o, p->out, NULL, &asked);
    if (code == CMD_OK && options_given(p->o, "epochs") && c->run.rounds != there->rounds)
        (void)cmd_fail(
            p->o, CMD_OK,
            "note: --epochs %s would be %llu rounds of this file. The run in %s keeps its "
            "%llu rounds; --fresh starts a new run",
            options_text(p->o, "epochs"), (unsigned long long)c->run.rounds, p->out,
            (unsigned long long)there->rounds);
    /* From here on the run is known, whether by the flags of this start or by run.txt. */
    c->run = asked;
    c->found = p->again = true;
    return code;
}

/* Checks --out before any file is created there. */
static int look(struct peer *p)
{
    char there[RUN_IDENTITY_TEXT_MAX];
    struct run run;
    p->dir.o = p->o;
    p->dir.dir = p->out;
    if (options_flag(p->o, "fresh"))
        return CMD_OK;
    if (outdir_read_identity(p->out, there)) {
        int code = read_out_run(p, there, &run);
        return code == CMD_OK ? check_out_run(p, &run) : code;
    }
    run_identity_write(p->dir.text, p->o->command->name, NULL, "");
    return cmd_out_reexamine(&p->dir);
}

static int take_out(struct peer *p)
{
    char path[CMD_PATH_MAX];
    int code = look(p);
    if (code != CMD_OK || p->dir.finished)
        return code;
    code = cmd_out_open(&p->dir);
    if (code != CMD_OK || p->dir.finished)
        return code;
    int err = disk_reservation_check(p->out, run_log_files, path, sizeof path);
    if (err < 0)
        return cmd_fail(p->o, cmd_exit_of(err), "cannot write %s: %s", path, uv_strerror(err));
    code = cmd_duration(p->o, "member-ttl", &p->config.node.forget_us);
    if (code == CMD_OK)
        code = cmd_checkpoint_open(&p->checkpoint, p->o, p->out);
    cmd_checkpoint_configure(&p->checkpoint, &p->config);
    if (p->dir.begun) {
        p->config.node.past = run_log_past(p->out, p->config.node.n_resume);
        promise_read(&p->promise, p->out);
    }
    p->config.node.promise = (struct bytes){p->promise.bytes, p->promise.n};
    return code;
}

/* Checks that --out belongs to `run` or to no run, and that the options suit this run. Writes
 * nothing yet, because a run that this peer only proposes may still be replaced by the cluster's
 * run. A run that was in --out at the start is never replaced. Returns 0, or -EINVAL with a message
 * in `error`. */
static int check_run(struct peer *p, const struct run *run, char error[RUN_ERROR_MAX])
{
    char text[WIRE_RUN_MAX + 1], why[OUTDIR_WHY_MAX], there[RUN_IDENTITY_TEXT_MAX];
    int err = settings_uplink_fits(p->o, run, error);
    if (err < 0)
        return err;
    run_text(run, text);
    run_identity_write(p->dir.text, p->o->command->name, NULL, text);
    if (!outdir_read_identity(p->out, there) || run_identity_differ(there, p->dir.text, why) == 0)
        return 0;
    snprintf(error, RUN_ERROR_MAX, "--out %.80s has another run: %.150s; --fresh moves it aside",
             p->out, why);
    return -EINVAL;
}

/* ---- Configuring the node ---- */

/* Evaluates the model of a peer with --shard own. The peer's held-out rows are its own, so the share
 * of their most frequent label is not what a model of all peers reaches by guessing. */
static void evaluate_own_rows(void *self, const float *x, uint64_t max_samples,
                              struct trainer_report *report)
{
    sgd_trainer_face(self).evaluate(self, x, max_samples, report);
    report->majority = 0;
}

/* Makes the trainer of the run. This is a callback of the node. Fails if the disk has no room for
 * the model, because the result could then not be stored. */
static int make_trainer(void *self, const struct run *run, struct trainer *t,
                        char error[RUN_ERROR_MAX])
{
    struct peer *p = self;
    int err = cmd_training_make(&p->training, run, t, error);
    if (err < 0)
        return err;
    if (p->training.shard_spec.mode == SHARD_OWN)
        t->evaluate = evaluate_own_rows;
    const char *changed =
        cmd_checkpoint_data_changed(&p->checkpoint, cmd_peer_report_trained_on(&p->report));
    if (changed != NULL)
        cmd_peer_report_note(&p->report, NOTE_WARNING, "checkpoint", changed);
    p->report.wanted_drift = run->final_drift;
    err = run_log_reserve_space(&p->report.diary, t->n_params, error);
    return err < 0 ? err : check_run(p, run, error);
}

static int configure(struct peer *p)
{
    char error[SETTINGS_ERROR_MAX];
    p->config.node.make_trainer = make_trainer;
    p->config.node.make_trainer_self = p;
    p->config.node.log_debug = cmd_log_shows(NOTE_DEBUG);
    settings_limits(p->o, &p->config.node);
    p->config.signals = true;
    p->config.leash_fd =
        options_given(p->o, "parent-fd") ? (int)options_uint(p->o, "parent-fd") : -1;
    p->config.self = &p->report;
    p->config.note = cmd_peer_report_note;
    p->config.measured = cmd_peer_report_measured;
    p->config.write_model = cmd_peer_report_store;
    p->config.node.keep_promise = run_log_keep_promise;
    p->config.node.keep_promise_self = &p->report.diary;
    p->config.node.read_model = run_log_read_model;
    p->config.node.read_model_self = &p->report.diary;
    p->config.late_ms = cmd_peer_report_late_ms;
    p->config.trained_on = cmd_peer_report_trained_on;
    int err = settings_uplink(p->o, &p->config.node, error);
    return err < 0 ? cmd_fail(p->o, cmd_exit_of(err), "%s", error) : take_run(p);
}

static int take_options(struct peer *p)
{
    static int (*const step[])(struct peer *) = {take_addresses, take_listen, take_name, take_key,
                                                 take_members,   take_begin,  configure, take_out,
                                                 take_identity,  check_owner, take_token};
    int code = CMD_OK;
    p->settings.o = p->o;
    for (size_t i = 0; i < sizeof step / sizeof *step && code == CMD_OK && !p->dir.finished; i++)
        code = step[i](p);
    return code;
}

/* ---- Reading the data ---- */

/* Reads the training data. A peer that does not begin the run does not know the run yet, and takes
 * the data kind from --data. Synthetic data are generated again later if the run has another
 * seed. */
static int read_data(struct peer *p)
{
    char error[RUN_ERROR_MAX], why[DATA_ERROR_MAX], given[DATA_KIND_MAX] = "glyphs";
    const struct node_config *c = &p->config.node;
    const char *spec = p->training.data_spec, *kind = given;
    uint64_t seed;
    if (!number_whole(run_flags_value(&c->flags, "seed"), &seed))
        seed = 1; /* The option --seed was not given: its default is 1. */
    if (c->found) {
        kind = sgd_values(&c->run)->data;
        seed = c->run.seed;
    } else if (spec != NULL && data_kind(spec, given, why) < 0) {
        return cmd_fail(p->o, CMD_USAGE, "--data: %s", why);
    }
    int err = cmd_training_data(&p->training, kind, seed, error);
    return err < 0 ? cmd_fail(p->o, cmd_exit_of(err), "%s", error) : CMD_OK;
}

/* Checks that this peer can take part in the run that the cluster has begun, and makes the trainer
 * of that run. */
static int check_cluster_run(struct peer *p, const struct run *run)
{
    char error[RUN_ERROR_MAX];
    struct trainer t;
    int err = run_check_flags(run, &p->config.node.flags, error);
    if (err == 0)
        err = check_run(p, run, error);
    if (err == 0)
        err = cmd_training_make(&p->training, run, &t, error);
    return err < 0 ? cmd_fail(p->o, cmd_exit_of(err), "%s", error) : CMD_OK;
}

/* Reads the data before any socket is open. A peer that read data during a run would be silent
 * for up to a minute, and a peer that cannot take part must not become a member. Most peers
 * first ask the cluster for its run. Exceptions: a peer that resumes from a checkpoint already
 * has the run; for a child of `hearsay local` the parent has checked it; and a peer with a token
 * is not on the allow-list, so its question would be refused. */
static int prepare(struct peer *p)
{
    struct run run;
    const struct node_config *c = &p->config.node;
    bool asks = p->config.leash_fd < 0 && c->n_resume == 0 && c->certificate == NULL;
    if (asks
        && cmd_cluster_run(c->bootstrap, c->n_bootstrap, p->settings.psk, &p->settings.identity,
                           c->flags.trainer, &run))
        return check_cluster_run(p, &run);
    return read_data(p);
}

/* Reads the data, and prepares their column statistics. A peer that begins a run with --shard own
 * must combine the column statistics of all members' files. */
static int prepare_moments(struct peer *p)
{
    struct node_config *c = &p->config.node;
    bool founds = c->found && !p->again && cmd_column_statistics_pooled(&p->training, &c->run);
    int code = prepare(p);
    if (code == CMD_OK)
        cmd_column_statistics_open(&p->moments, &p->training, c, founds);
    return code;
}

/* ---- Running the command ---- */

static int run_driver(struct peer *p, struct uv_driver *d, uv_loop_t *loop)
{
    char id[2 * WIRE_ID_BYTES + 1];
    uv_identity_text(p->settings.identity.sign_pk, id);
    if (!p->report.notes_as_json)
        (void)cmd_fail(p->o, CMD_OK, "%s is %s", p->settings.name, id);
    diary_monitor_start(&p->report.monitor, loop, d);
    uv_driver_start(d);
    uv_run(loop, UV_RUN_DEFAULT);
    int exit_code = cmd_peer_report_finish(&p->report, d);
    if (uv_driver_stuck(d)) {
        /* A thread hangs in a job of the node or in a name lookup, so the process must exit without
         * waiting for its threads. */
        fflush(NULL);
        _exit(exit_code);
    }
    diary_monitor_stop(&p->report.monitor);
    uv_run(loop, UV_RUN_NOWAIT);
    uv_driver_close(d);
    return exit_code;
}

/* Reports why the driver could not be opened. The exit code is CMD_USAGE for a wrong flag, and
 * CMD_FAILED if the system lacks a resource. */
static int not_open(struct peer *p, enum uv_driver_part part, int err)
{
    int code = cmd_exit_of(err);
    char error[SETTINGS_ERROR_MAX];
    switch (part) {
    case UV_DRIVER_DOOR:
        settings_not_listening(&p->settings, &p->config, err, error);
        return cmd_fail(p->o, code, "%s", error);
    case UV_DRIVER_LEASH:
        return cmd_fail(p->o, code, "--parent-fd %d: %s", p->config.leash_fd, uv_strerror(err));
    case UV_DRIVER_REST:
        break;
    }
    return cmd_fail(p->o, CMD_FAILED, "this peer cannot start: %s", uv_strerror(err));
}

static int open_and_run(struct peer *p)
{
    uv_loop_t loop;
    struct uv_driver *d;
    enum uv_driver_part part = UV_DRIVER_REST;
    int err = uv_spare_loop_init(&loop);
    if (err < 0)
        return not_open(p, part, err);
    err = uv_driver_open(&d, &loop, &p->config, &part);
    while (err == -EADDRINUSE && part == UV_DRIVER_DOOR
           && settings_move(&p->settings, &p->config)) {
        cmd_peer_report_note(&p->report, NOTE_INFO, "settings", p->settings.notice);
        err = uv_driver_open(&d, &loop, &p->config, &part);
    }
    int code = err < 0 ? not_open(p, part, err) : run_driver(p, d, &loop);
    (void)uv_loop_close(&loop);
    return code;
}

static int open_monitor(struct peer *p)
{
    char error[DIARY_MONITOR_ERROR];
    int err = diary_monitor_open(&p->report.monitor, options_text(p->o, "metrics"),
                                 &p->report.diary, &p->config.node, error);
    return err < 0 ? cmd_fail(p->o, cmd_exit_of(err), "%s", error) : CMD_OK;
}

static int open_trace(struct peer *p)
{
    int code = cmd_peer_report_open_trace(&p->report);
    if (p->report.trace_peer != NULL) {
        p->config.watch = cmd_peer_report_watch;
        p->config.stepped = cmd_peer_report_stepped;
    }
    return code;
}

int cmd_peer(const struct options *o)
{
    /* `p` is static, because struct peer is too large for the stack. */
    static struct peer p;
    p.o = o;
    cmd_peer_report_open(&p.report, o);
    uv_driver_defaults(&p.config);
    signal(SIGPIPE, SIG_IGN);
    cmd_peers_raise_limits();
    int code = take_options(&p);
    if (code == CMD_OK && !p.dir.finished)
        code = open_monitor(&p);
    if (code == CMD_OK && !p.dir.finished)
        code = open_trace(&p);
    if (code == CMD_OK && !p.dir.finished)
        code = prepare_moments(&p);
    if (code == CMD_OK)
        code = p.dir.finished ? cmd_out_print_finished(&p.dir) : open_and_run(&p);
    diary_monitor_close(&p.report.monitor);
    cmd_trace_close(&p.report.trace);
    run_log_close(&p.report.diary);
    cmd_checkpoint_close(&p.checkpoint, p.report.over);
    cmd_out_close(&p.dir);
    cmd_column_statistics_close(&p.moments);
    cmd_training_close(&p.training);
    settings_close(&p.settings);
    return code;
}
