/* peer/trace/message_text.c -- the words and numbers that describe each type of message. */
#include "peer/trace/message_text.h"

#include <inttypes.h>
#include <stdio.h>

/* Sizes of the texts that describe an edge's epoch and a piece of a model, in bytes with the
 * NUL. */
enum { EPOCH_TEXT = 32, PIECE_TEXT = 48 };

/* Callback that returns the number by which a trace names an edge's epoch, and the callback's first
 * argument. */
struct epochs
{
    uint64_t (*number)(void *self, uint64_t epoch);
    void *self;
};

static const char *epoch_text(const struct epochs *e, uint64_t epoch, char out[EPOCH_TEXT])
{
    if (epoch == 0)
        return "no epoch";
    snprintf(out, EPOCH_TEXT, "e%" PRIu64, e->number(e->self, epoch));
    return out;
}

/* Describes what a message about a model carries: a piece by number, the whole model, or
 * sketches. */
static const char *piece_text(uint32_t piece, uint64_t key, uint64_t round, char out[PIECE_TEXT])
{
    const char *of = round == WIRE_ROUND_INITIAL ? "initial " : "";
    snprintf(out, PIECE_TEXT, "%spiece %" PRIu32, of, piece);
    return key != 0 ? "sketches" : piece == WIRE_PIECE_WHOLE ? "whole" : out;
}

static bool members_text(char out[MESSAGE_TEXT_SIZE], const struct wire_members *m)
{
    static const char *const state[] = {"running",  "stalled", "trained",
                                        "finished", "failed",  "left"};
    int len = snprintf(out, MESSAGE_TEXT_SIZE, "MEMBERS");
    bool news = m->n_accusations > 0;
    for (uint32_t i = 0; i < m->n_records; i++) {
        const struct record *r = &m->records[i];
        if (r->state == RECORD_RUNNING || len > MESSAGE_TEXT_SIZE - 100)
            continue;
        news = true;
        len += snprintf(out + len, (size_t)(MESSAGE_TEXT_SIZE - len), " %s %s", r->name,
                        r->state < sizeof state / sizeof *state ? state[r->state] : "?");
    }
    if (m->n_accusations > 0)
        snprintf(out + len, (size_t)(MESSAGE_TEXT_SIZE - len), " accused: %" PRIu32,
                 m->n_accusations);
    return news;
}

bool message_text(const struct wire_message *m, uint64_t (*number)(void *self, uint64_t epoch),
                  void *self, char out[MESSAGE_TEXT_SIZE])
{
    const struct epochs epochs = {number, self};
    char epoch[EPOCH_TEXT], piece[PIECE_TEXT];
    size_t size = MESSAGE_TEXT_SIZE;
    switch (m->type) {
    case WIRE_HELLO:
        snprintf(out, size, "HELLO round %" PRIu64 "%s%s%s", m->hello.round,
                 m->hello.role == WIRE_OBSERVER ? " observer" : "",
                 m->hello.has_run ? "" : " without a run", m->hello.has_started ? " started" : "");
        return true;
    case WIRE_MEMBERS:
        return members_text(out, &m->members);
    case WIRE_PING:
        snprintf(out, size, "PING%s", m->ping.finished ? " finished" : "");
        return m->ping.finished;
    case WIRE_EDGE:
        snprintf(out, size, "EDGE %s round %" PRIu64 "%s",
                 epoch_text(&epochs, m->edge.epoch, epoch), m->edge.round,
                 m->edge.answers != 0 ? " answer" : "");
        return true;
    case WIRE_EDGE_CLOSE:
        snprintf(out, size, "EDGE_CLOSE");
        return true;
    case WIRE_DELTA:
        snprintf(out, size, "DELTA %s round %" PRIu64 " codec %" PRIu32 " beat %" PRIu64,
                 epoch_text(&epochs, m->delta.epoch, epoch), m->delta.round, m->delta.codec,
                 m->delta.run_round);
        return true;
    case WIRE_MODEL_REQ:
        snprintf(out, size, "MODEL_REQ %s",
                 piece_text(m->model_req.piece, m->model_req.key, m->model_req.round, piece));
        return true;
    case WIRE_MODEL:
        snprintf(out, size, "MODEL round %" PRIu64 " %s", m->model.round,
                 piece_text(m->model.piece, m->model.key, m->model.round, piece));
        return true;
    case WIRE_FINISH: {
        static const char *const word[WIRE_FINISH_END] = {"ASK", "PROPOSE", "REPORT", "ACCEPTED",
                                                          "DECIDED"};
        snprintf(out, size, "FINISH %s ballot %" PRIu64 " models %" PRIu32, word[m->finish.word],
                 m->finish.ballot.number, m->finish.n_models);
        return true;
    }
    case WIRE_ROUND_PROTOCOL:
        snprintf(out, size, "ROUND_PROTOCOL round %" PRIu64 " attempt %" PRIu32 " step %" PRIu32,
                 m->round_protocol.round, m->round_protocol.attempt, m->round_protocol.step);
        return true;
    case WIRE_REFUSED:
        snprintf(out, size, "REFUSED reason %d", (int)m->refused.why);
        return true;
    case WIRE_PART:
        snprintf(out, size, "PART %s round %" PRIu64 " bytes %zu",
                 epoch_text(&epochs, m->part.epoch, epoch), m->part.round, m->part.payload.n);
        return false;
    case WIRE_MOMENTS:
        snprintf(out, size, "MOMENTS bytes %zu", m->moments.payload.n);
        return false;
    case WIRE_BEAT:
        snprintf(out, size, "BEAT beat %" PRIu64, m->beat.run_round);
        return false;
    case WIRE_PROBE:
        snprintf(out, size, "PROBE");
        return false;
    case WIRE_HEARD:
        snprintf(out, size, "HEARD age %" PRIu32 " ms", m->heard.age_ms);
        return false;
    case WIRE_CALLBACK:
        snprintf(out, size, "CALLBACK reason %" PRIu32, m->callback.why);
        return false;
    case WIRE_STATUS_REQ:
        snprintf(out, size, "STATUS_REQ");
        return false;
    case WIRE_STATUS:
        snprintf(out, size, "STATUS");
        return false;
    case WIRE_NONE:
    case WIRE_TYPE_END:
        break;
    }
    snprintf(out, size, "message %d", (int)m->type);
    return false;
}
