/* gossip/exchange/codec_levels.h -- precision by drift: which codec a peer's deltas take.
 *
 * There is a consensus distance under which training does not notice that the
 * peers' models differ (Kong et al. 2021, "Consensus Control for Decentralized
 * Deep Learning"); closer costs bytes, farther costs accuracy. It grows with the
 * learning rate. The distance Xi is known while training (sketch.h), so with
 * `--compress auto` each peer climbs a ladder of codecs, from sparse to dense,
 * after
 *
 *   excess = Xi / (spread |Delta|)
 *
 * |Delta| is how far a round of local steps moves this peer's model, and spread
 * what the graph makes of it: exact exchange finds models whose steps were
 * independent of each other spread |Delta| apart when it begins (topology.h). So
 * at an excess of 1 models begin their local steps as near to each other as
 * exact exchange has them after these. It is much the same whatever the model, the
 * rate, the number of local steps or the graph (measured: LeNet-5, ResNet-20 and
 * a transformer, with 1 and 10 local steps): 0.1 to 1 without compression, 1 to
 * 3 with top-10 %, 8 to 30 with top-1 %.
 *
 *   excess / target
 *        2 --------  two rungs denser
 *        1 --------  one rung denser
 *                    stay
 *      1/2 --------  one rung sparser, where it was low at two looks in a row
 *
 * Exact exchange itself may leave more than 1, where local steps follow one
 * direction for rounds (momentum at the end of a training). So the codec must be to
 * blame: what a delta leaves unsent, |x - a| after it, is the lag of the replicas.
 * Under half of Xi a denser rung would not bring models nearer, and there is none;
 * under a fifth the next sparser one does not part them, and counts as low, but never
 * over the target. For a sparse code also has a small gamma: where shards differ, so
 * that local steps lead the peers apart round after round, Xi grows as gamma falls and
 * replicas hardly lag behind such models. (16 peers with a few labels each: topk:0.1
 * keeps 3 times the target, with a lag of 0.2; topk:0.01 has 29 times, and 0.14.) So
 * an excess of over four times the target, three looks in a row, takes a denser rung
 * whatever the lag.
 *
 * A look is at a new figure of a moment after the last change: an older one says
 * nothing of what the change did. A delta names its rung on the wire, so each
 * sender chooses for itself, the same for all its edges. What it looks at is,
 * in lock step, a function of the run's seed.
 *
 * There may be a *floor*, a rung under which no bytes need be spared (uplink.h). What is
 * sent is the denser one of it and the drift's rung. While the floor is that, the drift
 * tells nothing of sparser rungs, so that none is taken; a denser one is, as ever.
 *
 * And a rung may have a *price*, over 1 where its deltas take longer than is free: what is that dear is
 * worth it where the drift is that many times over the target. So a denser rung is taken if the excess
 * is over the target times *its* price, and the one that is sent is left for a sparser one if the excess
 * is low beside the target times its own. Prices are guesses from the deltas that are sent: a rung that was
 * too dear at CODEC_LEVELS_TRY looks in a row is tried, after which its price is known; if it is left again the next trial
 * takes twice as many looks.
 *
 * Before the first look nothing is known of the drift, and models are near each other: until then it is the rung
 * of the beginning, or the densest under it whose deltas are not dear, down to CODEC_LEVELS_MIDDLE.
 */
#ifndef GOSSIP_EXCHANGE_CODEC_LEVELS_H
#define GOSSIP_EXCHANGE_CODEC_LEVELS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CODEC_LEVELS_RUNGS = 8,
    CODEC_LEVELS_FIRST = 3, /* Where a peer begins: the first rounds part models most. */
    CODEC_LEVELS_SAFE =
        5, /* Where it begins if figures are more than CODEC_LEVELS_BLIND rounds apart, as */
    CODEC_LEVELS_BLIND =
        32, /* with models that are hardly longer than a sketch: their bytes are few. */
    CODEC_LEVELS_MIDDLE = 2, /* The rung whose bytes plan how often sketches go along. */
    CODEC_LEVELS_TRY = 8,    /* Looks before a rung that is too dear is tried, the first time, */
    CODEC_LEVELS_TRY_MOST = 512, /* and at most. */
    CODEC_LEVELS_TRIAL = 3, /* The price that comes as the third is that of the rung on trial. */
    CODEC_LEVELS_MARKS = 4
};

/* Specs, the sparsest first. */
extern const char *const codec_levels_spec[CODEC_LEVELS_RUNGS];

struct codec_levels_mark
{
    uint64_t round;       /* When a window of the sketches began, */
    double motion2, lag2; /* and what the averages were then; 0: unused. */
};

struct codec_levels
{
    uint32_t rung;                    /* The drift's. */
    uint32_t first;                   /* Where it began. */
    uint32_t floor;                   /* The link's, which no checkpoint holds; 0: there is none. */
    double price[CODEC_LEVELS_RUNGS]; /* At least 1; no checkpoint holds them. */
    uint32_t n_trial; /* Prices that are still to come before the rung on trial can be judged. */
    uint32_t n_held, wait; /* So many looks in a row it was, and a trial comes after so many. */
    bool held;      /* At the last look the drift asked for a denser rung, which was too dear. */
    uint32_t n_low; /* Looks in a row that counted as low, */
    uint32_t n_far; /* and those that found the excess far over the target. */
    uint64_t after; /* Figures of rounds up to this one have been looked at,
                       * or are of before the last change. */
    double motion2; /* Moving average of |Delta|^2, */
    double lag2;    /* and of |x - a|^2 after a delta. */
    double excess;  /* At the last look; NaN before the first. */
    struct codec_levels_mark mark[CODEC_LEVELS_MARKS];
    uint32_t n_marks;
};

/* Figures of the drift are to come every `pace` rounds. */
void codec_levels_init(struct codec_levels *l, uint64_t pace);

struct state;                                                     /* nn/math/state.h */
void codec_levels_state(struct codec_levels *l, struct state *s); /* A section of its own. */

/* Who chose it: "link" (the floor), "price" (the drift asks for a denser one, which is too dear), or
 * "drift". */
const char *codec_levels_by(const struct codec_levels *l);

/* |Delta|^2 of the last round of local steps. */
void codec_levels_moved(struct codec_levels *l, double motion2);

/* |x - a|^2 behind the deltas of this round, the largest. */
void codec_levels_lagged(struct codec_levels *l, double lag2);

/* A drift window began with this round: its figure will come later. */
void codec_levels_mark(struct codec_levels *l, uint64_t round);

/* The floor from run round `now` on. */
void codec_levels_set_floor(struct codec_levels *l, uint32_t floor, uint64_t now);

/* Prices of the rungs, from run round `now` on; at the beginning all are 1. */
void codec_levels_set_prices(struct codec_levels *l, const double price[CODEC_LEVELS_RUNGS],
                             uint64_t now);

/* The rung that deltas take. */
uint32_t codec_levels_rung(const struct codec_levels *l);

/* A peer at run round `now` knows the drift Xi of the moment when `of_round`
 * began (NaN: none yet). Looks, and changes the rung where that is due. */
void codec_levels_look(struct codec_levels *l, double target, double spread, double xi,
                       uint64_t of_round, uint64_t now);

#endif
