/* gossip/exchange/codec_levels.c -- the list of codec levels of --compress auto, and the rule that
 * changes the level. */
#include "gossip/exchange/codec_levels.h"

#include <math.h>
#include <stddef.h>

const char *const codec_levels_spec[CODEC_LEVELS_RUNGS] = {
    "topk:0.003+qsgd:4", "topk:0.01+qsgd:4", "topk:0.03+qsgd:4", "topk:0.1+qsgd:4",
    "topk:0.3+qsgd:4",   "qsgd:4",           "qsgd:8",           "fp16"};

/* Weight of the newest round in two moving averages: the squared length of the local steps, and the
 * squared lag (the part of a model that its delta leaves unsent). */
static const double newest_weight = 0.1;

/* Limits of the lag (the part of a model that its delta leaves unsent), as a share of the consensus
 * distance. With a lag below `coarse`, a denser codec would not bring the models closer. With a lag
 * below `fine`, even the next sparser level would not move them apart. */
static const double coarse = 0.5, fine = 0.2;

/* If FAR_LOOKS successive drift figures are above `far_over` times the target, the next denser
 * level is chosen, even if compression does not seem to cause the drift. */
static const double far_over = 4;
enum { FAR_LOOKS = 3 };

/* Largest price of a level above CODEC_LEVELS_MIDDLE that is used while the drift is unknown.
 * Price: transfer time of a delta, divided by the time that the transfer may take. */
static const double dear = 2;

void codec_levels_init(struct codec_levels *l, uint64_t pace)
{
    uint32_t first = pace > CODEC_LEVELS_BLIND ? CODEC_LEVELS_SAFE : CODEC_LEVELS_FIRST;
    *l = (struct codec_levels){
        .rung = first, .first = first, .wait = CODEC_LEVELS_TRY, .excess = (double)NAN};
    for (uint32_t i = 0; i < CODEC_LEVELS_RUNGS; i++)
        l->price[i] = 1;
}

/* Updates a moving average with a new value. The first value replaces the initial 0. */
static void average(double *mean, double newest)
{
    *mean = *mean > 0 ? *mean + newest_weight * (newest - *mean) : newest;
}

void codec_levels_moved(struct codec_levels *l, double motion2)
{
    average(&l->motion2, motion2);
}

void codec_levels_lagged(struct codec_levels *l, double lag2)
{
    average(&l->lag2, lag2);
}

void codec_levels_mark(struct codec_levels *l, uint64_t round)
{
    uint32_t i = l->n_marks++ % CODEC_LEVELS_MARKS;
    l->mark[i].round = round;
    l->mark[i].motion2 = l->motion2;
    l->mark[i].lag2 = l->lag2;
}

/* Returns the moving averages that codec_levels_mark() stored at `round`, the start of a drift
 * measurement. The figure of this measurement arrives several rounds later and must be compared
 * with the averages of `round`. NULL: no averages of `round` are stored. */
static const struct codec_levels_mark *mark_at(const struct codec_levels *l, uint64_t round)
{
    for (uint32_t i = 0; i < CODEC_LEVELS_MARKS; i++)
        if (l->mark[i].round == round && l->mark[i].motion2 > 0)
            return &l->mark[i];
    return NULL;
}

uint32_t codec_levels_rung(const struct codec_levels *l)
{
    return l->rung > l->floor ? l->rung : l->floor;
}

const char *codec_levels_by(const struct codec_levels *l)
{
    bool lowered = !isfinite(l->excess) && l->rung < l->first;
    return l->floor > l->rung ? "link" : l->held || lowered ? "price" : "drift";
}

/* Returns the price of a codec level. A level above the densest one has the price of the
 * densest. */
static double price(const struct codec_levels *l, uint32_t rung)
{
    return l->price[rung < CODEC_LEVELS_RUNGS ? rung : CODEC_LEVELS_RUNGS - 1];
}

/* Applies the rule at the top of codec_levels.h. ratio: normalised drift divided by the target.
 * lag: lag of the replicas divided by Xi. Returns the change of level: 2, 1, 0 or -1. A positive
 * result selects a denser level. */
static int step(struct codec_levels *l, double ratio, double lag)
{
    uint32_t sent = codec_levels_rung(l);
    double here = ratio / price(l, sent), next = ratio / price(l, sent + 1);
    bool low = here < 0.5 || (here <= 1 && lag < fine);
    l->n_low = low && l->n_trial == 0 ? l->n_low + 1 : 0;
    l->n_far = next > far_over ? l->n_far + 1 : 0;
    l->held = ratio > 1 && next <= 1 && lag > coarse && sent + 1 < CODEC_LEVELS_RUNGS;
    l->n_held = l->held && l->n_trial == 0 ? l->n_held + 1 : 0;
    if (next > 1 && lag > coarse) {
        l->wait = CODEC_LEVELS_TRY;
        return ratio > 2 * price(l, sent + 2) ? 2 : 1;
    }
    if (l->n_held >= l->wait) {
        l->wait = l->wait < CODEC_LEVELS_TRY_MOST ? 2 * l->wait : CODEC_LEVELS_TRY_MOST;
        l->n_trial = CODEC_LEVELS_TRIAL;
        return 1;
    }
    if (l->n_far >= FAR_LOOKS)
        return 1;
    return l->n_low >= 2 ? -1 : 0;
}

/* Records a change of level. Drift figures of rounds before the change can still arrive, and are
 * then ignored. */
static void changed(struct codec_levels *l, uint64_t now)
{
    l->n_low = l->n_far = l->n_held = 0;
    l->after = now;
}

void codec_levels_set_prices(struct codec_levels *l, const double price[CODEC_LEVELS_RUNGS],
                             uint64_t now)
{
    uint32_t was = l->rung;
    for (uint32_t i = 0; i < CODEC_LEVELS_RUNGS; i++)
        l->price[i] = price[i];
    l->n_trial -= l->n_trial > 0;
    if (!isfinite(l->excess))
        l->rung = l->first;
    while (!isfinite(l->excess) && l->rung > CODEC_LEVELS_MIDDLE && l->price[l->rung] > dear)
        l->rung--;
    if (l->rung != was)
        changed(l, now);
}

void codec_levels_set_floor(struct codec_levels *l, uint32_t floor, uint64_t now)
{
    uint32_t was = codec_levels_rung(l);
    l->floor = floor;
    if (codec_levels_rung(l) != was)
        changed(l, now);
}

void codec_levels_look(struct codec_levels *l, double target, double spread, double xi,
                       uint64_t of_round, uint64_t now)
{
    const struct codec_levels_mark *then = mark_at(l, of_round);
    if (!isfinite(xi) || of_round <= l->after || then == NULL || !(spread > 0))
        return;
    l->after = of_round;
    l->excess = xi / (spread * sqrt(then->motion2));
    double lag = then->lag2 > 0 ? sqrt(then->lag2) / xi : 0;
    int up = step(l, l->excess / target, lag);
    int sent = (int)codec_levels_rung(l), to = sent + up;
    to = to < 0 ? 0 : to >= CODEC_LEVELS_RUNGS ? CODEC_LEVELS_RUNGS - 1 : to;
    if (to == sent || (up < 0 && l->floor > 0 && l->floor >= l->rung))
        return;
    l->rung = (uint32_t)to;
    changed(l, now);
}
