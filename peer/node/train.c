/* peer/node/train.c -- the phases of a run: gathering, training, the last phase, serving. */
#include "peer/node/state.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The estimate has an error of its own: aim below the target. */
static const double final_margin = 0.8;

/* ---- the run ---- */

static int open_mixing(struct node *n)
{
    const struct run *r = &n->run;
    struct mixing_config c = {
        .segments = n->trainer.segments,
        .n_segments = n->trainer.n_segments,
        .spec = {[DELTA_FINAL] = r->final_compress, [DELTA_CATCHUP] = "fp16"},
        .fixed_gamma = r->gamma_auto ? 0 : r->gamma,
        .mixer = mixer_all[r->mixer],
        .error_feedback = r->error_feedback,
        .complete = strcmp(r->topology, "complete") == 0,
        .run_seed = r->seed,
        .draw_key =
            rng_key(r->seed, RNG_DRAW, rng_hash(n->config.name, strlen(n->config.name)), 0)};
    bool by_drift = strcmp(r->compress, RUN_AUTO) == 0;
    if (!by_drift)
        c.spec[DELTA_RUN] = r->compress;
    for (uint32_t i = 0; i < LADDER_RUNGS && by_drift; i++)
        c.spec[DELTA_RUNG + i] = ladder_spec[i];
    ladder_init(&n->ladder);
    n->by_drift = by_drift;
    int err = mixing_init(&n->mixing, &c);
    if (err != 0)
        return err;
    n->before = by_drift ? malloc(n->mixing.dim * sizeof *n->before) : NULL;
    if (by_drift && n->before == NULL) {
        mixing_close(&n->mixing);
        return -ENOMEM;
    }
    n->trainer.init(n->trainer.self, n->mixing.x0);
    mixing_start(&n->mixing);
    packet_pool_init(&n->models, mixing_model_bytes(&n->mixing));
    return 0;
}

void train_take_run(struct node *n, const struct run *run)
{
    char error[RUN_ERROR_MAX];
    if (n->ready) { /* Ours was only a proposal: give it up. */
        edges_close_all(n);
        train_close(n);
        n->view = 0;
    }
    n->run = *run;
    n->n_run_text = run_text(run, n->run_text);
    n->has_run = true;
    if (n->config.make_trainer(n->config.make_trainer_self, &n->run, &n->trainer, error) != 0) {
        node_note(n, NOTE_ERROR, "%s", error);
        node_end(n, 2);
        return;
    }
    if (open_mixing(n) != 0) {
        node_note(n, NOTE_ERROR, "out of memory for %zu parameters", n->trainer.n_params);
        node_end(n, 1);
        return;
    }
    n->ready = true;
}

void train_close(struct node *n)
{
    if (!n->ready)
        return;
    packet_release(n->job.snapshot);
    n->job.snapshot = NULL;
    packet_release(n->held);
    n->held = NULL;
    mixing_close(&n->mixing);
    packet_pool_close(&n->models);
    free(n->before);
    n->before = NULL;
    free(n->job.keys);
    free(n->job.pairs);
    n->job = (struct node_job){0};
    n->ready = n->has_model = false;
}

/* ---- gathering: a run, a model, enough members, open edges ---- */

static struct link *donor(struct node *n)
{
    struct link *best = NULL;
    for (size_t i = 0; i < NODE_LINKS_MAX; i++) {
        struct link *l = &n->links[i];
        if (link_talks(l) && !l->doomed && l->same_run && l->started && l->number != n->model_link
            && (best == NULL || l->round > best->round))
            best = l;
    }
    return best;
}

/* The run's initial model, or, in the middle of a run, a neighbour's. */
static void get_model(struct node *n)
{
    bool asked = n->model_link != UINT32_MAX;
    if (asked && node_link(n, n->model_link) != NULL && n->now_us - n->model_asked_us < MODEL_US)
        return;
    struct link *l = donor(n);
    if (l != NULL) {
        uint8_t out[16];
        struct wire_model_req m = {.round = 0};
        n->model_link = l->number;
        n->model_asked_us = n->now_us;
        node_send(n, l, false, out, wire_put_model_req(out, sizeof out, &m), NULL);
        return;
    }
    n->model_link = UINT32_MAX;
    bool waits = n->config.n_bootstrap > 0 && !links_any(n) && n->now_us - n->begun_us < GRACE_US;
    n->has_model = !waits;
}

void train_model(struct node *n, struct link *l, const struct wire_message *m)
{
    const struct wire_model *model = &m->model;
    if (l->number != n->model_link || n->has_model || !n->ready) {
        node_violation(n, l, "MODEL not asked for");
        return;
    }
    if (model->payload.n != mixing_model_bytes(&n->mixing)) {
        node_violation(n, l, "bad MODEL");
        return;
    }
    if (mixing_take_model(&n->mixing, model->payload.p) != 0) {
        node_violation(n, l, "MODEL is not finite");
        return;
    }
    n->round = model->round < n->run.rounds ? model->round : n->run.rounds;
    n->has_model = true;
    n->model_link = UINT32_MAX;
    node_note(n, NOTE_INFO, "joined the run at round %llu of %llu", (unsigned long long)n->round,
              (unsigned long long)n->run.rounds);
}

static bool joining(const struct node *n)
{
    for (size_t i = 0; i < NODE_LINKS_MAX; i++)
        if (n->links[i].used && n->links[i].same_run && n->links[i].started)
            return true;
    return n->round > 0;
}

static void gather(struct node *n)
{
    if (!n->has_model) {
        get_model(n);
        return; /* Edges are made in the next step. */
    }
    size_t self, count = members_vertices(n->members, n->vertices, &self);
    if (count < n->run.min_peers && !joining(n)) {
        n->gathered_us = 0;
        return;
    }
    struct link *ahead = donor(n);
    if (n->round == 0 && ahead != NULL && ahead->round > n->eccentricity + 2) {
        n->has_model = false; /* They are in the middle: not from the start. */
        return;
    }
    if (n->gathered_us == 0)
        n->gathered_us = n->now_us;
    if (n->view != members_view(n->members))
        return;
    bool quiet = edges_open(n) == n->n_edges && n->now_us - n->opened_us > QUIET_US;
    if (!quiet && n->now_us - n->gathered_us < OPENING_US)
        return;
    n->phase = NODE_TRAINING;
    n->idle_since_us = n->exchange_us = n->now_us;
    for (size_t i = 0; i < NODE_LINKS_MAX; i++)
        if (link_talks(&n->links[i]))
            links_say_hello(n, &n->links[i]); /* We have started. */
}

/* ---- phases ---- */

/* Edges whose other end is final mix no more, once what is ready is done. */
static void end_edges(struct node *n)
{
    for (size_t i = 0; i < n->n_edges; i++) {
        struct neighbour *b = n->edges[i];
        const struct member *m = members_find(n->members, b->edge.id);
        /* Their word comes behind their last delta. Where it got lost with a
         * session, their record says the same, without that order. */
        bool quiet = b->link == NULL || n->now_us - n->exchange_us > STUCK_US;
        bool final = m != NULL && m->record->state == RECORD_FINISHED && quiet;
        bool half_done = edge_ready(&b->edge) && n->phase != NODE_SERVING;
        if ((b->edge.ending || final) && !half_done)
            b->edge.state = EDGE_DONE;
    }
}

double train_own_distance(const struct node *n)
{
    const struct sketch_figures *f = mixing_figures(&n->mixing);
    double shrunk = n->mixing.local2 / f->own_local2;
    if (f->own_window <= n->settling_window)
        return (double)INFINITY;
    if (n->run.policy != RUN_SYNC || !(shrunk < 0.25) || f->own_window < n->settling_window + 2)
        return f->own_relative;
    return 2 * sqrt(shrunk) * f->own_relative;
}

uint32_t train_settled(const struct node *n)
{
    if (n->phase != NODE_SETTLING || !(train_own_distance(n) <= final_margin * n->run.final_drift))
        return 0;
    uint32_t least = SETTLED_FAR;
    for (size_t i = 0; i < n->n_edges; i++) {
        const struct edge *e = &n->edges[i]->edge;
        if (e->state == EDGE_OPEN && e->settled < least)
            least = e->settled;
    }
    return least + 1;
}

uint64_t train_beat(const struct node *n)
{
    return n->round + n->settle_rounds;
}

/* The latest beat of the other end that we know by its deltas. */
static uint64_t their_beat(const struct edge *e)
{
    uint64_t beat = e->run_round;
    for (int i = 0; i < 2; i++)
        if (e->got[i].full && e->got[i].head.run_round > beat)
            beat = e->got[i].head.run_round;
    return beat;
}

/* In lock step nobody runs ahead of an open edge. Beats are compared, not
 * exchanges: after a lost session an edge stands at another round than the
 * rest, and waiting for exchanges can then go round in a circle. Among all who
 * wait, somebody's beat is the least; what it knows of the others may be old,
 * so once nothing moves any more it goes by their heartbeats. */
static bool waits_for(const struct node *n, const struct neighbour *b)
{
    const struct edge *e = &b->edge;
    if (e->state != EDGE_OPEN || b->grace || e->cur.payload == NULL || edge_ready(e)
        || their_beat(e) >= train_beat(n))
        return false;
    bool stuck = n->now_us - n->exchange_us > STUCK_US && n->now_us - n->idle_since_us > STUCK_US;
    return !(stuck && b->link != NULL && b->link->round >= train_beat(n));
}

static bool must_wait(const struct node *n)
{
    bool any = false;
    if (n->now_us < n->not_before_us)
        return true;
    for (size_t i = 0; i < n->n_edges; i++) {
        const struct edge *e = &n->edges[i]->edge;
        if (n->run.policy == RUN_SYNC && waits_for(n, n->edges[i]))
            return true;
        any |= edge_ready(e) || (e->state == EDGE_OPEN && e->cur.payload == NULL);
    }
    return n->phase == NODE_SETTLING && !any;
}

/* The model is final when no exchange of ours is half done. */
static bool drained(const struct node *n)
{
    for (size_t i = 0; i < n->n_edges; i++) {
        const struct edge *e = &n->edges[i]->edge;
        if (edge_ready(e) || (e->state == EDGE_OPEN && e->cur.payload != NULL))
            return false;
    }
    return true;
}

static bool lonely(const struct node *n)
{
    for (size_t i = 0; i < n->n_edges; i++)
        if (n->edges[i]->edge.state != EDGE_DONE)
            return false;
    return true;
}

/* The drift was measured in this phase, and is over the target. */
static bool known_apart(const struct node *n)
{
    bool known = mixing_figures(&n->mixing)->own_window > n->settling_window;
    return known && !(train_own_distance(n) <= final_margin * n->run.final_drift);
}

/* Some replica is of no model yet: mixing parts models, whatever they measured before.
 * (Some are a round older than others: the margin.) */
static bool replicas_lag(const struct node *n)
{
    for (size_t i = 0; i < n->n_edges; i++)
        if (mixing_lags(&n->mixing, &n->edges[i]->edge, final_margin * n->run.final_drift))
            return true;
    return false;
}

/* Agreement on a model says nothing of what it is worth. */
static void judge(struct node *n)
{
    char *why = n->progress.diverged;
    if (why[0] != '\0' || verdict_ran_away(&n->verdict, why))
        node_note(
            n, NOTE_WARNING,
            "the run diverged: %s. A lower --lr, a denser --compress or --gamma auto may help",
            why);
}

static void settle(struct node *n)
{
    mixing_settle(&n->mixing, known_apart(n));
    if (replicas_lag(n)) /* Only windows that begin from now on count. */
        n->settling_window = mixing_figures(&n->mixing)->own_window + 1;
    bool late = n->settle_rounds >= SETTLE_ROUNDS_MAX || n->progress.diverged[0] != '\0'
                || n->now_us - n->exchange_us > STALL_US;
    if (late && !n->draining)
        node_note(n, NOTE_WARNING, "the last phase ended without reaching --final-drift");
    if (late || n->run.final_drift <= 0 || lonely(n) || train_settled(n) > n->eccentricity)
        n->draining = true;
    /* A neighbour that lives but says nothing more must not hold us for ever. */
    if (n->draining && (drained(n) || late)) {
        judge(n);
        work_last(n);
    } else if (!must_wait(n)) {
        work_start(n);
    }
}

/* Our model is final; stay for the neighbours that still mix. */
static void serve(struct node *n)
{
    bool mute = n->now_us - n->idle_since_us > STALL_US;
    for (size_t i = 0; i < n->n_edges; i++)
        if (!mute
            && (n->edges[i]->edge.state == EDGE_OPEN || n->edges[i]->edge.state == EDGE_ASKING))
            return;
    node_end(n, n->progress.diverged[0] != '\0');
}

void train_update(struct node *n)
{
    if (n->working || n->over || !n->ready)
        return;
    end_edges(n);
    switch (n->phase) {
    case NODE_GATHERING:
        gather(n);
        break;
    case NODE_TRAINING:
        if (n->round >= n->run.rounds) {
            n->phase = NODE_SETTLING;
            /* In lock step all begin a window now (who has to catch up, as soon
             * as it can); else wait for the next. */
            n->window_due = n->run.policy == RUN_SYNC;
            n->settling_window =
                mixing_figures(&n->mixing)->own_window + (n->run.policy != RUN_SYNC);
            n->exchange_us = n->now_us;
            settle(n);
        } else if (!must_wait(n)) {
            work_start(n);
        }
        break;
    case NODE_SETTLING:
        settle(n);
        break;
    case NODE_SERVING:
        serve(n);
        break;
    case NODE_LEFT:
        break;
    }
}
