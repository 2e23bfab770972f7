/* peer/node/failure_detector.c -- who is silent: each member watches a few others, asks around, and only
 * then accuses.
 *
 * Watched are the neighbours of the graph and those ahead on the rings, over sessions of their
 * own; heartbeats run over those as over any. What becomes of a contact that is not heard:
 *
 *    heard --2 s--> others are asked --1 s, nobody has heard it--> accused
 *      ^               |                                              | it refutes
 *      +--- HEARD -----+                                              v
 *      +------------------------------------------------- spared for 5 s, 10 s, ...
 *
 * Where members end, the next one ahead of those is left alone for a while: as a rule the word that
 * it has ended, too, is on its way. Else each would call one after the other, as they end.
 *
 * Whoever has not been met since we began to look for it, and refuses to be called, is not
 * given the 2 s: so a row of dead members is found one round of asking after the other.
 * Links that are silent, or that nobody needs, are found here, too.
 * (SWIM: Das, Gupta, Motivala, DSN 2002; its indirect probes are answered from sessions.)
 */
#include "peer/node/sessions.h"

#include "gossip/members/monitor_rings.h"
#include "peer/node/member_counts.h"

#include <string.h>

enum {
    HELPERS = 3,  /* So many are asked about a silent member. */
    REFUSALS = 2, /* A dial may fail once for a restart's sake. */
    MANY = 4      /* More suspects than these are a disaster. */
};

/* ---- whom we watch ---- */

/* Where many die, whom we begin to watch has less time to answer: others wait behind it. */
static int64_t head_start_us(uint32_t n_suspects)
{
    return n_suspects > MANY ? SILENT_US / 2 : n_suspects > 1 ? SILENT_US / 3 : 0;
}

static void watch(struct sessions *s, const uint8_t *id, uint32_t n_suspects)
{
    struct contact *c = dial_contact(s, id);
    if (c == NULL) {
        c = dial_add_contact(s, id);
        if (c == NULL)
            return; /* Without memory it is watched by the others. */
        c->heard_us -= head_start_us(n_suspects);
        if (member_counts_ended(s->env))
            c->heard_us = c->call_us = s->env->now_us + ENDING_US;
    }
    c->watched = true;
}

/* Whom we accuse is no longer on our rings, and is watched on until it is dead or back. */
static uint32_t keep_suspects(struct sessions *s)
{
    uint32_t n = 0;
    for (size_t i = 0; i < s->n_contacts; i++) {
        struct contact *c = &s->contacts[i];
        const struct member *m = c->accused ? members_find(s->env->members, c->id) : NULL;
        c->watched = m != NULL && m->state == MEMBER_SUSPECT;
        n += c->watched;
    }
    return n;
}

/* The more of them have died, the further we look for others: so a few survivors of many find
 * the dead in a few rounds. */
static void choose(struct sessions *s)
{
    const struct members *members = s->env->members;
    uint32_t n_suspects = keep_suspects(s), n_alive = 1 + n_suspects;
    n_alive = n_alive < MONITOR_RINGS_ALIVE_MAX ? n_alive : MONITOR_RINGS_ALIVE_MAX;
    struct monitor_rings rings;
    monitor_rings_look(&rings, members);
    for (uint32_t ring = 0; ring < RINGS; ring++) {
        uint8_t id[MONITOR_RINGS_AHEAD_MAX][WIRE_ID_BYTES];
        uint32_t n = monitor_rings_ahead(&rings, ring, n_alive, id);
        for (uint32_t i = 0; i < n; i++)
            watch(s, id[i], n_suspects);
    }
    if (s->twins.ours)
        watch(s, s->twins.other, n_suspects);
    dial_sift(s);
    s->failure_detector_changes = members_changes(members);
}

/* ---- asking others ---- */

static void ask(struct sessions *s, struct contact *c)
{
    uint8_t out[64];
    struct wire_probe m;
    memcpy(m.id, c->id, sizeof m.id);
    size_t len = wire_put_probe(out, sizeof out, &m);
    size_t first = (size_t)rng_below(&s->env->rng, NODE_LINKS_MAX);
    uint32_t n = 0;
    for (size_t i = 0; i < NODE_LINKS_MAX && n < HELPERS; i++) {
        const struct link *l = &s->links[(first + i) % NODE_LINKS_MAX];
        if (!link_talks(l) || l->doomed || l->mute || env_same_id(l->id, c->id))
            continue;
        sessions_send(s, l, false, out, len, NULL);
        n++;
    }
    c->asked_us = s->env->now_us;
}

void sessions_probe(struct sessions *s, const struct link *l, const struct wire_probe *m)
{
    uint8_t out[64];
    const struct link *to = sessions_to(s, m->id);
    int64_t age_us = to != NULL ? s->env->now_us - to->heard_us : INT64_MAX;
    if (age_us > SILENT_US)
        return;
    struct wire_heard heard = {.age_ms = (uint32_t)((age_us + 999) / 1000)};
    memcpy(heard.id, m->id, sizeof heard.id);
    sessions_send(s, l, false, out, wire_put_heard(out, sizeof out, &heard), NULL);
}

void sessions_vouched(struct sessions *s, const struct wire_heard *m)
{
    struct contact *c = dial_contact(s, m->id);
    int64_t heard_us = s->env->now_us - (int64_t)m->age_ms * 1000;
    if (c == NULL || c->asked_us == 0 || heard_us <= c->heard_us)
        return;
    c->heard_us = heard_us;
    c->refusals = 0;
    c->asked_us = 0;
}

int64_t sessions_heard_us(struct sessions *s, const uint8_t id[WIRE_ID_BYTES])
{
    const struct link *l = sessions_to(s, id);
    const struct contact *c = dial_contact(s, id);
    int64_t heard_us = l != NULL ? l->heard_us : 0;
    return c != NULL && c->met && c->heard_us > heard_us ? c->heard_us : heard_us;
}

/* ---- accusing ---- */

static void accuse(struct sessions *s, struct contact *c, const struct member *m)
{
    c->accused_incarnation = m->record->incarnation;
    c->accused = members_accuse(s->env->members, c->id, s->env->now_us);
}

/* What we hear of it ourselves. It is called here where no edge calls it. */
static void listen(struct sessions *s, struct contact *c)
{
    const struct link *l = sessions_to(s, c->id);
    if (l == NULL) {
        if (c->watched && !c->wanted
            && s->env->now_us
                   >= c->call_us) /* The other end may know nothing of it: no yielding. */
            sessions_call(s, c->id, 0);
        return;
    }
    c->refusals = 0;
    if (l->mute)
        return;
    if (!c->wanted && l->heard_us - l->up_us > REFUSED_US)
        c->redial.backoff_us = 0; /* It was of use. */
    c->met = true;
    c->accused = false;
    c->spare_us = REFUTED_US;
    if (l->heard_us > c->heard_us)
        c->heard_us = l->heard_us;
}

/* A refuted word is not said again at once: where only our own path to it is cut, it would
 * refute us for ever. */
static void look_for_refutation(struct sessions *s, struct contact *c, const struct member *m)
{
    if (!c->accused || m->record->incarnation <= c->accused_incarnation)
        return;
    c->accused = false;
    c->spared_us = s->env->now_us + c->spare_us;
    c->spare_us = 2 * c->spare_us < REFUTED_MAX_US ? 2 * c->spare_us : REFUTED_MAX_US;
}

/* It lives, if it never talks to us: calls between two that refuse each other are QUIET_REFUSED_US
 * apart at most. Accused for its silence it might be dead to some, who then hold that its name is
 * another's. */
void failure_detector_refused(struct sessions *s, const uint8_t id[WIRE_ID_BYTES])
{
    struct contact *c = dial_contact(s, id);
    if (c == NULL)
        return;
    c->heard_us = s->env->now_us;
    c->asked_us = 0;
    c->refusals = 0;
    if (c->spared_us < s->env->now_us + QUIET_REFUSED_US)
        c->spared_us = s->env->now_us + QUIET_REFUSED_US;
}

static void judge(struct sessions *s, struct contact *c, const struct member *m)
{
    int64_t now = s->env->now_us, silent_us = now - c->heard_us;
    bool refuses = !c->met && c->refusals >= REFUSALS;
    bool suspect = refuses || silent_us > SILENT_US - PROBE_US;
    if (!suspect)
        c->asked_us = 0;
    if (!suspect || c->accused || now < c->spared_us)
        return;
    if (c->asked_us == 0)
        ask(s, c);
    else if (now - c->asked_us >= PROBE_US && (refuses || silent_us > SILENT_US))
        accuse(s, c, m);
}

void failure_detector_continue(struct sessions *s, int64_t pause_us)
{
    for (size_t i = 0; i < s->n_contacts; i++)
        s->contacts[i].asked_us = 0;
    if (pause_us > SILENT_US)
        s->stood_us = s->env->now_us;
}

/* ---- were we away? ---- */

void failure_detector_lost(struct sessions *s, const struct link *l)
{
    bool stood = s->stood_us > 0 && s->env->now_us - s->stood_us < DEAD_LINK_US;
    if (sessions_any(s))
        return;
    s->away = stood ? SESSIONS_STOOD : l->mute ? SESSIONS_CUT : SESSIONS_THERE;
}

void failure_detector_met(struct sessions *s, const struct link *l)
{
    connection_diagnostics_met(s, l);
    s->away = SESSIONS_THERE;
    s->n_refused = 0;
}

/* So many are missing that might be called. */
static uint32_t missing(const struct sessions *s)
{
    uint32_t n = 0;
    for (size_t i = 0; i < members_count(s->env->members); i++) {
        const struct member *m = members_at(s->env->members, i);
        n += m->counts && m->state == MEMBER_DEAD && m->record->n_addresses > 0;
    }
    return n;
}

enum sessions_away sessions_deserted(const struct sessions *s)
{
    uint32_t n = s->away == SESSIONS_THERE || sessions_any(s) ? 0 : missing(s);
    int64_t least_us = s->away == SESSIONS_STOOD ? GONE_US : GONE_CUT_US;
    bool gone = n > 0 && s->n_refused >= n && s->env->now_us - s->refused_us >= least_us;
    return gone ? s->away : SESSIONS_THERE;
}

/* Whoever has finished is accused by nobody, and may be long gone. */
static bool works(const struct member *m)
{
    return m->state == MEMBER_ALIVE && m->counts && !record_state_is_final(m->record->state);
}

/* The first two of one name that live: in the order of names only others of that name, dead or
 * gone, stand between them. */
static const struct member *find_twins(const struct members *m, const struct member **other)
{
    const struct member *a = NULL;
    for (size_t i = 0; i < members_count(m) && members_namesakes(m); i++) {
        const struct member *b = members_at(m, i);
        if (!works(b))
            continue;
        *other = b;
        if (a != NULL && strcmp(a->record->name, b->record->name) == 0)
            return a;
        a = b;
    }
    return NULL;
}

/* Who has our name is watched by us: whoever else should may have forgotten it long ago, and we would
 * end for one that is dead. */
static void failure_detector_twin(struct sessions *s, const struct member *a,
                                  const struct member *b)
{
    const uint8_t *own = s->env->config.id;
    bool first = a != NULL && env_same_id(a->record->id, own);
    s->twins.ours = first || (a != NULL && env_same_id(b->record->id, own));
    if (!s->twins.ours)
        return;
    memcpy(s->twins.other, first ? b->record->id : a->record->id, WIRE_ID_BYTES);
    watch(s, s->twins.other, 0);
}

/* By its name a member finds its part of the data and its draws. A restart with a new identity
 * has its old one's name until that is taken for dead. */
static void look_for_twins(struct sessions *s)
{
    const struct member *b, *a = find_twins(s->env->members, &b);
    uint64_t pair = 0;
    if (a != NULL)
        pair = rng_hash(a->record->id, WIRE_ID_BYTES) ^ rng_hash(b->record->id, WIRE_ID_BYTES);
    /* One of them may be under suspicion for a moment, and back. */
    if (pair == 0 && s->env->now_us - s->twins.seen_us < SILENT_US)
        return;
    s->twins.seen_us = s->env->now_us;
    if (pair != s->twins.pair) {
        s->twins.pair = pair;
        s->twins.since_us = s->env->now_us;
        s->twins.told = false;
        failure_detector_twin(s, a, b);
    }
    if (a == NULL || s->twins.told || s->env->now_us - s->twins.since_us < TWINS_US)
        return;
    s->twins.told = true;
    admit_one_of_two(s, a->record, b->record);
}

/* ---- links ---- */

/* Links that say nothing, and links that nobody needs. */
static void prune(struct sessions *s)
{
    for (size_t i = 0; i < s->n_links; i++) {
        const struct link *l = &s->links[i];
        if (!l->used || l->doomed)
            continue;
        int64_t most_us = l->observer ? OBSERVER_US : DEAD_LINK_US;
        bool silent = s->env->now_us - l->heard_us > most_us;
        bool idle =
            l->hello && l->dialled && !l->observer && s->env->now_us - l->up_us > SURPLUS_US;
        bool needed = dial_contact(s, l->id) != NULL;
        if (silent || (idle && !needed && s->owner.surplus(s->owner.self, l)))
            sessions_hang_up(s, l, false);
    }
}

/* A session that is silent does not say that its member lives. */
static void look_for_mute(struct sessions *s)
{
    for (size_t i = 0; i < s->n_links; i++) {
        struct link *l = &s->links[i];
        if (!link_talks(l) || l->mute || s->env->now_us - l->heard_us <= SILENT_US)
            continue;
        l->mute = true;
        if (sessions_to(s, l->id) == l)
            members_session(s->env->members, l->id, false, s->env->now_us);
    }
}

/* Those who have said that they are done, or gone, may be silent. */
void failure_detector_tick(struct sessions *s)
{
    look_for_mute(s);
    if (members_changes(s->env->members) != s->failure_detector_changes)
        choose(s);
    look_for_twins(s);
    for (size_t i = 0; i < s->n_contacts; i++) {
        struct contact *c = &s->contacts[i];
        const struct member *m = members_find(s->env->members, c->id);
        listen(s, c);
        if (m == NULL)
            continue;
        look_for_refutation(s, c, m);
        bool lives = m->state == MEMBER_ALIVE || m->state == MEMBER_SUSPECT;
        if (lives && !record_state_is_final(m->record->state))
            judge(s, c, m);
    }
    prune(s);
}
