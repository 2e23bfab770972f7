/* tests/explore/story.c -- writes the protocol steps of a run (story.h). */
#include "story.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { EPOCHS_MAX = 256, STATE_TEXT = 200, MESSAGE_TEXT = 4096 };

/* Epoch and round of the last delta that one peer received from another. */
struct last_delta
{
    uint64_t epoch, round;
};

struct story
{
    FILE *f;
    uint64_t epoch[EPOCHS_MAX];
    uint32_t n_epochs;
    char epoch_text[16]; /* Result of epoch_text(), valid until its next call. */
    struct last_delta delta[PLAN_PEERS_MAX][PLAN_PEERS_MAX];
    char state[PLAN_PEERS_MAX][STATE_TEXT];
    struct wire_batch batch;
};

struct story *story_open(FILE *f)
{
    struct story *s = calloc(1, sizeof *s);
    if (s != NULL)
        s->f = f;
    return s;
}

void story_close(struct story *s)
{
    free(s);
}

static void begin(struct story *s, int64_t now_us, uint32_t peer)
{
    fprintf(s->f, "%9.3f  ", (double)(now_us / 1000) * 1e-3);
    if (peer != UINT32_MAX)
        fprintf(s->f, "%" PRIu32 "  ", peer);
}

void story_say(struct story *s, int64_t now_us, uint32_t peer, const char *text)
{
    begin(s, now_us, peer);
    fprintf(s->f, "%s\n", text);
}

static const char *epoch_text(struct story *s, uint64_t epoch)
{
    uint32_t i = 0;
    while (i < s->n_epochs && s->epoch[i] != epoch)
        i++;
    if (i == s->n_epochs && epoch != 0 && s->n_epochs < EPOCHS_MAX)
        s->epoch[s->n_epochs++] = epoch;
    snprintf(s->epoch_text, sizeof s->epoch_text, "e%" PRIu32, i + 1);
    return epoch == 0 ? "no epoch" : s->epoch_text;
}

/* ---- messages ---- */

/* Returns whether a delta belongs to the round after the previous delta and to the same epoch. The
 * story leaves out such a delta, and shows the first delta of an epoch, a repeated one and one
 * after a gap. */
static bool follows(struct story *s, uint32_t peer, uint32_t other, const struct wire_delta *d)
{
    struct last_delta *l = &s->delta[peer][other];
    bool next = d->epoch == l->epoch && d->round == l->round + 1;
    *l = (struct last_delta){d->epoch, d->round};
    return next;
}

/* Describes what a message about a model carries: a piece by number, the whole model, or
 * sketches. */
static const char *piece_text(uint32_t piece, uint64_t key, uint64_t round)
{
    static char text[32];
    const char *of = round == WIRE_ROUND_INITIAL ? "initial " : "";
    snprintf(text, sizeof text, "%spiece %" PRIu32, of, piece);
    return key != 0 ? "sketches" : piece == WIRE_PIECE_WHOLE ? "whole" : text;
}

static bool members_text(char out[MESSAGE_TEXT], const struct wire_members *m)
{
    static const char *const state[] = {"running",  "stalled", "trained",
                                        "finished", "failed",  "left"};
    int len = snprintf(out, MESSAGE_TEXT, "MEMBERS");
    bool news = m->n_accusations > 0;
    for (uint32_t i = 0; i < m->n_records; i++) {
        const struct record *r = &m->records[i];
        if (r->state == RECORD_RUNNING || len > MESSAGE_TEXT - 100)
            continue;
        news = true;
        len += snprintf(out + len, (size_t)(MESSAGE_TEXT - len), " %s %s", r->name,
                        r->state < sizeof state / sizeof *state ? state[r->state] : "?");
    }
    if (m->n_accusations > 0)
        snprintf(out + len, (size_t)(MESSAGE_TEXT - len), " accused: %" PRIu32, m->n_accusations);
    return news;
}

/* Describes a message for the story. Returns false if the message repeats an earlier one, because
 * the story leaves it out. */
static bool message_text(struct story *s, uint32_t peer, uint32_t other,
                         const struct wire_message *m, char out[MESSAGE_TEXT])
{
    switch (m->type) {
    case WIRE_HELLO:
        snprintf(out, MESSAGE_TEXT, "HELLO round %" PRIu64 "%s%s", m->hello.round,
                 m->hello.has_run ? "" : " without a run", m->hello.has_started ? " started" : "");
        return true;
    case WIRE_MEMBERS:
        return members_text(out, &m->members);
    case WIRE_PING:
        snprintf(out, MESSAGE_TEXT, "PING finished");
        return m->ping.finished;
    case WIRE_EDGE:
        snprintf(out, MESSAGE_TEXT, "EDGE %s round %" PRIu64 "%s", epoch_text(s, m->edge.epoch),
                 m->edge.round, m->edge.nonce & 1 ? " answer" : "");
        return true;
    case WIRE_EDGE_CLOSE:
        snprintf(out, MESSAGE_TEXT, "EDGE_CLOSE");
        return true;
    case WIRE_DELTA:
        snprintf(out, MESSAGE_TEXT, "DELTA %s round %" PRIu64 " codec %" PRIu32 " beat %" PRIu64,
                 epoch_text(s, m->delta.epoch), m->delta.round, m->delta.codec, m->delta.run_round);
        return !follows(s, peer, other, &m->delta);
    case WIRE_MODEL_REQ:
        snprintf(out, MESSAGE_TEXT, "MODEL_REQ %s",
                 piece_text(m->model_req.piece, m->model_req.key, m->model_req.round));
        return true;
    case WIRE_MODEL:
        snprintf(out, MESSAGE_TEXT, "MODEL round %" PRIu64 " %s", m->model.round,
                 piece_text(m->model.piece, m->model.key, m->model.round));
        return true;
    case WIRE_FINISH: {
        static const char *const word[WIRE_FINISH_END] = {"ASK", "PROPOSE", "REPORT", "ACCEPTED",
                                                          "DECIDED"};
        snprintf(out, MESSAGE_TEXT, "FINISH %s ballot %" PRIu64 " models %" PRIu32,
                 word[m->finish.word], m->finish.ballot.number, m->finish.n_models);
        return true;
    }
    case WIRE_HAND:
        snprintf(out, MESSAGE_TEXT, "HAND %d", (int)m->hand.word);
        return true;
    case WIRE_ROUND_PROTOCOL:
        snprintf(out, MESSAGE_TEXT,
                 "ROUND_PROTOCOL round %" PRIu64 " attempt %" PRIu32 " step %" PRIu32,
                 m->round_protocol.round, m->round_protocol.attempt, m->round_protocol.step);
        return true;
    case WIRE_PART:
    case WIRE_MOMENTS:
    case WIRE_BEAT:
    case WIRE_PROBE:
    case WIRE_HEARD:
    case WIRE_REFUSED:
    case WIRE_CALLBACK:
    case WIRE_STATUS_REQ:
    case WIRE_STATUS:
    case WIRE_NONE:
    case WIRE_TYPE_END:
        break;
    }
    return false;
}

static void receive(struct story *s, uint32_t peer, const struct node_event *ev, uint32_t other)
{
    struct wire_message m;
    char text[MESSAGE_TEXT];
    if (!wire_read(ev->recv.bytes, ev->recv.len, &s->batch, &m)
        || !message_text(s, peer, other, &m, text))
        return;
    begin(s, ev->now_us, peer);
    fprintf(s->f, "<- %" PRIu32 "  %s\n", other, text);
}

void story_event(struct story *s, uint32_t peer, const struct node_event *ev, uint32_t other)
{
    char text[64] = "";
    switch (ev->type) {
    case NODE_RECV:
        receive(s, peer, ev, other);
        return;
    case NODE_START:
        snprintf(text, sizeof text, "starts");
        break;
    case NODE_LINK_UP:
        snprintf(text, sizeof text, "session with %" PRIu32 "%s", other,
                 ev->up.dialled ? ", dialled" : "");
        break;
    case NODE_LINK_DOWN:
        snprintf(text, sizeof text, "session with %" PRIu32 " ends%s", other,
                 ev->down.clean ? " by a word" : "");
        break;
    case NODE_DIAL_FAILED:
        snprintf(text, sizeof text, "dial fails");
        break;
    case NODE_RESOLVED:
        snprintf(text, sizeof text, "name %" PRIu32 " is %s", ev->resolved.seed,
                 ev->resolved.n > 0 ? ev->resolved.address[0] : "nothing");
        break;
    case NODE_STOP:
        snprintf(text, sizeof text, "is asked to leave");
        break;
    case NODE_TIMER:
    case NODE_PART:
    case NODE_SIGNED:
    case NODE_WORKED:
    case NODE_KEPT:
    case NODE_ADMIT:
    case NODE_HANDED:
    case NODE_WRITTEN:
    case NODE_CARRIED:
    case NODE_HEARD:
    case NODE_SENT:
        return;
    }
    story_say(s, ev->now_us, peer, text);
}

/* ---- state of a peer ---- */

void story_state(struct story *s, const struct cluster *c, uint32_t peer)
{
    static const char *const phase[] = {"joining", "training", "consensus", "finishing", "left"};
    static const char *const state[] = {"closed", "asking", "open", "paused", "done"};
    char text[STATE_TEXT];
    const struct node *n = sim_node(c->world, peer);
    if (n == NULL)
        return;
    struct node_progress p = cluster_progress(c, peer);
    int len = snprintf(text, sizeof text, "%s%s", phase[p.phase], p.holds ? ", holds" : "");
    for (size_t i = 0; i < node_n_edges(n) && len < STATE_TEXT - 24; i++) {
        struct node_edge e;
        node_edge(n, i, &e);
        for (uint32_t j = 0; j < c->plan.n_peers; j++)
            if (memcmp(sim_id(c->world, j), e.id, sizeof e.id) == 0)
                len += snprintf(text + len, sizeof text - (size_t)len, ", %" PRIu32 " %s", j,
                                state[e.state]);
    }
    if (strcmp(text, s->state[peer]) == 0)
        return;
    memcpy(s->state[peer], text, sizeof text);
    begin(s, sim_now_us(c->world), peer);
    fprintf(s->f, "at %" PRIu64 ": %s\n", p.round, text);
}
