/* peer/checkpoints/checkpoint_file.c -- builds, reads and checks a checkpoint file: head,
 * sections and manifest. */
#include "peer/checkpoints/checkpoint_file.h"

#include "peer/secure/hash.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT   "hearsay checkpoint"
#define MANIFEST "manifest"

enum { N_META = 5 /* Metadata keys of every checkpoint: format, version, run, name and beat. */ };

/* ---- Building a file ---- */

/* Grows an array to at least `n` elements of `size` bytes by doubling. Returns NULL if memory is
 * short, and the old array then stays valid. */
static void *grow(void *p, size_t *cap, size_t n, size_t size)
{
    size_t more = *cap != 0 ? *cap : 64;
    if (n <= *cap)
        return p;
    while (more < n)
        more *= 2;
    p = realloc(p, more * size);
    if (p != NULL)
        *cap = more;
    return p;
}

/* Copies the table of the state's sections (names and sizes, not contents) and appends a section
 * for the manifest. The manifest has one hash per section, one of the head and one of itself. */
static int copy_sections(struct checkpoint_file_pieces *m, const struct state *s)
{
    size_t n = s->n_sections;
    struct state_section *section = grow(m->section, &m->cap_sections, n + 1, sizeof *section);
    if (section == NULL)
        return -ENOMEM;
    m->section = section;
    m->n_manifest = (n + 2) * HASH_BYTES;
    uint8_t *manifest = grow(m->manifest, &m->cap_manifest, m->n_manifest, 1);
    if (manifest == NULL)
        return -ENOMEM;
    m->manifest = manifest;
    if (n > 0)
        memcpy(section, s->section, n * sizeof *section);
    section[n] = (struct state_section){.name = MANIFEST, .n = m->n_manifest};
    m->n_sections = n + 1;
    m->state = s;
    return 0;
}

static int make_head(struct checkpoint_file_pieces *m, const struct checkpoint_file_label *label,
                     const char *path, char error[FILE_ERROR_MAX])
{
    char version[16], beat[24];
    snprintf(version, sizeof version, "%d", CHECKPOINT_FILE_VERSION);
    snprintf(beat, sizeof beat, "%" PRIu64, label->beat);
    struct safetensors_meta meta[] = {
        {"format", FORMAT}, {"version", version}, {"run", label->run}, {"name", label->name},
        {"beat", beat},     {NULL, NULL},         {NULL, NULL},        {NULL, NULL}};
    size_t n = N_META;
    if (label->owner != NULL)
        meta[n++] = (struct safetensors_meta){"owner", label->owner};
    if (label->trained_on != NULL)
        meta[n++] = (struct safetensors_meta){"trained_on", label->trained_on};
    free(m->head.text);
    return safetensors_table_head(m->section, m->n_sections, meta, &m->head, path, error);
}

/* Writes the hashes of the head and of each section to the manifest, and then the hash of these
 * hashes. */
static void hash_pieces(struct checkpoint_file_pieces *m)
{
    const uint8_t *p;
    size_t n;
    for (size_t i = 0; i < m->n_sections; i++) {
        bool there = checkpoint_file_piece(m, i, &p, &n);
        assert(there);
        hash_128(p, n, m->manifest + i * HASH_BYTES);
    }
    size_t last = m->n_manifest - HASH_BYTES;
    hash_128(m->manifest, last, m->manifest + last);
}

int checkpoint_file_build(struct checkpoint_file_pieces *m, const struct state *s,
                          const struct checkpoint_file_label *label, const char *path,
                          char error[FILE_ERROR_MAX])
{
    assert(!s->reading);
    if (s->failed)
        return file_error(error, path, "the state of the peer cannot be saved: %s", s->why);
    int err = copy_sections(m, s);
    if (err < 0)
        return file_world_error(error, path, "cannot write", -err);
    err = make_head(m, label, path, error);
    if (err == 0)
        hash_pieces(m);
    return err;
}

bool checkpoint_file_piece(const struct checkpoint_file_pieces *m, size_t i, const uint8_t **p,
                           size_t *n)
{
    if (i > m->n_sections)
        return false;
    if (i == 0) {
        *p = (const uint8_t *)m->head.text;
        *n = m->head.n;
    } else if (i == m->n_sections) {
        *p = m->manifest;
        *n = m->n_manifest;
    } else {
        const struct state_section *c = &m->section[i - 1];
        assert(c->n <= m->state->n && c->at <= m->state->n - c->n);
        *p = c->n > 0 ? m->state->bytes + c->at : NULL;
        *n = c->n;
    }
    return true;
}

uint64_t checkpoint_file_bytes(const struct checkpoint_file_pieces *m)
{
    uint64_t sum = m->head.n;
    for (size_t i = 0; i < m->n_sections; i++)
        sum += m->section[i].n;
    return sum;
}

void checkpoint_file_pieces_close(struct checkpoint_file_pieces *m)
{
    free(m->head.text);
    free(m->section);
    free(m->manifest);
    *m = (struct checkpoint_file_pieces){0};
}

/* ---- Reading and checking a file ---- */

/* Gets the value of a key that the metadata of the file must have. Returns 0, or -EINVAL with a
 * message. */
static int get_value(const struct safetensors_table *t, const char *key, const char **value,
                     const char *path, char error[FILE_ERROR_MAX])
{
    *value = safetensors_meta_value(t->meta, t->n_meta, key);
    return *value != NULL
               ? 0
               : file_error(error, path, "__metadata__.%s: found no value, expected one", key);
}

/* Parses a decimal number in canonical form: no sign, no spaces, no leading zeros. */
static bool get_decimal(const char *text, uint64_t *v)
{
    char again[24];
    char *end;
    errno = 0;
    *v = strtoull(text, &end, 10);
    snprintf(again, sizeof again, "%" PRIu64, *v);
    return errno == 0 && strcmp(again, text) == 0;
}

/* Checks that the file is a hearsay checkpoint of version CHECKPOINT_FILE_VERSION. */
static int check_format(const struct safetensors_table *t, const char *path,
                        char error[FILE_ERROR_MAX])
{
    const char *format, *version;
    uint64_t v;
    int err = get_value(t, "format", &format, path, error);
    if (err == 0 && strcmp(format, FORMAT) != 0)
        err = file_error(error, path, "__metadata__.format: found %.48s, expected %s", format,
                         FORMAT);
    if (err == 0)
        err = get_value(t, "version", &version, path, error);
    if (err == 0 && (!get_decimal(version, &v) || v != CHECKPOINT_FILE_VERSION))
        err = file_error(error, path, "__metadata__.version: found %.20s, expected %d", version,
                         CHECKPOINT_FILE_VERSION);
    return err;
}

static int read_label(struct checkpoint_file_label *label, const struct safetensors_table *t,
                      const char *path, char error[FILE_ERROR_MAX])
{
    const char *beat;
    int err = get_value(t, "run", &label->run, path, error);
    if (err == 0)
        err = get_value(t, "name", &label->name, path, error);
    if (err == 0)
        err = get_value(t, "beat", &beat, path, error);
    if (err == 0 && !get_decimal(beat, &label->beat))
        err = file_error(error, path, "__metadata__.beat: found %.24s, expected a number", beat);
    label->owner = safetensors_meta_value(t->meta, t->n_meta, "owner");
    label->trained_on = safetensors_meta_value(t->meta, t->n_meta, "trained_on");
    return err;
}

/* Checks that the manifest is the last tensor, and has one hash for each other tensor, one for the
 * head and one for itself. */
static int check_manifest_size(const struct safetensors_table *t, const char *path,
                               char error[FILE_ERROR_MAX])
{
    if (t->n == 0 || strcmp(t->section[t->n - 1].name, MANIFEST) != 0)
        return file_error(error, path, "header: found %.48s as the last tensor, expected %s",
                          t->n > 0 ? t->section[t->n - 1].name : "none", MANIFEST);
    const struct state_section *s = &t->section[t->n - 1];
    size_t expected = (t->n + 1) * HASH_BYTES;
    if (s->floats || s->n != expected)
        return file_error(error, path, "%s: found %zu bytes of %s, expected %zu of U8", MANIFEST,
                          s->n, s->floats ? "F32" : "U8", expected);
    return 0;
}

/* Checks all hashes. The manifest is checked first: otherwise a damaged manifest would be reported
 * as a damaged section. */
static int check_hashes(const struct safetensors_table *t, const uint8_t *bytes, const char *path,
                        char error[FILE_ERROR_MAX])
{
    const uint8_t *data = bytes + t->n_head;
    const struct state_section *last = &t->section[t->n - 1];
    const uint8_t *manifest = data + last->at;
    const char *wrong = NULL;
    if (!hash_128_matches(manifest, last->n - HASH_BYTES, manifest + last->n - HASH_BYTES))
        wrong = MANIFEST;
    else if (!hash_128_matches(bytes, t->n_head, manifest))
        wrong = "header";
    for (size_t i = 0; i + 1 < t->n && wrong == NULL; i++)
        if (!hash_128_matches(data + t->section[i].at, t->section[i].n,
                              manifest + (i + 1) * HASH_BYTES))
            wrong = t->section[i].name;
    return wrong == NULL
               ? 0
               : file_error(error, path,
                            "%s: damaged, because its bytes do not match the hash in the file",
                            wrong);
}

/* The hashes are checked before the label (run, peer and step counter) is read, so that a damaged
 * label is never used. */
int checkpoint_file_read(struct checkpoint_file *m, uint8_t *bytes, size_t n, const char *path,
                         char error[FILE_ERROR_MAX])
{
    *m = (struct checkpoint_file){0};
    int err = safetensors_table_read(&m->table, bytes, n, path, error);
    if (err < 0)
        return err;
    err = check_format(&m->table, path, error);
    if (err == 0)
        err = check_manifest_size(&m->table, path, error);
    if (err == 0)
        err = check_hashes(&m->table, bytes, path, error);
    if (err == 0)
        err = read_label(&m->label, &m->table, path, error);
    if (err < 0) {
        checkpoint_file_close(m);
        return err;
    }
    m->bytes = bytes;
    state_read(&m->state, bytes + m->table.n_head, n - m->table.n_head, m->table.section,
               m->table.n - 1);
    return 0;
}

void checkpoint_file_close(struct checkpoint_file *m)
{
    safetensors_table_close(&m->table);
    free(m->bytes);
    *m = (struct checkpoint_file){0};
}
