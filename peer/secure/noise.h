/* peer/secure/noise.h -- the part of the Noise protocol framework that hearsay uses.
 *
 * Revision 34, with 25519, ChaChaPoly and SHA256, on libsodium's primitives (libsodium 1.0.18 has
 * HMAC-SHA256 but no HKDF). The functions are pure and allocate nothing. The caller provides
 * ephemeral keys.
 *
 * A handshake pattern is a table of tokens, which one interpreter processes for writing and for
 * reading. Therefore the public test vectors of other patterns, such as XX and XXpsk0+psk3, test
 * the same code that runs XXpsk0 (peer/secure/channel.c).
 *
 *   noise_cipher    CipherState:    k, n
 *   noise           SymmetricState: ck, h, cipher; HandshakeState: s, e, rs, re
 *
 *   noise_init -> noise_write / noise_read in turn -> noise_split -> ciphers
 *
 * Call sodium_init() once before, so that libsodium selects its fast implementation.
 */
#ifndef PEER_SECURE_NOISE_H
#define PEER_SECURE_NOISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    NOISE_KEY = 32, /* Size of DH outputs (DHLEN), hashes (HASHLEN) and cipher keys, in bytes. */
    NOISE_TAG = 16,
    NOISE_MESSAGE_MAX = 65535,
    NOISE_MESSAGES_MAX = 4, /* Largest number of messages in a handshake pattern. */
    NOISE_TOKENS_MAX = 8,   /* Largest number of tokens in a message, with the final NOISE_END. */
    NOISE_PSKS_MAX = 2
};

enum noise_token { NOISE_END = 0, NOISE_E, NOISE_S, NOISE_EE, NOISE_ES, NOISE_SE, NOISE_PSK };

/* A handshake pattern. Only interactive patterns without pre-messages are supported. The initiator
 * writes messages 0, 2, ... */
struct noise_pattern
{
    const char *name; /* Name of the protocol, such as "Noise_XX_25519_ChaChaPoly_SHA256". */
    unsigned n_messages;
    /* Number of pre-shared keys. If there are any, token "e" also mixes the ephemeral public key
     * into the cipher key (section 9.2 of the Noise specification). */
    unsigned n_psks;
    enum noise_token message[NOISE_MESSAGES_MAX][NOISE_TOKENS_MAX];
};

struct noise_cipher
{
    uint8_t k[NOISE_KEY];
    uint64_t n; /* Next nonce. UINT64_MAX is reserved for REKEY and never used for a message. */
    bool keyed;
};

/* Parameters of a handshake. All are copied except the pattern, which is borrowed. */
struct noise_config
{
    const struct noise_pattern *pattern;
    bool initiator;
    const uint8_t *prologue;
    size_t n_prologue;
    const uint8_t *s_sk, *s_pk;         /* Static key pair of this end. */
    const uint8_t *e_sk;                /* Ephemeral secret key: 32 fresh random bytes. */
    const uint8_t *psk[NOISE_PSKS_MAX]; /* Pre-shared keys, in the order of their tokens. */
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
void noise_close(struct noise *s); /* Wipes all secrets of the handshake. */

/* noise_writes() and noise_reads() return whether this end must write or read the next message.
 * Both return false after the last message and after a failure. */
bool noise_writes(const struct noise *s);
bool noise_reads(const struct noise *s);
/* Returns whether all messages of the handshake were processed. */
bool noise_done(const struct noise *s);

/* Returns the number of bytes that the next message has in addition to its payload. */
size_t noise_overhead(const struct noise *s);

/* Writes the next message with payload[0..n) to out[0..n + overhead). Returns 0, or -EPROTO if the
 * key of the other end is a low-order point. The handshake has then failed permanently, and out is
 * zero. */
__attribute__((warn_unused_result)) int noise_write(struct noise *s, const uint8_t *payload,
                                                    size_t n, uint8_t *out);

/* Reads the next message in[0..n) and writes its payload to payload[0..n - overhead), which must
 * not overlap `in`. Returns 0, or -EPROTO: the handshake has failed permanently, and payload must
 * not be used. */
__attribute__((warn_unused_result)) int noise_read(struct noise *s, const uint8_t *in, size_t n,
                                                   uint8_t *payload);

/* Called after the last message: makes the ciphers of both directions. The caller then closes the
 * handshake. */
void noise_split(const struct noise *s, struct noise_cipher *send, struct noise_cipher *recv);

/* Encrypts m[0..n) to out[0..n + NOISE_TAG) (EncryptWithAd). `m` and `out` may be the same memory.
 * Returns 0, or -EPROTO if no nonce is left. `ad` may be NULL if n_ad is 0. */
__attribute__((warn_unused_result)) int noise_seal(struct noise_cipher *c, const uint8_t *ad,
                                                   size_t n_ad, const uint8_t *m, size_t n,
                                                   uint8_t *out);

/* Decrypts in[0..n) to out[0..n - NOISE_TAG) (DecryptWithAd). `in` and `out` may be the same
 * memory. Returns 0 and increments the nonce. Returns -EPROTO and leaves the nonce unchanged if n <
 * NOISE_TAG, the tag is wrong or no nonce is left. */
__attribute__((warn_unused_result)) int noise_open(struct noise_cipher *c, const uint8_t *ad,
                                                   size_t n_ad, const uint8_t *in, size_t n,
                                                   uint8_t *out);

/* Replaces the key (REKEY, section 4.2 of the Noise specification). The nonce counter is kept. */
void noise_rekey(struct noise_cipher *c);

#endif
