/* peer/diary/kept.c -- looks into the heads of checkpoints. */
#include "peer/diary/kept.h"

#include "nn/files/safetensors_table.h"
#include "nn/math/number.h"
#include "peer/store/outdir.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

/* A safetensors file: the length of its head, and the head as JSON. */
static uint64_t round_of(const char *path)
{
    uint8_t raw[8];
    uint64_t n = 0, round = 0;
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return 0;
    if (fread(raw, 1, sizeof raw, f) == sizeof raw)
        for (int i = 0; i < 8; i++)
            n |= (uint64_t)raw[i] << 8 * i;
    char *text = n <= SAFETENSORS_TABLE_HEADER_MAX ? malloc(n + 1) : NULL;
    json_t *head = text != NULL && fread(text, 1, n, f) == n ? json_loadb(text, n, 0, NULL) : NULL;
    const char *beat =
        json_string_value(json_object_get(json_object_get(head, "__metadata__"), "beat"));
    if (beat == NULL || !number_whole(beat, &round))
        round = 0;
    json_decref(head);
    free(text);
    fclose(f);
    return round;
}

void diary_kept_rounds(const char *dir, uint64_t round[SLOTS])
{
    char path[OUTDIR_PATH_MAX];
    for (int slot = 0; slot < SLOTS; slot++) {
        int n = snprintf(path, sizeof path, "%s/%s", dir, slots_name(slot));
        round[slot] = n < (int)sizeof path ? round_of(path) : 0;
    }
    if (round[0] < round[1]) {
        uint64_t newer = round[1];
        round[1] = round[0];
        round[0] = newer;
    }
}
