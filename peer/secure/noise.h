/* peer/secure/noise.h -- the Noise protocol framework, as much of it as we speak.
 *
 * Revision 34, with 25519, ChaChaPoly and SHA256, on libsodium's primitives
 * (its 1.0.18 has HMAC-SHA256 but no HKDF). Pure and without allocation: bytes
 * in, bytes out; ephemeral keys come from the caller.
 *
 * A pattern is a table of tokens, and one interpreter runs it in both
 * directions: what passes the public vectors of XX, XXpsk0+psk3, ... is the
 * code that speaks XXpsk0 (peer/secure/channel.c).
 *
 *   noise_cipher    CipherState:    k, n
 *   noise           SymmetricState: ck, h, cipher; HandshakeState: s, e, rs, re
 *
 *   noise_init -> noise_write / noise_read in turn -> noise_split -> ciphers
 *
 * Call sodium_init() once before: libsodium then picks its fast code.
 */
#ifndef PEER_SECURE_NOISE_H
#define PEER_SECURE_NOISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    NOISE_KEY = 32, /* DHLEN, HASHLEN and the cipher's key. */
    NOISE_TAG = 16,
    NOISE_MESSAGE_MAX = 65535,
    NOISE_MESSAGES_MAX = 4, /* Largest number of messages in a pattern. */
    NOISE_TOKENS_MAX = 8,   /* One message, with its NOISE_END. */
    NOISE_PSKS_MAX = 2
};

enum noise_token { NOISE_END = 0, NOISE_E, NOISE_S, NOISE_EE, NOISE_ES, NOISE_SE, NOISE_PSK };

/* Only interactive patterns without pre-messages; the initiator writes
 * messages 0, 2, ... */
struct noise_pattern
{
    const char *name; /* "Noise_XX_25519_ChaChaPoly_SHA256" */
    unsigned n_messages;
    unsigned n_psks; /* With any, "e" also mixes the key (section 9.2). */
    enum noise_token message[NOISE_MESSAGES_MAX][NOISE_TOKENS_MAX];
};

struct noise_cipher
{
    uint8_t k[NOISE_KEY];
    uint64_t n; /* Next nonce; UINT64_MAX is REKEY's, never a message's. */
    bool keyed;
};

/* Parameters of a handshake. All are copied except the pattern. */
struct noise_config
{
    const struct noise_pattern *pattern;
    bool initiator;
    const uint8_t *prologue;
    size_t n_prologue;
    const uint8_t *s_sk, *s_pk;         /* Static key pair. */
    const uint8_t *e_sk;                /* 32 fresh random bytes. */
    const uint8_t *psk[NOISE_PSKS_MAX]; /* In the order of their tokens. */
};

struct noise
{
    const struct noise_pattern *pattern;
    bool initiator, failed;
    unsigned next_message, next_psk;
    uint8_t h[NOISE_KEY], ck[NOISE_KEY];
    struct noise_cipher cipher;
    uint8_t s_sk[NOISE_KEY], s_pk[NOISE_KEY], e_sk[NOISE_KEY], e_pk[NOISE_KEY];
    uint8_t rs[NOISE_KEY], re[NOISE_KEY];
    uint8_t psk[NOISE_PSKS_MAX][NOISE_KEY];
};

void noise_init(struct noise *s, const struct noise_config *config);
void noise_close(struct noise *s); /* Wipes. */

/* Is it our turn? False once all messages are through, or after a failure. */
bool noise_writes(const struct noise *s);
bool noise_reads(const struct noise *s);
bool noise_done(const struct noise *s); /* All messages are through. */

/* Bytes that the next message adds to its payload. */
size_t noise_overhead(const struct noise *s);

/* Write the next message: payload[0..n) into out[0..n + overhead). 0, or
 * -EPROTO where the other side's key is a low-order point: then the state has
 * failed for good, and out is zero. */
__attribute__((warn_unused_result)) int noise_write(struct noise *s, const uint8_t *payload,
                                                    size_t n, uint8_t *out);

/* Read the next message in[0..n) into payload[0..n - overhead), which must not
 * overlap it. 0, or -EPROTO: failed for good, and nothing in payload counts. */
__attribute__((warn_unused_result)) int noise_read(struct noise *s, const uint8_t *in, size_t n,
                                                   uint8_t *payload);

/* After the last message: the two directions' ciphers. The handshake's state
 * is for the caller to close. */
void noise_split(const struct noise *s, struct noise_cipher *send, struct noise_cipher *recv);

/* EncryptWithAd: m[0..n) into out[0..n + NOISE_TAG); may be in place. 0, or
 * -EPROTO when the nonces are used up. `ad` may be NULL with n_ad = 0. */
__attribute__((warn_unused_result)) int noise_seal(struct noise_cipher *c, const uint8_t *ad,
                                                   size_t n_ad, const uint8_t *m, size_t n,
                                                   uint8_t *out);

/* DecryptWithAd: in[0..n), n >= NOISE_TAG, into out[0..n - NOISE_TAG); may be
 * in place. 0, or -EPROTO: then the nonce has not moved. */
__attribute__((warn_unused_result)) int noise_open(struct noise_cipher *c, const uint8_t *ad,
                                                   size_t n_ad, const uint8_t *in, size_t n,
                                                   uint8_t *out);

/* Replaces the key (REKEY, section 4.2). The nonce counter is kept. */
void noise_rekey(struct noise_cipher *c);

#endif
