/* peer/node/state.h -- definition of struct node: the modules of a node.
 *
 * Each row of this table shows a field of struct node, its purpose, and the modules that it uses:
 *
 *   field           purpose                                                uses
 *   env             node time, random numbers, member table, outbox
 *   sessions        links and dialling                                     env
 *   pooling         column statistics of members, before a run             sessions
 *   workshop        the run, its trainer, model and mixer                  env
 *   edges           neighbours, and the protocol of each edge              sessions, workshop
 *   join            the model with which this peer begins                  sessions, workshop
 *   checkpoint      the next checkpoint                                    env
 *   quorum          initial members, and whether enough are present        env
 *   orders          copies of the model for other peers                    sessions, workshop
 *   round_protocol  averaging of models in rounds, without edges           sessions, workshop
 *   phases          phase, rounds, decision when the next job may begin    edges, join, checkpoint,
 *                                                                          quorum, round_protocol
 *   job             the worker's job                                       edges, orders, phases
 *   roll            messages about silent, dead and returned members       sessions, edges
 *   halt            a requested end: waits for one more checkpoint         phases
 *   resume          resumption from a checkpoint                           edges, join, phases, job
 *   certificate     agreement on the end of the run (finish/finish.h)      all of the above
 *   final_model     storing the final model, and the end of this peer      all of the above
 *
 * Each field is written by the files of its own module only. A pointer belongs to the node:
 * node_open() allocates the module, whose struct is private. A module knows only modules above it
 * in this table. node.c passes events between the modules. The header is included by node.c, by the
 * few other files that read several modules, and by tests.
 */
#ifndef PEER_NODE_STATE_H
#define PEER_NODE_STATE_H

#include "peer/node/join/checkpoint.h"
#include "peer/node/join/join.h"
#include "peer/node/join/model_server.h"
#include "peer/node/join/statistics_aggregation.h"
#include "peer/node/result/certificate.h"
#include "peer/node/result/final_model.h"
#include "peer/node/step/graceful_stop.h"
#include "peer/node/step/membership_log.h"
#include "peer/node/step/resume.h"

struct node
{
    struct env env;
    struct sessions *sessions;
    struct statistics_aggregation *pooling;
    struct run_context workshop;
    struct edges *edges;
    struct join *join;
    struct checkpoint *checkpoint;
    struct quorum *quorum;
    struct model_server *orders;
    struct round_protocol *round_protocol;
    struct phases *phases;
    struct job *job;
    struct membership_log *roll;
    struct resume *resume;
    struct graceful_stop *halt;
    struct run_certificate *certificate;
    struct final_model *final_model;

    int64_t next_tick_us; /* Node time of the next tick. 0: NODE_START has not been handled. */
    /* Node time at which this peer abandoned a run because no member had its initial model. 0: no
     * run was abandoned, or there is a new run. */
    int64_t given_up_us;
    /* True: other peers have begun the run, and at least one other member is alive. */
    bool others_began;
    bool stopping; /* True: the user or the training program has asked for the end of this peer. */
    /* Totals in the last report of the driver (struct node_event): bytes at the sockets, and
     * refused connections. */
    uint64_t bytes_sent, bytes_received, n_strangers;
    uint64_t clock_ms; /* Wall clock in milliseconds since 1970, for STATUS only. 0: unknown. */
};

#endif
