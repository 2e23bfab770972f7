/* tests/explore/conformance.c -- passes the events of an explored run to the checker of the finish
 * protocol (tests/model/conform.h). */
#include "cluster.h"

#include "nn/math/vec.h"
#include "peer/node/state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Callback of one peer for storing a promise: reports the promise to the checker, and stores it on
 * the simulated disk. */
struct keeper
{
    struct cluster *cluster;
    uint32_t peer;
    bool (*keep)(void *self, const uint8_t *bytes, size_t n);
    void *self;
};

struct conformance
{
    struct conform *conform;
    struct keeper keeper[PLAN_PEERS_MAX];
    struct wire_batch batch;
};

static const struct node *node_of(void *self, uint32_t peer)
{
    const struct cluster *c = self;
    return sim_node_at_work(c->world, peer);
}

static void wrong(void *self, const char *text)
{
    cluster_wrong(self, WRONG_CONFORMANCE, "%s", text);
}

static void list_members(void *self, uint32_t peer, struct finish_proposal *out)
{
    certificate_members(node_of(self, peer), out);
}

static void list_voters(void *self, uint32_t peer, struct finish_voters *out)
{
    certificate_voters(node_of(self, peer), out);
}

static bool is_frozen(void *self, uint32_t peer)
{
    return certificate_model(node_of(self, peer)) != CERTIFICATE_MIXING;
}

static bool is_within(void *self, uint32_t peer)
{
    return certificate_model(node_of(self, peer)) == CERTIFICATE_WITHIN;
}

static uint32_t attempt(void *self, uint32_t peer)
{
    return certificate_attempt(node_of(self, peer));
}

static uint64_t model(void *self, uint32_t peer)
{
    const struct cluster *c = self;
    return vec_hash(cluster_model(c, peer), c->plan.dim);
}

static const struct finish_proposal *certificate(void *self, uint32_t peer)
{
    return certificate_known(node_of(self, peer));
}

/* Returns whether the run can have at most one finish certificate (peer/node/finish/README.md): all
 * peers begin together, the quorum is at least half of them, and no peer has a second identity. */
static bool has_guarantee(const struct plan *p)
{
    bool one = p->quorum >= 0.5 && p->min_peers == p->n_peers && !p->listed && p->forget_s <= 0;
    for (uint32_t k = 0; k < p->n_faults; k++) {
        enum fault_kind kind = p->fault[k].kind;
        one &= kind != FAULT_REPLACE && kind != FAULT_CHURN && kind != FAULT_LATE
               && kind != FAULT_FLOOD;
    }
    return one;
}

void conformance_open(struct cluster *c)
{
    if (c->plan.liars != 0 || c->plan.tolerate > 0 || admission_later(&c->plan) != 0)
        return;
    c->conformance = calloc(1, sizeof *c->conformance);
    assert(c->conformance != NULL);
    c->conformance->conform =
        conform_open(&(struct conform_world){.self = c,
                                             .quorum = c->plan.quorum,
                                             .guarantees = has_guarantee(&c->plan),
                                             .wrong = wrong,
                                             .members = list_members,
                                             .voters = list_voters,
                                             .is_frozen = is_frozen,
                                             .is_within = is_within,
                                             .model = model,
                                             .attempt = attempt,
                                             .certificate = certificate});
}

static bool keep(void *self, const uint8_t *bytes, size_t n)
{
    struct keeper *k = self;
    bool stored = k->keep(k->self, bytes, n);
    conform_kept(k->cluster->conformance->conform, k->peer, (struct bytes){bytes, n}, stored);
    return stored;
}

void conformance_configure(struct cluster *c, uint32_t peer, struct node_config *n)
{
    if (c->conformance == NULL)
        return;
    struct keeper *k = &c->conformance->keeper[peer];
    *k = (struct keeper){c, peer, n->keep_promise, n->keep_promise_self};
    n->keep_promise = keep;
    n->keep_promise_self = k;
    conform_start(c->conformance->conform, peer, n->id, n->promise);
}

/* Reads a FINISH message. Returns false if the message has another type. A FINISH begins with the
 * number of its fields as three bytes, and its type as one byte. */
static bool read_finish(struct conformance *f, const uint8_t *bytes, size_t n,
                        struct wire_message *m)
{
    return n > 4 && bytes[0] == 0xdc && bytes[3] == WIRE_FINISH
           && wire_read(bytes, n, &f->batch, m);
}

void conformance_event(struct cluster *c, uint32_t peer, const struct node_event *ev)
{
    struct conformance *f = c->conformance;
    struct wire_message m;
    if (f != NULL && ev->type == NODE_RECV && read_finish(f, ev->recv.bytes, ev->recv.len, &m))
        conform_received(f->conform, peer, &m.finish);
}

void conformance_stepped(struct cluster *c, uint32_t peer, const struct node_effects *fx)
{
    struct conformance *f = c->conformance;
    struct wire_message m;
    if (f == NULL)
        return;
    for (uint32_t i = 0; i < fx->n_sends; i++)
        if (fx->sends[i].body == NULL && read_finish(f, fx->sends[i].head, fx->sends[i].n_head, &m))
            conform_sent(f->conform, peer, &m.finish);
    conform_stepped(f->conform, peer);
    if (members_self(node_of(c, peer)->env.members)->state == RECORD_LEFT)
        conform_left(f->conform, peer);
}

void conformance_end(struct cluster *c)
{
    struct conformance *f = c->conformance;
    if (f == NULL)
        return;
    for (uint32_t i = 0; i < c->plan.n_peers; i++)
        if (sim_node(c->world, i) != NULL)
            conform_end(f->conform, i);
    memcpy(c->out->n_conform, conform_steps(f->conform), sizeof c->out->n_conform);
    if (has_guarantee(&c->plan) && !conform_same_voters(f->conform))
        cluster_wrong(c, WRONG_CONFORMANCE, "peers count different members as voters");
    conform_close(f->conform);
    free(f);
    c->conformance = NULL;
}
