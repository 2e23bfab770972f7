/* peer/node/absence.h -- how much a neighbour was away lately: does it come and go?
 *
 * Absence counts in full and is forgotten by half in ten seconds: who is away for half of
 * the time stands at seven, who was away once for less than three never passes. How often
 * it went is forgotten more slowly, and only decides between two words for it.
 */
#ifndef PEER_NODE_ABSENCE_H
#define PEER_NODE_ABSENCE_H

#include <stdbool.h>
#include <stdint.h>

struct absence
{
    double s;         /* It was away for so long, lately, */
    int64_t at_us;    /* as of then. */
    bool flapping;    /* For too long: nobody waits for it. */
    bool away;        /* It is now, */
    int64_t since_us; /* or was, last: since then, */
    int64_t away_us;  /* for so long; */
    double n;         /* and so often, lately. */
};

/* For one that has not come yet: until it does it is away, which is no absence. */
struct absence absence_begun(int64_t now_us);

/* It is away or not; it was last there at there_us. To be called a few times a second. */
void absence_look(struct absence *a, bool away, int64_t there_us, int64_t now_us);

/* It went twice within a minute or so. */
bool absence_often(const struct absence *a);

#endif
