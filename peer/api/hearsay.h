/* peer/api/hearsay.h -- libhearsay: your program trains its own model, and takes part in a hearsay
 * run.
 *
 * You own the loop and the model; the library owns a thread with the peer: its sessions, members,
 * exchanges and checkpoints. The tensors change hands, and each side leaves them alone while the
 * other has them:
 *
 *      hearsay_new -> hearsay_set, hearsay_tensor ... -> hearsay_open
 *                                                            |
 *                     +--------- hearsay_wait <--------------+      the library has the tensors
 *                     v
 *      HEARSAY_OK: they are yours: hearsay_steps() local steps of training, in place
 *                     |
 *                     +--> hearsay_round --> HEARSAY_OK: yours again, mixed with the neighbours'
 *                                        --> HEARSAY_OVER: the final model is in them
 *                                        --> HEARSAY_TIMEOUT: not yet; hearsay_wait() goes on waiting
 *      hearsay_close
 *
 * **Threads.** One handle belongs to one thread of yours at a time. hearsay_interrupt() may be
 * called from any thread, and from a signal handler. Callbacks run on your thread, inside
 * hearsay_wait(), hearsay_round() and hearsay_leave(), and must not call the library with this
 * handle but for the questions (figures, error, verdict): all else is HEARSAY_USAGE. Several
 * handles live side by side in one process. The library's threads have all signals blocked; it
 * installs no handler, prints nothing, and never ends the process.
 *
 * **fork.** A handle belongs to the process that opened it: a child's calls return HEARSAY_FORKED,
 * but for hearsay_close(), which there does nothing at all. A child may open handles of its own.
 *
 * **Errors.** A handle of NULL is HEARSAY_USAGE, 0 or "". Functions that can fail return an enum
 * hearsay_code, below 0 where they failed; hearsay_error() has a sentence that names what was found
 * and what was expected. What failed has changed nothing.
 *
 * **Memory.** Strings and arrays are borrowed for the call, tensors until hearsay_close(). What is
 * returned is the library's, and valid until the next call with that handle.
 */
#ifndef PEER_API_HEARSAY_H
#define PEER_API_HEARSAY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the library shows is declared so. */
#if defined(__GNUC__)
#define HEARSAY_EXPORT __attribute__((visibility("default")))
#else
#define HEARSAY_EXPORT
#endif

/* Version of this header. Each addition raises the number. */
#define HEARSAY_API 2
/* The HEARSAY_API of the library that was found. A program may call what its own header has where
 * this is not below the header's. From any thread; never fails. */
HEARSAY_EXPORT uint32_t hearsay_api(void);
/* The library's version, "0.1.0". The text is the library's, for as long as it is loaded. From any
 * thread; never fails. */
HEARSAY_EXPORT const char *hearsay_version(void);

/* What functions that can fail return: below 0 where they failed. */
enum hearsay_code {
    HEARSAY_OK = 0,      /* Done; of the calls that wait: the tensors are yours. */
    HEARSAY_OVER = 1,    /* The run is over for this peer: hearsay_verdict() says how it ended. */
    HEARSAY_TIMEOUT = 2, /* Not yet. The library has the tensors still. */
    HEARSAY_INTERRUPTED = 3, /* hearsay_interrupt() was called; else as HEARSAY_TIMEOUT. */
    HEARSAY_USAGE = -1,      /* An option, a tensor, a file or the order of calls is wrong. */
    HEARSAY_SYSTEM = -2,     /* Memory, a thread, a socket or a disk. */
    HEARSAY_NOT_FINITE =
        -3, /* A tensor holds a NaN or an infinity, which is not sent. It is yours still. */
    HEARSAY_CALLBACK =
        -4, /* Your callback failed. The library has the tensors; hearsay_wait() goes on. */
    HEARSAY_FORKED = -5 /* The handle is another process's. */
};

/* A handle: one peer, and the tensors that it mixes. */
struct hearsay;

/* ---- Before a run ------------------------------------------------------------------------------ */

/* A handle without options and tensors; NULL: there is no memory. Allocates some 270 KiB, which are
 * yours to give back by hearsay_close(). From any thread. */
HEARSAY_EXPORT struct hearsay *hearsay_new(void);

/* Ends what is open and frees the handle. A run that is not over is left, as hearsay_leave() does.
 * The tensors are yours from then on, and what the library returned for this handle is not valid
 * any more. NULL is nothing; so is a call from within a callback, or in a forked child. Waits for
 * 5 s at most: what hangs longer is given up, and its memory is not freed. Never fails. */
HEARSAY_EXPORT void hearsay_close(struct hearsay *h);

/* Sets one option, named as on the command line of `hearsay peer`: hearsay_set(h, "topology",
 * "ring"). The names are the run's keys (topology, compress, mixer, rounds, local-steps, ...) and
 * this peer's own options: listen, bootstrap, key, identity, name, advertise, members, token, out,
 * checkpoint, evaluate-every, evaluate-samples, patience, worker-limit, forget, uplink, metrics,
 * shard, initial. hearsay_option_at() lists all of them.
 *
 * "key" is required: a file that `hearsay key new` wrote. An environment variable such as
 * HEARSAY_MIN_PEERS=4 sets an option that is not set here. With "model" (gpt:4x128, lenet5, ...)
 * the tensors must have the names and shapes of that model, and `hearsay peer` can take part in the
 * run.
 *
 * The default of "listen" is port 7100. If another peer of this machine uses that port and
 * "bootstrap" names that peer, the default is the next free port.
 *
 * Name and value are copied. The last value of a name counts. hearsay_open() checks the values.
 * Returns HEARSAY_OK; HEARSAY_USAGE: an unknown name, too many options, or an open handle; or
 * HEARSAY_SYSTEM. */
HEARSAY_EXPORT int hearsay_set(struct hearsay *h, const char *name, const char *value);

/* One option of hearsay_set(). The texts belong to the library and are valid while it is loaded. */
struct hearsay_option
{
    const char *name;     /* Name, such as "min-peers". */
    const char *values;   /* Form or choices of the value: "HOST:PORT,...", "false|true". */
    const char *fallback; /* Default value. NULL: none. */
    const char *about;    /* Meaning, as one phrase. */
    int needs_model;      /* 1: the option needs the option "model". 0: it does not. */
};
/* Writes the i-th option to *out. May be called from any thread. Returns HEARSAY_OK, or
 * HEARSAY_USAGE if `i` is after the last option or `out` is NULL. */
HEARSAY_EXPORT int hearsay_option_at(size_t i, struct hearsay_option *out);

/* Set several options: "topology=ring compress=topk:0.01 bootstrap=a:7100,b:7100". A value has no
 * blanks. HEARSAY_OK; else as hearsay_set() for the first word that is wrong: those before it are
 * set. */
HEARSAY_EXPORT int hearsay_options(struct hearsay *h, const char *words);

/* What a tensor's elements are. */
enum hearsay_type { HEARSAY_FLOAT32, HEARSAY_FLOAT16, HEARSAY_BFLOAT16 };

/* What the run does with a tensor. */
enum hearsay_role {
    HEARSAY_TRAINED, /* Parameters that your steps move. */
    /* Mixed exactly and never trained, such as a running mean of a batch norm. */
    HEARSAY_STATISTIC,
    HEARSAY_VARIANCE, /* A statistic that is never negative. */
    /* Float32 elements that carry other data, such as a mask of bools. All peers get them with the
     * initial model. Model files do not contain them. Do not change them after hearsay_open().
     * Since API 2. */
    HEARSAY_OPAQUE
};

/* How many dimensions a tensor has at most, and bytes its name, without the NUL. */
enum { HEARSAY_DIMS_MAX = 8, HEARSAY_NAME_MAX = 95 };

/* Adds a tensor: contiguous elements in row-major order at `data`, aligned for their type. It has 1
 * to HEARSAY_DIMS_MAX dimensions, or none for a scalar. Names are distinct, of 1 to
 * HEARSAY_NAME_MAX printable bytes without blanks. All peers of a run have the same names, shapes,
 * types and roles, in the same order. A peer with other tensors is refused with HEARSAY_USAGE, and
 * a message names the first tensor that differs. With "model" all tensors are float32.
 *
 * A tensor of 16 bits is the rounded image of float32 values that the library keeps, so that small
 * corrections of mixing are not lost by rounding. All figures, the verdict and the model file use
 * the rounded values, which are those in your tensors.
 *
 * The library works in place if all tensors are float32 and contiguous in the order in which they
 * are added, trained ones first. Otherwise each round copies each tensor twice
 * (figures.bytes_copied counts the bytes).
 *
 * Name and dims are copied. The memory at `data` is borrowed until hearsay_close() and must not
 * move. From hearsay_open() on, you may use it only after a call that hands the tensors to you. No
 * two tensors of a handle may overlap: hearsay_open() refuses that. Returns HEARSAY_OK;
 * HEARSAY_USAGE: the name, a dimension, the alignment or the handle is wrong; or HEARSAY_SYSTEM. */
HEARSAY_EXPORT int hearsay_tensor(struct hearsay *h, const char *name, void *data,
                                  enum hearsay_type type, enum hearsay_role role, uint32_t n_dims,
                                  const uint64_t *dims);

/* Set who is told what the peer has to say: "waiting for 3 more", "b is dead". level: 0 for information, 1 a
 * warning, 2 an error. Up to 256 are kept between two calls; of more the last says how many were
 * lost. The callback runs on the thread that waits, and its text is valid until it returns; `self`
 * is handed to it and never looked at. NULL: nobody is told. HEARSAY_OK; HEARSAY_USAGE: the handle
 * is open. */
HEARSAY_EXPORT int hearsay_on_note(struct hearsay *h,
                                   void (*note)(void *self, int level, const char *text),
                                   void *self);

/* What an evaluation found; accuracy in [0, 1], NaN where there is no such thing. */
struct hearsay_score
{
    double loss;      /* Mean over the samples. */
    double accuracy;  /* The share of samples that the model is right about. */
    uint64_t samples; /* How many were looked at. */
};

/* Set who tests a model: the tensors hold one to be tested on data that no peer trains on, and must not be changed.
 * Called every "evaluate-every" rounds and for the final model; `samples` is how many are enough,
 * 0: all. It returns 0, or anything else, with which the waiting call returns HEARSAY_CALLBACK; the
 * evaluation then counts as none. The callback runs on the thread that waits; `self` is handed to
 * it and never looked at. HEARSAY_OK; HEARSAY_USAGE: the handle is open. */
HEARSAY_EXPORT int hearsay_on_evaluate(struct hearsay *h,
                                       int (*evaluate)(void *self, uint64_t samples,
                                                       struct hearsay_score *score),
                                       void *self);

/* Checks all options, reads key and checkpoints, listens, and starts the peer's thread.
 *
 * "out": directory of this run. A peer that is started again continues from its last checkpoint. A
 * run that has finished is refused: its model and summary.json are in the directory. The directory
 * gets the files of `hearsay peer`, so `hearsay-lab report` can draw them: metrics.jsonl with one line
 * per round, and summary.json. The summary of a peer that left the run says that it is not
 * finished. Data that a full disk does not take are kept in memory, and the last call retries for
 * "patience". If data are still missing then, the run has failed (HEARSAY_SYSTEM), but you have the
 * model.
 *
 * "metrics": HOST:PORT, or PORT on 127.0.0.1. Port 0 is any port, which a note names. A thread of
 * the library serves /metrics for Prometheus and a live page there until the run ends. A port in
 * use is HEARSAY_USAGE.
 *
 * The run's initial model is one peer's tensors as they are now, bit for bit. A run that has begun
 * keeps its initial model. Otherwise the model comes from the peer with "initial=true", else from
 * the peer without "bootstrap", else from one of the peers that can begin the run. If the run
 * begins with another model, a peer with "initial=true" gets a note of level 1.
 *
 * The other peers fetch the initial model from any member that has it and check it by its hash.
 * Their tensors hold it when hearsay_wait() hands them over, and a note says "took the initial
 * model from b". A peer waits at most "patience" for another peer that fetches the model; that peer
 * then joins late. Checkpoints contain the initial model. With "model" the run description
 * determines the initial model, so no peer provides it.
 *
 * Returns HEARSAY_OK: the library has the tensors, and the next call is hearsay_wait().
 * HEARSAY_USAGE: an option, the key, a tensor or the contents of "out" are wrong. HEARSAY_SYSTEM:
 * memory, a thread, a port in use, or a disk. After a failure the tensors are yours, and you may
 * set options and open the handle again. */
HEARSAY_EXPORT int hearsay_open(struct hearsay *h);

/* Opens n handles in one process over a simulated network in virtual time. They take part in one
 * run, which the options of the first handle describe. h[i] is the peer "peer-i". Nothing outside
 * memory is opened: no key, sockets or files. The initial model is that of the handle with
 * "initial=true", else that of the first handle.
 *
 * Your threads drive each handle as usual, but only one handle at a time is given its tensors. A
 * synchronous run therefore depends only on its options and on what you do with the tensors. With
 * the same tensors and steps it gives the same bits as peers of these names over TCP.
 *
 * `network` sets, as words: latency-us=1000 jitter-us=0 bandwidth=0 (bytes/s of each link; 0: no
 * limit) step-us=5000 (virtual time of a local step) cut-rate=0 seed=1. NULL: these values.
 * Timeouts of calls are real time. Every handle must be driven to HEARSAY_OVER, or closed. Returns
 * HEARSAY_OK; or HEARSAY_USAGE or HEARSAY_SYSTEM as hearsay_open() does, with the message in the
 * first handle: no handle is open then. */
HEARSAY_EXPORT int hearsay_open_simulated(struct hearsay *const *h, size_t n, const char *network);

/* ---- In a run ---------------------------------------------------------------------------------- */

/* Wait until the tensors are yours. They hold the model to train from: the run's initial one, that
 * of a checkpoint, or for who joins late the neighbours'. timeout_s: seconds; 0: only look; below
 * 0: for as long as it takes. Notes and evaluations are told meanwhile.
 *
 * HEARSAY_OK, HEARSAY_OVER: the tensors are yours. HEARSAY_TIMEOUT, HEARSAY_INTERRUPTED,
 * HEARSAY_CALLBACK: the library has them still; wait again. HEARSAY_USAGE: the handle is not open,
 * or the run does not fit this peer; HEARSAY_SYSTEM: the peer failed; with either of the two
 * hearsay_exit_code() is above 0, and the tensors are yours, where the run is over by it. */
HEARSAY_EXPORT int hearsay_wait(struct hearsay *h, double timeout_s);

/* So many local steps make this round. 0 before the first HEARSAY_OK; never fails. */
HEARSAY_EXPORT uint32_t hearsay_steps(const struct hearsay *h);
/* So many rounds of the run are over: learning rates follow that number, and not the peer's age. 0
 * before the first HEARSAY_OK; never fails. */
HEARSAY_EXPORT uint64_t hearsay_rounds_done(const struct hearsay *h);
/* How many rounds the run has; 0: it is not known yet. Never fails. */
HEARSAY_EXPORT uint64_t hearsay_rounds(const struct hearsay *h);

/* Result of your local steps in a round. */
struct hearsay_did
{
    double loss; /* Mean loss of the samples. Infinity, or NaN with samples > 0, is divergence. */
    /* Number of samples. 0: not known; a NaN loss then means that the loss is not known. */
    uint64_t samples;
};

/* The local steps are done: mix, and wait for the next round as hearsay_wait() does. In lock step
 * it returns when the neighbours have arrived; with "overlap=1" their last round's correction is in
 * the tensors. `did` may be NULL. After HEARSAY_TIMEOUT and HEARSAY_INTERRUPTED the steps are
 * handed over: go on with hearsay_wait(). Before hearsay_wait() has given the tensors it is
 * HEARSAY_USAGE. HEARSAY_NOT_FINITE: nothing of this round was sent, and the tensors are yours to
 * mend; all else as hearsay_wait(). */
HEARSAY_EXPORT int hearsay_round(struct hearsay *h, const struct hearsay_did *did,
                                 double timeout_s);

/* A call that waits, now or next, returns HEARSAY_INTERRUPTED. From any thread or signal handler,
 * but not beside hearsay_close(). Never fails. */
HEARSAY_EXPORT void hearsay_interrupt(struct hearsay *h);

/* Leave the run in order: the neighbours are told. Local steps that were not handed over are lost; where
 * the library works in place they are in the tensors still, and `out` gets no model of that moment,
 * but keeps its checkpoints. Then hearsay_verdict() says that it was stopped. timeout_s:
 * seconds, below 0: for as long as it takes. HEARSAY_OVER: the tensors are yours; HEARSAY_TIMEOUT, after which only
 * hearsay_close() is left; HEARSAY_USAGE: the handle is not open, or the run did not fit
 * this peer; HEARSAY_SYSTEM: the peer failed. */
HEARSAY_EXPORT int hearsay_leave(struct hearsay *h, double timeout_s);

/* Bytes of yours (an optimiser's state) that the next checkpoints hold beside the model: those of
 * the last call. Copied. To be called while the tensors are yours. n of up to 2 GiB. HEARSAY_OK;
 * HEARSAY_USAGE: too many, or the tensors are not yours; HEARSAY_SYSTEM: no memory, and what was
 * kept before is kept still. */
HEARSAY_EXPORT int hearsay_keep(struct hearsay *h, const void *bytes, size_t n);
/* What hearsay_keep() left in the checkpoint with which this peer went on, once hearsay_wait() has given the tensors;
 * NULL: there is none. *n: how many bytes, *round: after how many rounds they were given; either may
 * be NULL. They are the library's, valid until hearsay_keep() or hearsay_close(). */
HEARSAY_EXPORT const void *hearsay_kept(const struct hearsay *h, size_t *n, uint64_t *round);

/* Which of the samples 0 <= id < n of a set that all peers have are this peer's now, by the option
 * "shard": i/n, or auto, where each is one live member's by rendezvous hashing; in rising order to
 * ids[0..cap), which may be NULL. Returns how many there are, also where that is more than cap. 0,
 * too, where n is 0 or above 2^32 - 1, before hearsay_open(), and where "shard" is wrong, of which
 * hearsay_error() has the sentence. */
HEARSAY_EXPORT uint64_t hearsay_share(struct hearsay *h, uint64_t n, uint64_t *ids, uint64_t cap);
/* Rises whenever the share may have changed: members came or went. Never fails. */
HEARSAY_EXPORT uint64_t hearsay_shares(const struct hearsay *h);

/* ---- Questions --------------------------------------------------------------------------------- */

/* Figures of this peer; a double is NaN where it is not known. */
struct hearsay_figures
{
    size_t size;             /* sizeof of this struct, set by the caller: no more is filled. */
    uint64_t round;          /* Rounds of the run that are done, */
    uint64_t rounds;         /* of so many. */
    uint64_t settle_rounds;  /* Rounds of the last phase, which have no local steps. */
    uint64_t rounds_done;    /* Rounds that this process did, */
    uint64_t rounds_skipped; /* and those that it passed over to catch up. */
    double drift;            /* Estimated consensus distance Xi, */
    double relative_drift;   /* and Xi / |mean|, */
    uint64_t drift_round;    /* of the state before this round's local steps. */
    double loss;             /* The last local steps had this mean loss, as hearsay_did says it. */
    double accuracy;         /* The last evaluation found this accuracy, in [0, 1], */
    double test_loss;        /* and this mean loss, */
    uint64_t accuracy_round; /* after so many rounds. */
    double gamma;            /* The consensus step size, mean over the edges. */
    uint32_t n_live;         /* Members that live, this one among them. */
    uint32_t n_edges;        /* Edges that are open. */
    uint64_t bytes_sent;     /* At the sockets. */
    uint64_t bytes_received; /* At the sockets. */
    uint64_t bytes_copied;   /* Tensors, to and from the library's own memory. */
    double compute_s;        /* Seconds of your local steps, */
    double mix_s;            /* of applying and encoding, */
    double wait_s;           /* and of waiting for others. */
    char codec[256];         /* The last deltas were in this one. */
    char phase[16];          /* gathering, training, settling, serving, left. */
};

/* The figures as they are now, to *f, of which f->size is set by the caller. HEARSAY_OK;
 * HEARSAY_USAGE: the handle is not open, or the size is none. May be asked by a callback. */
HEARSAY_EXPORT int hearsay_figures(struct hearsay *h, struct hearsay_figures *f);

/* What went wrong in the last call that failed; "" before. Valid until the next call with this
 * handle that fails. Never fails. */
HEARSAY_EXPORT const char *hearsay_error(const struct hearsay *h);
/* How the run ended, as a sentence; "" before HEARSAY_OVER. Valid until hearsay_close(). Never
 * fails. */
HEARSAY_EXPORT const char *hearsay_verdict(const struct hearsay *h);
/* The exit code that `hearsay peer` would have: 0 consensus, or stopped; 3 none; 1, 2 failed. -1
 * before HEARSAY_OVER. Never fails. */
HEARSAY_EXPORT int hearsay_exit_code(const struct hearsay *h);
/* The run's canonical text, once it is known; else "". Valid until the next call of this function
 * with this handle. Never fails. */
HEARSAY_EXPORT const char *hearsay_run(struct hearsay *h);
/* The port that it listens on; 0: it is not open. Never fails. */
HEARSAY_EXPORT uint16_t hearsay_port(const struct hearsay *h);

/* ---- Codecs by themselves ---------------------------------------------------------------------- */

/* Any of the codecs for a vector of yours: x - x_hat becomes bytes, and the bytes are added to a
 * replica. Sender and receiver open the same spec for the same layers; equal messages give equal
 * replicas, bit for bit, on every machine.
 *
 *      sender                                      every holder of a replica, the sender, too
 *      hearsay_codec_encode(x, x_hat) --bytes-->   hearsay_codec_add(bytes, x_hat)
 *
 * **Threads.** A codec is one thread's at a time; hearsay_codec_check() and hearsay_codec_add() may
 * be called by several, also beside hearsay_codec_encode(). It has no threads and belongs to no
 * handle.
 *
 * **fork.** A child may go on with its copy of a codec.
 *
 * **Errors.** A NULL in place of a codec is HEARSAY_USAGE, no floats and a message that is none.
 * Codes below 0 say what failed; there is no sentence but that of hearsay_codec_open().
 *
 * **Memory.** All arguments are borrowed for the call; vectors are float32, one behind the other.
 */

/* A codec that is open. */
struct hearsay_codec;

/* Bytes of a sentence, with the NUL. */
enum { HEARSAY_CODEC_ERROR_MAX = 256 };

/* A part of the vector, rows x cols of at least 1 each, for codecs that work on matrices (lowrank)
 * and specs that tell layers apart ("topk:0.01;bias=fp16", "scope=layer"). They lie one behind the
 * other, row by row. The name may be NULL: then no rule finds it by that. A rule that finds no
 * layer does nothing. */
struct hearsay_layer
{
    const char *name; /* What a rule finds it by. */
    uint64_t rows;    /* Output channels, say; a vector is one row. */
    uint64_t cols;    /* Floats of a row. */
};

/* Open a codec. `spec` is what --compress takes: "topk:0.01+qsgd:4". The layers have up to 2^32 - 1
 * floats together, and are copied. All memory there will be is allocated here. HEARSAY_OK; or
 * HEARSAY_USAGE or HEARSAY_SYSTEM, a sentence in `error`, which has HEARSAY_CODEC_ERROR_MAX bytes
 * or is NULL, and *c is NULL. */
HEARSAY_EXPORT int hearsay_codec_open(struct hearsay_codec **c, const char *spec,
                                      const struct hearsay_layer *layers, size_t n_layers,
                                      char *error);
/* Frees the codec and all that it returned. NULL is nothing. Never fails. */
HEARSAY_EXPORT void hearsay_codec_close(struct hearsay_codec *c);
/* The spec with all defaults filled in, by which both ends can see that they have the same. Valid
 * until hearsay_codec_close(); "" for NULL. */
HEARSAY_EXPORT const char *hearsay_codec_spec(const struct hearsay_codec *c);
/* Floats of the vector; 0 for NULL. */
HEARSAY_EXPORT size_t hearsay_codec_floats(const struct hearsay_codec *c);
/* Bytes of the longest message; 0 for NULL. */
HEARSAY_EXPORT size_t hearsay_codec_bound(const struct hearsay_codec *c);

/* Write x - x_hat as a message of *n bytes into out[0..cap), where cap is at least
 * hearsay_codec_bound(). x_hat may be NULL: then it is x. x_hat is not changed: add the message to it. Random choices are a function
 * of seed and round alone; what lowrank sends depends on the messages before, too. *left, unless
 * NULL, is the squared norm of what the message leaves out as a share of that of x - x_hat, 0 where
 * that is 0: at most 1, but for the codecs that are no contraction ("scale=raw").
 * HEARSAY_OK; HEARSAY_USAGE: a pointer is NULL, or cap too small, and nothing was written;
 * HEARSAY_NOT_FINITE: the difference is not finite, or its square overflows; then nothing that is
 * in `out` counts, *n and *left are as they were, and what lowrank remembers may be another. */
HEARSAY_EXPORT int hearsay_codec_encode(struct hearsay_codec *c, const float *x, const float *x_hat,
                                        uint64_t seed, uint64_t round, void *out, size_t cap,
                                        size_t *n, double *left);
/* Is this a whole and proper message? 1 or 0; the bytes may be anybody's. O(n). May be called by
 * several threads at a time. */
HEARSAY_EXPORT int hearsay_codec_check(const struct hearsay_codec *c, const void *message,
                                       size_t n);
/* Add the message to x_hat, hearsay_codec_floats() floats of yours. HEARSAY_OK; HEARSAY_USAGE, and
 * nothing changed, where hearsay_codec_check() says 0. May be called by several threads at a time,
 * each with an x_hat of its own. */
HEARSAY_EXPORT int hearsay_codec_add(const struct hearsay_codec *c, const void *message, size_t n,
                                     float *x_hat);
/* The i-th codec's spec with its defaults, and what it sends, valid until this thread's next call
 * of this function; either may be NULL. From any thread. HEARSAY_OK; HEARSAY_USAGE behind the
 * last. */
HEARSAY_EXPORT int hearsay_codec_at(size_t i, const char **preset, const char **about);

#ifdef __cplusplus
}
#endif

#endif
