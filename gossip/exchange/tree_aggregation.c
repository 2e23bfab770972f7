/* gossip/exchange/tree_aggregation.c -- begins drift windows (measurements of the consensus
 * distance), combines the reports of subtrees, and chooses the message to send. */
#include "gossip/exchange/tree_aggregation.h"

#include <math.h>
#include <string.h>

enum { INDEX_BITS = 24 };

/* A result is "sharp" (exact enough for users) if Xi changed by at most this share of its value
 * while the start of the measurement spread to all peers. */
static const double blur = 0.1;

/* ---- windows: one window is one measurement of the consensus distance ---- */

/* Returns the number of rounds between two measurements (windows) during training. A message
 * travels one hop per round, so the way up and down the tree takes twice its depth in rounds. */
static uint64_t period(const struct tree_aggregation_place *p)
{
    uint64_t way = 2 * (uint64_t)p->depth + 4;
    return p->pace > way ? p->pace : way;
}

/* Returns the number of rounds between two measurements in the consensus phase. Measurements are
 * more frequent than in training, because the end of the run depends on them. A measurement is
 * stored for at least twice this time. In that time, messages must travel up and down the tree. */
static uint64_t last_period(const struct tree_aggregation_place *p)
{
    return (uint64_t)p->depth + 2;
}

/* For a run in lock step, and for the first member in other runs: returns the index of the last
 * drift window that begins at or before round `round`. */
static uint64_t index_at(const struct tree_aggregation_place *p, uint64_t round)
{
    if (round < p->n_rounds)
        return round / period(p) + 1;
    uint64_t trained = p->n_rounds > 0 ? (p->n_rounds - 1) / period(p) + 1 : 0;
    return trained + 1 + (round - p->n_rounds) / last_period(p);
}

/* For a run in lock step: returns the round at which drift window `index` begins. */
static uint64_t round_of(const struct tree_aggregation_place *p, uint64_t index)
{
    uint64_t trained = p->n_rounds > 0 ? (p->n_rounds - 1) / period(p) + 1 : 0;
    return index <= trained ? (index - 1) * period(p)
                            : p->n_rounds + (index - trained - 1) * last_period(p);
}

/* Returns the slot in which drift window `index` is stored: the number of times that `index` can be
 * divided by 2, but at most the number of the last slot. */
static size_t slot_of(uint64_t index)
{
    size_t v = 0;
    while (v < TREE_AGGREGATION_SLOTS - 1 && index % 2 == 0) {
        index /= 2;
        v++;
    }
    return v;
}

/* Returns which of the spanning trees a drift window uses. Successive windows of one slot use the
 * trees in turn. */
static size_t tree_of(uint64_t index)
{
    return (index >> (slot_of(index) + 1)) % TREE_AGGREGATION_TREES;
}

/* Sets this peer's position in the spanning trees. All stored reports are dropped in two cases:
 * (1) the trees have changed, because no peer can tell reports of the old and the new trees apart;
 * (2) this peer has skipped rounds (sketch_passed_over()). After that, this peer reports only
 * measurements that begin in the current round or later. */
static void take_place(struct tree_aggregation *v, const struct tree_aggregation_place *place,
                       uint64_t round)
{
    bool same = v->place.built == place->built && v->place.n > 0;
    v->place = *place;
    if (same)
        return;
    memset(v->slot, 0, sizeof v->slot);
    v->heard = 0;
    v->clock = round > 0 && (place->lock_step || place->root[0]) ? index_at(place, round - 1) : 0;
}

bool tree_aggregation_beat(struct tree_aggregation *v, const struct tree_aggregation_place *place,
                           uint64_t round)
{
    take_place(v, place, round);
    v->round = round;
    if (place->lock_step || place->root[0])
        v->heard = index_at(place, round);
    return v->heard > v->clock;
}

/* ---- sums ---- */

/* Adds b, the sums over some peers, to a, the sums over other peers. */
static void add(struct tree_aggregation_sum *a, const struct tree_aggregation_sum *b)
{
    double share = (double)b->n / ((double)a->n + (double)b->n), apart2 = 0;
    for (size_t i = 0; i < SKETCH_K; i++) {
        double d = (double)b->mean[i] - (double)a->mean[i];
        apart2 += d * d;
        a->mean[i] = (float)((double)a->mean[i] + share * d);
    }
    a->dist2 += b->dist2 + apart2 * share * (double)a->n;
    a->norm2 += b->norm2;
    a->n += b->n;
    a->settling |= b->settling;
}

/* Returns whether this peer and all its subtrees have reported for a drift window that has no final
 * result yet. */
static bool complete(const struct tree_aggregation *v, const struct tree_aggregation_slot *s)
{
    return s->began && !s->done && s->n_children == v->place.n_children[tree_of(s->index)];
}

/* Returns, at the root of a tree, whether the result of a drift window is exact enough for users:
 * Xi has changed little since the window began. The rate of change is computed from this window and
 * the previous complete window. */
static bool is_sharp(const struct tree_aggregation *v, const struct tree_aggregation_slot *s)
{
    double xi2 = s->sum.dist2 / s->sum.n, rounds = (double)s->round - (double)v->before_round;
    bool known = v->before2 > 0 && xi2 > 0 && rounds > 0;
    double change = known ? 0.5 * fabs(log(xi2 / v->before2)) / rounds : 0;
    if (v->place.lock_step)
        /* In lock step all peers begin a measurement in the same round. Xi therefore cannot change
         * while the start spreads from peer to peer, and every result is sharp
         * (tree_aggregation.h). */
        return true;
    return known && !s->sum.settling && change * (double)(v->round - s->round) <= blur;
}

/* Marks a drift window as complete, and stores its Xi^2 unless a later window is already
 * complete. */
static void settle(struct tree_aggregation *v, struct tree_aggregation_slot *s, bool sharp)
{
    s->done = true;
    s->sharp = sharp;
    if (v->before2 > 0 && s->round <= v->before_round)
        return;
    v->before2 = s->sum.dist2 / s->sum.n;
    v->before_round = s->round;
}

/* At the root of a tree, completes the drift window if all subtrees have reported. If the number of
 * counted peers differs from the number of members, some reports came from another graph, and the
 * window is dropped. At other peers, does nothing. */
static void look(struct tree_aggregation *v, struct tree_aggregation_slot *s)
{
    if (!complete(v, s) || !v->place.root[tree_of(s->index)])
        return;
    if (s->sum.n != v->place.n) {
        *s = (struct tree_aggregation_slot){.index = 0};
        return;
    }
    settle(v, s, is_sharp(v, s));
}

/* Begins drift window `index` in its slot, with the values of this peer in `own`. */
static void begin_slot(struct tree_aggregation *v, uint64_t index,
                       const struct tree_aggregation_slot *own)
{
    struct tree_aggregation_slot *s = &v->slot[slot_of(index)];
    /* True: a child has reported before this peer began the drift window. */
    bool early = s->index == index && s->sum.n > 0;
    struct tree_aggregation_slot was = *s;
    *s = *own;
    s->index = index;
    if (v->place.lock_step)
        s->round = round_of(&v->place, index);
    if (early) {
        add(&s->sum, &was.sum);
        s->n_children = was.n_children;
    }
    look(v, s);
}

/* Several drift windows can begin at once, if this peer skipped rounds. The current model is then
 * used for all of them. */
void tree_aggregation_begin(struct tree_aggregation *v, const float s[SKETCH_K], double norm2,
                            double local2)
{
    struct tree_aggregation_slot own = {.began = true, .round = v->round, .local2 = local2};
    /* The number of times that the index of a window can be divided by 2 is the number of its slot
     * (slot_of()). The latest 2^TREE_AGGREGATION_SLOTS windows therefore overwrite every slot, and
     * older windows need not begin. */
    uint64_t most = UINT64_C(1) << TREE_AGGREGATION_SLOTS;
    uint64_t first = v->heard - v->clock > most ? v->heard - most : v->clock;
    memcpy(own.s, s, sizeof own.s);
    memcpy(own.sum.mean, s, sizeof own.sum.mean);
    own.sum.n = 1;
    own.sum.norm2 = norm2;
    own.sum.settling = v->round >= v->place.n_rounds;
    for (uint64_t index = first + 1; index <= v->heard; index++)
        begin_slot(v, index, &own);
    v->clock = v->heard;
}

const struct tree_aggregation_slot *tree_aggregation_newest(const struct tree_aggregation *v)
{
    const struct tree_aggregation_slot *best = NULL;
    for (size_t i = 0; i < TREE_AGGREGATION_SLOTS; i++)
        if (v->slot[i].done && (best == NULL || v->slot[i].index > best->index))
            best = &v->slot[i];
    return best;
}

/* ---- messages of one edge ---- */

void tree_aggregation_pair_place(struct tree_aggregation_pair *p,
                                 const enum tree_aggregation_role role[TREE_AGGREGATION_TREES],
                                 uint64_t built)
{
    *p = (struct tree_aggregation_pair){.built = built, .quiet = p->quiet};
    memcpy(p->role, role, sizeof p->role);
}

void tree_aggregation_pair_reset(struct tree_aggregation_pair *p)
{
    memset(p->sent, 0, sizeof p->sent);
    p->told = 0;
}

/* Returns the drift window whose report (to a parent) or result (to a child that has reported) must
 * be sent next over an edge. NULL: none. The oldest window is sent first, because it has waited
 * longest and is stored longest. */
static struct tree_aggregation_slot *due(struct tree_aggregation *v,
                                         const struct tree_aggregation_pair *p)
{
    struct tree_aggregation_slot *best = NULL;
    for (size_t i = 0; i < TREE_AGGREGATION_SLOTS; i++) {
        struct tree_aggregation_slot *s = &v->slot[i];
        enum tree_aggregation_role role = p->role[tree_of(s->index)];
        bool up = role == TREE_AGGREGATION_PARENT && complete(v, s);
        bool down = role == TREE_AGGREGATION_CHILD && s->done && p->got[i] == s->index;
        if ((up || down) && p->sent[i] != s->index && (best == NULL || s->index < best->index))
            best = s;
    }
    return best;
}

enum tree_aggregation_word tree_aggregation_say(struct tree_aggregation *v,
                                                struct tree_aggregation_pair *p, uint64_t *index,
                                                const struct tree_aggregation_sum **sum)
{
    if (p->built != v->place.built)
        return TREE_AGGREGATION_NOTHING;
    uint64_t pace = v->round < v->place.n_rounds ? v->place.pace : 1;
    struct tree_aggregation_slot *s = ++p->quiet >= pace ? due(v, p) : NULL;
    if (s != NULL) {
        p->sent[s - v->slot] = s->index;
        p->quiet = 0;
        *index = s->index;
        *sum = &s->sum;
        return !s->done   ? TREE_AGGREGATION_UP
               : s->sharp ? TREE_AGGREGATION_DOWN
                          : TREE_AGGREGATION_BLURRED;
    }
    /* A CLOCK message says that a measurement has begun. It is sent at least once over each edge,
     * because a neighbour that still averages by gossip stops the averaging when it receives one
     * (sketch.c). */
    bool news = !v->place.lock_step && v->clock > p->told;
    if (p->told > 0 && !news)
        return TREE_AGGREGATION_NOTHING;
    *index = v->clock;
    p->told = v->clock > 0 ? v->clock : 1;
    return TREE_AGGREGATION_CLOCK;
}

/* Returns the full index of a drift window from `low`, the lower INDEX_BITS bits that a message
 * contains. The result is the index with these bits that is closest to this peer's latest
 * window. */
static uint64_t whole_index(const struct tree_aggregation *v, uint64_t low)
{
    uint64_t mask = (UINT64_C(1) << INDEX_BITS) - 1;
    uint64_t ahead = (low - v->clock) & mask;
    return ahead <= mask / 2 || v->clock + ahead <= mask ? v->clock + ahead
                                                         : v->clock + ahead - mask - 1;
}

/* Adds a child's report to the sum of its drift window. The child may be a round ahead, so its
 * report may be the first value in the slot. */
static void hear_up(struct tree_aggregation *v, struct tree_aggregation_pair *p, uint64_t index,
                    const struct tree_aggregation_sum *sum)
{
    size_t i = slot_of(index);
    struct tree_aggregation_slot *s = &v->slot[i];
    if (index > v->clock && s->index < index)
        *s = (struct tree_aggregation_slot){.index = index};
    if (s->index != index || s->done || p->got[i] == index || s->sum.n + sum->n > v->place.n)
        /* Ignores a report that is a repeat or too old, or would count more peers than there are
         * members. */
        return;
    p->got[i] = index;
    if (s->sum.n == 0)
        s->sum = *sum;
    else
        add(&s->sum, sum);
    s->n_children++;
    look(v, s);
}

void tree_aggregation_hear(struct tree_aggregation *v, struct tree_aggregation_pair *p,
                           enum tree_aggregation_word word, uint64_t index,
                           const struct tree_aggregation_sum *sum)
{
    index = whole_index(v, index);
    struct tree_aggregation_slot *s = &v->slot[slot_of(index)];
    if (index == 0 || p->built != v->place.built)
        return;
    if (!v->place.lock_step && !v->place.root[0] && index > v->heard)
        v->heard = index;
    enum tree_aggregation_role role = p->role[tree_of(index)];
    if (word == TREE_AGGREGATION_UP && role == TREE_AGGREGATION_CHILD)
        hear_up(v, p, index, sum);
    bool result = word == TREE_AGGREGATION_DOWN || word == TREE_AGGREGATION_BLURRED;
    if (result && role == TREE_AGGREGATION_PARENT && s->index == index && complete(v, s)
        && sum->n == v->place.n) {
        s->sum = *sum;
        settle(v, s, word == TREE_AGGREGATION_DOWN);
    }
}
