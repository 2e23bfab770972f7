/* peer/cmd/sim_notes.c -- counts the notes (messages for users) of simulated peers. Notes that
 * differ only in digits are counted together. */
#include "peer/cmd/sim_notes.h"

#include <inttypes.h>

/* Returns the FNV-1a hash of the text without its digits. */
static uint64_t kind_of(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *text != '\0'; text++) {
        if (*text >= '0' && *text <= '9')
            continue;
        hash ^= (unsigned char)*text;
        hash *= UINT64_C(0x100000001b3);
    }
    return hash;
}

bool sim_notes_add(struct sim_notes *s, const char *text)
{
    uint64_t kind = kind_of(text);
    uint32_t i = 0;
    while (i < s->n && s->at[i].kind != kind)
        i++;
    if (i == SIM_NOTES_KINDS)
        return true;
    if (i == s->n) {
        s->n++;
        s->at[i].kind = kind;
        snprintf(s->at[i].text, sizeof s->at[i].text, "%s", text);
    }
    return ++s->at[i].count <= SIM_NOTES_SAID;
}

void sim_notes_end(const struct sim_notes *s, FILE *out)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->at[i].count > SIM_NOTES_SAID)
            fprintf(out, "hearsay sim: %" PRIu64 " more messages like: %s\n",
                    s->at[i].count - SIM_NOTES_SAID, s->at[i].text);
}
