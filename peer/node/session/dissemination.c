/* peer/node/session/dissemination.c -- membership gossip: sends records, accusations and
 * endorsements.
 *
 * Two kinds of transfers are made:
 *
 *   - The whole member table is sent to a new session after HELLO, and to a random session every
 *     ANTI_ENTROPY_US (10 s), at most SESSIONS_PIECE records per tick.
 *   - Changes of the table are sent to all sessions after each step, on average at most
 *     SESSIONS_NEWS per tick. Records that the other end already knows are left out.
 *
 * The member table tracks which records the other end of each session knows (members_listener()).
 */
#include "peer/node/session/sessions_state.h"

#include <assert.h>

void dissemination_send(struct sessions *s, const struct link *l, const struct wire_members *m)
{
    struct shared_scratch *c = s->env->commons;
    sessions_send(s, l, false, c->message, wire_put_members(c->message, sizeof c->message, m),
                  NULL);
}

void dissemination_send_record(struct sessions *s, const struct link *l, const struct record *r)
{
    struct wire_members m = {.n_records = 1, .records = s->env->commons->batch.records};
    m.records[0] = *r;
    dissemination_send(s, l, &m);
}

/* Continues a transfer of the whole member table: sends the next members, at most `most`. After the
 * last one, answers a STATUS_REQ that arrived during the transfer. */
static void tell_more(struct sessions *s, struct link *l, uint32_t most)
{
    struct env *v = s->env;
    struct wire_members m = env_batch(v);
    if (members_tell(v->members, sessions_slot(s, l), &l->told, &m, most))
        dissemination_send(s, l, &m);
    bool asked = l->transfer == LINK_TRANSFER_STATUS;
    if (members_told_all(v->members, l->told)) {
        l->transfer = LINK_TRANSFER_NONE;
        if (asked)
            s->owner.status(s->owner.self, l);
    } else if (!asked) {
        l->transfer = LINK_TRANSFER_RUNS;
    }
}

void dissemination_tell_all(struct sessions *s, struct link *l)
{
    assert(l->used && l->role != LINK_NEW && l->hung_up == NULL);
    l->told = 0;
    tell_more(s, l, WIRE_BATCH_MAX);
}

void dissemination_tick(struct sessions *s)
{
    for (size_t i = 0; i < s->n_links; i++) {
        struct link *l = &s->links[i];
        if (l->used && l->role != LINK_NEW && l->hung_up == NULL
            && l->transfer != LINK_TRANSFER_NONE)
            tell_more(s, l, SESSIONS_PIECE);
    }
    s->n_news += SESSIONS_NEWS;
    s->n_news = s->n_news < WIRE_BATCH_MAX ? s->n_news : WIRE_BATCH_MAX;
}

/* Sends a batch of membership changes to all connected peers. A record is left out for a peer that
 * already knows it. */
static void send_news(struct sessions *s, struct wire_members *m)
{
    struct env *v = s->env;
    for (size_t i = 0; i < s->n_links; i++) {
        const struct link *l = &s->links[i];
        if (!link_open(l))
            continue;
        m->without = members_known(v->members, sessions_slot(s, l));
        bool records = m->n_records > 0 && m->without != UINT64_MAX >> (64 - m->n_records);
        if (records || m->n_accusations > 0 || m->n_vouches > 0)
            dissemination_send(s, l, m);
    }
    m->without = 0;
}

/* Returns the bit set of the sessions to which changes of the member table are sent, for
 * members_audience(). 0: there is no such session, or a session has an index that does not fit into
 * the set (MEMBERS_LISTENERS or more). */
static uint64_t audience(const struct sessions *s)
{
    uint64_t set = 0;
    for (size_t i = 0; i < s->n_links; i++) {
        if (!link_open(&s->links[i]))
            continue;
        if (i >= MEMBERS_LISTENERS)
            return 0;
        set |= UINT64_C(1) << i;
    }
    return set;
}

void sessions_last_news(struct sessions *s)
{
    struct wire_members m = env_batch(s->env);
    members_audience(s->env->members, audience(s));
    while (members_dirty(s->env->members, &m, WIRE_BATCH_MAX))
        send_news(s, &m);
}

void sessions_news(struct sessions *s)
{
    struct env *v = s->env;
    struct wire_members m = env_batch(v);
    members_audience(v->members, audience(s));
    while (s->n_news >= MEMBERS_ACCUSERS && members_dirty(v->members, &m, s->n_news)) {
        uint32_t most = m.n_records > m.n_accusations ? m.n_records : m.n_accusations;
        most = most > m.n_vouches ? most : m.n_vouches;
        assert(most > 0 && most <= s->n_news);
        s->n_news -= most;
        send_news(s, &m);
    }
}
