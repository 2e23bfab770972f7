/* peer/node/join/state_transfer.c -- requests and stages pieces of a model, and judges the complete
 * model. */
#include "peer/node/join/state_transfer.h"

#include "peer/node/mark.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Each source has one bit in state_transfer_piece.asked. */
_Static_assert(PIECE_SOURCES <= 32, "state_transfer_piece.asked has 32 bits");

enum {
    NOBODY = PIECE_SOURCES, /* Index that means "no source". */
    /* A new source may be behind the usual round (usual_round()) by at most LATE_ROUNDS plus an
     * eighth of the usual round. */
    LATE_ROUNDS = 16
};

enum {
    STATE_TRANSFER_WINDOW = 2, /* Maximum number of open piece requests at one source. */
    /* Number of requests that are remembered. A MODEL message is accepted only as an answer to one
     * of them. */
    STATE_TRANSFER_QUESTIONS = 64
};

/* Whether a source is asked for pieces. */
enum source_state {
    SOURCE_USED, /* The source is asked for pieces while it has a session. */
    /* The source did not answer open requests for STATE_TRANSFER_STALL_US. It gets no further
     * request until it sends a MODEL, it has a new session, or all connected sources are silent. */
    SOURCE_SILENT,
    /* The source is excluded for the rest of the fetch, and its pieces are discarded. */
    SOURCE_STRUCK
};

/* A source: a member that was asked for pieces. The entry stays when the session with the member
 * ends. */
struct state_transfer_source
{
    uint32_t link;             /* Driver's number of the newest session with the source. */
    uint8_t id[WIRE_ID_BYTES]; /* Identity of the source. */
    enum source_state state;
    /* True: sketches of the source's model have arrived, or were requested and may still arrive. */
    bool asked_own;
    /* Sketches of the source's model, PIECE_SKETCH floats per piece. NULL: not received. */
    float *own;
    uint32_t n_asked; /* Number of piece requests that the source has not answered. */
    /* Last time when a MODEL arrived from the source, or when a piece was requested while no other
     * request was open. Node time in microseconds. 0: no piece was requested. */
    int64_t heard_us;
    /* Round in the last MODEL message of the source. Before the first MODEL: the round that the
     * source reported on its session. */
    uint64_t round;
};

/* Progress of one piece of the model. */
struct state_transfer_piece
{
    bool here;        /* True: the piece is present in state_transfer.staged. */
    uint8_t from;     /* Index of the source that sent the piece. Valid if the piece is present. */
    uint32_t asked;   /* Bit k is set if source k has an open request for the piece. */
    int64_t asked_us; /* Node time of the last request for the piece, in microseconds. */
};

/* The transfer of one model. */
struct state_transfer
{
    struct env *env;
    struct sessions *sessions;
    struct run_context *workshop;
    /* If not NULL, only members whose models this certificate covers are sources. Borrowed. Set by
     * state_transfer_update(). */
    const struct finish_proposal *certificate;
    /* Number of fetches that were started so far. Identifies the current fetch. */
    uint64_t n_fetches;
    /* Model under construction. Missing pieces contain the run's initial model. NULL: no fetch. */
    float *staged;
    /* Progress of each piece: array of n_pieces entries. NULL: no fetch. */
    struct state_transfer_piece *piece;
    size_t n_pieces;
    /* Sources of the fetch. The first n_sources entries are used. */
    struct state_transfer_source source[PIECE_SOURCES];
    size_t n_sources;
    uint64_t key; /* Key of the requested sketches. 0: no sketches are requested now. */
    /* Largest distance of the fetched model from the model of a source, relative to the norm of the
     * fetched model. Estimated from sketches. INFINITY: no source has sent sketches, or the
     * estimated norm is 0. Valid after state_transfer_update() has returned true. */
    double apart;
    /* begun_us: node time at which the fetch began. asked_us: node time at which sketches with the
     * key `key` were first requested. In microseconds. */
    int64_t begun_us, asked_us;
    struct
    {
        /* link: driver's number of the session of the request; UINT32_MAX: the request has been
         * answered. piece: index of the requested piece. */
        uint32_t link, piece;
        /* key: 0 for a piece, else the key of the requested sketches. fetch: value of n_fetches
         * when the request was sent. */
        uint64_t key, fetch;
        /* Ring buffer of the last requests for pieces or sketches. */
    } question[STATE_TRANSFER_QUESTIONS];
    uint32_t n_questions; /* Number of requests that were ever sent. */
    /* Members with which this peer wants a session until state_transfer_drop(). The first n_wanted
     * entries are used. */
    uint8_t wanted[STATE_TRANSFER_SOURCES][WIRE_ID_BYTES];
    size_t n_wanted;
};

struct state_transfer *state_transfer_open(struct env *env, struct sessions *s,
                                           struct run_context *w)
{
    struct state_transfer *f = calloc(1, sizeof *f);
    if (f != NULL)
        *f = (struct state_transfer){.env = env, .sessions = s, .workshop = w};
    return f;
}

void state_transfer_close(struct state_transfer *f)
{
    assert(f == NULL || (f->staged == NULL && f->n_wanted == 0));
    free(f);
}

static void state_transfer_check(const struct state_transfer *f)
{
    bool active = state_transfer_is_active(f);
    assert(active == (f->piece != NULL));
    assert(active || (f->n_sources == 0 && f->key == 0));
    assert(!active || f->n_pieces == run_context_pieces(f->workshop));
    assert(f->n_sources <= PIECE_SOURCES && f->n_wanted < STATE_TRANSFER_SOURCES);
    for (size_t k = 0; k < f->n_sources; k++) {
        const struct state_transfer_source *s = &f->source[k];
        assert(s->n_asked <= STATE_TRANSFER_WINDOW);
        assert(s->state != SOURCE_STRUCK || (s->own == NULL && s->n_asked == 0));
        assert(s->own == NULL || f->key != 0);
        assert(s->heard_us <= f->env->now_us);
    }
}

static void forget_sketches(struct state_transfer *f)
{
    for (size_t k = 0; k < f->n_sources; k++) {
        free(f->source[k].own);
        f->source[k].own = NULL;
        f->source[k].asked_own = false;
    }
    f->key = 0;
}

void state_transfer_drop(struct state_transfer *f)
{
    forget_sketches(f);
    while (f->n_wanted > 0)
        sessions_unwant(f->sessions, f->wanted[--f->n_wanted]);
    free(f->staged);
    free(f->piece);
    f->staged = NULL;
    f->piece = NULL;
    f->n_sources = 0;
    state_transfer_check(f);
}

/* Returns the number of pieces of the model itself. Only these are judged by sketches, not the
 * pieces of the outer momentum. */
static size_t n_judged(const struct state_transfer *f)
{
    return run_context_model_pieces(f->workshop);
}

static bool begin(struct state_transfer *f)
{
    size_t bytes = mixing_model_bytes(&f->workshop->mixing);
    assert(f->staged == NULL && f->piece == NULL && f->n_sources == 0);
    f->n_pieces = run_context_pieces(f->workshop);
    f->staged = calloc(run_context_floats(f->workshop), sizeof *f->staged);
    f->piece = calloc(f->n_pieces, sizeof *f->piece);
    if (f->staged == NULL || f->piece == NULL) {
        state_transfer_drop(f);
        env_note(f->env, NOTE_ERROR, "out of memory for a neighbour's model");
        env_end(f->env, 1);
        return false;
    }
    memcpy(f->staged, f->workshop->mixing.x0, bytes);
    f->begun_us = f->env->now_us;
    f->n_fetches++;
    return true;
}

/* ---- sources ---- */

static const struct link *link_of(const struct state_transfer *f, size_t k)
{
    const struct link *l = sessions_link(f->sessions, f->source[k].link);
    return l != NULL && link_open(l) && l->same_run ? l : NULL;
}

/* Returns whether source k is not excluded and has a session, so that requests can be sent. */
static bool is_there(const struct state_transfer *f, size_t k)
{
    return f->source[k].state != SOURCE_STRUCK && link_of(f, k) != NULL;
}

bool state_transfer_is_source(const struct link *l, const struct finish_proposal *certificate)
{
    return link_open(l) && l->same_run && l->started
           && (certificate == NULL
               || (finish_status_of(certificate, l->id) == FINISH_WITHIN && !l->uncertified));
}

/* Returns the upper median of the rounds that possible sources report. 0: there are no possible
 * sources. A median is used because a single member may report any round. */
static uint64_t usual_round(const struct state_transfer *f)
{
    uint64_t round[NODE_LINKS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < sessions_slots(f->sessions); i++) {
        const struct link *l = sessions_at(f->sessions, i);
        if (!state_transfer_is_source(l, f->certificate))
            continue;
        size_t at = n++;
        for (; at > 0 && round[at - 1] > l->round; at--)
            round[at] = round[at - 1];
        round[at] = l->round;
    }
    return n > 0 ? round[n / 2] : 0;
}

/* Cancels all open requests at source k, so that other sources can be asked for these pieces. */
static void free_pieces(struct state_transfer *f, size_t k)
{
    for (size_t p = 0; p < f->n_pieces; p++)
        f->piece[p].asked &= ~(1u << k);
    f->source[k].n_asked = 0;
}

/* Returns the index of the source with this identity, or n_sources if no source has it. */
static size_t source_of(const struct state_transfer *f, const uint8_t *id)
{
    size_t k = 0;
    while (k < f->n_sources && !env_same_id(f->source[k].id, id))
        k++;
    return k;
}

/* Returns the session of the best candidate for a new source: the one with the highest round, which
 * must be at least `least`. Candidates are members that are no source yet, and sources with a new
 * session after the loss of the old one. Excluded sources (SOURCE_STRUCK) are no candidates. A
 * member that reconnects keeps its index, so it counts as one source only. NULL: there is no
 * candidate. */
static const struct link *best_new(const struct state_transfer *f, uint64_t least)
{
    const struct link *best = NULL;
    for (size_t i = 0; i < sessions_slots(f->sessions); i++) {
        const struct link *l = sessions_at(f->sessions, i);
        if (!state_transfer_is_source(l, f->certificate) || l->round < least
            || (best != NULL && l->round <= best->round))
            continue;
        size_t k = source_of(f, l->id);
        bool lost =
            k < f->n_sources && f->source[k].state != SOURCE_STRUCK && link_of(f, k) == NULL;
        if (lost || (k == f->n_sources && k < PIECE_SOURCES))
            best = l;
    }
    return best;
}

/* Adds sources until STATE_TRANSFER_SOURCES of them can be asked, if enough members have a session.
 * Returns the number of sources that can be asked: present, not excluded and not silent. */
static size_t add_sources(struct state_transfer *f)
{
    const struct link *l;
    uint64_t usual = usual_round(f), slack = LATE_ROUNDS + usual / 8;
    size_t n = 0;
    for (size_t k = 0; k < f->n_sources; k++)
        n += is_there(f, k) && f->source[k].state != SOURCE_SILENT;
    while (n < STATE_TRANSFER_SOURCES
           && (l = best_new(f, usual > slack ? usual - slack : 0)) != NULL) {
        size_t k = source_of(f, l->id);
        assert(k < PIECE_SOURCES);
        struct state_transfer_source *s = &f->source[k];
        if (k == f->n_sources) {
            *s = (struct state_transfer_source){.round = l->round};
            memcpy(s->id, l->id, sizeof s->id);
            f->n_sources++;
        }
        free_pieces(f, k);
        s->link = l->number;
        s->state = SOURCE_USED;
        s->asked_own = s->own != NULL;
        n++;
    }
    return n;
}

static bool is_wanted(const struct state_transfer *f, const uint8_t *id)
{
    for (size_t i = 0; i < f->n_wanted; i++)
        if (env_same_id(f->wanted[i], id))
            return true;
    return false;
}

/* The search for members to dial starts at an index that depends on this peer's identity. Peers
 * that join at the same time thus dial different members. */
void state_transfer_seek(struct state_transfer *f)
{
    const struct members *members = f->env->members;
    size_t n = members_count(members);
    size_t first = (size_t)rng_hash(f->env->config.id, WIRE_ID_BYTES) % (n > 0 ? n : 1);
    for (size_t i = 0; i < n && f->n_wanted < STATE_TRANSFER_SOURCES - 1; i++) {
        const struct member *m = members_at(members, (first + i) % n);
        const uint8_t *id = m->record->id;
        bool skip = m->state != MEMBER_ALIVE || env_same_id(id, f->env->config.id)
                    || sessions_to(f->sessions, id) != NULL || sessions_wants(f->sessions, id);
        if (skip || is_wanted(f, id) || sessions_want(f->sessions, id) != 0)
            continue;
        memcpy(f->wanted[f->n_wanted++], id, WIRE_ID_BYTES);
    }
    for (size_t i = 0; i < f->n_wanted; i++)
        sessions_call(f->sessions, f->wanted[i], f->begun_us - DIAL_YIELD_US);
}

/* Returns whether another live member is not a source yet. */
static bool others_left(const struct state_transfer *f)
{
    for (size_t i = 0; i < members_count(f->env->members); i++) {
        const struct member *m = members_at(f->env->members, i);
        if (m->state == MEMBER_ALIVE && !env_same_id(m->record->id, f->env->config.id)
            && source_of(f, m->record->id) == f->n_sources)
            return true;
    }
    return false;
}

/* Cancels the open requests at sources that are excluded or without a session, and at sources that
 * have not answered for STATE_TRANSFER_STALL_US, which become SOURCE_SILENT. */
static void look_for_stalls(struct state_transfer *f)
{
    for (size_t k = 0; k < f->n_sources; k++) {
        struct state_transfer_source *s = &f->source[k];
        if (s->n_asked == 0)
            continue;
        bool stalled = f->env->now_us - s->heard_us > STATE_TRANSFER_STALL_US;
        if (!stalled && is_there(f, k))
            continue;
        if (stalled)
            s->state = SOURCE_SILENT;
        free_pieces(f, k);
    }
}

/* If all connected sources are silent, marks the source that has been silent longest as not silent,
 * once its silence exceeds STATE_TRANSFER_RETRY_US. Silent sources are thus asked again one after
 * the other. */
static void ask_the_silent(struct state_transfer *f)
{
    size_t oldest = NOBODY;
    for (size_t k = 0; k < f->n_sources; k++) {
        if (!is_there(f, k))
            continue;
        if (f->source[k].state != SOURCE_SILENT)
            return;
        if (oldest == NOBODY || f->source[k].heard_us < f->source[oldest].heard_us)
            oldest = k;
    }
    if (oldest != NOBODY && f->env->now_us - f->source[oldest].heard_us > STATE_TRANSFER_RETRY_US)
        f->source[oldest].state = SOURCE_USED;
}

/* ---- questions ---- */

/* Returns the earliest acceptable round of a model that is requested from source k: four fifths of
 * the round that the source reported last. The outlier filter can compare two models if one has
 * done at most 5/4 as many rounds as the other (gossip/exchange/outlier_filter.h). With an older
 * model, which is closer to the initial model, this peer would refuse the deltas of all members. */
static uint64_t least_round(const struct state_transfer *f, size_t k)
{
    uint64_t round = f->source[k].round;
    return round - round / 5;
}

/* Sends a MODEL_REQ to source k and stores the request in question[]. key: 0 to request a piece,
 * else the key of the requested sketches. */
static void ask(struct state_transfer *f, size_t k, uint32_t piece, uint64_t key)
{
    uint8_t out[32];
    struct wire_model_req m = {.round = least_round(f, k), .piece = piece, .key = key};
    uint32_t at = f->n_questions++ % STATE_TRANSFER_QUESTIONS;
    assert(is_there(f, k) && (key != 0) == (piece == WIRE_PIECE_WHOLE));
    f->question[at].link = f->source[k].link;
    f->question[at].piece = piece;
    f->question[at].key = key;
    f->question[at].fetch = f->n_fetches;
    sessions_send(f->sessions, link_of(f, k), false, out, wire_put_model_req(out, sizeof out, &m),
                  NULL);
}

/* Returns whether the message answers an open request, and marks the request as answered. Sets *now
 * to whether the request belongs to the current fetch. An answer to an earlier fetch may be a model
 * of another run. */
static bool was_asked(struct state_transfer *f, const struct link *l, const struct wire_model *m,
                      bool *now)
{
    for (uint32_t i = 0; i < f->n_questions && i < STATE_TRANSFER_QUESTIONS; i++)
        if (f->question[i].link == l->number && f->question[i].piece == m->piece
            && f->question[i].key == m->key) {
            f->question[i].link = UINT32_MAX;
            *now = state_transfer_is_active(f) && f->question[i].fetch == f->n_fetches;
            return true;
        }
    return false;
}

/* Returns the index of the piece to request from source k: the first missing piece without an open
 * request. If there is no such piece, returns the piece whose request to another source is the
 * oldest and older than STATE_TRANSFER_PIECE_US. n_pieces: no piece. */
static size_t next_piece(const struct state_transfer *f, size_t k)
{
    size_t late = f->n_pieces;
    for (size_t p = 0; p < f->n_pieces; p++) {
        const struct state_transfer_piece *q = &f->piece[p];
        if (q->here)
            continue;
        if (q->asked == 0)
            return p;
        bool slow =
            (q->asked >> k & 1) == 0 && f->env->now_us - q->asked_us > STATE_TRANSFER_PIECE_US;
        if (slow && (late == f->n_pieces || q->asked_us < f->piece[late].asked_us))
            late = p;
    }
    return late;
}

static void ask_piece(struct state_transfer *f, size_t k)
{
    struct state_transfer_source *s = &f->source[k];
    size_t p = next_piece(f, k);
    if (p == f->n_pieces)
        return;
    assert(!f->piece[p].here && (f->piece[p].asked >> k & 1) == 0);
    if (s->n_asked++ == 0)
        s->heard_us = f->env->now_us;
    f->piece[p].asked |= 1u << k;
    f->piece[p].asked_us = f->env->now_us;
    ask(f, k, (uint32_t)p, 0);
}

/* Requests pieces until each source has STATE_TRANSFER_WINDOW open requests. All sources get their
 * first request before any source gets a second one, so that few pieces are shared evenly. */
static void ask_pieces(struct state_transfer *f)
{
    for (uint32_t n = 0; n < STATE_TRANSFER_WINDOW; n++)
        for (size_t k = 0; k < f->n_sources; k++)
            if (is_there(f, k) && f->source[k].state != SOURCE_SILENT && f->source[k].n_asked <= n)
                ask_piece(f, k);
}

static bool all_here(const struct state_transfer *f)
{
    for (size_t p = 0; p < f->n_pieces; p++)
        if (!f->piece[p].here)
            return false;
    return true;
}

/* ---- answers ---- */

static const char *name_of(const struct state_transfer *f, size_t k)
{
    const struct member *m = members_find(f->env->members, f->source[k].id);
    return m != NULL ? m->record->name : "a member";
}

/* Excludes source k, discards its pieces and prints the reason `why`. Also frees all sketches,
 * because the next judgement needs a key that the sources do not know yet. */
static void strike(struct state_transfer *f, size_t k, const char *why)
{
    env_note(f->env, NOTE_WARNING,
             "%s %s: the model pieces from it are discarded and fetched from other members",
             name_of(f, k), why);
    assert(f->source[k].state != SOURCE_STRUCK);
    f->source[k].state = SOURCE_STRUCK;
    free_pieces(f, k);
    for (size_t p = 0; p < f->n_pieces; p++)
        if (f->piece[p].here && f->piece[p].from == k)
            f->piece[p].here = false;
    forget_sketches(f);
}

/* Stages a piece from source k. Returns NULL, or the protocol violation in words. A piece that is
 * not finite stays missing, and the initial model's piece takes its place (zeros for a piece of the
 * outer momentum). */
static const char *take_piece(struct state_transfer *f, size_t k, const struct wire_model *m)
{
    /* The message answers a request of this fetch (was_asked()), so the piece exists. */
    assert(m->piece < f->n_pieces);
    const struct mixing *mixing = &f->workshop->mixing;
    size_t n, at = run_context_piece_at(f->workshop, m->piece, &n);
    struct state_transfer_piece *q = &f->piece[m->piece];
    assert(f->source[k].n_asked >= (q->asked >> k & 1));
    if (m->payload.n != n * sizeof(float))
        return "bad MODEL";
    f->source[k].n_asked -= q->asked >> k & 1;
    q->asked &= ~(1u << k);
    if (q->here)
        return NULL; /* Another source has already sent this piece. */
    memcpy(f->staged + at, m->payload.p, m->payload.n);
    if (!vec_finite(f->staged + at, n)
        || !statistics_proper(&mixing->statistics, f->staged + mixing->dim)) {
        if (at < mixing->n_floats)
            memcpy(f->staged + at, mixing->x0 + at, m->payload.n);
        else
            memset(f->staged + at, 0, m->payload.n);
        return "MODEL is not finite";
    }
    q->here = true;
    q->from = (uint8_t)k;
    return NULL;
}

/* Stores sketches of the model of source k. Returns NULL, or the protocol violation in words. */
static const char *take_sketches(struct state_transfer *f, size_t k, const struct wire_model *m)
{
    struct state_transfer_source *s = &f->source[k];
    size_t n = n_judged(f) * PIECE_SKETCH;
    assert(s->state != SOURCE_STRUCK && (m->key != f->key || s->asked_own));
    if (m->key != f->key || s->own != NULL)
        /* The sketches are not needed: their key is outdated, or this source has already sent
         * sketches. */
        return NULL;
    if (m->payload.n != n * sizeof *s->own)
        return "bad MODEL";
    float *own = malloc(m->payload.n);
    if (own == NULL)
        return NULL; /* Memory is exhausted. The sketches count as not received. */
    memcpy(own, m->payload.p, m->payload.n);
    if (!vec_finite(own, n)) {
        free(own);
        return "MODEL is not finite";
    }
    s->own = own;
    return NULL;
}

const char *state_transfer_take(struct state_transfer *f, const struct link *l,
                                const struct wire_model *m)
{
    bool now;
    if (!was_asked(f, l, m, &now))
        return "MODEL not asked for";
    for (size_t k = 0; k < f->n_sources && now; k++) {
        struct state_transfer_source *s = &f->source[k];
        if (s->link != l->number || s->state == SOURCE_STRUCK)
            continue;
        if (f->certificate != NULL && !m->certified) {
            MARK("state_transfer: a covered member has another model");
            strike(f, k, "no longer has the final model that it certified");
            sessions_uncertified(f->sessions, l);
            return NULL;
        }
        const char *wrong = m->key != 0 ? take_sketches(f, k, m) : take_piece(f, k, m);
        if (wrong != NULL)
            return wrong;
        s->state = SOURCE_USED;
        s->heard_us = f->env->now_us;
        s->round = m->round;
        break;
    }
    state_transfer_check(f);
    return NULL;
}

/* ---- the judgement ---- */

/* Returns whether the pieces cannot be compared with another source: no source can be asked, or the
 * only source that can be asked has sent all pieces. */
static bool alone(const struct state_transfer *f)
{
    size_t n = 0, last = 0;
    for (size_t k = 0; k < f->n_sources; k++) {
        n += is_there(f, k);
        last = is_there(f, k) ? k : last;
    }
    for (size_t p = 0; p < f->n_pieces && n == 1; p++)
        n += f->piece[p].from != last;
    return n < 2;
}

/* Requests sketches of the sources' models. Their key is drawn at random only after all pieces have
 * arrived, so that no source can prepare pieces that fit the sketches. */
static void ask_sketches(struct state_transfer *f)
{
    if (alone(f))
        return;
    if (f->key == 0) {
        while ((f->key = rng_u64(&f->env->rng)) == 0)
            continue;
        f->asked_us = f->env->now_us;
    }
    for (size_t k = 0; k < f->n_sources; k++) {
        if (f->source[k].asked_own || !is_there(f, k))
            continue;
        f->source[k].asked_own = true;
        ask(f, k, WIRE_PIECE_WHOLE, f->key);
    }
}

/* Returns whether the model can be judged: all requested sketches have arrived or have timed out.
 * With fewer than two sets of sketches, the wait for further sources must be over, too. */
static bool answered(const struct state_transfer *f)
{
    int64_t waited_us = f->key != 0 ? f->env->now_us - f->asked_us : 0;
    size_t n = 0, n_open = 0;
    for (size_t k = 0; k < f->n_sources; k++) {
        const struct state_transfer_source *s = &f->source[k];
        n += s->own != NULL;
        n_open += s->own == NULL && s->asked_own && is_there(f, k);
    }
    if (n < 2 && others_left(f) && f->env->now_us - f->begun_us < STATE_TRANSFER_SOURCES_US)
        return false;
    return n_open == 0
           || waited_us > (n >= 2 ? STATE_TRANSFER_SKETCHES_US : STATE_TRANSFER_SKETCHES_MAX_US);
}

/* Judges the pieces of each source. Returns true if all are accepted. Otherwise excludes one
 * source, which frees all sketches in *v, and returns false. */
static bool none_refused(struct state_transfer *f, struct piece_view *v)
{
    for (size_t k = 0; k < f->n_sources; k++) {
        enum piece_verdict said = piece_judge(v, k);
        if (memchr(v->from, (int)k, v->n_pieces) == NULL)
            continue;
        if (said == PIECE_REFUSED) {
            strike(f, k, "sent pieces that differ from those of most other members");
            return false;
        }
        if (said == PIECE_DISPUTED) {
            size_t other, less = piece_further(v, k, &other) ? k : other;
            strike(f, less, "sent pieces that differ from those of another member");
            return false;
        }
    }
    return true;
}

/* Returns the largest distance of the fetched model from a source's model, relative to the norm of
 * the fetched model. Estimated from sketches. INFINITY: no source has sent sketches, or the
 * estimated norm is 0. */
static double apart(const struct piece_view *v)
{
    size_t n = v->n_pieces * PIECE_SKETCH;
    double norm2 = vec_norm2(v->come, n), most2 = 0;
    bool any = false;
    for (size_t k = 0; k < v->n_sources; k++)
        if (v->own[k] != NULL) {
            most2 = fmax(most2, vec_dist2(v->come, v->own[k], n));
            any = true;
        }
    return any && norm2 > 0 ? sqrt(most2 / norm2) : (double)INFINITY;
}

/* Judges the complete model. Returns false if a source was excluded, or if memory is exhausted. */
static bool judge(struct state_transfer *f)
{
    size_t n = f->workshop->mixing.n_floats;
    size_t n_pieces = n_judged(f), n_sketch = n_pieces * PIECE_SKETCH;
    float *come = malloc(2 * n_sketch * sizeof *come);
    uint8_t *from = malloc(n_pieces);
    bool accepted = false;
    if (come != NULL && from != NULL) {
        float *initial = come + n_sketch;
        struct piece_view v = {.n_pieces = n_pieces,
                               .n_sources = f->n_sources,
                               .from = from,
                               .come = come,
                               .initial = initial};
        for (size_t p = 0; p < n_pieces; p++) {
            assert(f->piece[p].here && f->source[f->piece[p].from].state != SOURCE_STRUCK);
            from[p] = f->piece[p].from;
        }
        for (size_t k = 0; k < f->n_sources; k++)
            v.own[k] = f->source[k].own;
        piece_sketch(f->key, f->staged, n, (uint8_t *)come);
        piece_sketch(f->key, f->workshop->mixing.x0, n, (uint8_t *)initial);
        accepted = none_refused(f, &v);
        if (accepted) /* Otherwise the sketches are freed, and no distance is known. */
            f->apart = apart(&v);
    }
    free(come);
    free(from);
    return accepted;
}

static bool any_source(const struct state_transfer *f)
{
    for (size_t k = 0; k < f->n_sources; k++)
        if (is_there(f, k))
            return true;
    return false;
}

bool state_transfer_update(struct state_transfer *f, const struct finish_proposal *certificate)
{
    if (state_transfer_is_active(f) && f->certificate != certificate)
        state_transfer_drop(f);
    f->certificate = certificate;
    if (!state_transfer_is_active(f) && (round_quorum_furthest(f->sessions) == NULL || !begin(f)))
        return false;
    look_for_stalls(f);
    if (add_sources(f) < STATE_TRANSFER_SOURCES)
        state_transfer_seek(f);
    ask_the_silent(f);
    state_transfer_check(f);
    if (!all_here(f)) {
        ask_pieces(f);
        /* All entries for sources are used, and no source can be asked, so the next call must start
         * a new fetch. */
        if (!any_source(f) && f->n_sources == PIECE_SOURCES)
            state_transfer_drop(f);
        return false;
    }
    ask_sketches(f);
    return answered(f) && judge(f);
}

/* Returns the round that source s has reached: the larger one of the round in its last MODEL and
 * the round that its session reports. The source may have continued to train while other pieces
 * arrived. */
static uint64_t round_now(const struct state_transfer *f, const struct state_transfer_source *s)
{
    const struct link *l = sessions_to(f->sessions, s->id);
    return l != NULL && l->round > s->round ? l->round : s->round;
}

/* Returns the lower median of the rounds that the sources reported last. 0: no piece was requested
 * from any source. */
static uint64_t round_of(const struct state_transfer *f)
{
    uint64_t round[PIECE_SOURCES];
    size_t n = 0;
    for (size_t k = 0; k < f->n_sources; k++) {
        const struct state_transfer_source *s = &f->source[k];
        if (s->state == SOURCE_STRUCK || s->heard_us == 0)
            continue;
        uint64_t now = round_now(f, s);
        size_t at = n++;
        for (; at > 0 && round[at - 1] > now; at--)
            round[at] = round[at - 1];
        round[at] = now;
    }
    return n > 0 ? round[(n - 1) / 2] : 0;
}

/* Returns the number of sources that sent at least one piece of the model. */
static size_t count_givers(const struct state_transfer *f)
{
    size_t n = 0;
    for (size_t k = 0; k < f->n_sources; k++) {
        bool gave = false;
        for (size_t p = 0; p < f->n_pieces && !gave; p++)
            gave = f->piece[p].here && f->piece[p].from == k;
        n += gave;
    }
    return n;
}

void state_transfer_result(const struct state_transfer *f, struct join_fetched *r)
{
    assert(state_transfer_is_active(f) && all_here(f));
    *r = (struct join_fetched){.model = f->staged,
                               .round = round_of(f),
                               .n_givers = count_givers(f),
                               .apart = f->apart,
                               .certified = f->certificate != NULL};
}

bool state_transfer_is_active(const struct state_transfer *f)
{
    return f->staged != NULL;
}

const struct finish_proposal *state_transfer_certificate(const struct state_transfer *f)
{
    return f->certificate;
}
