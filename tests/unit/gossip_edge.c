/* tests/unit/gossip_edge.c -- tests the exchange protocol of one edge: one scenario step by step,
 * lost sessions at every point, random events, and each rule by itself. */
#include "gossip_edge_world.h"

/* ---- one scenario, step by step ---- */

static void test_story(void **state)
{
    struct world w;
    (void)state;
    world_init(&w, 0);
    struct edge *a = &w.end[0].e, *b = &w.end[1].e;
    assert_int_equal(a->state, EDGE_CLOSED);
    link_up(&w); /* Both ends send an EDGE message with epoch 0 and round 0. */
    assert_int_equal(a->state, EDGE_ASKING);
    deliver(&w, 0);
    assert_int_equal(b->state, EDGE_OPEN);
    assert_int_equal(a->state, EDGE_ASKING);
    deliver(&w, 1);
    assert_int_equal(a->state, EDGE_OPEN);
    assert_true(a->epoch != 0 && a->epoch == b->epoch);
    assert_true(a->reset && b->reset);
    /* When the ends first agree on an epoch, their reset is not counted. */
    assert_int_equal(a->n_resets + b->n_resets, 0);
    assert_true(edge_wants_delta(a) && !edge_ready(a));
    for (int k = 0; k < 2; k++) {
        job_start(&w, k);
        job_finish(&w, k);
    }
    assert_false(edge_wants_delta(a));
    assert_false(edge_ready(a)); /* The delta of end b is still on the way. */
    deliver(&w, 1);
    assert_true(edge_ready(a));
    assert_int_equal(a->round, 0);
    job_start(&w, 0);
    /* The job commits the exchange of round 0 at its end, not before. */
    assert_int_equal(a->round, 0);
    job_finish(&w, 0);
    assert_int_equal(a->round, 1);
    assert_int_equal(a->n_exchanges, 1);
    deliver(&w, 0);
    /* The delta of round 1 from end a arrives while end b is still at round 0. End b keeps it. */
    deliver(&w, 0);
    assert_int_equal(b->round, 0);
    assert_true(b->got[0].full && b->got[1].full);
    edge_pause(b, false); /* End b pauses the edge, as after a silence of the other end. */
    assert_int_equal(b->state, EDGE_PAUSED);
    /* A complete exchange may still be committed while the edge is paused. */
    assert_true(edge_ready(b));
    job_start(&w, 1);
    assert_false(w.end[1].job.encode); /* No delta is made for a paused edge. */
    job_finish(&w, 1);
    b->state = EDGE_OPEN;
    assert_int_equal(b->round, 1);

    /* The session breaks while deltas of end b are on the way. End a is at round 1, end b at
     * round 2. */
    job_start(&w, 1);
    job_finish(&w, 1);
    assert_true(edge_ready(b));
    job_start(&w, 1);
    job_finish(&w, 1);
    cut(&w);
    notice_loss(&w, 0);
    assert_int_equal(a->state, EDGE_PAUSED);
    link_up(&w);
    uint64_t epoch = a->epoch;
    deliver(&w, 0);
    assert_int_equal(w.queue[1].n, 3); /* End b sends EDGE and its deltas of rounds 1 and 2. */
    deliver(&w, 1);
    assert_int_equal(a->state, EDGE_OPEN);
    assert_false(edge_ready(a));
    deliver(&w, 1);
    assert_true(edge_ready(a));
    deliver(&w, 1);
    /* End b drops the delta of round 1 from end a, because it has received this delta before. */
    deliver(&w, 0);
    run_fair(&w, 3);
    assert_int_equal(a->epoch, epoch);
    assert_int_equal(a->n_resets + b->n_resets, 0);

    restart(&w, 1); /* End b restarts without any state, so end a must reset the edge. */
    run_fair(&w, 3);
    assert_true(a->epoch != epoch);
    assert_int_equal(a->n_resets, 1);
    assert_int_equal(b->n_resets, 0);

    end_ask(&w, 0, true); /* The replicas differ, so end a asks for a reset. */
    run_fair(&w, 3);
    assert_int_equal(a->n_resets, 2);
    assert_int_equal(b->n_resets, 1);
    world_close(&w);
}

/* ---- cut at every point ---- */

/* Runs event i of a fixed schedule, in which the two ends take turns. */
static void script(struct world *w, int i)
{
    int k = i / 4 % 2;
    switch (i % 4) {
    case 0:
        job_start(w, k);
        break;
    case 1:
        deliver(w, k);
        break;
    case 2:
        job_finish(w, k);
        break;
    case 3:
        deliver(w, 1 - k);
        break;
    }
    check(w);
}

static void test_cut_everywhere(void **state)
{
    enum { SPAN = 48 };
    struct world w;
    (void)state;
    for (int first = 0; first < SPAN; first++)
        for (int second = 0; second < SPAN; second++) {
            world_init(&w, (uint64_t)first * SPAN + (uint64_t)second);
            link_up(&w);
            for (int i = 0; i < first; i++)
                script(&w, i);
            cut(&w);
            link_up(&w);
            for (int i = 0; i < second; i++)
                script(&w, i + first % 3);
            cut(&w);
            run_fair(&w, 2);
            check_one_epoch(&w);
            world_close(&w);
        }
}

/* ---- EDGE messages sent again on a slow link ---- */

/* Advances the time by one step: each end runs a job, and messages that were sent `latency` steps
 * ago arrive. */
static void slow_step(struct world *w, uint64_t latency)
{
    w->now++;
    for (int k = 0; k < 2; k++) {
        struct queue *q = &w->queue[k];
        while (q->n > 0 && q->at[q->first].sent + latency <= w->now)
            deliver(w, k);
    }
    for (int k = 0; k < 2; k++) {
        job_start(w, k);
        job_finish(w, k);
    }
    check(w);
}

/* Runs 200 steps without further requests of the test. Then the ends must have agreed on one epoch
 * and done more than 10 rounds in it, and must have sent at most `limit` further EDGE messages.
 * edges: number of EDGE messages sent before. */
static void check_agreement(struct world *w, uint64_t latency, uint64_t edges, uint64_t limit)
{
    for (int i = 0; i < 200; i++)
        slow_step(w, latency);
    if (w->n_edges_sent - edges > limit || w->end[0].e.epoch != w->end[1].e.epoch
        || w->end[0].e.round <= 10)
        fail_msg("seed %llu, latency %llu: %llu EDGE messages, epochs %llx %llx, round %llu",
                 (unsigned long long)w->seed, (unsigned long long)latency,
                 (unsigned long long)(w->n_edges_sent - edges),
                 (unsigned long long)w->end[0].e.epoch, (unsigned long long)w->end[1].e.epoch,
                 (unsigned long long)w->end[0].e.round);
    run_fair(w, 2);
}

/* End 0 asks twice, the second time `gap` steps after the first. End 1 asks once after `other`
 * steps, or not at all (15). Deltas of both ends are in flight. */
static void test_ask_again_in_flight(void **state)
{
    struct world w;
    (void)state;
    for (uint64_t latency = 1; latency <= 6; latency++)
        for (int gap = 0; gap <= 14; gap++)
            for (int other = 0; other <= 15; other++) {
                world_init(&w, (uint64_t)gap * 16 + (uint64_t)other);
                link_up(&w);
                for (int i = 0; i < 30; i++)
                    slow_step(&w, latency);
                uint64_t edges = w.n_edges_sent;
                end_ask(&w, 0, true);
                for (int i = 0; i < 15; i++) {
                    if (i == gap)
                        end_ask(&w, 0, true);
                    if (i == other)
                        end_ask(&w, 1, true);
                    slow_step(&w, latency);
                }
                check_agreement(&w, latency, edges, 12);
                world_close(&w);
            }
}

/* Both ends ask again at random times, for 40 steps. */
static void test_ask_often(void **state)
{
    struct world w;
    (void)state;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        uint64_t latency = 1 + seed % 6;
        world_init(&w, seed);
        link_up(&w);
        for (int i = 0; i < 40; i++) {
            for (int k = 0; k < 2; k++)
                if (rng_below(&w.rng, 4) == 0)
                    end_ask(&w, k, rng_below(&w.rng, 2) == 0);
            slow_step(&w, latency);
        }
        /* The largest number of further messages seen is 4. */
        check_agreement(&w, latency, w.n_edges_sent, 8);
        world_close(&w);
    }
}

/* ---- random events ---- */

enum trouble {
    CUTS = 1,     /* Sessions break at random. */
    RESTARTS = 2, /* An end restarts and loses all state. */
    REASKS = 4    /* Both ends send EDGE again in a session, or close and reopen the edge. */
};

static void random_event(struct world *w, int trouble)
{
    int k = (int)rng_below(&w->rng, 2);
    uint64_t dice = rng_below(&w->rng, 1000);
    if (dice < 400)
        deliver(w, k);
    else if (dice < 600)
        job_start(w, k);
    else if (dice < 800)
        job_finish(w, k);
    else if (dice < 830 && trouble & CUTS)
        cut(w);
    else if (dice < 860)
        notice_loss(w, k);
    else if (dice < 940)
        link_up(w);
    else if (dice < 944 && trouble & RESTARTS)
        restart(w, k);
    else if (dice < 950 && trouble & REASKS && w->end[k].present && w->end[k].linked)
        end_ask(w, k, dice % 2 == 0);
    else if (dice < 956 && trouble & REASKS && w->end[k].present && !w->end[k].job.runs)
        end_close(w, k);
    else if (dice < 980 && !w->end[k].present)
        end_open(w, k);
    check(w);
}

static void random_runs(int trouble, uint64_t n_seeds)
{
    struct world w;
    const char *only = getenv("SEED");
    uint64_t first = only != NULL ? strtoull(only, NULL, 0) : 1;
    uint64_t last = only != NULL ? first : n_seeds, commits = 0, resets = 0;
    for (uint64_t seed = first; seed <= last; seed++) {
        world_init(&w, seed);
        for (int i = 0; i < 1500; i++)
            random_event(&w, trouble);
        uint64_t before = w.end[0].e.n_resets + w.end[1].e.n_resets;
        /* The first of two runs without faults may still reset the edge. The second must not. */
        for (int i = 0; i < 2; i++) {
            run_fair(&w, 2);
            uint64_t after = w.end[0].e.n_resets + w.end[1].e.n_resets;
            assert_true(i == 0 || after == before);
            before = after;
            cut(&w);
        }
        if (!(trouble & (RESTARTS | REASKS)))
            check_one_epoch(&w);
        commits += w.end[0].n_log;
        resets += before;
        world_close(&w);
    }
    print_message("seeds %llu..%llu: %llu exchanges, %llu resets\n", (unsigned long long)first,
                  (unsigned long long)last, (unsigned long long)commits,
                  (unsigned long long)resets);
}

static void test_random(void **state)
{
    (void)state;
    random_runs(0, 20);
    random_runs(CUTS, 300);
    random_runs(CUTS | RESTARTS, 300);
    random_runs(CUTS | RESTARTS | REASKS, 600);
    random_runs(REASKS, 300);
}

/* Simulates that both processes are killed and restarted from checkpoints of the same moment.
 * Deltas that were received but not applied are lost. Returns false if an end cannot restart from a
 * checkpoint now. */
static bool restore_both(struct world *w)
{
    for (int k = 0; k < 2; k++)
        if (w->end[k].job.runs || w->end[k].e.cur.payload == NULL || w->end[k].e.reset)
            return false;
    if (w->end[0].e.epoch != w->end[1].e.epoch)
        return false;
    cut(w);
    for (int k = 0; k < 2; k++) {
        struct edge *e = &w->end[k].e;
        notice_loss(w, k);
        w->end[k].boot++;
        e->got[0].full = e->got[1].full = false;
        e->restored = true;
        e->met_boot = 0;
    }
    return true;
}

/* Both ends restart from checkpoints. After that, sessions break at random moments, so that one end
 * may have committed an exchange that the other has not. Even so, the edge must not begin a new
 * epoch. */
static void test_restored_and_cut(void **state)
{
    struct world w;
    const char *only = getenv("SEED");
    uint64_t first = only != NULL ? strtoull(only, NULL, 0) : 1;
    uint64_t last = only != NULL ? first : 300, n = 0;
    (void)state;
    for (uint64_t seed = first; seed <= last; seed++) {
        world_init(&w, seed);
        for (int i = 0; i < 1500; i++) {
            random_event(&w, CUTS);
            n += i % 100 > 95 && w.end[0].e.round > 1 && restore_both(&w);
        }
        run_fair(&w, 2);
        check_one_epoch(&w);
        world_close(&w);
    }
    print_message("restored %llu times\n", (unsigned long long)n);
    assert_true(n >= last - first);
}

/* ---- single rules ---- */

static const struct sketch_message no_sketch;

/* Opens one end of an edge at round 0 in epoch 77. There is no other end. */
static void open_edge(struct edge *e, struct packet_pool *pool)
{
    uint8_t self[WIRE_ID_BYTES] = {1}, other[WIRE_ID_BYTES] = {2};
    assert_int_equal(edge_init(e, self, other, PAYLOAD), 0);
    e->state = EDGE_OPEN;
    e->epoch = 77;
    packet_pool_init(pool, PAYLOAD);
}

static void test_verdicts(void **state)
{
    struct edge e;
    struct packet_pool pool;
    uint8_t bytes[PAYLOAD + 1] = {0};
    (void)state;
    open_edge(&e, &pool);
    const struct wire_delta good = {.epoch = 77, .degree = 1, .payload = {bytes, PAYLOAD}};
    struct wire_delta d = good;
    assert_int_equal(edge_check(&e, &d), EDGE_ACCEPT);
    d.epoch = 76;
    assert_int_equal(edge_check(&e, &d), EDGE_STALE);
    d.round = 9; /* If the epoch of a delta is wrong, its other errors do not matter. */
    d.degree = 0;
    assert_int_equal(edge_check(&e, &d), EDGE_STALE);
    d = good, d.codec = DELTA_CODECS;
    assert_int_equal(edge_check(&e, &d), EDGE_VIOLATION);
    d = good, d.degree = 0;
    assert_int_equal(edge_check(&e, &d), EDGE_VIOLATION);
    d = good, d.payload.n = PAYLOAD + 1;
    assert_int_equal(edge_check(&e, &d), EDGE_VIOLATION);
    d = good, d.payload.n = 0; /* The codec detects a payload that is too short. */
    assert_int_equal(edge_check(&e, &d), EDGE_ACCEPT);

    /* The other end cannot be in round 1, because this end has not made its delta of round 0. */
    d = good, d.round = 1;
    assert_int_equal(edge_check(&e, &d), EDGE_VIOLATION);
    e.cur.payload = packet_get(&pool);
    assert_int_equal(edge_check(&e, &d), EDGE_ACCEPT);
    d.round = 2;
    assert_int_equal(edge_check(&e, &d), EDGE_VIOLATION);
    d.round = UINT64_MAX;
    assert_int_equal(edge_check(&e, &d), EDGE_VIOLATION);

    d = good;
    edge_store(&e, &d, &no_sketch);
    assert_int_equal(edge_check(&e, &d), EDGE_REPEAT);
    assert_true(edge_ready(&e));
    (void)edge_take(&e);
    edge_advance(&e);
    /* A delta of a finished round is a repeat. */
    assert_int_equal(edge_check(&e, &d), EDGE_REPEAT);

    e.epoch = 0; /* Without an epoch, no delta is accepted, not even one of epoch 0. */
    d = good, d.epoch = 0;
    assert_int_equal(edge_check(&e, &d), EDGE_STALE);
    edge_close(&e);
    packet_pool_close(&pool);
}

/* The bytes that a job works on stay the same, whatever arrives or is reset meanwhile. */
static void test_take(void **state)
{
    struct edge e;
    struct packet_pool pool;
    uint8_t bytes[PAYLOAD];
    (void)state;
    open_edge(&e, &pool);
    e.cur.payload = packet_get(&pool);
    struct wire_delta d = {.epoch = 77, .degree = 1, .payload = {bytes, PAYLOAD}};
    memset(bytes, 0xa0, sizeof bytes);
    edge_store(&e, &d, &no_sketch);
    const uint8_t *taken = edge_take(&e);
    d.round = 1;
    memset(bytes, 0xa1, sizeof bytes);
    /* The other end is one round ahead, so its delta of round 1 arrives already. */
    edge_store(&e, &d, &no_sketch);
    struct wire_edge m;
    edge_ask(&e, 5, 6, true, &m);
    assert_int_equal(m.epoch, 0);
    (void)edge_hear(&e, &(struct wire_edge){.nonce = 8, .answers = 5, .boot = 9});
    assert_true(edge_agree(&e, 6) && e.reset);
    for (uint64_t r = 0; r < 2; r++) { /* Deltas of the first two rounds of the new epoch arrive. */
        if (r == 1)
            e.cur.payload = packet_get(&pool);
        d.epoch = e.epoch;
        d.round = r;
        memset(bytes, 0xb0 + (int)r, sizeof bytes);
        assert_int_equal(edge_check(&e, &d), EDGE_ACCEPT);
        edge_store(&e, &d, &no_sketch);
    }
    for (int i = 0; i < PAYLOAD; i++)
        assert_int_equal(taken[i], 0xa0);
    assert_false(edge_ready(&e)); /* The replicas are not reset yet, so the edge may not commit. */
    e.reset = false;
    assert_true(edge_ready(&e));
    const uint8_t *next = edge_take(&e);
    assert_int_equal(next[0], 0xb0);
    assert_int_equal(next[PAYLOAD - 1], 0xb0);
    edge_close(&e);
    packet_pool_close(&pool);
}

/* Two requests that cross are used as a pair only if both are the first ones on the session.
 * Otherwise the end with the higher identity answers, and the other end waits for the answer. */
static void test_crossing_requests(void **state)
{
    uint8_t id[2][WIRE_ID_BYTES] = {{1}, {2}};
    (void)state;
    for (int i = 0; i < 8; i++) {
        bool low = i & 1, own_first = i & 2, their_first = i & 4, pair = own_first && their_first;
        struct wire_edge m;
        struct edge e;
        assert_int_equal(edge_init(&e, id[!low], id[low], PAYLOAD), 0);
        if (!own_first)
            assert_false(edge_hear(&e, &(struct wire_edge){.nonce = 9, .answers = 77}));
        edge_ask(&e, 2, 3, false, &m);
        assert_true(m.first == own_first && m.answers == 0);
        bool answers =
            edge_hear(&e, &(struct wire_edge){.nonce = 4, .boot = 5, .first = their_first});
        assert_int_equal(answers, !pair && !low);
        if (answers) {
            edge_ask(&e, 6, 3, false, &m);
            assert_true(m.answers == 4 && !m.first);
        }
        assert_int_equal(edge_agree(&e, 3), pair || !low);
        edge_close(&e);
    }
}

/* The new epoch is a function of the boot ids and nonces of both ends, is equal at both ends, and
 * is never 0. */
static void test_epochs(void **state)
{
    uint8_t id[2][WIRE_ID_BYTES] = {{1}, {2}};
    (void)state;
    uint64_t seen[64];
    for (uint64_t i = 0; i < 64; i++) {
        struct edge e[2];
        struct wire_edge m[2];
        uint64_t boot[2] = {i & 1, i >> 1 & 1}, nonce[2] = {i >> 2 & 3, i >> 4 & 3};
        for (int k = 0; k < 2; k++) {
            assert_int_equal(edge_init(&e[k], id[k], id[1 - k], PAYLOAD), 0);
            /* No EDGE message has arrived, so the ends have not agreed on an epoch. */
            assert_false(edge_agree(&e[k], boot[k]));
        }
        edge_ask(&e[0], 4 * nonce[0] + 1, boot[0], false, &m[0]);
        assert_true(m[0].answers == 0 && edge_hear(&e[1], &m[0]));
        edge_ask(&e[1], 4 * nonce[1] + 2, boot[1], false, &m[1]);
        assert_true(m[1].answers == m[0].nonce && !edge_hear(&e[0], &m[1]));
        for (int k = 0; k < 2; k++) {
            assert_true(edge_agree(&e[k], boot[k]));
            /* Each pair of EDGE messages is evaluated only once. */
            assert_false(edge_agree(&e[k], boot[k]));
        }
        assert_true(e[0].epoch != 0 && e[0].epoch == e[1].epoch);
        seen[i] = e[0].epoch;
        for (uint64_t j = 0; j < i; j++)
            assert_true(seen[j] != seen[i]);
        edge_close(&e[0]);
        edge_close(&e[1]);
    }
}

/* In one epoch, one end of an edge may be one exchange ahead of the other. If the difference is
 * larger, the edge must be reset. The edge must also be reset if the other end is ahead and this
 * end no longer has its own delta of that exchange, because it restarted from a checkpoint. */
static void test_rounds_apart(void **state)
{
    (void)state;
    for (uint64_t k = 0; k < 10; k++) {
        uint64_t theirs = 3 + k % 5;
        bool has_delta = k < 5;
        struct edge e;
        struct packet_pool pool;
        struct wire_edge m;
        open_edge(&e, &pool);
        e.opened = true;
        e.round = 5;
        e.prev.payload = packet_get(&pool);
        e.cur.payload = has_delta ? packet_get(&pool) : NULL;
        edge_ask(&e, 2, 3, false, &m);
        assert_false(
            edge_hear(&e, &(struct wire_edge){
                              .epoch = 77, .round = theirs, .nonce = 4, .answers = 2, .boot = 5}));
        assert_true(edge_agree(&e, 3));
        bool goes_on = theirs >= 4 && theirs <= (has_delta ? 6 : 5);
        assert_int_equal(e.epoch == 77, goes_on);
        assert_int_equal(e.n_resets, !goes_on);
        assert_int_equal(e.resend_cur, goes_on && has_delta);
        assert_int_equal(e.resend_prev, theirs == 4);
        edge_close(&e);
        packet_pool_close(&pool);
    }
}

/* If one end of an edge was restored from a checkpoint and the other was not, the edge must be
 * reset: the other end may have applied an exchange that the checkpoint does not contain. The edge
 * continues if both ends were restored, and neither has received a delta since: a process that
 * starts again from the same checkpoint would make another delta. The edge also continues if the
 * same two processes have continued it once. */
static void test_restored(void **state)
{
    static const uint64_t met[] = {0, 5, 9};
    uint8_t bytes[PAYLOAD] = {0};
    const struct wire_delta d = {.epoch = 77, .degree = 1, .round = 5, .payload = {bytes, PAYLOAD}};
    (void)state;
    for (int k = 0; k < 24; k++) {
        struct edge e;
        struct packet_pool pool;
        struct wire_edge m;
        bool restored = k & 1, theirs = k & 2, received = k >= 12;
        bool ours = restored && !received, goes_on = ours == theirs || met[k / 4 % 3] == 5;
        open_edge(&e, &pool);
        e.opened = true;
        e.restored = restored;
        e.met_boot = met[k / 4 % 3];
        e.round = 5;
        e.cur.payload = packet_get(&pool);
        if (received)
            edge_store(&e, &d, &no_sketch);
        edge_ask(&e, 2, 3, false, &m);
        assert_int_equal(m.restored, ours);
        struct wire_edge said = {
            .epoch = 77, .round = 5, .nonce = 4, .answers = m.nonce, .boot = 5, .restored = theirs};
        assert_false(edge_hear(&e, &said));
        assert_true(edge_agree(&e, 3));
        assert_int_equal(e.epoch == 77, goes_on);
        assert_int_equal(e.met_boot, goes_on ? 5 : 0);
        assert_int_equal(e.restored, ours && goes_on);
        edge_close(&e);
        packet_pool_close(&pool);
    }
}

/* This end sends EDGE on a session on which deltas still arrive, then commits a job, and then
 * receives the EDGE of the other end. Both ends must decide by the contents of the two EDGE
 * messages, although the deltas have changed this end since. */
static void test_commit_after_ask(void **state)
{
    struct edge e;
    struct packet_pool pool;
    struct wire_edge m, said = {.epoch = 77, .round = 5, .nonce = 4, .boot = 5, .restored = true};
    uint8_t bytes[PAYLOAD] = {0};
    struct wire_delta d = {.epoch = 77, .degree = 1, .round = 5, .payload = {bytes, PAYLOAD}};
    (void)state;
    open_edge(&e, &pool);
    e.restored = true;
    e.round = 5;
    e.cur.payload = packet_get(&pool);
    edge_ask(&e, 2, 3, false, &m);
    assert_true(m.restored);
    edge_store(&e, &d, &no_sketch);
    d.round = 6;
    edge_store(&e, &d, &no_sketch);
    (void)edge_take(&e);
    edge_advance(&e);
    said.answers = m.nonce;
    assert_false(edge_hear(&e, &said));
    assert_true(edge_agree(&e, 3));
    assert_int_equal(e.epoch, 77);
    assert_true(e.resend_prev);
    assert_int_equal(edge_check(&e, &d), EDGE_REPEAT);
    edge_close(&e);
    packet_pool_close(&pool);
}

static enum edge_verdict hear_part(struct edge *e, uint64_t epoch, uint64_t round, uint64_t after,
                                   const uint8_t *bytes, size_t n)
{
    return edge_part(e, &(struct wire_part){epoch, round, after, {bytes, n}});
}

/* A delta arrives in fragments, its last bytes first. Fragments out of place are refused. Fragments
 * without their delta have no effect. */
static void test_parts(void **state)
{
    struct edge e;
    struct packet_pool pool;
    uint8_t bytes[PAYLOAD + 1];
    struct wire_delta d = {.epoch = 77, .degree = 1};
    const struct wire_delta empty = d;
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    open_edge(&e, &pool);
    const struct edge_got *g = &e.got[0];
    assert_int_equal(hear_part(&e, 76, 0, 0, bytes, 1), EDGE_STALE);
    /* This end has not made its delta of round 0, so fragments of round 1 are impossible. */
    assert_int_equal(hear_part(&e, 77, 1, 0, bytes, 1), EDGE_VIOLATION);
    assert_int_equal(hear_part(&e, 77, 2, 0, bytes, 1), EDGE_VIOLATION);
    assert_int_equal(hear_part(&e, 77, UINT64_MAX, 0, bytes, 1), EDGE_VIOLATION);
    /* The first fragment must be the end of the delta, and no longer than a delta. */
    assert_int_equal(hear_part(&e, 77, 0, 1, bytes, 1), EDGE_VIOLATION);
    assert_int_equal(hear_part(&e, 77, 0, 0, bytes, PAYLOAD + 1), EDGE_VIOLATION);

    assert_int_equal(hear_part(&e, 77, 0, 0, bytes + 3, PAYLOAD - 3), EDGE_ACCEPT);
    /* A fragment that makes the delta too long is refused. */
    assert_int_equal(hear_part(&e, 77, 0, PAYLOAD - 3, bytes, 4), EDGE_VIOLATION);
    assert_int_equal(hear_part(&e, 77, 0, 1, bytes, 1), EDGE_VIOLATION);
    assert_int_equal(hear_part(&e, 77, 0, UINT64_MAX, bytes, 1), EDGE_VIOLATION);
    assert_int_equal(hear_part(&e, 77, 0, PAYLOAD - 3, bytes, 3), EDGE_ACCEPT);
    assert_int_equal(edge_check(&e, &d), EDGE_ACCEPT);
    edge_gather(&e, &d);
    assert_int_equal(d.payload.n, PAYLOAD);
    assert_memory_equal(d.payload.p, bytes, PAYLOAD);
    edge_store(&e, &d, &no_sketch);
    assert_int_equal(g->n_bytes, PAYLOAD);
    assert_memory_equal(g->bytes, bytes, PAYLOAD);
    assert_int_equal(hear_part(&e, 77, 0, 0, bytes, 1), EDGE_REPEAT);

    /* Fragments of the next round arrive before the present round is committed. */
    e.cur.payload = packet_get(&pool);
    assert_int_equal(hear_part(&e, 77, 1, 0, bytes + 1, 1), EDGE_ACCEPT);
    (void)edge_take(&e);
    edge_advance(&e);
    assert_int_equal(hear_part(&e, 77, 0, 0, bytes, 1), EDGE_REPEAT);
    assert_int_equal(hear_part(&e, 77, 1, 1, bytes, 1), EDGE_ACCEPT);
    d = empty, d.round = 1;
    edge_gather(&e, &d);
    assert_int_equal(d.payload.n, 2);
    assert_memory_equal(d.payload.p, bytes, 2);

    /* A fragment with offset 0 starts the delta again, so the fragments received before it are
     * dropped. A DELTA message that has the payload itself replaces all fragments, too. */
    assert_int_equal(hear_part(&e, 77, 1, 0, bytes + 4, 2), EDGE_ACCEPT);
    assert_int_equal(hear_part(&e, 77, 1, 0, bytes + 2, 1), EDGE_ACCEPT);
    assert_int_equal(e.got[1].n_parts, 1);
    d.payload = (struct bytes){bytes, 5};
    edge_gather(&e, &d);
    assert_ptr_equal(d.payload.p, bytes);
    assert_int_equal(e.got[1].n_parts, 0);
    d = empty, d.round = 1; /* Without payload and fragments the delta is empty. */
    edge_gather(&e, &d);
    assert_int_equal(d.payload.n, 0);

    /* A paused edge accepts fragments, because the other end may continue a delta over the same
     * session. Fragments of a lost session are dropped. */
    assert_int_equal(hear_part(&e, 77, 1, 0, bytes, 2), EDGE_ACCEPT);
    edge_pause(&e, false);
    edge_pause(&e, true);
    assert_int_equal(hear_part(&e, 77, 1, 2, bytes, 1), EDGE_ACCEPT);
    assert_int_equal(e.got[1].n_parts, 3);
    edge_forget_parts(&e);
    assert_int_equal(e.got[1].n_parts, 0);
    edge_close(&e);
    packet_pool_close(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_story),
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_take),
        cmocka_unit_test(test_crossing_requests),
        cmocka_unit_test(test_epochs),
        cmocka_unit_test(test_rounds_apart),
        cmocka_unit_test(test_cut_everywhere),
        cmocka_unit_test(test_ask_again_in_flight),
        cmocka_unit_test(test_ask_often),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_restored_and_cut),
        cmocka_unit_test(test_restored),
        cmocka_unit_test(test_commit_after_ask),
        cmocka_unit_test(test_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
