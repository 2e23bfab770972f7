/* peer/cmd/sim_notes.h -- prints the messages of many simulated peers in a few lines.
 *
 * A note is a message for users. Notes that differ only in their numbers (rounds, seconds, names of
 * peers) are of the same kind. The first notes of each kind are printed. All further notes of that
 * kind are only counted, and the counts are printed at the end.
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
    /* Number of notes of each kind that are printed. Further notes are only counted. */
    SIM_NOTES_SAID = 3,
    SIM_NOTES_TEXT = 160
};

/* Number of notes (messages for users) of each kind. Notes that differ only in digits are of the
 * same kind. Initialise with zeros. */
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

/* Counts one note (message for users). Returns true if the note should be printed. */
bool sim_notes_add(struct sim_notes *s, const char *text);

/* For each kind with notes that were not printed, prints a line such as "hearsay sim: 739 more
 * messages like: ...". */
void sim_notes_end(const struct sim_notes *s, FILE *out);

#endif
