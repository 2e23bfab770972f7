/* peer/node/join/initial.c -- requests the run's initial model from one member after another. */
#include "peer/node/join/initial.h"

#include "gossip/exchange/piece.h"
#include "nn/math/vec.h"
#include "peer/node/membership/quorum.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    INITIAL_WINDOW = 4, /* Maximum number of requested pieces that have not arrived. */
    /* Number of counters of unanswered requests, one per session. */
    INITIAL_LINKS = NODE_LINKS_MAX,
    /* Maximum number of members that are excluded from the transfer at the same time. */
    INITIAL_LIARS = 16
};

#define NO_LINK UINT32_MAX /* Number that no session has. */

/* Transfer of the run's initial model. */
struct initial
{
    struct env *env;
    struct sessions *sessions;
    struct run_context *workshop;
    /* Driver's number of the session with the member that was asked last. NO_LINK: no member was
     * asked. */
    uint32_t link;
    bool sole;     /* True: all pieces that have arrived came over the session `link`. */
    size_t n_here; /* Number of pieces that have arrived: the first n_here of the model. */
    /* Number of pieces that have arrived or were requested over the session `link`: the first
     * n_asked of the model. */
    size_t n_asked;
    /* Node time at which the last piece arrived, or at which the session `link` was chosen, in
     * microseconds. */
    int64_t came_us;
    /* Node time since which no session can provide the initial model, in microseconds. 0: at least
     * one can. */
    int64_t none_us;
    struct
    {
        /* Driver's number of a session, and number of unanswered requests for pieces on it. */
        uint32_t link, n;
    } open[INITIAL_LINKS];
    struct
    {
        uint8_t id[WIRE_ID_BYTES]; /* Identity of a member that sent a model with a wrong hash. */
        /* Node time until which the member is excluded and not asked again. */
        int64_t until_us;
    } liar[INITIAL_LIARS];
    /* Number of exclusions so far. liar[] is a ring buffer: a new exclusion overwrites the oldest
     * one. */
    size_t next_liar;
};

struct initial *initial_open(struct env *env, struct sessions *s, struct run_context *w)
{
    struct initial *in = calloc(1, sizeof *in);
    if (in != NULL)
        *in = (struct initial){
            .env = env, .sessions = s, .workshop = w, .link = NO_LINK, .sole = true};
    return in;
}

void initial_close(struct initial *in)
{
    free(in);
}

/* Discards all pieces of the initial model, and restarts the time limit INITIAL_STALL_US. */
static void begin_anew(struct initial *in)
{
    in->n_here = in->n_asked = 0;
    in->sole = true;
    in->came_us = in->env->now_us;
}

static void initial_check(const struct initial *in)
{
    assert(in->n_here <= in->n_asked && in->n_asked - in->n_here <= INITIAL_WINDOW);
    assert(in->link != NO_LINK || in->n_asked == 0);
    assert(in->sole || in->n_here > 0);
    assert(in->came_us <= in->env->now_us && in->none_us <= in->env->now_us);
}

void initial_forget(struct initial *in)
{
    in->link = NO_LINK;
    in->none_us = 0;
    begin_anew(in);
}

/* ---- choice of the member to ask ---- */

/* Returns whether the member is excluded, because it recently sent a model with a wrong hash. */
static bool is_liar(const struct initial *in, const uint8_t *id)
{
    for (size_t i = 0; i < INITIAL_LIARS; i++)
        if (in->liar[i].until_us > in->env->now_us && env_same_id(in->liar[i].id, id))
            return true;
    return false;
}

/* Returns whether the member of this session has the run's initial model. A peer that lacks the
 * initial model reports no run, so a member that reports this run has it. */
static bool has_run(const struct link *l)
{
    return link_open(l) && l->same_run;
}

/* Returns the session of the member that is being asked for the initial model. NULL: no member is
 * asked, or the member cannot answer. */
static const struct link *asked(const struct initial *in)
{
    const struct link *l = sessions_link(in->sessions, in->link);
    return l != NULL && has_run(l) && !is_liar(in, l->id) ? l : NULL;
}

/* Returns the session to ask after `old`, in cyclic order; `old` itself if it is the only session
 * that can be asked. NULL: no session can be asked. Without `old`, the search starts at an index
 * that depends on this peer's identity, so that peers that lack the model ask different members. */
static const struct link *next_source(const struct initial *in, const struct link *old)
{
    size_t n = sessions_slots(in->sessions);
    size_t first = old != NULL ? sessions_slot(in->sessions, old) + 1
                               : (size_t)rng_hash(in->env->config.id, WIRE_ID_BYTES) % (n + 1);
    for (size_t i = 0; i < n; i++) {
        const struct link *l = sessions_at(in->sessions, (first + i) % n);
        if (has_run(l) && !is_liar(in, l->id))
            return l;
    }
    return NULL;
}

/* Makes l the session that is asked for the initial model. Pieces that were requested from another
 * member and have not arrived will be requested over l. */
static void turn_to(struct initial *in, const struct link *l)
{
    assert(has_run(l) && !is_liar(in, l->id));
    in->sole &= in->n_here == 0 || in->link == l->number;
    in->link = l->number;
    in->n_asked = in->n_here;
    in->came_us = in->env->now_us;
}

bool initial_alone(const struct initial *in)
{
    return in->none_us != 0;
}

/* Chooses the result while no session can be asked. INITIAL_NOWHERE requires both of these
 * conditions: (1) for INITIAL_ABANDON_US, no session has been with a member that has the initial
 * model; (2) this peer has sessions, or no other member is alive. Otherwise the result is
 * INITIAL_WAITS: a live member without a session may still be reached later. */
static enum initial_said nobody(struct initial *in)
{
    bool any = false;
    for (size_t i = 0; i < sessions_slots(in->sessions) && !any; i++)
        /* A member that sent a wrong initial model is excluded for a while. It may be asked again
         * later, so a session with it also counts as a session that can provide the model. */
        any = has_run(sessions_at(in->sessions, i));
    if (any)
        in->none_us = 0;
    else if (in->none_us == 0)
        in->none_us = in->env->now_us > 0 ? in->env->now_us : 1;
    bool gone = sessions_any(in->sessions) || !member_counts_live(in->env);
    return !any && gone && in->env->now_us - in->none_us > INITIAL_ABANDON_US ? INITIAL_NOWHERE
                                                                              : INITIAL_WAITS;
}

/* ---- requests and answers ---- */

/* Returns the counter of open (unanswered) requests of a session. NULL: all its requests are
 * answered. */
static uint32_t *open_on(struct initial *in, uint32_t link)
{
    for (size_t i = 0; i < INITIAL_LINKS; i++)
        if (in->open[i].n > 0 && in->open[i].link == link)
            return &in->open[i].n;
    return NULL;
}

/* Returns the index of a free counter of open requests. A session keeps its counter until all its
 * requests are answered or the session ends, even if another member is asked in the meantime. There
 * are as many counters as sessions. */
static size_t free_place(const struct initial *in)
{
    size_t i = 0;
    while (i < INITIAL_LINKS && in->open[i].n > 0
           && sessions_link(in->sessions, in->open[i].link) != NULL)
        i++;
    assert(i < INITIAL_LINKS);
    return i;
}

/* Requests one piece over session l, and counts the open request. */
static void ask(struct initial *in, const struct link *l, size_t piece)
{
    uint8_t out[32];
    struct wire_model_req m = {.round = WIRE_ROUND_INITIAL, .piece = (uint32_t)piece};
    uint32_t *n = open_on(in, l->number);
    assert(in->link == l->number);
    if (n == NULL) {
        size_t at = free_place(in);
        in->open[at].link = l->number;
        in->open[at].n = 0;
        n = &in->open[at].n;
    }
    ++*n;
    sessions_send(in->sessions, l, false, out, wire_put_model_req(out, sizeof out, &m), NULL);
}

const char *initial_take(struct initial *in, const struct link *l, const struct wire_model *m)
{
    struct run_context *w = in->workshop;
    uint32_t *open = open_on(in, l->number);
    size_t n;
    if (open == NULL)
        return "MODEL not asked for";
    --*open;
    if (!w->lacks || in->link != l->number || m->piece != in->n_here || in->n_here == in->n_asked)
        /* The piece is not needed, for one of these reasons: the initial model x0 is complete,
         * another member is asked now, the piece is not the next one, or the request was sent
         * before all pieces were discarded. */
        return NULL;
    size_t at = piece_at(w->mixing.n_floats, m->piece, &n);
    if (m->payload.n != n * sizeof(float))
        return "bad MODEL";
    memcpy(w->mixing.x0 + at, m->payload.p, m->payload.n);
    in->n_here++;
    in->came_us = in->env->now_us;
    initial_check(in);
    return NULL;
}

/* ---- check of the complete model ---- */

static const char *name_of(const struct initial *in, const struct link *l)
{
    const struct member *m = members_find(in->env->members, l->id);
    return m != NULL ? m->record->name : "a member";
}

/* Returns whether mixing.x0 is finite and has the hash that the run description names. If so, x0
 * also becomes this peer's model. O(n_floats). */
static bool is_right(const struct initial *in)
{
    const struct mixing *m = &in->workshop->mixing;
    return vec_finite(m->x0, m->n_floats) && statistics_proper(&m->statistics, m->x0 + m->dim)
           && run_context_begins(in->workshop);
}

/* Checks the complete model. After a wrong hash, a member is excluded only if it sent all pieces.
 * With several senders, the hash does not show which of them sent a wrong piece. */
static enum initial_said judge(struct initial *in, const struct link *l)
{
    assert(in->link == l->number);
    if (is_right(in)) {
        env_note(in->env, NOTE_INFO, "took the initial model from %s%s", name_of(in, l),
                 in->sole ? "" : " and others");
        initial_forget(in);
        return INITIAL_HERE;
    }
    if (in->sole) {
        size_t at = in->next_liar++ % INITIAL_LIARS;
        memcpy(in->liar[at].id, l->id, WIRE_ID_BYTES);
        in->liar[at].until_us = in->env->now_us + INITIAL_WRONG_US;
        env_note(in->env, NOTE_WARNING,
                 "the initial model from %s does not have the hash that the run names: it is "
                 "discarded, and another member is asked",
                 name_of(in, l));
    }
    begin_anew(in);
    return INITIAL_WAITS;
}

enum initial_said initial_update(struct initial *in)
{
    const struct link *l = asked(in);
    size_t n_pieces = piece_count(in->workshop->mixing.n_floats);
    assert(in->workshop->ready && in->workshop->lacks);
    assert(in->n_asked <= n_pieces);
    initial_check(in);
    bool stalls = l != NULL && in->env->now_us - in->came_us > INITIAL_STALL_US;
    if (l != NULL && in->n_here == n_pieces)
        return judge(in, l);
    if (l == NULL || stalls) {
        l = next_source(in, l);
        if (l == NULL)
            return nobody(in);
        turn_to(in, l);
    }
    in->none_us = 0;
    for (; in->n_asked < n_pieces && in->n_asked < in->n_here + INITIAL_WINDOW; in->n_asked++)
        ask(in, l, in->n_asked);
    assert(in->n_here == n_pieces || in->n_asked > in->n_here);
    initial_check(in);
    return INITIAL_WAITS;
}

/* ---- before the first round ---- */

const struct link *initial_awaited(const struct initial *in)
{
    const struct run_context *w = in->workshop;
    for (size_t i = 0; i < sessions_slots(in->sessions) && w->ready && w->trainer.begins != NULL;
         i++) {
        const struct link *l = sessions_at(in->sessions, i);
        if (link_open(l) && !l->same_run
            && in->env->now_us - l->up_us < in->env->config.patience_us)
            return l;
    }
    return NULL;
}
