/* tests/unit/sim_nomem.c -- makes the n-th allocation of a node fail, for every n. No node may
 * crash, leak or hang, and a node that ends must say why.
 *
 * The linker redirects the calls of the allocator and of the node's functions to this file (--wrap,
 * tests/CMakeLists.txt). Allocations of the simulator itself do not fail.
 *
 * The cluster forms, trains, writes checkpoints, is killed and resumes from them. A peer that lacks
 * the last checkpoint joins by fetching a model. test_share.h says which share of the allocations
 * fails in turn. NOMEM_STEP=N tests only every N-th allocation. */
#include "peer/run/exit.h"
#include "peer/sim/faults.h"
#include "sim_rig.h"
#include "test_share.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

enum { SECOND = 1000 * 1000, LIMIT_S = 900, PEERS = 3, ROUNDS = 60 };

/* ---- the allocator ---- */

static bool inside;    /* True while code of a node runs. */
static size_t n_calls; /* Number of allocations by nodes since the run began. */
static size_t failing; /* Number of the allocation that is made to fail. 0: none. */
/* Number of further allocations, after the one with the number `failing`, that are also made to
 * fail. */
static size_t failing_behind;
static long live; /* Number of blocks of memory that are allocated now. */

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);
void __wrap_free(void *p);

static bool refused(void)
{
    if (!inside)
        return false;
    n_calls++;
    return failing != 0 && n_calls >= failing && n_calls <= failing + failing_behind;
}

static void *held(void *p)
{
    live += p != NULL;
    return p;
}

void *__wrap_malloc(size_t n)
{
    return refused() ? NULL : held(__real_malloc(n));
}

void *__wrap_calloc(size_t n, size_t size)
{
    return refused() ? NULL : held(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t n)
{
    void *q = refused() ? NULL : __real_realloc(p, n);
    live += q != NULL && p == NULL;
    return q;
}

void *__wrap_aligned_alloc(size_t align, size_t n)
{
    return refused() ? NULL : held(__real_aligned_alloc(align, n));
}

void __wrap_free(void *p)
{
    live -= p != NULL;
    __real_free(p);
}

/* ---- the node ---- */

int __real_node_open(struct node **n, const struct node_config *config);
void __real_node_step(struct node *n, const struct node_event *ev, struct node_effects *fx);
void __real_node_work(struct node *n, int64_t (*clock_us)(void));
int __wrap_node_open(struct node **n, const struct node_config *config);
void __wrap_node_step(struct node *n, const struct node_event *ev, struct node_effects *fx);
void __wrap_node_work(struct node *n, int64_t (*clock_us)(void));

int __wrap_node_open(struct node **n, const struct node_config *config)
{
    inside = true;
    int err = __real_node_open(n, config);
    inside = false;
    return err;
}

void __wrap_node_step(struct node *n, const struct node_event *ev, struct node_effects *fx)
{
    inside = true;
    __real_node_step(n, ev, fx);
    inside = false;
}

void __wrap_node_work(struct node *n, int64_t (*clock_us)(void))
{
    inside = true;
    __real_node_work(n, clock_us);
    inside = false;
}

/* ---- the run ---- */

static uint32_t n_errors; /* Number of error messages of the nodes. */

static void listen(void *self, uint32_t peer, const struct node_note *note)
{
    (void)self;
    n_errors += note->level == NOTE_ERROR;
    if (getenv("NOMEM_TELL") != NULL)
        print_message("%u: %s\n", peer, note->text);
}

static void configure(void *self, uint32_t peer, struct node_config *c)
{
    (void)self, (void)peer;
    c->patience_us = 5 * (int64_t)SECOND;
    c->worker_limit_us = 5 * (int64_t)SECOND;
}

static bool run_until(struct rig *r, int64_t t_us)
{
    while (sim_now_us(r->world) < t_us)
        if (!sim_step(r->world))
            return false;
    return true;
}

/* Kills the peers that have not ended by themselves, and restarts them. Returns 0, or the error of
 * a restart. */
static int power_cut(struct rig *r)
{
    int code, err = 0;
    bool dead[PEERS] = {0};
    for (uint32_t i = 0; i < PEERS; i++)
        if ((dead[i] = !sim_ended(r->world, i, &code)))
            sim_kill(r->world, i);
    for (uint32_t i = 0; i < PEERS && err == 0; i++)
        if (dead[i])
            err = sim_restart(r->world, i);
    return err;
}

/* Checks a peer that has not ended. The only valid reason is that it waits for --min-peers members,
 * because another peer ended without memory before the run began. */
static void check_waits(const struct rig *r, uint32_t peer)
{
    if (rig_progress(r, peer).phase != NODE_JOINING || n_errors == 0)
        fail_msg("allocation %zu: peer-%u hangs in phase %d", failing, peer,
                 (int)rig_progress(r, peer).phase);
}

/* Simulates the run once. Returns whether all peers ended with exit code 0. */
static bool once(const char *compress, uint32_t mixer, enum run_policy policy)
{
    struct rig r;
    bool well = true;
    rig_init(&r, PEERS, 40, "ring", compress, 0);
    r.eta = 0.05f;
    r.noise = 0.3f;
    rig_with_statistics(&r, 3, 3, 1);
    r.config.step_us = 50 * 1000;
    r.config.sessions = true;
    r.config.checkpoint_us = SECOND;
    r.config.disk_us = SECOND / 10;
    r.config.configure = configure;
    r.config.note = listen;
    r.config.run.rounds = ROUNDS;
    r.config.run.mixer = mixer;
    r.config.run.policy = policy;
    r.config.run.final_drift = 1e-3;
    r.config.run.quorum = 0.5;
    n_calls = n_errors = 0;
    int err = sim_open(&r.world, &r.config);
    if (err == 0) {
        (void)run_until(&r, 2 * SECOND + SECOND / 2);
        err = power_cut(&r);
        if (err == 0)
            (void)run_until(&r, (int64_t)LIMIT_S * SECOND);
    }
    assert_true(err == 0 || err == -ENOMEM);
    for (uint32_t i = 0; i < PEERS && err == 0; i++) {
        int code = -1;
        if (!sim_ended(r.world, i, &code))
            check_waits(&r, i);
        else if (code != CMD_OK && code != CMD_APART && !(code == CMD_FAILED && n_errors > 0))
            fail_msg("allocation %zu of %s: peer-%u ended with %d and %u words", failing, compress,
                     i, code, n_errors);
        well &= code == CMD_OK;
    }
    rig_close(&r);
    return well && err == 0;
}

static size_t step(void)
{
    const char *s = getenv("NOMEM_STEP");
    return s != NULL && atoi(s) > 0 ? (size_t)atoi(s) : (size_t)test_share();
}

static void each(const char *compress, uint32_t mixer, enum run_policy policy, size_t behind)
{
    failing = 0;
    failing_behind = behind;
    assert_true(once(compress, mixer, policy));
    size_t all = n_calls, n_well = 0, n_runs = 0;
    assert_true(all > 100);
    for (failing = 1; failing <= all; failing += step(), n_runs++) {
        long before = live;
        n_well += once(compress, mixer, policy);
        if (live != before)
            fail_msg("allocation %zu of %s: %ld blocks were not freed", failing, compress,
                     live - before);
    }
    failing = 0;
    print_message("%s: %zu of %zu allocations, %zu runs ended well all the same\n", compress,
                  n_runs, all, n_well);
    /* At least one failed allocation must make a run end with an error. */
    assert_true(n_well < n_runs);
}

static void test_one_fails(void **state)
{
    (void)state;
    each("topk:0.1", 0, RUN_SYNC, 0);
    each("lowrank:1", 0, RUN_ASYNC, 0);
    each("qsgd:4", 1, RUN_SYNC, 0);
}

static void test_some_fail(void **state)
{
    (void)state;
    each("auto", 0, RUN_SYNC, 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_fails),
        cmocka_unit_test(test_some_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
