/* peer/node/session/admit.c -- admission: which holders of the cluster key may be members.
 *
 * The driver provides an allow-list of identities with the event NODE_ADMIT. Before the first list,
 * every holder of the cluster key is admitted. A certificate (struct certificate) admits a member
 * that is not on the list. The first case that applies decides:
 *
 *   - The identity is on the list, or is this peer's own: admitted.
 *   - The record has no certificate: REFUSED_UNLISTED.
 *   - The issuer of the certificate is not on the list: REFUSED_ISSUER.
 *   - The table has this record's certificate already: admitted.
 *   - A signature of the certificate is invalid: REFUSED_FORGED.
 *   - The certificate has expired, and the member itself has sent it in a HELLO: REFUSED_EXPIRED.
 *   - Otherwise: admitted.
 *
 * The expiry of a certificate is therefore checked only when its owner contacts a member for the
 * first time. Later, members forward the record, and its receivers do not check the expiry.
 *
 * A process that is not admitted gets the message REFUSED, and its session ends. Its record is
 * dropped, also if another member has forwarded it. A new list is applied at once to all members
 * and sessions.
 *
 * Names must be unique. A peer is refused if this peer, or a member with a session, has the same
 * name and started earlier (admit_name()). Two peers with the same name may join at different
 * members. If both are then in the member table, the one that started later is refused
 * (admit_one_of_two()).
 *
 * A peer that has counted as refused (sessions_are_refused()) for REFUSED_END_US ends. Otherwise it
 * would train alone.
 */
#include "peer/node/session/sessions_state.h"

#include "peer/node/mark.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIGNED_MAX_BYTES = 256 };

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, WIRE_ID_BYTES);
}

static void admit_check(const struct admit *a, int64_t now_us)
{
    assert(a->id != NULL || a->n == 0);
    assert(a->refused_us <= a->last_us && a->last_us <= now_us);
}

/* ---- is it admitted? ---- */

static bool on_list(const struct admit *a, const uint8_t id[WIRE_ID_BYTES])
{
    return a->n > 0 && bsearch(id, a->id, a->n, sizeof *a->id, compare) != NULL;
}

/* Returns whether the identity needs no certificate: there is no allow-list, or the identity is on
 * the allow-list or is this peer's own. */
static bool is_free(const struct sessions *s, const uint8_t id[WIRE_ID_BYTES])
{
    const struct admit *a = &s->admit;
    return a->id == NULL || on_list(a, id) || env_same_id(id, s->env->config.id);
}

/* Returns whether both signatures of the certificate in a member's record are valid. */
static bool sound(const struct sessions *s, const struct record *r)
{
    const struct members_crypto *crypto = s->env->config.crypto;
    const struct certificate *c = &r->certificate;
    uint8_t msg[SIGNED_MAX_BYTES];
    size_t n = wire_token_signed(msg, sizeof msg, c);
    if (!crypto->verify(crypto->self, c->issuer, msg, n, c->issued))
        return false;
    n = wire_presented_signed(msg, sizeof msg, r->id);
    return crypto->verify(crypto->self, c->key, msg, n, c->presented);
}

/* Returns whether the member table has a record of this member with the same certificate as r, and
 * the member is not refused. Such a certificate need not be verified again. */
static bool is_known(const struct sessions *s, const struct record *r)
{
    const struct member *m = members_find(s->env->members, r->id);
    return m != NULL && !m->refused && m->record->invited
           && memcmp(&m->record->certificate, &r->certificate, sizeof r->certificate) == 0;
}

/* Result of judge() for a member that is admitted. Any other result is a reason to refuse. */
enum admitted { ADMITTED = -1 };

/* Returns ADMITTED, or the reason of the refusal (enum wire_refusal) by the table at the top of
 * this file. `known`: the certificate was verified before. `met`: the member itself has sent the
 * record, so the expiry of its certificate is checked. */
static int judge(const struct sessions *s, const struct record *r, bool known, bool met)
{
    const struct admit *a = &s->admit;
    int64_t unix_ms = (a->unix_us + s->env->driver_us) / 1000;
    if (is_free(s, r->id))
        return ADMITTED;
    if (!r->invited)
        return REFUSED_UNLISTED;
    if (!on_list(a, r->certificate.issuer))
        return REFUSED_ISSUER;
    if (known)
        return ADMITTED;
    if (!sound(s, r))
        return REFUSED_FORGED;
    return met && unix_ms > 0 && (uint64_t)unix_ms >= r->certificate.expires_ms ? REFUSED_EXPIRED
                                                                                : ADMITTED;
}

bool admit_record(struct sessions *s, const struct record *r)
{
    return s->admit.id == NULL || judge(s, r, is_known(s, r), false) == ADMITTED;
}

bool admit_keeps_out(const struct sessions *s, const uint8_t id[WIRE_ID_BYTES])
{
    const struct member *m = s->admit.id != NULL ? members_find(s->env->members, id) : NULL;
    return m != NULL && m->refused && judge(s, m->record, false, false) != ADMITTED;
}

/* ---- refusing ---- */

/* Returns whether the warning that peer `id` is refused for the reason `why` was printed within the
 * last ADMIT_WARNING_US. If not, the caller prints it. Stores the time of this refusal. */
static bool is_told(struct sessions *s, const uint8_t id[WIRE_ID_BYTES], uint32_t why)
{
    int64_t now = s->env->now_us;
    return recent_add(&s->admit.told, ADMIT_TOLD, id, why, now + ADMIT_WARNING_US, now);
}

bool admit_run_is_told(struct sessions *s, const uint8_t id[WIRE_ID_BYTES])
{
    return is_told(s, id, ADMIT_OTHER_RUN);
}

/* Prints a warning that this peer refuses peer `id`. `other`: the issuer for REFUSED_ISSUER, and
 * the member with the same name for REFUSED_NAME. */
static void say_refused(struct sessions *s, const char *name, const uint8_t id[WIRE_ID_BYTES],
                        enum wire_refusal why, const uint8_t other[WIRE_ID_BYTES])
{
    if (is_told(s, id, why))
        return;
    MARK_IF(why == REFUSED_UNLISTED, "admit: refuses an unlisted peer");
    MARK_IF(why == REFUSED_EXPIRED, "admit: refuses an expired token");
    MARK_IF(why == REFUSED_NAME, "admit: refuses a name in use");
    switch (why) {
    case REFUSED_UNLISTED:
        env_note(s->env, NOTE_WARNING,
                 "refused %s: its identity %s is not in the members file, and it has no token",
                 name, sessions_hex(id).text);
        break;
    case REFUSED_EXPIRED:
        env_note(s->env, NOTE_WARNING, "refused %s (%.8s): its token has expired", name,
                 sessions_hex(id).text);
        break;
    case REFUSED_ISSUER:
        env_note(s->env, NOTE_WARNING,
                 "refused %s (%.8s): its token was signed by %s, which is not in the members file",
                 name, sessions_hex(id).text, sessions_hex(other).text);
        break;
    case REFUSED_FORGED:
        env_note(s->env, NOTE_WARNING, "refused %s (%.8s): its token is forged", name,
                 sessions_hex(id).text);
        break;
    case REFUSED_NAME:
        env_note(s->env, NOTE_WARNING,
                 "refused %s (%.8s): that name belongs to %.8s, which is alive; each member needs "
                 "its own name",
                 name, sessions_hex(id).text, sessions_hex(other).text);
        break;
    }
}

/* Sends REFUSED as the last message of the session and hangs up. `other`: the member with the same
 * name for REFUSED_NAME, else NULL. */
static void refuse(struct sessions *s, const struct link *l, enum wire_refusal why,
                   const uint8_t other[WIRE_ID_BYTES])
{
    uint8_t out[128];
    struct wire_refused m = {.why = why};
    snprintf(m.name, sizeof m.name, "%s", s->env->config.name);
    if (other != NULL)
        memcpy(m.other, other, sizeof m.other);
    sessions_send(s, l, false, out, wire_put_refused(out, sizeof out, &m), NULL);
    sessions_hang_up(s, l, "this peer refused the other end");
    failure_detector_refused(s, l->id);
}

/* ---- names ---- */

/* Returns the session of another member with the name in record r, or NULL. Silent sessions are
 * ignored, because a silent member may be dead, and its name is then free. */
static const struct link *holder(const struct sessions *s, const struct record *r)
{
    for (size_t i = 0; i < s->n_links; i++) {
        const struct link *l = &s->links[i];
        const struct member *m = members_find(s->env->members, l->id);
        if (link_open(l) && !l->mute && m != NULL && !env_same_id(l->id, r->id)
            && m->record->state != RECORD_LEFT && strcmp(m->record->name, r->name) == 0)
            return l;
    }
    return NULL;
}

/* Returns the wall-clock time in milliseconds at which the process of record r started. Usually
 * this is the incarnation, because a process begins with its start time as incarnation. A process
 * that has met a second process with its identity has raised its incarnation above that of the
 * second one. Its record then contains its age, and the start time is the incarnation minus the
 * age. */
static uint64_t started_ms(const struct record *r)
{
    bool raised = r->over != 0 && r->age_ms <= r->incarnation;
    return raised ? r->incarnation - r->age_ms : r->incarnation;
}

/* Returns the record of the member that started later. If both members started at the same time,
 * returns the record with the greater id. Start times follow from the signed incarnations and ages
 * in the records, so all peers choose the same record. */
static const struct record *later(const struct record *a, const struct record *b)
{
    uint64_t x = started_ms(a), y = started_ms(b);
    if (x != y)
        return x > y ? a : b;
    return memcmp(a->id, b->id, WIRE_ID_BYTES) > 0 ? a : b;
}

/* Returns the id of the live member that holds the name in record r, if that member started earlier
 * than the peer of r. Otherwise returns NULL, and the peer of r is admitted. A holder that started
 * later is refused after DUPLICATE_NAME_US. If that holder is this peer, the peer of r refuses it
 * at once. */
static const uint8_t *name_taken(const struct sessions *s, const struct record *r)
{
    const struct record *own = members_self(s->env->members), *held = NULL;
    if (strcmp(own->name, r->name) == 0) {
        MARK("admit: another peer has the name of this peer");
        held = own;
    } else {
        const struct link *l = holder(s, r);
        held = l != NULL ? members_find(s->env->members, l->id)->record : NULL;
    }
    return held != NULL && later(held, r) == r ? held->id : NULL;
}

void admit_one_of_two(struct sessions *s, const struct record *a, const struct record *b)
{
    struct env *v = s->env;
    const struct record *loser = later(a, b), *other = loser == a ? b : a;
    assert(!env_same_id(a->id, b->id) && strcmp(a->name, b->name) == 0);
    struct record gone = *loser;
    const struct link *l = sessions_to(s, gone.id);
    if (env_same_id(gone.id, v->config.id)) {
        MARK("admit: this peer ends, its name is in use");
        env_note(
            v, NOTE_ERROR,
            "two members are called %s: %.8s and this one, %.8s, which started later and exits "
            "now",
            gone.name, sessions_hex(other->id).text, sessions_hex(gone.id).text);
        sessions_leave(s);
        env_end(v, 2);
        return;
    }
    MARK("admit: one of two members with the same name is refused");
    say_refused(s, gone.name, gone.id, REFUSED_NAME, other->id);
    if (l != NULL)
        refuse(s, l, REFUSED_NAME, other->id);
    members_refuse(v->members, gone.id, true, v->now_us);
}

/* ---- new sessions ---- */

bool admit_hello(struct sessions *s, const struct link *l, const struct record *r)
{
    assert(l->role == LINK_NEW && l->hung_up == NULL);
    int why = s->admit.id != NULL ? judge(s, r, is_known(s, r), true) : ADMITTED;
    if (why == ADMITTED)
        return true;
    say_refused(s, r->name, l->id, (enum wire_refusal)why, r->certificate.issuer);
    refuse(s, l, (enum wire_refusal)why, NULL);
    return false;
}

bool admit_name(struct sessions *s, const struct link *l, const struct record *r)
{
    assert(l->role == LINK_NEW && l->hung_up == NULL);
    const uint8_t *other = name_taken(s, r);
    if (other == NULL)
        return true;
    say_refused(s, r->name, l->id, REFUSED_NAME, other);
    refuse(s, l, REFUSED_NAME, other);
    return false;
}

/* Returns whether the other end uses the identity of a listed peer or of a member. */
static bool is_admitted(const struct sessions *s, const struct link *l)
{
    const struct member *m = members_find(s->env->members, l->id);
    return is_free(s, l->id) || (m != NULL && !m->refused);
}

bool admit_observer(struct sessions *s, const struct link *l)
{
    assert(l->role == LINK_OBSERVER && l->hung_up == NULL);
    if (is_admitted(s, l))
        return true;
    if (!is_told(s, l->id, ADMIT_OBSERVER))
        env_note(s->env, NOTE_WARNING,
                 "refused an observer: its identity %s is not in the members file",
                 sessions_hex(l->id).text);
    refuse(s, l, REFUSED_UNLISTED, NULL);
    return false;
}

/* ---- a new allow-list ---- */

/* Refuses a member that the new allow-list does not admit. */
static void revoke(struct sessions *s, const struct record *r, enum wire_refusal why)
{
    if (why == REFUSED_ISSUER)
        env_note(s->env, NOTE_WARNING,
                 "%s (%.8s) is no longer a member: its token was signed by %.8s, which is not in "
                 "the members file",
                 r->name, sessions_hex(r->id).text, sessions_hex(r->certificate.issuer).text);
    else
        env_note(s->env, NOTE_WARNING,
                 "%s (%.8s) is no longer a member: it is not in the members file", r->name,
                 sessions_hex(r->id).text);
    members_refuse(s->env->members, r->id, true, s->env->now_us);
}

/* Applies the new allow-list to the member table. Members that it does not admit are refused. A
 * member that was refused only because of the former list is admitted again. */
static void hold_members(struct sessions *s, const struct admit *former)
{
    struct members *all = s->env->members;
    for (size_t i = 0; i < members_count(all); i++) {
        const struct member *m = members_at(all, i);
        struct record r = *m->record;
        int why = judge(s, &r, false, false);
        bool was_unlisted = former->id != NULL && !on_list(former, r.id);
        if (why != ADMITTED && !m->refused) {
            MARK("admit: revokes a member");
            revoke(s, &r, (enum wire_refusal)why);
        } else if (why == ADMITTED && m->refused && was_unlisted) {
            MARK("admit: admits a member again");
            members_refuse(all, r.id, false, s->env->now_us);
        }
    }
}

/* Ends the sessions with peers and observers that the new allow-list does not admit. */
static void hold_sessions(struct sessions *s)
{
    for (size_t i = 0; i < s->n_links; i++) {
        const struct link *l = &s->links[i];
        if (!l->used || l->hung_up != NULL || l->role == LINK_NEW)
            continue;
        if (is_admitted(s, l))
            continue;
        MARK("admit: a new list ends a session");
        const struct member *m = members_find(s->env->members, l->id);
        bool invited = m != NULL && m->record->invited;
        refuse(s, l, invited ? REFUSED_ISSUER : REFUSED_UNLISTED, NULL);
    }
}

void admit_list(struct sessions *s, const struct node_event *ev)
{
    struct admit *a = &s->admit, former = *a;
    uint8_t(*id)[WIRE_ID_BYTES] = malloc((ev->admit.n + 1) * sizeof *id);
    if (id == NULL) {
        env_note(s->env, NOTE_ERROR,
                 "out of memory for the members file; the previous one stays in use");
        return;
    }
    if (ev->admit.n > 0)
        memcpy(id, ev->admit.id, ev->admit.n * sizeof *id);
    for (size_t i = 1; i < ev->admit.n; i++) /* on_list() searches in sorted identities. */
        assert(compare(id[i - 1], id[i]) <= 0);
    a->id = id;
    a->n = ev->admit.n;
    a->unix_us = ev->admit.unix_ms * 1000 - s->env->driver_us;
    a->told = (struct recent){0};
    bool own = on_list(a, s->env->config.id), owned = on_list(&former, s->env->config.id);
    if (!own && (owned || former.id == NULL) && !members_self(s->env->members)->invited)
        env_note(s->env, NOTE_WARNING,
                 "this peer's own identity %s is not in its members file: peers with the same file "
                 "refuse it",
                 sessions_hex(s->env->config.id).text);
    hold_members(s, &former);
    hold_sessions(s);
    admit_check(a, s->env->now_us);
    free(former.id);
}

/* ---- refusals of this peer by others ---- */

bool sessions_are_refused(const struct sessions *s)
{
    return s->admit.refused_us != 0;
}

bool admit_must_wait(const struct sessions *s, const uint8_t id[WIRE_ID_BYTES])
{
    const struct admit *a = &s->admit;
    int64_t now_us = s->env->now_us;
    for (uint32_t i = 0; i < ADMIT_TOLD; i++) {
        const struct recent_case *c = &a->told.at[i];
        if (c->until_us > now_us && now_us - c->last_us < REFUSER_REDIAL_US
            && c->what != ADMIT_OTHER_RUN && env_same_id(c->id, id))
            return true;
    }
    return a->refused_us != 0 && now_us - a->last_us < REFUSED_REDIAL_US;
}

static void say_why(struct sessions *s, const struct wire_refused *m)
{
    struct env *v = s->env;
    switch (m->why) {
    case REFUSED_UNLISTED:
        env_note(v, NOTE_WARNING,
                 "%s does not admit this peer: identity %s is not in its members file, and there "
                 "is no --token",
                 m->name, sessions_hex(v->config.id).text);
        break;
    case REFUSED_EXPIRED:
        env_note(v, NOTE_WARNING, "%s does not admit this peer: this peer's token has expired",
                 m->name);
        break;
    case REFUSED_ISSUER:
        env_note(v, NOTE_WARNING,
                 "%s does not admit this peer: the signer of this peer's token is not in the "
                 "members file",
                 m->name);
        break;
    case REFUSED_FORGED:
        env_note(v, NOTE_WARNING, "%s does not admit this peer: this peer's token is forged",
                 m->name);
        break;
    case REFUSED_NAME:
        env_note(v, NOTE_WARNING,
                 "%s does not admit this peer, %.8s: the name %s belongs to %.8s, which is alive; "
                 "choose another with --name",
                 m->name, sessions_hex(v->config.id).text, v->config.name,
                 sessions_hex(m->other).text);
        break;
    }
}

void admit_refused(struct sessions *s, const struct link *l, const struct wire_refused *m)
{
    struct admit *a = &s->admit;
    int64_t now = s->env->now_us;
    MARK("admit: another peer refuses this peer");
    assert((size_t)m->why < sizeof a->said_us / sizeof *a->said_us);
    if (a->refused_us == 0)
        a->refused_us = now;
    a->last_us = now;
    if (a->said_us[m->why] == 0 || now - a->said_us[m->why] > ADMIT_WARNING_US) {
        say_why(s, m);
        a->said_us[m->why] = now;
    }
    sessions_hang_up(s, l, "the other end refused this peer");
    failure_detector_refused(s, l->id);
    admit_check(a, now);
}

/* Returns whether a session has lasted for ADMITTED_US, so that its other end admits this peer. */
static bool has_session(const struct sessions *s)
{
    for (size_t i = 0; i < s->n_links; i++) {
        const struct link *l = &s->links[i];
        if (link_open(l) && s->env->now_us - l->up_us > ADMITTED_US)
            return true;
    }
    return false;
}

void admit_tick(struct sessions *s)
{
    struct admit *a = &s->admit;
    int64_t now = s->env->now_us;
    if (a->refused_us == 0)
        return;
    MARK_IF(has_session(s), "admit: a peer admits this peer again");
    if (has_session(s) || now - a->last_us > REFUSAL_VALID_US) {
        a->refused_us = 0;
    } else if (now - a->refused_us >= REFUSED_END_US) {
        MARK("admit: no peer admits this peer");
        env_note(s->env, NOTE_ERROR, "no peer admits this peer: exiting");
        env_end(s->env, 2);
    }
}
