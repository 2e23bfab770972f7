/* peer/node/work.c -- the worker's job: planned on the loop's thread, done on another. */
#include "peer/node/state.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- plan, on the loop's thread ---- */

/* We were away, or have just come: the run is further than we are. */
static void catch_up(struct node *n, uint64_t beat)
{
    if (beat <= train_beat(n))
        return;
    n->round = beat < n->run.rounds ? beat : n->run.rounds;
    if (n->phase == NODE_SETTLING)
        n->settle_rounds = beat - n->round;
}

/* The edge's task in this job. In lock step an exchange that commits may tell us that
 * the run is further than we are; the edges behind it already go by that. */
static void plan_edge(struct node *n, struct edge *e)
{
    struct mixing_moment now = {.round = n->round,
                                .n_rounds = n->run.rounds,
                                .lock_step = n->run.policy == RUN_SYNC,
                                .settling = n->phase == NODE_SETTLING,
                                .draining = n->draining,
                                .codec = n->by_drift ? DELTA_RUNG + n->ladder.rung : DELTA_RUN};
    mixing_join(&n->mixing, e, &now);
    if (now.lock_step && edge_ready(e))
        catch_up(n, edge_theirs(e)->head.run_round);
}

static void plan_snapshot(struct node *n)
{
    n->job.at_window = true; /* Unless one wants it anyhow. */
    for (size_t i = 0; i < NODE_LINKS_MAX; i++) {
        const struct link *l = &n->links[i];
        bool now = l->model_round <= n->round;
        if (!l->used || !l->model_wanted || !(now || l->model_round == WIRE_ROUND_WINDOW))
            continue;
        n->job.at_window &= !now;
        if (n->job.snapshot == NULL)
            n->job.snapshot = packet_get(&n->models);
    }
}

/* The worker's copy of what it needs to know of the edges. */
static void set_moment(struct node *n)
{
    struct node_job *j = &n->job;
    bool sync = n->run.policy == RUN_SYNC;
    size_t count = 0;
    if (n->n_edges > j->cap_pairs) {
        struct sketch_pair **grown = realloc(j->pairs, n->n_edges * sizeof(struct sketch_pair *));
        if (grown == NULL) {
            node_end(n, 1);
            return;
        }
        j->pairs = grown;
        j->cap_pairs = n->n_edges;
    }
    for (size_t i = 0; i < n->n_edges; i++)
        if (n->edges[i]->edge.state != EDGE_DONE && n->edges[i]->edge.opened)
            j->pairs[count++] = &n->edges[i]->edge.sketch; /* Paused ones, too. */
    j->moment = (struct sketch_moment){.view = n->view,
                                       .reach = n->reach,
                                       .lock_step = sync,
                                       .anew = n->window_due && n->phase == NODE_SETTLING,
                                       .pair = j->pairs,
                                       .n_pairs = count,
                                       .alone = n->n_edges == 0,
                                       .round = n->round};
    n->window_due = false;
}

/* --compress auto: by what the last job has learnt. */
static void choose_rung(struct node *n)
{
    const struct sketch_figures *known = mixing_figures(&n->mixing);
    if (n->by_drift && n->phase == NODE_TRAINING)
        ladder_look(&n->ladder, n->run.drift_target, n->spread, known->xi, known->round, n->round);
}

void work_start(struct node *n)
{
    struct node_job *j = &n->job;
    uint32_t degree = 0;
    choose_rung(n);
    if (mixing_begin(&n->mixing, n->n_edges) != 0) {
        node_note(n, NOTE_ERROR, "out of memory for a job");
        node_end(n, 1);
        return;
    }
    for (size_t i = 0; i < n->n_edges; i++) {
        struct edge *e = &n->edges[i]->edge;
        degree += e->state == EDGE_OPEN;
        plan_edge(n, e);
    }
    j->steps = n->phase == NODE_TRAINING && n->round < n->run.rounds;
    uint64_t every = n->config.evaluate_every;
    j->evaluate = j->steps && every > 0 && n->round > 0 && n->round % every == 0;
    j->evaluate_samples = n->config.evaluate_samples;
    set_moment(n);
    plan_snapshot(n);
    bool counts = j->steps || n->phase == NODE_SETTLING;
    struct mixing_announcement says = {.run_round = train_beat(n) + counts,
                                       .degree = degree > 0 ? degree : 1,
                                       .settled = train_settled(n)};
    if (mixing_plan(&n->mixing, &says) != 0) {
        node_note(n, NOTE_ERROR, "out of memory for a job");
        node_end(n, 1);
        return;
    }
    n->progress.exchanges += mixing_commits(&n->mixing);
    n->progress.wait_s += (double)(n->now_us - n->idle_since_us) * 1e-6;
    n->working = n->fx->work = true;
}

void work_last(struct node *n)
{
    n->phase = NODE_SERVING;
    int err = mixing_begin(&n->mixing, 0);
    assert(err == 0);
    n->job.steps = false;
    n->job.evaluate = true;
    n->job.evaluate_samples = 0;
    set_moment(n);
    plan_snapshot(n);
    n->working = n->fx->work = true;
}

/* ---- the job ---- */

/* Factor masking: what has gone out leaves the momentum, too. */
static void mask_momentum(struct node *n)
{
    const float *sent = mixing_sent(&n->mixing);
    if (n->run.factor_masking && sent != NULL && n->trainer.sent != NULL)
        n->trainer.sent(n->trainer.self, sent);
}

/* Local steps; with --compress auto, how far they go, too. */
static void train(struct node *n)
{
    struct trainer *t = &n->trainer;
    size_t dim = n->mixing.dim;
    if (n->by_drift)
        memcpy(n->before, n->mixing.x, dim * sizeof *n->before);
    t->steps(t->self, n->mixing.x, n->round, n->run.local_steps, &n->job.trained);
    if (n->by_drift)
        ladder_moved(&n->ladder, vec_dist2(n->mixing.x, n->before, dim));
}

/* On the worker's thread. */
void node_work(struct node *n, int64_t (*clock_us)(void))
{
    struct node_job *j = &n->job;
    struct trainer *t = &n->trainer;
    int64_t begin = clock_us();
    if (j->members && t->members != NULL)
        j->members_error = t->members(t->self, j->keys, j->n_keys,
                                      rng_hash(n->config.name, strlen(n->config.name)));
    mixing_mix(&n->mixing);
    mixing_beat(&n->mixing, &j->moment);
    if (j->snapshot != NULL && (!j->at_window || mixing_window_began(&n->mixing)))
        mixing_copy_model(&n->mixing, j->snapshot);
    int64_t mixed = clock_us();
    if (j->evaluate)
        t->evaluate(t->self, n->mixing.x, j->evaluate_samples, &j->tested);
    if (n->by_drift && mixing_window_began(&n->mixing))
        ladder_mark(&n->ladder, n->round);
    int64_t trains = clock_us();
    if (j->steps)
        train(n);
    int64_t trained = clock_us();
    mixing_encode(&n->mixing);
    if (n->by_drift)
        ladder_lagged(&n->ladder, mixing_lag2(&n->mixing));
    mask_momentum(n);
    j->compute_us = trained - trains;
    j->mix_us = clock_us() - trained + mixed - begin;
}

static double mean_gamma(struct node *n)
{
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < n->n_edges; i++) {
        const struct gamma *g = &n->edges[i]->edge.gamma;
        n->edges[i]->gamma = g->value;
        if (!g->begun && !g->fixed)
            continue;
        sum += g->value;
        count++;
    }
    return count > 0 ? sum / (double)count : (double)NAN;
}

/* Distances that grew without end are said, edge by edge. */
static void tell_runaways(struct node *n)
{
    for (size_t i = 0; i < n->n_edges; i++) {
        struct neighbour *b = n->edges[i];
        const struct gamma *g = &b->edge.gamma;
        const struct member *m = members_find(n->members, b->edge.id);
        bool told = g->n_runaways <= b->n_runaways;
        if (!told && g->fixed && n->phase == NODE_SETTLING)
            snprintf(n->progress.diverged, VERDICT_TEXT,
                     "in the last phase the models went apart at gamma %.3g", g->value);
        if (!told)
            node_note(n, NOTE_WARNING,
                      "round %llu: the distance to %s grows round after round: "
                      "gamma %s %.3g",
                      (unsigned long long)n->round, m != NULL ? m->record->name : "a neighbour",
                      g->fixed ? "is fixed at" : "lowered to", g->fixed ? g->value : g->most);
        b->n_runaways = g->n_runaways;
    }
}

static void report(struct node *n)
{
    const struct node_job *j = &n->job;
    struct node_progress *p = &n->progress;
    const struct sketch *k = &n->mixing.sketch;
    if (j->steps) {
        p->loss = j->trained.loss;
        verdict_loss(&n->verdict, n->round, p->loss, j->trained.n_samples);
    }
    verdict_drift(&n->verdict, k->figures.xi, k->figures.relative, k->figures.round, n->run.rounds);
    if (j->evaluate) {
        p->accuracy = j->tested.accuracy;
        p->test_loss = j->tested.loss;
    }
    p->evaluated = j->evaluate;
    p->drift = k->figures.xi;
    p->relative_drift = k->figures.relative;
    p->drift_round = k->figures.round;
    p->own_distance = k->figures.own;
    if (n->phase == NODE_SERVING) { /* The window's figure is of long ago. */
        p->relative_drift = train_own_distance(n);
        p->drift = p->relative_drift * sqrt(k->at.q);
        p->drift_round = n->round;
    }
    p->gamma = mean_gamma(n);
    p->rung = n->by_drift ? ladder_spec[n->ladder.rung] : NULL;
    p->excess = n->ladder.excess;
    p->drift_target = n->by_drift ? n->run.drift_target : (double)NAN;
    p->statistics_apart =
        n->mixing.statistics.n > 0 ? statistics_apart(&n->mixing.statistics) : (double)NAN;
    p->compute_s += (double)j->compute_us * 1e-6;
    p->mix_s += (double)j->mix_us * 1e-6;
    p->n_edges = (uint32_t)edges_open(n);
    size_t self;
    p->n_live = (uint32_t)members_vertices(n->members, n->vertices, &self);
}

static void restart_mismatched(struct node *n)
{
    for (size_t i = 0; i < n->n_edges; i++) {
        struct neighbour *b = n->edges[i];
        if (b->edge.n_mismatches == 0)
            continue;
        b->edge.n_mismatches = 0;
        node_note(n, NOTE_WARNING, "replicas differ on an edge: reset");
        b->edge.epoch = 0;
        b->must_ask = true;
    }
}

void work_done(struct node *n)
{
    struct node_job *j = &n->job;
    if (j->members_error != 0)
        node_note(n, NOTE_WARNING, "out of memory for a new share of the data: the old one stays");
    j->members = j->members_error != 0; /* Tried again in the next job. */
    j->members_error = 0;
    mixing_finish(&n->mixing);
    report(n);
    if (j->snapshot != NULL && j->snapshot->len == 0)
        packet_release(j->snapshot); /* No window began. */
    else if (j->snapshot != NULL)
        serve_models(n, j->snapshot);
    j->snapshot = NULL;
    if (n->mixing.diverged || (j->steps && !isfinite(j->trained.loss))) {
        snprintf(n->progress.diverged, VERDICT_TEXT,
                 "at round %llu a loss or a parameter was not finite or over 1e19",
                 (unsigned long long)n->round);
        node_note(n, NOTE_ERROR, "the model diverged at round %llu: try a lower --lr",
                  (unsigned long long)n->round);
        node_end(n, 1);
        return;
    }
    restart_mismatched(n);
    tell_runaways(n);
    n->round += j->steps;
    n->settle_rounds += n->phase == NODE_SETTLING;
    n->idle_since_us = n->now_us;
    if (n->run.policy == RUN_ASYNC && n->phase == NODE_SETTLING)
        n->not_before_us =
            n->now_us + (int64_t)(n->progress.compute_s * 1e6 / (double)(n->round + 1));
    n->fx->measured = true;
    if (n->phase != NODE_SERVING)
        return;
    n->fx->write_model = true;
    members_set_state(n->members, RECORD_FINISHED);
    for (size_t i = 0; i < NODE_LINKS_MAX; i++)
        if (link_talks(&n->links[i]))
            serve_say_finished(n, &n->links[i]);
}
