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
    /* Time from the accusation of a silent member by one member until it is declared dead. */
    SUSPECT_US = 7 * 1000 * 1000,
    /* Time from the accusation of a silent member by a second member until it is declared dead. */
    CONFIRMED_US = 2 * 1000 * 1000,
    REFUTED_US =
        /* Time after a peer refuted an accusation in which it is not accused again. */
    5 * 1000 * 1000,
    /* Maximum of REFUTED_US, which doubles with each refutation while there is no session. */
    REFUTED_MAX_US = 60 * 1000 * 1000,
    ENDING_US =
        /* Additional time for newly monitored members to be heard after a member has ended its
         * run. */
    3 * 1000 * 1000,
    DEAD_LINK_US = 6 * 1000 * 1000, /* Silence after which a link is closed and dialled again. */

    /* ---- two processes with one identity or name ---- */
    /* Two live members that have one name for this time are not a restart of one process. */
    TWINS_US = 10 * 1000 * 1000,
    CLONED_US = 60 * 1000 * 1000, /* Interval of the warning about a copied identity. */

    /* ---- dialling (dial.c) ---- */
    /* Interval between the first two dials to a member that does not answer. */
    REDIAL_MIN_US = 100 * 1000,
    /* Longest interval between two dials to a member. The interval doubles with each failure. */
    REDIAL_MAX_US = 5 * 1000 * 1000,
    /* A member that was heard within this time may be restarting. */
    RECENT_US = 15 * 1000 * 1000,
    /* Longest interval between two dials to a member that may be restarting. */
    REDIAL_RECENT_US = 500 * 1000,
    /* A dial that fails within this time was refused by a host that is up. */
    REFUSED_US = 1000 * 1000,
    /* Time for which the peer with the greater id does not dial, so that the other one dials. */
    YIELD_US = 2 * 1000 * 1000,
    DEAD_REDIAL_US = 30 * 1000 * 1000, /* Interval between dials of a dead member. */
    /* Interval between dials of a dead member if no other member is connected. */
    DEAD_ALONE_US = 2 * 1000 * 1000,
    SEED_US = 30 * 1000 * 1000, /* Interval between dials of the bootstrap list. */
    /* Interval between dials of the bootstrap list if no member is connected. */
    SEED_ALONE_US = 2 * 1000 * 1000,
    SURPLUS_US = 15 * 1000 * 1000, /* Idle time after which a link that no edge needs is closed. */

    /* ---- start, join and end of a run ---- */
    GRACE_US = 3 * 1000 * 1000,  /* Time for the bootstrap list to answer before starting alone. */
    QUIET_US = 200 * 1000,       /* Time without a newly opened edge before round 0 begins. */
    MODEL_US = 20 * 1000 * 1000, /* Time for a member to answer a request for its model. */
    REFUSED_END_US = 10 * 1000 * 1000, /* Time after which a peer that all others refuse ends. */
    /* Time without a refusal after which this peer does not count as refused any more. Exceeds the
     * interval at which a refusing peer dials (REDIAL_MAX_US plus jitter). */
    QUIET_REFUSED_US = 7 * 1000 * 1000,
    GONE_US =
        /* Time after a pause of this process for which all its dials must be refused before the
         * processes of the other members count as ended. */
    10 * 1000 * 1000,
    /* The same as GONE_US, but after a network failure that cut this peer off. It is longer,
     * because the other members may be restarting. */
    GONE_CUT_US = 30 * 1000 * 1000,
    /* Time without an exchange after which the member record of a neighbour is enough to show that
     * it has finished. Its announcement on the session may have been lost. */
    QUIET_END_US = 2 * 1000 * 1000,

    /* ---- other ---- */
    /* Interval at which the whole member table is sent to one random session. */
    ENTROPY_US = 10 * 1000 * 1000,
    OBSERVER_US = 120 * 1000 * 1000 /* Longest time that an observer's link may be silent. */
};

#endif
