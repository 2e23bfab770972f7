/* peer/run/run.h -- the run: everything that must agree across peers.
 *
 * A run is a set of `key=value` lines; its canonical text has every key once,
 * sorted, in canonical spelling, and its id is the BLAKE2b-256 of that text.
 * Peers started with the same flags have the same run before they have met.
 *
 * One table, run_keys[], holds each key's name (= the flag's), its kind, its
 * default and its help: the command line, the canonical text and the check of
 * a received text all read it.
 */
#ifndef PEER_RUN_RUN_H
#define PEER_RUN_RUN_H

#include "gossip/wire/wire.h"
#include "nn/data/augment.h"
#include "nn/models/model.h"
#include "nn/train/optimiser.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --compress auto: precision by drift (gossip/exchange/ladder.h). */
#define RUN_AUTO "auto"

enum run_policy { RUN_SYNC, RUN_ASYNC };
enum run_schedule { RUN_COSINE, RUN_STEP, RUN_CONSTANT };

enum {
    RUN_VALUE_MAX = 1400, /* Bytes of a value, with the NUL: a topology may carry its edges. */
    RUN_SPEC_MAX = 256,   /* Of any other canonical value. */
    RUN_KEYS_MAX = 32,
    RUN_INIT_MAX = 17, /* "none" or 16 hex digits, with the NUL. */
    RUN_ID_BYTES = 32,
    RUN_ERROR_MAX = 320
};

/* The parsed form. Specs keep their canonical text. */
struct run
{
    char model[RUN_SPEC_MAX];
    enum model_norm norm; /* Of models without: MODEL_BATCH_NORM. */
    /* Where the initial model comes from: "none", the seed; else a file, and
     * this is vec_hash() of what it holds, the same at every peer. */
    char init[RUN_INIT_MAX];
    /* The kind only ("mnist"), never a path: kind fixes shape and
     * normalisation. Before a run is fixed it may be an open kind ("csv"). */
    char data[RUN_SPEC_MAX];
    char augment[AUGMENT_SPEC_MAX];
    char compress[RUN_SPEC_MAX]; /* A spec, or RUN_AUTO: the ladder's. */
    double drift_target;         /* Of the ladder (gossip/exchange/ladder.h), else the default. */
    char final_compress[RUN_SPEC_MAX]; /* A spec: "auto" is resolved. */
    char topology[RUN_VALUE_MAX];
    uint32_t mixer;                      /* Place in mixer_all[] (gossip/mixers/mixer.h). */
    bool error_feedback, factor_masking; /* Of mixers that send updates; else true, false. */
    bool gamma_auto;
    double gamma;
    enum run_policy policy;
    uint64_t seed;
    uint64_t rounds; /* 0: not known yet. Epochs are resolved to rounds before a run is fixed. */
    uint32_t min_peers;
    uint32_t batch, local_steps;
    enum optimiser_kind optimiser;
    double lr, momentum, weight_decay; /* Momentum of Adam: beta1. */
    double beta2;                      /* Of Adam; else the default. */
    bool nesterov;                     /* Of SGD; else true. */
    double label_smoothing;
    double clip;     /* Of the sum of min-peers gradients; 0: none. */
    uint64_t warmup; /* Rounds. */
    enum run_schedule schedule;
    double final_drift;      /* Target Xi/|mean| of the last phase; 0: no last phase. */
    char skew[RUN_SPEC_MAX]; /* How samples fall to shards (nn/shards/split.h). */
};

enum run_kind { RUN_TEXT, RUN_UINT, RUN_REAL, RUN_CHOICE };

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
    size_t at, size;     /* The field in struct run. */
    /* RUN_TEXT: check and write the canonical text. */
    int (*canonical)(const char *value, char out[RUN_VALUE_MAX], char error[RUN_ERROR_MAX]);
};
extern const struct run_key run_keys[]; /* Ends with name == NULL. */

/* Values as given on the command line, by place in run_keys[]; "" = not
 * given. What is given explicitly must agree with a run taken from the
 * cluster; what is not is filled in. */
struct run_flags
{
    char value[RUN_KEYS_MAX][RUN_VALUE_MAX]; /* Canonical. */
};

/* Give flag `name` a value; a later value replaces an earlier one. 0, or
 * -EINVAL with one sentence that names the flag, what was found and what was
 * expected; then nothing is changed. Of data's value ("mnist:DIR") only the
 * kind is kept. */
__attribute__((warn_unused_result)) int run_flags_set(struct run_flags *f, const char *name,
                                                      const char *value, char error[RUN_ERROR_MAX]);
/* Is any given that says something of the run? `data` alone does not: every
 * peer needs its own path. */
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
 * and data may be an open kind, which the files fix. It sets the flags and
 * calls again (warmup depends on it). Returns 0, or -EINVAL or -ENOMEM with a
 * sentence; then *r is unchanged. */
__attribute__((warn_unused_result)) int run_from_flags(struct run *r, const struct run_flags *f,
                                                       char error[RUN_ERROR_MAX]);

/* Canonical text (NUL-terminated, at most WIRE_RUN_MAX bytes), and back.
 * run_text() and run_id() want a fixed run (rounds >= 1, data of a fixed kind).
 * The text may come from a peer: it is trusted in nothing, no file is opened
 * for it, and only a canonical text of a fixed run is accepted; on failure *r
 * is unchanged. */
size_t run_text(const struct run *r, char out[WIRE_RUN_MAX + 1]);
__attribute__((warn_unused_result)) int run_from_text(struct run *r, const char *text, size_t n,
                                                      char error[RUN_ERROR_MAX]);
void run_id(const struct run *r, uint8_t id[RUN_ID_BYTES]);

/* Do explicitly given flags contradict this run, or has it no use for one? An
 * open kind of data agrees with each of its fixed ones. -EINVAL with a sentence
 * that names the flag and both values, or what the run has in the place of what
 * the flag goes with. */
__attribute__((warn_unused_result)) int run_check_flags(const struct run *r,
                                                        const struct run_flags *f,
                                                        char error[RUN_ERROR_MAX]);

#endif
