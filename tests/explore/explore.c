/* tests/explore/explore.c -- the command `explore`: simulates the plans of many seeds, replays one
 * plan, or reduces a failing plan to a smaller one. */
#include "cluster.h"
#include "marks.h"
#include "shrink.h"

#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { JOBS_MAX = 16 };

struct options
{
    uint64_t seeds, from, seed;
    uint32_t draw; /* Version of the function that draws plans from seeds: PLAN_VERSION or 1. */
    const char *plan;
    /* File to which the program appends how many runs reached each mark (a named line of policy
     * code). NULL: none. */
    const char *marks;
    bool one, trace, story, shrink, quiet, disks, byzantine, admission, liveness, momentum;
    uint32_t jobs;
};

/* Message of a child process to its parent. The child sends a message when it begins a seed, and
 * another message with the result of the seed. */
struct word
{
    uint64_t seed;
    bool done;
    struct explored outcome;
};

struct child
{
    pid_t pid;
    int fd;
    /* next: seed with which a new child process begins. seed: seed that the child process runs
     * now. */
    uint64_t next, seed;
    bool busy;
    /* Row of this child process in the table of counters for marks (named lines of policy code,
     * marks.h). */
    uint32_t number;
};

struct tally
{
    uint64_t n, n_failed, by_kind[WRONG_KINDS], n_drifts, n_rounds, n_skipped;
    uint64_t n_conform[CONFORM_STEPS];
    double events, worst_drift;
};

static void say_outcome(const char *what, uint64_t seed, const struct explored *o)
{
    printf("%s %" PRIu64 "%s", what, seed, o->wrong != 0 ? ":" : "");
    for (int k = 0; k < WRONG_KINDS; k++)
        if (o->wrong & 1u << k)
            printf(" %s", wrong_name[k]);
    printf("\n");
    for (int k = 0; k < WRONG_KINDS; k++)
        if (o->wrong & 1u << k)
            printf("    %-9s %9.3f s  %s\n", wrong_name[k], (double)o->first[k].at_us * 1e-6,
                   o->first[k].text);
}

static void add_up(struct tally *t, const struct options *o, uint64_t seed,
                   const struct explored *out)
{
    t->n++;
    t->events += (double)out->n_events;
    t->n_drifts += out->n_drifts;
    t->n_rounds += out->n_rounds;
    t->n_skipped += out->n_skipped;
    t->n_failed += out->wrong != 0;
    for (int k = 0; k < WRONG_KINDS; k++)
        t->by_kind[k] += out->wrong >> k & 1;
    for (int k = 0; k < CONFORM_STEPS; k++)
        t->n_conform[k] += out->n_conform[k];
    if (out->wrong != 0 && !o->quiet)
        say_outcome("seed", seed, out);
}

static void draw(const struct options *o, struct plan *p, uint64_t seed)
{
    plan_draw(p, seed, o->draw);
    if (o->disks)
        plan_draw_disks(p);
    if (o->byzantine)
        plan_draw_liars(p);
    if (o->admission)
        plan_draw_admission(p);
    if (o->liveness)
        plan_draw_liveness(p);
    if (o->momentum)
        plan_draw_momentum(p);
}

/* Prints how many steps of the finish protocol were checked against its model, by kind. */
static void say_steps(const uint64_t n[CONFORM_STEPS])
{
    uint64_t sum = 0;
    for (int k = 0; k < CONFORM_STEPS; k++)
        sum += n[k];
    printf("%" PRIu64 " steps of the finish protocol checked:", sum);
    for (int k = 0; k < CONFORM_STEPS; k++)
        printf(" %s %" PRIu64, conform_name[k], n[k]);
    printf("\n");
}

/* ---- running seeds in child processes ---- */

static void child_main(const struct options *o, uint64_t first, uint32_t child, int fd)
{
    struct plan p;
    struct word word;
    for (uint64_t s = first; s < o->from + o->seeds; s += o->jobs) {
        word = (struct word){.seed = s};
        if (write(fd, &word, sizeof word) != (ssize_t)sizeof word)
            _exit(3);
        draw(o, &p, s);
        cluster_run(&p, &word.outcome, NULL, false);
        marks_take(child);
        word.done = true;
        if (write(fd, &word, sizeof word) != (ssize_t)sizeof word)
            _exit(3);
    }
    _exit(0);
}

static void start(const struct options *o, struct child *c)
{
    int fd[2];
    fflush(stdout);
    if (c->next >= o->from + o->seeds)
        return;
    if (pipe(fd) != 0 || (c->pid = fork()) < 0) {
        perror("explore");
        exit(3);
    }
    if (c->pid == 0) {
        close(fd[0]);
        child_main(o, c->next, c->number, fd[1]);
    }
    close(fd[1]);
    c->fd = fd[0];
    c->busy = true;
}

/* Handles the end of a child process. If the child crashed, the seed that it was running has
 * failed, and another child continues after that seed. */
static void end(const struct options *o, struct tally *t, struct child *c)
{
    int status;
    close(c->fd);
    waitpid(c->pid, &status, 0);
    c->busy = false;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    struct explored out = {.wrong = 1u << WRONG_CRASH};
    snprintf(out.first[WRONG_CRASH].text, TEXT, "status %d", status);
    add_up(t, o, c->seed, &out);
    c->next = c->seed + o->jobs;
    start(o, c);
}

static void hear(const struct options *o, struct tally *t, struct child *c)
{
    struct word word;
    size_t n = 0;
    while (n < sizeof word) {
        ssize_t got = read(c->fd, (char *)&word + n, sizeof word - n);
        if (got <= 0) {
            end(o, t, c);
            return;
        }
        n += (size_t)got;
    }
    c->seed = word.seed;
    if (word.done)
        add_up(t, o, word.seed, &word.outcome);
}

static int explore(const struct options *o)
{
    struct tally t = {0};
    struct child child[JOBS_MAX] = {{0}};
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (uint32_t i = 0; i < o->jobs; i++) {
        child[i].next = o->from + i;
        child[i].number = i;
        start(o, &child[i]);
    }
    for (;;) {
        struct pollfd at[JOBS_MAX];
        uint32_t who[JOBS_MAX], n = 0;
        for (uint32_t i = 0; i < o->jobs; i++)
            if (child[i].busy) {
                at[n] = (struct pollfd){.fd = child[i].fd, .events = POLLIN};
                who[n++] = i;
            }
        if (n == 0)
            break;
        (void)poll(at, n, -1);
        for (uint32_t i = 0; i < n; i++)
            if (at[i].revents != 0)
                hear(o, &t, &child[who[i]]);
    }
    clock_gettime(CLOCK_MONOTONIC, &b);
    double seconds = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) * 1e-9;
    printf("%" PRIu64 " seeds, %" PRIu64 " failed; %.1f s, %.2e events, %" PRIu64
           " reported consensus distances checked, %" PRIu64 " rounds, %" PRIu64
           " of them skipped\n",
           t.n, t.n_failed, seconds, t.events, t.n_drifts, t.n_rounds, t.n_skipped);
    say_steps(t.n_conform);
    for (int k = 0; k < WRONG_KINDS; k++)
        if (t.by_kind[k] > 0)
            printf("    %-9s %" PRIu64 "\n", wrong_name[k], t.by_kind[k]);
    return t.n_failed != 0;
}

/* ---- running one plan ---- */

/* Figures of a run that are unknown (NaN) or empty are not printed. */
static void say_run(const struct explored *out)
{
    printf("%.1f s simulated, %" PRIu64 " events, %" PRIu64 " rounds, %" PRIu64
           " of them skipped; ",
           out->simulated_s, out->n_events, out->n_rounds, out->n_skipped);
    if (isfinite(out->healed_s))
        printf("cluster whole %.1f s after the last fault; ", out->healed_s);
    if (isfinite(out->drift))
        printf("exact consensus distance at the end %.3g; ", out->drift);
    printf("%" PRIu32 " reported consensus distances checked", out->n_drifts);
    if (out->n_drifts > 0)
        printf(", worst ratio to the exact distance %.3g", out->worst_drift);
    printf("\n");
    say_steps(out->n_conform);
}

static int one(const struct options *o)
{
    struct plan p;
    struct explored out;
    FILE *f = o->plan != NULL ? fopen(o->plan, "r") : NULL;
    if (o->plan != NULL && (f == NULL || !plan_read(&p, f))) {
        fprintf(stderr, "explore: cannot read %s\n", o->plan);
        return 2;
    }
    if (f != NULL)
        fclose(f);
    else
        draw(o, &p, o->seed);
    if (o->story) {
        cluster_run(&p, &out, stdout, false);
        return 0;
    }
    if (!o->trace)
        plan_print(&p, stdout);
    cluster_run(&p, &out, o->trace ? stdout : NULL, true);
    marks_take(0);
    say_run(&out);
    say_outcome(out.wrong != 0 ? "failed: seed" : "passed: seed", p.seed, &out);
    if (o->shrink && out.wrong != 0)
        shrink(&p, &out);
    return out.wrong != 0;
}

static int usage(void)
{
    fprintf(stderr,
            "usage: explore SEEDS [--from S] [--jobs N] [--quiet] [--marks FILE] [MODE]...\n"
            "       explore --seed S [MODE]... | --plan FILE [--trace | --story | --shrink]\n"
            "MODE: --disks, --byzantine, --admission, --liveness, --momentum; --draw 1: the first "
            "version of the draw\n");
    return 2;
}

int main(int argc, char **argv)
{
    struct options o = {.from = 1, .jobs = 1, .draw = PLAN_VERSION};
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *v = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(a, "--trace") == 0)
            o.trace = true;
        else if (strcmp(a, "--story") == 0)
            o.story = true;
        else if (strcmp(a, "--shrink") == 0)
            o.shrink = true;
        else if (strcmp(a, "--quiet") == 0)
            o.quiet = true;
        else if (strcmp(a, "--disks") == 0)
            o.disks = true;
        else if (strcmp(a, "--byzantine") == 0)
            o.byzantine = true;
        else if (strcmp(a, "--admission") == 0)
            o.admission = true;
        else if (strcmp(a, "--liveness") == 0)
            o.liveness = true;
        else if (strcmp(a, "--momentum") == 0)
            o.momentum = true;
        else if (a[0] != '-' && o.seeds == 0)
            o.seeds = strtoull(a, NULL, 10);
        else if (v == NULL)
            return usage();
        else if (strcmp(a, "--from") == 0)
            o.from = strtoull(v, NULL, 10), i++;
        else if (strcmp(a, "--jobs") == 0)
            o.jobs = (uint32_t)strtoul(v, NULL, 10), i++;
        else if (strcmp(a, "--draw") == 0)
            o.draw = (uint32_t)strtoul(v, NULL, 10), i++;
        else if (strcmp(a, "--seed") == 0)
            o.seed = strtoull(v, NULL, 10), o.one = true, i++;
        else if (strcmp(a, "--marks") == 0)
            o.marks = v, i++;
        else if (strcmp(a, "--plan") == 0)
            o.plan = v, o.one = true, i++;
        else
            return usage();
    }
    if ((!o.one && o.seeds == 0) || o.jobs < 1 || o.jobs > JOBS_MAX || o.draw < 1
        || o.draw > PLAN_VERSION || (o.liveness && (o.byzantine || o.admission)))
        return usage();
    marks_open(o.jobs);
    int code = o.one ? one(&o) : explore(&o);
    if (o.marks != NULL && !marks_write(o.marks)) {
        perror(o.marks);
        return 2;
    }
    return code;
}
