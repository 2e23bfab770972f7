/* peer/node/session/failure_detector.c -- detects silent members, probes them through others,
 * accuses them.
 *
 * Each member monitors its neighbours in the topology and its successors on the monitor rings
 * (gossip/members/monitor_rings.h). It keeps a session with each of them and expects the heartbeats
 * of this session. The states of a monitored member (struct contact):
 *
 *   - `heard`: the member was heard within the last 2 s. After 2 s of silence it is probed.
 *   - `probed`: three other members were asked (PROBE). If one of them has heard the member, it
 *     answers (HEARD), and the state becomes `heard`. The member is accused after 3 s of silence if
 *     no HEARD has arrived within 1 s after the PROBE.
 *   - `accused`: an accusation is in the member table. If the member refutes the accusation, the
 *     state becomes `spared`.
 *   - `spared`: there is no new accusation for 5 s, 10 s, ... 60 s. Then the member is probed.
 *
 * In each state, a session that is not silent leads back to `heard`.
 *
 * Two rules differ from this list:
 *
 *   - A monitored member is probed at once and accused after 1 s, if it refuses two dials in a row
 *     and has had no session with this peer yet. Several dead members that follow one another on a
 *     ring are thus found quickly.
 *   - After a member has ended its run, newly monitored members have MONITOR_GRACE_US more time.
 *     They have probably ended, too, and their records that say so are on the way. Without the
 *     delay, each member would dial many members that are just ending.
 *
 * This file also ends sessions that are silent or that no edge needs, finds two members with the
 * same name, and decides whether this peer was cut off from all others.
 *
 * (SWIM: Das, Gupta, Motivala, DSN 2002. Here a member answers an indirect probe from what its
 * sessions have received and sends no ping of its own.)
 */
#include "peer/node/session/sessions_state.h"

#include "peer/node/mark.h"

#include "gossip/members/monitor_rings.h"
#include "peer/node/membership/quorum.h"

#include <assert.h>
#include <string.h>

enum {
    /* Number of other members that are asked whether they have heard a silent member. */
    HELPERS = 3,
    /* Number of consecutive refused dials after which a member counts as silent (judge()). A single
     * dial may be refused because the process restarts. */
    REFUSALS = 2,
    /* If more members than this are suspect, a newly monitored member gets the least time to prove
     * that it is alive. */
    MANY = 4
};

/* ---- which members are monitored ---- */

/* Returns for how long a newly monitored member counts as silent already, in microseconds. If
 * several members are suspect, the new one may have failed with them, so it is given less time to
 * prove that it is alive. This speeds up the search for failed members, because the next member on
 * the monitor ring is monitored only after this one is suspect. */
static int64_t head_start_us(uint32_t n_suspects)
{
    MARK_IF(n_suspects > MANY, "failure_detector: many suspects");
    return n_suspects > MANY ? SILENT_US / 2 : n_suspects > 1 ? SILENT_US / 3 : 0;
}

/* Begins to monitor member `id`, or continues to do so. */
static void watch(struct sessions *s, const uint8_t *id, uint32_t n_suspects)
{
    struct contact *c = dial_contact(s, id);
    if (c == NULL) {
        c = dial_add_contact(s, id);
        if (c == NULL)
            return; /* Memory is exhausted: only other peers monitor the member. */
        c->heard_us -= head_start_us(n_suspects);
        MARK_IF(member_counts_ended(s->env), "failure_detector: a new contact near the end");
        if (member_counts_ended(s->env))
            c->heard_us = c->call_us = s->env->now_us + MONITOR_GRACE_US;
    }
    c->watched = true;
}

/* Stops monitoring all members except the suspects that this peer has accused, and returns the
 * number of these suspects. Such a suspect is monitored until it is dead or alive again, even if it
 * is not a successor on the monitor rings any more. */
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

/* Chooses the members to monitor: on each ring, the successors up to the first live one, and one
 * more live successor for each suspect that this peer has accused. If most members fail together,
 * the few survivors thus find all failed members in few steps. */
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
    assert(s->failure_detector_changes < members_changes(members));
    dial_sift(s);
    s->failure_detector_changes = members_changes(members);
}

/* ---- indirect probes ---- */

/* Asks HELPERS other members, chosen from a random position, whether they have heard the member. */
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
        if (!link_open(l) || l->mute || env_same_id(l->id, c->id))
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
    assert(age_us >= 0);
    if (age_us > SILENT_US)
        return;
    MARK("failure_detector: answers a probe");
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
    MARK("failure_detector: a probed member was heard by another");
    c->heard_us = heard_us;
    c->refusals = 0;
    c->asked_us = 0;
    dial_check_contact(s, c);
}

int64_t sessions_heard_us(struct sessions *s, const uint8_t id[WIRE_ID_BYTES])
{
    const struct link *l = sessions_to(s, id);
    const struct contact *c = dial_contact(s, id);
    int64_t heard_us = l != NULL ? l->heard_us : 0;
    return c != NULL && c->met && c->heard_us > heard_us ? c->heard_us : heard_us;
}

/* ---- accusations ---- */

static void accuse(struct sessions *s, struct contact *c, const struct member *m)
{
    MARK("failure_detector: accuses");
    assert(!c->accused && c->asked_us != 0 && c->spared.next_us <= s->env->now_us);
    c->accused_incarnation = m->record->incarnation;
    c->accused = members_accuse(s->env->members, c->id, s->env->now_us);
}

/* Records when this peer last heard a member on its own session with the member. Without a session,
 * dials the member if only the failure detector needs the session. Members that edges need are
 * dialled by edges.c. */
static void listen(struct sessions *s, struct contact *c)
{
    const struct link *l = sessions_to(s, c->id);
    if (l == NULL) {
        /* If a session is lost, usually the peer with the greater id waits before it dials. This
         * peer does not wait: it passes 0 as the time of the loss. The member may not know that it
         * is monitored, and may never dial. */
        if (c->watched && !c->wanted && s->env->now_us >= c->call_us)
            sessions_call(s, c->id, 0);
        return;
    }
    c->refusals = 0;
    if (l->mute)
        return;
    if (!c->wanted && l->heard_us - l->up_us > REDIAL_RESET_US)
        /* The session lasted long enough, so the next redial is not delayed. */
        c->redial.gap_us = 0;
    c->met = true;
    c->accused = false;
    c->spared.gap_us = 0;
    if (l->heard_us > c->heard_us)
        c->heard_us = l->heard_us;
}

/* Handles a refutation of this peer's accusation. The member is not accused again at once.
 * Otherwise, if only the network path between this peer and the member is broken, the member would
 * have to refute one accusation after the other. */
static void look_for_refutation(struct sessions *s, struct contact *c, const struct member *m)
{
    if (!c->accused || m->record->incarnation <= c->accused_incarnation)
        return;
    c->accused = false;
    MARK("failure_detector: an accusation was refuted");
    backoff_wait(&c->spared, REFUTED_US, REFUTED_MAX_US, s->env->now_us);
}

/* Without a session, a refusal is the only proof that the member is alive. Without this rule, this
 * peer would accuse the member, which could then be declared dead although it runs. */
void failure_detector_refused(struct sessions *s, const uint8_t id[WIRE_ID_BYTES])
{
    struct contact *c = dial_contact(s, id);
    if (c == NULL)
        return;
    c->heard_us = s->env->now_us;
    c->asked_us = 0;
    c->refusals = 0;
    MARK("failure_detector: spares a peer after a refusal");
    if (c->spared.next_us < s->env->now_us + REFUSAL_VALID_US)
        c->spared.next_us = s->env->now_us + REFUSAL_VALID_US;
    dial_check_contact(s, c);
}

/* Probes or accuses the member if this is due (see the list at the top of this file). */
static void judge(struct sessions *s, struct contact *c, const struct member *m)
{
    int64_t now = s->env->now_us, silent_us = now - c->heard_us;
    bool refuses = !c->met && c->refusals >= REFUSALS;
    MARK_IF(refuses, "failure_detector: a member refuses dials");
    bool suspect = refuses || silent_us > SILENT_US - PROBE_US;
    if (!suspect)
        c->asked_us = 0;
    if (!suspect || c->accused || now < c->spared.next_us)
        return;
    if (c->asked_us == 0)
        ask(s, c);
    else if (now - c->asked_us >= PROBE_US && (refuses || silent_us > SILENT_US))
        accuse(s, c, m);
}

void failure_detector_continue(struct sessions *s, int64_t pause_us)
{
    MARK_IF(pause_us > SILENT_US, "failure_detector: this process was paused");
    assert(pause_us > 0);
    for (size_t i = 0; i < s->n_contacts; i++)
        s->contacts[i].asked_us = 0;
    if (pause_us > SILENT_US)
        s->stood_us = s->env->now_us;
}

/* ---- was this peer cut off from all others? ---- */

bool failure_detector_stood(const struct sessions *s)
{
    return s->stood_us > 0 && s->env->now_us - s->stood_us < DEAD_LINK_US;
}

/* If this peer's last session has ended, records whether the cause was a pause or a silent network.
 * Other peers may close sessions while this process is paused. This process sees the ends of these
 * sessions within DEAD_LINK_US after the pause. The count of refused dials restarts: an earlier
 * refusal says only that a member died while this peer had sessions with other members. */
void failure_detector_lost(struct sessions *s, const struct link *l)
{
    bool stood = failure_detector_stood(s);
    assert(!l->used && l->role == LINK_PEER);
    if (sessions_any(s))
        return;
    MARK_IF(stood, "failure_detector: all sessions lost in a pause");
    MARK_IF(!stood && l->mute, "failure_detector: all sessions lost in a cut");
    s->away = stood ? SESSIONS_STOOD : l->mute ? SESSIONS_CUT : SESSIONS_THERE;
    s->n_refused = 0;
}

void failure_detector_met(struct sessions *s, const struct link *l)
{
    assert(link_talks(l));
    connection_diagnostics_met(s, l);
    s->away = SESSIONS_THERE;
}

bool failure_detector_missing(const struct sessions *s, const struct member *m)
{
    bool finished =
        m->record->state == RECORD_FINISHED && !env_same_id(m->record->id, s->env->config.id);
    return m->counts && m->record->n_addresses > 0 && (m->state == MEMBER_DEAD || finished);
}

/* The n dead and finished members are dialled in turn. If at least n consecutive dials were
 * refused, the hosts of all n members have therefore refused. */
int64_t sessions_refused_us(const struct sessions *s)
{
    uint32_t n = 0;
    for (size_t i = 0; i < members_count(s->env->members); i++)
        n += failure_detector_missing(s, members_at(s->env->members, i));
    bool all = !sessions_any(s) && n > 0 && s->n_refused >= n;
    return all ? s->env->now_us - s->refused_us : 0;
}

/* After a network failure the other processes may be restarting. A peer that was cut off therefore
 * waits longer than a peer that was paused before it concludes that they have ended. */
enum sessions_away sessions_deserted(const struct sessions *s)
{
    int64_t least_us = s->away == SESSIONS_STOOD ? ENDED_AFTER_PAUSE_US : ENDED_AFTER_CUT_US;
    bool gone = s->away != SESSIONS_THERE && sessions_refused_us(s) >= least_us;
    MARK_IF(gone, "failure_detector: all other processes ended");
    return gone ? s->away : SESSIONS_THERE;
}

/* ---- two members with one name ---- */

/* Returns whether the member is alive and has not ended its run. The state ALIVE alone is not
 * enough: in a run without a certificate, a member that has ended is not accused of silence, so it
 * may stay ALIVE in the table after its process has exited. */
static bool works(const struct member *m)
{
    return m->state == MEMBER_ALIVE && m->counts && !record_state_is_final(m->record->state);
}

/* Finds two live members with the same name: returns the first and stores the second in *other.
 * Returns NULL if there are none. The table is sorted by name, so only members of the same name
 * that are not alive can be between the two. */
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

/* If this peer is one of two members with the same name, this peer monitors the other member. The
 * members that should monitor the other member may have dropped it from their tables. Without this
 * rule, no member would detect its death, and this peer would have to end because a dead member has
 * this peer's name. */
static void failure_detector_twin(struct sessions *s, const struct member *a,
                                  const struct member *b)
{
    const uint8_t *own = s->env->config.id;
    bool first = a != NULL && env_same_id(a->record->id, own);
    s->twins.ours = first || (a != NULL && env_same_id(b->record->id, own));
    if (!s->twins.ours)
        return;
    MARK("failure_detector: another member has the name of this peer");
    memcpy(s->twins.other, first ? b->record->id : a->record->id, WIRE_ID_BYTES);
    watch(s, s->twins.other, 0);
}

/* Refuses one of two live members with the same name after DUPLICATE_NAME_US. Both would train on
 * the same shard with the same random numbers, which follow from the name. The delay exists because
 * a peer that restarts with a new identity shares its name with its former identity until the
 * former identity counts as dead. */
static void look_for_twins(struct sessions *s)
{
    const struct member *b, *a = find_twins(s->env->members, &b);
    uint64_t pair = 0;
    assert(s->twins.since_us <= s->twins.seen_us && s->twins.seen_us <= s->env->now_us);
    if (a != NULL)
        pair = rng_hash(a->record->id, WIRE_ID_BYTES) ^ rng_hash(b->record->id, WIRE_ID_BYTES);
    /* Members with the same name were found earlier (twins.pair), but the table now contains no two
     * live ones. The pair is kept for SILENT_US, because one of its members may be suspect only for
     * a moment. */
    if (pair == 0 && s->env->now_us - s->twins.seen_us < SILENT_US)
        return;
    s->twins.seen_us = s->env->now_us;
    if (pair != s->twins.pair) {
        s->twins.pair = pair;
        s->twins.since_us = s->env->now_us;
        s->twins.told = false;
        failure_detector_twin(s, a, b);
    }
    if (a == NULL || s->twins.told || s->env->now_us - s->twins.since_us < DUPLICATE_NAME_US)
        return;
    MARK("failure_detector: two members keep one name");
    s->twins.told = true;
    admit_one_of_two(s, a->record, b->record);
}

/* ---- sessions ---- */

/* Ends sessions on which nothing arrives. Also ends sessions that this peer dialled and that
 * neither an edge nor the failure detector nor another module needs. */
static void prune(struct sessions *s)
{
    for (size_t i = 0; i < s->n_links; i++) {
        const struct link *l = &s->links[i];
        if (!l->used || l->hung_up != NULL)
            continue;
        int64_t most_us = l->role == LINK_OBSERVER ? OBSERVER_SILENT_US : DEAD_LINK_US;
        bool silent = s->env->now_us - l->heard_us > most_us;
        bool idle = l->role != LINK_NEW && link_dialled(l) && l->role != LINK_OBSERVER
                    && s->env->now_us - l->up_us > SURPLUS_LINK_US;
        bool needed = dial_contact(s, l->id) != NULL;
        MARK_IF(silent, "failure_detector: closes a silent session");
        MARK_IF(idle && !needed, "failure_detector: a session may be surplus");
        if (silent || (idle && !needed && s->owner.surplus(s->owner.self, l)))
            sessions_hang_up(s, l,
                             silent ? "no message has arrived for too long" : "no edge needs it");
    }
}

/* Marks sessions on which nothing has arrived for SILENT_US. A marked session does not protect its
 * member from accusations any more. */
static void look_for_mute(struct sessions *s)
{
    for (size_t i = 0; i < s->n_links; i++) {
        struct link *l = &s->links[i];
        if (!link_talks(l) || l->mute || s->env->now_us - l->heard_us <= SILENT_US)
            continue;
        MARK("failure_detector: a session is silent");
        l->mute = true;
        if (sessions_to(s, l->id) == l)
            members_session(s->env->members, l->id, false, s->env->now_us);
    }
}

/* Two kinds of members are neither probed nor accused: members that have left the cluster, and
 * members that have ended a run without a certificate (members_watches()). */
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
        dial_check_contact(s, c);
        if (m == NULL)
            continue;
        look_for_refutation(s, c, m);
        bool lives = m->state == MEMBER_ALIVE || m->state == MEMBER_SUSPECT;
        if (lives && members_watches(s->env->members, m))
            judge(s, c, m);
    }
    prune(s);
}
