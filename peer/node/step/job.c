/* peer/node/step/job.c -- the worker's job: planned on the loop thread, done on the worker
 * thread. */
#include "peer/node/step/job.h"

#include "peer/node/edge/parts.h"
#include "peer/node/edge/rounds.h"
#include "peer/node/figure.h"
#include "peer/node/step/job_state.h"
#include "peer/node/step/phases_state.h"
#include "peer/run/exit.h"
#include "topology/topology.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* PARTS_MAX: maximum number of fragments of a delta that are sent early. A neighbour's queue has
 * room for these and for the rest of the delta. */
enum { PARTS_MAX = 3 };

struct job *job_open(struct env *env, const struct sessions *s, struct run_context *w,
                     struct edges *es, struct phases *ph, struct model_server *o)
{
    struct figure_values unknown;
    struct job *j = calloc(1, sizeof *j);
    if (j == NULL)
        return NULL;
    *j = (struct job){.env = env, .workshop = w, .edges = es, .phases = ph, .orders = o};
    figure_init(&unknown);
    j->figures = unknown.node;
    divergence_init(&j->verdict);
    bandwidth_estimate_init(&j->goodput, env, s, w);
    return j;
}

/* Checks what holds between two jobs. O(1). */
static void job_check(const struct job *j)
{
    assert(!j->working);
    assert(j->part == JOB_WHOLE || j->steps);
    assert(!j->last || (j->part == JOB_WHOLE && !j->steps && j->evaluate));
    assert(!j->steps || j->n_steps > 0);
    assert(!j->members || j->n_keys <= j->cap_keys);
    assert(j->n_parts <= PARTS_MAX && (j->n_parts == 0) == (j->told == 0));
}

void job_close(struct job *j)
{
    assert(j == NULL || (!j->working && j->keys == NULL && j->pairs == NULL));
    free(j);
}

void job_drop(struct job *j)
{
    assert(!j->working);
    packet_release(j->snapshot);
    free(j->keys);
    free(j->pairs);
    rollback_close(&j->rollback);
    bandwidth_estimate_init(&j->goodput, j->env, j->goodput.sessions, j->workshop);
    j->snapshot = NULL;
    j->keys = NULL;
    j->pairs = NULL;
    j->cap_keys = j->cap_pairs = 0;
    j->members = false;
    j->members_error = 0;
}

/* ---- plan, on the loop's thread ---- */

void job_share(struct job *j)
{
    const struct members *members = j->env->members;
    size_t self, count = members_vertices(members, j->env->vertices, &self);
    if (count > j->cap_keys) {
        uint64_t *keys = realloc(j->keys, count * sizeof *keys);
        if (keys == NULL)
            /* Memory is exhausted. The old assignment of samples stays in use and is still valid,
             * because every sample has an owner. */
            return;
        j->keys = keys;
        j->cap_keys = count;
    }
    for (size_t i = 0; i < count; i++) {
        const struct record *r = members_at(members, j->env->vertices[i])->record;
        j->keys[i] = rng_hash(r->name, strlen(r->name));
    }
    j->n_keys = count;
    j->members = true;
}

/* Plans what this job does with the i-th edge. */
static void plan_edge(struct job *j, size_t i)
{
    const struct run_context *w = j->workshop;
    const struct phases *ph = j->phases;
    struct mixing_moment now = {
        .round = ph->round,
        .n_rounds = w->run.rounds,
        .lock_step = w->run.policy == RUN_SYNC,
        .settling = ph->phase == NODE_CONSENSUS,
        .draining = ph->draining && !scheduler_view_owed(ph, edges_at(j->edges, i)),
        .barred = edges_proven(j->edges, edges_at(j->edges, i)),
        .codec = w->by_drift ? DELTA_RUNG + codec_levels_rung(&w->ladder) : DELTA_RUN};
    rounds_plan(j->edges, edges_at(j->edges, i), phases_next_beat(ph), &now);
    edges_join(j->edges, i, &now);
}

/* Reserves a packet for a copy of the model if another peer has requested one. */
static void plan_snapshot(struct job *j)
{
    bool due = model_server_due(j->orders, j->phases->round, true, &j->at_window);
    if (due && j->snapshot == NULL)
        j->snapshot = packet_get(&j->workshop->models);
}

/* Ends the node. Memory is exhausted, and a job cannot run if only a part of its exchanges is
 * planned. */
static void no_memory(struct job *j)
{
    env_note(j->env, NOTE_ERROR, "out of memory for a job");
    env_end(j->env, 1);
}

/* Copies what the worker must know of the edges, because the loop thread may change the edges
 * during the job. */
static void set_moment(struct job *j)
{
    struct edges *es = j->edges;
    size_t count = 0;
    /* Sketches (projections of models) that are averaged by gossip need the spectral gap. After a
     * fault (mixing_undisturbed() is false) the drift comes from sums along a spanning tree, for
     * which the gap is not needed. In the consensus phase phases.c computes the gap in any case. */
    if (mixing_undisturbed(&j->workshop->mixing))
        edges_measure_gap(es);
    if (edges_count(es) > j->cap_pairs) {
        struct sketch_pair **grown =
            realloc(j->pairs, edges_count(es) * sizeof(struct sketch_pair *));
        if (grown == NULL) {
            no_memory(j);
            return;
        }
        j->pairs = grown;
        j->cap_pairs = edges_count(es);
    }
    bool missing = false;
    for (size_t i = 0; i < edges_count(es); i++) {
        const struct neighbour *b = edges_at(es, i);
        const struct edge *e = &b->edge;
        if (e->state != EDGE_DONE && e->opened)
            /* Sketches also need the state of edges that were open earlier and are paused now. */
            j->pairs[count++] = edges_sketch(es, i);
        missing |= e->state != EDGE_DONE && !e->opened && b->wanted && !b->aside;
    }
    j->moment = (struct sketch_moment){.view = edges_status(es).view,
                                       .place = *edges_place(es),
                                       .draining = j->phases->draining,
                                       .anew = phases_take_window(j->phases),
                                       .pair = j->pairs,
                                       .n_pairs = count,
                                       .gap = edges_gap(es),
                                       .alone = edges_count(es) == 0,
                                       .missing = missing,
                                       .round = phases_beat(j->phases)};
}

/* With --compress auto, chooses the codec level by the latest drift figure and by the capacity of
 * the links. */
static void choose_rung(struct job *j)
{
    struct run_context *w = j->workshop;
    struct codec_levels *l = &w->ladder;
    const struct sketch_figures *known = mixing_figures(&w->mixing);
    uint64_t now = j->phases->round;
    if (!w->by_drift || j->phases->phase != NODE_TRAINING)
        return;
    codec_levels_look(l, w->run.drift_target, edges_status(j->edges).spread, known->xi,
                      known->round, now);
    bandwidth_estimate_look(&j->goodput, j->edges, l, now);
}

/* Decides whether this round evaluates the model, and on how many samples. Without options of the
 * user, both follow from the length of the run. */
static void plan_evaluation(struct job *j)
{
    const struct node_config *c = &j->env->config;
    const struct run_context *w = j->workshop;
    struct evaluation e = {.every = c->evaluate_every, .samples = c->evaluate_samples};
    if (c->evaluate_every == NODE_EVALUATE_AUTO)
        e = evaluation_plan(w->run.rounds, w->trainer.batch
                                               * run_steps_before(&w->run, w->run.rounds)
                                               / w->run.rounds);
    if (c->evaluate_samples > 0)
        e.samples = c->evaluate_samples;
    j->evaluate = j->steps && evaluation_due(&e, w->run.rounds, j->round);
    j->evaluate_samples = e.samples;
    j->evaluate_beat = phases_beat(j->phases);
}

/* Plans whether this round takes local steps and evaluates the model. */
static void plan_training(struct job *j)
{
    const struct phases *ph = j->phases;
    const struct run_context *w = j->workshop;
    j->round = ph->round;
    j->steps = ph->steps;
    j->trained.abandoned = false;
    j->first = ph->done == 0;
    j->n_steps = w->run.local_steps > 0
                     ? run_steps_at(&w->run, ph->round)
                     : edges_local_steps(j->edges, run_steps(&w->run), run_steps_most(&w->run));
    j->renews = ph->phase == NODE_CONSENSUS && w->trainer.statistics != NULL
                && !w->mixing.mixer->round_protocol;
    plan_evaluation(j);
    j->part = j->steps && w->run.overlap == RUN_OVERLAP_ROUND ? JOB_AHEAD : JOB_WHOLE;
    j->told = j->n_parts = 0;
    parts_begin(j->edges);
    j->compute_us = j->mix_us = j->evaluate_us = 0;
}

/* Warns if fewer edges are open than --byzantine needs, because clipping then stops almost all
 * exchange. Neighbours that are proven Byzantine count among the N members that --byzantine N
 * tolerates. */
static void tell_few(struct job *j, uint32_t degree)
{
    uint32_t tolerate = j->workshop->run.tolerate, n_barred = j->workshop->mixing.n_barred;
    uint32_t need = tolerate > n_barred ? 2 * (tolerate - n_barred) + 2 : 0;
    bool few = degree < need;
    if (few && !j->few)
        env_note(j->env, NOTE_WARNING,
                 "round %llu: %u edges are open, but --byzantine %u needs %u: neighbours' models "
                 "get little weight until more edges are open",
                 (unsigned long long)j->phases->round, degree, tolerate, need);
    j->few = few;
}

/* Returns the momentum of exchanges in the consensus phase, in units of 1 / WIRE_MOMENTUM_ONE. 0:
 * no momentum. With --byzantine it is 0, because momentum would amplify the pull of a Byzantine
 * neighbour. Without lock step it is 0, because the best value is not known. */
static uint32_t momentum(const struct job *j)
{
    const struct run *run = &j->workshop->run;
    bool known = edges_gap(j->edges) > 0;
    double m = known && run->policy == RUN_SYNC && run->tolerate == 0
                   ? edges_status(j->edges).momentum
                   : 0;
    return (uint32_t)(m * (WIRE_MOMENTUM_ONE - 1));
}

/* Returns this peer's estimate of the mean speed of all peers, for announcements: local steps per
 * second, times 1000. 0: the run does not use it (only --local-steps auto does). */
static uint64_t pace(const struct job *j)
{
    double mean = 1e3 * edges_status(j->edges).pace;
    return j->workshop->run.local_steps == 0 && mean < 1e15 ? (uint64_t)mean : 0;
}

void job_start(struct job *j)
{
    struct mixing *mixing = &j->workshop->mixing;
    const struct phases *ph = j->phases;
    uint32_t degree = 0;
    assert(ph->phase == NODE_TRAINING || ph->phase == NODE_CONSENSUS);
    assert(!job_is_half_done(j) && j->snapshot == NULL);
    j->last = false;
    choose_rung(j);
    if (mixing_begin(mixing, edges_count(j->edges)) != 0) {
        no_memory(j);
        return;
    }
    edges_shut_barred(j->edges);
    averaging_pass_plan(j->edges, phases_beat(ph));
    for (size_t i = 0; i < edges_count(j->edges); i++) {
        const struct neighbour *b = edges_at(j->edges, i);
        degree += b->edge.state == EDGE_OPEN && !b->aside;
        plan_edge(j, i);
    }
    tell_few(j, degree);
    plan_training(j);
    if (j->steps && j->rollback.trainer == NULL
        && rollback_open(&j->rollback, &j->workshop->trainer) != 0) {
        no_memory(j);
        return;
    }
    set_moment(j);
    plan_snapshot(j);
    struct mixing_announcement says = {.run_round = phases_next_beat(ph),
                                       .checkpoint = checkpoint_due(ph->checkpoint),
                                       .degree = degree > 0 ? degree : 1,
                                       .settled = ph->settled,
                                       .pace = pace(j),
                                       .momentum = momentum(j),
                                       .clean = edges_pass(j->edges)->clean};
    if (mixing_plan(mixing, &says) != 0) {
        no_memory(j);
        return;
    }
    job_check(j);
    j->figures.exchanges += mixing_commits(mixing);
    j->figures.wait_s += (double)(j->env->now_us - ph->idle_since_us) * 1e-6;
    j->working = j->env->fx->work = true;
}

bool job_abandoned(const struct job *j)
{
    return j->steps && j->part != JOB_AHEAD && j->trained.abandoned;
}

bool job_is_half_done(const struct job *j)
{
    return j->part == JOB_AHEAD && !j->working;
}

void job_go_on(struct job *j)
{
    assert(job_is_half_done(j) && !j->env->over);
    j->part = JOB_STEPS;
    j->working = j->env->fx->work = true;
}

void job_last(struct job *j)
{
    assert(!j->working && !job_is_half_done(j) && j->phases->phase == NODE_FINISHING);
    int err = mixing_begin(&j->workshop->mixing, 0);
    assert(err == 0);
    j->part = JOB_WHOLE;
    j->compute_us = j->mix_us = j->evaluate_us = 0;
    j->round = j->phases->round;
    j->steps = j->renews = false;
    j->evaluate = true;
    j->evaluate_samples = 0;
    j->evaluate_beat = phases_beat(j->phases);
    j->last = true;
    set_moment(j);
    plan_snapshot(j);
    job_check(j);
    j->working = j->env->fx->work = true;
}

/* ---- the job ---- */

/* Factor masking (--factor-masking): clears the momentum of the values that were sent. */
static void mask_momentum(struct run_context *w)
{
    const float *sent = mixing_sent(&w->mixing);
    if (w->run.factor_masking && sent != NULL && w->trainer.sent != NULL)
        w->trainer.sent(w->trainer.self, sent);
}

/* Scales this peer's update with --local-steps auto, so that a peer with more local steps does not
 * get more weight (pace.h). */
static void weigh_steps(const struct job *j)
{
    const struct run_context *w = j->workshop;
    float *x = w->mixing.x, weight = (float)pace_weight(j->n_steps, run_steps(&w->run));
    if (w->run.local_steps > 0 || weight == 1)
        return;
    for (size_t i = 0; i < w->mixing.dim; i++)
        x[i] = w->before[i] + weight * (x[i] - w->before[i]);
}

/* Called on the worker thread when all parameters from index `from` on have their final values.
 * Encodes these parameters. If enough bytes are new, announces a fragment of the delta to the loop
 * thread. If `from` is 0, does nothing: the local steps are over, and encode() makes the rest of
 * the delta. */
static void layers_done(void *self, size_t from)
{
    struct job *j = self;
    const struct mixing *m = &j->workshop->mixing;
    if (from == 0)
        return;
    size_t n = mixing_part(&j->workshop->mixing, from);
    if (n < j->told + mixing_part_least(m) || j->n_parts == PARTS_MAX)
        return;
    j->told = n;
    j->n_parts++;
    j->env->config.part(j->env->config.part_self, n);
}

/* Called on the worker thread after each batch. Reports progress in evaluations and in the first
 * job, whose durations the job watchdog cannot know in advance. Any other job that takes much
 * longer than earlier jobs counts as stalled. */
static void batch_done(void *self)
{
    struct job *j = self;
    int64_t now = j->clock_us();
    if (!j->signs || now - j->signed_us < JOB_PROGRESS_US)
        return;
    j->signed_us = now;
    j->env->config.sign(j->env->config.sign_self);
}

void job_part(struct job *j, size_t n)
{
    if (j->working)
        parts_send(j->edges, n);
}

/* Takes the local steps and the outer step. If training diverged, returns to the last good model.
 * Measures how far the model moved, for --compress auto, --max-pull and
 * --trigger. */
static void train(struct job *j)
{
    struct run_context *w = j->workshop;
    struct trainer *t = &w->trainer;
    size_t dim = w->mixing.dim;
    if (w->before != NULL)
        memcpy(w->before, w->mixing.x, dim * sizeof *w->before);
    rollback_mark(&j->rollback, w->mixing.x, j->round);
    if (w->mixing.parts.of != NULL && t->watch != NULL && j->env->config.part != NULL)
        t->watch(t->self, layers_done, j);
    t->steps(t->self, w->mixing.x, j->round, j->n_steps, &j->trained);
    if (j->trained.abandoned)
        return;
    weigh_steps(j);
    if (w->outer.u != NULL)
        outer_optimiser_step(&w->outer, w->mixing.x, w->before, j->round);
    j->ran_away = rollback_look(&j->rollback, w->mixing.x, &j->trained);
    if (j->ran_away)
        mixing_drop_parts(&w->mixing);
    if (j->ran_away && w->outer.u != NULL)
        outer_optimiser_reset(&w->outer);
    double step2 = w->before != NULL ? vec_dist2(w->mixing.x, w->before, dim) : 0;
    if (w->by_drift)
        codec_levels_moved(&w->ladder, step2);
    if ((w->run.pull > 0 || w->run.trigger > 0) && !j->ran_away)
        mixing_moved(&w->mixing, step2);
}

/* The mean of the running statistics of different models is not the statistics of the mean model.
 * If the exchanges of a job in the consensus phase move the model by more than `far`, the trainer
 * therefore computes the statistics again. The next exchanges average them. A smaller move leaves
 * the statistics good enough. Returns the duration in microseconds. 0: the statistics are kept. */
static int64_t renew_statistics(struct job *j)
{
    enum { BATCHES = 20 };
    static const double far = 0.01; /* Relative to the length of the model. */
    struct run_context *w = j->workshop;
    struct mixing *m = &w->mixing;
    int64_t begin = j->clock_us();
    if (!(vec_dist2(m->x, w->before, m->dim) > far * far * vec_norm2(m->x, m->dim)))
        return 0;
    j->signs = true;
    w->trainer.statistics(w->trainer.self, m->x, j->round, BATCHES);
    statistics_replaced(&m->statistics);
    w->n_renewed++;
    return j->clock_us() - begin;
}

/* Mixes the complete exchanges into the model, then makes the copy that another peer requested.
 * Returns the time in which the trainer computed running statistics, in microseconds. */
static int64_t mix(struct job *j)
{
    struct run_context *w = j->workshop;
    if (j->renews)
        memcpy(w->before, w->mixing.x, w->mixing.dim * sizeof *w->before);
    mixing_mix(&w->mixing);
    int64_t trainer_us = j->renews ? renew_statistics(j) : 0;
    mixing_beat(&w->mixing, &j->moment);
    if (j->snapshot != NULL && (!j->at_window || mixing_window_began(&w->mixing)))
        run_context_copy_model(w, j->snapshot);
    if (w->by_drift && mixing_window_began(&w->mixing))
        codec_levels_mark(&w->ladder, j->round);
    return trainer_us;
}

static void encode(struct job *j)
{
    struct run_context *w = j->workshop;
    mixing_encode(&w->mixing);
    if (w->by_drift)
        codec_levels_lagged(&w->ladder, mixing_lag2(&w->mixing));
    mask_momentum(w);
}

/* Computes the evidence of the final model. Uses the model as it is stored: values that the trainer
 * holds in 16 bits are rounded to 16 bits. */
static void collect_evidence(struct job *j)
{
    const struct mixing *m = &j->workshop->mixing;
    const float *x = mixing_held_model(m);
    float sketch[SKETCH_K];
    uint64_t hash = rng_hash(x, m->n_floats * sizeof *x);
    sketch_project(&m->sketch, x, sketch);
    finish_evidence_of(&j->evidence, sketch, vec_norm2(x, m->dim), hash != 0 ? hash : 1);
}

/* With --overlap 1 a round has two jobs. The second job does the evaluation, so that it does not
 * delay the deltas that the first job has made. */
void job_work(struct job *j, int64_t (*clock_us)(void))
{
    struct run_context *w = j->workshop;
    struct trainer *t = &w->trainer;
    int64_t begin = clock_us();
    assert(j->working);
    j->clock_us = clock_us;
    j->signed_us = begin;
    if (t->signs != NULL && j->env->config.sign != NULL)
        t->signs(t->self, batch_done, j);
    if (j->members && t->members != NULL)
        j->members_error = t->members(t->self, j->keys, j->n_keys,
                                      rng_hash(j->env->config.name, strlen(j->env->config.name)));
    int64_t statistics_us = j->part != JOB_STEPS ? mix(j) : 0;
    int64_t mixed = clock_us();
    j->signs = true;
    if (j->evaluate && j->part != JOB_AHEAD)
        t->evaluate(t->self, w->mixing.x, j->evaluate_samples, &j->tested);
    int64_t trains = clock_us();
    j->signs = j->first;
    if (j->steps && j->part != JOB_AHEAD)
        train(j);
    int64_t trained = clock_us();
    if (j->part != JOB_STEPS)
        encode(j);
    if (j->last)
        collect_evidence(j);
    j->evaluate_us += trains - mixed;
    j->compute_us += trained - trains + statistics_us;
    j->mix_us += clock_us() - trained + mixed - begin - statistics_us;
}

/* Warns about each edge whose two ends have models that move apart without bound. In the consensus
 * phase with a fixed gamma, the run has then diverged. */
static void tell_runaways(struct job *j)
{
    for (size_t i = 0; i < edges_count(j->edges); i++) {
        const struct edge *e = &edges_at(j->edges, i)->edge;
        const struct gamma *g = &e->gamma;
        const struct member *m = members_find(j->env->members, e->id);
        if (!edges_new_runaway(j->edges, i))
            continue;
        if (g->fixed && j->phases->phase == NODE_CONSENSUS)
            snprintf(j->figures.diverged, DIVERGENCE_TEXT,
                     "the models diverged from each other in the consensus phase at gamma %.3g",
                     g->value);
        env_note(j->env, NOTE_WARNING,
                 "round %llu: the distance to the model of %s grows every round: the consensus "
                 "step size (gamma) %s %.3g",
                 (unsigned long long)j->round, m != NULL ? m->record->name : "a neighbour",
                 g->fixed ? "is fixed at" : "is lowered to", g->fixed ? g->value : g->most);
    }
}

/* job_over() is also called after the node has ended, because the packets of the deltas must return
 * to their pool. */
void job_over(struct job *j)
{
    j->working = false;
    run_context_moved(j->workshop);
    mixing_finish(&j->workshop->mixing);
    j->figures.empty_deltas += j->workshop->mixing.n_empty;
    job_check(j);
}

/* Passes the copy of the model to the model server, if the worker has filled it. */
static void serve_snapshot(struct job *j)
{
    if (j->snapshot != NULL && j->snapshot->len == 0)
        /* No drift window (period of measurement) began in this job, so the worker has not filled
         * the packet. */
        packet_release(j->snapshot);
    else if (j->snapshot != NULL)
        model_server_serve(j->orders, j->snapshot, j->round, true);
    j->snapshot = NULL;
}

/* Warns after a rollback. After the first rollback training continues from the last good model.
 * After the second rollback the run has diverged and ends. */
static void tell_rollback(struct job *j)
{
    const struct rollback *r = &j->rollback;
    char text[ROLLBACK_TEXT];
    if (!j->steps || !j->ran_away)
        return;
    rollback_say(r, text);
    env_note(j->env, NOTE_WARNING, "%s", text);
    if (r->n > 1)
        rollback_why(r, j->figures.diverged);
}

/* Returns whether a parameter is too large for the model to be encoded. If so, reports that the
 * model diverged. */
static bool cannot_be_sent(struct job *j)
{
    if (!j->workshop->mixing.diverged)
        return false;
    snprintf(j->figures.diverged, DIVERGENCE_TEXT, "at round %llu a parameter was over 1e19",
             (unsigned long long)j->round);
    env_note(j->env, NOTE_ERROR, "the model diverged at round %llu: try a lower --lr",
             (unsigned long long)j->round);
    return true;
}

/* Warns after the last job, which has evaluated the final model, if nothing was learnt. */
static void judge_final_model(struct job *j)
{
    assert(j->last && !j->working);
    j->figures.unlearnt[0] =
        '\0'; /* The models may have been mixed again since an earlier last job. */
    if (!job_diverged(j)
        && divergence_learnt_nothing(&j->verdict, j->workshop->trainer.guess, &j->tested,
                                     j->figures.unlearnt))
        env_note(j->env, NOTE_WARNING, "the model is no better than guessing: %s. Try another --lr",
                 j->figures.unlearnt);
}

bool job_done(struct job *j)
{
    assert(!j->working && !j->env->over);
    if (j->members_error != 0)
        env_note(j->env, NOTE_WARNING,
                 "out of memory for a new share of the data: the old share stays in use");
    /* If the trainer could not take the new assignment of samples, the next job tries again. */
    j->members = j->members_error != 0;
    j->members_error = 0;
    edges_job_done(j->edges);
    if (j->part != JOB_AHEAD)
        job_report(j);
    serve_snapshot(j);
    if (j->part != JOB_AHEAD)
        tell_rollback(j);
    if (cannot_be_sent(j)) {
        env_end(j->env, CMD_APART);
        return false;
    }
    edges_reset_mismatched(j->edges);
    edges_judge(j->edges, j->phases->skipped);
    tell_runaways(j);
    if (j->last)
        judge_final_model(j);
    return true;
}

void job_judge(struct job *j)
{
    assert(!j->working && j->phases->phase == NODE_FINISHING);
    char *why = j->figures.diverged;
    if (why[0] != '\0' || divergence_ran_away(&j->verdict, why))
        env_note(j->env, NOTE_WARNING,
                 "the run diverged: %s. A lower --lr, a denser --compress or --gamma auto may help",
                 why);
}

bool job_diverged(const struct job *j)
{
    return j->figures.diverged[0] != '\0';
}

bool job_has_failed(const struct job *j)
{
    return j->rollback.n > 1;
}

void job_carried(struct job *j, const struct node_event *ev)
{
    bandwidth_estimate_carried(&j->goodput, j->edges, ev);
}

void job_state(struct job *j, struct state *s)
{
    struct node_progress *p = &j->figures;
    state_section(s, "job");
    divergence_state(&j->verdict, s);
    state_f64(s, &p->loss);
    state_f64(s, &p->accuracy);
    state_f64(s, &p->test_loss);
    state_f64(s, &p->compute_s);
    state_f64(s, &p->mix_s);
    state_f64(s, &p->wait_s);
    state_u64(s, &p->exchanges);
    state_u64(s, &p->steps_done);
    if (j->workshop->run.trigger > 0)
        state_u64(s, &p->empty_deltas);
    /* Checkpoints of older versions do not tell which model was evaluated. A figure without its
     * round is not shown. */
    if (state_has(s, "evaluation")) {
        state_section(s, "evaluation");
        state_u64(s, &p->accuracy_round);
        state_u64(s, &p->accuracy_samples);
    } else {
        p->accuracy = p->test_loss = (double)NAN;
    }
}

bool job_is_running(const struct job *j)
{
    return j->working;
}

bool job_takes_steps(const struct job *j)
{
    return j->steps;
}

uint32_t job_n_steps(const struct job *j)
{
    return j->n_steps;
}

bool job_is_ahead(const struct job *j)
{
    return j->working && j->part == JOB_AHEAD;
}

const struct node_progress *job_figures(const struct job *j)
{
    return &j->figures;
}

const struct finish_evidence *job_evidence(const struct job *j)
{
    return &j->evidence;
}
