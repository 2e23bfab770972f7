/* peer/node/connection_diagnostics.h -- what people are told of addresses at which no session comes about.
 *
 * Of each bootstrap name: how often it was tried in vain, since when, and why it failed last. A
 * line names those that fail alike, and comes again after 10 s, 20 s, 40 s, ... 10 minutes:
 *
 *   who has a session   hears only of what somebody must mend (another key, another version, no
 *                       hearsay), and not of who is merely away
 *   who has none        hears of everything
 *   whom others refuse  hears why from them, and not that they hang up
 *
 * Whose list holds nobody but itself is told so once.
 *
 * One failure proves nothing: the other end may be ending, or have no room at the moment. Nothing
 * here decides anything. Written by seek.c only; part of struct sessions.
 */
#ifndef PEER_NODE_CONNECTION_DIAGNOSTICS_H
#define PEER_NODE_CONNECTION_DIAGNOSTICS_H

#include "peer/node/node.h"

struct sessions;
struct link;

struct connection_diagnostics_entry
{
    enum node_why why;
    uint32_t n;           /* Tried so often in a row in vain, */
    int64_t since_us;     /* since then. */
    uint32_t least, most; /* With NODE_WHY_VERSION: what they speak. */
    int64_t tell_us;      /* Not told again before this. */
    int64_t gap_us;
};

struct connection_diagnostics
{
    struct connection_diagnostics_entry
        at[NODE_SEEDS_MAX];     /* In the order of the bootstrap list. */
    bool met;                   /* Some peer has said HELLO to us, ever. */
    bool told_own;              /* That all names are our own was said. */
    int64_t alone_us;           /* Without a session since then; 0: there is one. */
    int64_t run_us, run_gap_us; /* When it is told next that nobody has a run. */
};

/* A dial has come to nothing (NODE_DIAL_FAILED). Before dial_over(). */
void connection_diagnostics_failed(struct sessions *s, const struct node_event *ev);
/* The name has no address. It has been told. */
void connection_diagnostics_unresolved(struct sessions *s, uint32_t seed);
/* A session that we dialled has ended before the other end said a word. */
void connection_diagnostics_unwelcome(struct sessions *s, const struct link *l);
/* A peer has said HELLO. */
void connection_diagnostics_met(struct sessions *s, const struct link *l);
void connection_diagnostics_tick(struct sessions *s, bool has_run);

/* "one:7100, two:7100 and 3 more", of the names where we look for others; "" without any. */
enum { CONNECTION_DIAGNOSTICS_NAMES = 100 };
void connection_diagnostics_names(const struct sessions *s, char out[CONNECTION_DIAGNOSTICS_NAMES]);

/* There is a bootstrap list that names others, and none of them was ever met. */
bool connection_diagnostics_lonely(const struct sessions *s);

/* Why, as a clause. */
const char *connection_diagnostics_why(enum node_why why);

#endif
