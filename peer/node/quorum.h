/* peer/node/quorum.h -- are enough of the run's members there to train?
 *
 * Those who were members when this peer began to train count, but for those that have
 * left by their own signed word. Of these a share (the run's --quorum) must be alive, or
 * the peer holds its local steps: one of eight that trains alone on its eighth of the data
 * would lead the others astray when they come back. Newcomers count as alive, so that a
 * machine that is replaced makes up for the one that died. Whose worker hangs, by its own word, counts as gone
 * until it does not.
 *
 *     there are enough <------------------------------+
 *         |                                           | enough again
 *         v   fewer                                   |
 *       held ----------- for --quorum-timeout -----------> resigned: goes on
 *
 * Who is silent is missed before it is known to be dead: several suspects count as gone, so
 * that a peer that is cut off, or whose cluster has died, holds some three seconds later. One
 * suspect alone does not, until it is dead.
 *
 * Two halves of an even cut both have the quorum of a half, and both go on; one of them may say
 * consensus at the end (outcome.c).
 */
#ifndef PEER_NODE_QUORUM_H
#define PEER_NODE_QUORUM_H

#include "gossip/members/members.h"

enum quorum_state { QUORUM_THERE, QUORUM_HELD, QUORUM_RESIGNED };

struct quorum
{
    uint8_t (*id)[WIRE_ID_BYTES]; /* The members of the beginning, n of them; owned. */
    uint32_t n;
    uint32_t n_members; /* So many of these have not left; */
    uint32_t n_live;    /* and so many members are there now, ourselves included. */
    struct              /* When these two were counted: for as long as this is how things are. */
    {
        uint64_t changes, view;
        enum quorum_state state;
    } counted;
    enum quorum_state state;
    int64_t since_us; /* In this state; held, with what it was held before a short moment of */
    int64_t held_us;  /* enough members: so long, when that moment began. */
};

/* Training begins with these members. 0 or -ENOMEM. */
int quorum_begin(struct quorum *q, const struct members *m, int64_t now_us);
void quorum_close(struct quorum *q);

/* How is it now? True where the state has changed. Before quorum_begin() all is well. O(1), but
 * O(members) after a change of theirs. */
bool quorum_look(struct quorum *q, const struct members *m, double share, int64_t patience_us,
                 int64_t now_us);

/* So many of the members of the beginning have not left. O(members), by chance of memory. */
uint32_t quorum_members(const struct quorum *q, const struct members *m);

/* So many must be alive: the share of n_members, rounded up, at least one. */
uint32_t quorum_needed(const struct quorum *q, double share);

#endif
