/* peer/secure/noise.c -- the three state objects of the Noise framework and the interpreter of
 * tokens, on libsodium's primitives. */
#include "peer/secure/noise.h"

#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <string.h>

static_assert((int)crypto_scalarmult_BYTES == (int)NOISE_KEY, "DHLEN");
static_assert((int)crypto_hash_sha256_BYTES == (int)NOISE_KEY, "HASHLEN");
static_assert((int)crypto_auth_hmacsha256_BYTES == (int)NOISE_KEY, "HASHLEN");
static_assert((int)crypto_aead_chacha20poly1305_ietf_ABYTES == (int)NOISE_TAG, "tag");

/* ---- CipherState: encryption with a counter (section 5.1). ---- */

/* Writes a nonce: 32 zero bits, then the counter in little-endian order (Noise specification,
 * section 12.3). */
static void nonce_bytes(uint64_t n, uint8_t out[12])
{
    memset(out, 0, 4);
    for (int i = 0; i < 8; i++)
        out[4 + i] = (uint8_t)(n >> (8 * i));
}

int noise_seal(struct noise_cipher *c, const uint8_t *ad, size_t n_ad, const uint8_t *m, size_t n,
               uint8_t *out)
{
    uint8_t nonce[12];
    assert(c->keyed);
    if (c->n == UINT64_MAX)
        return -EPROTO;
    nonce_bytes(c->n++, nonce);
    crypto_aead_chacha20poly1305_ietf_encrypt(out, NULL, m, n, ad, n_ad, NULL, nonce, c->k);
    return 0;
}

int noise_open(struct noise_cipher *c, const uint8_t *ad, size_t n_ad, const uint8_t *in, size_t n,
               uint8_t *out)
{
    uint8_t nonce[12];
    assert(c->keyed);
    if (c->n == UINT64_MAX || n < NOISE_TAG)
        return -EPROTO;
    nonce_bytes(c->n, nonce);
    if (crypto_aead_chacha20poly1305_ietf_decrypt(out, NULL, NULL, in, n, ad, n_ad, nonce, c->k)
        != 0)
        return -EPROTO;
    c->n++;
    return 0;
}

void noise_rekey(struct noise_cipher *c)
{
    uint8_t nonce[12], zeros[NOISE_KEY] = {0}, out[NOISE_KEY + NOISE_TAG];
    assert(c->keyed);
    nonce_bytes(UINT64_MAX, nonce);
    crypto_aead_chacha20poly1305_ietf_encrypt(out, NULL, zeros, sizeof zeros, NULL, 0, NULL, nonce,
                                              c->k);
    memcpy(c->k, out, NOISE_KEY);
    sodium_memzero(out, sizeof out);
}

/* ---- HKDF: derivation of keys (section 4.3). ---- */

static void hmac(const uint8_t key[NOISE_KEY], const uint8_t *m, size_t n, uint8_t last,
                 uint8_t out[NOISE_KEY])
{
    crypto_auth_hmacsha256_state state;
    crypto_auth_hmacsha256_init(&state, key, NOISE_KEY);
    crypto_auth_hmacsha256_update(&state, m, n);
    if (last != 0)
        crypto_auth_hmacsha256_update(&state, &last, 1);
    crypto_auth_hmacsha256_final(&state, out);
    sodium_memzero(&state, sizeof state);
}

/* Computes n_out outputs of 32 bytes from the chaining key `ck` (HKDF of the Noise specification):
 * `temp = HMAC(ck, input)`, `output i = HMAC(temp, output i-1 | byte i)`. `ck` may be one of the
 * outputs. */
static void hkdf(const uint8_t ck[NOISE_KEY], const uint8_t *input, size_t n, uint8_t *const *out,
                 unsigned n_out)
{
    uint8_t temp[NOISE_KEY], block[NOISE_KEY] = {0};
    hmac(ck, input, n, 0, temp);
    for (unsigned i = 0; i < n_out; i++) {
        hmac(temp, block, i == 0 ? 0 : NOISE_KEY, (uint8_t)(i + 1), block);
        memcpy(out[i], block, NOISE_KEY);
    }
    sodium_memzero(temp, sizeof temp);
    sodium_memzero(block, sizeof block);
}

/* ---- SymmetricState: keys and hash of the handshake (section 5.2). ---- */

static void mix_hash(struct noise *s, const uint8_t *bytes, size_t n)
{
    crypto_hash_sha256_state state;
    crypto_hash_sha256_init(&state);
    crypto_hash_sha256_update(&state, s->h, sizeof s->h);
    crypto_hash_sha256_update(&state, bytes, n);
    crypto_hash_sha256_final(&state, s->h);
}

static void new_key(struct noise *s)
{
    s->cipher.n = 0;
    s->cipher.keyed = true;
}

static void mix_key(struct noise *s, const uint8_t input[NOISE_KEY])
{
    hkdf(s->ck, input, NOISE_KEY, (uint8_t *[]){s->ck, s->cipher.k}, 2);
    new_key(s);
}

static void mix_key_and_hash(struct noise *s, const uint8_t input[NOISE_KEY])
{
    uint8_t temp_h[NOISE_KEY];
    hkdf(s->ck, input, NOISE_KEY, (uint8_t *[]){s->ck, temp_h, s->cipher.k}, 3);
    mix_hash(s, temp_h, sizeof temp_h);
    sodium_memzero(temp_h, sizeof temp_h);
    new_key(s);
}

/* Returns the number of bytes that EncryptAndHash adds to a plaintext: the size of the tag, or 0
 * before the first key. */
static size_t tag_size(const struct noise *s)
{
    return s->cipher.keyed ? NOISE_TAG : 0;
}

static void encrypt_and_hash(struct noise *s, const uint8_t *m, size_t n, uint8_t *out)
{
    if (!s->cipher.keyed) {
        if (n > 0)
            memcpy(out, m, n);
    } else {
        int err = noise_seal(&s->cipher, s->h, sizeof s->h, m, n, out);
        /* noise_seal() fails only after 2^64 - 1 messages, and a handshake has only a few. */
        assert(err == 0);
    }
    mix_hash(s, out, n + tag_size(s));
}

/* Decrypts in[0..n + tag size) to out[0..n), and hashes the ciphertext. */
static int decrypt_and_hash(struct noise *s, const uint8_t *in, size_t n, uint8_t *out)
{
    if (!s->cipher.keyed) {
        if (n > 0)
            memcpy(out, in, n);
    } else if (noise_open(&s->cipher, s->h, sizeof s->h, in, n + NOISE_TAG, out) != 0)
        return -EPROTO;
    mix_hash(s, in, n + tag_size(s));
    return 0;
}

/* ---- HandshakeState (section 5.3): the tokens. ---- */

static int mix_dh(struct noise *s, const uint8_t *sk, const uint8_t *pk)
{
    uint8_t shared[NOISE_KEY];
    /* A low-order point gives an all-zero shared secret. crypto_scalarmult() refuses such points,
     * except in some builds of libsodium. Therefore the secret is also checked here. */
    bool good = crypto_scalarmult(shared, sk, pk) == 0 && !sodium_is_zero(shared, sizeof shared);
    if (good)
        mix_key(s, shared);
    sodium_memzero(shared, sizeof shared);
    return good ? 0 : -EPROTO;
}

/* Processes a token that has no bytes in the message: mixes a DH result or a pre-shared key into
 * the keys. In the names of DH tokens, such as "es", the first letter is the initiator's key and
 * the second letter the responder's. */
static int mix_token(struct noise *s, enum noise_token token)
{
    switch (token) {
    case NOISE_EE:
        return mix_dh(s, s->e_sk, s->re);
    case NOISE_ES:
        return s->initiator ? mix_dh(s, s->e_sk, s->rs) : mix_dh(s, s->s_sk, s->re);
    case NOISE_SE:
        return s->initiator ? mix_dh(s, s->s_sk, s->re) : mix_dh(s, s->e_sk, s->rs);
    case NOISE_PSK:
        mix_key_and_hash(s, s->psk[s->next_psk++]);
        return 0;
    case NOISE_E:
    case NOISE_S:
    case NOISE_END:
        break;
    }
    assert(0 && "a token of its own");
    return -EPROTO;
}

/* Processes token "e", both in a written and in a read message: mixes the ephemeral public key `pk`
 * into the hash of the handshake. If the pattern has pre-shared keys, also derives a new cipher key
 * from `pk`, so that no two handshakes encrypt with the same key. */
static void mix_ephemeral(struct noise *s, const uint8_t pk[NOISE_KEY])
{
    mix_hash(s, pk, NOISE_KEY);
    if (s->pattern->n_psks > 0)
        mix_key(s, pk);
}

static int write_tokens(struct noise *s, const enum noise_token *token, uint8_t **out)
{
    for (; *token != NOISE_END; token++) {
        if (*token == NOISE_E) {
            /* The public key is computed only when it is needed. A message that is refused earlier
             * then costs no Diffie-Hellman operation. */
            crypto_scalarmult_base(s->e_pk, s->e_sk);
            memcpy(*out, s->e_pk, NOISE_KEY);
            mix_ephemeral(s, s->e_pk);
            *out += NOISE_KEY;
        } else if (*token == NOISE_S) {
            size_t tag = tag_size(s);
            encrypt_and_hash(s, s->s_pk, NOISE_KEY, *out);
            *out += NOISE_KEY + tag;
        } else if (mix_token(s, *token) != 0)
            return -EPROTO;
    }
    return 0;
}

static int read_tokens(struct noise *s, const enum noise_token *token, const uint8_t **in)
{
    for (; *token != NOISE_END; token++) {
        if (*token == NOISE_E) {
            memcpy(s->re, *in, NOISE_KEY);
            mix_ephemeral(s, s->re);
            *in += NOISE_KEY;
        } else if (*token == NOISE_S) {
            size_t tag = tag_size(s);
            if (decrypt_and_hash(s, *in, NOISE_KEY, s->rs) != 0)
                return -EPROTO;
            *in += NOISE_KEY + tag;
        } else if (mix_token(s, *token) != 0)
            return -EPROTO;
    }
    return 0;
}

/* ---- Public functions. ---- */

void noise_init(struct noise *s, const struct noise_config *config)
{
    const struct noise_pattern *p = config->pattern;
    size_t n = strlen(p->name);
    assert(p->n_messages <= NOISE_MESSAGES_MAX && p->n_psks <= NOISE_PSKS_MAX);
    *s = (struct noise){.pattern = p, .initiator = config->initiator};
    if (n <= sizeof s->h)
        /* A protocol name that is shorter than a hash is padded with zeros. */
        memcpy(s->h, p->name, n);
    else
        crypto_hash_sha256(s->h, (const uint8_t *)p->name, n);
    memcpy(s->ck, s->h, sizeof s->ck);
    mix_hash(s, config->prologue, config->n_prologue);
    memcpy(s->s_sk, config->s_sk, NOISE_KEY);
    memcpy(s->s_pk, config->s_pk, NOISE_KEY);
    memcpy(s->e_sk, config->e_sk, NOISE_KEY);
    for (unsigned i = 0; i < p->n_psks; i++)
        memcpy(s->psk[i], config->psk[i], NOISE_KEY);
}

void noise_close(struct noise *s)
{
    sodium_memzero(s, sizeof *s);
}

bool noise_done(const struct noise *s)
{
    return !s->failed && s->next_message == s->pattern->n_messages;
}

static bool our_turn(const struct noise *s)
{
    return s->initiator == (s->next_message % 2 == 0);
}

bool noise_writes(const struct noise *s)
{
    return !s->failed && !noise_done(s) && our_turn(s);
}

bool noise_reads(const struct noise *s)
{
    return !s->failed && !noise_done(s) && !our_turn(s);
}

size_t noise_overhead(const struct noise *s)
{
    assert(!s->failed && !noise_done(s));
    bool keyed = s->cipher.keyed, psks = s->pattern->n_psks > 0;
    size_t n = 0;
    for (const enum noise_token *t = s->pattern->message[s->next_message]; *t != NOISE_END; t++) {
        if (*t == NOISE_E)
            n += NOISE_KEY;
        if (*t == NOISE_S)
            n += keyed ? NOISE_KEY + NOISE_TAG : NOISE_KEY;
        keyed = keyed || (*t == NOISE_E ? psks : *t != NOISE_S);
    }
    return n + (keyed ? NOISE_TAG : 0);
}

/* Makes the handshake fail. All secrets are wiped at the first failure. */
static int fail(struct noise *s)
{
    const struct noise_pattern *pattern = s->pattern;
    noise_close(s);
    s->pattern = pattern;
    s->failed = true;
    return -EPROTO;
}

int noise_write(struct noise *s, const uint8_t *payload, size_t n, uint8_t *out)
{
    assert(noise_writes(s));
    size_t total = n + noise_overhead(s);
    uint8_t *at = out;
    assert(total <= NOISE_MESSAGE_MAX);
    if (write_tokens(s, s->pattern->message[s->next_message], &at) != 0) {
        sodium_memzero(out, total);
        return fail(s);
    }
    size_t tag = tag_size(s);
    encrypt_and_hash(s, payload, n, at);
    assert(at + n + tag == out + total);
    s->next_message++;
    return 0;
}

int noise_read(struct noise *s, const uint8_t *in, size_t n, uint8_t *payload)
{
    assert(noise_reads(s));
    size_t overhead = noise_overhead(s);
    const uint8_t *at = in;
    if (n > NOISE_MESSAGE_MAX || n < overhead
        || read_tokens(s, s->pattern->message[s->next_message], &at) != 0
        || decrypt_and_hash(s, at, n - overhead, payload) != 0)
        return fail(s);
    s->next_message++;
    return 0;
}

void noise_split(const struct noise *s, struct noise_cipher *send, struct noise_cipher *recv)
{
    assert(noise_done(s));
    struct noise_cipher *first = s->initiator ? send : recv;
    struct noise_cipher *second = s->initiator ? recv : send;
    hkdf(s->ck, NULL, 0, (uint8_t *[]){first->k, second->k}, 2);
    first->n = second->n = 0;
    first->keyed = second->keyed = true;
}
