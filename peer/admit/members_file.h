/* peer/admit/members_file.h -- the identities that may be members, one a line.
 *
 *     # comment
 *     9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08  peer-a  # and another
 *
 * An identity is an Ed25519 public key, 64 hexadecimal digits, as `hearsay key identity` prints it.
 * The name behind it is for whoever reads the file, and binds nobody. Blank lines and what stands
 * behind # are passed over. Pure: text in, identities out.
 */
#ifndef PEER_ADMIT_MEMBERS_FILE_H
#define PEER_ADMIT_MEMBERS_FILE_H

#include "gossip/wire/wire.h"

enum {
    MEMBERS_FILE_MAX = 1024 * 1024, /* Bytes of a file. */
    MEMBERS_FILE_IDS_MAX = 4096,    /* Identities in it. */
    MEMBERS_FILE_ERROR_MAX = 256
};

struct members_file
{
    size_t n;
    uint8_t (*id)[WIRE_ID_BYTES]; /* Sorted, each once. */
};

/* Read text[0..n). 0; -EINVAL with "line 3: found ..., expected ..." (also where no identity is in
 * it: a file that was cut off must not close a cluster); -ENOMEM. Only 0 changes *f, which is
 * zeroed before its first use, and gives back what it held. */
__attribute__((warn_unused_result)) int members_file_parse(struct members_file *f, const char *text,
                                                           size_t n,
                                                           char error[MEMBERS_FILE_ERROR_MAX]);
void members_file_close(struct members_file *f);

/* Is it one of n sorted ids? */
bool members_file_has(const struct members_file *f, const uint8_t id[WIRE_ID_BYTES]);

#endif
