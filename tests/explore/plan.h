/* tests/explore/plan.h -- what one exploration does: a cluster, a run, and what goes wrong.
 *
 * A plan is a function of a seed, and a text that a person reads and changes:
 *
 *   peers 5
 *   topology ring
 *   ...
 *   at 2.500 for 1.200 kill 2,3
 *   at 4.000 for 0.500 cut 0 1,2
 */
#ifndef TESTS_EXPLORE_PLAN_H
#define TESTS_EXPLORE_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { PLAN_PEERS_MAX = 24, PLAN_FAULTS_MAX = 24, PLAN_TEXT = 64, PLAN_SECOND = 1000 * 1000 };

#define PLAN_EVER INT64_MAX

/* Each lasts from `at` for so long. A and B are sets of peers. */
enum fault_kind {
    FAULT_KILL,    /* A's processes; then started again. */
    FAULT_REPLACE, /* The processes are killed and come back with new identities. */
    FAULT_OFF,     /* A's hosts; then on again. */
    FAULT_LEAVE,   /* A are asked to; then started again. */
    FAULT_LATE,    /* A are not there before that (at is 0). */
    FAULT_STOP,    /* A's loops. */
    FAULT_HANG,    /* A's workers. */
    FAULT_SLOW,    /* A's workers take x times as long. */
    FAULT_CUT,     /* Paths from A to B. */
    FAULT_SPLIT,   /* Paths between A and B, both ways. */
    FAULT_FLAP,    /* Paths between A and B are cut and restored every x seconds. */
    FAULT_RESET,   /* Sessions between A and B: x, y seconds until A, B hear; under 0: never. */
    /* For the peers A, names do not resolve (x = 0) or resolve to an unused address (1). */
    FAULT_NAMES,
    FAULT_FLIP,   /* A bit of what A hold of B's models. */
    FAULT_FULL,   /* A's disks take nothing. */
    FAULT_REVOKE, /* A are not on the list of members. */
    FAULT_CLONE,  /* A, one that is not there before, is started with B's identity. */
    FAULT_TWIN,   /* The same with the name of B only. */
    FAULT_FLOOD,  /* A tells of x members that do not exist. */
    FAULT_CHURN,  /* A die, and come back with new identities, every x seconds. */
    FAULT_KINDS,
    FAULT_DRAWN = FAULT_FLIP /* Number of kinds that are drawn at random: those above. */
};

struct fault
{
    enum fault_kind kind;
    int64_t at_us, for_us;
    uint32_t a, b; /* Bit i: peer i. */
    double x, y;
};

struct plan
{
    uint64_t seed; /* The network's and the trainer's. */
    uint32_t n_peers, min_peers, local_steps, dim;
    uint64_t rounds;
    char topology[PLAN_TEXT], final_topology[PLAN_TEXT], compress[PLAN_TEXT];
    uint32_t overlap;                     /* Value of --overlap. */
    bool async, average, by_name, guests; /* by_name: through bootstrap names. guests: only */
    double gamma, final_drift;            /* peer 0 brings the run. gamma 0: auto. */
    int64_t step_us, latency_us, jitter_us;
    int64_t startup_us; /* A process that is started listens at once, and lives after so long. */
    double step_spread, bytes_per_s, cut_rate;
    /* Values of --quorum, --quorum-timeout and --straggler-timeout. */
    double quorum, patience_s, worker_limit_s;
    double checkpoint_s;    /* Likewise; 0: none. */
    int64_t disk_us;        /* One is on its disk after so long. */
    char attack[PLAN_TEXT]; /* Attack of the peers in `liars` (peer/sim/attack.h). "": none. */
    uint32_t liars;         /* Bit i: peer i. */
    uint32_t tolerate;      /* Value of --byzantine. */
    bool listed;            /* The cluster has an allow-list of all peers that are not revoked. */
    uint32_t tokens;        /* Peers that are not on the allow-list and have a token. */
    double token_s;         /* Lifetime of the tokens, in seconds from the beginning. */
    double forget_s;        /* Value of --member-ttl, in seconds. 0: off. */
    uint32_t n_faults;
    struct fault fault[PLAN_FAULTS_MAX];
};

void plan_draw(struct plan *p, uint64_t seed);
/* Peers write checkpoints, and go on from them; disks may be full for a while. */
void plan_draw_disks(struct plan *p);
/* Some members lie, fewer than the run bears (liars.c). */
void plan_draw_liars(struct plan *p);
/* Lists, tokens, copied identities, made-up members (admission.c). */
void plan_draw_admission(struct plan *p);
/* Returns the peers that no peer may wait for: Byzantine ones, those that are off the allow-list
 * at some time, and those that leave permanently. */
uint32_t plan_out(const struct plan *p);
void plan_print(const struct plan *p, FILE *f);
/* False, with a line on stderr, where it is no plan. */
bool plan_read(struct plan *p, FILE *f);

/* Returns the time at which the last fault is over. A peer that does not return counts as gone
 * from that time on. */
int64_t plan_end_us(const struct plan *p);

extern const char *const fault_name[FAULT_KINDS];

/* Drawing: true with probability p; one of a NULL-terminated list. */
struct rng;
bool plan_chance(struct rng *r, double p);
const char *plan_choose(struct rng *r, const char *const *of);
/* A number of seconds, uniform in its logarithm, in microseconds that a plan's text can say. */
int64_t plan_draw_us(struct rng *r, double low_s, double high_s);
void plan_print_set(FILE *f, const char *before, uint32_t set);
uint32_t plan_read_set(const char *s); /* Reads a set of peers. 0: the text is not a set. */

#endif
