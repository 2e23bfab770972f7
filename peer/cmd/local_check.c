/* peer/cmd/local_check.c -- builds the run of `hearsay local` from its flags, and checks that the
 * directory of --out belongs to this run. */
#include "peer/cmd/local_check.h"

#include "peer/cmd/duration.h"
#include "peer/cmd/files.h"
#include "peer/cmd/metrics_ports.h"
#include "peer/cmd/peers.h"
#include "peer/cmd/skew_advice.h"
#include "peer/cmd/training.h"
#include "peer/run_log/checkpoint_heads.h"
#include "peer/uv/identity.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cmd_local_check(const struct options *o, struct run_flags *flags, struct run *run,
                    struct model *model)
{
    char error[RUN_ERROR_MAX], shard[32] = "auto";
    uint32_t n = (uint32_t)options_uint(o, "peers");
    const char *data = options_given(o, "data") ? options_text(o, "data") : NULL;
    int code = cmd_peers_flags(o, n, flags);
    code = code == CMD_OK ? cmd_metrics_ports_check(o, n) : code;
    if (code != CMD_OK)
        return code;
    cmd_peers_check_load(o, n);
    /* `filled` and `training` are static, because the structs are too large for the stack. */
    static struct run_flags filled;
    static struct cmd_training training;
    struct cmd_progress_reading reading = {.out = stderr};
    filled = *flags;
    if (strcmp(options_text(o, "shard"), "split") == 0)
        snprintf(shard, sizeof shard, "1/%u", (unsigned)n);
    int err = cmd_training_init(&training, data, shard, "peer-0", error);
    training.reading = &reading;
    training.init_path = options_text(o, "init");
    if (err == 0)
        err = cmd_training_complete_run(&training, &filled, options_real(o, "epochs"), run, error);
    if (err == 0 && data)
        err = cmd_training_data(&training, sgd_values(run)->data, run->seed, error);
    if (err == 0)
        err = cmd_training_model(model, run, error);
    cmd_training_close(&training);
    if (err < 0)
        return cmd_fail(o, cmd_exit_of(err), "%s", error);
    cmd_skew_advice(o, shard, n, flags, run);
    return CMD_OK;
}

/* ---- Checking the directories of the peers ---- */

#define FRESH "; restore the right directory, or use --fresh to move the whole run aside"

/* Owners of the directories of all peers: for each directory, the peer and the run to which the
 * files in the directory belong. */
struct owners
{
    const struct options *o;
    const char *out;
    uint32_t n;
    struct owner
    {
        char dir[CMD_PATH_MAX];
        bool has_key; /* True if the file identity.key exists and is valid. */
        uint8_t key[WIRE_ID_BYTES];
        /* Identities of the n_members members that the checkpoints of this peer list. */
        uint8_t (*member)[WIRE_ID_BYTES];
        size_t n_members;
        /* True if this peer's checkpoints belong to the same run as the checkpoints of the first
         * peer that has any. Set by mark_same_run(). */
        bool reached;
    } * owner;
};

static void read_key(struct owner *w)
{
    char path[CMD_PATH_MAX], why[KEYFILE_ERROR_MAX];
    struct channel_identity id;
    if (cmd_path(path, w->dir, "identity.key") < 0 || uv_identity_read(path, &id, NULL, why) < 0)
        return;
    memcpy(w->key, id.sign_pk, sizeof w->key);
    w->has_key = true;
    channel_identity_close(&id);
}

/* Checks that a checkpoint belongs to the peer `name`, and to the identity in the peer's directory.
 * A checkpoint that names no owner is accepted. Returns CMD_OK, or CMD_USAGE after a message on
 * stderr. */
static int check_checkpoint(const struct options *o, const struct owner *w, const char *name,
                            int slot, const struct checkpoint_head *kept)
{
    char key[2 * WIRE_ID_BYTES + 1];
    uv_identity_text(w->key, key);
    if (!kept->there)
        return CMD_OK;
    if (strcmp(kept->name, name) != 0)
        return cmd_fail(o, CMD_USAGE,
                        "--out: %s/%s: found a checkpoint of %s, expected one of %s" FRESH, w->dir,
                        checkpoint_store_name(slot), kept->name, name);
    if (kept->owner[0] == '\0' || (w->has_key && strcmp(kept->owner, key) == 0))
        return CMD_OK;
    if (!w->has_key)
        return cmd_fail(o, CMD_USAGE,
                        "--out: %s/%s: found a checkpoint of %s (key %.8s), and no identity.key of "
                        "that peer" FRESH,
                        w->dir, checkpoint_store_name(slot), kept->name, kept->owner);
    return cmd_fail(o, CMD_USAGE,
                    "--out: %s/%s: found a checkpoint of %s (key %.8s), expected one of %s "
                    "(key %.8s)" FRESH,
                    w->dir, checkpoint_store_name(slot), kept->name, kept->owner, name, key);
}

/* ---- Checking that all checkpoints are of one run ---- */

/* Returns true if the checkpoints of peer `a` list peer `b` as a member. */
static bool names(const struct owner *a, const struct owner *b)
{
    for (size_t i = 0; i < a->n_members && b->has_key; i++)
        if (memcmp(a->member[i], b->key, sizeof b->key) == 0)
            return true;
    return false;
}

/* Sets `reached` for each peer that has checkpoints of the same run as the first peer with
 * checkpoints. Two peers were in the same run if the checkpoints of one list the other as a member.
 * Returns that first peer, or NULL if no peer has checkpoints. */
static struct owner *mark_same_run(struct owners *s)
{
    struct owner *first = NULL;
    bool more = true;
    for (uint32_t i = 0; i < s->n && first == NULL; i++)
        if (s->owner[i].n_members > 0)
            first = &s->owner[i];
    if (first != NULL)
        first->reached = true;
    while (more) {
        more = false;
        for (struct owner *a = s->owner; a < s->owner + s->n; a++)
            for (struct owner *b = s->owner; b < s->owner + s->n && a->reached; b++)
                if (!b->reached && b->n_members > 0 && (names(a, b) || names(b, a)))
                    b->reached = more = true;
    }
    return first;
}

/* Returns true if the checkpoints of peer `w` list a member that has no directory under --out.
 * Checkpoints of a peer that has trained alone list no other members. */
static bool names_others(const struct owners *s, const struct owner *w)
{
    for (size_t k = 0; k < w->n_members; k++) {
        bool here = false;
        for (uint32_t i = 0; i < s->n; i++)
            here |= s->owner[i].has_key
                    && memcmp(s->owner[i].key, w->member[k], sizeof s->owner[i].key) == 0;
        if (!here)
            return true;
    }
    return false;
}

/* Checks that the checkpoints of all peers belong to the same run. The run description does not
 * show this: two starts of the same command have equal descriptions, but may be different runs.
 * Returns CMD_OK, or CMD_USAGE after a message on stderr. */
static int check_together(struct owners *s)
{
    const struct owner *first = mark_same_run(s);
    for (struct owner *w = s->owner; w < s->owner + s->n; w++)
        if (w->n_members > 0 && !w->reached && names_others(s, w))
            return cmd_fail(s->o, CMD_USAGE,
                            "--out: the checkpoints in %s and %s belong to different runs: "
                            "neither lists the peer that wrote the other" FRESH,
                            first->dir, w->dir);
    return CMD_OK;
}

/* Checks that summary.json belongs to the peer `name`. The file exists only if the peer has
 * finished. Returns CMD_OK, or CMD_USAGE after a message on stderr. */
static int check_summary(const struct options *o, const char *dir, const char *name)
{
    json_t *summary = outdir_read_summary(dir);
    const char *found = json_string_value(json_object_get(summary, "name"));
    int code = found == NULL || strcmp(found, name) == 0
                   ? CMD_OK
                   : cmd_fail(o, CMD_USAGE,
                              "--out: %s/summary.json: found the result of %.64s, expected that of "
                              "%s" FRESH,
                              dir, found, name);
    json_decref(summary);
    return code;
}

/* Checks that the files in the directory of peer i belong to this run and to this peer. `text`:
 * contents that run.txt must have. Returns CMD_OK, or CMD_USAGE after a message on stderr. */
static int check_peer(struct owners *s, uint32_t i, const char *text)
{
    char name[32], why[OUTDIR_WHY_MAX];
    struct checkpoint_head kept[SLOTS];
    struct owner *w = &s->owner[i];
    snprintf(name, sizeof name, "peer-%u", (unsigned)i);
    if (cmd_path(w->dir, s->out, name) < 0)
        return cmd_fail(s->o, CMD_USAGE, "--out: the path is too long");
    switch (outdir_inspect(w->dir, text, why)) {
    case OUTDIR_NEW:
    case OUTDIR_UNFINISHED:
    case OUTDIR_FINISHED:
        break;
    case OUTDIR_OTHER_RUN:
        return cmd_fail(s->o, CMD_USAGE, "--out: %s has another run than %s: %s" FRESH, w->dir,
                        s->out, why);
    case OUTDIR_UNKNOWN_RUN:
        return cmd_fail(
            s->o, CMD_USAGE,
            "--out: %s: found %s, but run.txt is missing or damaged, so its run is unknown" FRESH,
            w->dir, why);
    case OUTDIR_DAMAGED:
        return cmd_fail(s->o, CMD_USAGE,
                        "--out: %s: %s; the peer may have finished, so its model is not "
                        "replaced" FRESH,
                        w->dir, why);
    }
    int code = check_summary(s->o, w->dir, name);
    read_key(w);
    checkpoint_heads_read(w->dir, kept);
    for (int slot = 0; slot < SLOTS && code == CMD_OK; slot++)
        code = check_checkpoint(s->o, w, name, slot, &kept[slot]);
    w->n_members = code == CMD_OK ? checkpoint_heads_members(w->dir, &w->member) : 0;
    return code;
}

static int check_peers(const struct options *o, const char *out, const struct run *run)
{
    static char text[RUN_IDENTITY_TEXT_MAX];
    char run_lines[WIRE_RUN_MAX + 1];
    struct owners s = {.o = o, .out = out, .n = (uint32_t)options_uint(o, "peers")};
    int code = CMD_OK;
    s.owner = calloc(s.n, sizeof *s.owner);
    if (s.owner == NULL)
        return cmd_fail(o, CMD_FAILED, "out of memory");
    run_text(run, run_lines);
    run_identity_write(text, "peer", NULL, run_lines);
    for (uint32_t i = 0; i < s.n && code == CMD_OK; i++)
        code = check_peer(&s, i, text);
    code = code == CMD_OK ? check_together(&s) : code;
    for (uint32_t i = 0; i < s.n; i++)
        free(s.owner[i].member);
    free(s.owner);
    return code;
}

/* Checks that the directory of each peer holds the result of that peer. Called for a run that has
 * finished. A missing directory is no error. Returns CMD_OK, or CMD_USAGE after a message on
 * stderr. */
static int check_finished(const struct options *o, const char *out)
{
    char dir[CMD_PATH_MAX], name[32];
    int code = CMD_OK;
    for (uint64_t i = 0; i < options_uint(o, "peers") && code == CMD_OK; i++) {
        snprintf(name, sizeof name, "peer-%" PRIu64, i);
        code = cmd_path(dir, out, name) < 0 ? cmd_fail(o, CMD_USAGE, "--out: the path is too long")
                                            : check_summary(o, dir, name);
    }
    return code;
}

/* `flags` lists options that are not in the run description but change the files of the run. Their
 * values are stored in run.txt, and a repeated command must have the same values. */
int cmd_local_check_out(const struct options *o, struct cmd_out *dir, const char *out,
                        const struct run *run)
{
    const struct run_identity_flag flags[] = {{"peers", options_text(o, "peers")},
                                              {"shard", options_text(o, "shard")},
                                              {"data", options_text(o, "data")},
                                              {NULL, NULL}};
    int code = cmd_out_examine(dir, o, out, flags, run);
    if (code == CMD_OK && dir->finished)
        code = check_finished(o, out);
    return code == CMD_OK && dir->begun ? check_peers(o, out, run) : code;
}
