/* peer/api/hearsay.h -- libhearsay: train your own model in your own program, and take part in a
 * hearsay run.
 *
 * You own the training loop and the model. The library owns a thread that runs the peer: sessions,
 * members, exchanges with the neighbours, checkpoints. The tensors change hands. At any time either
 * you or the library has them, and the other side neither reads nor writes them:
 *
 *     hearsay_new -> hearsay_set, hearsay_tensor ... -> hearsay_open
 *                                                           |
 *                    +--------- hearsay_wait <--------------+      the library has the tensors
 *                    v
 *     HEARSAY_OK: the tensors are yours: do hearsay_steps() local steps of training, in place
 *                    |
 *                    +--> hearsay_round --> HEARSAY_OK       yours again, mixed with the neighbours'
 *                                       --> HEARSAY_OVER     yours: the final model
 *                                       --> HEARSAY_TIMEOUT  not yet: call hearsay_wait()
 *     hearsay_close
 *
 * **Threads.** A handle may be used by one thread of yours at a time, with one exception:
 * hearsay_interrupt() may be called from any thread, and from a signal handler. Different handles
 * are independent of each other. Callbacks run on your thread, inside hearsay_wait(),
 * hearsay_round(), hearsay_leave() and hearsay_close(). Within a callback you may call the
 * functions that only ask (figures, error, verdict) for the same handle. Functions that act on the
 * handle return HEARSAY_USAGE there, and hearsay_close() does nothing. The library's threads block
 * all signals. The library installs no signal handler, prints nothing and never ends the process.
 *
 * **Fork.** A handle belongs to the process that made it. In a forked child, calls with that handle
 * return HEARSAY_FORKED, and hearsay_close() does nothing. A child may make handles of its own.
 *
 * **Errors.** Functions that can fail return an enum hearsay_code, which is negative after a
 * failure. hearsay_error() then returns a message that says what was found and what was expected. A
 * failed call has no effect, unless its description says otherwise. If the handle is NULL,
 * functions return HEARSAY_USAGE, 0, NULL or a constant text, and do nothing.
 *
 * **Memory.** Strings and arrays that you pass are borrowed for the call, tensors until
 * hearsay_close(). Pointers that the library returns belong to the library. Unless stated
 * otherwise, they are valid until the next call with the same handle. */
#ifndef PEER_API_HEARSAY_H
#define PEER_API_HEARSAY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Marks a function that the shared library exports. */
#if defined(__GNUC__)
#define HEARSAY_EXPORT __attribute__((visibility("default")))
#else
#define HEARSAY_EXPORT
#endif

/* Version of the interface in this header. Each addition to the interface raises the number. */
#define HEARSAY_API 2
/* Returns the HEARSAY_API of the library that is loaded. If the result is not smaller than the
 * HEARSAY_API of your header, every function of your header exists. May be called from any thread.
 * Never fails. */
HEARSAY_EXPORT uint32_t hearsay_api(void);
/* Returns the version of the library, such as "0.1.0". The text is valid while the library is
 * loaded. May be called from any thread. Never fails. */
HEARSAY_EXPORT const char *hearsay_version(void);

/* Results of the functions that can fail. Negative values are failures. */
enum hearsay_code {
    HEARSAY_OK = 0,          /* Success. From calls that wait: the tensors are yours. */
    HEARSAY_OVER = 1,        /* The run is over for this peer: see hearsay_verdict(). */
    HEARSAY_TIMEOUT = 2,     /* The time is over. The library still has the tensors. */
    HEARSAY_INTERRUPTED = 3, /* hearsay_interrupt() was called; else like HEARSAY_TIMEOUT. */
    HEARSAY_USAGE = -1,      /* An option, tensor, file or the order of calls is wrong. */
    HEARSAY_SYSTEM = -2,     /* Memory, a thread, a socket or a disk failed. */
    HEARSAY_NOT_FINITE = -3, /* A tensor holds NaN or infinity. The tensors are yours. */
    HEARSAY_CALLBACK = -4,   /* Your callback failed. Call hearsay_wait() to continue. */
    HEARSAY_FORKED = -5      /* The handle belongs to another process. */
};

/* A handle: one peer, and the tensors that the peer trains. Opaque. */
struct hearsay;

/* ---- Before a run ------------------------------------------------------------------------------ */

/* Makes a handle without options and tensors. Allocates about 270 KiB. Free the handle with
 * hearsay_close(). May be called from any thread. Returns NULL if memory is short. */
HEARSAY_EXPORT struct hearsay *hearsay_new(void);

/* Closes the handle and frees its memory. If the run is not over, the peer leaves it first, as
 * hearsay_leave() does, which may call the note callback. Waits at most 5 s. If the peer has not
 * stopped by that time, its memory is not freed, and your tensors may still be in use. Otherwise
 * the tensors are yours, and every pointer that the library returned for this handle becomes
 * invalid. Does nothing if `h` is NULL, within a callback, or in a forked child. Never fails. */
HEARSAY_EXPORT void hearsay_close(struct hearsay *h);

/* Sets one option, named as on the command line of `hearsay peer`: hearsay_set(h, "topology",
 * "ring"). There are two kinds of options:
 *
 *     options of the run        topology, compress, mixer, rounds, local-steps, ...; must be equal
 *                               at all peers
 *     options of this peer      listen, bootstrap, key, identity, name, advertise, members, token,
 *                               out, checkpoint, evaluate-every, evaluate-samples, patience,
 *                               worker-limit, forget, uplink, metrics, shard, initial
 *
 * hearsay_option_at() lists all options with their defaults. A peer with "bootstrap" that sets no
 * option of the run takes the run from the cluster.
 *
 * "key" is required: the file with the cluster key, which `hearsay key new` writes. An environment
 * variable such as HEARSAY_MIN_PEERS=4 sets an option that is not set here. With "model"
 * (gpt:4x128, lenet5, ...) the tensors must have the names and shapes of that model, and `hearsay
 * peer` can take part in the run.
 *
 * The default of "listen" is port 7100. If another peer of this machine uses that port and
 * "bootstrap" names that peer, the default is the next free port.
 *
 * Underscores in the name count as hyphens. Name and value are copied. If a name is set twice, the
 * last value counts. The values are checked by hearsay_open(). Returns HEARSAY_OK; HEARSAY_USAGE if
 * the name is not a valid name, there are more than 96 options, or the handle is open; or
 * HEARSAY_SYSTEM if memory is short. Unknown names are reported by hearsay_open(). */
HEARSAY_EXPORT int hearsay_set(struct hearsay *h, const char *name, const char *value);

/* Description of one option of hearsay_set(). The texts belong to the library and are valid while
 * the library is loaded. */
struct hearsay_option
{
    const char *name;     /* Name, such as "min-peers". */
    const char *values;   /* Form or choices of the value: "HOST:PORT,...", "false|true". */
    const char *fallback; /* Default value. NULL: none. */
    const char *about;    /* Meaning, as one phrase. */
    int needs_model;      /* 1: the option needs the option "model". 0: it does not. */
};
/* Writes the description of option number `i`, from 0, to `*out`. May be called from any thread.
 * Returns HEARSAY_OK, or HEARSAY_USAGE if there is no option `i` or `out` is NULL. */
HEARSAY_EXPORT int hearsay_option_at(size_t i, struct hearsay_option *out);

/* Sets several options, separated by blanks: "topology=ring compress=topk:0.01
 * bootstrap=a:7100,b:7100". A value cannot contain blanks. Returns HEARSAY_OK, or fails as
 * hearsay_set() does at the first wrong option. The options before that one stay set. */
HEARSAY_EXPORT int hearsay_options(struct hearsay *h, const char *words);

/* Type of a tensor's elements. */
enum hearsay_type { HEARSAY_FLOAT32, HEARSAY_FLOAT16, HEARSAY_BFLOAT16 };

/* How the run treats a tensor. */
enum hearsay_role {
    HEARSAY_TRAINED, /* Parameters, which your local steps change. */
    /* Mixed exactly and never trained, such as a running mean of a batch norm. */
    HEARSAY_STATISTIC,
    HEARSAY_VARIANCE, /* A statistic that is never negative. */
    /* Float32 elements that carry other data, such as a mask of bools. All peers get them with the
     * initial model. Model files do not contain them. Do not change them after hearsay_open().
     * Since API 2. */
    HEARSAY_OPAQUE
};

/* Largest number of dimensions of a tensor, and longest name of a tensor in bytes, without the
 * NUL. */
enum { HEARSAY_DIMS_MAX = 8, HEARSAY_NAME_MAX = 95 };

/* Adds a tensor: contiguous elements in row-major order at `data`, aligned for their type. A tensor
 * has 1 to HEARSAY_DIMS_MAX dimensions, or none if it is a scalar. Names are distinct and have 1 to
 * HEARSAY_NAME_MAX printable ASCII characters without blanks. All peers of a run must have the same
 * names, shapes, types and roles, in the same order. A peer with other tensors is refused with
 * HEARSAY_USAGE, and a message names the first tensor that differs. With "model" all tensors must
 * be float32.
 *
 * A tensor of 16 bits is the rounded copy of float32 values that the library keeps, so that small
 * corrections of mixing are not lost by rounding. All figures, the verdict and the model file use
 * the rounded values, which are those in your tensors.
 *
 * The library works in place if all tensors are float32 and are adjacent in memory, in
 * the order in which they are added, trained tensors first. Otherwise each round copies each tensor
 * twice (bytes_copied of struct hearsay_figures counts the bytes).
 *
 * `name` and `dims` are copied. The memory at `data` is borrowed until hearsay_close() and must not
 * move. From hearsay_open() on, use the memory only while the tensors are yours. The tensors of a
 * handle must not overlap: hearsay_open() refuses that. Returns HEARSAY_OK; HEARSAY_USAGE if the
 * name, a dimension, the alignment or the handle is wrong; or HEARSAY_SYSTEM if memory is short. */
HEARSAY_EXPORT int hearsay_tensor(struct hearsay *h, const char *name, void *data,
                                  enum hearsay_type type, enum hearsay_role role, uint32_t n_dims,
                                  const uint64_t *dims);

/* Sets the callback that receives messages about the run, such as "waiting for 3 more" or "b is
 * dead". `level` is 0 for information, 1 for a warning, 2 for an error. Up to 256 messages are kept
 * between two calls that wait; if there are more, a last message says how many were lost. The
 * callback runs on the thread that waits. `text` is valid until the callback returns. `self` is
 * passed on unchanged. `note` NULL: messages are discarded. Returns HEARSAY_OK, or HEARSAY_USAGE if
 * the handle is open. */
HEARSAY_EXPORT int hearsay_on_note(struct hearsay *h,
                                   void (*note)(void *self, int level, const char *text),
                                   void *self);

/* Result of an evaluation on test data. */
struct hearsay_score
{
    double loss;      /* Mean loss over the samples. */
    double accuracy;  /* Share of correct samples, in [0, 1]. NaN: not measured. */
    uint64_t samples; /* Number of samples that were evaluated. */
};

/* Sets the callback that evaluates a model on test data. While the callback runs, the tensors hold
 * the model to be evaluated and must not be changed. The callback is called every "evaluate-every"
 * rounds, and for the final model. `samples`: number of samples that are enough, 0: use all. The
 * callback writes `*score` and returns 0. If it returns anything else, there is no result, and the
 * waiting call returns HEARSAY_CALLBACK. The callback runs on the thread that waits. `self` is
 * passed on unchanged. `evaluate` NULL: no evaluations. Returns HEARSAY_OK, or HEARSAY_USAGE if the
 * handle is open. */
HEARSAY_EXPORT int hearsay_on_evaluate(struct hearsay *h,
                                       int (*evaluate)(void *self, uint64_t samples,
                                                       struct hearsay_score *score),
                                       void *self);

/* Checks all options, reads the key and the checkpoints, listens on a port, and starts the peer's
 * thread. Returns without waiting for other peers. On success the library has the tensors, and the
 * next call is hearsay_wait().
 *
 * "out": output directory of this run. A peer that is started again continues from its last
 * checkpoint. A directory with a finished run is refused: the directory already has the model and
 * summary.json. The directory gets the same files as that of `hearsay peer`, so `hearsay-lab
 * report` can draw them: metrics.jsonl with one line per round, and summary.json. If the peer left
 * the run, its summary says that the run is not finished. Data that a full disk does not take are
 * kept in memory, and the last call retries for "quorum-timeout" seconds. If data are still missing then,
 * the run has failed (HEARSAY_SYSTEM), but the final model is in your tensors.
 *
 * "metrics": HOST:PORT, or PORT on 127.0.0.1. With port 0 the system chooses a port, which a
 * message names. A thread of the library serves /metrics for Prometheus and a live page at that
 * address until the run ends.
 *
 * The initial model of the run is a copy of one peer's tensors at the time of this call, bit for
 * bit. A run that has begun keeps its initial model. Otherwise the model comes from the first of
 * these peers:
 *
 *     the peer with "initial=true"
 *     the peer without "bootstrap"
 *     one of the peers that set options of the run
 *
 * The other peers fetch the initial model from any member that has it and check it by its hash.
 * Their tensors hold it when hearsay_wait() hands them over, and a message says "took the initial
 * model from b". A peer waits at most "quorum-timeout" seconds for another peer that fetches the model;
 * that peer then joins late. If the run begins with another model, a peer with "initial=true" gets
 * a message of level 1. Checkpoints contain the initial model. With "model" the run description
 * determines the initial model, so no peer provides it.
 *
 * After a failure the tensors are yours, and you may set options and open the handle again.
 * Results:
 *
 *     HEARSAY_OK            the library has the tensors
 *     HEARSAY_USAGE         an option, the key, a tensor or the content of "out" is wrong, or the
 *                           port of "metrics" is in use
 *     HEARSAY_NOT_FINITE    a tensor holds NaN or infinity
 *     HEARSAY_SYSTEM        memory, a thread, a port in use, or a disk */
HEARSAY_EXPORT int hearsay_open(struct hearsay *h);

/* Opens `n` handles in one process over a simulated network in virtual time, for tests and
 * experiments. The handles take part in one run. Handle h[i] is the peer "peer-i". Nothing outside
 * memory is opened: no key, socket or file. All handles must have the same options of the run and
 * the same tensors; "min-peers" is `n` unless set. Of the options of a peer only these are allowed:
 * shard, evaluate-every, evaluate-samples, patience, worker-limit, initial. The initial model is
 * that of the handle with "initial=true", else that of the first handle.
 *
 * Your threads drive each handle as usual, but only one handle at a time is given its tensors. A
 * synchronous run therefore depends only on its options and on your changes to the tensors. With
 * the same tensors and steps it gives the same bits as peers of these names over TCP.
 *
 * `network` sets properties of the simulated network, separated by blanks. NULL: these defaults.
 *
 *     latency-us=1000     time from one peer to another, in microseconds
 *     jitter-us=0         largest random addition to the latency
 *     bandwidth=0         bytes per second of each link, in each direction; 0: no limit
 *     step-us=5000        virtual time of one local step
 *     cut-rate=0          probability that a delta is lost together with its session, 0 to 0.9
 *     seed=1              seed of the random choices
 *
 * Timeouts of calls are real time. Every handle must be driven to HEARSAY_OVER or be closed.
 * Returns HEARSAY_OK, or fails as hearsay_open() does: HEARSAY_USAGE, HEARSAY_NOT_FINITE or
 * HEARSAY_SYSTEM. Then no handle is open, and hearsay_error() of the first handle has the
 * message. */
HEARSAY_EXPORT int hearsay_open_simulated(struct hearsay *const *h, size_t n, const char *network);

/* ---- In a run ---------------------------------------------------------------------------------- */

/* Waits until the library hands the tensors to you. The tensors then hold the model to train from:
 * the initial model of the run, the model of a checkpoint, or, for a peer that joins late, the
 * model of its neighbours. Returns at once if the tensors are yours already. Callbacks are called
 * during the wait.
 *
 * `timeout_s`: longest time to wait, in seconds; 0: do not wait; negative: no limit. Results:
 *
 *     HEARSAY_OK            the tensors are yours: do hearsay_steps() local steps
 *     HEARSAY_OVER          the run is over; the tensors are yours and hold the final model
 *     HEARSAY_TIMEOUT       the library still has the tensors; call hearsay_wait() again
 *     HEARSAY_INTERRUPTED   hearsay_interrupt() was called; else as HEARSAY_TIMEOUT
 *     HEARSAY_CALLBACK      the evaluation callback failed; else as HEARSAY_TIMEOUT
 *     HEARSAY_USAGE         the handle is not open, or the run does not fit this peer
 *     HEARSAY_SYSTEM        the peer failed
 *
 * If the run ended with one of the last two results, hearsay_exit_code() is above 0 and the tensors
 * are yours. */
HEARSAY_EXPORT int hearsay_wait(struct hearsay *h, double timeout_s);

/* Returns the number of local steps to do in this round. 0 before hearsay_wait() has returned
 * HEARSAY_OK for the first time. Never fails. */
HEARSAY_EXPORT uint32_t hearsay_steps(const struct hearsay *h);
/* Returns the number of rounds of the run that are complete. Learning-rate schedules use this
 * number, which also counts rounds before this peer joined. 0 before hearsay_wait() has returned
 * HEARSAY_OK for the first time. Never fails. */
HEARSAY_EXPORT uint64_t hearsay_rounds_done(const struct hearsay *h);
/* Returns the number of rounds of the run. 0: not known yet. Never fails. */
HEARSAY_EXPORT uint64_t hearsay_rounds(const struct hearsay *h);

/* Result of your local steps in a round. */
struct hearsay_did
{
    double loss; /* Mean loss of the samples. Infinity, or NaN with samples > 0, is divergence. */
    /* Number of samples. 0: not known; a NaN loss then means that the loss is not known. */
    uint64_t samples;
};

/* The local steps are done: gives the tensors to the library, which exchanges deltas with the
 * neighbours, and waits for the next round as hearsay_wait() does. With the policy sync the call
 * returns HEARSAY_OK when the deltas of all neighbours have arrived and been mixed in. With
 * "overlap=1" the tensors hold the correction of the round before.
 *
 * `did`: result of your local steps; NULL: not known. `timeout_s`: longest time to wait, in
 * seconds; 0: do not wait; negative: no limit. Results in addition to those of hearsay_wait():
 *
 *     HEARSAY_USAGE         the library has the tensors: call hearsay_wait() before
 *     HEARSAY_NOT_FINITE    a tensor holds NaN or infinity; nothing was sent, and the tensors are
 *                           yours to repair
 *
 * After HEARSAY_TIMEOUT, HEARSAY_INTERRUPTED or HEARSAY_CALLBACK the library has the tensors.
 * Continue with hearsay_wait(), not with hearsay_round(). */
HEARSAY_EXPORT int hearsay_round(struct hearsay *h, const struct hearsay_did *did,
                                 double timeout_s);

/* Interrupts a wait: the call that waits now, or else the next one, returns HEARSAY_INTERRUPTED.
 * May be called from any thread and from a signal handler, but not during or after hearsay_close().
 * Never fails. */
HEARSAY_EXPORT void hearsay_interrupt(struct hearsay *h);

/* Leaves the run and notifies the neighbours. Local steps that were not handed over are lost to the
 * run. If the library works in place, those steps are still in the tensors, and "out" keeps its
 * checkpoints but gets no model file. Afterwards hearsay_verdict() says that the peer was stopped.
 *
 * `timeout_s`: longest time to wait, in seconds; negative: no limit. Results:
 *
 *     HEARSAY_OVER          the peer has left; the tensors are yours
 *     HEARSAY_TIMEOUT       the peer has not stopped yet; only hearsay_close() may be called
 *     HEARSAY_USAGE         the handle is not open, or the run did not fit this peer
 *     HEARSAY_SYSTEM        the peer failed */
HEARSAY_EXPORT int hearsay_leave(struct hearsay *h, double timeout_s);

/* Stores data of yours, such as the state of an optimiser, in all following checkpoints. The data
 * of the last call count. The bytes are copied. `n`: at most 2 GiB. Call this function while the
 * tensors are yours. Returns HEARSAY_OK; HEARSAY_USAGE if `n` is too large or the tensors are not
 * yours; or HEARSAY_SYSTEM if memory is short. After a failure the data of the call before are
 * kept. */
HEARSAY_EXPORT int hearsay_keep(struct hearsay *h, const void *bytes, size_t n);
/* Returns the data of hearsay_keep() in the checkpoint from which this peer resumed. NULL: there
 * are none, or hearsay_wait() has not handed over the tensors yet. `*n` gets the number of bytes,
 * `*round` the number of rounds that were complete when the data were stored; both pointers may be
 * NULL. The data belong to the library and are valid until hearsay_keep() or hearsay_close(). */
HEARSAY_EXPORT const void *hearsay_kept(const struct hearsay *h, size_t *n, uint64_t *round);

/* Selects this peer's share of a data set of `n` samples that all peers have, by the option
 * "shard": "i/n" is part i of n; "own" is all samples; "auto" assigns each sample to one live
 * member by rendezvous hashing. Writes the numbers of the samples, 0 to n - 1 in rising order, to
 * ids[0..cap); `ids` may be NULL. Returns the size of the share, which may be larger than `cap`.
 * Returns 0 if `n` is 0 or above 2^32 - 1, before hearsay_open(), or if "shard" is wrong; in the
 * last case hearsay_error() has a message. */
HEARSAY_EXPORT uint64_t hearsay_share(struct hearsay *h, uint64_t n, uint64_t *ids, uint64_t cap);
/* Returns a number that increases whenever the result of hearsay_share() may have changed, because
 * a member joined or left. Never fails. */
HEARSAY_EXPORT uint64_t hearsay_shares(const struct hearsay *h);

/* ---- Queries --------------------------------------------------------------------------------- */

/* State of this peer in numbers. A double is NaN while its value is not known. */
struct hearsay_figures
{
    size_t size;             /* Set by the caller to sizeof of this struct. No more is written. */
    uint64_t round;          /* Rounds of the run that are complete. */
    uint64_t rounds;         /* Rounds of the run in total. 0: not known yet. */
    uint64_t settle_rounds;  /* Rounds of the consensus phase, which have no local steps. */
    uint64_t rounds_done;    /* Rounds that this process did. */
    uint64_t rounds_skipped; /* Rounds that this process skipped to catch up. */
    double drift;            /* Estimated consensus distance, absolute. */
    double relative_drift;   /* Estimated consensus distance divided by |x_mean|. */
    uint64_t drift_round;    /* Round of the two drift values, before its local steps. */
    double loss;             /* Mean loss of the last local steps, as given in hearsay_did. */
    double accuracy;         /* Accuracy of the last evaluation, in [0, 1]. */
    double test_loss;        /* Mean loss of the last evaluation. */
    uint64_t accuracy_round; /* Rounds of the evaluated model, consensus phase included. */
    double gamma;            /* Consensus step size: mean over the edges. */
    uint32_t n_live;         /* Live members, including this peer. */
    uint32_t n_edges;        /* Open edges. */
    uint64_t bytes_sent;     /* Bytes sent, counted at the sockets. */
    uint64_t bytes_received; /* Bytes received, counted at the sockets. */
    uint64_t bytes_copied;   /* Bytes of tensors copied to and from the library's memory. */
    double compute_s;        /* Time of your local steps, in seconds. */
    double mix_s;            /* Time of applying and encoding deltas, in seconds. */
    double wait_s;           /* Time of waiting for other peers, in seconds. */
    char codec[256];         /* Codec of the last deltas. */
    char phase[16];          /* Phase: gathering, training, holding, settling, serving, left. */
};

/* Writes the current state to `*f`. The caller sets `f->size` before. May be called in a callback.
 * Returns HEARSAY_OK, or HEARSAY_USAGE if the handle is not open, `f` is NULL or `f->size` is too
 * small. */
HEARSAY_EXPORT int hearsay_figures(struct hearsay *h, struct hearsay_figures *f);

/* Returns the message of the last call that failed, "" if none has failed. The text is valid until
 * the next failure of a call with this handle. Never fails. */
HEARSAY_EXPORT const char *hearsay_error(const struct hearsay *h);
/* Returns the verdict of the run as a sentence, "" while the run is not over (HEARSAY_OVER or a
 * failure). The text is valid until hearsay_close(). Never fails. */
HEARSAY_EXPORT const char *hearsay_verdict(const struct hearsay *h);
/* Returns the exit code that `hearsay peer` would have: 0 for consensus or a stopped peer, 1 or 2
 * for a failure, 3 for a run without consensus, -1 while the run is not over. Never fails. */
HEARSAY_EXPORT int hearsay_exit_code(const struct hearsay *h);
/* Returns the run description, "" while the run is not known. The text is valid until the next call
 * of this function with the same handle. Never fails. */
HEARSAY_EXPORT const char *hearsay_run(struct hearsay *h);
/* Returns the port on which the peer listens, 0 if the handle is not open. Never fails. */
HEARSAY_EXPORT uint16_t hearsay_port(const struct hearsay *h);

/* ---- Codecs ---------------------------------------------------------------------------------- */

/* Compression of vectors by any codec of hearsay, independent of runs and handles. The sender
 * encodes the difference x - x_hat of a vector and its replica as a message. Each holder of a
 * replica adds the message to x_hat. Both ends open the same codec for the same layers. The same
 * messages then give the same replicas, bit for bit, on every machine.
 *
 *     sender                                      every holder of a replica, including the sender
 *     hearsay_codec_encode(x, x_hat) --bytes-->   hearsay_codec_add(bytes, x_hat)
 *
 * **Threads.** A codec may be used by one thread at a time, with one exception:
 * hearsay_codec_check() and hearsay_codec_add() may be called by several threads at once, also
 * during hearsay_codec_encode(). A codec starts no threads and belongs to no handle.
 *
 * **Fork.** A forked child may use its copy of a codec.
 *
 * **Errors.** Negative codes are failures. Only hearsay_codec_open() writes a message. If the codec
 * is NULL, functions return HEARSAY_USAGE, 0 or "".
 *
 * **Memory.** All arguments are borrowed for the call. Vectors are contiguous arrays of float32. */

/* An open codec. Opaque. */
struct hearsay_codec;

/* Size of an error message, in bytes with the NUL. */
enum { HEARSAY_CODEC_ERROR_MAX = 256 };

/* A layer: `rows` x `cols` floats of the vector, both at least 1. Layers follow each other in the
 * vector, each in row-major order. They matter to codecs for matrices (lowrank) and to specs with
 * rules for layers ("topk:0.01;bias=fp16", "scope=layer"). A rule that matches no layer has no
 * effect. */
struct hearsay_layer
{
    const char *name; /* Name that rules match. NULL: no rule matches by name. */
    uint64_t rows;    /* Rows, such as output channels. A vector has one row. */
    uint64_t cols;    /* Floats per row. */
};

/* Opens a codec. `spec` is a value of the option --compress, such as "topk:0.01+qsgd:4". `layers`
 * describe the vector, which has at most 2^32 - 1 floats; they are copied. All memory of the codec
 * is allocated here. `error`: buffer of HEARSAY_CODEC_ERROR_MAX bytes for a message, or NULL.
 * Returns HEARSAY_OK and the codec in `*c`; or HEARSAY_USAGE or HEARSAY_SYSTEM, with a message and
 * `*c` NULL. Close the codec with hearsay_codec_close(). */
HEARSAY_EXPORT int hearsay_codec_open(struct hearsay_codec **c, const char *spec,
                                      const struct hearsay_layer *layers, size_t n_layers,
                                      char *error);
/* Closes the codec and frees its memory. Does nothing if `c` is NULL. Never fails. */
HEARSAY_EXPORT void hearsay_codec_close(struct hearsay_codec *c);
/* Returns the spec with all defaults filled in. Both ends can compare this text to make sure that
 * they use the same codec. The text is valid until hearsay_codec_close(). "" if `c` is NULL. Never
 * fails. */
HEARSAY_EXPORT const char *hearsay_codec_spec(const struct hearsay_codec *c);
/* Returns the number of floats of the vector, 0 if `c` is NULL. */
HEARSAY_EXPORT size_t hearsay_codec_floats(const struct hearsay_codec *c);
/* Returns the size of the longest message in bytes, 0 if `c` is NULL. */
HEARSAY_EXPORT size_t hearsay_codec_bound(const struct hearsay_codec *c);

/* Encodes x - x_hat as a message of `*n` bytes in out[0..cap). `cap` must be at least
 * hearsay_codec_bound(). `x_hat` NULL stands for zeros. `x_hat` is not changed: call
 * hearsay_codec_add() to add the message to it. Random choices depend on `seed` and `round` only.
 * The messages of lowrank also depend on earlier messages.
 *
 * `*left` gets the part that the message leaves out, as |x - x_hat - message|^2 / |x - x_hat|^2, or
 * 0 if x equals x_hat. The value is at most 1, except for codecs that are not contractions
 * ("scale=raw"). `left` may be NULL.
 *
 * Returns HEARSAY_OK; HEARSAY_USAGE if a pointer is NULL or `cap` is too small, and nothing was
 * written; or HEARSAY_NOT_FINITE if the difference is not finite or its square overflows. In the
 * last case `*n` and `*left` are unchanged, the content of `out` is undefined, and the internal
 * state of lowrank may have changed. */
HEARSAY_EXPORT int hearsay_codec_encode(struct hearsay_codec *c, const float *x, const float *x_hat,
                                        uint64_t seed, uint64_t round, void *out, size_t cap,
                                        size_t *n, double *left);
/* Returns 1 if the bytes are a complete and valid message of this codec, else 0: the result is 1 or
 * 0. The bytes may come from an untrusted sender. O(n). May be called by several threads at
 * once. */
HEARSAY_EXPORT int hearsay_codec_check(const struct hearsay_codec *c, const void *message,
                                       size_t n);
/* Adds a message to `x_hat`, an array of hearsay_codec_floats() floats. Returns HEARSAY_OK, or
 * HEARSAY_USAGE if hearsay_codec_check() refuses the message, and `x_hat` is unchanged. May be
 * called by several threads at once, each with its own `x_hat`. */
HEARSAY_EXPORT int hearsay_codec_add(const struct hearsay_codec *c, const void *message, size_t n,
                                     float *x_hat);
/* Describes codec number `i`, from 0: `*preset` gets its spec with all defaults, `*about` one
 * phrase. Both pointers may be NULL. The texts are valid until the next call of this function on
 * the same thread. May be called from any thread. Returns HEARSAY_OK, or HEARSAY_USAGE if there is
 * no codec `i`. */
HEARSAY_EXPORT int hearsay_codec_at(size_t i, const char **preset, const char **about);

#ifdef __cplusplus
}
#endif

#endif
