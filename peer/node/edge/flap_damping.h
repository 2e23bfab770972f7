/* peer/node/edge/flap_damping.h -- detects neighbours that come and go. No peer waits for them.
 *
 * The penalty of a neighbour is the time for which it was absent, in seconds. It decays with a
 * half-life of 10 s, as in BGP route flap damping. The state `flapping` has a hysteresis:
 *
 *                penalty > 3 s
 *     stable  ------------------>  flapping      no peer waits for the neighbour
 *             <------------------
 *                penalty <= 1 s
 *
 * While all neighbours (two or more) are absent, their absences do not count, because this peer
 * itself is probably cut off (edges_tick()).
 *
 * Examples: a neighbour that is absent for half of the time has a penalty of about 7 s. A single
 * absence of less than 3 s never leads to `flapping`.
 *
 * The absences are also counted. The count decays with a half-life of 60 s and only selects the
 * text of the message about the neighbour (wait_log.c).
 */
#ifndef PEER_NODE_EDGE_FLAP_DAMPING_H
#define PEER_NODE_EDGE_FLAP_DAMPING_H

#include <stdbool.h>
#include <stdint.h>

/* Recent absences of one neighbour. Times are node times in microseconds. */
struct flap_damping
{
    double s;      /* Penalty for absences, in seconds, at time at_us. */
    int64_t at_us; /* Time of the last update of the penalty. */
    /* True: the penalty is too high, so this peer does not wait for the neighbour. */
    bool flapping;
    bool away;        /* True: the neighbour is absent now. */
    int64_t since_us; /* Start of the current or last absence. */
    int64_t away_us;  /* Length of the current or last absence so far. */
    double n;         /* Number of absences at time at_us, decayed with a half-life of 60 s. */
};

/* Returns the initial state of a neighbour. The neighbour counts as absent until the first update
 * that says otherwise. This absence adds to the penalty, but not to the number of absences. */
struct flap_damping flap_damping_begun(int64_t now_us);

/* Updates the state. `away`: the neighbour is absent. there_us: time at which the neighbour was
 * last present. Must be called several times per second, because the time since the last call is
 * counted as an absence if `away` is true. */
void flap_damping_look(struct flap_damping *a, bool away, int64_t there_us, int64_t now_us);

/* Returns whether the neighbour was absent several times recently. Two absences are enough if they
 * begin less than 79 s apart. */
bool flap_damping_often(const struct flap_damping *a);

#endif
