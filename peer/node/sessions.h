/* peer/node/sessions.h -- the sessions of a node, and dialling: a machine of its own.
 *
 * The state consists of the table of links, the bootstrap names, the contacts, and the timers of
 * heartbeats and of membership gossip. Only sessions.c, introduce.c, news.c, dial.c, watch.c,
 * admit.c and callback.c write it. Other modules hold `const struct link *` and use the functions
 * below.
 *
 *    (dial) --LINK_UP--> [used] --HELLO--> [talks] --hang-up--> [doomed] --LINK_DOWN--> (free)
 *                           |                                      ^
 *                           +-- refused, a duplicate, silent ------+
 *
 * A session that says HELLO as an observer never talks: it may only ask. This machine knows
 * nothing of edges, training or mixing. What it must know of them, and what it has to pass
 * on, goes through struct sessions_owner, which the node fills in.
 */
#ifndef PEER_NODE_SESSIONS_H
#define PEER_NODE_SESSIONS_H

#include "peer/node/admit.h"
#include "peer/node/callback.h"
#include "peer/node/connection_diagnostics.h"
#include "peer/node/env.h"
#include "peer/node/quarantine.h"

enum {
    SESSIONS_PIECE = 16, /* After the first batch members are told so many a tick: a link may be
                          * slow, and its queue is bounded. */
    SESSIONS_NEWS = 32,  /* So many news a tick: about half of them a neighbour has by itself. */
    SESSIONS_KINDS = 48, /* Violations are told apart by what they were: so many at most. */
    NODE_SEED_ADDRESSES = 64 /* A bootstrap name may stand for so many; further ones are dropped. */
};

/* One session. */
struct link
{
    bool used, dialled, hello, observer, same_run, started, finished, doomed;
    bool opened, violated; /* An edge mixed on it; it ends for a violation. */
    bool mute;             /* It is silent, so that it vouches for nobody. */
    uint32_t number;       /* The driver's. */
    uint32_t version;      /* The messages on it have this one. */
    uint32_t tag;          /* Our dial's; 0 where they have dialled. */
    bool telling, asked;   /* All members are being told; they asked for a status meanwhile. */
    size_t told;           /* The place of the next member to tell. */
    uint32_t n_new;        /* So many members were first heard of on it since new_us; */
    int64_t new_us;
    bool told_new;    /* that they were too many was said. */
    int64_t other_us; /* When another process of our identity was last told of on it; 0: never. */
    uint8_t id[WIRE_ID_BYTES];
    int64_t heard_us, up_us;
    uint64_t boot;         /* Their process drew it when it started. */
    uint64_t round;        /* They have done so many rounds of the run, as they last said, */
    int64_t said_us;       /* at this time; */
    uint64_t before;       /* and what they had said before that, */
    int64_t before_us;     /* then. 0: nothing. */
    int64_t busy_since_us; /* Their worker has been at its job since then; 0: it waits. */
    int64_t told_busy_us;  /* When they said so. */
    struct callback_link callback; /* Written by callback.c only. */
};

/* Trying to reach an address, with back-off. */
struct redial
{
    bool busy;
    uint32_t tag;
    int64_t next_us, backoff_us, dialled_us;
};

/* A member that we want a session with: for an edge, or to watch it, or for both. */
struct contact
{
    uint8_t id[WIRE_ID_BYTES];
    bool wanted, watched;
    struct redial redial;
    uint32_t next_address; /* The place of the next to try among its record's. */
    uint32_t refusals;     /* So many dials in a row were refused outright. */
    /* Time of the first failed call since the member became a contact, in microseconds. 0: no call
     * failed. Written by callback.c only. */
    int64_t unmet_us;

    /* watch.c writes these. */
    bool met;         /* We have had a session since it became a contact. */
    int64_t call_us;  /* For the sake of watching it is not called before this. */
    int64_t heard_us; /* When it was last heard, by us or by whom we asked; or became one. */
    int64_t asked_us; /* Since when others are asked about it; 0: they are not. */
    bool accused;     /* By us, and not refuted yet, */
    uint64_t accused_incarnation; /* while it had this incarnation. */
    int64_t spared_us;            /* It is not accused again before this, */
    int64_t spare_us;             /* and next time for so long. */
};

/* A bootstrap name, what it stood for when it was last resolved, and our dials there. */
struct seed
{
    const char *name;
    bool busy, warned;
    int64_t next_us;
    uint32_t n;
    struct
    {
        char address[WIRE_ADDRESS_MAX + 1];
        bool busy, self;
        uint32_t tag;
    } at[NODE_SEED_ADDRESSES];
};

/* What we say of ourselves. */
struct standing
{
    bool has_run, has_started;
    bool gathers;     /* There is no run yet, and one is about to be fixed (pooling.h), or to have
                       * its initial model here (initial.h). */
    bool finished;    /* Our model is final. */
    struct bytes run; /* The run's text. */
    uint64_t round;   /* Local rounds done. */
    uint64_t beat;    /* Those of the consensus phase, too. */
    int64_t busy_us;  /* The worker has been at its job for so long; 0: it waits. */
};

/* What is to be done about the run of a HELLO, where it is not ours. */
enum sessions_run {
    SESSIONS_RUN_SAME,       /* It is ours. */
    SESSIONS_RUN_TAKEN,      /* It is ours from now on. */
    SESSIONS_RUN_YIELDS,     /* They will take ours. */
    SESSIONS_RUN_STRANGER,   /* It has begun, and so has ours: no session. */
    SESSIONS_RUN_UNREADABLE, /* No correct peer of our kind says this. */
    SESSIONS_RUN_CONTRADICTS /* It is not what this peer was started for: it leaves. */
};

/* Nobody talks to us: how did that come? */
enum sessions_away {
    SESSIONS_THERE, /* Somebody does, or they went before our eyes. */
    SESSIONS_CUT,   /* The last of them fell silent on a session that stood. */
    SESSIONS_STOOD  /* We stood still; they were gone when we went on. */
};

/* The node's answers; each call gets `self`. */
struct sessions_owner
{
    void *self;
    void (*standing)(void *self, struct standing *s);
    enum sessions_run (*run)(void *self, const struct wire_hello *h, bool dialled);
    void (*lost)(void *self, const struct link *l);     /* A session that talked is gone. */
    void (*finished)(void *self, const struct link *l); /* Their model is final. */
    bool (*surplus)(void *self, const struct link *l);  /* Nobody needs it. */
    void (*status)(void *self, const struct link *l);   /* They want to know of us. */
};

struct sessions
{
    struct env *env;
    struct sessions_owner owner;
    struct link links[NODE_LINKS_MAX];
    size_t n_links; /* None of those from here on has ever been used: each takes the first place. */
    uint64_t n_violations;
    struct
    {
        const char *what; /* A literal of ours. */
        uint64_t n;
    } kind[SESSIONS_KINDS]; /* The same by kind, n_kinds of them; more share the last. */
    uint32_t n_kinds;
    struct quarantine quarantine;
    int64_t heartbeat_us, entropy_us; /* When the next ones are due. */
    uint32_t n_news;                  /* So many may be told before the next tick. */
    int64_t cloned_us;                /* That we have a clone is not said again before this. */

    struct admit admit; /* Who may be a member; admit.c writes it. */

    /* dial.c writes these. */
    struct seed *seeds;       /* config.n_bootstrap of them. */
    struct contact *contacts; /* In no order. */
    size_t n_contacts, cap_contacts;
    struct redial dead;     /* One of the dead being tried. */
    int64_t dead_redial_us; /* When the next of them is tried. */
    size_t next_dead;       /* Where to look for it, where they are tried in turn. */
    uint32_t next_tag;

    /* Calls in a row that were refused outright, none got through or had no answer; since. */
    uint32_t n_refused;
    int64_t refused_us;

    struct connection_diagnostics seek; /* Written by seek.c only. */
    struct callback callback;           /* Written by callback.c only. */

    /* watch.c writes these. */
    int64_t stood_us;        /* Node time of the last pause of more than SILENT_US; 0: none. */
    enum sessions_away away; /* How we lost the last session, if it was we that were away. */
    struct
    {
        uint64_t pair;   /* Hash of both ids; 0: there are none. */
        int64_t seen_us; /* When both were last seen to live. */
        int64_t since_us;
        bool told;
        bool ours;                     /* It is our name: */
        uint8_t other[WIRE_ID_BYTES];  /* this one has it, too. */
    } twins;                           /* Two that live, and have one name. */
    uint64_t failure_detector_changes; /* members_changes() as it was chosen whom to watch. */
};

/* A session with a peer that has said who it is. */
static inline bool link_talks(const struct link *l)
{
    return l->used && l->hello && !l->observer;
}

/* Their worker has been at its job for so long, as far as we know; 0: it waits. */
static inline int64_t link_busy_us(const struct link *l, int64_t now_us)
{
    return l->busy_since_us != 0 ? now_us - l->busy_since_us : 0;
}

/* 0 or -ENOMEM; close it in any case. */
int sessions_open(struct sessions *s, struct env *env, const struct sessions_owner *owner);
void sessions_close(struct sessions *s);
void sessions_start(struct sessions *s);

/* ---- what happens ---- */

void sessions_up(struct sessions *s, const struct node_event *ev);
void sessions_down(struct sessions *s, const struct node_event *ev);
void sessions_dial_failed(struct sessions *s, const struct node_event *ev);
void sessions_resolved(struct sessions *s, const struct node_event *ev);
/* A message has come: the link, or NULL where it does not count any more. */
const struct link *sessions_heard(struct sessions *s, uint32_t number);
void sessions_hello(struct sessions *s, const struct link *l, const struct wire_hello *h);
void sessions_members(struct sessions *s, const struct link *l, const struct wire_members *told);
/* They want to know of us: answered once all members have been told, who may be asked next. */
void sessions_status_req(struct sessions *s, const struct link *l);
void sessions_ping(struct sessions *s, const struct link *l, const struct wire_ping *ping);
void sessions_probe(struct sessions *s, const struct link *l, const struct wire_probe *m);
void sessions_vouched(struct sessions *s, const struct wire_heard *m);
void sessions_tick(struct sessions *s);

/* ---- what others ask for ---- */

void sessions_send(struct sessions *s, const struct link *l, bool bulk, const uint8_t *head,
                   size_t n_head, struct packet *body);
void sessions_hang_up(struct sessions *s, const struct link *l, bool violation);
/* what: a literal; it is kept. */
void sessions_violation(struct sessions *s, const struct link *l, const char *what);
void sessions_news(struct sessions *s);      /* Pass on what changed among the members. */
void sessions_last_news(struct sessions *s); /* All of it: we end, and others may wait for it. */
void sessions_leave(struct sessions *s);     /* By a signed word, so that no ghost stays. */
void sessions_hello_all(struct sessions *s); /* What we say of ourselves has changed. */
void sessions_run_fixed(struct sessions *s); /* There is a run, where there was none: it is ours. */
/* Our model is final, if it is: behind our last delta. */
void sessions_say_finished(struct sessions *s, const struct link *l);
void sessions_say_finished_all(struct sessions *s);
/* An edge opened on the link: it is of use. */
void sessions_opened(struct sessions *s, const struct link *l);

/* ---- dialling (dial.c) ---- */

/* We want a session with this member from now on, or no longer. 0 or -ENOMEM. */
int sessions_want(struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);
bool sessions_wants(struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);
void sessions_unwant(struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);
/* Call a wanted member, if it is time; there has been no session since lost_us. */
void sessions_call(struct sessions *s, const uint8_t id[WIRE_ID_BYTES], int64_t lost_us);
/* The session with this wanted member was of use: have it again at once. */
void sessions_call_soon(struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);

/* ---- questions ---- */

const struct link *sessions_link(const struct sessions *s, uint32_t number);
const struct link *sessions_to(const struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);
/* When this member was last heard, by us or by whom we asked; 0: it never was. */
int64_t sessions_heard_us(struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);
bool sessions_any(const struct sessions *s); /* A session with any peer. */
/* Were we away, and is now nobody there any more? That is, all whom we know to be missing have
 * refused our calls for a while: their hosts answer, their processes are gone. */
enum sessions_away sessions_deserted(const struct sessions *s);
/* Somebody of our run has begun it. */
bool sessions_run_begun(const struct sessions *s);

/* ---- between sessions.c, introduce.c, news.c, dial.c and watch.c ---- */

/* Merges the record by which a peer, or whoever has our identity, introduces itself. */
enum members_verdict handshake_hello(struct sessions *s, const struct link *l,
                                     const struct record *r);
/* The session talks from now on: we can vouch for its member. */
void handshake_met(struct sessions *s, const struct link *l);
/* What somebody says of a member is merged, within limits. The link, or the node, may end over it. */
void handshake_record(struct sessions *s, const struct link *l, const struct record *r);
void handshake_tick(struct sessions *s);
/* It has ended: perhaps for the sake of another process of our identity. */
void handshake_lost(struct sessions *s, const struct link *l);

/* All that we know, in pieces. */
void dissemination_tell_all(struct sessions *s, struct link *l);
void dissemination_tick(struct sessions *s);
/* As members_listener() and members_heard(). */
void dissemination_listens(struct sessions *s, const struct link *l, bool member);
void dissemination_heard(struct sessions *s, const struct link *l, const struct record *r);

void dial_start(struct sessions *s);
/* Dials `address`, which must stay valid until the next step. *tag identifies the result. */
void dial_address(struct sessions *s, const char *address, uint32_t *tag);
/* Ends the dial with this tag. `id`: the peer that answered; NULL: the dial failed for the reason
 * `why`. */
void dial_over(struct sessions *s, uint32_t tag, const uint8_t *id, enum node_why why);
/* A session has ended that was of no use: no hurry to have it again. */
void dial_in_vain(struct sessions *s, const struct link *l);
void dial_opened(struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);
/* Addresses where our own identity answered may be another process's. */
void dial_all_again(struct sessions *s);
void dial_tick_seeds(struct sessions *s);
void dial_tick_dead(struct sessions *s);
/* The contact of this id, or NULL; or a new one, or NULL without memory. */
struct contact *dial_contact(struct sessions *s, const uint8_t *id);
struct contact *dial_add_contact(struct sessions *s, const uint8_t *id);
/* Forgets those that are neither wanted nor watched. */
void dial_sift(struct sessions *s);
/* The process was paused for pause_us (clock.h). Probes that were sent before are sent again. */
void failure_detector_continue(struct sessions *s, int64_t pause_us);
void failure_detector_tick(struct sessions *s);
/* The session is gone; and one has begun. */
void failure_detector_lost(struct sessions *s, const struct link *l);
void failure_detector_met(struct sessions *s, const struct link *l);
/* It has refused us, or we have refused it: no session, but it lives. */
void failure_detector_refused(struct sessions *s, const uint8_t id[WIRE_ID_BYTES]);

#endif
