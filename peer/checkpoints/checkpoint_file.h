/* peer/checkpoints/checkpoint_file.h -- writes and reads a state as one safetensors file. Hashes
 * cover every byte.
 *
 *   length, JSON, spaces | section | section | ... | manifest
 *   \______ head ______/
 *
 * The JSON has these keys in __metadata__:
 *
 *   format: "hearsay checkpoint";
 *   version: "1";
 *   run: the run description;
 *   name: name of the peer;
 *   owner: public key of the peer in hexadecimal; missing in files of older versions and of
 *     `hearsay train`;
 *   beat: step counter of the peer in decimal; a larger number is a newer state;
 *   trained_on: hash of the training files and held-out share, as in a model file; missing in
 *     files of older versions, for generated data, and for data of a program that uses libhearsay.
 *
 * The manifest is the last tensor, of type U8. It has a BLAKE2b-128 hash of the head, of each
 * section in the order of the file, and of the part of the manifest before this last hash.
 *
 * Sections are tensors of one dimension, F32 or U8, without their padding. The reader detects every
 * changed byte, and the error message names the section. The hash of the head covers the names and
 * sizes of the sections and the step counter, so that parts of two files cannot be combined.
 *
 * The writer copies no section: it writes the head, the bytes of the state, and the manifest. The
 * reader checks every size, because the file may be damaged. In addition to the bytes of the file
 * it needs memory for the head, and a few kilobytes per section.
 */
#ifndef PEER_CHECKPOINTS_CHECKPOINT_FILE_H
#define PEER_CHECKPOINTS_CHECKPOINT_FILE_H

#include "nn/files/safetensors_table.h"
#include "nn/math/state.h"

enum { CHECKPOINT_FILE_VERSION = 1 };

/* Identifies a checkpoint: the run, the peer, and the step at which the state was saved. */
struct checkpoint_file_label
{
    /* Run description, and name of the peer. UTF-8. */
    const char *run, *name;
    uint64_t beat; /* Step counter of the peer. */
    /* Public key of the peer in hexadecimal. NULL: not known. */
    const char *owner;
    /* Hash of the training files, and held-out share. NULL: not known. */
    const char *trained_on;
};

/* ---- Building a file ---- */

/* A checkpoint file in pieces that are ready to be written. Set all bytes to zero before
 * checkpoint_file_build(). */
struct checkpoint_file_pieces
{
    const struct state *state; /* Saved state that the file will hold. Borrowed. */
    /* Header of the file: length and JSON. */
    struct safetensors_text head;
    /* Table of `n_sections` sections: the sections of the state, then the manifest. */
    struct state_section *section;
    size_t n_sections, cap_sections;
    /* Manifest: the hashes of the head, of the sections and of itself, `n_manifest` bytes. */
    uint8_t *manifest;
    size_t n_manifest, cap_manifest;
};

/* Makes the head and the manifest of a checkpoint file with the state `s`. The state is borrowed
 * until the next checkpoint_file_build() or checkpoint_file_pieces_close(). A second call reuses
 * the allocated tables. Returns 0; -EINVAL if the state is incomplete (`s->failed`) or a section
 * name is not allowed in a file; or -ENOMEM. */
__attribute__((warn_unused_result)) int checkpoint_file_build(
    struct checkpoint_file_pieces *m, const struct state *s,
    const struct checkpoint_file_label *label, const char *path, char error[FILE_ERROR_MAX]);
/* Gets piece `i` of the file: `*n` bytes at `*p`, where `*p` may be NULL if `*n` is 0. Returns
 * false if the file has no piece `i`. Writing all pieces in order gives the file. */
bool checkpoint_file_piece(const struct checkpoint_file_pieces *m, size_t i, const uint8_t **p,
                           size_t *n);
/* Returns the size of the file in bytes. */
uint64_t checkpoint_file_bytes(const struct checkpoint_file_pieces *m);
/* Frees the tables of the pieces and sets all bytes to zero. */
void checkpoint_file_pieces_close(struct checkpoint_file_pieces *m);

/* ---- Reading and checking a file ---- */

/* A checkpoint file that was read and passed all checks. */
struct checkpoint_file
{
    /* Run, peer and step counter from the metadata of the file. The strings belong to `table`. */
    struct checkpoint_file_label label;
    struct state state; /* Saved state, ready for reading. The state borrows `table` and `bytes`. */
    struct safetensors_table table;
    uint8_t *bytes; /* Content of the file, owned. */
};

/* Checks the `n` bytes of a file and takes ownership of them on success. Returns 0, -ENOMEM, or
 * -EINVAL with a message that names the damaged section. On failure `*m` is empty and the caller
 * still owns `bytes`. `path` is used in messages only. */
__attribute__((warn_unused_result)) int checkpoint_file_read(struct checkpoint_file *m,
                                                             uint8_t *bytes, size_t n,
                                                             const char *path,
                                                             char error[FILE_ERROR_MAX]);
/* Frees the content and the table of the file and sets all bytes to zero. */
void checkpoint_file_close(struct checkpoint_file *m);

#endif
