/* gossip/members/inside.h -- the inside of struct members, for the files of this room only.
 *
 *   members.c   records and accusations: what overrides what
 *   vouches.c   who counts (vouches.h)
 *   news.c      what the others are told
 *   forget.c    who gives way to a newcomer, who is dropped, and the tombstones of both
 */
#ifndef GOSSIP_MEMBERS_INSIDE_H
#define GOSSIP_MEMBERS_INSIDE_H

#include "gossip/members/table.h"
#include "gossip/members/vouches.h"

enum {
    SELF = 0 /* The slot of our own record: the first that is added. */
};

/* What of a member the others have not been told yet: a set. */
enum news { NEWS_RECORD = 1, NEWS_ACCUSATIONS = 2 };

/* A vouch, its two members by their places in the table. */
struct vouch_slot
{
    uint16_t voucher, member;
    bool news; /* The others have not been told. */
    uint8_t signature[WIRE_SIGNATURE_BYTES];
};

/* A member that was dropped: records up to this incarnation are old. */
struct tombstone
{
    uint8_t id[WIRE_ID_BYTES];
    uint64_t incarnation;
};

enum { TOMBSTONES_MAX = WIRE_MEMBERS_MAX };

struct members
{
    struct members_config config;
    struct members_crypto crypto;
    struct records *records; /* Where records are kept: ours, or shared with other tables. */
    bool owns_records;
    struct record self; /* The record of slot SELF: not in `records`, for it changes. */
    struct table table;
    uint16_t first_news, last_news; /* Queue of slots with news, the oldest first. */
    struct members_tally tally;     /* Sums of what the slots are `tallied` as. */
    uint64_t view;                  /* Sum of the vertices' hashes: their order does not matter. */
    int64_t due_us;                 /* No suspect's time is up before this. */
    uint64_t n_changes;             /* Judgements so far. */
    int64_t began_us;               /* The first time that we were told; -1: not yet. */

    /* news.c writes these. */
    uint64_t audience;             /* All who listen; 0: that is not known. */
    uint16_t told[WIRE_BATCH_MAX]; /* The slots of the n_told records that were given out last. */
    uint32_t n_told;

    /* vouches.c writes these. */
    struct vouch_slot *vouch; /* n_vouches of cap_vouches, in no order. */
    uint32_t n_vouches, cap_vouches;
    bool unsettled;    /* Who counts has to be found anew. */
    bool vouches_news; /* Some may have to be told. */
    bool strangers;    /* Some member was not known from the start. */

    /* forget.c writes these. */
    struct tombstone *tomb; /* n_tombs; the oldest is at next_tomb once they are TOMBSTONES_MAX. */
    uint32_t n_tombs, cap_tombs, next_tomb;
    uint32_t next_victim;  /* Where to look for who gives way. */
    int64_t forget_due_us; /* Nobody's time to be forgotten comes before this. */
};

static inline bool is_self(const struct members *m, const struct slot *s)
{
    return s == &m->table.slot[SELF];
}

/* ---- members.c ---- */

/* Something about the member has changed: find its state, the deadline of a suspect, and
 * whether it is a vertex. */
void members_judge(struct members *m, struct slot *s, int64_t now_us);

/* The slot is about to be another member's, or nobody's: it is counted as nothing. */
void members_untally(struct members *m, struct slot *s);

/* ---- news.c ---- */

/* The others have to be told: the slot joins the queue, or stays where it is in it. */
void members_add_news(struct members *m, struct slot *s, enum news news);

/* ---- vouches.c ---- */

/* All vouches by or for the member of this place go; what was the member of `moved` is of
 * `place` from now on. The same place twice: nobody moves. */
void vouches_drop(struct members *m, uint16_t place, uint16_t moved);

/* ---- forget.c ---- */

/* The slot that is given to a newcomer of a full table, or NULL. */
struct slot *members_victim(struct members *m);
/* The dead and those that left: what is said of them up to now is old. No memory: it is not. */
void members_bury(struct members *m, const struct slot *s);
bool members_buried(const struct members *m, const struct record *r);
/* It is there again. */
void members_dig_up(struct members *m, const uint8_t *id);
/* Drops those whose time has come. */
void members_forget_old(struct members *m, int64_t now_us);

#endif
