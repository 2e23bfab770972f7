/* peer/cmd/cluster_run.c -- calls all bootstrap addresses at the same time, and takes the first run
 * that a peer sends. */
#include "peer/cmd/cluster_run.h"

#include "peer/uv/client.h"

enum { ASK_MS = 2000 };

struct asking
{
    struct uv_client *client;
    const struct run_trainer *trainer;
    struct run *run;
    /* Number of name lookups, dials and sessions that are in progress. 0: no answer can arrive any
     * more. */
    uint32_t n_open;
    bool found;
};

static bool is_done(void *self)
{
    const struct asking *a = self;
    return a->found || a->n_open == 0;
}

/* Dials the address that a lookup has found. If the dial starts, it takes the place of the lookup
 * in n_open. */
static void on_resolved(void *self, uint32_t tag, const union uv_address *at, uint32_t n)
{
    struct asking *a = self;
    if (n == 0 || uv_client_dial(a->client, tag, at, n) < 0)
        a->n_open--;
}

static void on_up(void *self, uint32_t tag, uint32_t session, const uint8_t id[WIRE_ID_BYTES])
{
    (void)self, (void)tag, (void)session, (void)id;
}

/* Takes the run from a peer's HELLO message, if that run has started. A run that has not started
 * may still be replaced by the run that this peer would begin. */
static void on_message(void *self, uint32_t session, const struct wire_message *m)
{
    struct asking *a = self;
    char error[RUN_ERROR_MAX];
    if (a->found || m->type != WIRE_HELLO || m->hello.role != WIRE_PEER)
        return;
    a->found =
        m->hello.has_started
        && run_from_text(a->run, a->trainer, (const char *)m->hello.run.p, m->hello.run.n, error)
               == 0;
    if (!a->found)
        uv_client_hangup(a->client, session);
}

static void on_ended(void *self, uint32_t tag, uint32_t session)
{
    (void)tag, (void)session;
    ((struct asking *)self)->n_open--;
}

bool cmd_cluster_run(const char *const *bootstrap, uint32_t n, const uint8_t *psk,
                     const struct channel_identity *identity, const struct run_trainer *trainer,
                     struct run *run)
{
    struct asking a = {.trainer = trainer, .run = run};
    const struct uv_client_calls calls = {
        .self = &a, .up = on_up, .message = on_message, .ended = on_ended, .resolved = on_resolved};
    if (uv_client_open(&a.client, psk, identity, &calls) < 0)
        return false;
    uv_client_deadline(a.client, ASK_MS);
    for (uint32_t i = 0; i < n; i++)
        a.n_open += uv_client_resolve(a.client, i, bootstrap[i]) == 0;
    (void)uv_client_wait(a.client, ASK_MS, is_done);
    uv_client_close(a.client);
    return a.found;
}
