/* peer/cmd/training.h -- makes a trainer from a run description and the path of the data, for
 * commands that train with nn/.
 *
 *   --data mnist:DIR, --shard 1/3, run --> data sets, model, shard --> struct trainer
 *
 * The data are read once. They are read again only if the data kind changes, and generated data
 * also if the seed changes.
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
    /* Hash of the peer's name. The random choice of its batches is derived from the hash. */
    uint64_t peer_key;
    /* The following fields are optional and may be set after cmd_training_init(). */
    const char *init_path; /* Path of a file with the initial model. NULL: none. */
    uint32_t threads;      /* Number of threads of the trainer. 0 means 1. */
    /* Display for the progress of reading data. NULL: none. */
    struct cmd_progress_reading *reading;
    /* True if the peer may join a run that a cluster has already begun. The model of that run may
     * differ from this peer's default model. */
    bool joins;

    /* Another peer in the same process. This peer uses the data, model, scratch memory and
     * assignment of samples of that peer. NULL: this peer has its own. */
    struct cmd_training *of;
    /* Number of threads of the peers that use the data of this struct. 0: only this peer uses its
     * data. */
    uint32_t shared;
    struct data data;
    bool has_data, has_trainer;
    /* Order in which the columns of a table are expected, if known before the table is read. */
    struct schema order;
    /* Seed for which the data were read or generated. Generated data depend on the seed. */
    uint64_t seed;
    struct model model; /* Model of the run. All zeros: no run yet. */
    float *init;        /* Parameters of the initial model, read from init_path. NULL: none. */
    /* Assignment of samples to peers, shared by all peers of the process and used with --shard
     * auto. NULL: not shared. */
    struct shard_owners *owners;
    /* Scratch memory that the peers of the process share: one entry for each thread. */
    struct sgd_scratch *scratch[THREAD_POOL_MAX];
    struct shard shard;
    struct sgd_trainer sgd;
};

/* Initialises `t` for the peer with the given name. Returns 0, or -EINVAL with a message in `error`
 * if `shard` is invalid. */
__attribute__((warn_unused_result)) int cmd_training_init(struct cmd_training *t,
                                                          const char *data_spec, const char *shard,
                                                          const char *name,
                                                          char error[RUN_ERROR_MAX]);

/* Lets the peer `t` use the data, model, scratch memory and assignment of samples of the peer `of`,
 * for many peers in one process. `of` must be initialised before the other peers and closed after
 * them. The peers run on `threads` threads, from 1 to THREAD_POOL_MAX. With --shard auto all peers
 * change the same assignment of samples to peers, so `threads` must be 1. */
void cmd_training_share(struct cmd_training *t, struct cmd_training *of, uint32_t threads);
/* Sets the thread on which the peer runs from now on, counted from 0. The peer uses the scratch
 * memory of that thread. */
void cmd_training_set_thread(struct cmd_training *t, uint32_t thread);

/* Checks that the files of --data exist and are readable. Called for a peer that reads these files
 * only after it has joined a run. Returns 0, or a negative errno with a message in `error`. */
__attribute__((warn_unused_result)) int cmd_training_check_files(const struct cmd_training *t,
                                                                 char error[RUN_ERROR_MAX]);

/* Reads or generates the data of `kind`, unless they are already in memory. `kind` may be one that
 * does not determine the shape of the samples, such as "csv". Returns 0, or a negative errno with a
 * message in `error`. */
__attribute__((warn_unused_result)) int cmd_training_data(struct cmd_training *t, const char *kind,
                                                          uint64_t seed, char error[RUN_ERROR_MAX]);

/* Returns the number of rounds in which n peers together make `epochs` passes over the common data
 * set of N samples: ceil(epochs * N / (batch * local_steps * n)). If each peer has a private data
 * set of N samples, N is replaced by n * N. More rounds are needed if the run has rounds with only
 * one local step (post_local, one_step_last). The data must be in memory. */
uint64_t cmd_training_rounds(const struct cmd_training *t, const struct run *run, double epochs);

/* Checks that every rule of the codec spec matches at least one tensor of the model. Returns 0, or
 * -EINVAL with a message that names the flag, the rule and its pattern. */
__attribute__((warn_unused_result)) int cmd_training_rules(const struct model *m, const char *flag,
                                                           const char *spec,
                                                           char error[RUN_ERROR_MAX]);

/* Builds the complete run description from the flags. Also completes the values in `flags` that are
 * not known before files are read. The number of rounds is computed from `epochs`. The shape of the
 * data, and the hash of the initial model, are found by reading the files. Refuses a codec with a
 * rule that matches no tensor of the model. Returns 0, or a negative errno with a message in
 * `error`. */
__attribute__((warn_unused_result)) int cmd_training_complete_run(struct cmd_training *t,
                                                                  struct run_flags *flags,
                                                                  double epochs, struct run *run,
                                                                  char error[RUN_ERROR_MAX]);

/* Builds the model of the run. The data need not be in memory, but the data kind must determine the
 * shape of the samples. The caller closes the model. Returns 0, or a negative errno with a message
 * in `error`. */
__attribute__((warn_unused_result)) int cmd_training_model(struct model *m, const struct run *run,
                                                           char error[RUN_ERROR_MAX]);

/* Returns a description of the training data, borrowed from `t`. All fields are zero until the data
 * are read. */
struct run_log_source cmd_training_source(const struct cmd_training *t);

/* Writes the hash of the training files and the held-out share to `text`, as in the metadata of a
 * model file. Returns `text`, or NULL if the data come from no files or are not read yet. */
const char *cmd_training_trained_on(const struct cmd_training *t,
                                    char text[DIARY_MODEL_TRAINED_MAX]);

/* Returns an error message for the negative errno `err` of sgd_trainer_init(). `why`: the message
 * that sgd_trainer_init() has written, which it does only for bad input. */
const char *cmd_training_error_text(int err, const char *why);

/* Makes the trainer of a run. This is the make_trainer callback of struct node_config. `self`: the
 * struct cmd_training. The function may be called again for another run. Returns 0, or a negative
 * errno with a message in `error`. */
int cmd_training_make(void *self, const struct run *run, struct trainer *t,
                      char error[RUN_ERROR_MAX]);
void cmd_training_close(struct cmd_training *t);

#endif
