/* tests/explore/cluster.h -- runs a plan (a run with faults) on simulated nodes, and checks its
 * invariants. */
#ifndef TESTS_EXPLORE_CLUSTER_H
#define TESTS_EXPLORE_CLUSTER_H

#include "plan.h"

#include "nn/train/round_momentum.h"
#include "nn/train/tracking_momentum.h"
#include "peer/node/inspect.h"
#include "peer/sim/attack.h"
#include "peer/sim/faults.h"
#include "peer/trace/trace.h"
#include "tests/model/conform.h"

enum { DIM_MAX = 1208, TEXT = 200 };

/* Kinds of failures that the explorer finds. Kinds up to WRONG_DRIFT are checked at all times.
 * WRONG_GATHERING to WRONG_APART are checked 30 s after the last fault. The last four are checked
 * at the end of the run. */
enum wrong {
    WRONG_CRASH,    /* The process crashed while it simulated the plan. */
    WRONG_PROTOCOL, /* A correct peer was accused of a protocol violation. */
    /* The finish protocol made a step that its Promela model does not allow
     * (tests/model/conform.h). */
    WRONG_CONFORMANCE,
    WRONG_REPLICAS, /* Two ends of an edge hold different replicas at the same epoch and round. */
    /* An honest peer's model is not finite or, with --byzantine, too far from the initial model. */
    WRONG_MODEL,
    /* The two ends of an edge mixed the same exchange with different coefficients, or the sum of
     * all models is wrong. */
    WRONG_MEAN,
    /* A peer's round number is not the round of its join plus the rounds that it did and the rounds
     * that it reports as skipped. */
    WRONG_ROUNDS,
    WRONG_STORM,      /* A peer opens or accepts sessions in an endless loop. */
    WRONG_STANDSTILL, /* A training peer that no fault affects makes no progress for a long time. */
    /* A peer that is not on the allow-list is a member, or two live processes share one identity or
     * name. */
    WRONG_ADMITTED,
    WRONG_MEMORY, /* There are more links, members, edges or packets than the cluster can need. */
    /* A peer published a consensus distance that differs from the exact distance in the same
     * round. */
    WRONG_DRIFT,
    WRONG_GATHERING, /* A peer is still joining, although other peers already train. */
    WRONG_EDGES,     /* An edge that both of its ends want is not open. */
    WRONG_VIEW,      /* A peer's graph has too many or too few members. */
    WRONG_APART,     /* Peers that train in lock step are too many rounds apart. */
    WRONG_END,       /* The run does not end. */
    /* In plans with `liveness` (a minority of the peers is lost permanently, plan.h): a peer does
     * not end in time, or ends with a wrong exit code or verdict. */
    WRONG_LIVENESS,
    WRONG_EXIT,      /* A peer ended with an exit code other than 0, and no fault explains it. */
    WRONG_CONSENSUS, /* Peers that ended with exit code 0 have models that are too far apart. */
    WRONG_KINDS
};
extern const char *const wrong_name[WRONG_KINDS];

struct finding
{
    int64_t at_us;
    char text[TEXT];
};

struct explored
{
    uint32_t wrong; /* Kinds of failures that were found: bit k is kind k of enum wrong. */
    struct finding first[WRONG_KINDS];
    uint64_t n_events;
    double simulated_s;
    int64_t settles_us; /* Time at which the first peer entered the consensus phase. 0: never. */
    /* Rounds that the honest peers claim, and rounds that they report as skipped: sums over these
     * peers at the end. */
    uint64_t n_rounds, n_skipped;
    /* Exact relative consensus distance, at the end of the run, of the peers that ended with exit
     * code 0. NaN: unknown. */
    double drift;
    /* Seconds from the last fault until check_whole() returns true. NaN: it never returned true. */
    double healed_s;
    uint32_t n_drifts; /* Number of published consensus distances that were checked. */
    /* Largest error of a published consensus distance: the ratio of published to exact distance
     * that is farthest from 1. */
    double worst_drift;
    /* Number of checked steps of the finish protocol, by kind of step. */
    uint64_t n_conform[CONFORM_STEPS];
};

/* One exchange, as one end of an edge recorded it. For each pair of peers the last KEPT exchanges
 * are stored, to compare the two ends. */
enum { KEPT = 8 };
struct exchange
{
    /* epoch, round: epoch of the edge, and number of the exchange in this epoch. a, b: hashes of
     * the two replicas that the recording peer holds: a of its own model, b of the other peer's
     * model. */
    uint64_t epoch, round, a, b;
    float coefficient;
};

/* Which model of a round `history` contains. HISTORY_MODEL: the model at the start of the round, to
 * which the local steps were applied. HISTORY_MIXED: the peer was below the quorum and mixed between
 * the start of the round and the local steps, so `history` has only the model before these steps. */
enum history_state { HISTORY_NONE, HISTORY_MODEL, HISTORY_MIXED };

struct watched
{
    struct cluster *cluster;
    uint32_t index;
    /* absent: the peer has no process now. joined: it fetched its model from other peers. left: it
     * was asked to leave. */
    bool absent, joined, left;
    /* The peer is excluded from the cluster now (admission_look()), so the checks skip it. */
    bool out;
    /* Another process shares this peer's identity or name, so this peer may be the one that is
     * refused. */
    bool rival;
    /* True: the peer's next final model is corrupted before it is stored (FAULT_SPOIL). */
    bool spoils;
    int64_t since_us;  /* Simulated time at which the peer's process started. */
    bool unborn;       /* The first process of this peer has not started yet (plan.start_us). */
    int64_t listed_us; /* Time at which the peer was put back on the allow-list. 0: never. */
    uint32_t named_as; /* Index of the peer whose name this peer uses. Usually its own index. */
    char name[WIRE_NAME_MAX + 1];
    /* The peer has just resumed from a checkpoint. check_rounds() then accepts the number of rounds
     * that the peer reports, and checks later numbers against it. */
    bool resumes;
    uint64_t resumed_round; /* Round of the checkpoint from which the process resumed. 0: none. */
    /* Callback that the node set with trainer.watch(), called when a segment of the model has its
     * final value of the round. NULL: none. */
    void (*done_layer)(void *arg, size_t from);
    void *done_arg;
    uint64_t joined_round, done, drift_round, said_round;
    uint64_t n_lives;
    uint64_t seen;    /* Step counter of the peer at the last check for progress. */
    int64_t moved_us; /* Time at which the step counter `seen` last changed. */
    /* Step counter of the peer at its last progress (beat_us). */
    uint64_t beat;
    /* True: a fault stops or slows the peer's event loop or worker, or the worker still does a job
     * (computation of one round) that began during such a fault. */
    bool hurt;
    /* Last time at which the peer made progress or was allowed to make none, because of a fault or
     * of its phase. */
    int64_t beat_us;
    /* Number of sessions that the peer has begun since the time `second_us`, minus those that the
     * network has broken (check_event()). */
    uint64_t n_sessions;
    int64_t second_us;
    int64_t starts_us; /* Time at which a restarted process begins to run. 0: the process runs. */
    float target[DIM_MAX];
    struct exchange (*kept)[KEPT]; /* One row per peer: the last exchanges with that peer. */
    uint32_t *n_kept;
    /* Models of the peer at the start of each round, before its local steps: (rounds + 1) x dim. */
    float *history;
    uint8_t *has; /* For each round, an enum history_state. */
    /* Last round in which the peer mixed without local steps, because it was below the quorum.
     * UINT64_MAX: none. */
    uint64_t held_round;
    uint32_t *counted; /* Set of members that the peer counted at the start of each round. */
    /* State of the optimiser of a plan with a kind of momentum (momentum.c): moments m and v, the
     * number of their updates, and the state of the kind. */
    float m[DIM_MAX], v[DIM_MAX];
    uint64_t n_updates;
    struct round_momentum change;
    struct tracking_momentum tracking;
};

struct cluster
{
    struct plan plan;
    struct sim_config config;
    bool liar[PLAN_PEERS_MAX];
    /* Faults that take peers off the allow-list at present: bit k is fault k. */
    uint32_t outside;
    /* Set of peers that announce invented members, that is, members that do not exist. */
    uint32_t insiders;
    uint32_t revoked;  /* Set of peers that a fault has taken off the allow-list. */
    int64_t listed_us; /* Time of the last change of the allow-list. */
    uint32_t n_ghosts; /* Number of announced members that do not exist. */
    struct sim_world *world;
    struct watched peer[PLAN_PEERS_MAX];
    struct segment segment[3];
    double moved[DIM_MAX]; /* Sum of all local updates of all peers, for each parameter. */
    /* Sums of all changes of the companion vectors (trainer.h) by local steps, over all peers. */
    double moved_companion[TRAINER_COMPANIONS][DIM_MAX];
    /* True: every exchange so far was applied at both ends. False after a peer has died, was
     * declared dead, started late or ended early. check_mean() requires true. */
    bool whole;
    uint32_t down[PLAN_FAULTS_MAX]; /* For each fault, the set of peers that it has taken down. */
    /* For each fault, the set of peers whose event loop or worker it stops or slows now. */
    uint32_t hurt[PLAN_FAULTS_MAX];
    /* True: no peer had ended when the checks 30 s after the last fault were made. */
    bool settled;
    /* With `liveness`. parted: set of peers that are cut off or stopped permanently.
     * parted_in_training: the peers of this set that were training when they were cut off or
     * stopped. */
    uint32_t parted, parted_in_training;
    uint32_t unnamed; /* Set of peers that a fault now keeps from resolving bootstrap names. */
    /* Result of resolving a broken bootstrap name. 0: no address. 1: an unused address. */
    double names;
    FILE *out_trace; /* File of the trace. NULL: no trace is written. */
    /* True: the trace also contains repeated events and the failures that the checks find. */
    bool all;
    /* Writer of the trace (log of events). NULL: no trace is written. */
    struct trace *trace;
    /* State of the trace (log of events) for each peer. */
    struct trace_peer *trace_peer[PLAN_PEERS_MAX];
    /* Checker of the finish protocol. NULL: the Promela model of the protocol does not cover this
     * run. */
    struct conformance *conformance;
    struct explored *out;
};

/* Runs the plan to its end. trace: file for the events that reach the nodes (peer/trace), or NULL.
 * all: repeated events are written, too. */
void cluster_run(const struct plan *p, struct explored *out, FILE *trace, bool all);
/* Writes a line to the trace that does not belong to a particular peer. Does nothing if no trace is
 * written. */
void cluster_mark(struct cluster *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

void cluster_wrong(struct cluster *c, enum wrong kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool cluster_alive(const struct cluster *c, uint32_t peer);
struct node_progress cluster_progress(const struct cluster *c, uint32_t peer);
const float *cluster_model(const struct cluster *c, uint32_t peer);

/* Returns whether the checks apply to this peer: it is neither Byzantine nor excluded from the
 * cluster (admission_look()). */
static inline bool cluster_honest(const struct cluster *c, uint32_t peer)
{
    return !(c->plan.liars & UINT32_C(1) << peer) && !c->peer[peer].out;
}
/* Returns whether the peer is cut off or stopped permanently. The checks of other peers ignore such
 * a peer. */
static inline bool cluster_parted(const struct cluster *c, uint32_t peer)
{
    return c->parted >> peer & 1;
}
/* Makes the run description of a plan. Ends the program if a text in the plan is invalid. */
void cluster_set_run(struct run *r, const struct plan *p);

/* Returns the set of peers that each process knows at its start, by member records or by bootstrap
 * names. Bit i is peer i. */
uint32_t cluster_told(const struct cluster *c);

/* Runs a plan from beginning to end (course.c). */
void course_run(struct cluster *c);

/* Functions of checks.c. check_event() runs before the node gets an event, check_exchanges() after
 * a job of the worker (computation of one round), check_progress() when the node has updated its
 * progress figures, and check_end() at the end of the run. check_counted() returns the set of peers
 * that a peer counts as members now. */
uint32_t check_counted(const struct cluster *c, uint32_t peer);
void check_event(struct cluster *c, uint32_t peer, const struct node_event *ev);
void check_exchanges(struct cluster *c, uint32_t peer);
void check_progress(struct cluster *c, uint32_t peer);
/* Checks that every peer makes progress. Runs at least every 0.1 s of simulated time. */
void check_pace(struct cluster *c);
/* Returns whether all edges between live peers are open, no peer is joining, and all peers agree on
 * the members. With `tell`, each condition that does not hold is also reported as a failure. */
bool check_whole(struct cluster *c, bool tell);
/* Returns whether the peer is still joining and cannot continue: no honest peer that it knew at its
 * start is alive, or no live process has the run description (setting `guests`). */
bool check_stranded(const struct cluster *c, uint32_t i);
void check_end(struct cluster *c);

/* Functions of liars.c. liars_set() configures the Byzantine peers. liars_check_model() is called
 * after each job (computation of one round) of an honest peer, and liars_check_note() for each of
 * its messages to the user. */
void liars_set(struct cluster *c);
void liars_check_model(struct cluster *c, uint32_t peer);
void liars_check_note(struct cluster *c, uint32_t peer, const char *text);
/* Returns whether the attack of the Byzantine peers excuses a peer that ended without consensus. */
bool liars_excuse(const struct cluster *c);
/* liars_part() returns whether honest peers may refuse each other's deltas for a while because of
 * an attack, so that the edge between them stays closed. liars_claim() returns the largest exact
 * relative consensus distance that peers that claim consensus may have. Infinity: no limit. */
bool liars_part(const struct cluster *c, uint32_t peer);
double liars_claim(const struct cluster *c);

/* Functions of momentum.c. momentum_find() returns the kind of momentum of this name, or NULL.
 * momentum_is_valid() returns whether the kind of momentum of a plan can be combined with the run r
 * of the plan. momentum_open() runs when a process starts, and sets the fields of its trainer.
 * momentum_steps() makes the n local steps of a round. momentum_companions() returns the number of
 * vectors that peers mix in addition to the model, and momentum_companion() returns vector v of a
 * peer. momentum_check_end() checks that exchanges have not changed their sums. */
const struct momentum_kind *momentum_find(const char *name);
bool momentum_is_valid(const struct plan *p, const struct run *r);
void momentum_open(struct watched *p, struct trainer *t);
void momentum_close(struct watched *p);
void momentum_steps(struct watched *p, float *x, uint64_t round, uint32_t n);
uint32_t momentum_companions(const struct plan *p);
const float *momentum_companion(const struct watched *p, uint32_t v);
void momentum_check_end(struct cluster *c);

/* Functions of conformance.c, which check the finish protocol against its model (tests/model).
 * conformance_open() does nothing if members are Byzantine, because such a run has no certificate,
 * or if two processes have one identity, which the model does not describe. conformance_configure()
 * runs before a process starts, conformance_event() before an event, conformance_stepped() after
 * the event, and conformance_end() at the end of the run. */
void conformance_open(struct cluster *c);
void conformance_configure(struct cluster *c, uint32_t peer, struct node_config *n);
void conformance_event(struct cluster *c, uint32_t peer, const struct node_event *ev);
void conformance_stepped(struct cluster *c, uint32_t peer, const struct node_effects *fx);
void conformance_end(struct cluster *c);

/* Functions of admission.c. admission_configure() and admission_started() run when a process is
 * configured and started, admission_changed() after a change of the allow-list, admission_apply()
 * when a fault begins or ends, and admission_rival() before a restart. admission_later() returns
 * the peers that start later under the identity or name of another peer. */
void admission_configure(struct cluster *c, uint32_t peer, struct node_config *n);
void admission_started(struct cluster *c, uint32_t peer);
void admission_changed(struct cluster *c);
void admission_apply(struct cluster *c, uint32_t fault, bool on);
uint32_t admission_later(const struct plan *p);
void admission_rival(struct cluster *c, uint32_t peer);
/* admission_check() runs in each time slice, admission_look() before check_end(), and
 * admission_settled() 30 s after the last fault. */
void admission_check(struct cluster *c);
void admission_look(struct cluster *c, uint32_t peer);
void admission_settled(struct cluster *c);
/* Returns how many live peers may refuse this peer, or be refused by it, because a token has
 * expired. */
uint32_t admission_forgotten(const struct cluster *c, uint32_t peer);
/* Kills the process of this peer, if it has one, and starts another process (course.c). as_new: the
 * new process has a new identity. */
void cluster_start_again(struct cluster *c, uint32_t peer, bool as_new);

/* Returns the time in microseconds that a collective (such as an all-reduce) needs in a round for
 * its messages, which are sent one after the other (course.c). 0: the mixer uses no collective. */
double course_exchange_us(const struct plan *p);

/* Returns whether the peer's event loop or worker stopped permanently, so that the peer cannot end
 * (course.c). */
bool course_is_lost(const struct cluster *c, uint32_t peer);

/* Functions of liveness.c. liveness_part() runs when a fault begins, liveness_late() if the run is
 * not over at the time liveness_limit_us(), and liveness_end() at the end of the run. */
int64_t liveness_limit_us(const struct plan *p);
void liveness_part(struct cluster *c, const struct fault *f);
void liveness_late(struct cluster *c);
void liveness_end(struct cluster *c);
/* Returns whether enough of the initial members took part to the end: more than half of them, and
 * at least a quorum. Node n's list of initial members counts. A peer that a transient fault killed
 * in the consensus phase is not restarted, and does not count. */
bool liveness_majority(const struct cluster *c, const struct node *n);
#endif
