/* peer/node/times.h -- every delay of the node, in microseconds: the LAN's defaults of the
 * design. The rules have more (schedule.h).
 */
#ifndef PEER_NODE_TIMES_H
#define PEER_NODE_TIMES_H

enum node_time {
    TICK_US = 100 * 1000,
    TWINS_US = 10 * 1000 * 1000, /* Two members of one name live for so long: no restart. */
    CLONED_US = 60 * 1000 * 1000,
    REFUSED_END_US = 10 * 1000 * 1000,  /* Nobody but those who refuse us for so long: we end. */
    QUIET_REFUSED_US = 7 * 1000 * 1000, /* Longer than from one call to the next of who refuses. */
    RECENT_US = 15 * 1000 * 1000,       /* Who was heard within this time may be restarting: */
    REDIAL_RECENT_US = 500 * 1000,      /* it is called at least so often. */
    HEARTBEAT_US = 500 * 1000,
    SILENT_US = 3 * 1000 * 1000,  /* Edge paused, peer accused. */
    PROBE_US = 1000 * 1000,       /* Before that others are asked, and have so long to answer. */
    REFUSED_US = 1000 * 1000,     /* A dial that fails sooner was refused. */
    REFUTED_US = 5 * 1000 * 1000, /* Who refuted our word is not accused again for so long, */
    REFUTED_MAX_US = 60 * 1000 * 1000, /* and each time, without a session, for twice as long. */
    ENDING_US = 3 * 1000 * 1000,     /* Whom to watch in place of who has ended: not before this. */
    OBSERVER_US = 120 * 1000 * 1000, /* An observer waits for an answer and says nothing. */
    DEAD_LINK_US = 6 * 1000 * 1000,  /* A silent link is hung up: a new one may get through. */
    REDIAL_MIN_US = 100 * 1000,
    YIELD_US = 2 * 1000 * 1000, /* The larger id leaves dialling to the smaller. */
    REDIAL_MAX_US = 5 * 1000 * 1000,
    DEAD_REDIAL_US = 30 * 1000 * 1000,
    DEAD_ALONE_US = 2 * 1000 * 1000, /* The same where nobody else is left to talk to. */
    GONE_US = 10 * 1000 * 1000,      /* Who stood still, and is refused by all for so long, takes */
    GONE_CUT_US = 30 * 1000 * 1000,  /* them for gone; so does who was cut off, after this: they may
                                      * be starting again. */
    SEED_US = 30 * 1000 * 1000,
    SEED_ALONE_US = 2 * 1000 * 1000,
    ENTROPY_US = 10 * 1000 * 1000,  /* All we know, to one link. */
    SURPLUS_US = 15 * 1000 * 1000,  /* An idle link that no edge needs. */
    QUIET_US = 200 * 1000,          /* No edge opened for so long, before round 0: sessions
                                         * that crossed have been sorted out. */
    GRACE_US = 3 * 1000 * 1000,     /* For bootstrap to answer, before going alone. */
    MODEL_US = 20 * 1000 * 1000,    /* For a neighbour to send its model. */
    LAPSE_US = 900 * 1000,          /* A neighbour that is silent for longer is absent. */
    QUIET_END_US = 2 * 1000 * 1000, /* Nothing came for so long: a record that says FINISHED
                                     * stands for the word that got lost with a session. */
    SUSPECT_US = 7 * 1000 * 1000,
    CONFIRMED_US = 2 * 1000 * 1000
};

#endif
