/* tests/unit/gossip_members_cluster.c -- many tables: shared records, random orders, a cluster. */
#include "tests/unit/gossip_seeds.h"
#include "tests/unit/gossip_toy.h"

/* All tables hold one and the same copy of each record that the first has. */
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

/* Many tables, one set of records: each is kept and verified once. */
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
    forged = record(5, 1); /* A kept signature under other words. */
    forged.incarnation = 9;
    assert_int_equal(merge(m[0], forged), MEMBERS_FORGED);
    for (uint32_t t = 0; t < TABLES; t++)
        merge(m[t], record(100, 2));
    assert_shared(m, TABLES);
    for (uint32_t t = 0; t < TABLES; t++)
        members_close(m[t]);
    records_close(set); /* Asserts that no reference is left. */
}

/* ---- Random rumours in random orders, against a reference that keeps them
 * all and looks through them. ---- */

enum {
    N_PEERS = 8, /* Members 1..8; the tables are 0's. */
    N_RUMOURS = 120,
    N_TABLES = 4
};

struct rumour
{
    bool is_record;
    struct record record;
    struct accusation accusation;
};

static struct rumour random_rumour(struct rng *r)
{
    struct rumour x = {.is_record = rng_below(r, 2) == 0};
    uint32_t who = (uint32_t)rng_below(r, N_PEERS) + 1;
    uint64_t incarnation = 1 + rng_below(r, 4);
    if (x.is_record) {
        x.record = unsigned_record(who, incarnation);
        x.record.boot = rng_below(r, 3);
        if (rng_below(r, 8) == 0)
            x.record.state = (enum record_state)(1 + rng_below(r, 2));
        if (rng_below(r, 4) == 0)
            snprintf(x.record.name, sizeof x.record.name, "other-%u", (unsigned)rng_below(r, 20));
        x.record = signed_record(x.record);
    } else {
        uint32_t by = (uint32_t)rng_below(r, N_PEERS - 1) + 1;
        x.accusation = accusation(who, by >= who ? by + 1 : by, incarnation);
    }
    return x;
}

static void hear(struct members *m, const struct rumour *x)
{
    if (x->is_record)
        members_merge(m, &x->record, 0);
    else
        members_accused(m, &x->accusation, 0);
}

/* The reference's word on who: the last record, and how many accuse that. */
static const struct record *ref_record(const struct rumour *all, uint32_t who)
{
    const struct record *best = NULL;
    uint8_t a[2048], b[2048];
    for (uint32_t i = 0; i < N_RUMOURS; i++) {
        const struct record *r = &all[i].record;
        if (!all[i].is_record || memcmp(r->id, id_of(who), WIRE_ID_BYTES) != 0)
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
            found |= !all[i].is_record && all[i].accusation.incarnation == incarnation
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
    for (uint32_t i = 0; i < N_PEERS; i++) /* Everybody is known from the start. */
        all[i] = (struct rumour){.is_record = true, .record = record(i + 1, 0)};
    struct members *m[N_TABLES];
    uint32_t order[N_RUMOURS];
    for (uint32_t i = 0; i < N_RUMOURS; i++)
        order[i] = i;
    for (uint32_t t = 0; t < N_TABLES; t++) {
        m[t] = open_in(NULL, 0, 1);
        for (uint32_t i = 0; i < N_PEERS; i++)
            hear(m[t], &all[i]);
        for (uint32_t pass = 0; pass < 2; pass++) { /* Twice: nothing is lost for good. */
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

/* ---- A cluster: tables that send each other their news, as real messages
 * over the links of a ring with chords, some of it late. ---- */

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
    for (uint32_t i = 0; i < m.members.n_accusations; i++)
        assert_true(members_accused(c->m[to], &batch.accusations[i], c->now_us) != MEMBERS_FORGED);
}

/* Everybody passes its news on until there is none, in random order. */
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
    spread(&c);
    for (uint32_t i = 0; i < N_CLUSTER; i++) {
        assert_int_equal(members_count(c.m[i]), N_CLUSTER);
        for (uint32_t e = 0; e < NEIGHBOURS; e++)
            set_session(&c, i, neighbour(i, e), true);
    }
    check_agreed(&c, 3, MEMBER_ALIVE);
    uint64_t whole = members_view(c.m[0]);

    /* One link of 5 breaks: its neighbour accuses it, it hears of it and
     * refutes; everywhere it is alive, and nobody ever took it for dead. */
    set_session(&c, 5, 6, false);
    members_accuse(c.m[6], id_of(5), c.now_us);
    assert_int_equal(state_of(c.m[6], 5), MEMBER_SUSPECT);
    spread(&c);
    check_agreed(&c, 5, MEMBER_ALIVE);
    assert_int_equal(members_self(c.m[5])->incarnation, 2);
    tick_all(&c, 20 * SECOND);
    check_agreed(&c, 5, MEMBER_ALIVE);
    assert_int_equal(members_view(c.m[9]), whole);

    /* 3 dies: all its neighbours say so. */
    c.down[3] = true;
    for (uint32_t e = 0; e < NEIGHBOURS; e++) {
        uint32_t k = neighbour(3, e);
        set_session(&c, 3, k, false);
        members_accuse(c.m[k], id_of(3), c.now_us);
    }
    spread(&c);
    check_agreed(&c, 3, MEMBER_SUSPECT);
    assert_int_equal(members_view(c.m[9]), whole);
    tick_all(&c, TOY_CONFIRMED_US); /* Two accusers are known to all. */
    check_agreed(&c, 3, MEMBER_DEAD);
    assert_true(members_view(c.m[9]) != whole);

    /* It comes back as it was, over one link: the batch it gets tells it what
     * is said of it, it refutes, and is alive everywhere. */
    c.down[3] = false;
    set_session(&c, 3, 4, true);
    struct wire_members news = batch();
    for (size_t cursor = 0; members_batch(c.m[4], &cursor, &news, 7);)
        deliver(&c, 3, &news);
    spread(&c);
    check_agreed(&c, 3, MEMBER_ALIVE);
    assert_int_equal(members_view(c.m[9]), whole);

    /* It leaves. */
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
        cmocka_unit_test_teardown(test_cluster, print_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
