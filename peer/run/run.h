/* peer/run/run.h -- the run: everything that all peers must agree on, and its text form, the run
 * description.
 *
 * A run description is a text of `key=value` lines. In canonical form every key occurs once, sorted
 * by name, with one spelling per value. Peers that are started with the same flags therefore have
 * the same run before they connect.
 *
 *   core keys (run_core_keys[])      topology, compress, mixer, rounds, seed, ...
 *   trainer keys (run_trainer.keys)  for SGD: model, data, batch, lr, ...
 *
 * The core has the keys that gossip and every kind of training need. A trainer adds a table of its
 * own keys, whose meaning this folder does not know. Command line, canonical text and checks use
 * both tables in the same way. A row of a table holds everything about a key: name (also the name
 * of the flag), type, default, help, the field of the value, and its dependencies on other keys.
 */
#ifndef PEER_RUN_RUN_H
#define PEER_RUN_RUN_H

#include "gossip/wire/wire.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Value of --compress auto: the codec is chosen by the consensus distance
 * (gossip/exchange/codec_levels.h). */
#define RUN_AUTO "auto"
/* Value of --final-topology: the consensus phase uses the graph of training. */
#define RUN_SAME "same"

/* When a peer waits for its neighbours. Values from RUN_SSP on are stale synchronous with a
 * staleness of 1, 2, ... (run_staleness()). */
enum run_policy { RUN_SYNC, RUN_ASYNC, RUN_SSP };

enum {
    /* Size of a value with the NUL, in bytes. A topology may list its edges. */
    RUN_VALUE_MAX = 1400,
    /* Size of any other canonical text value with the NUL, in bytes. */
    RUN_SPEC_MAX = 256,
    RUN_KEY_MAX = 32, /* Longest key in a run description, in bytes. */
    /* Largest number of keys of the core and one trainer together. */
    RUN_KEYS_MAX = 48,
    RUN_OWN_MAX = 2304, /* Size of a trainer's values, in bytes. */
    /* --local-steps auto: local steps per round of an average peer. */
    RUN_STEPS_AUTO = 10,
    /* --local-steps auto: a peer does at most this multiple of RUN_STEPS_AUTO. */
    RUN_STEPS_MORE = 4,
    RUN_ERROR_MAX = 320
};

struct run_trainer;

/* When the delta of a round is sent relative to the local steps of that round (peer/node/job.h). */
enum run_overlap {
    RUN_OVERLAP_NONE,  /* After the local steps. */
    RUN_OVERLAP_ROUND, /* Before the local steps. */
    /* Layer by layer during the last local step. */
    RUN_OVERLAP_LAYER
};

/* A parsed run. Text values are in canonical form. */
struct run
{
    /* Codec of training, or RUN_AUTO: chosen by the consensus distance. */
    char compress[RUN_SPEC_MAX];
    /* Consensus distance that RUN_AUTO aims at, as a multiple of the local update of a round
     * (gossip/exchange/codec_levels.h). */
    double drift_target;
    /* Codec of the consensus phase. "auto" is already resolved. */
    char final_compress[RUN_SPEC_MAX];
    /* Graph of training. */
    char topology[RUN_VALUE_MAX];
    /* Graph of the consensus phase, or RUN_SAME. */
    char final_topology[RUN_VALUE_MAX];
    /* Index in mixer_all[] (gossip/mixers/mixer.h). */
    uint32_t mixer;
    /* Index in collective_all[]. Used by the mixers allreduce and sma. */
    uint32_t collective;
    /* Used by mixers that send updates; otherwise true and false. */
    bool error_feedback, factor_masking;
    /* Number of Byzantine neighbours that each peer must tolerate. 0: none. */
    uint32_t tolerate;
    /* With `tolerate`: largest pull of the neighbours on a model in one round, as a multiple of the
     * peer's own local update. 0: no limit. */
    double pull;
    /* True: each edge adapts its consensus step size. False: `gamma` is used. */
    bool gamma_auto;
    /* Consensus step size, if not `gamma_auto`. */
    double gamma;
    /* How far a peer may be ahead of its neighbours. */
    enum run_policy policy;
    enum run_overlap overlap;
    /* Seed of every random choice of the run. */
    uint64_t seed;
    /* Rounds of training. 0: not known yet. Epochs are converted to rounds before a run is
     * fixed. */
    uint64_t rounds;
    /* Momentum of the centre, for the mixer sma. */
    double centre_momentum;
    /* Number of members to wait for before the first round. */
    uint32_t min_peers;
    /* Local steps per round. 0: auto, each peer by its speed, run_steps() on average. */
    uint32_t local_steps;
    /* Number of initial rounds that have one local step (post-local SGD). */
    uint64_t post_local;
    /* Target of the consensus phase: consensus distance relative to |x_mean|. 0: no consensus
     * phase. */
    double final_drift;
    /* Share of the members, 0 to 1, below which peers do no local steps. */
    double quorum;
    /* Trainer that adds its keys to those of the core (NULL: none), and the trainer's values: a
     * struct that only the trainer knows. */
    const struct run_trainer *trainer;
    alignas(max_align_t) unsigned char own[RUN_OWN_MAX];
};

/* Returns the number of local steps of a round. With --local-steps auto: the average over the
 * peers. */
static inline uint32_t run_steps(const struct run *r)
{
    return r->local_steps > 0 ? r->local_steps : RUN_STEPS_AUTO;
}

/* Returns the largest number of local steps that a peer does in a round. */
static inline uint32_t run_steps_most(const struct run *r)
{
    return r->local_steps > 0 ? r->local_steps : RUN_STEPS_AUTO * RUN_STEPS_MORE;
}

/* Returns the number of local steps in round `round`. With --local-steps auto: the average over the
 * peers. */
static inline uint32_t run_steps_at(const struct run *r, uint64_t round)
{
    return round < r->post_local ? 1 : run_steps(r);
}

/* Returns the number of local steps in all rounds before `round`. With --local-steps auto: the
 * average over the peers. */
static inline uint64_t run_steps_before(const struct run *r, uint64_t round)
{
    return round < r->post_local ? round : r->post_local + (round - r->post_local) * run_steps(r);
}

/* Returns by how many rounds a peer may be ahead of its slowest neighbour when it starts the next
 * round. This one rule covers all policies. 0: no limit. Stale synchronous: Ho et al. 2013, "More
 * Effective Distributed ML via a Stale Synchronous Parallel Parameter Server". */
static inline uint32_t run_staleness(const struct run *r)
{
    return r->policy == RUN_SYNC    ? 1
           : r->policy == RUN_ASYNC ? 0
                                    : (uint32_t)r->policy - RUN_SSP + 1;
}

/* Returns whether an exchange of training may overshoot the mean of the neighbours: a fixed `gamma`
 * above 1. */
bool run_may_overshoot(const struct run *r);

/* Returns the graph of the consensus phase. */
static inline const char *run_final_topology(const struct run *r)
{
    bool same = r->final_topology[0] == '\0' || strcmp(r->final_topology, RUN_SAME) == 0;
    return same ? r->topology : r->final_topology;
}

/* Returns whether the consensus phase uses another graph than training. */
static inline bool run_changes_graph(const struct run *r)
{
    return strcmp(run_final_topology(r), r->topology) != 0;
}

/* Type of a key's value. */
enum run_kind { RUN_TEXT, RUN_UINT, RUN_REAL, RUN_CHOICE };

struct run_flags;

/* One key of a run: a row of the core's or of a trainer's table. */
struct run_key
{
    /* Name of the flag without "--", and of the key in the run description. */
    const char *name;
    enum run_kind kind;
    /* Default value as a user would give it. A value below `min` (rounds: "0") means that there is
     * no default. */
    const char *fallback;
    /* Help text of the flag: a phrase without full stop. */
    const char *help;
    const char *choices; /* RUN_CHOICE: "a|b|c", in the order of the field's values. */
    const char *word;    /* Word that stands for a value, such as "auto". NULL: none. */
    uint64_t min, max;   /* RUN_UINT: range, both ends included. */
    double low, high;    /* RUN_REAL: range, both ends included. */
    /* Offset and size of the field in struct run, set by RUN_FIELD or RUN_OWN_FIELD. */
    size_t at, size;

    /* RUN_TEXT: checks a value and writes its canonical text. Returns 0, or -EINVAL with a
     * message. */
    int (*canonical)(const char *value, char out[RUN_VALUE_MAX], char error[RUN_ERROR_MAX]);

    /* The following fields are NULL in most rows. */

    /* Former name of the key. Flags may use it, and the run description does, so that it does not
     * change between versions. */
    const char *former;
    /* Returns a default that depends on other flags. Used instead of `fallback`. */
    const char *(*fallback_by)(const struct run_flags *f);
    /* Writes the value that `word` stands for in this run. All keys without words are already set.
     * NULL: the word is a value like any other, which only RUN_TEXT fields and gamma can hold. */
    int (*resolve)(const struct run *r, char value[RUN_VALUE_MAX], char error[RUN_ERROR_MAX]);
    /* Returns whether a value defines everything that all peers must know. A run is fixed once
     * every key is. NULL: every value does. */
    bool (*fixed)(const char *value);
    /* Returns whether a given value is compatible with the value of a run. NULL: the texts must be
     * equal. */
    bool (*agrees)(const char *given, const char *of_run);
    /* True for a value that each peer gives for itself (a path). Giving such a flag does not
     * request a certain run. */
    bool is_per_peer;

    /* Returns true if the key has no effect in a run. The key may then not be given, and has its
     * default in canonical form, so that equal runs have equal texts. NULL: the key always has an
     * effect. */
    bool (*useless)(const struct run *r);
    const char *of; /* Name of the key that decides whether this key has an effect. */
    /* Error message for a key that was given and has no effect. */
    const char *why;
};

/* Sets `at` and `size` for a field of struct run. */
#define RUN_FIELD(f) .at = offsetof(struct run, f), .size = sizeof(((struct run *)0)->f)

/* Sets `at` and `size` for a field of `type`, the struct of a trainer's values. */
#define RUN_OWN_FIELD(type, f)                                                                     \
    .at = offsetof(struct run, own) + offsetof(type, f), .size = sizeof(((type *)0)->f)

/* Keys that a trainer adds to a run. The trainer's values are a struct of at most RUN_OWN_MAX bytes
 * in run.own, which the trainer reads with a function of its own. */
struct run_trainer
{
    /* Table of keys, ended by name == NULL. No name may be one of the core's. */
    const struct run_key *keys;
    /* Checks the keys for combinations that are not allowed. Returns 0, or -EINVAL with a message.
     * May be NULL. */
    int (*check)(const struct run *r, char error[RUN_ERROR_MAX]);
};

/* Returns the key number `place`: first the keys of the trainer `t` (which may be NULL), then the
 * core's keys. NULL if `place` is past the last key. */
const struct run_key *run_key_at(const struct run_trainer *t, size_t place);

/* Returns false if the key has no default: its `fallback` is below the smallest allowed value, such
 * as 0 rounds. */
bool run_key_has_default(const struct run_key *key);

/* Run flags given on the command line. Flags that were given must agree with the run of a cluster
 * that is joined; the others take their values from that run. `trainer` is set before the first
 * value and decides which keys exist. */
struct run_flags
{
    const struct run_trainer *trainer; /* NULL: core keys only. */
    /* Canonical values, indexed by key number (run_key_at()). "": not given. */
    char value[RUN_KEYS_MAX][RUN_VALUE_MAX];
};

/* Sets flag `name`; a later value replaces an earlier one. The canonical text is stored; of data
 * ("mnist:DIR") only the kind. Returns 0, or -EINVAL with a message that names the flag, what was
 * found and what was expected. On failure `f` is unchanged. */
__attribute__((warn_unused_result)) int run_flags_set(struct run_flags *f, const char *name,
                                                      const char *value, char error[RUN_ERROR_MAX]);
/* Returns whether any flag was given that requests a certain run. `data` does not count
 * (run_key.is_per_peer). */
bool run_flags_any(const struct run_flags *f);

/* Returns the canonical value of a flag, "" if it was not given. Asserts that `name` is a key. */
const char *run_flags_value(const struct run_flags *f, const char *name);

/* Returns whether a flag was given that has an effect only with a certain value of another key, and
 * that key was not given (--drift-target without --compress). No new run can begin with such a
 * flag, but the run of a cluster that is joined may have that value. `why` gets the message with
 * which run_from_flags() refuses the flag. Returns false if another flag is wrong in every run. */
bool run_flags_orphan(const struct run_flags *f, char why[RUN_ERROR_MAX]);

/* Makes a run from flags: fills in defaults and resolves "auto". A flag that has no effect in the
 * run is an error. Two things may still be open: `rounds` is 0 if not given, and a data kind may be
 * one that only the files determine (run_key.fixed). The command line then uses the batch size and
 * local steps of `*r` to convert epochs to rounds, sets the missing flags and calls again, because
 * warmup depends on rounds. Returns 0, or -EINVAL or -ENOMEM with a message. On failure `*r` is
 * unchanged. */
__attribute__((warn_unused_result)) int run_from_flags(struct run *r, const struct run_flags *f,
                                                       char error[RUN_ERROR_MAX]);

/* Returns whether the rounds are known and no key is open. */
bool run_is_fixed(const struct run *r);

/* Writes the run description: canonical text, NUL-terminated, at most WIRE_RUN_MAX bytes. Returns
 * its length. The run must be fixed (asserted). */
size_t run_text(const struct run *r, char out[WIRE_RUN_MAX + 1]);
/* Parses a run description that may come from another peer and is not trusted. Accepts only the
 * canonical text of a fixed run with exactly the keys of the core and of the trainer `t`. Opens no
 * file. Returns 0, or -EINVAL or -ENOMEM with a message. On failure `*r` is unchanged. */
__attribute__((warn_unused_result)) int run_from_text(struct run *r, const struct run_trainer *t,
                                                      const char *text, size_t n,
                                                      char error[RUN_ERROR_MAX]);

/* Returns whether a text that run_from_text() refused is a run description of another trainer: it
 * has all core keys, and other keys instead of the keys of `t`. `found` gets the first key that `t`
 * does not have, `*expected` the first key of `t`. */
bool run_text_is_of_other_trainer(const struct run_trainer *t, const char *text, size_t n,
                                  char found[RUN_KEY_MAX + 1], const char **expected);

/* Checks the given flags against a run of the same trainer, such as the run of the cluster that is
 * joined. An open value agrees with any value it may become (run_key.agrees). Returns 0, or -EINVAL
 * with a message that names the flag and both values. A flag that has no effect in the run is
 * refused too, and the message names the key that decides this. */
__attribute__((warn_unused_result)) int run_check_flags(const struct run *r,
                                                        const struct run_flags *f,
                                                        char error[RUN_ERROR_MAX]);

/* Makes a run from `*r` with the given flags changed, for the same trainer. Returns 0, or a
 * negative errno with a message, in which case `*out` is unchanged. */
__attribute__((warn_unused_result)) int run_with_flags(struct run *out, const struct run *r,
                                                       const struct run_flags *f,
                                                       char error[RUN_ERROR_MAX]);

#endif
