/* peer/cmd/drift.h -- declarations shared by the files of `hearsay drift`.
 *
 *   drift.c         the command: options, what is requested from the peers, errors
 *   drift_models.c  --exact: models of one round, and the peers' drift estimates of that round
 *   drift_compare.c    one comparison of sketches of one round, or of models, layer by layer
 *   drift_files.c   comparison of model files instead of peers
 *   drift_watch.c   --watch: repeated comparisons
 *   drift_print.c   all output on stdout
 */
#ifndef PEER_CMD_DRIFT_H
#define PEER_CMD_DRIFT_H

#include "gossip/exchange/layers.h"
#include "peer/cmd/observe.h"
#include "peer/node/consensus.h"

enum { DRIFT_WHY_MAX = 160 };

/* Result of one comparison of models or of sketches of models. Initialise with zeros before the
 * first comparison. */
struct drift_compare
{
    bool exact;      /* Whole models were compared. False: sketches. */
    bool files;      /* The models were read from files. */
    size_t n;        /* Number of models compared. 0: no comparison, and why[] has the reason. */
    size_t n_silent; /* Number of peers with a session that sent no answer. */
    uint64_t round;  /* Round of the models. Without lock step: the largest of their rounds. */
    /* Smallest round of the models. Less than `round` only without lock step, where peers have
     * different rounds at one time. */
    uint64_t first;
    /* At least one peer was past training. The round counter stops in the consensus phase, so
     * `round` does not identify one state of the models. */
    bool last_phase;
    char why[DRIFT_WHY_MAX];
    /* Names of the compared peers or files, n of them. Borrowed. */
    const char *name[WIRE_MEMBERS_MAX];
    /* Parts of the model that are compared separately, n_parts of them. Owned. */
    struct layers_part *part;
    size_t n_parts;
    /* Distances of the n_parts parts, then of the whole model: n_parts + 1 entries. Owned. */
    struct layers_figure *figure;
};

struct drift
{
    const struct options *o;
    struct cmd_observe w;
    bool watching;
    /* Means of the peers' drift estimates, absolute and relative. NaN: no estimate. */
    double xi, relative;
    uint32_t n_estimates;
    uint64_t estimated_round; /* Round of the estimates that were averaged. */
    struct consensus exact;   /* Exact distance of the models. n == 0: nothing was compared. */
    /* The models were of different rounds and were therefore not compared. */
    bool apart;
    uint64_t round_min, round_max;
    /* The peers that sent the compared models, exact.n of them. */
    const struct cmd_observed *with[WIRE_MEMBERS_MAX];
    struct drift_compare look;
};

/* ---- drift_models.c ---- */

/* Requests the models of all peers, if possible of one round, and measures their distance.
 * Returns an exit code. Models of different rounds are not an error here: the result is CMD_OK
 * and d->apart is set. */
int drift_models(struct drift *d);
/* Like drift_models(), and also fetches the peers' drift estimates of the same round. If the
 * peers have already replaced these estimates by later ones, the models are requested again. */
int drift_models_and_estimates(struct drift *d);
/* Averages the peers' drift estimates. If models were compared, only estimates of the compared
 * models count. Otherwise only estimates of the newest round count, because estimates of
 * different rounds must not be averaged. */
void drift_average(struct drift *d);
/* Returns true if no member that answers will train another round. */
bool drift_no_peer_trains(const struct drift *d);
/* Returns the largest round that any member has reported. */
uint64_t drift_newest_round(const struct drift *d);

/* ---- drift_compare.c ---- */

/* Requests sketches of one round from all peers and compares those that arrive within `ms`
 * milliseconds. Returns an exit code. If nothing could be compared, look.n is 0 and look.why has
 * the reason. */
int drift_compare_sketches(struct drift *d, uint32_t ms);
/* Compares the models that drift_models() fetched, with `layers` tensor by tensor. Returns an
 * exit code. */
int drift_compare_models(struct drift *d, bool layers);
/* Compares n whole models with the given segments: tensor by tensor with `layers`, otherwise as
 * one vector. Returns 0 or -ENOMEM. */
int drift_compare_vectors(struct drift_compare *l, const struct segment *s, size_t n_segments,
                          const float *const *x, size_t n, bool layers);
/* Returns the distances of the whole model in a comparison. */
const struct layers_figure *drift_comparison_total(const struct drift_compare *l);
/* Frees the arrays of a comparison and resets it to zeros. */
void drift_comparison_close(struct drift_compare *l);

/* ---- drift_files.c ---- */

/* Runs `hearsay drift FILE FILE ...`: compares model files instead of peers. Returns an exit code. */
int drift_files(const struct options *o);

/* ---- drift_watch.c ---- */

/* Runs --watch: compares and prints a line every --interval until the run ends, no peer can be
 * reached, or a signal arrives. Returns an exit code. */
int drift_watch(struct drift *d);

/* ---- drift_print.c ---- */

/* Prints the estimates of the peers and the comparison as text. */
void drift_print_text(const struct drift *d);
/* Prints one comparison as a JSON object. `time_s`: seconds since --watch began; NaN: without
 * --watch. */
void drift_print_json(const struct drift *d, double time_s);
/* Prints one line of --watch, and with `layers` one more line for each layer. */
void drift_print_line(const struct drift *d, double time_s, bool layers);
/* Prints the distances of model files as text; with `layers` also the distance in each tensor. */
void drift_print_look(const struct drift_compare *l, const struct consensus *c, bool layers);
void drift_print_look_json(const struct drift_compare *l, const struct consensus *c, bool layers);

#endif
