/* peer/node/round_quorum.h -- how far the run is, by what most of those we hear say.
 *
 * Beats and rounds come from the other end's mouth (deltas, BEAT, EDGE, PING, HELLO, MODEL). A
 * single one may say anything, and who believed that it is far ahead would skip all rounds up
 * to there. So what one says counts as far as most of the others reach, too:
 *
 *   neighbours, at least two   the beat that more than half of them have: of two, the lesser
 *   sessions, at least two     the same of all members that we have a session with, each moved on
 *                              by its own pace since it last spoke
 *   one session, one neighbour as many rounds as the longest silence between us and it, by our own
 *                              pace and a generous factor, has room for
 *
 * The largest of what applies is believed. Beyond it an edge is shown to the schedule as if it
 * stood where we stand: neither is it waited for, nor do we claim its beat. So fewer than half of
 * a peer's neighbours, and of its sessions, move it nowhere, and a minority that was cut off
 * follows the others, for it hears most of them.
 *
 * Whom nobody confirms because it alone trained on is followed by nobody, and nobody skips anything:
 * it waits until the others are where it is. It knows itself for that one where more than half of its
 * sessions, and no less than half of its neighbours, are behind by more than lock step's lead. Fewer than half make it wait
 * no longer than any single one within the lead can.
 *
 * Who has begun no round joins where most of those are that have; of one alone he has to take its word.
 */
#ifndef PEER_NODE_ROUND_QUORUM_H
#define PEER_NODE_ROUND_QUORUM_H

#include "peer/node/schedule.h"
#include "peer/node/sessions.h"

/* The largest beat that more than half of the n claims reach; 0 of none. Sorts them. */
uint64_t round_quorum_most(uint64_t *claim, size_t n);

/* What most of our sessions' rounds are now; *n: of how many. */
uint64_t round_quorum_sessions(const struct sessions *s, size_t *n);

/* Who is furthest in our run of those that may be believed, but for the link of this number;
 * NULL: nobody has begun. */
const struct link *round_quorum_furthest(const struct sessions *s, uint32_t but);

/* The round at which a model is taken that is said to be of this one. */
uint64_t round_quorum_joined(const struct sessions *s, uint64_t round);

/* What is remembered of the only one that we hear. */
struct round_quorum
{
    int64_t fastest_us; /* Our shortest job with local steps; 0: there was none. */
    int64_t near_us;    /* When it was last within lock step's lead, */
    bool far;           /* which it is not now: */
    uint64_t most;      /* then this was the most that it could have done. */
};

/* A job with local steps took so long. */
void round_quorum_worked(struct round_quorum *b, int64_t took_us);

/* The edges that the schedule is about to be shown: in lock step no beat is left that is not
 * believed. */
void round_quorum_look(struct round_quorum *b, const struct sessions *s,
                       const struct schedule_view *v, struct schedule_edge *edge);

#endif
