/* peer/trace/trace.h -- writes the events of nodes as lines of text: time, peer, event.
 *
 *     0.360  peer-1  <- peer-0  DELTA e1 round 0 codec 0 beat 1   a message that reaches peer-1
 *     1.522  peer-1  at 22: training, peer-0 paused               round, phase and edges of peer-1
 *     2.000  ---- late ends                                       a line that belongs to no peer
 *
 * A driver calls trace_event() before node_step() with the same event, and trace_effects() after
 * it. The explorer, `hearsay sim` and `hearsay peer` use this writer, so their traces have one
 * format. tests/golden/traces/README.md explains the words.
 *
 * A trace omits what repeats: heartbeats, step announcements, member records without news, deltas
 * that follow the one before, and jobs that change nothing. Epochs of edges are named e1, e2, ...
 * in the order in which they appear in the trace.
 *
 * The functions print and open nothing: each line goes to the function `line` of the configuration.
 */
#ifndef PEER_TRACE_TRACE_H
#define PEER_TRACE_TRACE_H

#include "peer/node/node.h"

enum {
    TRACE_NAME_SIZE = WIRE_NAME_MAX + 1, /* Size of the name of a peer in bytes, with the NUL. */
    /* Size of a line in bytes, with the NUL. Longer lines are cut. */
    TRACE_LINE_SIZE = 8192
};

/* Configuration of a trace. */
struct trace_config
{
    /* Callback that receives one line of the trace, without a newline at its end. */
    void (*line)(void *self, const char *line);
    /* Writes the name of the peer with this identity, and returns true. Returns false if no peer
     * has this identity. If the callback is NULL, names come from the member table of the node. A
     * peer that is not in this table is named by the first bytes of its identity, such as
     * #1a2b3c4d. */
    bool (*name)(void *self, const uint8_t id[WIRE_ID_BYTES], char out[TRACE_NAME_SIZE]);
    void *self;        /* First argument of the functions `line` and `name`. */
    bool all;          /* True: all events are written, with times in microseconds. */
    int64_t origin_us; /* Driver time, in microseconds, that is written as 0 s. */
};

struct trace;      /* A trace of one or several peers. Opaque. */
struct trace_peer; /* The state of a trace for one peer. Opaque. */

/* Opens a trace with the configuration *c, which is copied. Returns NULL if memory is exhausted. */
struct trace *trace_open(const struct trace_config *c);
/* Frees a trace and the states of its peers. NULL is allowed. */
void trace_close(struct trace *t);

/* Adds a peer to the trace. `name` is copied. Returns NULL if memory is exhausted. */
struct trace_peer *trace_add_peer(struct trace *t, const char *name);

/* Writes an event that is about to be handled by the peer's node `n`. */
void trace_event(struct trace_peer *p, const struct node *n, const struct node_event *ev);
/* Writes the phase and the edges of the peer, if they have changed since the last call. May be
 * called while a job of the node runs. */
void trace_state(struct trace_peer *p, const struct node *n, int64_t now_us);
/* Writes the results of a step: the notes of the node except debug notes, its phase and edges if
 * they have changed (trace_state()), a checkpoint, and the end of the node. `fx`: effects of the
 * step (messages to send, notes, ...). */
void trace_effects(struct trace_peer *p, const struct node *n, int64_t now_us,
                   const struct node_effects *fx);
/* Writes a line of the peer, such as a note of its node. */
void trace_say(struct trace_peer *p, int64_t now_us, const char *text);
/* Writes a line that belongs to no peer. */
void trace_mark(struct trace *t, int64_t now_us, const char *text);

#endif
