/* gossip/exchange/uplink.h -- precision by link: rungs that cost no time need not be spared.
 *
 * A delta that crosses the network while its peer computes, or in a small part of that time,
 * delays nobody. So with `--compress auto` a peer never sends sparser than the most precise rung
 * of the ladder (ladder.h) that is as good as free: the link sets a *floor*, and the drift
 * chooses above it.
 *
 *   rung       7 fp16     ----+
 *              6 qsgd:8       |  its transfer would take longer than the budget
 *              5 qsgd:4   ----+----- floor: the most precise that hides
 *              4 ...          |  drift may ask for any of these from the floor up,
 *              ...            |  and what it asks for below the floor is not taken
 *
 * **The budget** is the time that transfers may take in a round: a tenth of the computing where
 * they follow it, all of it (less a round trip) where they run beside it.
 *
 * **A rung's time** is its bytes by the seconds a byte takes on the slowest edge, since one
 * encoded delta goes to all of them. Those seconds are measured in *bursts*: from when bytes are
 * sent over an idle link to when all are acknowledged. A burst takes
 *
 *   overhead + bytes / goodput,     overhead >= round trip
 *
 * and only the second part grows with the rung. The first is latency, which no sparser codec would
 * spare: the least round trip known is taken off each burst. Heartbeats do not count: the other end
 * may take its time to acknowledge them. All edges of a peer send at once, so that sharing the
 * uplink is in the measurement.
 *
 * **Prices.** Above the floor rungs cost time, for which the drift has to be worth it (ladder.h). A rung's
 * price is its time by the budget: 1 for what is free, 10 where a transfer that follows computing takes as
 * long as that; 8 at most. On a link that is slow beside the computing models drift farther apart than they would
 * elsewhere, and rounds stay short. What short deltas take is latency and other processes as much as the
 * link, so that prices may be too high: now and then a rung that is too dear is tried (ladder.h), and its own deltas
 * tell.
 *
 * **Hysteresis.** A rung is predicted from another one, and the better the nearer that is: the
 * floor never rises to more than one rung above what is sent. Up takes UPLINK_UP looks in a row
 * at which the higher rung would take under 0.8 of the budget, down UPLINK_DOWN looks at which the
 * floor takes more than all of it; then to the most precise rung that is within it. The rung that
 * was left is not tried for UPLINK_WAIT looks, and for twice as many each time that it was kept
 * for less than its last wait, so that a link that flaps is soon left alone.
 *
 * **Who lies.** A neighbour that acknowledges late makes its edge look slow: then the drift alone
 * chooses, at higher prices. Nobody can raise the floor alone, since the slowest edge
 * decides.
 *
 * A floor depends on timing, so that a peer's model is no function of the run's seed any more.
 */
#ifndef GOSSIP_EXCHANGE_UPLINK_H
#define GOSSIP_EXCHANGE_UPLINK_H

#include "gossip/exchange/codec_levels.h"

#include <stdint.h>

enum {
    UPLINK_UP = 3,
    UPLINK_DOWN = 2,
    UPLINK_WAIT = 8, /* Looks, the first time; */
    UPLINK_WAIT_MOST = 512,
    UPLINK_PRICE_MOST =
        8, /* However slow the link is: a drift farther over the target is not taken for it. */
    UPLINK_BURST = 256 /* Bytes: shorter ones do not count. */
};

/* ---- what a link has carried ---- */

/* So many bursts, and sums over them. Start with zeros. */
struct uplink_bursts
{
    double n, bytes, us;
};

/* One more burst, if it counts. */
void uplink_burst(struct uplink_bursts *b, double bytes, double us);

/* The seconds that a byte takes beside latency, where the least round trip is rtt_us (0: not known).
 * 0: all was latency, and the link is as fast as can be told; NaN: there were no bursts. */
double uplink_s_per_byte(const struct uplink_bursts *b, double rtt_us);

/* ---- the floor ---- */

struct uplink
{
    double bytes[CODEC_LEVELS_RUNGS]; /* A delta of each rung is so long. */
    uint32_t floor;                   /* 0: any rung will do. */
    uint32_t n_up, n_over;            /* Looks in a row that were for a higher floor, or a lower. */
    uint32_t to;                      /* With n_up: the highest that all of those were for. */
    uint32_t left;                    /* The floor was this when it last fell, */
    uint32_t n_wait, wait;            /* and is not to be that for n_wait more looks, of so many. */
    uint32_t n_kept;                  /* Looks since it last rose. */
    /* A byte takes so much of the budget, averaged over n_priced looks at deltas of of_rung; 0: not known. */
    double budgets_per_byte;
    uint32_t of_rung, n_priced;
};

void uplink_init(struct uplink *u, const double bytes[CODEC_LEVELS_RUNGS]);

/* Seconds that transfers of a round may take, in which the peer computes for compute_s. beside:
 * they run beside its computing (--overlap). */
double uplink_budget(double compute_s, bool beside, double rtt_s);

/* What each rung's deltas cost, from 1 to UPLINK_PRICE_MOST, as of the looks so far; 1 before the first. */
void uplink_prices(const struct uplink *u, double price[CODEC_LEVELS_RUNGS]);

/* A look: what a byte takes on the slowest edge, the budget, and the rung of deltas now.
 * Figures that are not finite are no look. */
void uplink_look(struct uplink *u, double s_per_byte, double budget_s, uint32_t rung);

#endif
