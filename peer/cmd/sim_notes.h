/* peer/cmd/sim_notes.h -- condenses the notes of many simulated peers to a few lines.
 *
 * Notes that differ only in their numbers (rounds, seconds, names of peers) are of the same kind.
 * The first notes of each kind are printed. All further notes of that kind are only counted, and
 * the counts are printed at the end.
 */
#ifndef PEER_CMD_SIM_NOTES_H
#define PEER_CMD_SIM_NOTES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
    /* Largest number of kinds (groups of notes that differ only in digits) that are counted. Notes
     * of any further kind are all printed. */
    SIM_NOTES_KINDS = 64,
    SIM_NOTES_SAID = 3, /* Number of notes of each kind that are printed. */
    SIM_NOTES_TEXT = 160
};

/* Number of notes of each kind (notes that differ only in digits). Initialise with zeros. */
struct sim_notes
{
    uint32_t n;
    struct
    {
        uint64_t kind, count;
        /* Text of the first note of this kind. A kind is a group of notes that differ only in
         * digits. */
        char text[SIM_NOTES_TEXT];
    } at[SIM_NOTES_KINDS];
};

/* Counts one note. Returns true if it should be printed. */
bool sim_notes_add(struct sim_notes *s, const char *text);

/* For each kind with notes that were not printed, prints a line such as "hearsay sim: 739 more
 * like: ...". */
void sim_notes_end(const struct sim_notes *s, FILE *out);

#endif
