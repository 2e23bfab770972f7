/* peer/node/flap_damping.h -- how much a neighbour was away lately: does it come and go?
 *
 * Absence counts in full and is forgotten by half in ten seconds: who is away for half of
 * the time stands at seven, who was away once for less than three never passes. How often
 * it went is forgotten more slowly, and only decides between two words for it.
 */
#ifndef PEER_NODE_FLAP_DAMPING_H
#define PEER_NODE_FLAP_DAMPING_H

#include <stdbool.h>
#include <stdint.h>

struct flap_damping
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
struct flap_damping flap_damping_begun(int64_t now_us);

/* It is away or not; it was last there at there_us. To be called a few times a second. */
void flap_damping_look(struct flap_damping *a, bool away, int64_t there_us, int64_t now_us);

/* It went twice within a minute or so. */
bool flap_damping_often(const struct flap_damping *a);

#endif
