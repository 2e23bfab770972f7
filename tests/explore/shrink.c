/* tests/explore/shrink.c -- finds a plan with fewer faults, peers and rounds that fails in the same
 * way. */
#include "shrink.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs a plan and returns whether it fails in one of the ways `kinds` (bits of enum wrong). The
 * plan runs in a child process, because the failure may be a crash. */
static bool fails(const struct plan *p, uint32_t kinds, struct explored *out)
{
    int fd[2], status;
    struct explored o = {0};
    fflush(stdout);
    if (pipe(fd) != 0)
        return false;
    pid_t pid = fork();
    if (pid == 0) {
        cluster_run(p, &o, NULL, false);
        _exit(write(fd[1], &o, sizeof o) == (ssize_t)sizeof o ? 0 : 3);
    }
    close(fd[1]);
    bool whole = read(fd[0], &o, sizeof o) == (ssize_t)sizeof o;
    close(fd[0]);
    waitpid(pid, &status, 0);
    if (!whole)
        o = (struct explored){.wrong = 1u << WRONG_CRASH};
    if (o.wrong & kinds)
        *out = o;
    return (o.wrong & kinds) != 0;
}

static void without_fault(struct plan *p, uint32_t k)
{
    memmove(&p->fault[k], &p->fault[k + 1], (p->n_faults - k - 1) * sizeof *p->fault);
    p->n_faults--;
}

/* Removes the last peer and the faults that affect only that peer. */
static bool without_peer(struct plan *p)
{
    uint32_t keep;
    if (p->n_peers <= 2)
        return false;
    p->n_peers--;
    p->start_us[p->n_peers] = 0;
    p->clock_ppm[p->n_peers] = 0;
    keep = (UINT32_C(1) << p->n_peers) - 1;
    if (p->min_peers > p->n_peers)
        p->min_peers = p->n_peers;
    for (uint32_t k = p->n_faults; k-- > 0;) {
        struct fault *f = &p->fault[k];
        bool two = f->b != 0;
        f->a &= keep;
        f->b &= keep;
        if (f->a == 0 || (two && f->b == 0))
            without_fault(p, k);
    }
    return true;
}

/* Removes one peer from one set of a fault. bit: 0 to 31 are peers of set A, 32 to 63 of set B. */
static bool without_member(struct plan *p, uint32_t k, uint32_t bit)
{
    struct fault *f = &p->fault[k];
    uint32_t *set = bit < 32 ? &f->a : &f->b, m = UINT32_C(1) << bit % 32;
    if (!(*set & m) || *set == m)
        return false;
    *set &= ~m;
    return true;
}

static bool simpler(struct plan *p, int what)
{
    switch (what) {
    case 0:
        return without_peer(p);
    case 1:
        p->rounds = p->rounds / 2;
        return p->rounds >= 10;
    case 2:
        p->local_steps = 1;
        return true;
    case 3:
        p->step_spread = 0;
        return true;
    case 4:
        p->jitter_us = 0;
        return true;
    case 5:
        p->bytes_per_s = 0;
        return true;
    case 6:
        snprintf(p->compress, PLAN_TEXT, "qsgd:4");
        return plan_is_valid(p);
    case 7:
        snprintf(p->topology, PLAN_TEXT, "ring");
        return plan_is_valid(p);
    case 8:
        p->by_name = p->guests = false;
        return true;
    case 9:
        p->mixer = p->collective = 0;
        return plan_is_valid(p);
    case 10:
        p->overlap = 0;
        return true;
    case 11:
        memset(p->clock_ppm, 0, sizeof p->clock_ppm);
        return true;
    case 12:
        p->outer[0] = '\0';
        p->trigger = 0;
        return true;
    case 13:
        memset(p->start_us, 0, sizeof p->start_us);
        return true;
    case 14:
        p->momentum[0] = '\0';
        p->adam = false;
        return true;
    default:
        p->min_peers = p->n_peers;
        return true;
    }
}

enum { SIMPLER = 16 };

/* Replaces plan p by the changed plan q, if q differs and still fails. */
static bool try(struct plan *p, const struct plan *q, uint32_t kind, struct explored *out)
{
    if (memcmp(p, q, sizeof *p) == 0 || !fails(q, kind, out))
        return false;
    *p = *q;
    return true;
}

void shrink(const struct plan *plan, const struct explored *was)
{
    struct plan p = *plan, q;
    struct explored out = *was;
    uint32_t rare = was->wrong & ~(1u << WRONG_ROUNDS | 1u << WRONG_DRIFT);
    uint32_t kind = 1u << __builtin_ctz(rare != 0 ? rare : was->wrong);
    for (bool better = true; better;) {
        better = false;
        for (uint32_t k = p.n_faults; k-- > 0;) {
            q = p;
            without_fault(&q, k);
            better |= try(&p, &q, kind, &out);
        }
        for (int what = 0; what < SIMPLER; what++) {
            q = p;
            if (simpler(&q, what))
                better |= try(&p, &q, kind, &out);
        }
        for (uint32_t k = 0; k < p.n_faults; k++)
            for (uint32_t bit = 0; bit < 64; bit++) {
                q = p;
                if (without_member(&q, k, bit))
                    better |= try(&p, &q, kind, &out);
            }
    }
    printf("\n# cut down:\n");
    plan_print(&p, stdout);
    for (int k = 0; k < WRONG_KINDS; k++)
        if (out.wrong & 1u << k)
            printf("# %s at %.3f: %s\n", wrong_name[k], (double)out.first[k].at_us * 1e-6,
                   out.first[k].text);
}
