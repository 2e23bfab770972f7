/* peer/node/step/job_figures.c -- turns the results of a job into figures for users. Belongs to
 * job.c. */
#include "peer/node/step/job_state.h"

#include "peer/node/step/phases_state.h"

#include <math.h>

/* Returns the mean consensus step size of the edges that have one, or NaN. */
static double mean_gamma(const struct edges *es)
{
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < edges_count(es); i++) {
        const struct gamma *g = &edges_at(es, i)->edge.gamma;
        if (!g->begun && !g->fixed)
            continue;
        sum += g->value;
        count++;
    }
    return count > 0 ? sum / (double)count : (double)NAN;
}

/* Returns whether the latest drift figure comes from a tree aggregation (sums over all members
 * along spanning trees) in the consensus phase. */
static bool surveyed_last(const struct job *j)
{
    const struct mixing *m = &j->workshop->mixing;
    return !mixing_undisturbed(m) && mixing_figures(m)->round >= j->workshop->run.rounds;
}

/* Returns the duration of the job without its evaluation, in microseconds, because evaluations do
 * not count for a peer's speed. */
static int64_t worked_us(const struct job *j)
{
    int64_t us = phases_busy_us(j->phases) - j->evaluate_us;
    return us > 0 ? us : 0;
}

/* Returns whether the run never had another member. False if this is not certain: --min-peers is
 * above 1, or this peer has met none of the peers that the bootstrap list names. */
static bool is_only_member(const struct job *j)
{
    return j->workshop->run.min_peers == 1 && members_count(j->env->members) == 1
           && !connection_diagnostics_lonely(j->phases->sessions);
}

void job_report(struct job *j)
{
    const struct run_context *w = j->workshop;
    struct node_progress *p = &j->figures;
    const struct sketch *k = &w->mixing.sketch;
    p->local_steps = j->steps ? j->n_steps : 0;
    p->steps_done += p->local_steps;
    if (j->steps) {
        edges_worked(j->edges, j->n_steps, worked_us(j));
        p->loss = j->trained.loss;
        bandwidth_estimate_worked(&j->goodput, j->compute_us + j->mix_us);
        p->loss_untold = j->trained.n_samples == 0 && isnan(p->loss);
        if (!j->ran_away && !p->loss_untold)
            divergence_loss(&j->verdict, j->round, p->loss, j->trained.n_samples, w->trainer.guess);
    }
    divergence_drift(&j->verdict, k->figures.xi, k->figures.relative, k->figures.round,
                     w->run.rounds);
    if (j->evaluate) {
        p->accuracy = j->tested.accuracy;
        p->test_loss = j->tested.loss;
        p->accuracy_samples = j->tested.n_samples;
        p->accuracy_round = j->evaluate_beat;
    }
    p->evaluated = j->evaluate;
    p->drift = k->figures.xi;
    p->relative_drift = k->figures.relative;
    p->drift_round = k->figures.round;
    p->own_distance = k->figures.own;
    /* The final drift figure comes from the last tree aggregation (sums along spanning trees) of
     * the consensus phase. In three cases the bound on the distance of this peer's model from the
     * mean is reported instead: (1) the consensus phase had no aggregation, (2) an averaging pass
     * was exact, (3) sketches (projections of models) are not trusted. */
    bool passed = edges_pass(j->edges)->over;
    bool doubted = j->phases->chain.counts || passed;
    if (j->phases->phase == NODE_FINISHING && surveyed_last(j) && !doubted) {
        p->relative_drift = run_context_rounded(w, k->figures.relative);
    } else if (j->phases->phase == NODE_FINISHING) {
        double norm = passed                           ? sqrt(vec_norm2(w->mixing.x, w->mixing.dim))
                      : mixing_undisturbed(&w->mixing) ? sqrt(k->at.q)
                                                       : k->figures.own / k->figures.own_relative;
        p->relative_drift = phases_own_distance(j->phases);
        p->drift = p->relative_drift * norm;
        p->drift_round = passed    ? edges_pass(j->edges)->over_beat
                         : doubted ? phases_beat(j->phases)
                                   : j->phases->bound_round;
    }
    /* Without neighbours no distance was measured. The only member's model is the mean itself. */
    if (edges_count(j->edges) == 0)
        p->drift = p->relative_drift = p->own_distance = is_only_member(j) ? 0 : (double)NAN;
    p->gamma = mean_gamma(j->edges);
    p->rung = w->by_drift ? codec_levels_spec[codec_levels_rung(&w->ladder)] : NULL;
    p->rung_by = w->by_drift ? codec_levels_by(&w->ladder) : NULL;
    p->goodput = bandwidth_estimate_bytes_per_s(&j->goodput);
    p->excess = w->ladder.excess;
    p->drift_target = w->by_drift ? w->run.drift_target : (double)NAN;
    p->statistics_apart =
        w->mixing.statistics.n > 0 ? statistics_apart(&w->mixing.statistics) : (double)NAN;
    p->compute_s += (double)j->compute_us * 1e-6;
    p->mix_s += (double)j->mix_us * 1e-6;
}
