/* peer/run/core.c -- table of the core run keys, which every run has, and checks for combinations
 * of values that are not allowed. */
#include "peer/run/core.h"

#include "compress/compress.h"
#include "gossip/collectives/allreduce.h"
#include "gossip/collectives/collective.h"
#include "gossip/collectives/ps.h"
#include "gossip/collectives/sma.h"
#include "gossip/exchange/sketch.h"
#include "gossip/mixers/mixer.h"
#include "nn/math/number.h"
#include "nn/math/spelling.h"
#include "peer/run/codec_precision.h"
#include "peer/run/key.h"
#include "peer/run/outer.h"
#include "topology/round_schedule.h"
#include "topology/topology.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Largest number of rounds. It has ten digits (ROUNDS_DIGITS in peer/run/run.c). */
    ROUNDS_MAX = 1000000000,
    /* Largest --byzantine B. A peer needs 2 B + 2 neighbours to tolerate B Byzantine ones, so that
     * a cluster needs 2 B + 3 members. */
    TOLERATE_MAX = (WIRE_MEMBERS_MAX - 3) / 2,
    /* Largest --trigger, the threshold for sending a delta. With a larger threshold a usual run
     * would send no deltas. */
    TRIGGER_MAX = 1000,
    /* Number of peers for which a graph is checked if --topology and --min-peers give none. */
    NOMINAL_PEERS = 64
};

/* Codec of the consensus phase if the codec of training is too coarse for that phase
 * (peer/run/codec_precision.h). */
static const char fine_codec[] = "qsgd:4";

/* Limits of --final-drift, the target of the consensus phase. Float32 rounding adds an error to
 * each measured consensus distance. The smallest allowed target is `final_roundings` times that
 * error. The factor must exceed 1, because peers end the phase only at 0.8 of the target. A target
 * of at least `final_safe` can be reached on any graph and is not checked. */
static const double final_roundings = 2, final_safe = 1e-5;

/* ---- Text values. Each is checked by the module that defines it. ---- */

/* Checks a codec and writes its canonical text. `name`: name of its key, for error messages. */
static int canonical_codec(const char *name, const char *value, char out[RUN_VALUE_MAX],
                           char error[RUN_ERROR_MAX])
{
    char canonical[COMPRESS_SPEC_MAX], sentence[COMPRESS_ERROR_MAX];
    static_assert(sizeof canonical <= RUN_SPEC_MAX, "fits");
    if (compress_canonical(value, canonical, sentence) != 0)
        return run_refuse_as(error, name, sentence);
    memcpy(out, canonical, strlen(canonical) + 1);
    return 0;
}

static int canonical_compress(const char *value, char out[RUN_VALUE_MAX], char error[RUN_ERROR_MAX])
{
    /* The caller has already accepted the value "auto". A value that only begins with "auto", such
     * as "auto:4", gets a more helpful message than "unknown codec". */
    size_t n = strlen(RUN_AUTO);
    if (strncmp(value, RUN_AUTO, n) == 0 && strchr("+:;,/", value[n]) != NULL)
        return run_refuse(
            error, "compress", value,
            "auto without options: it chooses codecs by the consensus distance (--drift-target)");
    int err = canonical_codec("compress", value, out, error);
    if (err != 0 && spelling_distance(value, RUN_AUTO) <= 1)
        return run_refuse(error, "compress", value,
                          "auto or a compressor, did you mean " RUN_AUTO "?");
    /* The error message of the codec module lists all codecs. --compress also accepts "auto", so
     * "auto" is added to that list. */
    static const char list[] = "expected one of ";
    char rest[RUN_ERROR_MAX], *at = err != 0 ? strstr(error, list) : NULL;
    if (at != NULL) {
        memcpy(rest, at + strlen(list), strlen(at + strlen(list)) + 1);
        snprintf(at, RUN_ERROR_MAX - (size_t)(at - error), "expected auto or one of %s", rest);
    }
    return err;
}

static int canonical_final(const char *value, char out[RUN_VALUE_MAX], char error[RUN_ERROR_MAX])
{
    return canonical_codec("final-compress", value, out, error);
}

/* Checks a topology and writes its canonical text. `name`: name of its key, for error messages. */
static int canonical_graph(const char *name, const char *value, char out[RUN_VALUE_MAX],
                           char error[RUN_ERROR_MAX])
{
    char canonical[TOPOLOGY_SPEC_MAX], sentence[TOPOLOGY_ERROR_MAX];
    static_assert(sizeof canonical <= RUN_VALUE_MAX, "fits");
    if (topology_canonical(value, canonical, sentence) != 0)
        return run_refuse_as(error, name, sentence);
    memcpy(out, canonical, strlen(canonical) + 1);
    return 0;
}

static int canonical_topology(const char *value, char out[RUN_VALUE_MAX], char error[RUN_ERROR_MAX])
{
    return canonical_graph("topology", value, out, error);
}

static int canonical_final_graph(const char *value, char out[RUN_VALUE_MAX],
                                 char error[RUN_ERROR_MAX])
{
    return canonical_graph("final-topology", value, out, error);
}

/* Checks an outer optimiser and writes its canonical text. */
static int canonical_outer(const char *value, char out[RUN_VALUE_MAX], char error[RUN_ERROR_MAX])
{
    struct run_outer o;
    if (!run_outer_parse(value, &o))
        return run_refuse(
            error, "outer", value,
            "none, or nesterov:LR:MOMENTUM with 1e-6 <= LR <= 10 and 0 <= MOMENTUM <= "
            "0.999, such as nesterov:0.7:0.5");
    run_outer_text(&o, out);
    return 0;
}

/* ---- Values that depend on other keys. ---- */

static const struct mixer *mixer_named(const char *name)
{
    size_t i = 0;
    while (mixer_all[i] != NULL && strcmp(name, mixer_all[i]->name) != 0)
        i++;
    return mixer_all[i];
}

/* Returns the default topology. A mixer with a collective needs all peers to be connected. A mixer
 * that averages in pairs needs a topology that gives each peer one partner per round. */
static const char *fallback_of_topology(const struct run_flags *f)
{
    const struct mixer *mixer = mixer_named(run_flags_value(f, "mixer"));
    return mixer != NULL && mixer->round_protocol ? "complete"
           : mixer != NULL && mixer->pairs        ? "rotation"
                                                  : "ring";
}

static bool has_trigger(const struct run_flags *f)
{
    double trigger;
    return number_real(run_flags_value(f, "trigger"), &trigger) && trigger > 0;
}

/* Returns the default codec. The default is "none" if the mixer sends whole models, or uses a
 * collective or a parameter server, because nothing may be left out of such messages. Otherwise
 * the default is "qsgd:4" in these cases:
 *
 *   - The mixer sums updates. The codec auto follows the consensus distance, which does not show
 *     how much is left out of updates.
 *   - The topology changes by round, or the trainer needs a precise codec: auto may be too coarse.
 *   - --trigger is above 0: auto does not work with empty deltas.
 *
 * In all other cases the default is "auto". */
static const char *fallback_of_compress(const struct run_flags *f)
{
    const struct mixer *mixer = mixer_named(run_flags_value(f, "mixer"));
    if (mixer != NULL && (mixer->whole || mixer->round_protocol))
        return "none";
    if (round_schedule_of(run_flags_value(f, "topology")) || (mixer != NULL && mixer->updates)
        || (f->trainer != NULL && f->trainer->needs_precise_codec != NULL
            && f->trainer->needs_precise_codec(f))
        || has_trigger(f))
        return fine_codec;
    return RUN_AUTO;
}

/* Replaces final-compress=auto by a codec. If the topology of the consensus phase has exact
 * averaging passes, the codec is "none", because one pass of uncompressed models ends the phase
 * (peer/node/edge/averaging_pass.h). Whether a pass is exact depends on the number of peers, for
 * which `min_peers` is taken. Otherwise the codec of training is used if it is precise enough,
 * else fine_codec. */
static int resolve_final(const struct run *r, const struct run_flags *f, char value[RUN_VALUE_MAX],
                         char error[RUN_ERROR_MAX])
{
    (void)f;
    bool fine = false;
    if (round_schedule_exact(run_final_topology(r), r->min_peers))
        return canonical_final("none", value, error);
    int err =
        strcmp(r->compress, RUN_AUTO) != 0 ? codec_precise_for_consensus(r->compress, &fine) : 0;
    if (err != 0)
        snprintf(error, RUN_ERROR_MAX, "--compress: cannot set up '%.64s'", r->compress);
    return err != 0 ? err : canonical_final(fine ? r->compress : fine_codec, value, error);
}

/* Returns true for the mixers choco, dpsgd and gossip, which send models or differences of models
 * over edges. Returns false for average, allreduce, sma and ps. */
static bool sends_models(const struct run *r)
{
    return !mixer_all[r->mixer]->updates;
}

bool run_sends_updates(const struct run *r)
{
    return !sends_models(r);
}

/* Returns true for the mixers dpsgd and gossip, which send whole models instead of differences. */
static bool sends_whole(const struct run *r)
{
    return mixer_all[r->mixer]->whole;
}

bool run_may_overshoot(const struct run *r)
{
    return !r->gamma_auto && r->gamma > 1;
}

const char *run_mixing_varies(const struct run *r)
{
    const struct mixer *m = mixer_all[r->mixer];
    bool keeps = false;
    if (m->updates && m != &mixer_allreduce)
        return "needs --mixer choco, dpsgd or allreduce: an exchange must average models";
    if (round_schedule_of(r->topology))
        return "needs a --topology with the same edges in every round, such as ring or exponential";
    if (r->policy != RUN_SYNC)
        return "needs --policy sync: all edges must exchange in every round";
    if (r->trigger > 0)
        return "cannot be combined with --trigger: all edges must exchange in every round";
    if (r->overlap == RUN_OVERLAP_ROUND)
        return "cannot be combined with --overlap 1: an exchange must end before the next round";
    /* A codec that cannot be set up counts as one that is too lossy. */
    if (strcmp(r->compress, RUN_AUTO) != 0 && codec_precise_for_momentum(r->compress, &keeps) == 0
        && keeps)
        return NULL;
    return "needs a precise codec in --compress, such as none, fp16, int8 or qsgd:4, and not auto: "
           "models diverge if deltas leave much out";
}

const char *run_bars_companion(const struct run *r)
{
    return !mixer_all[r->mixer]->companion
               ? "needs --mixer choco: only its deltas can contain the momentum"
           : r->policy != RUN_SYNC
               ? "needs --policy sync: both deltas of an exchange must be of the same round"
           : r->overlap != RUN_OVERLAP_NONE
               ? "needs --overlap 0: the momentum is final only after the last local step"
           : r->tolerate > 0 ? "cannot be combined with --byzantine: the momentum is not clipped"
           : r->trigger > 0  ? "cannot be combined with --trigger: an empty delta would delay the "
                               "momentum as well"
                             : NULL;
}

const char *run_leaves_out(const struct run *r)
{
    bool keeps = false;
    /* A codec that cannot be set up counts as one that leaves out too much. */
    if (strcmp(r->compress, RUN_AUTO) != 0 && codec_precise_for_rounds(r->compress, &keeps) == 0
        && keeps)
        return NULL;
    return "needs a codec in --compress that leaves out at most 10 % of a delta's squared norm, "
           "such as none, fp16, int8 or qsgd:4, and not auto: models diverge if deltas leave out "
           "more";
}

/* Returns true for the mixers allreduce, sma and ps, which combine models by a collective or a
 * parameter server instead of exchanges over edges. */
static bool uses_round_protocol(const struct run *r)
{
    return mixer_all[r->mixer]->round_protocol;
}

/* Returns true for --mixer ps, the parameter server. */
static bool is_parameter_server(const struct run *r)
{
    return mixer_all[r->mixer] == &mixer_ps;
}

static bool has_no_centre(const struct run *r)
{
    return mixer_all[r->mixer] != &mixer_sma;
}

static bool has_no_collective(const struct run *r)
{
    return !uses_round_protocol(r) || is_parameter_server(r);
}

/* Returns whether the key error-feedback has no effect. Only the mixers average and ps can switch
 * error feedback on or off. */
static bool has_no_error_feedback(const struct run *r)
{
    return sends_models(r) || (uses_round_protocol(r) && !is_parameter_server(r));
}

/* Returns whether the key factor-masking has no effect. Only the mixer average can use it. */
static bool has_no_factor_masking(const struct run *r)
{
    return sends_models(r) || uses_round_protocol(r);
}

static bool tolerates_no_peer(const struct run *r)
{
    return r->tolerate == 0;
}

/* Returns whether the keys post-local and one-step-last have no effect. They need a fixed number of
 * local steps per round above 1. */
static bool has_one_step(const struct run *r)
{
    return r->local_steps <= 1; /* r->local_steps is 0 with --local-steps auto. */
}

static bool has_one_codec(const struct run *r)
{
    return strcmp(r->compress, RUN_AUTO) != 0;
}

/* Smallest and largest number of neighbours of any peer, in a graph of `n` peers. */
struct degrees
{
    uint32_t n, least, most;
};

/* Computes the degrees of the run's topology. The topology may be made for a certain number of
 * peers. Otherwise the number of peers is taken from --min-peers, or is NOMINAL_PEERS if that is
 * not given. Returns 0, or a negative errno with a message. */
static int find_degrees(const struct run *r, struct degrees *d, char error[RUN_ERROR_MAX])
{
    struct graph g;
    uint32_t made_for = topology_peers(r->topology);
    uint32_t n = made_for > 0 ? made_for : r->min_peers > 1 ? r->min_peers : NOMINAL_PEERS;
    *d = (struct degrees){.n = n, .least = n};
    int err = graph_build(&g, r->topology, n, r->seed);
    if (err != 0) {
        snprintf(error, RUN_ERROR_MAX, "--topology: cannot set up '%.64s'", r->topology);
        return err;
    }
    for (uint32_t v = 0; v < n; v++) {
        uint32_t degree = graph_degree(&g, v);
        d->least = degree < d->least ? degree : d->least;
        d->most = degree > d->most ? degree : d->most;
    }
    graph_close(&g);
    return 0;
}

/* Refuses a --final-drift that is too small. The float32 rounding error is part of each measured
 * distance, so no peer could ever measure a smaller distance. */
static int check_final_drift(const struct run *r, char error[RUN_ERROR_MAX])
{
    struct degrees d;
    if (!(r->final_drift > 0) || r->final_drift >= final_safe)
        return 0;
    int err = find_degrees(r, &d, error);
    if (err != 0)
        return err;
    double least = final_roundings * sketch_rounding(d.most);
    if (r->final_drift >= least)
        return 0;
    snprintf(error, RUN_ERROR_MAX,
             "--final-drift: found %.3g, expected at least %.3g, or 0 for no consensus phase: with "
             "float32 parameters, a peer with %u neighbours may never reach a smaller distance",
             r->final_drift, 1.005 * least, d.most);
    return -EINVAL;
}

/* Checks --byzantine B: each peer needs at least 2 B + 2 neighbours. Clipping then never reduces
 * the influence of the two nearest neighbours (gossip/mixers/clip.h). With 2 B neighbours or fewer,
 * clipping would leave nothing to mix. */
static int check_tolerate(const struct run *r, char error[RUN_ERROR_MAX])
{
    struct degrees d;
    uint32_t need = 2 * r->tolerate + 2;
    if (r->tolerate == 0)
        return 0;
    if (r->policy != RUN_SYNC) {
        snprintf(error, RUN_ERROR_MAX,
                 "--byzantine %u: needs --policy sync: a peer compares the deltas of its "
                 "neighbours within one round",
                 r->tolerate);
        return -EINVAL;
    }
    int err = find_degrees(r, &d, error);
    if (err != 0 || d.least >= need)
        return err;
    snprintf(error, RUN_ERROR_MAX,
             "--byzantine %u: every peer needs %u neighbours, but in '%.40s' of %u peers some "
             "have only %u: use --topology regular:%u or complete, with %u peers or more%s",
             r->tolerate, need, r->topology, d.n, d.least, need, need + 1,
             r->tolerate == 1 ? ", or torus with 9 peers or more" : "");
    return -EINVAL;
}

/* Refuses a codec that is too coarse for a topology that changes by round (codec_precision.h). */
static int check_rota_codec(const char *key, const char *codec, const char *graph_key,
                            const char *graph, char error[RUN_ERROR_MAX])
{
    bool keeps = false;
    int err = strcmp(codec, RUN_AUTO) != 0 ? codec_precise_for_rounds(codec, &keeps) : 0;
    if (err != 0)
        snprintf(error, RUN_ERROR_MAX, "--%s: cannot set up '%.64s'", key, codec);
    if (err != 0 || keeps)
        return err;
    snprintf(error, RUN_ERROR_MAX,
             "--%s %.64s: too lossy for --%s %.40s, where two peers exchange only once in many "
             "rounds: expected a more precise codec, such as none, fp16, int8 or qsgd:4",
             key, codec, graph_key, graph);
    return -EINVAL;
}

static int refuse_graph(const char *key, const char *graph, const char *why,
                        char error[RUN_ERROR_MAX])
{
    snprintf(error, RUN_ERROR_MAX, "--%s %.64s: %s", key, graph, why);
    return -EINVAL;
}

/* Checks that the other keys of a run suit a topology that changes by round. All peers must be in
 * the same round, because each peer computes the graph of a round from its round number. */
static int check_rota(const struct run *r, char error[RUN_ERROR_MAX])
{
    const char *why = r->policy != RUN_SYNC  ? "needs --policy sync: all peers must be in the "
                                               "same round"
                      : run_sends_updates(r) ? "needs --mixer choco: other mixers send an update "
                                               "only to the partners of one round"
                      : r->overlap == RUN_OVERLAP_ROUND
                          ? "cannot be combined with --overlap 1: a cluster that stops again "
                            "while it resumes could not continue bit for bit"
                      : r->tolerate > 0 ? "cannot be combined with --byzantine: a peer has too "
                                          "few neighbours in each round"
                                        : NULL;
    if (why != NULL)
        return refuse_graph("topology", r->topology, why, error);
    int err = check_rota_codec("compress", r->compress, "topology", r->topology, error);
    return err != 0 || run_changes_graph(r) ? err
                                            : check_rota_codec("final-compress", r->final_compress,
                                                               "topology", r->topology, error);
}

/* Checks a --final-topology that differs from --topology. All peers must change to the new edges at
 * the same step, so they must run in lock step (all in the same round). An exchange that is
 * unfinished on an old edge is still committed afterwards. Each exchange must move its two peers by
 * equal and opposite amounts, so that a late commit does not change the mean model. */
static int check_final_graph(const struct run *r, char error[RUN_ERROR_MAX])
{
    bool passes = round_schedule_of(r->final_topology);
    const char *why =
        r->policy != RUN_SYNC  ? "needs --policy sync: all peers must change edges at the same "
                                 "step"
        : run_sends_updates(r) ? "needs --mixer choco: with other mixers, an update in flight "
                                 "when the graph changes would be added at one end only"
        : r->tolerate > 0      ? "cannot be combined with --byzantine: the new graph could replace "
                                 "excluded Byzantine neighbours by other Byzantine neighbours"
        : !(r->final_drift > 0) ? "needs a consensus phase: set --final-drift above 0"
        : passes && !r->gamma_auto && r->gamma != 1
            ? "needs --gamma auto or 1: with other step sizes, the averaging pass does not give "
              "the exact mean"
            : NULL;
    if (why != NULL)
        return refuse_graph("final-topology", r->final_topology, why, error);
    return !passes ? 0
                   : check_rota_codec("final-compress", r->final_compress, "final-topology",
                                      r->final_topology, error);
}

static int refuse_whole(const struct run *r, const char *key, const char *value, const char *why,
                        char error[RUN_ERROR_MAX])
{
    snprintf(error, RUN_ERROR_MAX, "--%s %.64s: cannot be combined with --mixer %s: %s", key, value,
             mixer_all[r->mixer]->name, why);
    return -EINVAL;
}

/* Checks the keys of a run with a mixer that sends whole models. Only the codecs none and fp16 are
 * allowed, because such a mixer never sends later what a codec has left out. */
static int check_whole(const struct run *r, char error[RUN_ERROR_MAX])
{
    if (strcmp(r->compress, "none") != 0 && strcmp(r->compress, "fp16") != 0)
        return refuse_whole(r, "compress", r->compress,
                            "this mixer would lose what a codec leaves out of a model: expected "
                            "none or fp16 (--mixer choco accepts any codec)",
                            error);
    if (r->overlap == RUN_OVERLAP_LAYER)
        return refuse_whole(r, "overlap", "layer",
                            "this mixer sends whole models, not layers; use --overlap 1 to send "
                            "the model during the local steps",
                            error);
    return 0;
}

/* Checks the keys of a run with --mixer gossip, which averages models in pairs. The topology must
 * give each peer one partner per round. The consensus step size must be 1, which gives the mean of
 * the two models. */
static int check_pairs(const struct run *r, char error[RUN_ERROR_MAX])
{
    char gamma[32];
    if (!round_schedule_pairs(r->topology))
        return refuse_whole(
            r, "topology", r->topology,
            "each peer needs exactly one partner per round: expected rotation:R, matching:K or "
            "one-peer-exponential (--mixer dpsgd allows several partners)",
            error);
    if (r->gamma_auto || r->gamma == 1)
        return 0;
    snprintf(gamma, sizeof gamma, "%g", r->gamma);
    return refuse_whole(r, "gamma", gamma,
                        "two partners replace their models by the mean, which needs a step size of "
                        "1: expected 1 or auto",
                        error);
}

/* Checks the keys of a run with a mixer that uses a collective or a parameter server. A collective
 * sums the whole models of all members. Therefore --compress must be none, and each pair of members
 * needs a session. */
static int check_collective(const struct run *r, char error[RUN_ERROR_MAX])
{
    const char *why = strcmp(r->compress, "none") != 0 && !is_parameter_server(r)
                          ? "needs --compress none: peers send partial sums as float32"
                      : strcmp(r->topology, "complete") != 0
                          ? "needs --topology complete: every two members need a session for a "
                            "collective operation"
                      : run_changes_graph(r) ? "cannot be combined with --final-topology: all "
                                               "models are already equal when the consensus "
                                               "phase begins"
                      : r->min_peers > COLLECTIVE_RANKS_MAX ? "supports at most 256 peers"
                                                            : NULL;
    if (why == NULL)
        return 0;
    snprintf(error, RUN_ERROR_MAX, "--mixer %s: %s", mixer_all[r->mixer]->name, why);
    return -EINVAL;
}

/* Checks which other keys are allowed with an outer optimiser. All mixers that keep the mean of the
 * models are allowed. */
static int check_outer(const struct run *r, char error[RUN_ERROR_MAX])
{
    const char *why =
        r->overlap == RUN_OVERLAP_LAYER
            ? "cannot be combined with --overlap layer: layers would be sent before the outer "
              "step; expected 0 or 1"
        : !has_no_centre(r) ? "cannot be combined with --mixer sma: its central model already has "
                              "a momentum over rounds (--centre-momentum)"
        : r->factor_masking ? "cannot be combined with --factor-masking true: masking resets only "
                              "the momentum of local steps"
                            : NULL;
    if (why == NULL || !run_has_outer(r))
        return 0;
    snprintf(error, RUN_ERROR_MAX, "--outer %.40s: %s", r->outer, why);
    return -EINVAL;
}

/* Checks which other keys are allowed with an event trigger (--trigger): a peer sends an empty
 * delta while its model is near its replica. */
static int check_trigger(const struct run *r, char error[RUN_ERROR_MAX])
{
    const char *why =
        run_sends_updates(r) || sends_whole(r)
            ? "needs --mixer choco: other mixers do not send differences to a replica"
        : !has_one_codec(r) ? "needs a codec in --compress, not auto: auto would treat an empty "
                              "delta as a sign that the codec is too coarse"
        : r->overlap == RUN_OVERLAP_LAYER
            ? "cannot be combined with --overlap layer: layers would be sent before the "
              "length of the whole difference is known; expected 0 or 1"
        : round_schedule_of(r->topology)
            ? "needs a --topology with the same edges in every round, such as ring or exponential"
            : NULL;
    if (why == NULL || r->trigger == 0)
        return 0;
    snprintf(error, RUN_ERROR_MAX, "--trigger %g: %s", r->trigger, why);
    return -EINVAL;
}

/* Checks that at least one round is not shortened to one local step by --post-local or
 * --one-step-last. */
static int check_one_step(const struct run *r, char error[RUN_ERROR_MAX])
{
    unsigned long long first = r->post_local, last = r->one_step_last;
    char names[80];
    if (r->rounds == 0 || first + last < r->rounds)
        return 0;
    if (first > 0 && last > 0)
        snprintf(names, sizeof names, "--post-local %llu and --one-step-last %llu", first, last);
    else
        snprintf(names, sizeof names, first > 0 ? "--post-local %llu" : "--one-step-last %llu",
                 first + last);
    snprintf(error, RUN_ERROR_MAX,
             "%s: expected less than the %llu round%s of the run%s, otherwise no round has "
             "--local-steps %u",
             names, (unsigned long long)r->rounds, number_plural(r->rounds),
             first > 0 && last > 0 ? " together" : "", r->local_steps);
    return -EINVAL;
}

/* Checks the core keys for combinations that are not allowed. The mixers average, allreduce, sma
 * and ps need a fixed codec and the same number of local steps on all peers. Except for ps they
 * also need lock step (all peers in the same round), because all updates of a round must start from
 * the same model. The other mixers can mix models at any time. */
int run_core_check(const struct run *r, char error[RUN_ERROR_MAX])
{
    if (!sends_models(r) && !is_parameter_server(r) && r->policy != RUN_SYNC) {
        snprintf(error, RUN_ERROR_MAX,
                 "--mixer %s: needs --policy sync, because all updates of a round must start from "
                 "the same model",
                 mixer_all[r->mixer]->name);
        return -EINVAL;
    }
    if (!sends_models(r) && !has_one_codec(r)) {
        snprintf(error, RUN_ERROR_MAX,
                 "--mixer %s: needs a codec in --compress, not auto: auto chooses codecs by the "
                 "consensus distance, which this mixer does not control",
                 mixer_all[r->mixer]->name);
        return -EINVAL;
    }
    if (!sends_models(r) && r->local_steps == 0) {
        snprintf(error, RUN_ERROR_MAX,
                 "--mixer %s: needs a number for --local-steps, not auto: this mixer adds the "
                 "updates of all peers, which must have equally many steps",
                 mixer_all[r->mixer]->name);
        return -EINVAL;
    }
    int err = sends_whole(r) ? check_whole(r, error) : 0;
    if (err == 0 && mixer_all[r->mixer]->pairs)
        err = check_pairs(r, error);
    if (err != 0)
        return err;
    if (r->overlap == RUN_OVERLAP_LAYER && r->local_steps == 0) {
        snprintf(error, RUN_ERROR_MAX,
                 "--overlap layer: needs a number for --local-steps, not auto, because auto scales "
                 "an update after its last step, when layers are already sent");
        return -EINVAL;
    }
    if (r->policy == RUN_ASYNC && r->local_steps == 0) {
        snprintf(error, RUN_ERROR_MAX,
                 "--policy async: needs a number for --local-steps, not auto: auto only helps "
                 "where peers wait for slower peers");
        return -EINVAL;
    }
    err = check_one_step(r, error);
    if (err != 0)
        return err;
    err = uses_round_protocol(r) ? check_collective(r, error) : 0;
    if (err == 0)
        err = check_final_drift(r, error);
    if (err == 0 && round_schedule_of(r->topology))
        err = check_rota(r, error);
    if (err == 0 && run_changes_graph(r))
        err = check_final_graph(r, error);
    if (err == 0)
        err = check_outer(r, error);
    if (err == 0)
        err = check_trigger(r, error);
    return err != 0 ? err : check_tolerate(r, error);
}

/* ---- The table of core keys. ---- */

/* clang-format off */
const struct run_key run_core_keys[] = {
    {.name = "compress", .kind = RUN_TEXT, .fallback = RUN_AUTO,
     .help = "compressor of the deltas: none, fp16, sign, qsgd:BITS, topk:SHARE, randk:SHARE, topk:SHARE+qsgd:BITS, ... (see hearsay compressors), or auto, which chooses by the consensus distance. The default is qsgd:4 with any of --mixer average, --topology base:K, --momentum-kind decentlam or tracking, and --trigger",
     .word = RUN_AUTO, .canonical = canonical_compress, RUN_FIELD(compress),
     .fallback_by = fallback_of_compress},
    {.name = "drift-target", .kind = RUN_REAL, .fallback = "1",
     .help = "with --compress auto: target of the consensus distance during training. The unit is the distance that models have after the local steps of a round in a run without compression. A lower target sends more bytes",
     .low = 1e-6, .high = 1e6, RUN_FIELD(drift_target),
     .useless = has_one_codec, .of = "compress",
     .why = "only with --compress auto, which chooses the compressor by the consensus distance"},
    {.name = "final-compress", .kind = RUN_TEXT, .fallback = "auto",
     .help = "compressor of the consensus phase; auto: the compressor of the run, or qsgd:4 if it is too coarse for --final-drift; none with --final-topology base:K",
     .word = "auto", .canonical = canonical_final, RUN_FIELD(final_compress),
     .resolve = resolve_final},
    {.name = "topology", .kind = RUN_TEXT, .fallback = "ring",
     .help = "graph of the peers: ring, path, star, tree:K, trees, grid, torus, hypercube, exponential, bipartite, complete, regular:K, er:P, small-world:K,P, edges:FILE; or with other neighbours in each round: base:K, one-peer-exponential, rotation:R, matching:K",
     .canonical = canonical_topology, RUN_FIELD(topology),
     .fallback_by = fallback_of_topology},
    {.name = "final-topology", .kind = RUN_TEXT, .fallback = RUN_SAME,
     .help = "graph of the consensus phase: same (as in training) or any other graph; base:K needs only one averaging pass (a few rounds), without compression",
     .word = RUN_SAME, .canonical = canonical_final_graph, RUN_FIELD(final_topology)},
    {.name = "mixer", .kind = RUN_CHOICE, .fallback = "choco",
     .help = "algorithm of an exchange: choco: compressed differences (CHOCO-SGD); average: sums of compressed updates (for --topology complete); dpsgd: whole models averaged with all neighbours (D-PSGD); gossip: whole models averaged with one partner a round (--topology rotation:R, matching:K or one-peer-exponential); for comparisons: allreduce, sma (synchronous model averaging), ps (parameter server)",
     .choices = "choco|average|dpsgd|allreduce|gossip|sma|ps", RUN_FIELD(mixer)},
    {.name = "collective", .kind = RUN_CHOICE, .fallback = "ring",
     .help = "with --mixer allreduce or sma: all-reduce algorithm",
     .choices = "ring|butterfly|tree|round-robin|master-worker|all-to-all", RUN_FIELD(collective),
     .useless = has_no_collective, .of = "mixer",
     .why = "only with --mixer allreduce or sma: the other mixers exchange with neighbours"},
    {.name = "centre-momentum", .kind = RUN_REAL, .fallback = "0.9",
     .help = "with --mixer sma: momentum of the central average model",
     .low = 0, .high = 0.999, RUN_FIELD(centre_momentum),
     .useless = has_no_centre, .of = "mixer",
     .why = "only with --mixer sma: other mixers have no central model"},
    {.name = "error-feedback", .kind = RUN_CHOICE, .fallback = "true",
     .help = "with --mixer average or ps: add the error of a compressed message to the next message",
     .choices = "false|true", RUN_FIELD(error_feedback),
     .useless = has_no_error_feedback, .of = "mixer",
     .why = "only with --mixer average or ps: choco has error feedback built in, and whole models need none"},
    {.name = "factor-masking", .kind = RUN_CHOICE, .fallback = "false",
     .help = "with --mixer average: reset the momentum of the coordinates that were sent (DGC)",
     .choices = "false|true", RUN_FIELD(factor_masking),
     .useless = has_no_factor_masking, .of = "mixer",
     .why = "only with --mixer average: the other mixers do not send momentum"},
    {.name = "gamma", .kind = RUN_REAL, .fallback = "auto",
     .help = "consensus step size; auto: adapted to each edge, or 1 if the mixer sends whole models, and limited if --outer has a large momentum",
     .word = "auto", .low = 1e-9, .high = 2, RUN_FIELD(gamma)},
    {.name = "byzantine", .former = "tolerate", .kind = RUN_UINT, .fallback = "0",
     .help = "tolerate N Byzantine neighbours per peer: limit the influence of the neighbours with the most distant models (clipping); needs 2 N + 2 neighbours; can shift the mean of the models",
     .min = 0, .max = TOLERATE_MAX, RUN_FIELD(tolerate),
     .useless = run_sends_updates, .of = "mixer",
     .why = "only with --mixer choco: other mixers add neighbours' updates without limiting them"},
    {.name = "max-pull", .former = "pull", .kind = RUN_REAL, .fallback = "0",
     .help = "with --byzantine: how far all neighbours together may move a peer's model in a training round, as a multiple of the length of the peer's local update; also protects against more than N Byzantine neighbours; 0: no limit",
     .low = 0, .high = 1e6, RUN_FIELD(pull),
     .useless = tolerates_no_peer, .of = "byzantine",
     .why = "only with --byzantine: without it, --max-pull would slow honest and Byzantine peers alike"},
    {.name = "policy", .kind = RUN_CHOICE, .fallback = "sync",
     .help = "sync: wait for every neighbour in each round; async: never wait; ssp:N: wait only if the slowest neighbour is N rounds behind",
     .choices = "sync|async|ssp:N", RUN_FIELD(policy)},
    {.name = "overlap", .kind = RUN_CHOICE, .fallback = "0",
     .help = "0: exchange after the local steps; 1: exchange during the local steps, with the model from before them; layer: send each layer as soon as the last local step has finished it",
     .choices = "0|1|layer", RUN_FIELD(overlap),
     .useless = run_sends_updates, .of = "mixer",
     .why = "only with --mixer choco: other mixers send the result of the local steps, so they can only send after these steps"},
    {.name = "seed", .kind = RUN_UINT, .fallback = "1",
     .help = "seed of all random choices of the run",
     .min = 0, .max = UINT64_MAX, RUN_FIELD(seed)},
    {.name = "rounds", .kind = RUN_UINT, .fallback = "0",
     .help = "number of rounds; a round is --local-steps local steps and one exchange",
     .min = 1, .max = ROUNDS_MAX, RUN_FIELD(rounds)},
    {.name = "min-peers", .kind = RUN_UINT, .fallback = "1",
     .help = "number of members to wait for before the first round",
     .min = 1, .max = WIRE_MEMBERS_MAX, RUN_FIELD(min_peers)},
    {.name = "local-steps", .kind = RUN_UINT, .fallback = "1",
     .help = "local steps per round; auto: as many as this peer can make while the average peer makes 10",
     .word = "auto", .min = 1, .max = 1000000, RUN_FIELD(local_steps)},
    {.name = "post-local", .kind = RUN_UINT, .fallback = "0",
     .help = "post-local SGD: the first N rounds have one local step each",
     .min = 0, .max = ROUNDS_MAX, RUN_FIELD(post_local),
     .useless = has_one_step, .of = "local-steps",
     .why = "only with --local-steps above 1"},
    {.name = "one-step-last", .kind = RUN_UINT, .fallback = "0",
     .help = "the last N rounds of training have one local step each",
     .min = 0, .max = ROUNDS_MAX, RUN_FIELD(one_step_last),
     .useless = has_one_step, .of = "local-steps",
     .why = "only with --local-steps above 1"},
    {.name = "outer", .kind = RUN_TEXT, .fallback = "none",
     .help = "outer optimiser of the local update of each round, for many --local-steps (DiLoCo): none, or nesterov:LR:MOMENTUM, such as nesterov:0.7:0.5, or nesterov:0.7:0.9 in long runs with precise compressors",
     .canonical = canonical_outer, RUN_FIELD(outer)},
    {.name = "trigger", .kind = RUN_REAL, .fallback = "0",
     .help = "event trigger (SQuARM-SGD): in training, send an empty delta while the distance of the model to its replica is under X times the length of a round's local update; 0: no trigger",
     .low = 0, .high = TRIGGER_MAX, RUN_FIELD(trigger)},
    {.name = "final-drift", .kind = RUN_REAL, .fallback = "0.001",
     .help = "relative consensus distance at which the consensus phase ends, at least 2e-7; 0: no consensus phase",
     .low = 0, .high = 1, RUN_FIELD(final_drift)},
    {.name = "quorum", .kind = RUN_REAL, .fallback = "0.5",
     .help = "least share of the initial members that must be connected (with --min-peers 1, not counting those that left cleanly); with fewer, peers wait for --quorum-timeout, and the run cannot succeed",
     .low = 0, .high = 1, RUN_FIELD(quorum)},
    {.name = NULL}};
/* clang-format on */
