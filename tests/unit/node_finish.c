/* tests/unit/node_finish.c -- tests of the finish protocol (peer/node/finish): random worlds with
 * lost sessions, crashes, restarts, full disks and late peers, whatever the order of messages. Each
 * step must be a step of the model (tests/model/conform.h). */
#include "peer/node/finish/proposal.h"
#include "peer/node/timers.h"

#include "nn/math/rng.h"
#include "tests/model/conform.h"
#include "tests/unit/gossip_seeds.h"
#include "tests/unit/test_share.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Default of world.target, the largest consensus distance that a certificate may have. */
static const double TARGET = 0.1;

enum {
    PATIENCE_US = 30 * 1000 * 1000,
    PEERS_MAX = 6,
    QUEUE = 4096,
    MESSAGE_MAX = 16384,
    MODEL = 8,
    /* finish_view.max_rounds: rounds of mixing after which the coordinator may abort an attempt. */
    ROUNDS_MAX = 3
};

/* A message that was sent and has not arrived yet. */
struct letter
{
    uint32_t from, to, link;
    size_t len;
    uint8_t bytes[MESSAGE_MAX];
};

struct peer
{
    struct world *world;
    uint32_t index;
    struct finish *finish; /* State of the finish protocol. NULL: the process has crashed. */
    /* Attempt of the finish protocol in which `frozen`, `within` and `stores` were set. */
    uint32_t attempt;
    /* frozen: the model is final. within: the final model is within the target. */
    bool frozen, within;
    /* True: the peer no longer mixes, and only tries to store its model before it is frozen. */
    bool stores;
    bool believed_dead; /* True: the member tables list the peer as dead, although it lives. */
    /* Number of voters that the peer counts, in the order of the peers. 0: all peers. */
    uint32_t n_voters;
    bool knows_no_initial; /* True: the peer knows no initial member, so all members are voters. */
    uint32_t n_unknown;    /* Number of further voters that the peer cannot name. */
    /* True: the peer knows that another member votes instead of the initial member with the
     * smallest identity. */
    bool first_is_replaced;
    uint64_t n_rounds; /* Number of rounds that the peer has mixed. */
    bool stored;       /* True: an earlier process of this peer had frozen its model. */
    /* Value of the certified model, if a certificate covers this process. 0: no certificate so
     * far. */
    float covered;
    /* The peer's promise (its ballot and proposal) on disk. full: the disk is full, so that no
     * promise can be stored. */
    size_t n_promise;
    uint8_t promise[FINISH_PROMISE_MAX];
    bool full;
    float model; /* Value of every element of the peer's model. */
};

struct world
{
    struct rng rng;
    struct conform *conform;
    uint32_t n;
    double target;   /* Largest consensus distance of a certificate. */
    bool apart;      /* True: in each attempt but the last, models may be far apart. */
    uint32_t n_safe; /* The first n_safe peers never crash, and end within the target. */
    int64_t now_us;
    struct peer peer[PEERS_MAX];
    /* Number of the session of two peers. 0: there is none. A new session gets a new number. */
    uint32_t link[PEERS_MAX][PEERS_MAX], n_links;
    struct letter *queue;
    size_t n_queue;
    bool has_decision;
    size_t n_decision;
    uint8_t decision[WIRE_FINISH_PROPOSAL_MAX];
};

/* Number of steps of each kind of the protocol's model (tests/model) in all worlds so far. */
static uint64_t n_steps[CONFORM_STEPS];

static void fill_id(uint8_t id[WIRE_ID_BYTES], uint32_t index)
{
    memset(id, 0, WIRE_ID_BYTES);
    id[7] = (uint8_t)(index + 1);
}

/* ---- what a peer asks for ---- */

static size_t peer_links(void *self, uint32_t *out, size_t cap)
{
    const struct peer *p = self;
    size_t n = 0;
    for (uint32_t i = 0; i < p->world->n; i++)
        if (p->world->link[p->index][i] != 0)
            out[n++] = p->world->link[p->index][i];
    assert_true(n <= cap);
    return n;
}

static void peer_send(void *self, uint32_t link, const struct wire_finish *m)
{
    struct peer *p = self;
    struct world *w = p->world;
    for (uint32_t i = 0; i < w->n; i++)
        if (w->link[p->index][i] == link) {
            assert_true(w->n_queue < QUEUE);
            struct letter *l = &w->queue[w->n_queue++];
            *l = (struct letter){.from = p->index, .to = i, .link = link};
            l->len = wire_put_finish(l->bytes, sizeof l->bytes, m);
            assert_true(l->len > 0);
            conform_sent(w->conform, p->index, m);
        }
}

static uint32_t n_within(const struct finish_proposal *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n; i++)
        n += p->member[i].status == FINISH_WITHIN;
    return n;
}

static void peer_members(void *self, struct finish_proposal *out)
{
    const struct peer *p = self;
    const struct world *w = p->world;
    out->n = w->n;
    for (uint32_t i = 0; i < w->n; i++) {
        uint8_t id[WIRE_ID_BYTES];
        fill_id(id, i);
        out->member[i] = (struct finish_member){
            .key = finish_key(id),
            .status = w->peer[i].finish == NULL || w->peer[i].believed_dead ? FINISH_DEAD
                      : w->peer[i].frozen                                   ? FINISH_OUTSIDE
                                                                            : FINISH_MIXING};
    }
}

static void peer_voters(void *self, struct finish_voters *out)
{
    const struct peer *p = self;
    const struct world *w = p->world;
    out->initial = !p->knows_no_initial;
    out->n = p->n_voters > 0 ? p->n_voters : w->n;
    out->n_all = out->n + p->n_unknown;
    for (uint32_t i = 0; i < out->n; i++) {
        uint8_t id[WIRE_ID_BYTES];
        fill_id(id, i);
        out->key[i] = finish_key(id);
        out->first = i == 0 || out->key[i] < out->first ? out->key[i] : out->first;
    }
    out->first -= p->first_is_replaced;
}

static bool peer_quorum(void *self, uint32_t n, uint32_t n_voters, bool has_first)
{
    (void)self;
    return 2 * n > n_voters || (2 * n == n_voters && has_first);
}

static bool peer_keep(void *self, const uint8_t *bytes, size_t n)
{
    struct peer *p = self;
    assert_true(n <= sizeof p->promise);
    if (!p->full)
        memcpy(p->promise, bytes, p->n_promise = n);
    conform_kept(p->world->conform, p->index, (struct bytes){bytes, n}, !p->full);
    return !p->full;
}

/* ---- what the checker asks for ---- */

static void conform_wrong(void *self, const char *text)
{
    (void)self;
    fail_msg("%s", text);
}

static void conform_members(void *self, uint32_t peer, struct finish_proposal *out)
{
    struct world *w = self;
    peer_members(&w->peer[peer], out);
}

static void conform_voters(void *self, uint32_t peer, struct finish_voters *out)
{
    struct world *w = self;
    peer_voters(&w->peer[peer], out);
}

static bool conform_frozen(void *self, uint32_t peer)
{
    const struct world *w = self;
    return w->peer[peer].frozen;
}

static bool conform_within(void *self, uint32_t peer)
{
    const struct world *w = self;
    return w->peer[peer].frozen && w->peer[peer].within;
}

static uint64_t conform_model(void *self, uint32_t peer)
{
    const struct world *w = self;
    return rng_hash(&w->peer[peer].model, sizeof w->peer[peer].model);
}

static uint32_t conform_attempt(void *self, uint32_t peer)
{
    const struct world *w = self;
    return finish_attempt(w->peer[peer].finish);
}

static const struct finish_proposal *conform_certificate(void *self, uint32_t peer)
{
    const struct world *w = self;
    return w->peer[peer].finish != NULL ? finish_certificate(w->peer[peer].finish) : NULL;
}

/* ---- the world ---- */

static void start(struct world *w, uint32_t i)
{
    struct peer *p = &w->peer[i];
    struct finish_owner owner = {.self = p,
                                 .links = peer_links,
                                 .send = peer_send,
                                 .members = peer_members,
                                 .voters = peer_voters,
                                 .quorum = peer_quorum,
                                 .keep = peer_keep};
    fill_id(owner.id, i);
    p->frozen = false;
    p->attempt = 0;
    conform_start(w->conform, i, owner.id, (struct bytes){p->promise, p->n_promise});
    p->finish = finish_open(&owner, (struct bytes){p->promise, p->n_promise});
    assert_non_null(p->finish);
    p->attempt = finish_attempt(p->finish);
}

static void open_world(struct world *w, uint64_t seed, uint32_t n)
{
    *w = (struct world){.n = n, .target = TARGET, .now_us = 1};
    w->conform = conform_open(&(struct conform_world){.self = w,
                                                      .quorum = 0.5,
                                                      .guarantees = true,
                                                      .wrong = conform_wrong,
                                                      .members = conform_members,
                                                      .voters = conform_voters,
                                                      .is_frozen = conform_frozen,
                                                      .is_within = conform_within,
                                                      .model = conform_model,
                                                      .attempt = conform_attempt,
                                                      .certificate = conform_certificate});
    w->rng = rng_stream(rng_key(seed, RNG_TEST, n, 0));
    w->queue = malloc(QUEUE * sizeof *w->queue);
    assert_non_null(w->queue);
    for (uint32_t i = 0; i < n; i++) {
        w->peer[i] = (struct peer){.world = w, .index = i, .model = 1};
        start(w, i);
    }
}

static void close_world(struct world *w)
{
    for (uint32_t i = 0; i < w->n; i++)
        finish_close(w->peer[i].finish);
    for (int k = 0; k < CONFORM_STEPS; k++)
        n_steps[k] += conform_steps(w->conform)[k];
    conform_close(w->conform);
    free(w->queue);
}

static uint32_t draw(struct world *w, uint32_t n)
{
    return (uint32_t)rng_below(&w->rng, n);
}

static void connect(struct world *w, uint32_t a, uint32_t b)
{
    struct peer *p = &w->peer[a], *q = &w->peer[b];
    if (a == b || w->link[a][b] != 0 || p->finish == NULL || q->finish == NULL)
        return;
    w->link[a][b] = w->link[b][a] = ++w->n_links;
    finish_link_up(p->finish, w->link[a][b]);
    finish_link_up(q->finish, w->link[a][b]);
}

/* Lets peer i mix again if its attempt to finish was aborted. */
static void follow(struct world *w, uint32_t i)
{
    struct peer *p = &w->peer[i];
    if (p->finish == NULL || finish_attempt(p->finish) == p->attempt)
        return;
    assert_true(finish_attempt(p->finish) > p->attempt);
    p->attempt = finish_attempt(p->finish);
    p->frozen = false;
    /* A process without a promise enters attempts again in which an earlier process has ended. */
    p->stored &= finish_is_mute(p->finish);
    p->model = w->apart && p->attempt + 1 < FINISH_ATTEMPTS && draw(w, 3) == 0 ? 3 : 2;
}

/* Ends a session. Messages on it are lost. */
static void disconnect(struct world *w, uint32_t a, uint32_t b)
{
    uint32_t link = w->link[a][b];
    if (link == 0)
        return;
    w->link[a][b] = w->link[b][a] = 0;
    size_t n = 0;
    for (size_t i = 0; i < w->n_queue; i++)
        if (w->queue[i].link != link)
            w->queue[n++] = w->queue[i];
    w->n_queue = n;
    for (uint32_t k = 0; k < 2; k++) {
        struct finish *f = w->peer[k == 0 ? a : b].finish;
        if (f != NULL) {
            finish_link_down(f, link);
            conform_stepped(w->conform, k == 0 ? a : b);
            follow(w, k == 0 ? a : b);
        }
    }
}

static void crash(struct world *w, uint32_t i)
{
    finish_close(w->peer[i].finish);
    w->peer[i].finish = NULL;
    for (uint32_t k = 0; k < w->n; k++)
        disconnect(w, i, k);
}

/* Freezes the model of a peer: it is final from now on. within: the model is within the target. */
static void freeze(struct world *w, uint32_t i, bool within)
{
    struct peer *p = &w->peer[i];
    float sketch[SKETCH_K] = {0};
    struct finish_evidence e;
    if (p->finish == NULL || p->frozen)
        return;
    for (size_t k = 0; k < MODEL; k++)
        sketch[k] = p->model;
    finish_evidence_of(&e, sketch, (double)MODEL * (double)p->model * (double)p->model,
                       rng_hash(&p->model, sizeof p->model));
    finish_freeze(p->finish, within ? &e : NULL, w->now_us);
    p->frozen = true;
    p->within = within;
}

static void update(struct world *w, uint32_t i)
{
    struct peer *p = &w->peer[i];
    struct finish_view v = {.now_us = w->now_us,
                            .mixes = !p->frozen && !p->stores,
                            .n_rounds = p->n_rounds,
                            .max_rounds = ROUNDS_MAX,
                            .patience_us = PATIENCE_US,
                            .target = w->target};
    if (p->finish == NULL)
        return;
    for (uint32_t k = 0; k < w->n; k++) {
        v.rank += k < i && w->peer[k].finish != NULL && w->peer[k].frozen;
        v.n_unfinished +=
            k != i && w->peer[k].finish != NULL && !w->peer[k].frozen && !w->peer[k].believed_dead;
    }
    (void)finish_update(p->finish, &v);
    conform_stepped(w->conform, i);
    follow(w, i);
}

/* Delivers the oldest message of a random session and direction. */
static void deliver(struct world *w)
{
    if (w->n_queue == 0)
        return;
    size_t at = draw(w, (uint32_t)w->n_queue);
    for (size_t i = 0; i < at; i++)
        if (w->queue[i].link == w->queue[at].link && w->queue[i].to == w->queue[at].to)
            at = i;
    struct letter *l = malloc(sizeof *l);
    assert_non_null(l);
    *l = w->queue[at];
    memmove(&w->queue[at], &w->queue[at + 1], (w->n_queue - at - 1) * sizeof *l);
    w->n_queue--;
    struct wire_batch *batch = NULL;
    struct wire_message m;
    assert_true(wire_read(l->bytes, l->len, batch, &m));
    update(w, l->to);
    conform_received(w->conform, l->to, &m.finish);
    assert_true(finish_receive(w->peer[l->to].finish, l->link, &m.finish));
    conform_stepped(w->conform, l->to);
    follow(w, l->to);
    free(l);
}

/* Checks that the certificate covers the model of at most one process of each peer. */
static void check_covered(struct peer *p)
{
    if (p->finish == NULL || !finish_covers(p->finish))
        return;
    if (p->covered == 0)
        p->covered = p->model;
    assert_true(p->frozen && p->within && p->covered == p->model);
}

/* Checks the properties S1 and S2 of the protocol: all certificates are equal, and they name as
 * within the target only peers whose models were frozen within it. */
static void check(struct world *w)
{
    for (uint32_t i = 0; i < w->n; i++) {
        const struct finish_proposal *p =
            w->peer[i].finish != NULL ? finish_certificate(w->peer[i].finish) : NULL;
        uint8_t bytes[WIRE_FINISH_PROPOSAL_MAX];
        check_covered(&w->peer[i]);
        if (p == NULL)
            continue;
        size_t n = finish_encode(bytes, p);
        if (!w->has_decision) {
            memcpy(w->decision, bytes, n);
            w->n_decision = n;
            w->has_decision = true;
        }
        assert_int_equal(n, w->n_decision);
        assert_memory_equal(bytes, w->decision, n);
        for (uint32_t k = 0; k < w->n; k++)
            if (p->member[k].status == FINISH_WITHIN)
                assert_true(w->peer[k].stored || (w->peer[k].frozen && w->peer[k].within));
        assert_true(2 * n_within(p) >= w->n);
    }
}

static void take_step(struct world *w, bool faults)
{
    uint32_t a = draw(w, w->n), b = draw(w, w->n), what = draw(w, 100);
    w->now_us += draw(w, 20000);
    if (what < 70)
        deliver(w);
    else if (what < 80)
        update(w, a);
    else if (what < 86 || !faults)
        connect(w, a, b);
    else if (what < 92)
        disconnect(w, a, b);
    else if (what < 95)
        freeze(w, a, a < w->n_safe || draw(w, 8) != 0);
    else if (what == 95 && a >= w->n_safe && draw(w, 4) == 0) {
        w->peer[a].stored |= w->peer[a].frozen;
        crash(w, a);
        /* One promise in 8 is damaged. */
        if (w->peer[a].n_promise > 0 && draw(w, 8) == 0)
            w->peer[a].n_promise = 1;
    } else if (what == 96 && w->peer[a].finish == NULL)
        start(w, a);
    else if (what == 97)
        w->now_us += FINISH_TAKEOVER_US;
    else if (what == 98 && a >= w->n_safe && draw(w, 4) == 0)
        w->peer[a].full = !w->peer[a].full;
    else if (what == 99)
        w->peer[a].n_rounds += ROUNDS_MAX;
    check(w);
}

/* Draws the models of all peers. In half of the worlds, models are far apart until the last
 * attempt. */
static void draw_models(struct world *w)
{
    w->apart = draw(w, 2) == 0;
    for (uint32_t i = 0; i < w->n; i++)
        w->peer[i].model = w->apart && draw(w, 2) == 0 ? 2 : 1;
}

/* Simulates a random world with all faults. All certificates must be equal, but no peer needs to
 * get one. */
static void check_random_world(uint64_t seed)
{
    struct world w;
    open_world(&w, seed, 2 + (uint32_t)(seed % (PEERS_MAX - 1)));
    draw_models(&w);
    for (int i = 0; i < 1500; i++)
        take_step(&w, true);
    close_world(&w);
}

static void test_all_certificates_are_equal(void **state)
{
    (void)state;
    for_seeds(check_random_world, test_share_of(1000));
}

/* After some time there are no more faults. A majority of the peers has never restarted. Every
 * connected peer must then get the certificate. */
static void check_end(uint64_t seed)
{
    struct world w;
    uint32_t n = 3 + (uint32_t)(seed % (PEERS_MAX - 2));
    open_world(&w, seed, n);
    draw_models(&w);
    w.n_safe = n / 2 + 1;
    for (int i = 0; i < 300; i++)
        take_step(&w, true);
    for (uint32_t i = 0; i < n; i++)
        freeze(&w, i, i <= n / 2);
    int64_t until_us = w.now_us + 60 * FINISH_TAKEOVER_US;
    while (w.now_us < until_us) {
        for (uint32_t i = 0; i < n; i++) {
            connect(&w, i, (i + 1) % n);
            freeze(&w, i, i <= n / 2);
        }
        take_step(&w, false);
    }
    for (uint32_t i = 0; i < n; i++)
        if (w.peer[i].finish != NULL)
            assert_non_null(finish_certificate(w.peer[i].finish));
    close_world(&w);
}

static void test_connected_majority_gets_a_certificate(void **state)
{
    (void)state;
    for_seeds(check_end, test_share_of(400));
}

/* Together, the worlds of the other tests must take every kind of step of the protocol's model. The
 * step LEAVE is excluded, because only a complete node takes it, and these worlds have none. */
static void test_worlds_take_all_steps_of_the_model(void **state)
{
    (void)state;
    if (getenv("SEED") != NULL)
        skip();
    for (int k = 0; k < CONFORM_STEPS; k++) {
        print_message("%s %llu\n", conform_name[k], (unsigned long long)n_steps[k]);
        assert_true(n_steps[k] > 0 || k == CONFORM_LEAVE);
    }
}

/* Without faults one ballot must be enough, and the certificate must have the exact consensus
 * distance of the two models. */
static void test_one_ballot_decides(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, 1, 2);
    w.target = 1;
    w.peer[1].model = 3;
    connect(&w, 0, 1);
    freeze(&w, 0, true);
    freeze(&w, 1, true);
    update(&w, 0);
    while (w.n_queue > 0)
        deliver(&w);
    check(&w);
    const struct finish_proposal *p = finish_certificate(w.peer[1].finish);
    assert_non_null(p);
    assert_int_equal(finish_ballots(w.peer[0].finish), 1);
    assert_int_equal(finish_ballots(w.peer[1].finish), 0);
    assert_int_equal(n_within(p), 2);
    /* The consensus distance Xi is 1 per element and the mean is 2, so Xi / |mean| is 0.5. */
    assert_true(fabs(p->distance - 0.5) < 1e-6);
    close_world(&w);
}

/* Peer 1 loses its session with peer 2 after it has passed on the ASK, so its answer is partial. The
 * member tables list peer 2 as dead, but it may have answered. The coordinator must ask again. */
static void test_partial_answer_is_no_whole_sum(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, 1, 3);
    connect(&w, 0, 1);
    connect(&w, 1, 2);
    w.peer[2].believed_dead = true;
    for (uint32_t i = 0; i < 3; i++)
        freeze(&w, i, true);
    update(&w, 0);
    deliver(&w);
    assert_int_equal(w.n_queue, 1);
    disconnect(&w, 1, 2);
    while (w.n_queue > 0)
        deliver(&w);
    check(&w);
    assert_int_equal(finish_ballots(w.peer[0].finish), 1);
    assert_null(finish_certificate(w.peer[0].finish));
    close_world(&w);
}

/* Lets `n` connected peers of a world of `n` freeze and decide. Returns whether they decide a
 * certificate. */
static bool decides(struct world *w, uint32_t n)
{
    w->target = 1;
    for (uint32_t i = 1; i < n; i++)
        connect(w, 0, i);
    for (uint32_t i = 0; i < n; i++)
        freeze(w, i, true);
    for (uint32_t i = n; i-- > 0;)
        update(w, i);
    while (w->n_queue > 0)
        deliver(w);
    check(w);
    assert_int_equal(finish_ballots(w->peer[0].finish), 1);
    for (uint32_t i = 1; i < n; i++)
        assert_int_equal(finish_certificate(w->peer[0].finish) != NULL,
                         finish_certificate(w->peer[i].finish) != NULL);
    return finish_certificate(w->peer[0].finish) != NULL;
}

/* The coordinator counts fewer voters than another peer. The longer list applies: both peers
 * together decide a certificate only if they are a quorum of it. */
static void test_longer_list_of_voters_applies(void **state)
{
    (void)state;
    for (uint32_t n_voters = 2; n_voters < 6; n_voters++) {
        struct world w;
        open_world(&w, 1, 2);
        w.peer[1].n_voters = n_voters;
        assert_int_equal(decides(&w, 2), n_voters < 5);
        close_world(&w);
    }
}

/* Half of the voters is a quorum only with the initial member that has the smallest identity. A
 * member that votes instead of it does not decide between equal halves. */
static void test_replaced_first_does_not_decide_between_halves(void **state)
{
    (void)state;
    for (uint32_t n_voters = 3; n_voters < 5; n_voters++)
        for (int replaced = 0; replaced < 2; replaced++) {
            struct world w;
            open_world(&w, 1, 2);
            w.peer[0].n_voters = w.peer[1].n_voters = n_voters;
            w.peer[0].first_is_replaced = w.peer[1].first_is_replaced = replaced;
            assert_int_equal(decides(&w, 2), n_voters == 3 || !replaced);
            close_world(&w);
        }
}

/* Three initial members. Two of them were replaced, and the new processes do not know that all three
 * peers vote. The third peer does. */
static void test_list_of_another_peer_makes_a_quorum(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, 1, 3);
    w.peer[0].n_voters = w.peer[1].n_voters = 1;
    assert_true(decides(&w, 3));
    close_world(&w);
}

/* The coordinator knows one of three voters, and that there are three. The list of the other peer has
 * the same length, but names all voters. */
static void test_list_that_names_more_voters_applies(void **state)
{
    (void)state;
    for (int reports = 0; reports < 2; reports++) {
        struct world w;
        open_world(&w, 1, 2);
        w.peer[reports].n_voters = 1;
        w.peer[reports].n_unknown = 2;
        w.peer[!reports].n_voters = 3;
        assert_true(decides(&w, 2));
        close_world(&w);
    }
}

/* The coordinator knows no initial member, so it takes all four members for voters. The other peer
 * knows the initial members 0, 1 and 2. Two of the three are absent: there is no quorum. */
static void test_list_without_initial_members_does_not_apply(void **state)
{
    (void)state;
    for (int reports = 0; reports < 2; reports++) {
        struct world w;
        open_world(&w, 1, 2);
        w.peer[reports].knows_no_initial = true;
        w.peer[reports].n_voters = 2;
        w.peer[!reports].n_voters = 5;
        assert_false(decides(&w, 2));
        close_world(&w);
        /* A longer list without initial members does not apply either. */
        open_world(&w, 1, 2);
        w.peer[reports].knows_no_initial = true;
        w.peer[reports].n_voters = 5;
        w.peer[!reports].n_voters = 2;
        assert_true(decides(&w, 2));
        close_world(&w);
    }
}

/* Delivers all messages, also those that are sent meanwhile. */
static void deliver_all(struct world *w)
{
    while (w->n_queue > 0)
        deliver(w);
    check(w);
}

/* Opens a world of connected peers with the models 1, 3, 1, 3, ... */
static void open_apart(struct world *w, uint32_t n)
{
    open_world(w, 1, n);
    for (uint32_t i = 0; i < n; i++) {
        w->peer[i].model = i % 2 == 0 ? 1 : 3;
        for (uint32_t k = 0; k < i; k++)
            connect(w, i, k);
    }
}

/* The last message that record_sent() received, with a copy of its proposal. */
static struct wire_finish sent;
static uint8_t sent_proposal[WIRE_FINISH_PROPOSAL_MAX];

static void record_sent(void *self, uint32_t link, const struct wire_finish *m)
{
    (void)self;
    (void)link;
    sent = *m;
    if (m->proposal.n > 0)
        memcpy(sent_proposal, m->proposal.p, m->proposal.n);
    sent.proposal.p = sent_proposal;
}

static bool keep_nothing(void *self, const uint8_t *bytes, size_t n)
{
    (void)self;
    (void)bytes;
    return n > 0;
}

/* Sends peer f the answer of one peer that has accepted a proposal in the ballot with this
 * number. */
static void answer_accepted(struct finish *f, uint32_t link, const struct wire_ballot *asked,
                            uint64_t number)
{
    struct finish_proposal p = {.distance = 1e-4, .mean_norm = 1, .origin.number = number, .n = 1};
    struct wire_finish m = {.word = WIRE_FINISH_REPORT,
                            .ballot = *asked,
                            .promised = *asked,
                            .accepted = {.number = number}};
    uint8_t bytes[WIRE_FINISH_PROPOSAL_MAX];
    p.member[0] = (struct finish_member){.key = 1, .status = FINISH_WITHIN};
    m.proposal = (struct bytes){bytes, finish_encode(bytes, &p)};
    assert_true(finish_receive(f, link, &m));
}

/* Two peers have accepted the proposals of different ballots. A peer that sums up their answers must
 * pass on the proposal of the later ballot, which may have been decided. */
static void test_latest_accepted_proposal_wins(void **state)
{
    (void)state;
    for (uint32_t first = 0; first < 2; first++) {
        struct world w;
        open_world(&w, 1, 4);
        struct finish_owner owner = {.self = &w.peer[3],
                                     .links = peer_links,
                                     .send = record_sent,
                                     .members = peer_members,
                                     .voters = peer_voters,
                                     .quorum = peer_quorum,
                                     .keep = keep_nothing};
        fill_id(owner.id, 3);
        struct finish *f = finish_open(&owner, (struct bytes){0});
        assert_non_null(f);
        for (uint32_t k = 0; k < 3; k++) {
            w.link[3][k] = k + 1;
            finish_link_up(f, k + 1);
        }
        struct finish_view v = {.now_us = 1, .mixes = true, .target = TARGET};
        (void)finish_update(f, &v);
        struct wire_finish ask = {.word = WIRE_FINISH_ASK, .ballot.number = 5};
        fill_id(ask.ballot.id, 0);
        assert_true(finish_receive(f, 1, &ask));
        answer_accepted(f, 2, &ask.ballot, 1 + first);
        answer_accepted(f, 3, &ask.ballot, 2 - first);
        struct finish_proposal p;
        assert_int_equal(sent.word, WIRE_FINISH_REPORT);
        assert_int_equal(sent.accepted.number, 2);
        assert_true(finish_decode(&p, sent.proposal));
        assert_int_equal(p.origin.number, 2);
        finish_close(f);
        close_world(&w);
    }
}

/* If the distance of the models exceeds the target, there must be no certificate. All peers must
 * abort the attempt, and the next attempt must decide about new models. */
static void test_models_apart_abort_the_attempt(void **state)
{
    (void)state;
    struct world w;
    open_apart(&w, 3);
    for (uint32_t i = 0; i < 3; i++)
        freeze(&w, i, true);
    update(&w, 0);
    deliver_all(&w);
    for (uint32_t i = 0; i < 3; i++) {
        assert_null(finish_certificate(w.peer[i].finish));
        assert_int_equal(finish_attempt(w.peer[i].finish), 1);
        assert_false(w.peer[i].frozen);
        freeze(&w, i, true);
    }
    update(&w, 0);
    deliver_all(&w);
    for (uint32_t i = 0; i < 3; i++) {
        const struct finish_proposal *p = finish_certificate(w.peer[i].finish);
        assert_non_null(p);
        assert_int_equal(n_within(p), 3);
        assert_true(p->distance < 1e-6);
    }
    close_world(&w);
}

/* A peer that missed the abort of an attempt must learn of the abort when a new session begins, or
 * from the answer to its own ASK message. */
static void test_absent_peer_learns_the_abort(void **state)
{
    (void)state;
    for (int asks = 0; asks < 2; asks++) {
        struct world w;
        open_apart(&w, 3);
        for (uint32_t i = 0; i < 3; i++)
            freeze(&w, i, true);
        w.now_us += PATIENCE_US + 1;
        disconnect(&w, 2, 0);
        disconnect(&w, 2, 1);
        update(&w, 0);
        deliver_all(&w);
        assert_int_equal(finish_attempt(w.peer[0].finish), 1);
        assert_int_equal(finish_attempt(w.peer[2].finish), 0);
        if (asks) { /* The two peers have a session, but the message about the abort is lost. */
            connect(&w, 2, 0);
            w.n_queue = 0;
            w.now_us += 2 * FINISH_TAKEOVER_US;
            update(&w, 2);
        } else {
            connect(&w, 2, 1);
        }
        deliver_all(&w);
        assert_int_equal(finish_attempt(w.peer[2].finish), 1);
        close_world(&w);
    }
}

/* The last attempt to finish must not be aborted: its certificate has a distance above the target.
 * A member that has ended outside the target does not prevent the aborts, because it mixes again
 * after an abort, too. */
static void test_attempts_are_limited(void **state)
{
    (void)state;
    for (int outside = 0; outside < 2; outside++) {
        struct world w;
        open_apart(&w, 3);
        for (uint32_t k = 0; k < FINISH_ATTEMPTS; k++) {
            for (uint32_t i = 0; i < 3; i++) {
                w.peer[i].model = i % 2 == 0 ? 1 : 3;
                freeze(&w, i, !outside || i < 2);
            }
            update(&w, 0);
            deliver_all(&w);
            w.now_us += 1000 * 1000;
        }
        const struct finish_proposal *p = finish_certificate(w.peer[2].finish);
        assert_non_null(p);
        assert_true(p->distance > TARGET);
        assert_int_equal(finish_attempt(w.peer[2].finish), FINISH_ATTEMPTS - 1);
        close_world(&w);
    }
}

/* Opens a world of 5 connected peers with equal models. The first n_frozen peers have frozen
 * (finally stored) models within the target consensus distance. The other peers still mix. */
static void open_mixing(struct world *w, uint32_t n_frozen)
{
    open_world(w, 1, 5);
    for (uint32_t i = 0; i < 5; i++)
        for (uint32_t k = 0; k < i; k++)
            connect(w, i, k);
    for (uint32_t i = 0; i < n_frozen; i++)
        freeze(w, i, true);
}

/* Advances the time by `us`, lets peer 0 act as the coordinator, and delivers all messages. */
static void coordinate(struct world *w, int64_t us)
{
    w->now_us += us;
    update(w, 0);
    deliver_all(w);
}

static void mix(struct world *w, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i <= to; i++)
        w->peer[i].n_rounds += ROUNDS_MAX + 1;
}

/* If members still mix after FINISH_MIXING_US and ROUNDS_MAX rounds, the coordinator must abort the
 * attempt, even if fewer members than a quorum are within the target. While one of these members
 * has mixed for fewer rounds, the coordinator must not abort, because that member is only slow. */
static void test_overdue_members_abort_the_attempt(void **state)
{
    (void)state;
    struct world w;
    open_mixing(&w, 2);
    /* The coordinator does not count these rounds, because it has not sent its first ASK message
     * yet. */
    mix(&w, 2, 4);
    coordinate(&w, FINISH_MIXING_US - 1);
    assert_int_equal(finish_ballots(w.peer[0].finish), 0);
    coordinate(&w, 1);
    assert_int_equal(finish_ballots(w.peer[0].finish), 1);
    mix(&w, 2, 3);
    coordinate(&w, FINISH_TAKEOVER_US);
    assert_int_equal(finish_ballots(w.peer[0].finish), 2);
    assert_int_equal(finish_attempt(w.peer[0].finish), 0);
    mix(&w, 4, 4);
    coordinate(&w, FINISH_TAKEOVER_US);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(finish_attempt(w.peer[i].finish), 1);
        freeze(&w, i, true);
    }
    coordinate(&w, FINISH_TAKEOVER_US);
    for (uint32_t i = 0; i < 5; i++) {
        assert_non_null(finish_certificate(w.peer[i].finish));
        assert_int_equal(n_within(finish_certificate(w.peer[i].finish)), 5);
    }
    close_world(&w);
}

/* In the last attempt the coordinator must wait for members that still mix. After its time limit it
 * must certify the other members. */
static void test_last_attempt_waits_for_members_that_mix(void **state)
{
    (void)state;
    struct world w;
    open_mixing(&w, 3);
    for (uint32_t k = 0; k + 1 < FINISH_ATTEMPTS; k++) {
        for (uint32_t i = 0; i < 3; i++)
            freeze(&w, i, true);
        coordinate(&w, FINISH_MIXING_US);
        mix(&w, 3, 4);
        coordinate(&w, FINISH_TAKEOVER_US);
        assert_int_equal(finish_attempt(w.peer[0].finish), k + 1);
    }
    for (uint32_t i = 0; i < 3; i++)
        freeze(&w, i, true);
    uint64_t n = finish_ballots(w.peer[0].finish);
    coordinate(&w, PATIENCE_US - 1);
    assert_int_equal(finish_ballots(w.peer[0].finish), n);
    mix(&w, 3, 4);
    coordinate(&w, 2);
    assert_non_null(finish_certificate(w.peer[0].finish));
    assert_int_equal(n_within(finish_certificate(w.peer[0].finish)), 3);
    close_world(&w);
}

/* More mixing cannot help if the other members have ended mixing and only store their models. The
 * coordinator must then not abort the attempt. */
static void test_abort_needs_members_that_more_mixing_helps(void **state)
{
    (void)state;
    struct world w;
    open_mixing(&w, 3);
    w.peer[3].stores = w.peer[4].stores = true;
    coordinate(&w, FINISH_MIXING_US);
    mix(&w, 3, 4);
    coordinate(&w, FINISH_TAKEOVER_US);
    assert_true(finish_ballots(w.peer[0].finish) >= 2);
    assert_null(finish_certificate(w.peer[0].finish));
    coordinate(&w, PATIENCE_US);
    assert_int_equal(finish_attempt(w.peer[0].finish), 0);
    assert_non_null(finish_certificate(w.peer[0].finish));
    close_world(&w);
}

/* One member has ended outside the target, and another member is overdue. The coordinator must
 * abort the attempt, because both members mix again after an abort. */
static void test_member_outside_the_target_mixes_again(void **state)
{
    (void)state;
    struct world w;
    open_mixing(&w, 3);
    freeze(&w, 4, false);
    coordinate(&w, FINISH_MIXING_US);
    mix(&w, 3, 3);
    coordinate(&w, FINISH_TAKEOVER_US);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(finish_attempt(w.peer[i].finish), 1);
        freeze(&w, i, true);
    }
    coordinate(&w, FINISH_TAKEOVER_US);
    assert_int_equal(n_within(finish_certificate(w.peer[4].finish)), 5);
    close_world(&w);
}

/* A member answers the ASK of a ballot while it stores its model, and freezes the model before the
 * other answers arrive. The certificate would not cover this model, so the coordinator must ask
 * again. */
static void test_model_frozen_during_a_ballot(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct world w;
        open_mixing(&w, 4);
        w.rng = rng_stream(rng_key(seed, RNG_TEST, 5, 0));
        w.peer[4].stores = true;
        w.now_us += FINISH_MIXING_US;
        update(&w, 0);
        while (w.n_queue > 0) {
            /* Peer 4 has answered the ASK when it has promised the ballot. */
            if (finish_has_promised(w.peer[4].finish))
                freeze(&w, 4, true);
            deliver(&w);
        }
        assert_true(w.peer[4].frozen);
        if (finish_certificate(w.peer[0].finish) == NULL)
            coordinate(&w, FINISH_TAKEOVER_US);
        assert_non_null(finish_certificate(w.peer[0].finish));
        assert_int_equal(n_within(finish_certificate(w.peer[0].finish)), 5);
        close_world(&w);
    }
}

/* The member table of the coordinator lists a member as dead that answers while it stores its model.
 * The coordinator must wait for the model, as for that of any other member. */
static void test_member_that_answers_is_not_dead(void **state)
{
    (void)state;
    struct world w;
    open_mixing(&w, 4);
    w.peer[4].stores = w.peer[4].believed_dead = true;
    coordinate(&w, FINISH_MIXING_US);
    assert_null(finish_certificate(w.peer[0].finish));
    freeze(&w, 4, true);
    coordinate(&w, FINISH_TAKEOVER_US);
    assert_non_null(finish_certificate(w.peer[0].finish));
    assert_int_equal(n_within(finish_certificate(w.peer[0].finish)), 5);
    close_world(&w);
}

/* A member that has ended outside the target has exited and no longer answers. The coordinator must
 * wait only FINISH_ANSWERS_US for such a member, which is shorter than its wait for members that
 * still mix. */
static void test_member_that_exited_does_not_delay_the_end(void **state)
{
    (void)state;
    struct world w;
    open_mixing(&w, 4);
    freeze(&w, 4, false);
    for (uint32_t i = 0; i < 4; i++)
        disconnect(&w, i, 4);
    for (int64_t us = 0; us < FINISH_ANSWERS_US; us += FINISH_TAKEOVER_US) {
        assert_null(finish_certificate(w.peer[0].finish));
        coordinate(&w, FINISH_TAKEOVER_US);
    }
    assert_true(FINISH_ANSWERS_US + FINISH_TAKEOVER_US < PATIENCE_US);
    coordinate(&w, FINISH_TAKEOVER_US);
    assert_non_null(finish_certificate(w.peer[0].finish));
    assert_int_equal(n_within(finish_certificate(w.peer[0].finish)), 4);
    close_world(&w);
}

/* A restarted process must continue in the attempt that its stored promise (ballot and proposal)
 * names. */
static void test_restart_keeps_the_attempt(void **state)
{
    (void)state;
    struct world w;
    open_apart(&w, 3);
    for (uint32_t i = 0; i < 3; i++)
        freeze(&w, i, true);
    update(&w, 0);
    deliver_all(&w);
    for (uint32_t i = 0; i < 3; i++)
        freeze(&w, i, true);
    /* Peer 0 promises a ballot of the second attempt (not to accept proposals of earlier
     * ballots). */
    update(&w, 0);
    crash(&w, 0);
    start(&w, 0);
    assert_int_equal(finish_attempt(w.peer[0].finish), 1);
    close_world(&w);
}

/* A peer whose disk was full during a ballot votes in the next one. */
static void test_votes_again_after_a_full_disk(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, 1, 3);
    crash(&w, 2);
    connect(&w, 0, 1);
    freeze(&w, 0, true);
    freeze(&w, 1, true);
    w.peer[1].full = true;
    for (int i = 0; i < 3; i++) {
        w.now_us += 10 * FINISH_RETRY_US;
        update(&w, 0);
        deliver_all(&w);
    }
    assert_null(finish_certificate(w.peer[0].finish));
    w.peer[1].full = false;
    w.now_us += 10 * FINISH_RETRY_US;
    update(&w, 0);
    deliver_all(&w);
    assert_non_null(finish_certificate(w.peer[0].finish));
    assert_non_null(finish_certificate(w.peer[1].finish));
    close_world(&w);
}

/* A peer whose model is within the target cannot store its vote. The coordinator must wait for it as
 * for a member that does not answer: a disk that has room again in time leads to a certificate of
 * all, and a disk that stays full delays the end by FINISH_ANSWERS_US. A peer that has ended outside
 * the target is not awaited. */
static void test_waits_for_a_member_with_a_full_disk(void **state)
{
    (void)state;
    for (int stays = 0; stays < 2; stays++)
        for (int within = 0; within < 2; within++) {
            struct world w;
            open_mixing(&w, 2);
            for (uint32_t i = 2; i < 5; i++)
                freeze(&w, i, i < 4 || within);
            w.peer[4].full = true;
            coordinate(&w, 1);
            assert_int_equal(finish_ballots(w.peer[0].finish), 1);
            assert_true((finish_certificate(w.peer[0].finish) == NULL) == (within == 1));
            w.peer[4].full = stays;
            coordinate(&w, FINISH_TAKEOVER_US);
            assert_true((finish_certificate(w.peer[0].finish) == NULL) == (within && stays));
            while (w.now_us < FINISH_ANSWERS_US)
                coordinate(&w, FINISH_TAKEOVER_US);
            coordinate(&w, FINISH_TAKEOVER_US);
            const struct finish_proposal *p = finish_certificate(w.peer[0].finish);
            assert_non_null(p);
            assert_int_equal(n_within(p), within && !stays ? 5 : 4);
            close_world(&w);
        }
}

/* A peer that cannot store or read its promise (its stored ballot and proposal) must send no ASK
 * message. Its answers to ASK messages must contain no vote for a ballot. */
static void test_lost_promise_takes_the_vote(void **state)
{
    (void)state;
    for (int read = 0; read < 2; read++) {
        struct world w;
        open_world(&w, 1, 3);
        if (read) {
            finish_close(w.peer[0].finish);
            w.peer[0].n_promise = 1;
            start(&w, 0);
        } else {
            w.peer[0].full = true;
        }
        for (uint32_t i = 0; i < 3; i++) {
            connect(&w, i, (i + 1) % 3);
            freeze(&w, i, true);
        }
        update(&w, 0);
        assert_int_equal(w.n_queue, 0);
        assert_int_equal(finish_has_promised(w.peer[0].finish), read);
        /* A peer that cannot store its promise is awaited, because its disk may have room again. */
        w.now_us += read ? FINISH_TAKEOVER_US : FINISH_ANSWERS_US + 1;
        update(&w, 1);
        while (w.n_queue > 0)
            deliver(&w);
        check(&w);
        assert_non_null(finish_certificate(w.peer[0].finish));
        close_world(&w);
    }
}

/* A peer accepts a proposal and restarts before it receives the certificate. The certificate must
 * list the peer, because the model of its earlier process was within the target. The certificate
 * must not cover the model of the new process. */
static void test_certificate_does_not_cover_a_later_process(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, 1, 3);
    for (uint32_t i = 0; i < 3; i++) {
        connect(&w, i, (i + 1) % 3);
        freeze(&w, i, true);
    }
    update(&w, 0);
    while (finish_certificate(w.peer[0].finish) == NULL)
        deliver(&w);
    assert_null(finish_certificate(w.peer[2].finish));
    w.peer[2].stored = true;
    crash(&w, 2);
    start(&w, 2);
    w.peer[2].model = 9;
    freeze(&w, 2, true);
    connect(&w, 0, 2);
    while (w.n_queue > 0)
        deliver(&w);
    check(&w);
    const struct finish_proposal *p = finish_certificate(w.peer[2].finish);
    uint8_t id[WIRE_ID_BYTES];
    fill_id(id, 2);
    assert_non_null(p);
    assert_int_equal(finish_status_of(p, id), FINISH_WITHIN);
    assert_true(finish_covers(w.peer[0].finish) && finish_covers(w.peer[1].finish));
    assert_false(finish_covers(w.peer[2].finish));
    close_world(&w);
}

/* Bytes that are not a proposal are refused, and change nothing. */
static void test_bad_proposals_are_refused(void **state)
{
    (void)state;
    struct finish_proposal p = {.distance = 0.5, .mean_norm = 1, .origin.number = 1, .n = 2}, out;
    p.member[0] = (struct finish_member){.key = 1, .status = FINISH_WITHIN};
    p.member[1] = (struct finish_member){.key = 2, .status = FINISH_DEAD};
    uint8_t bytes[WIRE_FINISH_PROPOSAL_MAX];
    size_t n = finish_encode(bytes, &p);
    assert_true(finish_decode(&out, (struct bytes){bytes, n}));
    for (size_t cut = 0; cut < n; cut++)
        /* Two of the truncated proposals are valid: a proposal with the first member only, and
         * an abort, which has no member. */
        if (cut != n - WIRE_FINISH_ENTRY && cut != n - (size_t)2 * WIRE_FINISH_ENTRY)
            assert_false(finish_decode(&out, (struct bytes){bytes, cut}));
    p.member[1].key = 1;
    n = finish_encode(bytes, &p);
    assert_false(finish_decode(&out, (struct bytes){bytes, n}));
    p.member[1] = (struct finish_member){.key = 2, .status = FINISH_STATUSES};
    n = finish_encode(bytes, &p);
    assert_false(finish_decode(&out, (struct bytes){bytes, n}));
    p.member[0].status = p.member[1].status = FINISH_DEAD;
    n = finish_encode(bytes, &p);
    assert_false(finish_decode(&out, (struct bytes){bytes, n}));
    p.member[0].status = FINISH_WITHIN;
    p.distance = -1;
    n = finish_encode(bytes, &p);
    assert_false(finish_decode(&out, (struct bytes){bytes, n}));
    p.distance = (double)NAN;
    n = finish_encode(bytes, &p);
    assert_false(finish_decode(&out, (struct bytes){bytes, n}));
    p.distance = 0;
    p.origin.number = 0;
    n = finish_encode(bytes, &p);
    assert_false(finish_decode(&out, (struct bytes){bytes, n}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_all_certificates_are_equal, print_seed),
        cmocka_unit_test_teardown(test_connected_majority_gets_a_certificate, print_seed),
        cmocka_unit_test(test_worlds_take_all_steps_of_the_model),
        cmocka_unit_test(test_one_ballot_decides),
        cmocka_unit_test(test_partial_answer_is_no_whole_sum),
        cmocka_unit_test(test_longer_list_of_voters_applies),
        cmocka_unit_test(test_replaced_first_does_not_decide_between_halves),
        cmocka_unit_test(test_list_of_another_peer_makes_a_quorum),
        cmocka_unit_test(test_list_that_names_more_voters_applies),
        cmocka_unit_test(test_list_without_initial_members_does_not_apply),
        cmocka_unit_test(test_latest_accepted_proposal_wins),
        cmocka_unit_test(test_models_apart_abort_the_attempt),
        cmocka_unit_test(test_absent_peer_learns_the_abort),
        cmocka_unit_test(test_attempts_are_limited),
        cmocka_unit_test(test_overdue_members_abort_the_attempt),
        cmocka_unit_test(test_last_attempt_waits_for_members_that_mix),
        cmocka_unit_test(test_abort_needs_members_that_more_mixing_helps),
        cmocka_unit_test(test_member_outside_the_target_mixes_again),
        cmocka_unit_test(test_model_frozen_during_a_ballot),
        cmocka_unit_test(test_member_that_answers_is_not_dead),
        cmocka_unit_test(test_member_that_exited_does_not_delay_the_end),
        cmocka_unit_test(test_restart_keeps_the_attempt),
        cmocka_unit_test(test_votes_again_after_a_full_disk),
        cmocka_unit_test(test_waits_for_a_member_with_a_full_disk),
        cmocka_unit_test(test_lost_promise_takes_the_vote),
        cmocka_unit_test(test_certificate_does_not_cover_a_later_process),
        cmocka_unit_test(test_bad_proposals_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
