/* nn/files/safetensors_table.c -- writes the sections of a checkpoint as the header of a
 * safetensors file, and parses such headers. */
#include "nn/files/safetensors_table.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Limits for the header of a table of sections. The metadata count as one more tensor. */
static const struct safetensors_rules table_file = {.bytes = true,
                                                    .tensors_max = SAFETENSORS_TABLE_MAX + 1,
                                                    .header_max = SAFETENSORS_TABLE_HEADER_MAX};

/* Adds one section to the header. Refuses a name that is already there, because JSON would keep
 * only the last of two equal names. */
static int put_section(json_t *root, const struct state_section *s, uint64_t begin,
                       const char *path, char error[FILE_ERROR_MAX])
{
    struct safetensors_tensor t = {.name = s->name,
                                   .begin = begin,
                                   .end = begin + s->n,
                                   .n_dims = 1,
                                   .dims = {s->floats ? s->n / sizeof(float) : s->n},
                                   .dtype = s->floats ? SAFETENSORS_F32 : SAFETENSORS_U8};
    if (s->name[0] == '\0' || strcmp(s->name, "__metadata__") == 0)
        return file_error(error, path,
                          "the state to write has a section with the invalid name \"%s\"", s->name);
    if (json_object_get(root, s->name) != NULL)
        return file_error(error, path, "the state to write has two sections with the name %s",
                          s->name);
    if (s->floats && s->n % sizeof(float) != 0)
        return file_error(error, path, "%s: found %zu bytes, expected whole floats of 4 bytes",
                          s->name, s->n);
    return safetensors_header_put(root, &t, path, error);
}

int safetensors_table_head(const struct state_section *s, size_t n,
                           const struct safetensors_meta *meta, struct safetensors_text *head,
                           const char *path, char error[FILE_ERROR_MAX])
{
    *head = (struct safetensors_text){0};
    if (n > SAFETENSORS_TABLE_MAX)
        return file_error(error, path, "the state to write has %zu sections, expected at most %d",
                          n, SAFETENSORS_TABLE_MAX);
    json_t *root = json_object();
    if (root == NULL)
        return file_world_error(error, path, "cannot write", ENOMEM);
    int err = safetensors_header_put_meta(root, meta, path, error);
    uint64_t at = 0;
    for (size_t i = 0; i < n && err == 0; i++) {
        err = put_section(root, &s[i], at, path, error);
        at += s[i].n;
    }
    if (err == 0)
        err = safetensors_header_text(root, table_file.header_max, head, path, error);
    json_decref(root);
    return err;
}

/* Converts one tensor to a section. The shape is ignored: only the number of bytes matters. */
static int get_section(struct state_section *s, const struct safetensors_tensor *t,
                       const char *path, char error[FILE_ERROR_MAX])
{
    size_t len = strlen(t->name);
    if (len == 0 || len >= STATE_NAME_MAX)
        return file_error(error, path, "tensor %.48s: found a name of %zu bytes, expected 1 to %d",
                          t->name, len, STATE_NAME_MAX - 1);
    memcpy(s->name, t->name, len + 1);
    s->floats = t->dtype == SAFETENSORS_F32;
    s->at = (size_t)t->begin;
    s->n = (size_t)(t->end - t->begin);
    return 0;
}

static int get_sections(struct safetensors_table *t, const struct safetensors_header *h,
                        const char *path, char error[FILE_ERROR_MAX])
{
    t->section = calloc(h->n + 1, sizeof *t->section);
    if (t->section == NULL)
        return file_no_memory(error, path);
    int err = 0;
    for (; t->n < h->n && err == 0; t->n++)
        err = get_section(&t->section[t->n], &h->tensors[t->n], path, error);
    return err;
}

int safetensors_table_read(struct safetensors_table *t, const uint8_t *bytes, size_t n,
                           const char *path, char error[FILE_ERROR_MAX])
{
    struct safetensors_header h;
    uint64_t n_header;
    *t = (struct safetensors_table){0};
    if (n <= SAFETENSORS_LENGTH)
        return file_error(
            error, path,
            "not a safetensors file: found %zu bytes, expected %d bytes and a JSON header", n,
            SAFETENSORS_LENGTH);
    int err = safetensors_header_length(bytes, n, &table_file, &n_header, path, error);
    if (err < 0)
        return err;
    size_t n_head = SAFETENSORS_LENGTH + (size_t)n_header;
    struct safetensors_text text = {(char *)bytes + SAFETENSORS_LENGTH, (size_t)n_header};
    err = safetensors_header_read(&h, &table_file, &text, n - n_head, path, error);
    if (err < 0)
        return err;
    t->n_head = n_head;
    err = get_sections(t, &h, path, error);
    if (err == 0)
        err = safetensors_header_meta(&h, &t->meta, &t->n_meta, path, error);
    safetensors_header_close(&h);
    if (err < 0)
        safetensors_table_close(t);
    return err;
}

void safetensors_table_close(struct safetensors_table *t)
{
    free(t->section);
    safetensors_meta_close(t->meta, t->n_meta);
    *t = (struct safetensors_table){0};
}
