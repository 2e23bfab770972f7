/* peer/uv/client.h -- sessions of an observer, which queries peers and is no member of the cluster.
 *
 * The identity is random unless the caller passes one. The first message of each session is a HELLO
 * with the role OBSERVER. A peer then sends all members that it knows, and answers STATUS_REQ and
 * MODEL_REQ. The caller runs the loop with uv_client_wait() and gets messages by callbacks.
 */
#ifndef PEER_UV_CLIENT_H
#define PEER_UV_CLIENT_H

#include "gossip/wire/wire.h"
#include "peer/uv/link.h"

enum {
    UV_CLIENT_SESSIONS_MAX = 1024,
    UV_CLIENT_LOOKUPS_MAX = 64,
    /* Largest size of a received model, in bytes. The buffer grows with the received bytes and
     * not with the announced size. */
    UV_CLIENT_BULK_MAX = 1 << 30
};

struct uv_client;

struct uv_client_calls
{
    void *self;
    /* Called when a session is open and HELLO has been sent. */
    void (*up)(void *self, uint32_t tag, uint32_t session, const uint8_t id[WIRE_ID_BYTES]);
    /* Called when a message was received. *m is borrowed for the call. Invalid messages are dropped
     * without a call. */
    void (*message)(void *self, uint32_t session, const struct wire_message *m);
    /* Called when a session has ended or a dial has failed. `tag`: the value passed to
     * uv_client_dial(). `session` is UINT32_MAX if the dial failed. */
    void (*ended)(void *self, uint32_t tag, uint32_t session);
    /* Called before ended() if a dial failed. `l` is the failed link. A client that does not need
     * this call sets the pointer to NULL. */
    void (*failed)(void *self, uint32_t tag, const struct uv_link *l);
    /* Called when a lookup has ended with n addresses. The client does not dial any of them by
     * itself. */
    void (*resolved)(void *self, uint32_t tag, const union uv_address *a, uint32_t n);
};

/* Opens a client. Returns 0 or a negative errno. `psk` (the cluster key) and `identity` are
 * borrowed. `psk` NULL: no handshake is possible, so a dial connects and then fails. `identity`
 * NULL: the client uses a random identity. */
__attribute__((warn_unused_result)) int uv_client_open(struct uv_client **c, const uint8_t *psk,
                                                       const struct channel_identity *identity,
                                                       const struct uv_client_calls *calls);
/* Closes the client without further callbacks. Each session ends with CLOSE, so the call blocks
 * until the other ends have answered, at most uv_link_limits.drain_ms (1 s). */
void uv_client_close(struct uv_client *c);

/* uv_client_resolve() starts a name lookup, whose result is passed to resolved(). uv_client_dial()
 * starts a dial, whose result is reported by up() or ended(). Both pass `tag` to the callback, and
 * return 0 or a negative errno. */
__attribute__((warn_unused_result)) int uv_client_resolve(struct uv_client *c, uint32_t tag,
                                                          const char *address);
__attribute__((warn_unused_result)) int uv_client_dial(struct uv_client *c, uint32_t tag,
                                                       const union uv_address *a, uint32_t n);

void uv_client_send(struct uv_client *c, uint32_t session, const uint8_t *p, size_t n);
/* Returns the link of a session. The caller reads the results of the handshake from it, such as
 * protocol version and times. */
const struct uv_link *uv_client_link(const struct uv_client *c, uint32_t session);
/* Sets the time limit of a connect, and of a handshake, to `ms` milliseconds each. */
void uv_client_deadline(struct uv_client *c, uint32_t ms);
void uv_client_hangup(struct uv_client *c, uint32_t session);

/* Runs the loop until done(self) returns true, at most `ms` milliseconds. Returns the last
 * result of done(). */
bool uv_client_wait(struct uv_client *c, uint32_t ms, bool (*done)(void *self));

#endif
