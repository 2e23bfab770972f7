/* peer/cmd/observe.c -- looks at a cluster without joining it: dials the members, sends them
 * requests, and collects their answers. */
#include "peer/cmd/observe.h"

#include "peer/cmd/run_parse.h"
#include "peer/uv/identity.h"

#include "gossip/members/members.h"
#include "peer/cmd/files.h"
#include "peer/cmd/stop.h"
#include "peer/node/node.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Tag of a dial to a bootstrap address: the member that will answer is not known yet. The tag
     * of any other dial is the index of the dialled member. */
    SEED_TAG = UINT16_MAX,
    LIST_MAX = 4096,
    LOOK_MS = 100 /* Interval at which signals are checked, in milliseconds. */
};

static struct cmd_observed *find(struct cmd_observe *w, const uint8_t id[WIRE_ID_BYTES])
{
    for (uint32_t i = 0; i < w->n; i++) {
        if (memcmp(w->member[i].record.id, id, WIRE_ID_BYTES) == 0)
            return &w->member[i];
    }
    if (w->n == WIRE_MEMBERS_MAX)
        return NULL;
    struct cmd_observed *m = &w->member[w->n++];
    memcpy(m->record.id, id, WIRE_ID_BYTES);
    m->session = UINT32_MAX;
    return m;
}

static struct cmd_observed *of_session(struct cmd_observe *w, uint32_t session)
{
    for (uint32_t i = 0; i < w->n; i++) {
        if (w->member[i].up && w->member[i].session == session)
            return &w->member[i];
    }
    return NULL;
}

/* ---- Callbacks of the client ---- */

/* Stores the result `why` of a call to the announced addresses of the member with index `tag`. */
static void take_call(struct cmd_observe *w, uint32_t tag, enum node_why why)
{
    if (w->sorted || tag >= w->n || !w->member[tag].calling)
        return;
    w->member[tag].calling = false;
    w->member[tag].called = true;
    w->member[tag].call = why;
}

static void on_failed(void *self, uint32_t tag, const struct uv_link *l)
{
    /* take_call() takes NODE_WHY_UNKNOWN as the result of a successful call. A call that failed for
     * an unknown reason is therefore stored as NODE_WHY_BROKEN (connection broken). */
    take_call(self, tag, l->why != NODE_WHY_UNKNOWN ? l->why : NODE_WHY_BROKEN);
}

static void on_up(void *self, uint32_t tag, uint32_t session, const uint8_t id[WIRE_ID_BYTES])
{
    struct cmd_observe *w = self;
    uint8_t ask[16];
    struct cmd_observed *m = find(w, id);
    w->n_pending -= tag == SEED_TAG;
    if (!w->sorted && tag < w->n)
        take_call(w, tag, m == &w->member[tag] ? NODE_WHY_UNKNOWN : NODE_WHY_OTHER);
    if (m == NULL || m->up) {
        uv_client_hangup(w->client, session);
        return;
    }
    m->up = m->dialled = true;
    m->failed = m->closed = false;
    m->session = session;
    uv_client_send(w->client, session, ask, wire_put_status_req(ask, sizeof ask));
}

static void on_ended(void *self, uint32_t tag, uint32_t session)
{
    struct cmd_observe *w = self;
    struct cmd_observed *m = session != UINT32_MAX ? of_session(w, session) : NULL;
    if (m) {
        m->up = false;
        m->failed = true;
        m->closed = uv_client_link(w->client, session)->clean;
    } else if (session == UINT32_MAX && tag == SEED_TAG) {
        w->n_pending--;
    } else if (session == UINT32_MAX && tag < w->n && !w->member[tag].up) {
        w->member[tag].failed = true;
    }
}

static void on_resolved(void *self, uint32_t tag, const union uv_address *a, uint32_t n)
{
    struct cmd_observe *w = self;
    w->n_pending--;
    for (uint32_t i = 0; i < n && tag == SEED_TAG; i++)
        w->n_pending += uv_client_dial(w->client, SEED_TAG, &a[i], 1) == 0;
    if (tag < w->n && (n == 0 || uv_client_dial(w->client, tag, a, n) < 0)) {
        w->member[tag].failed |= !w->member[tag].up;
        take_call(w, tag, NODE_WHY_UNRESOLVED);
    }
}

/* Calls a member at its announced addresses. Numeric addresses are tried one after the other. If no
 * address is numeric, the first host name is looked up and called. */
static void call(struct cmd_observe *w, struct cmd_observed *m)
{
    union uv_address a[WIRE_ADDRESSES_MAX];
    uint32_t n = 0, tag = (uint32_t)(m - w->member);
    for (uint32_t i = 0; i < m->record.n_addresses; i++)
        n += uv_resolve_numeric(m->record.address[i], &a[n]) == 0;
    if (n > 0)
        m->calling = uv_client_dial(w->client, tag, a, n) == 0;
    else if (m->record.n_addresses > 0)
        m->calling = uv_client_resolve(w->client, tag, m->record.address[0]) == 0;
    w->n_pending += n == 0 && m->calling;
}

static void dial(struct cmd_observe *w, struct cmd_observed *m)
{
    m->dialled = true;
    call(w, m);
    m->failed = !m->calling;
}

/* Tests the member's announced addresses by calling them, unless the present session already uses
 * one of them. A session at a bootstrap address does not show that the announced addresses work. */
static void check_addresses(struct cmd_observe *w, struct cmd_observed *m)
{
    char at[UV_RESOLVE_TEXT];
    uv_resolve_text(&uv_client_link(w->client, m->session)->remote.any, at);
    for (uint32_t i = 0; i < m->record.n_addresses; i++)
        m->called |= strcmp(m->record.address[i], at) == 0;
    if (!m->called)
        call(w, m);
}

/* Stores a membership record if its signature is valid and it is newer than the known record. Then
 * dials the member if it is new, or tests its announced addresses if it has a session. */
static void take_record(struct cmd_observe *w, const struct record *r)
{
    uint8_t text[2048];
    size_t n = wire_record_signed(text, sizeof text, r);
    if (!channel_verify(r->id, text, n, r->signature))
        return;
    struct cmd_observed *m = find(w, r->id);
    if (m == NULL || (m->known && r->incarnation <= m->record.incarnation))
        return;
    m->known = true;
    m->record = *r;
    if (!m->dialled && r->state != RECORD_LEFT)
        dial(w, m);
    else if (m->up && !m->called && !m->calling && !w->sorted)
        check_addresses(w, m);
}

static void take_run(struct cmd_observe *w, const struct wire_hello *hello)
{
    char error[RUN_ERROR_MAX];
    if (!w->has_run && hello->has_run)
        w->has_run = cmd_run_parse(&w->run, (const char *)hello->run.p, hello->run.n, error) == 0;
}

/* Stores a model, or sketches (random projections) of one, if the message answers the newest
 * request. If there is no memory for it, the model counts as missing. */
static void take_model(struct cmd_observe *w, struct cmd_observed *m,
                       const struct wire_model *model)
{
    bool answer = model->piece == w->question.piece && model->key == w->question.key;
    if (!w->wants_models || !answer || !m->due || m->model || model->payload.n == 0)
        return;
    m->model = malloc(model->payload.n);
    if (m->model == NULL)
        return;
    /* Floats are little-endian in messages, as on this machine. */
    memcpy(m->model, model->payload.p, model->payload.n);
    m->n_floats = model->payload.n / sizeof(float);
    m->model_round = model->round;
}

/* Handles a message from a peer. A peer also sends messages for which an observer has not asked,
 * which are ignored. */
static void on_message(void *self, uint32_t session, const struct wire_message *message)
{
    struct cmd_observe *w = self;
    struct cmd_observed *m = of_session(w, session);
    if (m == NULL)
        return;
    if (message->type == WIRE_HELLO && message->hello.role == WIRE_PEER) {
        take_record(w, &message->hello.record);
        take_run(w, &message->hello);
    } else if (message->type == WIRE_MEMBERS) {
        for (uint32_t i = 0; i < message->members.n_records; i++)
            take_record(w, &message->members.records[i]);
    } else if (message->type == WIRE_REFUSED) {
        memcpy(w->refused_by, message->refused.name, sizeof w->refused_by);
    } else if (message->type == WIRE_STATUS) {
        m->status = message->status;
        m->answered = true;
        m->status_ns = uv_hrtime();
    } else if (message->type == WIRE_MODEL) {
        take_model(w, m, &message->model);
    }
}

/* ---- Waiting for answers and models ---- */

/* Returns true if no more answers are expected. No lookup and no bootstrap dial may be in progress.
 * Each member must have failed or left, or it must have answered and its announced addresses must
 * have been tested. */
static bool all_answered(void *self)
{
    const struct cmd_observe *w = self;
    bool all = w->n_pending == 0;
    for (uint32_t i = 0; i < w->n && all; i++) {
        const struct cmd_observed *m = &w->member[i];
        all = m->failed || (m->answered && m->known && (!m->calling || w->sorted))
              || (!m->dialled && m->record.state == RECORD_LEFT);
    }
    return all;
}

/* Returns true if no more models are expected: each member that was asked has either sent its model
 * or lost its session. */
static bool none_sending(void *self)
{
    const struct cmd_observe *w = self;
    for (uint32_t i = 0; i < w->n; i++) {
        if (w->member[i].up && w->member[i].due && w->member[i].model == NULL)
            return false;
    }
    return true;
}

uint32_t cmd_observe_missing(const struct cmd_observe *w)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->n; i++)
        n += w->member[i].asked && w->member[i].model == NULL;
    return n;
}

/* Returns true if the member can answer the model request `q`. A member without a run cannot send
 * sketches (random projections of the layers), because it does not know the layers of a model. */
static bool can_answer(const struct cmd_observed *m, const struct wire_model_req *q)
{
    bool layers = m->status.phase >= NODE_TRAINING;
    return m->up && (q->piece != WIRE_PIECE_LAYERS || layers);
}

bool cmd_observe_models(struct cmd_observe *w, const struct wire_model_req *q, uint32_t ms)
{
    uint8_t ask[32];
    size_t n = wire_put_model_req(ask, sizeof ask, q);
    w->wants_models = true;
    w->question = *q;
    for (uint32_t i = 0; i < w->n; i++) {
        free(w->member[i].model); /* Frees a model that an earlier request may have left. */
        w->member[i].model = NULL;
        w->member[i].due = can_answer(&w->member[i], q);
        w->member[i].asked |= w->member[i].due;
        if (w->member[i].due)
            uv_client_send(w->client, w->member[i].session, ask, n);
    }
    for (uint32_t left = ms; left > LOOK_MS && !cmd_stop_asked(); left -= LOOK_MS)
        if (uv_client_wait(w->client, LOOK_MS, none_sending))
            return true;
    return uv_client_wait(w->client, ms < LOOK_MS ? ms : LOOK_MS, none_sending);
}

static bool stop(void *self)
{
    (void)self;
    return cmd_stop_asked();
}

bool cmd_observe_pause(struct cmd_observe *w, double seconds)
{
    const double look_ms = 100; /* Interval at which signals are checked, in milliseconds. */
    for (double ms = 1000 * seconds; ms > 0; ms -= look_ms)
        if (uv_client_wait(w->client, (uint32_t)(ms < look_ms ? ms : look_ms), stop))
            return false;
    return !cmd_stop_asked();
}

void cmd_observe_redial(struct cmd_observe *w)
{
    for (uint32_t i = 0; i < w->n; i++)
        if (w->member[i].failed && !w->member[i].up && w->member[i].record.state != RECORD_LEFT)
            dial(w, &w->member[i]);
}

void cmd_observe_refresh(struct cmd_observe *w, uint32_t ms)
{
    uint8_t ask[16];
    size_t n = wire_put_status_req(ask, sizeof ask);
    for (uint32_t i = 0; i < w->n; i++) {
        if (!w->member[i].up)
            continue;
        w->member[i].answered = false;
        uv_client_send(w->client, w->member[i].session, ask, n);
    }
    (void)uv_client_wait(w->client, ms, all_answered);
}

/* ---- Starting and closing ---- */

static int ask_bootstrap(struct cmd_observe *w)
{
    const char *given = options_text(w->o, "bootstrap");
    char text[LIST_MAX], *rest = text, *one;
    if (given == NULL)
        return cmd_fail(w->o, CMD_USAGE, "--bootstrap is missing: name at least one peer");
    if (strlen(given) >= sizeof text)
        return cmd_fail(w->o, CMD_USAGE,
                        "--bootstrap: found %zu characters, expected fewer than %d", strlen(given),
                        LIST_MAX);
    strcpy(text, given);
    while ((one = strsep(&rest, ",")) != NULL) {
        if (*one == '\0')
            return cmd_fail(w->o, CMD_USAGE,
                            "--bootstrap: found '%.80s', expected HOST:PORT,... without empty "
                            "addresses",
                            given);
        int err = uv_client_resolve(w->client, SEED_TAG, one);
        if (err == -EINVAL)
            return cmd_fail(w->o, CMD_USAGE, "--bootstrap: found '%.80s', expected %s", one,
                            uv_resolve_expected(one));
        if (err < 0)
            return cmd_fail(w->o, CMD_FAILED, "cannot look up %.80s: %s", one, uv_strerror(err));
        w->n_pending++;
    }
    return CMD_OK;
}

static int by_name(const void *a, const void *b)
{
    const struct cmd_observed *x = a, *y = b;
    return record_compare(&x->record, &y->record);
}

int cmd_observe(struct cmd_observe *w, const struct options *o)
{
    char error[KEYFILE_ERROR_MAX];
    *w = (struct cmd_observe){.o = o};
    struct uv_client_calls calls = {.self = w,
                                    .up = on_up,
                                    .message = on_message,
                                    .ended = on_ended,
                                    .failed = on_failed,
                                    .resolved = on_resolved};
    signal(SIGPIPE, SIG_IGN);
    if (keyfile_read(options_text(o, "key"), w->psk, error) < 0)
        return cmd_fail(o, CMD_USAGE, "--key: %s", error);
    w->member = calloc(WIRE_MEMBERS_MAX, sizeof *w->member);
    const char *own = options_text(o, "identity");
    if (own != NULL && uv_identity_read(own, &w->identity, NULL, error) < 0)
        return cmd_fail(o, CMD_USAGE, "--identity: %s", error);
    if (w->member == NULL
        || uv_client_open(&w->client, w->psk, own != NULL ? &w->identity : NULL, &calls) < 0)
        return cmd_fail(o, CMD_FAILED, "out of memory");
    int code = ask_bootstrap(w);
    if (code != CMD_OK)
        return code;
    (void)uv_client_wait(w->client, CMD_OBSERVE_MS, all_answered);
    uint32_t n_answers = 0;
    for (uint32_t i = 0; i < w->n; i++)
        n_answers += w->member[i].answered;
    if (n_answers == 0 && w->refused_by[0] != '\0')
        return cmd_fail(o, CMD_FAILED,
                        "%s admits only identities on its allow-list; give the secret key of a "
                        "listed identity with --identity FILE",
                        w->refused_by);
    if (n_answers == 0)
        return cmd_fail(
            o, CMD_FAILED,
            "no peer answers at %s with this key; hearsay probe HOST:PORT shows the reason",
            options_text(o, "bootstrap"));
    /* From here on member[] is sorted. take_call() ignores the results of earlier calls, because
     * their tags are indices in the unsorted array. */
    w->sorted = true;
    qsort(w->member, w->n, sizeof *w->member, by_name);
    return CMD_OK;
}

void cmd_observe_close(struct cmd_observe *w)
{
    if (w->client)
        uv_client_close(w->client);
    for (uint32_t i = 0; i < w->n && w->member; i++)
        free(w->member[i].model);
    free(w->member);
    explicit_bzero(w->psk, sizeof w->psk);
    channel_identity_close(&w->identity);
}
