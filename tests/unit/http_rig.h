/* tests/unit/http_rig.h -- a snapshot in which every figure has a different value, for tests of the
 * HTTP pages and metrics. */
#ifndef TESTS_PAGE_RIG_H
#define TESTS_PAGE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gossip/exchange/edge.h"
#include "peer/http/snapshot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RIG_TAKEN_US = 50 * 1000 * 1000 };

static inline void rig_training(struct node_progress *p)
{
    *p = (struct node_progress){.phase = NODE_TRAINING,
                                .round = 412,
                                .n_rounds = 1563,
                                .joined_round = 5,
                                .rounds_done = 400,
                                .rounds_skipped = 7,
                                .local_steps = 3,
                                .steps_done = 1200,
                                .loss = 0.3125,
                                .accuracy = 0.875,
                                .test_loss = 0.4375,
                                .drift = 0.5,
                                .relative_drift = 0.0078125,
                                .drift_round = 390,
                                .drift_age = 22,
                                .own_distance = 0.25,
                                .gamma = 0.75,
                                .rung = "qsgd:4",
                                .rung_by = "drift",
                                .excess = 0.625,
                                .drift_target = 1,
                                .goodput = 125000,
                                .statistics_apart = 0.0625,
                                .compute_s = 11.5,
                                .mix_s = 1.25,
                                .wait_s = 2.75,
                                .bytes_sent = 18446744073,
                                .bytes_received = 9007199254740991,
                                .n_live = 8,
                                .n_edges = 2,
                                .resets = 4,
                                .violations = 9,
                                .exchanges = 810,
                                .distrusted = 2,
                                .strangers = 6};
}

static inline void rig_snapshot(struct snapshot *s)
{
    memset(s, 0, sizeof *s);
    s->number = 1;
    s->taken_us = RIG_TAKEN_US;
    strcpy(s->name, "a");
    memset(s->id, '1', SNAPSHOT_ID);
    struct figure_values *v = &s->figures;
    v->has_run = true;
    strcpy(s->run, "compress=auto\ndata=glyphs\nmodel=lenet5\ntopology=ring\n");
    strcpy(s->run_id, "0123456789abcdef");
    v->time_s = 60;
    v->min_peers = 8;
    v->final_drift = 0.001;
    rig_training(&v->node);
    v->node.accuracy_round = 405;
    strcpy(s->codec, "qsgd:4");
    v->age_s = 0.5;
    s->n_members = 2;
    s->member[0] = (struct snapshot_member){.name = "a", .state = MEMBER_ALIVE, .own = true};
    memset(s->member[0].id, '1', SNAPSHOT_ID);
    s->member[1] = (struct snapshot_member){
        .name = "b", .state = MEMBER_SUSPECT, .connected = true, .has_round = true, .round = 411};
    memset(s->member[1].id, '2', SNAPSHOT_ID);
    s->in_state[MEMBER_ALIVE] = s->in_state[MEMBER_SUSPECT] = 1;
    s->n_edges = 1;
    s->edge[0] = (struct snapshot_edge){.name = "b",
                                        .state = EDGE_OPEN,
                                        .round = 409,
                                        .resets = 1,
                                        .gamma = 0.5,
                                        .bytes_sent = 1234,
                                        .bytes_received = 4321};
    memset(s->edge[0].id, '2', SNAPSHOT_ID);
    s->edge[0].neighbour = (struct node_neighbour){.has_beat = true, .beat = 411, .busy_s = 0.75};
    s->member[0].vertex = 1;
    s->member[1].vertex = SNAPSHOT_NO_VERTEX;
    s->wait = (struct node_wait){.what = NODE_WAITS_NEIGHBOUR, .beat = 411, .since_s = 3.5};
    /* Identity of the neighbour on the first edge of the snapshot, as bytes. */
    memset(s->wait.id, 0x22, WIRE_ID_BYTES);
    strcpy(s->graph.topology, "ring");
    s->graph.n_vertices = 3;
    s->graph.n_edges = 2;
    s->graph.whole = true;
    s->graph.edge[0][1] = s->graph.edge[1][0] = 1;
    s->graph.edge[1][1] = 2;
    s->n_violations = 1;
    s->violation[0] = (struct snapshot_count){"DELTA does not decode", 9};
    s->n_refused = 1;
    s->refused[0] = (struct snapshot_count){"unsealed", 6};
    v->checkpoints = 3;
    v->checkpoint_s = 0.125;
    v->has_disk_free = true;
    v->disk_free_bytes = 70640791552;
}

#endif
