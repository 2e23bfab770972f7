/* tests/explore/cluster.h -- runs a plan on simulated nodes, and checks what must hold. */
#ifndef TESTS_EXPLORE_CLUSTER_H
#define TESTS_EXPLORE_CLUSTER_H

#include "plan.h"

#include "peer/node/inspect.h"
#include "peer/sim/attack.h"
#include "peer/sim/faults.h"

enum { DIM_MAX = 1208, TEXT = 200 };

/* What went wrong. The first are checked at all times, the rest once faults are over. */
enum wrong {
    WRONG_CRASH,      /* The program died. */
    WRONG_PROTOCOL,   /* A correct peer was taken for a violator. */
    WRONG_REPLICAS,   /* Equal (epoch, round), other replicas. */
    WRONG_MODEL,      /* An honest model is no number or, with --byzantine, out of bounds. */
    WRONG_MEAN,       /* An exchange was not equal and opposite, or the mean has moved. */
    WRONG_ROUNDS,     /* Rounds claimed are not those done and those counted as skipped. */
    WRONG_STORM,      /* A peer dials, or is dialled, without end. */
    WRONG_STANDSTILL, /* A peer to which nothing was done does no round for long. */
    WRONG_ADMITTED,   /* Who may be no member is one, or two of one identity or name are. */
    WRONG_MEMORY,     /* Links, members, edges or packets beyond any need. */
    WRONG_DRIFT,      /* A published drift is not that of its round. */
    WRONG_GATHERING,  /* 30 s after the last fault somebody still gathers. */
    WRONG_EDGES,      /* ... an edge that both ends want is not open. */
    WRONG_VIEW,       /* ... peers do not agree on who is there. */
    WRONG_APART,      /* ... peers in lock step are many rounds apart. */
    WRONG_END,        /* The run does not end. */
    WRONG_EXIT,       /* A peer ended with another exit code than 0. */
    WRONG_CONSENSUS,  /* All said 0, and the models are apart. */
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
    uint32_t n_drifts;            /* Published figures that were compared; */
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
    bool out;                  /* It may be no member now: nothing is expected of it. */
    bool rival;                /* Somebody had its identity or name when it was started. */
    int64_t since_us;          /* When its process was started, */
    int64_t listed_us;         /* and when it was put back on the list; 0: it was not. */
    uint32_t named_as;         /* It has this peer's name, mostly its own. */
    char name[WIRE_NAME_MAX + 1];
    bool resumes; /* It goes on from a checkpoint: its counts are what that says. */
    void (*done_layer)(void *arg, size_t from); /* As struct trainer's watch; NULL: nobody does. */
    void *done_arg;
    uint64_t joined_round, done, drift_round, said_round;
    uint64_t n_lives;
    uint64_t seen;       /* Its beat, */
    int64_t moved_us;    /* and when that last changed. */
    uint64_t beat;       /* The same, as it was last seen to change where it was not hurt, */
    bool hurt;           /* By a fault, or by what it left behind. */
    int64_t beat_us;     /* at this time. */
    uint64_t n_sessions; /* Sessions begun since `second_us`. */
    int64_t second_us;
    int64_t starts_us; /* Its process has been started, and lives from then on; 0: it does. */
    float target[DIM_MAX];
    struct exchange (*kept)[KEPT]; /* Of each other peer. */
    uint32_t *n_kept;
    float *history; /* (rounds + 1) x dim: before this round's local steps. */
    uint8_t *has;
    uint32_t *counted; /* Whom it counted as members then. */
};

struct cluster
{
    struct plan plan;
    struct sim_config config;
    bool liar[PLAN_PEERS_MAX];
    uint32_t outside;  /* Revocations under way, by fault; */
    uint32_t insiders; /* who has made up members; */
    uint32_t revoked;  /* Who is not on the list, */
    int64_t listed_us; /* which changed then. */
    uint32_t n_ghosts; /* Members that were made up. */
    struct sim_world *world;
    struct watched peer[PLAN_PEERS_MAX];
    struct segment segment[3];
    double moved[DIM_MAX]; /* What local steps have done to the sum over peers. */
    bool
        whole; /* No exchange was left half done: nobody died or was taken for dead, came late or ended early. */
    uint32_t down[PLAN_FAULTS_MAX]; /* Whom a fault took. */
    uint32_t hurt[PLAN_FAULTS_MAX]; /* Whose loop or worker it holds up now. */
    bool settled;     /* 30 s have passed since the last fault, and nobody has ended. */
    uint32_t unnamed; /* Who resolves names wrongly, */
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
/* The run of a plan. Ends the program where a text of it is none. */
void cluster_set_run(struct run *r, const struct plan *p);

/* The peers that a process is told of when it starts, by records or by names. */
uint32_t cluster_told(const struct cluster *c);

/* course.c: from beginning to end. */
void course_run(struct cluster *c);

/* checks.c: before an event, after a job, after its figures; 30 s after the last fault; at the end. */
uint32_t check_counted(const struct cluster *c, uint32_t peer);
void check_event(struct cluster *c, uint32_t peer, const struct node_event *ev);
void check_exchanges(struct cluster *c, uint32_t peer);
void check_progress(struct cluster *c, uint32_t peer);
/* Now and then: does everybody do something? */
void check_pace(struct cluster *c);
/* Are all edges between those alive open, does nobody gather, do all know who is there? With
 * `tell` what is not so is a finding. */
bool check_whole(struct cluster *c, bool tell);
/* A peer that has found nobody, and all that it was told of are gone: no rule can help it. */
bool check_stranded(const struct cluster *c, uint32_t i);
void check_end(struct cluster *c);

/* liars.c: who lies, in the world's configuration; after a job of an honest peer; a line for
 * people of one. */
void liars_set(struct cluster *c);
void liars_check_model(struct cluster *c, uint32_t peer);
void liars_check_note(struct cluster *c, uint32_t peer, const char *text);
/* May it have ended apart from the others? */
bool liars_excuse(const struct cluster *c);
/* May an honest edge of it be closed? How far apart may those be that claim consensus? */
bool liars_part(const struct cluster *c, uint32_t peer);
double liars_claim(const struct cluster *c);

/* admission.c: what a process is given; it has been started; the list of members is another one;
 * faults; who is there only later, and who was started beside one of its name. */
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
/* So many that live may be refused by this peer, or refuse it, for a token whose time is over. */
uint32_t admission_forgotten(const struct cluster *c, uint32_t peer);
/* course.c: a process of this peer ends, if it has not, and another begins. */
void cluster_start_again(struct cluster *c, uint32_t peer, bool as_new);

/* trace.c */
void trace_event(void *self, uint32_t peer, const struct node_event *ev, uint32_t other);

#endif
