/* peer/node/state.h -- the inside of struct node, shared by peer/node/ only.
 *
 *   node.c    open, close, step: dispatch, arena of sends, notes
 *   links.c   sessions, HELLO, which run, heartbeats, rumours
 *   dial.c    bootstrap names, and reaching members
 *   edges.c   which edges there are; EDGE, DELTA; what is sent again
 *   train.c   phases: gathering, training, settling, serving
 *   work.c    the job: planned, done, reported
 *   serve.c   what others ask: models, status; "we are finished"
 *
 * Each step handles its event, then lets every part look at the clock; all of
 * that is idempotent, so no part schedules anything but the common tick.
 */
#ifndef PEER_NODE_STATE_H
#define PEER_NODE_STATE_H

#include "gossip/mixers/mixing.h"
#include "nn/math/rng.h"
#include "peer/node/node.h"
#include "topology/topology.h"

enum {
    NODE_SEED_ADDRESSES = 64 /* A bootstrap name may stand for so many; further ones are dropped. */
};

/* Times, in microseconds; the LAN's defaults of the design. */
enum node_time {
    TICK_US = 100 * 1000,
    HEARTBEAT_US = 500 * 1000,
    SILENT_US = 3 * 1000 * 1000,     /* Edge paused, peer accused. */
    DEAD_LINK_US = 10 * 1000 * 1000, /* A silent link is hung up. */
    REDIAL_MIN_US = 100 * 1000,
    YIELD_US = 2 * 1000 * 1000, /* The larger id leaves dialling to the smaller. */
    REDIAL_MAX_US = 5 * 1000 * 1000,
    DEAD_REDIAL_US = 30 * 1000 * 1000,
    SEED_US = 30 * 1000 * 1000,
    SEED_ALONE_US = 2 * 1000 * 1000,
    ENTROPY_US = 10 * 1000 * 1000, /* All we know, to one link. */
    SURPLUS_US = 15 * 1000 * 1000, /* An idle link that no edge needs. */
    QUIET_US = 200 * 1000,         /* No edge opened for so long, before round 0: sessions
                                         * that crossed have been sorted out. */
    GRACE_US = 3 * 1000 * 1000,    /* For bootstrap to answer, before going alone. */
    OPENING_US = 10 * 1000 * 1000, /* For all edges to open, before round 0. */
    MODEL_US = 20 * 1000 * 1000,   /* For a neighbour to send its model. */
    STUCK_US = 2 * 1000 * 1000,    /* Lock step that does not move: see waits_for(). */
    STALL_US = 30 * 1000 * 1000,   /* Last phase without any exchange. */
    SUSPECT_US = 7 * 1000 * 1000,
    CONFIRMED_US = 2 * 1000 * 1000
};

enum { SETTLE_ROUNDS_MAX = 5000, SETTLED_FAR = 1 << 30 };

/* One session. */
struct link
{
    bool used, dialled, hello, observer, same_run, started, finished, doomed;
    bool opened, violated; /* An edge mixed on it; it ends for a violation. */
    uint32_t number;
    uint8_t id[WIRE_ID_BYTES];
    int64_t heard_us, up_us;
    uint64_t boot;   /* Their process drew it when it started. */
    uint64_t round;  /* They have done so many rounds of the run, as they last said. */
    bool edge_heard; /* Their EDGE came before we had the edge. */
    struct wire_edge edge;
    bool model_wanted; /* They want our model at or after this round. */
    uint64_t model_round;
};

/* Trying to reach an address, with back-off. */
struct redial
{
    bool busy;
    uint32_t tag;
    int64_t next_us, backoff_us;
};

/* A session with a peer that has said who it is. */
static inline bool link_talks(const struct link *l)
{
    return l->used && l->hello && !l->observer;
}

/* A neighbour in the topology, and our edge to it. */
struct neighbour
{
    struct edge edge;
    struct link *link;    /* NULL: none now. */
    bool wanted;          /* By the present topology. */
    bool must_ask;        /* EDGE has to be sent on this link. */
    bool grace;           /* (Re)opened in the middle of the run: nobody waits */
    uint64_t grace_round; /* for it until a delta of a later round has come. */
    int64_t lost_us;      /* Since when there is no link. */
    double gamma;         /* The edge's, as the last job left it: the worker's own
                         * may change under our eyes. */
    uint32_t n_runaways;  /* So many that the edge's gamma counted have been told to the user. */
    struct redial redial;
    uint32_t next_address;
};

struct seed
{
    const char *name;
    bool busy, warned;
    int64_t next_us;
    uint32_t n;
    struct
    {
        char address[WIRE_ADDRESS_MAX + 1];
        bool busy, self;
        uint32_t tag;
    } at[NODE_SEED_ADDRESSES];
};

/* What the worker does and what came of it. */
struct node_job
{
    bool steps, evaluate;
    uint64_t evaluate_samples;
    struct packet *snapshot; /* Taken now, */
    bool at_window;          /* or only if a drift window begins. */
    bool members;            /* keys[] are new to the trainer. */
    int members_error;       /* What it said to them: 0 or -ENOMEM. */
    uint64_t *keys;
    size_t n_keys, cap_keys;
    struct sketch_moment moment;
    struct sketch_pair **pairs;
    size_t cap_pairs;
    struct trainer_report trained, tested;
    int64_t compute_us, mix_us;
};

struct node
{
    struct node_config config;
    struct rng rng;
    int64_t now_us, next_tick_us, heartbeat_us, entropy_us, dead_redial_us;
    int64_t begun_us, gathered_us, idle_since_us, exchange_us;
    int64_t opened_us;     /* When the last edge opened. */
    int64_t not_before_us; /* Asynchronous last phase: no faster than training was. */
    struct node_effects *fx;
    uint8_t *out; /* Heads of this step's sends. */
    size_t n_out, cap_out;
    size_t head_at[NODE_SENDS_MAX];

    struct members *members;
    uint64_t view; /* The edges were chosen for this view of the members. */
    struct link links[NODE_LINKS_MAX];
    struct seed *seeds; /* config.n_bootstrap of them. */
    struct redial dead;
    uint32_t next_tag;
    uint32_t vertices[WIRE_MEMBERS_MAX];
    uint8_t scratch[WIRE_CONTROL_MAX]; /* For one control message. */
    struct wire_batch batch; /* It holds what a MEMBERS message being read or written says. */

    enum node_phase phase;
    bool has_run, has_model, ready, working, stopping, draining, over;
    uint64_t settling_window; /* Figures of windows after this one count. */
    bool window_due;          /* The next job begins one: the first of a last phase in lock step. */
    int exit_code;
    struct run run;
    char run_text[WIRE_RUN_MAX + 1];
    size_t n_run_text;
    struct trainer trainer;
    struct mixing mixing;
    struct packet_pool models;
    struct packet *held;      /* In this step's sends; released in the next. */
    struct neighbour **edges; /* In neighbour order. */
    size_t n_edges, cap_edges;
    uint32_t eccentricity, reach; /* Our own, and vertex 0's. */
    uint64_t round, settle_rounds;
    bool by_drift; /* --compress auto: deltas take the ladder's rung. */
    struct ladder ladder;
    float *before; /* x before the local steps of a job. */
    double spread; /* It is graph_spread() at our vertex: see topology.h. */
    struct verdict verdict;
    struct node_job job;
    uint32_t model_link; /* Whom we asked for a model; UINT32_MAX: nobody. */
    int64_t model_asked_us;
    struct node_progress progress;
};

/* node.c */
struct link *node_link(struct node *n, uint32_t number);
void node_send(struct node *n, const struct link *l, bool bulk, const uint8_t *head, size_t n_head,
               struct packet *body);
void node_note(struct node *n, enum note_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void node_violation(struct node *n, struct link *l, const char *what);
void node_hang_up(struct node *n, struct link *l, bool violation);
/* The end of this node, after what is queued: effects.exit. */
void node_end(struct node *n, int exit_code);
int64_t node_jitter(struct node *n, int64_t d); /* d +- 20 %: no herd. */
bool node_same_id(const uint8_t *a, const uint8_t *b);

/* links.c */
void links_start(struct node *n);
void links_up(struct node *n, const struct node_event *ev);
void links_down(struct node *n, const struct node_event *ev);
void links_hello(struct node *n, struct link *l, const struct wire_message *m);
void links_members(struct node *n, struct link *l, const struct wire_message *m);
void links_ping(struct node *n, struct link *l, const struct wire_message *m);
void links_tick(struct node *n);
void links_say_hello(struct node *n, struct link *l);
void links_news(struct node *n); /* Pass on what changed among the members. */
struct link *links_to(struct node *n, const uint8_t id[WIRE_ID_BYTES]);
bool links_any(const struct node *n); /* A session with any peer. */

/* dial.c */
void dial_start(struct node *n);
void dial_resolved(struct node *n, const struct node_event *ev);
void dial_failed(struct node *n, uint32_t tag);
/* The dial with this tag is over; `self`: we reached ourselves. */
void dial_over(struct node *n, uint32_t tag, bool self, bool failed);
void dial_neighbour(struct node *n, struct neighbour *b);
/* A session has ended that was of no use: no hurry to have it again. */
void dial_in_vain(struct node *n, const struct link *l);
void dial_tick_seeds(struct node *n);
void dial_tick_dead(struct node *n);

/* edges.c */
void edges_update(struct node *n); /* Topology, asking, agreeing, sending. */
void edges_edge(struct node *n, struct link *l, const struct wire_message *m);
void edges_edge_close(struct node *n, struct link *l, const struct wire_message *m);
void edges_delta(struct node *n, struct link *l, const struct wire_message *m);
void edges_link_lost(struct node *n, struct link *l);
void edges_heard(struct node *n, struct link *l);
void edges_finished(struct node *n, struct link *l);
void edges_tick(struct node *n);
void edges_close_all(struct node *n);
size_t edges_open(const struct node *n); /* How many mix now. */
struct neighbour *edges_of(struct node *n, const struct link *l);

/* train.c */
/* The run is known: build what depends on it. */
void train_take_run(struct node *n, const struct run *run);
void train_update(struct node *n); /* Start a phase or a job if it is time. */
void train_model(struct node *n, struct link *l, const struct wire_message *m);
/* A bound in the last phase on our own distance, |x_i - mean| / |mean|: at
 * most what it was when the last window began, since mixing alone only
 * contracts. In lock step, once one window of the last phase has let the fast
 * modes of the graph die, it shrinks as our differences with the neighbours
 * do; twice that is still a bound. */
double train_own_distance(const struct node *n);
/* How many hops around us are known to be under --final-drift: 0 if we are
 * not, else one more than the least of our neighbours said. Once it passes our
 * eccentricity, everybody was. */
uint32_t train_settled(const struct node *n);
/* Rounds done, those of the last phase included: what lock step counts. */
uint64_t train_beat(const struct node *n);
void train_close(struct node *n);

/* work.c */
void work_start(struct node *n); /* Plan a job of the present phase. */
void work_last(struct node *n);  /* Nothing more is mixed: measure and test. */
void work_done(struct node *n);

/* serve.c */
void serve_model_req(struct node *n, struct link *l, const struct wire_message *m);
void serve_status_req(struct node *n, struct link *l, const struct wire_message *m);
void serve_models(struct node *n, struct packet *model); /* Takes it; to all who wait. */
void serve_say_finished(struct node *n, struct link *l);

#endif
