/* tests/explore/plan.c -- writes and reads the text form of a plan (a cluster, a run and its
 * faults). */
#include "cluster.h"

#include "gossip/collectives/collective.h"
#include "gossip/mixers/mixer.h"
#include "peer/run/core.h"

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
    [FAULT_FLOOD] = "flood",   [FAULT_CHURN] = "churn",     [FAULT_SPOIL] = "spoil"};

int64_t plan_end_us(const struct plan *p)
{
    int64_t end = 0;
    for (uint32_t i = 0; i < p->n_faults; i++) {
        const struct fault *f = &p->fault[i];
        int64_t until = f->at_us + (f->for_us == PLAN_EVER ? 0 : f->for_us);
        /* Time for which the effects of a fault last after its end, in microseconds. */
        double late = 0;
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
    for (uint32_t i = 0; i < p->n_peers; i++)
        end = p->start_us[i] > end ? p->start_us[i] : end;
    return end;
}

uint32_t plan_mixer(const char *name)
{
    for (uint32_t i = 0; mixer_all[i] != NULL; i++)
        if (strcmp(mixer_all[i]->name, name) == 0)
            return i;
    return UINT32_MAX;
}

bool plan_is_valid(const struct plan *p)
{
    char error[RUN_ERROR_MAX];
    struct run run;
    cluster_set_run(&run, p);
    return run_core_check(&run, error) == 0 && momentum_is_valid(p, &run);
}

/* ---- printing and reading a plan ---- */

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

static double start_of(const struct plan *p, uint32_t peer)
{
    return (double)p->start_us[peer];
}

static double clock_of(const struct plan *p, uint32_t peer)
{
    return p->clock_ppm[peer];
}

/* Prints a line with one value for each peer, such as "starts 0,1203456". Prints nothing if all
 * values are 0. */
static void print_each(const struct plan *p, FILE *f, const char *key,
                       double (*of)(const struct plan *p, uint32_t peer))
{
    bool any = false;
    for (uint32_t i = 0; i < p->n_peers; i++)
        any |= of(p, i) != 0;
    for (uint32_t i = 0; any && i < p->n_peers; i++)
        fprintf(f, "%s%s%.0f", i == 0 ? key : "", i == 0 ? " " : ",", of(p, i));
    if (any)
        fprintf(f, "\n");
}

void plan_print(const struct plan *p, FILE *f)
{
    fprintf(f, "version %d\n", PLAN_VERSION);
    fprintf(f,
            "seed %" PRIu64 "\ndim %" PRIu32 "\npeers %" PRIu32 "\nmin-peers %" PRIu32
            "\nlocal-steps %" PRIu32 "\nrounds %" PRIu64 "\n",
            p->seed, p->dim, p->n_peers, p->min_peers, p->local_steps, p->rounds);
    fprintf(f, "topology %s\ncompress %s\npolicy %s\nmixer %s\njoin %s\nguests %s\n", p->topology,
            p->compress, p->async ? "async" : "sync", mixer_all[p->mixer]->name,
            p->by_name ? "names" : "known", p->guests ? "yes" : "no");
    fprintf(
        f,
        "gamma %g\nfinal-drift %g\nstep-us %" PRId64 "\nlatency-us %" PRId64 "\njitter-us %" PRId64
        "\nstartup-us %" PRId64
        "\nstep-spread %g\nbandwidth %g\ncut-rate %g\nquorum %g\npatience %g\nworker-limit %g\n",
        p->gamma, p->final_drift, p->step_us, p->latency_us, p->jitter_us, p->startup_us,
        p->step_spread, p->bytes_per_s, p->cut_rate, p->quorum, p->patience_s, p->worker_limit_s);
    if (p->collective > 0)
        fprintf(f, "collective %s\n", collective_all[p->collective]->name);
    print_each(p, f, "starts", start_of);
    print_each(p, f, "clocks", clock_of);
    if (strcmp(p->final_topology, RUN_SAME) != 0)
        fprintf(f, "final-topology %s\n", p->final_topology);
    if (p->overlap > 0)
        fprintf(f, "overlap %" PRIu32 "\n", p->overlap);
    if (p->outer[0] != '\0')
        fprintf(f, "outer %s\n", p->outer);
    if (p->trigger > 0)
        fprintf(f, "trigger %g\n", p->trigger);
    if (p->momentum[0] != '\0')
        fprintf(f, "momentum %s\noptimiser %s\n", p->momentum, p->adam ? "adam" : "sgd");
    if (p->checkpoint_s > 0)
        fprintf(f, "checkpoint %g\ndisk-us %" PRId64 "\n", p->checkpoint_s, p->disk_us);
    if (p->tolerate > 0)
        fprintf(f, "tolerate %" PRIu32 "\n", p->tolerate);
    if (p->liars != 0) {
        fprintf(f, "attack %s", p->attack);
        plan_print_set(f, ":", p->liars);
        fprintf(f, "\n");
    }
    if (p->liveness)
        fprintf(f, "liveness yes\n");
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

/* Reads the attack of Byzantine peers as "KIND:PEERS", for example "alie:3,7". */
static bool read_attack(struct plan *p, const char *value)
{
    size_t n = strcspn(value, ":");
    snprintf(p->attack, PLAN_TEXT, "%.*s", (int)n, value);
    p->liars = value[n] == ':' ? plan_read_set(value + n + 1) : 0;
    return p->liars != 0;
}

/* Reads numbers that commas separate, one for each peer from peer 0 on. */
static bool read_each(double *out, const char *value)
{
    for (uint32_t i = 0; i < PLAN_PEERS_MAX; i++) {
        char *end;
        out[i] = strtod(value, &end);
        if (end == value || *end == '\0')
            return end != value;
        value = end + 1;
    }
    return false;
}

static bool read_starts(struct plan *p, const char *value)
{
    double us[PLAN_PEERS_MAX] = {0};
    bool ok = read_each(us, value);
    for (uint32_t i = 0; i < PLAN_PEERS_MAX; i++)
        p->start_us[i] = (int64_t)us[i];
    return ok;
}

static bool read_collective(struct plan *p, const char *name)
{
    for (uint32_t i = 0; collective_all[i] != NULL; i++)
        if (strcmp(collective_all[i]->name, name) == 0) {
            p->collective = i;
            return true;
        }
    return false;
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
                 {"outer", NULL, NULL, NULL, p->outer},
                 {"trigger", NULL, NULL, &p->trigger, NULL},
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
    else if (strcmp(key, "version") == 0)
        return atoi(value) >= 1 && atoi(value) <= PLAN_VERSION;
    else if (strcmp(key, "momentum") == 0 && momentum_find(value) != NULL)
        snprintf(p->momentum, PLAN_TEXT, "%s", value);
    else if (strcmp(key, "optimiser") == 0)
        p->adam = strcmp(value, "adam") == 0;
    else if (strcmp(key, "mixer") == 0)
        return (p->mixer = plan_mixer(value)) != UINT32_MAX;
    else if (strcmp(key, "collective") == 0)
        return read_collective(p, value);
    else if (strcmp(key, "starts") == 0)
        return read_starts(p, value);
    else if (strcmp(key, "clocks") == 0)
        return read_each(p->clock_ppm, value);
    else if (strcmp(key, "join") == 0)
        p->by_name = strcmp(value, "names") == 0;
    else if (strcmp(key, "guests") == 0)
        p->guests = strcmp(value, "yes") == 0;
    else if (strcmp(key, "liveness") == 0)
        p->liveness = strcmp(value, "yes") == 0;
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
