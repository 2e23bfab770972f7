/* gossip/exchange/codec_levels.h -- chooses the codec level of a peer's deltas from the consensus
 * distance (--compress auto).
 *
 * There is a critical consensus distance below which the differences between the peers' models do
 * not affect training (Kong et al. 2021, "Consensus Control for Decentralized Deep Learning"). A
 * smaller distance costs bytes, a larger one costs accuracy. The critical distance grows with the
 * learning rate. The consensus distance Xi is estimated during training (sketch.h). Each peer uses
 * it to choose one of CODEC_LEVELS_RUNGS codec levels, which are ordered from sparse to dense. The
 * choice depends on the normalised drift, called `excess` in the code:
 *
 *   normalised drift = Xi / (spread |Delta|)
 *
 * |Delta| is the distance by which the local steps of one round move this peer's model. `spread` is
 * a factor of the graph (graph_spread() in topology/topology.h): with exact exchange and
 * independent local steps, the consensus distance just before mixing is `spread` times |Delta|. Xi
 * is measured just after mixing. A normalised drift of 1 therefore means: after mixing, the models
 * are as far apart as models with exact exchange are before mixing. The value depends little on the
 * model, the learning rate, the number of local steps or the graph. For LeNet-5, ResNet-20 and a
 * transformer, with 1 and 10 local steps, the value was 0.1 to 1 without compression, 1 to 3 with
 * top-10 %, and 8 to 30 with top-1 %.
 *
 * Rule, applied at each new figure of the drift (a *look*):
 *
 *   normalised drift / target   new level
 *   above 2                     two levels denser
 *   1 to 2                      one level denser
 *   1/2 to 1                    unchanged
 *   below 1/2                   one level sparser, if the last two looks in a row were low
 *
 * The *lag* changes this rule. When a delta has been applied to the replica a, a part of the model
 * x is still unsent. The lag is the length of this part, |x - a|. Exact exchange, too, can leave a
 * normalised drift above 1, for example if momentum makes local steps follow one direction for many
 * rounds. A denser codec helps only if compression is the cause:
 *
 *   lag below 1/2 of Xi   no denser level, because it would not bring the models closer
 *   lag below 1/5 of Xi   a look also counts as low if the drift is at or under the target, because
 *                         a sparser level would not move the models apart
 *
 * A sparse codec also has a small gamma. If the local steps of the peers lead in different
 * directions, as with skewed data, a small gamma makes Xi grow although the lag is small. This was
 * measured with 16 peers that have a few labels each. With topk:0.1 the normalised drift was 3
 * times the target and the lag 0.2 Xi. With topk:0.01 the normalised drift was 29 times the target
 * and the lag 0.14 Xi. Therefore, if the normalised drift is above four times the target in three
 * looks in a row, a denser level is selected, whatever the lag is.
 *
 * A figure is used only if it describes a time after the last change of level. Each peer chooses
 * one level for all its edges. Peers need not agree on a level, because each delta names its own.
 * In lock step, without a floor and with all prices 1, the choice is a function of the run's seed.
 *
 * Floor: the sparsest level that is worth using. A sparser level would save bytes without benefit,
 * because the link has room for more bytes (uplink.h). Deltas use the denser of two levels: the
 * floor, and the level chosen from the drift. While deltas use the floor, the drift does not show
 * what a sparser level would do, so the level chosen from the drift does not become sparser.
 *
 * Price: at least 1 (uplink.h). The price of a level is above 1 if its deltas take so long that
 * they delay the round. A level must be worth its price. When a denser level is considered, the
 * target is therefore multiplied by the price of the denser level. When a sparser level is
 * considered, the target is multiplied by the price of the current level. The price of a denser
 * level is estimated from deltas of the current level and may be wrong. A level that the drift
 * required at CODEC_LEVELS_TRY looks in a row, but that was too expensive each time, is therefore
 * tried, and its price is measured. Each trial doubles the number of looks before the next trial.
 *
 * Until the first look the drift is unknown, and models are close together. The level is then
 * CODEC_LEVELS_FIRST, or CODEC_LEVELS_SAFE if looks are rare. If the price of this level is above
 * 2, the next sparser level with a price of at most 2 is used instead, but no level below
 * CODEC_LEVELS_MIDDLE.
 */
#ifndef GOSSIP_EXCHANGE_CODEC_LEVELS_H
#define GOSSIP_EXCHANGE_CODEC_LEVELS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CODEC_LEVELS_RUNGS = 8, /* Number of codec levels. */
    /* Codec level at which a peer begins. It is not the sparsest one, because models drift apart
     * fastest in the first rounds. */
    CODEC_LEVELS_FIRST = 3,
    /* Level at which a peer begins if the consensus distance is measured less often than every
     * CODEC_LEVELS_BLIND rounds. This happens with small models, because a sketch is long
     * compared with their deltas and few deltas carry one. A denser level costs few bytes for
     * such a model. */
    CODEC_LEVELS_SAFE = 5,
    /* Longest interval between two measurements of the consensus distance, in rounds, at which a
     * peer begins at level CODEC_LEVELS_FIRST. With a longer interval it begins at
     * CODEC_LEVELS_SAFE. */
    CODEC_LEVELS_BLIND = 32,
    /* Codec level whose usual delta size determines which share of the deltas carries a sketch
     * (sketch.h). */
    CODEC_LEVELS_MIDDLE = 2,
    /* CODEC_LEVELS_TRY: if the drift requires a denser level this many times in a row, and the
     * level is too expensive each time, the level is tried. Each trial doubles the number for the
     * next trial, up to CODEC_LEVELS_TRY_MOST. When the drift requires a level that is not too
     * expensive, the number is CODEC_LEVELS_TRY again. */
    CODEC_LEVELS_TRY = 8,
    CODEC_LEVELS_TRY_MOST = 512,
    /* Duration of the trial of an expensive level, in calls of codec_levels_set_prices(). After
     * these calls the price of the level (by how much it delays the round) has been measured. */
    CODEC_LEVELS_TRIAL = 3,
    /* Number of drift measurements for each of which this peer stores the moving averages at the
     * start of the measurement (struct codec_levels_mark). */
    CODEC_LEVELS_MARKS = 4
};

/* Codec specifications of the levels, from the sparsest to the densest. */
extern const char *const codec_levels_spec[CODEC_LEVELS_RUNGS];

/* Moving averages of the squared length of the local steps and of the squared lag, stored when a
 * measurement of the drift begins and used when its result arrives. */
struct codec_levels_mark
{
    uint64_t round; /* Round of the run at which the measurement of the drift began. */
    /* Values of the fields `motion2` and `lag2` of struct codec_levels when the measurement began.
     * motion2 is 0 if this entry is unused. */
    double motion2, lag2;
};

/* State of one peer's choice of codec level. Written by codec_levels.c, and by state.c
 * when a checkpoint is read. */
struct codec_levels
{
    uint32_t rung; /* Codec level chosen from the drift. */
    /* Codec level at which the peer begins, unless the price of this level (the delay of its
     * deltas) is too high. */
    uint32_t first;
    /* The floor: the sparsest level that may be used, because the link has room for its deltas
     * (uplink.h). 0: any level may be used. Not saved in checkpoints. */
    uint32_t floor;
    /* Price of each level, at least 1. Above 1: its deltas delay the round. Not saved in
     * checkpoints. */
    double price[CODEC_LEVELS_RUNGS];
    /* Number of price updates until the price of the level on trial is known. 0: no level is on
     * trial. */
    uint32_t n_trial;
    /* n_held: number of successive drift figures that required a denser level whose price was too
     * high. wait: value of n_held at which this level is tried nevertheless. */
    uint32_t n_held, wait;
    /* True: the last drift figure required a denser level, but that level was too expensive. */
    bool held;
    /* Number of successive drift figures that were low enough for a sparser level. */
    uint32_t n_low;
    /* Number of successive drift figures that were more than four times the product of the target
     * and the price of the next denser level. */
    uint32_t n_far;
    /* Drift figures of rounds up to this one are ignored: they were already used, or describe a
     * time before the last change of level. */
    uint64_t after;
    /* Moving average of |Delta|^2, where |Delta| is the distance by which the local steps of a
     * round move the model. 0: no value yet. */
    double motion2;
    double lag2; /* Moving average of the squared lag |x - a|^2 after a delta. 0: no value yet. */
    /* Normalised drift of the last figure that codec_levels_look() has used. NaN: none yet. */
    double excess;
    struct codec_levels_mark mark[CODEC_LEVELS_MARKS];
    /* Number of calls of codec_levels_mark() so far. Each call overwrites the oldest entry of
     * mark[]. */
    uint32_t n_marks;
};

/* Initialises the choice of the codec level. pace: expected number of rounds between two figures of
 * the drift. */
void codec_levels_init(struct codec_levels *l, uint64_t pace);

struct state; /* Reader or writer of a checkpoint, defined in nn/math/state.h. */
/* Saves the choice of the codec level to a checkpoint, or restores it, as a section of its own. */
void codec_levels_state(struct codec_levels *l, struct state *s);

/* Returns the reason for the current codec level. "link": the link has room for this level.
 * "drift": the consensus distance selects this level. "price": a denser level would be used, but
 * its deltas would delay the round too much. */
const char *codec_levels_by(const struct codec_levels *l);

/* Records |Delta|^2, where |Delta| is the distance by which the local steps of one round have moved
 * the model. */
void codec_levels_moved(struct codec_levels *l, double motion2);

/* Records the lag of this round: the largest squared distance |x - a|^2 of the model from a
 * replica, after the delta of this round has been applied to the replica. */
void codec_levels_lagged(struct codec_levels *l, double lag2);

/* Stores the moving averages `motion2` and `lag2` of `round`, in which a drift measurement begins.
 * The figure of the measurement arrives several rounds later and is compared with these
 * averages. */
void codec_levels_mark(struct codec_levels *l, uint64_t round);

/* Sets the floor, which is the sparsest level that may be used (uplink.h). now: the current round
 * of the run. */
void codec_levels_set_floor(struct codec_levels *l, uint32_t floor, uint64_t now);

/* Sets the prices of all levels. A price above 1 means that deltas of the level delay the round.
 * Before the first call all prices are 1. now: the current round of the run. */
void codec_levels_set_prices(struct codec_levels *l, const double price[CODEC_LEVELS_RUNGS],
                             uint64_t now);

/* Returns the codec level of the next deltas. It is at least the floor, the sparsest level that may
 * be used. */
uint32_t codec_levels_rung(const struct codec_levels *l);

/* Handles a drift figure: changes the level if the rule requires it. target: the normalised drift
 * to reach. spread: factor of the graph (graph_spread()). xi: the consensus distance at the start
 * of round `of_round`; NaN: unknown. now: the current round of the run. A figure is ignored if
 * (1) it is unknown, (2) it was already used or describes a time before the last change of level,
 * (3) codec_levels_mark() has no averages of `of_round`, or (4) spread is not above 0. */
void codec_levels_look(struct codec_levels *l, double target, double spread, double xi,
                       uint64_t of_round, uint64_t now);

#endif
