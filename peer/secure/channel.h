/* peer/secure/channel.h -- the secure channel: Noise_XXpsk0_25519_ChaChaPoly_SHA256.
 *
 * Noise revision 34 (peer/secure/noise.h). The functions are pure: they use no socket and no clock,
 * and allocate nothing. The caller provides ephemeral keys and buffers, and calls sodium_init()
 * once before.
 *
 *   -> psk, e             msg1, CHANNEL_MSG1 bytes
 *   <- e, ee, s, es       msg2, CHANNEL_MSG2 bytes, payload = hello
 *   -> s, se              msg3, CHANNEL_MSG3 bytes, payload = hello
 *
 *   hello: id (32) | signature (64) | least version (u16) | most version (u16)
 *
 * The hello has the range of message versions that the sender supports. The channel uses the
 * highest version that both ends support. If there is no such version, message 3 is still sent, so
 * that both ends know the identity and the version range of the other end. No records follow.
 *
 * After the handshake both ends send records:
 *
 *   length of the ciphertext (u16, big-endian) | ciphertext
 *
 * The plaintext is data | kind (u8), the tag has 16 bytes, and the nonce is a counter. The kind is
 * the last byte, so that a record can be decrypted in place without moving its data.
 *
 * Each handshake message has a fixed size, so a fixed buffer holds all bytes that arrive before
 * authentication. Message 1 is sealed with the cluster key. A message 1 without the key is rejected
 * before any Diffie-Hellman operation and gets no reply. A copy of a message 1 that was answered
 * before gets no reply either (peer/secure/replay.h).
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
        /* Size in bytes of the payload of a handshake message: identity, signature of the Noise
         * static key (domain-separated), range of versions. */
    CHANNEL_ID + 64 + 4,
    CHANNEL_MSG1 = 32 + 16,
    CHANNEL_MSG2 = 32 + 48 + CHANNEL_PAYLOAD + 16,
    CHANNEL_MSG3 = 48 + CHANNEL_PAYLOAD + 16,
    /* Largest ciphertext of a record with its tag, in bytes: the limit of Noise. */
    CHANNEL_RECORD_MAX = 65535,
    /* Largest number of data bytes in one record. */
    CHANNEL_PLAIN_MAX = CHANNEL_RECORD_MAX - 16 - 1,
    /* Room in bytes that channel_open() needs for its output: the data and the kind of the
     * record. */
    CHANNEL_OPEN_MAX = CHANNEL_RECORD_MAX - 16,
    CHANNEL_HEADER = 2,
    CHANNEL_OVERHEAD = CHANNEL_HEADER + 1 + 16 /* Bytes that channel_seal() adds to the data. */
};

/* Kind of a record. A link has two lanes, one of bulk messages and one of control messages. A
 * message is split into records of its lane, and its last record has the END kind. Control records
 * may come between the bulk records of a message, so that a heartbeat does not wait for the end of
 * a model. */
enum channel_kind {
    CHANNEL_CONTROL = 1,
    CHANNEL_CONTROL_END,
    CHANNEL_BULK,
    CHANNEL_BULK_END,
    CHANNEL_REKEY, /* The sender's next record uses the next key (Noise REKEY). Has no data. */
    /* Authenticated end of the session. Has no data, and no record follows. A connection that ends
     * without this record has failed. */
    CHANNEL_CLOSE
};

/* Identity of this peer: an Ed25519 key pair, and an X25519 static key that is signed with it.
 * channel_identity_close() wipes the secrets. */
struct channel_identity
{
    uint8_t sign_pk[32], sign_sk[64];
    uint8_t noise_pk[32], noise_sk[32];
};
/* Derives the Ed25519 and the X25519 key pair from a 32-byte seed by domain-separated BLAKE2b. */
void channel_identity_from_seed(struct channel_identity *id, const uint8_t seed[32]);
void channel_identity_close(struct channel_identity *id);

enum channel_state {
    /* The responder waits for message 1, or the initiator has not written message 1 yet. */
    CHANNEL_WAIT_MSG1,
    CHANNEL_WAIT_MSG2,
    CHANNEL_WAIT_MSG3,
    CHANNEL_OPEN,
    /* The handshake succeeded, but the ends have no version in common. Final state. */
    CHANNEL_NO_VERSION,
    CHANNEL_FAILED
};

/* Range of message versions that one end supports. */
struct channel_versions
{
    uint16_t least, most;
};

/* A secure channel; embed it in another struct. Callers may always read `state` and
 * `sent_since_rekey`. They may read `peer_id` and `version` once the channel is open. If the ends
 * have no message version in common, callers may read `theirs`, the version range of the other end.
 * All other fields are private. `peer_id` may be this peer's own identity, because a peer can dial
 * itself. */
struct channel
{
    enum channel_state state;
    bool initiator;
    bool sent_close, got_close;
    uint8_t peer_id[CHANNEL_ID];
    struct channel_versions ours, theirs;
    uint16_t version;          /* Message version of this session. */
    uint64_t sent_since_rekey; /* Bytes of data that were sealed with the present key. */
    /* Identity of this peer, borrowed until the handshake ends. */
    const struct channel_identity *identity;
    /* Handshake messages 1 that were answered before, to detect copies. Borrowed until the
     * handshake ends. NULL: copies are not detected. */
    struct replay *answered;
    /* State of the Noise handshake. All bytes are zero after the handshake has ended. */
    struct noise noise;
    struct noise_cipher send, recv;
};

/* Initialises a channel. `ephemeral` is 32 fresh random bytes, used once; the caller wipes its own
 * copy. The prologue is always "hearsay/1". */
void channel_init(struct channel *c, bool initiator, const struct channel_identity *identity,
                  const uint8_t psk[CHANNEL_KEY], const uint8_t ephemeral[32]);
/* Sets the range of message versions of this end. Called before the first message. The default is
 * only version 0. */
void channel_speak(struct channel *c, struct channel_versions ours);
/* Makes a responder refuse replayed handshakes: a message 1 that is in `answered` is refused, and
 * any other is added to `answered`. Called before the first message. */
void channel_remember(struct channel *c, struct replay *answered);
void channel_close(struct channel *c); /* Wipes all secrets of the channel. */

/* Returns the number of handshake bytes that the channel waits for. 0: the channel is open or has
 * failed, or the channel must write a message first. */
size_t channel_wants(const struct channel *c);

/* Processes exactly channel_wants() bytes of the handshake and writes the reply, if there is one,
 * to out[0..CHANNEL_MSG2). An initiator calls it first with in == NULL and n_in == 0 to get message
 * 1. Returns 0 or -EPROTO. After -EPROTO the state is FAILED, *n_out is 0, and the caller must
 * close the connection without sending a byte. After 0 the caller checks the state: without a
 * common version it sends the reply and then closes the connection. In a state that expects no
 * handshake, the function returns -EPROTO. */
__attribute__((warn_unused_result)) int channel_handshake(struct channel *c, const uint8_t *in,
                                                          size_t n_in, uint8_t *out, size_t *n_out);

/* Seals one record of n + n2 <= CHANNEL_PLAIN_MAX bytes of data into out, which has room for n + n2
 * + CHANNEL_OVERHEAD bytes. The data may be in two parts, head and body, so that a large message
 * need not be copied; n2 = 0: one part. Returns the length of the record, or 0 if the channel is
 * not open, has already sealed a CLOSE, or has no nonce left. The caller decides when to change the
 * key, by volume and time, and then seals a CHANNEL_REKEY. */
size_t channel_seal(struct channel *c, enum channel_kind kind, const uint8_t *data, size_t n,
                    const uint8_t *data2, size_t n2, uint8_t *out);

/* Decrypts one record: ciphertext in[0..n) without its header, to out. `out` has room for n - 16
 * bytes (CHANNEL_OPEN_MAX are always enough) and may be `in` itself. The data is out[0..*n_out).
 * Returns 0, or -EPROTO if the record is forged, replayed, out of order, malformed, or after a
 * CLOSE. The channel has then failed permanently, and out must not be used. A REKEY record also
 * changes the receiving key. */
__attribute__((warn_unused_result)) int channel_open(struct channel *c, const uint8_t *in, size_t n,
                                                     uint8_t *out, size_t *n_out,
                                                     enum channel_kind *kind);

/* Sign a message, and verify a signature, with an identity (Ed25519, detached). The message must
 * begin with a domain string that no other kind of signed message has. The domain string "hearsay
 * static key" is in use already. */
void channel_sign(const struct channel_identity *id, const uint8_t *msg, size_t n, uint8_t sig[64]);
bool channel_verify(const uint8_t pk[32], const uint8_t *msg, size_t n, const uint8_t sig[64]);

#endif
