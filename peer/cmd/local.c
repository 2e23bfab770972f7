/* peer/cmd/local.c -- `hearsay local`: runs a cluster of peer processes on this machine.
 *
 *   parent: cluster key, listening sockets, parent pipe -- spawns --> `hearsay peer` x n
 *   children: JSON lines on stdout --> progress, and the summary of each peer
 *   at the end: every child's model.safetensors --> the exact consensus distance
 *
 * Files under --out: cluster.key, and peer-0/, peer-1/, ... with the files that
 * peer/cmd/peer_report.h lists. No child outlives this process, however this process ends
 * (peer/uv/cluster.h). The closing JSON object is described in peer/cmd/local_result.h.
 */
#include "nn/math/number.h"
#include "peer/cmd/checkpoint.h"
#include "peer/cmd/cmd.h"
#include "peer/cmd/duration.h"
#include "peer/cmd/files.h"
#include "peer/cmd/local_check.h"
#include "peer/cmd/local_result.h"
#include "peer/cmd/log.h"
#include "peer/cmd/metrics_ports.h"
#include "peer/cmd/out.h"
#include "peer/cmd/peers.h"
#include "peer/cmd/scratch.h"
#include "peer/cmd/trace_option.h"
#include "peer/run_log/checkpoint_heads.h"
#include "peer/run_log/run_log.h"
#include "peer/uv/cluster.h"
#include "peer/uv/fd_reserve.h"
#include "peer/uv/signal_debounce.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PEERS_MAX = 256,
    BOOTSTRAP = 3, /* Largest number of bootstrap addresses that a child gets. */
    /* Longest wait for the children of an earlier, killed parent to exit, in milliseconds. */
    GONE_MS = 20000,
    /* Interval, in milliseconds, at which this process checks whether the children of a killed
     * parent have exited. */
    LOOK_MS = 20,
    ARGS_MAX = 96,
    ARG_MAX = RUN_VALUE_MAX + 64,
    /* Time in milliseconds from the end of the run at the first peer until this process first
     * reports which peers still run. The interval doubles after each report. */
    WAIT_MS = 5000,
    /* Longest interval between two reports of peers that still run, in milliseconds. */
    WAIT_MOST_MS = 300 * 1000
};

/* clang-format off */
const struct option_row cmd_local_rows[] = {
    {.name = "peers", .kind = OPTION_UINT, .arg = "N", .fallback = "8", .min = 1, .max = PEERS_MAX,
     .help = "number of peers"},
    CMD_ROW_MIN_PEERS,
    {.name = "shard", .kind = OPTION_CHOICE, .arg = "split|auto", .fallback = "split",
     .help = "split: part i of N for peer i; auto: samples are shared among the members that are alive"},
    CMD_ROW_EPOCHS,
    CMD_ROW_INIT,
    {.name = "out", .kind = OPTION_TEXT, .arg = "DIR",
     .help = "directory of this run, with a folder for each peer; default: a temporary directory, which is deleted after consensus and kept otherwise"},
    CMD_ROW_FRESH,
    CMD_ROW_CHECK,
    ROWS_EVALUATE_EVERY,
    ROWS_EVALUATE_SAMPLES,
    ROWS_CHECKPOINT,
    ROWS_FORGET,
    ROWS_PATIENCE,
    ROWS_WORKER_LIMIT,
    ROWS_METRICS,
    CMD_ROW_LOG_LEVEL,
    {.name = "trace", .kind = OPTION_FLAG,
     .help = "write the protocol events of each peer to " CMD_TRACE_NAME " in its folder under --out"},
    {.name = "json", .kind = OPTION_FLAG,
     .help = "print one JSON object to stdout at the end"},
    {.name = NULL},
};
/* clang-format on */

struct local
{
    const struct options *o;
    uint32_t n;
    char out[CMD_PATH_MAX], key[CMD_PATH_MAX], program[CMD_PATH_MAX];
    struct cmd_out dir; /* Output directory that --out names. */
    /* For each peer: true if it is started with --fresh, although the run as a whole has not
     * finished (find_fresh()). */
    bool again[PEERS_MAX];
    struct run_flags flags; /* Run flags of the peers, including min-peers. */
    uv_loop_t loop;
    struct uv_cluster cluster;
    uv_signal_t on_int, on_term, on_hup;
    struct uv_twice asked;
    uv_timer_t wait;
    /* over_ns: time at which the first peer that completed the run exited, by uv_hrtime(), in
     * nanoseconds; 0: no peer has. wait_ms: interval until the next report of the peers that still
     * run. */
    uint64_t over_ns, wait_ms;
    struct cmd_local_result result;
    struct cmd_progress progress;
    uint64_t begin_ns;
    uint32_t n_ended;
    bool interrupted, bad_input, begun;
    bool all_ended; /* True if all peers had finished before this process began. */
};

static double seconds(const struct local *l)
{
    return (double)(uv_hrtime() - l->begin_ns) * 1e-9;
}

/* ---- Watching the child processes ---- */

/* Prints a note (message for users) of peer i. Without --log-level, prints it only if it is a
 * warning or an error. */
static void print_note(struct local *l, uint32_t i, const struct cmd_local_note *note)
{
    if (!cmd_log_shows(note->level) || (!cmd_log_given() && note->level < NOTE_WARNING))
        return;
    cmd_progress_end_line(&l->progress);
    if (cmd_log_given())
        cmd_log_print(note->level, note->module, l->result.name[i], note->text);
    else
        cmd_fail(l->o, CMD_OK, "%s: %s%s", l->result.name[i],
                 note->level == NOTE_WARNING ? "warning: " : "", note->text);
}

static void on_line(void *self, uint32_t i, char *text)
{
    struct local *l = self;
    struct cmd_local_note note;
    if (cmd_local_result_line(&l->result, i, text, &note))
        print_note(l, i, &note);
    l->begun |= l->result.row[i].round > 0;
    cmd_progress_show(&l->progress, l->result.row, l->n, seconds(l), false);
}

static void close_handles(struct local *l)
{
    uv_close((uv_handle_t *)&l->wait, NULL);
    uv_close((uv_handle_t *)&l->on_int, NULL);
    uv_close((uv_handle_t *)&l->on_term, NULL);
    uv_close((uv_handle_t *)&l->on_hup, NULL);
}

static void finish_if_all_ended(struct local *l)
{
    if (l->n_ended < l->n)
        return;
    uv_cluster_close(&l->cluster);
    close_handles(l);
}

/* Appends the name of peer i to the list of peers that still run. `n`: number of names so far. */
static void add_name(const struct local *l, uint32_t i, uint32_t n, char *names, size_t size)
{
    enum { NAMED = 8 };
    size_t len = strlen(names);
    if (n < NAMED)
        snprintf(names + len, size - len, "%s%s%s", n > 0 ? ", " : "", l->result.name[i],
                 uv_cluster_stopped(&l->cluster, i) ? " (stopped)" : "");
    else if (n == NAMED)
        snprintf(names + len, size - len, " and others");
}

/* If peer i is stopped (SIGSTOP), and --quorum-timeout has passed since the first peer completed the
 * run, ends peer i and counts it as failed. A peer that is not stopped may take any time. Returns
 * true if peer i was ended. */
static bool end_if_stopped(struct local *l, uint32_t i)
{
    double waited_s = (double)(uv_hrtime() - l->over_ns) * 1e-9;
    if (waited_s < options_real(l->o, "quorum-timeout") || !uv_cluster_stopped(&l->cluster, i))
        return false;
    cmd_progress_end_line(&l->progress);
    cmd_fail(l->o, CMD_FAILED,
             "%s is stopped, and --quorum-timeout has passed since the run ended: killing it",
             l->result.name[i]);
    l->result.given_up[i] = true;
    l->result.failed = true;
    uv_cluster_stop_one(&l->cluster, i);
    return true;
}

static void wait_on(struct local *l);

static void on_wait(uv_timer_t *timer)
{
    struct local *l = timer->data;
    char names[512] = "";
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->n && !l->cluster.stopping; i++)
        if (l->cluster.child[i].running && !l->cluster.child[i].ending && !end_if_stopped(l, i))
            add_name(l, i, n++, names, sizeof names);
    if (n > 0) {
        cmd_progress_end_line(&l->progress);
        cmd_fail(l->o, CMD_OK, "waiting for %s: the run ended for other peers %.0f s ago", names,
                 (double)(uv_hrtime() - l->over_ns) * 1e-9);
    }
    l->wait_ms = 2 * l->wait_ms < WAIT_MOST_MS ? 2 * l->wait_ms : WAIT_MOST_MS;
    wait_on(l);
}

/* Starts a timer for the next report of peers that still run. The timer fires at the end of
 * --quorum-timeout, if this is earlier. */
static void wait_on(struct local *l)
{
    double waited_ms = (double)(uv_hrtime() - l->over_ns) * 1e-6;
    double left_ms = 1000 * options_real(l->o, "quorum-timeout") - waited_ms;
    uint64_t ms = left_ms > 0 && left_ms < (double)l->wait_ms ? (uint64_t)left_ms + 1 : l->wait_ms;
    uv_update_time(&l->loop);
    uv_timer_start(&l->wait, on_wait, ms, 0);
}

/* Called when a peer has completed the run: begins to report, at growing intervals, which peers
 * still run. */
static void begin_to_wait(struct local *l)
{
    if (l->over_ns != 0)
        return;
    l->over_ns = uv_hrtime();
    l->wait_ms = WAIT_MS;
    wait_on(l);
}

/* Returns true if a user or the system killed the peer. The result of the other peers is then still
 * valid. After any other end the command fails: another signal means a bug of hearsay, and an exit
 * code other than 0 and 3 means a failure of the environment. */
static bool was_killed(const struct uv_cluster_child *k)
{
    return k->signal == SIGKILL || k->signal == SIGTERM || k->signal == SIGINT
           || k->signal == SIGHUP;
}

/* Handles the end of peer i's process. The end is not reported if this process has stopped the peer
 * on purpose.
 *
 *   Exit code 0 or 3: the run has ended. If peer i has trained, this process begins to report which
 *   peers still run.
 *   Killed by a user or the system: the other peers continue if the run has begun. Otherwise the
 *   command fails, and all peers stop.
 *   Any other signal or code: the command fails. The other peers continue if the run has begun.
 *   Otherwise all peers stop.
 */
static void on_ended(void *self, uint32_t i)
{
    struct local *l = self;
    const struct uv_cluster_child *k = &l->cluster.child[i];
    int code = k->signal ? 128 + k->signal : (int)k->status;
    l->result.exit_code[i] = code;
    l->result.row[i].dead = code != CMD_OK && code != CMD_APART;
    l->n_ended++;
    if (l->result.row[i].round > 0 && (code == CMD_OK || code == CMD_APART))
        begin_to_wait(l);
    if (code != CMD_OK && code != CMD_APART && !l->cluster.stopping && !l->result.given_up[i]) {
        cmd_progress_end_line(&l->progress);
        const char *more = l->begun ? "; the other peers continue"
                                    : "; the peer failed before training, so all peers stop";
        if (k->signal)
            cmd_fail(l->o, CMD_FAILED, "%s was ended by signal %d%s", l->result.name[i], k->signal,
                     more);
        else
            cmd_fail(l->o, CMD_FAILED, "%s ended with code %d%s", l->result.name[i], (int)k->status,
                     more);
        l->result.failed |= !l->begun || !was_killed(k);
        l->bad_input |= k->status == CMD_USAGE;
        /* If the run has not begun, it cannot begin without peer i: stop the other peers, which
         * would wait forever. */
        if (!l->begun)
            uv_cluster_stop(&l->cluster);
    }
    finish_if_all_ended(l);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct local *l = handle->data;
    if (uv_twice(&l->asked, number, (int64_t)(uv_hrtime() / 1000)))
        return;
    cmd_progress_end_line(&l->progress);
    cmd_fail(l->o, CMD_OK, "%s",
             l->interrupted ? "killing all peers now"
                            : "stopping: each peer finishes its step and takes a checkpoint; press "
                              "Ctrl-C again to end all peers now");
    if (l->interrupted)
        uv_cluster_kill(&l->cluster);
    l->interrupted = true;
    uv_cluster_stop(&l->cluster);
}

/* ---- Command lines of the children ---- */

struct args
{
    char *at[ARGS_MAX + 1];
    uint32_t n;
    bool failed;
};

__attribute__((format(printf, 2, 3))) static void add(struct args *a, const char *format, ...)
{
    char text[CMD_PATH_MAX + ARG_MAX];
    va_list list;
    va_start(list, format);
    int n = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    assert(a->n < ARGS_MAX && n < (int)sizeof text);
    a->at[a->n] = strdup(text);
    a->failed |= a->at[a->n] == NULL;
    a->n++;
}

/* Adds the bootstrap addresses of peer i to its command line. They are the addresses of peer 0 and
 * of the peers with the numbers before and after i. */
static void add_bootstrap(struct args *a, const struct local *l, uint32_t i)
{
    uint32_t to[BOOTSTRAP] = {0, (i + 1) % l->n, (i + l->n - 1) % l->n}, n = 0;
    char text[BOOTSTRAP * 32] = "";
    for (uint32_t k = 0; k < BOOTSTRAP; k++) {
        bool known = to[k] == i;
        for (uint32_t j = 0; j < k; j++)
            known |= to[j] == to[k];
        size_t at = strlen(text);
        if (!known)
            snprintf(text + at, sizeof text - at, "%s127.0.0.1:%u", n++ ? "," : "",
                     (unsigned)l->cluster.child[to[k]].port);
    }
    if (n > 0)
        add(a, "--bootstrap=%s", text);
}

static void make_args(struct args *a, const struct local *l, uint32_t i)
{
    static const char *const passed[] = {
        "init",       "evaluate-every", "evaluate-samples", "checkpoint",
        "member-ttl", "quorum-timeout", "straggler-timeout"};
    char metrics[DIARY_MONITOR_ADDRESS];
    add(a, "%s", l->program);
    add(a, "peer");
    add(a, "--listen=fd:%d", UV_CLUSTER_LISTEN_FD);
    add(a, "--parent-fd=%d", UV_CLUSTER_LEASH_FD);
    add(a, "--key=%s", l->key);
    add(a, "--name=%s", l->result.name[i]);
    add(a, "--out=%s/%s", l->out, l->result.name[i]);
    add(a, "--json");
    if (l->again[i])
        add(a, "--fresh");
    if (strcmp(options_text(l->o, "shard"), "split") == 0)
        add(a, "--shard=%u/%u", (unsigned)i + 1, (unsigned)l->n);
    else
        add(a, "--shard=auto");
    if (options_given(l->o, "data"))
        add(a, "--data=%s", options_text(l->o, "data"));
    const struct run_key *key;
    for (size_t k = 0; (key = run_key_at(l->flags.trainer, k)) != NULL; k++)
        if (l->flags.value[k][0] && !key->is_per_peer)
            add(a, "--%s=%s", key->name, l->flags.value[k]);
    if (!options_given(l->o, "rounds"))
        add(a, "--epochs=%s", options_text(l->o, "epochs"));
    for (size_t k = 0; k < sizeof passed / sizeof *passed; k++) {
        if (options_text(l->o, passed[k]) != NULL)
            add(a, "--%s=%s", passed[k], options_text(l->o, passed[k]));
    }
    if (options_given(l->o, "log-level"))
        add(a, "--log-level=%s", options_text(l->o, "log-level"));
    if (options_flag(l->o, "trace"))
        add(a, "--trace=%s/%s/" CMD_TRACE_NAME, l->out, l->result.name[i]);
    if (options_given(l->o, "metrics"))
        add(a, "--metrics=%s", cmd_metrics_ports_address(l->o, i, metrics));
    /* With --bandwidth=off the result depends only on the seed. Without this option, each peer
     * would choose its codec by the measured bandwidth. */
    add(a, "--bandwidth=off");
    add_bootstrap(a, l, i);
}

extern char **environ;

/* Returns the environment for the children: a copy of this process's environment without HEARSAY_*
 * variables, because their values are already in the children's flags. Each child gets one BLAS
 * thread, because the processes share the cores. */
static char **make_env(void)
{
    static char threads[] = "OPENBLAS_NUM_THREADS=1";
    size_t n = 0, k = 0;
    while (environ[n])
        n++;
    char **env = calloc(n + 2, sizeof *env);
    if (env == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        if (strncmp(environ[i], "HEARSAY_", 8) != 0
            && strncmp(environ[i], "OPENBLAS_NUM_THREADS=", 21) != 0)
            env[k++] = environ[i];
    }
    env[k] = threads;
    return env;
}

static int spawn(struct local *l, uint32_t i, char **env)
{
    struct args a = {.n = 0};
    make_args(&a, l, i);
    int err = a.failed ? -ENOMEM : uv_cluster_spawn(&l->cluster, i, a.at, env);
    for (uint32_t k = 0; k < a.n; k++)
        free(a.at[k]);
    return err;
}

static void spawn_all(struct local *l)
{
    char **env = make_env();
    for (uint32_t i = 0; i < l->n; i++) {
        int err = env == NULL ? -ENOMEM : l->result.failed ? -ECANCELED : spawn(l, i, env);
        if (err == 0)
            continue;
        if (!l->result.failed)
            cmd_fail(l->o, CMD_FAILED, "cannot start %s: %s", l->result.name[i], uv_strerror(err));
        l->result.failed = true;
        l->result.exit_code[i] = CMD_FAILED;
        l->n_ended++;
        uv_cluster_stop(&l->cluster);
    }
    free(env);
    finish_if_all_ended(l);
}

/* ---- Checks and files before the run ---- */

static int check(struct local *l)
{
    return cmd_local_check(l->o, &l->flags, &l->result.run, &l->result.model);
}

static int look(struct local *l)
{
    const char *given = options_text(l->o, "out");
    if (given == NULL && options_flag(l->o, "trace"))
        return cmd_fail(l->o, CMD_USAGE, "--trace: needs --out, which keeps the traces");
    if (given == NULL)
        return CMD_OK;
    if (strlen(given) + WIRE_NAME_MAX + 32 >= sizeof l->out)
        return cmd_fail(l->o, CMD_USAGE, "--out: the path is too long");
    strcpy(l->out, given);
    return cmd_local_check_out(l->o, &l->dir, l->out, &l->result.run);
}

/* Last step of a command with --check: checks the options that check() and look() did not check,
 * and prints the result. */
static int end_check(struct local *l)
{
    int64_t us;
    int code = cmd_duration(l->o, "checkpoint", &us);
    code = code == CMD_OK ? cmd_duration(l->o, "member-ttl", &us) : code;
    return code == CMD_OK ? cmd_out_print_check(l->o, l->dir.finished) : code;
}

static int make_out(struct local *l)
{
    if (l->out[0] == '\0') {
        int err = cmd_scratch_make(l->out, sizeof l->out / 2);
        if (err < 0)
            return cmd_fail(l->o, CMD_FAILED, "cannot make the directory %s: %s", l->out,
                            strerror(-err));
        int code = cmd_out_examine(&l->dir, l->o, l->out, NULL, &l->result.run);
        if (code != CMD_OK)
            return code;
    }
    int64_t every_us, forget_us;
    int code = cmd_duration(l->o, "checkpoint", &every_us);
    if (code == CMD_OK)
        code = cmd_duration(l->o, "member-ttl", &forget_us);
    if (code == CMD_OK)
        code = cmd_out_open(&l->dir);
    return code == CMD_OK && !l->dir.finished ? cmd_out_claim(&l->dir) : code;
}

/* Waits until no process has locked the directory. The children of a killed `hearsay local` need a
 * short time to exit. */
static int wait_for_earlier_start(struct local *l, const char *dir)
{
    long pid = 0;
    for (int ms = 0; outdir_is_locked(dir, &pid); ms += LOOK_MS) {
        if (ms >= GONE_MS)
            return cmd_fail(l->o, CMD_USAGE, "--out: %s is in use by process %ld", dir, pid);
        uv_sleep(LOOK_MS);
    }
    return CMD_OK;
}

/* Handles the summary that peer i wrote in an earlier start, as if the peer had just ended. */
static void take_summary(struct local *l, uint32_t i, const json_t *summary)
{
    char *text = json_dumps(summary, JSON_COMPACT | JSON_REAL_PRECISION(12));
    double ended_s = json_number_value(json_object_get(summary, "time_s"));
    l->again[i] = text != NULL;
    l->n_ended += text != NULL;
    if (text != NULL)
        (void)cmd_local_result_line(&l->result, i, text, NULL);
    l->result.exit_code[i] = (int)json_integer_value(json_object_get(summary, "exit_code"));
    l->result.seconds = ended_s > l->result.seconds ? ended_s : l->result.seconds;
    free(text);
}

/* Decides which peers are started with --fresh: peers that finished in an earlier start, and peers
 * that stored a final model and have no checkpoint, because such a peer would not begin the run
 * again. If there is such a peer, the run begins at round 0, so all peers with a final model are
 * started with --fresh. */
static void find_fresh(struct local *l)
{
    char dir[CMD_PATH_MAX];
    uint64_t round[SLOTS];
    bool final[PEERS_MAX] = {false}, any = false;
    for (uint32_t i = 0; i < l->n; i++) {
        if (cmd_path(dir, l->out, l->result.name[i]) < 0)
            continue;
        checkpoint_heads_rounds(dir, round);
        final[i] = run_log_past(dir, 0) == NODE_PAST_FINAL;
        any |= l->again[i] || (final[i] && round[0] == 0);
    }
    for (uint32_t i = 0; i < l->n && any; i++)
        l->again[i] |= final[i];
}

/* Looks for peers that finished in an earlier start, which happens if the parent was killed near
 * the end of the run. If all peers finished, the result is made from their summaries. Otherwise all
 * peers start again, and the results of the peers that had finished are moved to directories
 * old.N. */
static int load_finished_peers(struct local *l)
{
    char dir[CMD_PATH_MAX];
    int code = CMD_OK;
    for (uint32_t i = 0; i < l->n && code == CMD_OK; i++) {
        if (cmd_path(dir, l->out, l->result.name[i]) < 0)
            return cmd_fail(l->o, CMD_USAGE, "--out: the path is too long");
        code = wait_for_earlier_start(l, dir);
        json_t *summary = outdir_read_summary(dir);
        cmd_earlier_starts_add(&l->result.past, dir, summary != NULL);
        if (summary != NULL)
            take_summary(l, i, summary);
        json_decref(summary);
    }
    l->all_ended = code == CMD_OK && l->n_ended == l->n;
    if (l->all_ended) {
        cmd_fail(l->o, CMD_OK, "all peers of this run have finished before, in %s", l->out);
        /* A peer has failed if its exit code is neither CMD_OK nor CMD_APART. */
        for (uint32_t i = 0; i < l->n; i++)
            l->result.failed |=
                l->result.exit_code[i] != CMD_OK && l->result.exit_code[i] != CMD_APART;
    } else {
        cmd_local_result_forget(&l->result);
        find_fresh(l);
        if (code == CMD_OK && l->dir.begun)
            cmd_local_report_resume(l->o, l->out, l->n, &l->result.run);
    }
    l->n_ended = 0;
    return code;
}

/* Writes a new cluster key, so that no peer of an earlier start can connect to this cluster. */
static int make_key(struct local *l)
{
    uint8_t key[KEYFILE_BYTES];
    char error[KEYFILE_ERROR_MAX];
    if (cmd_path(l->key, l->out, "cluster.key") < 0)
        return cmd_fail(l->o, CMD_USAGE, "--out: the path is too long");
    unlink(l->key);
    if (uv_random(NULL, NULL, key, sizeof key, 0, NULL) < 0)
        return cmd_fail(l->o, CMD_FAILED, "cannot get random bytes from the system");
    int err = keyfile_write(l->key, key, error);
    explicit_bzero(key, sizeof key);
    return err < 0 ? cmd_fail(l->o, CMD_FAILED, "%s", error) : CMD_OK;
}

static int find_program(struct local *l)
{
    size_t n = sizeof l->program;
    int err = uv_exepath(l->program, &n);
    if (err < 0)
        return cmd_fail(l->o, CMD_FAILED, "cannot find the path of this executable: %s",
                        uv_strerror(err));
    cmd_peers_raise_limits();
    return CMD_OK;
}

static int open_cluster(struct local *l)
{
    if (l->all_ended)
        return CMD_OK;
    uv_signal_t *signals[] = {&l->on_int, &l->on_term, &l->on_hup};
    static const int number[] = {SIGINT, SIGTERM, SIGHUP};
    int err = uv_spare_loop_init(&l->loop);
    if (err == 0)
        err = uv_cluster_open(&l->cluster, &l->loop, l->n);
    if (err < 0)
        return cmd_fail(l->o, CMD_FAILED, "cannot open %u sockets: %s", (unsigned)l->n,
                        uv_strerror(err));
    (void)uv_timer_init(&l->loop, &l->wait);
    l->wait.data = l;
    l->cluster.self = l;
    l->cluster.line = on_line;
    l->cluster.ended = on_ended;
    bool hangup_ignored = uv_hangup_ignored();
    for (int i = 0; i < 3; i++) {
        err = uv_signal_init(&l->loop, signals[i]);
        signals[i]->data = l;
        if (err == 0 && (number[i] != SIGHUP || !hangup_ignored))
            err = uv_signal_start(signals[i], on_signal, number[i]);
        if (err < 0)
            return cmd_fail(l->o, CMD_FAILED, "cannot catch signals: %s", uv_strerror(err));
    }
    return CMD_OK;
}

/* ---- Running the command ---- */

static int train(struct local *l)
{
    if (l->all_ended)
        return cmd_local_result_print(&l->result, l->o, options_flag(l->o, "json"));
    l->begin_ns = uv_hrtime();
    cmd_progress_open(&l->progress, stderr);
    (void)cmd_fail(l->o, CMD_OK, "%u peer%s, 127.0.0.1:%u to :%u, everything in %s%s",
                   (unsigned)l->n, number_plural(l->n), (unsigned)l->cluster.child[0].port,
                   (unsigned)l->cluster.child[l->n - 1].port, l->out,
                   l->result.is_temporary
                       ? ", deleted if the run ends in consensus (keep it with --out DIR)"
                       : "");
    spawn_all(l);
    uv_run(&l->loop, UV_RUN_DEFAULT);
    l->result.seconds = seconds(l);
    cmd_progress_show(&l->progress, l->result.row, l->n, l->result.seconds, true);
    uv_cluster_free(&l->cluster);
    (void)uv_loop_close(&l->loop);
    if (l->interrupted)
        return cmd_local_result_interrupted(&l->result, l->o, options_given(l->o, "out"));
    if (l->bad_input && !l->begun)
        return CMD_USAGE;
    return cmd_local_result_print(&l->result, l->o, options_flag(l->o, "json"));
}

int cmd_local(const struct options *o)
{
    /* `l` is static, because struct local is too large for the stack. */
    static struct local l;
    static int (*const steps[])(struct local *) = {
        check, look, find_program, make_out, load_finished_peers, make_key, open_cluster, train};
    bool checks = options_flag(o, "check");
    l.o = o;
    l.n = (uint32_t)options_uint(o, "peers");
    signal(SIGPIPE, SIG_IGN);
    if (cmd_local_result_open(&l.result, l.n, l.out) < 0)
        return cmd_fail(o, CMD_FAILED, "out of memory");
    l.result.is_temporary = !options_given(o, "out");
    int code = CMD_OK;
    /* The option --check runs only the first two steps: check() and look(). */
    size_t n_steps = checks ? 2 : sizeof steps / sizeof *steps;
    for (size_t i = 0; i < n_steps && code == CMD_OK && !l.dir.finished; i++)
        code = steps[i](&l);
    if (code == CMD_OK && checks)
        code = end_check(&l);
    else if (code == CMD_OK && l.dir.finished)
        code = cmd_out_print_finished(&l.dir);
    cmd_out_close(&l.dir);
    int err = l.result.delete_files ? cmd_scratch_remove(l.out) : 0;
    if (err < 0)
        cmd_fail(o, CMD_OK, "cannot remove %s: %s", l.out, strerror(-err));
    cmd_local_result_close(&l.result);
    return code;
}
