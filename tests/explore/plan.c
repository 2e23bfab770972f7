/* tests/explore/plan.c -- draws plans, writes and reads their text. */
#include "cluster.h"

#include "nn/math/rng.h"
#include "topology/topology.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const fault_name[FAULT_KINDS] = {
    [FAULT_KILL] = "kill",     [FAULT_REPLACE] = "replace", [FAULT_OFF] = "off",
    [FAULT_LEAVE] = "leave",   [FAULT_LATE] = "late",       [FAULT_STOP] = "stop",
    [FAULT_HANG] = "hang",     [FAULT_SLOW] = "slow",       [FAULT_CUT] = "cut",
    [FAULT_SPLIT] = "split",   [FAULT_FLAP] = "flap",       [FAULT_RESET] = "reset",
    [FAULT_NAMES] = "names",   [FAULT_FLIP] = "flip",       [FAULT_FULL] = "full",
    [FAULT_REVOKE] = "revoke", [FAULT_CLONE] = "clone",     [FAULT_TWIN] = "twin",
    [FAULT_FLOOD] = "flood",   [FAULT_CHURN] = "churn"};

/* ---- drawing ---- */

static double log_uniform(struct rng *r, double low, double high)
{
    return low * exp((double)rng_unit(r) * log(high / low));
}

bool plan_chance(struct rng *r, double p)
{
    return (double)rng_unit(r) < p;
}

const char *plan_choose(struct rng *r, const char *const *of)
{
    size_t n = 0;
    while (of[n] != NULL)
        n++;
    return of[rng_below(r, n)];
}

/* Draws one peer in most cases, several peers sometimes, and rarely all peers. */
static uint32_t draw_set(struct rng *r, uint32_t n)
{
    uint32_t all = (UINT32_C(1) << n) - 1, set = 0;
    if (plan_chance(r, 0.05))
        return all;
    uint32_t k = plan_chance(r, 0.7) ? 1 : 1 + (uint32_t)rng_below(r, n);
    while (k-- > 0)
        set |= UINT32_C(1) << rng_below(r, n);
    return set;
}

int64_t plan_draw_us(struct rng *r, double low_s, double high_s)
{
    int64_t ms = (int64_t)(log_uniform(r, low_s, high_s) * 1e3);
    /* The time is rounded down to milliseconds, because the text of a plan holds no finer times. */
    return ms * 1000;
}

static void draw_pair(struct rng *r, uint32_t n, struct fault *f)
{
    uint32_t all = (UINT32_C(1) << n) - 1;
    f->a = draw_set(r, n);
    f->b = plan_chance(r, 0.5) ? all & ~f->a : draw_set(r, n) & ~f->a;
}

static void draw_fault(struct rng *r, const struct plan *p, int64_t length_us, struct fault *f)
{
    *f = (struct fault){.kind = (enum fault_kind)rng_below(r, FAULT_DRAWN)};
    f->at_us = (int64_t)((double)rng_unit(r) * (double)length_us) / 1000 * 1000;
    f->for_us = plan_draw_us(r, 0.01, plan_chance(r, 0.2) ? 120 : 15);
    f->a = draw_set(r, p->n_peers);
    switch (f->kind) {
    case FAULT_KILL:
    case FAULT_OFF:
    case FAULT_LEAVE:
        if (plan_chance(r, 0.15))
            f->for_us = PLAN_EVER;
        break;
    case FAULT_LATE:
        f->at_us = 0;
        break;
    case FAULT_SLOW:
        f->x = floor(log_uniform(r, 2, 50));
        break;
    case FAULT_FLAP:
        f->x = round(log_uniform(r, 0.05, 5) * 1e3) / 1e3;
        draw_pair(r, p->n_peers, f);
        break;
    case FAULT_RESET:
        f->for_us = 0;
        f->x = plan_chance(r, 0.2)   ? -1
               : plan_chance(r, 0.4) ? 0
                                     : round(log_uniform(r, 0.01, 20) * 1e3) / 1e3;
        f->y = plan_chance(r, 0.2)   ? -1
               : plan_chance(r, 0.4) ? 0
                                     : round(log_uniform(r, 0.01, 20) * 1e3) / 1e3;
        draw_pair(r, p->n_peers, f);
        break;
    case FAULT_CUT:
    case FAULT_SPLIT:
        draw_pair(r, p->n_peers, f);
        break;
    case FAULT_NAMES:
        f->x = (double)rng_below(r, 2);
        break;
    case FAULT_REPLACE:
    case FAULT_STOP:
    case FAULT_HANG:
    case FAULT_FLIP:
    case FAULT_FULL:
    case FAULT_REVOKE:
    case FAULT_CLONE:
    case FAULT_TWIN:
    case FAULT_FLOOD:
    case FAULT_CHURN:
    case FAULT_KINDS:
        break;
    }
}

/* Keeps at least two peers running to the end: a permanent fault that would leave fewer is limited
 * to 5 s. Lowers min_peers to the number of peers that stay. */
static void leave_some(struct plan *p)
{
    uint32_t gone = 0, all = (UINT32_C(1) << p->n_peers) - 1;
    for (uint32_t i = 0; i < p->n_faults; i++) {
        struct fault *f = &p->fault[i];
        if (f->for_us != PLAN_EVER)
            continue;
        if ((uint32_t)__builtin_popcount(all & ~(gone | f->a)) < 2)
            f->for_us = 5 * PLAN_SECOND;
        else
            gone |= f->a;
    }
    uint32_t stay = (uint32_t)__builtin_popcount(all & ~gone);
    if (p->min_peers > stay)
        p->min_peers = stay;
}

static void draw_run(struct plan *p, struct rng *r)
{
    static const char *const topology[] = {"ring",      "ring",        "complete",  "torus",
                                           "regular:3", "exponential", "regular:4", NULL};
    static const char *const codec[] = {"auto", "auto", "qsgd:4",    "qsgd:4", "topk:0.1",
                                        "sign", "none", "lowrank:1", NULL};
    static const char *const update[] = {"topk:0.1", "qsgd:4", "sign", "none", NULL};
    p->n_peers =
        plan_chance(r, 0.6) ? 2 + (uint32_t)rng_below(r, 7) : 2 + (uint32_t)rng_below(r, 23);
    snprintf(p->topology, PLAN_TEXT, "%s", plan_choose(r, topology));
    p->average = plan_chance(r, 0.1);
    p->async = !p->average && plan_chance(r, 0.35);
    snprintf(p->compress, PLAN_TEXT, "%s", plan_choose(r, p->average ? update : codec));
    p->local_steps = plan_chance(r, 0.6) ? 1 : 1 + (uint32_t)rng_below(r, 8);
    p->rounds = (uint64_t)log_uniform(r, 30, 300);
    /* Peers measure the drift only if deltas are long, that is with 1,208 parameters. */
    p->dim = plan_chance(r, 0.15) ? 1208 : 48;
    if (p->dim > 48)
        p->rounds *= 2;
    p->min_peers = plan_chance(r, 0.6) ? p->n_peers : 1 + (uint32_t)rng_below(r, p->n_peers);
    p->final_drift = 1e-3;
    p->by_name = plan_chance(r, 0.5);
    p->guests = p->by_name && plan_chance(r, 0.3);
}

/* Draws --quorum from a separate random stream. Seeds that are older than this option therefore
 * keep their plans. */
static void draw_patience(struct plan *p, uint64_t seed)
{
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, 0xe8, 1));
    p->quorum = plan_chance(&r, 0.7) ? 0.5 : (double)rng_below(&r, 10) / 10;
    p->patience_s = plan_chance(&r, 0.3) ? 600 : floor(log_uniform(&r, 3, 60));
    p->worker_limit_s = 15;
}

/* Draws --overlap from a separate random stream. Seeds that are older than this option therefore
 * keep their plans. */
static void draw_overlap(struct plan *p, uint64_t seed)
{
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, 0xe8, 5));
    bool any = plan_chance(&r, 0.35) && !p->average;
    p->overlap = !any                   ? RUN_OVERLAP_NONE
                 : plan_chance(&r, 0.4) ? RUN_OVERLAP_LAYER
                                        : RUN_OVERLAP_ROUND;
}

/* Gives some plans a graph that changes by round (base:K), which needs lock step and a fine codec.
 * Draws it from a separate random stream, so that older seeds keep their plans. */
static void draw_rota(struct plan *p, uint64_t seed)
{
    static const char *const topology[] = {"base:1", "base:1", "base:2", "base:4", NULL};
    static const char *const codec[] = {"qsgd:4", "none", NULL};
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, 0xe8, 9));
    if (p->async || p->average || p->overlap == RUN_OVERLAP_ROUND || !plan_chance(&r, 0.12))
        return;
    snprintf(p->topology, PLAN_TEXT, "%s", plan_choose(&r, topology));
    snprintf(p->compress, PLAN_TEXT, "%s", plan_choose(&r, codec));
}

/* Gives some plans in lock step a different graph in the consensus phase. Draws it from a separate
 * random stream, so that older seeds keep their plans. */
static void draw_last(struct plan *p, uint64_t seed)
{
    static const char *const topology[] = {"base:1", "base:1", "base:4", "complete", "ring", NULL};
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, 0xe8, 13));
    bool has = !p->async && !p->average && plan_chance(&r, 0.15);
    snprintf(p->final_topology, PLAN_TEXT, "%s", has ? plan_choose(&r, topology) : RUN_SAME);
}

void plan_draw(struct plan *p, uint64_t seed)
{
    struct rng r = rng_stream(rng_key(seed, RNG_TEST, 0xe8, 0));
    *p = (struct plan){.seed = seed};
    draw_run(p, &r);
    int64_t length_us = plan_draw_us(&r, 4, 90);
    p->latency_us = (int64_t)log_uniform(&r, 50, 20000);
    p->jitter_us = plan_chance(&r, 0.5) ? 0 : (int64_t)log_uniform(&r, 10, 50000);
    p->startup_us = plan_chance(&r, 0.4) ? 0 : plan_draw_us(&r, 0.002, 5);
    p->step_spread = plan_chance(&r, 0.6) ? 0 : round((double)rng_unit(&r) * 30) / 10;
    p->bytes_per_s = plan_chance(&r, 0.7) ? 0 : floor(log_uniform(&r, 1e5, 1e8));
    p->cut_rate = plan_chance(&r, 0.85) ? 0 : round(log_uniform(&r, 1e-4, 3e-2) * 1e5) / 1e5;
    draw_patience(p, seed);
    draw_overlap(p, seed);
    draw_rota(p, seed);
    draw_last(p, seed);
    uint32_t n = (uint32_t)rng_below(&r, 7);
    for (uint32_t i = 0; i < n; i++) {
        struct fault *f = &p->fault[p->n_faults];
        draw_fault(&r, p, length_us, f);
        bool two = f->kind == FAULT_CUT || f->kind == FAULT_SPLIT || f->kind == FAULT_FLAP
                   || f->kind == FAULT_RESET;
        bool idle = (two && f->b == 0) || (f->kind == FAULT_NAMES && !p->by_name)
                    || (f->kind == FAULT_LATE && (f->a & 1));
        p->n_faults += !idle;
    }
    leave_some(p);
    /* Half of all runs continue for at least 32 s after the last fault, so that the checks that
     * follow the faults are made. */
    /* The time of a local step, step_us, is still 0 here, so plan_end_us() adds no time for slow
     * jobs. */
    if (plan_chance(&r, 0.5))
        length_us += plan_end_us(p) + 32 * PLAN_SECOND;
    p->step_us = length_us / (int64_t)(p->rounds * p->local_steps);
}

/* Draws checkpoints and disk faults from a separate random stream, so that older seeds keep their
 * plans. In half of the plans all peers are killed at once. */
void plan_draw_disks(struct plan *p)
{
    struct rng r = rng_stream(rng_key(p->seed, RNG_TEST, 0xe8, 2));
    double length_s = 1e-6 * (double)p->step_us * (double)(p->rounds * p->local_steps);
    p->checkpoint_s = round(log_uniform(&r, 0.3, fmax(length_s / 4, 0.6)) * 1e3) / 1e3;
    p->disk_us = plan_draw_us(&r, 0.001, 2);
    if (p->n_faults < PLAN_FAULTS_MAX && plan_chance(&r, 0.5))
        p->fault[p->n_faults++] = (struct fault){.kind = FAULT_KILL,
                                                 .at_us = plan_draw_us(&r, 0.1, length_s),
                                                 .for_us = plan_draw_us(&r, 0.01, 5),
                                                 .a = (UINT32_C(1) << p->n_peers) - 1};
    if (p->n_faults < PLAN_FAULTS_MAX && plan_chance(&r, 0.3))
        p->fault[p->n_faults++] = (struct fault){.kind = FAULT_FULL,
                                                 .at_us = plan_draw_us(&r, 0.1, length_s),
                                                 .for_us = plan_draw_us(&r, 0.1, 20),
                                                 .a = draw_set(&r, p->n_peers)};
}

int64_t plan_end_us(const struct plan *p)
{
    int64_t end = 0;
    for (uint32_t i = 0; i < p->n_faults; i++) {
        const struct fault *f = &p->fault[i];
        int64_t until = f->at_us + (f->for_us == PLAN_EVER ? 0 : f->for_us);
        double late = 0; /* A job that begins while a worker is slow stays slow until its end. */
        if (f->kind == FAULT_RESET)
            late = 1e6 * fmax(f->x, f->y);
        else if (f->kind == FAULT_SLOW && f->for_us != PLAN_EVER)
            late = f->x * (double)p->step_us * p->local_steps * (1 + p->step_spread);
        if (late > 0)
            until += (int64_t)late;
        end = until > end ? until : end;
    }
    /* Sessions are lost at random during the first half of the run. */
    int64_t half = p->step_us * (int64_t)(p->rounds * p->local_steps) / 2;
    if (p->cut_rate > 0 && half > end)
        end = half;
    return end;
}

/* ---- its text ---- */

void plan_print_set(FILE *f, const char *before, uint32_t set)
{
    for (uint32_t i = 0; i < PLAN_PEERS_MAX; i++)
        if (set & UINT32_C(1) << i) {
            fprintf(f, "%s%" PRIu32, before, i);
            before = ",";
        }
}

static void print_fault(const struct fault *t, FILE *f)
{
    fprintf(f, "at %.3f for ", (double)t->at_us * 1e-6);
    if (t->for_us == PLAN_EVER)
        fprintf(f, "ever");
    else
        fprintf(f, "%.3f", (double)t->for_us * 1e-6);
    fprintf(f, " %s", fault_name[t->kind]);
    plan_print_set(f, " ", t->a);
    if (t->b != 0)
        plan_print_set(f, " ", t->b);
    if (t->kind == FAULT_SLOW || t->kind == FAULT_FLAP || t->kind == FAULT_NAMES
        || t->kind == FAULT_RESET || t->kind == FAULT_FLOOD || t->kind == FAULT_CHURN)
        fprintf(f, " %g", t->x);
    if (t->kind == FAULT_RESET)
        fprintf(f, " %g", t->y);
    fprintf(f, "\n");
}

void plan_print(const struct plan *p, FILE *f)
{
    fprintf(f,
            "seed %" PRIu64 "\ndim %" PRIu32 "\npeers %" PRIu32 "\nmin-peers %" PRIu32
            "\nlocal-steps %" PRIu32 "\nrounds %" PRIu64 "\n",
            p->seed, p->dim, p->n_peers, p->min_peers, p->local_steps, p->rounds);
    fprintf(f, "topology %s\ncompress %s\npolicy %s\nmixer %s\njoin %s\nguests %s\n", p->topology,
            p->compress, p->async ? "async" : "sync", p->average ? "average" : "choco",
            p->by_name ? "names" : "known", p->guests ? "yes" : "no");
    fprintf(
        f,
        "gamma %g\nfinal-drift %g\nstep-us %" PRId64 "\nlatency-us %" PRId64 "\njitter-us %" PRId64
        "\nstartup-us %" PRId64
        "\nstep-spread %g\nbandwidth %g\ncut-rate %g\nquorum %g\npatience %g\nworker-limit %g\n",
        p->gamma, p->final_drift, p->step_us, p->latency_us, p->jitter_us, p->startup_us,
        p->step_spread, p->bytes_per_s, p->cut_rate, p->quorum, p->patience_s, p->worker_limit_s);
    if (strcmp(p->final_topology, RUN_SAME) != 0)
        fprintf(f, "final-topology %s\n", p->final_topology);
    if (p->overlap > 0)
        fprintf(f, "overlap %" PRIu32 "\n", p->overlap);
    if (p->checkpoint_s > 0)
        fprintf(f, "checkpoint %g\ndisk-us %" PRId64 "\n", p->checkpoint_s, p->disk_us);
    if (p->tolerate > 0)
        fprintf(f, "tolerate %" PRIu32 "\n", p->tolerate);
    if (p->liars != 0) {
        fprintf(f, "attack %s", p->attack);
        plan_print_set(f, ":", p->liars);
        fprintf(f, "\n");
    }
    if (p->listed)
        fprintf(f, "listed yes\n");
    if (p->tokens != 0) {
        fprintf(f, "tokens");
        plan_print_set(f, " ", p->tokens);
        fprintf(f, "\ntoken %g\n", p->token_s);
    }
    if (p->forget_s > 0)
        fprintf(f, "forget %g\n", p->forget_s);
    for (uint32_t i = 0; i < p->n_faults; i++)
        print_fault(&p->fault[i], f);
}

uint32_t plan_read_set(const char *s)
{
    uint32_t set = 0;
    while (s != NULL && *s != '\0') {
        char *end;
        unsigned long i = strtoul(s, &end, 10);
        if (end == s || i >= PLAN_PEERS_MAX)
            return 0;
        set |= UINT32_C(1) << i;
        s = *end == ',' ? end + 1 : end;
    }
    return set;
}

static bool read_fault(struct fault *f, char *word[8], int n)
{
    if (n < 6 || strcmp(word[2], "for") != 0)
        return false;
    *f = (struct fault){.kind = FAULT_KINDS};
    for (int k = 0; k < FAULT_KINDS; k++)
        if (strcmp(word[4], fault_name[k]) == 0)
            f->kind = (enum fault_kind)k;
    f->at_us = (int64_t)llround(atof(word[1]) * 1e6);
    f->for_us = strcmp(word[3], "ever") == 0 ? PLAN_EVER : (int64_t)llround(atof(word[3]) * 1e6);
    f->a = plan_read_set(word[5]);
    int next = 6;
    if (f->kind == FAULT_CUT || f->kind == FAULT_SPLIT || f->kind == FAULT_FLAP
        || f->kind == FAULT_RESET || f->kind == FAULT_FLIP || f->kind == FAULT_CLONE
        || f->kind == FAULT_TWIN)
        f->b = next < n ? plan_read_set(word[next++]) : 0;
    if (next < n)
        f->x = atof(word[next++]);
    if (next < n)
        f->y = atof(word[next++]);
    return f->kind != FAULT_KINDS && f->a != 0 && next == n;
}

/* Reads "KIND:PEERS", for example "alie:3,7". */
static bool read_attack(struct plan *p, const char *value)
{
    size_t n = strcspn(value, ":");
    snprintf(p->attack, PLAN_TEXT, "%.*s", (int)n, value);
    p->liars = value[n] == ':' ? plan_read_set(value + n + 1) : 0;
    return p->liars != 0;
}

static bool read_setting(struct plan *p, const char *key, const char *value)
{
    const struct
    {
        const char *key;
        uint32_t *u32;
        int64_t *i64;
        double *real;
        char *text;
    } table[] = {{"dim", &p->dim, NULL, NULL, NULL},
                 {"peers", &p->n_peers, NULL, NULL, NULL},
                 {"min-peers", &p->min_peers, NULL, NULL, NULL},
                 {"local-steps", &p->local_steps, NULL, NULL, NULL},
                 {"step-us", NULL, &p->step_us, NULL, NULL},
                 {"latency-us", NULL, &p->latency_us, NULL, NULL},
                 {"jitter-us", NULL, &p->jitter_us, NULL, NULL},
                 {"startup-us", NULL, &p->startup_us, NULL, NULL},
                 {"gamma", NULL, NULL, &p->gamma, NULL},
                 {"final-drift", NULL, NULL, &p->final_drift, NULL},
                 {"step-spread", NULL, NULL, &p->step_spread, NULL},
                 {"bandwidth", NULL, NULL, &p->bytes_per_s, NULL},
                 {"quorum", NULL, NULL, &p->quorum, NULL},
                 {"patience", NULL, NULL, &p->patience_s, NULL},
                 {"worker-limit", NULL, NULL, &p->worker_limit_s, NULL},
                 {"checkpoint", NULL, NULL, &p->checkpoint_s, NULL},
                 {"disk-us", NULL, &p->disk_us, NULL, NULL},
                 {"token", NULL, NULL, &p->token_s, NULL},
                 {"forget", NULL, NULL, &p->forget_s, NULL},
                 {"tolerate", &p->tolerate, NULL, NULL, NULL},
                 {"overlap", &p->overlap, NULL, NULL, NULL},
                 {"cut-rate", NULL, NULL, &p->cut_rate, NULL},
                 {"topology", NULL, NULL, NULL, p->topology},
                 {"final-topology", NULL, NULL, NULL, p->final_topology},
                 {"compress", NULL, NULL, NULL, p->compress}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(table[i].key, key) != 0)
            continue;
        if (table[i].u32 != NULL)
            *table[i].u32 = (uint32_t)strtoul(value, NULL, 10);
        if (table[i].i64 != NULL)
            *table[i].i64 = strtoll(value, NULL, 10);
        if (table[i].real != NULL)
            *table[i].real = atof(value);
        if (table[i].text != NULL)
            snprintf(table[i].text, PLAN_TEXT, "%s", value);
        return true;
    }
    if (strcmp(key, "seed") == 0)
        p->seed = strtoull(value, NULL, 10);
    else if (strcmp(key, "rounds") == 0)
        p->rounds = strtoull(value, NULL, 10);
    else if (strcmp(key, "policy") == 0)
        p->async = strcmp(value, "async") == 0;
    else if (strcmp(key, "mixer") == 0)
        p->average = strcmp(value, "average") == 0;
    else if (strcmp(key, "join") == 0)
        p->by_name = strcmp(value, "names") == 0;
    else if (strcmp(key, "guests") == 0)
        p->guests = strcmp(value, "yes") == 0;
    else if (strcmp(key, "listed") == 0)
        p->listed = strcmp(value, "yes") == 0;
    else if (strcmp(key, "tokens") == 0)
        p->tokens = plan_read_set(value);
    else if (strcmp(key, "attack") == 0)
        return read_attack(p, value);
    else
        return false;
    return true;
}

bool plan_read(struct plan *p, FILE *f)
{
    char line[256];
    *p = (struct plan){.seed = 1,
                       .dim = 48,
                       .n_peers = 3,
                       .min_peers = 3,
                       .local_steps = 1,
                       .rounds = 200,
                       .topology = "ring",
                       .final_topology = RUN_SAME,
                       .compress = "qsgd:4",
                       .final_drift = 1e-3,
                       .quorum = 0.5,
                       .patience_s = 600,
                       .worker_limit_s = 15,
                       .step_us = 50000,
                       .latency_us = 200};
    for (int number = 1; fgets(line, sizeof line, f) != NULL; number++) {
        char *word[9], *save = NULL, *was = line;
        int n = 0;
        for (char *w = strtok_r(was, " \t\r\n", &save); w != NULL && n < 9;
             w = strtok_r(NULL, " \t\r\n", &save))
            word[n++] = w;
        if (n == 0 || word[0][0] == '#')
            continue;
        bool fault = strcmp(word[0], "at") == 0;
        bool ok = fault
                      ? p->n_faults < PLAN_FAULTS_MAX && read_fault(&p->fault[p->n_faults], word, n)
                      : n == 2 && read_setting(p, word[0], word[1]);
        if (!ok) {
            fprintf(stderr, "explore: line %d is no line of a plan: %s\n", number, word[0]);
            return false;
        }
        p->n_faults += fault;
    }
    return p->n_peers >= 2 && p->n_peers <= PLAN_PEERS_MAX && p->dim % 5 == 3 && p->dim <= DIM_MAX;
}
