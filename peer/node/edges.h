/* peer/node/edges.h -- the edges of a node in the graph: a machine of its own.
 *
 * Owned here: the neighbours, in the order of the members, and the protocol state of each
 * edge (gossip/exchange/edge.h, rules 1 to 3). Only edges.c writes it; the mixer moves an
 * exchange on while it plans and finishes a job. Others hold `const struct neighbour *`.
 *
 *                ask                 both EDGEs here
 *    CLOSED ----------> ASKING -----------------------> OPEN --edges_finish--> DONE
 *                         ^  ^                           | ^                    |
 *                         |  +-- replicas differ --------+ | heard again,       | session lost,
 *                         |      (epoch 0: a reset),     v | same session       v EDGE_CLOSE
 *                         |      or distrust, later        |                    |
 *                         +--- another session ------- PAUSED <---- (lost, closed, silent)
 *
 * An edge is there while the topology of who lives wants it. It is sent over the session that
 * sessions.h has to that member; where there is none, sessions.h is asked to call.
 */
#ifndef PEER_NODE_EDGES_H
#define PEER_NODE_EDGES_H

#include "peer/node/averaging_pass.h"
#include "peer/node/checkpoint.h"
#include "peer/node/delayed_exchange.h"
#include "peer/node/flap_damping.h"
#include "peer/node/pace.h"
#include "peer/node/run_context.h"

/* Rounds of a pass: of base:K at most 2 log2(members) + 2; ROUND_SCHEDULE_ROUNDS_MAX. */
enum { EDGES_ROUNDS_MAX = 24, EDGES_PARTS_MAX = 64 };

/* What a BEAT of theirs said beside their beat. */
struct neighbour_word
{
    uint64_t beat;
    uint32_t settled; /* As that of a delta. */
};

/* What it was last told of our beat, so many times on this link. */
struct neighbour_told
{
    uint32_t link;
    uint64_t beat, due;
    uint32_t settled, n;
};

/* What of our delta in the making has gone ahead of it (parts.h). */
struct neighbour_part
{
    uint32_t link; /* Over the link of this number. */
    uint64_t epoch, round;
    size_t n; /* So many bytes, its last ones. 0: none. */
};

/* A neighbour in the topology, and our edge to it. */
struct neighbour
{
    struct edge edge;
    const struct link *link; /* NULL: none now. */
    bool wanted;             /* By the present topology. */
    bool aside;              /* In the consensus phase, by that of training only (edges_last.c). */
    bool must_ask;           /* EDGE has to be sent on this link. */
    int64_t lost_us;         /* Since when there is no link. */
    int64_t open_us;         /* When it was last open, or done. */
    uint64_t beat;           /* What they said of theirs by EDGE and BEAT, */
    int64_t beat_us;         /* and when anything said that it had changed. */
    struct neighbour_word said[2]; /* The latest for an even beat, and for an odd one. */
    int64_t coming_us;             /* When part of a message that says so came in, last. */
    struct flap_damping absence;   /* How often, and for how long, it was silent or gone lately. */
    struct checkpoint_word word;
    struct delayed_exchange stale; /* Are its deltas and replicas of long ago? */
    bool excused;                  /* The user has been told that nobody waits for it; */
    bool was_excused;              /* that was so once. */
    double gamma;                  /* The edge's, as the last job left it: the worker's own
                              * may change under our eyes. */
    int64_t barred_us;             /* Until then the edge stays closed: it was distrusted, */
    uint32_t n_barred;             /* so many times (gossip/exchange/outlier_filter.h). */
    bool distrusted;               /* It was, and the edge has not gone well since: */
    bool for_good;                 /* nor has it another chance in the consensus phase. */
    uint32_t n_runaways; /* So many that the edge's gamma counted have been told to the user. */
    struct neighbour_part part;
    struct neighbour_told told;
    uint32_t turn
        [EDGES_ROUNDS_MAX]; /* By round of a pass: 0, or its weight then (round_schedule_word()). */
};

/* The consensus phase ends long before so many of its rounds: nobody honest says more. */
enum { EDGES_BEATS_MORE = 1 << 24 };

/* An EDGE that came before we had the edge: we may come to want it, too. */
struct early_edge
{
    bool heard;
    uint32_t link; /* It came on the link of this number. */
    struct wire_edge edge;
};

struct edges
{
    struct env *env;
    struct sessions *sessions;
    struct run_context *workshop;
    struct neighbour **at; /* In neighbour order. */
    size_t n, cap;
    uint64_t view;         /* The edges were chosen for this view of the members; 0: none yet. */
    uint32_t n_rounds;     /* A pass has so many; 0: the graph stands still (rounds.h). */
    bool exact;            /* And the product of a pass is the mean (topology/round_schedule.h). */
    uint32_t eccentricity; /* Our own. */
    struct tree_aggregation_place place; /* Ours in the trees along which the drift is surveyed. */
    uint64_t measured;                   /* The graph, as place.built counts them, */
    double gap, momentum;                /* whose spectral gap this is, and best momentum. */
    double spread;                       /* It is graph_spread() at our vertex: see topology.h. */
    uint64_t beat;                       /* Our own, as phases.h last said, */
    uint64_t due;                        /* and the checkpoint's that goes along, */
    uint32_t settled;                    /* and how many hops around us are near. */
    bool last;                           /* The consensus phase has begun. */
    struct averaging_pass pass;          /* pass.c's. */
    struct pace pace;    /* What deltas say of speeds, and what our jobs measured. */
    uint64_t heard_due;  /* The next beat after ours at which neighbours say one is due, */
    uint64_t heard_any;  /* and the same by words of theirs that come too soon. */
    int64_t opened_us;   /* When the last edge opened. */
    int64_t exchange_us; /* When the last edge opened or delta came. */
    uint64_t n_resets;
    uint64_t n_distrusted; /* Times that an edge was barred. */
    int64_t excused_us;    /* When a neighbour was waited for no more, for the first time. */
    struct early_edge early[NODE_LINKS_MAX]; /* By the link's place. */
    struct packet *part[EDGES_PARTS_MAX];    /* parts.c's: n_parts that this step sends, */
    size_t n_parts, parts_told;              /* and how much of the job's delta has been told of. */
    uint64_t bytes_ahead;                    /* That went out so, over all edges. */
};

void edges_init(struct edges *es, struct env *env, struct sessions *s, struct run_context *w);
void edges_close_all(struct edges *es);

/* ---- what happens ---- */

void edges_edge(struct edges *es, const struct link *l, const struct wire_edge *m);
void edges_edge_close(struct edges *es, const struct link *l);
void edges_delta(struct edges *es, const struct link *l, const struct wire_delta *d);
void edges_part(struct edges *es, const struct link *l, const struct wire_part *m);
/* A part of a long message came over this session. */
void edges_coming(struct edges *es, const struct link *l);
void edges_beat(struct edges *es, const struct link *l, const struct wire_beat *m);
void edges_lost(struct edges *es, const struct link *l);  /* The session is gone. */
void edges_heard(struct edges *es, const struct link *l); /* It lives. */
/* Their model is final: DONE after what is ready. */
void edges_ending(struct edges *es, const struct link *l);
/* Training begins: who came late to that has not been absent from it. */
void edges_begin(struct edges *es);
/* Silent edges pause, and who is silent is accused. */
void edges_tick(struct edges *es);

/* Were the edges chosen for other members than there are now? */
bool edges_outdated(const struct edges *es);
/* Choose them anew; not while a job runs. */
void edges_rebuild(struct edges *es);
/* Ask, agree, send what is ready. */
void edges_update(struct edges *es);

/* ---- what others ask for ---- */

void edges_finish(struct edges *es, size_t i); /* Nothing more is mixed over it. */
/* Our beat is this now, at that one a checkpoint is due (0: none is), and so many hops around us
 * are known to be near. In lock step neighbours are told, but those to whom a delta is about to. */
void edges_say_beat(struct edges *es, uint64_t beat, uint64_t due, uint32_t settled);
/* The same to one of them, whose edge is open. */
void edges_say_word(struct edges *es, struct neighbour *b);
/* The consensus phase begins, between jobs: its edges are chosen, where they are others. */
void edges_settle(struct edges *es);
/* The user has been told that nobody waits for it, or that it is waited for again. */
void edges_excuse(struct edges *es, size_t i, bool excused);
/* The edge's task in a job that is being planned. */
void edges_join(struct edges *es, size_t i, const struct mixing_moment *now);
struct sketch_pair *edges_sketch(struct edges *es, size_t i); /* For that job. */
/* The job is done: keep its gammas for others to see. */
void edges_job_done(struct edges *es);
/* Replicas that were compared and differ begin anew. */
void edges_reset_mismatched(struct edges *es);
/* After a job: who was distrusted is left alone for a while, longer each time, and whose edge has
 * gone well since then is as good as any (edges_trust.c). We have skipped so many rounds. */
void edges_judge(struct edges *es, uint64_t skipped);
/* Nothing is exchanged with it now, whatever it asks for: it was distrusted. */
bool edges_bars(const struct edges *es, const struct neighbour *b);
/* Nothing is mixed over it, and its other end is known to lie: it was distrusted, or has broken the
 * protocol. */
bool edges_found_out(const struct edges *es, const struct neighbour *b);
/* Has the distance run away again since this was last asked? */
bool edges_new_runaway(struct edges *es, size_t i);

/* ---- a restart (resume.h) ---- */

void edges_write(struct edges *es, struct state *s);
/* Choose the edges of the members that there are. Those of the checkpoint go on where they were
 * if they are between the same members, else all begin anew. We are at `beat`. */
void edges_read(struct edges *es, uint64_t beat, struct state *s);

/* ---- inside (edges_last.c) ---- */

/* Edges to vertices that the graph of the consensus phase does not want are set aside. */
void edges_set_aside(struct edges *es, size_t n_vertices);
void edges_hear_word(struct neighbour *b, const struct wire_beat *m);

/* ---- questions ---- */

/* The spec of the graph that edges are chosen by now. */
const char *edges_topology(const struct edges *es);
const struct neighbour *edges_at(const struct edges *es, size_t i);
/* Their latest beat: by deltas that are here, and by what came in order behind those. */
uint64_t neighbour_beat(const struct neighbour *b);
/* What they said of how far all are near, by delta or by word, for our beat at the latest: what
 * comes early in one run and late in another counts in neither. */
uint32_t neighbour_settled(const struct neighbour *b, uint64_t beat);
/* The spectral gap of the graph as it is, or 0 where that was not measured. */
double edges_gap(const struct edges *es);
const struct neighbour *edges_of(const struct edges *es, const struct link *l);
/* Is some replica a round older than others, and by more than `most` off (run_context_lags())? */
bool edges_lag(const struct edges *es, double most);
/* Does some open edge mix by what it held long ago (stale.h)? Then mixing may part models that
 * were near. most2: a squared distance that hardly matters. */
bool edges_stale(struct edges *es, double most2);
size_t edges_open(const struct edges *es); /* How many mix now. */

#endif
