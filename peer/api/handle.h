/* peer/api/handle.h -- private state of a handle (struct hearsay), and functions shared by the
 * files of this folder.
 *
 *   hearsay.c   public functions, on the caller's thread
 *   opening.c   turns options and tensors into a driver's configuration
 *   trainer.c   the trainer that the node uses: it waits for the caller's local steps
 *   thread.c    the peer's thread: event loop, messages, figures
 *   files.c     output directory, HTTP monitor and result of a peer
 *   simulate.c  many handles over a simulated network: one thread for all of them
 *
 *   HANDLE_NEW --hearsay_open--> HANDLE_OPEN --peer's thread ends--> (TURN_OVER) --hearsay_close-->
 *
 * Threads: before the peer's thread starts, the caller's thread writes all fields. Afterwards
 * the caller's thread writes only its error message, the fields about turns and, while it has
 * the tensors, the data of hearsay_keep(). The peer's thread writes the fields that the caller's
 * thread reads: figures under `lock`, and the result before it sets TURN_OVER. */
#ifndef PEER_API_HANDLE_H
#define PEER_API_HANDLE_H

#include "nn/models/model.h"
#include "peer/api/tensors.h"
#include "peer/api/turn.h"
#include "peer/checkpoints/checkpoint_store.h"
#include "peer/node/result/verdict.h"
#include "peer/output/outdir.h"
#include "peer/output/promise.h"
#include "peer/run/layout_keys.h"
#include "peer/run_log/monitor.h"
#include "peer/sgd/sgd_keys.h"
#include "peer/uv/settings.h"

#include <sys/types.h>

/* HANDLE_ERROR_MAX: size of an error message in bytes. HANDLE_WORDS_MAX: largest number of options
 * of a handle. */
enum { HANDLE_ERROR_MAX = 1024, HANDLE_WORDS_MAX = 96 };

enum handle_stage { HANDLE_NEW, HANDLE_OPEN };

/* A handle: one peer that a program runs, with options, tensors, event loop and result. */
struct hearsay
{
    pid_t owner; /* Id of the process that made the handle. */
    enum handle_stage stage;
    /* Message of the last call that failed. */
    char error[HANDLE_ERROR_MAX];

    /* ---- What the caller gave before hearsay_open() ---- */
    /* Options that the program has set, each as "--name=value". Owned. */
    char *word[HANDLE_WORDS_MAX];
    size_t n_words;
    /* Parsed options, owned. NULL: the handle is not open. */
    struct options *o;
    /* Tensors that the program has added with hearsay_tensor(). */
    struct tensors tensors;
    /* Callback for messages, set by hearsay_on_note(), and its first argument. NULL: none. */
    void (*note)(void *self, int level, const char *text);
    void *note_self;
    /* Callback for evaluations, set by hearsay_on_evaluate(), and its first argument. NULL:
     * none. */
    int (*evaluate)(void *self, uint64_t samples, struct hearsay_score *score);
    void *evaluate_self;

    /* ---- Turns: which thread may use the tensors ---- */
    /* Shared with the worker thread of the peer. Says which thread may use the tensors. */
    struct turn turn;
    bool yours;      /* True while the caller may use the tensors. */
    bool calls_back; /* True while a callback of the caller runs. */
    /* True after a call has reported to the caller that the run is over. */
    bool ended;
    /* Values from the last time that the caller got the tensors for local steps: number of complete
     * rounds of the run, and number of local steps to do. */
    uint64_t round;
    uint32_t steps;

    /* ---- Model and run ---- */
    /* True if the option "model" is set. The run then has the options of the built-in trainer. */
    bool by_model;
    /* Model of the run, if `by_model` is true. Set once the run is known. */
    struct model model;
    /* Copy of the tensors' values at hearsay_open(), tensors.n_floats floats, owned. */
    float *begin;
    /* Hash of the run's initial model. Unused if `by_model` is true. */
    char begin_of_run[LAYOUT_BEGIN];
    uint8_t *kept; /* Data that the program has passed to hearsay_keep(): `n_kept` bytes, owned. */
    size_t n_kept;
    /* Number of complete rounds of the run at the time when the program passed `kept` to
     * hearsay_keep(). */
    uint64_t kept_round;
    bool kept_read; /* True if `kept` (data of the program) was read from a checkpoint. */

    /* ---- Node, driver and files of the peer ---- */
    /* Parsed values of the options that concern this peer only. */
    struct settings settings;
    /* Configuration for the driver, filled in by handle_prepare(). */
    struct uv_driver_config config;
    const char *out; /* Path of the output directory. NULL: no files are written. */
    /* Output directory, open and locked while the handle is open. */
    struct outdir dir;
    struct promise promise;
    /* Text for run.txt in the output directory, which identifies the run
     * (peer/output/run_lock.h). */
    char owner_text[RUN_IDENTITY_TEXT_MAX];
    struct run_log diary; /* Run log and other files that the peer writes. */
    /* HTTP monitor at the address of the option "metrics". */
    struct diary_monitor monitor;
    /* Checkpoint store in the output directory, and the checkpoints that were found there. Open if
     * `has_disk` is true. */
    struct disk disk;
    struct checkpoint_store slots;
    struct checkpoint_store_found found;
    bool has_disk;
    /* Simulation that runs this peer. NULL: the peer has its own thread. */
    struct simulation *simulation;
    uint32_t place; /* Index of this handle in `simulation`, from 0. */
    uv_loop_t loop;
    /* `leave` wakes the peer's thread, which then leaves the run. The timer `look` updates the
     * figures every 250 ms. */
    uv_async_t leave;
    uv_timer_t look;
    struct uv_driver *driver;
    uv_thread_t thread;

    /* ---- Read by the caller's thread. Guarded by `lock`. ---- */
    uv_mutex_t lock;
    /* Latest figures of the node. Only the member `node` is set. */
    struct figure_values seen;
    char codec[256];
    /* JSON text that the last hearsay_figures_json() returned. NULL: none. */
    char *figures_said;
    /* Name of the codec, copied for hearsay_figures() on the caller's thread. */
    char codec_said[256];
    /* Run description. "": the run is not known yet. */
    char run_text[WIRE_RUN_MAX + 1];
    uint64_t copied; /* Bytes copied between tensors and flat vector so far. */
    uint64_t n_rounds, seed;
    /* One 64-bit key for each live member. hearsay_share() assigns samples to members by these
     * keys. */
    uint64_t *keys;
    size_t n_keys;
    /* own_key: this peer's key for the assignment of samples. shares: number of changes of the
     * member list so far, the result of hearsay_shares(). */
    uint64_t own_key, shares;
    /* Copy of `run_text` for the caller: hearsay_run() returns a pointer to it. */
    char run_said[WIRE_RUN_MAX + 1];

    /* ---- Result, written before TURN_OVER ---- */
    /* True if the peer left while the caller trained in place. The tensors then hold the result of
     * an incomplete round, and no model file is written. */
    bool half_done;
    /* Last error message (level NOTE_ERROR) of the node. */
    char last_error[TURN_NOTE_MAX];
    char verdict[VERDICT_TEXT];
    int exit_code;
    /* True if the peer's thread did not stop in time and may still use the handle. */
    bool stuck;
};

/* Stores an error message in the handle. Returns `code`. */
__attribute__((format(printf, 3, 4))) int handle_fail(struct hearsay *h, int code,
                                                      const char *format, ...);
/* Returns the HEARSAY_* code for a negative errno: HEARSAY_USAGE or HEARSAY_SYSTEM. */
int handle_code(int err);

/* simulate.c: closes one simulated handle. Closing the last handle of a simulation joins the
 * simulation's thread. */
void handle_stop_simulated(struct hearsay *h);
/* Copies the node's progress to `h`, for hearsay_figures(). `sent`, `received`: bytes counted at
 * the sockets. */
void handle_update_figures(struct hearsay *h, const struct node *n, uint64_t sent,
                           uint64_t received);
/* Copies the final model x to the caller's tensors. x NULL: no model exists. */
void handle_give_model(struct hearsay *h, const float *x);

/* Does everything that hearsay_open() does before the peer's thread starts. Returns HEARSAY_OK, or
 * a code with a message. After a failure the caller calls handle_undo(). Defined in opening.c. */
int handle_prepare(struct hearsay *h);
/* Does the same as handle_prepare() for a simulated peer, which has no key, socket or file. Defined
 * in opening.c. */
int handle_prepare_simulated(struct hearsay *h);
/* Releases everything that handle_prepare() has opened, but keeps the options and tensors of the
 * caller. Defined in opening.c. */
void handle_undo(struct hearsay *h);
/* Returns whether the option "initial" is true: the run should start with this peer's model. */
bool handle_is_initial(const struct hearsay *h);

/* trainer.c: writes the hash of the initial model x in the form that the run description uses. */
void handle_begin_hash(const struct hearsay *h, const float *x, char out[LAYOUT_BEGIN]);
/* trainer.c: checks that the run fits the tensors, and fills in the trainer. Used as `make_trainer`
 * of struct node_config. Returns 0, or a negative errno with a message. */
int handle_make_trainer(void *self, const struct run *run, struct trainer *t,
                        char error[RUN_ERROR_MAX]);

/* files.c: handle_open_files() is the last step of handle_prepare(), and handle_close_files()
 * undoes it. handle_end_files() writes the results after the event loop has ended. */
int handle_open_files(struct hearsay *h);
void handle_close_files(struct hearsay *h);
void handle_end_files(struct hearsay *h);
/* Sets the verdict and the exit code of the handle, for a node that ended with exit code `code`. */
void handle_decide_verdict(struct hearsay *h, const struct node *n, int code);

/* thread.c: opens the driver and starts the peer's thread. Returns HEARSAY_OK, or a code with a
 * message. */
int handle_start(struct hearsay *h);
/* Asks the peer to leave the run. Called on the caller's thread. */
void handle_leave(struct hearsay *h);
/* Joins the peer's thread, if it has ended, and closes the driver and the event loop. If the thread
 * is still running, only sets `stuck`. */
void handle_stop(struct hearsay *h);
/* Callbacks that the peer's thread passes to the driver (struct uv_driver_config). */
void handle_note(void *self, enum note_level level, const char *module, const char *text);
void handle_measured(void *self, const struct node_progress *p);

#endif
