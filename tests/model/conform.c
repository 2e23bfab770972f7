/* tests/model/conform.c -- replays the steps of the finish protocol on the state of the Promela
 * model finish.pml. The names in capitals are steps of the model.
 *
 *   step of the program                         step of the model
 *   ------------------------------------------- -------------------------------------------
 *   a promise is stored: an own ballot          BEGIN
 *   a promise is stored: a ballot of a peer     ANSWER
 *   a process cannot read its promise           FORGET, and the peer may not vote
 *   an own proposal is stored as accepted       PROPOSE (adopt or invent), then ACCEPT
 *   a proposal of a peer is stored as accepted  ACCEPT
 *   a REPORT says "within" of its sender        ANSWER: add(models[b], i)
 *   the node has a certificate                  COUNT at the coordinator, else END
 *   a process starts with a stored promise      RESUME
 *   the attempt of the node grows               COUNT of an abort at the coordinator, else ENTER
 *   the peer's own record says LEFT             LEAVE
 *
 * A promise is the stored state of a voter: the highest ballot that it promised, and the proposal
 * that it accepted. "Within" means that the model of a peer is within the target of the consensus
 * distance. A node stores its promise before it sends a message about the promise, so the order of
 * the stored promises is the order of the steps. A message may state only what the peers that it
 * describes have done before. The coordinator of a ballot decides by the answers that it has
 * received, so the checker also records which answers have arrived.
 */
#include "conform.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ACCEPTORS_MAX = 256, PROCESSES_MAX = 32, TEXT_MAX = 200 };
/* Flags of a member in a REPORT or ACCEPTED message (peer/node/finish/finish.c). */
enum { WITHIN = 1, VOTES = 2 };

const char *const conform_name[CONFORM_STEPS] = {
    [CONFORM_BEGIN] = "BEGIN",   [CONFORM_ANSWER] = "ANSWER", [CONFORM_REPORT] = "REPORT",
    [CONFORM_ADOPT] = "ADOPT",   [CONFORM_INVENT] = "INVENT", [CONFORM_ACCEPT] = "ACCEPT",
    [CONFORM_COUNT] = "COUNT",   [CONFORM_END] = "END",       [CONFORM_FORGET] = "FORGET",
    [CONFORM_RESUME] = "RESUME", [CONFORM_LEAVE] = "LEAVE",   [CONFORM_ABORT] = "ABORT",
    [CONFORM_ENTER] = "ENTER"};

enum rule {
    BEGIN_HIGHER,
    BEGIN_NEW,
    BEGIN_FROZEN,
    BEGIN_FIRST,
    ANSWER_PROMISE,
    ANSWER_ASKED,
    ANSWER_STORED,
    ANSWER_WITHIN,
    ANSWER_EARLIER,
    ANSWER_BEST,
    ANSWER_SUM,
    PROPOSE_PROCESS,
    PROPOSE_ONCE,
    PROPOSE_QUORUM,
    ADOPT_BEST,
    INVENT_QUORUM,
    INVENT_MODELS,
    INVENT_ORIGIN,
    INVENT_ABORT,
    ACCEPT_PROMISE,
    ACCEPT_PROPOSED,
    ACCEPT_STORED,
    COUNT_QUORUM,
    END_DECIDED,
    DECIDED_SAME,
    ENTER_ABORTED,
    IN_ATTEMPT,
    MUTE_VOTES,
    GONE_VOTES,
    ENDED_STEPS,
    RESUME_PROMISE,
    LEAVE_PROMISED,
    AGREEMENT,
    FROZEN_MODEL,
    STORED_FORM,
    RULES
};

/* The rules that are checked: step and guard of finish.pml, and a text that says what the program
 * must do. */
static const struct
{
    const char *step, *guard, *text;
} rule[RULES] = {
    [BEGIN_HIGHER] = {"BEGIN", "rank(b) > promised[owner(b)]",
                      "a coordinator begins a ballot above all ballots that it has promised"},
    [BEGIN_NEW] = {"BEGIN", "stage[b] == NONE", "a ballot begins once"},
    [BEGIN_FROZEN] = {"BEGIN", "has(frozen, owner(b))", "the model of a coordinator is frozen"},
    [BEGIN_FIRST] = {"BEGIN", "stage[b] = ASKING", "an ASK is sent after its ballot has begun"},
    [ANSWER_PROMISE] = {"ANSWER", "may_promise(i, b)",
                        "a voter promises no ballot below its promise"},
    [ANSWER_ASKED] = {"ANSWER", "stage[b] == ASKING", "a voter promises a ballot that has begun"},
    [ANSWER_STORED] = {"ANSWER", "promised[i] = rank(b)",
                       "a voter stores its promise before it sends it"},
    [ANSWER_WITHIN] =
        {"ANSWER", "has(within, i)",
         "a model that is reported as within the target is frozen and within the target"},
    [ANSWER_EARLIER] =
        {"ANSWER", "may_report_model(i, b)",
         "a peer reports its model only in ballots that no earlier process of it answered"},
    [ANSWER_BEST] = {"ANSWER", "best[b] = taken[i]",
                     "a REPORT has the highest proposal that its voters have accepted"},
    [ANSWER_SUM] = {"ANSWER", "add(promises[b], i)",
                    "a REPORT repeats exactly what other peers have reported"},
    [PROPOSE_PROCESS] = {"PROPOSE", "stage[b] == ASKING",
                         "the process that has begun a ballot makes its proposal"},
    [PROPOSE_ONCE] = {"PROPOSE", "stage[b] = PROPOSED", "a ballot has one proposal"},
    [PROPOSE_QUORUM] = {"PROPOSE", "quorum(promises[b])",
                        "a coordinator has the promises of a quorum"},
    [ADOPT_BEST] = {"PROPOSE", "source[b] = source[best[b]]",
                    "a coordinator proposes the highest accepted proposal"},
    [INVENT_QUORUM] = {"PROPOSE", "quorum(members_of(models[b]))",
                       "a new certificate lists a quorum as within the target"},
    [INVENT_MODELS] =
        {"PROPOSE", "proposal[b] = models[b]",
         "a new proposal lists as within the target the members that have reported it"},
    [INVENT_ORIGIN] = {"PROPOSE", "source[b] = b",
                       "a new proposal names the ballot in which it was made"},
    [INVENT_ABORT] = {"PROPOSE", "!second(b)", "the last attempt does not abort"},
    [ACCEPT_PROMISE] = {"ACCEPT", "may_promise(i, b)",
                        "a voter accepts no proposal below its promise"},
    [ACCEPT_PROPOSED] = {"ACCEPT", "stage[b] == PROPOSED",
                         "a voter accepts the proposal that the coordinator has made"},
    [ACCEPT_STORED] = {"ACCEPT", "add(accepted[b], i)",
                       "a voter stores the proposal before it says that it has accepted it"},
    [COUNT_QUORUM] = {"COUNT", "quorum(accepted[b])",
                      "a coordinator has the acceptances of a quorum in one ballot"},
    [END_DECIDED] = {"END", "ended != 0", "a certificate comes from a peer that has it"},
    [DECIDED_SAME] = {"END", "add(ended, i)", "a peer passes on the certificate that it has"},
    [ENTER_ABORTED] = {"ENTER", "later != 0",
                       "a peer begins an attempt after the earlier ones were aborted"},
    [IN_ATTEMPT] = {"ANSWER, ACCEPT, BEGIN", "in_attempt(i, b)",
                    "a peer votes and coordinates in its present attempt only"},
    [MUTE_VOTES] = {"ANSWER, ACCEPT, BEGIN", "!has(mute, i)",
                    "a process that has lost its promise neither votes nor coordinates"},
    [GONE_VOTES] = {"ANSWER, ACCEPT, BEGIN", "!has(gone, i)",
                    "a voter that has left does not vote"},
    [ENDED_STEPS] = {"all", "!has(ended, i)", "a peer with the certificate takes no further step"},
    [RESUME_PROMISE] = {"RESUME", "promised[i], taken[i]",
                        "a new process has the promise that the earlier one stored"},
    [LEAVE_PROMISED] = {"LEAVE", "may_leave(i)", "a voter that has promised does not leave"},
    [AGREEMENT] = {"decide()", "agreement", "all quorums accept the same proposal"},
    [FROZEN_MODEL] = {"check()", "s1",
                      "a model that was reported as within the target does not change"},
    [STORED_FORM] = {"all", "-",
                     "a stored promise is well-formed, and its proposal changes only "
                     "with its ballot"},
};

/* Answer of one member in one ballot: whether it promised the ballot (voted), reported its model as
 * within the target consensus distance, and accepted the proposal. heard_*: the coordinator has
 * received this answer. */
struct answer
{
    /* Paxos ballot of the proposal that the member had accepted before it promised this ballot. 0:
     * none. */
    uint32_t taken;
    bool voted, within, accepted;
    bool heard_vote, heard_within, heard_accepted;
};

struct ballot
{
    struct wire_ballot id;
    uint32_t value;  /* Index of the proposal in conform.value. 0: no proposal yet. */
    uint32_t source; /* Paxos ballot in which the proposal of this ballot was made first. */
    /* Highest Paxos ballot in which a voter accepted a proposal, according to the answers received.
     * 0: none. */
    uint32_t best_heard;
    /* The longest list of voters in the answers that the coordinator has received to the ASK [0] and
     * to the PROPOSE [1]. */
    struct finish_voters heard[2];
    struct answer answer[ACCEPTORS_MAX];
};

/* A member, identified by its identity. A restarted process of a peer is the same member. */
struct acceptor
{
    uint64_t key;      /* Short form of the member's identity, computed by finish_key(). */
    uint32_t promised; /* Highest Paxos ballot that the member has promised and stored. 0: none. */
    uint32_t taken;    /* Paxos ballot of the proposal that the member has accepted. 0: none. */
    /* Number of lists of voters that contain this member, among all conform.n_lists lists that were
     * read. */
    uint32_t n_listed;
    bool gone;      /* True: the member has announced that it leaves. */
    bool reported;  /* True: a process of the member has reported its model. */
    uint64_t model; /* If `reported`: hash of the last model that the member reported. */
    /* If `reported`: index of a Paxos ballot. In all higher ballots, the member has reported only
     * `model`. 0: in all ballots. */
    uint32_t since;
    /* Index of the certificate that the member has stored with its promise. 0: none. */
    uint32_t certificate;
};

/* The present process of a peer. mute: the process could not read its promise (stored votes), so it
 * may not vote. ended: the process has a finish certificate. */
struct process
{
    uint8_t id[WIRE_ID_BYTES];
    uint32_t acceptor;
    bool mute, ended;
    uint32_t earlier; /* Paxos ballot that an earlier process of the peer has promised. 0: none. */
    uint32_t ballot;  /* Last Paxos ballot that the process has begun as coordinator. 0: none. */
    uint32_t value;   /* If `ended`: index of the certificate in conform.value. */
    uint32_t decided; /* Index of the certificate in the DECIDED message of this event. 0: none. */
    uint32_t attempt; /* Number of the attempt to finish the run in which the process takes part. */
    /* True: the process has reported its model as within the target consensus distance. */
    bool reported;
    uint64_t model; /* If `reported`: hash of the reported model. */
};

struct value
{
    size_t n;
    uint8_t *bytes;
};

struct conform
{
    struct conform_world world;
    uint32_t n_acceptors, n_ballots, n_values, n_lists;
    struct acceptor acceptor[ACCEPTORS_MAX];
    struct ballot **ballot; /* Paxos ballots in the order of their begin. Index 0 is unused. */
    struct value *value;    /* Different proposals that were seen. Index 0 is unused. */
    struct process process[PROCESSES_MAX];
    /* For each attempt to finish the run. decided: ballot in which the decided proposal was made
     * first; 0: nothing is decided. aborted: a coordinator has counted a quorum for an abort. */
    uint32_t decided[FINISH_ATTEMPTS];
    bool aborted[FINISH_ATTEMPTS];
    struct finish_proposal members, proposal;
    struct finish_voters voters;
    uint64_t n_steps[CONFORM_STEPS];
};

static void diverge(struct conform *f, uint32_t peer, enum rule r, uint32_t ballot)
{
    char text[TEXT_MAX];
    uint64_t number = ballot != 0 ? f->ballot[ballot]->id.number : 0;
    snprintf(text, sizeof text, "%" PRIu32 " in ballot %" PRIu64 ": %s (%s: %s)", peer, number,
             rule[r].text, rule[r].step, rule[r].guard);
    f->world.wrong(f->world.self, text);
}

static void demand(struct conform *f, uint32_t peer, bool holds, enum rule r, uint32_t ballot)
{
    if (!holds)
        diverge(f, peer, r, ballot);
}

static void count(struct conform *f, enum conform_step step)
{
    f->n_steps[step]++;
}

/* ---- indices of members, ballots and proposals ---- */

static uint32_t acceptor_of(struct conform *f, uint64_t key)
{
    for (uint32_t i = 0; i < f->n_acceptors; i++)
        if (f->acceptor[i].key == key)
            return i;
    assert(f->n_acceptors < ACCEPTORS_MAX);
    f->acceptor[f->n_acceptors] = (struct acceptor){.key = key};
    return f->n_acceptors++;
}

static int compare_ballots(const struct wire_ballot *a, const struct wire_ballot *b)
{
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return a->number == 0 ? 0 : memcmp(a->id, b->id, WIRE_ID_BYTES);
}

/* Compares the ballots with the indices a and b in f->ballot. Returns < 0 if a is lower, > 0 if a
 * is higher. Index 0 (no ballot) is lower than all ballots. */
static int order(const struct conform *f, uint32_t a, uint32_t b)
{
    static const struct wire_ballot none;
    return compare_ballots(a != 0 ? &f->ballot[a]->id : &none, b != 0 ? &f->ballot[b]->id : &none);
}

/* Returns the index of a ballot in f->ballot, or 0 if the ballot has not begun. */
static uint32_t find_ballot(const struct conform *f, const struct wire_ballot *id)
{
    for (uint32_t i = f->n_ballots; i > 0 && id->number != 0; i--)
        if (compare_ballots(&f->ballot[i]->id, id) == 0)
            return i;
    return 0;
}

static uint32_t add_ballot(struct conform *f, const struct wire_ballot *id)
{
    f->ballot = realloc(f->ballot, (f->n_ballots + 2) * sizeof *f->ballot);
    assert(f->ballot != NULL);
    struct ballot *b = calloc(1, sizeof *b);
    assert(b != NULL);
    b->id = *id;
    f->ballot[++f->n_ballots] = b;
    return f->n_ballots;
}

/* Returns the number of the attempt to finish the run to which a ballot belongs. */
static uint32_t attempt_of(const struct wire_ballot *b)
{
    uint64_t attempt = b->number >> 32;
    assert(attempt < FINISH_ATTEMPTS);
    return (uint32_t)attempt;
}

/* Returns the index of a proposal in f->value, and adds the proposal if it is new. Returns 0 if v
 * is empty. */
static uint32_t value_of(struct conform *f, struct bytes v)
{
    if (v.n == 0)
        return 0;
    for (uint32_t i = 1; i <= f->n_values; i++)
        if (f->value[i].n == v.n && memcmp(f->value[i].bytes, v.p, v.n) == 0)
            return i;
    f->value = realloc(f->value, (f->n_values + 2) * sizeof *f->value);
    assert(f->value != NULL);
    struct value *x = &f->value[++f->n_values];
    *x = (struct value){v.n, malloc(v.n)};
    assert(x->bytes != NULL);
    memcpy(x->bytes, v.p, v.n);
    return f->n_values;
}

/* A decoded promise (stored votes of a member): highest promised ballot, ballot in which the member
 * accepted a proposal, and index of that proposal. If `decided` is true, `value` is the index of
 * the certificate. */
struct stored
{
    struct wire_ballot promised, accepted;
    bool decided;
    uint32_t value;
};

static bool read_stored(struct conform *f, struct stored *s, struct bytes b)
{
    *s = (struct stored){.value = 0};
    if (b.n == 0)
        return true;
    if (b.n < FINISH_PROMISE_HEAD)
        return false;
    finish_get_ballot(finish_get_ballot(b.p, &s->promised), &s->accepted);
    s->decided = b.p[FINISH_PROMISE_HEAD - 1] != 0;
    s->value = value_of(f, (struct bytes){b.p + FINISH_PROMISE_HEAD, b.n - FINISH_PROMISE_HEAD});
    return s->promised.number > 0 && (s->accepted.number > 0 || s->decided) == (s->value > 0);
}

/* ---- quorums ---- */

static int by_key(const void *a, const void *b)
{
    uint64_t x = ((const struct finish_member *)a)->key, y = ((const struct finish_member *)b)->key;
    return x < y ? -1 : x > y;
}

static int by_voter(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Reads the members that a peer knows now into f->members, and the voters that it counts now into
 * f->voters. */
static void read_voters(struct conform *f, uint32_t peer)
{
    f->world.members(f->world.self, peer, &f->members);
    qsort(f->members.member, f->members.n, sizeof f->members.member[0], by_key);
    f->world.voters(f->world.self, peer, &f->voters);
    qsort(f->voters.key, f->voters.n, sizeof f->voters.key[0], by_voter);
    f->n_lists++;
    for (uint32_t i = 0; i < f->voters.n; i++)
        f->acceptor[acceptor_of(f, f->voters.key[i])].n_listed++;
}

/* Does what quorum() does in finish.pml: returns whether the voters for which has() is true are a
 * quorum of all voters. The voters are those of f->voters, or those in `heard` if that list is
 * longer. The number of all voters includes those that the peer's member table has dropped. */
static bool is_quorum(struct conform *f, uint32_t ballot, const struct finish_voters *heard,
                      bool (*has)(const struct answer *a))
{
    const struct finish_voters *v = &f->voters;
    uint32_t n = 0;
    bool has_first = false;
    uint64_t first = v->initial ? v->first : 0;
    if (heard != NULL && heard->n_all > 0
        && (!v->initial || heard->n_all > v->n_all
            || (heard->n_all == v->n_all && heard->n > v->n)))
        v = heard;
    for (uint32_t i = 0; i < v->n; i++) {
        bool counts = has(&f->ballot[ballot]->answer[acceptor_of(f, v->key[i])]);
        has_first |= counts && i == 0 && (first == 0 || first == v->key[0]);
        n += counts;
    }
    bool whole = has_first && v->n == v->n_all;
    return n + 1e-9 >= f->world.quorum * v->n_all && (2 * n != v->n_all || whole);
}

static bool heard_vote(const struct answer *a)
{
    return a->heard_vote;
}

static bool heard_within(const struct answer *a)
{
    return a->heard_within;
}

static bool heard_accepted(const struct answer *a)
{
    return a->heard_accepted;
}

static bool accepted(const struct answer *a)
{
    return a->accepted;
}

/* ---- promises that a node stores ---- */

/* Returns true if the peer may report its model in ballot b: every earlier process of the peer has
 * reported either the same model or nothing in that ballot. */
static bool may_report_model(const struct conform *f, uint32_t peer, uint32_t b)
{
    const struct process *p = &f->process[peer];
    const struct acceptor *a = &f->acceptor[p->acceptor];
    bool same = a->reported && a->model == f->world.model(f->world.self, peer);
    return !p->mute && order(f, b, same ? a->since : p->earlier) > 0;
}

/* Step BEGIN: the peer begins the ballot `id` as its coordinator. The ballot must be new. Returns
 * the index of the ballot. */
static uint32_t begin(struct conform *f, uint32_t peer, const struct wire_ballot *id)
{
    struct process *p = &f->process[peer];
    uint32_t known = find_ballot(f, id), b = known != 0 ? known : add_ballot(f, id);
    demand(f, peer, known == 0, BEGIN_NEW, b);
    demand(f, peer, order(f, b, f->acceptor[p->acceptor].promised) > 0, BEGIN_HIGHER, b);
    demand(f, peer, f->world.is_frozen(f->world.self, peer), BEGIN_FROZEN, b);
    struct answer *own = &f->ballot[b]->answer[p->acceptor];
    own->heard_vote = true;
    own->within = own->heard_within =
        f->world.is_within(f->world.self, peer) && may_report_model(f, peer, b);
    p->ballot = b;
    count(f, CONFORM_BEGIN);
    return b;
}

/* Returns whether a new proposal marks the right members as within the target consensus distance:
 * exactly those members of the coordinator's list that have reported that their models are. */
static bool has_models(struct conform *f, uint32_t ballot, struct bytes v)
{
    bool same = finish_decode(&f->proposal, v);
    for (uint32_t i = 0; i < f->proposal.n && same; i++)
        if (f->proposal.member[i].status == FINISH_WITHIN)
            same =
                heard_within(&f->ballot[ballot]->answer[acceptor_of(f, f->proposal.member[i].key)]);
    for (uint32_t i = 0; i < f->members.n && same; i++) {
        uint64_t key = f->members.member[i].key;
        bool in = false;
        for (uint32_t k = 0; k < f->proposal.n; k++)
            in |= f->proposal.member[k].key == key && f->proposal.member[k].status == FINISH_WITHIN;
        same = in == heard_within(&f->ballot[ballot]->answer[acceptor_of(f, key)]);
    }
    return same;
}

static bool is_abort(struct conform *f, uint32_t value)
{
    struct bytes v = {f->value[value].bytes, f->value[value].n};
    return finish_decode(&f->proposal, v) && f->proposal.n == 0;
}

/* Step PROPOSE: the coordinator of ballot b proposes again the accepted proposal with the highest
 * ballot. If no proposal was accepted, the coordinator makes a new one. */
static void propose(struct conform *f, uint32_t peer, uint32_t b, uint32_t value)
{
    struct process *p = &f->process[peer];
    struct ballot *x = f->ballot[b];
    uint32_t best = x->best_heard;
    demand(f, peer, p->ballot == b, PROPOSE_PROCESS, b);
    demand(f, peer, x->value == 0, PROPOSE_ONCE, b);
    read_voters(f, peer);
    demand(f, peer, is_quorum(f, b, &x->heard[0], heard_vote), PROPOSE_QUORUM, b);
    for (uint32_t i = 0; i < f->n_acceptors; i++)
        if (x->answer[i].heard_vote && order(f, x->answer[i].taken, best) > 0)
            best = x->answer[i].taken;
    x->value = value;
    if (best != 0) {
        demand(f, peer, value == f->ballot[best]->value, ADOPT_BEST, b);
        x->source = f->ballot[best]->source;
        count(f, CONFORM_ADOPT);
        return;
    }
    x->source = b;
    struct bytes v = {f->value[value].bytes, f->value[value].n};
    if (is_abort(f, value)) {
        demand(f, peer, attempt_of(&x->id) + 1 < FINISH_ATTEMPTS, INVENT_ABORT, b);
        count(f, CONFORM_ABORT);
        return;
    }
    demand(f, peer, is_quorum(f, b, &x->heard[0], heard_within), INVENT_QUORUM, b);
    demand(f, peer, has_models(f, b, v), INVENT_MODELS, b);
    demand(f, peer, find_ballot(f, &f->proposal.origin) == b, INVENT_ORIGIN, b);
    count(f, CONFORM_INVENT);
}

/* Does what decide() does in finish.pml: if a quorum has accepted the proposal of ballot b, the
 * proposal is decided. Fails if another proposal was decided before. */
static void decide(struct conform *f, uint32_t peer, uint32_t b)
{
    if (!f->world.guarantees)
        return;
    read_voters(f, peer);
    if (!is_quorum(f, b, NULL, accepted))
        return;
    uint32_t *decided = &f->decided[attempt_of(&f->ballot[b]->id)];
    demand(f, peer, *decided == 0 || *decided == f->ballot[b]->source, AGREEMENT, b);
    *decided = f->ballot[b]->source;
}

static void accept(struct conform *f, uint32_t peer, uint32_t b, uint32_t value)
{
    struct process *p = &f->process[peer];
    struct answer *own = &f->ballot[b]->answer[p->acceptor];
    demand(f, peer, order(f, b, f->acceptor[p->acceptor].promised) >= 0, ACCEPT_PROMISE, b);
    if (memcmp(f->ballot[b]->id.id, p->id, WIRE_ID_BYTES) == 0) {
        propose(f, peer, b, value);
        own->heard_accepted = true;
    }
    demand(f, peer, value == f->ballot[b]->value, ACCEPT_PROPOSED, b);
    own->accepted = true;
    f->acceptor[p->acceptor].taken = b;
    count(f, CONFORM_ACCEPT);
    decide(f, peer, b);
}

/* If the peer has begun a new attempt to finish the run, checks that the previous attempt was
 * aborted. A new attempt is the step COUNT of finish.pml at the coordinator, and the step ENTER at
 * another peer. */
static void follow_attempt(struct conform *f, uint32_t peer)
{
    struct process *p = &f->process[peer];
    uint32_t attempt = f->world.attempt(f->world.self, peer), b = p->ballot;
    if (attempt == p->attempt || attempt == UINT32_MAX)
        return;
    bool counts = b != 0 && attempt_of(&f->ballot[b]->id) + 1 == attempt && f->ballot[b]->value != 0
                  && is_abort(f, f->ballot[b]->value);
    if (counts && !f->aborted[attempt - 1]) {
        read_voters(f, peer);
        f->aborted[attempt - 1] = is_quorum(f, b, &f->ballot[b]->heard[1], heard_accepted);
        count(f, CONFORM_COUNT);
    }
    demand(f, peer, attempt > p->attempt && f->aborted[attempt - 1], ENTER_ABORTED, b);
    p->attempt = attempt;
    p->ballot = 0;
    p->reported = false;
    count(f, CONFORM_ENTER);
}

void conform_kept(struct conform *f, uint32_t peer, struct bytes promise, bool stored)
{
    struct process *p = &f->process[peer];
    struct acceptor *a = &f->acceptor[p->acceptor];
    struct stored s;
    bool formed = read_stored(f, &s, promise) && promise.n > 0;
    demand(f, peer, formed, STORED_FORM, 0);
    /* Storing a certificate is not a step of a voter in the model, so the certificate is not
     * checked here. check_certificate() checks it. */
    if (formed && s.decided) {
        a->certificate = stored ? s.value : a->certificate;
        return;
    }
    follow_attempt(f, peer);
    demand(f, peer, attempt_of(&s.promised) == p->attempt, IN_ATTEMPT, a->promised);
    /* A vote that is not stored is no step: the voter does not change, as if a message was lost. */
    if (!stored)
        return;
    /* If an attempt to finish the run was aborted, proposals that were accepted in that attempt no
     * longer count. */
    if (a->taken != 0 && attempt_of(&f->ballot[a->taken]->id) != p->attempt)
        a->taken = 0;
    demand(f, peer, !p->mute, MUTE_VOTES, a->promised);
    demand(f, peer, !p->ended, ENDED_STEPS, a->promised);
    demand(f, peer, !a->gone, GONE_VOTES, a->promised);
    bool own = memcmp(s.promised.id, p->id, WIRE_ID_BYTES) == 0;
    uint32_t taken = find_ballot(f, &s.accepted), b = find_ballot(f, &s.promised);
    if (taken != a->taken) {
        demand(f, peer, taken != 0 && taken == b, ACCEPT_PROPOSED, b);
        if (taken != 0)
            accept(f, peer, taken, s.value);
    } else {
        uint32_t value = taken != 0 ? f->ballot[taken]->value : 0;
        demand(f, peer, value == s.value, STORED_FORM, taken);
        b = own ? begin(f, peer, &s.promised) : b;
        demand(f, peer, b != 0, ANSWER_ASKED, b);
        demand(f, peer, order(f, b, a->promised) >= 0, ANSWER_PROMISE, b);
        if (b != 0) {
            /* After a restart, a process may store its promise of a ballot again, even after the
             * peer has accepted the proposal of that ballot. The checker keeps the answer to the
             * first promise. */
            struct answer *x = &f->ballot[b]->answer[p->acceptor];
            x->taken = x->voted ? x->taken : a->taken;
            x->voted = true;
        }
        count(f, CONFORM_ANSWER);
    }
    a->promised = b;
}

/* ---- messages ---- */

static uint64_t entry(const struct wire_finish *m, uint32_t i, uint8_t *flags)
{
    return finish_entry(m->members, i, flags);
}

static uint32_t n_entries(const struct wire_finish *m)
{
    return (uint32_t)(m->members.n / WIRE_FINISH_ENTRY);
}

/* Records what the coordinator of a ballot learns from a REPORT or ACCEPTED message that it
 * receives. */
static void hear(struct conform *f, uint32_t peer, const struct wire_finish *m)
{
    struct process *p = &f->process[peer];
    uint32_t b = find_ballot(f, &m->ballot), best = find_ballot(f, &m->accepted);
    struct ballot *x = b != 0 ? f->ballot[b] : NULL;
    bool asks = m->word == WIRE_FINISH_REPORT;
    if (x == NULL || b != p->ballot || asks != (x->value == 0))
        return;
    struct finish_voters *v = &x->heard[!asks];
    uint32_t n = (uint32_t)(m->voters.n / WIRE_FINISH_KEY);
    if (m->n_voters > v->n_all || (m->n_voters == v->n_all && n > v->n)) {
        v->n_all = m->n_voters;
        v->n = n;
        for (uint32_t i = 0; i < v->n; i++)
            v->key[i] = finish_key(m->voters.p + (size_t)WIRE_FINISH_KEY * i);
    }
    for (uint32_t i = 0; i < n_entries(m); i++) {
        uint8_t flags;
        struct answer *a = &x->answer[acceptor_of(f, entry(m, i, &flags))];
        a->heard_vote |= asks && (flags & VOTES) != 0;
        a->heard_within |= asks && (flags & WITHIN) != 0;
        a->heard_accepted |= !asks && (flags & VOTES) != 0;
    }
    if (asks && order(f, best, x->best_heard) > 0)
        x->best_heard = best;
}

/* Checks that the model of a peer has not changed since the peer reported it as within the target
 * consensus distance. */
static void check_model(struct conform *f, uint32_t peer)
{
    struct process *p = &f->process[peer];
    uint64_t hash = f->world.model(f->world.self, peer);
    demand(f, peer, !p->reported || p->model == hash, FROZEN_MODEL, 0);
    p->model = hash;
    p->reported = true;
    struct acceptor *a = &f->acceptor[p->acceptor];
    if (!a->reported || a->model != hash)
        a->since = p->earlier;
    a->reported = true;
    a->model = hash;
}

/* A REPORT (`asks`) or ACCEPTED message has one entry per member. Checks the entry that is about
 * the sender itself. */
static void report(struct conform *f, uint32_t peer, uint32_t b, uint8_t flags, bool asks)
{
    struct process *p = &f->process[peer];
    struct answer *a = &f->ballot[b]->answer[p->acceptor];
    demand(f, peer, (flags & VOTES) == 0 || (asks ? a->voted : a->accepted),
           asks ? ANSWER_STORED : ACCEPT_STORED, b);
    demand(f, peer, (flags & VOTES) == 0 || !p->mute, MUTE_VOTES, b);
    if ((flags & WITHIN) == 0)
        return;
    demand(f, peer, asks && f->world.is_within(f->world.self, peer), ANSWER_WITHIN, b);
    demand(f, peer, may_report_model(f, peer, b), ANSWER_EARLIER, b);
    check_model(f, peer);
    a->within = true;
    count(f, CONFORM_REPORT);
}

static void check_answer(struct conform *f, uint32_t peer, const struct wire_finish *m)
{
    struct process *p = &f->process[peer];
    bool asks = m->word == WIRE_FINISH_REPORT;
    uint32_t b = find_ballot(f, &m->ballot), best = find_ballot(f, &m->accepted), n_within = 0;
    demand(f, peer, b != 0, ANSWER_ASKED, b);
    if (b == 0 || n_entries(m) == 0)
        return;
    for (uint32_t i = 0; i < n_entries(m); i++) {
        uint8_t flags;
        uint32_t k = acceptor_of(f, entry(m, i, &flags));
        const struct answer *a = &f->ballot[b]->answer[k];
        if (k == p->acceptor)
            report(f, peer, b, flags, asks);
        bool votes = (flags & VOTES) == 0 || (asks ? a->voted : a->accepted);
        demand(f, peer, votes && ((flags & WITHIN) == 0 || a->within), ANSWER_SUM, b);
        if (asks && (flags & VOTES) != 0)
            demand(f, peer, order(f, best, a->taken) >= 0, ANSWER_BEST, b);
        n_within += (flags & WITHIN) != 0;
    }
    uint32_t value = value_of(f, m->proposal);
    demand(f, peer, m->n_models == n_within, ANSWER_SUM, b);
    demand(f, peer, !asks || value == (best != 0 ? f->ballot[best]->value : 0), ANSWER_BEST, b);
}

/* Steps COUNT and END: if the node has a new certificate, checks that a quorum has accepted it or
 * that a DECIDED message contained it. */
static void check_certificate(struct conform *f, uint32_t peer)
{
    struct process *p = &f->process[peer];
    uint8_t bytes[WIRE_FINISH_PROPOSAL_MAX];
    const struct finish_proposal *known = f->world.certificate(f->world.self, peer);
    if (known == NULL || p->ended)
        return;
    uint32_t value = value_of(f, (struct bytes){bytes, finish_encode(bytes, known)}), b = p->ballot;
    if (p->decided != 0) {
        demand(f, peer, p->decided == value, END_DECIDED, b);
        count(f, CONFORM_END);
    } else {
        read_voters(f, peer);
        demand(f, peer,
               b != 0 && f->ballot[b]->value == value
                   && is_quorum(f, b, &f->ballot[b]->heard[1], heard_accepted),
               COUNT_QUORUM, b);
        count(f, CONFORM_COUNT);
    }
    uint32_t kept = f->acceptor[p->acceptor].certificate;
    demand(f, peer, kept == 0 || kept == value, DECIDED_SAME, b);
    p->ended = true;
    p->value = value;
}

void conform_sent(struct conform *f, uint32_t peer, const struct wire_finish *m)
{
    struct process *p = &f->process[peer];
    uint32_t b = find_ballot(f, &m->ballot);
    follow_attempt(f, peer);
    demand(f, peer, !p->ended || m->word == WIRE_FINISH_DECIDED, ENDED_STEPS, b);
    if (m->word == WIRE_FINISH_DECIDED && m->proposal.n == 0) {
        demand(f, peer, f->aborted[attempt_of(&m->ballot)], END_DECIDED, b);
        return;
    }
    switch (m->word) {
    case WIRE_FINISH_ASK:
        demand(f, peer, b != 0, BEGIN_FIRST, b);
        break;
    case WIRE_FINISH_PROPOSE:
        demand(f, peer, b != 0 && f->ballot[b]->value == value_of(f, m->proposal), ACCEPT_PROPOSED,
               b);
        break;
    case WIRE_FINISH_REPORT:
    case WIRE_FINISH_ACCEPTED:
        check_answer(f, peer, m);
        break;
    case WIRE_FINISH_DECIDED:
        check_certificate(f, peer);
        demand(f, peer, p->ended && p->value == value_of(f, m->proposal), DECIDED_SAME, b);
        break;
    case WIRE_FINISH_END:
        break;
    }
}

/* ---- events ---- */

void conform_received(struct conform *f, uint32_t peer, const struct wire_finish *m)
{
    if (m->word == WIRE_FINISH_DECIDED)
        f->process[peer].decided = value_of(f, m->proposal);
    else if (m->word == WIRE_FINISH_REPORT || m->word == WIRE_FINISH_ACCEPTED)
        hear(f, peer, m);
}

void conform_stepped(struct conform *f, uint32_t peer)
{
    struct process *p = &f->process[peer];
    bool had_ended = p->ended;
    follow_attempt(f, peer);
    check_certificate(f, peer);
    p->decided = 0;
    if (p->ended && !had_ended && p->reported)
        check_model(f, peer);
}

void conform_left(struct conform *f, uint32_t peer)
{
    struct process *p = &f->process[peer];
    struct acceptor *a = &f->acceptor[p->acceptor];
    if (a->gone)
        return;
    demand(f, peer, a->promised == 0 && !p->mute, LEAVE_PROMISED, a->promised);
    a->gone = true;
    count(f, CONFORM_LEAVE);
}

void conform_start(struct conform *f, uint32_t peer, const uint8_t id[WIRE_ID_BYTES],
                   struct bytes promise)
{
    struct stored s;
    uint32_t k = acceptor_of(f, finish_key(id));
    struct acceptor *a = &f->acceptor[k];
    assert(peer < PROCESSES_MAX);
    f->process[peer] = (struct process){.acceptor = k};
    memcpy(f->process[peer].id, id, WIRE_ID_BYTES);
    bool readable = read_stored(f, &s, promise);
    f->process[peer].attempt = readable ? attempt_of(&s.promised) : 0;
    bool same = find_ballot(f, &s.promised) == a->promised
                && find_ballot(f, &s.accepted) == a->taken && s.decided == (a->certificate != 0)
                && s.value
                       == (s.decided       ? a->certificate
                           : a->taken != 0 ? f->ballot[a->taken]->value
                                           : 0);
    demand(f, peer, same || !readable, RESUME_PROMISE, a->promised);
    f->process[peer].ended = readable && s.decided;
    f->process[peer].value = a->certificate;
    f->process[peer].mute = !readable;
    f->process[peer].earlier = a->promised;
    a->gone = false;
    if (!readable)
        count(f, CONFORM_FORGET);
    else if (a->promised != 0)
        count(f, CONFORM_RESUME);
}

void conform_end(struct conform *f, uint32_t peer)
{
    if (f->process[peer].reported)
        check_model(f, peer);
}

bool conform_same_voters(const struct conform *f)
{
    bool same = true;
    for (uint32_t i = 0; i < f->n_acceptors; i++) {
        const struct acceptor *a = &f->acceptor[i];
        same &= a->n_listed == 0 || a->n_listed == f->n_lists || a->promised == 0;
    }
    return same;
}

const uint64_t *conform_steps(const struct conform *f)
{
    return f->n_steps;
}

/* ---- open and close ---- */

struct conform *conform_open(const struct conform_world *world)
{
    struct conform *f = calloc(1, sizeof *f);
    assert(f != NULL);
    f->world = *world;
    return f;
}

void conform_close(struct conform *f)
{
    if (f == NULL)
        return;
    for (uint32_t i = 1; i <= f->n_ballots; i++)
        free(f->ballot[i]);
    for (uint32_t i = 1; i <= f->n_values; i++)
        free(f->value[i].bytes);
    free(f->ballot);
    free(f->value);
    free(f);
}
