/* peer/api/trainer.c -- the trainer (nn/train/trainer.h) that a node uses when a program provides
 * the model. The program does the local steps. */
#include "nn/math/number.h"
#include "peer/api/handle.h"
#include "peer/secure/hash.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void init(void *self, float *x)
{
    const struct hearsay *h = self;
    memcpy(x, h->begin, h->tensors.n_floats * sizeof *x);
}

void handle_begin_hash(const struct hearsay *h, const float *x, char out[LAYOUT_BEGIN])
{
    uint8_t hash[HASH_BYTES];
    hash_128(x, h->tensors.n_floats * sizeof *x, hash);
    for (size_t i = 0; i < HASH_BYTES; i++)
        snprintf(out + 2 * i, 3, "%02x", hash[i]);
}

/* Returns whether x is the run's initial model. Compares the hashes without their first digit,
 * which set_layout() replaces by the peer's rank as provider of the initial model. */
static bool begins(void *self, const float *x)
{
    const struct hearsay *h = self;
    char hash[LAYOUT_BEGIN];
    handle_begin_hash(h, x, hash);
    return strcmp(hash + 1, h->begin_of_run + 1) == 0;
}

/* Copies the parameters `x` to the caller's tensors. The caller's thread reads h->copied, so
 * h->copied is updated under the lock. */
static void scatter(struct hearsay *h, const float *x)
{
    tensors_scatter(&h->tensors, x);
    uv_mutex_lock(&h->lock);
    h->copied = h->tensors.bytes_copied;
    uv_mutex_unlock(&h->lock);
}

void handle_give_model(struct hearsay *h, const float *x)
{
    if (x != NULL)
        scatter(h, x);
}

/* Does the local steps of a round: gives the tensors to the caller and waits until the caller gives
 * them back. If the caller leaves the run instead, the round is abandoned. */
static void steps(void *self, float *x, uint64_t round, uint32_t n_steps,
                  struct trainer_report *report)
{
    struct hearsay *h = self;
    struct hearsay_did did;
    scatter(h, x);
    if (turn_steps(&h->turn, round, n_steps, &did) < 0) {
        *report = (struct trainer_report){.loss = (double)NAN, .abandoned = true};
        h->half_done = h->tensors.flat != NULL;
        return;
    }
    tensors_gather(&h->tensors, x);
    *report = (struct trainer_report){.loss = did.loss, .accuracy = (double)NAN};
    /* A NaN loss with samples 0 means that the caller does not know the loss. The run has not
     * diverged. */
    if (!isnan(did.loss) || did.samples > 0)
        report->n_samples = did.samples > 0 ? did.samples : 1;
}

static void evaluate(void *self, const float *x, uint64_t max_samples,
                     struct trainer_report *report)
{
    struct hearsay *h = self;
    struct hearsay_score score;
    *report = (struct trainer_report){.loss = (double)NAN, .accuracy = (double)NAN};
    if (h->evaluate == NULL)
        return;
    scatter(h, x);
    if (turn_evaluate(&h->turn, max_samples, &score) == 0)
        *report = (struct trainer_report){
            .loss = score.loss, .accuracy = score.accuracy, .n_samples = score.samples};
}

/* Stores one 64-bit key for each live member. hearsay_share() later assigns the samples to the
 * members by these keys. */
static int members(void *self, const uint64_t *keys, size_t n, uint64_t own)
{
    struct hearsay *h = self;
    uint64_t *copy = malloc((n + 1) * sizeof *copy);
    if (copy == NULL)
        return -ENOMEM;
    memcpy(copy, keys, n * sizeof *copy);
    uv_mutex_lock(&h->lock);
    free(h->keys);
    h->keys = copy;
    h->n_keys = n;
    h->own_key = own;
    h->shares++;
    uv_mutex_unlock(&h->lock);
    return 0;
}

/* Saves or restores the caller's data of hearsay_keep() in a checkpoint. */
static void state(void *self, struct state *s)
{
    struct hearsay *h = self;
    size_t n = h->n_kept;
    state_section(s, "caller");
    state_u64(s, &h->kept_round);
    state_size(s, &n);
    if (s->reading) {
        state_expect(s, n <= s->n,
                     "the data of hearsay_keep() are shorter than their recorded size");
        if (s->failed)
            return;
        uint8_t *bytes = malloc(n > 0 ? n : 1);
        if (bytes == NULL) {
            state_no_memory(s);
            return;
        }
        free(h->kept);
        h->kept = bytes;
        h->n_kept = n;
        h->kept_read = n > 0;
    }
    if (n > 0)
        state_bytes(s, h->kept, n);
}

/* ---- Comparing the tensors with those of a run ---- */

static int no_memory(char error[RUN_ERROR_MAX])
{
    snprintf(error, RUN_ERROR_MAX, "out of memory for the model");
    return -ENOMEM;
}

/* Describes, for an error message, the first tensor that differs from the tensors of the run.
 * `theirs`: outline of the run, that is, a short hash of each tensor. Returns whether the message
 * shows how the tensor differs. */
static bool describe_first_difference(const struct tensors *t, const char *theirs,
                                      char out[TENSORS_ERROR_MAX])
{
    char own[TENSORS_OUTLINE], what[TENSORS_ERROR_MAX], form[TENSORS_ERROR_MAX];
    size_t n = strcmp(theirs, "none") == 0 ? 0 : strlen(theirs) / 2, i = 0;
    tensors_outline(t, own);
    while (i < n && i < t->n && memcmp(own + 2 * i, theirs + 2 * i, 2) == 0)
        i++;
    /* True: the outline is complete, that is, it covers all tensors of the run. */
    bool all = n > 0 && n < TENSORS_OUTLINED;
    if (n == 0 || (i == n && !all) || (i == t->n && i == n)) {
        snprintf(out, TENSORS_ERROR_MAX,
                 "tensor %zu or a later one has another name, shape, type, role or place",
                 i == n && !all ? i + 1 : (size_t)1);
        return false;
    }
    if (i == t->n) {
        snprintf(out, TENSORS_ERROR_MAX, "found %zu tensor%s, expected %zu%s", i, number_plural(i),
                 n, all ? "" : " or more");
        return true;
    }
    tensors_describe(t, i, what);
    if (i == n)
        snprintf(out, TENSORS_ERROR_MAX, "found %.150s after the %zu tensor%s of the run", what, n,
                 number_plural(n));
    else if (tensors_guess(t, i, theirs + 2 * i, form))
        snprintf(out, TENSORS_ERROR_MAX,
                 "found %.120s as tensor %zu, expected %.60s (guessed from a hash of 8 bits)", what,
                 i + 1, form);
    else
        snprintf(out, TENSORS_ERROR_MAX,
                 "found %.150s as tensor %zu, expected another tensor there", what, i + 1);
    return i == n || tensors_guess(t, i, theirs + 2 * i, form);
}

/* Warns a peer with the option "initial" if the run begins with another peer's model. A peer that
 * resumes has the model of its checkpoint and gets no warning. */
static void warn_initial(struct hearsay *h)
{
    if (handle_is_initial(h) && h->config.node.n_resume == 0 && !begins(h, h->begin))
        turn_note(
            &h->turn, 1,
            "--initial: the run starts with another peer's model: the run had already started, or "
            "another peer also has --initial");
}

/* Checks that the tensors have the layout of the run. Their values may differ: the run's initial
 * model is then fetched from another member. */
static int check_layout(struct hearsay *h, const struct run *run, char error[RUN_ERROR_MAX])
{
    const struct layout_values *v = layout_values(run);
    char own[LAYOUT_HASH];
    snprintf(own, sizeof own, "%016llx", (unsigned long long)tensors_layout(&h->tensors));
    memcpy(h->begin_of_run, v->begin, sizeof h->begin_of_run);
    if (strcmp(own, v->tensors) == 0) {
        warn_initial(h);
        return 0;
    }
    char which[TENSORS_ERROR_MAX], rest[96] = "";
    bool shown = describe_first_difference(&h->tensors, v->outline, which);
    if (h->tensors.n_floats != v->floats || h->tensors.dim != v->trained)
        snprintf(rest, sizeof rest,
                 "; found %zu floats, %zu of them trained, expected %llu and %llu",
                 h->tensors.n_floats, h->tensors.dim, (unsigned long long)v->floats,
                 (unsigned long long)v->trained);
    else if (!shown)
        snprintf(rest, sizeof rest,
                 "; to compare, print name, type and shape of each tensor at both peers");
    snprintf(error, RUN_ERROR_MAX, "the tensors differ from the run's: %.185s%s", which, rest);
    return -EINVAL;
}

/* Checks that the tensors match the run's built-in model, which `hearsay peer` can train, and sets
 * the initial model. */
static int take_model(struct hearsay *h, const struct run *run, char error[RUN_ERROR_MAX])
{
    char why[MODEL_ERROR_MAX], what[TENSORS_ERROR_MAX], hash[SGD_INIT_MAX];
    struct data_shape shape;
    const struct sgd_values *v = sgd_values(run);
    model_close(&h->model);
    h->model = (struct model){0};
    int err = data_shape(v->data, &shape);
    /* data_shape() cannot fail, because the data kind of a complete run determines the shape of the
     * samples. */
    assert(err == 0);
    err = model_init(&h->model, v->model, v->norm, &shape, why);
    if (err < 0) {
        snprintf(error, RUN_ERROR_MAX, "--model: %.300s", why);
        return err;
    }
    err = tensors_lay_as(&h->tensors, h->model.segments, h->model.n_segments, what);
    if (err < 0) {
        snprintf(error, RUN_ERROR_MAX, "--model %.60s: %.240s", v->model, what);
        return err;
    }
    float *begin = realloc(h->begin, h->tensors.n_floats * sizeof *begin);
    if (begin == NULL)
        return no_memory(error);
    h->begin = begin;
    if (strcmp(v->init, "none") == 0) {
        model_params(&h->model, run->seed, h->begin);
        return 0;
    }
    tensors_read(&h->tensors, h->begin);
    snprintf(hash, sizeof hash, "%016llx",
             (unsigned long long)vec_hash(h->begin, h->tensors.n_floats));
    if (strcmp(hash, v->init) == 0)
        return 0;
    snprintf(error, RUN_ERROR_MAX,
             "the tensors' initial values differ from the run's: found the hash %s, expected %s",
             hash, v->init);
    return -EINVAL;
}

/* Returns whether the output directory belongs to a run that differs from this run only in the
 * initial model, and has no checkpoint. A program that stops before its first checkpoint leaves
 * such a directory. If the program is started again with other random initial values, its run may
 * use this directory. */
static bool differs_in_initial_model_only(const struct hearsay *h)
{
    char there[RUN_IDENTITY_TEXT_MAX], why[RUN_IDENTITY_WHY_MAX];
    return h->config.node.n_resume == 0 && outdir_read_identity(h->out, there)
           && run_identity_differ(there, h->owner_text, why) == 1 && strncmp(why, "begin=", 6) == 0;
}

/* Checks that the output directory is new or belongs to this run. Refuses a directory with files of
 * another run or of no known run. */
static int check_out(struct hearsay *h, const struct run *run, char error[RUN_ERROR_MAX])
{
    char text[WIRE_RUN_MAX + 1], why[OUTDIR_WHY_MAX];
    if (h->out == NULL)
        return 0;
    run_text(run, text);
    run_identity_write(h->owner_text, "libhearsay", NULL, text);
    enum outdir_state state = outdir_inspect(h->out, h->owner_text, why);
    bool other = state == OUTDIR_OTHER_RUN && !differs_in_initial_model_only(h);
    if (!other && state != OUTDIR_UNKNOWN_RUN)
        return 0;
    snprintf(error, RUN_ERROR_MAX, "--out %.80s has %s: %.180s", h->out,
             other ? "another run" : "files of an unknown run", why);
    return -EINVAL;
}

static void note_run(struct hearsay *h, const struct run *run)
{
    uv_mutex_lock(&h->lock);
    h->n_rounds = run->rounds;
    h->seed = run->seed;
    run_text(run, h->run_text);
    uv_mutex_unlock(&h->lock);
}

/* The run may come from another peer and is not known in hearsay_open(). Therefore everything that
 * depends on the run is checked here: the model or layout, the output directory, and the disk
 * space. */
int handle_make_trainer(void *self, const struct run *run, struct trainer *t,
                        char error[RUN_ERROR_MAX])
{
    struct hearsay *h = self;
    int err = h->simulation == NULL ? settings_uplink_fits(h->o, run, error) : 0;
    if (err == 0 && run->overlap == RUN_OVERLAP_LAYER) {
        snprintf(error, RUN_ERROR_MAX,
                 "--overlap layer: needs hearsay's own trainer, which reports when a layer is "
                 "finished");
        err = -EINVAL;
    }
    if (err == 0)
        err = h->by_model ? take_model(h, run, error) : check_layout(h, run, error);
    if (err == 0)
        err = check_out(h, run, error);
    if (err == 0)
        err = run_log_reserve_space(&h->diary, h->tensors.n_floats, error);
    if (err < 0)
        return err;
    note_run(h, run);
    *t = (struct trainer){.n_params = h->tensors.n_floats,
                          .segments = h->tensors.segment,
                          .n_segments = h->tensors.n,
                          .x = h->tensors.flat,
                          .self = h,
                          .init = init,
                          .begins = h->by_model ? NULL : begins,
                          .steps = steps,
                          .evaluate = evaluate,
                          .members = members,
                          .state = state};
    return 0;
}
