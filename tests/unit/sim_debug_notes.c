/* tests/unit/sim_debug_notes.c -- debug notes of a node (lines of --log-level debug): phases,
 * edges, sessions and checkpoints are noted, and the notes do not change the run. */
#include "peer/node/env.h"

#include "sim_rig.h"

enum { TEXTS = 65536 };

static char notes[TEXTS]; /* Debug notes of peer 0, one per line: level, module, text. */
static size_t n_notes_bytes;
static uint32_t n_debug;

static void hear(void *self, uint32_t peer, const struct node_note *note)
{
    (void)self;
    n_debug += note->level == NOTE_DEBUG;
    if (peer != 0)
        return;
    n_notes_bytes += (size_t)snprintf(notes + n_notes_bytes, TEXTS - n_notes_bytes, "%d %s %s\n",
                                      (int)note->level, note->module, note->text);
    assert_true(n_notes_bytes < TEXTS);
}

static void ask_for_debug(void *self, uint32_t peer, struct node_config *c)
{
    (void)self, (void)peer;
    c->log_debug = true;
}

/* Runs three peers, one of which is cut off for a while and killed later. Returns the hash of all
 * events. */
static uint64_t run(bool debug, bool sessions)
{
    struct rig r;
    n_notes_bytes = n_debug = 0;
    notes[0] = '\0';
    rig_init(&r, 3, 64, "complete", "none", 1);
    r.eta = 0.1f;
    r.config.run.rounds = 400;
    r.config.run.final_drift = 0.05;
    r.config.step_us = 50000;
    r.config.sessions = sessions;
    r.config.checkpoint_us = sessions ? 5000000 : 0;
    r.config.disk_us = 1000;
    r.config.note = hear;
    if (debug)
        r.config.configure = ask_for_debug;
    rig_open(&r);
    if (sessions) {
        (void)sim_run_to(r.world, 6000000);
        sim_kill(r.world, 2);
    }
    rig_run(&r, UINT64_MAX);
    uint64_t hash = sim_trace(r.world);
    rig_close(&r);
    return hash;
}

static void expect(const char *line)
{
    if (strstr(notes, line) == NULL) {
        fprintf(stderr, "%s", notes);
        fail_msg("no note %s", line);
    }
}

static void test_changes_of_state_are_reported(void **state)
{
    (void)state;
    (void)run(true, true);
    expect("-1 sessions session with peer-1 is up, dialled by the other end\n");
    expect("-1 sessions HELLO of peer-1 accepted: round 0\n");
    expect("-1 edges edge to peer-1: added to the graph\n");
    expect("-1 edges edge to peer-1: ASKING -> OPEN (the first epoch begins)\n");
    expect("-1 phase_log phase JOINING -> TRAINING (all 2 edges are open)\n");
    expect("-1 resume checkpoint of round ");
    expect("-1 node writing the checkpoint of round ");
    expect("-1 sessions session with peer-2 is down: the connection broke\n");
    expect("-1 edges edge to peer-2: OPEN -> PAUSED (the session is lost)\n");
    expect("-1 edges edge to peer-2: removed from the graph\n");
    expect("-1 phase_log phase TRAINING -> CONSENSUS (all 400 rounds are done)\n");
    expect("-1 phase_log phase CONSENSUS -> FINISHING (");
    expect("-1 edges edge to peer-1: OPEN -> DONE (the neighbour's model is final)\n");
    expect("-1 phase_log phase FINISHING -> LEFT (the peer has ended, exit code 0)\n");
}

/* Without config.log_debug there are no debug notes, and the run is the same. */
static void test_notes_do_not_change_a_run(void **state)
{
    (void)state;
    for (int sessions = 0; sessions < 2; sessions++) {
        uint64_t hash = run(true, sessions != 0);
        assert_true(n_debug > 0);
        assert_int_equal(run(false, sessions != 0), hash);
        assert_int_equal(n_debug, 0);
    }
}

/* However many debug notes a step has, there is room for other notes. */
static void test_debug_notes_leave_room_for_warnings(void **state)
{
    struct env *v = calloc(1, sizeof *v);
    struct node_effects *fx = calloc(1, sizeof *fx);
    (void)state;
    assert_true(v != NULL && fx != NULL);
    v->fx = fx;
    env_debug(v, "not evaluated");
    assert_int_equal(fx->n_notes, 0);
    v->config.log_debug = true;
    for (int i = 0; i < 2 * NODE_NOTES_MAX; i++)
        env_debug(v, "debug %d", i);
    assert_int_equal(fx->n_notes, NODE_NOTES_MAX - NODE_NOTES_KEPT);
    for (int i = 0; i < 2 * NODE_NOTES_MAX; i++)
        env_note(v, NOTE_WARNING, "warning %d", i);
    assert_int_equal(fx->n_notes, NODE_NOTES_MAX);
    const struct node_note *last = &fx->notes[NODE_NOTES_MAX - 1];
    assert_string_equal(last->text, "warning 15");
    assert_string_equal(last->module, "sim_debug_notes");
    free(fx);
    free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes_of_state_are_reported),
        cmocka_unit_test(test_notes_do_not_change_a_run),
        cmocka_unit_test(test_debug_notes_leave_room_for_warnings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
