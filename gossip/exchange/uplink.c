/* gossip/exchange/uplink.c -- measures the time of a byte on a link, and sets the floor and the
 * prices of codec levels. */
#include "gossip/exchange/uplink.h"

#include <math.h>

/* Budget (longest allowed time) of a round's transfers if they follow the local steps, as a share
 * of the time of the local steps. Also the least budget if transfers run during the local steps. */
static const double share_behind = 0.1;

/* Weight of the newest measurement in the moving average from which the prices of codec levels are
 * computed. */
static const double newest_weight = 0.2;

/* A level can become the new floor only if the transfer of its delta takes at most this share of
 * the budget, the time that transfers may take. */
static const double share_up = 0.8;

void uplink_burst(struct uplink_bursts *b, double bytes, double us)
{
    if (bytes < UPLINK_BURST)
        return;
    b->n += 1;
    b->bytes += bytes;
    b->us += us;
}

double uplink_s_per_byte(const struct uplink_bursts *b, double rtt_us)
{
    double us = fmax(b->us - b->n * rtt_us, 0);
    return b->n > 0 ? 1e-6 * us / b->bytes : (double)NAN;
}

void uplink_init(struct uplink *u, const double bytes[CODEC_LEVELS_RUNGS])
{
    *u = (struct uplink){.floor = 0};
    for (uint32_t i = 0; i < CODEC_LEVELS_RUNGS; i++)
        u->bytes[i] = bytes[i];
}

double uplink_budget(double compute_s, bool beside, double rtt_s)
{
    double behind_s = share_behind * compute_s;
    return beside ? fmax(compute_s - rtt_s, behind_s) : behind_s;
}

/* Returns the densest codec level, at most `most`, whose delta is transferred in at most within_s
 * seconds. Returns 0, the sparsest level, if no other level is fast enough. */
static uint32_t fitting(const struct uplink *u, uint32_t most, double s_per_byte, double within_s)
{
    while (most > 0 && u->bytes[most] * s_per_byte > within_s)
        most--;
    return most;
}

/* Lowers the floor (the sparsest level that may be used) to level `to`. Also sets for how many
 * calls of uplink_look() the floor does not return to its old level. */
static void fall(struct uplink *u, uint32_t to)
{
    bool short_lived = u->n_kept < u->wait;
    u->wait = short_lived ? 2 * u->wait : UPLINK_WAIT;
    u->wait = u->wait < UPLINK_WAIT_MOST ? u->wait : UPLINK_WAIT_MOST;
    u->n_wait = u->wait;
    u->left = u->floor;
    u->floor = to;
    u->n_over = u->n_up = 0;
}

static void rise(struct uplink *u)
{
    u->floor = u->to;
    u->n_kept = u->n_up = 0;
}

/* Returns the highest level to which the floor (the sparsest level that may be used) may rise: one
 * above the current level, and below the level from which the floor has recently fallen. */
static uint32_t highest(const struct uplink *u, uint32_t rung)
{
    uint32_t most = (rung > u->floor ? rung : u->floor) + 1;
    if (u->n_wait > 0 && most >= u->left)
        most = u->left - 1;
    return most < CODEC_LEVELS_RUNGS ? most : CODEC_LEVELS_RUNGS - 1;
}

/* Updates the average from which prices of codec levels are computed. The first measurement after a
 * change of level is ignored, because it includes transfers from before the change. */
static void learn_price(struct uplink *u, double newest, uint32_t rung)
{
    bool changed = u->budgets_per_byte > 0 && rung != u->of_rung;
    u->n_priced = changed ? 0 : u->n_priced + 1;
    u->of_rung = rung;
    if (!changed)
        u->budgets_per_byte +=
            (u->n_priced > 1 ? newest_weight : 1) * (newest - u->budgets_per_byte);
}

void uplink_prices(const struct uplink *u, double price[CODEC_LEVELS_RUNGS])
{
    for (uint32_t i = 0; i < CODEC_LEVELS_RUNGS; i++)
        price[i] = fmin(fmax(1, u->bytes[i] * u->budgets_per_byte), UPLINK_PRICE_MOST);
}

void uplink_look(struct uplink *u, double s_per_byte, double budget_s, uint32_t rung)
{
    if (!isfinite(s_per_byte) || !isfinite(budget_s))
        return;
    if (budget_s > 0)
        learn_price(u, s_per_byte / budget_s, rung);
    uint32_t to = fitting(u, highest(u, rung), s_per_byte, share_up * budget_s);
    bool over = u->bytes[u->floor] * s_per_byte > budget_s;
    u->n_kept++;
    u->n_wait -= u->n_wait > 0;
    u->n_over = over && u->floor > 0 ? u->n_over + 1 : 0;
    if (u->n_over >= UPLINK_DOWN) {
        fall(u, fitting(u, u->floor - 1, s_per_byte, budget_s));
        return;
    }
    u->to = u->n_up == 0 || to < u->to ? to : u->to;
    u->n_up = to > u->floor ? u->n_up + 1 : 0;
    if (u->n_up >= UPLINK_UP)
        rise(u);
}
