/* peer/api/simulate.c -- runs many handles over a simulated network. One thread runs the simulation
 * and lets one handle's caller train at a time. */
#include "nn/math/c_locale.h"
#include "nn/math/number.h"
#include "peer/api/handle.h"
#include "peer/run/exit.h"
#include "peer/sim/world.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One simulation and its handles. Freed when the last handle is closed. */
struct simulation
{
    struct sim_config config;
    struct sim_world *world;
    /* Array of config.n_peers handles. The handles are borrowed. */
    struct hearsay **handle;
    uv_thread_t thread;
    uv_mutex_t lock; /* Guards `n_open`, which all callers' threads change. */
    uint32_t n_open; /* Number of handles that are not closed. */
};

/* ---- Functions of the simulation's thread ---- */

static int make_trainer(void *self, uint32_t peer, const struct run *run, struct trainer *t,
                        char error[RUN_ERROR_MAX])
{
    const struct simulation *s = self;
    return handle_make_trainer(s->handle[peer], run, t, error);
}

static void configure(void *self, uint32_t peer, struct node_config *c)
{
    const struct simulation *s = self;
    struct hearsay *h = s->handle[peer];
    settings_limits(h->o, c);
    if (h->evaluate == NULL)
        c->evaluate_every = 0;
}

static void see(const struct simulation *s, uint32_t peer)
{
    uint64_t sent, received;
    const struct node *n = sim_node(s->world, peer);
    sim_totals(s->world, peer, &sent, &received);
    if (n != NULL)
        handle_update_figures(s->handle[peer], n, sent, received);
}

static void measured(void *self, uint32_t peer)
{
    see(self, peer);
}

static void note(void *self, uint32_t peer, const struct node_note *said)
{
    const struct simulation *s = self;
    handle_note(s->handle[peer], said->level, said->module, said->text);
}

/* Ends one peer: writes its verdict and its final model to the handle, and wakes the caller. */
static void end(struct simulation *s, uint32_t peer)
{
    struct hearsay *h = s->handle[peer];
    const struct segment *segments;
    size_t n_segments, n_params;
    const struct node *n = sim_node(s->world, peer);
    int code = CMD_FAILED;
    (void)sim_ended(s->world, peer, &code);
    if (n != NULL) {
        see(s, peer);
        handle_decide_verdict(h, n, code);
        const float *x = node_model(n, &segments, &n_segments, &n_params);
        handle_give_model(h, x);
    }
    turn_over(&h->turn);
}

/* Main function of the simulation's thread. */
static void run(void *self)
{
    struct simulation *s = self;
    (void)c_locale_enter();
    while (sim_step(s->world))
        ;
    for (uint32_t i = 0; i < s->config.n_peers; i++)
        end(s, i);
}

/* ---- Functions that the callers' threads call ---- */

static void free_simulation(struct simulation *s)
{
    if (s->world != NULL)
        sim_close(s->world);
    uv_mutex_destroy(&s->lock);
    free(s->handle);
    free(s);
}

/* Closes one handle. Closing the last handle joins the simulation's thread and frees the
 * simulation. */
void handle_stop_simulated(struct hearsay *h)
{
    struct simulation *s = h->simulation;
    uv_mutex_lock(&s->lock);
    bool last = --s->n_open == 0;
    uv_mutex_unlock(&s->lock);
    if (turn_await(&h->turn, 0) != TURN_OVER)
        /* The simulation still uses this handle, so the memory of the handle must not be freed. */
        h->stuck = true;
    if (!last)
        return;
    (void)uv_thread_join(&s->thread);
    free_simulation(s);
    h->stuck = false;
}

/* Sets one property of the simulated network, such as "latency-us=1000". Returns false if the name
 * is unknown or the value is out of range. */
static bool take_word(struct sim_config *c, const char *name, const char *value)
{
    struct
    {
        const char *name;
        double most;
        int64_t *whole;
        double *real;
    } const words[] = {
        {"latency-us", 1e9, &c->latency_us, NULL}, {"jitter-us", 1e9, &c->jitter_us, NULL},
        {"step-us", 1e9, &c->step_us, NULL},       {"bandwidth", 1e15, NULL, &c->bytes_per_s},
        {"cut-rate", 0.9, NULL, &c->cut_rate},     {"seed", 9e15, (int64_t *)&c->seed, NULL}};
    double v;
    uint64_t n;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(name, words[i].name) != 0)
            continue;
        if (words[i].whole != NULL) {
            bool good = number_whole(value, &n) && (double)n <= words[i].most;
            *words[i].whole = good ? (int64_t)n : 0;
            return good;
        }
        *words[i].real = 0;
        if (!number_real(value, &v) || !(v >= 0) || !(v <= words[i].most))
            return false;
        *words[i].real = v;
        return true;
    }
    return false;
}

static int take_network(struct hearsay *h, struct sim_config *c, const char *network)
{
    char *copy = strdup(network != NULL ? network : ""), *rest = copy, *one;
    int code = copy != NULL ? HEARSAY_OK : handle_fail(h, HEARSAY_SYSTEM, "out of memory");
    while (code == HEARSAY_OK && (one = strsep(&rest, " \t\n")) != NULL) {
        char *equals = strchr(one, '=');
        if (*one == '\0')
            continue;
        if (equals != NULL)
            *equals = '\0';
        if (equals == NULL || !take_word(c, one, equals + 1))
            code = handle_fail(
                h, HEARSAY_USAGE,
                "the network: found '%.40s%s%.40s', expected NAME=NUMBER, with latency-us, "
                "jitter-us, bandwidth, step-us, cut-rate or seed as NAME, and NUMBER in its range",
                one, equals != NULL ? "=" : "", equals != NULL ? equals + 1 : "");
    }
    if (code == HEARSAY_OK && c->bytes_per_s > 0 && c->bytes_per_s < SIM_LEAST_BYTES_PER_S)
        code = handle_fail(h, HEARSAY_USAGE,
                           "bandwidth: found %g, expected 0 or at least %d bytes per second",
                           c->bytes_per_s, SIM_LEAST_BYTES_PER_S);
    free(copy);
    return code;
}

/* Prepares one handle. If "min-peers" is not set, it is set to `n`, so the run starts when all
 * handles are members. */
static int prepare(struct hearsay *h, size_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%zu", n);
    bool given = false;
    for (size_t i = 0; i < h->n_words; i++)
        given |= strncmp(h->word[i], "--min-peers=", 12) == 0;
    int code = given ? HEARSAY_OK : hearsay_set(h, "min-peers", text);
    return code == HEARSAY_OK ? handle_prepare_simulated(h) : code;
}

/* Gives all handles the initial model of the handle with the option "initial", or else of the first
 * handle. */
static void use_one_initial_model(struct hearsay *const *h, size_t n)
{
    size_t from = 0;
    while (from < n && !handle_is_initial(h[from]))
        from++;
    from = from < n ? from : 0;
    for (size_t i = 0; i < n; i++)
        if (!h[i]->by_model && !h[from]->by_model)
            layout_copy_initial(&h[i]->config.node.run, &h[from]->config.node.run);
}

static void describe_or_none(const struct tensors *t, size_t i, char out[TENSORS_ERROR_MAX])
{
    if (i < t->n)
        tensors_describe(t, i, out);
    else
        snprintf(out, TENSORS_ERROR_MAX, "missing");
}

/* Checks that handle `i` describes the same run as the first handle, with equal tensors and
 * options. */
static int same_run(struct hearsay *first, struct hearsay *h, size_t i)
{
    char a[WIRE_RUN_MAX + 1], b[WIRE_RUN_MAX + 1], why[RUN_IDENTITY_WHY_MAX];
    size_t k;
    if (!first->by_model && !h->by_model
        && tensors_first_difference(&first->tensors, &h->tensors, &k)) {
        char found[TENSORS_ERROR_MAX], expected[TENSORS_ERROR_MAX];
        describe_or_none(&h->tensors, k, found);
        describe_or_none(&first->tensors, k, expected);
        return handle_fail(first, HEARSAY_USAGE,
                           "peer-%zu and peer-0 have different runs: tensor %zu is %s at peer-%zu "
                           "and %s at peer-0",
                           i, k + 1, found, i, expected);
    }
    run_text(&first->config.node.run, a);
    run_text(&h->config.node.run, b);
    if (run_identity_differ(a, b, why) == 0)
        return HEARSAY_OK;
    return handle_fail(first, HEARSAY_USAGE, "peer-%zu and peer-0 have different runs: %s", i, why);
}

static int start(struct simulation *s, struct hearsay *first)
{
    sigset_t all, before;
    int err = sim_open(&s->world, &s->config);
    if (err < 0)
        return handle_fail(first, handle_code(err), "the simulation cannot begin: %s; %s",
                           strerror(-err),
                           first->last_error[0] != '\0' ? first->last_error : "see the notes");
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    err = uv_thread_create(&s->thread, run, s);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err == 0 ? HEARSAY_OK
                    : handle_fail(first, HEARSAY_SYSTEM, "no thread: %s", strerror(-err));
}

static struct simulation *make(struct hearsay *const *h, size_t n)
{
    struct simulation *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->handle = calloc(n, sizeof(struct hearsay *));
    if (s->handle == NULL || uv_mutex_init(&s->lock) < 0) {
        free(s->handle);
        free(s);
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        s->handle[i] = h[i];
    s->n_open = (uint32_t)n;
    s->config = (struct sim_config){.n_peers = (uint32_t)n,
                                    .seed = 1,
                                    .latency_us = 1000,
                                    .step_us = 5000,
                                    .make_trainer = make_trainer,
                                    .self = s,
                                    .configure = configure,
                                    .measured = measured,
                                    .note = note};
    return s;
}

static int check(struct hearsay *const *h, size_t n)
{
    if (h == NULL || n == 0 || h[0] == NULL)
        return HEARSAY_USAGE;
    if (n > WIRE_MEMBERS_MAX)
        return handle_fail(h[0], HEARSAY_USAGE, "found %zu peers, expected at most %d", n,
                           WIRE_MEMBERS_MAX);
    for (size_t i = 0; i < n; i++) {
        bool again = false;
        for (size_t k = 0; k < i; k++)
            again |= h[k] == h[i];
        if (h[i] == NULL || again || h[i]->stage != HANDLE_NEW)
            return handle_fail(h[0], HEARSAY_USAGE, "handle %zu: found %s, expected a new handle",
                               i,
                               h[i] == NULL ? "NULL"
                               : again      ? "the same handle twice"
                                            : "an open handle");
    }
    return HEARSAY_OK;
}

int hearsay_open_simulated(struct hearsay *const *h, size_t n, const char *network)
{
    C_LOCALE_HERE;
    int code = check(h, n);
    if (code != HEARSAY_OK)
        return code;
    struct simulation *s = make(h, n);
    if (s == NULL)
        return handle_fail(h[0], HEARSAY_SYSTEM, "out of memory");
    code = take_network(h[0], &s->config, network);
    for (size_t i = 0; i < n && code == HEARSAY_OK; i++) {
        h[i]->simulation = s;
        h[i]->place = (uint32_t)i;
        code = prepare(h[i], n);
        if (code != HEARSAY_OK && i > 0)
            (void)handle_fail(h[0], code, "peer-%zu: %s", i, h[i]->error);
    }
    if (code == HEARSAY_OK)
        use_one_initial_model(h, n);
    for (size_t i = 1; i < n && code == HEARSAY_OK; i++)
        code = same_run(h[0], h[i], i);
    if (code == HEARSAY_OK) {
        s->config.run = h[0]->config.node.run;
        code = start(s, h[0]);
    }
    for (size_t i = 0; i < n; i++) {
        if (code == HEARSAY_OK)
            h[i]->stage = HANDLE_OPEN;
        else
            h[i]->simulation = NULL;
    }
    for (size_t i = 0; i < n && code != HEARSAY_OK; i++)
        handle_undo(h[i]);
    if (code != HEARSAY_OK)
        free_simulation(s);
    return code;
}
