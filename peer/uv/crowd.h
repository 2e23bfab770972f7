/* peer/uv/crowd.h -- who knocks how often: token buckets, one for all and one an address.
 *
 *   all together slower than calm_per_s           WELCOME: has the whole deadline for its handshake
 *   faster, and this address within its own rate  WELCOME
 *   faster, and this address over its rate        HASTY: its first message must be there already
 *
 * An address is an IPv4 address, or the first 64 bits of an IPv6 address, which one host may have
 * to itself. Addresses are kept in a table of sets, where a new one takes the place of the one that
 * was quiet for longest: it then has a full bucket, so a flood from thousands of addresses is held
 * by the acceptor's other limits only. Pure: the time is given.
 */
#ifndef PEER_UV_CROWD_H
#define PEER_UV_CROWD_H

#include "peer/uv/resolve.h"

enum { CROWD_SETS = 64, CROWD_WAYS = 4 };

struct crowd_limits
{
    uint32_t calm_per_s,
        calm_burst;        /* Connections of all together: below this nothing is limited. */
    uint32_t per_s, burst; /* One address's, once there are more, */
    uint32_t loopback_per_s, loopback_burst; /* and of this very host, where many peers may run. */
    uint32_t looks_per_s; /* First messages of an address over its rate that are opened. */
};

struct crowd_bucket
{
    double tokens;
    uint64_t at_ms; /* As of then. */
};

struct crowd_entry
{
    uint64_t key; /* Family and prefix, hashed; 0: free. */
    struct crowd_bucket knocks, looks;
};

struct crowd
{
    struct crowd_limits limits;
    uint64_t salt; /* Secret, so that nobody can choose whom to share a set with. */
    struct crowd_bucket all;
    struct crowd_entry at[CROWD_SETS][CROWD_WAYS];
};

enum crowd_welcome { CROWD_WELCOME, CROWD_HASTY };

void crowd_init(struct crowd *c, const struct crowd_limits *limits, uint64_t salt, uint64_t now_ms);
enum crowd_welcome crowd_knock(struct crowd *c, const union uv_address *a, uint64_t now_ms);
/* May the first message of this hasty one be opened? */
bool crowd_look(struct crowd *c, const union uv_address *a, uint64_t now_ms);
/* Do connections come faster than calm_per_s? */
bool crowd_is_thick(const struct crowd *c, uint64_t now_ms);
/* The same host, as far as limits go: the port does not count. */
uint64_t crowd_key(const struct crowd *c, const union uv_address *a);

#endif
