/* peer/node/session/handshake.c -- merges the records of members that arrive in HELLO and MEMBERS
 * messages.
 *
 * Any holder of the cluster key can sign records of members that do not exist. Two limits apply:
 *
 *   - A record is stored, but its member is not accepted until other members have endorsed it
 *     (gossip/members/endorsements.h).
 *   - One session may announce NEW_MAX unknown members per minute. Further records are dropped with
 *     a warning. This is no violation of the protocol, because the sender may only have forwarded
 *     records that it received itself.
 *
 * This file also detects another process with the identity of this peer.
 */
#include "peer/node/session/sessions_state.h"

#include "peer/node/mark.h"

#include "gossip/members/endorsements.h"

#include <assert.h>

enum {
    /* Maximum number of unknown members that one session may announce in NEW_MEMBERS_US. A whole
     * member table contains no more members, and no honest cluster has that many newcomers in a
     * minute. */
    NEW_MAX = WIRE_MEMBERS_MAX
};

static void note_forged(struct sessions *s, const struct link *l, enum members_verdict verdict)
{
    if (verdict == MEMBERS_FORGED)
        sessions_violation(s, l, "forged member record");
}

/* Prints an error about another process with this peer's identity, at most once per
 * DUPLICATE_IDENTITY_US. */
static void say_cloned(struct sessions *s, const char *which)
{
    struct env *v = s->env;
    if (v->now_us < s->cloned_us)
        return;
    s->cloned_us = v->now_us + DUPLICATE_IDENTITY_US;
    env_note(v, NOTE_ERROR,
             "another process uses this peer's identity%s (was this peer's directory copied?)",
             which);
}

/* Stores the time at which a record of another process with this peer's identity arrived on session
 * `l`. A peer that keeps its session with the other process sends this record and then hangs up
 * (is_duplicate()). The record alone proves nothing, because an earlier process of this peer may
 * have signed it. Only a hang-up right after the record is evidence (handshake_lost()). */
static void note_other(struct sessions *s, struct link *l, const struct record *r,
                       enum members_verdict verdict)
{
    int64_t now_us = s->env->now_us;
    if (verdict == MEMBERS_ABOUT_ME && r->boot != members_self(s->env->members)->boot
        && now_us - l->up_us > SILENT_US)
        l->other_us = now_us;
}

void handshake_lost(struct sessions *s, const struct link *l)
{
    assert(!l->used);
    /* If the other end keeps its session with another process of this identity, it sends the record
     * of that process and hangs up immediately afterwards (is_duplicate()). */
    if (l->other_us > 0 && l->hung_up == NULL
        && s->env->now_us - l->other_us <= DUPLICATE_RECORD_US)
        say_cloned(
            s, " and talks to the same peers: the process that started last is expected to exit");
}

/* Merges a record that arrived on session `l`. Handles a forged record, a certificate that has
 * become valid, and a duplicate identity. */
static enum members_verdict merge(struct sessions *s, const struct link *l, const struct record *r)
{
    struct env *v = s->env;
    if (!admit_record(s, r))
        return MEMBERS_OLD;
    bool was_out = admit_keeps_out(s, r->id);
    enum members_verdict verdict = members_merge(v->members, r, v->now_us);
    members_heard(v->members, sessions_slot(s, l), r);
    /* The new record has a valid certificate, so the member is no longer refused. */
    if (was_out && !admit_keeps_out(s, r->id))
        members_refuse(v->members, r->id, false, v->now_us);
    note_forged(s, l, verdict);
    if (verdict == MEMBERS_TWICE)
        env_note(v, NOTE_WARNING,
                 "two processes use the identity of %s (%.8s): the one that started last is "
                 "expected to exit",
                 r->name, sessions_hex(r->id).text);
    if (verdict == MEMBERS_CLONED)
        say_cloned(s, " and started later: the other process is expected to exit");
    if (verdict == MEMBERS_CLONE) {
        /* This process exits, because another process with its identity started earlier. No LEFT
         * record is sent, because it would remove the other process from the cluster, too.
         * sessions_news() sends this process's own record, so that the other process learns of this
         * process. */
        env_note(v, NOTE_ERROR,
                 "another process uses this peer's identity and started earlier: this process "
                 "exits (was its directory copied?)");
        sessions_news(s);
        env_end(v, 2);
    }
    return verdict;
}

/* Handles the record of a member that returns after this peer has dropped it from the table. Other
 * members may keep a tombstone of the member, which makes them reject its current incarnation. This
 * peer therefore accuses the member. The member refutes the accusation with a higher incarnation,
 * which all members accept (members_revive()). */
static void revive(struct sessions *s, const struct link *l, const struct record *r)
{
    struct env *v = s->env;
    struct wire_members m = env_batch(v);
    if (!members_revive(v->members, r, &m.accusations[0]))
        return;
    m.n_accusations = 1;
    dissemination_send(s, l, &m);
}

/* Sends an initial member the record of its earlier process, if the member's current process does
 * not know yet that the member is an initial member. The process learns this from the record
 * (members_merge()). */
static void remind(struct sessions *s, const struct link *l, const struct record *r)
{
    struct env *v = s->env;
    const struct record *earlier = members_initial(v->members, r->id);
    if (earlier == NULL || r->initial || env_same_id(r->id, v->config.id))
        return;
    MARK("handshake: reminds an initial member");
    dissemination_send_record(s, l, earlier);
}

enum members_verdict handshake_hello(struct sessions *s, const struct link *l,
                                     const struct record *r)
{
    revive(s, l, r);
    remind(s, l, r);
    return merge(s, l, r);
}

/* Returns whether the other end of session `l` may announce one more member that is unknown to this
 * peer, and counts the announcement. */
static bool may_introduce(struct sessions *s, struct link *l)
{
    if (quota_left(&l->new_members, NEW_MAX, NEW_MEMBERS_US, s->env->now_us)) {
        l->new_members.n++;
        return true;
    }
    if (!l->told_new)
        env_note(s->env, NOTE_WARNING,
                 "peer %.8s announces more than %d new members in a minute: further "
                 "members are ignored",
                 sessions_hex(l->id).text, NEW_MAX);
    l->told_new = true;
    return false;
}

void handshake_record(struct sessions *s, const struct link *link, const struct record *r)
{
    struct link *l = sessions_own(s, link);
    if (members_find(s->env->members, r->id) == NULL && !may_introduce(s, l))
        return;
    note_other(s, l, r, merge(s, l, r));
    if (admit_record(s, r))
        dial_dropped(s, l, r);
}

void sessions_members(struct sessions *s, const struct link *link, const struct wire_members *told)
{
    struct env *v = s->env;
    struct link *l = sessions_own(s, link);
    assert(link_open(l));
    members_expect(v->members, told->records, told->n_records);
    for (uint32_t i = 0; i < told->n_records && l->hung_up == NULL; i++)
        handshake_record(s, l, &told->records[i]);
    for (uint32_t i = 0; i < told->n_vouches && l->hung_up == NULL; i++)
        note_forged(s, l, members_vouched(v->members, &told->vouches[i]));
    members_settle(v->members, v->now_us);
    for (uint32_t i = 0; i < told->n_accusations && l->hung_up == NULL; i++)
        note_forged(s, l, members_accused(v->members, &told->accusations[i], v->now_us));
}
