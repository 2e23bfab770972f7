/* peer/diary/kept.c -- looks into the heads of checkpoints. */
#include "peer/diary/kept.h"

#include "nn/files/safetensors_table.h"
#include "nn/math/number.h"
#include "peer/store/outdir.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies a text of the metadata. A byte that is not printable ASCII becomes '?', because the file
 * may hold anything and a terminal may interpret control characters. */
static void take_text(char *out, size_t size, const json_t *meta, const char *key)
{
    const char *text = json_string_value(json_object_get(meta, key));
    snprintf(out, size, "%s", text != NULL ? text : "");
    for (; *out != '\0'; out++)
        if (*out < ' ' || *out > '~')
            *out = '?';
}

/* Reads the head of a safetensors file: its length, then JSON. `f` is then at the data. Returns
 * NULL if the head cannot be read. */
static json_t *read_head(FILE *f)
{
    uint8_t raw[8];
    uint64_t n = UINT64_MAX;
    if (fread(raw, 1, sizeof raw, f) == sizeof raw) {
        n = 0;
        for (int i = 0; i < 8; i++)
            n |= (uint64_t)raw[i] << 8 * i;
    }
    char *text = n <= SAFETENSORS_TABLE_HEADER_MAX ? malloc(n + 1) : NULL;
    json_t *head = text != NULL && fread(text, 1, n, f) == n ? json_loadb(text, n, 0, NULL) : NULL;
    free(text);
    return head;
}

static struct diary_kept look_at(const char *path)
{
    struct diary_kept kept = {.there = false};
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return kept;
    json_t *head = read_head(f);
    const json_t *meta = json_object_get(head, "__metadata__");
    const char *beat = json_string_value(json_object_get(meta, "beat"));
    kept.there = beat != NULL && number_whole(beat, &kept.round);
    if (!kept.there)
        kept.round = 0;
    take_text(kept.name, sizeof kept.name, meta, "name");
    take_text(kept.owner, sizeof kept.owner, meta, "owner");
    json_decref(head);
    fclose(f);
    return kept;
}

static bool path_of(const char *dir, int slot, char path[OUTDIR_PATH_MAX])
{
    return snprintf(path, OUTDIR_PATH_MAX, "%s/%s", dir, slots_name(slot)) < OUTDIR_PATH_MAX;
}

void diary_kept_look(const char *dir, struct diary_kept kept[SLOTS])
{
    char path[OUTDIR_PATH_MAX];
    for (int slot = 0; slot < SLOTS; slot++)
        kept[slot] = path_of(dir, slot, path) ? look_at(path) : (struct diary_kept){.there = false};
}

/* Adds the keys in a checkpoint's section "members" to *id. The section begins with a count, then
 * each member's key and boot number (peer/node/resume.c). Returns `n` plus the number of keys
 * added. */
static size_t add_members(FILE *f, uint8_t (**id)[WIRE_ID_BYTES], size_t n)
{
    uint8_t one[WIRE_ID_BYTES + 8], count[8];
    json_t *head = read_head(f);
    const json_t *section = json_object_get(head, "members");
    json_int_t at = json_integer_value(json_array_get(json_object_get(section, "data_offsets"), 0));
    bool found = section != NULL && at >= 0 && fseek(f, (long)at, SEEK_CUR) == 0
                 && fread(count, 1, sizeof count, f) == sizeof count;
    json_decref(head);
    size_t more = found ? (size_t)count[0] | (size_t)count[1] << 8 : 0;
    uint8_t(*grown)[WIRE_ID_BYTES] = realloc(*id, (n + more + 1) * sizeof **id);
    if (grown == NULL)
        return n;
    *id = grown;
    for (size_t i = 0; i < more && fread(one, 1, sizeof one, f) == sizeof one; i++)
        memcpy(grown[n++], one, WIRE_ID_BYTES);
    return n;
}

size_t diary_kept_members(const char *dir, uint8_t (**id)[WIRE_ID_BYTES])
{
    char path[OUTDIR_PATH_MAX];
    size_t n = 0;
    *id = NULL;
    for (int slot = 0; slot < SLOTS; slot++) {
        FILE *f = path_of(dir, slot, path) ? fopen(path, "re") : NULL;
        n = f != NULL ? add_members(f, id, n) : n;
        if (f != NULL)
            fclose(f);
    }
    return n;
}

void diary_kept_rounds(const char *dir, uint64_t round[SLOTS])
{
    struct diary_kept kept[SLOTS];
    diary_kept_look(dir, kept);
    bool swap = kept[0].round < kept[1].round;
    round[0] = kept[swap ? 1 : 0].round;
    round[1] = kept[swap ? 0 : 1].round;
}
