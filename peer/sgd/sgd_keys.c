/* peer/sgd/sgd_keys.c -- table of the SGD trainer's run keys, and which values cannot be combined.
 *
 * Values are checked without opening a file, because the text of a key may come from another peer.
 * Of --data only the kind is part of the run; each peer has its own path. */
#include "peer/sgd/sgd_keys.h"

#include "nn/data/data.h"
#include "nn/shards/shard.h"
#include "nn/train/averaged_momentum.h"
#include "nn/train/decentlam.h"
#include "nn/train/learners.h"
#include "nn/train/quasi_global.h"
#include "nn/train/round_momentum.h"
#include "nn/train/tracking_momentum.h"
#include "peer/run/key.h"
#include "peer/run/outer.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    /* Largest number of warm-up rounds, equal to the largest number of rounds of a run. */
    WARMUP_MAX = 1000000000,
    /* Longest default warm-up, in rounds. The default is a tenth of the run. */
    WARMUP_ROUNDS = 100
};

static_assert(sizeof(struct sgd_values) <= RUN_OWN_MAX, "struct sgd_values does not fit in the "
                                                        "run's space for trainer keys");

const struct sgd_values *sgd_values(const struct run *r)
{
    assert(r->trainer == &sgd_keys);
    return (const void *)r->own;
}

/* ---- Text values. Each is checked by the folder that defines it. ---- */

static int canonical_model(const char *value, char out[RUN_VALUE_MAX], char error[RUN_ERROR_MAX])
{
    char canonical[MODEL_SPEC_MAX], sentence[MODEL_ERROR_MAX];
    static_assert(sizeof canonical <= RUN_SPEC_MAX, "fits");
    if (model_spec(value, canonical, sentence) != 0)
        return run_refuse_as(error, "model", sentence);
    memcpy(out, canonical, strlen(canonical) + 1);
    return 0;
}

/* Canonical form of --data: the kind without the path, because each peer has its own path.
 * "mnist:DIR" becomes "mnist". */
static int canonical_data(const char *value, char out[RUN_VALUE_MAX], char error[RUN_ERROR_MAX])
{
    char kind[DATA_KIND_MAX], sentence[DATA_ERROR_MAX];
    static_assert((int)DATA_KIND_MAX <= (int)RUN_VALUE_MAX, "fits");
    if (data_kind(value, kind, sentence) != 0)
        return run_refuse_as(error, "data", sentence);
    memcpy(out, kind, strlen(kind) + 1);
    return 0;
}

/* Canonical form of --augment: crop+flip and flip+crop become one text. */
static int canonical_augment(const char *value, char out[RUN_VALUE_MAX], char error[RUN_ERROR_MAX])
{
    char sentence[DATA_ERROR_MAX];
    struct augment a;
    if (augment_parse(&a, value, sentence) != 0)
        return run_refuse_as(error, "augment", sentence);
    augment_print(&a, out);
    return 0;
}

/* Checks the key `init`, which is a hash in the run description. The flag --init names a model
 * file, and the command replaces this name by the hash of the file before it calls this
 * function. */
static int canonical_init(const char *value, char out[RUN_VALUE_MAX], char error[RUN_ERROR_MAX])
{
    size_t digits = strspn(value, "0123456789abcdef");
    bool hash = digits == SGD_INIT_MAX - 1 && value[digits] == '\0';
    if (!hash && strcmp(value, "none") != 0)
        return run_refuse(error, "init", value, "none or 16 hexadecimal digits");
    memcpy(out, value, strlen(value) + 1);
    return 0;
}

static int canonical_skew(const char *value, char out[RUN_VALUE_MAX], char error[RUN_ERROR_MAX])
{
    char sentence[DATA_ERROR_MAX];
    struct shard_split split;
    if (shard_split_parse(&split, value, sentence) != 0)
        return run_refuse_as(error, "partition", sentence);
    shard_split_print(&split, out);
    return 0;
}

/* ---- Values that depend on other keys. ---- */

/* Resolves --warmup auto: a tenth of the run, at most WARMUP_ROUNDS. While the number of rounds is not
 * known (0) the result is 0, and the function is called again later. */
static int resolve_warmup(const struct run *r, const struct run_flags *f, char value[RUN_VALUE_MAX],
                          char error[RUN_ERROR_MAX])
{
    uint64_t tenth = (uint64_t)(run_full_rounds(r) / 10);
    uint64_t rounds = tenth < WARMUP_ROUNDS ? tenth : WARMUP_ROUNDS;
    (void)f, (void)error;
    snprintf(value, RUN_VALUE_MAX, "%llu", (unsigned long long)rounds);
    return 0;
}

static bool is_sgd(const struct run *r)
{
    return sgd_values(r)->optimiser == OPTIMISER_SGD;
}

static bool is_adam(const struct run *r)
{
    return sgd_values(r)->optimiser != OPTIMISER_SGD;
}

/* Returns whether --nesterov has no effect: the optimiser is not SGD, or the momentum kind, such as
 * decentlam, adds its momentum outside the optimiser's steps. */
static bool has_no_nesterov(const struct run *r)
{
    return is_adam(r) || momentum_kind_all[sgd_values(r)->momentum_kind]->use == MOMENTUM_IGNORED;
}

static bool has_one_learner(const struct run *r)
{
    return sgd_values(r)->learners == 1;
}

/* Returns whether --norm has no effect, because the model has no normalisation layers. */
static bool lacks_norms(const struct run *r)
{
    return !model_has_norm(sgd_values(r)->model);
}

/* Returns the reason why the run cannot use a momentum kind that learns from the change of the
 * model over a whole round. NULL: the run can use it. Such a change includes the effect of mixing.
 * Therefore all rounds must have the same number of steps. In addition, no exchange may move a
 * model past its neighbours' mean. Otherwise the part of the momentum that comes from mixing may
 * not decay (nn/train/quasi_global.h, decentlam.h). */
static const char *bars_learning(const struct run *r, const struct momentum_kind *kind)
{
    return r->local_steps == 0
               ? "needs a number for --local-steps, not auto: the momentum needs rounds with "
                 "equally many steps"
           : run_has_outer(r)
               ? "cannot be combined with --outer: the outer step would be part of a "
                 "round's change, and the momentum would grow"
           : run_may_overshoot(r)
               ? "needs a --gamma of at most 1, such as --gamma 1: with a larger "
                 "step size, an exchange overshoots the neighbours' mean and the "
                 "momentum grows"
           : kind->needs_constant_mixing ? run_mixing_varies(r)
                                         : NULL;
}

/* Returns the reason why the run cannot use a momentum kind whose momentum peers exchange together
 * with the model. NULL: the run can use it. */
static const char *bars_exchange(const struct run *r, const struct momentum_kind *kind)
{
    const char *why = run_bars_companion(r);
    const struct sgd_values *v = sgd_values(r);
    return is_adam(r) && !averaged_momentum_is_bounded(v->momentum, v->beta2)
               ? "needs a --beta2 above the square of --momentum: otherwise the steps of Adam have "
                 "no largest length"
           : r->local_steps == 0 ? "needs a number for --local-steps, not auto: peers exchange "
                                   "momenta of equally many steps"
           : run_has_outer(r) ? "cannot be combined with --outer: an outer optimiser is not tested "
                                "with a momentum that peers exchange"
           : why != NULL || !kind->tracked ? why
                                           : run_leaves_out(r);
}

/* Checks the keys that a kind of momentum other than `local` needs. */
static int check_momentum_kind(const struct run *r, char error[RUN_ERROR_MAX])
{
    const struct sgd_values *v = sgd_values(r);
    const struct momentum_kind *kind = momentum_kind_all[v->momentum_kind];
    const char *why =
        v->momentum == 0 ? "needs a --momentum above 0"
        : v->momentum > kind->most
            ? "needs a --momentum of at most 0.95: with more, lossy codecs and lost sessions make "
              "models diverge"
        : is_adam(r) && !kind->adam ? "needs --optimiser sgd"
        : r->factor_masking ? "cannot be combined with --factor-masking true: masking resets the "
                              "momentum of local steps, which only --momentum-kind local has"
        : kind->exchanged   ? bars_exchange(r, kind)
                            : bars_learning(r, kind);
    if (kind == &momentum_local || why == NULL)
        return 0;
    snprintf(error, RUN_ERROR_MAX, "--momentum-kind %s: %s", kind->name, why);
    return -EINVAL;
}

/* Returns the number of a kind of momentum in momentum_kind_all[]. */
static uint32_t number_of_kind(const struct momentum_kind *kind)
{
    uint32_t i = 0;
    while (momentum_kind_all[i] != kind)
        i++;
    return i;
}

/* Checks which other keys are allowed if a process has several learners, which train copies of a
 * common model, the centre (nn/train/learners.h). A --momentum-kind other than local is refused,
 * because the learners and the centre already have a momentum. --overlap layer, which sends each
 * layer as soon as it is final, is refused: a layer of the centre is final only after the last
 * learner's step. */
static int check_learners(const struct run *r, char error[RUN_ERROR_MAX])
{
    const struct sgd_values *v = sgd_values(r);
    const char *why = NULL;
    if (momentum_kind_all[v->momentum_kind] != &momentum_local)
        why = "needs --momentum-kind local: each learner has its own momentum";
    else if (r->overlap == RUN_OVERLAP_LAYER)
        why = "cannot be combined with --overlap layer: a layer of the average is complete only "
              "when all learners have finished it";
    if (v->learners == 1 || why == NULL)
        return 0;
    snprintf(error, RUN_ERROR_MAX, "--learners %u: %s", (unsigned)v->learners, why);
    return -EINVAL;
}

int sgd_check_auto_qg(const struct run *r, char error[RUN_ERROR_MAX])
{
    struct run with = *r;
    struct sgd_values *v = (void *)with.own;
    v->momentum_kind = number_of_kind(&momentum_qg);
    const char *needs = is_adam(r)             ? "--optimiser sgd: with Adam, qg needs another --lr"
                        : run_sends_updates(r) ? "--mixer choco, dpsgd or gossip"
                                               : NULL;
    if (needs != NULL) {
        snprintf(error, RUN_ERROR_MAX, "--momentum-kind auto: chooses qg only with %s", needs);
        return -EINVAL;
    }
    int err = check_momentum_kind(&with, error);
    return err != 0 ? err : check_learners(&with, error);
}

/* Resolves --momentum-kind auto: `qg` if the data of the peers may differ and sgd_check_auto_qg()
 * has no objection, else `local`. On similar data `qg` costs accuracy (peer/docs/skewed-data.md). */
static int resolve_momentum_kind(const struct run *r, const struct run_flags *f,
                                 char value[RUN_VALUE_MAX], char error[RUN_ERROR_MAX])
{
    char why[RUN_ERROR_MAX];
    bool may_differ = f->own_data || strcmp(sgd_values(r)->skew, "iid") != 0;
    bool qg = may_differ && sgd_check_auto_qg(r, why) == 0;
    (void)error;
    snprintf(value, RUN_VALUE_MAX, "%s", (qg ? &momentum_qg : &momentum_local)->name);
    return 0;
}

/* With --momentum-kind auto the peer that starts the run chooses, and other peers accept every
 * kind. */
static bool momentum_kind_agrees(const char *given, const char *of_run)
{
    return strcmp(given, "auto") == 0 || strcmp(given, of_run) == 0;
}

/* Checks combinations of keys. --augment needs images, which can be checked only once the data kind
 * determines the shape of the samples. */
static int check(const struct run *r, char error[RUN_ERROR_MAX])
{
    const struct sgd_values *v = sgd_values(r);
    struct data_shape shape;
    if (r->overlap == RUN_OVERLAP_LAYER && v->clip > 0) {
        snprintf(error, RUN_ERROR_MAX,
                 "--overlap layer: cannot be combined with --clip %g: clipping needs the whole "
                 "gradient",
                 v->clip);
        return -EINVAL;
    }
    int err = check_momentum_kind(r, error);
    if (err == 0)
        err = check_learners(r, error);
    if (err != 0)
        return err;
    if (strcmp(v->augment, "none") == 0 || !data_kind_fixed(v->data)
        || data_shape(v->data, &shape) != 0 || shape.form == DATA_IMAGES)
        return 0;
    snprintf(error, RUN_ERROR_MAX,
             "--augment %s: expected a data set of images, but --data is "
             "%.100s",
             v->augment, v->data);
    return -EINVAL;
}

/* Returns the default learning rate. An LSTM, and logistic regression on scaled rows, have small
 * gradients and need more than the 0.02 of other models. */
static const char *fallback_of_lr(const struct run_flags *f)
{
    const char *model = run_flags_value(f, "model"), *data = run_flags_value(f, "data");
    /* "": --optimiser is not given. The default is SGD. */
    const char *optimiser = run_flags_value(f, "optimiser");
    if (strcmp(optimiser, "") != 0 && strcmp(optimiser, "sgd") != 0)
        return "0.02";
    if (strncmp(model, "lstm", 4) == 0)
        return "0.2";
    bool rows = strncmp(data, "csv", 3) == 0 || strncmp(data, "libsvm", 6) == 0;
    return strcmp(model, "logreg") == 0 && rows ? "0.1" : "0.02";
}

/* ---- The table of the trainer's keys. ---- */

#define FIELD(f) RUN_OWN_FIELD(struct sgd_values, f)

/* clang-format off */
static const struct run_key keys[] = {
    {.name = "model", .kind = RUN_TEXT, .fallback = "lenet5",
     .help = "model: logreg, mlp:784-512-10, lenet5, lenet5:bn, vgg11, vgg11:bn, resnet:20, lstm:256 or lstm:2x256, gpt:4x128",
     .canonical = canonical_model, FIELD(model)},
    {.name = "norm", .kind = RUN_CHOICE, .fallback = "batch",
     .help = "normalisation layers of resnet, lenet5:bn and vgg11:bn: over the batch, over groups of 8 channels (better for skewed shards), or over all channels",
     .choices = "batch|group|layer", FIELD(norm),
     .useless = lacks_norms, .of = "model",
     .why = "only with a --model that has normalisation layers, such as resnet:20 or vgg11:bn"},
    {.name = "init", .kind = RUN_TEXT, .fallback = "none",
     .help = "hash of the model file of --init; none: the initial model is random",
     .canonical = canonical_init, FIELD(init)},
    {.name = "data", .kind = RUN_TEXT, .fallback = "glyphs",
     .help = "data set: glyphs (built in), or mnist, idx, cifar10, cifar100, libsvm, csv or text with :PATH[,key=value], or only a PATH, whose kind is recognised",
     .canonical = canonical_data, FIELD(data),
     .fixed = data_kind_fixed, .agrees = data_kind_agrees, .is_per_peer = true},
    {.name = "augment", .kind = RUN_TEXT, .fallback = "none",
     .help = "random changes to training images: none, crop, flip or crop+flip",
     .canonical = canonical_augment, FIELD(augment)},
    {.name = "partition", .former = "skew", .kind = RUN_TEXT, .fallback = "iid",
     .help = "how the samples are divided among the shards: iid, dirichlet:ALPHA (skewed labels), label:K (samples sorted by label, K pieces per peer) or file (one part per file)",
     .canonical = canonical_skew, FIELD(skew)},
    {.name = "batch", .kind = RUN_UINT, .fallback = "32",
     .help = "mini-batch size of a local step",
     .min = 1, .max = 65536, FIELD(batch)},
    {.name = "learners", .kind = RUN_UINT, .fallback = "1",
     .help = "learners per process (CROSSBOW): in a local step each trains its own copy of the model; other peers see the average of the copies",
     .min = 1, .max = LEARNERS_MAX, FIELD(learners)},
    {.name = "learner-momentum", .kind = RUN_REAL, .fallback = "0.9",
     .help = "with several --learners: momentum of their average model",
     .low = 0, .high = 0.999, FIELD(learner_momentum),
     .useless = has_one_learner, .of = "learners",
     .why = "only with --learners above 1"},
    {.name = "optimiser", .kind = RUN_CHOICE, .fallback = "sgd",
     .help = "optimiser of local steps; adamw: Adam with decoupled weight decay",
     .choices = "sgd|adam|adamw", FIELD(optimiser)},
    {.name = "lr", .kind = RUN_REAL, .fallback = "0.02",
     .help = "learning rate after warm-up; default with SGD: 0.2 for lstm, 0.1 for logreg on csv and libsvm; Adam needs less, such as 0.001",
     .low = 0, .high = 1000, FIELD(lr), .fallback_by = fallback_of_lr},
    {.name = "momentum", .kind = RUN_REAL, .fallback = "0.9",
     .help = "momentum of SGD; beta1 of Adam",
     .low = 0, .high = 0.9999, FIELD(momentum)},
    {.name = "momentum-kind", .kind = RUN_CHOICE, .fallback = "local",
     .help = "source of the momentum. local: the peer's own local steps. All other kinds are better for skewed shards. qg (quasi-global) and decentlam (SGD only, constant --topology): the change of the peer's model over a whole round. averaged (twice the bytes, with Adam three times): the local steps, mixed with the moments of the neighbours. tracking (SGD only, twice the bytes): the local steps, corrected by the mean momentum of the peers. auto: qg with SGD if --partition is not iid or --shard is own, else local",
     .choices = "local|qg|decentlam|averaged|tracking|auto", .word = "auto",
     FIELD(momentum_kind),
     .resolve = resolve_momentum_kind, .agrees = momentum_kind_agrees},
    {.name = "beta2", .kind = RUN_REAL, .fallback = "0.999",
     .help = "beta2 of Adam",
     .low = 0, .high = 0.999999, FIELD(beta2),
     .useless = is_sgd, .of = "optimiser",
     .why = "only with --optimiser adam or adamw: SGD has no second moment"},
    {.name = "nesterov", .kind = RUN_CHOICE, .fallback = "true",
     .help = "Nesterov momentum with SGD",
     .choices = "false|true", FIELD(nesterov),
     .useless = has_no_nesterov, .of = "optimiser",
     .why = "only with --optimiser sgd and a --momentum-kind other than decentlam"},
    {.name = "label-smoothing", .kind = RUN_REAL, .fallback = "0",
     .help = "share of each training label that is spread over all classes",
     .low = 0, .high = 0.9, FIELD(label_smoothing)},
    {.name = "clip", .kind = RUN_REAL, .fallback = "0",
     .help = "clip gradients to a norm of X / sqrt(min-peers x learners); 0: no clipping",
     .low = 0, .high = 1e9, FIELD(clip)},
    {.name = "weight-decay", .kind = RUN_REAL, .fallback = "0",
     .help = "weight decay; not applied to biases and normalisation layers",
     .low = 0, .high = 1, FIELD(weight_decay)},
    {.name = "warmup", .kind = RUN_UINT, .fallback = "auto",
     .help = "rounds of linear warm-up; auto: 100, but at most a tenth of the run; a round that --post-local shortens to one step counts as 1 / --local-steps of a round",
     .word = "auto", .min = 0, .max = WARMUP_MAX, FIELD(warmup),
     .resolve = resolve_warmup},
    {.name = "schedule", .kind = RUN_CHOICE, .fallback = "cosine",
     .help = "course of the learning rate after warm-up",
     .choices = "cosine|step|constant", FIELD(schedule)},
    {.name = NULL}};
/* clang-format on */

/* The momenta decentlam and tracking are unstable with coarse codecs (nn/train/decentlam.h,
 * tracking_momentum.h). */
static bool needs_precise_codec(const struct run_flags *f)
{
    const char *name = run_flags_value(f, "momentum-kind");
    return strcmp(name, momentum_decentlam.name) == 0 || strcmp(name, momentum_tracking.name) == 0;
}

const struct run_trainer sgd_keys = {
    .keys = keys, .check = check, .needs_precise_codec = needs_precise_codec};
