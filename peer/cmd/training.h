/* peer/cmd/training.h -- from a run and a data path to a trainer.
 *
 *   --data mnist:DIR, --shard 1/3, run --> data sets, model, shard --> struct trainer
 *
 * For commands that train with nn/. Data are read once and kept while kind
 * and (for sets that are drawn) seed stay.
 */
#ifndef PEER_CMD_TRAINING_H
#define PEER_CMD_TRAINING_H

#include "nn/data/data.h"
#include "nn/math/crew.h"
#include "nn/train/sgd_trainer.h"
#include "peer/cmd/progress.h"
#include "peer/diary/model.h"
#include "peer/run/run.h"
#include "peer/sgd/sgd_keys.h"

struct cmd_training
{
    const char *data_spec; /* "mnist:DIR"; NULL: what the run's kind alone names. */
    struct shard_spec shard_spec;
    uint64_t peer_key; /* The member's key is its name's hash, as the node makes it. */
    /* To be set behind cmd_training_init(), each may stay as it is: */
    const char *init_path;                /* The initial model's file, or NULL. */
    uint32_t threads;                     /* 0: one. */
    struct cmd_progress_reading *reading; /* Where to say so, or NULL. */
    bool joins; /* The run, and its model, may be a cluster's that is there already. */

    struct cmd_training *of; /* Whose data, model, scratch and owners are used, or NULL. */
    uint32_t shared;         /* Others use ours, on so many threads; 0: none does. */
    struct data data;
    bool has_data, has_trainer;
    /* Order of the columns to which a table is matched, if known before the table is read. */
    struct schema order;
    uint64_t seed;               /* The data were opened with it; drawn ones depend on it. */
    struct model model;          /* Zeros where there is none. */
    float *init;                 /* The initial model of a file, or NULL. */
    struct shard_owners *owners; /* For those who share. */
    struct sgd_scratch *scratch[CREW_MAX]; /* Likewise, one for each thread. */
    struct shard shard;
    struct sgd_trainer sgd;
};

/* Refuses a bad shard text with -EINVAL and a sentence. */
__attribute__((warn_unused_result)) int cmd_training_init(struct cmd_training *t,
                                                          const char *data_spec, const char *shard,
                                                          const char *name,
                                                          char error[RUN_ERROR_MAX]);

/* Many peers in one process: t uses `of`'s data, model, scratch and table of
 * owners. `of` is made first and closed last; all work on `threads` threads, from 1 to CREW_MAX: with
 * --shard auto, for which there is one table, on one. */
void cmd_training_share(struct cmd_training *t, struct cmd_training *of, uint32_t threads);
/* From now on it works on this one of them, from 0. */
void cmd_training_on(struct cmd_training *t, uint32_t thread);

/* Can the files of --data be read at all? For who does not open them before it has joined a run:
 * 0 or a negative errno with a sentence. */
__attribute__((warn_unused_result)) int cmd_training_look(const struct cmd_training *t,
                                                          char error[RUN_ERROR_MAX]);

/* Read or draw the data of `kind`, which may be open, unless they are there. */
__attribute__((warn_unused_result)) int cmd_training_data(struct cmd_training *t, const char *kind,
                                                          uint64_t seed, char error[RUN_ERROR_MAX]);

/* Rounds of `epochs` passes over the common set by n peers together:
 * ceil(epochs * N / (batch * local_steps * n)), where a private set of size N
 * counts n times; and with post_local as many more as it takes. Needs the data. */
uint64_t cmd_training_rounds(const struct cmd_training *t, const struct run *run, double epochs);

/* Refuses a spec that has a rule for no tensor of the model, with a sentence that
 * names the flag, the rule and its match. */
__attribute__((warn_unused_result)) int cmd_training_rules(const struct model *m, const char *flag,
                                                           const char *spec,
                                                           char error[RUN_ERROR_MAX]);

/* The run of these flags, fixed. What they leave open, files say, and the flags
 * are set: the rounds of `epochs` and the kind of the data by reading them, the
 * hash of an initial model by reading that. A codec among them with a rule for
 * no tensor of the model is refused. */
__attribute__((warn_unused_result)) int cmd_training_fix(struct cmd_training *t,
                                                         struct run_flags *flags, double epochs,
                                                         struct run *run,
                                                         char error[RUN_ERROR_MAX]);

/* The run's model, which needs no data but their kind fixed. The caller closes
 * it. */
__attribute__((warn_unused_result)) int cmd_training_model(struct model *m, const struct run *run,
                                                           char error[RUN_ERROR_MAX]);

/* Returns the description of the training data, borrowed from `t`. Zeros until the data are
 * read. */
struct diary_source cmd_training_source(const struct cmd_training *t);

/* Why sgd_trainer_init() failed: it has a sentence of its own for bad input alone. */
const char *cmd_training_why(int err, const char *why);

/* struct node_config's make_trainer; `self` is the struct. May be called
 * again for another run. */
int cmd_training_make(void *self, const struct run *run, struct trainer *t,
                      char error[RUN_ERROR_MAX]);
void cmd_training_close(struct cmd_training *t);

#endif
