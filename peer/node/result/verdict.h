/* peer/node/result/verdict.h -- decides how a run ended: turns facts into a kind, a sentence and an
 * exit code.
 *
 * Each row of this table shows a fact, the kind of verdict and the exit code that follow from it.
 * The first row whose fact holds decides. A peer judges by what it knows: its consensus distance is
 * an estimate, and dead members are those of which it has heard. `hearsay local` and `hearsay sim`
 * start all peers, and compute the distance from the models themselves.
 *
 *   fact                                                 kind             exit code
 *   ---------------------------------------------------  ---------------  ---------
 *   the process failed, or its input was invalid         failed           1 or 2
 *   the user stopped the run (SIGTERM)                   stopped          0
 *   training diverged, or the last loss is not finite    diverged         3
 *   the run ended while this peer was away, or with a
 *     certificate that does not cover its model          ended-elsewhere  3
 *   a bootstrap list is given, but no peer was ever met  never-connected  3
 *   fewer members than the quorum ended together,
 *     or exactly half without the smallest identity      no-quorum        3
 *   all other members have left or died                  never-connected  3
 *   no consensus phase was requested (--final-drift 0)   not-requested    0
 *   the consensus distance is not known                  unknown          3
 *   the consensus distance exceeds the target            over-target      3
 *   none of these                                        consensus        0
 */
#ifndef PEER_NODE_RESULT_VERDICT_H
#define PEER_NODE_RESULT_VERDICT_H

#include "gossip/wire/wire.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    /* Size of the sentence of a verdict, in bytes with the NUL. Enough for three lists of the
     * longest names. */
    VERDICT_TEXT = 2048,
    VERDICT_UNREACHED_MAX = 128, /* Size of the list of addresses, in bytes with the NUL. */
    VERDICT_DEAD_MAX = 64, /* Maximum number of dead, and of absent, members that are named. */
    VERDICT_WHY_MAX = 48   /* Size of the reason why a member is absent, in bytes with the NUL. */
};

/* Kind of a verdict, in the order of the table at the top of this file. */
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

/* Whether this peer ended the run together with the other members. */
enum verdict_presence {
    VERDICT_TOGETHER, /* Yes, as far as this peer knows. */
    VERDICT_ABSENT,   /* No: the run ended while this peer was stopped or cut off. */
    /* No: the other members agreed on a certificate that does not cover this peer's model. */
    VERDICT_UNCOVERED
};

/* Facts about the end of a run, as known to one peer, or to the program that started all peers
 * (`hearsay local`, `hearsay sim`). Initialise with zeros, and `distance` with NaN. Strings are
 * borrowed. */
struct verdict_facts
{
    int failed;          /* Exit code of a failure that ended the process. 0: no failure. */
    const char *failure; /* The failure, as a clause. NULL: it has been reported already. */
    bool stopped;        /* True: the user stopped the run. */
    bool lonely;         /* True: a bootstrap list was given, and no other peer was ever met. */
    /* With `lonely`: the addresses of the bootstrap list that were never reached. "": not known. */
    char unreached[VERDICT_UNREACHED_MAX];
    const char *diverged; /* How training diverged, as a clause. "" or NULL: it did not. */
    bool infinite;        /* True: the last training loss is not finite. */
    /* Why the model is no better than guessing, as a clause. "" or NULL: it is better. For several
     * peers: set if it applies to all peers that ended. Causes a warning and does not change the
     * kind of the verdict. */
    const char *unlearnt;

    /* Number of members of the run, without those that left by their own announcement. */
    uint32_t n_members;
    uint32_t n_among; /* Number of members that ended the run together, including this peer. */
    uint32_t n_left;  /* Number of members that left by their own announcement. */
    char left[VERDICT_DEAD_MAX][WIRE_NAME_MAX + 1]; /* Names of the first members that left. */
    /* Number of members that ended the run together with this peer, but could not store their
     * model. They are counted in n_dead, too. */
    uint32_t n_failed;
    /* Number of voters of the run (quorum.h), to which the quorum applies. 0: the quorum applies to
     * n_members. */
    uint32_t n_begun;
    uint32_t n_voting; /* Number of voters among the n_among members. Used if `uncertified`. */
    /* True: the initial member with the smallest identity neither ended the run with this peer nor
     * reported a failure. */
    bool without_first;
    /* Name of the initial member with the smallest identity. "": it is not known. */
    char first[WIRE_NAME_MAX + 1];
    double quorum; /* Share of n_begun that must have ended together, in [0, 1]. */
    /* With VERDICT_TOGETHER: number of dead and failed members. Otherwise: number of other members
     * that are not known to have finished. */
    uint32_t n_dead;
    /* Names of the first dead members, at most VERDICT_DEAD_MAX. */
    char dead[VERDICT_DEAD_MAX][WIRE_NAME_MAX + 1];

    /* Number of members that live but did not end the run with this peer. absent[] lists the first
     * VERDICT_DEAD_MAX. */
    uint32_t n_absent;
    struct verdict_absent
    {
        char name[WIRE_NAME_MAX + 1];
        char why[VERDICT_WHY_MAX]; /* Reason why the member is absent, as a clause. */
    } absent[VERDICT_DEAD_MAX];

    /* Whether this peer ended the run together with the other members. Unless VERDICT_TOGETHER, the
     * members that have reported their end are in finished[], and all others in dead[]. */
    enum verdict_presence presence;
    /* Number of members that finished without this peer. With VERDICT_TOGETHER: number of dead
     * members that had finished before they died. They may have ended the run with a
     * certificate. */
    uint32_t n_finished;
    char finished[VERDICT_DEAD_MAX][WIRE_NAME_MAX + 1]; /* Names of the first of these members. */

    /* Relative consensus distance |x - mean| / |mean| at the end. NaN or infinite: not known. */
    double distance;
    /* True: the distance is not known, because there is no certificate: the members have not agreed
     * on which models are final and how far apart they are (peer/node/finish/README.md). */
    bool uncertified;
    bool at_most;  /* True: the distance is an upper bound, which may be far above the true one. */
    bool exact;    /* True: the distance was computed from the models. False: it is an estimate. */
    double target; /* Value of --final-drift. 0 or less: no consensus phase was requested. */

    uint64_t n_rounds; /* Number of rounds of the run. */
    /* Number of the run's rounds that are over for this peer. For several peers: the sum. */
    uint64_t rounds_claimed;
    /* Number of rounds that this peer skipped after it had joined. For several peers: the sum. */
    uint64_t rounds_skipped;
    /* Round at which this peer joined the run. With several peers: the latest such round. 0: it
     * joined at the beginning. */
    uint64_t joined_round;
    /* For several peers: number of peers that joined the run after its beginning. */
    uint32_t n_joined;
    char joined[WIRE_NAME_MAX + 1]; /* Name of the peer that joined last, if n_joined > 0. */
};

/* The verdict of a run. */
struct verdict
{
    enum verdict_kind kind;
    int exit_code;           /* Exit code of the process: enum cmd_exit of peer/run/exit.h. */
    char text[VERDICT_TEXT]; /* One sentence for the user, without a full stop. */
};

/* Sets *o to the verdict that follows from the facts. */
void verdict_judge(struct verdict *o, const struct verdict_facts *f);

/* Returns the name of the kind as programs read it, such as "no-quorum". */
const char *verdict_word(enum verdict_kind kind);

/* Adds a dead member to the facts. */
void verdict_add_dead(struct verdict_facts *f, const char *name);

/* Adds a member that lives but did not end the run with this peer. `why` is a clause. */
void verdict_add_absent(struct verdict_facts *f, const char *name, const char *why);

/* Adds a member that left by its own announcement. */
void verdict_add_left(struct verdict_facts *f, const char *name);

/* Adds a member that finished the run without this peer. */
void verdict_add_finished(struct verdict_facts *f, const char *name);

/* Facts about one peer, for the program that started all peers. */
struct verdict_peer
{
    const char *name;
    bool left; /* True: the peer was stopped and is no longer a member. */
    bool died; /* True: the peer failed before it ended the run. */
    /* Reason, as a clause, why this live peer did not end the run with the other peers. NULL: there
     * is no such reason. */
    const char *absent;
    bool ended; /* True: the peer ended the run and has a model. */
    /* The fields below have the meaning of the fields of the same name in struct verdict_facts. */
    const char *diverged;
    bool infinite;
    const char *unlearnt;
    uint64_t rounds_claimed, rounds_skipped, joined_round;
};

/* Adds one peer to the facts about all peers. The caller initialises *all with zeros, adds every
 * peer, and then sets quorum, target, n_rounds, and the distance between the models of the peers
 * that ended. */
void verdict_add_peer(struct verdict_facts *all, const struct verdict_peer *p);

/* Returns whether n_live is at least `share` of n_members. With a share of 0.5, both halves of an
 * evenly split cluster therefore have a quorum. */
bool verdict_quorum(uint32_t n_live, uint32_t n_members, double share);

#endif
