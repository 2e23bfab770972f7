/* peer/node/admit.h -- who may be a member beside the cluster key, and what the others say of us.
 *
 * A part of the machine of sessions. The list comes by NODE_ADMIT events; as long as there was
 * none, everybody may. A certificate (struct certificate) admits who is not on it:
 *
 *     on the list, or ourselves                              admitted
 *     no certificate                                         unlisted
 *     its issuer is not on the list                          issuer
 *     a signature does not fit                               forged
 *     new to us, says HELLO itself, and it is too late       expired
 *     else                                                   admitted
 *
 * So a certificate's time counts when its owner is first met; from then on the record goes round,
 * and whoever hears it from an admitted member takes it. Who is not admitted is told so (REFUSED)
 * and hung up on, and its record is dropped, whoever relays it. A list that comes later is held
 * against all members and sessions at once.
 *
 * A member of a name that another one has, which talks to us, is refused, too (admit_name()). Of two
 * that got in at different places the one that began later has to go (admit_one_of_two()).
 *
 * Whoever is refused and has no session with anybody for REFUSED_END_US ends: it would train alone.
 */
#ifndef PEER_NODE_ADMIT_H
#define PEER_NODE_ADMIT_H

#include "peer/node/node.h"

enum {
    ADMIT_TOLD = 16,
    ADMIT_OTHER_RUN =
        -1 /* Its run is not ours: no reason of this machine's, and told of as rarely. */
};

struct admit
{
    bool listed;                  /* There is a list. */
    uint8_t (*id)[WIRE_ID_BYTES]; /* n of them, sorted. */
    size_t n;
    int64_t unix_us; /* The wall clock, less our time, when the list came. */
    struct
    {
        uint8_t id[WIRE_ID_BYTES];
        int64_t until_us;
        int64_t last_us; /* We refused it last. */
        int why;         /* An enum wire_refusal, or ADMIT_OTHER_RUN. */
    } told[ADMIT_TOLD];  /* Refusals of these are not said again before `until_us`. */
    uint32_t next_told;

    /* We are refused since, and were last; 0: we are not, or somebody talks to us. */
    int64_t refused_us, last_us;
    int64_t said_us[REFUSED_NAME + 1]; /* When each reason was said last; 0: it was not. */
};

struct sessions;
struct link;

void admit_close(struct admit *a);
/* The list is new: *ev is of NODE_ADMIT. */
void admit_list(struct sessions *s, const struct node_event *ev);
/* May whoever says this HELLO first have a session, by the list; and, being of our run, by its name?
 * If not, it is told and hung up on. */
bool admit_hello(struct sessions *s, const struct link *l, const struct record *r);
bool admit_name(struct sessions *s, const struct link *l, const struct record *r);
bool admit_observer(struct sessions *s, const struct link *l);
/* That it is of another run: has it been said a while ago, so that it need not be said again? If not,
 * it is from now on. */
bool admit_run_is_told(struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);
/* May what is said of this member by others be believed? */
bool admit_record(struct sessions *s, const struct record *r);
/* Is this member refused, and rightly by what is known of it? */
bool admit_keeps_out(const struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);
/* They refuse us. */
void admit_refused(struct sessions *s, const struct link *l, const struct wire_refused *m);
/* Does everybody whom we meet refuse us? */
bool admit_is_refused(const struct admit *a);
/* We were refused a moment ago, or refused this one: it is not called before a while. */
bool admit_must_wait(const struct admit *a, const uint8_t id[WIRE_ID_BYTES], int64_t now_us);
/* Two members of one name live: one of them has to go, perhaps we. */
void admit_one_of_two(struct sessions *s, const struct record *a, const struct record *b);
void admit_tick(struct sessions *s);

#endif
