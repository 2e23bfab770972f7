/* tests/unit/node_run_ended.c -- tests of a node whose run has ended without it: the node reports
 * that and ends soon. */
#include "tests/unit/node_lone_world.h"

#include "peer/node/result/verdict.h"

enum { LOW_ID = 0x10, ROUNDS = 2000, PATIENCE_S = 20 };

static struct verdict judged(struct lone *w)
{
    struct verdict_facts f;
    struct verdict o;
    node_facts(w->node, &f);
    verdict_judge(&o, &f);
    return o;
}

/* ---- gathering ---- */

/* Returns a node that meets no other peer. */
static struct lone *lonely(enum node_past past, uint32_t min_peers)
{
    struct lone *w = lone_new(1, LOW_ID, ROUNDS);
    w->run.min_peers = min_peers;
    w->config.n_known = 0;
    w->config.past = past;
    w->config.patience_us = PATIENCE_S * (int64_t)SECOND;
    w->deaf = true;
    lone_open(w);
    return w;
}

static void test_the_others_do_not_come_back(void **state)
{
    (void)state;
    struct lone *w = lonely(NODE_PAST_MEMBER, 2);
    lone_run(w, (PATIENCE_S - 2) * (int64_t)SECOND);
    assert_false(w->over);
    assert_int_equal(lone_said(w, "has no checkpoint from which it can resume: it fetches the "
                                  "model of the members that train, or begins again at round 0"),
                     1);
    assert_int_equal(lone_warned(w, "has no checkpoint"), 0);
    lone_run(w, 4 * (int64_t)SECOND);
    assert_true(w->over && !w->wrote_model);
    assert_int_equal(judged(w).kind, VERDICT_AWAY);
    lone_close(w);
}

/* A member with a checkpoint is back, and waits for further members itself (resume.h). The node must
 * not end before that member has decided. */
static void test_another_member_waits_to_resume(void **state)
{
    (void)state;
    struct lone *w = lone_new(1, LOW_ID, ROUNDS);
    struct lone_actor *a = &w->actor[0];
    w->run.min_peers = 3;
    w->config.past = NODE_PAST_MEMBER;
    w->config.patience_us = PATIENCE_S * (int64_t)SECOND;
    a->record.beat[0] = a->record.beat[1] = 40;
    a->record = signed_record(a->record);
    lone_open(w);
    lone_run(w, PATIENCE_S * (int64_t)SECOND + RESUME_US - SECOND);
    assert_false(w->over);
    lone_run(w, PATIENCE_S * (int64_t)SECOND + SCHEDULE_OPENING_US + 10 * (int64_t)SECOND);
    assert_true(w->over);
    assert_int_equal(judged(w).kind, VERDICT_AWAY);
    lone_close(w);
}

/* A node that was never a member of the run waits for other members without a limit. */
static void test_who_is_new_waits(void **state)
{
    (void)state;
    struct lone *w = lonely(NODE_PAST_NONE, 2);
    lone_run(w, 10 * PATIENCE_S * (int64_t)SECOND);
    assert_false(w->over);
    assert_int_equal(lone_said(w, "has no checkpoint from which it can resume"), 0);
    lone_close(w);
}

/* An earlier process has stored its final model, with which the other members may have ended. This
 * process must not train alone and replace that model, even if --min-peers allows it. */
static void test_a_final_model_is_not_trained_again(void **state)
{
    (void)state;
    struct lone *w = lonely(NODE_PAST_FINAL, 1);
    lone_run(w, (PATIENCE_S - 2) * (int64_t)SECOND);
    assert_false(w->over);
    assert_int_equal(lone_progress(w).phase, NODE_JOINING);
    assert_int_equal(
        lone_warned(w, "this peer was in the run before, and has stored its final model"), 1);
    assert_true(lone_said(w, "waiting for a member that has begun the run") > 0);
    assert_int_equal(lone_said(w, "(--min-peers) are here"), 0);
    lone_run(w, 4 * (int64_t)SECOND);
    assert_true(w->over && !w->wrote_model);
    assert_int_equal(judged(w).kind, VERDICT_AWAY);
    lone_close(w);
}

/* Without a final model, a peer that was in the run before begins it again if --min-peers allows
 * it. */
static void test_a_member_without_a_final_model_begins_again(void **state)
{
    (void)state;
    struct lone *w = lonely(NODE_PAST_MEMBER, 1);
    lone_run(w, (PATIENCE_S - 2) * (int64_t)SECOND);
    assert_int_equal(lone_progress(w).phase, NODE_TRAINING);
    lone_close(w);
}

/* ---- the consensus phase ---- */

/* In the consensus phase the only neighbour finishes, and its process ends without a certificate. It
 * may start again, so the node must wait for --quorum-timeout plus SCHEDULE_STALL_US. */
static void test_all_others_have_finished(void **state)
{
    (void)state;
    struct lone *w = lone_new(1, LOW_ID, ROUNDS);
    struct lone_actor *a = &w->actor[0];
    w->run.final_drift = 1e-3;
    /* Without sketches no distance is measured, so the consensus phase does not end by itself. */
    a->blind = true;
    lone_open(w);
    while (lone_progress(w).phase < NODE_CONSENSUS)
        lone_run(w, LONE_STEP_US);
    lone_run(w, SECOND);
    a->record.state = RECORD_FINISHED;
    a->record.incarnation++;
    lone_tell(w, 0, a->record);
    lone_run(w, SECOND / 10);
    a->answers = false; /* The process of the neighbour has ended, so the host refuses dials. */
    /* At first the node has no route to the host of the neighbour, so a failed dial is no evidence
     * that the neighbour has ended. */
    w->no_route = true;
    lone_disconnect(w, a->link, true);
    lone_run(w, ENDED_AFTER_PAUSE_US + SECOND);
    assert_false(w->over);
    w->no_route = false;
    lone_run(w, ENDED_AFTER_PAUSE_US / 2);
    assert_false(w->over);
    lone_run(w, ENDED_AFTER_PAUSE_US + 2 * DEAD_REDIAL_ALONE_US);
    assert_false(w->over);
    lone_run(w, PATIENCE_S * (int64_t)SECOND + SCHEDULE_STALL_US);
    assert_true(w->over);
    struct verdict o = judged(w);
    assert_int_equal(o.exit_code, 3);
    assert_non_null(strstr(o.text, "dead: peer-1"));
    lone_close(w);
}

/* Two members with one name are dead: a member came back with a new identity, and died again. The
 * verdict lists the name once. */
static void test_a_dead_name_is_listed_once(void **state)
{
    (void)state;
    struct lone *w = lone_new(3, LOW_ID, ROUNDS);
    struct verdict_facts f;
    for (uint32_t i = 1; i < 3; i++) {
        struct lone_actor *a = &w->actor[i];
        a->answers = false;
        strcpy(a->record.name, "peer-1");
        a->record = w->known[i] = signed_record(a->record);
    }
    strcpy(w->actor[0].record.name, "peer-9");
    w->actor[0].record = w->known[0] = signed_record(w->actor[0].record);
    lone_open(w);
    lone_run(w, 60 * (int64_t)SECOND);
    node_facts(w->node, &f);
    assert_int_equal(f.n_dead, 1);
    assert_string_equal(f.dead[0], "peer-1");
    lone_close(w);
}

/* Two of three initial members leave. The node and a member that joined later remain. Only the node
 * counts as a voter. */
static void test_members_that_joined_do_not_vote(void **state)
{
    (void)state;
    struct lone *w = lone_new(3, LOW_ID, ROUNDS);
    struct verdict_facts f;
    w->run.min_peers = 3;
    w->actor[2].record.initial = false;
    w->actor[2].record = w->known[2] = signed_record(w->actor[2].record);
    lone_open(w);
    while (lone_progress(w).phase < NODE_TRAINING)
        lone_run(w, LONE_STEP_US);
    for (uint32_t i = 0; i < 2; i++) {
        struct lone_actor *a = &w->actor[i];
        a->record.state = RECORD_LEFT;
        a->record.incarnation++;
        lone_tell(w, i, a->record);
        a->answers = false;
        lone_disconnect(w, a->link, true);
    }
    lone_run(w, SECOND);
    node_facts(w->node, &f);
    assert_true(f.n_begun == 3 && f.n_members == 2 && f.n_among == 2 && f.n_voting == 1);
    assert_int_equal(f.n_left, 2);
    assert_string_equal(f.left[1], "peer-2");
    lone_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_others_do_not_come_back),
        cmocka_unit_test(test_another_member_waits_to_resume),
        cmocka_unit_test(test_who_is_new_waits),
        cmocka_unit_test(test_a_final_model_is_not_trained_again),
        cmocka_unit_test(test_a_member_without_a_final_model_begins_again),
        cmocka_unit_test(test_a_dead_name_is_listed_once),
        cmocka_unit_test(test_members_that_joined_do_not_vote),
        cmocka_unit_test(test_all_others_have_finished),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
