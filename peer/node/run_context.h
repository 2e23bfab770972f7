/* peer/node/run_context.h -- the run in which this peer takes part, with its trainer, model and
 * mixer.
 *
 * The struct owns the run description, the trainer, the model with its mixer
 * (gossip/mixers/mixing.h), the codec levels of --compress auto, and packet pools for copies of the
 * model. run_context_take() builds all of it for a run. If the cluster's run replaces the run that
 * this peer proposed, run_context_close() frees it:
 *
 *   no run --take--> has_run, ready --close--> no run
 *
 * If building fails, has_run is true, ready is false, and the node ends. Only run_context.c writes
 * the fields. While a job runs, the worker owns the trainer, the model and
 * the codec levels (job.c). Modules that decide policy read the mixer only by the queries below.
 *
 * A *drift window* is one measurement of the consensus distance by sketches
 * (gossip/exchange/sketch.h). Its result, a *figure*, is known some rounds after the window began.
 */
#ifndef PEER_NODE_RUN_CONTEXT_H
#define PEER_NODE_RUN_CONTEXT_H

#include "gossip/exchange/layers.h"
#include "gossip/mixers/mixing.h"
#include "nn/train/outer_optimiser.h"
#include "peer/node/session/sessions.h"

/* The run of one node. Zero, apart from `env`: there is no run. */
struct run_context
{
    struct env *env;
    /* has_run: `run` and `run_text` are valid. ready: trainer, mixer and pools of the run exist. */
    bool has_run, ready;
    /* True: mixing.x0 is not the run's initial model yet. The initial model must be fetched from
     * another peer (initial.h) or read from a checkpoint (resume.c). */
    bool lacks;
    struct run run;
    char run_text[WIRE_RUN_MAX + 1]; /* The run description: n_run_text bytes. */
    size_t n_run_text;
    struct trainer trainer;
    struct mixing mixing;
    struct packet_pool models; /* Pool of packets for copies of the model. */
    /* Pool of packets for pieces of the model, or for sketches of its layers. */
    struct packet_pool pieces;
    struct layers layers; /* Layers of the model. Observers may request sketches of them. */
    /* True: --compress auto chooses the codec of deltas. */
    bool by_drift;
    struct codec_levels ladder; /* Codec levels of --compress auto. */
    /* Squared norm |x|^2 of the model. Negative: the model has changed since it was computed. */
    double norm2;
    double settling2; /* |x|^2 when the consensus phase began. 0: it has not begun. */
    /* State of the outer optimiser (--outer). All zero: the run has none. */
    struct outer_optimiser outer;
    /* In training: copy of x before the local steps of a job, with --compress auto, --max-pull,
     * --trigger, --local-steps auto or --outer. In the consensus phase: copy of x before the
     * exchanges of a job, if the trainer can compute running statistics. NULL: the run has neither
     * use. */
    float *before;
    /* Number of jobs that computed the running statistics of the model again. Written by the worker
     * in a job, read by the loop thread between jobs. */
    uint64_t n_renewed;
};

/* Decides between this peer's own run and the run in another peer's HELLO. This peer's run *has
 * begun* if this peer or another live peer has started it, and the other run if the HELLO says so.
 * A run that has begun is never replaced, so a late peer joins the first run that it meets.
 *
 *   - This peer has no run: TAKEN (adopt the other's run).
 *   - Only the other's run has begun: TAKEN.
 *   - Neither run has begun: TAKEN or YIELDS (the other peer adopts this peer's run), see below.
 *   - Only this peer's run has begun: YIELDS. The result is STRANGER (no session) if this peer
 *     itself has started and the runs differ in more than the initial model.
 *   - Both runs have begun: STRANGER.
 *
 * If neither run has begun and the runs differ only in the initial model, both peers take the run
 * that is first by layout_compare_initial(). If they differ in more, both take the run of the peer
 * that was dialled.
 *
 * `dialled`: this peer dialled the session. `started`: this peer has started its run. `others`:
 * another live peer has started it. Fills *run if the result is TAKEN. Further results: SAME,
 * UNREADABLE, and CONTRADICTS (the run contradicts the user's flags). */
enum sessions_run run_context_judge(const struct run_context *w, const struct wire_hello *h,
                                    bool dialled, bool started, bool others, struct run *run);

/* Sets the environment of *w, which must be zeroed. `env` is borrowed. */
void run_context_init(struct run_context *w, struct env *env);
/* Adopts a run and builds all that it needs. On failure the node ends. An earlier run must have
 * been closed. */
void run_context_take(struct run_context *w, const struct run *run);
/* Frees what run_context_take() built. There is then no run. */
void run_context_close(struct run_context *w);

/* Returns whether mixing.x0 is the run's initial model. If so, clears `lacks` and sets the model x
 * to x0. O(n_params). */
bool run_context_begins(struct run_context *w);

/* ---- copies of the model for other peers ----
 *
 * A member that joins late fetches the outer momentum u (nn/train/outer_optimiser.h) with the
 * model, as further pieces (gossip/exchange/piece.h):
 *
 *   [ model x: run_context_model_pieces() pieces | u: the remaining pieces ]
 *
 * With --byzantine u is not sent, because no peer could check it: each peer has its own u. */

/* Copies the model in its stored precision to `out`, and after it the outer momentum u. out->len is
 * the length of the model only. */
void run_context_copy_model(const struct run_context *w, struct packet *out);
/* run_context_floats() returns the number of floats of a copy: the model and the outer momentum u.
 * run_context_model_pieces() returns the number of pieces of the model alone, run_context_pieces()
 * that of the model and u. */
size_t run_context_floats(const struct run_context *w);
size_t run_context_model_pieces(const struct run_context *w);
size_t run_context_pieces(const struct run_context *w);
/* Returns the index of the first float of piece p in a copy of the model, and sets *n to the number
 * of floats of the piece. */
size_t run_context_piece_at(const struct run_context *w, size_t p, size_t *n);
/* Replaces the model and the outer momentum u by a copy of run_context_floats() floats. Returns 0.
 * If the model is not valid, returns -EINVAL, and the model x is the initial model. If only u is
 * implausible, u becomes 0. */
int run_context_take_model(struct run_context *w, const float *copy);

/* ---- queries ---- */

/* Returns whether the delta of another peer is valid and may be stored. Copies its sketch to
 * *sketch. */
bool run_context_valid(const struct run_context *w, const struct wire_delta *d,
                       struct sketch_message *sketch);

/* Sets text[] to the codec of the deltas that are made now, truncated if it is too long. "": there
 * is no run. `settling`: the consensus phase has begun. `rung`: codec level that the last job of
 * training used with --compress auto; NULL: the run's codec. */
void run_context_codec(const struct run_context *w, const char *rung, bool settling,
                       char text[WIRE_CODEC_MAX + 1]);

/* Returns the number of drift windows (measurements of the consensus distance) that have given a
 * result. */
uint64_t run_context_window(const struct run_context *w);
/* Returns whether a drift window (measurement of the consensus distance) that began after the
 * moment `begun` (run_context_begun()) has given a result. */
bool run_context_known(const struct run_context *w, uint64_t begun);
/* Returns a number for the present moment, to be passed as `begun` or `settling`. Each drift window
 * (measurement of the consensus distance) has such a number, which is greater if the window begins
 * later. `anew`: the next job will begin a window. */
uint64_t run_context_begun(const struct run_context *w, bool anew);

/* Returns the relative distance `relative`, increased by the distance that the rounding to float32
 * may hide. The increase is negligible if `relative` is far above 2^-24 times the square root of
 * the number of neighbours. */
double run_context_rounded(const struct run_context *w, double relative);

/* Returns an upper bound, in the consensus phase, of this peer's distance |x_i - mean| / |mean|.
 * Only drift windows (measurements of the consensus distance) that began after the moment
 * `settling` count (run_context_begun()). INFINITY: none of them has given a result yet.
 *
 * Mixing without local steps only reduces the distance, so the result of the last window is a
 * bound. In lock step, after the first window of the consensus phase, the distance decreases at the
 * same rate as the differences between this peer and its neighbours. If this rate predicts less
 * than half the result of the window, the bound is twice the prediction: the factor 2 is a margin.
 * The prediction is not used for models that are stored with 16 bits. */
double run_context_distance(const struct run_context *w, uint64_t settling);

/* Returns the step counter at which the last drift window (measurement of the consensus distance)
 * that has given a result began. */
uint64_t run_context_measured(const struct run_context *w);

/* Returns whether a drift window (measurement of the consensus distance) refutes `bound`, a bound
 * on the relative distance of this peer's model at step counter `round`. The window must have begun
 * after `round` and after the moment `settling` (run_context_begun()), and have measured more than
 * twice `bound`. Mixing usually reduces distances, but a codec that omits much of the model can
 * first move equal models apart. */
bool run_context_refutes(const struct run_context *w, uint64_t settling, double bound,
                         uint64_t round);

/* Prepares the mixer for the next job of the consensus phase. At the first call, stores |x|^2 for
 * run_context_vanished(). `apart`: the consensus distance is known to exceed the target. */
void run_context_settle(struct run_context *w, bool apart);

/* Returns whether the model has vanished in the consensus phase: its norm is at most 1/1000 of its
 * norm at the beginning of the phase, so a relative distance means nothing. Honest mixing keeps the
 * mean, so only a member that sends noise or its negative model can cause this. O(dim). */
bool run_context_vanished(struct run_context *w);
/* Returns |x|^2. O(dim) for the first call after a change of x, else O(1). */
double run_context_norm2(struct run_context *w);
/* Must be called after each change of the model x. The next call of run_context_norm2() then
 * computes |x|^2 again. */
void run_context_moved(struct run_context *w);

#endif
