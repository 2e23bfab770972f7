/* peer/run/run.h -- the run: all settings that all peers must agree on, and its text form, the run
 * description.
 *
 * A run description is a text of `key=value` lines. In canonical form every key occurs once, the
 * keys are sorted by name, and each value has only one spelling. Peers that are started with the
 * same flags therefore have the same run description before they connect.
 *
 *   core keys (run_core_keys[])      topology, compress, mixer, rounds, seed, ...
 *   trainer keys (run_trainer.keys)  for SGD: model, data, batch, lr, ...
 *
 * The core keys are those that gossip and every kind of training need. A trainer (the part that
 * does the local steps) adds a table of its own keys. This folder does not know their meaning. The
 * command line, the canonical text and the checks use both tables in the same way. One row of a
 * table holds everything about a key: its name (also the name of its flag), type, default, help
 * text, the field of the value, and its dependencies on other keys. */
#ifndef PEER_RUN_RUN_H
#define PEER_RUN_RUN_H

#include "gossip/wire/wire.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Value of --compress auto: each peer chooses its codec during the run, by the consensus distance
 * (gossip/exchange/codec_levels.h). */
#define RUN_AUTO "auto"
/* Value of --final-topology that means: the consensus phase uses the same graph as training. */
#define RUN_SAME "same"

/* Policy that decides when a peer waits for its neighbours: in every round, never, or stale
 * synchronous. The values RUN_SSP, RUN_SSP + 1, ... mean a staleness of 1, 2, ... rounds
 * (run_staleness()). */
enum run_policy { RUN_SYNC, RUN_ASYNC, RUN_SSP };

enum {
    /* Size of the buffer for the value of any run key, in bytes with the NUL. The longest values
     * are topologies that list their edges. */
    RUN_VALUE_MAX = 1400,
    /* Size of a canonical text value other than a topology, in bytes with the NUL. */
    RUN_SPEC_MAX = 256,
    RUN_OUTER_MAX = 80, /* Size of the text of an outer optimiser, in bytes with the NUL. */
    RUN_KEY_MAX = 32,   /* Largest length of a key's name in a run description, in bytes. */
    /* Largest number of keys of the core and one trainer together. */
    RUN_KEYS_MAX = 48,
    RUN_OWN_MAX = 2304, /* Largest size of the struct with a trainer's values, in bytes. */
    /* With --local-steps auto: local steps per round of a peer with average speed. */
    RUN_STEPS_AUTO = 10,
    /* With --local-steps auto: a fast peer does at most RUN_STEPS_MORE * RUN_STEPS_AUTO local steps
     * per round. */
    RUN_STEPS_MORE = 4,
    RUN_ERROR_MAX = 320
};

struct run_trainer;

/* Time at which a peer sends the delta of a round, relative to the local steps of that round
 * (--overlap; peer/node/step/job.h). */
enum run_overlap {
    RUN_OVERLAP_NONE,  /* The delta is sent after the local steps. */
    RUN_OVERLAP_ROUND, /* The delta is sent before the local steps. */
    /* The delta is sent layer by layer during the last local step. */
    RUN_OVERLAP_LAYER
};

/* A run with parsed values: all settings that all peers share. Text values are in canonical
 * form. */
struct run
{
    /* Codec during training. RUN_AUTO: each peer chooses its codec by the consensus distance. */
    char compress[RUN_SPEC_MAX];
    /* Consensus distance that --compress auto aims at, in multiples of the length of a round's
     * local update (gossip/exchange/codec_levels.h). */
    double drift_target;
    /* Codec of the consensus phase. The value "auto" has already been replaced by a codec. */
    char final_compress[RUN_SPEC_MAX];
    /* Topology of the graph during training. */
    char topology[RUN_VALUE_MAX];
    /* Topology during the consensus phase. RUN_SAME: the topology of training. */
    char final_topology[RUN_VALUE_MAX];
    /* Mixer of the run, as an index in mixer_all[] (gossip/mixers/mixer.h). */
    uint32_t mixer;
    /* All-reduce algorithm, as an index in collective_all[]. Only the mixers allreduce and sma use
     * it. */
    uint32_t collective;
    /* Whether error feedback and momentum factor masking are on. Only the mixers average and ps use
     * `error_feedback`, and only average uses `factor_masking`. A field that the mixer does not use
     * has its default: true for `error_feedback`, false for `factor_masking`. */
    bool error_feedback, factor_masking;
    /* Number of Byzantine neighbours that each peer must tolerate (--byzantine). 0: none. */
    uint32_t tolerate;
    /* Largest distance by which all neighbours together may move a peer's model in one round, used
     * if `tolerate` > 0. The unit is the length of the peer's own local update. 0: no limit. */
    double pull;
    /* Threshold of the event trigger, in multiples of the length of a round's local update. A
     * training delta is empty while the distance from the model to its replica is below the
     * threshold. 0: no trigger. */
    double trigger;
    /* True: each edge adapts its consensus step size during the run. False: all edges use
     * `gamma`. */
    bool gamma_auto;
    /* Consensus step size. 0 if `gamma_auto`. */
    double gamma;
    /* Policy that limits how many rounds a peer may be ahead of its neighbours. */
    enum run_policy policy;
    enum run_overlap overlap;
    /* Seed of all random choices of the run. */
    uint64_t seed;
    /* Number of rounds of training. 0: not known yet, because the user gave epochs, which are
     * converted to rounds later. */
    uint64_t rounds;
    /* Momentum of the central average model. Only the mixer sma uses it. */
    double centre_momentum;
    /* Number of members that must be present before the first round starts. */
    uint32_t min_peers;
    /* Number of local steps per round. 0: auto, so that each peer's number depends on its speed,
     * and the average is run_steps(). */
    uint32_t local_steps;
    /* Number of rounds at the beginning in which each peer does only one local step (post-local
     * SGD). */
    uint64_t post_local;
    /* Number of rounds at the end of training in which each peer does only one local step, so that
     * peers exchange after every step. */
    uint64_t one_step_last;
    /* Outer optimiser, such as "nesterov:0.7:0.9" (peer/run/outer.h). "none" or "": none. */
    char outer[RUN_OUTER_MAX];
    /* Consensus distance relative to |x_mean| at which the consensus phase ends. 0: the run has no
     * consensus phase. */
    double final_drift;
    /* Least share of the members that must be connected, 0 to 1. With fewer members, peers do no
     * local steps. */
    double quorum;
    /* Trainer that adds its keys to the core keys (NULL: none), and `own`, the memory of the struct
     * with the trainer's values. Only the trainer knows the type of that struct. */
    const struct run_trainer *trainer;
    alignas(max_align_t) unsigned char own[RUN_OWN_MAX];
};

/* Returns the number of local steps of a round that is not shortened to one step by `post_local` or
 * `one_step_last`. With --local-steps auto: the average over all peers. */
static inline uint32_t run_steps(const struct run *r)
{
    return r->local_steps > 0 ? r->local_steps : RUN_STEPS_AUTO;
}

/* Returns the largest number of local steps that any peer does in one round. */
static inline uint32_t run_steps_most(const struct run *r)
{
    return r->local_steps > 0 ? r->local_steps : RUN_STEPS_AUTO * RUN_STEPS_MORE;
}

/* Returns the first of the last `one_step_last` rounds of training. UINT64_MAX: there are none. */
static inline uint64_t run_one_step_from(const struct run *r)
{
    return r->one_step_last == 0          ? UINT64_MAX
           : r->one_step_last < r->rounds ? r->rounds - r->one_step_last
                                          : 0;
}

/* Returns the number of local steps in round `round`, which counts from 0. With --local-steps auto:
 * the average over all peers. */
static inline uint32_t run_steps_at(const struct run *r, uint64_t round)
{
    return round < r->post_local || round >= run_one_step_from(r) ? 1 : run_steps(r);
}

/* Returns the total number of local steps in the rounds 0 to `round` - 1. With --local-steps auto:
 * the average over all peers. */
static inline uint64_t run_steps_before(const struct run *r, uint64_t round)
{
    uint64_t from = run_one_step_from(r);
    uint64_t first = round < r->post_local ? round : r->post_local;
    uint64_t last = round > from ? round - from : 0;
    return first + (round - first - last) * run_steps(r) + last;
}

/* Returns the length of the run in full rounds: its total number of local steps, divided by the
 * number of local steps of a full round (run_steps()). The result is less than the number of rounds
 * if some rounds are shortened to one local step. */
static inline double run_full_rounds(const struct run *r)
{
    return (double)run_steps_before(r, r->rounds) / run_steps(r);
}

/* Returns whether the run ends with a certificate: it has a consensus phase and no --byzantine. With
 * --byzantine a coordinator could lie. */
static inline bool run_has_certificate(const struct run *r)
{
    return r->final_drift > 0 && r->tolerate == 0;
}

/* Returns by how many rounds a peer may be ahead of its slowest neighbour when it starts its next
 * round. 0: no limit (policy async). The result is 1 for sync, and N for ssp:N. Source for stale
 * synchronous training: Ho et al. 2013, "More Effective Distributed ML via a Stale Synchronous
 * Parallel Parameter Server". */
static inline uint32_t run_staleness(const struct run *r)
{
    return r->policy == RUN_SYNC    ? 1
           : r->policy == RUN_ASYNC ? 0
                                    : (uint32_t)r->policy - RUN_SSP + 1;
}

/* Returns whether the mixer sends updates of models, which all receivers add, or reduces models
 * with a collective or a server: average, allreduce, sma and ps. */
bool run_sends_updates(const struct run *r);

/* Returns whether an exchange in training may move models past the mean of the neighbours. This is
 * possible only with a fixed consensus step size above 1. */
bool run_may_overshoot(const struct run *r);

/* Checks that every round of training mixes the models with nearly the same matrix. Returns NULL if
 * so. Otherwise returns the key that would have to change, and its required value, as text for an
 * error message. The matrix is nearly constant if the edges and the delay of an exchange are
 * constant, and the codec leaves out very little. Faults, and members that join or leave, are not
 * considered. */
const char *run_mixing_varies(const struct run *r);
/* Checks that peers of the run can exchange a second vector of the trainer, such as a momentum, in
 * addition to the model (companion vector, nn/train/trainer.h). Returns NULL if so. Otherwise
 * returns the key that would have to change, and its required value, as text for an error
 * message. */
const char *run_bars_companion(const struct run *r);
/* Checks that the key `compress` names a codec that leaves out at most 10 % of a delta's squared
 * norm (codec_precise_for_rounds()). The value auto fails the check. Returns NULL, or the required
 * value of the key, as text for an error message. */
const char *run_leaves_out(const struct run *r);

/* Returns the topology of the consensus phase. */
static inline const char *run_final_topology(const struct run *r)
{
    bool same = r->final_topology[0] == '\0' || strcmp(r->final_topology, RUN_SAME) == 0;
    return same ? r->topology : r->final_topology;
}

/* Returns whether the topology of the consensus phase differs from the topology of training. */
static inline bool run_changes_graph(const struct run *r)
{
    return strcmp(run_final_topology(r), r->topology) != 0;
}

/* Type of a run key's value: text, whole number, real number, or one of several words. */
enum run_kind { RUN_TEXT, RUN_UINT, RUN_REAL, RUN_CHOICE };

struct run_flags;

/* Definition of one run key: a row in the key table of the core or of a trainer. */
struct run_key
{
    /* Name of the key in the run description. Also the name of its flag, without "--". */
    const char *name;
    enum run_kind kind;
    /* Default value, spelled as a user would give it. A value below `min`, such as "0" for rounds,
     * means that the key has no default. */
    const char *fallback;
    /* Help text of the flag, as a phrase without a full stop. */
    const char *help;
    /* For RUN_CHOICE: the allowed words as "a|b|c", in the order of the field's values 0, 1, 2. */
    const char *choices;
    /* Word such as "auto" that is allowed instead of a normal value. NULL: none. */
    const char *word;
    uint64_t min, max; /* For a key of type RUN_UINT: smallest and largest allowed value. */
    double low, high;  /* For a key of type RUN_REAL: smallest and largest allowed value. */
    /* Offset and size in bytes of the key's field in struct run. Set by the macro RUN_FIELD or
     * RUN_OWN_FIELD. */
    size_t at, size;

    /* For RUN_TEXT: checks `value` and writes its canonical text to `out`. Returns 0, or -EINVAL
     * with a message in `error`. */
    int (*canonical)(const char *value, char out[RUN_VALUE_MAX], char error[RUN_ERROR_MAX]);

    /* The following fields are optional: in most rows of a key table they are NULL or false. */

    /* Former name of the key, which flags may still use. The run description always uses the former
     * name, so that the description does not change between versions. NULL: none. */
    const char *former;
    /* Returns a default that depends on other flags. If this function is set, `fallback` is not
     * used as the default. */
    const char *(*fallback_by)(const struct run_flags *f);
    /* Replaces `word` ("auto") in `value` by the value that the word means in the run `r` for a
     * peer with the flags `f`. In `r`, all keys whose value is not such a word already have their
     * final values. NULL: the word is not replaced. The run then stores it as text, or as 0 for the
     * keys gamma and local-steps. */
    int (*resolve)(const struct run *r, const struct run_flags *f, char value[RUN_VALUE_MAX],
                   char error[RUN_ERROR_MAX]);
    /* Returns whether a value is complete: it determines everything that all peers must know. The
     * data kind "csv" is not complete, because only the files determine the shape of the samples. A
     * run is fixed once the values of all keys are complete. NULL: every value of this key is
     * complete. */
    bool (*fixed)(const char *value);
    /* Returns whether the value that a user gave, which may be `word`, is compatible with the value
     * in a cluster's run. NULL: the two texts must be equal. */
    bool (*agrees)(const char *given, const char *of_run);
    /* True for a value that may differ between peers, such as a path. A user who gives only such
     * flags accepts any run. */
    bool is_per_peer;

    /* Returns whether the key has no effect in the run `r`. Such a key is refused if the user gives
     * it. Its canonical value is the default, so that equal runs have equal texts. NULL: the key
     * always has an effect. */
    bool (*useless)(const struct run *r);
    const char *of; /* Name of the other key whose value decides whether this key has an effect. */
    /* Error message if the key is given although it has no effect. */
    const char *why;
};

/* Initialises `at` and `size` in a row of a key table, for the field `f` of struct run. */
#define RUN_FIELD(f) .at = offsetof(struct run, f), .size = sizeof(((struct run *)0)->f)

/* Initialises `at` and `size` in a row of a trainer's key table, for the field `f` of `type`, the
 * struct with the trainer's values. */
#define RUN_OWN_FIELD(type, f)                                                                     \
    .at = offsetof(struct run, own) + offsetof(type, f), .size = sizeof(((type *)0)->f)

/* Run keys that a trainer adds to the core keys. The values of these keys are in a struct of at
 * most RUN_OWN_MAX bytes, stored in run.own. The trainer has a function of its own to read them. */
struct run_trainer
{
    /* Table of the trainer's keys, terminated by name == NULL. The names must differ from the names
     * of the core keys. */
    const struct run_key *keys;
    /* Checks the trainer's keys for combinations of values that are not allowed. Returns 0, or
     * -EINVAL with a message. NULL: no check. */
    int (*check)(const struct run *r, char error[RUN_ERROR_MAX]);
    /* Returns whether the default of the key `compress` must be a precise codec, because the
     * trainer refuses auto with these flags. NULL: never. */
    bool (*needs_precise_codec)(const struct run_flags *f);
};

/* Returns the run key with index `place`. The keys of the trainer `t` (may be NULL) come first,
 * then the core keys. Returns NULL if `place` is too large. */
const struct run_key *run_key_at(const struct run_trainer *t, size_t place);

/* Returns whether the key has a default. A `fallback` below the smallest allowed value, such as 0
 * rounds, means that there is no default. */
bool run_key_has_default(const struct run_key *key);

/* Values of the run flags on the command line. When a peer joins a cluster, the given flags must
 * agree with the cluster's run, and the run determines all other values. `trainer` must be set
 * before the first value, because it decides which keys exist. */
struct run_flags
{
    /* Trainer whose keys may be given in addition to the core keys. NULL: only core keys may be
     * given. */
    const struct run_trainer *trainer;
    /* True: the peer has data of its own (--shard own), which may differ from the data of other
     * peers. Only the meaning of --momentum-kind auto depends on this. */
    bool own_data;
    /* Canonical value of each key, indexed as in run_key_at(). "": the flag was not given. */
    char value[RUN_KEYS_MAX][RUN_VALUE_MAX];
};

/* Sets the value of the flag `name`. A second call for the same flag replaces the value. The value
 * is stored as canonical text; for data ("mnist:DIR") only the kind "mnist" is stored. Returns 0,
 * or -EINVAL with a message that names the flag, the value found and the value expected. On failure
 * `f` is unchanged. */
__attribute__((warn_unused_result)) int run_flags_set(struct run_flags *f, const char *name,
                                                      const char *value, char error[RUN_ERROR_MAX]);
/* Returns whether any flag was given that must have the same value on all peers. `data` does not
 * count (run_key.is_per_peer). */
bool run_flags_any(const struct run_flags *f);

/* Returns the canonical value of the flag `name`, or "" if the flag was not given. Asserts that a
 * key of this name exists. */
const char *run_flags_value(const struct run_flags *f, const char *name);

/* Returns true if the only fault of the flags is a flag that has no effect because another flag is
 * missing. Example: --collective without --mixer. A new run cannot begin with these flags. The peer
 * may still join a cluster whose run has the right value of the missing flag. If the result is
 * true, `why` receives the error message of run_from_flags(). */
bool run_flags_orphan(const struct run_flags *f, char why[RUN_ERROR_MAX]);

/* Makes a run from flags: fills in defaults, and replaces words such as "auto" by values. A
 * given flag that has no effect in the run is an error. Two values may remain unknown: `rounds`,
 * which is then 0, and the shape of the data, if only the data files determine it
 * (run_key.fixed). The command line then computes the rounds from the epochs, reads the files,
 * sets the missing flags, and calls this function again, because warm-up depends on the rounds.
 * Returns 0, or -EINVAL or -ENOMEM with a message. On failure `*r` is unchanged. */
__attribute__((warn_unused_result)) int run_from_flags(struct run *r, const struct run_flags *f,
                                                       char error[RUN_ERROR_MAX]);

/* Returns whether the run is complete: the number of rounds is known, and all values are complete
 * (run_key.fixed). */
bool run_is_fixed(const struct run *r);

/* Writes the run description in canonical form: NUL-terminated, at most WIRE_RUN_MAX bytes without
 * the NUL. Returns its length. Asserts that the run is complete (run_is_fixed()). */
size_t run_text(const struct run *r, char out[WIRE_RUN_MAX + 1]);
/* Parses a run description, which may come from another peer and is not trusted. Accepts only the
 * canonical text of a complete run with exactly the keys of the core and of the trainer `t`. Opens
 * no file. Returns 0, or -EINVAL or -ENOMEM with a message. On failure `*r` is unchanged. */
__attribute__((warn_unused_result)) int run_from_text(struct run *r, const struct run_trainer *t,
                                                      const char *text, size_t n,
                                                      char error[RUN_ERROR_MAX]);

/* Returns whether `text`, which run_from_text() has refused, is a run description made for another
 * trainer than `t`. Such a text has all core keys, but other keys in place of the keys of `t`. On
 * success, `found` is set to the first key that `t` does not have, and `*expected` to the first key
 * of `t`. */
bool run_text_is_of_other_trainer(const struct run_trainer *t, const char *text, size_t n,
                                  char found[RUN_KEY_MAX + 1], const char **expected);

/* Checks the given flags against a run of the same trainer, such as the run of a cluster that the
 * peer joins. An incomplete value, such as data kind csv, agrees with each value that completes it
 * (run_key.agrees). Returns 0, or -EINVAL with a message that names the flag and both values. Also
 * refuses a given flag that has no effect in the run; the message then names the key on which this
 * depends. */
__attribute__((warn_unused_result)) int run_check_flags(const struct run *r,
                                                        const struct run_flags *f,
                                                        char error[RUN_ERROR_MAX]);

/* Makes a copy of the run `*r` in which the given flags replace the old values. The flags must be
 * for the trainer of the run. Returns 0, or a negative errno with a message. On failure `*out` is
 * unchanged. */
__attribute__((warn_unused_result)) int run_with_flags(struct run *out, const struct run *r,
                                                       const struct run_flags *f,
                                                       char error[RUN_ERROR_MAX]);

#endif
