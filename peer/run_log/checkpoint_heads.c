/* peer/run_log/checkpoint_heads.c -- reads the metadata of the checkpoints in a directory. */
#include "peer/run_log/checkpoint_heads.h"

#include "nn/files/safetensors_table.h"
#include "nn/math/number.h"
#include "peer/output/outdir.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies a metadata value to `out`. Bytes that are not printable ASCII become '?', because the file
 * may be damaged and a terminal may interpret control characters. */
static void take_text(char *out, size_t size, const json_t *meta, const char *key)
{
    const char *text = json_string_value(json_object_get(meta, key));
    snprintf(out, size, "%s", text != NULL ? text : "");
    for (; *out != '\0'; out++)
        if (*out < ' ' || *out > '~')
            *out = '?';
}

/* Reads the header of a safetensors file: its length in 8 bytes, then JSON. The position of `f` is
 * then at the first data byte. Returns NULL if the header cannot be read. */
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

/* Returns whether the file has all bytes that its header lists. The position of `f` must be at
 * the first data byte. A file that was truncated, for example by a full disk, cannot be resumed
 * from. */
static bool is_complete(FILE *f, json_t *head)
{
    const char *name;
    json_t *section;
    json_int_t end = 0;
    off_t data = ftello(f);
    json_object_foreach(head, name, section)
    {
        json_t *offsets = json_object_get(section, "data_offsets");
        json_int_t last = json_integer_value(json_array_get(offsets, 1));
        end = last > end ? last : end;
    }
    return data >= 0 && fseeko(f, 0, SEEK_END) == 0 && ftello(f) - data == end;
}

static struct checkpoint_head read_checkpoint_head(const char *dir, int slot)
{
    struct checkpoint_head head = {.there = false};
    FILE *f = outdir_open_file(dir, checkpoint_store_name(slot));
    if (f == NULL)
        return head;
    json_t *json = read_head(f);
    const json_t *meta = json_object_get(json, "__metadata__");
    const char *beat = json_string_value(json_object_get(meta, "beat"));
    head.there = beat != NULL && number_whole(beat, &head.round);
    if (!head.there || !is_complete(f, json))
        head.round = 0;
    take_text(head.name, sizeof head.name, meta, "name");
    take_text(head.owner, sizeof head.owner, meta, "owner");
    json_decref(json);
    fclose(f);
    return head;
}

void checkpoint_heads_read(const char *dir, struct checkpoint_head head[SLOTS])
{
    for (int slot = 0; slot < SLOTS; slot++)
        head[slot] = read_checkpoint_head(dir, slot);
}

/* Appends the keys in a checkpoint's section "members" to `*id`. The section begins with a count,
 * followed by each member's key and the boot id of its process, a random number drawn at each start
 * (peer/node/step/resume.c). Returns `n` plus the number of keys appended. */
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

size_t checkpoint_heads_members(const char *dir, uint8_t (**id)[WIRE_ID_BYTES])
{
    size_t n = 0;
    *id = NULL;
    for (int slot = 0; slot < SLOTS; slot++) {
        FILE *f = outdir_open_file(dir, checkpoint_store_name(slot));
        n = f != NULL ? add_members(f, id, n) : n;
        if (f != NULL)
            fclose(f);
    }
    return n;
}

void checkpoint_heads_rounds(const char *dir, uint64_t round[SLOTS])
{
    struct checkpoint_head head[SLOTS];
    checkpoint_heads_read(dir, head);
    bool swap = head[0].round < head[1].round;
    round[0] = head[swap ? 1 : 0].round;
    round[1] = head[swap ? 0 : 1].round;
}
