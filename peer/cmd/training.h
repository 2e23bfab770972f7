/* peer/cmd/training.h -- makes a trainer from a run description and a data path, for commands
 * that train with nn/.
 *
 *   --data mnist:DIR, --shard 1/3, run --> data sets, model, shard --> struct trainer
 *
 * The data are read once and kept as long as the data kind stays the same, and for generated
 * data also the seed.
 */
#ifndef PEER_CMD_TRAINING_H
#define PEER_CMD_TRAINING_H

#include "nn/data/data.h"
#include "nn/math/thread_pool.h"
#include "nn/train/sgd_trainer.h"
#include "peer/cmd/progress.h"
#include "peer/run/run.h"
#include "peer/run_log/model.h"
#include "peer/sgd/sgd_keys.h"

struct cmd_training
{
    /* Value of --data, such as "mnist:DIR". NULL: the data kind of the run needs no path. */
    const char *data_spec;
    struct shard_spec shard_spec;
    /* Key of the peer for drawing its batches: the hash of its name, as in the node. */
    uint64_t peer_key;
    /* The following fields are optional and may be set after cmd_training_init(). */
    const char *init_path;                /* File of the initial model, or NULL. */
    uint32_t threads;                     /* Number of threads. 0: one. */
    struct cmd_progress_reading *reading; /* Receiver of the progress of reading data, or NULL. */
    /* The peer may join a run that a cluster has already begun, with that run's model. */
    bool joins;

    /* Another peer with data, model, scratch memory and shard owners that this one uses. NULL:
     * this peer has its own. */
    struct cmd_training *of;
    /* Number of threads on which the peers work that share this struct's data. 0: it is not
     * shared. */
    uint32_t shared;
    struct data data;
    bool has_data, has_trainer;
    /* Order of the columns to which a table is matched, if known before the table is read. */
    struct schema order;
    /* Seed with which the data were opened. Generated data depend on it. */
    uint64_t seed;
    struct model model;          /* Model of the run. Zeros: none. */
    float *init;                 /* Parameters of the initial model from a file, or NULL. */
    struct shard_owners *owners; /* Table of shard owners for peers that share it, or NULL. */
    /* Scratch memory for peers that share it, one for each thread. */
    struct sgd_scratch *scratch[THREAD_POOL_MAX];
    struct shard shard;
    struct sgd_trainer sgd;
};

/* Initialises `t` for the peer called `name`. Returns 0, or -EINVAL with a message in `error` if
 * `shard` is invalid. */
__attribute__((warn_unused_result)) int cmd_training_init(struct cmd_training *t,
                                                          const char *data_spec, const char *shard,
                                                          const char *name,
                                                          char error[RUN_ERROR_MAX]);

/* Makes `t` use the data, model, scratch memory and shard owners of `of`, for many peers in one
 * process. `of` must be initialised first and closed last. All peers work on `threads` threads,
 * from 1 to THREAD_POOL_MAX. With --shard auto there is one table of owners, so `threads` must be 1. */
void cmd_training_share(struct cmd_training *t, struct cmd_training *of, uint32_t threads);
/* Sets the thread on which the peer works from now on, counted from 0. */
void cmd_training_set_thread(struct cmd_training *t, uint32_t thread);

/* Checks that the files of --data exist and are readable, for a peer that opens them only after
 * it has joined a run. Returns 0, or a negative errno with a message in `error`. */
__attribute__((warn_unused_result)) int cmd_training_check_files(const struct cmd_training *t,
                                                                 char error[RUN_ERROR_MAX]);

/* Reads or generates the data of `kind`, which may leave the shape open, unless they are already
 * in memory. Returns 0, or a negative errno with a message in `error`. */
__attribute__((warn_unused_result)) int cmd_training_data(struct cmd_training *t, const char *kind,
                                                          uint64_t seed, char error[RUN_ERROR_MAX]);

/* Returns the number of rounds in which n peers together make `epochs` passes over the common
 * data set: ceil(epochs * N / (batch * local_steps * n)). A private data set of size N counts n
 * times. With post_local the first rounds have one local step, so there are correspondingly more
 * rounds. The data must be open. */
uint64_t cmd_training_rounds(const struct cmd_training *t, const struct run *run, double epochs);

/* Checks that every rule of the codec spec matches a tensor of the model. Returns 0, or -EINVAL
 * with a message that names the flag, the rule and its pattern. */
__attribute__((warn_unused_result)) int cmd_training_rules(const struct model *m, const char *flag,
                                                           const char *spec,
                                                           char error[RUN_ERROR_MAX]);

/* Builds the complete run description from the flags, and sets the flags that were open: the
 * rounds of `epochs` and the data kind by reading the data, the hash of an initial model by
 * reading its file. Refuses a codec that has a rule for no tensor of the model. Returns 0, or a
 * negative errno with a message in `error`. */
__attribute__((warn_unused_result)) int cmd_training_complete_run(struct cmd_training *t,
                                                                  struct run_flags *flags,
                                                                  double epochs, struct run *run,
                                                                  char error[RUN_ERROR_MAX]);

/* Builds the model of the run. The data need not be open, but their kind must fix the shape. The
 * caller closes the model. Returns 0, or a negative errno with a message in `error`. */
__attribute__((warn_unused_result)) int cmd_training_model(struct model *m, const struct run *run,
                                                           char error[RUN_ERROR_MAX]);

/* Returns the description of the training data, borrowed from `t`. Zeros until the data are
 * read. */
struct run_log_source cmd_training_source(const struct cmd_training *t);

/* Returns why sgd_trainer_init() failed with `err`. Its own message `why` is valid only for bad
 * input. */
const char *cmd_training_error_text(int err, const char *why);

/* Makes the trainer of a run, as the make_trainer callback of struct node_config. `self`: the
 * struct cmd_training. May be called again for another run. Returns 0, or a negative errno with
 * a message in `error`. */
int cmd_training_make(void *self, const struct run *run, struct trainer *t,
                      char error[RUN_ERROR_MAX]);
void cmd_training_close(struct cmd_training *t);

#endif
