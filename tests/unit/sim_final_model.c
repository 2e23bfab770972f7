/* tests/unit/sim_final_model.c -- a peer whose disk refuses the final model for some time, or for
 * the rest of the run. */
#include "peer/node/result/verdict.h"
#include "peer/run/exit.h"
#include "sim_rig.h"

#include <inttypes.h>

enum { PEERS = 4, DIM = 300, SECOND = 1000000 };

/* Events of the last simulated run. */
static struct
{
    /* Number of warnings that the model is not stored, of messages that it is stored after all, and
     * of errors that it is lost. */
    uint32_t n_warned, n_late, n_lost;
    int64_t failed_us; /* Simulated time of the first failed write. */
    uint32_t n_writes; /* Number of writes of the peer with the full disk. */
    struct sim_world *const *world;
} seen;

static void hear(void *self, uint32_t peer, const struct node_note *note)
{
    (void)self, (void)peer;
    bool warned = strstr(note->text, "the final model is not stored, retrying for ") != NULL;
    if (warned) {
        assert_non_null(strstr(note->text, " s (--quorum-timeout): model: the disk is full"));
        seen.failed_us = sim_now_us(*seen.world);
    }
    seen.n_warned += warned;
    seen.n_late += strstr(note->text, "the final model is stored, after retries for ") != NULL;
    seen.n_lost += strstr(note->text, "the final model is lost, ") != NULL;
}

static void watch(void *self, uint32_t peer, const struct node_event *ev, uint32_t other)
{
    (void)self, (void)other;
    seen.n_writes += peer == 0 && ev->type == NODE_KEPT;
}

static int64_t patience_us;

static void be_patient(void *self, uint32_t peer, struct node_config *c)
{
    (void)self, (void)peer;
    c->patience_us = patience_us;
}

/* Writes the verdict of a peer with "D" in the place of the consensus distance. */
static void say_verdict(const struct rig *r, uint32_t peer, char text[VERDICT_TEXT])
{
    struct verdict_facts f;
    struct verdict o;
    node_facts(sim_node(r->world, peer), &f);
    verdict_judge(&o, &f);
    snprintf(text, VERDICT_TEXT, "%s", o.text);
    char *at = strstr(text, "relative drift "), *end = at != NULL ? strstr(at, " (") : NULL;
    if (end == NULL)
        return;
    at[strlen("relative drift ")] = 'D';
    at += strlen("relative drift D");
    memmove(at, end, strlen(end) + 1);
}

/* Runs four peers. The disk of peer 0 refuses the model from the start until full_us after the
 * first failed write. Peer 0 must end with the verdict `own` and exit code `code`, and the others
 * with the verdict `others` and exit code 0. Returns the time from the first failed write to the
 * end of the other peers, in microseconds. */
static int64_t end_with(const char *topology, double final_drift, int64_t limit_us, int64_t full_us,
                        int code, const char *own, const char *others)
{
    struct rig r;
    int64_t over_us = 0;
    rig_init(&r, PEERS, DIM, topology, "topk:0.1", 0);
    r.eta = 0.05f;
    r.config.run.rounds = 60;
    r.config.run.final_drift = final_drift;
    r.config.sessions = true;
    r.config.note = hear;
    r.config.watch = watch;
    r.config.configure = be_patient;
    patience_us = limit_us;
    memset(&seen, 0, sizeof seen);
    seen.world = &r.world;
    rig_open(&r);
    sim_fill_disk(r.world, 0, true);
    for (bool steps = true; steps;) {
        int ended = 0, any;
        steps = sim_step(r.world);
        if (seen.failed_us > 0 && sim_now_us(r.world) - seen.failed_us >= full_us)
            sim_fill_disk(r.world, 0, false);
        for (uint32_t i = 1; i < PEERS; i++)
            ended += sim_ended(r.world, i, &any);
        if (ended == PEERS - 1 && over_us == 0)
            over_us = sim_now_us(r.world) - seen.failed_us;
    }
    for (uint32_t i = 0; i < PEERS; i++) {
        char text[VERDICT_TEXT];
        int ended_with;
        assert_true(sim_ended(r.world, i, &ended_with));
        say_verdict(&r, i, text);
        assert_string_equal(text, i == 0 ? own : others);
        assert_int_equal(ended_with, i == 0 ? code : CMD_OK);
    }
    assert_int_equal(seen.n_warned, limit_us > 0);
    assert_int_equal(seen.n_late, code == CMD_OK);
    assert_int_equal(seen.n_lost, code == CMD_FAILED);
    rig_close(&r);
    return over_us;
}

/* The disk is full for 5 s. The writes after 0, 1 and 3 s fail, and the write after 7 s succeeds.
 * The other peers wait for peer 0, and all peers claim the same consensus. */
static void test_full_for_5_s(void **state)
{
    (void)state;
    static const char all[] = "consensus of 4 of 4 peers at relative drift D (estimated, target "
                              "0.001); no round skipped";
    int64_t over_us =
        end_with("complete", 1e-3, 600 * INT64_C(1000000), 5 * SECOND, CMD_OK, all, all);
    assert_int_equal(seen.n_writes, 4);
    assert_in_range(over_us, 7 * SECOND, 10 * SECOND);
}

/* The disk is full until the end. Peer 0 fails after its --quorum-timeout of 10 s, with writes
 * after 0, 1, 3, 7 and 10 s. The others learn that peer 0 has failed, and do not count it. */
static void test_full_for_ever(void **state)
{
    (void)state;
    int64_t over_us =
        end_with("complete", 1e-3, 10 * SECOND, INT64_MAX, CMD_FAILED, "failed at round 60 of 60",
                 "consensus of 3 of 4 peers (dead: peer-0) at relative drift D (estimated, target "
                 "0.001); no round skipped");
    assert_int_equal(seen.n_writes, 5);
    assert_in_range(over_us, 10 * SECOND, 13 * SECOND);
}

/* The disk of peer 0 is full until the end, and --quorum-timeout is 600 s. The others wait for peer
 * 0 to finish, but for no longer than 2/3 (--quorum-timeout + SCHEDULE_STALL_US), which is 420
 * s. */
static void test_others_wait_no_longer(void **state)
{
    (void)state;
    int64_t over_us = end_with(
        "ring", 1e-3, 600 * INT64_C(1000000), INT64_MAX, CMD_FAILED, "failed at round 60 of 60",
        "consensus of 3 of 4 peers (peer-0: it had not finished) at relative drift D "
        "(estimated, target 0.001); no round skipped");
    assert_in_range(over_us, 419 * INT64_C(1000000), 423 * INT64_C(1000000));
}

/* Without a consensus phase there is no certificate: the others end when peer 0 reports its end,
 * and no later than SCHEDULE_STALL_US. Peer 0 must report that it has failed before that. */
static void test_without_consensus_phase(void **state)
{
    (void)state;
    int64_t over_us = end_with(
        "complete", 0, 10 * SECOND, INT64_MAX, CMD_FAILED, "failed at round 60 of 60",
        "no consensus phase was requested, so no consensus is claimed: 3 of 4 peers (dead: "
        "peer-0); no round skipped");
    assert_in_range(over_us, 10 * SECOND, 11 * SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_for_5_s),
        cmocka_unit_test(test_full_for_ever),
        cmocka_unit_test(test_others_wait_no_longer),
        cmocka_unit_test(test_without_consensus_phase),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
