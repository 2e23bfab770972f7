/* peer/node/verdict.h -- how a run ended: from a few facts to one sentence and an exit code.
 *
 * The first row that applies decides. A peer judges by what it knows (its distance is an
 * estimate, the dead are those it has heard of); whoever started all the peers (`hearsay
 * local`, `hearsay sim`) judges by the models themselves.
 *
 *   fact                                            kind        exit code
 *   ----------------------------------------------  ----------  ---------
 *   the process failed, or was given bad input      failed      1 or 2
 *   it was stopped (SIGTERM)                        stopped     0
 *   training ran away, or a loss is not finite      diverged    3
 *   the run ended elsewhere while it was away       away        3
 *   there is a bootstrap list, and nobody of it,
 *   nor anybody else, was ever met                  alone       3
 *   fewer than the quorum ended together            no-quorum   3
 *   no consensus phase was asked for (--final-drift 0)   unasked     0
 *   the distance is not known                       unknown     3
 *   the distance is over the target                 apart       3
 *   else                                            consensus   0
 */
#ifndef PEER_NODE_VERDICT_H
#define PEER_NODE_VERDICT_H

#include "gossip/wire/wire.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    VERDICT_TEXT = 512,    /* Bytes of the message, with the NUL. */
    VERDICT_DEAD_MAX = 64, /* Maximum number of dead, and of absent, members that are named. */
    VERDICT_WHY_MAX = 48   /* Bytes of the reason why a member is absent, with the NUL. */
};

enum verdict_kind {
    VERDICT_FAILED,
    VERDICT_STOPPED,
    VERDICT_DIVERGED,
    VERDICT_AWAY,
    VERDICT_ALONE,
    VERDICT_NO_QUORUM,
    VERDICT_UNASKED,
    VERDICT_UNKNOWN,
    VERDICT_APART,
    VERDICT_CONSENSUS
};

/* Start with zeros but for `distance`. */
struct verdict_facts
{
    int failed;          /* Exit code of an end that was none of the run's; 0: there was none. */
    const char *failure; /* What failed, as a clause; NULL: that has been said. Borrowed. */
    bool stopped;        /* Somebody asked for the end. */
    bool lonely;         /* A bootstrap list was given, and no other peer was ever met. */
    const char
        *diverged; /* How training ran away, as a clause; "" or NULL: it did not. Borrowed. */
    bool infinite; /* The last loss is not finite. */
    const char *unlearnt; /* That training ended no better than guessing, likewise; of several
                           * peers, that of all that ended did. Said, and no judgement. */

    uint32_t n_members; /* Members of the run that have not left by their own word. */
    uint32_t n_among;   /* Those of them that ended with us, ourselves included. */
    uint32_t n_left;    /* Members that have left. */
    uint32_t n_failed;  /* Members that ended with us, and whose model could not be stored: they
                         * are counted with the dead, too. */
    uint32_t n_begun;   /* So many of the members were there at the beginning; 0: all. */
    bool without_first; /* Whose id is the least of those did not end with us. */
    double quorum;      /* So many as this share of those must have ended with us. */
    uint32_t n_dead;    /* Members that did not end with us. */
    char dead[VERDICT_DEAD_MAX][WIRE_NAME_MAX + 1];

    uint32_t n_absent; /* Members that live but did not end the run with this peer. */
    struct verdict_absent
    {
        char name[WIRE_NAME_MAX + 1];
        char why[VERDICT_WHY_MAX]; /* Reason, as a clause. */
    } absent[VERDICT_DEAD_MAX];

    /* The run ended while we were away. Then nobody ended with us: members that say that they
     * have finished are counted here, and those of whom that is not known with the dead. */
    bool away;
    uint32_t n_finished;
    char finished[VERDICT_DEAD_MAX][WIRE_NAME_MAX + 1];

    double distance; /* |x - mean| / |mean| at the end; NaN or infinite: not known; */
    bool at_most;    /* a bound, which may be far above it. */
    bool exact;      /* It is of the models themselves; else it is an estimate. */
    double target;   /* --final-drift; 0 or less: no consensus phase was asked for. */

    uint64_t n_rounds;              /* The run has so many. */
    uint64_t rounds_claimed;        /* How far the run is; of several peers, the sum of that. */
    uint64_t rounds_skipped;        /* So many of those were neither done nor before we joined. */
    uint64_t joined_round;          /* We began here; of several peers, the last that joined did. */
    uint32_t n_joined;              /* So many of several peers joined a run under way, */
    char joined[WIRE_NAME_MAX + 1]; /* the last of them this one. */
};

struct verdict
{
    enum verdict_kind kind;
    int exit_code; /* enum cmd_exit of peer/run/exit.h. */
    char text[VERDICT_TEXT];
};

void verdict_judge(struct verdict *o, const struct verdict_facts *f);

/* "consensus", "no-quorum", ...: a word for programs. */
const char *verdict_word(enum verdict_kind kind);

/* Another member has died. */
void verdict_add_dead(struct verdict_facts *f, const char *name);

/* Adds a member that lives but did not end the run with this peer. `why` is a clause. */
void verdict_add_absent(struct verdict_facts *f, const char *name, const char *why);

/* Another member has finished without us. */
void verdict_add_finished(struct verdict_facts *f, const char *name);

/* Facts about one peer, for a judge that started all peers. */
struct verdict_peer
{
    const char *name;
    bool left; /* The peer was stopped and is no longer a member. */
    bool died; /* The peer failed before it ended the run. */
    /* Why the peer lives but is not counted, as a clause. NULL: no such reason. */
    const char *absent;
    bool ended;           /* The peer ended the run and has a model. */
    const char *diverged; /* As in struct verdict_facts, for any peer. Borrowed. */
    bool infinite;
    const char *unlearnt; /* Likewise. */
    uint64_t rounds_claimed, rounds_skipped, joined_round;
};

/* Count it in the facts of all: begin with zeros, add every peer, then set quorum, target,
 * rounds and the distance of the models of those that ended. What the peers say of their own
 * distance is not asked. */
void verdict_add_peer(struct verdict_facts *all, const struct verdict_peer *p);

/* Are n_live of n_members as many as `share` of them? Exactly the share is enough, so that
 * both halves of an even cut have a half. */
bool verdict_quorum(uint32_t n_live, uint32_t n_members, double share);

#endif
