/* peer/uv/rate_limit.h -- who knocks how often: token buckets, one for all and one an address.
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
#ifndef PEER_UV_RATE_LIMIT_H
#define PEER_UV_RATE_LIMIT_H

#include "peer/uv/resolve.h"

enum { RATE_LIMIT_SETS = 64, RATE_LIMIT_WAYS = 4 };

struct rate_limit_limits
{
    uint32_t calm_per_s,
        calm_burst;        /* Connections of all together: below this nothing is limited. */
    uint32_t per_s, burst; /* One address's, once there are more, */
    uint32_t loopback_per_s, loopback_burst; /* and of this very host, where many peers may run. */
    uint32_t looks_per_s; /* First messages of an address over its rate that are opened. */
};

struct rate_limit_bucket
{
    double tokens;
    uint64_t at_ms; /* As of then. */
};

struct rate_limit_entry
{
    uint64_t key; /* Family and prefix, hashed; 0: free. */
    struct rate_limit_bucket knocks, looks;
};

struct rate_limit
{
    struct rate_limit_limits limits;
    uint64_t salt; /* Secret, so that nobody can choose whom to share a set with. */
    struct rate_limit_bucket all;
    struct rate_limit_entry at[RATE_LIMIT_SETS][RATE_LIMIT_WAYS];
};

enum rate_limit_welcome { RATE_LIMIT_WELCOME, RATE_LIMIT_HASTY };

void rate_limit_init(struct rate_limit *c, const struct rate_limit_limits *limits, uint64_t salt,
                     uint64_t now_ms);
enum rate_limit_welcome rate_limit_knock(struct rate_limit *c, const union uv_address *a,
                                         uint64_t now_ms);
/* May the first message of this hasty one be opened? */
bool rate_limit_look(struct rate_limit *c, const union uv_address *a, uint64_t now_ms);
/* Do connections come faster than calm_per_s? */
bool rate_limit_is_thick(const struct rate_limit *c, uint64_t now_ms);
/* The same host, as far as limits go: the port does not count. */
uint64_t rate_limit_key(const struct rate_limit *c, const union uv_address *a);

#endif
