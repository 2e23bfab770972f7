/* peer/run/run.h -- the run: everything that must agree across peers.
 *
 * A run is a set of `key=value` lines; its canonical text has every key once,
 * sorted, in canonical spelling.
 * Peers started with the same flags have the same run before they have met.
 *
 *   core keys (run_core_keys[])      topology, compress, mixer, rounds, seed, ...
 *   the trainer's (run_trainer.keys) of SGD: model, data, batch, lr, ...
 *
 * The core is what gossip needs and what every training has; how it trains is
 * the trainer's to say. Nothing here knows what a trainer's keys mean: it brings
 * a table of them, and the command line, the canonical text, the check of a
 * received text and of flags against it read both tables alike. A row holds all
 * that a key is: its name (= the flag's), kind, default, help and field, and
 * what it goes with.
 */
#ifndef PEER_RUN_RUN_H
#define PEER_RUN_RUN_H

#include "gossip/wire/wire.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* --compress auto: precision by drift (gossip/exchange/ladder.h). */
#define RUN_AUTO "auto"
/* --final-topology: the last phase has the graph of training. */
#define RUN_SAME "same"

/* From RUN_SSP on: stale synchronous, with a staleness of 1, 2, ... (run_staleness()). */
enum run_policy { RUN_SYNC, RUN_ASYNC, RUN_SSP };

enum {
    RUN_VALUE_MAX = 1400, /* Bytes of a value, with the NUL: a topology may carry its edges. */
    RUN_SPEC_MAX = 256,   /* Bytes of any other canonical value. */
    RUN_KEY_MAX = 32,     /* Bytes of a key in a text, more than any has. */
    RUN_KEYS_MAX = 48,    /* Keys of the core and of one trainer together. */
    RUN_OWN_MAX = 2304,   /* Bytes of a trainer's values. */
    RUN_STEPS_AUTO = 10,  /* --local-steps auto: those of the average peer, */
    RUN_STEPS_MORE = 4,   /* and nobody does more than so many times these. */
    RUN_ERROR_MAX = 320
};

struct run_trainer;

/* When a round's delta goes out (peer/node/job.h). */
enum run_overlap {
    RUN_OVERLAP_NONE,  /* After the local steps, */
    RUN_OVERLAP_ROUND, /* before them, */
    RUN_OVERLAP_LAYER  /* or as the last one is done with the layers, one by one. */
};

/* The parsed form. Specs keep their canonical text. */
struct run
{
    char compress[RUN_SPEC_MAX];       /* A spec, or RUN_AUTO: the ladder's. */
    double drift_target;               /* What the ladder keeps to (gossip/exchange/ladder.h). */
    char final_compress[RUN_SPEC_MAX]; /* A spec: "auto" is resolved. */
    char topology[RUN_VALUE_MAX];
    char final_topology[RUN_VALUE_MAX];  /* The last phase's, or RUN_SAME. */
    uint32_t mixer;                      /* Place in mixer_all[] (gossip/mixers/mixer.h). */
    uint32_t collective;                 /* With allreduce: place in collective_all[]. */
    bool error_feedback, factor_masking; /* Mixers that send updates ask; else true, false. */
    uint32_t tolerate; /* So many lying neighbours of a peer are held back; 0: none. */
    double pull; /* With tolerate: neighbours pull by less than so many own steps; 0: no limit. */
    bool gamma_auto;
    double gamma;
    enum run_policy policy;
    enum run_overlap overlap;
    uint64_t seed;
    uint64_t rounds; /* 0: not known yet. Epochs are resolved to rounds before a run is fixed. */
    double centre_momentum; /* With sma. */
    uint32_t min_peers;
    uint32_t local_steps; /* Between exchanges; 0: by speed, run_steps() on the average. */
    uint64_t post_local;  /* Rounds of one local step, before those of local_steps. */
    double final_drift;   /* Target Xi/|mean| of the last phase; 0: no last phase. */
    double quorum;        /* Share of the members below which peers do no local rounds. */
    /* Whose keys it has besides the core's, or NULL for none; and their values, a
     * struct that the trainer knows. */
    const struct run_trainer *trainer;
    alignas(max_align_t) unsigned char own[RUN_OWN_MAX];
};

/* Local steps of a round: of each peer, or of the average one where each does what it can. */
static inline uint32_t run_steps(const struct run *r)
{
    return r->local_steps > 0 ? r->local_steps : RUN_STEPS_AUTO;
}

/* The most that a peer does of them. */
static inline uint32_t run_steps_most(const struct run *r)
{
    return r->local_steps > 0 ? r->local_steps : RUN_STEPS_AUTO * RUN_STEPS_MORE;
}

/* Local steps of this round, and of all rounds before it; of the average peer where each does what it can. */
static inline uint32_t run_steps_at(const struct run *r, uint64_t round)
{
    return round < r->post_local ? 1 : run_steps(r);
}

static inline uint64_t run_steps_before(const struct run *r, uint64_t round)
{
    return round < r->post_local ? round : r->post_local + (round - r->post_local) * run_steps(r);
}

/* How many rounds a peer may be ahead of its slowest neighbour before it does the next: one rule
 * for all policies. 0: as many as it likes. (SSP: Ho et al. 2013, "More Effective Distributed ML
 * via a Stale Synchronous Parallel Parameter Server".) */
static inline uint32_t run_staleness(const struct run *r)
{
    return r->policy == RUN_SYNC    ? 1
           : r->policy == RUN_ASYNC ? 0
                                    : (uint32_t)r->policy - RUN_SSP + 1;
}

/* May an exchange of training go beyond the mean of the neighbours? */
bool run_oversteps(const struct run *r);

/* The graph of the last phase. */
static inline const char *run_final_topology(const struct run *r)
{
    bool same = r->final_topology[0] == '\0' || strcmp(r->final_topology, RUN_SAME) == 0;
    return same ? r->topology : r->final_topology;
}

/* Has the last phase another graph than training? */
static inline bool run_changes_graph(const struct run *r)
{
    return strcmp(run_final_topology(r), r->topology) != 0;
}

enum run_kind { RUN_TEXT, RUN_UINT, RUN_REAL, RUN_CHOICE };

struct run_flags;

struct run_key
{
    const char *name; /* The flag without "--", and the key of the text. */
    enum run_kind kind;
    const char *fallback; /* Default value as a user would give it; "0" rounds: none. */
    const char *help;
    const char *choices; /* RUN_CHOICE: "a|b|c", in the field's order. */
    const char *word;    /* A word that stands for a value: "auto", or NULL. */
    uint64_t min, max;   /* RUN_UINT, both included. */
    double low, high;    /* RUN_REAL, both included. */
    size_t at, size;     /* The field in struct run: RUN_FIELD or RUN_OWN_FIELD. */

    /* RUN_TEXT: check and write the canonical text. */
    int (*canonical)(const char *value, char out[RUN_VALUE_MAX], char error[RUN_ERROR_MAX]);

    /* The rest may be NULL, as in most rows. */

    /* Former name of the key. Flags, and texts of runs that older versions wrote, may use it. */
    const char *former;

    /* A default that depends on other flags, in place of `fallback`. */
    const char *(*fallback_by)(const struct run_flags *f);
    /* Write what `word` stands for in this run, whose keys without words are all
     * there. NULL: the word is a value like others; only a RUN_TEXT field can hold
     * one, and gamma. */
    int (*resolve)(const struct run *r, char value[RUN_VALUE_MAX], char error[RUN_ERROR_MAX]);
    /* Says the value all that peers must know? A run is fixed once every key's
     * does. NULL: each does. */
    bool (*fixed)(const char *value);
    /* Does what was given agree with a run's value? NULL: equal texts do. */
    bool (*agrees)(const char *given, const char *of_run);
    /* Every peer gives its own (a path), so that giving it says nothing of the run. */
    bool own_place;

    /* A key that says something of some runs only: elsewhere it has its fallback (in
     * canonical spelling, no word), so that there is one text, and may not be given. */
    bool (*useless)(const struct run *r);
    const char *of;  /* The key that decides it. */
    const char *why; /* What is said where it is given in vain. */
};

#define RUN_FIELD(f) .at = offsetof(struct run, f), .size = sizeof(((struct run *)0)->f)

/* A field of `type`, the struct of a trainer's values. */
#define RUN_OWN_FIELD(type, f)                                                                     \
    .at = offsetof(struct run, own) + offsetof(type, f), .size = sizeof(((type *)0)->f)

/* What a trainer brings to a run. Its values are a struct in run.own, of at most
 * RUN_OWN_MAX bytes, which it reads through a function of its own. */
struct run_trainer
{
    const struct run_key *keys; /* Ends with name == NULL; no name is the core's. */
    /* Refuse, with a sentence, what one value rules out in another: -EINVAL, else
     * 0. May be NULL. */
    int (*check)(const struct run *r, char error[RUN_ERROR_MAX]);
};

/* The key at `place`: the trainer's (which may be NULL) come first, then the
 * core's. NULL behind the last. */
const struct run_key *run_key_at(const struct run_trainer *t, size_t place);

/* False where the fallback stands for none ("0" rounds): below what may be given. */
bool run_key_has_default(const struct run_key *key);

/* Values as given on the command line, by place (run_key_at()); "" = not given.
 * What is given explicitly must agree with a run taken from the cluster; what is
 * not is filled in. `trainer` is set before the first value, and says whose keys
 * a run of these flags, or one that they join, has. */
struct run_flags
{
    const struct run_trainer *trainer;       /* Or NULL: the core's keys only. */
    char value[RUN_KEYS_MAX][RUN_VALUE_MAX]; /* Canonical. */
};

/* Give flag `name` a value; a later value replaces an earlier one. 0, or
 * -EINVAL with one sentence that names the flag, what was found and what was
 * expected; then nothing is changed. What is kept is the canonical value: of
 * data's ("mnist:DIR") the kind only. */
__attribute__((warn_unused_result)) int run_flags_set(struct run_flags *f, const char *name,
                                                      const char *value, char error[RUN_ERROR_MAX]);
/* Is any given that says something of the run? `data` alone does not
 * (run_key.own_place). */
bool run_flags_any(const struct run_flags *f);

/* The canonical value of a flag, "" where it was not given. A name that is no
 * key is a bug of ours (assert). */
const char *run_flags_value(const struct run_flags *f, const char *name);

/* Is there a flag that goes only with certain values of another key, which was
 * not given (--drift-target, but no --compress)? No run can begin with it, but
 * one that is there already may have use for it. Then `why` gets the sentence with
 * which run_from_flags() refuses it. False too where another flag is a mistake in
 * any run. */
bool run_flags_orphan(const struct run_flags *f, char why[RUN_ERROR_MAX]);

/* Fill in defaults, resolve "auto"s, and parse; a flag that the run has no use
 * for (of another mixer or optimiser, a norm for a model that has none) is
 * refused. Rounds may be absent: then r->rounds is 0 and *r is good for reading
 * batch and local steps, from which the command line turns epochs into rounds;
 * and a key may be open (run_key.fixed: of data an open kind, which the files
 * fix). The command line sets the flags and calls again (warmup depends on the
 * rounds). Returns 0, or -EINVAL or -ENOMEM with a sentence; then *r is
 * unchanged. */
__attribute__((warn_unused_result)) int run_from_flags(struct run *r, const struct run_flags *f,
                                                       char error[RUN_ERROR_MAX]);

/* Are its rounds known, and is no key open? */
bool run_is_fixed(const struct run *r);

/* Canonical text (NUL-terminated, at most WIRE_RUN_MAX bytes), and back.
 * run_text() wants a fixed run: rounds >= 1, no key open. The text
 * may come from a peer: it is trusted in nothing, no file is opened for it, and
 * only a canonical text of a fixed run, with the keys of the core and of trainer
 * `t` and no others, is accepted; on failure *r is unchanged. */
size_t run_text(const struct run *r, char out[WIRE_RUN_MAX + 1]);
__attribute__((warn_unused_result)) int run_from_text(struct run *r, const struct run_trainer *t,
                                                      const char *text, size_t n,
                                                      char error[RUN_ERROR_MAX]);

/* Has a text that run_from_text() refuses the form of a run, with every key of the core, and those of
 * another trainer than `t` in the place of its own? found: the first key that `t` does not have;
 * expected: its first one. */
bool run_other_kind(const struct run_trainer *t, const char *text, size_t n,
                    char found[RUN_KEY_MAX + 1], const char **expected);

/* Do explicitly given flags contradict this run, of the same trainer, or has it
 * no use for one? An open value agrees with what it may become (run_key.agrees).
 * -EINVAL with a sentence that names the flag and both values, or what the run
 * has in the place of what the flag goes with. */
__attribute__((warn_unused_result)) int run_check_flags(const struct run *r,
                                                        const struct run_flags *f,
                                                        char error[RUN_ERROR_MAX]);

/* The run that these flags, of the same trainer, make of *r: what is not given is as there. 0, or
 * -EINVAL with a sentence; then *out is unchanged. */
__attribute__((warn_unused_result)) int run_with_flags(struct run *out, const struct run *r,
                                                       const struct run_flags *f,
                                                       char error[RUN_ERROR_MAX]);

#endif
