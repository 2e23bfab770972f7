/* peer/node/bandwidth_estimate.h -- what the links of this peer's edges carry, and how precise that lets it be.
 *
 *   CARRIED (the driver, about once a second) --> bursts of each link --+
 *   job_done: so long was computed                                      +--> bandwidth_estimate_look()
 *   --bandwidth RATE: so many bytes a second, shared by the open edges ----+
 *
 * Owned here: the figures since the last look, and the floor under the rung of --compress auto
 * (gossip/exchange/uplink.h has the rule). A look needs fresh figures of every open edge, since
 * the slowest one decides. Where none come the floor stays 0, and the drift alone chooses: so it
 * is with `--bandwidth off`, in the simulator, and where the system cannot tell what was acknowledged.
 *
 * A part of the job (job.h), for the loop's thread.
 */
#ifndef PEER_NODE_BANDWIDTH_ESTIMATE_H
#define PEER_NODE_BANDWIDTH_ESTIMATE_H

#include "gossip/exchange/uplink.h"
#include "peer/node/edges.h"

struct bandwidth_estimate
{
    struct uplink uplink;
    bool begun; /* The lengths of the rungs are known. */
    struct
    {
        uint32_t link; /* These figures are of the driver's link of this number, */
        bool fresh;    /* and have come since the last look. */
        double s_per_byte, rtt_s;
    } at[NODE_LINKS_MAX]; /* By the link's place. */
    int64_t looked_us;
    int64_t worked_us; /* Jobs with local steps took so long since the last look, */
    int64_t n_worked;  /* and were so many. */
    double s_per_byte; /* The slowest edge has this, as of the last look; NaN before the first. */
};

/* Nothing is known yet, or what was is of a run that was given up. */
void bandwidth_estimate_init(struct bandwidth_estimate *g);

/* The driver says what a link has carried since it last said so. */
void bandwidth_estimate_carried(struct bandwidth_estimate *g, const struct edges *es,
                                const struct node_event *ev);

/* A job with local steps computed for so long. */
void bandwidth_estimate_worked(struct bandwidth_estimate *g, int64_t us);

/* A job is being planned in run round `now`: look, where that is due, and tell the ladder of the
 * floor and the prices. */
void bandwidth_estimate_look(struct bandwidth_estimate *g, const struct edges *es,
                             struct codec_levels *l, uint64_t now);

/* Bytes a second that the slowest edge can take beside what is latency, as of the last look; NaN:
 * not known, or more than can be told. */
double bandwidth_estimate_bytes_per_s(const struct bandwidth_estimate *g);

#endif
