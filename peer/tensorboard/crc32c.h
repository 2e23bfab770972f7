/* peer/tensorboard/crc32c.h -- CRC-32C (Castagnoli), as iSCSI and TFRecord use it.
 *
 * The polynomial is 0x1edc6f41, reflected 0x82f63b78, the register begins as ones and ends inverted
 * (RFC 3720, B.4 has test vectors).
 */
#ifndef PEER_TENSORBOARD_CRC32C_H
#define PEER_TENSORBOARD_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* A bit at a time: 8 n steps. What is written here is some kB a second. */
uint32_t crc32c(const void *bytes, size_t n);

/* What a TFRecord holds in its place, so that a CRC over a text with CRCs in it is no weaker:
 * turned by 15 bits, plus a constant. */
uint32_t crc32c_masked(const void *bytes, size_t n);

#endif
