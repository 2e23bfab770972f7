/* nn/math/state.h -- what a part of the program needs to go on after a restart, in named sections.
 *
 * One function of each part names its fields in order, and does for both directions:
 *
 *   writing   a field's value is appended       fields --> sections
 *   reading   the field is set from the bytes   sections --> fields
 *
 *   state_section(s, "edge.%u", i);
 *   state_u64(s, &e->epoch);            little-endian, whatever the machine
 *   state_floats(s, e->b, dim, "edge.%u.b", i);    a section of its own: a tensor of float32
 *
 * so that what is written and what is read cannot come apart. Sections lie one behind the
 * other in `bytes`, padded with zeros to 8 bytes. How they become a file is not said here.
 *
 * Reading trusts nothing: a section that is not there, has other kinds or more or fewer
 * bytes than are asked for, or a value that the part refuses (state_refuse) makes the whole
 * reading fail. From then on fields are left as they are, and state_end() says where and
 * why. A part whose reading failed is good for closing only.
 */
#ifndef NN_MATH_STATE_H
#define NN_MATH_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    STATE_NAME_MAX = 80,      /* Bytes of a section's name, with the NUL. */
    STATE_ERROR_MAX = 160,    /* Size of the error message of state_end(), in bytes. */
    STATE_SECTIONS_MAX = 8192 /* Largest number of sections of a state. */
};

struct state_section
{
    char name[STATE_NAME_MAX];
    bool floats;  /* The section has n / 4 float32 values. false: n bytes. */
    size_t at, n; /* Bytes of the section: bytes[at..at + n), without padding. */
};

struct state
{
    bool reading;
    uint8_t *bytes; /* Owned by a state that is written; borrowed by one that is read. */
    size_t n, cap;
    struct state_section *section; /* Likewise. */
    size_t n_sections, cap_sections;

    /* While reading: the open section, and the position in it. */
    const struct state_section *open;
    size_t at;
    bool failed;
    bool no_memory;
    char why[STATE_ERROR_MAX];
};

/* Empty, to be written. A state may be used again: what it has allocated is kept. */
void state_write(struct state *s);
/* Prepares a state for reading. bytes and sections are borrowed and must be consistent. */
void state_read(struct state *s, uint8_t *bytes, size_t n, struct state_section *section,
                size_t n_sections);
/* Frees the memory of a written state. */
void state_close(struct state *s);

/* Begins a section of bytes. When reading, the previous section must have been read to its end. */
void state_section(struct state *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* While reading: returns whether the open section has more bytes. */
bool state_more(const struct state *s);
/* Returns whether a section of this name exists. While writing: true. */
bool state_has(const struct state *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void state_bytes(struct state *s, void *p, size_t n);
void state_u32(struct state *s, uint32_t *v);
void state_u64(struct state *s, uint64_t *v);
void state_i64(struct state *s, int64_t *v);
void state_size(struct state *s, size_t *v); /* As 64 bits. */
/* Stores a bool as 0 or 1. Other values are refused when reading. */
void state_bool(struct state *s, bool *v);
void state_f32(struct state *s, float *v);
/* Stores the bits of the value, also of NaN and infinities. */
void state_f64(struct state *s, double *v);
/* n float32 within the section. */
void state_f32s(struct state *s, float *v, size_t n);
/* A section of n float32 values, which must be finite when they are read. */
void state_floats(struct state *s, float *v, size_t n, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* While reading: refuses the value that was just read. While writing: does nothing. */
void state_refuse(struct state *s, const char *why);
/* Does the same if `good` is false. */
void state_expect(struct state *s, bool good, const char *why);

/* Fails because memory for the value is not available. */
void state_no_memory(struct state *s);

/* All is written, or has been read: 0; -EINVAL where reading failed, why[] says where;
 * -ENOMEM where there was no memory. */
__attribute__((warn_unused_result)) int state_end(struct state *s);

#endif
