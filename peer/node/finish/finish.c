/* peer/node/finish/finish.c -- single-decree Paxos over waves that aggregate their answers.
 *
 * A *wave* is a message that goes out from the coordinator: each peer passes it on to its other
 * links. The answers return along the same paths, and each peer adds up those that it receives. A
 * ballot has two waves, ASK and then PROPOSE. A peer takes part in one wave at a time: the latest
 * one of the highest ballot that it has seen.
 *
 *   no wave --message of a higher wave--> asks its other links --all answered--> answers `parent`
 *      ^                                        |                                     |
 *      +----------- session to parent lost -----+                                     |
 *      +------------------------------------------------------------------------------+
 *
 * The coordinator of a ballot is the root of both waves. The root has no parent, and makes the
 * decision when all its links have answered.
 */
#include "peer/node/finish/finish.h"

#include "peer/node/finish/proposal.h"
#include "peer/node/timers.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LINKS_MAX = 256 /* Maximum number of sessions to which an ASK or PROPOSE is sent. */ };

/* The bits of a ballot's number from ATTEMPT_SHIFT on are the number of its attempt, so that
 * ballots of a later attempt are higher. The lower bits count the ballots of the attempt, up to
 * COUNT_MAX. A message with a greater count is a protocol violation, so numbers never overflow. */
enum { ATTEMPT_SHIFT = 32 };
#define COUNT_MAX (UINT64_C(1) << 31)

#define NOT_ASKED UINT64_MAX /* Value of finish.asked_rounds before the first ASK. */

/* Flags of a member in the list of members of a REPORT or an ACCEPTED message. */
enum {
    FLAG_WITHIN = 1,  /* REPORT only: the member reports its model as within the target. */
    FLAG_VOTES = 2,   /* The member has promised the ballot (ACCEPTED: accepted the proposal). */
    FLAG_OVERDUE = 4, /* The member still mixes, but should have ended (add_mixing()). */
    FLAG_ABSENT = 8,  /* The member has not answered the ASK or PROPOSE. This flag is never sent. */
    FLAG_STORES = 16  /* The member no longer mixes, but its model is not stored and frozen yet. */
};

/* The wave (ASK or PROPOSE message that all peers pass on) in which this peer takes part. */
struct wave
{
    bool root; /* True: this peer coordinates the ballot. */
    struct wire_ballot ballot;
    bool proposes; /* True: this is the second wave of the ballot (PROPOSE). */
    /* Link from which the wave came. Unused at the coordinator, the root of the wave. */
    uint32_t parent;
    int64_t begun_us; /* Node time at which the wave (ASK or PROPOSE) reached this peer. */
    /* Number of links that have not answered the wave (ASK or PROPOSE) yet. 0: the wave is
     * complete, or this peer takes part in none. */
    size_t n_pending;
    uint32_t pending[LINKS_MAX];

    /* Highest ballot that was promised, and highest ballot whose proposal was accepted, by this
     * peer or by peers whose answers to the wave have arrived. */
    struct wire_ballot promised, accepted;
    bool partial;                /* True: some answers are missing in the sums of this struct. */
    struct finish_voters voters; /* The longest list of voters among the answers to the wave. */
    uint32_t n_mixing; /* Number of members that still mix, by their answers to the ASK. */
    struct finish_evidence evidence; /* ASK: sum of the evidence in the answers. */
    /* Length of `members`, the list of the members that answered the wave, in bytes. */
    size_t n_members;
    uint8_t members[WIRE_FINISH_MEMBERS_MAX];
    size_t n_proposal;
    /* ASK: the accepted proposal of the highest ballot among the answers. PROPOSE: the proposal of
     * this ballot. */
    uint8_t proposal[WIRE_FINISH_PROPOSAL_MAX];
};

/* State of the acceptor: what the promise on the disk contains. */
struct acceptor
{
    /* The highest ballot that this peer has promised, and the ballot of the proposal that it
     * accepted last. Number 0: there was none. */
    struct wire_ballot promised, accepted;
    /* reported_hash: hash of the model in the last report by any process of this peer. 0: there was
     * no report. reported_earlier: `earlier` (struct finish) of the process that made this report:
     * that process could report the model only in ballots above reported_earlier. */
    uint64_t reported_hash;
    struct wire_ballot reported_earlier;
    /* The proposal that this peer accepted last, or the certificate, if it is decided. */
    size_t n_proposal;
    uint8_t proposal[WIRE_FINISH_PROPOSAL_MAX];
};

struct finish
{
    struct finish_owner owner;
    struct finish_view view;
    /* Number of the current attempt to end the run. All earlier attempts were aborted. */
    uint32_t attempt;
    bool frozen;       /* True: this peer's model is final and stored in the current attempt. */
    int64_t frozen_us; /* Node time at which this peer's model was frozen (finish_freeze()). */
    /* Evidence of this peer's model. own.n is 0: the model is not frozen, or not within the
     * target. */
    struct finish_evidence own;

    struct acceptor acceptor;
    /* Highest ballot in which an earlier process of this peer may have reported another model. A
     * proposal of this ballot or a lower one may be about that model. Number 0: there was no such
     * process. */
    struct wire_ballot earlier;
    struct finish_proposal certificate; /* certificate.n is 0: it is not decided. */
    /* True: the stored promise (vote of the finish protocol) could not be read, so this peer
     * neither votes nor coordinates. */
    bool mute;

    uint64_t top;     /* Highest number of a ballot that this peer has seen in this attempt. */
    uint64_t ballots; /* Number of ballots that this peer has coordinated. */
    int64_t next_us;  /* Earliest node time at which this peer begins a ballot. */
    struct wave wave;
    /* Rounds of the consensus phase that this peer had done when the first ASK of this attempt
     * arrived while the peer mixed (finish_view.mixes). NOT_ASKED: there was no such ASK. */
    uint64_t asked_rounds;

    /* Voters that this peer counts, at the last call of owner.voters(). */
    struct finish_voters own_voters;
    struct finish_proposal scratch; /* A decoded proposal, or one that this peer makes. */
};

static bool is_decided(const struct finish *f)
{
    return f->certificate.n > 0;
}

/* ---- ballots ---- */

static int compare_ballots(const struct wire_ballot *a, const struct wire_ballot *b)
{
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return a->number == 0 ? 0 : memcmp(a->id, b->id, WIRE_ID_BYTES);
}

static uint32_t attempt_of(const struct wire_ballot *b)
{
    return (uint32_t)(b->number >> ATTEMPT_SHIFT);
}

static uint64_t first_number(uint32_t attempt)
{
    return (uint64_t)attempt << ATTEMPT_SHIFT;
}

static bool is_ballot(const struct wire_ballot *b)
{
    uint64_t count = b->number - first_number(attempt_of(b));
    return attempt_of(b) < FINISH_ATTEMPTS && count > 0 && count <= COUNT_MAX;
}

/* Returns whether a proposal of `n` members may be made in a ballot. A proposal without members
 * aborts the attempt, and the last attempt cannot be aborted. */
static bool may_propose(const struct wire_ballot *b, uint32_t n)
{
    return n > 0 || attempt_of(b) + 1 < FINISH_ATTEMPTS;
}

static void raise_ballot(struct wire_ballot *a, const struct wire_ballot *b)
{
    if (compare_ballots(a, b) < 0)
        *a = *b;
}

static bool same_wave(const struct wave *w, const struct wire_ballot *b, bool proposes)
{
    return compare_ballots(&w->ballot, b) == 0 && w->proposes == proposes;
}

static bool later_wave(const struct wave *w, const struct wire_ballot *b, bool proposes)
{
    int order = compare_ballots(b, &w->ballot);
    return order > 0 || (order == 0 && proposes && !w->proposes);
}

/* ---- life ---- */

/* Checks what holds between two calls of this module. Conditions that a stored promise may violate
 * are not checked. O(1). */
static void finish_check(const struct finish *f)
{
    const struct wave *w = &f->wave;
    assert(f->attempt < FINISH_ATTEMPTS && f->top >> ATTEMPT_SHIFT == f->attempt);
    /* The next ballot of this peer has the number top + 1, so it is above all ballots that this
     * peer has promised. */
    assert(f->acceptor.promised.number <= f->top && w->ballot.number <= f->top);
    assert(f->own.n == 0 || (f->own.n == 1 && f->frozen));
    assert((f->acceptor.accepted.number > 0 || is_decided(f)) == (f->acceptor.n_proposal > 0));
    assert(w->n_pending == 0 || (!is_decided(f) && attempt_of(&w->ballot) == f->attempt));
    assert(w->n_members <= sizeof w->members && w->evidence.n <= w->n_members / WIRE_FINISH_ENTRY);
}

/* Stores the state of the acceptor durably. Returns false on failure. */
static bool keep_promise(struct finish *f)
{
    /* A promise that could not be read must not be replaced. */
    assert(!f->mute && f->acceptor.promised.number > 0);
    uint8_t bytes[FINISH_PROMISE_MAX];
    uint8_t *end =
        finish_put_ballot(finish_put_ballot(bytes, &f->acceptor.promised), &f->acceptor.accepted);
    end = finish_put_ballot(finish_put_number(end, f->acceptor.reported_hash, 8),
                            &f->acceptor.reported_earlier);
    *end++ = is_decided(f);
    memcpy(end, f->acceptor.proposal, f->acceptor.n_proposal);
    return f->owner.keep(f->owner.self, bytes, (size_t)(end - bytes) + f->acceptor.n_proposal);
}

/* Takes the decoded proposal `scratch`, whose bytes are `p`, as the certificate of the run. */
static void take_certificate(struct finish *f, struct bytes p)
{
    assert(!is_decided(f) && p.n <= sizeof f->acceptor.proposal && f->scratch.n > 0);
    f->certificate = f->scratch;
    memcpy(f->acceptor.proposal, p.p, f->acceptor.n_proposal = p.n);
    f->wave.n_pending = 0;
}

/* Decodes a stored promise into *a, the state of the acceptor, and *p, its proposal. *p is valid if
 * a->n_proposal > 0, and is the certificate if *decided is true. Returns false if the bytes are no
 * promise. The output must then not be used. */
static bool read_promise(struct bytes b, struct acceptor *a, struct finish_proposal *p,
                         bool *decided)
{
    if (b.n < FINISH_PROMISE_HEAD || b.n > FINISH_PROMISE_MAX)
        return false;
    const uint8_t *at = finish_get_ballot(finish_get_ballot(b.p, &a->promised), &a->accepted);
    a->reported_hash = finish_get_number(at, 8);
    at = finish_get_ballot(at + 8, &a->reported_earlier);
    if (*at > 1)
        return false;
    *decided = *at++ == 1;
    a->n_proposal = b.n - FINISH_PROMISE_HEAD;
    memcpy(a->proposal, at, a->n_proposal);
    bool accepts = a->accepted.number > 0;
    bool ballots =
        is_ballot(&a->promised)
        && (!accepts
            || (is_ballot(&a->accepted) && compare_ballots(&a->accepted, &a->promised) <= 0));
    if (!ballots || (accepts || *decided) != (a->n_proposal > 0))
        return false;
    if (a->n_proposal > 0 && !finish_decode(p, (struct bytes){a->proposal, a->n_proposal}))
        return false;
    if (*decided)
        return p->n > 0;
    return !accepts || may_propose(&a->accepted, p->n);
}

uint64_t finish_reported_hash(struct bytes promise)
{
    struct acceptor a;
    struct finish_proposal p;
    bool decided;
    return read_promise(promise, &a, &p, &decided) ? a.reported_hash : 0;
}

bool finish_promise_is_decided(struct bytes promise)
{
    struct acceptor a;
    struct finish_proposal p;
    bool decided;
    return read_promise(promise, &a, &p, &decided) && decided;
}

/* Continues with the state of the acceptor in a stored promise. Returns false if the bytes are no
 * promise. */
static bool restore_promise(struct finish *f, struct bytes b)
{
    struct acceptor a;
    bool decided;
    if (!read_promise(b, &a, &f->scratch, &decided))
        return false;
    f->acceptor = a;
    f->top = a.promised.number;
    f->attempt = attempt_of(&a.promised);
    if (decided)
        take_certificate(f, (struct bytes){a.proposal, a.n_proposal});
    return true;
}

struct finish *finish_open(const struct finish_owner *owner, struct bytes promise)
{
    struct finish *f = calloc(1, sizeof *f);
    if (f == NULL)
        return NULL;
    f->owner = *owner;
    f->asked_rounds = NOT_ASKED;
    f->mute = promise.n > 0 && !restore_promise(f, promise);
    f->earlier = f->mute ? (struct wire_ballot){.number = UINT64_MAX} : f->acceptor.promised;
    finish_check(f);
    return f;
}

void finish_close(struct finish *f)
{
    free(f);
}

void finish_freeze(struct finish *f, const struct finish_evidence *evidence, int64_t now_us)
{
    assert(!f->frozen || is_decided(f));
    assert(evidence == NULL || (evidence->n == 1 && evidence->hash != 0));
    f->frozen = true;
    f->frozen_us = now_us;
    if (evidence == NULL)
        return;
    f->own = *evidence;
    /* If an earlier process of this peer has reported the same model, bit for bit, this peer may
     * report it in the same ballots as that process: in all ballots above reported_earlier. The
     * model is the same if it was read from disk, or computed again from a checkpoint in lock
     * step. */
    if (finish_has_reported(f, evidence))
        f->earlier = f->acceptor.reported_earlier;
    finish_check(f);
}

const struct finish_proposal *finish_certificate(const struct finish *f)
{
    return is_decided(f) ? &f->certificate : NULL;
}

bool finish_covers(const struct finish *f)
{
    return is_decided(f) && f->own.n > 0
           && finish_status_of(&f->certificate, f->owner.id) == FINISH_WITHIN
           && compare_ballots(&f->certificate.origin, &f->earlier) > 0;
}

bool finish_has_reported(const struct finish *f, const struct finish_evidence *e)
{
    return !f->mute && f->acceptor.reported_hash == e->hash;
}

uint32_t finish_attempt(const struct finish *f)
{
    return f->attempt;
}

bool finish_has_promised(const struct finish *f)
{
    return f->mute || f->acceptor.promised.number > 0;
}

bool finish_is_mute(const struct finish *f)
{
    return f->mute;
}

int64_t finish_heard_us(const struct finish *f)
{
    return f->wave.begun_us > f->frozen_us ? f->wave.begun_us : f->frozen_us;
}

uint64_t finish_ballots(const struct finish *f)
{
    return f->ballots;
}

/* ---- the decision ---- */

/* Sends the last decision over `link`, if there is one: the certificate, or a message without a
 * proposal, which says that the attempt before the current one was aborted. */
static void send_decision(struct finish *f, uint32_t link)
{
    struct wire_finish m = {.word = WIRE_FINISH_DECIDED};
    if (is_decided(f)) {
        m.proposal = (struct bytes){f->acceptor.proposal, f->acceptor.n_proposal};
    } else if (f->attempt > 0) {
        m.ballot.number = first_number(f->attempt - 1);
        memcpy(m.ballot.id, f->owner.id, WIRE_ID_BYTES);
    } else {
        return;
    }
    f->owner.send(f->owner.self, link, &m);
}

/* Begins the next attempt to end the run, because the previous attempt was aborted. This peer's
 * model is no longer frozen. The promise not to accept lower ballots stays valid, because all
 * ballots of the new attempt are higher. */
static void enter(struct finish *f, uint32_t attempt)
{
    assert(!is_decided(f) && attempt > f->attempt && attempt < FINISH_ATTEMPTS);
    f->attempt = attempt;
    f->frozen = false;
    f->own = (struct finish_evidence){.n = 0};
    f->wave.n_pending = 0;
    f->asked_rounds = NOT_ASKED;
    f->top = first_number(attempt);
    f->next_us = 0;
}

/* Passes the decision on to all links except `from`. */
static void pass_on(struct finish *f, const uint32_t *from)
{
    uint32_t link[LINKS_MAX];
    size_t n_links = f->owner.links(f->owner.self, link, LINKS_MAX);
    for (size_t i = 0; i < n_links; i++)
        if (from == NULL || link[i] != *from)
            send_decision(f, link[i]);
}

/* Called when the attempt has a decision. Stores the certificate or, if the decision is to abort,
 * begins the next attempt. Passes the decision on to all links except `from`. */
static void decide(struct finish *f, const uint8_t *p, size_t n, const uint32_t *from)
{
    assert(!is_decided(f));
    if (!finish_decode(&f->scratch, (struct bytes){p, n}))
        return;
    if (f->scratch.n == 0) {
        enter(f, f->attempt + 1);
    } else {
        take_certificate(f, (struct bytes){p, n});
        /* The certificate is stored, because a later process of this peer may need it to end its
         * run after the other peers have exited. */
        if (f->acceptor.promised.number > 0 && !f->mute)
            (void)keep_promise(f);
    }
    pass_on(f, from);
}

/* ---- the acceptor ---- */

/* Returns whether this peer may report its model in `ballot`, and prepares the report. `earlier` is
 * the highest ballot in which an earlier process of this peer may have reported another model. In
 * ballots up to `earlier` the report is therefore not allowed. */
static bool prepare_report(struct finish *f, const struct wire_ballot *ballot)
{
    if (f->own.n == 0 || compare_ballots(ballot, &f->earlier) <= 0)
        return false;
    f->acceptor.reported_hash = f->own.hash;
    f->acceptor.reported_earlier = f->earlier;
    return true;
}

/* If this peer still mixes, counts it as mixing in its answer to an ASK message. Returns
 * FLAG_OVERDUE if this peer should have ended by now: all neighbours have ended, or it has mixed
 * for more rounds since its first ASK than a run without faults needs. Otherwise returns 0. The
 * limit counts rounds, because the duration of a round varies. */
static uint8_t add_mixing(struct finish *f)
{
    const struct finish_view *v = &f->view;
    if (f->frozen || !v->mixes)
        return 0;
    f->wave.n_mixing = 1;
    if (f->asked_rounds == NOT_ASKED)
        f->asked_rounds = v->n_rounds;
    assert(v->n_rounds >= f->asked_rounds);
    bool late = v->n_rounds - f->asked_rounds > v->max_rounds;
    return v->stranded || late ? FLAG_OVERDUE : 0;
}

/* Adds this peer to its answer to the wave. Returns whether this peer has promised the ballot (ASK)
 * or accepted the proposal (PROPOSE). If the promise cannot be stored, the acceptor does not
 * change. A peer that would have reported its model is then left out of its own answer, so that the
 * coordinator waits for it as for a member that has not answered (FINISH_ANSWERS_US). */
static bool add_self(struct finish *f, const struct wire_finish *m)
{
    struct wave *w = &f->wave;
    uint8_t flags = 0;
    assert(attempt_of(&w->ballot) == f->attempt);
    bool reports = false;
    if (!f->mute && compare_ballots(&w->ballot, &f->acceptor.promised) >= 0) {
        const struct acceptor before = f->acceptor;
        f->acceptor.promised = w->ballot;
        /* The last accepted proposal is of an aborted attempt, so it does not count any more. */
        if (attempt_of(&f->acceptor.accepted) != f->attempt) {
            f->acceptor.accepted = (struct wire_ballot){.number = 0};
            f->acceptor.n_proposal = 0;
        }
        if (w->proposes) {
            f->acceptor.accepted = w->ballot;
            f->acceptor.n_proposal = m->proposal.n;
            memcpy(f->acceptor.proposal, m->proposal.p, m->proposal.n);
        } else {
            reports = prepare_report(f, &w->ballot);
        }
        if (keep_promise(f))
            flags = FLAG_VOTES;
        else
            f->acceptor = before;
    }
    bool votes = (flags & FLAG_VOTES) != 0;
    w->promised = f->acceptor.promised;
    w->n_members = 0;
    if (reports && !votes)
        return false;
    /* A later process must know that the model was reported, so the promise is stored first. */
    if (reports && votes) {
        flags |= FLAG_WITHIN;
        w->evidence = f->own;
    }
    if (!w->proposes)
        flags |= add_mixing(f) | (f->frozen || f->view.mixes ? 0 : FLAG_STORES);
    /* A peer that has not promised the ballot reports no accepted proposal. Its last one may be of
     * an aborted attempt, and other peers would reject the answer. */
    if (!w->proposes && votes) {
        w->accepted = f->acceptor.accepted;
        w->n_proposal = f->acceptor.n_proposal;
        memcpy(w->proposal, f->acceptor.proposal, f->acceptor.n_proposal);
    }
    finish_put_entry(w->members, finish_key(f->owner.id), flags);
    w->n_members = WIRE_FINISH_ENTRY;
    return votes;
}

/* ---- waves ---- */

/* Orders keys of members, for qsort(). */
static int by_key(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Returns whether a list with n_all voters, n of them by key, is longer than `v`. */
static bool is_longer(uint32_t n_all, size_t n, const struct finish_voters *v)
{
    return n_all > v->n_all || (n_all == v->n_all && n > v->n);
}

/* Returns the list of voters that applies to the wave: the longest one among the list of this peer
 * and those in the answers that have arrived. The list of a process that has just joined may lack
 * initial members that are gone, and members that vote instead of them. Lists without initial
 * members apply only if no peer knows an initial member. */
static const struct finish_voters *voters_of(struct finish *f)
{
    struct finish_voters *own = &f->own_voters;
    f->owner.voters(f->owner.self, own);
    assert(own->n <= own->n_all && own->n <= WIRE_MEMBERS_MAX);
    qsort(own->key, own->n, sizeof own->key[0], by_key);
    const struct finish_voters *heard = &f->wave.voters;
    bool applies = own->initial ? !is_longer(heard->n_all, heard->n, own) : heard->n_all == 0;
    return applies ? own : heard;
}

/* Fills *m with this peer's answer to the wave (ASK or PROPOSE): the sum of the answers that it
 * received, and its own. mean, voters: buffers for fields of *m. */
static void describe_answer(struct finish *f, struct wire_finish *m, uint8_t mean[4 * SKETCH_K],
                            uint8_t voters[WIRE_FINISH_VOTERS_MAX])
{
    const struct wave *w = &f->wave;
    const struct finish_voters *v = voters_of(f);
    uint32_t n = v->initial ? v->n : 0;
    for (uint32_t i = 0; i < n; i++)
        finish_put_key(voters + (size_t)WIRE_FINISH_KEY * i, v->key[i]);
    *m = (struct wire_finish){.word = w->proposes ? WIRE_FINISH_ACCEPTED : WIRE_FINISH_REPORT,
                              .ballot = w->ballot,
                              .promised = w->promised,
                              .partial = w->partial,
                              .n_voters = v->initial ? v->n_all : 0,
                              .voters = {voters, (size_t)WIRE_FINISH_KEY * n},
                              .members = {w->members, w->n_members}};
    if (w->proposes)
        return;
    m->accepted = w->accepted;
    m->n_mixing = w->n_mixing;
    m->n_models = w->evidence.n;
    m->proposal = (struct bytes){w->proposal, w->n_proposal};
    if (w->evidence.n == 0)
        return;
    m->dist2 = (float)w->evidence.dist2;
    m->norm2 = (float)w->evidence.norm2;
    m->model_hash = w->evidence.hash;
    for (size_t i = 0; i < SKETCH_K; i++)
        finish_put_float(mean + 4 * i, w->evidence.mean[i]);
    m->mean = (struct bytes){mean, (size_t)4 * SKETCH_K};
}

static void finish_root(struct finish *f);

/* Called when all links have answered the wave (ASK or PROPOSE). Answers the parent link or, at the
 * coordinator, continues the ballot. */
static void complete_wave(struct finish *f)
{
    struct wire_finish m;
    uint8_t mean[4 * SKETCH_K], voters[WIRE_FINISH_VOTERS_MAX];
    assert(f->wave.n_pending == 0);
    if (f->wave.root) {
        finish_root(f);
        return;
    }
    describe_answer(f, &m, mean, voters);
    f->owner.send(f->owner.self, f->wave.parent, &m);
}

/* Delays the next ballot of this peer, so that another coordinator can finish its ballot. Otherwise
 * two coordinators could interrupt each other endlessly. */
static void stand_back(struct finish *f)
{
    f->next_us = f->view.now_us + (1 + (int64_t)f->view.rank) * FINISH_TAKEOVER_US;
}

/* Begins a wave (ASK or PROPOSE) at this peer: adds this peer's answer, and passes the message on.
 * parent NULL: this peer is the coordinator. */
static void begin_wave(struct finish *f, const struct wire_finish *m, const uint32_t *parent)
{
    struct wave *w = &f->wave;
    uint32_t link[LINKS_MAX];
    struct wire_ballot earlier_ballot = w->ballot;
    bool proposed_earlier = w->proposes;
    assert(!is_decided(f) && later_wave(w, &m->ballot, m->word == WIRE_FINISH_PROPOSE));
    w->root = parent == NULL;
    w->parent = parent != NULL ? *parent : 0;
    w->ballot = m->ballot;
    w->proposes = m->word == WIRE_FINISH_PROPOSE;
    w->begun_us = f->view.now_us;
    w->partial = false;
    w->voters.n = w->voters.n_all = 0;
    w->n_mixing = 0;
    w->evidence.n = 0;
    w->accepted = (struct wire_ballot){0};
    w->n_proposal = w->proposes ? m->proposal.n : 0;
    if (w->proposes)
        memcpy(w->proposal, m->proposal.p, m->proposal.n);
    w->n_pending = 0;
    f->top = m->ballot.number > f->top ? m->ballot.number : f->top;
    if (!w->root)
        stand_back(f);
    /* A coordinator stores its own promise before it sends anything, so its next process cannot use
     * the same ballot number again. If the promise cannot be stored, this peer does not begin the
     * ballot, but still answers the ballots of other coordinators. */
    if (!add_self(f, m) && w->root) {
        w->ballot = earlier_ballot;
        w->proposes = proposed_earlier;
        f->next_us = f->view.now_us + FINISH_RETRY_US;
        return;
    }
    size_t n = f->owner.links(f->owner.self, link, LINKS_MAX);
    assert(n <= LINKS_MAX);
    for (size_t i = 0; i < n; i++)
        if (w->root || link[i] != w->parent)
            w->pending[w->n_pending++] = link[i];
    for (size_t i = 0; i < w->n_pending; i++)
        f->owner.send(f->owner.self, w->pending[i], m);
    if (w->n_pending == 0)
        complete_wave(f);
}

/* Removes `link` from the links that have not answered the wave (ASK or PROPOSE). Returns false if
 * the link is not one of them. */
static bool take_pending(struct wave *w, uint32_t link)
{
    for (size_t i = 0; i < w->n_pending; i++)
        if (w->pending[i] == link) {
            w->pending[i] = w->pending[--w->n_pending];
            return true;
        }
    return false;
}

/* Returns the evidence in a REPORT. If the REPORT has no models, n is 0. */
static struct finish_evidence reported_evidence(const struct wire_finish *m)
{
    struct finish_evidence e = {.n = m->n_models};
    if (m->n_models == 0)
        return e;
    e.dist2 = (double)m->dist2;
    e.norm2 = (double)m->norm2;
    e.hash = m->model_hash;
    assert(m->mean.n == (size_t)4 * SKETCH_K);
    for (size_t i = 0; i < SKETCH_K; i++)
        e.mean[i] = finish_get_float(m->mean.p + 4 * i);
    return e;
}

/* Returns whether the fields of a REPORT agree with each other. n_proposed: number of members of
 * the accepted proposal in the REPORT. */
static bool valid_report(const struct wire_finish *m, uint32_t n_proposed)
{
    bool sketch = m->mean.n == (size_t)4 * SKETCH_K;
    bool proposal = m->accepted.number == 0
                        ? m->proposal.n == 0
                        : m->proposal.n > 0 && is_ballot(&m->accepted)
                              && attempt_of(&m->accepted) == attempt_of(&m->ballot)
                              && may_propose(&m->accepted, n_proposed);
    size_t n_members = m->members.n / WIRE_FINISH_ENTRY;
    if (!proposal || !(m->n_models > 0 ? sketch : m->mean.n == 0) || m->n_models > n_members
        || m->n_mixing > n_members)
        return false;
    const struct finish_evidence e = reported_evidence(m);
    return finish_evidence_is_valid(&e);
}

/* Returns whether the voters that an answer lists are in ascending order without duplicates, and
 * are not more than the number of voters that the answer states (n_voters). */
static bool valid_voters(const struct wire_finish *m)
{
    size_t n = m->voters.n / WIRE_FINISH_KEY;
    for (size_t i = 1; i < n; i++)
        if (memcmp(m->voters.p + WIRE_FINISH_KEY * (i - 1), m->voters.p + WIRE_FINISH_KEY * i,
                   WIRE_FINISH_KEY)
            >= 0)
            return false;
    return n <= m->n_voters;
}

static void take_voters(struct wave *w, const struct wire_finish *m)
{
    if (!is_longer(m->n_voters, m->voters.n / WIRE_FINISH_KEY, &w->voters))
        return;
    w->voters.initial = true;
    w->voters.n_all = m->n_voters;
    w->voters.n = (uint32_t)(m->voters.n / WIRE_FINISH_KEY);
    for (uint32_t i = 0; i < w->voters.n; i++)
        w->voters.key[i] = finish_key(m->voters.p + (size_t)WIRE_FINISH_KEY * i);
}

/* Adds the answer of a link to the sum of the answers to the wave. If the sum has no room for the
 * answer's list of members, marks the sum as partial and drops the rest of the answer. */
static void add_answer(struct finish *f, const struct wire_finish *m)
{
    struct wave *w = &f->wave;
    raise_ballot(&w->promised, &m->promised);
    w->partial |= m->partial;
    take_voters(w, m);
    if (w->n_members + m->members.n > sizeof w->members) {
        w->partial = true;
        return;
    }
    if (m->members.n > 0)
        memcpy(w->members + w->n_members, m->members.p, m->members.n);
    w->n_members += m->members.n;
    if (w->proposes)
        return;
    w->n_mixing += m->n_mixing;
    const struct finish_evidence e = reported_evidence(m);
    finish_evidence_add(&w->evidence, &e);
    if (compare_ballots(&m->accepted, &w->accepted) > 0) {
        w->accepted = m->accepted;
        w->n_proposal = m->proposal.n;
        memcpy(w->proposal, m->proposal.p, m->proposal.n);
    }
}

static bool receive_answer(struct finish *f, uint32_t link, const struct wire_finish *m)
{
    struct wave *w = &f->wave;
    bool proposes = m->word == WIRE_FINISH_ACCEPTED;
    if (!valid_voters(m) || (!proposes && !valid_report(m, m->proposal.n > 0 ? f->scratch.n : 0)))
        return false;
    if (!same_wave(w, &m->ballot, proposes) || !take_pending(w, link))
        return true;
    add_answer(f, m);
    if (w->n_pending == 0)
        complete_wave(f);
    return true;
}

/* Handles an ASK or a PROPOSE, a *wave* that may arrive over several links. When it arrives first,
 * this peer takes part, and answers `link` after all its other links have answered. If it arrives
 * again, or this peer takes part in a later wave, this peer answers at once with the highest ballot
 * that it knows. A wave of an aborted attempt is answered with the decision to abort. */
static void receive_wave(struct finish *f, uint32_t link, const struct wire_finish *m)
{
    bool proposes = m->word == WIRE_FINISH_PROPOSE;
    if (attempt_of(&m->ballot) < f->attempt) {
        send_decision(f, link);
        return;
    }
    /* A coordinator begins an attempt only after all earlier attempts were aborted. */
    if (attempt_of(&m->ballot) > f->attempt)
        enter(f, attempt_of(&m->ballot));
    if (later_wave(&f->wave, &m->ballot, proposes)) {
        begin_wave(f, m, &link);
        return;
    }
    struct wire_finish answer = {.word = proposes ? WIRE_FINISH_ACCEPTED : WIRE_FINISH_REPORT,
                                 .ballot = m->ballot,
                                 .promised = f->acceptor.promised};
    raise_ballot(&answer.promised, &f->wave.ballot);
    f->owner.send(f->owner.self, link, &answer);
}

static bool receive(struct finish *f, uint32_t link, const struct wire_finish *m)
{
    bool wave = m->word == WIRE_FINISH_ASK || m->word == WIRE_FINISH_PROPOSE;
    bool aborts = m->word == WIRE_FINISH_DECIDED && m->proposal.n == 0;
    bool carries = m->word == WIRE_FINISH_PROPOSE;
    if (wave && !is_ballot(&m->ballot))
        return false;
    if (aborts && attempt_of(&m->ballot) >= FINISH_ATTEMPTS - 1)
        return false;
    if ((carries || m->proposal.n > 0) && !finish_decode(&f->scratch, m->proposal))
        return false;
    if (carries && !may_propose(&m->ballot, f->scratch.n))
        return false;
    if (m->word == WIRE_FINISH_DECIDED && !aborts && f->scratch.n == 0)
        return false;
    if (is_decided(f)) {
        if (wave)
            send_decision(f, link);
        return true;
    }
    switch (m->word) {
    case WIRE_FINISH_ASK:
    case WIRE_FINISH_PROPOSE:
        receive_wave(f, link, m);
        break;
    case WIRE_FINISH_REPORT:
    case WIRE_FINISH_ACCEPTED:
        return receive_answer(f, link, m);
    case WIRE_FINISH_DECIDED:
        if (aborts) {
            if (attempt_of(&m->ballot) >= f->attempt) {
                enter(f, attempt_of(&m->ballot) + 1);
                pass_on(f, &link);
            }
            break;
        }
        decide(f, m->proposal.p, m->proposal.n, &link);
        break;
    case WIRE_FINISH_END:
        return false;
    }
    return true;
}

bool finish_receive(struct finish *f, uint32_t link, const struct wire_finish *m)
{
    bool valid = receive(f, link, m);
    finish_check(f);
    return valid;
}

void finish_link_up(struct finish *f, uint32_t link)
{
    send_decision(f, link);
}

void finish_link_down(struct finish *f, uint32_t link)
{
    struct wave *w = &f->wave;
    if (!w->root && w->parent == link) {
        w->n_pending = 0;
        return;
    }
    if (!take_pending(w, link))
        return;
    w->partial = true;
    if (w->n_pending == 0)
        complete_wave(f);
    finish_check(f);
}

/* ---- the coordinator ---- */

/* Returns the flags of the member with this key in the summed answers. FLAG_ABSENT: the member has
 * not answered. */
static uint8_t flags_of(const struct wave *w, uint64_t key)
{
    struct bytes list = {w->members, w->n_members};
    for (uint32_t i = 0; i < w->n_members / WIRE_FINISH_ENTRY; i++) {
        uint8_t flags;
        if (finish_entry(list, i, &flags) == key)
            return flags;
    }
    return FLAG_ABSENT;
}

/* Orders members by key, for qsort(). */
static int by_member_key(const void *a, const void *b)
{
    return by_key(&((const struct finish_member *)a)->key, &((const struct finish_member *)b)->key);
}

/* Returns whether a quorum of voters has all bits of `flags` in the answers to the wave. Of two
 * equal halves of the voters, only the half with the initial member `first` is a quorum. The half
 * is known to have it only if the list contains all voters, and begins with it: the smallest voter
 * may be a member that votes instead of another one, and other peers may not know this member. */
static bool is_quorum(struct finish *f, uint8_t flags)
{
    const struct finish_voters *v = voters_of(f), *own = &f->own_voters;
    uint64_t first = own->initial ? own->first : v->key[0];
    uint32_t n = 0;
    bool has_first = false;
    for (uint32_t i = 0; i < v->n; i++) {
        uint8_t has = flags_of(&f->wave, v->key[i]);
        bool counts = (has & FLAG_ABSENT) == 0 && (has & flags) == flags;
        has_first |= counts && v->key[i] == first && i == 0 && v->n == v->n_all;
        n += counts;
    }
    return f->owner.quorum(f->owner.self, n, v->n_all, has_first);
}

/* Fills *p with the members of the run. Members with FLAG_WITHIN get the status FINISH_WITHIN. */
static void list_members(struct finish *f, struct finish_proposal *p)
{
    f->owner.members(f->owner.self, p);
    qsort(p->member, p->n, sizeof p->member[0], by_member_key);
    for (uint32_t i = 0; i < p->n; i++) {
        struct finish_member *m = &p->member[i];
        uint8_t has = flags_of(&f->wave, m->key);
        if ((has & FLAG_WITHIN) != 0)
            m->status = FINISH_WITHIN;
        /* A member that has answered lives, although the member table does not show it yet. */
        else if (m->status == FINISH_DEAD && (has & FLAG_ABSENT) == 0)
            m->status = (has & FLAG_STORES) != 0 ? FINISH_OUTSIDE : FINISH_MIXING;
    }
}

static void begin_ballot(struct finish *f)
{
    struct wire_finish m = {.word = WIRE_FINISH_ASK, .ballot.number = f->top + 1};
    assert(attempt_of(&m.ballot) == f->attempt);
    memcpy(m.ballot.id, f->owner.id, WIRE_ID_BYTES);
    f->ballots++;
    begin_wave(f, &m, NULL);
}

/* Begins the second wave of the ballot (PROPOSE) with the proposal p[0..n). p may point into
 * f->wave, which is overwritten, so the bytes are copied first. */
static void propose(struct finish *f, const uint8_t *p, size_t n)
{
    uint8_t copy[WIRE_FINISH_PROPOSAL_MAX];
    memcpy(copy, p, n);
    struct wire_finish m = {
        .word = WIRE_FINISH_PROPOSE, .ballot = f->wave.ballot, .proposal = {copy, n}};
    begin_wave(f, &m, NULL);
}

/* Returns whether any member in *p has the status FINISH_OUTSIDE and has one of these flags in the
 * answers to the wave. */
static bool any_outside(const struct wave *w, const struct finish_proposal *p, uint8_t flags)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (p->member[i].status == FINISH_OUTSIDE && (flags_of(w, p->member[i].key) & flags) != 0)
            return true;
    return false;
}

/* Returns whether members still mix, and all of them are overdue. A slow member is not overdue,
 * because add_mixing() counts rounds: one round may take minutes. */
static bool all_overdue(const struct wave *w)
{
    struct bytes list = {w->members, w->n_members};
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->n_members / WIRE_FINISH_ENTRY; i++) {
        uint8_t flags;
        finish_entry(list, i, &flags);
        n += (flags & FLAG_OVERDUE) != 0;
    }
    return n > 0 && n == w->n_mixing;
}

/* Returns whether it is too early for a certificate, so that the coordinator asks again. The
 * coordinator waits for at most patience_us if a member still mixes, has not ended its run, or has
 * answered before its model was frozen: the certificate would not cover that model. The wait for
 * missing answers is at most FINISH_ANSWERS_US. A session may be lost briefly, but a member that
 * ended outside the target distance exits at once, so its answer may never arrive. */
static bool awaits_members(const struct finish *f, const struct finish_proposal *p)
{
    const struct wave *w = &f->wave;
    int64_t waited_us = f->view.now_us - f->frozen_us;
    bool lacks = w->partial || any_outside(w, p, FLAG_ABSENT);
    return waited_us <= f->view.patience_us
           && (w->n_mixing > 0 || f->view.n_unfinished > 0 || any_outside(w, p, FLAG_STORES)
               || (lacks && waited_us <= FINISH_ANSWERS_US));
}

/* Called at the coordinator when all answers to an ASK have arrived. Proposes what the answers
 * allow by the table in README.md. If they allow nothing, the ballot ends without a proposal. */
static void end_ask(struct finish *f)
{
    struct wave *w = &f->wave;
    struct finish_proposal *p = &f->scratch;
    uint8_t bytes[WIRE_FINISH_PROPOSAL_MAX];
    bool promises = is_quorum(f, FLAG_VOTES);
    if (promises && w->accepted.number > 0) {
        propose(f, w->proposal, w->n_proposal);
        return;
    }
    if (!promises)
        return;
    list_members(f, p);
    bool within = is_quorum(f, FLAG_WITHIN) && w->evidence.n > 0;
    bool certifies = within && !awaits_members(f, p), overdue = all_overdue(w);
    p->distance = finish_evidence_distance(&w->evidence, &p->mean_norm);
    p->origin = w->ballot;
    assert(p->distance >= 0 && p->mean_norm >= 0); /* Else no peer could decode the proposal. */
    bool apart = certifies && isfinite(p->distance) && p->distance > f->view.target;
    if ((apart || overdue) && may_propose(&w->ballot, 0))
        p->n = 0;
    else if (!certifies)
        return;
    /* A member that had finished and does not answer was killed or cut off. Nothing is known about
     * the distance of its model. */
    for (uint32_t i = 0; i < p->n; i++)
        if (p->member[i].status == FINISH_OUTSIDE
            && (flags_of(w, p->member[i].key) & FLAG_ABSENT) != 0)
            p->member[i].status = FINISH_DEAD;
    propose(f, bytes, finish_encode(bytes, p));
}

/* Called at the coordinator when all answers to its wave have arrived. Continues with the next
 * wave, decides, or lets a higher ballot go first. */
static void finish_root(struct finish *f)
{
    struct wave *w = &f->wave;
    assert(f->frozen && f->own.n > 0 && !f->mute && !is_decided(f));
    assert(f->ballots > 0);
    /* The time until the next ballot doubles with each ballot, at most three times. */
    f->next_us = f->view.now_us + (FINISH_RETRY_US << (f->ballots < 4 ? f->ballots - 1 : 3));
    if (w->promised.number > f->top && is_ballot(&w->promised)
        && attempt_of(&w->promised) == f->attempt)
        f->top = w->promised.number;
    if (compare_ballots(&w->promised, &w->ballot) > 0)
        stand_back(f);
    else if (!w->proposes)
        end_ask(f);
    else if (is_quorum(f, FLAG_VOTES))
        decide(f, w->proposal, w->n_proposal, NULL);
}

/* Returns the time after which this peer gives up a wave (ASK or PROPOSE) that not all links have
 * answered. The time doubles with each ballot of this peer, because a large or slow network needs
 * more time. */
static int64_t wave_limit_us(const struct finish *f)
{
    return FINISH_WAVE_US << (f->ballots < 4 ? f->ballots : 4);
}

/* Returns the earliest node time at which this peer may coordinate a ballot. While members still
 * mix, the only possible new proposal is an abort, and the earliest time is FINISH_MIXING_US after
 * the freeze of this peer's model. The last attempt cannot be aborted, so this time is then
 * patience_us after the freeze. */
static int64_t due_us(const struct finish *f)
{
    int64_t patience_us = f->view.patience_us;
    if (f->attempt + 1 < FINISH_ATTEMPTS && patience_us > FINISH_MIXING_US)
        patience_us = FINISH_MIXING_US;
    int64_t us = f->frozen_us + (int64_t)f->view.rank * FINISH_TAKEOVER_US;
    if (f->view.n_unfinished > 0 && us < f->frozen_us + patience_us)
        us = f->frozen_us + patience_us;
    return us > f->next_us ? us : f->next_us;
}

int64_t finish_update(struct finish *f, const struct finish_view *v)
{
    assert(v->now_us >= f->view.now_us);
    f->view = *v;
    /* If the promise cannot be read, an earlier process may have used the same ballot numbers. */
    if (is_decided(f) || f->mute || !f->frozen || f->own.n == 0)
        return INT64_MAX;
    /* No higher ballot number is left in this attempt, because a Byzantine member has used the
     * highest one. Other peers would refuse a higher number as a protocol violation. */
    if (f->top == first_number(f->attempt) + COUNT_MAX)
        return INT64_MAX;
    if (f->wave.n_pending > 0 && v->now_us - f->wave.begun_us < wave_limit_us(f))
        return f->wave.begun_us + wave_limit_us(f);
    f->wave.n_pending = 0;
    if (v->now_us < due_us(f))
        return due_us(f);
    begin_ballot(f);
    finish_check(f);
    return is_decided(f) ? INT64_MAX : v->now_us + FINISH_RETRY_US;
}
