/* peer/node/step/membership_log.c -- compares the states of members with those printed last, and
 * prints the changes. */
#include "peer/node/step/membership_log.h"

#include "nn/math/number.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Maximum number of messages about one member in a short time. A death and a return need three:
     * silent, dead, back. One more message about the member is allowed after each
     * MEMBERSHIP_LOG_US. */
    LINES = 4,
    /* Maximum number of names in a message. For further members the message gives their number. */
    NAMED = 4,
    NAMES = NAMED * (WIRE_NAME_MAX + 2),
    STATES = MEMBER_LEFT + 1
};

/* A member that was suspect or dead, or had left, at some time. */
struct membership_log_entry
{
    uint8_t id[WIRE_ID_BYTES];
    /* told: state of the member in the last message about it. seen: state of the member at the last
     * call of membership_log_tick(). */
    enum member_state told, seen;
    /* Last time that this peer, or a member that it asked, heard this member before it left the
     * state ALIVE, in microseconds. 0: not known. */
    int64_t since_us;
    /* Number of changes of the member's state since the last message about it. */
    uint32_t n_untold;
    double lines; /* Number of messages about the member that are allowed at time lines_us. */
    /* Time at which `lines` was last updated, in microseconds. */
    int64_t lines_us;
};

struct membership_log
{
    struct env *env;
    struct sessions *sessions;
    const struct edges *edges;
    struct membership_log_entry *at; /* Entries of members, in no order. Owned. */
    /* n: number of members in at[]. cap: number of members for which at[] has room. */
    size_t n, cap;
    /* Value of members_changes(), a counter of changes of the member table, at the last
     * comparison. */
    uint64_t changes;
    /* True: a change was not printed because the limit on messages about its member is reached. */
    bool waits;
};

/* Members that have entered the same state and share a message. */
struct group
{
    /* n: number of members that share the message. n_untold: number of earlier changes of these
     * members' states that were not printed. */
    uint32_t n, n_untold;
    char names[NAMES]; /* Names of at most NAMED of the members, separated by ", ". */
    /* Shortest silence among the members, in microseconds. 0: for one of them the last time that it
     * was heard is not known. */
    int64_t silent_us;
    int64_t dead_us; /* Time until the first of the members is declared dead, in microseconds. */
    /* edge: at least one of the members is a neighbour of this peer. died: the last message about
     * at least one of the members said that it is dead. */
    bool edge, died;
};

struct membership_log *membership_log_open(struct env *env, struct sessions *s,
                                           const struct edges *es)
{
    struct membership_log *r = calloc(1, sizeof *r);
    if (r != NULL)
        *r = (struct membership_log){.env = env, .sessions = s, .edges = es};
    return r;
}

void membership_log_close(struct membership_log *r)
{
    if (r != NULL)
        free(r->at);
    free(r);
}

/* ---- entries ---- */

static struct membership_log_entry *find(struct membership_log *r, const uint8_t *id)
{
    for (size_t i = 0; i < r->n; i++)
        if (env_same_id(r->at[i].id, id))
            return &r->at[i];
    return NULL;
}

/* Returns a new entry. NULL: memory is exhausted, and nothing is printed about the member. */
static struct membership_log_entry *add(struct membership_log *r, const uint8_t *id)
{
    if (r->n == r->cap) {
        size_t cap = 2 * r->cap + 8;
        struct membership_log_entry *grown = realloc(r->at, cap * sizeof *grown);
        if (grown == NULL)
            return NULL;
        r->at = grown;
        r->cap = cap;
    }
    struct membership_log_entry *e = &r->at[r->n++];
    *e = (struct membership_log_entry){.lines = LINES, .lines_us = r->env->now_us};
    memcpy(e->id, id, WIRE_ID_BYTES);
    return e;
}

/* Returns the entry of a member. Adds the entry if the member is not alive and has none. NULL:
 * there is nothing to print about the member, or memory is exhausted. Nothing is printed about this
 * peer, a member that was always alive, a member that is not accepted, a refused member (the reason
 * was printed), or a member that has ended its run (it may exit). */
static struct membership_log_entry *entry_of(struct membership_log *r, const struct member *m)
{
    if (env_same_id(m->record->id, r->env->config.id) || m->refused
        || record_state_is_final(m->record->state))
        return NULL;
    struct membership_log_entry *e = find(r, m->record->id);
    if (e != NULL || m->state == MEMBER_ALIVE || !m->counts)
        return e;
    return add(r, m->record->id);
}

/* ---- changes ---- */

static bool is_neighbour(const struct membership_log *r, const uint8_t *id)
{
    for (size_t i = 0; i < edges_count(r->edges); i++)
        if (env_same_id(edges_at(r->edges, i)->edge.id, id))
            return true;
    return false;
}

static void note_change(struct membership_log *r, struct membership_log_entry *e,
                        const struct member *m)
{
    if (m->state == e->seen)
        return;
    if (e->seen == MEMBER_ALIVE)
        e->since_us = sessions_heard_us(r->sessions, e->id);
    e->seen = m->state;
    e->n_untold++;
}

/* Adds a member to the group of members that have the same new state and share a message. */
static void join_group(struct membership_log *r, struct group *g, struct membership_log_entry *e,
                       const struct member *m)
{
    int64_t now = r->env->now_us, silent_us = e->since_us > 0 ? now - e->since_us : 0;
    size_t len = strlen(g->names);
    if (g->n < NAMED)
        snprintf(g->names + len, sizeof g->names - len, "%s%s", g->n > 0 ? ", " : "",
                 m->record->name);
    if (g->n == 0 || silent_us < g->silent_us)
        g->silent_us = silent_us;
    if (g->n == 0 || m->dead_at_us - now < g->dead_us)
        g->dead_us = m->dead_at_us - now;
    g->edge |= is_neighbour(r, e->id);
    g->died |= e->told == MEMBER_DEAD;
    g->n++;
    assert(e->n_untold > 0 && e->lines >= 1);
    g->n_untold += e->n_untold - 1;
    e->n_untold = 0;
    e->told = e->seen;
    e->lines--;
}

/* Returns whether one more message about the member is allowed now. */
static bool may_tell(const struct membership_log *r, struct membership_log_entry *e)
{
    double gained = (double)(r->env->now_us - e->lines_us) / MEMBERSHIP_LOG_US;
    e->lines = e->lines + gained < LINES ? e->lines + gained : LINES;
    e->lines_us = r->env->now_us;
    return e->lines >= 1;
}

/* ---- messages ---- */

/* Writes the subject and the verb of a message, for example "a, b, c, d and 3 more are". */
static void say_who(const struct group *g, char *text, size_t size)
{
    if (g->n > NAMED)
        snprintf(text, size, "%s and %u more are", g->names, (unsigned)(g->n - NAMED));
    else
        snprintf(text, size, "%s %s", g->names, g->n > 1 ? "are" : "is");
}

static void say_silence(const struct group *g, const char *format, char *text, size_t size)
{
    text[0] = '\0';
    if (g->silent_us > 0)
        snprintf(text, size, "%s%.0f s", format, (double)g->silent_us * 1e-6);
}

static void tell(struct membership_log *r, enum member_state state, const struct group *g)
{
    char who[NAMES + 32], since[48], graph[64], untold[48] = "";
    size_t self, n = members_vertices(r->env->members, r->env->vertices, &self);
    say_who(g, who, sizeof who);
    snprintf(graph, sizeof graph, "the topology now has %zu member%s", n, number_plural(n));
    if (g->n_untold > 0)
        snprintf(untold, sizeof untold, " (%u changes were not reported)", (unsigned)g->n_untold);
    switch (state) {
    case MEMBER_ALIVE:
        say_silence(g, " after ", since, sizeof since);
        env_note(r->env, NOTE_INFO, "%s back%s%s%s%s", who, since, g->died ? ": " : "",
                 g->died ? graph : "", untold);
        break;
    case MEMBER_SUSPECT:
        say_silence(g, " for ", since, sizeof since);
        env_note(r->env, NOTE_INFO,
                 "%s silent%s: %sdeclared dead within %.0f s unless a message arrives%s", who,
                 g->silent_us > 0            ? since
                 : sessions_any(r->sessions) ? " according to other members"
                                             : ", never heard by this peer",
                 g->edge ? "no exchanges; " : "", (double)g->dead_us * 1e-6, untold);
        break;
    case MEMBER_DEAD:
        say_silence(g, ", silent for ", since, sizeof since);
        env_note(r->env, NOTE_INFO, "%s dead%s: %s%s", who, since, graph, untold);
        break;
    case MEMBER_LEFT:
        env_note(r->env, NOTE_INFO, "%s gone, having left the run: %s%s", who, graph, untold);
        break;
    }
}

void membership_log_tick(struct membership_log *r)
{
    const struct members *members = r->env->members;
    struct group group[STATES] = {{.n = 0}};
    if (members_changes(members) == r->changes && !r->waits)
        return;
    if (sessions_are_refused(r->sessions))
        return; /* Other peers refuse this peer, and the reason of the refusal was printed. */
    r->changes = members_changes(members);
    r->waits = false;
    for (size_t i = 0; i < members_count(members); i++) {
        const struct member *m = members_at(members, i);
        struct membership_log_entry *e = entry_of(r, m);
        if (e == NULL)
            continue;
        note_change(r, e, m);
        if (e->seen == e->told)
            continue;
        if (may_tell(r, e))
            join_group(r, &group[e->seen], e, m);
        else
            r->waits = true;
    }
    for (int state = 0; state < STATES; state++)
        if (group[state].n > 0)
            tell(r, (enum member_state)state, &group[state]);
}
