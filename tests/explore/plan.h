/* tests/explore/plan.h -- the plan of one exploration: a cluster, a run and its faults.
 *
 * A plan is drawn from a seed. Its text form can be read and edited. The first lines of this
 * example set the run. Each line that begins with "at" is a fault: start and duration in seconds,
 * kind, and the peers that it affects.
 *
 *   peers 5
 *   topology ring
 *   ...
 *   at 2.500 for 1.200 kill 2,3
 *   at 4.000 for 0.500 cut 0 1,2 */
#ifndef TESTS_EXPLORE_PLAN_H
#define TESTS_EXPLORE_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
    PLAN_PEERS_MAX = 24,
    PLAN_FAULTS_MAX = 24,
    PLAN_TEXT = 64,
    PLAN_SECOND = 1000 * 1000,
    /* Version of the text format of a plan, and of the function that draws a plan from a seed. */
    PLAN_VERSION = 2
};

#define PLAN_EVER INT64_MAX

/* Kinds of faults. A fault begins at the time `at_us` and lasts for `for_us`. A and B are its two
 * sets of peers; x and y are numbers, its parameters. */
enum fault_kind {
    FAULT_KILL, /* The processes of the peers in set A are killed and later started again. */
    /* The processes of the peers in set A are killed and return with new identities. */
    FAULT_REPLACE,
    FAULT_OFF,   /* The hosts of the peers in set A are switched off, and later on again. */
    FAULT_LEAVE, /* The peers in set A are asked to leave, and are later started again. */
    FAULT_LATE,  /* The peers in set A start only at the end of the fault. `at_us` is 0. */
    FAULT_STOP,  /* The event loops of the peers in set A stop. */
    FAULT_HANG,  /* The worker threads of the peers in set A hang. */
    FAULT_SLOW,  /* The workers of the peers in set A take `x` times as long for a job. */
    /* Network paths from the peers in set A to the peers in set B lose all packets. */
    FAULT_CUT,
    /* Network paths between peer sets A and B lose all packets, in both directions. */
    FAULT_SPLIT,
    /* Network paths between peer sets A and B are cut and restored every `x` seconds. */
    FAULT_FLAP,
    /* Sessions between peer sets A and B end. The peers in A notice the end after x seconds, the
     * peers in B after y seconds. A negative time means never. */
    FAULT_RESET,
    /* Bootstrap names that the peers in set A resolve give no address (x = 0) or an unused address
     * (x = 1). */
    FAULT_NAMES,
    /* The peers in set A add 1 to the first value of their replicas of the peers in set B. */
    FAULT_FLIP,
    FAULT_FULL,   /* The disks of the peers in set A are full. */
    FAULT_REVOKE, /* The peers in set A are taken off the allow-list. */
    FAULT_CLONE,  /* A new peer, A, starts with the identity of an existing peer, B. */
    FAULT_TWIN,   /* A new peer, A, starts with the name of an existing peer, B. */
    FAULT_FLOOD,  /* The peer in set A announces `x` members that do not exist. */
    /* Every `x` seconds, the peers in set A are killed or, if they are dead, return with new
     * identities. */
    FAULT_CHURN,
    /* The final model of each peer in set A changes by 2 % once, before it is stored. */
    FAULT_SPOIL,
    FAULT_KINDS,
    FAULT_DRAWN = FAULT_FLIP /* Faults from FAULT_FLIP on are not drawn by plan_draw(). */
};

struct fault
{
    enum fault_kind kind;
    int64_t at_us, for_us;
    uint32_t a, b; /* Sets of peers A and B of the fault: bit i is peer i. */
    double x, y;
};

struct plan
{
    uint64_t seed; /* Seed of the network and of the trainer. */
    uint32_t n_peers, min_peers, local_steps, dim;
    uint64_t rounds;
    char topology[PLAN_TEXT], final_topology[PLAN_TEXT], compress[PLAN_TEXT];
    uint32_t overlap;      /* Value of the option --overlap of `hearsay`. */
    char outer[PLAN_TEXT]; /* Value of --outer, the outer optimiser. "": none. */
    /* Value of --trigger, the threshold of the event trigger. 0: no trigger. */
    double trigger;
    /* Value of --momentum-kind (momentum.c). "": local steps are plain gradient steps. */
    char momentum[PLAN_TEXT];
    bool adam; /* True: the optimiser of the momentum is Adam. False: SGD. */
    /* Values of --mixer and --collective, as indices in mixer_all[] and collective_all[]. */
    uint32_t mixer, collective;
    /* async: --policy async. by_name: peers find each other by bootstrap names. guests: only peer 0
     * starts with the run description. */
    bool async, by_name, guests;
    /* gamma: consensus step size. 0: automatic. final_drift: target of the consensus distance at
     * which the consensus phase ends. */
    double gamma, final_drift;
    int64_t step_us, latency_us, jitter_us;
    int64_t startup_us; /* Time for which a restarted process accepts connections before it runs. */
    double step_spread, bytes_per_s, cut_rate;
    int64_t start_us[PLAN_PEERS_MAX]; /* Time at which each peer is started for the first time. */
    /* Error of the clock rate of each peer, in parts per million of world time. */
    double clock_ppm[PLAN_PEERS_MAX];
    /* Values of --quorum, --quorum-timeout and --straggler-timeout. */
    double quorum, patience_s, worker_limit_s;
    double checkpoint_s;    /* Interval of checkpoints in seconds. 0: no checkpoints. */
    int64_t disk_us;        /* Time until a written checkpoint is on disk, in microseconds. */
    char attack[PLAN_TEXT]; /* Attack of the peers in `liars` (peer/sim/attack.h). "": none. */
    uint32_t liars;         /* Set of Byzantine peers: bit i is peer i. */
    /* Value of --byzantine: number of Byzantine members that each peer must tolerate. */
    uint32_t tolerate;
    /* True: the cluster has an allow-list. The list contains the peers that are not revoked and
     * have no token. */
    bool listed;
    uint32_t tokens; /* Set of peers that are not on the allow-list and have a token. */
    double token_s;  /* Lifetime of the tokens, in seconds from the beginning of the run. */
    /* True: a minority of the peers is lost permanently, and the rest must end (liveness.c). */
    bool liveness;
    double forget_s; /* Value of --member-ttl, in seconds. 0: off. */
    uint32_t n_faults;
    struct fault fault[PLAN_FAULTS_MAX];
};

/* Draws the plan of a seed at random. draw: version of the drawing method, PLAN_VERSION or 1.
 * Version 1 is for the oldest recorded seeds: its plans have all features, but no start times, no
 * clock errors and only two mixers. */
void plan_draw(struct plan *p, uint64_t seed, uint32_t draw);
/* Adds checkpoints to a plan and, to some plans, a fault that kills all peers and faults that fill
 * their disks. */
void plan_draw_disks(struct plan *p);
/* Adds Byzantine peers and, in half of the plans, --byzantine with a suitable graph (liars.c). */
void plan_draw_liars(struct plan *p);
/* Adds allow-lists, tokens, copied identities, and announced members that do not exist. Each of
 * these is added to a random part of the plans (admission.c). */
void plan_draw_admission(struct plan *p);
/* Adds a fault that takes away a minority of the peers permanently, and ends all other faults
 * (liveness.c). */
void plan_draw_liveness(struct plan *p);
/* Adds a kind of momentum or --outer to a plan, and changes settings that cannot be combined with
 * it (momentum.c). */
void plan_draw_momentum(struct plan *p);
/* Returns the set of peers that the run must be able to do without, from begin to end: Byzantine
 * peers, peers that are off the allow-list at some time, and peers that leave permanently. */
uint32_t plan_out(const struct plan *p);
void plan_print(const struct plan *p, FILE *f);
/* Reads a plan. Returns false if the plan is invalid. A line that cannot be read is reported on
 * stderr. */
bool plan_read(struct plan *p, FILE *f);

/* Returns the index of a mixer in mixer_all[], or UINT32_MAX if no mixer has this name. */
uint32_t plan_mixer(const char *name);
/* Returns whether `hearsay sim` accepts the run of this plan. */
bool plan_is_valid(const struct plan *p);

/* Returns the time at which the last fault is over and all peers have been started. A permanent
 * fault is over when it begins. */
int64_t plan_end_us(const struct plan *p);

extern const char *const fault_name[FAULT_KINDS];

/* plan_chance() returns true with probability p. plan_choose() returns a random entry of a
 * NULL-terminated list. */
struct rng;
bool plan_chance(struct rng *r, double p);
const char *plan_choose(struct rng *r, const char *const *of);
/* Returns a random time in microseconds, log-uniform between low_s and high_s seconds. The time is
 * a multiple of 1 ms, because the text of a plan holds no finer times. */
int64_t plan_draw_us(struct rng *r, double low_s, double high_s);
void plan_print_set(FILE *f, const char *before, uint32_t set);
/* Reads a set of peers such as "0,2,5". Bit i of the result is peer i. Returns 0 if the text is not
 * a set. */
uint32_t plan_read_set(const char *s);

#endif
