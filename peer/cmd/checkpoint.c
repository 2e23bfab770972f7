/* peer/cmd/checkpoint.c -- checkpoints between the command line, a directory and the driver. */
#include "peer/cmd/checkpoint.h"

#include "nn/files/file.h"
#include "peer/cmd/duration.h"
#include "peer/cmd/files.h"

#include <errno.h>
#include <string.h>

/* A file of more is none of ours. */
static const uint64_t most_bytes = UINT64_C(64) << 30;

bool cmd_checkpoint_there(const char *dir)
{
    char first[CMD_PATH_MAX], path[CMD_PATH_MAX];
    bool there = false;
    if (cmd_path(first, dir, "peer-0") < 0)
        return false;
    for (int slot = 0; slot < SLOTS; slot++)
        there |= cmd_path(path, first, slots_name(slot)) == 0 && file_exists(path);
    return there;
}

/* It is no checkpoint, and never will be. */
static bool is_bad(int err)
{
    return err == -EINVAL || err == -EISDIR || err == -ENXIO || err == -ELOOP || err == -EFBIG;
}

/* What cannot be read now may be read later: better no start than one from an older moment. */
static int tell_bad(const struct options *o, const struct slots_found *f)
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
    slots_open(&k->slots, &k->disk, dir);
    slots_load(&k->slots, most_bytes, &k->found);
    return tell_bad(o, &k->found);
}

void cmd_checkpoint_tell(struct cmd_checkpoint *k, struct uv_driver_config *c)
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
        (void)k->disk.unlink(k->disk.self, slots_name(slot));
    slots_found_close(&k->found);
    slots_close(&k->slots);
    disk_close(&k->disk);
    k->open = false;
}
