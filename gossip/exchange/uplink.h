/* gossip/exchange/uplink.h -- finds the densest codec level that the link carries without a delay.
 *
 * A delta delays no peer if it crosses the network during the local steps, or in a small share of
 * their time. With `--compress auto`, the densest level whose deltas delay no peer is therefore a
 * lower limit, the *floor*: a sparser level would save no time. The consensus distance (drift)
 * chooses a level at or above the floor (codec_levels.h):
 *
 *   level      7 fp16     ----+
 *              6 qsgd:8       |  the transfer would take longer than the budget
 *              5 qsgd:4   ----+----- floor: the densest level within the budget
 *              4 ...          |  below the floor: never used, even if the drift allows it
 *              ...            |
 *
 * Budget: the time that the transfers of a round may take. If transfers follow the local steps, the
 * budget is a tenth of the time of the local steps. If transfers run during the local steps
 * (--overlap), the budget is the time of the local steps less one round trip, but at least a tenth
 * of the time of the local steps.
 *
 * Time of a level: the bytes of its delta multiplied by the seconds per byte on the slowest edge,
 * because one encoded delta goes to all edges. Seconds per byte are measured in *bursts*. A burst
 * lasts from the time when bytes are sent over an idle link to the time when all of them are
 * acknowledged:
 *
 *   burst time = overhead + bytes / goodput,     overhead >= round-trip time
 *
 * Only the second term grows with the level. The first term is latency, which a sparser codec does
 * not reduce, so the least known round-trip time is subtracted from each burst. Heartbeats do not
 * count, because the receiver may delay their acknowledgement. All edges of a peer send at the same
 * time, so the measurement includes sharing of the uplink.
 *
 * Price: the time of a level divided by the budget, from 1 (free) to UPLINK_PRICE_MOST. A level
 * above the floor delays the round, so it is used only if the drift is large enough to justify its
 * price (codec_levels.h). Example: transfers follow the local steps, and the transfer of a level
 * takes as long as the local steps. The price would be 10, and is limited to 8. On a slow link
 * models therefore stay farther apart during training, and rounds stay short. The measured time of
 * short deltas also includes latency and delays by other processes, so prices can be too high. From
 * time to time a level that seems too expensive is therefore tried and measured.
 *
 * Hysteresis: the time of each level is extrapolated from the time of the current level. The
 * extrapolation is more precise for levels close to the current one. The floor therefore never
 * rises to more than one level above the current level.
 *
 *   change   condition
 *   up       UPLINK_UP looks (calls of uplink_look()) in a row at which the higher level would take
 *            less than 0.8 of the budget
 *   down     UPLINK_DOWN looks in a row at which the floor takes more than the budget; the new
 *            floor is the densest level within the budget
 *
 * After the floor has fallen from a level, the floor does not rise to this level again for
 * UPLINK_WAIT looks. If the next floor falls before it has lasted for the number of looks of the
 * last wait, the wait doubles, up to UPLINK_WAIT_MOST looks. Otherwise the wait is UPLINK_WAIT
 * looks again. An unstable link therefore soon causes few changes.
 *
 * If a neighbour acknowledges late, its edge looks slow. The floor then falls, and the drift
 * chooses the level, at higher prices. No single neighbour can raise the floor, because the slowest
 * edge decides.
 *
 * The floor depends on timing. With a floor, a peer's model is not a function of the run's seed.
 */
#ifndef GOSSIP_EXCHANGE_UPLINK_H
#define GOSSIP_EXCHANGE_UPLINK_H

#include "gossip/exchange/codec_levels.h"

#include <stdint.h>

enum {
    /* Number of successive calls of uplink_look() that must find a denser floor possible. The floor
     * (the sparsest codec level that may be used) then rises. */
    UPLINK_UP = 3,
    /* Number of successive calls of uplink_look() that must find deltas of the floor's codec level
     * too slow. The floor (the sparsest codec level that may be used) then falls. */
    UPLINK_DOWN = 2,
    /* After the floor has fallen from a level, the floor does not rise to this level again for this
     * many calls of uplink_look(): UPLINK_WAIT at first, at most UPLINK_WAIT_MOST. */
    UPLINK_WAIT = 8,
    UPLINK_WAIT_MOST = 512,
    /* Largest price of a codec level (transfer time of its delta, divided by the time allowed). The
     * drift target is multiplied by the price, so this limit bounds the drift on a slow link. */
    UPLINK_PRICE_MOST = 8,
    /* Least number of bytes of a burst (bytes sent without a pause) whose duration is measured. */
    UPLINK_BURST = 256
};

/* ---- measured bursts of a link ---- */

/* Sums over the bursts of a link (bytes sent without a pause). Initialise with zeros. */
struct uplink_bursts
{
    /* Number of bursts, sum of their bytes, and sum of their durations in microseconds. */
    double n, bytes, us;
};

/* Adds the measurement of a burst, unless it is shorter than UPLINK_BURST bytes. us: duration of
 * the burst in microseconds. */
void uplink_burst(struct uplink_bursts *b, double bytes, double us);

/* Returns the seconds per byte of a link, without its latency, from the measured bursts (bytes sent
 * without a pause). rtt_us: least known round-trip time in microseconds; 0: unknown. Returns NaN if
 * there were no bursts. Returns 0 if the bursts took no longer than the latency, so that the link
 * is too fast to measure. */
double uplink_s_per_byte(const struct uplink_bursts *b, double rtt_us);

/* ---- the floor ---- */

/* State of the floor (the sparsest codec level that may be used) and of the prices of the levels.
 * Written by uplink.c only. */
struct uplink
{
    double bytes[CODEC_LEVELS_RUNGS]; /* Usual number of bytes of a delta of each level. */
    uint32_t floor; /* The floor: the densest level that does not delay the round. 0: no floor. */
    /* n_up: number of successive calls of uplink_look(), up to the last call, at which a higher
     * floor (sparsest level that may be used) was possible. n_over: number of successive calls at
     * which a delta of the floor's level took longer than the budget. */
    uint32_t n_up, n_over;
    /* Codec level to which the floor rises when n_up reaches UPLINK_UP. It is the densest level
     * that each of the last n_up calls of uplink_look() found fast enough. */
    uint32_t to;
    uint32_t left; /* Codec level of the floor before it last fell. */
    /* n_wait: number of further calls of uplink_look() during which the floor (sparsest level that
     * may be used) stays below the level from which it last fell. wait: value of n_wait just after
     * the last fall. */
    uint32_t n_wait, wait;
    uint32_t n_kept; /* Number of calls of uplink_look() since the last rise of the floor. */
    /* Share of the budget that one byte takes: a moving average over n_priced calls of
     * uplink_look() with deltas of level of_rung. 0: unknown. */
    double budgets_per_byte;
    uint32_t of_rung, n_priced;
};

/* Initialises the state without a floor: any codec level may be used. bytes: usual number of bytes
 * of a delta of each level. */
void uplink_init(struct uplink *u, const double bytes[CODEC_LEVELS_RUNGS]);

/* Returns the budget in seconds for the transfers of a round. compute_s: time of the local steps.
 * beside: true if transfers run at the same time as the local steps (--overlap). rtt_s: round-trip
 * time of the link. */
double uplink_budget(double compute_s, bool beside, double rtt_s);

/* Computes the price of each codec level, from 1 to UPLINK_PRICE_MOST: the transfer time of its
 * delta, divided by the budget (the longest transfer time that does not delay the round). Before
 * the first call of uplink_look() all prices are 1. */
void uplink_prices(const struct uplink *u, double price[CODEC_LEVELS_RUNGS]);

/* Updates the floor (sparsest level that may be used) and the prices from the measured speed.
 * s_per_byte: seconds per byte on the slowest edge. budget_s: the longest transfer time that does
 * not delay the round, in seconds. rung: current codec level of deltas. The call does nothing if
 * s_per_byte or budget_s is not finite. */
void uplink_look(struct uplink *u, double s_per_byte, double budget_s, uint32_t rung);

#endif
