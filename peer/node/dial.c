/* peer/node/dial.c -- whom to call and when: bootstrap names, neighbours, the dead. */
#include "peer/node/state.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static void dial(struct node *n, const char *address, uint32_t *tag)
{
    struct node_effects *fx = n->fx;
    assert(fx->n_dials < NODE_DIALS_MAX);
    *tag = ++n->next_tag;
    fx->dials[fx->n_dials++] = (struct node_dial){.tag = *tag, .address = address};
}

static void redial_failed(struct node *n, struct redial *r)
{
    r->busy = false;
    r->backoff_us = r->backoff_us == 0 ? REDIAL_MIN_US : 2 * r->backoff_us;
    if (r->backoff_us > REDIAL_MAX_US)
        r->backoff_us = REDIAL_MAX_US;
    r->next_us = n->now_us + node_jitter(n, r->backoff_us);
}

/* ---- bootstrap ---- */

void dial_start(struct node *n)
{
    n->dead_redial_us = n->now_us + node_jitter(n, DEAD_REDIAL_US);
    for (uint32_t i = 0; i < n->config.n_bootstrap; i++)
        n->seeds[i].next_us = n->now_us;
}

static bool known_address(const struct node *n, const char *address)
{
    for (size_t i = 0; i < members_count(n->members); i++) {
        const struct member *m = members_at(n->members, i);
        bool self = node_same_id(m->record->id, n->config.id);
        for (uint32_t k = 0; k < m->record->n_addresses; k++)
            if (strcmp(m->record->address[k], address) == 0)
                return m->connected || self;
    }
    return false;
}

static void dial_seed(struct node *n, struct seed *s)
{
    for (uint32_t k = 0; k < s->n && n->fx->n_dials < NODE_DIALS_MAX; k++) {
        if (s->at[k].busy || s->at[k].self || known_address(n, s->at[k].address))
            continue;
        s->at[k].busy = true;
        dial(n, s->at[k].address, &s->at[k].tag);
    }
}

/* Every name is resolved again and again, for ever: a partition of any length
 * heals, and containers change their addresses. */
void dial_tick_seeds(struct node *n)
{
    for (uint32_t i = 0; i < n->config.n_bootstrap; i++) {
        struct seed *s = &n->seeds[i];
        if (s->busy || n->now_us < s->next_us)
            continue;
        s->busy = true;
        s->next_us = n->now_us + node_jitter(n, SEED_US);
        n->fx->resolves[n->fx->n_resolves].seed = i;
        n->fx->resolves[n->fx->n_resolves++].name = s->name;
    }
}

void dial_resolved(struct node *n, const struct node_event *ev)
{
    struct seed *s = &n->seeds[ev->resolved.seed];
    s->busy = false;
    if (ev->resolved.n == 0) {
        if (!s->warned)
            node_note(n, NOTE_WARNING, "bootstrap %s does not resolve; will be retried", s->name);
        s->warned = true;
        s->next_us = n->now_us + node_jitter(n, SEED_ALONE_US);
        return;
    }
    s->warned = false;
    for (uint32_t k = 0; k < s->n; k++)
        if (s->at[k].busy)
            return; /* Still dialling the last answer. */
    uint32_t count = ev->resolved.n;
    s->n = count < NODE_SEED_ADDRESSES ? count : NODE_SEED_ADDRESSES;
    for (uint32_t k = 0; k < s->n; k++) {
        bool self = s->at[k].self && strcmp(s->at[k].address, ev->resolved.address[k]) == 0;
        snprintf(s->at[k].address, sizeof s->at[k].address, "%s", ev->resolved.address[k]);
        s->at[k].self = self;
    }
    dial_seed(n, s);
    if (!links_any(n))
        s->next_us = n->now_us + node_jitter(n, SEED_ALONE_US);
}

/* Who dialled with this tag? Marks it as no longer busy. */
void dial_over(struct node *n, uint32_t tag, bool self, bool failed)
{
    for (uint32_t i = 0; i < n->config.n_bootstrap; i++)
        for (uint32_t k = 0; k < n->seeds[i].n; k++)
            if (n->seeds[i].at[k].busy && n->seeds[i].at[k].tag == tag) {
                n->seeds[i].at[k].busy = false;
                n->seeds[i].at[k].self |= self;
            }
    if (n->dead.busy && n->dead.tag == tag)
        n->dead.busy = false;
    for (size_t i = 0; i < n->n_edges; i++) {
        struct redial *r = &n->edges[i]->redial;
        if (!r->busy || r->tag != tag)
            continue;
        r->busy = false;
        if (failed)
            redial_failed(n, r);
    }
}

void dial_failed(struct node *n, uint32_t tag)
{
    dial_over(n, tag, false, true);
}

/* ---- dialling members ---- */

/* A session is there, perhaps before its HELLO. */
static bool in_touch(const struct node *n, const uint8_t *id)
{
    for (size_t i = 0; i < NODE_LINKS_MAX; i++)
        if (n->links[i].used && !n->links[i].doomed && node_same_id(n->links[i].id, id))
            return true;
    return false;
}

void dial_neighbour(struct node *n, struct neighbour *b)
{
    struct redial *r = &b->redial;
    const struct member *m = members_find(n->members, b->edge.id);
    if (b->link != NULL || r->busy || n->now_us < r->next_us || m == NULL
        || m->record->n_addresses == 0 || n->fx->n_dials == NODE_DIALS_MAX
        || in_touch(n, b->edge.id))
        return;
    /* The smaller id dials at once, the other leaves it a moment. */
    if (!b->edge.low && n->now_us < b->lost_us + YIELD_US)
        return;
    r->busy = true;
    dial(n, m->record->address[b->next_address++ % m->record->n_addresses], &r->tag);
}

void dial_in_vain(struct node *n, const struct link *l)
{
    for (size_t i = 0; i < n->n_edges; i++) {
        struct neighbour *b = n->edges[i];
        if (!node_same_id(b->edge.id, l->id) || in_touch(n, l->id))
            continue;
        if (l->violated)
            b->redial.backoff_us = REDIAL_MAX_US;
        redial_failed(n, &b->redial);
    }
}

/* The dead are tried for ever, one at a time, slowly. */
void dial_tick_dead(struct node *n)
{
    size_t count = members_count(n->members);
    if (n->dead.busy || n->now_us < n->dead_redial_us || count < 2)
        return;
    n->dead_redial_us = n->now_us + node_jitter(n, DEAD_REDIAL_US);
    size_t first = (size_t)rng_below(&n->rng, count);
    for (size_t i = 0; i < count; i++) {
        const struct member *m = members_at(n->members, (first + i) % count);
        if (m->state != MEMBER_DEAD || m->record->n_addresses == 0
            || n->fx->n_dials == NODE_DIALS_MAX)
            continue;
        size_t k = (size_t)rng_below(&n->rng, m->record->n_addresses);
        n->dead.busy = true;
        dial(n, m->record->address[k], &n->dead.tag);
        return;
    }
}
