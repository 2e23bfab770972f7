/* tests/unit/checkpoint_small.h -- small checkpoints for tests: states that depend on one number,
 * checkpoint files of these states in one block of memory, and manifests with correct hashes. */
#ifndef TESTS_UNIT_CHECKPOINT_SMALL_H
#define TESTS_UNIT_CHECKPOINT_SMALL_H

#include "nn/math/rng.h"
#include "peer/checkpoints/checkpoint_file.h"
#include "peer/secure/hash.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_EDGES = 3, SMALL_FLOATS = 5 };

/* Reads or writes sections of several sizes, one of them empty and one that needs padding. Every
 * field depends on the step `*beat`. */
static inline void small_fields(struct state *s, uint64_t *beat)
{
    float x[SMALL_FLOATS * SMALL_EDGES];
    uint8_t odd[3] = {(uint8_t)*beat, 7, (uint8_t)(*beat >> 8)};
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = (float)(*beat % 1000) + (float)i;
    state_section(s, "node");
    state_u64(s, beat);
    state_floats(s, x, 0, "none");
    for (unsigned i = 0; i < SMALL_EDGES; i++) {
        state_section(s, "edge.%u", i);
        state_u64(s, beat);
        state_bytes(s, odd, sizeof odd);
        state_expect(s, odd[0] == (uint8_t)*beat && odd[1] == 7, "not of this beat");
        state_floats(s, x, SMALL_FLOATS * i + 1, "edge.%u.b", i);
        state_expect(s, x[SMALL_FLOATS * i] == (float)(*beat % 1000 + SMALL_FLOATS * i),
                     "floats not of this beat");
    }
}

static inline void small_state(struct state *s, uint64_t beat)
{
    state_write(s);
    small_fields(s, &beat);
    int err = state_end(s);
    assert(err == 0);
}

/* Returns whether the state is complete and belongs to step `beat`. */
static inline bool small_is(struct state *s, uint64_t beat)
{
    uint64_t found = 0;
    small_fields(s, &found);
    return state_end(s) == 0 && found == beat;
}

static inline struct checkpoint_file_label small_label(uint64_t beat)
{
    return (struct checkpoint_file_label){"model=logreg\n\"seed\" 1 \xc3\xa9", "a", beat, NULL,
                                          NULL};
}

/* Returns a checkpoint file in one block, which the caller frees. */
static inline uint8_t *small_file(const struct state *s, const struct checkpoint_file_label *label,
                                  size_t *n)
{
    struct checkpoint_file_pieces m = {0};
    char error[FILE_ERROR_MAX];
    const uint8_t *p;
    size_t n_p;
    int err = checkpoint_file_build(&m, s, label, "test", error);
    assert(err == 0);
    uint8_t *bytes = malloc((size_t)checkpoint_file_bytes(&m));
    assert(bytes != NULL);
    *n = 0;
    for (size_t i = 0; checkpoint_file_piece(&m, i, &p, &n_p); i++) {
        if (n_p > 0)
            memcpy(bytes + *n, p, n_p);
        *n += n_p;
    }
    assert(*n == checkpoint_file_bytes(&m));
    checkpoint_file_pieces_close(&m);
    return bytes;
}

/* Corrects the hashes of a checkpoint file, whatever else is wrong with the file. The hashes are in
 * the manifest, which is the last tensor of the file. Returns false if the header cannot be read,
 * or if the last tensor has another size than a manifest. */
static inline bool small_seal(uint8_t *bytes, size_t n)
{
    struct safetensors_table t;
    char error[FILE_ERROR_MAX];
    if (safetensors_table_read(&t, bytes, n, "test", error) < 0)
        return false;
    bool fits = t.n > 0 && t.section[t.n - 1].n == (t.n + 1) * HASH_BYTES;
    if (fits) {
        uint8_t *data = bytes + t.n_head, *manifest = data + t.section[t.n - 1].at;
        hash_128(bytes, t.n_head, manifest);
        for (size_t i = 0; i + 1 < t.n; i++)
            hash_128(data + t.section[i].at, t.section[i].n, manifest + (i + 1) * HASH_BYTES);
        hash_128(manifest, t.n * HASH_BYTES, manifest + t.n * HASH_BYTES);
    }
    safetensors_table_close(&t);
    return fits;
}

#endif
