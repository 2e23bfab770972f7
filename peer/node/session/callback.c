/* peer/node/session/callback.c -- checks whether members can be called at the addresses that they
 * announce.
 *
 *   a session with a member opens
 *        |
 *        v  after about 1 s: did this peer open the session at an address of the member's record?
 *   yes: send CALLBACK "works"     no: call each address of the record; all of them a second time
 *                                  after 1.5 s, unless the last call timed out
 *                                     |                                 |
 *                       the member answers at one address    the member answers at no address
 *                                     |                                 |
 *                           send CALLBACK "works"          print a warning; send CALLBACK with the
 *                                                          reason, so that the member warns, too
 *
 * To *call* a member is to dial one of its addresses as a test. A call ends as soon as the other
 * end has proved its identity. A peer also prints a warning if it could never call a neighbour that
 * other members report as alive. Results of calls do not change any decision of the protocol,
 * because a member without a working address can still call others. The simulator makes no such
 * calls (config.calls_back is false).
 */
#include "peer/node/session/sessions_state.h"

#include "nn/math/number.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static bool is_on(const struct sessions *s)
{
    return s->env->config.calls_back;
}

static struct callback_link *results(struct sessions *s, const struct link *l)
{
    return &s->callback.of[sessions_slot(s, l)];
}

static const struct record *record_of(const struct sessions *s, const uint8_t *id)
{
    const struct member *m = members_find(s->env->members, id);
    return m != NULL ? m->record : NULL;
}

static uint64_t hash_of(const char *address)
{
    /* The hash of an address is never 0, because the hash 0 means that there is no address. */
    return rng_hash((const uint8_t *)address, strlen(address)) | 1;
}

/* ---- Warnings ----------------------------------------------------------- */

static const char remedy[] = "--advertise HOST:PORT, an address that other members can call";

/* Warns that this peer cannot call a member at an address. After CALLBACK_LINES such warnings, one
 * last warning without a name is printed. */
static void tell_theirs(struct sessions *s, const struct record *r, const char *address,
                        enum node_why why)
{
    struct callback *b = &s->callback;
    bool told =
        recent_add(&b->told, CALLBACK_NAMES, r->id, hash_of(address), INT64_MAX, s->env->now_us);
    if (told || b->told.n > CALLBACK_LINES + 1)
        return;
    if (b->told.n == CALLBACK_LINES + 1)
        env_note(
            s->env, NOTE_WARNING,
            "more members cannot be called at the addresses that they announce: hearsay status "
            "lists them");
    else
        env_note(s->env, NOTE_WARNING, "%s cannot be called at %s: %s; start it with %s", r->name,
                 address, connection_diagnostics_why(why), remedy);
}

/* Warns that members cannot call this peer. One line covers all of them, because their results
 * arrive at about the same time. */
static void tell_ours(struct sessions *s)
{
    struct callback *b = &s->callback;
    const struct link *last = NULL;
    uint32_t n_works = 0;
    for (size_t i = 0; i < s->n_links; i++) {
        const struct link *l = &s->links[i];
        if (!link_open(l))
            continue;
        n_works += b->of[i].ours == CALLBACK_WORKS;
        last = b->of[i].ours == CALLBACK_FAILS ? l : last;
    }
    const struct record *r = last != NULL ? record_of(s, last->id) : NULL;
    b->tell.next_us = 0;
    if (r == NULL)
        return;
    enum node_why why = results(s, last)->why;
    if (n_works > 0) {
        env_note(
            s->env, NOTE_WARNING,
            "%s cannot call this peer at %s: %s; %u other member%s can. If more members report "
            "this, start this peer with %s",
            r->name, b->address, connection_diagnostics_why(why), (unsigned)n_works,
            number_plural(n_works), remedy);
        return;
    }
    env_note(
        s->env, NOTE_WARNING,
        "no member can call this peer at %s, the address that it announces: %s (reported by %s); "
        "start this peer with %s",
        b->address, connection_diagnostics_why(why), r->name, remedy);
    backoff_wait(&b->tell, CALLBACK_WARNING_US, CALLBACK_WARNING_MAX_US, s->env->now_us);
}

/* ---- Results ------------------------------------------------------------ */

static void send_result(struct sessions *s, const struct link *l, const char *address,
                        enum node_why why)
{
    uint8_t out[WIRE_ADDRESS_MAX + 16];
    struct wire_callback m = {.why = (uint32_t)why};
    snprintf(m.address, sizeof m.address, "%s", address);
    sessions_send(s, l, false, out, wire_put_callback(out, sizeof out, &m), NULL);
}

static void works(struct sessions *s, const struct link *l, const char *address)
{
    results(s, l)->theirs = CALLBACK_WORKS;
    send_result(s, l, address, NODE_WHY_UNKNOWN);
}

/* Returns whether the reason of a failed call shows that the address does not work. Three reasons
 * do not show this: the call could not be made, or the peer was too busy to answer (NODE_WHY_MUTE)
 * or to finish the handshake in time (NODE_WHY_SLOW). */
static bool tells(enum node_why why)
{
    return why != NODE_WHY_UNKNOWN && why != NODE_WHY_MUTE && why != NODE_WHY_SLOW;
}

/* Handles a failed call: plans the next call or, after the last one, prints a warning and tells the
 * member that no address works. */
static void failed(struct sessions *s, const struct link *l, const char *address, enum node_why why)
{
    const struct record *r = record_of(s, l->id);
    struct callback_link *k = results(s, l);
    uint32_t n = r != NULL ? r->n_addresses : 0;
    bool again = why != NODE_WHY_TIMEOUT && k->n_calls < 2 * n;
    assert(k->n_calls > 0);
    k->theirs = CALLBACK_OPEN;
    if (k->n_calls < n)
        return; /* The member has another address, which is called without delay. */
    /* The member may be restarting, so its addresses are called a second time. */
    k->next_us = s->env->now_us + CALLBACK_RETRY_US;
    if (again && k->n_calls != n)
        k->next_us = 0;
    if (again)
        return;
    k->theirs = tells(why) ? CALLBACK_FAILS : CALLBACK_UNKNOWN;
    if (r == NULL || !tells(why))
        return;
    tell_theirs(s, r, address, why);
    send_result(s, l, address, why);
}

bool callback_over(struct sessions *s, uint32_t tag, const uint8_t *id, enum node_why why)
{
    struct callback *b = &s->callback;
    assert(tag != 0);
    for (uint32_t i = 0; i < CALLBACK_CALLS; i++) {
        if (b->call[i].tag != tag)
            continue;
        const struct link *l = sessions_link(s, b->call[i].link);
        b->call[i].tag = 0;
        if (l == NULL || !link_open(l))
            return true;
        assert(results(s, l)->theirs == CALLBACK_CALLING);
        if (id != NULL && env_same_id(id, l->id))
            works(s, l, b->call[i].address);
        else
            failed(s, l, b->call[i].address, id != NULL ? NODE_WHY_OTHER : why);
        assert(results(s, l)->theirs != CALLBACK_CALLING);
        return true;
    }
    return false;
}

/* Stores the result that a member reports about calls to this peer. */
void callback_came(struct sessions *s, const struct link *l, const struct wire_callback *m)
{
    struct callback *b = &s->callback;
    struct callback_link *k = results(s, l);
    assert(link_open(l));
    if (!dial_announces(s, m->address))
        return;
    k->ours = m->why == NODE_WHY_UNKNOWN ? CALLBACK_WORKS : CALLBACK_FAILS;
    if (k->ours != CALLBACK_FAILS)
        return;
    k->why = (enum node_why)m->why;
    snprintf(b->address, sizeof b->address, "%s", m->address);
    if (b->tell.next_us == 0)
        /* The warning that this peer cannot be called is delayed, so that it also covers the
         * results of other members. */
        b->tell.next_us = s->env->now_us + CALLBACK_COLLECT_US;
}

void callback_in_vain(struct sessions *s, struct contact *c, enum node_why why)
{
    const struct member *m = members_find(s->env->members, c->id);
    if (!is_on(s) || c->met || m == NULL || m->state != MEMBER_ALIVE || m->record->n_addresses == 0)
        return;
    if (c->unmet_us == 0)
        c->unmet_us = s->env->now_us;
    /* If the member has died, it becomes SUSPECT before CALLBACK_UNMET_US is over, and no warning
     * is printed. */
    if (!tells(why) || s->env->now_us - c->unmet_us < CALLBACK_UNMET_US)
        return;
    uint32_t last = (c->next_address + m->record->n_addresses - 1) % m->record->n_addresses;
    tell_theirs(s, m->record, m->record->address[last], why);
}

/* ---- Calls -------------------------------------------------------------- */

void callback_opened(struct sessions *s, const struct link *l)
{
    struct callback_link *k = results(s, l);
    struct seed_address *a;
    *k = (struct callback_link){.theirs = CALLBACK_OPEN};
    if (!is_on(s))
        return;
    k->next_us = s->env->now_us + env_jitter(s->env, CALLBACK_US);
    if (link_dialled(l) && dial_seed_of(s, l->tag, &a) != NULL && a->busy)
        k->dialled = hash_of(a->address);
}

/* Returns the session of a member that must be called now, or NULL. */
static const struct link *next_link(const struct sessions *s)
{
    for (size_t i = 0; i < s->n_links; i++) {
        const struct link *l = &s->links[i];
        const struct callback_link *k = &s->callback.of[i];
        if (link_open(l) && !l->mute && k->theirs == CALLBACK_OPEN && s->env->now_us >= k->next_us)
            return l;
    }
    return NULL;
}

/* Calls the member of session `l`. No call is made if this peer has already reached one of the
 * member's addresses. `slot`: free index in call[]. */
static void call(struct sessions *s, const struct link *l, uint32_t slot)
{
    struct callback *b = &s->callback;
    struct callback_link *k = results(s, l);
    const struct record *r = record_of(s, l->id);
    assert(b->call[slot].tag == 0 && k->theirs == CALLBACK_OPEN);
    if (r == NULL || r->n_addresses == 0) {
        k->next_us = s->env->now_us + CALLBACK_NO_ADDRESS_US;
        return;
    }
    /* This peer opened the session by calling an address in the member's record, so at least one
     * address in the record works. */
    if (link_dialled(l) && k->dialled == 0) {
        works(s, l, r->address[0]);
        return;
    }
    for (uint32_t i = 0; i < r->n_addresses; i++)
        if (k->dialled == hash_of(r->address[i])) {
            works(s, l, r->address[i]);
            return;
        }
    b->call[slot].link = l->number;
    snprintf(b->call[slot].address, sizeof b->call[slot].address, "%s",
             r->address[k->n_calls++ % r->n_addresses]);
    k->theirs = CALLBACK_CALLING;
    dial_address(s, b->call[slot].address, &b->call[slot].tag);
}

void callback_tick(struct sessions *s)
{
    struct callback *b = &s->callback;
    if (!is_on(s))
        return;
    for (uint32_t i = 0; i < CALLBACK_CALLS && s->env->fx->n_dials < NODE_DIALS_MAX; i++) {
        const struct link *l = b->call[i].tag != 0 ? NULL : next_link(s);
        if (l != NULL)
            call(s, l, i);
    }
    if (b->tell.next_us != 0 && s->env->now_us >= b->tell.next_us)
        tell_ours(s);
}
