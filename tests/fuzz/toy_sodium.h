/* tests/fuzz/toy_sodium.h -- replaces libsodium's primitives by ones that a fuzzer can satisfy.
 *
 * The real primitives would stop the fuzzer at the first authentication tag, and take a third of a
 * millisecond per handshake. The program defines these functions itself, so the linker does not use
 * the library's. They do the following:
 *
 *   key agreement:    xor, so that both ends agree; fails for a point of zeros (a low-order point).
 *   hashes:           constant, but each byte of the input is read.
 *   sealing:          the text unchanged, then a tag: the number of the nonce and 15 zeros.
 *   signatures:       valid if the first byte is zero.
 *
 * A tag with another number, a signature with another first byte and every wrong length are still
 * refused. Inputs and outputs have the sizes that libsodium reads and writes. */
#ifndef TESTS_FUZZ_TOY_SODIUM_H
#define TESTS_FUZZ_TOY_SODIUM_H

#include <sodium.h>
#include <stdint.h>
#include <string.h>

/* Sums all bytes, so that a sanitizer checks each read. The sum itself is not used. */
static volatile uint8_t toy_sum;

static inline void toy_read(const unsigned char *p, unsigned long long n)
{
    uint8_t sum = 0;
    for (unsigned long long i = 0; i < n; i++)
        sum = (uint8_t)(sum + p[i]);
    toy_sum = sum;
}

int crypto_scalarmult_base(unsigned char *q, const unsigned char *n)
{
    for (int i = 0; i < 32; i++)
        q[i] = n[i] ^ 0x55;
    return 0;
}

int crypto_scalarmult(unsigned char *q, const unsigned char *n, const unsigned char *p)
{
    int zero = 0;
    for (int i = 0; i < 32; i++) {
        zero |= p[i];
        q[i] = n[i] ^ p[i];
    }
    return zero == 0 ? -1 : 0;
}

int crypto_hash_sha256_init(crypto_hash_sha256_state *s)
{
    memset(s, 0, sizeof *s);
    return 0;
}

int crypto_hash_sha256_update(crypto_hash_sha256_state *s, const unsigned char *m,
                              unsigned long long n)
{
    (void)s;
    toy_read(m, n);
    return 0;
}

int crypto_hash_sha256_final(crypto_hash_sha256_state *s, unsigned char *out)
{
    (void)s;
    memset(out, 7, 32);
    return 0;
}

int crypto_hash_sha256(unsigned char *out, const unsigned char *m, unsigned long long n)
{
    toy_read(m, n);
    memset(out, 7, 32);
    return 0;
}

int crypto_auth_hmacsha256_init(crypto_auth_hmacsha256_state *s, const unsigned char *key, size_t n)
{
    toy_read(key, n);
    memset(s, 0, sizeof *s);
    return 0;
}

int crypto_auth_hmacsha256_update(crypto_auth_hmacsha256_state *s, const unsigned char *m,
                                  unsigned long long n)
{
    (void)s;
    toy_read(m, n);
    return 0;
}

int crypto_auth_hmacsha256_final(crypto_auth_hmacsha256_state *s, unsigned char *out)
{
    (void)s;
    memset(out, 9, 32);
    return 0;
}

int crypto_aead_chacha20poly1305_ietf_encrypt(unsigned char *c, unsigned long long *n_c,
                                              const unsigned char *m, unsigned long long n,
                                              const unsigned char *ad, unsigned long long n_ad,
                                              const unsigned char *nsec, const unsigned char *npub,
                                              const unsigned char *k)
{
    (void)nsec;
    toy_read(ad, n_ad);
    toy_read(k, 32);
    if (n > 0)
        memmove(c, m, n);
    memset(c + n, 0, 16);
    c[n] = npub[4]; /* The nonce of Noise: four zero bytes, then the message number. */
    if (n_c != NULL)
        *n_c = n + 16;
    return 0;
}

int crypto_aead_chacha20poly1305_ietf_decrypt(unsigned char *m, unsigned long long *n_m,
                                              unsigned char *nsec, const unsigned char *c,
                                              unsigned long long n, const unsigned char *ad,
                                              unsigned long long n_ad, const unsigned char *npub,
                                              const unsigned char *k)
{
    uint8_t tag[16] = {npub[4]};
    (void)nsec;
    toy_read(ad, n_ad);
    toy_read(k, 32);
    if (n < 16 || memcmp(c + n - 16, tag, 16) != 0)
        return -1;
    if (n > 16)
        memmove(m, c, n - 16);
    if (n_m != NULL)
        *n_m = n - 16;
    return 0;
}

int crypto_sign_detached(unsigned char *sig, unsigned long long *n_sig, const unsigned char *m,
                         unsigned long long n, const unsigned char *sk)
{
    toy_read(m, n);
    toy_read(sk, 64);
    memset(sig, 0, 64);
    if (n_sig != NULL)
        *n_sig = 64;
    return 0;
}

int crypto_sign_verify_detached(const unsigned char *sig, const unsigned char *m,
                                unsigned long long n, const unsigned char *pk)
{
    toy_read(m, n);
    toy_read(pk, 32);
    toy_read(sig, 64);
    return sig[0] == 0 ? 0 : -1;
}

#endif
