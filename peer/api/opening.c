/* peer/api/opening.c -- prepares a run: turns options, tensors, key, output directory and
 * checkpoints into a driver's configuration, as peer/cmd/peer.c does for the command line. */
#include "nn/shards/shard.h"
#include "peer/api/handle.h"
#include "peer/run/duration.h"
#include "peer/run/rows.h"
#include "peer/uv/identity.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Largest checkpoint that is read, in bytes: 64 GiB. */
static const uint64_t most_bytes = UINT64_C(64) << 30;

#define ROWS_INITIAL                                                                               \
    {                                                                                              \
        .name = "initial", .kind = OPTION_CHOICE, .arg = "false|true", .fallback = "false",        \
        .help = "true: a run that has not started yet starts with the model of this peer"          \
    }

/* clang-format off */
static const struct option_row rows[] = {
    ROWS_LISTEN,
    ROWS_BOOTSTRAP,
    ROWS_KEY,
    {.name = "shard", .kind = OPTION_TEXT, .arg = "i/n|own|auto", .fallback = "auto",
     .help = "samples of this peer: part i of n; own: all samples; auto: shared among the members that are alive"},
    ROWS_NAME,
    ROWS_ADVERTISE,
    ROWS_IDENTITY,
    ROWS_MEMBERS,
    ROWS_TOKEN,
    {.name = "out", .kind = OPTION_TEXT, .arg = "DIR",
     .help = "directory of this run for model, metrics, identity and checkpoints; default: nothing is written"},
    ROWS_CHECKPOINT,
    ROWS_FORGET,
    ROWS_EVALUATE_EVERY,
    ROWS_EVALUATE_SAMPLES,
    ROWS_PATIENCE,
    ROWS_WORKER_LIMIT,
    ROWS_UPLINK,
    ROWS_METRICS,
    ROWS_INITIAL,
    {.name = NULL},
};
/* clang-format on */

/* Options of a simulated peer. A simulated peer has no key, address or directory. */
static const struct option_row simulated_rows[] = {
    {.name = "shard",
     .kind = OPTION_TEXT,
     .arg = "i/n|own|auto",
     .fallback = "auto",
     .help = "samples of this peer: part i of n; own: all samples; auto: shared among the members "
             "that are alive"},
    ROWS_EVALUATE_EVERY,
    ROWS_EVALUATE_SAMPLES,
    ROWS_PATIENCE,
    ROWS_WORKER_LIMIT,
    ROWS_INITIAL,
    {.name = NULL},
};

/* Tables of the options that a handle accepts. own_*: for a program with its own model. model_*:
 * for a handle with the option "model", whose run `hearsay peer` can join, too. */
static const struct command own_command = {
    .name = "libhearsay", .rows = rows, .takes_run_flags = true, .trainer = &layout_keys};
static const struct command model_command = {
    .name = "libhearsay", .rows = rows, .takes_run_flags = true, .trainer = &sgd_keys};
static const struct command own_simulated = {
    .name = "libhearsay", .rows = simulated_rows, .takes_run_flags = true, .trainer = &layout_keys};
static const struct command model_simulated = {
    .name = "libhearsay", .rows = simulated_rows, .takes_run_flags = true, .trainer = &sgd_keys};

/* ---- Checking the options ---- */

int hearsay_option_at(size_t i, struct hearsay_option *out)
{
    const size_t n = sizeof rows / sizeof *rows - 1;
    const struct run_key *key = i < n ? NULL : run_key_at(&sgd_keys, i - n);
    if (out == NULL || (i >= n && key == NULL))
        return HEARSAY_USAGE;
    *out = i < n ? (struct hearsay_option){.name = rows[i].name,
                                           .values = rows[i].arg,
                                           .fallback = rows[i].fallback,
                                           .about = rows[i].help}
                 : (struct hearsay_option){.name = key->name,
                                           .values = options_key_arg(key),
                                           .fallback = key->fallback,
                                           .about = key->help};
    for (size_t k = 0; sgd_keys.keys[k].name != NULL; k++)
        out->needs_model |= key == &sgd_keys.keys[k];
    return HEARSAY_OK;
}

static uv_once_t once = UV_ONCE_INIT;
static uv_mutex_t getopt_lock;
static int lock_error;

static void make_lock(void)
{
    lock_error = uv_mutex_init(&getopt_lock);
}

static bool is_given(const struct hearsay *h, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < h->n_words; i++)
        if (strncmp(h->word[i] + 2, name, n) == 0 && h->word[i][2 + n] == '=')
            return true;
    return false;
}

/* Parses the options. The variables of getopt() are global to the process. Therefore a lock lets
 * only one thread parse at a time, and the variables are restored afterwards. */
static int parse_as(struct hearsay *h, const struct command *own, const struct command *model)
{
    static const struct options_io world = {.env = getenv};
    char error[OPTIONS_ERROR_MAX], *argv[HANDLE_WORDS_MAX + 2] = {"libhearsay"};
    uv_once(&once, make_lock);
    h->o = malloc(sizeof *h->o);
    if (h->o == NULL || lock_error < 0)
        return handle_fail(h, HEARSAY_SYSTEM, "out of memory for the options");
    h->by_model = is_given(h, "model") || getenv("HEARSAY_MODEL") != NULL;
    memcpy(argv + 1, h->word, h->n_words * sizeof *argv);
    uv_mutex_lock(&getopt_lock);
    int saved[3] = {optind, opterr, optopt};
    char *saved_arg = optarg;
    int err =
        options_parse(h->o, h->by_model ? model : own, (int)h->n_words + 1, argv, &world, error);
    optind = saved[0];
    opterr = saved[1];
    optopt = saved[2];
    optarg = saved_arg;
    uv_mutex_unlock(&getopt_lock);
    return err == OPTIONS_OK ? HEARSAY_OK : handle_fail(h, HEARSAY_USAGE, "%s", error);
}

static int check_shard(struct hearsay *h)
{
    char error[DATA_ERROR_MAX];
    struct shard_spec spec;
    int err = shard_spec_parse(&spec, options_text(h->o, "shard"), error);
    return err == 0 ? HEARSAY_OK : handle_fail(h, HEARSAY_USAGE, "--shard: %s", error);
}

static int parse(struct hearsay *h)
{
    return parse_as(h, &own_command, &model_command);
}

static int parse_simulated(struct hearsay *h)
{
    return parse_as(h, &own_simulated, &model_simulated);
}

static int take_settings(struct hearsay *h)
{
    static int (*const step[])(struct settings *, struct uv_driver_config *,
                               char error[SETTINGS_ERROR_MAX]) = {
        settings_addresses, settings_listen,  settings_name,
        settings_key,       settings_members, settings_begin};
    char error[SETTINGS_ERROR_MAX];
    int err = 0;
    uv_driver_defaults(&h->config);
    h->settings.o = h->o;
    for (size_t i = 0; i < sizeof step / sizeof *step && err == 0; i++)
        err = step[i](&h->settings, &h->config, error);
    if (err == 0)
        err = settings_uplink(h->o, &h->config.node, error);
    if (err == 0)
        err = settings_duration(h->o, "member-ttl", &h->config.node.forget_us, error);
    settings_limits(h->o, &h->config.node);
    if (err == 0 && h->settings.notice[0] != '\0')
        turn_note(&h->turn, 0, h->settings.notice);
    return err == 0 ? HEARSAY_OK : handle_fail(h, handle_code(err), "%s", error);
}

/* ---- Making the model and the run ---- */

static int lay_tensors(struct hearsay *h)
{
    char error[TENSORS_ERROR_MAX];
    int err = tensors_lay(&h->tensors, error);
    if (err == 0) {
        h->begin = malloc(h->tensors.n_floats * sizeof *h->begin);
        err = h->begin != NULL ? 0 : -ENOMEM;
        snprintf(error, sizeof error, "out of memory for %zu parameters", h->tensors.n_floats);
    }
    if (err < 0)
        return handle_fail(h, handle_code(err), "%s", error);
    const struct tensor *bad = tensors_first_not_finite(&h->tensors);
    if (bad != NULL)
        return handle_fail(h, HEARSAY_NOT_FINITE, "tensor %s: found a value that is not finite",
                           bad->name);
    tensors_read(&h->tensors, h->begin);
    return HEARSAY_OK;
}

/* Sets the run keys that describe the caller's tensors (peer/run/layout_keys.h). */
static int set_layout(struct hearsay *h, struct run_flags *flags, char error[RUN_ERROR_MAX])
{
    char text[LAYOUT_BEGIN], outline[TENSORS_OUTLINE];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)tensors_layout(&h->tensors));
    int err = run_flags_set(flags, "tensors", text, error);
    if (err < 0)
        return err;
    handle_begin_hash(h, h->begin, text);
    /* Among several initial models, layout_compare_initial() prefers the one with the smallest
     * hash. The first digit of the hash is therefore replaced by a rank: 0 for a peer with
     * "initial", 1 for a peer without "bootstrap", 2 for any other peer. */
    text[0] = handle_is_initial(h) ? '0' : h->config.node.n_bootstrap == 0 ? '1' : '2';
    err = run_flags_set(flags, "begin", text, error);
    snprintf(text, sizeof text, "%zu", h->tensors.dim);
    if (err == 0)
        err = run_flags_set(flags, "trained", text, error);
    snprintf(text, sizeof text, "%zu", h->tensors.n_floats);
    if (err == 0)
        err = run_flags_set(flags, "floats", text, error);
    tensors_outline(&h->tensors, outline);
    return err == 0 ? run_flags_set(flags, "outline", outline, error) : err;
}

bool handle_is_initial(const struct hearsay *h)
{
    return strcmp(options_text(h->o, "initial"), "true") == 0;
}

/* Checks the option "initial". Only a peer that describes the run can provide the initial model. */
static int check_initial(struct hearsay *h)
{
    if (!handle_is_initial(h))
        return HEARSAY_OK;
    if (h->by_model)
        return handle_fail(h, HEARSAY_USAGE,
                           "--initial: cannot be combined with --model, whose initial model comes "
                           "from --seed or --init");
    if (!h->config.node.found)
        return handle_fail(
            h, HEARSAY_USAGE,
            "--initial: this peer takes the run from other peers, expected a peer that "
            "defines the run: give --rounds and the run's other options");
    return HEARSAY_OK;
}

/* Makes the run from the options. The outline (short hashes of the tensors) is optional. If the run
 * description has no room for it, for example because the topology lists every edge, the run is
 * made without the outline. */
static int make_run(struct hearsay *h, struct run_flags *filled, char error[RUN_ERROR_MAX])
{
    struct run *run = &h->config.node.run;
    int err = run_from_flags(run, filled, error);
    char without[RUN_ERROR_MAX];
    if (err == 0 || h->by_model || run_flags_set(filled, "outline", "none", without) < 0)
        return err;
    return run_from_flags(run, filled, without) == 0 ? 0 : err;
}

/* Decides whether this peer describes the run by its own options or takes the run from the cluster:
 *
 *   A peer without "bootstrap" describes the run, and its options must be complete.
 *   A peer with "bootstrap" takes the run from the cluster if "rounds" is not set, or if one of its
 *   options needs another option that is missing (run_flags_orphan()).
 *   Any other peer with "bootstrap" describes the run.
 */
static int take_run(struct hearsay *h)
{
    char error[RUN_ERROR_MAX];
    struct node_config *c = &h->config.node;
    c->flags = h->o->run;
    c->flags.own_data = strcmp(options_text(h->o, "shard"), "own") == 0;
    bool orphan = c->n_bootstrap > 0 && run_flags_orphan(&c->flags, error);
    c->found = !orphan && (run_flags_any(&c->flags) || c->n_bootstrap == 0);
    if (!c->found)
        return HEARSAY_OK;
    struct run_flags *filled = malloc(sizeof *filled);
    if (filled == NULL)
        return handle_fail(h, HEARSAY_SYSTEM, "out of memory for the run");
    *filled = c->flags;
    int err = h->by_model ? 0 : set_layout(h, filled, error);
    if (err == 0)
        err = make_run(h, filled, error);
    free(filled);
    if (err == 0 && c->run.rounds == 0 && c->n_bootstrap > 0) {
        /* A joining peer whose options lack "rounds" takes the run from the cluster. */
        c->found = false;
        return HEARSAY_OK;
    }
    if (err == 0 && !run_is_fixed(&c->run)) {
        err = -EINVAL;
        snprintf(error, sizeof error, "%s",
                 c->run.rounds == 0
                     ? "--rounds: not given, and --bootstrap names no peer to take the run from"
                     : "--data: expected a kind that determines the shape of the samples, such as "
                       "mnist or cifar10");
    }
    return err == 0 ? HEARSAY_OK : handle_fail(h, handle_code(err), "%s", error);
}

/* ---- Opening the output directory (--out) ---- */

/* Opens the output directory. Refuses the directory of a finished run, because opening it would
 * train the run again. */
static int open_out(struct hearsay *h)
{
    char why[OUTDIR_WHY_MAX];
    h->out = options_text(h->o, "out");
    if (h->out == NULL)
        return HEARSAY_OK;
    int err = outdir_open(&h->dir, h->out, why);
    if (err < 0)
        return handle_fail(h, handle_code(err), "--out: %s", why);
    if (outdir_check_summary(h->out, why) < 0)
        return handle_fail(h, HEARSAY_USAGE,
                           "--out %s: %s; the run may have finished, so its model is not replaced: "
                           "use that model; or, if the run had not finished, delete summary.json "
                           "to continue it; or name another directory",
                           h->out, why);
    json_t *summary = outdir_read_summary(h->out);
    json_decref(summary);
    if (summary != NULL)
        return handle_fail(h, HEARSAY_USAGE,
                           "--out %s: its run has finished, and the model is in "
                           "%s/model.safetensors; name another directory, or move this one aside, "
                           "to begin a new run",
                           h->out, h->out);
    return HEARSAY_OK;
}

/* Reads the checkpoint interval. Without an output directory no checkpoint is written, but the
 * value is checked nevertheless. */
static int take_checkpoint_interval(struct hearsay *h)
{
    char error[SETTINGS_ERROR_MAX];
    int64_t us = 0;
    int err = settings_duration(h->o, "checkpoint", &us, error);
    if (err < 0)
        return handle_fail(h, handle_code(err), "%s", error);
    if (options_text(h->o, "out") != NULL)
        h->config.node.checkpoint_us = us;
    return HEARSAY_OK;
}

/* Loads the checkpoints. A system error while reading a file is a failure, because the error may be
 * temporary, and starting from an older checkpoint would lose rounds. A damaged file is skipped
 * with a warning. */
static int open_checkpoints(struct hearsay *h)
{
    struct uv_driver_config *c = &h->config;
    char there[RUN_IDENTITY_TEXT_MAX];
    if (h->out == NULL)
        return HEARSAY_OK;
    int err = disk_open(&h->disk, h->out);
    if (err < 0)
        return handle_fail(h, handle_code(err), "%s: %s", h->out, strerror(-err));
    h->has_disk = true;
    checkpoint_store_open(&h->slots, &h->disk, h->out);
    checkpoint_store_load(&h->slots, most_bytes, &h->found);
    for (size_t i = 0; i < h->found.n_bad; i++) {
        if (h->found.bad[i].err != -EINVAL)
            return handle_fail(h, HEARSAY_SYSTEM, "%s", h->found.bad[i].why);
        turn_note(&h->turn, 1, h->found.bad[i].why);
    }
    for (size_t i = 0; i < h->found.n; i++)
        c->node.resume[i] = (struct node_resume){.state = &h->found.image[i].state,
                                                 .beat = h->found.image[i].label.beat,
                                                 .slot = (uint32_t)h->found.slot[i]};
    c->node.n_resume = h->found.n;
    if (outdir_read_identity(h->out, there))
        c->node.past = run_log_past(h->out, h->found.n);
    promise_read(&h->promise, h->out);
    c->node.promise = (struct bytes){h->promise.bytes, h->promise.n};
    c->slots = &h->slots;
    return HEARSAY_OK;
}

/* Reads the run from the output directory if this peer takes its run from other peers and was in the
 * run before. The peer then knows when that run has ended without it, even if no other peer is
 * left. */
static int take_stored_run(struct hearsay *h)
{
    struct node_config *c = &h->config.node;
    char there[RUN_IDENTITY_TEXT_MAX], error[RUN_ERROR_MAX];
    struct run stored;
    if (c->found || h->out == NULL || !outdir_read_identity(h->out, there))
        return HEARSAY_OK;
    const char *text = run_identity_run_text(there);
    int err = run_from_text(&stored, h->o->command->trainer, text, strlen(text), error);
    if (err < 0)
        return handle_fail(h, handle_code(err), "--out %s: cannot read its run.txt: %s", h->out,
                           error);
    err = run_with_flags(&c->run, &stored, &c->flags, error);
    if (err < 0)
        return handle_fail(h, handle_code(err), "--out %s has another run: %s", h->out, error);
    c->found = run_is_fixed(&c->run);
    return HEARSAY_OK;
}

static int take_identity(struct hearsay *h)
{
    char error[SETTINGS_ERROR_MAX], path[CHECKPOINT_STORE_PATH_MAX];
    const char *given = options_text(h->o, "identity");
    if (given == NULL && h->out != NULL) {
        int n = snprintf(path, sizeof path, "%s/identity.key", h->out);
        if (n >= (int)sizeof path)
            return handle_fail(h, HEARSAY_USAGE, "--out: the path is too long");
        given = path;
    }
    int err = settings_identity(&h->settings, &h->config, given, checkpoint_store_owner(&h->found),
                                error);
    if (err == 0)
        err = settings_token(&h->settings, &h->config, error);
    return err == 0 ? HEARSAY_OK : handle_fail(h, handle_code(err), "%s", error);
}

/* Refuses checkpoints that belong to another peer. This check comes before any file is written. */
static int check_owner(struct hearsay *h)
{
    char owner[2 * WIRE_ID_BYTES + 1], error[FILE_ERROR_MAX];
    struct checkpoint_file_label own = {.name = options_text(h->o, "name"), .owner = owner};
    bool unowned;
    if (h->out == NULL)
        return HEARSAY_OK;
    uv_identity_text(h->settings.identity.sign_pk, owner);
    if (checkpoint_store_check_owner(&h->slots, &h->found, &own, &unowned, error) < 0)
        return handle_fail(h, HEARSAY_USAGE, "%s", error);
    if (unowned) {
        snprintf(error, sizeof error, "%.180s" CHECKPOINT_STORE_UNOWNED, h->out);
        turn_note(&h->turn, 0, error);
    }
    return HEARSAY_OK;
}

/* ---- All steps of hearsay_open() ---- */

static int configure(struct hearsay *h)
{
    h->config.node.make_trainer = handle_make_trainer;
    h->config.node.make_trainer_self = h;
    h->config.self = h;
    h->config.note = handle_note;
    h->config.measured = handle_measured;
    /* Without a callback of hearsay_on_evaluate() the peer makes no evaluations. */
    if (h->evaluate == NULL)
        h->config.node.evaluate_every = 0;
    return HEARSAY_OK;
}

static int all(struct hearsay *h, int (*const step[])(struct hearsay *))
{
    int code = HEARSAY_OK;
    for (; *step != NULL && code == HEARSAY_OK; step++)
        code = (*step)(h);
    return code;
}

/* The order of the steps matters: errors in the options are found before any directory or file is
 * changed. */
int handle_prepare(struct hearsay *h)
{
    static int (*const step[])(struct hearsay *) = {
        parse,         check_shard,   take_settings, take_checkpoint_interval, lay_tensors,
        take_run,      check_initial, open_out,      open_checkpoints,         take_stored_run,
        take_identity, check_owner,   configure,     handle_open_files,        NULL};
    return all(h, step);
}

int handle_prepare_simulated(struct hearsay *h)
{
    static int (*const step[])(struct hearsay *) = {parse_simulated, check_shard,   lay_tensors,
                                                    take_run,        check_initial, NULL};
    return all(h, step);
}

void handle_undo(struct hearsay *h)
{
    handle_close_files(h);
    checkpoint_store_found_close(&h->found);
    if (h->has_disk) {
        checkpoint_store_close(&h->slots);
        disk_close(&h->disk);
    }
    h->has_disk = false;
    outdir_close(&h->dir);
    settings_close(&h->settings);
    model_close(&h->model);
    free(h->begin);
    free(h->kept);
    free(h->keys);
    free(h->o);
    free(h->tensors.segment);
    h->tensors.segment = NULL;
    h->tensors.n_floats = h->tensors.dim = 0;
    h->model = (struct model){0};
    h->settings = (struct settings){0};
    h->begin = NULL;
    h->kept = NULL;
    h->keys = NULL;
    h->o = NULL;
}
