/* peer/api/hearsay.c -- public functions of libhearsay. They run on the caller's thread. */
#include "peer/api/hearsay.h"

#include "nn/math/c_locale.h"
#include "nn/shards/shard.h"
#include "peer/api/handle.h"
#include "peer/run/exit.h"
#include "peer/uv/metrics.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Longest time that hearsay_close() waits for the peer to leave the run, in seconds. */
static const double leave_s = 5;

uint32_t hearsay_api(void)
{
    return HEARSAY_API;
}

const char *hearsay_version(void)
{
    return HEARSAY_VERSION;
}

int handle_fail(struct hearsay *h, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(h->error, sizeof h->error, format, args);
    va_end(args);
    return code;
}

int handle_code(int err)
{
    return cmd_exit_of(err) == CMD_USAGE ? HEARSAY_USAGE : HEARSAY_SYSTEM;
}

static bool is_own_process(const struct hearsay *h)
{
    return h->owner == getpid();
}

/* Checks that the handle is not open yet. `what`: name of the calling function, for the error
 * message. */
static int check_new(struct hearsay *h, const char *what)
{
    if (h == NULL)
        return HEARSAY_USAGE;
    if (!is_own_process(h))
        return HEARSAY_FORKED;
    if (h->stage != HANDLE_NEW)
        return handle_fail(h, HEARSAY_USAGE,
                           "%s: found an open handle, expected this call "
                           "before hearsay_open()",
                           what);
    return HEARSAY_OK;
}

static int check_open(struct hearsay *h, const char *what)
{
    if (h == NULL)
        return HEARSAY_USAGE;
    if (!is_own_process(h))
        return HEARSAY_FORKED;
    if (h->calls_back)
        return handle_fail(h, HEARSAY_USAGE,
                           "%s: found a call from within a callback, expected a call after the "
                           "callback has returned",
                           what);
    if (h->stage != HANDLE_OPEN)
        return handle_fail(h, HEARSAY_USAGE,
                           "%s: found a handle that is not open, expected a call of "
                           "hearsay_open() first",
                           what);
    return HEARSAY_OK;
}

/* ---- Functions that are called before a run ---- */

struct hearsay *hearsay_new(void)
{
    struct hearsay *h = calloc(1, sizeof *h);
    if (h == NULL)
        return NULL;
    h->owner = getpid();
    h->exit_code = -1;
    figure_init(&h->seen);
    if (turn_open(&h->turn) < 0) {
        free(h);
        return NULL;
    }
    if (uv_mutex_init(&h->lock) < 0) {
        turn_close(&h->turn);
        free(h);
        return NULL;
    }
    return h;
}

/* Makes the peer leave the run if the run is not over, and stops the peer's thread. */
static void end(struct hearsay *h)
{
    if (h->stage == HANDLE_OPEN && turn_await(&h->turn, 0) != TURN_OVER)
        (void)hearsay_leave(h, leave_s);
    if (h->stage == HANDLE_OPEN)
        handle_stop(h);
}

void hearsay_close(struct hearsay *h)
{
    if (h == NULL || !is_own_process(h) || h->calls_back)
        return;
    end(h);
    /* If the peer's thread hangs, it still uses the handle, so nothing can be freed. */
    if (h->stuck)
        return;
    handle_undo(h);
    for (size_t i = 0; i < h->n_words; i++)
        free(h->word[i]);
    free(h->figures_said);
    tensors_close(&h->tensors);
    uv_mutex_destroy(&h->lock);
    turn_close(&h->turn);
    free(h);
}

/* Removes the value of the option `name` that an earlier call has set, if there is one. */
static void drop_word(struct hearsay *h, const char *name, size_t n)
{
    for (size_t i = 0; i < h->n_words; i++)
        if (strncmp(h->word[i] + 2, name, n) == 0 && h->word[i][2 + n] == '=') {
            free(h->word[i]);
            h->word[i] = h->word[--h->n_words];
            return;
        }
}

int hearsay_set(struct hearsay *h, const char *name, const char *value)
{
    int code = check_new(h, "hearsay_set");
    if (code != HEARSAY_OK)
        return code;
    if (name == NULL || value == NULL || name[0] == '\0' || strpbrk(name, "= \t\n") != NULL)
        return handle_fail(h, HEARSAY_USAGE,
                           "hearsay_set: found '%.40s', expected an option's name",
                           name != NULL ? name : "NULL");
    char text[96];
    size_t n = 0;
    /* An underscore in the name of an option counts as a hyphen, because names in Python cannot
     * contain hyphens. */
    for (; name[n] != '\0' && n < sizeof text - 1; n++)
        text[n] = name[n] == '_' ? '-' : name[n];
    text[n] = '\0';
    char *word = malloc(n + strlen(value) + 4);
    if (word == NULL)
        return handle_fail(h, HEARSAY_SYSTEM, "out of memory");
    drop_word(h, text, n);
    if (h->n_words == HANDLE_WORDS_MAX) {
        free(word);
        return handle_fail(h, HEARSAY_USAGE, "--%s: found more than %d options", text,
                           HANDLE_WORDS_MAX);
    }
    sprintf(word, "--%s=%s", text, value);
    h->word[h->n_words++] = word;
    return HEARSAY_OK;
}

int hearsay_options(struct hearsay *h, const char *words)
{
    int code = check_new(h, "hearsay_options");
    if (code != HEARSAY_OK)
        return code;
    char *copy = words != NULL ? strdup(words) : NULL, *rest = copy, *one;
    if (copy == NULL)
        return handle_fail(h, words != NULL ? HEARSAY_SYSTEM : HEARSAY_USAGE,
                           words != NULL ? "out of memory" : "hearsay_options: found NULL");
    while (code == HEARSAY_OK && (one = strsep(&rest, " \t\n")) != NULL) {
        char *equals = strchr(one, '=');
        if (*one == '\0')
            continue;
        if (equals == NULL) {
            code = handle_fail(h, HEARSAY_USAGE, "found '%.60s', expected NAME=VALUE", one);
            break;
        }
        *equals = '\0';
        code = hearsay_set(h, one, equals + 1);
    }
    free(copy);
    return code;
}

int hearsay_tensor(struct hearsay *h, const char *name, void *data, enum hearsay_type type,
                   enum hearsay_role role, uint32_t n_dims, const uint64_t *dims)
{
    char error[TENSORS_ERROR_MAX];
    struct tensor one = {.data = data, .type = type, .role = role, .n_dims = n_dims};
    int code = check_new(h, "hearsay_tensor");
    if (code != HEARSAY_OK)
        return code;
    if (name == NULL || (n_dims > 0 && dims == NULL) || n_dims > HEARSAY_DIMS_MAX
        || (unsigned)type > HEARSAY_BFLOAT16 || (unsigned)role > HEARSAY_OPAQUE
        || (role == HEARSAY_OPAQUE && type != HEARSAY_FLOAT32))
        return handle_fail(h, HEARSAY_USAGE,
                           "tensor %.60s: found %u dimensions, type %d, role %d; expected at "
                           "most %d dimensions, and a known type and role",
                           name != NULL ? name : "NULL", (unsigned)n_dims, (int)type, (int)role,
                           HEARSAY_DIMS_MAX);
    if (strlen(name) > HEARSAY_NAME_MAX)
        return handle_fail(h, HEARSAY_USAGE,
                           "tensor %zu: found the name '%.40s...' of %zu bytes, expected 1 to %d",
                           h->tensors.n, name, strlen(name), HEARSAY_NAME_MAX);
    snprintf(one.name, sizeof one.name, "%s", name);
    for (uint32_t i = 0; i < n_dims; i++) {
        if (dims[i] > UINT32_MAX)
            return handle_fail(h, HEARSAY_USAGE, "tensor %s: found a dimension over 2^32 - 1",
                               name);
        one.dims[i] = (uint32_t)dims[i];
    }
    int err = tensors_add(&h->tensors, &one, error);
    return err < 0 ? handle_fail(h, handle_code(err), "%s", error) : HEARSAY_OK;
}

int hearsay_on_note(struct hearsay *h, void (*note)(void *self, int level, const char *text),
                    void *self)
{
    int code = check_new(h, "hearsay_on_note");
    if (code != HEARSAY_OK)
        return code;
    h->note = note;
    h->note_self = self;
    return HEARSAY_OK;
}

int hearsay_on_evaluate(struct hearsay *h,
                        int (*evaluate)(void *self, uint64_t samples, struct hearsay_score *score),
                        void *self)
{
    int code = check_new(h, "hearsay_on_evaluate");
    if (code != HEARSAY_OK)
        return code;
    h->evaluate = evaluate;
    h->evaluate_self = self;
    return HEARSAY_OK;
}

int hearsay_open(struct hearsay *h)
{
    C_LOCALE_HERE;
    int code = check_new(h, "hearsay_open");
    if (code != HEARSAY_OK)
        return code;
    code = handle_prepare(h);
    if (code == HEARSAY_OK)
        code = handle_start(h);
    if (code != HEARSAY_OK) {
        handle_undo(h);
        return code;
    }
    h->stage = HANDLE_OPEN;
    return HEARSAY_OK;
}

/* ---- Functions that are called in a run ---- */

static void tell_notes(struct hearsay *h)
{
    char text[TURN_NOTE_MAX];
    int level;
    h->calls_back = true;
    while (turn_next_note(&h->turn, &level, text))
        if (h->note != NULL)
            h->note(h->note_self, level, text);
    h->calls_back = false;
}

/* Runs the program's evaluation callback and gives its result to the peer's worker thread. */
static int run_evaluation(struct hearsay *h)
{
    struct hearsay_score score = {.loss = (double)NAN, .accuracy = (double)NAN};
    h->calls_back = true;
    int failed = h->evaluate(h->evaluate_self, h->turn.samples, &score);
    h->calls_back = false;
    turn_answer(&h->turn, failed == 0 ? &score : NULL);
    return failed == 0
               ? HEARSAY_OK
               : handle_fail(h, HEARSAY_CALLBACK, "the evaluation failed: it returned %d", failed);
}

/* Reports the end of the run to the caller. Returns an error code if the run ended because of bad
 * input or a system failure, and HEARSAY_OVER after any other end. */
static int over(struct hearsay *h)
{
    uint64_t done;
    h->yours = h->ended = true;
    uv_mutex_lock(&h->lock);
    done = h->seen.node.round;
    uv_mutex_unlock(&h->lock);
    h->round = done > h->round ? done : h->round;
    if (h->exit_code != CMD_USAGE && h->exit_code != CMD_FAILED)
        return HEARSAY_OVER;
    return handle_fail(h, h->exit_code == CMD_USAGE ? HEARSAY_USAGE : HEARSAY_SYSTEM, "%s",
                       h->last_error[0] != '\0' ? h->last_error : h->verdict);
}

/* Converts a timeout in seconds to a time of uv_hrtime(). Negative or very large timeouts become
 * UINT64_MAX: no limit. */
static uint64_t deadline(double timeout_s)
{
    const double longest_s = 1e9;
    if (!(timeout_s >= 0) || timeout_s > longest_s)
        return UINT64_MAX;
    return uv_hrtime() + (uint64_t)(timeout_s * 1e9);
}

/* Waits for the caller's turn or the end of the run. Runs callbacks as messages and evaluations
 * arrive. */
static int wait_for_turn(struct hearsay *h, uint64_t at_ns)
{
    for (;;) {
        enum turn_side of = turn_await(&h->turn, at_ns);
        tell_notes(h);
        int code = HEARSAY_OK;
        switch (of) {
        case TURN_CALLER:
            h->yours = true;
            h->round = h->turn.round;
            h->steps = h->turn.steps;
            return HEARSAY_OK;
        case TURN_OVER:
            return over(h);
        case TURN_TESTS:
            code = run_evaluation(h);
            break;
        case TURN_PEER:
            break;
        }
        if (code != HEARSAY_OK)
            return code;
        if (turn_interrupted(&h->turn))
            return HEARSAY_INTERRUPTED;
        if (uv_hrtime() >= at_ns)
            return HEARSAY_TIMEOUT;
    }
}

int hearsay_wait(struct hearsay *h, double timeout_s)
{
    int code = check_open(h, "hearsay_wait");
    return code != HEARSAY_OK ? code : wait_for_turn(h, deadline(timeout_s));
}

int hearsay_round(struct hearsay *h, const struct hearsay_did *did, double timeout_s)
{
    struct hearsay_did none = {.loss = (double)NAN};
    int code = check_open(h, "hearsay_round");
    if (code != HEARSAY_OK)
        return code;
    if (turn_await(&h->turn, 0) == TURN_OVER)
        return over(h);
    if (!h->yours)
        return handle_fail(h, HEARSAY_USAGE,
                           "hearsay_round: the library still uses the tensors, expected "
                           "hearsay_wait() to return HEARSAY_OK first");
    const struct tensor *bad = tensors_first_not_finite(&h->tensors);
    if (bad != NULL)
        return handle_fail(h, HEARSAY_NOT_FINITE,
                           "tensor %s: found a value that is not finite; nothing of this round was "
                           "sent",
                           bad->name);
    h->yours = false;
    turn_hand_over(&h->turn, did != NULL ? did : &none);
    return wait_for_turn(h, deadline(timeout_s));
}

void hearsay_interrupt(struct hearsay *h)
{
    if (h != NULL)
        h->turn.interrupted = true;
}

int hearsay_leave(struct hearsay *h, double timeout_s)
{
    int code = check_open(h, "hearsay_leave");
    if (code != HEARSAY_OK)
        return code;
    uint64_t at_ns = deadline(timeout_s);
    handle_leave(h);
    do
        code = wait_for_turn(h, at_ns);
    while (code == HEARSAY_INTERRUPTED || code == HEARSAY_CALLBACK);
    return code;
}

uint32_t hearsay_steps(const struct hearsay *h)
{
    return h != NULL ? h->steps : 0;
}

uint64_t hearsay_rounds_done(const struct hearsay *h)
{
    return h != NULL ? h->round : 0;
}

uint64_t hearsay_rounds(const struct hearsay *h)
{
    /* The cast drops const: locking modifies `lock`, and nothing else is modified. */
    struct hearsay *unlocked = (struct hearsay *)h;
    if (h == NULL)
        return 0;
    uv_mutex_lock(&unlocked->lock);
    uint64_t n = h->n_rounds;
    uv_mutex_unlock(&unlocked->lock);
    return n;
}

int hearsay_keep(struct hearsay *h, const void *bytes, size_t n)
{
    const size_t most = (size_t)2 << 30;
    int code = check_open(h, "hearsay_keep");
    if (code != HEARSAY_OK)
        return code;
    if (!h->yours || (bytes == NULL && n > 0) || n > most)
        return handle_fail(h, HEARSAY_USAGE,
                           "hearsay_keep: found %zu bytes%s, expected at most 2^31, and a call "
                           "while the library does not use the tensors",
                           n, h->yours ? "" : " while the library uses the tensors");
    uint8_t *copy = malloc(n > 0 ? n : 1);
    if (copy == NULL)
        return handle_fail(h, HEARSAY_SYSTEM, "out of memory for the %zu bytes of hearsay_keep()",
                           n);
    if (n > 0)
        memcpy(copy, bytes, n);
    free(h->kept);
    h->kept = copy;
    h->n_kept = n;
    h->kept_round = h->round;
    h->kept_read = false;
    return HEARSAY_OK;
}

const void *hearsay_kept(const struct hearsay *h, size_t *n, uint64_t *round)
{
    bool there = h != NULL && h->yours && h->kept_read && h->kept != NULL;
    if (n != NULL)
        *n = there ? h->n_kept : 0;
    if (round != NULL)
        *round = there ? h->kept_round : 0;
    return there ? h->kept : NULL;
}

/* ---- Functions that query the state ---- */

const char *hearsay_error(const struct hearsay *h)
{
    return h != NULL ? h->error : "the handle is NULL";
}

const char *hearsay_verdict(const struct hearsay *h)
{
    return h != NULL && h->ended ? h->verdict : "";
}

int hearsay_exit_code(const struct hearsay *h)
{
    return h != NULL && h->ended ? h->exit_code : -1;
}

const char *hearsay_run(struct hearsay *h)
{
    if (h == NULL)
        return "";
    uv_mutex_lock(&h->lock);
    memcpy(h->run_said, h->run_text, sizeof h->run_said);
    uv_mutex_unlock(&h->lock);
    return h->run_said;
}

uint16_t hearsay_port(const struct hearsay *h)
{
    return h != NULL && h->driver != NULL ? uv_driver_port(h->driver) : 0;
}

/* Copies all figures of the peer. `v->codec` points into the handle. */
static void copy_values(struct hearsay *h, struct figure_values *v)
{
    uv_mutex_lock(&h->lock);
    *v = h->seen;
    v->node.n_rounds = h->n_rounds;
    v->bytes_copied = h->copied;
    memcpy(h->codec_said, h->codec, sizeof h->codec_said);
    uv_mutex_unlock(&h->lock);
    v->codec = h->codec_said;
}

/* Fills in struct hearsay_figures. A new figure needs no field here: hearsay_figures_json() returns
 * all figures. */
static void fill_figures(const struct figure_values *v, struct hearsay_figures *f)
{
    const struct node_progress *p = &v->node;
    *f = (struct hearsay_figures){.size = f->size,
                                  .round = p->round,
                                  .rounds = p->n_rounds,
                                  .settle_rounds = p->settle_rounds,
                                  .rounds_done = p->rounds_done,
                                  .rounds_skipped = p->rounds_skipped,
                                  .drift = p->drift,
                                  .relative_drift = p->relative_drift,
                                  .drift_round = p->drift_round,
                                  .loss = p->loss,
                                  .accuracy = p->accuracy,
                                  .test_loss = p->test_loss,
                                  .accuracy_round = p->accuracy_round,
                                  .gamma = p->gamma,
                                  .n_live = p->n_live,
                                  .n_edges = p->n_edges,
                                  .bytes_sent = p->bytes_sent,
                                  .bytes_received = p->bytes_received,
                                  .bytes_copied = v->bytes_copied,
                                  .compute_s = p->compute_s,
                                  .mix_s = p->mix_s,
                                  .wait_s = p->wait_s};
    snprintf(f->codec, sizeof f->codec, "%s", v->codec);
    snprintf(f->phase, sizeof f->phase, "%s", figure_phase(p->phase, p->holds));
}

int hearsay_figures(struct hearsay *h, struct hearsay_figures *f)
{
    struct hearsay_figures all;
    struct figure_values v;
    if (h != NULL && is_own_process(h) && h->stage != HANDLE_OPEN)
        return check_open(h, "hearsay_figures");
    if (h == NULL || !is_own_process(h))
        return h == NULL ? HEARSAY_USAGE : HEARSAY_FORKED;
    if (f == NULL || f->size < sizeof f->size)
        return handle_fail(h, HEARSAY_USAGE, "hearsay_figures: found a size of %zu, expected %zu",
                           f != NULL ? f->size : 0, sizeof all);
    all.size = f->size;
    copy_values(h, &v);
    fill_figures(&v, &all);
    memcpy(f, &all, f->size < sizeof all ? f->size : sizeof all);
    return HEARSAY_OK;
}

const char *hearsay_figures_json(struct hearsay *h)
{
    struct figure_values v;
    if (h == NULL || !is_own_process(h))
        return "";
    if (h->stage != HANDLE_OPEN && check_open(h, "hearsay_figures_json") != HEARSAY_OK)
        return "";
    copy_values(h, &v);
    free(h->figures_said);
    h->figures_said = uv_metrics_python(&v);
    if (h->figures_said == NULL)
        (void)handle_fail(h, HEARSAY_SYSTEM, "hearsay_figures_json: out of memory");
    return h->figures_said != NULL ? h->figures_said : "";
}
