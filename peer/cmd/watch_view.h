/* peer/cmd/watch_view.h -- what `hearsay status --watch` shows: from answers of members to lines of text. Pure: no clock, no
 * screen.
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

/* One member, as it was when it last answered. */
struct watch_member
{
    const char *name;          /* Borrowed, */
    const uint8_t *id;         /* as are these WIRE_ID_BYTES. */
    bool left;                 /* It said so. */
    bool reached;              /* There is a session with it. */
    bool answered;             /* To the newest question; else what follows is old. */
    bool ever;                 /* It has answered once: `status` holds. */
    struct wire_status status; /* Its own words. */
    double said_s;             /* Since it said them. */
    double rounds_s,
        bytes_s; /* Rounds, and bytes sent, a second since the answer before; NaN: not known. */
};

struct watch_facts
{
    const struct watch_member *member; /* Borrowed, n of them, in the order of the lines. */
    uint32_t n;
    uint32_t min_peers; /* The run's; 0: no run is known. */
    const char *run;    /* In some words; "": not known. */
};

/* Writes the head alone, each line cut to `width` characters (0: whole) and with `end` behind it. Returns the
 * number of lines. */
uint32_t watch_head(FILE *out, const struct watch_facts *f, uint32_t width, const char *end);

/* Writes the head, and lines of as many members as fit in `height` lines (0: all), each cut to `width`
 * characters (0: whole), with `end` behind each line. Who does not fit is counted in the last one. Returns the
 * number of lines. */
uint32_t watch_view(FILE *out, const struct watch_facts *f, uint32_t width, uint32_t height,
                    const char *end);

#endif
