/* tests/unit/gossip_members_cluster.c -- tests many member tables: shared records, random orders of
 * arrival, and a simulated cluster. */
#include "tests/unit/gossip_seeds.h"
#include "tests/unit/gossip_toy.h"

/* Asserts that all n tables refer to one copy of each record, except for the record of a table's
 * own member. */
static void assert_shared(struct members *const *m, uint32_t n)
{
    size_t self = 0;
    for (size_t i = 0; i < members_count(m[0]); i++) {
        const struct record *r = members_at(m[0], i)->record;
        if (r == members_self(m[0])) {
            self++;
            continue;
        }
        for (uint32_t t = 1; t < n; t++) {
            const struct member *e = members_find(m[t], r->id);
            assert_true(e->record == r || e->record == members_self(m[t]));
        }
    }
    assert_int_equal(self, 1);
}

/* 20 tables share one store of records. Each record is stored and verified once. */
static void test_shared_records(void **state)
{
    (void)state;
    enum { TABLES = 20, MEMBERS = 200 };
    struct records *set = records_open();
    struct members *m[TABLES];
    n_verified = 0;
    for (uint32_t t = 0; t < TABLES; t++) {
        m[t] = open_in(set, t, 1);
        for (uint32_t i = 0; i < MEMBERS; i++)
            merge(m[t], record(i, 1));
        check_invariants(m[t]);
    }
    assert_shared(m, TABLES);
    assert_int_equal(n_verified, MEMBERS);
    for (uint32_t t = 1; t < TABLES; t++)
        assert_int_equal(members_view(m[t]), members_view(m[0]));
    struct record forged = record(5, 2);
    forged.signature[40] ^= 1;
    assert_int_equal(merge(m[0], forged), MEMBERS_FORGED);
    /* This record was changed after it was signed. Its signature was verified before the change. */
    forged = record(5, 1);
    forged.incarnation = 9;
    assert_int_equal(merge(m[0], forged), MEMBERS_FORGED);
    for (uint32_t t = 0; t < TABLES; t++)
        merge(m[t], record(100, 2));
    assert_shared(m, TABLES);
    for (uint32_t t = 0; t < TABLES; t++)
        members_close(m[t]);
    records_close(set); /* records_close() asserts that no table refers to a record. */
}

/* ---- Records, accusations and endorsements in random orders, against a plain reference. ---- */

enum {
    N_PEERS = 8, /* Members 1 to 8 exist besides member 0, which owns the tables. */
    N_RUMOURS = 120,
    N_TABLES = 4
};

enum rumour_kind { RECORD, ACCUSATION, VOUCH };

struct rumour
{
    enum rumour_kind kind;
    struct record record;
    struct accusation accusation;
    struct vouch vouch;
};

static struct rumour random_rumour(struct rng *r)
{
    struct rumour x = {.kind = (enum rumour_kind)rng_below(r, 3)};
    uint32_t who = (uint32_t)rng_below(r, N_PEERS) + 1;
    uint64_t incarnation = 1 + rng_below(r, 4);
    uint32_t by = (uint32_t)rng_below(r, N_PEERS - 1) + 1;
    by += by >= who;
    if (x.kind == RECORD) {
        x.record = unsigned_record(who, incarnation);
        x.record.boot = rng_below(r, 3);
        if (rng_below(r, 8) == 0)
            x.record.state = (enum record_state)(1 + rng_below(r, 2));
        if (rng_below(r, 4) == 0)
            snprintf(x.record.name, sizeof x.record.name, "other-%u", (unsigned)rng_below(r, 20));
        x.record = signed_record(x.record);
    } else if (x.kind == ACCUSATION) {
        x.accusation = accusation(who, by, incarnation);
    } else {
        x.vouch = vouch(by, who);
    }
    return x;
}

static void hear(struct members *m, const struct rumour *x)
{
    if (x->kind == RECORD)
        members_merge(m, &x->record, 0);
    else if (x->kind == ACCUSATION)
        members_accused(m, &x->accusation, 0);
    else
        members_vouched(m, &x->vouch);
}

/* Reference: returns the valid record of a member, the highest by incarnation, state and bytes. */
static const struct record *ref_record(const struct rumour *all, uint32_t who)
{
    const struct record *best = NULL;
    uint8_t a[2048], b[2048];
    for (uint32_t i = 0; i < N_RUMOURS; i++) {
        const struct record *r = &all[i].record;
        if (all[i].kind != RECORD || memcmp(r->id, id_of(who), WIRE_ID_BYTES) != 0)
            continue;
        size_t na = wire_record_signed(a, sizeof a, r);
        size_t nb = best ? wire_record_signed(b, sizeof b, best) : 0;
        int bytes = best ? memcmp(a, b, na < nb ? na : nb) : 1;
        if (best == NULL || r->incarnation > best->incarnation
            || (r->incarnation == best->incarnation
                && (r->state > best->state
                    || (r->state == best->state && (bytes > 0 || (bytes == 0 && na > nb))))))
            best = r;
    }
    return best;
}

static uint32_t ref_accusers(const struct rumour *all, uint32_t who, uint64_t incarnation)
{
    uint32_t n = 0;
    for (uint32_t by = 1; by <= N_PEERS; by++) {
        bool found = false;
        for (uint32_t i = 0; i < N_RUMOURS; i++)
            found |= all[i].kind == ACCUSATION && all[i].accusation.incarnation == incarnation
                     && memcmp(all[i].accusation.accused, id_of(who), WIRE_ID_BYTES) == 0
                     && memcmp(all[i].accusation.accuser, id_of(by), WIRE_ID_BYTES) == 0;
        n += found;
    }
    return n < MEMBERS_ACCUSERS ? n : MEMBERS_ACCUSERS;
}

static void check_against_reference(const struct members *m, const struct rumour *all)
{
    check_invariants(m);
    for (uint32_t who = 1; who <= N_PEERS; who++) {
        const struct record *want = ref_record(all, who);
        const struct member *got = members_find(m, id_of(who));
        assert_true(record_equal(got->record, want));
        uint32_t n = 0, n_want = ref_accusers(all, who, want->incarnation);
        for (uint32_t i = 0; i < got->n_accusers; i++)
            n += got->accusation[i].incarnation == want->incarnation;
        enum member_state state = want->state == RECORD_LEFT ? MEMBER_LEFT
                                  : n_want > 0               ? MEMBER_SUSPECT
                                                             : MEMBER_ALIVE;
        assert_int_equal(got->state, state);
        if (state == MEMBER_SUSPECT)
            assert_int_equal(n, n_want);
    }
}

static void check_random(uint64_t seed)
{
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, 0, 0));
    static struct rumour all[N_RUMOURS];
    for (uint32_t i = 0; i < N_RUMOURS; i++)
        all[i] = random_rumour(&r);
    /* The first N_PEERS rumours are records, so that all members become known. */
    for (uint32_t i = 0; i < N_PEERS; i++)
        all[i] = (struct rumour){.kind = RECORD, .record = record(i + 1, 0)};
    struct members *m[N_TABLES];
    uint32_t order[N_RUMOURS];
    for (uint32_t i = 0; i < N_RUMOURS; i++)
        order[i] = i;
    for (uint32_t t = 0; t < N_TABLES; t++) {
        m[t] = open_in(NULL, 0, 1);
        for (uint32_t i = 0; i < N_PEERS; i++) {
            hear(m[t], &all[i]);
            members_know(m[t], id_of(i + 1), 0);
        }
        /* All records, accusations and endorsements are merged twice. A message of the first pass
         * may have had no effect, because it arrived before another one that it depends on. */
        for (uint32_t pass = 0; pass < 2; pass++) {
            rng_shuffle(&r, order, N_RUMOURS);
            for (uint32_t i = 0; i < N_RUMOURS; i++)
                hear(m[t], &all[order[i]]);
        }
        check_against_reference(m[t], all);
        members_tick(m[t], TOY_SUSPECT_US);
        assert_int_equal(members_view(m[t]), members_view(m[0]));
        check_invariants(m[t]);
    }
    for (uint32_t t = 0; t < N_TABLES; t++)
        members_close(m[t]);
}

static void test_random_orders(void **state)
{
    (void)state;
    for_seeds(check_random, 60);
}

/* ---- Endorsements in random orders, against a reference that removes one member after the other
 * and checks which others are still reached. ---- */

enum { N_GRAPH = 28, N_ARROWS = 70 };

struct arrows
{
    uint32_t from[N_ARROWS], to[N_ARROWS], n;
};

/* Sets away[i] to the distance of member i from member 0, counted in endorsements, in the graph
 * without member `but`. UINT32_MAX: member i is not reached. */
static void ref_reach(const struct arrows *a, uint32_t but, uint32_t *away)
{
    for (uint32_t i = 0; i < N_GRAPH; i++)
        away[i] = i == 0 ? 0 : UINT32_MAX;
    for (uint32_t d = 0; d < N_GRAPH; d++)
        for (uint32_t k = 0; k < a->n; k++)
            if (away[a->from[k]] == d && away[a->to[k]] == UINT32_MAX && a->to[k] != but)
                away[a->to[k]] = d + 1;
}

/* Sets cut[v][x] if all paths from member 0 to member x lead through member v. Sets `away` to the
 * distances from member 0 in the whole graph. */
static void ref_cuts(const struct arrows *a, bool cut[N_GRAPH][N_GRAPH], uint32_t *away)
{
    uint32_t without[N_GRAPH];
    ref_reach(a, N_GRAPH, away);
    for (uint32_t v = 1; v < N_GRAPH; v++) {
        ref_reach(a, v, without);
        for (uint32_t x = 1; x < N_GRAPH; x++)
            cut[v][x] = x != v && away[x] != UINT32_MAX && without[x] == UINT32_MAX;
    }
}

/* Returns the gate of member x, that is the member nearest to member 0 through which all paths from
 * 0 to x lead. Returns x if no such member exists. */
static uint32_t ref_gate(bool cut[N_GRAPH][N_GRAPH], uint32_t x)
{
    for (uint32_t v = 1; v < N_GRAPH; v++) {
        bool first = cut[v][x];
        for (uint32_t u = 1; u < N_GRAPH && first; u++)
            first = !cut[u][v];
        if (first)
            return v;
    }
    return x;
}

static void ref_counts(const struct arrows *a, bool *counts)
{
    static bool cut[N_GRAPH][N_GRAPH];
    uint32_t away[N_GRAPH], gate[N_GRAPH], n_firm = 0;
    ref_cuts(a, cut, away);
    for (uint32_t x = 1; x < N_GRAPH; x++) {
        gate[x] = ref_gate(cut, x);
        n_firm += away[x] != UINT32_MAX && gate[x] == x;
    }
    for (uint32_t x = 1; x < N_GRAPH; x++) {
        /* The gate of x is the nearest member through which all paths of endorsements to x lead.
         * `before` counts the members with the same gate that are accepted before x, because they
         * are nearer to member 0 or, at the same distance, have a lower identity. */
        uint32_t before = 0;
        for (uint32_t y = 1; y < N_GRAPH; y++)
            before += away[y] != UINT32_MAX && gate[y] == gate[x] && gate[y] != y
                      && (away[y] < away[x]
                          || (away[y] == away[x] && memcmp(id_of(y), id_of(x), WIRE_ID_BYTES) < 0));
        counts[x] =
            away[x] != UINT32_MAX && (gate[x] == x || before < 1 + n_firm / ENDORSEMENTS_SHARE);
    }
}

/* Makes a random graph in which some members have many endorsements and others few. */
static void random_arrows(struct rng *r, struct arrows *a)
{
    uint32_t crowd = 4 + (uint32_t)rng_below(r, N_GRAPH - 4);
    a->n = (uint32_t)rng_below(r, N_ARROWS);
    for (uint32_t k = 0; k < a->n; k++) {
        a->from[k] = (uint32_t)rng_below(r, rng_below(r, 3) == 0 ? N_GRAPH : crowd);
        do
            a->to[k] = (uint32_t)rng_below(r, N_GRAPH);
        while (a->to[k] == a->from[k]);
    }
}

static void check_vouches(uint64_t seed)
{
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, 4, 0));
    struct arrows a;
    bool counts[N_GRAPH] = {true};
    uint32_t members[N_GRAPH], order[N_ARROWS];
    uint64_t view = 0;
    random_arrows(&r, &a);
    ref_counts(&a, counts);
    for (uint32_t i = 0; i < N_GRAPH; i++)
        members[i] = i;
    for (uint32_t k = 0; k < a.n; k++)
        order[k] = k;
    for (uint32_t t = 0; t < N_TABLES; t++) {
        struct members *m = open_in(NULL, 0, 1);
        rng_shuffle(&r, members, N_GRAPH);
        rng_shuffle(&r, order, a.n);
        for (uint32_t i = 0; i < N_GRAPH; i++) {
            struct record x = record(members[i], 1);
            if (members[i] != 0)
                assert_int_equal(members_merge(m, &x, 0), MEMBERS_NEWS);
        }
        for (uint32_t k = 0; k < a.n; k++) {
            struct vouch v = vouch(a.from[order[k]], a.to[order[k]]);
            assert_true(members_vouched(m, &v) != MEMBERS_FORGED);
            if (rng_below(&r, 4) == 0)
                members_settle(m, 0);
        }
        members_settle(m, 0);
        for (uint32_t i = 1; i < N_GRAPH; i++)
            assert_int_equal(is_vertex(m, i), counts[i]);
        view = t == 0 ? members_view(m) : view;
        assert_int_equal(members_view(m), view);
        members_close(m);
    }
}

static void test_vouches(void **state)
{
    (void)state;
    for_seeds(check_vouches, 400);
}

/* ---- A cluster whose tables send each other their news over the links of a ring. ---- */

enum { N_CLUSTER = 24, NEIGHBOURS = 4 };

struct cluster
{
    struct members *m[N_CLUSTER];
    bool down[N_CLUSTER];
    struct rng rng;
    int64_t now_us;
};

static uint32_t neighbour(uint32_t i, uint32_t k)
{
    static const uint32_t step[NEIGHBOURS] = {1, N_CLUSTER - 1, 7, N_CLUSTER - 7};
    return (i + step[k]) % N_CLUSTER;
}

static void deliver(struct cluster *c, uint32_t to, const struct wire_members *news)
{
    static uint8_t bytes[WIRE_CONTROL_MAX];
    static struct wire_batch batch;
    static struct wire_message m;
    size_t n = wire_put_members(bytes, sizeof bytes, news);
    assert_true(n > 0);
    assert_true(wire_read(bytes, n, &batch, &m));
    for (uint32_t i = 0; i < m.members.n_records; i++)
        assert_true(members_merge(c->m[to], &batch.records[i], c->now_us) != MEMBERS_FORGED);
    for (uint32_t i = 0; i < m.members.n_vouches; i++)
        assert_true(members_vouched(c->m[to], &batch.vouches[i]) != MEMBERS_FORGED);
    members_settle(c->m[to], c->now_us);
    for (uint32_t i = 0; i < m.members.n_accusations; i++)
        assert_true(members_accused(c->m[to], &batch.accusations[i], c->now_us) != MEMBERS_FORGED);
}

/* All members send their unsent records and accusations to their neighbours, in random order, until
 * nothing is left to send. */
static void spread(struct cluster *c)
{
    bool any = true;
    while (any) {
        any = false;
        uint32_t order[N_CLUSTER];
        for (uint32_t i = 0; i < N_CLUSTER; i++)
            order[i] = i;
        rng_shuffle(&c->rng, order, N_CLUSTER);
        for (uint32_t k = 0; k < N_CLUSTER; k++) {
            uint32_t i = order[k];
            struct wire_members news = batch();
            if (c->down[i] || !members_dirty(c->m[i], &news, 5))
                continue;
            any = true;
            for (uint32_t e = 0; e < NEIGHBOURS; e++)
                if (!c->down[neighbour(i, e)])
                    deliver(c, neighbour(i, e), &news);
        }
    }
}

static void tick_all(struct cluster *c, int64_t span_us)
{
    c->now_us += span_us;
    for (uint32_t i = 0; i < N_CLUSTER; i++)
        members_tick(c->m[i], c->now_us);
}

static void set_session(struct cluster *c, uint32_t i, uint32_t k, bool up)
{
    members_session(c->m[i], id_of(k), up, c->now_us);
    members_session(c->m[k], id_of(i), up, c->now_us);
    members_vouch(c->m[i], c->now_us);
    members_vouch(c->m[k], c->now_us);
}

/* Begins a session between two peers. Each of them merges the record of the other, as after a
 * HELLO. */
static void introduce(struct cluster *c, uint32_t i, uint32_t k)
{
    members_merge(c->m[i], members_self(c->m[k]), c->now_us);
    members_merge(c->m[k], members_self(c->m[i]), c->now_us);
    set_session(c, i, k, true);
}

static void check_agreed(const struct cluster *c, uint32_t who, enum member_state want)
{
    uint64_t view = members_view(c->m[c->down[0] ? 1 : 0]);
    for (uint32_t i = 0; i < N_CLUSTER; i++) {
        if (c->down[i])
            continue;
        check_invariants(c->m[i]);
        assert_int_equal(state_of(c->m[i], who), want);
        assert_int_equal(members_view(c->m[i]), view);
    }
}

static void check_cluster(uint64_t seed)
{
    struct cluster c = {.rng = rng_stream(rng_key(seed, RNG_TEST, 2, 0))};
    struct records *set = records_open();
    for (uint32_t i = 0; i < N_CLUSTER; i++)
        c.m[i] = open_in(set, i, 1);
    for (uint32_t i = 0; i < N_CLUSTER; i++)
        for (uint32_t e = 0; e < NEIGHBOURS; e++)
            introduce(&c, i, neighbour(i, e));
    spread(&c);
    for (uint32_t i = 0; i < N_CLUSTER; i++) {
        assert_int_equal(members_count(c.m[i]), N_CLUSTER);
        for (uint32_t k = 0; k < N_CLUSTER; k++)
            assert_true(is_vertex(c.m[i], k));
    }
    check_agreed(&c, 3, MEMBER_ALIVE);
    uint64_t whole = members_view(c.m[0]);

    /* One of the four links of peer 5 breaks. Peer 6 accuses peer 5, and peer 5 refutes the
     * accusation. Peer 5 must be alive in all tables, and no table may declare it dead. */
    set_session(&c, 5, 6, false);
    members_accuse(c.m[6], id_of(5), c.now_us);
    assert_int_equal(state_of(c.m[6], 5), MEMBER_SUSPECT);
    spread(&c);
    check_agreed(&c, 5, MEMBER_ALIVE);
    assert_int_equal(members_self(c.m[5])->incarnation, 2);
    tick_all(&c, 20 * SECOND);
    check_agreed(&c, 5, MEMBER_ALIVE);
    assert_int_equal(members_view(c.m[9]), whole);

    /* Peer 3 dies, and all its neighbours accuse it. */
    c.down[3] = true;
    for (uint32_t e = 0; e < NEIGHBOURS; e++) {
        uint32_t k = neighbour(3, e);
        set_session(&c, 3, k, false);
        members_accuse(c.m[k], id_of(3), c.now_us);
    }
    spread(&c);
    check_agreed(&c, 3, MEMBER_SUSPECT);
    assert_int_equal(members_view(c.m[9]), whole);
    /* Two accusers are known, so the shorter time until a suspect is declared dead applies. */
    tick_all(&c, TOY_CONFIRMED_US);
    check_agreed(&c, 3, MEMBER_DEAD);
    assert_true(members_view(c.m[9]) != whole);

    /* Peer 3, which was declared dead, comes back over one link. It receives the accusations
     * against it with a batch of records, and refutes them. Peer 3 must then be alive in all
     * tables. */
    c.down[3] = false;
    set_session(&c, 3, 4, true);
    struct wire_members news = batch();
    for (size_t cursor = 0; members_batch(c.m[4], &cursor, &news, 7);)
        deliver(&c, 3, &news);
    spread(&c);
    check_agreed(&c, 3, MEMBER_ALIVE);
    assert_int_equal(members_view(c.m[9]), whole);

    /* Peer 3 leaves the cluster. */
    members_set_state(c.m[3], RECORD_LEFT);
    spread(&c);
    c.down[3] = true;
    check_agreed(&c, 3, MEMBER_LEFT);
    for (uint32_t i = 0; i < N_CLUSTER; i++)
        members_close(c.m[i]);
    records_close(set);
}

static void test_cluster(void **state)
{
    (void)state;
    for_seeds(check_cluster, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared_records),
        cmocka_unit_test_teardown(test_random_orders, print_seed),
        cmocka_unit_test_teardown(test_vouches, print_seed),
        cmocka_unit_test_teardown(test_cluster, print_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
