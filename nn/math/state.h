/* nn/math/state.h -- the saved state of a module, which lets it continue after a restart, in named
 * sections.
 *
 * Each module has one function that lists its fields in order. The function serves both directions:
 *
 *   writing   a field's value is appended       fields --> sections
 *   reading   the field is set from the bytes   sections --> fields
 *
 *   state_section(s, "edge.%u", i);
 *   state_u64(s, &e->epoch);            little-endian on every machine
 *   state_floats(s, e->b, dim, "edge.%u.b", i);    a separate section: a tensor of float32
 *
 * Therefore what is written always matches what is read. The sections are stored one after another
 * in `bytes`, each padded with zeros to a multiple of 8 bytes. peer/checkpoints writes them to a
 * file.
 *
 * A state that is read is not trusted. Reading fails if a section is missing, has the wrong type or
 * the wrong number of bytes, or if the module refuses a value (state_refuse). After the first
 * failure, fields are not changed any more, and state_end() reports where and why. A module whose
 * state could not be read may only be closed.
 */
#ifndef NN_MATH_STATE_H
#define NN_MATH_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    STATE_NAME_MAX = 80,      /* Size of a section's name in bytes, with the final NUL. */
    STATE_ERROR_MAX = 160,    /* Size of the error message of state_end(), in bytes. */
    STATE_SECTIONS_MAX = 8192 /* Largest number of sections of a state. */
};

struct state_section
{
    char name[STATE_NAME_MAX];
    /* True: the section contains n / 4 float32 values. False: it contains n bytes of other
     * fields. */
    bool floats;
    size_t at, n; /* The section is bytes[at..at + n), without padding. */
};

struct state
{
    bool reading;
    /* The bytes of all sections. Owned by a state that is written, borrowed by a state that is
     * read. */
    uint8_t *bytes;
    size_t n, cap;
    /* Table of the sections. Owned by a state that is written, borrowed by a state that is read. */
    struct state_section *section;
    size_t n_sections, cap_sections;

    /* While reading: the section that is being read, and the position in it in bytes. */
    const struct state_section *open;
    size_t at;
    bool failed;
    bool no_memory;
    char why[STATE_ERROR_MAX];
};

/* Prepares a state for writing, without sections. A state may be written again; its memory is
 * reused. */
void state_write(struct state *s);
/* Prepares a state for reading. The arrays `bytes` and `section` must stay valid while the state is
 * read. */
void state_read(struct state *s, uint8_t *bytes, size_t n, struct state_section *section,
                size_t n_sections);
/* Frees the memory of a written state. */
void state_close(struct state *s);

/* Begins a section of bytes. While reading, the previous section must have been read to its end. */
void state_section(struct state *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* While reading: returns true if the section that is being read has more bytes. */
bool state_more(const struct state *s);
/* While reading: returns true if a section of this name exists. While writing: returns true. */
bool state_has(const struct state *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void state_bytes(struct state *s, void *p, size_t n);
void state_u32(struct state *s, uint32_t *v);
void state_u64(struct state *s, uint64_t *v);
void state_i64(struct state *s, int64_t *v);
void state_size(struct state *s, size_t *v); /* A size_t is stored as 64 bits on every machine. */
/* Stores a bool as the byte 0 or 1. Reading refuses other values. */
void state_bool(struct state *s, bool *v);
void state_f32(struct state *s, float *v);
/* Stores the bits of the double. NaN and infinities are allowed. */
void state_f64(struct state *s, double *v);
/* Reads or writes n float32 values in the section that was begun last. */
void state_f32s(struct state *s, float *v, size_t n);
/* Reads or writes a section of n float32 values. Reading refuses values that are not finite. */
void state_floats(struct state *s, float *v, size_t n, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* While reading: refuses the value that was just read. While writing: does nothing. */
void state_refuse(struct state *s, const char *why);
/* Calls state_refuse() if the condition `good` is false. */
void state_expect(struct state *s, bool good, const char *why);

/* Makes the state fail because the memory for a value could not be allocated. */
void state_no_memory(struct state *s);

/* Ends the writing or reading. Returns 0; -EINVAL if reading failed, and why[] says where; or
 * -ENOMEM. */
__attribute__((warn_unused_result)) int state_end(struct state *s);

#endif
