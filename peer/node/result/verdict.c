/* peer/node/result/verdict.c -- the decision table of verdict.h, and the sentence of each kind of
 * verdict. */
#include "peer/node/result/verdict.h"

#include "nn/math/number.h"
#include "peer/run/exit.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { NAMED = 8 /* Maximum number of names in a list within the sentence of the verdict. */ };

/* Tolerance in the comparison of a number of members with the quorum. A share such as 0.7 is not
 * exact in binary, so 0.7 * 10 may exceed 7. */
static const double rounding = 1e-9;

/* Returns the number of members to which the share f->quorum applies. */
static uint32_t base_of(const struct verdict_facts *f)
{
    return f->n_begun > 0 ? f->n_begun : f->n_members;
}

bool verdict_quorum(uint32_t n_live, uint32_t n_members, double share)
{
    return (double)n_live + rounding >= share * (double)n_members;
}

void verdict_add_dead(struct verdict_facts *f, const char *name)
{
    if (f->n_dead < VERDICT_DEAD_MAX)
        snprintf(f->dead[f->n_dead], sizeof f->dead[0], "%s", name);
    f->n_dead++;
}

void verdict_add_absent(struct verdict_facts *f, const char *name, const char *why)
{
    if (f->n_absent < VERDICT_DEAD_MAX) {
        struct verdict_absent *a = &f->absent[f->n_absent];
        snprintf(a->name, sizeof a->name, "%s", name);
        snprintf(a->why, sizeof a->why, "%s", why);
    }
    f->n_absent++;
}

void verdict_add_left(struct verdict_facts *f, const char *name)
{
    if (f->n_left < VERDICT_DEAD_MAX)
        snprintf(f->left[f->n_left], sizeof f->left[0], "%s", name);
    f->n_left++;
}

void verdict_add_finished(struct verdict_facts *f, const char *name)
{
    if (f->n_finished < VERDICT_DEAD_MAX)
        snprintf(f->finished[f->n_finished], sizeof f->finished[0], "%s", name);
    f->n_finished++;
}

static bool is_said(const char *clause)
{
    return clause != NULL && clause[0] != '\0';
}

void verdict_add_peer(struct verdict_facts *all, const struct verdict_peer *p)
{
    if (p->left)
        verdict_add_left(all, p->name);
    if (p->left)
        return;
    all->n_members++;
    all->infinite |= p->infinite;
    if (all->diverged == NULL && is_said(p->diverged))
        all->diverged = p->diverged;
    if (p->died)
        verdict_add_dead(all, p->name);
    else if (p->absent != NULL)
        verdict_add_absent(all, p->name, p->absent);
    else if (!p->ended)
        verdict_add_absent(all, p->name, "it has no model");
    if (p->died || p->absent != NULL || !p->ended)
        return;
    if (all->n_among == 0 || !is_said(p->unlearnt))
        all->unlearnt = p->unlearnt;
    all->n_among++;
    all->rounds_claimed += p->rounds_claimed;
    all->rounds_skipped += p->rounds_skipped;
    if (p->joined_round == 0)
        return;
    all->n_joined++;
    if (p->joined_round >= all->joined_round) {
        all->joined_round = p->joined_round;
        snprintf(all->joined, sizeof all->joined, "%s", p->name);
    }
}

const char *verdict_word(enum verdict_kind kind)
{
    switch (kind) {
    case VERDICT_FAILED:
        return "failed";
    case VERDICT_STOPPED:
        return "stopped";
    case VERDICT_DIVERGED:
        return "diverged";
    case VERDICT_AWAY:
        return "ended-elsewhere";
    case VERDICT_ALONE:
        return "never-connected";
    case VERDICT_NO_QUORUM:
        return "no-quorum";
    case VERDICT_UNASKED:
        return "not-requested";
    case VERDICT_UNKNOWN:
        return "unknown";
    case VERDICT_APART:
        return "over-target";
    case VERDICT_CONSENSUS:
        return "consensus";
    }
    return "failed";
}

/* Returns whether no other member ended the run with this peer, for example because all others have
 * left or died. The run then has no consensus, because there is only one model. */
static bool is_left_over(const struct verdict_facts *f)
{
    return f->n_among + f->n_failed == 1 && f->n_members + f->n_left > 1;
}

/* Returns the number of members that ended together and count for the quorum. Only voters can agree
 * on a certificate. */
static uint32_t n_counted(const struct verdict_facts *f)
{
    return f->uncertified ? f->n_voting : f->n_among;
}

/* Returns whether exactly half of the members ended together, and the member with the smallest
 * identity is not one of them. The other half may have ended with another model, and only the half
 * with the smallest identity may end with success. */
static bool is_other_half(const struct verdict_facts *f)
{
    return f->without_first && 2 * n_counted(f) == base_of(f);
}

/* ---- The table --------------------------------------------------------- */

static enum verdict_kind kind_of(const struct verdict_facts *f)
{
    if (f->failed != CMD_OK)
        return VERDICT_FAILED;
    if (f->stopped)
        return VERDICT_STOPPED;
    if (is_said(f->diverged) || f->infinite)
        return VERDICT_DIVERGED;
    if (f->presence != VERDICT_TOGETHER)
        return VERDICT_AWAY;
    if (f->lonely)
        return VERDICT_ALONE;
    if (!verdict_quorum(n_counted(f), base_of(f), f->quorum) || is_other_half(f))
        return VERDICT_NO_QUORUM;
    if (is_left_over(f))
        return VERDICT_ALONE;
    if (!(f->target > 0))
        return VERDICT_UNASKED;
    if (!isfinite(f->distance))
        return VERDICT_UNKNOWN;
    return f->distance <= f->target ? VERDICT_CONSENSUS : VERDICT_APART;
}

static int code_of(enum verdict_kind kind, int failed)
{
    switch (kind) {
    case VERDICT_FAILED:
        return failed;
    case VERDICT_STOPPED:
    case VERDICT_UNASKED:
    case VERDICT_CONSENSUS:
        return CMD_OK;
    case VERDICT_DIVERGED:
    case VERDICT_AWAY:
    case VERDICT_ALONE:
    case VERDICT_NO_QUORUM:
    case VERDICT_UNKNOWN:
    case VERDICT_APART:
        return CMD_APART;
    }
    return CMD_FAILED;
}

/* ---- The sentence ------------------------------------------------------ */

/* Appends text to the sentence of the verdict. Text that does not fit is cut off. */
__attribute__((format(printf, 2, 3))) static void say(struct verdict *o, const char *format, ...)
{
    size_t n = strlen(o->text);
    va_list args;
    va_start(args, format);
    vsnprintf(o->text + n, sizeof o->text - n, format, args);
    va_end(args);
}

static void say_names(struct verdict *o, const char *before, const char (*name)[WIRE_NAME_MAX + 1],
                      uint32_t n)
{
    for (uint32_t i = 0; i < n && i < NAMED; i++)
        say(o, "%s%s", i == 0 ? before : ", ", name[i]);
    if (n > NAMED)
        say(o, " and %u more", (unsigned)(n - NAMED));
}

static void say_who(struct verdict *o, const struct verdict_facts *f)
{
    say(o, "%u of %u peer%s", (unsigned)f->n_among, (unsigned)f->n_members,
        number_plural(f->n_members));
    const char *before = " (";
    if (f->n_dead > 0) {
        say_names(o, " (dead: ", f->dead, f->n_dead);
        before = "; ";
    }
    for (uint32_t i = 0; i < f->n_absent && i < NAMED; i++, before = ", ")
        say(o, "%s%s: %s", before, f->absent[i].name, f->absent[i].why);
    if (f->n_absent > NAMED)
        say(o, " and %u more", (unsigned)(f->n_absent - NAMED));
    if (f->n_dead + f->n_absent > 0)
        say(o, ")");
}

/* This peer was away, so its knowledge of the other members may be outdated. The sentence therefore
 * calls no member dead. */
static void say_away(struct verdict *o, const struct verdict_facts *f)
{
    if (f->presence == VERDICT_UNCOVERED)
        say(o, "no consensus: the certificate of the run does not cover the model of this peer");
    else
        say(o, "no consensus: the run ended without this peer");
    /* rounds_claimed is 0 if this process began without a checkpoint: it does not know at which
     * round an earlier process stopped. */
    if (f->presence == VERDICT_ABSENT && f->rounds_claimed > 0)
        say(o, ", which has reached round %llu of %llu", (unsigned long long)f->rounds_claimed,
            (unsigned long long)f->n_rounds);
    if (f->n_finished > 0)
        say_names(o, "; finished: ", f->finished, f->n_finished);
    if (f->n_dead > 0)
        say_names(o, "; not known to have finished: ", f->dead, f->n_dead);
}

/* Returns the words for the sentence that say whether the consensus distance is exact, a bound or
 * an estimate. */
static const char *how(const struct verdict_facts *f)
{
    return f->exact ? "exact" : f->at_most ? "at most" : "estimated";
}

/* Appends to the sentence of the verdict how many members the quorum needed, and the distance
 * between the models of the members that ended. */
static void say_quorum(struct verdict *o, const struct verdict_facts *f)
{
    double needed = ceil(f->quorum * (double)base_of(f) - rounding);
    uint32_t n_later = n_counted(f) < f->n_among ? f->n_among - n_counted(f) : 0;
    if (n_later > 0)
        say(o, ", with %u of the %u initial members (%u joined later and ha%s no vote)",
            (unsigned)n_counted(f), (unsigned)base_of(f), (unsigned)n_later,
            n_later == 1 ? "s" : "ve");
    if (is_other_half(f))
        say(o,
            ", exactly half of the %u initial members, and without %s, which decides between equal "
            "halves",
            (unsigned)base_of(f),
            f->first[0] != '\0' ? f->first : "the member with the smallest identity");
    else
        say(o, ", %.0f of %u needed for quorum %g", needed, (unsigned)base_of(f), f->quorum);
    say_names(o, "; left before: ", f->left, f->n_left);
    if (isfinite(f->distance))
        say(o, "; relative drift %.2e (%s)", f->distance, how(f));
}

/* Appends the names of dead members that had finished: they may have ended the run with a
 * certificate. */
static void say_finished(struct verdict *o, const struct verdict_facts *f)
{
    say_names(o, "; finished, and may have ended the run without this peer: ", f->finished,
              f->n_finished);
}

static void say_left_over(struct verdict *o, const struct verdict_facts *f)
{
    say(o, "at the end, with one model: ");
    say_who(o, f);
    if (f->n_left > 0)
        say(o, ", and %u left before", (unsigned)f->n_left);
}

static void say_joined(struct verdict *o, const struct verdict_facts *f)
{
    unsigned long long round = f->joined_round;
    if (f->n_joined > 1)
        say(o, "; %u peers joined, the last (%s) at round %llu", (unsigned)f->n_joined, f->joined,
            round);
    else if (f->n_joined == 1)
        say(o, "; %s joined at round %llu", f->joined, round);
    else if (round > 0)
        say(o, "; joined at round %llu", round);
}

/* Names the addresses that were never reached, and what the user can check. */
static void say_unreached(struct verdict *o, const struct verdict_facts *f)
{
    if (f->unreached[0] == '\0')
        say(o, "during the whole run: no peer of the bootstrap list was reached");
    else
        say(o,
            "during the whole run: no peer was reached at %s (--bootstrap): check address, port "
            "and cluster key by hearsay probe",
            f->unreached);
}

static void say_rounds(struct verdict *o, const struct verdict_facts *f)
{
    say_joined(o, f);
    if (f->rounds_skipped == 0)
        say(o, "; no round skipped");
    else
        say(o, "; %llu of %llu rounds skipped", (unsigned long long)f->rounds_skipped,
            (unsigned long long)f->rounds_claimed);
}

static void say_all(struct verdict *o, const struct verdict_facts *f)
{
    switch (o->kind) {
    case VERDICT_FAILED:
        if (f->failure != NULL)
            say(o, "failed: %s", f->failure);
        else
            say(o, "failed at round %llu of %llu", (unsigned long long)f->rounds_claimed,
                (unsigned long long)f->n_rounds);
        return;
    case VERDICT_STOPPED:
        if (f->n_rounds == 0) {
            say(o, "stopped while it waited for a run");
            return;
        }
        say(o, "stopped at round %llu of %llu, no consensus claimed",
            (unsigned long long)f->rounds_claimed, (unsigned long long)f->n_rounds);
        if (f->presence == VERDICT_TOGETHER)
            say_names(o, "; dead: ", f->dead, f->n_dead);
        return;
    case VERDICT_DIVERGED:
        say(o, "no consensus: the run diverged: %s",
            is_said(f->diverged) ? f->diverged : "the last loss is not finite");
        return;
    case VERDICT_AWAY:
        say_away(o, f);
        break;
    case VERDICT_ALONE:
        say(o, "no consensus: alone ");
        if (!f->lonely)
            say_left_over(o, f);
        else
            say_unreached(o, f);
        say_finished(o, f);
        break;
    case VERDICT_NO_QUORUM:
        say(o, "no quorum: ");
        say_who(o, f);
        say_quorum(o, f);
        say_finished(o, f);
        break;
    case VERDICT_UNASKED:
        say(o, "no consensus phase was requested, so no consensus is claimed: ");
        say_who(o, f);
        break;
    case VERDICT_UNKNOWN:
        say(o, "no consensus: %s: ",
            f->uncertified ? "the members did not agree on a certificate of their final models"
                           : "the drift is not known");
        say_who(o, f);
        say_finished(o, f);
        break;
    case VERDICT_APART:
        say(o, "no consensus: relative drift %.2e (%s) is over the target %g: ", f->distance,
            how(f), f->target);
        say_who(o, f);
        break;
    case VERDICT_CONSENSUS:
        say(o, "consensus of ");
        say_who(o, f);
        say(o, " at relative drift %.2e (%s, target %g)", f->distance, how(f), f->target);
        break;
    }
    say_rounds(o, f);
    if (is_said(f->unlearnt))
        say(o, "; warning: the model is no better than guessing: %s", f->unlearnt);
}

void verdict_judge(struct verdict *o, const struct verdict_facts *f)
{
    *o = (struct verdict){.kind = kind_of(f)};
    o->exit_code = code_of(o->kind, f->failed);
    say_all(o, f);
    if (f->lonely && (o->kind == VERDICT_STOPPED || o->kind == VERDICT_DIVERGED)) {
        say(o, "; alone ");
        say_unreached(o, f);
    }
}
