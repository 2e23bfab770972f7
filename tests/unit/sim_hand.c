/* tests/unit/sim_hand.c -- hand-off of final models: peers with a full disk give their model to
 * others. */
#include "peer/run/exit.h"
#include "sim_rig.h"

enum { PEERS = 4, DIM = 300 };

/* n_with: number of messages to users that another peer has stored the model. n_lost: number of
 * messages that no other peer could store it. */
static uint32_t n_with, n_lost;

static void hear(void *self, uint32_t peer, const struct node_note *note)
{
    (void)self, (void)peer;
    n_with += strstr(note->text, "this peer's model is stored by ") != NULL;
    n_lost += strstr(note->text, "no other peer could store this peer's model") != NULL;
}

static uint32_t last_word; /* Kind of the last HAND message that reached a peer. */
static uint32_t n_offers;
static int64_t patience_us = 600 * INT64_C(1000000);
/* If true, the next MODEL message that reaches a peer with a complete model gets a value that is
 * not finite. */
static bool spoil;

static void watch(void *self, uint32_t peer, const struct node_event *ev, uint32_t other)
{
    static struct wire_batch batch;
    struct wire_message m;
    (void)self, (void)peer, (void)other;
    if (ev->type != NODE_RECV || !wire_read(ev->recv.bytes, ev->recv.len, &batch, &m))
        return;
    if (m.type == WIRE_HAND) {
        last_word = m.hand.word;
        n_offers += m.hand.word == WIRE_HAND_OFFERED;
    }
    if (m.type == WIRE_MODEL && m.model.piece == WIRE_PIECE_WHOLE && spoil) {
        memset((uint8_t *)ev->recv.bytes + (m.model.payload.p - ev->recv.bytes), 0xff, 8);
        spoil = false;
    }
}

static void be_patient(void *self, uint32_t peer, struct node_config *c)
{
    (void)self, (void)peer;
    c->patience_us = patience_us;
}

static void end_with(struct rig *r, uint32_t n_full)
{
    rig_init(r, PEERS, DIM, "complete", "topk:0.1", 0);
    r->eta = 0.05f;
    r->config.run.rounds = 60;
    r->config.run.final_drift = 1e-3;
    r->config.sessions = true;
    r->config.note = hear;
    r->config.watch = watch;
    r->config.configure = be_patient;
    n_with = n_lost = n_offers = 0;
    rig_open(r);
    for (uint32_t i = 0; i < n_full; i++)
        sim_fill_disk(r->world, i, true);
    rig_run(r, UINT64_MAX);
    for (uint32_t i = 0; i < PEERS; i++) {
        int code;
        assert_true(sim_ended(r->world, i, &code));
        assert_int_equal(code, i < n_full ? CMD_FAILED : 0);
    }
}

/* One disk is full. The first peer that is asked must store the model of the peer with the full
 * disk. The peer with the full disk still counts as failed. */
static void test_handed(void **state)
{
    struct rig r;
    (void)state;
    end_with(&r, 1);
    assert_int_equal(n_with, 1);
    assert_int_equal(n_lost, 0);
    assert_int_equal(n_offers, 1);
    assert_int_equal(last_word, WIRE_HAND_STORED);
    assert_non_null(node_handed_to(sim_node(r.world, 0)));
    assert_null(node_handed_to(sim_node(r.world, 1)));
    rig_close(&r);
}

/* Three of four disks are full. A peer with a full disk must refuse to store a model, and the next
 * peer must be asked. The peer with free space stores all models. */
static void test_next_is_asked(void **state)
{
    struct rig r;
    (void)state;
    end_with(&r, 3);
    assert_int_equal(n_with, 3);
    assert_true(n_offers > 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_string_equal(node_handed_to(sim_node(r.world, i)), "peer-3");
    rig_close(&r);
}

/* Only one peer has free space, and it is busy storing the model of another. The remaining peers
 * must stop asking it after their quorum timeout. */
static void test_patience_is_over(void **state)
{
    struct rig r;
    (void)state;
    patience_us = 0;
    end_with(&r, 3);
    patience_us = 600 * INT64_C(1000000);
    assert_in_range(n_with, 1, 2);
    assert_int_equal(n_with + n_lost, 3);
    rig_close(&r);
}

/* All disks are full. Each peer must report that its model is lost, and the run must end. */
static void test_lost(void **state)
{
    struct rig r;
    (void)state;
    end_with(&r, PEERS);
    assert_int_equal(n_with, 0);
    assert_int_equal(n_lost, PEERS);
    rig_close(&r);
}

/* A peer that is asked to store bytes that are not a model must refuse them as a violation. Another
 * peer must get the whole model. */
static void test_spoilt(void **state)
{
    struct rig r;
    uint64_t violations = 0;
    (void)state;
    spoil = true;
    end_with(&r, 1);
    assert_false(spoil);
    for (uint32_t i = 1; i < PEERS; i++)
        violations += rig_progress(&r, i).violations;
    assert_int_equal(violations, 1);
    assert_int_equal(n_with, 1);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handed),           cmocka_unit_test(test_next_is_asked),
        cmocka_unit_test(test_patience_is_over), cmocka_unit_test(test_lost),
        cmocka_unit_test(test_spoilt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
