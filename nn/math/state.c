/* nn/math/state.c -- the saved state of a module, in named sections of little-endian fields. A
 * module lists its fields once, and the list serves for writing and for reading. */
#include "nn/math/state.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void state_write(struct state *s)
{
    s->reading = false;
    s->n = s->n_sections = 0;
    s->open = NULL;
    s->failed = s->no_memory = false;
    s->why[0] = '\0';
}

void state_read(struct state *s, uint8_t *bytes, size_t n, struct state_section *section,
                size_t n_sections)
{
    *s = (struct state){
        .reading = true, .bytes = bytes, .n = n, .section = section, .n_sections = n_sections};
}

void state_close(struct state *s)
{
    if (!s->reading) {
        free(s->bytes);
        free(s->section);
    }
    *s = (struct state){0};
}

/* Records a failure. Only the first failure is reported. */
__attribute__((format(printf, 2, 3))) static void fail(struct state *s, const char *format, ...)
{
    va_list ap;

    if (s->failed)
        return;
    s->failed = true;
    va_start(ap, format);
    vsnprintf(s->why, sizeof(s->why), format, ap);
    va_end(ap);
}

void state_no_memory(struct state *s)
{
    s->no_memory = true;
    fail(s, "no memory");
}

/* ---- writing a state ---- */

static bool reserve(struct state *s, size_t more)
{
    uint8_t *grown;
    size_t cap = s->cap != 0 ? s->cap : 4096;

    if (s->failed)
        return false;
    if (more <= s->cap - s->n)
        return true;
    while (cap - s->n < more)
        cap *= 2;
    grown = realloc(s->bytes, cap);
    if (grown == NULL) {
        state_no_memory(s);
        return false;
    }
    s->bytes = grown;
    s->cap = cap;
    return true;
}

static void append(struct state *s, const void *p, size_t n)
{
    if (!reserve(s, n))
        return;
    if (n > 0)
        memcpy(s->bytes + s->n, p, n);
    s->n += n;
    if (s->n_sections > 0)
        s->section[s->n_sections - 1].n += n;
}

static void pad(struct state *s)
{
    static const uint8_t zeros[8];
    size_t short_of = (8 - s->n % 8) % 8;

    if (short_of == 0 || !reserve(s, short_of))
        return;
    memcpy(s->bytes + s->n, zeros, short_of);
    s->n += short_of;
}

static void new_section(struct state *s, const char *name, bool floats)
{
    struct state_section *grown;

    pad(s);
    if (s->failed)
        return;
    if (s->n_sections == s->cap_sections) {
        size_t cap = s->cap_sections != 0 ? 2 * s->cap_sections : 64;

        grown = realloc(s->section, cap * sizeof(*grown));
        if (grown == NULL) {
            state_no_memory(s);
            return;
        }
        s->section = grown;
        s->cap_sections = cap;
    }
    s->section[s->n_sections] = (struct state_section){.floats = floats, .at = s->n};
    snprintf(s->section[s->n_sections].name, STATE_NAME_MAX, "%s", name);
    s->n_sections++;
}

/* ---- reading a state ---- */

/* Finds a section by its name. Sections are usually read in the order in which they were written,
 * so the search starts at the section that was read last. */
static const struct state_section *find(const struct state *s, const char *name)
{
    size_t first = s->open != NULL ? (size_t)(s->open - s->section) : 0;

    for (size_t i = 0; i < s->n_sections; i++) {
        const struct state_section *c = &s->section[(first + i) % s->n_sections];

        if (strcmp(c->name, name) == 0)
            return c;
    }
    return NULL;
}

static void finish_section(struct state *s)
{
    if (s->open != NULL && !s->failed && s->at != s->open->n)
        fail(s, "%s: found %zu bytes, expected %zu", s->open->name, s->open->n, s->at);
}

static void open_section(struct state *s, const char *name, bool floats)
{
    const struct state_section *c = find(s, name);

    finish_section(s);
    if (s->failed)
        return;
    if (c == NULL) {
        fail(s, "%s: the section is missing", name);
    } else if (c->floats != floats) {
        fail(s, "%s: found %s, expected %s", name, c->floats ? "F32" : "U8", floats ? "F32" : "U8");
    } else if (c->at > s->n || c->n > s->n - c->at) {
        fail(s, "%s: the section ends after the last byte of the state", name);
    } else {
        s->open = c;
        s->at = 0;
    }
}

static bool take(struct state *s, void *p, size_t n)
{
    if (s->failed)
        return false;
    if (s->open == NULL || n > s->open->n - s->at) {
        fail(s, "%s: found %zu bytes, expected more", s->open != NULL ? s->open->name : "state",
             s->open != NULL ? s->open->n : 0);
        return false;
    }
    if (n > 0)
        memcpy(p, s->bytes + s->open->at + s->at, n);
    s->at += n;
    return true;
}

/* ---- functions that write or read ---- */

static void begin(struct state *s, const char *name, bool floats)
{
    if (s->reading)
        open_section(s, name, floats);
    else
        new_section(s, name, floats);
}

#define NAMED(name, format)                                                                        \
    char name[STATE_NAME_MAX];                                                                     \
    va_list ap;                                                                                    \
    va_start(ap, format);                                                                          \
    vsnprintf(name, sizeof(name), format, ap);                                                     \
    va_end(ap)

void state_section(struct state *s, const char *format, ...)
{
    NAMED(name, format);
    begin(s, name, false);
}

bool state_has(const struct state *s, const char *format, ...)
{
    NAMED(name, format);
    return !s->reading || find(s, name) != NULL;
}

bool state_more(const struct state *s)
{
    return s->reading && s->open != NULL && s->at < s->open->n;
}

void state_bytes(struct state *s, void *p, size_t n)
{
    if (s->reading)
        take(s, p, n);
    else
        append(s, p, n);
}

void state_u64(struct state *s, uint64_t *v)
{
    uint8_t b[8];

    for (int i = 0; i < 8; i++)
        b[i] = (uint8_t)(*v >> (8 * i));
    if (!s->reading) {
        append(s, b, sizeof(b));
        return;
    }
    if (!take(s, b, sizeof(b)))
        return;
    *v = 0;
    for (int i = 0; i < 8; i++)
        *v |= (uint64_t)b[i] << (8 * i);
}

void state_u32(struct state *s, uint32_t *v)
{
    uint64_t wide = *v;

    state_u64(s, &wide);
    state_expect(s, wide <= UINT32_MAX, "a number above 2^32 - 1");
    if (s->reading && !s->failed)
        *v = (uint32_t)wide;
}

void state_i64(struct state *s, int64_t *v)
{
    uint64_t bits;

    memcpy(&bits, v, sizeof(bits));
    state_u64(s, &bits);
    memcpy(v, &bits, sizeof(bits));
}

void state_size(struct state *s, size_t *v)
{
    uint64_t wide = *v;

    state_u64(s, &wide);
    if (s->reading && !s->failed)
        *v = (size_t)wide;
}

void state_bool(struct state *s, bool *v)
{
    uint8_t byte = *v;

    state_bytes(s, &byte, 1);
    state_expect(s, byte <= 1, "a byte that is neither true (1) nor false (0)");
    if (s->reading && !s->failed)
        *v = byte == 1;
}

void state_f64(struct state *s, double *v)
{
    uint64_t bits;

    memcpy(&bits, v, sizeof(bits));
    state_u64(s, &bits);
    memcpy(v, &bits, sizeof(bits));
}

void state_f32(struct state *s, float *v)
{
    uint32_t bits;

    memcpy(&bits, v, sizeof(bits));
    state_u32(s, &bits);
    memcpy(v, &bits, sizeof(bits));
}

/* Copies the bytes as they are. Host floats are little-endian IEEE 754 wherever hearsay builds
 * (compress/ asserts it). */
void state_f32s(struct state *s, float *v, size_t n)
{
    state_bytes(s, v, n * sizeof(*v));
}

void state_floats(struct state *s, float *v, size_t n, const char *format, ...)
{
    NAMED(name, format);
    begin(s, name, true);
    state_f32s(s, v, n);
    for (size_t i = 0; s->reading && !s->failed && i < n; i++)
        if (!isfinite(v[i]))
            fail(s, "%s: number %zu is not finite", name, i);
}

void state_refuse(struct state *s, const char *why)
{
    if (s->reading)
        fail(s, "%s: %s", s->open != NULL ? s->open->name : "state", why);
}

void state_expect(struct state *s, bool good, const char *why)
{
    if (!good)
        state_refuse(s, why);
}

int state_end(struct state *s)
{
    if (s->reading)
        finish_section(s);
    else
        pad(s);
    if (s->no_memory)
        return -ENOMEM;
    return s->failed ? -EINVAL : 0;
}
