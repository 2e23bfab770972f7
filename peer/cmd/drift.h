/* peer/cmd/drift.h -- declarations shared by the files of `hearsay drift`, which measures the
 * consensus distance ("drift") between peers.
 *
 *   drift.c          the command: options, requests to the peers, errors
 *   drift_models.c   --exact: fetches models of one round, and the peers' own estimates for it
 *   drift_compare.c  compares models, or sketches (random projections) of models, layer by layer
 *   drift_files.c    compares model files instead of peers
 *   drift_watch.c    --watch: compares repeatedly
 *   drift_print.c    all output on stdout
 */
#ifndef PEER_CMD_DRIFT_H
#define PEER_CMD_DRIFT_H

#include "gossip/exchange/layers.h"
#include "peer/cmd/observe.h"
#include "peer/node/result/consensus.h"

enum { DRIFT_WHY_MAX = 160 };

/* Result of one comparison of models, or of sketches (random projections) of models. Initialise
 * with zeros before the first comparison. */
struct drift_compare
{
    /* True: whole models were compared. False: sketches (random projections) of models. */
    bool exact;
    bool files; /* True: the models were read from files. False: peers sent them. */
    size_t n;   /* Number of models compared. 0: nothing was compared, and why[] says why. */
    /* Number of peers that have a session but did not send their sketches (random projections of
     * the model). */
    size_t n_silent;
    /* Round of the compared models. If the run is not in lock step (all peers in the same round):
     * the largest round of any model. */
    uint64_t round;
    /* Smallest round of the compared models. It may be less than `round` if the run is not in lock
     * step, because peers are then in different rounds at the same time. */
    uint64_t first;
    /* True if at least one peer had finished training. The round counter does not advance in the
     * consensus phase, so models of the same `round` may then be from different times. */
    bool last_phase;
    char why[DRIFT_WHY_MAX];
    /* Names of the peers or files that were compared, n of them. Borrowed. */
    const char *name[WIRE_MEMBERS_MAX];
    /* The n_parts parts of the model (layers or tensors) that are compared separately. Owned. */
    struct layers_part *part;
    size_t n_parts;
    /* Distances between the models: one entry for each of the n_parts parts, and a last one for the
     * whole model. Owned. */
    struct layers_figure *figure;
};

struct drift
{
    const struct options *o;
    struct cmd_observe w;
    bool watching;
    /* Mean of the peers' own estimates of the consensus distance: absolute and relative. NaN: no
     * estimate. */
    double xi, relative;
    uint32_t n_estimates;
    /* Round for which the peers made the estimates of the consensus distance that were averaged. */
    uint64_t estimated_round;
    /* Exact consensus distance, computed from the models. n == 0: no models were compared. */
    struct consensus exact;
    /* True if the models were of different rounds, and were therefore not compared. */
    bool apart;
    uint64_t round_min, round_max;
    /* Peers that sent the compared models, exact.n of them. */
    const struct cmd_observed *with[WIRE_MEMBERS_MAX];
    struct drift_compare look;
};

/* ---- Functions of drift_models.c ---- */

/* Fetches the models of all peers, if possible models of the same round, and computes their
 * consensus distance. Returns an exit code. If the models are of different rounds, the result is
 * CMD_OK and d->apart is set. */
int drift_models(struct drift *d);
/* Does the same as drift_models(), and also fetches the peers' own estimates for the round of the
 * models. A peer keeps only its latest estimate. If that estimate is already of a later round, the
 * models are fetched again. */
int drift_models_and_estimates(struct drift *d);
/* Averages the peers' own estimates of the consensus distance. After a comparison of models, only
 * estimates for these models count. Otherwise only estimates of the newest round count, because
 * estimates of different rounds must not be averaged. */
void drift_average(struct drift *d);
/* Returns true if none of the members that answer will train another round. */
bool drift_no_peer_trains(const struct drift *d);
/* Returns the largest round that any member has reported in its status. */
uint64_t drift_newest_round(const struct drift *d);

/* ---- Functions of drift_compare.c ---- */

/* Requests sketches (random projections) of the models of one round from all peers, and compares
 * those that arrive within `ms` milliseconds. Returns an exit code. If nothing could be compared,
 * look.n is 0 and look.why says why. */
int drift_compare_sketches(struct drift *d, uint32_t ms);
/* Compares the models that drift_models() has fetched: with `layers` separately for each tensor,
 * otherwise as one vector. Returns an exit code. */
int drift_compare_models(struct drift *d, bool layers);
/* Compares n models that have the tensors `s`: with `layers` separately for each tensor, otherwise
 * as one vector. Returns 0 or -ENOMEM. */
int drift_compare_vectors(struct drift_compare *l, const struct segment *s, size_t n_segments,
                          const float *const *x, size_t n, bool layers);
/* Returns the distances between the whole models, from the result of a comparison. */
const struct layers_figure *drift_comparison_total(const struct drift_compare *l);
/* Frees the arrays in the result of a comparison and sets all fields to zero. */
void drift_comparison_close(struct drift_compare *l);

/* ---- Function of drift_files.c ---- */

/* Runs `hearsay drift FILE FILE ...`, which compares model files instead of peers. Returns an exit
 * code. */
int drift_files(const struct options *o);

/* ---- Function of drift_watch.c ---- */

/* Runs --watch: compares the models and prints a line every --interval, until the run ends, no peer
 * can be reached, or a signal arrives. Returns an exit code. */
int drift_watch(struct drift *d);

/* ---- Functions of drift_print.c ---- */

/* Prints the peers' own estimates and the result of the comparison as text. */
void drift_print_text(const struct drift *d);
/* Prints the result of one comparison as a JSON object. `time_s`: seconds since --watch began; NaN
 * without --watch. */
void drift_print_json(const struct drift *d, double time_s);
/* Prints the line of --watch for one comparison, and with `layers` one more line for each layer. */
void drift_print_line(const struct drift *d, double time_s, bool layers);
/* Prints the distances between model files as text, with `layers` also separately for each
 * tensor. */
void drift_print_look(const struct drift_compare *l, const struct consensus *c, bool layers);
void drift_print_look_json(const struct drift_compare *l, const struct consensus *c, bool layers);

#endif
