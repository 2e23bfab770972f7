/* peer/uv/client.h -- an observer: sessions with peers, to ask and not to take part.
 *
 * A fresh identity each time, unless the caller has one; the first message of each session is a HELLO
 * with the role OBSERVER, after which a peer tells all members it knows and
 * answers STATUS_REQ and MODEL_REQ. The caller runs the loop by
 * uv_client_wait() and gets messages by callback.
 */
#ifndef PEER_UV_CLIENT_H
#define PEER_UV_CLIENT_H

#include "gossip/wire/wire.h"
#include "peer/uv/link.h"

enum {
    UV_CLIENT_SESSIONS_MAX = 1024,
    UV_CLIENT_LOOKUPS_MAX = 64,
    /* Largest size of a model. The buffer grows with the received bytes, not by the announced
     * size. */
    UV_CLIENT_BULK_MAX = 1 << 30
};

struct uv_client;

struct uv_client_calls
{
    void *self;
    /* A session is open, HELLO has been sent. */
    void (*up)(void *self, uint32_t tag, uint32_t session, const uint8_t id[WIRE_ID_BYTES]);
    /* Borrowed for the call. What cannot be read is dropped without a word. */
    void (*message)(void *self, uint32_t session, const struct wire_message *m);
    /* The session ended, or the dial failed: then `session` is UINT32_MAX. `tag` is that of the
     * dial. */
    void (*ended)(void *self, uint32_t tag, uint32_t session);
    /* Called before ended() of a dial that never came up; may be NULL. */
    void (*failed)(void *self, uint32_t tag, const struct uv_link *l);
    /* A name is resolved: dial what you like. */
    void (*resolved)(void *self, uint32_t tag, const union uv_address *a, uint32_t n);
};

/* 0 or a negative errno. psk is borrowed; NULL: dials only connect, and fail. identity is borrowed,
 * too; NULL: one that is drawn. */
__attribute__((warn_unused_result)) int uv_client_open(struct uv_client **c, const uint8_t *psk,
                                                       const struct channel_identity *identity,
                                                       const struct uv_client_calls *calls);
/* Ends every session at once, without further calls. */
void uv_client_close(struct uv_client *c);

/* Begin; resolved(), up() or ended() follow. 0 or a negative errno. */
__attribute__((warn_unused_result)) int uv_client_resolve(struct uv_client *c, uint32_t tag,
                                                          const char *address);
__attribute__((warn_unused_result)) int uv_client_dial(struct uv_client *c, uint32_t tag,
                                                       const union uv_address *a, uint32_t n);

void uv_client_send(struct uv_client *c, uint32_t session, const uint8_t *p, size_t n);
/* The session's link, for what it tells of its beginning. */
const struct uv_link *uv_client_link(const struct uv_client *c, uint32_t session);
/* Connecting and the handshake may take so long each. */
void uv_client_deadline(struct uv_client *c, uint32_t ms);
void uv_client_hangup(struct uv_client *c, uint32_t session);

/* Run the loop until done(self) or for `ms`. Returns what done() says last. */
bool uv_client_wait(struct uv_client *c, uint32_t ms, bool (*done)(void *self));

#endif
