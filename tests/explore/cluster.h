/* tests/explore/cluster.h -- runs a plan on simulated nodes, and checks what must hold. */
#ifndef TESTS_EXPLORE_CLUSTER_H
#define TESTS_EXPLORE_CLUSTER_H

#include "plan.h"

#include "peer/node/inspect.h"
#include "peer/sim/attack.h"
#include "peer/sim/faults.h"

enum { DIM_MAX = 1208, TEXT = 200 };

/* Kinds of failures. The first are checked at all times, the others after the faults. */
enum wrong {
    WRONG_CRASH,      /* The program died. */
    WRONG_PROTOCOL,   /* A correct peer was taken for a violator. */
    WRONG_REPLICAS,   /* Equal (epoch, round), other replicas. */
    WRONG_MODEL,      /* An honest model is no number or, with --byzantine, out of bounds. */
    WRONG_MEAN,       /* An exchange was not equal and opposite, or the mean has moved. */
    WRONG_ROUNDS,     /* Rounds claimed are not those done and those counted as skipped. */
    WRONG_STORM,      /* A peer dials, or is dialled, without end. */
    WRONG_STANDSTILL, /* A peer to which nothing was done does no round for long. */
    /* A peer is a member although it may not be, or two peers with one identity or name are
     * members. */
    WRONG_ADMITTED,
    WRONG_MEMORY,    /* Links, members, edges or packets beyond any need. */
    WRONG_DRIFT,     /* A published drift differs from the exact drift of its round. */
    WRONG_GATHERING, /* A peer is still joining 30 s after the last fault. */
    WRONG_EDGES,     /* ... an edge that both ends want is not open. */
    WRONG_VIEW,      /* ... two peers disagree about the members. */
    WRONG_APART,     /* ... peers in lock step are many rounds apart. */
    WRONG_END,       /* The run does not end. */
    WRONG_EXIT,      /* A peer ended with another exit code than 0. */
    WRONG_CONSENSUS, /* All said 0, and the models are apart. */
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
    uint32_t wrong; /* Bit k: enum wrong k. */
    struct finding first[WRONG_KINDS];
    uint64_t n_events;
    double simulated_s;
    uint64_t n_rounds, n_skipped; /* Over all peers and lives. */
    double drift;                 /* Exact, at the end, of those that ended with 0; or NaN. */
    double healed_s;              /* After the last fault until all was whole again; or NaN. */
    uint32_t n_drifts;            /* Number of published drift figures that were compared. */
    double worst_drift;           /* the farthest ratio from 1 among them. */
};

/* One end's view of the last exchanges with another peer. */
enum { KEPT = 8 };
struct exchange
{
    uint64_t epoch, round, a, b; /* Hashes of the replicas. */
    float coefficient;
};

struct watched
{
    struct cluster *cluster;
    uint32_t index;
    bool absent, joined, left; /* Not there now; took a model; was asked to leave. */
    /* The peer is not allowed to be a member now, so nothing is expected of it. */
    bool out;
    bool rival;        /* Another process had its identity or name when it was started. */
    int64_t since_us;  /* Start time of its process. */
    int64_t listed_us; /* Time at which it was put back on the allow-list. 0: never. */
    uint32_t named_as; /* Peer whose name it has, usually its own. */
    char name[WIRE_NAME_MAX + 1];
    bool resumes; /* The peer continues from a checkpoint, with the counts in it. */
    void (*done_layer)(void *arg, size_t from); /* Function of trainer.watch. NULL: none. */
    void *done_arg;
    uint64_t joined_round, done, drift_round, said_round;
    uint64_t n_lives;
    uint64_t seen;    /* Its beat, */
    int64_t moved_us; /* Time of the last change of `seen`. */
    /* Step counter when it last changed while the peer was not affected by a fault. */
    uint64_t beat;
    bool hurt;           /* A fault, or its after-effects, hinder the peer. */
    int64_t beat_us;     /* at this time. */
    uint64_t n_sessions; /* Sessions begun since `second_us`. */
    int64_t second_us;
    int64_t starts_us; /* Time from which its process exists. 0: from the beginning. */
    float target[DIM_MAX];
    struct exchange (*kept)[KEPT]; /* Last exchanges with each other peer. */
    uint32_t *n_kept;
    float *history; /* (rounds + 1) x dim: before this round's local steps. */
    uint8_t *has;
    uint32_t *counted; /* Members that the peer counted at that time. */
};

struct cluster
{
    struct plan plan;
    struct sim_config config;
    bool liar[PLAN_PEERS_MAX];
    uint32_t outside;  /* Faults that revoke a peer and are active now, as a set of bits. */
    uint32_t insiders; /* Peers with invented members. */
    uint32_t revoked;  /* Peers that are not on the allow-list. */
    int64_t listed_us; /* Time of the last change of the allow-list. */
    uint32_t n_ghosts; /* Members that were made up. */
    struct sim_world *world;
    struct watched peer[PLAN_PEERS_MAX];
    struct segment segment[3];
    double moved[DIM_MAX]; /* Sum of all local updates over the peers. */
    bool
        /* No exchange was interrupted: no peer died, was taken for dead, started late or ended
         * early. */
        whole;
    uint32_t down[PLAN_FAULTS_MAX]; /* Peers that each fault has taken down. */
    uint32_t hurt[PLAN_FAULTS_MAX]; /* Peers whose loop or worker each fault holds up now. */
    bool settled;     /* 30 s have passed since the last fault, and no peer has ended. */
    uint32_t unnamed; /* Peers that resolve names to wrong addresses. */
    double names;     /* and how. */
    FILE *trace;
    struct story *story; /* Or NULL. */
    struct explored *out;
};

/* Runs the plan to its end. trace, story: NULL, or where all that reaches a node is written, or
 * what is new of it (story.h). */
void cluster_run(const struct plan *p, struct explored *out, FILE *trace, FILE *story);

void cluster_wrong(struct cluster *c, enum wrong kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool cluster_alive(const struct cluster *c, uint32_t peer);
struct node_progress cluster_progress(const struct cluster *c, uint32_t peer);
const float *cluster_model(const struct cluster *c, uint32_t peer);

/* Has it to keep to anything? */
static inline bool cluster_honest(const struct cluster *c, uint32_t peer)
{
    return !(c->plan.liars & UINT32_C(1) << peer) && !c->peer[peer].out;
}
/* Makes the run of a plan. Ends the program if a text in the plan is invalid. */
void cluster_set_run(struct run *r, const struct plan *p);

/* Returns the set of peers that a process knows at its start, from records or names. */
uint32_t cluster_told(const struct cluster *c);

/* course.c: from beginning to end. */
void course_run(struct cluster *c);

/* checks.c: before an event, after a job, after its figures; 30 s after the last fault; at the end. */
uint32_t check_counted(const struct cluster *c, uint32_t peer);
void check_event(struct cluster *c, uint32_t peer, const struct node_event *ev);
void check_exchanges(struct cluster *c, uint32_t peer);
void check_progress(struct cluster *c, uint32_t peer);
/* Checks from time to time that every peer makes progress. */
void check_pace(struct cluster *c);
/* Returns whether all edges between live peers are open, no peer is joining, and all peers agree
 * on the members. tell: each violation is reported as a failure. */
bool check_whole(struct cluster *c, bool tell);
/* Returns whether a peer has found no other peer and all peers in its bootstrap list have ended,
 * so that it cannot continue. */
bool check_stranded(const struct cluster *c, uint32_t i);
void check_end(struct cluster *c);

/* liars.c: liars_set() configures the Byzantine peers; the checks are called after each job of
 * an honest peer and for each of its messages to the user. */
void liars_set(struct cluster *c);
void liars_check_model(struct cluster *c, uint32_t peer);
void liars_check_note(struct cluster *c, uint32_t peer, const char *text);
/* May it have ended apart from the others? */
bool liars_excuse(const struct cluster *c);
/* May an honest edge of it be closed? How far apart may those be that claim consensus? */
bool liars_part(const struct cluster *c, uint32_t peer);
double liars_claim(const struct cluster *c);

/* admission.c: configuration of a process, start of a process, changes of the allow-list,
 * faults, peers that start later, and rivals of one name. */
void admission_configure(struct cluster *c, uint32_t peer, struct node_config *n);
void admission_started(struct cluster *c, uint32_t peer);
void admission_changed(struct cluster *c);
void admission_apply(struct cluster *c, uint32_t fault, bool on);
uint32_t admission_later(const struct plan *p);
void admission_rival(struct cluster *c, uint32_t peer);
/* Now and then; of one peer before the end is judged; and 30 s after the last fault. */
void admission_check(struct cluster *c);
void admission_look(struct cluster *c, uint32_t peer);
void admission_settled(struct cluster *c);
/* Returns how many live peers may refuse this peer, or be refused by it, because a token has
 * expired. */
uint32_t admission_forgotten(const struct cluster *c, uint32_t peer);
/* course.c: a process of this peer ends, if it has not, and another begins. */
void cluster_start_again(struct cluster *c, uint32_t peer, bool as_new);

/* trace.c */
void trace_event(void *self, uint32_t peer, const struct node_event *ev, uint32_t other);

#endif
