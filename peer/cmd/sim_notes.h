/* peer/cmd/sim_notes.h -- what a thousand simulated peers tell, in a few lines.
 *
 * Notes that differ in their numbers alone (rounds, seconds, the names of peers) are of one kind. The
 * first ones of a kind are said, the others are counted, and the end says how many they were.
 */
#ifndef PEER_CMD_SIM_NOTES_H
#define PEER_CMD_SIM_NOTES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
    SIM_NOTES_KINDS = 64, /* Further kinds are all said. */
    SIM_NOTES_SAID = 3,   /* So many of a kind are. */
    SIM_NOTES_TEXT = 160
};

/* Begin with zeros. */
struct sim_notes
{
    uint32_t n;
    struct
    {
        uint64_t kind, count;
        char text[SIM_NOTES_TEXT]; /* The first one's. */
    } at[SIM_NOTES_KINDS];
};

/* One more has come: is it to be said? */
bool sim_notes_add(struct sim_notes *s, const char *text);

/* How many were not said, a line a kind: "hearsay sim: 739 more like: ...". */
void sim_notes_end(const struct sim_notes *s, FILE *out);

#endif
