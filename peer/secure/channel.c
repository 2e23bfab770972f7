/* peer/secure/channel.c -- implements the Noise handshake, which exchanges the identities, and the
 * encrypted records that follow. */
#include "peer/secure/channel.h"

#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <string.h>

static_assert((int)CHANNEL_KEY == (int)NOISE_KEY,
              "the cluster key is the pre-shared key of the handshake");
static_assert((int)CHANNEL_OVERHEAD == CHANNEL_HEADER + 1 + NOISE_TAG, "layout");

/* The handshake pattern XXpsk0 (Noise specification, sections 7.5 and 9.4). With psk0 message 1
 * ends with an authentication tag that needs the cluster key. A message 1 with a wrong tag is
 * rejected after a few hashes and before any Diffie-Hellman operation. */
static const struct noise_pattern pattern = {
    .name = "Noise_XXpsk0_25519_ChaChaPoly_SHA256",
    .n_messages = 3,
    .n_psks = 1,
    .message = {{NOISE_PSK, NOISE_E},                   /* Message 1: -> psk, e */
                {NOISE_E, NOISE_EE, NOISE_S, NOISE_ES}, /* Message 2: <- e, ee, s, es */
                {NOISE_S, NOISE_SE}}};                  /* Message 3: -> s, se */

static const uint8_t prologue[] = {'h', 'e', 'a', 'r', 's', 'a', 'y', '/', '1'};

/* Domain string of the signature over a static key, without its NUL. */
static const char static_domain[] = "hearsay static key";
enum { DOMAIN_BYTES = sizeof static_domain - 1, BINDING_BYTES = DOMAIN_BYTES + NOISE_KEY };

/* ---- Identities and signatures. ---- */

void channel_identity_from_seed(struct channel_identity *id, const uint8_t seed[32])
{
    static const char sign[] = "hearsay identity", noise[] = "hearsay noise static";
    uint8_t sign_seed[crypto_sign_SEEDBYTES];
    crypto_generichash(sign_seed, sizeof sign_seed, (const uint8_t *)sign, sizeof sign - 1, seed,
                       32);
    crypto_sign_seed_keypair(id->sign_pk, id->sign_sk, sign_seed);
    sodium_memzero(sign_seed, sizeof sign_seed);
    crypto_generichash(id->noise_sk, sizeof id->noise_sk, (const uint8_t *)noise, sizeof noise - 1,
                       seed, 32);
    crypto_scalarmult_base(id->noise_pk, id->noise_sk);
}

void channel_identity_close(struct channel_identity *id)
{
    sodium_memzero(id, sizeof *id);
}

void channel_sign(const struct channel_identity *id, const uint8_t *msg, size_t n, uint8_t sig[64])
{
    crypto_sign_detached(sig, NULL, msg, n, id->sign_sk);
}

bool channel_verify(const uint8_t pk[32], const uint8_t *msg, size_t n, const uint8_t sig[64])
{
    return crypto_sign_verify_detached(sig, msg, n, pk) == 0;
}

/* Writes the text that binds an Ed25519 identity to a Noise static key: domain | noise_pk. */
static void binding(const uint8_t noise_pk[32], uint8_t out[BINDING_BYTES])
{
    memcpy(out, static_domain, DOMAIN_BYTES);
    memcpy(out + DOMAIN_BYTES, noise_pk, NOISE_KEY);
}

/* Offset in bytes at which the range of versions begins in the hello, the payload of handshake
 * messages 2 and 3. */
enum { VERSIONS_AT = CHANNEL_ID + 64 };

static void write_hello(const struct channel *c, uint8_t hello[CHANNEL_PAYLOAD])
{
    uint8_t signed_bytes[BINDING_BYTES], *v = hello + VERSIONS_AT;
    binding(c->identity->noise_pk, signed_bytes);
    memcpy(hello, c->identity->sign_pk, CHANNEL_ID);
    channel_sign(c->identity, signed_bytes, sizeof signed_bytes, hello + CHANNEL_ID);
    v[0] = (uint8_t)(c->ours.least >> 8);
    v[1] = (uint8_t)c->ours.least;
    v[2] = (uint8_t)(c->ours.most >> 8);
    v[3] = (uint8_t)c->ours.most;
}

static bool check_hello(const uint8_t hello[CHANNEL_PAYLOAD], const uint8_t noise_pk[32])
{
    uint8_t signed_bytes[BINDING_BYTES];
    binding(noise_pk, signed_bytes);
    return channel_verify(hello, signed_bytes, sizeof signed_bytes, hello + CHANNEL_ID);
}

/* ---- The handshake. ---- */

void channel_init(struct channel *c, bool initiator, const struct channel_identity *identity,
                  const uint8_t psk[CHANNEL_KEY], const uint8_t ephemeral[32])
{
    *c = (struct channel){.state = CHANNEL_WAIT_MSG1, .initiator = initiator, .identity = identity};
    noise_init(&c->noise, &(struct noise_config){.pattern = &pattern,
                                                 .initiator = initiator,
                                                 .prologue = prologue,
                                                 .n_prologue = sizeof prologue,
                                                 .s_sk = identity->noise_sk,
                                                 .s_pk = identity->noise_pk,
                                                 .e_sk = ephemeral,
                                                 .psk = {psk}});
}

void channel_speak(struct channel *c, struct channel_versions ours)
{
    assert(c->state == CHANNEL_WAIT_MSG1 && ours.least <= ours.most);
    c->ours = ours;
}

void channel_remember(struct channel *c, struct replay *answered)
{
    assert(!c->initiator && c->state == CHANNEL_WAIT_MSG1);
    c->answered = answered;
}

void channel_close(struct channel *c)
{
    sodium_memzero(c, sizeof *c);
    c->state = CHANNEL_FAILED;
}

/* Makes the channel fail. All secrets are wiped at the first failure. */
static int fail(struct channel *c)
{
    channel_close(c);
    return -EPROTO;
}

size_t channel_wants(const struct channel *c)
{
    switch (c->state) {
    case CHANNEL_WAIT_MSG1:
        return c->initiator ? 0 : CHANNEL_MSG1;
    case CHANNEL_WAIT_MSG2:
        return CHANNEL_MSG2;
    case CHANNEL_WAIT_MSG3:
        return CHANNEL_MSG3;
    case CHANNEL_OPEN:
    case CHANNEL_NO_VERSION:
    case CHANNEL_FAILED:
        break;
    }
    return 0;
}

/* Chooses the highest message version that both ends support. Returns false if they have no version
 * in common. v: version range of the other end, as in its hello. */
static bool agree(struct channel *c, const uint8_t v[4])
{
    c->theirs.least = (uint16_t)(v[0] << 8 | v[1]);
    c->theirs.most = (uint16_t)(v[2] << 8 | v[3]);
    uint16_t least = c->ours.least > c->theirs.least ? c->ours.least : c->theirs.least;
    uint16_t most = c->ours.most < c->theirs.most ? c->ours.most : c->theirs.most;
    c->version = most;
    return least <= most;
}

/* Ends the handshake after a valid hello of the other end. Opens the channel if both ends have a
 * version in common. */
static void end_handshake(struct channel *c, const uint8_t hello[CHANNEL_PAYLOAD])
{
    bool open = agree(c, hello + VERSIONS_AT);
    if (open)
        noise_split(&c->noise, &c->send, &c->recv);
    noise_close(&c->noise);
    memcpy(c->peer_id, hello, CHANNEL_ID);
    c->identity = NULL;
    c->answered = NULL;
    c->state = open ? CHANNEL_OPEN : CHANNEL_NO_VERSION;
}

/* Writes handshake message 1, which has the Noise tokens -> psk, e. */
static int write_msg1(struct channel *c, uint8_t *out, size_t *n_out)
{
    if (noise_write(&c->noise, NULL, 0, out) != 0)
        return fail(c);
    *n_out = CHANNEL_MSG1;
    c->state = CHANNEL_WAIT_MSG2;
    return 0;
}

/* Reads handshake message 1 (Noise tokens -> psk, e) and writes message 2 (<- e, ee, s, es,
 * hello). */
static int answer_msg1(struct channel *c, const uint8_t *in, uint8_t *out, size_t *n_out)
{
    uint8_t hello[CHANNEL_PAYLOAD];
    /* Message 1 has an empty payload, so noise_read() writes nothing to `hello`. */
    if (noise_read(&c->noise, in, CHANNEL_MSG1, hello) != 0)
        return fail(c);
    /* A copy of a message 1 that was answered earlier is refused here, before the expensive key
     * agreements of the reply. */
    if (c->answered != NULL && !replay_is_new(c->answered, c->noise.re))
        return fail(c);
    write_hello(c, hello);
    if (noise_write(&c->noise, hello, sizeof hello, out) != 0)
        return fail(c);
    *n_out = CHANNEL_MSG2;
    c->state = CHANNEL_WAIT_MSG3;
    return 0;
}

/* Reads handshake message 2 (Noise tokens <- e, ee, s, es, hello) and writes message 3 (-> s, se,
 * hello). */
static int answer_msg2(struct channel *c, const uint8_t *in, uint8_t *out, size_t *n_out)
{
    uint8_t theirs[CHANNEL_PAYLOAD], mine[CHANNEL_PAYLOAD];
    if (noise_read(&c->noise, in, CHANNEL_MSG2, theirs) != 0 || !check_hello(theirs, c->noise.rs))
        return fail(c);
    write_hello(c, mine);
    if (noise_write(&c->noise, mine, sizeof mine, out) != 0)
        return fail(c);
    *n_out = CHANNEL_MSG3;
    end_handshake(c, theirs);
    return 0;
}

/* Reads handshake message 3, which has the Noise tokens and payload -> s, se, hello. */
static int take_msg3(struct channel *c, const uint8_t *in)
{
    uint8_t theirs[CHANNEL_PAYLOAD];
    if (noise_read(&c->noise, in, CHANNEL_MSG3, theirs) != 0 || !check_hello(theirs, c->noise.rs))
        return fail(c);
    end_handshake(c, theirs);
    return 0;
}

int channel_handshake(struct channel *c, const uint8_t *in, size_t n_in, uint8_t *out,
                      size_t *n_out)
{
    *n_out = 0;
    if (n_in != channel_wants(c))
        return fail(c);
    switch (c->state) {
    case CHANNEL_WAIT_MSG1:
        return c->initiator ? write_msg1(c, out, n_out) : answer_msg1(c, in, out, n_out);
    case CHANNEL_WAIT_MSG2:
        return answer_msg2(c, in, out, n_out);
    case CHANNEL_WAIT_MSG3:
        return take_msg3(c, in);
    case CHANNEL_OPEN:
    case CHANNEL_NO_VERSION:
    case CHANNEL_FAILED:
        break;
    }
    return fail(c);
}

/* ---- Sealing and opening records. ---- */

/* Returns whether records of this kind (REKEY or CLOSE) have no data. */
static bool bare(enum channel_kind kind)
{
    return kind == CHANNEL_REKEY || kind == CHANNEL_CLOSE;
}

size_t channel_seal(struct channel *c, enum channel_kind kind, const uint8_t *data, size_t n,
                    const uint8_t *data2, size_t n2, uint8_t *out)
{
    assert(kind >= CHANNEL_CONTROL && kind <= CHANNEL_CLOSE);
    assert(n <= CHANNEL_PLAIN_MAX && n2 <= CHANNEL_PLAIN_MAX - n);
    assert(!bare(kind) || n + n2 == 0);
    if (c->state != CHANNEL_OPEN || c->sent_close)
        return 0;
    size_t n_plain = n + n2 + 1, n_cipher = n_plain + NOISE_TAG;
    uint8_t *body = out + CHANNEL_HEADER;
    if (n > 0)
        memcpy(body, data, n);
    if (n2 > 0)
        memcpy(body + n, data2, n2);
    body[n + n2] = (uint8_t)kind;
    if (noise_seal(&c->send, NULL, 0, body, n_plain, body) != 0) {
        sodium_memzero(body, n_plain);
        return 0;
    }
    out[0] = (uint8_t)(n_cipher >> 8);
    out[1] = (uint8_t)n_cipher;
    c->sent_since_rekey += n + n2;
    c->sent_close = kind == CHANNEL_CLOSE;
    if (kind == CHANNEL_REKEY) {
        noise_rekey(&c->send);
        c->sent_since_rekey = 0;
    }
    return CHANNEL_HEADER + n_cipher;
}

int channel_open(struct channel *c, const uint8_t *in, size_t n, uint8_t *out, size_t *n_out,
                 enum channel_kind *kind)
{
    *n_out = 0;
    if (c->state != CHANNEL_OPEN || c->got_close || n < 1 + NOISE_TAG || n > CHANNEL_RECORD_MAX
        || noise_open(&c->recv, NULL, 0, in, n, out) != 0)
        return fail(c);
    size_t n_data = n - NOISE_TAG - 1;
    uint8_t k = out[n_data];
    if (k < CHANNEL_CONTROL || k > CHANNEL_CLOSE || (bare((enum channel_kind)k) && n_data > 0))
        return fail(c);
    *kind = (enum channel_kind)k;
    *n_out = n_data;
    c->got_close = k == CHANNEL_CLOSE;
    if (k == CHANNEL_REKEY)
        noise_rekey(&c->recv);
    return 0;
}
