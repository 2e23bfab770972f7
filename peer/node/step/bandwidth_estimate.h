/* peer/node/step/bandwidth_estimate.h -- estimates the bandwidth of the slowest edge, for
 * --bandwidth.
 *
 * The estimate sets the lower bound (the floor) of the codec level of --compress auto. The rule is
 * in gossip/exchange/uplink.h.
 *
 *   input                                            from
 *   bytes and durations of bursts, per session       CARRIED events of the driver, once a second
 *   compute time of jobs with local steps            bandwidth_estimate_worked()
 *   fixed rate in bytes/s, shared by all open edges  --bandwidth RATE
 *
 * bandwidth_estimate_look() combines the figures since its previous update. With --bandwidth auto,
 * an update needs new figures of every open edge, because the slowest edge decides. The simulator,
 * and systems that do not report acknowledged bytes, produce no such figures. Without any update,
 * as with --bandwidth off, the floor stays 0, and the consensus distance alone chooses the level.
 *
 * The struct belongs to the job (job.h). Only the loop thread uses it.
 */
#ifndef PEER_NODE_STEP_BANDWIDTH_ESTIMATE_H
#define PEER_NODE_STEP_BANDWIDTH_ESTIMATE_H

#include "gossip/exchange/uplink.h"
#include "peer/node/edge/edges.h"

struct bandwidth_estimate
{
    const struct env *env;
    const struct sessions *sessions;
    const struct run_context *workshop;
    /* State of the lower bound of the codec level (the floor) and of the prices of the levels. */
    struct uplink uplink;
    bool begun; /* True: the delta size of each codec level is known. */
    struct
    {
        uint32_t link; /* Number of the session to which the figures belong. */
        /* True: the session's figures have arrived since the last update of the codec level's lower
         * bound. */
        bool fresh;
        /* s_per_byte: transfer time of one byte on the link in seconds, with the latency
         * subtracted; 0: too short to measure. rtt_s: least known round-trip time of the link in
         * seconds; 0: not known. */
        double s_per_byte, rtt_s;
    } at[NODE_LINKS_MAX]; /* Figures of each session, by its index in the session table. */
    /* Last time at which the codec level's lower bound was updated, in microseconds. */
    int64_t looked_us;
    /* Total duration of jobs with local steps since the last update of the codec level's lower
     * bound, in microseconds. */
    int64_t worked_us;
    /* Number of jobs with local steps since the last update of the codec level's lower bound. */
    int64_t n_worked;
    /* Transfer time of one byte on the slowest edge in seconds, at the last update of the codec
     * level's lower bound. 0: too short to measure. NaN: there was no update. */
    double s_per_byte;
};

/* Initialises *g without any figures. The pointer arguments are borrowed. Called again when a run
 * is given up. */
void bandwidth_estimate_init(struct bandwidth_estimate *g, const struct env *env,
                             const struct sessions *s, const struct run_context *w);

/* Stores the figures of a NODE_CARRIED event: throughput of a session since the previous event for
 * this session, and round-trip time. The event is ignored if no edge uses the session, or if the
 * session has sent too little to be measured. */
void bandwidth_estimate_carried(struct bandwidth_estimate *g, const struct edges *es,
                                const struct node_event *ev);

/* Records that the computation of a job with local steps took `us` microseconds. */
void bandwidth_estimate_worked(struct bandwidth_estimate *g, int64_t us);

/* Called when a job of training is planned in round `now`. If an update is due, sets the lower
 * bound of the codec level in *l, and the price of each level. A price above 1 means that deltas of
 * the level delay the round. An update is due if a job with local steps has ended since the last
 * update, and
 *
 *   (1) with --bandwidth auto: new figures of all open edges have arrived since then
 *   (2) with --bandwidth RATE: an edge is open, and 1 s has passed since then */
void bandwidth_estimate_look(struct bandwidth_estimate *g, const struct edges *es,
                             struct codec_levels *l, uint64_t now);

/* Returns the bandwidth of the slowest edge in bytes per second, with the latency subtracted, at
 * the last update of the codec level's lower bound. NaN: unknown, or too fast to measure. */
double bandwidth_estimate_bytes_per_s(const struct bandwidth_estimate *g);

#endif
