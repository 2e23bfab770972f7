/* peer/node/state.h -- the inside of struct node: its machines, from the bottom up.
 *
 *   env       time, chance, members, the outbox            <- everybody
 *   sessions  links and dialling                           <- edges, join, orders
 *   pooling   what members say of their data, before a run  (above sessions)
 *   workshop  the run, its trainer, model and mixer        <- edges, join, orders, job
 *   edges     the neighbours and the protocol of each edge <- phases, job
 *   join      the model to begin with                      <- phases
 *   orders    models that others want                      <- job
 *   hand      a final model handed to another's disk    (above the workshop)
 *   round_protocol  what brings models together beside the edges  <- phases
 *   phases    phase, rounds, when the next job may begin   <- job
 *   job       what the worker does
 *   roll      what is told of who is silent, dead, back     (above sessions and edges)
 *   halt      the checkpoint of an end by request       (above phases)
 *   resume    going on from a checkpoint                   (all but orders)
 *
 * Each is written by its own files and knows those above it in this list only; node.c passes
 * events between them. Seen by node.c, and by tests that look inside.
 */
#ifndef PEER_NODE_STATE_H
#define PEER_NODE_STATE_H

#include "peer/node/clock.h"
#include "peer/node/graceful_stop.h"
#include "peer/node/membership_log.h"
#include "peer/node/model_handoff.h"
#include "peer/node/resume.h"
#include "peer/node/statistics_aggregation.h"

struct node
{
    struct env env;
    struct node_clock clock;
    struct sessions sessions;
    struct statistics_aggregation pooling;
    struct run_context workshop;
    struct edges edges;
    struct join join;
    struct model_server orders;
    struct round_protocol round_protocol;
    struct phases phases;
    struct job job;
    struct membership_log roll;
    struct resume resume;
    struct model_handoff hand;
    struct graceful_stop halt;

    int64_t next_tick_us; /* Node time of the next tick; 0 before NODE_START. */
    int64_t
        given_up_us; /* When a run was given up for want of its initial model; 0: there is one. */
    bool kept;       /* The driver has said what became of our final model: */
    bool unkept;     /* it could not be stored. */
    bool offers;     /* It could not, and others are asked to store it. */
    bool stopping;   /* The job is finished, the model written, then we leave. */
    uint64_t bytes_sent, bytes_received, n_strangers; /* Totals, as the driver last told. */
    uint64_t clock_ms; /* The wall clock, for STATUS alone; 0: not known. */
};

#endif
