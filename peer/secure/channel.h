/* peer/secure/channel.h -- the secure channel: Noise_XXpsk0_25519_ChaChaPoly_SHA256.
 *
 * Noise revision 34 (peer/secure/noise.h). Pure: bytes in, bytes out, no socket, no
 * clock, no allocation; ephemeral keys come from the caller. The driver owns
 * the buffers, and calls sodium_init() once before.
 *
 *   -> psk, e             msg1, CHANNEL_MSG1 bytes
 *   <- e, ee, s, es       msg2, CHANNEL_MSG2 bytes, payload = hello
 *   -> s, se              msg3, CHANNEL_MSG3 bytes, payload = hello
 *
 *   hello: id (32) | signature (64) | least version (u16) | most version (u16)
 *
 * The hello has the range of message versions that the sender supports. The channel uses the highest
 * version that both ends support. If there is none, message 3 is sent all the same, so that both ends
 * learn the range and identity of the other; no record is sealed or opened.
 *
 * After the handshake both ends send records: u16 big-endian length of the ciphertext | ciphertext.
 * The plaintext is data | u8 kind, the tag has 16 bytes, and the nonce is a counter. The kind is the
 * last byte, so that a record can be opened in place without moving its data.
 *
 * Each handshake message has a fixed size, so that a fixed buffer holds all bytes before
 * authentication. Message 1 is sealed with the cluster key: a message without the key is rejected
 * before any Diffie-Hellman operation and gets no reply. A message 1 that was answered before and is
 * still remembered gets no reply either (peer/secure/replay.h).
 */
#ifndef PEER_SECURE_CHANNEL_H
#define PEER_SECURE_CHANNEL_H

#include "peer/secure/noise.h"
#include "peer/secure/replay.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CHANNEL_KEY = 32,
    CHANNEL_ID = 32, /* Ed25519 public key: the identity of a peer. */
    CHANNEL_PAYLOAD =
        CHANNEL_ID + 64 + 4, /* id, its signature over the Noise static key (domain-separated),
                              * versions. */
    CHANNEL_MSG1 = 32 + 16,
    CHANNEL_MSG2 = 32 + 48 + CHANNEL_PAYLOAD + 16,
    CHANNEL_MSG3 = 48 + CHANNEL_PAYLOAD + 16,
    CHANNEL_RECORD_MAX = 65535,                      /* Ciphertext with tag: Noise's own limit. */
    CHANNEL_PLAIN_MAX = CHANNEL_RECORD_MAX - 16 - 1, /* Data in one record. */
    CHANNEL_OPEN_MAX = CHANNEL_RECORD_MAX - 16, /* Room that channel_open() needs: data and kind. */
    CHANNEL_HEADER = 2,
    CHANNEL_OVERHEAD = CHANNEL_HEADER + 1 + 16 /* Bytes that channel_seal() adds to the data. */
};

/* Kind of a record. A message is cut into records of one lane, and its last record has the END
 * kind. Control records may come between the bulk records of one message, so that a heartbeat
 * does not wait for the end of a model. */
enum channel_kind {
    CHANNEL_CONTROL = 1,
    CHANNEL_CONTROL_END,
    CHANNEL_BULK,
    CHANNEL_BULK_END,
    CHANNEL_REKEY, /* The sender's next record uses the next key (Noise REKEY). No data. */
    CHANNEL_CLOSE  /* Authenticated end, nothing follows. No data. An end without it is abnormal. */
};

/* Identity of this peer: an Ed25519 key pair, and an X25519 static key that is signed with it.
 * channel_identity_close() wipes the secrets. */
struct channel_identity
{
    uint8_t sign_pk[32], sign_sk[64];
    uint8_t noise_pk[32], noise_sk[32];
};
/* From a 32-byte seed (both keys are derived from it by domain-separated
 * BLAKE2b). */
void channel_identity_from_seed(struct channel_identity *id, const uint8_t seed[32]);
void channel_identity_close(struct channel_identity *id);

enum channel_state {
    /* The responder waits for msg1; the initiator has yet to write it. */
    CHANNEL_WAIT_MSG1,
    CHANNEL_WAIT_MSG2,
    CHANNEL_WAIT_MSG3,
    CHANNEL_OPEN,
    CHANNEL_NO_VERSION, /* Authenticated, but the ends have no version in common: an end. */
    CHANNEL_FAILED
};

/* Range of message versions that one end supports. */
struct channel_versions
{
    uint16_t least, most;
};

/* The struct's fields are channel.c's; embed it, do not look inside but at
 * `state`, once open `peer_id` (it may be our own: a peer can dial itself),
 * `version` and `sent_since_rekey`; and without a common version `theirs`. */
struct channel
{
    enum channel_state state;
    bool initiator;
    bool sent_close, got_close;
    uint8_t peer_id[CHANNEL_ID];
    struct channel_versions ours, theirs;
    uint16_t version;                        /* Spoken in this session. */
    uint64_t sent_since_rekey;               /* Bytes of data sealed under the present key. */
    const struct channel_identity *identity; /* Borrowed until open. */
    struct replay *answered;                 /* Likewise; NULL: nothing is remembered. */
    struct noise noise;                      /* All zero once the handshake is over. */
    struct noise_cipher send, recv;
};

/* Begin. `ephemeral` is 32 fresh random bytes, used once; the caller wipes its
 * own copy. The prologue is fixed: "hearsay/1". */
void channel_init(struct channel *c, bool initiator, const struct channel_identity *identity,
                  const uint8_t psk[CHANNEL_KEY], const uint8_t ephemeral[32]);
/* Before the first message: which versions we speak. Without this call only version 0. */
void channel_speak(struct channel *c, struct channel_versions ours);
/* A responder, before its first message: refuse what is in `answered`, enter what is answered. */
void channel_remember(struct channel *c, struct replay *answered);
void channel_close(struct channel *c); /* Wipes every secret. */

/* How many bytes of handshake the channel waits for now (0 when it is open or
 * failed, or when it is its turn to write). */
size_t channel_wants(const struct channel *c);

/* Processes exactly channel_wants() bytes of the handshake and writes the reply, if there is
 * one, to out[0..CHANNEL_MSG2). An initiator starts with in == NULL and n_in == 0 to get message
 * 1. Returns 0, or -EPROTO: then the state is FAILED, *n_out is 0, and the caller must close the
 * connection without sending a byte. After 0 the caller checks the state: without a common
 * version it sends the reply and then closes the connection. A channel that neither waits for a
 * message nor can start refuses all bytes. */
__attribute__((warn_unused_result)) int channel_handshake(struct channel *c, const uint8_t *in,
                                                          size_t n_in, uint8_t *out, size_t *n_out);

/* Seal one record: n + n2 <= CHANNEL_PLAIN_MAX bytes of data into out (n + n2
 * + CHANNEL_OVERHEAD bytes). Returns the length, or 0 where nothing can be
 * sent: not open, after a CLOSE, or (never in practice) out of nonces. `data`
 * may be in two parts (head and body) so that a bulk message needs no joining
 * copy; pass n2 = 0 for one. Rekeying by volume and time is the caller's call:
 * seal a CHANNEL_REKEY. */
size_t channel_seal(struct channel *c, enum channel_kind kind, const uint8_t *data, size_t n,
                    const uint8_t *data2, size_t n2, uint8_t *out);

/* Open one record: ciphertext in[0..n) without its header, into out, which
 * has room for n - 16 bytes (CHANNEL_OPEN_MAX do always) and may be `in`
 * itself; the data is out[0..*n_out). Returns 0, or -EPROTO: forged, replayed,
 * out of order, not a record, or after a CLOSE; the channel is FAILED for
 * good, and nothing in out counts. A REKEY is handled within. */
__attribute__((warn_unused_result)) int channel_open(struct channel *c, const uint8_t *in, size_t n,
                                                     uint8_t *out, size_t *n_out,
                                                     enum channel_kind *kind);

/* Sign and verify with the identity (Ed25519, detached), for records. What is
 * signed must begin with a domain of its own; "hearsay static key" is taken. */
void channel_sign(const struct channel_identity *id, const uint8_t *msg, size_t n, uint8_t sig[64]);
bool channel_verify(const uint8_t pk[32], const uint8_t *msg, size_t n, const uint8_t sig[64]);

#endif
