/* tests/unit/sim_alloc.c -- a node must not allocate memory after its first rounds.
 *
 * The linker redirects the simulator's calls of node_step() and node_work() to this file (--wrap,
 * tests/CMakeLists.txt). What the simulator allocates for its own events and messages does not
 * count. */
#include "alloc_count.h"
#include "sim_rig.h"

#include "gossip/mixers/mixer.h"

#include <errno.h>

enum { WARM_ROUNDS = 100, ROUNDS = 400 };

static size_t n_in_steps, n_in_work, n_steps;

void __real_node_step(struct node *n, const struct node_event *ev, struct node_effects *fx);
void __real_node_work(struct node *n, int64_t (*clock_us)(void));
void __wrap_node_step(struct node *n, const struct node_event *ev, struct node_effects *fx);
void __wrap_node_work(struct node *n, int64_t (*clock_us)(void));

void __wrap_node_step(struct node *n, const struct node_event *ev, struct node_effects *fx)
{
    size_t before = alloc_calls;
    __real_node_step(n, ev, fx);
    n_in_steps += alloc_calls - before;
    n_steps++;
}

void __wrap_node_work(struct node *n, int64_t (*clock_us)(void))
{
    size_t before = alloc_calls;
    __real_node_work(n, clock_us);
    n_in_work += alloc_calls - before;
}

static uint64_t least_round(const struct rig *r)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < r->config.n_peers; i++) {
        struct node_progress p;
        node_progress(sim_node(r->world, i), &p);
        least = p.round < least ? p.round : least;
    }
    return least;
}

static void run_to(struct rig *r, uint64_t round)
{
    while (least_round(r) < round)
        assert_true(sim_step(r->world));
}

static void check(const char *topology, const char *compress, const char *mixer,
                  enum run_policy policy, bool statistics)
{
    struct rig r;
    rig_init(&r, 9, 600, topology, compress, 0);
    r.eta = 0.05f;
    r.noise = 0.5f;
    r.config.run.rounds = 2 * ROUNDS;
    r.config.run.policy = policy;
    for (uint32_t i = 0; mixer_all[i] != NULL; i++)
        if (strcmp(mixer_all[i]->name, mixer) == 0)
            r.config.run.mixer = i;
    if (statistics)
        rig_with_statistics(&r, 4, 4, 1);
    rig_open(&r);
    run_to(&r, WARM_ROUNDS);
    n_in_steps = n_in_work = n_steps = 0;
    run_to(&r, ROUNDS);
    /* Checks that the steps of the node were counted. */
    assert_true(n_steps > 9 * (ROUNDS - WARM_ROUNDS));
    if (n_in_steps + n_in_work > 0)
        fail_msg("%s on a %s, %s: %zu allocations in steps, %zu in jobs", compress, topology, mixer,
                 n_in_steps, n_in_work);
    rig_close(&r);
}

static void test_steps_allocate_nothing(void **state)
{
    (void)state;
    if (!ALLOC_COUNTS) {
        print_message("skipped: the allocator is not ours to count here\n");
        skip();
    }
    check("ring", "topk:0.05", "choco", RUN_SYNC, false);
    check("ring", "topk:0.05+qsgd:4", "choco", RUN_ASYNC, false);
    check("torus", "qsgd:4", "choco", RUN_SYNC, true);
    check("complete", "sign", "choco", RUN_SYNC, false);
    check("complete", "topk:0.05", "average", RUN_SYNC, false);
    check("ring", RUN_AUTO, "choco", RUN_SYNC, true);
    size_t before = alloc_calls;
    alloc_once();
    assert_int_equal(alloc_calls, before + 1); /* Checks that allocations are counted. */
}

/* ---- a failed allocation is tried again ---- */

static uint32_t n_shares, n_warnings;

static int share_at_the_third(void *self, const uint64_t *keys, size_t n, uint64_t own)
{
    const struct rig_peer *p = self;
    (void)keys, (void)own;
    if (n < p->rig->config.n_peers || p->index != 1)
        return 0;
    return ++n_shares < 3 ? -ENOMEM : 0;
}

static int greedy_trainer(void *self, uint32_t peer, const struct run *run, struct trainer *t,
                          char error[RUN_ERROR_MAX])
{
    int err = rig_trainer(self, peer, run, t, error);
    t->members = share_at_the_third;
    return err;
}

static void count_warnings(void *self, uint32_t peer, const struct node_note *note)
{
    (void)self, (void)peer;
    n_warnings += note->level == NOTE_WARNING && strstr(note->text, "share of the data") != NULL;
}

static void test_a_share_without_memory(void **state)
{
    (void)state;
    struct rig r;
    rig_init(&r, 3, 20, "ring", "none", 0);
    r.eta = 0.1f;
    r.config.run.rounds = 20;
    r.config.make_trainer = greedy_trainer;
    r.config.note = count_warnings;
    rig_open(&r);
    run_to(&r, 20);
    assert_int_equal(n_shares, 3);
    assert_int_equal(n_warnings, 2);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_allocate_nothing),
        cmocka_unit_test(test_a_share_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
