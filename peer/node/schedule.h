/* peer/node/schedule.h -- what a peer does next: a pure function of what it knows.
 *
 *   GATHERING   waits for a model, for --min-peers, for its edges to open; one that all others
 *       |       have finished with is measured and written: SERVING
 *       |
 *       v       all there, or OPENING is over
 *   TRAINING <------> held: below the quorum it mixes, but takes no local steps
 *       |               (until there is one, or --quorum-timeout is over)
 *       v       the last round is done
 *   SETTLING    mixes without local steps; held alike
 *       |       everybody is known to be under --final-drift, or nothing gets better
 *       v
 *   draining    no new deltas; exchanges that are half done are finished
 *       |
 *       v       measured, tested, written
 *   SERVING     its model is final; neighbours still need its last deltas
 *       |
 *       v       no edge is open any more and all that live have ended, or STALL is over
 *   LEFT
 *
 * Lock step (--policy sync) counts *beats*: rounds of training, then of the consensus phase.
 * One rule corrects a skew, and the end that it falls on is decided by its size:
 *
 *   the other end is behind by    then
 *   0                             go on
 *   1 .. LEAD                     wait for it: it is slower, or was away for a moment
 *   more than LEAD                go on: it was away for long, and will claim our beat;
 *                                 or wait for it, where most others are behind, too (believe.h)
 *
 * LEAD is more than lock step itself allows across the graph, so that nobody claims
 * rounds that it could have done. Whoever claims a beat counts the rounds that it skips.
 * The least beat of all waits for nobody, so that no circle of waiting can be.
 *
 * Who is bound to nobody (no edge is open, or those behind them come and go) keeps the pace
 * at which it went with the others. With its own computing alone for a measure it could run
 * through all that is left of a run in which rounds wait for the network, and the others
 * would skip what it did without them.
 */
#ifndef PEER_NODE_SCHEDULE_H
#define PEER_NODE_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum node_phase {
    NODE_JOINING, /* Waiting for min-peers, for the run, or for a model. */
    NODE_TRAINING,
    NODE_CONSENSUS, /* Consensus phase: gossip without gradients to --final-drift. */
    NODE_FINISHING, /* Our model is final; neighbours still need us. */
    NODE_LEFT       /* Nothing more will come. */
};

/* Times, in microseconds. */
enum schedule_time {
    SCHEDULE_OPENING_US = 10 * 1000 * 1000, /* All edges have to open, before the first round. */
    SCHEDULE_STALL_US =
        30 * 1000 * 1000, /* The consensus phase may go on so long without progress. */
    SCHEDULE_LOST_US = 15 * 1000 * 1000, /* An edge to a member that lives by others' word may be
                                          * missing for so long before the consensus phase may end
                                          * without it. */
    SCHEDULE_BRIEF_US = 1000 * 1000,     /* A session that is back so soon was never away. */
    SCHEDULE_HOLD_US = 500 * 1000,       /* A peer that holds mixes at most this often, */
    SCHEDULE_SLOW_US = 250 * 1000 /* and so does one that waits for slow trainers, or for an edge
                                   * to come back. */
};

/* One neighbour, as this peer knows it. */
struct schedule_edge
{
    bool open;       /* Both ends mix over it. */
    bool done;       /* Their model is final. */
    int64_t lost_us; /* Neither of the two for so long. */
    bool ready;      /* Both deltas of its present round are here. */
    bool made;       /* Ours is. */
    bool old;        /* It is of before the moment at which we were known to be near: the
                       * exchange may part us from there. */
    bool idle;    /* The graph changes by round, and over this edge no delta will be made next. */
    bool awaited; /* In lock step: a pass of the consensus phase cannot be clean without what is to
                       * come over it (pass.h). */
    bool missing; /* No pass can be clean before it is open again. */
    bool ends_later;  /* It is done, at a beat that we have not passed: what it said last counts
                       * until then, so that not the moment at which we hear of it decides. */
    bool gathers;     /* It has not begun yet. */
    bool flapping;    /* It came and went too often lately: nobody waits for it. */
    int64_t busy_us;  /* Its worker has been at its present job for so long; 0: it waits. */
    int64_t mute_us;  /* Since its beat last changed, while we waited for it. */
    uint64_t beat;    /* Its latest beat: by what came in order behind its deltas. */
    uint32_t settled; /* Hops around it that it knows to be under the target. */
};

/* All that a decision depends on. */
struct schedule_view
{
    enum node_phase phase;
    bool lock_step;
    uint32_t staleness;     /* We wait for who is so many rounds behind; 0: for nobody. */
    uint64_t round, rounds; /* Claimed, and the run's. */
    uint64_t beat;          /* With the consensus phase's. */
    int64_t idle_us;        /* Since the last job was done; */
    int64_t pace_us;        /* jobs of the consensus phase keep such a distance, */
    int64_t usual_us;       /* and so do rounds of training of who is bound to nobody. */
    int64_t limit_us;       /* A job of a neighbour that takes longer is stuck. */
    uint32_t n_live;        /* Members, ourselves included. */
    uint32_t reach;         /* Hops from us to the farthest of them: our eccentricity. */

    /* Gathering. */
    bool has_model;
    bool complete;       /* --min-peers are there, or the run has begun. */
    bool behind;         /* The run is in its middle, or over: a model is needed. */
    bool final;          /* Ours is that of others who have all finished. */
    bool quiet;          /* All edges are open, and have been for a moment. */
    int64_t gathered_us; /* Since it was complete. */

    bool waits_round;   /* The round protocol has no result of our round yet (round_protocol.h). */
    uint64_t completed; /* Round of its latest result, which may be later than ours. 0: none. */

    bool writes; /* A checkpoint has to be on disk before lock step goes on. */
    bool held;   /* Below the quorum, and --quorum-timeout is not over. */

    /* The consensus phase. */
    bool trained;       /* All members that live have done their training. */
    double distance;    /* A bound on ours to the mean; infinite where it is not known. */
    double target;      /* --final-drift, less a margin; 0: no consensus phase. */
    int64_t stalled_us; /* Nothing has got better for so long. */
    bool draining;
    bool diverged;          /* Training or mixing ran away: there is no use in going on. */
    bool away;              /* The run has ended without us, as far as can be known. */
    bool member_counts_end; /* Some member lives, works, and has not said how it ended. */

    const struct schedule_edge *edge;
    size_t n_edges;
};

enum schedule_act {
    SCHEDULE_WAIT,
    SCHEDULE_GET_MODEL, /* Gathering: ask for one, or begin with the run's own. */
    SCHEDULE_BEGIN,     /* Gathering is over. */
    SCHEDULE_SETTLE,    /* Training is over. */
    SCHEDULE_TRAIN,     /* A job: mix, local steps, encode. */
    SCHEDULE_MIX,       /* A job without local steps. */
    SCHEDULE_LAST,      /* The last job: nothing is mixed any more. */
    SCHEDULE_LEAVE
};

struct schedule_decision
{
    enum schedule_act act;
    uint64_t claim;  /* Claim this beat first; 0: none. */
    bool drain;      /* The consensus phase is over. */
    bool late;       /* It ends without having come under the target, */
    bool left;       /* or because nobody is left to mix with. */
    int64_t wait_us; /* WAIT: for so long at least, or until something happens; 0: unknown. */
    const struct schedule_edge *for_whom; /* WAIT in lock step: the first that we wait for. */
};

struct schedule_decision schedule_next(const struct schedule_view *v);

/* How many hops around us are known to be under the target: 0 if we are not, else one
 * more than the least of our neighbours said. Once it passes our eccentricity, all are. */
uint32_t schedule_settled(const struct schedule_view *v);

/* Do at least half of those that we mix with say that they are near? Or, where nobody is left of
 * them, did they as they ended? */
bool schedule_confirmed(const struct schedule_view *v, bool left);

/* A neighbour of whom nothing is to be expected: its worker hangs, or it says nothing new. */
bool schedule_stuck(const struct schedule_view *v, const struct schedule_edge *e);
/* One for whom lock step does not wait: it is stuck, or it flaps. */
bool schedule_excused(const struct schedule_view *v, const struct schedule_edge *e);

/* In lock step, and bound to no neighbour of those that are to be had. */
bool schedule_alone(const struct schedule_view *v);
/* In step with neighbours: bound to one, and with none of them so far ahead that rounds are made up for. */
bool schedule_in_step(const struct schedule_view *v);

/* So many beats of lead are waited for. */
uint64_t schedule_lead(const struct schedule_view *v);

enum { SCHEDULE_FAR = 1 << 30 /* schedule_settled() where nobody is around us. */ };

#endif
