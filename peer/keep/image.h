/* peer/keep/image.h -- writes and reads a state as one safetensors file. Hashes cover every byte.
 *
 *   length, JSON, spaces | section | section | ... | manifest
 *   \______ head ______/
 *
 *   __metadata__  format  "hearsay checkpoint"
 *                 version "1"
 *                 run     the run description
 *                 name    name of the peer
 *                 owner   public key of the peer in hexadecimal; missing in files of older versions
 *                         and of `hearsay train`
 *                 beat    step counter of the peer in decimal; a larger number is a newer state
 *   manifest      the last tensor, U8: BLAKE2b-128 of the head, of each section in the order of
 *                 the file, and of the part of the manifest before this hash
 *
 * Sections are tensors of one dimension, F32 or U8, without their padding. The reader detects every
 * changed byte, and the error message names the section. The hash of the head covers names, sizes
 * and beat, so that parts of two files cannot be combined.
 *
 * The writer copies no section: it writes the head, the bytes of the state, and the manifest. The
 * reader does not trust the file. It needs memory for the head, and a few kilobytes per section.
 */
#ifndef PEER_KEEP_IMAGE_H
#define PEER_KEEP_IMAGE_H

#include "nn/files/safetensors_table.h"
#include "nn/math/state.h"

enum { IMAGE_VERSION = 1 };

/* Names the run and the peer that a state belongs to, and the time of the state. */
struct image_label
{
    const char *run, *name; /* Run description, and name of the peer. UTF-8. */
    uint64_t beat;          /* Step counter of the peer. */
    const char *owner;      /* Public key of the peer in hexadecimal. NULL: not known. */
};

/* ---- Writing ---- */

/* A file in pieces. All zero is one that may be cut. */
struct image_pieces
{
    const struct state *state; /* Borrowed. */
    struct safetensors_text head;
    struct state_section *section; /* The state's, and the manifest. */
    size_t n_sections, cap_sections;
    uint8_t *manifest;
    size_t n_manifest, cap_manifest;
};

/* Make head and manifest of a state, which is borrowed until the pieces are cut anew or closed.
 * Pieces may be cut again: tables of sections that have been allocated are kept. 0; -EINVAL for a
 * state that failed, or whose names cannot be a file's; or -ENOMEM. */
__attribute__((warn_unused_result)) int image_cut(struct image_pieces *m, const struct state *s,
                                                  const struct image_label *label, const char *path,
                                                  char error[FILE_ERROR_MAX]);
/* Piece i of the file, or false where there is none. One may be empty: then *p may be NULL. */
bool image_piece(const struct image_pieces *m, size_t i, const uint8_t **p, size_t *n);
/* Bytes of the file. */
uint64_t image_bytes(const struct image_pieces *m);
void image_pieces_close(struct image_pieces *m);

/* ---- Reading ---- */

/* A file that was found whole. */
struct image
{
    struct image_label label; /* Borrowed from the table. */
    struct state state;       /* To be read; it borrows the rest. */
    struct safetensors_table table;
    uint8_t *bytes; /* The file's. */
};

/* Check a file's bytes, which are taken where it succeeds. 0; -EINVAL with a sentence that names
 * the section; or -ENOMEM: then *m is empty, and the bytes are still the caller's. */
__attribute__((warn_unused_result)) int image_read(struct image *m, uint8_t *bytes, size_t n,
                                                   const char *path, char error[FILE_ERROR_MAX]);
void image_close(struct image *m);

#endif
