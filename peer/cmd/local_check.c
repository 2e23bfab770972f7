/* peer/cmd/local_check.c -- the run that the flags of `hearsay local` make, and whose --out is. */
#include "peer/cmd/local_check.h"

#include "nn/math/number.h"
#include "peer/cmd/duration.h"
#include "peer/cmd/events.h"
#include "peer/cmd/monitor.h"
#include "peer/cmd/peers.h"
#include "peer/cmd/training.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

int cmd_local_check(const struct options *o, struct run_flags *flags, struct run *run,
                    struct model *model)
{
    char error[RUN_ERROR_MAX], shard[32] = "auto";
    uint32_t n = (uint32_t)options_uint(o, "peers");
    const char *data = options_given(o, "data") ? options_text(o, "data") : NULL;
    int code = cmd_peers_flags(o, n, flags);
    code = code == CMD_OK ? cmd_monitor_check(o, n) : code;
    code = code == CMD_OK ? cmd_events_check(o) : code;
    if (code != CMD_OK)
        return code;
    cmd_peers_crowd(o, n);
    static struct run_flags filled; /* Large. */
    static struct cmd_training training;
    struct cmd_progress_reading reading = {.out = stderr};
    filled = *flags;
    if (strcmp(options_text(o, "shard"), "split") == 0)
        snprintf(shard, sizeof shard, "1/%u", (unsigned)n);
    int err = cmd_training_init(&training, data, shard, "peer-0", error);
    training.reading = &reading;
    training.init_path = options_text(o, "init");
    if (err == 0)
        err = cmd_training_fix(&training, &filled, options_real(o, "epochs"), run, error);
    if (err == 0 && data)
        err = cmd_training_data(&training, sgd_values(run)->data, run->seed, error);
    if (err == 0)
        err = cmd_training_model(model, run, error);
    cmd_training_close(&training);
    return err < 0 ? cmd_fail(o, cmd_exit_of(err), "%s", error) : CMD_OK;
}

/* Flags that are no keys of the run, and without which its files would be others. */
int cmd_local_look(const struct options *o, struct cmd_out *dir, const char *out,
                   const struct run *run)
{
    const struct owner_flag flags[] = {{"peers", options_text(o, "peers")},
                                       {"shard", options_text(o, "shard")},
                                       {"data", options_text(o, "data")},
                                       {NULL, NULL}};
    return cmd_out_look(dir, o, out, flags, run);
}

/* ---- Of a sweep. ---- */

static struct run swept; /* That of check_swept(). */

static int check_swept(const struct options *o)
{
    static struct run_flags flags;
    struct model model = {0};
    int64_t us;
    int code = cmd_duration(o, "checkpoint", &us);
    if (code == CMD_OK)
        code = cmd_duration(o, "forget", &us);
    if (code == CMD_OK)
        code = cmd_local_check(o, &flags, &swept, &model);
    model_close(&model);
    return code;
}

static int look_swept(const struct options *o, bool *finished)
{
    static struct cmd_out dir;
    dir = (struct cmd_out){0};
    if (!number_whole(options_text(o, "seed"), &swept.seed))
        assert(false && "a seed that is no number");
    int code = cmd_local_look(o, &dir, options_text(o, "out"), &swept);
    *finished = dir.finished;
    return code;
}

const struct cmd_sweep_face cmd_local_sweep = {.check = check_swept,
                                               .look = look_swept,
                                               .accuracy = "accuracy_min",
                                               .drift = "relative_drift",
                                               .bytes = "bytes_sent_in_all",
                                               .seconds = "seconds_in_all"};
