/* tests/fuzz/toy_sodium.h -- in place of libsodium's primitives, ones that a fuzzer can satisfy.
 *
 * The real ones would stop it at the first tag, and cost a third of a millisecond a handshake. These
 * are defined in the program itself, so that its calls end here and not in the library:
 *
 *   key agreement    xor, so that both ends agree; of the point zero it fails, as of low order
 *   hashes           all alike, but each byte that goes in is read
 *   sealing          the text as it is, then a tag of the nonce's number and 15 zeros
 *   signatures       genuine are those that begin with a zero
 *
 * What is checked still is checked: a tag of another number, a signature that does not begin so, and
 * every length. What goes in or out has the sizes that libsodium would read and write.
 */
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
