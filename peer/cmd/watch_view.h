/* peer/cmd/watch_view.h -- formats the page of `hearsay status --watch` from the members'
 * answers. A pure function, without clock or screen.
 *
 *   8 members: 7 training, 1 silent    round 412 to 415 of 1000    5.2 rounds/s, about 2 min left
 *   loss 0.2120 to 0.2533    accuracy 96.10 % at least    relative drift 8.50e-03 @400    1.20 MB/s
 *
 *   name     state     round     rate     age    loss   accuracy  relative drift   sent/s  codec ...
 *   peer-0   training  415/1000  5.2/s    0.2 s  ...
 */
#ifndef PEER_CMD_WATCH_VIEW_H
#define PEER_CMD_WATCH_VIEW_H

#include "gossip/wire/wire.h"

#include <stdio.h>

/* One member, as of its last answer. */
struct watch_member
{
    const char *name;  /* Name of the member. Borrowed. */
    const uint8_t *id; /* Identity of the member, WIRE_ID_BYTES. Borrowed. */
    bool left;         /* The member's record says that it has left. */
    bool reached;      /* This process has a session with the member. */
    /* The member answered the newest request. False: the figures below are old. */
    bool answered;
    bool ever;                 /* The member has answered at least once, so `status` is valid. */
    struct wire_status status; /* Status that the member last reported. */
    double status_age_s;       /* Seconds since the status arrived. */
    double rounds_s,
        bytes_s; /* Rounds and bytes sent per second, since the previous answer. NaN: not known. */
};

struct watch_facts
{
    const struct watch_member *member; /* Members in the order of the lines, n of them. Borrowed. */
    uint32_t n;
    uint32_t min_peers; /* Members that the run requires before it begins. 0: no run is known. */
    const char *run;    /* Short description of the run. "": not known. */
};

/* Writes only the head of the page. Each line is cut to `width` characters (0: not cut) and
 * followed by `end`. Returns the number of lines. */
uint32_t watch_head(FILE *out, const struct watch_facts *f, uint32_t width, const char *end);

/* Writes the head, and one line for each member that fits into `height` lines (0: all). Each
 * line is cut to `width` characters (0: not cut) and followed by `end`. The last line counts the
 * members that do not fit. Returns the number of lines. */
uint32_t watch_view(FILE *out, const struct watch_facts *f, uint32_t width, uint32_t height,
                    const char *end);

#endif
