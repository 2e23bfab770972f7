/* peer/node/session/sessions.c -- sessions with other processes: HELLO, choice of the run,
 * heartbeats.
 *
 * A HELLO of a peer is checked in this order (peer_hello()). A check that fails ends the session:
 *
 *   1. admission        the sender is on the allow-list or has a valid certificate
 *   2. duplicates       the sender has no other session with this peer that takes precedence
 *   3. run              both peers agree on one run, or one of them takes the other's run
 *   4. name             no other live member has the sender's name
 *   5. member table     the sender's record is merged
 *
 * Checks 1, 2 and 4 apply to the first HELLO of a session only. A later HELLO reports a new run or
 * a new phase.
 */
#include "peer/node/session/sessions.h"

#include "gossip/members/endorsements.h"
#include "peer/node/session/sessions_state.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int sessions_open(struct sessions **out, struct env *env, const struct sessions_owner *owner)
{
    const struct node_config *c = &env->config;
    struct sessions *s = calloc(1, sizeof *s);
    assert(env->members != NULL && c->n_bootstrap <= NODE_SEEDS_MAX);
    if (s == NULL)
        return -ENOMEM;
    s->env = env;
    s->owner = *owner;
    s->seeds = calloc(c->n_bootstrap + 1, sizeof *s->seeds);
    if (s->seeds == NULL) {
        free(s);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < c->n_bootstrap; i++)
        s->seeds[i].name = c->bootstrap[i];
    *out = s;
    return 0;
}

void sessions_close(struct sessions *s)
{
    if (s == NULL)
        return;
    free(s->admit.id);
    free(s->seeds);
    free(s->contacts);
    free(s);
}

/* ---- queries ---- */

const struct link *sessions_link(const struct sessions *s, uint32_t number)
{
    for (size_t i = 0; i < s->n_links; i++)
        if (s->links[i].used && s->links[i].number == number)
            return &s->links[i];
    return NULL;
}

const struct link *sessions_to(const struct sessions *s, const uint8_t id[WIRE_ID_BYTES])
{
    for (size_t i = 0; i < s->n_links; i++) {
        const struct link *l = &s->links[i];
        if (link_open(l) && env_same_id(l->id, id))
            return l;
    }
    return NULL;
}

bool sessions_any(const struct sessions *s)
{
    for (size_t i = 0; i < s->n_links; i++)
        if (link_talks(&s->links[i]))
            return true;
    return false;
}

bool sessions_run_begun(const struct sessions *s)
{
    for (size_t i = 0; i < s->n_links; i++)
        if (s->links[i].used && s->links[i].same_run
            && (s->links[i].started || s->links[i].round > 0))
            return true;
    return false;
}

size_t sessions_slots(const struct sessions *s)
{
    return s->n_links;
}

const struct link *sessions_at(const struct sessions *s, size_t slot)
{
    assert(slot < s->n_links);
    return &s->links[slot];
}

uint32_t sessions_slot(const struct sessions *s, const struct link *l)
{
    assert(l >= s->links && l < s->links + s->n_links);
    return (uint32_t)(l - s->links);
}

bool sessions_met_any(const struct sessions *s)
{
    return s->seek.met;
}

uint64_t sessions_violations(const struct sessions *s)
{
    uint64_t n = 0;
    for (size_t i = 0; i < SESSIONS_KINDS; i++)
        n += s->kind[i].n;
    return n;
}

const char *sessions_violation_kind(const struct sessions *s, size_t i, uint64_t *count)
{
    if (i >= SESSIONS_KINDS || s->kind[i].what == NULL)
        return NULL;
    *count = s->kind[i].n;
    return s->kind[i].what;
}

/* ---- invariants ---- */

static void link_check(const struct link *l)
{
    assert(l->hung_up != NULL || !l->violated);
    assert(l->role != LINK_NEW || (!l->finished && l->transfer == LINK_TRANSFER_NONE));
    assert(link_talks(l) || (!l->opened && !l->uncertified && !l->mute));
    assert(l->up_us <= l->heard_us);
}

static void sessions_check(const struct sessions *s)
{
    assert(s->n_links <= NODE_LINKS_MAX && s->n_news <= WIRE_BATCH_MAX);
    assert(s->away == SESSIONS_THERE || !sessions_any(s));
    for (size_t i = 0; i < s->n_links; i++)
        if (s->links[i].used)
            link_check(&s->links[i]);
}

struct link *sessions_own(struct sessions *s, const struct link *l)
{
    return &s->links[sessions_slot(s, l)];
}

static struct link *find(struct sessions *s, uint32_t number)
{
    const struct link *l = sessions_link(s, number);
    return l == NULL ? NULL : sessions_own(s, l);
}

/* ---- sending ---- */

void sessions_send(struct sessions *s, const struct link *l, bool bulk, const uint8_t *head,
                   size_t n_head, struct packet *body)
{
    if (l->hung_up == NULL)
        env_send(s->env, l->number, bulk, head, n_head, body);
}

static void hang_up(struct sessions *s, const struct link *l, bool violation, const char *why)
{
    struct link *own = sessions_own(s, l);
    assert(own->used && why != NULL);
    if (own->hung_up != NULL || !env_hang_up(s->env, own->number, violation))
        return;
    own->violated = violation;
    own->hung_up = why;
    link_check(own);
}

void sessions_hang_up(struct sessions *s, const struct link *l, const char *why)
{
    hang_up(s, l, false, why);
}

static void count_kind(struct sessions *s, const char *what)
{
    size_t i = 0, last = SESSIONS_KINDS - 1;
    while (i < last && s->kind[i].what != NULL && strcmp(s->kind[i].what, what) != 0)
        i++;
    s->kind[i].what = i < last ? what : "another one";
    s->kind[i].n++;
}

void sessions_violation(struct sessions *s, const struct link *l, const char *what)
{
    count_kind(s, what);
    quarantine_add(&s->quarantine, l->id, s->env->now_us);
    env_note(s->env, NOTE_WARNING, "peer %.8s broke the protocol: %s", sessions_hex(l->id).text,
             what);
    hang_up(s, l, true, what);
}

struct hex sessions_hex(const uint8_t id[WIRE_ID_BYTES])
{
    struct hex out;
    for (size_t i = 0; i < WIRE_ID_BYTES; i++)
        snprintf(out.text + 2 * i, 3, "%02x", id[i]);
    return out;
}

static struct standing standing(const struct sessions *s)
{
    struct standing now;
    s->owner.standing(s->owner.self, &now);
    return now;
}

static void say_hello(struct sessions *s, const struct link *l)
{
    struct env *v = s->env;
    struct standing now = standing(s);
    struct wire_hello h = {.version = l->version,
                           .role = WIRE_PEER,
                           .has_run = now.run.n > 0,
                           .has_started = now.has_started,
                           .run = now.run,
                           .round = now.round,
                           .record = *members_self(v->members)};
    sessions_send(s, l, false, v->commons->message,
                  wire_put_hello(v->commons->message, sizeof v->commons->message, &h), NULL);
}

void sessions_hello_all(struct sessions *s)
{
    for (size_t i = 0; i < s->n_links; i++)
        if (link_talks(&s->links[i]))
            say_hello(s, &s->links[i]);
}

/* The PING with `finished` set goes into the lane for large messages, so that it arrives after this
 * peer's last delta. */
void sessions_say_finished(struct sessions *s, const struct link *l)
{
    uint8_t out[64];
    struct standing now = standing(s);
    if (!now.finished)
        return;
    struct wire_ping ping = {.round = now.beat, .finished = true};
    sessions_send(s, l, true, out, wire_put_ping(out, sizeof out, &ping), NULL);
}

void sessions_reopen(struct sessions *s)
{
    for (size_t i = 0; i < s->n_links; i++)
        s->links[i].finished = false;
}

void sessions_say_finished_all(struct sessions *s)
{
    for (size_t i = 0; i < s->n_links; i++)
        if (link_talks(&s->links[i]))
            sessions_say_finished(s, &s->links[i]);
}

void sessions_status_req(struct sessions *s, const struct link *l)
{
    if (l->transfer != LINK_TRANSFER_NONE)
        sessions_own(s, l)->transfer = LINK_TRANSFER_STATUS;
    else
        s->owner.status(s->owner.self, l);
}

/* The LEFT record is sent at once: the limit per tick for membership changes does not apply.
 * Sessions without a HELLO from the other end get the record, too: the other end may have made this
 * peer a member after this peer's HELLO. */
void sessions_leave(struct sessions *s)
{
    members_set_state(s->env->members, RECORD_LEFT);
    const struct record *own = members_self(s->env->members);
    assert(own->state == RECORD_LEFT);
    for (size_t i = 0; i < s->n_links; i++)
        if (s->links[i].used && s->links[i].role != LINK_OBSERVER && s->links[i].hung_up == NULL)
            dissemination_send_record(s, &s->links[i], own);
}

/* ---- start and end of a session ---- */

void sessions_start(struct sessions *s)
{
    assert(s->n_links == 0 && s->n_news == 0 && s->next_tag == 0);
    s->heartbeat_us = s->env->now_us;
    s->n_news = WIRE_BATCH_MAX;
    s->entropy_us = s->env->now_us + env_jitter(s->env, ANTI_ENTROPY_US);
    dial_start(s);
}

/* Announces one more address of this peer: `host` with this peer's listening port. `host`: address
 * of this end of a connection, or NULL. Does nothing if the user has configured addresses. */
static void learn_address(struct env *v, const char *host)
{
    char address[WIRE_ADDRESS_MAX + 1];
    if (v->config.n_advertise > 0 || v->config.listen_port == NULL || host == NULL
        || strlen(host) > WIRE_ADDRESS_MAX - 16)
        return;
    bool v6 = strchr(host, ':') != NULL;
    snprintf(address, sizeof address, v6 ? "[%s]:%s" : "%s:%s", host, v->config.listen_port);
    (void)members_add_address(v->members, address);
}

/* Returns whether this peer has dialled an earlier session with peer `id` that is not silent, so
 * that a new session with the peer is not needed. Only the handshake shows that two addresses lead
 * to the same peer. The new session is closed before a HELLO, so the other end keeps the earlier
 * one. */
static bool superfluous(const struct sessions *s, const uint8_t id[WIRE_ID_BYTES])
{
    for (size_t i = 0; i < s->n_links; i++) {
        const struct link *old = &s->links[i];
        if (old->used && old->hung_up == NULL && link_dialled(old) && env_same_id(old->id, id)
            && s->env->now_us - old->heard_us < SILENT_US)
            return true;
    }
    return false;
}

void sessions_up(struct sessions *s, const struct node_event *ev)
{
    struct env *v = s->env;
    bool self = env_same_id(ev->up.id, v->config.id);
    /* Other modules use UINT32_MAX for "no session". */
    assert(sessions_link(s, ev->link) == NULL && ev->link != UINT32_MAX);
    if (ev->up.dialled && callback_over(s, ev->up.tag, ev->up.id, NODE_WHY_UNKNOWN)) {
        (void)env_hang_up(v, ev->link, false);
        return;
    }
    struct link *l = NULL;
    for (size_t i = 0; i < NODE_LINKS_MAX && l == NULL; i++)
        if (!s->links[i].used)
            l = &s->links[i];
    bool barred = !self && quarantine_holds(&s->quarantine, ev->up.id, v->now_us);
    if (l == NULL || barred || (!self && ev->up.dialled && superfluous(s, ev->up.id))) {
        if (ev->up.dialled)
            dial_over(s, ev->up.tag, ev->up.id, NODE_WHY_UNKNOWN);
        (void)env_hang_up(v, ev->link, false);
        env_debug(v, "closed a new session with %s: %s", env_name(v, ev->up.id),
                  l == NULL ? "there are too many sessions"
                  : barred  ? "the peer is quarantined"
                            : "there is a session that this peer dialled earlier");
        return;
    }
    *l = (struct link){.used = true,
                       .number = ev->link,
                       .version = ev->up.version,
                       .tag = ev->up.dialled ? ev->up.tag : 0,
                       .heard_us = v->now_us,
                       .up_us = v->now_us};
    memcpy(l->id, ev->up.id, WIRE_ID_BYTES);
    if (s->n_links <= (size_t)(l - s->links))
        s->n_links = (size_t)(l - s->links) + 1;
    callback_opened(s, l);
    if (link_dialled(l))
        dial_over(s, l->tag, l->id, NODE_WHY_UNKNOWN);
    members_listener(s->env->members, sessions_slot(s, l), false);
    if (!self)
        learn_address(v, ev->up.local_host);
    env_debug(v, "session with %s is up, dialled by %s", env_name(v, l->id),
              link_dialled(l) ? "this peer" : "the other end");
    say_hello(s, l);
    link_check(l);
}

void sessions_down(struct sessions *s, const struct node_event *ev)
{
    struct link *l = find(s, ev->link);
    if (l == NULL)
        return;
    l->used = false;
    env_debug(s->env, "session with %s is down: %s", env_name(s->env, l->id),
              l->hung_up != NULL ? l->hung_up
              : ev->down.clean   ? "the other end closed the session"
                                 : "the connection broke");
    handshake_lost(s, l);
    connection_diagnostics_unwelcome(s, l);
    if (!l->opened || l->violated)
        dial_in_vain(s, l);
    if (l->role != LINK_PEER)
        return;
    s->owner.lost(s->owner.self, l);
    failure_detector_lost(s, l);
    if (sessions_to(s, l->id) == NULL)
        members_session(s->env->members, l->id, false, s->env->now_us);
    sessions_check(s);
}

const struct link *sessions_heard(struct sessions *s, uint32_t number)
{
    struct link *l = find(s, number);
    if (l == NULL || l->hung_up != NULL)
        return NULL;
    assert(l->heard_us <= s->env->now_us);
    l->heard_us = s->env->now_us;
    if (l->mute && link_talks(l))
        members_session(s->env->members, l->id, true, l->heard_us);
    l->mute = false;
    return l;
}

void sessions_uncertified(struct sessions *s, const struct link *l)
{
    assert(link_talks(l));
    sessions_own(s, l)->uncertified = true;
}

/* ---- HELLO ---- */

/* Decides between the new session `l` and an older session with the same identity, if one exists,
 * and closes one of them. Returns whether it has closed `l`. `r`: the record in the HELLO on `l`.
 * Both ends must keep the same session:
 *
 *   - No message arrived on the older session for SILENT_US: the new session is kept.
 *   - Same process, dialled in opposite directions: the session that the smaller id dialled is
 *     kept.
 *   - Same process, dialled in the same direction: the new session is kept.
 *   - Another process, with an incarnation below the known one: the older session is kept.
 *   - Another process, with any other incarnation: the new session is kept.
 *
 * The reason for the third rule: a process that dials a second time has lost its first session
 * (superfluous()), even if this peer has not noticed the loss. */
static bool is_duplicate(struct sessions *s, const struct link *l, const struct record *r)
{
    const struct link *old = sessions_to(s, l->id);
    const struct member *m = members_find(s->env->members, l->id);
    if (old == NULL || old == l)
        return false;
    bool we_are_low = memcmp(s->env->config.id, l->id, WIRE_ID_BYTES) < 0;
    bool lives = s->env->now_us - old->heard_us < SILENT_US, same = old->boot == r->boot;
    bool crossed = link_dialled(old) != link_dialled(l);
    bool older = m != NULL && !same && r->incarnation < m->record->incarnation;
    if (lives && (same ? crossed && link_dialled(old) == we_are_low : older)) {
        if (older)
            dissemination_send_record(s, l, m->record);
        sessions_hang_up(
            s, l, older ? "the other end is an older process of the same peer" : "duplicate");
        return true;
    }
    if (!same)
        dissemination_send_record(s, old, r);
    sessions_hang_up(s, old, "replaced by a newer session");
    s->owner.lost(s->owner.self, old);
    return false;
}

void sessions_run_fixed(struct sessions *s)
{
    for (size_t i = 0; i < s->n_links && !s->env->over; i++)
        if (s->links[i].used && s->links[i].role != LINK_OBSERVER)
            say_hello(s, &s->links[i]);
}

/* Called when this peer has taken the run of the other end of session `l`. Sends the run to all
 * peers with a session. Clears same_run of all other sessions, because these flags refer to the run
 * that this peer gave up. */
static void run_taken(struct sessions *s, struct link *l)
{
    for (size_t i = 0; i < s->n_links; i++)
        s->links[i].same_run = false;
    l->same_run = true;
    sessions_run_fixed(s);
}

/* Ends the session with a peer of another run. The peer may call again until it has received this
 * peer's run, so the warning is printed only once in ten minutes. */
static void refuse_run(struct sessions *s, const struct link *l, const struct record *r,
                       const char *why)
{
    if (!admit_run_is_told(s, l->id))
        env_note(s->env, NOTE_WARNING, "refused %s (%s): that peer belongs to another %s", r->name,
                 r->n_addresses > 0 ? r->address[0] : "no address", why);
    sessions_hang_up(s, l, "the other end has another run");
    members_refuse(s->env->members, l->id, true, s->env->now_us);
}

/* Refuses a run description that cannot be parsed. If it was made for another kind of trainer, a
 * user has started different programs in one cluster, which is no violation of the protocol. */
static void refuse_text(struct sessions *s, const struct link *l, const struct wire_hello *h)
{
    char found[RUN_KEY_MAX + 1], why[128];
    const char *expected;
    if (!run_text_is_of_other_trainer(s->env->config.flags.trainer, (const char *)h->run.p,
                                      h->run.n, found, &expected)) {
        sessions_violation(s, l, "the run description is not canonical");
        return;
    }
    snprintf(why, sizeof why, "kind of run: found a run with %s, expected a run with %s", found,
             expected);
    refuse_run(s, l, &h->record, why);
}

/* Returns whether a connected peer has this peer's run. Used if the run in a HELLO contradicts the
 * user's flags. If the result is true and the run in the HELLO has not started, this peer refuses
 * the sender. Otherwise this peer leaves and ends. */
static bool in_company(const struct sessions *s)
{
    for (size_t i = 0; i < s->n_links; i++)
        if (link_open(&s->links[i]) && s->links[i].same_run)
            return true;
    return false;
}

/* Compares the run in a HELLO with this peer's run and decides which run both peers use. Returns
 * false if the session or this peer ends. */
static bool agree_on_run(struct sessions *s, struct link *l, const struct wire_hello *h)
{
    if (!h->has_run) {
        /* The sender will take this peer's run. If the sender had another run before, it may have
         * ignored the run in this peer's earlier HELLO, so this peer sends the HELLO again. */
        l->same_run = false;
        if (l->role != LINK_NEW && standing(s).run.n > 0)
            say_hello(s, l);
        return true;
    }
    enum sessions_run said = s->owner.run(s->owner.self, h, link_dialled(l));
    l->same_run = said == SESSIONS_RUN_SAME;
    switch (said) {
    case SESSIONS_RUN_SAME:
    case SESSIONS_RUN_YIELDS:
        return true;
    case SESSIONS_RUN_TAKEN:
        run_taken(s, l);
        return !s->env->over;
    case SESSIONS_RUN_STRANGER:
        refuse_run(s, l, &h->record, "run");
        return false;
    case SESSIONS_RUN_UNREADABLE:
        refuse_text(s, l, h);
        return false;
    case SESSIONS_RUN_CONTRADICTS:
        if (!h->has_started && in_company(s)) {
            refuse_run(s, l, &h->record, "run");
        } else {
            sessions_leave(s);
            env_end(s->env, 2);
        }
        return false;
    }
    return false;
}

/* Stores the round that the other end reports. The speed of the peer is computed from this report
 * and an earlier one (round_quorum.c). Two reports that are less than half a heartbeat apart give
 * no exact speed. In this case the new report replaces the last one only, and the earlier report is
 * kept. */
static void say_round(struct link *l, uint64_t round, int64_t now_us)
{
    if (now_us - l->said_us >= HEARTBEAT_US / 2) {
        l->before = l->round;
        l->before_us = l->said_us;
    }
    assert(l->said_us <= now_us);
    l->round = round;
    l->said_us = now_us;
}

/* Handles a HELLO of a peer, as opposed to an observer. See the list at the top of this file. */
static void peer_hello(struct sessions *s, struct link *l, const struct wire_hello *h)
{
    bool first = l->role == LINK_NEW;
    assert(l->role != LINK_OBSERVER);
    if (first && (!admit_hello(s, l, &h->record) || is_duplicate(s, l, &h->record)))
        return;
    if (!agree_on_run(s, l, h))
        return; /* A peer of another run does not become a member. */
    if (first && !admit_name(s, l, &h->record))
        return;
    if (handshake_hello(s, l, &h->record) == MEMBERS_FORGED)
        return;
    l->role = LINK_PEER;
    l->boot = h->record.boot;
    say_round(l, h->round, s->env->now_us);
    if (l->started != h->has_started)
        /* has_started has changed, so the previous report of the round is from before the start of
         * the run, or is about another run. No speed can be computed from it. */
        l->before_us = 0;
    l->started = h->has_started;
    members_session(s->env->members, l->id, true, s->env->now_us);
    members_vouch(s->env->members, s->env->now_us);
    if (first) {
        env_debug(s->env, "HELLO of %s accepted: round %llu", env_name(s->env, l->id),
                  (unsigned long long)l->round);
        members_listener(s->env->members, sessions_slot(s, l), true);
        dissemination_tell_all(s, l);
        sessions_say_finished(s, l);
        failure_detector_met(s, l);
        s->owner.met(s->owner.self, l);
    }
    /* is_duplicate() has closed every other session with this identity. */
    assert(l->hung_up != NULL || sessions_to(s, l->id) == l);
}

/* Handles a HELLO from this peer's own identity. The sender is this process itself, if its address
 * is in the bootstrap list, or another process with a copy of the key. The other process gets this
 * peer's record as an answer. From the records both processes learn which of them started later and
 * must end (members_merge()). */
static void own_hello(struct sessions *s, const struct link *l, const struct wire_hello *h)
{
    struct env *v = s->env;
    bool other = h->record.boot != members_self(v->members)->boot;
    enum members_verdict verdict = other ? handshake_hello(s, l, &h->record) : MEMBERS_OLD;
    if (!other) {
        sessions_hang_up(s, l, "this peer called itself");
    } else if (verdict != MEMBERS_OLD && verdict != MEMBERS_FORGED) {
        dial_all_again(s);
        say_hello(s, l);
    }
}

void sessions_hello(struct sessions *s, const struct link *link, const struct wire_hello *h)
{
    struct link *l = sessions_own(s, link);
    bool observer = h->role == WIRE_OBSERVER;
    bool own = env_same_id(l->id, s->env->config.id);
    assert(l->used && l->hung_up == NULL && l->role != LINK_OBSERVER);
    if (h->version != l->version) {
        sessions_violation(s, l, "bad HELLO");
    } else if (own && env_same_id(h->record.id, l->id)) {
        own_hello(s, l, h);
    } else if (observer && l->role != LINK_NEW) {
        sessions_violation(s, l, "HELLO of an observer after a HELLO of a peer");
    } else if (observer) {
        l->role = LINK_OBSERVER;
        if (admit_observer(s, l))
            dissemination_tell_all(s, l);
    } else if (!env_same_id(h->record.id, l->id)) {
        sessions_violation(s, l, "HELLO with the record of another peer");
    } else {
        peer_hello(s, l, h);
    }
    sessions_check(s);
}

/* ---- other messages ---- */

void sessions_ping(struct sessions *s, const struct link *link, const struct wire_ping *ping)
{
    struct link *l = sessions_own(s, link);
    assert(l->role != LINK_NEW && l->hung_up == NULL);
    /* A peer that has not started training reports round 0 (heartbeat()). This report is ignored,
     * because the peer's HELLO has the round of its model. */
    if (l->started || ping->round > 0)
        say_round(l, ping->round, s->env->now_us);
    if (!l->started)
        l->before_us = 0;
    l->started |= ping->round > 0;
    l->busy_since_us = 0;
    l->told_busy_us = s->env->now_us;
    if (ping->busy_ms > 0)
        l->busy_since_us = s->env->now_us - (int64_t)ping->busy_ms * 1000;
    if (!ping->finished)
        return;
    l->finished = true;
    s->owner.finished(s->owner.self, l);
    link_check(l);
}

/* ---- time ---- */

static void heartbeat(struct sessions *s)
{
    uint8_t out[64];
    struct standing now = standing(s);
    int64_t busy_ms = (now.busy_us + 999) / 1000;
    /* Until it has started training, this peer reports round 0. A higher round would mark it as
     * started at the receivers (sessions_ping()), and they would ask it for a model. */
    struct wire_ping ping = {.round = now.has_started ? now.beat : 0,
                             .busy_ms = busy_ms < UINT32_MAX ? (uint32_t)busy_ms : UINT32_MAX};
    size_t len = wire_put_ping(out, sizeof out, &ping);
    for (size_t i = 0; i < s->n_links; i++)
        if (link_talks(&s->links[i]))
            sessions_send(s, &s->links[i], false, out, len, NULL);
}

static bool may_be_told_all(const struct link *l)
{
    return link_open(l) && l->transfer == LINK_TRANSFER_NONE;
}

/* Returns a session for the next transfer of the whole member table, or NULL. Each eligible session
 * has the same probability, so that every peer eventually receives what it has missed. */
static struct link *any_link(struct sessions *s)
{
    uint64_t n = 0;
    for (size_t i = 0; i < s->n_links; i++)
        n += may_be_told_all(&s->links[i]);
    uint64_t k = rng_below(&s->env->rng, n > 0 ? n : 1);
    for (size_t i = 0; i < s->n_links; i++)
        if (may_be_told_all(&s->links[i]) && k-- == 0)
            return &s->links[i];
    return NULL;
}

void sessions_tick(struct sessions *s)
{
    struct env *v = s->env;
    (void)members_tick(v->members, v->now_us);
    dial_tick_seeds(s);
    dial_tick_dead(s);
    members_vouch(v->members, v->now_us);
    failure_detector_tick(s);
    callback_tick(s);
    struct standing now = standing(s);
    connection_diagnostics_tick(s, now.run.n > 0 || now.gathers);
    admit_tick(s);
    if (v->now_us >= s->heartbeat_us) {
        heartbeat(s);
        s->heartbeat_us = v->now_us + HEARTBEAT_US;
    }
    dissemination_tick(s);
    if (v->now_us >= s->entropy_us) {
        struct link *l = any_link(s);
        if (l != NULL) {
            /* The whole member table is sent, because the notes about which records the other end
             * knows may be wrong. */
            members_listener(s->env->members, sessions_slot(s, l), false);
            dissemination_tell_all(s, l);
        }
        s->entropy_us = v->now_us + env_jitter(v, ANTI_ENTROPY_US);
    }
    assert(s->heartbeat_us > v->now_us && s->entropy_us > v->now_us);
    sessions_check(s);
}
