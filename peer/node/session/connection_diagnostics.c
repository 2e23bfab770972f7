/* peer/node/session/connection_diagnostics.c -- warns if no session with a bootstrap address can be
 * opened.
 *
 * For each bootstrap name this module counts the failed dials and stores the last reason. Names
 * that fail for the same reason share one warning. The warning is repeated after 10 s, 20 s, 40 s,
 * and so on up to 10 min. The state of this peer determines which failures are printed:
 *
 *   - If this peer has a session: only failures that a user must fix (another cluster key, another
 *     protocol version, a program that is not hearsay).
 *   - If this peer has no session: all failures.
 *   - If this peer has no session and other peers refuse it: all failures, except sessions that a
 *     peer ends at once. The refusing peer has sent the reason, which was printed (admit.c).
 *
 * A warning about a wrong key or program is printed after two consecutive failures, because a
 * correct peer also closes the connection if it is ending or has no free session. A warning about
 * another protocol version is printed after the first failure. All other warnings are printed when
 * this peer has had no session for 3 s, or for 30 s if it had a session before. A peer that accepts
 * connections but does not answer may still be starting, so that warning waits for at least 10 s.
 *
 * If the bootstrap list contains only addresses of this peer, a message says so once. No decision
 * of the protocol depends on this module.
 */
#include "peer/node/session/sessions_state.h"

#include "nn/math/number.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    /* Number of consecutive failures before a warning about a wrong cluster key or program. */
    SURE = 2,
    NAME_SHOWN = 40 /* Maximum number of characters of a bootstrap name in a warning. */
};

const char *connection_diagnostics_why(enum node_why why)
{
    switch (why) {
    case NODE_WHY_UNRESOLVED:
        return "the name does not resolve";
    case NODE_WHY_REFUSED:
        return "nothing listens at that address (connection refused)";
    case NODE_WHY_UNREACHABLE:
        return "no route to the host";
    case NODE_WHY_TIMEOUT:
        return "no answer (timed out)";
    case NODE_WHY_CLOSED:
        return "the other end closes the connection at the first message: it does not have the "
               "same cluster key, or is not a hearsay peer";
    case NODE_WHY_MUTE:
        return "the other end accepts the connection and sends nothing: it still reads its data, "
               "hangs, or is not a hearsay peer";
    case NODE_WHY_SLOW:
        return "the handshake did not finish in time: the other end is an older release, or the "
               "network loses packets";
    case NODE_WHY_BROKEN:
        return "the connection broke during the handshake";
    case NODE_WHY_JUNK:
        return "the answer is not encrypted with this cluster key: the other end is not a peer of "
               "this cluster";
    case NODE_WHY_VERSION:
        return "the other end supports other protocol versions";
    case NODE_WHY_UNWELCOME:
        return "the other end completes the handshake and then closes the connection: it does not "
               "admit this peer, or is ending";
    case NODE_WHY_OTHER:
        return "another peer answers at that address";
    case NODE_WHY_UNKNOWN:
    case NODE_WHYS:
        break;
    }
    return "the other end could not be reached";
}

/* Returns whether only a user can fix the cause of a failed dial (`why`). */
static bool is_wrong(enum node_why why)
{
    return why == NODE_WHY_CLOSED || why == NODE_WHY_JUNK || why == NODE_WHY_VERSION;
}

/* Returns whether the bootstrap name belongs to this peer: at least one of its addresses is this
 * peer's own, and all other addresses are own or loopback addresses. For example, `localhost` also
 * resolves to ::1, at which a peer that listens on 0.0.0.0 does not answer. */
static bool self_only(const struct seed *d)
{
    bool self = false;
    for (uint32_t k = 0; k < d->n; k++) {
        const struct seed_address *a = &d->at[k];
        bool loopback =
            strncmp(a->address, "127.", 4) == 0 || strncmp(a->address, "[::1]:", 6) == 0;
        if (!a->self && !loopback)
            return false;
        self |= a->self;
    }
    return self;
}

/* Asserts the invariants. A name without failures has a struct of zeros. */
static void failure_check(const struct seed_failure *e, int64_t now_us)
{
    assert(e->n > 0 || (e->tell.gap_us == 0 && e->tell.next_us == 0 && e->since_us == 0));
    backoff_check(&e->tell, CONNECTION_WARNING_US, CONNECTION_WARNING_MAX_US);
    assert(e->since_us <= now_us && e->tell.next_us <= now_us + e->tell.gap_us);
}

/* ---- Events ----------------------------------------------------------- */

static void note_failure(struct sessions *s, struct seed *d, enum node_why why)
{
    struct seed_failure *e = &d->failure;
    /* One address of the name (such as ::1 or 127.0.0.1 of localhost) has answered, with a failure
     * that a user must fix. Failures at the other addresses must not replace this reason. */
    if (e->n > 0 && d->n > 1 && is_wrong(e->why) && !is_wrong(why))
        return;
    if (e->n == 0 || e->why != why)
        *e = (struct seed_failure){.why = why, .since_us = s->env->now_us};
    e->n++;
    failure_check(e, s->env->now_us);
}

void connection_diagnostics_failed(struct sessions *s, const struct node_event *ev)
{
    struct seed_address *a;
    struct seed *d = dial_seed_of(s, ev->dial.tag, &a);
    if (d == NULL || !a->busy)
        return;
    note_failure(s, d, ev->dial.why);
    d->failure.least = ev->dial.least;
    d->failure.most = ev->dial.most;
}

void connection_diagnostics_unresolved(struct sessions *s, struct seed *d)
{
    struct backoff *tell = &d->failure.tell;
    note_failure(s, d, NODE_WHY_UNRESOLVED);
    if (d->failure.n > 1)
        return;
    tell->gap_us = 0;
    backoff_wait(tell, CONNECTION_WARNING_US, CONNECTION_WARNING_MAX_US, s->env->now_us);
}

/* Counts a failure if the peer ended the session at once. If there is another session with the same
 * peer, the peer closed this session as a duplicate, which is no failure. */
void connection_diagnostics_unwelcome(struct sessions *s, const struct link *l)
{
    struct seed_address *a;
    assert(!l->used);
    if (!link_dialled(l) || l->role != LINK_NEW || l->hung_up != NULL
        || sessions_to(s, l->id) != NULL)
        return;
    struct seed *d = dial_seed_of(s, l->tag, &a);
    if (d != NULL)
        note_failure(s, d, NODE_WHY_UNWELCOME);
}

void connection_diagnostics_met(struct sessions *s, const struct link *l)
{
    struct seed_address *a;
    assert(link_talks(l));
    s->seek.met = true;
    struct seed *d = link_dialled(l) ? dial_seed_of(s, l->tag, &a) : NULL;
    if (d != NULL)
        d->failure = (struct seed_failure){0};
}

/* ---- Warnings --------------------------------------------------------- */

/* Returns whether a warning about the bootstrap name must be printed now. */
static bool due(const struct sessions *s, const struct seed *d)
{
    const struct seed_failure *e = &d->failure;
    const struct connection_diagnostics *k = &s->seek;
    int64_t now = s->env->now_us;
    if (e->n == 0 || now < e->tell.next_us || self_only(d))
        return false;
    if (e->why == NODE_WHY_UNWELCOME && sessions_are_refused(s))
        /* The refusing peer has sent the reason, and admit.c has printed it, so nothing is printed
         * here. */
        return false;
    /* A peer that accepts connections and does not answer may still be reading its training data,
     * so the warning waits for CONNECTION_STARTING_US. */
    bool may_start = e->why == NODE_WHY_MUTE || e->why == NODE_WHY_SLOW;
    if (may_start && now - e->since_us < CONNECTION_STARTING_US)
        return false;
    if (is_wrong(e->why))
        return e->n >= SURE || e->why == NODE_WHY_VERSION;
    return k->alone_us != 0 && now - k->alone_us >= (k->met ? CONNECTION_LOST_US : CONNECTION_US);
}

static void add_name(char *out, size_t cap, const char *name, uint32_t nth)
{
    size_t n = strlen(out);
    if (nth < 2)
        snprintf(out + n, cap - n, "%s%.*s", nth > 0 ? ", " : "", NAME_SHOWN, name);
}

static void add_rest(char *out, size_t cap, uint32_t n_named)
{
    size_t n = strlen(out);
    if (n_named > 2)
        snprintf(out + n, cap - n, " and %u more", (unsigned)n_named - 2);
}

void connection_diagnostics_names(const struct sessions *s, char out[CONNECTION_DIAGNOSTICS_NAMES])
{
    uint32_t n = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < s->env->config.n_bootstrap; i++)
        if (!self_only(&s->seeds[i]))
            add_name(out, CONNECTION_DIAGNOSTICS_NAMES, s->seeds[i].name, n++);
    add_rest(out, CONNECTION_DIAGNOSTICS_NAMES, n);
}

static void tell_version(struct sessions *s, const struct seed *d)
{
    env_note(s->env, NOTE_WARNING,
             "no session with %.80s: the peer supports protocol versions %u to %u, this program %u "
             "to %u",
             d->name, (unsigned)d->failure.least, (unsigned)d->failure.most,
             (unsigned)WIRE_VERSION_LEAST, (unsigned)WIRE_VERSION);
}

/* Prints one warning for all bootstrap names that fail for the reason `why`, even if the warning is
 * due for only one of them. */
static void tell_all(struct sessions *s, enum node_why why)
{
    char names[CONNECTION_DIAGNOSTICS_NAMES] = "";
    uint32_t n = 0, tries = 0;
    int64_t since_us = s->env->now_us;
    for (uint32_t i = 0; i < s->env->config.n_bootstrap; i++) {
        struct seed_failure *e = &s->seeds[i].failure;
        if (e->n == 0 || e->why != why || self_only(&s->seeds[i]))
            continue;
        add_name(names, sizeof names, s->seeds[i].name, n++);
        tries = e->n > tries ? e->n : tries;
        since_us = e->since_us < since_us ? e->since_us : since_us;
        backoff_wait(&e->tell, CONNECTION_WARNING_US, CONNECTION_WARNING_MAX_US, s->env->now_us);
        failure_check(e, s->env->now_us);
        if (why == NODE_WHY_VERSION)
            tell_version(s, &s->seeds[i]);
    }
    add_rest(names, sizeof names, n);
    if (why != NODE_WHY_VERSION)
        env_note(s->env, NOTE_WARNING,
                 "no session with %s: %s; tried %u time%s in %.0f s, still trying", names,
                 connection_diagnostics_why(why), (unsigned)tries, number_plural(tries),
                 (double)(s->env->now_us - since_us) * 1e-6);
}

/* Warns if neither this peer nor any connected peer has a run. All of them wait for a run, and none
 * would ever start one. */
static void tell_no_run(struct sessions *s, bool has_run)
{
    struct connection_diagnostics *k = &s->seek;
    uint32_t n = 0;
    int64_t now = s->env->now_us;
    for (size_t i = 0; i < s->n_links; i++)
        n += link_talks(&s->links[i]);
    if (has_run || n == 0 || k->no_run.next_us == 0) {
        k->no_run = (struct backoff){.next_us = now + CONNECTION_US};
    } else if (now >= k->no_run.next_us) {
        env_note(s->env, NOTE_WARNING,
                 "still no run: none of the %u connected peer%s has one; start one peer with "
                 "options of the run, such as --rounds or --model",
                 (unsigned)n, number_plural(n));
        backoff_wait(&k->no_run, CONNECTION_WARNING_US, CONNECTION_WARNING_MAX_US, now);
    }
}

/* Prints a message if all bootstrap addresses belong to this peer. No dial fails in this case, so
 * no other warning would be printed. */
static void tell_own(struct sessions *s)
{
    struct connection_diagnostics *k = &s->seek;
    bool own = s->env->config.n_bootstrap > 0 && !k->met && !k->told_own;
    for (uint32_t i = 0; i < s->env->config.n_bootstrap; i++)
        own &= self_only(&s->seeds[i]);
    if (!own || k->alone_us == 0 || s->env->now_us - k->alone_us < CONNECTION_US)
        return;
    k->told_own = true;
    env_note(s->env, NOTE_INFO, "--bootstrap names only this peer (%.80s): %s", s->seeds[0].name,
             s->env->config.past == NODE_PAST_NONE
                 ? "the other peers must name this one"
                 : "this peer waits until another member of the run calls it");
}

void connection_diagnostics_tick(struct sessions *s, bool has_run)
{
    struct connection_diagnostics *k = &s->seek;
    if (sessions_any(s))
        k->alone_us = 0;
    else if (k->alone_us == 0)
        k->alone_us = s->env->now_us > 0 ? s->env->now_us : 1;
    for (uint32_t i = 0; i < s->env->config.n_bootstrap; i++)
        if (due(s, &s->seeds[i]))
            tell_all(s, s->seeds[i].failure.why);
    tell_own(s);
    if (s->env->config.n_bootstrap > 0)
        tell_no_run(s, has_run);
}

bool connection_diagnostics_lonely(const struct sessions *s)
{
    bool others = false;
    for (uint32_t i = 0; i < s->env->config.n_bootstrap; i++)
        others |= !self_only(&s->seeds[i]);
    return others && !s->seek.met;
}
