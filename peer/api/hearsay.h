/* peer/api/hearsay.h -- libhearsay: train your own model in your own program, as one peer of a
 * hearsay run.
 *
 * Several peers train copies of one model. In each round, a peer does some local steps of training
 * and then exchanges compressed updates (deltas) with its neighbours. Your program owns the model
 * and the training loop. The library runs the peer in a thread of its own: sessions, members,
 * exchanges with the neighbours, checkpoints.
 *
 *     struct hearsay *h = hearsay_new();
 *     hearsay_set(h, "key", "cluster.key");
 *     hearsay_options(h, "topology=ring min-peers=4 rounds=1000");
 *     hearsay_tensor(h, "weight", weight, HEARSAY_FLOAT32, HEARSAY_TRAINED, 2, dims);
 *     int code = hearsay_open(h);
 *     if (code == HEARSAY_OK)
 *         code = hearsay_wait(h, -1);
 *     while (code == HEARSAY_OK) {
 *         struct hearsay_did did = my_training(hearsay_steps(h));
 *         code = hearsay_round(h, &did, -1);
 *     }
 *     puts(code == HEARSAY_OVER ? hearsay_verdict(h) : hearsay_error(h));
 *     hearsay_close(h);
 *
 * You and the library use the tensors in turns. "The tensors are yours" means: your program may
 * read and write them, and the library does not. "The library has the tensors" means the opposite.
 *
 *     hearsay_new -> hearsay_set, hearsay_tensor ... -> hearsay_open
 *                                                           |
 *                    +--------- hearsay_wait <--------------+      the library has the tensors
 *                    v
 *     HEARSAY_OK: the tensors are yours: do hearsay_steps() local steps of training, in place
 *                    |
 *                    +--> hearsay_round --> HEARSAY_OK       yours again, mixed with others'
 *                                       --> HEARSAY_OVER     yours: the final model
 *                                       --> HEARSAY_TIMEOUT  not yet yours: call hearsay_wait()
 *     hearsay_close
 *
 * **Threads.** A handle may be used by one thread of yours at a time, with one exception:
 * hearsay_interrupt() may be called from any thread and from a signal handler. Different handles
 * are independent of each other. Callbacks run on your thread, inside hearsay_wait(),
 * hearsay_round(), hearsay_leave() and hearsay_close(). A callback may call functions that only
 * query its own handle (figures, error, verdict). Within a callback, functions that act on the
 * handle return HEARSAY_USAGE, and hearsay_close() does nothing. The library's threads block all
 * signals. The library installs no signal handler, prints nothing and never ends the process.
 *
 * **Fork.** A handle belongs to the process that made it. In a forked child, functions that return
 * an enum hearsay_code return HEARSAY_FORKED for that handle, and hearsay_close() does nothing. A
 * child may make handles of its own.
 *
 * **Errors.** Functions that can fail return an enum hearsay_code, which is negative after a
 * failure. hearsay_error() then returns a message that says what was found and what was expected. A
 * failed call has no effect, unless its description says otherwise. If the handle is NULL,
 * functions return HEARSAY_USAGE, 0, NULL or a constant text, and do nothing.
 *
 * **Memory.** The library borrows strings and arrays for the duration of the call, and tensors
 * until hearsay_close(). Pointers that the library returns belong to the library. Unless stated
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

/* Version of the interface in this header. Each addition to the interface raises it by 1. */
#define HEARSAY_API 3
/* Returns the HEARSAY_API of the library that is loaded. If the result is at least the HEARSAY_API
 * of your header, the library has every function of your header. May be called from any thread.
 * Never fails. */
HEARSAY_EXPORT uint32_t hearsay_api(void);
/* Returns the version of the library, such as "0.1.0". The text is valid while the library is
 * loaded. May be called from any thread. Never fails. */
HEARSAY_EXPORT const char *hearsay_version(void);

/* Results of the functions that can fail. Negative values are failures. */
enum hearsay_code {
    HEARSAY_OK = 0,      /* Success. After a call that waits, you may use the tensors. */
    HEARSAY_OVER = 1,    /* The run is over for this peer: see hearsay_verdict(). */
    HEARSAY_TIMEOUT = 2, /* The timeout has passed. The library still has the tensors. */
    /* hearsay_interrupt() was called. Otherwise the same as HEARSAY_TIMEOUT. */
    HEARSAY_INTERRUPTED = 3,
    HEARSAY_USAGE = -1,      /* An option, a tensor, a file or the order of calls is wrong. */
    HEARSAY_SYSTEM = -2,     /* Memory, a thread, a socket or a disk failed. */
    HEARSAY_NOT_FINITE = -3, /* A tensor holds NaN or infinity. You may use the tensors. */
    HEARSAY_CALLBACK = -4,   /* Your callback failed. Call hearsay_wait() to continue. */
    HEARSAY_FORKED = -5      /* The handle was made by another process, before fork(). */
};

/* A handle: one peer, and the tensors that the peer trains. Opaque. */
struct hearsay;

/* ---- Before a run ---------------------------------------------------------------------------- */

/* Makes a handle without options and tensors. The handle takes about 270 KiB of memory. Free it
 * with hearsay_close(). May be called from any thread. Returns NULL if memory is short. */
HEARSAY_EXPORT struct hearsay *hearsay_new(void);

/* Closes the handle and frees its memory. If the run is not over, the peer leaves the run first, as
 * hearsay_leave() does, and the note callback may be called. The call waits at most 5 s for the
 * peer to stop. If the peer has not stopped by that time, the memory of the handle is not freed,
 * and the library may still use your tensors. Otherwise the tensors are yours, and every pointer
 * that the library returned for this handle becomes invalid. Does nothing if `h` is NULL, within a
 * callback, or in a forked child. Never fails. */
HEARSAY_EXPORT void hearsay_close(struct hearsay *h);

/* Sets one option, named as on the command line of `hearsay peer`. Example: hearsay_set(h,
 * "topology", "ring"). There are two kinds of options:
 *
 *     options of the run        topology, compress, mixer, rounds, local-steps, ...: all peers of a
 *                               run must agree on them
 *     options of this peer      listen, bootstrap, key, identity, name, advertise, members, token,
 *                               out, checkpoint, evaluate-every, evaluate-samples, quorum-timeout,
 *                               straggler-timeout, member-ttl, bandwidth, metrics, shard, initial
 *
 * hearsay_option_at() lists all options with their defaults. A peer with "bootstrap" that sets no
 * option of the run takes the run from the cluster.
 *
 * "key" is required: the file with the cluster key, which `hearsay key new` writes. An environment
 * variable such as HEARSAY_MIN_PEERS=4 sets an option that is not set here. With the option "model"
 * (gpt:4x128, lenet5, ...) the tensors must have the names and shapes of that model, and `hearsay
 * peer` can take part in the run.
 *
 * The default of "listen" is port 7100. If another peer of this machine uses that port and
 * "bootstrap" names that peer, the default is the next free port.
 *
 * In the name, an underscore is read as a hyphen. Name and value are copied. If an option is set
 * twice, the last value is used. hearsay_open() checks the values and reports unknown names.
 * Returns HEARSAY_OK; HEARSAY_USAGE if the name is empty or has a blank or an equals sign, if more
 * than 96 options are set, or if the handle is open; or HEARSAY_SYSTEM if memory is short. */
HEARSAY_EXPORT int hearsay_set(struct hearsay *h, const char *name, const char *value);

/* Description of one option of hearsay_set(). The texts belong to the library and are valid while
 * the library is loaded. */
struct hearsay_option
{
    const char *name;     /* Name of the option, such as "min-peers". */
    const char *values;   /* Form or choices of the value: "HOST:PORT,..." or "false|true". */
    const char *fallback; /* Default value of the option. NULL: none. */
    const char *about;    /* Meaning of the option, as one phrase. */
    /* 1: the option is allowed only together with the option "model". 0: no restriction. */
    int needs_model;
};
/* Writes the description of option number `i`, counted from 0, to `*out`. May be called from any
 * thread. Returns HEARSAY_OK, or HEARSAY_USAGE if there is no option `i` or `out` is NULL. */
HEARSAY_EXPORT int hearsay_option_at(size_t i, struct hearsay_option *out);

/* Sets several options, separated by blanks: "topology=ring compress=topk:0.01
 * bootstrap=a:7100,b:7100". A value cannot contain blanks. Returns HEARSAY_OK, or fails as
 * hearsay_set() does at the first wrong option. The options before the wrong one stay set. */
HEARSAY_EXPORT int hearsay_options(struct hearsay *h, const char *words);

/* Type of a tensor's elements. */
enum hearsay_type { HEARSAY_FLOAT32, HEARSAY_FLOAT16, HEARSAY_BFLOAT16 };

/* How the run treats a tensor. */
enum hearsay_role {
    HEARSAY_TRAINED, /* Parameters that your local steps change. */
    /* Values that are averaged without compression and are not trained by gradients, such as a
     * running mean of a batch norm. */
    HEARSAY_STATISTIC,
    /* A statistic that is never negative, such as a running variance of a batch norm. */
    HEARSAY_VARIANCE,
    /* Other data in elements of type float32, such as a mask of bools. All peers get these data
     * with the initial model. Model files do not contain them. Do not change them after
     * hearsay_open(). Since API 2. */
    HEARSAY_OPAQUE
};

/* HEARSAY_DIMS_MAX: largest number of dimensions of a tensor. HEARSAY_NAME_MAX: length of the
 * longest name of a tensor, in bytes without the NUL. */
enum { HEARSAY_DIMS_MAX = 8, HEARSAY_NAME_MAX = 95 };

/* Adds a tensor of contiguous elements in row-major order, which begin at `data` and are aligned
 * for their type. A scalar has 0 dimensions, any other tensor 1 to HEARSAY_DIMS_MAX. Each tensor
 * has its own name, of 1 to HEARSAY_NAME_MAX printable ASCII characters without blanks. The name
 * "__metadata__" is refused. All peers of a run must have the same names, shapes, types and roles,
 * in the same order. hearsay_wait() refuses a peer with other tensors with HEARSAY_USAGE, and a
 * message names the first tensor that differs. With the option "model" all tensors must be float32.
 *
 * For a tensor of 16-bit elements, the library keeps a float32 copy, and your tensor holds the
 * rounded values of the copy. Small corrections by mixing are therefore not lost by rounding. All
 * figures, the verdict and the model file use the rounded values.
 *
 * The library works in place, without copies, if all tensors are float32 and are adjacent in
 * memory, in the order in which they are added, trained tensors first. Otherwise each round copies
 * each tensor twice. bytes_copied of struct hearsay_figures counts the copied bytes.
 *
 * `name` and `dims` are copied. The memory at `data` is borrowed until hearsay_close() and must not
 * move. From hearsay_open() on, use the memory only while the tensors are yours. The tensors of a
 * handle must not overlap: hearsay_open() refuses overlapping tensors. Returns HEARSAY_OK;
 * HEARSAY_USAGE if the name, a dimension or the alignment is wrong, or if the handle is open; or
 * HEARSAY_SYSTEM if memory is short. */
HEARSAY_EXPORT int hearsay_tensor(struct hearsay *h, const char *name, void *data,
                                  enum hearsay_type type, enum hearsay_role role, uint32_t n_dims,
                                  const uint64_t *dims);

/* Sets the callback that receives messages about the run, such as "waiting for 3 more" or "b is
 * dead". `level` is 0 for information, 1 for a warning and 2 for an error. The callback runs on
 * your thread during a call that waits. Between two such calls the library stores up to 256
 * messages. If there are more, a last message says how many were lost. `text` is valid until the
 * callback returns. `self` is passed to the callback unchanged. If `note` is NULL, messages are
 * discarded. Returns HEARSAY_OK, or HEARSAY_USAGE if the handle is open. */
HEARSAY_EXPORT int hearsay_on_note(struct hearsay *h,
                                   void (*note)(void *self, int level, const char *text),
                                   void *self);

/* Result of an evaluation on test data. */
struct hearsay_score
{
    double loss;      /* Mean loss over the evaluated samples. */
    double accuracy;  /* Share of correctly classified samples, in [0, 1]. NaN: not measured. */
    uint64_t samples; /* Number of evaluated samples. */
};

/* Sets the callback that evaluates a model on test data. While the callback runs, the tensors hold
 * the model to evaluate, and the callback must not change them. The callback is called every
 * "evaluate-every" rounds, and for the final model. `samples` is the number of samples to evaluate,
 * or 0 for all samples. The callback writes `*score` and returns 0. If the callback returns another
 * value, there is no result, and the call that waits returns HEARSAY_CALLBACK. The callback runs on
 * your thread during a call that waits. `self` is passed to the callback unchanged. If `evaluate`
 * is NULL, there are no evaluations. Returns HEARSAY_OK, or HEARSAY_USAGE if the handle is open. */
HEARSAY_EXPORT int hearsay_on_evaluate(struct hearsay *h,
                                       int (*evaluate)(void *self, uint64_t samples,
                                                       struct hearsay_score *score),
                                       void *self);

/* Checks all options, reads the key and the checkpoints, listens on a port, and starts the peer's
 * thread. Returns without waiting for other peers. On success the library has the tensors, and the
 * next call is hearsay_wait().
 *
 * "out" is the output directory of this run. A peer that is started again with the same directory
 * continues from its last checkpoint. The directory of a finished run is refused, because it
 * already has the model and summary.json. The library writes the same files as `hearsay peer`:
 * among others metrics.jsonl, with one line per round, and summary.json. `hearsay-lab report` can
 * draw them. If the peer left the run, its summary.json says that the run is not finished. If the
 * disk is full, the library keeps the data in memory. At the end of the run it retries to write
 * them for "quorum-timeout" seconds. If data are still missing then, the run has failed
 * (HEARSAY_SYSTEM), but the final model is in your tensors.
 *
 * "metrics" is HOST:PORT, or a PORT on 127.0.0.1. With port 0 the system chooses a port, and a
 * message names that port. Until the run ends, a thread of the library serves /metrics for
 * Prometheus and a live page at that address.
 *
 * The initial model of the run is a copy of one peer's tensors at the time of this call, bit for
 * bit. A run that has already started keeps its initial model. Otherwise the first of these peers
 * provides the model:
 *
 *     the peer with "initial=true"
 *     the peer without "bootstrap"
 *     one of the peers that set options of the run
 *
 * The other peers fetch the initial model from any member that has it and check it by its hash.
 * hearsay_wait() then gives them the tensors with this model, and a message says "took the initial
 * model from b". A peer waits at most "quorum-timeout" seconds for another peer that is still
 * fetching the model. After that time the run starts without the other peer, which joins late. A
 * peer with "initial=true" gets a message of level 1 if the run starts with another model than its
 * own. Checkpoints contain the initial model. With the option "model" the run description
 * determines the initial model, so no peer provides it.
 *
 * After a failure the tensors are yours, and you may set options and open the handle again.
 * Results:
 *
 *     HEARSAY_OK            the library has the tensors
 *     HEARSAY_USAGE         an option, the key, a tensor or the content of "out" is wrong, or the
 *                           port of "listen" or "metrics" is in use
 *     HEARSAY_NOT_FINITE    a tensor holds NaN or infinity
 *     HEARSAY_SYSTEM        memory or disk space is short, or a thread, a socket or the disk
 *                           failed */
HEARSAY_EXPORT int hearsay_open(struct hearsay *h);

/* Opens `n` handles in one process over a simulated network in virtual time, for tests and
 * experiments. All handles take part in one run, and handle h[i] is the peer "peer-i". The call
 * uses memory only: no key, socket or file. All handles must have the same options of the run and
 * the same tensors. "min-peers" is `n` unless set. Of the options of a peer only these are allowed:
 * shard, evaluate-every, evaluate-samples, quorum-timeout, straggler-timeout, initial. The run
 * starts with the model of the handle with "initial=true", or else of h[0].
 *
 * Your threads use each handle as in any other run, but only one handle at a time has its tensors.
 * The result of a synchronous run therefore depends only on its options and on your changes to the
 * tensors. Peers of the same names over TCP, with the same tensors and steps, give the same bits.
 *
 * `network` sets properties of the simulated network, separated by blanks. If `network` is NULL,
 * these defaults apply:
 *
 *     latency-us=1000     time from one peer to another, in microseconds
 *     jitter-us=0         largest random addition to the latency, in microseconds
 *     bandwidth=0         bytes per second of each link, in each direction; 0: no limit
 *     step-us=5000        virtual time of one local step, in microseconds
 *     cut-rate=0          probability that a delta is lost together with its session, 0 to 0.9
 *     seed=1              seed of the random choices
 *
 * Timeouts of calls are real time, not virtual time. Use every handle until HEARSAY_OVER, or close
 * it, because the other handles wait for it. Returns HEARSAY_OK, or fails as hearsay_open() does
 * with HEARSAY_USAGE, HEARSAY_NOT_FINITE or HEARSAY_SYSTEM. After a failure no handle is open, and
 * hearsay_error() of h[0] has the message. */
HEARSAY_EXPORT int hearsay_open_simulated(struct hearsay *const *h, size_t n, const char *network);

/* ---- In a run -------------------------------------------------------------------------------- */

/* Waits until the library gives you the tensors. The tensors then hold the model to train from: the
 * initial model of the run, the model of a checkpoint, or, if this peer joins late, the model of
 * its neighbours. Returns at once if the tensors are yours already. Callbacks are called during the
 * wait.
 *
 * `timeout_s`: longest time to wait, in seconds; 0: do not wait; negative: no limit. Results:
 *
 *     HEARSAY_OK            the tensors are yours: do hearsay_steps() local steps
 *     HEARSAY_OVER          the run is over; the tensors are yours and hold the final model
 *     HEARSAY_TIMEOUT       the library still has the tensors; call hearsay_wait() again
 *     HEARSAY_INTERRUPTED   hearsay_interrupt() was called; otherwise as HEARSAY_TIMEOUT
 *     HEARSAY_CALLBACK      the evaluation callback failed; otherwise as HEARSAY_TIMEOUT
 *     HEARSAY_USAGE         the handle is not open, or the run does not fit this peer
 *     HEARSAY_SYSTEM        the peer failed
 *
 * If HEARSAY_USAGE or HEARSAY_SYSTEM ended the run, hearsay_exit_code() is above 0 and the tensors
 * are yours. */
HEARSAY_EXPORT int hearsay_wait(struct hearsay *h, double timeout_s);

/* Returns the number of local steps to do in this round. The result is 0 before hearsay_wait() has
 * returned HEARSAY_OK for the first time. Never fails. */
HEARSAY_EXPORT uint32_t hearsay_steps(const struct hearsay *h);
/* Returns the number of complete rounds of the run, including rounds before this peer joined. Use
 * this number for learning-rate schedules. The result is 0 before hearsay_wait() has returned
 * HEARSAY_OK for the first time. Never fails. */
HEARSAY_EXPORT uint64_t hearsay_rounds_done(const struct hearsay *h);
/* Returns the total number of rounds of the run, or 0 if it is not known yet. Never fails. */
HEARSAY_EXPORT uint64_t hearsay_rounds(const struct hearsay *h);

/* Result of the local steps that you did in one round. */
struct hearsay_did
{
    /* Mean loss of the samples. Infinity, or NaN with samples > 0, counts as divergence. */
    double loss;
    /* Number of samples in the local steps of the round. 0: the number is not known. A NaN loss
     * then only means that the loss is not known, and does not count as divergence. */
    uint64_t samples;
};

/* The local steps are done: gives the tensors to the library, which exchanges deltas with the
 * neighbours, and waits for the next round as hearsay_wait() does. With "policy=sync" the call
 * returns HEARSAY_OK when the deltas of all neighbours have arrived and been mixed in. With
 * "overlap=1" the neighbours' deltas take effect one round later, so the tensors contain the
 * exchange of the round before.
 *
 * `did`: result of your local steps; NULL: not known. `timeout_s`: longest time to wait, in
 * seconds; 0: do not wait; negative: no limit. Results in addition to hearsay_wait()'s:
 *
 *     HEARSAY_USAGE         the library has the tensors: call hearsay_wait() first
 *     HEARSAY_NOT_FINITE    a tensor holds NaN or infinity; nothing was sent, and the tensors are
 *                           yours to repair
 *
 * After HEARSAY_TIMEOUT, HEARSAY_INTERRUPTED or HEARSAY_CALLBACK the library has the tensors.
 * Continue with hearsay_wait(), not with hearsay_round(). */
HEARSAY_EXPORT int hearsay_round(struct hearsay *h, const struct hearsay_did *did,
                                 double timeout_s);

/* Interrupts a wait. The call that waits now, or else the next call that waits, returns
 * HEARSAY_INTERRUPTED. May be called from any thread and from a signal handler, but not during or
 * after hearsay_close(). Never fails. */
HEARSAY_EXPORT void hearsay_interrupt(struct hearsay *h);

/* Leaves the run and notifies the neighbours. Local steps since the last hearsay_round() are lost
 * to the run. If the library works in place, the tensors still contain these steps; "out" then
 * keeps its checkpoints but gets no model file. Afterwards hearsay_verdict() says that the peer was
 * stopped.
 *
 * `timeout_s`: longest time to wait, in seconds; negative: no limit. Results:
 *
 *     HEARSAY_OVER          the peer has left; the tensors are yours
 *     HEARSAY_TIMEOUT       the peer has not stopped yet; only hearsay_close() may be called
 *     HEARSAY_USAGE         the handle is not open, or the run did not fit this peer
 *     HEARSAY_SYSTEM        the peer failed */
HEARSAY_EXPORT int hearsay_leave(struct hearsay *h, double timeout_s);

/* Stores data of yours, such as the state of an optimiser, in all following checkpoints. Each call
 * replaces the data of the previous call. The bytes are copied. `n`: number of bytes, at most 2
 * GiB. Call this function while your program, not the library, has the tensors. Returns HEARSAY_OK;
 * HEARSAY_USAGE if `n` is too large or the library has the tensors; or HEARSAY_SYSTEM if memory is
 * short. After a failure the data of the previous call are kept. */
HEARSAY_EXPORT int hearsay_keep(struct hearsay *h, const void *bytes, size_t n);
/* Returns the data of hearsay_keep() in the checkpoint from which this peer resumed. Returns NULL
 * if the checkpoint has no such data, or if hearsay_wait() has not given you the tensors yet. `*n`
 * gets the number of bytes. `*round` gets the number of rounds that were complete when the data
 * were stored. Both pointers may be NULL. The data belong to the library and are valid until
 * hearsay_keep() or hearsay_close(). */
HEARSAY_EXPORT const void *hearsay_kept(const struct hearsay *h, size_t *n, uint64_t *round);

/* Selects this peer's share of a data set of `n` samples that all peers have. The option "shard"
 * decides: "i/n" is part i of n, counted from 1; "own" is all samples; "auto" assigns each sample
 * to one live member by rendezvous hashing. Writes the numbers of the samples, between 0 and n - 1
 * in rising order, to ids[0..cap). `ids` may be NULL. Returns the size of the share, which may be
 * larger than `cap`. Returns 0 if `n` is 0 or above 2^32 - 1, before hearsay_open(), or if "shard"
 * does not fit `n`; in this last case hearsay_error() has a message. Call this function after
 * hearsay_wait() has given you the tensors: before that, "auto" does not know the members and
 * selects all samples. */
HEARSAY_EXPORT uint64_t hearsay_share(struct hearsay *h, uint64_t n, uint64_t *ids, uint64_t cap);
/* Returns a number that increases whenever a member joins or leaves, because the result of
 * hearsay_share() may then be different. Never fails. */
HEARSAY_EXPORT uint64_t hearsay_shares(const struct hearsay *h);

/* ---- Queries --------------------------------------------------------------------------------- */

/* State of this peer in numbers. A field of type double is NaN while its value is not known. */
struct hearsay_figures
{
    /* Set by the caller to sizeof(struct hearsay_figures). The library writes no more bytes than
     * that. */
    size_t size;
    uint64_t round;         /* Complete rounds of the run. */
    uint64_t rounds;        /* Total number of rounds of the run. 0: not known yet. */
    uint64_t settle_rounds; /* Complete rounds of the consensus phase, which have no local steps. */
    uint64_t rounds_done;   /* Rounds in which this process did local steps. */
    uint64_t rounds_skipped; /* Rounds that this process skipped to catch up with other peers. */
    double drift;            /* Estimated consensus distance: sqrt(mean |x_i - x_mean|^2). */
    double relative_drift;   /* Estimated consensus distance, divided by |x_mean|. */
    /* Number of the round that `drift` and `relative_drift` describe. They are measured before the
     * local steps of this round. */
    uint64_t drift_round;
    double loss;      /* Mean loss of the last local steps, from struct hearsay_did. */
    double accuracy;  /* Accuracy in the last evaluation, in [0, 1]. */
    double test_loss; /* Mean loss in the last evaluation. */
    /* Round of the model that was evaluated last. Rounds of the consensus phase count, too. */
    uint64_t accuracy_round;
    double gamma;            /* Consensus step size, as a mean over the edges. */
    uint32_t n_live;         /* Number of live members, including this peer. */
    uint32_t n_edges;        /* Number of open edges, which connect this peer with neighbours. */
    uint64_t bytes_sent;     /* Bytes that this peer sent, counted at the sockets. */
    uint64_t bytes_received; /* Bytes that this peer received, counted at the sockets. */
    uint64_t bytes_copied;   /* Bytes copied between your tensors and the library's memory. */
    double compute_s;        /* Total time of your local steps, in seconds. */
    double mix_s;            /* Total time of applying and encoding deltas, in seconds. */
    double wait_s;           /* Total time of waiting for other peers, in seconds. */
    char codec[256];         /* Codec of the last deltas, such as "topk:0.01". "": not known yet. */
    char phase[16]; /* Phase: joining, training, no-quorum, consensus, finishing or left. */
};

/* Writes the current state to `*f`. The caller sets `f->size` before the call. May be called in a
 * callback. Returns HEARSAY_OK, or HEARSAY_USAGE if the handle is not open, `f` is NULL or
 * `f->size` is too small. */
HEARSAY_EXPORT int hearsay_figures(struct hearsay *h, struct hearsay_figures *f);
/* Returns the figures of struct hearsay_figures as a JSON object, for bindings of other languages.
 * Later versions of the library may add figures to the object. A number that is not known is null.
 * May be called in a callback. The text is valid until the next call of this function with the same
 * handle. Returns "" if `h` is NULL or was made before fork(). Also returns "" if the handle is not
 * open or memory is short; hearsay_error() then has a message. Otherwise never fails. */
HEARSAY_EXPORT const char *hearsay_figures_json(struct hearsay *h);

/* Returns the message of the last call that failed, or "" if no call has failed. The text is valid
 * until the next failure of a call with this handle. Never fails. */
HEARSAY_EXPORT const char *hearsay_error(const struct hearsay *h);
/* Returns the verdict: a sentence that says how the run ended. Returns "" while the run is not
 * over. The text is valid until hearsay_close(). Never fails. */
HEARSAY_EXPORT const char *hearsay_verdict(const struct hearsay *h);
/* Returns the exit code that `hearsay peer` would have: 0 for consensus or a stopped peer, 1 or 2
 * for a failure, 3 for a run that diverged or ended without consensus, -1 while the run is not
 * over. Never fails. */
HEARSAY_EXPORT int hearsay_exit_code(const struct hearsay *h);
/* Returns the run description: the text of all options of the run. Returns "" while the run is not
 * known. The text is valid until the next call of this function with the same handle. Never
 * fails. */
HEARSAY_EXPORT const char *hearsay_run(struct hearsay *h);
/* Returns the port on which the peer listens, or 0 if the handle is not open. Never fails. */
HEARSAY_EXPORT uint16_t hearsay_port(const struct hearsay *h);

/* ---- Codecs ---------------------------------------------------------------------------------- */

/* Compression of vectors by any codec of hearsay, independent of runs and handles. The sender and
 * every receiver of a vector x hold a replica x_hat, which is the sum of all messages so far. The
 * sender encodes the difference x - x_hat as a message. The sender and every receiver then add the
 * message to x_hat. All of them open the same codec for the same layers. The replicas then stay
 * equal, bit for bit, on every machine.
 *
 *     sender                                      sender and every receiver
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

/* Size of the buffer for an error message of hearsay_codec_open(), in bytes with the NUL. */
enum { HEARSAY_CODEC_ERROR_MAX = 256 };

/* A layer of a vector: `rows` x `cols` floats in row-major order, with at least 1 row and 1 column.
 * The layers follow each other in the vector. Layers matter only to the codec for matrices
 * (lowrank) and to specs with rules for layers ("topk:0.01;bias=fp16", "scope=layer"). A rule that
 * matches no layer has no effect. */
struct hearsay_layer
{
    /* Name of the layer, for the rules of a codec spec. NULL: no rule matches the layer. */
    const char *name;
    uint64_t rows; /* Number of rows of the layer, such as output channels. 1 for a bias. */
    uint64_t cols; /* Number of floats per row. */
};

/* Opens a codec. `spec` is a value of the option "compress", such as "topk:0.01+qsgd:4". `layers`
 * describe the vector, which has at most 2^32 - 1 floats. The layers are copied. All memory of the
 * codec is allocated in this call. `error` is a buffer of HEARSAY_CODEC_ERROR_MAX bytes for a
 * message, or NULL. Returns HEARSAY_OK and the codec in `*c`, or HEARSAY_USAGE or HEARSAY_SYSTEM
 * with a message and `*c` NULL. Close the codec with hearsay_codec_close(). */
HEARSAY_EXPORT int hearsay_codec_open(struct hearsay_codec **c, const char *spec,
                                      const struct hearsay_layer *layers, size_t n_layers,
                                      char *error);
/* Closes the codec and frees its memory. Does nothing if `c` is NULL. Never fails. */
HEARSAY_EXPORT void hearsay_codec_close(struct hearsay_codec *c);
/* Returns the spec with all defaults filled in. Two peers that compare this text can make sure that
 * they use the same codec. The text is valid until hearsay_codec_close(). Returns "" if `c` is
 * NULL. Never fails. */
HEARSAY_EXPORT const char *hearsay_codec_spec(const struct hearsay_codec *c);
/* Returns the number of floats of the vector, or 0 if `c` is NULL. */
HEARSAY_EXPORT size_t hearsay_codec_floats(const struct hearsay_codec *c);
/* Returns the size of the longest message that the codec can produce, in bytes, or 0 if `c` is
 * NULL. */
HEARSAY_EXPORT size_t hearsay_codec_bound(const struct hearsay_codec *c);

/* Encodes x - x_hat as a message of `*n` bytes in out[0..cap). `cap` must be at least
 * hearsay_codec_bound(). `x_hat` NULL stands for zeros. `x_hat` is not changed: call
 * hearsay_codec_add() to add the message to it. Random choices depend on `seed` and `round` only.
 * The messages of the codec lowrank also depend on earlier messages.
 *
 * `*left` gets the relative error of the message, |x - x_hat - message|^2 / |x - x_hat|^2, or 0 if
 * x equals x_hat. The value is at most 1, except for codecs that are not contractions
 * ("scale=raw"). `left` may be NULL.
 *
 * Returns HEARSAY_OK; HEARSAY_USAGE if a pointer is NULL or `cap` is too small, and nothing was
 * written; or HEARSAY_NOT_FINITE if the difference is not finite or its square overflows. In the
 * last case `*n` and `*left` are unchanged, the content of `out` is undefined, and the internal
 * state of lowrank may have changed. */
HEARSAY_EXPORT int hearsay_codec_encode(struct hearsay_codec *c, const float *x, const float *x_hat,
                                        uint64_t seed, uint64_t round, void *out, size_t cap,
                                        size_t *n, double *left);
/* Returns 1 if the bytes are a complete and valid message of this codec, else 0. The result is
 * always 1 or 0. The bytes may come from an untrusted sender. The cost is O(n). May be called by
 * several threads at once. */
HEARSAY_EXPORT int hearsay_codec_check(const struct hearsay_codec *c, const void *message,
                                       size_t n);
/* Adds a message to the replica `x_hat`, an array of hearsay_codec_floats() floats. Returns
 * HEARSAY_OK, or HEARSAY_USAGE if hearsay_codec_check() refuses the message; `x_hat` is then
 * unchanged. May be called by several threads at once, each with its own `x_hat`. */
HEARSAY_EXPORT int hearsay_codec_add(const struct hearsay_codec *c, const void *message, size_t n,
                                     float *x_hat);
/* Describes codec number `i`, counted from 0. `*preset` gets its spec with all defaults, and
 * `*about` gets one phrase. Both pointers may be NULL. The texts are valid until the next call of
 * this function on the same thread. May be called from any thread. Returns HEARSAY_OK, or
 * HEARSAY_USAGE if there is no codec `i`. */
HEARSAY_EXPORT int hearsay_codec_at(size_t i, const char **preset, const char **about);

#ifdef __cplusplus
}
#endif

#endif
