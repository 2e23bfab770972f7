/* peer/node/session/dial.c -- decides which addresses this peer dials, and when.
 *
 * This peer dials four kinds of destinations:
 *
 *   - Bootstrap names: all addresses of each name, except those of connected members. The interval
 *     is BOOTSTRAP_US (30 s), or BOOTSTRAP_ALONE_US (2 s) while this peer has no session.
 *   - Contacts, the members with which the node wants a session (sessions_call()): the interval
 *     begins at REDIAL_MIN_US (0.1 s) and doubles up to REDIAL_MAX_US (5 s).
 *   - Dead members: one at a time, at random, every DEAD_REDIAL_US (30 s).
 *   - Dead and finished members, if this peer has no session, or was cut off or paused: one at a
 *     time, in turn, every DEAD_REDIAL_ALONE_US (2 s) on average.
 *
 * All of them are dialled for the whole run, so that a network partition of any length heals. The
 * intervals vary at random by 20 %. The interval of 2 s for dead members varies from 0 to 8 s.
 */
#include "peer/node/session/sessions_state.h"

#include "peer/node/mark.h"
#include "peer/node/timers.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Maximum number of dropped members that are accused, and dialled if possible, in each interval of
 * DIAL_DROPPED_US. */
enum { DROPPED_MAX = 8 };

void dial_address(struct sessions *s, const char *address, uint32_t *tag)
{
    struct node_effects *fx = s->env->fx;
    assert(fx->n_dials < NODE_DIALS_MAX);
    *tag = ++s->next_tag;
    fx->dials[fx->n_dials++] = (struct node_dial){.tag = *tag, .address = address};
}

void dial_check_contact(const struct sessions *s, const struct contact *c)
{
    int64_t now = s->env->now_us;
    assert(c->wanted || c->watched);
    backoff_check(&c->redial, REDIAL_MIN_US, REDIAL_MAX_US);
    backoff_check(&c->spared, REFUTED_US, REFUTED_MAX_US);
    assert(c->spared.next_us <= now + REFUTED_MAX_US && c->asked_us <= now);
    /* watch() sets the time of a new contact up to MONITOR_GRACE_US ahead. */
    assert(c->heard_us <= now + MONITOR_GRACE_US);
}

/* Ends a dial that failed, and doubles the back-off up to most_us. */
static void wait_longer(struct sessions *s, struct contact *c, int64_t most_us)
{
    c->tag = 0;
    c->redial.next_us =
        s->env->now_us + env_jitter(s->env, backoff_grow(&c->redial, REDIAL_MIN_US, most_us));
}

/* ---- bootstrap ---- */

void dial_start(struct sessions *s)
{
    assert(s->n_contacts == 0 && s->dead_tag == 0);
    s->dead_redial_us = s->env->now_us + env_jitter(s->env, DEAD_REDIAL_US);
    for (uint32_t i = 0; i < s->env->config.n_bootstrap; i++)
        s->seeds[i].next_us = s->env->now_us;
}

/* Returns whether the address belongs to this peer or to a member that has a session with this
 * peer, so that it need not be dialled. */
static bool known_address(const struct sessions *s, const char *address)
{
    for (size_t i = 0; i < members_count(s->env->members); i++) {
        const struct member *m = members_at(s->env->members, i);
        bool self = env_same_id(m->record->id, s->env->config.id);
        for (uint32_t k = 0; k < m->record->n_addresses; k++)
            if (strcmp(m->record->address[k], address) == 0)
                return m->connected || self;
    }
    return false;
}

bool dial_announces(const struct sessions *s, const char *address)
{
    const struct record *own = members_self(s->env->members);
    for (uint32_t k = 0; k < own->n_addresses; k++)
        if (strcmp(own->address[k], address) == 0)
            return true;
    return false;
}

/* Handles the record of a member that this peer has dropped from its table. The sender, at the
 * other end of session l, still has the member in its table. Tombstones reject the record until a
 * session proves that the member is alive. There are two cases:
 *
 *   - This peer was cut off for longer than --member-ttl, and the member is alive. The edges and
 *     the failure detector dial only members in the table, so the dial is made here.
 *   - The sender was paused or cut off, and did not learn that the member died. No monitor of the
 *     member is left that could accuse it, so this peer does. A member that is alive refutes the
 *     accusation. */
void dial_dropped(struct sessions *s, const struct link *l, const struct record *r)
{
    uint32_t tag;
    /* The accusation is not stored in env_batch(), which may still hold the message that contains
     * r. */
    struct accusation a;
    if (!quota_left(&s->dropped, DROPPED_MAX, DIAL_DROPPED_US, s->env->now_us)
        || !members_rejected(s->env->members, r))
        return;
    MARK("dial: a dropped member may be alive");
    s->dropped.n++;
    members_accuse_dropped(s->env->members, r, &a);
    dissemination_send(s, l, &(struct wire_members){.n_accusations = 1, .accusations = &a});
    if (s->env->fx->n_dials < NODE_DIALS_MAX && r->n_addresses > 0
        && !known_address(s, r->address[0]))
        dial_address(s, r->address[0], &tag);
}

/* Dials the addresses of a bootstrap name, except those of this peer and of connected members. At
 * most NODE_DIALS_MAX dials are made per step. */
static void dial_addresses(struct sessions *s, struct seed *d)
{
    for (uint32_t k = 0; k < d->n; k++)
        d->at[k].self |= dial_announces(s, d->at[k].address);
    for (uint32_t k = 0; k < d->n && s->env->fx->n_dials < NODE_DIALS_MAX; k++) {
        if (d->at[k].busy || d->at[k].self || known_address(s, d->at[k].address))
            continue;
        d->at[k].busy = true;
        dial_address(s, d->at[k].address, &d->at[k].tag);
    }
}

struct seed *dial_seed_of(struct sessions *s, uint32_t tag, struct seed_address **address)
{
    assert(tag != 0);
    for (uint32_t i = 0; i < s->env->config.n_bootstrap; i++)
        for (uint32_t k = 0; k < s->seeds[i].n; k++)
            if (s->seeds[i].at[k].tag == tag) {
                *address = &s->seeds[i].at[k];
                return &s->seeds[i];
            }
    return NULL;
}

/* Names are resolved again during the whole run, because containers change their addresses. */
void dial_tick_seeds(struct sessions *s)
{
    for (uint32_t i = 0; i < s->env->config.n_bootstrap; i++) {
        struct seed *d = &s->seeds[i];
        if (d->busy || s->env->now_us < d->next_us)
            continue;
        d->busy = true;
        d->next_us = s->env->now_us + env_jitter(s->env, BOOTSTRAP_US);
        assert(s->env->fx->n_resolves < NODE_SEEDS_MAX);
        s->env->fx->resolves[s->env->fx->n_resolves].seed = i;
        s->env->fx->resolves[s->env->fx->n_resolves++].name = d->name;
    }
}

void sessions_resolved(struct sessions *s, const struct node_event *ev)
{
    struct seed *d = &s->seeds[ev->resolved.seed];
    assert(ev->resolved.seed < s->env->config.n_bootstrap);
    d->busy = false;
    if (ev->resolved.n == 0) {
        if (!d->warned)
            env_note(s->env, NOTE_WARNING, "bootstrap %s does not resolve; will be retried",
                     d->name);
        d->warned = true;
        connection_diagnostics_unresolved(s, d);
        d->next_us = s->env->now_us + env_jitter(s->env, BOOTSTRAP_ALONE_US);
        return;
    }
    d->warned = false;
    /* Without a session, the bootstrap name is resolved again soon, because the dials to its
     * addresses may fail. */
    if (!sessions_any(s))
        d->next_us = s->env->now_us + env_jitter(s->env, BOOTSTRAP_ALONE_US);
    for (uint32_t k = 0; k < d->n; k++)
        if (d->at[k].busy)
            return; /* A dial to an address of the previous lookup is still in progress. */
    uint32_t count = ev->resolved.n;
    d->n = count < NODE_SEED_ADDRESSES ? count : NODE_SEED_ADDRESSES;
    for (uint32_t k = 0; k < d->n; k++) {
        bool self = d->at[k].self && strcmp(d->at[k].address, ev->resolved.address[k]) == 0;
        snprintf(d->at[k].address, sizeof d->at[k].address, "%s", ev->resolved.address[k]);
        d->at[k].self = self;
    }
    dial_addresses(s, d);
}

/* Returns whether a finished dial was refused by a host that is up, and updates the number of
 * consecutive refusals. `id`: the peer that answered; NULL: the dial failed. */
static bool count_refusal(struct sessions *s, const uint8_t *id, enum node_why why)
{
    bool refused = id == NULL && why == NODE_WHY_REFUSED;
    if (s->n_refused == 0)
        s->refused_us = s->env->now_us;
    s->n_refused = refused ? s->n_refused + 1 : 0;
    return refused;
}

/* If a different peer answers at a contact's address, the dial has failed, because the contact's
 * process no longer exists there. For example, a machine that lost its key file has a new
 * identity. */
void dial_over(struct sessions *s, uint32_t tag, const uint8_t *id, enum node_why why)
{
    bool self = id != NULL && env_same_id(id, s->env->config.id);
    struct seed_address *a;
    if (s->dead_tag == tag) {
        s->dead_tag = 0;
        count_refusal(s, id, why);
    }
    if (dial_seed_of(s, tag, &a) != NULL && a->busy) {
        a->busy = false;
        a->self |= self;
    }
    for (size_t i = 0; i < s->n_contacts; i++) {
        struct contact *c = &s->contacts[i];
        if (c->tag != tag)
            continue;
        c->tag = 0;
        bool refused = count_refusal(s, id, why);
        c->refusals = refused ? c->refusals + 1 : 0;
        if (id != NULL && env_same_id(id, c->id))
            continue;
        /* A member that was heard recently may be restarting, so it is dialled more often. */
        bool recent = c->met && s->env->now_us - c->heard_us < RESTARTING_US;
        wait_longer(s, c, recent ? REDIAL_RECENT_US : REDIAL_MAX_US);
        dial_check_contact(s, c);
        callback_in_vain(s, c, id != NULL ? NODE_WHY_OTHER : why);
    }
}

void dial_all_again(struct sessions *s)
{
    for (uint32_t i = 0; i < s->env->config.n_bootstrap; i++)
        for (uint32_t k = 0; k < s->seeds[i].n; k++)
            s->seeds[i].at[k].self = false;
}

void sessions_dial_failed(struct sessions *s, const struct node_event *ev)
{
    connection_diagnostics_failed(s, ev);
    if (!callback_over(s, ev->dial.tag, NULL, ev->dial.why))
        dial_over(s, ev->dial.tag, NULL, ev->dial.why);
}

/* ---- dialling members ---- */

/* Returns whether there is a session with peer `id`, even if no HELLO has arrived on it yet. */
static bool in_touch(const struct sessions *s, const uint8_t *id)
{
    for (size_t i = 0; i < s->n_links; i++)
        if (s->links[i].used && s->links[i].hung_up == NULL && env_same_id(s->links[i].id, id))
            return true;
    return false;
}

struct contact *dial_contact(struct sessions *s, const uint8_t *id)
{
    for (size_t i = 0; i < s->n_contacts; i++)
        if (env_same_id(s->contacts[i].id, id))
            return &s->contacts[i];
    return NULL;
}

struct contact *dial_add_contact(struct sessions *s, const uint8_t *id)
{
    struct contact *c = dial_contact(s, id);
    if (c != NULL)
        return c;
    assert(s->n_contacts <= s->cap_contacts);
    if (s->n_contacts == s->cap_contacts) {
        size_t cap = 2 * s->cap_contacts + 4;
        struct contact *grown = realloc(s->contacts, cap * sizeof *grown);
        if (grown == NULL)
            return NULL;
        s->contacts = grown;
        s->cap_contacts = cap;
    }
    c = &s->contacts[s->n_contacts++];
    *c = (struct contact){.heard_us = s->env->now_us};
    memcpy(c->id, id, WIRE_ID_BYTES);
    return c;
}

void dial_sift(struct sessions *s)
{
    for (size_t i = s->n_contacts; i-- > 0;)
        if (!s->contacts[i].wanted && !s->contacts[i].watched)
            s->contacts[i] = s->contacts[--s->n_contacts];
}

int sessions_want(struct sessions *s, const uint8_t id[WIRE_ID_BYTES])
{
    struct contact *c = dial_add_contact(s, id);
    if (c == NULL)
        return -ENOMEM;
    c->wanted = true;
    dial_check_contact(s, c);
    return 0;
}

bool sessions_wants(struct sessions *s, const uint8_t id[WIRE_ID_BYTES])
{
    const struct contact *c = dial_contact(s, id);
    return c != NULL && c->wanted;
}

void sessions_unwant(struct sessions *s, const uint8_t id[WIRE_ID_BYTES])
{
    struct contact *c = dial_contact(s, id);
    if (c == NULL)
        return;
    c->wanted = false;
    dial_sift(s);
}

void sessions_call(struct sessions *s, const uint8_t id[WIRE_ID_BYTES], int64_t lost_us)
{
    struct contact *c = dial_contact(s, id);
    const struct member *m = members_find(s->env->members, id);
    if (c == NULL || c->tag != 0 || s->env->now_us < c->redial.next_us || m == NULL
        || m->record->n_addresses == 0 || s->env->fx->n_dials == NODE_DIALS_MAX || in_touch(s, id)
        || quarantine_holds(&s->quarantine, id, s->env->now_us) || admit_must_wait(s, id))
        return;
    /* If both peers dialled at the same time, one of the two sessions would have to be closed
     * again. Therefore the peer with the greater id waits before it dials. */
    bool low = memcmp(s->env->config.id, id, WIRE_ID_BYTES) < 0;
    if (!low && s->env->now_us < lost_us + DIAL_YIELD_US)
        return;
    dial_address(s, m->record->address[c->next_address++ % m->record->n_addresses], &c->tag);
    dial_check_contact(s, c);
}

void sessions_call_soon(struct sessions *s, const uint8_t id[WIRE_ID_BYTES])
{
    struct contact *c = dial_contact(s, id);
    if (c != NULL)
        c->redial.next_us = 0;
}

void sessions_opened(struct sessions *s, const struct link *l)
{
    struct contact *c = dial_contact(s, l->id);
    assert(link_open(l));
    sessions_own(s, l)->opened = true;
    if (c != NULL)
        c->redial.gap_us = 0;
}

void dial_in_vain(struct sessions *s, const struct link *l)
{
    struct contact *c = dial_contact(s, l->id);
    assert(!l->used);
    if (c == NULL || in_touch(s, l->id))
        return;
    if (l->violated)
        c->redial.gap_us = REDIAL_MAX_US;
    wait_longer(s, c, REDIAL_MAX_US);
    dial_check_contact(s, c);
}

/* A peer that has no session, or that was cut off or paused, dials a dead or finished member every
 * DEAD_REDIAL_ALONE_US. It dials these members in turn rather than at random, because
 * sessions_deserted() needs a result for each of them. */
void dial_tick_dead(struct sessions *s)
{
    size_t count = members_count(s->env->members);
    bool alone = s->away != SESSIONS_THERE || !sessions_any(s);
    if (s->dead_tag != 0 || count < 2
        || s->env->now_us < s->dead_redial_us - (alone ? DEAD_REDIAL_US - DEAD_REDIAL_ALONE_US : 0))
        return;
    s->dead_redial_us = s->env->now_us + env_jitter(s->env, DEAD_REDIAL_US);
    size_t first = alone ? s->next_dead++ : (size_t)rng_below(&s->env->rng, count);
    for (size_t i = 0; i < count; i++) {
        const struct member *m = members_at(s->env->members, (first + i) % count);
        bool due = failure_detector_missing(s, m) && (alone || m->state == MEMBER_DEAD);
        if (!due || s->env->fx->n_dials == NODE_DIALS_MAX)
            continue;
        size_t k = (size_t)rng_below(&s->env->rng, m->record->n_addresses);
        if (alone)
            s->next_dead = (first + i + 1) % count;
        dial_address(s, m->record->address[k], &s->dead_tag);
        return;
    }
}
