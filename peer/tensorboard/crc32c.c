/* peer/tensorboard/crc32c.c -- CRC-32C, bit by bit. */
#include "peer/tensorboard/crc32c.h"

uint32_t crc32c(const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0x82f63b78) : 0);
    }
    return ~crc;
}

uint32_t crc32c_masked(const void *bytes, size_t n)
{
    uint32_t crc = crc32c(bytes, n);
    return (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
}
