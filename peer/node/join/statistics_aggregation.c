/* peer/node/join/statistics_aggregation.c -- stores, forwards and combines the column statistics of
 * members. */
#include "peer/node/join/statistics_aggregation.h"

#include "nn/math/number.h"
#include "peer/run/exit.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Bytes after which no further statistics are sent over a session in one tick, because its send
     * queue is bounded. */
    SPREAD_BYTES = 64 * 1024,
    NAMES = 120 /* Size of a list of names in bytes, with the NUL. */
};

/* Value of member_statistics.from for this peer's own statistics. No link has this number. */
#define OURS UINT32_MAX

/* The column statistics that one process of one member has sent. */
struct member_statistics
{
    uint8_t id[WIRE_ID_BYTES]; /* Identity of the member that the statistics describe. */
    uint64_t boot;             /* Boot id of the member's process. */
    /* True: the member is configured to create the run from the column statistics of all
     * members. */
    bool founds;
    bool differs; /* True: this peer's columns would not match a run that the member creates. */
    bool lacks;   /* True: the member's columns would not match a run that this peer creates. */
    /* Number that identifies the set of the member's label names (node_pool.labels()). */
    uint64_t labels;
    uint64_t serial; /* Serial number of these statistics in order of arrival, from 1. */
    /* Number of the link over which the statistics arrived. OURS: they are this peer's own. */
    uint32_t from;
    uint8_t signature[WIRE_SIGNATURE_BYTES]; /* Signature of the member. */
    size_t n;                                /* Number of bytes in bytes[]. */
    uint8_t bytes[];                         /* The encoded statistics. */
};

struct statistics_aggregation
{
    struct env *env;
    struct sessions *sessions;
    /* Stored statistics: n entries in order of arrival. */
    struct member_statistics **said;
    size_t n, cap;   /* Used and allocated length of said[]. */
    uint64_t serial; /* Serial number of the statistics that arrived last. 0: none have arrived. */
    /* For each session, by its index in the session table: serial number of the last statistics
     * that were sent over it. */
    uint64_t told[NODE_LINKS_MAX];
    /* For each index in the session table: number of the session for which told[] was written. If
     * the table now has a session with another number at this index, that session is new, and no
     * statistics were sent over it. */
    uint32_t number[NODE_LINKS_MAX];
    /* look_us: next node time at which statistics are forwarded and the creation of the run is
     * tried. tell_us: node time of the next message about what this peer waits for. */
    int64_t look_us, tell_us;
    bool gathers; /* True: a live member is configured to create the run from the statistics. */
    /* True: this peer has warned that the data of a member do not match its own data. */
    bool left_out;
};

static void statistics_aggregation_check(const struct statistics_aggregation *p)
{
    assert(p->n <= p->cap && p->n <= WIRE_MEMBERS_MAX);
    assert((p->cap == 0) == (p->said == NULL));
    assert(p->n == 0 || p->said[p->n - 1]->serial <= p->serial);
}

struct statistics_aggregation *statistics_aggregation_open(struct env *env, struct sessions *s)
{
    struct statistics_aggregation *p = calloc(1, sizeof *p);
    if (p != NULL)
        *p = (struct statistics_aggregation){.env = env, .sessions = s};
    return p;
}

void statistics_aggregation_close(struct statistics_aggregation *p)
{
    if (p != NULL)
        statistics_aggregation_forget(p);
    free(p);
}

void statistics_aggregation_forget(struct statistics_aggregation *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->said[i]);
    free(p->said);
    p->said = NULL;
    p->n = p->cap = 0;
}

bool statistics_aggregation_gathers(const struct statistics_aggregation *p)
{
    return p->gathers;
}

/* ---- storing ---- */

/* Returns the statistics of the process (boot id) that record r describes. NULL: none were
 * received. */
static const struct member_statistics *find(const struct statistics_aggregation *p,
                                            const struct record *r)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->said[i]->boot == r->boot && env_same_id(p->said[i]->id, r->id))
            return p->said[i];
    return NULL;
}

/* Drops the statistics of earlier processes, and of members that are no longer in the member
 * table. */
static void sift(struct statistics_aggregation *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        const struct member *m = members_find(p->env->members, p->said[i]->id);
        if (m != NULL && m->record->boot == p->said[i]->boot)
            p->said[n++] = p->said[i];
        else
            free(p->said[i]);
    }
    p->n = n;
}

/* Stores statistics, and compares their columns with this peer's. `from`: the session over which
 * they arrived; NULL: they are this peer's own. If memory is exhausted, nothing is stored. */
static void keep(struct statistics_aggregation *p, const struct wire_moments *m,
                 const struct link *from)
{
    const struct node_pool *pool = p->env->config.pool;
    char why[NODE_POOL_WHY];
    if (p->n == p->cap) {
        size_t cap = p->cap > 0 ? 2 * p->cap : 16;
        struct member_statistics **grown =
            realloc(p->said, cap * sizeof(struct member_statistics *));
        if (grown == NULL)
            return;
        p->said = grown;
        p->cap = cap;
    }
    struct member_statistics *said = malloc(sizeof *said + m->payload.n);
    if (said == NULL)
        return;
    *said = (struct member_statistics){.boot = m->record.boot,
                                       .founds = m->founds,
                                       .labels = pool->labels(pool->self, m->payload),
                                       .serial = ++p->serial,
                                       .from = from != NULL ? from->number : OURS,
                                       .n = m->payload.n};
    memcpy(said->id, m->record.id, sizeof said->id);
    memcpy(said->signature, m->signature, sizeof said->signature);
    memcpy(said->bytes, m->payload.p, m->payload.n);
    bool both = from != NULL && pool->own.n > 0;
    said->differs = both && pool->differ(pool->self, m->payload, true, why);
    said->lacks = both && pool->differ(pool->self, m->payload, false, why);
    /* spread() sends entries in the order of their serial numbers. */
    assert(p->n < p->cap && (p->n == 0 || p->said[p->n - 1]->serial < said->serial));
    p->said[p->n++] = said;
    statistics_aggregation_check(p);
    if (!said->lacks || !pool->founds || p->left_out)
        return;
    p->left_out = true;
    env_note(p->env, NOTE_WARNING, "the data of %s do not match this peer's data: %s",
             m->record.name, why);
}

bool statistics_aggregation_start(struct statistics_aggregation *p)
{
    const struct node_config *c = &p->env->config;
    const struct node_pool *pool = c->pool;
    uint8_t msg[WIRE_MOMENTS_MAX + 128];
    assert(p->serial == 0);
    if (pool == NULL || pool->own.n == 0)
        return false;
    struct wire_moments m = {
        .record = *members_self(p->env->members), .founds = pool->founds, .payload = pool->own};
    c->crypto->sign(c->crypto->self, msg, wire_moments_signed(msg, sizeof msg, &m), m.signature);
    keep(p, &m, NULL);
    p->tell_us = p->env->now_us + STATISTICS_LOG_US;
    return pool->founds;
}

void statistics_aggregation_take(struct statistics_aggregation *p, const struct link *l,
                                 const struct wire_moments *m)
{
    const struct node_config *c = &p->env->config;
    uint8_t msg[WIRE_MOMENTS_MAX + 128];
    if (c->pool == NULL || env_same_id(m->record.id, c->id))
        return;
    handshake_record(p->sessions, l, &m->record);
    const struct member *member = members_find(p->env->members, m->record.id);
    if (l->hung_up != NULL || p->env->over || member == NULL
        || member->record->boot != m->record.boot || find(p, &m->record) != NULL)
        return;
    if (!c->crypto->verify(c->crypto->self, m->record.id, msg,
                           wire_moments_signed(msg, sizeof msg, m), m->signature)) {
        sessions_violation(p->sessions, l, "forged column statistics");
        return;
    }
    const char *wrong = c->pool->check(c->pool->self, m->payload);
    if (wrong != NULL) {
        sessions_violation(p->sessions, l, wrong);
        return;
    }
    sift(p);
    if (p->n < WIRE_MEMBERS_MAX)
        keep(p, m, l);
}

/* ---- forwarding ---- */

/* Sends the statistics *said of one member over session l. Returns the number of bytes sent, or 0
 * if nothing is sent: (1) the other end is that member, (2) the other end has sent these statistics
 * to this peer, or (3) the member table no longer has the process that they describe. */
static size_t pass_on(struct statistics_aggregation *p, const struct link *l,
                      const struct member_statistics *said)
{
    struct env *v = p->env;
    const struct member *member = members_find(v->members, said->id);
    bool theirs = env_same_id(said->id, l->id) || said->from == l->number;
    if (theirs || member == NULL || member->record->boot != said->boot)
        return 0;
    struct wire_moments m = {
        .record = *member->record, .founds = said->founds, .payload = {said->bytes, said->n}};
    memcpy(m.signature, said->signature, sizeof m.signature);
    size_t n = wire_put_moments(v->commons->message, sizeof v->commons->message, &m);
    sessions_send(p->sessions, l, false, v->commons->message, n, NULL);
    return n;
}

/* Forwards over each session the statistics that were not sent over it yet. Each message contains
 * the member's record, because the receiver may not know the member. */
static void spread(struct statistics_aggregation *p)
{
    for (size_t k = 0; k < sessions_slots(p->sessions); k++) {
        const struct link *l = sessions_at(p->sessions, k);
        size_t sent = 0;
        if (!link_open(l))
            continue;
        if (p->number[k] != l->number)
            p->told[k] = 0;
        p->number[k] = l->number;
        assert(p->told[k] <= p->serial);
        for (size_t i = 0; i < p->n && sent < SPREAD_BYTES; i++)
            if (p->said[i]->serial > p->told[k]) {
                sent += pass_on(p, l, p->said[i]);
                p->told[k] = p->said[i]->serial;
            }
    }
}

/* ---- combining ---- */

/* The live members and their statistics, in the order of the member table. */
struct gathering
{
    /* said[i]: statistics of the i-th member. NULL: they have not arrived. */
    const struct member_statistics *said[WIRE_MEMBERS_MAX];
    const char *name[WIRE_MEMBERS_MAX];
    /* n: number of members. n_said: members whose statistics have arrived. n_fit: members whose
     * columns match this peer's. */
    size_t n, n_said, n_fit;
    /* Statistics of the creator (statistics_aggregation.h). NULL: no member would create a run. */
    const struct member_statistics *founder;
    const char *founder_name; /* Name of the creator. */
};

/* Returns the number of members in *g that have the label names of *s. */
static size_t n_alike(const struct gathering *g, const struct member_statistics *s)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++)
        n += g->said[i] != NULL && g->said[i]->labels == s->labels;
    return n;
}

/* Chooses the creator (statistics_aggregation.h). A member whose file lacks some label names is
 * thus not chosen, unless its set of label names is the most frequent one. O(members^2). */
static void choose_founder(struct gathering *g)
{
    size_t most = 0;
    for (size_t i = 0; i < g->n; i++) {
        const struct member_statistics *s = g->said[i];
        if (s == NULL || !s->founds || (g->founder != NULL && s->labels == g->founder->labels))
            continue;
        size_t n = n_alike(g, s);
        if (n < most || (n == most && s->labels < g->founder->labels))
            continue;
        most = n;
        g->founder = s;
        g->founder_name = g->name[i];
    }
}

/* Fills *g with the live members and their statistics. */
static void gather(struct statistics_aggregation *p, struct gathering *g)
{
    struct env *v = p->env;
    size_t self;
    *g = (struct gathering){.n = members_vertices(v->members, v->vertices, &self)};
    for (size_t i = 0; i < g->n; i++) {
        const struct record *r = members_at(v->members, v->vertices[i])->record;
        const struct member_statistics *s = g->said[i] = find(p, r);
        g->name[i] = r->name;
        g->n_said += s != NULL;
        g->n_fit += s != NULL && !s->lacks;
    }
    choose_founder(g);
    p->gathers = g->founder != NULL;
    assert(g->n_fit <= g->n_said && g->n_said <= g->n);
}

/* Writes a list such as "a, b and 3 more" to text[]: the names of members whose statistics have
 * arrived (`said` true) or are missing (`said` false). */
static void list(const struct gathering *g, bool said, char text[NAMES])
{
    size_t n = 0, at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < g->n; i++) {
        if ((g->said[i] != NULL) != said)
            continue;
        if (at + strlen(g->name[i]) + sizeof " and 1000 more" < NAMES)
            at += (size_t)snprintf(text + at, NAMES - at, "%s%s", n > 0 ? ", " : "", g->name[i]);
        else {
            size_t all = said ? g->n_said : g->n - g->n_said;
            snprintf(text + at, NAMES - at, " and %zu more", all - n);
            return;
        }
        n++;
    }
}

/* Prints every STATISTICS_LOG_AGAIN_US what this peer waits for. Prints nothing while no member
 * would create the run or while peers refuse this peer's sessions. */
static void tell(struct statistics_aggregation *p, const struct gathering *g)
{
    struct env *v = p->env;
    bool ours = g->founder != NULL && g->founder->from == OURS;
    char names[NAMES];
    if (v->now_us < p->tell_us || g->founder == NULL || sessions_are_refused(p->sessions))
        return;
    p->tell_us = v->now_us + STATISTICS_LOG_AGAIN_US;
    list(g, false, names);
    if (!ours)
        env_note(v, NOTE_INFO,
                 "waiting for %s, which collects the column statistics of all members: %zu have "
                 "arrived%s%s",
                 g->founder_name, g->n_said, names[0] != '\0' ? ", missing: " : "", names);
    else if (names[0] != '\0')
        env_note(v, NOTE_INFO,
                 "waiting for the column statistics of %s: %zu of %u (--min-peers) have arrived",
                 names, g->n_fit, v->config.run.min_peers);
    else
        env_note(
            v, NOTE_INFO,
            "waiting for members: the column statistics of %zu of %u (--min-peers) have arrived",
            g->n_fit, v->config.run.min_peers);
}

/* Ends the node with an error, because this peer's columns do not match those of the member that
 * creates the run. */
static void part(struct statistics_aggregation *p, const struct gathering *g)
{
    const struct node_pool *pool = p->env->config.pool;
    char why[NODE_POOL_WHY] = "";
    assert(g->founder->differs && g->founder->from != OURS);
    (void)pool->differ(pool->self, (struct bytes){g->founder->bytes, g->founder->n}, true, why);
    env_note(p->env, NOTE_ERROR, "%s (according to %s, which creates the run)", why,
             g->founder_name);
    sessions_leave(p->sessions);
    env_end(p->env, 2);
}

/* Creates the run from the statistics of all members whose columns match this peer's. Returns true
 * and sets *run. On failure the node ends. */
static bool fix(struct statistics_aggregation *p, const struct gathering *g, struct run *run)
{
    struct env *v = p->env;
    const struct node_pool *pool = v->config.pool;
    assert(g->founder->from == OURS && g->n_fit > 0);
    struct node_part *parts = calloc(g->n_fit, sizeof *parts);
    char error[RUN_ERROR_MAX] = "out of memory for the column statistics", names[NAMES];
    size_t n = 0;
    for (size_t i = 0; i < g->n && parts != NULL; i++)
        if (g->said[i] != NULL && !g->said[i]->lacks)
            parts[n++] = (struct node_part){g->name[i], {g->said[i]->bytes, g->said[i]->n}};
    assert(parts == NULL || n == g->n_fit);
    int err = parts != NULL ? pool->pool(pool->self, parts, n, run, error) : -ENOMEM;
    free(parts);
    if (err < 0) {
        env_note(v, NOTE_ERROR, "%s", error);
        sessions_leave(p->sessions);
        env_end(v, cmd_exit_of(err));
        return false;
    }
    list(g, true, names);
    env_note(v, NOTE_INFO, "the run uses the column statistics of %zu member%s: %s", n,
             number_plural(n), names);
    return true;
}

bool statistics_aggregation_look(struct statistics_aggregation *p, struct run *run)
{
    struct env *v = p->env;
    struct gathering g;
    if (v->config.pool == NULL || v->now_us < p->look_us)
        return false;
    p->look_us = v->now_us + TICK_US;
    spread(p);
    gather(p, &g);
    bool ours = g.founder != NULL && g.founder->from == OURS;
    /* Before --min-peers members have sent statistics, another member may become the creator. */
    if (g.founder != NULL && g.founder->differs && g.n_said >= v->config.run.min_peers)
        part(p, &g);
    else if (ours && g.n_fit >= v->config.run.min_peers)
        return fix(p, &g, run);
    if (!v->over)
        tell(p, &g);
    return false;
}
