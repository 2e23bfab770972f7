/* peer/admission/allow_list.h -- the allow-list: identities that may be members, one per line of a
 * file.
 *
 *     # comment
 *     9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08  peer-a  # another comment
 *
 * An identity is an Ed25519 public key of 64 hexadecimal digits, as `hearsay key identity` prints
 * it. The name after it is a note for people and has no effect. Blank lines and text after # are
 * ignored. All functions are pure: they read text, not files.
 */
#ifndef PEER_ADMISSION_ALLOW_LIST_H
#define PEER_ADMISSION_ALLOW_LIST_H

#include "gossip/wire/wire.h"

enum {
    ALLOW_LIST_BYTES_MAX = 1024 * 1024, /* Largest size of an allow-list, in bytes. */
    ALLOW_LIST_IDS_MAX = 4096,          /* Largest number of identities in an allow-list. */
    ALLOW_LIST_ERROR_MAX = 256
};

/* A parsed allow-list. Set all bytes to zero before the first use. */
struct allow_list
{
    size_t n;
    /* `n` identities, sorted, without duplicates. allow_list_close() frees them. */
    uint8_t (*id)[WIRE_ID_BYTES];
};

/* Parses text[0..n) and stores the result in `*f`. The old content of `*f` is freed. Returns 0,
 * -ENOMEM, or -EINVAL with a message such as "line 3: found ..., expected ...". A text without any
 * identity gives -EINVAL, so that a truncated file does not lock every peer out. On failure `*f` is
 * unchanged. */
__attribute__((warn_unused_result)) int allow_list_parse(struct allow_list *f, const char *text,
                                                         size_t n,
                                                         char error[ALLOW_LIST_ERROR_MAX]);
/* Frees the list and sets it to empty. */
void allow_list_close(struct allow_list *f);

/* Returns whether `id` is in the list. Binary search. */
bool allow_list_has(const struct allow_list *f, const uint8_t id[WIRE_ID_BYTES]);

#endif
