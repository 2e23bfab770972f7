/* tests/unit/node_initial.c -- peer/node/join/initial.h: a member answers a request for a piece of the
 * initial model after all pieces were discarded. */
#include "peer/node/join/initial.h"

#include "peer/node/session/sessions_state.h"
#include "peer/node/timers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { FLOATS = 100 };

static struct env env;
static struct node_effects fx;
static struct run_context run;
static struct sessions *sessions;
static int64_t now_us = 1000 * 1000;
static float x0[FLOATS], wrong[FLOATS];

static bool verify(void *self, const uint8_t *id, const uint8_t *m, size_t n, const uint8_t *s)
{
    (void)self, (void)id, (void)m, (void)n, (void)s;
    return true;
}

static void sign(void *self, const uint8_t *m, size_t n, uint8_t *s)
{
    (void)self, (void)m, (void)n;
    memset(s, 0, WIRE_SIGNATURE_BYTES);
}

/* No model has the hash of the run. */
static bool refuse_model(void *self, const float *x)
{
    (void)self, (void)x;
    return false;
}

/* Begins a step of the node after `us` microseconds. */
static void step_after(int64_t us)
{
    now_us += us;
    env_begin_step(&env, now_us, 0, &fx);
}

/* The member is asked twice for the only piece, because it did not answer in time. Its first answer is
 * a model with a wrong hash, so the member is excluded. The second answer must be ignored. */
static void test_answer_after_the_model_was_refused(void **state)
{
    static const struct members_crypto crypto = {.verify = verify, .sign = sign};
    struct node_config c = {.name = "ours",
                            .id = {5},
                            .boot = 7,
                            .incarnation = 1,
                            .own_seed = 3,
                            .crypto = &crypto,
                            .forget_us = 120 * 1000 * 1000};
    const struct sessions_owner owner = {0};
    (void)state;
    assert_int_equal(env_open(&env, &c), 0);
    assert_int_equal(sessions_open(&sessions, &env, &owner), 0);
    run.env = &env;
    run.has_run = run.ready = run.lacks = true;
    run.mixing.n_floats = run.mixing.dim = FLOATS;
    run.mixing.x0 = x0;
    run.trainer.begins = refuse_model;
    struct initial *in = initial_open(&env, sessions, &run);
    assert_non_null(in);
    struct link *l = &sessions->links[0];
    sessions->n_links = 1;
    *l = (struct link){.used = true, .role = LINK_PEER, .same_run = true, .number = 1, .id = {9}};
    struct wire_model m = {.round = WIRE_ROUND_INITIAL,
                           .payload = {(const uint8_t *)wrong, sizeof wrong}};
    step_after(0);
    initial_update(in);
    step_after(INITIAL_STALL_US + 1);
    initial_update(in);
    step_after(1);
    assert_null(initial_take(in, l, &m));
    initial_update(in);
    step_after(1);
    assert_null(initial_take(in, l, &m));
    /* Each request allows one answer only. */
    assert_non_null(initial_take(in, l, &m));
    initial_close(in);
    sessions->n_links = 0;
    sessions_close(sessions);
    env_close(&env);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answer_after_the_model_was_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
