/* peer/run/key.c -- the table of run keys, and the check of one value.
 *
 * Text values are checked by the folder that knows them; what comes out is one
 * spelling for each meaning, so that equal runs have equal texts.
 */
#include "peer/run/key.h"

#include "compress/compress.h"
#include "nn/data/data.h"
#include "nn/math/number.h"
#include "nn/models/model.h"
#include "nn/shards/shard.h"
#include "topology/topology.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS_MAX = 1000000000 };

const char *run_quote(char out[RUN_QUOTE_MAX + 4], const char *found)
{
    size_t n = 0;
    for (; found[n] != '\0' && n < RUN_QUOTE_MAX; n++) {
        unsigned char c = (unsigned char)found[n];
        out[n] = c >= 0x20 && c < 0x7f ? (char)c : '?';
    }
    memcpy(out + n, found[n] != '\0' ? "..." : "", found[n] != '\0' ? 4 : 1);
    return out;
}

int run_refuse(char error[RUN_ERROR_MAX], const char *name, const char *found, const char *expected)
{
    char q[RUN_QUOTE_MAX + 4];
    snprintf(error, RUN_ERROR_MAX, "--%s: found '%s', expected %.200s", name, run_quote(q, found),
             expected);
    return -EINVAL;
}

/* ---- Text values: each checked by the folder that knows it. ---- */

/* Copy a folder's sentence, fit to print, behind the flag's name. */
static int spec_error(char error[RUN_ERROR_MAX], const char *name, const char *sentence)
{
    int at = snprintf(error, RUN_ERROR_MAX, "--%s: ", name);
    size_t n = (size_t)at;
    for (; *sentence != '\0' && n + 1 < RUN_ERROR_MAX; sentence++) {
        unsigned char c = (unsigned char)*sentence;
        error[n++] = c >= 0x20 && c < 0x7f ? (char)c : '?';
    }
    error[n] = '\0';
    return -EINVAL;
}

static int canonical_model(const char *value, char out[RUN_VALUE_MAX], char error[RUN_ERROR_MAX])
{
    char canonical[MODEL_SPEC_MAX], sentence[MODEL_ERROR_MAX];
    static_assert(sizeof canonical <= RUN_SPEC_MAX, "fits");
    if (model_spec(value, canonical, sentence) != 0)
        return spec_error(error, "model", sentence);
    memcpy(out, canonical, strlen(canonical) + 1);
    return 0;
}

static int canonical_data(const char *value, char out[RUN_VALUE_MAX], char error[RUN_ERROR_MAX])
{
    char kind[DATA_KIND_MAX], sentence[DATA_ERROR_MAX];
    static_assert(sizeof kind <= RUN_SPEC_MAX, "fits");
    if (data_kind(value, kind, sentence) != 0)
        return spec_error(error, "data", sentence);
    memcpy(out, kind, strlen(kind) + 1);
    return 0;
}

static int canonical_augment(const char *value, char out[RUN_VALUE_MAX], char error[RUN_ERROR_MAX])
{
    char sentence[DATA_ERROR_MAX];
    struct augment a;
    if (augment_parse(&a, value, sentence) != 0)
        return spec_error(error, "augment", sentence);
    augment_print(&a, out);
    return 0;
}

/* Only texts of runs have this one: commands take a file, and hash its model. */
static int canonical_init(const char *value, char out[RUN_VALUE_MAX], char error[RUN_ERROR_MAX])
{
    size_t digits = strspn(value, "0123456789abcdef");
    bool hash = digits == RUN_INIT_MAX - 1 && value[digits] == '\0';
    if (!hash && strcmp(value, "none") != 0)
        return run_refuse(error, "init", value, "none or 16 hexadecimal digits");
    memcpy(out, value, strlen(value) + 1);
    return 0;
}

static int canonical_codec(const char *name, const char *value, char out[RUN_VALUE_MAX],
                           char error[RUN_ERROR_MAX])
{
    char canonical[COMPRESS_SPEC_MAX], sentence[COMPRESS_ERROR_MAX];
    static_assert(sizeof canonical <= RUN_SPEC_MAX, "fits");
    if (compress_canonical(value, canonical, sentence) != 0)
        return spec_error(error, name, sentence);
    memcpy(out, canonical, strlen(canonical) + 1);
    return 0;
}

static int canonical_compress(const char *value, char out[RUN_VALUE_MAX], char error[RUN_ERROR_MAX])
{
    size_t n = strlen(RUN_AUTO); /* "auto" itself is the key's word. */
    if (strncmp(value, RUN_AUTO, n) == 0 && strchr("+:;,/", value[n]) != NULL)
        return run_refuse(
            error, "compress", value,
            "auto alone: it chooses the codec by the drift, and has no options but --drift-target");
    return canonical_codec("compress", value, out, error);
}

static int canonical_final(const char *value, char out[RUN_VALUE_MAX], char error[RUN_ERROR_MAX])
{
    return canonical_codec("final-compress", value, out, error);
}

static int canonical_topology(const char *value, char out[RUN_VALUE_MAX], char error[RUN_ERROR_MAX])
{
    char canonical[TOPOLOGY_SPEC_MAX], sentence[TOPOLOGY_ERROR_MAX];
    static_assert(sizeof canonical <= RUN_VALUE_MAX, "fits");
    if (topology_canonical(value, canonical, sentence) != 0)
        return spec_error(error, "topology", sentence);
    memcpy(out, canonical, strlen(canonical) + 1);
    return 0;
}

static int canonical_skew(const char *value, char out[RUN_VALUE_MAX], char error[RUN_ERROR_MAX])
{
    char sentence[DATA_ERROR_MAX];
    struct shard_split split;
    if (shard_split_parse(&split, value, sentence) != 0)
        return spec_error(error, "skew", sentence);
    shard_split_print(&split, out);
    return 0;
}

/* ---- The table. ---- */

#define FIELD(f) .at = offsetof(struct run, f), .size = sizeof(((struct run *)0)->f)

/* clang-format off */
const struct run_key run_keys[] = {
    {.name = "model", .kind = RUN_TEXT, .fallback = "lenet5",
     .help = "logreg, mlp:784-512-10, lenet5, vgg11, vgg11:bn, resnet:20, lstm:256 or "
             "lstm:2x256, gpt:4x128",
     .canonical = canonical_model, FIELD(model)},
    {.name = "norm", .kind = RUN_CHOICE, .fallback = "batch",
     .help = "norms of resnet and vgg11:bn: over the batch, over groups of 8 channels "
             "(for shards of few labels), or over all channels",
     .choices = "batch|group|layer", FIELD(norm)},
    {.name = "init", .kind = RUN_TEXT, .fallback = "none",
     .help = "hash of the model that a file gave to begin with",
     .canonical = canonical_init, FIELD(init)},
    {.name = "data", .kind = RUN_TEXT, .fallback = "glyphs",
     .help = "glyphs (built in); mnist, idx, cifar10, cifar100, libsvm, csv or text with "
             ":PATH[,key=value]; or a PATH alone, whose kind its contents tell",
     .canonical = canonical_data, FIELD(data)},
    {.name = "augment", .kind = RUN_TEXT, .fallback = "none",
     .help = "random changes to training images: none, crop, flip or crop+flip",
     .canonical = canonical_augment, FIELD(augment)},
    {.name = "skew", .kind = RUN_TEXT, .fallback = "iid",
     .help = "how samples fall to the shards: iid, dirichlet:ALPHA (of each class), label:K "
             "(K runs of labels a peer) or file (what is in one stays together)",
     .canonical = canonical_skew, FIELD(skew)},
    {.name = "compress", .kind = RUN_TEXT, .fallback = RUN_AUTO,
     .help = "what neighbours send: auto, as much as --drift-target needs (qsgd:4 with "
             "--mixer average); none, fp16, sign, qsgd:BITS, topk:SHARE, randk:SHARE, "
             "topk:SHARE+qsgd:BITS, ...",
     .word = RUN_AUTO, .canonical = canonical_compress, FIELD(compress)},
    {.name = "drift-target", .kind = RUN_REAL, .fallback = "1",
     .help = "of --compress auto: drift to keep while training, as a multiple of what "
             "exact exchange has before it mixes; peers choose by it how much they send",
     .low = 1e-6, .high = 1e6, FIELD(drift_target)},
    {.name = "final-compress", .kind = RUN_TEXT, .fallback = "auto",
     .help = "compressor of the last phase; auto: the run's own, or qsgd:4 "
             "where that is too coarse to agree with",
     .word = "auto", .canonical = canonical_final, FIELD(final_compress)},
    {.name = "topology", .kind = RUN_TEXT, .fallback = "ring",
     .help = "ring, torus, complete, exponential, regular:K or edges:FILE",
     .canonical = canonical_topology, FIELD(topology)},
    {.name = "mixer", .kind = RUN_CHOICE, .fallback = "choco",
     .help = "what an exchange does: choco moves models together, average adds "
             "everybody's compressed updates (made for --topology complete)",
     .choices = "choco|average", FIELD(mixer)},
    {.name = "error-feedback", .kind = RUN_CHOICE, .fallback = "true",
     .help = "of --mixer average: what a message leaves out goes into the next",
     .choices = "false|true", FIELD(error_feedback)},
    {.name = "factor-masking", .kind = RUN_CHOICE, .fallback = "false",
     .help = "of --mixer average: momentum begins anew where a message went out "
             "(DGC)",
     .choices = "false|true", FIELD(factor_masking)},
    {.name = "gamma", .kind = RUN_REAL, .fallback = "auto",
     .help = "consensus step size; auto: found while running, edge by edge",
     .word = "auto", .low = 1e-9, .high = 2, FIELD(gamma)},
    {.name = "policy", .kind = RUN_CHOICE, .fallback = "sync",
     .help = "wait for every neighbour's round (sync) or never (async)",
     .choices = "sync|async", FIELD(policy)},
    {.name = "seed", .kind = RUN_UINT, .fallback = "1",
     .help = "of every random choice of the run",
     .min = 0, .max = UINT64_MAX, FIELD(seed)},
    {.name = "rounds", .kind = RUN_UINT, .fallback = "0",
     .help = "rounds of local steps and exchange",
     .min = 1, .max = ROUNDS_MAX, FIELD(rounds)},
    {.name = "min-peers", .kind = RUN_UINT, .fallback = "1",
     .help = "members to wait for before the first round",
     .min = 1, .max = WIRE_MEMBERS_MAX, FIELD(min_peers)},
    {.name = "batch", .kind = RUN_UINT, .fallback = "32",
     .help = "samples of one local step",
     .min = 1, .max = 65536, FIELD(batch)},
    {.name = "local-steps", .kind = RUN_UINT, .fallback = "1",
     .help = "local steps between exchanges",
     .min = 1, .max = 1000000, FIELD(local_steps)},
    {.name = "optimiser", .kind = RUN_CHOICE, .fallback = "sgd",
     .help = "of local steps: SGD with momentum, Adam, or Adam with decoupled weight decay",
     .choices = "sgd|adam|adamw", FIELD(optimiser)},
    {.name = "lr", .kind = RUN_REAL, .fallback = "0.02",
     .help = "learning rate after warm-up; Adam wants less, such as 0.001",
     .low = 0, .high = 1000, FIELD(lr)},
    {.name = "momentum", .kind = RUN_REAL, .fallback = "0.9",
     .help = "of SGD; of Adam: beta1",
     .low = 0, .high = 0.9999, FIELD(momentum)},
    {.name = "beta2", .kind = RUN_REAL, .fallback = "0.999",
     .help = "of Adam's second moment",
     .low = 0, .high = 0.999999, FIELD(beta2)},
    {.name = "nesterov", .kind = RUN_CHOICE, .fallback = "true",
     .help = "of SGD: Nesterov's form of momentum",
     .choices = "false|true", FIELD(nesterov)},
    {.name = "label-smoothing", .kind = RUN_REAL, .fallback = "0",
     .help = "share of a training label that goes to all classes alike",
     .low = 0, .high = 0.9, FIELD(label_smoothing)},
    {.name = "clip", .kind = RUN_REAL, .fallback = "0",
     .help = "longest sum of min-peers gradients: each is cut to this / "
             "sqrt(min-peers); 0: none",
     .low = 0, .high = 1e9, FIELD(clip)},
    {.name = "weight-decay", .kind = RUN_REAL, .fallback = "0",
     .help = "of weights, not of biases and norms",
     .low = 0, .high = 1, FIELD(weight_decay)},
    {.name = "warmup", .kind = RUN_UINT, .fallback = "auto",
     .help = "rounds of linear warm-up; auto: 100, at most a tenth of all",
     .word = "auto", .min = 0, .max = ROUNDS_MAX, FIELD(warmup)},
    {.name = "schedule", .kind = RUN_CHOICE, .fallback = "cosine",
     .help = "of the learning rate after warm-up: cosine, step or constant",
     .choices = "cosine|step|constant", FIELD(schedule)},
    {.name = "final-drift", .kind = RUN_REAL, .fallback = "0.001",
     .help = "relative drift at which the last phase ends; 0: no last phase",
     .low = 0, .high = 1, FIELD(final_drift)},
    {.name = NULL}};
/* clang-format on */
static_assert(sizeof run_keys / sizeof run_keys[0] - 1 <= RUN_KEYS_MAX,
              "struct run_flags holds one value a key");

/* ---- One value: text -> canonical text. ---- */

static int canonical_uint(const struct run_key *key, const char *value, char out[RUN_VALUE_MAX],
                          char error[RUN_ERROR_MAX])
{
    char expected[96];
    uint64_t v;
    if (!number_whole(value, &v) || v < key->min || v > key->max) {
        snprintf(expected, sizeof expected, "%sa whole number from %llu to %llu",
                 key->word != NULL ? "'auto' or " : "", (unsigned long long)key->min,
                 (unsigned long long)key->max);
        return run_refuse(error, key->name, value, expected);
    }
    snprintf(out, RUN_VALUE_MAX, "%llu", (unsigned long long)v);
    return 0;
}

static int canonical_real(const struct run_key *key, const char *value, char out[RUN_VALUE_MAX],
                          char error[RUN_ERROR_MAX])
{
    char expected[96];
    double v;
    if (!number_real(value, &v) || !(v >= key->low && v <= key->high)) {
        snprintf(expected, sizeof expected, "%sa number from %g to %g",
                 key->word != NULL ? "'auto' or " : "", key->low, key->high);
        return run_refuse(error, key->name, value, expected);
    }
    number_real_text(v + 0.0, out); /* -0 becomes 0. */
    return 0;
}

int run_canonical_value(const struct run_key *key, const char *value, char out[RUN_VALUE_MAX],
                        char error[RUN_ERROR_MAX])
{
    if (key->word != NULL && strcmp(value, key->word) == 0) {
        memcpy(out, value, strlen(value) + 1);
        return 0;
    }
    switch (key->kind) {
    case RUN_TEXT:
        return key->canonical(value, out, error);
    case RUN_UINT:
        return canonical_uint(key, value, out, error);
    case RUN_REAL:
        return canonical_real(key, value, out, error);
    case RUN_CHOICE:
        if (number_choice(key->choices, value) < 0)
            return run_refuse(error, key->name, value, key->choices);
        memcpy(out, value, strlen(value) + 1);
        return 0;
    }
    assert(0 && "a kind of key");
    return -EINVAL;
}
