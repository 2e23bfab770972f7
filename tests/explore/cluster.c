/* tests/explore/cluster.c -- a cluster of real nodes that train a quadratic model, with faults. */
#include "cluster.h"

#include "compress/compress.h"
#include "nn/math/rng.h"
#include "peer/node/state.h"
#include "topology/round_schedule.h"
#include "topology/topology.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const float eta = 0.05f, noise = 0.3f;

void cluster_wrong(struct cluster *c, enum wrong kind, const char *format, ...)
{
    struct finding *f = &c->out->first[kind];
    if (c->out->wrong & 1u << kind)
        return;
    c->out->wrong |= 1u << kind;
    f->at_us = sim_now_us(c->world);
    va_list args;
    va_start(args, format);
    vsnprintf(f->text, TEXT, format, args);
    va_end(args);
    if (c->all)
        cluster_mark(c, "WRONG: %s: %s", wrong_name[kind], f->text);
}

bool cluster_alive(const struct cluster *c, uint32_t peer)
{
    int code;
    return sim_node(c->world, peer) != NULL && !sim_ended(c->world, peer, &code);
}

struct node_progress cluster_progress(const struct cluster *c, uint32_t peer)
{
    struct node_progress p;
    node_progress(sim_node(c->world, peer), &p);
    return p;
}

const float *cluster_model(const struct cluster *c, uint32_t peer)
{
    const struct segment *s;
    size_t n, dim;
    return node_model(sim_node(c->world, peer), &s, &n, &dim);
}

/* ---- writing the trace ---- */

static void write_line(void *self, const char *line)
{
    fprintf(((struct cluster *)self)->out_trace, "%s\n", line);
}

/* Callback of the trace: writes the number of the peer with this identity as its name. Returns
 * false if no peer has the identity. */
static bool name_peer(void *self, const uint8_t id[WIRE_ID_BYTES], char out[TRACE_NAME_SIZE])
{
    const struct cluster *c = self;
    for (uint32_t i = 0; i < c->plan.n_peers; i++)
        if (memcmp(sim_id(c->world, i), id, WIRE_ID_BYTES) == 0) {
            snprintf(out, TRACE_NAME_SIZE, "%" PRIu32, i);
            return true;
        }
    return false;
}

static void begin_trace(struct cluster *c, FILE *f, bool all)
{
    c->out_trace = f;
    c->all = all;
    c->trace = trace_open(
        &(struct trace_config){.line = write_line, .name = name_peer, .self = c, .all = all});
    assert(c->trace != NULL);
    for (uint32_t i = 0; i < c->plan.n_peers; i++) {
        char name[TRACE_NAME_SIZE];
        snprintf(name, sizeof name, "%" PRIu32, i);
        c->trace_peer[i] = trace_add_peer(c->trace, name);
        assert(c->trace_peer[i] != NULL);
    }
}

void cluster_mark(struct cluster *c, const char *format, ...)
{
    char text[2 * TEXT];
    if (c->trace == NULL)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    trace_mark(c->trace, sim_now_us(c->world), text);
}

/* ---- the trainer: |x - target|^2 / 2, and noise ---- */

static void init_model(void *self, float *x)
{
    const struct watched *p = self;
    for (size_t k = 0; k < p->cluster->plan.dim; k++)
        x[k] = 1;
}

/* Adds the change of the model by this round's training to c->moved[]. This is the change by the
 * local steps, x - before. With --outer it is the change by the outer step, which follows the local
 * steps. */
static void add_moved(struct watched *p, const float *before, const float *x, uint64_t round)
{
    struct cluster *c = p->cluster;
    const struct outer_optimiser *o = &sim_node(c->world, p->index)->workshop.outer;
    bool continues = o->u != NULL && (o->round == UINT64_MAX || o->round == round);
    for (size_t k = 0; k < c->plan.dim; k++) {
        double d = (double)x[k] - (double)before[k];
        double u = (continues ? o->momentum * (double)o->u[k] : 0) + d;
        c->moved[k] += o->u != NULL ? o->lr * (d + o->momentum * u) : d;
    }
}

static void steps(void *self, float *x, uint64_t round, uint32_t n, struct trainer_report *report)
{
    struct watched *p = self;
    struct cluster *c = p->cluster;
    const float *before = p->history + round * c->plan.dim;
    memcpy(p->history + round * c->plan.dim, x, c->plan.dim * sizeof *x);
    p->has[round] = p->held_round == round ? HISTORY_MIXED : HISTORY_MODEL;
    p->counted[round] = check_counted(c, p->index);
    p->done++;
    uint64_t key = rng_key(c->plan.seed, RNG_TEST, p->index, round);
    bool plain = c->plan.momentum[0] == '\0';
    if (!plain)
        momentum_steps(p, x, round, n);
    /* The last segment of the model is updated first, as in backpropagation. */
    for (size_t i = 2; i-- > 0 && plain;) {
        const struct segment *g = &c->segment[i];
        for (uint32_t s = 0; s < n; s++)
            for (size_t k = g->offset; k < g->offset + g->n; k++) {
                float z = rng_unit_at(key, s * c->plan.dim + k);
                x[k] -= eta * (x[k] - p->target[k] + noise * (2 * z - 1));
            }
        if (p->done_layer != NULL)
            p->done_layer(p->done_arg, g->offset);
    }
    p->done_layer = NULL;
    add_moved(p, before, x, round);
    *report = (struct trainer_report){.loss = 1, .n_samples = 32};
}

static void watch_layers(void *self, void (*done)(void *arg, size_t from), void *arg)
{
    struct watched *p = self;
    p->done_layer = done;
    p->done_arg = arg;
}

static void evaluate(void *self, const float *x, uint64_t most, struct trainer_report *report)
{
    struct watched *p = self;
    float *spoiled = (float *)(uintptr_t)x;
    /* `most` is 0 (all samples) only when the trainer evaluates a final model. */
    bool final = most == 0;
    for (size_t k = 0; k < p->cluster->plan.dim && final && p->spoils; k++) {
        p->cluster->moved[k] -= (double)x[k];
        spoiled[k] *= k % 2 == 0 ? 1.02f : 0.98f;
        p->cluster->moved[k] += (double)x[k];
    }
    p->spoils &= !final;
    *report = (struct trainer_report){.loss = 1, .n_samples = 1};
}

/* Callback for a change of the members. A trainer with samples would now assign its samples again.
 * This trainer has no samples, so the change is only written to the trace. */
static int members(void *self, const uint64_t *keys, size_t n, uint64_t own)
{
    const struct watched *p = self;
    char text[64];
    (void)keys, (void)own;
    snprintf(text, sizeof text, "shares the samples among %zu", n);
    if (p->cluster->trace != NULL)
        trace_say(p->cluster->trace_peer[p->index], sim_now_us(p->cluster->world), text);
    return 0;
}

static int make_trainer(void *self, uint32_t peer, const struct run *run, struct trainer *t,
                        char error[RUN_ERROR_MAX])
{
    struct cluster *c = self;
    (void)run, (void)error;
    *t = (struct trainer){.n_params = c->plan.dim,
                          .segments = c->segment,
                          .n_segments = 2,
                          .self = &c->peer[peer],
                          .init = init_model,
                          .steps = steps,
                          .watch = watch_layers,
                          .evaluate = evaluate,
                          .members = members};
    c->peer[peer].resumed_round = 0;
    momentum_open(&c->peer[peer], t);
    return 0;
}

/* ---- callbacks of the nodes ---- */

static void note(void *self, uint32_t peer, const struct node_note *n)
{
    struct cluster *c = self;
    struct watched *p = &c->peer[peer];
    if (c->plan.liars != 0 && cluster_honest(c, peer))
        liars_check_note(c, peer, n->text);
    /* A message with this text says that a collective (such as an all-reduce) could not compute the
     * mean of all models. The peer then keeps its own model, which changes the sum of all
     * models. */
    c->whole &= strstr(n->text, "no mean of all models") == NULL;
    p->resumes |= strncmp(n->text, "resuming from ", 14) == 0;
    if (sscanf(n->text, "joined the run at round %" SCNu64, &p->joined_round) != 1)
        return;
    p->joined = true;
    c->whole = false;
}

static void worked(void *self, uint32_t peer)
{
    if (!cluster_honest(self, peer))
        return;
    struct cluster *c = self;
    struct node_progress p = cluster_progress(c, peer);
    if (p.holds)
        c->peer[peer].held_round = p.round;
    check_exchanges(self, peer);
    liars_check_model(self, peer);
}

static void measured(void *self, uint32_t peer)
{
    struct cluster *c = self;
    if (c->out->settles_us == 0 && cluster_progress(c, peer).phase == NODE_CONSENSUS)
        c->out->settles_us = sim_now_us(c->world);
    if (cluster_honest(self, peer))
        check_progress(self, peer);
}

static void watch(void *self, uint32_t peer, const struct node_event *ev, uint32_t other)
{
    struct cluster *c = self;
    (void)other;
    if (c->trace != NULL) {
        /* Copy of the event with the time of the simulation, because the clocks of the peers
         * differ. */
        struct node_event at = *ev;
        at.now_us = sim_now_us(c->world);
        trace_event(c->trace_peer[peer], sim_node(c->world, peer), &at);
    }
    conformance_event(c, peer, ev);
    check_event(c, peer, ev);
}

static void stepped(void *self, uint32_t peer, const struct node_event *ev,
                    const struct node_effects *fx)
{
    struct cluster *c = self;
    (void)ev;
    conformance_stepped(c, peer, fx);
    if (c->trace != NULL)
        trace_effects(c->trace_peer[peer], sim_node(c->world, peer), sim_now_us(c->world), fx);
}

static const char *const seeds[] = {"seed-0:1", "seed-1:1"};

/* Returns the number n of peers 0 to n - 1 whose addresses each process knows at its start: all
 * peers before the first one that starts late. 0: peers find each other by bootstrap names. */
static uint32_t n_known(const struct cluster *c)
{
    uint32_t first = 0, late = admission_later(&c->plan);
    for (uint32_t i = 0; i < c->plan.n_faults; i++)
        if (c->plan.fault[i].kind == FAULT_LATE)
            late |= c->plan.fault[i].a;
    while (first < c->plan.n_peers && !(late & UINT32_C(1) << first))
        first++;
    return c->plan.by_name ? 0 : first;
}

/* Returns the number of bootstrap names of each process. A process that knows all peers at its
 * start needs none, unless the plan has `forget` (--member-ttl). A split longer than --member-ttl
 * makes both sides drop each other's members, and only bootstrap names join the sides again. */
static uint32_t n_bootstrap(const struct cluster *c)
{
    bool none = n_known(c) == c->plan.n_peers && c->plan.forget_s <= 0;
    return none ? 0 : c->plan.n_peers > 2 ? 2 : 1;
}

uint32_t cluster_told(const struct cluster *c)
{
    uint32_t known = n_known(c), named = n_bootstrap(c);
    return (UINT32_C(1) << (known > named ? known : named)) - 1;
}

static void configure(void *self, uint32_t peer, struct node_config *n)
{
    struct cluster *c = self;
    n->patience_us = (int64_t)(c->plan.patience_s * 1e6);
    n->part_least = 1;
    n->worker_limit_us = (int64_t)(c->plan.worker_limit_s * 1e6);
    admission_configure(c, peer, n);
    conformance_configure(c, peer, n);
    n->n_known = n_known(c);
    n->n_bootstrap = n_bootstrap(c);
    if (n->n_bootstrap == 0)
        return;
    n->bootstrap = seeds;
    n->found = !c->plan.guests || peer == 0;
}

/* Resolves the bootstrap name seed-K to the address of peer K, unless a fault breaks bootstrap
 * names for this peer. */
static uint32_t resolve(void *self, uint32_t peer, const char *name,
                        const char *address[NODE_SEEDS_MAX])
{
    const struct cluster *c = self;
    bool broken = (c->unnamed & UINT32_C(1) << peer) != 0;
    address[0] = broken ? "nobody:1" : strcmp(name, seeds[0]) == 0 ? "peer-0:1" : "peer-1:1";
    return broken && c->names == 0 ? 0 : 1;
}

/* ---- setting up the simulation ---- */

static void set_spec(char out[RUN_SPEC_MAX], const char *spec)
{
    char error[COMPRESS_ERROR_MAX], canonical[COMPRESS_SPEC_MAX];
    if (strcmp(spec, RUN_AUTO) == 0)
        snprintf(canonical, sizeof canonical, "%s", spec);
    else if (compress_canonical(spec, canonical, error) != 0) {
        fprintf(stderr, "explore: %s\n", error);
        exit(2);
    }
    snprintf(out, RUN_SPEC_MAX, "%s", canonical);
}

void cluster_set_run(struct run *r, const struct plan *p)
{
    char error[TOPOLOGY_ERROR_MAX];
    *r = (struct run){.gamma = p->gamma,
                      .gamma_auto = p->gamma == 0,
                      .centre_momentum = 0.9,
                      .mixer = p->mixer,
                      .collective = p->collective,
                      .error_feedback = true,
                      .policy = p->async ? RUN_ASYNC : RUN_SYNC,
                      .seed = p->seed,
                      .rounds = p->rounds,
                      .min_peers = p->min_peers,
                      .drift_target = 1,
                      .final_drift = p->final_drift,
                      .quorum = p->quorum,
                      .tolerate = p->tolerate,
                      .overlap = p->overlap,
                      .trigger = p->trigger,
                      .local_steps = p->local_steps};
    snprintf(r->outer, sizeof r->outer, "%s", p->outer[0] != '\0' ? p->outer : "none");
    set_spec(r->compress, p->compress);
    set_spec(r->final_compress, "qsgd:4");
    /* With --byzantine the consensus phase uses the graph of training. The graph base:K in the
     * consensus phase makes an exact averaging pass (rounds after which all models are equal). Its
     * deltas are not compressed, because the pass needs whole models. */
    bool last = strcmp(p->final_topology, RUN_SAME) != 0 && p->tolerate == 0;
    snprintf(r->final_topology, sizeof r->final_topology, RUN_SAME);
    if (last && round_schedule_of(p->final_topology))
        set_spec(r->final_compress, "none");
    if (topology_canonical(p->topology, r->topology, error) != 0
        || (last && topology_canonical(p->final_topology, r->final_topology, error) != 0)) {
        fprintf(stderr, "explore: %s\n", error);
        exit(2);
    }
}

static void open_peer(struct cluster *c, uint32_t i)
{
    struct watched *p = &c->peer[i];
    struct rng rng = rng_stream(rng_key(c->plan.seed, RNG_TEST, i, 0x7a));
    *p = (struct watched){.cluster = c,
                          .index = i,
                          .named_as = i,
                          .n_lives = 1,
                          .drift_round = UINT64_MAX,
                          .held_round = UINT64_MAX};
    for (size_t k = 0; k < c->plan.dim; k++)
        p->target[k] = 1 + 0.5f * (float)rng_normal(&rng);
    p->kept = calloc(c->plan.n_peers, sizeof *p->kept);
    p->n_kept = calloc(c->plan.n_peers, sizeof *p->n_kept);
    p->history = calloc((c->plan.rounds + 1) * c->plan.dim, sizeof *p->history);
    p->has = calloc(c->plan.rounds + 1, 1);
    p->counted = calloc(c->plan.rounds + 1, sizeof *p->counted);
    assert(p->counted != NULL && p->kept != NULL && p->n_kept != NULL && p->history != NULL
           && p->has != NULL);
}

static void set_world(struct cluster *c)
{
    const struct plan *p = &c->plan;
    uint32_t n = p->dim - 8;
    c->segment[0] = (struct segment){.name = "w",
                                     .n = n,
                                     .rows = 5,
                                     .cols = n / 5,
                                     .n_dims = 2,
                                     .dims = {5, n / 5},
                                     .trained = true};
    c->segment[1] = (struct segment){.name = "b",
                                     .offset = n,
                                     .n = 8,
                                     .rows = 1,
                                     .cols = 8,
                                     .n_dims = 1,
                                     .dims = {8},
                                     .trained = true};
    c->config = (struct sim_config){.n_peers = p->n_peers,
                                    .seed = p->seed,
                                    .latency_us = p->latency_us,
                                    .jitter_us = p->jitter_us,
                                    .bytes_per_s = p->bytes_per_s,
                                    .step_us = p->step_us,
                                    .step_spread = p->step_spread,
                                    .cut_rate = p->cut_rate,
                                    .checkpoint_us = (int64_t)(p->checkpoint_s * 1e6),
                                    .disk_us = p->disk_us,
                                    .sessions = true,
                                    .make_trainer = make_trainer,
                                    .self = c,
                                    .configure = configure,
                                    .measured = measured,
                                    .note = note,
                                    .worked = worked,
                                    .watch = watch,
                                    .stepped = stepped,
                                    .resolve = resolve};
    cluster_set_run(&c->config.run, p);
    liars_set(c);
}

void cluster_run(const struct plan *p, struct explored *out, FILE *trace, bool all)
{
    struct cluster *c = calloc(1, sizeof *c);
    assert(c != NULL);
    *c = (struct cluster){.plan = *p, .out = out, .whole = p->liars == 0};
    *out = (struct explored){.drift = (double)NAN, .healed_s = (double)NAN, .worst_drift = 1};
    if (trace != NULL)
        begin_trace(c, trace, all);
    set_world(c);
    conformance_open(c);
    for (uint32_t i = 0; i < p->n_peers; i++)
        open_peer(c, i);
    if (sim_open(&c->world, &c->config) != 0) {
        fprintf(stderr, "explore: the world does not open\n");
        exit(2);
    }
    for (uint32_t i = 0; i < p->n_peers; i++)
        sim_set_clock(c->world, i, p->clock_ppm[i]);
    course_run(c);
    for (uint32_t i = 0; i < p->n_peers; i++)
        admission_look(c, i);
    conformance_end(c);
    check_end(c);
    out->n_events = sim_events(c->world);
    out->simulated_s = (double)sim_now_us(c->world) * 1e-6;
    sim_close(c->world);
    for (uint32_t i = 0; i < p->n_peers; i++) {
        momentum_close(&c->peer[i]);
        free(c->peer[i].kept);
        free(c->peer[i].n_kept);
        free(c->peer[i].history);
        free(c->peer[i].has);
        free(c->peer[i].counted);
    }
    trace_close(c->trace);
    free(c);
}
