/* peer/cmd/watch_view.h -- formats the page of `hearsay status --watch` from the answers of the
 * members. The functions use no clock and no screen: they only write text.
 *
 *   8 members: 7 training, 1 silent    round 412 to 415 of 1000    5.2 rounds/s, about 2 min left
 *   loss 0.2120 to 0.2533    accuracy 96.10 % at least    relative drift 8.50e-03 @400    1.20 MB/s
 *
 *   name     state     round     rate     age    loss   accuracy  relative drift   sent/s  codec..
 *   peer-0   training  415/1000  5.2/s    0.2 s  ...
 */
#ifndef PEER_CMD_WATCH_VIEW_H
#define PEER_CMD_WATCH_VIEW_H

#include "gossip/wire/wire.h"

#include <stdio.h>

/* Data about one member, from its membership record and its last answer. */
struct watch_member
{
    const char *name;  /* Name of the member. Borrowed. */
    const uint8_t *id; /* Identity of the member, WIRE_ID_BYTES bytes. Borrowed. */
    bool left;    /* True if the member has left the cluster, according to its membership record. */
    bool reached; /* True if this process has a session with the member. */
    /* True if the member answered the newest request. False: the figures below are from an earlier
     * answer. */
    bool answered;
    bool ever; /* True if the member has answered at least once. Only then is `status` valid. */
    struct wire_status status; /* Status that the member last reported. */
    double status_age_s;       /* Seconds since `status` arrived. */
    /* Rounds per second and bytes sent per second, measured between the last two answers. NaN:
     * not known. */
    double rounds_s, bytes_s;
};

struct watch_facts
{
    /* Members in the order in which they are listed, n of them. Borrowed. */
    const struct watch_member *member;
    uint32_t n;
    /* Number of members for which the run waits before it begins. 0: no run is known. */
    uint32_t min_peers;
    const char *run; /* Short description of the run. "": not known. */
};

/* Writes only the summary lines at the head of the page. Each line is cut to `width` characters (0:
 * not cut) and followed by `end`. Returns the number of lines. */
uint32_t watch_head(FILE *out, const struct watch_facts *f, uint32_t width, const char *end);

/* Writes the whole page: the head, and one line for each member as far as `height` lines allow (0:
 * no limit). Each line is cut to `width` characters (0: not cut) and followed by `end`. If members
 * do not fit, the last line says how many. Returns the number of lines. */
uint32_t watch_view(FILE *out, const struct watch_facts *f, uint32_t width, uint32_t height,
                    const char *end);

#endif
