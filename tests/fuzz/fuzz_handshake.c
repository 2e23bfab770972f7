/* tests/fuzz/fuzz_handshake.c -- fuzzes a connection to a peer, from its first byte to the messages
 * of a session.
 *
 *     input --ops--> bytes in pieces --> peer/uv/link.c, session.c --> channel, frame --> node
 *                                        (toy_uv.h)      (toy_sodium.h)
 *
 * The fuzzed peer ("ours") runs its usual code, except that libuv and the primitives of libsodium
 * are replaced. The replacements let the fuzzer get as far as a member with the cluster key.
 *
 *   input:   setup u8 | op, op, ...
 *   op:      what u8 | length u16 | payload      what: op of the table below (low three bits);
 *                                                bits 4, 5: size of pieces; bit 3: the bulk lane
 *
 *   0 RAW        the payload, unchanged
 *   1 SHAKE      the next message of an honest handshake, modified by (position, xor) pairs
 *   2 RECORD     kind u8 | data: a correctly sealed record with any contents
 *   3 MESSAGE    the payload as a message, split into records and sealed
 *   4 TEMPLATE   which u8 | (position u16, xor u8)...: a message of an honest peer, modified
 *   5 TIME       how long u8 (milliseconds times a quarter of its square)
 *   6 END        how u8: the connection ends, ours closes it, a new one arrives, or ours dials
 *   7 ADMIT      who u8: the list of allowed members changes
 *
 * Invariants:
 *
 *   - A connection without the cluster key gets no byte and no session.
 *   - An honest peer gets a session, with a version that both ends support.
 *   - No first message is answered twice.
 *   - A peer that is not admitted is not a vertex.
 *   - The member table and the model stay within limits. */
#include "tests/fuzz/handshake_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
size_t LLVMFuzzerCustomMutator(uint8_t *p, size_t n, size_t max, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *p, size_t n, size_t max);

enum { OP = 3, OPS_MAX = 64 };

/* Modifies a message. Each entry of `pairs` is a position (`wide` bytes) and a byte with the bits
 * to flip there. */
static void spoil(uint8_t *m, size_t n, const uint8_t *pairs, size_t n_pairs, size_t wide)
{
    for (; n_pairs >= wide + 1 && n > 0; pairs += wide + 1, n_pairs -= wide + 1) {
        size_t at = wide == 1 ? pairs[0] : (size_t)(pairs[0] | pairs[1] << 8);
        m[at % n] ^= pairs[wide];
    }
}

static void op_shake(const uint8_t *p, size_t n, size_t piece)
{
    uint8_t m[CHANNEL_MSG2];
    size_t length = world_shake(m);
    world.honest &= n < 2;
    spoil(m, length, p, n, 1);
    world_arrive(m, length, piece);
}

/* Seals a record as channel_seal() does, but with any kind and length. */
static void op_record(const uint8_t *p, size_t n, size_t piece)
{
    static uint8_t m[CHANNEL_HEADER + 4096 + 1 + NOISE_TAG];
    unsigned long long sealed;
    uint8_t nonce[12] = {0};
    if (n == 0 || n > 4096 || world.evil.state != CHANNEL_OPEN)
        return;
    memcpy(m + CHANNEL_HEADER, p + 1, n - 1);
    m[CHANNEL_HEADER + n - 1] = p[0];
    nonce[4] = (uint8_t)world.evil.send.n++;
    (void)crypto_aead_chacha20poly1305_ietf_encrypt(m + CHANNEL_HEADER, &sealed, m + CHANNEL_HEADER,
                                                    n, NULL, 0, NULL, nonce, world.evil.send.k);
    m[0] = (uint8_t)(sealed >> 8);
    m[1] = (uint8_t)sealed;
    world_arrive(m, CHANNEL_HEADER + (size_t)sealed, piece);
}

static void op_message(const uint8_t *p, size_t n, bool bulk, size_t piece)
{
    static uint8_t m[CHANNEL_HEADER + CHANNEL_RECORD_MAX];
    struct frame_cut cut;
    struct frame_record r;
    if (n == 0)
        return;
    frame_cut_init(&cut, bulk ? FRAME_BULK : FRAME_CONTROL, p, n, NULL, 0);
    while (frame_next(&cut, &r)) {
        size_t length = channel_seal(&world.evil, r.kind, r.data, r.n, r.data2, r.n2, m);
        world_arrive(m, length, piece);
    }
}

static void op_template(const uint8_t *p, size_t n, bool bulk, size_t piece)
{
    static uint8_t m[WIRE_CONTROL_MAX];
    if (n == 0)
        return;
    size_t length = world_template(p[0], m, sizeof m);
    spoil(m, length, p + 1, n - 1, 2);
    op_message(m, length, bulk, piece);
}

static void op(uint8_t what, const uint8_t *p, size_t n)
{
    static const size_t pieces[4] = {0, 1, 7, 100};
    size_t piece = pieces[what >> 4 & 3];
    bool bulk = what & 8;
    switch (what & 7) {
    case 0:
        world.honest = false;
        world_arrive(p, n, piece);
        break;
    case 1:
        op_shake(p, n, piece);
        break;
    case 2:
        op_record(p, n, piece);
        break;
    case 3:
        op_message(p, n, bulk, piece);
        break;
    case 4:
        op_template(p, n, bulk, piece);
        break;
    case 5:
        world_time(n > 0 ? (uint64_t)p[0] * p[0] / 4 + 1 : 1);
        break;
    case 6:
        world_end(n > 0 ? p[0] : 0);
        break;
    case 7:
        world_admit(n > 0 ? p[0] : 0);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    if (n == 0)
        return 0;
    world_open(p[0]);
    size_t at = 1;
    for (uint32_t i = 0; i < OPS_MAX && n - at >= OP; i++) {
        size_t length = (size_t)(p[at + 1] | p[at + 2] << 8);
        const uint8_t *payload = p + at + OP;
        length = length < n - at - OP ? length : n - at - OP;
        op(p[at], payload, length);
        world_check();
        at += OP + length;
    }
    world_close();
    return 0;
}

/* Inserts whole operations at the end or as the whole input, because random bytes rarely form valid
 * ones. In other cases mutates the bytes. */
size_t LLVMFuzzerCustomMutator(uint8_t *p, size_t n, size_t max, unsigned seed)
{
    static const uint8_t shake[] = {1, 0, 0}, hello[] = {4, 1, 0, 0};
    if (max < 64 || seed % 4 != 0)
        return LLVMFuzzerMutate(p, n, max);
    if (n == 0 || seed % 64 == 0) {
        p[0] = (uint8_t)(seed >> 8);
        n = 1;
        for (int i = 0; i < 2; i++, n += sizeof shake)
            memcpy(p + n, shake, sizeof shake);
        memcpy(p + n, hello, sizeof hello);
        return n + sizeof hello;
    }
    if (n + 16 > max)
        return LLVMFuzzerMutate(p, n, max);
    uint8_t made[] = {
        (uint8_t)(4 | (seed >> 8 & 0x38)), 4, 0, (uint8_t)(seed >> 14), (uint8_t)(seed >> 18), 0,
        (uint8_t)(1u << (seed >> 26 & 7))};
    if (seed & 4)
        /* The input has no pair of position and bits to flip, so the message is not modified. */
        made[1] = 1;
    memcpy(p + n, made, OP + made[1]);
    return n + OP + made[1];
}
