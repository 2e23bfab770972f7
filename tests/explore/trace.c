/* tests/explore/trace.c -- writes each event that reaches a node, one line per event. */
#include "cluster.h"

#include "peer/node/verdict.h"

#include <inttypes.h>

static unsigned mark(uint64_t x)
{
    return (unsigned)(x % 0xffff);
}

static void say_message(FILE *f, const struct wire_message *m)
{
    switch (m->type) {
    case WIRE_HELLO:
        fprintf(f, "HELLO round=%" PRIu64 " started=%d run=%d boot=%04x", m->hello.round,
                m->hello.has_started, m->hello.has_run, mark(m->hello.record.boot));
        break;
    case WIRE_MEMBERS:
        fprintf(f, "MEMBERS");
        for (uint32_t i = 0; i < m->members.n_records; i++)
            fprintf(f, " %s:%d@%" PRIu64, m->members.records[i].name, m->members.records[i].state,
                    m->members.records[i].incarnation);
        if (m->members.n_accusations > 0)
            fprintf(f, " accusations=%" PRIu32, m->members.n_accusations);
        break;
    case WIRE_PING:
        fprintf(f, "PING round=%" PRIu64 "%s", m->ping.round, m->ping.finished ? " finished" : "");
        break;
    case WIRE_EDGE:
        fprintf(f, "EDGE epoch=%04x round=%" PRIu64 " nonce=%04x%s", mark(m->edge.epoch),
                m->edge.round, mark(m->edge.nonce), m->edge.nonce & 1 ? " answer" : "");
        break;
    case WIRE_BEAT:
        fprintf(f, "BEAT run=%" PRIu64, m->beat.run_round);
        break;
    case WIRE_PROBE:
        fprintf(f, "PROBE");
        break;
    case WIRE_HEARD:
        fprintf(f, "HEARD age_ms=%" PRIu32, m->heard.age_ms);
        break;
    case WIRE_REFUSED:
        fprintf(f, "REFUSED why=%d", (int)m->refused.why);
        break;
    case WIRE_CALLBACK:
        fprintf(f, "CALLBACK why=%" PRIu32, m->callback.why);
        break;
    case WIRE_FINISH:
        fprintf(f,
                "FINISH word=%d ballot=%" PRIu64 " promised=%" PRIu64 " accepted=%" PRIu64
                " models=%" PRIu32,
                (int)m->finish.word, m->finish.ballot.number, m->finish.promised.number,
                m->finish.accepted.number, m->finish.n_models);
        break;
    case WIRE_ROUND_PROTOCOL:
        fprintf(f, "ROUND_PROTOCOL word=%d round=%" PRIu64 " attempt=%" PRIu32 " step=%" PRIu32,
                (int)m->round_protocol.word, m->round_protocol.round, m->round_protocol.attempt,
                m->round_protocol.step);
        break;
    case WIRE_EDGE_CLOSE:
        fprintf(f, "EDGE_CLOSE");
        break;
    case WIRE_DELTA:
        fprintf(f, "DELTA epoch=%04x round=%" PRIu64 " run=%" PRIu64 " settled=%" PRIu32,
                mark(m->delta.epoch), m->delta.round, m->delta.run_round, m->delta.settled);
        break;
    case WIRE_MODEL_REQ:
        fprintf(f, "MODEL_REQ piece=%" PRIx32 "%s", m->model_req.piece,
                m->model_req.key != 0 ? " sketches" : "");
        break;
    case WIRE_MODEL:
        fprintf(f, "MODEL round=%" PRIu64 " piece=%" PRIx32 "%s", m->model.round, m->model.piece,
                m->model.key != 0 ? " sketches" : "");
        break;
    case WIRE_PART:
        fprintf(f, "PART epoch=%04x round=%" PRIu64 " after=%" PRIu64 " bytes=%zu",
                mark(m->part.epoch), m->part.round, m->part.after, m->part.payload.n);
        break;
    case WIRE_HAND:
        fprintf(f, "HAND word=%d", (int)m->hand.word);
        break;
    case WIRE_MOMENTS:
        fprintf(f, "MOMENTS bytes=%zu", m->moments.payload.n);
        break;
    case WIRE_STATUS_REQ:
    case WIRE_STATUS:
    case WIRE_NONE:
    case WIRE_TYPE_END:
        fprintf(f, "message %d", (int)m->type);
        break;
    }
}

static void say_state(const struct cluster *c, uint32_t peer)
{
    static const char *const phase[] = {"joining", "training", "consensus", "finishing", "left"};
    static const char letter[] = "-aop.";
    struct node_progress p = cluster_progress(c, peer);
    struct node_size s;
    node_size(sim_node(c->world, peer), &s);
    fprintf(c->trace, "WORKED %s beat=%" PRIu64 " live=%" PRIu32, phase[p.phase], s.beat, p.n_live);
    if (p.phase >= NODE_CONSENSUS) {
        struct verdict_facts f;
        node_facts(sim_node(c->world, peer), &f);
        fprintf(c->trace, " apart=%.2g", f.distance);
    }
    for (size_t i = 0; i < node_n_edges(sim_node(c->world, peer)); i++) {
        struct node_edge e;
        node_edge(sim_node(c->world, peer), i, &e);
        fprintf(c->trace, " %c%" PRIu64, letter[e.state], e.round);
    }
}

void trace_event(void *self, uint32_t peer, const struct node_event *ev, uint32_t other)
{
    struct cluster *c = self;
    static struct wire_batch batch;
    struct wire_message m;
    if (ev->type == NODE_TIMER || ev->type == NODE_SENT)
        return;
    fprintf(c->trace, "%11.6f %-2" PRIu32 " ", (double)sim_now_us(c->world) * 1e-6, peer);
    switch (ev->type) {
    case NODE_START:
        fprintf(c->trace, "   START");
        break;
    case NODE_LINK_UP:
        fprintf(c->trace, "%-2" PRIu32 " LINK_UP %" PRIu32 "%s", other, ev->link,
                ev->up.dialled ? " dialled" : "");
        break;
    case NODE_LINK_DOWN:
        fprintf(c->trace, "%-2" PRIu32 " LINK_DOWN %" PRIu32 "%s", other, ev->link,
                ev->down.clean ? " clean" : "");
        break;
    case NODE_DIAL_FAILED:
        fprintf(c->trace, "   DIAL_FAILED");
        break;
    case NODE_RESOLVED:
        fprintf(c->trace, "   RESOLVED %" PRIu32 ": %s", ev->resolved.seed,
                ev->resolved.n > 0 ? ev->resolved.address[0] : "nothing");
        break;
    case NODE_RECV:
        fprintf(c->trace, "%-2" PRIu32 " ", other);
        if (wire_read(ev->recv.bytes, ev->recv.len, &batch, &m))
            say_message(c->trace, &m);
        break;
    case NODE_PART:
        fprintf(c->trace, "   PART");
        break;
    case NODE_SIGNED:
        fprintf(c->trace, "   SIGNED");
        break;
    case NODE_WORKED:
        fprintf(c->trace, "   ");
        say_state(c, peer);
        break;
    case NODE_KEPT:
        fprintf(c->trace, "   KEPT%s", ev->kept.stored ? "" : " not");
        break;
    case NODE_ADMIT:
        fprintf(c->trace, "   ADMIT %zu", ev->admit.n);
        break;
    case NODE_HANDED:
        fprintf(c->trace, "   HANDED%s", ev->kept.stored ? "" : " not");
        break;
    case NODE_HEARD:
        fprintf(c->trace, "   HEARD %" PRIu32, ev->link);
        break;
    case NODE_CARRIED:
        fprintf(c->trace, "   CARRIED");
        break;
    case NODE_WRITTEN:
        fprintf(c->trace, "   WRITTEN");
        break;
    case NODE_STOP:
        fprintf(c->trace, "   STOP");
        break;
    case NODE_TIMER:
    case NODE_SENT:
        break;
    }
    fprintf(c->trace, "\n");
}
