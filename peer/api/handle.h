/* peer/api/handle.h -- what stands behind a struct hearsay: for the files of this folder.
 *
 *   hearsay.c   the caller's thread: calls, turns, questions
 *   opening.c   options and tensors become a driver's configuration
 *   trainer.c   the trainer that a node sees: it waits for the caller
 *   thread.c    the peer's thread: loop, notes, figures
 *   files.c     its directory, its page and its end
 *   simulate.c  many handles over a simulated network: one thread for all of them
 *
 *   HANDLE_NEW --hearsay_open--> HANDLE_OPEN --its thread ends--> (TURN_OVER) --hearsay_close-->
 *
 * Who writes what: the caller's thread everything before the peer's thread is started, and of what
 * follows the callbacks and `yours`; the peer's thread `seen`, under its lock, and what is said of
 * the end before TURN_OVER.
 */
#ifndef PEER_API_HANDLE_H
#define PEER_API_HANDLE_H

#include "nn/models/model.h"
#include "peer/api/tensors.h"
#include "peer/api/turn.h"
#include "peer/diary/monitor.h"
#include "peer/keep/slots.h"
#include "peer/node/outcome.h"
#include "peer/run/layout_keys.h"
#include "peer/sgd/sgd_keys.h"
#include "peer/store/outdir.h"
#include "peer/uv/settings.h"

#include <sys/types.h>

enum { HANDLE_ERROR_MAX = 1024, HANDLE_WORDS_MAX = 96 };

enum handle_stage { HANDLE_NEW, HANDLE_OPEN };

struct hearsay
{
    pid_t owner; /* The process that made it. */
    enum handle_stage stage;
    char error[HANDLE_ERROR_MAX];

    /* ---- what was given ---- */
    char *word[HANDLE_WORDS_MAX]; /* Each is "--name=value", owned. */
    size_t n_words;
    struct options *o; /* What they come to, once open. */
    struct tensors tensors;
    void (*note)(void *self, int level, const char *text);
    void *note_self;
    int (*evaluate)(void *self, uint64_t samples, struct hearsay_score *score);
    void *evaluate_self;

    /* ---- the caller's turn ---- */
    struct turn turn;
    bool yours;      /* The caller has the tensors. */
    bool calls_back; /* One of its callbacks is running. */
    bool ended;      /* It has been told how the run ended. */
    uint64_t round;
    uint32_t steps;

    /* ---- the model ---- */
    bool by_model;      /* The run's keys are those of our own trainer: option "model". */
    struct model model; /* With by_model, once there is a run. */
    float *begin;       /* What the tensors began with: n_floats. */
    char begin_of_run[LAYOUT_BEGIN]; /* Not by_model: the hash of what the run begins with. */
    uint8_t *kept;                   /* What the caller keeps in checkpoints, */
    size_t n_kept;
    uint64_t kept_round; /* given after so many rounds. */
    bool kept_read;      /* It comes from a checkpoint. */

    /* ---- the peer ---- */
    struct settings settings;
    struct uv_driver_config config;
    const char *out; /* NULL: nothing is written. */
    struct outdir dir;
    char owner_text[OWNER_TEXT_MAX];
    struct diary diary;           /* What is written there, */
    struct diary_monitor monitor; /* and what is shown. */
    struct disk disk;
    struct slots slots;
    struct slots_found found;
    bool has_disk;
    struct simulation *simulation; /* Or NULL: it has a thread of its own. */
    uint32_t place;                /* Its number there. */
    uv_loop_t loop;
    uv_async_t leave;
    uv_timer_t look;
    struct uv_driver *driver;
    uv_thread_t thread;

    /* ---- seen from the caller's thread, under `lock` ---- */
    uv_mutex_t lock;
    struct node_progress seen;
    bool has_seen;
    char codec[256];
    char run_text[WIRE_RUN_MAX + 1];
    uint64_t copied; /* Bytes of tensors. */
    uint64_t n_rounds, seed;
    uint64_t *keys; /* The live members', for `shard`. */
    size_t n_keys;
    uint64_t own_key, shares;
    char run_said[WIRE_RUN_MAX + 1]; /* The caller's copy of it. */

    /* ---- the end, written before TURN_OVER ---- */
    bool half_done; /* It was left while the caller trained in place: the model is of no round. */
    char last_error[TURN_NOTE_MAX]; /* The last note of that level. */
    char verdict[OUTCOME_TEXT];
    int exit_code;
    bool stuck;
};

/* Keep the sentence, and return the code. */
__attribute__((format(printf, 3, 4))) int handle_fail(struct hearsay *h, int code,
                                                      const char *format, ...);
/* The code of a negative errno on the way to a run. */
int handle_code(int err);

/* simulate.c: hearsay_close() of one of many. */
void handle_stop_simulated(struct hearsay *h);
/* The node that a handle has, for figures. */
void handle_see(struct hearsay *h, const struct node *n, uint64_t sent, uint64_t received);
/* The final model, or NULL, goes to the caller. */
void handle_give(struct hearsay *h, const float *x);

/* opening.c: all that hearsay_open() does before there is a thread. HEARSAY_OK, or a code with a
 * sentence; then handle_undo() undoes it. */
int handle_prepare(struct hearsay *h);
/* The same for a simulated peer, which has no key, socket or file. */
int handle_prepare_simulated(struct hearsay *h);
void handle_undo(struct hearsay *h);
/* True if the option "initial" asks for this peer's model as the run's initial model. */
bool handle_is_initial(const struct hearsay *h);

/* trainer.c: the hash of an initial model, as a run has it. */
void handle_begin_hash(const struct hearsay *h, const float *x, char out[LAYOUT_BEGIN]);
/* struct node_config's make_trainer. */
int handle_make_trainer(void *self, const struct run *run, struct trainer *t,
                        char error[RUN_ERROR_MAX]);

/* files.c: the last step of handle_prepare(), its undoing, and what a loop that has ended leaves behind. */
int handle_open_files(struct hearsay *h);
void handle_close_files(struct hearsay *h);
void handle_end_files(struct hearsay *h);
/* How a run ended: a node that has exited with this code. */
void handle_judge(struct hearsay *h, const struct node *n, int code);

/* thread.c */
int handle_start(struct hearsay *h);
/* Tell the peer to leave, from the caller's thread. */
void handle_leave(struct hearsay *h);
/* The thread is joined, driver and loop are closed. */
void handle_stop(struct hearsay *h);
/* Callbacks of the driver, for handle_prepare(). */
void handle_note(void *self, enum note_level level, const char *text);
void handle_measured(void *self, const struct node_progress *p);

#endif
