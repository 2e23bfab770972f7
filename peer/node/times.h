/* peer/node/times.h -- the periods of the node's timers, in microseconds of node time (clock.h).
 *
 * The values suit a local network. schedule.h has the periods of the schedule; the other modules have
 * the periods that only they use.
 */
#ifndef PEER_NODE_TIMES_H
#define PEER_NODE_TIMES_H

enum node_time {
    TICK_US = 100 * 1000, /* Interval at which a node checks its timers. */

    /* ---- failure detector (failure_detector.c) ---- */
    HEARTBEAT_US = 500 * 1000,   /* Interval between two PING messages on a link. */
    LAPSE_US = 900 * 1000,       /* Silence after which a neighbour counts as absent. */
    SILENT_US = 3 * 1000 * 1000, /* Silence after which an edge pauses and a peer may be accused. */
    PROBE_US = 1000 * 1000,      /* Time for other members to answer whether they hear the peer. */
    SUSPECT_US = 7 * 1000 * 1000,   /* Time from one member's accusation to the death. */
    CONFIRMED_US = 2 * 1000 * 1000, /* Time from the accusation of a second member to the death. */
    REFUTED_US =
        5 * 1000 * 1000, /* No new accusation of a peer for this time after it refuted one. */
    REFUTED_MAX_US = 60 * 1000 * 1000, /* Maximum of REFUTED_US, which doubles without a session. */
    ENDING_US =
        3 * 1000 * 1000, /* Delay before another peer is watched in place of an ended one. */
    DEAD_LINK_US = 6 * 1000 * 1000, /* Silence after which a link is closed and dialled again. */

    /* ---- two processes with one identity or name ---- */
    TWINS_US = 10 * 1000 * 1000,  /* Two live members of one name for this time: not a restart. */
    CLONED_US = 60 * 1000 * 1000, /* Interval of the warning about a copied identity. */

    /* ---- dialling (dial.c) ---- */
    REDIAL_MIN_US = 100 * 1000,        /* First interval between two dials of one address. */
    REDIAL_MAX_US = 5 * 1000 * 1000,   /* Longest such interval; it doubles with each failure. */
    RECENT_US = 15 * 1000 * 1000,      /* A peer heard within this time may be restarting. */
    REDIAL_RECENT_US = 500 * 1000,     /* Longest interval between dials of such a peer. */
    REFUSED_US = 1000 * 1000,          /* A dial that fails sooner than this was refused. */
    YIELD_US = 2 * 1000 * 1000,        /* Time for which the larger id lets the smaller one dial. */
    DEAD_REDIAL_US = 30 * 1000 * 1000, /* Interval between dials of a dead member. */
    DEAD_ALONE_US = 2 * 1000 * 1000,   /* The same if no other member is connected. */
    SEED_US = 30 * 1000 * 1000,        /* Interval between dials of the bootstrap list. */
    SEED_ALONE_US = 2 * 1000 * 1000,   /* The same if no member is connected. */
    SURPLUS_US = 15 * 1000 * 1000, /* Idle time after which a link that no edge needs is closed. */

    /* ---- start, join and end of a run ---- */
    GRACE_US = 3 * 1000 * 1000,  /* Time for the bootstrap list to answer before starting alone. */
    QUIET_US = 200 * 1000,       /* Time without a newly opened edge before round 0 begins. */
    MODEL_US = 20 * 1000 * 1000, /* Time for a neighbour to send its model. */
    REFUSED_END_US = 10 * 1000 * 1000,  /* Time after which a peer that all others refuse ends. */
    QUIET_REFUSED_US = 7 * 1000 * 1000, /* More than the redial interval of a peer that refuses. */
    GONE_US =
        10 * 1000 * 1000, /* After a pause, unreachable peers count as gone after this time. */
    GONE_CUT_US = 30 * 1000 * 1000, /* The same after a cut: the others may be starting again. */
    QUIET_END_US = 2 * 1000 * 1000, /* Time after which the record of a finished neighbour counts as
                                     * its announcement, which a lost session may have taken. */

    /* ---- other ---- */
    ENTROPY_US = 10 * 1000 * 1000,  /* Interval at which all records go to one random link. */
    OBSERVER_US = 120 * 1000 * 1000 /* Longest time that an observer's link may be silent. */
};

#endif
