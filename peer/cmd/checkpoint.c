/* peer/cmd/checkpoint.c -- finds the checkpoints of a peer in its directory, and passes them to the
 * driver. */
#include "peer/cmd/checkpoint.h"

#include "peer/cmd/duration.h"
#include "peer/cmd/files.h"
#include "peer/run_log/checkpoint_heads.h"
#include "peer/uv/identity.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Largest size of a checkpoint file, in bytes (64 GiB). hearsay does not write larger files. */
static const uint64_t most_bytes = UINT64_C(64) << 30;

/* ---- Rounds of the checkpoints ---- */

static void rounds_of_peer(const char *dir, uint32_t i, uint64_t round[SLOTS])
{
    char path[CMD_PATH_MAX], name[32];
    snprintf(name, sizeof name, "peer-%u", (unsigned)i);
    round[0] = round[1] = 0;
    if (cmd_path(path, dir, name) == 0)
        checkpoint_heads_rounds(path, round);
}

static bool all_have(const char *dir, uint32_t n, uint64_t round)
{
    uint64_t their[SLOTS];
    for (uint32_t i = 0; i < n; i++) {
        rounds_of_peer(dir, i, their);
        if (their[0] != round && their[1] != round)
            return false;
    }
    return round != 0;
}

void cmd_checkpoint_rounds(struct cmd_checkpoint_rounds *c, const char *dir, uint32_t n,
                           bool lock_step)
{
    uint64_t own[SLOTS], their[SLOTS];
    *c = (struct cmd_checkpoint_rounds){.round = UINT64_MAX};
    for (uint32_t i = 0; i < n; i++) {
        rounds_of_peer(dir, i, their);
        c->there |= their[0] != 0;
        c->round = their[0] < c->round ? their[0] : c->round;
        c->last = their[0] > c->last ? their[0] : c->last;
    }
    rounds_of_peer(dir, 0, own);
    for (int slot = SLOTS; lock_step && slot-- > 0;)
        if (all_have(dir, n, own[slot])) {
            c->all = true;
            c->round = own[slot];
        }
}

/* ---- Before and after a run ---- */

/* Returns true if the negative errno `err` means that the file is not a checkpoint. A later attempt
 * to read it would then fail as well. */
static bool is_bad(int err)
{
    return err == -EINVAL || err == -EISDIR || err == -ENXIO || err == -ELOOP || err == -EFBIG;
}

/* Reports checkpoints that could not be loaded. A damaged checkpoint is skipped with a warning.
 * After another error, such as an I/O error, the checkpoint may be readable later. The command then
 * fails, because it must not resume from an older checkpoint. Returns CMD_OK or CMD_FAILED. */
static int tell_bad(const struct options *o, const struct checkpoint_store_found *f)
{
    for (size_t i = 0; i < f->n_bad; i++) {
        if (!is_bad(f->bad[i].err))
            return cmd_fail(o, CMD_FAILED, "%s", f->bad[i].why);
        cmd_fail(o, CMD_OK, "warning: a checkpoint is damaged and will not be used: %s",
                 f->bad[i].why);
    }
    return CMD_OK;
}

int cmd_checkpoint_open(struct cmd_checkpoint *k, const struct options *o, const char *dir)
{
    int code = cmd_duration(o, "checkpoint", &k->every_us);
    if (code != CMD_OK)
        return code;
    int err = disk_open(&k->disk, dir);
    if (err < 0)
        return cmd_fail(o, cmd_exit_of(err), "%s: %s", dir, strerror(-err));
    k->open = true;
    checkpoint_store_open(&k->slots, &k->disk, dir);
    checkpoint_store_load(&k->slots, most_bytes, &k->found);
    return tell_bad(o, &k->found);
}

int cmd_checkpoint_check_owner(const struct cmd_checkpoint *k, const struct options *o,
                               const uint8_t id[WIRE_ID_BYTES])
{
    char owner[2 * WIRE_ID_BYTES + 1], error[FILE_ERROR_MAX];
    struct checkpoint_file_label own = {.name = options_text(o, "name"), .owner = owner};
    bool unowned;
    uv_identity_text(id, owner);
    if (checkpoint_store_check_owner(&k->slots, &k->found, &own, &unowned, error) < 0)
        return cmd_fail(o, CMD_USAGE, "%s; --fresh moves it aside and starts the run again", error);
    if (unowned)
        cmd_fail(o, CMD_OK, "note: %s" CHECKPOINT_STORE_UNOWNED, k->slots.dir);
    return CMD_OK;
}

const char *cmd_checkpoint_data_changed(struct cmd_checkpoint *k, const char *trained_on)
{
    const char *then = k->found.n > 0 ? k->found.image[0].label.trained_on : NULL;
    if (k->warned || then == NULL || trained_on == NULL || strcmp(then, trained_on) == 0)
        return NULL;
    k->warned = true;
    return "--data has changed since the checkpoint was written: the run continues with the "
           "present data, and samples that are held out now may have been trained on; --fresh "
           "starts the run again";
}

void cmd_checkpoint_configure(struct cmd_checkpoint *k, struct uv_driver_config *c)
{
    c->node.checkpoint_us = k->every_us;
    for (size_t i = 0; i < k->found.n; i++)
        c->node.resume[i] = (struct node_resume){.state = &k->found.image[i].state,
                                                 .beat = k->found.image[i].label.beat,
                                                 .slot = (uint32_t)k->found.slot[i]};
    c->node.n_resume = k->found.n;
    c->slots = &k->slots;
}

void cmd_checkpoint_close(struct cmd_checkpoint *k, bool over)
{
    if (!k->open)
        return;
    for (int slot = 0; slot < SLOTS && over; slot++)
        (void)k->disk.unlink(k->disk.self, checkpoint_store_name(slot));
    checkpoint_store_found_close(&k->found);
    checkpoint_store_close(&k->slots);
    disk_close(&k->disk);
    k->open = false;
}
