/* gossip/members/endorsements.c -- stores endorsements and computes which members are accepted. */
#include "gossip/members/endorsements.h"

#include "gossip/members/inside.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    NOBODY = SLOT_NONE,
    /* Maximum number of passes over all members in label_all(). Only an attacker can build chains
     * of endorsements that are so long that they need more passes. The members on such a chain are
     * treated as known through one member only. */
    PASSES = 32
};

/* ---- storage of endorsements ---- */

static const struct record *record_at(const struct members *m, uint16_t place)
{
    return m->table.slot[place].member.record;
}

static struct vouch_slot *find_vouch(const struct members *m, uint16_t voucher, uint16_t member)
{
    for (uint32_t i = 0; i < m->n_vouches; i++)
        if (m->vouch[i].voucher == voucher && m->vouch[i].member == member)
            return &m->vouch[i];
    return NULL;
}

static bool is_gone(const struct members *m, uint16_t place)
{
    enum member_state state = m->table.slot[place].member.state;
    return state == MEMBER_DEAD || state == MEMBER_LEFT;
}

/* Finds the place for an endorsement of `member` by `voucher`: an endorsement to overwrite
 * (*place), or NULL to append one. Returns false if the voucher has the maximum number of
 * endorsements and none of them may be overwritten. */
static bool place_for(const struct members *m, uint16_t voucher, uint16_t member,
                      struct vouch_slot **place)
{
    uint32_t n = 0;
    struct vouch_slot *greatest = NULL, *gone = NULL;
    for (uint32_t i = 0; i < m->n_vouches; i++) {
        struct vouch_slot *v = &m->vouch[i];
        if (v->voucher != voucher)
            continue;
        n++;
        if (is_gone(m, v->member))
            gone = v;
        else if (greatest == NULL
                 || memcmp(record_at(m, v->member)->id, record_at(m, greatest->member)->id,
                           WIRE_ID_BYTES)
                        > 0)
            greatest = v;
    }
    *place = n < ENDORSEMENTS_MAX ? NULL : gone != NULL ? gone : greatest;
    return n < ENDORSEMENTS_MAX || gone != NULL
           || memcmp(record_at(m, member)->id, record_at(m, greatest->member)->id, WIRE_ID_BYTES)
                  < 0;
}

/* Stores an endorsement at `place`, or appends it if place is NULL. Returns false if memory is
 * exhausted. */
static bool store(struct members *m, struct vouch_slot *place, const struct vouch_slot *v)
{
    if (place == NULL && m->n_vouches == m->cap_vouches) {
        uint32_t cap = m->cap_vouches == 0 ? 16 : 2 * m->cap_vouches;
        struct vouch_slot *grown = realloc(m->vouch, cap * sizeof *grown);
        if (grown == NULL)
            return false;
        m->vouch = grown;
        m->cap_vouches = cap;
    }
    *(place != NULL ? place : &m->vouch[m->n_vouches++]) = *v;
    m->unsettled = m->vouches_news = true;
    return true;
}

void vouches_drop(struct members *m, uint16_t place, uint16_t moved)
{
    for (uint32_t i = m->n_vouches; i-- > 0;) {
        struct vouch_slot *v = &m->vouch[i];
        if (v->voucher == place || v->member == place)
            *v = m->vouch[--m->n_vouches];
        else if (v->voucher == moved)
            v->voucher = place;
        else if (v->member == moved)
            v->member = place;
    }
    m->unsettled = true;
}

enum members_verdict members_vouched(struct members *m, const struct vouch *v)
{
    if (memcmp(v->voucher, v->member, sizeof v->voucher) == 0)
        return MEMBERS_FORGED;
    const struct slot *by = table_find(&m->table, v->voucher),
                      *of = table_find(&m->table, v->member);
    if (by == NULL || of == NULL)
        return MEMBERS_OLD;
    struct vouch_slot *place, s = {.voucher = table_place(&m->table, by),
                                   .member = table_place(&m->table, of),
                                   .news = true};
    if (find_vouch(m, s.voucher, s.member) != NULL || !place_for(m, s.voucher, s.member, &place))
        return MEMBERS_OLD;
    uint8_t msg[SIGNED_MAX];
    size_t n = wire_vouch_signed(msg, sizeof msg, v);
    assert(n > 0);
    if (!m->crypto.verify(m->crypto.self, v->voucher, msg, n, v->signature))
        return MEMBERS_FORGED;
    memcpy(s.signature, v->signature, sizeof s.signature);
    return store(m, place, &s) ? MEMBERS_NEWS : MEMBERS_FULL;
}

void members_know(struct members *m, const uint8_t id[WIRE_ID_BYTES], int64_t now_us)
{
    struct slot *s = table_find(&m->table, id);
    if (s == NULL || s->member.known)
        return;
    s->member.known = s->member.counts = s->given = true;
    m->unsettled = true;
    members_judge(m, s, now_us);
}

/* ---- which members are accepted ----
 *
 * Consider the graph whose arrows are endorsements. Each member that is reachable from this peer
 * has a nearest dominator: the last member before it that lies on all paths to it. The dominators
 * of a member form a chain from this peer to the member. The label of a member is the first
 * member of that chain after this peer, or the member itself if the chain is empty. All members
 * with label v, except v itself, are known to this peer through v alone.
 */

struct graph_of_vouches
{
    const struct members *m;
    uint32_t n;       /* Number of members in the member table. */
    uint32_t *out_at; /* Members that member i endorses: out[out_at[i] .. out_at[i + 1]). */
    uint16_t *out;
    /* Members that endorse member i: in[in_at[i] .. in_at[i + 1]). */
    uint32_t *in_at;
    uint16_t *in;
    /* Number of endorsements on the shortest path to each member. NOBODY: not reachable. */
    uint16_t *level;
    uint16_t *reached; /* Reachable members, the nearest to this peer first. */
    /* Order of the reachable members: a dominator comes before the members that it dominates. */
    uint16_t *rank;
    /* Some members lie on every path of endorsements from this peer to a member x. dominator: the
     * last of these members before x, or this peer if there are none. label: the first of these
     * members, or x itself if there are none. NOBODY: x is not reachable. */
    uint16_t *dominator, *label;
    uint32_t n_reached, n_firm;
};

static void close_graph(struct graph_of_vouches *g)
{
    free(g->out_at);
    free(g->out);
    free(g->in_at);
    free(g->in);
    free(g->level);
    free(g->reached);
    free(g->rank);
    free(g->dominator);
    free(g->label);
}

static bool open_graph(struct graph_of_vouches *g, const struct members *m)
{
    uint32_t n = m->table.n, e = m->n_vouches;
    *g = (struct graph_of_vouches){.m = m, .n = n};
    g->out_at = calloc(n + 2, sizeof *g->out_at);
    g->in_at = calloc(n + 2, sizeof *g->in_at);
    g->out = calloc(e + 1, sizeof *g->out);
    g->in = calloc(e + 1, sizeof *g->in);
    uint16_t **each[] = {&g->level, &g->reached, &g->rank, &g->dominator, &g->label};
    bool ok = g->out_at != NULL && g->in_at != NULL && g->out != NULL && g->in != NULL;
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        *each[i] = malloc(n * sizeof **each[i]);
        ok &= *each[i] != NULL;
        for (uint32_t k = 0; k < n && *each[i] != NULL; k++)
            (*each[i])[k] = NOBODY;
    }
    if (!ok)
        return false;
    /* Sorts the endorsements into out[] by endorsing member, and into in[] by endorsed member
     * (counting sort). First out_at[i + 2] counts the endorsements by member i. Then out_at[i + 1]
     * is the index in out[] at which the next endorsement by member i is written. */
    for (uint32_t i = 0; i < e; i++) {
        g->out_at[m->vouch[i].voucher + 2]++;
        g->in_at[m->vouch[i].member + 2]++;
    }
    for (uint32_t i = 2; i < n + 2; i++) {
        g->out_at[i] += g->out_at[i - 1];
        g->in_at[i] += g->in_at[i - 1];
    }
    for (uint32_t i = 0; i < e; i++) {
        g->out[g->out_at[m->vouch[i].voucher + 1]++] = m->vouch[i].member;
        g->in[g->in_at[m->vouch[i].member + 1]++] = m->vouch[i].voucher;
    }
    return true;
}

static void reach(struct graph_of_vouches *g, uint16_t place, uint32_t level)
{
    if (g->level[place] != NOBODY)
        return;
    g->level[place] = (uint16_t)level;
    g->rank[place] = (uint16_t)g->n_reached;
    g->reached[g->n_reached++] = place;
}

/* Finds the reachable members by breadth-first search from this peer. */
static void reach_all(struct graph_of_vouches *g)
{
    reach(g, SELF, 0);
    for (uint32_t i = 0; i < g->n; i++)
        if (g->m->table.slot[i].member.known)
            reach(g, (uint16_t)i, 1);
    for (uint32_t i = 0; i < g->n_reached; i++) {
        uint16_t by = g->reached[i];
        for (uint32_t k = g->out_at[by]; k < g->out_at[by + 1]; k++)
            reach(g, g->out[k], g->level[by] + 1u);
    }
}

/* Returns the last member that the dominator chains of members a and b have in common. */
static uint16_t meet(const struct graph_of_vouches *g, uint16_t a, uint16_t b)
{
    while (a != b) {
        if (g->rank[a] > g->rank[b])
            a = g->dominator[a];
        else
            b = g->dominator[b];
    }
    return a;
}

/* Returns the nearest dominator of x, from the current dominators of its endorsers. */
static uint16_t dominator_of(const struct graph_of_vouches *g, uint16_t x)
{
    uint16_t best = g->m->table.slot[x].member.known ? SELF : NOBODY;
    for (uint32_t k = g->in_at[x]; k < g->in_at[x + 1]; k++) {
        uint16_t by = g->in[k];
        if (g->dominator[by] != NOBODY)
            best = best == NOBODY ? by : meet(g, best, by);
    }
    return best;
}

/* Computes for each member x its dominator and its label: the last and the first member through
 * which all paths of endorsements to x lead. Iterates until no dominator changes. If the search
 * ends early, after PASSES iterations, some members may wrongly count as known through one member
 * only. */
static void label_all(struct graph_of_vouches *g)
{
    bool changed = true;
    g->dominator[SELF] = SELF;
    for (uint32_t pass = 0; changed && pass < PASSES; pass++) {
        changed = false;
        for (uint32_t i = 1; i < g->n_reached; i++) {
            uint16_t x = g->reached[i], dominator = dominator_of(g, x);
            changed |= dominator != g->dominator[x];
            g->dominator[x] = dominator;
        }
    }
    g->label[SELF] = SELF;
    for (uint32_t i = 1; i < g->n_reached; i++) {
        uint16_t x = g->reached[i];
        g->label[x] = g->dominator[x] == SELF ? x : g->label[g->dominator[x]];
        g->n_firm += g->label[x] == x;
    }
}

/* A member in doubt: all endorsements of it depend on one other member. */
struct doubtful
{
    uint16_t place, level;
    const uint8_t *id;
};

/* Order of members in doubt, that is, known through one other member only: by the number of
 * endorsements on the shortest path from this peer, then by id. Tables with equal contents
 * therefore choose the same members. */
static int compare_doubtful(const void *a, const void *b)
{
    const struct doubtful *x = a, *y = b;
    if (x->level != y->level)
        return x->level < y->level ? -1 : 1;
    return memcmp(x->id, y->id, WIRE_ID_BYTES);
}

/* Decides which members are accepted. A member is "in doubt" if one other member lies on all paths
 * of endorsements from this peer to it. A member that is not in doubt is accepted. Of the members
 * in doubt with the same label (the first member on all paths to them), a limited number is
 * accepted. Returns false if memory is exhausted. */
static bool choose(const struct graph_of_vouches *g, bool *counts)
{
    uint32_t n = 0, allowance = 1 + g->n_firm / ENDORSEMENTS_SHARE;
    struct doubtful *doubtful = malloc(g->n * sizeof *doubtful);
    uint16_t *used = calloc(g->n, sizeof *used);
    for (uint32_t i = 0; i < g->n_reached && doubtful != NULL && used != NULL; i++) {
        uint16_t x = g->reached[i];
        counts[x] = x == SELF || g->label[x] == x;
        if (!counts[x])
            doubtful[n++] = (struct doubtful){x, g->level[x], record_at(g->m, x)->id};
    }
    bool ok = doubtful != NULL && used != NULL;
    if (ok && n > 0)
        qsort(doubtful, n, sizeof *doubtful, compare_doubtful);
    for (uint32_t i = 0; i < n; i++) {
        uint16_t x = doubtful[i].place;
        counts[x] = used[g->label[x]]++ < allowance;
    }
    free(doubtful);
    free(used);
    return ok;
}

/* Returns whether an accepted member endorses x. */
static bool is_vouched(const struct graph_of_vouches *g, uint16_t x, const bool *counts)
{
    bool found = false;
    for (uint32_t k = g->in_at[x]; k < g->in_at[x + 1]; k++)
        found |= counts[g->in[k]];
    return found;
}

/* Returns whether x would be accepted without an endorsement by this peer. This is the case if two
 * members endorse x and these two do not depend on a common third member (their labels differ). */
static bool is_firm(const struct graph_of_vouches *g, uint16_t x)
{
    uint16_t label = NOBODY;
    for (uint32_t k = g->in_at[x]; k < g->in_at[x + 1]; k++) {
        uint16_t by = g->in[k];
        if (by == SELF || g->label[by] == NOBODY || g->label[by] == label)
            continue;
        if (label != NOBODY)
            return true;
        label = g->label[by];
    }
    return false;
}

/* Stores whether one member is accepted (`counts`) and whether an accepted member endorses it
 * (`vouched`). If neither was true before and one of the two is true now, the member is queued for
 * sending. */
static void apply(struct members *m, struct slot *s, bool counts, bool vouched, int64_t now_us)
{
    struct member *e = &s->member;
    if (e->counts == counts && e->vouched == vouched)
        return;
    if ((counts || vouched) && !e->counts && !e->vouched)
        members_add_news(m, s,
                         (enum dissemination)(DISSEMINATION_RECORD | DISSEMINATION_ACCUSATIONS));
    e->counts = counts;
    e->vouched = vouched;
    if (!counts && !vouched && e->state == MEMBER_ALIVE)
        e->dead_at_us = now_us;
    m->vouches_news = true;
    members_judge(m, s, now_us);
}

void members_settle(struct members *m, int64_t now_us)
{
    struct graph_of_vouches g;
    bool *counts = m->unsettled ? calloc(m->table.n, sizeof *counts) : NULL;
    if (counts == NULL)
        /* If memory is exhausted, the set of accepted members stays the same, and the next call
         * computes it again. */
        return;
    bool opened = open_graph(&g, m);
    if (opened) {
        reach_all(&g);
        label_all(&g);
    }
    if (opened && choose(&g, counts)) {
        m->unsettled = m->strangers = false;
        for (uint32_t i = SELF + 1; i < m->table.n; i++) {
            struct slot *s = &m->table.slot[i];
            s->member.firm = is_firm(&g, (uint16_t)i);
            m->strangers |= !s->member.known;
            apply(m, s, counts[i] || s->member.known, is_vouched(&g, (uint16_t)i, counts), now_us);
        }
    }
    close_graph(&g);
    free(counts);
}

/* ---- endorsements by this peer ---- */

/* Returns whether every address in record r is crowded: more than ENDORSEMENTS_AT_ADDRESS members
 * that announce it have sessions with this peer. One process can claim many identities but usually
 * has one address. */
static bool is_crowded(const struct members *m, const struct record *r)
{
    for (uint32_t k = 0; k < r->n_addresses; k++) {
        uint32_t n = 0;
        for (uint32_t i = SELF + 1; i < m->table.n; i++) {
            const struct member *e = &m->table.slot[i].member;
            bool there = false;
            for (uint32_t j = 0; j < e->record->n_addresses && e->connected; j++)
                there |= strcmp(e->record->address[j], r->address[k]) == 0;
            n += there;
        }
        if (n <= ENDORSEMENTS_AT_ADDRESS)
            return false;
    }
    return r->n_addresses > 0;
}

static uint32_t own_vouches(const struct members *m)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_vouches; i++)
        n += m->vouch[i].voucher == SELF && !is_gone(m, m->vouch[i].member);
    return n;
}

static void vouch_for(struct members *m, const struct slot *s)
{
    struct vouch v;
    struct vouch_slot *place,
        own = {.voucher = SELF, .member = table_place(&m->table, s), .news = true};
    uint8_t msg[SIGNED_MAX];
    if (!place_for(m, SELF, own.member, &place))
        return;
    memcpy(v.member, s->member.record->id, sizeof v.member);
    memcpy(v.voucher, m->self.id, sizeof v.voucher);
    size_t n = wire_vouch_signed(msg, sizeof msg, &v);
    assert(n > 0);
    m->crypto.sign(m->crypto.self, msg, n, own.signature);
    /* If memory is exhausted, no endorsement is made now. A later call makes it. */
    (void)store(m, place, &own);
}

/* If all members were known from the start of the cluster, no member needs an endorsement. */
void members_vouch(struct members *m, int64_t now_us)
{
    members_settle(m, now_us);
    for (uint32_t i = SELF + 1; i < m->table.n && m->strangers; i++) {
        const struct slot *s = &m->table.slot[i];
        if (s->member.connected && !s->member.firm && !is_gone(m, (uint16_t)i)
            && find_vouch(m, SELF, (uint16_t)i) == NULL && own_vouches(m) < ENDORSEMENTS_MAX
            && !is_crowded(m, s->member.record))
            vouch_for(m, s);
    }
    members_settle(m, now_us);
}
